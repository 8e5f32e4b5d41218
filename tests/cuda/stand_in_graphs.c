/* The stand-in's graphs: a stream that captures keeps what is queued on it, and what is instantiated of that is
 * launched as one operation. Only one stream takes part in a capture. Handles of what is destroyed are never used
 * twice, so that a use of one is noticed. Refuses to know what operations do. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/stand_in_operations.h"

struct operations {
	struct psd_stand_in_operation *first, **last;
	size_t n;
};

struct CUgraph_st {
	struct CUgraph_st *next; /* in the list of all graphs; none ever leaves it */
	struct operations operations;
	bool is_destroyed;
};

struct CUgraphExec_st {
	struct CUgraphExec_st *next;
	struct operations operations;
	int device;
	unsigned n_queued; /* launches that are not over */
	bool is_destroyed;
};

struct psd_stand_in_capture {
	struct psd_stand_in_capture *next; /* in the list of captures under way */
	cudaStream_t stream;
	enum cudaStreamCaptureMode mode;
	pthread_t thread; /* that began it */
	uint64_t number;
	struct operations operations;
	bool is_invalid;
};

static struct psd_stand_in_capture *captures;
static uint64_t n_captures;
static struct CUgraph_st *graphs;
static struct CUgraphExec_st *launchable;

/* ---- operations ---- */

static void append(struct operations *operations, struct psd_stand_in_operation *operation)
{
	operation->next = NULL;
	*(operations->n ? operations->last : &operations->first) = operation;
	operations->last = &operation->next;
	operations->n++;
}

static void free_operations(struct operations *operations)
{
	while (operations->first) {
		struct psd_stand_in_operation *const operation = operations->first;

		operations->first = operation->next;
		free(operation);
	}
	operations->n = 0;
}

static bool copy_operations(const struct operations *from, struct operations *to)
{
	for (const struct psd_stand_in_operation *each = from->first; each; each = each->next) {
		struct psd_stand_in_operation *const copy =
			psd_stand_in_make_operation(each->kind, each->run, each->bytes);

		if (!copy)
			return false;
		memcpy(copy->arguments, each->arguments, each->bytes);
		append(to, copy);
	}
	return true;
}

/* ---- capturing ---- */

static bool is_own(const struct psd_stand_in_capture *capture)
{
	return pthread_equal(capture->thread, pthread_self());
}

/* Whether the capture lets the calling thread do what may wait for streams, or take memory. */
static bool forbids(const struct psd_stand_in_capture *capture)
{
	return capture->mode == cudaStreamCaptureModeGlobal ||
	       (capture->mode == cudaStreamCaptureModeThreadLocal && is_own(capture));
}

static cudaError_t invalidate_those(bool (*among)(const struct psd_stand_in_capture *), cudaError_t error)
{
	cudaError_t found = cudaSuccess;

	for (struct psd_stand_in_capture *each = captures; each; each = each->next)
		if (among(each)) {
			each->is_invalid = true;
			found = error;
		}
	return found;
}

cudaError_t psd_stand_in_default_stream_error(void)
{
	return invalidate_those(forbids, cudaErrorStreamCaptureImplicit);
}

static bool any(const struct psd_stand_in_capture *capture)
{
	return capture != NULL;
}

cudaError_t psd_stand_in_forbid_all(void)
{
	return invalidate_those(any, cudaErrorStreamCaptureUnsupported);
}

cudaError_t psd_stand_in_begin_unsafe(const char *function)
{
	const cudaError_t error = psd_stand_in_begin(function);

	return error != cudaSuccess ? error : invalidate_those(forbids, cudaErrorStreamCaptureUnsupported);
}

static struct psd_stand_in_capture *capture_of(cudaStream_t stream)
{
	return stream ? *psd_stand_in_capture_of(stream) : NULL;
}

