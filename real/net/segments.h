/* Segments of memory that form one message, in order. Pure, any thread. */
#ifndef PSD_REAL_SEGMENTS_H
#define PSD_REAL_SEGMENTS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum { PSD_SEGMENTS_MAX = 4 }; /* segments of a message: no layer has more tensors */

uint64_t psd_segments_bytes(const struct iovec segments[], unsigned n_segments);
/* Skips `bytes` bytes: *at becomes the first segment that has bytes left, shortened if needed. */
void psd_segments_advance(struct iovec segments[], unsigned n_segments, unsigned *at, size_t bytes);
/* Selects n_bytes from first_byte on; writes their segments to `cut` and returns how many there are. */
unsigned psd_segments_cut(const struct iovec segments[], unsigned n_segments, uint64_t first_byte, uint64_t n_bytes,
			  struct iovec cut[]);

#endif
