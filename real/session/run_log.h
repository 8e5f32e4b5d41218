/* CSV file of --log: one line per iteration, in a replay with its duration only. The process of worker 0 adds lines. It
 * was started by the process that opened the log, which learns of write errors in the end. The log replaces an older
 * file when training begins. Each line is written at once, so a failed run loses none. A log never ends a run: after
 * the first line that cannot be written, as on a full disk, no other line is tried, and the run continues. */
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
	bool is_said;	  /* `iteration` is valid, and psd_run_log_add() has reported the error */
	uint32_t iteration;
};

struct psd_run_log {
	const char *path;
	FILE *file; /* open log file; NULL: no log is written */
	bool is_shown;
	/* First line that could not be written, in memory shared by the run's processes. */
	struct psd_run_log_loss *loss;
	off_t kept_bytes;
	double before_sec; /* duration of the earlier runs that this run continues; added to the seconds of its lines */
};

/* For a run that resumes, before anything is written: checks that the file at path is a log, if there is a file. Its
 * first line may be cut. PSD_EINVAL: it is no log; PSD_EFILE: it cannot be read. */
enum psd_status psd_run_log_check(const char *path, struct psd_error *err) PSD_MUST_CHECK;
/* Opens the log and writes its header line. path: borrowed until psd_run_log_close(); NULL: there is no log, and the
 * other functions do nothing. Statuses as psd_output_open(). After a failure, *log may be closed all the same. */
enum psd_status psd_run_log_open(struct psd_run_log *log, const char *path, struct psd_error *err) PSD_MUST_CHECK;
/* Moves the new file to its path, where it replaces an older log. Call it before the first line; it may be called
 * again. If the new log cannot be written, the older file stays. */
void psd_run_log_begin(struct psd_run_log *log);
/* Before psd_run_log_begin(), for a run that resumes: copies the older log's lines of iterations before
 * first_iteration, of any system, and continues their seconds. A line that is cut is left out. Iterations before
 * first_iteration that have no line are added to `missing`, as in "3 to 5, 7". Later, for a run that restarts: removes
 * the lines from first_iteration on, unless the log is a pipe. PSD_EFILE: the older file cannot be read. */
enum psd_status psd_run_log_go_on(struct psd_run_log *log, uint32_t first_iteration, struct psd_text *missing,
				  struct psd_error *err) PSD_MUST_CHECK;
/* Adds a line for the iteration of *progress. PSD_ERUN: this line is the first one that could not be written; the text
 * says why. Later lines are skipped with PSD_OK, and psd_run_log_close() reports the error again. */
enum psd_status psd_run_log_add(const struct psd_run_log *log, const struct psd_system *system,
				const struct psd_progress *progress, bool has_replay,
				struct psd_error *err) PSD_MUST_CHECK;

/* Marks all lines so far as final: psd_run_log_drop() does not remove them. */
void psd_run_log_keep(struct psd_run_log *log);
/* Removes the lines added since psd_run_log_keep(), because their iterations will be executed again. A log that is a
 * pipe keeps them, and has these iterations twice. */
void psd_run_log_drop(const struct psd_run_log *log);

/* Closes a log; a struct of zeros is allowed. If the log never replaced the older file, psd_outputs_commit() does that.
 * PSD_ERUN: lines are missing; the text says from which iteration on, and why. */
enum psd_status psd_run_log_close(struct psd_run_log *log, struct psd_error *err) PSD_MUST_CHECK;

#endif
