/* What a device does where gradients travel compressed. */
#ifndef PSD_REAL_PACKING_H
#define PSD_REAL_PACKING_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/encodings/compression.h"

struct psd_packing_tensor {
	float *gradient;
	const float *weight;
	uint64_t elements;
	float weight_decay; /* of the weight in a worker's own velocity, so that all workers' together have all of it */
};

/* Tables lie in the host's memory, values where the device works. */
struct psd_packing {
	const struct psd_compression *compression;
	struct psd_block block;
	struct psd_packing_tensor *tensors;
	unsigned n_tensors;
	float *residual; /* of each element, tensor after tensor without gaps: what was lost of earlier gradients */
	float *velocity; /* the same way; NULL: gradients travel without momentum */
	float momentum;	 /* of the velocity, as is the next */
	bool is_nesterov;
	void *packed; /* block after block; each tensor begins a new one */
};

/* residual += what is to travel. The residual is packed, and what is lost of it stays there. What is to travel is the
 * gradient, or with a velocity
 *     slope = gradient + weight_decay * weight,  velocity = momentum * velocity + slope,
 * and then the velocity, or by Nesterov slope + momentum * velocity. Any thread. */
void psd_packing_pack(const struct psd_packing *packing);
/* gradient = what `packed` says; the residual is not touched. Any thread. */
void psd_packing_unpack(const struct psd_packing *packing);

#endif
