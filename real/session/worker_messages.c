/* Outgoing messages: tensors of an operation, signals and reports. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "real/net/socket.h"
#include "real/session/worker_parts.h"

enum { HEARTBEATS = 4 }; /* heartbeats within the stall limit */

bool psd_worker_is_near(const struct psd_worker *worker, unsigned peer)
{
	return psd_layout_node(worker->layout, peer) == psd_layout_node(worker->layout, worker->self);
}

uint64_t psd_worker_message_bytes(const struct psd_worker *worker, const struct psd_wire_head *head, unsigned from,
				  unsigned to)
{
	const struct psd_payload payload = psd_worker_carried(worker, (struct psd_task){head->iteration, head->op});

	if (payload.collective->steps)
		return psd_payload_step(&payload, worker->layout, from, head->part).sent.elements * payload.value_bytes;
	return psd_payload_bytes_between(&payload, worker->layout, from, to);
}

bool psd_worker_is_counted(const struct psd_worker *worker, unsigned peer, uint32_t iteration)
{
	const struct psd_iterations measured = psd_worker_measured(worker);

	return iteration >= measured.first && iteration < measured.end && !psd_worker_is_near(worker, peer);
}

void psd_worker_count_sent(struct psd_worker *worker, unsigned peer, const struct psd_wire_head *head)
{
	if (psd_worker_is_counted(worker, peer, head->iteration))
		worker->sent_bytes += psd_worker_message_bytes(worker, head, worker->self, peer);
}

static enum psd_status fail(struct psd_worker *worker, enum psd_status status)
{
	if (!worker->status)
		worker->status = status;
	return status;
}

/* ---- memory of a message, on either side ---- */

unsigned psd_worker_segments(const struct psd_worker *worker, struct psd_task task, unsigned from, unsigned to,
			     struct iovec segments[PSD_SEGMENTS_MAX])
{
	const struct psd_op *op = &worker->program->ops[task.op];
	const struct psd_payload payload = psd_worker_payload(worker, task);

	if (worker->replay) {
		segments[0] = (struct iovec){psd_worker_replayed_bytes(worker, from == worker->self),
					     psd_payload_bytes_between(&payload, worker->layout, from, to)};
		return 1;
	}
	return psd_memory_find(&worker->memory, from == worker->self ? op->source : op->target, op, task.iteration,
			       psd_payload_range(&payload, worker->layout, from, to), from, segments);
}

/* ---- sends ---- */

static bool is_of_chunks(const struct psd_worker *worker, struct psd_task task)
{
	const int item = worker->program->ops[task.op].item;

	return worker->selection.plan && item >= 0 && worker->plan->items[item].method->keeps[PSD_BUFFER_CHOSEN];
}

bool psd_worker_awaits_choice(const struct psd_worker *worker, struct psd_task task)
{
	return is_of_chunks(worker, task) && task.iteration != worker->selection.iteration;
}

struct psd_payload psd_worker_carried(const struct psd_worker *worker, struct psd_task task)
{
	const struct psd_op *op = &worker->program->ops[task.op];
	struct psd_payload payload = op->payload;

	if (is_of_chunks(worker, task))
		payload.elements = worker->selection.now.travelling[op->item];
	if (op->kind == PSD_OP_COLLECTIVE && worker->library_kind && worker->library_kind->is_inside_nodes)
		return psd_worker_between_nodes(worker, payload);
	return payload;
}

struct psd_payload psd_worker_payload(const struct psd_worker *worker, struct psd_task task)
{
	const struct psd_payload payload = psd_worker_carried(worker, task);

	return worker->replay ? psd_payload_scaled(&payload, worker->layout, worker->replay->payload_ratio) : payload;
}

