/* Transports: ways to move bytes between two hosts (shared memory, TLS, TCP). Each transport is a table of functions,
 * listed in transport.c. A carrier is one connection together with the state that its transport keeps. A carrier always
 * has a connected socket, by which the other host wakes this one and by which the connection's end is seen. Bytes
 * arrive in order. Transports know no messages. One thread at each end. */
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
	/* Set by the caller of send(): more bytes follow at once, so a packet may wait until it is full. */
	bool has_more;
};

/* Arguments of psd_transport_join(), which is called once all hosts are connected. */
struct psd_transport_join {
	const struct psd_mesh_options *mesh;
	const int *fds; /* sockets of all connections, in the order of psd_mesh_open() */
	double until_sec;
};

/* Functions of one transport. Only join() blocks. The event loop's thread calls all functions; if is_for_threads, I/O
 * threads may call send() and receive(). */
struct psd_transport {
	const char *name;
	/* True if an I/O thread may call send(), and another one receive(), at the same time, each on a copy of the
	 * carrier. */
	bool is_for_threads;
	/* True if several chunks should be sent by one call, since a call costs more time than the chunks lose by
	 * waiting. */
	bool takes_chunks_together;
	/* Takes over those carriers that have no transport yet and that this transport can serve. Both ends of a
	 * connection decide alike. All hosts call the transports' join() in the same order, before any message.
	 * PSD_ELOST: a peer has gone or is silent; PSD_ENOMEM. */
	enum psd_status (*join)(const struct psd_transport_join *join, struct psd_carrier carriers[],
				struct psd_error *err);
	/* send() sends bytes as sendmsg() does, receive() receives as recvmsg() does. Both return the number of bytes
	 * moved, at least 1; -1 with errno EAGAIN: none can be moved now. send() has copied the bytes when it returns;
	 * EPIPE, ECONNRESET: the peer no longer reads. receive() returns 0 after the peer's last byte; -1 with another
	 * errno: the bytes were damaged. */
	ssize_t (*send)(struct psd_carrier *carrier, const struct iovec segments[], unsigned n_segments);
	ssize_t (*receive)(struct psd_carrier *carrier, const struct iovec segments[], unsigned n_segments);
	/* Returns the epoll events that the loop is to wait for. reads, sends: the loop wants to receive, to send. */
	uint32_t (*events)(const struct psd_carrier *carrier, bool reads, bool sends);
	/* True if the loop must not wait for epoll now, because bytes or free space are there that the descriptor does
	 * not report. The descriptor reports those that come later. reads, sends: as in events(). */
	bool (*is_ready)(struct psd_carrier *carrier, bool reads, bool sends);
	/* True if bytes that send() has taken still wait in this process for space at the peer. Then events() asks for
	 * that space, and hear() sends the bytes. Closing the carrier loses them. NULL: bytes never wait. */
	bool (*holds)(const struct psd_carrier *carrier);
	/* Returns the time (psd_socket_now_sec()) at which the loop must ask again although the descriptor reports
	 * nothing; INFINITY: never. NULL: the same as always INFINITY. */
	double (*again_sec)(const struct psd_carrier *carrier, bool reads, bool sends);
	/* Handles an event that epoll has reported for the descriptor. */
	void (*hear)(struct psd_carrier *carrier);
	/* set_low_water(): epoll is to report the carrier as readable only from `bytes` bytes on. limit_unsent(): epoll
	 * is to report it as writable only while fewer than `bytes` bytes wait to be sent. A transport may ignore
	 * both. */
	void (*set_low_water)(struct psd_carrier *carrier, size_t bytes);
	void (*limit_unsent)(struct psd_carrier *carrier, size_t bytes);
	/* Frees the transport's state of the carrier. The caller closes the descriptor. */
	void (*release)(struct psd_carrier *carrier);
};

extern const struct psd_transport psd_transport_shared; /* between hosts of one node: shared memory */
extern const struct psd_transport psd_transport_tls;	/* between hosts with a pre-shared secret: TLS over TCP */
extern const struct psd_transport psd_transport_tcp;	/* between all other hosts: TCP */

/* Chooses a transport for each connection and fills carriers, n_connections for each host. From now on the carriers own
 * the descriptors; if this function fails, it closes them. Statuses as psd_transport.join(). */
enum psd_status psd_transport_join(const struct psd_transport_join *join, struct psd_carrier carriers[],
				   struct psd_error *err) PSD_MUST_CHECK;

/* True if bytes that were sent still wait in the transport, see psd_transport.holds. */
bool psd_carrier_holds(const struct psd_carrier *carrier);
/* Releases the transport's state of the carrier and closes its descriptor. Does nothing if the carrier is closed. */
void psd_carrier_close(struct psd_carrier *carrier);

#endif
