/* Receiver of one connection: reads a header, then its payload straight into tensor memory, or adds it to what is
 * there. The next header is read together with the end of a payload, which saves a system call. Never waits; the caller
 * says where a payload goes. */
#ifndef PSD_REAL_CHUNK_RECEIVER_H
#define PSD_REAL_CHUNK_RECEIVER_H

#include <stdbool.h>
#include <sys/types.h>

#include "engine/encodings/encoding.h"
#include "real/net/segments.h"
#include "real/net/transport.h"
#include "real/net/wire.h"

/* Memory that a message is received into. */
struct psd_destination {
	struct iovec segments[PSD_SEGMENTS_MAX]; /* size of the message in all, or of its values as floats */
	unsigned n_segments;
	const struct psd_encoding *added; /* encoding of values to add; NULL: bytes are stored */
	bool is_of_floats;		  /* the memory holds floats, whatever the encoding */
};

/* Bytes of memory for each byte of the message. */
unsigned psd_destination_widening(const struct psd_destination *destination);

/* The first four fields are public, the others are private to chunk_receiver.c. Zeros: waits for a header. */
struct psd_chunk_receiver {
	struct psd_wire_head head; /* valid if has_head */
	bool has_head;
	bool has_destination;
	bool is_held;						 /* the payload waits until the caller accepts it */
	uint8_t bytes[PSD_WIRE_HEAD_BYTES + PSD_WIRE_TAG_BYTES]; /* the header and its tag */
	size_t n_head_bytes;
	struct psd_destination destination; /* the part still to be received */
	unsigned at;
	unsigned n_carried; /* bytes of an incomplete value */
	uint8_t carried[sizeof(float)];
	uint8_t ahead[PSD_WIRE_HEAD_BYTES]; /* beginning of the next header */
	size_t n_ahead_bytes;
};

enum {
	PSD_CHUNK_RECEIVER_PART_BYTES = 1 << 17, /* fits into the second-level cache between the socket and the sum */
	PSD_CHUNK_RECEIVER_SCRATCH_BYTES = PSD_CHUNK_RECEIVER_PART_BYTES + 64, /* plus an incomplete value in front */
};

/* Reads bytes of a header and its tag, first those read ahead, never bytes behind them. Returns as the carrier's
 * receive(). *status PSD_ERUN: the header is invalid; the error text has no subject. */
ssize_t psd_chunk_receiver_read_head(struct psd_chunk_receiver *receiver, struct psd_carrier *carrier,
				     unsigned tag_bytes, enum psd_status *status, struct psd_error *err);
/* Sets the destination of the payload; it is copied. */
void psd_chunk_receiver_open(struct psd_chunk_receiver *receiver, const struct psd_destination *destination);
/* Reads at most limit_bytes (> 0) of the payload, and behind its end the available bytes of the next header. scratch:
 * PSD_CHUNK_RECEIVER_SCRATCH_BYTES, aligned to 64. Returns as the carrier's receive(). */
ssize_t psd_chunk_receiver_read(struct psd_chunk_receiver *receiver, struct psd_carrier *carrier, size_t limit_bytes,
				uint8_t *scratch);
/* Payload bytes still to be received. */
uint64_t psd_chunk_receiver_missing_bytes(const struct psd_chunk_receiver *receiver);
/* True when the whole chunk is there; call psd_chunk_receiver_reset() before the next one. */
bool psd_chunk_receiver_is_complete(const struct psd_chunk_receiver *receiver);
/* True when bytes were read ahead: epoll does not report them, psd_chunk_receiver_read_head() returns them. */
bool psd_chunk_receiver_is_ahead(const struct psd_chunk_receiver *receiver);
void psd_chunk_receiver_reset(struct psd_chunk_receiver *receiver);

#endif