cudaError_t psd_stand_in_begin_wait(const char *function, cudaStream_t stream)
{
	const cudaError_t error = psd_stand_in_begin_unsafe(function);

	if (error != cudaSuccess || !capture_of(stream))
		return error;
	return psd_stand_in_invalidate(stream, cudaErrorStreamCaptureUnsupported);
}

uint64_t psd_stand_in_is_captured(cudaStream_t stream)
{
	const struct psd_stand_in_capture *const capture = capture_of(stream);

	return capture ? capture->number : 0;
}

cudaError_t psd_stand_in_invalidate(cudaStream_t stream, cudaError_t error)
{
	struct psd_stand_in_capture *const capture = capture_of(stream);

	if (capture)
		capture->is_invalid = true;
	return error;
}

cudaError_t psd_stand_in_take_into(struct psd_stand_in_capture *capture, struct psd_stand_in_operation *operation)
{
	const bool is_taken =
		!capture->is_invalid && (operation->kind == PSD_STAND_IN_WORK || operation->kind == PSD_STAND_IN_HOST);

	if (is_taken) {
		append(&capture->operations, operation);
		return cudaSuccess;
	}
	if (operation->kind == PSD_STAND_IN_GRAPH) {
		fprintf(stderr, "stand-in: graphs in graphs are not known here\n");
		capture->is_invalid = true;
	}
	free(operation);
	return cudaErrorStreamCaptureInvalidated;
}

void psd_stand_in_drop_capture(struct psd_stand_in_capture *capture)
{
	struct psd_stand_in_capture **place = &captures;

	while (*place != capture)
		place = &(*place)->next;
	*place = capture->next;
	*psd_stand_in_capture_of(capture->stream) = NULL;
	free_operations(&capture->operations);
	free(capture);
}

static cudaError_t begin_capture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
	struct psd_stand_in_capture *const capture = calloc(1, sizeof(*capture));

	if (!capture)
		return cudaErrorMemoryAllocation;
	*capture = (struct psd_stand_in_capture){
		.next = captures, .stream = stream, .mode = mode, .thread = pthread_self(), .number = ++n_captures};
	captures = *psd_stand_in_capture_of(stream) = capture;
	return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
	cudaError_t error = psd_stand_in_begin(__func__);

	if (error == cudaSuccess && !stream)
		error = cudaErrorStreamCaptureUnsupported;
	if (error == cudaSuccess && capture_of(stream))
		error = cudaErrorIllegalState;
	if (error == cudaSuccess)
		error = begin_capture(stream, mode);
	return psd_stand_in_end(error);
}

static cudaError_t graph_of(struct psd_stand_in_capture *capture, cudaGraph_t *graph)
{
	struct CUgraph_st *made;

	if (capture->is_invalid)
		return cudaErrorStreamCaptureInvalidated;
	made = calloc(1, sizeof(*made));
	if (!made)
		return cudaErrorMemoryAllocation;
	*made = (struct CUgraph_st){.next = graphs, .operations = capture->operations};
	capture->operations = (struct operations){.n = 0};
	graphs = *graph = made;
	psd_stand_in_count.graphs++;
	return cudaSuccess;
}

/* Where it fails there is no graph; but for a wrong thread's call the stream captures no longer. */
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
	cudaError_t error = psd_stand_in_begin(__func__);
	struct psd_stand_in_capture *const capture = capture_of(stream);

	*graph = NULL;
	if (!capture && error == cudaSuccess)
		error = cudaErrorIllegalState;
	if (capture && error == cudaSuccess && capture->mode != cudaStreamCaptureModeRelaxed && !is_own(capture))
		return psd_stand_in_end(cudaErrorStreamCaptureWrongThread);
	if (capture && error == cudaSuccess)
		error = graph_of(capture, graph);
	if (capture)
		psd_stand_in_drop_capture(capture);
	return psd_stand_in_end(error);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
	cudaError_t error = psd_stand_in_begin(__func__);
	const struct psd_stand_in_capture *const capture = capture_of(stream);

	if (error == cudaSuccess)
		*status = !capture		? cudaStreamCaptureStatusNone
			  : capture->is_invalid ? cudaStreamCaptureStatusInvalidated
						: cudaStreamCaptureStatusActive;
	return psd_stand_in_end(error);
}

