/* Values that move within a host: lossy encodings before sending and after receiving, copies between the memories of
 * device and host, and copies within a memory. The host that makes a sum, factors or parameters for
 * all workers decodes them like the others, so that all have the same bits.
 *
 * An overflow of a scaled encoding shows as infinity or NaN in an all-reduce's sum and in factors, which every worker
 * has completely. Where shards have parts, the worker with the overflow makes its whole slice NaN; each shard sees that
 * in its part and answers with NaN parameters, as does a root that finds such factors. So all hosts skip the same
 * updates. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "real/base/values.h"
#include "real/work/work.h"

/* Two buffers of the same values: `plain` as floats, `encoded` as sent. */
struct sides {
	struct iovec plain[PSD_SEGMENTS_MAX], encoded[PSD_SEGMENTS_MAX];
	unsigned n_plain, n_encoded;
};

/* Elements that the operation moves on this host, counted from the first element of its slice. */
static struct psd_range range_of(const struct psd_work *work, struct psd_task task)
{
	const struct psd_op *op = &work->host->program->ops[task.op];
	const struct psd_plan_item *item = &work->host->plan->items[op->item];

	if (item->method->keeps[PSD_BUFFER_CHOSEN])
		return (struct psd_range){0, psd_work_travelling(work, task)};
	return psd_view_range(work->host->plan, item, op->slice, op->source, work->host->self);
}

/* True if the device has them; else they are in host memory. */
static bool works_on_device(const struct psd_op *op)
{
	return op->resource == PSD_RESOURCE_DEVICE;
}

static const struct psd_kernels *kernels_of(const struct psd_work *work, const struct psd_op *op)
{
	return works_on_device(op) ? work->host->kind->kernels : &psd_kernels_here;
}

static struct sides find_sides(const struct psd_work *work, struct psd_task task, unsigned sender)
{
	const struct psd_op *op = &work->host->program->ops[task.op];
	const bool is_decoding = psd_buffers[op->source.buffer].is_encoded;
	const struct psd_range range = range_of(work, task);
	const struct psd_memory *memory = works_on_device(op) ? work->host->on_device : &work->host->memory;
	struct sides sides;

	sides.n_plain = psd_memory_find(memory, is_decoding ? op->target.buffer : op->source.buffer, op, task.iteration,
					range, sender, sides.plain);
	sides.n_encoded = psd_memory_find(memory, is_decoding ? op->source.buffer : op->target.buffer, op,
					  task.iteration, range, sender, sides.encoded);
	return sides;
}

static uint64_t elements_of(const struct psd_encoding *wire, const struct iovec *encoded)
{
	return encoded->iov_len / wire->value_bytes;
}

/* Scale of a segment: 1 for parameters. Only the top factor is a gradient. */
static float ratio_of(enum psd_buffer plain, unsigned piece, float gradient_ratio)
{
	const enum psd_buffer encoded = psd_buffers[plain].on_wire;
	const bool is_activation = encoded == PSD_BUFFER_ENCODED_FACTORS && piece > 0;

	return encoded == PSD_BUFFER_ENCODED_PARAMETER || is_activation ? 1.0f : gradient_ratio;
}

/* No segment of plain values crosses two encoded ones. */
static enum psd_status convert(const struct psd_work *work, const struct psd_op *op, struct sides *sides,
			       float gradient_ratio, struct psd_error *err)
{
	const bool is_decoding = psd_buffers[op->source.buffer].is_encoded;
	unsigned at = 0;

	for (unsigned p = 0; p < sides->n_plain; p++) {
		const float ratio = ratio_of(is_decoding ? op->target.buffer : op->source.buffer, p, gradient_ratio);
		void *plain = sides->plain[p].iov_base, *encoded = sides->encoded[at].iov_base;
		const struct psd_conversion conversion = {
			.encoding = work->host->plan->wire,
			.to = is_decoding ? plain : encoded,
			.from = is_decoding ? encoded : plain,
			.elements = sides->plain[p].iov_len / sizeof(float),
			.ratio = is_decoding ? 1.0f / ratio : ratio,
			.is_decoding = is_decoding,
		};

		PSD_TRY(psd_run_convert(kernels_of(work, op), work->host->device, &conversion, err));
		psd_segments_advance(sides->encoded, sides->n_encoded, &at,
				     conversion.elements * work->host->plan->wire->value_bytes);
	}
	return PSD_OK;
}

/* ---- outgoing ---- */

/* Makes the values NaN, so that nobody updates with them: the source's update was skipped, or the values overflowed
 * where no other host sees all of them. */
static enum psd_status spoil(const struct psd_work *work, const struct psd_op *op, const struct sides *sides,
			     struct psd_error *err)
{
	const struct psd_encoding *wire = work->host->plan->wire;
	const bool is_parameter = op->target.buffer == PSD_BUFFER_ENCODED_PARAMETER;
	const bool is_left_out = is_parameter && psd_work_scale(work, op)->is_skipped;
	const bool is_looked_at = !is_parameter && work->host->plan->items[op->item].method->keeps[PSD_BUFFER_RECEIVED];

