/* Finds the limit of each result, and says in one sentence, with figures, which resource bounds each system at its
 * largest point. */
#include <math.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/case/case.h"
#include "engine/cost/prices.h"
#include "engine/program/jitter.h"
#include "sim/output/grid.h"
#include "sim/output/output.h"

static const char *const resource_names[PSD_RESOURCES] = {"the device", "the copy out of the device",
							  "the copy into the device", "the server CPU", ""};

/* A resource bounds a system if it is busy for more than this share of the iteration. Stages that follow each other
 * divide the iteration; there more than half of it is enough. */
static const double bound_ratio = 0.8;
static const double sequential_bound_ratio = 0.5;
/* The device and one other resource bound a system in turn if together they take this share of the iteration. */
static const double in_turn_ratio = 0.9;
/* A wait of the device up to this share of the iteration bounds nothing. */
static const double hidden_ratio = 0.1;
/* A sentence does not mention parts of an iteration up to this share of it. */
static const double worth_words_ratio = 0.02;

enum { MOST_SENTENCES_WITH_PARTS = 6 }; /* with more systems, parts are in the table only */

static int busiest(const struct psd_outcome *outcome)
{
	int most = 0;

	for (int r = 1; r < PSD_RESOURCES; r++)
		if (outcome->busy_sec[r] > outcome->busy_sec[most])
			most = r;
	return most;
}

/* Tells whether the device and one resource, waiting for each other, take the whole iteration. */
static bool is_in_turn(const struct psd_outcome *outcome, int *other)
{
	*other = -1;
	for (int r = 0; r < PSD_RESOURCES; r++)
		if (r != PSD_RESOURCE_DEVICE && (*other < 0 || outcome->busy_sec[r] > outcome->busy_sec[*other]))
			*other = r;
	return outcome->busy_sec[PSD_RESOURCE_DEVICE] + outcome->busy_sec[*other] >=
	       in_turn_ratio * outcome->iteration_sec;
}

/* Part of the path between workers that is slower than a node's link: the links inside a node, the cores of a machine,
 * the software stack, the system's budget or the uplinks of racks. */
struct narrow {
	double stack_bps; /* rate of the stack, bits per second; 0: not below the link's, or a share of the link's */
	double link_bps;
	double reached_ratio;	 /* share of the link's rate that the stack reaches; 0: all, or a rate of its own */
	const char *reached_key; /* key that has this share */
	bool is_incast;		 /* the stack's rate holds for many senders only */
	bool is_budget;		 /* the budget's rate is no higher than the stack's, and counts in its place */
	bool is_local;		 /* links inside nodes take longer than all between nodes */
	bool is_of_host;	 /* the host's costs bound the links inside nodes, not the network's */
	bool has_uplinks;
	bool has_cores;
};

/* Seconds of all transfers of an iteration, one after the other. */
static double transfers_sec(const struct psd_case *made, const struct psd_layout *layout, const struct psd_rates *rates)
{
	struct psd_prices prices = {NULL, 0, 0};
	double sec = 0.0;

	for (uint32_t i = 0; i < made->program.n_ops; i++) {
		const struct psd_op *op = &made->program.ops[i];
		const struct psd_price *price =
			psd_op_moves(op) ? psd_prices_of(&prices, &op->payload, layout, rates) : NULL;

		sec += price ? price->transfer_sec + price->delay_sec : 0.0;
	}
	psd_prices_release(&prices);
	return sec;
}

/* Tells whether transfers take longer than they would if one switch connected all nodes. Uplinks that lengthen them by
 * no more than the part of an iteration that is worth words are not named; the limit is chosen, not measured. */
static bool has_slow_uplinks(const struct psd_case *made)
{
	const struct psd_rates *rates = &made->plan.rates;
	struct psd_layout flat = made->plan.layout;

	flat.nodes_per_rack = 0;
	return made->plan.layout.nodes_per_rack > 0 &&
	       transfers_sec(made, &made->plan.layout, rates) >
		       (1.0 + worth_words_ratio) * transfers_sec(made, &flat, rates);
}

