/* Which sample stands where: an order of all samples for each epoch, computed and never stored, the same whatever the
 * number of workers. Epochs follow each other without a gap, so a batch may lie in two. Knows no samples. */
#ifndef PSD_REAL_SAMPLER_H
#define PSD_REAL_SAMPLER_H

#include <stdint.h>

struct psd_sampler {
	uint64_t seed;
	uint64_t n_samples; /* of an epoch, 1 to 2^48 */
};

struct psd_draw {
	uint64_t epoch;
	uint64_t sample; /* below n_samples */
};

/* The sample at `position` (below n_samples) of an epoch: for each epoch a bijection, so every sample comes once. Pure,
 * any thread. Source: Feistel network (Luby, Rackoff 1988), walked below n_samples (Black, Rogaway 2002). */
uint64_t psd_sampler_sample(const struct psd_sampler *sampler, uint64_t epoch, uint64_t position);

/* The draw at a position counted from the start of training, over all epochs and workers. Pure, any thread. */
struct psd_draw psd_sampler_draw(const struct psd_sampler *sampler, uint64_t global_position);

/* The global position of the first of the `batch` samples that a worker (below workers) computes in an iteration, both
 * counted from where these workers began. Their batches lie side by side, so P workers with batch b draw what one
 * worker with batch P b draws. Pure, any thread. */
uint64_t psd_sampler_first(uint64_t iteration, uint32_t workers, uint32_t worker, uint32_t batch);

#endif
