/* Sums that a library outside carries out in place of the steps of a transfer: which library, its opening over the
 * mesh, and a sum as a job of a lane of its own. */
#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

#include "real/net/frame.h"
#include "real/session/worker_parts.h"

static const struct psd_library_kind *find(const struct psd_pattern *pattern, const struct psd_device_kind *device)
{
	const struct psd_library_kind *const kinds[] = {&psd_library_mpi, device->library};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (kinds[i] && !strcmp(kinds[i]->name, pattern->name))
			return kinds[i];
	return NULL;
}

enum psd_status psd_worker_check_library(const struct psd_system *system, unsigned workers,
					 const struct psd_device_kind *device, struct psd_error *err)
{
	const struct psd_pattern *pattern =
		system->sync >= PSD_SYNC_LIBRARY ? psd_libraries[system->sync - PSD_SYNC_LIBRARY] : NULL;
	const struct psd_library_kind *kind = pattern && device ? find(pattern, device) : NULL;
	struct psd_error reason;

	if (!pattern || workers == 1)
		return PSD_OK;
	if (!device)
		return psd_error_set(
			err, PSD_EINVAL, system->at,
			"'sync' of system '%s' is '%s', which a replay has none of: must be this program's "
			"own, such as '%s'",
			system->name, pattern->name, pattern->assumed);
	if (!kind)
		return psd_error_set(err, PSD_EINVAL, system->at,
				     "'sync' of system '%s' is '%s', which sums in no memory of device '%s': needs "
				     "'device: cuda' in 'train'",
				     system->name, pattern->name, device->name);
	return kind->check(workers, &reason)
		       ? psd_error_set(err, PSD_EINVAL, system->at, "'sync' of system '%s' is '%s', which %s",
				       system->name, pattern->name, reason.text)
		       : PSD_OK;
}

/* ---- opening ---- */

static enum psd_status exchange_invitation(const struct psd_worker *worker, const struct psd_mesh_options *mesh,
					   const int fds[], double until_sec, uint8_t invitation[PSD_WIRE_SMALL_BYTES],
					   struct psd_error *err)
{
	char name[PSD_MESH_NAME_MAX];
	enum psd_status status;

	if (worker->self > 0)
		return psd_frame_read(psd_mesh_name(worker->layout, mesh->hosts, 0, name), fds[0], PSD_WIRE_INVITATION,
				      invitation, until_sec, err);
	status = worker->library_kind->invite(invitation, err);
	for (unsigned h = 1; h < worker->n_hosts && !status; h++)
		status = psd_frame_send(psd_mesh_name(worker->layout, mesh->hosts, h, name), fds[h * mesh->n_lines],
					PSD_WIRE_INVITATION, invitation, PSD_LIBRARY_INVITATION_BYTES, err);
	return status;
}

struct opening {
	struct psd_job job; /* the first: what the lane's second stage sees */
	struct psd_library_options options;
};

static void open_job(void *context)
{
	struct opening *opening = context;
	struct psd_worker *worker = opening->job.worker;

	opening->job.status = worker->library_kind->open(&worker->library, &opening->options, &opening->job.err);
}

/* In the thread that will sum. */
static enum psd_status open_lane(struct psd_worker *worker, const uint8_t *invitation, struct psd_error *err)
{
	struct psd_jobs *jobs = &worker->jobs[PSD_RESOURCE_NIC];
	struct opening opening = {.job = {.worker = worker},
				  .options = {.rank = worker->self,
					      .n_ranks = worker->n_hosts,
					      .invitation = invitation,
					      .device = worker->device}};
	const enum psd_status status = psd_lane_open(
		&jobs->lane, worker->wake_fd, worker->library_kind->is_on_device ? psd_worker_finish_job : NULL, err);

	jobs->has_lane = !status;
	if (status)
		return status;
	psd_lane_run(&jobs->lane, open_job, &opening);
	if (opening.job.status)
		*err = opening.job.err;
	return opening.job.status;
}

