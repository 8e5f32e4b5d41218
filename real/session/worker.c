/* A worker's life: join the others, carry the program out, say goodbye, report. */
#define _GNU_SOURCE
#include "real/session/worker.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "engine/scenario/scenario_heed.h"
#include "real/net/socket.h"
#include "real/session/terms.h"
#include "real/session/worker_parts.h"

#define LONGEST_TURN_SEC 0.5

double psd_worker_now(void *context)
{
	const struct psd_worker *worker = context;

	return worker->ringing ? worker->ringing->due_sec
			       : (psd_socket_now_sec() - worker->start_sec) / worker->dilation_ratio;
}

uint32_t psd_worker_iterations(const struct psd_train *train, uint64_t training_samples, uint64_t global_batch)
{
	uint64_t iterations = train->iterations;

	if (iterations == 0)
		iterations = (train->epochs * training_samples + global_batch - 1) / global_batch;
	return iterations < PSD_MAX_ITERATIONS ? (uint32_t)iterations : PSD_MAX_ITERATIONS;
}

enum psd_status psd_worker_check(const struct psd_scenario *scenario, struct psd_error *err)
{
	if (!scenario->has_train && !scenario->has_replay)
		return psd_error_set(err, PSD_EINVAL, (struct psd_place){scenario->path, 0, 0},
				     "has no 'train', which psd-run needs; psd-sim predicts without it");
	return psd_scenario_check_heeded(scenario, scenario->has_replay ? PSD_BY_REPLAY : PSD_BY_RUN, err);
}

enum psd_status psd_worker_check_optimiser(const struct psd_case *made, struct psd_error *err)
{
	const struct psd_scenario *scenario = made->matter->scenario;

	if (scenario->has_replay || scenario->train.optimiser.kind != PSD_OPTIMISER_LARS)
		return PSD_OK;
	if (made->plan.sparse)
		return psd_error_set(err, PSD_EINVAL, made->system->at,
				     "system '%s' is 'sparse', optimiser 'lars' needs whole gradients",
				     made->system->name);
	for (unsigned i = 0; i < made->plan.n_items; i++)
		if (made->plan.items[i].method->keeps[PSD_BUFFER_PART_HISTORY])
			return psd_error_set(err, PSD_EINVAL, made->system->at,
					     "system '%s' updates parts of tensors at servers, optimiser 'lars' needs "
					     "whole ones, as an all-reduce has them",
					     made->system->name);
	return PSD_OK;
}

/* ---- opening ---- */

static enum psd_status out_of_memory(struct psd_error *err)
{
	return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a worker");
}

static enum psd_status open_streams(struct psd_worker *worker, const struct psd_carrier carriers[],
				    struct psd_error *err)
{
	const double slowness = worker->replay ? worker->replay->dilation_ratio / worker->replay->payload_ratio : 1.0;
	const double link_bps = worker->options->made->point.bandwidth_bps / slowness;
	bool *is_near = calloc(worker->n_hosts, sizeof(*is_near));
	struct psd_streams_options options = {
		.n_peers = worker->n_hosts,
		.n_lines = worker->options->train->streams,
		.carriers = carriers,
		.wake_fd = worker->wake_fd,
		.is_near = is_near,
		.link_bps = link_bps,
		.has_rate = worker->options->has_rate,
		.send_bps = worker->options->send_bps,
		.receive_bps = worker->options->receive_bps,
		.pace_send_bps = worker->options->pace_send_bps,
		.pace_receive_bps = worker->options->pace_receive_bps,
		.latency_sec = worker->options->has_latency ? worker->options->latency_sec : 0.0,
		.had_latency_sec = worker->clock.rtt_sec / 2,
		.is_close_to_link = worker->replay,
		.owner = psd_worker_owner(worker),
	};
	enum psd_status status;

	for (unsigned p = 0; is_near && p < worker->n_hosts; p++)
		is_near[p] = psd_layout_node(worker->layout, p) == psd_layout_node(worker->layout, worker->self);
	status = is_near ? psd_streams_open(&worker->streams, &options, err) : out_of_memory(err);
	free(is_near);
	return status;
}

