/* Scenario files: the values read, the defaults, and the exact text and place of every error. */
#define _POSIX_C_SOURCE 200809L
#include <criterion/criterion.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/cost/costs.h"
#include "engine/encodings/compression.h"
#include "engine/model/graph.h"
#include "engine/scenario/published.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/scenario_agree.h"
#include "tests/test_with.h"

/* Lines are replaced by number below, so each stands on its own. */
static const char *const base_lines[] = {
	"title: a test",
	"model: {graph: models/m.yaml, batch_per_worker: 32}",
	"compute: {device: titan-x}",
	"cluster:",
	"  nodes: 8",
	"  network: {bandwidth: 40Gbps, latency: 30us}",
	"systems:",
	"  - {name: A, sync: ps}",
};
enum { N_BASE_LINES = sizeof(base_lines) / sizeof(base_lines[0]), NONE = 0, MORE = N_BASE_LINES + 1 };

/* The base with `line` (from 1) replaced by text; MORE puts text behind it, NONE changes nothing. */
static void write_scenario(char text[4096], unsigned line, const char *replacement)
{
	size_t length = 0;

	for (unsigned i = 1; i <= N_BASE_LINES; i++)
		length += (size_t)snprintf(text + length, 4096 - length, "%s\n",
					   i == line ? replacement : base_lines[i - 1]);
	if (line == MORE)
		snprintf(text + length, 4096 - length, "%s\n", replacement);
}

static enum psd_status parse(struct psd_scenario *scenario, unsigned line, const char *replacement,
			     const char *const settings[], struct psd_error *err)
{
	char text[4096];

	write_scenario(text, line, replacement);
	return psd_scenario_parse(scenario, "dir/a.yaml", text, strlen(text), settings, err);
}

static struct psd_scenario read_set(unsigned line, const char *replacement, const char *const settings[])
{
	struct psd_scenario scenario;
	struct psd_error err = {.text = ""};

	cr_assert_eq(parse(&scenario, line, replacement, settings, &err), PSD_OK, "%s", err.text);
	return scenario;
}

static struct psd_scenario read_with(unsigned line, const char *replacement)
{
	return read_set(line, replacement, NULL);
}

/* expected: from the line's number on. */
static void expect_error(unsigned line, const char *replacement, const char *expected)
{
	struct psd_scenario scenario;
	struct psd_error err = {.text = "accepted"};
	char text[1024];

	snprintf(text, sizeof(text), "dir/a.yaml:%s", expected);
	cr_expect_eq(parse(&scenario, line, replacement, NULL, &err), PSD_EINVAL, "%s", replacement);
	cr_expect_str_eq(err.text, text);
}

/* Error of a system that synchronises this way and has more keys; expected: from the column on. */
static void expect_system_error(const char *sync, const char *keys, const char *expected)
{
	char line[256], text[512];

	snprintf(line, sizeof(line), "  - {name: A, sync: %s, %s}", sync, keys);
	snprintf(text, sizeof(text), "8:%s", expected);
	expect_error(8, line, text);
}

/* The keys have no effect with this way to synchronise, only with those. */
static void expect_no_effect(const char *sync, const char *key, const char *keys, const char *those)
{
	char text[256];

	snprintf(text, sizeof(text), "%zu: '%s' has no effect where 'sync' is '%s', only with %s",
		 strlen("  - {name: A, sync: , ") + strlen(sync) + 1, key, sync, those);
	expect_system_error(sync, keys, text);
}

static void expect_setting_error(const char *setting, const char *expected)
{
	const char *const settings[] = {setting, NULL};
	struct psd_scenario scenario;
	struct psd_error err = {.text = "accepted"};

	cr_expect_eq(parse(&scenario, NONE, "", settings, &err), PSD_EINVAL, "%s", setting);
	cr_expect_str_eq(err.text, expected);
}

Test(scenario, a_former_key_is_refused_with_its_new_name)
{
	expect_error(5, "  nodes: 8\n  host: {overlap: 0.2}", "6:10: 'overlap' is now called 'device_share'");
	expect_error(3, "compute: {device: k20, images_per_sec: 5}",
		     "3:24: 'images_per_sec' is now called 'samples_per_sec'");
	expect_setting_error("cluster.host.overlap=0.2",
			     "--set cluster.host.overlap: 'overlap' is now called 'device_share'");
}

SCENARIO_TEST(scenario, the_shortest_file_gets_the_documented_defaults, read_with(8, "  - {name: A}"))
{
	const struct psd_system *system = &scenario.systems[0];

	cr_expect_str_eq(scenario.title, "a test");
	cr_expect_eq(scenario.batch_per_worker, 32);
	cr_expect_eq(scenario.precision, PSD_PRECISION_FP32);
	cr_expect_str_eq(scenario.device_name, "titan-x");
	cr_expect_null(scenario.profile_path);
	cr_expect_null(scenario.published_path);
	cr_expect_eq(scenario.nodes, 8);
	cr_expect_eq(scenario.workers_per_node, 1);
	cr_expect_eq(scenario.network.topology, PSD_TOPOLOGY_STAR);
	cr_expect_eq(scenario.network.bandwidth_bps, 40e9);
	cr_expect_float_eq(scenario.network.latency_sec, 30e-6, 1e-18);
	cr_expect_eq(scenario.network.oversubscription_ratio, 1);
	cr_expect_eq(scenario.fidelity, PSD_FIDELITY_FLOW);
	cr_expect_eq(scenario.iterations, 0);
	cr_expect_eq(scenario.seed, 1);
	cr_expect_eq(scenario.baseline_system, -1);
	cr_expect_eq(system->schedule, PSD_SCHEDULE_WAIT_FREE);
	cr_expect_eq(system->sync, PSD_SYNC_HYBRID);
	cr_expect_eq(system->rule, PSD_RULE_BYTES);
	cr_expect_eq(system->barrier, PSD_BARRIER_ITERATION);
	cr_expect_eq(system->priority, PSD_PRIORITY_GENERATION);
	cr_expect_eq(system->unit, PSD_UNIT_LAYER);
	cr_expect_eq(system->servers, 0);
	cr_expect_eq(system->pair_bytes, 2000000);	     /* 2 MB */
	cr_expect_eq(system->slice_bytes, 32 * 1024 * 1024); /* 32 MiB */
	cr_expect_eq(system->host.n_collective_classes, 0);
	cr_expect_eq(system->host.latency_sec, 0);
}

Test(scenario, every_key_arrives_in_its_place)
{
	static const char text[] =
		"model: {graph: /abs/m.yaml, batch_per_worker: 100, precision: mixed}\n"
		"compute: {profile: ../p.csv, samples_per_sec: 34.6, jitter: 5%}\n"
		"cluster:\n"
		"  nodes: 8\n"
		"  workers_per_node: 4\n"
		"  network: {bandwidth: 10Gbps, payload: 95%, latency: 2us, topology: fat-tree, nodes_per_rack: 16,\n"
		"            oversubscription: 4}\n"
		"  local: {bandwidth: 12GBps, latency: 5us, switches: 2, between: 8GBps}\n"
		"  host: {copy: 2.3GBps, reduce: 1GBps, update: 2GBps, transport: 16Gbps, incast: 15%, latency: 40us, "
		"iteration: 10ms}\n"
		"  machine: {cores: 16, nodes: 2, bytes: 1.5GBps, message: 30us}\n"
		"  slow: [{node: 3, compute: 50%, link: 25%, from: 1s, until: 2s}]\n"
		"  background: [{from: 0, to: 1, bytes: 10MB, period: 10ms}]\n"
		"systems:\n"
		"  - {name: S, schedule: sequential, sync: sacp, rule: seconds, barrier: layer, priority: forward, "
		"unit: tensor,\n"
		"     servers: 3, pair: 4MB, slice: 8MB}\n"
		"fidelity: message\n"
		"iterations: 3\n"
		"seed: 7\n"
		"calibration: {workers: 2, bandwidth: 1Gbps, spread: 70%}\n"
		"baseline: S\n"
		"published: published/x.csv\n";
	struct psd_scenario scenario;
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_scenario_parse(&scenario, "dir/a.yaml", text, strlen(text), NULL, &err), PSD_OK, "%s",
		     err.text);
	const struct psd_system *system = &scenario.systems[0];

	cr_expect_str_eq(scenario.title, "dir/a.yaml", "without a title the path serves");
	cr_expect_str_eq(scenario.graph_path, "/abs/m.yaml");
	cr_expect_str_eq(scenario.profile_path, "dir/../p.csv");
	cr_expect_str_eq(scenario.published_path, "dir/published/x.csv");
	cr_expect_eq(scenario.precision, PSD_PRECISION_MIXED);
	cr_expect_null(scenario.device_name);
	cr_expect_eq(scenario.samples_per_sec, 34.6);
	cr_expect_float_eq(scenario.jitter_ratio, 0.05, 1e-12);
	cr_expect_eq(scenario.workers_per_node, 4);
	cr_expect_eq(scenario.network.topology, PSD_TOPOLOGY_FAT_TREE);
	cr_expect_eq(scenario.network.nodes_per_rack, 16);
	cr_expect_eq(scenario.network.oversubscription_ratio, 4);
	cr_expect_float_eq(scenario.network.payload_ratio, 0.95, 1e-12);
	cr_expect_float_eq(scenario.network.local_bps, 8 * 12e9, 1);
	cr_expect_float_eq(scenario.network.local_latency_sec, 5e-6, 1e-18);
	cr_expect_eq(scenario.network.local_switches, 2);
	cr_expect_float_eq(scenario.network.between_bps, 8 * 8e9, 1);
	cr_expect_float_eq(scenario.host.copy_bps, 8 * 2.3e9, 1);
	cr_expect_float_eq(scenario.host.reduce_bps, 8e9, 1);
	cr_expect_float_eq(scenario.host.update_bps, 16e9, 1);
	cr_expect_float_eq(scenario.host.transport_bps, 16e9, 1);
	cr_expect_eq(scenario.machine.cores, 16);
	cr_expect_eq(scenario.machine.nodes, 2);
	cr_expect_float_eq(scenario.machine.bytes_bps, 12e9, 1);
	cr_expect_float_eq(scenario.machine.message_sec, 30e-6, 1e-18);
	cr_expect_float_eq(scenario.host.incast_ratio, 0.15, 1e-12);
	cr_expect_float_eq(scenario.host.latency_sec, 40e-6, 1e-18);
	cr_expect_float_eq(scenario.network.latency_sec, 2e-6, 1e-18);
	cr_expect_float_eq(scenario.host.iteration_sec, 0.01, 1e-12);
	cr_expect_eq(scenario.n_slowdowns, 1);
	cr_expect_eq(scenario.slowdowns[0].node, 3);
	cr_expect_eq(scenario.slowdowns[0].compute_ratio, 0.5);
	cr_expect_eq(scenario.slowdowns[0].link_ratio, 0.25);
	cr_expect_eq(scenario.slowdowns[0].from_sec, 1);
	cr_expect_eq(scenario.slowdowns[0].until_sec, 2);
	cr_expect_eq(scenario.n_backgrounds, 1);
	cr_expect_eq(scenario.backgrounds[0].to_node, 1);
	cr_expect_eq(scenario.backgrounds[0].bytes, 10000000);
	cr_expect_eq(system->schedule, PSD_SCHEDULE_SEQUENTIAL);
	cr_expect_eq(system->sync, PSD_SYNC_SACP);
	cr_expect_eq(system->rule, PSD_RULE_SECONDS);
	cr_expect_eq(system->barrier, PSD_BARRIER_LAYER);
	cr_expect_eq(system->priority, PSD_PRIORITY_FORWARD);
	cr_expect_eq(system->unit, PSD_UNIT_TENSOR);
	cr_expect_eq(system->servers, 3);
	cr_expect_eq(system->pair_bytes, 4000000);
	cr_expect_eq(system->slice_bytes, 8000000);
	cr_expect_eq(system->at.line, 14);
	cr_expect_eq(scenario.fidelity, PSD_FIDELITY_MESSAGE);
	cr_expect_eq(scenario.iterations, 3);
	cr_expect_eq(scenario.seed, 7);
	cr_expect_eq(scenario.calibration.workers, 2);
	cr_expect_eq(scenario.calibration.bandwidth_bps, 1e9);
	cr_expect_float_eq(scenario.calibration.spread_ratio, 0.7, 1e-12);
	cr_expect_eq(scenario.baseline_system, 0);
	psd_scenario_release(&scenario);
}

