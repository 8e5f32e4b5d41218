/* Whole runs on loopback of a network without decisions: nothing that a method does with gradients shows in what is
 * learnt, but for the order of sums; where that is the same, not a bit of it. */
#define _XOPEN_SOURCE 700
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "tests/real/training.h"

/* Share of a tensor's norm, after 20 updates. A sum of 16 samples is rounded by at most 16 2^-24 = 1e-6 of its parts'
 * norms; what that changes in later gradients is no more where nothing is decided. */
#define SAME_TOLERANCE_RATIO 1e-5
#define LEAST_WAY_RATIO	     0.05 /* so that equal starts alone do not pass */

enum { ITERATIONS = 20, GLOBAL_BATCH = 16 };

static struct training *train(const char *system, unsigned workers, unsigned iterations)
{
	char job[160];
	struct training *training;

	snprintf(
		job, sizeof(job),
		"iterations: %u, optimiser: {momentum: 0.9, weight_decay: 0.004}, learning_rate: {policy: fixed, base: "
		"0.05}",
		iterations);
	training = training_make("../../tests/data/smooth.yaml", system, workers, 1, GLOBAL_BATCH / workers, 1, job);
	return training_finish(training, system);
}

/* The largest, over all tensors, of how far the left one's is from the right one's, in the right one's norm. */
static double difference_ratio(const struct training *left, const struct training *right)
{
	const struct psd_graph *graph = &right->loaded.costed.graph;
	const float *l = training_parameters(left, 0), *r = training_parameters(right, 0);
	double worst_ratio = 0.0;

	for (unsigned t = 0; t < graph->n_tensors; t++) {
		double differences = 0.0, squares = 0.0;

		for (uint64_t e = 0; e < graph->tensors[t].elements; e++, l++, r++) {
			differences += pow((double)*l - (double)*r, 2);
			squares += pow((double)*r, 2);
		}
		worst_ratio = fmax(worst_ratio, sqrt(differences / squares));
	}
	return worst_ratio;
}

/* ---- the same as one worker ---- */

static double worst_of(const char *system, const struct training *alone)
{
	double worst_ratio = 0.0;

	for (unsigned workers = 1; workers <= 8; workers *= 2) {
		struct training *together = train(system, workers, ITERATIONS);
		const double ratio = difference_ratio(together, alone);

		training_expect_same_on_all(together, system);
		cr_expect_leq(ratio, SAME_TOLERANCE_RATIO, "%s, %u workers: %g", system, workers, ratio);
		worst_ratio = fmax(worst_ratio, ratio);
		training_free(together);
	}
	return worst_ratio;
}

static void check_systems(const char *const systems[], unsigned n)
{
	struct training *begun = train("sync: ring", 1, 1), *alone = train("sync: ring", 1, ITERATIONS);

	cr_expect_gt(difference_ratio(begun, alone), LEAST_WAY_RATIO);
	for (unsigned s = 0; s < n; s++)
		cr_log_info("%s: no tensor differs by more than %.1e\n", systems[s], worst_of(systems[s], alone));
	training_free(begun);
	training_free(alone);
}

Test(run_lossless, servers_and_factors_train_as_one_worker)
{
	static const char *const systems[] = {
		"sync: ps",
		"sync: ps, schedule: sequential",
		"sync: ps, pair: 512B, slice: 1KiB, barrier: layer, priority: forward",
		"sync: sfb",
		"sync: sfb, barrier: layer",
		"sync: hybrid",
		"sync: hybrid, rule: seconds",
		"sync: adam",
		"sync: adam, pair: 512B, slice: 1KiB",
		"sync: sacp",
	};

	check_systems(systems, sizeof(systems) / sizeof(systems[0]));
}

static void check_all_reduces(const char *more)
{
	char texts[PSD_N_ALL_REDUCES][96];
	const char *systems[PSD_N_ALL_REDUCES];

	for (unsigned p = 0; p < PSD_N_ALL_REDUCES; p++) {
		snprintf(texts[p], sizeof(texts[p]), "sync: %s%s", psd_all_reduces[p]->name, more);
		systems[p] = texts[p];
	}
	check_systems(systems, PSD_N_ALL_REDUCES);
}

Test(run_lossless, every_all_reduce_trains_as_one_worker)
{
	static const char *const selection[] = {"sync: auto"};

	check_all_reduces("");
	check_systems(selection, 1);
}

/* All six tensors in one exchange, then as many as make 1 KiB. */
Test(run_lossless, every_all_reduce_of_gathered_tensors_trains_as_one_worker)
{
	check_all_reduces(", fuse: 1MB");
	check_all_reduces(", fuse: 1KiB");
}

/* ---- gathered or not: the same bits ---- */

static void check_bits(const char *sync, unsigned workers)
{
	static const char *const fuses[] = {"fuse: 1KiB", "fuse: 1MB", "fuse: auto"};
	struct training *apart = train(sync, workers, ITERATIONS);

	for (unsigned f = 0; f < 3; f++) {
		char system[96];
		struct training *gathered;

		snprintf(system, sizeof(system), "%s, %s", sync, fuses[f]);
		gathered = train(system, workers, ITERATIONS);
		cr_expect(training_is_same(gathered, 0, apart, 0), "%s on %u workers", system, workers);
		training_free(gathered);
	}
	training_free(apart);
}

/* The sum of two has one order. */
Test(run_lossless, gathering_changes_no_bit_of_two_workers)
{
	char sync[64];

	for (unsigned p = 0; p < PSD_N_ALL_REDUCES; p++) {
		snprintf(sync, sizeof(sync), "sync: %s", psd_all_reduces[p]->name);
		check_bits(sync, 2);
	}
}

/* With more of them a ring, a tree or a torus sums an element in the order that its place in the exchange gives it, and
 * that changes with what else is in there. These two sum pairs, pairs of pairs and so on, wherever it is. */
Test(run_lossless, gathering_changes_no_bit_where_pairs_are_summed)
{
	for (unsigned workers = 4; workers <= 8; workers *= 2) {
		check_bits("sync: recursive-doubling", workers);
		check_bits("sync: halving-doubling", workers);
	}
}
