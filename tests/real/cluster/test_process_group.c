/* Groups of processes: a failure is reported, and no process waits for one that cannot come. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "real/cluster/process_group.h"
#include "tests/test_with.h"

TestSuite(process_group, .timeout = 60);

enum { MEMBERS = 3 };

#define STALL_SEC 60.0
#define SHORT_SEC 0.1

static enum psd_status work(void *context, unsigned member, struct psd_error *err)
{
	int *done = context;

	done[member] = 1;
	return member == 1 ? psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "member %u is out of paper", member) : PSD_OK;
}

static void expect_first_words(void)
{
	int *const done = psd_process_group_share(MEMBERS * sizeof(*done));
	struct psd_error err = {.text = ""};
	struct psd_process_group group;

	cr_assert_not_null(done);
	cr_assert_eq(psd_process_group_start(&group, MEMBERS, work, done, &err), PSD_OK, "%s", err.text);
	cr_expect_eq(psd_process_group_wait(&group, NULL, STALL_SEC, &err), PSD_ERUN);
	cr_expect_str_eq(err.text, "member 1 is out of paper");
	psd_process_group_unshare(done, MEMBERS * sizeof(*done));
}

TEST_ROW(process_group, the_first_that_fails_is_heard, expect_first_words())

static enum psd_status work_on(void *context, unsigned member, struct psd_error *err)
{
	if (member == 1)
		return work(context, member, err);
	for (;;)
		pause();
}

Test(process_group, a_failure_is_heard_while_others_work_on)
{
	int *const done = psd_process_group_share(MEMBERS * sizeof(*done));
	struct psd_error err = {.text = ""};
	struct psd_process_group group;

	cr_assert_not_null(done);
	cr_assert_eq(psd_process_group_start(&group, MEMBERS, work_on, done, &err), PSD_OK, "%s", err.text);
	while (!psd_process_group_check(&group, &err))
		sched_yield();
	cr_expect_str_eq(err.text, "member 1 is out of paper");
	psd_process_group_stop(&group);
	psd_process_group_unshare(done, MEMBERS * sizeof(*done));
}

static enum psd_status leave(void *context, unsigned member, struct psd_error *err)
{
	(void)context;
	(void)member;
	(void)err;
	return PSD_OK;
}

/* Then the kernel forgets each at once, and how it ended with it. */
Test(process_group, an_ignored_SIGCHLD_is_a_failure_and_no_endless_wait)
{
	struct psd_error err = {.text = ""};
	struct psd_process_group group;

	signal(SIGCHLD, SIG_IGN);
	cr_assert_eq(psd_process_group_start(&group, MEMBERS, leave, NULL, &err), PSD_OK, "%s", err.text);
	cr_expect_eq(psd_process_group_wait(&group, NULL, STALL_SEC, &err), PSD_ERUN);
	cr_expect_str_eq(err.text, "a process that measured ended without a result");
	signal(SIGCHLD, SIG_DFL);
}

struct meeting {
	struct psd_process_group_barrier *barrier;
	_Atomic unsigned *n_turns; /* shared; of each member */
};

/* Between two meetings no process is a turn ahead or behind. */
static enum psd_status take_turns(void *context, unsigned member, struct psd_error *err)
{
	const struct meeting *meeting = context;

	for (unsigned turn = 1; turn <= 200; turn++) {
		meeting->n_turns[member] = turn;
		psd_process_group_barrier_wait(meeting->barrier);
		for (unsigned m = 0; m < MEMBERS; m++) {
			const unsigned reached = meeting->n_turns[m];

			if (reached != turn)
				return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "member %u is at turn %u, not %u", m,
						     reached, turn);
		}
		psd_process_group_barrier_wait(meeting->barrier);
	}
	return PSD_OK;
}

Test(process_group, members_meet_at_a_barrier)
{
	struct meeting meeting = {.n_turns = psd_process_group_share(MEMBERS * sizeof(*meeting.n_turns))};
	struct psd_error err = {.text = ""};
	struct psd_process_group group;

	cr_assert_not_null((void *)meeting.n_turns);
	cr_assert_eq(psd_process_group_barrier_open(&meeting.barrier, MEMBERS, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_process_group_start(&group, MEMBERS, take_turns, &meeting, &err), PSD_OK, "%s", err.text);
	cr_expect_eq(psd_process_group_wait(&group, NULL, STALL_SEC, &err), PSD_OK, "%s", err.text);
	psd_process_group_barrier_close(meeting.barrier);
	psd_process_group_unshare((void *)meeting.n_turns, MEMBERS * sizeof(*meeting.n_turns));
}

static enum psd_status fail_instead_of_meeting(void *context, unsigned member, struct psd_error *err)
{
	const struct meeting *meeting = context;

	if (member == 1)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "member 1 is out of paper");
	psd_process_group_barrier_wait(meeting->barrier);
	return PSD_OK;
}

