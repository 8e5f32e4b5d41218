/* A log keeps what it should, whichever process adds to it. */
#define _POSIX_C_SOURCE 200809L
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include "engine/base/output.h"
#include "real/session/run_log.h"
#include "tests/scratch_file.h"

#define HEAD "system,iteration,epoch,loss,training_accuracy_ratio,elapsed_sec,test_accuracy_ratio\n"

static const struct psd_system quoted = {.name = "A, \"b\""};

/* As worker 0 does, in a process of its own. */
static void add_elsewhere(const struct psd_run_log *log, uint32_t iteration)
{
	const struct psd_progress progress = {.iteration = iteration, .n_iterations = 9, .elapsed_sec = 0.5};
	const pid_t pid = fork();
	int ended;

	if (pid == 0) {
		psd_run_log_add(log, &quoted, &progress, true);
		_exit(0);
	}
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

Test(run_log, drops_what_is_done_again)
{
	struct scratch_file file = scratch_file_write("of another run\n");
	struct psd_run_log log = opened(file.path);
	struct psd_error err;

	add_elsewhere(&log, 1);
	psd_run_log_keep(&log);
	add_elsewhere(&log, 2);
	add_elsewhere(&log, 3);
	psd_run_log_drop(&log);
	add_elsewhere(&log, 4);
	cr_assert_eq(psd_run_log_check(&log, &err), PSD_OK);
	cr_assert_eq(psd_outputs_commit(&err), PSD_OK, "%s", err.text);
	psd_run_log_close(&log);
	assert_text(file.path, HEAD "\"A, \"\"b\"\"\",1,,,,0.5,\n\"A, \"\"b\"\"\",4,,,,0.5,\n");
	remove(file.path);
}

Test(run_log, is_there_from_the_first_line_on_and_stays)
{
	struct scratch_file file = scratch_file_write("of another run\n");
	struct psd_run_log log = opened(file.path);

	assert_text(file.path, "of another run\n");
	add_elsewhere(&log, 1);
	assert_text(file.path, HEAD "\"A, \"\"b\"\"\",1,,,,0.5,\n");
	add_elsewhere(&log, 2);
	psd_outputs_discard();
	log.file = NULL;
	psd_run_log_close(&log);
	assert_text(file.path, HEAD "\"A, \"\"b\"\"\",1,,,,0.5,\n\"A, \"\"b\"\"\",2,,,,0.5,\n");
	remove(file.path);
}

Test(run_log, says_later_what_another_process_could_not_write)
{
	struct scratch_file file = scratch_file_write("");
	struct psd_run_log log = opened(file.path);
	struct psd_error err;

	cr_assert_not_null(freopen("/dev/full", "w", log.file));
	add_elsewhere(&log, 1);
	cr_assert_eq(psd_run_log_check(&log, &err), PSD_ERUN);
	cr_assert_eq(strncmp(err.text, file.path, strlen(file.path)), 0, "%s", err.text);
	cr_assert_not_null(strstr(err.text, strerror(ENOSPC)), "%s", err.text);
	psd_run_log_close(&log);
	remove(file.path);
}

Test(run_log, without_a_path_is_none)
{
	struct psd_run_log log = opened(NULL);
	struct psd_error err;

	psd_run_log_keep(&log);
	psd_run_log_add(&log, &quoted, &(struct psd_progress){.iteration = 1}, false);
	psd_run_log_drop(&log);
	cr_assert_eq(psd_run_log_check(&log, &err), PSD_OK);
	psd_run_log_close(&log);
}
