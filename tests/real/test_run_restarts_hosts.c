/* psd-run --hosts --restarts: a host is lost, started again with the same command, and all end with the bits of a run
 * that was never cut. */
#define _GNU_SOURCE 1
#include "real/net/secret.h" /* PSD_HAS_TLS */
#include "tests/real/kept_port.h"
#include "tests/real/started.h"
#include "tests/test_with.h"

TestSuite(run_restarts_hosts, .timeout = 120);

enum { HOSTS = 3 };

struct cluster {
	const struct scratch_folder *folder;
	const char *options; /* that all have */
	unsigned n_hosts;
	struct started hosts[HOSTS];
};

static void add_hosts(const struct scratch_folder *folder, unsigned n_hosts)
{
	char hosts[128] = "";

	for (unsigned h = 0; h < n_hosts; h++)
		snprintf(hosts + strlen(hosts), sizeof(hosts) - strlen(hosts), "127.0.0.1:%u\n", keep_port());
	scratch_folder_write(folder, "hosts", hosts, strlen(hosts));
}

/* The command of a host: always the same. With % in the options for its number. */
static void spell(const struct cluster *cluster, unsigned host, char line[512])
{
	size_t n = (size_t)snprintf(line, 512, "--hosts hosts --rank %u ", host);

	for (const char *c = cluster->options; *c && n < 511; c++)
		line[n++] = *c == '%' ? (char)('0' + host) : *c;
	line[n] = '\0';
}

static void start_host(struct cluster *cluster, unsigned host, const char *said)
{
	char line[512], name[16];

	spell(cluster, host, line);
	snprintf(name, sizeof(name), "%s%u", said, host);
	cluster->hosts[host] = start(cluster->folder, line, name);
}

static struct cluster start_hosts(const struct scratch_folder *folder, unsigned n_hosts, const char *options)
{
	struct cluster cluster = {.folder = folder, .options = options, .n_hosts = n_hosts};

	for (unsigned h = 0; h < n_hosts; h++)
		start_host(&cluster, h, "said");
	return cluster;
}

/* Statuses as digits, host by host. */
static void expect_ends(struct cluster *cluster, const char *statuses)
{
	for (unsigned h = 0; h < cluster->n_hosts; h++) {
		const int status = finish(&cluster->hosts[h]);

		cr_expect_eq(status, statuses[h] - '0', "host %u ends with %d: %s", h, status,
			     scratch_folder_read(cluster->folder, cluster->hosts[h].said));
	}
}

static void run_hosts(const struct scratch_folder *folder, unsigned n_hosts, const char *options, const char *statuses)
{
	struct cluster cluster = start_hosts(folder, n_hosts, options);

	expect_ends(&cluster, statuses);
}

/* All hosts that are left name the lost one and the iteration from which they resume. */
static void expect_told(const struct cluster *cluster, const char *system, unsigned lost)
{
	const bool is_server = !strcmp(system, "Server") && lost == HOSTS - 1;
	char words[64];

	snprintf(words, sizeof(words), "]: %s %u at 127.0.0.1:", is_server ? "server" : "worker", is_server ? 0 : lost);
	for (unsigned h = 0; h < HOSTS; h++) {
		if (h == lost)
			continue;
		free(await_words(&cluster->hosts[h], ", restart 1 of 2\n"));
		cr_expect_geq(read_first(cluster->folder, cluster->hosts[h].said, system), 4 * EVERY);
		expect_said(cluster->folder, cluster->hosts[h].said, words);
	}
}

/* A host is killed, and when all others know that, started again. */
static void check_lost(const char *system, unsigned victim, const char *more)
{
	const struct scratch_folder folder = make_folder();
	const int held = make_pipe(&folder);
	char options[256];
	struct cluster cluster;

	add_hosts(&folder, HOSTS);
	scratch_folder_write(&folder, "secret", "bytes that all hosts know", strlen("bytes that all hosts know"));
	snprintf(options, sizeof(options), "--quiet --system %s --save-every %d --save whole%s", system, EVERY, more);
	run_hosts(&folder, HOSTS, options, "000");
	snprintf(options, sizeof(options), "--system %s --save-every %d --save cut --restarts 2 --log pipe%s", system,
		 EVERY, more);
	cluster = start_hosts(&folder, HOSTS, options);
	await_checkpoint(&cluster.hosts[0], "cut", 5 * EVERY);
	cr_assert_eq(kill(cluster.hosts[victim].pid, SIGKILL), 0);
	cr_assert_eq(finish(&cluster.hosts[victim]), 128 + SIGKILL);
	expect_told(&cluster, system, victim);
	start_host(&cluster, victim, "again");
	cluster.hosts[0].held = held;
	expect_ends(&cluster, "000");
	for (unsigned h = 0; h < HOSTS; h++)
		expect_not_said(&folder, cluster.hosts[h].said, "restart 2 of 2");
	expect_same(&folder, "whole", "cut");
	scratch_folder_remove(&folder);
}

