/* Rules of a GPU's kernels, one at a time, on layers whose figures are worked out by hand. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/cost/costs.h"
#include "engine/cost/kernels.h"
#include "engine/model/model.h"

enum { BATCH = 64 };

static const double relative_tolerance = 1e-9;
static const double launch_sec = 15e-6;

/* 1 TFLOP/s in fp32 and 16 in half, of which 0.5 are achieved; 100 GB/s. */
static const struct psd_device_row gpu = {.name = "gpu",
					  .multiprocessors = 10,
					  .peak_flops_per_sec = 1e12,
					  .peak_half_flops_per_sec = 16e12,
					  .memory_bps = 8e11,
					  .has_matrix_units = true,
					  .has_winograd = true,
					  .conv_efficiency_ratio = 0.5,
					  .gemm_efficiency_ratio = 0.5,
					  .tf32_efficiency_ratio = 0.5,
					  .half_efficiency_ratio = 0.5,
					  .memory_efficiency_ratio = 1,
					  .attention_ratio = 0.7};

static void expect_near(double actual, double expected)
{
	cr_expect_float_eq(actual, expected, relative_tolerance * expected, "%.17g is not %.17g", actual, expected);
}

/* Seconds of the layer `layer` above an input and a convolution of 1x1 that keeps its channels. */
static struct psd_layer_sec sec_of(const struct psd_device_row *device, enum psd_precision precision, const char *input,
				   const char *layer, unsigned batch)
{
	struct psd_graph graph;
	struct psd_error err = {.text = ""};
	char text[512];

	snprintf(
		text, sizeof(text),
		"name: m\ninput: {%s}\nlayers:\n  - {name: a, kind: conv, outputs: 64, kernel: 1}\n  - {name: b, %s}\n",
		input, layer);
	cr_assert_eq(psd_model_parse(&graph, "m.yaml", text, strlen(text), &err), PSD_OK, "%s", err.text);
	const struct psd_layer_sec sec = psd_kernels_layer(device, precision, &graph, 2, batch);
	psd_graph_release(&graph);
	return sec;
}

#define IMAGE		  "name: x, channels: 64, height: 32, width: 32"
#define CONV(kernel, pad) "kind: conv, outputs: 64, bias: false, kernel: " #kernel ", pad: " #pad

/* Forward sums 64 products for each of 64 x 32 x 32 outputs: half rate at a depth of 100, so 164 / 64 of the time; two
 * rounds of 10 tiles of 8192 outputs idle. The gradient of the input is the same, that of the weight waits for none. */
Test(kernels, a_convolution_is_a_product_of_matrices)
{
	const struct psd_layer_sec sec = sec_of(&gpu, PSD_PRECISION_FP32, IMAGE, CONV(1, 0), BATCH);
	const double flops = 2.0 * 64 * 64 * 32 * 32 * BATCH, rate = 0.5e12;
	const double data_sec = flops / rate * 164 / 64 + 2 * 10 * 2.0 * 8192 * 64 / rate + launch_sec;

	expect_near(sec.forward_sec, data_sec);
	expect_near(sec.backward_sec, data_sec + flops / rate + launch_sec);
}

/* 576 products sum to an output; 16 instead of 36 are needed. */
Test(kernels, a_3x3_convolution_in_fp32_saves_products)
{
	struct psd_device_row plain = gpu;
	const double flops = 2.0 * 64 * 576 * 32 * 32 * BATCH, idle_flops = 2 * 10 * 2.0 * 8192 * 576;
	const double sec = (flops * 676 / 576 + idle_flops) / 0.5e12;

	expect_near(sec_of(&gpu, PSD_PRECISION_FP32, IMAGE, CONV(3, 1), BATCH).forward_sec, sec / 2.25 + launch_sec);
	plain.has_winograd = false;
	expect_near(sec_of(&plain, PSD_PRECISION_FP32, IMAGE, CONV(3, 1), BATCH).forward_sec, sec + launch_sec);
	/* with a stride, and on matrix units, nothing is saved */
	expect_near(sec_of(&gpu, PSD_PRECISION_FP32, IMAGE, CONV(3, 1) ", stride: 2", BATCH).forward_sec,
		    (flops / 4 * 676 / 576 + idle_flops) / 0.5e12 + launch_sec);
	expect_near(sec_of(&gpu, PSD_PRECISION_MIXED, IMAGE, CONV(3, 1), BATCH).forward_sec,
		    (flops * 676 / 576 + idle_flops) / 8e12 + launch_sec);
}

Test(kernels, a_group_of_few_channels_fills_a_tile)
{
	const double flops = 2.0 * 64 * 32 * 32 * 32 * BATCH; /* 32 products for each output */

	expect_near(sec_of(&gpu, PSD_PRECISION_FP32, IMAGE, CONV(1, 0) ", groups: 2", BATCH).forward_sec,
		    (2 * flops * 132 / 32 + 2 * 10 * 2.0 * 8192 * 32) / 0.5e12 + launch_sec);
}

