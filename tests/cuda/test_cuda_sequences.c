/* Layers of sequences on the CUDA device, and losses of places: bodies of their kernels as host code against plain
 * references in double, and networks against the CPU. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "real/device/gpu/bodies_sequences.h"
#include "tests/cuda/compare_helper.h"
#include "tests/cuda/draw_helper.h"
#include "tests/real/transformer_helper.h"
#include "tests/test_with.h"

/* More channels than a place has indices, and not a multiple of them. */
enum { SAMPLES = 2, PLACES = 3, CHANNELS = 70, ALL_PLACES = SAMPLES * PLACES, ALL = ALL_PLACES * CHANNELS };
enum { ALL_PARTS = ALL_PLACES * PSD_GPU_PARTS };

#define TOLERANCE	2e-5 /* for values near 1, each with some roundings */
#define DIFFERENCE_STEP 1e-4 /* in double */

static const struct psd_gpu_channel orders[] = {{PLACES, CHANNELS}, {1, CHANNELS}}; /* channels first, last */

static struct psd_gpu_values floats(float *data)
{
	return (struct psd_gpu_values){data, PSD_GPU_FLOAT};
}

/* By the definition of either order. */
static unsigned at(unsigned order, unsigned place, unsigned channel)
{
	if (order == 0)
		return (place / PLACES * CHANNELS + channel) * PLACES + place % PLACES;
	return place * CHANNELS + channel;
}

static void gather(double values[CHANNELS], const float *from, unsigned order, unsigned place)
{
	for (unsigned c = 0; c < CHANNELS; c++)
		values[c] = (double)from[at(order, place, c)];
}

/* ---- the loss ---- */

struct loss {
	float scores[ALL], exponents[ALL], gradient[ALL], largest[ALL_PARTS];
	uint32_t likely_classes[ALL_PARTS], is_correct[ALL_PLACES];
	int32_t labels[ALL_PLACES];
	double partial_sums[ALL_PARTS], sums[ALL_PLACES], losses[ALL_PLACES];
};

static void run_loss(struct loss *loss, unsigned order)
{
	const struct psd_gpu_loss of = {floats(loss->scores), orders[order],   loss->labels,	   loss->largest,
					loss->likely_classes, loss->exponents, loss->partial_sums, loss->sums,
					loss->losses,	      loss->is_correct};
	const struct psd_gpu_loss_back back = {of, floats(loss->gradient), 0.5f, false};

	for (uint64_t i = 0; i < ALL_PARTS; i++)
		psd_loss_largest_at(i, &of);
	for (uint64_t i = 0; i < ALL_PARTS; i++)
		psd_loss_exponents_at(i, &of);
	for (uint64_t i = 0; i < ALL_PLACES; i++)
		psd_loss_end_at(i, &of);
	for (uint64_t i = 0; i < ALL; i++)
		psd_loss_back_at(i, &back);
}

static void check_loss_of(const struct loss *loss, unsigned order, unsigned place)
{
	const unsigned label = (unsigned)loss->labels[place];
	double scores[CHANNELS], sum = 0;

	gather(scores, loss->scores, order, place);
	for (unsigned c = 0; c < CHANNELS; c++)
		sum += exp(scores[c]);
	cr_expect_float_eq(loss->losses[place], log(sum) - scores[label], TOLERANCE, "order %u, place %u", order,
			   place);
	for (unsigned c = 0; c < CHANNELS; c++)
		cr_expect_float_eq(loss->gradient[at(order, place, c)],
				   0.5 * (exp(scores[c]) / sum - (c == label ? 1 : 0)), TOLERANCE,
				   "order %u, place %u, class %u", order, place, c);
}

