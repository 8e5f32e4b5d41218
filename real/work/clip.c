/* Gradient clipping by the norm of all tensors together: a square for each updated tensor, and the common factor,
 * computed on the device. Skipped updates count as zeros. Where workers update parts of tensors, the squares of all
 * parts are added up between workers; so are those of parameters and gradients for LARS. The first alone counts of
 * workers with the same part, as each node has one. */
#include "real/work/work.h"

struct clipping {
	struct psd_clip clip; /* arguments of the device's function */
	/* Sum of squares of each tensor's gradient, then of its parameters for LARS by parts; shape (2, tensors of the
	 * plan) */
	double *squares;
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

	if (!host->plan->clips && host->plan->sums_per_tensor == 0)
		return PSD_OK;
	clipping = work->states.clip = psd_host_take(host, 1, sizeof(*clipping), err);
	if (!clipping)
		return PSD_ENOMEM;
	PSD_TRY(take(host, (2 * host->plan->n_tensors + UINT64_C(1)) * sizeof(double), &squares, err));
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

	return clipping && work->host->plan->clips ? clipping->clip.ratio : NULL;
}

/* Converts squares of n tensors from the first on to the floats in which they are sent, or back; ratio: factor of
 * gradients whose squares come back, or NULL. */
static enum psd_status convert(const struct psd_work *work, uint32_t iteration, unsigned first, unsigned n,
			       bool is_back, const float *ratio, struct psd_error *err)
{
	const struct psd_host *host = work->host;
	const struct clipping *clipping = work->states.clip;

	for (unsigned s = 0; s < host->plan->sums_per_tensor; s++) {
		const size_t at = (size_t)s * host->plan->n_tensors + first;
		float *sent = psd_memory_buffer(host->on_device, PSD_BUFFER_NORMS, host->plan->n_items - 1, iteration);
		const struct psd_squares run = {clipping->squares + at, sent + at, n, is_back, s == 0 ? ratio : NULL};

		PSD_TRY(psd_run_send_squares(host->kind->kernels, host->device, &run, err));
	}
	return PSD_OK;
}

enum psd_status psd_work_find_squares(struct psd_work *work, const struct psd_plan_item *item, uint32_t iteration,
				      const double **squares, struct psd_error *err)
{
	const struct clipping *clipping = work->states.clip;

	*squares = NULL;
	if (work->host->plan->sums_per_tensor != 2)
		return PSD_OK;
	*squares = clipping->squares + item->first;
	return convert(work, iteration, item->first, item->n_tensors, true, psd_work_clip_ratio(work), err);
}

static enum psd_status measure(struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	const struct psd_host *host = work->host;
	const struct clipping *clipping = work->states.clip;
	const struct psd_op *op = &host->program->ops[task.op];
	const struct psd_plan_item *item = &host->plan->items[op->item];
	float *const *gradients = psd_memory_gradients(host->on_device, task.iteration - op->lag);
	const struct psd_range updated = psd_plan_updated(host->plan, item, host->self);
	const float *sum =
		psd_memory_kept(host->on_device, PSD_BUFFER_SUM, (unsigned)op->item, task.iteration - op->lag);
	const float *own = psd_memory_kept(host->on_device, PSD_BUFFER_OWN, (unsigned)op->item, 0);
	const bool counts = host->plan->sums_per_tensor == 0 ||
			    psd_layout_is_first_with_part(host->layout, item->method->updates, host->self);
	const bool is_nothing = !counts || task.iteration < op->lag || psd_work_skips(work, op);

	for (unsigned n = 0; n < item->n_tensors; n++) {
		const unsigned t = psd_plan_tensor(host->plan, item, n);
		const struct psd_piece piece = psd_plan_piece(host->plan, item, updated, n);
		double *square = clipping->squares + item->first + n;
		const struct psd_measure of_weight = {own ? own : host->on_device->parameters[t] + piece.first,
						      counts ? piece.elements : 0, square + host->plan->n_tensors};
		const struct psd_measure run = {sum ? sum : gradients[t] + piece.first, is_nothing ? 0 : piece.elements,
						square};

		if (host->plan->sums_per_tensor > 1)
			PSD_TRY(psd_run_measure(host->kind->kernels, host->device, &of_weight, err));
		PSD_TRY(psd_run_measure(host->kind->kernels, host->device, &run, err));
		sum = sum ? sum + piece.elements : NULL;
		own = own ? own + piece.elements : NULL;
	}
	return convert(work, task.iteration, item->first, item->n_tensors, false, NULL, err);
}

static enum psd_status find_clip(struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	const struct clipping *clipping = work->states.clip;

	PSD_TRY(convert(work, task.iteration, 0, work->host->plan->n_tensors, true, NULL, err));
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
