/* Open MPI's MPI_Allreduce among the processes of one mpirun. The build needs its header alone; the library is loaded
 * at first use. MPI is initialised once in a process, by its first session, and finalised at exit. */
#define _GNU_SOURCE
#include "real/library/library.h"

#ifdef PSD_HAS_MPI
#include <dlfcn.h>
#include <mpi.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY "libmpi.so.40" /* Open MPI 2.1 to 5 */

enum { MOST_AT_ONCE = 1 << 30 }; /* MPI counts values by an int */

#define CALLS(ROW)                                                                                                     \
	ROW(Init_thread)                                                                                               \
	ROW(Finalize)                                                                                                  \
	ROW(Initialized)                                                                                               \
	ROW(Comm_split)                                                                                                \
	ROW(Comm_size)                                                                                                 \
	ROW(Comm_set_errhandler)                                                                                       \
	ROW(Comm_free)                                                                                                 \
	ROW(Allreduce)                                                                                                 \
	ROW(Error_string)

/* The library's functions, and the objects behind the header's macros. */
static struct {
	void *handle; /* NULL: not loaded */
#define MEMBER(name) __typeof__(&MPI_##name) name;
	CALLS(MEMBER)
	MPI_Comm world;
	MPI_Datatype float_type;
	MPI_Op sum;
	MPI_Errhandler return_errors;
} mpi;

static atomic_bool is_summing; /* in any session */

struct psd_library {
	MPI_Comm comm; /* this session's: all processes, in the order of the workers */
};

/* ---- loading ---- */

static void *find(void *handle, const char *name, bool *has_all)
{
	void *found = dlsym(handle, name);

	*has_all = *has_all && found;
	return found;
}

/* RTLD_GLOBAL, since the library's plug-ins look up its names among all that are loaded. */
static enum psd_status load(struct psd_error *err)
{
	void *handle = mpi.handle ? mpi.handle : dlopen(LIBRARY, RTLD_NOW | RTLD_GLOBAL);
	bool has_all = true;
	void *found;

	if (mpi.handle)
		return PSD_OK;
	if (!handle)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "needs Open MPI here: %.200s", dlerror());
#define FIND(name)                                                                                                     \
	found = find(handle, "MPI_" #name, &has_all);                                                                  \
	memcpy(&mpi.name, &found, sizeof(found)); /* C has no cast from data to functions */
	CALLS(FIND)
	mpi.world = find(handle, "ompi_mpi_comm_world", &has_all);
	mpi.float_type = find(handle, "ompi_mpi_float", &has_all);
	mpi.sum = find(handle, "ompi_mpi_op_sum", &has_all);
	mpi.return_errors = find(handle, "ompi_mpi_errors_return", &has_all);
	if (!has_all) {
		dlclose(handle);
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE, "needs Open MPI, but %s lacks some of its functions",
				     LIBRARY);
	}
	mpi.handle = handle;
	return PSD_OK;
}

/* Reads the environment, since a question to MPI would initialise it. */
static enum psd_status check(unsigned n_ranks, struct psd_error *err)
{
	const char *size = getenv("OMPI_COMM_WORLD_SIZE");

	if (!size || strtoul(size, NULL, 10) != n_ranks)
		return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
				     "needs its %u processes started by mpirun: mpirun -n %u psd-run ...", n_ranks,
				     n_ranks);
	return load(err);
}

/* ---- initialisation and end ---- */

static enum psd_status judge(int code, const char *what, struct psd_error *err)
{
	char words[MPI_MAX_ERROR_STRING] = "";
	int length;

	if (code == MPI_SUCCESS)
		return PSD_OK;
	(void)mpi.Error_string(code, words, &length);
	return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "mpi failed %s: %.200s", what, words);
}

/* MPI_Finalize waits for all processes. One that waits in a sum for ever never comes; mpirun then ends the others. */
static void finalise(void)
{
	if (!atomic_load(&is_summing))
		(void)mpi.Finalize();
}

static enum psd_status initialise(struct psd_error *err)
{
	int is_initialised = 0, provided = 0;