SCENARIO_TEST(scenario, a_ring_carries_tensors_unless_told_otherwise,
	      read_with(8, "  - {name: A, sync: ring}\n  - {name: B, sync: ring, unit: layer}"))
{
	cr_expect_eq(scenario.systems[0].unit, PSD_UNIT_TENSOR);
	cr_expect_eq(scenario.systems[1].unit, PSD_UNIT_LAYER);
}

SCENARIO_TEST(scenario, a_slice_grows_with_the_pair, read_with(8, "  - {name: A, pair: 64MiB}"))
{
	cr_expect_eq(scenario.systems[0].slice_bytes, 64 * 1024 * 1024);
}

Test(scenario, a_system_overlays_the_clusters_host)
{
	static const char *const settings[] = {"cluster.host.copy=1GBps", "cluster.host.reduce=2GBps",
					       "cluster.host.latency=40us", NULL};
	struct psd_scenario scenario = read_set(8,
						"  - {name: X, host: {copy: 3GBps, latency: 70us, collective: [{up_to: "
						"16KiB, step: 1us, slowdown: 4}, {call: 90us}]}}\n"
						"  - {name: Y}",
						settings);

	const struct psd_host_costs *x = &scenario.systems[0].host, *y = &scenario.systems[1].host;

	cr_expect_float_eq(x->copy_bps, 8 * 3e9, 1);
	cr_expect_float_eq(x->reduce_bps, 8 * 2e9, 1);
	cr_expect_float_eq(y->copy_bps, 8 * 1e9, 1);
	cr_expect_float_eq(x->latency_sec, 70e-6, 1e-18);
	cr_expect_float_eq(y->latency_sec, 40e-6, 1e-18);
	cr_expect_eq(y->n_collective_classes, 0);
	cr_expect_eq(x->n_collective_classes, 2);
	cr_expect_eq(x->collective[0].up_to_bytes, 16 * 1024);
	cr_expect_eq(x->collective[0].call_sec, 0);
	cr_expect_eq(x->collective[0].slowdown_ratio, 4);
	cr_expect_eq(x->collective[1].up_to_bytes, 0);
	cr_expect_eq(x->collective[1].slowdown_ratio, 1);
	psd_scenario_release(&scenario);
}

SCENARIO_TEST(scenario, a_platform_file_needs_no_bandwidth, read_with(6, "  network: {platform: net.xml}"))
{
	cr_expect_eq(scenario.network.topology, PSD_TOPOLOGY_PLATFORM);
	cr_expect_str_eq(scenario.network.platform_path, "dir/net.xml");
}

SCENARIO_TEST(scenario, without_a_sweep_there_is_one_point, read_with(5, "  nodes: 8\n  workers_per_node: 4"))
{
	const struct psd_point point = psd_scenario_point(&scenario, 0);

	cr_expect_eq(psd_scenario_points(&scenario), 1);
	cr_expect_eq(point.nodes, 8);
	cr_expect_eq(point.workers_per_node, 4);
	cr_expect_eq(point.workers, 8 * 4);
	cr_expect_eq(point.bandwidth_bps, 40e9);
}

SCENARIO_TEST(scenario, bandwidth_is_the_outer_loop_of_a_sweep,
	      read_with(MORE, "sweep: {nodes: [1, 2, 4], bandwidth: [10Gbps, 40Gbps]}"))
{
	static const double bandwidths_bps[] = {10e9, 40e9};
	static const unsigned nodes[] = {1, 2, 4};

	cr_assert_eq(psd_scenario_points(&scenario), 2 * 3);
	for (unsigned i = 0; i < 2 * 3; i++) {
		const struct psd_point point = psd_scenario_point(&scenario, i);

		cr_expect_eq(point.bandwidth_bps, bandwidths_bps[i / 3]);
		cr_expect_eq(point.nodes, nodes[i % 3]);
		cr_expect_eq(point.workers, nodes[i % 3]);
	}
}

static const double job_tolerance_ratio = 1e-12;

SCENARIO_TEST(scenario, a_job_takes_words_behind_numbers,
	      read_with(MORE,
			"job: {samples: 1281167, epochs: 90, price: 3 per worker hour, within: 10h, efficiency: 75%, "
			"memory: 80GB, mtbf: 2000d per node, checkpoint: 40s, restart: 3min}"))
{
	cr_expect(scenario.has_job);
	cr_expect_eq(scenario.job.samples, 1281167);
	cr_expect_float_eq(scenario.job.epochs, 90.0, job_tolerance_ratio);
	cr_expect_float_eq(scenario.job.price, 3.0, job_tolerance_ratio);
	cr_expect_float_eq(scenario.job.within_sec, 10 * 60 * 60.0, job_tolerance_ratio);
	cr_expect_float_eq(scenario.job.efficiency_ratio, 0.75, job_tolerance_ratio);
	cr_expect_eq(scenario.job.memory_bytes, 80 * UINT64_C(1000000000));
	cr_expect_float_eq(scenario.job.mtbf_sec, 2000 * 24 * 60 * 60.0, job_tolerance_ratio);
	cr_expect_float_eq(scenario.job.restart_sec, 3 * 60.0, job_tolerance_ratio);
	struct psd_text text = {.bytes = NULL};
	psd_scenario_add_text(&text, &scenario);
	cr_expect_not_null(strstr(text.bytes, "mtbf: 2000d per node\n"), "%s", text.bytes);
	cr_expect_not_null(strstr(text.bytes, "price: 3\n"), "%s", text.bytes);
	psd_text_release(&text);
}

Test(scenario, a_job_names_what_stands_beside_its_keys)
{
	expect_error(1, "job: {within: 10h}", "1:7: 'within' needs 'samples' beside it");
	expect_error(1, "job: {samples: 8, budget: 10}", "1:19: 'budget' needs 'price' beside it");
	expect_error(1, "job: {mtbf: 12000d per node, checkpoint: 1s}",
		     "1:13: 'mtbf' is '12000d', must be a time of at most 1000000000s");
	expect_error(1, "job: {mtbf: 24h}", "1:7: 'mtbf' needs 'checkpoint' beside it");
	expect_error(1, "job: {mtbf: 24h per node, checkpoint: 0s}",
		     "1:39: 'checkpoint' is '0s', must be more than 0s with 'mtbf'");
	expect_error(1, "job: {price: 3 per node}",
		     "1:14: 'price' is '3 per node', must be a number from 0.0001 to 1000000000; 'per worker hour' "
		     "may follow");
}

/* Answers would lack such a bound, as if it were not given. */
Test(scenario, a_job_refuses_bounds_of_0)
{
	expect_error(1, "job: {price: 0}", "1:14: 'price' is '0', must be a number from 0.0001 to 1000000000");
	expect_error(1, "job: {samples: 8, price: 3, budget: 0}",
		     "1:37: 'budget' is '0', must be a number from 0.0001 to 1e+15");
	expect_error(1, "job: {samples: 8, within: 0s}", "1:27: 'within' is '0s', must be more than 0s");
	expect_error(1, "job: {mtbf: 0s, checkpoint: 1s}", "1:13: 'mtbf' is '0s', must be more than 0s");
}

/* Around bandwidths; of systems that name a size only. */
SCENARIO_TEST(scenario, sizes_of_fusion_are_a_sweeps_outermost_loop,
	      read_with(MORE, "  - {name: Ring, sync: ring, fuse: 4MiB}\n  - {name: Found, sync: ring, fuse: auto}\n"
			      "  - {name: Each, sync: ring}\n"
			      "sweep: {nodes: [1, 2, 4], bandwidth: [10Gbps, 40Gbps], fuse: [64KiB, 2MB]}"))
{
	static const uint64_t sizes_bytes[] = {65536, 2000000};
	const unsigned ring = scenario.n_systems - 3, found = ring + 1, each = ring + 2;

	cr_assert_eq(psd_scenario_points(&scenario), 2 * 2 * 3);
	for (unsigned i = 0; i < 2 * 2 * 3; i++) {
		const struct psd_point point = psd_scenario_point(&scenario, i);

		cr_expect_eq(point.nodes, 1u << i % 3);
		cr_expect_eq(point.bandwidth_bps, i / 3 % 2 ? 40e9 : 10e9);
		cr_expect_eq(psd_system_fuse_bytes(&scenario.systems[ring], &point), sizes_bytes[i / 6]);
		cr_expect_eq(psd_system_fuse_bytes(&scenario.systems[found], &point), 0);
		cr_expect_eq(psd_system_fuse_bytes(&scenario.systems[each], &point), 0);
	}
	const struct psd_point none = {.workers = 1};

	cr_expect_eq(psd_system_fuse_bytes(&scenario.systems[ring], &none), 4194304);
}

Test(scenario, a_sweep_of_workers_fills_nodes_one_after_the_other)
{
	static const struct {
		unsigned workers, nodes, workers_per_node;
	} expected[] = {{1, 1, 1}, {4, 1, 4}, {8, 1, 8}, {12, 2, 8}, {128, 16, 8}};
	struct psd_scenario scenario =
		read_with(4, "sweep: {workers: [1, 4, 8, 12, 128]}\ncluster:\n  workers_per_node: 8");

	cr_assert_eq(psd_scenario_points(&scenario), 5);
	for (unsigned i = 0; i < 5; i++) {
		const struct psd_point point = psd_scenario_point(&scenario, i);

		cr_expect_eq(point.workers, expected[i].workers);
		cr_expect_eq(point.nodes, expected[i].nodes);
		cr_expect_eq(point.workers_per_node, expected[i].workers_per_node);
	}
	psd_scenario_release(&scenario);
}

Test(scenario, a_sweep_can_stand_for_nodes)
{
	static const char *const settings[] = {"sweep.nodes=16", NULL};
	struct psd_scenario scenario = read_set(5, "", settings);

	cr_expect_eq(scenario.nodes, 16);
	psd_scenario_release(&scenario);
}

