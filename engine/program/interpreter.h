/* Executes a program on one or more hosts: it starts the operations that are ready, one at a time on each resource.
 * Clock, work and transfers are functions of an executor (struct psd_seam). Estimate, simulation and real run are
 * three executors of this interpreter, so all three start operations in the same order. */
#ifndef PSD_INTERPRETER_H
#define PSD_INTERPRETER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/program/account.h"
#include "engine/program/collective_order.h"
#include "engine/program/outcome.h"
#include "engine/program/program.h"
#include "engine/program/reads.h"
#include "engine/program/scheduler.h"

/* Functions of an executor, which the interpreter calls. None of them may block. None may call a function of the
 * interpreter before it returns. */
struct psd_seam {
	/* Returns the time in seconds since the start of the run. */
	double (*now)(void *context);
	/* True in a real run: work() is called even if the predicted duration of an operation is 0. False: such an
	 * operation ends without a call. */
	bool does_real_work;
	/* Number of operations that are passed to the device while it still executes an earlier one, at most
	 * PSD_MOST_AHEAD; 0: none. The device executes them in the order in which they are passed. Such an operation
	 * waits only for operations that have ended, or that were passed to the device before it. */
	unsigned n_ahead;
	/* Starts work of `sec` seconds on a resource of the host. The executor calls psd_interpreter_finished() for
	 * that resource when the work has ended. */
	void (*work)(void *context, unsigned host, enum psd_resource resource, struct psd_task task, double sec);
	/* Starts all messages of a send operation of this host. The executor calls psd_interpreter_finished() with
	 * PSD_RESOURCE_NIC when the NIC is free again, and psd_interpreter_arrived() for each message at its receiver.
	 * Returns false if the host has nothing to send; then neither is called. */
	bool (*send)(void *context, unsigned host, struct psd_task task);
	/* Starts a collective; all its members among this interpreter's hosts have joined it. The executor calls
	 * psd_interpreter_collective_finished() when it has ended. Several collectives may run at the same time, but
	 * at most one on each host. */
	void (*collective)(void *context, struct psd_task task);
	/* The functions announce and choose are NULL if this interpreter executes all hosts, or if collectives
	 * become ready in the same order on all hosts. Otherwise each interpreter executes some hosts of the
	 * cluster. One interpreter, the coordinator, is told of every member that is ready, and decides the
	 * order of collectives. */
	/* Tells the coordinator that the collective is ready on one more host of this interpreter. The executor makes
	 * the coordinator call psd_interpreter_announced(). NULL on the coordinator itself. */
	void (*announce)(void *context, struct psd_task task);
	/* Tells all other interpreters which collective is next. The executor makes them call
	 * psd_interpreter_chosen(), in the order of these calls. NULL on all interpreters except the coordinator. The
	 * coordinator's hosts need not be members of the collective. */
	void (*choose)(void *context, struct psd_task task);
	/* Called after an operation has occupied its resource on the host from start_sec to end_sec, and for
	 * the operation `next_op`, which takes no time; for traces. NULL: not called. */
	void (*span)(void *context, unsigned host, struct psd_task task, double start_sec, double end_sec);
	void *context; /* first argument of all functions above */
};

enum { PSD_MOST_AHEAD = 3 }; /* upper limit of psd_seam.n_ahead */

struct psd_interpreter {
	const struct psd_program *program;
	struct psd_seam seam;
	struct psd_host_state *hosts; /* state of each host, n_hosts entries */
	unsigned n_hosts;
	unsigned n_workers; /* number of workers that this interpreter executes */
	struct psd_iterations iterations;
	/* per iteration, from 0: time at which next_op ended on the last worker, seconds since the start of the
	 * run */
	double *next_sec;
	/* Asynchronous training: time at which next_op ended on each host in each iteration, seconds since the start of
	 * the run; shape (n_hosts, iterations.end). NULL: not used. */
	double *own_next_sec;
	/* Per iteration: number of workers on which next_op has ended. */
	uint32_t *n_next_done;
	struct psd_account account;
	struct psd_read_counts reads; /* ages of stale reads */
	struct psd_collective_order order;
	/* Number of iterations that were left out because they repeat others (psd_interpreter_skip()), and their
	 * duration, seconds. The interpreter's clock is ahead of the executor's clock by this duration. */
	uint32_t n_skipped;
	double skipped_sec;
	/* number of collectives that the coordinator has chosen so far; unused if this interpreter is the coordinator
	 * */
	int64_t n_chosen;
};

