/* psd-run as a command: statuses, one line for each mistake, and the files that it leaves: trace, log, packed images.
 */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "real/run_parts.h"
#include "tests/loaded_helper.h"
#include "tests/real/data/jpeg_helper.h"
#include "tests/real/folder_run.h"
#include "tests/real/tiny_model.h"

#define QUICKSTART "scenarios/quickstart.yaml"

static struct run run(const char *arguments, const char *redirections)
{
	return run_program("psd-run", arguments, redirections);
}

static void expect_complaint(const char *arguments, int exit_status, const char *words)
{
	expect_one_line("psd-run", arguments, exit_status, words);
}

/* Two workers, 8 samples each; an epoch is 4 iterations. */
static const char tiny_scenario[] =
	"title: tiny\nmodel: {graph: tiny.yaml, batch_per_worker: 8}\ncompute: {device: cpu}\n"
	"cluster: {stack: none, nodes: 2, network: {bandwidth: 1Gbps, latency: 50us}}\n"
	"systems:\n  - {name: PS, schedule: sequential, sync: ps}\n  - {name: Hybrid, schedule: wait-free, sync: sfb}\n"
	"train:\n  data: {kind: synthetic, training_samples: 64, test_samples: 32}\n  iterations: 10\n"
	"  learning_rate: {policy: fixed, base: 0.1}\n";

static struct scratch_folder make_tiny(void)
{
	const struct scratch_folder folder = scratch_folder_make();

	scratch_folder_write(&folder, "tiny.yaml", TINY_MODEL, strlen(TINY_MODEL));
	scratch_folder_write(&folder, "s.yaml", tiny_scenario, strlen(tiny_scenario));
	return folder;
}

/* psd-run in the folder. */
static struct folder_arguments emulated(const struct scratch_folder *folder, const char *options)
{
	struct folder_arguments arguments;

	snprintf(arguments.text, sizeof(arguments.text), "%s %s/s.yaml", scratch_folder_spell(folder, options).text,
		 folder->path);
	return arguments;
}

/* The same on loopback. */
static struct folder_arguments tiny(const struct scratch_folder *folder, const char *options)
{
	struct folder_arguments arguments = emulated(folder, options);

	strncat(arguments.text, " --no-emulation", sizeof(arguments.text) - strlen(arguments.text) - 1);
	return arguments;
}

static unsigned count(const char *text, const char *what)
{
	unsigned n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

/* ---- misuse ---- */

Test(run_cli, misuse_is_one_line_and_status_2)
{
	static const struct {
		const char *arguments, *words;
	} mistakes[] = {
		{"", "no SCENARIO.yaml is given, see psd-run --help"},
		{"--frobnicate " QUICKSTART, "unknown option '--frobnicate', see psd-run --help"},
		{QUICKSTART " " QUICKSTART, "is one too many, psd-run takes one SCENARIO.yaml"},
		{"--nodes 0 " QUICKSTART, "'--nodes' is '0', must be from 1 to 400"},
		{"--nodes two " QUICKSTART, "'--nodes' is 'two'"},
		{"--iterations 0 " QUICKSTART, "'--iterations' is '0', must be from 1"},
		{"--stall 5 " QUICKSTART, "'--stall' is '5', must be a time"},
		{"--stall 0s " QUICKSTART, "'--stall' is '0s', must be a time such as 30us or 1.5ms, more than 0"},
		{"--trace", "'--trace' needs a value"},
		{"--csv=1 " QUICKSTART, "'--csv' takes no value"},
		{"--dilation x " QUICKSTART, "--dilation: 'dilation' is 'x', must be 'auto' or a number from 1"},
		{"--rank 0 --rank 1 " QUICKSTART, "'--rank' is given twice, must be given once"},
		{"--iterations=2 --iterations=3 " QUICKSTART, "'--iterations' is given twice, must be given once"},
		{"--stall 1s --stall 2s " QUICKSTART, "'--stall' is given twice, must be given once"},
		{"--rank 0 " QUICKSTART, "'--rank' has no effect without '--hosts'"},
		{"--join-timeout 0s " QUICKSTART, "'--join-timeout' is '0s', must be a time such as 30us or 1.5ms"},
		{"--secret s " QUICKSTART, "'--secret' has no effect without '--hosts'"},
		{"--hosts h --nodes 2 " QUICKSTART,
		 "'--nodes' is for a cluster on this machine, must be left out with '--hosts'"},
		{"--hosts h --trace t " QUICKSTART,
		 "'--trace' is 't', must have '%r' for the rank with '--hosts': each host writes a file"},
		{"-o x " QUICKSTART,
		 "'-o' is an option of 'psd-run calibrate', not of 'psd-run', say --csv >FILE, see psd-run --help"},
		{"--attempts 1 " QUICKSTART, "'--attempts' is an option of 'psd-run calibrate', not of 'psd-run'"},
		{"pack", "'psd-run pack' needs '-o FILE', see psd-run pack --help"},
		{"pack -o b", "no FOLDER is given, see psd-run pack --help"},
		{"pack a b -o c", "'b' is one too many, psd-run pack takes one FOLDER"},
		{"pack a -o b --side 7", "'--side' is '7', must be from 8 to 4096"},
		{"weights -o b", "no MODEL.onnx is given, see psd-run weights --help"},
		{"weights a.onnx", "'psd-run weights' needs '-o FILE', see psd-run weights --help"},
		{"pack a -o b --frobnicate", "unknown option '--frobnicate', see psd-run pack --help"},
		{"plan " QUICKSTART, "psd-run has no command 'plan', say psd-sim plan\n"},
		{"plam",
		 "psd-run: 'plam' is neither a file nor a command; commands are calibrate, pack, weights, show, "
		 "see psd-run --help\n"},
		{"calibrate " QUICKSTART, "'psd-run calibrate' needs '-o FILE', see psd-run calibrate --help"},
		{"calibrate -o x.yaml", "no SCENARIO.yaml is given, see psd-run calibrate --help"},
		{"calibrate -o x --attempts 0 " QUICKSTART, "'--attempts' is '0', must be from 1 to 100"},
	};

	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++)
		expect_complaint(mistakes[i].arguments, 2, mistakes[i].words);
}

/* Each command, and the options that would have no effect with it. */
Test(run_cli, an_option_of_another_command_is_refused)
{
	static const struct {
		const char *command, *options[12];
	} others[] = {
		{"show " QUICKSTART,
		 {"--csv", "--trace=t", "--log=l", "--system=PS", "--nodes=2", "--iterations=2", "--hosts=h",
		  "--rank=0", "--join-timeout=9s", "--no-emulation", "--quiet"}},
		{"pack a -o b",
		 {"--csv", "--set=seed=1", "--nodes=2", "--stall=60s", "--no-emulation", "--dilation=2", "--attempts=1",
		  "--version"}},
		{"weights a -o b", {"--csv", "--resume", "--nodes=2", "--side=64", "--attempts=1"}},
		{"calibrate -o x " QUICKSTART,
		 {"--csv", "--trace=t", "--log=l", "--nodes=2", "--iterations=2", "--system=PS", "--dilation=2",
		  "--hosts=h", "--secret=s", "--side=64"}},
	};

	for (size_t c = 0; c < sizeof(others) / sizeof(others[0]); c++)
		for (const char *const *option = others[c].options; *option; option++) {
			char arguments[128], words[64];

			snprintf(arguments, sizeof(arguments), "%s %s", others[c].command, *option);
			snprintf(words, sizeof(words), "'%.*s' is an option of 'psd-run", (int)strcspn(*option, "="),
				 *option);
			expect_complaint(arguments, 2, words);
		}
}