Test(scenario, a_setting_in_brackets_is_a_list)
{
	static const char *const settings[] = {"sweep.nodes=[2,4, 8 ]", "sweep.nodes.1=16", "sweep.bandwidth=[ 1Gbps ]",
					       NULL};
	struct psd_scenario scenario = read_set(5, "", settings);

	cr_assert_eq(scenario.n_sweep_nodes, 3);
	cr_expect_eq(scenario.sweep_nodes[0], 2);
	cr_expect_eq(scenario.sweep_nodes[1], 16);
	cr_expect_eq(scenario.sweep_nodes[2], 8);
	cr_assert_eq(scenario.n_sweep_bandwidths, 1);
	cr_expect_eq(scenario.sweep_bandwidth_bps[0], 1e9);
	psd_scenario_release(&scenario);
}

Test(scenario, settings_replace_and_add_values)
{
	static const char *const settings[] = {
		"cluster.nodes=4",	  "systems.0.sync=ring", "cluster.local.bandwidth=12GBps",
		"sweep.bandwidth=25Gbps", "cluster.nodes=2",	 NULL};
	struct psd_scenario scenario = read_set(NONE, "", settings);

	cr_expect_eq(scenario.nodes, 2, "the last setting of a key wins");
	cr_expect_eq(scenario.systems[0].sync, PSD_SYNC_ALL_REDUCE);
	cr_expect_str_eq(scenario.systems[0].name, "A");
	cr_expect_float_eq(scenario.network.local_bps, 8 * 12e9, 1);
	cr_expect_eq(scenario.n_sweep_bandwidths, 1);
	cr_expect_eq(scenario.sweep_bandwidth_bps[0], 25e9);
	psd_scenario_release(&scenario);
}

/* A part of a key's name, a word of other programs, a misspelling. */
Test(scenario, settings_near_a_key_are_told_its_path)
{
	expect_setting_error("batch=32", "--set: no key 'batch', did you mean 'model.batch_per_worker'?");
	expect_setting_error("Batch-Size=32", "--set: no key 'Batch-Size', did you mean 'model.batch_per_worker'?");
	expect_setting_error("lr=0.1", "--set: no key 'lr', did you mean 'train.learning_rate.base'?");
	expect_setting_error("bandwith=1Gbps",
			     "--set: no key 'bandwith', did you mean 'cluster.network.bandwidth' or "
			     "'cluster.local.bandwidth' or 'sweep.bandwidth' or 'calibration.bandwidth'?");
	expect_setting_error("systems.0.async={}",
			     "--set systems.0.async: unknown key 'async' in 'systems', did you mean 'asynchronous'?");
	expect_setting_error("gpu=a100", "--set: no key 'gpu', did you mean 'compute.device'?");
	expect_setting_error("fuze=1MiB", "--set: no key 'fuze', did you mean 'sweep.fuse'?");
	expect_setting_error("--sweep sweep. batch=[32]",
			     "--sweep: no key 'batch', did you mean 'model.batch_per_worker'?");
}

Test(scenario, bad_settings_name_themselves)
{
	expect_setting_error("cluster.nodes", "--set: 'cluster.nodes' has no '=', must be key.path=value");
	expect_setting_error("cluster..nodes=4", "--set cluster..nodes: empty key, must be key.path=value");
	expect_setting_error("cluster.nodes=0",
			     "--set cluster.nodes: 'nodes' is '0', must be a whole number from 1 to 65536");
	expect_setting_error("cluster.nodse=4",
			     "--set cluster.nodse: unknown key 'nodse' in 'cluster', did you mean 'nodes'?");
	expect_setting_error("systems.1.sync=ps",
			     "--set systems.1.sync: 'systems' has 1 entry (0 to 0), there is no entry '1'");
	expect_setting_error("systems.a.sync=ps",
			     "--set systems.a.sync: 'systems' has 1 entry (0 to 0), there is no entry "
			     "'a', did you mean 'A'?");
	expect_setting_error("title.x=4", "--set title.x: 'x' is below a plain value, must be below a mapping or list");
	expect_setting_error("systems=4",
			     "--set systems: 'systems' is a list of mappings, which a file must have: --set changes "
			     "one of their keys (systems.0.name=VALUE)");
	expect_setting_error("systems.0.split=speed",
			     "--set systems.0.split: 'split' of system 'A' is 'speed', must be 'even' unless "
			     "'cluster.groups' lists groups of nodes");
	expect_setting_error("cluster.slow=[]",
			     "--set cluster.slow: 'slow' is a list of mappings, which a file must begin: --set changes "
			     "one of their keys (cluster.slow.0.node=VALUE) or removes the list (cluster.slow=)");
	expect_setting_error("cluster.groups.0.nodes=2", "--set cluster.groups.0.nodes: 'groups' is missing in the "
							 "file: --set changes keys of a list's entries, and "
							 "begins no list of mappings");
	expect_setting_error("=4", "--set: empty key, must be key.path=value");
	expect_setting_error("sweep.nodes=2,4",
			     "--set sweep.nodes: 'nodes' is '2,4', must be one value or a list in brackets: [1, 2]");
	expect_setting_error("sweep.nodes=[2,,4]",
			     "--set sweep.nodes: 'nodes' is empty, must be a whole number from 1 to 65536");
	expect_setting_error("sweep.nodes=[]",
			     "--set sweep.nodes: 'nodes' is empty, must be a whole number from 1 to 65536");
	expect_setting_error("sweep.nodes=[2, 4, 2]", "--set sweep.nodes: 'nodes' has '2' twice");
	expect_setting_error("--sweep sweep. nodes=[0]",
			     "--sweep nodes: 'nodes' is '0', must be a whole number from 1 to 65536");
	expect_setting_error("sweep.nodes=[[1],[2]]", "--set sweep.nodes: '[[1],[2]]' has brackets within brackets, "
						      "must be a list of plain values such as [A, B]");
	expect_setting_error("title=[x]", "--set title: 'title' is a list, must be a text");
	expect_setting_error("train.learning_rate=0.1",
			     "--set train.learning_rate: 'learning_rate' is a mapping, --set must name one of its "
			     "keys, as in train.learning_rate.policy=VALUE: policy, base, gamma, power, step, steps, "
			     "max_iterations, lowest, warmup_iterations, warmup_start, for_batch");
	expect_error(MORE, "sweep: {nodes: '2,4'}",
		     "9:16: 'nodes' is '2,4', must be one value or a list in brackets: [1, 2]");
}

Test(scenario, published_values_do_not_stand_beside_another_bandwidth)
{
	static const char *const kept[] = {"cluster.network.latency=1ms", NULL},
				 *const other[] = {"cluster.network.bandwidth=25Gbps", NULL};
	struct psd_scenario scenario;
	struct psd_error err = {.text = ""};

	cr_assert_eq(parse(&scenario, MORE, "published: p.csv", kept, &err), PSD_OK, "%s", err.text);
	cr_expect_not_null(scenario.published_path);
	psd_scenario_release(&scenario);
	cr_assert_eq(parse(&scenario, MORE, "published: p.csv", other, &err), PSD_OK, "%s", err.text);
	cr_expect_null(scenario.published_path);
	psd_scenario_release(&scenario);
}

Test(scenario, an_empty_setting_removes_a_key)
{
	static const char *const settings[] = {"compute.device=", "compute.profile=p.csv", NULL};
	struct psd_scenario scenario;
	struct psd_error err = {.text = ""};

	cr_assert_eq(parse(&scenario, MORE, "seed: 1", settings, &err), PSD_OK, "%s", err.text);
	cr_expect_null(scenario.device_name);
	cr_expect_not_null(scenario.profile_path);
	psd_scenario_release(&scenario);
	expect_setting_error("compute.device=",
			     "--set compute.device: dir/a.yaml:3:10: 'compute' needs 'profile' or 'device'");
	expect_setting_error("compute.profile=", "--set compute.profile: an empty value removes a key, but there is no "
						 "key 'profile' here");
	expect_setting_error("compute.profile=p.csv", "--set compute.profile: 'profile' cannot be used together with "
						      "'device', must be one of them; '--set KEY=' removes a key");
}

Test(scenario, a_setting_that_the_sweep_would_hide_is_refused)
{
	static const char *const settings[] = {"cluster.nodes=4", NULL};
	struct psd_scenario scenario;
	struct psd_error err = {.text = "accepted"};

	cr_expect_eq(parse(&scenario, MORE, "sweep: {nodes: [1, 2]}", settings, &err), PSD_EINVAL);
	cr_expect_str_eq(err.text, "--set cluster.nodes: 'nodes' has no effect beside 'sweep', set 'sweep.nodes' or "
				   "give --sweep nodes=VALUES");
}

Test(scenario, a_calibration_has_workers_and_their_bandwidth_or_neither)
{
	expect_error(1, "calibration: {workers: 2}", "1:15: 'workers' needs 'bandwidth' beside it");
	expect_error(1, "calibration: {spread: 7%, bandwidth: 1Gbps}", "1:27: 'bandwidth' needs 'workers' beside it");
}

Test(scenario, wrong_keys_are_named)
{
	expect_error(1, "titel: a", "1:1: unknown key 'titel' in 'scenario', did you mean 'title'?");
	expect_error(1, "nodes: 8",
		     "1:1: unknown key 'nodes' in 'scenario', did you mean 'cluster.nodes' or "
		     "'cluster.machine.nodes' or 'sweep.nodes'?");
	expect_error(1, "cluster.nodes: 8",
		     "1:1: unknown key 'cluster.nodes' in 'scenario', must be written as 'nodes' in 'cluster'");
	expect_error(1, "cluster.network.latency: 1us",
		     "1:1: unknown key 'cluster.network.latency' in 'scenario', must be written as 'latency' in "
		     "'cluster.network'");
	expect_error(1, "model: {}", "2:1: key 'model' is already in line 1");
	expect_error(6, "  network: {bandwith: 40Gbps, latency: 30us}",
		     "6:13: unknown key 'bandwith' in 'network', did you mean 'bandwidth'?");
	expect_error(
		6, "  fuse: 1MiB",
		"6:3: unknown key 'fuse' in 'cluster', did you mean 'sweep.fuse' or 'systems.N.fuse' (N: number or "
		"name of the entry)?");
	expect_error(1, "sweep: {nodes: 1, 2}",
		     "1:19: 'sweep' has no key '2': several values need brackets, as in [1, 2]");
	expect_error(8, "  - {name: A, sink: ps}", "8:15: unknown key 'sink' in 'systems', did you mean 'sync'?");
}

/* Behind the line that asks for a replay. */
#define REPLAY "compute: {device: titan-x, replay: true}\n"

Test(scenario, a_replay_is_neither_slower_nor_smaller_unless_asked)
{
	struct psd_scenario computed = read_with(NONE, ""),
			    plain = read_with(3, "compute: {device: titan-x, replay: true}"),
			    refused = read_with(3, "compute: {device: titan-x, replay: false}");

	cr_expect_not(computed.has_replay);
	cr_expect_not(refused.has_replay);
	cr_expect(plain.has_replay);
	cr_expect_eq(plain.replay.dilation_ratio, 1);
	cr_expect_eq(plain.replay.payload_ratio, 1);
	cr_expect_not(plain.replay.finds_dilation);
	psd_scenario_release(&computed);
	psd_scenario_release(&plain);
	psd_scenario_release(&refused);
}

Test(scenario, a_replay_says_how_slow_and_how_small)
{
	struct psd_scenario slow = read_with(3, REPLAY "emulation: {dilation: 2.5, payload_scale: 25%}"),
			    found = read_with(3, REPLAY "emulation: {dilation: auto}");

	cr_expect_eq(slow.replay.dilation_ratio, 2.5);
	cr_expect_eq(slow.replay.payload_ratio, 0.25);
	cr_expect(found.replay.finds_dilation);
	cr_expect_eq(found.replay.payload_ratio, 1);
	psd_scenario_release(&slow);
	psd_scenario_release(&found);
}