/* Prepares the execution of a program on n_hosts hosts. duties[h]: the operations of host h, from psd_duties_make().
 * All arguments are borrowed until psd_interpreter_release(). PSD_ENOMEM. */
enum psd_status psd_interpreter_init(struct psd_interpreter *interpreter, const struct psd_program *program,
				     unsigned n_hosts, const struct psd_duties *const duties[],
				     struct psd_iterations iterations, const struct psd_seam *seam,
				     struct psd_error *err) PSD_MUST_CHECK;
void psd_interpreter_release(struct psd_interpreter *interpreter);

/* Starts the operations that wait for nothing. Called once, after psd_interpreter_init() and any
 * psd_interpreter_set_fence(). */
void psd_interpreter_begin(struct psd_interpreter *interpreter);
/* Sets the first fence of one host, see psd_scheduler_set_fence(): operations of `iteration` and later ones wait until
 * the fence is passed. */
void psd_interpreter_set_fence(struct psd_interpreter *interpreter, unsigned host, uint32_t iteration);
/* True if all operations of the host before the fence have ended, see psd_scheduler_is_at_fence(). */
bool psd_interpreter_is_at_fence(const struct psd_interpreter *interpreter, unsigned host);
/* Passes the host's fence and sets the next one at iteration `next` (0: none), see psd_scheduler_pass_fence().
 * Operations that become ready are started before it returns. */
void psd_interpreter_pass_fence(struct psd_interpreter *interpreter, unsigned host, uint32_t next);
/* Returns the host's schedule of local SGD: the iterations in which it exchanges with other workers. */
const struct psd_period *psd_interpreter_period(const struct psd_interpreter *interpreter, unsigned host);
/* Sets the local steps of a window of iterations that has not begun, for all hosts of this interpreter; see
 * psd_period_set_steps(). */
void psd_interpreter_set_steps(struct psd_interpreter *interpreter, uint32_t window_number, uint32_t steps);
/* Records that the work on this resource of the host has ended, and starts the operations that become ready. */
void psd_interpreter_finished(struct psd_interpreter *interpreter, unsigned host, enum psd_resource resource);
/* Records that a message is on its way that no host of this interpreter is sending now. It comes from a host of
 * another interpreter, or it has left its sender but has not arrived. */
void psd_interpreter_departed(struct psd_interpreter *interpreter);
/* Records that a message on its way has arrived at a host that this interpreter does not execute. */
void psd_interpreter_passed(struct psd_interpreter *interpreter);
/* Records that a message of send operation `send` has arrived at `host`, and starts the operations that become
 * ready. */
void psd_interpreter_arrived(struct psd_interpreter *interpreter, unsigned host, struct psd_task send);
/* Records that the message of the host's present send operation is in a queue behind its NIC
 * (psd_collective.is_queued): the operation ends, and its message, the only one, is on its way. */
void psd_interpreter_queued(struct psd_interpreter *interpreter, unsigned host);
/* Records that a queued message has left the host. Until then the host's link counts as busy. */
void psd_interpreter_left(struct psd_interpreter *interpreter, unsigned host);
/* Sets the seconds in which the device really worked on its present operation, see psd_account_worked(). */
void psd_interpreter_worked(struct psd_interpreter *interpreter, unsigned host, double work_sec);
/* Records that the collective has ended on all its members among this interpreter's hosts, and starts the operations
 * that become ready. */
