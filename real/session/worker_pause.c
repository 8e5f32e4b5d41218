/* Work between two iterations and after the last: worker 0 passes the test samples, every host writes a checkpoint or
 * looks at its parameters. The iteration before is complete on this host, and a fence of the interpreter holds the next
 * one, so the state does not change. All are jobs of the device's lane; all else here runs in the loop's thread. The
 * second half reports progress. */
#include <math.h>

#include "real/keep/checkpoint.h"
#include "real/keep/save.h"
#include "real/keep/soundness.h"
#include "real/keep/whole.h"
#include "real/net/socket.h"
#include "real/session/worker_parts.h"

/* ---- schedule ---- */

/* A pause waits until all workers have the same parameters: right after an exchange, or at the end. Where fragments
 * take turns it does not, since workers have them only in the end. */
static uint64_t once_exchanged(const struct psd_worker *worker, uint64_t iteration)
{
	const struct psd_period *period = psd_interpreter_period(&worker->interpreter, 0);

	if (iteration >= worker->host.options->n_iterations)
		return worker->host.options->n_iterations;
	return psd_plan_streams(worker->host.plan) ? iteration
						   : psd_period_next(period, (uint32_t)iteration - 1) + UINT64_C(1);
}

/* The exchange that has served everything due up to here. */
static uint64_t last_exchanged(const struct psd_worker *worker, uint32_t iteration)
{
	return psd_plan_streams(worker->host.plan)
		       ? iteration
		       : psd_period_first(psd_interpreter_period(&worker->interpreter, 0), iteration);
}

/* First iteration, from 1 on, with at least that many samples before it. */
static uint64_t iteration_behind(const struct psd_worker *worker, uint64_t samples)
{
	const uint64_t first = worker->host.options->first_iteration, batch = worker->host.global_batch;
	const uint64_t begun = worker->host.options->first_sample;

	if (samples >= begun)
		return first + (samples - begun + batch - 1) / batch;
	return first > (begun - samples) / batch + 1 ? first - (begun - samples) / batch : 1;
}

uint64_t psd_worker_untested(const struct psd_worker *worker)
{
	const struct psd_feed *feed = psd_work_feed(&worker->work);
	const uint64_t samples = worker->host.options->is_tested && feed ? psd_feed_samples(feed, PSD_DATA_TEST) : 0;

	return samples < worker->host.batch ? samples : 0;
}

/* First iteration after `iteration` with a test on worker 0 before it; UINT64_MAX: none. Every worker knows. */
static uint64_t next_test_of_run(const struct psd_worker *worker, uint32_t iteration)
{
	const uint32_t batch = worker->host.batch;
	uint64_t samples, times;

	if (!worker->host.options->is_tested || !psd_work_feed(&worker->work) ||
	    psd_feed_samples(psd_work_feed(&worker->work), PSD_DATA_TEST) < batch)
		return UINT64_MAX;
	samples = worker->host.options->train->test_every_epochs *
		  psd_feed_samples(psd_work_feed(&worker->work), PSD_DATA_TRAINING);
	if (samples == 0)
		return worker->host.options->n_iterations;
	times = psd_host_samples(&worker->host, last_exchanged(worker, iteration)) / samples + 1;
	return once_exchanged(worker, iteration_behind(worker, times * samples));
}

/* The same on this host. */
static uint64_t next_test(const struct psd_worker *worker, uint32_t iteration)
{
	return worker->host.self == 0 ? next_test_of_run(worker, iteration) : UINT64_MAX;
}

/* The same for checkpoints, which every host writes. */
static uint64_t next_checkpoint(const struct psd_worker *worker, uint32_t iteration)
{
	const struct psd_checkpoints *checkpoints = worker->host.options->checkpoints;

	if (!checkpoints)
		return UINT64_MAX;
	const uint64_t times = last_exchanged(worker, iteration) / checkpoints->every_iterations + UINT64_C(1);
	return once_exchanged(worker, times * checkpoints->every_iterations);
}

/* The same for looks at the parameters, which every worker takes; also at the end. */
static uint64_t next_look(const struct psd_worker *worker, uint32_t iteration)
{
	const uint64_t every = worker->host.options->replay ? 0 : worker->host.options->train->compare_every;

	if (every == 0 || !psd_layout_is_worker(worker->host.layout, worker->host.self))
		return UINT64_MAX;
	if (psd_plan_streams(worker->host.plan))
		return worker->host.options->n_iterations;
	return once_exchanged(worker, (last_exchanged(worker, iteration) / every + 1) * every);
}

static uint64_t earlier(uint64_t one, uint64_t other)
{
	return one < other ? one : other;
}

/* The same for parameters that worker 0 gathers, for a test or a checkpoint. */
static uint64_t next_gathering(const struct psd_worker *worker, uint32_t iteration)
{
	if (worker->host.options->replay || !psd_host_keeps_parts(&worker->host))
		return UINT64_MAX;
	return earlier(next_test_of_run(worker, iteration), next_checkpoint(worker, iteration));
}

