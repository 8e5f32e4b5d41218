/* Low-rank compression of gradients. */
#include "real/work/work.h"

/* State: the arguments of the device's functions, one entry for each item (bucket). */
static enum psd_status open(struct psd_work *work, struct psd_error *err)
{
	struct psd_host *host = work->host;
	const struct psd_plan *plan = host->plan;
	struct psd_low_rank_work *works;

	if (!plan->low_rank)
		return PSD_OK;
	works = work->states.low_rank = psd_host_take(host, plan->n_items, sizeof(*works), err);
	for (unsigned i = 0; works && i < plan->n_items; i++) {
		const struct psd_plan_item *item = &plan->items[i];
		struct psd_low_rank_tensor *tensors = psd_host_take(host, item->n_tensors, sizeof(*tensors), err);

		if (!tensors)
			return PSD_ENOMEM;
		for (unsigned n = 0; n < item->n_tensors; n++) {
			const unsigned t = psd_plan_tensor(plan, item, n);

			tensors[n] = (struct psd_low_rank_tensor){
				.elements = host->graph->tensors[t].elements,
				.shape = psd_low_rank_shape_of(&host->graph->tensors[t], plan->low_rank),
				.number = t,
			};
		}
		works[i] = (struct psd_low_rank_work){.tensors = tensors,
						      .n_tensors = item->n_tensors,
						      .n_threads = host->options->train->threads,
						      .rank = plan->low_rank};
	}
	return works ? PSD_OK : PSD_ENOMEM;
}

/* Arguments for this iteration. The tables stay valid until the item's next operation. */
static const struct psd_low_rank_work *work_of(const struct psd_work *own, struct psd_task task)
{
	const struct psd_host *host = own->host;
	const unsigned i = (unsigned)host->program->ops[task.op].item;
	const struct psd_plan_item *item = &host->plan->items[i];
	float *const *gradients = psd_memory_gradients(host->on_device, task.iteration);
	struct psd_low_rank_work *work = (struct psd_low_rank_work *)own->states.low_rank + i;

	for (unsigned n = 0; n < item->n_tensors; n++)
		work->tensors[n].gradient = gradients[psd_plan_tensor(host->plan, item, n)];
	work->residual = psd_memory_buffer(host->on_device, PSD_BUFFER_RESIDUAL, i, task.iteration);
	work->left = psd_memory_buffer(host->on_device, PSD_BUFFER_LEFT, i, task.iteration);
	work->right = psd_memory_buffer(host->on_device, PSD_BUFFER_RIGHT, i, task.iteration);
	return work;
}

/* Computes the left factor of each gradient of the item (bucket). */
static enum psd_status project(struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	return psd_run_project(work->host->kind->kernels, work->host->device, work_of(work, task), err);
}

/* Makes the columns of the summed left factors orthonormal, and computes the right factors. */
static enum psd_status fit(struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	return psd_run_fit(work->host->kind->kernels, work->host->device, work_of(work, task), err);
}

/* Computes the gradients as products of the left factors and the summed right factors. */
static enum psd_status expand(struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	return psd_run_expand(work->host->kind->kernels, work->host->device, work_of(work, task), err);
}

/* True for products too small for OpenMP's threads. */
static bool has_small_products(const struct psd_work *work, const struct psd_op *op, double last_sec)
{
	(void)last_sec;
	return work->host->options->train->threads == 1 &&
	       psd_work_is_few(work->host->plan->items[op->item].subject.elements * work->host->plan->low_rank);
}

const struct psd_family psd_family_low_rank = {
	.open = open,
	.rows = {{PSD_RUNS(PROJECT, project), .is_small = has_small_products},
		 {PSD_RUNS(FIT, fit), .is_small = has_small_products},
		 {PSD_RUNS(EXPAND, expand), .is_small = has_small_products}},
};
