/* Gradient clipping by the norm of all tensors together: a square for each updated tensor, and the common factor,
 * computed on the device. Skipped updates count as zeros. */
#include "real/work/work.h"

struct clipping {
	struct psd_clip clip; /* arguments of the device's function */
	double *squares;      /* sum of squares of each tensor's gradient; shape (tensors of the plan) */
};

static enum psd_status take(struct psd_host *host, uint64_t bytes, void **block, struct psd_error *err)
{
	if (host->kind->has_own_memory)
		return host->kind->take(host->device, bytes, block, err);
	*block = psd_host_take(host, 1, bytes, err);
	return *block ? PSD_OK : PSD_ENOMEM;
}

static enum psd_status open(struct psd_work *work, struct psd_error *err)
{
	struct psd_host *host = work->host;
	struct clipping *clipping;
	void *squares, *ratio;

	if (!host->plan->clips)
		return PSD_OK;
	clipping = work->states.clip = psd_host_take(host, 1, sizeof(*clipping), err);
	if (!clipping)
		return PSD_ENOMEM;
	PSD_TRY(take(host, (host->plan->n_tensors + UINT64_C(1)) * sizeof(double), &squares, err));
	PSD_TRY(take(host, sizeof(*clipping->clip.ratio), &ratio, err));
	clipping->squares = squares;
	clipping->clip = (struct psd_clip){.squares = squares,
					   .n = host->plan->n_tensors,
					   .most_norm = host->options->train->optimiser.most_norm,
					   .ratio = ratio};
	return PSD_OK;
}

const float *psd_work_clip_ratio(const struct psd_work *work)
{
	const struct clipping *clipping = work->states.clip;

	return clipping ? clipping->clip.ratio : NULL;
}

static enum psd_status measure(struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	const struct psd_host *host = work->host;
	const struct clipping *clipping = work->states.clip;
	const struct psd_op *op = &host->program->ops[task.op];
	const struct psd_plan_item *item = &host->plan->items[op->item];
	float *const *gradients = psd_memory_gradients(host->on_device, task.iteration - op->lag);
	const struct psd_range updated = psd_plan_updated(host->plan, item, host->self);
	const float *sum = psd_memory_sum(host->on_device, (unsigned)op->item, task.iteration - op->lag);
	const bool is_nothing = task.iteration < op->lag || psd_work_skips(work, op);

	for (unsigned n = 0; n < item->n_tensors; n++) {
		const unsigned t = psd_plan_tensor(host->plan, item, n);
		const struct psd_piece piece = psd_plan_piece(host->plan, item, updated, n);
		const struct psd_measure run = {sum ? sum : gradients[t] + piece.first, is_nothing ? 0 : piece.elements,
						&clipping->squares[item->first + n]};

		PSD_TRY(psd_run_measure(host->kind->kernels, host->device, &run, err));
		sum = sum ? sum + piece.elements : NULL;
	}
	return PSD_OK;
}

static enum psd_status find_clip(struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	const struct clipping *clipping = work->states.clip;

	(void)task;
	return psd_run_find_clip(work->host->kind->kernels, work->host->device, &clipping->clip, err);
}

/* A value for each tensor. */
static bool is_always(const struct psd_work *work, const struct psd_op *op, double last_sec)
{
	(void)work, (void)op, (void)last_sec;
	return true;
}

const struct psd_family psd_family_clip = {
	.open = open,
	.rows = {{PSD_RUNS(MEASURE, measure), .is_small = psd_work_has_few},
		 {PSD_RUNS(CLIP, find_clip), .is_small = is_always}},
};