/* True if the next of these is right after `iteration`. */
static bool is_due(const struct psd_worker *worker, uint32_t iteration,
		   uint64_t (*next)(const struct psd_worker *worker, uint32_t iteration))
{
	return next(worker, iteration) == iteration + UINT64_C(1);
}

/* Asynchronous workers do not wait for others' gradients at a test: the device executes it before the first layer of
 * the next iteration, when all parameters of this worker have arrived. With `barrier: layer` some have not. */
static bool tests_between_layers(const struct psd_worker *worker)
{
	return worker->host.plan->async && worker->host.plan->system->barrier == PSD_BARRIER_ITERATION;
}

/* The next test for which hosts pause. */
static uint64_t next_test_pause(const struct psd_worker *worker, uint32_t iteration)
{
	const uint32_t end = worker->host.options->n_iterations;

	if (!tests_between_layers(worker))
		return next_test(worker, iteration);
	return is_due(worker, end - 1, next_test) ? end : UINT64_MAX;
}

/* A checkpoint, or a look, which a checkpoint includes. */
static bool is_state_due(const struct psd_worker *worker, uint32_t iteration)
{
	return is_due(worker, iteration, next_checkpoint) || is_due(worker, iteration, next_look);
}

uint32_t psd_worker_next_pause(const struct psd_worker *worker, uint32_t iteration)
{
	const uint64_t state = earlier(next_checkpoint(worker, iteration), next_look(worker, iteration));
	const uint64_t test = earlier(next_test_pause(worker, iteration), next_gathering(worker, iteration));
	const uint64_t next = earlier(earlier(test, state), psd_worker_next_steps(worker));

	return iteration < worker->host.options->n_iterations && next <= worker->host.options->n_iterations
		       ? (uint32_t)next
		       : 0;
}

/* ---- the pause ---- */

static enum psd_status wait_for_compute(struct psd_worker *worker, struct psd_error *err)
{
	const uint64_t mark = worker->host.kind->mark(worker->host.device, PSD_STREAM_COMPUTE);

	return worker->host.kind->wait(worker->host.device, PSD_STREAM_COMPUTE, mark, err);
}

/* Passes a batch. Gathered parameters take turns in the device's memory. */
static enum psd_status pass_forward(struct psd_worker *worker, struct psd_error *err)
{
	struct psd_host *host = &worker->host;
	struct psd_layers layers = {0, host->graph->n_layers};

	for (unsigned l = 0; l < host->graph->n_layers; l = layers.end) {
		if (host->whole.values) {
			layers = psd_program_layers(host->graph, l);
			PSD_TRY(psd_whole_use(host, layers, err));
		}
		PSD_TRY(psd_work_pass(&worker->work, (struct psd_pass){layers.first, layers.end, false}, err));
	}
	return PSD_OK;
}

/* Runs all test samples that fill batches. */
static enum psd_status run_test(struct psd_worker *worker, struct psd_job *job, struct psd_error *err)
{
	const uint32_t n = worker->host.batch;
	const uint64_t n_samples = psd_feed_samples(psd_work_feed(&worker->work), PSD_DATA_TEST);

	for (uint64_t first = 0; first + n <= n_samples; first += n) {
		struct psd_batch batch = {.is_training = false};
		struct psd_samples samples;

		PSD_TRY(psd_feed_test(psd_work_feed(&worker->work), first, &samples, err));
		batch.images = samples.images;
		batch.labels = samples.labels;
		PSD_TRY(worker->host.kind->begin(worker->host.device, &batch, err));
		PSD_TRY(pass_forward(worker, err));
		if (worker->host.kind->is_asynchronous)
			PSD_TRY(wait_for_compute(worker, err));
		job->test_correct += worker->host.kind->correct(worker->host.device);
		job->test_labels += n * worker->host.graph->labels;
		psd_host_moved_test(&worker->host);
	}
	return PSD_OK;
}

bool psd_worker_takes_test(const struct psd_worker *worker, struct psd_task task)
{
	const struct psd_op *op = &worker->host.program->ops[task.op];

	return tests_between_layers(worker) && task.iteration > worker->host.options->first_iteration &&
	       psd_ops[op->kind].is_forward && op->micro_batch == 0 &&
	       psd_program_layers(worker->host.graph, op->layer).first == 0 &&
	       is_due(worker, task.iteration - 1, next_test) && !is_state_due(worker, task.iteration - 1);
}

void psd_worker_test(struct psd_job *job)
{
	psd_host_moved(&job->worker->host);
	job->test_start_sec = psd_worker_now(job->worker);
	job->status = run_test(job->worker, job, &job->err);
	job->test_sec = psd_worker_now(job->worker) - job->test_start_sec;
}

/* Before the task's iteration. */
static void pause_job(void *context)
{
	struct psd_job *job = context;
	struct psd_worker *worker = job->worker;
	const double begun_cpu_sec = psd_machine_own_sec();

	psd_host_moved(&worker->host);
	job->start_sec = psd_worker_now(worker);
	if (job->is_test)
		psd_worker_test(job);
	else if (is_due(worker, job->task.iteration - 1, next_checkpoint))
		job->status = psd_host_save(&worker->host, job->task.iteration, &job->err);
	else
		job->status = psd_host_look(&worker->host, job->task.iteration, &job->err);
	job->sec = psd_worker_now(worker) - job->start_sec;
	job->cpu_sec = psd_machine_own_sec() - begun_cpu_sec;
}

