/* Wire format of messages between hosts: a fixed little-endian header, then the payload. Pure encoding and decoding of
 * headers and small payloads. Tensors travel as they are in memory (little-endian floats). The receiver checks the
 * length in a header against the operation that it expects, before it reads the payload. */
#ifndef PSD_REAL_WIRE_H
#define PSD_REAL_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"

#define PSD_WIRE_MAGIC	    UINT32_C(0x57445350) /* the bytes "PSDW", with which each header begins */
#define PSD_WIRE_VERSION    14
#define PSD_WIRE_HEAD_BYTES 32
/* Largest tag, which follows the first header of a message of tensors; see tag_bytes in real/net/connections.h. */
#define PSD_WIRE_TAG_BYTES   8
#define PSD_WIRE_SMALL_BYTES 512 /* largest payload of a message of any kind but PSD_WIRE_DATA, bytes */

/* Payload bytes of one chunk of a message of tensors; the last chunk may be shorter. Each chunk has its own header, and
 * small messages are sent between two chunks. A chunk is small enough to take about 4 ms on 1 Gbit/s, and large enough
 * that headers cost nothing. */
#define PSD_WIRE_CHUNK_BYTES (UINT64_C(1) << 19)

enum psd_wire_kind {
	PSD_WIRE_HELLO,	    /* greeting: the first message on every connection, sent by both hosts */
	PSD_WIRE_CLOCK,	    /* reading of a clock, between host 0 and each other host, before iterations begin */
	PSD_WIRE_TRANSPORT, /* bytes by which the transports of both hosts set up a connection */
	/* Chunk of a message of tensors: of a send operation, or of step number `part` of a collective. */
	PSD_WIRE_DATA,
	PSD_WIRE_READY, /* to worker 0: the sender is ready for the collective `op` of `iteration`; no payload */
	/* From worker 0: the receiver is to execute the collective `op` of `iteration` next; no payload. */
	PSD_WIRE_BEGIN,
	/* Heartbeat, sent by the event loop; no payload; `part`: enum psd_wire_work, or 0 if no job executes. */
	PSD_WIRE_ALIVE,
	PSD_WIRE_REPORT, /* loss of the sender's batch, to worker 0, in each iteration */
	/* Last message on every connection: the sender knows that all hosts are done, and will close. */
	PSD_WIRE_BYE,
	PSD_WIRE_RATES, /* measured rates, between host 0 and each other host, before iterations begin */
	/* From host 0, before iterations begin: bytes by which the ranks of a library (NCCL) find each other. */
	PSD_WIRE_INVITATION,
	/* From worker 0, no payload: `part` local SGD steps are in the window with number `iteration`. */
	PSD_WIRE_STEPS,
	PSD_WIRE_FAILED, /* sent at any time: the sender gives up; `part`: its enum psd_status */
	PSD_WIRE_DONE,	 /* no payload: the sender has executed its last operation and written its last checkpoint */
	PSD_WIRE_KINDS
};

/* Work of the host that sends a heartbeat, in the header's `part`. */
enum psd_wire_work {
	PSD_WIRE_COMPUTING = 1, /* a thread executes a sum of a library, which may be waiting for the receiver */
	PSD_WIRE_BUSY = 2,	/* a thread executes other work: layers, updates, sums, a test or a checkpoint */
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
	/* Number of the sender's attempt to join, see struct psd_mesh_attempt; 0: hosts join once. */
	uint32_t attempt;
	/* Iteration at which the sender starts; PSD_WIRE_NO_ATTEMPT: the sender never joins again. */
	uint32_t first_iteration;
};

struct psd_wire_clock {
	double sec;	/* reading of the sender's clock; if is_last: host 0's clock minus the receiver's */
	double rtt_sec; /* shortest round trip, seconds; only if is_last */
	uint32_t is_last;
};

/* Digest of a worker's parameters between two iterations, by which worker 0 notices that workers differ. */
struct psd_wire_parameters {
	uint32_t is_known;
	uint64_t sum; /* sum of the checksums of all tensors */
	/* Sum of checksum t times (t + 1) over tensors t = 0, 1, ...; with `sum` it tells which tensor differs if only
	 * one does. */
	uint64_t weighted;
	/* Hash of the worker's processor, device and libraries; only workers with equal hashes must have equal
	 * parameters. */
	uint64_t arithmetic;
};

