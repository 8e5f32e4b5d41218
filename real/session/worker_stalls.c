/* Lost and stalled hosts: finds the host that keeps this one waiting, and names it. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "real/net/socket.h"
#include "real/session/worker_parts.h"

/* Time limit of an operation: a multiple of its longest so far, and stall_sec at least; longer the first time, when
 * data and memory may be late. */
enum { MOST_TIMES_LONGEST = 10, MOST_TIMES_STALL = 10 };

#define LONG_TURN_SEC 1.0 /* longer turns mean that this process was suspended; load alone takes less */
#define LATER_SEC     1.0 /* delay for hosts with less knowledge, which give up later */

/* First message of the current iteration that a peer has not sent, as an operation; n_ops: none. */
static uint32_t find_owed(const struct psd_worker *worker, unsigned peer)
{
	const uint32_t iteration = psd_interpreter_iteration(&worker->interpreter, 0);
	const bool exchanges = psd_period_exchanges(psd_interpreter_period(&worker->interpreter, 0), iteration);

	for (uint32_t i = 0; exchanges && i < worker->program->n_ops; i++) {
		const struct psd_op *op = &worker->program->ops[i];

		if ((op->kind == PSD_OP_SEND || op->kind == PSD_OP_COLLECTIVE) &&
		    worker->peers[peer].ops[i].next_iteration <= iteration &&
		    psd_payload_bytes_between(&op->payload, worker->layout, peer, worker->self) > 0)
			return i;
	}
	return worker->program->n_ops;
}

static void describe_owed(const struct psd_worker *worker, uint32_t owed, char *text, size_t room)
{
	const struct psd_op *op = &worker->program->ops[owed];

	if (owed == worker->program->n_ops)
		snprintf(text, room, "end");
	else
		snprintf(text, room, "'%s %.60s'", op->payload.collective->name, worker->graph->layers[op->layer].name);
}

static void describe_self(const struct psd_worker *worker, char *text, size_t room)
{
	const bool is_worker = psd_layout_is_worker(worker->layout, worker->self);

	snprintf(text, room, "%s %u", is_worker ? "worker" : "server",
		 is_worker ? worker->self : worker->self - worker->layout->workers);
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
			     psd_mesh_name(worker->layout, worker->options->hosts, host, name), what);
}

/* ---- silence: a suspended process or a broken link ---- */

/* Time while this process itself was suspended does not count. */
static double silent_sec(const struct psd_worker *worker, unsigned peer)
{
	if (peer == worker->self || worker->peers[peer].has_sent_bye)
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
	unsigned silent = worker->n_hosts, n_silent = 0;

	for (unsigned p = 0; p < worker->n_hosts; p++) {
		n_silent += silent_sec(worker, p) > worker->options->stall_sec / 2;
		if (silent_sec(worker, p) <= longest_sec)
			continue;
		longest_sec = silent_sec(worker, p);
		silent = p;
	}
	if (silent == worker->n_hosts)
		return false;
	if (n_silent > 1 && n_silent + 1 == worker->n_hosts)
		blame(worker, worker->self, err, "has heard from nobody for %.3g s in iteration %" PRIu32, longest_sec,
		      iteration);
	else
		blame(worker, silent, err, "has not been heard from for %.3g s in iteration %" PRIu32, longest_sec,
		      iteration);
	return true;
}

/* ---- a job without an end, in a live process ---- */

/* A pause may test many batches, and a library's sum may wait for worker 0 to do so. */
static double limit_sec(const struct psd_worker *worker, const struct psd_job *job)
{
	const double stall_sec = worker->options->stall_sec,
		     longest_sec = job->is_pause ? 0.0 : worker->liveness.longest_sec[job->task.op];
	const double limit =
		longest_sec > 0.0 ? fmax(stall_sec, MOST_TIMES_LONGEST * longest_sec) : MOST_TIMES_STALL * stall_sec;

	return (job->is_pause || worker->program->ops[job->task.op].kind == PSD_OP_COLLECTIVE) && worker->feed
		       ? limit * (1.0 + (double)psd_feed_samples(worker->feed, PSD_DATA_TEST))
		       : limit;
}

