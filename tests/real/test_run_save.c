/* psd-run --save and --resume, and train.start: what is begun, gone on with, or refused. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "real/data/tensor_file.h"
#include "tests/real/folder_run.h"
#include "tests/real/tiny_model.h"
#include "tests/scratch_folder.h"

TestSuite(run_save, .timeout = 120);

static const char without_parameters[] = "name: without\ninput: {channels: 4}\nlayers:\n"
					 "  - {name: relu, kind: relu}\n"
					 "  - {name: loss, kind: softmax-loss}\n";
/* Two workers, 8 samples each; an epoch is 4 iterations. */
static const char scenario[] =
	"title: tiny\nmodel: {graph: tiny.yaml, batch_per_worker: 8}\ncompute: {device: cpu}\n"
	"cluster: {stack: none, nodes: 2, network: {bandwidth: 1Gbps, latency: 50us}}\n"
	"systems:\n  - {name: PS, sync: ps}\n  - {name: Ring, sync: ring}\n  - {name: Adam, sync: adam}\n"
	"train:\n  data: {kind: synthetic, training_samples: 64, test_samples: 32}\n  iterations: 10\n"
	"  learning_rate: {policy: fixed, base: 0.1}\n  optimiser: {momentum: 0.9}\n";

static struct scratch_folder make_folder(void)
{
	const struct scratch_folder folder = scratch_folder_make();

	scratch_folder_write(&folder, "tiny.yaml", TINY_MODEL, strlen(TINY_MODEL));
	scratch_folder_write(&folder, "wider.yaml", WIDER_MODEL, strlen(WIDER_MODEL));
	scratch_folder_write(&folder, "renamed.yaml", RENAMED_MODEL, strlen(RENAMED_MODEL));
	scratch_folder_write(&folder, "without.yaml", without_parameters, strlen(without_parameters));
	scratch_folder_write(&folder, "s.yaml", scenario, strlen(scenario));
	return folder;
}

/* psd-run of the scenario there. */
static struct folder_arguments arguments_of(const struct scratch_folder *folder, const char *options)
{
	struct folder_arguments arguments;

	snprintf(arguments.text, sizeof(arguments.text), "--no-emulation --quiet %s/s.yaml %s", folder->path,
		 scratch_folder_spell(folder, options).text);
	return arguments;
}

static void expect_refusal(const struct scratch_folder *folder, int exit_status, const char *options, const char *words)
{
	expect_one_line("psd-run", arguments_of(folder, options).text, exit_status, words);
}

/* Standard error; the options come last, so that --quiet is taken back by none. */
static char *run_that_fails(const struct scratch_folder *folder, int exit_status, const char *options)
{
	const struct folder_arguments arguments = arguments_of(folder, options);
	struct run done = run_program("psd-run", arguments.text, "2>&1 >/dev/null");

	cr_assert_eq(done.exit_status, exit_status, "%s: %s", arguments.text, done.text);
	return done.text;
}

static char *run(const struct scratch_folder *folder, const char *options)
{
	return run_that_fails(folder, 0, options);
}

static void run_quietly(const struct scratch_folder *folder, const char *options)
{
	char *text = run(folder, options);

	cr_expect_str_eq(text, "", "%s", options);
	free(text);
}

static void append(const struct scratch_folder *folder, const char *name, const char *text)
{
	FILE *out = fopen(scratch_folder_path(folder, name).text, "a");

	cr_assert_not_null(out);
	cr_assert_geq(fputs(text, out), 0);
	cr_assert_eq(fclose(out), 0);
}

FOLDER_TEST(run_save, options_that_do_nothing_are_refused, make_folder())
{
	expect_refusal(&folder, 2, "--system PS --resume", "'--resume' has no effect without '--save'\n");
	expect_refusal(&folder, 2, "--system PS --save-every 4", "'--save-every' has no effect without '--save'\n");
	expect_refusal(&folder, 2, "--save @/c",
		       "s.yaml: the scenario has 3 systems, '--save' is for one: choose it with '--system NAME'\n");
	expect_refusal(&folder, 2, "--system PS --save @/c --set compute.replay=true",
		       "s.yaml: 'replay' trains nothing, '--save' needs a run that trains\n");
	expect_refusal(&folder, 2, "--system PS --save @/s.yaml",
		       "s.yaml: no checkpoint can be written there: Not a directory\n");
	expect_refusal(&folder, 2, "--system PS --save @/no/c",
		       "/no/c: no checkpoint can be written there: No such file or directory\n");
	cr_expect_not(scratch_folder_has(&folder, "c"));
}

/* With an epoch's iterations between checkpoints: 4 and 8 of 10. */
FOLDER_TEST(run_save, an_epoch_lies_between_checkpoints, make_folder())
{
	run_quietly(&folder, "--system PS --save @/c --iterations 7");
	cr_expect(scratch_folder_has(&folder, "c/iteration-4/host-0-of-2.safetensors"));
	cr_expect(scratch_folder_has(&folder, "c/iteration-7/host-1-of-2.safetensors"));
	cr_expect(scratch_folder_has(&folder, "c/parameters.safetensors"));
	run_quietly(&folder, "--system PS --save @/c --resume");
	cr_expect_not(scratch_folder_has(&folder, "c/iteration-7"));
	cr_expect(scratch_folder_has(&folder, "c/iteration-8/host-0-of-2.safetensors"));
	cr_expect(scratch_folder_has(&folder, "c/iteration-10/host-0-of-2.safetensors"));
}

