/* Traces of PyTorch's profiler as seconds of layers. The traces in tests/import/ are PyTorch's own (make.py). */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "engine/cost/costs.h"
#include "sim/import/gzip.h"
#include "sim/import/import.h"
#include "tests/cli_helper.h"
#include "tests/scratch_folder.h"
#include "tests/test_with.h"

#define SMALL	  "tests/fuzz/corpus/trace/small.json"
#define US	  1e-6
#define TOLERANCE 0.03 /* share of a step's seconds */

static struct psd_import import_file(const char *path, const char *model)
{
	const struct psd_import_settings settings = {
		.trace_path = path, .model_path = model, .profile_path = "p.csv", .graph_path = "g.yaml"};
	struct psd_import import;
	struct psd_error err;

	cr_assert_eq(psd_import_make(&import, &settings, &err), PSD_OK, "%s", err.text);
	return import;
}

static struct psd_import import_text(const char *text, const char *model)
{
	const struct psd_import_settings settings = {.trace_path = "t.json",
						     .trace_bytes = text,
						     .trace_length = strlen(text),
						     .model_path = model,
						     .profile_path = "p.csv",
						     .graph_path = "g.yaml",
						     .batch = 1};
	struct psd_import import;
	struct psd_error err;

	cr_assert_eq(psd_import_make(&import, &settings, &err), PSD_OK, "%s", err.text);
	return import;
}

#define IMPORT_TEST(claim, ...) TEST_WITH(import, claim, struct psd_import, import, psd_import_release, __VA_ARGS__)

static void expect_sec(double found, double expected)
{
	cr_expect(fabs(found - expected) <= 1e-9 * fabs(expected) + 1e-15, "%.12g, not %.12g", found, expected);
}

static void expect_near(double found, double expected)
{
	cr_expect(fabs(found - expected) <= TOLERANCE * expected, "%g is not within 3 %% of %g", found, expected);
}

/* ---- roles ---- */

IMPORT_TEST(kernels_go_with_the_role_of_their_operator, import_file(SMALL, NULL))
{
	cr_assert_eq(import.n_steps, 1);
	cr_expect_eq(import.batch, 8);
	expect_sec(import.role_sec[PSD_ROLE_FORWARD], 200 * US);
	expect_sec(import.role_sec[PSD_ROLE_BACKWARD], 300 * US);
	expect_sec(import.role_sec[PSD_ROLE_COLLECTIVE], 100 * US);
	expect_sec(import.role_sec[PSD_ROLE_OPTIMIZER], 40 * US);
	expect_sec(import.role_sec[PSD_ROLE_DATA], 8 * US);
	expect_sec(import.role_sec[PSD_ROLE_NONE], 0);
	/* the optimizer's kernel is alone from 760 to 800, the others from 5 to 13, 40 to 240, 340 to 740 */
	expect_sec(import.busy_sec, (8 + 200 + 300 + 100 + 40) * US);
	expect_sec(import.step_sec, 1000 * US);
	expect_sec(import.loose_ratio, 0);
}

/* 2 x 8 x 16 x 4 FLOP in 200 us. */
IMPORT_TEST(a_gradient_goes_with_the_operator_of_its_number, import_file(SMALL, NULL))
{
	cr_assert_eq(import.match.n_layers, 1);
	cr_expect_str_eq(import.match.seen[0].name, "linear-1");
	expect_sec(import.forward_sec[0], 200 * US);
	expect_sec(import.backward_sec[0], 300 * US);
	expect_sec(import.gemm_flops_per_sec, 2 * 8 * 16 * 4 / (200 * US));
}

IMPORT_TEST(
	a_kernel_without_launch_and_range_is_not_placed,
	import_text(
		"[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"ts\":1,\"dur\":20,\"pid\":1,"
		"\"tid\":1,\"args\":{\"External id\":5}},"
		"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"a\",\"ts\":3,\"dur\":6,\"args\":{\"External id\":5}},"
		"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"b\",\"ts\":10,\"dur\":2,\"args\":{\"External id\":6}}]",
		NULL))
{
	expect_sec(import.forward_sec[0], 6 * US);
	expect_sec(import.role_sec[PSD_ROLE_NONE], 2 * US);
	expect_sec(import.loose_ratio, 0.25);
}

