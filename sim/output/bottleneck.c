/* One sentence for each system: what bounds it at its largest point, with figures. */
#include <math.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/case/case.h"
#include "sim/output/grid.h"
#include "sim/output/output.h"

static const char *const resource_names[PSD_RESOURCES] = {"the device", "the copy out of the device",
							  "the copy into the device", "the server CPU", ""};

/* Above this share of the iteration a resource is what the system waits for; below, nothing is used up. Stages that
 * follow one another share the iteration: there the one that takes more than half of it is meant. */
static const double bound_ratio = 0.8;
static const double sequential_bound_ratio = 0.5;
/* From this share of the iteration on, together, the device and another resource explain it. */
static const double in_turn_ratio = 0.9;
/* Up to this share of an iteration what a device waits for does not bound it. */
static const double hidden_ratio = 0.1;
/* Up to this share of an iteration a part of it is not worth words. */
static const double worth_words_ratio = 0.02;

enum { MOST_SENTENCES_WITH_PARTS = 6 }; /* of more systems the parts are in the table alone */

static int busiest(const struct psd_outcome *outcome)
{
	int most = 0;

	for (int r = 1; r < PSD_RESOURCES; r++)
		if (outcome->busy_sec[r] > outcome->busy_sec[most])
			most = r;
	return most;
}

/* Whether the device and one resource take the iteration between them, so that each of them waits for the other. */
static bool is_in_turn(const struct psd_outcome *outcome, int *other)
{
	*other = -1;
	for (int r = 0; r < PSD_RESOURCES; r++)
		if (r != PSD_RESOURCE_DEVICE && (*other < 0 || outcome->busy_sec[r] > outcome->busy_sec[*other]))
			*other = r;
	return outcome->busy_sec[PSD_RESOURCE_DEVICE] + outcome->busy_sec[*other] >=
	       in_turn_ratio * outcome->iteration_sec;
}

/* Of what the stack moves where that is less than the link would; both 0: it is not. */
struct stack {
	double bps, link_bps;
	bool is_incast; /* receives from many at once: alone it would move more */
};

static struct stack stack_of(const struct psd_costed_model *costed, const struct psd_result *result)
{
	const double link_bps = result->point.bandwidth_bps * costed->scenario->network.payload_ratio;
	struct stack stack = {0.0, 0.0, false};
	struct psd_case made;
	struct psd_error err;

	if (link_bps == 0.0 || psd_case_make(&made, costed, result->system, result->point, &err))
		return stack;
	if (made.plan.rates.receive_bps < link_bps)
		stack = (struct stack){made.plan.rates.receive_bps, result->point.bandwidth_bps,
				       made.plan.rates.receive_bps < made.plan.rates.send_bps};
	psd_case_release(&made);
	return stack;
}

/* Messages last as long as the cores that serve them are busy with them. */
static void add_network(struct psd_text *sentence, const struct psd_costed_model *costed,
			const struct psd_result *result)
{
	const struct psd_machine *machine = &costed->scenario->machine;
	const struct stack stack = stack_of(costed, result);
	char rate[PSD_UNITS_TEXT_MAX], link[PSD_UNITS_TEXT_MAX];

	if (stack.bps > 0.0)
		psd_text_add(sentence, "the software stack, which %s %s%s where the link has %s (%s)",
			     stack.is_incast ? "receives" : "moves", psd_units_write_rate(stack.bps, rate),
			     stack.is_incast ? " from many senders at once" : "",
			     psd_units_write_rate(stack.link_bps, link),
			     stack.is_incast ? "host.incast" : "host.transport");
	else
		psd_text_add(sentence, "the network%s",
			     machine->bytes_bps > 0.0 || machine->message_sec > 0.0 ? " with the cores that serve it"
										    : "");
}

static void add_resource(struct psd_text *sentence, const struct psd_costed_model *costed,
			 const struct psd_result *result, int resource)
{
	if (resource == PSD_RESOURCE_NIC)
		add_network(sentence, costed, result);
	else
		psd_text_add(sentence, "%s", resource_names[resource]);
}

