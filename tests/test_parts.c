/* The parts of an iteration, as every executor of predictions tells them, against sums that a pocket calculator does.
 */
#define _DEFAULT_SOURCE
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "tests/simulate_helper.h"
#include "tests/test_with.h"

#define EXACT_RATIO 1e-6

#define VGG19                                                                                                          \
	"title: t\nmodel: {graph: scenarios/models/vgg19.yaml, batch_per_worker: 32}\n"                                \
	"compute: {device: titan-x, samples_per_sec: 35}\n"

static const double vgg19_sec = 32 / 35.0; /* batch over images per second */
static const double vgg19_bytes = 4 * 143667240.0;

enum { EXECUTORS = 3 };
static const char *const executor_names[EXECUTORS] = {"estimate", "flow", "message"};

static struct psd_outcome carry_out(const struct loaded *loaded, unsigned executor)
{
	struct psd_outcome outcome;
	struct psd_case made;

	loaded_case(&made, loaded, 0, 0);
	outcome = executor ? simulated(&made) : estimated(&made);
	psd_case_release(&made);
	return outcome;
}

static void load(struct loaded *loaded, const char *text, unsigned executor)
{
	char whole[4096];

	snprintf(whole, sizeof(whole), "%sfidelity: %s\n", text, executor == 2 ? "message" : "flow");
	loaded_open(loaded, whole);
}

/* Those after `first`, in order: the estimate knows nothing of slow nodes. */
static void expect_parts(const char *text, unsigned first, struct psd_parts expected, double exact_sec)
{
	for (unsigned e = first; e < EXECUTORS; e++) {
		struct loaded loaded;

		load(&loaded, text, e);
		const struct psd_parts parts = carry_out(&loaded, e).parts;
		cr_expect_float_eq(parts.compute_sec, expected.compute_sec, exact_sec, "%s: compute %.9f s, not %.9f",
				   executor_names[e], parts.compute_sec, expected.compute_sec);
		cr_expect_float_eq(parts.other_work_sec, expected.other_work_sec, exact_sec,
				   "%s: other work %.9f s, not %.9f", executor_names[e], parts.other_work_sec,
				   expected.other_work_sec);
		cr_expect_float_eq(parts.exposed_comm_sec, expected.exposed_comm_sec, exact_sec,
				   "%s: exposed %.9f s, not %.9f", executor_names[e], parts.exposed_comm_sec,
				   expected.exposed_comm_sec);
		cr_expect_float_eq(parts.other_waiting_sec, expected.other_waiting_sec, exact_sec,
				   "%s: waiting %.9f s, not %.9f", executor_names[e], parts.other_waiting_sec,
				   expected.other_waiting_sec);
		loaded_close(&loaded);
	}
}

static double backward_sec(const struct loaded *loaded, const char *layer)
{
	const struct psd_graph *graph = &loaded->costed.graph;
	unsigned l = 0;

	while (l < graph->n_layers && strcmp(graph->layers[l].name, layer))
		l++;
	cr_assert_lt(l, graph->n_layers, "no layer '%s'", layer);
	return loaded->costed.costs.backward_sec[l];
}

/* scenarios/quickstart.yaml on four nodes and faster links. Each rebuilds three matrices of 4096 x 4096 from the
 * factors of 32 samples of three others, while nothing is being transferred any more, and of its own, which backward
 * leaves out. A sample has 2 * 4096^2 operations for the matrix, 4096 for the bias and, except in the first layer, 2 *
 * 4096^2 for the input. */
Test(parts, rebuilds_from_factors_are_no_communication)
{
	const char *const text = "title: t\nmodel: {graph: scenarios/models/mlp.yaml, batch_per_worker: 32}\n"
				 "compute: {device: cpu}\n"
				 "cluster: {stack: none, nodes: 4, network: {bandwidth: 10Gbps, latency: 50us}}\n"
				 "systems: [{name: Hybrid, sync: hybrid}]\n";

	for (unsigned e = 0; e < EXECUTORS; e++) {
		struct loaded loaded;

		load(&loaded, text, e);
		const struct psd_outcome outcome = carry_out(&loaded, e);
		const struct psd_costs *costs = &loaded.costed.costs;
		const double others_sec = 3 * 2.0 * 32 * 3 * 4096 * 4096 / costs->gemm_flops_per_sec;
		const double matrix_flops = 2.0 * 4096 * 4096, bias_flops = 4096;
		const double own_sec = backward_sec(&loaded, "fc1") * matrix_flops / (matrix_flops + bias_flops) +
				       (backward_sec(&loaded, "fc2") + backward_sec(&loaded, "fc3")) * matrix_flops /
					       (2 * matrix_flops + bias_flops);
		const double rebuild_sec = own_sec + others_sec, compute_sec = costs->compute_sec - own_sec;

		cr_expect_float_eq(outcome.parts.other_work_sec, rebuild_sec, EXACT_RATIO * rebuild_sec,
				   "%s: %.9f s, not %.9f", executor_names[e], outcome.parts.other_work_sec,
				   rebuild_sec);
		cr_expect_float_eq(outcome.parts.compute_sec, compute_sec, EXACT_RATIO * compute_sec,
				   "%s: %.9f s, not %.9f", executor_names[e], outcome.parts.compute_sec, compute_sec);
		cr_expect_eq(outcome.parts.exposed_comm_sec, 0.0, "%s: %g s", executor_names[e],
			     outcome.parts.exposed_comm_sec);
		loaded_close(&loaded);
	}
}