/* ---- names and order ---- */

#define OP(start, dims, name_of_range)                                                                                 \
	"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"" name_of_range "\",\"pid\":1,\"tid\":1,\"ts\":" start   \
	",\"dur\":9},{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::linear\",\"pid\":1,\"tid\":1,\"ts\":" start     \
	",\"dur\":" dims "}"

static const char two_layers[] = "name: two\ninput: {channels: 4}\nlayers:\n"
				 "  - {name: one, kind: inner-product, outputs: 4}\n"
				 "  - {name: other, kind: inner-product, outputs: 4}\n";

static void check_order(const char *trace, double one_us, double other_us)
{
	struct scratch_folder folder = scratch_folder_make();
	struct psd_import import;

	scratch_folder_write(&folder, "m.yaml", two_layers, strlen(two_layers));
	import = import_text(trace, scratch_folder_path(&folder, "m.yaml").text);
	expect_sec(import.forward_sec[1], one_us * US);
	expect_sec(import.forward_sec[2], other_us * US);
	psd_import_release(&import);
	scratch_folder_remove(&folder);
}

Test(import, ranges_with_names_of_layers_go_before_order)
{
	check_order("[" OP("10", "3", "unknown") "," OP("30", "5", "unknown") "]", 3, 5);
	check_order("[" OP("10", "3", "other") "," OP("30", "5", "one") "]", 5, 3);
}

#define UNKNOWN(start, dur, name)                                                                                      \
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"" name "\",\"pid\":1,\"tid\":1,\"ts\":" start ",\"dur\":" dur "}"

/* Operators that are no part of a layer before them, since the model has a layer for each. */
Test(import, layers_of_kind_other_are_the_operators_at_their_places)
{
	static const char model[] = "name: m\ninput: {channels: 4}\nlayers:\n"
				    "  - {name: one, kind: inner-product, outputs: 4}\n"
				    "  - {name: odd, kind: other, channels: 4}\n"
				    "  - {name: even, kind: other, channels: 4}\n"
				    "  - {name: two, kind: inner-product, outputs: 4}\n";
	static const char trace[] =
		"[" OP("10", "3", "unknown") "," UNKNOWN("20", "7", "aten::upsample_nearest2d") "," UNKNOWN(
			"28", "1", "aten::grid_sampler") "," OP("30", "5", "unknown") "]";
	struct scratch_folder folder = scratch_folder_make();
	struct psd_import import;

	scratch_folder_write(&folder, "m.yaml", model, strlen(model));
	import = import_text(trace, scratch_folder_path(&folder, "m.yaml").text);
	expect_sec(import.forward_sec[1], 3 * US);
	expect_sec(import.forward_sec[2], 7 * US);
	expect_sec(import.forward_sec[3], 1 * US);
	expect_sec(import.forward_sec[4], 5 * US);
	psd_import_release(&import);
	scratch_folder_remove(&folder);
}

#define LINEAR(start, dur, outputs)                                                                                    \
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::linear\",\"pid\":1,\"tid\":1,\"ts\":" start ",\"dur\":" dur \
	",\"args\":{\"Input Dims\":[[1,4],[" outputs ",4],[" outputs "]]}}"

/* The model has the branch of 8 outputs first, the trace the one of 4: a weight of 4 x 4 is no weight of 8 x 4. */
FOLDER_TEST(import, weights_find_layers_of_branches_in_another_order, scratch_folder_make())
{
	static const char model[] = "name: m\ninput: {name: in, channels: 4}\nlayers:\n"
				    "  - {name: wide, kind: inner-product, outputs: 8}\n"
				    "  - {name: narrow, kind: inner-product, input: in, outputs: 4}\n";
	struct psd_import import;

	scratch_folder_write(&folder, "m.yaml", model, strlen(model));
	import = import_text("[" LINEAR("10", "3", "4") "," LINEAR("20", "5", "8") "]",
			     scratch_folder_path(&folder, "m.yaml").text);
	expect_sec(import.forward_sec[1], 5 * US);
	expect_sec(import.forward_sec[2], 3 * US);
	cr_expect_eq(import.match.n_silent, 0);
	psd_import_release(&import);
}

/* ---- traces of PyTorch ---- */

