/* Hosts of one node, each a process: pairs of hosts that share memory and pairs that do not. Both ends decide alike,
 * and with shared memory no tensor uses the connection. Other cases have a single host with the test as its peer, which
 * may pass anything. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/tcp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/un.h>

#include "real/cluster/process_group.h"
#include "real/net/connections.h"
#include "real/net/frame.h"
#include "real/net/rate_limit.h"
#include "real/net/ring_buffer.h"
#include "tests/real/emulation_helper.h"
#include "tests/test_with.h"

enum { MOST_HOSTS = 4, LINES = 2, LONG_BYTES = 6 * (1 << 20) + 77, PIECE_BYTES = 30011, SHARED_PORT = 7411 };

static const struct psd_socket_options no_options = {.has_buffers = false};

/* Shared by all hosts of a case. A process exits with the line of its first failed check, 0 if none failed. */
struct meeting {
	struct psd_layout layout;
	struct psd_mesh_host hosts[MOST_HOSTS];
	int listeners[MOST_HOSTS]; /* -1: they listen themselves */
	unsigned self;
	int (*act)(struct meeting *meeting); /* once they are joined */
	struct psd_carrier carriers[MOST_HOSTS * LINES];
	struct psd_mesh_options options;
	int fds[MOST_HOSTS * LINES];
	unsigned n_remarks;
	struct psd_rate_limit *limit;		   /* shared by a node's hosts, if there is a barrier */
	struct psd_process_group_barrier *barrier; /* all hosts wait at it */
	unsigned poor; /* this one can open no more than n_free descriptors once all are connected */
	rlim_t n_free;
};

#define CHECK(claim)                                                                                                   \
	do {                                                                                                           \
		if (!(claim))                                                                                          \
			return __LINE__ % 256 ? __LINE__ % 256 : 255;                                                  \
	} while (0)

static void count_remark(void *context, const char *line)
{
	struct meeting *meeting = context;

	meeting->n_remarks += strstr(line, "cannot share memory with worker ") != NULL;
}

/* The lowest free number is the first that is forbidden, or the next but so many. */
static void become_poor(rlim_t n_free)
{
	const int lowest = dup(0);
	struct rlimit limit = {(rlim_t)lowest + n_free, (rlim_t)lowest + n_free};

	close(lowest);
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

static int join_and_act(struct meeting *meeting)
{
	const struct psd_transport_join join = {&meeting->options, meeting->fds, psd_socket_now_sec() + WITHIN_SEC};
	struct psd_mesh_clock clock;
	struct psd_error err;

	meeting->options = (struct psd_mesh_options){.layout = &meeting->layout,
						     .hosts = meeting->hosts,
						     .self = meeting->self,
						     .n_connections = LINES,
						     .listener = meeting->listeners[meeting->self],
						     .terms = "",
						     .within_sec = WITHIN_SEC,
						     .greeting_sec = WITHIN_SEC,
						     .remind_sec = WITHIN_SEC,
						     .remark = count_remark,
						     .context = meeting};
	CHECK(psd_mesh_open(&meeting->options, meeting->fds, &clock, &err) == PSD_OK);
	if (meeting->self == meeting->poor)
		become_poor(meeting->n_free);
	if (meeting->barrier)
		CHECK(psd_rate_limit_share(&join, &meeting->limit, &err) == PSD_OK);
	CHECK(psd_transport_join(&join, meeting->carriers, &err) == PSD_OK);
	return meeting->act(meeting);
}

static void place(struct meeting *meeting)
{
	struct psd_error err;

	for (unsigned h = 0; h < psd_layout_hosts(&meeting->layout); h++) {
		struct psd_mesh_host *host = &meeting->hosts[h];

		snprintf(host->address, sizeof(host->address), "127.0.0.1");
		cr_assert_eq(
			psd_socket_listen(host->address, 0, &no_options, &meeting->listeners[h], &host->port, &err),
			PSD_OK, "%s", err.text);
	}
}

/* Each host in a process of its own, on loopback. */
static void meet(struct meeting *meeting)
{
	const unsigned n_hosts = psd_layout_hosts(&meeting->layout);
	pid_t processes[MOST_HOSTS];

	place(meeting);
	for (unsigned h = 0; h < n_hosts; h++) {
		processes[h] = fork();
		cr_assert_geq(processes[h], 0);
		if (processes[h] > 0)
			continue;
		meeting->self = h;
		_exit(join_and_act(meeting));
	}
	for (unsigned h = 0; h < n_hosts; h++) {
		int status = 0;

		close(meeting->listeners[h]);
		cr_assert_eq(waitpid(processes[h], &status, 0), processes[h]);
		cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "host %u: line %d", h, WEXITSTATUS(status));
	}
}

