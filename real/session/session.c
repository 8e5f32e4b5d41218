/* Life of a session: join the others, execute the program, part, report. */
#define _GNU_SOURCE
#include "real/session/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "real/keep/save.h"
#include "real/keep/soundness.h"
#include "real/keep/whole.h"
#include "real/session/worker_parts.h"
#include "real/work/sums.h"

/* ---- opening ---- */

/* Zeroed memory that lives as long as the worker. */
static void *take(struct psd_worker *worker, size_t n, size_t bytes)
{
	return psd_arena_take(&worker->host.arena, n * bytes);
}

static enum psd_status allocate(struct psd_worker *worker, struct psd_error *err)
{
	const uint32_t n_iterations = worker->host.options->n_iterations;
	const size_t n_ops = worker->host.program->n_ops;

	/* a peer is at most two windows and its local steps ahead; twice that, for late reports of others */
	worker->losses.window = 4 * worker->host.program->window + 2 * (psd_plan_steps(worker->host.plan) - 1);
	worker->peers = take(worker, worker->host.n_hosts, sizeof(*worker->peers));
	worker->last_sec = take(worker, n_ops, sizeof(*worker->last_sec));
	worker->liveness.longest_sec = take(worker, n_ops, sizeof(*worker->liveness.longest_sec));
	worker->losses.reports = take(worker, (size_t)worker->losses.window * worker->host.layout->workers,
				      sizeof(*worker->losses.reports));
	worker->losses.n_reports = take(worker, worker->losses.window, sizeof(*worker->losses.n_reports));
	worker->losses.parameters = take(worker, worker->host.layout->workers, sizeof(*worker->losses.parameters));
	worker->pauses.sec = take(worker, n_iterations + (size_t)1, sizeof(*worker->pauses.sec));
	worker->pauses.tests = take(worker, n_iterations + (size_t)1, sizeof(*worker->pauses.tests));
	worker->timers.late_sec = take(worker, n_iterations, sizeof(*worker->timers.late_sec));
	worker->load.beside_sec = take(worker, n_iterations, sizeof(*worker->load.beside_sec));
	if (!worker->load.beside_sec || !worker->timers.late_sec || !worker->peers || !worker->last_sec ||
	    !worker->liveness.longest_sec || !worker->losses.reports || !worker->losses.n_reports ||
	    !worker->losses.parameters || !worker->pauses.sec || !worker->pauses.tests)
		return psd_worker_out_of_memory(err);
	for (unsigned p = 0; p < worker->host.n_hosts; p++) {
		worker->peers[p].ops = take(worker, n_ops, sizeof(*worker->peers[p].ops));
		if (!worker->peers[p].ops)
			return psd_worker_out_of_memory(err);
		for (size_t o = 0; o < n_ops; o++)
			worker->peers[p].ops[o] =
				(struct psd_expected){.next_iteration = worker->host.options->first_iteration,
						      .next_signal = worker->host.options->first_iteration};
	}
	worker->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (worker->wake_fd < 0)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot make an event descriptor (eventfd): %s",
				     strerror(errno));
	return PSD_OK;
}

static void tell_span(void *context, unsigned host, struct psd_task task, double start_sec, double end_sec)
{
	struct psd_worker *worker = context;

	(void)host;
	psd_worker_record(worker, task, start_sec, end_sec);
}

static enum psd_status open_interpreter(struct psd_worker *worker, struct psd_error *err)
{
	const struct psd_seam seam = {
		.now = psd_worker_now,
		.does_real_work = !worker->replay,
		.n_ahead = worker->host.kind->is_asynchronous ? PSD_MOST_AHEAD : 0,
		.work = worker->replay ? psd_worker_replay : psd_worker_work,
		.send = psd_worker_send,
		.collective = psd_worker_collective,
		.announce = worker->is_coordinated && worker->host.self > 0 ? psd_worker_announce : NULL,
		.choose = worker->is_coordinated && worker->host.self == 0 ? psd_worker_choose : NULL,
		.span = worker->host.options->span ? tell_span : NULL,
		.context = worker,
	};
	const struct psd_duties *const duties[] = {&worker->duties};
	const struct psd_iterations iterations = {.first = worker->host.options->first_iteration,
						  .end = worker->host.options->n_iterations,
						  .steps = {worker->quality.steps[0], worker->quality.steps[1]},
						  .ends_equal = !worker->host.options->replay,
						  .equal = worker->equal_iteration};

