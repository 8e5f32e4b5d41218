/* Bodies of kernels as host code, each against a plain reference in double or against what it is told to be equal to.
 * Layers that consist of one kernel are compared as layers, in test_cuda_net.c. */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "real/device/cpu/cpu.h"
#include "real/device/gpu/bodies_layers.h"
#include "real/device/gpu/bodies_neighbours.h"
#include "tests/cuda/draw_helper.h"

/* ---- numbers of 16 bits ---- */

/* From the definition: sign, exponent less 15, mantissa of 10 bits with a leading 1 unless the exponent is 0. */
static double half_by_definition(uint16_t half)
{
	const int exponent = half >> 10 & 31, mantissa = half & 1023;
	const double magnitude = exponent == 0	  ? ldexp(mantissa, -24)
				 : exponent == 31 ? (mantissa ? (double)NAN : (double)INFINITY)
						  : ldexp(1024 + mantissa, exponent - 25);

	return half & 0x8000 ? -magnitude : magnitude;
}

Test(cuda_kernels, every_half_is_read_by_its_definition_and_written_back)
{
	for (uint32_t bits = 0; bits < 65536; bits++) {
		const double expected = half_by_definition((uint16_t)bits);
		const float value = psd_from_half((uint16_t)bits);

		if (isnan(expected)) {
			cr_assert(isnan(value) && isnan(psd_from_half(psd_to_half(value))), "%x", bits);
			continue;
		}
		cr_assert_eq((double)value, expected, "%x", bits);
		cr_assert_eq(psd_to_half(value), bits, "%x", bits);
	}
}

/* Between each two neighbours: their middle goes to the even one, what is beside it to the nearer one. */
Test(cuda_kernels, floats_become_the_nearest_half_ties_to_even)
{
	for (uint16_t bits = 0; bits < 0x7bff; bits++) {
		const float low = psd_from_half(bits), high = psd_from_half((uint16_t)(bits + 1));
		const float middle = 0.5f * (low + high); /* exact: one more bit */
		const uint16_t even = (uint16_t)(bits + (bits & 1));

		cr_assert_eq(psd_to_half(middle), even, "%x", bits);
		cr_assert_eq(psd_to_half(nextafterf(middle, 0)), bits, "%x", bits);
		cr_assert_eq(psd_to_half(-nextafterf(middle, INFINITY)), 0x8000 | (bits + 1), "%x", bits);
	}
	cr_assert_eq(psd_to_half(65519.99f), 0x7bff); /* the largest is 65504, its next neighbour would be 65536 */
	cr_assert_eq(psd_to_half(65520.0f), 0x7c00);
	cr_assert_eq(psd_to_half(FLT_MAX), 0x7c00);
}

Test(cuda_kernels, floats_become_the_nearest_bfloat_ties_to_even)
{
	cr_assert_eq(psd_to_bfloat(psd_of_bits(0x3f808000u)), 0x3f80); /* a tie between 0x3f80 and 0x3f81 */
	cr_assert_eq(psd_to_bfloat(psd_of_bits(0x3f808001u)), 0x3f81);
	cr_assert_eq(psd_to_bfloat(psd_of_bits(0x3f818000u)), 0x3f82);
	cr_assert_eq(psd_to_bfloat(psd_of_bits(0xbf817fffu)), 0xbf81);
	cr_assert_eq(psd_to_bfloat(INFINITY), 0x7f80);
	cr_assert_eq(psd_to_bfloat(FLT_MAX), 0x7f80);
	cr_assert(isnan(psd_of_bits((uint32_t)psd_to_bfloat(psd_of_bits(0x7f800001u)) << 16)));
}

/* ---- places ---- */

Test(cuda_kernels, every_place_is_that_of_its_index)
{
	const struct psd_gpu_maps orders[] = {{3, 4, 5, false}, {3, 4, 5, true}};

	for (unsigned o = 0; o < 2; o++)
		for (uint32_t i = 0; i < 2 * 3 * 4 * 5; i++)
			cr_assert_eq(psd_at(orders[o], psd_spot_of(orders[o], i)), i);
	/* sample 1, channel 2, row 3, column 4 */
	cr_assert_eq(psd_at(orders[0], (struct psd_spot){1, 2, 3, 4}), ((1 * 3 + 2) * 4 + 3) * 5 + 4);
	cr_assert_eq(psd_at(orders[1], (struct psd_spot){1, 2, 3, 4}), ((1 * 4 + 3) * 5 + 4) * 3 + 2);
}

