/* Runs of psd-run that are killed, in folders, and what they leave. Needs _GNU_SOURCE in the file that includes it. */
#ifndef PSD_TESTS_REAL_STARTED_H
#define PSD_TESTS_REAL_STARTED_H

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/cli_helper.h"
#include "tests/real/tiny_model.h"
#include "tests/scratch_folder.h"

enum { MOST_PROCESSES = 8, EVERY = 10, PIPE_BYTES = 4096 };

/* A line of the log for each of 200 iterations, some 50 bytes: more than a pipe of PIPE_BYTES holds, and it holds those
 * of more than 50. A process that writes them gets this far, and cannot end before some are read. */
static const char scenario[] =
	"title: tiny\nmodel: {graph: tiny.yaml, batch_per_worker: 8}\ncompute: {device: cpu}\n"
	"cluster: {stack: none, nodes: 2, network: {bandwidth: 1Gbps, latency: 50us}}\n"
	"systems:\n  - {name: PS, sync: ps}\n  - {name: Ring, sync: ring}\n  - {name: Server, sync: ps, servers: 1}\n"
	"train:\n  data: {kind: synthetic, training_samples: 64, test_samples: 32}\n  iterations: 200\n"
	"  learning_rate: {policy: fixed, base: 0.1}\n  optimiser: {momentum: 0.9}\n";

static inline struct scratch_folder make_folder(void)
{
	const struct scratch_folder folder = scratch_folder_make();

	scratch_folder_write(&folder, "tiny.yaml", TINY_MODEL, strlen(TINY_MODEL));
	scratch_folder_write(&folder, "s.yaml", scenario, strlen(scenario));
	return folder;
}

/* ---- processes ---- */

/* A psd-run in progress, in the folder; its standard error goes to the file `said`. */
struct started {
	const struct scratch_folder *folder;
	char said[16];
	pid_t pid;
	int held; /* the pipe that is its log and holds it up; -1: none */
};

static inline struct started start(const struct scratch_folder *folder, const char *options, const char *said)
{
	struct started started = {.folder = folder, .held = -1};
	char line[4 * PATH_MAX];

	snprintf(line, sizeof(line), "cd %s && exec %s %s s.yaml >%s-out 2>%s", folder->path, path_of("psd-run").text,
		 options, said, said);
	snprintf(started.said, sizeof(started.said), "%s", said);
	scratch_folder_write(folder, said, "", 0);
	started.pid = fork();
	cr_assert_geq(started.pid, 0);
	if (started.pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* with a test that does not come to its end */
		execl("/bin/sh", "sh", "-c", line, (char *)NULL);
		_exit(78);
	}
	return started;
}

/* A log that holds its writer up before the end, until a process reads it. */
static inline int make_pipe(const struct scratch_folder *folder)
{
	int held;

	cr_assert_eq(mkfifo(scratch_folder_path(folder, "pipe").text, 0600), 0);
	held = open(scratch_folder_path(folder, "pipe").text, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	cr_assert_geq(held, 0);
	cr_assert_eq(fcntl(held, F_SETPIPE_SZ, PIPE_BYTES), PIPE_BYTES);
	return held;
}

static inline struct started start_held(const struct scratch_folder *folder, const char *options, const char *said)
{
	const int held = make_pipe(folder);
	char line[PATH_MAX];
	struct started started;

	snprintf(line, sizeof(line), "%s --log pipe", options);
	started = start(folder, line, said);
	started.held = held;
	return started;
}

static inline void wait_a_little(const struct started *started)
{
	char drained[4096];

	while (started->held >= 0 && read(started->held, drained, sizeof(drained)) > 0)
		;
	(void)poll(NULL, 0, 1);
}

/* Its exit status, or 128 and the signal. */
static inline int finish(struct started *started)
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

static inline pid_t parent_of(pid_t pid)
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

static inline int compare_pids(const void *left, const void *right)
{
	const pid_t one = *(const pid_t *)left, other = *(const pid_t *)right;

	return (one > other) - (one < other);
}

/* Those that psd-run has started, in order. */
static inline unsigned find_processes(const struct started *started, pid_t found[MOST_PROCESSES])
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
static inline void send_signal(const struct started *started, unsigned host, int number)
{
	pid_t found[MOST_PROCESSES];

	cr_assert_gt(find_processes(started, found), host);
	cr_assert_eq(kill(found[host], number), 0);
}

static inline bool has_ended(const struct started *started)
{
	siginfo_t info = {.si_pid = 0};

	cr_assert_eq(waitid(P_PID, (id_t)started->pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
	return info.si_pid != 0;
}

static inline void expect_going(const struct started *started)
{
	char *said;

	if (!has_ended(started))
		return;
	said = scratch_folder_read(started->folder, started->said);
	cr_assert_fail("it has ended: %s", said);
}

/* Iterations of the newest checkpoint that any host has begun; 0: none. */
static inline unsigned find_newest(const struct scratch_folder *folder, const char *name)
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

static inline void await_checkpoint(const struct started *started, const char *name, unsigned iterations)
{
	while (find_newest(started->folder, name) < iterations) {
		expect_going(started);
		(void)poll(NULL, 0, 1);
	}
}

static inline char *await_words(const struct started *started, const char *words)
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

/* ---- remains ---- */

static inline void run_uncut(const struct scratch_folder *folder, const char *options)
{
	struct started started = start(folder, options, "uncut");

	cr_assert_eq(finish(&started), 0, "%s: %s", options, scratch_folder_read(folder, "uncut"));
}

/* All files of the last checkpoint, and the parameters. */
static inline void expect_same(const struct scratch_folder *folder, const char *one, const char *other)
{
	char line[512];
	struct run compared;

	snprintf(line, sizeof(line), "cd %s && diff -r %s %s 2>&1", folder->path, one, other);
	compared = run_command(line);
	cr_expect_eq(compared.exit_status, 0, "%s", compared.text);
	free(compared.text);
}

static inline void expect_said(const struct scratch_folder *folder, const char *name, const char *words)
{
	char *said = scratch_folder_read(folder, name);

	cr_expect_not_null(strstr(said, words), "'%s' is not in: %s", words, said);
	free(said);
}

static inline void expect_not_said(const struct scratch_folder *folder, const char *name, const char *words)
{
	char *said = scratch_folder_read(folder, name);

	cr_expect_null(strstr(said, words), "'%s' is in: %s", words, said);
	free(said);
}

/* From which it goes on, as psd-run says. */
static inline unsigned read_first(const struct scratch_folder *folder, const char *name, const char *system)
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

#endif
