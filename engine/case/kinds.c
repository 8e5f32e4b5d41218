/* Division of samples among groups of nodes. A node is the smallest part: its workers have equal batches. */
#include "engine/case/kinds.h"

#include <math.h>
#include <stdlib.h>

#include "engine/cost/cost.h"
#include "engine/document/document.h"

enum { KNOWN_BATCHES = 32, FIRST_GUESSES = 4 };

/* Nodes of a group at a point, and the samples that each worker on them has. */
struct share {
	const struct psd_node_group *group;
	struct psd_workload workload;
	unsigned nodes;
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

/* Seconds of the slowest worker, and of the worker that would get one more sample. */
static double slowest_sec(struct split *split, struct share *share)
{
	return batch_sec(split, share, (share->samples + share->nodes - 1) / share->nodes);
}

static double next_sec(struct split *split, struct share *share)
{
	return batch_sec(split, share, share->samples / share->nodes + 1);
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
		sum += rates[s];
	}
	for (unsigned s = 0; s < split->n; s++) {
		struct share *share = &split->shares[s];

		share->samples = (uint64_t)fmax(share->nodes, floor((double)all * rates[s] / sum));
		given += share->samples;
	}
	return given;
}

static unsigned most_patient(struct split *split)
{
	unsigned best = 0;

	for (unsigned s = 1; s < split->n; s++)
		if (next_sec(split, &split->shares[s]) < next_sec(split, &split->shares[best]))
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

/* Moves single samples until the slowest worker cannot become faster. Seconds rise with the batch, so that no division
 * has a faster slowest worker than the last one. */
static void divide_by_speed(struct split *split, uint64_t all)
{
	uint64_t given = 0;

	for (unsigned i = 0; i < FIRST_GUESSES; i++)
		given = guess(split, all);
	for (; given < all && split->status == PSD_OK; given++)
		split->shares[most_patient(split)].samples++;
	for (; given > all && split->status == PSD_OK; given--)
		split->shares[slowest(split)].samples--;
	while (split->status == PSD_OK) {
		const unsigned from = slowest(split), to = most_patient(split);

		if (from == split->n || from == to ||
		    next_sec(split, &split->shares[to]) >= slowest_sec(split, &split->shares[from]))
			break;
		split->shares[from].samples--;
		split->shares[to].samples++;
	}
}

static void divide(struct split *split, const struct psd_system *system)
{
	uint64_t all = 0;

	for (unsigned s = 0; s < split->n; s++) {
		struct share *share = &split->shares[s];

		share->samples = (uint64_t)share->nodes * share->workload.batch_per_worker;
		all += share->samples;
	}
	if (system->split != PSD_SPLIT_EVEN && split->n > 1)
		divide_by_speed(split, all);
}

/* ---- kinds ---- */

/* Returns the rate out of a node: its link may be faster than its software. */
static double send_bps(const struct psd_scenario *scenario, const struct psd_system *system, double link_bps)
{
	return fmin(psd_rates_make(&system->host, &scenario->network, link_bps, 0, 1.0).send_bps,
		    psd_cost_budget_bps(system, &scenario->network));
}

static enum psd_status add_kind(struct psd_kinds *kinds, const struct psd_scenario *scenario, const struct split *split,
				const struct share *share, const struct psd_system *system,
				const struct psd_point *point, unsigned n_nodes, uint64_t batch, struct psd_error *err)
{
	const unsigned first = kinds->n > 0 ? kinds->nodes[kinds->n - 1].end_node : 0;
	const double bandwidth_bps = share->group->bandwidth_bps;
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
	unsigned left = point->nodes;

	for (unsigned g = 0; g < scenario->n_groups && left > 0; g++) {
		const struct psd_node_group *group = &scenario->groups[g];
		struct share *share = &split->shares[split->n++];

		*share = (struct share){
			.group = group,
			.workload = psd_scenario_group_workload(scenario, system, group),
			.nodes = group->nodes < left ? group->nodes : left,
		};
		share->is_linear = share->workload.profile_path || share->workload.samples_per_sec > 0.0 ||
				   share->workload.mfu_ratio > 0.0;
		left -= share->nodes;
	}
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
	enum psd_status status;

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
	status = made.nodes && made.plan ? add_all(&made, scenario, &split, system, point, err)
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