enum psd_status psd_worker_open_library(struct psd_worker *worker, const struct psd_mesh_options *mesh, const int fds[],
					double until_sec, struct psd_error *err)
{
	const struct psd_pattern *pattern = worker->plan->n_items ? worker->plan->items[0].method->pattern : NULL;
	uint8_t invitation[PSD_WIRE_SMALL_BYTES];
	enum psd_status status;

	if (!pattern || !pattern->assumed || worker->n_hosts == 1)
		return PSD_OK;
	status = psd_worker_check_library(worker->plan->system, worker->n_hosts, worker->replay ? NULL : worker->kind,
					  err);
	if (status)
		return status;
	worker->library_kind = find(pattern, worker->kind);
	if (!worker->library_kind->invite)
		return open_lane(worker, NULL, err);
	status = exchange_invitation(worker, mesh, fds, until_sec, invitation, err);
	return status ? status : open_lane(worker, invitation, err);
}

/* ---- sums ---- */

/* What the steps that stand for the library's own would send and bring. */
static void count_bytes(struct psd_worker *worker, struct psd_task task)
{
	const struct psd_payload *payload = &worker->program->ops[task.op].payload;

	for (unsigned p = 0; p < worker->n_hosts; p++) {
		if (p == worker->self || !psd_worker_is_counted(worker, p, task.iteration))
			continue;
		worker->sent_bytes += psd_payload_bytes_between(payload, worker->layout, worker->self, p);
		worker->received_bytes += psd_payload_bytes_between(payload, worker->layout, p, worker->self);
	}
}

void psd_worker_start_sum(struct psd_worker *worker, struct psd_task task)
{
	count_bytes(worker, task);
	psd_worker_work(worker, worker->self, PSD_RESOURCE_NIC, task, 0.0);
}

static bool moves_on(struct psd_worker *worker, enum psd_sum_state from, enum psd_sum_state to)
{
	return atomic_compare_exchange_strong(&worker->sum_state, &from, to);
}

/* Where the session was closed meanwhile this thread has nothing left to return to. */
static enum psd_status call_sum(struct psd_worker *worker, const struct iovec pieces[], unsigned n_pieces,
				struct psd_error *err)
{
	enum psd_status status;

	if (!moves_on(worker, PSD_SUM_NONE, PSD_SUM_UNDER_WAY))
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "the session is closed");
	status = worker->library_kind->sum(worker->library, pieces, n_pieces, worker->memory.staging, err);
	while (!moves_on(worker, PSD_SUM_UNDER_WAY, PSD_SUM_NONE))
		(void)pause();
	return status;
}

enum psd_status psd_worker_sum(struct psd_worker *worker, struct psd_task task, struct psd_error *err)
{
	const struct psd_op *op = &worker->program->ops[task.op];
	const struct psd_memory *memory = worker->library_kind->is_on_device ? worker->on_device : &worker->memory;
	struct iovec pieces[PSD_PIECES_MAX];
	const unsigned n_pieces = psd_memory_find(memory, op->target, op, task.iteration,
						  (struct psd_range){0, op->payload.elements}, worker->self, pieces);

	return call_sum(worker, pieces, n_pieces, err);
}

/* ---- its end ---- */

bool psd_worker_is_held(struct psd_worker *worker)
{
	const struct psd_jobs *jobs = &worker->jobs[PSD_RESOURCE_NIC];

	if (!worker->library || !psd_lane_is_busy(&jobs->lane))
		return false;
	if (worker->library_kind->abort) {
		worker->library_kind->abort(worker->library);
		return false;
	}
	while (!moves_on(worker, PSD_SUM_NONE, PSD_SUM_LEFT))
		if (moves_on(worker, PSD_SUM_UNDER_WAY, PSD_SUM_LEFT))
			return true;
	return false;
}

void psd_worker_close_library(struct psd_worker *worker, bool is_orderly)
{
	if (worker->library)
		worker->library_kind->close(worker->library, is_orderly);
}
