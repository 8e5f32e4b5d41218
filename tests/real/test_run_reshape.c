/* psd-run --resume with other hosts or another system than the checkpoint's: messages, refusals, files. Values are
 * tested in session/test_reshape.c. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/real/folder_run.h"
#include "tests/real/tiny_model.h"
#include "tests/scratch_folder.h"

TestSuite(run_reshape, .timeout = 120);

/* 8 samples a worker; an epoch of four workers is 2 iterations, of two 4. */
static const char scenario[] =
	"title: tiny\nmodel: {graph: tiny.yaml, batch_per_worker: 8}\ncompute: {device: cpu}\n"
	"cluster: {stack: none, nodes: 4, network: {bandwidth: 1Gbps, latency: 50us}}\n"
	"systems:\n  - {name: PS, sync: ps}\n  - {name: Ring, sync: ring}\n"
	"  - {name: Held, sync: ring, sparse: {sparsity: 0.5, chunk: 16}}\n"
	"  - {name: Local, sync: ring, local_sgd: {steps: 4, window: 16}}\n"
	"  - {name: Half, sync: ring, wire: fp16}\n"
	"  - {name: Bits, sync: ps, compress: {by: one-bit, momentum: before}}\n"
	"  - {name: Late, sync: ps, staleness: 2}\n"
	"  - {name: Own, sync: ring, staleness: 2, reads: stale, managed: {clock: 2, early: 50%, chunk: 16}}\n"
	"train:\n  data: {kind: synthetic, training_samples: 64, test_samples: 32}\n  iterations: 10\n"
	"  learning_rate: {policy: fixed, base: 0.1}\n  optimiser: {momentum: 0.9}\n";

static struct scratch_folder make_folder(void)
{
	const struct scratch_folder folder = scratch_folder_make();

	scratch_folder_write(&folder, "tiny.yaml", TINY_MODEL, strlen(TINY_MODEL));
	scratch_folder_write(&folder, "wider.yaml", WIDER_MODEL, strlen(WIDER_MODEL));
	scratch_folder_write(&folder, "s.yaml", scenario, strlen(scenario));
	return folder;
}

/* psd-run of the scenario there. */
static struct folder_arguments arguments_of(const struct scratch_folder *folder, const char *options)
{
	struct folder_arguments arguments;

	snprintf(arguments.text, sizeof(arguments.text), "--no-emulation %s/s.yaml --save %s/c --resume %s",
		 folder->path, folder->path, scratch_folder_spell(folder, options).text);
	return arguments;
}

/* Returns its messages. */
static char *run(const struct scratch_folder *folder, const char *options)
{
	const struct folder_arguments arguments = arguments_of(folder, options);
	struct run done = run_program("psd-run", arguments.text, "2>&1 >/dev/null");

	cr_assert_eq(done.exit_status, 0, "%s: %s", arguments.text, done.text);
	return done.text;
}

static void expect_words(const struct scratch_folder *folder, const char *options, const char *words)
{
	char *said = run(folder, options);

	cr_expect_not_null(strstr(said, words), "%s: %s", options, said);
	free(said);
}

static void expect_refusal(const struct scratch_folder *folder, const char *options, const char *words)
{
	char quiet[512];

	snprintf(quiet, sizeof(quiet), "--quiet %s", options);
	expect_one_line("psd-run", arguments_of(folder, quiet).text, 2, words);
}

FOLDER_TEST(run_reshape, it_says_what_goes_on, make_folder())
{
	char *said;

	free(run(&folder, "--system PS --nodes 4 --iterations 2"));
	said = run(&folder, "--system PS --nodes 2 --iterations 4");
	cr_expect_not_null(strstr(said, "psd-run: PS goes on after 2 iterations, from "), "%s", said);
	cr_expect_not_null(strstr(said, "psd-run: the run of 4 hosts by 'PS' goes on with 2 by 'PS'\n"), "%s", said);
	cr_expect_null(strstr(said, "starts anew"), "%s", said);
	free(said);
	expect_words(&folder, "--system Ring --nodes 1 --iterations 6",
		     "psd-run: the run of 2 hosts by 'PS' goes on with 1 by 'Ring'\n");
	expect_words(&folder, "--system Ring --nodes 1 --iterations 8 --set systems.1.fuse=1KiB",
		     "psd-run: the run of 1 host by 'Ring' goes on with 1 by another 'Ring'\n");
	said = run(&folder, "--system Ring --nodes 1 --iterations 9 --set systems.1.fuse=1KiB");
	cr_expect_null(strstr(said, "the run of"), "%s", said);
	free(said);
}

