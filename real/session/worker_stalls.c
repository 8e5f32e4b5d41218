/* Lost and stalled hosts: finds the host that keeps this one waiting, and names it. */
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "real/net/socket.h"
#include "real/session/worker_parts.h"

enum { MOST_TIMES_STALL_TEST = 3 };

#define LONG_TURN_SEC 1.0 /* longer turns mean that this process was suspended; load alone takes less */
#define DOUBT_SEC     1.0 /* for a message on its way, at the end */
#define MOVED_CPU_SEC 0.1 /* processor time in which the start has moved; looking for it takes much less */
#define LOOK_SEC      0.1

/* First message of the current iteration that a peer has not sent, as an operation; n_ops: none. */
static uint32_t find_owed(const struct psd_worker *worker, unsigned peer)
{
	const uint32_t iteration = psd_interpreter_iteration(&worker->interpreter, 0);
	const struct psd_period *period = psd_interpreter_period(&worker->interpreter, 0);

	for (uint32_t i = 0; i < worker->host.program->n_ops; i++) {
		const struct psd_op *op = &worker->host.program->ops[i];
		const struct psd_payload payload = psd_op_payload(op, iteration);

		if (psd_op_moves(op) && psd_op_is_due(op, period, iteration) &&
		    worker->peers[peer].ops[i].next_iteration <= iteration &&
		    psd_payload_bytes_between(&payload, worker->host.layout, peer, worker->host.self) > 0)
			return i;
	}
	return worker->host.program->n_ops;
}

static void describe_owed(const struct psd_worker *worker, uint32_t owed, char *text, size_t room)
{
	const struct psd_op *op = &worker->host.program->ops[owed];

	if (owed == worker->host.program->n_ops)
		snprintf(text, room, "end");
	else
		snprintf(text, room, "'%s %.60s'", op->payload.collective->name,
			 worker->host.graph->layers[op->layer].name);
}

static void describe_self(const struct psd_worker *worker, char *text, size_t room)
{
	const bool is_worker = psd_layout_is_worker(worker->host.layout, worker->host.self);

	snprintf(text, room, "%s %u", is_worker ? "worker" : "server",
		 is_worker ? worker->host.self : worker->host.self - worker->host.layout->workers);
}

/* The text names the host at fault; the others repeat it. */
static __attribute__((format(printf, 4, 5))) enum psd_status blame(struct psd_worker *worker, unsigned host,
								   struct psd_error *err, const char *format, ...)
{
	char name[PSD_MESH_NAME_MAX], what[512];
	va_list values;

	va_start(values, format);
	vsnprintf(what, sizeof(what), format, values);
	va_end(values);
	worker->is_blamed = true;
	return psd_error_set(err, PSD_ELOST, PSD_NOWHERE, "%s %s",
			     psd_mesh_name(worker->host.layout, worker->host.options->hosts, host, name), what);
}

/* ---- silence: a suspended process or a broken link ---- */

/* Time while this process itself was suspended does not count. */
static double silent_sec(const struct psd_worker *worker, unsigned peer)
{
	if (peer == worker->host.self || worker->peers[peer].has_sent_bye)
		return 0.0;
	return fmin(psd_connections_silent_sec(worker->connections, peer),
		    psd_socket_now_sec() - worker->liveness.awake_sec);
}

/* A live event loop sends several heartbeats in half of stall_sec. If several peers are silent, this host is cut
 * off. */
static bool blame_silent(struct psd_worker *worker, double limit_sec, struct psd_error *err)
{
	const uint32_t iteration = psd_interpreter_iteration(&worker->interpreter, 0);
	double longest_sec = limit_sec;
	unsigned silent = worker->host.n_hosts, n_silent = 0;

	for (unsigned p = 0; p < worker->host.n_hosts; p++) {
		n_silent += silent_sec(worker, p) > worker->host.options->stall_sec / 2;
		if (silent_sec(worker, p) <= longest_sec)
			continue;
		longest_sec = silent_sec(worker, p);
		silent = p;
	}
	if (silent == worker->host.n_hosts)
		return false;
	if (n_silent > 1 && n_silent + 1 == worker->host.n_hosts)
		blame(worker, worker->host.self, err, "has heard from nobody for %.3g s in iteration %" PRIu32,
		      longest_sec, iteration);
	else
		blame(worker, silent, err, "has not been heard from for %.3g s in iteration %" PRIu32, longest_sec,
		      iteration);
	return true;
}

