/* Runs jobs in child processes: SimGrid exists once per process and may abort(), so each case needs a child. Results
 * have the order of the jobs, whichever ends first. */
#ifndef PSD_SIM_CHILDREN_H
#define PSD_SIM_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/error.h"
#include "engine/program/outcome.h"

/* Function that does job number `job` in the child. Its output is discarded, unless the child crashes: then it is part
 * of the error. */
typedef enum psd_status (*psd_child_fn)(void *context, unsigned job, struct psd_outcome *outcome,
					struct psd_error *err);
/* Function that writes a job's name for people into text. */
typedef void (*psd_child_name_fn)(const void *context, unsigned job, char *text, size_t room);

struct psd_children {
	psd_child_fn work;
	psd_child_name_fn name;
	void *context;
	unsigned n_jobs;
	unsigned n_at_once; /* number of concurrent children, >= 1 */
	bool has_progress;  /* shows progress in a line on standard error that rewrites itself */
};

/* Runs all jobs and sets outcomes[job] on success. If jobs fail, the first of them in the order of jobs is reported. An
 * error of the input keeps its status and text; other errors get the job's name. A crash is PSD_ERUN with the signal
 * and the child's words. SIGINT, SIGTERM and SIGHUP end all children; *signal_number is then the signal, else 0. No
 * child is left at the return, and children die with this process. Call it from one thread. Returns PSD_ENOMEM,
 * PSD_ERUN, or the status of a job. */
enum psd_status psd_children_run(const struct psd_children *children, struct psd_outcome outcomes[], int *signal_number,
				 struct psd_error *err) PSD_MUST_CHECK;

/* Number of processor cores that this process may use, at least 1. */
unsigned psd_children_cores(void);

#endif
