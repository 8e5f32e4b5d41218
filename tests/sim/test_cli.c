/* psd-sim as a command: statuses, one line for each mistake, the same bytes for the same input. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/cli_helper.h"
#include "tests/killed_helper.h"
#include "tests/scratch_folder.h"
#include "tests/test_with.h"

#define QUICKSTART "scenarios/quickstart.yaml"

static struct run run(const char *arguments, const char *redirections)
{
	return run_program("psd-sim", arguments, redirections);
}

static void expect_complaint(const char *arguments, int exit_status, const char *words)
{
	expect_one_line("psd-sim", arguments, exit_status, words);
}

Test(cli, misuse_is_one_line_and_status_2)
{
	static const struct {
		const char *arguments, *words;
	} mistakes[] = {
		{"", "no SCENARIO.yaml is given, see psd-sim --help"},
		{"--frobnicate " QUICKSTART, "unknown option '--frobnicate'"},
		{"--csv --json " QUICKSTART, "'--csv' and '--json' exclude each other"},
		{"--csv=yes " QUICKSTART, "'--csv' takes no value"},
		{QUICKSTART " --jobs", "'--jobs' needs a value"},
		{"--system PS --system Ring " QUICKSTART, "'--system' is given twice, must be given once"},
		{"--jobs 1 --jobs=1 " QUICKSTART, "'--jobs' is given twice, must be given once"},
		{"--fidelity flow --fidelity message " QUICKSTART, "'--fidelity' is given twice, must be given once"},
		{"import t.json -o p.csv --latency 1us --latency 2us",
		 "'--latency' is given twice, must be given once"},
		{"--jobs 0 " QUICKSTART, "'--jobs' is '0', must be from 1"},
		{"--sweep seed=1 --sweep nodes=2 --sweep seed=3 " QUICKSTART,
		 "'--sweep seed' is given twice, must have all values in one list"},
		{"--jobs -1 " QUICKSTART, "'--jobs' is '-1'"},
		{"--fidelity exact " QUICKSTART, "'--fidelity' is 'exact', must be flow or message"},
		{"--trace t.json --estimate " QUICKSTART, "'--trace' needs a simulation"},
		{"--shard 1/2 " QUICKSTART, "'--shard' needs '--csv', since `psd-sim merge` joins files of CSV"},
		{"--shard 9/8 " QUICKSTART, "'--shard' is '9/8', must be a part and their number, such as 1/8 to 8/8"},
		{"--csv --shard 1/2 " QUICKSTART " " QUICKSTART, "'--shard' takes one scenario, 2 are given"},
		{"--csv --plan " QUICKSTART, "'--plan' needs '--json'"},
		{"--every-node --estimate " QUICKSTART, "'--every-node' needs a simulation"},
		{"--fidelity message --estimate " QUICKSTART,
		 "'--fidelity' needs a simulation, '--estimate' makes none"},
		{"ask --estimate --fidelity flow " QUICKSTART, "'--fidelity' needs a simulation"},
		{"--trace t.json " QUICKSTART " " QUICKSTART, "'--trace' takes one scenario"},
		{"plan --trace t.json " QUICKSTART, "'--trace' is an option of 'psd-sim', not of 'psd-sim plan'"},
		{"plan --csv " QUICKSTART, "'--csv' is an option of 'psd-sim', not of 'psd-sim plan'"},
		{"show --system PS " QUICKSTART, "'--system' is an option of 'psd-sim', not of 'psd-sim show'"},
		{"describe a.yaml b.yaml", "'b.yaml' is one too many, psd-sim describe takes one MODEL"},
		{"describe --jobs 2 a.yaml", "'--jobs' is an option of 'psd-sim', not of 'psd-sim describe'"},
		{"plan --input data s.yaml", "'--input' is 'data', must be NAME=SIZES"},
		{"platform", "no SCENARIO.yaml is given, see psd-sim platform --help"},
		{"-x " QUICKSTART, "unknown option '-x', see psd-sim --help\n"},
		{"--systm=PS " QUICKSTART, "unknown option '--systm', did you mean '--system'? See psd-sim --help\n"},
		{"plan --jsno " QUICKSTART, "unknown option '--jsno', see psd-sim plan --help\n"},
		{"--system ps " QUICKSTART, "one of PS in sequence, PS, Ring, Hybrid; did you mean 'PS'?\n"},
		{"--fidelity flow --set fidelity=message " QUICKSTART,
		 "--set fidelity: 'fidelity' is also given by --fidelity, must be given by one of them\n"},
		{"ask --question knees " QUICKSTART, "psd-sim: '--question' is 'knees', must be one of: "},
		{"--systems PS " QUICKSTART, "unknown option '--systems', say --system NAME, see psd-sim --help\n"},
		{"tests/data/v1.prototxt",
		 "tests/data/v1.prototxt: is a Caffe network, name it in model.graph of a scenario\n"},
		{"tests/onnx/maps-dynamo.onnx", "maps-dynamo.onnx: is a network in ONNX's form, name it in model.graph "
						"of a scenario\n"},
		{"--nodes 4 " QUICKSTART,
		 "'--nodes' is an option of 'psd-sim init', not of 'psd-sim', say --set sweep.nodes=4, see psd-sim "
		 "--help\n"},
		{"--nodes=4 " QUICKSTART, "not of 'psd-sim', say --set sweep.nodes=4, "},
		{"plan -o x.csv " QUICKSTART, "'-o' is an option of 'psd-sim import', not of 'psd-sim plan', say --csv "
					      ">FILE, see psd-sim plan --help\n"},
		{"plam " QUICKSTART,
		 "psd-sim: 'plam' is neither a file nor a command; commands are plan, describe, show, "
		 "platform, ask, stacks, merge, import, init, quickstart, see psd-sim --help\n"},
		{"calibrate " QUICKSTART, "psd-sim has no command 'calibrate', say psd-run calibrate\n"},
		{"weights a.onnx", "psd-sim has no command 'weights', say psd-run weights\n"},
		{"help", "psd-sim has no command 'help', say psd-sim --help\n"},
	};

	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++)
		expect_complaint(mistakes[i].arguments, 2, mistakes[i].words);
}

/* The value is accepted when it is read, and refused where it meets others. */
Test(cli, an_option_is_named_whose_value_is_refused_later)
{
	static const struct {
		const char *arguments, *words;
	} mistakes[] = {
		{"scenarios/examples/first.yaml --set seed=3 --set model.precision=bf16 --sweep compute.device=k20,k40",
		 "--set model.precision: scenarios/examples/first.yaml:3:8: 'precision' is 'bf16', must be"},
		{"scenarios/examples/first.yaml --sweep model.precision=fp32,bf16 --set compute.device=k20",
		 "--sweep model.precision: scenarios/examples/first.yaml:3:8: 'precision' is 'bf16', must be"},
		{"scenarios/examples/first.yaml --sweep compute.device=a100,k20 --set model.precision=bf16",
		 "--set model.precision: scenarios/examples/first.yaml:3:8: 'precision' is 'bf16', must be"},
		{"scenarios/examples/groups.yaml --set systems.0.wire=fp16 --set systems.0.sync=sfb",
		 "--set systems.0.sync: scenarios/examples/groups.yaml:17:5: system 'Even' sends factors"},
		{"scenarios/examples/groups.yaml --sweep systems.0.sync=ring,sfb",
		 "--sweep systems.0.sync: scenarios/examples/groups.yaml:17:5: system 'Even' sends factors"},
		{"platform scenarios/examples/groups.yaml --set systems.0.sync=sfb",
		 "--set systems.0.sync: scenarios/"},
	};

	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++)
		expect_complaint(mistakes[i].arguments, 2, mistakes[i].words);
}

