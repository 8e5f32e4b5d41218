/* Batches of one worker for training and test. Threads read the next training batch while the worker computes. All
 * calls come from one thread. */
#ifndef PSD_REAL_FEED_H
#define PSD_REAL_FEED_H

#include "real/data/data.h"

struct psd_feed_options {
	struct psd_data_options data; /* options of the data set; paths borrowed until close */
	unsigned n_readers;	      /* number of reading threads, >= 1, each with an equal share of a batch */
	uint32_t batch;		      /* number of samples of this worker in an iteration */
	unsigned workers, worker;
	uint32_t first_iteration,
		n_iterations;  /* iterations to read: first_iteration to n_iterations - 1, at least one */
	uint64_t first_sample; /* position of first_iteration's first sample, over all workers, since training began */
	/* Memory of psd_feed_bytes() for batches, aligned to 64 bytes, borrowed; NULL: the feed allocates. */
	void *memory;
};

struct psd_feed;

/* Bytes of memory that a feed needs for its batches. Pure. */
uint64_t psd_feed_bytes(const struct psd_feed_options *options);
/* Opens a feed, which the caller owns until psd_feed_close(). Statuses as psd_data_open(), also: PSD_EINVAL: a batch
 * has 2^32 labels or more; PSD_ENOMEM; PSD_ERUN: a thread cannot start. */
enum psd_status psd_feed_open(struct psd_feed **feed, const struct psd_feed_options *options,
			      struct psd_error *err) PSD_MUST_CHECK;
void psd_feed_close(struct psd_feed *feed); /* closes a feed; NULL is allowed */

struct psd_samples {
	const float *images;
	const int32_t *labels; /* labels of the samples; shape (batch, options.data.labels) */
};

/* Returns the training batch of an iteration; iterations come in order. Borrowed until the next call. Begins to read
 * the next batch. Statuses as psd_data_read_batch(). */
enum psd_status psd_feed_train(struct psd_feed *feed, uint32_t iteration, struct psd_samples *samples,
			       struct psd_error *err) PSD_MUST_CHECK;
/* Returns the training batch after the last one returned, if it has been read; otherwise false, without waiting. Its
 * memory stays, also during tests, until the batch of two iterations later is asked for. */
bool psd_feed_look(struct psd_feed *feed, struct psd_samples *samples);
/* Reads a test batch from sample `first` on; borrowed like a training batch. */
enum psd_status psd_feed_test(struct psd_feed *feed, uint64_t first, struct psd_samples *samples,
			      struct psd_error *err) PSD_MUST_CHECK;
/* Processor seconds spent so far on reading training batches ahead. */
double psd_feed_cpu_sec(const struct psd_feed *feed);
uint64_t psd_feed_samples(const struct psd_feed *feed, enum psd_data_part part);

#endif