/* One line is replaced by `line`: the printed scenario has the words, and reads back as the same. */
static void expect_reads_back(unsigned number, const char *line, const char *words)
{
	struct psd_text first = {.bytes = NULL}, second = {.bytes = NULL};
	struct psd_scenario scenario = read_with(number, line), again;
	struct psd_error err = {.text = ""};

	psd_scenario_add_text(&first, &scenario);
	cr_expect_not_null(strstr(first.bytes, words), "'%s' in\n%s", words, first.bytes);
	cr_assert_eq(psd_scenario_parse(&again, "b.yaml", first.bytes, first.length, NULL, &err), PSD_OK, "%s",
		     err.text);
	psd_scenario_add_text(&second, &again);
	cr_expect_str_eq(first.bytes, second.bytes);
	cr_expect_eq(again.has_replay, scenario.has_replay);
	psd_text_release(&first);
	psd_text_release(&second);
	psd_scenario_release(&scenario);
	psd_scenario_release(&again);
}

/* A system by this way to synchronise with more keys. */
static void expect_system_reads_back(const char *sync, const char *keys)
{
	char line[128];

	snprintf(line, sizeof(line), "  - {name: A, sync: %s, %s}", sync, keys);
	expect_reads_back(8, line, keys);
}

Test(scenario, a_replay_reads_back_as_printed)
{
	expect_reads_back(3, REPLAY, "replay: true");
	expect_reads_back(3, REPLAY "emulation: {dilation: 20, payload_scale: 0.0625}", "dilation: 20");
	expect_reads_back(3, REPLAY "emulation: {dilation: auto}", "dilation: auto");
}

/* 2.29GBps are 18.32Gbps, and 0.25 is 25%. */
Test(scenario, quantities_are_printed_as_they_were_written)
{
	static const char *const settings[] = {"sweep.bandwidth=1500Mbps", "cluster.host.transport=760 MBps",
					       "systems.0.slice=4096KiB", NULL};
	static const char *const lines[] = {"payload: 94%", "bandwidth: [1500Mbps]", "slice: 4096KiB",
					    "host: {copy: 2.29GBps, transport: 760 MBps,", "latency: 0.03ms"};
	struct psd_text text = {.bytes = NULL};
	struct psd_error err = {.text = ""};
	struct psd_scenario scenario;

	cr_assert_eq(parse(&scenario, 6,
			   "  network: {bandwidth: 40Gbps, latency: 0.03ms, payload: 94%}\n"
			   "  host: {copy: 2.29GBps}",
			   settings, &err),
		     PSD_OK, "%s", err.text);
	psd_scenario_add_text(&text, &scenario);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		cr_expect_not_null(strstr(text.bytes, lines[i]), "'%s' in\n%s", lines[i], text.bytes);
	psd_text_release(&text);
	psd_scenario_release(&scenario);
}

static unsigned occurrences(const char *text, const char *word)
{
	unsigned n = 0;

	while ((text = strstr(text, word))) {
		text += strlen(word);
		n++;
	}
	return n;
}

/* A and B have the cluster's host, which is printed there once; only C has another latency, beside the cluster's copy.
 * */
Test(scenario, a_host_that_is_the_clusters_is_printed_once)
{
	static const char *const settings[] = {"cluster.host.copy=1GBps", "cluster.host.latency=40us",
					       "cluster.stack=none", NULL};
	struct psd_text text = {.bytes = NULL};
	struct psd_error err = {.text = ""};
	struct psd_scenario scenario, again;

	cr_assert_eq(parse(&scenario, 8,
			   "  - {name: A, sync: ps}\n  - {name: B, sync: ring, host: {copy: 1GBps}}\n"
			   "  - {name: C, sync: ps, host: {latency: 70us}}",
			   settings, &err),
		     PSD_OK, "%s", err.text);
	psd_scenario_add_text(&text, &scenario);
	cr_expect_eq(occurrences(text.bytes, "  host: {"), 2, "%s", text.bytes);
	cr_assert_eq(psd_scenario_parse(&again, "b.yaml", text.bytes, text.length, NULL, &err), PSD_OK, "%s", err.text);
	for (unsigned s = 0; s < 3; s++) {
		cr_expect_eq(again.systems[s].host.copy_bps, 8e9);
		cr_expect_eq(again.systems[s].host.latency_sec, scenario.systems[s].host.latency_sec);
	}
	psd_text_release(&text);
	psd_scenario_release(&scenario);
	psd_scenario_release(&again);
}

Test(scenario, a_word_is_offered_beside_a_quantity)
{
	expect_setting_error("cluster.host.reduce=5GB",
			     "--set cluster.host.reduce: 'reduce' is '5GB', must be 'free' or a rate such as 40Gbps or "
			     "2.3GBps; did you mean 5GBps?");
	expect_setting_error("cluster.host.copy=, must be ",
			     "--set cluster.host.copy: 'copy' is ', must be ', must be 'free' or a rate such as 40Gbps "
			     "or 2.3GBps");
	expect_error(5, "  nodes: 8\n  host: {copy: [1]}",
		     "6:16: 'copy' is a list, must be 'free' or a rate such as 40Gbps or 2.3GBps");
	expect_error(5, "  groups: 2", "5:11: 'groups' is '2', must be a list such as [...]");
	expect_system_error("ring", "fuse: 0",
			    "33: 'fuse' is '0', must be 'auto' or a size such as 256KiB or 2MB, more than 0");
}

Test(scenario, only_a_replay_can_be_dilated)
{
	expect_error(MORE, "emulation: {dilation: 20}",
		     "9:1: 'emulation' has no effect where 'compute.replay' is 'false', only with true");
	expect_error(MORE, "emulation:\n  payload_scale: 0.5",
		     "9:1: 'emulation' has no effect where 'compute.replay' is 'false', only with true");
	expect_error(MORE, "emulation: {}",
		     "9:1: 'emulation' has no effect where 'compute.replay' is 'false', only with true");
	expect_error(3, REPLAY "emulation: {dilation: 0.5}",
		     "4:23: 'dilation' is '0.5', must be 'auto' or a number from 1 to 1000000");
	expect_error(3, REPLAY "emulation: {dilation: slow}",
		     "4:23: 'dilation' is 'slow', must be 'auto' or a number from 1 to 1000000");
	expect_error(3, REPLAY "emulation: {payload_scale: 2}",
		     "4:28: 'payload_scale' is '2', must be a ratio such as 0.15 or 15% from 1e-09 to 1");
	expect_error(3, REPLAY "emulation: {speed: 2}",
		     "4:13: unknown key 'speed' in 'emulation', known are dilation, payload_scale");
	expect_error(3, "compute: {device: titan-x, replay: 2}", "3:36: 'replay' is '2', must be true or false");
	expect_setting_error("emulation.dilation=20", "--set emulation.dilation: 'emulation' has no effect where "
						      "'compute.replay' is 'false', only with true");
}

Test(scenario, switches_inside_a_node_share_its_workers)
{
	static const char network[] = "  workers_per_node: 8\n  network: {bandwidth: 40Gbps, latency: 30us}\n";
	static const char platform[] = "  workers_per_node: 8\n  network: {platform: p.xml}\n";
	const struct {
		const char *before, *local, *expected;
	} rows[] = {
		{network, "  local: {bandwidth: 12GBps, between: 8GBps}",
		 "8:30: 'between' has no effect without 'switches'"},
		{network, "  local: {bandwidth: 12GBps, switches: 3}",
		 "8:40: 'switches' is 3, must divide the 8 workers of a node"},
		{network, "  local: {bandwidth: 12GBps, switches: 1}",
		 "8:40: 'switches' is '1', must be a whole number from 2 to 64"},
		{platform, "  local: {bandwidth: 12GBps, switches: 2}",
		 "8:30: 'switches' has no effect beside 'platform', whose file defines the links"},
	};

	for (unsigned i = 0; i < 4; i++) {
		char text[256];

		snprintf(text, sizeof(text), "%s%s", rows[i].before, rows[i].local);
		expect_error(6, text, rows[i].expected);
	}
}

/* ---- local steps ---- */

SCENARIO_TEST(scenario, local_steps_arrive_in_their_place,
	      read_with(8, "  - {name: A, sync: ps, local_sgd: {steps: 16, window: 100, gap: 5%}}\n"
			   "  - {name: B, sync: ring, wire: bf16, local_sgd: {steps: 10000}}\n"
			   "  - {name: C, sync: two-level-ps, local_sgd: {steps: 16, window: 16}}\n"
			   "  - {name: D}"))
{
	cr_expect(scenario.systems[0].is_local);
	cr_expect_eq(scenario.systems[0].local_sgd.steps, 16);
	cr_expect_eq(scenario.systems[0].local_sgd.window, 100);
	cr_expect_float_eq(scenario.systems[0].local_sgd.gap_ratio, 0.05, 1e-12);
	cr_expect_eq(scenario.systems[1].local_sgd.steps, 10000);
	cr_expect_eq(scenario.systems[1].local_sgd.window, 0, "the steps stay");
	cr_expect_eq(scenario.systems[1].local_sgd.gap_ratio, 0.0, "no bound");
	cr_expect(scenario.systems[2].is_local);
	cr_expect_not(scenario.systems[3].is_local);
}

Test(scenario, wrong_local_steps_are_named_with_their_place)
{
	expect_error(8, "  - {name: A, local_sgd: {}}", "8:26: 'local_sgd' needs 'steps'");
	expect_error(8, "  - {name: A, local_sgd: {window: 100}}", "8:26: 'local_sgd' needs 'steps'");
	expect_error(8, "  - {name: A, local_sgd: {steps: 0}}",
		     "8:34: 'steps' is '0', must be a whole number from 1 to 10000");
	expect_error(8, "  - {name: A, local_sgd: {steps: 10001}}",
		     "8:34: 'steps' is '10001', must be a whole number from 1 to 10000");
	expect_error(8, "  - {name: A, local_sgd: {steps: 4, window: 15}}",
		     "8:45: 'window' is '15', must be a whole number from 16 to 1000000000");
	expect_error(8, "  - {name: A, local_sgd: {steps: 40, window: 39}}",
		     "8:46: 'window' is '39', must be at least 'steps', 40");
	expect_error(8, "  - {name: A, sync: ring, local_sgd: {steps: 4, fragments: 5}}",
		     "8:60: 'fragments' is 5, must be at most 'steps', 4");
	expect_error(8, "  - {name: A, sync: ring, local_sgd: {steps: 4, window: 100, fragments: 2}}",
		     "8:49: 'window' cannot be used together with 'fragments', which needs constant 'steps'");
	expect_error(8, "  - {name: A, sync: ring, local_sgd: {steps: 4, delay: 4}}",
		     "8:56: 'delay' is 4, must be less than 'steps', 4");
	expect_error(8, "  - {name: A, sync: ring, local_sgd: {steps: 4, window: 100, delay: 2}}",
		     "8:49: 'window' cannot be used together with 'delay', which needs constant 'steps'");
	expect_error(8, "  - {name: A, sync: ring, low_rank: {rank: 2}, local_sgd: {steps: 4, delay: 2}}",
		     "8:70: 'delay' of system 'A' cannot be used together with 'low_rank': each exchange begins with "
		     "the factors of the last one");
	expect_error(8, "  - {name: A, sync: nccl, local_sgd: {steps: 4, delay: 2}}",
		     "8:49: 'delay' of system 'A' cannot be used together with 'sync: nccl': workers wait for a "
		     "library's all-reduce");
	expect_error(8, "  - {name: A, local_sgd: {steps: 4, gap: 5%}}", "8:37: 'gap' has no effect without 'window'");
	expect_error(
		8, "  - {name: A, local_sgd: {steps: 4, period: 2}}",
		"8:37: unknown key 'period' in 'local_sgd', known are steps, window, gap, fragments, delay, outer");
}

