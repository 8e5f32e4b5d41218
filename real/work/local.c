/* Local steps: a worker updates its parameters with its own gradients. In an exchange the drift since the last one
 * takes the gradient's position and is averaged over all workers. With an outer optimiser the mean updates the
 * parameters of the last exchange as a gradient does. */
#include "real/work/solver.h"
#include "real/work/work.h"

static enum psd_status drift(const struct psd_host *host, const struct psd_drift *whole, enum psd_drift_step step,
			     struct psd_error *err)
{
	struct psd_drift drift = *whole;

	drift.step = step;
	return psd_run_drift(host->kind->kernels, host->device, &drift, err);
}

/* Tensor n of an item whose tensors' starts are contiguous. */
struct own {
	unsigned tensor;
	struct psd_drift drift; /* its blocks */
	float *sent;		/* NULL: exchanges have no delay */
};

static struct own find_own(const struct psd_host *host, struct psd_task task, unsigned n, uint64_t offset)
{
	const struct psd_op *op = &host->program->ops[task.op];
	const unsigned item = (unsigned)op->item;
	const unsigned t = psd_plan_tensor(host->plan, &host->plan->items[item], n);
	const struct psd_memory *memory = host->on_device;
	float *sent =
		host->plan->staleness > 0 ? psd_memory_buffer(memory, PSD_BUFFER_SENT, item, task.iteration) : NULL;

	return (struct own){
		.tensor = t,
		.sent = sent ? sent + offset : NULL,
		.drift = {
			.weight = memory->parameters[t],
			.start = psd_memory_buffer(memory, PSD_BUFFER_START, item, task.iteration) + offset,
			.gradient = psd_memory_gradients(memory, task.iteration - op->lag)[t],
			.elements = host->graph->tensors[t].elements,
			.ratio = psd_solver_outer_update(host->plan->outer).rate / (float)host->layout->workers,
		}};
}

/* Copies the parameters to another buffer, in place of the start. */
static enum psd_status copy_to(const struct psd_host *host, const struct psd_drift *of, float *to,
			       struct psd_error *err)
{
	struct psd_drift run = *of;

	run.start = to;
	return drift(host, &run, PSD_DRIFT_BEGINS, err);
}

/* Ends the local steps of a tensor: its drift takes the gradient's position. */
static enum psd_status end_steps(const struct psd_host *host, const struct own *own, struct psd_error *err)
{
	PSD_TRY(drift(host, &own->drift, PSD_DRIFT_ENDS, err));
	return own->sent ? copy_to(host, &own->drift, own->sent, err) : PSD_OK;
}

/* Number of workers for each gradient in the one with which a worker updates: it has its own alone, or those of its
 * peers, too. */
static double workers_for(const struct psd_host *host, unsigned item)
{
	const double own = host->plan->peers > 0 ? psd_plan_times(host->plan, &host->plan->items[item],
								  PSD_BUFFER_FACTORS, host->self)
						 : 1.0;

	return host->layout->workers / own;
}

/* Updates an item's (bucket's) parameters with this worker's own gradient, or with the mean of its own and its peers'.
 * Before the first local step after an exchange, it stores the parameters. After the last local step, it computes the
 * drift, which is the stored parameters minus the present ones. */
