/* The synthetic set depends on its seed only and has the requested noise. A linear layer and a convolution can learn
 * its images; its sequences can be learned by counting pairs of tokens. */
#define _XOPEN_SOURCE 700
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "real/data/data.h"
#include "real/data/sampler.h"
#include "real/work/solver.h"
#include "tests/real/data/data_helper.h"

enum { SIDE = 16, CHANNELS = 3, PIXELS = CHANNELS * SIDE * SIDE, CLASSES = 10 };

static struct psd_data_options options_with(double noise_ratio, uint64_t seed)
{
	return (struct psd_data_options){
		.source = {.kind = PSD_DATA_SYNTHETIC,
			   .training_samples = 1000,
			   .test_samples = 300,
			   .noise_ratio = noise_ratio},
		.shape = {CHANNELS, SIDE, SIDE},
		.classes = CLASSES,
		.labels = 1,
		.seed = seed,
	};
}

static struct psd_data *open_with(double noise_ratio, uint64_t seed)
{
	const struct psd_data_options options = options_with(noise_ratio, seed);

	return open_data(&options);
}

Test(synthetic, a_sample_depends_on_seed_part_and_number_only)
{
	struct psd_data *one = open_with(0.5, 1), *again = open_with(0.5, 1), *other = open_with(0.5, 2);
	float image[PIXELS], same[PIXELS], different[PIXELS];
	const int32_t label = read_sample(one, PSD_DATA_TRAINING, 0, 17, image);

	cr_expect_eq(label, 17 % CLASSES);
	read_sample(again, PSD_DATA_TRAINING, 0, 999, same); /* another order of reading */
	cr_expect_eq(read_sample(again, PSD_DATA_TRAINING, 5, 17, same), label);
	cr_expect_eq(memcmp(image, same, sizeof(image)), 0);
	read_sample(other, PSD_DATA_TRAINING, 0, 17, different);
	cr_expect_neq(memcmp(image, different, sizeof(image)), 0, "by seed");
	read_sample(one, PSD_DATA_TEST, 0, 17, different);
	cr_expect_neq(memcmp(image, different, sizeof(image)), 0, "test samples are not training samples");
	read_sample(one, PSD_DATA_TRAINING, 0, 17 + CLASSES, different);
	cr_expect_neq(memcmp(image, different, sizeof(image)), 0, "samples of a class differ");
	psd_data_close(one);
	psd_data_close(again);
	psd_data_close(other);
}

Test(synthetic, noise_is_as_strong_as_asked)
{
	const double noise_ratio = 0.75;
	struct psd_data *quiet = open_with(0, 1), *noisy = open_with(noise_ratio, 1);
	float pattern[PIXELS], image[PIXELS];
	double sum = 0, squares = 0, beyond = 0;
	enum { SAMPLES = 100, DRAWS = SAMPLES * PIXELS };

	for (uint64_t sample = 0; sample < SAMPLES; sample++) {
		read_sample(quiet, PSD_DATA_TRAINING, 0, sample, pattern);
		read_sample(noisy, PSD_DATA_TRAINING, 0, sample, image);
		for (unsigned i = 0; i < PIXELS; i++) {
			const double noise = ((double)image[i] - (double)pattern[i]) / noise_ratio;

			cr_assert(fabsf(pattern[i]) <= 1.0f);
			sum += noise;
			squares += noise * noise;
			beyond += fabs(noise) > 2;
		}
	}
	/* five standard errors of 76,800 draws: of the mean 5 / sqrt(n), of the variance 5 sqrt(2 / n) */
	cr_expect_float_eq(sum / DRAWS, 0, 5 / sqrt(DRAWS));
	cr_expect_float_eq(squares / DRAWS, 1, 5 * sqrt(2.0 / DRAWS));
	cr_expect_float_eq(beyond / DRAWS, 0.045, 0.01,
			   "about as many beyond 2 deviations as in a normal distribution: %g", beyond / DRAWS);
	psd_data_close(quiet);
	psd_data_close(noisy);
}

