/* A worker that computes nothing: everything but the network takes its predicted time, by timers of the event loop. Its
 * clock is the cluster's, slower than the machine's, so all reports are in the cluster's seconds. */
#include <math.h>

#include "engine/program/jitter.h"
#include "real/session/worker_parts.h"

enum { NO_TIMER = PSD_RESOURCES };

/* ---- opening ---- */

/* Size of the largest message. */
static uint64_t most_bytes(const struct psd_worker *worker)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < worker->program->n_ops; i++) {
		const struct psd_payload payload = psd_worker_payload(worker, (struct psd_task){0, i});
		const uint64_t bytes = payload.elements * payload.value_bytes;

		most = bytes > most ? bytes : most;
	}
	return most;
}

enum psd_status psd_worker_open_replay(struct psd_worker *worker, struct psd_error *err)
{
	const bool is_sparse = worker->is_beside_others && worker->plan->sparse;
	enum psd_status status =
		is_sparse ? psd_chunk_selection_open(&worker->selection, worker->plan, &worker->arena, err) : PSD_OK;

	if (!status)
		status = psd_repeated_memory_open(&worker->repeated, most_bytes(worker), err);
	if (!status && worker->is_beside_others)
		status = psd_repeated_memory_open(&worker->zeros, most_bytes(worker), err);
	return status;
}

void *psd_worker_replayed_bytes(const struct psd_worker *worker, bool is_sent)
{
	return is_sent && worker->is_beside_others ? worker->zeros.base : worker->repeated.base;
}

void psd_worker_keep_up(struct psd_worker *worker, struct psd_task task)
{
	while (psd_worker_awaits_choice(worker, task)) {
		psd_worker_draw_chunks(worker);
		psd_chunk_selection_adopt(&worker->selection);
	}
}

/* ---- timers ---- */

void psd_worker_set_timer(struct psd_worker *worker, enum psd_resource resource, struct psd_task task, double sec)
{
	const double now_sec = psd_worker_now(worker);

	worker->timers.each[resource] = (struct psd_timer){true, task, now_sec, now_sec + sec};
}

void psd_worker_replay(void *context, unsigned host, enum psd_resource resource, struct psd_task task, double sec)
{
	struct psd_worker *worker = context;
	const struct psd_scenario *scenario = worker->options->made->costed->scenario;

	(void)host; /* the interpreter has one host only */
	psd_worker_watch_load(worker, task.iteration);
	sec = psd_jittered_sec(scenario, worker->self, &worker->program->ops[task.op], resource, task, sec);
	psd_worker_set_timer(context, resource, task, sec);
	if (resource == PSD_RESOURCE_DEVICE)
		psd_interpreter_worked(&worker->interpreter, 0, sec);
}

/* Resource of the earliest timer; NO_TIMER: none is set. */
static unsigned find_first(const struct psd_worker *worker)
{
	unsigned first = NO_TIMER;

	for (unsigned r = 0; r < PSD_RESOURCES; r++)
		if (worker->timers.each[r].is_set &&
		    (first == NO_TIMER || worker->timers.each[r].due_sec < worker->timers.each[first].due_sec))
			first = r;
	return first;
}

bool psd_worker_has_timer(const struct psd_worker *worker)
{
	return find_first(worker) != NO_TIMER;
}

void psd_worker_await_timer(struct psd_worker *worker)
{
	const unsigned first = find_first(worker);

	if (first != NO_TIMER)
		psd_connections_wake_at(worker->connections, worker->start_sec + worker->timers.each[first].due_sec *
											 worker->dilation_ratio);
}

/* Reports progress at the end of the last forward operation. */
static void report_progress(struct psd_worker *worker, const struct psd_timer *timer)
{
	const struct psd_op *op = &worker->program->ops[timer->task.op];

	if (op->kind == PSD_OP_FORWARD && psd_program_layers(worker->graph, op->layer).end == worker->graph->n_layers)
		psd_worker_report(worker, timer->task.iteration, 0.0, 0);
}

static void fire(struct psd_worker *worker, enum psd_resource resource, const struct psd_timer *timer)
{
	const enum psd_op_kind kind = worker->program->ops[timer->task.op].kind;

	if (kind == PSD_OP_COLLECTIVE) {
		psd_worker_continue(worker);
	} else {
		report_progress(worker, timer);
		psd_interpreter_finished(&worker->interpreter, 0, resource);
	}
}

bool psd_worker_take_timer(struct psd_worker *worker)
{
	const unsigned first = find_first(worker);
	const double now_sec = psd_worker_now(worker);
	struct psd_timer timer;
	double *late_sec;

	if (first == NO_TIMER || worker->timers.each[first].due_sec > now_sec)
		return false;
	timer = worker->timers.each[first];
	worker->timers.each[first].is_set = false;
	late_sec = &worker->timers.late_sec[timer.task.iteration];
	*late_sec = fmax(*late_sec, now_sec - timer.due_sec);
	worker->timers.firing = &timer;
	fire(worker, (enum psd_resource)first, &timer);
	worker->timers.firing = NULL;
	return true;
}