Test(run_cli, a_scenario_that_cannot_run_is_refused_with_its_place)
{
	const struct scratch_folder folder = make_tiny();
	static const struct {
		const char *options, *words;
	} mistakes[] = {
		{"--quiet --system Nobody", "s.yaml: has no system 'Nobody', must be one of PS, Hybrid"},
		{"--quiet --trace /no/such/t.json", "/no/such/t.json: cannot be written: No such file"},
		{"--quiet --log /no/such/l.csv", "/no/such/l.csv: cannot be written: No such file"},
		{"--quiet --set model.precision=mixed",
		 "--set model.precision: 'model.precision' is 'mixed', used only by psd-sim: must be 'fp32' here"},
		{"--quiet --set model.graph=none.yaml", "none.yaml: cannot be opened"},
	};

	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++)
		expect_complaint(tiny(&folder, mistakes[i].options).text, 2, mistakes[i].words);
	scratch_folder_remove(&folder);
	expect_complaint("no-such-file.yaml", 2, "no-such-file.yaml: ");
	expect_complaint("scenarios/poseidon-2015/alexnet.yaml", 2, "alexnet.yaml: has no 'train'");
	/* two terabytes of activations */
	expect_complaint("--nodes 400 --set model.batch_per_worker=1024 scenarios/execute/alexnet.yaml", 2,
			 "alexnet.yaml: its processes take at least ");
	expect_complaint("pack /no/such -o /tmp/psd-never", 2, "/no/such: cannot be listed");
	expect_complaint(QUICKSTART " --set model.graph=models/predicted-only.yaml", 2,
			 "predicted-only.yaml: layer 'lstm' is of kind 'other' or a second input, which psd-run cannot "
			 "compute, as 2 in all: psd-sim predicts them, a replay waits for them\n");
	expect_complaint("weights /no/such.onnx -o /tmp/psd-never", 2, "/no/such.onnx: cannot be opened");
	expect_complaint("weights " QUICKSTART " -o /tmp/psd-never", 2,
			 "quickstart.yaml: the file is not an ONNX model");
	expect_complaint("weights tests/onnx/maps-dynamo.onnx -o /no/such/w", 2, "/no/such/w");
}

/* psd-sim takes any. */
FOLDER_TEST(run_cli, bandwidths_that_no_link_can_have_are_refused_with_their_place, make_tiny())
{
	expect_complaint(emulated(&folder, "--quiet --set cluster.network.bandwidth=99kbps").text, 2,
			 "--set cluster.network.bandwidth: 'bandwidth' is 99 kb/s, must be 100kbps to 400Gbps for "
			 "psd-run\n");
	expect_complaint(emulated(&folder, "--quiet --set sweep.bandwidth=401Gbps").text, 2,
			 "--set sweep.bandwidth: 'bandwidth' is 401 Gb/s, ");
}

/* The sweep begins with a single worker: --nodes 2 has full nodes all the same. */
Test(run_cli, nodes_are_full_beside_a_sweep_of_workers)
{
	struct psd_error err = {.text = ""};
	struct psd_point point;
	struct loaded loaded;

	loaded_open(&loaded, "model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 8}\n"
			     "compute: {device: cpu}\n"
			     "cluster: {stack: none, workers_per_node: 4, network: {bandwidth: 1Gbps, latency: 50us}}\n"
			     "systems: [{name: A, sync: ps}]\nsweep: {workers: [1, 8]}\n");
	cr_assert_eq(psd_run_choose_point(&loaded.scenario, 2, &point, &err), PSD_OK, "%s", err.text);
	cr_expect(point.nodes == 2 && point.workers == 8 && point.workers_per_node == 4);
	loaded_close(&loaded);
}

/* Where they are too few for an emulation, the CSV says so. Files of the process that tests are left out. */
FOLDER_TEST(run_cli, few_open_files_are_enough_for_loopback, make_tiny())
{
	for (unsigned limit = 12; limit <= 36; limit += 2) {
		char command[2 * PATH_MAX];
		struct run limited;

		snprintf(command, sizeof(command),
			 "exec 3<&- 4<&- 5<&- 6<&- 7<&- 8<&- 9<&-; ulimit -n %u; %s %s --quiet --csv --iterations 2 "
			 "--system PS 2>&1",
			 limit, path_of("psd-run").text, emulated(&folder, "").text);
		limited = run_command(command);
		cr_expect_eq(limited.exit_status, 0, "%u files: %s", limit, limited.text);
		cr_expect_eq(count(limited.text, "\n"), 2, "%u files: %s", limit, limited.text);
		if (limit == 12)
			cr_expect_eq(count(limited.text, "\ntiny,PS,real-cpu-paced,2,2,1000000000,"), 1, "%s",
				     limited.text);
		free(limited.text);
	}
}

FOLDER_TEST(run_cli, data_that_does_not_fit_is_one_line, make_tiny())
{
	static const char missing[] =
		"train:\n  data: {kind: idx, path: /no/such}\n  iterations: 1\n  learning_rate: {base: 1}\n";
	char text[sizeof(tiny_scenario) + sizeof(missing)];

	snprintf(text, sizeof(text), "%.*s%s", (int)(strstr(tiny_scenario, "train:") - tiny_scenario), tiny_scenario,
		 missing);
	scratch_folder_write(&folder, "s.yaml", text, strlen(text));
	expect_complaint(tiny(&folder, "").text, 2, "/no/such");
}

/* Before any process starts, so that line and column are known. */
FOLDER_TEST(run_cli, arithmetic_that_the_processor_has_not_is_refused_with_its_place, make_tiny())
{
	expect_complaint(tiny(&folder, "--quiet --set train.arithmetic=fp16").text, 2,
			 "--set train.arithmetic: 'arithmetic' is 'fp16', must be 'fp32' where 'cpu' computes\n");
	expect_complaint(tiny(&folder, "--quiet --set train.device=auto --set train.arithmetic=tf32").text, 2,
			 "--set train.arithmetic: 'arithmetic' is 'tf32', must be 'fp32' where 'cpu' computes\n");
}

/* 10 iterations of two layers: 10^9 takes every gradient out of fp16's range, 1024 none. */
FOLDER_TEST(run_cli, updates_that_are_left_out_are_reported, make_tiny())
{
	static const char options[] = "--quiet --system PS --set systems.0.wire=fp16 --set train.loss_scale=";
	char arguments[512];
	struct run beyond, within;

	snprintf(arguments, sizeof(arguments), "%s1e9", options);
	beyond = run(tiny(&folder, arguments).text, "2>&1");
	snprintf(arguments, sizeof(arguments), "%s1024", options);
	within = run(tiny(&folder, arguments).text, "2>&1");
	cr_expect(strstr(beyond.text, "\nnote: 'PS' left 20 of 20 updates out, whose gradients were beyond the range "
				      "of fp16 on their way: a smaller 'loss_scale' is needed, or 'dynamic'\n"),
		  "%s", beyond.text);
	cr_expect_eq(within.exit_status, 0, "%s", within.text);
	cr_expect_null(strstr(within.text, " updates out"), "%s", within.text);
	free(beyond.text);
	free(within.text);
}

Test(run_cli, help_and_version_go_to_stdout)
{
	struct run help = run("--help", "2>/dev/null"), version = run("--version", "2>/dev/null");

	cr_expect_eq(help.exit_status, 0);
	cr_expect_eq(strncmp(help.text, "usage: psd-run [OPTIONS] SCENARIO.yaml\n", 39), 0);
	cr_expect_not_null(strstr(help.text, "  --trace FILE "));
	cr_expect_eq(version.exit_status, 0);
	expect_version(version.text, "psd-run");
	free(help.text);
	free(version.text);
}

#define LOST "psd-run: /dev/full: cannot be written: No space left on device: lines from iteration 0 on are missing"

