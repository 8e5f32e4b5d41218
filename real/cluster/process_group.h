/* A group of forked processes (members) that call the same function and write their results to shared memory. The
 * members are the hosts of a run, or the processes of a measurement. A member that has ended is not started again. */
#ifndef PSD_REAL_PROCESS_GROUP_H
#define PSD_REAL_PROCESS_GROUP_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "engine/base/error.h"

/* Function that each member executes; context: as in psd_process_group_start(). */
typedef enum psd_status psd_process_group_work_fn(void *context, unsigned member, struct psd_error *err);

/* A group. Fields are private to process_group.c. */
struct psd_process_group {
	pid_t *pids; /* process id of each member; 0: the member has ended; shape (n_members) */
	unsigned n_members;
	/* Signal by which each member is currently stopped, such as SIGSTOP; 0: the member is not stopped; shape
	 * (n_members). */
	int *stop_signals;
	struct psd_error *errors; /* error of each member, in shared memory; shape (n_members) */
};

/* Allocates memory, filled with zeros, that this process shares with processes that it forks later. Returns NULL if
 * memory runs out. psd_process_group_unshare() frees the memory, and accepts NULL. */
void *psd_process_group_share(size_t bytes);
void psd_process_group_unshare(void *shared, size_t bytes);

/* A barrier: each member waits in psd_process_group_barrier_wait() until all n_members members have called it. The
 * barrier can be used many times. Open it before the group starts, and close it after the group has ended. If a member
 * ends early, it must end with an error, otherwise the others wait for ever. PSD_ENOMEM, PSD_ERUN. */
struct psd_process_group_barrier;
enum psd_status psd_process_group_barrier_open(struct psd_process_group_barrier **barrier, unsigned n_members,
					       struct psd_error *err) PSD_MUST_CHECK;
void psd_process_group_barrier_wait(struct psd_process_group_barrier *barrier);
/* Frees the barrier; NULL is allowed. */
void psd_process_group_barrier_close(struct psd_process_group_barrier *barrier);

/* Forks n_members (>= 1) processes. Each calls work(context, member, err) and then ends; context is a copy from the
 * time of the fork. The processes have the default actions for SIGINT and SIGTERM, and no blocked signals. The kernel
 * kills them when the thread that calls this function ends. So call it from the main thread, before other threads
 * start. Afterwards the caller must call psd_process_group_wait() or psd_process_group_stop(). PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_process_group_start(struct psd_process_group *group, unsigned n_members,
					psd_process_group_work_fn *work, void *context,
					struct psd_error *err) PSD_MUST_CHECK;
/* Waits until all members have ended. In four cases it kills all members: a member fails; *stop_signal is not 0
 * (stop_signal may be NULL); a member is stopped by a signal and no member has used the processor for stall_sec
 * seconds; no member has used the processor for 10 * stall_sec seconds. Returns the status and the text of the first
 * member that failed, or PSD_ERUN in the other three cases. */
enum psd_status psd_process_group_wait(struct psd_process_group *group, const volatile sig_atomic_t *stop_signal,
				       double stall_sec, struct psd_error *err) PSD_MUST_CHECK;
/* Checks, without waiting, that no member has failed. Otherwise returns the status and the text of the first member
 * that failed. */
enum psd_status psd_process_group_check(struct psd_process_group *group, struct psd_error *err) PSD_MUST_CHECK;
/* Without waiting, records one member that has ended since the last call and returns true; *member: its number;
 * *wait_status: as from waitpid(). Returns false if there is none. */
bool psd_process_group_take_end(struct psd_process_group *group, unsigned *member, int *wait_status);
/* Returns the signal by which a member is stopped; 0: the member is not stopped. psd_process_group_take_end() updates
 * this information. */
int psd_process_group_stop_signal(const struct psd_process_group *group, unsigned member);
/* Returns the processor time that a member's threads have used so far, seconds; 0: the member has ended. */
double psd_process_group_cpu_sec(const struct psd_process_group *group, unsigned member);
/* Kills a member if it has not ended. */
void psd_process_group_kill(const struct psd_process_group *group, unsigned member);
/* Kills the members that have not ended, and frees the group. A group of all zeros is allowed. */
void psd_process_group_stop(struct psd_process_group *group);

#endif
