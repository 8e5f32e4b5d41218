/* Accounts for the time of each worker's device. The interpreter reports begins and ends of operations and messages.
 * From these this module computes the time in which the device works, and the reasons for which it waits. It reads no
 * clock. */
#ifndef PSD_ACCOUNT_H
#define PSD_ACCOUNT_H

#include "engine/base/error.h"
#include "engine/program/program.h"

/* Parts of the duration of an iteration on one worker, seconds. Their sum is the duration. */
struct psd_parts {
	double compute_sec; /* time in which the device executes forward or backward */
	/* time of the device's other operations: rebuilding gradients from factors, updates, and the fixed work of the
	 * software stack at the end of an iteration */
	double other_work_sec;
	/* time in which the device is idle while data are on their way (see struct psd_account) */
	double exposed_comm_sec;
	/* other idle time: the device waits for a slower worker, a processor core or an all-reduce */
	double other_waiting_sec;
};

/* Account of all hosts that one interpreter executes. Data are "on their way" while some host copies, sends, receives
 * or sums them; in a synchronous iteration every worker needs all of these data. An interpreter with a single host
 * knows only this host's operations, and messages of other hosts from the time when they begin to arrive. Waits for
 * earlier work of other hosts then count as other_waiting_sec. */
struct psd_account {
	struct psd_device_time *devices; /* time of each host's device; n_hosts entries */
	/* sums from the start of the run to the end of each iteration; shape (iterations, n_hosts) */
	struct psd_parts *marks;
	unsigned n_hosts;
	uint32_t n_skipped; /* number of iterations that were added by psd_account_skip() */
	unsigned n_on_way;  /* number of operations and messages that have data on their way now */
	double on_way_sec;  /* sum of the finished intervals in which data were on their way, seconds */
	/* time at which the present interval began, seconds since the start of the run; valid if n_on_way > 0 */
	double on_way_from_sec;
};

/* Makes an account of n_hosts hosts and n_iterations iterations; psd_account_release() releases it. PSD_ENOMEM. */
enum psd_status psd_account_init(struct psd_account *account, unsigned n_hosts, uint32_t n_iterations,
				 struct psd_error *err) PSD_MUST_CHECK;
void psd_account_release(struct psd_account *account);

/* Records that the operation begins to occupy its resource on that host. now_sec, here and in the functions below:
 * time since the start of the run. */
void psd_account_begin(struct psd_account *account, unsigned host, const struct psd_op *op, double now_sec);
/* Records that the operation has ended on that host, and that its resource is free again. */
void psd_account_end(struct psd_account *account, unsigned host, const struct psd_op *op, double now_sec);
/* Sets the seconds in which the device really works on its present operation. The rest of the operation counts as
 * waiting for a core or an all-reduce. Without this call the whole operation counts as work. If work_sec is longer
 * than the time since the operation began, earlier waits in operations of the same iteration are reduced by the
 * difference. */
void psd_account_worked(struct psd_account *account, unsigned host, double work_sec);
/* Records that a message has data on its way: it has left its sender, or begins to arrive. */
void psd_account_depart(struct psd_account *account, double now_sec);
/* Records that a message has arrived completely. */
void psd_account_arrive(struct psd_account *account, double now_sec);
/* Records that the iteration has ended on this host, and stores its sums up to now. */
void psd_account_mark_host(struct psd_account *account, unsigned host, uint32_t iteration, double now_sec);
/* psd_account_mark_host() of all hosts. */
void psd_account_mark(struct psd_account *account, uint32_t iteration, double now_sec);

/* Counts the last `unit` iterations before iteration last + 1 another n_units times, for psd_interpreter_skip(). sec:
 * duration of all these additional iterations, seconds. */
void psd_account_skip(struct psd_account *account, uint32_t last, uint32_t unit, uint32_t n_units, double sec);

/* Returns the seconds of each part (struct psd_parts) of an iteration on a host: the mean over iterations `first` to
 * `end` - 1, which must have ended. Pure. */
struct psd_parts psd_account_parts(const struct psd_account *account, unsigned host, uint32_t first, uint32_t end);

/* Returns the duration that the parts make together, seconds. Pure. */
double psd_parts_sec(const struct psd_parts *parts);
/* Returns the seconds for which the device works: compute and other work. Pure. */
double psd_parts_work_sec(const struct psd_parts *parts);
/* Adds weight times each part to *sum. */
void psd_parts_add(struct psd_parts *sum, const struct psd_parts *parts, double weight);
/* Returns parts in the same proportion whose sum is `sec`; zeros if their sum is 0. Pure. */
struct psd_parts psd_parts_scaled(struct psd_parts parts, double sec);

/* Mean iteration of workers that each train at a rate of their own; {0}: of none yet. Workers count by their rates. */
struct psd_mean_iteration {
	double samples;		    /* sum of the workers' batches */
	double samples_per_sec;	    /* sum of the workers' rates */
	double slowest_sec;	    /* longest iteration of a worker */
	struct psd_parts weighted;  /* sum of the workers' parts, each times its rate */
	struct psd_parts most_work; /* parts of the worker whose device works longest; of several, of the first */
};

/* Adds a worker whose iterations of `batch` samples have these parts. */
void psd_mean_iteration_add(struct psd_mean_iteration *mean, const struct psd_parts *parts, double batch);
/* Returns the duration at which workers of equal rates would train on as many samples a second, seconds. Pure. */
double psd_mean_iteration_sec(struct psd_mean_iteration mean);
/* Returns the parts of psd_mean_iteration_sec(). If workers keep pace with the slowest one, because they are alike or
 * wait for it, these are parts of the worker whose device works longest; otherwise means. Pure. */
struct psd_parts psd_mean_iteration_parts(struct psd_mean_iteration mean);

#endif
