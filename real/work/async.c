/* Updates of an asynchronous server: by the gradient of one worker at a time, with the rate of a worker that trains
 * alone. The new parameters take the position of the gradient that has arrived, and return to the worker from there, so
 * that the next update does not change them on their way. */
#include <string.h>

#include "real/keep/state.h"
#include "real/work/solver.h"
#include "real/work/work.h"

struct async {
	uint32_t *first_slice; /* number of the slices of earlier items (buckets); one entry per item */
	uint32_t n_slices, n_workers;
	/* Number of updates of a slice, then for each worker their number in the parameters that it has; shape
	 * (n_slices, 1 + n_workers). */
	uint32_t *n_updates;
	uint32_t *next; /* iteration of a worker's next gradient; shape (n_slices, n_workers) */
	struct psd_gradient_ages ages;
};

static uint32_t *updates_of(const struct async *async, uint32_t slice)
{
	return async->n_updates + (size_t)slice * (1 + async->n_workers);
}

/* Before the next iteration a shard has updated by all gradients of earlier ones, but its last replies to the workers
 * have different numbers of them. */
static void keep(void *context, struct psd_state *state)
{
	const struct async *async = context;

	psd_state_add_vector(state, "gradient_ages", PSD_TENSOR_U32, (uint64_t)async->n_slices * (1 + async->n_workers),
			     async->n_updates);
}

static enum psd_status take(void *context, const char *path, struct psd_error *err)
{
	(void)context, (void)path, (void)err;
	return PSD_OK;
}

static enum psd_status open(struct psd_work *work, struct psd_error *err)
{
	struct psd_host *host = work->host;
	const struct psd_plan *plan = host->plan;
	struct async *async;

	if (!plan->async)
		return PSD_OK;
	async = work->states.async = psd_host_take(host, 1, sizeof(*async), err);
	if (async)
		async->first_slice = psd_host_take(host, plan->n_items, sizeof(*async->first_slice), err);
	if (!async || !async->first_slice)
		return PSD_ENOMEM;
	for (unsigned i = 0; i < plan->n_items; i++) {
		async->first_slice[i] = async->n_slices;
		async->n_slices += plan->items[i].n_slices;
	}
	async->n_workers = plan->layout.workers;
	const size_t n = (size_t)async->n_slices * async->n_workers;

	async->n_updates = psd_host_take(host, async->n_slices + n, sizeof(*async->n_updates), err);
	async->next = psd_host_take(host, n, sizeof(*async->next), err);
	if (!async->n_updates || !async->next)
		return PSD_ENOMEM;
	for (size_t i = 0; i < n; i++)
		async->next[i] = host->options->first_iteration;
	host->keepers[host->n_keepers++] =
		(struct psd_keeper){"gradient_ages", "the ages of gradients", keep, take, NULL, async};
	return PSD_OK;
}

/* Returns the number of iterations between the worker's gradient and the first one that is still missing. */
static uint32_t count_iteration(const struct async *async, uint32_t slice, unsigned worker, uint32_t iteration)
{
	uint32_t *next = async->next + (size_t)slice * async->n_workers, least = iteration;

	for (unsigned w = 0; w < async->n_workers; w++)
		least = next[w] < least ? next[w] : least;
	next[worker] = iteration + 1;
	return iteration - least;
}

/* Counts an update, and returns the number of updates by others since the worker received the parameters of its
 * gradient. */
static uint32_t count_update(const struct psd_work *work, const struct psd_op *op, uint32_t iteration)
{
	struct async *async = work->states.async;
	const uint32_t slice = async->first_slice[op->item] + op->slice;
	uint32_t *n_updates = updates_of(async, slice), *seen = n_updates + 1 + op->payload.root;
	const uint32_t age = *n_updates - *seen, ahead = count_iteration(async, slice, op->payload.root, iteration);
	struct psd_gradient_ages *ages = &async->ages;

	*seen = ++*n_updates;
	ages->n_updates++;
	ages->sum += age;
	ages->most = age > ages->most ? age : ages->most;
	ages->most_ahead = ahead > ages->most_ahead ? ahead : ages->most_ahead;
	return age;
}

void psd_work_count_ages(const struct psd_work *work, struct psd_gradient_ages *ages)
{
	const struct async *async = work->states.async;

	if (async)
		*ages = async->ages;
}

/* The rate of the operation's gradient; with `rate: by-staleness` divided by its age, Zhang et al. 2015 (arXiv
 * 1511.05950). */
static struct psd_update update_of(const struct psd_work *work, const struct psd_op *op, uint32_t iteration)
{
	const struct psd_host *host = work->host;
	const uint32_t age = count_update(work, op, iteration);
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
	float *weight = psd_memory_part(memory, PSD_BUFFER_PART, i, op->slice);
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
