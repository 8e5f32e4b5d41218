/* Step-by-step transfers of a collective: what this worker sends and receives in each step. */
#include <assert.h>
#include <math.h>

#include "real/base/values.h"
#include "real/session/worker_parts.h"

struct psd_step psd_worker_step(const struct psd_worker *worker, struct psd_task task, unsigned rank, unsigned step)
{
	const struct psd_payload payload = psd_worker_carried(worker, task);

	return psd_payload_step(&payload, worker->host.layout, rank, step);
}

uint64_t psd_worker_step_bytes(const struct psd_worker *worker, struct psd_task task, const struct psd_step *step)
{
	const double ratio = worker->replay ? worker->replay->payload_ratio : 1.0;

	return (uint64_t)ceil((double)step->sent.elements * ratio) *
	       worker->host.program->ops[task.op].payload.value_bytes;
}

/* Segments of this worker's message, or of the received one. */
static unsigned find_pieces(const struct psd_worker *worker, struct psd_task task, const struct psd_step *step,
			    bool is_sent, struct iovec segments[PSD_SEGMENTS_MAX])
{
	const struct psd_op *op = &worker->host.program->ops[task.op];

	if (worker->replay) {
		segments[0] = (struct iovec){psd_worker_replayed_bytes(worker, is_sent),
					     psd_worker_step_bytes(worker, task, step)};
		return 1;
	}
	return psd_memory_find(&worker->host.memory, op->target.buffer, op, task.iteration, step->sent,
			       worker->host.self, segments);
}

/* Encoding of received values. */
static const struct psd_encoding *encoding_of(const struct psd_worker *worker, struct psd_task task)
{
	const bool is_encoded = psd_buffers[worker->host.program->ops[task.op].target.buffer].is_encoded;

	return is_encoded ? worker->host.plan->wire : &psd_encoding_fp32;
}

static bool is_staged(const struct psd_worker *worker, struct psd_task task, unsigned number)
{
	const struct psd_payload payload = psd_worker_carried(worker, task);

	return !worker->replay && psd_payload_is_staged(&payload, worker->host.layout, worker->host.self, number);
}

void psd_worker_step_destination(const struct psd_worker *worker, struct psd_task task, const struct psd_step *step,
				 unsigned number, struct psd_destination *destination)
{
	if (is_staged(worker, task, number)) {
		destination->segments[0] =
			(struct iovec){worker->host.memory.staging, psd_worker_step_bytes(worker, task, step)};
		destination->n_segments = 1;
		return;
	}
	destination->n_segments = find_pieces(worker, task, step, false, destination->segments);
	destination->added = step->adds && !worker->replay ? encoding_of(worker, task) : NULL;
}

static void send_step(struct psd_worker *worker)
{
	struct psd_transfer *transfer = &worker->transfer;
	const struct psd_step step = psd_worker_step(worker, transfer->task, worker->host.self, transfer->next_send);
	const struct psd_wire_head head = {.kind = PSD_WIRE_DATA,
					   .op = transfer->task.op,
					   .iteration = transfer->task.iteration,
					   .part = transfer->next_send,
					   .length_bytes = psd_worker_step_bytes(worker, transfer->task, &step)};
	const struct psd_payload payload = psd_worker_carried(worker, transfer->task);
	struct iovec segments[PSD_SEGMENTS_MAX];

	psd_connections_send(worker->connections, step.to, &head, segments,
			     find_pieces(worker, transfer->task, &step, true, segments));
	psd_worker_count_sent(worker, step.to, &head);
	transfer->next_send =
		psd_payload_next_step(&payload, worker->host.layout, worker->host.self, transfer->next_send + 1, true);
	transfer->is_sending = true;
}

/* The next step's message is in its destination. */
static void take_step(struct psd_worker *worker)
{
	struct psd_transfer *transfer = &worker->transfer;
	const struct psd_payload payload = psd_worker_carried(worker, transfer->task);
	const unsigned peer = psd_worker_step(worker, transfer->task, worker->host.self, transfer->next_receive).from;

	if (psd_worker_next_from(worker, transfer->task, peer, transfer->next_receive + 1) == transfer->n_steps)
		worker->peers[peer].ops[transfer->task.op].next_iteration = transfer->task.iteration + 1;
	transfer->next_receive = psd_payload_next_step(&payload, worker->host.layout, worker->host.self,
						       transfer->next_receive + 1, false);
}

