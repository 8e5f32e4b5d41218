/* Accounts for each worker's time. The interpreter reports begins and ends of operations and messages; from these
 * reports it computes the device's working time, and the reason of each wait of the device. Reads no clock. */
#ifndef PSD_ACCOUNT_H
#define PSD_ACCOUNT_H

#include "engine/base/error.h"
#include "engine/program/program.h"

/* Parts of the duration of an iteration on one worker; their sum is that duration. */
struct psd_parts {
	double compute_sec; /* time of forward and backward on the device */
	/* other operations of the device: gradients rebuilt from factors, updates, fixed work of the software stack at
	 * the end of an iteration */
	double other_work_sec;
	/* time in which the device is idle while data is on its way (see struct psd_account) or queued */
	double exposed_comm_sec;
	/* time in which the device waits for a slower worker, a processor core or an all-reduce */
	double other_waiting_sec;
};

/* Account of the times of all hosts that one interpreter executes. Data is "on its way" while some host copies, sends,
 * receives or sums it, from the begin of that operation to its end; in a synchronous iteration every worker needs all
 * of it. An interpreter of one host sees that host's operations, and messages of other hosts once they begin to arrive.
 * Earlier work of other hosts counts as other waiting. */
struct psd_account {
	struct psd_device_time *devices; /* time of each host's device, one entry per host */
	/* sums from the start of the run to the end of each iteration; shape (iterations, hosts) */
	struct psd_parts *marks;
	unsigned n_hosts;
	uint32_t n_skipped;	/* number of iterations of psd_account_skip() */
	unsigned n_on_way;	/* number of operations and messages with data on its way now */
	double on_way_sec;	/* seconds in which data was on its way, up to the last time when none was */
	double on_way_from_sec; /* time since which data is on its way, if n_on_way > 0 */
};

/* Makes an empty account, released by psd_account_release(). PSD_ENOMEM. */
enum psd_status psd_account_init(struct psd_account *account, unsigned n_hosts, uint32_t n_iterations,
				 struct psd_error *err) PSD_MUST_CHECK;
void psd_account_release(struct psd_account *account);

/* Records that the operation begins to hold its resource on that host. */
void psd_account_begin(struct psd_account *account, unsigned host, const struct psd_op *op, double now_sec);
/* Records that the operation has ended and no longer holds its resource on that host. */
void psd_account_end(struct psd_account *account, unsigned host, const struct psd_op *op, double now_sec);
/* Sets the seconds of the device's running operation in which the device really works; in the rest the operation waits
 * for a core or an all-reduce. Without this call the whole operation counts as work. If work_sec exceeds the time since
 * the operation's begin, earlier waits of the iteration become work instead. */
void psd_account_worked(struct psd_account *account, unsigned host, double work_sec);
/* Records that a message has left its sender, or begins to arrive. */
void psd_account_depart(struct psd_account *account, double now_sec);
/* Records that a message has arrived completely. */
void psd_account_arrive(struct psd_account *account, double now_sec);
/* Records that the iteration has ended on all workers, with the sums so far. */
void psd_account_mark(struct psd_account *account, uint32_t iteration, double now_sec);

/* Counts n_units times the `unit` iterations up to iteration `last` once more: psd_interpreter_skip(). sec: their
 * duration. */
void psd_account_skip(struct psd_account *account, uint32_t last, uint32_t unit, uint32_t n_units, double sec);

/* Returns the parts of a host's iterations first to end - 1, averaged over them. These iterations must have ended.
 * Pure. */
struct psd_parts psd_account_parts(const struct psd_account *account, unsigned host, uint32_t first, uint32_t end);

#endif