static const struct {
	const char *name, *model;
	double step_sec; /* as the training script measured it: tests/import/steps.csv */
} recorded[] = {
	{"resnet18", "scenarios/models/resnet18.yaml", 4.593871},
	{"gpt", "scenarios/models/gpt-small.yaml", 0.469772},
};

enum { N_RECORDED = sizeof(recorded) / sizeof(recorded[0]) };

static struct psd_import import_recorded(unsigned i, bool with_model)
{
	char path[64];

	snprintf(path, sizeof(path), "tests/import/%s.json.gz", recorded[i].name);
	return import_file(path, with_model ? recorded[i].model : NULL);
}

Test(import, layers_add_up_to_the_device_time_of_a_step)
{
	for (unsigned i = 0; i < N_RECORDED; i++) {
		struct psd_import import = import_recorded(i, true);
		double sum = 0;

		for (unsigned l = 0; l < import.graph.n_layers; l++) {
			const struct psd_layer *layer = &import.graph.layers[l];

			sum += import.forward_sec[l] + import.backward_sec[l];
			cr_expect(!layer->n_tensors || (import.forward_sec[l] > 0 && import.backward_sec[l] > 0),
				  "layer '%s' of %s", layer->name, recorded[i].name);
		}
		expect_near(sum, import.kernel_sec - import.role_sec[PSD_ROLE_OPTIMIZER]);
		cr_expect_lt(import.loose_ratio, 0.001);
		cr_expect_lt(import.near_ratio, 0.03);
		psd_import_release(&import);
	}
}

static void predict_one_worker(const struct scratch_folder *folder, unsigned i)
{
	struct psd_import import = import_recorded(i, true);
	const double rest_sec = import.step_sec - import.busy_sec;
	struct psd_text profile = {.bytes = NULL}, scenario = {.bytes = NULL};
	char arguments[256];
	struct run done;

	psd_import_add_profile(&profile, &import);
	scratch_folder_write(folder, "p.csv", profile.bytes, profile.length);
	psd_text_add(
		&scenario,
		"title: t\nmodel: {graph: %s/%s, batch_per_worker: %u}\ncompute: {profile: p.csv}\n"
		"cluster: {stack: none, nodes: 1, network: {bandwidth: 1Gbps, latency: 1us}, host: {iteration: %.9gms, "
		"update: %.6gGBps}}\nsystems: [{name: R, sync: ring}]\n",
		realpath(".", (char[4096]){0}), recorded[i].model, import.batch, 1e3 * rest_sec,
		4e-9 * (double)import.graph.parameters / import.role_sec[PSD_ROLE_OPTIMIZER]);
	scratch_folder_write(folder, "s.yaml", scenario.bytes, scenario.length);
	snprintf(arguments, sizeof(arguments), "--csv %s/s.yaml", folder->path);
	done = run_program("psd-sim", arguments, "2>&1");
	cr_assert_eq(done.exit_status, 0, "%s", done.text);
	expect_near(strtod(strstr(done.text, ",1,1,1000000000,") + strlen(",1,1,1000000000,"), NULL),
		    recorded[i].step_sec);
	free(done.text);
	psd_text_release(&profile);
	psd_text_release(&scenario);
	psd_import_release(&import);
}

FOLDER_TEST(import, one_worker_is_predicted_as_the_script_measured_it, scratch_folder_make())
{
	for (unsigned i = 0; i < N_RECORDED; i++)
		predict_one_worker(&folder, i);
}

