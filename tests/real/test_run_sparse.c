/* Whole runs on loopback that send the largest chunks of gradients alone: all workers choose the same and end with the
 * same bits, send what the formula says, and do what the published algorithm does. */
#define _XOPEN_SOURCE 700
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/real/training.h"

#define MOST_ACCURACY_RATIO 0.01

static struct training *train(const char *system, unsigned workers, unsigned iterations, const char *more)
{
	struct training *training;
	char job[256];

	snprintf(job, sizeof(job),
		 "iterations: %u, optimiser: {momentum: 0.9, weight_decay: 0.004}, learning_rate: {policy: fixed, "
		 "base: 0.001}%s",
		 iterations, more);
	training = training_make("cifar10-quick.yaml", system, workers, 1, 32 / workers, workers, job);
	return training_finish(training, system);
}

/* The same exchanges, cut in the same parts, so that each sum has the same order. */
static void check_dense(const char *sync, unsigned workers)
{
	char system[128];
	struct training *dense, *sparse;

	dense = train(sync, workers, 20, "");
	snprintf(system, sizeof(system), "%s, sparse: {sparsity: 0, chunk: 1000}", sync);
	sparse = train(system, workers, 20, "");
	training_expect_same_on_all(sparse, system);
	cr_expect(training_is_same(sparse, 0, dense, 0), "%s, %u workers", system, workers);
	training_free(dense);
	training_free(sparse);
}

Test(run_sparse, at_sparsity_0_it_is_momentum_bit_for_bit)
{
	for (unsigned workers = 1; workers <= 8; workers *= 2)
		check_dense("sync: ring", workers);
	check_dense("sync: ring, fuse: 1MB", 4); /* all ten tensors, more than a message has pieces */
	check_dense("sync: ring, fuse: 80kB, schedule: sequential", 3);
	check_dense("sync: ring, fuse: 80kB, barrier: layer", 2);
}

/* Worker 0 holds the digests of all choices against its own in every iteration, and gives up where one differs. */
Test(run_sparse, all_workers_choose_the_same_and_end_with_the_same_bits)
{
	for (unsigned workers = 2; workers <= 8; workers++) {
		struct training *training =
			train("sync: ring, fuse: 80kB, sparse: {sparsity: 0.85, chunk: 500}", workers, 20, "");

		training_expect_same_on_all(training, "ring");
		training_free(training);
	}
}

Test(run_sparse, every_all_reduce_schedule_and_encoding_leaves_equal_bits)
{
	static const char *const more[] = {", barrier: layer", ", schedule: sequential", ", wire: bf16",
					   ", wire: fp16, priority: forward"};

	for (unsigned p = 0; p < PSD_N_ALL_REDUCES; p++) {
		char system[192];
		struct training *training;

		snprintf(system, sizeof(system), "sync: %s%s, sparse: {sparsity: 0.7, chunk: 700, warmup: 5}",
			 psd_all_reduces[p]->name, more[p % 4]);
		training = train(system, 4, 12, "");
		training_expect_same_on_all(training, system);
		training_free(training);
	}
}

/* One exchange of all 145,578 values in chunks of 1000: 146, the last of 578. After the first iteration, which is not
 * measured, 146 - floor(146 * 0.85) = 22 travel, of which one may be the last. A ring of 2 sends each half of them
 * twice, and each half of the norms, 4 bytes each whatever the values have. */
static void check_bytes(const char *wire, uint64_t value_bytes)
{
	enum { CHOSEN = 146 - 124, SHORT = 1000 - 578, NORMS = 4 * 146 };
	const uint64_t most = value_bytes * CHOSEN * 1000 + NORMS, least = most - value_bytes * SHORT;
	char system[96];
	struct training *training;

	snprintf(system, sizeof(system), "sync: ring, fuse: 1MB, sparse: {sparsity: 0.85, chunk: 1000}, wire: %s",
		 wire);
	training = train(system, 2, 9, "");
	const uint64_t sent = training->result.sent_bytes_per_node;
	const uint64_t received = training->result.received_bytes_per_node;

	cr_expect(sent >= least && sent <= most, "%s: %lu bytes, expected %lu to %lu", wire, sent, least, most);
	cr_expect(received >= least && received <= most, "%s: %lu bytes", wire, received);
	training_free(training);
}

Test(run_sparse, sent_bytes_are_those_of_the_formula)
{
	check_bytes("fp32", 4);
	check_bytes("fp16", 2);
	check_bytes("bf16", 2);
}

static double accuracy(const char *more)
{
	char system[128];

	snprintf(system, sizeof(system), "sync: ring, fuse: 64KiB%s", more);
	return training_accuracy(system, 300);
}

Test(run_sparse, accuracy_is_within_a_point)
{
	const double dense = accuracy("");

	cr_expect_geq(accuracy(", sparse: {sparsity: 0.85, chunk: 1000, warmup: 50}"), dense - MOST_ACCURACY_RATIO);
	cr_expect_geq(accuracy(", sparse: {sparsity: 0.85, chunk: 1000, warmup: 50, feedback: full}"),
		      dense - MOST_ACCURACY_RATIO);
}

Test(run_sparse, lars_is_refused_with_its_place)
{
	struct training *training =
		training_make("cifar10-quick.yaml", "sync: ring, sparse: {sparsity: 0.5}", 2, 1, 16, 1,
			      "iterations: 1, optimiser: {kind: lars, trust: 0.01}, learning_rate: {policy: fixed, "
			      "base: 0.003}");

	training_run(training);
	cr_expect_eq(training->status, PSD_EINVAL);
	cr_expect(strstr(training->err.text, "'s' is 'sparse', optimiser 'lars' needs whole gradients"), "%s",
		  training->err.text);
	training_free(training);
}
