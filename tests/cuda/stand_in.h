/* A test double for the CUDA runtime, cuBLAS, cuBLASLt and cuDNN: the functions of the toolkit's own headers that
 * psd-run's CUDA device calls, computed by the host's processor, so that the device is tested where there is no GPU.
 * The linker takes these in place of the libraries. It does what CUDA's documentation allows and code must survive,
 * not what is likely:
 *
 * - Each stream is a thread that runs behind. A seed chooses for each operation: at once, late, or not before somebody
 *   waits for it. PSD_STAND_IN_SEED sets it from outside; 0 is without delays, 1 where nothing is said.
 * - The device's memory cannot be touched by the host: that ends the process with a message. Memory is NaN until it is
 *   written, an operation that touches freed memory ends the process, and so does one that writes beyond a block.
 * - A copy from memory that is pinned or registered reads it when its turn comes; what it writes is NaN before.
 * - cudaFree() does not wait for what is queued.
 * - A capture does not execute its operations, and a forbidden call ends it. A graph is launched as one operation of
 *   its stream; destroying it before it has been executed loses the context.
 * - After fork() each call fails in the child where the parent had called before.
 * - Under the thread sanitiser operations are ordered by streams, events and waits only: a wait that is missing is a
 *   data race, whatever the timing.
 *
 * Refuses to be fast, to tell anything about the speed of a GPU, and to be part of psd-run. Functions below may be
 * called from any thread, also before the first of CUDA's. */
#ifndef PSD_TESTS_CUDA_STAND_IN_H
#define PSD_TESTS_CUDA_STAND_IN_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Queues `run` in place of kernel<<<>>>() with a copy of the arguments. cudaGetLastError() reports an error, as for a
 * kernel. stream: NULL is the device's default stream. */
void psd_stand_in_launch(cudaStream_t stream, void (*run)(void *arguments), const void *arguments, size_t bytes);

/* Calls so far that put work on a stream: kernels, libraries' functions, copies, fills; a graph is one. */
unsigned psd_stand_in_enqueued(void);

/* ---- settings ---- */

void psd_stand_in_set_seed(uint64_t seed);		/* for operations that are queued from now on */
void psd_stand_in_set_devices(int n);			/* 0: every call fails with cudaErrorNoDevice. Default 1 */
void psd_stand_in_set_driver(int version);		/* below the runtime's: cudaErrorInsufficientDriver */
void psd_stand_in_set_memory(uint64_t bytes);		/* all devices together; default 4 GiB */
void psd_stand_in_set_capability(int major, int minor); /* default 8.0 */

/* Algorithms of cuBLASLt that support epilogues. FREE, the default: the one that it takes for the product alone. DEAR:
 * another one. NONE: none. */
enum psd_stand_in_epilogues { PSD_STAND_IN_EPILOGUES_FREE, PSD_STAND_IN_EPILOGUES_DEAR, PSD_STAND_IN_EPILOGUES_NONE };
void psd_stand_in_set_epilogues(enum psd_stand_in_epilogues how);

/* Engines that cuDNN lists first for convolutions. TRUE, the default: those that it has. UNPLANNED, UNBEGUN: before
 * them one that gives equal bits, but is refused when its plan is finalised, or when the plan is executed. UNEQUAL:
 * none that gives equal bits. The list of fallbacks stays the same. */
enum psd_stand_in_estimates {
	PSD_STAND_IN_ESTIMATES_TRUE,
	PSD_STAND_IN_ESTIMATES_UNPLANNED,
	PSD_STAND_IN_ESTIMATES_UNBEGUN,
	PSD_STAND_IN_ESTIMATES_UNEQUAL
};
void psd_stand_in_set_estimates(enum psd_stand_in_estimates how);

/* Adds bytes to the workspace of each cuDNN engine that has one, in plans made from now on. */
void psd_stand_in_set_workspaces(uint64_t bytes);

/* Sets how long a convolution on that engine takes by events' times. Everything without a setting then takes none. */
void psd_stand_in_set_engine_msec(int engine, unsigned msec);
/* Convolutions that an engine has executed since the count began, in processes that were forked since, too. */
void psd_stand_in_count_engines(void);
unsigned psd_stand_in_engine_runs(int engine);

/* Holds a copy that reads from there until a call names another place or NULL, 20 s at most. The copy may be queued
 * already, or have begun. */
void psd_stand_in_hold_copy(const void *from);

/* ---- failures ---- */

/* The nth call from now (from 1) of `function`, or of any that can fail where that is NULL, returns `error` and does
 * nothing. A call of cuBLAS or cuDNN returns the library's own status for it. Launches are calls of "launch". If the
 * error loses CUDA's context, as cudaErrorLaunchFailure does, all later calls return it and queued work is dropped. Up
 * to 16 such orders wait at a time. */
void psd_stand_in_fail(const char *function, unsigned nth, cudaError_t error);
/* Forgets the orders that have not come up. */
void psd_stand_in_fail_no_more(void);
/* The nth operation from now that runs on the device fails instead, and the context is lost. */
void psd_stand_in_fail_operation(unsigned nth, cudaError_t error);
/* Calls that can fail, so far. */
unsigned psd_stand_in_calls(void);

/* ---- waits left out ---- */

/* A place in the program that waits for the device: cudaStreamWaitEvent, cudaEventSynchronize, cudaStreamSynchronize,
 * cudaDeviceSynchronize; cudaEventQuery where nobody has waited for the recording or asked for it before. To wait for
 * an event that was never recorded is no wait. A line that the compiler repeats is several places. */
struct psd_stand_in_wait_place {
	const char *function;
	const void *site; /* the address that the call returns to: the same in processes forked from one */
	unsigned calls;
};

/* Distinct places so far, in the order in which each was first reached. */
unsigned psd_stand_in_waits(void);
struct psd_stand_in_wait_place psd_stand_in_wait(unsigned place); /* from 0 */
/* Every call at the place, which need not have been reached yet, returns at once without having waited. */
void psd_stand_in_skip_wait(unsigned place);
/* The same for a place whose address is known. */
void psd_stand_in_skip_wait_at(const void *site);
/* The nth call from now (from 1) of all of them returns at once, in this process and in each that is forked from it.
 * Until then streams do nothing before somebody waits, and then any work that nobody waits for is late: code that
 * relies on it finds it missing. 0: no call in this process, and the count of the others goes on. */
void psd_stand_in_skip_one_wait(unsigned nth);
/* Waits that were left out since, in all these processes. */
unsigned psd_stand_in_left_out(void);
/* Sets a function that the thread calls in a wait that is left out. It must not call the stand-in. NULL: none. */
void psd_stand_in_on_left_out(void (*tell)(void));

/* ---- resources ---- */

/* Resources that were made and not given back. */
struct psd_stand_in_holdings {
	unsigned blocks;      /* device memory */
	unsigned host_blocks; /* pinned or registered */
	unsigned streams;
	unsigned events;
	unsigned handles; /* those of cuBLAS, cuBLASLt and cuDNN, and descriptors of the last two */
	unsigned graphs;  /* including instances of them */
};

struct psd_stand_in_holdings psd_stand_in_held(void);

#ifdef __cplusplus
}
#endif

#endif
