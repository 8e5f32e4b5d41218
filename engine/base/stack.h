/* A stack that is large enough, whatever limit the shell has set. Refuses to create threads: a process with several
 * could not enter a namespace. */
#ifndef PSD_STACK_H
#define PSD_STACK_H

#include <stdbool.h>

#include "engine/base/error.h"

/* Limit below which psd_stack_run() uses memory of its own, and threads need a size of their own. */
enum { PSD_STACK_LEAST_BYTES = 8 << 20 };

/* Lets function(argc, argv, environment) run before all constructors of libraries, which may need more stack than the
 * limit allows. In a program's main file. */
#define PSD_BEFORE_CONSTRUCTORS(function)                                                                              \
	__attribute__((section(".preinit_array"), used)) static void (*const before_constructors)(int, char *[],       \
												  char *[]) = function

/* Raises the limit of the process's stack to PSD_STACK_LEAST_BYTES, as far as its hard limit allows. Returns false if
 * that leaves too little for constructors of libraries: the program must end then. argv, environment: of the process,
 * both end with NULL. */
bool psd_stack_raise(char *argv[], char *environment[]) PSD_MUST_CHECK;
/* Words for a program that ends then. */
#define PSD_STACK_IS_TOO_SMALL "the limit of the stack leaves less than 18 kB: raise it with 'ulimit -s 8192'"
/* Returns whether the limit of the process's stack is below PSD_STACK_LEAST_BYTES. */
bool psd_stack_is_small(void);
/* Returns work(argc, argv), called on a stack of PSD_STACK_LEAST_BYTES or more: the process's own one unless is_small.
 * PSD_ENOMEM. */
enum psd_status psd_stack_run(bool is_small, int (*work)(int argc, char *argv[]), int argc, char *argv[], int *result,
			      struct psd_error *err) PSD_MUST_CHECK;

#endif
