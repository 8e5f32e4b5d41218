/* Sparse all-reduce on a device: gradients are added up in a residual, and only some chunks of the residual are sent in
 * each iteration. Source: Sun et al. 2019 (arXiv 1902.06855), section 3.2; full error feedback: Stich et al. 2018
 * (arXiv 1809.07599). */
#ifndef PSD_REAL_CHUNKS_H
#define PSD_REAL_CHUNKS_H

#include <stdbool.h>
#include <stdint.h>

#include "real/device/update.h"

static inline uint64_t psd_least(uint64_t left, uint64_t right)
{
	return left < right ? left : right;
}

/* A tensor of a bucket (tensors that are synchronised together). Its gradient is divided into chunks. */
struct psd_chunk_tensor {
	float *weight;		  /* parameters of the tensor; shape (elements) */
	const float *gradient;	  /* gradient of the tensor; shape (elements) */
	uint64_t elements;	  /* number of elements of the tensor */
	struct psd_update update; /* update rule for the tensor's weight */
};

/* Arguments of psd_chunks_gather() and psd_chunks_apply(), for one bucket. The elements of all its tensors are numbered
 * from 0, in the order of the tensors. Chunk c begins at element c * chunk_elements. The arrays `tensors` and is_chosen
 * are in the host's memory, all other arrays in the memory of the device. */
struct psd_chunks {
	const struct psd_chunk_tensor *tensors;
	unsigned n_tensors;
	/* Number of elements of all tensors together, and number of elements of a chunk. The last chunk may have
	 * fewer. */
	uint64_t elements, chunk_elements;
	uint32_t n_chunks;
	const bool *is_chosen; /* for each chunk: true if it is sent in this iteration; shape (n_chunks) */
	/* residual: sums of gradients that were not sent yet; history: momentum of the update. Both have shape
	 * (elements). */
	float *residual, *history;
	float *chosen;	  /* values of the chosen chunks, without gaps between the chunks */
	float *norms;	  /* norm of each chunk: the sum of the absolute values of its elements; shape (n_chunks) */
	float kept_ratio; /* factor by which the residual of chunks that are not sent is multiplied */
	/* True: a norm is the sum of the absolute values, each divided by the
	 * magnitude of its parameter plus PSD_CHUNKS_LEAST. */
	bool is_relative;
	unsigned workers; /* number of workers whose values are summed */
	/* True: the sums overflowed their encoding, so no parameters are updated in this iteration. */
	bool is_skipped;
};

/* Number that is added to a parameter's magnitude before a change is divided by it, so that changes of parameters near
 * zero do not outweigh all others. */
#define PSD_CHUNKS_LEAST 0.01

/* Adds the gradients to the residual, and sets norms[c] to the norm of chunk c of the residual. Then moves the chosen
 * chunks of the residual to `chosen` and replaces them by zeros in the residual. Multiplies the other chunks by
 * kept_ratio. Any thread. */
void psd_chunks_gather(const struct psd_chunks *chunks);
/* Updates weights and history of the chosen chunks by psd_update_apply(), with the values in `chosen` as gradients.
 * These values must be sums over all workers. If is_skipped, weights and history stay unchanged. In both cases
 * norms[c] of each chosen chunk c becomes the norm of its sums (relative to the new weights), divided by
 * `workers`. Any thread. */
void psd_chunks_apply(const struct psd_chunks *chunks);

#endif