/* 4 channels are no multiple of 8. */
Test(kernels, matrix_units_take_whole_groups_of_channels)
{
	const double flops = 2.0 * 64 * 4 * 32 * 32 * BATCH;

	expect_near(sec_of(&gpu, PSD_PRECISION_MIXED, IMAGE, CONV(1, 0) ", groups: 16", BATCH).forward_sec,
		    (16 * flops * 104 / 4 + 2 * 10 * 2.0 * 8192 * 4) / 0.5e12 + launch_sec);
}

/* TF32 is for convolutions by default; a 1x1 convolution over a sequence is a linear layer. */
Test(kernels, tf32_is_for_linear_layers_only_where_it_is_asked_for)
{
	const char *const sequence = "channels: 64, height: 1024";
	struct psd_device_row device = gpu;
	const double flops = 2.0 * 64 * 64 * 1024 * BATCH * 164 / 64 + 2 * 10 * 2.0 * 8192 * 64;

	device.peak_tf32_flops_per_sec = 8e12;
	expect_near(sec_of(&device, PSD_PRECISION_FP32, IMAGE, CONV(1, 0), BATCH).forward_sec,
		    fmax(flops / 4e12, 4.0 * (2 * 64 * 1024 * BATCH + 64 * 64) / 1e11) + launch_sec);
	expect_near(sec_of(&device, PSD_PRECISION_FP32, sequence, CONV(1, 0), BATCH).forward_sec,
		    flops / 0.5e12 + launch_sec);
	expect_near(sec_of(&device, PSD_PRECISION_TF32, sequence, CONV(1, 0), BATCH).forward_sec,
		    fmax(flops / 4e12, 4.0 * (2 * 64 * 1024 * BATCH + 64 * 64) / 1e11) + launch_sec);
	cr_expect(psd_device_has(&device, PSD_PRECISION_BF16) && psd_device_has(&device, PSD_PRECISION_TF32));
	cr_expect_not(psd_device_has(&gpu, PSD_PRECISION_BF16) || psd_device_has(&gpu, PSD_PRECISION_TF32));
}

Test(kernels, other_layers_are_bound_by_memory)
{
	const double map_sec = 4.0 * 64 * 32 * 32 * BATCH / 1e11;
	struct psd_layer_sec sec = sec_of(&gpu, PSD_PRECISION_FP32, IMAGE, "kind: relu", BATCH);

	expect_near(sec.forward_sec, 2 * map_sec + launch_sec);
	expect_near(sec.backward_sec, 3 * map_sec + launch_sec);
	sec = sec_of(&gpu, PSD_PRECISION_FP32, IMAGE, "kind: add, inputs: [a, a]", BATCH);
	expect_near(sec.forward_sec, 3 * map_sec + launch_sec);
	expect_near(sec.backward_sec, 3 * map_sec + launch_sec);
	/* statistics first: the input twice; backward input and gradient of the output twice */
	sec = sec_of(&gpu, PSD_PRECISION_FP32, IMAGE, "kind: batch-norm, scale: false, bias: false", BATCH);
	expect_near(sec.forward_sec, 3 * map_sec + launch_sec);
	expect_near(sec.backward_sec, 5 * map_sec + launch_sec);
}

/* The convolution has 16 bits and the input 32: sums are as wide as their widest input. Norms and losses are in fp32,
 * after a cast that reads 2 bytes and writes 4; backward casts the gradient. */
Test(kernels, autocast_gives_values_their_widths)
{
	const double byte_sec = 64.0 * 32 * 32 * BATCH / 1e11;
	const char *const in_float[] = {"kind: layer-norm", "kind: softmax-loss"};
	struct psd_layer_sec sec = sec_of(&gpu, PSD_PRECISION_MIXED, IMAGE, "kind: add, inputs: [a, a]", BATCH);

	expect_near(sec.forward_sec, (2 + 2 + 2) * byte_sec + launch_sec);
	expect_near(sec.backward_sec, (2 + 2 + 2) * byte_sec + launch_sec);
	sec = sec_of(&gpu, PSD_PRECISION_MIXED, IMAGE, "kind: add, inputs: [x, a]", BATCH);
	expect_near(sec.forward_sec, (4 + 2 + 4) * byte_sec + launch_sec);
	expect_near(sec.backward_sec, (4 + 4 + 2) * byte_sec + launch_sec);
	for (unsigned i = 0; i < 2; i++) {
		sec = sec_of(&gpu, PSD_PRECISION_MIXED, IMAGE, in_float[i], BATCH);
		expect_near(sec.forward_sec, (2 + 4 + 4 + 4) * byte_sec + launch_sec);
		expect_near(sec.backward_sec, (4 + 4 + 4 + 4 + 2) * byte_sec + launch_sec);
	}
	/* the input is no layer's output, and needs no gradient */
	const double flops = 2.0 * 64 * 32 * 32 * BATCH * 64, idle_flops = 2 * 10 * 2.0 * 8192 * 64;
	const double traffic_sec = 2.0 * (64 * 64 / 1e11) + (2 + 2) * byte_sec;

	sec = sec_of(&gpu, PSD_PRECISION_MIXED, IMAGE, CONV(1, 0) ", input: x", BATCH);
	expect_near(sec.forward_sec,
		    (4 + 2) * byte_sec + fmax((flops * 164 / 64 + idle_flops) / 8e12, traffic_sec) + launch_sec);
	expect_near(sec.backward_sec, fmax(flops / 8e12, traffic_sec) + launch_sec);
}

