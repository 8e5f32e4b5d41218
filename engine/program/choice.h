/* Choice of an item's method: the method that its system names, or the result of a rule. */
#ifndef PSD_CHOICE_H
#define PSD_CHOICE_H

#include "engine/program/plan.h"

/* Cost of an item by one of the plan's candidates, alone on the cluster: derived from the method's operations, in one
 * slice or in those that `pipeline` makes. */
struct psd_alternative {
	bool is_possible;    /* the method takes such an item */
	uint64_t node_bytes; /* sent plus received by the busiest node in an iteration that exchanges */
	/* seconds from an item's final gradient to the end of its last operation, if no other item is synchronised */
	double isolated_sec;
};

/* Fills in plan->candidates, empty before. */
void psd_choice_candidates(struct psd_plan *plan);
/* The system may synchronise an item by factors. */
bool psd_choice_may_take_factors(const struct psd_system *system);
/* The system may sum an item by steps of an all-reduce. */
bool psd_choice_may_take_steps(const struct psd_system *system);
/* The method has buffers for the encoding in which the plan's values travel. */
bool psd_choice_takes_wire(const struct psd_plan *plan, const struct psd_method *method);
/* The system chooses methods item by item. */
bool psd_choice_is_open(const struct psd_system *system);

/* The method of the system or, where it chooses, of its published rule. Pure. */
const struct psd_method *psd_choice_by_bytes(const struct psd_plan *plan, const struct psd_plan_item *item);
/* PSD_ENOMEM. */
enum psd_status psd_choice_weigh(struct psd_alternative alternatives[PSD_CANDIDATES], const struct psd_plan *plan,
				 const struct psd_plan_item *item, struct psd_error *err) PSD_MUST_CHECK;
/* Like psd_choice_weigh(), without bytes, which are counted node by node. PSD_ENOMEM. */
enum psd_status psd_choice_weigh_seconds(struct psd_alternative alternatives[PSD_CANDIDATES],
					 const struct psd_plan *plan, const struct psd_plan_item *item,
					 struct psd_error *err) PSD_MUST_CHECK;
/* Position of the fastest candidate that the system may take for the item; the earlier one of equals. */
unsigned psd_choice_by_seconds(const struct psd_alternative alternatives[PSD_CANDIDATES], const struct psd_plan *plan,
			       const struct psd_plan_item *item);
/* Chooses by the system's rule. PSD_ENOMEM. */
enum psd_status psd_choice_make(const struct psd_method **method, const struct psd_plan *plan,
				const struct psd_plan_item *item, struct psd_error *err) PSD_MUST_CHECK;
/* The same for the norms, a sparse plan's last item. */
enum psd_status psd_choice_make_norms(const struct psd_method **method, const struct psd_plan *plan,
				      const struct psd_plan_item *norms, struct psd_error *err) PSD_MUST_CHECK;

#endif
