/* Sparse exchange of gradients: selection of the chunks that are sent. All workers compute the same selection from the
 * same norms of chunks. This module does not use the gradients themselves. */
#ifndef PSD_REAL_CHUNK_SELECTION_H
#define PSD_REAL_CHUNK_SELECTION_H

#include "engine/base/arena.h"
#include "engine/program/plan.h"

/* Chunks that are sent in one iteration. There are two of these tables: for the current iteration and for the next
 * one. */
struct psd_chunk_selection_table {
	bool *is_chosen; /* for each chunk of the plan: true if the chunk is sent */
	/* For each item (bucket), number of its elements that are sent. An item is one or several tensors that are
	 * synchronised as one. */
	uint64_t *travelling;
	uint64_t digest; /* hash of this selection and of all selections before it */
};

struct psd_chunk_selection {
	const struct psd_plan *plan; /* plan whose chunks are selected; borrowed */
	uint32_t iteration;	     /* iteration to which `now` belongs */
	struct psd_chunk_selection_table now, next;
	uint64_t digest_before; /* hash of all selections before the one in `now` */
	/* Managed communication. sent: number of values that this host has sent so far; sent_early: number of these in
	 * iterations that do not send all chunks; n_early: number of chunks in the last of those iterations. */
	uint64_t sent, sent_early;
	uint32_t n_early;
	uint32_t *order; /* scratch memory: numbers of all chunks, sorted by norm */
};

/* Initialises the selection for the first iteration, in which all chunks are sent; with managed communication, the
 * chunks that psd_chunk_selection_turn() selects. The arena allocates its memory. PSD_ENOMEM. */
enum psd_status psd_chunk_selection_open(struct psd_chunk_selection *selection, const struct psd_plan *plan,
					 struct psd_arena *arena, struct psd_error *err) PSD_MUST_CHECK;
/* Computes the selection of the next iteration from the norms of the chunks' gradients. psd_chunk_selection_adopt()
 * makes it the current one. norms: one for each chunk of the plan, summed over all workers. */
void psd_chunk_selection_prepare(struct psd_chunk_selection *selection, const float norms[]);
/* Draws the selection of the next iteration at random; hosts with equal seeds get equal selections. A replay in which
 * some workers are real uses it, because it has no norms. Chunks of full size are drawn first, as
 * psd_chunks_whole_first() requires. */
void psd_chunk_selection_draw(struct psd_chunk_selection *selection, uint64_t seed);
/* Computes the selection of the next iteration by turns: the chunks take turns in the order in which the backward pass
 * computes them. is_forward: in the reverse order. If there are enough chunks of full size, only these take turns. */
void psd_chunk_selection_turn(struct psd_chunk_selection *selection, bool is_forward);
/* Makes the selection of the next iteration the current one. sends_all: all chunks are sent instead of that selection,
 * because a clock ends. */
void psd_chunk_selection_adopt(struct psd_chunk_selection *selection, bool sends_all);
/* Completes a selection that was read from a checkpoint before `iteration`. The caller has read now.is_chosen and both
 * digests; this function computes the other fields. sends_all: as in psd_chunk_selection_adopt(). */
void psd_chunk_selection_go_on(struct psd_chunk_selection *selection, uint32_t iteration, bool sends_all);
/* Returns the number of elements of the item (bucket) that are sent in the current iteration. If selection->plan is
 * NULL, there is no selection, and it is the number in the plan. */
uint64_t psd_chunk_selection_elements(const struct psd_chunk_selection *selection, const struct psd_plan *plan,
				      unsigned item);

#endif
