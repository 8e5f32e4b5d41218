/* NCCL's ncclAllReduce between GPUs, in their memory, on the device's stream for sums: over all workers, or over those
 * of a node, where ncclBroadcast distributes the sums between nodes. NCCL is loaded at run time if a system of the
 * scenario names it. */
#define _GNU_SOURCE
#include "real/device/cuda/nccl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "real/base/libraries.h"
#include "real/device/gpu/gpu.h"
#include "real/library/library.h"

#define LIBRARY "libnccl.so.2"

static struct {
	bool is_loaded;
#define MEMBER(name, arguments) int(*name) arguments;
	PSD_NCCL_CALLS(MEMBER)
	psd_nccl_get_error_string_fn *get_error_string;
} nccl;

/* Another thread may abort the communicator, but not while a call uses it. Exception: a call that waits inside NCCL for
 * a lost worker does not return by itself, so it must be aborted from outside. */
#define INSIDE_SEC 1

struct psd_library {
	struct psd_device *device;
	pthread_mutex_t lock;
	pthread_cond_t has_left;
	struct ncclComm *comm; /* NULL after an abort */
	bool is_inside;	       /* a call is using the communicator */
};

/* ---- loading ---- */

/* Opens NCCL's library; one that is linked with the program takes precedence. */
static void *open_handle(struct psd_error *err)
{
	void *program = dlopen(NULL, RTLD_NOW);

	return program && dlsym(program, "ncclAllReduce") ? program : psd_libraries_open(LIBRARY, err);
}

/* Loads NCCL's library and finds its functions; called by one thread at a time. */
static enum psd_status load_once(struct psd_error *err)
{
	struct psd_error reason;
	void *handle, *found;
	bool has_all = true;

	if (nccl.is_loaded)
		return PSD_OK;
	handle = open_handle(&reason);
	if (!handle)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "needs NCCL, but %s", reason.text);
#define FIND(name, arguments)                                                                                          \
	found = dlsym(handle, "nccl" #name);                                                                           \
	has_all = has_all && found;                                                                                    \
	memcpy(&nccl.name, &found, sizeof(found)); /* C has no cast from data to functions */
	PSD_NCCL_CALLS(FIND)
	found = dlsym(handle, "ncclGetErrorString");
	memcpy(&nccl.get_error_string, &found, sizeof(found));
	if (!has_all || !found)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "needs NCCL 2, but %s lacks some of its functions",
				     LIBRARY);
	nccl.is_loaded = true;
	return PSD_OK;
}

static enum psd_status load(struct psd_error *err)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&lock);
	const enum psd_status status = load_once(err);
	pthread_mutex_unlock(&lock);
	return status;
}

static enum psd_status check(unsigned n_ranks, struct psd_error *err)
{
	(void)n_ranks;
	return load(err);
}

static enum psd_status judge(int result, const char *what, struct psd_error *err)
{
	if (result == PSD_NCCL_SUCCESS)
		return PSD_OK;
	return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "nccl failed %s: %.200s", what, nccl.get_error_string(result));
}

/* ---- its life ---- */

static enum psd_status invite(uint8_t invitation[PSD_LIBRARY_INVITATION_BYTES], struct psd_error *err)
{
	struct psd_nccl_id id;

	PSD_TRY(load(err));
	_Static_assert(sizeof(id) == PSD_LIBRARY_INVITATION_BYTES, "an invitation is NCCL's id");
	PSD_TRY(judge(nccl.GetUniqueId(&id), "to say where ranks meet", err));
	memcpy(invitation, &id, sizeof(id));
	return PSD_OK;
}

static enum psd_status join(struct psd_library *library, const struct psd_library_options *options,
			    struct psd_error *err)
{
	struct ncclComm *comm = NULL;
	struct psd_nccl_id id;

	PSD_TRY(psd_gpu_enter(options->device, err));
	memcpy(&id, options->invitation, sizeof(id));
	const enum psd_status status = judge(nccl.CommInitRank(&comm, (int)options->n_ranks, id, (int)options->rank),
					     "to join (each worker needs a GPU of its own)", err);
	library->comm = comm;
	return status;
}

static void release(struct psd_library *library)
{
	pthread_cond_destroy(&library->has_left);
	pthread_mutex_destroy(&library->lock);
	free(library);
}

static enum psd_status open_library(struct psd_library **library, const struct psd_library_options *options,
				    struct psd_error *err)
{
	struct psd_library *opened;

	PSD_TRY(load(err));
	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for nccl");
	opened->device = options->device;
	pthread_mutex_init(&opened->lock, NULL);
	pthread_cond_init(&opened->has_left, NULL);
	const enum psd_status status = join(opened, options, err);
	if (status)
		release(opened);
	else
		*library = opened;
	return status;
}

