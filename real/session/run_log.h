/* The log of --log: CSV, a line for each iteration; of a replay, which learns nothing, only its time. Worker 0's
 * process adds the lines, the one that opened the log and started it hears whether they could be written. It replaces
 * an older file when training begins, and has each line at once: what was learnt is not lost with a run that fails. */
#ifndef PSD_REAL_RUN_LOG_H
#define PSD_REAL_RUN_LOG_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "engine/base/error.h"
#include "engine/scenario/scenario.h"
#include "real/session/worker.h"

struct psd_run_log {
	const char *path;
	FILE *file; /* NULL: no log */
	bool is_shown;
	int *write_error_number; /* shared by the processes: of the first line that could not be written, or 0 */
	off_t kept_bytes;
	double before_sec; /* what the runs took that this one goes on from */
};

/* Writes the head of the columns. path is borrowed until the end; NULL: there is no log, and the others do nothing. As
 * psd_output_open(); PSD_ERUN: cannot be written. *log is set on failure too, to one that may be closed. */
enum psd_status psd_run_log_open(struct psd_run_log *log, const char *path, struct psd_error *err) PSD_MUST_CHECK;
/* Before the first line, more than once too: the file comes into its place. PSD_ERUN: it cannot. */
enum psd_status psd_run_log_begin(struct psd_run_log *log, struct psd_error *err) PSD_MUST_CHECK;
/* Before psd_run_log_begin(): takes over the older file's lines of iterations before first_iteration, and counts
 * seconds on from the last of them; whatever system they are of, since a run may go on by another. Later, when a run of
 * one system is started again: drops the lines from that iteration on; what is no file, a pipe say, keeps them.
 * PSD_EFILE: that file cannot be read; PSD_ERUN: the lines cannot be written or dropped. */
enum psd_status psd_run_log_go_on(struct psd_run_log *log, uint32_t first_iteration,
				  struct psd_error *err) PSD_MUST_CHECK;
/* A line. PSD_ERUN: it could not be written, and no further one is; psd_run_log_close() tells it again. */
enum psd_status psd_run_log_add(const struct psd_run_log *log, const struct psd_system *system,
				const struct psd_progress *progress, bool has_replay,
				struct psd_error *err) PSD_MUST_CHECK;

/* What is in the log now stays there. */
void psd_run_log_keep(struct psd_run_log *log);
/* Drops what was added since, as it is done again. What is no file, a pipe say, has it all the same. */
void psd_run_log_drop(const struct psd_run_log *log);

/* Also of zeros. One that never began is left to psd_outputs_commit(). PSD_ERUN: a line could not be written. */
enum psd_status psd_run_log_close(struct psd_run_log *log, struct psd_error *err) PSD_MUST_CHECK;

#endif
