/* Choice of the method that synchronises an item (bucket): the method that the system names, or the one that a rule
 * selects. */
#ifndef PSD_CHOICE_H
#define PSD_CHOICE_H

#include "engine/program/plan.h"

/* Cost of synchronising one item (bucket) by one of the plan's candidate methods, if nothing else is synchronised. It
 * is computed from the operations of the method. The item is taken as one slice, unless the key `pipeline` divides it.
 * */
struct psd_alternative {
	bool is_possible; /* the method can synchronise this item (bucket) */
	/* bytes that the busiest node sends plus receives, in an iteration in which workers exchange */
	uint64_t node_bytes;
	/* seconds from the end of the item's (bucket's) backward operation to the end of the item's last operation */
	double isolated_sec;
};

/* Sets plan->candidates, which must be empty, to the methods that are compared for each item (bucket). */
void psd_choice_candidates(struct psd_plan *plan);
/* True if the system may synchronise some items (buckets) by factors of linear layers' gradients. */
bool psd_choice_may_take_factors(const struct psd_system *system);
/* True if the system may synchronise some items (buckets) by a stepwise all-reduce. */
bool psd_choice_may_take_steps(const struct psd_system *system);
/* True if the method can use the plan's encoding for sending: it has buffers for encoded values, or the encoding is
 * not lossy. */
bool psd_choice_takes_wire(const struct psd_plan *plan, const struct psd_method *method);
/* True if a rule chooses the method of each item (bucket); false: the system names one method for all items. */
bool psd_choice_is_open(const struct psd_system *system);

/* Returns the method that the system's key `sync` names for the item (bucket). If a rule chooses between methods,
 * returns the choice of the published rule by bytes. Pure. */
const struct psd_method *psd_choice_by_bytes(const struct psd_plan *plan, const struct psd_plan_item *item);
/* Computes bytes and seconds of the item (bucket) for each candidate method. alternatives[i] is for
 * plan->candidates[i]. PSD_ENOMEM. */
enum psd_status psd_choice_weigh(struct psd_alternative alternatives[PSD_CANDIDATES], const struct psd_plan *plan,
				 const struct psd_plan_item *item, struct psd_error *err) PSD_MUST_CHECK;
/* Same as psd_choice_weigh(), but without node_bytes, which take long to count node by node. PSD_ENOMEM. */
enum psd_status psd_choice_weigh_seconds(struct psd_alternative alternatives[PSD_CANDIDATES],
					 const struct psd_plan *plan, const struct psd_plan_item *item,
					 struct psd_error *err) PSD_MUST_CHECK;
/* Returns the index of the candidate with the fewest seconds among those that the system may choose for the item
 * (bucket). Among equals it is the lowest index. */
unsigned psd_choice_by_seconds(const struct psd_alternative alternatives[PSD_CANDIDATES], const struct psd_plan *plan,
			       const struct psd_plan_item *item);
/* Sets *method to the method of the item (bucket): the one that the system names, or the one that its rule selects.
 * PSD_ENOMEM. */
enum psd_status psd_choice_make(const struct psd_method **method, const struct psd_plan *plan,
				const struct psd_plan_item *item, struct psd_error *err) PSD_MUST_CHECK;
/* Sets *method to the method that synchronises `norms`, the last item (bucket) of a plan with sparse all-reduce. The
 * elements of this item are the norms of chunks. PSD_ENOMEM. */
enum psd_status psd_choice_make_norms(const struct psd_method **method, const struct psd_plan *plan,
				      const struct psd_plan_item *norms, struct psd_error *err) PSD_MUST_CHECK;

#endif
