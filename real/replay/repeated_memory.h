/* Large range of addresses which maps one small piece of memory again and again. A replay uses it for messages without
 * content, which may be larger than the machine's memory. A value that is written there may be overwritten through
 * another address. */
#ifndef PSD_REAL_REPEATED_MEMORY_H
#define PSD_REAL_REPEATED_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"

struct psd_repeated_memory {
	void *base; /* first address of the range, aligned to a page */
	size_t length_bytes;
};

/* Maps a range of at least n_bytes for reading and writing. psd_repeated_memory_close() releases it. PSD_ENOMEM. */
enum psd_status psd_repeated_memory_open(struct psd_repeated_memory *repeated, uint64_t n_bytes,
					 struct psd_error *err) PSD_MUST_CHECK;
void psd_repeated_memory_close(struct psd_repeated_memory *repeated);

#endif
