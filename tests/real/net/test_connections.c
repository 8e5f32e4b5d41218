/* Two ends of a few socket pairs in one thread: messages of tensors in chunks on all connections, held, added, delayed
 * and shaped. Times are only ever checked from below, which no load of the machine can break. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/sockios.h>
#include <math.h>
#include <netdb.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "real/net/connections.h"
#include "real/net/emulated.h"
#include "real/net/link_model.h"
#include "real/net/socket.h"
#include "tests/test_with.h"

enum { LINES = 4, LARGE_FLOATS = 300001, SMALL_FLOATS = 5 }; /* large: several chunks, the last one shorter */

/* One side, with the other as its only peer. */
struct side {
	struct psd_connections *connections;
	struct psd_emulated *emulated;
	int wake_fd;
	float *memory;	/* where messages go */
	float *message; /* the one it sends; NULL: none yet */
	const struct psd_encoding *added;
	bool is_of_floats;
	bool is_later;
	unsigned n_asked, n_arrived, n_left, n_lost;
	double arrived_sec; /* the last */
	struct psd_wire_head head;
};

static enum psd_acceptance expect(void *context, unsigned peer, const struct psd_wire_head *head,
				  struct psd_destination *destination, struct psd_error *err)
{
	struct side *side = context;

	(void)peer, (void)err;
	side->n_asked++;
	if (side->is_later)
		return PSD_ACCEPT_LATER;
	destination->added = side->added;
	destination->is_of_floats = side->is_of_floats;
	destination->segments[0] =
		(struct iovec){side->memory, psd_destination_widening(destination) * head->length_bytes};
	destination->n_segments = 1;
	return PSD_ACCEPT_NOW;
}

static void arrived(void *context, unsigned peer, const struct psd_wire_head *head, const uint8_t *tag)
{
	struct side *side = context;

	(void)peer, (void)tag;
	side->n_arrived++;
	side->arrived_sec = psd_socket_now_sec();
	side->head = *head;
}

static void left(void *context, unsigned peer)
{
	(void)peer;
	((struct side *)context)->n_left++;
}

static enum psd_status lost(void *context, unsigned peer, int error_number, struct psd_error *err)
{
	(void)peer, (void)error_number, (void)err;
	((struct side *)context)->n_lost++;
	return PSD_OK;
}

/* ---- TCP, or any stream, with what passes counted, and a connection that its reader does not read ---- */

static _Atomic uint64_t sent_bytes, received_bytes;
static _Atomic int paused_fd = -1;
static bool has_threads;
static unsigned n_connections = LINES;	       /* that are opened */
static const struct psd_transport *carried_by; /* NULL: watched_tcp() */

static ssize_t send_counted(struct psd_carrier *carrier, const struct iovec segments[], unsigned n_segments)
{
	const ssize_t n_sent = psd_transport_tcp.send(carrier, segments, n_segments);

	sent_bytes += n_sent > 0 ? (uint64_t)n_sent : 0;
	return n_sent;
}

static ssize_t receive_counted(struct psd_carrier *carrier, const struct iovec segments[], unsigned n_segments)
{
	ssize_t n_read = -1;

	errno = EAGAIN;
	if (carrier->fd != paused_fd)
		n_read = psd_transport_tcp.receive(carrier, segments, n_segments);
	received_bytes += n_read > 0 ? (uint64_t)n_read : 0;
	return n_read;
}

static uint32_t events_unless_paused(const struct psd_carrier *carrier, bool does_read, bool does_send)
{
	return psd_transport_tcp.events(carrier, does_read && carrier->fd != paused_fd, does_send);
}

static const struct psd_transport *watched_tcp(void)
{
	static struct psd_transport watched;

	watched = psd_transport_tcp;
	watched.send = send_counted;
	watched.receive = receive_counted;
	watched.events = events_unless_paused;
	return &watched;
}

struct links {
	double rate_bps; /* shaped by the streams; 0: as fast as the machine */
	double pace_send_bps, pace_receive_bps, latency_sec, had_latency_sec;
};

static const struct links as_they_are = {.rate_bps = 0.0};