static enum psd_status step(struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	const struct psd_host *host = work->host;
	const unsigned item = (unsigned)host->program->ops[task.op].item;
	const uint32_t fragment = host->plan->items[item].fragment;
	/* with a delay the join stores the parameters */
	const bool begins = host->plan->staleness > 0 ? task.iteration == work->period->first
						      : psd_period_begins(work->period, fragment, task.iteration);
	const bool ends = psd_period_exchanges_of(work->period, fragment, task.iteration);
	const struct psd_update update = psd_solver_own_update(host->options->train, workers_for(host, item),
							       host->global_batch, task.iteration);
	const struct psd_moments moments = psd_memory_moments(host->on_device, item);
	uint64_t offset = 0;

	for (unsigned n = 0; n < host->plan->items[item].n_tensors; n++) {
		const struct own own = find_own(host, task, n, offset);
		const struct psd_apply apply = {
			.update = psd_solver_update_of(update, &host->graph->tensors[own.tensor]),
			.weight = own.drift.weight,
			.gradient = own.drift.gradient,
			.moments = psd_moments_from(moments, offset),
			.elements = own.drift.elements,
		};

		if (begins)
			PSD_TRY(drift(host, &own.drift, PSD_DRIFT_BEGINS, err));
		PSD_TRY(psd_run_apply(host->kind->kernels, host->device, &apply, err));
		if (ends)
			PSD_TRY(end_steps(host, &own, err));
		offset += own.drift.elements;
	}
	return PSD_OK;
}

/* Updates the stored parameters of a tensor by the sum of drifts and the outer momentum. */
static enum psd_status join_by_momentum(const struct psd_host *host, const struct psd_drift *of, float *outer,
					struct psd_error *err)
{
	struct psd_apply apply = {
		.update = psd_solver_outer_update(host->plan->outer),
		.weight = of->weight,
		.gradient = of->gradient,
		.moments = {.history = outer},
		.elements = of->elements,
	};

	apply.update.rate = of->ratio;
	PSD_TRY(drift(host, of, PSD_DRIFT_RETURNS, err));
	return psd_run_apply(host->kind->kernels, host->device, &apply, err);
}

/* Sets a tensor's parameters to the stored ones minus the mean drift of all workers, or as the outer optimiser updates
 * the stored ones by it. outer NULL: it keeps no momentum. */
static enum psd_status join_mean(const struct psd_host *host, const struct own *own, float *outer,
				 struct psd_error *err)
{
	return outer ? join_by_momentum(host, &own->drift, outer, err) : drift(host, &own->drift, PSD_DRIFT_JOINS, err);
}

/* Joins an exchange that began some iterations ago: the result is stored, and the steps since then are added to it. */
static enum psd_status join_late(const struct psd_host *host, const struct own *own, float *outer, bool has_steps,
				 struct psd_error *err)
{
	const struct psd_add steps = {own->drift.weight, own->sent, own->drift.elements};
	struct psd_drift parts = own->drift;

	parts.start = own->sent;
	if (has_steps)
		PSD_TRY(drift(host, &parts, PSD_DRIFT_PARTS, err));
	PSD_TRY(join_mean(host, own, outer, err));
	PSD_TRY(drift(host, &own->drift, PSD_DRIFT_BEGINS, err));
	return has_steps ? psd_run_add(host->kind->kernels, host->device, &steps, err) : PSD_OK;
}

/* Joins the result of an exchange to the parameters of an item (bucket). */
static enum psd_status join(struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	const struct psd_host *host = work->host;
	const struct psd_op *op = &host->program->ops[task.op];
	float *all_outer = psd_memory_kept(host->on_device, PSD_BUFFER_OUTER, (unsigned)op->item, task.iteration);
	uint64_t offset = 0;

	for (unsigned n = 0; n < host->plan->items[op->item].n_tensors; n++) {
		const struct own own = find_own(host, task, n, offset);
		float *outer = all_outer ? all_outer + offset : NULL;

		PSD_TRY(own.sent ? join_late(host, &own, outer, op->lag > 0, err) : join_mean(host, &own, outer, err));
		offset += own.drift.elements;
	}
	return PSD_OK;
}

static bool takes(const struct psd_plan *plan, const struct psd_op *op)
{
	return op->item >= 0 && psd_plan_is_local(plan, &plan->items[op->item]);
}

const struct psd_family psd_family_local = {
	.takes = takes,
	.rows = {{PSD_RUNS(STEP, step), .is_small = psd_work_has_few},
		 {PSD_RUNS(APPLY, join), .is_small = psd_work_has_few}},
};
