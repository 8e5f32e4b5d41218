/* NCCL's functions of the stand-in: ranks in processes or threads of this machine meet in memory that the maker of the
 * id has, and add up in order of rank, or take what rank 0 has. Both are operations of their stream and wait for the
 * others there, as a kernel of NCCL's does; nothing of a group is begun before its end. Refuses types and sums that
 * psd-run does not use. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "real/device/cuda/nccl.h"
#include "tests/cuda/stand_in_parts.h"

enum { MOST_RANKS = 16, MOST_AT_ONCE = 32768, MOST_IN_GROUP = 64 };
enum { UNHANDLED_CUDA_ERROR = 1, SYSTEM_ERROR = 2, INVALID_ARGUMENT = 4 }; /* values of ncclResult_t */

#define DECLARE(name, arguments) int nccl##name arguments;
PSD_NCCL_CALLS(DECLARE)
psd_nccl_get_error_string_fn ncclGetErrorString;

/* Counts that only grow: whoever comes knows from them for which round. */
struct meeting {
	atomic_uint n_joined;
	_Atomic uint64_t n_came, n_left;
	float values[MOST_RANKS][MOST_AT_ONCE];
};

struct ncclComm {
	struct meeting *meeting;
	unsigned rank, n_ranks;
	atomic_uint n_queued; /* sums */
	atomic_bool is_aborted;
};

struct sum {
	struct ncclComm *comm;
	const float *from;
	float *to;
	size_t count;
	bool is_spread; /* rank 0's go to all */
};

static _Thread_local struct {
	unsigned depth, n;
	cudaStream_t streams[MOST_IN_GROUP];
	struct sum sums[MOST_IN_GROUP];
} group;

static int end(cudaError_t error)
{
	psd_stand_in_unlock();
	return error == cudaSuccess ? PSD_NCCL_SUCCESS : UNHANDLED_CUDA_ERROR;
}

const char *ncclGetErrorString(int result)
{
	return result == PSD_NCCL_SUCCESS	? "no error"
	       : result == UNHANDLED_CUDA_ERROR ? "unhandled cuda error"
	       : result == SYSTEM_ERROR		? "unhandled system error"
						: "invalid argument";
}

/* ---- meeting ---- */

int ncclGetUniqueId(struct psd_nccl_id *id)
{
	const int fd = memfd_create("stand-in", MFD_CLOEXEC);

	memset(id, 0, sizeof(*id));
	if (fd < 0 || ftruncate(fd, sizeof(struct meeting)))
		return SYSTEM_ERROR;
	snprintf(id->bytes, sizeof(id->bytes), "/proc/%d/fd/%d", (int)getpid(), fd);
	return PSD_NCCL_SUCCESS;
}

static struct meeting *open_meeting(const char *path)
{
	const int fd = open(path, O_RDWR | O_CLOEXEC);
	void *meeting =
		fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(struct meeting), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (fd >= 0)
		close(fd);
	return meeting == MAP_FAILED ? NULL : meeting;
}

/* Once all have it. */
static void close_made(const char *path)
{
	int process, fd;

	if (sscanf(path, "/proc/%d/fd/%d", &process, &fd) == 2 && process == (int)getpid())
		close(fd);
}

int ncclCommInitRank(struct ncclComm **comm, int n_ranks, struct psd_nccl_id id, int rank)
{
	const cudaError_t error = psd_stand_in_begin("ncclCommInitRank");
	struct meeting *meeting;

	psd_stand_in_unlock();
	if (error != cudaSuccess)
		return UNHANDLED_CUDA_ERROR;
	if (n_ranks < 1 || n_ranks > MOST_RANKS || rank < 0 || rank >= n_ranks)
		return INVALID_ARGUMENT;
	meeting = open_meeting(id.bytes);
	*comm = calloc(1, sizeof(**comm));
	if (!meeting || !*comm)
		return SYSTEM_ERROR;
	(*comm)->meeting = meeting;
	(*comm)->rank = (unsigned)rank;
	(*comm)->n_ranks = (unsigned)n_ranks;
	atomic_fetch_add(&meeting->n_joined, 1);
	while (atomic_load(&meeting->n_joined) < (unsigned)n_ranks)
		sched_yield();
	if (rank == 0)
		close_made(id.bytes);
	psd_stand_in_lock();
	psd_stand_in_count.handles++;
	psd_stand_in_unlock();
	return PSD_NCCL_SUCCESS;
}

