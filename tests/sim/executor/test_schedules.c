/* Every all-reduce by its closed form, in flow fidelity and in the estimate, against every message of it. */
#define _DEFAULT_SOURCE
#include <math.h>

#include "tests/scratch_file.h"
#include "tests/simulate_helper.h"

/* tolerance relative to the seconds that the messages take; on a star with equal links */
#define CLOSED_FORM_RATIO 0.02

enum { N_SIZES = 4 };

struct size {
	unsigned inputs, outputs;
};

/* One layer without a bias: 1 KiB, 64 KiB, 4 MiB and 256 MiB of gradient. */
static const struct size sizes[N_SIZES] = {{256, 1}, {16384, 1}, {1 << 20, 1}, {1 << 24, 4}};

static struct scratch_file write_model(struct size size)
{
	static const char form[] = "name: one layer\ninput: {channels: %u}\n"
				   "layers:\n  - {name: fc, kind: inner-product, outputs: %u, bias: false}\n";
	char text[256];

	snprintf(text, sizeof(text), form, size.inputs, size.outputs);
	return scratch_file_write(text);
}

static const char without_switches[] = "bandwidth: 80Gbps";

static double collective_sec(const struct loaded *loaded, const struct psd_outcome *outcome)
{
	return outcome->iteration_sec - loaded->costed.costs.compute_sec;
}

static double simulated_sec(struct loaded *loaded, const struct psd_case *made, enum psd_fidelity fidelity)
{
	struct psd_outcome outcome;

	loaded->scenario.fidelity = fidelity;
	outcome = simulated(made);
	return collective_sec(loaded, &outcome);
}

static void compare(struct loaded *loaded, unsigned point)
{
	struct psd_case made;
	struct psd_outcome outcome;

	loaded_case(&made, loaded, 0, point);
	outcome = estimated(&made);
	const double by_message_sec = simulated_sec(loaded, &made, PSD_FIDELITY_MESSAGE);
	const double by_flow_sec = simulated_sec(loaded, &made, PSD_FIDELITY_FLOW);
	const double estimated_sec = collective_sec(loaded, &outcome);
	cr_expect(fabs(by_flow_sec / by_message_sec - 1.0) < CLOSED_FORM_RATIO &&
			  fabs(estimated_sec / by_message_sec - 1.0) < CLOSED_FORM_RATIO,
		  "%s of %lu bytes, %u workers, %u a node: messages %g s, flow %g s, estimate %g s",
		  made.plan.items[0].method->name, 4 * loaded->costed.graph.parameters, made.plan.layout.workers,
		  made.plan.layout.workers_per_node, by_message_sec, by_flow_sec, estimated_sec);
	psd_case_release(&made);
}

static void compare_sizes(const char *name, unsigned workers_per_node, const char *local, const char *sweep,
			  unsigned n_points)
{
	static const char form[] =
		"title: t\nmodel: {graph: %s, batch_per_worker: 1}\ncompute: {device: h100}\n"
		"cluster: {stack: none, workers_per_node: %u, network: {bandwidth: 10Gbps, latency: 20us}, "
		"local: {%s}}\n"
		"systems: [{name: s, sync: %s}]\nsweep: {%s}\n";

	for (unsigned s = 0; s < N_SIZES; s++) {
		const struct scratch_file model = write_model(sizes[s]);
		struct loaded loaded;

		loaded_print(&loaded, form, model.path, workers_per_node, local, name, sweep);
		for (unsigned point = 0; point < n_points; point++)
			compare(&loaded, point);
		loaded_close(&loaded);
		remove(model.path);
	}
}

Test(schedules, closed_forms_agree_with_messages)
{
	for (unsigned p = 0; p < PSD_N_ALL_REDUCES; p++)
		compare_sizes(psd_all_reduces[p]->name, 1, without_switches, "nodes: [2, 3, 5, 8, 13, 16, 24, 32, 64]",
			      9);
}

/* Workers of a node share its link; links inside the node are faster. */
static void compare_nodes_of(unsigned workers_per_node, const char *local, const char *sweep, unsigned n_points)
{
	for (unsigned p = 0; p < PSD_N_ALL_REDUCES; p++)
		compare_sizes(psd_all_reduces[p]->name, workers_per_node, local, sweep, n_points);
}

Test(schedules, closed_forms_agree_with_messages_of_several_workers_a_node)
{
	compare_nodes_of(2, without_switches, "nodes: [1, 2, 3, 5, 8, 13, 32]", 7);
	compare_nodes_of(3, without_switches, "nodes: [1, 2, 3, 4, 8, 21]", 6);
	compare_nodes_of(4, without_switches, "nodes: [1, 2, 3, 6, 8, 16]", 6);
	compare_nodes_of(8, without_switches, "nodes: [1, 2, 3, 4, 7, 8]", 6);
}