/* As Caffe writes its snapshots; the command line goes before. */
FOLDER_TEST(run_save, a_solver_says_how_often, make_folder())
{
	static const char solver[] = "base_lr: 0.1\nlr_policy: 'fixed'\nsnapshot: 3\nmax_iter: 5\n";
	static const char solved[] =
		"title: tiny\nmodel: {graph: tiny.yaml, batch_per_worker: 8}\ncompute: {device: cpu}\n"
		"cluster: {stack: none, nodes: 2, network: {bandwidth: 1Gbps, latency: 50us}}\n"
		"systems: [{name: PS, sync: ps}]\n"
		"train: {data: {kind: synthetic}, solver: solver.prototxt}\n";

	scratch_folder_write(&folder, "solver.prototxt", solver, strlen(solver));
	scratch_folder_write(&folder, "s.yaml", solved, strlen(solved));
	run_quietly(&folder, "--save @/c");
	cr_expect(scratch_folder_has(&folder, "c/iteration-3/host-0-of-2.safetensors"));
	cr_expect(scratch_folder_has(&folder, "c/iteration-5/host-0-of-2.safetensors"));
	run_quietly(&folder, "--save @/d --save-every 4");
	cr_expect_not(scratch_folder_has(&folder, "d/iteration-3"));
	cr_expect(scratch_folder_has(&folder, "d/iteration-4/host-0-of-2.safetensors"));
}

FOLDER_TEST(run_save, a_resumed_run_ends_like_an_uninterrupted_one, make_folder())
{
	run_quietly(&folder, "--system Ring --save @/whole");
	run_quietly(&folder, "--system Ring --save @/cut --resume --iterations 5");
	cr_expect_not(scratch_folder_is_same(&folder, "whole/parameters.safetensors", "cut/parameters.safetensors"));
	run_quietly(&folder, "--system Ring --save @/cut --resume");
	cr_expect(scratch_folder_is_same(&folder, "whole/parameters.safetensors", "cut/parameters.safetensors"));
}

#define MANAGED                                                                                                        \
	"--system Ring --set systems.1.managed.clock=4 --set systems.1.managed.early=30% --set "                       \
	"systems.1.managed.chunk=16 "

/* Checkpoints are at the ends of clocks, where nothing is withheld. */
FOLDER_TEST(run_save, a_run_with_clocks_goes_on_at_the_end_of_one, make_folder())
{
	run_quietly(&folder, MANAGED "--save @/whole");
	run_quietly(&folder, MANAGED "--save @/cut --save-every 3 --resume --iterations 4");
	cr_expect(scratch_folder_has(&folder, "cut/iteration-4/host-0-of-2.safetensors"));
	cr_expect_not(scratch_folder_has(&folder, "cut/iteration-3"));
	char arguments[512];

	snprintf(arguments, sizeof(arguments), "--no-emulation %s--save %s/cut --resume %s/s.yaml", MANAGED,
		 folder.path, folder.path);
	struct run done = run_program("psd-run", arguments, "2>&1");
	cr_expect_not_null(strstr(done.text, "note: 'Ring' sent "), "%s", done.text);
	cr_expect_not_null(strstr(done.text, " in each iteration but the last of a clock, "), "%s", done.text);
	free(done.text);
	cr_expect(scratch_folder_is_same(&folder, "whole/parameters.safetensors", "cut/parameters.safetensors"));
}

struct ages {
	double mean;
	unsigned most, ahead;
};

/* Runs the first system asynchronously, and reads its note. */
static struct ages run_asynchronously(const struct scratch_folder *folder, const char *options)
{
	const struct scratch_options spelt = scratch_folder_spell(folder, options);
	struct ages ages = {-1.0, 0, 0};
	char arguments[1024];

	snprintf(arguments, sizeof(arguments),
		 "--no-emulation --system PS --set train.learning_rate.base=0.001 %s %s/s.yaml", spelt.text,
		 folder->path);
	struct run done = run_program("psd-run", arguments, "2>&1");
	const char *note = strstr(done.text, "note: 'PS' updated by gradients of parameters that lacked ");

	cr_assert_not_null(note, "%s", done.text);
	cr_expect_eq(sscanf(note,
			    "note: 'PS' updated by gradients of parameters that lacked %lf updates by other workers on "
			    "average, %u at most; a worker was %u iterations ahead",
			    &ages.mean, &ages.most, &ages.ahead),
		     3, "%s", note);
	cr_expect_not_null(strstr(done.text, "workers' parameters differ, also at the end"), "%s", done.text);
	cr_expect_not_null(strstr(done.text, " iterations, each worker's median counts\n"), "%s", done.text);
	free(done.text);
	return ages;
}

/* The counts go on. With a bound of 1, worker A updates in iteration t by parameters to which worker B has added t - 1
 * updates at least, and in t + 1 behind t + 3 of B at most. */
FOLDER_TEST(run_save, an_asynchronous_run_goes_on, make_folder())
{
	static const char options[] = "--set systems.0.asynchronous.bound=1 --save @/c --resume";
	struct ages ages;

	run_quietly(&folder, "--system PS --set systems.0.asynchronous.bound=1 --save @/c --iterations 5 --set "
			     "train.learning_rate.base=0.001");
	ages = run_asynchronously(&folder, options);
	cr_expect(ages.mean >= 0.0 && ages.mean <= ages.most && ages.most <= 4 && ages.ahead <= 1, "%g, %u, %u",
		  ages.mean, ages.most, ages.ahead);
}

