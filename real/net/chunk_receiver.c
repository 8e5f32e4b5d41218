#include "real/net/chunk_receiver.h"

#include <string.h>

#include "real/base/values.h"

/* Bytes of the header and its tag. Only a decoded header tells whether a tag follows. */
static size_t known_bytes(const struct psd_chunk_receiver *receiver, unsigned tag_bytes)
{
	const bool has_tag = receiver->n_head_bytes >= PSD_WIRE_HEAD_BYTES && receiver->head.kind == PSD_WIRE_DATA &&
			     receiver->head.chunk == 0;

	return PSD_WIRE_HEAD_BYTES + (has_tag ? tag_bytes : 0);
}

/* The bytes read ahead are the beginning of a header, so there is space for them. */
static ssize_t take_ahead(struct psd_chunk_receiver *receiver, const struct iovec *room)
{
	const size_t n_bytes = receiver->n_ahead_bytes;

	memcpy(room->iov_base, receiver->ahead, n_bytes);
	receiver->n_ahead_bytes = 0;
	return (ssize_t)n_bytes;
}

ssize_t psd_chunk_receiver_read_head(struct psd_chunk_receiver *receiver, struct psd_carrier *carrier,
				     unsigned tag_bytes, enum psd_status *status, struct psd_error *err)
{
	const struct iovec room = {receiver->bytes + receiver->n_head_bytes,
				   known_bytes(receiver, tag_bytes) - receiver->n_head_bytes};
	const ssize_t n_read = psd_chunk_receiver_is_ahead(receiver) ? take_ahead(receiver, &room)
								     : carrier->transport->receive(carrier, &room, 1);

	if (n_read <= 0)
		return n_read;
	receiver->n_head_bytes += (size_t)n_read;
	if (receiver->n_head_bytes == PSD_WIRE_HEAD_BYTES)
		*status = psd_wire_decode(receiver->bytes, &receiver->head, err);
	receiver->has_head = !*status && receiver->n_head_bytes >= PSD_WIRE_HEAD_BYTES &&
			     receiver->n_head_bytes == known_bytes(receiver, tag_bytes);
	return n_read;
}

unsigned psd_destination_widening(const struct psd_destination *destination)
{
	return destination->is_of_floats ? (unsigned)sizeof(float) / destination->added->value_bytes : 1;
}

void psd_chunk_receiver_open(struct psd_chunk_receiver *receiver, const struct psd_destination *destination)
{
	receiver->destination = *destination;
	receiver->at = 0;
	receiver->has_destination = true;
	receiver->is_held = false;
}

/* Receives into segments, which have space for one more: behind the last ones the next header is read as well.
 * *n_bytes: payload bytes received. Returns as the carrier's receive(). */
static ssize_t receive(struct psd_chunk_receiver *receiver, struct psd_carrier *carrier, struct iovec segments[],
		       unsigned n_segments, bool are_last, size_t *n_bytes)
{
	const size_t room_bytes = psd_segments_bytes(segments, n_segments);

	if (are_last)
		segments[n_segments++] = (struct iovec){receiver->ahead, sizeof(receiver->ahead)};
	const ssize_t n_read = carrier->transport->receive(carrier, segments, n_segments);
	*n_bytes = n_read <= 0 ? 0 : (size_t)n_read < room_bytes ? (size_t)n_read : room_bytes;
	receiver->n_ahead_bytes = n_read <= 0 ? 0 : (size_t)n_read - *n_bytes;
	return n_read;
}

/* Adds whole values and keeps the bytes of an incomplete one. No value crosses two segments. */
static ssize_t read_and_add(struct psd_chunk_receiver *receiver, struct psd_carrier *carrier, size_t limit_bytes,
			    uint8_t *scratch)
{
	const struct iovec *piece = &receiver->destination.segments[receiver->at];
	const unsigned widening = psd_destination_widening(&receiver->destination);
	const size_t most_bytes =
		limit_bytes < PSD_CHUNK_RECEIVER_PART_BYTES ? limit_bytes : PSD_CHUNK_RECEIVER_PART_BYTES;
	const size_t left_bytes = piece->iov_len / widening - receiver->n_carried;
	const struct psd_encoding *encoding = receiver->destination.added;
	struct iovec from[2] = {{scratch + receiver->n_carried, left_bytes < most_bytes ? left_bytes : most_bytes}};
	const bool is_last = left_bytes <= most_bytes && receiver->at + 1 == receiver->destination.n_segments;
	size_t n_bytes, n_values;
	const ssize_t n_read = receive(receiver, carrier, from, 1, is_last, &n_bytes);

	if (n_read <= 0)
		return n_read;
	memcpy(scratch, receiver->carried, receiver->n_carried);
	n_bytes += receiver->n_carried;
	n_values = n_bytes / encoding->value_bytes;
	if (receiver->destination.is_of_floats)
		psd_values_add_to_floats(encoding, piece->iov_base, scratch, n_values);
	else
		psd_values_add(encoding, piece->iov_base, scratch, n_values);
	receiver->n_carried = (unsigned)(n_bytes % encoding->value_bytes);
	memcpy(receiver->carried, scratch + n_values * encoding->value_bytes, receiver->n_carried);
	psd_segments_advance(receiver->destination.segments, receiver->destination.n_segments, &receiver->at,
			     n_values * encoding->value_bytes * widening);
	return n_read;
}

ssize_t psd_chunk_receiver_read(struct psd_chunk_receiver *receiver, struct psd_carrier *carrier, size_t limit_bytes,
				uint8_t *scratch)
{
	struct iovec segments[PSD_SEGMENTS_MAX + 1];
	size_t n_bytes;

	if (receiver->destination.added)
		return read_and_add(receiver, carrier, limit_bytes, scratch);
	const unsigned n_segments =
		psd_segments_cut(receiver->destination.segments + receiver->at,
				 receiver->destination.n_segments - receiver->at, 0, limit_bytes, segments);
	const ssize_t n_read = receive(receiver, carrier, segments, n_segments,
				       psd_chunk_receiver_missing_bytes(receiver) <= limit_bytes, &n_bytes);
	if (n_read > 0)
		psd_segments_advance(receiver->destination.segments, receiver->destination.n_segments, &receiver->at,
				     n_bytes);
	return n_read;
}

uint64_t psd_chunk_receiver_missing_bytes(const struct psd_chunk_receiver *receiver)
{
	return psd_segments_bytes(receiver->destination.segments + receiver->at,
				  receiver->destination.n_segments - receiver->at) /
	       psd_destination_widening(&receiver->destination);
}

bool psd_chunk_receiver_is_complete(const struct psd_chunk_receiver *receiver)
{
	return receiver->has_destination && receiver->at == receiver->destination.n_segments;
}

bool psd_chunk_receiver_is_ahead(const struct psd_chunk_receiver *receiver)
{
	return receiver->n_ahead_bytes > 0;
}

void psd_chunk_receiver_reset(struct psd_chunk_receiver *receiver)
{
	struct psd_chunk_receiver next = {.n_ahead_bytes = receiver->n_ahead_bytes};

	memcpy(next.ahead, receiver->ahead, receiver->n_ahead_bytes);
	*receiver = next;
}
