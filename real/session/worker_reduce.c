/* Sums of gradients. A leader adds those of its node's workers to its own and rounds the sum to the encoding. A shard
 * sums its part of a slice in fp32, whatever the encoding, and updates what it keeps; the result is encoded afterwards.
 * Where workers update, it sends the sum itself. */
#include <stdlib.h>
#include <string.h>

#include "real/session/shard.h"
#include "real/session/worker_parts.h"

/* Encoding of gradients that arrive here. */
static const struct psd_encoding *encoding_of(const struct psd_worker *worker)
{
	return worker->plan->wire->is_lossy ? worker->plan->wire : &psd_encoding_fp32;
}

/* A worker's gradient, or the sum of all, from `offset` on. */
static struct psd_shard_part find_arrived(const struct psd_worker *worker, struct psd_task task, unsigned sender,
					  uint64_t offset)
{
	const struct psd_memory *memory = &worker->memory;
	const struct psd_op *op = &worker->program->ops[task.op];
	struct psd_shard_part part = {
		psd_memory_received(memory, (unsigned)op->item, op->slice, task.iteration, sender),
		memory->adds_arrivals ? &psd_encoding_fp32 : encoding_of(worker)};

	part.values = psd_shard_part_at(&part, offset);
	return part;
}

/* True if the worker sends this shard a gradient: every worker, or every leader. */
static bool is_heard(const struct psd_worker *worker, struct psd_task task, unsigned sender)
{
	const struct psd_op *op = &worker->program->ops[task.op];
	const struct psd_payload push = {.collective = worker->plan->items[op->item].method->collective,
					 .elements = worker->layout->shards}; /* each shard has a part of them */

	return psd_payload_range(&push, worker->layout, sender, worker->self).elements > 0;
}

/* Summands of a slice's part from `offset` on, in order of rank; own: this worker's. */
static unsigned find_parts(const struct psd_worker *worker, struct psd_task task, const void *own, uint64_t offset,
			   struct psd_shard_part parts[])
{
	const bool has_sum = worker->memory.adds_arrivals;
	unsigned n_parts = 0;

	if (has_sum)
		parts[n_parts++] = find_arrived(worker, task, 0, offset);
	for (unsigned w = 0; w < worker->layout->workers; w++) {
		if (w == worker->self)
			parts[n_parts++] = (struct psd_shard_part){own, encoding_of(worker)};
		else if (!has_sum && is_heard(worker, task, w))
			parts[n_parts++] = find_arrived(worker, task, w, offset);
	}
	return n_parts;
}

/* The item's tensor with this parameter. */
static const struct psd_tensor *tensor_at(const struct psd_worker *worker, unsigned item, const float *parameter)
{
	const struct psd_plan_item *subject = &worker->plan->items[item];
	unsigned t = psd_plan_tensor(worker->plan, subject, 0);

	for (unsigned n = 0; n < subject->n_tensors; n++) {
		const float *first;

		t = psd_plan_tensor(worker->plan, subject, n);
		first = worker->memory.parameters[t];
		if (parameter >= first && parameter < first + worker->graph->tensors[t].elements)
			break;
	}
	return &worker->graph->tensors[t];
}

/* True if a worker's gradient overflowed, which spoils its whole slice, so that every shard skips its part. The parts
 * begin with the slice's part. */
static bool is_left_out(struct psd_worker *worker, struct psd_scale *scale, const struct psd_shard_part parts[],
			unsigned n_parts)
{
	bool is_finite = true;

	if (!worker->plan->wire->is_scaled)
		return false;
	for (unsigned p = 0; p < n_parts; p++)
		is_finite = is_finite && !psd_shard_part_is_nan(&parts[p]);
	psd_scale_take(scale, is_finite);
	return !is_finite;
}

/* A tensor's piece of a shard's part. */
struct piece {
	const struct psd_tensor *tensor;
	const struct psd_shard_part *parts;
	unsigned n_parts;
	float *weight;
	uint64_t first, elements; /* in the part */
};

static void update_piece(const struct psd_worker *worker, struct psd_task task, const struct piece *piece, float ratio)
{
	const struct psd_op *op = &worker->program->ops[task.op];
	const struct psd_update update = psd_solver_update_of(
		psd_solver_update(worker->options->train, worker->global_batch, task.iteration), piece->tensor);
	const struct psd_moments moments = psd_memory_part_moments(&worker->memory, (unsigned)op->item, op->slice);

	psd_shard_reduce(&update, piece->parts, piece->n_parts, ratio, piece->weight,
			 psd_moments_from(moments, piece->first), piece->elements);
}

static void join_piece(const struct psd_worker *worker, struct psd_task task, const struct piece *piece, float ratio)
{
	const float *start = psd_worker_own_start(worker, task);

	psd_shard_join(piece->parts, piece->n_parts, ratio / (float)worker->layout->workers,
		       start ? start + piece->first : piece->weight, piece->weight, piece->elements);
}

