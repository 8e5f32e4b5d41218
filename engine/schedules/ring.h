/* The steps of a ring all-reduce as a pure function, so that they need not be stored: reduce-scatter in P-1 steps, then
 * all-gather in P-1. Source: Patarasuk and Yuan 2009. */
#ifndef PSD_RING_H
#define PSD_RING_H

#include <stdbool.h>
#include <stdint.h>

struct psd_ring_step {
	uint64_t first_element; /* of the chunk that `rank` sends to rank + 1 in this step */
	uint64_t elements;
	bool is_reducing; /* the receiver adds the chunk to its own; otherwise it replaces it */
};

/* workers >= 2, rank < workers, step < 2 (workers - 1). Chunks are cut at c * elements / workers. */
struct psd_ring_step psd_ring_step(uint64_t elements, unsigned workers, unsigned rank, unsigned step);

/* Elements that `rank` sends in all steps together: every chunk twice, but for the one after its own and the next,
 * which it sends once. */
uint64_t psd_ring_sent_elements(uint64_t elements, unsigned workers, unsigned rank);

#endif
