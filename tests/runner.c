/* Runs the tests that Criterion's macros declare: main() of each binary of tests. Each test is a forked process, which
 * takes a millisecond; Criterion's own runner starts the program anew, and its libraries take 80 ms. ThreadSanitizer
 * cannot follow the processes of Criterion either. Refuses fixtures, expected signals and expected statuses, which no
 * suite has. A test without a limit of time, its own or its suite's, has 300 s, and 1200 s with PSD_FULL_TESTS in
 * the environment; with sanitisers all limits are longer.
 * [--filter PATTERN]: only the tests whose SUITE/CASE matches; with several of these options, those that match each.
 * [--jobs N]: number of tests at a time. Default 1.
 * [--list]: prints the names of the chosen tests and runs none.
 * [--here]: in this process, one after the other, for tools that lose sight of forked ones; a test that is given up
 * ends it. */
#define _GNU_SOURCE /* for patterns with alternatives */
#include <criterion/criterion.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	LIMIT_SEC = 300,
	FULL_LIMIT_SEC = 1200,
	DEAR_SEC = 2,
	STATUS_FAILED = 1,
	STATUS_SKIPPED = 77,
	MOST_JOBS = 4096,
	MOST_FILTERS = 4
};

/* Factor on all limits: sanitisers make tests several times slower. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { LIMIT_FACTOR = 3 };
#else
enum { LIMIT_FACTOR = 1 };
#endif

/* The linker's names for the sections that Test() and TestSuite() add to; a program may have no TestSuite(). */
extern struct criterion_test *__start_cr_tst[], *__stop_cr_tst[];
extern struct criterion_suite *__start_cr_sts[] __attribute__((weak)), *__stop_cr_sts[] __attribute__((weak));

static bool has_failed; /* in the process of a test */

/* ---- replacements for the functions that Criterion's macros call ---- */

/* Without what libraries do at exit(), which takes 8 ms where SimGrid is linked; sanitisers look for leaks there. */
static _Noreturn void end_test(int status)
{
	if (LIMIT_FACTOR > 1)
		exit(status);
	fflush(NULL);
	_exit(status);
}

static _Noreturn void finish_test(void)
{
	end_test(has_failed ? STATUS_FAILED : 0);
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

void psd_tests_report(const char *file, int line, char *expected, const char *format, ...)
{
	va_list arguments;

	has_failed = true;
	printf("[----] %s:%d: assertion failed\n[----]   ", file, line);
	va_start(arguments, format);
	if (format[1])
		vprintf(format + 1, arguments);
	else
		fputs(expected, stdout);
	va_end(arguments);
	putchar('\n');
	free(expected);
}

void criterion_abort_test(void)
{
	finish_test();
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
	end_test(STATUS_SKIPPED);
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

static struct {
	const char *filters[MOST_FILTERS];
	unsigned n_filters;
	unsigned long n_jobs;
	bool is_list, is_here;
} options = {.n_jobs = 1};

static void read_options(char **argv)
{
	for (char **argument = argv + 1; *argument; argument++)
		if (strcmp(*argument, "--list") == 0)
			options.is_list = true;
		else if (strcmp(*argument, "--here") == 0)
			options.is_here = true;
		else if (strcmp(*argument, "--jobs") == 0 && argument[1])
			options.n_jobs = strtoul(*++argument, NULL, 10);
		else if (strcmp(*argument, "--filter") == 0 && argument[1] && options.n_filters < MOST_FILTERS)
			options.filters[options.n_filters++] = *++argument;
		else {
			fprintf(stderr, "%s: '%s' is not one of --filter PATTERN, --jobs N, --list and --here\n",
				argv[0], *argument);
			exit(2);
		}
	if (options.n_jobs < 1 || options.n_jobs > MOST_JOBS) {
		fprintf(stderr, "%s: '--jobs' is %lu, must be 1 to %d\n", argv[0], options.n_jobs, MOST_JOBS);
		exit(2);
	}
}

static bool is_chosen(const struct criterion_test *test)
{
	for (unsigned i = 0; i < options.n_filters; i++)
		if (fnmatch(options.filters[i], test->data->identifier_, FNM_EXTMATCH) != 0)
			return false;
	return true;
}

struct job {
	const struct criterion_test *test; /* NULL: this job is free */
	pid_t child;
};

static struct {
	struct job jobs[MOST_JOBS];
	unsigned n_tested, n_passed;
} runs;

/* Tests that pass are named only when they are dear, for tests/README.md has a rule for these. */
static void report(const struct criterion_test *test, const char *verdict, long processor_sec)
{
	const bool passed = strcmp(verdict, "PASS") == 0;

	if (!passed || processor_sec >= DEAR_SEC)
		printf("[%s] %s (%ld s of processor)\n", verdict, test->data->identifier_, processor_sec);
	runs.n_tested += strcmp(verdict, "SKIP") != 0;
	runs.n_passed += passed;
}

static void run_here(const struct criterion_test *test)
{
	has_failed = false;
	test->test();
	report(test, has_failed ? "FAIL" : "PASS", 0);
}

static unsigned limit_of(const struct criterion_test *test)
{
	double sec = test->data->timeout;

	for (struct criterion_suite **suite = __start_cr_sts; sec <= 0.0 && suite < __stop_cr_sts; suite++)
		if (strcmp((*suite)->name, test->category) == 0)
			sec = (*suite)->data->timeout;
	if (sec <= 0.0)
		sec = getenv("PSD_FULL_TESTS") ? FULL_LIMIT_SEC : LIMIT_SEC;
	return LIMIT_FACTOR * (unsigned)sec;
}

static void start_test(struct job *job, const struct criterion_test *test)
{
	fflush(NULL);
	*job = (struct job){test, fork()};
	if (job->child == 0) {
		setlinebuf(stdout); /* lines of tests that run at the same time stay whole */
		alarm(limit_of(test));
		test->test();
		finish_test();
	}
	if (job->child < 0) {
		perror("tests: fork");
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
	struct rusage used;
	const pid_t child = wait4(-1, &wait_status, 0, &used);

	for (struct job *job = runs.jobs; child > 0 && job < runs.jobs + MOST_JOBS; job++)
		if (job->test && job->child == child) {
			report(job->test, verdict_of(wait_status), used.ru_utime.tv_sec + used.ru_stime.tv_sec);
			job->test = NULL;
		}
	return child > 0;
}

/* Waits for one if there is none. */
static struct job *free_job(void)
{
	for (;;) {
		for (struct job *job = runs.jobs; job < runs.jobs + options.n_jobs; job++)
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
	fprintf(stderr, "tests: %s asks for something that this runner does not know\n", data->identifier_);
	exit(2);
}

int main(int argc, char **argv)
{
	(void)argc;
	read_options(argv);
	for (struct criterion_test **test = __start_cr_tst; test < __stop_cr_tst; test++) {
		if (!is_chosen(*test))
			continue;
		refuse_unknown(*test);
		if (options.is_list)
			puts((*test)->data->identifier_);
		else if (options.is_here)
			run_here(*test);
		else
			start_test(free_job(), *test);
	}
	if (options.is_list)
		return 0;
	while (await_test())
		;
	printf("[====] Synthesis: Tested: %u | Passing: %u | Failing: %u | Crashing: 0\n", runs.n_tested, runs.n_passed,
	       runs.n_tested - runs.n_passed);
	return runs.n_passed == runs.n_tested ? 0 : 1;
}
