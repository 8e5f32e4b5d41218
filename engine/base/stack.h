/* A stack that is large enough, whatever limit the shell has set. Refuses to create threads: a process with several
 * could not enter a namespace. */
#ifndef PSD_STACK_H
#define PSD_STACK_H

#include <stdbool.h>

#include "engine/base/error.h"

/* Limit below which psd_stack_run() uses memory of its own, and threads need a size of their own. */
enum { PSD_STACK_LEAST_BYTES = 8 << 20 };

/* Raises the limit of the process's stack to PSD_STACK_LEAST_BYTES, as far as its hard limit allows. Returns whether it
 * still is below. Call it first in main(). */
bool psd_stack_is_small(void);
/* Returns work(argc, argv), called on a stack of PSD_STACK_LEAST_BYTES or more: the process's own one unless is_small.
 * PSD_ENOMEM. */
enum psd_status psd_stack_run(bool is_small, int (*work)(int argc, char *argv[]), int argc, char *argv[], int *result,
			      struct psd_error *err) PSD_MUST_CHECK;

#endif
