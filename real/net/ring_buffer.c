/* A side announces its sleep before it looks a last time; the other counts its bytes before it looks for a sleeper.
 * These four accesses are sequentially consistent, so one of the two sees the other. */
#include "real/net/ring_buffer.h"

#include <errno.h>
#include <string.h>

enum {
	WAKE_WRITER_BYTES = PSD_RING_BUFFER_BYTES / 2
}; /* less free space would be filled at once, and the writer slept again */

_Static_assert((PSD_RING_BUFFER_BYTES & (PSD_RING_BUFFER_BYTES - 1)) == 0,
	       "a position in the ring is a count's low bits");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "processes share no lock");

static ssize_t fail(int error)
{
	errno = error;
	return -1;
}

static size_t smaller(uint64_t left, uint64_t right)
{
	return (size_t)(left < right ? left : right);
}

/* Copies between the ring from byte `at` on and the caller's memory. */
static void copy(struct psd_ring_buffer *ring, uint64_t at, uint8_t *own, size_t n_bytes, bool is_written)
{
	while (n_bytes > 0) {
		const uint64_t place = at & (PSD_RING_BUFFER_BYTES - 1);
		const size_t n_here = smaller(n_bytes, PSD_RING_BUFFER_BYTES - place);

		if (is_written)
			memcpy(ring->bytes + place, own, n_here);
		else
			memcpy(own, ring->bytes + place, n_here);
		at += n_here, own += n_here, n_bytes -= n_here;
	}
}

/* Returns the number of bytes copied, n_most at most. */
static size_t copy_pieces(const struct psd_ring_buffer_end *end, const struct iovec segments[], unsigned n_segments,
			  uint64_t n_most, bool is_written)
{
	uint64_t n_copied = 0;

	for (unsigned i = 0; i < n_segments && n_copied < n_most; i++) {
		const size_t n_bytes = smaller(segments[i].iov_len, n_most - n_copied);

		copy(end->ring, end->n_moved + n_copied, segments[i].iov_base, n_bytes, is_written);
		n_copied += n_bytes;
	}
	return (size_t)n_copied;
}

ssize_t psd_ring_buffer_write(struct psd_ring_buffer_end *writer, const struct iovec segments[], unsigned n_segments,
			      bool *wakes)
{
	struct psd_ring_buffer *ring = writer->ring;
	const uint64_t n_inside = writer->n_moved - atomic_load_explicit(&ring->n_read, memory_order_acquire);

	if (n_inside > PSD_RING_BUFFER_BYTES)
		return fail(EPROTO);
	if (n_inside == PSD_RING_BUFFER_BYTES)
		return fail(EAGAIN);
	const size_t n_bytes = copy_pieces(writer, segments, n_segments, PSD_RING_BUFFER_BYTES - n_inside, true);
	writer->n_moved += n_bytes;
	atomic_store(&ring->n_written, writer->n_moved);
	if (atomic_load(&ring->does_reader_sleep) && atomic_exchange(&ring->does_reader_sleep, 0))
		*wakes = true;
	return (ssize_t)n_bytes;
}

ssize_t psd_ring_buffer_read(struct psd_ring_buffer_end *reader, const struct iovec segments[], unsigned n_segments,
			     bool *wakes)
{
	struct psd_ring_buffer *ring = reader->ring;
	const uint64_t n_inside = atomic_load_explicit(&ring->n_written, memory_order_acquire) - reader->n_moved;

	if (n_inside > PSD_RING_BUFFER_BYTES)
		return fail(EPROTO);
	if (n_inside == 0)
		return fail(EAGAIN);
	const size_t n_bytes = copy_pieces(reader, segments, n_segments, n_inside, false);
	reader->n_moved += n_bytes;
	atomic_store(&ring->n_read, reader->n_moved);
	/* Bytes written meanwhile leave less space: a writer may wake too early, never too late. */
	if (PSD_RING_BUFFER_BYTES - (n_inside - n_bytes) >= WAKE_WRITER_BYTES &&
	    atomic_load(&ring->does_writer_sleep) && atomic_exchange(&ring->does_writer_sleep, 0))
		*wakes = true;
	return (ssize_t)n_bytes;
}

bool psd_ring_buffer_may_write(struct psd_ring_buffer_end *writer)
{
	struct psd_ring_buffer *ring = writer->ring;

	atomic_store(&ring->does_writer_sleep, 1);
	const uint64_t n_inside = writer->n_moved - atomic_load(&ring->n_read);
	if (n_inside <= PSD_RING_BUFFER_BYTES && n_inside > PSD_RING_BUFFER_BYTES - WAKE_WRITER_BYTES)
		return false;
	atomic_store(&ring->does_writer_sleep, 0);
	return true;
}

bool psd_ring_buffer_may_read(struct psd_ring_buffer_end *reader)
{
	struct psd_ring_buffer *ring = reader->ring;

	atomic_store(&ring->does_reader_sleep, 1);
	if (atomic_load(&ring->n_written) == reader->n_moved)
		return false;
	atomic_store(&ring->does_reader_sleep, 0);
	return true;
}