/* ResNet-18 has 11,689,512 parameters; the GPT 867,072, of which 64 x 128 at positions are no operator's weight. */
FOLDER_TEST(import, a_trace_alone_makes_a_graph_with_the_weights_parameters, scratch_folder_make())
{
	static const uint64_t parameters[N_RECORDED] = {11689512, 867072 - 64 * 128};

	for (unsigned i = 0; i < N_RECORDED; i++) {
		struct psd_import import = import_recorded(i, false);
		struct psd_text graph_text = {.bytes = NULL}, profile = {.bytes = NULL};
		struct psd_graph graph;
		struct psd_costs costs;
		struct psd_error err;

		psd_import_add_graph(&graph_text, &import);
		psd_import_add_profile(&profile, &import);
		scratch_folder_write(&folder, "g.yaml", graph_text.bytes, graph_text.length);
		scratch_folder_write(&folder, "p.csv", profile.bytes, profile.length);
		cr_assert_eq(psd_graph_load(&graph, scratch_folder_path(&folder, "g.yaml").text, &err), PSD_OK, "%s",
			     err.text);
		cr_expect_eq(graph.parameters, parameters[i], "%s: %lu", recorded[i].name,
			     (unsigned long)graph.parameters);
		cr_assert_eq(psd_costs_from_profile(&costs, &graph, scratch_folder_path(&folder, "p.csv").text,
						    import.batch, 0, &err),
			     PSD_OK, "%s", err.text);
		expect_near(costs.compute_sec, import.kernel_sec - import.role_sec[PSD_ROLE_OPTIMIZER]);
		psd_costs_release(&costs);
		psd_graph_release(&graph);
		psd_text_release(&graph_text);
		psd_text_release(&profile);
		psd_import_release(&import);
	}
}

/* An LSTM of two layers of 128 on 64 values: 4 x 128 rows for 64 or 128 and 128 values, and two biases. */
IMPORT_TEST(weights_of_recurrent_operators_are_a_list,
	    import_text("[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::lstm\",\"ts\":1,\"dur\":20,\"pid\":1,"
			"\"tid\":1,\"args\":{\"Input Dims\":[[4,32,64],[[2,4,128],[2,4,128]],[[512,64],[512,128],[512],"
			"[512],[512,128],[512,128],[512],[512]],[],[]]}}]",
			NULL))
{
	cr_expect_eq(import.bucket_elements[0], 512 * (64 + 128 + 1 + 1) + 512 * (128 + 128 + 1 + 1));
}

/* Without shapes parameters are those of the all-reduce: 68 values after the gradient of the only layer. */
FOLDER_TEST(import, buckets_stand_for_parameters_without_shapes, scratch_folder_make())
{
	char *text = scratch_folder_read(&(const struct scratch_folder){"tests/fuzz/corpus/trace"}, "small.json");
	struct psd_text graph_text = {.bytes = NULL};
	struct psd_import import;
	struct psd_graph graph;
	struct psd_error err;

	memcpy(strstr(text, "Input Dims"), "input_dims", 10);
	import = import_text(text, NULL);
	psd_import_add_graph(&graph_text, &import);
	scratch_folder_write(&folder, "g.yaml", graph_text.bytes, graph_text.length);
	cr_assert_eq(psd_graph_load(&graph, scratch_folder_path(&folder, "g.yaml").text, &err), PSD_OK, "%s", err.text);
	cr_expect_eq(graph.parameters, 68);
	psd_graph_release(&graph);
	psd_text_release(&graph_text);
	psd_import_release(&import);
	free(text);
}

/* The grid of 49 blocks of 128 threads with 4 values each is 32 samples of 784 values. */
FOLDER_TEST(import, grids_tell_the_samples_without_shapes, scratch_folder_make())
{
	static const char model[] = "name: m\ninput: {channels: 784}\nlayers:\n  - {name: one, kind: relu}\n"
				    "  - {name: other, kind: relu}\n";
	struct psd_text text = {.bytes = NULL};
	struct psd_import import;
	struct psd_import_settings settings = {.trace_path = "t.json", .profile_path = "p.csv"};
	struct psd_error err;

	for (unsigned i = 0; i < 2; i++)
		psd_text_add(&text,
			     "%s{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::relu\",\"ts\":%u,\"dur\":20,"
			     "\"pid\":1,\"tid\":1,\"args\":{\"External id\":%u}},{\"ph\":\"X\",\"cat\":\"kernel\","
			     "\"name\":\"void at::native::vectorized_elementwise_kernel<4, f>\",\"ts\":%u,\"dur\":6,"
			     "\"args\":{\"External id\":%u,\"grid\":[49,1,1],\"block\":[128,1,1]}}",
			     i ? "," : "[", 100 * i, i + 1, 100 * i + 20, i + 1);
	psd_text_add(&text, "]");
	scratch_folder_write(&folder, "m.yaml", model, strlen(model));
	const struct scratch_path path = scratch_folder_path(&folder, "m.yaml");

	settings.trace_bytes = text.bytes;
	settings.trace_length = text.length;
	settings.model_path = path.text;
	cr_assert_eq(psd_import_make(&import, &settings, &err), PSD_OK, "%s", err.text);
	cr_expect_eq(import.batch, 32);
	cr_expect_eq(import.batch_source, PSD_BATCH_GRIDS);
	psd_import_release(&import);
	psd_text_release(&text);
}