/* One worker alone: out to the host and back again, summed in between, then 3 ms that the stack takes. */
Test(parts, copies_and_sums_at_a_server_are_communication)
{
	const double copies_sec = 2 * vgg19_bytes / 8e9, reduce_sec = vgg19_bytes / 4e9;

	expect_parts(VGG19 "cluster: {stack: none, nodes: 1, network: {bandwidth: 10Gbps, latency: 50us}, "
			   "host: {copy: 8GBps, reduce: 4GBps, iteration: 3ms}}\n"
			   "systems: [{name: ps, sync: ps, schedule: sequential}]\n",
		     0,
		     (struct psd_parts){.compute_sec = vgg19_sec,
					.other_work_sec = 3e-3,
					.exposed_comm_sec = copies_sec + reduce_sec},
		     1e-6);
}

/* Six workers' layers on two cores, and a network that takes next to no time: a third of the time each has a core. */
TEST_ROW(parts, a_wait_for_a_core_is_other_waiting,
	 expect_parts(
		 VGG19
		 "cluster: {stack: none, nodes: 6, network: {bandwidth: 400Gbps, latency: 0s}, machine: {cores: 2}}\n"
		 "systems: [{name: ring, sync: ring}]\n",
		 0, (struct psd_parts){.compute_sec = vgg19_sec, .other_waiting_sec = 2 * vgg19_sec}, 0.01 * vgg19_sec))

/* slow: a list in brackets. */
#define TWO_NODES(slow)                                                                                                \
	"cluster:\n  stack: none\n  nodes: 2\n  network: {bandwidth: 400Gbps, latency: 0s}\n  slow: " slow             \
	"\nsystems: [{name: ps, sync: ps, schedule: sequential}]\n"

/* Both push half of the model to each other, and pull it. */
static const double push_sec = vgg19_bytes / 2 / (400e9 / 8);

/* The worker that waits least is the slow one: it never waits for the other. */
TEST_ROW(parts, a_slow_worker_waits_for_nobody,
	 expect_parts(VGG19 TWO_NODES("[{node: 1, compute: 50%}]"), 1,
		      (struct psd_parts){.compute_sec = 2 * vgg19_sec, .exposed_comm_sec = 2 * push_sec}, 1e-5))

/* Each of two iterations finds another worker 0.4 s late: 0.8 s at half speed. Meanwhile the quick one has pushed,
 * which is communication, and waits for a push that has not begun, which is not. */
Test(parts, a_wait_for_a_slower_worker_is_other_waiting)
{
	expect_parts(VGG19 TWO_NODES("[{node: 1, compute: 50%, from: 1us, until: 800ms}, "
				     "{node: 0, compute: 50%, from: 1500ms, until: 2300ms}]") "iterations: 2\n",
		     1,
		     (struct psd_parts){.compute_sec = vgg19_sec + 0.4 / 2,
					.exposed_comm_sec = 2 * push_sec + push_sec / 2,
					.other_waiting_sec = (0.4 - push_sec) / 2},
		     1e-5);
}

/* Two workers of asynchronous training, one at half speed, whose messages seldom meet. */
#define TWO_APART(bound)                                                                                               \
	"title: t\nmodel: {graph: tests/data/one_layer_64mib.yaml, batch_per_worker: 1}\n"                             \
	"compute: {device: titan-x, samples_per_sec: 1}\n"                                                             \
	"cluster: {stack: none, nodes: 2, network: {bandwidth: 20Gbps, latency: 0s}, "                                 \
	"slow: [{node: 1, compute: 50%}]}\n"                                                                           \
	"systems: [{name: a, sync: ps, slice: 64MiB, asynchronous: {bound: " bound "}}]\n"

/* Each pushes half of the model and pulls it. Some messages share a link with the other worker's. */
static const double exchange_sec = (64 << 20) / (20e9 / 8), meeting_sec = 3e-3;

/* Neither waits for the other: means, weighted by the workers' rates. */
Test(parts, asynchronous_workers_count_by_their_rates)
{
	const double quick_rate = 1 / (1 + exchange_sec), slow_rate = 1 / (2 + exchange_sec);

	expect_parts(TWO_APART("1000"), 1,
		     (struct psd_parts){.compute_sec = (quick_rate * 1 + slow_rate * 2) / (quick_rate + slow_rate),
					.exposed_comm_sec = exchange_sec},
		     meeting_sec);
}

/* The quick one waits for the slow one, which waits for nobody. */
TEST_ROW(parts, a_slow_worker_at_the_bound_waits_for_nobody,
	 expect_parts(TWO_APART("2"), 1, (struct psd_parts){.compute_sec = 2, .exposed_comm_sec = exchange_sec},
		      meeting_sec))
