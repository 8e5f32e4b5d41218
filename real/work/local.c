/* Local steps: a worker updates its parameters with its own gradients. In an exchange the drift since the last one
 * takes the gradient's position and is averaged over all workers. */
#include "real/work/solver.h"
#include "real/work/work.h"

static bool begins_period(const struct psd_work *work, uint32_t iteration)
{
	return iteration == work->host->options->first_iteration ||
	       psd_period_first(work->period, iteration) == iteration;
}

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
};

static struct own find_own(const struct psd_host *host, struct psd_task task, unsigned n, uint64_t offset)
{
	const unsigned item = (unsigned)host->program->ops[task.op].item;
	const unsigned t = psd_plan_tensor(host->plan, &host->plan->items[item], n);
	const struct psd_memory *memory = host->on_device;

	return (struct own){.tensor = t,
			    .drift = {
				    .weight = memory->parameters[t],
				    .start = psd_memory_buffer(memory, PSD_BUFFER_START, item, task.iteration) + offset,
				    .gradient = psd_memory_gradients(memory, task.iteration)[t],
				    .elements = host->graph->tensors[t].elements,
				    .ratio = 1.0f / (float)host->layout->workers,
			    }};
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
	const bool begins = begins_period(work, task.iteration);
	const bool ends = psd_period_exchanges(work->period, task.iteration);
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
			PSD_TRY(drift(host, &own.drift, PSD_DRIFT_ENDS, err));
		offset += own.drift.elements;
	}
	return PSD_OK;
}

/* Sets an item's (bucket's) parameters to the stored ones minus the mean drift of all workers. */
static enum psd_status join(struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	const struct psd_host *host = work->host;
	const unsigned item = (unsigned)host->program->ops[task.op].item;
	uint64_t offset = 0;

	for (unsigned n = 0; n < host->plan->items[item].n_tensors; n++) {
		const struct own own = find_own(host, task, n, offset);

		PSD_TRY(drift(host, &own.drift, PSD_DRIFT_JOINS, err));
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