	PSD_TRY(psd_duties_make(&worker->duties, worker->host.program, worker->host.self, psd_worker_arrivals, worker,
				err));
	PSD_TRY(psd_interpreter_init(&worker->interpreter, worker->host.program, 1, duties, iterations, &seam, err));
	worker->work.period = psd_interpreter_period(&worker->interpreter, 0);
	return PSD_OK;
}

/* A server without any part of an item: it has nothing to sum. */
static bool is_idle(const struct psd_worker *worker)
{
	const struct psd_program *program = worker->host.program;
	bool is_idle = !psd_layout_is_worker(worker->host.layout, worker->host.self);

	for (uint32_t o = 0; o < program->n_ops && is_idle; o++)
		is_idle = !psd_op_is_receive(&program->ops[o]) ||
			  !psd_op_runs_on(&program->ops[o], worker->host.layout, worker->host.self) ||
			  psd_worker_arrivals(worker, &program->ops[o], worker->host.self) == 0;
	return is_idle;
}

/* Such a server ends before the others begin, and has no iterations to resume together. */
static enum psd_status refuse_idle(const struct psd_worker *worker, struct psd_error *err)
{
	return psd_error_set(
		err, PSD_EINVAL, (struct psd_place){.path = worker->host.options->made->costed->scenario->path},
		"server %u of system '%.80s' has no tensor, with '--save' each must have one: choose fewer 'servers'",
		worker->host.self - worker->host.layout->workers, worker->host.plan->system->name);
}

static enum psd_status open_worker(struct psd_worker *worker, struct psd_error *err)
{
	PSD_TRY(allocate(worker, err));
	psd_worker_beat(worker, PSD_PULSE_STARTING);
	PSD_TRY(worker->replay ? psd_worker_open_replay(worker, err) : psd_worker_open_training(worker, err));
	PSD_TRY(open_interpreter(worker, err));
	if (worker->host.options->checkpoints && is_idle(worker))
		return refuse_idle(worker, err);
	psd_worker_beat(worker, PSD_PULSE_JOINING);
	PSD_TRY(psd_worker_join(worker, err));
	psd_worker_beat(worker, PSD_PULSE_STARTING);
	return worker->host.options->checkpoints ? psd_host_begin_saving(&worker->host, err) : PSD_OK;
}

/* Waits for their current jobs. */
static void close_lanes(struct psd_worker *worker, enum psd_resource but)
{
	for (int r = 0; r < PSD_RESOURCES; r++)
		if (worker->jobs[r].has_lane && r != (int)but)
			psd_lane_close(&worker->jobs[r].lane);
}

static void close_worker(struct psd_worker *worker, bool is_orderly)
{
	close_lanes(worker, PSD_RESOURCE_NONE);
	psd_sums_close(&worker->work, is_orderly);
	psd_connections_close(worker->connections);
	psd_emulated_close(worker->emulated);
	psd_rate_limit_unshare(worker->limit);
	psd_interpreter_release(&worker->interpreter);
	psd_duties_release(&worker->duties);
	psd_work_close(&worker->work);
	if (worker->host.has_device)
		worker->host.kind->close(worker->host.device);
	psd_whole_close(&worker->host);
	psd_memory_release(&worker->host.memory);
	psd_memory_release(&worker->host.apart);
	psd_repeated_memory_close(&worker->repeated);
	psd_repeated_memory_close(&worker->zeros);
	if (worker->wake_fd >= 0)
		close(worker->wake_fd);
	psd_arena_release(&worker->host.arena);
}

/* A separate server computes in host memory, a replay not at all. */
static const struct psd_device_kind *kind_of(const struct psd_worker_options *options)
{
	const bool is_worker = psd_layout_is_worker(&options->made->plan.layout, options->self);

	return options->device && !psd_worker_is_replayed(options) && (is_worker || !options->device->has_own_memory)
		       ? options->device
		       : &psd_device_cpu;
}

