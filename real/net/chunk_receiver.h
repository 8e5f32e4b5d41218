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

/* Memory into which a message is received. */
struct psd_destination {
	struct iovec segments[PSD_SEGMENTS_MAX]; /* together as large as the message, or as its values as floats */
	unsigned n_segments;
	const struct psd_encoding *added; /* encoding of values to add to the memory; NULL: bytes are stored */
	bool is_of_floats;		  /* the memory holds floats, whatever encoding the message has */
};

/* Bytes of memory that one byte of the message fills: more than 1 if short values become floats. */
unsigned psd_destination_widening(const struct psd_destination *destination);

/* Reception of messages; fields after the first four are private to chunk_receiver.c. All zeros: waits for a header. */
struct psd_chunk_receiver {
	struct psd_wire_head head; /* header of the current message; valid if has_head */
	bool has_head;
	bool has_destination;
	bool is_held; /* the payload stays unread until the caller accepts it */
	uint8_t bytes[PSD_WIRE_HEAD_BYTES + PSD_WIRE_TAG_BYTES]; /* bytes of the header and its tag */
	size_t n_head_bytes;
	struct psd_destination destination; /* memory for the part still to be received */
	unsigned at;
	unsigned n_carried; /* bytes in `carried`: a value of which only the beginning has arrived */
	uint8_t carried[sizeof(float)];
	uint8_t ahead[PSD_WIRE_HEAD_BYTES]; /* beginning of the next header, read with the end of this payload */
	size_t n_ahead_bytes;
};

enum {
	PSD_CHUNK_RECEIVER_PART_BYTES = 1 << 17, /* bytes added at once; they fit into the second-level cache */
	PSD_CHUNK_RECEIVER_SCRATCH_BYTES =
		PSD_CHUNK_RECEIVER_PART_BYTES + 64, /* a part, and an incomplete value in front */
};

/* Reads bytes of a header and its tag, first those read ahead, never bytes behind them. Returns as
 * psd_transport.receive(). *status PSD_ERUN: the header is invalid; the error text has no subject. */
ssize_t psd_chunk_receiver_read_head(struct psd_chunk_receiver *receiver, struct psd_carrier *carrier,
				     unsigned tag_bytes, enum psd_status *status, struct psd_error *err);
/* Sets the memory for the current payload; *destination is copied. */
void psd_chunk_receiver_open(struct psd_chunk_receiver *receiver, const struct psd_destination *destination);
/* Reads at most limit_bytes (> 0) of the payload, and behind its end the available bytes of the next header. scratch:
 * PSD_CHUNK_RECEIVER_SCRATCH_BYTES, aligned to 64. Returns as psd_transport.receive(). */
ssize_t psd_chunk_receiver_read(struct psd_chunk_receiver *receiver, struct psd_carrier *carrier, size_t limit_bytes,
				uint8_t *scratch);
/* Bytes of the current payload that are still to be received. */
uint64_t psd_chunk_receiver_missing_bytes(const struct psd_chunk_receiver *receiver);
/* True when the whole chunk has arrived; call psd_chunk_receiver_reset() before the next one. */
bool psd_chunk_receiver_is_complete(const struct psd_chunk_receiver *receiver);
/* True when bytes of the next header were read ahead: epoll does not report them. */
bool psd_chunk_receiver_is_ahead(const struct psd_chunk_receiver *receiver);
void psd_chunk_receiver_reset(struct psd_chunk_receiver *receiver);

#endif