/* Fifteen values: three fours that are drawn together, and a rest. */
Test(synthetic, noise_in_one_place_says_nothing_of_another)
{
	enum { VALUES = 15, SAMPLES = 4000 };
	struct psd_data_options quiet_options = options_with(0, 1), noisy_options = options_with(1, 1);
	double products[VALUES][VALUES] = {{0}}, sums[VALUES] = {0};
	float pattern[VALUES], image[VALUES];
	struct psd_data *quiet, *noisy;

	quiet_options.shape = noisy_options.shape = (struct psd_shape){1, 3, 5};
	quiet_options.source.training_samples = noisy_options.source.training_samples = SAMPLES;
	quiet = open_data(&quiet_options);
	noisy = open_data(&noisy_options);
	for (uint64_t sample = 0; sample < SAMPLES; sample++) {
		read_sample(quiet, PSD_DATA_TRAINING, 0, sample, pattern);
		read_sample(noisy, PSD_DATA_TRAINING, 0, sample, image);
		for (unsigned i = 0; i < VALUES; i++) {
			sums[i] += (double)image[i] - (double)pattern[i];
			for (unsigned j = 0; j < VALUES; j++)
				products[i][j] += ((double)image[i] - (double)pattern[i]) *
						  ((double)image[j] - (double)pattern[j]);
		}
	}
	/* five standard errors */
	for (unsigned i = 0; i < VALUES; i++) {
		cr_expect_float_eq(sums[i] / SAMPLES, 0, 5 / sqrt(SAMPLES), "value %u: %g", i, sums[i] / SAMPLES);
		for (unsigned j = 0; j < VALUES; j++)
			cr_expect_float_eq(products[i][j] / SAMPLES, i == j, 5 * sqrt((i == j ? 2.0 : 1.0) / SAMPLES),
					   "values %u and %u: %g", i, j, products[i][j] / SAMPLES);
	}
	psd_data_close(quiet);
	psd_data_close(noisy);
}

Test(synthetic, any_shape_will_do)
{
	static const struct psd_shape shapes[] = {{1, 1, 1},   {7, 1, 1},  {1, 1, 9},	{2, 3, 5},
						  {1, 28, 28}, {3, 9, 17}, {4096, 1, 1}};
	static float image[4096 + 1];

	for (unsigned i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct psd_data_options options = options_with(0, 3);
		const size_t elements = (size_t)shapes[i].channels * shapes[i].height * shapes[i].width;
		struct psd_data *data;

		options.shape = shapes[i];
		options.classes = 22000;
		options.source.training_samples = 30000;
		data = open_data(&options);
		for (size_t j = 0; j <= elements; j++)
			image[j] = 9;
		cr_expect_eq(read_sample(data, PSD_DATA_TRAINING, 0, 22001, image), 1);
		for (size_t j = 0; j < elements; j++)
			cr_assert(fabsf(image[j]) <= 1.0f, "shape %u, value %zu is not set", i, j);
		cr_expect_eq(image[elements], 9, "shape %u: no value behind the last", i);
		psd_data_close(data);
	}
}

/* 64 columns are 8 blocks of 8, in each of which a tile of 4 stands twice. */
Test(synthetic, a_pattern_is_blocks_over_a_tile)
{
	struct psd_data_options options = options_with(0, 1);
	static float image[64 * 64];
	struct psd_data *data;

	options.shape = (struct psd_shape){1, 64, 64};
	data = open_data(&options);
	read_sample(data, PSD_DATA_TRAINING, 0, 3, image);
	for (unsigned y = 0; y + 4 < 64; y++)
		for (unsigned x = 0; x + 4 < 64; x++) {
			const float here = image[y * 64 + x], right = image[y * 64 + x + 4],
				    below = image[(y + 4) * 64 + x];

			cr_assert_eq(here == right, x % 8 < 4, "column %u, row %u", x, y);
			cr_assert_eq(here == below, y % 8 < 4, "column %u, row %u", x, y);
			cr_assert_neq(here, image[y * 64 + x + 1]);
			cr_assert_neq(here, image[(y + 1) * 64 + x]);
		}
	psd_data_close(data);
}

Test(synthetic, an_image_has_one_label)
{
	struct psd_data_options options = options_with(0, 1);
	struct psd_error err = {.text = "accepted"};
	struct psd_data *data;

	options.labels = SIDE * SIDE;
	cr_expect_eq(psd_data_open(&data, &options, &err), PSD_EINVAL);
	cr_expect_str_eq(err.text, "an image has one label, the network expects labels for 256 positions");
}

/* ---- sequences ---- */

enum { PLACES = 64, TOKENS = 11, SEQUENCES = 1000, PAIRS = SEQUENCES * PLACES };

static struct psd_data_options sequences_with(double noise_ratio, uint64_t seed)
{
	return (struct psd_data_options){
		.source = {.kind = PSD_DATA_SYNTHETIC,
			   .training_samples = SEQUENCES,
			   .test_samples = SEQUENCES,
			   .noise_ratio = noise_ratio},
		.shape = {1, PLACES, 1},
		.classes = TOKENS,
		.labels = PLACES,
		.vocabulary = TOKENS + 5,
		.seed = seed,
	};
}