/* ---- parts of a test, a checkpoint or the start ---- */

/* Processor time is progress, too: a large model or file has long parts. */
enum psd_status psd_worker_await_opening(struct psd_worker *worker, struct psd_error *err)
{
	const double limit_sec = PSD_MOST_TIMES_STALL * worker->host.options->stall_sec;
	struct psd_lane *lane = &worker->jobs[PSD_RESOURCE_DEVICE].lane;
	double moved_cpu_sec = psd_machine_process_sec(), turned_sec = psd_socket_now_sec();

	while (!psd_lane_take_done(lane)) {
		struct pollfd wake = {.fd = worker->wake_fd, .events = POLLIN};
		uint64_t n_done;
		double now_sec, sec;

		psd_worker_beat(worker, PSD_PULSE_STARTING);
		if (poll(&wake, 1, (int)(1e3 * LOOK_SEC)) > 0 && read(worker->wake_fd, &n_done, sizeof(n_done)) < 0)
			continue;
		now_sec = psd_socket_now_sec();
		if (psd_machine_process_sec() > moved_cpu_sec + MOVED_CPU_SEC || now_sec > turned_sec + LONG_TURN_SEC) {
			moved_cpu_sec = psd_machine_process_sec();
			psd_host_moved(&worker->host);
		}
		turned_sec = now_sec;
		sec = now_sec - atomic_load(&worker->host.parts_done.moved_sec);
		if (sec <= limit_sec || psd_lane_take_done(lane))
			continue;
		worker->is_stuck = true;
		return blame(worker, worker->host.self, err,
			     "has stood still for %.3g s at its start, at the device, the data or a checkpoint", sec);
	}
	return PSD_OK;
}

/* ---- a job without an end, in a live process ---- */

/* Time that the layers of a batch took at most in training. */
static double longest_pass_sec(const struct psd_worker *worker)
{
	double sec = 0.0;

	for (uint32_t o = 0; o < worker->host.program->n_ops; o++)
		if (psd_ops[worker->host.program->ops[o].kind].is_forward &&
		    worker->host.program->ops[o].micro_batch == 0)
			sec += worker->liveness.longest_sec[o];
	return sec;
}

/* The end of a checkpoint waits for the disk, longer than all parts before. */
static double limit_of_pause(struct psd_worker *worker, const struct psd_job *job)
{
	const double stall_sec = worker->host.options->stall_sec;
	const double batch_sec = atomic_load(&worker->host.parts_done.longest_test_sec);

	if (!job->is_test)
		return fmax(PSD_MOST_TIMES_STALL * stall_sec,
			    PSD_MOST_TIMES_LONGEST * atomic_load(&worker->host.parts_done.longest_save_sec));
	return fmax((batch_sec > 0.0 ? 1 : MOST_TIMES_STALL_TEST) * stall_sec,
		    PSD_MOST_TIMES_LONGEST * fmax(batch_sec, longest_pass_sec(worker)));
}

/* A pause's time is that of its current part. A library's sum may wait for hosts that are busy: they watch
 * themselves. */
static double begun_sec(struct psd_worker *worker, const struct psd_job *job)
{
	const double sec = fmax(job->queued_sec, worker->liveness.awake_sec);

	if (job->is_pause || job->is_test)
		return fmax(sec, atomic_load(&worker->host.parts_done.moved_sec));
	return psd_op_is_collective(&worker->host.program->ops[job->task.op]) ? fmax(sec, worker->liveness.busy_sec)
									      : sec;
}

static bool is_beyond_limit(struct psd_worker *worker, enum psd_resource resource, double *sec)
{
	const struct psd_jobs *jobs = &worker->jobs[resource];
	const struct psd_job *job = psd_worker_job(worker, resource);

	if (!jobs->has_lane || !psd_lane_is_busy(&jobs->lane))
		return false;
	*sec = psd_socket_now_sec() - begun_sec(worker, job);
	return *sec > (job->is_pause || job->is_test ? limit_of_pause(worker, job)
						     : psd_worker_limit_of_op(worker, job->task.op));
}

