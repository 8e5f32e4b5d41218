/* Which message goes where: the meaning of frames, the ring's steps, and whom a worker waits for. A message is taken only if the program has
 * it: this operation, from this peer, in this iteration, of this length, once. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "real/worker_parts.h"

static bool is_local(const struct psd_worker *worker, unsigned peer)
{
	return psd_layout_node(worker->layout, peer) == psd_layout_node(worker->layout, worker->self);
}

static void count_sent(struct psd_worker *worker, unsigned peer, uint64_t bytes)
{
	if (!is_local(worker, peer))
		worker->sent_bytes += bytes;
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

	pieces[0] = (struct iovec){(float *)(uintptr_t)factors.top_diff, subject->batch * subject->columns * sizeof(float)};
	pieces[1] = (struct iovec){(float *)(uintptr_t)factors.bottom, subject->batch * subject->rows * sizeof(float)};
	return 2;
}

/* The message of a send from one host to another, of which this one is either. */
static unsigned pieces_of(const struct psd_worker *worker, struct psd_task task, unsigned from, unsigned to,
			  struct iovec pieces[PSD_PIECES_MAX])
{
	const struct psd_memory *memory = &worker->memory;
	const struct psd_op *op = &worker->program->ops[task.op];
	const unsigned item = (unsigned)op->item;

	switch (op->payload.pattern) {
	case PSD_PATTERN_PUSH:
		if (from == worker->self)
			return psd_memory_pieces(memory, memory->gradients, item, part_of(worker, op, to), pieces);
		pieces[0] = (struct iovec){psd_memory_received(memory, item, op->slice, from),
					   part_of(worker, op, to).elements * sizeof(float)};
		return 1;
	case PSD_PATTERN_PULL: return psd_memory_pieces(memory, memory->parameters, item, part_of(worker, op, from), pieces);
	case PSD_PATTERN_BROADCAST:
	case PSD_PATTERN_TO_ROOT: return factor_pieces(worker, task, from, pieces);
	case PSD_PATTERN_FROM_ROOT:
		return psd_memory_pieces(memory, memory->parameters, item, psd_plan_slice(&worker->plan->items[item], op->slice),
					 pieces);
	case PSD_PATTERN_RING:
	case PSD_PATTERNS: break;
	}
	return 0;
}

/* ---- sends ---- */

bool psd_worker_send(void *context, unsigned host, struct psd_task task)
{
	struct psd_worker *worker = context;
	const struct psd_payload *payload = &worker->program->ops[task.op].payload;

	(void)host;
	assert(worker->n_leaving == 0);
	for (unsigned step = 1; step < worker->n_hosts; step++) { /* everybody begins with another peer */
		const unsigned to = (worker->self + step) % worker->n_hosts;
		const uint64_t bytes = psd_payload_bytes_between(payload, worker->layout, worker->self, to);
		const struct psd_wire_head head = {PSD_WIRE_DATA, task.op, task.iteration, 0, bytes};
		struct iovec pieces[PSD_PIECES_MAX];

		if (bytes == 0)
			continue;
		psd_streams_send(worker->streams, to, &head, pieces, pieces_of(worker, task, worker->self, to, pieces));
		worker->n_leaving++;
		count_sent(worker, to, bytes);
	}
	return worker->n_leaving > 0;
}

uint32_t psd_worker_arrivals(const void *context, const struct psd_op *receive, unsigned host)
{
	return psd_payload_senders(&receive->payload, context, host);
}

