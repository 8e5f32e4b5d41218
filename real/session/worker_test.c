/* When worker 0 passes the test samples, and what is told of each iteration. A test stands between two iterations: the
 * one before is complete on this host, and the parameters stay as they are until this worker's own next gradient. */
#include "real/session/worker_parts.h"

bool psd_worker_is_test_due(const struct psd_worker *worker, uint32_t iteration)
{
	const uint32_t batch = worker->options->made->matter->scenario->batch_per_worker;
	uint64_t samples;

	if (worker->self != 0 || !worker->options->is_tested || psd_feed_samples(worker->feed, PSD_DATA_TEST) < batch)
		return false;
	if (iteration + 1 == worker->options->n_iterations)
		return true;
	samples = worker->options->train->test_every_epochs * psd_feed_samples(worker->feed, PSD_DATA_TRAINING);
	return samples > 0 &&
	       (iteration + UINT64_C(1)) * worker->global_batch / samples > iteration * worker->global_batch / samples;
}

void psd_worker_fence_test(struct psd_worker *worker, uint32_t iteration)
{
	while (iteration + 1 < worker->options->n_iterations && !psd_worker_is_test_due(worker, iteration))
		iteration++;
	if (iteration + 1 < worker->options->n_iterations)
		psd_interpreter_set_fence(&worker->interpreter, 0, iteration + 1);
}

/* ---- what is told ---- */

static void tell_if_complete(struct psd_worker *worker)
{
	struct psd_tests *tests = &worker->tests;

	if (!tests->has_progress || !tests->has_result)
		return;
	tests->has_progress = tests->has_result = false;
	tests->progress.test_samples = tests->samples;
	tests->progress.test_correct = tests->correct;
	if (tests->samples)
		tests->progress.elapsed_sec = tests->begun_sec;
	if (worker->options->progress)
		worker->options->progress(worker->options->context, &tests->progress);
}

void psd_worker_tell(struct psd_worker *worker, const struct psd_progress *progress)
{
	struct psd_tests *tests = &worker->tests;

	tests->progress = *progress;
	if (worker->feed)
		tests->progress.epochs = ((double)progress->iteration + 1.0) * (double)worker->global_batch /
					 (double)psd_feed_samples(worker->feed, PSD_DATA_TRAINING);
	tests->has_progress = true;
	if (!psd_worker_is_test_due(worker, progress->iteration)) {
		tests->samples = tests->correct = 0;
		tests->has_result = true;
	}
	tell_if_complete(worker);
}

void psd_worker_tested(struct psd_worker *worker, double begun_sec, uint64_t samples, uint64_t correct)
{
	worker->tests.begun_sec = begun_sec;
	worker->tests.samples = samples;
	worker->tests.correct = correct;
	worker->tests.has_result = true;
	tell_if_complete(worker);
}
