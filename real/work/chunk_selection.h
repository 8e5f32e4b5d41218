/* Sparse exchange of gradients: selection of the chunks that are sent. All workers compute the same selection from the
 * same norms of chunks. This module does not use the gradients themselves. */
#ifndef PSD_REAL_CHUNK_SELECTION_H
#define PSD_REAL_CHUNK_SELECTION_H

#include "engine/base/arena.h"
#include "engine/program/plan.h"
#include "engine/program/scheduler.h"

/* Chunks that are sent in one iteration. */
struct psd_chunk_selection_table {
	bool *is_chosen; /* for each chunk of the plan: true if the chunk is sent */
	/* For each item (bucket), number of its elements that are sent. An item is one or several tensors that are
	 * synchronised as one. */
	uint64_t *travelling;
	uint64_t digest; /* hash of this selection and of all selections before it */
};

struct psd_chunk_selection {
	const struct psd_plan *plan; /* plan whose chunks are selected; borrowed */
	struct psd_iterations run;   /* iterations of the run */
	uint32_t iteration;	     /* newest iteration whose selection is known */
	/* Newest selections; iteration i has tables[i % n_tables]. Workers may be apart by the plan's staleness, so as
	 * many selections are known before their iterations begin. */
	struct psd_chunk_selection_table *tables;
	uint32_t n_tables;
	bool *kept; /* for a checkpoint: is_chosen of the selections from the next iteration on, in this order */
	/* Managed communication: numbers of values of this host that were sent so far, in all iterations and in those
	 * without all chunks; number of chunks in the last one of the latter. */
	uint64_t sent, sent_early;
	uint32_t n_early;
	uint32_t *order; /* scratch memory: numbers of all chunks, sorted by norm */
};

/* Initialises the selections of the first iterations of a run, in which all chunks are sent; with managed communication
 * those of psd_chunk_selection_turn(), and all at the end of a clock. The arena allocates its memory. PSD_ENOMEM. */
enum psd_status psd_chunk_selection_open(struct psd_chunk_selection *selection, const struct psd_plan *plan,
					 struct psd_iterations run, struct psd_arena *arena,
					 struct psd_error *err) PSD_MUST_CHECK;
/* Returns the selection of one of the n_tables iterations up to the newest one. */
struct psd_chunk_selection_table *psd_chunk_selection_of(const struct psd_chunk_selection *selection,
							 uint32_t iteration);
/* Makes the next selection from the norms of the chunks' gradients. psd_chunk_selection_adopt() makes it the newest
 * one. norms: one for each chunk of the plan, summed over all workers. */
void psd_chunk_selection_prepare(struct psd_chunk_selection *selection, const float norms[]);
/* Draws the next selection at random; hosts with equal seeds get equal selections. A replay in which some workers are
 * real uses it, because it has no norms. Chunks of full size are drawn first, as psd_chunks_whole_first() requires. */
void psd_chunk_selection_draw(struct psd_chunk_selection *selection, uint64_t seed);
/* Makes the next selection by turns: the chunks take turns in the order in which the backward pass computes them.
 * is_forward: in the reverse order. Chunks of full size alone take turns, if there are enough. */
void psd_chunk_selection_turn(struct psd_chunk_selection *selection, bool is_forward);
/* Makes the next selection the newest one; with managed communication it has all chunks at the end of a clock. */
void psd_chunk_selection_adopt(struct psd_chunk_selection *selection);
/* Fills in selection->kept. Returns the number of selections in it. */
uint32_t psd_chunk_selection_keep(struct psd_chunk_selection *selection);
/* Goes on with selection->kept, which was read from a checkpoint before iteration run.first. The caller has read the
 * digests of that iteration's selection and of the one before; this function computes the other fields. */
void psd_chunk_selection_go_on(struct psd_chunk_selection *selection);

#endif
