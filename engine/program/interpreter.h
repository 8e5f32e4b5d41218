/* Executes a program on one or more hosts: starts the operations that are ready, one at a time on each resource. Clock,
 * work and transfers are functions that an executor provides (struct psd_seam). Estimate, simulation and real run are
 * three such executors of this one interpreter, so operations start in the same order in all of them. */
#ifndef PSD_INTERPRETER_H
#define PSD_INTERPRETER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/program/account.h"
#include "engine/program/collective_order.h"
#include "engine/program/outcome.h"
#include "engine/program/program.h"
#include "engine/program/scheduler.h"

/* Functions that an executor provides. None of them may block, or call a function of the interpreter before it
 * returns. */
struct psd_seam {
	double (*now)(void *context); /* Returns the time in seconds since the start of the run. */
	/* True in a real run: work() is called also for operations whose predicted duration is 0. False: such
	 * operations end at once. */
	bool does_real_work;
	/* Number of operations that are passed to the device while it still executes an earlier one, at most
	 * PSD_MOST_AHEAD. The device executes them in order. They depend only on operations that have ended or were
	 * passed to the device before. */
	unsigned n_ahead;
	/* Starts work of `sec` seconds on a resource of the host. The executor calls psd_interpreter_finished() when
	 * the work has ended. */
	void (*work)(void *context, unsigned host, enum psd_resource resource, struct psd_task task, double sec);
	/* Starts the messages of a send operation on this host. The executor calls psd_interpreter_finished() for
	 * PSD_RESOURCE_NIC when the NIC is free again, and psd_interpreter_arrived() for each message that has arrived.
	 * Returns false when the host has nothing to send: then neither is called. */
	bool (*send)(void *context, unsigned host, struct psd_task task);
	/* Starts a collective that all its members on these hosts have joined. The executor calls
	 * psd_interpreter_collective_finished() when the collective has ended. Several may be under way, but only one
	 * on each host. */
	void (*collective)(void *context, struct psd_task task);
	/* The next two functions, announce and choose, are NULL if this interpreter executes all hosts, or if
	 * collectives become ready in the same order on all hosts. Otherwise each interpreter executes some of the
	 * cluster's hosts. One of the interpreters, the coordinator, is told of every ready member and decides the
	 * order of collectives. */
	/* Tells the coordinator that the collective is ready on one of these hosts: the executor has the coordinator
	 * call psd_interpreter_announced(). NULL on the coordinator. */
	void (*announce)(void *context, struct psd_task task);
	/* Tells all other interpreters which collective is next: the executor has them call psd_interpreter_chosen(),
	 * in the order of these calls. NULL on all interpreters except the coordinator. The coordinator need not be a
	 * member of the collective. */
	void (*choose)(void *context, struct psd_task task);
	/* Called after an operation has held its resource on the host from start_sec to end_sec, for traces. NULL: not
	 * called. */
	void (*span)(void *context, unsigned host, struct psd_task task, double start_sec, double end_sec);
	void *context; /* first argument of all these functions */
};

enum { PSD_MOST_AHEAD = 3 }; /* upper limit of psd_seam.n_ahead */

struct psd_interpreter {
	const struct psd_program *program;
	struct psd_seam seam;
	struct psd_host_state *hosts; /* state of each host, n_hosts entries */
	unsigned n_hosts;
	unsigned n_workers; /* number of workers that this interpreter executes */
	struct psd_iterations iterations;
	/* per iteration, from 0: time at which its operation PSD_OP_NEXT ended on the last worker */
	double *next_sec;
	uint32_t *n_next_done; /* per iteration: number of workers on which its operation PSD_OP_NEXT has ended */
	struct psd_account account;
	struct psd_collective_order order;
	/* number of iterations that were not executed because they repeat others (psd_interpreter_skip()), and their
	 * seconds, by which the interpreter's clock is ahead of the executor's */
	uint32_t n_skipped;
	double skipped_sec;
	int64_t n_chosen; /* number of collectives that the coordinator, another interpreter, has chosen so far */
};

/* Prepares the execution on n_hosts hosts; duties[h] are those of host h. All arguments are borrowed. PSD_ENOMEM. */
enum psd_status psd_interpreter_init(struct psd_interpreter *interpreter, const struct psd_program *program,
				     unsigned n_hosts, const struct psd_duties *const duties[],
				     struct psd_iterations iterations, const struct psd_seam *seam,
				     struct psd_error *err) PSD_MUST_CHECK;
void psd_interpreter_release(struct psd_interpreter *interpreter);

