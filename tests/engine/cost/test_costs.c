/* Compute times: the roofline against figures worked out by hand, the profile reader against files written here. */
#define _POSIX_C_SOURCE 200809L
#include <criterion/criterion.h>
#include <string.h>

#include "engine/cost/costs.h"
#include "engine/model/model.h"
#include "tests/scratch_file.h"
#include "tests/test_with.h"

enum { INPUT, CONV, RELU, FC, LOSS, N_LAYERS };
enum { BATCH = 10 };

static const double relative_tolerance = 1e-12;

static void expect_near(double actual, double expected)
{
	cr_expect_float_eq(actual, expected, relative_tolerance * expected, "%.17g is not %.17g", actual, expected);
}

static struct psd_graph graph_of(const char *text)
{
	struct psd_graph graph;
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_model_parse(&graph, "m.yaml", text, strlen(text), &err), PSD_OK, "%s", err.text);
	return graph;
}

static struct psd_graph tiny_graph(void)
{
	static const char text[] = "name: tiny\n"
				   "input: {channels: 3, height: 8, width: 8}\n"
				   "layers:\n"
				   "  - {name: conv, kind: conv, outputs: 16, kernel: 3, pad: 1}\n"
				   "  - {name: relu, kind: relu}\n"
				   "  - {name: fc, kind: inner-product, outputs: 10}\n"
				   "  - {name: loss, kind: softmax-loss}\n";
	struct psd_graph graph = graph_of(text);

	cr_assert_eq(graph.n_layers, N_LAYERS);
	return graph;
}

static struct psd_costs costs_on(const struct psd_graph *graph, const struct psd_device_row *device,
				 enum psd_precision precision, double samples_per_sec)
{
	struct psd_costs costs;
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_costs_from_device(&costs, graph, device, BATCH, precision, samples_per_sec, &err), PSD_OK,
		     "%s", err.text);
	return costs;
}

/* Memory so fast that only arithmetic counts, and the reverse. */
static const struct psd_device_row fast_memory = {.name = "fast memory",
						  .peak_flops_per_sec = 1e12,
						  .peak_half_flops_per_sec = 8e12,
						  .memory_bps = 1e30,
						  .conv_efficiency_ratio = 0.5,
						  .gemm_efficiency_ratio = 0.8,
						  .half_efficiency_ratio = 0.25,
						  .memory_efficiency_ratio = 1};
static const struct psd_device_row fast_arithmetic = {.name = "fast arithmetic",
						      .peak_flops_per_sec = 1e30,
						      .peak_half_flops_per_sec = 1e30,
						      .memory_bps = 8e9, /* 1 GB/s */
						      .conv_efficiency_ratio = 0.5,
						      .gemm_efficiency_ratio = 0.8,
						      .half_efficiency_ratio = 0.25,
						      .memory_efficiency_ratio = 1};

GRAPH_TEST(costs, arithmetic_runs_at_the_peak_times_the_efficiency_of_its_kind, tiny_graph())
{
	struct psd_costs costs = costs_on(&graph, &fast_memory, PSD_PRECISION_FP32, 0);

	expect_near(costs.forward_sec[CONV], BATCH * (double)graph.layers[CONV].forward_flops / (1e12 * 0.5));
	expect_near(costs.backward_sec[CONV], BATCH * (double)graph.layers[CONV].backward_flops / (1e12 * 0.5));
	expect_near(costs.forward_sec[FC], BATCH * (double)graph.layers[FC].forward_flops / (1e12 * 0.8));
	expect_near(costs.gemm_flops_per_sec, 1e12 * 0.8);
	cr_expect_eq(costs.forward_sec[INPUT], 0);
	cr_expect_eq(costs.backward_sec[INPUT], 0);
	cr_expect_eq(costs.source, PSD_COSTS_MODEL);
	psd_costs_release(&costs);
}