FOLDER_TEST(run_cli, output_that_cannot_be_written_is_a_failure, make_tiny())
{
	const struct folder_arguments training = tiny(&folder, "--quiet --iterations 1");
	const char *const arguments[] = {"--help", "--version", "show " QUICKSTART, training.text};

	for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++) {
		struct run full = run(arguments[i], "2>&1 >/dev/full"), closed = run(arguments[i], "2>&1 >&-");

		cr_expect_eq(full.exit_status, 1, "%s", arguments[i]);
		cr_expect_str_eq(full.text, "psd-run: cannot write to standard output: No space left on device\n");
		cr_expect_eq(closed.exit_status, 1, "%s", arguments[i]);
		cr_expect_str_eq(closed.text, "psd-run: cannot write to standard output: Bad file descriptor\n");
		free(full.text);
		free(closed.text);
	}

	struct run trace = run(tiny(&folder, "--quiet --csv --trace /dev/full").text, "2>&1 >/dev/null"),
		   log = run(tiny(&folder, "--quiet --csv --log /dev/full").text, "2>&1 >/dev/null");

	cr_expect_eq(trace.exit_status, 1);
	cr_expect_str_eq(trace.text, "psd-run: /dev/full: cannot be written: No space left on device\n");
	cr_expect_eq(log.exit_status, 0); /* a log is not worth a run */
	cr_expect_str_eq(log.text, LOST "; the run goes on\n" LOST "\n");
	free(trace.text);
	free(log.text);
}

/* ---- remains of a run ---- */

FOLDER_TEST(run_cli, csv_has_a_row_for_each_system, make_tiny())
{
	struct run csv = run(tiny(&folder, "--csv --quiet").text, "2>&1");

	cr_expect_eq(csv.exit_status, 0, "%s", csv.text);
	cr_expect_eq(strncmp(csv.text, "scenario,system,executor,nodes,", 31), 0);
	cr_expect_not_null(strstr(csv.text, "\ntiny,PS,real-cpu,2,2,,"), "%s", csv.text);
	cr_expect_not_null(strstr(csv.text, "\ntiny,Hybrid,real-cpu,2,2,,"), "%s", csv.text);
	cr_expect_eq(count(csv.text, "\n"), 3);
	free(csv.text);
}

FOLDER_TEST(run_cli, log_has_every_iteration_and_a_test_for_each_epoch, make_tiny())
{
	struct run done = run(tiny(&folder, "--quiet --log @/log.csv").text, "2>&1 >/dev/null");
	char *log = scratch_folder_read(&folder, "log.csv");
	unsigned n_tested = 0;

	cr_expect_eq(done.exit_status, 0);
	cr_expect_str_eq(done.text, "");
	cr_expect_eq(strncmp(log,
			     "system,iteration,epoch,loss,training_accuracy_ratio,elapsed_sec,test_accuracy_ratio\n",
			     84),
		     0);
	cr_expect_eq(count(log, "\n"), 1 + 2 * 10, "%s", log);
	cr_expect_eq(count(log, "\nPS,"), 10);
	/* 64 samples, 16 an iteration: epochs end with the iterations 3 and 7, and 9 is the last */
	for (const char *line = strchr(log, '\n') + 1; *line; line = strchr(line, '\n') + 1) {
		const char *end = strchr(line, '\n');
		const char *number = strchr(line, ',') + 1;
		const long iteration = strtol(number, NULL, 10);
		const double epoch = strtod(strchr(number, ',') + 1, NULL);
		const bool is_tested = end[-1] != ',';

		n_tested += is_tested;
		cr_expect_eq(epoch, (double)(iteration + 1) / 4, "%.*s", (int)(end - line), line);
		cr_expect_eq(is_tested, iteration == 3 || iteration == 7 || iteration == 9, "%.*s", (int)(end - line),
			     line);
	}
	cr_expect_eq(n_tested, 2 * 3);
	free(log);
	free(done.text);
}

FOLDER_TEST(run_cli, both_systems_log_the_same_training, make_tiny())
{
	struct run done =
		run(tiny(&folder, "--quiet --set train.test_every=0 --log @/log.csv").text, "2>&1 >/dev/null");
	char *log = scratch_folder_read(&folder, "log.csv");
	double first[10], sum = 0.0;
	unsigned i = 0;

	cr_expect_eq(done.exit_status, 0);
	for (const char *line = strchr(log, '\n') + 1; *line; line = strchr(line, '\n') + 1, i++) {
		const char *number = strchr(line, ',') + 1;
		const double loss = strtod(strchr(strchr(number, ',') + 1, ',') + 1, NULL);

		cr_expect_eq(*(strchr(line, '\n') - 1), ',', "tested though never asked to");
		if (i < 10)
			first[i] = loss;
		else
			cr_expect_float_eq(loss, first[i - 10], 1e-5 * first[i - 10]);
		sum += i < 10 ? loss : 0.0;
	}
	cr_expect_eq(i, 20);
	cr_expect_lt(first[9], 0.8 * first[0]);
	cr_expect_gt(sum, 0.0);
	free(log);
	free(done.text);
}

/* Loss and training accuracy of a line of the log. */
static void copy_loss(const char *line, char *loss, size_t room)
{
	const char *begin = strchr(strchr(strchr(line, ',') + 1, ',') + 1, ',') + 1;
	const char *end = strchr(strchr(begin, ',') + 1, ',');

	snprintf(loss, room, "%.*s", (int)(end - begin), begin);
}

FOLDER_TEST(run_cli, tests_between_iterations_do_not_change_the_training, make_tiny())
{
	static const char *const barriers[] = {"iteration", "layer"};

	for (unsigned b = 0; b < 2; b++) {
		char options[256];
		struct run done;
		char *tested, *untested;

		snprintf(options, sizeof(options),
			 "--quiet --system Hybrid --set systems.1.barrier=%s --set train.test_every=1 --log @/1.csv",
			 barriers[b]);
		done = run(tiny(&folder, options).text, "2>&1 >/dev/null");
		cr_assert_eq(done.exit_status, 0, "%s", done.text);
		free(done.text);
		snprintf(options, sizeof(options),
			 "--quiet --system Hybrid --set systems.1.barrier=%s --set train.test_every=0 --log @/2.csv",
			 barriers[b]);
		done = run(tiny(&folder, options).text, "2>&1 >/dev/null");
		cr_assert_eq(done.exit_status, 0, "%s", done.text);
		free(done.text);
		tested = scratch_folder_read(&folder, "1.csv");
		untested = scratch_folder_read(&folder, "2.csv");
		cr_expect_eq(count(tested, "\n"), 11);
		for (const char *one = strchr(tested, '\n') + 1, *other = strchr(untested, '\n') + 1; *one && *other;
		     one = strchr(one, '\n') + 1, other = strchr(other, '\n') + 1) {
			char one_loss[64], other_loss[64];

			copy_loss(one, one_loss, sizeof(one_loss));
			copy_loss(other, other_loss, sizeof(other_loss));
			cr_expect_str_eq(one_loss, other_loss, "barrier %s: %.20s", barriers[b], one);
		}
		free(tested);
		free(untested);
	}
}

FOLDER_TEST(run_cli, trace_shows_all_workers_from_zero_on, make_tiny())
{
	struct run done = run(tiny(&folder, "--trace @/t.json").text, "2>&1 >/dev/null");
	char *trace = scratch_folder_read(&folder, "t.json");

	cr_expect_eq(done.exit_status, 0);
	cr_expect_not_null(strstr(done.text, "psd-run: the trace is of Hybrid\n"), "%s", done.text);
	cr_expect_not_null(strstr(trace, "\"system\":\"Hybrid\",\"executor\":\"real-cpu\",\"nodes\":2,\"workers\":2,"
					 "\"bandwidth_bps\":1000000000,\"kinds\":\"forward backward "));
	cr_expect_str_eq(trace + strlen(trace) - 4, "\n]}\n");
	/* two workers, ten iterations, two layers: each is computed forwards and backwards, its factors go out and come
	 * in */
	cr_expect_eq(count(trace, "\"cat\":\"forward\""), 2 * 10 * 2);
	cr_expect_eq(count(trace, "\"cat\":\"backward\""), 2 * 10 * 2);
	cr_expect_eq(count(trace, "\"cat\":\"send\""), 2 * 10 * 2);
	cr_expect_eq(count(trace, "\"cat\":\"receive\""), 2 * 10 * 2);
	cr_expect_eq(count(trace, "\"ph\":\"X\",\"pid\":0,\"tid\":6,\"ts\""), 10 * 2);
	cr_expect_eq(count(trace, "\"cat\":\"message\",\"ph\":\"s\""), 2 * 10 * 2);
	cr_expect_eq(count(trace, "\"cat\":\"message\",\"ph\":\"f\""), 2 * 10 * 2);
	cr_expect_eq(count(trace, "\"ts\":0.000,"), 1);
	cr_expect_eq(count(trace, "\"ts\":-"), 0);
	cr_expect_eq(count(trace, "\"dur\":-"), 0);
	cr_expect_eq(scratch_folder_count(&folder), 3, "the network, the scenario and the trace");
	free(trace);
	free(done.text);
}

