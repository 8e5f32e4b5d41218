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
	float weight_decay; /* weight decay inside the velocity, divided by the number of workers */
};

/* Tables lie in the host's memory, values where the device works. */
struct psd_packing {
	const struct psd_compression *compression;
	struct psd_block block;
	struct psd_packing_tensor *tensors;
	unsigned n_tensors;
	float *residual; /* (all elements): error of earlier compressions, tensor after tensor without gaps */
	float *velocity; /* (all elements); NULL: no momentum before compression */
	float momentum;	 /* for the velocity, like is_nesterov */
	bool is_nesterov;
	void *packed; /* blocks without gaps; a tensor begins a new block */
};

/* Adds the value to send to the residual, and packs the residual; the compression error stays in it. The value is the
 * gradient, or with a velocity
 *     slope = gradient + weight_decay * weight,  velocity = momentum * velocity + slope,
 * the velocity, or with Nesterov slope + momentum * velocity. Any thread. */
void psd_packing_pack(const struct psd_packing *packing);
/* Overwrites gradients by the values of `packed`. Any thread. */
void psd_packing_unpack(const struct psd_packing *packing);

#endif
