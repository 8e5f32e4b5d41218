/* Variants of a scenario: keys that a sweep sets, in a file and by settings. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "engine/scenario/scenario.h"
#include "engine/scenario/scenario_heed.h"

static enum psd_status parse(struct psd_scenario *scenario, const char *sweep, const char *const settings[],
			     struct psd_error *err)
{
	static const char head[] = "model: {graph: m.yaml, batch_per_worker: 32}\ncompute: {device: cpu}\n"
				   "cluster: {nodes: 2, network: {bandwidth: 1Gbps, latency: 50us}}\n"
				   "systems: [{name: A, sync: ps}, {name: B, sync: ring, fuse: 1MB}]\nsweep: ";
	char text[1024];
	const int length = snprintf(text, sizeof(text), "%s%s\n", head, sweep);

	return psd_scenario_parse(scenario, "a.yaml", text, (size_t)length, settings, err);
}

static struct psd_scenario parse_well(const char *sweep, const char *const settings[])
{
	struct psd_scenario scenario;
	struct psd_error err;
	const enum psd_status status = parse(&scenario, sweep, settings, &err);

	cr_assert_eq(status, PSD_OK, "%s", err.text);
	return scenario;
}

static struct psd_scenario vary(const struct psd_scenario *scenario, unsigned i)
{
	struct psd_scenario variant;
	struct psd_error err;
	const enum psd_status status = psd_scenario_vary(&variant, scenario, i, &err);

	cr_assert_eq(status, PSD_OK, "%s", err.text);
	return variant;
}

Test(variant, each_combination_is_one_and_the_last_key_changes_fastest)
{
	struct psd_scenario scenario =
		parse_well("{model.batch_per_worker: [32, 64], cluster.network.latency: [5us, 50us, 1ms]}", NULL);

	cr_assert_eq(psd_scenario_variants(&scenario), 6);
	cr_expect_eq(psd_scenario_points(&scenario), 1);
	for (unsigned i = 0; i < 6; i++) {
		static const double latencies[] = {5e-6, 50e-6, 1e-3};
		struct psd_scenario variant = vary(&scenario, i);

		cr_expect_eq(variant.batch_per_worker, i < 3 ? 32 : 64);
		cr_expect_float_eq(variant.network.latency_sec, latencies[i % 3], 1e-12);
		cr_assert_eq(variant.n_swept, 2);
		cr_expect_str_eq(variant.swept[1].column, "cluster.network.latency_sec");
		cr_expect_float_eq(variant.swept[1].number, latencies[i % 3], 1e-12);
		psd_scenario_release(&variant);
	}
	cr_expect_eq(scenario.batch_per_worker, 32, "the scenario itself is variant 0");
	psd_scenario_release(&scenario);
}

Test(variant, an_entry_is_named_by_its_number_or_its_name)
{
	static const char *const settings[] = {"sweep.systems.B.sync=[Ring, double_tree]",
					       "sweep.systems.0.staleness=[0,1]", NULL};
	struct psd_scenario scenario = parse_well("{nodes: [2]}", settings), last;

	cr_assert_eq(psd_scenario_variants(&scenario), 4);
	last = vary(&scenario, 3);
	cr_expect_str_eq(psd_sync_names[last.systems[1].sync], "double-tree");
	cr_expect_str_eq(last.swept[0].value, "double-tree");
	cr_expect_str_eq(last.swept[0].text, "double_tree");
	cr_expect_str_eq(last.swept[0].section, "B");
	cr_expect_eq(last.systems[0].staleness, 1);
	psd_scenario_release(&last);
	psd_scenario_release(&scenario);
}

Test(variant, ranges_are_written_out)
{
	struct psd_scenario scenario =
		parse_well("{nodes: 1..4, bandwidth: [1Gbps], model.batch_per_worker: [3..9+3, 16..64*2, 7]}", NULL);
	static const unsigned batches[] = {3, 6, 9, 16, 32, 64, 7};

	cr_assert_eq(scenario.n_sweep_nodes, 4);
	cr_expect_eq(scenario.sweep_nodes[3], 4);
	cr_assert_eq(psd_scenario_variants(&scenario), 7);
	for (unsigned i = 0; i < 7; i++) {
		struct psd_scenario variant = vary(&scenario, i);

		cr_expect_eq(variant.batch_per_worker, batches[i]);
		psd_scenario_release(&variant);
	}
	psd_scenario_release(&scenario);
}

Test(variant, ranges_have_units)
{
	struct psd_scenario scenario = parse_well("{bandwidth: 1Gbit/s..64Gbit/s*4, fuse: [512KiB..2MiB+512KiB], "
						  "cluster.network.latency: 5 us..20us*2, compute.jitter: 1%..3%+1%}",
						  NULL);
	static const double latencies_sec[] = {5e-6, 10e-6, 20e-6};

	cr_assert_eq(scenario.n_sweep_bandwidths, 4);
	cr_expect_eq(scenario.sweep_bandwidth_bps[3], 64e9);
	cr_assert_eq(scenario.n_sweep_fuses, 4);
	cr_expect_eq(scenario.sweep_fuse_bytes[2], 3 << 19);
	cr_assert_eq(psd_scenario_variants(&scenario), 9);
	for (unsigned i = 0; i < 9; i++) {
		struct psd_scenario variant = vary(&scenario, i);

		cr_expect_float_eq(variant.network.latency_sec, latencies_sec[i / 3], 1e-12);
		cr_expect_float_eq(variant.jitter_ratio, 0.01 * (i % 3 + 1), 1e-9);
		psd_scenario_release(&variant);
	}
	psd_scenario_release(&scenario);
}

Test(variant, wrong_sweeps_are_refused_at_their_place)
{
	static const struct {
		const char *sweep, *message;
	} wrong[] = {
		{"{model.batch: [1]}", "a.yaml:5:23: unknown key 'batch' in 'model'"},
		{"{model.batch_per_worker: [32, x]}", "a.yaml:5:38: 'batch_per_worker' is 'x'"},
		{"{model.batch_per_worker: 1..x}", "a.yaml:5:33: '1..x' is not a range"},
		{"{nodes: 9..1}", "a.yaml:5:16: '9..1' is not a range"},
		{"{bandwidth: 1Gbps..8}", "'1Gbps..8' is not a range"},
		{"{bandwidth: 1Gbps..8Gbps}", "'1Gbps..8Gbps' has no step, must be such as 1Gbps..8Gbps*2"},
		{"{nodes: 1-8}", "a.yaml:5:16: '1-8' is not a range, did you mean 1..8?"},
		{"{fuse: [1MiB, auto]}", "a.yaml:5:22: 'fuse' is 'auto', must be a size in a sweep of all systems"},
		{"{bandwidth: 1Gbps..8Gbps+1}", "'1Gbps..8Gbps+1' is not a range"},
		{"{nodes: 1..8*1}", "'1..8*1' is not a range"},
		{"{nodes: 1..1000}", "'1..1000' has more than 256 values"},
		{"{node: [1]}", "unknown key 'node' in 'sweep', did you mean 'nodes'?"},
		{"{model.batch_per_worker: 1..100, iterations: 1..100}", "more than 4096 combinations"},
		{"{sweep.nodes: [1, 2]}", "a.yaml:5:9: 'sweep' cannot sweep itself"},
		{"{model.batch_per_worker: []}", "'model.batch_per_worker' has 0 values, must have 1 to 256"},
		{"{model.batch_per_worker: [[1, 2]]}", "must be a list of plain values such as [A, B]"},
		{"{nodes: 1..8*-2}", "'1..8*-2' is not a range"},
		{"{bandwidth: 0Gbps..8Gbps*2}", "'0Gbps..8Gbps*2' is not a range"},
		{"{systems.A.sync: [ps, PS, ps]}", "a.yaml:5:34: 'systems.A.sync' has 'ps' twice"},
		{"{systems.A.wire: [fp16], systems.0.wire: [fp32]}",
		 "a.yaml:5:33: 'systems.0.wire' is swept as 'systems.A.wire', too, must have all values in one list"},
		{"{systems: {A: {wire: [fp16]}}, systems.A.wire: [fp32]}", "is swept as 'systems.A.wire', too"},
		/* the file is right with the first value: the second one is to blame, and the place says where */
		{"{systems.A.staleness: [0, 1], systems.A.wire: [fp32, fp16]}",
		 "a.yaml:5:61: a.yaml:5:34: 'staleness' of system 'A' cannot be used together with 'wire: fp16'"},
		{"{fuse: [1MB], systems.B.fuse: [2MB]}",
		 "a.yaml:5:39: 'fuse' of system 'B' has no effect beside 'sweep.fuse', which is for all systems"},
		{"{systems.C.sync: [ps]}", "'systems' has 2 entries (0 to 1), there is no entry 'C'"},
	};
	struct psd_error err;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct psd_scenario scenario, variant;
		const enum psd_status parsed = parse(&scenario, wrong[i].sweep, NULL, &err);
		enum psd_status status = parsed;

		for (unsigned v = 1; !status && v < psd_scenario_variants(&scenario); v++) {
			status = psd_scenario_vary(&variant, &scenario, v, &err);
			if (!status)
				psd_scenario_release(&variant);
		}
		cr_expect_eq(status, PSD_EINVAL, "%s", wrong[i].sweep);
		if (status)
			cr_expect(strstr(err.text, wrong[i].message), "%s", err.text);
		if (!parsed)
			psd_scenario_release(&scenario);
	}
}

