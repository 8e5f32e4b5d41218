#include "real/net/inflow.h"

#include <string.h>

#include "real/base/values.h"

/* Whether a tag follows is known once the header is there. */
static size_t known_bytes(const struct psd_inflow *inflow, unsigned tag_bytes)
{
	const bool has_tag = inflow->n_head_bytes >= PSD_WIRE_HEAD_BYTES && inflow->head.kind == PSD_WIRE_DATA &&
			     inflow->head.chunk == 0;

	return PSD_WIRE_HEAD_BYTES + (has_tag ? tag_bytes : 0);
}

/* It is the beginning of a header, so that there is room for it. */
static ssize_t take_ahead(struct psd_inflow *inflow, const struct iovec *room)
{
	const size_t n_bytes = inflow->n_ahead_bytes;

	memcpy(room->iov_base, inflow->ahead, n_bytes);
	inflow->n_ahead_bytes = 0;
	return (ssize_t)n_bytes;
}

ssize_t psd_inflow_read_head(struct psd_inflow *inflow, struct psd_carrier *carrier, unsigned tag_bytes,
			     enum psd_status *status, struct psd_error *err)
{
	const struct iovec room = {inflow->bytes + inflow->n_head_bytes,
				   known_bytes(inflow, tag_bytes) - inflow->n_head_bytes};
	const ssize_t n_read = psd_inflow_is_ahead(inflow) ? take_ahead(inflow, &room)
							   : carrier->transport->receive(carrier, &room, 1);

	if (n_read <= 0)
		return n_read;
	inflow->n_head_bytes += (size_t)n_read;
	if (inflow->n_head_bytes == PSD_WIRE_HEAD_BYTES)
		*status = psd_wire_decode(inflow->bytes, &inflow->head, err);
	inflow->has_head = !*status && inflow->n_head_bytes >= PSD_WIRE_HEAD_BYTES &&
			   inflow->n_head_bytes == known_bytes(inflow, tag_bytes);
	return n_read;
}

unsigned psd_inlet_widening(const struct psd_inlet *inlet)
{
	return inlet->is_of_floats ? (unsigned)sizeof(float) / inlet->added->value_bytes : 1;
}

void psd_inflow_open(struct psd_inflow *inflow, const struct psd_inlet *inlet)
{
	inflow->inlet = *inlet;
	inflow->at = 0;
	inflow->has_inlet = true;
	inflow->is_held = false;
}

/* As the carrier, into pieces of payload, with room for one more; where they are the last ones, of a header as well.
 * *n_bytes: of the payload. */
static ssize_t receive(struct psd_inflow *inflow, struct psd_carrier *carrier, struct iovec pieces[], unsigned n_pieces,
		       bool are_last, size_t *n_bytes)
{
	const size_t room_bytes = psd_pieces_bytes(pieces, n_pieces);
	ssize_t n_read;

	if (are_last)
		pieces[n_pieces++] = (struct iovec){inflow->ahead, sizeof(inflow->ahead)};
	n_read = carrier->transport->receive(carrier, pieces, n_pieces);
	*n_bytes = n_read <= 0 ? 0 : (size_t)n_read < room_bytes ? (size_t)n_read : room_bytes;
	inflow->n_ahead_bytes = n_read <= 0 ? 0 : (size_t)n_read - *n_bytes;
	return n_read;
}

/* Adds whole values, keeps the bytes of a split one for the next time. Between two pieces none is split. */
static ssize_t read_and_add(struct psd_inflow *inflow, struct psd_carrier *carrier, size_t limit_bytes,
			    uint8_t *scratch)
{
	const struct iovec *piece = &inflow->inlet.pieces[inflow->at];
	const unsigned widening = psd_inlet_widening(&inflow->inlet);
	const size_t most_bytes = limit_bytes < PSD_INFLOW_PART_BYTES ? limit_bytes : PSD_INFLOW_PART_BYTES;
	const size_t left_bytes = piece->iov_len / widening - inflow->n_carried;
	const struct psd_encoding *encoding = inflow->inlet.added;
	struct iovec from[2] = {{scratch + inflow->n_carried, left_bytes < most_bytes ? left_bytes : most_bytes}};
	const bool is_last = left_bytes <= most_bytes && inflow->at + 1 == inflow->inlet.n_pieces;
	size_t n_bytes, n_values;
	const ssize_t n_read = receive(inflow, carrier, from, 1, is_last, &n_bytes);

	if (n_read <= 0)
		return n_read;
	memcpy(scratch, inflow->carried, inflow->n_carried);
	n_bytes += inflow->n_carried;
	n_values = n_bytes / encoding->value_bytes;
	if (inflow->inlet.is_of_floats)
		psd_values_add_to_floats(encoding, piece->iov_base, scratch, n_values);
	else
		psd_values_add(encoding, piece->iov_base, scratch, n_values);
	inflow->n_carried = (unsigned)(n_bytes % encoding->value_bytes);
	memcpy(inflow->carried, scratch + n_values * encoding->value_bytes, inflow->n_carried);
	psd_pieces_advance(inflow->inlet.pieces, inflow->inlet.n_pieces, &inflow->at,
			   n_values * encoding->value_bytes * widening);
	return n_read;
}

ssize_t psd_inflow_read(struct psd_inflow *inflow, struct psd_carrier *carrier, size_t limit_bytes, uint8_t *scratch)
{
	struct iovec pieces[PSD_PIECES_MAX + 1];
	unsigned n_pieces;
	size_t n_bytes;
	ssize_t n_read;

	if (inflow->inlet.added)
		return read_and_add(inflow, carrier, limit_bytes, scratch);
	n_pieces = psd_pieces_cut(inflow->inlet.pieces + inflow->at, inflow->inlet.n_pieces - inflow->at, 0,
				  limit_bytes, pieces);
	n_read = receive(inflow, carrier, pieces, n_pieces, psd_inflow_missing_bytes(inflow) <= limit_bytes, &n_bytes);
	if (n_read > 0)
		psd_pieces_advance(inflow->inlet.pieces, inflow->inlet.n_pieces, &inflow->at, n_bytes);
	return n_read;
}

uint64_t psd_inflow_missing_bytes(const struct psd_inflow *inflow)
{
	return psd_pieces_bytes(inflow->inlet.pieces + inflow->at, inflow->inlet.n_pieces - inflow->at) /
	       psd_inlet_widening(&inflow->inlet);
}

bool psd_inflow_is_complete(const struct psd_inflow *inflow)
{
	return inflow->has_inlet && inflow->at == inflow->inlet.n_pieces;
}

bool psd_inflow_is_ahead(const struct psd_inflow *inflow)
{
	return inflow->n_ahead_bytes > 0;
}

void psd_inflow_reset(struct psd_inflow *inflow)
{
	struct psd_inflow next = {.n_ahead_bytes = inflow->n_ahead_bytes};

	memcpy(next.ahead, inflow->ahead, inflow->n_ahead_bytes);
	*inflow = next;
}
