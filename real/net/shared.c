/* Transport between hosts of one node: a ring buffer for each direction in shared memory. The connection carries single
 * bytes that wake the peer, and reports its end.
 *
 * Setup: the host with the lower number listens on a local socket with a random abstract name, and sends name and
 * secret over the connection. The other host creates anonymous memory and passes its descriptor there with the secret,
 * since all processes can list names. This works if both share a network namespace, as processes without a link between
 * them do. On any failure both use the next transport, and one of them says why. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "real/net/frame.h"
#include "real/net/ring_buffer.h"
#include "real/net/transport.h"

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL }; /* shortening mapped memory would kill its users */
enum { MOST_STRANGERS = 64 };				    /* limit of messages examined */

/* State of one carrier. */
struct shared {
	struct psd_ring_buffer *rings; /* from lower to higher host, and back */
	struct psd_ring_buffer_end out, in;
	bool is_over; /* the peer has closed the connection */
};

enum { MEMORY_BYTES = 2 * sizeof(struct psd_ring_buffer) };

/* ---- memory ---- */

/* Closes fd if valid and keeps errno. Returns -1. */
static int drop(int fd)
{
	const int error = errno;

	if (fd >= 0)
		close(fd);
	errno = error;
	return -1;
}

/* Allocates all pages at once, so that a lack of memory shows here. Returns a descriptor, or -1 with errno. */
static int make_memory(void)
{
	const int fd = memfd_create("psd", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -1;
	errno = posix_fallocate(fd, 0, MEMORY_BYTES);
	return errno || fcntl(fd, F_ADD_SEALS, SEALS) < 0 ? drop(fd) : fd;
}

static bool is_memory(int fd)
{
	const int seals = fcntl(fd, F_GET_SEALS); /* such memory only */
	struct stat file;

	return seals >= 0 && (seals & F_SEAL_SHRINK) && fstat(fd, &file) == 0 && file.st_size == MEMORY_BYTES;
}

static void unshare_memory(struct shared *shared)
{
	if (shared)
		munmap(shared->rings, MEMORY_BYTES);
	free(shared);
}

/* Returns NULL with errno on failure. */
static struct shared *map_memory(int fd, bool is_lower)
{
	struct shared *shared = calloc(1, sizeof(*shared));

	if (!shared)
		return NULL;
	shared->rings = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared->rings == MAP_FAILED) {
		free(shared);
		return NULL;
	}
	shared->out.ring = &shared->rings[is_lower ? 0 : 1];
	shared->in.ring = &shared->rings[is_lower ? 1 : 0];
	return shared;
}

/* ---- passing memory ---- */

/* Random key of one connection. */
struct key {
	uint64_t name[2], secret[2];
};

static const struct key no_key;

static socklen_t write_address(const struct key *key, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	/* leading zero: abstract name, gone with the socket */
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1) +
	       (socklen_t)snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1,
				   "psd-%016" PRIx64 "%016" PRIx64, key->name[0], key->name[1]);
}

static int open_socket(void)
{
	return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* Opens the local socket. Returns a descriptor, or -1 with errno. */
static int open_local_socket(struct key *key)
{
	struct sockaddr_un address;

	if (getrandom(key, sizeof(*key), 0) != (ssize_t)sizeof(*key))
		return -1;
	const int fd = open_socket();
	return fd < 0 || bind(fd, (struct sockaddr *)&address, write_address(key, &address)) < 0 ? drop(fd) : fd;
}

/* Space for one descriptor beside a message, aligned for the kernel. */
union passed {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(sizeof(int))];
};

static bool pass(int memory_fd, const struct key *key)
{
	struct sockaddr_un address;
	struct iovec secret = {(void *)key->secret, sizeof(key->secret)}; /* read only */
	union passed passed = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	const struct msghdr message = {.msg_name = &address,
				       .msg_namelen = write_address(key, &address),
				       .msg_iov = &secret,
				       .msg_iovlen = 1,
				       .msg_control = &passed,
				       .msg_controllen = sizeof(passed)};
	const int fd = open_socket();

	memcpy(CMSG_DATA(&passed.head), &memory_fd, sizeof(memory_fd));
	const bool is_passed = fd >= 0 && sendmsg(fd, &message, MSG_NOSIGNAL) == (ssize_t)sizeof(key->secret);
	(void)drop(fd);
	return is_passed;
}

