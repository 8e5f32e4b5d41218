/* Choice of an item's method: the method that its system names, or the result of a rule. */
#ifndef PSD_CHOICE_H
#define PSD_CHOICE_H

#include "engine/program/plan.h"

/* Cost of synchronising an item by one of the plan's candidate methods, alone on the cluster. It is derived from the
 * method's operations, with one slice or with those that `pipeline` makes. */
struct psd_alternative {
	bool is_possible;    /* the method can synchronise such an item */
	uint64_t node_bytes; /* bytes sent plus received by the busiest node in an iteration that exchanges */
	double isolated_sec; /* seconds from the item's final gradient to its last operation's end, as the only item */
};

/* Fills in plan->candidates, the methods among which items choose; it must be empty. */
void psd_choice_candidates(struct psd_plan *plan);
/* True if the system may synchronise an item by factors. */
bool psd_choice_may_take_factors(const struct psd_system *system);
/* True if the system may sum an item by steps of an all-reduce. */
bool psd_choice_may_take_steps(const struct psd_system *system);
/* True if the method has buffers for the encoding in which the plan's values travel. */
bool psd_choice_takes_wire(const struct psd_plan *plan, const struct psd_method *method);
/* True if the system chooses a method for each item. */
bool psd_choice_is_open(const struct psd_system *system);

/* Method that the system names or, where it chooses, that its published rule selects by bytes. Pure. */
const struct psd_method *psd_choice_by_bytes(const struct psd_plan *plan, const struct psd_plan_item *item);
/* Computes the bytes and seconds of an item with each candidate. PSD_ENOMEM. */
enum psd_status psd_choice_weigh(struct psd_alternative alternatives[PSD_CANDIDATES], const struct psd_plan *plan,
				 const struct psd_plan_item *item, struct psd_error *err) PSD_MUST_CHECK;
/* Computes only the seconds with each candidate; bytes would be counted node by node. PSD_ENOMEM. */
enum psd_status psd_choice_weigh_seconds(struct psd_alternative alternatives[PSD_CANDIDATES],
					 const struct psd_plan *plan, const struct psd_plan_item *item,
					 struct psd_error *err) PSD_MUST_CHECK;
/* Index of the fastest candidate that the system may choose for the item; the earlier one of equals. */
unsigned psd_choice_by_seconds(const struct psd_alternative alternatives[PSD_CANDIDATES], const struct psd_plan *plan,
			       const struct psd_plan_item *item);
/* Chooses an item's method by the system's rule. PSD_ENOMEM. */
enum psd_status psd_choice_make(const struct psd_method **method, const struct psd_plan *plan,
				const struct psd_plan_item *item, struct psd_error *err) PSD_MUST_CHECK;
/* Chooses the method for the norms of chunks, a sparse plan's last item. PSD_ENOMEM. */
enum psd_status psd_choice_make_norms(const struct psd_method **method, const struct psd_plan *plan,
				      const struct psd_plan_item *norms, struct psd_error *err) PSD_MUST_CHECK;

#endif
