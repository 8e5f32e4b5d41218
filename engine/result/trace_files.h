/* Files of a trace: one with all hosts, as in trace.h, or one for each worker, as in rank_trace.h, if the path has
 * "%r". Only one thread at a time may use them. */
#ifndef PSD_TRACE_FILES_H
#define PSD_TRACE_FILES_H

#include <stdbool.h>
#include <stdio.h>

#include "engine/result/rank_trace.h"

struct psd_trace_files {
	FILE **files;		       /* n_files entries; engine/base/output.h closes them */
	unsigned n_files, first_rank;  /* files of ranks first_rank to first_rank + n_files - 1 */
	bool is_by_rank;	       /* false: there is one file */
	struct psd_rank_trace *ranks;  /* one entry per file; NULL before psd_trace_files_begin(), and for one file */
	struct psd_traffic *until_now; /* bytes that each host has sent and received; NULL unless there is one file */
	struct psd_text text;	       /* events that are not written yet */
};

/* True if the path names a file for each worker: it has "%r", which the worker's rank replaces. */
bool psd_trace_path_is_by_rank(const char *path);
/* Returns the path of a worker's file; the caller frees it. NULL: out of memory. */
char *psd_trace_path_of(const char *path, unsigned rank);

/* Opens the files of n_ranks workers from first_rank on, or the one file, with psd_output_open() and its statuses.
 * world_size: number of all workers. PSD_EFILE also if there is a file of rank world_size or higher, which must be from
 * another run. psd_trace_files_release() releases *files. */
enum psd_status psd_trace_files_open(struct psd_trace_files *files, const char *path, unsigned first_rank,
				     unsigned n_ranks, unsigned world_size, struct psd_error *err) PSD_MUST_CHECK;
/* Begins the trace of a case. is_predicted: see struct psd_rank_trace. PSD_ENOMEM. */
enum psd_status psd_trace_files_begin(struct psd_trace_files *files, const struct psd_case *traced,
				      const char *executor, bool is_predicted, struct psd_error *err) PSD_MUST_CHECK;
/* Writes a span. files: a struct psd_trace_files, so that this function is a psd_span_fn. */
void psd_trace_files_add(void *files, const struct psd_program *program, const struct psd_span *span);
/* Ends the trace. psd_outputs_commit() finds errors of writing; a process that does not commit the files calls
 * psd_trace_files_flush() instead. PSD_ENOMEM; psd_trace_files_flush(): PSD_ERUN. */
enum psd_status psd_trace_files_end(struct psd_trace_files *files, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_trace_files_flush(struct psd_trace_files *files, struct psd_error *err) PSD_MUST_CHECK;
/* Discards the files, so that older ones stay. */
void psd_trace_files_discard(struct psd_trace_files *files);
/* Releases memory; the files stay open. */
void psd_trace_files_release(struct psd_trace_files *files);

#endif
