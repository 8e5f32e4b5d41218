/* Sparse all-reduce on a device: gradients accumulate in a residual, and only chosen chunks of it are sent. Source: Sun
 * et al. 2019 (arXiv 1902.06855), section 3.2; full error feedback: Stich et al. 2018 (arXiv 1809.07599). */
#ifndef PSD_REAL_CHUNKS_H
#define PSD_REAL_CHUNKS_H

#include <stdbool.h>
#include <stdint.h>

#include "real/device/update.h"

/* Tensor of a bucket whose gradients are cut into chunks. */
struct psd_chunk_tensor {
	float *weight;		  /* parameters of the tensor; shape (elements) */
	const float *gradient;	  /* gradient of the tensor; shape (elements) */
	uint64_t elements;	  /* number of elements of the tensor */
	struct psd_update update; /* update rule for the tensor's weight */
};

/* Arguments of the functions below, for one bucket. Elements are counted over its tensors in order; chunk c begins at
 * element c * chunk_elements. The arrays `tensors` and is_chosen are in the host's memory, all others in the memory of
 * the device. */
struct psd_chunks {
	const struct psd_chunk_tensor *tensors;
	unsigned n_tensors;
	/* number of elements of all tensors, and of a chunk; the last chunk may be smaller */
	uint64_t elements, chunk_elements;
	uint32_t n_chunks;
	const bool *is_chosen; /* per chunk: true if it is sent; shape (n_chunks) */
	/* residual: sums of gradients that were not sent; history: momentum; shape (elements) each */
	float *residual, *history;
	float *chosen;	  /* values of the chosen chunks, one chunk behind the other */
	float *norms;	  /* norm of each chunk: the sum of its elements' magnitudes; shape (n_chunks) */
	float kept_ratio; /* factor on the residual of chunks that are not sent */
	unsigned workers; /* number of workers whose values are summed */
	bool is_skipped;  /* the sums overflowed their encoding: no update in this iteration */
};

/* Adds gradients to the residual, and sets norms[c] to the norm of the residual's chunk c. Then moves chosen chunks of
 * the residual to `chosen`, leaving zeros, and multiplies the other chunks by kept_ratio. Any thread. */
void psd_chunks_gather(const struct psd_chunks *chunks);
/* Updates the weights and history of chosen chunks by psd_update_apply() with the values in `chosen`, which must be
 * sums over all workers; if is_skipped, they stay unchanged. In both cases norms[c] of a chosen chunk becomes the norm
 * of the chunk's sums, divided by `workers`. Any thread. */
void psd_chunks_apply(const struct psd_chunks *chunks);

#endif