Test(scenario, local_steps_stand_beside_what_keeps_gradients_whole)
{
	static const char *const syncs[] = {"adam", "sacp"};

	for (unsigned s = 0; s < sizeof(syncs) / sizeof(syncs[0]); s++) {
		char line[128], expected[256];

		snprintf(line, sizeof(line), "  - {name: A, sync: %s, local_sgd: {steps: 4}}", syncs[s]);
		snprintf(expected, sizeof(expected),
			 "dir/a.yaml:8:%zu: 'local_sgd' has no effect where 'sync' is '%s', only with ",
			 strlen("  - {name: A, sync: , ") + strlen(syncs[s]) + 1, syncs[s]);
		struct psd_scenario scenario;
		struct psd_error err = {.text = "accepted"};

		cr_expect_eq(parse(&scenario, 8, line, NULL, &err), PSD_EINVAL, "%s", line);
		cr_expect_eq(strncmp(err.text, expected, strlen(expected)), 0, "%s, expected %s", err.text, expected);
	}
	expect_system_error(
		"hybrid", "local_sgd: {steps: 4}",
		"29: 'local_sgd' of system 'A' cannot be used together with a hybrid by bytes, which sends the "
		"factors of one iteration: must be 'rule: seconds'");
	expect_system_error(
		"ring", "sparse: {sparsity: 50%}, local_sgd: {steps: 4}",
		"52: 'local_sgd' of system 'A' cannot be used together with 'sparse': it holds back gradients of "
		"single iterations");
	expect_system_error(
		"ps", "wire: fp16, local_sgd: {steps: 4}",
		"37: 'local_sgd' of system 'A' cannot be used together with 'wire: fp16', must be fp32 or bf16: "
		"an overflow of a sum would lose many steps of a worker");
}

Test(scenario, local_steps_read_back_as_printed)
{
	static const char *const printed[] = {
		"local_sgd: {steps: 4, fragments: 1, delay: 0}",
		"local_sgd: {steps: 4, window: 100, fragments: 1, delay: 0}",
		"local_sgd: {steps: 4, window: 100, gap: 5%, fragments: 1, delay: 0}",
		"local_sgd: {steps: 4, fragments: 4, delay: 3, outer: {rate: 0.5, momentum: 0, nesterov: false}}",
	};

	for (unsigned i = 0; i < sizeof(printed) / sizeof(printed[0]); i++)
		expect_system_reads_back("ps", printed[i]);
}

static void expect_agreed(const char *system, const char *const lines[3])
{
	struct psd_text terms = {.bytes = NULL};
	struct psd_scenario scenario = read_with(8, system);

	psd_scenario_add_agreed(&terms, &scenario, &scenario.systems[0], NULL, 0);
	for (unsigned i = 0; i < 3; i++)
		cr_expect_not_null(strstr(terms.bytes, lines[i]), "'%s' in\n%s", lines[i], terms.bytes);
	psd_text_release(&terms);
	psd_scenario_release(&scenario);
}

/* Properties that all hosts must agree on before they train together. */
Test(scenario, local_steps_are_agreed)
{
	expect_agreed(
		"  - {name: A, sync: ps, local_sgd: {steps: 4, window: 100, gap: 5%}}",
		(const char *const[]){"local_sgd.steps: 4\n", "local_sgd.window: 100\n", "local_sgd.gap: 0.05\n"});
	expect_agreed("  - {name: A, sync: ps, local_sgd: {steps: 4}}",
		      (const char *const[]){"local_sgd.steps: 4\n", "local_sgd.window: -\n", "local_sgd.gap: -\n"});
}

/* ---- compression ---- */

SCENARIO_TEST(scenario, compression_arrives_in_its_place,
	      read_with(8, "  - {name: A, sync: ps, compress: {by: top-k, block: 32768, kept: "
			   "5%, tensors: matrices, momentum: before}}\n"
			   "  - {name: B, sync: ps, compress: {by: one-bit}}\n"
			   "  - {name: C, sync: ps, compress: {by: top-k}}\n"
			   "  - {name: D, sync: ps}"))
{
	cr_expect(scenario.systems[0].is_compressed);
	cr_expect_str_eq(psd_compression_names[scenario.systems[0].compress.by], "top-k");
	cr_expect_eq(scenario.systems[0].compress.block_elements, 32768);
	cr_expect_float_eq(scenario.systems[0].compress.kept_ratio, 0.05, 1e-12);
	cr_expect_eq(scenario.systems[0].compress.tensors, PSD_COMPRESSED_MATRICES);
	cr_expect_eq(scenario.systems[0].compress.momentum, PSD_MOMENTUM_BEFORE);
	cr_expect_eq(scenario.systems[1].compress.momentum, PSD_MOMENTUM_AFTER);
	cr_expect(scenario.systems[1].is_compressed);
	cr_expect_str_eq(psd_compression_names[scenario.systems[1].compress.by], "one-bit");
	for (unsigned s = 1; s <= 2; s++) {
		cr_expect_eq(scenario.systems[s].compress.block_elements, 1024);
		cr_expect_eq(scenario.systems[s].compress.tensors, PSD_COMPRESSED_ALL);
	}
	cr_expect_float_eq(scenario.systems[2].compress.kept_ratio, 0.01, 1e-12);
	cr_expect_not(scenario.systems[3].is_compressed);
}

Test(scenario, wrong_compression_is_named_with_its_place)
{
	static const struct {
		const char *keys, *expected;
	} rows[] = {
		{"{}", "35: 'compress' needs 'by'"},
		{"{block: 2048}", "35: 'compress' needs 'by'"},
		{"top-k",
		 "35: 'compress' is plain text, must be a mapping of keys: by, block, kept, tensors, momentum"},
		{"{by: 1-bit}", "40: 'by' is '1-bit', must be one of: one-bit, top-k, int8"},
		{"{by: one-bit, block: 0}", "56: 'block' is '0', must be a whole number from 1024 to 32768"},
		{"{by: one-bit, block: 512}", "56: 'block' is '512', must be a whole number from 1024 to 32768"},
		{"{by: one-bit, block: 33792}", "56: 'block' is '33792', must be a whole number from 1024 to 32768"},
		{"{by: one-bit, block: 1025}", "56: 'block' is '1025', must be a multiple of 1024"},
		{"{by: top-k, block: 32767}", "54: 'block' is '32767', must be a multiple of 1024"},
		{"{by: one-bit, kept: 1%}", "49: 'kept' has no effect where 'by' is 'one-bit', only with top-k"},
		{"{by: top-k, kept: 0}", "53: 'kept' is '0', must be a ratio such as 0.15 or 15% from 1e-05 to 1"},
		{"{by: top-k, kept: 101%}",
		 "53: 'kept' is '101%', must be a ratio such as 0.15 or 15% from 1e-05 to 1"},
		{"{by: top-k, tensors: biases}", "56: 'tensors' is 'biases', must be one of: all, matrices"},
		{"{by: top-k, chunk: 4}",
		 "47: unknown key 'chunk' in 'compress', known are by, block, kept, tensors, momentum"},
	};

	for (unsigned r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		char keys[128];

		snprintf(keys, sizeof(keys), "compress: %s", rows[r].keys);
		expect_system_error("ps", keys, rows[r].expected);
	}
}

/* A hybrid by default, and every other. */
Test(scenario, compression_is_of_parameter_servers)
{
	for (unsigned s = PSD_SYNC_PS + 1; psd_sync_names[s]; s++)
		expect_no_effect(psd_sync_names[s], "compress", "compress: {by: one-bit}", "ps");
	expect_error(8, "  - {name: A, compress: {by: one-bit}}",
		     "8:15: 'compress' has no effect where 'sync' is 'hybrid', only with ps");
}

SCENARIO_TEST(scenario, compression_stands_beside_what_says_when,
	      read_with(8, "  - {name: A, sync: ps, compress: {by: one-bit}, local_sgd: {steps: 4}, servers: 2, "
			   "barrier: layer, priority: forward, schedule: sequential}"))
{
	cr_expect(scenario.systems[0].is_compressed && scenario.systems[0].is_local);
}

TEST_ROW(scenario, momentum_comes_before_compression_or_with_local_steps,
	 expect_system_error(
		 "ps", "local_sgd: {steps: 4}, compress: {by: top-k, momentum: before}",
		 "70: 'momentum: before' of system 'A' cannot be used together with 'local_sgd', whose steps have a "
		 "momentum of their own"))

Test(scenario, compression_reads_back_as_printed)
{
	static const char *const printed[] = {
		"compress: {by: one-bit, block: 1024, tensors: all, momentum: after}",
		"compress: {by: one-bit, block: 32768, tensors: matrices, momentum: before}",
		"compress: {by: top-k, block: 2048, kept: 0.1%, tensors: all, momentum: before}",
		"compress: {by: top-k, block: 1024, kept: 100%, tensors: matrices, momentum: after}",
	};

	for (unsigned i = 0; i < sizeof(printed) / sizeof(printed[0]); i++)
		expect_system_reads_back("ps", printed[i]);
}

Test(scenario, settings_reach_into_compression)
{
	const char *const settings[] = {"systems.0.compress.by=top-k", "systems.0.compress.kept=2%", NULL};
	struct psd_scenario scenario = read_set(NONE, "", settings);

	cr_expect(scenario.systems[0].is_compressed);
	cr_expect_float_eq(scenario.systems[0].compress.kept_ratio, 0.02, 1e-12);
	psd_scenario_release(&scenario);
}

Test(scenario, compression_is_agreed)
{
	expect_agreed("  - {name: A, sync: ps, compress: {by: top-k, block: 2048, kept: 5%, tensors: matrices}}",
		      (const char *const[]){"compress.block: 2048\n", "compress.kept: 0.05\n",
					    "compress.tensors: matrices\n"});
	expect_agreed("  - {name: A, sync: ps, compress: {by: one-bit}}",
		      (const char *const[]){"compress.by: one-bit\n", "compress.block: 1024\n", "compress.kept: -\n"});
}

/* ---- budget ---- */

SCENARIO_TEST(scenario, a_budget_is_of_its_system,
	      read_with(8, "  - {name: A, sync: ring, budget: 40Mbps}\n"
			   "  - {name: B, sync: ps}"))
{
	cr_expect_eq(scenario.systems[0].budget_bps, 40e6);
	cr_expect_eq(scenario.systems[1].budget_bps, 0.0, "the links' rate");
}

/* network: line 6 */
static void expect_budget_error(const char *network, const char *expected)
{
	const char *const settings[] = {"systems.0.budget=40Mbps", NULL};
	struct psd_scenario scenario;
	struct psd_error err = {.text = "accepted"};
	char text[256];

	snprintf(text, sizeof(text), "--set systems.0.budget: %s", expected);
	cr_expect_eq(parse(&scenario, 6, network, settings, &err), PSD_EINVAL, "%s", network);
	cr_expect_str_eq(err.text, text);
}