/* Tells whether transfers would take longer with no links but those inside nodes than with no links but those between
 * nodes. Equal ones count as those between nodes, with the limit above. */
static bool has_slow_local_links(const struct psd_case *made)
{
	struct psd_rates near = made->plan.rates, far = made->plan.rates;

	near.send_bps = near.receive_bps = near.link_bps = near.uplink_bps = PSD_UNLIMITED_BPS;
	far.local_bps = far.between_bps = PSD_UNLIMITED_BPS;
	return made->plan.layout.workers_per_node > 1 && isfinite(made->plan.rates.local_bps) &&
	       transfers_sec(made, &made->plan.layout, &near) >
		       (1.0 + worth_words_ratio) * transfers_sec(made, &made->plan.layout, &far);
}

/* Tells whether the bytes of an iteration need more time on the cores that serve a node's sockets, one for each worker
 * at most, than on its way out or in. */
static bool fill_cores(const struct psd_machine *machine, const struct psd_result *result, double way_bps)
{
	const unsigned nodes = result->point.nodes;
	const unsigned n_together = machine->nodes > 0 && machine->nodes < nodes ? machine->nodes : nodes;
	const double cores = fmin(result->point.workers_per_node, (double)machine->cores / n_together);
	const double sent_bytes = (double)result->outcome.sent_bytes_per_node;
	const double received_bytes = (double)result->outcome.received_bytes_per_node;

	return machine->bytes_bps > 0.0 && (sent_bytes + received_bytes) / (cores * machine->bytes_bps) >
						   fmax(sent_bytes, received_bytes) / way_bps;
}

/* Sets the share of the link's rate that the stack reaches, if that is its rate: a faster link helps in proportion. */
static void set_reached(struct narrow *narrow, const struct psd_host_costs *host, double link_bps, double rate_bps)
{
	const bool is_share = rate_bps == link_bps * host->share_ratio;

	if (rate_bps >= link_bps || (!is_share && rate_bps != link_bps * host->streams_ratio))
		return;
	narrow->reached_ratio = is_share ? host->share_ratio : host->streams_ratio;
	narrow->reached_key = is_share ? "host.share" : "host.streams";
}

/* Tells whether all workers and servers are on one node. */
static bool is_alone(const struct psd_result *result)
{
	return result->point.nodes == 1 && result->system->servers == 0;
}

static struct narrow narrow_of(const struct psd_costed_model *costed, const struct psd_result *result)
{
	const struct psd_host_costs *host = &result->system->host;
	const double link_bps = result->point.bandwidth_bps * costed->scenario->network.payload_ratio;
	const enum psd_topology topology = costed->scenario->network.topology;
	const bool has_racks = topology == PSD_TOPOLOGY_RACKS || topology == PSD_TOPOLOGY_FAT_TREE;
	const bool has_local = costed->scenario->network.local_bps > 0.0 || result->system->host.local_bps > 0.0;
	const double budget_bps = psd_cost_budget_bps(result->system);
	struct narrow narrow = {.link_bps = result->point.bandwidth_bps};
	struct psd_case made;
	struct psd_error err;

	narrow.has_cores = fill_cores(&costed->scenario->machine, result, link_bps > 0.0 ? link_bps : INFINITY);
	if (link_bps == 0.0 ||
	    (host->transport_bps == 0.0 && (host->share_ratio == 0.0 || host->share_ratio == 1.0) &&
	     isinf(budget_bps) && !has_racks && !has_local) ||
	    psd_case_make(&made, costed, result->system, result->point, &err))
		return narrow;
	narrow.is_local = has_slow_local_links(&made);
	narrow.is_of_host = made.plan.rates.local_bps == host->local_bps;
	narrow.has_uplinks = has_slow_uplinks(&made);
	narrow.is_incast = made.plan.rates.receive_bps < made.plan.rates.send_bps;
	set_reached(&narrow, host, link_bps, made.plan.rates.receive_bps);
	if (made.plan.rates.receive_bps < link_bps)
		narrow.has_cores = fill_cores(&costed->scenario->machine, result, made.plan.rates.receive_bps);
	if (made.plan.rates.receive_bps < link_bps && narrow.reached_ratio == 0.0)
		narrow.stack_bps = made.plan.rates.receive_bps;
	narrow.is_budget = narrow.stack_bps > 0.0 && narrow.stack_bps == budget_bps;
	psd_case_release(&made);
	return narrow;
}