/* The lowest class among equal scores counts: 3 and 35 are of one part, 40 of another. */
Test(cuda_sequences, each_place_has_its_loss)
{
	static struct loss loss;

	for (unsigned order = 0; order < 2; order++) {
		fill(loss.scores, ALL, 7);
		for (unsigned place = 0; place < ALL_PLACES; place++) {
			const unsigned labels[] = {3, 35, 40};

			loss.labels[place] = (int32_t)labels[place % 3];
			for (unsigned i = 0; i < 3; i++)
				loss.scores[at(order, place, labels[i])] = 2;
		}
		run_loss(&loss, order);
		for (unsigned place = 0; place < ALL_PLACES; place++) {
			check_loss_of(&loss, order, place);
			cr_expect_eq(loss.is_correct[place], loss.labels[place] == 3);
		}
	}
}

/* ---- embedding, position ---- */

enum { TOKENS = 5 };

/* Token 3 is at no place, 1 at one. */
static const float tokens[ALL_PLACES] = {2, 0, 2, 4, 1, 2};

Test(cuda_sequences, tokens_name_rows)
{
	static float table[TOKENS * CHANNELS], out[ALL];

	fill(table, TOKENS * CHANNELS, 8);
	for (unsigned order = 0; order < 2; order++) {
		const struct psd_gpu_embedding run = {floats(out), orders[order], tokens, table};

		for (uint64_t i = 0; i < ALL; i++)
			psd_embedding_at(i, &run);
		for (unsigned place = 0; place < ALL_PLACES; place++)
			for (unsigned c = 0; c < CHANNELS; c++)
				cr_expect_eq(out[at(order, place, c)], table[(unsigned)tokens[place] * CHANNELS + c]);
	}
}

Test(cuda_sequences, places_of_one_token_are_a_chain)
{
	const uint32_t expected_next[] = {2, 6, 5, 6, 6, 6}, expected_first[] = {1, 1, 0, 1, 1, 0};
	uint32_t next[ALL_PLACES], is_first[ALL_PLACES];
	const struct psd_gpu_token_chains run = {tokens, ALL_PLACES, next, is_first};

	for (uint64_t i = 0; i < ALL_PLACES; i++)
		psd_token_chains_at(i, &run);
	cr_expect_arr_eq(next, expected_next, sizeof(next));
	cr_expect_arr_eq(is_first, expected_first, sizeof(is_first));
}

/* Rows of tokens that are at no place stay. */
Test(cuda_sequences, rows_get_the_gradients_of_their_places)
{
	const uint32_t next[] = {2, 6, 5, 6, 6, 6}, is_first[] = {1, 1, 0, 1, 1, 0};
	static float diff[ALL], dtable[TOKENS * CHANNELS];

	fill(diff, ALL, 9);
	for (unsigned order = 0; order < 2; order++) {
		const struct psd_gpu_embedding_back run = {floats(diff), orders[order], tokens, next,
							   is_first,	 ALL_PLACES,	dtable, 0.25f};

		for (unsigned i = 0; i < TOKENS * CHANNELS; i++)
			dtable[i] = 77;
		for (uint64_t i = 0; i < ALL; i++)
			psd_embedding_back_at(i, &run);
		for (unsigned token = 0; token < TOKENS; token++)
			for (unsigned c = 0; c < CHANNELS; c++) {
				double sum = token == 3 ? 77 : 0;

				for (unsigned place = 0; place < ALL_PLACES; place++)
					if (tokens[place] == (float)token)
						sum += 0.25 * (double)diff[at(order, place, c)];
				cr_expect_float_eq(dtable[token * CHANNELS + c], sum, TOLERANCE);
			}
	}
}