Test(scenario, wrong_budgets_are_named_with_their_place)
{
	expect_system_error("ring", "budget: 9Mbps", "35: 'budget' is '9Mbps', must be 10Mbps or more");
	expect_budget_error("  network: {bandwidth: 40Gbps, latency: 30us}\n  workers_per_node: 9",
			    "'budget' is '40Mbps', must be 45Mbps or more, 5Mbps for each worker of a node");
	expect_system_error("ring", "budget: 40", "35: 'budget' is '40', must be a rate such as 40Gbps or 2.3GBps");
	expect_budget_error("  network: {platform: p.xml}",
			    "'budget' of system 'A' has no effect with 'platform', whose file defines the links");
	expect_budget_error("  network: {bandwidth: 40Gbps, latency: 30us}\n"
			    "  background: [{from: 0, to: 1, bytes: 1MB}]",
			    "'budget' of system 'A' cannot be used together with 'background', whose traffic it "
			    "would limit, too");
}

Test(scenario, a_budget_is_agreed)
{
	expect_agreed("  - {name: A, sync: ring, budget: 40Mbps}", (const char *const[]){"budget: 40Mbps\n", "", ""});
}

/* ---- managed communication ---- */

SCENARIO_TEST(scenario, managed_communication_arrives_in_its_place,
	      read_with(8, "  - {name: A, sync: ring, managed: {clock: 4, early: 25%, priority: random, chunk: 500}}\n"
			   "  - {name: B, sync: torus, budget: 40Mbps, managed: {clock: 2}}\n"
			   "  - {name: C, sync: ring}"))
{
	const struct psd_system *one = &scenario.systems[0], *other = &scenario.systems[1];

	cr_expect(one->is_managed && !one->is_sparse && !one->finds_early);
	cr_expect_eq(one->managed.clock, 4);
	cr_expect_eq(one->managed.early_ratio, 0.25);
	cr_expect_eq(one->managed.importance, PSD_IMPORTANCE_RANDOM);
	cr_expect_eq(one->managed.chunk_elements, 500);
	cr_expect(other->is_managed && other->finds_early, "by the budget");
	cr_expect_eq(other->managed.importance, PSD_IMPORTANCE_MAGNITUDE);
	cr_expect_eq(other->managed.chunk_elements, 32000);
	cr_expect_not(scenario.systems[2].is_managed);
}

Test(scenario, wrong_managed_communication_is_named_with_its_place)
{
	expect_system_error("ring", "managed: {early: 25%}", "36: 'managed' needs 'clock'");
	expect_system_error("ring", "managed: {clock: 1}",
			    "44: 'clock' is '1', must be a whole number from 2 to 10000");
	expect_system_error("ring", "managed: {clock: 4}",
			    "27: 'managed' of system 'A' needs 'early', or 'budget' beside it");
	expect_system_error(
		"ring", "managed: {clock: 4, early: 5%}, sparse: {sparsity: 50%}",
		"27: 'managed' of system 'A' cannot be used together with 'sparse': each selects the chunks "
		"that travel");
	expect_system_error(
		"ring", "managed: {clock: 4, early: 5%}, wire: fp16",
		"27: 'managed' of system 'A' cannot be used together with 'wire: fp16', must be fp32 or bf16: "
		"an overflow of a sum would lose the gradients of several iterations");
	expect_system_error(
		"ring", "managed: {clock: 4, early: 5%}, local_sgd: {steps: 2}",
		"27: 'managed' of system 'A' cannot be used together with 'local_sgd', whose workers send no "
		"gradients");
	expect_no_effect("ps", "managed", "managed: {clock: 4, early: 5%}",
			 "ring, two-level, halving-doubling, recursive-doubling, double-tree, torus and auto");
}

Test(scenario, managed_communication_reads_back_as_printed)
{
	expect_system_reads_back("ring", "managed: {clock: 4, early: 25%, priority: forward, chunk: 32000}");
}

/* ---- low rank ---- */

SCENARIO_TEST(scenario, low_rank_arrives_in_its_place,
	      read_with(8, "  - {name: A, sync: ring, low_rank: {rank: 1}}\n"
			   "  - {name: B, sync: torus, low_rank: {rank: 64}}\n"
			   "  - {name: C, sync: ring}"))
{
	cr_expect(scenario.systems[0].is_low_rank);
	cr_expect_eq(scenario.systems[0].low_rank.rank, 1);
	cr_expect(scenario.systems[1].is_low_rank);
	cr_expect_eq(scenario.systems[1].low_rank.rank, 64);
	cr_expect_not(scenario.systems[2].is_low_rank);
}

Test(scenario, wrong_low_rank_is_named_with_its_place)
{
	static const struct {
		const char *keys, *expected;
	} rows[] = {
		{"{}", "37: 'low_rank' needs 'rank'"},
		{"2", "37: 'low_rank' is plain text, must be a mapping of keys: rank"},
		{"{rank: 0}", "44: 'rank' is '0', must be a whole number from 1 to 64"},
		{"{rank: 65}", "44: 'rank' is '65', must be a whole number from 1 to 64"},
		{"{rank: -1}", "44: 'rank' is '-1', must be a whole number from 1 to 64"},
		{"{rank: 1.5}", "44: 'rank' is '1.5', must be a whole number from 1 to 64"},
		{"{rank: 2, momentum: before}", "47: unknown key 'momentum' in 'low_rank', known are rank"},
	};

	for (unsigned r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		char keys[128];

		snprintf(keys, sizeof(keys), "low_rank: %s", rows[r].keys);
		expect_system_error("ring", keys, rows[r].expected);
	}
}

static bool is_own_all_reduce(unsigned sync)
{
	return sync >= PSD_SYNC_ALL_REDUCE && sync < PSD_SYNC_AUTO;
}

/* Not of auto, which has none of its own, nor of libraries. A hybrid by default. */
Test(scenario, low_rank_is_of_named_all_reduces)
{
	for (unsigned s = 0; psd_sync_names[s]; s++) {
		char line[128];

		if (!is_own_all_reduce(s)) {
			expect_no_effect(
				psd_sync_names[s], "low_rank", "low_rank: {rank: 2}",
				"ring, two-level, halving-doubling, recursive-doubling, double-tree and torus");
			continue;
		}
		snprintf(line, sizeof(line), "  - {name: A, sync: %s, low_rank: {rank: 2}}", psd_sync_names[s]);
		struct psd_scenario scenario = read_with(8, line);

		cr_expect(scenario.systems[0].is_low_rank, "%s", line);
		psd_scenario_release(&scenario);
	}
	expect_error(8, "  - {name: A, low_rank: {rank: 2}}",
		     "8:15: 'low_rank' has no effect where 'sync' is 'hybrid', only with ring, two-level, "
		     "halving-doubling, recursive-doubling, double-tree and torus");
}

Test(scenario, low_rank_does_not_stand_beside_what_also_says_what_travels)
{
	expect_system_error(
		"ring", "sparse: {sparsity: 50%}, low_rank: {rank: 2}",
		"52: 'low_rank' of system 'A' cannot be used together with 'sparse': each selects the part of a "
		"gradient that travels");
	expect_system_error(
		"ring", "low_rank: {rank: 2}, sparse: {sparsity: 50%}",
		"27: 'low_rank' of system 'A' cannot be used together with 'sparse': each selects the part of a "
		"gradient that travels");
	expect_system_error("ring", "low_rank: {rank: 2}, compress: {by: one-bit}",
			    "48: 'compress' has no effect where 'sync' is 'ring', only with ps");
}

SCENARIO_TEST(scenario, low_rank_stands_beside_what_says_when,
	      read_with(8, "  - {name: A, sync: ring, low_rank: {rank: 2}, local_sgd: {steps: 4}, fuse: auto, unit: "
			   "layer, barrier: layer, priority: forward, schedule: sequential}"))
{
	cr_expect(scenario.systems[0].is_low_rank && scenario.systems[0].is_local && scenario.systems[0].finds_fuse);
}

Test(scenario, low_rank_reads_back_as_printed)
{
	static const char *const printed[] = {"low_rank: {rank: 1}", "low_rank: {rank: 64}"};

	for (unsigned i = 0; i < sizeof(printed) / sizeof(printed[0]); i++)
		expect_system_reads_back("double-tree", printed[i]);
}

Test(scenario, settings_reach_into_low_rank)
{
	const char *const settings[] = {"systems.0.sync=ring", "systems.0.low_rank.rank=3", NULL};
	struct psd_scenario scenario = read_set(NONE, "", settings);

	cr_expect(scenario.systems[0].is_low_rank);
	cr_expect_eq(scenario.systems[0].low_rank.rank, 3);
	psd_scenario_release(&scenario);
}

Test(scenario, low_rank_is_agreed)
{
	expect_agreed("  - {name: A, sync: ring, low_rank: {rank: 3}}",
		      (const char *const[]){"systems.low_rank.rank: 3\n", "systems.sync: ring\n",
					    "systems.local_sgd.steps: -\n"});
	expect_agreed("  - {name: A, sync: ring}",
		      (const char *const[]){"systems.low_rank.rank: -\n", "systems.sync: ring\n",
					    "systems.local_sgd.steps: -\n"});
}

Test(scenario, staleness_is_of_servers_factors_and_own_all_reduces)
{
	static const char *const others[] = {"adam", "sacp", "mpi", "nccl", "nccl-two-level"};
	struct psd_scenario scenario = read_with(8, "  - {name: A, sync: ps, staleness: 16}\n"
						    "  - {name: B, staleness: 1}\n"
						    "  - {name: C, sync: auto}\n");

	cr_expect_eq(scenario.systems[0].staleness, 16);
	cr_expect_eq(scenario.systems[1].staleness, 1);
	cr_expect_eq(scenario.systems[2].staleness, 0);
	psd_scenario_release(&scenario);
	for (unsigned s = 0; s < sizeof(others) / sizeof(others[0]); s++) {
		expect_no_effect(others[s], "staleness", "staleness: 1",
				 "ps, two-level-ps, sfb, hybrid, ring, two-level, halving-doubling, "
				 "recursive-doubling, double-tree, torus and auto");
	}
	expect_error(8, "  - {name: A, staleness: 17}",
		     "8:26: 'staleness' is '17', must be a whole number from 0 to 16");
}

