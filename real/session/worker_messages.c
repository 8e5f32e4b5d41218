/* What a worker sends: the tensors of an operation, the steps of a ring, signals and reports. */
#include <assert.h>

#include "real/session/worker_parts.h"

bool psd_worker_is_near(const struct psd_worker *worker, unsigned peer)
{
	return psd_layout_node(worker->layout, peer) == psd_layout_node(worker->layout, worker->self);
}

uint64_t psd_worker_message_bytes(const struct psd_worker *worker, const struct psd_wire_head *head, unsigned from,
				  unsigned to)
{
	const struct psd_payload *payload = &worker->program->ops[head->op].payload;

	if (head->kind == PSD_WIRE_RING)
		return psd_ring_step(payload->elements, worker->layout->workers, from, head->part).elements *
		       payload->value_bytes;
	return psd_payload_bytes_between(payload, worker->layout, from, to);
}

static void count_sent(struct psd_worker *worker, unsigned peer, const struct psd_wire_head *head)
{
	if (!psd_worker_is_near(worker, peer))
		worker->sent_bytes += psd_worker_message_bytes(worker, head, worker->self, peer);
}

static enum psd_status fail(struct psd_worker *worker, enum psd_status status)
{
	if (!worker->status)
		worker->status = status;
	return status;
}

/* ---- where the tensors of a message lie, on either side ---- */

static struct psd_range part_of(const struct psd_worker *worker, const struct psd_op *op, unsigned shard_host)
{
	const struct psd_range slice = psd_plan_slice(&worker->plan->items[op->item], op->slice);
	const struct psd_range part =
		psd_layout_part(worker->layout, slice.elements, psd_layout_shard(worker->layout, shard_host));

	return (struct psd_range){slice.first + part.first, part.elements};
}

static unsigned factor_pieces(const struct psd_worker *worker, struct psd_task task, unsigned from,
			      struct iovec pieces[PSD_PIECES_MAX])
{
	const unsigned item = (unsigned)worker->program->ops[task.op].item;
	const struct psd_subject *subject = &worker->plan->items[item].subject;
	const struct psd_factors factors = psd_memory_factors(&worker->memory, item, task.iteration, from);

	pieces[0] =
		(struct iovec){(float *)(uintptr_t)factors.top_diff, subject->batch * subject->columns * sizeof(float)};
	pieces[1] = (struct iovec){(float *)(uintptr_t)factors.bottom, subject->batch * subject->rows * sizeof(float)};
	return 2;
}

/* The message of a send from one host to another, of which this one is either. */
unsigned psd_worker_pieces(const struct psd_worker *worker, struct psd_task task, unsigned from, unsigned to,
			   struct iovec pieces[PSD_PIECES_MAX])
{
	const struct psd_memory *memory = &worker->memory;
	const struct psd_op *op = &worker->program->ops[task.op];
	const unsigned item = (unsigned)op->item;

	if (worker->replay) {
		const struct psd_payload payload = psd_worker_payload(worker, op);

		pieces[0] = (struct iovec){worker->folded.base,
					   psd_payload_bytes_between(&payload, worker->layout, from, to)};
		return 1;
	}
	switch (op->payload.pattern) {
	case PSD_PATTERN_PUSH:
		if (from == worker->self)
			return psd_memory_pieces(memory, psd_memory_gradients(memory, task.iteration), item,
						 part_of(worker, op, to), pieces);
		pieces[0] = (struct iovec){psd_memory_received(memory, item, op->slice, task.iteration, from),
					   part_of(worker, op, to).elements * sizeof(float)};
		return 1;
	case PSD_PATTERN_PULL:
		return psd_memory_pieces(memory, memory->parameters, item, part_of(worker, op, from), pieces);
	case PSD_PATTERN_BROADCAST:
	case PSD_PATTERN_TO_ROOT: return factor_pieces(worker, task, from, pieces);
	case PSD_PATTERN_FROM_ROOT:
		return psd_memory_pieces(memory, memory->parameters, item,
					 psd_plan_slice(&worker->plan->items[item], op->slice), pieces);
	case PSD_PATTERN_RING:
	case PSD_PATTERNS: break;
	}
	return 0;
}

/* ---- sends ---- */

struct psd_payload psd_worker_payload(const struct psd_worker *worker, const struct psd_op *op)
{
	return worker->replay ? psd_payload_scaled(&op->payload, worker->layout, worker->replay->payload_ratio)
			      : op->payload;
}

