/* Incoming messages. A message is accepted only if the program expects it: operation, peer, iteration and length, once.
 * One that is too early waits in its connection. */
#include <assert.h>
#include <inttypes.h>

#include "real/net/socket.h"
#include "real/session/worker_parts.h"

/* ---- expectations ---- */

static enum psd_acceptance refuse(struct psd_worker *worker, unsigned peer, const struct psd_wire_head *head,
				  const char *what, struct psd_error *err)
{
	char name[PSD_MESH_NAME_MAX];

	psd_error_set(err, PSD_ERUN, PSD_NOWHERE,
		      "%s sent %s (operation %" PRIu32 " of iteration %" PRIu32 ", part %" PRIu32 ", %" PRIu64
		      " bytes): this host has closed the connection",
		      psd_mesh_name(worker->host.layout, worker->host.options->hosts, peer, name), what, head->op,
		      head->iteration, head->part, head->length_bytes);
	return PSD_ACCEPT_NEVER;
}

static enum psd_acceptance expect_small(struct psd_worker *worker, unsigned peer, const struct psd_wire_head *head,
					struct psd_destination *destination, struct psd_error *err)
{
	const bool is_report = head->kind == PSD_WIRE_REPORT;

	if (worker->peers[peer].has_sent_bye && head->kind != PSD_WIRE_FAILED)
		return refuse(worker, peer, head, "something after its last message", err);
	if (is_report && (worker->host.self != 0 || !psd_layout_is_worker(worker->host.layout, peer) ||
			  head->iteration >= worker->host.options->n_iterations))
		return refuse(worker, peer, head, "an unexpected report", err);
	/* its row must be free, which holds once this host is that far */
	if (is_report &&
	    head->iteration > psd_interpreter_iteration(&worker->interpreter, 0) + worker->losses.window / 2)
		return PSD_ACCEPT_LATER;
	destination->segments[0] = (struct iovec){worker->peers[peer].small, head->length_bytes};
	destination->n_segments = 1;
	return PSD_ACCEPT_NOW;
}

/* True once this host has memory for the iteration. */
static bool is_in_window(const struct psd_worker *worker, uint32_t iteration)
{
	return worker->phase != PSD_PHASE_OPENING &&
	       iteration < psd_interpreter_iteration(&worker->interpreter, 0) + worker->host.program->window;
}

static const struct psd_period *period_of(const struct psd_worker *worker)
{
	return psd_interpreter_period(&worker->interpreter, 0);
}

/* First iteration from this one on in which the operation is executed. */
static uint32_t next_of(const struct psd_worker *worker, uint32_t op, uint32_t iteration)
{
	return psd_op_next(&worker->host.program->ops[op], period_of(worker), iteration);
}

/* True if the iteration is impossible. A peer that sends in an iteration has what it needs of the one window - 1
 * before, so this host had begun that one, and had what it needed of the one window - 1 before. With local steps this
 * holds for exchanges, and with peers that take turns for those iterations in which two meet. */
static bool is_out_of_turn(const struct psd_worker *worker, uint32_t o, uint32_t iteration, uint32_t next)
{
	const uint64_t steps = psd_plan_steps(worker->host.plan), turns = psd_plan_rotation(worker->host.plan);
	const struct psd_op *op = &worker->host.program->ops[o];

	return iteration < next || iteration >= next + 2 * (worker->host.program->window - 1) * steps * turns ||
	       iteration >= worker->host.options->n_iterations ||
	       (is_in_window(worker, iteration) && !psd_op_is_due(op, period_of(worker), iteration));
}

/* Returns the first iteration from `next` on in which a peer sends a message of an operation to this host. */
static uint32_t find_next(const struct psd_worker *worker, uint32_t o, unsigned peer, uint32_t next)
{
	struct psd_payload payload = psd_op_payload(&worker->host.program->ops[o], next_of(worker, o, next));

	while (payload.collective->rotates &&
	       psd_payload_bytes_between(&payload, worker->host.layout, peer, worker->host.self) == 0)
		payload.round++;
	return (uint32_t)(payload.round - 1);
}

