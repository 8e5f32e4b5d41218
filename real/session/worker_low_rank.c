/* Low-rank compression of gradients. */
#include "real/session/worker_parts.h"

static struct psd_low_rank_tensor *take_tensors(struct psd_worker *worker, const struct psd_plan_item *item)
{
	struct psd_low_rank_tensor *tensors = psd_arena_take(&worker->arena, item->n_tensors * sizeof(*tensors));

	for (unsigned n = 0; tensors && n < item->n_tensors; n++) {
		const unsigned t = psd_plan_tensor(worker->plan, item, n);

		tensors[n] = (struct psd_low_rank_tensor){
			.elements = worker->graph->tensors[t].elements,
			.shape = psd_low_rank_shape_of(&worker->graph->tensors[t], worker->plan->low_rank),
			.number = t,
		};
	}
	return tensors;
}

enum psd_status psd_worker_open_low_rank(struct psd_worker *worker, struct psd_error *err)
{
	const struct psd_plan *plan = worker->plan;

	worker->low_rank = psd_arena_take(&worker->arena, plan->n_items * sizeof(*worker->low_rank));
	for (unsigned i = 0; worker->low_rank && i < plan->n_items; i++) {
		worker->low_rank[i] = (struct psd_low_rank_work){.tensors = take_tensors(worker, &plan->items[i]),
								 .n_tensors = plan->items[i].n_tensors,
								 .n_threads = worker->options->train->threads,
								 .rank = plan->low_rank};
		if (!worker->low_rank[i].tensors)
			worker->low_rank = NULL;
	}
	return worker->low_rank
		       ? PSD_OK
		       : psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for %u items", plan->n_items);
}

/* Arguments for this iteration. The tables stay valid until the item's next operation. */
static const struct psd_low_rank_work *work_of(struct psd_worker *worker, struct psd_task task)
{
	const unsigned i = (unsigned)worker->program->ops[task.op].item;
	const struct psd_plan_item *item = &worker->plan->items[i];
	float *const *gradients = psd_memory_gradients(worker->on_device, task.iteration);
	struct psd_low_rank_work *work = &worker->low_rank[i];

	for (unsigned n = 0; n < item->n_tensors; n++)
		work->tensors[n].gradient = gradients[psd_plan_tensor(worker->plan, item, n)];
	work->residual = psd_memory_buffer(worker->on_device, PSD_BUFFER_RESIDUAL, i, task.iteration);
	work->left = psd_memory_buffer(worker->on_device, PSD_BUFFER_LEFT, i, task.iteration);
	work->right = psd_memory_buffer(worker->on_device, PSD_BUFFER_RIGHT, i, task.iteration);
	return work;
}

enum psd_status psd_worker_project(struct psd_worker *worker, struct psd_task task, struct psd_error *err)
{
	return worker->kind->project(worker->device, work_of(worker, task), err);
}

enum psd_status psd_worker_fit(struct psd_worker *worker, struct psd_task task, struct psd_error *err)
{
	return worker->kind->fit(worker->device, work_of(worker, task), err);
}

enum psd_status psd_worker_expand(struct psd_worker *worker, struct psd_task task, struct psd_error *err)
{
	return worker->kind->expand(worker->device, work_of(worker, task), err);
}
