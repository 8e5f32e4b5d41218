/* Executes jobs in child processes. Each simulation needs its own process, because a process can use SimGrid only
 * once, and because SimGrid may call abort(). Results are in the order of the jobs. */
#ifndef PSD_SIM_CHILDREN_H
#define PSD_SIM_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/error.h"
#include "engine/program/outcome.h"

/* Function that executes job number `job` in a child process, and fills *outcome on success. Output that it prints is
 * discarded, unless the child crashes: then the output is a part of the error message. */
typedef enum psd_status (*psd_child_fn)(void *context, unsigned job, struct psd_outcome *outcome,
					struct psd_error *err);
/* Function that writes the name of a job, for messages, to `text`, which has `room` bytes. */
typedef void (*psd_child_name_fn)(const void *context, unsigned job, char *text, size_t room);

struct psd_children {
	psd_child_fn work;
	psd_child_name_fn name;
	void *context; /* first argument of work() and name() */
	unsigned n_jobs;
	unsigned n_at_once; /* largest number of children that run at the same time, >= 1 */
	/* a line on standard error shows how many jobs are done; it is overwritten when this changes */
	bool has_progress;
};

/* Executes all jobs, and sets outcomes[job] of each job that succeeds. If jobs fail, err has the error of the failed
 * job with the lowest number. An input error keeps its status and text; other errors also name the job. A crash of a
 * child is PSD_ERUN, with the signal and the child's output. SIGINT, SIGTERM and SIGHUP end all children;
 * *signal_number is then the signal, otherwise 0. When this function returns, no child is left; children also end if
 * this process is killed. Only one thread may call it. PSD_ENOMEM, PSD_ERUN, or the status of a job. */
enum psd_status psd_children_run(const struct psd_children *children, struct psd_outcome outcomes[], int *signal_number,
				 struct psd_error *err) PSD_MUST_CHECK;

/* Returns the number of processor cores that this process may use, at least 1. */
unsigned psd_children_cores(void);

#endif
