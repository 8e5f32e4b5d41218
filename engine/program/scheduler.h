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

/* Number of arrivals that end a receive operation on `host`. */
typedef uint32_t (*psd_arrivals_fn)(const void *context, const struct psd_op *receive, unsigned host);

/* Dependencies of each operation on hosts of one kind; hosts with the same duties share the table. */
struct psd_duties {
	/* For each operation: dependencies executed here plus arrivals, or PSD_NOT_CARRIED where it is not executed
	 * here. One table for iterations that exchange and one for the others; the same table where all do. */
	uint32_t *waits, *local_waits;
	uint32_t n_carried, n_local;
};
#define PSD_NOT_CARRIED UINT32_MAX
#define PSD_DONE	UINT32_MAX
#define PSD_GIVEN	(UINT32_MAX - 1) /* given to a stream, and not done */

/* arrivals is called, with context, for each receive that the host carries out. *duties is filled on success and
 * released by psd_duties_release(). PSD_ENOMEM. */
enum psd_status psd_duties_make(struct psd_duties *duties, const struct psd_program *program, unsigned host,
				psd_arrivals_fn arrivals, const void *context, struct psd_error *err) PSD_MUST_CHECK;
void psd_duties_release(struct psd_duties *duties);

/* Iterations of a run: from `first`, before which all are complete, to `end` - 1. */
struct psd_iterations {
	uint32_t first, end;
	/* Steps of struct psd_period where the loss decides; 0: the plan's steps throughout. */
	uint32_t steps[2];
};

/* One operation of one iteration. */
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
	uint32_t *waiting; /* dependencies left: a row of operations for each iteration of the window, in turn; PSD_DONE
			      when done */
	uint32_t *n_left;  /* operations left in each row */
	const uint32_t **row_waits; /* the duties' waits that each row began with */
	uint32_t iteration;	    /* oldest iteration that is not complete */
	unsigned free_resources;    /* bit r: operations of resource r take no time, so that they need no turn */
	unsigned streams;	    /* bit r: resource r is a stream, see psd_scheduler_give() */
	struct psd_task_list
		instant; /* ready tasks without a resource of their own, and collectives; the executor takes them */
	uint32_t fence;	 /* iteration from which nothing starts before the fence is passed; 0: no fence */
	struct psd_task_list fenced;
	struct psd_task_list early; /* arrivals for iterations behind the window */
	struct psd_heap queues[PSD_RESOURCES];
	bool is_out_of_memory;
};

/* All borrowed until psd_scheduler_release(). PSD_ENOMEM. */
enum psd_status psd_scheduler_init(struct psd_scheduler *scheduler, const struct psd_program *program,
				   const struct psd_duties *duties, struct psd_iterations iterations,
				   struct psd_error *err) PSD_MUST_CHECK;
void psd_scheduler_release(struct psd_scheduler *scheduler);

/* Call before taking tasks: completes iterations without operations here, before the first fence. */
void psd_scheduler_begin(struct psd_scheduler *scheduler);
/* Sets the run's first fence: from `iteration` on nothing starts before psd_scheduler_pass_fence(), which sets the next
 * one. `iteration` is not complete, nor has an operation of the one before it been done; so a host without duties,
 * which is complete from the beginning, has no fences. */
void psd_scheduler_set_fence(struct psd_scheduler *scheduler, uint32_t iteration);
/* Every task before the fence is done, and it has not been passed. */
bool psd_scheduler_is_at_fence(const struct psd_scheduler *scheduler);
/* For a host at its fence: tasks up to the fence at `next`, a later iteration, may start; 0: no fence follows. */
void psd_scheduler_pass_fence(struct psd_scheduler *scheduler, uint32_t next);
/* The task is given to its resource, a stream: tasks that wait for it on the same one become ready, and are executed
 * after it. */
void psd_scheduler_give(struct psd_scheduler *scheduler, struct psd_task task);
/* The task is done: tasks that waited only for it become ready. */
void psd_scheduler_finish(struct psd_scheduler *scheduler, struct psd_task task);
/* One message of a receive operation has arrived. It counts once its iteration is in the window: with local steps a
 * quick host may be at its next exchange before others are done with this one. */
void psd_scheduler_arrive(struct psd_scheduler *scheduler, struct psd_task receive);
/* Takes a ready task that needs no resource or is a collective; false when there is none. */
bool psd_scheduler_take_instant(struct psd_scheduler *scheduler, struct psd_task *task);
/* The task a free resource should start: smallest turn, then iteration, then operation number; false when there is
 * none. */
bool psd_scheduler_take(struct psd_scheduler *scheduler, enum psd_resource resource, struct psd_task *task);
/* Dependencies left of an operation of the oldest iteration; PSD_DONE: it is done. */
uint32_t psd_scheduler_waiting(const struct psd_scheduler *scheduler, uint32_t op);
/* True when every iteration is done. */
bool psd_scheduler_is_complete(const struct psd_scheduler *scheduler);

/* The order of ready queues, total so that runs repeat exactly. */
bool psd_ready_goes_before(const struct psd_ready *a, const struct psd_ready *b);
/* Returns false when memory runs out. A turn counts items and layers, so that it is exact as the heap's key. */
bool psd_ready_push(struct psd_heap *queue, struct psd_ready entry);
/* Returns false when the queue is empty. */
bool psd_ready_pop(struct psd_heap *queue, struct psd_ready *entry);

#endif
