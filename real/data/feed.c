/* The feed has two buffers: while the worker trains with the batch in one, threads (readers) read the next batch into
 * the other. A test batch overwrites the batch that was used last for training. */
#include "real/data/feed.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "real/base/lane.h"
#include "real/data/sampler.h"

#define ALIGNMENT_BYTES 64u

struct buffer {
	float *images;
	int32_t *labels;
};

struct reader {
	struct psd_feed *feed;
	unsigned number;
	struct psd_lane lane;
	bool has_lane;
	/* data set of the reader: the first reader's owns the files; the other readers' are views of it, opened when
	 * they are first needed */
	struct psd_data *data;
	enum psd_status status;
	struct psd_error err;
};

struct psd_feed {
	struct psd_feed_options options;
	struct buffer buffers[2]; /* buffer i has batches whose number % 2 is i */
	void *memory;		  /* memory of both buffers if the feed owns it; NULL if it is the caller's */
	struct reader *readers;	  /* (options.n_readers), each reads an equal share of a batch */
	struct {
		enum psd_data_part part;
		uint64_t first;
		const struct buffer *to;
	} wanted; /* batch that readers are reading */
	bool is_reading;
	/* the batch that is being read, or was read last, has not been returned by psd_feed_train() yet */
	bool is_ahead;
	uint64_t reading;	/* number of the batch */
	enum psd_status status; /* status of the last training batch */
	struct psd_error err;
	double test_cpu_sec;
};

static uint64_t round_up(uint64_t bytes)
{
	return (bytes + ALIGNMENT_BYTES - 1) / ALIGNMENT_BYTES * ALIGNMENT_BYTES;
}

/* Returns the bytes of a batch's images, rounded up; in a buffer, the labels are behind the images. */
static uint64_t image_bytes(const struct psd_feed_options *options)
{
	const struct psd_shape shape = options->data.shape;

	return round_up((uint64_t)options->batch * shape.channels * shape.height * shape.width * sizeof(float));
}

static uint64_t batch_bytes(const struct psd_feed_options *options)
{
	return image_bytes(options) + round_up(options->batch * options->data.labels * sizeof(int32_t));
}

uint64_t psd_feed_bytes(const struct psd_feed_options *options)
{
	return 2 * batch_bytes(options);
}

static enum psd_status open_readers(struct psd_feed *feed, struct psd_error *err)
{
	PSD_TRY(psd_data_open(&feed->readers[0].data, &feed->options.data, err));
	for (unsigned r = 0; r < feed->options.n_readers; r++) {
		feed->readers[r].feed = feed;
		feed->readers[r].number = r;
		PSD_TRY(psd_lane_open(&feed->readers[r].lane, -1, NULL, err));
		feed->readers[r].has_lane = true;
	}
	return PSD_OK;
}

static enum psd_status open_parts(struct psd_feed *feed, struct psd_error *err)
{
	const struct psd_feed_options *options = &feed->options;
	char *next = options->memory;

	feed->readers = calloc(options->n_readers, sizeof(*feed->readers));
	if (!next)
		next = feed->memory = aligned_alloc(ALIGNMENT_BYTES, psd_feed_bytes(options));
	if (!next || !feed->readers)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for batches of samples");
	for (unsigned b = 0; b < 2; b++) {
		feed->buffers[b].images = (float *)(void *)(next + b * batch_bytes(options));
		feed->buffers[b].labels = (int32_t *)(void *)(next + b * batch_bytes(options) + image_bytes(options));
	}
	return open_readers(feed, err);
}

/* Limits a batch's labels, so that 32 bits can count the correct ones. */
static enum psd_status check_labels(const struct psd_feed_options *options, struct psd_error *err)
{
	const uint32_t samples = options->batch * options->micro_batches;

	if (options->data.labels <= UINT32_MAX / samples)
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, PSD_NOWHERE,
			     "a batch of %" PRIu32 " samples has %" PRIu64 " labels for each, must have fewer than "
			     "2^32 in all",
			     samples, options->data.labels);
}

enum psd_status psd_feed_open(struct psd_feed **feed, const struct psd_feed_options *options, struct psd_error *err)
{
	struct psd_feed *opened = calloc(1, sizeof(*opened));

	if (!opened)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for batches of samples");
	opened->options = *options;
	if (options->micro_batches == 0)
		opened->options.micro_batches = 1;
	if (options->n_readers > options->batch)
		opened->options.n_readers = options->batch;
	enum psd_status status = check_labels(&opened->options, err);
	if (!status)
		status = open_parts(opened, err);
	if (status)
		psd_feed_close(opened);
	else
		*feed = opened;
	return status;
}

void psd_feed_close(struct psd_feed *feed)
{
	if (!feed)
		return;
	/* backwards, since views must be closed before the data set that owns the files */
	for (unsigned r = feed->readers ? feed->options.n_readers : 0; r-- > 0;) {
		if (feed->readers[r].has_lane)
			psd_lane_close(&feed->readers[r].lane);
		psd_data_close(feed->readers[r].data);
	}
	free(feed->readers);
	free(feed->memory);
	free(feed);
}

