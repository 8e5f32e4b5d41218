/* Groups of nodes: division of samples by speed, layer times of each group, and refusals. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/loaded_helper.h"

#define MODEL	"model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: %u}\n"
#define COMPUTE "compute: {device: p100, samples_per_sec: 1000}\n"
#define LINKS	"network: {bandwidth: 1Gbps, latency: 10us}"
#define SYSTEMS "systems: [{name: A, sync: ps%s}]\n"

#define ROUNDING_RATIO 1e-12

enum { TEXT_MAX = 2048 };

/* split: a key of the system, after a comma, or nothing. */
static void open_groups(struct loaded *loaded, struct psd_case *made, unsigned batch, const char *cluster,
			const char *split)
{
	char text[TEXT_MAX];

	snprintf(text, sizeof(text), MODEL COMPUTE "cluster: {stack: none, %s, " LINKS "}\n" SYSTEMS, batch, cluster,
		 split);
	loaded_open(loaded, text);
	loaded_case(made, loaded, 0, 0);
}

/* Compares the batches of the workers of all nodes, and their sum. */
static void expect_batches(unsigned batch, const char *cluster, const char *split, const unsigned expected[],
			   unsigned n)
{
	struct loaded loaded;
	struct psd_case made;
	uint64_t sum = 0;

	open_groups(&loaded, &made, batch, cluster, split);
	cr_assert_eq(made.plan.layout.workers, n);
	for (unsigned w = 0; w < n; w++) {
		cr_expect_eq(psd_case_batch(&made, w), expected[w], "%s: worker %u has %u samples", cluster, w,
			     psd_case_batch(&made, w));
		cr_expect_eq(psd_case_batches_before(&made, w), sum, "%s: worker %u", cluster, w);
		sum += expected[w];
	}
	cr_expect_eq(psd_case_samples(&made), sum);
	psd_case_release(&made);
	loaded_close(&loaded);
}

/* Times are in proportion to samples: a group's share is in proportion to its speed. */
Test(kinds, samples_follow_speeds)
{
	expect_batches(10, "groups: [{nodes: 2}, {nodes: 2, speed: 0.25}]", ", split: speed",
		       (const unsigned[]){16, 16, 4, 4}, 4);
	expect_batches(10, "groups: [{nodes: 1}, {nodes: 1, samples_per_sec: 3000}]", ", split: speed",
		       (const unsigned[]){5, 15}, 2);
	expect_batches(10, "groups: [{nodes: 2}, {nodes: 2, speed: 0.25}]", "", (const unsigned[]){10, 10, 10, 10}, 4);
	expect_batches(10, "groups: [{nodes: 1, batch_per_worker: 7}, {nodes: 2}]", "", (const unsigned[]){7, 10, 10},
		       3);
	/* the sum of 4 + 12 samples is divided anew */
	expect_batches(10, "groups: [{nodes: 1, batch_per_worker: 4}, {nodes: 1, batch_per_worker: 12, speed: 0.25}]",
		       ", split: speed", (const unsigned[]){13, 3}, 2);
	/* psd-sim has nothing measured */
	expect_batches(10, "groups: [{nodes: 2}, {nodes: 2, speed: 0.25}]", ", split: measured",
		       (const unsigned[]){16, 16, 4, 4}, 4);
}

/* 15 samples over speeds 2, 1 and 1: no worker needs more than 4 units of time with 8, 4 and 3, and 7, 4 and 4 is no
 * better. */
Test(kinds, nodes_of_a_group_differ_by_one_sample)
{
	expect_batches(5, "groups: [{nodes: 1, speed: 2}, {nodes: 2}]", ", split: speed", (const unsigned[]){8, 4, 3},
		       3);
}

Test(kinds, every_worker_has_a_sample)
{
	expect_batches(2, "groups: [{nodes: 1}, {nodes: 3, speed: 0.01}]", ", split: speed",
		       (const unsigned[]){5, 1, 1, 1}, 4);
}

Test(kinds, workers_of_a_node_have_equal_batches)
{
	expect_batches(5, "workers_per_node: 2, groups: [{nodes: 1, speed: 4}, {nodes: 1}]", ", split: speed",
		       (const unsigned[]){8, 8, 2, 2}, 4);
}

/* Speeds of 4 and 1: two workers of 16 samples and two of 4 end together. 25 samples for 2 slow and 3 fast workers of
 * two nodes are 2 and 7 each; 5 and 5 is the only other division with a fast worker that has as many as a slow one. */