Test(scenario, reads_are_late_or_stale)
{
	struct psd_scenario scenario = read_with(8, "  - {name: A, sync: ps, staleness: 3, reads: stale}\n"
						    "  - {name: B, sync: ring, staleness: 1}\n"
						    "  - {name: C, sync: ring, reads: stale, staleness: 2, managed: "
						    "{clock: 4, early: 25%}}\n");

	cr_expect_eq(scenario.systems[0].reads, PSD_READS_STALE);
	cr_expect_eq(scenario.systems[1].reads, PSD_READS_LATE);
	cr_expect_eq(scenario.systems[2].reads, PSD_READS_STALE);
	psd_scenario_release(&scenario);
	expect_system_error("sfb", "staleness: 1, reads: stale",
			    "40: 'reads: stale' of system 'A' cannot be used together with 'sync: sfb': a worker has "
			    "no gradient of its own before factors arrive");
	expect_system_error(
		"hybrid", "reads: stale",
		"29: 'reads: stale' of system 'A' cannot be used together with 'sync: hybrid': a worker has "
		"no gradient of its own before factors arrive");
	expect_system_error(
		"ps", "reads: stale",
		"25: 'reads' of system 'A' is 'stale', needs 'staleness' beside it: 1 to 16 iterations, or 0 "
		"for synchronous training");
	expect_system_error(
		"ring", "reads: late, managed: {clock: 4, early: 25%}",
		"27: 'reads' of system 'A' is 'late', needs 'staleness' beside it: 1 to 16 iterations, or 0 "
		"for synchronous training");
	expect_system_error("ring", "reads: stale, local_sgd: {steps: 4, delay: 2}",
			    "27: 'reads: stale' of system 'A' cannot be used together with 'local_sgd', whose workers "
			    "send no gradients");
	expect_no_effect("mpi", "reads", "reads: stale",
			 "ps, two-level-ps, sfb, hybrid, ring, two-level, halving-doubling, recursive-doubling, "
			 "double-tree, torus and auto");
}

Test(scenario, asynchronous_servers_exclude_what_waits_for_all_workers)
{
	struct psd_scenario scenario = read_with(8, "  - {name: A, sync: ps, asynchronous: {}}\n"
						    "  - {name: B, sync: ps, asynchronous: {bound: 3}}\n");

	cr_expect(scenario.systems[0].is_async);
	cr_expect_eq(scenario.systems[0].async.bound, 1000);
	cr_expect_eq(scenario.systems[1].async.bound, 3);
	psd_scenario_release(&scenario);
	expect_system_error("ps", "asynchronous: {}, local_sgd: {steps: 2}",
			    "25: 'asynchronous' of system 'A' cannot be used together with 'local_sgd'");
	expect_system_error("ps", "asynchronous: {}, compress: {by: one-bit}",
			    "25: 'asynchronous' of system 'A' cannot be used together with 'compress'");
	expect_system_error("ps", "asynchronous: {}, staleness: 2",
			    "25: 'asynchronous' of system 'A' cannot be used together with 'staleness': its 'bound' "
			    "says how far workers may be apart");
	expect_system_error("ps", "asynchronous: {}, reads: stale",
			    "25: 'asynchronous' of system 'A' cannot be used together with 'reads: stale': its 'bound' "
			    "says how far workers may be apart");
	expect_system_error("ps", "asynchronous: {}, schedule: sequential",
			    "25: 'asynchronous' of system 'A' cannot be used together with 'schedule: sequential', "
			    "whose stages wait for all workers");
	expect_system_error("ps", "asynchronous: {}, placement: tensors",
			    "25: 'asynchronous' of system 'A' cannot be used together with 'placement: tensors'");
	expect_no_effect("ring", "asynchronous", "asynchronous: {}", "ps");
}

Test(scenario, accumulate_is_a_number_of_batches)
{
	struct psd_scenario scenario = read_with(8, "  - {name: A, accumulate: 1000}\n  - {name: B, sync: ring}\n");

	cr_expect_eq(psd_system_micro_batches(&scenario.systems[0]), 1000);
	cr_expect_eq(psd_system_micro_batches(&scenario.systems[1]), 1);
	psd_scenario_release(&scenario);
	expect_error(8, "  - {name: A, accumulate: 0}",
		     "8:27: 'accumulate' is '0', must be a whole number from 1 to 1000");
	expect_error(8, "  - {name: A, accumulate: 1001}",
		     "8:27: 'accumulate' is '1001', must be a whole number from 1 to 1000");
}

Test(scenario, staleness_does_not_stand_beside_what_an_iteration_leaves_for_the_next)
{
	expect_system_error("ring", "staleness: 1, sparse: {sparsity: 50%}",
			    "27: 'staleness' of system 'A' cannot be used together with 'sparse'");
	expect_system_error("ps", "compress: {by: one-bit}, staleness: 1",
			    "50: 'staleness' of system 'A' cannot be used together with 'compress'");
	expect_system_error("ring", "staleness: 1, low_rank: {rank: 2}",
			    "27: 'staleness' of system 'A' cannot be used together with 'low_rank'");
	expect_system_error("ring", "staleness: 1, managed: {clock: 4, early: 25%}",
			    "27: 'staleness' of system 'A' cannot be used together with 'managed', whose workers see "
			    "their withheld gradients at once: must have 'reads: stale'");
	expect_system_error("ring", "staleness: 1, local_sgd: {steps: 2}",
			    "27: 'staleness' of system 'A' cannot be used together with 'local_sgd'");
	expect_system_error(
		"ring", "staleness: 1, wire: fp16",
		"27: 'staleness' of system 'A' cannot be used together with 'wire: fp16', must be fp32 or bf16: "
		"each sum sets the loss scale of the next gradients");
}

Test(scenario, missing_keys_are_named)
{
	expect_error(2, "", "1:1: 'scenario' needs 'model'");
	expect_error(2, "model: {batch_per_worker: 32}", "2:8: 'model' needs 'graph'");
	expect_error(2, "model: {graph: m.yaml}", "2:8: 'model' needs 'batch_per_worker'");
	expect_error(3, "compute: {jitter: 5%}", "3:10: 'compute' needs 'profile' or 'device'");
	expect_error(5, "", "6:3: 'cluster' needs 'nodes', or 'sweep' must name them");
	expect_error(6, "", "5:3: 'cluster' needs 'network'");
	expect_error(6, "  network: {latency: 30us}", "6:12: 'network' needs 'bandwidth' where 'topology' is 'star'");
	expect_error(6, "  network: {bandwidth: 40Gbps}", "6:12: 'network' needs 'latency' where 'topology' is 'star'");
	expect_error(8, "  - {sync: ps}", "8:5: 'systems' needs 'name'");
	expect_error(8, "  []", "8:3: 'systems' has 0 entries, must have 1 to 32");
}

Test(scenario, sizes_of_inputs_have_any_name)
{
	static const char *const settings[] = {"model.input.input.1=3x8x8", "model.tied=[head, tail=body]", NULL};
	struct psd_scenario scenario =
		read_set(2, "model: {graph: x.onnx, batch_per_worker: 1, input: {\"data\": 4x6, rows: 5}}", settings);
	struct psd_text text = {.bytes = NULL};

	cr_assert_eq(scenario.choices.n_inputs, 3);
	cr_expect_str_eq(scenario.choices.inputs[0], "data=4x6");
	cr_expect_str_eq(scenario.choices.inputs[1], "rows=5");
	cr_expect_str_eq(scenario.choices.inputs[2], "input.1=3x8x8");
	cr_assert_eq(scenario.choices.n_tied, 2);
	cr_expect_str_eq(scenario.choices.tied[1], "tail=body");
	psd_scenario_add_text(&text, &scenario);
	cr_expect(strstr(text.bytes, "input: {\"data\": \"4x6\", \"rows\": \"5\", \"input.1\": \"3x8x8\"}"), "%s",
		  text.bytes);
	psd_text_release(&text);
	psd_scenario_release(&scenario);
	expect_error(2, "model: {graph: x.onnx, batch_per_worker: 1, input: 3}",
		     "2:52: 'input' must be a mapping such as {NAME: VALUE}");
	expect_error(2, "model: {graph: x.onnx, batch_per_worker: 1, input: {a: [3]}}",
		     "2:56: 'a' must be a plain value");
}

Test(scenario, wrong_values_are_quoted)
{
	expect_error(2, "model: {graph: m.yaml, batch_per_worker: 0}",
		     "2:42: 'batch_per_worker' is '0', must be a whole number from 1 to 1000000");
	expect_error(2, "model: {graph: m.yaml, batch_per_worker: 1, precision: fp8}",
		     "2:56: 'precision' is 'fp8', must be one of: fp32, mixed, tf32, bf16; did you mean fp32?");
	expect_error(2, "model: 4",
		     "2:8: 'model' is plain text, must be a mapping of keys: graph, sequence, "
		     "batch_per_worker, precision, recompute, input, tied, outputs");
	expect_error(3, "compute: {device: k41}",
		     "3:19: 'device' is 'k41', must be one of: k20, k40, k80, titan-x, m40, p100, p100-sxm2, "
		     "v100, v100-sxm2, a100, a100-80gb, h100, h200, l40s, rtx-3090, rtx-4090, cpu; did you mean k40?");
	expect_error(3, "compute: {device: k20, samples_per_sec: 0}",
		     "3:41: 'samples_per_sec' is '0', must be a number from 0.001 to 1000000000");
	expect_error(3, "compute: {device: k20, jitter: 101%}",
		     "3:32: 'jitter' is '101%', must be a ratio such as 0.15 or 15% from 0 to 1");
	expect_error(3, "compute: {profile: a.csv, device: k20}",
		     "3:11: 'profile' cannot be used together with 'device', must be one of them");
	expect_error(5, "  nodes: 65537", "5:10: 'nodes' is '65537', must be a whole number from 1 to 65536");
	expect_error(6, "  network: {bandwidth: 40, latency: 30us}",
		     "6:24: 'bandwidth' is '40', must be a rate such as 40Gbps or 2.3GBps");
	expect_error(6, "  network: {bandwidth: 40Gbps, latency: 30}",
		     "6:41: 'latency' is '30', must be a time such as 30us or 1.5ms");
	expect_error(8, "  - {name: A, host: {latency: 30}}",
		     "8:31: 'latency' is '30', must be a time such as 30us or 1.5ms");
	expect_error(8, "  - {name: A, host: {latency: -1us}}",
		     "8:31: 'latency' is '-1us', must be a time such as 30us or 1.5ms, 0s or more");
	expect_error(6, "  network: {bandwidth: 40Gbps, latency: 30us, payload: 101%}",
		     "6:56: 'payload' is '101%', must be a ratio such as 0.15 or 15% from 0.01 to 1");
	expect_error(
		6, "  network: {platform: p.xml, payload: 95%}",
		"6:30: 'payload' has no effect where 'topology' is 'platform', only with star, racks and fat-tree");
	expect_error(8, "  - {name: A, sync: pss}",
		     "8:21: 'sync' is 'pss', must be one of: ps, two-level-ps, sfb, two-level-sfb, adam, hybrid, sacp, "
		     "ring, two-level, halving-doubling, recursive-doubling, double-tree, torus, auto, zero-1, zero-2, "
		     "zero-3, fsdp, mpi, nccl, nccl-two-level; did you mean ps?");
	expect_system_error("mpi", "sparse: {sparsity: 0.5}",
			    "26: 'sparse' has no effect where 'sync' is 'mpi', only with ring, two-level, "
			    "halving-doubling, recursive-doubling, double-tree, torus and auto");
	expect_error(MORE, "fidelity: packet", "9:11: 'fidelity' is 'packet', must be one of: flow, message");
	expect_error(MORE, "sweep: {bandwidth: [1Gbps, 10Gbps]}\npublished: a.csv",
		     "10:1: 'published' cannot be used together with 'bandwidth' in 'sweep': its values are for one "
		     "bandwidth");
	expect_error(1, "title: =1+1",
		     "1:8: 'title' is '=1+1', must not begin with one of = + - @ nor be longer than 200 bytes");
	expect_system_error("ps", "stack: none, host: {incast: 5%}",
			    "5: 'incast' of system 'A' has no effect without 'transport', which it slows");
	expect_error(6, "  network: {platform: p.xml}\n  host: {transport: 1GBps}",
		     "9:5: 'transport' of system 'A' has no effect with 'platform', whose file defines the links");
	expect_error(MORE, "iterations: 0", "9:13: 'iterations' is '0', must be a whole number from 1 to 60000");
	expect_error(MORE, "seed: -1", "9:7: 'seed' is '-1', must be a whole number from 0 to 4294967295");
	expect_error(MORE, "baseline: B", "9:11: 'baseline' is 'B', must be the name of a system or 'compute'");
	expect_error(MORE, "sweep: {nodes: [1, 0]}", "9:20: 'entry' is '0', must be a whole number from 1 to 65536");
	expect_error(MORE, "sweep: {nodes: []}", "9:16: 'nodes' has 0 entries, must have 1 to 256");
	expect_error(MORE, "sweep: {fuse: [1MiB]}",
		     "9:9: 'fuse' in 'sweep' has no effect: no system names a size in 'fuse'");
	expect_error(MORE, "sweep: {nodes: [1], workers: [1]}",
		     "9:21: 'workers' cannot be used together with 'nodes', must be one of them");
}