/* Queued operations end first. */
static int give_back(struct ncclComm *comm, const char *function, bool is_aborted)
{
	const cudaError_t error = psd_stand_in_begin(function);

	if (!psd_stand_in_may_release(error))
		return end(error);
	atomic_store(&comm->is_aborted, is_aborted);
	while (atomic_load(&comm->n_queued) > 0 && !psd_stand_in_is_lost())
		psd_stand_in_await_change(0);
	psd_stand_in_count.handles--;
	munmap(comm->meeting, sizeof(*comm->meeting));
	free(comm);
	return end(error);
}

int ncclCommAbort(struct ncclComm *comm)
{
	return give_back(comm, "ncclCommAbort", true);
}

int ncclCommDestroy(struct ncclComm *comm)
{
	return give_back(comm, "ncclCommDestroy", false);
}

/* ---- sums ---- */

/* Until as many have come as there are ranks, in this round. */
static bool meet(const struct ncclComm *comm, _Atomic uint64_t *n)
{
	const uint64_t round = atomic_fetch_add(n, 1) / comm->n_ranks;

	while (atomic_load(n) < (round + 1) * comm->n_ranks) {
		if (atomic_load(&comm->is_aborted))
			return false;
		sched_yield();
	}
	return true;
}

static bool add_up(const struct ncclComm *comm, const float *from, float *to, size_t n, bool is_spread)
{
	struct meeting *const meeting = comm->meeting;
	const unsigned n_added = is_spread ? 1 : comm->n_ranks;

	if (comm->rank < n_added)
		memcpy(meeting->values[comm->rank], from, n * sizeof(*from));
	memset(to, PSD_STAND_IN_POISON, n * sizeof(*to));
	if (!meet(comm, &meeting->n_came))
		return false;
	for (size_t i = 0; i < n; i++) {
		float sum = meeting->values[0][i];

		for (unsigned r = 1; r < n_added; r++)
			sum += meeting->values[r][i];
		to[i] = sum;
	}
	return meet(comm, &meeting->n_left);
}

static void run_sum(void *arguments)
{
	const struct sum *const sum = arguments;
	size_t first = 0;
	bool goes_on = true;

	if (!psd_stand_in_may_touch(sum->from, sum->count * sizeof(float)) ||
	    !psd_stand_in_may_touch(sum->to, sum->count * sizeof(float)))
		goes_on = false;
	while (goes_on && first < sum->count) {
		const size_t rest = sum->count - first, n = rest < MOST_AT_ONCE ? rest : MOST_AT_ONCE;

		goes_on = add_up(sum->comm, sum->from + first, sum->to + first, n, sum->is_spread);
		first += n;
	}
	atomic_fetch_sub(&sum->comm->n_queued, 1);
}

static cudaError_t queue_sum(const struct sum *sum, cudaStream_t stream)
{
	cudaError_t error;

	atomic_fetch_add(&sum->comm->n_queued, 1);
	error = psd_stand_in_queue_work(stream, run_sum, sum, sizeof(*sum));
	if (error != cudaSuccess)
		atomic_fetch_sub(&sum->comm->n_queued, 1);
	return error;
}

int ncclGroupStart(void)
{
	group.depth++;
	return PSD_NCCL_SUCCESS;
}

int ncclGroupEnd(void)
{
	cudaError_t error;

	if (group.depth == 0)
		return INVALID_ARGUMENT;
	if (--group.depth > 0)
		return PSD_NCCL_SUCCESS;
	error = psd_stand_in_begin("ncclGroupEnd");
	for (unsigned i = 0; i < group.n && error == cudaSuccess; i++)
		error = queue_sum(&group.sums[i], group.streams[i]);
	group.n = 0;
	return end(error);
}

static int begin_sum(const char *function, const struct sum *sum, struct CUstream_st *stream)
{
	cudaError_t error = psd_stand_in_begin(function);

	if (error == cudaSuccess && group.depth > 0) {
		group.streams[group.n] = stream;
		group.sums[group.n++] = *sum;
	} else if (error == cudaSuccess) {
		error = queue_sum(sum, stream);
	}
	return end(error);
}

int ncclAllReduce(const void *from, void *to, size_t count, int type, int op, struct ncclComm *comm,
		  struct CUstream_st *stream)
{
	const struct sum sum = {comm, from, to, count, false};

	if (type != PSD_NCCL_FLOAT32 || op != PSD_NCCL_SUM || group.n == MOST_IN_GROUP)
		return INVALID_ARGUMENT;
	return begin_sum("ncclAllReduce", &sum, stream);
}

int ncclBroadcast(const void *from, void *to, size_t count, int type, int root, struct ncclComm *comm,
		  struct CUstream_st *stream)
{
	const struct sum sum = {comm, from, to, count, true};

	if (type != PSD_NCCL_FLOAT32 || root != 0 || group.n == MOST_IN_GROUP)
		return INVALID_ARGUMENT;
	return begin_sum("ncclBroadcast", &sum, stream);
}
