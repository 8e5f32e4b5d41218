/* Whole runs on groups of nodes whose workers have unequal batches. Gradients are weighted by samples, so that a run
 * trains as one worker with the batch of all. */
#include <criterion/criterion.h>

#include "tests/real/training.h"

#define GRAPH "../../tests/data/maskless.yaml"
#define TRAIN                                                                                                          \
	"iterations: 7, data: {kind: synthetic, training_samples: 96}, optimiser: {kind: sgd, momentum: 0.9}, "        \
	"learning_rate: {policy: fixed, base: "

/* Sums over samples round differently where samples are divided differently: relative to the way from the start, and to
 * the norm of all parameters. */
#define SAME_WAY_RATIO	1e-5
#define SAME_NORM_RATIO 1e-6

enum { ALL_SAMPLES = 24, SEED = 5, N_OF_GATE = 2 };

struct unequal {
	const char *system;
	unsigned workers, workers_per_node;
	unsigned micro_batches;
	const char *groups;
};

#define NINE_AND_THREE "[{nodes: 2, batch_per_worker: 9}, {nodes: 2, batch_per_worker: 3}]"
#define TWO_NODES      "[{nodes: 1, batch_per_worker: 9}, {nodes: 1, batch_per_worker: 3}]"
#define THREE_NODES                                                                                                    \
	"[{nodes: 1, batch_per_worker: 4}, {nodes: 1, batch_per_worker: 1}, {nodes: 1, batch_per_worker: 7}]"
/* 24 samples in proportion to 4, 1 and 1 */
#define BY_SPEED "[{nodes: 1}, {nodes: 2, speed: 0.25}]"

static const struct unequal all_unequal[] = {
	{"sync: ps", 4, 1, 1, NINE_AND_THREE},
	{"sync: ring", 4, 1, 1, NINE_AND_THREE},
	{"sync: ps, servers: 2", 4, 1, 1, NINE_AND_THREE},
	{"sync: ring, split: speed", 3, 1, 1, BY_SPEED},
	{"sync: two-level", 4, 2, 1, TWO_NODES},
	{"sync: two-level-ps, schedule: sequential", 4, 2, 1, TWO_NODES},
	{"sync: zero-1", 4, 1, 1, NINE_AND_THREE},
	{"sync: zero-2, fuse: 8KiB", 4, 1, 1, NINE_AND_THREE},
	{"sync: ring, accumulate: 2", 3, 1, 2, THREE_NODES},
};

static struct training *train(const struct unequal *of, const char *rate)
{
	char job[512];

	snprintf(job, sizeof(job), TRAIN "%s}", rate);
	return training_finish(training_make_groups(GRAPH, of->system, of->workers, of->workers_per_node,
						    ALL_SAMPLES / of->workers / of->micro_batches, SEED, job,
						    of->groups),
			       of->system);
}

static void expect_as_one(size_t first, size_t end)
{
	const struct unequal alone = {"sync: ring", 1, 1, 1, NULL};
	struct training *one = train(&alone, "0.02"), *begun = train(&alone, "1e-9");

	for (size_t i = first; i < end; i++) {
		struct training *many = train(&all_unequal[i], "0.02");
		const double norm_ratio = training_distance(many, one) / training_distance(one, NULL);

		cr_assert_eq(psd_case_samples(&many->made), ALL_SAMPLES);
		cr_expect_neq(psd_case_batch(&many->made, 0), psd_case_batch(&many->made, all_unequal[i].workers - 1));
		training_expect_same_on_all(many, all_unequal[i].system);
		cr_expect_lt(norm_ratio, SAME_NORM_RATIO, "%s: %g of the norm", all_unequal[i].system, norm_ratio);
		cr_expect_lt(training_apart_ratio(begun, one, many), SAME_WAY_RATIO, "%s: %g of the way",
			     all_unequal[i].system, training_apart_ratio(begun, one, many));
		cr_expect_float_eq(many->result.last_loss, one->result.last_loss, 1e-6 * one->result.last_loss);
		training_free(many);
	}
	training_free(begun);
	training_free(one);
}

Test(run_groups, workers_train_as_one, .timeout = 120)
{
	expect_as_one(0, N_OF_GATE);
}

Test(run_groups, workers_of_every_method_train_as_one, .timeout = 120)
{
	expect_as_one(N_OF_GATE, sizeof(all_unequal) / sizeof(all_unequal[0]));
}

/* Work of a slow device is its processor time and the waits after it. It is a worker's own also where the parts of an
 * iteration are means over workers. */
static void expect_longer_work(const char *system)
{
	double compute_sec[2] = {0.0, 0.0};
	char job[512];
	struct training *training;

	snprintf(job, sizeof(job), TRAIN "0.02}");
	training = training_make_groups("cifar10-quick.yaml", system, 2, 1, 16, SEED, job,
					"[{nodes: 1}, {nodes: 1, speed: 0.1}]");
	training->options.compute_sec = compute_sec;
	training_free(training_finish(training, "a slow group"));
	/* work is counted in processor time, which other programs change by half at most */
	cr_expect(compute_sec[1] > 5.0 * compute_sec[0] && compute_sec[1] < 20.0 * compute_sec[0], "%s: %g s and %g s",
		  system, compute_sec[0], compute_sec[1]);
}

Test(run_groups, a_slow_group_works_for_as_much_longer, .timeout = 120)
{
	expect_longer_work("sync: ring");
}

Test(run_groups, a_slow_group_works_for_as_much_longer_asynchronously, .timeout = 120)
{
	expect_longer_work("sync: ps, asynchronous: {}");
}
