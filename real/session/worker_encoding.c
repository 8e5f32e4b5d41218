/* Lossy encodings of values before sending and after receiving. The host that makes a sum, factors or parameters for
 * all workers decodes them like the others, so that all have the same bits.
 *
 * An overflow of a scaled encoding shows as infinity or NaN in an all-reduce's sum and in factors, which every worker
 * has completely. Where shards have parts, the worker with the overflow makes its whole slice NaN; each shard sees that
 * in its part and answers with NaN parameters, as does a root that finds such factors. So all hosts skip the same
 * updates. */
#include <assert.h>
#include <math.h>

#include "real/base/values.h"
#include "real/session/worker_parts.h"

/* Slices of the items before this one. */
static unsigned slices_before(const struct psd_worker *worker, unsigned item)
{
	unsigned n = 0;

	for (unsigned i = 0; i < item; i++)
		n += worker->plan->items[i].n_slices;
	return n;
}

static struct psd_scale *make_scales(struct psd_worker *worker)
{
	const unsigned n = psd_worker_count_scales(worker);
	struct psd_scale *scales = psd_arena_take(&worker->arena, n * sizeof(*scales));

	for (unsigned i = 0; scales && i < n; i++)
		scales[i] = psd_scale_make(worker->plan->wire, worker->options->train->loss_scale);
	return scales;
}

unsigned psd_worker_count_scales(const struct psd_worker *worker)
{
	return slices_before(worker, worker->plan->n_items);
}

enum psd_status psd_worker_open_encoding(struct psd_worker *worker, struct psd_error *err)
{
	worker->scales = make_scales(worker);
	worker->sum_scales = make_scales(worker);
	if (!worker->scales || !worker->sum_scales)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for %u items", worker->plan->n_items);
	return PSD_OK;
}

struct psd_scale *psd_worker_scale(const struct psd_worker *worker, const struct psd_op *op)
{
	const bool is_of_workers = op->where == PSD_WHERE_WORKERS || op->where == PSD_WHERE_GROUP;

	return (is_of_workers ? worker->scales : worker->sum_scales) + slices_before(worker, (unsigned)op->item) +
	       op->slice;
}

void psd_worker_count_updates(const struct psd_worker *worker, struct psd_worker_result *result)
{
	const unsigned n = worker->scales ? slices_before(worker, worker->plan->n_items) : 0;

	for (unsigned i = 0; i < n; i++) {
		result->n_updates += worker->scales[i].n_taken;
		result->n_left_out += worker->scales[i].n_left_out;
	}
}

/* Two buffers of the same values: `plain` as floats, `encoded` as sent. */
struct sides {
	struct iovec plain[PSD_SEGMENTS_MAX], encoded[PSD_SEGMENTS_MAX];
	unsigned n_plain, n_encoded;
};

struct psd_range psd_worker_range(const struct psd_worker *worker, const struct psd_op *op)
{
	const struct psd_plan_item *item = &worker->plan->items[op->item];
	const struct psd_range slice = psd_plan_slice(item, op->slice);
	const enum psd_extent extent = psd_buffers[op->source].extent;

	if (extent == PSD_EXTENT_PART) {
		const struct psd_range part = psd_memory_own_part(&worker->memory, (unsigned)op->item, op->slice);

		return (struct psd_range){part.first - slice.first, part.elements};
	}
	if (extent == PSD_EXTENT_BLOCKS || extent == PSD_EXTENT_LEFT || extent == PSD_EXTENT_RIGHT)
		return (struct psd_range){0, psd_memory_elements(&worker->memory, (unsigned)op->item, op->source)};
	if (item->method->keeps[PSD_BUFFER_CHOSEN])
		return (struct psd_range){
			0, psd_chunk_selection_elements(&worker->selection, worker->plan, (unsigned)op->item)};
	return (struct psd_range){0, slice.elements};
}

/* True if the device has them; else they are in host memory. */
static bool works_on_device(const struct psd_op *op)
{
	return op->resource == PSD_RESOURCE_DEVICE;
}

static struct sides find_sides(const struct psd_worker *worker, struct psd_task task, unsigned sender)
{
	const struct psd_op *op = &worker->program->ops[task.op];
	const bool is_decoding = psd_buffers[op->source].is_encoded;
	const struct psd_range range = psd_worker_range(worker, op);
	const struct psd_memory *memory = works_on_device(op) ? worker->on_device : &worker->memory;
	struct sides sides;

