/* Sums of gradients. A leader adds those of its node's workers to its own and rounds the sum to the encoding. A shard
 * sums its part of a slice in fp32, whatever the encoding, and updates what it keeps; the result is encoded afterwards.
 * Where workers update, it sends the sum itself. */
#include <stdlib.h>
#include <string.h>

#include "real/work/shard.h"
#include "real/work/work.h"

/* Encoding of gradients that arrive here. */
static const struct psd_encoding *encoding_of(const struct psd_work *work)
{
	return work->host->plan->wire->is_lossy ? work->host->plan->wire : &psd_encoding_fp32;
}

/* A worker's gradient, or the sum of all, from `offset` on. */
static struct psd_shard_part find_arrived(const struct psd_work *work, struct psd_task task, unsigned sender,
					  uint64_t offset)
{
	const struct psd_memory *memory = &work->host->memory;
	const struct psd_op *op = &work->host->program->ops[task.op];
	struct psd_shard_part part = {
		psd_memory_received(memory, (unsigned)op->item, op->slice, task.iteration, sender),
		memory->adds_arrivals ? &psd_encoding_fp32 : encoding_of(work)};

	part.values = psd_shard_part_at(&part, offset);
	return part;
}

/* True if the worker sends this shard a gradient: every worker, or every leader. */
static bool is_heard(const struct psd_work *work, struct psd_task task, unsigned sender)
{
	const struct psd_op *op = &work->host->program->ops[task.op];
	const struct psd_payload push = {.collective = work->host->plan->items[op->item].method->collective,
					 .elements = work->host->layout->shards}; /* each shard has a part of them */

	return psd_payload_range(&push, work->host->layout, sender, work->host->self).elements > 0;
}

/* Summands of a slice's part from `offset` on, in order of rank; own: this worker's. */
static unsigned find_parts(const struct psd_work *work, struct psd_task task, const void *own, uint64_t offset,
			   struct psd_shard_part parts[])
{
	const bool has_sum = work->host->memory.adds_arrivals;
	unsigned n_parts = 0;

	if (has_sum)
		parts[n_parts++] = find_arrived(work, task, 0, offset);
	for (unsigned w = 0; w < work->host->layout->workers; w++) {
		if (w == work->host->self)
			parts[n_parts++] = (struct psd_shard_part){own, encoding_of(work)};
		else if (!has_sum && is_heard(work, task, w))
			parts[n_parts++] = find_arrived(work, task, w, offset);
	}
	return n_parts;
}

/* The item's tensor with this parameter. */
static const struct psd_tensor *tensor_at(const struct psd_work *work, unsigned item, const float *parameter)
{
	const struct psd_plan_item *subject = &work->host->plan->items[item];
	unsigned t = psd_plan_tensor(work->host->plan, subject, 0);

	for (unsigned n = 0; n < subject->n_tensors; n++) {
		const float *first;

		t = psd_plan_tensor(work->host->plan, subject, n);
		first = work->host->memory.parameters[t];
		if (parameter >= first && parameter < first + work->host->graph->tensors[t].elements)
			break;
	}
	return &work->host->graph->tensors[t];
}

/* True if a worker's gradient overflowed, which spoils its whole slice, so that every shard skips its part. The parts
 * begin with the slice's part. */
