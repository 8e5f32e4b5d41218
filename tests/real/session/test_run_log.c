/* A log keeps what it should, whichever process adds to it. */
#define _POSIX_C_SOURCE 200809L
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/output.h"
#include "real/session/run_log.h"
#include "tests/scratch_file.h"

#define HEAD		"system,iteration,epoch,loss,training_accuracy_ratio,elapsed_sec,test_accuracy_ratio\n"
#define LINE(iteration) "\"A, \"\"b\"\"\"," iteration ",,,,0.5,\n"

static const struct psd_system quoted = {.name = "A, \"b\""};

/* As worker 0 does, in a process of its own. */
static void add_elsewhere(const struct psd_run_log *log, uint32_t iteration, enum psd_status expected)
{
	const struct psd_progress progress = {.iteration = iteration, .n_iterations = 9, .elapsed_sec = 0.5};
	const pid_t pid = fork();
	struct psd_error err;
	int ended;

	if (pid == 0)
		_exit(psd_run_log_add(log, &quoted, &progress, true, &err) != expected);
	cr_assert_eq(waitpid(pid, &ended, 0), pid);
	cr_assert_eq(ended, 0);
}

static void assert_text(const char *path, const char *expected)
{
	char text[1024] = "";
	FILE *file = fopen(path, "r");

	cr_assert_not_null(file);
	(void)!fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	cr_assert_str_eq(text, expected);
}

static struct psd_run_log opened(const char *path)
{
	struct psd_run_log log;
	struct psd_error err;

	cr_assert_eq(psd_run_log_open(&log, path, &err), PSD_OK, "%s", err.text);
	return log;
}

static void close_log(struct psd_run_log *log)
{
	struct psd_error err;

	cr_assert_eq(psd_run_log_close(log, &err), PSD_OK, "%s", err.text);
}

Test(run_log, drops_what_is_done_again)
{
	struct scratch_file file = scratch_file_write("another run's line\n");
	struct psd_run_log log = opened(file.path);

	psd_run_log_begin(&log);
	add_elsewhere(&log, 1, PSD_OK);
	psd_run_log_keep(&log);
	add_elsewhere(&log, 2, PSD_OK);
	add_elsewhere(&log, 3, PSD_OK);
	psd_run_log_drop(&log);
	add_elsewhere(&log, 4, PSD_OK);
	close_log(&log);
	assert_text(file.path, HEAD LINE("1") LINE("4"));
	remove(file.path);
}

/* A system is started again, some iterations back: a line that was cut by its writer's end goes. */
Test(run_log, goes_back)
{
	struct scratch_file file = scratch_file_write("");
	struct psd_run_log log = opened(file.path);
	struct psd_error err;

	psd_run_log_begin(&log);
	add_elsewhere(&log, 1, PSD_OK);
	add_elsewhere(&log, 2, PSD_OK);
	add_elsewhere(&log, 3, PSD_OK);
	cr_assert_eq(fputs("\"A, \"\"b\"\"\",1", log.file) < 0, 0);
	cr_assert_eq(psd_run_log_go_on(&log, 3, NULL, &err), PSD_OK, "%s", err.text);
	assert_text(file.path, HEAD LINE("1") LINE("2"));
	cr_expect_eq(log.before_sec, 0.5);
	cr_assert_eq(psd_run_log_go_on(&log, 0, NULL, &err), PSD_OK, "%s", err.text);
	assert_text(file.path, HEAD);
	cr_expect_eq(log.before_sec, 0.0);
	add_elsewhere(&log, 0, PSD_OK);
	close_log(&log);
	assert_text(file.path, HEAD LINE("0"));
	remove(file.path);
}

/* Resumes at that iteration; the log has no line of these. */
static void expect_missing(struct psd_run_log *log, uint32_t first_iteration, const char *expected)
{
	struct psd_text missing = {.bytes = NULL};
	struct psd_error err;

	cr_assert_eq(psd_run_log_go_on(log, first_iteration, &missing, &err), PSD_OK, "%s", err.text);
	cr_expect_str_eq(missing.bytes ? missing.bytes : "", expected);
	psd_text_release(&missing);
}