Test(cli, a_missing_file_is_named_by_its_key)
{
	static const struct {
		const char *settings, *place, *path;
	} missing[] = {
		{"--set model.graph=no", "--set model.graph: 'graph'", "no"},
		{"--set compute.device= --set compute.samples_per_sec= --set compute.profile=no",
		 "--set compute.profile: 'profile'", "no"},
		{"--sweep published=no,yes", "--sweep published: 'published'", "no"},
		{"--set cluster.network.topology=platform --set cluster.network.platform=no",
		 "--set cluster.network.platform: 'platform'", "no"},
	};
	char arguments[256], words[256];

	for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++) {
		snprintf(arguments, sizeof(arguments), "scenarios/examples/first.yaml %s", missing[i].settings);
		snprintf(words, sizeof(words), "%s is '%s': scenarios/examples/%s: cannot ", missing[i].place,
			 missing[i].path, missing[i].path);
		expect_complaint(arguments, 2, words);
	}
}

/* A profile of another model is wrong, not the key that is removed for it. */
Test(cli, a_wrong_value_is_blamed_before_a_removed_key)
{
	expect_complaint("--set compute.device= --set compute.samples_per_sec= --set "
			 "compute.profile=../../traces/profiles/v100-alexnet-bn.csv scenarios/examples/first.yaml",
			 2, "--set compute.profile: ");
}

static void expect_words(const char *arguments, const char *words, const char *no_words)
{
	const struct run made = run(arguments, "");

	cr_expect_eq(made.exit_status, 0, "%s", made.text);
	cr_expect_not_null(strstr(made.text, words), "%s", made.text);
	cr_expect_null(strstr(made.text, no_words), "%s", made.text);
	free(made.text);
}

/* An option's value that is the name of a command is a value. */
Test(cli, a_command_may_stand_behind_options)
{
	expect_words("--set sweep.nodes=4 plan --system Hybrid " QUICKSTART, "Hybrid at 4 nodes", "published");
	expect_words("--set=sweep.nodes=4 show " QUICKSTART, "title: ", "published");
	expect_complaint("--csv plan " QUICKSTART, 2, "'--csv' is an option of 'psd-sim', not of 'psd-sim plan'");
	expect_complaint("--system plan " QUICKSTART, 2, "has no system 'plan'");
	expect_complaint("-- plan " QUICKSTART, 2, "'plan' is neither a file nor a command");
}

Test(cli, json_has_the_plan_on_request)
{
	expect_words("--estimate --json --system Ring " QUICKSTART, "\"busy\":{", "\"plan\"");
	expect_words("--estimate --json --plan --system Ring " QUICKSTART, "\"plan\":[", "\"published\":");
}

Test(cli, stacks_are_listed_and_shown_with_their_record)
{
	expect_words("stacks", "\nnone: nothing costs anything but layers and links; no published value", "host:");
	expect_words("stacks grpc petuum",
		     "  reduce: 9.6Gbps\n  transport: 14Gbps\n  convert, update, tensor: from the ", "nccl");
	expect_words("stacks nccl-rdma", " of the prediction holds 8 of 10 of these values\n", "no band");
	expect_complaint("stacks grpc nobody", 2, "there is no stack 'nobody', `psd-sim stacks` lists them");
	expect_words(QUICKSTART, "\nstack     psd: psd-run itself, over TCP; ", "nccl");
	expect_words("--set cluster.stack=none " QUICKSTART, "\nexecutor ", "\nstack ");
}

Test(cli, one_worker_has_no_plan_of_exchanges)
{
	expect_words("plan --set sweep.nodes=1 --system Hybrid " QUICKSTART,
		     "Hybrid at 1 node, 1 Gb/s (point 1 of 1)\none worker: there is nobody to exchange with\n", "MB");
	expect_words("plan --set sweep.nodes=1 --set systems.3.servers=1 --system Hybrid " QUICKSTART,
		     "one worker: it exchanges with servers alone\n", "nobody");
}

TEST_ROW(cli, images_per_second_have_no_exponent,
	 expect_words("--set compute.device=a100 --set sweep.nodes=1 " QUICKSTART, " samples/s on one worker alone",
		      "e+"))

/* A clock at 1.6e9 s does not tell the milliseconds of computing. */
Test(cli, a_system_with_negligible_compute_waits_all_the_time)
{
	struct run slow =
		run("--set cluster.network.bandwidth=1bps --set sweep.nodes=2 --system PS " QUICKSTART, "2>&1");

	cr_expect(strstr(slow.text, "PS at 2 nodes: bound by the network, busy for 100 % "), "%s", slow.text);
	free(slow.text);
}

/* Norms count in every iteration, though the first has none to wait for. In a ring of two each sends half of the
 * 120,300 norms twice: 481,200 B at 1 Gbit/s are 3.85 ms. */
