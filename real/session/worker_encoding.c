/* What a worker does to values before they leave and after they have arrived, where they travel in a lossy encoding.
 * Whoever makes something that all workers go on with, sum, factors or parameters, takes it as the others have it from
 * the wire, so that all have the same bits.
 *
 * What leaves the range of a scaled encoding is an infinity or a NaN in the sum of an all-reduce and in factors, which
 * every worker has as a whole. Where each shard has a part, whoever's gradient it is makes all of the slice NaNs; each
 * shard finds that in its part, and answers with NaNs as parameters, as does a root that finds such factors. So all
 * hosts leave the same updates out. */
#include <math.h>

#include "real/base/values.h"
#include "real/session/worker_parts.h"

/* Slices of the items before. */
static unsigned slices_before(const struct psd_worker *worker, unsigned item)
{
	unsigned n = 0;

	for (unsigned i = 0; i < item; i++)
		n += worker->plan->items[i].n_slices;
	return n;
}

static struct psd_scale *make_scales(struct psd_worker *worker)
{
	const unsigned n = slices_before(worker, worker->plan->n_items);
	struct psd_scale *scales = psd_arena_take(&worker->arena, n * sizeof(*scales));

	for (unsigned i = 0; scales && i < n; i++)
		scales[i] = psd_scale_make(worker->plan->wire, worker->options->train->loss_scale);
	return scales;
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

/* One buffer's values beside the other's: `plain` as floats, `encoded` as they travel. */
struct sides {
	struct iovec plain[PSD_PIECES_MAX], encoded[PSD_PIECES_MAX];
	unsigned n_plain, n_encoded;
};

/* What of the operation's slice it converts. */
static struct psd_range range_of(const struct psd_worker *worker, const struct psd_op *op)
{
	const struct psd_plan_item *item = &worker->plan->items[op->item];
	const struct psd_range slice = psd_plan_slice(item, op->slice);

	if (psd_buffers[op->source].extent == PSD_EXTENT_PART) {
		const struct psd_range part = psd_memory_own_part(&worker->memory, (unsigned)op->item, op->slice);

		return (struct psd_range){part.first - slice.first, part.elements};
	}
	if (item->method->keeps[PSD_BUFFER_CHOSEN])
		return (struct psd_range){0, psd_chosen_elements(&worker->chosen, worker->plan, (unsigned)op->item)};
	return (struct psd_range){0, slice.elements};
}

static struct sides find_sides(const struct psd_worker *worker, struct psd_task task, unsigned sender)
{
	const struct psd_op *op = &worker->program->ops[task.op];
	const bool is_arrival = psd_buffers[op->source].is_encoded;
	const struct psd_range range = range_of(worker, op);
	struct sides sides;