static bool is_joined_by(const struct meeting *meeting, unsigned host, const struct psd_transport *transport)
{
	for (unsigned l = 0; l < LINES; l++)
		if (meeting->carriers[host * LINES + l].transport != transport)
			return false;
	return true;
}

/* ---- data ---- */

static uint8_t byte_at(unsigned from, uint64_t n)
{
	return (uint8_t)((n + from) * UINT64_C(0x9e3779b97f4a7c15) >> 56);
}

static bool send_some(struct psd_carrier *carrier, unsigned self, uint64_t *sent)
{
	static uint8_t bytes[PIECE_BYTES];
	const uint64_t left = LONG_BYTES - *sent;
	const struct iovec piece = {bytes, left < PIECE_BYTES ? left : PIECE_BYTES};
	ssize_t n_sent;

	for (size_t i = 0; i < piece.iov_len; i++)
		bytes[i] = byte_at(self, *sent + i);
	n_sent = carrier->transport->send(carrier, &piece, 1);
	*sent += n_sent > 0 ? (uint64_t)n_sent : 0;
	return n_sent > 0;
}

/* False: nothing there. The bytes that came are right, and no end did, or *is_wrong. */
static bool receive_some(struct psd_carrier *carrier, unsigned peer, uint64_t *taken, bool *is_wrong)
{
	static uint8_t bytes[PIECE_BYTES];
	const struct iovec piece = {bytes, sizeof(bytes)};
	const ssize_t n_taken = carrier->transport->receive(carrier, &piece, 1);

	*is_wrong = *is_wrong || n_taken == 0;
	for (ssize_t i = 0; i < n_taken; i++)
		*is_wrong = *is_wrong || bytes[i] != byte_at(peer, *taken + (uint64_t)i);
	*taken += n_taken > 0 ? (uint64_t)n_taken : 0;
	return n_taken > 0;
}

/* Both send as much as the other takes, at once. */
static int exchange(struct psd_carrier *carrier, unsigned self, unsigned peer)
{
	uint64_t sent = 0, taken = 0;
	bool is_wrong = false;

	while (!is_wrong && (sent < LONG_BYTES || taken < LONG_BYTES)) {
		const bool sends = sent < LONG_BYTES, reads = taken < LONG_BYTES;
		struct pollfd watched = {.fd = carrier->fd,
					 .events = (short)carrier->transport->events(carrier, reads, sends)};
		const bool has_sent = sends && send_some(carrier, self, &sent),
			   has_taken = reads && receive_some(carrier, peer, &taken, &is_wrong);

		if (has_sent || has_taken || carrier->transport->is_ready(carrier, reads, sends))
			continue;
		CHECK(poll(&watched, 1, (int)(1000 * WITHIN_SEC)) == 1);
		carrier->transport->hear(carrier);
	}
	CHECK(!is_wrong && taken == LONG_BYTES);
	return 0;
}

static uint64_t bytes_received(int fd)
{
	struct tcp_info info = {0};
	socklen_t info_bytes = sizeof(info);

	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &info_bytes) < 0 ? UINT64_MAX : info.tcpi_bytes_received;
}

