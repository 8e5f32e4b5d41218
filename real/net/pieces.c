#include "real/net/pieces.h"

uint64_t psd_pieces_bytes(const struct iovec pieces[], unsigned n_pieces)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < n_pieces; i++)
		bytes += pieces[i].iov_len;
	return bytes;
}

void psd_pieces_advance(struct iovec pieces[], unsigned n_pieces, unsigned *at, size_t bytes)
{
	while (*at < n_pieces && bytes >= pieces[*at].iov_len) {
		bytes -= pieces[*at].iov_len;
		++*at;
	}
	if (*at < n_pieces) {
		pieces[*at].iov_base = (char *)pieces[*at].iov_base + bytes;
		pieces[*at].iov_len -= bytes;
	}
}

unsigned psd_pieces_cut(const struct iovec pieces[], unsigned n_pieces, uint64_t first_byte, uint64_t n_bytes,
			struct iovec cut[])
{
	unsigned n_cut = 0;

	for (unsigned i = 0; i < n_pieces && n_bytes > 0; i++) {
		const uint64_t length = pieces[i].iov_len;
		uint64_t taken;

		if (first_byte >= length) {
			first_byte -= length;
			continue;
		}
		taken = length - first_byte < n_bytes ? length - first_byte : n_bytes;
		cut[n_cut++] = (struct iovec){(char *)pieces[i].iov_base + first_byte, taken};
		n_bytes -= taken;
		first_byte = 0;
	}
	return n_cut;
}