/* Values that the run before had, and this one would have as well. */
FOLDER_TEST(run_reshape, it_says_what_begins_anew, make_folder())
{
	free(run(&folder, "--system Held --nodes 4 --iterations 3"));
	expect_words(&folder, "--system Held --nodes 2 --iterations 5",
		     "psd-run: starts anew: the selection of chunks\n");
	expect_words(&folder, "--system Ring --nodes 2 --iterations 6",
		     "psd-run: starts anew: residuals of gradients\n");
	free(run(&folder, "--system Half --nodes 2 --iterations 7"));
	expect_words(&folder, "--system Half --nodes 3 --iterations 8", "psd-run: starts anew: loss scales\n");
	expect_words(&folder, "--system Bits --nodes 3 --iterations 9", "psd-run: starts anew: momentum\n");
	expect_words(&folder, "--system Held --nodes 3 --iterations 10",
		     "psd-run: starts anew: momentum, residuals of gradients\n");
}

/* Equally many hosts, which keep something else; equally many items, of other tensors. */
FOLDER_TEST(run_reshape, other_positions_of_values_make_another_run, make_folder())
{
	free(run(&folder, "--system PS --nodes 4 --iterations 2"));
	expect_words(&folder, "--system PS --nodes 2 --set systems.0.servers=2 --iterations 3",
		     "psd-run: the run of 4 hosts by 'PS' goes on with 4 by another 'PS'\n");
	expect_words(&folder, "--system PS --nodes 3 --set systems.0.servers=1 --iterations 4",
		     "psd-run: the run of 4 hosts by 'PS' goes on with 4 by another 'PS'\n");
}

/* Checksums would find each change first. */
static void drop_checksums(const struct scratch_folder *folder)
{
	folder_shell(folder, "LC_ALL=C sed -i 's/psd_checksums/old_checksums/; s/psd_xxh64/old_xxh64/' "
			     "c/iteration-2/host-*");
}

/* 2 iterations of 4 workers with 8 samples each. */
FOLDER_TEST(run_reshape, samples_that_cannot_be_are_refused, make_folder())
{
	free(run(&folder, "--system PS --nodes 4 --iterations 2"));
	drop_checksums(&folder);
	folder_shell(&folder, "LC_ALL=C sed -i 's/\"samples\":\"64\"/\"samples\":\"-5\"/' c/iteration-2/host-*");
	expect_refusal(&folder, "--system PS --nodes 4 --iterations 4",
		       "'samples' is '-5', impossible after 2 iterations\n");
	folder_shell(&folder, "LC_ALL=C sed -i 's/\"samples\":\"-5\"/\"samples\":\" 1\"/' c/iteration-2/host-*");
	expect_refusal(&folder, "--system PS --nodes 4 --iterations 4",
		       "'samples' is ' 1', impossible after 2 iterations\n");
}

/* By a system that applies fewer of them later. */
FOLDER_TEST(run_reshape, it_says_which_sums_are_lost, make_folder())
{
	char *said;

	free(run(&folder, "--system Late --nodes 4 --iterations 3"));
	said = run(&folder, "--system Late --nodes 2 --iterations 5");
	cr_expect_null(strstr(said, "starts anew"), "%s", said);
	free(said);
	expect_words(&folder, "--system Late --nodes 2 --iterations 6 --set systems.6.staleness=1",
		     "psd-run: starts anew: sums that 'staleness' had not applied\n");
	said = run(&folder, "--system Late --nodes 2 --iterations 7 --set systems.6.staleness=3");
	cr_expect_null(strstr(said, "starts anew"), "%s", said);
	free(said);
	expect_words(&folder, "--system Ring --nodes 2 --iterations 8",
		     "psd-run: starts anew: sums that 'staleness' had not applied\n");
}

/* The momentum of workers' own updates goes on with them, and is of no use to other systems. */
FOLDER_TEST(run_reshape, own_momentum_goes_to_other_workers, make_folder())
{
	free(run(&folder, "--system Own --nodes 4 --iterations 4"));
	expect_words(&folder, "--system Own --nodes 2 --iterations 6",
		     "psd-run: starts anew: the selection of chunks\n");
	expect_words(&folder, "--system Own --nodes 2 --iterations 8 --set systems.7.staleness=1",
		     "psd-run: starts anew: the selection of chunks\n");
	expect_words(&folder, "--system Ring --nodes 2 --iterations 9",
		     "psd-run: starts anew: momentum, residuals of gradients\n");
}