GRAPH_TEST(costs, memory_carries_values_per_sample_and_parameters_once, tiny_graph())
{
	const double input = 4.0 * 3 * 8 * 8, map = 4.0 * 16 * 8 * 8, classes = 4.0 * 10; /* bytes a sample */
	const double conv_parameters = 4.0 * (16 * 3 * 3 * 3 + 16), fc_parameters = 4.0 * (16 * 8 * 8 * 10 + 10);
	struct psd_costs costs = costs_on(&graph, &fast_arithmetic, PSD_PRECISION_FP32, 0);

	expect_near(costs.forward_sec[CONV], (BATCH * (input + map) + conv_parameters) / 1e9);
	expect_near(costs.forward_sec[RELU], BATCH * (map + map) / 1e9);
	expect_near(costs.forward_sec[FC], (BATCH * (map + classes) + fc_parameters) / 1e9);
	/* backward: gradient of the output and input read, gradient of the input written; parameters read, their
	 * gradient written */
	expect_near(costs.backward_sec[RELU], BATCH * (map + 2 * map) / 1e9);
	expect_near(costs.backward_sec[FC], (BATCH * (classes + 2 * map) + 2 * fc_parameters) / 1e9);
	psd_costs_release(&costs);
}

/* 6 tokens of 50: a sample reads them and its rows and writes those, and not the table. Backward reads the gradient of
 * the output, and reads and writes rows of the table's gradient; by the rule for all inputs the tokens, too. It clears
 * that gradient once for the batch. */
Test(costs, an_embedding_reads_rows_and_clears_a_table)
{
	static const char text[] = "name: m\ninput: {channels: 1, height: 6}\nlayers:\n"
				   "  - {name: e, kind: embedding, vocabulary: 50, outputs: 8}\n";
	const double tokens = 4.0 * 6, rows = 4.0 * 6 * 8, table = 4.0 * 50 * 8; /* bytes */
	struct psd_graph graph = graph_of(text);
	struct psd_costs memory = costs_on(&graph, &fast_arithmetic, PSD_PRECISION_FP32, 0),
			 arithmetic = costs_on(&graph, &fast_memory, PSD_PRECISION_FP32, 0);

	expect_near(memory.forward_sec[1], BATCH * (tokens + rows + rows) / 1e9);
	expect_near(memory.backward_sec[1], (BATCH * (rows + 2 * (tokens + rows)) + table) / 1e9);
	cr_expect_lt(arithmetic.backward_sec[1], 1e-20); /* additions wait for memory alone */
	psd_costs_release(&arithmetic);
	psd_costs_release(&memory);
	psd_graph_release(&graph);
}

/* L = 6 positions of d = 4 channels in 2 heads. Forward has two products of 2 L L d and 6 FLOPs for each of 2 L L
 * scores, backward four products and 5, at the rate of matrix products. */
Test(costs, an_attention_runs_at_the_rate_of_products)
{
	static const char text[] = "name: m\ninput: {channels: 12, height: 6}\nlayers:\n"
				   "  - {name: p, kind: position}\n  - {name: a, kind: attention, heads: 2}\n";
	const double product = 2.0 * 6 * 6 * 4, scores = 2.0 * 6 * 6;
	const double in = 4.0 * 12 * 6, out = 4.0 * 4 * 6; /* bytes */
	struct psd_graph graph = graph_of(text);
	struct psd_costs arithmetic = costs_on(&graph, &fast_memory, PSD_PRECISION_FP32, 0),
			 memory = costs_on(&graph, &fast_arithmetic, PSD_PRECISION_FP32, 0);

	expect_near(arithmetic.forward_sec[2], BATCH * (2 * product + 6 * scores) / (1e12 * 0.8));
	expect_near(arithmetic.backward_sec[2], BATCH * (4 * product + 5 * scores) / (1e12 * 0.8));
	expect_near(memory.forward_sec[2], BATCH * (in + out) / 1e9);
	expect_near(memory.backward_sec[2], BATCH * (out + 2 * in) / 1e9);
	psd_costs_release(&memory);
	psd_costs_release(&arithmetic);
	psd_graph_release(&graph);
}

GRAPH_TEST(costs, half_precision_halves_bytes_and_uses_the_half_peak, tiny_graph())
{
	struct psd_costs full = costs_on(&graph, &fast_arithmetic, PSD_PRECISION_FP32, 0),
			 half = costs_on(&graph, &fast_arithmetic, PSD_PRECISION_MIXED, 0);

	for (unsigned i = CONV; i < N_LAYERS; i++)
		expect_near(half.forward_sec[i], full.forward_sec[i] / 2);
	psd_costs_release(&full);
	psd_costs_release(&half);
	half = costs_on(&graph, &fast_memory, PSD_PRECISION_MIXED, 0);
	expect_near(half.forward_sec[CONV], BATCH * (double)graph.layers[CONV].forward_flops / (8e12 * 0.25));
	expect_near(half.gemm_flops_per_sec, 8e12 * 0.25);
	psd_costs_release(&half);
	/* a device that gains nothing from 16 bits computes in fp32 */
	struct psd_device_row plain = fast_memory;

	plain.peak_half_flops_per_sec = plain.peak_flops_per_sec;
	half = costs_on(&graph, &plain, PSD_PRECISION_MIXED, 0);
	expect_near(half.forward_sec[CONV], BATCH * (double)graph.layers[CONV].forward_flops / (1e12 * 0.5));
	expect_near(half.gemm_flops_per_sec, 1e12 * 0.8);
	psd_costs_release(&half);
}

