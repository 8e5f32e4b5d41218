/* One-bit and top-k compression on the processor. */
#include "real/device/packing.h"

#include <string.h>

#include "real/base/values.h"

enum { ROW = 16 };

/* always inlined, so that the compiler knows the number of iterations of the loops and vectorises them */
#define INLINE static inline __attribute__((always_inline))

/* One block of a tensor, from element `first` on. */
struct moving {
	const float *gradient, *weight;
	float *velocity;
	float weight_decay, momentum;
};

INLINE void move(const struct moving *of, uint32_t first, unsigned n, bool is_nesterov, float *restrict residual)
{
	const float *restrict gradient = of->gradient + first, *restrict weight = of->weight + first;
	float *restrict velocity = of->velocity + first;

	for (unsigned i = 0; i < n; i++) {
		const float slope = gradient[i] + of->weight_decay * weight[i];

		velocity[i] = of->momentum * velocity[i] + slope;
		residual[i] += is_nesterov ? slope + of->momentum * velocity[i] : velocity[i];
	}
}

static void move_block(const struct moving *of, uint32_t n, bool is_nesterov, float *residual)
{
	const uint32_t in_rows = n - n % ROW;

	for (uint32_t first = 0; first < in_rows && is_nesterov; first += ROW)
		move(of, first, ROW, true, residual + first);
	for (uint32_t first = 0; first < in_rows && !is_nesterov; first += ROW)
		move(of, first, ROW, false, residual + first);
	move(of, in_rows, n - in_rows, is_nesterov, residual + in_rows);
}

/* Adds this iteration's values of n elements, from element `first` of a tensor on, to the residual. */
static void join(const struct psd_packing *packing, const struct psd_packing_tensor *tensor, uint64_t first, uint32_t n,
		 float *residual)
{
	if (!packing->velocity) {
		psd_values_add_to_floats(&psd_encoding_fp32, residual, tensor->gradient + first, n);
		return;
	}
	const struct moving moving = {.gradient = tensor->gradient + first,
				      .weight = tensor->weight + first,
				      .velocity = packing->velocity + (residual - packing->residual),
				      .weight_decay = tensor->weight_decay,
				      .momentum = packing->momentum};

	move_block(&moving, n, packing->is_nesterov, residual);
}

/* Works block by block, each while it is in the first-level cache. */
void psd_packing_pack(const struct psd_packing *packing)
{
	const uint32_t packed_bytes = packing->compression->bytes(&packing->block);
	float *residual = packing->residual;
	char *packed = packing->packed;

	for (unsigned t = 0; t < packing->n_tensors; t++) {
		const struct psd_packing_tensor *tensor = &packing->tensors[t];
		uint32_t n;

		for (uint64_t e = 0; e < tensor->elements; e += n) {
			n = psd_block_next(&packing->block, tensor->elements - e);
			join(packing, tensor, e, n, residual);
			packing->compression->pack(&packing->block, residual, n, packed);
			residual += n;
			packed += packed_bytes;
		}
	}
}

void psd_packing_unpack(const struct psd_packing *packing)
{
	const uint32_t packed_bytes = packing->compression->bytes(&packing->block);
	const char *packed = packing->packed;

	for (unsigned t = 0; t < packing->n_tensors; t++) {
		const struct psd_packing_tensor *tensor = &packing->tensors[t];
		uint32_t n;

		for (uint64_t e = 0; e < tensor->elements; e += n) {
			n = psd_block_next(&packing->block, tensor->elements - e);
			memset(tensor->gradient + e, 0, n * sizeof(float));
			packing->compression->add(&packing->block, packed, n, tensor->gradient + e);
			packed += packed_bytes;
		}
	}
}
