/* Wire format between workers: a fixed little-endian header, then its payload. Pure encoding and decoding of headers
 * and small payloads; tensors travel as they are in memory (little-endian floats). The receiver checks a header's
 * length against the program before it reads a payload. */
#ifndef PSD_REAL_WIRE_H
#define PSD_REAL_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"

#define PSD_WIRE_MAGIC	     UINT32_C(0x57445350) /* "PSDW" */
#define PSD_WIRE_VERSION     14
#define PSD_WIRE_HEAD_BYTES  32
#define PSD_WIRE_TAG_BYTES   8	 /* largest tag behind a header of tensors, see real/net/connections.h */
#define PSD_WIRE_SMALL_BYTES 512 /* largest payload that is not a tensor */

/* Size of a chunk of a message of tensors; the last may be shorter. Each has a header, and urgent messages go between
 * two chunks. Small enough for about 4 ms on 1 Gbit/s, large enough that headers cost nothing. */
#define PSD_WIRE_CHUNK_BYTES (UINT64_C(1) << 19)

enum psd_wire_kind {
	PSD_WIRE_HELLO,	     /* first on every connection, both ways */
	PSD_WIRE_CLOCK,	     /* between host 0 and each other host, before they begin */
	PSD_WIRE_TRANSPORT,  /* between any two hosts: written and read by a transport */
	PSD_WIRE_DATA,	     /* a chunk of a send, or of a step (`part`) of a collective */
	PSD_WIRE_READY,	     /* to worker 0: ready for a collective; no payload */
	PSD_WIRE_BEGIN,	     /* from worker 0: execute this collective next; no payload */
	PSD_WIRE_ALIVE,	     /* heartbeat of the event loop, no payload; `part`: enum psd_wire_work */
	PSD_WIRE_REPORT,     /* to worker 0, in each iteration */
	PSD_WIRE_BYE,	     /* last on every connection: the sender knows that all hosts are done */
	PSD_WIRE_RATES,	     /* between host 0 and each other host, before they begin */
	PSD_WIRE_INVITATION, /* from host 0 before they begin: by which a library's ranks meet */
	PSD_WIRE_STEPS,	     /* from worker 0, no payload: window `iteration` has `part` local steps */
	PSD_WIRE_FAILED,     /* in place of anything: the sender gives up with status `part` */
	PSD_WIRE_DONE,	     /* no payload: the sender has executed and saved everything */
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
	uint32_t chunk;	       /* number of a PSD_WIRE_DATA chunk */
	uint64_t length_bytes; /* whole message */
};

#define PSD_WIRE_NO_ATTEMPT UINT32_MAX

struct psd_wire_hello {
	uint32_t host;
	uint32_t n_hosts;
	uint32_t connection;	  /* number of the connection between the two hosts */
	uint64_t terms_bytes;	  /* length of the terms behind the frame, on connection 0 */
	uint32_t attempt;	  /* see struct psd_mesh_attempt; 0: hosts join once */
	uint32_t first_iteration; /* PSD_WIRE_NO_ATTEMPT: it never joins again */
};

struct psd_wire_clock {
	double sec;	/* sender's clock; in the last message: receiver's offset to host 0 */
	double rtt_sec; /* last message: shortest round trip */
	uint32_t is_last;
};

struct psd_wire_report {
	double loss;
	uint32_t correct; /* correctly classified samples of the sender's batch */
	uint64_t digest;  /* hash of all chunk selections up to the iteration before */
};

#define PSD_WIRE_TRIALS 3

struct psd_wire_rates {
	uint32_t number;	     /* connections between two hosts */
	double bps[PSD_WIRE_TRIALS]; /* over 1, 2, 4 connections */
};

struct psd_wire_bye {
	uint64_t sent_bytes; /* per iteration, to other nodes */
	uint64_t received_bytes;
};

#define PSD_WIRE_WORDS_MAX 496

struct psd_wire_failed {
	uint32_t host; /* the sender, out of n_hosts */
	uint32_t n_hosts;
	uint64_t hosts_hash;		/* while joining: hash of addresses and number of joinings */
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

/* Payload sizes of these kinds. */
#define PSD_WIRE_HELLO_BYTES	  32
#define PSD_WIRE_CLOCK_BYTES	  24
#define PSD_WIRE_TRANSPORT_BYTES  64
#define PSD_WIRE_INVITATION_BYTES 128
#define PSD_WIRE_REPORT_BYTES	  24
#define PSD_WIRE_RATES_BYTES	  32
#define PSD_WIRE_BYE_BYTES	  16
#define PSD_WIRE_FAILED_BYTES	  (16 + PSD_WIRE_WORDS_MAX)

/* Chunks of a message of that length, at least one. Pure, as is the next. */
uint64_t psd_wire_chunks(uint64_t length_bytes);
/* Bytes of chunk number `chunk`; 0: there is no such chunk, or the message is empty. */
uint64_t psd_wire_chunk_bytes(uint64_t length_bytes, uint64_t chunk);

void psd_wire_encode(const struct psd_wire_head *head, uint8_t bytes[PSD_WIRE_HEAD_BYTES]);
/* PSD_ERUN: wrong magic or version, unknown kind, chunk number too large, or wrong payload length. The text has no
 * subject: "speaks version 2, this is version 1". *head is written on success only. */
enum psd_status psd_wire_decode(const uint8_t bytes[PSD_WIRE_HEAD_BYTES], struct psd_wire_head *head,
				struct psd_error *err) PSD_MUST_CHECK;

/* Status of a PSD_WIRE_FAILED message; PSD_ERUN where `part` is not a status. */
enum psd_status psd_wire_status(const struct psd_wire_head *head);

/* Payload size of a kind other than PSD_WIRE_DATA. */
size_t psd_wire_payload_bytes(enum psd_wire_kind kind);
/* payload: the struct of that kind; the raw bytes of PSD_WIRE_TRANSPORT and PSD_WIRE_INVITATION. */
void psd_wire_encode_payload(enum psd_wire_kind kind, const void *payload, uint8_t bytes[]);
/* Zeros beside the member of that kind. Accepts any bytes; words of a failure always end. */
union psd_wire_payload psd_wire_decode_payload(enum psd_wire_kind kind, const uint8_t bytes[]);

#endif
