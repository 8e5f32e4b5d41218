/* Graphs of the stand-in: captured operations are not executed, launched ones are, and forbidden calls fail. */
#include "tests/cuda/streams_helper.h"

#include <pthread.h>

enum { LAUNCHES = 3 };

static cudaGraphExec_t instantiate(cudaStream_t stream)
{
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	must(cudaStreamEndCapture(stream, &graph));
	must(cudaGraphInstantiate(&exec, graph, 0));
	must(cudaGraphDestroy(graph));
	return exec;
}

/* values = 2 values + 1 */
static cudaGraphExec_t capture_doubling(const struct streams *with)
{
	must(cudaStreamBeginCapture(with->first, cudaStreamCaptureModeThreadLocal));
	combine(with->first, with->other, with->values, 2.0f, 0.0f);
	combine(with->first, with->values, with->other, 1.0f, 1.0f);
	return instantiate(with->first);
}

static float first_value(const struct streams *with)
{
	must(cudaMemcpyAsync(with->host, with->values, BYTES, cudaMemcpyDeviceToHost, with->first));
	must(cudaStreamSynchronize(with->first));
	cr_expect(all_are(with->host, with->host[0]));
	return with->host[0];
}

Test(stand_in_graphs, are_executed_when_they_are_launched)
{
	for (unsigned seed = 0; seed < SEEDS; seed++) {
		cudaGraphExec_t exec;
		struct streams with;
		unsigned enqueued;

		psd_stand_in_set_seed(seed);
		open_streams(&with);
		put(with.first, with.values, 3.0f);
		exec = capture_doubling(&with);
		cr_expect_eq(first_value(&with), 3.0f);
		enqueued = psd_stand_in_enqueued();
		for (unsigned l = 0; l < LAUNCHES; l++)
			must(cudaGraphLaunch(exec, with.first));
		cr_expect_eq(psd_stand_in_enqueued() - enqueued, LAUNCHES); /* with two kernels each */
		cr_expect_eq(first_value(&with), 31.0f);		    /* 3, 7, 15, 31 */
		must(cudaGraphExecDestroy(exec));
		close_streams(&with);
	}
}

/* As the arguments were when it was captured; memory as it is when it is launched, the host's too. */
STREAMS_TEST(stand_in_graphs, read_memory_when_they_are_launched)
{
	cudaGraphExec_t exec;
	float pageable[VALUES];

	must(cudaStreamBeginCapture(with->first, cudaStreamCaptureModeRelaxed));
	must(cudaMemcpyAsync(with->values, pageable, BYTES, cudaMemcpyHostToDevice, with->first));
	exec = instantiate(with->first);
	for (unsigned i = 0; i < VALUES; i++)
		pageable[i] = 5.0f;
	must(cudaGraphLaunch(exec, with->first));
	cr_expect_eq(first_value(with), 5.0f);
	must(cudaGraphExecDestroy(exec));
}

/* ---- forbidden calls ---- */

static cudaError_t take_memory(const struct streams *with)
{
	void *block;

	(void)with;
	return cudaMalloc(&block, BYTES);
}

static cudaError_t synchronise(const struct streams *with)
{
	return cudaStreamSynchronize(with->first);
}

static cudaError_t synchronise_other(const struct streams *with)
{
	return cudaStreamSynchronize(with->second);
}

static cudaError_t query(const struct streams *with)
{
	return cudaStreamQuery(with->first);
}

static cudaError_t query_event(const struct streams *with)
{
	return cudaEventQuery(with->event);
}

static cudaError_t synchronise_all(const struct streams *with)
{
	(void)with;
	return cudaDeviceSynchronize();
}

static cudaError_t use_the_default_stream(const struct streams *with)
{
	return cudaMemsetAsync(with->other, 0, BYTES, NULL);
}

static cudaError_t wait_for_what_is_outside(const struct streams *with)
{
	return cudaStreamWaitEvent(with->first, with->event, 0);
}

static const struct {
	cudaError_t (*call)(const struct streams *with);
	cudaError_t error;
	bool is_of_thread; /* another one may call it */
} forbidden[] = {
	{take_memory, cudaErrorStreamCaptureUnsupported, true},
	{synchronise, cudaErrorStreamCaptureUnsupported, false},
	{synchronise_other, cudaErrorStreamCaptureUnsupported, true},
	{query, cudaErrorStreamCaptureUnsupported, false},
	{query_event, cudaErrorStreamCaptureUnsupported, true},
	{synchronise_all, cudaErrorStreamCaptureUnsupported, false},
	{use_the_default_stream, cudaErrorStreamCaptureImplicit, true},
	{wait_for_what_is_outside, cudaErrorStreamCaptureIsolation, false},
};

enum { FORBIDDEN = sizeof(forbidden) / sizeof(forbidden[0]) };

