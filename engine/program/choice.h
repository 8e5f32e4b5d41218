/* Which method an item gets: the one that its system names, or the choice of a rule. */
#ifndef PSD_CHOICE_H
#define PSD_CHOICE_H

#include "engine/program/plan.h"

/* What an item would take by one of the plan's candidates, alone on the cluster: derived from the operations that the
 * method unrolls to, in one slice or in those that `pipeline` makes. */
struct psd_alternative {
	bool is_possible;    /* the method takes such an item */
	uint64_t node_bytes; /* sent plus received by the busiest node in an iteration that exchanges */
	double isolated_sec; /* from the gradient being final to its last operation */
};

/* Fills in plan->candidates, of which there are none. */
void psd_choice_candidates(struct psd_plan *plan);
/* False: the system takes no item by its factors. */
bool psd_choice_may_take_factors(const struct psd_system *system);
/* False: the system sums no item step by step. */
bool psd_choice_may_take_steps(const struct psd_system *system);
/* False: the plan's values travel in an encoding that the method has no buffers for. */
bool psd_choice_takes_wire(const struct psd_plan *plan, const struct psd_method *method);
/* False: the system leaves no choice. */
bool psd_choice_is_open(const struct psd_system *system);

/* The method of the system or, where it chooses, of its published rule. Pure. */
const struct psd_method *psd_choice_by_bytes(const struct psd_plan *plan, const struct psd_plan_item *item);
/* PSD_ENOMEM. */
enum psd_status psd_choice_weigh(struct psd_alternative alternatives[PSD_CANDIDATES], const struct psd_plan *plan,
				 const struct psd_plan_item *item, struct psd_error *err) PSD_MUST_CHECK;
/* The same without their bytes, which have to be counted node by node. PSD_ENOMEM. */
enum psd_status psd_choice_weigh_seconds(struct psd_alternative alternatives[PSD_CANDIDATES],
					 const struct psd_plan *plan, const struct psd_plan_item *item,
					 struct psd_error *err) PSD_MUST_CHECK;
/* The candidate that is the fastest of those that an open system may take for the item; a tie keeps the earlier. */
unsigned psd_choice_by_seconds(const struct psd_alternative alternatives[PSD_CANDIDATES], const struct psd_plan *plan,
			       const struct psd_plan_item *item);
/* By the system's own rule. PSD_ENOMEM. */
enum psd_status psd_choice_make(const struct psd_method **method, const struct psd_plan *plan,
				const struct psd_plan_item *item, struct psd_error *err) PSD_MUST_CHECK;
/* The same for a sparse plan's last item. */
enum psd_status psd_choice_make_norms(const struct psd_method **method, const struct psd_plan *plan,
				      const struct psd_plan_item *norms, struct psd_error *err) PSD_MUST_CHECK;

#endif
