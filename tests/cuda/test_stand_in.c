/* The stand-in's streams and events: what CUDA promises holds with every seed, and what a program must not rely on
 * fails with some. Operations that wait at a gate make an order certain. */
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include "tests/cuda/apart_helper.h"
#include "tests/cuda/stand_in.h"
#include "tests/cuda/streams_helper.h"
#include "tests/test_with.h"

enum { NO_WAIT = 0 };

/* ---- order ---- */

Test(stand_in, operations_of_a_stream_run_in_their_order)
{
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct streams with;

		psd_stand_in_set_seed(seed);
		open_streams(&with);
		put(with.first, with.values, 1);
		for (unsigned i = 0; i < 5; i++)
			combine(with.first, with.values, with.values, 2, 1);
		must(cudaMemcpyAsync(with.host, with.values, BYTES, cudaMemcpyDeviceToHost, with.first));
		must(cudaStreamSynchronize(with.first));
		cr_assert(all_are(with.host, 63), "seed %u", (unsigned)seed); /* x + 1 doubles: 2 * 2^5 - 1 */
		close_streams(&with);
	}
}

/* Values put on one stream are copied on the other, behind an event; one of the four waits may be left out. */
static void cross_streams(const void *left_out)
{
	const unsigned nth = ((const unsigned *)left_out)[0];
	struct streams with;

	psd_stand_in_set_seed(((const unsigned *)left_out)[1]);
	psd_stand_in_skip_one_wait(nth);
	open_streams(&with);
	put(with.first, with.values, 3);
	must(cudaEventRecord(with.event, with.first));
	must(cudaStreamWaitEvent(with.second, with.event, 0)); /* 1 */
	combine(with.second, with.other, with.values, 2, 0);
	must(cudaEventRecord(with.event, with.second));
	must(cudaEventSynchronize(with.event)); /* 2 */
	must(cudaMemcpyAsync(with.host, with.other, BYTES, cudaMemcpyDeviceToHost, with.first));
	must(cudaStreamSynchronize(with.first)); /* 3 */
	APART_CHECK(all_are(with.host, 6));
	must(cudaMemcpyAsync(with.host, with.values, BYTES, cudaMemcpyDeviceToHost, with.second));
	must(cudaDeviceSynchronize()); /* 4 */
	APART_CHECK(all_are(with.host, 3));
}

/* Seeds with which the part goes wrong. */
static unsigned noticed_with(unsigned nth)
{
	unsigned n = 0;

	for (unsigned seed = 1; seed <= SEEDS; seed++)
		n += !run_apart(cross_streams, (const unsigned[]){nth, seed}).is_well;
	return n;
}

Test(stand_in, waits_hold_with_every_seed)
{
	cr_assert_eq(noticed_with(NO_WAIT), 0);
}

Test(stand_in, each_wait_that_is_left_out_is_noticed)
{
	/* The thread sanitiser does not need the delays. */
#ifdef __SANITIZE_THREAD__
	const unsigned at_least = SEEDS;
#else
	const unsigned at_least = 1;
#endif

	for (unsigned nth = 1; nth <= 4; nth++) {
		const unsigned noticed = noticed_with(nth);

		cr_assert_geq(noticed, at_least, "wait %u: with %u seeds", nth, noticed);
	}
}

Test(stand_in, a_wait_is_for_the_recording_before_it)
{
	struct streams with;
	sem_t gate;

	sem_init(&gate, 0, 0);
	open_streams(&with);
	must(cudaEventRecord(with.event, with.first));
	must(cudaStreamWaitEvent(with.second, with.event, 0));
	close_gate(with.first, &gate);
	must(cudaEventRecord(with.event, with.first)); /* which the second stream does not wait for */
	must(cudaStreamSynchronize(with.second));
	cr_assert_eq(cudaEventQuery(with.event), cudaErrorNotReady);
	cr_assert_eq(cudaStreamQuery(with.first), cudaErrorNotReady);
	cr_assert_eq(cudaGetLastError(), cudaErrorNotReady); /* a caller must expect to find it there */
	sem_post(&gate);
	must(cudaEventSynchronize(with.event));
	must(cudaEventQuery(with.event));
	close_streams(&with);
}

STREAMS_TEST(stand_in, an_event_that_was_never_recorded_is_over)
{
	must(cudaEventQuery(with->event));
	must(cudaEventSynchronize(with->event));
	must(cudaStreamWaitEvent(with->first, with->event, 0));
}

