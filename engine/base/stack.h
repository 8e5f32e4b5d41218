/* Makes sure that the program has a large enough stack, for every limit of the shell. It creates no thread: a process
 * with several threads cannot enter a Linux namespace. */
#ifndef PSD_STACK_H
#define PSD_STACK_H

#include <stdbool.h>

#include "engine/base/error.h"

/* Size of stack that the program needs, bytes. If the limit of the shell is lower, psd_stack_run() allocates a stack of
 * this size, and threads must be created with this stack size. */
enum { PSD_STACK_LEAST_BYTES = 8 << 20 };

/* Makes function(argc, argv, environment) run before the constructors of libraries, which may need more stack than the
 * limit allows. To be used once, in the file with main(). */
#define PSD_BEFORE_CONSTRUCTORS(function)                                                                              \
	__attribute__((section(".preinit_array"), used)) static void (*const before_constructors)(int, char *[],       \
												  char *[]) = function

/* Raises the limit on the process's stack to PSD_STACK_LEAST_BYTES, or to the hard limit if that is lower. Returns
 * false if this is too little for constructors of libraries: then the program must end with PSD_STACK_IS_TOO_SMALL.
 * argv, environment: arguments of the process, both NULL-terminated. */
bool psd_stack_raise(char *argv[], char *environment[]) PSD_MUST_CHECK;
/* Message of a program that ends because psd_stack_raise() returned false. */
#define PSD_STACK_IS_TOO_SMALL "the limit of the stack leaves less than 18 kB: raise it with 'ulimit -s 8192'"
/* True if the limit on the process's stack is below PSD_STACK_LEAST_BYTES. */
bool psd_stack_is_small(void);
/* Calls work(argc, argv) on a stack of at least PSD_STACK_LEAST_BYTES bytes, and sets *result to its result. is_small:
 * result of psd_stack_is_small(); if true, it allocates a stack, otherwise it uses the process's. PSD_ENOMEM. */
enum psd_status psd_stack_run(bool is_small, int (*work)(int argc, char *argv[]), int argc, char *argv[], int *result,
			      struct psd_error *err) PSD_MUST_CHECK;

#endif
