/* The GPU: its streams, marks, memory, copies and error messages. Refuses to know networks. */
#include <cuda_runtime.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern "C" {
#include "engine/base/units.h"
#include "real/base/libraries.h"
#include "real/device/gpu/gpu.h"
}

/* Oldest compute capability of CUDA 13; and the first with TF32 and bf16 on tensor cores. */
#define OLDEST_CAPABILITY 75
#define TF32_CAPABILITY	  80

/* Number of polls before a wait sleeps: some microseconds, as long as waking up takes. */
#define LOOKS 64

static const struct psd_place nowhere = {NULL, 0, 0};

/* CUDA keeps a status until it is read: this clears it, so that a later call does not report it. */
enum psd_status psd_gpu_check(int cuda_status, const char *what, struct psd_error *err)
{
	const cudaError_t status = (cudaError_t)cuda_status;

	if (status == cudaSuccess)
		return PSD_OK;
	(void)cudaGetLastError();
	return psd_error_set(err, PSD_ERUN, nowhere, "the GPU failed %s (%s: %s)", what, cudaGetErrorName(status),
			     cudaGetErrorString(status));
}

enum psd_status psd_gpu_enter(const struct psd_device *device, struct psd_error *err)
{
	return psd_gpu_check(cudaSetDevice(device->number), "to be chosen", err);
}

/* ---- which GPU ---- */

static void write_version(int version, char text[16])
{
	snprintf(text, 16, "%d.%d", version / 1000, version % 1000 / 10);
}

static enum psd_status refuse_driver(cudaError_t status, struct psd_error *err)
{
	int found = 0, needed = 0;
	char found_text[16], needed_text[16];

	(void)cudaDriverGetVersion(&found);
	(void)cudaRuntimeGetVersion(&needed);
	write_version(found, found_text);
	write_version(needed, needed_text);
	if (found == 0)
		return psd_error_set(err, PSD_ERUN, nowhere,
				     "this machine has no NVIDIA driver, must have one for CUDA %s or newer (%s)",
				     needed_text, cudaGetErrorName(status));
	return psd_error_set(err, PSD_ERUN, nowhere,
			     "this machine's NVIDIA driver is for CUDA %s, must be for %s or newer (%s)", found_text,
			     needed_text, cudaGetErrorName(status));
}

static enum psd_status count_gpus(int *n_gpus, struct psd_error *err)
{
	const cudaError_t status = cudaGetDeviceCount(n_gpus);

	if (status == cudaSuccess && *n_gpus > 0)
		return PSD_OK;
	(void)cudaGetLastError();
	if (status == cudaErrorStubLibrary)
		return psd_error_set(err, PSD_ERUN, nowhere,
				     "libcuda.so.1 on this machine is the stub of the CUDA toolkit, must be the "
				     "library of an NVIDIA driver (%s)",
				     cudaGetErrorName(status));
	if (status == cudaErrorInsufficientDriver || status == cudaErrorSystemDriverMismatch)
		return refuse_driver(status, err);
	if (status == cudaSuccess || status == cudaErrorNoDevice)
		return psd_error_set(err, PSD_ERUN, nowhere,
				     "this machine has no NVIDIA GPU that the driver supports (%s: %s)",
				     cudaGetErrorName(cudaErrorNoDevice), cudaGetErrorString(cudaErrorNoDevice));
	return psd_gpu_check(status, "to be found", err);
}

/* Message from a child to its parent. */
struct count {
	bool is_in_use; /* the parent uses a GPU already, so no child can */
	unsigned n;
	struct psd_error why;
};

static unsigned count_here(struct psd_error *why)
{
	int n_gpus = 0;

	return count_gpus(&n_gpus, why) ? 0 : (unsigned)n_gpus;
}

static void count_for_parent(int to)
{
	struct count count = {};
	int n_gpus = 0;

	count.is_in_use = cudaGetDeviceCount(&n_gpus) == cudaErrorInitializationError;
	if (!count.is_in_use)
		count.n = count_here(&count.why);
	_exit(write(to, &count, sizeof(count)) == (ssize_t)sizeof(count)
		      ? 0
		      : 1); /* short enough for one write to a pipe */
}

/* Counts GPUs in a child, because a process that has called CUDA must not fork(). */
static enum psd_status count_apart(struct count *count, struct psd_error *err)
{
	int ends[2], status;
	ssize_t n_read;

	if (pipe(ends))
		return psd_error_set(err, PSD_ERUN, nowhere, "cannot look for GPUs: %s", strerror(errno));
	const pid_t child = fork();
	if (child == 0)
		count_for_parent(ends[1]);
	close(ends[1]);
	do
		n_read = read(ends[0], count, sizeof(*count));
	while (n_read < 0 && errno == EINTR);
	close(ends[0]);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (n_read == (ssize_t)sizeof(*count))
		return PSD_OK;
	return psd_error_set(err, PSD_ERUN, nowhere,
			     "the process that asks the NVIDIA driver for GPUs has ended without an answer");
}

