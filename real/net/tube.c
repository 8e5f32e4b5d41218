/* Who sleeps says so before it looks a last time; who moves bytes counts them before it looks whether somebody sleeps.
 * These four are sequentially consistent, so that one of the two sees what the other did. */
#include "real/net/tube.h"

#include <errno.h>
#include <string.h>

enum { WAKE_WRITER_BYTES = PSD_TUBE_ROOM_BYTES / 2 }; /* of room: less would be filled at once, and it slept again */

_Static_assert((PSD_TUBE_ROOM_BYTES & (PSD_TUBE_ROOM_BYTES - 1)) == 0, "a place in the tube is a count's low bits");
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

/* Between the tube from byte number `at` on and the end's own memory. */
static void copy(struct psd_tube *tube, uint64_t at, uint8_t *own, size_t n_bytes, bool is_written)
{
	while (n_bytes > 0) {
		const uint64_t place = at & (PSD_TUBE_ROOM_BYTES - 1);
		const size_t n_here = smaller(n_bytes, PSD_TUBE_ROOM_BYTES - place);

		if (is_written)
			memcpy(tube->bytes + place, own, n_here);
		else
			memcpy(own, tube->bytes + place, n_here);
		at += n_here, own += n_here, n_bytes -= n_here;
	}
}

/* Returns how many bytes of the pieces, n_most at most. */
static size_t copy_pieces(const struct psd_tube_end *end, const struct iovec pieces[], unsigned n_pieces,
			  uint64_t n_most, bool is_written)
{
	uint64_t n_copied = 0;

	for (unsigned i = 0; i < n_pieces && n_copied < n_most; i++) {
		const size_t n_bytes = smaller(pieces[i].iov_len, n_most - n_copied);

		copy(end->tube, end->n_moved + n_copied, pieces[i].iov_base, n_bytes, is_written);
		n_copied += n_bytes;
	}
	return (size_t)n_copied;
}

ssize_t psd_tube_write(struct psd_tube_end *writer, const struct iovec pieces[], unsigned n_pieces, bool *wakes)
{
	struct psd_tube *tube = writer->tube;
	const uint64_t n_inside = writer->n_moved - atomic_load_explicit(&tube->n_read, memory_order_acquire);
	size_t n_bytes;

	if (n_inside > PSD_TUBE_ROOM_BYTES)
		return fail(EPROTO);
	if (n_inside == PSD_TUBE_ROOM_BYTES)
		return fail(EAGAIN);
	n_bytes = copy_pieces(writer, pieces, n_pieces, PSD_TUBE_ROOM_BYTES - n_inside, true);
	writer->n_moved += n_bytes;
	atomic_store(&tube->n_written, writer->n_moved);
	if (atomic_load(&tube->does_reader_sleep) && atomic_exchange(&tube->does_reader_sleep, 0))
		*wakes = true;
	return (ssize_t)n_bytes;
}

ssize_t psd_tube_read(struct psd_tube_end *reader, const struct iovec pieces[], unsigned n_pieces, bool *wakes)
{
	struct psd_tube *tube = reader->tube;
	const uint64_t n_inside = atomic_load_explicit(&tube->n_written, memory_order_acquire) - reader->n_moved;
	size_t n_bytes;

	if (n_inside > PSD_TUBE_ROOM_BYTES)
		return fail(EPROTO);
	if (n_inside == 0)
		return fail(EAGAIN);
	n_bytes = copy_pieces(reader, pieces, n_pieces, n_inside, false);
	reader->n_moved += n_bytes;
	atomic_store(&tube->n_read, reader->n_moved);
	/* What has been written since leaves less room than this: a writer may be woken too early, never too late. */
	if (PSD_TUBE_ROOM_BYTES - (n_inside - n_bytes) >= WAKE_WRITER_BYTES && atomic_load(&tube->does_writer_sleep) &&
	    atomic_exchange(&tube->does_writer_sleep, 0))
		*wakes = true;
	return (ssize_t)n_bytes;
}

bool psd_tube_may_write(struct psd_tube_end *writer)
{
	struct psd_tube *tube = writer->tube;
	uint64_t n_inside;

	atomic_store(&tube->does_writer_sleep, 1);
	n_inside = writer->n_moved - atomic_load(&tube->n_read);
	if (n_inside <= PSD_TUBE_ROOM_BYTES && n_inside > PSD_TUBE_ROOM_BYTES - WAKE_WRITER_BYTES)
		return false;
	atomic_store(&tube->does_writer_sleep, 0);
	return true;
}

bool psd_tube_may_read(struct psd_tube_end *reader)
{
	struct psd_tube *tube = reader->tube;

	atomic_store(&tube->does_reader_sleep, 1);
	if (atomic_load(&tube->n_written) == reader->n_moved)
		return false;
	atomic_store(&tube->does_reader_sleep, 0);
	return true;
}
