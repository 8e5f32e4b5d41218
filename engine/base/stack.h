/* Makes sure that the program has a large enough stack, for every limit of the shell. It creates no thread: a process
 * with several threads cannot enter a Linux namespace. */
#ifndef PSD_STACK_H
#define PSD_STACK_H

#include <stdbool.h>

#include "engine/base/error.h"

/* Size of stack that the program needs, bytes. If the limit of the shell is lower, psd_stack_run() allocates a stack of
 * this size, and threads must be created with this stack size. */
enum { PSD_STACK_LEAST_BYTES = 8 << 20 };

/* Raises the limit on the process's stack to PSD_STACK_LEAST_BYTES, or to the hard limit if that is lower. Returns
 * false if this is too little for constructors of libraries. argv, environment: arguments of the process, both
 * NULL-terminated. */
bool psd_stack_raise(char *argv[], char *environment[]) PSD_MUST_CHECK;
/* Makes the program call psd_stack_raise() before the constructors of libraries run, and end with status 1 and a line
 * on standard error if it returns false. To be used once, in the file with main(), which includes unistd.h. */
#define PSD_STACK_RAISE_FIRST(program)                                                                                 \
	static void raise_stack(int argc, char *argv[], char *environment[])                                           \
	{                                                                                                              \
		static const char line[] = program ": the limit of the stack leaves less than 18 kB: raise it with "   \
						   "'ulimit -s 8192'\n";                                               \
                                                                                                                       \
		(void)argc;                                                                                            \
		if (psd_stack_raise(argv, environment))                                                                \
			return;                                                                                        \
		(void)!write(STDERR_FILENO, line, sizeof(line) - 1);                                                   \
		_exit(1);                                                                                              \
	}                                                                                                              \
	__attribute__((section(".preinit_array"), used)) static void (*const before_constructors)(                     \
		int, char *[], char *[]) = raise_stack
/* True if the limit on the process's stack is below PSD_STACK_LEAST_BYTES. */
bool psd_stack_is_small(void);
/* Calls work(argc, argv) on a stack of at least PSD_STACK_LEAST_BYTES bytes, and sets *result to its result. is_small:
 * result of psd_stack_is_small(); if true, it allocates a stack, otherwise it uses the process's. PSD_ENOMEM. */
enum psd_status psd_stack_run(bool is_small, int (*work)(int argc, char *argv[]), int argc, char *argv[], int *result,
			      struct psd_error *err) PSD_MUST_CHECK;

#endif
