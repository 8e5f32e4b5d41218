/* Lines of psd-run on standard error. */
#include <criterion/criterion.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "real/base/console.h"

/* Runs in a process of its own, whose standard error is `fd`. */
static _Noreturn void crash_below_a_limit(int fd)
{
	struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};

	(void)signal(SIGABRT, SIG_DFL);
	(void)getrlimit(RLIMIT_AS, &limit);
	limit.rlim_cur = (rlim_t)1 << 60; /* more than a sanitiser's */
	if (dup2(fd, STDERR_FILENO) < 0 || setrlimit(RLIMIT_AS, &limit) < 0)
		_exit(2);
	psd_console_name_rank(3);
	psd_console_explain_crashes();
	(void)raise(SIGABRT);
	_exit(3);
}

Test(console, a_host_that_crashes_below_a_limit_of_memory_says_so)
{
	char text[256] = "";
	int ends[2], wait_status = 0;
	pid_t pid;

	cr_assert_eq(pipe(ends), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (pid == 0)
		crash_below_a_limit(ends[1]);
	close(ends[1]);
	cr_assert_eq(waitpid(pid, &wait_status, 0), pid);
	cr_assert_gt(read(ends[0], text, sizeof(text) - 1), 0);
	close(ends[0]);
	cr_expect(WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 1, "%d", wait_status);
	cr_expect_str_eq(text,
			 "psd-run[3]: killed by signal 6, as happens when `ulimit -v` leaves a library too little "
			 "memory\n");
}
