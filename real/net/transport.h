/* How bytes pass between two hosts: one table of functions for each way, a row in transport.c. A carrier is one
 * connection and what its way needs. A connected socket belongs to it whatever the way: it wakes whoever waits, and its
 * end is the peer's end. Bytes come out as they went in, in order. Refuses to know messages. One thread for each end.
 */
#ifndef PSD_REAL_TRANSPORT_H
#define PSD_REAL_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "real/net/mesh.h"

struct psd_transport;

/* fd and has_more are the caller's, the rest the transport's. */
struct psd_carrier {
	const struct psd_transport *transport;
	int fd;	       /* -1: none, or over */
	void *own;     /* what the way needs beside it, until release */
	bool has_more; /* more follows at once what is sent next: no packet needs to be less than full */
};

/* Between whom, once all are connected. */
struct psd_transport_join {
	const struct psd_mesh_options *mesh;
	const int *fds; /* as psd_mesh_open() has them */
	double until_sec;
};

/* No slot blocks but join. All are called from the loop's thread, but see is_for_threads. */
struct psd_transport {
	const char *name;
	/* send and receive may be called each from a thread of its own, at the same time, on a copy of the carrier. */
	bool is_for_threads;
	/* A call costs more than what a chunk more in it delays. */
	bool takes_chunks_together;
	/* Takes those carriers that have no transport yet and that it can serve; both ends decide alike. Called by all
	 * hosts in the same order, before any has sent a message. PSD_ELOST: a peer has gone or says nothing;
	 * PSD_ENOMEM. */
	enum psd_status (*join)(const struct psd_transport_join *join, struct psd_carrier carriers[],
				struct psd_error *err);
	/* As sendmsg and recvmsg: how many bytes, at least one; -1 with EAGAIN: none now. send has copied them when it
	 * returns; EPIPE, ECONNRESET: nobody reads any more. receive returns 0 once all has been read that the peer
	 * sent before it went; another errno: what comes is not what was sent. */
	ssize_t (*send)(struct psd_carrier *carrier, const struct iovec segments[], unsigned n_segments);
	ssize_t (*receive)(struct psd_carrier *carrier, const struct iovec segments[], unsigned n_segments);
	/* Before the loop waits for the descriptor: which events of epoll it is to wait for. */
	uint32_t (*events)(const struct psd_carrier *carrier, bool reads, bool sends);
	/* And whether it is not to wait, since there is what the descriptor will not tell of. Whatever comes from then
	 * on the descriptor does tell. */
	bool (*is_ready)(struct psd_carrier *carrier, bool reads, bool sends);
	/* Whether some of what send has taken waits here for room, of which events() has the descriptor tell and which
	 * hear() makes use of. It is lost if the carrier is closed. NULL: never. */
	bool (*holds)(const struct psd_carrier *carrier);
	/* When what the descriptor does not tell of comes by itself, of psd_socket_now_sec(); INFINITY: never. NULL:
	 * always so. */
	double (*again_sec)(const struct psd_carrier *carrier, bool reads, bool sends);
	/* The descriptor has told of something. */
	void (*hear)(struct psd_carrier *carrier);
	/* Both save wake-ups, no more: to read is not worth it below so many bytes; to send, while more wait unsent. */
	void (*set_low_water)(struct psd_carrier *carrier, size_t bytes);
	void (*limit_unsent)(struct psd_carrier *carrier, size_t bytes);
	/* Of what belongs to the way; the descriptor is the caller's. */
	void (*release)(struct psd_carrier *carrier);
};

extern const struct psd_transport psd_transport_shared; /* memory that hosts of one node share */
extern const struct psd_transport psd_transport_tls;	/* serves every carrier of hosts that share a secret */
extern const struct psd_transport psd_transport_tcp;	/* serves every carrier */

/* Finds a transport for each connection: n_connections carriers for each host, host after host. The descriptors are the
 * carriers' from now on; on failure they are closed. */
enum psd_status psd_transport_join(const struct psd_transport_join *join, struct psd_carrier carriers[],
				   struct psd_error *err) PSD_MUST_CHECK;

/* As its `holds`. */
bool psd_carrier_holds(const struct psd_carrier *carrier);
/* The descriptor is closed, too. Nothing happens to one that is over. */
void psd_carrier_close(struct psd_carrier *carrier);

#endif
