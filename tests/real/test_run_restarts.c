/* psd-run --restarts: processes are killed or stand still, and the run ends with the bits of one that was never cut. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/cli_helper.h"
#include "tests/scratch_folder.h"

TestSuite(run_restarts, .timeout = 120);

enum { MOST_PROCESSES = 8, EVERY = 10, PIPE_BYTES = 4096 };

static const char model[] = "name: tiny\ninput: {channels: 16}\nlayers:\n"
			    "  - {name: fc1, kind: inner-product, outputs: 8}\n"
			    "  - {name: fc2, kind: inner-product, outputs: 4}\n"
			    "  - {name: loss, kind: softmax-loss}\n";
/* A line of the log for each of 200 iterations, some 50 bytes: more than a pipe of PIPE_BYTES holds, and it holds those
 * of more than 50. Who writes them there comes so far, and not to its end before somebody has read some. */
static const char scenario[] =
	"title: tiny\nmodel: {graph: tiny.yaml, batch_per_worker: 8}\ncompute: {device: cpu}\n"
	"cluster: {nodes: 2, network: {bandwidth: 1Gbps, latency: 50us}}\n"
	"systems:\n  - {name: PS, sync: ps}\n  - {name: Ring, sync: ring}\n  - {name: Server, sync: ps, servers: 1}\n"
	"train:\n  data: {kind: synthetic, training_samples: 64, test_samples: 32}\n  iterations: 200\n"
	"  learning_rate: {policy: fixed, base: 0.1}\n  optimiser: {momentum: 0.9}\n";

static struct scratch_folder make_folder(void)
{
	const struct scratch_folder folder = scratch_folder_make();

	scratch_folder_write(&folder, "tiny.yaml", model, strlen(model));
	scratch_folder_write(&folder, "s.yaml", scenario, strlen(scenario));
	return folder;
}

/* ---- processes ---- */

/* A psd-run that is under way, in the folder; what it says on standard error goes to the file `said`. */
struct started {
	const struct scratch_folder *folder;
	const char *said;
	pid_t pid;
	int held; /* the pipe that is its log and holds it up; -1: none */
};

static struct started start(const struct scratch_folder *folder, const char *options, const char *said)
{
	struct started started = {folder, said, 0, -1};
	char line[4 * PATH_MAX];

	snprintf(line, sizeof(line), "cd %s && exec %s %s s.yaml >%s-out 2>%s", folder->path, path_of("psd-run").text,
		 options, said, said);
	scratch_folder_write(folder, said, "", 0);
	started.pid = fork();
	cr_assert_geq(started.pid, 0);
	if (started.pid == 0) {
		execl("/bin/sh", "sh", "-c", line, (char *)NULL);
		_exit(78);
	}
	return started;
}

/* The same, with a log that holds it up before its end. */
static struct started start_held(const struct scratch_folder *folder, const char *options, const char *said)
{
	char line[PATH_MAX];
	struct started started;
	int held;

