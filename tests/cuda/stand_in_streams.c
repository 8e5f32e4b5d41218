/* The stand-in's streams: a thread each, which executes queued operations one after the other. Seed, stream and the
 * operation's number choose how long each is delayed. Refuses to know what operations do. */
#define _POSIX_C_SOURCE 200809L
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/base/random.h"
#include "tests/cuda/stand_in_operations.h"
#include "tests/cuda/stand_in_parts.h"

enum { MOST_DEVICES = 16, LONGEST_PAUSE_NSEC = 200000 };

/* Longest time that an operation is held. CUDA promises that queued work begins some time, waited for or not. */
#define LONGEST_HOLD_NSEC UINT64_C(20000000)
#define LONGEST_LATE_NSEC UINT64_C(300000000)

struct CUstream_st {
	int device;
	unsigned number; /* from 0, in the order in which streams are made */
	struct psd_stand_in_operation *first, **last;
	uint64_t n_queued, n_over;
	uint64_t demanded;		      /* somebody waits for the operations up to this one */
	uint64_t late;			      /* a wait for the operations up to this one has been left out */
	struct psd_stand_in_capture *capture; /* takes queued operations; NULL: they are executed */
	bool is_closing;
	/* Signalled when an operation is queued, and when the stream closes: its thread alone is woken. */
	pthread_cond_t more;
};

/* How far behind a stream runs. */
enum pace { PACE_EAGER, PACE_LATE, PACE_LAZY, PACE_MIXED, PACES };

static uint64_t seed = 1;
static bool is_seed_known;
static unsigned n_streams;
static struct CUstream_st *default_streams[MOST_DEVICES];
static struct CUstream_st **all;
static unsigned n_all;
static unsigned n_enqueued;

void psd_stand_in_set_seed(uint64_t value)
{
	psd_stand_in_lock();
	seed = value;
	is_seed_known = true;
	psd_stand_in_unlock();
}

/* ---- delays ---- */

static uint64_t seed_of_run(void)
{
	const char *const text = is_seed_known ? NULL : getenv("PSD_STAND_IN_SEED");

	if (text)
		seed = strtoull(text, NULL, 10);
	is_seed_known = true;
	return seed;
}

static void hold(const struct CUstream_st *stream, uint64_t sequence)
{
	const uint64_t until_nsec = psd_stand_in_now_nsec() + LONGEST_HOLD_NSEC;

	while (stream->demanded < sequence && !psd_stand_in_is_lost())
		if (!psd_stand_in_await_change(until_nsec))
			return;
}

static void pause_nsec(uint64_t nsec)
{
	const struct timespec duration = {.tv_nsec = (long)nsec};

	psd_stand_in_unlock();
	nanosleep(&duration, NULL);
	psd_stand_in_lock();
}

static enum pace pace_of(uint64_t of_stream, uint64_t of_operation)
{
	const enum pace pace = (enum pace)(of_stream % PACES);

	if (psd_stand_in_is_about_to_skip())
		return PACE_LAZY;
	if (seed == 0)
		return PACE_EAGER;
	return pace == PACE_MIXED ? (enum pace)(of_operation % PACE_MIXED) : pace;
}

/* Holds the operation until somebody waits for it, and a while longer: code without a wait overtakes it. */
static void be_late(const struct CUstream_st *stream, uint64_t sequence)
{
	uint64_t until_nsec = psd_stand_in_now_nsec() + LONGEST_LATE_NSEC;

	if (sequence > stream->late)
		return;
	while (stream->demanded < sequence && !psd_stand_in_is_lost() && psd_stand_in_await_change(until_nsec))
		continue;
	until_nsec = psd_stand_in_now_nsec() + LONGEST_HOLD_NSEC;
	while (!psd_stand_in_is_lost() && psd_stand_in_await_change(until_nsec))
		continue;
}

static void delay(struct CUstream_st *stream, uint64_t sequence)
{
	const uint64_t of_stream = psd_random_mix(seed_of_run() ^ psd_random_mix(stream->number));
	const uint64_t of_operation = psd_random_mix(of_stream ^ sequence);
	const enum pace pace = pace_of(of_stream, of_operation);

	if (pace == PACE_LATE)
		pause_nsec((of_operation >> 8) % LONGEST_PAUSE_NSEC);
	if (pace == PACE_LAZY && stream->demanded < sequence) {
		hold(stream, sequence);
		/* Else all behind it would be held as long again. */
		if (stream->demanded < sequence)
			stream->demanded = stream->n_queued;
	}
	be_late(stream, sequence);
}

/* ---- the thread of a stream ---- */

static void run_operation(struct psd_stand_in_operation *operation)
{
	psd_stand_in_n_running++;
	psd_stand_in_unlock();
	operation->run(operation->arguments);
	psd_stand_in_lock();
	psd_stand_in_n_running--;
}