Test(cuda_sequences, positions_lie_in_the_plain_order)
{
	static float from[ALL], to[ALL], weight[PLACES * CHANNELS], dweight[PLACES * CHANNELS];

	fill(from, ALL, 10);
	fill(weight, PLACES * CHANNELS, 11);
	for (unsigned order = 0; order < 2; order++) {
		const struct psd_gpu_position run = {floats(from), floats(to), orders[order], PLACES, weight};
		const struct psd_gpu_position_back back = {floats(from), orders[order], PLACES,
							   SAMPLES,	 dweight,	0.25f};

		for (uint64_t i = 0; i < ALL; i++)
			psd_position_at(i, &run);
		for (uint64_t i = 0; i < PLACES * CHANNELS; i++)
			psd_position_back_at(i, &back);
		for (unsigned place = 0; place < PLACES; place++)
			for (unsigned c = 0; c < CHANNELS; c++) {
				const unsigned first = at(order, place, c), second = at(order, PLACES + place, c);

				cr_expect_eq(to[first], from[first] + weight[c * PLACES + place]);
				cr_expect_eq(to[second], from[second] + weight[c * PLACES + place]);
				cr_expect_float_eq(dweight[c * PLACES + place], 0.25f * (from[first] + from[second]),
						   TOLERANCE);
			}
	}
}

/* The last of a sample's places has no part in it. */
Test(cuda_sequences, vectors_get_the_sums_of_their_places)
{
	enum { OWN = PLACES - 1 };
	static float diff[ALL], dweight[CHANNELS * OWN];

	fill(diff, ALL, 20);
	for (unsigned order = 0; order < 2; order++) {
		const struct psd_gpu_prefix_back run = {floats(diff), orders[order], PLACES, OWN,
							SAMPLES,      dweight,	     0.25f};

		for (uint64_t i = 0; i < (uint64_t)CHANNELS * OWN; i++)
			psd_prefix_back_at(i, &run);
		for (unsigned place = 0; place < OWN; place++)
			for (unsigned c = 0; c < CHANNELS; c++)
				cr_expect_float_eq(
					dweight[c * OWN + place],
					0.25f * (diff[at(order, place, c)] + diff[at(order, PLACES + place, c)]),
					TOLERANCE);
	}
}

/* ---- normalisation of places ---- */

#define EPSILON 0.01

struct layer_norm {
	float from[ALL], to[ALL], diff[ALL], dfrom[ALL], gamma[CHANNELS], beta[CHANNELS];
	float mean[ALL_PLACES], inverse[ALL_PLACES], partial[2][ALL_PARTS];
};

/* Far from 0, where the mean of squares less the square of the mean would say nothing in float. */
static void fill_norm(struct layer_norm *norm)
{
	fill(norm->from, ALL, 12);
	fill(norm->diff, ALL, 13);
	fill(norm->dfrom, ALL, 14);
	fill(norm->gamma, CHANNELS, 15);
	fill(norm->beta, CHANNELS, 16);
	for (unsigned i = 0; i < ALL; i++)
		norm->from[i] = 100.0f + 4.0f * norm->from[i];
}

static void run_norm(struct layer_norm *norm, unsigned order, bool is_centred, bool has_vectors, bool adds)
{
	struct psd_gpu_layer_norm of = {.from = floats(norm->from),
					.to = floats(norm->to),
					.diff = floats(norm->diff),
					.channel = orders[order],
					.is_centred = is_centred,
					.gamma = has_vectors ? norm->gamma : NULL,
					.beta = has_vectors ? norm->beta : NULL,
					.epsilon = (float)EPSILON,
					.mean = norm->mean,
					.inverse = norm->inverse,
					.partial = {norm->partial[0], norm->partial[1]},
					.adds = adds};

	for (uint64_t i = 0; i < ALL_PARTS && is_centred; i++)
		psd_layer_norm_sums_at(i, &of);
	for (uint64_t i = 0; i < ALL_PARTS; i++)
		psd_layer_norm_squares_at(i, &of);
	for (uint64_t i = 0; i < ALL_PARTS; i++)
		psd_layer_norm_end_at(i, &of);
	of.to = floats(norm->dfrom);
	for (uint64_t i = 0; i < ALL_PARTS; i++)
		psd_layer_norm_dots_at(i, &of);
	for (uint64_t i = 0; i < ALL_PARTS; i++)
		psd_layer_norm_back_at(i, &of);
}

