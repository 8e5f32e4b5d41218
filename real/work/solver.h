/* Learning rate of an iteration, with Caffe's policies, and the update rule of a tensor with that rate. */
#ifndef PSD_REAL_SOLVER_H
#define PSD_REAL_SOLVER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/model/graph.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/train.h"
#include "real/device/update.h"

/* Returns the learning rate of an iteration (from 0), by the formula of its policy in engine/scenario/train.h. During
 * warm-up this rate is multiplied by s + (1 - s) * (iteration + 1) / warmup_iterations, where s = warmup_start_ratio.
 * Pure, any thread. Source: caffe.proto, lr_policy; Goyal et al. 2017, section 2.2. */
double psd_solver_rate(const struct psd_learning_rate *rate, uint64_t iteration);

/* True if the policy (step or multistep) reduces the rate at one of the iterations `first` to end - 1. Pure, any
 * thread. */
bool psd_solver_drops(const struct psd_learning_rate *rate, uint64_t first, uint64_t end);

/* Returns the update rule for an iteration in which the gradients of all workers are summed. global_batch: number of
 * samples of all workers in an iteration. Pure, any thread. */
struct psd_update psd_solver_update(const struct psd_train *train, uint64_t global_batch, uint64_t iteration);

/* Returns the update rule for a local step, in which one of `workers` workers uses only its own gradient. That gradient
 * was divided by the global batch, so the update multiplies it by the number of workers. Pure, any thread. */
struct psd_update psd_solver_own_update(const struct psd_train *train, double workers, uint64_t global_batch,
					uint64_t iteration);

/* Returns the update rule for one tensor: learning rate and weight decay are multiplied by the tensor's own factors. */
struct psd_update psd_solver_update_of(struct psd_update update, const struct psd_tensor *tensor);

/* Returns the update rule of local SGD's outer optimiser. Its gradient is the mean of all workers' drifts: the
 * parameters after the last exchange minus the present ones. outer NULL: a rate of 1, without momentum. Pure, any
 * thread. */
struct psd_update psd_solver_outer_update(const struct psd_outer *outer);

#endif