static void execute(struct psd_stand_in_operation *operation);

/* One after the other, with nothing of the stream's between them. */
static void execute_graph(const struct psd_stand_in_operation *operation)
{
	struct psd_stand_in_operation *of_graph = psd_stand_in_graph_operations(operation->graph);

	for (; of_graph; of_graph = of_graph->next)
		execute(of_graph);
	psd_stand_in_end_graph_launch(operation->graph);
}

static void execute(struct psd_stand_in_operation *operation)
{
	psd_stand_in_meet(operation);
	switch (operation->kind) {
	case PSD_STAND_IN_WORK:
		if (psd_stand_in_is_lost() || psd_stand_in_operation_fault() != cudaSuccess)
			break;
		psd_stand_in_open_memory();
		run_operation(operation);
		psd_stand_in_close_memory();
		break;
	case PSD_STAND_IN_HOST:
		if (psd_stand_in_is_lost())
			break;
		psd_stand_in_is_host_function = true;
		run_operation(operation);
		psd_stand_in_is_host_function = false;
		break;
	case PSD_STAND_IN_RECORD:
		operation->record->at_nsec = psd_stand_in_event_nsec();
		operation->record->is_over = true;
		psd_stand_in_publish(operation->record);
		break;
	case PSD_STAND_IN_WAIT: psd_stand_in_await_record(operation->record); break;
	case PSD_STAND_IN_GRAPH: execute_graph(operation); break;
	}
}

static void end_operation(struct CUstream_st *stream)
{
	struct psd_stand_in_operation *const operation = stream->first;

	stream->first = operation->next;
	if (!stream->first)
		stream->last = &stream->first;
	stream->n_over = operation->sequence;
	if (operation->record)
		psd_stand_in_drop_record(operation->record);
	psd_stand_in_publish(stream);
	free(operation);
	psd_stand_in_changed();
}

static void forget(const struct CUstream_st *stream)
{
	unsigned i = 0;

	while (all[i] != stream)
		i++;
	all[i] = all[--n_all];
}

static void *run_stream(void *argument)
{
	struct CUstream_st *const stream = argument;

	psd_stand_in_lock();
	while (stream->first || !stream->is_closing) {
		if (!stream->first) {
			psd_stand_in_await(&stream->more);
			continue;
		}
		delay(stream, stream->first->sequence);
		execute(stream->first);
		end_operation(stream);
	}
	forget(stream);
	pthread_cond_destroy(&stream->more);
	free(stream);
	psd_stand_in_unlock();
	return NULL;
}

/* ---- making streams ---- */

static struct CUstream_st *make_stream(void)
{
	struct CUstream_st *const stream = calloc(1, sizeof(*stream));
	struct CUstream_st **const more = realloc(all, (n_all + 1) * sizeof(*all));
	pthread_t thread;

	if (more)
		all = more;
	if (!stream || !more)
		goto failed;
	*stream = (struct CUstream_st){.device = psd_stand_in_device(), .number = n_streams, .last = &stream->first};
	pthread_cond_init(&stream->more, NULL);
	if (pthread_create(&thread, NULL, run_stream, stream) != 0)
		goto failed;
	pthread_detach(thread);
	n_streams++;
	all[n_all++] = stream;
	return stream;
failed:
	free(stream);
	return NULL;
}

/* The default stream is one of the device's, and other streams run beside it: all are made non-blocking. */
static struct CUstream_st *stream_of(cudaStream_t stream)
{
	const int device = psd_stand_in_device();

	if (stream)
		return stream;
	assert(device < MOST_DEVICES);
	if (!default_streams[device])
		default_streams[device] = make_stream();
	return default_streams[device];
}

int psd_stand_in_stream_device(cudaStream_t stream)
{
	return stream ? stream->device : psd_stand_in_device();
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
	cudaError_t error = psd_stand_in_begin(__func__);

	(void)priority;
	if (error == cudaSuccess && flags != cudaStreamNonBlocking) {
		fprintf(stderr, "stand-in: streams are non-blocking here, others would wait for the default stream\n");
		error = cudaErrorNotSupported;
	}
	if (error == cudaSuccess) {
		*stream = make_stream();
		error = *stream ? cudaSuccess : cudaErrorMemoryAllocation;
		psd_stand_in_count.streams += error == cudaSuccess;
	}
	return psd_stand_in_end(error);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
	return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	const cudaError_t error = psd_stand_in_begin(__func__);

	if (error == cudaSuccess)
		*least = *greatest = 0;
	return psd_stand_in_end(error);
}