FOLDER_TEST(run_cli, a_trace_by_rank_has_all_iterations_of_each_worker, make_tiny())
{
	struct run done = run(tiny(&folder, "--quiet --trace @/%r.json").text, "2>&1 >/dev/null");

	cr_expect_eq(done.exit_status, 0, "%s", done.text);
	for (unsigned rank = 0; rank < 2; rank++) {
		char *trace = scratch_folder_read(&folder, rank ? "1.json" : "0.json");

		cr_expect_not_null(strstr(trace, rank ? "\"rank\": 1," : "\"rank\": 0,"));
		cr_expect_eq(count(trace, "\"name\":\"ProfilerStep#"), 10);
		cr_expect_eq(count(trace, "\"name\":\"ncclDevKernel_SendRecv\""), 2 * 10 * 2);
		free(trace);
	}
	free(done.text);
}

FOLDER_TEST(run_cli, a_failed_run_leaves_the_old_trace, make_tiny())
{
	struct run failed;
	char *trace;

	scratch_folder_write(&folder, "t.json", "old", 3);
	failed = run(tiny(&folder, "--quiet --trace @/t.json").text, "2>&1 >/dev/full");
	trace = scratch_folder_read(&folder, "t.json");
	cr_expect_eq(failed.exit_status, 1, "%s", failed.text);
	cr_expect_str_eq(trace, "old");
	cr_expect_eq(scratch_folder_count(&folder), 3, "the network, the scenario and the older trace");
	free(trace);
	free(failed.text);
}

/* A worker's factors of an iteration may come while those of the one before still wait for their latency to be over. */
FOLDER_TEST(run_cli, iterations_may_be_shorter_than_the_latency, make_tiny())
{
	const char *options = "--quiet --csv --system Hybrid --iterations 50 --set cluster.network.latency=2ms";
	struct run done = run(emulated(&folder, options).text, "2>&1");

	cr_expect_eq(done.exit_status, 0, "%s", done.text);
	cr_expect_eq(count(done.text, "\n"), 2, "%s", done.text);
	free(done.text);
}

FOLDER_TEST(run_cli, nobody_trains_on_at_rate_0, make_tiny())
{
	struct folder_arguments arguments = tiny(
		&folder, "--iterations 11 --set train.learning_rate.policy=poly --set train.learning_rate.power=1");

	expect_complaint(arguments.text, 2,
			 "the run has 11 iterations, 'poly' ends after 10: the rate is 0 from there on");
}

FOLDER_TEST(run_cli, a_system_that_its_optimiser_cannot_serve_is_refused_before_another_runs, make_tiny())
{
	expect_complaint(tiny(&folder, "--set train.optimiser.kind=lars --set train.optimiser.momentum=0.9 "
				       "--set systems.0.sync=ring --set systems.1.sync=ps")
				 .text,
			 2, "system 'Hybrid' updates parts of tensors, optimiser 'lars' needs whole ones");
}

/* 3 passes over 64 samples, 16 in an iteration. */
FOLDER_TEST(run_cli, poly_ends_with_the_epochs, make_tiny())
{
	static const char *const jobs[] = {"iterations: 12", "epochs: 3"};
	char text[sizeof(tiny_scenario) + 128], command[2 * PATH_MAX];
	struct run same;

	for (unsigned j = 0; j < 2; j++) {
		const char *end = strstr(tiny_scenario, "iterations: 10");
		struct run done;

		snprintf(text, sizeof(text), "%.*s%s\n  learning_rate: {policy: poly, power: 1, base: 0.1}\n",
			 (int)(end - tiny_scenario), tiny_scenario, jobs[j]);
		scratch_folder_write(&folder, "s.yaml", text, strlen(text));
		done = run(tiny(&folder, j ? "--quiet --system PS --log @/epochs" : "--quiet --system PS --log @/job")
				   .text,
			   "2>&1");
		cr_expect_eq(done.exit_status, 0, "%s", done.text);
		free(done.text);
	}
	expect_complaint(tiny(&folder, "--iterations 13").text, 2, "the run has 13 iterations, 'poly' ends after 12: ");
	snprintf(command, sizeof(command),
		 "cd %s && for f in job epochs; do cut -d, -f1-4 $f >$f-; done; cmp job- epochs- && wc -l <job-",
		 folder.path);
	same = run_command(command);
	cr_expect_eq(same.exit_status, 0, "%s", same.text);
	cr_expect_str_eq(same.text, "13\n");
	free(same.text);
}

/* psd-sim predicts it. */
FOLDER_TEST(run_cli, a_network_without_a_loss_is_neither_trained_nor_calibrated, make_tiny())
{
	static const char complaint[] = "open.prototxt', which has no loss for training: end it with a softmax-loss "
					"layer (Caffe: SoftmaxWithLoss)";
	static const char model[] =
		"layer { name: 'd' type: 'Input' top: 'd' input_param { shape { dim: [1, 16] } } }\n"
		"layer { name: 'fc' type: 'InnerProduct' bottom: 'd' top: 'fc' "
		"inner_product_param { num_output: 4 } }\n";
	char options[256];

	scratch_folder_write(&folder, "open.prototxt", model, strlen(model));
	snprintf(options, sizeof(options), "--set model.graph=%s/open.prototxt", folder.path);
	expect_complaint(tiny(&folder, options).text, 2, complaint);
	snprintf(options, sizeof(options), "calibrate -o %s/c.yaml --set model.graph=%s/open.prototxt", folder.path,
		 folder.path);
	expect_complaint(tiny(&folder, options).text, 2, complaint);
}

FOLDER_TEST(run_cli, a_snapshot_that_is_not_written_is_said, make_tiny())
{
	static const char solver[] = "base_lr: 0.1\nlr_policy: 'fixed'\nsnapshot: 5000\nsnapshot_prefix: 'x'\n";
	static const char scenario[] = "model: {graph: tiny.yaml, batch_per_worker: 8}\ncompute: {device: cpu}\n"
				       "cluster: {stack: none, nodes: 2, network: {bandwidth: 1Gbps, latency: "
				       "50us}}\nsystems: [{name: PS, sync: ps}]\n"
				       "train: {data: {kind: synthetic}, iterations: 1, solver: solver.prototxt}\n";
	struct run done;

	scratch_folder_write(&folder, "solver.prototxt", solver, strlen(solver));
	scratch_folder_write(&folder, "s.yaml", scenario, strlen(scenario));
	done = run(tiny(&folder, "").text, "2>&1 >/dev/null");
	cr_expect_eq(done.exit_status, 0);
	cr_expect_not_null(strstr(done.text, "solver.prototxt:3:1: 'snapshot' has no effect without --save\n"), "%s",
			   done.text);
	free(done.text);
}

