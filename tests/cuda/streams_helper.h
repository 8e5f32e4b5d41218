/* Common start of the stand-in's tests: two streams, memory, and operations on it. */
#ifndef PSD_TESTS_CUDA_STREAMS_HELPER_H
#define PSD_TESTS_CUDA_STREAMS_HELPER_H

#include <criterion/criterion.h>
#include <math.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>

#include "tests/cuda/stand_in.h"
#include "tests/test_with.h"

enum { SEEDS = 16, VALUES = 64 };

#define BYTES (VALUES * sizeof(float))

/* ---- operations ---- */

struct put {
	float *to;
	float value;
};

static inline void run_put(void *arguments)
{
	const struct put *const put = arguments;

	for (unsigned i = 0; i < VALUES; i++)
		put->to[i] = put->value;
}

static inline void put(cudaStream_t stream, float *to, float value)
{
	psd_stand_in_launch(stream, run_put, &(struct put){to, value}, sizeof(struct put));
}

struct combine {
	float *to;
	const float *from;
	float ratio, summand;
};

/* to = ratio from + summand */
static inline void run_combine(void *arguments)
{
	const struct combine *const combine = arguments;

	for (unsigned i = 0; i < VALUES; i++)
		combine->to[i] = combine->ratio * combine->from[i] + combine->summand;
}

static inline void combine(cudaStream_t stream, float *to, const float *from, float ratio, float summand)
{
	psd_stand_in_launch(stream, run_combine, &(struct combine){to, from, ratio, summand}, sizeof(struct combine));
}

/* Blocks the stream until sem_post(gate). */
static inline void run_gate(void *gate)
{
	sem_wait(*(sem_t **)gate);
}

static inline void close_gate(cudaStream_t stream, sem_t *gate)
{
	psd_stand_in_launch(stream, run_gate, &gate, sizeof(gate));
}

/* ---- setup ---- */

struct streams {
	cudaStream_t first, second;
	cudaEvent_t event;
	float *values, *other; /* device memory */
	float *host;	       /* pinned */
};

static inline void must(cudaError_t error)
{
	if (error != cudaSuccess)
		fprintf(stderr, "%s\n", cudaGetErrorString(error));
	cr_assert_eq(error, cudaSuccess);
}

static inline void open_streams(struct streams *with)
{
	must(cudaStreamCreateWithFlags(&with->first, cudaStreamNonBlocking));
	must(cudaStreamCreateWithFlags(&with->second, cudaStreamNonBlocking));
	must(cudaEventCreateWithFlags(&with->event, cudaEventDefault));
	must(cudaMalloc((void **)&with->values, BYTES));
	must(cudaMalloc((void **)&with->other, BYTES));
	must(cudaMallocHost((void **)&with->host, BYTES));
}

/* Each call on a lost device returns an error, but releases its resource nevertheless. */
static inline void drop_streams(const struct streams *with)
{
	cudaStreamDestroy(with->first);
	cudaStreamDestroy(with->second);
	cudaEventDestroy(with->event);
	cudaFree(with->values);
	cudaFree(with->other);
	cudaFreeHost(with->host);
}

static inline void close_streams(const struct streams *with)
{
	must(cudaDeviceSynchronize());
	must(cudaStreamDestroy(with->first));
	must(cudaStreamDestroy(with->second));
	must(cudaEventDestroy(with->event));
	must(cudaFree(with->values));
	must(cudaFree(with->other));
	must(cudaFreeHost(with->host));
}

#define STREAMS_TEST(suite, claim) TEST_OPENED(suite, claim, struct streams, with, open_streams, close_streams)

static inline bool all_are(const float *values, float value)
{
	for (unsigned i = 0; i < VALUES; i++)
		if (!(values[i] == value))
			return false;
	return true;
}

static inline bool none_is_a_number(const float *values)
{
	for (unsigned i = 0; i < VALUES; i++)
		if (!isnan(values[i]))
			return false;
	return true;
}

#endif