/* ---- graphs ---- */

/* With nodes = NULL it tells how many there are; the stand-in has no more of them. */
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *n_nodes)
{
	cudaError_t error = psd_stand_in_begin(__func__);

	if (error == cudaSuccess && (!graph || graph->is_destroyed))
		error = cudaErrorInvalidValue;
	if (error == cudaSuccess && nodes)
		error = cudaErrorNotSupported;
	if (error == cudaSuccess)
		*n_nodes = graph->operations.n;
	return psd_stand_in_end(error);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	cudaError_t error = psd_stand_in_begin(__func__);

	if (error == cudaSuccess && (!graph || graph->is_destroyed))
		error = cudaErrorInvalidValue;
	if (graph && !graph->is_destroyed && psd_stand_in_may_release(error)) {
		graph->is_destroyed = true;
		free_operations(&graph->operations);
		psd_stand_in_count.graphs--;
	}
	return psd_stand_in_end(error);
}

static cudaError_t instantiate(cudaGraphExec_t *exec, const struct CUgraph_st *graph)
{
	struct CUgraphExec_st *const made = calloc(1, sizeof(*made));

	if (!made)
		return cudaErrorMemoryAllocation;
	made->device = psd_stand_in_device();
	if (!copy_operations(&graph->operations, &made->operations)) {
		free_operations(&made->operations);
		free(made);
		return cudaErrorMemoryAllocation;
	}
	made->next = launchable;
	launchable = *exec = made;
	psd_stand_in_count.graphs++;
	return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
	cudaError_t error = psd_stand_in_begin_unsafe(__func__);

	if (error == cudaSuccess && (!graph || graph->is_destroyed || flags != 0))
		error = cudaErrorInvalidValue;
	if (error == cudaSuccess)
		error = instantiate(exec, graph);
	return psd_stand_in_end(error);
}

/* Queued launches notice that the graph is gone. */
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
	cudaError_t error = psd_stand_in_begin(__func__);

	if (error == cudaSuccess && (!exec || exec->is_destroyed))
		error = cudaErrorInvalidValue;
	if (exec && !exec->is_destroyed && psd_stand_in_may_release(error)) {
		exec->is_destroyed = true;
		if (exec->n_queued == 0)
			free_operations(&exec->operations);
		psd_stand_in_count.graphs--;
	}
	return psd_stand_in_end(error);
}

static cudaError_t launch(cudaGraphExec_t exec, cudaStream_t stream)
{
	struct psd_stand_in_operation *const operation = psd_stand_in_make_operation(PSD_STAND_IN_GRAPH, NULL, 0);
	cudaError_t error;

	if (operation)
		operation->graph = exec;
	error = psd_stand_in_queue_operation(stream, operation);
	exec->n_queued += error == cudaSuccess;
	return error;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
	cudaError_t error = psd_stand_in_begin(__func__);

	if (error == cudaSuccess && (!exec || exec->is_destroyed))
		error = cudaErrorInvalidValue;
	if (error == cudaSuccess && exec->device != psd_stand_in_stream_device(stream))
		error = cudaErrorInvalidResourceHandle;
	if (error == cudaSuccess)
		error = launch(exec, stream);
	return psd_stand_in_end(error);
}

struct psd_stand_in_operation *psd_stand_in_graph_operations(cudaGraphExec_t exec)
{
	if (!exec->is_destroyed)
		return exec->operations.first;
	fprintf(stderr, "stand-in: a graph was destroyed before it was executed\n");
	psd_stand_in_lose(cudaErrorIllegalAddress);
	return NULL;
}

void psd_stand_in_end_graph_launch(cudaGraphExec_t exec)
{
	if (--exec->n_queued == 0 && exec->is_destroyed)
		free_operations(&exec->operations);
}