struct psd_wire_report {
	double loss;
	/* Number of samples in the sender's batch that were classified correctly. */
	uint32_t correct;
	/* Hash of the sparse exchange's chunk selections in all iterations before this one; 0 without a sparse
	 * exchange. */
	uint64_t digest;
	struct psd_wire_parameters parameters; /* digest of the sender's parameters before this iteration */
};

#define PSD_WIRE_TRIALS 3

struct psd_wire_rates {
	/* Number of connections between two hosts: chosen by host 0, or wanted by the sender. */
	uint32_t number;
	double bps[PSD_WIRE_TRIALS]; /* measured rates over 1, 2 and 4 connections, bits per second */
};

struct psd_wire_bye {
	/* Mean payload bytes per measured iteration that the sender sent to hosts on other nodes. */
	uint64_t sent_bytes;
	uint64_t received_bytes;
	struct psd_wire_parameters parameters; /* digest of the sender's parameters after the last iteration */
};

#define PSD_WIRE_WORDS_MAX 496

struct psd_wire_failed {
	uint32_t host; /* number of the host that has failed, 0 to n_hosts - 1 */
	uint32_t n_hosts;
	/* while hosts join: hash of the run, see psd_joining_hash(), or 0 if the sender refuses the connection; later
	 * 0 */
	uint64_t hosts_hash;
	char words[PSD_WIRE_WORDS_MAX]; /* zero-terminated text that names the cause */
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

/* Payload bytes of messages of these kinds. READY, BEGIN, ALIVE, STEPS and DONE have no payload. */
#define PSD_WIRE_HELLO_BYTES	  32
#define PSD_WIRE_CLOCK_BYTES	  24
#define PSD_WIRE_TRANSPORT_BYTES  64
#define PSD_WIRE_INVITATION_BYTES 128
#define PSD_WIRE_REPORT_BYTES	  48
#define PSD_WIRE_RATES_BYTES	  32
#define PSD_WIRE_BYE_BYTES	  48
#define PSD_WIRE_FAILED_BYTES	  (16 + PSD_WIRE_WORDS_MAX)

/* Returns the number of chunks of a message of length_bytes, at least 1. Pure. */
uint64_t psd_wire_chunks(uint64_t length_bytes);
/* Returns the payload bytes of chunk number `chunk` of a message of length_bytes; 0: the message is empty or has no
 * such chunk. Pure. */
uint64_t psd_wire_chunk_bytes(uint64_t length_bytes, uint64_t chunk);

void psd_wire_encode(const struct psd_wire_head *head, uint8_t bytes[PSD_WIRE_HEAD_BYTES]);
/* Decodes a header into *head, which is written on success only. PSD_ERUN: magic or version are wrong, the kind is
 * unknown, the chunk number is too large, or the payload length does not fit the kind. The caller puts the sender's
 * name in front of the text, such as "speaks version 2, this is version 1". */
enum psd_status psd_wire_decode(const uint8_t bytes[PSD_WIRE_HEAD_BYTES], struct psd_wire_head *head,
				struct psd_error *err) PSD_MUST_CHECK;

/* Returns the status in a PSD_WIRE_FAILED message; PSD_ERUN if `part` is not a status. */
enum psd_status psd_wire_status(const struct psd_wire_head *head);

/* Returns the payload bytes of a message of this kind; kind must not be PSD_WIRE_DATA. */
size_t psd_wire_payload_bytes(enum psd_wire_kind kind);
/* Encodes a payload. payload: the struct of this kind, such as struct psd_wire_report; for PSD_WIRE_TRANSPORT and
 * PSD_WIRE_INVITATION the bytes themselves. */
void psd_wire_encode_payload(enum psd_wire_kind kind, const void *payload, uint8_t bytes[]);
/* Decodes a payload into the union's member for this kind; all other bytes of the union are 0. Accepts any bytes; the
 * text of a failure is always zero-terminated. */
union psd_wire_payload psd_wire_decode_payload(enum psd_wire_kind kind, const uint8_t bytes[]);

#endif
