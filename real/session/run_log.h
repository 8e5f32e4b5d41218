/* CSV file of the option --log: one line per iteration; in a replay the line has only the duration. The process of
 * worker 0 adds lines. Another process has opened the log and started worker 0, and learns of write errors at the end.
 * The log replaces an older file when training begins. Each line is written immediately, so a failed run loses no line.
 * An error of the log never ends a run. After the first line that cannot be written, for example on a full disk, no
 * further lines are written, and the run continues. */
#ifndef PSD_REAL_RUN_LOG_H
#define PSD_REAL_RUN_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/scenario/scenario.h"
#include "real/session/worker.h"

/* The first line that could not be written. */
struct psd_run_log_loss {
	int error_number; /* errno with which writing that line failed; 0: all lines were written */
	bool is_said;	  /* psd_run_log_add() has set `iteration` and reported the error */
	uint32_t iteration;
};

struct psd_run_log {
	const char *path;
	FILE *file; /* open log file; NULL: no log is written */
	bool is_shown;
	/* Information about the first line that could not be written, in memory shared by the run's processes. */
	struct psd_run_log_loss *loss;
	off_t kept_bytes;
	/* Duration of the earlier runs that this run continues, seconds; added to the seconds in its lines. */
	double before_sec;
};

/* For a run that resumes, before anything is written: checks that the file at path is a log. If there is no file, that
 * is no error. The first line may be incomplete. PSD_EINVAL: the file is not a log; PSD_EFILE: it cannot be read. */
enum psd_status psd_run_log_check(const char *path, struct psd_error *err) PSD_MUST_CHECK;
/* Opens the log and writes its header line. path: must stay valid until psd_run_log_close(); NULL: there is no log, and
 * the other functions do nothing. Statuses as psd_output_open(). Even after a failure, psd_run_log_close() is
 * allowed. */
enum psd_status psd_run_log_open(struct psd_run_log *log, const char *path, struct psd_error *err) PSD_MUST_CHECK;
/* Moves the new file to its path, where it replaces an older log. Call it before the first line is added; further calls
 * do nothing. If the new log cannot be written, the older file stays. */
void psd_run_log_begin(struct psd_run_log *log);
/* For a run that resumes, before psd_run_log_begin(): copies from the older log the lines of iterations before
 * first_iteration, of any system. The seconds of new lines continue those of the copied lines. An incomplete line is
 * not copied. Iterations before first_iteration without a line are added to `missing`, for example as "3 to 5, 7". For
 * a run that restarts, later: removes the lines from iteration first_iteration on, unless the log is a pipe. PSD_EFILE:
 * the older file cannot be read. */
enum psd_status psd_run_log_go_on(struct psd_run_log *log, uint32_t first_iteration, struct psd_text *missing,
				  struct psd_error *err) PSD_MUST_CHECK;
/* Adds a line for the iteration of *progress. PSD_ERUN: this line is the first one that could not be written; the text
 * has the reason. After that, no lines are written and the function returns PSD_OK; psd_run_log_close() reports the
 * error again. */
enum psd_status psd_run_log_add(const struct psd_run_log *log, const struct psd_system *system,
				const struct psd_progress *progress, bool has_replay,
				struct psd_error *err) PSD_MUST_CHECK;

/* Makes all lines so far final: psd_run_log_drop() does not remove them. */
void psd_run_log_keep(struct psd_run_log *log);
/* Removes the lines that were added since psd_run_log_keep(), because their iterations will be executed again. If the
 * log is a pipe, they cannot be removed, and the log has two lines for these iterations. */
void psd_run_log_drop(const struct psd_run_log *log);

/* Closes a log; a struct of zeros is allowed. If the log has not replaced the older file yet, psd_outputs_commit() will
 * do it. PSD_ERUN: lines are missing; the text has the first missing iteration and the reason. */
enum psd_status psd_run_log_close(struct psd_run_log *log, struct psd_error *err) PSD_MUST_CHECK;

#endif
