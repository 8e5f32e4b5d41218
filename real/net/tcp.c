/* Transport over the kernel's stream sockets, of any kind. */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "real/net/transport.h"

static enum psd_status take_all(const struct psd_transport_join *join, struct psd_carrier carriers[],
				struct psd_error *err)
{
	(void)err;
	for (unsigned i = 0; i < psd_layout_hosts(join->mesh->layout) * join->mesh->n_connections; i++)
		if (!carriers[i].transport)
			carriers[i].transport = &psd_transport_tcp;
	return PSD_OK;
}

static struct msghdr message_of(const struct iovec segments[], unsigned n_segments)
{
	return (struct msghdr){.msg_iov = (struct iovec *)segments, .msg_iovlen = n_segments}; /* read only */
}

static ssize_t send_pieces(struct psd_carrier *carrier, const struct iovec segments[], unsigned n_segments)
{
	const struct msghdr message = message_of(segments, n_segments);

	return sendmsg(carrier->fd, &message, MSG_NOSIGNAL | (carrier->has_more ? MSG_MORE : 0));
}

static ssize_t receive_pieces(struct psd_carrier *carrier, const struct iovec segments[], unsigned n_segments)
{
	struct msghdr message = message_of(segments, n_segments);

	return recvmsg(carrier->fd, &message, 0);
}

static uint32_t events(const struct psd_carrier *carrier, bool reads, bool sends)
{
	(void)carrier;
	return (reads ? (uint32_t)EPOLLIN : 0u) | (sends ? (uint32_t)EPOLLOUT : 0u);
}

static bool is_ready(struct psd_carrier *carrier, bool reads, bool sends)
{
	(void)carrier, (void)reads, (void)sends;
	return false;
}

static void nothing(struct psd_carrier *carrier)
{
	(void)carrier;
}

/* An optimisation, as is the next one; errors do not matter. */
static void set_low_water(struct psd_carrier *carrier, size_t bytes)
{
	const int low_water_bytes = (int)bytes;

	(void)setsockopt(carrier->fd, SOL_SOCKET, SO_RCVLOWAT, &low_water_bytes, sizeof(low_water_bytes));
}

static void limit_unsent(struct psd_carrier *carrier, size_t bytes)
{
	const int unsent_bytes = (int)bytes;

	/* tests use other sockets than TCP */
	(void)setsockopt(carrier->fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent_bytes, sizeof(unsent_bytes));
}

const struct psd_transport psd_transport_tcp = {
	.name = "tcp",
	.is_for_threads = true,
	.takes_chunks_together = true,
	.join = take_all,
	.send = send_pieces,
	.receive = receive_pieces,
	.events = events,
	.is_ready = is_ready,
	.hear = nothing,
	.set_low_water = set_low_water,
	.limit_unsent = limit_unsent,
	.release = nothing,
};
