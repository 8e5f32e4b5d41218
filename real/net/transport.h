/* Transports between two hosts: a table of functions each, a row in transport.c. A carrier is one connection and its
 * transport's state. It always includes a connected socket, which wakes the peer and reports its end. Bytes arrive in
 * order. Knows no messages. One thread for each end. */
#ifndef PSD_REAL_TRANSPORT_H
#define PSD_REAL_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "real/net/mesh.h"

struct psd_transport;

/* A connection. fd and has_more belong to the caller, the rest to the transport. */
struct psd_carrier {
	const struct psd_transport *transport;
	int fd;	       /* descriptor of the socket; -1: none, or closed */
	void *own;     /* state of the connection, private to the transport */
	bool has_more; /* more bytes follow at once: packets may wait until full */
};

/* Arguments of psd_transport_join(), once all hosts are connected. */
struct psd_transport_join {
	const struct psd_mesh_options *mesh;
	const int *fds; /* sockets of all connections, as from psd_mesh_open() */
	double until_sec;
};

/* Functions of a transport. Only join blocks. The event loop calls all functions, except as is_for_threads says. */
struct psd_transport {
	const char *name;
	/* True if send and receive may each run in a thread, at the same time, on copies of the carrier. */
	bool is_for_threads;
	/* Several chunks go into one call, since a call costs more time than the chunks wait. */
	bool takes_chunks_together;
	/* Takes over those carriers without a transport that this one can serve; both ends decide alike. All hosts call
	 * it in the same order, before any message. PSD_ELOST: a peer has gone or is silent; PSD_ENOMEM. */
	enum psd_status (*join)(const struct psd_transport_join *join, struct psd_carrier carriers[],
				struct psd_error *err);
	/* Like sendmsg and recvmsg: bytes moved, at least one; -1 with EAGAIN: none now. send has copied the bytes when
	 * it returns; EPIPE, ECONNRESET: the peer no longer reads. receive returns 0 after the peer's last byte;
	 * another errno: data was damaged. */
	ssize_t (*send)(struct psd_carrier *carrier, const struct iovec segments[], unsigned n_segments);
	ssize_t (*receive)(struct psd_carrier *carrier, const struct iovec segments[], unsigned n_segments);
	/* Returns the epoll events that the loop is to wait for. */
	uint32_t (*events)(const struct psd_carrier *carrier, bool reads, bool sends);
	/* True if the loop must not wait, since the descriptor does not report bytes or space that are there. Later
	 * events are reported. */
	bool (*is_ready)(struct psd_carrier *carrier, bool reads, bool sends);
	/* True if bytes that send has accepted still wait here for space; events() watches for it and hear() sends
	 * them. Closing the carrier loses them. NULL: bytes never wait. */
	bool (*holds)(const struct psd_carrier *carrier);
	/* Time (psd_socket_now_sec()) at which to poll again although the descriptor stays silent; INFINITY: never.
	 * NULL: polling is never needed. */
	double (*again_sec)(const struct psd_carrier *carrier, bool reads, bool sends);
	/* Handles an event that the descriptor reports. */
	void (*hear)(struct psd_carrier *carrier);
	/* Makes epoll report from this many readable bytes on, and below this many unsent bytes. Optional. */
	void (*set_low_water)(struct psd_carrier *carrier, size_t bytes);
	void (*limit_unsent)(struct psd_carrier *carrier, size_t bytes);
	/* Frees the transport's state; the caller closes the descriptor. */
	void (*release)(struct psd_carrier *carrier);
};

extern const struct psd_transport psd_transport_shared; /* serves hosts of one node, through shared memory */
extern const struct psd_transport psd_transport_tls;	/* serves all carriers of hosts with a secret */
extern const struct psd_transport psd_transport_tcp;	/* serves all other carriers */

/* Finds a transport for each connection; carriers: n_connections for each host. The carriers own the descriptors; on
 * failure they are closed. */
enum psd_status psd_transport_join(const struct psd_transport_join *join, struct psd_carrier carriers[],
				   struct psd_error *err) PSD_MUST_CHECK;

/* True if sent bytes still wait in the transport, see psd_transport.holds. */
bool psd_carrier_holds(const struct psd_carrier *carrier);
/* Releases the carrier and closes its descriptor. Does nothing if it is closed. */
void psd_carrier_close(struct psd_carrier *carrier);

#endif
