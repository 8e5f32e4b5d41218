/* The CSV log of --log: a line per iteration; for a replay only its time. Worker 0's process adds lines; the process
 * that opened the log and started it learns of write errors. The log replaces an older file when training begins, and
 * each line is written at once, so a failed run loses none. A log is not worth a run: after the first line that cannot
 * be written, as on a full disk, no other is tried, and the run goes on. */
#ifndef PSD_REAL_RUN_LOG_H
#define PSD_REAL_RUN_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "engine/base/error.h"
#include "engine/scenario/scenario.h"
#include "real/session/worker.h"

/* The first error in writing. */
struct psd_run_log_loss {
	int error_number; /* 0: none */
	bool is_said;	  /* the iteration is known, and psd_run_log_add() has said it */
	uint32_t iteration;
};

struct psd_run_log {
	const char *path;
	FILE *file; /* log file; NULL: no log */
	bool is_shown;
	struct psd_run_log_loss *loss; /* lines that could not be written; shared by the run's processes */
	off_t kept_bytes;
	double before_sec; /* duration of the earlier runs that this one continues */
};

/* Writes the header. path: borrowed until the end; NULL: no log, and the other functions do nothing. Statuses as
 * psd_output_open(). *log can be closed after a failure too. */
enum psd_status psd_run_log_open(struct psd_run_log *log, const char *path, struct psd_error *err) PSD_MUST_CHECK;
/* Moves the file to its path, before the first line; may be called again. A log that is lost leaves the older file. */
void psd_run_log_begin(struct psd_run_log *log);
/* Before psd_run_log_begin(): takes over the older file's lines before first_iteration, of any system, and continues
 * their seconds. Later, when a run is restarted: drops the lines from that iteration on, except in a pipe. PSD_EFILE:
 * the file cannot be read. */
enum psd_status psd_run_log_go_on(struct psd_run_log *log, uint32_t first_iteration,
				  struct psd_error *err) PSD_MUST_CHECK;
/* Adds a line. PSD_ERUN, once: this is the first line that is missing; the text says why. Later lines are skipped, and
 * psd_run_log_close() reports it again. */
enum psd_status psd_run_log_add(const struct psd_run_log *log, const struct psd_system *system,
				const struct psd_progress *progress, bool has_replay,
				struct psd_error *err) PSD_MUST_CHECK;

/* Marks the lines so far as kept: psd_run_log_drop() does not remove them. */
void psd_run_log_keep(struct psd_run_log *log);
/* Removes the lines since psd_run_log_keep(), since their iterations are executed again. A pipe has them twice. */
void psd_run_log_drop(const struct psd_run_log *log);

/* Closes a log, or zeros. A log that never began is left to psd_outputs_commit(). PSD_ERUN: lines are missing; the text
 * says from which iteration on, and why. */
enum psd_status psd_run_log_close(struct psd_run_log *log, struct psd_error *err) PSD_MUST_CHECK;

#endif