static void open_side(struct side *side, const int fds[LINES], struct links links)
{
	static const bool is_near[] = {false};
	struct psd_carrier carriers[LINES];
	struct psd_connections_options options = {
		.n_peers = 1,
		.n_connections = n_connections,
		.has_threads = has_threads,
		.carriers = carriers,
		.wake_fd = eventfd(0, EFD_NONBLOCK),
		.owner = {.expect = expect, .arrived = arrived, .left = left, .lost = lost, .context = side},
	};
	const struct psd_emulated_links emulated = {
		.is_near = is_near,
		.has_rate = links.rate_bps > 0.0,
		.send_bps = links.rate_bps,
		.receive_bps = links.rate_bps,
		.pace_send_bps = links.pace_send_bps,
		.pace_receive_bps = links.pace_receive_bps,
		.latency_sec = &links.latency_sec,
		.had_latency_sec = links.had_latency_sec,
	};
	struct psd_error err;

	for (unsigned i = 0; i < n_connections; i++)
		carriers[i] = (struct psd_carrier){.transport = carried_by ? carried_by : watched_tcp(), .fd = fds[i]};
	*side = (struct side){.wake_fd = options.wake_fd, .memory = calloc(LARGE_FLOATS, sizeof(float))};
	cr_assert(side->memory);
	cr_assert_eq(psd_emulated_open(&side->emulated, &emulated, &options, carriers, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_connections_open(&side->connections, &options, &err), PSD_OK, "%s", err.text);
}

struct pair {
	struct side from, to;
	int raw[LINES], raw_to[LINES]; /* the ends, for tests that read and write them directly */
};

static void open_pair(struct pair *pair, struct links links)
{
	for (unsigned i = 0; i < n_connections; i++) {
		int ends[2];

		cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
		pair->raw[i] = ends[0];
		pair->raw_to[i] = ends[1];
	}
	open_side(&pair->from, pair->raw, links);
	open_side(&pair->to, pair->raw_to, links);
}

static void close_side(struct side *side)
{
	psd_connections_close(side->connections);
	psd_emulated_close(side->emulated);
	close(side->wake_fd);
	free(side->memory);
	free(side->message);
	side->connections = NULL;
}

static void close_pair(struct pair *pair)
{
	if (pair->from.connections)
		close_side(&pair->from);
	if (pair->to.connections)
		close_side(&pair->to);
}

static void open_plain_pair(struct pair *pair)
{
	open_pair(pair, as_they_are);
}

static void open_pair_of_threads(struct pair *pair)
{
	has_threads = true;
	open_plain_pair(pair);
}

/* A test in which the loop moves all. */
#define PAIR_TEST(name) TEST_OPENED(connections, name, struct pair, pair, open_plain_pair, close_pair)
/* One body, such a test, and one in which I/O threads move large chunks. */
#define BOTH_WAYS(name)                                                                                                \
	static void check_both_##name(struct pair *pair);                                                              \
	PAIR_TEST(name)                                                                                                \
	{                                                                                                              \
		check_both_##name(pair);                                                                               \
	}                                                                                                              \
	TEST_OPENED(connections, name##_by_threads, struct pair, pair, open_pair_of_threads, close_pair)               \
	{                                                                                                              \
		check_both_##name(pair);                                                                               \
	}                                                                                                              \
	static void check_both_##name(struct pair *pair)

static enum psd_status turn(struct side *side, int within_ms, struct psd_error *err)
{
	bool has_moved;

	return psd_connections_turn(side->connections, within_ms, &has_moved, err);
}

/* Until the receiver has been told of n_arrived messages. */
static void carry(struct pair *pair, unsigned n_arrived)
{
	struct psd_error err;

	cr_assert_eq(psd_connections_flush(pair->from.connections, &err), PSD_OK);
	while (pair->to.n_arrived < n_arrived) {
		cr_assert_eq(turn(&pair->from, 0, &err), PSD_OK, "%s", err.text);
		cr_assert_eq(turn(&pair->to, 1, &err), PSD_OK, "%s", err.text);
	}
}

/* The sender has heard of it. */
static void await_left(struct pair *pair, unsigned n_left)
{
	struct psd_error err;

	while (pair->from.n_left < n_left)
		cr_assert_eq(turn(&pair->from, 1, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(pair->from.n_left, n_left);
}

/* Numbers that the pair sends: number e is e, exactly, as a float. */
static float *numbers_of(struct pair *pair)
{
	if (pair->from.message)
		return pair->from.message;
	pair->from.message = calloc(LARGE_FLOATS, sizeof(float));
	cr_assert(pair->from.message);
	for (unsigned e = 0; e < LARGE_FLOATS; e++)
		pair->from.message[e] = (float)e;
	return pair->from.message;
}

/* From three pieces of memory, as a layer's tensors are. */
static void send_floats(struct pair *pair, uint64_t n)
{
	float *numbers = numbers_of(pair);
	const struct psd_wire_head head = {.kind = PSD_WIRE_DATA, .op = 7, .length_bytes = n * sizeof(float)};
	const struct iovec segments[] = {
		{numbers, sizeof(float)},
		{numbers + 1, (n - 2) * sizeof(float)},
		{numbers + n - 1, sizeof(float)},
	};

	psd_connections_send(pair->from.connections, 0, &head, segments, 3);
}

static void check_memory(struct pair *pair, uint64_t n, float times)
{
	const float *numbers = numbers_of(pair);

	for (uint64_t e = 0; e < n; e++)
		cr_assert_eq(pair->to.memory[e], times * numbers[e], "element %llu", (unsigned long long)e);
}

BOTH_WAYS(a_large_message_is_shared_by_all_connections)
{
	send_floats(pair, LARGE_FLOATS);
	carry(pair, 1);
	check_memory(pair, LARGE_FLOATS, 1.0f);
	cr_assert_eq(pair->to.n_asked, 1);
	await_left(pair, 1);
	cr_assert_eq(pair->to.head.length_bytes, LARGE_FLOATS * sizeof(float));
}

PAIR_TEST(a_small_message_takes_one_connection)
{
	send_floats(pair, SMALL_FLOATS);
	carry(pair, 1);
	check_memory(pair, SMALL_FLOATS, 1.0f);
	cr_assert_eq(pair->to.n_asked, 1);
}

BOTH_WAYS(what_is_reduced_is_added)
{
	memcpy(pair->to.memory, numbers_of(pair), LARGE_FLOATS * sizeof(float));
	pair->to.added = &psd_encoding_fp32;
	send_floats(pair, LARGE_FLOATS);
	carry(pair, 1);
	check_memory(pair, LARGE_FLOATS, 2.0f);
}

/* An odd number of values of 2 bytes, in three shares; no sum of these is rounded. */
BOTH_WAYS(encoded_values_are_added_as_such)
{
	enum { N = 2 * LARGE_FLOATS - 1 };
	const struct psd_wire_head head = {.kind = PSD_WIRE_DATA, .length_bytes = 2 * (uint64_t)N};
	uint16_t *parts = calloc(N, sizeof(*parts)), *sums;
	struct iovec piece = {parts, 2 * (size_t)N};

	cr_assert(parts);
	sums = (uint16_t *)(void *)pair->to.memory;
	for (unsigned i = 0; i < N; i++) {
		parts[i] = psd_encoding_fp16.encode((float)(i % 100));
		sums[i] = psd_encoding_fp16.encode((float)(i % 7));
	}
	pair->to.added = &psd_encoding_fp16;
	psd_connections_send(pair->from.connections, 0, &head, &piece, 1);
	carry(pair, 1);
	for (unsigned i = 0; i < N; i++)
		cr_assert_eq(sums[i], psd_encoding_fp16.encode((float)(i % 100 + i % 7)), "%u", i);
	free(parts);
}

/* An odd number of values of 2 bytes in three shares, to as many floats: 2048 and 1 are 2048 as fp16. */
BOTH_WAYS(encoded_values_are_added_to_floats)
{
	enum { N = LARGE_FLOATS };
	const struct psd_wire_head head = {.kind = PSD_WIRE_DATA, .length_bytes = 2 * (uint64_t)N};
	uint16_t *parts = calloc(N, sizeof(*parts));
	struct iovec piece = {parts, 2 * (size_t)N};

	cr_assert(parts);
	for (unsigned i = 0; i < N; i++) {
		parts[i] = psd_encoding_fp16.encode((float)(i % 100));
		pair->to.memory[i] = 2048.0f;
	}
	pair->to.added = &psd_encoding_fp16;
	pair->to.is_of_floats = true;
	psd_connections_send(pair->from.connections, 0, &head, &piece, 1);
	carry(pair, 1);
	for (unsigned i = 0; i < N; i++)
		cr_assert_eq(pair->to.memory[i], 2048.0f + (float)(i % 100), "%u", i);
	free(parts);
}

BOTH_WAYS(what_comes_too_early_waits_outside)
{
	struct psd_error err;

	pair->to.is_later = true;
	send_floats(pair, SMALL_FLOATS);
	cr_assert_eq(psd_connections_flush(pair->from.connections, &err), PSD_OK);
	cr_assert_eq(turn(&pair->to, 1000, &err), PSD_OK);
	cr_assert_eq(pair->to.n_asked, 1);
	cr_assert_eq(pair->to.n_arrived, 0);
	pair->to.is_later = false;
	cr_assert_eq(psd_connections_resume(pair->to.connections, &err), PSD_OK);
	cr_assert_eq(psd_connections_flush(pair->to.connections, &err), PSD_OK);
	cr_assert_eq(turn(&pair->to, 1000, &err), PSD_OK);
	cr_assert_eq(pair->to.n_arrived, 1, "it is watched again");
	check_memory(pair, SMALL_FLOATS, 1.0f);
}

/* Seconds until the receiver hears of the first message. */
static double time_first(struct pair *pair, uint64_t n_floats)
{
	const double start_sec = psd_socket_now_sec();

	send_floats(pair, n_floats);
	carry(pair, 1);
	return pair->to.arrived_sec - start_sec;
}

Test(connections, a_latency_passes_before_an_arrival_is_reported)
{
	const double latency_sec = 0.02;
	struct pair pair;

	open_pair(&pair, (struct links){.latency_sec = latency_sec});
	cr_assert_geq(time_first(&pair, SMALL_FLOATS), latency_sec);
	check_memory(&pair, SMALL_FLOATS, 1.0f);
	close_pair(&pair);
}

/* Both wait at the receiver for longer than the latency: they are there when it takes them. */
Test(connections, latency_goes_by_while_a_message_is_put_off)
{
	const struct links links = {.pace_send_bps = 1e12, .pace_receive_bps = 1e12, .latency_sec = 0.05};
	struct psd_error err;
	struct pair pair;

	open_pair(&pair, links);
	pair.to.is_later = true;
	for (unsigned n = 0; n < 2; n++) {
		send_floats(&pair, SMALL_FLOATS);
		cr_assert_eq(psd_connections_flush(pair.from.connections, &err), PSD_OK);
		await_left(&pair, n + 1);
	}
	const double until_sec = psd_socket_now_sec() + 2 * links.latency_sec;
	while (psd_socket_now_sec() < until_sec)
		cr_assert_eq(turn(&pair.to, 1, &err), PSD_OK, "%s", err.text);
	pair.to.is_later = false;
	cr_assert_eq(psd_connections_resume(pair.to.connections, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_connections_flush(pair.to.connections, &err), PSD_OK, "%s", err.text);
	for (unsigned n = 0; n < 4; n++)
		cr_assert_eq(turn(&pair.to, 0, &err), PSD_OK, "%s", err.text);
	cr_expect_eq(pair.to.n_arrived, 2);
	close_pair(&pair);
}

/* Two messages of B bytes one behind the other: the receiver hears of the second 2 B / rate + latency after the first
 * was sent. The machine's own links are much faster and have that latency already. */
Test(connections, no_message_overtakes_the_link_that_carries_it)
{
	const struct links links = {
		.pace_send_bps = 400e6, .pace_receive_bps = 400e6, .latency_sec = 0.01, .had_latency_sec = 0.01};
	const double message_sec = 8.0 * LARGE_FLOATS * sizeof(float) / links.pace_send_bps;
	double start_sec;
	struct pair pair;

	open_pair(&pair, links);
	cr_assert_geq(time_first(&pair, LARGE_FLOATS), message_sec + links.latency_sec);
	start_sec = psd_socket_now_sec();
	for (unsigned i = 0; i < 2; i++) {
		struct psd_error err;

		send_floats(&pair, LARGE_FLOATS);
		while (pair.from.n_left < 2 + i) {
			cr_assert_eq(turn(&pair.from, 0, &err), PSD_OK);
			cr_assert_eq(turn(&pair.to, 0, &err), PSD_OK);
		}
	}
	carry(&pair, 3);
	cr_assert_geq(pair.to.arrived_sec - start_sec, 2.0 * message_sec + links.latency_sec);
	check_memory(&pair, LARGE_FLOATS, 1.0f);
	close_pair(&pair);
}

/* A line in of half the rate: B bytes take twice as long, counted from when the sender's line began with them. */
Test(connections, no_message_overtakes_the_link_into_its_host)
{
	const struct links links = {
		.pace_send_bps = 400e6, .pace_receive_bps = 200e6, .latency_sec = 0.01, .had_latency_sec = 0.01};
	const double message_sec = 8.0 * LARGE_FLOATS * sizeof(float) / links.pace_receive_bps;
	struct pair pair;

	open_pair(&pair, links);
	cr_assert_geq(time_first(&pair, LARGE_FLOATS), message_sec + links.latency_sec);
	check_memory(&pair, LARGE_FLOATS, 1.0f);
	close_pair(&pair);
}

Test(connections, shaped_here_bytes_take_their_time)
{
	const double rate_bps = 200e6, bytes = LARGE_FLOATS * sizeof(float);
	const double burst_bytes = 4e-3 * rate_bps / 8; /* the bucket is full at first: 4 ms of the rate */
	double start_sec;
	struct pair pair;

	open_pair(&pair, (struct links){.rate_bps = rate_bps});
	start_sec = psd_socket_now_sec();
	send_floats(&pair, LARGE_FLOATS);
	carry(&pair, 1);
	cr_assert_geq(pair.to.arrived_sec - start_sec, 8 * (bytes - burst_bytes) / rate_bps);
	check_memory(&pair, LARGE_FLOATS, 1.0f);
	close_pair(&pair);
}

BOTH_WAYS(who_goes_is_told)
{
	struct psd_error err;

	close_side(&pair->from);
	while (pair->to.n_lost < LINES)
		cr_assert_eq(turn(&pair->to, 1000, &err), PSD_OK);
	cr_assert_not(psd_connections_has_queue(pair->to.connections));
}

static bool holds_something;

static bool holds(const struct psd_carrier *carrier)
{
	(void)carrier;
	return holds_something;
}

/* Closing a connection waits for such chunks. */
Test(connections, chunks_that_a_carrier_holds_are_in_the_queue)
{
	struct psd_transport holding = *watched_tcp();
	struct pair pair;

	holding.holds = holds;
	carried_by = &holding;
	open_pair(&pair, as_they_are);
	cr_expect_not(psd_connections_has_queue(pair.from.connections));
	holds_something = true;
	cr_expect(psd_connections_has_queue(pair.from.connections));
	close_side(&pair.to);
	while (pair.from.n_lost < LINES) {
		struct psd_error err;

		cr_assert_eq(turn(&pair.from, 1000, &err), PSD_OK);
	}
	cr_expect_not(psd_connections_has_queue(pair.from.connections), "nobody is left to take it");
	close_side(&pair.from);
}

/* Sends a header by hand; what the receiver says must hold the words. */
static void check_refused(unsigned line, const struct psd_wire_head *head, int first_byte, const char *words)
{
	uint8_t bytes[PSD_WIRE_HEAD_BYTES];
	struct psd_error err = {.text = ""};
	struct pair pair;

	open_pair(&pair, as_they_are);
	psd_wire_encode(head, bytes);
	bytes[0] = (uint8_t)(first_byte ? first_byte : bytes[0]);
	cr_assert_eq(write(pair.raw[line], bytes, sizeof(bytes)), sizeof(bytes));
	cr_assert_eq(turn(&pair.to, 1000, &err), PSD_ERUN);
	cr_assert(strstr(err.text, words), "'%s' is not in '%s'", words, err.text);
	close_pair(&pair);
}

Test(connections, strangers_are_refused)
{
	const struct psd_wire_head head = {.kind = PSD_WIRE_DATA, .length_bytes = SMALL_FLOATS * sizeof(float)};
	struct psd_wire_head beyond = head;

	beyond.chunk = 1;
	check_refused(0, &head, 'H', "host 0 does not speak psd's protocol");
	check_refused(1, &beyond, 0, "host 0 sent chunk 1 of a message of kind 3 with 20 bytes");
}

/* Added with due times that go up and down, some taken in between, so that the ring wraps: what is taken is due in
 * order, and what is due at a time comes as it was added. Due times grow by 10 each round, so that none taken is before
 * one taken earlier. */
Test(connections, delayed_arrivals_are_reported_when_they_are_due)
{
	struct psd_delay delay = {.n = 0};
	struct psd_arrival last = {.due_sec = -1};
	unsigned n_added = 0, n_taken = 0;

	for (unsigned round = 0; round < 100; round++) {
		for (unsigned i = 0; i < 10; i++, n_added++) { /* 0, 3, 1, 4, 2, 0, ... */
			const double due_sec = 10 * round + 3 * i % 5;

			cr_assert(psd_delay_add(&delay, &(struct psd_arrival){.due_sec = due_sec, .peer = n_added}));
		}
		for (; n_taken < n_added - (round < 99 ? 5 : 0); n_taken++) {
			const struct psd_arrival first = *psd_delay_first(&delay);

			cr_assert(last.due_sec < first.due_sec ||
				  (last.due_sec == first.due_sec && last.peer < first.peer));
			last = first;
			psd_delay_drop_first(&delay);
		}
	}
	cr_assert_null(psd_delay_first(&delay));
	psd_delay_release(&delay);
}

/* More than fit at first, some leaving in between, so that the ring wraps before it grows. */
Test(connections, delayed_arrivals_keep_their_order)
{
	struct psd_delay delay = {.n = 0};
	unsigned n_added = 0, n_dropped = 0;

	while (n_added < 1000) {
		for (unsigned i = 0; i < 5; i++, n_added++)
			cr_assert(psd_delay_add(&delay, &(struct psd_arrival){.due_sec = n_added, .peer = n_added}));
		for (unsigned i = 0; i < 3; i++, n_dropped++) {
			cr_assert_eq(psd_delay_first(&delay)->peer, n_dropped);
			psd_delay_drop_first(&delay);
		}
	}
	for (; n_dropped < n_added; n_dropped++) {
		cr_assert_eq(psd_delay_first(&delay)->peer, n_dropped);
		psd_delay_drop_first(&delay);
	}
	cr_assert_null(psd_delay_first(&delay));
	psd_delay_release(&delay);
}

/* ---- tags beside payloads ---- */

/* A header for each chunk and nothing else; a time for each message where links are emulated. */
Test(connections, without_emulation_not_a_byte_travels_for_it)
{
	const uint64_t bytes = LARGE_FLOATS * sizeof(float);
	const uint64_t n_chunks = (bytes + PSD_WIRE_CHUNK_BYTES - 1) / PSD_WIRE_CHUNK_BYTES;
	struct pair pair;

	open_pair(&pair, as_they_are);
	cr_expect_null(pair.from.emulated);
	send_floats(&pair, LARGE_FLOATS);
	carry(&pair, 1);
	cr_expect_eq(sent_bytes, bytes + n_chunks * PSD_WIRE_HEAD_BYTES);
	close_pair(&pair);
	sent_bytes = 0;
	open_pair(&pair, (struct links){.pace_send_bps = 1e12, .pace_receive_bps = 1e12});
	send_floats(&pair, LARGE_FLOATS);
	carry(&pair, 1);
	cr_expect_eq(sent_bytes, bytes + n_chunks * PSD_WIRE_HEAD_BYTES + sizeof(double));
	close_pair(&pair);
}

/* ---- connections that stand still, and what goes ahead ---- */

enum { BULK_CHUNKS = 40, MOST_TURNS = 100000 };

/* Makes a message of n chunks, all ones, and room for it at the pair's receiver. */
static void make_bulk(struct pair *pair, uint64_t n_chunks)
{
	const size_t n_floats = n_chunks * PSD_WIRE_CHUNK_BYTES / sizeof(float);

	free(pair->to.memory);
	pair->to.memory = calloc(n_floats, sizeof(float));
	pair->from.message = malloc(n_floats * sizeof(float));
	cr_assert(pair->from.message && pair->to.memory);
	for (size_t e = 0; e < n_floats; e++)
		pair->from.message[e] = 1.0f;
}

static void send_bulk(struct pair *pair, uint64_t n_chunks)
{
	const struct psd_wire_head head = {.kind = PSD_WIRE_DATA, .length_bytes = n_chunks * PSD_WIRE_CHUNK_BYTES};
	const struct iovec piece = {pair->from.message, head.length_bytes};

	psd_connections_send(pair->from.connections, 0, &head, &piece, 1);
}

/* Chunks whose last float is there. */
static unsigned count_there(const struct pair *pair, unsigned n_chunks)
{
	const size_t chunk_floats = PSD_WIRE_CHUNK_BYTES / sizeof(float);
	unsigned n_there = 0;

	for (unsigned c = 0; c < n_chunks; c++)
		n_there += pair->to.memory[(c + 1) * chunk_floats - 1] > 0.0f;
	return n_there;
}

static void turn_both(struct pair *pair)
{
	struct psd_error err;

	cr_assert_eq(turn(&pair->from, 0, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(turn(&pair->to, has_threads, &err), PSD_OK, "%s", err.text);
}

/* Its own chunk waits for it, and no other: the message is complete once that has come. */
BOTH_WAYS(a_connection_that_stands_still_delays_its_own_chunk_only)
{
	const uint64_t others_bytes = (BULK_CHUNKS - 1) * (PSD_WIRE_HEAD_BYTES + PSD_WIRE_CHUNK_BYTES);
	struct psd_error err;

	make_bulk(pair, BULK_CHUNKS);
	paused_fd = pair->raw_to[2];
	cr_assert_eq(psd_connections_flush(pair->to.connections, &err), PSD_OK); /* which no longer watches it */
	send_bulk(pair, BULK_CHUNKS);
	cr_assert_eq(psd_connections_flush(pair->from.connections, &err), PSD_OK);
	for (unsigned t = 0; t < MOST_TURNS && received_bytes < others_bytes; t++)
		turn_both(pair);
	cr_expect_eq(received_bytes, others_bytes);
	cr_expect_eq(pair->to.n_arrived, 0);
	cr_expect_eq(pair->from.n_left, 0);
	paused_fd = -1;
	cr_assert_eq(psd_connections_flush(pair->to.connections, &err), PSD_OK);
	carry(pair, 1);
	cr_expect_eq(count_there(pair, BULK_CHUNKS), BULK_CHUNKS);
	await_left(pair, 1);
}

/* TCP on loopback whose receivers' kernel holds little, so that what waits, waits at the sender. */
static void open_tcp_pair(struct pair *pair)
{
	const struct psd_socket_options small = {
		.has_buffers = true, .send_buffer_bytes = 8 << 20, .receive_buffer_bytes = 1 << 16};
	char from[PSD_SOCKET_PLACE_MAX];
	struct addrinfo *found;
	struct psd_error err;
	uint16_t port;
	int listener;

	cr_assert_eq(psd_socket_listen("127.0.0.1", 0, &small, &listener, &port, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_socket_look_up("127.0.0.1", port, &found, &err), PSD_OK, "%s", err.text);
	for (unsigned i = 0; i < n_connections; i++) {
		struct pollfd waiting = {.fd = listener, .events = POLLIN};

		cr_assert_eq(psd_socket_connect(found, &small, &pair->raw[i]), 0);
		cr_assert_eq(poll(&waiting, 1, 60000), 1);
		cr_assert_eq(psd_socket_accept(listener, &small, &pair->raw_to[i], from), 0);
	}
	freeaddrinfo(found);
	close(listener);
	open_side(&pair->from, pair->raw, as_they_are);
	open_side(&pair->to, pair->raw_to, as_they_are);
}

/* That the senders' kernel has and has not sent. */
static uint64_t unsent_bytes(const struct pair *pair)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < n_connections; i++) {
		int unsent = 0;

		cr_assert_eq(ioctl(pair->raw[i], SIOCOUTQNSD, &unsent), 0);
		bytes += (uint64_t)unsent;
	}
	return bytes;
}

/* Bulk bytes that arrive between sending and arrival of a small message, with 64 MiB queued. Bytes that the links or
 * the reader already have do not count. */
static uint64_t bytes_before_small(void)
{
	const struct psd_wire_head small = {.kind = PSD_WIRE_READY};
	const uint64_t n_chunks = (UINT64_C(64) << 20) / PSD_WIRE_CHUNK_BYTES;
	uint64_t on_links_bytes, before_bytes;
	struct psd_error err;
	struct pair pair;

	open_tcp_pair(&pair);
	make_bulk(&pair, n_chunks);
	send_bulk(&pair, n_chunks);
	cr_assert_eq(psd_connections_flush(pair.from.connections, &err), PSD_OK);
	for (unsigned t = 0; t < 3; t++)
		turn_both(&pair);
	cr_assert_eq(pair.to.n_arrived, 0);
	on_links_bytes = sent_bytes - unsent_bytes(&pair);
	cr_assert(psd_connections_send_small(pair.from.connections, 0, &small, NULL));
	while (pair.to.n_arrived == 0)
		turn_both(&pair);
	cr_expect_eq(pair.to.head.kind, PSD_WIRE_READY);
	before_bytes = received_bytes > on_links_bytes ? received_bytes - on_links_bytes : 0;
	carry(&pair, 2);
	close_pair(&pair);
	return before_bytes;
}

/* A chunk of each connection may go before it, and the bytes that each socket may hold unsent. */
Test(connections, a_small_message_goes_ahead_of_chunks_that_wait)
{
	for (n_connections = 1; n_connections <= LINES; n_connections += LINES - 1) {
		const uint64_t line_bytes = PSD_WIRE_CHUNK_BYTES + PSD_WIRE_HEAD_BYTES + PSD_CONNECTIONS_UNSENT_BYTES;
		const uint64_t before_bytes = bytes_before_small();

		cr_expect_leq(before_bytes, n_connections * line_bytes, "%u connections: %llu", n_connections,
			      (unsigned long long)before_bytes);
		sent_bytes = received_bytes = 0;
	}
}

/* Both ends go in the middle of it, one after the other, with chunks at their threads. */
Test(connections, a_message_may_be_cut_short_while_threads_move_it)
{
	struct psd_error err;
	struct pair pair;

	has_threads = true;
	for (unsigned n_turns = 0; n_turns < 10; n_turns++) {
		open_pair(&pair, as_they_are);
		make_bulk(&pair, BULK_CHUNKS);
		send_bulk(&pair, BULK_CHUNKS);
		for (unsigned t = 0; t < n_turns; t++)
			turn_both(&pair);
		close_side(&pair.to);
		for (unsigned t = 0; t < MOST_TURNS && pair.from.n_lost < LINES; t++)
			cr_assert_eq(turn(&pair.from, 1, &err), PSD_OK, "%s", err.text);
		cr_assert_eq(pair.from.n_lost, LINES, "each connection is lost once");
		close_side(&pair.from);
	}
}

/* ---- when a turn ends ---- */

/* A NaN sets no time; a time that is over ends the turn, and later ones may still end later turns. */
PAIR_TEST(a_time_that_is_over_ends_the_turn)
{
	struct psd_error err;

	psd_connections_wake_at(pair->to.connections, NAN);
	psd_connections_wake_at(pair->to.connections, INFINITY);
	for (unsigned i = 0; i < 2; i++) {
		const double start_sec = psd_socket_now_sec();

		psd_connections_wake_at(pair->to.connections, 1e300);
		psd_connections_wake_at(pair->to.connections, i == 0 ? -1.0 : start_sec);
		cr_assert_eq(turn(&pair->to, 60000, &err), PSD_OK, "%s", err.text);
		cr_expect_lt(psd_socket_now_sec() - start_sec, 60.0, "it waits for what it does not say");
	}
}

/* ---- silence of peers ---- */

static bool moves(struct side *side)
{
	struct psd_error err;
	bool has_moved;

	cr_assert_eq(psd_connections_turn(side->connections, 1, &has_moved, &err), PSD_OK, "%s", err.text);
	return has_moved;
}

/* A quarter of a chunk comes and no more: some turn says that bytes moved, and in the end one that none did. */
BOTH_WAYS(bytes_move_before_their_chunk_is_there)
{
	const struct psd_wire_head head = {.kind = PSD_WIRE_DATA, .length_bytes = LARGE_FLOATS * sizeof(float)};
	static const uint8_t part[PSD_WIRE_CHUNK_BYTES / 4];
	uint8_t bytes[PSD_WIRE_HEAD_BYTES];
	bool has_moved = false, moves_on = true;

	psd_wire_encode(&head, bytes);
	cr_assert_eq(write(pair->raw[0], bytes, sizeof(bytes)), sizeof(bytes));
	for (size_t at = 0; at < sizeof(part); at += 1 << 14) {
		cr_assert_eq(write(pair->raw[0], part + at, 1 << 14), 1 << 14);
		has_moved = moves(&pair->to) || has_moved;
	}
	for (unsigned t = 0; t < MOST_TURNS / 10 && !has_moved; t++)
		has_moved = moves(&pair->to);
	cr_expect(has_moved);
	for (unsigned t = 0; t < MOST_TURNS / 10 && moves_on; t++)
		moves_on = moves(&pair->to);
	cr_expect_not(moves_on);
	cr_expect_eq(pair->to.n_arrived, 0);
}

static bool hear_small(struct pair *pair, struct psd_wire_head head)
{
	struct psd_error err;
	bool has_moved;

	cr_assert(psd_connections_send_small(pair->from.connections, 0, &head, NULL));
	cr_assert_eq(psd_connections_flush(pair->from.connections, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_connections_turn(pair->to.connections, 1000, &has_moved, &err), PSD_OK, "%s", err.text);
	return has_moved;
}

PAIR_TEST(a_peer_that_is_alive_moves_nothing_unless_it_computes)
{
	cr_expect_not(hear_small(pair, (struct psd_wire_head){.kind = PSD_WIRE_ALIVE}));
	cr_expect(hear_small(pair, (struct psd_wire_head){.kind = PSD_WIRE_ALIVE, .part = 1}));
	cr_expect(hear_small(pair, (struct psd_wire_head){.kind = PSD_WIRE_READY}));
	cr_expect_eq(pair->to.n_arrived, 3);
}

/* Its next bytes lay behind that. */
PAIR_TEST(a_peer_that_waits_here_is_not_silent)
{
	cr_expect_gt(psd_connections_silent_sec(pair->to.connections, 0), 0.0);
	pair->to.is_later = true;
	(void)hear_small(pair, (struct psd_wire_head){.kind = PSD_WIRE_READY});
	cr_expect_eq(psd_connections_silent_sec(pair->to.connections, 0), 0.0);
}

/* ---- several chunks in one call ---- */

/* Bytes of one connection in memory. Each call of send takes the next of `takes`, counted round; receive gives all. */
static struct {
	uint8_t *bytes;
	size_t n_written, n_read;
	const size_t *takes;
	unsigned n_takes, n_sends, n_receives;
	size_t most_bytes; /* offered in one call */
} wire;

static ssize_t send_to_memory(struct psd_carrier *carrier, const struct iovec segments[], unsigned n_segments)
{
	const uint64_t offered_bytes = psd_segments_bytes(segments, n_segments);
	const size_t most_bytes = wire.n_takes ? wire.takes[wire.n_sends % wire.n_takes] : SIZE_MAX;
	const uint64_t sent = offered_bytes < most_bytes ? offered_bytes : most_bytes;
	uint64_t n_left = sent;

	(void)carrier;
	wire.n_sends++;
	wire.most_bytes = offered_bytes > wire.most_bytes ? offered_bytes : wire.most_bytes;
	if (sent == 0) {
		errno = EAGAIN;
		return -1;
	}
	wire.bytes = realloc(wire.bytes, wire.n_written + sent);
	cr_assert(wire.bytes);
	for (unsigned i = 0; n_left > 0; i++) {
		const size_t n_bytes = segments[i].iov_len < n_left ? segments[i].iov_len : n_left;

		memcpy(wire.bytes + wire.n_written, segments[i].iov_base, n_bytes);
		wire.n_written += n_bytes;
		n_left -= n_bytes;
	}
	return (ssize_t)sent;
}

static ssize_t receive_from_memory(struct psd_carrier *carrier, const struct iovec segments[], unsigned n_segments)
{
	const size_t start = wire.n_read;

	(void)carrier;
	wire.n_receives++;
	for (unsigned i = 0; i < n_segments; i++) {
		const size_t there = wire.n_written - wire.n_read;
		const size_t n_bytes = segments[i].iov_len < there ? segments[i].iov_len : there;

		memcpy(segments[i].iov_base, wire.bytes + wire.n_read, n_bytes);
		wire.n_read += n_bytes;
	}
	errno = EAGAIN;
	return wire.n_read > start ? (ssize_t)(wire.n_read - start) : -1;
}

static ssize_t receive_nothing(struct psd_carrier *carrier, const struct iovec segments[], unsigned n_segments)
{
	(void)carrier, (void)segments, (void)n_segments;
	errno = EAGAIN;
	return -1;
}

/* One direction only. The descriptors are counters, always ready. */
static void open_memory_pair(struct pair *pair)
{
	static struct psd_transport out, in;

	out = in = psd_transport_tcp;
	out.send = send_to_memory;
	out.receive = receive_nothing;
	in.receive = receive_from_memory;
	for (unsigned i = 0; i < n_connections; i++) {
		pair->raw[i] = eventfd(1, EFD_NONBLOCK);
		pair->raw_to[i] = eventfd(1, EFD_NONBLOCK);
	}
	carried_by = &out;
	open_side(&pair->from, pair->raw, as_they_are);
	carried_by = &in;
	open_side(&pair->to, pair->raw_to, as_they_are);
}

static void flush(struct side *side)
{
	struct psd_error err;

	cr_assert_eq(psd_connections_flush(side->connections, &err), PSD_OK, "%s", err.text);
}

enum { WITH_HEAD_BYTES = PSD_WIRE_HEAD_BYTES + (1 << 19) };

Test(connections, chunks_leave_together_over_one_connection)
{
	const unsigned n_calls = (BULK_CHUNKS + PSD_FRAMED_CHUNKS_MAX - 1) / PSD_FRAMED_CHUNKS_MAX;
	struct pair pair;

	n_connections = 1;
	open_memory_pair(&pair);
	make_bulk(&pair, BULK_CHUNKS);
	send_bulk(&pair, BULK_CHUNKS);
	flush(&pair.from);
	cr_expect_eq(pair.from.n_left, 1);
	cr_expect_eq(wire.n_sends, n_calls, "%u", wire.n_sends);
	carry(&pair, 1);
	cr_expect_eq(count_there(&pair, BULK_CHUNKS), BULK_CHUNKS);
	close_pair(&pair);
	free(wire.bytes);
}

/* One that takes more might stand still with what others could carry. */
Test(connections, each_of_several_connections_takes_a_chunk_at_a_time)
{
	struct pair pair;

	open_memory_pair(&pair);
	make_bulk(&pair, BULK_CHUNKS);
	send_bulk(&pair, BULK_CHUNKS);
	flush(&pair.from);
	cr_expect_eq(wire.n_sends, BULK_CHUNKS);
	cr_expect_eq(wire.most_bytes, WITH_HEAD_BYTES);
	close_pair(&pair);
	free(wire.bytes);
}

/* In a header, at its end, in a payload, at the end of a chunk, and behind more than one. */
Test(connections, chunks_that_leave_together_may_be_cut_anywhere)
{
	static const size_t takes[] = {1, 30, 1, 70001, WITH_HEAD_BYTES, 2 * WITH_HEAD_BYTES + 7, WITH_HEAD_BYTES - 7};
	const struct psd_wire_head small = {.kind = PSD_WIRE_READY};
	const size_t n_floats = BULK_CHUNKS * PSD_WIRE_CHUNK_BYTES / sizeof(float);
	size_t small_bytes = 0;
	struct pair pair;

	n_connections = 1;
	wire.takes = takes;
	wire.n_takes = sizeof(takes) / sizeof(*takes);
	open_memory_pair(&pair);
	make_bulk(&pair, BULK_CHUNKS);
	for (size_t e = 0; e < n_floats; e++)
		pair.from.message[e] = (float)e;
	send_bulk(&pair, BULK_CHUNKS);
	for (unsigned t = 0; t < MOST_TURNS && pair.from.n_left == 0; t++) {
		if (t % 5 == 4) {
			cr_assert(psd_connections_send_small(pair.from.connections, 0, &small, NULL));
			small_bytes += PSD_WIRE_HEAD_BYTES;
		}
		turn_both(&pair);
	}
	turn_both(&pair);
	cr_expect_eq(pair.from.n_left, 1);
	cr_expect_eq(pair.to.head.kind, PSD_WIRE_DATA);
	cr_expect_eq(pair.to.n_asked, pair.to.n_arrived, "each message is asked about and told once");
	cr_expect_eq(wire.n_written, BULK_CHUNKS * WITH_HEAD_BYTES + small_bytes);
	for (size_t e = 0; e < n_floats; e++)
		cr_assert_eq(pair.to.memory[e], (float)e, "element %zu", e);
	close_pair(&pair);
	free(wire.bytes);
}

/* Chunk 1 has begun when it is sent, and chunk 2 was offered with it. */
Test(connections, a_small_message_waits_for_no_chunk_that_has_not_begun)
{
	static const size_t takes[] = {WITH_HEAD_BYTES + 1000, 0};
	const struct psd_wire_head small = {.kind = PSD_WIRE_READY};
	struct psd_wire_head head;
	struct psd_error err;
	struct pair pair;

	n_connections = 1;
	wire.takes = takes;
	wire.n_takes = 2;
	open_memory_pair(&pair);
	make_bulk(&pair, BULK_CHUNKS);
	send_bulk(&pair, BULK_CHUNKS);
	flush(&pair.from);
	cr_expect_eq(wire.n_written, WITH_HEAD_BYTES + 1000);
	cr_assert(psd_connections_send_small(pair.from.connections, 0, &small, NULL));
	wire.n_takes = 0;
	flush(&pair.from);
	cr_assert_eq(psd_wire_decode(wire.bytes + 2 * WITH_HEAD_BYTES, &head, &err), PSD_OK, "%s", err.text);
	cr_expect_eq(head.kind, PSD_WIRE_READY);
	close_pair(&pair);
	free(wire.bytes);
}

/* The second of two chunks ends a connection's turn, and with it has come all that there is: nothing would tell of it.
 * Three calls: for the first header, and for each payload with the header behind it. */
Test(connections, a_header_comes_with_the_payload_before_it)
{
	const struct psd_wire_head small = {.kind = PSD_WIRE_READY};
	struct psd_error err;
	struct pair pair;

	n_connections = 1;
	open_memory_pair(&pair);
	make_bulk(&pair, 2);
	send_bulk(&pair, 2);
	flush(&pair.from);
	cr_assert(psd_connections_send_small(pair.from.connections, 0, &small, NULL));
	flush(&pair.from);
	cr_assert_eq(turn(&pair.to, 0, &err), PSD_OK, "%s", err.text);
	cr_expect_eq(pair.to.n_arrived, 2);
	cr_expect_eq(wire.n_receives, 3, "%u", wire.n_receives);
	close_pair(&pair);
	free(wire.bytes);
}