/* Values of 16 bits on a device that gains nothing from them: products as in fp32, by Winograd too, and casts. */
Test(kernels, without_fast_half_products_are_in_fp32)
{
	const char *const layers[] = {CONV(3, 1), CONV(1, 0), "kind: inner-product, outputs: 64"};
	struct psd_device_row device = gpu;

	device.peak_half_flops_per_sec = device.peak_flops_per_sec;
	device.half_efficiency_ratio = 0.0;
	device.has_matrix_units = false;
	for (unsigned i = 0; i < 3; i++) {
		const struct psd_layer_sec full = sec_of(&device, PSD_PRECISION_FP32, IMAGE, layers[i], BATCH);
		const struct psd_layer_sec half = sec_of(&device, PSD_PRECISION_MIXED, IMAGE, layers[i], BATCH);

		expect_near(half.forward_sec, full.forward_sec);
		expect_near(half.backward_sec, full.backward_sec);
	}
	expect_near(sec_of(&device, PSD_PRECISION_MIXED, IMAGE, CONV(3, 1) ", input: x", BATCH).forward_sec,
		    sec_of(&device, PSD_PRECISION_FP32, IMAGE, CONV(3, 1), BATCH).forward_sec +
			    (4 + 2) * 64.0 * 32 * 32 * BATCH / 1e11);
	const char *const sequence = "channels: 64, height: 1024", *const attention =
									   "kind: attention, heads: 2, kv_heads: 1";

	expect_near(sec_of(&device, PSD_PRECISION_MIXED, sequence, attention, BATCH).forward_sec,
		    sec_of(&device, PSD_PRECISION_FP32, sequence, attention, BATCH).forward_sec);
}

/* 1,024 positions, of 32 channels of queries: products of 4 L L d, 8 backward, and one of forward's two again. */
Test(kernels, attention_computes_its_scores_again)
{
	const double pairs = 1024.0 * 1024 * BATCH, rate = 0.5e12 * 0.7;
	const struct psd_layer_sec sec = sec_of(&gpu, PSD_PRECISION_FP32, "channels: 64, height: 1024",
						"kind: attention, heads: 2, kv_heads: 1", BATCH);
	const double forward_flops = pairs * (4 * 32 + 6 * 2), backward_flops = pairs * (8 * 32 + 5 * 2);

	expect_near(sec.forward_sec, forward_flops / rate + launch_sec);
	expect_near(sec.backward_sec, (backward_flops + forward_flops / 2) / (rate * 0.8) + 2 * launch_sec);
}

Test(kernels, functions_of_single_values_fuse_on_matrix_units)
{
	const struct psd_layer_sec sec = sec_of(&gpu, PSD_PRECISION_MIXED, IMAGE, "kind: relu", BATCH);

	cr_expect(sec.forward_sec == 0.0 && sec.backward_sec == 0.0);
}

/* 16 rows make tiles of 16 x 64 outputs. */
Test(kernels, few_rows_make_small_tiles)
{
	const double flops = 2.0 * 64 * 64 * 16;

	expect_near(
		sec_of(&gpu, PSD_PRECISION_FP32, "channels: 64", "kind: inner-product, outputs: 64, bias: false", 16)
			.forward_sec,
		(flops * 164 / 64 + 2 * 10 * 2.0 * 16 * 64 * 64) / 0.5e12 + launch_sec);
}

/* A layer that takes no longer than a launch does not depend on the batch. */
Test(kernels, small_batches_pay_for_launches)
{
	const double one_sec = sec_of(&gpu, PSD_PRECISION_FP32, "channels: 1", "kind: relu", 1).forward_sec;
	const double four_sec = sec_of(&gpu, PSD_PRECISION_FP32, "channels: 1", "kind: relu", 4).forward_sec;

	cr_expect(one_sec > launch_sec && four_sec < 1.01 * one_sec);
}
