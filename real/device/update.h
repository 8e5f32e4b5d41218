/* Stochastic gradient descent as Caffe does it, and AdamW: the update of a tensor or of any part of one. */
#ifndef PSD_REAL_UPDATE_H
#define PSD_REAL_UPDATE_H

#include <stdbool.h>
#include <stdint.h>

/* Of AdamW; all zero: none. */
struct psd_adaptive {
	float beta1, beta2, epsilon;
	float mean_ratio; /* 1 / (1 - beta1^t) in the t-th step, from 1 */
	float root_ratio; /* 1 / sqrt(1 - beta2^t) */
};

/* Everything that an update needs, but for the tensor. */
struct psd_update {
	float rate;
	float momentum;
	float weight_decay;
	bool is_nesterov;
	double trust_ratio;	      /* 0: the rate is every tensor's */
	struct psd_adaptive adaptive; /* if its epsilon is not 0: instead of momentum */
};

/* What is remembered of each element's earlier updates; both begin as zeros. */
struct psd_moments {
	float *history;
	float *squares; /* of an adaptive update; NULL: there are none */
};

/* Those of the elements from `first` on. Pure. */
static inline struct psd_moments psd_moments_from(struct psd_moments moments, uint64_t first)
{
	moments.history += first;
	moments.squares += moments.squares ? first : 0;
	return moments;
}

/* The update of a whole tensor of `elements` parameters: its rate times
 * trust norm(weight) / (norm(gradient) + weight_decay norm(weight)), norms being Euclidean; as it is without a trust
 * ratio, and where a norm is 0. Equal inputs give equal bits. Pure, any thread. Source: You et al. 2017
 * (arXiv 1708.03888), algorithm 1. */
struct psd_update psd_update_by_norms(struct psd_update update, const float *weight, const float *gradient,
				      uint64_t elements);

/* One step of `elements` parameters, in place: with step = rate (gradient + weight_decay weight),
 *   history = momentum history + step
 *   weight -= history, or with Nesterov weight -= (1 + momentum) history - momentum (history before)
 * An adaptive one:
 *   history = beta1 history + (1 - beta1) gradient
 *   squares = beta2 squares + (1 - beta2) gradient gradient
 *   weight -= rate (mean_ratio history / (root_ratio sqrt(squares) + epsilon) + weight_decay weight)
 * weight, moments: read and written; gradient: read. They do not overlap. Each element depends on itself only, so parts
 * of a tensor give the same bits as the whole, in any order and from any threads. Never fails. Source: Caffe,
 * sgd_solver.cpp and nesterov_solver.cpp, ComputeUpdateValue; Loshchilov and Hutter 2019 (arXiv 1711.05101),
 * algorithm 2. */
void psd_update_apply(const struct psd_update *update, float *weight, const float *gradient, struct psd_moments moments,
		      uint64_t elements);

#endif