Test(run_restarts_hosts, a_lost_host_of_a_ring_comes_again)
{
	check_lost("Ring", 1, "");
	check_lost("Ring", 0, "");
}

TEST_ROW(run_restarts_hosts, a_lost_host_with_shards_comes_again, check_lost("PS", 2, " --set train.streams=3"))
TEST_ROW(run_restarts_hosts, a_lost_server_comes_again, check_lost("Server", 2, ""))

Test(run_restarts_hosts, a_lost_host_comes_again_by_its_secret)
{
#ifndef PSD_HAS_TLS
	cr_skip_test("built without OpenSSL");
#endif
	check_lost("Ring", 1, " --secret secret");
}

FOLDER_TEST(run_restarts_hosts, a_host_that_stays_away_is_waited_for_so_long, make_folder())
{
	struct cluster cluster;

	add_hosts(&folder, 2);
	cluster = start_hosts(&folder, 2,
			      "--system PS --save cut --save-every 10 --restarts 1 --join-timeout 5s "
			      "--iterations 1000000");
	await_checkpoint(&cluster.hosts[0], "cut", 5 * EVERY);
	cr_assert_eq(kill(cluster.hosts[1].pid, SIGKILL), 0);
	cr_expect_eq(finish(&cluster.hosts[1]), 128 + SIGKILL);
	cr_expect_eq(finish(&cluster.hosts[0]), 75);
	expect_said(&folder, "said0", " did not join within 5 s\n");
}

/* Without a restart: a lost host is no mistake of the others, whose command may succeed later. Each line has a rank. */
Test(run_restarts_hosts, a_lost_host_ends_the_others_with_a_status_of_its_own)
{
	const struct scratch_folder folder = make_folder();
	struct cluster cluster;

	add_hosts(&folder, HOSTS);
	cluster = start_hosts(&folder, HOSTS, "--quiet --system Ring --save cut --save-every 10 --iterations 1000000");
	await_checkpoint(&cluster.hosts[0], "cut", 5 * EVERY);
	cr_assert_eq(kill(cluster.hosts[1].pid, SIGKILL), 0);
	cr_expect_eq(finish(&cluster.hosts[1]), 128 + SIGKILL);
	cr_expect_eq(finish(&cluster.hosts[0]), 75);
	cr_expect_eq(finish(&cluster.hosts[2]), 75);
	expect_said(&folder, "said0", "psd-run[0]: worker 1 at 127.0.0.1:");
	expect_said(&folder, "said2", "psd-run[2]: worker 1 at 127.0.0.1:");
	scratch_folder_remove(&folder);
}

FOLDER_TEST(run_restarts_hosts, hosts_agree_on_how_often, make_folder())
{
	struct cluster cluster;

	add_hosts(&folder, 2);
	cluster = (struct cluster){
		.folder = &folder, .options = "--quiet --system PS --save c% --restarts 1%", .n_hosts = 2};
	start_host(&cluster, 0, "said");
	start_host(&cluster, 1, "said");
	expect_ends(&cluster, "11");
	expect_said(&folder, "said0", "'--restarts' is 10 here, 11 there\n");
	expect_said(&folder, "said1", "'--restarts' is 11 here, 10 there\n");
}

static void remove_all(const struct scratch_folder *folder, const char *names)
{
	char line[256];
	struct run done;

	snprintf(line, sizeof(line), "cd %s && rm -r %s", folder->path, names);
	done = run_command(line);
	cr_assert_eq(done.exit_status, 0, "%s", done.text);
	free(done.text);
}

/* As where it was killed before it had written the checkpoint that others have. That is none of the restarts. */
FOLDER_TEST(run_restarts_hosts, hosts_go_back_to_a_checkpoint_that_all_have, make_folder())
{
	add_hosts(&folder, HOSTS);
	run_hosts(&folder, HOSTS, "--quiet --system PS --save-every 10 --save whole% --iterations 60", "000");
	run_hosts(&folder, HOSTS, "--quiet --system PS --save-every 10 --save cut% --iterations 30", "000");
	remove_all(&folder, "cut1/iteration-30");
	run_hosts(&folder, HOSTS, "--system PS --save-every 10 --save cut% --restarts 1 --iterations 60", "000");
	expect_said(&folder, "said0",
		    " has no checkpoint of more than 20 iterations; PS goes on after 20 iterations\n");
	expect_said(&folder, "said2",
		    " has no checkpoint of more than 20 iterations; PS goes on after 20 iterations\n");
	expect_not_said(&folder, "said1", "goes on after");
	cr_expect(scratch_folder_is_same(&folder, "whole0/parameters.safetensors", "cut0/parameters.safetensors"));
	cr_expect(scratch_folder_has(&folder, "cut1/iteration-60/host-1-of-3.safetensors"));
}

