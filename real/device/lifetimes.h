/* Who may share memory: each life is placed where nothing lies that is alive at the same time. */
#ifndef PSD_REAL_LIFETIMES_H
#define PSD_REAL_LIFETIMES_H

#include <stdint.h>

struct psd_lifetime {
	unsigned owner; /* whose: ties between equal births */
	unsigned birth_step, death_step;
	uint64_t bytes;
	uint64_t offset_bytes; /* the result */
};

/* Fills in offsets, multiples of alignment_bytes (a power of two), each the lowest that is free, in order of birth, in
 * which the lives are left. Returns the bytes of the whole. Pure, any thread. */
uint64_t psd_lifetimes_place(struct psd_lifetime lives[], unsigned n_lives, uint64_t alignment_bytes);

#endif
