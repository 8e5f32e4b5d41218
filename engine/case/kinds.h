/* Kinds of worker nodes in a case: groups of the scenario, cut where workers of a group have different batches. This
 * module divides the samples of an iteration among them. */
#ifndef PSD_CASE_KINDS_H
#define PSD_CASE_KINDS_H

#include "engine/base/error.h"
#include "engine/collectives/layout.h"
#include "engine/cost/costs.h"
#include "engine/model/graph.h"
#include "engine/program/plan.h"
#include "engine/scenario/scenario.h"

/* Kinds of the nodes of a case, in the order of the nodes. */
struct psd_kinds {
	struct psd_kind_of_nodes *nodes; /* n entries */
	struct psd_plan_kind *plan;	 /* n entries, which own their layer times */
	unsigned n;			 /* 0: all nodes are of one kind */
};

/* Computes the layer times of a worker. at: place of the workload in the scenario, for errors. PSD_EFILE, PSD_EINVAL
 * with a place, PSD_ENOMEM. */
enum psd_status psd_workload_costs(struct psd_costs *costs, const struct psd_graph *graph,
				   const struct psd_workload *workload, struct psd_place at,
				   struct psd_error *err) PSD_MUST_CHECK;

/* Divides the samples among the first point->nodes nodes, and computes layer times and rates of links of each kind.
 * Nodes have the workers of their groups; if the point has another number of workers, each has
 * point->workers_per_node. sample_sec: measured seconds of a sample on each group, for PSD_SPLIT_MEASURED; NULL:
 * predicted ones are used. *kinds is filled on success and released by psd_kinds_release(); it has no kinds if the
 * scenario has no groups. Statuses as psd_workload_costs(). */
enum psd_status psd_kinds_make(struct psd_kinds *kinds, const struct psd_scenario *scenario,
			       const struct psd_graph *graph, const struct psd_system *system,
			       const struct psd_point *point, const double *sample_sec,
			       struct psd_error *err) PSD_MUST_CHECK;
void psd_kinds_release(struct psd_kinds *kinds);

#endif