static bool is_left_out(const struct psd_work *work, struct psd_scale *scale, const struct psd_shard_part parts[],
			unsigned n_parts)
{
	bool is_finite = true;

	if (!work->host->plan->wire->is_scaled)
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

static void update_piece(const struct psd_work *work, struct psd_task task, const struct piece *piece, float ratio)
{
	const struct psd_op *op = &work->host->program->ops[task.op];
	const struct psd_update update = psd_solver_update_of(
		psd_solver_update(work->host->options->train, work->host->global_batch, task.iteration), piece->tensor);
	const struct psd_moments moments = psd_memory_part_moments(&work->host->memory, (unsigned)op->item, op->slice);

	psd_shard_reduce(&update, piece->parts, piece->n_parts, ratio, piece->weight,
			 psd_moments_from(moments, piece->first), piece->elements);
}

/* Parameters that a shard's part had at the last exchange, if they are stored separately from those with which this
 * host computes. NULL: they are not, and the shard's part itself still has these values. */
static const float *own_start(const struct psd_work *work, struct psd_task task)
{
	const struct psd_memory *memory = &work->host->memory;
	const struct psd_op *op = &work->host->program->ops[task.op];
	const unsigned item = (unsigned)op->item;

	if (work->host->on_device != memory || psd_memory_part(memory, PSD_BUFFER_PART, item, op->slice) ||
	    !psd_layout_is_worker(work->host->layout, work->host->self))
		return NULL;
	return psd_memory_buffer(memory, PSD_BUFFER_START, item, task.iteration) +
	       psd_memory_own_part(memory, item, op->slice).first;
}

/* Updates the parameters of the last exchange by the mean drift. */
static void join_piece(const struct psd_work *work, struct psd_task task, const struct piece *piece, float ratio)
{
	const struct psd_op *op = &work->host->program->ops[task.op];
	const float *own = own_start(work, task), *start = own ? own + piece->first : piece->weight;
	const struct psd_update update = psd_solver_outer_update(work->host->plan->outer);
	const float mean_ratio = ratio / (float)work->host->layout->workers;
	float *outer = psd_memory_part(&work->host->memory, PSD_BUFFER_PART_OUTER, (unsigned)op->item, op->slice);

	if (!outer) {
		psd_shard_join(piece->parts, piece->n_parts, update.rate * mean_ratio, start, piece->weight,
			       piece->elements);
		return;
	}
	if (own)
		memcpy(piece->weight, start, piece->elements * sizeof(*start));
	psd_shard_reduce(&update, piece->parts, piece->n_parts, mean_ratio, piece->weight,
			 (struct psd_moments){.history = outer + piece->first}, piece->elements);
}

/* Sums and applies this shard's part, tensor by tensor. */
static void run_reduce(const struct psd_work *work, struct psd_task task, struct psd_shard_part parts[])
{
	const struct psd_op *op = &work->host->program->ops[task.op];
	const struct psd_memory *memory = &work->host->memory;
	const unsigned item = (unsigned)op->item;
	const struct psd_range part = psd_memory_own_part(memory, item, op->slice);
	const struct psd_range of_slice = {part.first - psd_plan_slice(&work->host->plan->items[item], op->slice).first,
					   part.elements};
	struct psd_scale *scale = psd_work_scale(work, op);
	const float ratio = 1.0f / scale->ratio;
	const bool is_local = psd_plan_is_local(work->host->plan, &work->host->plan->items[item]);
	struct iovec tensors[PSD_SEGMENTS_MAX], weights[PSD_SEGMENTS_MAX], own[PSD_SEGMENTS_MAX];
	const unsigned n_tensors = psd_memory_segments(memory, memory->parameters, item, part, tensors);
	const unsigned n_weights =
		psd_memory_find(memory, PSD_BUFFER_PART, op, task.iteration, of_slice, work->host->self, weights);
	const unsigned n_own = psd_memory_find(memory, psd_buffer_on_wire(PSD_BUFFER_GRADIENT, work->host->plan->wire),
					       op, task.iteration, of_slice, work->host->self, own);
	unsigned at_weight = 0, at_own = 0;
	uint64_t offset = 0;

	if (is_left_out(work, scale, parts, find_parts(work, task, own[0].iov_base, 0, parts)))
		return;
	for (unsigned i = 0; i < n_tensors; i++) {
		const struct piece piece = {
			.tensor = tensor_at(work, item, tensors[i].iov_base),
			.parts = parts,
			.n_parts = find_parts(work, task, own[at_own].iov_base, offset, parts),
			.weight = weights[at_weight].iov_base,
			.first = offset,
			.elements = tensors[i].iov_len / sizeof(float),
		};

		(is_local ? join_piece : update_piece)(work, task, &piece, ratio);
		psd_segments_advance(weights, n_weights, &at_weight, piece.elements * sizeof(float));
		psd_segments_advance(own, n_own, &at_own, piece.elements * encoding_of(work)->value_bytes);
		offset += piece.elements;
	}
}

/* The sum replaces this host's own gradient and returns to the workers, which apply it. */
static void sum_part(const struct psd_work *work, struct psd_task task, struct psd_shard_part parts[])
{
	const struct psd_op *op = &work->host->program->ops[task.op];
	const unsigned item = (unsigned)op->item;
	const struct psd_encoding *encoding = encoding_of(work);
	const struct psd_range part = psd_memory_own_part(&work->host->memory, item, op->slice);
	const struct psd_range of_slice = {part.first - psd_plan_slice(&work->host->plan->items[item], op->slice).first,
					   part.elements};
	struct iovec own[PSD_SEGMENTS_MAX];
	const unsigned n_own =
		psd_memory_find(&work->host->memory, psd_buffer_on_wire(PSD_BUFFER_GRADIENT, work->host->plan->wire),
				op, task.iteration, of_slice, work->host->self, own);
	uint64_t offset = 0;

	for (unsigned i = 0; i < n_own; i++) {
		const uint64_t elements = own[i].iov_len / encoding->value_bytes;
		const unsigned n_parts = find_parts(work, task, own[i].iov_base, offset, parts);

		psd_shard_sum(parts, n_parts, encoding, own[i].iov_base, elements);
		offset += elements;
	}
}

static enum psd_status reduce(struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	const struct psd_op *op = &work->host->program->ops[task.op];
	const uint64_t elements = psd_memory_own_part(&work->host->memory, (unsigned)op->item, op->slice).elements;
	struct psd_shard_part *parts = calloc(work->host->layout->workers + 1u, sizeof(*parts));

	if (!parts)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a reduction");
	if (elements > 0)
		(work->host->plan->workers_update ? sum_part : run_reduce)(work, task, parts);
	if (work->host->memory.adds_arrivals) /* for a later iteration, sent only after this is applied */
		memset(psd_memory_received(&work->host->memory, (unsigned)op->item, op->slice, task.iteration, 0), 0,
		       elements * sizeof(float));
	free(parts);
	return PSD_OK;
}

/* Sums in order of rank as floats, then rounds once to the encoding. After an overflow the slice becomes NaN, like a
 * worker's own. */
static enum psd_status sum_members(const struct psd_work *work, struct psd_task task, struct psd_shard_part parts[],
				   unsigned n_parts, struct psd_error *err)
{
	const struct psd_op *op = &work->host->program->ops[task.op];
	const struct psd_encoding *encoding = encoding_of(work);
	const unsigned item = (unsigned)op->item;
	const struct psd_range slice = {0, psd_plan_slice(&work->host->plan->items[item], op->slice).elements};
	struct iovec own[PSD_SEGMENTS_MAX];
	const unsigned n_own =
		psd_memory_find(&work->host->memory, psd_buffer_on_wire(PSD_BUFFER_GRADIENT, work->host->plan->wire),
				op, task.iteration, slice, work->host->self, own);

	for (unsigned p = 1; p < n_parts; p++)
		parts[p] = (struct psd_shard_part){
			psd_memory_member(&work->host->memory, item, op->slice, task.iteration, work->host->self + p),
			encoding};
	for (unsigned i = 0; i < n_own; i++) {
		const uint64_t elements = own[i].iov_len / encoding->value_bytes;

		parts[0] = (struct psd_shard_part){own[i].iov_base, encoding};
		psd_shard_sum(parts, n_parts, encoding, own[i].iov_base, elements);
		for (unsigned p = 1; p < n_parts; p++)
			parts[p].values = psd_shard_part_at(&parts[p], elements);
	}
	const struct psd_spoil run = {encoding, own[0].iov_base, slice.elements, false};
	return work->host->plan->wire->is_scaled ? psd_run_spoil(&psd_kernels_here, work->host->device, &run, err)
						 : PSD_OK;
}

static enum psd_status sum_node(struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	const unsigned n_here = psd_layout_n_led(work->host->layout, work->host->self) + 1;
	struct psd_shard_part *parts = calloc(n_here, sizeof(*parts));

	if (!parts)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a node's sum");
	const enum psd_status status = sum_members(work, task, parts, n_here, err);
	free(parts);
	return status;
}

static bool is_small_part(const struct psd_work *work, const struct psd_op *op, double last_sec)
{
	const struct psd_host *host = work->host;
	const bool joins_nodes = host->plan->items[op->item].method->joins_nodes;

	(void)last_sec;
	return psd_work_is_few(psd_memory_own_part(&host->memory, (unsigned)op->item, op->slice).elements *
			       (joins_nodes ? host->layout->nodes : host->layout->workers));
}

static bool is_small_node(const struct psd_work *work, const struct psd_op *op, double last_sec)
{
	const struct psd_host *host = work->host;

	(void)last_sec;
	return psd_work_is_few(psd_plan_slice(&host->plan->items[op->item], op->slice).elements *
			       (psd_layout_n_led(host->layout, host->self) + 1));
}

const struct psd_family psd_family_reduce = {
	.rows = {{PSD_RUNS(REDUCE, reduce), .is_small = is_small_part},
		 {PSD_RUNS(SUM, sum_node), .is_small = is_small_node}},
};