GRAPH_TEST(costs, a_measured_throughput_scales_all_layers_alike, tiny_graph())
{
	struct psd_costs plain = costs_on(&graph, &fast_arithmetic, PSD_PRECISION_FP32, 0),
			 scaled = costs_on(&graph, &fast_arithmetic, false, 50);
	const double factor = BATCH / 50.0 / plain.compute_sec;
	double sum_sec = 0;

	expect_near(scaled.compute_sec, BATCH / 50.0);
	for (unsigned i = CONV; i < N_LAYERS; i++) {
		expect_near(scaled.forward_sec[i], factor * plain.forward_sec[i]);
		expect_near(scaled.backward_sec[i], factor * plain.backward_sec[i]);
		sum_sec += scaled.forward_sec[i] + scaled.backward_sec[i];
	}
	expect_near(sum_sec, scaled.compute_sec);
	expect_near(scaled.gemm_flops_per_sec, plain.gemm_flops_per_sec / factor); /* rebuilds take as much longer */
	psd_costs_release(&plain);
	psd_costs_release(&scaled);
}

Test(costs, every_device_name_is_in_the_table)
{
	for (const char *const *name = psd_device_names; *name; name++) {
		const struct psd_device_row *device = psd_device_find(*name);

		cr_assert_not_null(device, "%s", *name);
		cr_expect_str_eq(device->name, *name);
		cr_expect_geq(device->peak_half_flops_per_sec, device->peak_flops_per_sec, "%s", *name);
		cr_expect(device->memory_bps > 0 && *device->source, "%s", *name);
	}
	cr_expect_null(psd_device_find("k41"));
}

Test(costs, the_titan_x_is_the_maxwell_one)
{
	const struct psd_device_row *device = psd_device_find("titan-x");

	expect_near(device->peak_flops_per_sec, 3072 * 2 * 1.0e9); /* cores, multiply and add, 1.0 GHz */
	expect_near(device->memory_bps, 8 * 336.5e9);
}

#define HEAD	"# batch: 5\n# kind: measured\n# origin: here\n# device: none\n# gemm_flops_per_sec: 2TFLOPS\n"
#define COLUMNS "layer,forward_sec,backward_sec\n"
#define ROWS	"loss,0,0\nfc,3e-3,4e-3\nrelu,0,0\nconv,1e-3,2e-3\n"

static enum psd_status read_profile(struct psd_costs *costs, const char *text, double samples_per_sec,
				    struct scratch_file *file, struct psd_error *err)
{
	struct psd_graph graph = tiny_graph();
	enum psd_status status;

	*file = scratch_file_write(text);
	status = psd_costs_from_profile(costs, &graph, file->path, BATCH, samples_per_sec, err);
	remove(file->path);
	psd_graph_release(&graph);
	return status;
}

static struct psd_costs profile_of(const char *text, double samples_per_sec)
{
	struct scratch_file file;
	struct psd_costs costs;
	struct psd_error err = {.text = ""};

	cr_assert_eq(read_profile(&costs, text, samples_per_sec, &file, &err), PSD_OK, "%s", err.text);
	return costs;
}

/* rest: the message behind the path, ":LINE: ..." or ": ..." */
static void expect_profile_error(const char *text, const char *rest)
{
	struct scratch_file file;
	struct psd_costs costs;
	struct psd_error err = {.text = "accepted"};
	char expected[512];

	cr_expect_eq(read_profile(&costs, text, 0, &file, &err), PSD_EINVAL);
	snprintf(expected, sizeof(expected), "%s%s", file.path, rest);
	cr_expect_str_eq(err.text, expected);
}

