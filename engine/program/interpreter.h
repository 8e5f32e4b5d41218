/* Carries a program out on many hosts: starts what the schedulers release, one operation at a time on each resource,
 * and leaves time and transfers to a seam. The estimate and the simulation are two seams under this one interpreter, so
 * order rules cannot differ. */
#ifndef PSD_INTERPRETER_H
#define PSD_INTERPRETER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/program/account.h"
#include "engine/program/collective_order.h"
#include "engine/program/program.h"
#include "engine/program/scheduler.h"

/* What an executor provides. No slot may wait for anything, and none may call back into the interpreter before it
 * returns. */
struct psd_seam {
	double (*now)(void *context); /* seconds since the start of the run */
	/* False: operations without a cost are over at once. True: there is real work behind them, so that work() is
	 * called for them too. */
	bool does_real_work;
	/* The device carries out in order what it is given, and is given so many operations ahead of the one that runs:
	 * those that wait for nothing else than what it was given before. At most PSD_MOST_AHEAD. */
	unsigned n_ahead;
	/* `sec` of work begins on host's resource; answer with psd_interpreter_finished() when it is over. */
	void (*work)(void *context, unsigned host, enum psd_resource resource, struct psd_task task, double sec);
	/* host's messages of a send begin; answer with psd_interpreter_finished(NIC) when its way out is free again,
	 * and with psd_interpreter_arrived() for each message at its receiver. Returns false when host has nothing to
	 * send: then no answer. */
	bool (*send)(void *context, unsigned host, struct psd_task task);
	/* All members of this interpreter have joined the collective; answer with
	 * psd_interpreter_collective_finished(). Several may be under way, but one alone on a host. */
	void (*collective)(void *context, struct psd_task task);
	/* These two are for interpreters that each have some of the cluster's hosts; both NULL: this one has all of
	 * them, or all that it need hear of, since collectives become ready in the same order everywhere. One of
	 * them, the coordinator, hears of every member's readiness and decides the order as if it had all. */
	/* NULL on the coordinator. The collective is ready on a worker here: call psd_interpreter_announced() on the
	 * coordinator. */
	void (*announce)(void *context, struct psd_task task);
	/* NULL on the others. The next collective is this one: call psd_interpreter_chosen() on the others, in the
	 * order of these calls. The coordinator need not be a member. */
	void (*choose)(void *context, struct psd_task task);
	/* May be NULL. An operation held its resource on host from start_sec to end_sec. */
	void (*span)(void *context, unsigned host, struct psd_task task, double start_sec, double end_sec);
	void *context;
};

enum { PSD_MOST_AHEAD = 3 };

struct psd_interpreter {
	const struct psd_program *program;
	struct psd_seam seam;
	struct psd_host_state *hosts;
	unsigned n_hosts;
	unsigned n_workers; /* here */
	struct psd_iterations iterations;
	double *next_sec;      /* per iteration, from 0: when its NEXT was done on the last worker */
	uint32_t *n_next_done; /* per iteration */
	struct psd_account account;
	struct psd_collective_order order;
	int64_t n_chosen; /* by the coordinator elsewhere */
};

/* hosts: duties[h] for each of n_hosts. Everything borrowed. PSD_ENOMEM. */
enum psd_status psd_interpreter_init(struct psd_interpreter *interpreter, const struct psd_program *program,
				     unsigned n_hosts, const struct psd_duties *const duties[],
				     struct psd_iterations iterations, const struct psd_seam *seam,
				     struct psd_error *err) PSD_MUST_CHECK;
void psd_interpreter_release(struct psd_interpreter *interpreter);

void psd_interpreter_begin(struct psd_interpreter *interpreter);
/* Fences of one host, as in scheduler.h; what may start begins at once. */
void psd_interpreter_set_fence(struct psd_interpreter *interpreter, unsigned host, uint32_t iteration);
bool psd_interpreter_is_at_fence(const struct psd_interpreter *interpreter, unsigned host);
void psd_interpreter_pass_fence(struct psd_interpreter *interpreter, unsigned host, uint32_t next);
/* When the host's workers exchange. */
const struct psd_period *psd_interpreter_period(const struct psd_interpreter *interpreter, unsigned host);
/* psd_period_set_steps() of all hosts here, for a window of which none has an iteration in its program's window. */
void psd_interpreter_set_steps(struct psd_interpreter *interpreter, uint32_t window_number, uint32_t steps);
void psd_interpreter_finished(struct psd_interpreter *interpreter, unsigned host, enum psd_resource resource);
/* A message is on its way to a host here, for which no NIC here is busy any more, or ever was: it will arrive. */
void psd_interpreter_departed(struct psd_interpreter *interpreter);
void psd_interpreter_arrived(struct psd_interpreter *interpreter, unsigned host, struct psd_task send);
/* Of what the host's device does at present so much is work, the rest a wait for a core or an all-reduce; all of it
 * if not told. */
void psd_interpreter_worked(struct psd_interpreter *interpreter, unsigned host, double work_sec);
void psd_interpreter_collective_finished(struct psd_interpreter *interpreter, struct psd_task collective);
/* On the coordinator: a member anywhere on the cluster is ready for the collective. */
void psd_interpreter_announced(struct psd_interpreter *interpreter, struct psd_task collective);
/* On its members but the coordinator: that has begun the collective. */
void psd_interpreter_chosen(struct psd_interpreter *interpreter, struct psd_task collective);

/* True when the host has carried out all its operations of all iterations. */
bool psd_interpreter_host_is_complete(const struct psd_interpreter *interpreter, unsigned host);
/* The oldest iteration that the host has not completed: the first of its window, of which messages may arrive. */
uint32_t psd_interpreter_iteration(const struct psd_interpreter *interpreter, unsigned host);
/* PSD_OK when all iterations are done on all hosts; else PSD_ERUN with the first host that is not and an operation it
 * waits for. */
enum psd_status psd_interpreter_check(const struct psd_interpreter *interpreter, struct psd_error *err) PSD_MUST_CHECK;
/* Mean seconds of the iterations from `first` on: from NEXT to NEXT. */
double psd_interpreter_iteration_sec(const struct psd_interpreter *interpreter, uint32_t first);
/* The parts of that mean on the worker that waits least: the one for which the others wait. Where equal, the first. */
struct psd_parts psd_interpreter_parts(const struct psd_interpreter *interpreter, uint32_t first);
/* Whether the host's NIC had nothing to do right before its present send. */
bool psd_interpreter_has_paused(const struct psd_interpreter *interpreter, unsigned host);
/* Mean seconds per iteration that the busiest host's resource was held. */
double psd_interpreter_busy_sec(const struct psd_interpreter *interpreter, enum psd_resource resource);

#endif