Test(cuda_kernels, weights_move_between_their_orders)
{
	enum { K = 4, C = 3, R = 2, S = 5, ALL = K * C * R * S };
	const struct psd_gpu_view plain = {{K, C, R, S}, {C * R * S, R * S, S, 1}, 0};
	const struct psd_gpu_view last = {{K, C, R, S}, {R * S * C, 1, S * C, C}, 0};
	float from[ALL], to[ALL];
	const struct psd_gpu_move move = {{from, PSD_GPU_FLOAT}, {to, PSD_GPU_FLOAT}, plain, last, 0.5f, false};

	fill(from, ALL, 1);
	for (uint64_t i = 0; i < ALL; i++)
		psd_move_at(i, &move);
	for (unsigned k = 0; k < K; k++)
		for (unsigned c = 0; c < C; c++)
			for (unsigned r = 0; r < R; r++)
				for (unsigned s = 0; s < S; s++)
					cr_assert_eq(to[((k * R + r) * S + s) * C + c],
						     0.5f * from[((k * C + c) * R + r) * S + s]);
}

/* ---- dropout ---- */

/* The random words of one sample as the cpu's dropout.c draws them. */
static void check_masks(bool is_channels_last)
{
	enum { SAMPLES = 2, CHANNELS = 3, HEIGHT = 3, WIDTH = 5, ALL = CHANNELS * HEIGHT * WIDTH };
	float ones[SAMPLES * ALL], to[SAMPLES * ALL];
	uint32_t counters[2];
	const struct psd_gpu_counters count = {counters, 40, 9};
	const struct psd_gpu_dropout dropout = {.from = {ones, PSD_GPU_FLOAT},
						.to = {to, PSD_GPU_FLOAT},
						.maps = {CHANNELS, HEIGHT, WIDTH, is_channels_last},
						.seed = UINT64_C(0x123456789abcdef0),
						.counters = counters,
						.layer = 7,
						.threshold = 0x60000000u,
						.scale = 1.6f};

	for (unsigned i = 0; i < SAMPLES * ALL; i++)
		ones[i] = 1.0f;
	psd_counters_at(0, &count);
	for (uint64_t i = 0; i < SAMPLES * ((ALL + 3) / 4); i++)
		psd_dropout_at(i, &dropout);
	for (uint32_t i = 0; i < SAMPLES * ALL; i++) {
		const struct psd_gpu_maps plain = {CHANNELS, HEIGHT, WIDTH, false};
		const uint32_t element = i % ALL, counter[4] = {element / 4, 7, 40 + i / ALL, 9};
		uint32_t random[4];

		psd_cpu_philox(counter, dropout.seed, random);
		cr_assert_eq(to[psd_at(dropout.maps, psd_spot_of(plain, i))],
			     random[element % 4] < dropout.threshold ? 0.0f : 1.6f);
	}
}

Test(cuda_kernels, dropout_draws_the_masks_of_the_cpu)
{
	check_masks(false);
	check_masks(true);
}

/* ---- sums ---- */

/* Sums of each channel over batch and positions, in either memory order, in n_parts parts. Where channels come last,
 * the positions of all samples are one row. */
static void check_sums(bool is_channels_last, bool is_one_row, uint32_t n_parts)
{
	enum { SAMPLES = 3, CHANNELS = 4, HEIGHT = 5, WIDTH = 6, PLACES = HEIGHT * WIDTH, ALL = CHANNELS * PLACES };
	const struct psd_gpu_maps maps = {CHANNELS, HEIGHT, WIDTH, is_channels_last};
	float left[SAMPLES * ALL], right[SAMPLES * ALL], partial[CHANNELS * SAMPLES * PLACES], sums[CHANNELS];
	const struct psd_gpu_sums run = {.left = {left, PSD_GPU_FLOAT},
					 .right = {right, PSD_GPU_FLOAT},
					 .summand = PSD_GPU_SUM_PRODUCT,
					 .n_outputs = CHANNELS,
					 .n_parts = n_parts,
					 .channels = CHANNELS,
					 .group_stride = ALL,
					 .channel_stride = is_channels_last ? 1 : PLACES,
					 .outer_stride = ALL,
					 .inner_stride = is_channels_last ? CHANNELS : 1,
					 .count = SAMPLES * PLACES,
					 .inner = is_one_row ? SAMPLES * PLACES : PLACES,
					 .partial = partial};
	const struct psd_gpu_sums_end end = {partial, CHANNELS, n_parts, {sums, PSD_GPU_FLOAT}, 0.5f, false};
	double expected[CHANNELS] = {0};

	fill(left, SAMPLES * ALL, 2);
	fill(right, SAMPLES * ALL, 3);
	for (uint32_t i = 0; i < SAMPLES * ALL; i++)
		expected[psd_spot_of(maps, i).channel] += 0.5 * (double)left[i] * (double)right[i];
	for (uint64_t i = 0; i < CHANNELS * n_parts; i++)
		psd_sums_at(i, &run);
	for (uint64_t i = 0; i < CHANNELS; i++)
		psd_sums_end_at(i, &end);
	for (unsigned c = 0; c < CHANNELS; c++)
		cr_assert_float_eq(sums[c], expected[c], 1e-5);
}