/* An epoch is 4 iterations. If worker 0 waited for the slow one at the tests between epochs, it would be 4 ahead. */
FOLDER_TEST(run_save, an_asynchronous_worker_tests_without_waiting, make_folder())
{
	folder_shell(&folder, "sed -i 's/cluster: {/&slow: [{node: 1, compute: 1%}], /' s.yaml");
	const struct ages ages = run_asynchronously(&folder, "--set systems.0.asynchronous.bound=100 --log @/log");
	char *log = scratch_folder_read(&folder, "log");
	double sec = 0.0, last_sec = 0.0, accuracy;
	unsigned iteration, n_tests = 0;

	cr_expect_gt(ages.ahead, 4);
	for (const char *line = strchr(log, '\n'); line && line[1]; line = strchr(line + 1, '\n'), last_sec = sec) {
		const int n = sscanf(line, "\nPS,%u,%*g,%*g,%*g,%lf,%lf", &iteration, &sec, &accuracy);

		cr_expect(n >= 2 && sec >= last_sec, "%s", line);
		cr_expect_eq(n == 3, iteration == 3 || iteration == 7 || iteration == 9, "%s", line);
		n_tests += n == 3;
	}
	cr_expect_eq(n_tests, 3);
	free(log);
}

FOLDER_TEST(run_save, checkpoints_are_not_begun_over, make_folder())
{
	run_quietly(&folder, "--system PS --save @/c");
	expect_refusal(&folder, 2, "--system PS --save @/c",
		       "/c: the folder has checkpoints: go on from them with '--resume', or name another folder\n");
	expect_one_line("psd-run", arguments_of(&folder, "--system PS --save @/c --resume").text, 0,
			"psd-run: PS has been trained for 10 iterations: train for more with --iterations\n");
	expect_one_line("psd-run", arguments_of(&folder, "--system Ring --save @/c --resume").text, 0,
			"psd-run: PS has been trained for 10 iterations: train for more with --iterations\n");
}

/* The whole of it, cut or changed; the run does not begin elsewhere. */
FOLDER_TEST(run_save, a_damaged_checkpoint_is_refused, make_folder())
{
	char command[256];
	struct run cut;

	run_quietly(&folder, "--system PS --save @/c --iterations 4");
	snprintf(command, sizeof(command), "truncate -s -4 %s/c/iteration-4/host-1-of-2.safetensors", folder.path);
	cut = run_command(command);
	cr_assert_eq(cut.exit_status, 0);
	free(cut.text);
	expect_refusal(&folder, 2, "--system PS --save @/c --resume", "/c/iteration-4/host-1-of-2.safetensors");
	scratch_folder_write(&folder, "c/iteration-4/host-1-of-2.safetensors", "", 0);
	expect_refusal(&folder, 2, "--system PS --save @/c --resume", "/c/iteration-4/host-1-of-2.safetensors");
	snprintf(command, sizeof(command), "cp %s/c/parameters.safetensors %s/c/iteration-4/host-1-of-2.safetensors",
		 folder.path, folder.path);
	cut = run_command(command);
	cr_assert_eq(cut.exit_status, 0);
	free(cut.text);
	expect_refusal(&folder, 2, "--system PS --save @/c --resume",
		       "/c/iteration-4/host-1-of-2.safetensors: the file has no metadata of a checkpoint; no other "
		       "checkpoint is whole: name another folder to begin anew\n");
}

/* Damage of the newest one in the shell, where f is a file of it and g one of another host; the line says the words. */
static void expect_older(const struct scratch_folder *folder, const char *damage, const char *words)
{
	char command[512], *text;

	snprintf(command, sizeof(command),
		 "rm -rf c && cp -r whole c && cd c/iteration-8 && f=host-1-of-2.safetensors && "
		 "g=host-0-of-2.safetensors && %s",
		 damage);
	folder_shell(folder, command);
	text = run(folder, "--system PS --save @/c --resume");
	cr_expect_not_null(strstr(text, words), "%s: %s", damage, text);
	cr_expect_not_null(strstr(text, ": the checkpoint of 8 iterations is skipped\n"), "%s: %s", damage, text);
	cr_expect(scratch_folder_is_same(folder, "c/iteration-10/host-1-of-2.safetensors",
					 "uncut/iteration-10/host-1-of-2.safetensors"),
		  "%s", damage);
	free(text);
}

/* Whatever is wrong with its files: the run goes on from the one before, and ends with the same bits. */
Test(run_save, a_checkpoint_that_is_not_whole_is_skipped)
{
	const struct scratch_folder folder = make_folder();

	run_quietly(&folder, "--system PS --save @/uncut");
	run_quietly(&folder, "--system PS --save @/whole --iterations 8");
	run_quietly(&folder, "--system PS --save @/other --iterations 8 --set seed=7");
	expect_older(&folder, "truncate -s -4 $f", "/host-1-of-2.safetensors:1:");
	expect_older(&folder, ": >$f", "/host-1-of-2.safetensors: at byte 0: ");
	expect_older(&folder, "cp ../parameters.safetensors $f",
		     "/host-1-of-2.safetensors: the file has no metadata of a");
	expect_older(&folder, "cp $g $f",
		     "/host-1-of-2.safetensors: the checkpoint is of host 0 of 2, its name says 1 of 2");
	expect_older(&folder, "cp ../iteration-4/$g $g",
		     "/host-0-of-2.safetensors: the checkpoint is of 4 iterations, its name says 8");
	expect_older(&folder, "echo x >>$g", "/host-0-of-2.safetensors: ");
	expect_older(&folder, "rm $f", "/host-1-of-2.safetensors: the file is missing: the checkpoint of 8 ");
	expect_older(&folder, "mv $f host-1-of-3.safetensors && rm $g",
		     "/host-0-of-3.safetensors: the file is missing");
	expect_older(&folder, "cp ../../other/iteration-8/$f $f",
		     "/host-1-of-2.safetensors: the checkpoint is of another run than the file of host 0 beside it");
	scratch_folder_remove(&folder);
}