/* How often each token follows each. */
struct pairs {
	uint32_t n[TOKENS][TOKENS];
};

static struct pairs count_pairs(const struct psd_data_options *options)
{
	struct psd_data *data = open_data(options);
	struct pairs pairs = {{{0}}};
	float values[PLACES + 1];
	int32_t labels[PLACES];

	for (uint64_t sample = 0; sample < SEQUENCES; sample++) {
		read_sequence(data, PSD_DATA_TRAINING, 0, sample, values, labels);
		for (unsigned i = 0; i < PLACES; i++) {
			cr_assert(values[i] >= 0 && values[i] < TOKENS, "token %g", (double)values[i]);
			cr_assert(labels[i] >= 0 && labels[i] < TOKENS, "label %d", labels[i]);
			cr_assert(i + 1 == PLACES || values[i + 1] == (float)labels[i], "a label is what follows");
			pairs.n[(unsigned)values[i]][labels[i]]++;
		}
	}
	psd_data_close(data);
	return pairs;
}

/* Finds each token's only successor in a set without noise. */
static void find_successors(uint64_t seed, unsigned successors[TOKENS])
{
	const struct psd_data_options options = sequences_with(0, seed);
	const struct pairs pairs = count_pairs(&options);

	for (unsigned token = 0; token < TOKENS; token++) {
		unsigned n_followers = 0;

		for (unsigned next = 0; next < TOKENS; next++)
			if (pairs.n[token][next] > 0) {
				n_followers++;
				successors[token] = next;
			}
		cr_assert_eq(n_followers, 1, "%u different tokens follow token %u", n_followers, token);
	}
}

Test(synthetic, a_sequence_depends_on_seed_part_and_number_only)
{
	const struct psd_data_options options = sequences_with(0.5, 1), other_options = sequences_with(0.5, 2);
	struct psd_data *one = open_data(&options), *again = open_data(&options), *other = open_data(&other_options);
	float values[PLACES], same[PLACES], different[PLACES];
	int32_t labels[PLACES], same_labels[PLACES];

	read_sequence(one, PSD_DATA_TRAINING, 0, 17, values, labels);
	read_sequence(again, PSD_DATA_TRAINING, 0, 999, same, same_labels); /* another order of reading */
	read_sequence(again, PSD_DATA_TRAINING, 5, 17, same, same_labels);
	cr_expect_eq(memcmp(values, same, sizeof(values)), 0);
	cr_expect_eq(memcmp(labels, same_labels, sizeof(labels)), 0);
	read_sequence(other, PSD_DATA_TRAINING, 0, 17, different, same_labels);
	cr_expect_neq(memcmp(values, different, sizeof(values)), 0, "by seed");
	read_sequence(one, PSD_DATA_TEST, 0, 17, different, same_labels);
	cr_expect_neq(memcmp(values, different, sizeof(values)), 0, "test samples are not training samples");
	read_sequence(one, PSD_DATA_TRAINING, 0, 18, different, same_labels);
	cr_expect_neq(memcmp(values, different, sizeof(values)), 0, "samples differ");
	psd_data_close(one);
	psd_data_close(again);
	psd_data_close(other);
}

Test(synthetic, each_token_has_a_successor_of_its_own_and_of_the_seed)
{
	unsigned successors[TOKENS], other[TOKENS];
	bool is_taken[TOKENS] = {false};

	find_successors(1, successors);
	find_successors(2, other);
	cr_expect_neq(memcmp(successors, other, sizeof(successors)), 0, "by seed");
	for (unsigned token = 0; token < TOKENS; token++) {
		cr_expect_not(is_taken[successors[token]], "token %u follows two", successors[token]);
		is_taken[successors[token]] = true;
	}
}

/* A random token is the successor by chance, too: of n tokens one in n. */
Test(synthetic, a_successor_comes_unless_noise_does)
{
	static const double noise_ratios[] = {0.25, 0.5, 1, 100};
	unsigned successors[TOKENS];

	find_successors(1, successors);
	for (unsigned i = 0; i < sizeof(noise_ratios) / sizeof(noise_ratios[0]); i++) {
		const struct psd_data_options options = sequences_with(noise_ratios[i], 1);
		const double chance = fmin(noise_ratios[i], 1), expected = 1 - chance + chance / TOKENS;
		const struct pairs pairs = count_pairs(&options);
		uint32_t n_right = 0;

		for (unsigned token = 0; token < TOKENS; token++)
			n_right += pairs.n[token][successors[token]];
		/* five standard errors */
		cr_expect_float_eq((double)n_right / PAIRS, expected, 5 * sqrt(expected * (1 - expected) / PAIRS),
				   "noise %g: %u of %d", noise_ratios[i], n_right, PAIRS);
	}
}

