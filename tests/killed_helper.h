/* Kills a program at a call that touches files: where in its work that is, no clock decides. Needs _GNU_SOURCE in the
 * file that includes this. */
#ifndef PSD_TESTS_KILLED_HELPER_H
#define PSD_TESTS_KILLED_HELPER_H

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/cli_helper.h"
#include "tests/scratch_folder.h"

enum { KILLED_RUNS = 20, KILLED_AT_NONE = 0 };

/* Not a rename: before it, and only there, the new file has a hidden name, which engine/base/test_output.c knows. */
static inline bool touches_files(const struct __ptrace_syscall_info *call)
{
	static const long numbers[] = {SYS_write, SYS_fsync, SYS_linkat};

	if (call->op != PTRACE_SYSCALL_INFO_ENTRY)
		return false;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (call->entry.nr == (uint64_t)numbers[i])
			return true;
	return call->entry.nr == SYS_openat && (call->entry.args[2] & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)));
}

/* A victim: work in a process of its own, which the work ends. */
struct victim {
	void (*work)(const void *context);
	const void *context;
};

/* The context is a command for a shell, which becomes the program. */
static inline void become_command(const void *context)
{
	execl("/bin/sh", "sh", "-c", (const char *)context, (char *)NULL);
	_exit(78);
}

/* The victim and all that it starts stop at each of their calls. Skips the test where no process may trace another. */
static inline pid_t start_traced(struct victim victim)
{
	const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
			     PTRACE_O_TRACECLONE;
	const pid_t pid = fork();
	int status;

	cr_assert_geq(pid, 0);
	if (pid == 0) {
		setenv("LSAN_OPTIONS", "detect_leaks=0", 1); /* which traces its process itself */
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(77);
		raise(SIGSTOP);
		victim.work(victim.context);
		_exit(79);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status))
		cr_skip_test("no process may trace another here");
	cr_assert_eq(ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)options), 0);
	cr_assert_eq(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), 0);
	return pid;
}

/* Signal to deliver to a stopped process when it continues. */
static inline long signal_of(int status)
{
	const int number = WSTOPSIG(status);

	return number == (SIGTRAP | 0x80) || number == SIGTRAP || number == SIGSTOP ? 0 : number;
}

/* The victim is killed before its KILL_AT-th call that touches a file, its children's too; returns when none of them
 * is left. Returns how many such calls there were; *status is the victim's, as waitpid() has it. */
static inline unsigned run_until_call(struct victim victim, unsigned kill_at, int *status)
{
	const pid_t program = start_traced(victim);
	struct __ptrace_syscall_info call;
	unsigned n_calls = 0;
	pid_t pid;
	int event;

	while ((pid = waitpid(-1, &event, __WALL)) > 0 || errno == EINTR) {
		if (pid < 0)
			continue;
		if (!WIFSTOPPED(event)) {
			if (pid == program)
				*status = event;
			continue;
		}
		if (WSTOPSIG(event) == (SIGTRAP | 0x80) &&
		    ptrace(PTRACE_GET_SYSCALL_INFO, pid, (void *)sizeof(call), &call) > 0 && touches_files(&call) &&
		    ++n_calls == kill_at)
			kill(program, SIGKILL);
		ptrace(PTRACE_SYSCALL, pid, NULL, (void *)signal_of(event)); /* it may be dead */
	}
	cr_assert_eq(errno, ECHILD);
	return n_calls;
}

/* At 20 points over all that the victim does, which replaces the folder's file "out" and perhaps others that begin
 * so; CHECK runs in the folder and says on its standard output what is wrong there, "older" being right. */
static inline void expect_whole_wherever_it_dies(const struct scratch_folder *folder, struct victim victim,
						 const char *what, const char *check)
{
	const unsigned n_files = scratch_folder_count(folder);
	char reset[PATH_MAX];
	unsigned n_calls, n_killed = 0;
	int status = 0;

	snprintf(reset, sizeof(reset), "cd %s && for f in out*; do echo older >$f; done", folder->path);
	cr_assert_eq(system(reset), 0);
	n_calls = run_until_call(victim, KILLED_AT_NONE, &status);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: status %d", what, status);
	for (unsigned k = 1; k <= KILLED_RUNS; k++) {
		char script[3 * PATH_MAX];
		struct run run;

		cr_assert_eq(system(reset), 0);
		run_until_call(victim, k * n_calls / KILLED_RUNS, &status);
		n_killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
		snprintf(script, sizeof(script), "cd %s && %s", folder->path, check);
		run = run_command(script);
		cr_expect_str_eq(run.text, "", "%s, killed at %u of %u: %s", what, k, KILLED_RUNS, run.text);
		free(run.text);
		cr_expect_eq(scratch_folder_count(folder), n_files, "%s, killed at %u of %u: something is left", what,
			     k, KILLED_RUNS);
	}
	cr_expect_gt(n_killed, KILLED_RUNS / 2, "%s: %u were killed", what, n_killed);
}

/* The same of COMMAND, which runs in the folder. */
static inline void expect_whole_wherever_killed(const struct scratch_folder *folder, const char *command,
						const char *check)
{
	char line[3 * PATH_MAX];

	snprintf(line, sizeof(line), "cd %s && exec %s >/dev/null", folder->path, command);
	expect_whole_wherever_it_dies(folder, (struct victim){become_command, line}, command, check);
}

#endif