/* ---- slower nodes ---- */

/* The node, or the group of nodes, that slows the run down most, by slow devices or a slow link; its ratio is 1 if
 * there is none. */
struct slow {
	bool is_group; /* else a node */
	unsigned number;
	double ratio;
};

/* Groups whose devices compute less long than others by this ratio count as equal. */
static const double equal_groups_ratio = 0.95;

/* The group that computes longest. Its ratio is the seconds of the group that computes least long, divided by its. */
static struct slow slowest_group(const struct psd_costed_model *costed, const struct psd_result *result)
{
	struct slow slow = {true, 0, 1.0};
	double least_sec = INFINITY, most_sec = 0.0;
	struct psd_kinds kinds;
	struct psd_error err;

	if (psd_kinds_make(&kinds, costed->scenario, &costed->graph, result->system, &result->point, NULL, &err))
		return slow;
	for (unsigned k = 0; k < kinds.n; k++) {
		const double sec = kinds.plan[k].costs.compute_sec / kinds.plan[k].speed_ratio;

		least_sec = fmin(least_sec, sec);
		if (sec > most_sec)
			slow.number = kinds.nodes[k].group;
		most_sec = fmax(most_sec, sec);
	}
	if (least_sec < equal_groups_ratio * most_sec)
		slow.ratio = least_sec / most_sec;
	psd_kinds_release(&kinds);
	return slow;
}

static double group_bps(const struct psd_scenario *scenario, const struct psd_result *result, unsigned group)
{
	const double own_bps = scenario->groups[group].bandwidth_bps;

	return own_bps > 0.0 ? own_bps : result->point.bandwidth_bps;
}

/* The group with the slowest link, if that is slower than those of other groups, and than the stack and the budget. */
static struct slow slowest_link(const struct psd_costed_model *costed, const struct psd_result *result)
{
	const struct psd_scenario *scenario = costed->scenario;
	struct slow slow = {true, 0, 1.0};
	struct narrow narrow;
	double most_bps = 0.0;

	if (scenario->n_groups == 0)
		return slow;
	for (unsigned g = 0; g < scenario->n_groups; g++)
		most_bps = fmax(most_bps, group_bps(scenario, result, g));
	narrow = narrow_of(costed, result);
	if (narrow.stack_bps > 0.0)
		most_bps = fmin(most_bps, narrow.stack_bps / scenario->network.payload_ratio);
	for (unsigned g = 0; g < scenario->n_groups; g++)
		if (group_bps(scenario, result, g) < slow.ratio * most_bps)
			slow = (struct slow){true, g, group_bps(scenario, result, g) / most_bps};
	return slow;
}

static struct slow slowest(const struct psd_report *report, const struct psd_result *result, bool is_link)
{
	const struct psd_scenario *scenario = psd_report_costed(report, result)->scenario;
	const double until_sec = result->outcome.iteration_sec * result->outcome.n_iterations;
	struct slow slow = {false, 0, 1.0};

	/* nobody waits for a slow node, and nothing passes the link of the only one */
	if (is_link ? is_alone(result) : result->system->is_async && !result->outcome.is_at_bound)
		return slow;
	for (unsigned i = 0; i < scenario->n_slowdowns && !report->is_estimate && !result->outcome.is_estimate; i++) {
		const struct psd_slowdown *slowdown = &scenario->slowdowns[i];
		const double ratio = is_link ? slowdown->link_ratio : slowdown->compute_ratio;

		if (slowdown->node < result->point.nodes && slowdown->from_sec < until_sec && ratio < slow.ratio)
			slow = (struct slow){false, slowdown->node, ratio};
	}
	if (slow.ratio < 1.0)
		return slow;
	return is_link ? slowest_link(psd_report_costed(report, result), result)
		       : slowest_group(psd_report_costed(report, result), result);
}

