/* Reading ahead gives the same batches as reading in time. */
#define _XOPEN_SOURCE 700
#include <criterion/criterion.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "real/data/feed.h"
#include "real/data/sampler.h"
#include "tests/scratch_folder.h"

enum { BATCH = 3, PIXELS = 3 * 8 * 8, WORKERS = 2, N_ITERATIONS = 12 };

static const struct psd_data_options data_options = {
	.source = {.kind = PSD_DATA_SYNTHETIC, .training_samples = 20, .test_samples = 7, .noise_ratio = 0.3},
	.shape = {3, 8, 8},
	.classes = 4,
	.labels = 1,
	.seed = 5,
};

/* A label for each position. */
enum { PLACES = 21 };
static const struct psd_data_options sequence_options = {
	.source = {.kind = PSD_DATA_SYNTHETIC, .training_samples = 20, .test_samples = 7, .noise_ratio = 0.3},
	.shape = {1, 7, 3},
	.classes = 9,
	.labels = PLACES,
	.vocabulary = 9,
	.seed = 5,
};

struct expected {
	const struct psd_data_options *options;
	struct psd_data *data;
	float images[BATCH * PIXELS];
	int32_t labels[BATCH * PLACES];
};

static void check_same(const struct expected *expected, struct psd_samples samples)
{
	const struct psd_shape shape = expected->options->shape;
	const size_t elements = (size_t)BATCH * shape.channels * shape.height * shape.width;

	cr_assert_eq(memcmp(samples.images, expected->images, elements * sizeof(float)), 0);
	cr_assert_eq(memcmp(samples.labels, expected->labels, BATCH * expected->options->labels * sizeof(int32_t)), 0);
}

static void read_expected(struct expected *expected, enum psd_data_part part, uint64_t first)
{
	struct psd_error err;

	cr_assert_eq(psd_data_read_batch(expected->data, part, first, BATCH, expected->images, expected->labels, &err),
		     PSD_OK);
}

