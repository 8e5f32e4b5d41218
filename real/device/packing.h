/* Compression of gradients by one-bit or top-k on a device, with error feedback. */
#ifndef PSD_REAL_PACKING_H
#define PSD_REAL_PACKING_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/encodings/compression.h"

/* Tensor of a bucket. */
struct psd_packing_tensor {
	float *gradient;     /* gradient; shape (elements) */
	const float *weight; /* parameters; shape (elements) */
	uint64_t elements;   /* number of elements of the tensor */
	float weight_decay;  /* weight decay in the formula of the velocity, divided by the number of workers */
};

/* Arguments of the functions below, for one bucket. The array `tensors` is in the host's memory, all values are in the
 * memory of the device. */
struct psd_packing {
	const struct psd_compression *compression;
	struct psd_block block;
	struct psd_packing_tensor *tensors;
	unsigned n_tensors;
	/* error of earlier compressions, one tensor after the other; length: elements of all tensors */
	float *residual;
	float *velocity;  /* momentum that is applied before compression, in the layout of residual; NULL: none */
	float momentum;	  /* factor of the momentum in the formula of the velocity */
	bool is_nesterov; /* Nesterov's momentum in place of the usual one */
	void *packed;	  /* compressed blocks without gaps; each tensor begins with a new block */
};

/* Adds the value to send to the residual, and packs the residual; the compression error stays in it. The value is the
 * gradient, or with a velocity
 *     slope = gradient + weight_decay * weight,  velocity = momentum * velocity + slope,
 * the velocity, or with Nesterov slope + momentum * velocity. Any thread. */
void psd_packing_pack(const struct psd_packing *packing);
/* Overwrites gradients by the values in `packed`. Any thread. */
void psd_packing_unpack(const struct psd_packing *packing);

#endif
