/* Choice of the method that synchronises an item (bucket): the method that its system names, or the result of a
 * rule. */
#ifndef PSD_CHOICE_H
#define PSD_CHOICE_H

#include "engine/program/plan.h"

/* Cost of synchronising an item by one of the plan's candidate methods, alone on the cluster. It is derived from the
 * method's operations, with one slice, or with the slices that the key `pipeline` asks for. */
struct psd_alternative {
	bool is_possible; /* the method can synchronise such an item */
	/* bytes sent plus received by the busiest node, in an iteration in which workers exchange */
	uint64_t node_bytes;
	/* seconds from the end of the item's gradient computation to the end of the item's last operation, if no other
	 * item is synchronised */
	double isolated_sec;
};

/* Fills plan->candidates, which must be empty, with the methods from which the plan chooses one for each item. */
void psd_choice_candidates(struct psd_plan *plan);
/* True if the system may synchronise some item by factors of linear layers' gradients. */
bool psd_choice_may_take_factors(const struct psd_system *system);
/* True if the system may synchronise some item by an all-reduce, step by step. */
bool psd_choice_may_take_steps(const struct psd_system *system);
/* True if the method can send values in the plan's encoding: it has buffers for encoded values, or the encoding is not
 * lossy. */
bool psd_choice_takes_wire(const struct psd_plan *plan, const struct psd_method *method);
/* True if the system lets psd choose a method for each item; false: it names one. */
bool psd_choice_is_open(const struct psd_system *system);

/* Returns the method that the system names. If it names none, returns the method that the system's published rule
 * selects by the number of bytes. Pure. */
const struct psd_method *psd_choice_by_bytes(const struct psd_plan *plan, const struct psd_plan_item *item);
/* Computes bytes and seconds of an item for each candidate method; alternatives[i] belongs to plan->candidates[i].
 * PSD_ENOMEM. */
enum psd_status psd_choice_weigh(struct psd_alternative alternatives[PSD_CANDIDATES], const struct psd_plan *plan,
				 const struct psd_plan_item *item, struct psd_error *err) PSD_MUST_CHECK;
/* As psd_choice_weigh(), but does not compute node_bytes, which takes long because bytes are counted node by node.
 * PSD_ENOMEM. */
enum psd_status psd_choice_weigh_seconds(struct psd_alternative alternatives[PSD_CANDIDATES],
					 const struct psd_plan *plan, const struct psd_plan_item *item,
					 struct psd_error *err) PSD_MUST_CHECK;
/* Returns the index of the fastest candidate that the system may choose for the item; the lowest index among equals. */
unsigned psd_choice_by_seconds(const struct psd_alternative alternatives[PSD_CANDIDATES], const struct psd_plan *plan,
			       const struct psd_plan_item *item);
/* Sets *method to the item's method, chosen by the system's rule. PSD_ENOMEM. */
enum psd_status psd_choice_make(const struct psd_method **method, const struct psd_plan *plan,
				const struct psd_plan_item *item, struct psd_error *err) PSD_MUST_CHECK;
/* Sets *method to the method that sums the norms of chunks, the last item of a plan with sparse all-reduce.
 * PSD_ENOMEM. */
enum psd_status psd_choice_make_norms(const struct psd_method **method, const struct psd_plan *plan,
				      const struct psd_plan_item *norms, struct psd_error *err) PSD_MUST_CHECK;

#endif
