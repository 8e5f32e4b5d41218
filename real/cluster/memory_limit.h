/* Checks that this machine's memory holds all processes of a cluster. A cluster that certainly does not fit is refused
 * before it starts; otherwise the kernel would kill some process of the machine, not necessarily one of the cluster. */
#ifndef PSD_REAL_MEMORY_LIMIT_H
#define PSD_REAL_MEMORY_LIMIT_H

#include <stdint.h>

#include "engine/base/error.h"
#include "engine/case/case.h"

/* Memory that the cluster takes at least: parameters, gradients and activations of every worker that trains, factors of
 * other workers, and the memory of idle processes and connections. replay: its real workers train; NULL: all do. */
uint64_t psd_memory_limit_least_bytes(const struct psd_case *made, const struct psd_replay *replay);

/* PSD_EINVAL: the cluster takes more than available_bytes. */
enum psd_status psd_memory_limit_check(const struct psd_case *made, const struct psd_replay *replay,
				       uint64_t available_bytes, struct psd_error *err) PSD_MUST_CHECK;

#endif
