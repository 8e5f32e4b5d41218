/* Parts of a device's time, from operations given by hand. */
#include <criterion/criterion.h>

#include "engine/program/account.h"

#define EXACT_SEC 1e-12

static const struct psd_op
	forward = {.kind = PSD_OP_FORWARD, .resource = PSD_RESOURCE_DEVICE, .where = PSD_WHERE_WORKERS},
	rebuild = {.kind = PSD_OP_FACTOR, .resource = PSD_RESOURCE_DEVICE, .where = PSD_WHERE_WORKERS},
	root_rebuild = {.kind = PSD_OP_FACTOR, .resource = PSD_RESOURCE_DEVICE, .where = PSD_WHERE_ROOT},
	push = {.kind = PSD_OP_SEND, .resource = PSD_RESOURCE_NIC, .where = PSD_WHERE_WORKERS};

static struct psd_account open_account(unsigned n_hosts, uint32_t n_iterations)
{
	struct psd_account account;
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_account_init(&account, n_hosts, n_iterations, &err), PSD_OK, "%s", err.text);
	return account;
}

static void work(struct psd_account *account, unsigned host, const struct psd_op *op, double from_sec, double until_sec)
{
	psd_account_begin(account, host, op, from_sec);
	psd_account_end(account, host, op, until_sec);
}

static void expect_parts(struct psd_parts parts, double compute_sec, double other_work_sec, double exposed_comm_sec,
			 double other_waiting_sec)
{
	cr_expect_float_eq(parts.compute_sec, compute_sec, EXACT_SEC, "compute %g", parts.compute_sec);
	cr_expect_float_eq(parts.other_work_sec, other_work_sec, EXACT_SEC, "other work %g", parts.other_work_sec);
	cr_expect_float_eq(parts.exposed_comm_sec, exposed_comm_sec, EXACT_SEC, "exposed %g", parts.exposed_comm_sec);
	cr_expect_float_eq(parts.other_waiting_sec, other_waiting_sec, EXACT_SEC, "waiting %g",
			   parts.other_waiting_sec);
}

/* Worker 0 computes until 1 and has pushed at 1.5; worker 1 computes until 3; its message is there at 4. */
Test(account, a_quick_worker_waits_for_a_slow_one)
{
	struct psd_account account = open_account(2, 1);

	psd_account_begin(&account, 0, &forward, 0);
	psd_account_begin(&account, 1, &forward, 0);
	psd_account_end(&account, 0, &forward, 1);
	work(&account, 0, &push, 1, 1.5);
	psd_account_end(&account, 1, &forward, 3);
	psd_account_begin(&account, 1, &push, 3);
	psd_account_depart(&account, 3.5); /* its latency is longer than the time for which it kept the link busy */
	psd_account_end(&account, 1, &push, 3.5);
	psd_account_arrive(&account, 4);
	psd_account_mark(&account, 0, 4);
	expect_parts(psd_account_parts(&account, 0, 0, 1), 1, 0, 0.5 + 1, 1.5);
	expect_parts(psd_account_parts(&account, 1, 0, 1), 3, 0, 1, 0);
	psd_account_release(&account);
}

Test(account, transfers_beside_work_are_not_exposed)
{
	struct psd_account account = open_account(1, 1);

	psd_account_begin(&account, 0, &push, 0);
	work(&account, 0, &forward, 0, 2);
	work(&account, 0, &rebuild, 2, 5);
	psd_account_end(&account, 0, &push, 6);
	psd_account_mark(&account, 0, 6);
	expect_parts(psd_account_parts(&account, 0, 0, 1), 2, 3, 1, 0);
	psd_account_release(&account);
}

Test(account, a_root_works_for_itself_and_keeps_what_others_wait_for)
{
	struct psd_account account = open_account(2, 1);

	work(&account, 0, &root_rebuild, 0, 2);
	psd_account_mark(&account, 0, 3);
	expect_parts(psd_account_parts(&account, 0, 0, 1), 0, 2, 0, 1);
	expect_parts(psd_account_parts(&account, 1, 0, 1), 0, 0, 2, 1);
	psd_account_release(&account);
}

Test(account, a_wait_for_a_core_is_no_work)
{
	struct psd_account account = open_account(1, 1);

	psd_account_begin(&account, 0, &push, 0);
	psd_account_begin(&account, 0, &forward, 0);
	psd_account_worked(&account, 0, 1);
	psd_account_end(&account, 0, &forward, 3);
	psd_account_end(&account, 0, &push, 3);
	psd_account_mark(&account, 0, 3);
	expect_parts(psd_account_parts(&account, 0, 0, 1), 1, 0, 0, 2);
	psd_account_release(&account);
}