/* Lines that are cut go, wherever they are. */
Test(run_log, says_which_lines_are_missing)
{
	static const struct {
		const char *text, *missing, *left;
	} rows[] = {
		{HEAD LINE("0") LINE("1"), "", HEAD LINE("0") LINE("1")},
		{HEAD LINE("0") LINE("1") LINE("2"), "", HEAD LINE("0") LINE("1")},
		{HEAD LINE("0") "\"A, \"\"b\"\"\",1,,,,0.", "1", HEAD LINE("0")},
		{HEAD LINE("1"), "0", HEAD LINE("1")},
		{HEAD "PS,0,1,,PS,1,,,,0.5,\n" LINE("1"), "0", HEAD LINE("1")},
		{HEAD, "0 to 1", HEAD},
		{"system,itera", "0 to 1", HEAD},
		{"", "0 to 1", HEAD},
	};
	static const char gaps[] = HEAD LINE("1") LINE("2") LINE("5") LINE("6") LINE("10");

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct scratch_file file = scratch_file_write(rows[i].text);
		struct psd_run_log log = opened(file.path);
		struct psd_error err;

		cr_expect_eq(psd_run_log_check(file.path, &err), PSD_OK, "%s", err.text);
		expect_missing(&log, 2, rows[i].missing);
		psd_run_log_begin(&log);
		close_log(&log);
		assert_text(file.path, rows[i].left);
		remove(file.path);
	}
	struct scratch_file file = scratch_file_write(gaps);
	struct psd_run_log log = opened(file.path);

	expect_missing(&log, 12, "0, 3 to 4, 7 to 9, 11");
	close_log(&log);
	remove(file.path);
}

Test(run_log, takes_no_other_file_for_a_log)
{
	static const struct {
		const char *text;
		enum psd_status status;
	} rows[] = {
		{"iteration,loss\n0,1\n", PSD_EINVAL},
		{"x", PSD_EINVAL},
		{"\n" HEAD, PSD_EINVAL},
		{"system,iteration\n", PSD_EINVAL},
		{"system,iteration", PSD_OK},
		{HEAD "x", PSD_OK},
	};
	struct psd_error err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct scratch_file file = scratch_file_write(rows[i].text);

		cr_expect_eq(psd_run_log_check(file.path, &err), rows[i].status, "%s", rows[i].text);
		remove(file.path);
	}
	cr_expect_eq(psd_run_log_check("/dev/null", &err), PSD_OK);
	cr_expect_eq(psd_run_log_check("/no/such", &err), PSD_OK);
}

/* A run resumes with another system; quoted names may have commas. Malformed lines go. */
Test(run_log, keeps_lines_of_earlier_systems)
{
	struct scratch_file file =
		scratch_file_write(HEAD "PS,0,,,,0.25,\n" LINE("1") "PS,2,,,,9,\n"
								    "\"a,0,\",1,,,,0.75,\n"
								    "\n,\nPS\nPS,x,\n\"PS,0,,,,1,\nPS,1");
	struct psd_run_log log = opened(file.path);

	expect_missing(&log, 2, "");
	cr_expect_eq(log.before_sec, 0.75);
	psd_run_log_begin(&log);
	close_log(&log);
	assert_text(file.path, HEAD "PS,0,,,,0.25,\n" LINE("1") "\"a,0,\",1,,,,0.75,\n");
	remove(file.path);
}

Test(run_log, is_there_when_it_begins_and_stays)
{
	struct scratch_file file = scratch_file_write("another run's line\n");
	struct psd_run_log log = opened(file.path);

	assert_text(file.path, "another run's line\n");
	psd_run_log_begin(&log);
	assert_text(file.path, HEAD);
	add_elsewhere(&log, 1, PSD_OK);
	assert_text(file.path, HEAD LINE("1"));
	add_elsewhere(&log, 2, PSD_OK);
	psd_outputs_discard();
	log.is_shown = false; /* its file is closed */
	close_log(&log);
	assert_text(file.path, HEAD LINE("1") LINE("2"));
	remove(file.path);
}

