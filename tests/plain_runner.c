/* Runs the tests that Criterion's macros declare without Criterion's own runner, whose child processes map their memory
 * where ThreadSanitizer cannot follow (as its authors have known since 2018). Each test is a forked
 * process. Knows of TestSuite and Test only what the suites here use: timeouts, for which one number serves all;
 * fixtures, expected signals and statuses are refused.
 * [--filter PATTERN]: only the tests whose SUITE/CASE matches, as Criterion's option of this name; with several of
 * these options, those that match each.
 * [--jobs N]: number of tests at a time. Default 1.
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

enum { TIMEOUT_SEC = 300, STATUS_FAILED = 1, STATUS_SKIPPED = 77, MOST_JOBS = 64 };

/* The linker's names for the section that Test() adds to. */
extern struct criterion_test *__start_cr_tst[], *__stop_cr_tst[];

static bool has_failed; /* in the process of a test */

/* ---- replacements for the functions that Criterion's macros call ---- */

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

/* ---- running tests ---- */

/* Other options of Criterion have no meaning here. */
static unsigned long jobs_of(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i++)
		if (strcmp(argv[i], "--jobs") == 0)
			return strtoul(argv[i + 1], NULL, 10);
	return 1;
}

static bool is_chosen(int argc, char **argv, const struct criterion_test *test)
{
	for (int i = 1; i + 1 < argc; i++)
		if (strcmp(argv[i], "--filter") == 0 &&
		    fnmatch(argv[i + 1], test->data->identifier_, FNM_EXTMATCH) != 0)
			return false;
	return true;
}

static bool is_here(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--here") == 0)
			return true;
	return false;
}

struct job {
	const struct criterion_test *test; /* NULL: this job is free */
	pid_t child;
};

static struct {
	struct job jobs[MOST_JOBS];
	unsigned n_tested, n_passed;
} runs;

static void report(const struct criterion_test *test, const char *verdict)
{
	printf("[%s] %s\n", verdict, test->data->identifier_);
	runs.n_tested += strcmp(verdict, "SKIP") != 0;
	runs.n_passed += strcmp(verdict, "PASS") == 0;
}

static void run_here(const struct criterion_test *test)
{
	has_failed = false;
	test->test();
	report(test, has_failed ? "FAIL" : "PASS");
}

static void start_test(struct job *job, const struct criterion_test *test)
{
	fflush(NULL);
	*job = (struct job){test, fork()};
	if (job->child == 0) {
		setlinebuf(stdout); /* lines of tests that run at the same time stay whole */
		alarm(TIMEOUT_SEC);
		test->test();
		finish_test();
	}
	if (job->child < 0) {
		perror("plain_runner");
		exit(2);
	}
}

static const char *verdict_of(int wait_status)
{
	if (WIFSIGNALED(wait_status))
		return WTERMSIG(wait_status) == SIGALRM ? "TIME" : "CRASH";
	return WEXITSTATUS(wait_status) == 0 ? "PASS" : WEXITSTATUS(wait_status) == STATUS_SKIPPED ? "SKIP" : "FAIL";
}

/* Waits until a test has ended; false if none was running. */
static bool await_test(void)
{
	int wait_status;
	const pid_t child = waitpid(-1, &wait_status, 0);

	for (struct job *job = runs.jobs; child > 0 && job < runs.jobs + MOST_JOBS; job++)
		if (job->test && job->child == child) {
			report(job->test, verdict_of(wait_status));
			job->test = NULL;
		}
	return child > 0;
}

/* Waits for one if there is none. */
static struct job *free_job(unsigned n_jobs)
{
	for (;;) {
		for (struct job *job = runs.jobs; job < runs.jobs + n_jobs; job++)
			if (!job->test)
				return job;
		await_test();
	}
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
	const unsigned long n_wanted = jobs_of(argc, argv);
	const unsigned n_jobs = n_wanted < 1 ? 1 : n_wanted > MOST_JOBS ? MOST_JOBS : (unsigned)n_wanted;

	for (struct criterion_test **test = __start_cr_tst; test < __stop_cr_tst; test++) {
		if (!is_chosen(argc, argv, *test))
			continue;
		refuse_unknown(*test);
		if (is_here(argc, argv))
			run_here(*test);
		else
			start_test(free_job(n_jobs), *test);
	}
	while (await_test())
		;
	printf("[====] Synthesis: Tested: %u | Passing: %u | Failing: %u | Crashing: 0\n", runs.n_tested, runs.n_passed,
	       runs.n_tested - runs.n_passed);
	return runs.n_passed == runs.n_tested ? 0 : 1;
}