static void normalise(double to[CHANNELS], const double from[CHANNELS], const struct layer_norm *norm, bool is_centred,
		      bool has_vectors)
{
	double mean = 0, variance = EPSILON;

	for (unsigned c = 0; c < CHANNELS && is_centred; c++)
		mean += from[c] / CHANNELS;
	for (unsigned c = 0; c < CHANNELS; c++)
		variance += pow(from[c] - mean, 2) / CHANNELS;
	for (unsigned c = 0; c < CHANNELS; c++)
		to[c] = (from[c] - mean) / sqrt(variance) * (has_vectors ? (double)norm->gamma[c] : 1) +
			(has_vectors ? (double)norm->beta[c] : 0);
}

/* Slope of the sum of the results times diff by one of the values. */
static double slope_of(double from[CHANNELS], unsigned channel, const double diff[CHANNELS],
		       const struct layer_norm *norm, bool is_centred, bool has_vectors)
{
	const double kept = from[channel];
	double to[CHANNELS], sum = 0;

	for (int side = -1; side <= 1; side += 2) {
		from[channel] = kept + side * DIFFERENCE_STEP;
		normalise(to, from, norm, is_centred, has_vectors);
		for (unsigned c = 0; c < CHANNELS; c++)
			sum += side * to[c] * diff[c] / (2 * DIFFERENCE_STEP);
	}
	from[channel] = kept;
	return sum;
}

static void check_norm(unsigned order, bool is_centred, bool has_vectors, bool adds)
{
	static struct layer_norm norm;
	static float before[ALL];

	fill_norm(&norm);
	memcpy(before, norm.dfrom, sizeof(before));
	run_norm(&norm, order, is_centred, has_vectors, adds);
	for (unsigned place = 0; place < ALL_PLACES; place++) {
		double from[CHANNELS], to[CHANNELS], diff[CHANNELS];

		gather(from, norm.from, order, place);
		gather(diff, norm.diff, order, place);
		normalise(to, from, &norm, is_centred, has_vectors);
		for (unsigned c = 0; c < CHANNELS; c++) {
			const unsigned i = at(order, place, c);

			cr_expect_float_eq(norm.to[i], to[c], TOLERANCE, "order %u, place %u, %u", order, place, c);
			cr_expect_float_eq(norm.dfrom[i] - (adds ? before[i] : 0),
					   slope_of(from, c, diff, &norm, is_centred, has_vectors), TOLERANCE,
					   "order %u, place %u, %u", order, place, c);
		}
	}
}

Test(cuda_sequences, places_are_normalised)
{
	for (unsigned order = 0; order < 2; order++) {
		for (unsigned is_centred = 0; is_centred < 2; is_centred++) {
			check_norm(order, is_centred, true, false);
			check_norm(order, is_centred, false, true);
		}
	}
}

/* ---- attention ---- */

/* Rows of two heads; more places than a row has indices. */
enum { COLUMNS = 41, ROWS = 2 * COLUMNS, SCORES = ROWS * COLUMNS };

struct rows {
	float rows[SCORES], diff[SCORES], partial[2][ROWS * PSD_GPU_PARTS];
};

static void run_rows(struct rows *rows, bool is_causal)
{
	const struct psd_gpu_attention of = {
		floats(rows->rows), floats(rows->diff), COLUMNS, is_causal, {rows->partial[0], rows->partial[1]}};

	for (uint64_t i = 0; i < ROWS * PSD_GPU_PARTS; i++)
		psd_attention_sums_at(i, &of);
	for (uint64_t i = 0; i < ROWS * PSD_GPU_PARTS; i++)
		psd_attention_end_at(i, &of);
	for (uint64_t i = 0; i < ROWS * PSD_GPU_PARTS; i++)
		psd_attention_dots_at(i, &of);
	for (uint64_t i = 0; i < ROWS * PSD_GPU_PARTS; i++)
		psd_attention_back_at(i, &of);
}