/* Sums and applies this shard's part, tensor by tensor. */
static void run_reduce(struct psd_worker *worker, struct psd_task task, struct psd_shard_part parts[])
{
	const struct psd_op *op = &worker->program->ops[task.op];
	const struct psd_memory *memory = &worker->memory;
	const unsigned item = (unsigned)op->item;
	const struct psd_range part = psd_memory_own_part(memory, item, op->slice);
	const struct psd_range of_slice = {part.first - psd_plan_slice(&worker->plan->items[item], op->slice).first,
					   part.elements};
	struct psd_scale *scale = psd_worker_scale(worker, op);
	const float ratio = 1.0f / scale->ratio;
	struct iovec tensors[PSD_SEGMENTS_MAX], weights[PSD_SEGMENTS_MAX], own[PSD_SEGMENTS_MAX];
	const unsigned n_tensors = psd_memory_segments(memory, memory->parameters, item, part, tensors);
	const unsigned n_weights =
		psd_memory_find(memory, PSD_BUFFER_PART, op, task.iteration, of_slice, worker->self, weights);
	const unsigned n_own = psd_memory_find(memory, psd_buffer_on_wire(PSD_BUFFER_GRADIENT, worker->plan->wire), op,
					       task.iteration, of_slice, worker->self, own);
	unsigned at_weight = 0, at_own = 0;
	uint64_t offset = 0;

	if (is_left_out(worker, scale, parts, find_parts(worker, task, own[0].iov_base, 0, parts)))
		return;
	for (unsigned i = 0; i < n_tensors; i++) {
		const struct piece piece = {
			.tensor = tensor_at(worker, item, tensors[i].iov_base),
			.parts = parts,
			.n_parts = find_parts(worker, task, own[at_own].iov_base, offset, parts),
			.weight = weights[at_weight].iov_base,
			.first = offset,
			.elements = tensors[i].iov_len / sizeof(float),
		};

		(worker->plan->local ? join_piece : update_piece)(worker, task, &piece, ratio);
		psd_segments_advance(weights, n_weights, &at_weight, piece.elements * sizeof(float));
		psd_segments_advance(own, n_own, &at_own, piece.elements * encoding_of(worker)->value_bytes);
		offset += piece.elements;
	}
}

/* The sum replaces this host's own gradient and returns to the workers, which apply it. */
static void sum_part(struct psd_worker *worker, struct psd_task task, struct psd_shard_part parts[])
{
	const struct psd_op *op = &worker->program->ops[task.op];
	const unsigned item = (unsigned)op->item;
	const struct psd_encoding *encoding = encoding_of(worker);
	const struct psd_range part = psd_memory_own_part(&worker->memory, item, op->slice);
	const struct psd_range of_slice = {part.first - psd_plan_slice(&worker->plan->items[item], op->slice).first,
					   part.elements};
	struct iovec own[PSD_SEGMENTS_MAX];
	const unsigned n_own =
		psd_memory_find(&worker->memory, psd_buffer_on_wire(PSD_BUFFER_GRADIENT, worker->plan->wire), op,
				task.iteration, of_slice, worker->self, own);
	uint64_t offset = 0;

	for (unsigned i = 0; i < n_own; i++) {
		const uint64_t elements = own[i].iov_len / encoding->value_bytes;
		const unsigned n_parts = find_parts(worker, task, own[i].iov_base, offset, parts);

		psd_shard_sum(parts, n_parts, encoding, own[i].iov_base, elements);
		offset += elements;
	}
}

enum psd_status psd_worker_reduce(struct psd_worker *worker, struct psd_task task, struct psd_error *err)
{
	const struct psd_op *op = &worker->program->ops[task.op];
	const uint64_t elements = psd_memory_own_part(&worker->memory, (unsigned)op->item, op->slice).elements;
	struct psd_shard_part *parts = calloc(worker->layout->workers + 1u, sizeof(*parts));

	if (!parts)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a reduction");
	if (elements > 0)
		(worker->plan->workers_update ? sum_part : run_reduce)(worker, task, parts);
	if (worker->memory.adds_arrivals) /* for a later iteration, sent only after this is applied */
		memset(psd_memory_received(&worker->memory, (unsigned)op->item, op->slice, task.iteration, 0), 0,
		       elements * sizeof(float));
	free(parts);
	return PSD_OK;
}

/* Sums in order of rank as floats, then rounds once to the encoding. After an overflow the slice becomes NaN, like a
 * worker's own. */
static enum psd_status sum_members(struct psd_worker *worker, struct psd_task task, struct psd_shard_part parts[],
				   unsigned n_parts, struct psd_error *err)
{
	const struct psd_op *op = &worker->program->ops[task.op];
	const struct psd_encoding *encoding = encoding_of(worker);
	const unsigned item = (unsigned)op->item;
	const struct psd_range slice = {0, psd_plan_slice(&worker->plan->items[item], op->slice).elements};
	struct iovec own[PSD_SEGMENTS_MAX];
	const unsigned n_own =
		psd_memory_find(&worker->memory, psd_buffer_on_wire(PSD_BUFFER_GRADIENT, worker->plan->wire), op,
				task.iteration, slice, worker->self, own);

	for (unsigned p = 1; p < n_parts; p++)
		parts[p] = (struct psd_shard_part){
			psd_memory_member(&worker->memory, item, op->slice, task.iteration, worker->self + p),
			encoding};
	for (unsigned i = 0; i < n_own; i++) {
		const uint64_t elements = own[i].iov_len / encoding->value_bytes;

		parts[0] = (struct psd_shard_part){own[i].iov_base, encoding};
		psd_shard_sum(parts, n_parts, encoding, own[i].iov_base, elements);
		for (unsigned p = 1; p < n_parts; p++)
			parts[p].values = psd_shard_part_at(&parts[p], elements);
	}
	return worker->plan->wire->is_scaled
		       ? psd_device_spoil_here(worker->device, encoding, own[0].iov_base, slice.elements, false, err)
		       : PSD_OK;
}

enum psd_status psd_worker_sum_node(struct psd_worker *worker, struct psd_task task, struct psd_error *err)
{
	const unsigned n_here = psd_layout_n_led(worker->layout, worker->self) + 1;
	struct psd_shard_part *parts = calloc(n_here, sizeof(*parts));
	enum psd_status status;

	if (!parts)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a node's sum");
	status = sum_members(worker, task, parts, n_here, err);
	free(parts);
	return status;
}