	sides.n_plain = psd_memory_find(&worker->memory, is_arrival ? op->target : op->source, op, task.iteration,
					range, sender, sides.plain);
	sides.n_encoded = psd_memory_find(&worker->memory, is_arrival ? op->source : op->target, op, task.iteration,
					  range, sender, sides.encoded);
	return sides;
}

static uint64_t elements_of(const struct psd_encoding *wire, const struct iovec *encoded)
{
	return encoded->iov_len / wire->value_bytes;
}

static bool are_finite(const struct psd_encoding *wire, const struct sides *sides)
{
	bool are = true;

	for (unsigned p = 0; p < sides->n_encoded; p++)
		are = are &&
		      psd_values_are_finite(wire, sides->encoded[p].iov_base, elements_of(wire, &sides->encoded[p]));
	return are;
}

static void spoil(const struct psd_encoding *wire, const struct sides *sides)
{
	for (unsigned p = 0; p < sides->n_encoded; p++)
		for (uint64_t e = 0; e < elements_of(wire, &sides->encoded[p]); e++)
			((uint16_t *)sides->encoded[p].iov_base)[e] = wire->encode(NAN);
}

/* Gradients are small, parameters are not. Of factors the top one is a gradient. */
static float ratio_of(enum psd_buffer plain, unsigned piece, float gradient_ratio)
{
	switch (plain) {
	case PSD_BUFFER_PARAMETER:
	case PSD_BUFFER_MASTER:
	case PSD_BUFFER_PART: return 1.0f;
	case PSD_BUFFER_FACTORS: return piece == 0 ? gradient_ratio : 1.0f;
	case PSD_BUFFER_GRADIENT:
	case PSD_BUFFER_CHOSEN:
	case PSD_BUFFER_HISTORY:
	case PSD_BUFFER_RESIDUAL:
	case PSD_BUFFER_NORMS:
	case PSD_BUFFER_PART_HISTORY:
	case PSD_BUFFER_RECEIVED:
	case PSD_BUFFER_ENCODED_GRADIENT:
	case PSD_BUFFER_ENCODED_PARAMETER:
	case PSD_BUFFER_ENCODED_FACTORS:
	case PSD_BUFFERS: break;
	}
	return gradient_ratio;
}

/* No piece of values goes beyond a piece of what they are encoded to. */
static void convert(const struct psd_worker *worker, const struct psd_op *op, struct sides *sides, float gradient_ratio)
{
	const struct psd_encoding *wire = worker->plan->wire;
	const bool is_arrival = psd_buffers[op->source].is_encoded;
	unsigned at = 0;

	for (unsigned p = 0; p < sides->n_plain; p++) {
		const float ratio = ratio_of(is_arrival ? op->target : op->source, p, gradient_ratio);
		const uint64_t n = sides->plain[p].iov_len / sizeof(float);

		if (is_arrival)
			psd_values_decode(wire, sides->plain[p].iov_base, sides->encoded[at].iov_base, 1.0f / ratio, n);
		else
			psd_values_encode(wire, sides->encoded[at].iov_base, sides->plain[p].iov_base, ratio, n);
		psd_pieces_advance(sides->encoded, sides->n_encoded, &at, n * wire->value_bytes);
	}
}

/* ---- out ---- */

/* The update of what it is made from was left out, or what it is made from has left the range and no other host would
 * see all of that. */
static bool is_spoilt(const struct psd_worker *worker, const struct psd_op *op, const struct sides *sides)
{
	if (!worker->plan->wire->is_scaled)
		return false;
	if (op->target == PSD_BUFFER_ENCODED_PARAMETER)
		return psd_worker_scale(worker, op)->is_skipped;
	return worker->plan->items[op->item].method->keeps[PSD_BUFFER_RECEIVED] &&
	       !are_finite(worker->plan->wire, sides);
}

static void encode(const struct psd_worker *worker, struct psd_task task)
{
	const struct psd_op *op = &worker->program->ops[task.op];
	const struct sides sides = find_sides(worker, task, worker->self);
	struct sides walked = sides;

	convert(worker, op, &walked, psd_worker_scale(worker, op)->ratio);
	if (is_spoilt(worker, op, &sides))
		spoil(worker->plan->wire, &sides);
}

/* ---- in ---- */

/* Nothing of what has arrived, of so many senders, has left the range. */
static bool is_good(const struct psd_worker *worker, struct psd_task task, unsigned first, unsigned end)
{
	const struct psd_encoding *wire = worker->plan->wire;
	bool is = true;

	for (unsigned sender = first; sender < end && is; sender++) {
		const struct sides sides = find_sides(worker, task, sender);

		if (worker->program->ops[task.op].source == PSD_BUFFER_ENCODED_PARAMETER)
			is = !isnan(wire->decode(*(const uint16_t *)sides.encoded[0].iov_base));
		else
			is = are_finite(wire, &sides);
	}
	return is;
}

static void decode(struct psd_worker *worker, struct psd_task task)
{
	const struct psd_op *op = &worker->program->ops[task.op];
	const bool is_of_each = psd_buffers[op->source].extent == PSD_EXTENT_EACH_FACTORS;
	const unsigned first = is_of_each ? 0 : worker->self, end = is_of_each ? worker->layout->workers : first + 1;
	struct psd_scale *scales = psd_worker_scale(worker, op);
	const unsigned n_scales = is_of_each ? worker->plan->items[op->item].n_slices : 1;
	const float ratio = scales->ratio;
	const bool is_left_out = worker->plan->wire->is_scaled && !is_good(worker, task, first, end);

	for (unsigned s = 0; s < n_scales && worker->plan->wire->is_scaled; s++)
		psd_scale_take(&scales[s], !is_left_out);
	if (is_left_out && op->target == PSD_BUFFER_PARAMETER)
		return; /* they are as they were */
	for (unsigned sender = first; sender < end; sender++) {
		struct sides sides = find_sides(worker, task, sender);

		convert(worker, op, &sides, ratio);
	}
}

void psd_worker_convert(struct psd_worker *worker, struct psd_task task)
{
	if (psd_buffers[worker->program->ops[task.op].source].is_encoded)
		decode(worker, task);
	else
		encode(worker, task);
}
