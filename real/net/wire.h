/* Wire format between workers: a fixed little-endian header, then its payload. Pure encoding and decoding of headers
 * and small payloads; tensors travel as they are in memory (little-endian floats). The receiver checks a header's
 * length against the program before it reads a payload. */
#ifndef PSD_REAL_WIRE_H
#define PSD_REAL_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"

#define PSD_WIRE_MAGIC	     UINT32_C(0x57445350) /* bytes "PSDW" at the start of each header */
#define PSD_WIRE_VERSION     14
#define PSD_WIRE_HEAD_BYTES  32
#define PSD_WIRE_TAG_BYTES   8	 /* largest tag behind a header of tensors, see tag_bytes in real/net/connections.h */
#define PSD_WIRE_SMALL_BYTES 512 /* largest payload of a message other than PSD_WIRE_DATA */

/* Size of a chunk of a message of tensors; the last may be shorter. Each has a header, and urgent messages go between
 * two chunks. Small enough for about 4 ms on 1 Gbit/s, large enough that headers cost nothing. */
#define PSD_WIRE_CHUNK_BYTES (UINT64_C(1) << 19)

enum psd_wire_kind {
	PSD_WIRE_HELLO,	     /* first message on every connection, both ways */
	PSD_WIRE_CLOCK,	     /* clock readings between host 0 and each other host, before iterations begin */
	PSD_WIRE_TRANSPORT,  /* setup of a connection, written and read by its transport */
	PSD_WIRE_DATA,	     /* chunk of a message of tensors: of a send, or of step `part` of a collective */
	PSD_WIRE_READY,	     /* to worker 0: the sender is ready for a collective; no payload */
	PSD_WIRE_BEGIN,	     /* from worker 0: the receiver is to execute this collective next; no payload */
	PSD_WIRE_ALIVE,	     /* heartbeat of the event loop, no payload; `part`: enum psd_wire_work */
	PSD_WIRE_REPORT,     /* loss of a batch, to worker 0, in each iteration */
	PSD_WIRE_BYE,	     /* last message on every connection: the sender knows that all hosts are done */
	PSD_WIRE_RATES,	     /* measured rates between host 0 and each other host, before iterations begin */
	PSD_WIRE_INVITATION, /* from host 0 before iterations begin: data by which a library's ranks meet */
	PSD_WIRE_STEPS,	 /* from worker 0, no payload: the window that begins at `iteration` has `part` local steps */
	PSD_WIRE_FAILED, /* sent at any time: the sender gives up with status `part` */
	PSD_WIRE_DONE,	 /* no payload: the sender has executed and saved everything */
	PSD_WIRE_KINDS
};

/* Work of a heartbeat's sender. */
enum psd_wire_work {
	PSD_WIRE_COMPUTING = 1, /* a job executes */
	PSD_WIRE_BUSY = 2,	/* one other than a library's sum, which may wait for this host */
};

struct psd_wire_head {
	enum psd_wire_kind kind;
	uint32_t op;
	uint32_t iteration;
	uint32_t part;
	uint32_t chunk;	       /* number of the chunk in a PSD_WIRE_DATA message */
	uint64_t length_bytes; /* length of the whole message, not of the chunk */
};

#define PSD_WIRE_NO_ATTEMPT UINT32_MAX

struct psd_wire_hello {
	uint32_t host;
	uint32_t n_hosts;
	uint32_t connection;	  /* number of this connection between the two hosts */
	uint64_t terms_bytes;	  /* length of the agreed terms behind this message, on connection 0 */
	uint32_t attempt;	  /* number of the attempt to join, see struct psd_mesh_attempt; 0: hosts join once */
	uint32_t first_iteration; /* iteration at which the sender starts; PSD_WIRE_NO_ATTEMPT: it never joins again */
};

struct psd_wire_clock {
	double sec; /* reading of the sender's clock; in the last message: offset of the receiver's clock to host 0's */
	double rtt_sec; /* shortest round trip; only in the last message */
	uint32_t is_last;
};