Test(kinds, nodes_with_more_workers_take_more_samples)
{
	expect_batches(10, "groups: [{nodes: 1, workers_per_node: 2, speed: 4}, {nodes: 2}]", ", split: speed",
		       (const unsigned[]){16, 16, 4, 4}, 4);
	expect_batches(10, "workers_per_node: 2, groups: [{nodes: 1}, {nodes: 2, workers_per_node: 1}]", "",
		       (const unsigned[]){10, 10, 10, 10}, 4);
	expect_batches(5, "groups: [{nodes: 1, workers_per_node: 2}, {nodes: 1, workers_per_node: 3, speed: 2}]",
		       ", split: speed", (const unsigned[]){2, 2, 7, 7, 7}, 5);
}

/* The example of a cluster of GPUs beside processors. */
Test(kinds, workers_of_unequal_nodes_are_counted)
{
	struct loaded loaded;
	struct psd_case made;

	open_groups(&loaded, &made, 10,
		    "groups: [{nodes: 4, device: v100, workers_per_node: 2}, {nodes: 8, device: cpu}]",
		    ", split: speed");
	cr_expect(made.plan.layout.workers == 16 && made.plan.layout.nodes == 12 && made.plan.layout.shards == 12);
	cr_expect(made.point.workers == 16 && made.point.nodes == 12);
	cr_expect_eq(psd_case_samples(&made), 160);
	cr_expect_gt(psd_case_batch(&made, 7), psd_case_batch(&made, 8));
	psd_case_release(&made);
	loaded_close(&loaded);
}

static double slowest_sec(const struct psd_case *made)
{
	double sec = 0.0;

	for (unsigned k = 0; k < made->kinds.n; k++)
		sec = fmax(sec, made->kinds.plan[k].costs.compute_sec / made->kinds.plan[k].speed_ratio);
	return sec;
}

/* Modelled devices take more time for each sample of a small batch. All divisions of 2 x 24 samples are tried. */
Test(kinds, no_other_division_has_a_faster_slowest_worker)
{
	const unsigned all = 48;
	struct loaded loaded;
	struct psd_case made;
	char text[TEXT_MAX];
	static const char form[] = MODEL "compute: {device: v100}\ncluster: {stack: none, groups: "
					 "[{nodes: 1%s}, {nodes: 1, device: k20%s}], " LINKS "}\n" SYSTEMS;

	snprintf(text, sizeof(text), form, all / 2, "", "", ", split: speed");
	loaded_open(&loaded, text);
	loaded_case(&made, &loaded, 0, 0);
	const double found_sec = slowest_sec(&made);
	cr_expect_gt(psd_case_batch(&made, 0), psd_case_batch(&made, 1));
	psd_case_release(&made);
	loaded_close(&loaded);
	for (unsigned first = 1; first < all; first++) {
		char of_first[32], of_second[32];

		snprintf(of_first, sizeof(of_first), ", batch_per_worker: %u", first);
		snprintf(of_second, sizeof(of_second), ", batch_per_worker: %u", all - first);
		snprintf(text, sizeof(text), form, all / 2, of_first, of_second, "");
		loaded_open(&loaded, text);
		loaded_case(&made, &loaded, 0, 0);
		cr_expect_geq(slowest_sec(&made), found_sec * (1.0 - ROUNDING_RATIO), "%u and %u samples", first,
			      all - first);
		psd_case_release(&made);
		loaded_close(&loaded);
	}
}

/* A quarter of the speed takes four times as long; copies exist where some group needs them, and take time there. */
Test(kinds, operations_last_as_long_as_the_hosts_group_needs)
{
	struct loaded loaded;
	struct psd_case made;
	unsigned n_copies = 0, n_passes = 0;

	open_groups(&loaded, &made, 10,
		    "host: {copy: 1GBps}, groups: [{nodes: 1}, {nodes: 1, speed: 0.25}, {nodes: 1, device: cpu}]", "");
	const double *first = psd_program_host_sec(&made.program, 0), *second = psd_program_host_sec(&made.program, 1),
		     *third = psd_program_host_sec(&made.program, 2);
	for (uint32_t i = 0; i < made.program.n_ops; i++) {
		const struct psd_op *op = &made.program.ops[i];

		cr_expect_eq(first[i], op->work_sec);
		if (psd_op_is_compute(op))
			cr_expect_float_eq(second[i], 4.0 * first[i], ROUNDING_RATIO * second[i]);
		if (psd_ops[op->kind].rate == PSD_RATE_COPY)
			cr_expect(first[i] > 0.0 && second[i] == first[i] && third[i] == 0.0);
		n_passes += psd_op_is_compute(op);
		n_copies += psd_ops[op->kind].rate == PSD_RATE_COPY;
	}
	cr_expect(n_passes > 0 && n_copies > 0);
	psd_case_release(&made);
	loaded_close(&loaded);
}

