#include "real/net/outlet.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL_ROOM_MAX = 1 << 20 }; /* bytes of small messages that may wait for one peer */

void psd_outlet_release(struct psd_outlet *outlet)
{
	free(outlet->small);
	*outlet = (struct psd_outlet){.n_pieces = 0};
}

void psd_outlet_start(struct psd_outlet *outlet, const struct psd_wire_head *head, const uint8_t *tag,
		      unsigned tag_bytes, const struct iovec pieces[], unsigned n_pieces)
{
	assert(!outlet->is_active && n_pieces <= PSD_PIECES_MAX && tag_bytes <= PSD_WIRE_TAG_BYTES);
	psd_wire_encode(head, outlet->head);
	if (tag_bytes > 0)
		memcpy(outlet->head + PSD_WIRE_HEAD_BYTES, tag, tag_bytes);
	outlet->head_bytes = PSD_WIRE_HEAD_BYTES + tag_bytes;
	outlet->pieces[0] = (struct iovec){outlet->head, outlet->head_bytes};
	for (unsigned i = 0; i < n_pieces; i++)
		outlet->pieces[1 + i] = pieces[i];
	outlet->n_pieces = 1 + n_pieces;
	outlet->at = 0;
	outlet->is_active = true;
}

bool psd_outlet_add_small(struct psd_outlet *outlet, const struct psd_wire_head *head, const uint8_t *payload)
{
	const size_t bytes = PSD_WIRE_HEAD_BYTES + head->length_bytes;

	if (outlet->small_bytes + bytes > outlet->small_room) {
		const size_t room = outlet->small_room ? 2 * outlet->small_room : 1024;
		uint8_t *grown = room <= SMALL_ROOM_MAX ? realloc(outlet->small, room) : NULL;

		if (!grown)
			return false;
		outlet->small = grown;
		outlet->small_room = room;
	}
	psd_wire_encode(head, outlet->small + outlet->small_bytes);
	if (head->length_bytes > 0)
		memcpy(outlet->small + outlet->small_bytes + PSD_WIRE_HEAD_BYTES, payload, head->length_bytes);
	outlet->small_bytes += bytes;
	return true;
}

bool psd_outlet_is_idle(const struct psd_outlet *outlet)
{
	return !outlet->is_active && outlet->small_bytes == 0;
}

bool psd_outlet_is_between_messages(const struct psd_outlet *outlet)
{
	return !outlet->is_active || (outlet->at == 0 && outlet->pieces[0].iov_len == outlet->head_bytes);
}

static ssize_t send_small(struct psd_outlet *outlet, struct psd_carrier *carrier)
{
	const struct iovec piece = {outlet->small + outlet->small_sent, outlet->small_bytes - outlet->small_sent};
	const ssize_t sent = carrier->transport->send(carrier, &piece, 1);

	if (sent <= 0)
		return sent;
	outlet->small_sent += (size_t)sent;
	if (outlet->small_sent == outlet->small_bytes)
		outlet->small_sent = outlet->small_bytes = 0;
	return sent;
}

/* Small messages first, if no other has begun. One of them that is cut short stays in the way of the others. */
ssize_t psd_outlet_send(struct psd_outlet *outlet, struct psd_carrier *carrier, bool *has_left)
{
	ssize_t sent;

	*has_left = false;
	if (outlet->small_bytes > 0 && psd_outlet_is_between_messages(outlet))
		return send_small(outlet, carrier);
	sent = carrier->transport->send(carrier, outlet->pieces + outlet->at, outlet->n_pieces - outlet->at);
	if (sent <= 0)
		return sent;
	psd_pieces_advance(outlet->pieces, outlet->n_pieces, &outlet->at, (size_t)sent);
	*has_left = outlet->at == outlet->n_pieces;
	outlet->is_active = !*has_left;
	return sent;
}