static enum psd_status join_mesh(struct psd_worker *worker, struct psd_error *err)
{
	struct psd_text terms = {.bytes = NULL};
	struct psd_mesh_options options = {
		.layout = worker->layout,
		.hosts = worker->options->hosts,
		.self = worker->self,
		.n_lines = worker->options->train->streams,
		.listener = worker->options->listener,
		.within_sec = worker->options->connect_sec,
		.greeting_sec = PSD_MESH_GREETING_SEC,
		.remind_sec = PSD_MESH_REMIND_SEC,
		.remark = worker->options->remark,
		.context = worker->options->context,
	};
	const size_t n_lines = (size_t)worker->n_hosts * options.n_lines;
	int *fds = calloc(n_lines, sizeof(*fds));
	struct psd_carrier *carriers = calloc(n_lines, sizeof(*carriers));
	const struct psd_transport_join join = {&options, fds, psd_socket_now_sec() + worker->options->connect_sec};
	enum psd_status status;

	psd_text_add(&terms, "%s", worker->options->terms ? worker->options->terms : "");
	psd_terms_add_program(&terms, worker->graph, worker->program);
	options.terms = terms.bytes;
	status = !fds || !carriers || terms.is_out_of_memory ? out_of_memory(err)
							     : psd_mesh_open(&options, fds, &worker->clock, err);
	worker->clock_offset_sec = -worker->clock.ahead_sec;
	if (!status)
		status = psd_transport_join(&join, carriers, err);
	if (!status)
		status = open_streams(worker, carriers, err);
	psd_text_release(&terms);
	free(carriers);
	free(fds);
	return status;
}

/* Zeros, until the worker ends. */
static void *take(struct psd_worker *worker, size_t n, size_t bytes)
{
	return psd_arena_take(&worker->arena, n * bytes);
}

static enum psd_status allocate(struct psd_worker *worker, struct psd_error *err)
{
	const uint32_t n_iterations = worker->options->n_iterations;
	const size_t n_ops = worker->program->n_ops;

	/* a peer is at most two windows ahead; as much again for what comes late on other connections */
	worker->loss_window = 4 * worker->program->window;
	worker->peers = take(worker, worker->n_hosts, sizeof(*worker->peers));
	worker->last_sec = take(worker, n_ops, sizeof(*worker->last_sec));
	worker->longest_sec = take(worker, n_ops, sizeof(*worker->longest_sec));
	worker->reports = take(worker, (size_t)worker->loss_window * worker->layout->workers, sizeof(*worker->reports));
	worker->n_reports = take(worker, worker->loss_window, sizeof(*worker->n_reports));
	worker->tests.pause_sec = take(worker, n_iterations, sizeof(*worker->tests.pause_sec));
	worker->late_sec = take(worker, n_iterations, sizeof(*worker->late_sec));
	worker->beside_sec = take(worker, n_iterations, sizeof(*worker->beside_sec));
	if (!worker->beside_sec || !worker->late_sec || !worker->peers || !worker->last_sec || !worker->longest_sec ||
	    !worker->reports || !worker->n_reports || !worker->tests.pause_sec)
		return out_of_memory(err);
	for (unsigned p = 0; p < worker->n_hosts; p++) {
		worker->peers[p].ops = take(worker, n_ops, sizeof(*worker->peers[p].ops));
		if (!worker->peers[p].ops)
			return out_of_memory(err);
	}
	worker->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (worker->wake_fd < 0)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "no eventfd: %s", strerror(errno));
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
		.n_ahead = worker->kind->is_asynchronous ? PSD_MOST_AHEAD : 0,
		.work = worker->replay ? psd_worker_replay : psd_worker_work,
		.send = psd_worker_send,
		.collective = psd_worker_collective,
		.announce = worker->is_coordinated && worker->self > 0 ? psd_worker_announce : NULL,
		.choose = worker->is_coordinated && worker->self == 0 ? psd_worker_choose : NULL,
		.span = worker->options->span ? tell_span : NULL,
		.context = worker,
	};
	const struct psd_duties *const duties[] = {&worker->duties};
	enum psd_status status =
		psd_duties_make(&worker->duties, worker->program, worker->self, psd_worker_arrivals, worker, err);

	return status ? status
		      : psd_interpreter_init(&worker->interpreter, worker->program, 1, duties,
					     worker->options->n_iterations, &seam, err);
}

static enum psd_status open_worker(struct psd_worker *worker, struct psd_error *err)
{
	enum psd_status status = allocate(worker, err);

	if (!status)
		status = worker->replay ? psd_worker_open_replay(worker, err) : psd_worker_open_training(worker, err);
	if (!status)
		status = open_interpreter(worker, err);
	return status ? status : join_mesh(worker, err);
}