/* Lines of the log up to the checkpoint stay, those after it are written again; seconds go on. */
FOLDER_TEST(run_save, the_log_goes_on, make_folder())
{
	double last_sec = 0.0;
	unsigned n = 0;
	char *log;

	run_quietly(&folder, "--system Ring --save @/c --log @/log --iterations 6");
	append(&folder, "log", "Ring,6,1,1,1,99,\nRing,7,1,1,1,99,\nRing,3"); /* a run that was killed later */
	run_quietly(&folder, "--system Ring --save @/c --log @/log --resume");
	log = scratch_folder_read(&folder, "log");
	for (const char *line = strchr(log, '\n'); line && line[1]; line = strchr(line + 1, '\n'), n++) {
		unsigned iteration;
		double epoch, loss, ratio, sec;

		cr_assert_eq(sscanf(line + 1, "Ring,%u,%lf,%lf,%lf,%lf,", &iteration, &epoch, &loss, &ratio, &sec), 5,
			     "%s", line + 1);
		cr_expect_eq(iteration, n);
		cr_expect_gt(sec, last_sec);
		last_sec = sec;
	}
	cr_expect_eq(n, 10, "%s", log);
	free(log);
}

/* It does not become one, even where its lines look like a log's. */
FOLDER_TEST(run_save, a_file_that_is_no_log_is_not_resumed, make_folder())
{
	run_quietly(&folder, "--system Ring --save @/c --log @/log --iterations 6");
	folder_shell(&folder, "tail -n +2 log >notes");
	expect_refusal(&folder, 2, "--system Ring --save @/c --log @/notes --resume",
		       "/notes: '--resume' continues a log, which begins with 'system,iteration,epoch,loss,"
		       "training_accuracy_ratio,elapsed_sec,test_accuracy_ratio', the file begins with 'Ring,0,0.25,");
	folder_shell(&folder, "tail -n +2 log | cmp - notes");
	expect_refusal(&folder, 2, "--system Ring --save @/new --log @/s.yaml --restarts 1", "/s.yaml: ");
	cr_expect_not(scratch_folder_has(&folder, "new"));
}

FOLDER_TEST(run_save, a_log_that_lacks_lines_goes_on_and_says_so, make_folder())
{
	char *text;

	run_quietly(&folder, "--system Ring --save @/c --log @/log --iterations 6");
	folder_shell(&folder, "sed -i '/Ring,2,/d' log; truncate -s -3 log");
	text = run(&folder, "--system Ring --save @/c --log @/log --resume");
	cr_expect_not_null(strstr(text, "/log: lacks the lines of iterations 2, 5\n"), "%s", text);
	free(text);
	folder_shell(&folder, "test $(grep -c '^Ring,[0-9]*,[^,]*,[^,]*,[^,]*,[^,]*,[^,]*$' log) = 8");
	folder_shell(&folder, "test $(wc -l <log) = 9");
}

FOLDER_TEST(run_save, without_a_checkpoint_it_begins_and_says_so, make_folder())
{
	char arguments[512];
	struct run done;

	snprintf(arguments, sizeof(arguments), "--no-emulation --system PS --save %s/c --resume %s/s.yaml", folder.path,
		 folder.path);
	done = run_program("psd-run", arguments, "2>&1 >/dev/null");
	cr_expect_eq(done.exit_status, 0);
	cr_expect_not_null(strstr(done.text, "/c: no checkpoint to go on from, PS begins at the beginning\n"), "%s",
			   done.text);
	free(done.text);
	snprintf(arguments, sizeof(arguments),
		 "--no-emulation --system PS --save %s/c --resume --iterations 14 %s/s.yaml", folder.path, folder.path);
	done = run_program("psd-run", arguments, "2>&1 >/dev/null");
	cr_expect_eq(done.exit_status, 0);
	cr_expect_not_null(strstr(done.text, "psd-run: PS goes on after 10 iterations, from "), "%s", done.text);
	cr_expect_not_null(strstr(done.text, "PS: iteration 11 of 14, "), "%s", done.text);
	cr_expect_null(strstr(done.text, "PS: iteration 10 of 14, "), "%s", done.text);
	free(done.text);
}

/* A run that resumes from the checkpoint does not test again. */
FOLDER_TEST(run_save, a_test_is_in_the_log_before_its_checkpoint, make_folder())
{
	char *log, *line;

	/* The only worker cannot write: another one would end the run before worker 0 has tested. */
	folder_shell(&folder, "mkdir c && ln -s nowhere c/iteration-8");
	free(run_that_fails(&folder, 1, "--system PS --save @/c --log @/log --set cluster.nodes=1"));
	log = scratch_folder_read(&folder, "log");
	line = strstr(log, "\nPS,7,");
	cr_assert_not_null(line, "%s", log);
	cr_expect(!strchr(line + 1, '\n')[1] && strchr(line + 1, '\n')[-1] != ',', "the last line, tested: %s", log);
	free(log);
}

