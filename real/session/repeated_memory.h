/* Large range of addresses that repeats one small piece of memory, for messages without content that are larger than
 * the machine's memory. Stores nothing. */
#ifndef PSD_REAL_REPEATED_MEMORY_H
#define PSD_REAL_REPEATED_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"

struct psd_repeated_memory {
	void *base; /* start of the range, page-aligned */
	size_t length_bytes;
};

/* Maps at least n_bytes for reading and writing; psd_repeated_memory_close() releases them. PSD_ENOMEM. */
enum psd_status psd_repeated_memory_open(struct psd_repeated_memory *repeated, uint64_t n_bytes,
					 struct psd_error *err) PSD_MUST_CHECK;
void psd_repeated_memory_close(struct psd_repeated_memory *repeated);

#endif
