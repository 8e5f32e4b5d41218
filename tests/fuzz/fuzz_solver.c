/* Any bytes as a Caffe solver: either a job whose length and rate are set, or an error with a text. Never a crash, leak
 * or hang. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "engine/scenario/train.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct psd_train train = {.seed = 1};
	struct psd_error err = {0};

	if (psd_train_parse_solver(&train, "fuzz", (const char *)data, size, &err)) {
		if (err.status == PSD_OK || !err.text[0])
			abort();
		return 0;
	}
	if (train.iterations == 0 || train.rate.base <= 0.0 || train.rate.n_steps > PSD_MAX_RATE_STEPS)
		abort();
	for (unsigned i = 1; i < train.rate.n_steps; i++)
		if (train.rate.steps_at[i] <= train.rate.steps_at[i - 1])
			abort();
	return 0;
}