/* Hosts 0 and 1. */
static int exchange_within(struct meeting *meeting)
{
	const unsigned self = meeting->self, peer = 1 - self;
	struct psd_carrier *carrier = &meeting->carriers[peer * LINES + 1];
	uint64_t before_bytes;
	int line;

	CHECK(is_joined_by(meeting, 2, &psd_transport_tcp));
	CHECK(is_joined_by(meeting, peer, &psd_transport_shared));
	before_bytes = bytes_received(carrier->fd);
	line = exchange(carrier, self, peer);
	CHECK(bytes_received(carrier->fd) - before_bytes < LONG_BYTES / 1000); /* a byte wakes, no more */
	return line;
}

/* Hosts 0 and 1 share a node, 2 has one to itself. */
static int exchange_on_node(struct meeting *meeting)
{
	CHECK(meeting->n_remarks == 0);
	if (meeting->self < 2)
		return exchange_within(meeting);
	CHECK(is_joined_by(meeting, 0, &psd_transport_tcp) && is_joined_by(meeting, 1, &psd_transport_tcp));
	return 0;
}

Test(shared, processes_of_a_node_share_memory)
{
	struct meeting meeting = {.layout = psd_layout_make(3, 2, 0), .act = exchange_on_node, .poor = MOST_HOSTS};

	meet(&meeting);
}

/* ---- where it cannot be ---- */

static int exchange_by_tcp(struct meeting *meeting)
{
	const unsigned peer = 1 - meeting->self;

	CHECK(is_joined_by(meeting, peer, &psd_transport_tcp));
	CHECK(meeting->n_remarks == (meeting->self == meeting->poor)); /* once, by the host with too few descriptors */
	return exchange(&meeting->carriers[peer * LINES], meeting->self, peer);
}

/* Without a descriptor there is no socket and no memory; with one, no second. */
Test(shared, if_one_cannot_share_both_stay_with_tcp)
{
	for (unsigned poor = 0; poor < 2; poor++)
		for (rlim_t n_free = 0; n_free < 2; n_free++) {
			struct meeting meeting = {.layout = psd_layout_make(2, 2, 0),
						  .act = exchange_by_tcp,
						  .poor = poor,
						  .n_free = n_free};

			meet(&meeting);
		}
}

/* A file of hosts may say that hosts share a node which do not. */
static int compare_nodes(struct meeting *meeting)
{
	for (unsigned h = 0; h < 3; h++)
		if (h != meeting->self)
			CHECK(is_joined_by(meeting, h,
					   h == 2 || meeting->self == 2 ? &psd_transport_tcp : &psd_transport_shared));
	return meeting->self < 2
		       ? exchange(&meeting->carriers[(1 - meeting->self) * LINES], meeting->self, 1 - meeting->self)
		       : 0;
}

static int join_in_node(void *context, unsigned node)
{
	(void)node;
	return join_and_act(context);
}

Test(shared, hosts_in_other_namespaces_stay_with_tcp)
{
	struct psd_emulation *emulation = open_or_skip(2);
	struct meeting meeting = {.layout = psd_layout_make(3, 3, 0), .act = compare_nodes, .poor = MOST_HOSTS};

	for (unsigned h = 0; h < 3; h++) {
		psd_emulation_address(h / 2, meeting.hosts[h].address);
		meeting.hosts[h].port = (uint16_t)(SHARED_PORT + h);
		meeting.listeners[h] = -1;
	}
	for (unsigned h = 0; h < 3; h++) {
		meeting.self = h;
		(void)start_in_node(emulation, h / 2, join_in_node, &meeting);
	}
	for (unsigned h = 0; h < 3; h++)
		expect_success();
	psd_emulation_close(emulation);
}

/* ---- a limit of a node ---- */

#define SHARE_BPS 40e6
#define NOW_SEC	  1.0

enum { GRANT_BYTES = 5000 }; /* 1 ms of a share */

/* Sums grants at one time until there are none. */
static uint64_t take_all(struct psd_rate_limit *limit)
{
	uint64_t all_bytes = 0, bytes;
	double ready_sec;

	while ((bytes = psd_rate_limit_take(limit, true, UINT64_MAX, NOW_SEC, &ready_sec)) > 0)
		all_bytes += bytes;
	return all_bytes;
}