static void expect_refused(const char *sweep, const char *const settings[], const char *message)
{
	struct psd_scenario scenario;
	struct psd_error err = {.text = "accepted"};

	cr_expect_eq(parse(&scenario, sweep, settings, &err), PSD_EINVAL);
	cr_expect_eq(strncmp(err.text, message, strlen(message)), 0, "%s", err.text);
}

/* Each line of the file is right: the option alone is wrong beside it. */
Test(variant, options_are_blamed_for_lines_that_they_make_wrong)
{
	expect_refused("{nodes: [2]}",
		       (const char *const[]){"systems.0.schedule=sequential", "systems.0.sync=zero-2", NULL},
		       "--set systems.0.schedule: 'schedule' is 'sequential', must be 'wait-free' where 'sync' is "
		       "'zero-2'");
	expect_refused("{nodes: [2]}", (const char *const[]){"seed=2", "systems.B.sync=ps", NULL},
		       "--set systems.B.sync: a.yaml:4:54: 'fuse' has no effect where 'sync' is 'ps', only with ring, "
		       "two-level, ");
	expect_refused("{model.batch_per_worker: [32]}", (const char *const[]){"model.batch_per_worker=8", NULL},
		       "--set model.batch_per_worker: 'batch_per_worker' has no effect beside 'sweep', which has "
		       "'model.batch_per_worker': set other values by --sweep");
	expect_refused("{nodes: [2]}", (const char *const[]){"--sweep sweep. nodes=[2,4]", "sweep.nodes=8", NULL},
		       "--set sweep.nodes: 'nodes' is also given by --sweep nodes, must be given by one of them");
	expect_refused("{nodes: [2]}", (const char *const[]){"sweep.nodes=8", "--sweep sweep. nodes=[2,4]", NULL},
		       "--sweep nodes: 'nodes' is also given by --set sweep.nodes, must be given by one of them");
	expect_refused("{nodes: [2]}",
		       (const char *const[]){"--sweep sweep. nodes=[2,4]", "--other sweep. nodes=8", NULL},
		       "--other nodes: 'nodes' is also given by --sweep nodes, must be given by one of them");
	expect_refused("{fuse: [1MB]}", (const char *const[]){"systems.B.fuse=2MB", NULL},
		       "--set systems.B.fuse: 'fuse' of system 'B' has no effect beside 'sweep.fuse'");
	expect_refused(
		"{nodes: [2]}", (const char *const[]){"--sweep sweep. latency=[1us]", NULL},
		"--sweep: no key 'latency', did you mean 'cluster.network.latency' or 'cluster.local.latency' or "
		"'cluster.host.latency'?");
	expect_refused("{nodes: [2]}", (const char *const[]){"--sweep sweep. sync=[ring,ps]", NULL},
		       "--sweep: no key 'sync', did you mean 'systems.N.sync' (N: number or name of the entry)?");
	expect_refused("{nodes: [2]}", (const char *const[]){"wire=fp16", NULL},
		       "--set: no key 'wire', did you mean 'systems.N.wire' (N: number or name of the entry)?");
}