Test(cuda_kernels, sums_of_parts_are_those_of_the_whole)
{
	const uint32_t parts[] = {1, 2, 7, 90};

	for (unsigned p = 0; p < 4; p++) {
		check_sums(false, false, parts[p]);
		check_sums(true, false, parts[p]);
		check_sums(true, true, parts[p]);
	}
}

/* ---- pooling ---- */

/* Every place of the input gets what the windows over it give: the derivative of the pooled sum, by differences. */
static void check_pool_back(bool is_max, bool is_channels_last)
{
	enum { IN = 2 * 7 * 6, OUT = 2 * 4 * 3 };
	const struct psd_gpu_window window = {.in = {2, 7, 6, is_channels_last},
					      .out = {2, 4, 3, is_channels_last},
					      .kernel_height = 3,
					      .kernel_width = 3,
					      .stride_height = 2,
					      .stride_width = 2,
					      .pad_height = 1,
					      .is_max = is_max};
	float from[IN], to[OUT], weights[OUT], dfrom[IN];
	uint32_t places[OUT];
	const struct psd_gpu_pool run = {{from, PSD_GPU_FLOAT}, {to, PSD_GPU_FLOAT}, window, places};
	const struct psd_gpu_pool_back back = {{weights, PSD_GPU_FLOAT}, {dfrom, PSD_GPU_FLOAT}, window, places, false};

	fill(from, IN, 4);
	fill(weights, OUT, 5);
	for (uint64_t i = 0; i < OUT; i++)
		psd_pool_at(i, &run);
	for (uint64_t i = 0; i < IN; i++)
		psd_pool_back_at(i, &back);
	for (unsigned i = 0; i < IN; i++) {
		const float kept = from[i];
		double sums[2] = {0};

		for (unsigned side = 0; side < 2; side++) {
			from[i] = side ? kept + 0x1p-12f : kept - 0x1p-12f;
			for (uint64_t o = 0; o < OUT; o++) {
				psd_pool_at(o, &run);
				sums[side] += (double)weights[o] * (double)to[o];
			}
		}
		from[i] = kept;
		cr_assert_float_eq(dfrom[i], (sums[1] - sums[0]) / 0x1p-11, 2e-3, "%u", i);
	}
}

Test(cuda_kernels, pooling_gives_back_what_it_took)
{
	check_pool_back(false, false);
	check_pool_back(false, true);
	check_pool_back(true, false);
	check_pool_back(true, true);
}

/* The first of equal values is the maximum, as on the processor; an average over a window beyond the padding divides by
 * less. */
Test(cuda_kernels, pooling_has_caffes_ties_and_edges)
{
	float from[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, to[4];
	uint32_t places[4];
	struct psd_gpu_pool run = {{from, PSD_GPU_FLOAT},
				   {to, PSD_GPU_FLOAT},
				   {.in = {1, 3, 3, false},
				    .out = {1, 2, 2, false},
				    .kernel_height = 3,
				    .kernel_width = 3,
				    .stride_height = 3,
				    .stride_width = 3,
				    .pad_height = 1,
				    .pad_width = 1,
				    .is_max = true},
				   places};

	psd_pool_at(0, &run);
	cr_assert_eq(places[0], 0);
	run.window.is_max = false;
	for (uint64_t i = 0; i < 4; i++)
		psd_pool_at(i, &run);
	/* rows -1 to 1: four ones of nine places; rows 2 and 3, where the padded map ends: one of two times two */
	cr_assert_float_eq(to[0], 4.0 / 9, 1e-6);
	cr_assert_float_eq(to[3], 1.0 / 4, 1e-6);
}

/* ---- functions of one element ---- */

static double gelu_by_tanh(double x)
{
	return x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * pow(x, 3)))) / 2;
}

static double silu(double x)
{
	return x / (1 + exp(-x));
}

static void check_gated(enum psd_gpu_function_kind kind, double (*function)(double))
{
	const double step = 1e-5;

	for (int i = -800; i <= 800; i++) { /* to where exponents of it are no floats */
		const float x = (float)i / 8;
		const double wide = (double)x, value = function(wide);
		const double slope = (function(wide + step) - function(wide - step)) / (2 * step);

		cr_expect_float_eq(psd_function_of(kind, 0, 0, x), value, 1e-6 * (1 + fabs(value)), "%g", wide);
		cr_expect_float_eq(psd_derivative_by(kind, 0, 0, x), slope, 2e-6, "%g", wide);
	}
}

Test(cuda_kernels, gated_functions_are_those_of_their_formulas)
{
	check_gated(PSD_GPU_GELU_TANH, gelu_by_tanh);
	check_gated(PSD_GPU_SILU, silu);
}
