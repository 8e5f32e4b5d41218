/* One sentence for each system: what bounds it at its largest point, with figures. */
#include <math.h>

#include "engine/base/units.h"
#include "sim/output/grid.h"
#include "sim/output/output.h"

static const char *const resource_names[] = {"compute", "the copy out of the device", "the copy into the device",
					     "the server CPU", "the network"};

/* Above this share of the iteration a resource is what the system waits for; below, nothing is used up. Stages that
 * follow one another share the iteration: there the one that takes more than half of it is meant. */
static const double bound_ratio = 0.8;
static const double sequential_bound_ratio = 0.5;
/* Up to this share of an iteration exposed communication is not worth more words. */
static const double hidden_ratio = 0.1;
/* The same of what the device does besides forward and backward. */
static const double worth_words_ratio = 0.02;

static int busiest(const struct psd_outcome *outcome)
{
	int most = 0;

	for (int r = 1; r < PSD_RESOURCES; r++)
		if (outcome->busy_sec[r] > outcome->busy_sec[most])
			most = r;
	return most;
}

static double percent_of(double sec, double iteration_sec)
{
	return 100.0 * sec / iteration_sec;
}

/* Messages last as long as the cores that serve them are busy with them. */
static const char *name_of(const struct psd_machine *machine, int resource)
{
	const bool has_served = machine->bytes_bps > 0.0 || machine->message_sec > 0.0;

	return resource == PSD_RESOURCE_NIC && has_served ? "the network with the cores that serve it"
							  : resource_names[resource];
}

/* Whether the workers and servers of a machine are more than its cores. */
static bool shares_cores(const struct psd_scenario *scenario, const struct psd_result *result)
{
	const unsigned n_hosts = result->point.workers + result->system->servers;
	const unsigned n_of_machine = scenario->machine.nodes * result->point.workers_per_node;

	return scenario->machine.cores > 0 &&
	       (n_of_machine > 0 && n_of_machine < n_hosts ? n_of_machine : n_hosts) > scenario->machine.cores;
}

/* What may keep a device busy besides forward and backward, as far as this system has it. */
static void add_extras(struct psd_sentence *sentence, const struct psd_scenario *scenario,
		       const struct psd_result *result)
{
	const struct psd_system *system = result->system;
	const bool has_factors = system->sync != PSD_SYNC_PS && system->sync != PSD_SYNC_RING;
	const bool is_uneven = scenario->n_slowdowns > 0 || scenario->jitter_ratio > 0.0;
	const bool has_shared = shares_cores(scenario, result);
	const char *separator = " (";

	if (has_factors) {
		psd_sentence_add(sentence, "%sfactor rebuilds", separator);
		separator = ", ";
	}
	if (system->host.iteration_sec > 0.0) {
		psd_sentence_add(sentence, "%sthe stack's end of an iteration", separator);
		separator = ", ";
	}
	if (is_uneven) {
		psd_sentence_add(sentence, "%sslow or uneven nodes", separator);
		separator = ", ";
	}
	if (has_shared)
		psd_sentence_add(sentence, "%scores that others have", separator);
	if (has_factors || system->host.iteration_sec > 0.0 || is_uneven || has_shared)
		psd_sentence_add(sentence, ")");
}

static void add_device_bound(struct psd_sentence *sentence, const struct psd_scenario *scenario,
			     const struct psd_result *result)
{
	const struct psd_outcome *outcome = &result->outcome;
	const double iteration_sec = outcome->iteration_sec;
	const double other_sec = outcome->busy_sec[PSD_RESOURCE_DEVICE] - result->outcome.parts.compute_sec;
	char sec[PSD_UNITS_TEXT_MAX];

	psd_sentence_add(sentence, "bound by compute, the device is busy for %.0f %% of an iteration of %s",
			 fmin(100.0, percent_of(outcome->busy_sec[PSD_RESOURCE_DEVICE], iteration_sec)),
			 psd_units_write_seconds(iteration_sec, sec));
	if (other_sec < worth_words_ratio * iteration_sec)
		return;
	psd_sentence_add(sentence, ": %.0f %% forward and backward, %.0f %% other work",
			 percent_of(result->outcome.parts.compute_sec, iteration_sec),
			 percent_of(other_sec, iteration_sec));
	add_extras(sentence, scenario, result);
}

static void add_bound(struct psd_sentence *sentence, const struct psd_scenario *scenario,
		      const struct psd_result *result, int resource)
{
	const double iteration_sec = result->outcome.iteration_sec;
	char sec[PSD_UNITS_TEXT_MAX];

	psd_sentence_add(sentence, "bound by %s, busy for %.0f %% of an iteration of %s; compute is %.0f %%",
			 name_of(&scenario->machine, resource),
			 fmin(100.0, percent_of(result->outcome.busy_sec[resource], iteration_sec)),
			 psd_units_write_seconds(iteration_sec, sec),
			 percent_of(result->outcome.parts.compute_sec, iteration_sec));
}

static void add_waiting(struct psd_sentence *sentence, const struct psd_scenario *scenario,
			const struct psd_result *result, int resource)
{
	const struct psd_outcome *outcome = &result->outcome;
	char sec[PSD_UNITS_TEXT_MAX];

	psd_sentence_add(sentence,
			 "bound by waiting (latency, stages that cannot overlap): busiest in an iteration of %s is %s "
			 "with %.0f %%",
			 psd_units_write_seconds(outcome->iteration_sec, sec), name_of(&scenario->machine, resource),
			 percent_of(outcome->busy_sec[resource], outcome->iteration_sec));
	if (resource != PSD_RESOURCE_DEVICE)
		psd_sentence_add(sentence, "; compute is %.0f %%",
				 percent_of(result->outcome.parts.compute_sec, outcome->iteration_sec));
	else
		psd_sentence_add(sentence, "; %.0f %% is exposed communication",
				 percent_of(result->outcome.parts.exposed_comm_sec, outcome->iteration_sec));
}

static void write_sentence(FILE *out, const struct psd_scenario *scenario, const struct psd_result *result)
{
	const int resource = busiest(&result->outcome);
	const double iteration_sec = result->outcome.iteration_sec;
	const double busy_ratio = result->outcome.busy_sec[resource] / iteration_sec;
	const bool is_sequential = result->system->schedule == PSD_SCHEDULE_SEQUENTIAL;
	const bool is_bound = busy_ratio >= (is_sequential ? sequential_bound_ratio : bound_ratio);
	struct psd_sentence sentence = {.length = 0};
	char point[64];

	psd_sentence_add(&sentence, "%s at %s: ", result->system->name,
			 psd_result_point_name(&result->point, point, sizeof(point)));
	if ((is_bound && resource == PSD_RESOURCE_DEVICE) ||
	    result->outcome.parts.exposed_comm_sec <= hidden_ratio * iteration_sec)
		add_device_bound(&sentence, scenario, result);
	else if (is_bound)
		add_bound(&sentence, scenario, result, resource);
	else
		add_waiting(&sentence, scenario, result, resource);
	psd_sentence_add(&sentence, ".");
	psd_sentence_write(out, &sentence, 2);
}

void psd_output_bottlenecks(FILE *out, const struct psd_report *report)
{
	for (unsigned s = 0; s < report->n_systems; s++) {
		const struct psd_result *results = &report->results[s * report->n_points];
		const struct psd_result *largest = results;

		for (unsigned p = 1; p < report->n_points; p++)
			if (results[p].point.workers >= largest->point.workers)
				largest = &results[p];
		write_sentence(out, report->matter->scenario, largest);
	}
}
