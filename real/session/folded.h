/* A range of addresses as long as wanted, behind which lies one small piece of memory again and again: for bytes that
 * mean nothing, so that tensors of many gigabytes can be sent where there is no room for them. Keeps nothing. */
#ifndef PSD_REAL_FOLDED_H
#define PSD_REAL_FOLDED_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"

struct psd_folded {
	void *base; /* page-aligned */
	size_t length_bytes;
};

/* At least n_bytes to be read and written. psd_folded_close() releases *folded, or zeros. PSD_ENOMEM. */
enum psd_status psd_folded_open(struct psd_folded *folded, uint64_t n_bytes, struct psd_error *err) PSD_MUST_CHECK;
void psd_folded_close(struct psd_folded *folded);

#endif