static void start_messages(struct psd_worker *worker, struct psd_task task)
{
	const struct psd_payload payload = psd_worker_payload(worker, task);

	assert(worker->n_leaving == 0);
	for (unsigned step = 1; step < worker->n_hosts; step++) { /* each host begins with another peer */
		const unsigned to = (worker->self + step) % worker->n_hosts;
		const uint64_t bytes = psd_payload_bytes_between(&payload, worker->layout, worker->self, to);
		const struct psd_wire_head head = {
			.kind = PSD_WIRE_DATA, .op = task.op, .iteration = task.iteration, .length_bytes = bytes};
		struct iovec segments[PSD_SEGMENTS_MAX];

		if (bytes == 0)
			continue;
		psd_connections_send(worker->connections, to, &head, segments,
				     psd_worker_segments(worker, task, worker->self, to, segments));
		worker->n_leaving++;
		psd_worker_count_sent(worker, to, &head);
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
	const struct psd_payload payload = psd_worker_carried(worker, task);

	(void)host;
	if (!has_messages(worker, &payload))
		return false;
	start_messages(worker, task);
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
	if (!psd_connections_send_small(worker->connections, peer, head, payload))
		fail(worker, psd_error_set(worker->err, PSD_ENOMEM, PSD_NOWHERE,
					   "out of memory for messages to host %u", peer));
}

/* ---- order of collectives: hosts tell worker 0 that they are ready, and it decides ---- */

void psd_worker_announce(void *context, struct psd_task task)
{
	struct psd_worker *worker = context;
	const struct psd_wire_head head = {.kind = PSD_WIRE_READY, .op = task.op, .iteration = task.iteration};

	worker->peers[worker->self].ops[task.op].next_signal = task.iteration + 1;
	send_small(worker, 0, &head, NULL);
}

void psd_worker_choose(void *context, struct psd_task task)
{
	struct psd_worker *worker = context;
	const struct psd_wire_head head = {.kind = PSD_WIRE_BEGIN, .op = task.op, .iteration = task.iteration};

	for (unsigned w = 1; w < worker->layout->workers; w++)
		if (psd_op_runs_on(&worker->program->ops[task.op], worker->layout, w))
			send_small(worker, w, &head, NULL);
}

/* ---- losses ---- */

/* Workers with different selections would train on garbage. */
static void check_choices(struct psd_worker *worker, size_t row, uint32_t iteration)
{
	for (unsigned w = 1; w < worker->layout->workers; w++)
		if (worker->losses.reports[row + w].digest != worker->losses.reports[row].digest)
			fail(worker, psd_error_set(worker->err, PSD_ERUN, PSD_NOWHERE,
						   "worker %u chose other chunks than worker 0, in iteration %" PRIu32
						   " or before",
						   w, iteration - 1));
}

/* Digest up to the iteration before, since this one's selection may be missing. */
static uint64_t digest_before(const struct psd_worker *worker, uint32_t iteration)
{
	const struct psd_chunk_selection *selection = &worker->selection;

	if (!selection->plan || iteration == 0)
		return 0;
	return selection->iteration == iteration ? selection->digest_before : selection->now.digest;
}

static void compare_parameters(struct psd_worker *worker, size_t row, uint32_t iteration)
{
	for (unsigned w = 0; w < worker->layout->workers; w++)
		worker->losses.parameters[w] = worker->losses.reports[row + w].parameters;
	if (!worker->status)
		fail(worker, psd_worker_compare(worker, worker->losses.parameters, iteration, worker->err));
}

static void tell_progress(struct psd_worker *worker, uint32_t iteration)
{
	const size_t row = (size_t)(iteration % worker->losses.window) * worker->layout->workers;
	struct psd_progress progress = {
		.iteration = iteration,
		.n_iterations = worker->options->n_iterations,
		.elapsed_sec = psd_worker_now(worker),
	};
	const double labels = (double)worker->global_batch * (double)worker->graph->labels; /* 0 in some replays */
	uint64_t correct = 0;

	check_choices(worker, row, iteration);
	compare_parameters(worker, row, iteration);
	for (unsigned w = 0; w < worker->layout->workers; w++) { /* in order of rank, so the sum repeats exactly */
		progress.loss += worker->losses.reports[row + w].loss;
		correct += worker->losses.reports[row + w].correct;
	}
	progress.correct_ratio = labels > 0.0 ? (double)correct / labels : 0.0;
	worker->losses.last = progress.loss;
	psd_worker_follow_loss(worker, iteration, progress.loss);
	psd_worker_report_progress(worker, &progress);
	if (!worker->status)
		fail(worker, psd_worker_check_loss(worker, iteration, progress.loss));
}

void psd_worker_take_report(struct psd_worker *worker, unsigned from, uint32_t iteration,
			    const struct psd_wire_report *report)
{
	const size_t row = iteration % worker->losses.window;

	worker->losses.reports[row * worker->layout->workers + from] = *report;
	if (++worker->losses.n_reports[row] < worker->layout->workers)
		return;
	worker->losses.n_reports[row] = 0;
	worker->losses.n_known++;
	tell_progress(worker, iteration);
}

void psd_worker_report(struct psd_worker *worker, uint32_t iteration, double loss, uint32_t correct)
{
	const struct psd_wire_head head = {
		.kind = PSD_WIRE_REPORT, .iteration = iteration, .length_bytes = PSD_WIRE_REPORT_BYTES};
	const struct psd_wire_report report = {loss, correct, digest_before(worker, iteration),
					       psd_worker_digest(worker, iteration)};
	uint8_t payload[PSD_WIRE_REPORT_BYTES];

	worker->losses.n_own = iteration + 1;
	if (worker->self == 0) {
		psd_worker_take_report(worker, 0, iteration, &report);
		return;
	}
	psd_wire_encode_payload(PSD_WIRE_REPORT, &report, payload);
	send_small(worker, 0, &head, payload);
}

static void send_small_to_all(struct psd_worker *worker, const struct psd_wire_head *head, const uint8_t *payload)
{
	for (unsigned p = 0; p < worker->n_hosts; p++)
		if (p != worker->self)
			send_small(worker, p, head, payload);
}

void psd_worker_send_steps(struct psd_worker *worker, uint32_t window_number, uint32_t steps)
{
	const struct psd_wire_head head = {.kind = PSD_WIRE_STEPS, .iteration = window_number, .part = steps};

	send_small_to_all(worker, &head, NULL);
}

void psd_worker_send_heartbeat(struct psd_worker *worker, bool is_computing, bool is_busy)
{
	const struct psd_wire_head head = {
		.kind = PSD_WIRE_ALIVE,
		.part = is_busy	       ? PSD_WIRE_BUSY
			: is_computing ? PSD_WIRE_COMPUTING
				       : 0,
	};
	const double sec = psd_socket_now_sec();

	if (sec - worker->liveness.alive_sec < worker->options->stall_sec / HEARTBEATS)
		return;
	worker->liveness.alive_sec = sec;
	send_small_to_all(worker, &head, NULL);
}

void psd_worker_send_failure(struct psd_worker *worker, enum psd_status status, const struct psd_error *err)
{
	const struct psd_wire_head head = {
		.kind = PSD_WIRE_FAILED, .part = (uint32_t)status, .length_bytes = PSD_WIRE_FAILED_BYTES};
	struct psd_wire_failed failed = {.host = worker->self, .n_hosts = worker->n_hosts};
	uint8_t payload[PSD_WIRE_FAILED_BYTES];
	char name[PSD_MESH_NAME_MAX];
	struct psd_error line, ignored;
	enum psd_status flushed;

	psd_mesh_name(worker->layout, worker->options->hosts, worker->self, name);
	psd_error_set(&line, status, PSD_NOWHERE, "%s%s%s", worker->is_blamed ? "" : name,
		      worker->is_blamed ? "" : ": ", err->text);
	snprintf(failed.words, sizeof(failed.words), "%.*s", PSD_WIRE_WORDS_MAX - 1, line.text);
	psd_wire_encode_payload(PSD_WIRE_FAILED, &failed, payload);
	send_small_to_all(worker, &head, payload);
	flushed = psd_connections_flush(worker->connections, &ignored);
	(void)flushed; /* bytes that are not sent at once no longer matter */
}

void psd_worker_send_done(struct psd_worker *worker)
{
	const struct psd_wire_head head = {.kind = PSD_WIRE_DONE};

	send_small_to_all(worker, &head, NULL);
}

void psd_worker_send_bye(struct psd_worker *worker, const struct psd_wire_bye *bye)
{
	const struct psd_wire_head head = {.kind = PSD_WIRE_BYE, .length_bytes = PSD_WIRE_BYE_BYTES};
	uint8_t payload[PSD_WIRE_BYE_BYTES];

	psd_wire_encode_payload(PSD_WIRE_BYE, bye, payload);
	send_small_to_all(worker, &head, payload);
}