static void send_small(struct psd_worker *worker, unsigned peer, const struct psd_wire_head *head, const uint8_t *payload)
{
	if (!psd_streams_send_small(worker->streams, peer, head, payload))
		fail(worker, psd_error_set(worker->err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for messages to host %u", peer));
}

/* ---- which collective is next: worker 0 hears who is ready and says ---- */

void psd_worker_announce(void *context, struct psd_task task)
{
	struct psd_worker *worker = context;
	const struct psd_wire_head head = {PSD_WIRE_READY, task.op, task.iteration, 0, 0};

	worker->peers[worker->self].next_signal[task.op]++;
	send_small(worker, 0, &head, NULL);
}

void psd_worker_choose(void *context, struct psd_task task)
{
	struct psd_worker *worker = context;
	const struct psd_wire_head head = {PSD_WIRE_BEGIN, task.op, task.iteration, 0, 0};

	for (unsigned w = 1; w < worker->layout->workers; w++)
		send_small(worker, w, &head, NULL);
}

/* ---- losses ---- */

static void tell_progress(struct psd_worker *worker, uint32_t iteration)
{
	const unsigned row = iteration % LOSS_WINDOW * worker->layout->workers;
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

static void take_report(struct psd_worker *worker, unsigned from, uint32_t iteration, const struct psd_wire_report *report)
{
	const unsigned row = iteration % LOSS_WINDOW;

	worker->losses[row * worker->layout->workers + from] = report->loss;
	worker->correct[row * worker->layout->workers + from] = report->correct;
	if (++worker->n_reports[row] < worker->layout->workers)
		return;
	worker->n_reports[row] = 0;
	tell_progress(worker, iteration);
}

void psd_worker_report(struct psd_worker *worker, uint32_t iteration, double loss, uint32_t correct)
{
	const struct psd_wire_head head = {PSD_WIRE_REPORT, 0, iteration, 0, PSD_WIRE_REPORT_BYTES};
	const struct psd_wire_report report = {loss, correct};
	uint8_t payload[PSD_WIRE_REPORT_BYTES];

	if (worker->self == 0) {
		take_report(worker, 0, iteration, &report);
		return;
	}
	psd_wire_encode_report(&report, payload);
	send_small(worker, 0, &head, payload);
}

void psd_worker_say_alive(struct psd_worker *worker)
{
	const struct psd_wire_head head = {.kind = PSD_WIRE_ALIVE};
	const double sec = psd_worker_now(worker);

	if (sec - worker->tests.alive_sec < worker->options->stall_sec / SIGNS_OF_LIFE)
		return;
	worker->tests.alive_sec = sec;
	for (unsigned p = 0; p < worker->n_hosts; p++)
		if (p != worker->self)
			send_small(worker, p, &head, NULL);
}

void psd_worker_say_bye(struct psd_worker *worker, const struct psd_wire_bye *bye)
{
	const struct psd_wire_head head = {PSD_WIRE_BYE, 0, 0, 0, PSD_WIRE_BYE_BYTES};
	uint8_t payload[PSD_WIRE_BYE_BYTES];

	psd_wire_encode_bye(bye, payload);
	for (unsigned p = 0; p < worker->n_hosts; p++)
		if (p != worker->self)
			send_small(worker, p, &head, payload);
}

/* ---- the ring ---- */

static unsigned left_of(const struct psd_worker *worker)
{
	return (worker->self + worker->layout->workers - 1) % worker->layout->workers;
}

static struct psd_ring_step step_of(const struct psd_worker *worker, struct psd_task task, unsigned rank, unsigned step)
{
	return psd_ring_step(worker->program->ops[task.op].payload.elements, worker->layout->workers, rank, step);
}

/* Step k + 1 goes out when step k has left and the chunk of step k has arrived. */
static void advance_ring(struct psd_worker *worker)
{
	struct psd_ring *ring = &worker->ring;
	const unsigned to = (worker->self + 1) % worker->layout->workers;
	const unsigned item = (unsigned)worker->program->ops[ring->task.op].item;
	struct iovec pieces[PSD_PIECES_MAX];
	struct psd_ring_step step;
	struct psd_wire_head head;

	if (ring->is_sending || ring->n_begun == ring->n_steps || ring->n_received < ring->n_begun)
		return;
	step = step_of(worker, ring->task, worker->self, ring->n_begun);
	head = (struct psd_wire_head){PSD_WIRE_RING, ring->task.op, ring->task.iteration, ring->n_begun,
				      step.elements * sizeof(float)};
	psd_streams_send(worker->streams, to, &head, pieces,
			 psd_memory_pieces(&worker->memory, worker->memory.gradients, item,
					   (struct psd_range){step.first_element, step.elements}, pieces));
	count_sent(worker, to, head.length_bytes);
	ring->n_begun++;
	ring->is_sending = true;
}

void psd_worker_collective(void *context, struct psd_task task)
{
	struct psd_worker *worker = context;

	worker->ring = (struct psd_ring){.task = task, .is_active = true, .n_steps = 2 * (worker->layout->workers - 1)};
	advance_ring(worker);
}

bool psd_worker_take_ring_done(struct psd_worker *worker)
{
	struct psd_ring *ring = &worker->ring;

	if (!ring->is_active || ring->is_sending || ring->n_begun < ring->n_steps || ring->n_received < ring->n_steps)
		return false;
	ring->is_active = false;
	return true;
}

/* ---- what arrives ---- */

static enum psd_welcome refuse(struct psd_worker *worker, unsigned peer, const struct psd_wire_head *head, const char *what,
			       struct psd_error *err)
{
	char name[PSD_MESH_NAME_MAX];

	psd_error_set(err, PSD_ERUN, PSD_NOWHERE,
		      "%s sent %s (operation %" PRIu32 " of iteration %" PRIu32 ", part %" PRIu32 ", %" PRIu64
		      " bytes): gave up the connection",
		      psd_mesh_name(worker->layout, worker->options->hosts, peer, name), what, head->op, head->iteration,
		      head->part, head->length_bytes);
	return PSD_WELCOME_REFUSED;
}

static enum psd_welcome expect_small(struct psd_worker *worker, unsigned peer, const struct psd_wire_head *head,
				     struct psd_inlet *inlet, struct psd_error *err)
{
	const bool is_report = head->kind == PSD_WIRE_REPORT;

	if (worker->peers[peer].has_said_bye)
		return refuse(worker, peer, head, "something after its last message", err);
	if (is_report && (worker->self != 0 || !psd_layout_is_worker(worker->layout, peer) ||
			  head->iteration >= worker->options->n_iterations))
		return refuse(worker, peer, head, "a report that nobody expects", err);
	/* the row of the window must be free: the iteration LOSS_WINDOW before it is complete when this host is that far */
	if (is_report && head->iteration > psd_interpreter_iteration(&worker->interpreter, 0) + LOSS_WINDOW / 2)
		return PSD_WELCOME_LATER;
	inlet->pieces[0] = (struct iovec){worker->peers[peer].small, head->length_bytes};
	inlet->n_pieces = 1;
	return PSD_WELCOME_NOW;
}

/* Worker 0 is busy with something that the program does not have. */
static enum psd_welcome expect_alive(struct psd_worker *worker, unsigned peer, const struct psd_wire_head *head,
				     struct psd_error *err)
{
	return peer == 0 ? PSD_WELCOME_NOW : refuse(worker, peer, head, "a sign of life that nobody expects", err);
}

/* READY comes to worker 0 from a worker; BEGIN from worker 0 to one that is ready. */
static enum psd_welcome expect_signal(struct psd_worker *worker, unsigned peer, const struct psd_wire_head *head,
				      struct psd_error *err)
{
	const bool is_ready = head->kind == PSD_WIRE_READY;
	const unsigned from = is_ready ? peer : worker->self, to = is_ready ? worker->self : peer;
	const bool is_known = head->op < worker->program->n_ops && worker->program->ops[head->op].kind == PSD_OP_COLLECTIVE;

	if (!is_known || to != 0 || from >= worker->layout->workers || head->iteration >= worker->options->n_iterations ||
	    head->iteration != worker->peers[peer].next_signal[head->op])
		return refuse(worker, peer, head, "a signal that nobody expects", err);
	if (!is_ready && head->iteration >= worker->peers[worker->self].next_signal[head->op])
		return refuse(worker, peer, head, "the beginning of what is not ready", err);
	return worker->has_begun && head->iteration <= psd_interpreter_iteration(&worker->interpreter, 0) + 1
		       ? PSD_WELCOME_NOW
		       : PSD_WELCOME_LATER;
}

static enum psd_welcome expect_data(struct psd_worker *worker, unsigned peer, const struct psd_wire_head *head,
				    struct psd_inlet *inlet, struct psd_error *err)
{
	const struct psd_op *op = head->op < worker->program->n_ops ? &worker->program->ops[head->op] : NULL;

	if (!op || op->kind != PSD_OP_SEND || head->part != 0 ||
	    head->length_bytes != psd_payload_bytes_between(&op->payload, worker->layout, peer, worker->self) ||
	    head->length_bytes == 0)
		return refuse(worker, peer, head, "a message that the program does not have", err);
	if (head->iteration != worker->peers[peer].next_iteration[head->op] || head->iteration >= worker->options->n_iterations)
		return refuse(worker, peer, head, "a message out of turn", err);
	if (!worker->has_begun || head->iteration > psd_interpreter_iteration(&worker->interpreter, 0) + 1)
		return PSD_WELCOME_LATER;
	inlet->n_pieces = pieces_of(worker, (struct psd_task){head->iteration, head->op}, peer, worker->self, inlet->pieces);
	psd_worker_record_begin(worker, peer, head->op);
	return PSD_WELCOME_NOW;
}

static enum psd_welcome expect_ring(struct psd_worker *worker, unsigned peer, const struct psd_wire_head *head,
				    struct psd_inlet *inlet, struct psd_error *err)
{
	const struct psd_op *op = head->op < worker->program->n_ops ? &worker->program->ops[head->op] : NULL;
	const struct psd_ring *ring = &worker->ring;
	const struct psd_task task = {head->iteration, head->op};
	struct psd_ring_step step;

	if (!op || op->kind != PSD_OP_COLLECTIVE || worker->self >= worker->layout->workers || peer != left_of(worker) ||
	    head->part >= 2 * (worker->layout->workers - 1))
		return refuse(worker, peer, head, "a step that the program does not have", err);
	step = step_of(worker, task, peer, head->part);
	if (head->length_bytes != step.elements * sizeof(float) ||
	    head->iteration != worker->peers[peer].next_iteration[head->op])
		return refuse(worker, peer, head, "a step out of turn", err);
	if (!ring->is_active || ring->task.op != task.op || ring->task.iteration != task.iteration)
		return head->part == 0 ? PSD_WELCOME_LATER : refuse(worker, peer, head, "a step out of turn", err);
	if (head->part < ring->n_received)
		return refuse(worker, peer, head, "a step out of turn", err);
	if (head->part > ring->n_received) /* on another connection than what is missing of the step before */
		return PSD_WELCOME_LATER;
	inlet->n_pieces = psd_memory_pieces(&worker->memory, worker->memory.gradients, (unsigned)op->item,
					    (struct psd_range){step.first_element, step.elements}, inlet->pieces);
	inlet->is_added = step.is_reducing;
	return PSD_WELCOME_NOW;
}

static enum psd_welcome expect(void *context, unsigned peer, const struct psd_wire_head *head, struct psd_inlet *inlet,
			       struct psd_error *err)
{
	struct psd_worker *worker = context;

	switch (head->kind) {
	case PSD_WIRE_DATA: return expect_data(worker, peer, head, inlet, err);
	case PSD_WIRE_RING: return expect_ring(worker, peer, head, inlet, err);
	case PSD_WIRE_READY:
	case PSD_WIRE_BEGIN: return expect_signal(worker, peer, head, err);
	case PSD_WIRE_ALIVE: return expect_alive(worker, peer, head, err);
	case PSD_WIRE_REPORT:
	case PSD_WIRE_BYE: return expect_small(worker, peer, head, inlet, err);
	case PSD_WIRE_HELLO:
	case PSD_WIRE_CLOCK:
	case PSD_WIRE_KINDS: break;
	}
	return refuse(worker, peer, head, "a second greeting", err);
}

/* One more share of a tensors' message is there: true when it was the last. */
static bool is_whole(struct psd_worker *worker, struct psd_peer *from, unsigned peer, const struct psd_wire_head *head)
{
	if (++from->n_shares[head->op] < psd_streams_shares(worker->streams, head->length_bytes))
		return false;
	from->n_shares[head->op] = 0;
	worker->received_bytes += is_local(worker, peer) ? 0 : head->length_bytes;
	return true;
}

static void arrived_data(struct psd_worker *worker, struct psd_peer *from, unsigned peer, const struct psd_wire_head *head)
{
	from->next_iteration[head->op]++;
	psd_worker_record_arrival(worker, peer, (struct psd_task){head->iteration, head->op}, head->length_bytes);
	psd_interpreter_arrived(&worker->interpreter, 0, (struct psd_task){head->iteration, head->op});
}

static void arrived_ring(struct psd_worker *worker, struct psd_peer *from, const struct psd_wire_head *head)
{
	if (++worker->ring.n_received == worker->ring.n_steps)
		from->next_iteration[head->op]++;
	advance_ring(worker);
}

static void arrived_report(struct psd_worker *worker, unsigned peer, const struct psd_wire_head *head)
{
	const struct psd_wire_report report = psd_wire_decode_report(worker->peers[peer].small);

	take_report(worker, peer, head->iteration, &report);
}

static void arrived(void *context, unsigned peer, const struct psd_wire_head *head)
{
	struct psd_worker *worker = context;
	struct psd_peer *from = &worker->peers[peer];
	const struct psd_task task = {head->iteration, head->op};

	switch (head->kind) {
	case PSD_WIRE_DATA:
		if (is_whole(worker, from, peer, head))
			arrived_data(worker, from, peer, head);
		break;
	case PSD_WIRE_RING:
		if (is_whole(worker, from, peer, head))
			arrived_ring(worker, from, head);
		break;
	case PSD_WIRE_READY:
		from->next_signal[head->op]++;
		psd_interpreter_announced(&worker->interpreter, task);
		break;
	case PSD_WIRE_BEGIN:
		from->next_signal[head->op]++;
		psd_interpreter_chosen(&worker->interpreter, task);
		break;
	case PSD_WIRE_REPORT: arrived_report(worker, peer, head); break;
	case PSD_WIRE_BYE:
		from->bye = psd_wire_decode_bye(from->small);
		from->has_said_bye = true;
		break;
	case PSD_WIRE_ALIVE:
	case PSD_WIRE_HELLO:
	case PSD_WIRE_CLOCK:
	case PSD_WIRE_KINDS: break;
	}
}

static void left(void *context, unsigned peer)
{
	struct psd_worker *worker = context;

	(void)peer;
	if (worker->ring.is_sending) { /* the collective holds the NIC: nothing else was on its way */
		worker->ring.is_sending = false;
		advance_ring(worker);
		return;
	}
	assert(worker->n_leaving > 0);
	if (--worker->n_leaving == 0)
		worker->is_over[PSD_RESOURCE_NIC] = true;
}

/* ---- whom we wait for ---- */

static const char *const pattern_names[PSD_PATTERNS] = {
	[PSD_PATTERN_PUSH] = "push",	     [PSD_PATTERN_PULL] = "pull",
	[PSD_PATTERN_BROADCAST] = "factors", [PSD_PATTERN_TO_ROOT] = "factors to root",
	[PSD_PATTERN_FROM_ROOT] = "matrix",  [PSD_PATTERN_RING] = "ring",
};

/* The first message of the current iteration that a peer owes, as an operation; n_ops when it owes none. */
static uint32_t find_owed(const struct psd_worker *worker, unsigned peer)
{
	const uint32_t iteration = psd_interpreter_iteration(&worker->interpreter, 0);

	for (uint32_t i = 0; i < worker->program->n_ops; i++) {
		const struct psd_op *op = &worker->program->ops[i];

		if ((op->kind == PSD_OP_SEND || op->kind == PSD_OP_COLLECTIVE) &&
		    worker->peers[peer].next_iteration[i] <= iteration &&
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
		snprintf(text, room, "'%s %.60s'", pattern_names[op->payload.pattern], worker->graph->layers[op->layer].name);
}

static void describe_self(const struct psd_worker *worker, char *text, size_t room)
{
	const bool is_worker = psd_layout_is_worker(worker->layout, worker->self);

	snprintf(text, room, "%s %u", is_worker ? "worker" : "server",
		 is_worker ? worker->self : worker->self - worker->layout->workers);
}

static enum psd_status lost(void *context, unsigned peer, int error_number, struct psd_error *err)
{
	struct psd_worker *worker = context;
	char name[PSD_MESH_NAME_MAX], self[32], owed[96], how[96] = "closed the connection";

	if (worker->peers[peer].has_said_bye)
		return PSD_OK;
	if (error_number)
		snprintf(how, sizeof(how), "is gone (%.60s)", strerror(error_number));
	describe_owed(worker, find_owed(worker, peer), owed, sizeof(owed));
	describe_self(worker, self, sizeof(self));
	return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "%s %s in iteration %" PRIu32 " while %s waits for its %s",
			     psd_mesh_name(worker->layout, worker->options->hosts, peer, name), how,
			     psd_interpreter_iteration(&worker->interpreter, 0), self, owed);
}

/* Who owes the earliest operation: what others owe may wait for that, as a pull does for everybody's push. n_hosts: nobody. */
static unsigned find_debtor(const struct psd_worker *worker)
{
	uint32_t earliest = UINT32_MAX;
	unsigned debtor = worker->n_hosts;

	for (unsigned p = 0; p < worker->n_hosts; p++) {
		const uint32_t owed = p != worker->self && !worker->peers[p].has_said_bye ? find_owed(worker, p) : UINT32_MAX;

		if (owed >= earliest)
			continue;
		earliest = owed;
		debtor = p;
	}
	return debtor;
}

enum psd_status psd_worker_stalled(struct psd_worker *worker, struct psd_error *err)
{
	const unsigned peer = find_debtor(worker);
	char name[PSD_MESH_NAME_MAX], self[32], owed[96];

	describe_self(worker, self, sizeof(self));
	if (peer == worker->n_hosts)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "%s made no progress for %g s in iteration %" PRIu32, self,
				     worker->options->stall_sec, psd_interpreter_iteration(&worker->interpreter, 0));
	describe_owed(worker, find_owed(worker, peer), owed, sizeof(owed));
	return psd_error_set(err, PSD_ERUN, PSD_NOWHERE,
			     "nothing has moved for %g s in iteration %" PRIu32 ": %s waits for the %s of %s",
			     worker->options->stall_sec, psd_interpreter_iteration(&worker->interpreter, 0), self, owed,
			     psd_mesh_name(worker->layout, worker->options->hosts, peer, name));
}

struct psd_streams_owner psd_worker_owner(struct psd_worker *worker)
{
	return (struct psd_streams_owner){.expect = expect, .arrived = arrived, .left = left, .lost = lost, .context = worker};
}
