/* Updates, chunks and encodings on the GPU, as update.c, chunks.c and base/values.c on the processor. */
#include <math.h>

#include "real/device/gpu/gpu.h"

enum { CLIP_GROUPS = 32 }; /* number of groups of a tensor's sums of squares, which one thread adds at the end */

static struct psd_gpu_step step_of(const struct psd_update *update, const float *own_rate)
{
	return (struct psd_gpu_step){own_rate, update->rate, update->momentum, update->weight_decay,
				     update->is_nesterov};
}

static enum psd_status take_rate(struct psd_device *device, const struct psd_update *update, const double *weight,
				 const double *gradient, uint32_t n_groups, struct psd_error *err)
{
	const struct psd_gpu_trust trust = {.squares = {weight, gradient},
					    .n_groups = n_groups,
					    .rate = update->rate,
					    .weight_decay = update->weight_decay,
					    .trust_ratio = update->trust_ratio,
					    .own_rate = &device->scratch->norms.rate};

	return psd_gpu_run_trust(device, &trust, 1, err);
}

/* Begins to compute a tensor's learning rate by its norms, in the scratch memory: sums of squares of many parts, then
 * of groups, in double. */
static enum psd_status find_rate(struct psd_device *device, const struct psd_update *update, const float *weight,
				 const float *gradient, uint64_t elements, struct psd_error *err)
{
	const uint32_t n_parts = (uint32_t)psd_least(PSD_GPU_NORM_PARTS, elements / 16 + 1);
	const uint32_t n_groups = (uint32_t)psd_least(PSD_GPU_NORM_GROUPS, n_parts);
	const struct psd_gpu_norms norms = {.arrays = {weight, gradient},
					    .elements = elements,
					    .n_parts = n_parts,
					    .partial = device->scratch->norms.parts};
	const struct psd_gpu_norms_reduce reduce = {device->scratch->norms.parts, n_parts, n_groups,
						    device->scratch->norms.reduced};

	PSD_TRY(psd_gpu_run_norms(device, &norms, 2 * (uint64_t)n_parts, err));
	PSD_TRY(psd_gpu_run_norms_reduce(device, &reduce, 2 * (uint64_t)n_groups, err));
	return take_rate(device, update, reduce.reduced, reduce.reduced + n_groups, n_groups, err);
}

/* ---- norms of all gradients ---- */

enum psd_status psd_gpu_kernel_send_squares(struct psd_device *device, const struct psd_squares *of,
					    struct psd_error *err)
{
	const struct psd_gpu_squares run = {of->squares, of->sent, of->is_back, of->ratio};

	return psd_gpu_run_squares(device, &run, of->n, err);
}

/* Begins to compute the sum of squares of an array: of many parts, then of groups, then one sum. */
enum psd_status psd_gpu_kernel_measure(struct psd_device *device, const struct psd_measure *of, struct psd_error *err)
{
	const uint32_t n_parts = (uint32_t)psd_least(PSD_GPU_NORM_PARTS, of->elements / 16 + 1);
	const uint32_t n_groups = (uint32_t)psd_least(PSD_GPU_NORM_GROUPS, n_parts);
	const struct psd_gpu_norms norms = {.arrays = {of->values},
					    .elements = of->elements,
					    .n_parts = n_parts,
					    .partial = device->scratch->norms.parts};
	const struct psd_gpu_norms_reduce reduce = {device->scratch->norms.parts, n_parts, n_groups,
						    device->scratch->norms.reduced};
	const struct psd_gpu_norms_reduce last = {device->scratch->norms.reduced, n_groups, 1, of->square};

	PSD_TRY(psd_gpu_run_norms(device, &norms, n_parts, err));
	PSD_TRY(psd_gpu_run_norms_reduce(device, &reduce, n_groups, err));
	return psd_gpu_run_norms_reduce(device, &last, 1, err);
}