/* As where it was killed while it wrote the last checkpoint, and the others have it. */
Test(run_restarts_hosts, hosts_end_together)
{
	const struct scratch_folder folder = make_folder();

	add_hosts(&folder, HOSTS);
	run_hosts(&folder, HOSTS, "--quiet --system Server --save-every 10 --save whole% --iterations 30", "000");
	for (unsigned h = 0; h < HOSTS; h++) {
		char name[32], path[64];

		run_hosts(&folder, HOSTS, "--quiet --system Server --save-every 10 --save cut% --iterations 30", "000");
		snprintf(name, sizeof(name), "cut%u/iteration-30", h);
		remove_all(&folder, name);
		run_hosts(&folder, HOSTS,
			  "--system Server --save-every 10 --save cut% --restarts 1 --join-timeout 60s --iterations 30",
			  "000");
		expect_said(&folder, h == 0 ? "said1" : "said0",
			    " has no checkpoint of more than 20 iterations; Server goes on after 20 iterations\n");
		snprintf(path, sizeof(path), "cut%u/iteration-30/host-%u-of-3.safetensors", h, h);
		cr_expect(scratch_folder_has(&folder, path), "%s", path);
		cr_expect(scratch_folder_is_same(&folder, "whole0/parameters.safetensors",
						 "cut0/parameters.safetensors"));
		remove_all(&folder, "cut0 cut1 cut2");
	}
	scratch_folder_remove(&folder);
}

/* Host 0 was started again, and looked for checkpoints before another had written its last. */
Test(run_restarts_hosts, one_that_joins_when_the_last_file_is_written_is_done)
{
	static const char file[] = "cut/iteration-30/host-1-of-2.safetensors";
	const struct scratch_folder folder = make_folder();
	struct cluster cluster;

	add_hosts(&folder, 2);
	run_hosts(&folder, 2, "--quiet --system PS --save-every 10 --save cut --iterations 30", "00");
	cr_assert_eq(rename(scratch_folder_path(&folder, file).text, scratch_folder_path(&folder, "kept").text), 0);
	cluster = (struct cluster){
		.folder = &folder,
		.options = "--system PS --save-every 10 --save cut --restarts 1 --join-timeout 60s --iterations 30",
		.n_hosts = 2,
	};
	start_host(&cluster, 0, "said");
	free(await_words(&cluster.hosts[0], ": PS goes on after 20 iterations, from cut\n"));
	cr_assert_eq(rename(scratch_folder_path(&folder, "kept").text, scratch_folder_path(&folder, file).text), 0);
	start_host(&cluster, 1, "said");
	expect_ends(&cluster, "00");
	expect_said(&folder, "said0", "PS has been trained for 30 iterations: ");
	expect_said(&folder, "said1", "PS has been trained for 30 iterations: ");
	scratch_folder_remove(&folder);
}

/* The others have ended: each has heard that all are done. */
Test(run_restarts_hosts, one_that_comes_again_when_all_is_done_is_done)
{
	const struct scratch_folder folder = make_folder();
	struct cluster cluster;

	add_hosts(&folder, 2);
	run_hosts(&folder, 2, "--quiet --system PS --save-every 10 --save c% --iterations 30", "00");
	run_hosts(&folder, 2, "--system PS --save c% --restarts 1 --iterations 30", "00");
	for (unsigned h = 0; h < 2; h++) {
		char said[16];

		snprintf(said, sizeof(said), "said%u", h);
		expect_said(&folder, said, "PS has been trained for 30 iterations: ");
		expect_not_said(&folder, said, "did not join");
	}
	cluster = (struct cluster){
		.folder = &folder,
		.options = "--system PS --save c% --restarts 1 --join-timeout 300ms --iterations 30",
		.n_hosts = 1,
	};
	start_host(&cluster, 0, "alone");
	expect_ends(&cluster, "0");
	expect_said(&folder, "alone0", " did not join within 0.3 s; this host has the last checkpoint, ");
	expect_said(&folder, "alone0", "PS has been trained for 30 iterations: ");
	scratch_folder_remove(&folder);
}