FOLDER_TEST(run_cli, keys_without_effect_are_named, make_tiny())
{
	static const struct {
		const char *setting, *words;
	} unheeded[] = {
		{"cluster.host.copy=1GBps", "psd-sim and replays: 'cluster.host'\n"},
		{"cluster.host.transport=1GBps --set cluster.host.incast=10%", "psd-sim and replays: 'cluster.host'\n"},
		{"cluster.machine.cores=2 --set cluster.machine.message=1us", "psd-sim: 'cluster.machine'\n"},
		{"compute.jitter=5%", "psd-sim's simulation and replays: 'compute.jitter'\n"},
		{"compute.samples_per_sec=5", "psd-sim and replays: 'compute.samples_per_sec'\n"},
		{"cluster.network.payload=95%", "psd-sim and replays: 'cluster.network.payload'\n"},
		{"fidelity=message", "psd-sim's simulation: 'fidelity'\n"},
		{"baseline=PS", "psd-sim: 'baseline'\n"},
	};

	for (size_t i = 0; i < sizeof(unheeded) / sizeof(unheeded[0]); i++) {
		char options[256], line[256];
		struct run done;

		snprintf(options, sizeof(options), "--iterations 1 --set %s", unheeded[i].setting);
		snprintf(line, sizeof(line), "psd-run: used only by %s", unheeded[i].words);
		done = run(tiny(&folder, options).text, "2>&1 >/dev/null");
		cr_expect_eq(done.exit_status, 0);
		cr_expect_not_null(strstr(done.text, line), "%s: %s", unheeded[i].setting, done.text);
		free(done.text);
	}
}

/* On one core of those that the test may use. */
FOLDER_TEST(run_cli, more_threads_than_cores_are_told, make_tiny())
{
	static const char *const options[] = {"--iterations 1 --set train.threads=1",
					      "--iterations 1 --set train.threads=2",
					      "--quiet --iterations 1 --set train.threads=2"};
	cpu_set_t allowed, one;
	size_t core = 0;

	cr_assert_eq(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
	while (!CPU_ISSET(core, &allowed))
		core++;
	CPU_ZERO(&one);
	CPU_SET(core, &one);
	cr_assert_eq(sched_setaffinity(0, sizeof(one), &one), 0);
	for (size_t i = 0; i < 3; i++) {
		const struct run done = run(tiny(&folder, options[i]).text, "2>&1 >/dev/null");

		cr_expect_eq(done.exit_status, 0, "%s", done.text);
		cr_expect_eq(strstr(done.text, "psd-run: 'train.threads' is 2, but psd-run may use 1 processor core "
					       "here: threads wait for each other\n") != NULL,
			     i == 1, "%s: %s", options[i], done.text);
		free(done.text);
	}
}

FOLDER_TEST(run_cli, printed_scenario_reads_back_as_the_same, make_tiny())
{
	struct run first, second;

	first = run(emulated(&folder, "show").text, "2>&1");
	cr_expect_eq(first.exit_status, 0, "%s", first.text);
	cr_expect_not_null(strstr(first.text, "\ntrain:\n  data: {kind: synthetic, training_samples: 64,"), "%s",
			   first.text);
	scratch_folder_write(&folder, "s.yaml", first.text, strlen(first.text));
	second = run(emulated(&folder, "show --set model.graph=@/tiny.yaml").text, "2>&1");
	cr_expect_str_eq(second.text, first.text);
	free(first.text);
	free(second.text);
}

/* ---- calibration ---- */

/* The value behind a key of a printed scenario. */
static double number_after(const char *text, const char *key)
{
	const char *found = strstr(text, key);

	cr_assert_not_null(found, "no '%s' in\n%s", key, text);
	return strtod(found + strlen(key), NULL);
}

/* The training without messages is by servers, without buckets. */
FOLDER_TEST(run_cli, processes_of_mpirun_do_not_calibrate_side_by_side, make_tiny())
{
	setenv("OMPI_COMM_WORLD_RANK", "1", 1);
	setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
	setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "2", 1);
	expect_complaint(tiny(&folder, "calibrate --quiet -o @/c.yaml").text, 2,
			 "mpirun has started 2 processes, psd-run calibrate must be the only one\n");
}

FOLDER_TEST(run_cli, a_first_system_that_gathers_tensors_is_calibrated, make_tiny())
{
	const char *const sizes[] = {"auto", "1MiB"};
	char root[256], options[512];

	cr_assert(getcwd(root, sizeof(root)));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		snprintf(options, sizeof(options),
			 "calibrate --attempts 1 --quiet -o @/c.yaml --set model.graph=%s/tests/data/smooth.yaml "
			 "--set systems.0.sync=ring --set systems.0.fuse=%s",
			 root, sizes[i]);
		const struct run done = run(tiny(&folder, options).text, "2>&1");

		cr_expect_eq(done.exit_status, 0, "%s: %s", sizes[i], done.text);
		free(done.text);
	}
}

FOLDER_TEST(run_cli, a_calibration_is_a_scenario_to_predict_and_to_run, make_tiny())
{
	static const char options[] = "calibrate --attempts 1 --quiet -o @/c.yaml --set cluster.network.payload=90% "
				      "--set cluster.workers_per_node=2 --set train.optimiser.kind=adamw "
				      "--set calibration.workers=8 --set calibration.bandwidth=2Gbps";
	struct run done = run(tiny(&folder, options).text, "2>&1"), predicted, trained;
	char *calibrated, *profile, *points;
	char arguments[512];

	cr_assert_eq(done.exit_status, 0, "%s", done.text);
	cr_expect_not_null(strstr(done.text, "machine.bytes"), "%s", done.text);
	calibrated = scratch_folder_read(&folder, "c.yaml");
	profile = scratch_folder_read(&folder, "c-profile.csv");
	points = scratch_folder_read(&folder, "c-points.csv");
	cr_expect_not_null(strstr(calibrated, "  profile: \"c-profile.csv\"\n"), "%s", calibrated);
	cr_expect_gt(number_after(calibrated, "reduce: "), 0.0);
	cr_expect_gt(number_after(calibrated, "update: "), 0.0);
	cr_expect_gt(number_after(calibrated, ", bytes: "), 0.0);
	cr_expect_not_null(strstr(calibrated, "# machine.message: "), "%s", calibrated); /* which may be nothing */
	cr_expect_gt(number_after(calibrated, "iteration: "), 0.0);
	cr_expect_gt(number_after(calibrated, "machine: {cores: "), 0.0);
	cr_expect_gt(number_after(calibrated, "  local: {bandwidth: "), 0.0);
	/* keys of links, which this calibration did not have */
	cr_expect_null(strstr(calibrated, "workers: 8"), "%s", calibrated);
	cr_expect_null(strstr(calibrated, "bandwidth: 2Gbps"), "%s", calibrated);
	cr_expect_gt(number_after(calibrated, "\ncalibration:\n  spread: "), 0.0);
	cr_expect_not_null(strstr(calibrated, "payload: 1}"), "%s", calibrated);
	cr_expect_not_null(strstr(calibrated, "optimiser: {kind: adamw, "), "%s", calibrated);
	cr_expect_gt(number_after(profile, "\nfc1,"), 0.0);
	cr_expect_eq(count(points, "\n"), 2);
	cr_expect_not_null(strstr(points, "\ntiny,PS,real-idle,2,2,,"), "%s", points);
	snprintf(arguments, sizeof(arguments), "--csv %s/c.yaml", folder.path);
	predicted = run_program("psd-sim", arguments, "2>&1");
	cr_expect_eq(predicted.exit_status, 0, "%s", predicted.text);
	snprintf(arguments, sizeof(arguments), "--no-emulation --csv --quiet %s/c.yaml", folder.path);
	trained = run(arguments, "2>&1");
	cr_expect_eq(trained.exit_status, 0, "%s", trained.text);
	cr_expect_eq(count(trained.text, "\n"), 3, "%s", trained.text);
	free(calibrated);
	free(profile);
	free(points);
	free(predicted.text);
	free(trained.text);
	free(done.text);
}

