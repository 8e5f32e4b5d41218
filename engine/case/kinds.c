/* Division of samples among groups of nodes. A node is the smallest part: its workers have equal batches. */
#include "engine/case/kinds.h"

#include <math.h>
#include <stdlib.h>

#include "engine/cost/cost.h"
#include "engine/document/document.h"

enum { KNOWN_BATCHES = 32, FIRST_GUESSES = 4, MOST_WEIGHT = PSD_MAX_WORKERS_PER_NODE };

/* Nodes of a group at a point, and the samples that each worker on them has. */
struct share {
	const struct psd_node_group *group;
	struct psd_workload workload;
	unsigned nodes;
	unsigned workers; /* number of workers on each of these nodes */
	unsigned weight;  /* the same, divided by the greatest common divisor of all groups' numbers */
	/* sum of the batches over the group's nodes, one worker of each; the first `samples` % `nodes` nodes have one
	 * sample more than the others */
	uint64_t samples;
	bool is_linear; /* seconds are in proportion to the batch */
	struct {
		uint32_t batch;
		double sec;
	} known[KNOWN_BATCHES];
	unsigned n_known; /* number of batches whose seconds were computed so far */
};

struct split {
	const struct psd_graph *graph;
	struct psd_place at;
	struct share shares[PSD_MAX_GROUPS];
	unsigned n;
	enum psd_status status;
	struct psd_error *err;
};

/* ---- seconds ---- */

static double computed_sec(struct split *split, const struct share *share, uint32_t batch)
{
	struct psd_workload workload = share->workload;
	struct psd_costs costs;

	workload.batch_per_worker = batch;
	if (split->status == PSD_OK)
		split->status = psd_workload_costs(&costs, split->graph, &workload, split->at, split->err);
	if (split->status)
		return 1.0;
	const double sec = costs.compute_sec / share->group->speed_ratio;
	psd_costs_release(&costs);
	return sec;
}

/* Returns the seconds of a worker's layers for a batch >= 1. */
static double batch_sec(struct split *split, struct share *share, uint64_t batch)
{
	const uint32_t asked = share->is_linear ? 1 : (uint32_t)batch;
	unsigned k = 0;

	while (k < share->n_known && k < KNOWN_BATCHES && share->known[k].batch != asked)
		k++;
	if (k == share->n_known || k == KNOWN_BATCHES) {
		k = share->n_known++ % KNOWN_BATCHES;
		share->known[k].batch = asked;
		share->known[k].sec = computed_sec(split, share, asked);
	}
	return share->is_linear ? (double)batch * share->known[k].sec : share->known[k].sec;
}

/* Seconds of the slowest worker, and of the slowest one if the group gets n more samples. */
static double slowest_sec(struct split *split, struct share *share)
{
	return batch_sec(split, share, (share->samples + share->nodes - 1) / share->nodes);
}

static double more_sec(struct split *split, struct share *share, unsigned n)
{
	return batch_sec(split, share, (share->samples + n + share->nodes - 1) / share->nodes);
}

static double next_sec(struct split *split, struct share *share)
{
	return more_sec(split, share, 1);
}

static unsigned common_divisor(unsigned a, unsigned b)
{
	return b == 0 ? a : common_divisor(b, a % b);
}

/* ---- division by speed ---- */

/* Divides in proportion to the speeds at the present batches. */
static uint64_t guess(struct split *split, uint64_t all)
{
	double rates[PSD_MAX_GROUPS], sum = 0.0;
	uint64_t given = 0;

	for (unsigned s = 0; s < split->n; s++) {
		const uint64_t batch = split->shares[s].samples / split->shares[s].nodes;

		rates[s] = split->shares[s].nodes * (double)batch / batch_sec(split, &split->shares[s], batch);
		sum += split->shares[s].weight * rates[s];
	}
	for (unsigned s = 0; s < split->n; s++) {
		struct share *share = &split->shares[s];

		share->samples = (uint64_t)fmax(share->nodes, floor((double)all * rates[s] / sum));
		given += share->weight * share->samples;
	}
	return given;
}

/* Returns the group whose worker is the fastest with one more sample, among those whose bit is set. */
static unsigned most_patient(struct split *split, uint32_t of)
{
	unsigned best = split->n;

	for (unsigned s = 0; s < split->n; s++)
		if (of >> s & 1 &&
		    (best == split->n || next_sec(split, &split->shares[s]) < next_sec(split, &split->shares[best])))
			best = s;
	return best;
}

/* Returns the group whose worker is the slowest, among those that can give samples away; n: none can. */
static unsigned slowest(struct split *split)
{
	unsigned worst = split->n;

	for (unsigned s = 0; s < split->n; s++)
		if (split->shares[s].samples > split->shares[s].nodes &&
		    (worst == split->n ||
		     slowest_sec(split, &split->shares[s]) > slowest_sec(split, &split->shares[worst])))
			worst = s;
	return worst;
}

