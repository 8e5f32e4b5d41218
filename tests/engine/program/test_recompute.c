/* Recomputation of activations (activation checkpointing): MPT 125M, 12 blocks of 768 channels and 12 heads. */
#include <criterion/criterion.h>
#include <math.h>

#include "engine/model/model.h"
#include "engine/program/footprint.h"
#include "engine/scenario/scenario_heed.h"
#include "engine/scenario/scenario_keys.h"
#include "tests/loaded_helper.h"

#define TIE_RATIO 1e-9
#define MODEL(graph, more)                                                                                             \
	"model: {graph: scenarios/models/" graph ".yaml, batch_per_worker: 4" more "}\n"                               \
	"compute: {device: a100" SCALED "}\n"                                                                          \
	"cluster: {nodes: 2, network: {bandwidth: 100Gbps, latency: 5us}}\n"
#define SCALED ""
#define SYSTEMS                                                                                                        \
	"systems:\n"                                                                                                   \
	"  - {name: Kept, sync: ring}\n"                                                                               \
	"  - {name: Again, sync: ring, model: {recompute: blocks}}\n"                                                  \
	"  - {name: Sharded, sync: zero-3, accumulate: 2, model: {recompute: blocks}}\n"
#define SEQUENCE "512"

enum { POSITIONS = 512, CHANNELS = 768, HEADS = 12, BLOCKS = 12, VOCABULARY = 50368, BATCH = 4 };

static struct psd_footprint footprint_of(const struct loaded *loaded, unsigned system)
{
	struct psd_footprint footprint;
	struct psd_case made;

	loaded_case(&made, loaded, system, 0);
	footprint = psd_footprint_make(&made.program, BATCH);
	psd_case_release(&made);
	return footprint;
}

/* Outside blocks: tokens, the table's rows, with positions, a norm, logits and their probabilities. In a block: two
 * norms, three of qkv, attention with its probabilities, its projection, two sums, and four of up, GELU and down: four,
 * four and one. Kept: the second sum of each block. Backward of a block needs neither that nor the output of down. */
Test(recompute, memory_has_the_ends_of_blocks_and_one_block)
{
	const uint64_t map = (uint64_t)POSITIONS * CHANNELS, scores = (uint64_t)HEADS * POSITIONS * POSITIONS;
	const uint64_t outside = POSITIONS + 3 * map + 2 * (uint64_t)POSITIONS * VOCABULARY;
	const uint64_t block = 18 * map + scores, again = 16 * map + scores;
	struct loaded loaded;

	loaded_open(&loaded, MODEL("mpt-125m", ", sequence: " SEQUENCE) SYSTEMS);
	const struct psd_footprint kept = footprint_of(&loaded, 0), less = footprint_of(&loaded, 1);

	cr_expect_eq(kept.activations_bytes, sizeof(float) * BATCH * (outside + BLOCKS * block), "%lu instead of %lu",
		     kept.activations_bytes, sizeof(float) * BATCH * (outside + BLOCKS * block));
	cr_expect_eq(less.activations_bytes, sizeof(float) * BATCH * (outside + BLOCKS * map + again),
		     "%lu instead of %lu", less.activations_bytes,
		     sizeof(float) * BATCH * (outside + BLOCKS * map + again));
	cr_expect_eq(psd_footprint_bytes(&kept) - psd_footprint_bytes(&less),
		     kept.activations_bytes - less.activations_bytes);
	cr_expect_eq(footprint_of(&loaded, 2).activations_bytes, less.activations_bytes);
	loaded_close(&loaded);
}

/* Blocks of a matrix and the function that overwrites its output: the outputs of the blocks are all that there is, and
 * nothing is left to be computed again. more: a reader of both layers of the last block. */
static void expect_all_kept(const char *more)
{
	struct psd_error err = {.text = ""};
	struct psd_graph graph;
	char text[512];

	snprintf(
		text, sizeof(text),
		"name: m\ninput: {channels: 4, height: 8, width: 8}\nlayers:\n  - repeat: 3\n    name: b\n    layers:\n"
		"      - {name: conv, kind: conv, outputs: 4, kernel: 1}\n      - {name: relu, kind: relu}\n%s"
		"  - {name: fc, kind: inner-product, outputs: 4}\n  - {name: loss, kind: softmax-loss}\n",
		more);
	cr_assert_eq(psd_model_parse(&graph, "m.yaml", text, strlen(text), &err), PSD_OK, "%s", err.text);
	cr_expect_eq(graph.n_blocks, 3);
	cr_expect_eq(graph.recomputed_bytes, graph.activation_bytes, "%lu instead of %lu", graph.recomputed_bytes,
		     graph.activation_bytes);
	psd_graph_release(&graph);
}

Test(recompute, an_output_that_is_overwritten_counts_once)
{
	expect_all_kept("");
	expect_all_kept("  - {name: both, kind: concat, inputs: [b3.conv, b3.relu]}\n");
}

