/* A data set made from its seed alone. Images: each sample is the pattern of its class plus noise. A pattern is the sum
 * of coarse blocks, by which a linear layer separates classes, and a small tile that repeats everywhere, by which a
 * convolution does, even below a global pooling. Sequences: each token has a successor. Nothing is stored, so any
 * number of classes costs nothing. */
#include <math.h>
#include <string.h>

#include "real/data/data_parts.h"
#include "real/data/random.h"

enum {
	N_BLOCKS = 8,  /* number of blocks of a pattern along each side */
	TILE_SIDE = 4, /* side of the repeated tile, pixels */
	TILE_AT = N_BLOCKS * N_BLOCKS,
	N_NOISE = 4096, /* number of noise values: 16 KiB, which stay in the first-level cache */
};

/* Shares of a pattern, with sum 1. A linear layer would learn with any shares. To a convolution below a global pooling
 * the blocks are noise; with these shares it still learns within 100 small batches. */
static const float tile_share = 0.75f, block_share = 0.25f;

/* ---- images ---- */

/* Returns a number from -1 to 1 made from a hash. */
static float signed_unit(uint64_t bits)
{
	return (float)(int32_t)(bits >> 32) * 0x1p-31f;
}

/* Table of noise values, close to normal, with mean 0 and the requested deviation. Four values from one hash take a
 * fifth of the time of a hash for each; making samples must cost little beside training. */
struct noise {
	float values[N_NOISE];
};

/* Returns the sum of the four 16-bit numbers in `bits`, minus the mean of such sums: a value close to a normal
 * distribution. */
static int32_t bell(uint64_t bits)
{
	return (int32_t)(bits & 0xffff) + (int32_t)(bits >> 16 & 0xffff) + (int32_t)(bits >> 32 & 0xffff) +
	       (int32_t)(bits >> 48) - 2 * 0xffff;
}

/* Fills in each value with its opposite, so that the mean is 0. Computes in whole numbers up to the last step, so that
 * machines agree. */
static void fill_noise(struct noise *noise, double deviation)
{
	uint64_t squares = 0;

	for (uint64_t i = 0; i < N_NOISE; i += 2) {
		const int64_t value = bell(psd_random_mix(i));

		squares += 2 * (uint64_t)(value * value);
	}
	const double unit = deviation / sqrt((double)squares / N_NOISE);
	for (uint64_t i = 0; i < N_NOISE; i++)
		noise->values[i] = (float)((i % 2 ? -unit : unit) * bell(psd_random_mix(i - i % 2)));
}

static void add_noise(float *image, uint64_t elements, const struct noise *noise, uint64_t key)
{
	const uint64_t in_fours = elements - elements % 4;
	uint64_t bits;

	for (uint64_t i = 0; i < in_fours; i += 4) {
		bits = psd_random_mix(key + i);
		for (unsigned j = 0; j < 4; j++)
			image[i + j] += noise->values[bits >> 16 * j & (N_NOISE - 1)];
	}
	bits = psd_random_mix(key + in_fours);
	for (uint64_t i = in_fours; i < elements; i++, bits >>= 16)
		image[i] += noise->values[bits & (N_NOISE - 1)];
}

/* Draws a row of one channel of a class's pattern, whose key is `pattern`. */
static void draw_row(float *row, struct psd_shape shape, uint32_t y, uint64_t pattern)
{
	const uint64_t block_row = (uint64_t)y * N_BLOCKS / shape.height;
	float tile[TILE_SIDE];

	for (uint32_t x = 0; x < TILE_SIDE && x < shape.width; x++)
		tile[x] = signed_unit(psd_random_mix(pattern + TILE_AT + y % TILE_SIDE * TILE_SIDE + x));
	for (uint64_t block = 0; block < N_BLOCKS; block++) {
		/* the pixels x with x * N_BLOCKS / width == block */
		const uint32_t begin = (uint32_t)((block * shape.width + N_BLOCKS - 1) / N_BLOCKS);
		const uint32_t end = (uint32_t)(((block + 1) * shape.width + N_BLOCKS - 1) / N_BLOCKS);
		float value;

		if (begin == end) /* a vector's channels have 1 pixel each */
			continue;
		value = signed_unit(psd_random_mix(pattern + block_row * N_BLOCKS + block));
		for (uint32_t x = begin; x < end; x++)
			row[x] = block_share * value + tile_share * tile[x % TILE_SIDE];
	}
}