/* Numbers of workers that fill no node; some are prime. */
Test(schedules, closed_forms_agree_with_messages_of_a_last_node_with_fewer)
{
	compare_nodes_of(3, without_switches, "workers: [4, 10, 13, 20]", 4);
	compare_nodes_of(6, without_switches, "workers: [7, 8, 9, 11, 13, 20, 35, 45]", 8);
}

Test(schedules, closed_forms_agree_with_messages_of_many_nodes)
{
	if (!getenv("PSD_FULL_TESTS"))
		cr_skip_test("ten seconds, minutes with sanitisers: PSD_FULL_TESTS=1 runs it");
	compare_nodes_of(2, without_switches, "nodes: [16, 21, 45, 64]", 4);
	compare_nodes_of(4, without_switches, "nodes: [13, 29, 32, 48, 64]", 5);
	compare_nodes_of(8, without_switches, "nodes: [12, 16, 31, 50, 64]", 5);
}

/* Switches whose uplinks are slower than the node's link, as fast, and faster; and workers that fill no node. */
Test(schedules, closed_forms_agree_with_messages_behind_switches)
{
	compare_nodes_of(2, "bandwidth: 80Gbps, latency: 5us, switches: 2, between: 8Gbps", "nodes: [1, 2, 3, 8]", 4);
	compare_nodes_of(4, "bandwidth: 80Gbps, switches: 2, between: 40Gbps", "nodes: [1, 2, 5]", 3);
	compare_nodes_of(8, "bandwidth: 80Gbps, latency: 5us, switches: 2, between: 40Gbps", "nodes: [1, 2, 3, 4]", 4);
	compare_nodes_of(8, "bandwidth: 80Gbps, switches: 4", "nodes: [1, 2, 3]", 3);
	compare_nodes_of(6, "bandwidth: 8Gbps, latency: 30us, switches: 3, between: 12Gbps", "nodes: [1, 2, 3]", 3);
	compare_nodes_of(4, "bandwidth: 80Gbps, latency: 5us", "nodes: [1, 2, 3, 8]", 4);
}

/* 8 GPUs of one node behind 2 switches: each of a ring's 14 steps crosses both uplinks once in each direction, and both
 * hops that cross wait only for themselves. 4 MiB in 8 shares. */
Test(schedules, a_ring_over_two_switches_is_as_slow_as_its_crossings)
{
	const struct scratch_file model = write_model(sizes[2]);
	const double share_bits = 8.0 * (4 << 20) / 8;
	const double crossing_sec = share_bits / 40e9, near_sec = share_bits / 80e9;
	static const char form[] =
		"title: t\nmodel: {graph: %s, batch_per_worker: 1}\ncompute: {device: h100}\n"
		"cluster: {stack: none, nodes: 1, workers_per_node: 8, network: {bandwidth: 10Gbps, latency: "
		"20us}, local: {bandwidth: 80Gbps, latency: %s, switches: %u, between: %s}}\n"
		"systems: [{name: s, sync: ring}]\n";
	const struct {
		const char *latency, *between;
		unsigned switches;
		double expected_sec;
	} rows[] = {
		{"0s", "40Gbps", 2, 14 * crossing_sec},
		{"0s", "40Gbps", 4, 14 * crossing_sec}, /* twice as many hops cross, none slower */
		{"0s", "80Gbps", 2, 14 * near_sec},
		/* a latency as long as a crossing: a share goes around, over 4 crossings but for two hops near */
		{"105us", "40Gbps", 2, 4 * crossing_sec + 10 * near_sec + 14 * 105e-6},
	};

	for (unsigned i = 0; i < 4; i++) {
		struct loaded loaded;
		struct psd_case made;

		loaded_print(&loaded, form, model.path, rows[i].latency, rows[i].switches, rows[i].between);
		loaded_case(&made, &loaded, 0, 0);
		const struct psd_outcome estimate = estimated(&made);
		const double secs[] = {simulated_sec(&loaded, &made, PSD_FIDELITY_MESSAGE),
				       simulated_sec(&loaded, &made, PSD_FIDELITY_FLOW),
				       collective_sec(&loaded, &estimate)};

		for (unsigned e = 0; e < 3; e++)
			cr_expect_float_eq(secs[e], rows[i].expected_sec, 1e-6 * rows[i].expected_sec,
					   "row %u, executor %u: %g s, expected %g", i, e, secs[e],
					   rows[i].expected_sec);
		psd_case_release(&made);
		loaded_close(&loaded);
	}
	remove(model.path);
}