void psd_worker_start_messages(struct psd_worker *worker, struct psd_task task)
{
	const struct psd_payload payload = psd_worker_payload(worker, &worker->program->ops[task.op]);

	assert(worker->n_leaving == 0);
	for (unsigned step = 1; step < worker->n_hosts; step++) { /* everybody begins with another peer */
		const unsigned to = (worker->self + step) % worker->n_hosts;
		const uint64_t bytes = psd_payload_bytes_between(&payload, worker->layout, worker->self, to);
		const struct psd_wire_head head = {
			.kind = PSD_WIRE_DATA, .op = task.op, .iteration = task.iteration, .length_bytes = bytes};
		struct iovec pieces[PSD_PIECES_MAX];

		if (bytes == 0)
			continue;
		psd_streams_send(worker->streams, to, &head, pieces,
				 psd_worker_pieces(worker, task, worker->self, to, pieces));
		worker->n_leaving++;
		count_sent(worker, to, &head);
	}
}

static bool has_messages(const struct psd_worker *worker, const struct psd_payload *payload)
{
	for (unsigned to = 0; to < worker->n_hosts; to++)
		if (to != worker->self && psd_payload_bytes_between(payload, worker->layout, worker->self, to) > 0)
			return true;
	return false;
}

bool psd_worker_send(void *context, unsigned host, struct psd_task task)
{
	struct psd_worker *worker = context;
	const struct psd_payload *payload = &worker->program->ops[task.op].payload;

	(void)host;
	if (!has_messages(worker, payload))
		return false;
	psd_worker_start_messages(worker, task);
	return true;
}

uint32_t psd_worker_arrivals(const void *context, const struct psd_op *receive, unsigned host)
{
	const struct psd_worker *worker = context;

	return psd_payload_senders(&receive->payload, worker->layout, host);
}

static void send_small(struct psd_worker *worker, unsigned peer, const struct psd_wire_head *head,
		       const uint8_t *payload)
{
	if (!psd_streams_send_small(worker->streams, peer, head, payload))
		fail(worker, psd_error_set(worker->err, PSD_ENOMEM, PSD_NOWHERE,
					   "out of memory for messages to host %u", peer));
}

/* ---- which collective is next: worker 0 hears who is ready and says ---- */

void psd_worker_announce(void *context, struct psd_task task)
{
	struct psd_worker *worker = context;
	const struct psd_wire_head head = {.kind = PSD_WIRE_READY, .op = task.op, .iteration = task.iteration};

	worker->peers[worker->self].next_signal[task.op]++;
	send_small(worker, 0, &head, NULL);
}

void psd_worker_choose(void *context, struct psd_task task)
{
	struct psd_worker *worker = context;
	const struct psd_wire_head head = {.kind = PSD_WIRE_BEGIN, .op = task.op, .iteration = task.iteration};

	for (unsigned w = 1; w < worker->layout->workers; w++)
		send_small(worker, w, &head, NULL);
}

/* ---- losses ---- */

static void tell_progress(struct psd_worker *worker, uint32_t iteration)
{
	const size_t row = (size_t)(iteration % worker->loss_window) * worker->layout->workers;
	struct psd_progress progress = {
		.iteration = iteration,
		.n_iterations = worker->options->n_iterations,
		.elapsed_sec = psd_worker_now(worker),
	};
	uint64_t correct = 0;

	for (unsigned w = 0; w < worker->layout->workers; w++) { /* in order of rank: the sum repeats exactly */
		progress.loss += worker->losses[row + w];
		correct += worker->correct[row + w];
	}
	progress.correct_ratio = (double)correct / (double)worker->global_batch;
	worker->last_loss = progress.loss;
	psd_worker_tell(worker, &progress);
}

void psd_worker_take_report(struct psd_worker *worker, unsigned from, uint32_t iteration,
			    const struct psd_wire_report *report)
{
	const size_t row = iteration % worker->loss_window;

	worker->losses[row * worker->layout->workers + from] = report->loss;
	worker->correct[row * worker->layout->workers + from] = report->correct;
	if (++worker->n_reports[row] < worker->layout->workers)
		return;
	worker->n_reports[row] = 0;
	tell_progress(worker, iteration);
}

void psd_worker_report(struct psd_worker *worker, uint32_t iteration, double loss, uint32_t correct)
{
	const struct psd_wire_head head = {
		.kind = PSD_WIRE_REPORT, .iteration = iteration, .length_bytes = PSD_WIRE_REPORT_BYTES};
	const struct psd_wire_report report = {loss, correct};
	uint8_t payload[PSD_WIRE_REPORT_BYTES];

	if (worker->self == 0) {
		psd_worker_take_report(worker, 0, iteration, &report);
		return;
	}
	psd_wire_encode_report(&report, payload);
	send_small(worker, 0, &head, payload);
}