/* ---- steps ---- */

static char *make_steps(const double *us, unsigned n)
{
	struct psd_text text = {.bytes = NULL};

	for (unsigned s = 0; s < n; s++)
		psd_text_add(&text,
			     "%s{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#%u\",\"pid\":1,"
			     "\"tid\":1,\"ts\":%u,\"dur\":900},"
			     "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":1,\"tid\":1,\"ts\":%u,"
			     "\"dur\":%g}",
			     s ? "," : "[", s, 1000 * s, 1000 * s + 10, us[s]);
	psd_text_add(&text, "]");
	return text.bytes;
}

/* Nine steps of 90, 100 and 110 us: the mean is 100 us, the deviation 10 us times the root of 6 / 8. */
Test(import, slow_steps_are_a_tail_and_the_rest_a_spread)
{
	static const double us[] = {90, 100, 110, 90, 100, 300, 110, 90, 100, 110};
	char *text = make_steps(us, 10);
	struct psd_import import = import_text(text, NULL);

	cr_expect_eq(import.n_steps, 10);
	expect_sec(import.spread.median, 100 * US);
	expect_sec(import.spread.p90, 110 * US);
	expect_sec(import.spread.most, 300 * US);
	cr_expect_float_eq(import.spread.ratio, 0.1 * sqrt(6.0 / 8), 1e-9);
	cr_expect_float_eq(import.spread.tail_chance_ratio, 0.1, 1e-12);
	cr_expect_float_eq(import.spread.tail_factor, 3, 1e-9);
	psd_import_release(&import);
	free(text);
}

/* ---- collectives ---- */

/* A ring of 4 sends 6/4 of 68 floats in 6 steps: 3264 bits at 1 Gbit/s and 6 x 10 us. */
Test(import, collectives_are_predicted_beside_the_measured)
{
	const struct run done = run_program("psd-sim",
					    "import " SMALL " --graph /dev/null -o /dev/null --bandwidth 1Gbps "
					    "--latency 10us",
					    "2>&1");

	cr_assert_eq(done.exit_status, 0, "%s", done.text);
	cr_expect_not_null(strstr(done.text, "allreduce         1  272 B  0.100  0.100   0.033      0.063\n"), "%s",
			   done.text);
	free(done.text);
}

/* ---- the file ---- */

static void write_gzip(const struct scratch_folder *folder, const char *name, const char *text, size_t cut)
{
	char path[256];
	gzFile out;

	snprintf(path, sizeof(path), "%s/whole", folder->path);
	out = gzopen(path, "wb");
	cr_assert_eq(gzwrite(out, text, (unsigned)strlen(text)), (int)strlen(text));
	cr_assert_eq(gzclose(out), Z_OK);
	FILE *in = fopen(path, "rb");
	char bytes[4096];
	const size_t length = fread(bytes, 1, sizeof(bytes), in);

	fclose(in);
	scratch_folder_write(folder, name, bytes, length - cut);
}

FOLDER_TEST(import, gzip_is_read_as_the_text_in_it, scratch_folder_make())
{
	static const double us[] = {90, 100, 110};
	char *text = make_steps(us, 3);
	struct psd_trace trace;
	struct psd_error err;

	write_gzip(&folder, "t.json.gz", text, 0);
	cr_assert_eq(psd_trace_read(&trace, scratch_folder_path(&folder, "t.json.gz").text, &err), PSD_OK, "%s",
		     err.text);
	cr_expect_eq(trace.n_events, 6);
	cr_expect_eq(trace.n_ops, 6);
	psd_trace_release(&trace);
	write_gzip(&folder, "cut.gz", text, 20);
	cr_expect_eq(psd_trace_read(&trace, scratch_folder_path(&folder, "cut.gz").text, &err), PSD_EINVAL);
	cr_expect_not_null(strstr(err.text, "cut.gz: the compressed data end too early, must be a whole gzip file"),
			   "%s", err.text);
	free(text);
}

