/* Accounts for each worker's time. The interpreter reports begins and ends of operations and messages; from these
 * follow the device's work and the reasons of its waits. Reads no clock. */
#ifndef PSD_ACCOUNT_H
#define PSD_ACCOUNT_H

#include "engine/base/error.h"
#include "engine/program/program.h"

/* Parts of an iteration on one worker; their sum is the iteration. */
struct psd_parts {
	double compute_sec;    /* time of forward and backward on the device */
	double other_work_sec; /* other operations of the device: rebuilds, updates, the stack's end of an iteration */
	double exposed_comm_sec;  /* waiting time of the device while data is on its way or queued */
	double other_waiting_sec; /* waiting time of the device for a slower worker, a core or an all-reduce */
};

/* "On its way" are all data that some host copies, sends, receives or sums, from the operation's begin to its end: in a
 * synchronous iteration every worker needs them. Data queued for one of these resources wait behind such an operation.
 * An interpreter of one host sees its own operations, and others' messages once they begin to arrive; earlier work of
 * others is other waiting. */
struct psd_account {
	struct psd_device_time *devices; /* time of each host's device, one entry per host */
	struct psd_parts *marks; /* sums up to the end of each iteration: a row per iteration, an entry per host */
	unsigned n_hosts;
	unsigned n_on_way;
	double on_way_sec; /* seconds so far in which data was on its way */
	double on_way_from_sec;
};

/* Makes an empty account, released by psd_account_release(). PSD_ENOMEM. */
enum psd_status psd_account_init(struct psd_account *account, unsigned n_hosts, uint32_t n_iterations,
				 struct psd_error *err) PSD_MUST_CHECK;
void psd_account_release(struct psd_account *account);

/* Records that the operation begins, or ends, to hold its resource on that host. */
void psd_account_begin(struct psd_account *account, unsigned host, const struct psd_op *op, double now_sec);
void psd_account_end(struct psd_account *account, unsigned host, const struct psd_op *op, double now_sec);
/* Sets the work of the device's present operation; the rest of it is a wait for a core or an all-reduce. Default: all
 * of it is work. Work that exceeds the operation's time so far is taken from earlier waits of the iteration. */
void psd_account_worked(struct psd_account *account, unsigned host, double work_sec);
/* Record that a message has left its sender or begins to arrive, and that it has arrived. */
void psd_account_depart(struct psd_account *account, double now_sec);
void psd_account_arrive(struct psd_account *account, double now_sec);
/* Records that the iteration is over on all workers. */
void psd_account_mark(struct psd_account *account, uint32_t iteration, double now_sec);

/* Mean parts of iterations first to end - 1, which must be over. Pure. */
struct psd_parts psd_account_parts(const struct psd_account *account, unsigned host, uint32_t first, uint32_t end);

#endif
