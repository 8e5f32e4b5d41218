/* Local steps: a worker updates its parameters with its own gradients. In an exchange the drift since the last one
 * takes the gradient's position and is averaged over all workers. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "real/session/quality.h"
#include "real/session/solver.h"
#include "real/session/worker_parts.h"

/* ---- worker ---- */

static bool begins_period(const struct psd_worker *worker, uint32_t iteration)
{
	return iteration == worker->options->first_iteration ||
	       psd_period_first(psd_interpreter_period(&worker->interpreter, 0), iteration) == iteration;
}

static enum psd_status drift(struct psd_worker *worker, const struct psd_drift *whole, enum psd_drift_step step,
			     struct psd_error *err)
{
	struct psd_drift drift = *whole;

	drift.step = step;
	return worker->kind->drift(worker->device, &drift, err);
}

/* Tensor n of an item whose tensors' starts are contiguous. */
struct own {
	unsigned tensor;
	struct psd_drift drift; /* its blocks */
};

static struct own find_own(const struct psd_worker *worker, struct psd_task task, unsigned n, uint64_t offset)
{
	const unsigned item = (unsigned)worker->program->ops[task.op].item;
	const unsigned t = psd_plan_tensor(worker->plan, &worker->plan->items[item], n);
	const struct psd_memory *memory = worker->on_device;

	return (struct own){.tensor = t,
			    .drift = {
				    .weight = memory->parameters[t],
				    .start = psd_memory_buffer(memory, PSD_BUFFER_START, item, task.iteration) + offset,
				    .gradient = psd_memory_gradients(memory, task.iteration)[t],
				    .elements = worker->graph->tensors[t].elements,
				    .ratio = 1.0f / (float)worker->layout->workers,
			    }};
}

enum psd_status psd_worker_step_alone(struct psd_worker *worker, struct psd_task task, struct psd_error *err)
{
	const unsigned item = (unsigned)worker->program->ops[task.op].item;
	const bool begins = begins_period(worker, task.iteration);
	const bool ends = psd_period_exchanges(psd_interpreter_period(&worker->interpreter, 0), task.iteration);
	const struct psd_update update = psd_solver_own_update(worker->options->train, worker->layout->workers,
							       worker->global_batch, task.iteration);
	const struct psd_moments moments = psd_memory_moments(worker->on_device, item);
	uint64_t offset = 0;

	for (unsigned n = 0; n < worker->plan->items[item].n_tensors; n++) {
		const struct own own = find_own(worker, task, n, offset);
		const struct psd_update of_tensor = psd_solver_update_of(update, &worker->graph->tensors[own.tensor]);

		if (begins)
			PSD_TRY(drift(worker, &own.drift, PSD_DRIFT_BEGINS, err));
		PSD_TRY(worker->kind->apply(worker->device, &of_tensor, own.drift.weight, own.drift.gradient,
					    psd_moments_from(moments, offset), own.drift.elements, err));
		if (ends)
			PSD_TRY(drift(worker, &own.drift, PSD_DRIFT_ENDS, err));
		offset += own.drift.elements;
	}
	return PSD_OK;
}

enum psd_status psd_worker_join_steps(struct psd_worker *worker, struct psd_task task, struct psd_error *err)
{
	const unsigned item = (unsigned)worker->program->ops[task.op].item;
	uint64_t offset = 0;

	for (unsigned n = 0; n < worker->plan->items[item].n_tensors; n++) {
		const struct own own = find_own(worker, task, n, offset);

		PSD_TRY(drift(worker, &own.drift, PSD_DRIFT_JOINS, err));
		offset += own.drift.elements;
	}
	return PSD_OK;
}

/* ---- shard ---- */

const float *psd_worker_own_start(const struct psd_worker *worker, struct psd_task task)
{
	const struct psd_memory *memory = &worker->memory;
	const struct psd_op *op = &worker->program->ops[task.op];
	const unsigned item = (unsigned)op->item;

	if (worker->on_device != memory || psd_memory_part(memory, item, op->slice) ||
	    !psd_layout_is_worker(worker->layout, worker->self))
		return NULL;
	return psd_memory_buffer(memory, PSD_BUFFER_START, item, task.iteration) +
	       psd_memory_own_part(memory, item, op->slice).first;
}

