/* Wire format of messages between hosts: a fixed little-endian header, then the payload. This module only encodes and
 * decodes headers and small payloads; it does not send them. Tensors are sent as they are in memory (little-endian
 * floats). Before the receiver reads a payload, it compares the length in the header with the length that it
 * expects. */
#ifndef PSD_REAL_WIRE_H
#define PSD_REAL_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "engine/program/account.h"

#define PSD_WIRE_MAGIC	    UINT32_C(0x57445350) /* the bytes "PSDW", with which each header begins */
#define PSD_WIRE_VERSION    17
#define PSD_WIRE_HEAD_BYTES 32
/* Largest length of a tag, bytes. The tag follows the first header of a message of tensors, see tag_bytes in
 * real/net/connections.h. */
#define PSD_WIRE_TAG_BYTES   8
#define PSD_WIRE_SMALL_BYTES 512 /* largest payload of a message, bytes; only PSD_WIRE_DATA may have more */

/* Payload bytes of one chunk of a message of tensors; the last chunk may be shorter. Each chunk has its own header, and
 * small messages are sent between two chunks. So a chunk is small: sending it takes about 4 ms at 1 Gbit/s. It is also
 * large enough that the time for headers is negligible. */
#define PSD_WIRE_CHUNK_BYTES (UINT64_C(1) << 19)

enum psd_wire_kind {
	PSD_WIRE_HELLO, /* greeting: the first message on every connection; both hosts send it */
	/* Time of the sender's clock, between host 0 and each other host, before iterations begin. */
	PSD_WIRE_CLOCK,
	PSD_WIRE_TRANSPORT, /* data that the transports of two hosts exchange to set up their connection */
	/* Chunk of a message of tensors. The message belongs to a send operation, or to step number `part` of a
	 * collective. */
	PSD_WIRE_DATA,
	/* To worker 0, no payload: the sender is ready for the collective with number `op` of iteration `iteration`. */
	PSD_WIRE_READY,
	/* From worker 0, no payload: the receiver must execute the collective with number `op` of iteration `iteration`
	 * next. */
	PSD_WIRE_BEGIN,
	/* Heartbeat, sent by the event loop; no payload. `part`: work of the sender (enum psd_wire_work); 0: it
	 * executes no work. */
	PSD_WIRE_ALIVE,
	PSD_WIRE_REPORT, /* loss of the sender's batch, to worker 0, in each iteration */
	/* Last message on every connection. The sender knows that all hosts have finished, and will close the
	 * connection. */
	PSD_WIRE_BYE,
	/* Measured rates of connections, between host 0 and each other host, before iterations begin. */
	PSD_WIRE_RATES,
	/* From host 0, before iterations begin: bytes that the ranks of a library (NCCL) need to connect to each
	 * other. */
	PSD_WIRE_INVITATION,
	/* From worker 0, no payload: in window number `iteration` of local SGD, workers exchange parameters every
	 * `part` iterations (struct psd_period). */
	PSD_WIRE_STEPS,
	PSD_WIRE_FAILED, /* sent at any time: the sender gives up; `part`: the cause, an enum psd_status */
	/* No payload: the sender has executed its last operation and written its last checkpoint. */
	PSD_WIRE_DONE,
	PSD_WIRE_KINDS
};

/* Work of a host that sends a heartbeat; sent in `part` of the header. */
enum psd_wire_work {
	/* A thread executes an all-reduce of a library, which may be waiting for the receiver of the heartbeat. */
	PSD_WIRE_COMPUTING = 1,
	PSD_WIRE_BUSY = 2, /* a thread executes other work: layers, updates, sums, a test or a checkpoint */
};

struct psd_wire_head {
	enum psd_wire_kind kind;
	uint32_t op;
	uint32_t iteration;
	uint32_t part;
	uint32_t chunk;	       /* number of this chunk in its message, from 0; 0 in small messages */
	uint64_t length_bytes; /* payload bytes of the whole message, not of this chunk */
};

#define PSD_WIRE_NO_ATTEMPT UINT32_MAX

struct psd_wire_hello {
	uint32_t host;
	uint32_t n_hosts;
	uint32_t connection;  /* number of this connection among those between the two hosts, from 0 */
	uint64_t terms_bytes; /* length of the sender's terms, which follow the message on connection 0 */
	/* Number of the sender's attempt to join, see struct psd_mesh_attempt; 0: the sender joins only once. */
	uint32_t attempt;
	/* First iteration that the sender will execute; PSD_WIRE_NO_ATTEMPT: the sender joins only once. */
	uint32_t first_iteration;
};

struct psd_wire_clock {
	/* Time of the sender's clock, seconds; in the last message: host 0's clock minus the receiver's clock. */
	double sec;
	double rtt_sec; /* shortest measured round trip, seconds; only in the last message */
	uint32_t is_last;
};

/* Digest of a worker's parameters between two iterations. By these digests worker 0 notices if workers have different
 * parameters. */
struct psd_wire_parameters {
	uint32_t is_known;
	uint64_t sum; /* sum of the checksums of all tensors */
	/* Weighted sum of the checksums: checksum of tensor t times (t + 1), added over all tensors t = 0, 1, ...
	 * Together with `sum` it shows which tensor differs, if only one tensor does. */
	uint64_t weighted;
	/* Hash of the worker's processor, device and libraries. Parameters must be equal only on workers with equal
	 * hashes. */
	uint64_t arithmetic;
};