/* Starts the operations that depend on nothing. Called once, after init and any psd_interpreter_set_fence(). */
void psd_interpreter_begin(struct psd_interpreter *interpreter);
/* Sets the first fence of one host, as psd_scheduler_set_fence(): from `iteration` on nothing starts before the fence
 * is passed. */
void psd_interpreter_set_fence(struct psd_interpreter *interpreter, unsigned host, uint32_t iteration);
/* True if all operations of the host before the fence have ended, as psd_scheduler_is_at_fence(). */
bool psd_interpreter_is_at_fence(const struct psd_interpreter *interpreter, unsigned host);
/* Passes the host's fence and sets the next one, as psd_scheduler_pass_fence(); operations that become ready start at
 * once. */
void psd_interpreter_pass_fence(struct psd_interpreter *interpreter, unsigned host, uint32_t next);
/* Returns the schedule of the iterations in which the host exchanges with other workers. */
const struct psd_period *psd_interpreter_period(const struct psd_interpreter *interpreter, unsigned host);
/* Sets the local steps of a window of iterations that has not begun, for all hosts here, as psd_period_set_steps(). */
void psd_interpreter_set_steps(struct psd_interpreter *interpreter, uint32_t window_number, uint32_t steps);
/* Records that the work on this resource of the host has ended, and starts operations that become ready. */
void psd_interpreter_finished(struct psd_interpreter *interpreter, unsigned host, enum psd_resource resource);
/* Records that data of a message is on its way although the NIC of none of these hosts is sending it: a message of a
 * host elsewhere, or one that has left and has not arrived yet. */
void psd_interpreter_departed(struct psd_interpreter *interpreter);
/* Records that a message of the send operation `send` has arrived at the host, and starts operations that become
 * ready. */
void psd_interpreter_arrived(struct psd_interpreter *interpreter, unsigned host, struct psd_task send);
/* Sets the working time of the device's running operation, as psd_account_worked(). */
void psd_interpreter_worked(struct psd_interpreter *interpreter, unsigned host, double work_sec);
/* Records that the collective has ended on all members here, and starts operations that become ready. */
void psd_interpreter_collective_finished(struct psd_interpreter *interpreter, struct psd_task collective);
/* Records that one more member, on a host of another interpreter, is ready for the collective. Called on the
 * coordinator. */
void psd_interpreter_announced(struct psd_interpreter *interpreter, struct psd_task collective);
/* Records that the coordinator has begun the collective. Called on the other members. */
void psd_interpreter_chosen(struct psd_interpreter *interpreter, struct psd_task collective);

/* Leaves out n_units times `unit` iterations after iteration `last`, which has ended on all workers: they repeat the
 * `unit` iterations up to it. The run ends earlier by as many; results count them. busy_sec: for each host and resource,
 * the seconds for which operations held it in these `unit` iterations. */
void psd_interpreter_skip(struct psd_interpreter *interpreter, uint32_t last, uint32_t unit, uint32_t n_units,
			  const double *busy_sec);
/* True if the host has executed all its operations of all iterations. */
bool psd_interpreter_host_is_complete(const struct psd_interpreter *interpreter, unsigned host);
/* Returns the oldest iteration that the host has not completed. Messages for this iteration and for later ones may
 * still arrive. */
uint32_t psd_interpreter_iteration(const struct psd_interpreter *interpreter, unsigned host);
/* Checks that all iterations are done on all hosts. PSD_ERUN: the text names the first host that is not done, and an
 * operation that it waits for. */
enum psd_status psd_interpreter_check(const struct psd_interpreter *interpreter, struct psd_error *err) PSD_MUST_CHECK;
/* Returns the mean seconds of the iterations from `first` on. An iteration lasts from one operation PSD_OP_NEXT to the
 * next. */
double psd_interpreter_iteration_sec(const struct psd_interpreter *interpreter, uint32_t first);
/* Fills percentiles of the seconds of single iterations from `first` on. Each is the smallest value that this share of
 * the iterations does not exceed. False: out of memory. */
bool psd_interpreter_percentiles(const struct psd_interpreter *in, uint32_t first,
				 double sec[PSD_PERCENTILES]) PSD_MUST_CHECK;
/* Returns the parts of that mean on the worker that waits least, since the other workers wait for this one; the first
 * among equals. */
struct psd_parts psd_interpreter_parts(const struct psd_interpreter *interpreter, uint32_t first);
/* True if the host's NIC was idle immediately before it began the send that it executes now. */
bool psd_interpreter_has_paused(const struct psd_interpreter *interpreter, unsigned host);
/* Returns the mean seconds per iteration in which operations held the resource, on the host where that is longest. */
double psd_interpreter_busy_sec(const struct psd_interpreter *interpreter, enum psd_resource resource);

#endif
