/* Gradient accumulation: gradients of a micro-batch are added to the sum of earlier ones, which is the gradient of the
 * iteration, or this worker's part of it. Items whose gradients are made from factors are left out. */
#include "real/work/work.h"

static enum psd_status add_item(const struct psd_host *host, const struct psd_plan_item *item, uint32_t iteration,
				struct psd_error *err)
{
	float *const *sums = psd_memory_gradients(host->on_device, iteration);
	float *const *gradients = psd_memory_micro_gradients(host->on_device);

	for (unsigned n = 0; n < item->n_tensors && !psd_plan_rebuilds(host->plan, item); n++) {
		const unsigned t = psd_plan_tensor(host->plan, item, n);
		const struct psd_add run = {sums[t], gradients[t], host->graph->tensors[t].elements};

		PSD_TRY(psd_run_add(host->kind->kernels, host->device, &run, err));
	}
	return PSD_OK;
}

/* Adds this worker's part, of all workers' gradients. */
static enum psd_status add_part(const struct psd_host *host, unsigned i, uint32_t iteration, struct psd_error *err)
{
	const struct psd_plan_item *item = &host->plan->items[i];
	const struct psd_range updated = psd_plan_updated(host->plan, item, host->self);
	float *const *gradients = psd_memory_gradients(host->on_device, iteration);
	float *sum = psd_memory_kept(host->on_device, PSD_BUFFER_SUM, i, iteration);

	for (unsigned n = 0; n < item->n_tensors; n++) {
		const struct psd_piece piece = psd_plan_piece(host->plan, item, updated, n);
		const struct psd_add run = {sum, gradients[psd_plan_tensor(host->plan, item, n)] + piece.first,
					    piece.elements};

		if (piece.elements > 0)
			PSD_TRY(psd_run_add(host->kind->kernels, host->device, &run, err));
		sum += piece.elements;
	}
	return PSD_OK;
}

/* Adds one item (bucket), or all of them between two micro-batches. */
static enum psd_status accumulate(struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	const struct psd_host *host = work->host;
	const struct psd_op *op = &host->program->ops[task.op];
	const int item = op->item;

	if (op->target.buffer == PSD_BUFFER_SUM)
		return add_part(host, (unsigned)item, task.iteration, err);
	for (unsigned i = 0; i < host->plan->n_items; i++)
		if (item < 0 || (unsigned)item == i)
			PSD_TRY(add_item(host, &host->plan->items[i], task.iteration, err));
	return PSD_OK;
}

/* True for an item with few elements. */
static bool is_small(const struct psd_work *work, const struct psd_op *op, double last_sec)
{
	return op->item >= 0 && psd_work_has_few(work, op, last_sec);
}

const struct psd_family psd_family_accumulate = {
	.rows = {{PSD_RUNS(ACCUMULATE, accumulate), .is_small = is_small}},
};
