/* Gradient clipping by the norm of all tensors together: a square for each updated tensor, and the common factor,
 * computed on the device. Skipped updates count as zeros. */
#include "real/session/worker_parts.h"

static enum psd_status take(struct psd_worker *worker, uint64_t bytes, void **block, struct psd_error *err)
{
	if (worker->kind->has_own_memory)
		return worker->kind->take(worker->device, bytes, block, err);
	*block = psd_arena_take(&worker->arena, bytes);
	return *block ? PSD_OK : psd_worker_out_of_memory(err);
}

enum psd_status psd_worker_open_clip(struct psd_worker *worker, struct psd_error *err)
{
	void *squares, *ratio;

	PSD_TRY(take(worker, (worker->plan->n_tensors + UINT64_C(1)) * sizeof(double), &squares, err));
	PSD_TRY(take(worker, sizeof(*worker->clip.ratio), &ratio, err));
	worker->squares = squares;
	worker->clip = (struct psd_clip){.squares = squares,
					 .n = worker->plan->n_tensors,
					 .most_norm = worker->options->train->optimiser.most_norm,
					 .ratio = ratio};
	return PSD_OK;
}

enum psd_status psd_worker_measure_gradient(struct psd_worker *worker, struct psd_task task, struct psd_error *err)
{
	const struct psd_op *op = &worker->program->ops[task.op];
	const struct psd_plan_item *item = &worker->plan->items[op->item];
	float *const *gradients = psd_memory_gradients(worker->on_device, task.iteration - op->lag);
	const bool is_nothing = task.iteration < op->lag || psd_worker_skips(worker, op);

	for (unsigned n = 0; n < item->n_tensors; n++) {
		const unsigned t = psd_plan_tensor(worker->plan, item, n);

		PSD_TRY(worker->kind->measure(worker->device, gradients[t],
					      is_nothing ? 0 : worker->graph->tensors[t].elements,
					      &worker->squares[item->first + n], err));
	}
	return PSD_OK;
}

enum psd_status psd_worker_find_clip(struct psd_worker *worker, struct psd_error *err)
{
	return worker->kind->find_clip(worker->device, &worker->clip, err);
}
