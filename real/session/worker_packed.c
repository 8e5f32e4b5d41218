/* Compression of gradients in a worker, and of their sums in a shard. */
#include "real/session/solver.h"
#include "real/session/worker_parts.h"

static struct psd_packing_tensor *take_tensors(struct psd_worker *worker, const struct psd_plan_item *item)
{
	struct psd_packing_tensor *tensors = psd_arena_take(&worker->arena, item->n_tensors * sizeof(*tensors));

	for (unsigned n = 0; tensors && n < item->n_tensors; n++)
		tensors[n].elements = worker->graph->tensors[psd_plan_tensor(worker->plan, item, n)].elements;
	return tensors;
}

enum psd_status psd_worker_open_packings(struct psd_worker *worker, struct psd_error *err)
{
	const struct psd_plan *plan = worker->plan;

	worker->packings = psd_arena_take(&worker->arena, plan->n_items * sizeof(*worker->packings));
	for (unsigned i = 0; worker->packings && i < plan->n_items; i++) {
		worker->packings[i] = (struct psd_packing){.compression = plan->compression,
							   .block = plan->block,
							   .tensors = take_tensors(worker, &plan->items[i]),
							   .n_tensors = plan->items[i].n_tensors};
		if (!worker->packings[i].tensors)
			worker->packings = NULL;
	}
	return worker->packings
		       ? PSD_OK
		       : psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for %u items", plan->n_items);
}

/* Arguments for this iteration, with the buffer that is sent or received. The tables stay valid until the item's next
 * operation. */
static const struct psd_packing *packing_of(struct psd_worker *worker, struct psd_task task, enum psd_buffer packed)
{
	const unsigned i = (unsigned)worker->program->ops[task.op].item;
	const struct psd_plan_item *item = &worker->plan->items[i];
	const struct psd_update update =
		psd_solver_update(worker->options->train, worker->global_batch, task.iteration);
	float *const *gradients = psd_memory_gradients(worker->on_device, task.iteration);
	struct psd_packing *packing = &worker->packings[i];

	for (unsigned n = 0; n < item->n_tensors; n++) {
		const unsigned t = psd_plan_tensor(worker->plan, item, n);
		const struct psd_update own = psd_solver_update_of(update, &worker->graph->tensors[t]);

		packing->tensors[n].gradient = gradients[t];
		packing->tensors[n].weight = worker->on_device->parameters[t];
		packing->tensors[n].weight_decay = own.weight_decay / (float)worker->layout->workers;
	}
	if (psd_plan_keeps(worker->plan, item, PSD_BUFFER_VELOCITY))
		packing->velocity = psd_memory_buffer(worker->on_device, PSD_BUFFER_VELOCITY, i, task.iteration);
	packing->momentum = update.momentum;
	packing->is_nesterov = update.is_nesterov;
	packing->residual = psd_memory_buffer(worker->on_device, PSD_BUFFER_RESIDUAL, i, task.iteration);
	packing->packed = psd_memory_buffer(worker->on_device, packed, i, task.iteration);
	return packing;
}

enum psd_status psd_worker_pack(struct psd_worker *worker, struct psd_task task, struct psd_error *err)
{
	return worker->kind->pack(worker->device, packing_of(worker, task, PSD_BUFFER_PACKED), err);
}

enum psd_status psd_worker_unpack(struct psd_worker *worker, struct psd_task task, struct psd_error *err)
{
	return worker->kind->unpack(worker->device, packing_of(worker, task, PSD_BUFFER_PACKED_SUM), err);
}

/* ---- at a shard ---- */

/* A block of its part: its number, and its elements. */
struct own_block {
	uint64_t number;
	uint32_t elements;
};

/* Adds all workers' blocks to the residual, in order of rank; the sum's loss stays as residual. */
static void repack_block(const struct psd_worker *worker, struct psd_task task, struct own_block block)
{
	const struct psd_plan *plan = worker->plan;
	const unsigned item = (unsigned)worker->program->ops[task.op].item;
	const uint64_t first = psd_memory_own_blocks(&worker->memory, item).first;
	const uint64_t offset = block.number * plan->compression->bytes(&plan->block);
	float *sum = psd_memory_buffer(&worker->memory, PSD_BUFFER_PART_RESIDUAL, item, task.iteration) +
		     block.number * plan->block.elements;

	for (unsigned w = 0; w < worker->layout->workers; w++) {
		const char *packed =
			w == worker->self
				? psd_memory_blocks(&worker->memory, PSD_BUFFER_PACKED, item, task.iteration, first)
				: psd_memory_packed_part(&worker->memory, item, task.iteration, w);

		plan->compression->add(&plan->block, packed + offset, block.elements, sum);
	}
	plan->compression->pack(
		&plan->block, sum, block.elements,
		psd_memory_blocks(&worker->memory, PSD_BUFFER_PACKED_SUM, item, task.iteration, first + block.number));
}

/* The tensor's blocks within the part; the tensor begins with block `before` of the item. */
static void repack_tensor(const struct psd_worker *worker, struct psd_task task, uint64_t before, uint64_t elements)
{
	const struct psd_block *block = &worker->plan->block;
	const struct psd_range part =
		psd_memory_own_blocks(&worker->memory, (unsigned)worker->program->ops[task.op].item);
	const uint64_t n_blocks = psd_block_count(block, elements);

	for (uint64_t b = part.first > before ? part.first - before : 0;
	     b < n_blocks && before + b < part.first + part.elements; b++)
		repack_block(worker, task,
			     (struct own_block){before + b - part.first,
						psd_block_next(block, elements - b * block->elements)});
}

void psd_worker_repack(struct psd_worker *worker, struct psd_task task)
{
	const struct psd_plan_item *item = &worker->plan->items[worker->program->ops[task.op].item];
	uint64_t before = 0;

	for (unsigned n = 0; n < item->n_tensors; n++) {
		const uint64_t elements = worker->graph->tensors[psd_plan_tensor(worker->plan, item, n)].elements;

		repack_tensor(worker, task, before, elements);
		before += psd_block_count(&worker->plan->block, elements);
	}
}
