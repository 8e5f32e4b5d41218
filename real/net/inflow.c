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

ssize_t psd_inflow_read_head(struct psd_inflow *inflow, struct psd_carrier *carrier, unsigned tag_bytes,
			     enum psd_status *status, struct psd_error *err)
{
	const struct iovec room = {inflow->bytes + inflow->n_head_bytes,
				   known_bytes(inflow, tag_bytes) - inflow->n_head_bytes};
	const ssize_t n_read = carrier->transport->receive(carrier, &room, 1);

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

/* Adds whole values, keeps the bytes of a split one for the next time. Between two pieces none is split. */
static ssize_t read_and_add(struct psd_inflow *inflow, struct psd_carrier *carrier, size_t limit_bytes,
			    uint8_t *scratch)
{
	const struct iovec *piece = &inflow->inlet.pieces[inflow->at];
	const unsigned widening = psd_inlet_widening(&inflow->inlet);
	const size_t room = PSD_INFLOW_SCRATCH_BYTES - sizeof(float);
	const size_t left_bytes = piece->iov_len / widening - inflow->n_carried;
	const size_t wanted = left_bytes < room ? left_bytes : room;
	const struct psd_encoding *encoding = inflow->inlet.added;
	size_t n_bytes, n_values;
	struct iovec from;
	ssize_t n_read;

	from = (struct iovec){scratch + inflow->n_carried, wanted < limit_bytes ? wanted : limit_bytes};
	n_read = carrier->transport->receive(carrier, &from, 1);
	if (n_read <= 0)
		return n_read;
	memcpy(scratch, inflow->carried, inflow->n_carried);
	n_bytes = inflow->n_carried + (size_t)n_read;
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
	struct iovec pieces[PSD_PIECES_MAX];
	unsigned n_pieces;
	ssize_t n_read;

	if (inflow->inlet.added)
		return read_and_add(inflow, carrier, limit_bytes, scratch);
	n_pieces = psd_pieces_cut(inflow->inlet.pieces + inflow->at, inflow->inlet.n_pieces - inflow->at, 0,
				  limit_bytes, pieces);
	n_read = carrier->transport->receive(carrier, pieces, n_pieces);
	if (n_read > 0)
		psd_pieces_advance(inflow->inlet.pieces, inflow->inlet.n_pieces, &inflow->at, (size_t)n_read);
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

void psd_inflow_reset(struct psd_inflow *inflow)
{
	*inflow = (struct psd_inflow){.has_head = false};
}