static bool blame_job(struct psd_worker *worker, enum psd_resource resource, struct psd_error *err)
{
	const struct psd_job *job = psd_worker_job(worker, resource);
	double sec;

	if (!is_beyond_limit(worker, resource, &sec))
		return false;
	worker->is_stuck = resource != PSD_RESOURCE_NIC; /* see psd_worker_is_held() */
	if (job->is_pause || job->is_test) {
		blame(worker, worker->host.self, err,
		      "has been at %s for %.3g s without progress, before iteration %" PRIu32,
		      job->is_test ? "a batch of the test" : "a checkpoint", sec, job->task.iteration);
		return true;
	}
	const struct psd_op *op = &worker->host.program->ops[job->task.op];
	blame(worker, worker->host.self, err,
	      "has been at '%s %.60s' for %.3g s in iteration %" PRIu32 ", it took %.3g s at most before",
	      psd_ops[op->kind].name, worker->host.graph->layers[op->layer].name, sec, job->task.iteration,
	      worker->liveness.longest_sec[job->task.op]);
	return true;
}

static bool blame_jobs(struct psd_worker *worker, struct psd_error *err)
{
	for (int r = 0; r < PSD_RESOURCES; r++)
		if (blame_job(worker, (enum psd_resource)r, err))
			return true;
	return false;
}

bool psd_worker_await_jobs(struct psd_worker *worker)
{
	double ignored;

	for (int r = 0; r < PSD_RESOURCES; r++) {
		struct psd_jobs *jobs = &worker->jobs[r];

		while (r != PSD_RESOURCE_NIC && jobs->has_lane && psd_lane_is_busy(&jobs->lane)) {
			if (psd_lane_take_done(&jobs->lane))
				jobs->n_over++;
			else if (is_beyond_limit(worker, (enum psd_resource)r, &ignored))
				return false;
			else
				(void)poll(NULL, 0, 1);
		}
	}
	return true;
}

/* ---- a peer that leaves or gives up ---- */

bool psd_worker_are_all_done(struct psd_worker *worker)
{
	bool are_done = worker->phase >= PSD_PHASE_PARTING;

	for (unsigned p = 0; p < worker->host.n_hosts && are_done; p++)
		are_done = p == worker->host.self || worker->peers[p].is_done;
	worker->are_all_done = worker->are_all_done || are_done;
	return worker->are_all_done;
}

/* This host is done, and so is the peer: nothing is missing, whatever happens to it now. */
static bool is_let_go(struct psd_worker *worker, unsigned peer)
{
	return psd_worker_are_all_done(worker) || (worker->phase >= PSD_PHASE_PARTING && worker->peers[peer].is_done);
}

static void let_go(struct psd_worker *worker, unsigned peer, const char *how)
{
	char name[PSD_MESH_NAME_MAX];
	struct psd_error line;

	if (worker->peers[peer].has_sent_bye)
		return;
	worker->peers[peer].has_sent_bye = true;
	psd_error_set(&line, PSD_ELOST, PSD_NOWHERE, "%s %s at the end, after it had finished its work",
		      psd_mesh_name(worker->host.layout, worker->host.options->hosts, peer, name), how);
	if (worker->host.options->remark)
		worker->host.options->remark(worker->host.options->context, line.text);
}

void psd_worker_peer_failed(struct psd_worker *worker, unsigned peer, enum psd_status status)
{
	const struct psd_wire_failed failed =
		psd_wire_decode_payload(PSD_WIRE_FAILED, worker->peers[peer].small).failed;

	if (worker->status)
		return;
	if (is_let_go(worker, peer)) {
		let_go(worker, peer, "gave up");
		return;
	}
	worker->is_blamed = true;
	worker->status = psd_error_set(worker->err, status, PSD_NOWHERE, "%s", failed.words);
}

/* This host is done and has lost one that has not said so. Another host may know that it was: its BYE is on the way. */
static enum psd_status begin_doubt(struct psd_worker *worker, unsigned peer, const char *how)
{
	worker->peers[peer].has_sent_bye = true;
	if (worker->liveness.doubt_sec > 0.0)
		return PSD_OK;
	worker->liveness.doubt_sec = psd_socket_now_sec();
	blame(worker, peer, &worker->doubt, "%s before it was done", how);
	return PSD_OK;
}

