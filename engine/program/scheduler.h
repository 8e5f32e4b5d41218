/* Scheduler of one host: finds the operations that may start now, and the order in which they start on each resource.
 * Has no clock: executors report ends of operations and arrivals of messages. At most program->window iterations are
 * under way at a time. */
#ifndef PSD_SCHEDULER_H
#define PSD_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/base/heap.h"
#include "engine/program/period.h"
#include "engine/program/program.h"

/* Function that returns the number of messages that a receive operation on `host` waits for. */
typedef uint32_t (*psd_arrivals_fn)(const void *context, const struct psd_op *receive, unsigned host);

/* Duties of a host: the operations that it executes, and for each the number of dependencies to wait for. Hosts with
 * equal duties may share one struct psd_duties. */
struct psd_duties {
	/* For each operation: number of operations of this host for which it waits, plus number of messages;
	 * PSD_NOT_CARRIED if this host does not execute the operation. `waits` is for iterations in which workers
	 * exchange, local_waits for the others; both are the same array if workers exchange in all iterations. */
	uint32_t *waits, *local_waits;
	/* number of operations that this host executes in an iteration with an exchange (n_carried) and without
	 * (n_local) */
	uint32_t n_carried, n_local;
};
#define PSD_NOT_CARRIED UINT32_MAX /* in psd_duties: this host does not execute the operation */
#define PSD_DONE	UINT32_MAX /* in psd_scheduler.waiting: the operation has ended */
/* in psd_scheduler.waiting: the operation was passed to a stream and has not ended */
#define PSD_GIVEN (UINT32_MAX - 1)

/* Makes the duties of a host. Calls arrivals(context, ...) for each receive operation that the host executes. *duties
 * is filled on success and released by psd_duties_release(). PSD_ENOMEM. */
enum psd_status psd_duties_make(struct psd_duties *duties, const struct psd_program *program, unsigned host,
				psd_arrivals_fn arrivals, const void *context, struct psd_error *err) PSD_MUST_CHECK;
void psd_duties_release(struct psd_duties *duties);

/* Iterations of a run: `first` to `end` - 1. Iterations before `first` are complete; `first` is not 0 if a run resumes
 * from a checkpoint. */
struct psd_iterations {
	uint32_t first, end;
	/* Local SGD: number of steps in the latest window with an even number and in that with an odd number (struct
	 * psd_period), if the loss decides it; 0: the plan's number. */
	uint32_t steps[2];
};

/* Task: one operation of one iteration. */
struct psd_task {
	uint32_t iteration;
	uint32_t op;
};

/* Entry of a queue: a task that may start, and its turn. */
struct psd_ready {
	int64_t turn;
	struct psd_task task;
};

struct psd_task_list {
	struct psd_task *tasks;
	uint32_t n;
	uint32_t capacity;
};

struct psd_scheduler {
	const struct psd_program *program;
	const struct psd_duties *duties;
	struct psd_iterations iterations;
	struct psd_period period;
	/* number of operations and messages for which each operation still waits, or PSD_DONE or PSD_GIVEN; shape
	 * (window, n_ops); iteration i uses row i % window */
	uint32_t *waiting;
	uint32_t *n_left; /* number of operations that have not ended, one entry per row of `waiting` */
	/* per row of `waiting`: array of the duties (waits or local_waits) for the row's iteration */
	const uint32_t **row_waits;
	uint32_t iteration; /* oldest iteration that is not complete */
	/* bit r set: operations of resource r take no time, so they start at once and several may run at a time */
	unsigned free_resources;
	/* bit r set: resource r is a queue that executes operations in the order in which they are passed to it, see
	 * psd_scheduler_give() */
	unsigned streams;
	struct psd_task_list
		instant; /* ready tasks that hold no resource, and collectives; taken by psd_scheduler_take_instant() */
	uint32_t fence;	 /* iteration from which on nothing starts before psd_scheduler_pass_fence(); 0: no fence */
	struct psd_task_list fenced; /* tasks that are ready but have to wait for the fence */
	struct psd_task_list early; /* receive operations of messages that arrived for iterations that have not begun */
	struct psd_heap queues[PSD_RESOURCES]; /* per resource: ready tasks, ordered by psd_ready_goes_before() */
	bool is_out_of_memory;
};

