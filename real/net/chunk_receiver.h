/* The receiving half of a connection: a header, then its payload straight into the memory of tensors, or added to it.
 * The header behind a payload comes with its end: a call of the system for each costs more than the header. Refuses to
 * wait, and to know where a payload belongs. */
#ifndef PSD_REAL_CHUNK_RECEIVER_H
#define PSD_REAL_CHUNK_RECEIVER_H

#include <stdbool.h>
#include <sys/types.h>

#include "engine/encodings/encoding.h"
#include "real/net/segments.h"
#include "real/net/transport.h"
#include "real/net/wire.h"

/* Where a message goes. */
struct psd_inlet {
	struct iovec
		segments[PSD_SEGMENTS_MAX]; /* together as long as the message; as its values as floats, if these are */
	unsigned n_segments;
	const struct psd_encoding *added; /* NULL: put there; else values of this encoding are added to what is there */
	bool is_of_floats;		  /* what they are added to, whatever they are */
};

/* Bytes in its pieces for each byte of the message. */
unsigned psd_inlet_widening(const struct psd_inlet *inlet);

/* Fields are private to chunk_receiver.c but the first four; all zeros waits for a header. */
struct psd_chunk_receiver {
	struct psd_wire_head head; /* once it is there */
	bool has_head;
	bool has_inlet;
	bool is_held;						 /* the head has come, its payload is not wanted yet */
	uint8_t bytes[PSD_WIRE_HEAD_BYTES + PSD_WIRE_TAG_BYTES]; /* the header, and its tag */
	size_t n_head_bytes;
	struct psd_inlet inlet; /* what has come is cut off */
	unsigned at;
	unsigned n_carried; /* bytes of a value that is not complete */
	uint8_t carried[sizeof(float)];
	uint8_t ahead[PSD_WIRE_HEAD_BYTES]; /* of the header behind this payload */
	size_t n_ahead_bytes;
};

enum {
	PSD_CHUNK_RECEIVER_PART_BYTES = 1 << 17, /* stays in the second-level cache between the socket and the sum */
	PSD_CHUNK_RECEIVER_SCRATCH_BYTES =
		PSD_CHUNK_RECEIVER_PART_BYTES + 64, /* with a value that is not complete before it */
};

/* Reads of the header and the tag_bytes behind a message's first, and not beyond, as the carrier; first what was read
 * ahead. PSD_ERUN in *status: no header; the text has no subject. */
ssize_t psd_chunk_receiver_read_head(struct psd_chunk_receiver *receiver, struct psd_carrier *carrier,
				     unsigned tag_bytes, enum psd_status *status, struct psd_error *err);
/* Where the payload goes from now on; inlet is copied. */
void psd_chunk_receiver_open(struct psd_chunk_receiver *receiver, const struct psd_inlet *inlet);
/* Reads at most limit_bytes (> 0) of the payload, and with its end what is there of a header behind it, as the carrier.
 * scratch: PSD_CHUNK_RECEIVER_SCRATCH_BYTES, aligned to 64. */
ssize_t psd_chunk_receiver_read(struct psd_chunk_receiver *receiver, struct psd_carrier *carrier, size_t limit_bytes,
				uint8_t *scratch);
/* Of the payload, what has not come. */
uint64_t psd_chunk_receiver_missing_bytes(const struct psd_chunk_receiver *receiver);
/* The whole message is there: head tells which; psd_chunk_receiver_reset() before the next. */
bool psd_chunk_receiver_is_complete(const struct psd_chunk_receiver *receiver);
/* What the carrier no longer has and nobody has looked at: psd_chunk_receiver_read_head() takes it. */
bool psd_chunk_receiver_is_ahead(const struct psd_chunk_receiver *receiver);
void psd_chunk_receiver_reset(struct psd_chunk_receiver *receiver);

#endif