/* The sum of probabilities times weights, of so many scores. */
static double weigh(const double *scores, const float *weights, unsigned n)
{
	double sum = 0, weighted = 0;

	for (unsigned c = 0; c < n; c++) {
		sum += exp(scores[c] - scores[0]);
		weighted += exp(scores[c] - scores[0]) * (double)weights[c];
	}
	return weighted / sum;
}

static void check_row(const struct rows *rows, unsigned row, unsigned visible, const float *scores,
		      const float *weights)
{
	double wide[COLUMNS], sum = 0;

	for (unsigned c = 0; c < visible; c++)
		wide[c] = (double)scores[c];
	for (unsigned c = 0; c < visible; c++)
		sum += exp(wide[c] - wide[0]);
	for (unsigned c = 0; c < COLUMNS; c++) {
		const double expected = c < visible ? exp(wide[c] - wide[0]) / sum : 0;
		double slope = 0;

		for (int side = -1; side <= 1 && c < visible; side += 2) {
			wide[c] = (double)scores[c] + side * DIFFERENCE_STEP;
			slope += side * weigh(wide, weights, visible) / (2 * DIFFERENCE_STEP);
			wide[c] = (double)scores[c];
		}
		cr_expect_float_eq(rows->rows[row * COLUMNS + c], expected, TOLERANCE, "row %u, column %u", row, c);
		cr_expect_float_eq(rows->diff[row * COLUMNS + c], slope, TOLERANCE, "row %u, column %u", row, c);
	}
}

/* Scores whose exponents are no floats. Those of later places are no numbers, and so are their gradients: nobody may
 * read them. */
static void check_rows(bool is_causal)
{
	static struct rows rows;
	static float scores[SCORES], weights[SCORES];

	fill(scores, SCORES, 17);
	fill(weights, SCORES, 18);
	for (unsigned i = 0; i < SCORES; i++) {
		const bool is_later = is_causal && i % COLUMNS > i / COLUMNS % COLUMNS;

		scores[i] = 200 + 4 * scores[i];
		rows.rows[i] = is_later ? NAN : scores[i];
		rows.diff[i] = is_later ? NAN : weights[i];
	}
	run_rows(&rows, is_causal);
	for (unsigned row = 0; row < ROWS; row++)
		check_row(&rows, row, is_causal ? row % COLUMNS + 1 : COLUMNS, scores + row * COLUMNS,
			  weights + row * COLUMNS);
}

Test(cuda_sequences, scores_become_probabilities)
{
	check_rows(false);
	check_rows(true);
}

/* ---- rotation ---- */

Test(cuda_sequences, angles_are_those_of_places)
{
	enum { FAR = 70000, HALF = 3 };
	static float angles[2 * FAR * HALF];
	const struct psd_gpu_rotary_angles run = {angles, HALF, log(500000)};

	for (uint64_t i = 0; i < FAR * HALF; i++)
		psd_rotary_angles_at(i, &run);
	for (unsigned i = 0; i < FAR * HALF; i++) {
		const double angle = i / HALF * pow(500000, -(double)(i % HALF) / HALF);

		cr_assert_float_eq(angles[2 * i], cos(angle), 1e-7, "%u", i);
		cr_assert_float_eq(angles[2 * i + 1], sin(angle), 1e-7, "%u", i);
	}
}

/* The first 12 of 70 channels are 3 heads of 4. The result has these alone, in its own order. */
enum { HEADS = 3, HALF = 2, ROTATED = HEADS * 2 * HALF };

struct rotation {
	float from[ALL], to[ALL_PLACES * ROTATED], back[ALL], angles[2 * PLACES * HALF];
};

static unsigned rotated_at(unsigned order, unsigned place, unsigned channel)
{
	if (order == 0)
		return (place / PLACES * ROTATED + channel) * PLACES + place % PLACES;
	return place * ROTATED + channel;
}

