/* Compression of gradients on a device (engine/encodings/compression.h), with error feedback: the error is added to the
 * next gradient. */
#ifndef PSD_REAL_PACKING_H
#define PSD_REAL_PACKING_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/encodings/compression.h"

/* A tensor of a bucket (tensors that are synchronised together). */
struct psd_packing_tensor {
	float *gradient;     /* gradient; shape (elements) */
	const float *weight; /* parameters; shape (elements) */
	uint64_t elements;   /* number of elements of the tensor */
	/* Weight decay in the formula of psd_packing_pack(); the optimiser's weight decay divided by the number of
	 * workers. */
	float weight_decay;
};

/* Arguments of psd_packing_pack() and psd_packing_unpack(), for one bucket. The array `tensors` is in the host's
 * memory, all values are in the memory of the device. */
struct psd_packing {
	const struct psd_compression *compression;
	struct psd_block block;
	struct psd_packing_tensor *tensors;
	unsigned n_tensors;
	/* Errors of earlier compressions, one float for each element, in the order of the tensors. */
	float *residual;
	/* Momentum that is applied before compression, in the layout of `residual`; NULL: no momentum is applied. */
	float *velocity;
	float momentum;	  /* factor of the momentum in the formula of psd_packing_pack() */
	bool is_nesterov; /* Nesterov's momentum; false: the usual momentum */
	void *packed;	  /* compressed blocks without gaps; the values of each tensor begin with a new block */
};

/* Adds the new value of each element to the residual, and compresses the residual into `packed`. The compression error
 * stays in the residual. Without a velocity, the new value is the gradient. With one:
 *     slope = gradient + weight_decay * weight,  velocity = momentum * velocity + slope.
 * Then the new value is the velocity, or with Nesterov slope + momentum * velocity. Any thread. */
void psd_packing_pack(const struct psd_packing *packing);
/* Decompresses the values in `packed` and overwrites the gradients by them. Any thread. */
void psd_packing_unpack(const struct psd_packing *packing);

#endif