/* Returns a passed descriptor, or -1. *is_known: the secret matched. *is_empty: no message was there. */
static int take_passed(int local_fd, const struct key *key, bool *is_known, bool *is_empty)
{
	uint64_t secret[2] = {0, 0};
	struct iovec piece = {secret, sizeof(secret)};
	union passed passed = {.bytes = {0}};
	struct msghdr message = {
		.msg_iov = &piece, .msg_iovlen = 1, .msg_control = &passed, .msg_controllen = sizeof(passed)};
	const ssize_t n_bytes = recvmsg(local_fd, &message, MSG_CMSG_CLOEXEC);
	const struct cmsghdr *head = n_bytes < 0 ? NULL : CMSG_FIRSTHDR(&message);
	int fd = -1;

	*is_empty = n_bytes < 0;
	*is_known = n_bytes == (ssize_t)sizeof(secret) && memcmp(secret, key->secret, sizeof(secret)) == 0;
	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(head), sizeof(fd));
	return fd;
}

/* The peer says that it has sent. Returns NULL with errno on failure. */
static struct shared *take_memory(int local_fd, const struct key *key)
{
	bool is_known = false, is_empty = false;
	struct shared *shared = NULL;
	int fd = -1;

	for (unsigned i = 0; i < MOST_STRANGERS && !is_known && !is_empty; i++) {
		(void)drop(fd);
		fd = take_passed(local_fd, key, &is_known, &is_empty);
	}
	if (!is_known)
		errno = EAGAIN;
	else if (fd < 0)
		errno = EMFILE; /* a process without free descriptors receives none */
	else if (!is_memory(fd))
		errno = EPROTO;
	else
		shared = map_memory(fd, true);
	(void)drop(fd);
	return shared;
}

static struct shared *give_memory(const struct key *key)
{
	const int fd = make_memory();
	struct shared *shared = fd < 0 ? NULL : map_memory(fd, false);

	if (shared && !pass(fd, key)) {
		const int error = errno;

		unshare_memory(shared);
		shared = NULL;
		errno = error;
	}
	(void)drop(fd);
	return shared;
}

/* ---- agreement ---- */

struct meeting {
	const struct psd_transport_join *join;
	const char *peer;
	struct psd_carrier *carrier;
	bool *has_remarked;
};

static enum psd_status say(const struct meeting *meeting, bool is_yes, const struct key *key, struct psd_error *err)
{
	uint8_t words[PSD_WIRE_TRANSPORT_BYTES] = {is_yes};

	memcpy(words + 1, key, sizeof(*key)); /* machines of another byte order share no memory */
	return psd_frame_send(meeting->peer, meeting->carrier->fd, meeting->join->mesh->secret, PSD_WIRE_TRANSPORT,
			      words, err);
}

static enum psd_status listen_to(const struct meeting *meeting, bool *is_yes, struct key *key, struct psd_error *err)
{
	union psd_wire_payload words;

	PSD_TRY(psd_frame_read(meeting->peer, meeting->carrier->fd, meeting->join->mesh->secret, PSD_WIRE_TRANSPORT,
			       &words, meeting->join->until_sec, err));
	*is_yes = words.raw[0] != 0;
	memcpy(key, words.raw + 1, sizeof(*key));
	return PSD_OK;
}

/* Once; errno says why. */
static void remark(const struct meeting *meeting)
{
	const struct psd_mesh_options *mesh = meeting->join->mesh;
	struct psd_error line;

	psd_error_set(&line, PSD_ERUN, PSD_NOWHERE, "cannot share memory with %s, TCP is used: %s", meeting->peer,
		      strerror(errno));
	if (mesh->remark && !*meeting->has_remarked)
		mesh->remark(mesh->context, line.text);
	*meeting->has_remarked = true;
}

/* Uses the memory if the peer has it, too. */
static void settle(const struct meeting *meeting, struct shared *shared, bool has_peer)
{
	if (!shared || !has_peer) {
		unshare_memory(shared);
		return;
	}
	meeting->carrier->own = shared;
	meeting->carrier->transport = &psd_transport_shared;
}

static enum psd_status meet_higher(const struct meeting *meeting, struct psd_error *err)
{
	struct key key = no_key, ignored;
	const int local_fd = open_local_socket(&key);
	struct shared *shared = NULL;
	bool is_given = false;

	if (local_fd < 0)
		remark(meeting);
	enum psd_status status = say(meeting, local_fd >= 0, &key, err);
	if (!status)
		status = listen_to(meeting, &is_given, &ignored, err);
	if (!status && is_given) {
		shared = take_memory(local_fd, &key);
		if (!shared)
			remark(meeting);
	}
	if (!status)
		status = say(meeting, shared, &no_key, err);
	settle(meeting, shared, !status);
	(void)drop(local_fd);
	return status;
}

