/* A whole run by psd-run of the network of plain_softmax.h. Beside it a suite carries out the same algorithm, plainly
 * and in double precision, from the same start and with the same samples. */
#ifndef PSD_TESTS_REAL_PLAIN_TRAINING_H
#define PSD_TESTS_REAL_PLAIN_TRAINING_H

#include "tests/real/plain_softmax.h"
#include "tests/real/training.h"

enum { PLAIN_BATCH = 8, PLAIN_ITERATIONS = 6 };

struct plain_training {
	struct training *begun, *trained;    /* psd-run's: where all begins, and its end */
	double parameters[PLAIN_PARAMETERS]; /* the suite's own; the start, when opened */
	unsigned workers;
	struct psd_data *data;
};

/* Trains by psd-run. system, optimiser: keys of the scenario; rate: learning rate */
void plain_training_open(struct plain_training *of, const char *system, unsigned workers, unsigned workers_per_node,
			 const char *optimiser, double rate);
void plain_training_close(struct plain_training *of);
/* Adds the gradient of the worker's samples of the iteration, at the suite's own parameters. */
void plain_training_add_gradient(const struct plain_training *of, unsigned worker, unsigned iteration,
				 double *gradient);
/* How far psd-run's end is from the suite's own, of the way from the start. */
double plain_training_apart_ratio(const struct plain_training *of);

/* Momentum with weight decay as an optimiser and, by a gradient, as a step of the suite's own parameters. */
#define PLAIN_MOMENTUM "momentum: 0.9, weight_decay: 0.01"
void plain_training_step(struct plain_training *of, double rate, double *history, const double *gradient);

#endif
