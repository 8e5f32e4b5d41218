/* Systems whose workers make all updates, as they do where these come late and where gradients are clipped: sums by
 * rings and trees, whole and in parts; sums that shards send back, whole and in slices, from workers and from hosts of
 * their own, by leaders; factors. */
#ifndef PSD_TESTS_REAL_UPDATE_CASES_H
#define PSD_TESTS_REAL_UPDATE_CASES_H

#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/real/training.h"

struct update_case {
	const char *system;
	unsigned workers, workers_per_node;
};

static const struct update_case cases[] = {
	{"sync: ring", 2, 1},
	{"sync: ring, fuse: 1MB, barrier: layer", 3, 1},
	{"sync: halving-doubling, schedule: sequential, pipeline: 4KiB", 4, 1},
	{"sync: two-level", 4, 2},
	{"sync: ps", 2, 1},
	{"sync: ps", 4, 2},
	{"sync: ps, schedule: sequential", 3, 1},
	{"sync: ps, pair: 512B, slice: 1KiB, barrier: layer, priority: forward", 3, 1},
	{"sync: ps, servers: 2", 3, 1},
	{"sync: two-level-ps, pair: 512B, slice: 1KiB", 4, 2},
	{"sync: two-level-ps, servers: 1, pair: 512B, slice: 1KiB", 4, 2},
	{"sync: two-level-ps", 4, 2},
	{"sync: sfb", 3, 1},
	{"sync: hybrid", 4, 2},
	{"sync: hybrid, rule: seconds, barrier: layer", 3, 1},
};
enum { N_CASES = sizeof(cases) / sizeof(cases[0]) };

/* Share of the distance from the start: sums over samples are rounded elsewhere. */
#define SAME_WAY_RATIO 1e-5
/* The same of gradients with 8 bits. */
#define BF16_WAY_RATIO 0.03

/* A rate that moves nothing: where all runs begin. */
#define LEARN_NOTHING ", learning_rate: {policy: fixed, base: 1e-9}"

/* A network of many layers with 24 samples in each iteration, divided in any way. more: keys of the system; learn: keys
 * of `train` */
static inline struct training *update_case_train(const struct update_case *of, const char *more, const char *learn)
{
	char system[192], job[384];

	snprintf(system, sizeof(system), "%s%s", of->system, more);
	snprintf(job, sizeof(job), "iterations: 7, data: {kind: synthetic, training_samples: 96}%s", learn);
	return training_finish(training_make("../../tests/data/maskless.yaml", system, of->workers,
					     of->workers_per_node, 24 / of->workers, 5, job),
			       system);
}

/* All of them end where the first one does, from the same start. */
static inline void update_cases_check_alike(const char *more, const char *learn)
{
	struct training *begun = update_case_train(&cases[0], more, LEARN_NOTHING),
			*first = update_case_train(&cases[0], more, learn);

	for (unsigned c = 1; c < N_CASES; c++) {
		struct training *other = update_case_train(&cases[c], more, learn);
		const double apart_ratio = training_apart_ratio(begun, first, other);

		training_expect_same_on_all(other, cases[c].system);
		cr_expect_leq(apart_ratio, SAME_WAY_RATIO, "%s: off by %g of the way", cases[c].system, apart_ratio);
		training_free(other);
	}
	training_free(begun);
	training_free(first);
}

/* Some of them, twice. */
static inline void update_cases_check_repetition(const char *more, const char *learn)
{
	for (unsigned c = 0; c < N_CASES; c += 3) {
		struct training *one = update_case_train(&cases[c], more, learn),
				*other = update_case_train(&cases[c], more, learn);

		cr_expect(training_is_same(one, 0, other, 0), "%s", cases[c].system);
		training_free(one);
		training_free(other);
	}
}

#endif
