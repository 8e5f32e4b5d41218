/* What `make compare` does beside psd-sim, psd-run and psd-plot. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/cli_helper.h"
#include "tests/scratch_file.h"

#define HEAD "# batch: 8\n# gemm_flops_per_sec: "

/* Profiles of different sizes and one disturbed moment, which the median leaves out: 1, 5, 9 ms forward of a; 2, 3, 100 backward. */
Test(compare, profiles_are_merged_by_their_medians)
{
	struct scratch_file first = scratch_file_write(HEAD
						       "200.5GFLOPS\nlayer,forward_sec,backward_sec\na,0.009,0.002\nb,0.1,0\n"),
			    second = scratch_file_write(HEAD
							"100.25GFLOPS\nlayer,forward_sec,backward_sec\na,0.001,0.1\nb,0.3,0\n"),
			    third = scratch_file_write(HEAD
						       "150GFLOPS\nlayer,forward_sec,backward_sec\nb,0.2,0\na,0.005,0.003\n");
	char command[512];
	struct run merged;

	snprintf(command, sizeof(command), "tests/merge-profiles.sh %s %s %s", first.path, second.path, third.path);
	merged = run_command(command);
	cr_expect_eq(merged.exit_status, 0);
	cr_expect_str_eq(merged.text,
			 HEAD "150.000GFLOPS\nlayer,forward_sec,backward_sec\na,0.0050000,0.0030000\nb,0.2000000,0.0000000\n");
	free(merged.text);
	/* of two the mean */
	snprintf(command, sizeof(command), "tests/merge-profiles.sh %s %s", first.path, second.path);
	merged = run_command(command);
	cr_expect_eq(merged.exit_status, 0);
	cr_expect_str_eq(merged.text,
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
	cr_expect(*run.text && strchr(run.text, '\n') == run.text + strlen(run.text) - 1, "%s: %s", arguments, run.text);
	free(run.text);
}

Test(compare, profiles_of_different_models_are_not_merged)
{
	struct scratch_file both = scratch_file_write("layer,forward_sec,backward_sec\na,1,2\nb,1,2\n"),
			    one = scratch_file_write("layer,forward_sec,backward_sec\na,1,2\n"), none = scratch_file_write("");
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
			    two = scratch_file_write("iteration_sec\n1\n2\n"), other = scratch_file_write("system\nPS\n");
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

/* Before anything of the last time is removed, which takes an hour to make again. */
Test(compare, what_cannot_be_run_is_refused_first)
{
	static const struct {
		const char *environment, *scenarios, *words;
	} cases[] = {
		{"", "mlp no-such", "no scenario 'no-such' in"},
		{"ROUNDS=0", "mlp", "ROUNDS='0': must be a whole number from 1"},
		{"ITERATIONS=many", "mlp", "ITERATIONS='many': must be"},
		{"CALIBRATIONS=-1", "mlp", "CALIBRATIONS='-1': must be"},
		{"ATTEMPTS=1.5", "mlp", "ATTEMPTS='1.5': must be"},
		{"CALIBRATED=maybe", "mlp", "CALIBRATED='maybe': must be yes (as the last time) or no"},
		{"CALIBRATED=yes", "mlp", "/mlp.yaml' is missing, a run without CALIBRATED=yes makes it"},
		{"CALIBRATED=yes", "alexnet", "/alexnet.yaml' has no host.wake, a run without"},
	};
	char build[] = "/tmp/psd-compare-XXXXXX", command[512];
	struct run run;

	cr_assert_not_null(mkdtemp(build));
	snprintf(command, sizeof(command),
		 "mkdir %s/compare && cd %s/compare && echo 'host: {reduce: 1Gbps}' >alexnet.yaml && touch points.csv", build,
		 build);
	cr_assert_eq(system(command), 0);
	for (unsigned c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		snprintf(command, sizeof(command), "%s tests/compare.sh %s %s 2>&1", cases[c].environment, build,
			 cases[c].scenarios);
		run = run_command(command);
		cr_expect_eq(run.exit_status, 2, "%s: status %d", cases[c].words, run.exit_status);
		cr_expect_not_null(strstr(run.text, cases[c].words), "%s: %s", cases[c].words, run.text);
		cr_expect(*run.text && strchr(run.text, '\n') == run.text + strlen(run.text) - 1, "%s", run.text);
		free(run.text);
	}
	snprintf(command, sizeof(command), "test -f %s/compare/points.csv && rm -r %s", build, build);
	cr_expect_eq(system(command), 0, "results of the last time are gone");
}