/* If the last checkpoint is complete, no run would write the parameters later. */
FOLDER_TEST(run_save, parameters_are_there_before_the_checkpoint, make_folder())
{
	char *text;

	folder_shell(&folder, "mkdir c && ln -s nowhere c/parameters.safetensors.part");
	text = run_that_fails(&folder, 1, "--system PS --save @/c --iterations 3");
	cr_expect_not_null(strstr(text, "/c/parameters.safetensors: cannot be written: Too many levels of "), "%s",
			   text);
	cr_expect_not(scratch_folder_has(&folder, "c/iteration-3/host-0-of-2.safetensors"));
	free(text);
}

/* Before the run begins, not at its first checkpoint. */
FOLDER_TEST(run_save, names_of_another_kind_are_refused, make_folder())
{
	static const char *const rows[][2] = {
		{"mkdir parameters.safetensors", "/c/parameters.safetensors: is a folder, must be a regular file\n"},
		{"mkfifo parameters.safetensors",
		 "/c/parameters.safetensors: is a device, a pipe or a socket, must be a regular file\n"},
		{"mkdir parameters.safetensors.part",
		 "/c/parameters.safetensors.part: is a folder, must be a regular file\n"},
		{": >iteration-4", "/c/iteration-4: is a file, must be a folder\n"},
		{"mkdir -p iteration-4/host-1-of-2.safetensors",
		 "/c/iteration-4/host-1-of-2.safetensors: is a folder, must be a regular file\n"},
		{"mkdir -p iteration-4/host-1-of-2.safetensors.part",
		 "/c/iteration-4/host-1-of-2.safetensors.part: is a folder, must be a regular file\n"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char command[256];

		snprintf(command, sizeof(command), "rm -rf c && mkdir c && cd c && %s", rows[i][0]);
		folder_shell(&folder, command);
		expect_refusal(&folder, 2, "--system PS --save @/c --log @/log", rows[i][1]);
		cr_expect_not(scratch_folder_has(&folder, "log"));
	}
}

/* A run that was killed at its checkpoint 8 left one file, which must not stay beside the next run's others. */
FOLDER_TEST(run_save, files_of_an_earlier_run_are_removed, make_folder())
{
	run_quietly(&folder, "--system PS --save @/c --iterations 8");
	folder_shell(&folder, "rm c/iteration-8/host-1-of-2.safetensors");
	folder_shell(&folder, "ln -s nowhere c/iteration-6");
	free(run_that_fails(&folder, 1,
			    "--system PS --save @/c --resume --save-every 2 --set train.learning_rate.base=0.2"));
	cr_expect(scratch_folder_has(&folder, "c/iteration-4/host-0-of-2.safetensors"));
	cr_expect_not(scratch_folder_has(&folder, "c/iteration-8/host-0-of-2.safetensors"));
}

/* With tensors of the same shapes. */
FOLDER_TEST(run_save, layers_of_other_kinds_are_refused, make_folder())
{
	static const char model[] = TINY_MODEL;
	char bent[sizeof(model) + 64];

	snprintf(bent, sizeof(bent), "%.*s  - {name: bend, kind: relu}\n%s",
		 (int)(strstr(model, "  - {name: fc2") - model), model, strstr(model, "  - {name: fc2"));
	scratch_folder_write(&folder, "relu.yaml", bent, strlen(bent));
	memcpy(strstr(bent, "relu"), "tanh", 4);
	scratch_folder_write(&folder, "tanh.yaml", bent, strlen(bent));
	run_quietly(&folder, "--system PS --save @/c --iterations 4 --set model.graph=@/relu.yaml");
	expect_refusal(&folder, 2, "--system PS --save @/c --resume --set model.graph=@/tanh.yaml",
		       "is of another model: to begin with its parameters alone, see train.start\n");
	/* also where no iteration is left to do */
	expect_refusal(&folder, 2, "--system PS --save @/c --resume --iterations 4 --set model.graph=@/tanh.yaml",
		       "is of another model: to begin with its parameters alone, see train.start\n");
	run_quietly(&folder, "--system PS --save @/c --resume --set model.graph=@/relu.yaml");
}

FOLDER_TEST(run_save, a_file_of_another_host_is_refused, make_folder())
{
	run_quietly(&folder, "--system PS --save @/c --iterations 4");
	folder_shell(&folder, "cp c/iteration-4/host-0-of-2.safetensors c/iteration-4/host-1-of-2.safetensors");
	expect_refusal(&folder, 2, "--system PS --save @/c --resume",
		       "/c/iteration-4/host-1-of-2.safetensors: the checkpoint is of host 0 of 2, its name says 1 of "
		       "2; no other checkpoint is whole: name another folder to begin anew\n");
}

/* A run with older checkpoints is not begun again, and its files are not removed. */
FOLDER_TEST(run_save, lost_files_are_reported, make_folder())
{
	run_quietly(&folder, "--system PS --save @/c --iterations 8");
	folder_shell(&folder, "rm c/iteration-4/host-1-of-2.safetensors c/iteration-8/host-0-of-2.safetensors");
	expect_refusal(
		&folder, 2, "--system PS --save @/c --resume",
		"/c: the folder has checkpoints, but none with the files of all hosts: restore the missing files, or "
		"name another folder to begin anew\n");
	cr_expect(scratch_folder_has(&folder, "c/iteration-8/host-1-of-2.safetensors"));
}

/* A run that resumes another one, which was killed, need not wait for it. */
FOLDER_TEST(run_save, two_runs_have_two_folders, make_folder())
{
	char line[4 * PATH_MAX];
	struct run done;

	snprintf(line, sizeof(line),
		 "cd %s; run() { exec %s --no-emulation --quiet --system PS --save c s.yaml \"$@\" 2>&1 >/dev/null; }; "
		 "run --iterations 1000000 --save-every 1 & first=$!; until [ -e c/parameters.safetensors ]; do :; "
		 "done; "
		 "(run --resume); printf $?; kill -9 $first; wait $first; (run --resume --iterations 1); printf $?",
		 folder.path, path_of("psd-run").text);
	done = run_command(line);
	cr_expect_not_null(strstr(done.text, "c: is being written by another run (process "), "%s", done.text);
	cr_expect_not_null(strstr(done.text, ": train for more with --iterations\n0"), "%s", done.text);
	free(done.text);
}

/* Two runs at a time, from one folder. */
FOLDER_TEST(run_save, an_output_is_of_one_run_at_a_time, make_folder())
{
	char line[4 * PATH_MAX], words[64];
	struct run done;
	int first;

	snprintf(line, sizeof(line),
		 "cd %s; run() { exec %s --no-emulation --quiet --system PS s.yaml \"$@\" 2>&1 >/dev/null; }; "
		 "run --iterations 1000000 --log log --trace trace & first=$!; until [ -e log ]; do :; done; "
		 "ln -s log link; echo $first; (run --log link); echo $?; (run --trace ./trace); echo $?; "
		 "(run --log other --iterations 1); echo $?; kill -9 $first; wait $first; "
		 "(run --log link --trace trace --iterations 1); echo $?",
		 folder.path, path_of("psd-run").text);
	done = run_command(line);
	cr_assert_eq(sscanf(done.text, "%d", &first), 1, "%s", done.text);
	snprintf(words, sizeof(words), "link: is being written by another run (process %d)\n2\n", first);
	cr_expect_not_null(strstr(done.text, words), "%s", done.text);
	snprintf(words, sizeof(words), "trace: is being written by another run (process %d)\n2\n0\n0\n", first);
	cr_expect_not_null(strstr(done.text, words), "%s", done.text);
	free(done.text);
}

/* More servers than tensors. */
FOLDER_TEST(run_save, a_server_that_keeps_nothing_is_refused, make_folder())
{
	expect_refusal(&folder, 2, "--system Adam --save @/c --set systems.2.servers=9",
		       " of system 'Adam' has no tensor, with '--save' each must have one: choose fewer 'servers'\n");
}

/* ---- hosts of their own ---- */

static void add_hosts(const struct scratch_folder *folder)
{
	char hosts[64];

	snprintf(hosts, sizeof(hosts), "127.0.0.1:%u\n127.0.0.1:%u\n", keep_port(), keep_port());
	scratch_folder_write(folder, "hosts", hosts, strlen(hosts));
}

/* Both hosts, each with options of its own; their status as digits, and what they say to rank0 and rank1. */
static void run_hosts(const struct scratch_folder *folder, const char *options, const char *others,
		      const char *expected_status)
{
	const char *program = path_of("psd-run").text;
	char line[4 * PATH_MAX];
	struct run done;

	snprintf(line, sizeof(line),
		 "cd %s; run() { %s --hosts hosts --quiet --system PS s.yaml --rank \"$@\"; }; (run 1 %s >rank1 2>&1; "
		 "echo $? >status1) & run 0 %s >rank0 2>&1; printf $?; wait; cat status1",
		 folder->path, program, others, options);
	done = run_command(line);
	cr_expect_eq(strncmp(done.text, expected_status, 2), 0, "%s and %s: %s", options, others, done.text);
	free(done.text);
}

static void expect_words(const struct scratch_folder *folder, const char *name, const char *words)
{
	char *text = scratch_folder_read(folder, name);

	cr_expect_not_null(strstr(text, words), "%s", text);
	free(text);
}

FOLDER_TEST(run_save, hosts_agree_on_what_is_saved, make_folder())
{
	add_hosts(&folder);
	run_hosts(&folder, "--save c", "", "11");
	expect_words(&folder, "rank0", "'--save, iterations between checkpoints' is 4 here, none there\n");
	run_hosts(&folder, "--save c --save-every 5", "--save c --save-every 7", "11");
	expect_words(&folder, "rank1", "'--save, iterations between checkpoints' is 7 here, 5 there\n");
}

/* Each in its own folder: of two runs, which ended after as many iterations. */
/* No host leaves before all have their last checkpoint. */
FOLDER_TEST(run_save, no_host_is_done_while_another_cannot_save, make_folder())
{
	char *said;

	add_hosts(&folder);
	scratch_folder_add(&folder, "c1");
	folder_shell(&folder, "ln -s nowhere c1/iteration-10");
	run_hosts(&folder, "--save c0 --save-every 20", "--save c1 --save-every 20", "11");
	said = scratch_folder_read(&folder, "rank0");
	cr_expect_not_null(strstr(said, "c1/iteration-10: is a symbolic link, must be a folder: no checkpoint "), "%s",
			   said);
	free(said);
}

FOLDER_TEST(run_save, hosts_go_on_from_one_run_alone, make_folder())
{
	add_hosts(&folder);
	run_hosts(&folder, "--save c0 --iterations 4", "--save c1 --iterations 4", "00");
	run_hosts(&folder, "--save d0 --iterations 4 --set train.learning_rate.base=0.2",
		  "--save d1 --iterations 4 --set train.learning_rate.base=0.2", "00");
	run_hosts(&folder, "--save c0 --resume", "--save d1 --resume", "11");
	expect_words(&folder, "rank0", "'--resume, run of the checkpoint' is ");
	run_hosts(&folder, "--save c0 --resume", "--save c1 --resume", "00");
}

/* To the byte, as if they had never been cut: at a checkpoint that host 1 cannot write. */
FOLDER_TEST(run_save, hosts_of_their_own_go_on, make_folder())
{
	add_hosts(&folder);
	run_hosts(&folder, "--save c0", "--save c1", "00");
	scratch_folder_add(&folder, "d1");
	folder_shell(&folder, "ln -s nowhere d1/iteration-8");
	run_hosts(&folder, "--save d0", "--save d1", "11");
	folder_shell(&folder, "rm -rf d0/iteration-8 d1/iteration-8");
	run_hosts(&folder, "--save d0 --resume", "--save d1 --resume", "00");
	cr_expect(scratch_folder_is_same(&folder, "c0/iteration-10/host-0-of-2.safetensors",
					 "d0/iteration-10/host-0-of-2.safetensors"));
	cr_expect(scratch_folder_is_same(&folder, "c1/iteration-10/host-1-of-2.safetensors",
					 "d1/iteration-10/host-1-of-2.safetensors"));
}

/* Host 1's newest checkpoint is not whole: both go on from the one before. */
Test(run_save, hosts_go_on_from_what_is_whole_on_all)
{
	const struct scratch_folder folder = make_folder();

	add_hosts(&folder);
	run_hosts(&folder, "--save uncut0", "--save uncut1", "00");
	run_hosts(&folder, "--save c0 --iterations 8", "--save c1 --iterations 8", "00");
	folder_shell(&folder, "truncate -s 100 c1/iteration-8/host-1-of-2.safetensors");
	run_hosts(&folder, "--save c0 --resume", "--save c1 --resume", "00");
	expect_words(&folder, "rank1", "psd-run[1]: c1/iteration-8/host-1-of-2.safetensors: ");
	expect_words(&folder, "rank1", ": the checkpoint of 8 iterations is skipped\n");
	cr_expect(scratch_folder_is_same(&folder, "uncut0/parameters.safetensors", "c0/parameters.safetensors"));
	scratch_folder_remove(&folder);
}

/* Trained parameters whose checkpoints were removed stay. */
Test(run_save, parameters_alone_are_not_replaced)
{
	static const char *const options[] = {"--system PS --save @/c", "--system PS --save @/c --resume",
					      "--system PS --save @/c --restarts 1"};
	const struct scratch_folder folder = make_folder();

	run_quietly(&folder, "--system PS --save @/c");
	folder_shell(&folder, "rm -r c/iteration-*; cp c/parameters.safetensors trained");
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		expect_refusal(&folder, 2, options[i],
			       "/c: has the parameters of an earlier run but no checkpoint: name another folder; ");
	cr_expect(scratch_folder_is_same(&folder, "c/parameters.safetensors", "trained"));
	run_quietly(&folder, "--system PS --save @/d --set train.start=@/c/parameters.safetensors");
	scratch_folder_remove(&folder);
}

/* The last checkpoint is one host's alone: it keeps the other from waiting for it. */
Test(run_save, a_host_that_is_done_says_so, .timeout = 60)
{
	const struct scratch_folder folder = make_folder();

	add_hosts(&folder);
	run_hosts(&folder, "--save c0", "--save c1", "00");
	folder_shell(&folder, "rm -r c1/iteration-10");
	run_hosts(&folder, "--save c0 --resume", "--save c1 --resume", "01");
	expect_words(&folder, "rank0", "PS has been trained for 10 iterations: train for more with --iterations\n");
	expect_words(&folder, "rank1", ": has written the last checkpoint of this run, after 10 iterations\n");
	folder_shell(&folder, "rm -r c0/iteration-10");
	run_hosts(&folder, "--save c0 --resume", "--save c1 --resume", "00");
	run_hosts(&folder, "--save c0 --resume", "--save c1 --resume", "00");
	scratch_folder_remove(&folder);
}

/* ---- train.start ---- */

/* Norm of the difference between the parameters of two runs. */
static double distance(const struct scratch_folder *folder, const char *one, const char *other)
{
	const char *const names[] = {one, other};
	struct psd_error err = {.text = ""};
	struct psd_tensor_file *files[2];
	double squares = 0.0;

	for (unsigned f = 0; f < 2; f++)
		cr_assert_eq(psd_tensor_file_open(&files[f], scratch_folder_path(folder, names[f]).text, &err), PSD_OK,
			     "%s", err.text);
	for (unsigned t = 0; psd_tensor_file_at(files[0], t); t++) {
		const struct psd_file_tensor *tensor = psd_tensor_file_at(files[0], t);
		uint64_t n_bytes;
		float values[2][256];

		cr_assert(psd_file_tensor_bytes(tensor, &n_bytes) && n_bytes <= sizeof(values[0]));
		for (unsigned f = 0; f < 2; f++)
			cr_assert_eq(psd_tensor_file_read(files[f], psd_tensor_file_find(files[f], tensor->name), 0,
							  n_bytes, values[f], &err),
				     PSD_OK, "%s", err.text);
		for (unsigned i = 0; i < n_bytes / sizeof(float); i++)
			squares += pow((double)values[0][i] - (double)values[1][i], 2);
	}
	psd_tensor_file_close(files[0]);
	psd_tensor_file_close(files[1]);
	return sqrt(squares);
}

/* On another number of workers, by another method, at a rate at which parameters stay where they are but for their last
 * bits. */
FOLDER_TEST(run_save, training_starts_from_a_file, make_folder())
{
	run_quietly(&folder, "--system PS --save @/a");
	run_quietly(&folder, "--system Ring --nodes 1 --save @/b --iterations 1 "
			     "--set train.start=@/a/parameters.safetensors --set train.learning_rate.base=1e-6");
	run_quietly(&folder, "--system Ring --nodes 1 --save @/c --iterations 1 --set train.learning_rate.base=1e-6");
	cr_expect_lt(distance(&folder, "a/parameters.safetensors", "b/parameters.safetensors"), 1e-4);
	cr_expect_gt(distance(&folder, "a/parameters.safetensors", "c/parameters.safetensors"), 0.1);
}

FOLDER_TEST(run_save, a_start_that_does_not_fit_is_refused, make_folder())
{
	char arguments[512];
	struct run done;

	run_quietly(&folder, "--system PS --save @/a --iterations 1");
	expect_refusal(&folder, 2,
		       "--system PS --set train.start=@/a/parameters.safetensors --set model.graph=@/wider.yaml",
		       "/a/parameters.safetensors: 'fc2.weight' is F32 4 x 8, must be F32 6 x 8\n");
	expect_refusal(&folder, 2, "--system PS --set train.start=@/nowhere", "/nowhere: ");
	expect_refusal(&folder, 2, "--system PS --set train.start=@/s.yaml", "/s.yaml: ");
	scratch_folder_write(&folder, "m.onnx", "m", 1);
	expect_refusal(&folder, 2, "--system PS --set train.start=@/m.onnx",
		       "/m.onnx: is an ONNX network, must be a safetensors file: 'psd-run weights' converts it");
	snprintf(arguments, sizeof(arguments),
		 "--no-emulation --system PS --iterations 1 --set train.start=%s/a/parameters.safetensors "
		 "--set model.graph=%s/renamed.yaml %s/s.yaml",
		 folder.path, folder.path, folder.path);
	done = run_program("psd-run", arguments, "2>&1 >/dev/null");
	cr_expect_eq(done.exit_status, 0);
	cr_expect_not_null(strstr(done.text,
				  "/a/parameters.safetensors: has 2 of the model's 4 parameters and "
				  "statistics, the others start as the model says: other.weight, other.bias\n"),
			   "%s", done.text);
	free(done.text);
}

/* The start is of the run that begins; what goes on has its own parameters. */
FOLDER_TEST(run_save, a_run_that_started_from_a_file_goes_on, make_folder())
{
	const char start[] = "--set train.start=@/a/parameters.safetensors";
	char options[256];

	run_quietly(&folder, "--system PS --save @/a --iterations 3");
	snprintf(options, sizeof(options), "--system Ring --save @/whole %s", start);
	run_quietly(&folder, options);
	snprintf(options, sizeof(options), "--system Ring --save @/cut --resume --iterations 5 %s", start);
	run_quietly(&folder, options);
	snprintf(options, sizeof(options), "--system Ring --save @/cut --resume %s", start);
	run_quietly(&folder, options);
	cr_expect(scratch_folder_is_same(&folder, "whole/parameters.safetensors", "cut/parameters.safetensors"));
}

/* ---- odd cases ---- */

FOLDER_TEST(run_save, a_model_without_parameters_goes_on, make_folder())
{
	const char train[] = "--system Ring --set model.graph=@/without.yaml";
	char options[256];

	snprintf(options, sizeof(options), "%s --save @/c --iterations 5", train);
	run_quietly(&folder, options);
	folder_shell(&folder, "cp c/parameters.safetensors start");
	snprintf(options, sizeof(options), "%s --save @/c --resume --set train.start=@/start", train);
	run_quietly(&folder, options);
	cr_expect(scratch_folder_has(&folder, "c/iteration-10/host-1-of-2.safetensors"));
	snprintf(options, sizeof(options), "%s --set train.start=@/c/parameters.safetensors", train);
	run_quietly(&folder, options);
}

/* Without the files of checkpoints, which somebody has removed to save space. */
FOLDER_TEST(run_save, parameters_of_an_earlier_run_are_kept, make_folder())
{
	run_quietly(&folder, "--system PS --save @/c --iterations 4");
	folder_shell(&folder, "cp c/parameters.safetensors earlier && rm c/iteration-*/host-*");
	free(run(&folder, "--system PS --save @/c --iterations 2 --set seed=7"));
	cr_expect(scratch_folder_is_same(&folder, "earlier", "c/kept-1.safetensors"));
}

/* The job is done: nothing is trained, and nothing is traced. */
FOLDER_TEST(run_save, an_older_trace_stays_when_nothing_is_trained, make_folder())
{
	run_quietly(&folder, "--system PS --save @/c --iterations 4 --trace @/t.json");
	folder_shell(&folder, "cp t.json earlier");
	free(run(&folder, "--system PS --save @/c --iterations 4 --resume --trace @/t.json"));
	cr_expect(scratch_folder_is_same(&folder, "earlier", "t.json"));
}