	if (!wire->is_scaled || !(is_left_out || is_looked_at))
		return PSD_OK;
	assert(sides->n_encoded == 1);
	const struct psd_spoil run = {wire, sides->encoded[0].iov_base, elements_of(wire, &sides->encoded[0]),
				      is_left_out};
	return psd_run_spoil(kernels_of(work, op), work->host->device, &run, err);
}

static enum psd_status encode(const struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	const struct psd_op *op = &work->host->program->ops[task.op];
	const struct sides sides = find_sides(work, task, work->host->self);
	struct sides walked = sides;

	PSD_TRY(convert(work, op, &walked, psd_work_scale(work, op)->ratio, err));
	return spoil(work, op, &sides, err);
}

/* ---- incoming ---- */

/* Senders of the values. */
struct senders {
	unsigned first, end;
};

static struct senders senders_of(const struct psd_work *work, const struct psd_op *op)
{
	if (psd_buffers[op->source.buffer].content == PSD_CONTENT_FACTORS)
		return (struct senders){0, work->host->layout->workers};
	return (struct senders){work->host->self, work->host->self + 1};
}

/* True if this host has values of the sender in the task's iteration. */
static bool has_of(const struct psd_work *work, struct psd_task task, unsigned sender)
{
	const struct psd_plan_item *item = &work->host->plan->items[work->host->program->ops[task.op].item];

	return psd_plan_has_factors(work->host->plan, item, task.iteration, work->host->self, sender);
}

/* Skipped parameters are all NaN. */
static bool is_good(const struct psd_work *work, struct psd_task task, unsigned sender)
{
	const struct psd_encoding *wire = work->host->plan->wire;
	const struct psd_op *op = &work->host->program->ops[task.op];
	struct iovec segments[PSD_SEGMENTS_MAX];
	const unsigned n_segments = psd_memory_find(&work->host->memory, op->source.buffer, op, task.iteration,
						    range_of(work, task), sender, segments);
	bool is = true;

	if (op->source.buffer == PSD_BUFFER_ENCODED_PARAMETER)
		return !isnan(wire->decode(*(const uint16_t *)segments[0].iov_base));
	for (unsigned p = 0; p < n_segments && is; p++)
		is = psd_values_are_finite(wire, segments[p].iov_base, elements_of(wire, &segments[p]));
	return is;
}

static void judge_arrival(const struct psd_work *work, struct psd_task task)
{
	const struct psd_op *op = &work->host->program->ops[task.op];
	const struct senders senders = senders_of(work, op);
	const bool is_of_each = psd_buffers[op->source.buffer].content == PSD_CONTENT_FACTORS;
	const unsigned n_scales = is_of_each ? work->host->plan->items[op->item].n_slices : 1;
	struct psd_scale *scales = psd_work_scale(work, op);
	bool are_good = true;

	if (!work->host->plan->wire->is_scaled)
		return;
	for (unsigned sender = senders.first; sender < senders.end && are_good; sender++)
		are_good = !has_of(work, task, sender) || is_good(work, task, sender);
	for (unsigned s = 0; s < n_scales; s++)
		psd_scale_take(&scales[s], are_good);
}

static enum psd_status decode(const struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	const struct psd_op *op = &work->host->program->ops[task.op];
	const struct senders senders = senders_of(work, op);
	const struct psd_scale *scale = psd_work_scale(work, op);

	if (!works_on_device(op) || work->host->on_device == &work->host->memory)
		judge_arrival(work, task);
	if (scale->is_skipped && op->target.buffer == PSD_BUFFER_PARAMETER)
		return PSD_OK; /* unchanged */
	for (unsigned sender = senders.first; sender < senders.end; sender++) {
		struct sides sides;

		if (!has_of(work, task, sender))
			continue;
		sides = find_sides(work, task, sender);
		PSD_TRY(convert(work, op, &sides, scale->last_ratio, err));
	}
	return PSD_OK;
}

/* ---- within a memory ---- */

/* Arrays of tensors; NULL for a buffer that has the values of its owner without gaps. */
static float *const *tensors_of(const struct psd_memory *memory, enum psd_buffer buffer, uint32_t iteration)
{
	if (buffer == PSD_BUFFER_PARAMETER)
		return memory->parameters;
	return buffer == PSD_BUFFER_GRADIENT ? psd_memory_gradients(memory, iteration) : NULL;
}

static enum psd_status move_piece(const struct psd_work *work, const struct psd_op *op, float *to, const float *from,
				  uint64_t elements, struct psd_error *err)
{
	const struct psd_host *host = work->host;

	if (host->kind->copy && works_on_device(op))
		return host->kind->copy(host->device, PSD_STREAM_COMPUTE, to, from, elements * sizeof(*to), err);
	memcpy(to, from, elements * sizeof(*to));
	return PSD_OK;
}