static enum psd_status meet_lower(const struct meeting *meeting, struct psd_error *err)
{
	struct key key;
	struct shared *shared = NULL;
	bool is_open = false, is_taken = false;
	enum psd_status status = listen_to(meeting, &is_open, &key, err);

	if (!status && is_open) {
		shared = give_memory(&key);
		if (!shared)
			remark(meeting);
	}
	if (!status)
		status = say(meeting, shared, &no_key, err);
	if (!status)
		status = listen_to(meeting, &is_taken, &key, err);
	settle(meeting, shared, !status && is_taken);
	return status;
}

/* Every host goes through its peers in order, so the first pair still to agree always can. */
static enum psd_status join_node(const struct psd_transport_join *join, struct psd_carrier carriers[],
				 struct psd_error *err)
{
	const struct psd_mesh_options *mesh = join->mesh;
	const unsigned node = psd_layout_node(mesh->layout, mesh->self);
	bool has_remarked = false;

	for (unsigned i = 0; i < psd_layout_hosts(mesh->layout) * mesh->n_connections; i++) {
		const unsigned host = i / mesh->n_connections;
		char name[PSD_MESH_NAME_MAX];
		struct meeting meeting = {join, name, &carriers[i], &has_remarked};

		if (host == mesh->self || carriers[i].transport || psd_layout_node(mesh->layout, host) != node)
			continue;
		psd_mesh_name(mesh->layout, mesh->hosts, host, name);
		PSD_TRY(mesh->self < host ? meet_higher(&meeting, err) : meet_lower(&meeting, err));
	}
	return PSD_OK;
}

/* ---- transfer ---- */

/* A peer whose buffer is full of such bytes is awake; a peer that is gone hears nothing. */
static void wake(const struct psd_carrier *carrier)
{
	(void)send(carrier->fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static ssize_t send_pieces(struct psd_carrier *carrier, const struct iovec segments[], unsigned n_segments)
{
	struct shared *shared = carrier->own;
	bool wakes = false;

	if (shared->is_over) {
		errno = EPIPE;
		return -1;
	}
	const ssize_t n_sent = psd_ring_buffer_write(&shared->out, segments, n_segments, &wakes);
	if (wakes)
		wake(carrier);
	return n_sent;
}

static ssize_t receive_pieces(struct psd_carrier *carrier, const struct iovec segments[], unsigned n_segments)
{
	struct shared *shared = carrier->own;
	bool wakes = false;
	const ssize_t n_read = psd_ring_buffer_read(&shared->in, segments, n_segments, &wakes);

	if (wakes)
		wake(carrier);
	return n_read < 0 && errno == EAGAIN && shared->is_over ? 0 : n_read;
}

/* A connection that waits for nothing still reports its end. */
static uint32_t events(const struct psd_carrier *carrier, bool reads, bool sends)
{
	(void)carrier;
	return reads || sends ? (uint32_t)EPOLLIN : (uint32_t)EPOLLRDHUP;
}

/* Calls both: each must announce its sleep. */
static bool is_ready(struct psd_carrier *carrier, bool reads, bool sends)
{
	struct shared *shared = carrier->own;
	const bool may_read = reads && (shared->is_over || psd_ring_buffer_may_read(&shared->in));
	const bool may_send = sends && !shared->is_over && psd_ring_buffer_may_write(&shared->out);

	return may_read || may_send;
}

/* A peer that leaves without reading all wake-up bytes causes ECONNRESET, which is its end and no error. Closing this
 * side too makes the descriptor report it whatever is watched. */
static void hear(struct psd_carrier *carrier)
{
	struct shared *shared = carrier->own;
	uint8_t calls[64];
	const ssize_t n_read = recv(carrier->fd, calls, sizeof(calls), MSG_DONTWAIT);

	if (n_read > 0 || (n_read < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	shared->is_over = true;
	(void)shutdown(carrier->fd, SHUT_RDWR);
}

/* The ring wakes seldom anyway. */
static void set_limit(struct psd_carrier *carrier, size_t bytes)
{
	(void)carrier, (void)bytes;
}

static void release(struct psd_carrier *carrier)
{
	unshare_memory(carrier->own);
	carrier->own = NULL;
}

const struct psd_transport psd_transport_shared = {
	.name = "shared",
	.join = join_node,
	.send = send_pieces,
	.receive = receive_pieces,
	.events = events,
	.is_ready = is_ready,
	.hear = hear,
	.set_low_water = set_limit,
	.limit_unsent = set_limit,
	.release = release,
};
