/* Order of samples in each epoch, computed and never stored, independent of the number of workers. Epochs follow each
 * other without a gap, so a batch may lie in two. Refuses to read samples. */
#ifndef PSD_REAL_SAMPLER_H
#define PSD_REAL_SAMPLER_H

#include <stdint.h>

struct psd_sampler {
	uint64_t seed;
	uint64_t n_samples; /* number of samples in an epoch, 1 to 2^48 */
};

struct psd_draw {
	uint64_t epoch;
	uint64_t sample; /* number of the sample, below n_samples */
};

/* Number of the sample at `position` (below n_samples) in an epoch; every sample comes once. Pure, any thread. Source:
 * Feistel network (Luby, Rackoff 1988) with cycle walking (Black, Rogaway 2002). */
uint64_t psd_sampler_sample(const struct psd_sampler *sampler, uint64_t epoch, uint64_t position);

/* Epoch and sample at a position, which counts over all epochs and workers since training began. Pure, any thread. */
struct psd_draw psd_sampler_draw(const struct psd_sampler *sampler, uint64_t global_position);

/* Global position of a worker's first sample in an iteration; both count from the start of a run with these workers.
 * Batches of workers follow each other, so P workers with batch b draw the same as one worker with batch P b. Pure, any
 * thread. */
uint64_t psd_sampler_first(uint64_t iteration, uint32_t workers, uint32_t worker, uint32_t batch);

#endif
