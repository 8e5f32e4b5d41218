/* Updates of the elements that this host's device updates, and gradients that are rebuilt for them. */
#include "real/work/solver.h"
#include "real/work/work.h"

/* One GEMM over the samples of all workers that sent factors, in order of rank: where these are all, every host gets
 * the same bits. */
static enum psd_status rebuild(struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	const struct psd_host *host = work->host;
	const unsigned i = (unsigned)host->program->ops[task.op].item;
	const struct psd_plan_item *item = &host->plan->items[i];
	const struct psd_factors factors = psd_memory_factors(host->on_device, i, task.iteration, 0);
	float *const *gradients = psd_memory_gradients(host->on_device, task.iteration) +
				  psd_plan_tensor(host->plan, item, 0); /* weight, then bias */
	const unsigned n_senders = psd_plan_times(host->plan, item, PSD_BUFFER_FACTORS, host->self);

	return host->kind->rebuild(host->device, &factors, n_senders * item->subject.batch,
				   (uint32_t)item->subject.rows, (uint32_t)item->subject.columns, gradients[0],
				   item->n_tensors > 1 ? gradients[1] : NULL, err);
}

/* Gradients whose momentum and weight decay were applied before sending get none here. */
static struct psd_update update_of(const struct psd_host *host, const struct psd_plan_item *item, uint32_t iteration)
{
	struct psd_update update = psd_solver_update(host->options->train, host->global_batch, iteration);

	if (psd_plan_keeps(host->plan, item, PSD_BUFFER_VELOCITY))
		return (struct psd_update){.rate = update.rate};
	return update;
}

static enum psd_status apply(struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	const struct psd_host *host = work->host;
	const struct psd_op *op = &host->program->ops[task.op];
	const unsigned i = (unsigned)op->item;
	const struct psd_plan_item *item = &host->plan->items[i];
	const uint32_t made = task.iteration - op->lag;
	const float *ratio = psd_work_clip_ratio(work);
	const struct psd_update whole = update_of(host, item, made);
	const struct psd_range updated = psd_plan_updated(host->plan, item, host->self);
	struct psd_moments moments = psd_memory_moments(host->on_device, i);
	float *own = psd_memory_kept(host->on_device, PSD_BUFFER_OWN, i, made);
	float *master = own ? own : psd_memory_kept(host->on_device, PSD_BUFFER_MASTER, i, made);
	float *sum = psd_memory_kept(host->on_device, PSD_BUFFER_SUM, i, made);

	const double *squares;

	if (task.iteration < op->lag || psd_work_skips(work, op)) /* the first late updates belong to no iteration */
		return PSD_OK;
	PSD_TRY(psd_work_find_squares(work, item, task.iteration, &squares, err));
	for (unsigned n = 0; n < item->n_tensors; n++) {
		const unsigned t = psd_plan_tensor(host->plan, item, n);
		const struct psd_piece piece = psd_plan_piece(host->plan, item, updated, n);
		float *gradient = sum ? sum : psd_memory_gradients(host->on_device, made)[t] + piece.first;
		const struct psd_shrink shrink = {gradient, piece.elements, ratio};
		const struct psd_apply run = {
			.update = psd_solver_update_of(whole, &host->graph->tensors[t]),
			.weight = master ? master : host->on_device->parameters[t] + piece.first,
			.gradient = gradient,
			.moments = moments,
			.elements = piece.elements,
			.weight_square = squares ? squares + host->plan->n_tensors + n : NULL,
			.gradient_square = squares ? squares + n : NULL,
		};

		if (piece.elements == 0)
			continue;
		if (ratio)
			PSD_TRY(psd_run_shrink(host->kind->kernels, host->device, &shrink, err));
		PSD_TRY(psd_run_apply(host->kind->kernels, host->device, &run, err));
		moments = psd_moments_from(moments, piece.elements);
		master = master ? master + piece.elements : NULL;
		sum = sum ? sum + piece.elements : NULL;
	}
	return PSD_OK;
}

const struct psd_family psd_family_update = {
	.rows = {{PSD_RUNS(FACTOR, rebuild)}, {PSD_RUNS(APPLY, apply), .is_small = psd_work_has_few}},
};
