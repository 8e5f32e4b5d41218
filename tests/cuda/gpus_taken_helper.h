/* Which of the stand-in's GPUs the workers of all processes take: a CUDA device that counts what it is opened on. */
#ifndef PSD_TESTS_CUDA_GPUS_TAKEN_HELPER_H
#define PSD_TESTS_CUDA_GPUS_TAKEN_HELPER_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <sys/mman.h>

#include "real/device/device.h"

enum { GPUS_TAKEN_MOST = 8 };

/* How often each GPU has been opened, by its number; shared with the processes forked later. */
static unsigned *gpus_taken;

static enum psd_status gpus_taken_open(struct psd_device **device, const struct psd_device_options *options,
				       struct psd_error *err)
{
	const enum psd_status status = psd_device_cuda.open(device, options, err);
	char text[PSD_DEVICE_TEXT_MAX];
	unsigned number;

	if (status)
		return status;
	psd_device_cuda.describe(*device, text);
	if (sscanf(text, "stand-in %u", &number) == 1 && number < GPUS_TAKEN_MOST)
		__atomic_fetch_add(&gpus_taken[number], 1, __ATOMIC_RELAXED);
	return PSD_OK;
}

/* All counts begin at 0. gpus_taken_end() when done. */
static inline struct psd_device_kind gpus_taken_begin(void)
{
	struct psd_device_kind kind = psd_device_cuda;

	gpus_taken = mmap(NULL, GPUS_TAKEN_MOST * sizeof(*gpus_taken), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq((void *)gpus_taken, MAP_FAILED);
	kind.open = gpus_taken_open;
	return kind;
}

static inline void gpus_taken_check(unsigned gpus, const unsigned expected[])
{
	for (unsigned g = 0; g < gpus; g++)
		cr_expect_eq(gpus_taken[g], expected[g], "%u times GPU %u of %u, must be %u", gpus_taken[g], g, gpus,
			     expected[g]);
}

static inline void gpus_taken_end(void)
{
	munmap(gpus_taken, GPUS_TAKEN_MOST * sizeof(*gpus_taken));
}

#endif