/* A user who removes or replaces the log has his way. */
Test(run_log, a_removed_log_does_not_come_back)
{
	struct scratch_file file = scratch_file_write("");
	struct psd_run_log log = opened(file.path);
	struct psd_error err = {.text = ""};

	psd_run_log_begin(&log);
	add_elsewhere(&log, 1, PSD_OK);
	cr_assert_eq(remove(file.path), 0);
	add_elsewhere(&log, 2, PSD_OK);
	close_log(&log);
	cr_assert_eq(psd_outputs_commit(&err), PSD_OK, "%s", err.text);
	cr_expect_neq(access(file.path, F_OK), 0);
}

Test(run_log, a_log_that_never_began_comes_with_the_other_outputs)
{
	struct scratch_file file = scratch_file_write("another run's line\n");
	struct psd_run_log log = opened(file.path);
	struct psd_error err = {.text = ""};

	close_log(&log);
	assert_text(file.path, "another run's line\n");
	cr_assert_eq(psd_outputs_commit(&err), PSD_OK, "%s", err.text);
	assert_text(file.path, HEAD);
	remove(file.path);
}

/* A line of which some fits is none, and what comes later is not tried. */
Test(run_log, says_later_what_another_process_could_not_write)
{
	struct scratch_file file = scratch_file_write("");
	struct psd_run_log log = opened(file.path);
	const struct rlimit limit = {sizeof(HEAD LINE("1")) + 3, RLIM_INFINITY}, none = {RLIM_INFINITY, RLIM_INFINITY};
	struct psd_error err;

	signal(SIGXFSZ, SIG_IGN);
	psd_run_log_begin(&log);
	add_elsewhere(&log, 1, PSD_OK);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	add_elsewhere(&log, 2, PSD_ERUN);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &none), 0);
	add_elsewhere(&log, 3, PSD_OK);
	cr_assert_eq(psd_run_log_close(&log, &err), PSD_ERUN);
	cr_assert_eq(strncmp(err.text, file.path, strlen(file.path)), 0, "%s", err.text);
	cr_assert_not_null(strstr(err.text, strerror(EFBIG)), "%s", err.text);
	cr_assert_not_null(strstr(err.text, ": lines from iteration 2 on are missing"), "%s", err.text);
	assert_text(file.path, HEAD LINE("1"));
	remove(file.path);
}

/* A log whose beginning cannot be written leaves the older file, and says so with the first line. */
Test(run_log, says_once_that_it_never_began)
{
	struct scratch_file file = scratch_file_write("another run's line\n");
	const struct rlimit limit = {3, RLIM_INFINITY}, none = {RLIM_INFINITY, RLIM_INFINITY};
	struct psd_run_log log;
	struct psd_error err;

	signal(SIGXFSZ, SIG_IGN);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	log = opened(file.path);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &none), 0);
	expect_missing(&log, 5, "");
	psd_run_log_begin(&log);
	add_elsewhere(&log, 5, PSD_ERUN);
	add_elsewhere(&log, 6, PSD_OK);
	cr_assert_eq(psd_run_log_close(&log, &err), PSD_ERUN);
	cr_assert_not_null(strstr(err.text, ": lines from iteration 5 on are missing"), "%s", err.text);
	cr_assert_eq(psd_outputs_commit(&err), PSD_OK);
	assert_text(file.path, "another run's line\n");
	remove(file.path);
}

Test(run_log, without_a_path_is_none)
{
	struct psd_run_log log = opened(NULL);
	struct psd_error err;

	psd_run_log_begin(&log);
	psd_run_log_keep(&log);
	cr_assert_eq(psd_run_log_add(&log, &quoted, &(struct psd_progress){.iteration = 1}, false, &err), PSD_OK);
	psd_run_log_drop(&log);
	close_log(&log);
}
