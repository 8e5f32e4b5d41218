/* Feed: supplies one worker with batches of samples for training and test. While the worker computes, threads of the
 * feed read the next training batch. All functions of a feed are called by one thread. */
#ifndef PSD_REAL_FEED_H
#define PSD_REAL_FEED_H

#include "real/data/data.h"

struct psd_feed_options {
	/* Options of the data set; its paths must stay valid until psd_feed_close(). */
	struct psd_data_options data;
	unsigned n_readers;	  /* number of reading threads, >= 1; each reads an equal part of a batch */
	uint32_t batch;		  /* number of samples of this worker in a micro-batch */
	uint32_t micro_batches;	  /* number of micro-batches in an iteration; 0: 1 */
	unsigned workers, worker; /* total number of workers, and number of this worker, from 0 */
	/* Workers with unequal batches: number of samples of all workers in an iteration, and of the workers with
	 * smaller numbers. all_samples 0: all workers have equal batches. */
	uint64_t all_samples, samples_before;
	/* Training iterations to read are first_iteration to n_iterations - 1, at least one. */
	uint32_t first_iteration, n_iterations;
	/* total number of samples that all workers have drawn before first_iteration, since training began */
	uint64_t first_sample;
	/* Memory for batches, psd_feed_bytes() long and aligned to 64 bytes. It must stay valid until psd_feed_close().
	 * NULL: the feed allocates the memory. */
	void *memory;
};

struct psd_feed;

/* Returns the bytes of memory that a feed needs for its batches. Pure. */
uint64_t psd_feed_bytes(const struct psd_feed_options *options);
/* Opens a feed and starts its threads; the caller owns *feed until psd_feed_close(). Statuses of psd_data_open(), and:
 * PSD_EINVAL: a batch has 2^32 labels or more; PSD_ENOMEM; PSD_ERUN: a thread cannot be started. */
enum psd_status psd_feed_open(struct psd_feed **feed, const struct psd_feed_options *options,
			      struct psd_error *err) PSD_MUST_CHECK;
void psd_feed_close(struct psd_feed *feed); /* closes a feed; NULL is allowed */

/* Samples of a batch. */
struct psd_samples {
	const float *images;   /* inputs of the network; shape (batch, channels, height, width) */
	const int32_t *labels; /* labels of the samples; shape (batch, options.data.labels) */
};

/* Sets *samples to a training batch, and begins to read the next one. It waits until the batch is read. number: that of
 * the batch since training began, which is iteration * micro_batches + micro-batch. Called once for each number, in
 * order. *samples stays valid until the next call of psd_feed_train() or psd_feed_test(). Statuses of
 * psd_data_read_batch(). */
enum psd_status psd_feed_train(struct psd_feed *feed, uint64_t number, struct psd_samples *samples,
			       struct psd_error *err) PSD_MUST_CHECK;
/* Sets *samples to the next batch and returns true if this batch has been read already; otherwise returns false. Does
 * not wait. The batch stays valid until psd_feed_train() is called for the batch after the next one. Tests in between
 * do not change it. */
bool psd_feed_look(struct psd_feed *feed, struct psd_samples *samples);
/* Reads a batch of test samples, beginning with sample number `first`, and sets *samples to it. *samples stays valid
 * until the next call of psd_feed_train() or psd_feed_test(). Statuses of psd_data_read_batch(). */
enum psd_status psd_feed_test(struct psd_feed *feed, uint64_t first, struct psd_samples *samples,
			      struct psd_error *err) PSD_MUST_CHECK;
/* Returns the total processor time that the feed's threads have used for training batches so far, seconds. */
double psd_feed_cpu_sec(const struct psd_feed *feed);
/* Returns the number of samples in a part of the data set. */
uint64_t psd_feed_samples(const struct psd_feed *feed, enum psd_data_part part);

#endif
