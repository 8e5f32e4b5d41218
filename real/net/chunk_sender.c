#include "real/net/chunk_sender.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL_ROOM_MAX = 1 << 20 }; /* limit for one peer */

void psd_chunk_sender_release(struct psd_chunk_sender *sender)
{
	free(sender->small);
	*sender = (struct psd_chunk_sender){.is_active = false};
}

struct psd_framed_chunk psd_framed_chunk_make(const struct psd_wire_head *head, const uint8_t *tag, unsigned tag_bytes,
					      const struct iovec segments[], unsigned n_segments)
{
	struct psd_framed_chunk framed = {.head_bytes = PSD_WIRE_HEAD_BYTES + tag_bytes, .n_segments = n_segments};

	assert(n_segments <= PSD_SEGMENTS_MAX && tag_bytes <= PSD_WIRE_TAG_BYTES);
	psd_wire_encode(head, framed.head);
	if (tag_bytes > 0)
		memcpy(framed.head + PSD_WIRE_HEAD_BYTES, tag, tag_bytes);
	for (unsigned i = 0; i < n_segments; i++)
		framed.segments[i] = segments[i];
	framed.bytes = framed.head_bytes + psd_segments_bytes(segments, n_segments);
	return framed;
}

/* Segments that are still to be sent; returns their number, at most 1 + PSD_SEGMENTS_MAX. */
static unsigned rest_of(const struct psd_framed_chunk *framed, struct iovec rest[])
{
	struct iovec all[1 + PSD_SEGMENTS_MAX] = {{(uint8_t *)framed->head, framed->head_bytes}}; /* read only */

	for (unsigned i = 0; i < framed->n_segments; i++)
		all[1 + i] = framed->segments[i];
	return psd_segments_cut(all, 1 + framed->n_segments, framed->sent_bytes, framed->bytes - framed->sent_bytes,
				rest);
}

void psd_chunk_sender_start(struct psd_chunk_sender *sender, const struct psd_framed_chunk *framed)
{
	assert(!sender->is_active);
	sender->framed = *framed;
	sender->is_active = true;
}

bool psd_chunk_sender_add_small(struct psd_chunk_sender *sender, const struct psd_wire_head *head,
				const uint8_t *payload)
{
	const size_t bytes = PSD_WIRE_HEAD_BYTES + head->length_bytes;

	if (sender->small_bytes + bytes > sender->small_room) {
		const size_t room = sender->small_room ? 2 * sender->small_room : 1024;
		uint8_t *grown = room <= SMALL_ROOM_MAX ? realloc(sender->small, room) : NULL;

		if (!grown)
			return false;
		sender->small = grown;
		sender->small_room = room;
	}
	psd_wire_encode(head, sender->small + sender->small_bytes);
	if (head->length_bytes > 0)
		memcpy(sender->small + sender->small_bytes + PSD_WIRE_HEAD_BYTES, payload, head->length_bytes);
	sender->small_bytes += bytes;
	return true;
}

bool psd_chunk_sender_is_idle(const struct psd_chunk_sender *sender)
{
	return !sender->is_active && sender->small_bytes == 0;
}

bool psd_chunk_sender_is_between_chunks(const struct psd_chunk_sender *sender)
{
	return !sender->is_active || sender->framed.sent_bytes == 0;
}

bool psd_chunk_sender_has_small(const struct psd_chunk_sender *sender)
{
	return sender->small_bytes > 0;
}

static ssize_t send_small(struct psd_chunk_sender *sender, struct psd_carrier *carrier)
{
	const struct iovec piece = {sender->small + sender->small_sent, sender->small_bytes - sender->small_sent};
	const ssize_t sent = carrier->transport->send(carrier, &piece, 1);

	if (sent <= 0)
		return sent;
	sender->small_sent += (size_t)sent;
	if (sender->small_sent == sender->small_bytes)
		sender->small_sent = sender->small_bytes = 0;
	return sent;
}

/* Counts up to `bytes` as sent of the current chunk. Returns the bytes counted; adds 1 to *n_left if the chunk is
 * complete. */
static uint64_t count_sent(struct psd_chunk_sender *sender, uint64_t bytes, unsigned *n_left)
{
	struct psd_framed_chunk *framed = &sender->framed;
	const uint64_t rest_bytes = framed->bytes - framed->sent_bytes;

	if (bytes < rest_bytes) {
		framed->sent_bytes += bytes;
		return bytes;
	}
	sender->is_active = false;
	++*n_left;
	return rest_bytes;
}

/* Small messages go first unless a chunk is partly sent. A small message that is partly sent blocks the others. */
ssize_t psd_chunk_sender_send(struct psd_chunk_sender *sender, struct psd_carrier *carrier,
			      const struct psd_framed_chunk behind[], unsigned n_behind, unsigned *n_begun,
			      unsigned *n_left)
{
	struct iovec segments[PSD_FRAMED_CHUNKS_MAX * (1 + PSD_SEGMENTS_MAX)];

	*n_begun = *n_left = 0;
	if (psd_chunk_sender_has_small(sender) && psd_chunk_sender_is_between_chunks(sender))
		return send_small(sender, carrier);
	unsigned n_segments = rest_of(&sender->framed, segments);
	for (unsigned i = 0; i < n_behind; i++)
		n_segments += rest_of(&behind[i], segments + n_segments);
	const ssize_t sent = carrier->transport->send(carrier, segments, n_segments);
	if (sent <= 0)
		return sent;
	uint64_t new_bytes = (uint64_t)sent - count_sent(sender, (uint64_t)sent, n_left);
	while (new_bytes > 0) {
		psd_chunk_sender_start(sender, &behind[(*n_begun)++]);
		new_bytes -= count_sent(sender, new_bytes, n_left);
	}
	return sent;
}