/* A sample of each worker of a node weighs as much as the node has workers. is_sum: entry v is true if v is a sum of
 * weights. Larger values are sums, too: weights have no common divisor. */
static void find_sums(const struct split *split, bool is_sum[static MOST_WEIGHT * MOST_WEIGHT])
{
	is_sum[0] = true;
	for (unsigned v = 1; v < MOST_WEIGHT * MOST_WEIGHT; v++) {
		is_sum[v] = false;
		for (unsigned s = 0; s < split->n; s++)
			is_sum[v] = is_sum[v] || (v >= split->shares[s].weight && is_sum[v - split->shares[s].weight]);
	}
}

/* Returns the bits of the groups that may get a sample so that the rest can be divided up. */
static uint32_t that_fit(const struct split *split, const bool is_sum[], uint64_t rest)
{
	uint32_t fit = 0;

	for (unsigned s = 0; s < split->n; s++) {
		const unsigned weight = split->shares[s].weight;

		if (rest >= weight && (rest - weight >= MOST_WEIGHT * MOST_WEIGHT || is_sum[rest - weight]))
			fit |= UINT32_C(1) << s;
	}
	return fit;
}

/* Gives and takes until all samples are divided. The even division is one, so that there always is a way. */
static void give_rest(struct split *split, uint64_t all, uint64_t given)
{
	bool is_sum[MOST_WEIGHT * MOST_WEIGHT];

	find_sums(split, is_sum);
	while (given != all && split->status == PSD_OK) {
		const uint32_t fit = given < all ? that_fit(split, is_sum, all - given) : 0;
		struct share *share = &split->shares[fit ? most_patient(split, fit) : slowest(split)];

		share->samples += fit ? 1 : -UINT64_C(1);
		given += fit ? share->weight : -(uint64_t)share->weight;
	}
}

/* Moves the fewest samples that weigh the same in both groups. False: the slowest worker would not become faster. */
static bool move_some(struct split *split, unsigned from, unsigned to)
{
	struct share *giver = &split->shares[from], *taker = &split->shares[to];
	const unsigned divisor = common_divisor(giver->weight, taker->weight);
	const unsigned n_given = taker->weight / divisor, n_taken = giver->weight / divisor;

	if (from == to || giver->samples < giver->nodes + n_given ||
	    more_sec(split, taker, n_taken) >= slowest_sec(split, giver))
		return false;
	giver->samples -= n_given;
	taker->samples += n_taken;
	return true;
}

/* Moves samples until the slowest worker cannot become faster by a move. Seconds rise with the batch, so that, where
 * nodes have equal numbers of workers, no division has a faster slowest worker than the last one. */
static void divide_by_speed(struct split *split, uint64_t all)
{
	uint64_t given = 0;
	bool has_moved = true;

	for (unsigned i = 0; i < FIRST_GUESSES; i++)
		given = guess(split, all);
	give_rest(split, all, given);
	while (has_moved && split->status == PSD_OK) {
		const unsigned from = slowest(split);

		has_moved = from < split->n && move_some(split, from, most_patient(split, UINT32_MAX));
	}
}

static void divide(struct split *split, const struct psd_system *system)
{
	uint64_t all = 0;

	for (unsigned s = 0; s < split->n; s++) {
		struct share *share = &split->shares[s];

		share->samples = (uint64_t)share->nodes * share->workload.batch_per_worker;
		all += share->weight * share->samples;
	}
	if (system->split != PSD_SPLIT_EVEN && split->n > 1)
		divide_by_speed(split, all);
}

/* ---- kinds ---- */

/* Returns the rate out of a node: its link may be faster than its software. */
static double send_bps(const struct psd_scenario *scenario, const struct psd_system *system, double link_bps)
{
	return fmin(psd_rates_make(&system->host, &scenario->network, link_bps, 0, 1.0).send_bps,
		    psd_cost_budget_bps(system));
}

static enum psd_status add_kind(struct psd_kinds *kinds, const struct psd_scenario *scenario, const struct split *split,
				const struct share *share, const struct psd_system *system,
				const struct psd_point *point, unsigned n_nodes, uint64_t batch, struct psd_error *err)
{
	const unsigned first = kinds->n > 0 ? kinds->nodes[kinds->n - 1].end_node : 0;
	const unsigned first_worker = kinds->n > 0 ? kinds->nodes[kinds->n - 1].end_worker : 0;
	const double bandwidth_bps = share->group->bandwidth_bps, latency_sec = share->group->latency_sec;
	struct psd_workload workload = share->workload;
	struct psd_plan_kind *kind = &kinds->plan[kinds->n];

	if (n_nodes == 0)
		return PSD_OK;
	workload.batch_per_worker = (uint32_t)batch;
	*kind = (struct psd_plan_kind){
		.batch = (uint32_t)batch,
		.system = psd_scenario_group_system(scenario, system, share->group),
		.speed_ratio = share->group->speed_ratio,
		.bandwidth_bps = bandwidth_bps > 0.0 ? bandwidth_bps : point->bandwidth_bps,
	};
	PSD_TRY(psd_workload_costs(&kind->costs, split->graph, &workload, split->at, err));
	kinds->nodes[kinds->n++] = (struct psd_kind_of_nodes){
		.end_node = first + n_nodes,
		.end_worker = first_worker + n_nodes * share->workers,
		.workers = share->workers,
		.group = (unsigned)(share->group - scenario->groups),
		.more_latency_sec = latency_sec > 0.0 ? latency_sec - scenario->network.latency_sec : 0.0,
		.link_ratio = send_bps(scenario, &kind->system, kind->bandwidth_bps) /
			      send_bps(scenario, system, point->bandwidth_bps),
	};
	return PSD_OK;
}

