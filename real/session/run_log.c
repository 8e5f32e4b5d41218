#define _GNU_SOURCE 1 /* MAP_ANONYMOUS */
#include "real/session/run_log.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/base/output.h"
#include "engine/base/text.h"
#include "real/base/console.h"

static enum psd_status refuse(const struct psd_run_log *log, int error_number, struct psd_error *err)
{
	return psd_error_set(err, PSD_ERUN, (struct psd_place){.path = log->path}, "cannot be written: %s",
			     strerror(error_number));
}

static enum psd_status write_head(const struct psd_run_log *log, struct psd_error *err)
{
	struct psd_text head = {.bytes = NULL};

	psd_text_add(&head, "system,iteration,epoch,loss,training_accuracy_ratio,elapsed_sec,test_accuracy_ratio\n");
	return psd_console_write(log->file, &head) ? PSD_OK : refuse(log, errno, err);
}

enum psd_status psd_run_log_open(struct psd_run_log *log, const char *path, struct psd_error *err)
{
	struct psd_run_log opened = {.path = path};
	enum psd_status status;

	*log = opened;
	if (!path)
		return PSD_OK;
	opened.state = mmap(NULL, sizeof(*opened.state), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (opened.state == MAP_FAILED)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory");
	status = psd_output_open(&opened.file, path, err);
	if (!status)
		status = write_head(&opened, err);
	if (status)
		psd_run_log_close(&opened);
	*log = opened;
	return status;
}

void psd_run_log_add(const struct psd_run_log *log, const struct psd_system *system,
		     const struct psd_progress *progress, bool has_replay)
{
	struct psd_text text = {.bytes = NULL};

	if (!log->file || log->state->write_error_number)
		return;
	psd_text_add_csv(&text, system->name);
	psd_text_add(&text, ",%" PRIu32, progress->iteration);
	if (has_replay) {
		psd_text_add(&text, ",,,,%.9g,\n", progress->elapsed_sec);
	} else {
		psd_text_add(&text, ",%.9g,", progress->epochs);
		if (isfinite(progress->loss))
			psd_text_add(&text, "%.9g", progress->loss);
		psd_text_add(&text, ",%.9g,%.9g,", progress->correct_ratio, progress->elapsed_sec);
		if (progress->test_samples > 0)
			psd_text_add(&text, "%.9g", (double)progress->test_correct / (double)progress->test_samples);
		psd_text_add(&text, "\n");
	}
	if (!psd_console_write(log->file, &text) || (!log->state->is_shown && !psd_output_show(log->file)))
		log->state->write_error_number = errno;
	log->state->is_shown = true;
}

/* Lines are never left in the stream's buffer, so the descriptor, whose offset the processes share, knows. */
void psd_run_log_keep(struct psd_run_log *log)
{
	if (log->file)
		log->kept_bytes = lseek(fileno(log->file), 0, SEEK_CUR);
}

void psd_run_log_drop(const struct psd_run_log *log)
{
	if (log->file && log->kept_bytes > 0 && !ftruncate(fileno(log->file), log->kept_bytes))
		(void)lseek(fileno(log->file), log->kept_bytes,
			    SEEK_SET); /* where it could be shortened, it can be sought */
}

enum psd_status psd_run_log_check(const struct psd_run_log *log, struct psd_error *err)
{
	return log->file && log->state->write_error_number ? refuse(log, log->state->write_error_number, err) : PSD_OK;
}

void psd_run_log_close(struct psd_run_log *log)
{
	psd_output_discard(log->file);
	if (log->state)
		munmap(log->state, sizeof(*log->state));
	*log = (struct psd_run_log){.file = NULL};
}
