/* psd-run --secret: hosts that know it train as without, others are kept out, and what cannot be is one line. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real/net/secret.h"
#include "tests/cli_helper.h"
#include "tests/real/kept_port.h"
#include "tests/scratch_folder.h"

#ifdef PSD_HAS_TLS

TestSuite(run_secret, .timeout = 120);

/* A tensor of eight chunks, so that several connections have work. */
static const char model[] = "name: one\ninput: {channels: 1024}\nlayers:\n"
			    "  - {name: fc1, kind: inner-product, outputs: 1024}\n"
			    "  - {name: fc2, kind: inner-product, outputs: 4}\n"
			    "  - {name: loss, kind: softmax-loss}\n";
static const char scenario[] =
	"title: secret\nmodel: {graph: one.yaml, batch_per_worker: 4}\ncompute: {device: cpu}\n"
	"cluster: {stack: none, nodes: 2, network: {bandwidth: 1Gbps, latency: 50us}}\n"
	"systems:\n  - {name: PS, sync: ps}\n  - {name: Ring, sync: ring}\n"
	"train:\n  data: {kind: synthetic, training_samples: 64, test_samples: 32}\n  iterations: 6\n"
	"  learning_rate: {policy: fixed, base: 0.01}\n";

static struct scratch_folder make_folder(void)
{
	const struct scratch_folder folder = scratch_folder_make();
	char hosts[64];

	snprintf(hosts, sizeof(hosts), "127.0.0.1:%u\n127.0.0.1:%u\n", keep_port(), keep_port());
	scratch_folder_write(&folder, "hosts", hosts, strlen(hosts));
	scratch_folder_write(&folder, "one.yaml", model, strlen(model));
	scratch_folder_write(&folder, "s.yaml", scenario, strlen(scenario));
	scratch_folder_write(&folder, "secret", "0123456789abcdef", 16);
	scratch_folder_write(&folder, "other", "0123456789abcdeg", 16);
	scratch_folder_write(&folder, "short", "0123456789abcde", 15);
	cr_assert_eq(chmod(scratch_folder_path(&folder, "secret").text, 0600), 0);
	cr_assert_eq(chmod(scratch_folder_path(&folder, "other").text, 0640), 0);
	return folder;
}

/* Messages of both hosts, with the options of each, and the status of host 0. */
static struct run run_both(const struct scratch_folder *folder, const char *zero, const char *one)
{
	const struct program_path program = path_of("psd-run");
	char command[2 * PATH_MAX];

	snprintf(command, sizeof(command),
		 "cd %s; program=$(realpath %s); $program --hosts hosts --rank 1 --join-timeout 60s %s s.yaml 2>&1 & "
		 "$program --hosts hosts --rank 0 %s %s s.yaml 2>&1; status=$?; wait $! || "
		 "status=$((status + 10 * $?)); exit $status",
		 folder->path, program.text, one, strstr(zero, "--join-timeout") ? "" : "--join-timeout 60s", zero);
	return run_command(command);
}

static void train(const struct scratch_folder *folder, const char *options, const char *secret)
{
	char all[256];
	struct run done;

	snprintf(all, sizeof(all), "--quiet --csv %s %s", options, secret);
	done = run_both(folder, all, all);
	cr_assert_eq(done.exit_status, 0, "%s: %s", all, done.text);
	free(done.text);
}

static void expect_same(const struct scratch_folder *folder, const char *one, const char *other)
{
	char files[2][64];

	snprintf(files[0], sizeof(files[0]), "%s/parameters.safetensors", one);
	snprintf(files[1], sizeof(files[1]), "%s/parameters.safetensors", other);
	cr_expect(scratch_folder_is_same(folder, files[0], files[1]), "%s, %s", one, other);
}

/* To the bit: by one connection, by several that have threads, by a server's. */
FOLDER_TEST(run_secret, hosts_that_share_one_train_as_without, make_folder())
{
	train(&folder, "--system Ring --save plain", "");
	train(&folder, "--system Ring --save one", "--secret secret");
	expect_same(&folder, "plain", "one");
	train(&folder, "--system Ring --set train.streams=4 --save four", "--secret secret");
	expect_same(&folder, "plain", "four");
	train(&folder, "--system PS --save plain-ps", "");
	train(&folder, "--system PS --save ps", "--secret secret");
	expect_same(&folder, "plain-ps", "ps");
}

/* Their tensors go through memory; what they say to each other does not. */
FOLDER_TEST(run_secret, hosts_of_one_node_share_one_as_well, make_folder())
{
	train(&folder, "--system Ring --set cluster.workers_per_node=2 --set cluster.nodes=1 --save plain", "");
	train(&folder, "--system Ring --set cluster.workers_per_node=2 --set cluster.nodes=1 --save one",
	      "--secret secret");
	expect_same(&folder, "plain", "one");
}

/* All systems, one after the other: hosts join for each. */
FOLDER_TEST(run_secret, hosts_that_share_one_join_again_and_again, make_folder())
{
	train(&folder, "", "--secret secret");
}

/* Host 1 knows at once, host 0 has a remark and waits; neither says what the secret is. */
FOLDER_TEST(run_secret, a_host_with_another_one_is_told_at_once, make_folder())
{
	struct run done = run_both(&folder, "--secret secret --join-timeout 2s --csv", "--secret other --quiet");

	cr_expect_eq(done.exit_status, 85, "75 and ten times 1: %s", done.text);
	cr_expect(strstr(done.text, "]: worker 0 at 127.0.0.1:"), "%s", done.text);
	cr_expect(strstr(done.text,
			 " did not prove that it knows this run's secret: '--secret' must name the same bytes on all "
			 "hosts, or on none"),
		  "%s", done.text);
	cr_expect(strstr(done.text, "]: refused a connection from 127.0.0.1 port "), "%s", done.text);
	cr_expect_not(strstr(done.text, "0123456789abcde"), "%s", done.text);
	free(done.text);
}

FOLDER_TEST(run_secret, a_file_that_others_can_read_is_a_remark, make_folder())
{
	struct run done = run_both(&folder, "--system PS --iterations 1 --csv --secret other",
				   "--system PS --iterations 1 --csv --quiet --secret other");

	cr_expect_eq(done.exit_status, 0, "%s", done.text);
	cr_expect(strstr(done.text, "]: other: other users of this machine can read this secret: chmod 600\n"), "%s",
		  done.text);
	free(done.text);
}

FOLDER_TEST(run_secret, impossible_options_are_refused_in_one_line, make_folder())
{
	static const struct {
		const char *options, *words;
	} mistakes[] = {
		{"--secret %s/short", "/short: is a secret of 15 bytes, must have 16 or more"},
		{"--secret %s/none", "/none: cannot be opened: No such file or directory"},
		{"--set systems.0.sync=mpi --secret %s/secret",
		 "s.yaml:6:5: 'sync' of system 'PS' is 'mpi', whose connections '--secret' does not encrypt: must be "
		 "an all-reduce of psd, such as 'ring'"},
	};

	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		char options[256], arguments[512];

		snprintf(options, sizeof(options), mistakes[i].options, folder.path);
		snprintf(arguments, sizeof(arguments), "--quiet --hosts %s/hosts --rank 0 %s %s/s.yaml", folder.path,
			 options, folder.path);
		expect_one_line("psd-run", arguments, 2, mistakes[i].words);
	}
}

#endif
