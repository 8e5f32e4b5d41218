/* Collectives executed by an external library in place of psd's own transfers: its choice, its opening over the mesh,
 * and sums as jobs of a lane.
 *
 * A library inside nodes has two jobs on a node's leader. The first sums the node's gradients and copies the sum to the
 * host; then the leaders execute a ring; the second job copies its result to the device and broadcasts it in the node.
 * Other workers do both in one job, which waits on the device in between. */
#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

#include "real/net/frame.h"
#include "real/session/worker_parts.h"

static const struct psd_library_kind *find(const struct psd_collective *collective,
					   const struct psd_device_kind *device)
{
	if (!strcmp(psd_library_mpi.name, collective->name))
		return &psd_library_mpi;
	for (size_t i = 0; device->libraries && device->libraries[i]; i++)
		if (!strcmp(device->libraries[i]->name, collective->name))
			return device->libraries[i];
	return NULL;
}

/* The system's library; NULL: psd's own algorithms. */
static const struct psd_collective *library_of(const struct psd_system *system)
{
	return system->sync >= PSD_SYNC_LIBRARY ? psd_libraries[system->sync - PSD_SYNC_LIBRARY] : NULL;
}

static enum psd_status refuse(const struct psd_system *system, const char *why, struct psd_error *err)
{
	return psd_error_set(err, PSD_EINVAL, system->at,
			     "'sync' of system '%s' is '%s'%s: must be an all-reduce of psd, such as '%s'",
			     system->name, library_of(system)->name, why, library_of(system)->assumed);
}

enum psd_status psd_worker_check_library(const struct psd_system *system, unsigned workers,
					 const struct psd_device_kind *device, struct psd_error *err)
{
	const struct psd_collective *collective = library_of(system);
	const struct psd_library_kind *kind = collective && device ? find(collective, device) : NULL;
	struct psd_error reason;

	if (!collective || workers == 1)
		return PSD_OK;
	if (!device)
		return refuse(system, ", a library that a replay cannot call", err);
	if (!kind)
		return psd_error_set(err, PSD_EINVAL, system->at,
				     "'sync' of system '%s' is '%s', which cannot sum in memory of device '%s': needs "
				     "'device: cuda' in 'train'",
				     system->name, collective->name, device->name);
	return kind->check(workers, &reason)
		       ? psd_error_set(err, PSD_EINVAL, system->at, "'sync' of system '%s' is '%s', which %s",
				       system->name, collective->name, reason.text)
		       : PSD_OK;
}

enum psd_status psd_worker_check_secret(const struct psd_system *system, unsigned n_nodes,
					const struct psd_device_kind *device, struct psd_error *err)
{
	const struct psd_library_kind *kind = library_of(system) ? find(library_of(system), device) : NULL;

	return !kind || kind->is_inside_nodes || n_nodes == 1
		       ? PSD_OK
		       : refuse(system, ", whose connections '--secret' does not encrypt", err);
}

enum psd_status psd_worker_check_restarts(const struct psd_system *system, const struct psd_device_kind *device,
					  struct psd_error *err)
{
	const struct psd_library_kind *kind = library_of(system) ? find(library_of(system), device) : NULL;

	return !kind || kind->abort ? PSD_OK : refuse(system, ", which cannot be interrupted for '--restarts'", err);
}

/* ---- opening ---- */

/* The hosts that are its ranks, in order. */
static struct psd_group ranks_of(const struct psd_worker *worker)
{
	const unsigned node = psd_layout_node(worker->layout, worker->self);

	if (!worker->library_kind->is_inside_nodes)
		return (struct psd_group){0, 1, worker->n_hosts};
	return (struct psd_group){node * worker->layout->workers_per_node, 1,
				  psd_layout_workers_on(worker->layout, node)};
}

static enum psd_status exchange_invitation(const struct psd_worker *worker, const struct psd_mesh_options *mesh,
					   const int fds[], double until_sec, union psd_wire_payload *invitation,
					   struct psd_error *err)
{
	const struct psd_group ranks = ranks_of(worker);
	char name[PSD_MESH_NAME_MAX];
	enum psd_status status;

	if (worker->self != ranks.first)
		return psd_frame_read(psd_mesh_name(worker->layout, mesh->hosts, ranks.first, name),
				      fds[ranks.first * mesh->n_connections], mesh->secret, PSD_WIRE_INVITATION,
				      invitation, until_sec, err);
	status = worker->library_kind->invite(invitation->raw, err);
	for (unsigned h = ranks.first + 1; h < ranks.first + ranks.n && !status; h++)
		status = psd_frame_send(psd_mesh_name(worker->layout, mesh->hosts, h, name),
					fds[h * mesh->n_connections], mesh->secret, PSD_WIRE_INVITATION, invitation,
					err);
	return status;
}

struct opening {
	struct psd_job job; /* first, for the lane's second stage */
	struct psd_library_options options;
};

static void open_job(void *context)
{
	struct opening *opening = context;
	struct psd_worker *worker = opening->job.worker;

	opening->job.status = worker->library_kind->open(&worker->library, &opening->options, &opening->job.err);
}