/* Accepts READY on worker 0, and BEGIN from worker 0 on a host that is ready. */
static enum psd_acceptance expect_signal(struct psd_worker *worker, unsigned peer, const struct psd_wire_head *head,
					 struct psd_error *err)
{
	const bool is_ready = head->kind == PSD_WIRE_READY;
	const unsigned from = is_ready ? peer : worker->host.self, to = is_ready ? worker->host.self : peer;
	const bool is_known = worker->is_coordinated && head->op < worker->host.program->n_ops &&
			      psd_op_is_collective(&worker->host.program->ops[head->op]);

	if (!is_known || to != 0 || !psd_op_runs_on(&worker->host.program->ops[head->op], worker->host.layout, from) ||
	    head->iteration >= worker->host.options->n_iterations)
		return refuse(worker, peer, head, "an unexpected signal", err);
	if (!psd_worker_knows_steps(worker, head->iteration)) /* when this host is there */
		return PSD_ACCEPT_LATER;
	if (head->iteration != next_of(worker, head->op, worker->peers[peer].ops[head->op].next_signal))
		return refuse(worker, peer, head, "an unexpected signal", err);
	if (!is_ready && head->iteration >= worker->peers[worker->host.self].ops[head->op].next_signal)
		return refuse(worker, peer, head, "a start of an operation that is not ready", err);
	return is_in_window(worker, head->iteration) ? PSD_ACCEPT_NOW : PSD_ACCEPT_LATER;
}

/* Decides about a message of an iteration from a peer whose messages are in order. */
static enum psd_acceptance expect_turn(struct psd_worker *worker, unsigned peer, const struct psd_wire_head *head,
				       struct psd_error *err)
{
	const uint32_t next = worker->peers[peer].ops[head->op].next_iteration;

	if (is_out_of_turn(worker, head->op, head->iteration, next))
		return refuse(worker, peer, head, "a message of an unexpected iteration", err);
	/* the one before is there but its latency is not over, or a chunk of it is on another connection */
	return !is_in_window(worker, head->iteration) || head->iteration > find_next(worker, head->op, peer, next)
		       ? PSD_ACCEPT_LATER
		       : PSD_ACCEPT_NOW;
}

static enum psd_acceptance expect_message(struct psd_worker *worker, unsigned peer, const struct psd_wire_head *head,
					  struct psd_destination *destination, struct psd_error *err)
{
	const struct psd_op *op = &worker->host.program->ops[head->op];
	const struct psd_payload payload = psd_worker_payload(worker, (struct psd_task){head->iteration, head->op});

	if (payload.elements == 0 || head->part != 0 || head->length_bytes == 0 ||
	    head->length_bytes != psd_payload_bytes_between(&payload, worker->host.layout, peer, worker->host.self))
		return refuse(worker, peer, head, "a message that no operation expects", err);
	const enum psd_acceptance acceptance = expect_turn(worker, peer, head, err);
	if (acceptance != PSD_ACCEPT_NOW)
		return acceptance;
	destination->n_segments = psd_worker_segments(worker, (struct psd_task){head->iteration, head->op}, peer,
						      worker->host.self, destination->segments);
	if (psd_buffer_is_sum(op->target.buffer) && worker->host.memory.adds_arrivals) {
		destination->added = worker->host.plan->wire->is_lossy ? worker->host.plan->wire : &psd_encoding_fp32;
		destination->is_of_floats = true;
	}
	psd_worker_record_begin(worker, peer, head->op);
	return PSD_ACCEPT_NOW;
}

/* The peer is ahead of this worker in that transfer. On a single connection nothing overtakes its first step. */
static enum psd_acceptance expect_early(struct psd_worker *worker, unsigned peer, const struct psd_wire_head *head,
					struct psd_error *err)
{
	const struct psd_task task = {head->iteration, head->op};

	return head->part == psd_worker_next_from(worker, task, peer, 0) || worker->n_connections > 1
		       ? PSD_ACCEPT_LATER
		       : refuse(worker, peer, head, "a step out of order", err);
}

static enum psd_acceptance expect_step(struct psd_worker *worker, unsigned peer, const struct psd_wire_head *head,
				       struct psd_destination *destination, struct psd_error *err)
{
	const struct psd_transfer *transfer = &worker->transfer;
	const struct psd_task task = {head->iteration, head->op};
	const struct psd_payload payload = psd_worker_carried(worker, task);
	const bool is_member = psd_payload_has_member(&payload, worker->host.layout, worker->host.self) &&
			       psd_payload_has_member(&payload, worker->host.layout, peer);
	struct psd_step step = {.to = peer};