static void run_rotation(struct rotation *rotation, unsigned order)
{
	const struct psd_gpu_channel rotated = {orders[order].inner, ROTATED};
	const struct psd_gpu_rotary run = {floats(rotation->from),
					   floats(rotation->to),
					   orders[order],
					   rotated,
					   rotation->angles,
					   PLACES,
					   HEADS,
					   HALF,
					   false,
					   false};
	const struct psd_gpu_rotary back = {floats(rotation->to),
					    floats(rotation->back),
					    rotated,
					    orders[order],
					    rotation->angles,
					    PLACES,
					    HEADS,
					    HALF,
					    true,
					    true};

	for (uint64_t i = 0; i < (uint64_t)PLACES * HALF; i++)
		psd_rotary_angles_at(i, &(struct psd_gpu_rotary_angles){rotation->angles, HALF, log(100)});
	for (uint64_t i = 0; i < (uint64_t)ALL_PLACES * HEADS * HALF; i++)
		psd_rotary_at(i, &run);
	for (uint64_t i = 0; i < (uint64_t)ALL_PLACES * HEADS * HALF; i++)
		psd_rotary_at(i, &back);
}

/* The angles of a place p are p and p / 10. Back again, what was there is doubled; other channels stay. */
Test(cuda_sequences, channels_are_rotated_and_back)
{
	static struct rotation rotation;

	for (unsigned order = 0; order < 2; order++) {
		fill(rotation.from, ALL, 19);
		memcpy(rotation.back, rotation.from, sizeof(rotation.from));
		run_rotation(&rotation, order);
		for (unsigned place = 0; place < ALL_PLACES; place++)
			for (unsigned c = 0; c < CHANNELS; c++) {
				const unsigned pair = c % (2 * HALF) % HALF, real = c - c % (2 * HALF) + pair;
				const double angle = place % PLACES * pow(100, -(double)pair / HALF);
				const double x = (double)rotation.from[at(order, place, real)];
				const double y = (double)rotation.from[at(order, place, (real + HALF) % CHANNELS)];

				cr_expect_float_eq(rotation.back[at(order, place, c)],
						   (c < ROTATED ? 2 : 1) * rotation.from[at(order, place, c)],
						   TOLERANCE);
				if (c < ROTATED)
					cr_expect_float_eq(rotation.to[rotated_at(order, place, c)],
							   real == c ? x * cos(angle) - y * sin(angle)
								     : x * sin(angle) + y * cos(angle),
							   TOLERANCE, "order %u, place %u, %u", order, place, c);
			}
	}
}

/* ---- networks ---- */

static void check(const char *text, uint32_t batch)
{
	for (unsigned a = 0; a < sizeof(arithmetics) / sizeof(arithmetics[0]); a++)
		check_net_in(text, batch, &arithmetics[a]);
}

#define IMAGES "name: m\ninput: {channels: 3, height: 4, width: 3}\nlayers:\n"

/* Above a layer with parameters, read twice, and where nothing below has any. */
Test(cuda_sequences, layer_norms_are_as_on_the_cpu)
{
	check(HEAD "  - {name: n, kind: layer-norm, epsilon: 0.5}\n" TAIL, 2);
	check(HEAD "  - {name: n, kind: layer-norm, scale: false}\n" TAIL, 2);
	check(WIDE "  - {name: n, kind: layer-norm, bias: false}\n  - {name: s, kind: add, inputs: [n, base]}\n" TAIL,
	      3);
	check(IMAGES "  - {name: n, kind: layer-norm}\n" TAIL, 2);
}

Test(cuda_sequences, rms_norms_are_as_on_the_cpu)
{
	check(HEAD "  - {name: n, kind: rms-norm, epsilon: 0.5}\n" TAIL, 2);
	check(WIDE "  - {name: n, kind: rms-norm, scale: false}\n  - {name: s, kind: add, inputs: [n, base]}\n" TAIL,
	      3);
	check(IMAGES "  - {name: n, kind: rms-norm}\n" TAIL, 2);
}

