/* Updates of parameters, for a tensor or a part of one: stochastic gradient descent (SGD) with Caffe's formulas, and
 * AdamW. Also gradient clipping by the norm of all gradients, and the steps of local SGD. */
#ifndef PSD_REAL_UPDATE_H
#define PSD_REAL_UPDATE_H

#include <stdbool.h>
#include <stdint.h>

/* Constants of AdamW for update number t, from 1; all zeros if AdamW is not used. */
struct psd_adaptive {
	float beta1, beta2, epsilon;
	float mean_ratio; /* 1 / (1 - beta1^t), the factor that corrects the mean of gradients */
	float root_ratio; /* 1 / sqrt(1 - beta2^t), the factor that corrects the root of the mean of squares */
};

/* Update rule of a tensor in one iteration. */
struct psd_update {
	float rate; /* learning rate */
	float momentum;
	float weight_decay;
	bool is_nesterov; /* Nesterov's momentum; false: the usual momentum */
	/* Trust coefficient of LARS; 0: LARS is not used, and all tensors have the same rate. */
	double trust_ratio;
	/* Constants of AdamW, which is used in place of momentum if epsilon is not 0. */
	struct psd_adaptive adaptive;
};

/* State of the optimiser: arrays with one value per element of a tensor; zeros at first. */
struct psd_moments {
	float *history; /* momentum; AdamW: mean of gradients */
	float *squares; /* AdamW: mean of squared gradients; otherwise NULL */
};

/* Returns the state of the optimiser for the elements from index `first` on. Pure. */
static inline struct psd_moments psd_moments_from(struct psd_moments moments, uint64_t first)
{
	moments.history += first;
	moments.squares += moments.squares ? first : 0;
	return moments;
}

/* Returns the update rule by LARS for a whole tensor of `elements` parameters. It is `update` with its rate multiplied
 * by trust_ratio * norm(weight) / (norm(gradient) + weight_decay * norm(weight)), with Euclidean norms. If trust_ratio
 * or a norm is 0, it is `update` unchanged. Equal inputs give equal bits. Pure, any thread. Source: You et al. 2017
 * (arXiv 1708.03888), algorithm 1. */
struct psd_update psd_update_by_norms(struct psd_update update, const float *weight, const float *gradient,
				      uint64_t elements);

/* Returns the update rule of psd_update_by_norms() from the sums of the squares of a whole tensor's parameters and of
 * its gradient, for an update of a part of the tensor. */
struct psd_update psd_update_by_squares(struct psd_update update, double weight_square, double gradient_square);

/* Executes one step of the optimiser for `elements` parameters, in place. SGD, with step = rate * (gradient +
 * weight_decay * weight):
 *   history = momentum * history + step
 *   weight -= history, or with Nesterov weight -= (1 + momentum) * history - momentum * (history before)
 * AdamW:
 *   history = beta1 * history + (1 - beta1) * gradient
 *   squares = beta2 * squares + (1 - beta2) * gradient^2
 *   weight -= rate * (mean_ratio * history / (root_ratio * sqrt(squares) + epsilon) + weight_decay * weight)
 * weight and moments are read and written, gradient is read. They must not overlap. The result for an element depends
 * only on this element, so parts of a tensor give the same bits as the whole, in any order and from any threads. Never
 * fails. Source: Caffe, sgd_solver.cpp and nesterov_solver.cpp, ComputeUpdateValue; Loshchilov and Hutter 2019 (arXiv
 * 1711.05101), algorithm 2. */
void psd_update_apply(const struct psd_update *update, float *weight, const float *gradient, struct psd_moments moments,
		      uint64_t elements);

/* ---- gradient clipping ---- */

/* Arguments of gradient clipping of n tensors: the sum of squares of each gradient, and the factor by which all
 * gradients are then multiplied. */
struct psd_clip {
	const double *squares; /* sum of squares of each gradient tensor; shape (n) */
	uint32_t n;
	double most_norm; /* largest allowed norm of all gradients together, > 0 */
	float *ratio;	  /* result: factor by which all gradients are to be multiplied */
};

/* Returns the sum of the squares of `elements` values. Equal input gives equal bits. Pure, any thread. */
double psd_clip_measure(const float *values, uint64_t elements);
/* Sets *clip->ratio to 1 or to most_norm / norm, whichever is smaller. norm is the square root of the sum of all
 * `squares`. Any thread. Source: Pascanu et al. 2013 (arXiv 1211.5063), algorithm 1; Caffe,
 * SGDSolver::ClipGradients. */
void psd_clip_find(const struct psd_clip *clip);
/* Multiplies gradients by the clipping ratio of psd_clip_find(), in place. Any thread. */
void psd_clip_shrink(float *values, uint64_t elements, float ratio);

/* ---- local SGD: change of parameters since the last exchange ---- */

enum psd_drift_step {
	PSD_DRIFT_BEGINS, /* before the first local step: start = weight */
	PSD_DRIFT_ENDS,	  /* after the local steps: gradient = start - weight, which is then summed over workers */
	PSD_DRIFT_JOINS,  /* after that sum: weight = start - ratio * gradient */
	/* with a delay, before the sum is joined: start = weight - start, the steps since the exchange began */
	PSD_DRIFT_PARTS,
	/* after that sum, with an outer optimiser: weight = start, which an update then changes */
	PSD_DRIFT_RETURNS,
};

/* Arguments of a step of local SGD, for a tensor or a part of one. The three arrays have `elements` values each and do
 * not overlap. */
struct psd_drift {
	enum psd_drift_step step;
	float *weight, *start, *gradient;
	uint64_t elements;
	float ratio; /* for PSD_DRIFT_JOINS: factor of the sum; 1 / (number of workers) gives the mean */
};

/* Executes the formula of drift->step for each element. The result for an element depends only on this element, so
 * parts of a tensor give the same bits as the whole. Never fails; any thread. */
void psd_drift_take_step(const struct psd_drift *drift);

#endif