FOLDER_TEST(run_cli, a_replay_is_not_calibrated, make_tiny())
{
	expect_complaint(
		tiny(&folder, "calibrate -o @/c.yaml --set compute.replay=true --set compute.device=p100").text, 2,
		"--set compute.replay: 'replay' is true, must be false or left out for psd-run calibrate, which "
		"measures real computation, as in 'compute: {device: cpu}'");
	cr_expect_eq(scratch_folder_count(&folder), 2, "the network and the scenario");
}

FOLDER_TEST(run_cli, a_calibration_that_cannot_be_written_is_one_line_before_it_measures, make_tiny())
{
	struct run failed = run(tiny(&folder, "calibrate -o /no/such/c.yaml").text, "2>&1");

	cr_expect_eq(failed.exit_status, 2);
	cr_expect_str_eq(failed.text, "/no/such/c.yaml: cannot be written: No such file or directory\n");
	free(failed.text);
}

/* ---- interruption ---- */

/* Starts psd-run with its standard error on *errors; `ignored`, if not 0, is a signal that its parent leaves ignored.
 */
static pid_t start_training(const struct scratch_folder *folder, const char *iterations, int ignored, FILE **errors)
{
	const struct program_path path = path_of("psd-run");
	const struct scratch_path scenario = scratch_folder_path(folder, "s.yaml"),
				  trace = scratch_folder_path(folder, "t.json");
	int ends[2];
	pid_t pid;

	cr_assert_eq(pipe(ends), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0) {
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		close(ends[1]);
		signal(SIGHUP, SIG_DFL); /* nohup may have started the tests */
		if (ignored)
			signal(ignored, SIG_IGN);
		cr_assert_not_null(freopen("/dev/null", "w", stdout));
		execl(path.text, "psd-run", "--no-emulation", "--iterations", iterations, "--trace", trace.text,
		      scenario.text, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	*errors = fdopen(ends[0], "r");
	cr_assert_not_null(*errors);
	return pid;
}

static void wait_for_first_iteration(FILE *errors)
{
	char line[512];

	while (fgets(line, sizeof(line), errors) && !strstr(line, ": iteration 1 of "))
		;
}

/* The pipe ends when the last process that could write to it is gone. */
static void expect_end(pid_t pid, FILE *errors, int exit_status, const char *last_line)
{
	char line[512], last[512] = "";
	int status;

	while (fgets(line, sizeof(line), errors))
		memcpy(last, line, sizeof(last));
	fclose(errors);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFEXITED(status));
	cr_expect_eq(WEXITSTATUS(status), exit_status, "%d: %s", WEXITSTATUS(status), last);
	cr_expect_not_null(strstr(last, last_line), "%s", last);
}

Test(run_cli, an_interrupt_ends_all_processes_in_one_line, .timeout = 120)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	const struct scratch_folder folder = make_tiny();

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		char words[128];
		FILE *errors;
		const pid_t pid = start_training(&folder, "1000000", 0, &errors);

		snprintf(words, sizeof(words), "psd-run: stopped by signal %d (%s)\n", signals[i],
			 strsignal(signals[i]));
		wait_for_first_iteration(errors);
		cr_assert_eq(kill(pid, signals[i]), 0);
		expect_end(pid, errors, 128 + signals[i], words);
		cr_expect_eq(scratch_folder_count(&folder), 2, "signal %d leaves the network and the scenario alone",
			     signals[i]);
	}
	scratch_folder_remove(&folder);
}

Test(run_cli, a_killed_run_leaves_the_older_trace_alone, .timeout = 60)
{
	const struct scratch_folder folder = make_tiny();
	FILE *errors;
	char line[512], *trace;
	pid_t pid;

	scratch_folder_write(&folder, "t.json", "older", 5);
	pid = start_training(&folder, "1000000", 0, &errors);
	wait_for_first_iteration(errors);
	cr_assert_eq(kill(pid, SIGKILL), 0);
	while (fgets(line, sizeof(line), errors)) /* until its workers are gone, too */
		;
	fclose(errors);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	trace = scratch_folder_read(&folder, "t.json");
	cr_expect_str_eq(trace, "older");
	cr_expect_eq(scratch_folder_count(&folder), 3, "the network, the scenario and the trace");
	free(trace);
	scratch_folder_remove(&folder);
}

/* All over one worker, the first one of PS, for the other system's backward leaves the gradients of matrices to the
 * rebuild. An iteration's parts add up to it, so that PS on two workers is at most twice as fast. */
FOLDER_TEST(run_cli, all_speedups_of_a_run_are_over_one_worker, make_tiny())
{
	static const char *const options[] = {"--iterations 7", "--iterations 3 --set train.test_every=1",
					      "--iterations 8 --set train.test_every=1 --set systems.1.barrier=layer",
					      "--iterations 9 --set train.threads=2"};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		char all[256];

		snprintf(all, sizeof(all), "--csv --quiet %s", options[i]);
		struct run csv = run(tiny(&folder, all).text, "2>&1");
		double alone_images_per_sec = 0.0;

		cr_assert_eq(csv.exit_status, 0, "%s", csv.text);
		for (const char *row = strchr(csv.text, '\n') + 1; *row; row = strchr(row, '\n') + 1) {
			double iteration_sec, images_per_sec, speedup, compute_sec, exposed_sec, other_sec, waiting_sec;

			cr_assert_eq(sscanf(row, "tiny,%*[^,],real-cpu,2,2,,%lf,%lf,%lf,%lf,%lf,%*d,%*d,,,,%lf,%lf\n",
					    &iteration_sec, &images_per_sec, &speedup, &compute_sec, &exposed_sec,
					    &other_sec, &waiting_sec),
				     7, "%s", row);
			cr_expect_leq(compute_sec, iteration_sec, "%s", row);
			cr_expect_float_eq(compute_sec + exposed_sec + other_sec + waiting_sec, iteration_sec, 1e-8,
					   "%s", row); /* nine digits each */
			if (!strncmp(row, "tiny,PS,", strlen("tiny,PS,"))) {
				alone_images_per_sec = images_per_sec / speedup;
				cr_expect_leq(speedup, 2.0, "%s", row);
			}
			cr_expect_float_eq(speedup, images_per_sec / alone_images_per_sec, 1e-4 * speedup, "%s",
					   row); /* six digits */
		}
		free(csv.text);
	}
}

FOLDER_TEST(run_cli, too_few_iterations_to_leave_out_the_first_are_reported, make_tiny())
{
	static const char words[] = "psd-run: the first 2 iterations are slower than later ones: with "
				    "--iterations 3 or more they do not count\n";
	struct run few = run(tiny(&folder, "--iterations 2").text, "2>&1"),
		   enough = run(tiny(&folder, "--iterations 3").text, "2>&1"),
		   refused = run(tiny(&folder, "--iterations 2 --set train.start=@/none").text, "2>&1");

	cr_expect(strstr(few.text, words), "%s", few.text);
	cr_expect_not(strstr(enough.text, "--iterations"), "%s", enough.text);
	cr_expect_eq(refused.exit_status, 2);
	cr_expect_not(strstr(refused.text, "--iterations"), "%s", refused.text);
	free(refused.text);
	cr_expect(strstr(enough.text, "PS: iteration 1 of 3, at "), "%s", enough.text);
	free(few.text);
	free(enough.text);
}

static void expect_speedup(const struct scratch_folder *folder, const char *options, const char *words,
			   const char *other_words)
{
	struct run told = run(tiny(folder, options).text, "2>&1");

	cr_expect_eq(told.exit_status, 0, "%s", told.text);
	cr_expect(strstr(told.text, words), "%s: %s", options, told.text);
	cr_expect(strstr(told.text, other_words), "%s: %s", options, told.text);
	free(told.text);
}

