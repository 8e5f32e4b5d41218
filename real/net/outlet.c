#include "real/net/outlet.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL_ROOM_MAX = 1 << 20 }; /* bytes of small messages that may wait for one peer */

void psd_outlet_release(struct psd_outlet *outlet)
{
	free(outlet->small);
	*outlet = (struct psd_outlet){.is_active = false};
}

struct psd_parcel psd_parcel_make(const struct psd_wire_head *head, const uint8_t *tag, unsigned tag_bytes,
				  const struct iovec pieces[], unsigned n_pieces)
{
	struct psd_parcel parcel = {.head_bytes = PSD_WIRE_HEAD_BYTES + tag_bytes, .n_pieces = n_pieces};

	assert(n_pieces <= PSD_PIECES_MAX && tag_bytes <= PSD_WIRE_TAG_BYTES);
	psd_wire_encode(head, parcel.head);
	if (tag_bytes > 0)
		memcpy(parcel.head + PSD_WIRE_HEAD_BYTES, tag, tag_bytes);
	for (unsigned i = 0; i < n_pieces; i++)
		parcel.pieces[i] = pieces[i];
	parcel.bytes = parcel.head_bytes + psd_pieces_bytes(pieces, n_pieces);
	return parcel;
}

/* What has not been sent of it, at most 1 + PSD_PIECES_MAX pieces. */
static unsigned rest_of(const struct psd_parcel *parcel, struct iovec rest[])
{
	struct iovec all[1 + PSD_PIECES_MAX] = {{(uint8_t *)parcel->head, parcel->head_bytes}}; /* which is only read */

	for (unsigned i = 0; i < parcel->n_pieces; i++)
		all[1 + i] = parcel->pieces[i];
	return psd_pieces_cut(all, 1 + parcel->n_pieces, parcel->sent_bytes, parcel->bytes - parcel->sent_bytes, rest);
}

void psd_outlet_start(struct psd_outlet *outlet, const struct psd_parcel *parcel)
{
	assert(!outlet->is_active);
	outlet->parcel = *parcel;
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

bool psd_outlet_is_between_chunks(const struct psd_outlet *outlet)
{
	return !outlet->is_active || outlet->parcel.sent_bytes == 0;
}

bool psd_outlet_has_small(const struct psd_outlet *outlet)
{
	return outlet->small_bytes > 0;
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

/* Of the outlet's chunk `bytes` or less have gone. Returns how many, and whether it has left. */
static uint64_t count_sent(struct psd_outlet *outlet, uint64_t bytes, unsigned *n_left)
{
	struct psd_parcel *parcel = &outlet->parcel;
	const uint64_t rest_bytes = parcel->bytes - parcel->sent_bytes;

	if (bytes < rest_bytes) {
		parcel->sent_bytes += bytes;
		return bytes;
	}
	outlet->is_active = false;
	++*n_left;
	return rest_bytes;
}

/* Small messages first, if no chunk has begun. One of them that is cut short stays in the way of the others. */
ssize_t psd_outlet_send(struct psd_outlet *outlet, struct psd_carrier *carrier, const struct psd_parcel behind[],
			unsigned n_behind, unsigned *n_begun, unsigned *n_left)
{
	struct iovec pieces[PSD_PARCELS_MAX * (1 + PSD_PIECES_MAX)];
	unsigned n_pieces;
	uint64_t new_bytes;
	ssize_t sent;

	*n_begun = *n_left = 0;
	if (psd_outlet_has_small(outlet) && psd_outlet_is_between_chunks(outlet))
		return send_small(outlet, carrier);
	n_pieces = rest_of(&outlet->parcel, pieces);
	for (unsigned i = 0; i < n_behind; i++)
		n_pieces += rest_of(&behind[i], pieces + n_pieces);
	sent = carrier->transport->send(carrier, pieces, n_pieces);
	if (sent <= 0)
		return sent;
	new_bytes = (uint64_t)sent - count_sent(outlet, (uint64_t)sent, n_left);
	while (new_bytes > 0) {
		psd_outlet_start(outlet, &behind[(*n_begun)++]);
		new_bytes -= count_sent(outlet, new_bytes, n_left);
	}
	return sent;
}