/* By the estimate; *method is what its one item takes. */
static double iteration_sec(const struct scratch_file *model, const char *sync, unsigned nodes,
			    unsigned workers_per_node, const char **method)
{
	static const char form[] =
		"title: t\nmodel: {graph: %s, batch_per_worker: 1}\ncompute: {device: h100}\n"
		"cluster: {stack: none, nodes: %u, workers_per_node: %u, network: {bandwidth: 10Gbps, "
		"latency: 20us}, local: {bandwidth: 80Gbps}}\nsystems: [{name: s, sync: %s}]\n";
	struct loaded loaded;
	struct psd_case made;

	loaded_print(&loaded, form, model->path, nodes, workers_per_node, sync);
	loaded_case(&made, &loaded, 0, 0);
	const double sec = estimated(&made).iteration_sec;
	*method = made.plan.items[0].method->name;
	psd_case_release(&made);
	loaded_close(&loaded);
	return sec;
}

static void expect_quickest(const struct scratch_file *model, unsigned nodes, unsigned workers_per_node)
{
	const char *chosen, *named;
	const double auto_sec = iteration_sec(model, "auto", nodes, workers_per_node, &chosen);
	double chosen_sec = -1.0;

	for (unsigned p = 0; p < PSD_N_ALL_REDUCES; p++) {
		const double sec = iteration_sec(model, psd_all_reduces[p]->name, nodes, workers_per_node, &named);

		cr_expect_leq(auto_sec, sec * (1.0 + 1e-9), "%u nodes of %u: %s takes %g s, %s %g s", nodes,
			      workers_per_node, chosen, auto_sec, named, sec);
		chosen_sec = strcmp(chosen, named) ? chosen_sec : sec;
	}
	cr_expect_float_eq(auto_sec, chosen_sec, 1e-9 * chosen_sec, "%s", chosen);
}

Test(schedules, auto_takes_the_quickest_for_each_size)
{
	static const unsigned nodes[] = {1, 2, 3, 8, 24}, workers_per_node[] = {1, 2, 4};

	for (unsigned s = 0; s < N_SIZES; s++) {
		const struct scratch_file model = write_model(sizes[s]);

		for (unsigned n = 0; n < 5; n++)
			for (unsigned w = 0; w < 3; w++)
				expect_quickest(&model, nodes[n], workers_per_node[w]);
		remove(model.path);
	}
}

/* On 32 nodes 5 messages of the whole 1 KiB take 5 (20 us + 0.8 us), and a ring's 62 take 62 x 20 us at least. 256 MiB
 * take 0.215 s; a ring sends 2 x 31/32 of them, recursive doubling 5 times the whole. */
Test(schedules, auto_sends_small_tensors_in_few_steps_and_large_ones_in_few_bytes)
{
	const struct scratch_file small = write_model(sizes[0]), large = write_model(sizes[N_SIZES - 1]);
	const char *method;

	iteration_sec(&small, "auto", 32, 1, &method);
	cr_expect_str_eq(method, "recursive-doubling");
	iteration_sec(&large, "auto", 32, 1, &method);
	cr_expect_str_neq(method, "recursive-doubling");
	remove(small.path);
	remove(large.path);
}

/* Iterations by the size to which tensors are gathered: bad at both ends, and what is found is near the best. */
static double gathered_sec(const char *fuse, const char *bandwidth, unsigned nodes)
{
	static const char form[] =
		"title: t\nmodel: {graph: scenarios/models/resnet50.yaml, batch_per_worker: 32}\n"
		"compute: {device: p100}\ncluster: {stack: none, nodes: %u, network: {bandwidth: %s, latency: 50us}}\n"
		"systems: [{name: s, sync: ring, fuse: %s}]\n";
	struct loaded loaded;
	struct psd_case made;

	loaded_print(&loaded, form, nodes, bandwidth, fuse);
	loaded_case(&made, &loaded, 0, 0);
	const double sec = estimated(&made).iteration_sec;
	psd_case_release(&made);
	loaded_close(&loaded);
	return sec;
}

Test(schedules, auto_gathers_to_nearly_the_best_size)
{
	static const char *const sizes_tried[] = {"1B", "64KiB", "256KiB", "1MiB", "4MiB", "16MiB", "64MiB", "1GB"};
	static const char *const bandwidths[] = {"1Gbps", "10Gbps", "40Gbps"};
	const double near_ratio = 0.03; /* sizes between powers of two, and what items at a time do to each other */

	for (unsigned b = 0; b < 3; b++)
		for (unsigned nodes = 2; nodes <= 32; nodes *= 4) {
			const double auto_sec = gathered_sec("auto", bandwidths[b], nodes);

			for (unsigned i = 0; i < sizeof(sizes_tried) / sizeof(*sizes_tried); i++) {
				const double sec = gathered_sec(sizes_tried[i], bandwidths[b], nodes);

				cr_expect_leq(auto_sec, sec * (1.0 + near_ratio), "%u nodes, %s: auto %g s, %s %g s",
					      nodes, bandwidths[b], auto_sec, sizes_tried[i], sec);
			}
		}
}