/* Five standard errors. A token that is its own successor comes in runs, which makes the variance (1 + 1/2) / (1 - 1/2)
 * times that of independent draws, and no other token's is larger. */
Test(synthetic, no_token_is_rarer_than_another)
{
	const struct psd_data_options options = sequences_with(0.5, 1);
	const struct pairs pairs = count_pairs(&options);

	for (unsigned token = 0; token < TOKENS; token++) {
		uint32_t n = 0;

		for (unsigned next = 0; next < TOKENS; next++)
			n += pairs.n[token][next];
		cr_expect_float_eq((double)n / PAIRS, 1.0 / TOKENS, 5 * sqrt(3.0 / TOKENS / PAIRS), "token %u: %u",
				   token, n);
	}
}

Test(synthetic, the_only_label_of_a_sequence_is_the_last)
{
	struct psd_data_options options = sequences_with(0.5, 1);
	struct psd_data *all = open_data(&options), *last;
	float values[PLACES], same[PLACES];
	int32_t labels[PLACES];

	options.labels = 1;
	last = open_data(&options);
	for (uint64_t sample = 0; sample < 20; sample++) {
		read_sequence(all, PSD_DATA_TEST, 0, sample, values, labels);
		cr_expect_eq(read_sample(last, PSD_DATA_TEST, 0, sample, same), labels[PLACES - 1]);
		cr_expect_eq(memcmp(values, same, sizeof(values)), 0);
	}
	psd_data_close(all);
	psd_data_close(last);
}

/* ---- learning ---- */

/* A linear layer over `inputs` features with softmax loss, trained one batch at a time by the solver. */
enum { MAX_INPUTS = PIXELS, BATCH = 20 };

struct linear {
	unsigned inputs;
	float weight[CLASSES * MAX_INPUTS], gradient[CLASSES * MAX_INPUTS], history[CLASSES * MAX_INPUTS];
};

static void score(const struct linear *linear, const float *features, float scores[CLASSES])
{
	for (unsigned number = 0; number < CLASSES; number++) {
		scores[number] = 0;
		for (unsigned i = 0; i < linear->inputs; i++)
			scores[number] += linear->weight[number * linear->inputs + i] * features[i];
	}
}

static int32_t best_of(const float scores[CLASSES])
{
	int32_t best = 0;

	for (int32_t number = 1; number < CLASSES; number++)
		if (scores[number] > scores[best])
			best = number;
	return best;
}

/* scores become the loss's gradient by them. */
static void softmax_gradient(float scores[CLASSES], int32_t label)
{
	const float top = scores[best_of(scores)];
	float sum = 0;

	for (unsigned number = 0; number < CLASSES; number++)
		sum += scores[number] = expf(scores[number] - top);
	for (unsigned number = 0; number < CLASSES; number++)
		scores[number] = scores[number] / sum - (number == (unsigned)label);
}

/* Adds a sample's gradient; dfeatures, unless NULL, gets the loss's gradient by the features. */
static void learn(struct linear *linear, const float *features, int32_t label, float *dfeatures)
{
	float dscores[CLASSES];

	score(linear, features, dscores);
	softmax_gradient(dscores, label);
	for (unsigned i = 0; i < linear->inputs; i++) {
		float sum = 0;

		for (unsigned number = 0; number < CLASSES; number++) {
			linear->gradient[number * linear->inputs + i] += dscores[number] * features[i] / BATCH;
			sum += dscores[number] * linear->weight[number * linear->inputs + i];
		}
		if (dfeatures)
			dfeatures[i] = sum;
	}
}

static void step(float rate, float *weight, float *gradient, float *history, unsigned elements)
{
	const struct psd_update update = {.rate = rate, .momentum = 0.9f};

	psd_update_apply(&update, weight, gradient, (struct psd_moments){.history = history}, elements);
	memset(gradient, 0, elements * sizeof(*gradient));
}

Test(synthetic, a_linear_layer_learns_it)
{
	static struct linear linear = {.inputs = PIXELS};
	static float images[BATCH][PIXELS];
	struct psd_data *data = open_with(0.5, 1);
	struct psd_error err;
	int32_t labels[BATCH];
	unsigned correct = 0;

	for (uint64_t iteration = 0; iteration < 50; iteration++) {
		cr_assert_eq(psd_data_read_batch(data, PSD_DATA_TRAINING, psd_sampler_first(iteration, 1, 0, BATCH),
						 BATCH, images[0], labels, &err),
			     PSD_OK);
		for (unsigned i = 0; i < BATCH; i++)
			learn(&linear, images[i], labels[i], NULL);
		step(0.01f, linear.weight, linear.gradient, linear.history, CLASSES * PIXELS);
	}
	for (uint64_t sample = 0; sample < psd_data_samples(data, PSD_DATA_TEST); sample++) {
		const int32_t label = read_sample(data, PSD_DATA_TEST, 0, sample, images[0]);
		float scores[CLASSES];

		score(&linear, images[0], scores);
		correct += best_of(scores) == label;
	}
	cr_expect_gt(correct, 300 * 95 / 100, "%u of 300", correct);
	psd_data_close(data);
}

