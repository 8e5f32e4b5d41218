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
		{"{systems.C.sync: [ps]}", "'systems' has 2 entries (0 to 1), there is no entry 'C'"},
	};
	struct psd_error err;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct psd_scenario scenario, variant;
		enum psd_status status = parse(&scenario, wrong[i].sweep, NULL, &err);

		for (unsigned v = 1; !status && v < psd_scenario_variants(&scenario); v++) {
			status = psd_scenario_vary(&variant, &scenario, v, &err);
			if (!status)
				psd_scenario_release(&variant);
		}
		cr_expect_eq(status, PSD_EINVAL, "%s", wrong[i].sweep);
		if (status)
			cr_expect(strstr(err.text, wrong[i].message), "%s", err.text);
	}
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
