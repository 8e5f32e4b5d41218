/* Sparse all-reduce on a device: gradients accumulate in a residual, and only chosen chunks of it are sent. Source: Sun
 * et al. 2019 (arXiv 1902.06855), section 3.2; full error feedback: Stich et al. 2018 (arXiv 1809.07599). */
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
	struct psd_update update; /* update rule for the weight */
};

/* Elements are counted over the tensors in order; chunk c has those from c * chunk_elements on. Tables lie in the
 * host's memory, values where the device works. */
struct psd_chunks {
	const struct psd_chunk_tensor *tensors;
	unsigned n_tensors;
	uint64_t elements, chunk_elements;
	uint32_t n_chunks;
	const bool *is_chosen;	   /* (n_chunks) */
	float *residual, *history; /* (elements) each */
	float *chosen;		   /* values of the chosen chunks, without gaps */
	float *norms;		   /* (n_chunks): sum of magnitudes of each chunk */
	float kept_ratio;	   /* factor for the residual of chunks that are not chosen */
	unsigned workers;
	bool is_skipped; /* the sums overflowed their encoding: no update in this iteration */
};

/* residual += gradient; norms become the norms of the residual. Chosen chunks move to `chosen`; the others are
 * multiplied by kept_ratio. Any thread. */
void psd_chunks_gather(const struct psd_chunks *chunks);
/* Expects in `chosen` the sums over all workers. Updates weights and history by psd_update_apply(), unless skipped. The
 * norm of a chosen chunk becomes the norm of its sum divided by the number of workers. Any thread. */
void psd_chunks_apply(const struct psd_chunks *chunks);

#endif