/* ---- words ---- */

/* Adds the network as the resource that bounds a system, and the processor cores if they bound the messages. */
static void add_network(struct psd_text *sentence, const struct psd_report *report, const struct psd_result *result)
{
	const struct psd_machine *machine = &psd_report_costed(report, result)->scenario->machine;
	const struct narrow narrow = narrow_of(psd_report_costed(report, result), result);
	const struct slow slow = slowest(report, result, true);
	char rate[PSD_UNITS_TEXT_MAX], link[PSD_UNITS_TEXT_MAX];

	if (slow.ratio < 1.0 && slow.is_group)
		psd_text_add(
			sentence, "the link of group %u, which has %s", slow.number,
			psd_units_write_rate(
				group_bps(psd_report_costed(report, result)->scenario, result, slow.number), link));
	else if (slow.ratio < 1.0)
		psd_text_add(sentence, "the link of node %u, at %.3g %% of its rate", slow.number, 100.0 * slow.ratio);
	else if (narrow.has_cores)
		psd_text_add(sentence, "the cores that move its bytes (machine.bytes)");
	else if (narrow.is_local)
		psd_text_add(sentence, "the links inside a node (%s)",
			     narrow.is_of_host ? "host.local" : "cluster.local");
	else if (is_alone(result))
		psd_text_add(sentence, "the software stack inside the node");
	else if (narrow.has_uplinks)
		psd_text_add(sentence, "the uplinks of the racks (network.oversubscription)");
	else if (narrow.is_budget)
		psd_text_add(sentence, "the system's budget of %s, where the link has %s (systems.budget)",
			     psd_units_write_rate(result->system->budget_bps, rate),
			     psd_units_write_rate(narrow.link_bps, link));
	else if (narrow.stack_bps > 0.0)
		psd_text_add(sentence, "the software stack, which %s %s%s where the link has %s (%s)",
			     narrow.is_incast ? "receives" : "moves", psd_units_write_rate(narrow.stack_bps, rate),
			     narrow.is_incast ? " from many senders at once" : "",
			     psd_units_write_rate(narrow.link_bps, link),
			     narrow.is_incast ? "host.incast" : "host.transport");
	else if (narrow.reached_ratio > 0.0)
		psd_text_add(sentence, "the network, of whose %s the software stack reaches %.3g %% (%s)",
			     psd_units_write_rate(narrow.link_bps, link), 100.0 * narrow.reached_ratio,
			     narrow.reached_key);
	else
		psd_text_add(sentence, "the network%s",
			     machine->bytes_bps > 0.0 || machine->message_sec > 0.0 ? " with the cores that serve it"
										    : "");
}

static void add_resource(struct psd_text *sentence, const struct psd_report *report, const struct psd_result *result,
			 int resource)
{
	const struct slow slow = slowest(report, result, false);

	if (resource == PSD_RESOURCE_NIC)
		add_network(sentence, report, result);
	else
		psd_text_add(sentence, "%s", resource_names[resource]);
	if (resource != PSD_RESOURCE_DEVICE || slow.ratio == 1.0)
		return;
	if (slow.is_group)
		psd_text_add(sentence, " of group %u, which computes up to %.3g times as long as others", slow.number,
			     1.0 / slow.ratio);
	else
		psd_text_add(sentence, " of node %u, at %.3g %% of its speed", slow.number, 100.0 * slow.ratio);
}

