/* Sparse all-reduce on a device: gradients accumulate in a residual, and only chosen chunks of it are sent. Source: Sun
 * et al. 2019 (arXiv 1902.06855), section 3.2; full error feedback: Stich et al. 2018 (arXiv 1809.07599). */
#ifndef PSD_REAL_CHUNKS_H
#define PSD_REAL_CHUNKS_H

#include <stdbool.h>
#include <stdint.h>

#include "real/device/update.h"

/* A tensor of the exchange, whose gradient is cut into chunks. */
struct psd_chunk_tensor {
	float *weight;
	const float *gradient;
	uint64_t elements;
	struct psd_update update; /* update rule for the tensor's weight */
};

/* Arguments of the functions below. Elements are counted over the tensors in order; chunk c has those from c *
 * chunk_elements on. Tables are in the host's memory, values where the device works. */
struct psd_chunks {
	const struct psd_chunk_tensor *tensors;
	unsigned n_tensors;
	uint64_t elements, chunk_elements;
	uint32_t n_chunks;
	const bool *is_chosen;	   /* per chunk: true if it is sent; shape (n_chunks) */
	float *residual, *history; /* unsent gradients, and momentum; shape (elements) each */
	float *chosen;		   /* values of the chosen chunks, one chunk behind the other */
	float *norms;		   /* sum of magnitudes of each chunk; shape (n_chunks) */
	float kept_ratio;	   /* factor on the residual of chunks that are not sent */
	unsigned workers;
	bool is_skipped; /* the sums overflowed their encoding: no update in this iteration */
};

/* Adds gradients to the residual and sets norms to the norms of the residual. Chosen chunks move to `chosen`; the
 * others are multiplied by kept_ratio. Any thread. */
void psd_chunks_gather(const struct psd_chunks *chunks);
/* Updates weights and history by psd_update_apply(), unless skipped; `chosen` must have the sums over all workers. The
 * norm of a chosen chunk becomes the norm of its sum divided by the number of workers. Any thread. */
void psd_chunks_apply(const struct psd_chunks *chunks);

#endif
