/* Stale synchronous reads. The start's buffer has the parameters with the sums of all workers' gradients that have been
 * applied, which are equal on all workers after equally many sums. Layers use other parameters, which are read from
 * those before each forward pass: updated by the worker's own gradients whose sums are still missing, as if other
 * workers had none. The rule of these updates is that of the optimiser, momentum included. */
#include "real/work/solver.h"
#include "real/work/work.h"

/* State of an item (bucket): numbers of iterations. */
struct view {
	uint32_t n_applied; /* their sums are in the start */
	uint32_t n_read;    /* their own gradients, or sums, are in the parameters that layers use */
	bool has_start;	    /* the start has parameters */
};

static struct view *view_of(const struct psd_work *work, unsigned item)
{
	return (struct view *)work->states.stale + item;
}

static enum psd_status open(struct psd_work *work, struct psd_error *err)
{
	const struct psd_plan *plan = work->host->plan;
	const uint32_t first = work->host->options->first_iteration;

	if (!plan->reads_stale || psd_plan_sends_updates(plan))
		return PSD_OK;
	work->states.stale = psd_host_take(work->host, plan->n_items, sizeof(struct view), err);
	if (!work->states.stale)
		return PSD_ENOMEM;
	for (unsigned i = 0; i < plan->n_items; i++)
		*view_of(work, i) = (struct view){.n_applied = first, .n_read = first};
	return PSD_OK;
}

/* Copies values in the device's memory. */
static enum psd_status copy(const struct psd_host *host, float *to, float *from, uint64_t elements,
			    struct psd_error *err)
{
	const struct psd_drift run = {
		.step = PSD_DRIFT_BEGINS, .start = to, .weight = from, .gradient = NULL, .elements = elements};

	return psd_run_drift(host->kind->kernels, host->device, &run, err);
}

static uint64_t elements_of(const struct psd_host *host, unsigned item)
{
	return host->plan->items[item].subject.elements;
}

/* ---- tensors, whose parameters lie apart ---- */

enum direction { TO_START, FROM_START };

static enum psd_status copy_parameters(const struct psd_host *host, unsigned item, enum direction direction,
				       struct psd_error *err)
{
	const struct psd_plan_item *of = &host->plan->items[item];
	float *start = psd_memory_buffer(host->on_device, PSD_BUFFER_START, item, 0);

	for (unsigned n = 0; n < of->n_tensors; n++) {
		const unsigned t = psd_plan_tensor(host->plan, of, n);
		const uint64_t elements = host->graph->tensors[t].elements;
		float *weight = host->on_device->parameters[t];

		PSD_TRY(copy(host, direction == TO_START ? start : weight, direction == TO_START ? weight : start,
			     elements, err));
		start += elements;
	}
	return PSD_OK;
}

/* Updates the start by the sum of an iteration's gradients, where own is NULL, or the layers' parameters by the
 * worker's own gradient. */
static enum psd_status update(const struct psd_host *host, unsigned item, uint32_t iteration, const float *own,
			      struct psd_error *err)
{
	const struct psd_plan_item *of = &host->plan->items[item];
	const struct psd_update whole = psd_solver_update(host->options->train, host->global_batch, iteration);
	float *start = psd_memory_buffer(host->on_device, PSD_BUFFER_START, item, 0);
	struct psd_moments moments = psd_memory_moments(host->on_device, item);

	if (own)
		moments.history = psd_memory_buffer(host->on_device, PSD_BUFFER_KEPT_HISTORY, item, 0);
	for (unsigned n = 0; n < of->n_tensors; n++) {
		const unsigned t = psd_plan_tensor(host->plan, of, n);
		const uint64_t elements = host->graph->tensors[t].elements;
		const struct psd_apply run = {
			.update = psd_solver_update_of(whole, &host->graph->tensors[t]),
			.weight = own ? host->on_device->parameters[t] : start,
			.gradient = own ? own : psd_memory_gradients(host->on_device, iteration)[t],
			.moments = moments,
			.elements = elements,
		};

		PSD_TRY(psd_run_apply(host->kind->kernels, host->device, &run, err));
		moments = psd_moments_from(moments, elements);
		start += elements;
		own = own ? own + elements : NULL;
	}
	return PSD_OK;
}

/* ---- operations ---- */

static enum psd_status keep(struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	const struct psd_host *host = work->host;
	const unsigned item = (unsigned)host->program->ops[task.op].item;
	const struct psd_plan_item *of = &host->plan->items[item];
	float *own = psd_memory_buffer(host->on_device, PSD_BUFFER_KEPT, item, task.iteration);

	for (unsigned n = 0; n < of->n_tensors; n++) {
		const unsigned t = psd_plan_tensor(host->plan, of, n);

		PSD_TRY(copy(host, own, psd_memory_gradients(host->on_device, task.iteration)[t],
			     host->graph->tensors[t].elements, err));
		own += host->graph->tensors[t].elements;
	}
	return PSD_OK;
}

static enum psd_status begin(const struct psd_host *host, unsigned item, struct view *view, struct psd_error *err)
{
	if (view->has_start)
		return PSD_OK;
	view->has_start = true;
	return copy_parameters(host, item, TO_START, err);
}

/* Behind the last sum of a fence no own gradient is missing: layers' parameters become those of all workers, for tests
 * and checkpoints. Before the next read no layer uses them. */
static enum psd_status apply(struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	const struct psd_host *host = work->host;
	const unsigned item = (unsigned)host->program->ops[task.op].item;
	struct view *view = view_of(work, item);

	PSD_TRY(begin(host, item, view, err));
	PSD_TRY(update(host, item, task.iteration, NULL, err));
	view->n_applied = task.iteration + 1;
	return view->n_read <= task.iteration ? copy_parameters(host, item, FROM_START, err) : PSD_OK;
}

static enum psd_status read(struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	const struct psd_host *host = work->host;
	const unsigned item = (unsigned)host->program->ops[task.op].item;
	struct view *view = view_of(work, item);

	PSD_TRY(begin(host, item, view, err));
	view->n_read = task.iteration;
	if (view->n_applied == task.iteration) /* its apply has made the parameters those of all workers */
		return PSD_OK;
	PSD_TRY(copy_parameters(host, item, FROM_START, err));
	PSD_TRY(copy(host, psd_memory_buffer(host->on_device, PSD_BUFFER_KEPT_HISTORY, item, 0),
		     psd_memory_moments(host->on_device, item).history, elements_of(host, item), err));
	for (uint32_t i = view->n_applied; i < task.iteration; i++)
		PSD_TRY(update(host, item, i, psd_memory_buffer(host->on_device, PSD_BUFFER_KEPT, item, i), err));
	return PSD_OK;
}

static bool takes(const struct psd_plan *plan, const struct psd_op *op)
{
	(void)op;
	return plan->reads_stale;
}

const struct psd_family psd_family_stale = {
	.takes = takes,
	.open = open,
	.rows = {{PSD_RUNS(KEEP, keep), .is_small = psd_work_has_few},
		 {PSD_RUNS(APPLY, apply), .is_small = psd_work_has_few},
		 {PSD_RUNS(READ, read), .is_small = psd_work_has_few}},
};
