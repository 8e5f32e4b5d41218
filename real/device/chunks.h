/* What a sparse plan does to an exchange's gradient on a device, chunk by chunk. Source: Sun et al. 2019 (arXiv
 * 1902.06855), section 3.2; full feedback: Stich et al. 2018 (arXiv 1809.07599). */
#ifndef PSD_REAL_CHUNKS_H
#define PSD_REAL_CHUNKS_H

#include <stdbool.h>
#include <stdint.h>

#include "real/device/update.h"

/* A tensor of the exchange. */
struct psd_chunk_tensor {
	float *weight;
	const float *gradient;
	uint64_t elements;
	struct psd_update update; /* of its weight */
};

/* Elements are counted over the tensors in order; chunk c has those from c * chunk_elements on. Tables lie in the
 * host's memory, values where the device works. */
struct psd_chunks {
	const struct psd_chunk_tensor *tensors;
	unsigned n_tensors;
	uint64_t elements, chunk_elements;
	uint32_t n_chunks;
	const bool *is_chosen;	   /* of each chunk */
	float *residual, *history; /* of each element */
	float *chosen;		   /* the chosen chunks without gaps */
	float *norms;		   /* of each chunk, the sum of magnitudes */
	float kept_ratio;	   /* of what is held back, what is left for the next iteration */
	unsigned workers;
	bool is_skipped; /* the sums are beyond the range of what they travelled in */
};

/* residual += gradient; norms of that. Chosen chunks move to `chosen`; the others shrink to the kept ratio. Any thread.
 */
void psd_chunks_gather(const struct psd_chunks *chunks);
/* `chosen` has become the sums of all workers: weights and history follow by psd_update_apply(), unless skipped. Norms
 * of the chosen chunks become each worker's share of the sum's, since every worker has it. Any thread. */
void psd_chunks_apply(const struct psd_chunks *chunks);

#endif