static void draw_plane(float *plane, struct psd_shape shape, uint64_t pattern)
{
	for (uint64_t y = 0; y < shape.height; y++) {
		float *row = plane + y * shape.width;
		const bool is_repeated =
			y >= TILE_SIDE && y * N_BLOCKS / shape.height == (y - TILE_SIDE) * N_BLOCKS / shape.height;

		if (is_repeated) /* same blocks and same row of the tile as an earlier row */
			memcpy(row, row - TILE_SIDE * shape.width, shape.width * sizeof(*row));
		else
			draw_row(row, shape, (uint32_t)y, pattern);
	}
}

static void draw_image(const struct psd_data *data, enum psd_data_part part, uint64_t sample, float *image,
		       int32_t *label)
{
	const struct psd_shape shape = data->options.shape;
	const uint64_t seed = data->options.seed, number = sample % data->options.classes;
	const uint64_t elements = (uint64_t)shape.channels * shape.height * shape.width;

	for (uint32_t channel = 0; channel < shape.channels; channel++)
		draw_plane(image + (uint64_t)channel * shape.height * shape.width, shape,
			   psd_random_key(seed, PSD_RANDOM_PATTERN, number, channel));
	add_noise(image, elements, data->state, psd_random_key(seed, PSD_RANDOM_NOISE, (uint64_t)part, sample));
	*label = (int32_t)number;
}

/* ---- sequences ---- */

/* Returns the number of tokens that the network both accepts and predicts. */
static uint32_t count_tokens(const struct psd_data *data)
{
	return data->options.vocabulary < data->options.classes ? data->options.vocabulary : data->options.classes;
}

/* The successor comes from a permutation, so no token is rarer than another; a hash would leave out some tokens. The
 * lower half of `bits` decides whether the successor follows, the upper half draws a substitute. */
static uint32_t next_token(const struct psd_data *data, uint32_t token, uint64_t bits)
{
	/* differs from the seed that orders samples */
	const uint64_t seed = psd_random_key(data->options.seed, PSD_RANDOM_PATTERN, 0, 0);
	const struct psd_sampler successors = {.seed = seed, .n_samples = count_tokens(data)};
	const double random_ratio = fmin(data->options.source.noise_ratio, 1.0);

	if ((double)(uint32_t)bits * 0x1p-32 < random_ratio)
		return psd_random_below(bits, count_tokens(data));
	return (uint32_t)psd_sampler_sample(&successors, 0, token);
}

static void draw_sequence(const struct psd_data *data, enum psd_data_part part, uint64_t sample, float *values,
			  int32_t *labels)
{
	const uint64_t key = psd_random_key(data->options.seed, PSD_RANDOM_NOISE, (uint64_t)part, sample);
	const uint64_t positions = psd_data_positions(data), first_labelled = positions - data->options.labels;
	uint32_t token = psd_random_below(psd_random_mix(key), count_tokens(data));

	for (uint64_t i = 0; i < positions; i++) {
		values[i] = (float)token;
		token = next_token(data, token, psd_random_mix(key + i + 1));
		if (i >= first_labelled)
			labels[i - first_labelled] = (int32_t)token;
	}
}

/* ---- the reader ---- */

static enum psd_status open_synthetic(struct psd_data *data, struct psd_error *err)
{
	const struct psd_data_source *source = &data->options.source;
	const bool has_images = data->options.vocabulary == 0;

	PSD_TRY(has_images ? psd_data_take_state(data, sizeof(struct noise), err) : PSD_OK);
	if (has_images)
		fill_noise(data->state, source->noise_ratio);
	data->n_samples[PSD_DATA_TRAINING] = source->training_samples;
	data->n_samples[PSD_DATA_TEST] = source->test_samples;
	return PSD_OK;
}

static enum psd_status read_synthetic(struct psd_data *data, enum psd_data_part part, uint64_t epoch, uint64_t sample,
				      float *image, int32_t *labels, struct psd_error *err)
{
	(void)epoch;
	(void)err;
	if (data->options.vocabulary > 0)
		draw_sequence(data, part, sample, image, labels);
	else
		draw_image(data, part, sample, image, labels);
	return PSD_OK;
}

const struct psd_data_reader psd_data_synthetic = {
	.has_images = true, .has_tokens = true, .open = open_synthetic, .read = read_synthetic};
