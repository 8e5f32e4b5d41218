/* Checks that this machine's memory holds all processes of a cluster. A cluster that certainly does not fit is refused
 * before it starts; otherwise the kernel would kill some process of the machine, not necessarily one of the cluster. */
#ifndef PSD_REAL_MEMORY_LIMIT_H
#define PSD_REAL_MEMORY_LIMIT_H

#include <stdint.h>

#include "engine/base/error.h"
#include "engine/case/case.h"

/* Smallest number of bytes that the cluster needs: parameters, gradients and activations of workers that train, factors
 * of other workers, idle processes and connections. replay: its real workers train; NULL: all do. */
uint64_t psd_memory_limit_least_bytes(const struct psd_case *made, const struct psd_replay *replay);

/* Checks that available_bytes of memory are enough for the cluster. PSD_EINVAL: it needs more. */
enum psd_status psd_memory_limit_check(const struct psd_case *made, const struct psd_replay *replay,
				       uint64_t available_bytes, struct psd_error *err) PSD_MUST_CHECK;

#endif
