/* What became of each worker's time. The interpreter says when operations begin and end and when messages are on their
 * way; from that follows what a device did, and what it waited for while it did nothing. Refuses to read a clock. */
#ifndef PSD_ACCOUNT_H
#define PSD_ACCOUNT_H

#include "engine/base/error.h"
#include "engine/program/program.h"

/* The parts of an iteration on one worker; they add up to it. */
struct psd_parts {
	double compute_sec;    /* the device does forward and backward */
	double other_work_sec; /* the device does something else: rebuilds, updates, the stack's end of an iteration */
	double exposed_comm_sec;  /* the device waits, and something is on its way or queued for it */
	double other_waiting_sec; /* the device waits for something else: a slower worker, a core, an all-reduce */
};

/* On its way is all that some host's operation copies, sends, receives or sums, from its begin to its end: in a
 * synchronous iteration every worker needs it in the end. What is queued for one of these resources waits behind such
 * an operation. An interpreter of one host alone sees its own operations, and of others' messages those that have begun
 * to arrive; what others do before that is other waiting. */
struct psd_account {
	struct psd_device_time *devices; /* per host */
	struct psd_parts *marks;	 /* per iteration a row of one for each host: sums until its end */
	unsigned n_hosts;
	unsigned n_on_way;
	double on_way_sec; /* of the past: how long something was on its way */
	double on_way_from_sec;
};

/* PSD_ENOMEM. Released by psd_account_release(). */
enum psd_status psd_account_init(struct psd_account *account, unsigned n_hosts, uint32_t n_iterations,
				 struct psd_error *err) PSD_MUST_CHECK;
void psd_account_release(struct psd_account *account);

/* An operation begins and ends to hold its resource on host. */
void psd_account_begin(struct psd_account *account, unsigned host, const struct psd_op *op, double now_sec);
void psd_account_end(struct psd_account *account, unsigned host, const struct psd_op *op, double now_sec);
/* Of the device's present operation so much is work, the rest a wait for a core or an all-reduce; all of it where
 * nobody says. Work of longer than it has been present is taken from what earlier ones of the iteration have waited. */
void psd_account_worked(struct psd_account *account, unsigned host, double work_sec);
/* A message has left its sender, or begins to arrive; it has arrived. */
void psd_account_depart(struct psd_account *account, double now_sec);
void psd_account_arrive(struct psd_account *account, double now_sec);
/* The iteration is over on all workers. */
void psd_account_mark(struct psd_account *account, uint32_t iteration, double now_sec);

/* Means per iteration, over iterations first to end - 1, which are all over: from mark to mark. Pure. */
struct psd_parts psd_account_parts(const struct psd_account *account, unsigned host, uint32_t first, uint32_t end);

#endif