static void add_staged(struct psd_worker *worker)
{
	const struct psd_transfer *transfer = &worker->transfer;
	const unsigned peer = psd_worker_step(worker, transfer->task, worker->host.self, transfer->next_receive).from;
	const struct psd_step came = psd_worker_step(worker, transfer->task, peer, transfer->next_receive);
	const struct psd_encoding *wire = encoding_of(worker, transfer->task);
	const char *staged = (const char *)worker->host.memory.staging;
	struct iovec segments[PSD_SEGMENTS_MAX];
	const unsigned n_segments = find_pieces(worker, transfer->task, &came, false, segments);

	assert(came.adds);
	for (unsigned p = 0; p < n_segments; p++) {
		psd_values_add(wire, segments[p].iov_base, staged, segments[p].iov_len / wire->value_bytes);
		staged += segments[p].iov_len;
	}
}

/* A step goes out when the one before is sent and all messages of earlier steps are there. */
void psd_worker_advance(struct psd_worker *worker)
{
	struct psd_transfer *transfer = &worker->transfer;

	if (transfer->has_staged && !transfer->is_sending && transfer->next_send > transfer->next_receive) {
		transfer->has_staged = false;
		add_staged(worker);
		take_step(worker);
	}
	if (!transfer->is_waiting && !transfer->is_sending && transfer->next_send < transfer->n_steps &&
	    transfer->next_receive >= transfer->next_send)
		send_step(worker);
}

void psd_worker_continue(struct psd_worker *worker)
{
	worker->transfer.is_waiting = false;
	psd_worker_advance(worker);
}

/* The delay of its size class is first, as in a simulation of every message. */
void psd_worker_begin_transfer(struct psd_worker *worker, struct psd_task task)
{
	if (worker->replay && psd_worker_awaits_choice(worker, task))
		psd_worker_draw_until(worker, task.iteration);
	const struct psd_payload payload = psd_worker_carried(worker, task);
	const double class_sec =
		worker->replay ? psd_cost_class_sec(&payload, worker->host.layout, &worker->host.plan->rates) : 0.0;

	worker->transfer = (struct psd_transfer){
		.task = task,
		.is_active = true,
		.is_waiting = class_sec > 0.0,
		.n_steps = psd_payload_steps(&payload, worker->host.layout),
		.next_send = psd_payload_next_step(&payload, worker->host.layout, worker->host.self, 0, true),
		.next_receive = psd_payload_next_step(&payload, worker->host.layout, worker->host.self, 0, false),
	};
	if (class_sec > 0.0)
		psd_timers_set(&worker->timers, PSD_RESOURCE_NIC, task, class_sec);
	else
		psd_worker_advance(worker);
}

bool psd_worker_take_steps_done(struct psd_worker *worker)
{
	struct psd_transfer *transfer = &worker->transfer;

	if (!transfer->is_active || transfer->is_sending || transfer->next_send < transfer->n_steps ||
	    transfer->next_receive < transfer->n_steps)
		return false;
	transfer->is_active = false;
	return true;
}

unsigned psd_worker_next_from(const struct psd_worker *worker, struct psd_task task, unsigned peer, unsigned step)
{
	const struct psd_payload payload = psd_worker_carried(worker, task);
	const unsigned n_steps = psd_payload_steps(&payload, worker->host.layout);

	while (step < n_steps && psd_payload_step(&payload, worker->host.layout, worker->host.self, step).from != peer)
		step++;
	return step;
}

void psd_worker_step_arrived(struct psd_worker *worker)
{
	if (is_staged(worker, worker->transfer.task, worker->transfer.next_receive))
		worker->transfer.has_staged = true;
	else
		take_step(worker);
	psd_worker_advance(worker);
}