/* Runs in the thread that will sum. */
static enum psd_status open_lane(struct psd_worker *worker, const uint8_t *invitation, struct psd_error *err)
{
	struct psd_jobs *jobs = &worker->jobs[PSD_RESOURCE_NIC];
	const struct psd_group ranks = ranks_of(worker);
	struct opening opening = {.job = {.worker = worker},
				  .options = {.rank = psd_group_rank(ranks, worker->self),
					      .n_ranks = ranks.n,
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
	const struct psd_collective *collective =
		worker->plan->n_items ? worker->plan->items[0].method->collective : NULL;
	union psd_wire_payload invitation;
	enum psd_status status;

	if (!collective || !collective->assumed || worker->n_hosts == 1)
		return PSD_OK;
	status = psd_worker_check_library(worker->plan->system, worker->n_hosts,
					  worker->options->replay ? NULL : worker->kind, err);
	if (status)
		return status;
	worker->library_kind = find(collective, worker->kind);
	if (!worker->library_kind->invite)
		return open_lane(worker, NULL, err);
	status = exchange_invitation(worker, mesh, fds, until_sec, &invitation, err);
	return status ? status : open_lane(worker, invitation.raw, err);
}

/* ---- sums ---- */

/* Counts the bytes that psd's own algorithm would move. */
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

/* Traffic between nodes is counted as it happens if the library works inside them. */
void psd_worker_start_sum(struct psd_worker *worker, struct psd_task task)
{
	if (!worker->library_kind->is_inside_nodes)
		count_bytes(worker, task);
	psd_worker_work(worker, worker->self, PSD_RESOURCE_NIC, task, 0.0);
}

static bool goes_between_nodes(const struct psd_worker *worker)
{
	return worker->library && worker->library_kind->is_inside_nodes && worker->layout->nodes > 1;
}

static bool is_first_of_node(const struct psd_worker *worker)
{
	return worker->self % worker->layout->workers_per_node == 0;
}

struct psd_payload psd_worker_between_nodes(const struct psd_worker *worker, struct psd_payload payload)
{
	payload.collective = &psd_ring;
	payload.group = (struct psd_group){0, worker->layout->workers_per_node, worker->layout->nodes};
	return payload;
}

void psd_worker_summed(struct psd_worker *worker, struct psd_task task)
{
	const bool has_transfer = goes_between_nodes(worker) && is_first_of_node(worker) && !worker->brings_back;

	worker->brings_back = false;
	if (has_transfer)
		psd_worker_begin_transfer(worker, task);
	else
		psd_interpreter_collective_finished(&worker->interpreter, task);
}

void psd_worker_transfer_is_over(struct psd_worker *worker, struct psd_task task)
{
	worker->brings_back = goes_between_nodes(worker);
	if (worker->brings_back)
		psd_worker_work(worker, worker->self, PSD_RESOURCE_NIC, task, 0.0);
	else
		psd_interpreter_collective_finished(&worker->interpreter, task);
}

static bool moves_on(struct psd_worker *worker, enum psd_sum_state from, enum psd_sum_state to)
{
	return atomic_compare_exchange_strong(&worker->sum_state, &from, to);
}

/* Segments of the summed values in that memory. */
static unsigned find_pieces(const struct psd_worker *worker, const struct psd_memory *memory, struct psd_task task,
			    struct iovec segments[PSD_SEGMENTS_MAX])
{
	const struct psd_op *op = &worker->program->ops[task.op];

	return psd_memory_find(memory, op->target, op, task.iteration, (struct psd_range){0, op->payload.elements},
			       worker->self, segments);
}

/* Never returns if the session was closed meanwhile: the caller's memory is gone. */
static enum psd_status call(struct psd_worker *worker, struct psd_task task, bool is_spread, struct psd_error *err)
{
	const struct psd_library_kind *kind = worker->library_kind;
	struct iovec segments[PSD_SEGMENTS_MAX];
	const unsigned n_segments =
		find_pieces(worker, kind->is_on_device ? worker->on_device : &worker->memory, task, segments);
	enum psd_status status;

	if (!moves_on(worker, PSD_SUM_NONE, PSD_SUM_UNDER_WAY))
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "the session is closed");
	status = is_spread ? kind->spread(worker->library, segments, n_segments, err)
			   : kind->sum(worker->library, segments, n_segments, worker->memory.staging, err);
	while (!moves_on(worker, PSD_SUM_UNDER_WAY, PSD_SUM_NONE))
		(void)pause();
	return status;
}

/* Copies between device and host, ordered after the library's work. */
static enum psd_status copy(struct psd_worker *worker, struct psd_task task, bool is_out, struct psd_error *err)
{
	struct iovec here[PSD_SEGMENTS_MAX], there[PSD_SEGMENTS_MAX];
	const unsigned n_segments = find_pieces(worker, &worker->memory, task, here);
	enum psd_status status = PSD_OK;

	(void)find_pieces(worker, worker->on_device, task, there);
	for (unsigned p = 0; p < n_segments && !status; p++) {
		const struct iovec *from = is_out ? &there[p] : &here[p], *to = is_out ? &here[p] : &there[p];

		status = worker->kind->copy(worker->device, PSD_STREAM_SUMS, to->iov_base, from->iov_base,
					    from->iov_len, err);
	}
	return status;
}

enum psd_status psd_worker_sum(struct psd_worker *worker, struct psd_task task, struct psd_error *err)
{
	const enum psd_status status =
		worker->brings_back ? copy(worker, task, false, err) : call(worker, task, false, err);

	if (status || !goes_between_nodes(worker))
		return status;
	if (is_first_of_node(worker) && !worker->brings_back)
		return copy(worker, task, true, err);
	return call(worker, task, true, err);
}

/* ---- end ---- */

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
