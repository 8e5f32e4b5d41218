/* Runs in legs: one that is cut, and one that goes on from its checkpoint with other hosts or by another system. */
#ifndef PSD_TESTS_REAL_LEGS_H
#define PSD_TESTS_REAL_LEGS_H

#include "real/keep/checkpoint.h"
#include "tests/real/training.h"

/* An epoch of 40 samples ends between two iterations' ends. */
enum { LEGS_BATCH = 4, LEGS_CUT = 3 };

#define LEGS_SMOOTH "../../tests/data/smooth.yaml"
#define LEGS_ODD    "../../tests/data/odd.yaml"
#define LEGS_DATA   "data: {training_samples: 40, test_samples: 32}, "

/* The function that executes a leg. */
struct side {
	const char *system; /* its keys */
	unsigned workers, per_node;
};

struct leg {
	const char *graph, *train;
	struct side side;
	uint32_t batch, first, end; /* iterations first to end - 1 */
	uint64_t first_sample;
	unsigned from_hosts;		    /* see psd_worker_options */
	const struct psd_device_kind *kind; /* NULL: the processor */
};

/* The leg before the cut, and the one behind it, to `end`. */
struct leg legs_before(const char *graph, struct side side, const char *train);
struct leg legs_behind(const char *graph, struct side was, const struct training *cut, struct side side,
		       const char *train, uint32_t end);
/* checkpoints: NULL: none are written. */
struct training *legs_make(const struct leg *leg, const struct psd_checkpoints *checkpoints);
/* Carries it out; fails the test if it fails. */
struct training *legs_go(const struct leg *leg, const struct psd_checkpoints *checkpoints);

#endif
