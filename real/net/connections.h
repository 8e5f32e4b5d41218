/* Connections between this host and all other hosts (its peers), in one epoll loop. Messages are sent from tensor
 * memory and received into tensor memory without being packed. In a collective that sums, received values are added to
 * the memory while they arrive. A message is split into chunks, and each chunk is sent over any free connection to the
 * peer. So a slow connection delays only the chunk on it. Small messages are sent between two chunks. If a link is
 * faster than one processor core, I/O threads send and receive the chunks. This module reads only headers. Its owner,
 * the worker, decides into which memory a message goes. All functions are called by one thread. */
#ifndef PSD_REAL_CONNECTIONS_H
#define PSD_REAL_CONNECTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "real/net/chunk_receiver.h"
#include "real/net/chunk_sender.h"

/* Limit for the unsent bytes in the kernel's send buffer of one connection. It is low because small messages wait until
 * these bytes are sent. */
#define PSD_CONNECTIONS_UNSENT_BYTES (1 << 18)

struct psd_connections;

/* Answer of the owner to a message's header: may its payload be received? */
enum psd_acceptance {
	PSD_ACCEPT_NOW,
	/* The message stays unread until another message is delivered or psd_connections_resume() is called. Then
	 * expect() is called again. */
	PSD_ACCEPT_LATER,
	PSD_ACCEPT_NEVER, /* the connection is closed; err has the reason */
};

/* Callbacks of the owner of the connections (the worker). Only psd_connections_turn(), _flush() and _resume() call
 * them. */
struct psd_connections_owner {
	/* A header of a message has arrived: the owner sets *destination to the memory for the whole message. After
	 * PSD_ACCEPT_LATER it is called again for the same message, after PSD_ACCEPT_NOW it is not. head->chunk has no
	 * meaning here. */
	enum psd_acceptance (*expect)(void *context, unsigned peer, const struct psd_wire_head *head,
				      struct psd_destination *destination, struct psd_error *err);
	/* A whole message has arrived. tag: in a message of tensors, the bytes that the sender's stamp() wrote. */
	void (*arrived)(void *context, unsigned peer, const struct psd_wire_head *head, const uint8_t *tag);
	/* The transport has accepted all bytes of the message that psd_connections_send() queued for this peer. */
	void (*left)(void *context, unsigned peer);
	/* A connection to this peer has ended. error_number: errno; 0: the peer closed the connection. Returns PSD_OK
	 * if the owner expected this end, otherwise an error. */
	enum psd_status (*lost)(void *context, unsigned peer, int error_number, struct psd_error *err);

	/* Writes the tag of an outgoing message of tensors into tag[], which has psd_connections_options.tag_bytes
	 * bytes. stamp(), due_sec() and deliver_due() are set only by real/net/emulated.c. All three are NULL if links
	 * are not emulated. */
	void (*stamp)(void *context, unsigned peer, const struct psd_wire_head *head, uint8_t tag[]);
	/* Returns the time (psd_socket_now_sec()) at which deliver_due() must deliver the next deferred message;
	 * INFINITY: no message is deferred. A deferred message has arrived, but the emulated links would still be
	 * carrying it. */
	double (*due_sec)(void *context);
	/* Delivers the next deferred message if its time has come. *has_delivered: a message was delivered. */
	enum psd_status (*deliver_due)(void *context, bool *has_delivered, struct psd_error *err);
	void *context;
};

struct psd_connections_options {
	unsigned n_peers;
	unsigned n_connections; /* number of connections to each peer, >= 1 */
	/* Carriers (struct psd_carrier) of the connections: the n_connections carriers to peer 0, then those to peer 1,
	 * and so on. psd_connections_open() takes ownership of them, even if it fails. */
	const struct psd_carrier *carriers;
	int wake_fd;	 /* eventfd of the caller; a write to it ends a wait in psd_connections_turn(); borrowed */
	double link_bps; /* rate of the slowest link on the path to a peer, bits per second; 0: unknown */
	/* True: start n_connections I/O threads. Thread k sends and receives the chunks on connection k to each peer.
	 * It is pinned to processor first_processor + k, modulo the number of processors. False: the event loop does
	 * this. */
	bool has_threads;
	unsigned first_processor;
	/* Call left() only when the link has carried nearly all bytes of a message, not when the transport has accepted
	 * them. Costs more system calls. */
	bool is_close_to_link;
	unsigned tag_bytes; /* length of the tag that stamp() writes, equal on all hosts; 0: messages have no tag */
	struct psd_connections_owner owner;
};

/* Makes *connections and gives it the carriers. The caller closes it by psd_connections_close(). PSD_ENOMEM,
 * PSD_ERUN. */
enum psd_status psd_connections_open(struct psd_connections **connections,
				     const struct psd_connections_options *options,
				     struct psd_error *err) PSD_MUST_CHECK;
void psd_connections_close(struct psd_connections *connections); /* closes all connections; NULL is allowed */

/* Queues a message to a peer; the next psd_connections_flush() sends it. A peer has at most one queued message at a
 * time. The segments must stay valid until left() is called for this peer. */
void psd_connections_send(struct psd_connections *connections, unsigned peer, const struct psd_wire_head *head,
			  const struct iovec segments[], unsigned n_segments);
/* Queues a copy of a small message, which is sent before all chunks that are not yet partly sent. payload: bytes made
 * by psd_wire_encode_payload(). Returns false if too many bytes of small messages are queued already, or if memory runs
 * out. */
bool psd_connections_send_small(struct psd_connections *connections, unsigned peer, const struct psd_wire_head *head,
				const uint8_t *payload);
/* Returns the seconds since the last byte from this peer arrived. Returns 0 while the peer's first connection holds a
 * message that the owner answered with PSD_ACCEPT_LATER. */
double psd_connections_silent_sec(const struct psd_connections *connections, unsigned peer);
/* True while at least one queued message has bytes that the transports have not accepted. */
bool psd_connections_has_queue(const struct psd_connections *connections);

/* Calls expect() again for each message that the owner answered with PSD_ACCEPT_LATER. From the next flush on, epoll
 * reports the connections of these messages again. */
enum psd_status psd_connections_resume(struct psd_connections *connections, struct psd_error *err) PSD_MUST_CHECK;
/* For each peer, sends the queued bytes that the transports accept now. Does not wait. */
enum psd_status psd_connections_flush(struct psd_connections *connections, struct psd_error *err) PSD_MUST_CHECK;
/* Makes the next call of psd_connections_turn() return at time `sec` (psd_socket_now_sec()) at the latest. Later calls
 * are not affected. */
void psd_connections_wake_at(struct psd_connections *connections, double sec);
/* Handles network events. First waits until there are bytes to receive, space to send, a deferred message to deliver,
 * or a write to the eventfd, but at most within_ms milliseconds. *has_moved: payload bytes were moved, or a message was
 * delivered. A heartbeat (PSD_WIRE_ALIVE) of a host that executes nothing does not count. */
enum psd_status psd_connections_turn(struct psd_connections *connections, int within_ms, bool *has_moved,
				     struct psd_error *err) PSD_MUST_CHECK;

#endif