	PSD_TRY(judge(mpi.Initialized(&is_initialised), "to say whether it is initialised", err));
	if (is_initialised)
		return PSD_OK;
	PSD_TRY(judge(mpi.Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided), "to initialise", err));
	if (provided < MPI_THREAD_SERIALIZED)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE,
				     "mpi accepts calls from its main thread only, must accept them from any thread");
	if (atexit(finalise))
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for mpi");
	return PSD_OK;
}

/* mpirun may number the processes differently from the hosts file. */
static enum psd_status join(struct psd_library *library, const struct psd_library_options *options,
			    struct psd_error *err)
{
	int n_ranks = 0;

	PSD_TRY(judge(mpi.Comm_split(mpi.world, 0, (int)options->rank, &library->comm), "to join", err));
	PSD_TRY(judge(mpi.Comm_set_errhandler(library->comm, mpi.return_errors), "to report errors", err));
	PSD_TRY(judge(mpi.Comm_size(library->comm, &n_ranks), "to count its processes", err));
	if (n_ranks != (int)options->n_ranks)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "mpi has %d processes, this cluster has %u workers",
				     n_ranks, options->n_ranks);
	return PSD_OK;
}

static enum psd_status open_library(struct psd_library **library, const struct psd_library_options *options,
				    struct psd_error *err)
{
	struct psd_library *opened;

	PSD_TRY(check(options->n_ranks, err));
	PSD_TRY(initialise(err));
	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for mpi");
	const enum psd_status status = join(opened, options, err);
	if (status)
		free(opened);
	else
		*library = opened;
	return status;
}

static void close_library(struct psd_library *library, bool is_orderly)
{
	if (library && is_orderly)
		(void)mpi.Comm_free(&library->comm); /* waits for all ranks */
	free(library);
}

/* ---- sums ---- */

static enum psd_status sum_in_place(struct psd_library *library, float *values, uint64_t n, struct psd_error *err)
{
	for (uint64_t first = 0; first < n; first += MOST_AT_ONCE) {
		const uint64_t rest = n - first;
		const int count = rest < MOST_AT_ONCE ? (int)rest : MOST_AT_ONCE;
		int code;

		atomic_store(&is_summing, true);
		code = mpi.Allreduce(MPI_IN_PLACE, values + first, count, mpi.float_type, mpi.sum, library->comm);
		atomic_store(&is_summing, false);
		PSD_TRY(judge(code, "to sum", err));
	}
	return PSD_OK;
}

/* Several tensors are copied into one buffer and summed together, like the fusion buffer of training with MPI. */
static enum psd_status sum(struct psd_library *library, const struct iovec segments[], unsigned n_segments,
			   void *scratch, struct psd_error *err)
{
	char *end_of = scratch;

	if (n_segments == 1)
		return sum_in_place(library, segments[0].iov_base, segments[0].iov_len / sizeof(float), err);
	for (unsigned p = 0; p < n_segments; p++) {
		memcpy(end_of, segments[p].iov_base, segments[p].iov_len);
		end_of += segments[p].iov_len;
	}
	PSD_TRY(sum_in_place(library, scratch, (uint64_t)(end_of - (char *)scratch) / sizeof(float), err));
	for (unsigned p = n_segments; p-- > 0;) {
		end_of -= segments[p].iov_len;
		memcpy(segments[p].iov_base, end_of, segments[p].iov_len);
	}
	return PSD_OK;
}

#else

static enum psd_status check(unsigned n_ranks, struct psd_error *err)
{
	(void)n_ranks;
	return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
			     "needs MPI, this psd-run was built without it: install libopenmpi-dev and make again");
}

static enum psd_status open_library(struct psd_library **library, const struct psd_library_options *options,
				    struct psd_error *err)
{
	(void)library;
	return check(options->n_ranks, err);
}

static enum psd_status sum(struct psd_library *library, const struct iovec segments[], unsigned n_segments,
			   void *scratch, struct psd_error *err)
{
	(void)library, (void)segments, (void)n_segments, (void)scratch, (void)err;
	return PSD_OK; /* never called: no library opens */
}

static void close_library(struct psd_library *library, bool is_orderly)
{
	(void)library, (void)is_orderly;
}

#endif

const struct psd_library_kind psd_library_mpi = {
	.name = "mpi",
	.check = check,
	.open = open_library,
	.sum = sum,
	.close = close_library,
};
