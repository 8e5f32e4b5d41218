/* Compression of gradients in a worker, and of their sums in a shard. */
#include "real/work/solver.h"
#include "real/work/work.h"

/* State: the arguments of the device's compression, one entry for each item (bucket). */
static enum psd_status open(struct psd_work *work, struct psd_error *err)
{
	struct psd_host *host = work->host;
	const struct psd_plan *plan = host->plan;
	struct psd_packing *packings;

	if (!plan->compress)
		return PSD_OK;
	packings = work->states.packed = psd_host_take(host, plan->n_items, sizeof(*packings), err);
	for (unsigned i = 0; packings && i < plan->n_items; i++) {
		const struct psd_plan_item *item = &plan->items[i];
		struct psd_packing_tensor *tensors = psd_host_take(host, item->n_tensors, sizeof(*tensors), err);

		if (!tensors)
			return PSD_ENOMEM;
		for (unsigned n = 0; n < item->n_tensors; n++)
			tensors[n].elements = host->graph->tensors[psd_plan_tensor(plan, item, n)].elements;
		packings[i] = (struct psd_packing){.compression = plan->compression,
						   .block = plan->block,
						   .tensors = tensors,
						   .n_tensors = item->n_tensors};
	}
	return packings ? PSD_OK : PSD_ENOMEM;
}

/* Arguments for this iteration, with the buffer that is sent or received. The tables stay valid until the item's next
 * operation. */
static const struct psd_packing *packing_of(const struct psd_work *work, struct psd_task task, enum psd_buffer packed)
{
	const struct psd_host *host = work->host;
	const unsigned i = (unsigned)host->program->ops[task.op].item;
	const struct psd_plan_item *item = &host->plan->items[i];
	const struct psd_update update = psd_solver_update(host->options->train, host->global_batch, task.iteration);
	float *const *gradients = psd_memory_gradients(host->on_device, task.iteration);
	struct psd_packing *packing = (struct psd_packing *)work->states.packed + i;

	for (unsigned n = 0; n < item->n_tensors; n++) {
		const unsigned t = psd_plan_tensor(host->plan, item, n);
		const struct psd_update own = psd_solver_update_of(update, &host->graph->tensors[t]);

		packing->tensors[n].gradient = gradients[t];
		packing->tensors[n].weight = host->on_device->parameters[t];
		packing->tensors[n].weight_decay = own.weight_decay / (float)host->layout->workers;
	}
	if (psd_plan_keeps(host->plan, item, PSD_BUFFER_VELOCITY))
		packing->velocity = psd_memory_buffer(host->on_device, PSD_BUFFER_VELOCITY, i, task.iteration);
	packing->momentum = update.momentum;
	packing->is_nesterov = update.is_nesterov;
	packing->residual = psd_memory_buffer(host->on_device, PSD_BUFFER_RESIDUAL, i, task.iteration);
	packing->packed = psd_memory_buffer(host->on_device, packed, i, task.iteration);
	return packing;
}

static enum psd_status pack(struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	return psd_run_pack(work->host->kind->kernels, work->host->device, packing_of(work, task, PSD_BUFFER_PACKED),
			    err);
}

static enum psd_status unpack(struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	return psd_run_unpack(work->host->kind->kernels, work->host->device,
			      packing_of(work, task, PSD_BUFFER_PACKED_SUM), err);
}

/* ---- at a shard ---- */

/* A block of its part: its number, and its elements. */
struct own_block {
	uint64_t number;
	uint32_t elements;
};

/* Adds all workers' blocks to the residual, in order of rank; the sum's loss stays as residual. */
static void repack_block(const struct psd_host *host, struct psd_task task, struct own_block block)
{
	const struct psd_plan *plan = host->plan;
	const unsigned item = (unsigned)host->program->ops[task.op].item;
	const uint64_t first = psd_memory_own_blocks(&host->memory, item).first;
	const uint64_t offset = block.number * plan->compression->bytes(&plan->block);
	float *sum = psd_memory_buffer(&host->memory, PSD_BUFFER_PART_RESIDUAL, item, task.iteration) +
		     block.number * plan->block.elements;

	for (unsigned w = 0; w < host->layout->workers; w++) {
		const char *packed = w == host->self ? psd_memory_values(&host->memory, PSD_BUFFER_PACKED, item,
									 task.iteration, first)
						     : psd_memory_packed_part(&host->memory, item, task.iteration, w);

		plan->compression->add(&plan->block, packed + offset, block.elements, sum);
	}
	plan->compression->pack(
		&plan->block, sum, block.elements,
		psd_memory_values(&host->memory, PSD_BUFFER_PACKED_SUM, item, task.iteration, first + block.number));
}

/* The tensor's blocks within the part; the tensor begins with block `before` of the item. */
static void repack_tensor(const struct psd_host *host, struct psd_task task, uint64_t before, uint64_t elements)
{
	const struct psd_block *block = &host->plan->block;
	const struct psd_range part = psd_memory_own_blocks(&host->memory, (unsigned)host->program->ops[task.op].item);
	const uint64_t n_blocks = psd_block_count(block, elements);

	for (uint64_t b = part.first > before ? part.first - before : 0;
	     b < n_blocks && before + b < part.first + part.elements; b++)
		repack_block(host, task,
			     (struct own_block){before + b - part.first,
						psd_block_next(block, elements - b * block->elements)});
}

/* Sums all workers' compressed gradients of its part, and compresses the sum. */
static enum psd_status repack(struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	const struct psd_host *host = work->host;
	const struct psd_plan_item *item = &host->plan->items[host->program->ops[task.op].item];
	uint64_t before = 0;

	(void)err;
	for (unsigned n = 0; n < item->n_tensors; n++) {
		const uint64_t elements = host->graph->tensors[psd_plan_tensor(host->plan, item, n)].elements;

		repack_tensor(host, task, before, elements);
		before += psd_block_count(&host->plan->block, elements);
	}
	return PSD_OK;
}

static bool is_small_part(const struct psd_work *work, const struct psd_op *op, double last_sec)
{
	const struct psd_host *host = work->host;

	(void)last_sec;
	return psd_work_is_few(psd_memory_own_blocks(&host->memory, (unsigned)op->item).elements *
			       host->plan->block.elements * host->layout->workers);
}

const struct psd_family psd_family_packed = {
	.open = open,
	.rows = {{PSD_RUNS(PACK, pack), .is_small = psd_work_has_few},
		 {PSD_RUNS(UNPACK, unpack), .is_small = psd_work_has_few},
		 {PSD_RUNS(REPACK, repack), .is_small = is_small_part}},
};