FOLDER_TEST(run_cli, a_speedup_over_what_was_not_run_is_left_out_and_said, make_tiny())
{
	static const char without[] = " not known without a system that rebuilds no gradients from factors, such as "
				      "one with sync: ps\n",
			  not_run[] = " not known: its baseline is one worker of PS, which was not run\n";

	expect_speedup(&folder, "--system Hybrid --iterations 3", "speedup  ", without);
	expect_speedup(&folder, "--system Hybrid --iterations 3 --csv", "psd-run: the speedup is", without);
	expect_speedup(&folder, "--set baseline=PS --iterations 3", "speedup  ", not_run);
	expect_speedup(&folder, "--set baseline=PS --iterations 3 --csv", "psd-run: the speedup is", not_run);
	/* alone, for a row of another speedup may move the column */
	expect_speedup(&folder, "--system PS --set baseline=PS --iterations 3 --nodes 1", "over one worker of PS\n",
		       "     1.00 ");
	expect_speedup(&folder, "--system Hybrid --iterations 3 --nodes 1",
		       "over one worker that only computes, as fast as with Hybrid\n", "speedup");
}

/* As nohup starts it. */
FOLDER_TEST(run_cli, an_ignored_hangup_ends_nothing, make_tiny())
{
	FILE *errors;
	const pid_t pid = start_training(&folder, "1000000", SIGHUP, &errors);

	wait_for_first_iteration(errors);
	cr_assert_eq(kill(pid, SIGHUP), 0);
	cr_assert_eq(kill(pid, SIGTERM), 0);
	expect_end(pid, errors, 128 + SIGTERM, "psd-run: stopped by signal 15 (Terminated)\n");
}

Test(run_cli, a_parent_that_ignores_its_children_leaves_no_run_waiting, .timeout = 60)
{
	const struct scratch_folder folder = make_tiny();
	FILE *errors;
	const pid_t pid = start_training(&folder, "3", SIGCHLD, &errors);

	expect_end(pid, errors, 0, "psd-run: the trace is of Hybrid\n");
	scratch_folder_remove(&folder);
}

/* ---- hosts of a cluster ---- */

FOLDER_TEST(run_cli, hosts_that_are_started_one_by_one_train_like_those_of_one_command, make_tiny())
{
	char hosts[64], arguments[2 * PATH_MAX], *launched_log, *joined_log, *silent;
	struct run launched, joined;

	snprintf(hosts, sizeof(hosts), "127.0.0.1:%u\n127.0.0.1:%u\n", keep_port(), keep_port());
	scratch_folder_write(&folder, "hosts", hosts, strlen(hosts));
	snprintf(arguments, sizeof(arguments),
		 "--hosts %s/hosts --rank 1 --csv %s/s.yaml >%s/rank1 2>&1 & OMPI_COMM_WORLD_RANK=0 %s --hosts "
		 "%s/hosts --csv --quiet --log %s/joined.csv %s/s.yaml",
		 folder.path, folder.path, folder.path, path_of("psd-run").text, folder.path, folder.path, folder.path);
	joined = run(arguments, "2>&1; wait");
	launched = run(tiny(&folder, "--csv --quiet --log @/launched.csv").text, "2>&1");
	cr_expect_eq(joined.exit_status, 0);
	cr_expect_eq(count(joined.text, "\n"), 3, "%s", joined.text); /* a head, two systems */
	cr_expect_eq(count(joined.text, ",real-cpu,2,2,1000000000,"), 2, "the scenario says what the links are: %s",
		     joined.text);
	silent = scratch_folder_read(&folder, "rank1");
	cr_expect_str_eq(silent, "", "only host 0 tells");
	free(silent);
	joined_log = scratch_folder_read(&folder, "joined.csv");
	launched_log = scratch_folder_read(&folder, "launched.csv");
	cr_expect_eq(count(joined_log, "\n"), count(launched_log, "\n"));
	/* the last loss of the last system, bit for bit: the first four fields of the last line */
	cr_expect(strncmp(strstr(joined_log, "\nHybrid,9,"), strstr(launched_log, "\nHybrid,9,"),
			  strlen("\nHybrid,9,2.25,0.1")) == 0,
		  "%s%s", joined_log, launched_log);
	free(joined.text);
	free(launched.text);
	free(joined_log);
	free(launched_log);
}

FOLDER_TEST(run_cli, hosts_with_other_options_are_refused_on_both_sides, make_tiny())
{
	folder_run_disagrees(&folder, "--set train.learning_rate.warmup_iterations=1 s.yaml",
			     "--set train.learning_rate.warmup_iterations=1000 s.yaml",
			     "'train.learning_rate.warmup_iterations' is 1 here, 1000 there",
			     "'train.learning_rate.warmup_iterations' is 1000 here, 1 there");
	folder_run_disagrees(&folder, "--iterations 3 s.yaml", "--iterations 4 s.yaml",
			     "'train.iterations' is 3 here, 4 there", "'train.iterations' is 4 here, 3 there");
	folder_run_disagrees(&folder, "--system PS s.yaml", "--system Hybrid s.yaml",
			     "'systems.name' is \"PS\" here, \"Hybrid\" there",
			     "'systems.name' is \"Hybrid\" here, \"PS\" there");
	folder_run_disagrees(&folder, "--stall 90s s.yaml", "s.yaml", "'--stall' is 90 s here, 60 s there",
			     "'--stall' is 60 s here, 90 s there");
}

/* Host 1 fails before it joins, as often as host 0 needs to hear of it. */
Test(run_cli, a_host_that_fails_at_once_keeps_nobody_waiting, .timeout = 60)
{
	const struct scratch_folder folder = make_tiny();
	const struct program_path psd_run = path_of("psd-run");
	char hosts[64], command[4 * PATH_MAX];
	struct run waiting;

	snprintf(hosts, sizeof(hosts), "127.0.0.1:%u\n127.0.0.1:%u\n", keep_port(), keep_port());
	scratch_folder_write(&folder, "hosts", hosts, strlen(hosts));
	snprintf(command, sizeof(command),
		 "%s --hosts %s/hosts --rank 0 --quiet %s/s.yaml 2>&1 & waiting=$!; while kill -0 $waiting "
		 "2>/dev/null; do %s --hosts %s/hosts --rank 1 --set compute.replay=true --set compute.device=p100 "
		 "%s/s.yaml 2>/dev/null; done; wait $waiting",
		 psd_run.text, folder.path, folder.path, psd_run.text, folder.path, folder.path);
	waiting = run_command(command);
	cr_expect_eq(waiting.exit_status, 1);
	cr_expect_not_null(strstr(waiting.text, "psd-run[0]: host 1 at 127.0.0.1:"), "%s", waiting.text);
	cr_expect_not_null(
		strstr(waiting.text,
		       "'replay' is true, must be false with '--hosts' or mpirun: replays run on this machine "),
		"%s", waiting.text);
	cr_expect_eq(count(waiting.text, "\n"), 1, "%s", waiting.text);
	free(waiting.text);
	scratch_folder_remove(&folder);
}

/* The other program is this one with another version of equal length. */
Test(run_cli, hosts_of_different_builds_do_not_join)
{
	const struct scratch_folder folder = make_tiny();
	const struct program_path psd_run = path_of("psd-run");
	char hosts[64], command[4 * PATH_MAX];
	struct run ended;

	snprintf(hosts, sizeof(hosts), "127.0.0.1:%u\n127.0.0.1:%u\n", keep_port(), keep_port());
	scratch_folder_write(&folder, "hosts", hosts, strlen(hosts));
	snprintf(command, sizeof(command),
		 "cd %s; LC_ALL=C; export LC_ALL; own=$(%s --version | tr -d '\\n'); own=${own#psd-run }; "
		 "sed \"s/$own/x${own#?}/g\" %s >other; chmod +x other; host() { $1 --hosts hosts --rank $2 --quiet "
		 "s.yaml 2>&1; echo status $?; }; host ./other 1 >said & host %s 0; wait; cat said",
		 folder.path, psd_run.text, psd_run.text, psd_run.text);
	ended = run_command(command);
	cr_expect_eq(count(ended.text, "has another build, scenario or other options: 'build' is "), 2, "%s",
		     ended.text);
	cr_expect_eq(count(ended.text, "status 1\n"), 2, "%s", ended.text);
	free(ended.text);
	scratch_folder_remove(&folder);
}

