/* One case of a scenario: a system at a point of the sweep, with everything an executor needs: layout, plan, program.
 */
#ifndef PSD_CASE_H
#define PSD_CASE_H

#include "engine/base/error.h"
#include "engine/cost/costs.h"
#include "engine/model/graph.h"
#include "engine/program/plan.h"
#include "engine/program/program.h"
#include "engine/scenario/scenario.h"

/* Model and costs of a scenario, which all its cases share. */
struct psd_costed_model {
	const struct psd_scenario *scenario; /* scenario of all cases, borrowed */
	struct psd_graph graph;
	struct psd_costs costs;
	struct psd_costs *own_costs; /* costs of systems with a workload of their own, empty for others */
};

/* Costs of the system's layers, borrowed. system: one of the scenario's. Pure, any thread. */
const struct psd_costs *psd_costed_model_costs(const struct psd_costed_model *costed, const struct psd_system *system);

/* Loads the graph and the costs that the scenario and its systems name. *costed is filled on success, released by
 * psd_costed_model_release(). */
enum psd_status psd_costed_model_load(struct psd_costed_model *costed, const struct psd_scenario *scenario,
				      struct psd_error *err) PSD_MUST_CHECK;
void psd_costed_model_release(struct psd_costed_model *costed);
/* Sets whether the device that really computes has its own memory, whatever device the costs are for. Affects later
 * cases. */
void psd_costed_model_compute_on(struct psd_costed_model *costed, bool has_own_memory);

struct psd_case {
	const struct psd_costed_model *costed; /* model and costs, borrowed for the life of the case */
	const struct psd_system *system;
	struct psd_point point;
	struct psd_plan plan;
	struct psd_program program;
};

/* Makes the plan and program of one case. The address of *made must not change afterwards: the program points into it.
 * PSD_ENOMEM; PSD_EINVAL: the system cannot run at that point. */
enum psd_status psd_case_make(struct psd_case *made, const struct psd_costed_model *costed,
			      const struct psd_system *system, struct psd_point point,
			      struct psd_error *err) PSD_MUST_CHECK;
void psd_case_release(struct psd_case *made);

#endif
