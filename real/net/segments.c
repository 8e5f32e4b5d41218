#include "real/net/segments.h"

uint64_t psd_segments_bytes(const struct iovec segments[], unsigned n_segments)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < n_segments; i++)
		bytes += segments[i].iov_len;
	return bytes;
}

void psd_segments_advance(struct iovec segments[], unsigned n_segments, unsigned *at, size_t bytes)
{
	while (*at < n_segments && bytes >= segments[*at].iov_len) {
		bytes -= segments[*at].iov_len;
		++*at;
	}
	if (*at < n_segments) {
		segments[*at].iov_base = (char *)segments[*at].iov_base + bytes;
		segments[*at].iov_len -= bytes;
	}
}

unsigned psd_segments_cut(const struct iovec segments[], unsigned n_segments, uint64_t first_byte, uint64_t n_bytes,
			  struct iovec cut[])
{
	unsigned n_cut = 0;

	for (unsigned i = 0; i < n_segments && n_bytes > 0; i++) {
		const uint64_t length = segments[i].iov_len;
		uint64_t taken;

		if (first_byte >= length) {
			first_byte -= length;
			continue;
		}
		taken = length - first_byte < n_bytes ? length - first_byte : n_bytes;
		cut[n_cut++] = (struct iovec){(char *)segments[i].iov_base + first_byte, taken};
		n_bytes -= taken;
		first_byte = 0;
	}
	return n_cut;
}