/* Prepares the scheduler of a host. All arguments are borrowed until psd_scheduler_release(). PSD_ENOMEM. */
enum psd_status psd_scheduler_init(struct psd_scheduler *scheduler, const struct psd_program *program,
				   const struct psd_duties *duties, struct psd_iterations iterations,
				   struct psd_error *err) PSD_MUST_CHECK;
void psd_scheduler_release(struct psd_scheduler *scheduler);

/* Called once before tasks are taken. Completes all iterations, up to the first fence, in which the host has no
 * operations. */
void psd_scheduler_begin(struct psd_scheduler *scheduler);
/* Sets the first fence of a run, for a pause such as a checkpoint: from `iteration` on nothing starts before
 * psd_scheduler_pass_fence(). No operation of iteration - 1 may have ended yet. A host that executes no operations has
 * no fences. */
void psd_scheduler_set_fence(struct psd_scheduler *scheduler, uint32_t iteration);
/* True if every task before the fence is done, and the fence has not been passed. */
bool psd_scheduler_is_at_fence(const struct psd_scheduler *scheduler);
/* Removes the fence, so that operations behind it may start, and sets the next fence at iteration `next`; 0: no fence
 * follows. The host must be at the fence (psd_scheduler_is_at_fence()). */
void psd_scheduler_pass_fence(struct psd_scheduler *scheduler, uint32_t next);
/* Makes the run end before iteration `end` instead, which must not have begun, nor any later one. */
void psd_scheduler_set_end(struct psd_scheduler *scheduler, uint32_t end);
/* Records that the task was passed to its resource, which is a stream. Tasks of the same stream that wait for it become
 * ready, since the stream executes them after it. */
void psd_scheduler_give(struct psd_scheduler *scheduler, struct psd_task task);
/* Records that the task is done: tasks that waited only for it become ready. */
void psd_scheduler_finish(struct psd_scheduler *scheduler, struct psd_task task);
/* Records that one message of a receive operation has arrived. A message for an iteration that has not begun here is
 * kept until that iteration begins: with local SGD a quick host may send for its next exchange before this host has
 * finished the present one. */
void psd_scheduler_arrive(struct psd_scheduler *scheduler, struct psd_task receive);
/* Removes a ready task that needs no resource, or is a collective, and sets *task to it. Returns false if there is
 * none. */
bool psd_scheduler_take_instant(struct psd_scheduler *scheduler, struct psd_task *task);
/* Removes the ready task that a free resource should start next and sets *task to it: the task with the smallest turn;
 * among equal turns the lowest iteration, then the lowest operation number. Returns false if none is ready. */
bool psd_scheduler_take(struct psd_scheduler *scheduler, enum psd_resource resource, struct psd_task *task);
/* Returns the number of operations and messages for which an operation of the oldest incomplete iteration still waits;
 * PSD_DONE if the operation has ended. */
uint32_t psd_scheduler_waiting(const struct psd_scheduler *scheduler, uint32_t op);
/* True when every iteration is done. */
bool psd_scheduler_is_complete(const struct psd_scheduler *scheduler);

/* Order of ready tasks: true if a starts before b. Two different tasks are never equal, so runs repeat exactly. */
bool psd_ready_goes_before(const struct psd_ready *a, const struct psd_ready *b);
/* Adds a ready task to a queue. Returns false when memory runs out. Turns are small integers, so the heap's key, a
 * double, is exact. */
bool psd_ready_push(struct psd_heap *queue, struct psd_ready entry);
/* Removes the first ready task from a queue and sets *entry to it. Returns false when the queue is empty. */
bool psd_ready_pop(struct psd_heap *queue, struct psd_ready *entry);

#endif
