/* Promises of every transport, with the same bodies over each: bytes in order whatever their sizes, a wake-up for a
 * sleeper, all bytes before an end, and that end. Two ends in one process; byte n of a stream is a function of n, so a
 * lost, doubled or moved byte is seen. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "real/net/socket.h"
#include "real/net/transport.h"
#include "tests/real/secret_helper.h"

enum { RENEW_BYTES = 1 << 19 }; /* bytes for each key: several keys for LONG_BYTES */
enum { LONG_BYTES = 5 * (1 << 20) + 12345, CHUNK_BYTES = 7919 };

struct pair {
	struct psd_carrier from, to;
};

static void open_tcp(struct pair *pair, int fds[2])
{
	pair->from = (struct psd_carrier){.transport = &psd_transport_tcp, .fd = fds[0]};
	pair->to = (struct psd_carrier){.transport = &psd_transport_tcp, .fd = fds[1]};
}

/* Data with which one end of a node of two hosts joins. */
struct joining {
	unsigned self;
	struct psd_carrier *carrier;
	enum psd_status status;
};

static void *join_node(void *context)
{
	static const struct psd_mesh_host hosts[2] = {{"127.0.0.1", 1}, {"127.0.0.1", 2}};
	struct joining *joining = context;
	const struct psd_layout layout = psd_layout_make(2, 2, 0);
	const struct psd_mesh_options mesh = {
		.layout = &layout, .hosts = hosts, .self = joining->self, .n_connections = 1};
	const struct psd_transport_join join = {&mesh, NULL, psd_socket_now_sec() + 60.0};
	struct psd_carrier carriers[2] = {{.fd = -1}, {.fd = -1}};
	struct psd_error err;

	carriers[1 - joining->self] = *joining->carrier;
	joining->status = psd_transport_shared.join(&join, carriers, &err);
	*joining->carrier = carriers[1 - joining->self];
	return NULL;
}

static void open_shared(struct pair *pair, int fds[2])
{
	struct joining from = {.self = 0, .carrier = &pair->from}, to = {.self = 1, .carrier = &pair->to};
	pthread_t other;

	pair->from = (struct psd_carrier){.fd = fds[0]};
	pair->to = (struct psd_carrier){.fd = fds[1]};
	cr_assert_eq(pthread_create(&other, NULL, join_node, &to), 0);
	(void)join_node(&from);
	cr_assert_eq(pthread_join(other, NULL), 0);
	cr_assert(from.status == PSD_OK && to.status == PSD_OK);
	cr_assert(pair->from.transport == &psd_transport_shared && pair->to.transport == &psd_transport_shared);
}

static struct psd_carrier take_session(int fd, unsigned self, struct psd_secret *secret)
{
	const struct psd_layout layout = psd_layout_make(2, 1, 0);
	const struct psd_mesh_options mesh = {.layout = &layout, .self = self, .n_connections = 1, .secret = secret};
	const struct psd_transport_join join = {.mesh = &mesh};
	struct psd_carrier carriers[2] = {{.fd = -1}, {.fd = -1}};
	struct psd_error err;

	carriers[1 - self].fd = fd;
	cr_assert_eq(psd_transport_tls.join(&join, carriers, &err), PSD_OK);
	cr_assert_eq(carriers[1 - self].transport, &psd_transport_tls);
	return carriers[1 - self];
}

static void open_tls(struct pair *pair, int fds[2])
{
	struct psd_secret *secret = make_secret("a secret of some length");
	int error = EAGAIN;
	uint8_t byte;

	psd_secret_renew_after(secret, RENEW_BYTES);
	cr_assert(psd_secret_begin(secret, fds[0], 1, true, 0) && psd_secret_begin(secret, fds[1], 0, false, 0));
	while (error == EAGAIN) {
		error = psd_secret_prove(secret, fds[0]);
		if (error == EAGAIN)
			cr_assert_eq(psd_secret_receive(secret, fds[1], &byte, 1), -1);
	}
	cr_assert_eq(error, 0);
	cr_assert(psd_secret_send(secret, fds[0], (const uint8_t *)"", 1));
	cr_assert_eq(psd_secret_receive(secret, fds[1], &byte, 1), 1);
	pair->from = take_session(fds[0], 1, secret);
	pair->to = take_session(fds[1], 0, secret);
	psd_secret_free(secret);
}

typedef void open_fn(struct pair *pair, int fds[2]);

