/* Both ends of a ring in one mapping: only a sleeping end is woken, and impossible counts are errors. The transport
 * over it is in test_transport.c. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "real/net/ring_buffer.h"

enum { PAGE_BYTES = 4096, PIECE_BYTES = 9973, LONG_BYTES = 8 * (1 << 20) + 321 };

/* A tube between two pages without access. */
static struct psd_ring_buffer *make_tube(void)
{
	const size_t tube_bytes = (sizeof(struct psd_ring_buffer) + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	uint8_t *pages = mmap(NULL, tube_bytes + 2 * PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq((void *)pages, MAP_FAILED);
	cr_assert_eq(mprotect(pages + PAGE_BYTES, tube_bytes, PROT_READ | PROT_WRITE), 0);
	/* its end before the page behind it, as far as it is to be aligned */
	return (struct psd_ring_buffer *)(void *)(pages + PAGE_BYTES + (tube_bytes - sizeof(struct psd_ring_buffer)));
}

static ssize_t move(struct psd_ring_buffer_end *end, bool is_written, size_t n_bytes, bool *wakes)
{
	static uint8_t bytes[2 * PSD_RING_BUFFER_BYTES];
	const struct iovec piece = {bytes, n_bytes};

	*wakes = false;
	return is_written ? psd_ring_buffer_write(end, &piece, 1, wakes) : psd_ring_buffer_read(end, &piece, 1, wakes);
}

/* Neither end ever finds nothing to do, so neither costs the other a system call. */
Test(ring_buffer, a_thread_that_is_awake_is_not_woken)
{
	struct psd_ring_buffer *ring = make_tube();
	struct psd_ring_buffer_end writer = {.ring = ring}, reader = {.ring = ring};
	bool wakes;

	for (unsigned i = 0; i < 1000; i++) {
		cr_assert(psd_ring_buffer_may_write(&writer));
		cr_assert_eq(move(&writer, true, PIECE_BYTES, &wakes), PIECE_BYTES);
		cr_assert_not(wakes);
		cr_assert(psd_ring_buffer_may_read(&reader));
		cr_assert_eq(move(&reader, false, PIECE_BYTES, &wakes), PIECE_BYTES);
		cr_assert_not(wakes);
	}
}

Test(ring_buffer, a_reader_is_woken_once_for_a_sleep)
{
	struct psd_ring_buffer *ring = make_tube();
	struct psd_ring_buffer_end writer = {.ring = ring}, reader = {.ring = ring};
	bool wakes;

	cr_assert_eq(move(&reader, false, 1, &wakes), -1);
	cr_assert_eq(errno, EAGAIN);
	cr_assert_not(psd_ring_buffer_may_read(&reader));
	cr_assert_eq(move(&writer, true, 1, &wakes), 1);
	cr_assert(wakes);
	cr_assert_eq(move(&writer, true, 1, &wakes), 1);
	cr_assert_not(wakes);
	cr_assert_eq(move(&reader, false, 5, &wakes), 2);
}

Test(ring_buffer, a_writer_is_woken_by_half_a_tube)
{
	struct psd_ring_buffer *ring = make_tube();
	struct psd_ring_buffer_end writer = {.ring = ring}, reader = {.ring = ring};
	bool wakes;

	cr_assert_eq(move(&writer, true, 2 * PSD_RING_BUFFER_BYTES, &wakes), (ssize_t)PSD_RING_BUFFER_BYTES);
	cr_assert_eq(move(&writer, true, 1, &wakes), -1);
	cr_assert_eq(errno, EAGAIN);
	cr_assert_not(psd_ring_buffer_may_write(&writer));
	cr_assert_eq(move(&reader, false, PSD_RING_BUFFER_BYTES / 2 - 1, &wakes),
		     (ssize_t)PSD_RING_BUFFER_BYTES / 2 - 1);
	cr_assert_not(wakes, "it would sleep again at once");
	cr_assert_not(psd_ring_buffer_may_write(&writer));
	cr_assert_eq(move(&reader, false, 1, &wakes), 1);
	cr_assert(wakes);
	cr_assert(psd_ring_buffer_may_write(&writer));
}

/* Whatever the other end has written into its count: an error in both calls of an end, which is not to sleep on it. */
static void check_counts(uint64_t moved, uint64_t rubbish)
{
	struct psd_ring_buffer *ring = make_tube();
	struct psd_ring_buffer_end writer = {.ring = ring, .n_moved = moved}, reader = {.ring = ring, .n_moved = moved};
	bool wakes;

	atomic_store(&ring->n_read, rubbish);
	cr_expect(psd_ring_buffer_may_write(&writer));
	cr_expect_eq(move(&writer, true, PIECE_BYTES, &wakes), -1);
	cr_expect_eq(errno, EPROTO, "after %llu bytes, %llu are read", (unsigned long long)moved,
		     (unsigned long long)rubbish);
	atomic_store(&ring->n_written, rubbish);
	cr_expect(psd_ring_buffer_may_read(&reader));
	cr_expect_eq(move(&reader, false, PIECE_BYTES, &wakes), -1);
	cr_expect_eq(errno, EPROTO, "after %llu bytes, %llu are written", (unsigned long long)moved,
		     (unsigned long long)rubbish);
}

Test(ring_buffer, counts_that_cannot_be_are_errors)
{
	const uint64_t room = PSD_RING_BUFFER_BYTES;

	check_counts(0, UINT64_C(1) << 63);
	check_counts(7 * room, 4 * room);
	check_counts(7 * room, 9 * room);
	check_counts(7 * room + 5, room);
	check_counts(UINT64_MAX - 3, 2 * room); /* counts may have gone around */
}

/* A count that can be, though it is wrong, moves bytes of the ring and no others: the pages around it would tell. */
Test(ring_buffer, wrong_counts_stay_within_the_tube)
{
	uint32_t state = 1;

	for (unsigned i = 0; i < 1000; i++) {
		static struct psd_ring_buffer *ring;
		struct psd_ring_buffer_end writer, reader;
		bool wakes;

		ring = ring ? ring : make_tube();
		state = state * 1664525u + 1013904223u;
		writer = reader = (struct psd_ring_buffer_end){ring, state};
		atomic_store(&ring->n_read, state - (state >> 7) % (PSD_RING_BUFFER_BYTES + 2));
		atomic_store(&ring->n_written, state + (state >> 9) % (PSD_RING_BUFFER_BYTES + 2));
		cr_assert_leq(move(&writer, true, 2 * PSD_RING_BUFFER_BYTES, &wakes), (ssize_t)PSD_RING_BUFFER_BYTES);
		atomic_store(&ring->n_written, state + (state >> 9) % (PSD_RING_BUFFER_BYTES + 2));
		cr_assert_leq(move(&reader, false, 2 * PSD_RING_BUFFER_BYTES, &wakes), (ssize_t)PSD_RING_BUFFER_BYTES);
	}
}

/* ---- two threads ---- */

struct side {
	struct psd_ring_buffer_end end;
	int own_fd, other_fd; /* events that wake this side, and the other */
	unsigned n_calls;
};

static void call(struct side *side)
{
	cr_assert_eq(eventfd_write(side->other_fd, 1), 0);
	side->n_calls++;
}

static void sleep_until_called(struct side *side)
{
	struct pollfd watched = {.fd = side->own_fd, .events = POLLIN};
	eventfd_t count;

	cr_assert_eq(poll(&watched, 1, 60000), 1, "nobody wakes who waits");
	cr_assert_eq(eventfd_read(side->own_fd, &count), 0);
}

static uint8_t byte_at(uint64_t n)
{
	return (uint8_t)(n * UINT64_C(0x9e3779b97f4a7c15) >> 56);
}

static void *write_long(void *context)
{
	struct side *side = context;
	uint8_t bytes[PIECE_BYTES];
	bool wakes;

	while (side->end.n_moved < LONG_BYTES) {
		const uint64_t at = side->end.n_moved, left = LONG_BYTES - at;
		const struct iovec piece = {bytes, left < PIECE_BYTES ? left : PIECE_BYTES};

		for (size_t i = 0; i < piece.iov_len; i++)
			bytes[i] = byte_at(at + i);
		wakes = false;
		if (psd_ring_buffer_write(&side->end, &piece, 1, &wakes) < 0 && !psd_ring_buffer_may_write(&side->end))
			sleep_until_called(side);
		if (wakes)
			call(side);
	}
	return NULL;
}

/* The reader is slower and faster in turn, so that each of them sleeps now and then. */
Test(ring_buffer, bytes_pass_between_threads_in_order)
{
	struct psd_ring_buffer *ring = make_tube();
	struct side writer = {.end = {.ring = ring}, .own_fd = eventfd(0, 0), .other_fd = eventfd(0, 0)};
	struct side reader = {.end = {.ring = ring}, .own_fd = writer.other_fd, .other_fd = writer.own_fd};
	uint8_t bytes[2 * PIECE_BYTES];
	uint64_t n_wrong = 0;
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, write_long, &writer), 0);
	while (reader.end.n_moved < LONG_BYTES) {
		const uint64_t at = reader.end.n_moved;
		const struct iovec piece = {bytes, at / (1 << 20) % 2 ? sizeof(bytes) : 97};
		bool wakes = false;
		const ssize_t n_read = psd_ring_buffer_read(&reader.end, &piece, 1, &wakes);

		for (ssize_t i = 0; i < n_read; i++)
			n_wrong += bytes[i] != byte_at(at + (uint64_t)i);
		if (wakes)
			call(&reader);
		if (n_read < 0 && !psd_ring_buffer_may_read(&reader.end))
			sleep_until_called(&reader);
	}
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_assert_eq(n_wrong, 0);
	cr_log_info("the writer called %u times, the reader %u times\n", writer.n_calls, reader.n_calls);
}
