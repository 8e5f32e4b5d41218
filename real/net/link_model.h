/* Model of emulated links, in three parts: a token bucket, the times at which links carry messages, and a queue of
 * messages that are delivered later. It computes times from times that the caller gives, and reads no clock. Each
 * struct is used by one thread at a time. */
#ifndef PSD_REAL_LINK_MODEL_H
#define PSD_REAL_LINK_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "real/net/wire.h"

/* ---- token bucket: rate limit of a process, for links that the kernel does not limit; it only computes, the caller
 * waits and sends ---- */

/* Token bucket: in any t seconds it grants at most rate_bps / 8 * t + burst_bytes bytes. Fields are private. */
struct psd_bucket {
	double bytes_per_sec;
	double burst_bytes;
	double tokens_bytes; /* bytes that could be granted at the time seen_sec */
	double seen_sec;
};

/* Initialises the bucket, full. rate_bps: > 0, bits per second; burst_bytes: largest single grant, >= 1; now_sec: time
 * of a monotonic clock. In all functions of the bucket, a now_sec earlier than that of the last call counts as equal to
 * it. Never fails. */
void psd_bucket_init(struct psd_bucket *bucket, double rate_bps, uint64_t burst_bytes, double now_sec);

/* Changes rate and burst; arguments as in psd_bucket_init(). The bucket gains as many bytes as its burst does. A bucket
 * of zeros may be changed. */
void psd_bucket_change(struct psd_bucket *bucket, double rate_bps, uint64_t burst_bytes, double now_sec);

/* Grants at most wanted_bytes, as many as the bucket has now. Takes the granted bytes out of the bucket and returns
 * their number. */
uint64_t psd_bucket_take(struct psd_bucket *bucket, uint64_t wanted_bytes, double now_sec);

/* Puts bytes back that psd_bucket_take() granted and the caller did not send. */
void psd_bucket_give_back(struct psd_bucket *bucket, uint64_t unsent_bytes);

/* Returns the earliest time at which psd_bucket_take() will grant wanted_bytes, or burst_bytes if that is less. The
 * result is now_sec if the bucket has them already. */
double psd_bucket_ready_sec(const struct psd_bucket *bucket, uint64_t wanted_bytes, double now_sec);

/* ---- pace ----. */

/* Pace of the links of one host: computes when links with constant rates would have carried its messages. The rate
 * limit of a real link lets a burst pass sooner; the message is then delivered only at the computed time. The outgoing
 * link carries one message after another, in the order of sending. The incoming link carries messages in the order in
 * which they end. In each busy period it carries no more bytes than its rate allows. If several senders share a link
 * fairly, the messages of a burst may end a little earlier or later than computed. Rates are of payload. If both rates
 * are 0, there is no limit, and no function may be called. The other fields are private, and 0 at first. */
struct psd_pace {
	double send_bps; /* payload rate of the outgoing link, bits per second; equal on all hosts */
	double receive_bps;
	double sent_until_sec; /* time at which the outgoing link has carried its last message */
	double in_since_sec;   /* time at which the incoming link was last idle: start of its busy period */
	double in_sec;	       /* seconds that the incoming link needs for all messages of this busy period so far */
};

/* Returns the time at which the outgoing link has carried a message of `bytes` bytes. The link begins the message at
 * now_sec, or when it has carried all earlier messages if that is later. */
double psd_pace_send(struct psd_pace *pace, uint64_t bytes, double now_sec);
/* Returns the time at which the incoming link has carried a message of `bytes` bytes. off_sec: time at which the
 * sender's link had carried it; the message cannot arrive before off_sec + latency_sec. Call it in the order in which
 * messages arrive completely. */
double psd_pace_receive(struct psd_pace *pace, uint64_t bytes, double off_sec, double latency_sec);

/* ---- queue of messages that have arrived too early; they are delivered when the emulated links would have carried
 * them ---- */

struct psd_arrival {
	double due_sec;
	unsigned peer;
	struct psd_wire_head head;
};

/* Queue of messages that have arrived and are delivered at their time due_sec. Fields are private; all zeros: empty. */
struct psd_delay {
	/* Ring of `room` entries. The n entries that begin at index `first` are waiting, sorted by ascending
	 * due_sec. */
	struct psd_arrival *arrivals;
	unsigned room, first, n;
};

void psd_delay_release(struct psd_delay *delay);
/* Adds a message to the queue. If two messages have equal due_sec, the one that was added first is delivered first.
 * Fast if due_sec grows from message to message, as it mostly does. Returns false if memory runs out. */
bool psd_delay_add(struct psd_delay *delay, const struct psd_arrival *arrival);
/* Returns the message with the smallest due_sec, borrowed until the next call; NULL: the queue is empty. */
const struct psd_arrival *psd_delay_first(const struct psd_delay *delay);
void psd_delay_drop_first(struct psd_delay *delay);

#endif
