/* Duties of `make compare` beside those of psd-sim, psd-run and psd-plot. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/cli_helper.h"
#include "tests/scratch_file.h"
#include "tests/scratch_folder.h"

#define HEAD "# batch: 8\n# gemm_flops_per_sec: "

/* Profiles of different sizes and one disturbed moment, which the median leaves out: 1, 5, 9 ms forward of a; 2, 3, 100
 * backward. */
Test(compare, profiles_are_merged_by_their_medians)
{
	struct scratch_file first = scratch_file_write(
				    HEAD "200.5GFLOPS\nlayer,forward_sec,backward_sec\na,0.009,0.002\nb,0.1,0\n"),
			    second = scratch_file_write(
				    HEAD "100.25GFLOPS\nlayer,forward_sec,backward_sec\na,0.001,0.1\nb,0.3,0\n"),
			    third = scratch_file_write(
				    HEAD "150GFLOPS\nlayer,forward_sec,backward_sec\nb,0.2,0\na,0.005,0.003\n");
	char command[512];
	struct run merged;

	snprintf(command, sizeof(command), "tests/merge-profiles.sh %s %s %s", first.path, second.path, third.path);
	merged = run_command(command);
	cr_expect_eq(merged.exit_status, 0);
	cr_expect_str_eq(
		merged.text,
		HEAD "150.000GFLOPS\nlayer,forward_sec,backward_sec\na,0.0050000,0.0030000\nb,0.2000000,0.0000000\n");
	free(merged.text);
	/* mean of two */
	snprintf(command, sizeof(command), "tests/merge-profiles.sh %s %s", first.path, second.path);
	merged = run_command(command);
	cr_expect_eq(merged.exit_status, 0);
	cr_expect_str_eq(
		merged.text,
		HEAD "150.375GFLOPS\nlayer,forward_sec,backward_sec\na,0.0050000,0.0510000\nb,0.2000000,0.0000000\n");
	free(merged.text);
	remove(first.path);
	remove(second.path);
	remove(third.path);
}

/* One line that has these words, nothing else, and status 2. */
static void expect_refused(const char *arguments, const char *words)
{
	char command[512];
	struct run run;

	snprintf(command, sizeof(command), "tests/merge-profiles.sh %s 2>&1", arguments);
	run = run_command(command);
	cr_expect_eq(run.exit_status, 2, "%s: status %d", arguments, run.exit_status);
	cr_expect_not_null(strstr(run.text, words), "%s: %s", arguments, run.text);
	cr_expect(*run.text && strchr(run.text, '\n') == run.text + strlen(run.text) - 1, "%s: %s", arguments,
		  run.text);
	free(run.text);
}

Test(compare, profiles_of_different_models_are_not_merged)
{
	struct scratch_file both = scratch_file_write("layer,forward_sec,backward_sec\na,1,2\nb,1,2\n"),
			    one = scratch_file_write("layer,forward_sec,backward_sec\na,1,2\n"),
			    none = scratch_file_write("");
	char arguments[128];

	expect_refused("", "no profiles given");
	expect_refused("no-such-file", "no-such-file: missing or empty");
	expect_refused(none.path, "missing or empty");
	snprintf(arguments, sizeof(arguments), "%s %s", both.path, one.path);
	expect_refused(arguments, "layer b is missing in it");
	snprintf(arguments, sizeof(arguments), "%s %s", one.path, both.path);
	expect_refused(arguments, "layer b is twice in it, or not in all profiles");
	remove(both.path);
	remove(one.path);
	remove(none.path);
}

/* 8.4 and 7 ms for 8 are 50 and 125 thousandths away. */
Test(compare, a_drift_is_that_of_the_iteration)
{
	struct scratch_file before = scratch_file_write("system,iteration_sec,compute_sec\nPS,0.008,0.007\n"),
			    slower = scratch_file_write("scenario,iteration_sec,system\n\"one, two\",0.0084,PS\n"),
			    quicker = scratch_file_write("iteration_sec\n7e-3\n"),
			    none = scratch_file_write("system,iteration_sec\n"),
			    two = scratch_file_write("iteration_sec\n1\n2\n"),
			    other = scratch_file_write("system\nPS\n");
	const struct {
		const char *first, *second, *text;
		int exit_status;
	} cases[] = {
		{before.path, slower.path, "50\n", 0},
		{before.path, quicker.path, "125\n", 0},
		{before.path, before.path, "0\n", 0},
		{none.path, before.path, "must be one row with an iteration_sec above 0\n", 2},
		{before.path, two.path, "must be one row with an iteration_sec above 0\n", 2},
		{other.path, before.path, "must be one row with an iteration_sec above 0\n", 2},
	};
	char command[512];

	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct run run;

		snprintf(command, sizeof(command), "tests/result-drift.sh %s %s 2>&1", cases[c].first, cases[c].second);
		run = run_command(command);
		cr_expect_eq(run.exit_status, cases[c].exit_status, "case %zu: %d", c, run.exit_status);
		if (run.exit_status == 0)
			cr_expect_str_eq(run.text, cases[c].text);
		else
			cr_expect(strstr(run.text, cases[c].text) != NULL, "case %zu: %s", c, run.text);
		free(run.text);
	}
	remove(before.path);
	remove(slower.path);
	remove(quicker.path);
	remove(none.path);
	remove(two.path);
	remove(other.path);
}