FOLDER_TEST(cli, norms_of_sparse_chunks_are_waited_for, scratch_folder_make())
{
	static const char model[] = "name: m\ninput: {channels: 300}\nlayers:\n"
				    "  - {name: fc, kind: inner-product, outputs: 401, bias: false}\n";
	static const char text[] = "title: t\nmodel: {graph: model.yaml, batch_per_worker: 1}\ncompute: {device: cpu}\n"
				   "cluster: {stack: none, nodes: 2, network: {bandwidth: 1Gbps, latency: 50us}}\n"
				   "systems: [{name: S, sync: ring, sparse: {sparsity: 0.9999, chunk: 1}}]\n";
	static const char *const options[] = {"", "--set iterations=20", "--estimate"};

	scratch_folder_write(&folder, "model.yaml", model, strlen(model));
	scratch_folder_write(&folder, "s.yaml", text, strlen(text));
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		char arguments[512];
		const char *row;
		struct run done;

		snprintf(arguments, sizeof(arguments), "--csv %s %s/s.yaml", options[i], folder.path);
		done = run(arguments, "2>&1");
		row = strstr(done.text, ",2,2,1000000000,");
		cr_assert(row, "%s", done.text);
		cr_expect_gt(strtod(row + strlen(",2,2,1000000000,"), NULL), 481200 * 8 / 1e9, "%s", done.text);
		free(done.text);
	}
}

/* The first system alone has more events than that. */
TEST_ROW(cli, a_forbidden_system_is_refused_before_another_runs,
	 expect_complaint("--set most_events=1 --set model.precision=mixed --set systems.1.wire=bf16 " QUICKSTART, 2,
			  "must be 'fp32' where 'precision' is 'mixed' or 'bf16'"))

/* A system that no user means to run, or that psd-run could run, has none. */
Test(cli, the_head_says_how_many_nodes_stand_for_how_many)
{
	const char settings[] = "--quiet --set sweep.nodes=64 --system Ring --fidelity message " QUICKSTART;
	char all[256];
	const struct run of_classes = run(settings, "2>&1");

	snprintf(all, sizeof(all), "--every-node %s", settings);
	const struct run of_all = run(all, "2>&1");

	cr_expect(strstr(of_classes.text, "\nclasses   1 node stands for 64; "), "%s", of_classes.text);
	cr_expect(strstr(of_classes.text, "messages were like others"), "%s", of_classes.text);
	cr_expect_not(strstr(of_all.text, "\nclasses "), "%s", of_all.text);
	free(of_classes.text);
	free(of_all.text);
}

