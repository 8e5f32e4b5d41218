/* Keys and tolerances that rows of matrix.h share. */
#ifndef PSD_TESTS_REAL_MATRIX_KEYS_H
#define PSD_TESTS_REAL_MATRIX_KEYS_H

#include "tests/real/going_on.h"
#include "tests/real/matrix.h"

/* Bound of the distance from the start, for sums over samples that are rounded elsewhere. */
#define SAME_WAY_RATIO 1e-5
/* The same of gradients with 8 bits, and with 11. */
#define BF16_WAY_RATIO 0.03
#define FP16_WAY_RATIO 0.004
/* The same where rounding may turn around the sign of a value that is nearly nothing: it travels as a mean of the
 * others, and the error a little later. */
#define TURNED_RATIO 0.02

#define SGD		       "momentum: 0.9, weight_decay: 0.01"
#define NESTEROV	       "nesterov: true, momentum: 0.9"
#define LARS		       "kind: lars, trust: 0.02, momentum: 0.9"
#define DECAYING_LARS	       LARS ", weight_decay: 0.01"
#define ADAMW		       "kind: adamw, beta1: 0.8, beta2: 0.95, epsilon: 0.0001"
#define FIXED(optimiser, base) ", optimiser: {" optimiser "}, learning_rate: {policy: fixed, base: " #base "}"
#define FALLING(optimiser, base)                                                                                       \
	", optimiser: {" optimiser "}, learning_rate: {policy: exp, gamma: 0.9, base: " #base "}"
/* A period of four local steps. */
#define STEPS	  ", local_sgd: {steps: 4}"
#define ANY_ORDER ", deterministic: false"

#endif