enum psd_status psd_gpu_kernel_find_clip(struct psd_device *device, const struct psd_clip *clip, struct psd_error *err)
{
	const uint32_t n_groups = (uint32_t)psd_least(CLIP_GROUPS, clip->n);
	const struct psd_gpu_norms_reduce reduce = {clip->squares, clip->n, n_groups, device->scratch->norms.reduced};
	const struct psd_gpu_clip run = {device->scratch->norms.reduced, n_groups, clip->most_norm, clip->ratio};

	if (n_groups > 0)
		PSD_TRY(psd_gpu_run_norms_reduce(device, &reduce, n_groups, err));
	return psd_gpu_run_clip(device, &run, 1, err);
}

enum psd_status psd_gpu_kernel_shrink(struct psd_device *device, const struct psd_shrink *of, struct psd_error *err)
{
	const struct psd_gpu_shrunk run = {of->values, of->ratio};

	return psd_gpu_run_shrunk(device, &run, of->elements, err);
}

/* ---- updates ---- */

static enum psd_status apply_adaptive(struct psd_device *device, const struct psd_apply *of, struct psd_error *err)
{
	const struct psd_adaptive *adaptive = &of->update.adaptive;
	const struct psd_gpu_adaptive run = {.rate = of->update.rate,
					     .weight_decay = of->update.weight_decay,
					     .beta1 = adaptive->beta1,
					     .beta2 = adaptive->beta2,
					     .epsilon = adaptive->epsilon,
					     .mean_ratio = adaptive->mean_ratio,
					     .root_ratio = adaptive->root_ratio,
					     .weight = of->weight,
					     .history = of->moments.history,
					     .squares = of->moments.squares,
					     .gradient = of->gradient};

	return psd_gpu_run_adaptive(device, &run, of->elements, err);
}

enum psd_status psd_gpu_kernel_apply(struct psd_device *device, const struct psd_apply *of, struct psd_error *err)
{
	const struct psd_update *update = &of->update;
	const bool is_by_norms = update->trust_ratio > 0.0;
	const struct psd_gpu_update run = {.step = step_of(update, is_by_norms ? &device->scratch->norms.rate : NULL),
					   .weight = of->weight,
					   .history = of->moments.history,
					   .gradient = of->gradient};

	if (update->adaptive.epsilon > 0.0f)
		return apply_adaptive(device, of, err);
	if (is_by_norms && of->gradient_square)
		PSD_TRY(take_rate(device, update, of->weight_square, of->gradient_square, 1, err));
	else if (is_by_norms)
		PSD_TRY(find_rate(device, update, of->weight, of->gradient, of->elements, err));
	return psd_gpu_run_update(device, &run, of->elements, err);
}

static enum psd_status copy_parameters(struct psd_device *device, float *to, const float *from, uint64_t elements,
				       struct psd_error *err)
{
	return psd_gpu_copy(device, PSD_STREAM_COMPUTE, to, from, elements * sizeof(*to), err);
}

enum psd_status psd_gpu_kernel_drift(struct psd_device *device, const struct psd_drift *drift, struct psd_error *err)
{
	const struct psd_gpu_difference ends = {drift->gradient, drift->start, drift->weight, 1.0f},
					joins = {drift->weight, drift->start, drift->gradient, drift->ratio},
					parts = {drift->start, drift->weight, drift->start, 1.0f};

	switch (drift->step) {
	case PSD_DRIFT_BEGINS: return copy_parameters(device, drift->start, drift->weight, drift->elements, err);
	case PSD_DRIFT_ENDS: return psd_gpu_run_difference(device, &ends, drift->elements, err);
	case PSD_DRIFT_JOINS: return psd_gpu_run_difference(device, &joins, drift->elements, err);
	case PSD_DRIFT_PARTS: return psd_gpu_run_difference(device, &parts, drift->elements, err);
	case PSD_DRIFT_RETURNS: return copy_parameters(device, drift->weight, drift->start, drift->elements, err);
	}
	return PSD_OK;
}

enum psd_status psd_gpu_kernel_add(struct psd_device *device, const struct psd_add *of, struct psd_error *err)
{
	const struct psd_gpu_add run = {
		.left = psd_gpu_floats(of->to), .right = psd_gpu_floats(of->from), .to = psd_gpu_floats(of->to)};