/* Two steps of one linear layer by PyTorch's NVTX ranges: 200 us forward, 300 us backward, and a copy of samples. */
static const char nsight[] = "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);CREATE TABLE NVTX_EVENTS "
			     "(start, end, eventType, text, globalTid, textId);CREATE TABLE "
			     "CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId);CREATE TABLE "
			     "CUPTI_ACTIVITY_KIND_KERNEL (start, end, globalPid, correlationId, gridX, gridY, gridZ, "
			     "blockX, blockY, blockZ, demangledName);CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start, "
			     "end, globalPid, correlationId, copyKind);CREATE TABLE TARGET_INFO_GPU (name TEXT);INSERT "
			     "INTO TARGET_INFO_GPU VALUES ('NVIDIA H100 80GB HBM3');INSERT INTO StringIds VALUES (1, "
			     "'gemm'), (2, 'step 1');";

static const char nsight_step[] =
	"INSERT INTO NVTX_EVENTS VALUES (%d000000, %d900000, 59, NULL, 0x5000007, 2),(%d010000, %d060000, 59, "
	"'aten::linear, seq = 4, sizes = [[8, 16], [4, 16], [4]]', 0x5000007, NULL),(%d300000, %d380000, 59, "
	"'autograd::engine::evaluate_function: AddmmBackward0, seq = 4', 0x5000008, NULL);INSERT INTO "
	"CUPTI_ACTIVITY_KIND_RUNTIME VALUES (%d005000, %d006000, 0x5000007, %d), (%d020000, %d025000, 0x5000007, %d), "
	"(%d320000, %d325000, 0x5000008, %d);INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (%d040000, %d240000, "
	"0x5000000, %d, 1, 1, 1, 128, 1, 1, 1),(%d340000, %d640000, 0x5000000, %d, 1, 1, 1, 128, 1, 1, 1);INSERT INTO "
	"CUPTI_ACTIVITY_KIND_MEMCPY VALUES (%d007000, %d015000, 0x5000000, %d, 1);";

static void write_nsight(const char *path)
{
	sqlite3 *database;
	char text[4096];

	cr_assert_eq(sqlite3_open(path, &database), SQLITE_OK);
	cr_assert_eq(sqlite3_exec(database, nsight, NULL, NULL, NULL), SQLITE_OK, "%s", sqlite3_errmsg(database));
	for (int s = 1; s <= 2; s++) {
		const int copy = 3 * s, forward = 3 * s + 1, backward = 3 * s + 2;

		snprintf(text, sizeof(text), nsight_step, s, s, s, s, s, s, s, s, copy, s, s, forward, s, s, backward,
			 s, s, forward, s, s, backward, s, s, copy);
		cr_assert_eq(sqlite3_exec(database, text, NULL, NULL, NULL), SQLITE_OK, "%s", sqlite3_errmsg(database));
	}
	sqlite3_close(database);
}

FOLDER_TEST(import, an_export_of_nsight_systems_is_a_trace, scratch_folder_make())
{
	const struct scratch_path path = scratch_folder_path(&folder, "n.sqlite");
	struct psd_import import;

	write_nsight(path.text);
	import = import_file(path.text, NULL);
	cr_expect_eq(import.n_steps, 2);
	cr_expect_eq(import.batch, 8);
	cr_expect_eq(import.match.n_layers, 1);
	expect_sec(import.forward_sec[0], 200 * US);
	expect_sec(import.backward_sec[0], 300 * US);
	expect_sec(import.role_sec[PSD_ROLE_DATA], 8 * US);
	expect_sec(import.step_sec, 900 * US);
	expect_sec(import.loose_ratio, 0);
	psd_import_release(&import);
}