/* Seconds of the forward passes of blocks, without `down` and the sum below it. */
static double again_sec(const struct psd_graph *graph, const struct psd_costs *costs)
{
	double sec = 0.0;

	for (unsigned l = 0; l < graph->n_layers; l++)
		if (graph->layers[l].name[0] == 'b' && !strstr(graph->layers[l].name, "down") &&
		    !strstr(graph->layers[l].name, "sum2"))
			sec += costs->forward_sec[l];
	return sec;
}

static double pass_sec(const struct loaded *loaded, unsigned system, enum psd_op_kind kind)
{
	struct psd_case made;
	double sec = 0.0;

	loaded_case(&made, loaded, system, 0);
	for (uint32_t o = 0; o < made.program.n_ops; o++)
		sec += made.program.ops[o].kind == kind ? made.program.ops[o].work_sec : 0.0;
	psd_case_release(&made);
	return sec;
}

static void expect_sec(double sec, double expected_sec)
{
	cr_expect_float_eq(sec, expected_sec, TIE_RATIO * expected_sec, "%g instead of %g", sec, expected_sec);
}

Test(recompute, backward_has_the_forward_of_what_it_needs)
{
	struct loaded loaded;

	loaded_open(&loaded, MODEL("mpt-125m", ", sequence: " SEQUENCE) SYSTEMS);
	const struct psd_costs *kept = psd_costed_model_costs(&loaded.costed, &loaded.scenario.systems[0]);
	const double more_sec = again_sec(&loaded.costed.graph, kept);
	const double forward_sec = pass_sec(&loaded, 0, PSD_OP_FORWARD);
	const double backward_sec = pass_sec(&loaded, 0, PSD_OP_BACKWARD) + more_sec;

	cr_assert_gt(more_sec, 0.0);
	expect_sec(pass_sec(&loaded, 1, PSD_OP_FORWARD), forward_sec);
	expect_sec(pass_sec(&loaded, 1, PSD_OP_BACKWARD), backward_sec);
	expect_sec(pass_sec(&loaded, 2, PSD_OP_FORWARD), 2 * forward_sec);
	expect_sec(pass_sec(&loaded, 2, PSD_OP_BACKWARD), 2 * backward_sec);
	expect_sec(psd_costed_model_compute_sec(&loaded.costed, &loaded.scenario.systems[1],
						&(struct psd_point){.nodes = 2}),
		   forward_sec + backward_sec);
	loaded_close(&loaded);
}

#undef SCALED
#define SCALED ", samples_per_sec: 8"
Test(recompute, a_measured_throughput_includes_it)
{
	struct loaded loaded;

	loaded_open(&loaded, MODEL("mpt-125m", ", recompute: blocks") "systems: [{name: A, sync: ring}]\n");
	expect_sec(loaded.costed.costs.compute_sec, BATCH / 8.0);
	expect_sec(pass_sec(&loaded, 0, PSD_OP_FORWARD) + pass_sec(&loaded, 0, PSD_OP_BACKWARD), BATCH / 8.0);
	loaded_close(&loaded);
}
#undef SCALED
#define SCALED ""

static void expect_refused(const char *text, const char *setting, const char *expected)
{
	const char *const settings[] = {setting, NULL};
	struct psd_error err = {.text = ""};
	struct psd_costed_model costed;
	struct psd_scenario scenario;

	cr_assert_eq(psd_scenario_parse(&scenario, "t.yaml", text, strlen(text), settings, &err), PSD_OK, "%s",
		     err.text);
	cr_expect_eq(psd_costed_model_load(&costed, &scenario, &err), PSD_EINVAL);
	cr_expect_str_eq(err.text, expected);
	psd_scenario_release(&scenario);
}

Test(recompute, a_model_without_blocks_is_refused)
{
	expect_refused(
		MODEL("alexnet", ", recompute: blocks") "systems: [{name: A, sync: ring}]\n", NULL,
		"t.yaml:1:79: 'recompute' is 'blocks', must be 'none' for model 'AlexNet', whose file has no 'repeat'");
	expect_refused(
		MODEL("alexnet", "") "systems: [{name: A, sync: ring, model: {recompute: blocks}}]\n", NULL,
		"t.yaml:4:11: 'recompute' is 'blocks', must be 'none' for model 'AlexNet', whose file has no 'repeat'");
	expect_refused(MODEL("alexnet", "") "systems: [{name: A, sync: ring}]\n", "model.recompute=blocks",
		       "--set model.recompute: 'recompute' is 'blocks', must be 'none' for model 'AlexNet', whose file "
		       "has no 'repeat'");
}

Test(recompute, training_refuses_it)
{
	struct psd_error err = {.text = ""};
	struct loaded loaded;

	loaded_open(&loaded, MODEL("mpt-125m", ", recompute: blocks") "systems: [{name: A, sync: ring}]\n");
	cr_expect_eq(psd_scenario_check_heeded(&loaded.scenario, PSD_BY_SIMULATION, &err), PSD_OK);
	cr_expect_eq(psd_scenario_check_heeded(&loaded.scenario, PSD_BY_RUN, &err), PSD_EINVAL);
	cr_expect_str_eq(err.text,
			 "test.yaml:1:80: 'model.recompute' is 'blocks', used only by psd-sim: must be 'none' here");
	loaded_close(&loaded);
}