static enum psd_status add_all(struct psd_kinds *kinds, const struct psd_scenario *scenario, const struct split *split,
			       const struct psd_system *system, const struct psd_point *point, struct psd_error *err)
{
	for (unsigned s = 0; s < split->n; s++) {
		const struct share *share = &split->shares[s];
		const unsigned n_more = (unsigned)(share->samples % share->nodes);
		const uint64_t batch = share->samples / share->nodes;

		PSD_TRY(add_kind(kinds, scenario, split, share, system, point, n_more, batch + 1, err));
		PSD_TRY(add_kind(kinds, scenario, split, share, system, point, share->nodes - n_more, batch, err));
	}
	return PSD_OK;
}

/* Fills the shares of all nodes. Returns the number of nodes that no group has. */
static unsigned open_split(struct split *split, const struct psd_scenario *scenario, const struct psd_system *system,
			   const struct psd_point *point)
{
	const bool is_whole = point->workers == psd_scenario_workers(scenario, point->nodes);
	unsigned left = point->nodes, divisor = 0;

	for (unsigned g = 0; g < scenario->n_groups && left > 0; g++) {
		const struct psd_node_group *group = &scenario->groups[g];
		const unsigned own = psd_scenario_group_workers(scenario, group);
		struct share *share = &split->shares[split->n++];

		*share = (struct share){
			.group = group,
			.workload = psd_scenario_group_workload(scenario, system, group),
			.nodes = group->nodes < left ? group->nodes : left,
			.workers = is_whole ? own : point->workers_per_node,
		};
		share->is_linear = share->workload.profile_path || share->workload.samples_per_sec > 0.0 ||
				   share->workload.mfu_ratio > 0.0;
		left -= share->nodes;
		divisor = common_divisor(share->workers, divisor);
	}
	for (unsigned s = 0; s < split->n; s++)
		split->shares[s].weight = split->shares[s].workers / divisor;
	return left;
}

static void take_measured(struct split *split, const double *sample_sec)
{
	for (unsigned s = 0; s < split->n; s++) {
		struct share *share = &split->shares[s];

		share->is_linear = true;
		share->known[0].batch = 1;
		share->known[0].sec = sample_sec[s];
		share->n_known = 1;
	}
}

enum psd_status psd_kinds_make(struct psd_kinds *kinds, const struct psd_scenario *scenario,
			       const struct psd_graph *graph, const struct psd_system *system,
			       const struct psd_point *point, const double *sample_sec, struct psd_error *err)
{
	const struct psd_node *groups = psd_node_child(psd_node_child(scenario->root, "cluster"), "groups");
	struct split split = {.graph = graph, .at = groups ? groups->at : PSD_NOWHERE, .err = err};
	struct psd_kinds made = {.n = 0};

	*kinds = made;
	if (scenario->n_groups == 0)
		return PSD_OK;
	if (open_split(&split, scenario, system, point) > 0)
		return psd_error_set(err, PSD_EINVAL, split.at,
				     "'groups' have %u nodes, must have the %u of the cluster", scenario->nodes,
				     point->nodes);
	if (system->split == PSD_SPLIT_MEASURED && sample_sec)
		take_measured(&split, sample_sec);
	divide(&split, system);
	PSD_TRY(split.status);
	made.nodes = calloc(2 * split.n, sizeof(*made.nodes));
	made.plan = calloc(2 * split.n, sizeof(*made.plan));
	const enum psd_status status =
		made.nodes && made.plan ? add_all(&made, scenario, &split, system, point, err)
					: psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for groups");
	if (status)
		psd_kinds_release(&made);
	else
		*kinds = made;
	return status;
}

void psd_kinds_release(struct psd_kinds *kinds)
{
	for (unsigned k = 0; k < kinds->n; k++)
		psd_costs_release(&kinds->plan[k].costs);
	free(kinds->plan);
	free(kinds->nodes);
	*kinds = (struct psd_kinds){.n = 0};
}