Test(costs, a_profile_scales_linearly_with_the_batch)
{
	struct psd_costs costs = profile_of("# free text\n" HEAD COLUMNS "# more\n\n" ROWS, 0);

	/* measured with 5 images, asked for 10 */
	expect_near(costs.forward_sec[CONV], 2 * 1e-3);
	expect_near(costs.backward_sec[CONV], 2 * 2e-3);
	expect_near(costs.forward_sec[FC], 2 * 3e-3);
	expect_near(costs.compute_sec, 2 * (1e-3 + 2e-3 + 3e-3 + 4e-3));
	expect_near(costs.gemm_flops_per_sec, 2e12);
	cr_expect_eq(costs.source, PSD_COSTS_MEASURED);
	psd_costs_release(&costs);
}

Test(costs, a_profile_meets_a_measured_throughput)
{
	struct psd_costs costs = profile_of(HEAD COLUMNS ROWS, 100);

	expect_near(costs.compute_sec, BATCH / 100.0);
	expect_near(costs.forward_sec[CONV], BATCH / 100.0 * 0.1); /* 1 of 10 ms */
	expect_near(costs.gemm_flops_per_sec, 2e12);		   /* the profile's */
	psd_costs_release(&costs);
}

Test(costs, only_a_measured_profile_counts_as_measured)
{
	struct psd_costs costs = profile_of("# batch: 5\n# kind: scaled\n# origin: here\n# device: none\n"
					    "# gemm_flops_per_sec: 2TFLOPS\n" COLUMNS ROWS,
					    0);

	cr_expect_neq(costs.source, PSD_COSTS_MEASURED);
	psd_costs_release(&costs);
}

/* The processor alone, among the table's devices, works in its host's memory. */
GRAPH_TEST(costs, accelerators_have_memory_of_their_own, tiny_graph())
{
	for (const char *const *name = psd_device_names; *name; name++) {
		struct psd_costs costs = costs_on(&graph, psd_device_find(*name), PSD_PRECISION_FP32, 0);

		cr_expect_eq(costs.has_own_memory, strcmp(*name, "cpu") != 0, "%s", *name);
		cr_expect_eq(costs.device, psd_device_find(*name), "%s", *name);
		psd_costs_release(&costs);
	}
}

/* device: its name in the table; NULL: it has none there */
static void expect_profile_of(const char *text, const char *device, bool has_own_memory)
{
	char profile[512];
	struct psd_costs costs;

	snprintf(profile, sizeof(profile), "# batch: 5\n# kind: scaled\n# origin: o\n# device: %s\n%s", text,
		 "# gemm_flops_per_sec: 2TFLOPS\n" COLUMNS ROWS);
	costs = profile_of(profile, 0);
	cr_expect_eq(costs.device, device ? psd_device_find(device) : NULL, "%s", text);
	cr_expect_eq(costs.has_own_memory, has_own_memory, "%s", text);
	psd_costs_release(&costs);
}

Test(costs, a_profile_has_the_device_of_its_first_word)
{
	expect_profile_of("cpu", "cpu", false);
	expect_profile_of("cpu, 2 at a time", "cpu", false);
	expect_profile_of("titan-x", "titan-x", true);
	expect_profile_of("v100 (mixed precision)", "v100", true);
	expect_profile_of("cpus of another kind", NULL, true);
}

Test(costs, a_profile_says_where_it_comes_from)
{
	expect_profile_error("# batch: 5\n" COLUMNS ROWS, ":2: the comments above must have a line '# kind: ...'");
	expect_profile_error("# batch: 5\n# batch: 6\n" COLUMNS ROWS, ":2: 'batch' is already in line 1");
	expect_profile_error(
		"# batch: 0\n# kind: model\n# origin: o\n# device: d\n# gemm_flops_per_sec: 1TFLOPS\n" COLUMNS,
		":1: 'batch' is '0', must be a whole number, 1 or more");
	expect_profile_error(
		"# batch: 1\n# kind: guess\n# origin: o\n# device: d\n# gemm_flops_per_sec: 1TFLOPS\n" COLUMNS,
		":2: 'kind' is 'guess', must be measured, scaled or model");
	expect_profile_error("# batch: 1\n# kind: model\n# origin: o\n# device: d\n# gemm_flops_per_sec: 1\n" COLUMNS,
			     ":5: 'gemm_flops_per_sec' is '1', must be a rate such as 6.1TFLOPS");
}