/* Returns at once; queued operations are still executed. */
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	cudaError_t error = psd_stand_in_begin(__func__);

	if (!stream && error == cudaSuccess)
		error = cudaErrorInvalidResourceHandle;
	if (stream && psd_stand_in_may_release(error)) {
		if (stream->capture)
			psd_stand_in_drop_capture(stream->capture);
		stream->is_closing = true;
		stream->demanded = stream->n_queued;
		psd_stand_in_count.streams--;
		pthread_cond_signal(&stream->more);
		psd_stand_in_changed();
	}
	return psd_stand_in_end(error);
}

/* ---- queueing ---- */

struct psd_stand_in_capture **psd_stand_in_capture_of(cudaStream_t stream)
{
	return &stream->capture;
}

static bool is_work(const struct psd_stand_in_operation *operation)
{
	return operation->kind != PSD_STAND_IN_RECORD && operation->kind != PSD_STAND_IN_WAIT;
}

cudaError_t psd_stand_in_queue_operation(cudaStream_t handle, struct psd_stand_in_operation *operation)
{
	struct CUstream_st *const stream = stream_of(handle);
	const cudaError_t error = handle ? cudaSuccess : psd_stand_in_default_stream_error();

	if (!stream || !operation || error != cudaSuccess) {
		free(operation);
		return error != cudaSuccess ? error : cudaErrorMemoryAllocation;
	}
	if (stream->capture)
		return psd_stand_in_take_into(stream->capture, operation);
	n_enqueued += is_work(operation);
	operation->sequence = ++stream->n_queued;
	if (operation->record)
		operation->record->references++;
	psd_stand_in_publish(operation);
	*stream->last = operation;
	stream->last = &operation->next;
	pthread_cond_signal(&stream->more);
	return cudaSuccess;
}

unsigned psd_stand_in_enqueued(void)
{
	psd_stand_in_lock();
	const unsigned n = n_enqueued;

	psd_stand_in_unlock();
	return n;
}

struct psd_stand_in_operation *psd_stand_in_make_operation(enum psd_stand_in_operation_kind kind, void (*run)(void *),
							   size_t arguments_bytes)
{
	struct psd_stand_in_operation *const operation = malloc(sizeof(*operation) + arguments_bytes);

	if (operation)
		*operation = (struct psd_stand_in_operation){.kind = kind, .run = run, .bytes = arguments_bytes};
	return operation;
}

cudaError_t psd_stand_in_queue(cudaStream_t stream, void (*run)(void *arguments), const void *arguments, size_t bytes,
			       const void *tail, size_t tail_bytes)
{
	struct psd_stand_in_operation *const operation =
		psd_stand_in_make_operation(PSD_STAND_IN_WORK, run, bytes + tail_bytes);

	if (operation && bytes > 0)
		memcpy(operation->arguments, arguments, bytes);
	if (operation && tail_bytes > 0)
		memcpy((char *)operation->arguments + bytes, tail, tail_bytes);
	return psd_stand_in_queue_operation(stream, operation);
}

cudaError_t psd_stand_in_queue_work(cudaStream_t stream, void (*run)(void *arguments), const void *arguments,
				    size_t bytes)
{
	if (psd_stand_in_stream_device(stream) != psd_stand_in_device()) {
		fprintf(stderr, "stand-in: the stream is of device %d, the thread's is %d\n",
			psd_stand_in_stream_device(stream), psd_stand_in_device());
		return cudaErrorInvalidResourceHandle;
	}
	return psd_stand_in_queue(stream, run, arguments, bytes, NULL, 0);
}

void psd_stand_in_launch(cudaStream_t stream, void (*run)(void *arguments), const void *arguments, size_t bytes)
{
	cudaError_t error = psd_stand_in_begin("launch");

	if (error == cudaSuccess)
		error = psd_stand_in_queue_work(stream, run, arguments, bytes);
	psd_stand_in_end(error);
}

struct host_function {
	cudaHostFn_t run;
	void *argument;
};

static void run_host_function(void *arguments)
{
	const struct host_function *const function = arguments;

	function->run(function->argument);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t run, void *argument)
{
	const struct host_function function = {run, argument};
	cudaError_t error = psd_stand_in_begin(__func__);
	struct psd_stand_in_operation *operation;

	if (error == cudaSuccess) {
		operation = psd_stand_in_make_operation(PSD_STAND_IN_HOST, run_host_function, sizeof(function));
		if (operation)
			memcpy(operation->arguments, &function, sizeof(function));
		error = psd_stand_in_queue_operation(stream, operation);
	}
	return psd_stand_in_end(error);
}

/* ---- events' records ---- */

struct psd_stand_in_record *psd_stand_in_queue_record(cudaStream_t handle)
{
	struct psd_stand_in_operation *const operation = psd_stand_in_make_operation(PSD_STAND_IN_RECORD, NULL, 0);
	struct psd_stand_in_record *const record = calloc(1, sizeof(*record));
	struct CUstream_st *const stream = stream_of(handle);