/* A convolution, a rectifier and the mean over the whole map: it cannot tell where anything is. */
enum { FILTERS = 24, KERNEL = 4, MAP = SIDE - KERNEL + 1, TAPS = CHANNELS * KERNEL * KERNEL };

struct convolution {
	float weight[FILTERS * TAPS], gradient[FILTERS * TAPS], history[FILTERS * TAPS];
	bool is_active[FILTERS][MAP * MAP];
};

static float pixel_under(const float *image, unsigned y, unsigned x, unsigned tap)
{
	const unsigned channel = tap / (KERNEL * KERNEL), row = tap / KERNEL % KERNEL, column = tap % KERNEL;

	return image[(channel * SIDE + y + row) * SIDE + x + column];
}

static void convolve(struct convolution *convolution, const float *image, float features[FILTERS])
{
	memset(features, 0, FILTERS * sizeof(*features));
	for (unsigned at = 0; at < MAP * MAP; at++) {
		float window[TAPS];

		for (unsigned tap = 0; tap < TAPS; tap++)
			window[tap] = pixel_under(image, at / MAP, at % MAP, tap);
		for (unsigned filter = 0; filter < FILTERS; filter++) {
			float sum = 0;

			for (unsigned tap = 0; tap < TAPS; tap++)
				sum += convolution->weight[filter * TAPS + tap] * window[tap];
			convolution->is_active[filter][at] = sum > 0;
			features[filter] += sum > 0 ? sum / (MAP * MAP) : 0;
		}
	}
}

static void convolve_backward(struct convolution *convolution, const float *image, const float dfeatures[FILTERS])
{
	for (unsigned at = 0; at < MAP * MAP; at++)
		for (unsigned filter = 0; filter < FILTERS; filter++)
			for (unsigned tap = 0; convolution->is_active[filter][at] && tap < TAPS; tap++)
				convolution->gradient[filter * TAPS + tap] +=
					dfeatures[filter] / (MAP * MAP) / BATCH *
					pixel_under(image, at / MAP, at % MAP, tap);
}

static void begin_filters(struct convolution *convolution)
{
	uint32_t state = 7;

	for (unsigned i = 0; i < FILTERS * TAPS; i++) {
		state = state * 1664525u + 1013904223u;
		convolution->weight[i] = ((float)(state >> 8) * 0x1p-23f - 1.0f) * 0.25f;
	}
}

Test(synthetic, a_convolution_learns_it)
{
	static struct convolution convolution;
	static struct linear linear = {.inputs = FILTERS};
	static float images[BATCH][PIXELS];
	struct psd_data *data = open_with(0.5, 1);
	struct psd_error err;
	int32_t labels[BATCH];
	unsigned correct = 0;
	float features[FILTERS], dfeatures[FILTERS], scores[CLASSES];

	begin_filters(&convolution);
	for (uint64_t iteration = 0; iteration < 150; iteration++) {
		cr_assert_eq(psd_data_read_batch(data, PSD_DATA_TRAINING, psd_sampler_first(iteration, 1, 0, BATCH),
						 BATCH, images[0], labels, &err),
			     PSD_OK);
		for (unsigned i = 0; i < BATCH; i++) {
			convolve(&convolution, images[i], features);
			learn(&linear, features, labels[i], dfeatures);
			convolve_backward(&convolution, images[i], dfeatures);
		}
		step(0.3f, linear.weight, linear.gradient, linear.history, CLASSES * FILTERS);
		step(0.3f, convolution.weight, convolution.gradient, convolution.history, FILTERS * TAPS);
	}
	for (uint64_t sample = 0; sample < psd_data_samples(data, PSD_DATA_TEST); sample++) {
		const int32_t label = read_sample(data, PSD_DATA_TEST, 0, sample, images[0]);

		convolve(&convolution, images[0], features);
		score(&linear, features, scores);
		correct += best_of(scores) == label;
	}
	cr_expect_gt(correct, 300 * 95 / 100, "%u of 300", correct);
	psd_data_close(data);
}