/* Hosts 0 to 2 share a node, and two or three of them the limit; host 3 has a node to itself. Checks follow the last
 * barrier: a host that fails one would leave the others there. */
static int use_limit(struct meeting *meeting)
{
	const unsigned self = meeting->self, n_sharing = meeting->poor == 1 ? 2 : 3;
	struct psd_rate_limit *limit = meeting->limit;
	uint64_t bytes = 0;

	if (limit)
		psd_rate_limit_add(limit, SHARE_BPS, SHARE_BPS, NOW_SEC);
	psd_process_group_barrier_wait(meeting->barrier);
	if (limit && self == 0)
		bytes = take_all(limit);
	psd_process_group_barrier_wait(meeting->barrier);
	if (limit && self == 2)
		bytes = take_all(limit);
	CHECK((limit != NULL) == (self < 3 && self != meeting->poor));
	/* 2.5 ms of all rates are saved, in them two whole grants of 1 ms; the first host leaves nothing */
	CHECK(bytes == (self == 0 ? 2 * n_sharing * GRANT_BYTES : 0));
	CHECK(meeting->poor != self || meeting->n_remarks > 0);
	psd_rate_limit_unshare(limit);
	return 0;
}

static void meet_by_limit(unsigned poor)
{
	struct meeting meeting = {.layout = psd_layout_make(4, 3, 0), .act = use_limit, .poor = poor};
	struct psd_error err;

	cr_assert_eq(psd_process_group_barrier_open(&meeting.barrier, MOST_HOSTS, &err), PSD_OK, "%s", err.text);
	meet(&meeting);
	psd_process_group_barrier_close(meeting.barrier);
}

Test(shared, processes_of_a_node_share_its_limit)
{
	meet_by_limit(MOST_HOSTS);
}

Test(shared, a_process_that_cannot_share_the_limit_keeps_its_part)
{
	meet_by_limit(1);
}

Test(shared, a_process_that_dies_with_the_limit_leaves_it_to_others)
{
	struct psd_rate_limit *limit = psd_process_group_share(sizeof(*limit));
	int status = 0;

	cr_assert_not_null(limit);
	psd_rate_limit_init(limit);
	psd_rate_limit_add(limit, SHARE_BPS, SHARE_BPS, NOW_SEC);
	const pid_t process = fork();
	if (process == 0)
		_exit(pthread_mutex_lock(&limit->mutex));
	cr_assert_eq(waitpid(process, &status, 0), process);
	cr_assert_eq(status, 0);
	cr_expect_eq(take_all(limit), 3 * GRANT_BYTES); /* one share saves 3.5 ms */
	cr_expect_eq(take_all(limit), 0);
	psd_process_group_unshare(limit, sizeof(*limit));
}

/* ---- a peer by hand ---- */

struct hand {
	int fd; /* the test's end of the connection */
	unsigned self;
	struct psd_carrier carrier; /* the other end's, of a host in a thread */
	enum psd_status status;
	struct psd_error err;
	pthread_t thread;
};

static void *join_alone(void *context)
{
	static const struct psd_mesh_host hosts[2] = {{"127.0.0.1", 1}, {"127.0.0.1", 2}};
	struct hand *hand = context;
	const struct psd_layout layout = psd_layout_make(2, 2, 0);
	const struct psd_mesh_options mesh = {
		.layout = &layout, .hosts = hosts, .self = 1 - hand->self, .n_connections = 1};
	int fds[2] = {-1, -1};
	const struct psd_transport_join join = {&mesh, fds, psd_socket_now_sec() + WITHIN_SEC};
	struct psd_carrier carriers[2];

	fds[hand->self] = hand->carrier.fd;
	hand->status = psd_transport_join(&join, carriers, &hand->err);
	hand->carrier = carriers[hand->self];
	return NULL;
}