/* Items of several layers, several of them in progress: as long as messages take, with flows and in the estimate, too.
 * */
Test(schedules, gathered_tensors_agree_with_messages)
{
	struct loaded loaded;

	loaded_open(&loaded,
		    "title: t\nmodel: {graph: scenarios/models/vgg19.yaml, batch_per_worker: 32}\n"
		    "compute: {device: titan-x}\n"
		    "cluster: {stack: none, network: {bandwidth: 10Gbps, latency: 20us}}\n"
		    "systems: [{name: s, sync: ring, fuse: 64MB, barrier: layer}]\nsweep: {nodes: [2, 4, 8]}\n");
	for (unsigned point = 0; point < 3; point++) {
		struct psd_case made;

		loaded_case(&made, &loaded, 0, point);
		cr_expect_eq(made.plan.n_items, 4); /* counted in tests/engine/program/test_plan.c */
		psd_case_release(&made);
		compare(&loaded, point);
	}
	loaded_close(&loaded);
}

/* One tensor of S = 268,435,456 bytes, four workers, two servers. The link of a server takes in the halves of four
 * workers, 2 S, and sends as many bytes out. In sequence one follows the other. */
static void expect_busy(const char *schedule, double expected_sec)
{
	struct loaded loaded;
	struct psd_case made;

	loaded_print(&loaded,
		     "title: t\nmodel: {graph: scenarios/models/one-tensor.yaml, batch_per_worker: 1}\n"
		     "compute: {device: v100}\n"
		     "cluster: {stack: none, nodes: 4, network: {bandwidth: 1Gbps, latency: 0s}}\n"
		     "systems: [{name: s, sync: ps, servers: 2, schedule: %s}]\n",
		     schedule);
	loaded_case(&made, &loaded, 0, 0);
	const double sec[] = {estimated(&made).busy_sec[PSD_RESOURCE_NIC], simulated(&made).busy_sec[PSD_RESOURCE_NIC]};

	for (unsigned i = 0; i < 2; i++)
		cr_expect_float_eq(sec[i], expected_sec, 1e-3 * expected_sec, "%s: %g s", schedule, sec[i]);
	psd_case_release(&made);
	loaded_close(&loaded);
}

Test(schedules, pushes_and_pulls_of_separate_servers_both_count_in_sequence)
{
	const double one_way_sec = 8.0 * 2 * 268435456 / 1e9;

	expect_busy("wait-free", one_way_sec);
	expect_busy("sequential", 2 * one_way_sec);
}

static double iterations_sec(const char *form, unsigned iterations, bool is_estimate)
{
	struct loaded loaded;
	struct psd_case made;

	loaded_print(&loaded, form, iterations);
	loaded_case(&made, &loaded, 0, 0);
	const double sec = is_estimate ? estimated(&made).iteration_sec : simulated(&made).iteration_sec;
	psd_case_release(&made);
	loaded_close(&loaded);
	return sec;
}

/* Workers that keep whole tensors fall behind the others; one measured iteration is then as long as many. */
Test(schedules, one_iteration_is_as_long_as_eight_where_workers_keep_tensors)
{
	static const char *const forms[] = {
		"title: t\nmodel: {graph: scenarios/models/resnet18.yaml, batch_per_worker: 8}\ncompute: {device: "
		"a100}\n"
		"cluster: {stack: psd, nodes: 3, network: {bandwidth: 1Gbps, latency: 500us}}\n"
		"systems: [{name: s, sync: adam, schedule: sequential}]\niterations: %u\n",
		"title: t\nmodel: {graph: scenarios/models/googlenet.yaml, batch_per_worker: 64}\n"
		"compute: {device: v100}\ncluster:\n  stack: ps-lite\n  nodes: 9\n  workers_per_node: 2\n"
		"  local: {bandwidth: 12GBps, latency: 5us}\n  network: {bandwidth: 25Gbps, latency: 0us}\n"
		"systems: [{name: s, sync: sacp, priority: forward}]\niterations: %u\n"};

	for (unsigned i = 0; i < 4; i++) {
		const double one_sec = iterations_sec(forms[i / 2], 1, i % 2),
			     all_sec = iterations_sec(forms[i / 2], 8, i % 2);

		cr_expect_float_eq(one_sec, all_sec, 0.02 * all_sec, "%s%g s and %g s", forms[i / 2], one_sec, all_sec);
	}
}