Test(costs, a_profile_names_exactly_the_graphs_layers)
{
	expect_profile_error(HEAD COLUMNS "conv,1e-3,2e-3\nconv,1e-3,2e-3\n", ":8: layer 'conv' is already in line 7");
	expect_profile_error(HEAD COLUMNS "conv2,1e-3,2e-3\n", ":7: layer 'conv2' is not in the graph 'tiny'");
	expect_profile_error(HEAD COLUMNS "input,0,0\n",
			     ":7: layer 'input' is an input, must be left out: inputs take no time");
	expect_profile_error(HEAD COLUMNS "loss,0,0\nfc,1,1\nrelu,1,1\n",
			     ": has no row for layer 'conv' of the graph 'tiny'");
}

Test(costs, a_profile_holds_seconds)
{
	expect_profile_error(HEAD COLUMNS "conv,1ms,2e-3\n",
			     ":7: 'forward_sec' is '1ms', must be a number of seconds, 0 or more");
	expect_profile_error(HEAD COLUMNS "conv,1,-2\n",
			     ":7: 'backward_sec' is '-2', must be a number of seconds, 0 or more");
	expect_profile_error(HEAD COLUMNS "conv,1\n",
			     ":7: the line has 2 cells, must have the 3 of 'layer,forward_sec,backward_sec'");
	expect_profile_error(HEAD "layer,forward_ms,backward_ms\n",
			     ":6: column 2 is 'forward_ms', the header must be 'layer,forward_sec,backward_sec'");
	expect_profile_error(HEAD "layer,forward_sec\n",
			     ":6: column 2 is 'forward_sec', the header must be 'layer,forward_sec,backward_sec'");
	expect_profile_error(HEAD, ": the file has no header line, must have 'layer,forward_sec,backward_sec'");
	expect_profile_error(HEAD COLUMNS "\"conv,1,1\n",
			     ":7: a quote is open or out of place, must be around a whole cell");
	expect_profile_error(HEAD COLUMNS "\"co\"nv,1,1\n",
			     ":7: a quote is open or out of place, must be around a whole cell");
	expect_profile_error(HEAD COLUMNS "co\"nv,1,1\n",
			     ":7: a quote is open or out of place, must be around a whole cell");
	expect_profile_error(HEAD COLUMNS "loss,0,0\nfc,0,0\nrelu,0,0\nconv,0,0\n",
			     ": all layers together take 0 s for 10 images, must be above 0 and finite");
}

static struct psd_costs shipped_profile(const char *model, const char *path, unsigned batch)
{
	struct psd_graph graph;
	struct psd_costs costs;
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_graph_load(&graph, model, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_costs_from_profile(&costs, &graph, path, batch, 0, &err), PSD_OK, "%s", err.text);
	psd_graph_release(&graph);
	return costs;
}

static double backward_sum_sec(const struct psd_costs *costs)
{
	double sum_sec = 0;

	for (unsigned i = 0; i < costs->n_layers; i++)
		sum_sec += costs->backward_sec[i];
	return sum_sec;
}

/* The layers' backward times in the published figure sum to 15.5 and 120.7 ms, rounded to a tenth; one GPU does 3691.6
 * and 621 images/s (GradientFlow, arXiv 1902.06855v3). */
Test(costs, shipped_v100_profiles_meet_the_published_totals)
{
	const double rounding_sec = 0.05e-3, throughput_tolerance = 1e-4;
	struct psd_costs costs =
		shipped_profile("scenarios/models/alexnet-bn.yaml", "traces/profiles/v100-alexnet-bn.csv", 128);

	cr_expect_float_eq(backward_sum_sec(&costs), 15.5e-3, rounding_sec);
	cr_expect_float_eq(128 / costs.compute_sec, 3691.6, 3691.6 * throughput_tolerance);
	psd_costs_release(&costs);
	costs = shipped_profile("scenarios/models/resnet50.yaml", "traces/profiles/v100-resnet50.csv", 128);
	cr_expect_float_eq(backward_sum_sec(&costs), 120.7e-3, rounding_sec);
	cr_expect_float_eq(128 / costs.compute_sec, 621, 621 * throughput_tolerance);
	psd_costs_release(&costs);
}

Test(costs, the_shipped_titan_x_profile_meets_its_measurement)
{
	const double throughput_tolerance = 1e-3; /* 640 images in 18.5 s are 34.59, the profile is scaled to 34.6 */
	struct psd_costs costs =
		shipped_profile("scenarios/models/vgg19-22k.yaml", "traces/profiles/titanx-caffe-vgg19-22k.csv", 32);

	cr_expect_float_eq(32 / costs.compute_sec, 20 * 32 / 18.5, 34.6 * throughput_tolerance);
	psd_costs_release(&costs);
}