struct psd_wire_report {
	double loss;
	/* Number of samples in the sender's batch that were classified correctly. */
	uint32_t correct;
	/* Hash of the chunks that sparse exchange selected in all earlier iterations; 0 without sparse exchange. */
	uint64_t digest;
	struct psd_wire_parameters parameters; /* digest of the sender's parameters before this iteration */
};

#define PSD_WIRE_TRIALS 3

struct psd_wire_rates {
	/* Number of connections between two hosts. From host 0: the chosen number. To host 0: the number that the
	 * sender wants. */
	uint32_t number;
	double bps[PSD_WIRE_TRIALS]; /* measured rates over 1, 2 and 4 connections, bits per second */
};

#define PSD_WIRE_AGES 17

/* Asynchronous training: counts of the updates of slices by gradients of single workers. */
struct psd_gradient_ages {
	uint64_t n_updates;
	/* sum of all ages; age: number of updates by others since the worker received the parameters of its gradient */
	uint64_t sum;
	uint32_t most; /* highest age of a gradient */
	/* largest number of iterations by which a gradient was ahead of the oldest iteration that lacks a gradient */
	uint32_t most_ahead;
};

struct psd_wire_bye {
	/* Payload bytes that the sender sent to hosts on other nodes: mean per measured iteration. */
	uint64_t sent_bytes;
	uint64_t received_bytes;
	struct psd_wire_parameters parameters; /* digest of the sender's parameters after the last iteration */
	double iteration_sec;		       /* duration of an iteration on the sender, seconds */
	struct psd_parts parts;		       /* parts of iteration_sec */
	/* Stale reads: number of the sender's reads of each age in the measured iterations, see psd_read_counts. */
	uint64_t reads[PSD_WIRE_AGES];
	struct psd_gradient_ages ages; /* counts of the sender's shard */
};

#define PSD_WIRE_WORDS_MAX 496

struct psd_wire_failed {
	uint32_t host; /* number of the host that has failed, 0 to n_hosts - 1 */
	uint32_t n_hosts;
	/* Hash of the run, see psd_joining_hash(). 0 if the sender refuses the connection, and after joining. */
	uint64_t hosts_hash;
	char words[PSD_WIRE_WORDS_MAX]; /* zero-terminated text that describes the cause */
};

union psd_wire_payload {
	struct psd_wire_hello hello;
	struct psd_wire_clock clock;
	struct psd_wire_report report;
	struct psd_wire_rates rates;
	struct psd_wire_bye bye;
	struct psd_wire_failed failed;
	uint8_t raw[PSD_WIRE_SMALL_BYTES];
};

/* Payload bytes of a message of each kind. READY, BEGIN, ALIVE, STEPS and DONE have no payload. */
#define PSD_WIRE_HELLO_BYTES	  32
#define PSD_WIRE_CLOCK_BYTES	  24
#define PSD_WIRE_TRANSPORT_BYTES  64
#define PSD_WIRE_INVITATION_BYTES 128
#define PSD_WIRE_REPORT_BYTES	  48
#define PSD_WIRE_RATES_BYTES	  32
#define PSD_WIRE_BYE_BYTES	  (112 + 8 * PSD_WIRE_AGES)
#define PSD_WIRE_FAILED_BYTES	  (16 + PSD_WIRE_WORDS_MAX)

/* Returns the number of chunks of a message of length_bytes, at least 1. Pure. */
uint64_t psd_wire_chunks(uint64_t length_bytes);
/* Returns the payload bytes of chunk number `chunk` (from 0) of a message of length_bytes; 0 if the message is empty or
 * has no such chunk. Pure. */
uint64_t psd_wire_chunk_bytes(uint64_t length_bytes, uint64_t chunk);

void psd_wire_encode(const struct psd_wire_head *head, uint8_t bytes[PSD_WIRE_HEAD_BYTES]);
/* Decodes a header into *head, which is written only on success. PSD_ERUN: the magic number or the version is wrong,
 * the kind is unknown, the chunk number is too large, or the payload length is wrong for the kind. The caller puts the
 * sender's name before the text, which is, for example, "speaks version 2, this is version 1". */
enum psd_status psd_wire_decode(const uint8_t bytes[PSD_WIRE_HEAD_BYTES], struct psd_wire_head *head,
				struct psd_error *err) PSD_MUST_CHECK;

/* Returns the status in a PSD_WIRE_FAILED message; PSD_ERUN if `part` is not a status. */
enum psd_status psd_wire_status(const struct psd_wire_head *head);

/* Returns the payload bytes of a message of this kind; kind must not be PSD_WIRE_DATA. */
size_t psd_wire_payload_bytes(enum psd_wire_kind kind);
/* Encodes a payload into bytes[]. payload: the struct of this kind, such as struct psd_wire_report; for
 * PSD_WIRE_TRANSPORT and PSD_WIRE_INVITATION the bytes themselves. */
void psd_wire_encode_payload(enum psd_wire_kind kind, const void *payload, uint8_t bytes[]);
/* Decodes a payload into the union's member for this kind; all other bytes of the union are 0. Accepts any bytes. The
 * text of a PSD_WIRE_FAILED message is always zero-terminated in the result. */
union psd_wire_payload psd_wire_decode_payload(enum psd_wire_kind kind, const uint8_t bytes[]);

#endif