Test(cli, links_that_psd_run_refuses_have_a_note)
{
	static const struct {
		const char *arguments;
		bool has_note;
	} cases[] = {
		{"--set cluster.network.bandwidth=1Tbps " QUICKSTART, true},
		{"--set cluster.network.bandwidth=99kbps " QUICKSTART, true},
		{QUICKSTART, false},
		{"--set cluster.network.bandwidth=1Tbps scenarios/poseidon-atc17/vgg19-40gbe.yaml", false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct run made = run(cases[i].arguments, "");

		cr_expect_eq(made.exit_status, 0, "%s", made.text);
		cr_expect_eq(strstr(made.text, "note: psd-run refuses links of ") != NULL, cases[i].has_note, "%s",
			     made.text);
		free(made.text);
	}
}

/* Three systems, each with notes of its own. */
Test(cli, notes_are_of_the_systems_that_are_asked_for)
{
	const char *all_reduces = "scenarios/execute/cifar10-quick-all-reduce.yaml";
	char arguments[128];

	snprintf(arguments, sizeof(arguments), "--estimate --system 'Sparse ring' %s", all_reduces);
	const struct run made = run(arguments, "");

	cr_expect_eq(made.exit_status, 0, "%s", made.text);
	cr_expect_neq(strstr(made.text, "note: 'Sparse ring' sends 15 %"), NULL, "%s", made.text);
	cr_expect_eq(strstr(made.text, "Lazy sparse ring"), NULL, "%s", made.text);
	cr_expect_eq(strstr(made.text, "bf16"), NULL, "%s", made.text);
	free(made.text);
}

Test(cli, bad_scenarios_are_one_line_and_status_2)
{
	expect_complaint("no-such-file.yaml", 2, "no-such-file.yaml: ");
	expect_complaint("describe no-such-model.yaml", 2, "no-such-model.yaml: ");
	expect_complaint("--set sweep.nodes=1000000000 " QUICKSTART, 2, "'1000000000'");
	expect_complaint("--set cluster.network.bandwidth=10 " QUICKSTART, 2, "must be a rate");
	expect_complaint("--system Nobody " QUICKSTART, 2,
			 "has no system 'Nobody', must be one of PS in sequence, PS, Ring, Hybrid");
	expect_complaint("--sweep bandwidth=1,2 " QUICKSTART, 2,
			 "--sweep bandwidth: 'bandwidth' is '1', must be a rate");
	expect_complaint("--sweep nodes=1-16 " QUICKSTART, 2, "'1-16' is not a range, did you mean 1..16?");
	expect_complaint("--sweep cluster.network.latency=1us..1ms " QUICKSTART, 2,
			 "--sweep cluster.network.latency: '1us..1ms' has no step, must be such as 1us..1ms*2");
	expect_complaint("--sweep 'cluster.servers_in=[0],[4]' " QUICKSTART, 2,
			 "'[0],[4]' has brackets within brackets");
	expect_complaint("--sweep fuse=1MiB,auto " QUICKSTART, 2, "a sweep of systems.NAME.fuse takes auto, too");
	expect_complaint("plan --system Nobody " QUICKSTART, 2, "has no system 'Nobody'");
	expect_complaint("--set systems.PS.sync=allreduce " QUICKSTART, 2, "; did you mean ring?\n");
	expect_complaint("--set model.precision=FP16 " QUICKSTART, 2, "; did you mean mixed?\n");
	expect_complaint("--trace /no/such/folder/t.json " QUICKSTART, 2, "/no/such/folder/t.json: cannot be written");
	expect_complaint(
		"--set nodes=8 " QUICKSTART, 2,
		"--set: no key 'nodes', did you mean 'cluster.nodes' or 'cluster.machine.nodes' or 'sweep.nodes'?\n");
	expect_complaint("--set host.transport=1Gbps " QUICKSTART, 2,
			 "--set: no key 'host.transport', did you mean 'cluster.host.transport'?\n");
	expect_complaint("--set cluster.bandwidth=1Gbps " QUICKSTART, 2,
			 "--set: no key 'cluster.bandwidth', did you mean 'cluster.network.bandwidth' or ");
	expect_complaint("--set cluster.nodez=1 " QUICKSTART, 2,
			 "--set cluster.nodez: unknown key 'nodez' in 'cluster'");
	expect_complaint("--set bandwith=1Gbps " QUICKSTART, 2,
			 "--set: no key 'bandwith', did you mean 'cluster.network.bandwidth' or ");
	/* 8 tokens of 32 bits */
	expect_words("describe scenarios/models/gpt2.yaml --set model.sequence=8",
		     "tokens         input             1 x 8 x 1                              32 B", "error");
	expect_complaint("describe scenarios/models/gpt2.yaml --set sequence=8", 2, "did you mean 'model.sequence'?\n");
	expect_complaint("describe " QUICKSTART, 2,
			 ":9:1: this file is a scenario, must be a model, which a scenario names as 'graph'\n");
	expect_complaint("scenarios/models/mlp.yaml", 2,
			 "mlp.yaml:3:1: this is a model, not a scenario; a scenario names it, as in 'model: {graph: "
			 "FILE, batch_per_worker: 32}'\n");
	expect_complaint("tests/golden/quickstart.csv", 2,
			 ":1:1: the file is not a scenario, must have keys such as 'model:' and 'systems:'\n");
	/* the second one is looked at before the first one runs */
	expect_complaint(QUICKSTART " no-such-file.yaml", 2, "no-such-file.yaml: ");
}

Test(cli, help_and_version_go_to_stdout)
{
	struct run help = run("--help", "2>/dev/null"), version = run("--version", "2>/dev/null");

	cr_expect_eq(help.exit_status, 0);
	cr_expect_eq(strncmp(help.text, "usage: psd-sim [OPTIONS] SCENARIO.yaml...\n", 42), 0);
	cr_expect_not_null(strstr(help.text, "  --trace FILE "));
	cr_expect_eq(version.exit_status, 0);
	expect_version(version.text, "psd-sim");
	free(help.text);
	free(version.text);
}

/* Help of every command of both programs: 40 lines of 80 columns at most, and a line for each option. */
Test(cli, every_help_fits_a_screen)
{
	static const struct {
		const char *program, *arguments, *words;
	} helps[] = {
		{"psd-sim", "--help", "\n  plan        Shows each tensor's method"},
		{"psd-sim", "plan --help", "usage: psd-sim plan [OPTIONS] SCENARIO.yaml...\n"},
		{"psd-sim", "describe --help", "usage: psd-sim describe [OPTIONS] MODEL\n"},
		{"psd-sim", "show --help", "\n  --fidelity NAME "},
		{"psd-sim", "platform --help", "\n  --system NAME "},
		{"psd-sim", "stacks --help", "usage: psd-sim stacks [OPTIONS] [NAME]...\n"},
		{"psd-run", "--help", "\n  calibrate  Measures this machine"},
		{"psd-run", "calibrate --help", "usage: psd-run calibrate [OPTIONS] SCENARIO.yaml -o FILE\n"},
		{"psd-run", "pack --help", "usage: psd-run pack [OPTIONS] FOLDER -o FILE\n"},
		{"psd-run", "show --help", "\n  --set KEY=VALUE "},
	};

	for (size_t h = 0; h < sizeof(helps) / sizeof(helps[0]); h++) {
		struct run help = run_program(helps[h].program, helps[h].arguments, "2>&1");
		unsigned n_lines = 0;

		cr_expect_eq(help.exit_status, 0, "%s", help.text);
		cr_expect_not_null(strstr(help.text, helps[h].words), "%s", help.text);
		for (const char *line = help.text; *line; line += strcspn(line, "\n") + 1, n_lines++)
			cr_expect_leq(strcspn(line, "\n"), 80, "%s", line);
		cr_expect_leq(n_lines, 40, "%s", help.text);
		free(help.text);
	}
}

/* Standard output is no terminal here: 80 columns. A topic is a whole path or a part of one; what does not begin with
 * it is left out. */
Test(cli, keys_and_columns_are_explained_in_a_terminals_lines)
{
	static const char *const programs[] = {"psd-sim", "psd-run"};
	static const struct {
		const char *arguments, *words, *others;
	} topics[] = {
		{"--keys", "\ntrain.data.kind: ", "`"},
		{"--keys cluster.network", "\ncluster.network.platform: path; required\n", "cluster.nodes"},
		{"--keys=bandwidth", "\nsweep.bandwidth: list of up to ", "cluster.network.topology"},
		{"--columns", "tx_bytes_per_node: byte\n    bytes sent to other nodes", "`"},
		{"--columns low", "low: 1/s\n    lower end", "high: "},
		{"--keys fsdp", "job.memory: ", "cluster.nodes"},
		{"--keys Bucket", "systems.fuse: ", "cluster.nodes"},
		{"--keys dropout", "attention, a kind of layer in a model file\n    keys heads, kv_heads,", "conv"},
		{"--keys dropout",
		 "dropout, a kind of layer in a model file\n    keys ratio\n    see scenarios/models/README", "conv"},
		{"--columns busbw", "exposed_comm_sec: s\n", "tx_bytes"},
		{"--columns published", "published_speedup\n    published speedup; empty if ", "tx_bytes"},
	};

	for (size_t p = 0; p < 2; p++)
		for (size_t t = 0; t < sizeof(topics) / sizeof(topics[0]); t++) {
			struct run told = run_program(programs[p], topics[t].arguments, "2>&1");

			cr_expect_eq(told.exit_status, 0, "%s", told.text);
			cr_expect_not_null(strstr(told.text, topics[t].words), "%s", told.text);
			cr_expect_null(strstr(told.text, topics[t].others), "%s", topics[t].arguments);
			for (const char *line = told.text; *line; line += strcspn(line, "\n") + 1)
				cr_expect_leq(strcspn(line, "\n"), 80, "%s", line);
			free(told.text);
		}
	struct run none = run("--keys bandwith", "2>&1");

	cr_expect_eq(none.exit_status, 2);
	cr_expect_str_eq(none.text, "psd-sim: no key begins with 'bandwith' or is explained with that word\n");
	free(none.text);
}

Test(cli, output_that_cannot_be_written_is_a_failure)
{
	static const char *const arguments[] = {"--csv " QUICKSTART,
						QUICKSTART,
						"--help",
						"plan " QUICKSTART,
						"platform " QUICKSTART,
						"--estimate --json " QUICKSTART};

	for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++) {
		struct run full = run(arguments[i], "2>&1 >/dev/full"), closed = run(arguments[i], "2>&1 >&-");

		cr_expect_eq(full.exit_status, 1, "%s", arguments[i]);
		cr_expect_str_eq(full.text, "psd-sim: cannot write to standard output: No space left on device\n");
		cr_expect_eq(closed.exit_status, 1, "%s", arguments[i]);
		cr_expect_str_eq(closed.text, "psd-sim: cannot write to standard output: Bad file descriptor\n");
		free(full.text);
		free(closed.text);
	}
}

