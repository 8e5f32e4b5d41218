/* A case: one system at one point of the scenario's sweep, with all that an executor needs: layout, plan and
 * program. */
#ifndef PSD_CASE_H
#define PSD_CASE_H

#include <stdbool.h>

#include "engine/base/error.h"
#include "engine/case/kinds.h"
#include "engine/cost/costs.h"
#include "engine/model/graph.h"
#include "engine/program/plan.h"
#include "engine/program/program.h"
#include "engine/scenario/scenario.h"

/* Model and layer times of a scenario, which all its cases share. */
struct psd_costed_model {
	const struct psd_scenario *scenario; /* the scenario, borrowed */
	struct psd_graph graph;
	struct psd_costs costs;
	/* Layer times of systems with a workload of their own, one entry per system; the other entries are empty. */
	struct psd_costs *own_costs;
	/* psd_costed_model_compute_on() was called, with `has_own_memory` */
	bool is_computing, has_own_memory;
	/* Seconds in which a worker of each group of nodes computes one sample, as measured for systems whose split is
	 * PSD_SPLIT_MEASURED; is_measured false: not measured, and predicted seconds take their place. */
	double sample_sec[PSD_MAX_GROUPS];
	bool is_measured;
	bool ignores_groups; /* nodes of all cases are of one kind, for measurements of this machine alone */
};

/* Returns the layer times of the system, borrowed. The system must be one of the scenario's. Pure, any thread. */
const struct psd_costs *psd_costed_model_costs(const struct psd_costed_model *costed, const struct psd_system *system);

/* Returns the seconds in which each of the system's workers at the point would compute one batch without any wait. With
 * groups of nodes, the samples of all batches are divided so that all workers end together, and the result is the time
 * until then. Pure, any thread. */
double psd_costed_model_compute_sec(const struct psd_costed_model *costed, const struct psd_system *system,
				    const struct psd_point *point);
/* Loads the model, and the layer times for the scenario and for systems with a workload of their own. *costed is
 * filled on success and released by psd_costed_model_release(). PSD_EFILE, PSD_EINVAL with a place, PSD_ENOMEM. */
enum psd_status psd_costed_model_load(struct psd_costed_model *costed, const struct psd_scenario *scenario,
				      struct psd_error *err) PSD_MUST_CHECK;
void psd_costed_model_release(struct psd_costed_model *costed);
/* Sets whether the device on which a real run computes has its own memory; it may be another device than that of the
 * layer times. It has an effect on cases that are made later. */
void psd_costed_model_compute_on(struct psd_costed_model *costed, bool has_own_memory);

struct psd_case {
	const struct psd_costed_model *costed; /* model and layer times, borrowed as long as the case exists */
	const struct psd_system *system;
	struct psd_point point;
	struct psd_kinds kinds; /* kinds of nodes, to which the plan points */
	/* layer times for which the plan is made if there are kinds of nodes: those of the first kind, borrowed. Their
	 * has_own_memory is true if devices of any kind of nodes have memory of their own. */
	struct psd_costs first_costs;
	struct psd_plan plan;
	struct psd_program program;
};

/* Makes the plan and program of one case. *made must not be moved in memory afterwards, because the program points
 * into it. PSD_ENOMEM; PSD_EINVAL: the system cannot be executed at that point. */
enum psd_status psd_case_make(struct psd_case *made, const struct psd_costed_model *costed,
			      const struct psd_system *system, struct psd_point point,
			      struct psd_error *err) PSD_MUST_CHECK;
/* Makes and releases the cases of all systems at the first and the last point of the sweep, for
 * psd_scenario_blame(). Statuses of psd_costed_model_load() and psd_case_make(). */
enum psd_status psd_case_check_all(const struct psd_scenario *scenario, struct psd_error *err) PSD_MUST_CHECK;
/* True if psd_case_move() can move the case to this model, system and point. They may differ from the case's in the
 * rate of a node's link, if neither buckets nor methods of the system depend on it. Pure. */
bool psd_case_reaches(const struct psd_case *made, const struct psd_costed_model *costed,
		      const struct psd_system *system, struct psd_point point);
/* psd_case_batch() returns the number of samples of a worker's micro-batch, psd_case_samples() the number of samples of
 * all workers in an iteration. Pure, any thread. */
uint32_t psd_case_batch(const struct psd_case *made, unsigned worker);
uint64_t psd_case_samples(const struct psd_case *made);
/* Returns the first of the workers with the largest batch. Pure, any thread. */
unsigned psd_case_largest(const struct psd_case *made);
/* Returns the memory that this worker's device needs, see footprint.h, bytes. Pure, any thread. */
uint64_t psd_case_memory_bytes(const struct psd_case *made);
/* Returns the sum of psd_case_batch() over all workers with smaller numbers. Pure, any thread. */
uint64_t psd_case_batches_before(const struct psd_case *made, unsigned worker);
/* Moves the case to a point that it reaches. The program stays as it is, and so do estimators of it. */
void psd_case_move(struct psd_case *made, struct psd_point point);
void psd_case_release(struct psd_case *made);

#endif
