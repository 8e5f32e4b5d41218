/* Whole runs of asynchronous training. Parameters depend on the order in which gradients arrive. */
#include <criterion/criterion.h>

#include "tests/real/training.h"
#include "tests/test_with.h"

#define JOB "iterations: 150, learning_rate: {policy: fixed, base: 0.02}"

static double last_loss(const char *system, unsigned workers)
{
	struct training *training = training_make("../../tests/data/maskless.yaml", system, workers, 1, 8, 5, JOB);
	double loss;

	training_run(training);
	cr_assert_eq(training->status, PSD_OK, "%s: %s", system, training->err.text);
	loss = training->result.last_loss;
	training_free(training);
	return loss;
}

/* Each worker's update goes as far as that of all workers together otherwise. */
static void check(const char *system, unsigned workers)
{
	cr_expect_lt(last_loss(system, workers), last_loss("sync: ps", workers), "%s", system);
}

TEST_ROW(run_async, workers_learn_from_each_others_updates, check("sync: ps, asynchronous: {}", 2))
TEST_ROW(run_async, slices_and_servers_are_asynchronous,
	 (check("sync: ps, pair: 512B, slice: 1KiB, barrier: layer, asynchronous: {bound: 1}", 3),
	  check("sync: ps, servers: 2, asynchronous: {bound: 3, rate: by-staleness}", 3)))