/* The values of the file's sweep are right without the option. */
Test(variant, options_are_blamed_in_later_variants)
{
	static const char *const settings[] = {"seed=2", "systems.A.sync=zero-2", NULL};
	static const char message[] = "--set systems.A.sync: a.yaml:5:41: 'schedule' is 'sequential', must be ";
	struct psd_scenario scenario = parse_well("{systems.A.schedule: [wait-free, sequential]}", settings), variant;
	struct psd_error err = {.text = "accepted"};

	cr_expect_eq(psd_scenario_vary(&variant, &scenario, 1, &err), PSD_EINVAL);
	cr_expect_eq(strncmp(err.text, message, strlen(message)), 0, "%s", err.text);
	psd_scenario_release(&scenario);
}

static void expect_refused_example(const char *const settings[], const char *message)
{
	struct psd_scenario scenario;
	struct psd_error err = {.text = "accepted"};

	cr_expect_eq(psd_scenario_load(&scenario, "scenarios/examples/mixed-nodes.yaml", settings, &err), PSD_EINVAL);
	cr_expect_eq(strncmp(err.text, message, strlen(message)), 0, "%s", err.text);
}

Test(variant, options_beside_groups_are_named)
{
	/* either option alone is wrong, too */
	expect_refused_example(
		(const char *const[]){"cluster.network.topology=racks", "cluster.network.nodes_per_rack=4", NULL},
		"--set cluster.network.topology: scenarios/examples/mixed-nodes.yaml:9:7: entry 1 ");
	expect_refused_example(
		(const char *const[]){"cluster.groups.0.network.latency=1us", "cluster.network.latency=2us", NULL},
		"--set cluster.network.latency: 'latency' has no effect: all entries of 'groups' have ");
	expect_refused_example((const char *const[]){"cluster.groups.0.network.bandwidth=1Gbps",
						     "--sweep sweep. bandwidth=[1Gbps,2Gbps]", NULL},
			       "--sweep bandwidth: 'bandwidth' has no effect: all entries of 'groups' have their own");
	expect_refused_example((const char *const[]){"cluster.groups.1.workers_per_node=2",
						     "--sweep sweep. cluster.workers_per_node=[1,2]", NULL},
			       "--sweep cluster.workers_per_node: 'workers_per_node' has no effect: all entries");
}

Test(variant, an_option_replaces_the_values_of_a_file_by_either_name)
{
	static const char *const settings[] = {"--sweep sweep. systems.0.wire=[fp16,bf16]", NULL};
	struct psd_scenario scenario = parse_well("{systems.A.wire: [fp32]}", settings);

	cr_assert_eq(scenario.n_swept, 1);
	cr_expect_eq(psd_scenario_variants(&scenario), 2);
	cr_expect_str_eq(scenario.swept[0].value, "fp16");
	psd_scenario_release(&scenario);
}

Test(variant, only_predictions_sweep_other_keys)
{
	struct psd_scenario scenario = parse_well("{model.batch_per_worker: [32, 64]}", NULL);
	struct psd_error err;

	cr_expect_eq(psd_scenario_check_heeded(&scenario, PSD_BY_SIMULATION, &err), PSD_OK);
	cr_expect_eq(psd_scenario_check_heeded(&scenario, PSD_BY_RUN, &err), PSD_EINVAL);
	cr_expect(strstr(err.text, "a.yaml:5:33: 'model.batch_per_worker' in 'sweep' is used only by psd-sim"), "%s",
		  err.text);
	psd_scenario_release(&scenario);
}
