/* A range of addresses as long as wanted, behind which lies one small piece of memory again and again: for bytes that
 * mean nothing, so that tensors of many gigabytes can be sent where there is no room for them. Keeps nothing. */
#ifndef PSD_REAL_REPEATED_MEMORY_H
#define PSD_REAL_REPEATED_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"

struct psd_repeated_memory {
	void *base; /* page-aligned */
	size_t length_bytes;
};

/* At least n_bytes to be read and written. psd_repeated_memory_close() releases *folded, or zeros. PSD_ENOMEM. */
enum psd_status psd_repeated_memory_open(struct psd_repeated_memory *folded, uint64_t n_bytes,
					 struct psd_error *err) PSD_MUST_CHECK;
void psd_repeated_memory_close(struct psd_repeated_memory *folded);

#endif
