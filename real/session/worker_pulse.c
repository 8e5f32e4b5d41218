/* Signs of life for the process that watches this one. */
#include <math.h>

#include "real/net/socket.h"
#include "real/session/worker_parts.h"

double psd_worker_limit_of_op(const struct psd_worker *worker, uint32_t op)
{
	const double longest_sec = worker->liveness.longest_sec[op], stall_sec = worker->host.options->stall_sec;

	return longest_sec > 0.0 ? fmax(stall_sec, PSD_MOST_TIMES_LONGEST * longest_sec)
				 : PSD_MOST_TIMES_STALL * stall_sec;
}

static void beat(struct psd_pulse *pulse, enum psd_pulse_place place, double now_sec, double limit_sec)
{
	atomic_store_explicit(&pulse->place, place, memory_order_relaxed);
	atomic_store_explicit(&pulse->limit_sec, limit_sec, memory_order_relaxed);
	atomic_store_explicit(&pulse->beat_sec, now_sec, memory_order_release);
}

void psd_worker_beat(struct psd_worker *worker, enum psd_pulse_place place)
{
	const double stall_sec = worker->host.options->stall_sec;
	double limit_sec = PSD_MOST_TIMES_STALL * stall_sec;

	if (!worker->host.options->pulse)
		return;
	if (place == PSD_PULSE_TURNING) {
		limit_sec = stall_sec + PSD_LATER_SEC;
		atomic_store_explicit(&worker->host.options->pulse->iteration,
				      psd_interpreter_iteration(&worker->interpreter, 0), memory_order_relaxed);
	}
	if (place == PSD_PULSE_JOINING) /* it waits so long by itself, three times at most (worker_join.c) */
		limit_sec += 3 * worker->host.options->connect_sec;
	beat(worker->host.options->pulse, place, psd_socket_now_sec(), limit_sec);
}

void psd_worker_beat_at(struct psd_worker *worker, struct psd_task task, double now_sec)
{
	struct psd_pulse *pulse = worker->host.options->pulse;

	if (!pulse)
		return;
	atomic_store_explicit(&pulse->op, task.op, memory_order_relaxed);
	atomic_store_explicit(&pulse->iteration, task.iteration, memory_order_relaxed);
	atomic_store_explicit(&pulse->longest_sec, worker->liveness.longest_sec[task.op], memory_order_relaxed);
	beat(pulse, PSD_PULSE_OPERATION, now_sec, psd_worker_limit_of_op(worker, task.op));
}