unsigned psd_gpu_count(struct psd_error *why)
{
	struct count count;

	if (count_apart(&count, why))
		return 0;
	if (count.is_in_use)
		return count_here(why);
	*why = count.why;
	return count.n;
}

static enum psd_status check_arithmetic(const struct psd_device *device, struct psd_error *err)
{
	const bool is_new =
		device->options.arithmetic == PSD_LAYERS_TF32 || device->options.arithmetic == PSD_LAYERS_BF16;
	const unsigned needed = is_new ? TF32_CAPABILITY : OLDEST_CAPABILITY;

	if (device->capability >= needed)
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, nowhere, "GPU %d (%s) has compute capability %u.%u, %s needs %u.%u",
			     device->number, device->name, device->capability / 10, device->capability % 10,
			     is_new ? "tf32 or bf16 arithmetic" : "psd-run", needed / 10, needed % 10);
}

static enum psd_status find_gpu(struct psd_device *device, struct psd_error *err)
{
	cudaDeviceProp properties;
	int n_gpus = 0;

	PSD_TRY(count_gpus(&n_gpus, err));
	device->number = (int)(device->options.number % (unsigned)n_gpus);
	PSD_TRY(psd_gpu_check(cudaGetDeviceProperties(&properties, device->number), "to describe itself", err));
	snprintf(device->name, sizeof(device->name), "%.63s", properties.name);
	device->capability = (unsigned)(10 * properties.major + properties.minor);
	device->n_processors = (unsigned)properties.multiProcessorCount;
	device->memory_bytes = properties.totalGlobalMem;
	PSD_TRY(check_arithmetic(device, err));
	return psd_gpu_enter(device, err);
}

void psd_gpu_describe(const struct psd_device *device, char text[PSD_DEVICE_TEXT_MAX])
{
	int driver = 0, runtime = 0;
	char driver_text[16], runtime_text[16];

	(void)cudaDriverGetVersion(&driver);
	(void)cudaRuntimeGetVersion(&runtime);
	write_version(driver, driver_text);
	write_version(runtime, runtime_text);
	snprintf(text, PSD_DEVICE_TEXT_MAX, "%s, compute capability %u.%u; driver for CUDA %s; CUDA %s", device->name,
		 device->capability / 10, device->capability % 10, driver_text, runtime_text);
}

/* ---- streams and events ---- */

/* Events of marks measure time; the others only order streams. */
static enum psd_status make_marks(struct psd_gpu_marks *marks, struct psd_error *err)
{
	marks->events = (struct CUevent_st **)calloc(PSD_MOST_MARKS, sizeof(*marks->events));
	if (!marks->events)
		return psd_gpu_no_memory(err);
	for (unsigned m = 0; m < PSD_MOST_MARKS; m++)
		PSD_TRY(psd_gpu_check(cudaEventCreateWithFlags(&marks->events[m], cudaEventBlockingSync),
				      "to make an event", err));
	return PSD_OK;
}

static enum psd_status make_event(struct CUevent_st **event, struct psd_error *err)
{
	return psd_gpu_check(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "to make an event", err);
}

enum psd_status psd_gpu_start(struct psd_device *device, struct psd_error *err)
{
	PSD_TRY(psd_libraries_need(PSD_LIBRARY_CUBLAS, err));
	PSD_TRY(psd_libraries_need(PSD_LIBRARY_CUBLASLT, err));
	PSD_TRY(psd_libraries_need(PSD_LIBRARY_CUDNN, err));
	PSD_TRY(find_gpu(device, err));
	for (unsigned s = 0; s < PSD_STREAMS; s++)
		PSD_TRY(psd_gpu_check(cudaStreamCreateWithFlags(&device->streams[s], cudaStreamNonBlocking),
				      "to make a stream", err));
	for (unsigned s = 0; s < PSD_STREAMS; s++)
		PSD_TRY(make_marks(&device->marks[s], err));
	for (unsigned s = 0; s < PSD_GPU_SLOTS; s++) {
		PSD_TRY(make_event(&device->slots[s].arrived, err));
		PSD_TRY(make_event(&device->slots[s].used, err));
	}
	return PSD_OK;
}

static void end_event(struct CUevent_st *event)
{
	if (event)
		(void)cudaEventDestroy(event);
}

static void end_marks(struct psd_gpu_marks *marks)
{
	for (unsigned m = 0; m < PSD_MOST_MARKS && marks->events; m++)
		end_event(marks->events[m]);
	free(marks->events);
}