Test(cuda_sequences, positions_are_as_on_the_cpu)
{
	check(HEAD "  - {name: p, kind: position}\n" TAIL, 3);
	check(WIDE "  - {name: p, kind: position}\n  - {name: s, kind: add, inputs: [p, base]}\n" TAIL, 2);
	check(WIDE "  - {name: s, kind: sigmoid}\n  - {name: p, kind: position}\n" TAIL, 2);
	check(IMAGES "  - {name: p, kind: position}\n" TAIL, 2);
	check(IMAGES "  - {name: x, kind: slice, channels: 2}\n  - {name: p, kind: position}\n"
		     "  - {name: y, kind: tanh}\n" TAIL,
	      2);
}

Test(cuda_sequences, prefixes_are_as_on_the_cpu)
{
	check(HEAD "  - {name: p, kind: prefix}\n" TAIL, 3);
	check(WIDE "  - {name: p, kind: prefix, places: 3}\n  - {name: q, kind: prefix, places: 3, input: base}\n"
		   "  - {name: s, kind: add, inputs: [p, q]}\n" TAIL,
	      2);
	check(IMAGES "  - {name: p, kind: prefix, places: 2}\n" TAIL, 2);
}

Test(cuda_sequences, gated_functions_are_as_on_the_cpu)
{
	check(HEAD "  - {name: g, kind: gelu}\n" TAIL, 2);
	check(HEAD "  - {name: g, kind: gelu, approximate: tanh}\n" TAIL, 2);
	check(HEAD "  - {name: g, kind: silu}\n" TAIL, 2);
	check(WIDE "  - {name: g, kind: gelu}\n  - {name: h, kind: gelu, approximate: tanh, input: base}\n"
		   "  - {name: i, kind: silu, input: base}\n"
		   "  - {name: s, kind: add, inputs: [g, h, i, base]}\n" TAIL,
	      2);
}

#define SEQUENCE                                                                                                       \
	"name: m\ninput: {channels: 1, height: 5}\nlayers:\n"                                                          \
	"  - {name: base, kind: embedding, vocabulary: 7, outputs: 6}\n"

Test(cuda_sequences, embeddings_are_as_on_the_cpu)
{
	check(SEQUENCE TAIL, 3);
	check("name: m\ninput: {channels: 1, height: 2, width: 3}\nlayers:\n"
	      "  - {name: a, kind: embedding, vocabulary: 4, outputs: 3}\n"
	      "  - {name: b, kind: embedding, input: input, vocabulary: 4000, outputs: 3}\n"
	      "  - {name: s, kind: add, inputs: [a, b]}\n" TAIL,
	      2);
}

/* With fewer heads than samples and with more, and where others read the same. */
Test(cuda_sequences, attention_is_as_on_the_cpu)
{
	check(SEQUENCE "  - {name: a, kind: attention, heads: 1}\n" TAIL, 3);
	check(SEQUENCE "  - {name: a, kind: attention, heads: 2, causal: true}\n" TAIL, 1);
	check(WIDE "  - {name: q, kind: conv, input: base, outputs: 48, kernel: 1}\n"
		   "  - {name: a, kind: attention, heads: 4}\n  - {name: s, kind: add, inputs: [base, a]}\n" TAIL,
	      2);
	check(WIDE "  - {name: q, kind: conv, input: base, outputs: 12, kernel: 1}\n"
		   "  - {name: a, kind: attention, heads: 2, causal: true, input: q}\n"
		   "  - {name: b, kind: attention, heads: 1, input: q}\n"
		   "  - {name: s, kind: add, inputs: [a, b]}\n" TAIL,
	      2);
	check("name: m\ninput: {channels: 3, height: 4, width: 3}\nlayers:\n  - {name: a, kind: attention, heads: 1}\n"
	      "  - {name: c, kind: conv, outputs: 2, kernel: 1}\n" TAIL,
	      2);
}

/* With fewer heads of keys than samples and with more, and where others read the same. Sums over samples that are
 * nearly 0, such as of a bias, would say nothing in 16 bits. */