static void close_worker(struct psd_worker *worker)
{
	for (int r = 0; r < PSD_RESOURCES; r++)
		if (worker->jobs[r].has_lane)
			psd_lane_close(&worker->jobs[r].lane);
	psd_streams_close(worker->streams);
	psd_interpreter_release(&worker->interpreter);
	psd_duties_release(&worker->duties);
	if (worker->has_device)
		worker->kind->close(worker->device);
	psd_feed_close(worker->feed);
	psd_memory_release(&worker->memory);
	psd_memory_release(&worker->apart);
	psd_folded_close(&worker->folded);
	if (worker->wake_fd >= 0)
		close(worker->wake_fd);
	psd_arena_release(&worker->arena);
}

/* ---- the loop ---- */

/* A job of a lane is over. */
static enum psd_status finish_job(struct psd_worker *worker, enum psd_resource resource, struct psd_error *err)
{
	const struct psd_job *job = psd_worker_job(worker, resource);
	const struct psd_op *op = &worker->program->ops[job->task.op];
	const uint32_t iteration = job->task.iteration;

	if (job->status) {
		*err = job->err;
		return job->status;
	}
	worker->jobs_cpu_sec += job->cpu_sec;
	worker->longest_sec[job->task.op] = fmax(worker->longest_sec[job->task.op], job->sec);
	if (resource == PSD_RESOURCE_DEVICE)
		psd_interpreter_worked(&worker->interpreter, 0, job->busy_sec);
	if (op->kind == PSD_OP_CHOOSE)
		psd_chosen_adopt(&worker->chosen);
	if (op->kind == PSD_OP_FORWARD || op->kind == PSD_OP_BACKWARD)
		worker->last_sec[job->task.op] = job->sec;
	if (job->is_after_test) {
		worker->tests.pause_sec[iteration] = job->test_sec;
		psd_worker_fence_test(worker, iteration);
		psd_worker_tested(worker, job->test_samples, job->test_correct);
	}
	if (op->kind == PSD_OP_FORWARD && psd_program_layers(worker->graph, op->layer).end == worker->graph->n_layers)
		psd_worker_report(worker, iteration, worker->kind->loss(worker->device),
				  worker->kind->correct(worker->device));
	psd_interpreter_finished(&worker->interpreter, 0, resource); /* tells of it, and may give the next */
	worker->jobs[resource].n_over++;
	return PSD_OK;
}

static bool take_job_done(struct psd_worker *worker, enum psd_resource resource)
{
	struct psd_job *job = psd_worker_job(worker, resource);

	if (!job->is_done_at_once)
		return worker->jobs[resource].has_lane && psd_lane_take_done(&worker->jobs[resource].lane);
	job->is_done_at_once = false;
	return true;
}

/* Tells the interpreter everything that is over; what it starts in turn may be over at once. */
static enum psd_status settle(struct psd_worker *worker, bool *has_moved, struct psd_error *err)
{
	enum psd_status status = PSD_OK;
	bool has_news = true;

	while (has_news && !status && !worker->status) {
		has_news = false;
		status = psd_streams_flush(worker->streams, err);
		for (int r = 0; r < PSD_RESOURCES && !status; r++)
			if (worker->is_over[r]) {
				worker->is_over[r] = false;
				psd_interpreter_finished(&worker->interpreter, 0, (enum psd_resource)r);
				has_news = true;
			}
		if (!status && psd_worker_take_alarm(worker))
			has_news = true;
		for (int r = 0; r < PSD_RESOURCES && !status; r++)
			if (take_job_done(worker, (enum psd_resource)r)) {
				status = finish_job(worker, (enum psd_resource)r, err);
				has_news = true;
			}
		has_news = has_news || worker->walk.has_left;
		worker->walk.has_left = false;
		if (!status && psd_worker_take_steps_done(worker)) {
			psd_interpreter_collective_finished(&worker->interpreter, worker->walk.task);
			has_news = true;
		}
		if (!status && has_news)
			status = psd_streams_resume(worker->streams, err);
		*has_moved = *has_moved || has_news;
	}
	psd_worker_await_alarm(worker);
	return status ? status : worker->status;
}

static bool is_computing(const struct psd_worker *worker)
{
	for (int r = 0; r < PSD_RESOURCES; r++)
		if (worker->jobs[r].has_lane && psd_lane_is_busy(&worker->jobs[r].lane))
			return true;
	return psd_worker_has_alarm(worker);
}

static enum psd_status turn(struct psd_worker *worker, struct psd_error *err)
{
	const int within_ms = (int)(1e3 * fmin(worker->options->stall_sec / 10, LONGEST_TURN_SEC)) + 1;
	bool has_moved = false, has_settled = false;
	enum psd_status status = psd_streams_turn(worker->streams, within_ms, &has_moved, err);