/* Reads one reader's part of a batch; executed by the reader's thread. */
static void read_share(void *context)
{
	struct reader *reader = context;
	const struct psd_feed *feed = reader->feed;
	const struct psd_feed_options *options = &feed->options;
	const struct psd_shape shape = options->data.shape;
	const uint64_t elements = (uint64_t)shape.channels * shape.height * shape.width;
	const uint64_t begin = (uint64_t)options->batch * reader->number / options->n_readers,
		       end = (uint64_t)options->batch * (reader->number + 1) / options->n_readers;

	reader->status = reader->data ? PSD_OK : psd_data_view(&reader->data, feed->readers[0].data, &reader->err);
	if (!reader->status)
		reader->status =
			psd_data_read_batch(reader->data, feed->wanted.part, feed->wanted.first + begin,
					    (uint32_t)(end - begin), feed->wanted.to->images + begin * elements,
					    feed->wanted.to->labels + begin * options->data.labels, &reader->err);
}

static void start_readers(struct psd_feed *feed, enum psd_data_part part, uint64_t first, const struct buffer *to)
{
	feed->wanted.part = part;
	feed->wanted.first = first;
	feed->wanted.to = to;
	for (unsigned r = 0; r < feed->options.n_readers; r++)
		psd_lane_start(&feed->readers[r].lane, read_share, &feed->readers[r]);
}

/* Waits until all readers have finished, and returns the status of the first one that failed. */
static enum psd_status finish_readers(struct psd_feed *feed, struct psd_error *err)
{
	for (unsigned r = 0; r < feed->options.n_readers; r++)
		psd_lane_wait(&feed->readers[r].lane);
	for (unsigned r = 0; r < feed->options.n_readers; r++)
		if (feed->readers[r].status) {
			*err = feed->readers[r].err;
			return feed->readers[r].status;
		}
	return PSD_OK;
}

/* Micro-batches of an iteration are parts of one larger batch. */
static void start_reading(struct psd_feed *feed, uint64_t number)
{
	const struct psd_feed_options *options = &feed->options;
	const uint64_t iteration = number / options->micro_batches - options->first_iteration;
	const uint64_t first = options->all_samples > 0
				       ? iteration * options->all_samples + options->samples_before
				       : psd_sampler_first(iteration, options->workers, options->worker,
							   options->batch * options->micro_batches);

	feed->reading = number;
	feed->is_reading = feed->is_ahead = true;
	start_readers(feed, PSD_DATA_TRAINING,
		      options->first_sample + first + number % options->micro_batches * options->batch,
		      &feed->buffers[number % 2]);
}

static void finish_reading(struct psd_feed *feed)
{
	if (feed->is_reading)
		feed->status = finish_readers(feed, &feed->err);
	feed->is_reading = false;
}

enum psd_status psd_feed_train(struct psd_feed *feed, uint64_t number, struct psd_samples *samples,
			       struct psd_error *err)
{
	const uint64_t micro_batches = feed->options.micro_batches;
	const struct buffer *buffer = &feed->buffers[number % 2];

	if (number == feed->options.first_iteration * micro_batches)
		start_reading(feed, number);
	finish_reading(feed);
	assert(feed->reading == number);
	feed->is_ahead = false;
	if (feed->status) {
		*err = feed->err;
		return feed->status;
	}
	if (number + 1 < feed->options.n_iterations * micro_batches)
		start_reading(feed, number + 1);
	*samples = (struct psd_samples){buffer->images, buffer->labels};
	return PSD_OK;
}

static bool is_any_busy(struct psd_feed *feed)
{
	bool is_busy = false;

	for (unsigned r = 0; r < feed->options.n_readers; r++) {
		(void)psd_lane_take_done(&feed->readers[r].lane);
		is_busy |= psd_lane_is_busy(&feed->readers[r].lane);
	}
	return is_busy;
}

bool psd_feed_look(struct psd_feed *feed, struct psd_samples *samples)
{
	const struct buffer *buffer = &feed->buffers[feed->reading % 2];

	if (feed->is_reading && !is_any_busy(feed))
		finish_reading(feed);
	if (!feed->is_ahead || feed->is_reading || feed->status)
		return false;
	*samples = (struct psd_samples){buffer->images, buffer->labels};
	return true;
}

static double all_cpu_sec(const struct psd_feed *feed)
{
	double sec = 0.0;

	for (unsigned r = 0; r < feed->options.n_readers; r++)
		sec += psd_lane_cpu_sec(&feed->readers[r].lane);
	return sec;
}

enum psd_status psd_feed_test(struct psd_feed *feed, uint64_t first, struct psd_samples *samples, struct psd_error *err)
{
	/* overwrites the batch trained on last, not the one read ahead */
	const struct buffer *buffer = &feed->buffers[(feed->reading + 1) % 2];

	finish_reading(feed);
	feed->test_cpu_sec -= all_cpu_sec(feed);
	start_readers(feed, PSD_DATA_TEST, first, buffer);
	const enum psd_status status = finish_readers(feed, err);
	feed->test_cpu_sec += all_cpu_sec(feed);
	if (!status)
		*samples = (struct psd_samples){buffer->images, buffer->labels};
	return status;
}

double psd_feed_cpu_sec(const struct psd_feed *feed)
{
	return all_cpu_sec(feed) - feed->test_cpu_sec;
}

uint64_t psd_feed_samples(const struct psd_feed *feed, enum psd_data_part part)
{
	return psd_data_samples(feed->readers[0].data, part);
}
