/* Stale synchronous reads with managed communication. A worker makes an update of each gradient, with a momentum of its
 * own, and sends the change of parameters in place of the gradient: some chunks early, the others with those of later
 * iterations, all at the end of a clock. Sums of changes are added to the start's buffer, which is equal on all workers
 * after equally many sums. Layers use other parameters, which are read before each forward pass: the start's, changed
 * by all updates of the worker that no sum has yet. These are the residual, which is withheld, and the updates that
 * have left since the last sum. So a read sees a worker's own updates whole, at once. Source: Wei et al., SoCC 2015. */
#include "real/work/solver.h"
#include "real/work/work.h"

/* State of an item (bucket): numbers of iterations. */
struct view {
	uint32_t n_applied; /* their sums are in the start */
	uint32_t n_read;    /* their own updates, or sums, are in the parameters that layers use */
	bool has_start;	    /* the start has parameters */
};

struct own_updates {
	struct view *views;	     /* one entry per item (bucket), like the others */
	struct psd_chunks *leaving;  /* arguments that send changes, on the thread of sums */
	struct psd_chunks *arriving; /* arguments that add sums, on the device's thread */
};

static enum psd_status open(struct psd_work *work, struct psd_error *err)
{
	struct psd_host *host = work->host;
	const uint32_t first = host->options->first_iteration;
	struct own_updates *of;

	if (!psd_plan_sends_updates(host->plan))
		return PSD_OK;
	of = work->states.own_updates = psd_host_take(host, 1, sizeof(*of), err);
	if (of) {
		of->views = psd_host_take(host, host->plan->n_items, sizeof(*of->views), err);
		of->leaving = psd_work_make_chunks(host, err);
		of->arriving = psd_work_make_chunks(host, err);
	}
	if (!of || !of->views || !of->leaving || !of->arriving)
		return PSD_ENOMEM;
	for (unsigned i = 0; i < host->plan->n_items; i++)
		of->views[i] = (struct view){.n_applied = first, .n_read = first};
	return PSD_OK;
}

static const struct own_updates *updates_of(const struct psd_work *work)
{
	return work->states.own_updates;
}

static unsigned item_of(const struct psd_work *work, struct psd_task task)
{
	return (unsigned)work->host->program->ops[task.op].item;
}

static float *buffer_of(const struct psd_work *work, struct psd_task task, enum psd_buffer buffer)
{
	return psd_memory_buffer(work->host->on_device, buffer, item_of(work, task), task.iteration);
}

/* ---- tensors ---- */

/* A tensor of the task's item. The other fields point to its values in the item's buffers. */
struct own {
	struct psd_update update; /* its share of an update by the gradients of all workers */
	float *weight, *gradient, *start, *kept, *residual, *history, *own_history;
	uint64_t elements;
};

typedef enum psd_status own_fn(const struct psd_host *host, const struct own *own, struct psd_error *err);

/* Calls the function for each tensor of the task's item. */
static enum psd_status for_each(const struct psd_work *work, struct psd_task task, own_fn *function,
				struct psd_error *err)
{
	const struct psd_host *host = work->host;
	const struct psd_plan_item *item = &host->plan->items[item_of(work, task)];
	const struct psd_update whole = psd_solver_update(host->options->train, host->global_batch, task.iteration);
	uint64_t first = 0;

	for (unsigned n = 0; n < item->n_tensors; n++) {
		const unsigned t = psd_plan_tensor(host->plan, item, n);
		const struct psd_tensor *tensor = &host->graph->tensors[t];
		struct own own = {
			.update = psd_solver_update_of(whole, tensor),
			.weight = host->on_device->parameters[t],
			.gradient = psd_memory_gradients(host->on_device, task.iteration)[t],
			.start = buffer_of(work, task, PSD_BUFFER_START) + first,
			.kept = buffer_of(work, task, PSD_BUFFER_KEPT) + first,
			.residual = buffer_of(work, task, PSD_BUFFER_RESIDUAL) + first,
			.history = buffer_of(work, task, PSD_BUFFER_KEPT_HISTORY) + first,
			.own_history = buffer_of(work, task, PSD_BUFFER_OWN_HISTORY) + first,
			.elements = tensor->elements,
		};

		own.update.weight_decay /= (float)host->layout->workers;
		PSD_TRY(function(host, &own, err));
		first += tensor->elements;
	}
	return PSD_OK;
}

/* Takes a step on the tensor's elements. gradient is NULL, and ratio 0, in a step that does not use it. */
static enum psd_status drift(const struct psd_host *host, const struct own *own, enum psd_drift_step step, float *start,
			     float *weight, float *gradient, float ratio, struct psd_error *err)
{
	const struct psd_drift run = {step, weight, start, gradient, own->elements, ratio};

	return psd_run_drift(host->kind->kernels, host->device, &run, err);
}

static enum psd_status begin(const struct psd_host *host, const struct own *own, struct psd_error *err)
{
	return drift(host, own, PSD_DRIFT_BEGINS, own->start, own->weight, NULL, 0.0f, err);
}

static enum psd_status begin_once(const struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	struct view *view = &updates_of(work)->views[item_of(work, task)];

	if (view->has_start)
		return PSD_OK;
	view->has_start = true;
	return for_each(work, task, begin, err);
}

