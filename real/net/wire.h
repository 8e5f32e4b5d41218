/* What travels between workers: a fixed little-endian header, then its payload. Pure encoding and decoding of headers
 * and of the small payloads; tensors travel as they lie in memory (little-endian floats). Refuses to know the program:
 * whether a header's length is the expected one is for the receiver to say before it reads anything into memory. */
#ifndef PSD_REAL_WIRE_H
#define PSD_REAL_WIRE_H

#include <stdint.h>

#include "engine/base/error.h"

#define PSD_WIRE_MAGIC	     UINT32_C(0x57445350) /* "PSDW" */
#define PSD_WIRE_VERSION     13
#define PSD_WIRE_HEAD_BYTES  32
#define PSD_WIRE_TAG_BYTES   8	 /* at most, behind the header of a message of tensors, see real/net/connections.h */
#define PSD_WIRE_SMALL_BYTES 512 /* the longest payload that is not a tensor */

/* A message of tensors travels in chunks of this, the last one shorter, each with a header of its own: what matters
 * more goes between two of them. So small that a link of 1 Gbit/s takes about 4 ms for one, so large that headers cost
 * nothing. */
#define PSD_WIRE_CHUNK_BYTES (UINT64_C(1) << 19)

enum psd_wire_kind {
	PSD_WIRE_HELLO,	     /* first on every connection, both ways: struct psd_wire_hello */
	PSD_WIRE_CLOCK,	     /* between host 0 and each other before they begin: struct psd_wire_clock */
	PSD_WIRE_WAY,	     /* the same between any two: PSD_WIRE_WAY_BYTES that their transport makes and reads */
	PSD_WIRE_DATA,	     /* a chunk of a send's message, or of a step (`part`) of a collective */
	PSD_WIRE_READY,	     /* to worker 0: the sender is ready for a collective */
	PSD_WIRE_BEGIN,	     /* from worker 0: all are ready, this is the next; both without a payload */
	PSD_WIRE_ALIVE,	     /* without a payload, now and then: the sender's loop goes on; part 1: it computes */
	PSD_WIRE_REPORT,     /* to worker 0, each iteration: struct psd_wire_report */
	PSD_WIRE_BYE,	     /* last on every connection: the sender has all it needs: struct psd_wire_bye */
	PSD_WIRE_LINES,	     /* between host 0 and each other before they begin: struct psd_wire_lines */
	PSD_WIRE_INVITATION, /* from host 0 before they begin: PSD_WIRE_INVITATION_BYTES by which a library's ranks
				meet */
	PSD_WIRE_STEPS,	     /* from worker 0, without a payload: the window `iteration` has `part` local steps */
	PSD_WIRE_FAILED,     /* instead of anything: the sender gives up, `part`: its status; struct psd_wire_failed */
	PSD_WIRE_KINDS
};

struct psd_wire_head {
	enum psd_wire_kind kind;
	uint32_t op;
	uint32_t iteration;
	uint32_t part;
	uint32_t chunk;	       /* of PSD_WIRE_DATA: which this is */
	uint64_t length_bytes; /* of the whole message */
};

#define PSD_WIRE_NO_ATTEMPT UINT32_MAX

struct psd_wire_hello {
	uint32_t host;
	uint32_t n_hosts;
	uint32_t line;		  /* which of the connections between the two hosts this is */
	uint64_t terms_bytes;	  /* of text that follows the frame: what the sender's scenario says, on line 0 */
	uint32_t attempt;	  /* see struct psd_mesh_attempt, as the next; 0: hosts join once */
	uint32_t first_iteration; /* PSD_WIRE_NO_ATTEMPT: it never joins again */
};

struct psd_wire_clock {
	double sec;	/* the sender's clock; in the last message how far the receiver's is ahead of host 0's */
	double rtt_sec; /* in the last message: the shortest round trip seen */
	uint32_t is_last;
};

struct psd_wire_report {
	double loss;
	uint32_t correct; /* of the labels of the sender's batch, of which psd_feed_open() refuses 2^32 */
	uint64_t digest;  /* of all choices of chunks up to the iteration before */
};

