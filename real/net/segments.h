/* Pieces of memory that together are one message, in order. Pure, any thread. */
#ifndef PSD_REAL_SEGMENTS_H
#define PSD_REAL_SEGMENTS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum { PSD_SEGMENTS_MAX = 4 }; /* no layer has more tensors, no message more pieces */

uint64_t psd_segments_bytes(const struct iovec segments[], unsigned n_segments);
/* Cuts bytes off the front: *at becomes the first piece that is left, which may have been shortened. */
void psd_segments_advance(struct iovec segments[], unsigned n_segments, unsigned *at, size_t bytes);
/* What lies from first_byte on for n_bytes: returns the number of pieces, at most n_pieces, written to `cut`. */
unsigned psd_segments_cut(const struct iovec segments[], unsigned n_segments, uint64_t first_byte, uint64_t n_bytes,
			  struct iovec cut[]);

#endif