/* Whether the workers and servers of a machine are more than its cores. */
static bool shares_cores(const struct psd_scenario *scenario, const struct psd_result *result)
{
	const unsigned n_hosts = result->point.workers + result->system->servers;
	const unsigned n_of_machine = scenario->machine.nodes * result->point.workers_per_node;

	return scenario->machine.cores > 0 &&
	       (n_of_machine > 0 && n_of_machine < n_hosts ? n_of_machine : n_hosts) > scenario->machine.cores;
}

/* Something that this system has, where it explains a part of an iteration. */
struct cause {
	bool is_there;
	const char *words;
};

static void add_causes(struct psd_text *sentence, const struct cause causes[], unsigned n)
{
	const char *before = " (", *end = "";

	for (unsigned i = 0; i < n; i++) {
		if (!causes[i].is_there)
			continue;
		psd_text_add(sentence, "%s%s", before, causes[i].words);
		before = ", ";
		end = ")";
	}
	psd_text_add(sentence, "%s", end);
}

/* Forward and backward in any case, of the others what is worth words; each with its causes. */
static void add_parts(struct psd_text *sentence, const struct psd_scenario *scenario, const struct psd_result *result)
{
	const struct psd_parts *parts = &result->outcome.parts;
	const struct psd_system *system = result->system;
	const double iteration_sec = result->outcome.iteration_sec;
	const struct {
		double sec;
		const char *words;
		struct cause causes[2];
	} told[] = {
		{parts->other_work_sec,
		 "other work",
		 {{psd_choice_may_take_factors(system), "factor rebuilds"},
		  {system->host.iteration_sec > 0.0, "the stack's end of an iteration"}}},
		{parts->exposed_comm_sec, "exposed communication", {{false, ""}}},
		{parts->other_waiting_sec,
		 "other waiting",
		 {{scenario->n_slowdowns > 0 || scenario->jitter_ratio > 0.0, "slow or uneven nodes"},
		  {shares_cores(scenario, result), "cores that others have"}}},
	};
	char sec[PSD_UNITS_TEXT_MAX];

	psd_text_add(sentence, " of an iteration of %s: %.0f %% forward and backward",
		     psd_units_write_seconds(iteration_sec, sec), 100.0 * parts->compute_sec / iteration_sec);
	for (unsigned i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		if (told[i].sec < worth_words_ratio * iteration_sec)
			continue;
		psd_text_add(sentence, ", %.0f %% %s", 100.0 * told[i].sec / iteration_sec, told[i].words);
		add_causes(sentence, told[i].causes, 2);
	}
}

/* What bounds a system at a point: words that a share of the iteration follows. */
struct verdict {
	struct psd_text words;
	double ratio;
};

static void find_bound(struct verdict *verdict, const struct psd_costed_model *costed, const struct psd_result *result)
{
	struct psd_text *words = &verdict->words;
	const struct psd_parts *parts = &result->outcome.parts;
	const double iteration_sec = result->outcome.iteration_sec;
	const double waiting_sec = parts->exposed_comm_sec + parts->other_waiting_sec;
	const int resource = busiest(&result->outcome);
	const double busy_ratio = fmin(1.0, result->outcome.busy_sec[resource] / iteration_sec);
	const bool is_sequential = result->system->schedule == PSD_SCHEDULE_SEQUENTIAL;
	int other;

	psd_text_add(words, "bound by ");
	verdict->ratio = busy_ratio;
	if (waiting_sec <= hidden_ratio * iteration_sec) {
		psd_text_add(words, "the device, busy for");
		verdict->ratio = 1.0 - waiting_sec / iteration_sec;
	} else if (parts->other_waiting_sec > parts->exposed_comm_sec) {
		psd_text_add(words, "waiting for others, which is");
		verdict->ratio = parts->other_waiting_sec / iteration_sec;
	} else if (resource != PSD_RESOURCE_DEVICE &&
		   busy_ratio >= (is_sequential ? sequential_bound_ratio : bound_ratio)) {
		add_resource(words, costed, result, resource);
		psd_text_add(words, ", busy for");
	} else if (is_in_turn(&result->outcome, &other)) {
		psd_text_add(words, "turns of the device and ");
		add_resource(words, costed, result, other);
		psd_text_add(words, "; the latter is busy for");
		verdict->ratio = result->outcome.busy_sec[other] / iteration_sec;
	} else {
		psd_text_add(words, "waiting (latency, stages that cannot overlap); busiest is ");
		add_resource(words, costed, result, resource);
		psd_text_add(words, ", with");
	}
}

