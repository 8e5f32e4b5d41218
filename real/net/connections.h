/* The streams of messages between this host and its peers, in one epoll loop: out of tensor memory and into it without
 * packing, adding while receiving where a collective reduces. A message travels in chunks; each goes on whichever
 * connection to its peer has room, so that one that stands still delays no more than its own chunk. Small messages go
 * between two chunks. Where a link is faster than a processor, socket threads move chunks. Knows frames, not the
 * program: whoever owns it says where a message belongs, or that it does not. One thread, but for those. */
#ifndef PSD_REAL_CONNECTIONS_H
#define PSD_REAL_CONNECTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "real/net/chunk_receiver.h"
#include "real/net/chunk_sender.h"

/* What the kernel may hold of a message beside what it sends: small messages wait for that. */
#define PSD_CONNECTIONS_UNSENT_BYTES (1 << 18)

struct psd_connections;

enum psd_welcome {
	PSD_WELCOME_NOW,
	PSD_WELCOME_LATER,   /* nothing more is read from this connection until something has arrived or
				psd_connections_resume() */
	PSD_WELCOME_REFUSED, /* the connection is given up; err says why */
};

/* Called from psd_connections_turn(), psd_connections_flush() and psd_connections_resume() only. */
struct psd_connections_owner {
	/* A header has arrived: where does the whole message go? Not asked again once that was told; head->chunk means
	 * nothing. */
	enum psd_welcome (*expect)(void *context, unsigned peer, const struct psd_wire_head *head,
				   struct psd_inlet *inlet, struct psd_error *err);
	/* A whole message is there. tag: what the sender's stamp() wrote, of a message of tensors. */
	void (*arrived)(void *context, unsigned peer, const struct psd_wire_head *head, const uint8_t *tag);
	/* The transport has all of a message sent with psd_connections_send(). */
	void (*left)(void *context, unsigned peer);
	/* The peer is gone. error_number 0: it closed the connection. Returns PSD_OK when that is fine. */
	enum psd_status (*lost)(void *context, unsigned peer, int error_number, struct psd_error *err);

	/* Of a decorator (real/net/emulated.h); NULL elsewhere. A message of tensors is sent: writes what travels with
	 * it. */
	void (*stamp)(void *context, unsigned peer, const struct psd_wire_head *head, uint8_t tag[]);
	/* When tell_due() has something to tell; INFINITY: never. */
	double (*due_sec)(void *context);
	enum psd_status (*tell_due)(void *context, bool *has_told, struct psd_error *err);
	void *context;
};

struct psd_connections_options {
	unsigned n_peers;
	unsigned n_connections; /* connections to each, >= 1 */
	/* n_connections for each peer, peer after peer; owned by the streams from now on, also on failure. */
	const struct psd_carrier *carriers;
	int wake_fd;	 /* an eventfd that ends a turn, borrowed */
	double link_bps; /* what the slowest link on the way carries; 0: unknown */
	/* A socket thread for each of the n_connections, which serves that connection of all peers. They are pinned from the
	 * processor first_processor on, counted round. */
	bool has_threads;
	unsigned first_processor;
	bool is_close_to_link; /* left() comes when a message is on the link but for little, at the price of more
				  wake-ups */
	unsigned tag_bytes;    /* that all hosts' stamp() write; 0: there is none, and nothing of it travels */
	struct psd_connections_owner owner;
};

/* *streams: closed by the caller. PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_connections_open(struct psd_connections **connections,
				     const struct psd_connections_options *options,
				     struct psd_error *err) PSD_MUST_CHECK;
void psd_connections_close(struct psd_connections *connections); /* NULL is allowed */

/* Queues a message, one for each peer, until the next flush. Its pieces stay as they are until left(). */
void psd_connections_send(struct psd_connections *connections, unsigned peer, const struct psd_wire_head *head,
			  const struct iovec segments[], unsigned n_segments);
/* Queues a small message before all chunks that have not begun; the payload is copied. False: too many wait, or no
 * memory. */
bool psd_connections_send_small(struct psd_connections *connections, unsigned peer, const struct psd_wire_head *head,
				const uint8_t *payload);
/* For how long nothing has come from a peer; 0 while its first connection waits here with what is for later. */
double psd_connections_silent_sec(const struct psd_connections *connections, unsigned peer);
/* True while anything queued has not left. */
bool psd_connections_has_queue(const struct psd_connections *connections);

/* Asks expect() again about the messages that were to come later; they are watched again from the next flush on. */
enum psd_status psd_connections_resume(struct psd_connections *connections, struct psd_error *err) PSD_MUST_CHECK;
/* Sends what transports take now, peers in turn. */
enum psd_status psd_connections_flush(struct psd_connections *connections, struct psd_error *err) PSD_MUST_CHECK;
/* The next turn ends at `sec` of psd_socket_now_sec(), if not before. Holds for one end. */
void psd_connections_wake_at(struct psd_connections *connections, double sec);
/* Waits until something can be received, sent or told, the eventfd is written, or within_ms are over; receives, sends
 * and tells. *has_moved: a byte of a payload did, or something was told but that a peer is alive and idle. */
enum psd_status psd_connections_turn(struct psd_connections *connections, int within_ms, bool *has_moved,
				     struct psd_error *err) PSD_MUST_CHECK;

#endif
