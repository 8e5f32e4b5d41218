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
#include "real/net/socket.h"

/* The wait status of an exit with 1, for a process whose end the kernel did not keep. */
enum { UNKNOWN_END = 1 << 8 };

enum { MOST_TIMES_STALL = 10 };

#define MOVED_CPU_SEC 0.01
#define LONG_TURN_SEC 1.0 /* longer turns mean that this process was suspended */

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

	if (!opened)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a measurement");
	const int error = init_barrier(&opened->all, n_members);
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
	free(group->stop_signals);
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
	sigset_t no_signals;

	sigemptyset(&no_signals);
	(void)sigprocmask(SIG_SETMASK, &no_signals, NULL);
	(void)signal(SIGINT, SIG_DFL);
	(void)signal(SIGTERM, SIG_DFL);
	(void)signal(SIGHUP, SIG_IGN); /* the parent decides whether a hangup ends the group */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(1);
	const enum psd_status status = work(context, member, &group->errors[member]);
	_exit(status ? 1 : 0);
}

enum psd_status psd_process_group_start(struct psd_process_group *group, unsigned n_members,
					psd_process_group_work_fn *work, void *context, struct psd_error *err)
{
	struct psd_process_group started = {.n_members = n_members};
	const pid_t parent = getpid();

	started.pids = calloc(n_members, sizeof(*started.pids));
	started.stop_signals = calloc(n_members, sizeof(*started.stop_signals));
	started.errors = psd_process_group_share(n_members * sizeof(*started.errors));
	if (!started.pids || !started.stop_signals || !started.errors) {
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

static pid_t wait_for(struct psd_process_group *group, unsigned member, int *wait_status)
{
	const pid_t found = waitpid(group->pids[member], wait_status, WNOHANG | WUNTRACED | WCONTINUED);

	if (found > 0)
		group->stop_signals[member] = WIFSTOPPED(*wait_status) ? WSTOPSIG(*wait_status) : 0;
	return found;
}

int psd_process_group_stop_signal(const struct psd_process_group *group, unsigned member)
{
	return group->stop_signals[member];
}

double psd_process_group_cpu_sec(const struct psd_process_group *group, unsigned member)
{
	struct timespec time = {0, 0};
	clockid_t clock;

	if (group->pids[member] && !clock_getcpuclockid(group->pids[member], &clock))
		(void)clock_gettime(clock, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

bool psd_process_group_take_end(struct psd_process_group *group, unsigned *member, int *wait_status)
{
	for (unsigned m = 0; m < group->n_members; m++) {
		pid_t ended = group->pids[m] ? wait_for(group, m, wait_status) : 0;

		while (ended > 0 && (WIFSTOPPED(*wait_status) || WIFCONTINUED(*wait_status)))
			ended = wait_for(group, m, wait_status);
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

/* Members that measure use processor time, or wait for one that does. */
struct watch {
	double stall_sec;
	double moved_sec, moved_cpu_sec; /* last time at which they were seen to move */
	double turned_sec;
};

static unsigned find_stopped(const struct psd_process_group *group)
{
	unsigned m = 0;

	while (m < group->n_members && (!group->pids[m] || !group->stop_signals[m]))
		m++;
	return m;
}

static enum psd_status check_stall(const struct psd_process_group *group, struct watch *watch, struct psd_error *err)
{
	const double now = psd_socket_now_sec();
	const unsigned stopped = find_stopped(group);
	const bool was_suspended = now > watch->turned_sec + LONG_TURN_SEC;
	double cpu_sec = 0.0;

	for (unsigned m = 0; m < group->n_members; m++)
		cpu_sec += psd_process_group_cpu_sec(group, m);
	watch->turned_sec = now;
	if (was_suspended || cpu_sec > watch->moved_cpu_sec + MOVED_CPU_SEC || cpu_sec < watch->moved_cpu_sec) {
		watch->moved_sec = now;
		watch->moved_cpu_sec = cpu_sec;
	}
	if (now <= watch->moved_sec + (stopped < group->n_members ? 1 : MOST_TIMES_STALL) * watch->stall_sec)
		return PSD_OK;
	if (stopped < group->n_members)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE,
				     "a process that measures was stopped by signal %d, nothing has moved for %.3g s",
				     group->stop_signals[stopped], now - watch->moved_sec);
	return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "the processes that measure have stood still for %.3g s",
			     now - watch->moved_sec);
}

enum psd_status psd_process_group_wait(struct psd_process_group *group, const volatile sig_atomic_t *stop_signal,
				       double stall_sec, struct psd_error *err)
{
	const struct timespec pause = {0, 2000000};
	const double now = psd_socket_now_sec();
	struct watch watch = {.stall_sec = stall_sec, .moved_sec = now, .turned_sec = now};
	enum psd_status status = psd_process_group_check(group, err);

	while (!status && is_any_left(group)) {
		nanosleep(&pause, NULL);
		status = psd_process_group_check(group, err);
		if (!status)
			status = check_stall(group, &watch, err);
		if (!status && stop_signal && *stop_signal)
			status = psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "stopped by signal %d", (int)*stop_signal);
	}
	psd_process_group_stop(group);
	return status;
}