/* The lane for such jobs, whether the host computes layers or not. */
static struct psd_jobs *lane_of(struct psd_worker *worker)
{
	return &worker->jobs[PSD_RESOURCE_DEVICE];
}

/* Once, when all parameters have been gathered. */
static void count_gathering(struct psd_worker *worker, uint32_t iteration)
{
	if (worker->gathering.begun_sec > 0.0)
		worker->pauses.sec[iteration] += psd_worker_now(worker) - worker->gathering.begun_sec;
	worker->gathering.begun_sec = 0.0;
}

static void end_pause(struct psd_worker *worker, uint32_t iteration)
{
	psd_worker_end_gathering(worker);
	psd_interpreter_pass_fence(&worker->interpreter, 0, psd_worker_next_pause(worker, iteration));
}

/* The test is first: a run that resumes from the checkpoint must not repeat it. */
bool psd_worker_pause(struct psd_worker *worker)
{
	struct psd_jobs *jobs = lane_of(worker);
	struct psd_job *job = &jobs->jobs[jobs->n_queued % PSD_LANE_JOBS];
	const uint32_t iteration = psd_interpreter_iteration(&worker->interpreter, 0);

	if (worker->pauses.is_under_way || !psd_interpreter_is_at_fence(&worker->interpreter, 0) ||
	    psd_worker_awaits_steps(worker, iteration))
		return false;
	psd_worker_take_steps(worker, iteration);
	if (is_due(worker, iteration - 1, next_gathering) && !psd_worker_has_gathered(worker, iteration)) {
		const bool begins = psd_worker_gather_parameters(worker, iteration);

		worker->pauses.is_under_way = worker->pauses.is_under_way || begins;
		return begins;
	}
	count_gathering(worker, iteration);
	if (!is_due(worker, iteration - 1, next_test) && !is_state_due(worker, iteration - 1)) {
		end_pause(worker, iteration);
		return true;
	}
	worker->pauses.is_under_way = true;
	*job = (struct psd_job){.worker = worker,
				.task.iteration = iteration,
				.queued_sec = psd_socket_now_sec(),
				.is_pause = true,
				.is_test = !worker->pauses.is_test_over && is_due(worker, iteration - 1, next_test)};
	jobs->n_queued++;
	psd_lane_start(&jobs->lane, pause_job, job);
	return true;
}

/* ---- progress ---- */

/* Once all losses of the iteration are known, and the result of the test after it. */
static void tell_if_complete(struct psd_worker *worker)
{
	struct psd_pauses *pauses = &worker->pauses;
	const struct psd_tested *tested = &pauses->tests[pauses->progress.iteration + UINT64_C(1)];

	if (!pauses->has_progress || (!tested->is_over && is_due(worker, pauses->progress.iteration, next_test)))
		return;
	pauses->has_progress = false;
	pauses->progress.test_labels = tested->labels;
	pauses->progress.test_correct = tested->correct;
	if (tested->labels) /* an asynchronous worker may know its own before it knows all losses */
		pauses->progress.elapsed_sec = fmax(pauses->progress.elapsed_sec, tested->start_sec);
	if (worker->host.options->progress)
		worker->host.options->progress(worker->host.options->context, &pauses->progress);
}

void psd_worker_report_progress(struct psd_worker *worker, const struct psd_progress *progress)
{
	struct psd_pauses *pauses = &worker->pauses;

	pauses->progress = *progress;
	if (psd_work_feed(&worker->work))
		pauses->progress.epochs = (double)psd_host_samples(&worker->host, progress->iteration + UINT64_C(1)) /
					  (double)psd_feed_samples(psd_work_feed(&worker->work), PSD_DATA_TRAINING);
	pauses->has_progress = true;
	tell_if_complete(worker);
}

static void tell_test(struct psd_worker *worker, const struct psd_job *job)
{
	worker->pauses.tests[job->task.iteration] = (struct psd_tested){
		.is_over = true,
		.start_sec = job->test_start_sec,
		.labels = job->test_labels,
		.correct = job->test_correct,
	};
	tell_if_complete(worker);
}

void psd_worker_tested(struct psd_worker *worker, const struct psd_job *job)
{
	worker->pauses.sec[job->task.iteration] += job->test_sec;
	tell_test(worker, job);
}

/* ---- after the pause ---- */

void psd_worker_go_on(struct psd_worker *worker, const struct psd_job *job)
{
	const uint32_t iteration = job->task.iteration;

	worker->pauses.is_under_way = false;
	if (job->is_gathering) {
		psd_worker_begin_gathering(worker);
		return;
	}
	worker->pauses.sec[iteration] += job->sec;
	worker->load.jobs_cpu_sec += job->cpu_sec;
	if (job->is_test)
		tell_test(worker, job);
	worker->pauses.is_test_over = job->is_test && is_state_due(worker, iteration - 1);
	if (!worker->pauses.is_test_over)
		end_pause(worker, iteration);
}