static void release_pieces(struct psd_device *device)
{
	while (device->pieces) {
		struct psd_gpu_piece *piece = device->pieces;

		device->pieces = piece->next;
		(void)(piece->is_host ? cudaFreeHost(piece->block) : cudaFree(piece->block));
		free(piece);
	}
}

void psd_gpu_stop(struct psd_device *device)
{
	(void)!psd_gpu_enter(device, NULL); /* releases a lost device as well */
	release_pieces(device);
	for (unsigned s = 0; s < PSD_STREAMS; s++)
		end_marks(&device->marks[s]);
	for (unsigned s = 0; s < PSD_GPU_SLOTS; s++) {
		end_event(device->slots[s].arrived);
		end_event(device->slots[s].used);
	}
	for (unsigned s = 0; s < PSD_STREAMS; s++)
		if (device->streams[s])
			(void)cudaStreamDestroy(device->streams[s]);
}

enum psd_status psd_gpu_record(struct psd_device *device, unsigned stream, struct CUevent_st *event,
			       struct psd_error *err)
{
	return psd_gpu_check(cudaEventRecord(event, device->streams[stream]), "to record an event", err);
}

enum psd_status psd_gpu_follow(struct psd_device *device, unsigned stream, struct CUevent_st *event,
			       struct psd_error *err)
{
	return psd_gpu_check(cudaStreamWaitEvent(device->streams[stream], event, 0), "to order its streams", err);
}

enum psd_status psd_gpu_finish(struct psd_device *device, unsigned stream, struct psd_error *err)
{
	return psd_gpu_check(cudaStreamSynchronize(device->streams[stream]), "in something that was under way", err);
}

uint64_t psd_gpu_mark(struct psd_device *device, enum psd_stream stream)
{
	struct psd_gpu_marks *marks = &device->marks[stream];
	cudaError_t status = cudaSetDevice(device->number);

	if (status == cudaSuccess)
		status = cudaEventRecord(marks->events[marks->next % PSD_MOST_MARKS], device->streams[stream]);
	if (status != cudaSuccess)
		__atomic_store_n(&marks->failure, (int)status, __ATOMIC_RELEASE); /* wait() reports it */
	return marks->next++;
}

/* "Not ready" is no failure. CUDA may keep it as the thread's last error, which the next launch would report, so this
 * clears it. */
static cudaError_t look_at(struct CUevent_st *event)
{
	const cudaError_t status = cudaEventQuery(event);

	if (status == cudaErrorNotReady)
		(void)cudaGetLastError();
	return status;
}

enum psd_status psd_gpu_wait(struct psd_device *device, enum psd_stream stream, uint64_t mark, struct psd_error *err)
{
	struct psd_gpu_marks *marks = &device->marks[stream];
	struct CUevent_st *event = marks->events[mark % PSD_MOST_MARKS];
	cudaError_t status = (cudaError_t)__atomic_load_n(&marks->failure, __ATOMIC_ACQUIRE);

	if (status == cudaSuccess)
		status = cudaSetDevice(device->number);
	if (status == cudaSuccess)
		status = look_at(event);
	for (unsigned look = 1; look < LOOKS && status == cudaErrorNotReady; look++)
		status = look_at(event);
	if (status == cudaErrorNotReady)
		status = cudaEventSynchronize(event);
	return psd_gpu_check(status, "in something that was under way", err);
}

double psd_gpu_between_sec(struct psd_device *device, enum psd_stream stream, uint64_t from, uint64_t to)
{
	const struct psd_gpu_marks *marks = &device->marks[stream];
	float milliseconds = 0.0f;

	if (cudaSetDevice(device->number) == cudaSuccess &&
	    cudaEventElapsedTime(&milliseconds, marks->events[from % PSD_MOST_MARKS],
				 marks->events[to % PSD_MOST_MARKS]) == cudaSuccess)
		return (double)milliseconds * 1e-3;
	(void)cudaGetLastError();
	return 0.0;
}

/* ---- graphs ---- */

/* Other threads may allocate memory and query events meanwhile. */
enum psd_status psd_gpu_begin_capture(struct psd_device *device, struct psd_error *err)
{
	return psd_gpu_check(
		cudaStreamBeginCapture(device->streams[PSD_STREAM_COMPUTE], cudaStreamCaptureModeThreadLocal),
		"to capture", err);
}

static cudaError_t make_launchable(cudaGraph_t graph, cudaGraphExec_t *launchable)
{
	size_t n_nodes = 0;
	const cudaError_t status = cudaGraphGetNodes(graph, NULL, &n_nodes);

	if (status != cudaSuccess || n_nodes == 0)
		return status;
	return cudaGraphInstantiate(launchable, graph, 0);
}

