/* Data-parallel training of the network of plain_softmax.h, written plainly and in double precision, from the same
 * start and with the same samples as a run of psd-run: gradients that are added up, travel as low-rank factors or
 * compressed, updates that come late, gradients that are clipped, momentum and AdamW. */
#ifndef PSD_TESTS_REAL_PLAIN_TRAINING_H
#define PSD_TESTS_REAL_PLAIN_TRAINING_H

#include "tests/real/plain_softmax.h"
#include "tests/real/training.h"

enum { PLAIN_BATCH = 8, PLAIN_ITERATIONS = 6 };

/* Executes the same algorithm. The run must end within way_ratio, a share of the algorithm's distance from the start;
 * with compressed gradients all parameters but a few must. begun: a run that learns nothing; trained: the run, of
 * PLAIN_ITERATIONS iterations; system, learn: its keys, which choose the algorithm. */
void plain_training_check(const struct training *begun, const struct training *trained, const char *system,
			  const char *learn, double way_ratio);

#endif