	if (!operation || !record || !stream) {
		free(operation);
		free(record);
		return NULL;
	}
	*record = (struct psd_stand_in_record){.references = 1, .stream = stream, .sequence = stream->n_queued + 1};
	operation->record = record;
	if (psd_stand_in_queue_operation(stream, operation) == cudaSuccess)
		return record;
	free(record);
	return NULL;
}

void psd_stand_in_drop_record(struct psd_stand_in_record *record)
{
	if (--record->references == 0)
		free(record);
}

static void demand(struct CUstream_st *stream, uint64_t sequence)
{
	if (stream->demanded >= sequence)
		return;
	stream->demanded = sequence;
	psd_stand_in_changed();
}

void psd_stand_in_demand_record(struct psd_stand_in_record *record)
{
	if (!record->is_over)
		demand(record->stream, record->sequence);
}

cudaError_t psd_stand_in_queue_wait(cudaStream_t stream, struct psd_stand_in_record *record)
{
	struct psd_stand_in_operation *const operation = psd_stand_in_make_operation(PSD_STAND_IN_WAIT, NULL, 0);

	if (operation)
		operation->record = record;
	return psd_stand_in_queue_operation(stream, operation);
}

cudaError_t psd_stand_in_await_record(struct psd_stand_in_record *record)
{
	psd_stand_in_demand_record(record);
	while (!record->is_over && !psd_stand_in_is_lost())
		psd_stand_in_await_change(0);
	psd_stand_in_meet(record);
	return psd_stand_in_lost_error();
}

/* ---- waiting for streams ---- */

static bool is_idle(const struct CUstream_st *stream)
{
	return stream->n_over == stream->n_queued;
}

static cudaError_t await_stream(struct CUstream_st *stream)
{
	const uint64_t sequence = stream->n_queued;

	demand(stream, sequence);
	while (stream->n_over < sequence && !psd_stand_in_is_lost())
		psd_stand_in_await_change(0);
	psd_stand_in_meet(stream);
	return psd_stand_in_lost_error();
}

void psd_stand_in_be_late(struct CUstream_st *stream, uint64_t sequence)
{
	if (stream->n_over >= sequence)
		return;
	stream->late = sequence;
}

/* Whether a wait for the whole stream is left out. */
static bool is_skipped(const char *function, const void *site, cudaStream_t handle)
{
	struct CUstream_st *const stream = stream_of(handle);

	if (!psd_stand_in_is_skipped(function, site))
		return false;
	if (stream)
		psd_stand_in_be_late(stream, stream->n_queued);
	return true;
}

cudaError_t psd_stand_in_finish(cudaStream_t handle)
{
	struct CUstream_st *const stream = stream_of(handle);

	return stream ? await_stream(stream) : cudaErrorMemoryAllocation;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	cudaError_t error = psd_stand_in_begin_wait(__func__, stream);

	if (error == cudaSuccess && !is_skipped(__func__, __builtin_return_address(0), stream))
		error = psd_stand_in_finish(stream);
	return psd_stand_in_end(error);
}

/* A caller that queries once is expected to go on: from then on nothing is held. */
cudaError_t cudaStreamQuery(cudaStream_t handle)
{
	cudaError_t error = psd_stand_in_begin_wait(__func__, handle);

	if (error == cudaSuccess) {
		struct CUstream_st *const stream = stream_of(handle);

		if (!stream)
			error = cudaErrorMemoryAllocation;
		else if (is_idle(stream))
			psd_stand_in_meet(stream);
		else
			error = cudaErrorNotReady;
		if (error == cudaErrorNotReady)
			demand(stream, stream->n_queued);
	}
	return psd_stand_in_end(error);
}

/* Waits for the streams of the thread's device. The list is read again after each wait, because a stream may have
 * ended. */
static cudaError_t await_all(void)
{
	for (;;) {
		struct CUstream_st *busy = NULL;

		for (unsigned i = 0; i < n_all; i++) {
			if (all[i]->device != psd_stand_in_device())
				continue;
			if (!is_idle(all[i]))
				busy = all[i];
			psd_stand_in_meet(all[i]);
		}
		if (!busy || psd_stand_in_is_lost())
			return psd_stand_in_lost_error();
		demand(busy, busy->n_queued);
		psd_stand_in_await_change(0);
	}
}

cudaError_t cudaDeviceSynchronize(void)
{
	cudaError_t error = psd_stand_in_begin(__func__);

	if (error == cudaSuccess)
		error = psd_stand_in_forbid_all();
	if (error == cudaSuccess && !psd_stand_in_is_skipped(__func__, __builtin_return_address(0)))
		error = await_all();
	return psd_stand_in_end(error);
}