/* ---- steps that follow the loss ---- */

/* Values of the tensor "local_sgd" in a checkpoint. */
enum { WINDOW, STEPS_EVEN, STEPS_ODD, FIRST_LOSS, LOWEST_LOSS, SUM_OF_LOSSES, N_LOSSES, VALUES };

bool psd_worker_follows_loss(const struct psd_worker *worker)
{
	return worker->plan->local && worker->plan->local->window > 0 && !worker->options->replay;
}

/* Iteration before which the next undecided window must be decided; nobody has begun it by then. */
static uint64_t decided_before(const struct psd_worker *worker)
{
	return worker->quality.n_known * worker->plan->local->window - worker->program->window;
}

uint64_t psd_worker_next_steps(const struct psd_worker *worker)
{
	return psd_worker_follows_loss(worker) ? decided_before(worker) : UINT64_MAX;
}

bool psd_worker_awaits_steps(const struct psd_worker *worker, uint32_t iteration)
{
	const struct psd_quality *quality = &worker->quality;

	return psd_worker_follows_loss(worker) &&
	       ((iteration == decided_before(worker) && quality->received_steps == 0) ||
		(worker->self == 0 && quality->n_losses_known < iteration));
}

bool psd_worker_knows_steps(const struct psd_worker *worker, uint32_t iteration)
{
	return !psd_worker_follows_loss(worker) || iteration < worker->quality.n_known * worker->plan->local->window;
}

void psd_worker_take_steps(struct psd_worker *worker, uint32_t iteration)
{
	struct psd_quality *quality = &worker->quality;

	if (!psd_worker_follows_loss(worker) || iteration != decided_before(worker))
		return;
	quality->steps[quality->n_known % 2] = quality->received_steps;
	psd_interpreter_set_steps(&worker->interpreter, quality->n_known++, quality->received_steps);
	quality->received_steps = 0;
}

void psd_worker_receive_steps(struct psd_worker *worker, uint32_t steps)
{
	worker->quality.received_steps = steps;
	if (worker->duties.n_carried == 0) /* it waits at no fence */
		psd_worker_take_steps(worker, (uint32_t)decided_before(worker));
}

static uint32_t steps_of_last(const struct psd_quality *quality)
{
	return quality->steps[(quality->n_known - 1) % 2];
}

/* True if the learning rate falls by a step in the next undecided window. */
static bool rate_falls(const struct psd_worker *worker)
{
	const uint64_t window = worker->plan->local->window, first = worker->quality.n_known * window;

	return psd_solver_drops(&worker->options->train->rate, first, first + window);
}

static uint32_t choose_steps(const struct psd_worker *worker, double loss)
{
	const struct psd_quality *quality = &worker->quality;
	const struct psd_losses_seen losses = {quality->first_loss, quality->lowest_loss, loss};

	return psd_quality_steps(worker->plan->local, &losses, steps_of_last(quality), rate_falls(worker));
}

static void remark_steps(const struct psd_worker *worker, uint32_t steps, double loss)
{
	char why[64] = "the learning rate falls", line[160];
	const uint64_t first = worker->quality.n_known * worker->plan->local->window;

	if (!worker->options->remark || steps == steps_of_last(&worker->quality) ||
	    first >= worker->options->n_iterations)
		return;
	if (!rate_falls(worker))
		snprintf(why, sizeof(why), "the loss is %.4g after %.4g at first", loss, worker->quality.first_loss);
	snprintf(line, sizeof(line), "after %" PRIu64 " iterations %" PRIu32 " local step%s instead of %" PRIu32 ": %s",
		 first, steps, steps == 1 ? "" : "s", steps_of_last(&worker->quality), why);
	worker->options->remark(worker->options->context, line);
}

