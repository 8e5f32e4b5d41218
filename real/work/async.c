/* Updates of an asynchronous server: by the gradient of one worker at a time, with the rate of a worker that trains
 * alone. The new parameters take the position of the gradient that has arrived, and return to the worker from there, so
 * that the next update does not change them on their way. */
#include <string.h>

#include "real/work/solver.h"
#include "real/work/work.h"

struct async {
	uint32_t *first_slice; /* number of the slices of earlier items (buckets); one entry per item */
	/* Per slice: number of updates, and per slice and worker their number in the parameters that it has. */
	uint32_t *n_updates, *n_seen;
};

static enum psd_status open(struct psd_work *work, struct psd_error *err)
{
	const struct psd_plan *plan = work->host->plan;
	struct async *async;
	uint32_t n_slices = 0;

	if (!plan->async)
		return PSD_OK;
	async = work->states.async = psd_host_take(work->host, 1, sizeof(*async), err);
	if (async)
		async->first_slice = psd_host_take(work->host, plan->n_items, sizeof(*async->first_slice), err);
	if (!async || !async->first_slice)
		return PSD_ENOMEM;
	for (unsigned i = 0; i < plan->n_items; i++) {
		async->first_slice[i] = n_slices;
		n_slices += plan->items[i].n_slices;
	}
	async->n_updates = psd_host_take(work->host, n_slices, sizeof(*async->n_updates), err);
	async->n_seen = psd_host_take(work->host, (size_t)n_slices * plan->layout.workers, sizeof(*async->n_seen), err);
	return async->n_updates && async->n_seen ? PSD_OK : PSD_ENOMEM;
}

/* Counts an update, and returns the number of updates by others since the worker received the parameters of its
 * gradient. */
static uint32_t count_update(const struct psd_work *work, const struct psd_op *op)
{
	const struct async *async = work->states.async;
	const uint32_t slice = async->first_slice[op->item] + op->slice;
	uint32_t *seen = &async->n_seen[(size_t)slice * work->host->layout->workers + op->payload.root];
	const uint32_t age = async->n_updates[slice] - *seen;

	*seen = ++async->n_updates[slice];
	return age;
}

/* The rate of the operation's gradient; with `rate: by-staleness` divided by its age, Zhang et al. 2015 (arXiv
 * 1511.05950). */
static struct psd_update update_of(const struct psd_work *work, const struct psd_op *op, uint32_t iteration)
{
	const struct psd_host *host = work->host;
	const uint32_t age = count_update(work, op);
	struct psd_update update =
		psd_solver_own_update(host->options->train, host->layout->workers, host->global_batch, iteration);

	if (host->plan->async->rate == PSD_ASYNC_RATE_BY_STALENESS && age > 1)
		update.rate /= (float)age;
	return update;
}

static enum psd_status reduce(struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	const struct psd_memory *memory = &work->host->memory;
	const struct psd_op *op = &work->host->program->ops[task.op];
	const unsigned i = (unsigned)op->item;
	const struct psd_plan_item *item = &work->host->plan->items[i];
	const struct psd_range part = psd_memory_own_part(memory, i, op->slice);
	const bool is_own = op->payload.root == work->host->self;
	const struct psd_update whole = update_of(work, op, task.iteration);
	float *weight = psd_memory_part(memory, i, op->slice);
	float *received = psd_memory_received(memory, i, op->slice, task.iteration, op->payload.root);
	struct psd_moments moments = psd_memory_part_moments(memory, i, op->slice);

	(void)err;
	for (unsigned n = 0; n < item->n_tensors; n++) {
		const unsigned t = psd_plan_tensor(work->host->plan, item, n);
		const struct psd_piece piece = psd_plan_piece(work->host->plan, item, part, n);
		const struct psd_update update = psd_solver_update_of(whole, &work->host->graph->tensors[t]);
		const float *gradient =
			is_own ? psd_memory_gradients(memory, task.iteration)[t] + piece.first : received;
		float *sent = is_own ? memory->parameters[t] + piece.first : received;

		psd_update_apply(&update, weight, gradient, moments, piece.elements);
		memcpy(sent, weight, piece.elements * sizeof(*sent));
		weight += piece.elements;
		received += piece.elements;
		moments = psd_moments_from(moments, piece.elements);
	}
	return PSD_OK;
}

static bool is_small(const struct psd_work *work, const struct psd_op *op, double last_sec)
{
	(void)last_sec;
	return psd_work_is_few(psd_memory_own_part(&work->host->memory, (unsigned)op->item, op->slice).elements);
}

static bool takes(const struct psd_plan *plan, const struct psd_op *op)
{
	(void)op;
	return plan->async;
}

const struct psd_family psd_family_async = {
	.takes = takes,
	.open = open,
	.rows = {{PSD_RUNS(REDUCE, reduce), .is_small = is_small}},
};
