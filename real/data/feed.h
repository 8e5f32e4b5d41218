/* The batches that one worker trains and tests on, training ones read an iteration ahead by threads of their own, so
 * that reading, decoding and cropping pass while the worker computes. All calls come from one thread. */
#ifndef PSD_REAL_FEED_H
#define PSD_REAL_FEED_H

#include "real/data/data.h"

struct psd_feed_options {
	struct psd_data_options data; /* paths borrowed until close */
	unsigned n_readers;	      /* threads, >= 1, each of an equal share of a batch */
	uint32_t batch;		      /* samples of this worker */
	unsigned workers, worker;
	uint32_t first_iteration, n_iterations; /* first_iteration to n_iterations - 1 are read, at least one */
	uint64_t first_sample; /* of the samplers' order, at which first_iteration begins: all workers' */
	/* Of psd_feed_bytes(), aligned to 64 bytes, that batches are read into, until close; NULL: the feed's own. */
	void *memory;
};

struct psd_feed;

/* Memory for its batches. Pure. */
uint64_t psd_feed_bytes(const struct psd_feed_options *options);
/* *feed is owned by the caller until psd_feed_close(). As psd_data_open(); PSD_EINVAL: a batch of 2^32 labels or more;
 * PSD_ENOMEM; PSD_ERUN: no thread. */
enum psd_status psd_feed_open(struct psd_feed **feed, const struct psd_feed_options *options,
			      struct psd_error *err) PSD_MUST_CHECK;
void psd_feed_close(struct psd_feed *feed); /* NULL is allowed */

struct psd_samples {
	const float *images;
	const int32_t *labels; /* (batch, options.data.labels) */
};

/* The batch of an iteration, in order, borrowed until the next call; reads the one after. As psd_data_read_batch(). */
enum psd_status psd_feed_train(struct psd_feed *feed, uint32_t iteration, struct psd_samples *samples,
			       struct psd_error *err) PSD_MUST_CHECK;
/* The batch of the iteration after the last one that was asked for, if it has been read: false, and no wait, if not, or
 * if there is none. Where it lies stays, through tests as well, until two iterations later are asked for. */
bool psd_feed_look(struct psd_feed *feed, struct psd_samples *samples);
/* A batch of test samples, from number `first` on; borrowed like the others. */
enum psd_status psd_feed_test(struct psd_feed *feed, uint64_t first, struct psd_samples *samples,
			      struct psd_error *err) PSD_MUST_CHECK;
/* Processor seconds that reading ahead of training batches took so far. */
double psd_feed_cpu_sec(const struct psd_feed *feed);
uint64_t psd_feed_samples(const struct psd_feed *feed, enum psd_data_part part);

#endif
