/* Executes a program on many hosts: starts the tasks that the schedulers release, one operation at a time on each
 * resource, and leaves time and transfers to a seam. Estimate, simulation and real run are three seams under this one
 * interpreter, so that their rules of order cannot differ. */
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

/* Functions that an executor provides. No slot may block, and none may call the interpreter before it returns. */
struct psd_seam {
	double (*now)(void *context); /* seconds since the start of the run */
	/* Real work is behind operations, so that work() is called for those without a cost, too; false: these are over
	 * at once. */
	bool does_real_work;
	/* Operations that the device is given ahead of the running one: it executes them in order, and they wait only
	 * for operations given before. At most PSD_MOST_AHEAD. */
	unsigned n_ahead;
	/* Starts `sec` of work on host's resource; answer with psd_interpreter_finished() when it is over. */
	void (*work)(void *context, unsigned host, enum psd_resource resource, struct psd_task task, double sec);
	/* Starts the host's messages of a send. Answer with psd_interpreter_finished(NIC) when the NIC is free again,
	 * and with psd_interpreter_arrived() for each message at its receiver. Returns false when host has nothing to
	 * send: then no answer. */
	bool (*send)(void *context, unsigned host, struct psd_task task);
	/* Starts a collective that all members here have joined; answer with psd_interpreter_collective_finished().
	 * Several may be under way, but one alone on a host. */
	void (*collective)(void *context, struct psd_task task);
	/* Both NULL where this interpreter has all hosts, or all that it has to hear of since collectives become ready
	 * in the same order everywhere. Otherwise each interpreter has some of the cluster's hosts, and one of them,
	 * the coordinator, hears of every ready member and decides the order. */
	/* NULL on the coordinator. Reports that the collective is ready on a worker here: call
	 * psd_interpreter_announced() on the coordinator. */
	void (*announce)(void *context, struct psd_task task);
	/* NULL on the others. Reports the next collective: call psd_interpreter_chosen() on the others, in the order of
	 * these calls. The coordinator need not be a member. */
	void (*choose)(void *context, struct psd_task task);
	/* May be NULL. Reports that an operation held its resource on host from start_sec to end_sec. */
	void (*span)(void *context, unsigned host, struct psd_task task, double start_sec, double end_sec);
	void *context;
};

enum { PSD_MOST_AHEAD = 3 };

struct psd_interpreter {
	const struct psd_program *program;
	struct psd_seam seam;
	struct psd_host_state *hosts;
	unsigned n_hosts;
	unsigned n_workers; /* workers here */
	struct psd_iterations iterations;
	double *next_sec;      /* for each iteration, from 0: end of its NEXT on the last worker */
	uint32_t *n_next_done; /* for each iteration: workers whose NEXT is done */
	struct psd_account account;
	struct psd_collective_order order;
	int64_t n_chosen; /* collectives that a coordinator elsewhere has chosen */
};

/* duties[h] for each of n_hosts. Everything borrowed. PSD_ENOMEM. */
enum psd_status psd_interpreter_init(struct psd_interpreter *interpreter, const struct psd_program *program,
				     unsigned n_hosts, const struct psd_duties *const duties[],
				     struct psd_iterations iterations, const struct psd_seam *seam,
				     struct psd_error *err) PSD_MUST_CHECK;
void psd_interpreter_release(struct psd_interpreter *interpreter);

void psd_interpreter_begin(struct psd_interpreter *interpreter);
/* Fences of one host, as in scheduler.h; tasks that become ready start at once. */
void psd_interpreter_set_fence(struct psd_interpreter *interpreter, unsigned host, uint32_t iteration);
bool psd_interpreter_is_at_fence(const struct psd_interpreter *interpreter, unsigned host);
void psd_interpreter_pass_fence(struct psd_interpreter *interpreter, unsigned host, uint32_t next);
/* Iterations in which the host's workers exchange. */
const struct psd_period *psd_interpreter_period(const struct psd_interpreter *interpreter, unsigned host);
/* psd_period_set_steps() for all hosts here. No host may have an iteration of that window in its program's window. */
void psd_interpreter_set_steps(struct psd_interpreter *interpreter, uint32_t window_number, uint32_t steps);
void psd_interpreter_finished(struct psd_interpreter *interpreter, unsigned host, enum psd_resource resource);
/* A message is on its way to a host here, and no NIC here is busy with it: it will arrive. */
void psd_interpreter_departed(struct psd_interpreter *interpreter);
void psd_interpreter_arrived(struct psd_interpreter *interpreter, unsigned host, struct psd_task send);
/* Sets the work of the device's present operation, as psd_account_worked(). */
void psd_interpreter_worked(struct psd_interpreter *interpreter, unsigned host, double work_sec);
void psd_interpreter_collective_finished(struct psd_interpreter *interpreter, struct psd_task collective);
/* On the coordinator: a member anywhere in the cluster is ready for the collective. */
void psd_interpreter_announced(struct psd_interpreter *interpreter, struct psd_task collective);
/* On members other than the coordinator: the coordinator has begun the collective. */
void psd_interpreter_chosen(struct psd_interpreter *interpreter, struct psd_task collective);

/* The host has executed all its operations of all iterations. */
bool psd_interpreter_host_is_complete(const struct psd_interpreter *interpreter, unsigned host);
/* Oldest iteration that the host has not completed: the first of its window, for which messages may arrive. */
uint32_t psd_interpreter_iteration(const struct psd_interpreter *interpreter, unsigned host);
/* PSD_OK when all iterations are done on all hosts; else PSD_ERUN, with the first host that is not done and an
 * operation that it waits for. */
enum psd_status psd_interpreter_check(const struct psd_interpreter *interpreter, struct psd_error *err) PSD_MUST_CHECK;
/* Mean seconds of the iterations from `first` on: from NEXT to NEXT. */
double psd_interpreter_iteration_sec(const struct psd_interpreter *interpreter, uint32_t first);
/* Fills percentiles of the seconds of single iterations from `first` on, each the smallest value that this share of
 * iterations does not exceed. False: out of memory. */
bool psd_interpreter_percentiles(const struct psd_interpreter *in, uint32_t first,
				 double sec[PSD_PERCENTILES]) PSD_MUST_CHECK;
/* Parts of that mean on the worker that waits least, for which the others wait; the first of equals. */
struct psd_parts psd_interpreter_parts(const struct psd_interpreter *interpreter, uint32_t first);
/* The host's NIC was idle right before its present send. */
bool psd_interpreter_has_paused(const struct psd_interpreter *interpreter, unsigned host);
/* Mean seconds per iteration that the busiest host's resource was held. */
double psd_interpreter_busy_sec(const struct psd_interpreter *interpreter, enum psd_resource resource);

#endif
