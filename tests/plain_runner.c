/* Runs the tests that Criterion's macros declare without Criterion's own runner, whose child processes map their memory
 * where ThreadSanitizer cannot follow (as its authors have known since 2018). Each test is a forked
 * process. Knows of TestSuite and Test only what the suites here use: timeouts, for which one number serves all;
 * fixtures, expected signals and statuses are refused.
 * [--filter PATTERN]: only the tests whose SUITE/CASE matches, as Criterion's option of this name.
 * [--here]: in this process, one after the other, for tools that lose sight of forked ones; a test that is given up
 * ends it. */
#define _GNU_SOURCE /* for patterns with alternatives */
#include <criterion/criterion.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TIMEOUT_SEC = 300, STATUS_FAILED = 1, STATUS_SKIPPED = 77 };

/* The linker's names for the section that Test() adds to. */
extern struct criterion_test *__start_cr_tst[], *__stop_cr_tst[];

static bool has_failed; /* in the process of a test */

/* ---- what Criterion's macros call, in place of the library's ---- */

static void finish_test(void)
{
	exit(has_failed ? STATUS_FAILED : 0);
}

void criterion_internal_test_setup(void)
{
}

void criterion_internal_test_main(void (*fn)(void))
{
	fn();
}

void criterion_internal_test_teardown(void)
{
}

void criterion_send_assert(struct criterion_assert_stats *stats)
{
	if (stats->passed)
		return;
	has_failed = true;
	printf("[----] %s:%u: assertion failed\n[----]   %s\n", stats->file, stats->line, stats->message);
}

void criterion_abort_test(void)
{
	finish_test();
	abort(); /* not reached: exit() is not marked so here */
}

void criterion_continue_test(void)
{
}

void criterion_skip_test(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
	exit(STATUS_SKIPPED);
}

void cr_log(enum criterion_severity severity, const char *format, ...)
{
	va_list arguments;

	(void)severity;
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
}

/* ---- one test after the other ---- */

/* The pattern of --filter, "*" without; other options of Criterion have no meaning here. */
static const char *pattern_of(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i++)
		if (strcmp(argv[i], "--filter") == 0)
			return argv[i + 1];
	return "*";
}

static bool is_here(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--here") == 0)
			return true;
	return false;
}

static const char *run_here(const struct criterion_test *test)
{
	has_failed = false;
	test->test();
	return has_failed ? "FAIL" : "PASS";
}

/* The status of the test's process as wait() gives it. */
static int run_test(const struct criterion_test *test)
{
	int wait_status = 0;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child == 0) {
		alarm(TIMEOUT_SEC);
		test->test();
		finish_test();
	}
	if (child < 0 || waitpid(child, &wait_status, 0) != child) {
		perror("plain_runner");
		exit(2);
	}
	return wait_status;
}

static const char *verdict_of(int wait_status)
{
	if (WIFSIGNALED(wait_status))
		return WTERMSIG(wait_status) == SIGALRM ? "TIME" : "CRASH";
	return WEXITSTATUS(wait_status) == 0 ? "PASS" : WEXITSTATUS(wait_status) == STATUS_SKIPPED ? "SKIP" : "FAIL";
}

static void refuse_unknown(const struct criterion_test *test)
{
	const struct criterion_test_extra_data *data = test->data;

	if (!data->init && !data->fini && !data->signal && !data->exit_code && !data->disabled &&
	    data->kind_ == CR_TEST_NORMAL)
		return;
	fprintf(stderr, "plain_runner: %s asks for something that this runner does not know\n", data->identifier_);
	exit(2);
}

int main(int argc, char **argv)
{
	const char *const pattern = pattern_of(argc, argv);
	unsigned n_tested = 0, n_passed = 0;

	for (struct criterion_test **test = __start_cr_tst; test < __stop_cr_tst; test++) {
		if (fnmatch(pattern, (*test)->data->identifier_, FNM_EXTMATCH) != 0)
			continue;
		refuse_unknown(*test);
		const char *const verdict = is_here(argc, argv) ? run_here(*test) : verdict_of(run_test(*test));

		printf("[%s] %s\n", verdict, (*test)->data->identifier_);
		n_tested += strcmp(verdict, "SKIP") != 0;
		n_passed += strcmp(verdict, "PASS") == 0;
	}
	printf("[====] Synthesis: Tested: %u | Passing: %u | Failing: %u | Crashing: 0\n", n_tested, n_passed,
	       n_tested - n_passed);
	return n_passed == n_tested ? 0 : 1;
}
