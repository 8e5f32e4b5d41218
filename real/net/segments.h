/* Lists of memory segments. The segments of a list hold one message, in order. Pure, any thread. */
#ifndef PSD_REAL_SEGMENTS_H
#define PSD_REAL_SEGMENTS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum { PSD_SEGMENTS_MAX = 4 }; /* largest number of segments of a message, because no layer has more tensors */

uint64_t psd_segments_bytes(const struct iovec segments[], unsigned n_segments);
/* Skips `bytes` bytes, beginning at segment *at. Then *at is the index of the first segment that still has bytes, and
 * that segment is shortened to these bytes. */
void psd_segments_advance(struct iovec segments[], unsigned n_segments, unsigned *at, size_t bytes);
/* Selects n_bytes bytes of the message, beginning at byte first_byte. Writes the segments that hold them to `cut`, and
 * returns the number of these segments. */
unsigned psd_segments_cut(const struct iovec segments[], unsigned n_segments, uint64_t first_byte, uint64_t n_bytes,
			  struct iovec cut[]);

#endif