/* A cluster of one group is the cluster without groups. */
Test(kinds, one_group_is_a_cluster_of_equal_nodes)
{
	struct loaded loaded, plain;
	struct psd_case made, same;

	open_groups(&loaded, &made, 10, "groups: [{nodes: 4}]", ", split: speed");
	open_groups(&plain, &same, 10, "nodes: 4", "");
	cr_assert_eq(made.program.n_ops, same.program.n_ops);
	for (uint32_t i = 0; i < made.program.n_ops; i++)
		cr_expect_eq(psd_program_host_sec(&made.program, 3)[i], same.program.ops[i].work_sec);
	psd_case_release(&made);
	psd_case_release(&same);
	loaded_close(&loaded);
	loaded_close(&plain);
}

static void expect_unread(const char *text, const char *expected)
{
	struct psd_scenario scenario;
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_scenario_parse(&scenario, "test.yaml", text, strlen(text), NULL, &err), PSD_EINVAL, "%s",
		     text);
	cr_expect_str_eq(err.text, expected);
}

static void expect_refused(const char *cluster, const char *systems, const char *expected)
{
	char text[TEXT_MAX];

	snprintf(text, sizeof(text), MODEL COMPUTE "cluster:\n  stack: none\n  " LINKS "\n  groups: %s\n%s", 8, cluster,
		 systems);
	expect_unread(text, expected);
}

#define PLAIN "systems: [{name: A, sync: ps}]\n"
#define UNEQUAL_NODES                                                                                                  \
	"[{nodes: 2, workers_per_node: 4}, {nodes: 2, workers_per_node: 4}, {nodes: 2, workers_per_node: 2}]"

Test(kinds, methods_and_networks_that_need_equal_nodes_name_the_groups)
{
#define UNEQUAL                                                                                                        \
	"model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 8}\n" COMPUTE                           \
	"cluster: {stack: none, groups: " UNEQUAL_NODES ", " LINKS "}\n"
	loaded_expect_refused(UNEQUAL "systems: [{name: A, sync: zero-2, shard_over: node}]\n",
			      "test.yaml:4:11: system 'A' has 'shard_over: node', which needs as many workers on each "
			      "node: entry 0 of 'cluster.groups' has 4 on a node, entry 2 has 2");
	loaded_expect_refused(UNEQUAL "systems: [{name: A, sync: nccl-two-level}]\n",
			      "test.yaml:4:11: system 'A' has 'sync: nccl-two-level', which needs as many workers on "
			      "each node: entry 0 of 'cluster.groups' has 4 on a node, entry 2 has 2");
	loaded_expect_refused(UNEQUAL "systems: [{name: A, sync: nccl}]\n", "");
	expect_refused(UNEQUAL_NODES "\n  local: {bandwidth: 10Gbps, switches: 2}", PLAIN,
		       "test.yaml:6:78: entry 2 of 'groups' has 2 workers on a node, must have 4 like entry 0: "
		       "'local.switches' need as many on each node");
#define RACKS                                                                                                          \
	"model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 8}\n" COMPUTE                           \
	"systems: [{name: A, sync: ps}]\ncluster: {network: {topology: racks, nodes_per_rack: 2, bandwidth: 1Gbps, "   \
	"latency: 1us}, groups: "
	expect_unread(RACKS UNEQUAL_NODES "}\n",
		      "test.yaml:4:165: entry 2 of 'groups' has 2 workers on a node, must have 4 like entry 0: racks "
		      "need as many on each node");
	expect_unread(RACKS "[{nodes: 2, workers_per_node: 4}, {nodes: 2}]}\n",
		      "test.yaml:4:132: entry 1 of 'groups' has 1 worker on a node, must have 4 like entry 0: racks "
		      "need as many on each node");
	expect_unread(RACKS "[{nodes: 4, network: {latency: 2us}}]}\n",
		      "test.yaml:4:129: 'latency' of a group cannot be used with racks, set 'topology: star'");
}

Test(kinds, contradictions_are_refused)
{
	expect_refused("[{nodes: 2}, {nodes: 3}]\n  nodes: 4", PLAIN,
		       "test.yaml:7:10: 'nodes' is 4, must be 5, the sum of 'groups', or left out");
	expect_refused("[{nodes: 2}]", PLAIN "sweep: {nodes: [1, 2]}\n",
		       "test.yaml:8:16: 'sweep.nodes' has 1, must be 2, the sum of 'cluster.groups', or left out");
	expect_refused("[{nodes: 2}]", PLAIN "sweep: {workers: [2]}\n",
		       "test.yaml:8:18: 'sweep.workers' cannot be used together with 'cluster.groups', which have "
		       "their own numbers of workers");
	expect_refused("[{nodes: 2}]", "systems: [{name: A, sync: ps, compute: {device: k20}}]\n",
		       "test.yaml:7:11: system 'A' has 'compute', must leave it out: 'cluster.groups' decide how fast "
		       "workers are");
	expect_refused("[{nodes: 2}]", "systems: [{name: A, sync: ps, local_sgd: {steps: 2}}]\n",
		       "test.yaml:7:11: system 'A' has 'local_sgd', which 'cluster.groups' do not support");
	expect_refused("[{nodes: 40000}, {nodes: 40000}]", PLAIN,
		       "test.yaml:6:11: 'groups' have 80000 nodes together, at most 65536 are possible");
	expect_unread("model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 8}\n" COMPUTE
		      "cluster: {nodes: 2, " LINKS "}\nsystems: [{name: A, sync: ps, split: speed}]\n",
		      "test.yaml:4:11: 'split' of system 'A' is 'speed', must be 'even' unless 'cluster.groups' lists "
		      "groups of nodes");
}