Test(cuda_sequences, grouped_and_rotary_attention_is_as_on_the_cpu)
{
	check(SEQUENCE "  - {name: q, kind: conv, outputs: 16, kernel: 1, bias: false}\n"
		       "  - {name: a, kind: attention, heads: 4, kv_heads: 2, causal: true}\n" TAIL,
	      3);
	check(SEQUENCE "  - {name: q, kind: conv, outputs: 24, kernel: 1, bias: false}\n"
		       "  - {name: a, kind: attention, heads: 6, kv_heads: 3, rotary: 10000}\n" TAIL,
	      2);
	check(SEQUENCE "  - {name: a, kind: attention, heads: 1, rotary: 2, causal: true}\n" TAIL, 3);
	check(WIDE "  - {name: q, kind: conv, input: base, outputs: 32, kernel: 1, bias: false}\n"
		   "  - {name: a, kind: attention, heads: 4, kv_heads: 2, rotary: 100}\n"
		   "  - {name: b, kind: attention, heads: 4, kv_heads: 2, input: q}\n"
		   "  - {name: c, kind: attention, heads: 4, kv_heads: 2, rotary: 3, input: q}\n"
		   "  - {name: s, kind: add, inputs: [base, a, b, c]}\n" TAIL,
	      2);
	check("name: m\ninput: {channels: 6, height: 4, width: 3}\nlayers:\n"
	      "  - {name: a, kind: attention, heads: 1, rotary: 5}\n"
	      "  - {name: c, kind: conv, outputs: 2, kernel: 1}\n" TAIL,
	      2);
}

/* With several losses each has the same labels. */
Test(cuda_sequences, losses_of_places_are_as_on_the_cpu)
{
	check(SEQUENCE "  - {name: top, kind: conv, outputs: 3, kernel: 1}\n  - {name: loss, kind: softmax-loss}\n", 2);
	check(WIDE "  - {name: top, kind: conv, outputs: 40, kernel: 3}\n"
		   "  - {name: aside, kind: softmax-loss, weight: 0.3}\n"
		   "  - {name: loss, kind: softmax-loss, input: top, weight: 2}\n",
	      3);
}

TEST_ROW(cuda_sequences, a_transformer_is_as_on_the_cpu, check(TRANSFORMER, 3))
TEST_ROW(cuda_sequences, a_llama_is_as_on_the_cpu, check(LLAMA, 3))

/* Tokens come into one slot and the other in turn, and so do labels. */
Test(cuda_sequences, each_iteration_has_its_own_tokens)
{
	struct net net = net_make(TRANSFORMER, 2);
	struct cuda_net cuda;

	calm(&net);
	cuda = cuda_net_open(&net, PSD_LAYERS_FP32);
	for (unsigned iteration = 0; iteration < 4; iteration++) {
		const double loss = cuda_net_run(&cuda);

		compare(&cuda, loss, net_run(&net), &arithmetics[0], "other tokens");
		for (unsigned i = 0; i < 2 * net_image_elements(&net); i++) {
			net.images[i] = fmodf(net.images[i] + 1, (float)net.graph->vocabulary);
			net.labels[i] = (net.labels[i] + 1) % (int32_t)net.graph->classes;
		}
	}
	cuda_net_close(&cuda);
	net_release(&net);
}

/* A score's gradient is at most 0.001 / 65 of a place's share of the loss. As large as it would be with one label for
 * each of the 2 samples it is a hundredth of the smallest half, at 1024 labels still 16 times as large. */
TEST_ROW(cuda_sequences, gradients_of_many_places_are_no_smaller_in_fp16,
	 check("name: m\ninput: {channels: 1, height: 32, width: 32}\nlayers:\n"
	       "  - {name: top, kind: conv, outputs: 65, kernel: 1}\n"
	       "  - {name: loss, kind: softmax-loss, weight: 0.001}\n",
	       2))