static void open_hand(struct hand *hand, unsigned self)
{
	int fds[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	*hand = (struct hand){.fd = fds[0], .self = self, .carrier.fd = fds[1]};
	cr_assert_eq(pthread_create(&hand->thread, NULL, join_alone, hand), 0);
}

static void close_hand(struct hand *hand)
{
	psd_carrier_close(&hand->carrier);
	close(hand->fd);
}

static void say(const struct hand *hand, bool is_yes, const uint64_t key[4])
{
	uint8_t words[PSD_WIRE_TRANSPORT_BYTES] = {is_yes};
	struct psd_error err;

	memcpy(words + 1, key, 4 * sizeof(*key));
	cr_assert_eq(psd_frame_send("the host", hand->fd, NULL, PSD_WIRE_TRANSPORT, words, &err), PSD_OK, "%s",
		     err.text);
}

static bool hear(const struct hand *hand, uint64_t key[4])
{
	union psd_wire_payload words;
	struct psd_error err;

	cr_assert_eq(psd_frame_read("the host", hand->fd, NULL, PSD_WIRE_TRANSPORT, &words,
				    psd_socket_now_sec() + WITHIN_SEC, &err),
		     PSD_OK, "%s", err.text);
	memcpy(key, words.raw + 1, 4 * sizeof(*key));
	return words.raw[0];
}

static socklen_t address_of(const uint64_t key[4], struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	return (socklen_t)offsetof(struct sockaddr_un, sun_path) + 1 +
	       (socklen_t)snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1,
				   "psd-%016" PRIx64 "%016" PRIx64, key[0], key[1]);
}

/* Passes a message with a descriptor to the host that waits there. */
static void pass(const uint64_t key[4], uint64_t secret, int passed_fd)
{
	struct sockaddr_un address;
	uint64_t secrets[2] = {secret, key[3]};
	struct iovec piece = {secrets, sizeof(secrets)};
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	const struct msghdr message = {.msg_name = &address,
				       .msg_namelen = address_of(key, &address),
				       .msg_iov = &piece,
				       .msg_iovlen = 1,
				       .msg_control = &control,
				       .msg_controllen = sizeof(control)};
	const int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	memcpy(CMSG_DATA(&control.head), &passed_fd, sizeof(passed_fd));
	cr_assert_eq(sendmsg(fd, &message, 0), (ssize_t)sizeof(secrets), "%s", strerror(errno));
	close(fd);
}