	cr_assert_eq(mkfifo(scratch_folder_path(folder, "pipe").text, 0600), 0);
	held = open(scratch_folder_path(folder, "pipe").text, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	cr_assert_geq(held, 0);
	cr_assert_eq(fcntl(held, F_SETPIPE_SZ, PIPE_BYTES), PIPE_BYTES);
	snprintf(line, sizeof(line), "%s --log pipe", options);
	started = start(folder, line, said);
	started.held = held;
	return started;
}

static void wait_a_little(const struct started *started)
{
	char drained[4096];

	while (started->held >= 0 && read(started->held, drained, sizeof(drained)) > 0)
		;
	(void)poll(NULL, 0, 1);
}

/* Its exit status, or 128 and the signal. */
static int finish(struct started *started)
{
	int status;
	pid_t ended;

	while ((ended = waitpid(started->pid, &status, WNOHANG)) == 0)
		wait_a_little(started);
	cr_assert_eq(ended, started->pid);
	if (started->held >= 0)
		close(started->held);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static pid_t parent_of(pid_t pid)
{
	char path[64], text[512] = "";
	int parent = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	(void)!fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	if (strrchr(text, ')'))
		(void)sscanf(strrchr(text, ')'), ") %*c %d", &parent);
	return parent;
}

static int compare_pids(const void *left, const void *right)
{
	const pid_t one = *(const pid_t *)left, other = *(const pid_t *)right;

	return (one > other) - (one < other);
}

/* Those that psd-run has started, in order. */
static unsigned find_processes(const struct started *started, pid_t found[MOST_PROCESSES])
{
	DIR *all = opendir("/proc");
	const struct dirent *entry;
	unsigned n = 0;

	cr_assert_not_null(all);
	while ((entry = readdir(all)) != NULL && n < MOST_PROCESSES) {
		const pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid > 0 && parent_of(pid) == started->pid)
			found[n++] = pid;
	}
	closedir(all);
	qsort(found, n, sizeof(*found), compare_pids);
	return n;
}

/* To the host of that number. */
static void send_signal(const struct started *started, unsigned host, int number)
{
	pid_t found[MOST_PROCESSES];

	cr_assert_gt(find_processes(started, found), host);
	cr_assert_eq(kill(found[host], number), 0);
}

static bool has_ended(const struct started *started)
{
	siginfo_t info = {.si_pid = 0};

	cr_assert_eq(waitid(P_PID, (id_t)started->pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
	return info.si_pid != 0;
}

static void expect_going(const struct started *started)
{
	char *said;

	if (!has_ended(started))
		return;
	said = scratch_folder_read(started->folder, started->said);
	cr_assert_fail("it has ended: %s", said);
}

/* Iterations of the newest checkpoint that somebody has begun, 0: there is none. */
static unsigned find_newest(const struct scratch_folder *folder, const char *name)
{
	DIR *entries = opendir(scratch_folder_path(folder, name).text);
	const struct dirent *entry;
	unsigned newest = 0, iterations;

	while (entries && (entry = readdir(entries)) != NULL)
		if (sscanf(entry->d_name, "iteration-%u", &iterations) == 1 && iterations > newest)
			newest = iterations;
	if (entries)
		closedir(entries);
	return newest;
}

static void await_checkpoint(const struct started *started, const char *name, unsigned iterations)
{
	while (find_newest(started->folder, name) < iterations) {
		expect_going(started);
		(void)poll(NULL, 0, 1);
	}
}

static char *await_words(const struct started *started, const char *words)
{
	char *said = scratch_folder_read(started->folder, started->said);

	while (!strstr(said, words)) {
		free(said);
		expect_going(started);
		wait_a_little(started);
		said = scratch_folder_read(started->folder, started->said);
	}
	return said;
}

/* ---- what is left ---- */

static void run_uncut(const struct scratch_folder *folder, const char *options)
{
	struct started started = start(folder, options, "uncut");

	cr_assert_eq(finish(&started), 0, "%s: %s", options, scratch_folder_read(folder, "uncut"));
}

/* All files of the last checkpoint, and the parameters. */
static void expect_same(const struct scratch_folder *folder, const char *one, const char *other)
{
	char line[512];
	struct run compared;

	snprintf(line, sizeof(line), "cd %s && diff -r %s %s 2>&1", folder->path, one, other);
	compared = run_command(line);
	cr_expect_eq(compared.exit_status, 0, "%s", compared.text);
	free(compared.text);
}

static void expect_said(const struct scratch_folder *folder, const char *name, const char *words)
{
	char *said = scratch_folder_read(folder, name);

	cr_expect_not_null(strstr(said, words), "'%s' is not in: %s", words, said);
	free(said);
}

static void expect_not_said(const struct scratch_folder *folder, const char *name, const char *words)
{
	char *said = scratch_folder_read(folder, name);

	cr_expect_null(strstr(said, words), "'%s' is in: %s", words, said);
	free(said);
}

/* From which it goes on, as psd-run says. */
static unsigned read_first(const struct scratch_folder *folder, const char *name, const char *system)
{
	char *said = scratch_folder_read(folder, name), words[64];
	const char *found;
	unsigned first = 0;

	snprintf(words, sizeof(words), "; %s goes on after ", system);
	found = strstr(said, words);
	cr_assert_not_null(found, "%s", said);
	cr_assert_eq(sscanf(found + strlen(words), "%u iterations, restart 1 of ", &first), 1, "%s", said);
	free(said);
	return first;
}

/* ---- a cluster of its own ---- */

static void check_killed(const char *system, const char *ground, unsigned victim, const char *name)
{
	const struct scratch_folder folder = make_folder();
	char options[256], words[128];
	struct started started;
	unsigned newest, first;

	snprintf(options, sizeof(options), "%s --quiet --system %s --save-every %d --save whole", ground, system,
		 EVERY);
	run_uncut(&folder, options);
	snprintf(options, sizeof(options), "%s --system %s --save-every %d --save cut --restarts 2", ground, system,
		 EVERY);
	started = start_held(&folder, options, "said");
	await_checkpoint(&started, "cut", 5 * EVERY);
	send_signal(&started, victim, SIGKILL);
	newest = find_newest(&folder, "cut");
	cr_expect_eq(finish(&started), 0, "%s", scratch_folder_read(&folder, "said"));
	first = read_first(&folder, "said", system);
	cr_expect_eq(first % EVERY, 0, "%u", first);
	cr_expect_geq(first, 4 * EVERY, "all others have that one: %u", first);
	cr_expect_leq(first, newest + EVERY, "%u of %u", first, newest);
	snprintf(words, sizeof(words), "psd-run: %s at ", name);
	expect_said(&folder, "said", words);
	expect_said(&folder, "said", " was killed by signal 9");
	expect_not_said(&folder, "said", "restart 2 of 2");
	expect_same(&folder, "whole", "cut");
	scratch_folder_remove(&folder);
}

Test(run_restarts, a_ring_whose_worker_is_killed_ends_with_the_same_bits)
{
	check_killed("Ring", "--no-emulation", 1, "worker 1");
	check_killed("Ring", "--no-emulation", 0, "worker 0");
}

Test(run_restarts, shards_whose_worker_is_killed_end_with_the_same_bits)
{
	check_killed("PS", "--no-emulation", 1, "worker 1");
}

Test(run_restarts, a_server_that_is_killed_ends_with_the_same_bits)
{
	check_killed("Server", "--no-emulation", 2, "server 0");
	check_killed("Server", "--no-emulation", 0, "worker 0");
}

/* Or where this machine does not let us have one, links that processes shape themselves. */
Test(run_restarts, an_emulated_cluster_is_made_again)
{
	check_killed("Ring", "", 1, "worker 1");
}

Test(run_restarts, who_is_killed_before_the_first_checkpoint_begins_again)
{
	const struct scratch_folder folder = make_folder();
	struct started started;

	run_uncut(&folder, "--no-emulation --quiet --system Ring --save whole --save-every 500");
	started = start_held(&folder, "--no-emulation --system Ring --save cut --save-every 500 --restarts 1", "said");
	free(await_words(&started, "Ring: iteration 11 of 200, "));
	send_signal(&started, 1, SIGKILL);
	cr_expect_eq(finish(&started), 0, "%s", scratch_folder_read(&folder, "said"));
	expect_said(&folder, "said", "; Ring begins again, restart 1 of 1\n");
	expect_same(&folder, "whole", "cut");
	scratch_folder_remove(&folder);
}

Test(run_restarts, who_stands_still_is_started_again)
{
	const struct scratch_folder folder = make_folder();
	struct started started;

	run_uncut(&folder, "--no-emulation --quiet --system PS --save whole --save-every 10");
	started = start_held(&folder, "--no-emulation --system PS --save cut --save-every 10 --restarts 1 --stall 1s",
			     "said");
	await_checkpoint(&started, "cut", 5 * EVERY);
	send_signal(&started, 1, SIGSTOP);
	cr_expect_eq(finish(&started), 0, "%s", scratch_folder_read(&folder, "said"));
	expect_said(&folder, "said", "psd-run: worker 1 at ");
	expect_said(&folder, "said", " has not been heard from for ");
	cr_expect_geq(read_first(&folder, "said", "PS"), 4 * EVERY);
	expect_same(&folder, "whole", "cut");
	scratch_folder_remove(&folder);
}

Test(run_restarts, when_none_is_left_it_fails)
{
	const struct scratch_folder folder = make_folder();
	struct started started =
		start_held(&folder, "--no-emulation --system PS --save cut --save-every 10 --restarts 1", "said");
	pid_t found[MOST_PROCESSES];
	unsigned n_kills = 0;

	await_checkpoint(&started, "cut", 5 * EVERY);
	while (!has_ended(&started)) {
		if (find_processes(&started, found) > 0)
			n_kills += kill(found[0], SIGKILL) == 0;
		wait_a_little(&started);
	}
	cr_expect_eq(finish(&started), 1);
	cr_expect_geq(n_kills, 2);
	expect_said(&folder, "said", ", restart 1 of 1\n");
	expect_said(&folder, "said", " was killed by signal 9");
	expect_said(&folder, "said", "; no restart is left after 1\n");
	scratch_folder_remove(&folder);
}

/* ---- what is no reason ---- */

Test(run_restarts, what_would_fail_again_is_not_tried_again)
{
	const struct scratch_folder folder = make_folder();
	struct started started;

	run_uncut(&folder, "--no-emulation --quiet --system PS --save cut --save-every 10 --iterations 30");
	scratch_folder_write(&folder, "cut/iteration-30/host-1-of-2.safetensors", "", 0);
	started = start(&folder, "--no-emulation --system PS --save cut --save-every 10 --restarts 2", "said");
	cr_expect_eq(finish(&started), 2);
	expect_said(&folder, "said", "cut/iteration-30/host-1-of-2.safetensors");
	expect_not_said(&folder, "said", "restart 1");
	scratch_folder_remove(&folder);
}

Test(run_restarts, an_interrupt_is_the_end)
{
	static const int numbers[] = {SIGINT, SIGTERM};

	for (unsigned i = 0; i < 2; i++) {
		const struct scratch_folder folder = make_folder();
		struct started started = start_held(
			&folder, "--no-emulation --system PS --save cut --save-every 10 --restarts 9", "said");

		await_checkpoint(&started, "cut", 5 * EVERY);
		cr_assert_eq(kill(started.pid, numbers[i]), 0);
		cr_expect_eq(finish(&started), 128 + numbers[i]);
		expect_said(&folder, "said", "psd-run: stopped by signal ");
		expect_not_said(&folder, "said", "restart 1");
		scratch_folder_remove(&folder);
	}
}

Test(run_restarts, nothing_is_gone_on_from_without_checkpoints)
{
	expect_one_line("psd-run", "--restarts 2 --system PS scenarios/quickstart.yaml", 2,
			"'--restarts' has no effect without '--save'\n");
	expect_one_line("psd-run", "--restarts -1 --save x --system PS scenarios/quickstart.yaml", 2,
			"'--restarts' is ");
}

/* ---- the log and the trace ---- */

/* Cells before the seconds, and the one behind them, are those of a run that was never cut; seconds grow. */
static void expect_same_log(const struct scratch_folder *folder, const char *whole, const char *cut, unsigned n)
{
	char *left = scratch_folder_read(folder, whole), *right = scratch_folder_read(folder, cut);
	const char *one = strchr(left, '\n'), *other = strchr(right, '\n');
	double last_sec = 0.0;

	for (unsigned i = 0; i < n; i++) {
		unsigned iteration;
		double sec;

		cr_assert(one && other, "line %u", i);
		one++;
		other++;
		cr_assert_eq(sscanf(other, "Ring,%u,%*[^,],%*[^,],%*[^,],%lf,", &iteration, &sec), 2, "%.80s", other);
		cr_expect_eq(iteration, i);
		cr_expect_gt(sec, last_sec, "line %u", i);
		last_sec = sec;
		for (unsigned cell = 0; cell < 5; cell++) {
			const size_t length = strcspn(one, ",");

			cr_expect_eq(strncmp(one, other, length + 1), 0, "line %u: %.80s", i, other);
			one += length + 1;
			other = strchr(other, ',') + 1;
		}
		one = strchr(one, '\n');
		other = strchr(other, '\n');
	}
	free(left);
	free(right);
}

static void await_line(const struct started *started, const char *log, const char *line)
{
	char *text = NULL;

	do {
		free(text);
		expect_going(started);
		(void)poll(NULL, 0, 1);
		text = scratch_folder_has(started->folder, log) ? scratch_folder_read(started->folder, log)
								: strdup("");
	} while (!strstr(text, line));
	free(text);
}

/* Killed between two checkpoints, with lines that are written again. */
Test(run_restarts, the_log_has_each_iteration_once)
{
	const struct scratch_folder folder = make_folder();
	struct started started;

	run_uncut(&folder, "--no-emulation --quiet --system Ring --log whole --iterations 250");
	started = start(&folder,
			"--no-emulation --system Ring --save cut --save-every 100 --restarts 1 --log log "
			"--iterations 1000000",
			"said");
	await_line(&started, "log", "\nRing,150,");
	send_signal(&started, 1, SIGKILL);
	free(await_words(&started, ", restart 1 of 1\n"));
	cr_expect_geq(read_first(&folder, "said", "Ring"), 100);
	await_line(&started, "log", "\nRing,250,");
	cr_assert_eq(kill(started.pid, SIGTERM), 0);
	cr_expect_eq(finish(&started), 128 + SIGTERM);
	expect_same_log(&folder, "whole", "log", 250);
	scratch_folder_remove(&folder);
}

Test(run_restarts, the_trace_is_of_the_last_start)
{
	const struct scratch_folder folder = make_folder();
	struct started started = start_held(
		&folder, "--no-emulation --system Ring --save cut --save-every 10 --restarts 1 --trace trace", "said");
	char words[128], *trace;
	unsigned first;

	await_checkpoint(&started, "cut", 5 * EVERY);
	send_signal(&started, 0, SIGKILL);
	cr_expect_eq(finish(&started), 0, "%s", scratch_folder_read(&folder, "said"));
	first = read_first(&folder, "said", "Ring");
	snprintf(words, sizeof(words), "psd-run: the trace begins with iteration %u, at the last restart\n", first);
	expect_said(&folder, "said", words);
	trace = scratch_folder_read(&folder, "trace");
	for (unsigned i = 0; i <= first; i++) {
		snprintf(words, sizeof(words), "{\"iteration\":%u,", i);
		cr_expect_eq(strstr(trace, words) != NULL, i == first, "iteration %u", i);
	}
	free(trace);
	scratch_folder_remove(&folder);
}
