/* Transport between hosts of one node: a ring buffer for each direction in shared memory. The connection carries single
 * bytes that wake the peer, and reports its end. If memory cannot be shared, both use the next transport, and one of
 * them says why. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "real/net/node_memory.h"
#include "real/net/ring_buffer.h"
#include "real/net/transport.h"

/* State of one carrier. */
struct shared {
	struct psd_ring_buffer *rings; /* from lower to higher host, and back */
	struct psd_ring_buffer_end out, in;
	bool is_over; /* the peer has closed the connection */
};

enum { MEMORY_BYTES = 2 * sizeof(struct psd_ring_buffer) };

/* ---- setup ---- */

static enum psd_status give_rings(const struct psd_node_meeting *meeting, struct psd_ring_buffer **rings,
				  struct psd_error *err)
{
	struct psd_node_memory memory = {.fd = -1};
	bool is_taken = false;
	const enum psd_status status = psd_node_memory_give(meeting, &memory, &is_taken, err);

	if (memory.fd >= 0)
		close(memory.fd);
	if (is_taken)
		*rings = memory.bytes;
	else
		psd_node_memory_unmap(memory.bytes, meeting->n_bytes);
	return status;
}

static enum psd_status take_rings(const struct psd_node_meeting *meeting, struct psd_ring_buffer **rings,
				  struct psd_error *err)
{
	void *bytes = NULL;
	const enum psd_status status = psd_node_memory_take(meeting, &bytes, err);

	*rings = bytes;
	return status;
}

/* Uses the memory if both ends have it. */
static enum psd_status meet(const struct psd_node_meeting *meeting, struct psd_carrier *carrier, struct psd_error *err)
{
	const bool is_lower = meeting->join->mesh->self < meeting->peer;
	struct shared *shared = calloc(1, sizeof(*shared));

	if (!shared)
		return psd_out_of_memory(err);
	const enum psd_status status =
		is_lower ? take_rings(meeting, &shared->rings, err) : give_rings(meeting, &shared->rings, err);
	if (status || !shared->rings) {
		free(shared);
		return status;
	}
	shared->out.ring = &shared->rings[is_lower ? 0 : 1];
	shared->in.ring = &shared->rings[is_lower ? 1 : 0];
	carrier->own = shared;
	carrier->transport = &psd_transport_shared;
	return PSD_OK;
}

/* Every host goes through its peers in order, so the first pair still to agree always can. */
static enum psd_status join_node(const struct psd_transport_join *join, struct psd_carrier carriers[],
				 struct psd_error *err)
{
	const struct psd_mesh_options *mesh = join->mesh;
	const unsigned node = psd_layout_node(mesh->layout, mesh->self);
	bool has_remarked = false;

	for (unsigned i = 0; i < psd_layout_hosts(mesh->layout) * mesh->n_connections; i++) {
		const struct psd_node_meeting meeting = {.join = join,
							 .peer = i / mesh->n_connections,
							 .fd = carriers[i].fd,
							 .n_bytes = MEMORY_BYTES,
							 .otherwise = "TCP is used",
							 .has_remarked = &has_remarked};

		if (meeting.peer == mesh->self || carriers[i].transport ||
		    psd_layout_node(mesh->layout, meeting.peer) != node)
			continue;
		PSD_TRY(meet(&meeting, &carriers[i], err));
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
	struct shared *shared = carrier->own;

	psd_node_memory_unmap(shared->rings, MEMORY_BYTES);
	free(shared);
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