/* Tells whether a machine has more workers and servers than cores. */
static bool shares_cores(const struct psd_scenario *scenario, const struct psd_result *result)
{
	const unsigned n_hosts = result->point.workers + result->system->servers;
	const unsigned n_of_machine = scenario->machine.nodes * result->point.workers_per_node;

	return scenario->machine.cores > 0 &&
	       (n_of_machine > 0 && n_of_machine < n_hosts ? n_of_machine : n_hosts) > scenario->machine.cores;
}

/* A property of a system that explains a part of an iteration. */
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

/* Adds to a sentence the times of forward and backward, then the other parts of the iteration that are large enough,
 * each with its causes. */
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
		 {{result->outcome.takes_factors, "factor rebuilds"},
		  {system->host.iteration_sec > 0.0, "the stack's end of an iteration"}}},
		{parts->exposed_comm_sec, "exposed communication", {{false, ""}}},
		{parts->other_waiting_sec,
		 "other waiting",
		 {{scenario->n_slowdowns > 0 || psd_jitter_is_drawn(scenario), "slow or uneven nodes"},
		  {shares_cores(scenario, result), "cores that others have"}}},
	};
	char sec[PSD_UNITS_TEXT_MAX];

	psd_text_add(sentence, " of an iteration of %s%s: %.0f %% forward and backward",
		     psd_units_write_seconds(iteration_sec, sec),
		     system->is_async && result->point.workers > 1 ? ", the mean over workers" : "",
		     100.0 * parts->compute_sec / iteration_sec);
	for (unsigned i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		if (told[i].sec < worth_words_ratio * iteration_sec)
			continue;
		psd_text_add(sentence, ", %.0f %% %s", 100.0 * told[i].sec / iteration_sec, told[i].words);
		add_causes(sentence, told[i].causes, 2);
	}
}

/* ---- limits ---- */

enum limit { LIMIT_DEVICE, LIMIT_OTHERS, LIMIT_RESOURCE, LIMIT_TURNS, LIMIT_WAITING };

/* Limit of a result: its kind, the resource that bounds the result, and the ratio of the iteration in which that
 * resource is busy. */
struct bound {
	enum limit limit;
	int resource;
	double ratio;
};

static struct bound bound_of(const struct psd_result *result)
{
	const struct psd_parts *parts = &result->outcome.parts;
	const double iteration_sec = result->outcome.iteration_sec;
	const double waiting_sec = parts->exposed_comm_sec + parts->other_waiting_sec;
	const int resource = busiest(&result->outcome);
	const double busy_ratio = fmin(1.0, result->outcome.busy_sec[resource] / iteration_sec);
	const bool is_sequential = result->system->schedule == PSD_SCHEDULE_SEQUENTIAL;
	int other;

	if (waiting_sec <= hidden_ratio * iteration_sec)
		return (struct bound){LIMIT_DEVICE, PSD_RESOURCE_DEVICE, 1.0 - waiting_sec / iteration_sec};
	if (parts->other_waiting_sec > parts->exposed_comm_sec)
		return (struct bound){LIMIT_OTHERS, resource, parts->other_waiting_sec / iteration_sec};
	if (resource != PSD_RESOURCE_DEVICE && busy_ratio >= (is_sequential ? sequential_bound_ratio : bound_ratio))
		return (struct bound){LIMIT_RESOURCE, resource, busy_ratio};
	if (is_in_turn(&result->outcome, &other))
		return (struct bound){LIMIT_TURNS, other, result->outcome.busy_sec[other] / iteration_sec};
	return (struct bound){LIMIT_WAITING, resource, busy_ratio};
}

/* The resource as a limit; of a slow node, or of the group that computes longest, its place. */
static struct psd_limit limit_of(const struct psd_report *report, const struct psd_result *result, int resource)
{
	static const enum psd_limit_kind kinds[PSD_RESOURCES] = {PSD_LIMIT_DEVICE, PSD_LIMIT_COPIES, PSD_LIMIT_COPIES,
								 PSD_LIMIT_SERVERS, PSD_LIMIT_LINK};
	const struct slow slow = slowest(report, result, resource == PSD_RESOURCE_NIC);
	const bool may_be_slow = resource == PSD_RESOURCE_NIC || resource == PSD_RESOURCE_DEVICE;
	struct psd_limit limit = {.kind = kinds[resource]};