#define PSD_WIRE_LINES_TRIED 3

struct psd_wire_lines {
	uint32_t number;		  /* of connections between two hosts */
	double bps[PSD_WIRE_LINES_TRIED]; /* over 1, 2, 4 of them */
};

struct psd_wire_bye {
	uint64_t sent_bytes; /* per iteration, to other nodes */
	uint64_t received_bytes;
};

#define PSD_WIRE_WORDS_MAX 496

struct psd_wire_failed {
	uint32_t host; /* of n_hosts: the sender */
	uint32_t n_hosts;
	uint64_t hosts_hash;		/* while hosts join: of their addresses and of how often they have joined */
	char words[PSD_WIRE_WORDS_MAX]; /* zero-terminated, a line for the user that says who is at fault */
};

/* Bytes of the payload of these kinds. */
#define PSD_WIRE_HELLO_BYTES	  32
#define PSD_WIRE_CLOCK_BYTES	  24
#define PSD_WIRE_WAY_BYTES	  64
#define PSD_WIRE_INVITATION_BYTES 128
#define PSD_WIRE_REPORT_BYTES	  24
#define PSD_WIRE_LINES_BYTES	  32
#define PSD_WIRE_BYE_BYTES	  16
#define PSD_WIRE_FAILED_BYTES	  (16 + PSD_WIRE_WORDS_MAX)

/* Of a message of so many bytes; at least one. Pure, as is the next. */
uint64_t psd_wire_chunks(uint64_t length_bytes);
/* Of chunk number `chunk`; 0: there is no such chunk, or the message is empty. */
uint64_t psd_wire_chunk_bytes(uint64_t length_bytes, uint64_t chunk);

void psd_wire_encode(const struct psd_wire_head *head, uint8_t bytes[PSD_WIRE_HEAD_BYTES]);
/* PSD_ERUN: another magic or version, an unknown kind, no such chunk, or a small payload of another
 * length; the text has no subject: "speaks version 2, this is version 1". *head is written on success only. */
enum psd_status psd_wire_decode(const uint8_t bytes[PSD_WIRE_HEAD_BYTES], struct psd_wire_head *head,
				struct psd_error *err) PSD_MUST_CHECK;

/* That the sender of PSD_WIRE_FAILED gives up with; PSD_ERUN where `part` is none. */
enum psd_status psd_wire_status(const struct psd_wire_head *head);

void psd_wire_encode_hello(const struct psd_wire_hello *hello, uint8_t bytes[PSD_WIRE_HELLO_BYTES]);
struct psd_wire_hello psd_wire_decode_hello(const uint8_t bytes[PSD_WIRE_HELLO_BYTES]);
void psd_wire_encode_clock(const struct psd_wire_clock *clock, uint8_t bytes[PSD_WIRE_CLOCK_BYTES]);
struct psd_wire_clock psd_wire_decode_clock(const uint8_t bytes[PSD_WIRE_CLOCK_BYTES]);
void psd_wire_encode_report(const struct psd_wire_report *report, uint8_t bytes[PSD_WIRE_REPORT_BYTES]);
struct psd_wire_report psd_wire_decode_report(const uint8_t bytes[PSD_WIRE_REPORT_BYTES]);
void psd_wire_encode_lines(const struct psd_wire_lines *lines, uint8_t bytes[PSD_WIRE_LINES_BYTES]);
struct psd_wire_lines psd_wire_decode_lines(const uint8_t bytes[PSD_WIRE_LINES_BYTES]);
void psd_wire_encode_bye(const struct psd_wire_bye *bye, uint8_t bytes[PSD_WIRE_BYE_BYTES]);
struct psd_wire_bye psd_wire_decode_bye(const uint8_t bytes[PSD_WIRE_BYE_BYTES]);
void psd_wire_encode_failed(const struct psd_wire_failed *failed, uint8_t bytes[PSD_WIRE_FAILED_BYTES]);
struct psd_wire_failed psd_wire_decode_failed(const uint8_t bytes[PSD_WIRE_FAILED_BYTES]);

#endif
