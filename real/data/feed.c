/* Two buffers: one is trained on while the other is read into. A test batch replaces the one that was trained on. */
#include "real/data/feed.h"

#include <assert.h>
#include <stdlib.h>

#include "real/base/lane.h"
#include "real/data/sampler.h"

#define ALIGNMENT_BYTES 64u

struct buffer {
	float *images;
	int32_t *labels;
};

struct psd_feed {
	struct psd_feed_options options;
	struct psd_data *data;
	struct buffer buffers[2]; /* by parity of the iteration */
	void *memory;		  /* of both, unless it is the caller's */
	struct psd_lane reader;
	bool has_reader;
	bool is_reading;
	bool is_ahead;		/* nobody has asked for what is or was read yet */
	uint32_t reading;	/* iteration */
	enum psd_status status; /* of the last reading */
	struct psd_error err;
};

static uint64_t round_up(uint64_t bytes)
{
	return (bytes + ALIGNMENT_BYTES - 1) / ALIGNMENT_BYTES * ALIGNMENT_BYTES;
}

/* Of a batch's; its labels lie behind them. */
static uint64_t image_bytes(const struct psd_feed_options *options)
{
	const struct psd_shape shape = options->data.shape;

	return round_up((uint64_t)options->batch * shape.channels * shape.height * shape.width * sizeof(float));
}

static uint64_t batch_bytes(const struct psd_feed_options *options)
{
	return image_bytes(options) + round_up(options->batch * sizeof(int32_t));
}

uint64_t psd_feed_bytes(const struct psd_feed_options *options)
{
	return 2 * batch_bytes(options);
}

static enum psd_status open_parts(struct psd_feed *feed, struct psd_error *err)
{
	const struct psd_feed_options *options = &feed->options;
	enum psd_status status;
	char *next = options->memory;

	if (!next)
		next = feed->memory = aligned_alloc(ALIGNMENT_BYTES, psd_feed_bytes(options));
	if (!next)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for batches of samples");
	for (unsigned b = 0; b < 2; b++) {
		feed->buffers[b].images = (float *)(void *)(next + b * batch_bytes(options));
		feed->buffers[b].labels = (int32_t *)(void *)(next + b * batch_bytes(options) + image_bytes(options));
	}
	status = psd_data_open(&feed->data, &feed->options.data, err);
	if (!status)
		status = psd_lane_open(&feed->reader, -1, NULL, err);
	feed->has_reader = !status;
	return status;
}

enum psd_status psd_feed_open(struct psd_feed **feed, const struct psd_feed_options *options, struct psd_error *err)
{
	struct psd_feed *opened = calloc(1, sizeof(*opened));
	enum psd_status status;

	if (!opened)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for batches of samples");
	opened->options = *options;
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
	if (feed->has_reader)
		psd_lane_close(&feed->reader);
	free(feed->memory);
	psd_data_close(feed->data);
	free(feed);
}

/* In the reader's thread. */
static void read_ahead(void *context)
{
	struct psd_feed *feed = context;
	const struct psd_feed_options *options = &feed->options;
	const struct buffer *buffer = &feed->buffers[feed->reading % 2];

	feed->status =
		psd_data_read_batch(feed->data, PSD_DATA_TRAINING,
				    psd_sampler_first(feed->reading, options->workers, options->worker, options->batch),
				    options->batch, buffer->images, buffer->labels, &feed->err);
}

static void start_reading(struct psd_feed *feed, uint32_t iteration)
{
	feed->reading = iteration;
	feed->is_reading = feed->is_ahead = true;
	psd_lane_start(&feed->reader, read_ahead, feed);
}

static void finish_reading(struct psd_feed *feed)
{
	if (feed->is_reading)
		psd_lane_wait(&feed->reader);
	feed->is_reading = false;
}

enum psd_status psd_feed_train(struct psd_feed *feed, uint32_t iteration, struct psd_samples *samples,
			       struct psd_error *err)
{
	const struct buffer *buffer = &feed->buffers[iteration % 2];

	if (iteration == 0)
		start_reading(feed, 0);
	finish_reading(feed);
	assert(feed->reading == iteration);
	feed->is_ahead = false;
	if (feed->status) {
		*err = feed->err;
		return feed->status;
	}
	if (iteration + 1 < feed->options.n_iterations)
		start_reading(feed, iteration + 1);
	*samples = (struct psd_samples){buffer->images, buffer->labels};
	return PSD_OK;
}

bool psd_feed_look(struct psd_feed *feed, struct psd_samples *samples)
{
	const struct buffer *buffer = &feed->buffers[feed->reading % 2];

	if (feed->is_reading)
		feed->is_reading = !psd_lane_take_done(&feed->reader);
	if (!feed->is_ahead || feed->is_reading || feed->status)
		return false;
	*samples = (struct psd_samples){buffer->images, buffer->labels};
	return true;
}

enum psd_status psd_feed_test(struct psd_feed *feed, uint64_t first, struct psd_samples *samples, struct psd_error *err)
{
	/* what was read ahead stays, what was trained on may go */
	const struct buffer *buffer = &feed->buffers[(feed->reading + 1) % 2];
	enum psd_status status;

	finish_reading(feed);
	status = psd_data_read_batch(feed->data, PSD_DATA_TEST, first, feed->options.batch, buffer->images,
				     buffer->labels, err);
	if (!status)
		*samples = (struct psd_samples){buffer->images, buffer->labels};
	return status;
}

double psd_feed_cpu_sec(const struct psd_feed *feed)
{
	return psd_lane_cpu_sec(&feed->reader);
}

uint64_t psd_feed_samples(const struct psd_feed *feed, enum psd_data_part part)
{
	return psd_data_samples(feed->data, part);
}