/* Takes the communicator out of `library`, so that no later call can use it; returns NULL if another thread has done
 * so. */
static struct ncclComm *take_away(struct psd_library *library)
{
	struct timespec until;
	int error = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += INSIDE_SEC;
	pthread_mutex_lock(&library->lock);
	while (library->is_inside && error == 0)
		error = pthread_cond_timedwait(&library->has_left, &library->lock, &until);
	struct ncclComm *comm = library->comm;
	library->comm = NULL;
	pthread_mutex_unlock(&library->lock);
	return comm;
}

/* Aborts the communicator, which ends its kernels wherever they wait. */
static void abort_sums(struct psd_library *library)
{
	struct ncclComm *comm = take_away(library);

	if (comm && !psd_gpu_enter(library->device, NULL))
		(void)nccl.CommAbort(comm);
}

static void close_library(struct psd_library *library, bool is_orderly)
{
	if (!library)
		return;
	if (!is_orderly)
		abort_sums(library);
	struct ncclComm *comm = take_away(library);
	if (comm && !psd_gpu_enter(library->device, NULL))
		(void)nccl.CommDestroy(comm);
	release(library);
}

/* ---- sums ---- */

/* Begins the all-reduce of one range in place. */
typedef int begin_fn(struct psd_library *library, struct ncclComm *comm, const struct iovec *piece);

static int begin_sum(struct psd_library *library, struct ncclComm *comm, const struct iovec *piece)
{
	return nccl.AllReduce(piece->iov_base, piece->iov_base, piece->iov_len / sizeof(float), PSD_NCCL_FLOAT32,
			      PSD_NCCL_SUM, comm, library->device->streams[PSD_STREAM_SUMS]);
}

static int begin_spread(struct psd_library *library, struct ncclComm *comm, const struct iovec *piece)
{
	return nccl.Broadcast(piece->iov_base, piece->iov_base, piece->iov_len / sizeof(float), PSD_NCCL_FLOAT32, 0,
			      comm, library->device->streams[PSD_STREAM_SUMS]);
}

/* Returns the communicator for a call that begins; NULL after an abort. */
static struct ncclComm *enter(struct psd_library *library)
{
	pthread_mutex_lock(&library->lock);
	struct ncclComm *comm = library->comm;
	library->is_inside = comm != NULL;
	pthread_mutex_unlock(&library->lock);
	return comm;
}

static void leave(struct psd_library *library)
{
	pthread_mutex_lock(&library->lock);
	library->is_inside = false;
	pthread_cond_broadcast(&library->has_left);
	pthread_mutex_unlock(&library->lock);
}

/* Begins the all-reduces of all ranges of a bucket, which NCCL executes as one group. */
static enum psd_status begin_all(struct psd_library *library, struct ncclComm *comm, const struct iovec pieces[],
				 unsigned n_segments, begin_fn *begin, struct psd_error *err)
{
	enum psd_status status = PSD_OK;

	PSD_TRY(psd_gpu_enter(library->device, err));
	PSD_TRY(judge(nccl.GroupStart(), "to gather tensors", err));
	for (unsigned p = 0; p < n_segments && !status; p++)
		status = judge(begin(library, comm, &pieces[p]), "to sum", err);
	/* called also after a failure, so that the thread's next group is a new one */
	const int ended = nccl.GroupEnd();
	return status ? status : judge(ended, "to sum", err);
}

static enum psd_status begin_pieces(struct psd_library *library, const struct iovec pieces[], unsigned n_segments,
				    begin_fn *begin, struct psd_error *err)
{
	struct ncclComm *comm = enter(library);

	if (!comm)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "nccl was interrupted");
	const enum psd_status status = begin_all(library, comm, pieces, n_segments, begin, err);
	leave(library);
	return status;
}

static enum psd_status sum(struct psd_library *library, const struct iovec pieces[], unsigned n_segments, void *room,
			   struct psd_error *err)
{
	(void)room;
	return begin_pieces(library, pieces, n_segments, begin_sum, err);
}

static enum psd_status spread(struct psd_library *library, const struct iovec pieces[], unsigned n_segments,
			      struct psd_error *err)
{
	return begin_pieces(library, pieces, n_segments, begin_spread, err);
}

#define OF_NCCL                                                                                                        \
	.is_on_device = true, .check = check, .invite = invite, .open = open_library, .sum = sum, .abort = abort_sums, \
	.close = close_library

static const struct psd_library_kind everywhere = {.name = "nccl", OF_NCCL};
static const struct psd_library_kind inside_nodes = {
	.name = "nccl-two-level", .is_inside_nodes = true, .spread = spread, OF_NCCL};

const struct psd_library_kind *const psd_gpu_libraries[] = {&everywhere, &inside_nodes, NULL};