/* An operation from 1 to 4 and a message from 5 to 8, cut by the ends of iterations at 3 and 6. */
Test(account, an_iteration_ends_in_the_middle_of_what_goes_on)
{
	struct psd_account account = open_account(1, 3);

	psd_account_begin(&account, 0, &rebuild, 1);
	psd_account_mark(&account, 0, 3);
	psd_account_end(&account, 0, &rebuild, 4);
	psd_account_depart(&account, 5);
	psd_account_mark(&account, 1, 6);
	psd_account_arrive(&account, 8);
	psd_account_mark(&account, 2, 9);
	expect_parts(psd_account_parts(&account, 0, 0, 1), 0, 2, 0, 1);
	expect_parts(psd_account_parts(&account, 0, 1, 2), 0, 1, 1, 1);
	expect_parts(psd_account_parts(&account, 0, 1, 3), 0, 0.5, 1.5, 1); /* means of two iterations */
	psd_account_release(&account);
}

static void worked(struct psd_account *account, const struct psd_op *op, double work_sec, double from_sec,
		   double until_sec)
{
	psd_account_begin(account, 0, op, from_sec);
	psd_account_worked(account, 0, work_sec);
	psd_account_end(account, 0, op, until_sec);
}

/* A device that worked from 0 to 1, 1 to 3 and 4 to 6. The account hears of the first two at 4, and of the last at 6.
 * */
Test(account, late_reports_count_as_work)
{
	struct psd_account account = open_account(1, 1);

	worked(&account, &forward, 1, 0, 4);
	worked(&account, &rebuild, 2, 4, 4);
	worked(&account, &forward, 2, 4, 6);
	psd_account_mark(&account, 0, 6);
	expect_parts(psd_account_parts(&account, 0, 0, 1), 1 + 2, 2, 0, 1);
	psd_account_release(&account);
}

/* The iteration before has ended: what it had left is gone, and nothing counts twice. */
Test(account, late_reports_stay_in_their_iteration)
{
	struct psd_account account = open_account(1, 2);

	worked(&account, &forward, 1, 0, 4);
	psd_account_mark(&account, 0, 4);
	worked(&account, &forward, 3, 4, 6);
	psd_account_mark(&account, 1, 6);
	expect_parts(psd_account_parts(&account, 0, 1, 2), 2, 0, 0, 0);
	psd_account_release(&account);
}

/* 10 s of work, reported when it begins; 2 s of them are over when the iteration ends. */
Test(account, work_that_goes_on_takes_no_slack)
{
	struct psd_account account = open_account(1, 1);

	worked(&account, &forward, 1, 0, 4);
	psd_account_begin(&account, 0, &forward, 4);
	psd_account_worked(&account, 0, 10);
	psd_account_mark(&account, 0, 6);
	expect_parts(psd_account_parts(&account, 0, 0, 1), 1 + 2, 0, 0, 3);
	psd_account_release(&account);
}

/* 4 samples in 1 + 1 s and 3 in 6 s: 2 and 0.5 samples/s, together 7 samples in 2.8 s. */
Test(account, workers_count_by_their_rates)
{
	const struct psd_parts quick = {.compute_sec = 1, .exposed_comm_sec = 1}, slow = {.compute_sec = 6};
	struct psd_mean_iteration mean = {0};

	psd_mean_iteration_add(&mean, &quick, 4);
	psd_mean_iteration_add(&mean, &slow, 3);
	cr_expect_float_eq(psd_mean_iteration_sec(mean), 2.8, 1e-12);
	expect_parts(psd_mean_iteration_parts(mean), (2 * 1 + 0.5 * 6) / 2.5, 0, 2 * 1 / 2.5, 0);
}

/* 4 samples in 6 s each: both are as long, and one works longer. */
Test(account, workers_that_keep_pace_show_the_busiest)
{
	const struct psd_parts quick = {.compute_sec = 1, .other_waiting_sec = 5}, slow = {.compute_sec = 6};
	struct psd_mean_iteration mean = {0};

	psd_mean_iteration_add(&mean, &quick, 4);
	psd_mean_iteration_add(&mean, &slow, 4);
	expect_parts(psd_mean_iteration_parts(mean), 6, 0, 0, 0);
}
