/* Model of emulated links: token bucket, pace of links, and arrivals that wait. Computes times and reads no clock; one
 * thread at a time for each struct. */
#ifndef PSD_REAL_LINK_MODEL_H
#define PSD_REAL_LINK_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "real/net/wire.h"

/* ---- token bucket: limits a rate in user space where the kernel cannot; the caller sends and waits ---- */

/* Token bucket, which grants at most rate_bps * t / 8 + burst_bytes in any t seconds. Fields are private. */
struct psd_bucket {
	double bytes_per_sec;
	double burst_bytes;
	double tokens_bytes; /* bytes that could be granted at seen_sec */
	double seen_sec;
};

/* Fills the bucket. rate_bps: > 0; burst_bytes: >= 1, the largest single grant; now_sec: from a monotonic clock (an
 * earlier time counts as the last one). Never fails. */
void psd_bucket_init(struct psd_bucket *bucket, double rate_bps, uint64_t burst_bytes, double now_sec);

/* Takes available bytes out of the bucket, at most wanted_bytes, and returns their number. */
uint64_t psd_bucket_take(struct psd_bucket *bucket, uint64_t wanted_bytes, double now_sec);

/* Returns bytes that were granted and not sent, after a short write. */
void psd_bucket_give_back(struct psd_bucket *bucket, uint64_t unsent_bytes);

/* Earliest time at which psd_bucket_take() grants wanted_bytes (or the burst, if that is less); now_sec if at once. */
double psd_bucket_ready_sec(const struct psd_bucket *bucket, uint64_t wanted_bytes, double now_sec);

/* ---- pace ---- */

/* Times at which links would have carried messages that a shaper let pass sooner: shapers allow bursts, links do not.
 * The outgoing link carries one message after another. The incoming link carries, since it was last idle, no more bytes
 * than its rate allows, in order of completion. A burst may therefore count earlier or later than on a fairly shared
 * link; a late message is never earlier. Rates are of payload; if both are 0 there is no limit, and no function may be
 * called. Other fields are private; zeros at first. */
struct psd_pace {
	double send_bps; /* payload rate of an outgoing link, bits per second; equal on all hosts */
	double receive_bps;
	double sent_until_sec; /* time at which the outgoing link ends its last message */
	double in_since_sec;   /* start of the busy period of the incoming link */
	double in_sec;	       /* duration of that busy period so far */
};

/* Returns the time at which the outgoing link has carried one more message, which starts at now_sec or later. */
double psd_pace_send(struct psd_pace *pace, uint64_t bytes, double now_sec);
/* Returns the time at which the incoming link has carried a message. off_sec: time at which the sender's link had
 * carried it, latency_sec before it can arrive. Call in order of completion. */
double psd_pace_receive(struct psd_pace *pace, uint64_t bytes, double off_sec, double latency_sec);

/* ---- arrivals that are delivered later, when the emulated links would have brought them ---- */

struct psd_arrival {
	double due_sec;
	unsigned peer;
	struct psd_wire_head head;
};

/* Messages that wait for their arrival time. Fields are private; zeros: empty. */
struct psd_delay {
	struct psd_arrival *arrivals; /* ring of waiting arrivals, ordered by due_sec */
	unsigned room, first, n;
};

void psd_delay_release(struct psd_delay *delay);
/* Adds an arrival; among equal times the first one added comes first. Fast if times mostly grow. Returns false when
 * memory runs out. */
bool psd_delay_add(struct psd_delay *delay, const struct psd_arrival *arrival);
/* Returns the earliest arrival, borrowed until the next call; NULL: none. */
const struct psd_arrival *psd_delay_first(const struct psd_delay *delay);
void psd_delay_drop_first(struct psd_delay *delay);

#endif
