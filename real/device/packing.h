/* Compression of gradients on a device, with error feedback. */
#ifndef PSD_REAL_PACKING_H
#define PSD_REAL_PACKING_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/encodings/compression.h"

struct psd_packing_tensor {
	float *gradient;
	const float *weight;
	uint64_t elements;
	float weight_decay; /* weight decay inside the velocity, already divided by the number of workers */
};

/* Arguments of the functions below. Tables are in the host's memory, values where the device works. */
struct psd_packing {
	const struct psd_compression *compression;
	struct psd_block block;
	struct psd_packing_tensor *tensors;
	unsigned n_tensors;
	float *residual; /* error of earlier compressions, tensor after tensor; shape (all elements) */
	float *velocity; /* momentum before compression; shape (all elements); NULL: none */
	float momentum;	 /* factor of momentum in the velocity; is_nesterov: its kind */
	bool is_nesterov;
	void *packed; /* compressed blocks without gaps; a tensor begins a new block */
};

/* Adds the value to send to the residual, and packs the residual; the compression error stays in it. The value is the
 * gradient, or with a velocity
 *     slope = gradient + weight_decay * weight,  velocity = momentum * velocity + slope,
 * the velocity, or with Nesterov slope + momentum * velocity. Any thread. */
void psd_packing_pack(const struct psd_packing *packing);
/* Overwrites gradients by the values in `packed`. Any thread. */
void psd_packing_unpack(const struct psd_packing *packing);

#endif