	if (is_member && psd_worker_awaits_choice(worker, task))
		return expect_turn(worker, peer, head, err) == PSD_ACCEPT_NEVER ? PSD_ACCEPT_NEVER : PSD_ACCEPT_LATER;
	if (is_member && head->part < psd_payload_steps(&payload, worker->host.layout))
		step = psd_worker_step(worker, task, peer, head->part);
	if (step.to != worker->host.self)
		return refuse(worker, peer, head, "a step that no operation expects", err);
	if (head->length_bytes != psd_worker_step_bytes(worker, task, &step))
		return refuse(worker, peer, head, "a step of another length", err);
	const enum psd_acceptance acceptance = expect_turn(worker, peer, head, err);
	if (acceptance == PSD_ACCEPT_NEVER)
		return acceptance;
	if (!transfer->is_active || transfer->task.op != task.op || transfer->task.iteration != task.iteration)
		return expect_early(worker, peer, head, err);
	if (head->part < transfer->next_receive)
		return refuse(worker, peer, head, "a step out of order", err);
	/* others' messages of earlier steps are missing, or delayed, or have a chunk on another connection */
	if (head->part > transfer->next_receive)
		return PSD_ACCEPT_LATER;
	psd_worker_step_destination(worker, task, &step, head->part, destination);
	return PSD_ACCEPT_NOW;
}

/* The peer may be in the pause already. */
static enum psd_acceptance expect_part(struct psd_worker *worker, unsigned peer, const struct psd_wire_head *head,
				       struct psd_destination *destination, struct psd_error *err)
{
	if (!psd_worker_expects_part(worker, peer, head))
		return refuse(worker, peer, head, "unexpected parameters", err);
	return psd_worker_takes_part(worker, peer, head, destination) ? PSD_ACCEPT_NOW : PSD_ACCEPT_LATER;
}

static enum psd_acceptance expect_data(struct psd_worker *worker, unsigned peer, const struct psd_wire_head *head,
				       struct psd_destination *destination, struct psd_error *err)
{
	const struct psd_op *op = &worker->host.program->ops[head->op];

	if (psd_worker_is_of_gathering(worker, head))
		return expect_part(worker, peer, head, destination, err);
	if (head->op < worker->host.program->n_ops && psd_op_is_send(op))
		return expect_message(worker, peer, head, destination, err);
	if (head->op < worker->host.program->n_ops && psd_op_is_collective(op))
		return expect_step(worker, peer, head, destination, err);
	return refuse(worker, peer, head, "a message that no operation expects", err);
}

/* The host may be at the fence of these steps, or before it. */
static enum psd_acceptance expect_steps(struct psd_worker *worker, unsigned peer, const struct psd_wire_head *head,
					struct psd_error *err)
{
	const bool is_known = psd_worker_next_steps(worker) <= worker->host.options->n_iterations && peer == 0 &&
			      head->iteration == worker->quality.n_known && worker->quality.received_steps == 0 &&
			      head->part >= 1 && head->part <= psd_plan_steps(worker->host.plan);

	return is_known ? PSD_ACCEPT_NOW : refuse(worker, peer, head, "unexpected local steps", err);
}

static enum psd_acceptance expect_done(struct psd_worker *worker, unsigned peer, const struct psd_wire_head *head,
				       struct psd_error *err)
{
	return worker->peers[peer].is_done ? refuse(worker, peer, head, "a second message that it has finished", err)
					   : PSD_ACCEPT_NOW;
}

static enum psd_acceptance expect(void *context, unsigned peer, const struct psd_wire_head *head,
				  struct psd_destination *destination, struct psd_error *err)
{
	struct psd_worker *worker = context;

	switch (head->kind) {
	case PSD_WIRE_DATA: return expect_data(worker, peer, head, destination, err);
	case PSD_WIRE_READY:
	case PSD_WIRE_BEGIN: return expect_signal(worker, peer, head, err);
	case PSD_WIRE_STEPS: return expect_steps(worker, peer, head, err);
	case PSD_WIRE_ALIVE: return PSD_ACCEPT_NOW;
	case PSD_WIRE_DONE: return expect_done(worker, peer, head, err);
	case PSD_WIRE_REPORT:
	case PSD_WIRE_BYE:
	case PSD_WIRE_FAILED: return expect_small(worker, peer, head, destination, err);
	case PSD_WIRE_HELLO:
	case PSD_WIRE_CLOCK:
	case PSD_WIRE_TRANSPORT:
	case PSD_WIRE_RATES:
	case PSD_WIRE_INVITATION:
	case PSD_WIRE_KINDS: break;
	}
	return refuse(worker, peer, head, "a second greeting", err);
}