/* Digest of a worker's parameters between two iterations. */
struct psd_wire_parameters {
	uint32_t is_known;
	uint64_t sum;	     /* sum of all tensors' checksums */
	uint64_t weighted;   /* the same, each times its number from 1 on: a single different tensor is found */
	uint64_t arithmetic; /* hash of its processor, device and libraries, as far as parameters depend on them */
};

struct psd_wire_report {
	double loss;
	uint32_t correct;		       /* number of correctly classified samples in the sender's batch */
	uint64_t digest;		       /* hash of all chunk selections up to the iteration before this one */
	struct psd_wire_parameters parameters; /* before this iteration */
};

#define PSD_WIRE_TRIALS 3

struct psd_wire_rates {
	uint32_t number;	     /* chosen number of connections between two hosts */
	double bps[PSD_WIRE_TRIALS]; /* measured rates over 1, 2 and 4 connections */
};

struct psd_wire_bye {
	uint64_t sent_bytes; /* payload bytes per iteration to other nodes */
	uint64_t received_bytes;
	struct psd_wire_parameters parameters; /* after the last iteration */
};

#define PSD_WIRE_WORDS_MAX 496

struct psd_wire_failed {
	uint32_t host; /* number of the host that fails, out of n_hosts */
	uint32_t n_hosts;
	uint64_t hosts_hash;		/* while joining: hash of the run; 0: the receiver is refused */
	char words[PSD_WIRE_WORDS_MAX]; /* zero-terminated message that names the cause */
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

/* Payload bytes of the messages of these kinds. */
#define PSD_WIRE_HELLO_BYTES	  32
#define PSD_WIRE_CLOCK_BYTES	  24
#define PSD_WIRE_TRANSPORT_BYTES  64
#define PSD_WIRE_INVITATION_BYTES 128
#define PSD_WIRE_REPORT_BYTES	  48
#define PSD_WIRE_RATES_BYTES	  32
#define PSD_WIRE_BYE_BYTES	  48
#define PSD_WIRE_FAILED_BYTES	  (16 + PSD_WIRE_WORDS_MAX)

/* Number of chunks of a message of that length, at least one. Pure, as is the next. */
uint64_t psd_wire_chunks(uint64_t length_bytes);
/* Bytes of chunk number `chunk`; 0: there is no such chunk, or the message is empty. */
uint64_t psd_wire_chunk_bytes(uint64_t length_bytes, uint64_t chunk);

void psd_wire_encode(const struct psd_wire_head *head, uint8_t bytes[PSD_WIRE_HEAD_BYTES]);
/* Decodes a header into *head. PSD_ERUN: wrong magic or version, unknown kind, chunk number too large, or wrong payload
 * length. The text has no subject: "speaks version 2, this is version 1". *head is written on success only. */
enum psd_status psd_wire_decode(const uint8_t bytes[PSD_WIRE_HEAD_BYTES], struct psd_wire_head *head,
				struct psd_error *err) PSD_MUST_CHECK;

/* Status of a PSD_WIRE_FAILED message; PSD_ERUN where `part` is not a status. */
enum psd_status psd_wire_status(const struct psd_wire_head *head);

/* Payload bytes of a message of that kind, other than PSD_WIRE_DATA. */
size_t psd_wire_payload_bytes(enum psd_wire_kind kind);
/* Encodes a payload: the struct of that kind, or the raw bytes of PSD_WIRE_TRANSPORT and PSD_WIRE_INVITATION. */
void psd_wire_encode_payload(enum psd_wire_kind kind, const void *payload, uint8_t bytes[]);
/* Decodes a payload into the member of that kind; other bytes are 0. Accepts any bytes; a failure's words end. */
union psd_wire_payload psd_wire_decode_payload(enum psd_wire_kind kind, const uint8_t bytes[]);

#endif