Test(cli, csv_of_several_scenarios_has_one_head)
{
	struct run csv =
		run("--csv --estimate --system Ring --set sweep.nodes=2 " QUICKSTART " " QUICKSTART, "2>/dev/null");
	unsigned n_lines = 0;

	cr_expect_eq(csv.exit_status, 0);
	for (const char *c = csv.text; *c; c++)
		n_lines += *c == '\n';
	cr_expect_eq(n_lines, 1 + 2, "%s", csv.text);
	free(csv.text);
}

static void expect_same_bytes(const char *arguments)
{
	struct run first = run(arguments, "2>/dev/null"), second = run(arguments, "2>/dev/null");

	cr_expect_eq(first.exit_status, 0, "%s", arguments);
	cr_expect_gt(strlen(first.text), 100);
	cr_expect_str_eq(first.text, second.text, "%s", arguments);
	free(first.text);
	free(second.text);
}

Test(cli, the_same_scenario_gives_the_same_bytes)
{
	expect_same_bytes("--csv --set compute.jitter=10% " QUICKSTART);
	expect_same_bytes("--json --plan --fidelity message " QUICKSTART);
	expect_same_bytes("--csv --estimate " QUICKSTART);
	/* the trace goes into the pipe after the CSV */
	expect_same_bytes("--csv --quiet --trace /dev/stdout --set compute.jitter=10% --system Hybrid " QUICKSTART);
}

Test(cli, jobs_at_a_time_do_not_change_the_result)
{
	struct run one = run("--csv --jobs 1 " QUICKSTART, "2>/dev/null"),
		   many = run("--csv --jobs 64 " QUICKSTART, "2>/dev/null");

	cr_expect_eq(one.exit_status, 0);
	cr_expect_str_eq(one.text, many.text);
	free(one.text);
	free(many.text);
}

Test(cli, a_trace_replaces_the_old_file_only_when_it_is_complete)
{
	char folder[] = "/tmp/psd-cli-XXXXXX", path[64], arguments[256], old[8] = "";
	struct stat found;
	struct run failed, done;
	FILE *file;

	cr_assert_not_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/t.json", folder);
	file = fopen(path, "w");
	cr_assert(file && fputs("old", file) >= 0 && fclose(file) == 0);
	/* a scenario that cannot run leaves it alone */
	snprintf(arguments, sizeof(arguments), "--csv --trace %s --system Nobody " QUICKSTART, path);
	failed = run(arguments, "2>&1");
	cr_expect_eq(failed.exit_status, 2);
	file = fopen(path, "r");
	cr_assert(file && fgets(old, sizeof(old), file) && fclose(file) == 0);
	cr_expect_str_eq(old, "old");

	snprintf(arguments, sizeof(arguments), "--csv --trace %s " QUICKSTART, path);
	done = run(arguments, "2>&1 >/dev/null");
	cr_expect_eq(done.exit_status, 0);
	cr_expect_str_eq(done.text, "psd-sim: the trace is of Hybrid at 4 nodes\n");
	cr_assert_eq(stat(path, &found), 0);
	cr_expect_gt(found.st_size, 1000);
	unlink(path);
	cr_expect_eq(rmdir(folder), 0, "something is left beside the trace");
	free(failed.text);
	free(done.text);
}

FOLDER_TEST(cli, a_trace_by_rank_is_a_file_for_each_worker, scratch_folder_make())
{
	char arguments[256];
	struct run done;

	snprintf(arguments, sizeof(arguments), "--csv --quiet --trace %s/rank-%%r.json --set sweep.nodes=3 " QUICKSTART,
		 folder.path);
	done = run(arguments, "2>&1 >/dev/null");
	cr_expect_eq(done.exit_status, 0, "%s", done.text);
	cr_expect_eq(scratch_folder_count(&folder), 3);
	free(done.text);
	/* files of more workers than this run has would be read with them */
	snprintf(arguments, sizeof(arguments), "--csv --quiet --trace %s/rank-%%r.json --set sweep.nodes=2 " QUICKSTART,
		 folder.path);
	expect_complaint(arguments, 2, "rank-2.json: is the trace of another run, since this one has 2 workers");
}

/* By its own name, by another spelling of it, a hard link and a symbolic link. */
static void expect_input_is_kept(const struct scratch_folder *folder, const char *input, const char *arguments)
{
	const struct scratch_path path = scratch_folder_path(folder, input);
	const char *const names[] = {input, "hard", "soft"};
	struct stat before, after;

	cr_assert_eq(stat(path.text, &before), 0);
	cr_assert_eq(link(path.text, scratch_folder_path(folder, "hard").text), 0);
	cr_assert_eq(symlink(input, scratch_folder_path(folder, "soft").text), 0);
	for (size_t i = 0; i < 2 * sizeof(names) / sizeof(names[0]); i++) {
		char line[1024];

		snprintf(line, sizeof(line), "--csv --trace %s/%s%s %s", folder->path, i % 2 ? "./" : "", names[i / 2],
			 arguments);
		expect_complaint(line, 2, ": the file is read by this run, an output must be another file\n");
	}
	cr_assert_eq(remove(scratch_folder_path(folder, "hard").text), 0);
	cr_assert_eq(remove(scratch_folder_path(folder, "soft").text), 0);
	cr_assert_eq(stat(path.text, &after), 0);
	cr_expect(before.st_ino == after.st_ino && before.st_size == after.st_size, "%s", input);
}

