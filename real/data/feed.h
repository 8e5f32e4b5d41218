/* Batches of one worker for training and test. Threads read the next training batch while the worker computes. All
 * calls come from one thread. */
#ifndef PSD_REAL_FEED_H
#define PSD_REAL_FEED_H

#include "real/data/data.h"

struct psd_feed_options {
	struct psd_data_options data; /* paths borrowed until close */
	unsigned n_readers;	      /* threads, >= 1, each with an equal share of a batch */
	uint32_t batch;		      /* samples of this worker in an iteration */
	unsigned workers, worker;
	uint32_t first_iteration, n_iterations; /* reads iterations first_iteration to n_iterations - 1, at least one */
	uint64_t first_sample;			/* global position at which first_iteration begins, over all workers */
	/* psd_feed_bytes() for the batches, aligned to 64 bytes, borrowed until close; NULL: the feed allocates. */
	void *memory;
};

struct psd_feed;

/* Bytes of the memory for batches. Pure. */
uint64_t psd_feed_bytes(const struct psd_feed_options *options);
/* *feed is owned by the caller until psd_feed_close(). Statuses as of psd_data_open(), also: PSD_EINVAL if a batch has
 * 2^32 labels or more; PSD_ENOMEM; PSD_ERUN if a thread cannot start. */
enum psd_status psd_feed_open(struct psd_feed **feed, const struct psd_feed_options *options,
			      struct psd_error *err) PSD_MUST_CHECK;
void psd_feed_close(struct psd_feed *feed); /* NULL is allowed */

struct psd_samples {
	const float *images;
	const int32_t *labels; /* (batch, options.data.labels) */
};

/* The training batch of an iteration; iterations come in order. Borrowed until the next call. Begins to read the next
 * one. Statuses as of psd_data_read_batch(). */
enum psd_status psd_feed_train(struct psd_feed *feed, uint32_t iteration, struct psd_samples *samples,
			       struct psd_error *err) PSD_MUST_CHECK;
/* The training batch after the last one returned, if it is read already. Returns false, without waiting, if it is not,
 * or does not exist. Its memory stays, also during tests, until the batch of two iterations later is asked for. */
bool psd_feed_look(struct psd_feed *feed, struct psd_samples *samples);
/* A test batch from sample `first` on; borrowed like a training batch. */
enum psd_status psd_feed_test(struct psd_feed *feed, uint64_t first, struct psd_samples *samples,
			      struct psd_error *err) PSD_MUST_CHECK;
/* Processor seconds spent so far on reading training batches ahead. */
double psd_feed_cpu_sec(const struct psd_feed *feed);
uint64_t psd_feed_samples(const struct psd_feed *feed, enum psd_data_part part);

#endif
