/* Initial values of parameters, the same on every machine and in every memory. */
#include <string.h>

#include "real/data/random.h"
#include "real/keep/memory.h"

/* Uniform in [-1, 1) on any machine: a hash of seed, tensor and element. */
static float draw(uint64_t key, uint64_t element)
{
	return (float)(int32_t)(psd_random_mix(key + element) >> 32) * 0x1p-31f;
}

/* Nearly normal, mean 0 and deviation 1: the sum of 12 uniform numbers of 16 bits. Unlike log() and cos() it has the
 * same bits on every machine. */
static float draw_normal(uint64_t key, uint64_t element)
{
	int32_t sum = 0;

	for (uint64_t i = 0; i < 3; i++) {
		const uint64_t bits = psd_random_mix(key + 3 * element + i);

		sum += (int32_t)((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48));
	}
	return (float)(sum - 6 * 0xffff) * 0x1p-16f;
}

static void copy_parameters(const struct psd_memory *memory, unsigned item, struct psd_range range, void *to)
{
	struct iovec segments[PSD_SEGMENTS_MAX];
	const unsigned n_segments = psd_memory_segments(memory, memory->parameters, item, range, segments);
	char *next = to;

	for (unsigned p = 0; p < n_segments; p++) {
		memcpy(next, segments[p].iov_base, segments[p].iov_len);
		next += segments[p].iov_len;
	}
}

static void fill_item(const struct psd_memory *memory, unsigned item)
{
	const struct psd_plan_item *subject = &memory->plan->items[item];
	float *master = psd_memory_kept(memory, PSD_BUFFER_MASTER, item, 0);

	if (master && memory->host == subject->root)
		copy_parameters(memory, item, (struct psd_range){0, subject->subject.elements}, master);
	for (unsigned s = 0; s < subject->n_slices; s++) {
		float *part = psd_memory_part(memory, PSD_BUFFER_PART, item, s);

		if (part)
			copy_parameters(memory, item, psd_memory_own_part(memory, item, s), part);
	}
}

static float start_value(const struct psd_tensor *tensor, uint64_t key, uint64_t element)
{
	if (tensor->starts_bilinear)
		return psd_tensor_bilinear(tensor, element);
	return tensor->start_value + (tensor->start_deviation != 0 ? tensor->start_deviation * draw_normal(key, element)
								   : tensor->start_bound * draw(key, element));
}

void psd_memory_fill_parameters(const struct psd_memory *memory, uint64_t seed)
{
	const struct psd_graph *graph = memory->plan->graph;

	for (unsigned t = 0; t < graph->n_tensors; t++) {
		const struct psd_tensor *tensor = &graph->tensors[t];
		const uint64_t key = psd_random_key(seed, PSD_RANDOM_PARAMETER, t, 0);
		const struct psd_held held = psd_memory_held(memory, t);

		for (uint64_t e = 0; e < held.piece.elements; e++)
			held.values[e] = start_value(tensor, key, held.piece.first + e);
	}
}

void psd_memory_fill_own(const struct psd_memory *memory)
{
	for (unsigned i = 0; i < memory->plan->n_items; i++)
		fill_item(memory, i);
}