/* Finds the verdict on each system's largest point. */
static void find_bounds(const struct psd_report *report, const struct psd_result *largest[], struct verdict verdicts[])
{
	for (unsigned s = 0; s < report->n_systems; s++) {
		const struct psd_result *results = &report->results[s * report->n_points];

		largest[s] = results;
		for (unsigned p = 1; p < report->n_points; p++)
			if (results[p].point.workers >= largest[s]->point.workers)
				largest[s] = &results[p];
		find_bound(&verdicts[s], report->costed, largest[s]);
	}
}

static bool is_same(const struct verdict *a, const struct verdict *b)
{
	return a->words.bytes && b->words.bytes && strcmp(a->words.bytes, b->words.bytes) == 0;
}

/* Of this system, and of those behind it of which the same can be said where that makes one sentence of several. */
static void write_sentence(FILE *out, const struct psd_report *report, unsigned s, const struct psd_result *largest[],
			   const struct verdict verdicts[])
{
	const bool has_parts = report->n_systems <= MOST_SENTENCES_WITH_PARTS;
	struct psd_text sentence = {.bytes = NULL};
	double least = verdicts[s].ratio, most = verdicts[s].ratio;
	char point[64];

	psd_text_add(&sentence, "%s", largest[s]->system->name);
	for (unsigned i = s + 1; i < report->n_systems && !has_parts; i++) {
		if (!is_same(&verdicts[i], &verdicts[s]))
			continue;
		psd_text_add(&sentence, ", %s", largest[i]->system->name);
		least = fmin(least, verdicts[i].ratio);
		most = fmax(most, verdicts[i].ratio);
	}
	psd_text_add(&sentence, " at %s: %s ", psd_result_point_name(&largest[s]->point, point, sizeof(point)),
		     verdicts[s].words.bytes ? verdicts[s].words.bytes : "");
	if (rint(100.0 * least) < rint(100.0 * most))
		psd_text_add(&sentence, "%.0f to ", 100.0 * least);
	psd_text_add(&sentence, "%.0f %%", 100.0 * most);
	if (has_parts)
		add_parts(&sentence, report->costed->scenario, largest[s]);
	psd_text_add(&sentence, ".");
	psd_sentence_write(out, &sentence, 2);
}

/* Whether an earlier system's sentence has said it. */
static bool is_said(const struct psd_report *report, unsigned s, const struct verdict verdicts[])
{
	for (unsigned i = 0; i < s && report->n_systems > MOST_SENTENCES_WITH_PARTS; i++)
		if (is_same(&verdicts[i], &verdicts[s]))
			return true;
	return false;
}

void psd_output_bottlenecks(FILE *out, const struct psd_report *report)
{
	const struct psd_result *largest[PSD_MAX_SYSTEMS];
	struct verdict verdicts[PSD_MAX_SYSTEMS] = {{{NULL, 0, 0, false}, 0.0}};

	find_bounds(report, largest, verdicts);
	for (unsigned s = 0; s < report->n_systems; s++)
		if (!is_said(report, s, verdicts))
			write_sentence(out, report, s, largest, verdicts);
	for (unsigned s = 0; s < report->n_systems; s++)
		psd_text_release(&verdicts[s].words);
}