/* ---- arrivals ---- */

static void arrived_message(struct psd_worker *worker, struct psd_peer *from, unsigned peer,
			    const struct psd_wire_head *head)
{
	from->ops[head->op].next_iteration = head->iteration + 1;
	psd_worker_record_arrival(worker, peer, (struct psd_task){head->iteration, head->op}, head->length_bytes);
	psd_interpreter_arrived(&worker->interpreter, 0, (struct psd_task){head->iteration, head->op});
}

static void arrived_data(struct psd_worker *worker, struct psd_peer *from, unsigned peer,
			 const struct psd_wire_head *head)
{
	if (psd_worker_is_of_gathering(worker, head)) {
		psd_worker_part_arrived(worker, peer);
		return;
	}
	if (psd_worker_is_counted(worker, peer, head->iteration))
		worker->received_bytes += psd_worker_message_bytes(worker, head, peer, worker->host.self);
	if (psd_op_is_collective(&worker->host.program->ops[head->op]))
		psd_worker_step_arrived(worker);
	else
		arrived_message(worker, from, peer, head);
}

static void arrived_report(struct psd_worker *worker, unsigned peer, const struct psd_wire_head *head)
{
	const struct psd_wire_report report =
		psd_wire_decode_payload(PSD_WIRE_REPORT, worker->peers[peer].small).report;

	psd_worker_take_report(worker, peer, head->iteration, &report);
}

static void arrived(void *context, unsigned peer, const struct psd_wire_head *head, const uint8_t *tag)
{
	struct psd_worker *worker = context;
	struct psd_peer *from = &worker->peers[peer];
	const struct psd_task task = {head->iteration, head->op};

	(void)tag;
	switch (head->kind) {
	case PSD_WIRE_DATA: arrived_data(worker, from, peer, head); break;
	case PSD_WIRE_READY:
		from->ops[head->op].next_signal = head->iteration + 1;
		psd_interpreter_announced(&worker->interpreter, task);
		break;
	case PSD_WIRE_BEGIN:
		from->ops[head->op].next_signal = head->iteration + 1;
		psd_interpreter_chosen(&worker->interpreter, task);
		break;
	case PSD_WIRE_REPORT: arrived_report(worker, peer, head); break;
	case PSD_WIRE_STEPS: psd_worker_receive_steps(worker, head->part); break;
	case PSD_WIRE_BYE:
		from->bye = psd_wire_decode_payload(PSD_WIRE_BYE, from->small).bye;
		from->has_sent_bye = from->is_done = true;
		worker->are_all_done = true; /* it knows that */
		break;
	case PSD_WIRE_DONE: from->is_done = true; break;
	case PSD_WIRE_FAILED: psd_worker_peer_failed(worker, peer, psd_wire_status(head)); break;
	case PSD_WIRE_ALIVE:
		if (head->part == PSD_WIRE_BUSY)
			worker->liveness.busy_sec = psd_socket_now_sec();
		break;
	case PSD_WIRE_HELLO:
	case PSD_WIRE_CLOCK:
	case PSD_WIRE_TRANSPORT:
	case PSD_WIRE_RATES:
	case PSD_WIRE_INVITATION:
	case PSD_WIRE_KINDS: break;
	}
}

static void left(void *context, unsigned peer)
{
	struct psd_worker *worker = context;

	(void)peer;
	if (worker->gathering.is_sending) { /* in a pause nothing else is sent */
		worker->transfer.has_left = true;
		psd_worker_part_left(worker);
		return;
	}
	if (worker->transfer.is_sending) { /* the collective holds the NIC: nothing else was being sent */
		worker->transfer.is_sending = false;
		worker->transfer.has_left = true;
		psd_worker_advance(worker);
		return;
	}
	assert(worker->n_leaving > 0);
	if (--worker->n_leaving == 0)
		worker->is_over[PSD_RESOURCE_NIC] = true;
}

struct psd_connections_owner psd_worker_owner(struct psd_worker *worker)
{
	return (struct psd_connections_owner){
		.expect = expect, .arrived = arrived, .left = left, .lost = psd_worker_lost, .context = worker};
}
