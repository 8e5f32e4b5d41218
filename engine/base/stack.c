/* A context of ucontext.h on mapped memory; its lowest page stays inaccessible, as below the process's own stack. */
#define _GNU_SOURCE 1

#include "engine/base/stack.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

/* Memory is taken when it is touched. SimGrid's solver recurses once for each link of a large cluster. */
#define OWN_BYTES   ((size_t)256 << 20)
#define GUARD_BYTES ((size_t)64 << 10)

/* Stack for constructors of libraries, of which SimGrid's takes 16 kB, and for the first function of main(). */
#define FIRST_BYTES ((size_t)18 << 10)

bool psd_stack_is_small(void)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_STACK, &limit) && limit.rlim_cur < PSD_STACK_LEAST_BYTES;
}

/* The strings of arguments and environment lie in this order above all other parts of the stack. */
bool psd_stack_raise(char *argv[], char *environment[])
{
	const char *top = argv[0], here = 0;
	struct rlimit limit;

	if (!psd_stack_is_small() || getrlimit(RLIMIT_STACK, &limit))
		return true;
	limit.rlim_cur = limit.rlim_max < PSD_STACK_LEAST_BYTES ? limit.rlim_max : PSD_STACK_LEAST_BYTES;
	(void)setrlimit(RLIMIT_STACK, &limit); /* a limit that stays is handled as one that cannot be raised */
	for (; *argv; argv++)
		top = *argv;
	for (; *environment; environment++)
		top = *environment;
	return !top || getrlimit(RLIMIT_STACK, &limit) ||
	       limit.rlim_cur >= (size_t)(top + strlen(top) - &here) + FIRST_BYTES;
}

/* makecontext() passes integers only. */
static struct call {
	int (*work)(int argc, char *argv[]);
	int argc;
	char **argv;
	int result;
} call;

static void make_call(void)
{
	call.result = call.work(call.argc, call.argv);
}

enum psd_status psd_stack_run(bool is_small, int (*work)(int argc, char *argv[]), int argc, char *argv[], int *result,
			      struct psd_error *err)
{
	static ucontext_t own, before; /* they take a kilobyte each */

	if (!is_small) {
		*result = work(argc, argv);
		return PSD_OK;
	}
	char *stack = mmap(NULL, OWN_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	if (stack == MAP_FAILED || mprotect(stack, GUARD_BYTES, PROT_NONE) || getcontext(&own))
		return psd_error_set(
			err, PSD_ENOMEM, PSD_NOWHERE,
			"no memory for a stack (%s), and the limit is too low for the process's own: raise it "
			"with 'ulimit -s 8192'",
			strerror(errno));
	call = (struct call){work, argc, argv, 0};
	own.uc_stack.ss_sp = stack;
	own.uc_stack.ss_size = OWN_BYTES;
	own.uc_link = &before;
	makecontext(&own, make_call, 0);
	if (swapcontext(&before, &own))
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE,
				     "the program cannot use a stack that it has allocated: %s", strerror(errno));
	(void)munmap(stack, OWN_BYTES);
	*result = call.result;
	return PSD_OK;
}
