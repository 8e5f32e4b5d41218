/* Sender of one connection: sends chunks straight from tensor memory. Between two chunks it sends small messages.
 * Functions never wait. */
#ifndef PSD_REAL_CHUNK_SENDER_H
#define PSD_REAL_CHUNK_SENDER_H

#include <stdbool.h>
#include <sys/types.h>

#include "real/net/segments.h"
#include "real/net/transport.h"
#include "real/net/wire.h"

/* A chunk with its header, ready to be sent, and the number of its bytes already sent. Fields are private to
 * chunk_sender.c. */
struct psd_framed_chunk {
	uint8_t head[PSD_WIRE_HEAD_BYTES + PSD_WIRE_TAG_BYTES];
	size_t head_bytes;
	struct iovec segments[PSD_SEGMENTS_MAX];
	unsigned n_segments;
	uint64_t bytes;	     /* length of header, tag and payload together */
	uint64_t sent_bytes; /* number of these bytes that have been sent */
};

#define PSD_FRAMED_CHUNKS_MAX 32 /* most chunks in one system call; a socket rarely has space for more */

/* State of the sender of one connection. Fields are private to chunk_sender.c. All zeros: nothing to send. */
struct psd_chunk_sender {
	struct psd_framed_chunk framed;
	bool is_active;
	uint8_t *small; /* small messages that wait to be sent, encoded, without gaps */
	size_t small_bytes;
	size_t small_room;
	size_t small_sent;
};

void psd_chunk_sender_release(struct psd_chunk_sender *sender);

/* Returns a chunk that is ready to be sent: the header *head, a tag of tag_bytes bytes (0: no tag), and the payload in
 * `segments`. The memory of the payload must stay valid until the chunk is sent. */
struct psd_framed_chunk psd_framed_chunk_make(const struct psd_wire_head *head, const uint8_t *tag, unsigned tag_bytes,
					      const struct iovec segments[], unsigned n_segments);
/* Makes *framed the chunk that is sent next. The chunk before it must have been sent completely. */
void psd_chunk_sender_start(struct psd_chunk_sender *sender, const struct psd_framed_chunk *framed);
/* Queues a copy of a small message. payload: bytes made by psd_wire_encode_payload(). Returns false if too many bytes
 * of small messages are queued already, or if memory runs out. */
bool psd_chunk_sender_add_small(struct psd_chunk_sender *sender, const struct psd_wire_head *head,
				const uint8_t *payload);

bool psd_chunk_sender_is_idle(const struct psd_chunk_sender *sender);
/* True unless a chunk is partly sent. Then a small message can be sent now. */
bool psd_chunk_sender_is_between_chunks(const struct psd_chunk_sender *sender);
bool psd_chunk_sender_has_small(const struct psd_chunk_sender *sender);

/* Sends as many bytes as the carrier accepts now: the small messages if any are queued, otherwise the current chunk and
 * the first PSD_FRAMED_CHUNKS_MAX - 1 chunks of `behind`, which has n_behind chunks. *n_begun: number of chunks of
 * `behind` of which at least one byte was sent. If the last of these is incomplete, it becomes the current chunk.
 * *n_left: number of chunks that were completed by this call. Returns as psd_transport.send(). */
ssize_t psd_chunk_sender_send(struct psd_chunk_sender *sender, struct psd_carrier *carrier,
			      const struct psd_framed_chunk behind[], unsigned n_behind, unsigned *n_begun,
			      unsigned *n_left);

#endif