/* Steps are counted from the start of all runs; what follows the loss has no loss yet. */
FOLDER_TEST(run_reshape, local_steps_go_on_within_a_window, make_folder())
{
	free(run(&folder, "--system Local --nodes 2 --iterations 17"));
	expect_words(&folder, "--system Local --nodes 3 --iterations 50",
		     "psd-run: starts anew: adaptive local steps\n");
	cr_expect(scratch_folder_has(&folder, "c/iteration-50/host-2-of-3.safetensors"));
}

/* Four workers train one and a half of three epochs, 96 samples in 3 iterations; two need 6 iterations for the rest.
 * Each epoch ends with a test, as does a run. */
FOLDER_TEST(run_reshape, epochs_are_of_samples, make_folder())
{
	const char *last;
	char *log;

	folder_shell(&folder, "sed -i 's/  iterations: 10/  epochs: 3/; s/fixed, base/poly, power: 1, base/' s.yaml");
	free(run(&folder, "--system PS --nodes 4 --iterations 3 --log @/log"));
	free(run(&folder, "--system PS --nodes 2 --log @/log"));
	log = scratch_folder_read(&folder, "log");
	last = strstr(log, "\nPS,8,3,");
	cr_expect(last && !strstr(log, "\nPS,9,"), "%s", log);
	for (const char *line = strchr(log, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
		unsigned iteration;
		double epoch;

		cr_assert_eq(sscanf(line + 1, "PS,%u,%lf,", &iteration, &epoch), 2, "%s", log);
		cr_expect_float_eq(epoch, iteration < 3 ? (iteration + 1) / 2.0 : 1.5 + (iteration - 2) / 4.0, 1e-9,
				   "%s", log);
		cr_expect_eq(strchr(line + 1, '\n')[-1] != ',',
			     iteration == 2 || epoch == 1.0 || epoch == 2.0 || epoch == 3.0, "%s", line);
	}
	free(log);
}

/* The log has all iterations, whichever hosts executed them. */
FOLDER_TEST(run_reshape, the_log_goes_on, make_folder())
{
	const char *line;
	char *log;

	free(run(&folder, "--system PS --nodes 2 --iterations 3 --log @/log"));
	free(run(&folder, "--system Ring --nodes 4 --iterations 5 --log @/log"));
	free(run(&folder, "--system PS --nodes 4 --iterations 6 --log @/log"));
	log = scratch_folder_read(&folder, "log");
	line = log;
	for (unsigned i = 0; i < 6; i++) {
		char begin[16];

		snprintf(begin, sizeof(begin), "%s,%u,", i == 3 || i == 4 ? "Ring" : "PS", i);
		line = strchr(line, '\n') + 1;
		cr_expect_eq(strncmp(line, begin, strlen(begin)), 0, "%s: %s", begin, log);
	}
	cr_expect_str_eq(strchr(line, '\n'), "\n");
	free(log);
}

/* Another number of samples in an iteration, with the same hosts: none is left out, or comes twice. */
FOLDER_TEST(run_reshape, samples_are_counted_on_with_other_batches, make_folder())
{
	char *log;

	free(run(&folder, "--system PS --nodes 2 --iterations 3 --log @/log"));
	free(run(&folder, "--system PS --nodes 2 --iterations 5 --log @/log --set model.batch_per_worker=16"));
	log = scratch_folder_read(&folder, "log");
	cr_expect(strstr(log, "\nPS,2,0.75,") && strstr(log, "\nPS,3,1.25,") && strstr(log, "\nPS,4,1.75,"), "%s", log);
	free(log);
}

/* A rate that ends with the job has no iteration behind it. */
FOLDER_TEST(run_reshape, nobody_goes_on_behind_the_end_of_rates, make_folder())
{
	folder_shell(&folder, "sed -i 's/  iterations: 10/  epochs: 3/; s/fixed, base/poly, power: 1, base/' s.yaml");
	free(run(&folder, "--system PS --nodes 4 --iterations 3"));
	expect_refusal(&folder, "--system PS --nodes 2 --iterations 10",
		       "s.yaml: the run has 10 iterations, 'poly' ends after 9: the rate is 0 from there on\n");
	free(run(&folder, "--system PS --nodes 2 --iterations 9"));
}

FOLDER_TEST(run_reshape, a_missing_file_is_named, make_folder())
{
	free(run(&folder, "--system PS --nodes 4 --iterations 2"));
	folder_shell(&folder, "mv c/iteration-2/host-2-of-4.safetensors kept");
	expect_refusal(
		&folder, "--system PS --nodes 2",
		"/c/iteration-2/host-2-of-4.safetensors: the file is missing: to go on with other hosts or another "
		"system, each host needs the files of all 4 hosts in a shared folder; or begin in another "
		"folder with --set train.start=");
	folder_shell(&folder, "mv kept c/iteration-2/host-2-of-4.safetensors");
	free(run(&folder, "--system PS --nodes 2"));
}

FOLDER_TEST(run_reshape, damaged_files_are_refused, make_folder())
{
	free(run(&folder, "--system PS --nodes 4 --iterations 2"));
	drop_checksums(&folder);
	folder_shell(&folder, "cp -r c kept; truncate -s -4 c/iteration-2/host-3-of-4.safetensors");
	expect_refusal(&folder, "--system PS --nodes 2", "/c/iteration-2/host-3-of-4.safetensors");
	folder_shell(&folder, "cp c/parameters.safetensors c/iteration-2/host-3-of-4.safetensors");
	expect_refusal(&folder, "--system PS --nodes 2",
		       "/host-3-of-4.safetensors: the file has no metadata of a checkpoint; no other ");
	folder_shell(&folder, "cp kept/iteration-2/host-1-of-4.safetensors c/iteration-2/host-3-of-4.safetensors");
	expect_refusal(&folder, "--system PS --nodes 2",
		       "/host-3-of-4.safetensors: the checkpoint is of host 1 of 4, its name says 3 of 4; no other ");
	folder_shell(&folder, "rm -r c && cp -r kept c && mv c/iteration-2 c/iteration-3");
	expect_refusal(&folder, "--system PS --nodes 2",
		       "/host-0-of-4.safetensors: the checkpoint is of 2 iterations, its name says 3; no other ");
	folder_shell(&folder, "rm -r c && cp -r kept c && sed -i 's/adaptive 0: /adaptive 0:,/' c/iteration-2/*");
	expect_refusal(&folder, "--system PS --nodes 2",
		       "/host-0-of-4.safetensors: the shard map ('spread') is damaged at ',2,3/1 0,1/1'\n");
	folder_shell(&folder, "rm -r c && cp -r kept c && sed -i 's/workers 4/workers 5/' c/iteration-2/*");
	expect_refusal(&folder, "--system PS --nodes 2",
		       "/host-0-of-4.safetensors: the shard map ('spread') is for 5 hosts, must be for 4\n");
	folder_shell(
		&folder,
		"rm -r c && cp -r kept c && sed -i 's/\"fc1.weight.part_/\"fc1.weight.pant_/' c/iteration-2/*-1-*");
	expect_refusal(&folder, "--system PS --nodes 2",
		       "/host-1-of-4.safetensors: the checkpoint has no 'fc1.weight.part_history' of ");
	folder_shell(&folder, "rm -r c && cp -r kept c && sed -i 's/\"samples\"/\"sampler\"/' c/iteration-2/*");
	expect_refusal(&folder, "--system PS --nodes 2",
		       "is of another version of psd-run, must be resumed with 4 hosts and 'PS'\n");
	free(run(&folder, "--system PS --nodes 4"));
}

FOLDER_TEST(run_reshape, files_of_two_runs_are_told_apart, make_folder())
{
	free(run(&folder, "--system PS --nodes 4 --iterations 2"));
	folder_shell(&folder, "mv c kept");
	free(run(&folder, "--system Ring --nodes 4 --iterations 2"));
	folder_shell(&folder, "cp kept/iteration-2/host-3-of-4.safetensors c/iteration-2");
	expect_refusal(&folder, "--system Ring --nodes 2",
		       "/host-3-of-4.safetensors: the checkpoint is of another run than the file of host 0 beside it; "
		       "no other ");
}

FOLDER_TEST(run_reshape, other_models_and_optimisers_are_refused, make_folder())
{
	free(run(&folder, "--system PS --nodes 4 --iterations 2"));
	expect_refusal(&folder, "--system PS --nodes 2 --set model.graph=@/wider.yaml",
		       ": the checkpoint is of another model: to begin with its parameters alone, see train.start\n");
	folder_shell(&folder, "sed -i 's/momentum: 0.9/kind: adamw/' s.yaml");
	expect_refusal(&folder, "--system PS --nodes 2",
		       ": is of another optimiser than 'adamw', which keeps another state: to begin with its "
		       "parameters alone, see train.start\n");
}

/* Four, then two, who keep two checkpoints as ever, then four again. */
FOLDER_TEST(run_reshape, the_folder_holds_the_last_two_of_all, make_folder())
{
	free(run(&folder, "--system PS --nodes 4 --iterations 4"));
	free(run(&folder, "--system Ring --nodes 2 --iterations 5"));
	cr_expect(scratch_folder_has(&folder, "c/iteration-4/host-3-of-4.safetensors"));
	free(run(&folder, "--system Ring --nodes 2 --iterations 6"));
	cr_expect_not(scratch_folder_has(&folder, "c/iteration-4"));
	free(run(&folder, "--system PS --nodes 4 --iterations 7"));
	free(run(&folder, "--system PS --nodes 4 --iterations 8"));
	cr_expect(scratch_folder_has(&folder, "c/iteration-8/host-3-of-4.safetensors"));
	cr_expect(scratch_folder_has(&folder, "c/iteration-7/host-0-of-4.safetensors"));
	cr_expect_not(scratch_folder_has(&folder, "c/iteration-6"));
}

/* ---- hosts of a file ---- */

/* Runs n hosts, each with its own --rank; true if all have ended well. Their messages are in rank0, rank1 ... */
static void run_hosts(const struct scratch_folder *folder, unsigned n_hosts, const char *options, int status)
{
	char hosts[256] = "", line[4 * PATH_MAX];
	struct run done;

	for (unsigned h = 0; h < n_hosts; h++)
		snprintf(hosts + strlen(hosts), sizeof(hosts) - strlen(hosts), "127.0.0.1:%u\n", keep_port());
	scratch_folder_write(folder, "hosts", hosts, strlen(hosts));
	snprintf(
		line, sizeof(line),
		"cd %s; for rank in $(seq 1 %u); do %s --hosts hosts s.yaml --resume --rank $rank %s >rank$rank 2>&1 & "
		"done; rank=0; %s --hosts hosts s.yaml --resume --rank 0 %s >rank0 2>&1; status=$?; wait; exit $status",
		folder->path, n_hosts - 1, path_of("psd-run").text, options, path_of("psd-run").text, options);
	done = run_command(line);
	cr_expect_eq(done.exit_status, status, "%s: %s", options, done.text);
	free(done.text);
}

static void expect_said(const struct scratch_folder *folder, const char *name, const char *words)
{
	char *said = scratch_folder_read(folder, name);

	cr_expect_not_null(strstr(said, words), "%s: %s", name, said);
	free(said);
}

FOLDER_TEST(run_reshape, hosts_that_share_a_folder_go_on, make_folder())
{
	run_hosts(&folder, 3, "--system PS --save c --iterations 3", 0);
	run_hosts(&folder, 2, "--system Ring --save c --iterations 6", 0);
	expect_said(&folder, "rank0", "psd-run[0]: the run of 3 hosts by 'PS' goes on with 2 by 'Ring'\n");
	cr_expect(scratch_folder_has(&folder, "c/iteration-6/host-1-of-2.safetensors"));
}

FOLDER_TEST(run_reshape, hosts_with_folders_of_their_own_are_told_what_to_do, make_folder())
{
	run_hosts(&folder, 3, "--system PS --save c$rank --iterations 3", 0);
	run_hosts(&folder, 2, "--system PS --save c$rank --iterations 6", 2);
	expect_said(&folder, "rank0",
		    "/iteration-3/host-1-of-3.safetensors: the file is missing: to go on with other hosts ");
	expect_said(&folder, "rank0", "another folder with --set train.start=c0/parameters.safetensors\n");
	expect_said(&folder, "rank1",
		    "another folder with --set train.start=FILE, the parameters.safetensors of host 0's folder\n");
	expect_said(&folder, "rank1",
		    "c1/iteration-3/host-0-of-3.safetensors: the file is missing: to go on with other hosts ");
	run_hosts(&folder, 3, "--system Ring --save c$rank --iterations 6", 2);
	expect_said(&folder, "rank2",
		    "c2/iteration-3/host-0-of-3.safetensors: the file is missing: to go on with other hosts ");
	run_hosts(&folder, 3, "--system PS --save c$rank --iterations 6", 0);
}