/* A peer that closes its connection may have found another host silent. */
enum psd_status psd_worker_lost(void *context, unsigned peer, int error_number, struct psd_error *err)
{
	struct psd_worker *worker = context;
	char self[32], owed[96], how[96] = "closed the connection";

	if (worker->status || worker->peers[peer].has_sent_bye)
		return worker->status;
	if (is_let_go(worker, peer)) {
		let_go(worker, peer, how);
		return PSD_OK;
	}
	if (blame_silent(worker, worker->host.options->stall_sec / 2, err))
		return PSD_ELOST;
	if (error_number)
		snprintf(how, sizeof(how), "is gone (%.60s)", strerror(error_number));
	if (worker->phase == PSD_PHASE_PARTING && worker->host.n_hosts > 2)
		return begin_doubt(worker, peer, how);
	describe_owed(worker, find_owed(worker, peer), owed, sizeof(owed));
	describe_self(worker, self, sizeof(self));
	return blame(worker, peer, err, "%s in iteration %" PRIu32 " while %s waits for its %s", how,
		     psd_interpreter_iteration(&worker->interpreter, 0), self, owed);
}

/* ---- no progress, though all event loops are alive ---- */

/* Host that has not sent the message of the earliest operation, since later ones may wait for it; n_hosts: none. */
static unsigned find_debtor(const struct psd_worker *worker)
{
	uint32_t earliest = UINT32_MAX;
	unsigned debtor = worker->host.n_hosts;

	for (unsigned p = 0; p < worker->host.n_hosts; p++) {
		const uint32_t owed =
			p != worker->host.self && !worker->peers[p].has_sent_bye ? find_owed(worker, p) : UINT32_MAX;

		if (owed >= earliest || owed == worker->host.program->n_ops)
			continue;
		earliest = owed;
		debtor = p;
	}
	return debtor;
}

static enum psd_status blame_debtor(struct psd_worker *worker, struct psd_error *err)
{
	const uint32_t iteration = psd_interpreter_iteration(&worker->interpreter, 0);
	const unsigned peer = find_debtor(worker);
	char self[32], owed[96];

	describe_self(worker, self, sizeof(self));
	if (peer == worker->host.n_hosts)
		return blame(worker, worker->host.self, err, "made no progress for %g s in iteration %" PRIu32,
			     worker->host.options->stall_sec, iteration);
	describe_owed(worker, find_owed(worker, peer), owed, sizeof(owed));
	return blame(worker, peer, err, "owes its %s to %s in iteration %" PRIu32 ", nothing has moved for %g s", owed,
		     self, iteration, worker->host.options->stall_sec);
}

/* At the end: nobody waits for a host that is done. */
static enum psd_status check_end(struct psd_worker *worker, struct psd_error *err)
{
	for (unsigned p = 0; p < worker->host.n_hosts && worker->are_all_done; p++)
		if (silent_sec(worker, p) > worker->host.options->stall_sec)
			let_go(worker, p, "was not heard from");
	if (worker->are_all_done || worker->liveness.doubt_sec == 0.0 ||
	    psd_socket_now_sec() < worker->liveness.doubt_sec + DOUBT_SEC)
		return PSD_OK;
	*err = worker->doubt;
	return err->status;
}

/* A host that knows more, of a silent peer or an endless job, reports first. */
enum psd_status psd_worker_check_stall(struct psd_worker *worker, struct psd_error *err)
{
	const double now_sec = psd_socket_now_sec(), stall_sec = worker->host.options->stall_sec;
	const double still_sec =
		(psd_worker_now(worker) - worker->liveness.last_move_sec) * worker->timers.dilation_ratio;

	if (now_sec - worker->liveness.turned_sec > fmax(stall_sec / 2, LONG_TURN_SEC))
		worker->liveness.awake_sec = now_sec;
	worker->liveness.turned_sec = now_sec;
	if (check_end(worker, err))
		return err->status;
	if (blame_silent(worker, stall_sec, err) || blame_jobs(worker, err))
		return PSD_ELOST;
	return fmin(still_sec, now_sec - worker->liveness.awake_sec) > stall_sec + PSD_LATER_SEC
		       ? blame_debtor(worker, err)
		       : PSD_OK;
}
