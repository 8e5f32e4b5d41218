/* Losses that workers report to worker 0. */
#include <inttypes.h>

#include "real/keep/soundness.h"
#include "real/session/worker_parts.h"

static void fail(struct psd_worker *worker, enum psd_status status)
{
	if (!worker->status)
		worker->status = status;
}

/* Workers with different selections would train on garbage. */
static void check_choices(struct psd_worker *worker, size_t row, uint32_t iteration)
{
	for (unsigned w = 1; w < worker->host.layout->workers; w++)
		if (worker->losses.reports[row + w].digest != worker->losses.reports[row].digest)
			fail(worker, psd_error_set(worker->err, PSD_ERUN, PSD_NOWHERE,
						   "worker %u chose other chunks than worker 0, in iteration %" PRIu32
						   " or before",
						   w, iteration - 1));
}

/* Digest up to the iteration before, since this one's selection may be missing. With stale reads a worker that replays
 * may be ahead of its transfers. */
static uint64_t digest_before(const struct psd_worker *worker, uint32_t iteration)
{
	const struct psd_chunk_selection *selection = psd_work_selection(&worker->work);

	if (!selection || iteration == 0)
		return 0;
	if (worker->replay)
		psd_worker_draw_until(worker, iteration - 1);
	return psd_chunk_selection_of(selection, iteration - 1)->digest;
}

static void compare_parameters(struct psd_worker *worker, size_t row, uint32_t iteration)
{
	for (unsigned w = 0; w < worker->host.layout->workers; w++)
		worker->losses.parameters[w] = worker->losses.reports[row + w].parameters;
	if (!worker->status)
		fail(worker, psd_host_compare(&worker->host, worker->losses.parameters, iteration, worker->err));
}

static void tell_progress(struct psd_worker *worker, uint32_t iteration)
{
	const size_t row = (size_t)(iteration % worker->losses.window) * worker->host.layout->workers;
	struct psd_progress progress = {
		.iteration = iteration,
		.n_iterations = worker->host.options->n_iterations,
		.elapsed_sec = psd_worker_now(worker),
	};
	const double labels =
		(double)worker->host.global_batch * (double)worker->host.graph->labels; /* 0 in some replays */
	uint64_t correct = 0;

	check_choices(worker, row, iteration);
	compare_parameters(worker, row, iteration);
	for (unsigned w = 0; w < worker->host.layout->workers; w++) { /* in order of rank, so the sum repeats exactly */
		progress.loss += worker->losses.reports[row + w].loss;
		correct += worker->losses.reports[row + w].correct;
	}
	progress.correct_ratio = labels > 0.0 ? (double)correct / labels : 0.0;
	worker->losses.last = progress.loss;
	psd_worker_follow_loss(worker, iteration, progress.loss);
	psd_worker_report_progress(worker, &progress);
	if (!worker->status)
		fail(worker, psd_host_check_loss(&worker->host, iteration, progress.loss, worker->err));
}

void psd_worker_take_report(struct psd_worker *worker, unsigned from, uint32_t iteration,
			    const struct psd_wire_report *report)
{
	const size_t row = iteration % worker->losses.window;

	worker->losses.reports[row * worker->host.layout->workers + from] = *report;
	if (++worker->losses.n_reports[row] < worker->host.layout->workers)
		return;
	worker->losses.n_reports[row] = 0;
	worker->losses.n_known++;
	tell_progress(worker, iteration);
}

void psd_worker_report(struct psd_worker *worker, struct psd_task task, double loss, uint32_t correct)
{
	struct psd_losses *losses = &worker->losses;

	losses->own_loss += loss;
	losses->own_correct += correct;
	if (worker->host.program->ops[task.op].micro_batch + 1 < worker->host.plan->micro_batches)
		return;
	struct psd_wire_report report = {losses->own_loss, losses->own_correct, digest_before(worker, task.iteration),
					 psd_host_digest(&worker->host, task.iteration)};
	losses->own_loss = 0.0;
	losses->own_correct = 0;
	losses->n_own = task.iteration + 1;
	if (worker->host.self == 0)
		psd_worker_take_report(worker, 0, task.iteration, &report);
	else
		psd_worker_send_report(worker, task.iteration, &report);
}