/* 0.0300 s of which 0.02 s computed, 1.5 % of drift; layers of 2 ms and 3 ms. The second time the head stays. */
Test(compare, runs_are_recorded_below_the_constants_of_their_calibration)
{
	static const char head[] =
		"# date: 2026-11-23\n# machine: a, 2 cores\n# batch: 8\n# compute.jitter: 0.01\n"
		"# cluster.network.latency: 50us\n# cluster.local.bandwidth: 9GBps\n# cluster.host.reduce: 3Gbps\n"
		"# cluster.machine.cores: 2\n# cluster.machine.message: 9us\n"
		"nodes,bandwidth,system,iteration_sec,compute_sec,drift_ratio,reason,gemm,a.forward_us,a.backward_us\n",
			  row[] = "2,0.2Gbps,PS,0.03,0.02,0.015,,1.5GFLOPS,2000.0,3000.0\n";
	struct scratch_file
		calibrated = scratch_file_write(
			"# origin: psd-run, v1, 2026-11-23 20:21 UTC\n# machine: a, 2 cores\n"
			"model:\n  batch_per_worker: 8\ncompute:\n  jitter: 0.01\ncluster:\n  stack: none\n"
			"  network: {topology: star, bandwidth: 1Gbps, latency: 50us}\n"
			"  local: {bandwidth: 9GBps}\n  host: {reduce: 3Gbps}\n  machine: {cores: 2, message: 9us}\n"
			"systems:\n  - name: PS\n    host: {reduce: 4Gbps}\n"),
		result = scratch_file_write("scenario,system,nodes,bandwidth_bps,iteration_sec,compute_sec\n"
					    "one, two,PS,2,200000000,0.03,0.02\n"),
		profile = scratch_file_write(HEAD "1.5GFLOPS\nlayer,forward_sec,backward_sec\na,0.002,0.003\n"),
		record = scratch_file_write("");
	char command[512], expected[1024];
	struct run run;

	snprintf(command, sizeof(command), "for i in 1 2; do tests/record-run.sh %s %s %s 15 %s; done; cat %s",
		 calibrated.path, result.path, profile.path, record.path, record.path);
	snprintf(expected, sizeof(expected), "%s%s%s", head, row, row);
	run = run_command(command);
	cr_expect_eq(run.exit_status, 0);
	cr_expect_str_eq(run.text, expected, "%s", run.text);
	free(run.text);
	remove(calibrated.path);
	remove(result.path);
	remove(profile.path);
	remove(record.path);
}

/* Without what the caller's environment may have of it. */
#define COMPARE                                                                                                        \
	"env -u NODES -u BANDWIDTHS -u SYSTEMS -u ROUNDS -u ITERATIONS -u ATTEMPTS -u CALIBRATIONS -u CALIBRATED %s "  \
	"tests/compare.sh %s %s 2>&1"

/* COMMANDS go through the shell in that folder: what they print. */
static void expect_told(const struct scratch_folder *build, const char *commands, const char *text)
{
	char command[1024];
	struct run told;

	snprintf(command, sizeof(command), "cd %s && { %s; }", build->path, commands);
	told = run_command(command);
	cr_expect_str_eq(told.text, text, "%s: %s", commands, told.text);
	free(told.text);
}

static struct run compare(const struct scratch_folder *build, const char *environment, const char *scenarios)
{
	char command[512];

	snprintf(command, sizeof(command), COMPARE, environment, build->path, scenarios);
	return run_command(command);
}

