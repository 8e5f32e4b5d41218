/* Common code of the stand-in's parts: its one lock, the beginning and end of each call, the queueing of operations,
 * the device's memory. Refuses to be included by tests. */
#ifndef PSD_TESTS_CUDA_STAND_IN_PARTS_H
#define PSD_TESTS_CUDA_STAND_IN_PARTS_H

#include <pthread.h>

#include "tests/cuda/stand_in.h"

/* ---- calls (stand_in_calls.c) ---- */

/* All state is under one lock. Work under the lock orders nothing for the thread sanitiser, and its accesses are not
 * looked at: else the lock would order operations that no event orders. */
void psd_stand_in_lock(void);
void psd_stand_in_unlock(void);
/* Waits until psd_stand_in_changed() is called. Returns false if psd_stand_in_now_nsec() reaches until_nsec first; 0 is
 * no limit. */
bool psd_stand_in_await_change(uint64_t until_nsec);
void psd_stand_in_changed(void);
/* Waits until the condition is signalled. */
void psd_stand_in_await(pthread_cond_t *condition);
/* The order that CUDA does guarantee: everything before the publishing of `token` is seen by the thread that meets it
 * later. Under the lock. */
void psd_stand_in_publish(void *token);
void psd_stand_in_meet(void *token);

/* Begins a call: takes the lock and says with what error it must fail. Always followed by psd_stand_in_end(), which
 * notes the error for cudaGetLastError() and returns it. */
cudaError_t psd_stand_in_begin(const char *function);
cudaError_t psd_stand_in_end(cudaError_t error);
/* The same for a call that a thread must not make while it captures: it ends the capture. */
cudaError_t psd_stand_in_begin_unsafe(const char *function);
/* The same for a call that waits for a stream or queries it. */
cudaError_t psd_stand_in_begin_wait(const char *function, cudaStream_t stream);
/* Whether a call that releases something does so in spite of an error: a lost context takes its resources with it. */
bool psd_stand_in_may_release(cudaError_t error);
/* Counts a wait and returns whether it is left out. Under the lock. */
bool psd_stand_in_is_skipped(const char *function, const void *site);
/* Whether one of the next waits will be left out: until then everything is held as long as it may. Under the lock. */
bool psd_stand_in_is_about_to_skip(void);
/* Whether the operation that is about to run fails instead. Under the lock. */
cudaError_t psd_stand_in_operation_fault(void);
/* Marks the context as lost; all later calls return the error. Under the lock. */
void psd_stand_in_lose(cudaError_t error);
bool psd_stand_in_is_lost(void);
/* Number of operations that streams are executing. A call that reports the loss ends when there are none: a lost
 * context touches memory no more. Under the lock. */
extern unsigned psd_stand_in_n_running;
cudaError_t psd_stand_in_lost_error(void); /* cudaSuccess if it is not lost */
uint64_t psd_stand_in_now_nsec(void);
/* Time as events have it: the same, or the time spent so far once any was spent. */
uint64_t psd_stand_in_event_nsec(void);
void psd_stand_in_spend_nsec(uint64_t nsec);
/* Under the lock. */
extern struct psd_stand_in_holdings psd_stand_in_count;
/* Whether the thread runs a host function, which must not call CUDA. */
extern _Thread_local bool psd_stand_in_is_host_function;

/* ---- the machine (stand_in_device.c) ---- */

/* The calling thread's device. */
int psd_stand_in_device(void);
/* The error of a machine without a device, or with too old a driver. Under the lock. */
cudaError_t psd_stand_in_machine_error(void);

/* ---- streams (stand_in_streams.c) ---- */

/* One recording of an event, and the waits for it. */
struct psd_stand_in_record {
	unsigned references;
	struct CUstream_st *stream; /* until it is over */
	uint64_t sequence;
	bool is_over;
	bool is_counted;  /* the host has waited for it, or begun to */
	bool is_left_out; /* and has been told that it is over */
	uint64_t at_nsec;
};

void psd_stand_in_drop_record(struct psd_stand_in_record *record);

/* Queues work for the device behind the stream's other operations. `arguments` are copied, and after them tail_bytes of
 * `tail`. Memory that the operation touches is opened to it. Under the lock. */
cudaError_t psd_stand_in_queue(cudaStream_t stream, void (*run)(void *arguments), const void *arguments, size_t bytes,
			       const void *tail, size_t tail_bytes);
/* A library's call: queues unless `error`, or the stream is of another device than the thread's. Under the lock. */
cudaError_t psd_stand_in_queue_work(cudaStream_t stream, void (*run)(void *arguments), const void *arguments,
				    size_t bytes);
/* Queues a recording of an event; NULL where memory is short. The caller has one reference. Under the lock. */
struct psd_stand_in_record *psd_stand_in_queue_record(cudaStream_t stream);
cudaError_t psd_stand_in_queue_wait(cudaStream_t stream, struct psd_stand_in_record *record);
/* Waits until what the record marks is over. Under the lock. */
cudaError_t psd_stand_in_await_record(struct psd_stand_in_record *record);
/* Waits until all that the stream has is over. Under the lock. */
cudaError_t psd_stand_in_finish(cudaStream_t stream);
/* Makes the record, or the stream's present operations, late because nobody waits for them. Under the lock. */
void psd_stand_in_be_late(struct CUstream_st *stream, uint64_t sequence);
/* Nobody needs to wait any more for what the record marks to begin. Under the lock. */
void psd_stand_in_demand_record(struct psd_stand_in_record *record);
/* The device a stream is of; the thread's for the default stream. Under the lock. */
int psd_stand_in_stream_device(cudaStream_t stream);

/* ---- graphs (stand_in_graphs.c) ---- */

/* The number, from 1, of the capture that takes what is queued on the stream; 0: none. Under the lock. */
uint64_t psd_stand_in_is_captured(cudaStream_t stream);
/* Invalidates the stream's capture, if there is one. Returns the error. Under the lock. */
cudaError_t psd_stand_in_invalidate(cudaStream_t stream, cudaError_t error);
/* A call that nobody may make while any stream captures. Under the lock. */
cudaError_t psd_stand_in_forbid_all(void);

/* ---- memory (stand_in_memory.c) ---- */

enum psd_stand_in_place { PSD_STAND_IN_PAGEABLE, PSD_STAND_IN_PINNED, PSD_STAND_IN_ON_DEVICE, PSD_STAND_IN_NOWHERE };

/* Where the bytes lie: all in one block, else NOWHERE where some are of the stand-in's, else PAGEABLE. */
enum psd_stand_in_place psd_stand_in_place_of(const void *begin, uint64_t bytes);
uint64_t psd_stand_in_total_bytes(void); /* the device's memory */
/* Whether an operation may touch the bytes. If not the context is lost, as on a device. No lock. */
bool psd_stand_in_may_touch(const void *begin, uint64_t bytes);
/* Around an operation of the calling thread. Under the lock. */
void psd_stand_in_open_memory(void);
void psd_stand_in_close_memory(void);
/* Each byte of memory before it is written: NaN in every floating-point type. */
enum { PSD_STAND_IN_POISON = 0xff };

#endif
