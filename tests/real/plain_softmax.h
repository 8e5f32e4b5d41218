/* Softmax of one inner product written plainly in double precision, for the suites that follow a whole algorithm. Its
 * parameters are a weight (PLAIN_CLASSES, PLAIN_INPUTS) and a bias. */
#ifndef PSD_TESTS_REAL_PLAIN_SOFTMAX_H
#define PSD_TESTS_REAL_PLAIN_SOFTMAX_H

#include <math.h>
#include <stdint.h>

enum { PLAIN_INPUTS = 150, PLAIN_CLASSES = 10, PLAIN_PARAMETERS = (PLAIN_INPUTS + 1) * PLAIN_CLASSES };

/* The same as a model file. */
#define PLAIN_SOFTMAX                                                                                                  \
	"name: softmax\ninput: {channels: 150}\nlayers:\n"                                                             \
	"  - {name: fc, kind: inner-product, outputs: 10}\n"                                                           \
	"  - {name: loss, kind: softmax-loss}\n"

/* Adds that of one of so many samples, whose loss is the mean of theirs. */
static inline void plain_softmax_add(const double *parameters, const float *image, int32_t label, unsigned n_samples,
				     double *gradient)
{
	double scores[PLAIN_CLASSES], sum = 0.0;

	for (unsigned c = 0; c < PLAIN_CLASSES; c++) {
		scores[c] = parameters[PLAIN_INPUTS * PLAIN_CLASSES + c];
		for (unsigned i = 0; i < PLAIN_INPUTS; i++)
			scores[c] += parameters[c * PLAIN_INPUTS + i] * (double)image[i];
		sum += exp(scores[c]);
	}
	for (unsigned c = 0; c < PLAIN_CLASSES; c++) {
		const double dscore = (exp(scores[c]) / sum - (c == (unsigned)label)) / n_samples;

		for (unsigned i = 0; i < PLAIN_INPUTS; i++)
			gradient[c * PLAIN_INPUTS + i] += dscore * (double)image[i];
		gradient[PLAIN_INPUTS * PLAIN_CLASSES + c] += dscore;
	}
}

#endif