Test(scenario, system_names_fit_into_csv_and_are_unique)
{
	expect_error(8, "  - {name: 'A,B'}",
		     "8:12: 'name' is 'A,B', must not contain commas, quotes or control characters");
	expect_error(8, "  - {name: \"A\\tB\"}",
		     "8:12: 'name' is 'A?B', must not contain commas, quotes or control characters");
	expect_error(8, "  - {name: ''}", "8:12: 'name' is empty, must be a text");
	expect_error(8, "  - {name: '  '}", "8:12: 'name' is '  ', must have more than blanks");
	expect_error(
		8, "  - {name: compute}",
		"8:12: 'name' is 'compute', must be another name: in 'baseline' it means a worker that only computes");
	expect_error(8, "  - {name: A}\n  - {name: A}", "9:12: 'name' is 'A', which the system in line 8 has already");
}

Test(scenario, keys_without_effect_are_refused)
{
	expect_system_error("ps", "rule: bytes",
			    "25: 'rule' has no effect where 'sync' is 'ps', only with hybrid and sacp");
	expect_system_error(
		"ring", "servers: 1",
		"27: 'servers' has no effect where 'sync' is 'ring', only with ps, two-level-ps, sfb, two-level-sfb, "
		"adam, hybrid and sacp");
	expect_system_error("ring", "pair: 1MB",
			    "27: 'pair' has no effect where 'sync' is 'ring', only with ps, two-level-ps, sfb, "
			    "two-level-sfb, adam, hybrid and sacp");
	expect_system_error("ring", "slice: 4MB",
			    "27: 'slice' has no effect where 'sync' is 'ring', only with ps, two-level-ps, sfb, "
			    "two-level-sfb, adam, hybrid and sacp");
	expect_error(8, "  - {name: A, slice: 1MB}", "8:22: 'slice' is '1MB', must be at least 'pair', 2000000 bytes");
	expect_error(6, "  network: {bandwidth: 1Gbps, latency: 0s, nodes_per_rack: 2}",
		     "6:44: 'nodes_per_rack' has no effect where 'topology' is 'star', only with racks and fat-tree");
	expect_error(
		6, "  network: {bandwidth: 1Gbps, latency: 0s}\n  servers_in: [0]",
		"7:3: 'servers_in' has no effect where 'network.topology' is 'star', only with racks and fat-tree");
	expect_error(6,
		     "  network: {bandwidth: 1Gbps, latency: 0s, topology: racks, nodes_per_rack: 2}\n"
		     "  servers_in: [0, 7]",
		     "7:19: 'servers_in' has rack 7, must be from 0 to 4: workers have 4 racks");
	expect_error(6, "  network: {bandwidth: 1Gbps, latency: 0s, topology: racks}",
		     "6:12: 'network' needs 'nodes_per_rack' where 'topology' is 'racks'");
	expect_error(6, "  network: {platform: x.xml, topology: star}",
		     "6:13: 'platform' has no effect where 'topology' is 'star', only with platform");
	expect_error(6, "  network: {topology: platform}",
		     "6:12: 'network' needs 'platform' where 'topology' is 'platform'");
	expect_error(6, "  network: {platform: x.xml}\nsweep: {bandwidth: [1Gbps]}",
		     "7:9: 'bandwidth' cannot be swept with 'platform', whose file defines the links");
}

Test(scenario, collective_classes_ascend_to_an_open_end)
{
	expect_error(8, "  - {name: A, host: {collective: [{call: 1us}, {call: 2us}]}}",
		     "8:35: 'collective' needs 'up_to', 'chunk' or 'workers' in each entry except the last");
	expect_error(8, "  - {name: A, host: {collective: [{up_to: 1KiB}]}}",
		     "8:35: the last entry of 'collective' has 'up_to', 'chunk' or 'workers', must have none of them");
	expect_error(8, "  - {name: A, host: {collective: [{up_to: 1KiB}, {up_to: 1KiB}, {}]}}",
		     "8:58: 'up_to' is '1KiB', must be more than in the entry before");
	expect_error(8, "  - {name: A, host: {collective: [{chunk: 1KiB}, {workers: 8}]}}",
		     "8:50: the last entry of 'collective' has 'up_to', 'chunk' or 'workers', must have none of them");
	expect_error(8, "  - {name: A, host: {collective: [{slowdown: 0.5}]}}",
		     "8:46: 'slowdown' is '0.5', must be a number from 1 to 1000");
}

Test(scenario, events_need_nodes_that_every_point_has)
{
	expect_error(6, "  network: {bandwidth: 1Gbps, latency: 0s}\n  slow: [{node: 8, compute: 50%}]",
		     "7:17: 'node' is 8, must be from 0 to 7: the cluster has 8 nodes");
	expect_error(4, "sweep: {nodes: [8, 2]}\ncluster:\n  background: [{from: 0, to: 2, bytes: 1MB}]",
		     "6:30: 'to' is 2, must be from 0 to 1: the smallest point of the sweep has 2 nodes");
	expect_error(4, "cluster:\n  background: [{from: 1, to: 1, bytes: 1MB}]",
		     "5:30: 'to' is 1, must be another node than 'from'");
	expect_error(4, "cluster:\n  background: [{from: 0, to: 1, bytes: 9kB}]",
		     "5:40: 'bytes' is '9kB', must be 10kB or more");
	expect_error(4, "cluster:\n  background: [{from: 0, to: 1, bytes: 1MB, period: 9us}]",
		     "5:53: 'period' is '9us', must be 10us or more; without it transfers follow one another");
	expect_error(4, "cluster:\n  slow: [{node: 1}]", "5:10: 'slow' needs 'compute' or 'link'");
	expect_error(4, "cluster:\n  slow: [{node: 1, link: 50%, from: 2s, until: 2s}]",
		     "5:48: 'until' is '2s', must be later than 'from'");
	expect_error(4, "cluster:\n  slow: [{node: 1, link: 0%}]",
		     "5:26: 'link' is '0%', must be a ratio such as 0.15 or 15% from 0.001 to 100");
}

Test(scenario, a_node_is_slow_by_one_entry_at_a_time)
{
	static const char *const accepted[] = {"{node: 1, compute: 50%}, {node: 2, compute: 50%}",
					       "{node: 1, compute: 50%}, {node: 1, link: 50%}",
					       "{node: 1, link: 50%, until: 1s}, {node: 1, link: 50%, from: 1s}",
					       "{node: 1, link: 50%, from: 2s}, {node: 1, link: 50%, until: 1s}"};

	expect_error(4, "cluster:\n  slow: [{node: 1, compute: 50%}, {node: 1, link: 10%, compute: 40%}]",
		     "5:65: 'compute' of node 1 is in two entries of 'slow' for the same time, must be in one");
	expect_error(4, "cluster:\n  slow: [{node: 1, link: 50%, until: 2s}, {node: 1, link: 50%, from: 1s}]",
		     "5:59: 'link' of node 1 is in two entries of 'slow' for the same time, must be in one");
	for (size_t i = 0; i < sizeof(accepted) / sizeof(accepted[0]); i++) {
		char line[256];

		snprintf(line, sizeof(line), "cluster:\n  slow: [%s]", accepted[i]);
		struct psd_scenario scenario = read_with(4, line);

		cr_expect_eq(scenario.n_slowdowns, 2);
		psd_scenario_release(&scenario);
	}
}

SCENARIO_TEST(scenario, a_slow_node_stays_slow_for_ever_unless_told,
	      read_with(4, "cluster:\n  slow: [{node: 7, link: 50%}]"))
{
	cr_expect_eq(scenario.slowdowns[0].from_sec, 0);
	cr_expect(isinf(scenario.slowdowns[0].until_sec));
	cr_expect_eq(scenario.slowdowns[0].compute_ratio, 1);
}

Test(scenario, a_missing_file_is_named)
{
	struct psd_scenario scenario;
	struct psd_error err = {.text = ""};

	cr_expect_eq(psd_scenario_load(&scenario, "no/such.yaml", NULL, &err), PSD_EFILE);
	cr_expect_str_eq(err.text, "no/such.yaml: cannot be opened: No such file or directory");
}

static bool has_system(const struct psd_scenario *scenario, const char *name)
{
	for (unsigned i = 0; i < scenario->n_systems; i++)
		if (!strcmp(scenario->systems[i].name, name))
			return true;
	return false;
}

static void expect_published_systems(const struct psd_scenario *scenario)
{
	struct psd_published published;
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_published_load(&published, scenario->published_path, &err), PSD_OK, "%s", err.text);
	for (unsigned i = 0; i < published.n_rows; i++)
		cr_expect(has_system(scenario, published.rows[i].system), "%s: the scenario has no system '%s'",
			  scenario->published_path, published.rows[i].system);
	psd_published_release(&published);
}

static void expect_complete(const char *path)
{
	struct psd_scenario scenario;
	struct psd_graph graph;
	struct psd_costs costs;
	struct psd_error err = {.text = ""};
	enum psd_status status;

	cr_assert_eq(psd_scenario_load(&scenario, path, NULL, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_graph_load_as(&graph, scenario.graph_path, &scenario.choices, &err), PSD_OK, "%s", err.text);
	status = scenario.profile_path
			 ? psd_costs_from_profile(&costs, &graph, scenario.profile_path, scenario.batch_per_worker,
						  scenario.samples_per_sec, &err)
			 : psd_costs_from_device(&costs, &graph, psd_device_find(scenario.device_name),
						 scenario.batch_per_worker, scenario.precision,
						 scenario.samples_per_sec, &err);
	cr_assert_eq(status, PSD_OK, "%s", err.text);
	if (scenario.published_path)
		expect_published_systems(&scenario);
	psd_costs_release(&costs);
	psd_graph_release(&graph);
	psd_scenario_release(&scenario);
}

Test(scenario, every_shipped_file_is_complete)
{
	unsigned n_scenarios = 0;
	glob_t found;

	cr_assert_eq(glob("scenarios/*.yaml", 0, NULL, &found), 0);
	cr_assert_eq(glob("scenarios/*/*.yaml", GLOB_APPEND, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		if (strstr(found.gl_pathv[i], "/models/"))
			continue;
		expect_complete(found.gl_pathv[i]);
		n_scenarios++;
	}
	cr_expect_gt(n_scenarios, 0);
	globfree(&found);
}
