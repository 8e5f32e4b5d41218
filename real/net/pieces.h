/* Pieces of memory that together are one message, in order. Pure, any thread. */
#ifndef PSD_REAL_PIECES_H
#define PSD_REAL_PIECES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum { PSD_PIECES_MAX = 4 }; /* no layer has more tensors, no message more pieces */

uint64_t psd_pieces_bytes(const struct iovec pieces[], unsigned n_pieces);
/* Cuts bytes off the front: *at becomes the first piece that is left, which may have been shortened. */
void psd_pieces_advance(struct iovec pieces[], unsigned n_pieces, unsigned *at, size_t bytes);
/* What lies from first_byte on for n_bytes: returns the number of pieces, at most n_pieces, written to `cut`. */
unsigned psd_pieces_cut(const struct iovec pieces[], unsigned n_pieces, uint64_t first_byte, uint64_t n_bytes,
			struct iovec cut[]);

#endif
