/* Whom a worker waits for, in words: when a peer goes, and when nothing moves. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "real/session/worker_parts.h"

/* The first message of the current iteration that a peer owes, as an operation; n_ops when it owes none. */
static uint32_t find_owed(const struct psd_worker *worker, unsigned peer)
{
	const uint32_t iteration = psd_interpreter_iteration(&worker->interpreter, 0);

	for (uint32_t i = 0; i < worker->program->n_ops; i++) {
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
		snprintf(text, room, "'%s %.60s'", op->payload.pattern->name, worker->graph->layers[op->layer].name);
}

static void describe_self(const struct psd_worker *worker, char *text, size_t room)
{
	const bool is_worker = psd_layout_is_worker(worker->layout, worker->self);

	snprintf(text, room, "%s %u", is_worker ? "worker" : "server",
		 is_worker ? worker->self : worker->self - worker->layout->workers);
}

enum psd_status psd_worker_lost(void *context, unsigned peer, int error_number, struct psd_error *err)
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

/* Who owes the earliest operation: others' may wait for it, as a pull does for everybody's push. n_hosts: nobody. */
static unsigned find_debtor(const struct psd_worker *worker)
{
	uint32_t earliest = UINT32_MAX;
	unsigned debtor = worker->n_hosts;

	for (unsigned p = 0; p < worker->n_hosts; p++) {
		const uint32_t owed =
			p != worker->self && !worker->peers[p].has_said_bye ? find_owed(worker, p) : UINT32_MAX;

		if (owed >= earliest || owed == worker->program->n_ops)
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
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "%s made no progress for %g s in iteration %" PRIu32,
				     self, worker->options->stall_sec,
				     psd_interpreter_iteration(&worker->interpreter, 0));
	describe_owed(worker, find_owed(worker, peer), owed, sizeof(owed));
	return psd_error_set(err, PSD_ERUN, PSD_NOWHERE,
			     "nothing has moved for %g s in iteration %" PRIu32 ": %s waits for the %s of %s",
			     worker->options->stall_sec, psd_interpreter_iteration(&worker->interpreter, 0), self, owed,
			     psd_mesh_name(worker->layout, worker->options->hosts, peer, name));
}