enum psd_status psd_gpu_end_capture(struct psd_device *device, struct CUgraphExec_st **launchable,
				    struct psd_error *err)
{
	cudaGraphExec_t made = NULL;
	cudaGraph_t graph = NULL;
	cudaError_t status = cudaStreamEndCapture(device->streams[PSD_STREAM_COMPUTE], &graph);

	if (status == cudaSuccess)
		status = make_launchable(graph, &made);
	if (graph)
		(void)cudaGraphDestroy(graph);
	if (status == cudaSuccess)
		*launchable = made;
	return psd_gpu_check(status, "to make a graph", err);
}

enum psd_status psd_gpu_launch(struct psd_device *device, struct CUgraphExec_st *launchable, struct psd_error *err)
{
	return psd_gpu_check(cudaGraphLaunch(launchable, device->streams[PSD_STREAM_COMPUTE]), "to begin a graph", err);
}

void psd_gpu_end_launchable(struct CUgraphExec_st *launchable)
{
	if (launchable)
		(void)cudaGraphExecDestroy(launchable);
}

/* ---- memory ---- */

static enum psd_status refuse_bytes(uint64_t bytes, const char *what, struct psd_error *err)
{
	char asked[PSD_UNITS_TEXT_MAX], free_text[PSD_UNITS_TEXT_MAX], total_text[PSD_UNITS_TEXT_MAX];
	size_t free_bytes = 0, total_bytes = 0;

	(void)cudaGetLastError();
	(void)cudaMemGetInfo(&free_bytes, &total_bytes);
	return psd_error_set(err, PSD_ENOMEM, nowhere,
			     "the GPU has too little memory for %s of %s: %s of its %s are free", what,
			     psd_units_write_bytes(bytes, asked), psd_units_write_bytes(free_bytes, free_text),
			     psd_units_write_bytes(total_bytes, total_text));
}

static struct psd_gpu_piece *add_piece(struct psd_device *device, void *block, bool is_host)
{
	struct psd_gpu_piece *piece = (struct psd_gpu_piece *)malloc(sizeof(*piece));

	if (!piece)
		return NULL;
	piece->next = device->pieces;
	piece->block = block;
	piece->is_host = is_host;
	device->pieces = piece;
	return piece;
}

enum psd_status psd_gpu_take_workspace(struct psd_device *device, uint64_t bytes, const char *what, void **block,
				       struct psd_error *err)
{
	const cudaError_t taken = cudaMalloc(block, bytes ? bytes : 1);

	if (taken == cudaErrorMemoryAllocation)
		return refuse_bytes(bytes, what, err);
	PSD_TRY(psd_gpu_check(taken, "to give memory", err));
	if (add_piece(device, *block, false))
		return PSD_OK;
	(void)cudaFree(*block);
	return psd_gpu_no_memory(err);
}

/* Zeros the block before any stream uses it. */
enum psd_status psd_gpu_take(struct psd_device *device, uint64_t bytes, const char *what, void **block,
			     struct psd_error *err)
{
	PSD_TRY(psd_gpu_take_workspace(device, bytes, what, block, err));
	PSD_TRY(psd_gpu_clear(device, *block, bytes, err));
	return psd_gpu_finish(device, PSD_STREAM_COMPUTE, err);
}

enum psd_status psd_gpu_take_host(struct psd_device *device, uint64_t bytes, void **block, struct psd_error *err)
{
	const cudaError_t taken = cudaHostAlloc(block, bytes ? bytes : 1, cudaHostAllocPortable);
	char text[PSD_UNITS_TEXT_MAX];

	if (taken == cudaErrorMemoryAllocation) {
		(void)cudaGetLastError();
		return psd_error_set(err, PSD_ENOMEM, nowhere, "this machine cannot give %s of page-locked memory",
				     psd_units_write_bytes(bytes, text));
	}
	PSD_TRY(psd_gpu_check(taken, "to give memory of its host", err));
	if (!add_piece(device, *block, true)) {
		(void)cudaFreeHost(*block);
		return psd_gpu_no_memory(err);
	}
	memset(*block, 0, bytes);
	return PSD_OK;
}

enum psd_status psd_gpu_copy(struct psd_device *device, unsigned stream, void *to, const void *from, uint64_t bytes,
			     struct psd_error *err)
{
	if (!bytes) /* a network without a loss has no labels */
		return PSD_OK;
	return psd_gpu_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, device->streams[stream]), "to copy",
			     err);
}

enum psd_status psd_gpu_clear(struct psd_device *device, void *block, uint64_t bytes, struct psd_error *err)
{
	return psd_gpu_check(cudaMemsetAsync(block, 0, bytes, device->streams[PSD_STREAM_COMPUTE]), "to clear memory",
			     err);
}
