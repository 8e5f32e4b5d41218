/* Whether this machine's memory holds all processes of a cluster. What certainly does not fit is refused before it
 * starts: the kernel would end some process of the machine for it, not necessarily one of them. */
#ifndef PSD_REAL_MEMORY_LIMIT_H
#define PSD_REAL_MEMORY_LIMIT_H

#include <stdint.h>

#include "engine/base/error.h"
#include "engine/case/case.h"

/* What the cluster takes at the least: of every worker that trains, parameters, gradients and what it keeps of a batch,
 * factors of others included; of every process and every connection, what they take when nothing is sent. replay: NULL:
 * all train; else its real workers alone. */
uint64_t psd_memory_limit_least_bytes(const struct psd_case *made, const struct psd_replay *replay);

/* PSD_EINVAL: `available_bytes` are less. */
enum psd_status psd_memory_limit_check(const struct psd_case *made, const struct psd_replay *replay,
				       uint64_t available_bytes, struct psd_error *err) PSD_MUST_CHECK;

#endif
