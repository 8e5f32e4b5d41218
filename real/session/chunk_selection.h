/* Sparse exchange of gradients: selection of the chunks that are sent. All workers compute the same selection from the
 * same norms of chunks. Does not touch gradients. */
#ifndef PSD_REAL_CHUNK_SELECTION_H
#define PSD_REAL_CHUNK_SELECTION_H

#include "engine/base/arena.h"
#include "engine/program/plan.h"

/* The chunks that are sent in one iteration. Two of these tables exist: for the current iteration and for the next
 * one. */
struct psd_chunk_selection_table {
	bool *is_chosen; /* per chunk of the plan: true if the chunk is sent */
	/* Per item (tensors that are synchronised as one): number of its elements that are sent. */
	uint64_t *travelling;
	uint64_t digest; /* hash of this selection and all selections before it */
};

struct psd_chunk_selection {
	const struct psd_plan *plan; /* plan whose chunks are selected; borrowed */
	uint32_t iteration;	     /* iteration that `now` is for */
	struct psd_chunk_selection_table now, next;
	uint64_t digest_before; /* hash of all selections before the one in `now` */
	uint32_t *order;	/* scratch: chunk numbers, sorted by norm; one per chunk */
};

/* Initialises the selection for the first iteration, in which all chunks are sent. Its memory comes from the arena.
 * PSD_ENOMEM. */
enum psd_status psd_chunk_selection_open(struct psd_chunk_selection *selection, const struct psd_plan *plan,
					 struct psd_arena *arena, struct psd_error *err) PSD_MUST_CHECK;
/* Computes the selection of the next iteration from the norms of the chunks' gradients. It becomes the current one by
 * psd_chunk_selection_adopt(). norms: one per chunk of the plan, summed over all workers. */
void psd_chunk_selection_prepare(struct psd_chunk_selection *selection, const float norms[]);
/* Draws the selection of the next iteration at random, equal on all hosts with equal seeds, for a replay in which some
 * workers are real: it has no norms. Chunks of full size are drawn first, since psd_chunks_whole_first() expects
 * that. */
void psd_chunk_selection_draw(struct psd_chunk_selection *selection, uint64_t seed);
/* Makes the selection of the next iteration the current one. */
void psd_chunk_selection_adopt(struct psd_chunk_selection *selection);
/* Completes a selection that was read from a checkpoint before `iteration`. The caller has read now.is_chosen and both
 * digests; this computes the other fields. */
void psd_chunk_selection_go_on(struct psd_chunk_selection *selection, uint32_t iteration);
/* Returns the number of elements of the item (bucket) that are sent. Without a selection (selection->plan is NULL) it
 * is the number in the plan. */
uint64_t psd_chunk_selection_elements(const struct psd_chunk_selection *selection, const struct psd_plan *plan,
				      unsigned item);

#endif
