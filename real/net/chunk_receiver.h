/* Receiver of one connection: reads a header, then the payload of its chunk straight into tensor memory, or adds the
 * payload to the values there. The next header is read together with the end of a payload, which saves a system call.
 * Never waits. The caller says into which memory a payload goes. */
#ifndef PSD_REAL_CHUNK_RECEIVER_H
#define PSD_REAL_CHUNK_RECEIVER_H

#include <stdbool.h>
#include <sys/types.h>

#include "engine/encodings/encoding.h"
#include "real/net/segments.h"
#include "real/net/transport.h"
#include "real/net/wire.h"

/* Memory into which one message is received, as a list of segments. With `added` set, received values are added to the
 * values in this memory. */
struct psd_destination {
	/* Together as large as the message; if is_of_floats, 4 bytes for each value of the message. */
	struct iovec segments[PSD_SEGMENTS_MAX];
	unsigned n_segments;
	/* Encoding of the received values, which are added to the memory; NULL: received bytes are stored as they
	 * are. */
	const struct psd_encoding *added;
	/* The memory holds floats, and the message may have shorter values; only with `added`. */
	bool is_of_floats;
};

/* Number of bytes of memory that one byte of the message fills. 1, or 2 if values of 2 bytes are added to floats. */
unsigned psd_destination_widening(const struct psd_destination *destination);

/* Reception of the chunks of one connection, one after another. Fields after is_held are private to chunk_receiver.c.
 * All zeros: a header is read next. */
struct psd_chunk_receiver {
	struct psd_wire_head head; /* header of the chunk that is being received; valid if has_head */
	bool has_head;
	bool has_destination;
	bool is_held; /* the payload stays unread until the caller knows the memory for it */
	/* Header and tag of the current chunk, as received so far. */
	uint8_t bytes[PSD_WIRE_HEAD_BYTES + PSD_WIRE_TAG_BYTES];
	size_t n_head_bytes;
	/* Memory for the payload of the current chunk; its segments shrink while bytes arrive. */
	struct psd_destination destination;
	unsigned at;
	unsigned n_carried; /* number of bytes in `carried`: beginning of a value whose other bytes have not arrived */
	uint8_t carried[sizeof(float)];
	/* Beginning of the next chunk's header, received with the end of the current payload. */
	uint8_t ahead[PSD_WIRE_HEAD_BYTES];
	size_t n_ahead_bytes;
};

enum {
	/* Most bytes that are received and added at a time; they fit into the second-level cache. */
	PSD_CHUNK_RECEIVER_PART_BYTES = 1 << 17,
	/* These bytes, and 64 in front of them for the beginning of an incomplete value. */
	PSD_CHUNK_RECEIVER_SCRATCH_BYTES = PSD_CHUNK_RECEIVER_PART_BYTES + 64,
};

/* Reads bytes of a header and of the tag behind it (tag_bytes long, in the first chunk of a message of tensors), but no
 * bytes of the payload. Bytes that were read ahead come first. Returns as psd_transport.receive(). *status is PSD_ERUN
 * if the header is invalid; the caller puts the peer's name in front of the error text. */
ssize_t psd_chunk_receiver_read_head(struct psd_chunk_receiver *receiver, struct psd_carrier *carrier,
				     unsigned tag_bytes, enum psd_status *status, struct psd_error *err);
/* Sets the memory for the payload of the current chunk. *destination is copied. */
void psd_chunk_receiver_open(struct psd_chunk_receiver *receiver, const struct psd_destination *destination);
/* Reads at most limit_bytes (> 0) of the current payload. If these are its last bytes, it also reads bytes of the next
 * header that are there. scratch: memory of PSD_CHUNK_RECEIVER_SCRATCH_BYTES, aligned to 64 bytes, which values to be
 * added are read into. Returns as psd_transport.receive(). */
ssize_t psd_chunk_receiver_read(struct psd_chunk_receiver *receiver, struct psd_carrier *carrier, size_t limit_bytes,
				uint8_t *scratch);
/* Returns the number of bytes of the current payload that have not been received yet. */
uint64_t psd_chunk_receiver_missing_bytes(const struct psd_chunk_receiver *receiver);
/* True when the whole chunk has arrived. Call psd_chunk_receiver_reset() before the next chunk is read. */
bool psd_chunk_receiver_is_complete(const struct psd_chunk_receiver *receiver);
/* True when bytes of the next header were read ahead. epoll does not report these bytes, so the caller must read on. */
bool psd_chunk_receiver_is_ahead(const struct psd_chunk_receiver *receiver);
void psd_chunk_receiver_reset(struct psd_chunk_receiver *receiver);

#endif