	return psd_gpu_run_add(device, &run, of->elements, err);
}

/* ---- encodings ---- */

static enum psd_gpu_type type_of(const struct psd_encoding *encoding)
{
	return encoding == &psd_encoding_fp16 ? PSD_GPU_HALF : PSD_GPU_BFLOAT;
}

enum psd_status psd_gpu_kernel_convert(struct psd_device *device, const struct psd_conversion *conversion,
				       struct psd_error *err)
{
	const enum psd_gpu_type wire = type_of(conversion->encoding);
	const struct psd_gpu_convert run = {
		.from = {(void *)(uintptr_t)conversion->from, conversion->is_decoding ? wire : PSD_GPU_FLOAT},
		.to = {conversion->to, conversion->is_decoding ? PSD_GPU_FLOAT : wire},
		.scale = conversion->ratio};

	return psd_gpu_run_convert(device, &run, conversion->elements, err);
}

/* Begins to search for infinities and NaNs in parts, and combines the results on the GPU to one for all values. */
static enum psd_status look(struct psd_device *device, const struct psd_spoil *of, struct psd_error *err)
{
	const uint32_t n_parts = (uint32_t)psd_least(PSD_GPU_LOOK_PARTS, of->elements / 8 + 1);
	const uint32_t n_groups = (uint32_t)psd_least(PSD_GPU_LOOK_GROUPS, n_parts);
	const struct psd_gpu_look run = {of->values, of->elements, of->encoding->encode(INFINITY), n_parts,
					 device->scratch->look.parts};
	const struct psd_gpu_look_reduce groups = {device->scratch->look.parts, n_parts, n_groups,
						   device->scratch->look.reduced};
	const struct psd_gpu_look_reduce one = {device->scratch->look.reduced, n_groups, 1, &device->scratch->look.all};

	PSD_TRY(psd_gpu_run_look(device, &run, n_parts, err));
	PSD_TRY(psd_gpu_run_look_reduce(device, &groups, n_groups, err));
	return psd_gpu_run_look_reduce(device, &one, 1, err);
}

enum psd_status psd_gpu_kernel_spoil(struct psd_device *device, const struct psd_spoil *of, struct psd_error *err)
{
	const struct psd_gpu_spoil run = {of->values, of->encoding->encode(NAN),
					  of->is_forced ? NULL : &device->scratch->look.all};

	if (!of->is_forced)
		PSD_TRY(look(device, of, err));
	return psd_gpu_run_spoil(device, &run, of->elements, err);
}

/* ---- chunks ---- */

/* Position, in the chunks of all tensors, of the next span. */
struct cursor {
	const struct psd_chunks *chunks;
	uint32_t chunk;
	unsigned tensor;
	uint64_t first;	       /* number of the element in the bucket */
	uint64_t first_chosen; /* index of the element among the chosen values */
	uint64_t tensor_first; /* number, in the bucket, of the tensor's first element */
};

static uint64_t chunk_end(const struct psd_chunks *chunks, uint32_t chunk)
{
	return psd_least(chunks->elements, (chunk + UINT64_C(1)) * chunks->chunk_elements);
}

/* Returns the next span, and moves the cursor behind it. At least one element must be left. */
static struct psd_gpu_span next_span(struct cursor *cursor)
{
	const struct psd_chunks *chunks = cursor->chunks;
	const struct psd_chunk_tensor *tensor = &chunks->tensors[cursor->tensor];
	const uint64_t tensor_end = cursor->tensor_first + tensor->elements,
		       begin = cursor->first - cursor->tensor_first;
	const uint64_t end = psd_least(chunk_end(chunks, cursor->chunk), tensor_end);
	const struct psd_gpu_span span = {.weight = tensor->weight + begin,
					  .gradient = tensor->gradient + begin,
					  .first = cursor->first,
					  .first_chosen = cursor->first_chosen,
					  .elements = end - cursor->first,
					  .step = step_of(&tensor->update, NULL),
					  .is_chosen = chunks->is_chosen[cursor->chunk]};

