/* Work spread over child processes: SimGrid is one per process and may abort(), so every case runs in a child of its
 * own. Results come back in the order of the jobs, whatever order they end in. */
#ifndef PSD_SIM_CHILDREN_H
#define PSD_SIM_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/error.h"
#include "engine/program/outcome.h"

/* Does job number `job`, in the child. What it prints goes nowhere, except into the message when the child crashes. */
typedef enum psd_status (*psd_child_fn)(void *context, unsigned job, struct psd_outcome *outcome,
					struct psd_error *err);
/* Writes the job's name for people into text. */
typedef void (*psd_child_name_fn)(const void *context, unsigned job, char *text, size_t room);

/* Says why all jobs together are too much. */
typedef enum psd_status (*psd_child_refuse_fn)(const void *context, struct psd_error *err);

struct psd_children {
	psd_child_fn work;
	psd_child_refuse_fn refuse; /* or NULL: nothing is too much */
	psd_child_name_fn name;
	void *context;
	unsigned n_jobs;
	unsigned n_at_once;   /* >= 1 */
	uint64_t most_events; /* of all outcomes together; beyond, refuse() gives the status */
	bool has_progress;    /* a line on standard error that rewrites itself */
};

/* Runs all jobs; outcomes[job] is filled for each on success. When jobs fail, the first of them in the order of jobs is
 * reported, with its name: its own status (PSD_EINVAL and others with the text as it is), PSD_ERUN when it crashed,
 * with the signal and what it said. SIGINT, SIGTERM or SIGHUP end all children; then *signal_number says which it was,
 * else it is 0. No child is left when this returns, and a child dies when this process does. One thread only.
 * PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_children_run(const struct psd_children *children, struct psd_outcome outcomes[], int *signal_number,
				 struct psd_error *err) PSD_MUST_CHECK;

/* Processor cores that this process may use, at least 1. */
unsigned psd_children_cores(void);

#endif
