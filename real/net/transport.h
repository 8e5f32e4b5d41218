/* Transports: ways to move bytes between two hosts (shared memory, TLS, TCP). Each transport is a table of functions,
 * listed in transport.c. A carrier is one connection together with the state that its transport keeps for it. A carrier
 * always has a connected socket. Over this socket the other host wakes this one, and the socket shows when the
 * connection has ended. Bytes arrive in order. Transports know no messages. One thread at each end. */
#ifndef PSD_REAL_TRANSPORT_H
#define PSD_REAL_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "real/net/mesh.h"

struct psd_transport;

/* A connection. The caller sets fd and has_more, the transport the other fields. */
struct psd_carrier {
	const struct psd_transport *transport;
	int fd;	   /* descriptor of the connection's socket; -1: closed, or this host itself */
	void *own; /* state that the transport keeps for the connection */
	/* Set by the caller of send(): true if it will send more bytes immediately after these. Then a packet may wait
	 * until it is full. */
	bool has_more;
};

/* Arguments of psd_transport_join(), which is called when all hosts are connected. */
struct psd_transport_join {
	const struct psd_mesh_options *mesh;
	const int *fds; /* sockets of all connections, in the order of psd_mesh_open() */
	double until_sec;
};

/* Functions of one transport. Only join() blocks. The event loop's thread calls all functions. If is_for_threads, I/O
 * threads may call send() and receive(), too. */
struct psd_transport {
	const char *name;
	/* True if one I/O thread may call send() while another one calls receive(), each with its own copy of the
	 * carrier. */
	bool is_for_threads;
	/* True if the caller should collect several chunks and send them by one call, because a call takes a long
	 * time. */
	bool takes_chunks_together;
	/* Chooses those carriers that have no transport yet and that this transport can serve, and initialises their
	 * state. Both ends of a connection decide alike. All hosts call the join() functions of the transports in the
	 * same order, before any message is sent. PSD_ELOST: a peer has closed its connection, or has sent nothing
	 * until the deadline; PSD_ENOMEM. */
	enum psd_status (*join)(const struct psd_transport_join *join, struct psd_carrier carriers[],
				struct psd_error *err);
	/* send() sends bytes as sendmsg() does, receive() receives them as recvmsg() does. Both return the number of
	 * bytes moved, at least 1; -1 with errno EAGAIN: none can be moved now. When send() returns, it has copied the
	 * bytes. send() sets EPIPE or ECONNRESET if the peer no longer reads. receive() returns 0 after the peer's last
	 * byte, and -1 with another errno if bytes were damaged. */
	ssize_t (*send)(struct psd_carrier *carrier, const struct iovec segments[], unsigned n_segments);
	ssize_t (*receive)(struct psd_carrier *carrier, const struct iovec segments[], unsigned n_segments);
	/* Returns the epoll events for which the loop must wait. reads: the loop wants to receive bytes; sends: it
	 * wants to send bytes. */
	uint32_t (*events)(const struct psd_carrier *carrier, bool reads, bool sends);
	/* True if the loop must not wait in epoll now, because there are bytes or free space which the descriptor does
	 * not report. The descriptor reports bytes and space that come later. reads, sends: as in events(). */
	bool (*is_ready)(struct psd_carrier *carrier, bool reads, bool sends);
	/* True if this process still has bytes that send() has accepted, because the peer has no space for them.
	 * Until they are sent, events() includes POLLOUT, and hear() also sends these bytes. Closing the carrier
	 * loses them. NULL: send() never keeps bytes. */
	bool (*holds)(const struct psd_carrier *carrier);
	/* Returns the time (psd_socket_now_sec()) at which the loop must call is_ready() again even if epoll reports
	 * nothing; INFINITY: never. reads, sends: as in events(). NULL: always INFINITY. */
	double (*again_sec)(const struct psd_carrier *carrier, bool reads, bool sends);
	/* Handles an event that epoll has reported for the descriptor. */
	void (*hear)(struct psd_carrier *carrier);
	/* set_low_water(): epoll reports the carrier as readable only if at least `bytes` bytes can be read.
	 * limit_unsent(): epoll reports it as writable only while fewer than `bytes` bytes wait to be sent. A transport
	 * may ignore both calls. */
	void (*set_low_water)(struct psd_carrier *carrier, size_t bytes);
	void (*limit_unsent)(struct psd_carrier *carrier, size_t bytes);
	/* Frees the transport's state of the carrier. The caller closes the descriptor. */
	void (*release)(struct psd_carrier *carrier);
};

extern const struct psd_transport psd_transport_shared; /* transport between hosts of one node: shared memory */
/* transport between hosts with a pre-shared secret: TLS over TCP */
extern const struct psd_transport psd_transport_tls;
extern const struct psd_transport psd_transport_tcp; /* transport between all other hosts: TCP */

/* Chooses a transport for each connection, and fills carriers[]: n_connections entries for each host. A carrier is a
 * connection together with the state of its transport. It owns the connection's socket in join->fds, which
 * psd_carrier_close() closes. If this function fails, all sockets are closed. Statuses as psd_transport.join(). */
enum psd_status psd_transport_join(const struct psd_transport_join *join, struct psd_carrier carriers[],
				   struct psd_error *err) PSD_MUST_CHECK;

/* True if bytes that were sent are still in the transport, see psd_transport.holds. */
bool psd_carrier_holds(const struct psd_carrier *carrier);
/* Releases the transport's state of the carrier and closes its descriptor. Does nothing if the carrier is closed. */
void psd_carrier_close(struct psd_carrier *carrier);

#endif
