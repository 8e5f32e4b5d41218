/* The sending half of a connection: chunks of tensors from their memory, small messages between. No waits. */
#ifndef PSD_REAL_CHUNK_SENDER_H
#define PSD_REAL_CHUNK_SENDER_H

#include <stdbool.h>
#include <sys/types.h>

#include "real/net/segments.h"
#include "real/net/transport.h"
#include "real/net/wire.h"

/* A chunk and the header before it. Fields are private to chunk_sender.c. */
struct psd_parcel {
	uint8_t head[PSD_WIRE_HEAD_BYTES + PSD_WIRE_TAG_BYTES];
	size_t head_bytes;
	struct iovec segments[PSD_SEGMENTS_MAX];
	unsigned n_segments;
	uint64_t bytes, sent_bytes; /* with the header */
};

#define PSD_PARCELS_MAX 32 /* in a call: more than a socket takes at once, as a rule */

/* Fields are private to chunk_sender.c; all zeros is an idle outlet. */
struct psd_chunk_sender {
	struct psd_parcel parcel;
	bool is_active;
	uint8_t *small; /* bytes of small messages, whole ones */
	size_t small_bytes;
	size_t small_room;
	size_t small_sent;
};

void psd_chunk_sender_release(struct psd_chunk_sender *sender);

/* tag: so many bytes that travel behind the header; pieces stay as they are until the chunk has left. */
struct psd_parcel psd_parcel_make(const struct psd_wire_head *head, const uint8_t *tag, unsigned tag_bytes,
				  const struct iovec segments[], unsigned n_segments);
/* The one before has left. */
void psd_chunk_sender_start(struct psd_chunk_sender *sender, const struct psd_parcel *parcel);
/* Copies a small message. False: too many wait, or no memory. */
bool psd_chunk_sender_add_small(struct psd_chunk_sender *sender, const struct psd_wire_head *head,
				const uint8_t *payload);

bool psd_chunk_sender_is_idle(const struct psd_chunk_sender *sender);
/* No chunk has been sent in part. */
bool psd_chunk_sender_is_between_chunks(const struct psd_chunk_sender *sender);
bool psd_chunk_sender_has_small(const struct psd_chunk_sender *sender);

/* Hands to the carrier what that takes, as its send: small messages alone, or else the chunk, and with it those behind
 * it, at most PSD_PARCELS_MAX - 1. *n_begun: how many of those have begun; one that has not left is the outlet's now.
 * *n_left: chunks that have left. */
ssize_t psd_chunk_sender_send(struct psd_chunk_sender *sender, struct psd_carrier *carrier,
			      const struct psd_parcel behind[], unsigned n_behind, unsigned *n_begun, unsigned *n_left);

#endif
