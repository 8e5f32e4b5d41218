/* Runs a part of a test in a process of its own, where CUDA has not been called and which may end badly. Needs
 * _GNU_SOURCE in the file that includes this. */
#ifndef PSD_TESTS_CUDA_APART_HELPER_H
#define PSD_TESTS_CUDA_APART_HELPER_H

#include <criterion/criterion.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/cuda/stand_in.h"

struct apart {
	bool is_well;	 /* ended with status 0, and no sanitiser complained */
	char told[4096]; /* the beginning of its standard error */
};

/* Leaves the process with a reason if the claim is false: assertions here would be another process's. */
#define APART_CHECK(claim) ((claim) ? (void)0 : apart_fail(__LINE__, #claim))

static inline void apart_fail(int line, const char *claim)
{
	fprintf(stderr, "line %d: not %s\n", line, claim);
	fflush(stderr);
	_exit(1);
}

/* The child's standard error until its end. The part beyond told_bytes is dropped, so that the child can go on. */
static inline void apart_listen(int from, char *told, size_t told_bytes)
{
	char piece[512];
	size_t used = 0;
	ssize_t n;

	while ((n = read(from, piece, sizeof(piece))) > 0)
		for (ssize_t i = 0; i < n && used + 1 < told_bytes; i++)
			told[used++] = piece[i];
	told[used] = '\0';
}

static inline struct apart run_apart(void (*part)(const void *argument), const void *argument)
{
	struct apart apart = {.is_well = false};
	int ends[2], status = 0;
	pid_t child;

	cr_assert_eq(pipe(ends), 0);
	fflush(NULL);
	child = fork();
	cr_assert_geq(child, 0);
	if (child == 0) {
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		close(ends[1]);
		signal(SIGABRT, SIG_DFL); /* the runner's own */
		signal(SIGSEGV, SIG_DFL);
		part(argument);
		_exit(0);
	}
	close(ends[1]);
	apart_listen(ends[0], apart.told, sizeof(apart.told));
	close(ends[0]);
	cr_assert_eq(waitpid(child, &status, 0), child);
	apart.is_well = WIFEXITED(status) && WEXITSTATUS(status) == 0 && !strstr(apart.told, "Sanitizer");
	return apart;
}

#endif
