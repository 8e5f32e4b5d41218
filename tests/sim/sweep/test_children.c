/* Work in child processes: order of results, and what is said when a child fails or crashes. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/sweep/children.h"

enum { NOBODY = 1000 };

/* Which jobs go wrong, and how. */
struct plan {
	unsigned crashing, failing, refusing, silent;
};

static const struct plan all_well = {NOBODY, NOBODY, NOBODY, NOBODY};

static enum psd_status work(void *context, unsigned job, struct psd_outcome *outcome, struct psd_error *err)
{
	const struct plan *plan = context;

	printf("output of a job is not for the user\n");
	if (job == plan->crashing) {
		fprintf(stderr, "\n  the reason\nmore\n");
		raise(SIGKILL);
	}
	if (job == plan->failing)
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "it did not finish");
	if (job == plan->refusing)
		return psd_error_set(err, PSD_EINVAL, (struct psd_place){"a.yaml", 3, 0}, "'x' is bad");
	if (job == plan->silent)
		_exit(7);
	outcome->iteration_sec = job + 0.5;
	return PSD_OK;
}

static void name(const void *context, unsigned job, char *text, size_t room)
{
	(void)context;
	snprintf(text, room, "job %u", job);
}

enum { N_JOBS = 9 };

static enum psd_status run(const struct plan *plan, unsigned n_at_once, struct psd_outcome outcomes[N_JOBS],
			   struct psd_error *err)
{
	struct plan mine = *plan;
	const struct psd_children children = {
		.work = work, .name = name, .context = &mine, .n_jobs = N_JOBS, .n_at_once = n_at_once};
	int signal_number = -1;
	const enum psd_status status = psd_children_run(&children, outcomes, &signal_number, err);

	cr_assert_eq(signal_number, 0);
	cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1, "a child is left");
	cr_assert_eq(errno, ECHILD);
	return status;
}

Test(children, results_come_in_the_order_of_jobs)
{
	static const unsigned at_once[] = {1, 2, N_JOBS, 3 * N_JOBS};

	for (unsigned i = 0; i < 4; i++) {
		struct psd_outcome outcomes[N_JOBS] = {{.iteration_sec = 0}};
		struct psd_error err = {.text = ""};

		cr_assert_eq(run(&all_well, at_once[i], outcomes, &err), PSD_OK, "%s", err.text);
		for (unsigned job = 0; job < N_JOBS; job++)
			cr_expect_eq(outcomes[job].iteration_sec, job + 0.5);
	}
}

static void expect_failure(struct plan plan, enum psd_status expected, const char *text)
{
	struct psd_outcome outcomes[N_JOBS];
	struct psd_error err = {.text = ""};

	cr_expect_eq(run(&plan, 3, outcomes, &err), expected);
	cr_expect_str_eq(err.text, text);
}

Test(children, a_crash_names_job_signal_and_words)
{
	struct plan plan = all_well;

	plan.crashing = 4;
	expect_failure(plan, PSD_ERUN, "job 4: run failed: its process died of signal 9 (Killed):   the reason more");
}

Test(children, a_failed_run_names_its_job)
{
	struct plan plan = all_well;

	plan.failing = 2;
	expect_failure(plan, PSD_ERUN, "job 2: run failed: it did not finish");
}

Test(children, bad_input_keeps_its_place)
{
	struct plan plan = all_well;

	plan.refusing = 0;
	expect_failure(plan, PSD_EINVAL, "a.yaml:3: 'x' is bad");
}

Test(children, an_end_without_result_is_a_failure)
{
	struct plan plan = all_well;

	plan.silent = N_JOBS - 1;
	expect_failure(plan, PSD_ERUN, "job 8: run failed: its process ended with status 7 and no result");
}

Test(children, the_first_failure_in_the_order_of_jobs_is_reported)
{
	for (int repetition = 0; repetition < 20; repetition++) {
		struct plan plan = all_well;

		plan.failing = 5;
		plan.crashing = 6;
		plan.silent = 7;
		expect_failure(plan, PSD_ERUN, "job 5: run failed: it did not finish");
	}
}

static enum psd_status interrupt_parent(void *context, unsigned job, struct psd_outcome *outcome, struct psd_error *err)
{
	(void)context;
	(void)outcome;
	(void)err;
	if (job == 1)
		kill(getppid(), SIGTERM);
	for (;;)
		pause();
	return PSD_OK;
}

Test(children, a_signal_ends_all_of_them)
{
	const struct psd_children children = {.work = interrupt_parent, .name = name, .n_jobs = 3, .n_at_once = 2};
	struct psd_outcome outcomes[3];
	struct psd_error err = {.text = ""};
	int signal_number = 0;

	cr_assert_neq(psd_children_run(&children, outcomes, &signal_number, &err), PSD_OK);
	cr_assert_eq(signal_number, SIGTERM);
	cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1);
}