void psd_interpreter_collective_finished(struct psd_interpreter *interpreter, struct psd_task collective);
/* Records that one more member, on a host of another interpreter, is ready for the collective. Only for the
 * coordinator. */
void psd_interpreter_announced(struct psd_interpreter *interpreter, struct psd_task collective);
/* Records that the coordinator has begun the collective. Only for the other interpreters. */
void psd_interpreter_chosen(struct psd_interpreter *interpreter, struct psd_task collective);

/* Leaves out n_units * unit iterations after iteration `last`, which has ended on all workers, because they would
 * repeat the `unit` iterations up to `last`. The run ends earlier by this number, but results count the left-out
 * iterations. busy_sec: for each host and resource, the seconds in which operations occupied it in these `unit`
 * iterations. */
void psd_interpreter_skip(struct psd_interpreter *interpreter, uint32_t last, uint32_t unit, uint32_t n_units,
			  const double *busy_sec);
/* True if the host has executed all its operations in all iterations. */
bool psd_interpreter_host_is_complete(const struct psd_interpreter *interpreter, unsigned host);
/* Returns the oldest iteration that the host has not completed. Messages of this iteration and of later ones may still
 * arrive. */
uint32_t psd_interpreter_iteration(const struct psd_interpreter *interpreter, unsigned host);
/* Checks that all hosts have completed all iterations. PSD_ERUN: the text names the first host that has not, and an
 * operation for which it still waits. */
enum psd_status psd_interpreter_check(const struct psd_interpreter *interpreter, struct psd_error *err) PSD_MUST_CHECK;
/* Returns the mean duration of the iterations from `first` on, seconds. The duration of an iteration is the time from
 * one end of next_op to the next. With asynchronous training it is the harmonic mean over workers, weighted by their
 * batches, so that the cluster's rate is the sum of the workers' rates. If the length of the training is known
 * (psd_plan.job_iterations), it is that of the whole training, with iterations before a quick worker reaches the bound.
 * Such a worker ends the training `bound` iterations ahead of the slowest one. */
double psd_interpreter_iteration_sec(const struct psd_interpreter *interpreter, uint32_t first);
/* Sets the fields of *outcome that tell how slow the slowest worker of asynchronous training is, and when a quick one
 * reaches the bound. */
void psd_interpreter_find_bound(const struct psd_interpreter *interpreter, uint32_t first, struct psd_outcome *outcome);
/* Sets sec[] to the percentiles (enum psd_percentile) of the durations of single iterations from `first` on, seconds.
 * Percentile p is the smallest duration that p % of the iterations do not exceed. False: out of memory. */
bool psd_interpreter_percentiles(const struct psd_interpreter *in, uint32_t first,
				 double sec[PSD_PERCENTILES]) PSD_MUST_CHECK;
/* Returns the parts of psd_interpreter_iteration_sec() on the worker whose device waits least, seconds. If several wait
 * equally long, it is the first of them. The other workers wait for this one. With asynchronous training
 * see psd_mean_iteration_parts(). */
struct psd_parts psd_interpreter_parts(const struct psd_interpreter *interpreter, uint32_t first);
/* True if the host's NIC was idle immediately before the send that it executes now. */
bool psd_interpreter_has_paused(const struct psd_interpreter *interpreter, unsigned host);
/* Returns the mean time per iteration in which operations occupied the resource, seconds, on the host where it is
 * longest. In a sequential schedule pulls from separate servers follow all pushes to them, so both count. */
double psd_interpreter_busy_sec(const struct psd_interpreter *interpreter, enum psd_resource resource);

/* Returns psd_interpreter_iteration_sec() of an endless run. Late updates let workers compute ahead of exchanges, until
 * these are as late as they may be. From then on an iteration takes at least the time for which it occupies any
 * resource of a host. */
double psd_interpreter_steady_sec(const struct psd_interpreter *interpreter, uint32_t first);

#endif
