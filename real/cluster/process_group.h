/* A group of forked processes, the members of one measurement or run, that call one function and leave results in
 * shared memory. Refuses to restart a member. */
#ifndef PSD_REAL_PROCESS_GROUP_H
#define PSD_REAL_PROCESS_GROUP_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "engine/base/error.h"

typedef enum psd_status psd_process_group_work_fn(void *context, unsigned member, struct psd_error *err);

/* A group and its processes. Fields are private to process_group.c. */
struct psd_process_group {
	pid_t *pids; /* process of each member; 0: it has ended */
	unsigned n_members;
	int *stop_signals;	  /* signal that stopped each member; 0: not stopped */
	struct psd_error *errors; /* error of each member, in shared memory */
};

/* Allocates zeroed memory that forked processes share with this one; NULL: no memory. unshare accepts NULL. */
void *psd_process_group_share(size_t bytes);
void psd_process_group_unshare(void *shared, size_t bytes);

/* A barrier at which all members of a group wait for each other, any number of times. Open it before the group starts
 * and close it after the group has ended. A member that ends early must fail, or the others wait for ever. PSD_ENOMEM,
 * PSD_ERUN. */
struct psd_process_group_barrier;
enum psd_status psd_process_group_barrier_open(struct psd_process_group_barrier **barrier, unsigned n_members,
					       struct psd_error *err) PSD_MUST_CHECK;
void psd_process_group_barrier_wait(struct psd_process_group_barrier *barrier);
void psd_process_group_barrier_close(struct psd_process_group_barrier *barrier); /* NULL is allowed */

/* Forks n_members >= 1 processes, which call work(context, member) and end; context is as at the fork. They have
 * default actions for SIGINT and SIGTERM, and no blocked signals. The kernel kills them when this thread ends: call it
 * from the main thread, before others start. psd_process_group_wait() or _stop() must follow. PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_process_group_start(struct psd_process_group *group, unsigned n_members,
					psd_process_group_work_fn *work, void *context,
					struct psd_error *err) PSD_MUST_CHECK;
/* Waits until all members have ended; after a failure it kills the others. It kills all once *stop_signal is not 0, a
 * member is stopped and nothing moves for stall_sec, or no member uses the processor for ten times that; stop_signal
 * may be NULL. Returns the status and text of the first failure, or PSD_ERUN. */
enum psd_status psd_process_group_wait(struct psd_process_group *group, const volatile sig_atomic_t *stop_signal,
				       double stall_sec, struct psd_error *err) PSD_MUST_CHECK;
/* Checks, without waiting, that no member has failed; otherwise as psd_process_group_wait(). */
enum psd_status psd_process_group_check(struct psd_process_group *group, struct psd_error *err) PSD_MUST_CHECK;
/* Returns true once for each member that has ended, without waiting. *wait_status: as waitpid() gives it. */
bool psd_process_group_take_end(struct psd_process_group *group, unsigned *member, int *wait_status);
/* Signal that stopped a member, as far as psd_process_group_take_end() has seen; 0: it is not stopped. */
int psd_process_group_stop_signal(const struct psd_process_group *group, unsigned member);
/* Processor seconds of a member's threads so far; 0: it has ended. */
double psd_process_group_cpu_sec(const struct psd_process_group *group, unsigned member);
/* Kills a member that still runs. */
void psd_process_group_kill(const struct psd_process_group *group, unsigned member);
/* Kills the members that still run, and releases the group. A group of zeros is allowed. */
void psd_process_group_stop(struct psd_process_group *group);

#endif