static bool blame_job(struct psd_worker *worker, enum psd_resource resource, struct psd_error *err)
{
	const struct psd_jobs *jobs = &worker->jobs[resource];
	const struct psd_job *job = psd_worker_job(worker, resource);
	const double sec = psd_socket_now_sec() - fmax(job->queued_sec, worker->liveness.awake_sec);
	const struct psd_op *op;

	if (!jobs->has_lane || !psd_lane_is_busy(&jobs->lane) || sec <= limit_sec(worker, job))
		return false;
	if (job->is_pause) {
		blame(worker, worker->self, err,
		      "has been at a test or a checkpoint for %.3g s before iteration %" PRIu32, sec,
		      job->task.iteration);
		return true;
	}
	op = &worker->program->ops[job->task.op];
	blame(worker, worker->self, err,
	      "has been at '%s %.60s' for %.3g s in iteration %" PRIu32 ", before %.3g s at most",
	      psd_op_kind_names[op->kind], worker->graph->layers[op->layer].name, sec, job->task.iteration,
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

/* ---- a peer that leaves or gives up ---- */

void psd_worker_peer_failed(struct psd_worker *worker, unsigned peer, enum psd_status status)
{
	const struct psd_wire_failed failed =
		psd_wire_decode_payload(PSD_WIRE_FAILED, worker->peers[peer].small).failed;

	if (worker->status)
		return;
	worker->is_blamed = true;
	worker->status = psd_error_set(worker->err, status, PSD_NOWHERE, "%s", failed.words);
}

/* A peer that closes its connection may have found another host silent. */
enum psd_status psd_worker_lost(void *context, unsigned peer, int error_number, struct psd_error *err)
{
	struct psd_worker *worker = context;
	char self[32], owed[96], how[96] = "closed the connection";

	if (worker->status || worker->peers[peer].has_sent_bye)
		return worker->status;
	if (blame_silent(worker, worker->options->stall_sec / 2, err))
		return PSD_ELOST;
	if (error_number)
		snprintf(how, sizeof(how), "is gone (%.60s)", strerror(error_number));
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
	unsigned debtor = worker->n_hosts;

	for (unsigned p = 0; p < worker->n_hosts; p++) {
		const uint32_t owed =
			p != worker->self && !worker->peers[p].has_sent_bye ? find_owed(worker, p) : UINT32_MAX;

		if (owed >= earliest || owed == worker->program->n_ops)
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
	if (peer == worker->n_hosts)
		return blame(worker, worker->self, err, "made no progress for %g s in iteration %" PRIu32,
			     worker->options->stall_sec, iteration);
	describe_owed(worker, find_owed(worker, peer), owed, sizeof(owed));
	return blame(worker, peer, err, "owes its %s to %s in iteration %" PRIu32 ", nothing has moved for %g s", owed,
		     self, iteration, worker->options->stall_sec);
}

/* A host that knows more, of a silent peer or an endless job, reports first. */
enum psd_status psd_worker_check_stall(struct psd_worker *worker, struct psd_error *err)
{
	const double now_sec = psd_socket_now_sec(), stall_sec = worker->options->stall_sec;
	const double still_sec = (psd_worker_now(worker) - worker->liveness.last_move_sec) * worker->dilation_ratio;

	if (now_sec - worker->liveness.turned_sec > fmax(stall_sec / 2, LONG_TURN_SEC))
		worker->liveness.awake_sec = now_sec;
	worker->liveness.turned_sec = now_sec;
	if (blame_silent(worker, stall_sec, err) || blame_jobs(worker, err))
		return PSD_ELOST;
	return fmin(still_sec, now_sec - worker->liveness.awake_sec) > stall_sec + LATER_SEC ? blame_debtor(worker, err)
											     : PSD_OK;
}
