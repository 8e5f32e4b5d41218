/* Selection of the chunks of sparse gradients that are sent. Each worker computes the same one from the same norms.
 * Does not touch gradients. */
#ifndef PSD_REAL_CHUNK_SELECTION_H
#define PSD_REAL_CHUNK_SELECTION_H

#include "engine/base/arena.h"
#include "engine/program/plan.h"

/* Chosen chunks of one iteration; there is a table for the current one and a table for the next. */
struct psd_chunk_selection_table {
	bool *is_chosen;      /* per chunk: true if it is sent */
	uint64_t *travelling; /* per item: number of elements to send */
	uint64_t digest;      /* hash of all selections so far */
};

struct psd_chunk_selection {
	const struct psd_plan *plan; /* plan whose chunks are selected, borrowed */
	uint32_t iteration;	     /* iteration for which `now` is valid */
	struct psd_chunk_selection_table now, next;
	uint64_t digest_before; /* hash of the selections up to the iteration before */
	uint32_t *order;	/* chunk numbers while they are sorted */
};

/* Selects all chunks, for the first iteration. Memory comes from the arena. PSD_ENOMEM. */
enum psd_status psd_chunk_selection_open(struct psd_chunk_selection *selection, const struct psd_plan *plan,
					 struct psd_arena *arena, struct psd_error *err) PSD_MUST_CHECK;
/* Prepares the next iteration's selection from the chunks' norms; psd_chunk_selection_adopt() makes it valid. */
void psd_chunk_selection_prepare(struct psd_chunk_selection *selection, const float norms[]);
/* Prepares a random selection, equal for all hosts with the same seed, for runs without norms. Whole chunks come first,
 * as psd_chunks_whole_first() expects. */
void psd_chunk_selection_draw(struct psd_chunk_selection *selection, uint64_t seed);
/* Makes the prepared selection the current one. */
void psd_chunk_selection_adopt(struct psd_chunk_selection *selection);
/* Completes a selection read from a file (now.is_chosen and both digests) for that iteration. */
void psd_chunk_selection_go_on(struct psd_chunk_selection *selection, uint32_t iteration);
/* Number of the item's elements that are sent; all if there is no selection. */
uint64_t psd_chunk_selection_elements(const struct psd_chunk_selection *selection, const struct psd_plan *plan,
				      unsigned item);

#endif
