/* A run that ends, and one that goes on from its checkpoint, against one that was never cut. And runs that start from
 * another one's parameters. */
#ifndef PSD_TESTS_REAL_GOING_ON_H
#define PSD_TESTS_REAL_GOING_ON_H

#include "real/device/device.h"

#define GOING_ON_SGD "data: {training_samples: 40, test_samples: 32}, optimiser: {momentum: 0.9}"
#define GOING_ON_ADAMW                                                                                                 \
	"data: {training_samples: 40, test_samples: 32}, optimiser: {kind: adamw, beta2: 0.95, weight_decay: 0.1}"
/* With gradients that leave the range of fp16 at first. */
#define GOING_ON_LOUD "data: {training_samples: 40, test_samples: 32, noise: 90}, optimiser: {momentum: 0.9}"

/* All hosts' checkpoints of the end have the same bytes, and all workers the same parameters. system: the keys of one
 * system but its name; train: data and optimiser. kind: NULL: the processor. */
void going_on_check(const char *system, const char *train, unsigned workers, unsigned workers_per_node,
		    const struct psd_device_kind *kind);
/* Three workers and a server, asynchronous, with momentum and without rate behind the cut. The gradients have no effect
 * there, so that the server's parameters follow from the checkpoint's in any order of updates. rate: key of the
 * system; kind: as above. */
void going_on_check_asynchronous(const char *rate, const struct psd_device_kind *kind);
/* Managed communication with stale reads, by turns, and without rate behind the cut: its changes follow from the
 * checkpoint's momentum in any order of sums. A run that resumes from a checkpoint of the middle ends with the bits of
 * the one that went on. keys, kind: as above. */
void going_on_check_own_updates(const char *system, unsigned workers, const struct psd_device_kind *kind);
/* Two workers on the processor learn; three of the system, on that kind of device, start from their parameters and
 * statistics and have about these after an iteration at next to no rate. */
void going_on_check_start(const char *system, const struct psd_device_kind *kind);

#endif