static struct psd_host host_of(const struct psd_worker_options *options)
{
	const struct psd_plan *plan = &options->made->plan;
	const unsigned worker = psd_layout_is_worker(&plan->layout, options->self) ? options->self : 0;

	return (struct psd_host){
		.options = options,
		.program = &options->made->program,
		.plan = plan,
		.layout = &plan->layout,
		.graph = plan->graph,
		.kind = kind_of(options),
		.self = options->self,
		.n_hosts = psd_layout_hosts(&plan->layout),
		.global_batch = psd_case_samples(options->made),
		.batch = psd_case_batch(options->made, worker),
		.samples_before = psd_case_batches_before(options->made, worker) * plan->micro_batches,
	};
}

enum psd_status psd_session_open(struct psd_worker **session, const struct psd_worker_options *options,
				 struct psd_error *err)
{
	struct psd_worker *worker = calloc(1, sizeof(*worker));

	if (!worker)
		return psd_worker_out_of_memory(err);
	*worker = (struct psd_worker){
		.host = host_of(options),
		.work.host = &worker->host,
		.is_coordinated = !psd_program_orders_collectives(&options->made->program),
		.replay = psd_worker_is_replayed(options) ? options->replay : NULL,
		.is_beside_others = options->replay && options->replay->real_workers > 0,
		.timers.dilation_ratio = options->replay ? options->replay->dilation_ratio : 1.0,
		.losses.n_own = options->first_iteration,
		.n_connections = psd_train_least_streams(options->train),
		.wake_fd = -1,
		.err = err,
	};
	enum psd_status status = open_worker(worker, err);
	if (!status)
		status = psd_worker_begin(worker, err);
	if (status)
		psd_session_close(worker, status, err);
	else
		*session = worker;
	return status;
}

/* ---- end ---- */

static bool have_all_said_bye(const struct psd_worker *worker)
{
	for (unsigned p = 0; p < worker->host.n_hosts; p++)
		if (p != worker->host.self && !worker->peers[p].has_sent_bye)
			return false;
	return true;
}

/* A run without iterations has a checkpoint of all of them. */
static bool has_iterations(const struct psd_worker *worker)
{
	return worker->host.options->first_iteration < worker->host.options->n_iterations;
}

/* Says that this host is done and waits for all others: a host that leaves early has failed. */
static enum psd_status begin_to_part(struct psd_worker *worker, struct psd_error *err)
{
	if (has_iterations(worker)) {
		PSD_TRY(psd_interpreter_check(&worker->interpreter, err));
		PSD_TRY(psd_worker_measure(worker, &worker->result, err));
	}
	worker->phase = PSD_PHASE_PARTING;
	psd_worker_send_done(worker);
	return psd_connections_flush(worker->connections, err); /* otherwise a turn would first wait */
}

/* All hosts are done, and this one knows it. A host that is lost from now on leaves nothing undone. One that has not
 * heard from all learns it from any other. */
static enum psd_status begin_to_leave(struct psd_worker *worker, struct psd_error *err)
{
	struct psd_wire_bye bye = {
		.sent_bytes = worker->result.sent_bytes_per_node,
		.received_bytes = worker->result.received_bytes_per_node,
		.parameters = psd_host_digest(&worker->host, worker->host.options->n_iterations),
		.iteration_sec = worker->result.iteration_sec,
		.parts = worker->result.parts,
		.ages = worker->result.ages,
	};

	_Static_assert(PSD_WIRE_AGES == PSD_READ_AGES, "a message has the reads of each age");
	memcpy(bye.reads, worker->result.reads, sizeof(bye.reads));
	worker->phase = PSD_PHASE_LEAVING;
	psd_worker_send_bye(worker, &bye);
	return psd_connections_flush(worker->connections, err);
}

static void remark_detour(const struct psd_worker *worker)
{
	const struct psd_worker_options *options = worker->host.options;
	struct psd_error how;

	if (worker->host.self == 0 && options->remark && worker->host.has_device && worker->host.kind->detour &&
	    worker->host.kind->detour(worker->host.device, &how))
		options->remark(options->context, how.text);
}

/* Compares the parameters of all workers at the end. */
static enum psd_status compare_last(struct psd_worker *worker, struct psd_error *err)
{
	const uint32_t iterations = worker->host.options->n_iterations;