static void check_batches(const struct psd_data_options *of, unsigned n_readers)
{
	const struct psd_feed_options options = {.data = *of,
						 .n_readers = n_readers,
						 .batch = BATCH,
						 .workers = WORKERS,
						 .worker = 1,
						 .n_iterations = N_ITERATIONS};
	struct expected expected = {.options = of};
	struct psd_samples samples;
	struct psd_feed *feed;
	struct psd_error err;

	cr_assert_eq(psd_data_open(&expected.data, of, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_feed_open(&feed, &options, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_feed_samples(feed, PSD_DATA_TEST), 7);
	for (uint32_t i = 0; i < N_ITERATIONS; i++) {
		cr_assert_eq(psd_feed_train(feed, i, &samples, &err), PSD_OK, "%s", err.text);
		read_expected(&expected, PSD_DATA_TRAINING, psd_sampler_first(i, WORKERS, 1, BATCH));
		check_same(&expected, samples);
		if (i % 4 != 2)
			continue;
		for (uint64_t first = 0; first + BATCH <= 7; first += BATCH) {
			cr_assert_eq(psd_feed_test(feed, first, &samples, &err), PSD_OK, "%s", err.text);
			read_expected(&expected, PSD_DATA_TEST, first);
			check_same(&expected, samples);
		}
	}
	cr_expect_gt(psd_feed_cpu_sec(feed), 0.0);
	psd_feed_close(feed);
	psd_data_close(expected.data);
}

/* Three workers with batches of 3 behind 13 samples, in the middle of the first of two epochs of 20: what they read is
 * the rest of it, each sample once, and then the next epoch. */
Test(feed, what_goes_on_reads_on)
{
	enum { FIRST = 5, BEHIND = 13, READERS = 3 };
	struct expected expected = {.options = &data_options};
	struct psd_samples samples;
	struct psd_error err;

	cr_assert_eq(psd_data_open(&expected.data, &data_options, &err), PSD_OK, "%s", err.text);
	for (unsigned w = 0; w < READERS; w++) {
		const struct psd_feed_options options = {.data = data_options,
							 .n_readers = 1,
							 .batch = BATCH,
							 .workers = READERS,
							 .worker = w,
							 .first_iteration = FIRST,
							 .n_iterations = FIRST + 3,
							 .first_sample = BEHIND};
		struct psd_feed *feed;

		cr_assert_eq(psd_feed_open(&feed, &options, &err), PSD_OK, "%s", err.text);
		for (uint32_t i = 0; i < 3; i++) {
			cr_assert_eq(psd_feed_train(feed, FIRST + i, &samples, &err), PSD_OK, "%s", err.text);
			read_expected(&expected, PSD_DATA_TRAINING, BEHIND + (uint64_t)(i * READERS + w) * BATCH);
			check_same(&expected, samples);
		}
		psd_feed_close(feed);
	}
	psd_data_close(expected.data);
}

/* Micro-batches are parts of the batch that they make together. */
Test(feed, micro_batches_are_parts_of_one_batch)
{
	enum { FIRST = 3, PARTS = 2, BEHIND = 5 };
	const struct psd_feed_options options = {.data = data_options,
						 .n_readers = 2,
						 .batch = BATCH,
						 .micro_batches = PARTS,
						 .workers = WORKERS,
						 .worker = 1,
						 .first_iteration = FIRST,
						 .n_iterations = FIRST + 3,
						 .first_sample = BEHIND};
	struct expected expected = {.options = &data_options};
	struct psd_samples samples;
	struct psd_feed *feed;
	struct psd_error err;

	cr_assert_eq(psd_data_open(&expected.data, &data_options, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_feed_open(&feed, &options, &err), PSD_OK, "%s", err.text);
	for (uint64_t i = 0; i < 3; i++)
		for (uint64_t m = 0; m < PARTS; m++) {
			cr_assert_eq(psd_feed_train(feed, (FIRST + i) * PARTS + m, &samples, &err), PSD_OK, "%s",
				     err.text);
			read_expected(&expected, PSD_DATA_TRAINING,
				      BEHIND + psd_sampler_first(i, WORKERS, 1, PARTS * BATCH) + m * BATCH);
			check_same(&expected, samples);
		}
	psd_feed_close(feed);
	psd_data_close(expected.data);
}

/* Two readers have one sample and two, four would have less than one each. */
Test(feed, batches_come_as_if_read_in_time_with_tests_between)
{
	for (unsigned n_readers = 1; n_readers <= 4; n_readers++)
		check_batches(&data_options, n_readers);
}

Test(feed, every_label_of_a_sample_comes_with_it)
{
	for (unsigned n_readers = 1; n_readers <= 3; n_readers++)
		check_batches(&sequence_options, n_readers);
}

Test(feed, a_batch_has_labels_that_32_bits_count)
{
	struct psd_feed_options options = {
		.data = sequence_options, .n_readers = 1, .batch = 65536, .workers = 1, .n_iterations = 1};
	struct psd_error err = {.text = "accepted"};
	struct psd_feed *feed;

	options.data.shape = (struct psd_shape){1, 65536, 1};
	options.data.labels = 65536;
	cr_expect_eq(psd_feed_open(&feed, &options, &err), PSD_EINVAL);
	cr_expect_str_eq(err.text, "a batch of 65536 samples has 65536 labels for each, must have fewer than 2^32 in "
				   "all");
}

/* In the caller's memory, and only once it is read; what is seen there stays through a test. */
Test(feed, the_next_batch_is_seen_before_it_is_asked_for)
{
	struct psd_feed_options options = {.data = sequence_options,
					   .n_readers = 2,
					   .batch = BATCH,
					   .workers = WORKERS,
					   .worker = 1,
					   .n_iterations = N_ITERATIONS};
	struct expected expected = {.options = &sequence_options};
	struct psd_samples samples, seen, tested;
	struct psd_feed *feed;
	struct psd_error err;

	options.memory = aligned_alloc(64, psd_feed_bytes(&options));
	cr_assert_eq(psd_data_open(&expected.data, &sequence_options, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_feed_open(&feed, &options, &err), PSD_OK, "%s", err.text);
	cr_assert(!psd_feed_look(feed, &seen), "before the first");
	for (uint32_t i = 0; i + 1 < N_ITERATIONS; i++) {
		cr_assert_eq(psd_feed_train(feed, i, &samples, &err), PSD_OK, "%s", err.text);
		while (!psd_feed_look(feed, &seen))
			sched_yield();
		cr_assert_eq(psd_feed_test(feed, 0, &tested, &err), PSD_OK, "%s", err.text);
		cr_assert(psd_feed_look(feed, &seen), "after a test");
		read_expected(&expected, PSD_DATA_TRAINING, psd_sampler_first(i + 1, WORKERS, 1, BATCH));
		check_same(&expected, seen);
		cr_assert_geq((uintptr_t)seen.images, (uintptr_t)options.memory);
		cr_assert_leq((uintptr_t)(seen.labels + BATCH * PLACES),
			      (uintptr_t)options.memory + psd_feed_bytes(&options));
	}
	cr_assert_eq(psd_feed_train(feed, N_ITERATIONS - 1, &samples, &err), PSD_OK);
	cr_assert(!psd_feed_look(feed, &seen), "after the last");
	psd_feed_close(feed);
	psd_data_close(expected.data);
	free(options.memory);
}

/* Files are opened and noted once, by the thread that opens the feed: readers do neither, beside each other. */
Test(feed, all_readers_read_the_files_that_were_opened)
{
	enum { RECORD = 1 + 3 * 32 * 32, N_READERS = 8 };
	static const uint8_t records[N_READERS][RECORD];
	struct scratch_folder folder = scratch_folder_make();
	const struct psd_feed_options options = {
		.data = {.source = {.kind = PSD_DATA_CIFAR10, .path = folder.path},
			 .shape = {3, 32, 32},
			 .classes = 10,
			 .labels = 1},
		.n_readers = N_READERS,
		.batch = N_READERS,
		.workers = 1,
		.n_iterations = 2,
	};
	struct psd_samples samples;
	struct psd_feed *feed;
	struct psd_error err;

	scratch_folder_write(&folder, "data_batch_1.bin", records, sizeof(records));
	scratch_folder_write(&folder, "test_batch.bin", records, sizeof(records));
	cr_assert_eq(psd_feed_open(&feed, &options, &err), PSD_OK, "%s", err.text);
	scratch_folder_remove(&folder);
	for (uint32_t i = 0; i < 2; i++)
		cr_assert_eq(psd_feed_train(feed, i, &samples, &err), PSD_OK, "%s", err.text);
	psd_feed_close(feed);
}

Test(feed, what_cannot_be_opened_is_said)
{
	struct psd_feed_options options = {
		.data = data_options, .n_readers = 1, .batch = BATCH, .workers = 1, .n_iterations = 1};
	struct psd_error err = {.text = ""};
	struct psd_feed *feed;

	options.data.source = (struct psd_data_source){.kind = PSD_DATA_CIFAR10, .path = "/nowhere"};
	cr_assert_neq(psd_feed_open(&feed, &options, &err), PSD_OK);
	cr_assert(strstr(err.text, "/nowhere"), "%s", err.text);
}
