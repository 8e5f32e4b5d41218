/* Scheduler of one host: finds the operations that may start now, and their order on each resource. It has no clock:
 * the executor reports ends of operations and arrivals of messages. At most program->window iterations are under way
 * at the same time. */
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

/* Duties of a host: the operations that it executes, and the number of operations and messages for which each waits.
 * Hosts with equal duties may share one struct. */
struct psd_duties {
	/* One entry per operation: number of operations of this host and of messages for which it waits, in an
	 * iteration that executes all of them. PSD_NOT_CARRIED: this host does not execute the operation. */
	uint32_t *waits;
	uint32_t n_carried; /* number of operations that this host executes in such an iteration */
	/* duration of each operation on this host, borrowed from the program; NULL: psd_op.work_sec */
	const double *work_sec;
	uint32_t batch; /* number of samples of a micro-batch, if the host is a worker */
};
#define PSD_NOT_CARRIED UINT32_MAX /* in psd_duties: this host does not execute the operation */
#define PSD_DONE	UINT32_MAX /* in psd_scheduler.waiting: the operation has ended */
/* in psd_scheduler.waiting: the operation was passed to a device that executes operations in order, and has not
 * ended */
#define PSD_GIVEN (UINT32_MAX - 1)

/* Makes the duties of a host. Calls arrivals(context, ...) for each receive operation of the host. *duties is filled
 * on success and released by psd_duties_release(). PSD_ENOMEM. */
enum psd_status psd_duties_make(struct psd_duties *duties, const struct psd_program *program, unsigned host,
				psd_arrivals_fn arrivals, const void *context, struct psd_error *err) PSD_MUST_CHECK;
void psd_duties_release(struct psd_duties *duties);

/* Iterations of a run: `first` to `end` - 1. `first` is above 0 if a run resumes from a checkpoint; earlier iterations
 * count as completed. */
struct psd_iterations {
	uint32_t first, end;
	uint32_t n_behind; /* number of last iterations that are not measured */
	/* Local SGD whose number of steps changes with the loss: number of steps in the last even-numbered window
	 * [0] and in the last odd-numbered window [1], see struct psd_period. 0: the plan's number of steps. */
	uint32_t steps[2];
	/* Local SGD with fragments: all exchange in the last iteration, too, so that workers end with equal parameters.
	 * Without fragments every exchange leaves equal parameters. */
	bool ends_equal;
	uint32_t equal; /* iteration before which workers had equal parameters, see psd_period.first */
};

/* Task: one operation in one iteration. */
struct psd_task {
	uint32_t iteration;
	uint32_t op;
};

/* Entry of a queue of tasks that may start. */
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
	/* Number of operations and messages for which each operation still waits, or PSD_DONE or PSD_GIVEN. An
	 * operation that this host does not execute in the iteration counts as done. Shape (program->window, n_ops);
	 * iteration i uses row i % window. */
	uint32_t *waiting;
	uint32_t *n_left; /* number of operations of an iteration that have not ended; one entry per row of `waiting` */
	uint32_t iteration; /* oldest iteration that is not completed */
	/* Bit r set: operations of resource r take no time. They start as soon as they are ready, without waiting for
	 * the resource. */
	unsigned free_resources;
	/* Bit r set: resource r is a stream. It accepts several operations and executes them in the order in which
	 * they are passed to it, see psd_scheduler_give(). */
	unsigned streams;
	/* ready tasks that need no resource, and ready collectives; psd_scheduler_take_instant() removes them */
	struct psd_task_list instant;
	/* Tasks of this iteration and later ones do not start before psd_scheduler_pass_fence(); 0: there is no
	 * fence. */
	uint32_t fence;
	struct psd_task_list fenced; /* ready tasks that wait for the fence */
	/* receive operations whose messages have arrived before their iteration has begun here */
	struct psd_task_list early;
	/* for each resource the ready tasks, in the order of psd_ready_goes_before() */
	struct psd_heap queues[PSD_RESOURCES];
	bool is_out_of_memory;
};