/* Two of three come again when all is done. The first one that has waited long enough tells the other, which need not
 * wait longer and has nothing left to do either. */
FOLDER_TEST(run_restarts_hosts, several_that_come_again_when_all_is_done_are_done, make_folder())
{
	struct cluster cluster = {
		.folder = &folder,
		.options = "--system PS --save c% --restarts 1 --join-timeout %.5s --iterations 30",
		.n_hosts = 2,
	};

	add_hosts(&folder, 3);
	run_hosts(&folder, 3, "--quiet --system PS --save-every 10 --save c% --iterations 30", "000");
	for (unsigned h = 0; h < 2; h++)
		start_host(&cluster, h, "again");
	expect_ends(&cluster, "00");
	expect_said(&folder, "again0", " within 0.5 s, joined: worker 1; this host has the last checkpoint, ");
	expect_said(&folder, "again1", " within 0.5 s, joined: worker 1; this host has the last checkpoint, ");
}

/* As after a lost disk: a training that others have checkpoints of is not begun again. */
FOLDER_TEST(run_restarts_hosts, hosts_do_not_go_back_behind_what_all_have_had, make_folder())
{
	add_hosts(&folder, 2);
	run_hosts(&folder, 2, "--quiet --system PS --save-every 10 --save c% --iterations 30", "00");
	remove_all(&folder, "c1");
	run_hosts(&folder, 2, "--system PS --save-every 10 --save c% --restarts 1 --iterations 60", "21");
	expect_said(&folder, "said0", " has no checkpoint of more than 0 iterations; PS does not go on\n");
	expect_said(&folder, "said0",
		    "c0: the folder has checkpoints, but none with the files of all hosts: restore the missing files");
	expect_said(&folder, "said1",
		    "c0: the folder has checkpoints, but none with the files of all hosts: restore the missing files");
	cr_expect(scratch_folder_has(&folder, "c0/iteration-30/host-0-of-2.safetensors"));
}

/* ---- a measured split ---- */

static struct scratch_folder make_groups(void)
{
	static const char text[] =
		"title: tiny\nmodel: {graph: tiny.yaml, batch_per_worker: 8}\ncompute: {device: cpu}\n"
		"cluster: {stack: none, groups: [{nodes: 1}, {nodes: 1}], network: {bandwidth: 1Gbps, latency: 50us}}\n"
		"systems: [{name: Ring, sync: ring, split: measured}]\n"
		"train:\n  data: {kind: synthetic, training_samples: 64}\n  iterations: 200\n"
		"  learning_rate: {policy: fixed, base: 0.1}\n";
	const struct scratch_folder folder = make_folder();

	scratch_folder_write(&folder, "s.yaml", text, strlen(text));
	add_hosts(&folder, 2);
	return folder;
}

/* Host 1 is killed when speeds are measured, before it joins for the training or soon after; or at a checkpoint. */
static void check_measured(bool has_checkpoint)
{
	const struct scratch_folder folder = make_groups();
	const int held = make_pipe(&folder);
	struct cluster cluster = start_hosts(&folder, 2, "--save cut --save-every 10 --restarts 2 --log pipe");
	char *said;
	const char *first, *last;

	free(await_words(&cluster.hosts[0], ": Ring: measured "));
	if (has_checkpoint)
		await_checkpoint(&cluster.hosts[0], "cut", 5 * EVERY);
	cr_assert_eq(kill(cluster.hosts[1].pid, SIGKILL), 0);
	cr_assert_eq(finish(&cluster.hosts[1]), 128 + SIGKILL);
	start_host(&cluster, 1, "again");
	cluster.hosts[0].held = held;
	expect_ends(&cluster, "00");
	said = scratch_folder_read(&folder, "said0");
	first = strstr(said, ": Ring: measured ");
	last = first;
	for (const char *next = first; next; next = strstr(next + 1, ": Ring: measured "))
		last = next;
	cr_assert(first && strchr(last, '\n'), "%s", said);
	cr_expect_neq(first, last, "it is told after the restart as well: %s", said);
	if (has_checkpoint)
		cr_expect_eq(strncmp(first, last, (size_t)(strchr(last, '\n') + 1 - last)), 0, "%s", said);
	free(said);
	scratch_folder_remove(&folder);
}

TEST_ROW(run_restarts_hosts, hosts_that_join_again_keep_their_split, check_measured(true))
TEST_ROW(run_restarts_hosts, a_host_lost_after_speeds_were_measured_comes_again, check_measured(false))
