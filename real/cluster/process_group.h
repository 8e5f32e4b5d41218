/* Processes of one measurement or run: forked, each with a piece of work, and waited for. What they find they leave in
 * memory that all share. Refuses to restart one. */
#ifndef PSD_REAL_PROCESS_GROUP_H
#define PSD_REAL_PROCESS_GROUP_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "engine/base/error.h"

typedef enum psd_status psd_process_group_work_fn(void *context, unsigned member, struct psd_error *err);

/* Fields are private to process_group.c. */
struct psd_process_group {
	pid_t *pids; /* 0: ended */
	unsigned n_members;
	struct psd_error *errors; /* shared; one for each member */
};

/* Zeros that this process and those forked from it share; NULL: no memory, which psd_process_group_unshare() takes as well. */
void *psd_process_group_share(size_t bytes);
void psd_process_group_unshare(void *shared, size_t bytes);

/* At which all members of a crew meet, again and again: opened before the crew starts, closed after it has ended. A
 * member that ends with meetings left must fail, or the others wait for ever. PSD_ENOMEM, PSD_ERUN. */
struct psd_process_group_barrier;
enum psd_status psd_process_group_barrier_open(struct psd_process_group_barrier **barrier, unsigned n_members,
					       struct psd_error *err) PSD_MUST_CHECK;
void psd_process_group_barrier_wait(struct psd_process_group_barrier *barrier);
void psd_process_group_barrier_close(struct psd_process_group_barrier *barrier); /* NULL is allowed */

/* Forks n_members >= 1 processes that call work(context, member) and end; context is as at the fork. They die with this
 * thread: call it from the main one, before starting any. Ended by psd_process_group_wait() or _stop(). PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_process_group_start(struct psd_process_group *group, unsigned n_members,
					psd_process_group_work_fn *work, void *context,
					struct psd_error *err) PSD_MUST_CHECK;
/* Waits until all have ended; the first that fails ends the others. stop_signal: NULL, or not 0 from the signal on that
 * ends them. What the first that failed had to say, or PSD_ERUN. */
enum psd_status psd_process_group_wait(struct psd_process_group *group, const volatile sig_atomic_t *stop_signal,
				       struct psd_error *err) PSD_MUST_CHECK;
/* PSD_OK as long as none has failed, else as psd_process_group_wait(); returns at once. */
enum psd_status psd_process_group_check(struct psd_process_group *group, struct psd_error *err) PSD_MUST_CHECK;
/* Takes notice of one that has ended, *wait_status as waitpid() gives it; false: none has. Returns at once. */
bool psd_process_group_take_end(struct psd_process_group *group, unsigned *member, int *wait_status);
/* Ends a member, if it still runs. */
void psd_process_group_kill(const struct psd_process_group *group, unsigned member);
/* Ends those that still run; zeros are allowed. */
void psd_process_group_stop(struct psd_process_group *group);

#endif