FOLDER_TEST(cli, a_trace_replaces_no_input, scratch_folder_make())
{
	static const char model[] = "name: m\ninput: {channels: 4}\nlayers:\n"
				    "  - {name: fc, kind: inner-product, outputs: 2}\n";
	static const char profile[] = "# batch: 1\n# kind: measured\n# origin: o\n# device: d\n"
				      "# gemm_flops_per_sec: 1TFLOPS\nlayer,forward_sec,backward_sec\nfc,1e-3,1e-3\n";
	static const char published[] = "system,workers,images_per_sec,speedup,use,source\nPS,2,,1.5,check,nobody\n";
	static const char scenario[] =
		"title: t\nmodel: {graph: model.yaml, batch_per_worker: 1}\ncompute: {profile: profile.csv}\n"
		"cluster: {stack: none, nodes: 2, network: {bandwidth: 1Gbps, latency: 50us}}\npublished: "
		"published.csv\n"
		"systems: [{name: PS, schedule: sequential, sync: ps}]\n";
	static const char *const inputs[] = {"model.yaml", "profile.csv", "published.csv", "s.yaml"};
	const char *const texts[] = {model, profile, published, scenario};
	const struct scratch_path path = scratch_folder_path(&folder, "s.yaml");
	char arguments[512];

	for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++)
		scratch_folder_write(&folder, inputs[i], texts[i], strlen(texts[i]));
	for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++)
		expect_input_is_kept(&folder, inputs[i], path.text);
	scratch_folder_write(&folder, "platform.xml", "", 0); /* it is looked at later */
	snprintf(arguments, sizeof(arguments),
		 "--set cluster.network.platform=platform.xml --set cluster.network.topology=platform %s", path.text);
	expect_input_is_kept(&folder, "platform.xml", arguments);
}

FOLDER_TEST(cli, a_full_disk_and_a_limit_leave_the_older_trace, scratch_folder_make())
{
	static const char *const limits[] = {"", "ulimit -f 16;"};
	static const char *const reasons[] = {"No space left on device", "File too large"};

	for (size_t i = 0; i < 2; i++) {
		char command[2 * PATH_MAX];
		struct run small;

		snprintf(command, sizeof(command),
			 "echo older >%s/out && %s %s --csv --quiet --trace %s/out " QUICKSTART
			 " >/dev/null; echo $? $(cat %s/out) $(ls -A %s)",
			 folder.path, limits[i], path_of("psd-sim").text, folder.path, folder.path, folder.path);
		small = run_on_small_disk(folder.path, command);
		cr_expect_not_null(strstr(small.text, reasons[i]), "%s", small.text);
		cr_expect_eq(strchr(small.text, '\n') + 1, strstr(small.text, "1 older out\n"), "%s", small.text);
		free(small.text);
	}
}

FOLDER_TEST(cli, no_name_drives_the_terminal, scratch_folder_make())
{
	static const char model[] = "name: \"" HOSTILE_YAML "\"\ninput: {channels: 4}\nlayers:\n"
				    "  - {name: \"" HOSTILE_YAML "\", kind: inner-product, outputs: 2}\n";
	static const char scenario[] =
		"title: %s\nmodel: {graph: model.yaml, batch_per_worker: 1}\ncompute: {device: cpu}\n"
		"cluster: {stack: none, nodes: 2, network: {bandwidth: 1Gbps, latency: 50us}}\n"
		"systems: [{name: %s, schedule: sequential, sync: ps}, {name: B, sync: ring}]\n";
	static const char *const commands[] = {"%s/s.yaml", "--json --plan %s/s.yaml", "plan %s/s.yaml",
					       "describe %s/model.yaml", "--csv --trace /dev/stdout %s/s.yaml"};
	char text[1024];
	struct run refused = run("'/tmp/" HOSTILE_NAME ".yaml'", "2>&1");

	expect_plain("the name of a file", refused.text);
	scratch_folder_write(&folder, "model.yaml", model, strlen(model));
	snprintf(text, sizeof(text), scenario, "t", "A");
	scratch_folder_write(&folder, "s.yaml", text, strlen(text));
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		char arguments[256];
		struct run named;

		snprintf(arguments, sizeof(arguments), commands[i], folder.path);
		named = run(arguments, "2>&1");
		cr_expect_eq(named.exit_status, 0, "%s", named.text);
		expect_plain(commands[i], named.text);
		free(named.text);
	}
	snprintf(text, sizeof(text), scenario, "t", "\"\\x9b[31m\"");
	scratch_folder_write(&folder, "s.yaml", text, strlen(text));
	expect_complaint(scratch_folder_path(&folder, "s.yaml").text, 2,
			 "'name' is '??[31m', must not contain commas, quotes or control characters\n");
	snprintf(text, sizeof(text), scenario, "\"\\x9b[31m\"", "A");
	scratch_folder_write(&folder, "s.yaml", text, strlen(text));
	expect_complaint(scratch_folder_path(&folder, "s.yaml").text, 2,
			 "'title' is '??[31m', must not contain control characters\n");
	free(refused.text);
}

Test(cli, a_kill_leaves_the_older_trace_or_the_whole_new_one, .timeout = 120)
{
	const struct scratch_folder folder = scratch_folder_make();
	char command[2 * PATH_MAX], whole[256];

	snprintf(whole, sizeof(whole), "--csv --quiet --trace %s/whole " QUICKSTART, folder.path);
	free(run(whole, "").text);
	scratch_folder_write(&folder, "out", "", 0);
	snprintf(command, sizeof(command), "%s --csv --quiet --trace out $OLDPWD/" QUICKSTART, path_of("psd-sim").text);
	expect_whole_wherever_killed(&folder, command, "{ [ \"$(cat out)\" = older ] || cmp out whole; } 2>&1");
	scratch_folder_remove(&folder);
}