	cursor->first = end;
	cursor->first_chosen += span.is_chosen ? span.elements : 0;
	if (end == tensor_end) {
		cursor->tensor++;
		cursor->tensor_first = end;
	}
	return span;
}

/* Adds spans and chunks until the launch is full. The last chunk may continue in the next launch. */
static void fill_spans(struct cursor *cursor, struct psd_gpu_spans *of)
{
	unsigned n_spans = 0;

	of->first_chunk = cursor->chunk;
	of->n_chunks = 0;
	of->is_continued = cursor->first > cursor->chunk * cursor->chunks->chunk_elements;
	while (cursor->chunk < cursor->chunks->n_chunks && of->n_chunks < PSD_GPU_CHUNKS && n_spans < PSD_GPU_SPANS) {
		const uint64_t end = chunk_end(cursor->chunks, cursor->chunk);

		while (cursor->first < end && n_spans < PSD_GPU_SPANS)
			of->spans[n_spans++] = next_span(cursor);
		of->ends[of->n_chunks++] = n_spans;
		if (cursor->first < end)
			return;
		cursor->chunk++;
	}
}

/* Begins to compute the norms of the chunks that end in this launch. */
static enum psd_status find_norms(struct psd_device *device, const struct cursor *cursor,
				  const struct psd_gpu_spans *of, double divisor, bool is_of_chosen,
				  struct psd_error *err)
{
	const struct psd_gpu_norms_reduce reduce = {device->scratch->chunks.parts, PSD_GPU_CHUNK_PARTS,
						    PSD_GPU_CHUNK_GROUPS, device->scratch->chunks.reduced};
	const uint32_t n_ended = cursor->chunk - of->first_chunk;
	struct psd_gpu_chunk_norms norms = {.reduced = device->scratch->chunks.reduced,
					    .norms = cursor->chunks->norms,
					    .first_chunk = of->first_chunk,
					    .divisor = divisor};

	PSD_TRY(psd_gpu_run_norms_reduce(device, &reduce, PSD_GPU_CHUNKS * PSD_GPU_CHUNK_GROUPS, err));
	for (uint32_t c = 0; c < n_ended; c++)
		norms.is_left_out[c] = is_of_chosen && !cursor->chunks->is_chosen[of->first_chunk + c];
	return psd_gpu_run_chunk_norms(device, &norms, n_ended, err);
}

static uint64_t indices_of(const struct psd_gpu_spans *of)
{
	return (uint64_t)of->n_chunks * PSD_GPU_CHUNK_PARTS;
}

enum psd_status psd_gpu_kernel_gather(struct psd_device *device, const struct psd_chunks *chunks, struct psd_error *err)
{
	struct psd_gpu_gather run = {
		.residual = chunks->residual, .chosen = chunks->chosen, .kept_ratio = chunks->kept_ratio};
	struct cursor cursor = {.chunks = chunks};

	run.of.partial = device->scratch->chunks.parts;
	run.of.is_relative = chunks->is_relative;
	while (cursor.chunk < chunks->n_chunks) {
		fill_spans(&cursor, &run.of);
		PSD_TRY(psd_gpu_run_gather(device, &run, indices_of(&run.of), err));
		PSD_TRY(find_norms(device, &cursor, &run.of, 1.0, false, err));
	}
	return PSD_OK;
}

enum psd_status psd_gpu_kernel_apply_chunks(struct psd_device *device, const struct psd_chunks *chunks,
					    struct psd_error *err)
{
	struct psd_gpu_apply_chunks run = {
		.history = chunks->history, .chosen = chunks->chosen, .is_skipped = chunks->is_skipped};
	struct cursor cursor = {.chunks = chunks};

	run.of.partial = device->scratch->chunks.parts;
	run.of.is_relative = chunks->is_relative;
	while (cursor.chunk < chunks->n_chunks) {
		fill_spans(&cursor, &run.of);
		PSD_TRY(psd_gpu_run_apply_chunks(device, &run, indices_of(&run.of), err));
		PSD_TRY(find_norms(device, &cursor, &run.of, chunks->workers, true, err));
	}
	return PSD_OK;
}