Test(process_group, a_member_that_waits_for_a_failed_one_is_killed)
{
	struct meeting meeting = {.n_turns = NULL};
	struct psd_error err = {.text = ""};
	struct psd_process_group group;

	cr_assert_eq(psd_process_group_barrier_open(&meeting.barrier, MEMBERS, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_process_group_start(&group, MEMBERS, fail_instead_of_meeting, &meeting, &err), PSD_OK, "%s",
		     err.text);
	cr_expect_eq(psd_process_group_wait(&group, NULL, STALL_SEC, &err), PSD_ERUN);
	cr_expect_str_eq(err.text, "member 1 is out of paper");
	psd_process_group_barrier_close(meeting.barrier);
}

/* ---- ends, one at a time ---- */

/* Member 0 ends well, member 1 fails, member 2 waits. */
static enum psd_status end_each_in_its_way(void *context, unsigned member, struct psd_error *err)
{
	return member == 0 ? PSD_OK : work_on(context, member, err);
}

static int wait_for_end(struct psd_process_group *group, unsigned *member)
{
	int wait_status = -1;

	while (!psd_process_group_take_end(group, member, &wait_status))
		sched_yield();
	return wait_status;
}

Test(process_group, each_end_is_reported_once_with_its_status)
{
	int *const done = psd_process_group_share(MEMBERS * sizeof(*done));
	struct psd_process_group group;
	struct psd_error err;
	unsigned member = MEMBERS;
	int wait_status;

	cr_assert_eq(psd_process_group_start(&group, MEMBERS, end_each_in_its_way, done, &err), PSD_OK, "%s", err.text);
	for (unsigned n = 0; n < 2; n++) {
		wait_status = wait_for_end(&group, &member);
		cr_assert_lt(member, 2);
		cr_assert(WIFEXITED(wait_status));
		cr_assert_eq(WEXITSTATUS(wait_status), member);
	}
	cr_assert_not(psd_process_group_take_end(&group, &member, &wait_status)); /* member 2 runs */
	psd_process_group_kill(&group, 2);
	wait_status = wait_for_end(&group, &member);
	cr_assert_eq(member, 2);
	cr_assert(WIFSIGNALED(wait_status));
	cr_assert_eq(WTERMSIG(wait_status), SIGKILL);
	cr_assert_not(psd_process_group_take_end(&group, &member, &wait_status)); /* no process is left */
	psd_process_group_stop(&group);
	psd_process_group_unshare(done, MEMBERS * sizeof(*done));
}

static enum psd_status stop(void *context, unsigned member, struct psd_error *err)
{
	(void)context, (void)err;
	if (member == 1)
		raise(SIGSTOP);
	for (;;)
		pause();
	return PSD_OK;
}

Test(process_group, one_that_is_stopped_is_noticed)
{
	struct psd_process_group group;
	struct psd_error err;

	cr_assert_eq(psd_process_group_start(&group, MEMBERS, stop, NULL, &err), PSD_OK, "%s", err.text);
	cr_expect_eq(psd_process_group_wait(&group, NULL, SHORT_SEC, &err), PSD_ERUN);
	cr_expect(strstr(err.text, "a process that measures was stopped by signal 19,"), "%s", err.text);
}

static enum psd_status stand_still(void *context, unsigned member, struct psd_error *err)
{
	(void)context, (void)member, (void)err;
	for (;;)
		pause();
	return PSD_OK;
}

Test(process_group, members_that_stand_still_are_noticed)
{
	struct psd_process_group group;
	struct psd_error err;

	cr_assert_eq(psd_process_group_start(&group, MEMBERS, stand_still, NULL, &err), PSD_OK, "%s", err.text);
	cr_expect_eq(psd_process_group_wait(&group, NULL, SHORT_SEC, &err), PSD_ERUN);
	cr_expect(strstr(err.text, "the processes that measure have stood still for "), "%s", err.text);
}

static enum psd_status crash(void *context, unsigned member, struct psd_error *err)
{
	const struct rlimit no_dump = {0};

	(void)context, (void)member, (void)err;
	(void)setrlimit(RLIMIT_CORE, &no_dump);
	signal(SIGABRT, SIG_DFL);
	abort();
}

Test(process_group, a_crash_is_reported_with_its_signal)
{
	struct psd_process_group group;
	struct psd_error err;

	cr_assert_eq(psd_process_group_start(&group, 1, crash, NULL, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_process_group_wait(&group, NULL, STALL_SEC, &err), PSD_ERUN);
	cr_assert_str_eq(err.text, "a process that measured was killed by signal 6");
}

static enum psd_status check_signals(void *context, unsigned member, struct psd_error *err)
{
	struct sigaction action;
	sigset_t blocked;

	(void)context, (void)member;
	if (sigaction(SIGINT, NULL, &action) < 0 || action.sa_handler != SIG_DFL)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "SIGINT has the parent's action");
	if (sigprocmask(SIG_BLOCK, NULL, &blocked) < 0 || sigismember(&blocked, SIGTERM))
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "SIGTERM is blocked as in the parent");
	return PSD_OK;
}

Test(process_group, members_do_not_inherit_the_parents_signals)
{
	struct psd_process_group group;
	struct psd_error err;
	sigset_t blocked;

	signal(SIGINT, SIG_IGN);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	cr_assert_eq(sigprocmask(SIG_BLOCK, &blocked, NULL), 0);
	cr_assert_eq(psd_process_group_start(&group, 1, check_signals, NULL, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_process_group_wait(&group, NULL, STALL_SEC, &err), PSD_OK, "%s", err.text);
}