Test(cli, printed_scenario_gives_the_same_result)
{
	char path[] = "/tmp/psd-cli-XXXXXX", arguments[256];
	const int fd = mkstemp(path);
	struct run printed = run("show " QUICKSTART, "2>/dev/null"), direct = run("--csv " QUICKSTART, "2>/dev/null"),
		   again;

	cr_assert_geq(fd, 0);
	cr_assert_eq(printed.exit_status, 0);
	cr_assert_eq(write(fd, printed.text, strlen(printed.text)), (ssize_t)strlen(printed.text));
	close(fd);
	/* its paths hold from the working directory, a scenario's from its own folder: absolute ones hold everywhere */
	snprintf(arguments, sizeof(arguments), "--csv --set model.graph=$PWD/scenarios/models/mlp.yaml %s", path);
	again = run(arguments, "2>&1");
	cr_expect_eq(again.exit_status, 0, "%s", again.text);
	cr_expect_str_eq(again.text, direct.text);
	unlink(path);
	free(printed.text);
	free(direct.text);
	free(again.text);
}

Test(cli, a_folder_is_no_platform)
{
	struct run run_of = run(
		"--set cluster.network.topology=platform --set cluster.network.platform=models " QUICKSTART, "2>&1");

	cr_expect_eq(run_of.exit_status, 2);
	cr_expect(strstr(run_of.text, "'platform' is 'models': scenarios/models: cannot read this platform (paths "),
		  "%s", run_of.text);
	free(run_of.text);
}

/* The title of a scenario without one is its path: in CSV a line and never a formula, and a title that `show` may print
 * and the reader accepts. */
Test(cli, a_path_that_stands_for_a_title_passes_as_one)
{
	static const char *const names[][2] = {
		{"=cmd.yaml", "./=cmd.yaml,"}, {"@x.yaml", "./@x.yaml,"}, {"a\nb.yaml", "a?b.yaml,"}};
	const struct scratch_folder folder = scratch_folder_make();
	char line[1024];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(line, sizeof(line),
			 "sed '/^title/d; s|models/|'$PWD'/scenarios/models/|' scenarios/quickstart.yaml >'%s/%s'; cd "
			 "%s; $OLDPWD/build/psd-sim --quiet --csv --estimate '%s' 2>&1 | sed -n 2p; "
			 "$OLDPWD/build/psd-sim show '%s' >shown.yaml && $OLDPWD/build/psd-sim show shown.yaml "
			 ">/dev/null; echo $?",
			 folder.path, names[i][0], folder.path, names[i][0], names[i][0]);
		struct run run = run_command(line);

		cr_expect_eq(strncmp(run.text, names[i][1], strlen(names[i][1])), 0, "%s", run.text);
		cr_expect_not_null(strstr(run.text, "\n0\n"), "%s", run.text);
		free(run.text);
	}
	scratch_folder_remove(&folder);
}

/* In a folder without models. */
Test(cli, describe_names_an_installed_model)
{
	struct run told = run_command("cd tests/golden && ../../build/psd-sim describe resnet50 2>&1");

	cr_expect_eq(told.exit_status, 2);
	cr_expect_not_null(strstr(told.text, ", did you mean '/"), "%s", told.text);
	cr_expect_not_null(strstr(told.text, "/scenarios/models/resnet50.yaml'?\n"), "%s", told.text);
	free(told.text);
}

/* Stacks by default follow from the methods; with one worker a node a two-level ring has one level. */
Test(cli, notes_say_what_is_compared)
{
	expect_words("--estimate --set cluster.stack= scenarios/examples/job.yaml",
		     "stack     Ring, PowerSGD on nccl-tcp: NCCL", " at 128 nodes");
	expect_words("--estimate --set cluster.stack= scenarios/examples/job.yaml",
		     "note: Ring is on stack nccl-tcp and Servers on psd because of their methods", " at 128 nodes");
	expect_words("--estimate scenarios/examples/straggler.yaml",
		     "note: with one worker a node, the levels of 'Two levels' are a ring\n",
		     "because of their methods");
	expect_words("--estimate --set compute.samples_per_sec=100 scenarios/examples/recompute.yaml",
		     "note: Kept and Recomputed differ in 'recompute', not in 'samples_per_sec'", "because of");
	expect_words("--estimate scenarios/examples/recompute.yaml", "Kept", "differ in 'recompute'");
	expect_words("--estimate --set model.graph=../models/one-tensor.yaml scenarios/examples/recompute.yaml "
		     "--set model.recompute=none",
		     " parameters in 1 tensor, gradients", "because of");
	expect_words("--estimate scenarios/examples/groups.yaml",
		     "(v100-resnet50.csv) of\n          speed 25 % at 10 Gb/s", "because of");
	expect_words("--estimate scenarios/examples/mixed-nodes.yaml", "(cpu) at 10 Gb/s, 100 us one", "'recompute'");
	expect_words("--estimate scenarios/examples/mixed-nodes.yaml", ", 30 us one way, one switch", "30 us to");
	expect_words("--estimate --set cluster.groups.0.network.latency=10us scenarios/examples/mixed-nodes.yaml",
		     ", 10 us to 100 us one way, one switch", "30 us");
	expect_words("--estimate --set cluster.groups.0.network.bandwidth=40Gbps scenarios/examples/mixed-nodes.yaml",
		     ", 10 Gb/s to 40 Gb/s, 30 us one way", "25 Gb/s");
}

Test(cli, quickstart_lists_titles_without_quotes)
{
	struct run list = run("quickstart", "");

	cr_expect_eq(list.exit_status, 0);
	cr_expect_null(strchr(list.text, '"'), "%s", list.text);
	free(list.text);
}

/* 64 kB were a segmentation fault without a word. */
Test(cli, a_small_stack_is_replaced)
{
	static const char *const arguments[] = {
		"--quiet --csv --set compute.jitter=2% --set sweep.nodes=2 scenarios/quickstart.yaml",
		"plan --set sweep.nodes=2 scenarios/quickstart.yaml"};

	for (size_t i = 0; i < sizeof(arguments) / sizeof(arguments[0]); i++) {
		char line[512];
		struct run whole = run_program("psd-sim", arguments[i], "2>&1"), run;

		snprintf(line, sizeof(line), "ulimit -s 64 && build/psd-sim %s 2>&1", arguments[i]);
		run = run_command(line);
		cr_expect_eq(run.exit_status, 0);
		cr_expect_str_eq(run.text, whole.text);
		free(run.text);
		free(whole.text);
	}
}

