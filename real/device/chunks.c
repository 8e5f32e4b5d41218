/* Chunks of sparse all-reduce, computed on the processor. */
#include "real/device/chunks.h"

#include <math.h>
#include <stddef.h>

/* Range of a bucket's elements: first to end - 1. */
struct span {
	uint64_t first, end;
};

static struct span chunk_of(const struct psd_chunks *chunks, uint32_t c)
{
	return (struct span){c * chunks->chunk_elements,
			     psd_least((c + UINT64_C(1)) * chunks->chunk_elements, chunks->elements)};
}

/* Returns the elements that a chunk and a tensor have in common; first: number, in the bucket, of the tensor's first
 * element. A chunk may begin and end inside a tensor. */
static struct span meet(struct span chunk, uint64_t first, uint64_t elements)
{
	const uint64_t end = psd_least(chunk.end, first + elements);

	return (struct span){chunk.first > first ? chunk.first : first, end};
}

/* Adds a gradient to the residual, and returns the norm of the new residual: the sum of magnitudes. */
static double add_up(float *restrict residual, const float *restrict gradient, uint64_t elements)
{
	double norm = 0.0;

	for (uint64_t e = 0; e < elements; e++) {
		residual[e] += gradient[e];
		norm += fabs((double)residual[e]);
	}
	return norm;
}

static double relative(double change, float weight)
{
	return fabs(change) / (fabs((double)weight) + PSD_CHUNKS_LEAST);
}

/* As add_up(), but relative to the parameters. */
static double add_up_relative(float *restrict residual, const float *restrict gradient, const float *restrict weight,
			      uint64_t elements)
{
	double norm = 0.0;

	for (uint64_t e = 0; e < elements; e++) {
		residual[e] += gradient[e];
		norm += relative((double)residual[e], weight[e]);
	}
	return norm;
}

static double add_gradients(const struct psd_chunks *chunks, struct span chunk)
{
	uint64_t first = 0;
	double norm = 0.0;

	for (unsigned t = 0; t < chunks->n_tensors && first < chunk.end; t++) {
		const struct psd_chunk_tensor *tensor = &chunks->tensors[t];
		const struct span part = meet(chunk, first, tensor->elements);

		if (part.first < part.end && chunks->is_relative)
			norm += add_up_relative(chunks->residual + part.first, tensor->gradient + (part.first - first),
						tensor->weight + (part.first - first), part.end - part.first);
		else if (part.first < part.end)
			norm += add_up(chunks->residual + part.first, tensor->gradient + (part.first - first),
				       part.end - part.first);
		first += tensor->elements;
	}
	return norm;
}

/* Moves a chunk of the residual to `chosen` if the chunk is chosen; otherwise multiplies it by kept_ratio. */
static void settle(float *restrict residual, float *restrict chosen, float kept_ratio, uint64_t elements)
{
	for (uint64_t e = 0; e < elements; e++) {
		if (chosen)
			chosen[e] = residual[e];
		residual[e] = chosen ? 0.0f : kept_ratio * residual[e];
	}
}

void psd_chunks_gather(const struct psd_chunks *chunks)
{
	float *chosen = chunks->chosen;

	for (uint32_t c = 0; c < chunks->n_chunks; c++) {
		const struct span chunk = chunk_of(chunks, c);

		chunks->norms[c] = (float)add_gradients(chunks, chunk);
		settle(chunks->residual + chunk.first, chunks->is_chosen[c] ? chosen : NULL, chunks->kept_ratio,
		       chunk.end - chunk.first);
		chosen += chunks->is_chosen[c] ? chunk.end - chunk.first : 0;
	}
}

static float norm_of_sum(const float *sum, uint64_t elements, unsigned workers)
{
	double norm = 0.0;

	for (uint64_t e = 0; e < elements; e++)
		norm += fabs((double)sum[e]);
	return (float)(norm / workers);
}

/* As norm_of_sum(), but relative to the parameters. */
static float relative_norm_of_sum(const struct psd_chunks *chunks, struct span chunk, const float *sum)
{
	uint64_t first = 0;
	double norm = 0.0;

	for (unsigned t = 0; t < chunks->n_tensors && first < chunk.end; t++) {
		const struct psd_chunk_tensor *tensor = &chunks->tensors[t];
		const struct span part = meet(chunk, first, tensor->elements);

		for (uint64_t e = part.first; e < part.end; e++)
			norm += relative((double)sum[e - chunk.first], tensor->weight[e - first]);
		first += tensor->elements;
	}
	return (float)(norm / chunks->workers);
}

static void update(const struct psd_chunks *chunks, struct span chunk, const float *sum)
{
	uint64_t first = 0;

	for (unsigned t = 0; t < chunks->n_tensors && first < chunk.end; t++) {
		const struct psd_chunk_tensor *tensor = &chunks->tensors[t];
		const struct span part = meet(chunk, first, tensor->elements);

		if (part.first < part.end)
			psd_update_apply(&tensor->update, tensor->weight + (part.first - first),
					 sum + (part.first - chunk.first),
					 (struct psd_moments){.history = chunks->history + part.first},
					 part.end - part.first);
		first += tensor->elements;
	}
}

void psd_chunks_apply(const struct psd_chunks *chunks)
{
	const float *sum = chunks->chosen;

	for (uint32_t c = 0; c < chunks->n_chunks; c++) {
		const struct span chunk = chunk_of(chunks, c);

		if (!chunks->is_chosen[c])
			continue;
		if (!chunks->is_skipped)
			update(chunks, chunk, sum);
		chunks->norms[c] = chunks->is_relative ? relative_norm_of_sum(chunks, chunk, sum)
						       : norm_of_sum(sum, chunk.end - chunk.first, chunks->workers);
		sum += chunk.end - chunk.first;
	}
}
