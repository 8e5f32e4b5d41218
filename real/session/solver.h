/* The learning rate of an iteration as Caffe has it, and the update of a tensor that follows from it. */
#ifndef PSD_REAL_SOLVER_H
#define PSD_REAL_SOLVER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/model/graph.h"
#include "engine/scenario/train.h"
#include "real/device/update.h"

/* The learning rate of an iteration (from 0), by the policy's formula in engine/scenario/train.h, during warm-up times
 * s + (1 - s) (iteration + 1) / warmup_iterations, s being its start. Pure, any thread. Source: caffe.proto, lr_policy;
 * Goyal et al. 2017 §2.2. */
double psd_solver_rate(const struct psd_learning_rate *rate, uint64_t iteration);

/* Whether it falls by a step of its policy somewhere from iteration `first` to end - 1. Pure, any thread. */
bool psd_solver_drops(const struct psd_learning_rate *rate, uint64_t first, uint64_t end);

/* The update of an iteration over so many samples. Pure, any thread. */
struct psd_update psd_solver_update(const struct psd_train *train, uint64_t global_batch, uint64_t iteration);

/* The same of one of so many workers by its own gradient, which is divided by the global batch: as if it had been
 * divided by the worker's. Pure, any thread. */
struct psd_update psd_solver_own_update(const struct psd_train *train, unsigned workers, uint64_t global_batch,
					uint64_t iteration);

/* The same for one tensor, with its ratios. */
struct psd_update psd_solver_update_of(struct psd_update update, const struct psd_tensor *tensor);

#endif