void psd_worker_say_alive(struct psd_worker *worker)
{
	const struct psd_wire_head head = {.kind = PSD_WIRE_ALIVE};
	const double sec = psd_worker_now(worker);

	if ((sec - worker->alive_sec) * worker->dilation_ratio < worker->options->stall_sec / SIGNS_OF_LIFE)
		return;
	worker->alive_sec = sec;
	for (unsigned p = 0; p < worker->n_hosts; p++)
		if (p != worker->self)
			send_small(worker, p, &head, NULL);
}

void psd_worker_say_bye(struct psd_worker *worker, const struct psd_wire_bye *bye)
{
	const struct psd_wire_head head = {.kind = PSD_WIRE_BYE, .length_bytes = PSD_WIRE_BYE_BYTES};
	uint8_t payload[PSD_WIRE_BYE_BYTES];

	psd_wire_encode_bye(bye, payload);
	for (unsigned p = 0; p < worker->n_hosts; p++)
		if (p != worker->self)
			send_small(worker, p, &head, payload);
}

/* ---- the ring ---- */

struct psd_ring_step psd_worker_ring_step(const struct psd_worker *worker, struct psd_task task, unsigned rank,
					  unsigned step)
{
	const struct psd_payload payload = psd_worker_payload(worker, &worker->program->ops[task.op]);

	return psd_ring_step(payload.elements, worker->layout->workers, rank, step);
}

uint64_t psd_worker_step_bytes(const struct psd_worker *worker, struct psd_task task, const struct psd_ring_step *step)
{
	return step->elements * worker->program->ops[task.op].payload.value_bytes;
}

unsigned psd_worker_step_pieces(const struct psd_worker *worker, struct psd_task task, const struct psd_ring_step *step,
				struct iovec pieces[PSD_PIECES_MAX])
{
	const unsigned item = (unsigned)worker->program->ops[task.op].item;

	if (worker->replay) {
		pieces[0] = (struct iovec){worker->folded.base, psd_worker_step_bytes(worker, task, step)};
		return 1;
	}
	return psd_memory_pieces(&worker->memory, psd_memory_gradients(&worker->memory, task.iteration), item,
				 (struct psd_range){step->first_element, step->elements}, pieces);
}

static void send_step(struct psd_worker *worker)
{
	struct psd_ring *ring = &worker->ring;
	const unsigned to = (worker->self + 1) % worker->layout->workers;
	const struct psd_ring_step step = psd_worker_ring_step(worker, ring->task, worker->self, ring->n_begun);
	const struct psd_wire_head head = {.kind = PSD_WIRE_RING,
					   .op = ring->task.op,
					   .iteration = ring->task.iteration,
					   .part = ring->n_begun,
					   .length_bytes = psd_worker_step_bytes(worker, ring->task, &step)};
	struct iovec pieces[PSD_PIECES_MAX];

	psd_streams_send(worker->streams, to, &head, pieces, psd_worker_step_pieces(worker, ring->task, &step, pieces));
	count_sent(worker, to, &head);
	ring->n_begun++;
	ring->is_sending = true;
}

/* Step k + 1 goes out when step k has left and the chunk of step k has arrived. */
void psd_worker_advance_ring(struct psd_worker *worker)
{
	const struct psd_ring *ring = &worker->ring;

	if (ring->is_waiting || ring->is_sending || ring->n_begun == ring->n_steps || ring->n_received < ring->n_begun)
		return;
	send_step(worker);
}

void psd_worker_continue_ring(struct psd_worker *worker)
{
	worker->ring.is_waiting = false;
	psd_worker_advance_ring(worker);
}

/* What its size class adds comes first, as in a simulation of every message. */
void psd_worker_collective(void *context, struct psd_task task)
{
	struct psd_worker *worker = context;
	const struct psd_payload *payload = &worker->program->ops[task.op].payload;
	const double class_sec =
		worker->replay ? psd_cost_ring_class_sec(payload, worker->layout, &worker->plan->rates) : 0.0;

	worker->ring = (struct psd_ring){
		.task = task,
		.is_active = true,
		.is_waiting = class_sec > 0.0,
		.n_steps = 2 * (worker->layout->workers - 1),
	};
	if (class_sec > 0.0)
		psd_worker_set_alarm(worker, PSD_RESOURCE_NIC, task, class_sec);
	else
		psd_worker_advance_ring(worker);
}

bool psd_worker_take_ring_done(struct psd_worker *worker)
{
	struct psd_ring *ring = &worker->ring;

	if (!ring->is_active || ring->is_sending || ring->n_begun < ring->n_steps || ring->n_received < ring->n_steps)
		return false;
	ring->is_active = false;
	return true;
}