/* Errors that can be found before the results of the last time, which took an hour, are removed. */
Test(compare, impossible_runs_are_refused_first)
{
	static const struct {
		const char *environment, *scenarios, *words;
	} cases[] = {
		{"", "mlp no-such", "no scenario 'no-such' in"},
		{"", "mlp mlp", "'SCENARIOS' has 'mlp' 2 times, must have it once"},
		{"ROUNDS=0", "mlp", "'ROUNDS' is '0', must be a whole number from 1 to 999"},
		{"ITERATIONS=many", "mlp", "'ITERATIONS' is 'many', must be"},
		{"CALIBRATIONS=-1", "mlp", "'CALIBRATIONS' is '-1', must be"},
		{"ATTEMPTS=1.5", "mlp", "'ATTEMPTS' is '1.5', must be"},
		{"NODES='2 x'", "mlp", "'NODES' is 'x', must be"},
		{"NODES='2 3 2'", "mlp", "'NODES' has '2' 2 times"},
		{"NODES='2 401'", "mlp", "'NODES' is '401', must be a whole number from 1 to 400"},
		{"ATTEMPTS=101", "mlp", "'ATTEMPTS' is '101', must be a whole number from 1 to 100"},
		{"BANDWIDTHS='1Gbps 1Gbps'", "mlp", "'BANDWIDTHS' has '1Gbps' 2 times"},
		{"BANDWIDTHS='1Gbps 2Gbps 1000Mbps'", "mlp", "'BANDWIDTHS' has '1Gbps' 2 times"},
		{"BANDWIDTHS='1Gbps fast'", "mlp", "'bandwidth' is 'fast', must be a rate such as"},
		{"SYSTEMS=Ring,Poseidon", "mlp",
		 "'SYSTEMS' has 'Poseidon', must have systems of scenarios/execute/mlp.yaml"},
		{"CALIBRATED=maybe", "mlp", "'CALIBRATED' is 'maybe', must be 'yes' (as the last time) or 'no'"},
		{"CALIBRATED=yes CALIBRATIONS=2", "mlp", "'CALIBRATIONS' is '2', must be 1"},
		{"CALIBRATED=yes", "mlp", "/mlp.yaml' is missing"},
		{"CALIBRATED=yes", "cifar10-quick", "/cifar10-quick-points.csv' is missing"},
		{"CALIBRATED=yes", "alexnet", "/alexnet.yaml' has no machine.message"},
	};
	const struct scratch_folder build = scratch_folder_make();

	char link[PATH_MAX + 16];

	snprintf(link, sizeof(link), "ln -s %s psd-sim", path_of("psd-sim").text);
	expect_told(&build, link, "");
	expect_told(&build,
		    "mkdir compare && cd compare && touch points.csv alexnet-points.csv cifar10-quick.yaml && "
		    "echo '# host.latency: 9 us' >alexnet.yaml",
		    "");
	for (unsigned c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct run run = compare(&build, cases[c].environment, cases[c].scenarios);

		cr_expect_eq(run.exit_status, 2, "%s: status %d", cases[c].words, run.exit_status);
		cr_expect_not_null(strstr(run.text, cases[c].words), "%s: %s", cases[c].words, run.text);
		cr_expect(*run.text && strchr(run.text, '\n') == run.text + strlen(run.text) - 1, "%s", run.text);
		free(run.text);
	}
	expect_told(&build, "ls compare", "alexnet-points.csv\nalexnet.yaml\ncifar10-quick.yaml\npoints.csv\n");
	scratch_folder_remove(&build);
}

/* Replaces the programs: the iteration of a run takes as many seconds as there were runs by then, and is predicted so
 * after it. */
#define STAND_IN                                                                                                       \
	"#!/bin/sh\n"                                                                                                  \
	"here=${0%/*}\n"                                                                                               \
	"case $* in\n"                                                                                                 \
	"--profile*) printf 'layer,forward_sec,backward_sec\\na,1,1\\n'; exit ;;\n"                                    \
	"calibrate*)\n"                                                                                                \
	"\tfor copy in \"$@\"; do :; done\n"                                                                           \
	"\tprintf 'graph: g\\nbatch_per_worker: 1\\n  workers_per_node: 1\\n' >\"$copy\"\n"                            \
	"\tprintf 'scenario\\nt\\n' >\"${copy%.yaml}-points.csv\"\n"                                                   \
	"\texit ;;\n"                                                                                                  \
	"esac\n"                                                                                                       \
	"case $0 in\n"                                                                                                 \
	"*psd-run) echo run >>$here/runs ;;\n"                                                                         \
	"esac\n"                                                                                                       \
	"printf 'executor,iteration_sec\\n%s,%d\\n' ${0##*/} $(wc -l <$here/runs)\n"

/* Two runs after each of two calibrations, each beside its own prediction; the third and the sixth run of all are for
 * the trace. Replays are not calibrated: they have two runs and one prediction of both. */
Test(compare, each_calibration_comes_before_runs_of_every_point_that_trains)
{
	const struct scratch_folder build = scratch_folder_make();
	struct scratch_file stand_in = scratch_file_write(STAND_IN);
	char commands[256];

	snprintf(commands, sizeof(commands),
		 "mkdir bench; for p in psd-run psd-sim bench/cpu; do cp %s $p; chmod +x $p; done", stand_in.path);
	expect_told(&build, commands, "");
	free(compare(&build, "CALIBRATIONS=2 ROUNDS=2 NODES=2 SYSTEMS=Ring", "mlp googlenet")
		     .text); /* psd-plot does without such results */
	expect_told(&build, "cd compare; for m in measured-*; do sed -n 2p $m; done; sed -n 2,5p predicted.csv",
		    "psd-run,1\npsd-run,2\npsd-run,4\npsd-run,5\npsd-sim,1\npsd-sim,2\npsd-sim,4\npsd-sim,5\n");
	expect_told(
		&build, "cd compare; grep -c psd- measured-* predicted.csv; grep -c t points.csv",
		"measured-001.csv:2\nmeasured-002.csv:2\nmeasured-003.csv:1\nmeasured-004.csv:1\npredicted.csv:5\n2\n");
	remove(stand_in.path);
	scratch_folder_remove(&build);
}