STREAMS_TEST(stand_in, time_between_events_is_that_of_what_lies_between)
{
	cudaEvent_t end, untimed;
	float msec = -1;

	must(cudaEventCreateWithFlags(&end, cudaEventBlockingSync));
	must(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
	cr_assert_eq(cudaEventElapsedTime(&msec, with->event, end), cudaErrorInvalidResourceHandle);
	must(cudaEventRecord(with->event, with->first));
	must(cudaEventRecord(untimed, with->first));
	put(with->first, with->values, 1);
	must(cudaEventRecord(end, with->first));
	must(cudaEventSynchronize(end));
	must(cudaEventElapsedTime(&msec, with->event, end));
	cr_assert_geq(msec, 0);
	cr_assert_eq(cudaEventElapsedTime(&msec, untimed, end), cudaErrorInvalidResourceHandle);
	must(cudaEventDestroy(end));
	must(cudaEventDestroy(untimed));
}

static void post(void *semaphore)
{
	sem_post(semaphore);
}

Test(stand_in, work_begins_even_if_nobody_waits)
{
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct streams with;
		sem_t is_over;

		sem_init(&is_over, 0, 0);
		psd_stand_in_set_seed(seed);
		open_streams(&with);
		put(with.first, with.values, 1);
		must(cudaLaunchHostFunc(with.first, post, &is_over));
		sem_wait(&is_over);
		close_streams(&with);
	}
}

static void call_in_host_function(void *error)
{
	*(cudaError_t *)error = cudaDeviceSynchronize();
}

STREAMS_TEST(stand_in, a_host_function_must_not_call)
{
	cudaError_t error = cudaSuccess;

	must(cudaLaunchHostFunc(with->first, call_in_host_function, &error));
	must(cudaStreamSynchronize(with->first));
	cr_assert_eq(error, cudaErrorNotPermitted);
}

STREAMS_TEST(stand_in, a_stream_that_is_destroyed_still_does_its_work)
{
	cudaStream_t passing;

	must(cudaStreamCreateWithFlags(&passing, cudaStreamNonBlocking));
	put(passing, with->values, 5);
	must(cudaEventRecord(with->event, passing));
	must(cudaStreamDestroy(passing));
	must(cudaStreamWaitEvent(with->first, with->event, 0));
	must(cudaMemcpyAsync(with->host, with->values, BYTES, cudaMemcpyDeviceToHost, with->first));
	must(cudaStreamSynchronize(with->first));
	cr_assert(all_are(with->host, 5));
}

/* One place in the program, however the compiler repeats the loop around it. */
__attribute__((noinline)) static cudaError_t await(cudaStream_t stream)
{
	const cudaError_t error = cudaStreamSynchronize(stream);

	__asm__ volatile(""); /* else the call is a jump, and returns to the caller's caller */
	return error;
}

STREAMS_TEST(stand_in, places_that_wait_are_listed)
{
	for (unsigned i = 0; i < 3; i++)
		must(await(with->first));
	must(cudaEventRecord(with->event, with->first));
	must(cudaEventSynchronize(with->event));
	must(cudaEventQuery(with->event)); /* the recording that was waited for */
	cr_assert_eq(psd_stand_in_waits(), 2);
	cr_assert_str_eq(psd_stand_in_wait(0).function, "cudaStreamSynchronize");
	cr_assert_eq(psd_stand_in_wait(0).calls, 3);
	cr_assert_str_eq(psd_stand_in_wait(1).function, "cudaEventSynchronize");
	cr_assert_neq(psd_stand_in_wait(0).site, psd_stand_in_wait(1).site);
}

/* A place that waits would do so for ever the second time, if it were not left out. */
static void pass_a_place(bool is_told_by_address)
{
	struct streams with;
	sem_t gate;

	sem_init(&gate, 0, 0);
	open_streams(&with);
	for (unsigned i = 0; i < 3; i++) {
		if (i == 1)
			close_gate(with.first, &gate);
		must(await(with.first));
		if (is_told_by_address)
			psd_stand_in_skip_wait_at(psd_stand_in_wait(0).site);
		else
			psd_stand_in_skip_wait(0);
	}
	sem_post(&gate);
	close_streams(&with);
}

TEST_ROW(stand_in, a_place_is_left_out_by_its_number, pass_a_place(false))
TEST_ROW(stand_in, a_place_is_left_out_by_its_address, pass_a_place(true))
