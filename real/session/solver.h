/* Learning rate of an iteration, as in Caffe, and the update of a tensor with it. */
#ifndef PSD_REAL_SOLVER_H
#define PSD_REAL_SOLVER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/model/graph.h"
#include "engine/scenario/train.h"
#include "real/device/update.h"

/* Learning rate of an iteration (from 0) by the policy's formula in engine/scenario/train.h. During warm-up with start
 * s it is multiplied by s + (1 - s) (iteration + 1) / warmup_iterations. Pure, any thread. Source: caffe.proto,
 * lr_policy; Goyal et al. 2017 §2.2. */
double psd_solver_rate(const struct psd_learning_rate *rate, uint64_t iteration);

/* True if the policy lowers the rate by a step in iterations first to end - 1. Pure, any thread. */
bool psd_solver_drops(const struct psd_learning_rate *rate, uint64_t first, uint64_t end);

/* Update of an iteration whose gradients are sums over global_batch samples. Pure, any thread. */
struct psd_update psd_solver_update(const struct psd_train *train, uint64_t global_batch, uint64_t iteration);

/* Update of one of `workers` workers by its own gradient. That gradient was divided by the global batch; the update
 * makes up for it. Pure, any thread. */
struct psd_update psd_solver_own_update(const struct psd_train *train, unsigned workers, uint64_t global_batch,
					uint64_t iteration);

/* The update with the tensor's own ratios of learning rate and decay. */
struct psd_update psd_solver_update_of(struct psd_update update, const struct psd_tensor *tensor);

#endif