/* The change of parameters takes the gradient's position: an update of zeros. Parameters stay as they are, so their
 * decay is added to the gradient before; `kept` is not in use yet. */
static enum psd_status make_change(const struct psd_host *host, const struct own *own, struct psd_error *err)
{
	const float decay = own->update.weight_decay;
	struct psd_apply apply = {.update = own->update,
				  .weight = own->gradient,
				  .gradient = own->kept,
				  .moments = {.history = own->own_history},
				  .elements = own->elements};

	apply.update.weight_decay = 0.0f;
	PSD_TRY(drift(host, own, PSD_DRIFT_JOINS, own->gradient, own->kept, own->weight, -decay, err));
	PSD_TRY(drift(host, own, PSD_DRIFT_ENDS, own->weight, own->weight, own->gradient, 0.0f, err));
	return psd_run_apply(host->kind->kernels, host->device, &apply, err);
}

/* Adds the change to all that was withheld. */
static enum psd_status add_withheld(const struct psd_host *host, const struct own *own, struct psd_error *err)
{
	return drift(host, own, PSD_DRIFT_JOINS, own->residual, own->kept, own->gradient, -1.0f, err);
}

/* Takes the changes that left from those that are withheld: minus the former, which is the update that left. */
static enum psd_status keep_left(const struct psd_host *host, const struct own *own, struct psd_error *err)
{
	return drift(host, own, PSD_DRIFT_PARTS, own->kept, own->residual, NULL, 0.0f, err);
}

static enum psd_status read_start(const struct psd_host *host, const struct own *own, struct psd_error *err)
{
	return drift(host, own, PSD_DRIFT_RETURNS, own->start, own->weight, NULL, 0.0f, err);
}

static enum psd_status read_with_withheld(const struct psd_host *host, const struct own *own, struct psd_error *err)
{
	return drift(host, own, PSD_DRIFT_JOINS, own->start, own->weight, own->residual, -1.0f, err);
}

/* The rule of an update by values that are updates themselves. */
static struct psd_update update_by(float rate)
{
	return (struct psd_update){.rate = rate};
}

static enum psd_status update_by_left(const struct psd_host *host, const struct own *own, struct psd_error *err)
{
	const struct psd_apply apply = {.update = update_by(1.0f),
					.weight = own->weight,
					.gradient = own->kept,
					.moments = {.history = own->history},
					.elements = own->elements};

	return psd_run_apply(host->kind->kernels, host->device, &apply, err);
}

/* ---- operations ---- */

static enum psd_status keep(struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	return for_each(work, task, make_change, err);
}

static enum psd_status gather(struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	const struct psd_host *host = work->host;
	struct psd_chunks *leaving = updates_of(work)->leaving;

	PSD_TRY(for_each(work, task, add_withheld, err));
	psd_work_fill_chunks(work, task, leaving);
	PSD_TRY(psd_run_gather(host->kind->kernels, host->device, &leaving[item_of(work, task)], err));
	return for_each(work, task, keep_left, err);
}

/* At the end of a clock nothing is withheld, and behind the last sum of a fence no own update is missing: layers'
 * parameters become those of all workers, for tests and checkpoints. Before the next read no layer uses them. */
static enum psd_status apply(struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	const struct psd_host *host = work->host;
	const struct own_updates *of = updates_of(work);
	const unsigned i = item_of(work, task);
	const bool is_last = host->program->ops[task.op].is_exchange && of->views[i].n_read <= task.iteration;
	struct psd_chunk_tensor *tensors = psd_work_fill_chunks(work, task, of->arriving);
	float *start = buffer_of(work, task, PSD_BUFFER_START);

	for (unsigned n = 0; n < of->arriving[i].n_tensors; n++) {
		tensors[n].weight = start;
		tensors[n].update = update_by(-1.0f);
		start += tensors[n].elements;
	}
	of->arriving[i].history = buffer_of(work, task, PSD_BUFFER_KEPT_HISTORY);
	PSD_TRY(begin_once(work, task, err));
	PSD_TRY(psd_run_apply_chunks(host->kind->kernels, host->device, &of->arriving[i], err));
	of->views[i].n_applied = task.iteration + 1;
	return is_last ? for_each(work, task, read_start, err) : PSD_OK;
}

static enum psd_status read(struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	struct view *view = &updates_of(work)->views[item_of(work, task)];

	PSD_TRY(begin_once(work, task, err));
	view->n_read = task.iteration;
	PSD_TRY(for_each(work, task, read_with_withheld, err));
	for (uint32_t i = view->n_applied; i < task.iteration; i++)
		PSD_TRY(for_each(work, (struct psd_task){i, task.op}, update_by_left, err));
	return PSD_OK;
}

static bool takes(const struct psd_plan *plan, const struct psd_op *op)
{
	return psd_plan_sends_updates(plan) && plan->items[op->item].n_tensors > 0;
}

/* Sending changes runs beside the layers, except on the device. */
const struct psd_family psd_family_own_updates = {
	.takes = takes,
	.open = open,
	.rows = {{PSD_RUNS(KEEP, keep), .is_small = psd_work_has_few},
		 {PSD_RUNS(GATHER, gather), .is_small = psd_work_has_few, .follows_device = true},
		 {PSD_RUNS(APPLY, apply), .is_small = psd_work_has_few},
		 {PSD_RUNS(READ, read), .is_small = psd_work_has_few}},
};
