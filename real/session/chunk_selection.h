/* Which chunks of a sparse plan's gradients travel: all workers' choice, which each makes by itself from the same
 * norms. Refuses to touch gradients. */
#ifndef PSD_REAL_CHUNK_SELECTION_H
#define PSD_REAL_CHUNK_SELECTION_H

#include "engine/base/arena.h"
#include "engine/program/plan.h"

/* One for the iteration that it holds for, one in the making. */
struct psd_chunk_selection_table {
	bool *is_chosen;      /* each chunk */
	uint64_t *travelling; /* of each item so many elements */
	uint64_t digest;      /* of all choices so far: equal where these are */
};

struct psd_chunk_selection {
	const struct psd_plan *plan; /* borrowed */
	uint32_t iteration;	     /* that the choice holds for */
	struct psd_chunk_selection_table now, next;
	uint64_t digest_before; /* that of the iteration before */
	uint32_t *order;	/* room */
};

/* All chunks travel in the first iteration. Lives in the arena. PSD_ENOMEM. */
enum psd_status psd_chunk_selection_open(struct psd_chunk_selection *selection, const struct psd_plan *plan,
					 struct psd_arena *arena, struct psd_error *err) PSD_MUST_CHECK;
/* Makes the choice of the iteration after the one that it holds for, from the chunks' norms; nobody sees it yet. */
void psd_chunk_selection_prepare(struct psd_chunk_selection *selection, const float norms[]);
/* The same at random, alike for all with that seed, whole chunks before smaller ones: for a choice that has no norms,
 * as psd_chunks_whole_first() expects it. */
void psd_chunk_selection_draw(struct psd_chunk_selection *selection, uint64_t seed);
/* It holds from now on. */
void psd_chunk_selection_adopt(struct psd_chunk_selection *selection);
/* The bytes of now.is_chosen and both digests come from a file: the choice holds for that iteration. */
void psd_chunk_selection_go_on(struct psd_chunk_selection *selection, uint32_t iteration);
/* Of the item's elements so many travel; all of them where there is no choice. */
uint64_t psd_chunk_selection_elements(const struct psd_chunk_selection *selection, const struct psd_plan *plan,
				      unsigned item);

#endif