/* The first run is held up by its log, which is read only after the second is over: it still has a system to join. */
Test(run_cli, a_second_run_on_hosts_fails_and_the_first_goes_on)
{
	const struct scratch_folder folder = make_tiny();
	const unsigned ports[] = {keep_port(), keep_port()};
	char hosts[64], command[4 * PATH_MAX], in_use[2][128];
	struct run both;

	snprintf(hosts, sizeof(hosts), "127.0.0.1:%u\n127.0.0.1:%u\n", ports[0], ports[1]);
	scratch_folder_write(&folder, "hosts", hosts, strlen(hosts));
	snprintf(command, sizeof(command),
		 "cd %s; mkfifo log; run() { %s --hosts hosts --quiet --iterations 4000 s.yaml --rank \"$@\"; }; { run "
		 "1 & run 0 --csv --log log >first; echo $? >status; wait; } & { read head; read line; run 0 "
		 "--join-timeout 1s 2>&1; run 1 --join-timeout 1s 2>&1; cat >/dev/null; } <log; wait; cat status; wc "
		 "-l <first",
		 folder.path, path_of("psd-run").text);
	both = run_command(command);
	for (unsigned h = 0; h < 2; h++) {
		snprintf(in_use[h], sizeof(in_use[h]),
			 "psd-run[%u]: cannot listen on 127.0.0.1:%u: Address already in use\n", h, ports[h]);
		cr_expect(strstr(both.text, in_use[h]), "%s", both.text);
	}
	cr_expect_eq(count(both.text, "\n"), 4, "%s", both.text);
	cr_expect(strstr(both.text, "\n0\n3\n"), "a head and two systems: %s", both.text);
	free(both.text);
	scratch_folder_remove(&folder);
}

/* Once host 0 waits for the other one, as its socket tells. */
Test(run_cli, a_host_that_is_stopped_says_so, .timeout = 60)
{
	const struct scratch_folder folder = make_tiny();
	const unsigned port = keep_port();
	char hosts[64], command[2 * PATH_MAX];
	struct run stopped;

	snprintf(hosts, sizeof(hosts), "127.0.0.1:%u\n127.0.0.1:%u\n", port, keep_port());
	scratch_folder_write(&folder, "hosts", hosts, strlen(hosts));
	snprintf(command, sizeof(command),
		 "%s --hosts %s/hosts --rank 0 --quiet %s/s.yaml 2>&1 & until grep -q ':%04X 00000000:0000 0A' "
		 "/proc/net/tcp; do sleep 0.1; done; kill -TERM $!; wait $!",
		 path_of("psd-run").text, folder.path, folder.path, port);
	stopped = run_command(command);
	cr_expect_eq(stopped.exit_status, 128 + SIGTERM);
	cr_expect_str_eq(stopped.text, "psd-run[0]: stopped by signal 15 (Terminated)\n");
	free(stopped.text);
	scratch_folder_remove(&folder);
}

/* The pipe is full long before the end of 1000 tests, a line each, and is read after a minute. */
Test(run_cli, nobody_waits_for_a_reader_of_the_progress, .timeout = 120)
{
	const struct scratch_folder folder = make_tiny();
	struct run read;
	char command[2 * PATH_MAX];

	snprintf(command, sizeof(command),
		 "cd %s && { %s --no-emulation --system PS --stall 20s --iterations 4000 --set train.test_every=1 "
		 "s.yaml >table; echo $? >status; } 2>&1 | { n=0; until [ -e status ] || [ $n -eq 600 ]; do "
		 "sleep 0.1; n=$((n + 1)); done; test $(wc -c) -gt 60000 && echo full; }; cat status",
		 folder.path, path_of("psd-run").text);
	read = run_command(command);
	cr_expect_str_eq(read.text, "full\n0\n");
	free(read.text);
	scratch_folder_remove(&folder);
}

FOLDER_TEST(run_cli, hosts_wait_as_long_as_they_are_told, make_tiny())
{
	const unsigned port = keep_port();
	char hosts[64], words[128], arguments[256];

	snprintf(hosts, sizeof(hosts), "127.0.0.1:%u\n127.0.0.1:%u\n", keep_port(), port);
	scratch_folder_write(&folder, "hosts", hosts, strlen(hosts));
	snprintf(words, sizeof(words), "psd-run[0]: worker 1 at 127.0.0.1:%u did not join within 0.1 s\n", port);
	snprintf(arguments, sizeof(arguments), "--quiet --hosts %s/hosts --rank 0 --join-timeout 100ms %s/s.yaml",
		 folder.path, folder.path);
	expect_complaint(arguments, 75, words); /* EX_TEMPFAIL: it may come later */
}

FOLDER_TEST(run_cli, hosts_that_do_not_fit_are_one_line, make_tiny())
{
	static const struct {
		const char *options, *words;
	} mistakes[] = {
		{"--hosts /no/such --rank 0", "/no/such: cannot be opened"},
		{"--hosts @/hosts --rank 2", "hosts: has 2 hosts (0 to 1), there is no host 2"},
		{"--hosts @/hosts", "--hosts: this process needs its number, by '--rank' or in the environment of "
				    "mpirun, srun or torchrun"},
		{"--hosts @/hosts --rank 0 --set systems.0.servers=2",
		 "system 'PS' has 2 separate servers, the hosts file names 2 hosts: no worker is left"},
		{"--hosts @/hosts --rank 0 --quiet --set systems.1.servers=1",
		 "system 'Hybrid' has 3 hosts, 2 workers and 1 separate servers"},
	};

	scratch_folder_write(&folder, "hosts", "127.0.0.1\n127.0.0.1\n", strlen("127.0.0.1\n127.0.0.1\n"));
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++)
		expect_complaint(emulated(&folder, mistakes[i].options).text, 2, mistakes[i].words);
}

/* ---- packing ---- */

FOLDER_TEST(run_cli, packed_images_are_trained_on, make_tiny())
{
	static const char model[] =
		"name: images\ninput: {channels: 3, height: 8, width: 8}\nlayers:\n"
		"  - {name: fc, kind: inner-product, outputs: 2}\n  - {name: loss, kind: softmax-loss}\n";
	static const char train[] = "train:\n  data: {kind: packed, path: images.psdpack}\n  iterations: 3\n"
				    "  learning_rate: {base: 0.01}\n";
	char text[sizeof(tiny_scenario) + sizeof(train)], arguments[512];
	struct run packed, trained;

	scratch_folder_add(&folder, "in");
	for (unsigned class = 0; class < 2; class ++) {
		const struct jpeg jpeg = make_jpeg(16, 16, class ? 255 : 0);

		scratch_folder_add(&folder, class ? "in/dark" : "in/light");
		scratch_folder_write(&folder, class ? "in/dark/a.jpg" : "in/light/a.jpg", jpeg.bytes, jpeg.n_bytes);
		tjFree(jpeg.bytes);
	}
	snprintf(arguments, sizeof(arguments), "pack %s/in -o %s/images.psdpack --side 8", folder.path, folder.path);
	packed = run(arguments, "2>&1");
	cr_expect_eq(packed.exit_status, 0, "%s", packed.text);
	cr_expect_not_null(strstr(packed.text, "images.psdpack: 2 of 2 images\n"), "%s", packed.text);

	snprintf(text, sizeof(text), "%.*s%s", (int)(strstr(tiny_scenario, "train:") - tiny_scenario), tiny_scenario,
		 train);
	scratch_folder_write(&folder, "s.yaml", text, strlen(text));
	scratch_folder_write(&folder, "tiny.yaml", model, strlen(model));
	trained = run(tiny(&folder, "--csv --quiet").text, "2>&1");
	cr_expect_eq(trained.exit_status, 0, "%s", trained.text);
	free(packed.text);
	free(trained.text);
}
