/* Receiver of one connection. It reads a chunk's header, then the payload of the chunk straight into tensor memory, or
 * adds the payload to the values in that memory. The header of the next chunk is read together with the end of a
 * payload, which saves a system call. Functions never wait. The caller decides into which memory a payload goes. */
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
	/* Segments of the memory. Their total length is the length of the message in bytes; if is_of_floats, it is 4
	 * bytes for each value of the message. */
	struct iovec segments[PSD_SEGMENTS_MAX];
	unsigned n_segments;
	/* Encoding of the received values; they are added to the values in the memory. NULL: received bytes replace the
	 * bytes in the memory. */
	const struct psd_encoding *added;
	/* True: the memory holds floats, although the values in the message may be shorter (2 bytes). Used only if
	 * `added` is not NULL. */
	bool is_of_floats;
};

/* Returns the number of bytes of memory that one byte of the message fills: 2 if values of 2 bytes are added to floats,
 * otherwise 1. */
unsigned psd_destination_widening(const struct psd_destination *destination);

/* State of one connection's receiver, which receives one chunk after another. All zeros: a header is read next. Fields
 * after is_held are private to chunk_receiver.c. */
struct psd_chunk_receiver {
	struct psd_wire_head head; /* header of the chunk that is being received; valid if has_head */
	bool has_head;
	bool has_destination;
	bool is_held; /* the payload stays unread until the caller has decided into which memory it goes */
	/* Header and tag of the current chunk, as received so far. */
	uint8_t bytes[PSD_WIRE_HEAD_BYTES + PSD_WIRE_TAG_BYTES];
	size_t n_head_bytes;
	/* Memory for the payload of the current chunk; its segments shrink while bytes arrive. */
	struct psd_destination destination;
	unsigned at;
	/* Number of bytes in `carried`, which is the beginning of a value whose other bytes have not arrived yet. */
	unsigned n_carried;
	uint8_t carried[sizeof(float)];
	/* Beginning of the next chunk's header, received with the end of the current payload. */
	uint8_t ahead[PSD_WIRE_HEAD_BYTES];
	size_t n_ahead_bytes;
};

enum {
	/* Largest number of bytes that one system call receives before they are added to the memory. They fit into the
	 * second-level cache. */
	PSD_CHUNK_RECEIVER_PART_BYTES = 1 << 17,
	/* Size of the scratch memory of psd_chunk_receiver_read(): PSD_CHUNK_RECEIVER_PART_BYTES for received bytes,
	 * and 64 bytes before them for the beginning of an incomplete value. */
	PSD_CHUNK_RECEIVER_SCRATCH_BYTES = PSD_CHUNK_RECEIVER_PART_BYTES + 64,
};

/* Reads bytes of a header and of the tag that follows it, but no bytes of the payload. tag_bytes: length of the tag,
 * which only the first chunk of a message of tensors has. Bytes that were read ahead are used first. Returns as
 * psd_transport.receive(). *status becomes PSD_ERUN if the header is invalid; the caller puts the peer's name before
 * the error text. */
ssize_t psd_chunk_receiver_read_head(struct psd_chunk_receiver *receiver, struct psd_carrier *carrier,
				     unsigned tag_bytes, enum psd_status *status, struct psd_error *err);
/* Sets the memory for the payload of the current chunk. *destination is copied. */
void psd_chunk_receiver_open(struct psd_chunk_receiver *receiver, const struct psd_destination *destination);
/* Reads at most limit_bytes (> 0) of the current payload. If the end of the payload is among them, it also reads those
 * bytes of the next header that have arrived. scratch: memory of PSD_CHUNK_RECEIVER_SCRATCH_BYTES, aligned to 64 bytes,
 * for values before they are added. Returns as psd_transport.receive(). */
ssize_t psd_chunk_receiver_read(struct psd_chunk_receiver *receiver, struct psd_carrier *carrier, size_t limit_bytes,
				uint8_t *scratch);
/* Returns the number of bytes of the current payload that have not been received yet. */
uint64_t psd_chunk_receiver_missing_bytes(const struct psd_chunk_receiver *receiver);
/* True when the whole chunk has arrived. Call psd_chunk_receiver_reset() before the next chunk is read. */
bool psd_chunk_receiver_is_complete(const struct psd_chunk_receiver *receiver);
/* True if bytes of the next header were read ahead. epoll does not report these bytes, so the caller must call the read
 * functions again. */
bool psd_chunk_receiver_is_ahead(const struct psd_chunk_receiver *receiver);
void psd_chunk_receiver_reset(struct psd_chunk_receiver *receiver);

#endif