STREAMS_TEST(stand_in_graphs, what_capturing_forbids_ends_it)
{
	cudaGraph_t graph;

	must(cudaEventRecord(with->event, with->first));
	for (unsigned i = 0; i < FORBIDDEN; i++) {
		must(cudaStreamBeginCapture(with->first, cudaStreamCaptureModeThreadLocal));
		cr_expect_eq(forbidden[i].call(with), forbidden[i].error, "call %u", i);
		cr_expect_eq(cudaMemsetAsync(with->values, 0, BYTES, with->first), cudaErrorStreamCaptureInvalidated,
			     "after call %u", i);
		cr_expect_eq(cudaStreamEndCapture(with->first, &graph), cudaErrorStreamCaptureInvalidated);
		cr_expect_null(graph);
		must(cudaMemsetAsync(with->values, 0, BYTES, with->first)); /* and the stream goes on */
	}
}

static void *call_all(void *context)
{
	const struct streams *const with = context;

	for (unsigned i = 0; i < FORBIDDEN; i++)
		if (forbidden[i].is_of_thread)
			(void)forbidden[i].call(with);
	return NULL;
}

static cudaError_t capture_beside(struct streams *with, enum cudaStreamCaptureMode mode)
{
	cudaError_t error;
	cudaGraph_t graph;
	pthread_t thread;

	must(cudaStreamBeginCapture(with->first, mode));
	cr_assert_eq(pthread_create(&thread, NULL, call_all, with), 0);
	pthread_join(thread, NULL);
	error = cudaStreamEndCapture(with->first, &graph);
	if (graph)
		must(cudaGraphDestroy(graph));
	return error;
}

Test(stand_in_graphs, others_may_do_it_where_the_thread_alone_captures)
{
	struct streams with;

	open_streams(&with);
	must(cudaEventRecord(with.event, with.second));
	cr_expect_eq(capture_beside(&with, cudaStreamCaptureModeThreadLocal), cudaSuccess);
	cr_expect_eq(capture_beside(&with, cudaStreamCaptureModeGlobal), cudaErrorStreamCaptureInvalidated);
	must(cudaDeviceSynchronize()); /* the other thread filled memory on the default stream */
	drop_streams(&with);
}

STREAMS_TEST(stand_in_graphs, an_event_in_a_graph_cannot_be_waited_for)
{
	cudaGraphExec_t exec;

	must(cudaStreamBeginCapture(with->first, cudaStreamCaptureModeThreadLocal));
	put(with->first, with->values, 1.0f);
	must(cudaEventRecord(with->event, with->first));
	must(cudaStreamWaitEvent(with->first, with->event, 0));
	exec = instantiate(with->first);
	cr_expect_eq(cudaEventSynchronize(with->event), cudaErrorCapturedEvent);
	cr_expect_eq(cudaEventQuery(with->event), cudaErrorCapturedEvent);
	must(cudaGraphExecDestroy(exec));
}

STREAMS_TEST(stand_in_graphs, captures_begin_and_end_once)
{
	cudaGraph_t graph;

	cr_expect_eq(cudaStreamEndCapture(with->first, &graph), cudaErrorIllegalState);
	cr_expect_eq(cudaStreamBeginCapture(NULL, cudaStreamCaptureModeThreadLocal), cudaErrorStreamCaptureUnsupported);
	must(cudaStreamBeginCapture(with->first, cudaStreamCaptureModeThreadLocal));
	cr_expect_eq(cudaStreamBeginCapture(with->first, cudaStreamCaptureModeThreadLocal), cudaErrorIllegalState);
	must(cudaStreamEndCapture(with->first, &graph));
	must(cudaGraphDestroy(graph));
	cr_expect_eq(cudaGraphDestroy(graph), cudaErrorInvalidValue);
}

/* ---- destroyed graphs ---- */

STREAMS_TEST(stand_in_graphs, one_that_is_destroyed_is_not_launched)
{
	cudaGraphExec_t exec;

	put(with->first, with->values, 1.0f);
	exec = capture_doubling(with);
	cr_expect_eq(psd_stand_in_held().graphs, 1);
	must(cudaGraphExecDestroy(exec));
	cr_expect_eq(psd_stand_in_held().graphs, 0);
	cr_expect_eq(cudaGraphLaunch(exec, with->first), cudaErrorInvalidValue);
	cr_expect_eq(cudaGraphExecDestroy(exec), cudaErrorInvalidValue);
}

Test(stand_in_graphs, one_that_is_destroyed_too_soon_loses_the_device)
{
	struct streams with;
	cudaGraphExec_t exec;
	sem_t gate;

	sem_init(&gate, 0, 0);
	open_streams(&with);
	put(with.first, with.values, 1.0f);
	exec = capture_doubling(&with);
	close_gate(with.first, &gate);
	must(cudaGraphLaunch(exec, with.first));
	must(cudaGraphExecDestroy(exec));
	sem_post(&gate);
	cr_expect_eq(cudaStreamSynchronize(with.first), cudaErrorIllegalAddress);
	drop_streams(&with);
}
