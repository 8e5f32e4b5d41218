/* The sending half of a connection: a message of tensors at a time, from their memory, small ones between. No waits. */
#ifndef PSD_REAL_OUTLET_H
#define PSD_REAL_OUTLET_H

#include <stdbool.h>
#include <sys/types.h>

#include "real/net/pieces.h"
#include "real/net/transport.h"
#include "real/net/wire.h"

/* Fields are private to outlet.c; all zeros is an idle outlet. */
struct psd_outlet {
	uint8_t head[PSD_WIRE_HEAD_BYTES + PSD_WIRE_TAG_BYTES];
	size_t head_bytes;
	struct iovec pieces[1 + PSD_PIECES_MAX]; /* head first; what has left is cut off */
	unsigned n_pieces;
	unsigned at;
	bool is_active;
	uint8_t *small; /* bytes of small messages, whole ones */
	size_t small_bytes;
	size_t small_room;
	size_t small_sent;
};

void psd_outlet_release(struct psd_outlet *outlet);

/* tag: so many bytes that travel behind the header; pieces stay as they are until the message has left; the one before
 * has left. */
void psd_outlet_start(struct psd_outlet *outlet, const struct psd_wire_head *head, const uint8_t *tag,
		      unsigned tag_bytes, const struct iovec pieces[], unsigned n_pieces);
/* Copies a small message. False: too many wait, or no memory. */
bool psd_outlet_add_small(struct psd_outlet *outlet, const struct psd_wire_head *head, const uint8_t *payload);

bool psd_outlet_is_idle(const struct psd_outlet *outlet);
/* No message has been sent in part. */
bool psd_outlet_is_between_messages(const struct psd_outlet *outlet);

/* Hands to the carrier what that takes, as its send. *has_left: all of the tensors' message has left. */
ssize_t psd_outlet_send(struct psd_outlet *outlet, struct psd_carrier *carrier, bool *has_left);

#endif
