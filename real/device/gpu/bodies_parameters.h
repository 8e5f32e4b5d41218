/* Kernel bodies of updates, of sparse all-reduce, and of encodings; kernels.h describes their arguments. */
#ifndef PSD_REAL_GPU_BODIES_PARAMETERS_H
#define PSD_REAL_GPU_BODIES_PARAMETERS_H

#include "real/device/chunks.h"
#include "real/device/gpu/values.h"

/* ---- encodings and chunks ---- */

PSD_BODY void psd_look_at(uint64_t i, const struct psd_gpu_look *of)
{
	uint32_t found = 0;

	for (uint64_t e = i; e < of->elements; e += of->n_parts)
		found |= (of->values[e] & of->infinity) == of->infinity;
	of->found[i] = found;
}

PSD_BODY void psd_look_reduce_at(uint64_t i, const struct psd_gpu_look_reduce *of)
{
	uint32_t found = 0;

	for (uint64_t p = i; p < of->n_parts; p += of->n_groups)
		found |= of->found[p];
	of->reduced[i] = found;
}

PSD_BODY void psd_spoil_at(uint64_t i, const struct psd_gpu_spoil *of)
{
	if (!of->found || *of->found)
		of->values[i] = of->nan;
}

/* ---- updates ---- */

PSD_BODY void psd_norms_at(uint64_t i, const struct psd_gpu_norms *of)
{
	const float *array = of->arrays[i / of->n_parts];
	double sum = 0.0;

	for (uint64_t e = i % of->n_parts; e < of->elements; e += of->n_parts)
		sum += (double)array[e] * (double)array[e];
	of->partial[i] = sum;
}

PSD_BODY void psd_squares_at(uint64_t i, const struct psd_gpu_squares *of)
{
	const double ratio = psd_entry(of->ratio, 0, 1.0f);

	if (of->is_back)
		of->squares[i] = ratio * ratio * of->sent[i];
	else
		of->sent[i] = (float)of->squares[i];
}

PSD_BODY void psd_norms_reduce_at(uint64_t i, const struct psd_gpu_norms_reduce *of)
{
	const double *parts = of->partial + i / of->n_groups * of->n_parts;
	double sum = 0.0;

	for (uint64_t p = i % of->n_groups; p < of->n_parts; p += of->n_groups)
		sum += parts[p];
	of->reduced[i] = sum;
}

PSD_BODY void psd_trust_at(uint64_t i, const struct psd_gpu_trust *of)
{
	double norms[2] = {0.0, 0.0};

	for (uint32_t array = 0; array < 2; array++) {
		for (uint32_t g = 0; g < of->n_groups; g++)
			norms[array] += of->squares[array][g];
		norms[array] = sqrt(norms[array]);
	}
	of->own_rate[i] = of->rate;
	if (norms[0] > 0.0 && norms[1] > 0.0)
		of->own_rate[i] *=
			(float)(of->trust_ratio * norms[0] / (norms[1] + (double)of->weight_decay * norms[0]));
}

PSD_BODY void psd_clip_at(uint64_t i, const struct psd_gpu_clip *of)
{
	double sum = 0.0;

	for (uint32_t g = 0; g < of->n_groups; g++)
		sum += of->reduced[g];
	const double norm = sqrt(sum);
	of->ratio[i] = norm > of->most_norm ? (float)(of->most_norm / norm) : 1.0f;
}

PSD_BODY void psd_shrunk_at(uint64_t i, const struct psd_gpu_shrunk *of)
{
	if (*of->ratio != 1.0f)
		of->values[i] *= *of->ratio;
}

PSD_BODY void psd_step_at(const struct psd_gpu_step *step, float *weight, float gradient, float *history)
{
	const float rate = step->own_rate ? *step->own_rate : step->rate;
	const float before = *history;

	*history = step->momentum * before + rate * (gradient + step->weight_decay * *weight);
	if (step->is_nesterov)
		*weight -= (1.0f + step->momentum) * *history - step->momentum * before;
	else
		*weight -= *history;
}

PSD_BODY void psd_update_at(uint64_t i, const struct psd_gpu_update *of)
{
	psd_step_at(&of->step, &of->weight[i], of->gradient[i], &of->history[i]);
}

PSD_BODY void psd_adaptive_at(uint64_t i, const struct psd_gpu_adaptive *of)
{
	const float gradient = of->gradient[i];
	const float history = of->beta1 * of->history[i] + (1.0f - of->beta1) * gradient;
	const float squares = of->beta2 * of->squares[i] + (1.0f - of->beta2) * (gradient * gradient);

	of->history[i] = history;
	of->squares[i] = squares;
	of->weight[i] -= of->rate * (of->mean_ratio * history / (of->root_ratio * sqrtf(squares) + of->epsilon) +
				     of->weight_decay * of->weight[i]);
}

