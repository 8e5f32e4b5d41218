/* Stochastic gradient descent as Caffe does it: the update of a tensor or of any part of one. */
#ifndef PSD_REAL_UPDATE_H
#define PSD_REAL_UPDATE_H

#include <stdbool.h>
#include <stdint.h>

/* Everything that an update needs, but for the tensor. */
struct psd_update {
	float rate;
	float momentum;
	float weight_decay;
	bool is_nesterov;
	double trust_ratio; /* 0: the rate is every tensor's */
};

/* The update of a whole tensor of `elements` parameters: its rate times
 * trust norm(weight) / (norm(gradient) + weight_decay norm(weight)), norms being Euclidean; as it is without a trust
 * ratio, and where a norm is 0. Equal inputs give equal bits. Pure, any thread. Source: You et al. 2017
 * (arXiv 1708.03888), algorithm 1. */
struct psd_update psd_update_by_norms(struct psd_update update, const float *weight, const float *gradient,
				      uint64_t elements);

/* One step of `elements` parameters, in place: with step = rate (gradient + weight_decay weight),
 *   history = momentum history + step
 *   weight -= history, or with Nesterov weight -= (1 + momentum) history - momentum (history before)
 * weight, history: read and written, history begins as zeros; gradient: read. The three do not overlap. Each element
 * depends on itself only, so parts of a tensor give the same bits as the whole, in any order and from any threads.
 * Never fails. Source: Caffe, sgd_solver.cpp and nesterov_solver.cpp, ComputeUpdateValue. */
void psd_update_apply(const struct psd_update *update, float *weight, const float *gradient, float *history,
		      uint64_t elements);

#endif
