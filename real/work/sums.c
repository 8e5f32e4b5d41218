#define _GNU_SOURCE
#include "real/work/sums.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "real/net/frame.h"

/* State of a library's all-reduce. Its thread and the event loop's thread both change it. */
enum state {
	IDLE,
	UNDER_WAY, /* the library is executing an all-reduce */
	LEFT,	   /* the session was closed: no all-reduce begins any more, and one that is executing never returns */
};

struct sums {
	const struct psd_library_kind *kind;
	struct psd_library *library;
	_Atomic(enum state) state;
	/* The library sums only inside nodes, and must send the sum over all nodes to the other workers of the node. */
	bool brings_back;
};

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
	if (system->budget_bps > 0.0)
		return refuse(system, ", a library that keeps to no 'budget'", err);
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
static struct psd_group ranks_of(const struct psd_host *host, const struct sums *sums)
{
	const unsigned node = psd_layout_node(host->layout, host->self);

	if (!sums->kind->is_inside_nodes)
		return (struct psd_group){0, 1, host->n_hosts};
	return (struct psd_group){psd_layout_first(host->layout, node), 1, psd_layout_workers_on(host->layout, node)};
}

static enum psd_status exchange_invitation(const struct psd_work *work, const struct psd_mesh_options *mesh,
					   const int fds[], double until_sec, union psd_wire_payload *invitation,
					   struct psd_error *err)
{
	const struct sums *sums = work->states.sums;
	const struct psd_group ranks = ranks_of(work->host, sums);
	char name[PSD_MESH_NAME_MAX];

	if (work->host->self != ranks.first)
		return psd_frame_read(psd_mesh_name(work->host->layout, mesh->hosts, ranks.first, name),
				      fds[ranks.first * mesh->n_connections], mesh->secret, PSD_WIRE_INVITATION,
				      invitation, until_sec, err);
	PSD_TRY(sums->kind->invite(invitation->raw, err));
	for (unsigned h = ranks.first + 1; h < ranks.first + ranks.n; h++)
		PSD_TRY(psd_frame_send(psd_mesh_name(work->host->layout, mesh->hosts, h, name),
				       fds[h * mesh->n_connections], mesh->secret, PSD_WIRE_INVITATION, invitation,
				       err));
	return PSD_OK;
}

enum psd_status psd_sums_choose(struct psd_work *work, const struct psd_mesh_options *mesh, const int fds[],
				double until_sec, union psd_wire_payload *invitation, struct psd_error *err)
{
	struct psd_host *host = work->host;
	const struct psd_collective *collective = host->plan->n_items ? host->plan->items[0].method->collective : NULL;
	struct sums *sums;

	if (!collective || !collective->assumed || host->n_hosts == 1)
		return PSD_OK;
	PSD_TRY(psd_worker_check_library(host->plan->system, host->n_hosts, host->options->replay ? NULL : host->kind,
					 err));
	sums = work->states.sums = psd_host_take(host, 1, sizeof(*sums), err);
	if (!sums)
		return PSD_ENOMEM;
	sums->kind = find(collective, host->kind);
	return sums->kind->invite ? exchange_invitation(work, mesh, fds, until_sec, invitation, err) : PSD_OK;
}

const struct psd_library_kind *psd_sums_kind(const struct psd_work *work)
{
	const struct sums *sums = work->states.sums;

	return sums ? sums->kind : NULL;
}

enum psd_status psd_sums_open(struct psd_work *work, const union psd_wire_payload *invitation, struct psd_error *err)
{
	const struct psd_host *host = work->host;
	struct sums *sums = work->states.sums;
	const struct psd_group ranks = ranks_of(host, sums);
	const struct psd_library_options options = {.rank = psd_group_rank(ranks, host->self),
						    .n_ranks = ranks.n,
						    .invitation = sums->kind->invite ? invitation->raw : NULL,
						    .device = host->device};

	return sums->kind->open(&sums->library, &options, err);
}

bool psd_sums_are_open(const struct psd_work *work)
{
	const struct sums *sums = work->states.sums;

	return sums && sums->library;
}

/* ---- sums ---- */

static bool goes_between_nodes(const struct psd_work *work)
{
	return psd_sums_are_open(work) && psd_sums_kind(work)->is_inside_nodes && work->host->layout->nodes > 1;
}

static bool is_first_of_node(const struct psd_work *work)
{
	return psd_layout_is_leader(work->host->layout, work->host->self);
}

