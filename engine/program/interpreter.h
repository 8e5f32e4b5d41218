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
	double (*now)(void *context); /* Returns the time in seconds since the start of the run. */
	/* Operations stand for real work, so work() is called for those without a cost, too. false: those end at once.
	 * */
	bool does_real_work;
	/* Number of operations that the device is given ahead of the running one. It executes them in order, and they
	 * wait only for operations given before. At most PSD_MOST_AHEAD. */
	unsigned n_ahead;
	/* Starts `sec` of work on a resource of the host; answered by psd_interpreter_finished() when it is over. */
	void (*work)(void *context, unsigned host, enum psd_resource resource, struct psd_task task, double sec);
	/* Starts the host's messages of a send. The seam answers with psd_interpreter_finished(NIC) when the NIC is
	 * free again, and with psd_interpreter_arrived() for each message at its receiver. Returns false when the host
	 * has nothing to send: then there is no answer. */
	bool (*send)(void *context, unsigned host, struct psd_task task);
	/* Starts a collective that all members here have joined; the seam answers with
	 * psd_interpreter_collective_finished(). Several may be under way, but only one on each host. */
	void (*collective)(void *context, struct psd_task task);
	/* announce and choose: both NULL where this interpreter has all hosts, or where collectives become ready in the
	 * same order everywhere. Otherwise each interpreter has some of the cluster's hosts. One of them, the
	 * coordinator, is told of every ready member and decides the order. */
	/* Reports to the coordinator that the collective is ready on a worker here; psd_interpreter_announced() is to
	 * be called there. NULL on the coordinator. */
	void (*announce)(void *context, struct psd_task task);
	/* Reports the next collective to the others; psd_interpreter_chosen() is to be called there, in the order of
	 * these calls. NULL on the others. The coordinator need not be a member. */
	void (*choose)(void *context, struct psd_task task);
	/* Reports that an operation held its resource on host from start_sec to end_sec. May be NULL. */
	void (*span)(void *context, unsigned host, struct psd_task task, double start_sec, double end_sec);
	void *context;
};

enum { PSD_MOST_AHEAD = 3 };

struct psd_interpreter {
	const struct psd_program *program;
	struct psd_seam seam;
	struct psd_host_state *hosts;
	unsigned n_hosts;
	unsigned n_workers; /* number of workers that this interpreter executes */
	struct psd_iterations iterations;
	double *next_sec;      /* per iteration, from 0: time at which its NEXT operation ended on the last worker */
	uint32_t *n_next_done; /* per iteration: number of workers whose NEXT operation is done */
	struct psd_account account;
	struct psd_collective_order order;
	int64_t n_chosen; /* number of collectives that a coordinator elsewhere has chosen */
};

/* Prepares the execution on n_hosts hosts; duties[h] are those of host h. All arguments are borrowed. PSD_ENOMEM. */
enum psd_status psd_interpreter_init(struct psd_interpreter *interpreter, const struct psd_program *program,
				     unsigned n_hosts, const struct psd_duties *const duties[],
				     struct psd_iterations iterations, const struct psd_seam *seam,
				     struct psd_error *err) PSD_MUST_CHECK;
void psd_interpreter_release(struct psd_interpreter *interpreter);

void psd_interpreter_begin(struct psd_interpreter *interpreter);
/* Sets, queries and passes the fence of one host, as in scheduler.h; tasks that become ready start at once. */
void psd_interpreter_set_fence(struct psd_interpreter *interpreter, unsigned host, uint32_t iteration);
bool psd_interpreter_is_at_fence(const struct psd_interpreter *interpreter, unsigned host);
void psd_interpreter_pass_fence(struct psd_interpreter *interpreter, unsigned host, uint32_t next);
/* Schedule of the iterations in which the host's workers exchange. */
const struct psd_period *psd_interpreter_period(const struct psd_interpreter *interpreter, unsigned host);
/* Sets the local steps of a window, not begun yet, for all hosts here; as psd_period_set_steps(). */
void psd_interpreter_set_steps(struct psd_interpreter *interpreter, uint32_t window_number, uint32_t steps);
void psd_interpreter_finished(struct psd_interpreter *interpreter, unsigned host, enum psd_resource resource);
/* Records that a message is on its way to a host here although no NIC here is busy with it. */
void psd_interpreter_departed(struct psd_interpreter *interpreter);
void psd_interpreter_arrived(struct psd_interpreter *interpreter, unsigned host, struct psd_task send);
/* Sets the working time of the device's present operation, as psd_account_worked(). */
void psd_interpreter_worked(struct psd_interpreter *interpreter, unsigned host, double work_sec);
void psd_interpreter_collective_finished(struct psd_interpreter *interpreter, struct psd_task collective);
/* Records that a member anywhere in the cluster is ready for the collective. Called on the coordinator. */
void psd_interpreter_announced(struct psd_interpreter *interpreter, struct psd_task collective);
/* Records that the coordinator has begun the collective. Called on the other members. */
void psd_interpreter_chosen(struct psd_interpreter *interpreter, struct psd_task collective);

/* True if the host has executed all its operations of all iterations. */
bool psd_interpreter_host_is_complete(const struct psd_interpreter *interpreter, unsigned host);
/* Oldest iteration that the host has not completed; messages for this and later ones may arrive. */
uint32_t psd_interpreter_iteration(const struct psd_interpreter *interpreter, unsigned host);
/* Checks that all iterations are done on all hosts. PSD_ERUN: the text names the first host that is not done, and an
 * operation that it waits for. */
enum psd_status psd_interpreter_check(const struct psd_interpreter *interpreter, struct psd_error *err) PSD_MUST_CHECK;
/* Mean seconds of the iterations from `first` on, each from NEXT operation to NEXT operation. */
double psd_interpreter_iteration_sec(const struct psd_interpreter *interpreter, uint32_t first);
/* Fills percentiles of the seconds of single iterations from `first` on. Each is the smallest value that this share of
 * the iterations does not exceed. False: out of memory. */
bool psd_interpreter_percentiles(const struct psd_interpreter *in, uint32_t first,
				 double sec[PSD_PERCENTILES]) PSD_MUST_CHECK;
/* Parts of that mean on the worker that waits least, since the others wait for it; the first of equals. */
struct psd_parts psd_interpreter_parts(const struct psd_interpreter *interpreter, uint32_t first);
/* True if the host's NIC was idle right before its present send. */
bool psd_interpreter_has_paused(const struct psd_interpreter *interpreter, unsigned host);
/* Mean seconds per iteration in which the resource was held, on the busiest host. */
double psd_interpreter_busy_sec(const struct psd_interpreter *interpreter, enum psd_resource resource);

#endif