void psd_worker_follow_loss(struct psd_worker *worker, uint32_t iteration, double loss)
{
	struct psd_quality *quality = &worker->quality;
	double mean;
	uint32_t steps;

	quality->n_losses_known = iteration + 1;
	if (!psd_worker_follows_loss(worker))
		return;
	quality->first_loss = iteration == quality->first_iteration ? loss : quality->first_loss;
	quality->sum += loss;
	quality->n++;
	if (iteration + UINT64_C(1) != decided_before(worker))
		return;
	mean = quality->sum / quality->n;
	steps = choose_steps(worker, mean);
	quality->lowest_loss = fmin(quality->lowest_loss, mean);
	quality->sum = 0.0;
	quality->n = 0;
	remark_steps(worker, steps, mean);
	psd_worker_send_steps(worker, quality->n_known, steps);
	psd_worker_receive_steps(worker, steps);
}

enum psd_status psd_worker_open_local(struct psd_worker *worker, struct psd_error *err)
{
	const uint32_t steps = psd_plan_steps(worker->plan);

	worker->quality = (struct psd_quality){
		.n_known = 1,
		.n_losses_known = worker->options->first_iteration,
		.first_iteration = worker->options->from_hosts > 0 ? worker->options->first_iteration : 0,
		.lowest_loss = INFINITY,
	};
	if (!psd_worker_follows_loss(worker))
		return PSD_OK;
	worker->quality.steps[0] = worker->quality.steps[1] = steps;
	/* a checkpoint is written once the next window's steps are known */
	worker->quality.n_known +=
		(uint32_t)((worker->options->first_iteration + worker->program->window) / worker->plan->local->window);
	worker->quality.saved = psd_arena_take(&worker->arena, VALUES * sizeof(*worker->quality.saved));
	return worker->quality.saved ? PSD_OK : psd_worker_out_of_memory(err);
}

unsigned psd_worker_quality_values(const struct psd_worker *worker)
{
	return worker->quality.saved ? VALUES : 0;
}

void psd_worker_save_quality(struct psd_worker *worker)
{
	const struct psd_quality *quality = &worker->quality;
	double *saved = quality->saved;

	if (!saved)
		return;
	saved[WINDOW] = (double)worker->plan->local->window;
	saved[STEPS_EVEN] = quality->steps[0];
	saved[STEPS_ODD] = quality->steps[1];
	saved[FIRST_LOSS] = quality->first_loss;
	saved[LOWEST_LOSS] = quality->lowest_loss;
	saved[SUM_OF_LOSSES] = quality->sum;
	saved[N_LOSSES] = quality->n;
}

enum psd_status psd_worker_restore_quality(struct psd_worker *worker, const char *path, struct psd_error *err)
{
	struct psd_quality *quality = &worker->quality;
	const double *saved = quality->saved;
	const double most = psd_plan_steps(worker->plan);

	if (!saved)
		return PSD_OK;
	if (saved[WINDOW] != (double)worker->plan->local->window)
		return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = path},
				     "'local_sgd' of the checkpoint has a window of %g iterations, must be %" PRIu64,
				     saved[WINDOW], worker->plan->local->window);
	for (unsigned s = STEPS_EVEN; s <= STEPS_ODD; s++)
		if (!(saved[s] >= 1.0 && saved[s] <= most))
			return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = path},
					     "'local_sgd' of the checkpoint has %g steps, must be 1 to %g", saved[s],
					     most);
	if (!(saved[N_LOSSES] >= 0.0 && saved[N_LOSSES] <= saved[WINDOW]))
		return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = path},
				     "'local_sgd' of the checkpoint has %g losses, must be 0 to %g", saved[N_LOSSES],
				     saved[WINDOW]);
	quality->steps[0] = (uint32_t)saved[STEPS_EVEN];
	quality->steps[1] = (uint32_t)saved[STEPS_ODD];
	quality->first_loss = saved[FIRST_LOSS];
	quality->lowest_loss = saved[LOWEST_LOSS];
	quality->sum = saved[SUM_OF_LOSSES];
	quality->n = (uint32_t)saved[N_LOSSES];
	return PSD_OK;
}