/* Constructors of libraries, which run before main(), died of 16 kB without a word. A limit that can be raised is. */
/* The environment is on the stack, too: without one, 16 kB are always enough to begin. */
Test(cli, a_stack_too_small_for_libraries_is_raised_or_named)
{
	static const char *const programs[] = {"psd-sim", "psd-run", "psd-plot"};

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		char line[128];
		struct run run;

		snprintf(line, sizeof(line), "env -i sh -c 'ulimit -s 16 && exec build/%s --help 2>&1'", programs[i]);
		run = run_command(line);
		cr_expect_eq(run.exit_status, 1, "%s", line);
		cr_expect_eq(strncmp(run.text, programs[i], strlen(programs[i])), 0, "%s", run.text);
		cr_expect_not_null(strstr(run.text, ": raise it with 'ulimit -s 8192'\n"), "%s", run.text);
		free(run.text);
		snprintf(line, sizeof(line), "env -i sh -c 'ulimit -S -s 16 && exec build/%s --help 2>&1'",
			 programs[i]);
		run = run_command(line);
		cr_expect_eq(run.exit_status, 0, "%s", line);
		cr_expect_not_null(strstr(run.text, "usage: "), "%s", run.text);
		free(run.text);
	}
}

/* An estimate helps no row that is one, and no trace; flow fidelity helps where messages are simulated. */
Test(cli, too_many_events_are_refused_with_what_would_help)
{
	static const struct {
		const char *arguments, *advice;
	} cases[] = {
		{"--estimate --set most_events=5", " events: ask for fewer nodes or iterations, or for a larger '"},
		{"--set most_events=5", " events: ask for fewer nodes or iterations, or for a larger '"},
		{"--set fidelity=message --set most_events=5",
		 " events: ask for fewer nodes or iterations, or for a larger '"},
		{"--trace /dev/null --set most_events=300",
		 " events: ask for fewer nodes or iterations, or for a larger"},
		{"--set fidelity=message --set sweep.nodes=4 --set most_events=300",
		 " events: ask for fewer nodes or iterations, for flow fidelity or an estimate, or for a larger '"},
		{"--set compute.jitter=2% --set most_events=5000",
		 " half a second), or ask for fewer nodes or iterations, or for '--estimate'\n"},
		{"--set compute.jitter=2% --set most_events=5 --set sweep.nodes=1",
		 " events: ask for fewer nodes or iterations, or for a larger '"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char arguments[256];
		struct run run;

		snprintf(arguments, sizeof(arguments), "--quiet --system PS %s %s", cases[i].arguments, QUICKSTART);
		run = run_program("psd-sim", arguments, "2>&1");
		cr_expect_not_null(strstr(run.text, cases[i].advice), "%s: %s", arguments, run.text);
		free(run.text);
	}
}

/* Too many events of one case cost no other case its row: it is estimated, or named at the end with a way out. */
Test(cli, a_case_with_too_many_events_costs_no_other_its_row)
{
	struct run run = run_program("psd-sim",
				     "--quiet --csv --system PS --set fidelity=message --set most_events=300 "
				     "scenarios/quickstart.yaml",
				     "2>&1");

	cr_expect_eq(run.exit_status, 1);
	cr_expect_not_null(strstr(run.text, ",PS,sim-message,1,"), "%s", run.text);
	cr_expect_not_null(strstr(run.text, ",PS,sim-message,2,"), "%s", run.text);
	cr_expect_null(strstr(run.text, ",4,4,"), "%s", run.text);
	cr_expect_not_null(strstr(run.text, "psd-sim: scenarios/quickstart.yaml: 1 of 3 cases have no row, they "
					    "need more than 300 events each: PS at 4 nodes; allow more with '--set "
					    "most_events=N'"),
			   "%s", run.text);
	free(run.text);
	run = run_program("psd-sim", "--quiet --system PS --set most_events=300 scenarios/quickstart.yaml", "2>&1");
	cr_expect_eq(run.exit_status, 0);
	cr_expect_not_null(strstr(run.text,
				  "note: estimated in closed form, since their simulations need more than 300 "
				  "events each (most_events): PS at 4 nodes\n"),
			   "%s", run.text);
	free(run.text);
	run = run_program("psd-sim", "--quiet --csv --system PS --set most_events=300 scenarios/quickstart.yaml",
			  "2>&1");
	cr_expect_not_null(strstr(run.text, ",PS,estimate,4,4,"), "%s", run.text);
	free(run.text);
}

/* Each group has batches of its own, which the next lines name. */
Test(cli, micro_batches_of_groups_have_no_common_size)
{
	struct run run = run_program("psd-sim",
				     "--estimate --system Even --set systems.Even.accumulate=4 "
				     "scenarios/examples/groups.yaml",
				     "");

	cr_expect_not_null(strstr(run.text, "          Even: 4 micro-batches in an iteration\n"), "%s", run.text);
	free(run.text);
	run = run_program("psd-sim",
			  "--estimate --system Ring --set systems.Ring.accumulate=4 scenarios/quickstart.yaml", "");
	cr_expect_not_null(strstr(run.text, " micro-batches of "), "%s", run.text);
	free(run.text);
}

static void expect_told(const char *arguments, const char *words)
{
	struct run run = run_program("psd-sim", arguments, "");

	cr_expect_not_null(strstr(run.text, words), "%s: %s", arguments, run.text);
	free(run.text);
}

Test(cli, numbers_have_the_words_and_digits_that_they_need)
{
	expect_told("ask --question efficiency --system Ring scenarios/quickstart.yaml",
		    "Estimates searched, and 1 simulation (sim-flow) confirmed.");
	expect_told("--estimate --set cluster.groups.1.speed=100 scenarios/examples/groups.yaml",
		    " of speed 10000 %: ");
	expect_told("plan --set systems.Ring.fuse=auto --set systems.Ring.stack=ideal --set "
		    "cluster.network.latency=0us --system Ring scenarios/quickstart.yaml",
		    "fuse is auto: nothing is fused, 6 exchanges in all\n");
}