/* Prepares the scheduler of a host. All pointers are borrowed until psd_scheduler_release(). PSD_ENOMEM. */
enum psd_status psd_scheduler_init(struct psd_scheduler *scheduler, const struct psd_program *program,
				   const struct psd_duties *duties, struct psd_iterations iterations,
				   struct psd_error *err) PSD_MUST_CHECK;
void psd_scheduler_release(struct psd_scheduler *scheduler);

/* Starts the schedule; called once, before tasks are taken. First iterations in which the host has no operations count
 * as completed, up to the first fence. */
void psd_scheduler_begin(struct psd_scheduler *scheduler);
/* Sets the first fence of a run, for a pause such as a checkpoint: operations of `iteration` and later ones wait for
 * psd_scheduler_pass_fence(). Must be called before any operation of iteration - 1 has ended. A host without
 * operations has no fences. */
void psd_scheduler_set_fence(struct psd_scheduler *scheduler, uint32_t iteration);
/* True if there is a fence, and every task before it is done. */
bool psd_scheduler_is_at_fence(const struct psd_scheduler *scheduler);
/* Removes the fence, so that the operations behind it may start, and sets the next fence at iteration `next`; 0: there
 * is no other fence. psd_scheduler_is_at_fence() must be true. */
void psd_scheduler_pass_fence(struct psd_scheduler *scheduler, uint32_t next);
/* Makes the run end before iteration `end` instead. Iteration `end` must not have begun. */
void psd_scheduler_set_end(struct psd_scheduler *scheduler, uint32_t end);
/* Records that the task was passed to its resource, which is a stream (psd_scheduler.streams). Tasks of the same
 * stream that wait for this task become ready, because the stream executes them after it. */
void psd_scheduler_give(struct psd_scheduler *scheduler, struct psd_task task);
/* Records that the task has ended. Tasks that waited only for it become ready. */
void psd_scheduler_finish(struct psd_scheduler *scheduler, struct psd_task task);
/* Records that one message of a receive operation has arrived. If its iteration has not begun here, the message is
 * remembered until then. This happens with local SGD: a fast host may send for its next exchange before this host has
 * finished the present one. */
void psd_scheduler_arrive(struct psd_scheduler *scheduler, struct psd_task receive);
/* Removes a ready task that needs no resource, or that is a collective, and sets *task to it. Returns false if there
 * is none. */
bool psd_scheduler_take_instant(struct psd_scheduler *scheduler, struct psd_task *task);
/* Removes the ready task that the free resource should start next, and sets *task to it. It is the task with the
 * smallest turn. Among equal turns it is the one of the lowest iteration, then of the lowest operation number. Returns
 * false if no task is ready. */
bool psd_scheduler_take(struct psd_scheduler *scheduler, enum psd_resource resource, struct psd_task *task);
/* Returns the number of operations and messages for which operation `op` still waits in the oldest iteration that is
 * not completed; PSD_DONE: it has ended. */
uint32_t psd_scheduler_waiting(const struct psd_scheduler *scheduler, uint32_t op);
/* True if every iteration is completed. */
bool psd_scheduler_is_complete(const struct psd_scheduler *scheduler);

/* True if ready task a starts before ready task b. Two different tasks never count as equal, so runs repeat
 * exactly. */
bool psd_ready_goes_before(const struct psd_ready *a, const struct psd_ready *b);
/* Adds a ready task to a queue. Returns false if memory runs out. The heap's key is a double; it is exact because
 * turns are small integers. */
bool psd_ready_push(struct psd_heap *queue, struct psd_ready entry);
/* Removes from a queue the task that starts first, and sets *entry to it. Returns false if the queue is empty. */
bool psd_ready_pop(struct psd_heap *queue, struct psd_ready *entry);

#endif