PSD_BODY void psd_difference_at(uint64_t i, const struct psd_gpu_difference *of)
{
	of->difference[i] = of->from[i] - of->ratio * of->what[i];
}

/* ---- chunks ---- */

/* Returns the address of the partial sums of a chunk. chunk: number of the chunk, from 0, among the chunks that this
 * kernel launch handles. */
PSD_BODY double *psd_chunk_partial(const struct psd_gpu_spans *of, uint32_t chunk)
{
	return of->partial + (uint64_t)((of->first_chunk + chunk) % PSD_GPU_CHUNKS) * PSD_GPU_CHUNK_PARTS;
}

/* Returns the absolute value of a change, divided by its parameter's magnitude if norms are relative
 * (psd_chunks.is_relative). */
PSD_BODY double psd_chunk_magnitude(const struct psd_gpu_spans *of, double change, float weight)
{
	return of->is_relative ? fabs(change) / (fabs((double)weight) + PSD_CHUNKS_LEAST) : fabs(change);
}

/* Adds the gradient of element e of a span to the element's residual, and returns the absolute value of the sum. If the
 * chunk is chosen, the sum is moved to `chosen` and the residual becomes 0. Otherwise the residual is multiplied by
 * kept_ratio. */
PSD_BODY double psd_settle(const struct psd_gpu_gather *of, const struct psd_gpu_span *span, uint64_t e)
{
	float *residual = of->residual + span->first + e;
	const float whole = *residual + span->gradient[e];

	if (span->is_chosen)
		of->chosen[span->first_chosen + e] = whole;
	*residual = span->is_chosen ? 0.0f : of->kept_ratio * whole;
	return psd_chunk_magnitude(&of->of, (double)whole, span->weight[e]);
}

PSD_BODY void psd_gather_at(uint64_t i, const struct psd_gpu_gather *of)
{
	const uint32_t chunk = (uint32_t)(i / PSD_GPU_CHUNK_PARTS), part = (uint32_t)(i % PSD_GPU_CHUNK_PARTS);
	double *partial = psd_chunk_partial(&of->of, chunk) + part;
	double sum = chunk == 0 && of->of.is_continued ? *partial : 0.0;

	for (uint32_t s = chunk ? of->of.ends[chunk - 1] : 0; s < of->of.ends[chunk]; s++)
		for (uint64_t e = part; e < of->of.spans[s].elements; e += PSD_GPU_CHUNK_PARTS)
			sum += psd_settle(of, &of->of.spans[s], e);
	*partial = sum;
}

PSD_BODY void psd_apply_chunks_at(uint64_t i, const struct psd_gpu_apply_chunks *of)
{
	const uint32_t chunk = (uint32_t)(i / PSD_GPU_CHUNK_PARTS), part = (uint32_t)(i % PSD_GPU_CHUNK_PARTS);
	double *partial = psd_chunk_partial(&of->of, chunk) + part;
	double sum = chunk == 0 && of->of.is_continued ? *partial : 0.0;

	for (uint32_t s = chunk ? of->of.ends[chunk - 1] : 0; s < of->of.ends[chunk]; s++) {
		const struct psd_gpu_span *span = &of->of.spans[s];

		for (uint64_t e = part; e < span->elements && span->is_chosen; e += PSD_GPU_CHUNK_PARTS) {
			const float gradient = of->chosen[span->first_chosen + e];

			if (!of->is_skipped)
				psd_step_at(&span->step, &span->weight[e], gradient, &of->history[span->first + e]);
			sum += psd_chunk_magnitude(&of->of, (double)gradient, span->weight[e]);
		}
	}
	*partial = sum;
}

PSD_BODY void psd_chunk_norms_at(uint64_t i, const struct psd_gpu_chunk_norms *of)
{
	const uint32_t chunk = of->first_chunk + (uint32_t)i;
	const double *reduced = of->reduced + (uint64_t)(chunk % PSD_GPU_CHUNKS) * PSD_GPU_CHUNK_GROUPS;
	double sum = 0.0;

	if (of->is_left_out[i])
		return;
	for (uint32_t g = 0; g < PSD_GPU_CHUNK_GROUPS; g++)
		sum += reduced[g];
	of->norms[chunk] = (float)(sum / of->divisor);
}

#endif