/* One body, a test for each transport. */
#define OVER_EACH(name)                                                                                                \
	static void check_##name(open_fn *open);                                                                       \
	Test(transport, name##_by_tcp)                                                                                 \
	{                                                                                                              \
		check_##name(open_tcp);                                                                                \
	}                                                                                                              \
	Test(transport, name##_by_shared_memory)                                                                       \
	{                                                                                                              \
		check_##name(open_shared);                                                                             \
	}                                                                                                              \
	Test(transport, name##_by_tls)                                                                                 \
	{                                                                                                              \
		check_##name(open_tls);                                                                                \
	}                                                                                                              \
	static void check_##name(open_fn *open)

static struct pair open_pair(open_fn *open)
{
	struct pair pair;
	int fds[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	open(&pair, fds);
	return pair;
}

static void close_pair(struct pair *pair)
{
	psd_carrier_close(&pair->from);
	psd_carrier_close(&pair->to);
}

static uint8_t byte_at(uint64_t n)
{
	return (uint8_t)(n * UINT64_C(0x9e3779b97f4a7c15) >> 56);
}

static ssize_t send_bytes(struct psd_carrier *carrier, uint64_t at, size_t n_bytes)
{
	uint8_t bytes[2 * CHUNK_BYTES];
	const struct iovec segments[] = {{bytes, n_bytes / 3}, {bytes + n_bytes / 3, n_bytes - n_bytes / 3}};

	for (size_t i = 0; i < n_bytes; i++)
		bytes[i] = byte_at(at + i);
	return carrier->transport->send(carrier, segments, 2);
}

/* Reads at most n_bytes; as receive. */
static ssize_t check_bytes(struct psd_carrier *carrier, uint64_t at, size_t n_bytes)
{
	uint8_t bytes[2 * CHUNK_BYTES];
	const struct iovec segments[] = {{bytes, n_bytes / 2}, {bytes + n_bytes / 2, n_bytes - n_bytes / 2}};
	const ssize_t n_read = carrier->transport->receive(carrier, segments, 2);
	const int error = errno;

	for (ssize_t i = 0; i < n_read; i++)
		cr_assert_eq(bytes[i], byte_at(at + (uint64_t)i), "byte %llu",
			     (unsigned long long)at + (unsigned long long)i);
	errno = error;
	return n_read;
}

/* As the loop of streams does. */
static void await(struct psd_carrier *carrier, bool reads, bool sends)
{
	struct pollfd watched = {.fd = carrier->fd, .events = (short)carrier->transport->events(carrier, reads, sends)};

	if (carrier->transport->is_ready(carrier, reads, sends))
		return;
	cr_assert_eq(poll(&watched, 1, 60000), 1, "nobody wakes who waits");
	carrier->transport->hear(carrier);
}

/* As the loop does before it closes. */
static void let_go(struct psd_carrier *carrier)
{
	while (psd_carrier_holds(carrier))
		await(carrier, false, false);
}

/* In one thread, by sizes that share no factor with each other or with a ring, full and empty again and again. */
OVER_EACH(bytes_come_in_order)
{
	struct pair pair = open_pair(open);
	uint64_t sent = 0, taken = 0;

	while (taken < LONG_BYTES) {
		ssize_t n = 1;

		while (sent < LONG_BYTES && n > 0)
			if ((n = send_bytes(&pair.from, sent, 1 + sent % CHUNK_BYTES)) > 0)
				sent += (uint64_t)n;
		cr_assert(n > 0 || errno == EAGAIN);
		while ((n = check_bytes(&pair.to, taken, 2 * CHUNK_BYTES - 1)) > 0)
			taken += (uint64_t)n;
		cr_assert_eq(errno, EAGAIN);
		pair.from.transport->hear(&pair.from);
	}
	cr_assert_eq(taken, sent);
	close_pair(&pair);
}

/* ---- two threads, each of which sleeps when it has nothing to do ---- */

static void *send_long(void *context)
{
	struct psd_carrier *carrier = context;

	for (uint64_t sent = 0; sent < LONG_BYTES;) {
		const uint64_t left = LONG_BYTES - sent;
		const ssize_t n = send_bytes(carrier, sent, left < CHUNK_BYTES ? left : CHUNK_BYTES);

		if (n > 0)
			sent += (uint64_t)n;
		else
			await(carrier, false, true);
	}
	let_go(carrier);
	return NULL;
}

/* Rings fill and run empty as the machine has it. */
OVER_EACH(who_sleeps_is_woken)
{
	struct pair pair = open_pair(open);
	uint64_t taken = 0;
	pthread_t sender;

	cr_assert_eq(pthread_create(&sender, NULL, send_long, &pair.from), 0);
	while (taken < LONG_BYTES) {
		const ssize_t n = check_bytes(&pair.to, taken, 2 * CHUNK_BYTES);

		if (n > 0)
			taken += (uint64_t)n;
		else
			await(&pair.to, true, false);
	}
	cr_assert_eq(pthread_join(sender, NULL), 0);
	close_pair(&pair);
}

/* Every byte alone, each awaited before the next: the reader sleeps before each. */
OVER_EACH(each_byte_wakes_its_reader)
{
	struct pair pair = open_pair(open);

	for (uint64_t at = 0; at < 100; at++) {
		struct pollfd watched = {.fd = pair.to.fd,
					 .events = (short)pair.to.transport->events(&pair.to, true, false)};

		cr_assert_not(pair.to.transport->is_ready(&pair.to, true, false), "there is nothing");
		cr_assert_eq(poll(&watched, 1, 0), 0);
		cr_assert_eq(send_bytes(&pair.from, at, 1), 1);
		cr_assert_eq(poll(&watched, 1, 0), 1, "byte %llu wakes nobody", (unsigned long long)at);
		pair.to.transport->hear(&pair.to);
		cr_assert_eq(check_bytes(&pair.to, at, 2), 1);
	}
	close_pair(&pair);
}

/* ---- slow readers and ends ---- */

static uint64_t fill(struct psd_carrier *carrier)
{
	uint64_t sent = 0;
	ssize_t n;

	while ((n = send_bytes(carrier, sent, CHUNK_BYTES)) > 0)
		sent += (uint64_t)n;
	cr_assert_eq(errno, EAGAIN);
	return sent;
}

OVER_EACH(a_slow_reader_holds_the_writer_until_there_is_room)
{
	struct pair pair = open_pair(open);
	const uint64_t sent = fill(&pair.from);
	struct pollfd watched = {.fd = pair.from.fd,
				 .events = (short)pair.from.transport->events(&pair.from, false, true)};
	uint64_t taken = 0;

	cr_assert_not(pair.from.transport->is_ready(&pair.from, false, true));
	cr_assert_eq(poll(&watched, 1, 0), 0, "there is no room");
	while (taken < sent) {
		const ssize_t n = check_bytes(&pair.to, taken, 2 * CHUNK_BYTES);

		if (n > 0)
			taken += (uint64_t)n;
		else
			await(&pair.from, false, true); /* which holds what it has taken */
	}
	cr_assert_eq(poll(&watched, 1, 0), 1, "there is room");
	pair.from.transport->hear(&pair.from);
	cr_assert_eq(send_bytes(&pair.from, sent, 5), 5);
	cr_assert_eq(check_bytes(&pair.to, sent, 10), 5);
	close_pair(&pair);
}

/* The peer goes with a message half sent, the reader asleep. */
OVER_EACH(what_was_sent_before_an_end_comes_before_it)
{
	struct pair pair = open_pair(open);
	uint64_t taken = 0, sent;
	ssize_t n;

	cr_assert_not(pair.to.transport->is_ready(&pair.to, true, false));
	sent = fill(&pair.from);
	cr_assert_eq((pair.from.transport->events(&pair.from, false, false) & EPOLLOUT) != 0,
		     psd_carrier_holds(&pair.from), "the descriptor tells of room for what is held");
	while (psd_carrier_holds(&pair.from) && (n = check_bytes(&pair.to, taken, CHUNK_BYTES)) > 0) {
		taken += (uint64_t)n;
		pair.from.transport->hear(&pair.from);
	}
	psd_carrier_close(&pair.from);
	while ((n = check_bytes(&pair.to, taken, CHUNK_BYTES)) != 0)
		if (n > 0)
			taken += (uint64_t)n;
		else
			await(&pair.to, true, false);
	cr_assert_eq(taken, sent);
	close_pair(&pair);
}

OVER_EACH(an_end_wakes_who_reads)
{
	struct pair pair = open_pair(open);

	cr_assert_eq(send_bytes(&pair.from, 0, 3), 3);
	cr_assert_eq(check_bytes(&pair.to, 0, 3), 3);
	cr_assert_not(pair.to.transport->is_ready(&pair.to, true, false));
	psd_carrier_close(&pair.from);
	await(&pair.to, true, false);
	cr_assert_eq(check_bytes(&pair.to, 3, 1), 0);
	close_pair(&pair);
}