	psd_worker_say_alive(worker, is_computing(worker));
	if (!status)
		status = settle(worker, &has_settled, err); /* sends that, too */
	if (has_moved || has_settled || is_computing(worker))
		worker->last_move_sec = psd_worker_now(worker);
	return status ? status : psd_worker_check_stall(worker, err);
}

static enum psd_status carry_out(struct psd_worker *worker, struct psd_error *err)
{
	bool has_moved = false;
	enum psd_status status;

	worker->start_sec = worker->turned_sec = worker->awake_sec = psd_socket_now_sec();
	worker->last_move_sec = 0.0;
	worker->has_begun = true;
	psd_worker_fence_test(worker, 0);
	psd_interpreter_begin(&worker->interpreter);
	status = psd_streams_resume(worker->streams, err);
	if (!status)
		status = settle(worker, &has_moved, err);
	while (!status && !psd_interpreter_host_is_complete(&worker->interpreter, 0))
		status = turn(worker, err);
	return status ? status : psd_interpreter_check(&worker->interpreter, err);
}

static bool have_all_said_bye(const struct psd_worker *worker)
{
	for (unsigned p = 0; p < worker->n_hosts; p++)
		if (p != worker->self && !worker->peers[p].has_said_bye)
			return false;
	return true;
}

/* Nobody leaves before everybody has what it needs: who leaves early has failed. */
static enum psd_status part(struct psd_worker *worker, const struct psd_wire_bye *bye, struct psd_error *err)
{
	enum psd_status status;

	psd_worker_say_bye(worker, bye);
	status = psd_streams_flush(worker->streams, err); /* a turn first waits for something to happen */
	while (!status && (!have_all_said_bye(worker) || psd_streams_has_queue(worker->streams)))
		status = turn(worker, err);
	return status;
}

static enum psd_status run(struct psd_worker *worker, struct psd_worker_result *result, struct psd_error *err)
{
	struct psd_wire_bye bye;
	enum psd_status status = open_worker(worker, err);

	if (!status)
		status = carry_out(worker, err);
	if (!status)
		status = psd_worker_measure(worker, result, err);
	if (status)
		return status;
	bye = (struct psd_wire_bye){result->sent_bytes_per_node, result->received_bytes_per_node};
	status = part(worker, &bye, err);
	if (status)
		return status;
	psd_worker_gather(worker, result);
	result->last_loss = worker->last_loss;
	if (worker->options->finished && !worker->replay)
		status = psd_worker_fetch_parameters(worker, err);
	if (status)
		return status;
	if (worker->options->finished && !worker->replay)
		worker->options->finished(worker->options->context, worker->self, &worker->memory);
	if (worker->options->is_tested && worker->self == 0)
		status = psd_worker_test(worker, &result->test_samples, &result->test_correct, err);
	if (!status && worker->self == 0)
		psd_worker_tested(worker, result->test_samples, result->test_correct);
	return status;
}

/* A separate server works on what arrives, in its host's memory. */
static const struct psd_device_kind *kind_of(const struct psd_worker_options *options)
{
	const bool is_worker = psd_layout_is_worker(&options->made->plan.layout, options->self);

	return options->device && (is_worker || !options->device->has_own_memory) ? options->device : &psd_device_cpu;
}

enum psd_status psd_worker_run(const struct psd_worker_options *options, struct psd_worker_result *result,
			       struct psd_error *err)
{
	struct psd_worker *worker = calloc(1, sizeof(*worker));
	struct psd_worker_result measured;
	enum psd_status status;

	if (!worker)
		return out_of_memory(err);
	*worker = (struct psd_worker){
		.options = options,
		.program = &options->made->program,
		.is_coordinated = !psd_program_orders_collectives(&options->made->program),
		.plan = &options->made->plan,
		.layout = &options->made->plan.layout,
		.graph = options->made->plan.graph,
		.kind = kind_of(options),
		.replay = options->replay,
		.dilation_ratio = options->replay ? options->replay->dilation_ratio : 1.0,
		.self = options->self,
		.n_hosts = psd_layout_hosts(&options->made->plan.layout),
		.global_batch = (uint64_t)options->made->plan.layout.workers *
				options->made->matter->scenario->batch_per_worker,
		.wake_fd = -1,
		.err = err,
	};
	status = run(worker, &measured, err);
	if (status && worker->streams)
		psd_worker_say_failed(worker, status, err);
	close_worker(worker);
	free(worker);
	if (!status)
		*result = measured;
	return status;
}
