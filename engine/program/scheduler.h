/* The shared scheduler: for one host, which operations of the program may start now, and in which order each resource
 * takes them. Knows nothing of time: executors tell it what finished and what arrived. As many iterations as the
 * program's window has are in flight at once. */
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

/* What each operation waits for on hosts of one kind; hosts with the same duties share the table. */
struct psd_duties {
	/* Per operation: dependencies carried out here, plus arrivals; PSD_NOT_CARRIED: not carried out here. Of
	 * iterations that exchange, and of those that do not: the same where all do. */
	uint32_t *waits, *local_waits;
	uint32_t n_carried, n_local;
};
#define PSD_NOT_CARRIED UINT32_MAX
#define PSD_DONE	UINT32_MAX
#define PSD_GIVEN	(UINT32_MAX - 1) /* to a resource that is a stream, and not done */

/* arrivals is called, with context, for each receive that the host carries out. *duties is filled on success and
 * released by psd_duties_release(). PSD_ENOMEM. */
enum psd_status psd_duties_make(struct psd_duties *duties, const struct psd_program *program, unsigned host,
				psd_arrivals_fn arrivals, const void *context, struct psd_error *err) PSD_MUST_CHECK;
void psd_duties_release(struct psd_duties *duties);

/* The iterations that a run carries out: from `first`, before which all are complete, to `end` - 1. */
struct psd_iterations {
	uint32_t first, end;
	/* Of struct psd_period, where they may follow the loss; 0: as the plan has them, all along. */
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
	uint32_t *waiting; /* a row of operations for each iteration of the window, in turn; PSD_DONE when done */
	uint32_t *n_left;  /* for each row: operations not yet done */
	const uint32_t **row_waits; /* for each row: the duties' waits that it began with */
	uint32_t iteration;	    /* the oldest that is not complete */
	unsigned free_resources; /* bit r: what is to be done on resource r takes no time, so that it needs no turn */
	unsigned streams; /* bit r: resource r carries out what it is given in that order, see psd_scheduler_give() */
	struct psd_task_list
		instant; /* ready, without a resource of their own, or collectives; the executor takes them */
	uint32_t fence;	 /* nothing of this iteration or later is ready before it is passed; 0: there is none */
	struct psd_task_list fenced;
	struct psd_task_list early; /* what has arrived of iterations behind the window */
	struct psd_heap queues[PSD_RESOURCES];
	bool is_out_of_memory;
};

/* All borrowed until psd_scheduler_release(). PSD_ENOMEM. */
enum psd_status psd_scheduler_init(struct psd_scheduler *scheduler, const struct psd_program *program,
				   const struct psd_duties *duties, struct psd_iterations iterations,
				   struct psd_error *err) PSD_MUST_CHECK;
void psd_scheduler_release(struct psd_scheduler *scheduler);

/* Before anything is taken: iterations in which there is nothing to do here, before the first fence, are complete. */
void psd_scheduler_begin(struct psd_scheduler *scheduler);
/* From `iteration` on nothing starts before psd_scheduler_pass_fence(). For the first fence of a run, which that function
 * follows with the next: there is one at a time. `iteration` is not complete, nor has an operation of the one before it
 * been done; so a host without duties, which is complete from the beginning, has no fences. */
void psd_scheduler_set_fence(struct psd_scheduler *scheduler, uint32_t iteration);
/* All before the fence is done, and it has not been passed. */
bool psd_scheduler_is_at_fence(const struct psd_scheduler *scheduler);
/* For a host at its fence. What the fence has kept may start, up to `next`, a later iteration; 0: no fence follows. */
void psd_scheduler_pass_fence(struct psd_scheduler *scheduler, uint32_t next);
/* The task is given to its resource, which is a stream: what waits for it on the same one becomes ready, and is carried
 * out after it. */
void psd_scheduler_give(struct psd_scheduler *scheduler, struct psd_task task);
/* The task is done: what waited only for it becomes ready. */
void psd_scheduler_finish(struct psd_scheduler *scheduler, struct psd_task task);
/* One message of a receive operation arrived. It counts from when its iteration is in the window: with local steps who
 * has what an exchange brings may be at the next one before others are done with this one. */
void psd_scheduler_arrive(struct psd_scheduler *scheduler, struct psd_task receive);
/* Takes a ready task that needs no resource or is a collective; false when there is none. */
bool psd_scheduler_take_instant(struct psd_scheduler *scheduler, struct psd_task *task);
/* The task a free resource should start: smallest turn, then iteration, then operation number; false when there is
 * none. */
bool psd_scheduler_take(struct psd_scheduler *scheduler, enum psd_resource resource, struct psd_task *task);
/* What an operation of the oldest iteration still waits for; PSD_DONE: it is done. */
uint32_t psd_scheduler_waiting(const struct psd_scheduler *scheduler, uint32_t op);
/* True when every iteration is done. */
bool psd_scheduler_is_complete(const struct psd_scheduler *scheduler);

/* The order of ready queues, total so that runs repeat exactly. */
bool psd_ready_goes_before(const struct psd_ready *a, const struct psd_ready *b);
/* False: out of memory. A turn counts items and layers, so that it is exact as the heap's key. */
bool psd_ready_push(struct psd_heap *queue, struct psd_ready entry);
/* False: it is empty. */
bool psd_ready_pop(struct psd_heap *queue, struct psd_ready *entry);

#endif
