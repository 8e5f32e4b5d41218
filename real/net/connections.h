/* Connections between this host and its peers, in one epoll loop. Messages travel from tensor memory into tensor memory
 * without packing, and are added while they arrive where a collective reduces. A message travels in chunks; each takes
 * any connection to its peer that is free, so a slow connection delays only its own chunk. Small messages go between
 * two chunks. Where a link is faster than a processor core, I/O threads move the chunks. Knows frames only: the owner
 * says where a message belongs. All functions are for one thread. */
#ifndef PSD_REAL_CONNECTIONS_H
#define PSD_REAL_CONNECTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "real/net/chunk_receiver.h"
#include "real/net/chunk_sender.h"

/* Limit of a message's bytes that wait in the kernel; small messages must wait behind them. */
#define PSD_CONNECTIONS_UNSENT_BYTES (1 << 18)

struct psd_connections;

enum psd_acceptance {
	PSD_ACCEPT_NOW,
	PSD_ACCEPT_LATER, /* leave the message unread until the next arrival or psd_connections_resume() */
	PSD_ACCEPT_NEVER, /* close the connection; err tells the reason */
};

/* Callbacks of the owner, called by psd_connections_turn(), _flush() and _resume() only. */
struct psd_connections_owner {
	/* A header has arrived: sets the memory for the whole message. Called until it returns PSD_ACCEPT_NOW, once per
	 * message; head->chunk has no meaning. */
	enum psd_acceptance (*expect)(void *context, unsigned peer, const struct psd_wire_head *head,
				      struct psd_destination *destination, struct psd_error *err);
	/* A whole message has arrived. tag: written by the sender's stamp(), for a message of tensors. */
	void (*arrived)(void *context, unsigned peer, const struct psd_wire_head *head, const uint8_t *tag);
	/* The transport has taken all bytes of a message given to psd_connections_send(). */
	void (*left)(void *context, unsigned peer);
	/* A peer's connection has ended. error_number 0: the peer closed it. Returns PSD_OK if that is expected. */
	enum psd_status (*lost)(void *context, unsigned peer, int error_number, struct psd_error *err);

	/* Writes the tag of an outgoing message of tensors. Set by the decorator in real/net/emulated.h; this and the
	 * next two are NULL elsewhere. */
	void (*stamp)(void *context, unsigned peer, const struct psd_wire_head *head, uint8_t tag[]);
	/* Returns the time of the next deferred arrival, which deliver_due() delivers; INFINITY: none. */
	double (*due_sec)(void *context);
	enum psd_status (*deliver_due)(void *context, bool *has_delivered, struct psd_error *err);
	void *context;
};

struct psd_connections_options {
	unsigned n_peers;
	unsigned n_connections; /* number of connections to each peer, >= 1 */
	/* Carriers, n_connections per peer; taken over, also on failure. */
	const struct psd_carrier *carriers;
	int wake_fd;	 /* eventfd of the caller that ends a turn when written; borrowed */
	double link_bps; /* rate of the slowest link on the path to a peer, bits per second; 0: unknown */
	/* Start one I/O thread per connection number, which serves that connection of all peers. They are pinned to
	 * consecutive processors from first_processor on, modulo their number. */
	bool has_threads;
	unsigned first_processor;
	bool is_close_to_link; /* call left() only when the link has nearly all of a message; costs wake-ups */
	unsigned tag_bytes;    /* length of the tag that stamp() writes, equal on all hosts; 0: none travels */
	struct psd_connections_owner owner;
};

/* Takes over the carriers and makes *connections, which the caller closes. PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_connections_open(struct psd_connections **connections,
				     const struct psd_connections_options *options,
				     struct psd_error *err) PSD_MUST_CHECK;
void psd_connections_close(struct psd_connections *connections); /* closes all connections; NULL is allowed */

/* Queues a message, one at a time for each peer, until the next flush. The segments stay valid until left(). */
void psd_connections_send(struct psd_connections *connections, unsigned peer, const struct psd_wire_head *head,
			  const struct iovec segments[], unsigned n_segments);
/* Queues a copy of a small message ahead of all chunks that have not begun. Returns false when too many wait or memory
 * runs out. */
bool psd_connections_send_small(struct psd_connections *connections, unsigned peer, const struct psd_wire_head *head,
				const uint8_t *payload);
/* Seconds since the last byte from a peer; 0 while its first connection holds back a message (PSD_ACCEPT_LATER). */
double psd_connections_silent_sec(const struct psd_connections *connections, unsigned peer);
/* True while a queued message is not completely sent. */
bool psd_connections_has_queue(const struct psd_connections *connections);

/* Asks expect() again about held back messages (PSD_ACCEPT_LATER). The next flush watches their connections again. */
enum psd_status psd_connections_resume(struct psd_connections *connections, struct psd_error *err) PSD_MUST_CHECK;
/* Sends all bytes that the transports take now, peers in turn. */
enum psd_status psd_connections_flush(struct psd_connections *connections, struct psd_error *err) PSD_MUST_CHECK;
/* Ends the next turn at time `sec` (psd_socket_now_sec()) at the latest. Holds for one turn. */
void psd_connections_wake_at(struct psd_connections *connections, double sec);
/* Waits for something to receive, send or deliver, for a write to the eventfd, or for within_ms, then handles it.
 * *has_moved: payload bytes moved, or a message other than PSD_WIRE_ALIVE from an idle host was delivered. */
enum psd_status psd_connections_turn(struct psd_connections *connections, int within_ms, bool *has_moved,
				     struct psd_error *err) PSD_MUST_CHECK;

#endif