static int make_memory(size_t n_bytes, int seals)
{
	const int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	cr_assert_eq(ftruncate(fd, (off_t)n_bytes), 0);
	cr_assert_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

/* The test has the higher number and passes memory. Returns that memory, and the result of passing it. */
static struct psd_ring_buffer *pass_memory(struct hand *hand, size_t n_bytes, int seals, bool is_known, bool *is_taken)
{
	const int fd = make_memory(n_bytes, seals);
	struct psd_ring_buffer *rings = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	uint64_t key[4], ignored[4];

	cr_assert_neq((void *)rings, MAP_FAILED);
	open_hand(hand, 1);
	cr_assert(hear(hand, key));
	pass(key, key[2] + 1, fd); /* first a stranger's, with another secret */
	if (is_known)
		pass(key, key[2], fd);
	say(hand, true, key);
	*is_taken = hear(hand, ignored);
	cr_assert_eq(pthread_join(hand->thread, NULL), 0);
	cr_assert_eq(hand->status, PSD_OK, "%s", hand->err.text);
	cr_expect_eq(hand->carrier.transport, *is_taken ? &psd_transport_shared : &psd_transport_tcp);
	close(fd);
	return rings;
}

static void check_memory(size_t n_bytes, int seals, bool is_known, bool is_right)
{
	struct hand hand;
	bool is_taken = false;
	struct psd_ring_buffer *rings = pass_memory(&hand, n_bytes, seals, is_known, &is_taken);

	cr_expect_eq(is_taken, is_right, "%zu bytes, seals %x", n_bytes, (unsigned)seals);
	close_hand(&hand);
	munmap(rings, n_bytes);
}

/* Memory that its maker may shorten, or has made too short, kills a process that reads behind its end. */
Test(shared, memory_that_may_be_shortened_is_refused)
{
	const size_t n_bytes = 2 * sizeof(struct psd_ring_buffer);

	check_memory(n_bytes, F_SEAL_SHRINK, true, true);
	check_memory(n_bytes, 0, true, false);
	check_memory(n_bytes, F_SEAL_GROW | F_SEAL_SEAL, true, false);
	check_memory(n_bytes - 1, F_SEAL_SHRINK, true, false);
	check_memory(2 * n_bytes, F_SEAL_SHRINK, true, false);
}

TEST_ROW(shared, memory_offered_without_the_secret_is_not_mapped,
	 check_memory(2 * sizeof(struct psd_ring_buffer), F_SEAL_SHRINK, false, false))

/* ---- and then writes what it likes ---- */

static enum psd_acceptance expect(void *context, unsigned peer, const struct psd_wire_head *head,
				  struct psd_destination *destination, struct psd_error *err)
{
	(void)context, (void)peer, (void)head, (void)destination, (void)err;
	return PSD_ACCEPT_NOW;
}

static void arrived(void *context, unsigned peer, const struct psd_wire_head *head, const uint8_t *tag)
{
	(void)context, (void)peer, (void)head, (void)tag;
}

static void left(void *context, unsigned peer)
{
	(void)context, (void)peer;
}

/* Why the connection was closed; -1: it was not. */
static enum psd_status lost(void *context, unsigned peer, int error_number, struct psd_error *err)
{
	(void)peer, (void)err;
	*(int *)context = error_number;
	return PSD_OK;
}

static int turn_and_tell(struct hand *hand, bool sends)
{
	int why = -1;
	const struct psd_connections_options options = {
		.n_peers = 1,
		.n_connections = 1,
		.carriers = &hand->carrier,
		.wake_fd = eventfd(0, EFD_NONBLOCK),
		.owner = {.expect = expect, .arrived = arrived, .left = left, .lost = lost, .context = &why},
	};
	const struct psd_wire_head head = {.kind = PSD_WIRE_ALIVE};
	struct psd_connections *connections;
	struct psd_error err;
	bool has_moved;

	cr_assert_eq(psd_connections_open(&connections, &options, &err), PSD_OK, "%s", err.text);
	hand->carrier.fd = -1; /* the streams' now */
	if (sends)
		cr_assert(psd_connections_send_small(connections, 0, &head, NULL));
	for (unsigned t = 0; t < 3; t++)
		cr_assert_eq(psd_connections_turn(connections, 0, &has_moved, &err), PSD_OK, "%s", err.text);
	psd_connections_close(connections);
	close(options.wake_fd);
	return why;
}

static void check_rubbish(unsigned ring, bool is_written, uint64_t rubbish, bool sends, int why)
{
	struct hand hand;
	bool is_taken;
	struct psd_ring_buffer *rings =
		pass_memory(&hand, 2 * sizeof(struct psd_ring_buffer), F_SEAL_SHRINK, true, &is_taken);

	cr_assert(is_taken);
	atomic_store(is_written ? &rings[ring].n_written : &rings[ring].n_read, rubbish);
	cr_expect_eq(turn_and_tell(&hand, sends), why, "ring %u: %llu", ring, (unsigned long long)rubbish);
	close(hand.fd);
	munmap(rings, 2 * sizeof(struct psd_ring_buffer));
}

/* The lower number writes into the first ring and reads from the second. */
Test(shared, rubbish_in_the_memory_closes_the_connection)
{
	check_rubbish(0, false, 0, true, -1);
	check_rubbish(1, true, PSD_RING_BUFFER_BYTES + 1, false, EPROTO);
	check_rubbish(1, true, UINT64_MAX, false, EPROTO);
	check_rubbish(0, false, 1, true, EPROTO); /* nothing has been written yet */
	check_rubbish(0, false, UINT64_C(1) << 40, true, EPROTO);
}