	if (may_be_slow && slow.ratio < 1.0) {
		limit.has_place = true;
		limit.is_group = slow.is_group;
		limit.number = slow.number;
	} else if (resource == PSD_RESOURCE_NIC) {
		const struct narrow narrow = narrow_of(psd_report_costed(report, result), result);

		limit.kind = narrow.has_cores	    ? PSD_LIMIT_CORES
			     : narrow.is_local	    ? PSD_LIMIT_LOCAL
			     : is_alone(result)	    ? PSD_LIMIT_STACK
			     : narrow.has_uplinks   ? PSD_LIMIT_UPLINKS
			     : narrow.is_budget	    ? PSD_LIMIT_BUDGET
			     : narrow.stack_bps > 0 ? PSD_LIMIT_STACK
						    : PSD_LIMIT_LINK;
	}
	return limit;
}

/* Reasons to wait for others: a slower node, a slower link, cores, uneven iterations. */
static struct psd_limit limit_of_others(const struct psd_report *report, const struct psd_result *result)
{
	const struct psd_scenario *scenario = psd_report_costed(report, result)->scenario;

	if (slowest(report, result, false).ratio < 1.0)
		return limit_of(report, result, PSD_RESOURCE_DEVICE);
	if (slowest(report, result, true).ratio < 1.0)
		return limit_of(report, result, PSD_RESOURCE_NIC);
	return (struct psd_limit){.kind = shares_cores(scenario, result)  ? PSD_LIMIT_CORES
					  : psd_jitter_is_drawn(scenario) ? PSD_LIMIT_JITTER
									  : PSD_LIMIT_WAITING};
}

struct psd_limit psd_output_limit(const struct psd_report *report, const struct psd_result *result)
{
	const struct bound bound = bound_of(result);
	struct psd_limit limit = {.kind = PSD_LIMIT_WAITING};

	switch (bound.limit) {
	case LIMIT_DEVICE:
	case LIMIT_RESOURCE: return limit_of(report, result, bound.resource);
	case LIMIT_TURNS:
		limit = limit_of(report, result, bound.resource);
		limit.is_in_turn = true;
		break;
	case LIMIT_OTHERS: return limit_of_others(report, result);
	case LIMIT_WAITING: break;
	}
	return limit;
}

void psd_output_find_limits(struct psd_report *report)
{
	for (unsigned i = 0; i < report->n_systems * report->n_points; i++) {
		struct psd_result *result = &report->results[i];
		if (result->is_refused)
			continue;
		const struct psd_limit limit = psd_output_limit(report, result);

		psd_limit_write(&limit, result->limit, sizeof(result->limit));
	}
}

/* The resource that bounds a system at a point, in words, and its share of the iteration. */
struct verdict {
	struct psd_text words;
	double ratio;
};

static void find_bound(struct verdict *verdict, const struct psd_report *report, const struct psd_result *result)
{
	struct psd_text *words = &verdict->words;
	const struct bound bound = bound_of(result);

	verdict->ratio = bound.ratio;
	psd_text_add(words, "bound by ");
	switch (bound.limit) {
	case LIMIT_DEVICE:
	case LIMIT_RESOURCE:
		add_resource(words, report, result, bound.resource);
		psd_text_add(words, ", busy for");
		break;
	case LIMIT_OTHERS: psd_text_add(words, "waiting for others, which is"); break;
	case LIMIT_TURNS:
		psd_text_add(words, "turns of the device and ");
		add_resource(words, report, result, bound.resource);
		psd_text_add(words, "; the latter is busy for");
		break;
	case LIMIT_WAITING:
		psd_text_add(words, "waiting (latency, stages that cannot overlap); busiest is ");
		add_resource(words, report, result, bound.resource);
		psd_text_add(words, ", with");
		break;
	}
}