/* Factors have as many rows as a worker has samples. */
Test(kinds, factors_need_equal_batches)
{
#define HALF_SPEED                                                                                                     \
	"model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 8}\n" COMPUTE                           \
	"cluster: {groups: [{nodes: 2}, {nodes: 2, speed: 0.5}], " LINKS "}\n"
	loaded_expect_refused(HALF_SPEED "systems: [{name: A, sync: sfb, split: speed}]\n",
			      "test.yaml:4:11: system 'A' sends factors, which needs equal batches in all of "
			      "'cluster.groups'");
	loaded_expect_refused(HALF_SPEED "systems: [{name: A, sync: sfb}]\n", "");
}

/* 2 x 10 + 2 x 10 samples at 1000 and at 250 samples/s a worker are 40 at 2500; the split changes nothing where times
 * are in proportion to samples. */
Test(kinds, workers_without_waits_add_their_speeds)
{
	static const char *const splits[] = {"", ", split: speed"};

	for (unsigned s = 0; s < 2; s++) {
		struct loaded loaded;
		struct psd_case made;

		open_groups(&loaded, &made, 10, "groups: [{nodes: 2}, {nodes: 2, speed: 0.25}]", splits[s]);
		cr_expect_float_eq(psd_costed_model_compute_sec(&loaded.costed, made.system, &made.point), 40 / 2500.0,
				   ROUNDING_RATIO);
		psd_case_release(&made);
		loaded_close(&loaded);
	}
}

Test(kinds, more_nodes_than_the_groups_have_are_refused)
{
	struct loaded loaded;
	struct psd_case made;
	struct psd_error err = {.text = ""};

	open_groups(&loaded, &made, 10, "groups: [{nodes: 2}, {nodes: 2}]", "");
	psd_case_release(&made);
	cr_expect_eq(
		psd_case_make(&made, &loaded.costed, &loaded.scenario.systems[0],
			      (struct psd_point){.nodes = 5, .workers = 5, .workers_per_node = 1, .bandwidth_bps = 1e9},
			      &err),
		PSD_EINVAL);
	cr_expect_str_eq(err.text, "test.yaml:3:32: 'groups' have 4 nodes, must have the 5 of the cluster");
	loaded_close(&loaded);
}

/* A node's rate is the smaller one of its link and its software: 10 Gbit/s here, 4 of 10 with that software, and again
 * all of 10 where the software is free. */
Test(kinds, hosts_of_a_group_have_their_own_costs)
{
	struct loaded loaded;
	struct psd_case made;
	unsigned n_updates = 0;

	loaded_open(&loaded, "model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 10}\n" COMPUTE
			     "cluster:\n  stack: none\n  host: {update: 10GBps, transport: 20Gbps}\n  groups:\n"
			     "    - {nodes: 1}\n    - {nodes: 1, host: {update: 5GBps, transport: 4Gbps}}\n"
			     "    - {nodes: 1, host: {update: free, transport: free}}\n"
			     "  network: {bandwidth: 10Gbps, latency: 10us}\nsystems: [{name: A, sync: ring}]\n");
	loaded_case(&made, &loaded, 0, 0);
	cr_expect_eq(psd_layout_link_ratio(&made.plan.layout, 0), 1.0);
	cr_expect_float_eq(psd_layout_link_ratio(&made.plan.layout, 1), 0.4, ROUNDING_RATIO);
	cr_expect_float_eq(psd_layout_link_ratio(&made.plan.layout, 2), 1.0, ROUNDING_RATIO);
	for (uint32_t i = 0; i < made.program.n_ops; i++) {
		if (made.program.ops[i].kind != PSD_OP_APPLY)
			continue;
		const double sec = psd_program_host_sec(&made.program, 0)[i];

		cr_expect_float_eq(psd_program_host_sec(&made.program, 1)[i], 2.0 * sec, ROUNDING_RATIO * sec);
		cr_expect_eq(psd_program_host_sec(&made.program, 2)[i], 0.0);
		n_updates++;
	}
	cr_expect_gt(n_updates, 0);
	psd_case_release(&made);
	loaded_close(&loaded);
}