/* Moves values between tensors and a buffer that has them without gaps. */
static enum psd_status move(const struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	const struct psd_host *host = work->host;
	const struct psd_op *op = &host->program->ops[task.op];
	const struct psd_plan_item *item = &host->plan->items[op->item];
	const struct psd_memory *memory = works_on_device(op) ? host->on_device : &host->memory;
	float *const *from = tensors_of(memory, op->source.buffer, task.iteration);
	float *const *tensors = from ? from : tensors_of(memory, op->target.buffer, task.iteration);
	float *packed = psd_memory_buffer(memory, from ? op->target.buffer : op->source.buffer, (unsigned)op->item,
					  task.iteration);
	const struct psd_range of_slice = range_of(work, task);
	const struct psd_range range = {psd_plan_slice(item, op->slice).first + of_slice.first, of_slice.elements};

	assert(tensors);
	for (unsigned n = 0; n < item->n_tensors; n++) {
		const struct psd_piece piece = psd_plan_piece(host->plan, item, range, n);
		float *values = tensors[psd_plan_tensor(host->plan, item, n)] + piece.first;

		if (piece.elements > 0)
			PSD_TRY(move_piece(work, op, from ? packed : values, from ? values : packed, piece.elements,
					   err));
		packed += piece.elements;
	}
	return PSD_OK;
}

static enum psd_status convert_values(struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	const struct psd_op *op = &work->host->program->ops[task.op];

	if (psd_buffers[op->source.buffer].is_encoded)
		return decode(work, task, err);
	return psd_buffers[op->target.buffer].is_encoded ? encode(work, task, err) : move(work, task, err);
}

/* ---- copies between the memories of device and host ---- */

static enum psd_status copy_values(const struct psd_work *work, const struct psd_op *op, void *here, void *there,
				   uint64_t bytes, struct psd_error *err)
{
	const bool is_out = op->resource == PSD_RESOURCE_COPY_OUT;

	return work->host->kind->copy(work->host->device, is_out ? PSD_STREAM_COPY_OUT : PSD_STREAM_COPY_IN,
				      is_out ? here : there, is_out ? there : here, bytes, err);
}

/* Copies parameters tensor by tensor. */
static enum psd_status copy_parameters(const struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	const struct psd_host *host = work->host;
	const struct psd_op *op = &host->program->ops[task.op];
	const struct psd_plan_item *item = &host->plan->items[op->item];
	const struct psd_range of_slice = range_of(work, task);
	const struct psd_range range = {psd_plan_slice(item, op->slice).first + of_slice.first, of_slice.elements};

	for (unsigned n = 0; n < item->n_tensors; n++) {
		const struct psd_piece piece = psd_plan_piece(host->plan, item, range, n);
		const unsigned t = psd_plan_tensor(host->plan, item, n);

		if (piece.elements > 0)
			PSD_TRY(copy_values(work, op, host->memory.parameters[t] + piece.first,
					    host->on_device->parameters[t] + piece.first,
					    piece.elements * sizeof(float), err));
	}
	return PSD_OK;
}

/* The copy of what `sender` has of a buffer, or sent of it. */
static enum psd_status copy_of(const struct psd_work *work, struct psd_task task, unsigned sender,
			       struct psd_error *err)
{
	const struct psd_op *op = &work->host->program->ops[task.op];
	const struct psd_range range = range_of(work, task);
	struct iovec here[PSD_SEGMENTS_MAX], there[PSD_SEGMENTS_MAX];
	const unsigned n =
		psd_memory_find(&work->host->memory, op->source.buffer, op, task.iteration, range, sender, here);
	const unsigned n_there =
		psd_memory_find(work->host->on_device, op->source.buffer, op, task.iteration, range, sender, there);

	assert(n == n_there);
	for (unsigned i = 0; i < n; i++) {
		assert(here[i].iov_len == there[i].iov_len);
		PSD_TRY(copy_values(work, op, here[i].iov_base, there[i].iov_base, here[i].iov_len, err));
	}
	return PSD_OK;
}

static enum psd_status copy(struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	const struct psd_op *op = &work->host->program->ops[task.op];

	if (op->resource == PSD_RESOURCE_COPY_IN && psd_buffers[op->source.buffer].is_encoded)
		judge_arrival(work, task);
	if (op->source.buffer == PSD_BUFFER_PARAMETER)
		return copy_parameters(work, task, err);
	if (psd_buffers[op->source.buffer].content != PSD_CONTENT_FACTORS || op->resource == PSD_RESOURCE_COPY_OUT)
		return copy_of(work, task, work->host->self, err);
	/* own values are there already; in a lossy encoding all are taken as decoded */
	for (unsigned sender = 0; sender < work->host->layout->workers; sender++)
		if (has_of(work, task, sender) && (sender != work->host->self || work->host->plan->wire->is_lossy))
			PSD_TRY(copy_of(work, task, sender, err));
	return PSD_OK;
}

const struct psd_family psd_family_moves = {
	.rows = {{PSD_RUNS(CONVERT, convert_values), .is_small = psd_work_has_few},
		 {PSD_RUNS(COPY_OUT, copy)},
		 {PSD_RUNS(COPY_IN, copy)}},
};
