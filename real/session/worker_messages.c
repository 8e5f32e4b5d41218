/* Outgoing messages: tensors of an operation, signals and reports. */
#include <assert.h>
#include <stdio.h>

#include "real/net/socket.h"
#include "real/session/worker_parts.h"

enum { HEARTBEATS = 4 }; /* heartbeats within the stall limit */

/* ---- sends ---- */

static void start_messages(struct psd_worker *worker, struct psd_task task)
{
	const struct psd_payload payload = psd_worker_payload(worker, task);

	assert(worker->n_leaving == 0);
	for (unsigned step = 1; step < worker->host.n_hosts; step++) { /* each host begins with another peer */
		const unsigned to = (worker->host.self + step) % worker->host.n_hosts;
		const uint64_t bytes = psd_payload_bytes_between(&payload, worker->host.layout, worker->host.self, to);
		const struct psd_wire_head head = {
			.kind = PSD_WIRE_DATA, .op = task.op, .iteration = task.iteration, .length_bytes = bytes};
		struct iovec segments[PSD_SEGMENTS_MAX];

		if (bytes == 0)
			continue;
		psd_connections_send(worker->connections, to, &head, segments,
				     psd_worker_segments(worker, task, worker->host.self, to, segments));
		worker->n_leaving++;
		psd_worker_count_sent(worker, to, &head);
	}
}

static bool has_messages(const struct psd_worker *worker, const struct psd_payload *payload)
{
	for (unsigned to = 0; to < worker->host.n_hosts; to++)
		if (to != worker->host.self &&
		    psd_payload_bytes_between(payload, worker->host.layout, worker->host.self, to) > 0)
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

/* payload: struct of the head's kind; NULL: it has none. */
static void send_small(struct psd_worker *worker, unsigned peer, struct psd_wire_head head, const void *payload)
{
	uint8_t bytes[PSD_WIRE_SMALL_BYTES];

	head.length_bytes = psd_wire_payload_bytes(head.kind);
	psd_wire_encode_payload(head.kind, payload, bytes);
	if (!psd_connections_send_small(worker->connections, peer, &head, bytes) && !worker->status)
		worker->status = psd_error_set(worker->err, PSD_ENOMEM, PSD_NOWHERE,
					       "out of memory for messages to host %u", peer);
}

/* ---- order of collectives: hosts tell worker 0 that they are ready, and it decides ---- */

void psd_worker_announce(void *context, struct psd_task task)
{
	struct psd_worker *worker = context;
	const struct psd_wire_head head = {.kind = PSD_WIRE_READY, .op = task.op, .iteration = task.iteration};

	worker->peers[worker->host.self].ops[task.op].next_signal = task.iteration + 1;
	send_small(worker, 0, head, NULL);
}

void psd_worker_choose(void *context, struct psd_task task)
{
	struct psd_worker *worker = context;
	const struct psd_wire_head head = {.kind = PSD_WIRE_BEGIN, .op = task.op, .iteration = task.iteration};

	for (unsigned w = 1; w < worker->host.layout->workers; w++)
		if (psd_op_runs_on(&worker->host.program->ops[task.op], worker->host.layout, w))
			send_small(worker, w, head, NULL);
}

void psd_worker_send_report(struct psd_worker *worker, uint32_t iteration, const struct psd_wire_report *report)
{
	send_small(worker, 0, (struct psd_wire_head){.kind = PSD_WIRE_REPORT, .iteration = iteration}, report);
}

static void send_small_to_all(struct psd_worker *worker, struct psd_wire_head head, const void *payload)
{
	for (unsigned p = 0; p < worker->host.n_hosts; p++)
		if (p != worker->host.self)
			send_small(worker, p, head, payload);
}

void psd_worker_send_steps(struct psd_worker *worker, uint32_t window_number, uint32_t steps)
{
	const struct psd_wire_head head = {.kind = PSD_WIRE_STEPS, .iteration = window_number, .part = steps};

	send_small_to_all(worker, head, NULL);
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

	if (sec - worker->liveness.alive_sec < worker->host.options->stall_sec / HEARTBEATS)
		return;
	worker->liveness.alive_sec = sec;
	send_small_to_all(worker, head, NULL);
}

void psd_worker_send_failure(struct psd_worker *worker, enum psd_status status, const struct psd_error *err)
{
	const struct psd_wire_head head = {.kind = PSD_WIRE_FAILED, .part = (uint32_t)status};
	struct psd_wire_failed failed = {.host = worker->host.self, .n_hosts = worker->host.n_hosts};
	char name[PSD_MESH_NAME_MAX];
	struct psd_error line, ignored;

	psd_mesh_name(worker->host.layout, worker->host.options->hosts, worker->host.self, name);
	psd_error_set(&line, status, PSD_NOWHERE, "%s%s%s", worker->is_blamed ? "" : name,
		      worker->is_blamed ? "" : ": ", err->text);
	snprintf(failed.words, sizeof(failed.words), "%.*s", PSD_WIRE_WORDS_MAX - 1, line.text);
	send_small_to_all(worker, head, &failed);
	const enum psd_status flushed = psd_connections_flush(worker->connections, &ignored);
	(void)flushed; /* bytes that are not sent at once no longer matter */
}

void psd_worker_send_done(struct psd_worker *worker)
{
	send_small_to_all(worker, (struct psd_wire_head){.kind = PSD_WIRE_DONE}, NULL);
}

void psd_worker_send_bye(struct psd_worker *worker, const struct psd_wire_bye *bye)
{
	send_small_to_all(worker, (struct psd_wire_head){.kind = PSD_WIRE_BYE}, bye);
}