FOLDER_TEST(import, a_database_of_others_is_refused, scratch_folder_make())
{
	const struct scratch_path path = scratch_folder_path(&folder, "n.sqlite");
	const char *const texts[] = {"CREATE TABLE t (a);", "CREATE TABLE NVTX_EVENTS (start);"};
	const char *const words[] = {"n.sqlite: has no NVTX ranges, must be an SQLite export of Nsight Systems with",
				     "n.sqlite: 'NVTX_EVENTS' cannot be read (no such table: StringIds)"};

	for (unsigned i = 0; i < 2; i++) {
		sqlite3 *database;
		struct psd_trace trace;
		struct psd_error err;

		remove(path.text);
		cr_assert_eq(sqlite3_open(path.text, &database), SQLITE_OK);
		cr_assert_eq(sqlite3_exec(database, texts[i], NULL, NULL, NULL), SQLITE_OK);
		sqlite3_close(database);
		cr_expect_eq(psd_trace_read(&trace, path.text, &err), PSD_EINVAL);
		cr_expect_not_null(strstr(err.text, words[i]), "%s", err.text);
	}
}

Test(import, a_file_that_is_no_trace_is_refused_with_its_place)
{
	static const struct {
		const char *text, *words;
	} bad[] = {
		{"", "t.json:1: is not JSON (premature EOF), must be a trace of PyTorch's profiler"},
		{"{\"traceEvents\": [\n\n{]", "t.json:3: is not JSON ("},
		{"{\"events\": []}", "t.json: has no list 'traceEvents', must be a trace"},
		{"{\"traceEvents\": [{\"ph\": \"i\"}]}", "t.json: has 1 event but no operator ('cat' is 'cpu_op')"},
		{"[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a\",\"ts\":1,\"dur\":-2}]",
		 "t.json:1: 'dur' of the event 'a' is -2, must be 0 or more"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct psd_trace trace;
		struct psd_error err;

		cr_expect_eq(psd_trace_parse(&trace, "t.json", bad[i].text, strlen(bad[i].text), &err), PSD_EINVAL);
		cr_expect_not_null(strstr(err.text, bad[i].words), "%s", err.text);
	}
}

/* Nearly all operators of a transformer are none of ResNet's: its 20 convolutions, linear layer and 20 normalisations,
 * less the one linear layer that any model has. */
Test(import, a_model_of_other_layers_is_refused)
{
	const struct psd_import_settings settings = {.trace_path = "tests/import/gpt.json.gz",
						     .model_path = "scenarios/models/resnet18.yaml",
						     .profile_path = "p.csv"};
	struct psd_error err = {.text = ""};
	struct psd_import import;

	cr_expect_eq(psd_import_make(&import, &settings, &err), PSD_EINVAL);
	psd_import_release(&import);
	cr_expect_not_null(strstr(err.text, "tests/import/gpt.json.gz: only "), "%s", err.text);
	cr_expect_not_null(strstr(err.text,
				  "belong to layers of 'scenarios/models/resnet18.yaml', must be 50 % or more "
				  "for the model of the trace; 40 of its layers with parameters have no "
				  "operator, the first is 'conv1'"),
			   "%s", err.text);
}

Test(import, misuse_is_one_line_and_status_2)
{
	static const struct {
		const char *arguments, *words;
	} bad[] = {
		{"import -o p.csv", "no TRACE.json is given, see psd-sim import --help"},
		{"import t.json --graph g.yaml", "'psd-sim import' needs '-o PROFILE.csv'"},
		{"import t.json -o p.csv --model m --graph g", "'--model' and '--graph' exclude each other"},
		{"import t.json -o p.csv --model m --bandwidth 3", "'--bandwidth' is '3', must be a rate such as"},
		{"import t.json -o p.csv --model m --latency 1us", "'--latency' needs '--bandwidth'"},
		{"import t.json -o scenarios/quickstart.csv",
		 "scenarios/quickstart.yaml: exists, and no import wrote it"},
		{"import /nowhere.json -o p.csv --model m", "/nowhere.json: "},
		{"import t.json -o p.csv --model m --batch 0", "'--batch' is '0', must be from 1 to 16777216"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		expect_one_line("psd-sim", bad[i].arguments, 2, bad[i].words);
}

/* ---- operators inside others ---- */

#define EVENT(cat, name, start, dur, args)                                                                             \
	"{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":1,\"tid\":1,\"ts\":" start ",\"dur\":" dur    \
	",\"args\":{" args "}}"
#define OUTER  EVENT("cpu_op", "aten::linear", "0", "40", "\"External id\":1,\"Sequence number\":5")
#define INSIDE EVENT("cpu_op", "aten::addmm", "10", "20", "\"External id\":2,\"Sequence number\":5")
#define PLAIN  EVENT("cpu_op", "aten::t", "12", "8", "")
#define KERNEL EVENT("kernel", "k", "50", "6", "\"correlation\":7")
#define LAUNCH EVENT("cuda_runtime", "cudaLaunchKernel", "15", "2", "\"correlation\":7")
#define BY_OP  EVENT("kernel", "k", "50", "6", "\"External id\":2")
#define AROUND EVENT("cpu_op", "autograd::engine::evaluate_function: MulBackward0", "8", "24", "\"External id\":4")
#define ACROSS EVENT("cpu_op", "aten::mul", "35", "10", "\"External id\":4")
#define NODE   EVENT("cpu_op", "aten::add_", "32", "2", "\"Sequence number\":6")
#define GRADIENT                                                                                                       \
	EVENT("cpu_op", "autograd::engine::evaluate_function: AddBackward0", "60", "8", "\"Sequence number\":6")
#define SKIPPED EVENT("python_function", "f", "0", "40", "\"Input Dims\":[[3]]")

/* Kernels and gradients of an operator that was left out are those of the operator around it. It is read again where
 * it matters: a kernel that names it, an operator between both that comes late, and one that crosses the outer one. */
Test(import, operators_inside_others_are_left_out_where_it_does_not_matter)
{
	static const struct {
		const char *text;
		unsigned n_left_out;
		double forward_us, backward_us;
	} rows[] = {
		{"[" OUTER "," INSIDE "," SKIPPED "," LAUNCH "," KERNEL "]", 1, 6, 0},
		{"[" OUTER "," INSIDE "," BY_OP "]", 0, 6, 0},
		{"[" OUTER "," INSIDE "," AROUND "," LAUNCH "," KERNEL "]", 0, 0, 6},
		{"[" OUTER "," AROUND "," PLAIN "," LAUNCH "," KERNEL "]", 1, 0, 6},
		{"[" OUTER "," INSIDE "," ACROSS "," LAUNCH "," KERNEL "]", 0, 6, 0},
		{"[" INSIDE "," OUTER "," LAUNCH "," KERNEL "]", 0, 6, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct psd_import import = import_text(rows[i].text, NULL);

		cr_expect_eq(import.trace.n_left_out, rows[i].n_left_out, "%s", rows[i].text);
		expect_sec(import.role_sec[PSD_ROLE_FORWARD], rows[i].forward_us * US);
		expect_sec(import.role_sec[PSD_ROLE_BACKWARD], rows[i].backward_us * US);
		cr_expect_eq(import.trace.has_dims, false);
		psd_import_release(&import);
	}
}

/* A number of its own makes an inner operator a node of autograd, to which a gradient goes. */
Test(import, an_inner_operator_with_a_number_of_its_own_stays)
{
	struct psd_import import = import_text("[" OUTER "," INSIDE "," NODE "," GRADIENT "]", NULL);

	cr_expect_eq(import.trace.n_left_out, 1);
	cr_assert_eq(import.match.n_layers, 1);
	expect_sec(import.forward_sec[0], 40 * US);
	expect_sec(import.backward_sec[0], 8 * US);
	psd_import_release(&import);
}

/* A pipe is read once, with all operators. */
FOLDER_TEST(import, from_a_pipe_all_operators_are_kept, scratch_folder_make())
{
	const char *text = "[" OUTER "," INSIDE "," BY_OP "]";
	const struct scratch_path pipe = scratch_folder_path(&folder, "pipe");
	char command[2048];
	struct psd_trace trace;
	struct psd_error err;

	cr_assert_eq(mkfifo(pipe.text, 0600), 0);
	snprintf(command, sizeof(command), "printf '%%s' '%s' >%s &", text, pipe.text);
	cr_assert_eq(system(command), 0);
	cr_assert_eq(psd_trace_read(&trace, pipe.text, &err), PSD_OK, "%s", err.text);
	cr_expect_eq(trace.n_ops, 2);
	cr_expect_eq(trace.n_left_out, 0);
	cr_expect_neq(trace.kernels[0].op, PSD_TRACE_NONE);
	psd_trace_release(&trace);
}