struct psd_payload psd_sums_carried(const struct psd_work *work, struct psd_payload payload)
{
	const struct psd_layout *layout = work->host->layout;

	if (!psd_sums_kind(work) || !psd_sums_kind(work)->is_inside_nodes)
		return payload;
	payload.collective = &psd_ring;
	payload.group = (struct psd_group){0, layout->workers_per_node, layout->nodes};
	return payload;
}

bool psd_sums_need_transfer(const struct psd_work *work)
{
	struct sums *sums = work->states.sums;
	const bool has_transfer = goes_between_nodes(work) && is_first_of_node(work) && !sums->brings_back;

	sums->brings_back = false;
	return has_transfer;
}

bool psd_sums_need_return(const struct psd_work *work)
{
	struct sums *sums = work->states.sums;

	if (sums)
		sums->brings_back = goes_between_nodes(work);
	return sums && sums->brings_back;
}

static bool moves_on(struct sums *sums, enum state from, enum state to)
{
	return atomic_compare_exchange_strong(&sums->state, &from, to);
}

/* Segments of the summed values in that memory. */
static unsigned find_pieces(const struct psd_work *work, const struct psd_memory *memory, struct psd_task task,
			    struct iovec segments[PSD_SEGMENTS_MAX])
{
	const struct psd_op *op = &work->host->program->ops[task.op];

	return psd_memory_find(memory, op->target.buffer, op, task.iteration,
			       (struct psd_range){0, op->payload.elements}, work->host->self, segments);
}

/* Never returns if the session was closed meanwhile: the caller's memory is gone. */
static enum psd_status call(const struct psd_work *work, struct psd_task task, bool is_spread, struct psd_error *err)
{
	const struct psd_host *host = work->host;
	struct sums *sums = work->states.sums;
	struct iovec segments[PSD_SEGMENTS_MAX];
	const unsigned n_segments =
		find_pieces(work, sums->kind->is_on_device ? host->on_device : &host->memory, task, segments);

	if (!moves_on(sums, IDLE, UNDER_WAY))
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "the session is closed");
	const enum psd_status status =
		is_spread ? sums->kind->spread(sums->library, segments, n_segments, err)
			  : sums->kind->sum(sums->library, segments, n_segments, host->memory.staging, err);
	while (!moves_on(sums, UNDER_WAY, IDLE))
		(void)pause();
	return status;
}

/* Copies between device and host, ordered after the library's work. */
static enum psd_status copy(const struct psd_work *work, struct psd_task task, bool is_out, struct psd_error *err)
{
	const struct psd_host *host = work->host;
	struct iovec here[PSD_SEGMENTS_MAX], there[PSD_SEGMENTS_MAX];
	const unsigned n_segments = find_pieces(work, &host->memory, task, here);

	(void)find_pieces(work, host->on_device, task, there);
	for (unsigned p = 0; p < n_segments; p++) {
		const struct iovec *from = is_out ? &there[p] : &here[p], *to = is_out ? &here[p] : &there[p];

		PSD_TRY(host->kind->copy(host->device, PSD_STREAM_SUMS, to->iov_base, from->iov_base, from->iov_len,
					 err));
	}
	return PSD_OK;
}

/* If the library sums inside nodes, executes only the part before psd's transfer between nodes, or the part after
 * it. */
static enum psd_status sum(struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	const struct sums *sums = work->states.sums;

	PSD_TRY(sums->brings_back ? copy(work, task, false, err) : call(work, task, false, err));
	if (!goes_between_nodes(work))
		return PSD_OK;
	if (is_first_of_node(work) && !sums->brings_back)
		return copy(work, task, true, err);
	return call(work, task, true, err);
}

/* ---- end ---- */

bool psd_sums_are_held(const struct psd_work *work)
{
	struct sums *sums = work->states.sums;

	if (sums->kind->abort) {
		sums->kind->abort(sums->library);
		return false;
	}
	while (!moves_on(sums, IDLE, LEFT))
		if (moves_on(sums, UNDER_WAY, LEFT))
			return true;
	return false;
}

void psd_sums_close(const struct psd_work *work, bool is_orderly)
{
	const struct sums *sums = work->states.sums;

	if (psd_sums_are_open(work))
		sums->kind->close(sums->library, is_orderly);
}

const struct psd_family psd_family_sums = {.rows = {{PSD_RUNS(COLLECTIVE, sum)}}};
