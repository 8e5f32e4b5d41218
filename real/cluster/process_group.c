#define _GNU_SOURCE
#include "real/cluster/process_group.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "real/base/machine.h"

/* The wait status of an exit with 1, for a process whose end the kernel did not keep. */
enum { UNKNOWN_END = 1 << 8 };

void *psd_process_group_share(size_t bytes)
{
	void *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return shared == MAP_FAILED ? NULL : shared;
}

void psd_process_group_unshare(void *shared, size_t bytes)
{
	if (shared)
		munmap(shared, bytes);
}

struct psd_process_group_barrier {
	pthread_barrier_t all;
};

/* Returns 0 or an errno. */
static int init_barrier(pthread_barrier_t *barrier, unsigned n_members)
{
	pthread_barrierattr_t shared;
	int error = pthread_barrierattr_init(&shared);

	if (error)
		return error;
	error = pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	if (!error)
		error = pthread_barrier_init(barrier, &shared, n_members);
	(void)pthread_barrierattr_destroy(&shared); /* cannot fail: made above */
	return error;
}

enum psd_status psd_process_group_barrier_open(struct psd_process_group_barrier **barrier, unsigned n_members,
					       struct psd_error *err)
{
	struct psd_process_group_barrier *opened = psd_process_group_share(sizeof(*opened));
	int error;

	if (!opened)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a measurement");
	error = init_barrier(&opened->all, n_members);
	if (error) {
		psd_process_group_barrier_close(opened);
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot make a barrier for %u processes: %s",
				     n_members, strerror(error));
	}
	*barrier = opened;
	return PSD_OK;
}

void psd_process_group_barrier_wait(struct psd_process_group_barrier *barrier)
{
	(void)pthread_barrier_wait(&barrier->all);
}

/* The barrier is not destroyed, since it may still count killed members as waiting. */
void psd_process_group_barrier_close(struct psd_process_group_barrier *barrier)
{
	psd_process_group_unshare(barrier, sizeof(*barrier));
}

static void release(struct psd_process_group *group)
{
	psd_process_group_unshare(group->errors, group->n_members * sizeof(*group->errors));
	free(group->pids);
	*group = (struct psd_process_group){.pids = NULL};
}

void psd_process_group_kill(const struct psd_process_group *group, unsigned member)
{
	if (group->pids[member])
		(void)kill(group->pids[member], SIGKILL);
}

void psd_process_group_stop(struct psd_process_group *group)
{
	for (unsigned m = 0; m < group->n_members; m++)
		psd_process_group_kill(group, m);
	for (unsigned m = 0; m < group->n_members; m++)
		while (group->pids[m] && waitpid(group->pids[m], NULL, 0) < 0 && errno == EINTR)
			;
	release(group);
}

static _Noreturn void run_member(struct psd_process_group *group, unsigned member, psd_process_group_work_fn *work,
				 void *context, pid_t parent)
{
	enum psd_status status;
	sigset_t no_signals;

	sigemptyset(&no_signals);
	(void)sigprocmask(SIG_SETMASK, &no_signals, NULL);
	(void)signal(SIGINT, SIG_DFL);
	(void)signal(SIGTERM, SIG_DFL);
	(void)signal(SIGHUP, SIG_IGN); /* the parent decides whether a hangup ends the group */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(1);
	status = work(context, member, &group->errors[member]);
	_exit(status ? 1 : 0);
}

enum psd_status psd_process_group_start(struct psd_process_group *group, unsigned n_members,
					psd_process_group_work_fn *work, void *context, struct psd_error *err)
{
	struct psd_process_group started = {.n_members = n_members};
	const pid_t parent = getpid();

	started.pids = calloc(n_members, sizeof(*started.pids));
	started.errors = psd_process_group_share(n_members * sizeof(*started.errors));
	if (!started.pids || !started.errors) {
		release(&started);
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for %u processes", n_members);
	}
	fflush(NULL);
	for (unsigned m = 0; m < n_members; m++) {
		const pid_t pid = fork();

		if (pid == 0)
			run_member(&started, m, work, context, parent);
		if (pid < 0) {
			psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "cannot start a process: %s", strerror(errno));
			psd_process_group_stop(&started);
			return PSD_ERUN;
		}
		started.pids[m] = pid;
	}
	*group = started;
	return PSD_OK;
}

/* The error of a member that failed. */
static enum psd_status judge(const struct psd_process_group *group, unsigned member, int wait_status,
			     struct psd_error *err)
{
	if (WIFSIGNALED(wait_status))
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "a process that measured was killed by signal %d%s",
				     WTERMSIG(wait_status), psd_machine_kill_hint(WTERMSIG(wait_status)));
	if (!group->errors[member].status)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "a process that measured ended without a result");
	*err = group->errors[member];
	return err->status;
}

bool psd_process_group_take_end(struct psd_process_group *group, unsigned *member, int *wait_status)
{
	for (unsigned m = 0; m < group->n_members; m++) {
		const pid_t ended = group->pids[m] ? waitpid(group->pids[m], wait_status, WNOHANG) : 0;

		if (ended == 0 || (ended < 0 && errno != ECHILD))
			continue;
		if (ended < 0)
			*wait_status = UNKNOWN_END;
		group->pids[m] = 0;
		*member = m;
		return true;
	}
	return false;
}

enum psd_status psd_process_group_check(struct psd_process_group *group, struct psd_error *err)
{
	int wait_status = 0;
	unsigned member;

	while (psd_process_group_take_end(group, &member, &wait_status))
		if (wait_status)
			return judge(group, member, wait_status, err);
	return PSD_OK;
}

static bool is_any_left(const struct psd_process_group *group)
{
	for (unsigned m = 0; m < group->n_members; m++)
		if (group->pids[m])
			return true;
	return false;
}

enum psd_status psd_process_group_wait(struct psd_process_group *group, const volatile sig_atomic_t *stop_signal,
				       struct psd_error *err)
{
	const struct timespec pause = {0, 2000000};
	enum psd_status status = psd_process_group_check(group, err);

	while (!status && is_any_left(group)) {
		nanosleep(&pause, NULL);
		status = psd_process_group_check(group, err);
		if (!status && stop_signal && *stop_signal)
			status = psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "stopped by signal %d", (int)*stop_signal);
	}
	psd_process_group_stop(group);
	return status;
}
