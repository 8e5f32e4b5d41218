/* Checks that this machine has enough memory for all processes of a run. A run that certainly needs more ends with an
 * error before it starts. Otherwise the kernel would kill some process of the machine, not necessarily one of the
 * run. */
#ifndef PSD_REAL_MEMORY_LIMIT_H
#define PSD_REAL_MEMORY_LIMIT_H

#include <stdint.h>

#include "engine/base/error.h"
#include "engine/case/case.h"

/* Returns the smallest number of bytes that the run of a case can need. This includes parameters, gradients and
 * activations of workers that train, factors of workers that replay, and the processes and connections themselves.
 * replay: settings of the replay, in which only some workers train; NULL: all workers train. */
uint64_t psd_memory_limit_least_bytes(const struct psd_case *made, const struct psd_replay *replay);

/* Checks that available_bytes of memory are enough for the run, by psd_memory_limit_least_bytes(). PSD_EINVAL: the
 * memory is not enough. */
enum psd_status psd_memory_limit_check(const struct psd_case *made, const struct psd_replay *replay,
				       uint64_t available_bytes, struct psd_error *err) PSD_MUST_CHECK;

#endif
