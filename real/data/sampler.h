/* Order in which training draws samples in each epoch. It is computed, never stored, and does not depend on the number
 * of workers. An epoch begins with the sample after the last sample of the epoch before, so a batch may contain samples
 * of two epochs. Reads no samples. */
#ifndef PSD_REAL_SAMPLER_H
#define PSD_REAL_SAMPLER_H

#include <stdint.h>

/* Parameters from which the order is computed. */
struct psd_sampler {
	uint64_t seed;
	uint64_t n_samples; /* number of samples in an epoch, 1 to 2^48 */
};

/* A drawn sample. */
struct psd_draw {
	uint64_t epoch;
	uint64_t sample; /* number of the sample, below n_samples */
};

/* Returns the number of the sample that is drawn at `position` of an epoch (0 to n_samples - 1). Each sample is drawn
 * once in an epoch. Pure, any thread. Source: Feistel network (Luby, Rackoff 1988) with cycle walking (Black, Rogaway
 * 2002). */
uint64_t psd_sampler_sample(const struct psd_sampler *sampler, uint64_t epoch, uint64_t position);

/* Returns epoch and number of the sample that is drawn at a global position. Global positions are counted from 0 over
 * all samples that all workers have drawn since training began. Pure, any thread. */
struct psd_draw psd_sampler_draw(const struct psd_sampler *sampler, uint64_t global_position);

/* Returns the global position, see psd_sampler_draw(), of the first sample of worker number `worker` in an iteration.
 * workers: number of workers; batch: number of samples of one worker. In an iteration the workers' batches follow each
 * other. So P workers with batches of b samples draw the same samples as one worker with batches of P * b. Pure, any
 * thread. */
uint64_t psd_sampler_first(uint64_t iteration, uint32_t workers, uint32_t worker, uint32_t batch);

#endif