	sides.n_plain = psd_memory_find(memory, is_decoding ? op->target : op->source, op, task.iteration, range,
					sender, sides.plain);
	sides.n_encoded = psd_memory_find(memory, is_decoding ? op->source : op->target, op, task.iteration, range,
					  sender, sides.encoded);
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
static enum psd_status convert(struct psd_worker *worker, const struct psd_op *op, struct sides *sides,
			       float gradient_ratio, struct psd_error *err)
{
	const bool is_decoding = psd_buffers[op->source].is_encoded;
	unsigned at = 0;

	for (unsigned p = 0; p < sides->n_plain; p++) {
		const float ratio = ratio_of(is_decoding ? op->target : op->source, p, gradient_ratio);
		void *plain = sides->plain[p].iov_base, *encoded = sides->encoded[at].iov_base;
		const struct psd_conversion conversion = {
			.encoding = worker->plan->wire,
			.to = is_decoding ? plain : encoded,
			.from = is_decoding ? encoded : plain,
			.elements = sides->plain[p].iov_len / sizeof(float),
			.ratio = is_decoding ? 1.0f / ratio : ratio,
			.is_decoding = is_decoding,
		};

		PSD_TRY((works_on_device(op) ? worker->kind->convert : psd_device_convert_here)(worker->device,
												&conversion, err));
		psd_segments_advance(sides->encoded, sides->n_encoded, &at,
				     conversion.elements * worker->plan->wire->value_bytes);
	}
	return PSD_OK;
}

/* ---- outgoing ---- */

/* Makes the values NaN, so that nobody updates with them: the source's update was skipped, or the values overflowed
 * where no other host sees all of them. */
static enum psd_status spoil(struct psd_worker *worker, const struct psd_op *op, const struct sides *sides,
			     struct psd_error *err)
{
	const struct psd_encoding *wire = worker->plan->wire;
	const bool is_parameter = op->target == PSD_BUFFER_ENCODED_PARAMETER;
	const bool is_left_out = is_parameter && psd_worker_scale(worker, op)->is_skipped;
	const bool is_looked_at = !is_parameter && worker->plan->items[op->item].method->keeps[PSD_BUFFER_RECEIVED];

	if (!wire->is_scaled || !(is_left_out || is_looked_at))
		return PSD_OK;
	assert(sides->n_encoded == 1);
	return (works_on_device(op) ? worker->kind->spoil
				    : psd_device_spoil_here)(worker->device, wire, sides->encoded[0].iov_base,
							     elements_of(wire, &sides->encoded[0]), is_left_out, err);
}

static enum psd_status encode(struct psd_worker *worker, struct psd_task task, struct psd_error *err)
{
	const struct psd_op *op = &worker->program->ops[task.op];
	const struct sides sides = find_sides(worker, task, worker->self);
	struct sides walked = sides;

	PSD_TRY(convert(worker, op, &walked, psd_worker_scale(worker, op)->ratio, err));
	return spoil(worker, op, &sides, err);
}

/* ---- incoming ---- */

/* Senders of the values. */
struct senders {
	unsigned first, end;
};

static struct senders senders_of(const struct psd_worker *worker, const struct psd_op *op)
{
	if (psd_buffers[op->source].extent == PSD_EXTENT_EACH_FACTORS)
		return (struct senders){0, worker->layout->workers};
	return (struct senders){worker->self, worker->self + 1};
}

/* Skipped parameters are all NaN. */
static bool is_good(const struct psd_worker *worker, struct psd_task task, unsigned sender)
{
	const struct psd_encoding *wire = worker->plan->wire;
	const struct psd_op *op = &worker->program->ops[task.op];
	struct iovec segments[PSD_SEGMENTS_MAX];
	const unsigned n_segments = psd_memory_find(&worker->memory, op->source, op, task.iteration,
						    psd_worker_range(worker, op), sender, segments);
	bool is = true;

	if (op->source == PSD_BUFFER_ENCODED_PARAMETER)
		return !isnan(wire->decode(*(const uint16_t *)segments[0].iov_base));
	for (unsigned p = 0; p < n_segments && is; p++)
		is = psd_values_are_finite(wire, segments[p].iov_base, elements_of(wire, &segments[p]));
	return is;
}

void psd_worker_judge_arrival(struct psd_worker *worker, struct psd_task task)
{
	const struct psd_op *op = &worker->program->ops[task.op];
	const struct senders senders = senders_of(worker, op);
	const bool is_of_each = psd_buffers[op->source].extent == PSD_EXTENT_EACH_FACTORS;
	const unsigned n_scales = is_of_each ? worker->plan->items[op->item].n_slices : 1;
	struct psd_scale *scales = psd_worker_scale(worker, op);
	bool are_good = true;

	if (!worker->plan->wire->is_scaled)
		return;
	for (unsigned sender = senders.first; sender < senders.end && are_good; sender++)
		are_good = is_good(worker, task, sender);
	for (unsigned s = 0; s < n_scales; s++)
		psd_scale_take(&scales[s], are_good);
}

static enum psd_status decode(struct psd_worker *worker, struct psd_task task, struct psd_error *err)
{
	const struct psd_op *op = &worker->program->ops[task.op];
	const struct senders senders = senders_of(worker, op);
	const struct psd_scale *scale = psd_worker_scale(worker, op);

	if (!works_on_device(op) || worker->on_device == &worker->memory)
		psd_worker_judge_arrival(worker, task);
	if (scale->is_skipped && op->target == PSD_BUFFER_PARAMETER)
		return PSD_OK; /* unchanged */
	for (unsigned sender = senders.first; sender < senders.end; sender++) {
		struct sides sides = find_sides(worker, task, sender);

		PSD_TRY(convert(worker, op, &sides, scale->last_ratio, err));
	}
	return PSD_OK;
}

enum psd_status psd_worker_convert(struct psd_worker *worker, struct psd_task task, struct psd_error *err)
{
	const bool is_decoding = psd_buffers[worker->program->ops[task.op].source].is_encoded;

	return (is_decoding ? decode : encode)(worker, task, err);
}