/* The fastest of the rows that differ from this one in the size of buckets alone. */
static const struct psd_result *best_buckets(const struct psd_result results[], unsigned n,
					     const struct psd_result *result)
{
	const struct psd_result *best = result;

	for (const struct psd_result *other = results; other < results + n; other++)
		if (!other->is_refused && other->point.workers == result->point.workers &&
		    other->point.bandwidth_bps == result->point.bandwidth_bps && other->swept == result->swept &&
		    other->outcome.iteration_sec < best->outcome.iteration_sec)
			best = other;
	return best;
}

/* Finds the verdict for each system at its largest point. */
static void find_bounds(const struct psd_report *report, const struct psd_result *largest[], struct verdict verdicts[])
{
	for (unsigned s = 0; s < report->n_systems; s++) {
		const struct psd_result *results = &report->results[s * report->n_points];

		largest[s] = NULL;
		for (unsigned p = 0; p < report->n_points; p++)
			if (!results[p].is_refused &&
			    (!largest[s] || results[p].point.workers >= largest[s]->point.workers))
				largest[s] = &results[p];
		if (!largest[s])
			continue;
		largest[s] = best_buckets(results, report->n_points, largest[s]);
		find_bound(&verdicts[s], report, largest[s]);
	}
}

static bool is_same(const struct verdict *a, const struct verdict *b)
{
	return a->words.bytes && b->words.bytes && strcmp(a->words.bytes, b->words.bytes) == 0;
}

/* Writes a sentence for this system and for later ones with the same verdict. */
static void write_sentence(FILE *out, const struct psd_report *report, unsigned s, const struct psd_result *largest[],
			   const struct verdict verdicts[])
{
	const bool has_parts = report->n_systems <= MOST_SENTENCES_WITH_PARTS;
	struct psd_text sentence = {.bytes = NULL};
	double least = verdicts[s].ratio, most = verdicts[s].ratio;
	const struct psd_scenario *scenario = psd_report_costed(report, largest[s])->scenario;
	char point[64], rate[PSD_UNITS_TEXT_MAX];

	psd_text_add(&sentence, "%s", largest[s]->system->name);
	for (unsigned i = s + 1; i < report->n_systems && !has_parts; i++) {
		if (!is_same(&verdicts[i], &verdicts[s]))
			continue;
		psd_text_add(&sentence, ", %s", largest[i]->system->name);
		least = fmin(least, verdicts[i].ratio);
		most = fmax(most, verdicts[i].ratio);
	}
	psd_text_add(&sentence, " at %s", psd_result_point_name(&largest[s]->point, point, sizeof(point)));
	if (scenario->n_sweep_bandwidths > 1)
		psd_text_add(&sentence, ", %s", psd_units_write_rate(largest[s]->point.bandwidth_bps, rate));
	if (has_parts && scenario->n_sweep_fuses > 1 && largest[s]->fuse_bytes.is_there)
		psd_text_add(&sentence, ", buckets of %s",
			     psd_units_write_bytes((uint64_t)largest[s]->fuse_bytes.value, rate));
	psd_result_add_swept(&sentence, largest[s]->swept);
	psd_text_add(&sentence, ": %s ", verdicts[s].words.bytes ? verdicts[s].words.bytes : "");
	if (rint(100.0 * least) < rint(100.0 * most))
		psd_text_add(&sentence, "%.0f to ", 100.0 * least);
	psd_text_add(&sentence, "%.0f %%", 100.0 * most);
	if (has_parts)
		add_parts(&sentence, scenario, largest[s]);
	psd_text_add(&sentence, ".");
	psd_sentence_write(out, &sentence, 2);
}

/* Tells whether the sentence of an earlier system is also about this system. */
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
		if (largest[s] && !is_said(report, s, verdicts))
			write_sentence(out, report, s, largest, verdicts);
	for (unsigned s = 0; s < report->n_systems; s++)
		psd_text_release(&verdicts[s].words);
}
