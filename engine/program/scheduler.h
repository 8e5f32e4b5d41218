/* The scheduler of one host: operations that may start now, and the order in which each resource takes them. Knows no
 * time: executors report ends and arrivals. The number of iterations in flight is the program's window. */
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

/* Duties of a host: the dependencies of each operation that it executes. Hosts with the same duties share the table. */
struct psd_duties {
	/* For each operation: number of dependencies executed here plus arrivals, or PSD_NOT_CARRIED where it is not
	 * executed here. One table for iterations that exchange and one for the others; the same table where all do. */
	uint32_t *waits, *local_waits;
	uint32_t n_carried, n_local;
};
#define PSD_NOT_CARRIED UINT32_MAX
#define PSD_DONE	UINT32_MAX
#define PSD_GIVEN	(UINT32_MAX - 1) /* state of an operation that is given to a stream and not done */

/* Makes the duties of a host. arrivals is called, with context, for each receive that the host executes. *duties is
 * filled on success and released by psd_duties_release(). PSD_ENOMEM. */
enum psd_status psd_duties_make(struct psd_duties *duties, const struct psd_program *program, unsigned host,
				psd_arrivals_fn arrivals, const void *context, struct psd_error *err) PSD_MUST_CHECK;
void psd_duties_release(struct psd_duties *duties);

/* Iterations of a run: from `first`, before which all are complete, to `end` - 1. */
struct psd_iterations {
	uint32_t first, end;
	/* Steps of the even and odd window at the start (struct psd_period) if the loss sets them; 0: the plan's. */
	uint32_t steps[2];
};

/* Task: one operation of one iteration. */
struct psd_task {
	uint32_t iteration;
	uint32_t op;
};

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
	uint32_t *waiting; /* dependencies left: a row of operations per iteration of the window; or PSD_DONE */
	uint32_t *n_left;  /* number of operations left in each row */
	const uint32_t **row_waits; /* table of the duties with which each row began */
	uint32_t iteration;	    /* oldest iteration that is not complete */
	unsigned free_resources;    /* bit r set: operations of resource r take no time and never wait for each other */
	unsigned streams;	    /* bit r set: resource r is a stream, see psd_scheduler_give() */
	struct psd_task_list
		instant; /* ready tasks that hold no resource, and collectives; taken by psd_scheduler_take_instant() */
	uint32_t fence;	 /* iteration from which nothing starts before the fence is passed; 0: no fence */
	struct psd_task_list fenced;
	struct psd_task_list early; /* arrivals for iterations that the window has not reached */
	struct psd_heap queues[PSD_RESOURCES];
	bool is_out_of_memory;
};

/* Prepares the scheduler of a host. All arguments are borrowed until psd_scheduler_release(). PSD_ENOMEM. */
enum psd_status psd_scheduler_init(struct psd_scheduler *scheduler, const struct psd_program *program,
				   const struct psd_duties *duties, struct psd_iterations iterations,
				   struct psd_error *err) PSD_MUST_CHECK;
void psd_scheduler_release(struct psd_scheduler *scheduler);

/* Completes iterations without operations here, before the first fence; called before tasks are taken. */
void psd_scheduler_begin(struct psd_scheduler *scheduler);
/* Sets the run's first fence: from `iteration` on nothing starts before psd_scheduler_pass_fence(), which sets the next
 * one. `iteration` is not complete, nor has an operation of the one before it been done; so a host without duties,
 * which is complete from the beginning, has no fences. */
void psd_scheduler_set_fence(struct psd_scheduler *scheduler, uint32_t iteration);
/* True if every task before the fence is done, and the fence has not been passed. */
bool psd_scheduler_is_at_fence(const struct psd_scheduler *scheduler);
/* Passes the fence, which the host must be at, and sets the next at iteration `next`; 0: no fence follows. */
void psd_scheduler_pass_fence(struct psd_scheduler *scheduler, uint32_t next);
/* Gives the task to its resource, a stream: tasks that wait for it on the same stream become ready, and are executed
 * after it. */
void psd_scheduler_give(struct psd_scheduler *scheduler, struct psd_task task);
/* Records that the task is done: tasks that waited only for it become ready. */
void psd_scheduler_finish(struct psd_scheduler *scheduler, struct psd_task task);
/* Records that one message of a receive operation has arrived. It counts once its iteration is in the window: with
 * local steps a quick host may be at its next exchange before others are done with this one. */
void psd_scheduler_arrive(struct psd_scheduler *scheduler, struct psd_task receive);
/* Takes a ready task that needs no resource or is a collective; false when there is none. */
bool psd_scheduler_take_instant(struct psd_scheduler *scheduler, struct psd_task *task);
/* Takes the ready task that a free resource should start: smallest turn, then iteration, then operation number. Returns
 * false if none is ready. */
bool psd_scheduler_take(struct psd_scheduler *scheduler, enum psd_resource resource, struct psd_task *task);
/* Number of dependencies left of an operation of the oldest iteration; PSD_DONE: it is done. */
uint32_t psd_scheduler_waiting(const struct psd_scheduler *scheduler, uint32_t op);
/* True when every iteration is done. */
bool psd_scheduler_is_complete(const struct psd_scheduler *scheduler);

/* Order of ready queues: true if a leaves before b; total, so that runs repeat exactly. */
bool psd_ready_goes_before(const struct psd_ready *a, const struct psd_ready *b);
/* Adds a ready task. Returns false when memory runs out. Turns count items and layers: exact as the heap's key. */
bool psd_ready_push(struct psd_heap *queue, struct psd_ready entry);
/* Takes the first ready task. Returns false when the queue is empty. */
bool psd_ready_pop(struct psd_heap *queue, struct psd_ready *entry);

#endif