	for (unsigned w = 0; w < worker->host.layout->workers; w++)
		worker->losses.parameters[w] = w == worker->host.self ? psd_host_digest(&worker->host, iterations)
								      : worker->peers[w].bye.parameters;
	return psd_host_compare(&worker->host, worker->losses.parameters, iterations, err);
}

/* Parameters are final; observers may read them. */
static enum psd_status report(struct psd_worker *worker, struct psd_error *err)
{
	struct psd_worker_result *result = &worker->result;
	const bool is_observed = worker->host.options->finished && !worker->replay;

	PSD_TRY(compare_last(worker, err));
	psd_worker_beat(worker, PSD_PULSE_ENDING);
	psd_worker_gather(worker, result);
	result->last_loss = worker->losses.last;
	result->test_labels = worker->pauses.tests[worker->host.options->n_iterations].labels;
	result->test_correct = worker->pauses.tests[worker->host.options->n_iterations].correct;
	result->untested_samples = psd_worker_untested(worker);
	remark_detour(worker);
	if (is_observed)
		PSD_TRY(psd_host_fetch_parameters(&worker->host, err));
	if (is_observed)
		worker->host.options->finished(worker->host.options->context, worker->host.self, &worker->host.memory);
	worker->phase = PSD_PHASE_OVER;
	return PSD_OK;
}

/* Worker 0 says BYE once it knows all losses: one of them may end the run for all. */
static bool knows_losses(const struct psd_worker *worker)
{
	return worker->host.self != 0 || worker->host.options->replay ||
	       worker->losses.n_known == worker->host.options->n_iterations - worker->host.options->first_iteration;
}

/* Including the pause after the last iteration. */
static bool is_complete(const struct psd_worker *worker)
{
	return psd_interpreter_host_is_complete(&worker->interpreter, 0) &&
	       !psd_interpreter_is_at_fence(&worker->interpreter, 0) && knows_losses(worker);
}

static bool have_all_left(const struct psd_worker *worker)
{
	return have_all_said_bye(worker) && !psd_connections_has_queue(worker->connections);
}

enum psd_status psd_session_step(struct psd_worker *session, double within_sec, bool *is_over,
				 struct psd_worker_result *result, struct psd_error *err)
{
	const bool waits = session->phase == PSD_PHASE_GOING	 ? !is_complete(session)
			   : session->phase == PSD_PHASE_PARTING ? !psd_worker_are_all_done(session)
								 : !have_all_left(session);

	session->err = err;
	enum psd_status status = waits ? psd_worker_turn(session, within_sec, err) : PSD_OK;
	if (!status && session->phase == PSD_PHASE_GOING && is_complete(session))
		status = begin_to_part(session, err);
	if (!status && session->phase == PSD_PHASE_PARTING && psd_worker_are_all_done(session))
		status = begin_to_leave(session, err);
	if (!status && session->phase == PSD_PHASE_LEAVING && have_all_left(session))
		status = report(session, err);
	*is_over = !status && session->phase == PSD_PHASE_OVER;
	if (*is_over)
		*result = session->result;
	return status;
}

/* True if a library is executing an all-reduce that only other hosts can end. */
static bool is_held(const struct psd_worker *worker)
{
	return psd_sums_are_open(&worker->work) && psd_lane_is_busy(&worker->jobs[PSD_RESOURCE_NIC].lane) &&
	       psd_sums_are_held(&worker->work);
}

void psd_session_close(struct psd_worker *session, enum psd_status status, const struct psd_error *err)
{
	psd_worker_beat(session, PSD_PULSE_ENDING);
	if (status && session->connections)
		psd_worker_send_failure(session, status, err);
	if (status && (session->is_stuck || !psd_worker_await_jobs(session))) {
		if (!psd_sums_are_open(&session->work)) /* it may be the one that uses them */
			psd_connections_close(session->connections);
		return;
	}
	if (status && is_held(session)) {
		close_lanes(session, PSD_RESOURCE_NIC); /* a library may still write to its memory */
		psd_work_close(&session->work);
		return;
	}
	close_worker(session, !status);
	free(session);
}
