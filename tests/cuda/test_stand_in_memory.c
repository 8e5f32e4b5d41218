/* The stand-in's memory: when it is read, and which parts may not be touched. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <string.h>

#include "tests/cuda/apart_helper.h"
#include "tests/cuda/stand_in.h"
#include "tests/cuda/streams_helper.h"

STREAMS_TEST(stand_in_memory, memory_is_no_number_before_it_is_written)
{
	float pageable[VALUES];

	cr_assert(none_is_a_number(with->host));
	must(cudaMemcpyAsync(pageable, with->values, BYTES, cudaMemcpyDeviceToHost, with->first));
	must(cudaStreamSynchronize(with->first));
	cr_assert(none_is_a_number(pageable));
	must(cudaMemsetAsync(with->values, 0, BYTES, with->first));
	must(cudaMemcpyAsync(pageable, with->values, BYTES, cudaMemcpyDefault, with->first));
	must(cudaStreamSynchronize(with->first));
	cr_assert(all_are(pageable, 0));
}

/* The value that arrives from a source that changes between the call and the copy's turn. */
static float copied_late(struct streams *with, float *source)
{
	float arrived[VALUES];
	sem_t gate;

	sem_init(&gate, 0, 0);
	for (unsigned i = 0; i < VALUES; i++)
		source[i] = 1;
	close_gate(with->first, &gate);
	must(cudaMemcpyAsync(with->values, source, BYTES, cudaMemcpyHostToDevice, with->first));
	for (unsigned i = 0; i < VALUES; i++)
		source[i] = 2;
	sem_post(&gate);
	must(cudaMemcpyAsync(arrived, with->values, BYTES, cudaMemcpyDeviceToHost, with->first));
	must(cudaStreamSynchronize(with->first));
	cr_assert(all_are(arrived, arrived[0]));
	return arrived[0];
}

STREAMS_TEST(stand_in_memory, pinned_memory_is_read_late_and_pageable_at_once)
{
	float pageable[VALUES];

	cr_assert_eq(copied_late(with, with->host), 2);
	cr_assert_eq(copied_late(with, pageable), 1);
	must(cudaHostRegister(pageable, BYTES, cudaHostRegisterDefault));
	cr_assert_eq(copied_late(with, pageable), 2);
	cr_assert_eq(cudaHostRegister(pageable + 1, sizeof(float), 0), cudaErrorHostMemoryAlreadyRegistered);
	must(cudaHostUnregister(pageable));
	cr_assert_eq(cudaHostUnregister(pageable), cudaErrorHostMemoryNotRegistered);
	cr_assert_eq(copied_late(with, pageable), 1);
}

static void touch_from_host(const void *unused)
{
	struct streams with;

	(void)unused;
	open_streams(&with);
	put(with.first, with.values, 1);
	must(cudaStreamSynchronize(with.first));
	with.values[0] = 2;
}

static void touch_what_is_freed(const void *unused)
{
	struct streams with;
	sem_t gate;

	(void)unused;
	sem_init(&gate, 0, 0);
	open_streams(&with);
	close_gate(with.first, &gate);
	put(with.first, with.values, 1);
	must(cudaFree(with.values));
	sem_post(&gate);
	cudaStreamSynchronize(with.first);
}

static void touch_what_is_beyond(const void *unused)
{
	struct streams with;

	(void)unused;
	open_streams(&with);
	put(with.first, with.values + VALUES / 2, 1);
	cudaStreamSynchronize(with.first);
}

static void touch_host_block_that_is_freed(const void *unused)
{
	struct streams with;

	(void)unused;
	open_streams(&with);
	must(cudaFreeHost(with.host));
	with.host[0] = 1;
}

Test(stand_in_memory, memory_that_may_not_be_touched_ends_the_process)
{
	const struct {
		void (*part)(const void *);
		const char *told;
	} cases[] = {
		{touch_from_host, "stand-in: the host touches the device's memory"},
		{touch_what_is_freed, "stand-in: an operation touches freed memory"},
		{touch_what_is_beyond, "stand-in: an operation touches memory beyond a block"},
		{touch_host_block_that_is_freed, "stand-in: freed memory is touched"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct apart apart = run_apart(cases[i].part, NULL);
		/* The address sanitiser finds it first where the block does not fill its pages. */
		const bool is_told = strstr(apart.told, cases[i].told) || strstr(apart.told, "use-after-poison");

		cr_assert(!apart.is_well && is_told, "case %zu: %s", i, apart.told);
	}
}

/* Copies to freed memory are refused, too: addresses are not used again. */
STREAMS_TEST(stand_in_memory, copies_are_refused_that_leave_a_block)
{
	float *before;

	cr_assert_eq(cudaMemcpyAsync(with->values, with->host, BYTES + 1, cudaMemcpyHostToDevice, with->first),
		     cudaErrorInvalidValue);
	cr_assert_eq(cudaMemcpyAsync(with->values, with->host, BYTES, cudaMemcpyDeviceToHost, with->first),
		     cudaErrorInvalidValue);
	cr_assert_eq(cudaMemsetAsync(with->host, 0, BYTES, with->first), cudaErrorInvalidValue);
	cr_assert_eq(cudaGetLastError(), cudaErrorInvalidValue);
	cr_assert_eq(cudaGetLastError(), cudaSuccess);
	before = with->other;
	must(cudaFree(with->other));
	must(cudaMalloc((void **)&with->other, BYTES));
	cr_assert_neq(with->other, before);
	cr_assert_eq(cudaMemcpyAsync(before, with->host, BYTES, cudaMemcpyHostToDevice, with->first),
		     cudaErrorInvalidValue);
	cr_assert_eq(cudaFree(before), cudaErrorInvalidValue);
}

Test(stand_in_memory, memory_is_counted)
{
	const size_t all_bytes = 1000;
	size_t free_bytes = 0, total_bytes = 0;
	void *first = NULL, *second = NULL;

	psd_stand_in_set_memory(all_bytes);
	must(cudaMalloc(&first, 600));
	cr_assert_eq(cudaMalloc(&second, 401), cudaErrorMemoryAllocation);
	must(cudaMemGetInfo(&free_bytes, &total_bytes));
	cr_assert(free_bytes == 400 && total_bytes == 1000);
	must(cudaFree(first));
	must(cudaMalloc(&second, 1000));
	cr_assert_eq(psd_stand_in_held().blocks, 1);
	must(cudaFree(second));
	must(cudaFree(NULL));
	cr_assert_eq(psd_stand_in_held().blocks, 0);
}

Test(stand_in_memory, held_resources_are_counted)
{
	const struct psd_stand_in_holdings nothing = {0},
					   some = {.blocks = 2, .host_blocks = 1, .streams = 2, .events = 1};
	struct psd_stand_in_holdings held;
	struct streams with;

	open_streams(&with);
	held = psd_stand_in_held();
	cr_assert_eq(memcmp(&held, &some, sizeof(held)), 0);
	close_streams(&with);
	held = psd_stand_in_held();
	cr_assert_eq(memcmp(&held, &nothing, sizeof(held)), 0);
}
