/* Local steps that follow the loss: worker 0 chooses their number for each window of iterations. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "real/keep/state.h"
#include "real/session/quality.h"
#include "real/session/worker_parts.h"
#include "real/work/solver.h"

/* Values of the tensor "local_sgd" in a checkpoint. */
enum { WINDOW, STEPS_EVEN, STEPS_ODD, FIRST_LOSS, LOWEST_LOSS, SUM_OF_LOSSES, N_LOSSES, VALUES };

/* Iteration before which the next undecided window must be decided; nobody has begun it by then. */
static uint64_t decided_before(const struct psd_worker *worker)
{
	return worker->quality.n_known * worker->host.plan->local->window - worker->host.program->window;
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
		(worker->host.self == 0 && quality->n_losses_known < iteration));
}

bool psd_worker_knows_steps(const struct psd_worker *worker, uint32_t iteration)
{
	return !psd_worker_follows_loss(worker) ||
	       iteration < worker->quality.n_known * worker->host.plan->local->window;
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
	const uint64_t window = worker->host.plan->local->window, first = worker->quality.n_known * window;

	return psd_solver_drops(&worker->host.options->train->rate, first, first + window);
}

static uint32_t choose_steps(const struct psd_worker *worker, double loss)
{
	const struct psd_quality *quality = &worker->quality;
	const struct psd_losses_seen losses = {quality->first_loss, quality->lowest_loss, loss};

	return psd_quality_steps(worker->host.plan->local, &losses, steps_of_last(quality), rate_falls(worker));
}

static void remark_steps(const struct psd_worker *worker, uint32_t steps, double loss)
{
	char why[64] = "the learning rate falls", line[160];
	const uint64_t first = worker->quality.n_known * worker->host.plan->local->window;

	if (!worker->host.options->remark || steps == steps_of_last(&worker->quality) ||
	    first >= worker->host.options->n_iterations)
		return;
	if (!rate_falls(worker))
		snprintf(why, sizeof(why), "the loss is %.4g after %.4g at first", loss, worker->quality.first_loss);
	snprintf(line, sizeof(line), "after %" PRIu64 " iterations %" PRIu32 " local step%s instead of %" PRIu32 ": %s",
		 first, steps, psd_text_plural(steps), steps_of_last(&worker->quality), why);
	worker->host.options->remark(worker->host.options->context, line);
}

void psd_worker_follow_loss(struct psd_worker *worker, uint32_t iteration, double loss)
{
	struct psd_quality *quality = &worker->quality;

	quality->n_losses_known = iteration + 1;
	if (!psd_worker_follows_loss(worker))
		return;
	quality->first_loss = iteration == quality->first_iteration ? loss : quality->first_loss;
	quality->sum += loss;
	quality->n++;
	if (iteration + UINT64_C(1) != decided_before(worker))
		return;
	const double mean = quality->sum / quality->n;
	const uint32_t steps = choose_steps(worker, mean);
	quality->lowest_loss = fmin(quality->lowest_loss, mean);
	quality->sum = 0.0;
	quality->n = 0;
	remark_steps(worker, steps, mean);
	psd_worker_send_steps(worker, quality->n_known, steps);
	psd_worker_receive_steps(worker, steps);
}

static void keep(void *context, struct psd_state *state)
{
	const struct psd_worker *worker = context;
	const struct psd_quality *quality = &worker->quality;
	double *saved = quality->saved;

	saved[WINDOW] = (double)worker->host.plan->local->window;
	saved[STEPS_EVEN] = quality->steps[0];
	saved[STEPS_ODD] = quality->steps[1];
	saved[FIRST_LOSS] = quality->first_loss;
	saved[LOWEST_LOSS] = quality->lowest_loss;
	saved[SUM_OF_LOSSES] = quality->sum;
	saved[N_LOSSES] = quality->n;
	psd_state_add_vector(state, "local_sgd", PSD_TENSOR_F64, VALUES, saved);
}

static enum psd_status take(void *context, const char *path, struct psd_error *err)
{
	struct psd_worker *worker = context;
	struct psd_quality *quality = &worker->quality;
	const double *saved = quality->saved;
	const double most = psd_plan_steps(worker->host.plan);

	if (saved[WINDOW] != (double)worker->host.plan->local->window)
		return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = path},
				     "'local_sgd' of the checkpoint has a window of %g iterations, must be %" PRIu64,
				     saved[WINDOW], worker->host.plan->local->window);
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

enum psd_status psd_worker_open_quality(struct psd_worker *worker, struct psd_error *err)
{
	const uint32_t steps = psd_plan_steps(worker->host.plan);

	worker->quality = (struct psd_quality){
		.n_known = 1,
		.n_losses_known = worker->host.options->first_iteration,
		.first_iteration = worker->host.options->from_hosts > 0 ? worker->host.options->first_iteration : 0,
		.lowest_loss = INFINITY,
	};
	if (!psd_worker_follows_loss(worker))
		return PSD_OK;
	worker->quality.steps[0] = worker->quality.steps[1] = steps;
	/* a checkpoint is written once the next window's steps are known */
	worker->quality.n_known += (uint32_t)((worker->host.options->first_iteration + worker->host.program->window) /
					      worker->host.plan->local->window);
	worker->quality.saved = psd_host_take(&worker->host, VALUES, sizeof(*worker->quality.saved), err);
	worker->host.keepers[worker->host.n_keepers++] =
		(struct psd_keeper){"local_sgd", "adaptive local steps", keep, take, NULL, worker};
	return worker->quality.saved ? PSD_OK : PSD_ENOMEM;
}
