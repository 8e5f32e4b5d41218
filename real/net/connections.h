/* Connections between this host and all other hosts (its peers), in one epoll loop. Messages travel from tensor memory
 * into tensor memory without being packed. If a collective sums, received values are added to the memory while they
 * arrive. A message travels in chunks; each chunk takes any connection to the peer that is free, so a slow connection
 * delays only the chunk on it. Small messages go between two chunks. If a link is faster than one processor core, I/O
 * threads move the chunks. This module knows headers only: its owner, the worker, says to which memory a message
 * belongs. All functions are called by one thread. */
#ifndef PSD_REAL_CONNECTIONS_H
#define PSD_REAL_CONNECTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "real/net/chunk_receiver.h"
#include "real/net/chunk_sender.h"

/* Most bytes of a message that wait in the kernel's send buffer of one connection. Small messages must wait behind
 * these bytes. */
#define PSD_CONNECTIONS_UNSENT_BYTES (1 << 18)

struct psd_connections;

enum psd_acceptance {
	PSD_ACCEPT_NOW,
	/* The message stays unread until another message is delivered or psd_connections_resume() is called. */
	PSD_ACCEPT_LATER,
	PSD_ACCEPT_NEVER, /* the connection is closed; err has the reason */
};

/* Callbacks of the owner of the connections (the worker). Only psd_connections_turn(), _flush() and _resume() call
 * them. */
struct psd_connections_owner {
	/* A header of a message has arrived: the owner sets *destination to the memory for the whole message. Called
	 * again until it returns PSD_ACCEPT_NOW, then no more for this message. head->chunk has no meaning here. */
	enum psd_acceptance (*expect)(void *context, unsigned peer, const struct psd_wire_head *head,
				      struct psd_destination *destination, struct psd_error *err);
	/* A whole message has arrived. tag: bytes that the sender's stamp() wrote, if this is a message of tensors. */
	void (*arrived)(void *context, unsigned peer, const struct psd_wire_head *head, const uint8_t *tag);
	/* The transport has taken all bytes of the message that psd_connections_send() queued for this peer. */
	void (*left)(void *context, unsigned peer);
	/* A connection to this peer has ended. error_number: errno; 0: the peer closed the connection. Returns PSD_OK
	 * if the owner expects that end. */
	enum psd_status (*lost)(void *context, unsigned peer, int error_number, struct psd_error *err);

	/* Writes the tag of an outgoing message of tensors, tag_bytes long. Only real/net/emulated.h sets this and the
	 * next two functions; NULL without emulated links. */
	void (*stamp)(void *context, unsigned peer, const struct psd_wire_head *head, uint8_t tag[]);
	/* Returns the time (psd_socket_now_sec()) at which the next deferred message is to be delivered, by
	 * deliver_due(); INFINITY: no message is deferred. */
	double (*due_sec)(void *context);
	enum psd_status (*deliver_due)(void *context, bool *has_delivered, struct psd_error *err);
	void *context;
};

struct psd_connections_options {
	unsigned n_peers;
	unsigned n_connections; /* number of connections to each peer, >= 1 */
	/* Carriers of the connections, n_connections for each peer, peer by peer. The connections own them from now on,
	 * also if opening fails. */
	const struct psd_carrier *carriers;
	int wake_fd;	 /* eventfd of the caller; a write to it ends a wait in psd_connections_turn(); borrowed */
	double link_bps; /* rate of the slowest link on the path to a peer, bits per second; 0: unknown */
	/* Start n_connections I/O threads. Thread k moves the chunks of connection k to each peer. The threads are
	 * pinned to consecutive processors from first_processor on, modulo the number of processors. */
	bool has_threads;
	unsigned first_processor;
	/* Call left() only when the link has carried nearly all bytes of a message; costs extra wake-ups. */
	bool is_close_to_link;
	unsigned tag_bytes; /* length of the tag that stamp() writes, equal on all hosts; 0: messages have no tag */
	struct psd_connections_owner owner;
};

/* Takes over the carriers and makes *connections, which the caller closes by psd_connections_close(). PSD_ENOMEM,
 * PSD_ERUN. */
enum psd_status psd_connections_open(struct psd_connections **connections,
				     const struct psd_connections_options *options,
				     struct psd_error *err) PSD_MUST_CHECK;
void psd_connections_close(struct psd_connections *connections); /* closes all connections; NULL is allowed */

/* Queues a message to a peer; the next flush sends it. Each peer has one queued message at a time. The segments must
 * stay valid until left() is called for this peer. */
void psd_connections_send(struct psd_connections *connections, unsigned peer, const struct psd_wire_head *head,
			  const struct iovec segments[], unsigned n_segments);
/* Queues a copy of a small message, which is sent before all chunks that have not begun. payload: encoded by
 * psd_wire_encode_payload(). Returns false if too many small messages wait already, or if memory runs out. */
bool psd_connections_send_small(struct psd_connections *connections, unsigned peer, const struct psd_wire_head *head,
				const uint8_t *payload);
/* Returns the seconds since the last byte from this peer. 0 while its first connection holds a message that the owner
 * answered with PSD_ACCEPT_LATER. */
double psd_connections_silent_sec(const struct psd_connections *connections, unsigned peer);
/* True while the transports have not taken all bytes of a queued message. */
bool psd_connections_has_queue(const struct psd_connections *connections);

/* Calls expect() again for the messages that the owner answered with PSD_ACCEPT_LATER. From the next flush on, epoll
 * reports their connections again. */
enum psd_status psd_connections_resume(struct psd_connections *connections, struct psd_error *err) PSD_MUST_CHECK;
/* Sends all queued bytes that the transports take now, one peer after another. */
enum psd_status psd_connections_flush(struct psd_connections *connections, struct psd_error *err) PSD_MUST_CHECK;
/* Makes the next call of psd_connections_turn() return at time `sec` (psd_socket_now_sec()) at the latest. Holds for
 * that call only. */
void psd_connections_wake_at(struct psd_connections *connections, double sec);
/* Waits until there is something to receive, to send or to deliver, until the eventfd is written, or for within_ms
 * milliseconds at most; then handles it. *has_moved: bytes of payload were moved, or a message was delivered other than
 * a heartbeat (PSD_WIRE_ALIVE) of an idle host. */
enum psd_status psd_connections_turn(struct psd_connections *connections, int within_ms, bool *has_moved,
				     struct psd_error *err) PSD_MUST_CHECK;

#endif
