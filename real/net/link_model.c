#include "real/net/link_model.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* ---- token bucket ---- */

/* Tolerance for rounding: products of rates and times may miss a whole byte. */
#define ROUNDING_BYTES 1e-6

static double tokens_at(const struct psd_bucket *bucket, double now_sec)
{
	const double passed_sec = now_sec > bucket->seen_sec ? now_sec - bucket->seen_sec : 0;

	return fmin(bucket->tokens_bytes + passed_sec * bucket->bytes_per_sec, bucket->burst_bytes);
}

static void advance(struct psd_bucket *bucket, double now_sec)
{
	bucket->tokens_bytes = tokens_at(bucket, now_sec);
	bucket->seen_sec = fmax(bucket->seen_sec, now_sec);
}

void psd_bucket_init(struct psd_bucket *bucket, double rate_bps, uint64_t burst_bytes, double now_sec)
{
	*bucket = (struct psd_bucket){.seen_sec = now_sec};
	psd_bucket_change(bucket, rate_bps, burst_bytes, now_sec);
}

void psd_bucket_change(struct psd_bucket *bucket, double rate_bps, uint64_t burst_bytes, double now_sec)
{
	assert(rate_bps > 0 && burst_bytes >= 1);
	advance(bucket, now_sec);
	bucket->bytes_per_sec = rate_bps / 8;
	bucket->tokens_bytes += (double)burst_bytes - bucket->burst_bytes;
	bucket->burst_bytes = (double)burst_bytes;
}

uint64_t psd_bucket_take(struct psd_bucket *bucket, uint64_t wanted_bytes, double now_sec)
{
	advance(bucket, now_sec);
	uint64_t granted_bytes = (uint64_t)fmax(bucket->tokens_bytes + ROUNDING_BYTES, 0);
	if (granted_bytes > wanted_bytes)
		granted_bytes = wanted_bytes;
	bucket->tokens_bytes -= (double)granted_bytes;
	return granted_bytes;
}

void psd_bucket_give_back(struct psd_bucket *bucket, uint64_t unsent_bytes)
{
	bucket->tokens_bytes = fmin(bucket->tokens_bytes + (double)unsent_bytes, bucket->burst_bytes);
}

double psd_bucket_ready_sec(const struct psd_bucket *bucket, uint64_t wanted_bytes, double now_sec)
{
	const double missing_bytes = fmin((double)wanted_bytes, bucket->burst_bytes) - tokens_at(bucket, now_sec);

	if (missing_bytes <= 0)
		return now_sec;
	/* Rounds up: a sum that was rounded down would be too early. */
	return nextafter(fmax(now_sec, bucket->seen_sec) + missing_bytes / bucket->bytes_per_sec, INFINITY);
}

/* ---- pace ---- */

double psd_pace_send(struct psd_pace *pace, uint64_t bytes, double now_sec)
{
	pace->sent_until_sec = fmax(pace->sent_until_sec, now_sec) + 8.0 * (double)bytes / pace->send_bps;
	return pace->sent_until_sec;
}

double psd_pace_receive(struct psd_pace *pace, uint64_t bytes, double off_sec, double latency_sec)
{
	const double first_sec = off_sec - 8.0 * (double)bytes / pace->send_bps + latency_sec;

	if (first_sec > pace->in_since_sec + pace->in_sec) {
		pace->in_since_sec = first_sec;
		pace->in_sec = 0.0;
	}
	pace->in_since_sec = fmin(pace->in_since_sec, first_sec);
	pace->in_sec += 8.0 * (double)bytes / pace->receive_bps;
	return fmax(off_sec + latency_sec, pace->in_since_sec + pace->in_sec);
}

/* ---- arrivals ---- */

enum { FIRST_ROOM = 64 };

void psd_delay_release(struct psd_delay *delay)
{
	free(delay->arrivals);
	*delay = (struct psd_delay){.n = 0};
}

static struct psd_arrival *place(const struct psd_delay *delay, unsigned at)
{
	return &delay->arrivals[(delay->first + at) % delay->room];
}

static bool grow(struct psd_delay *delay)
{
	const unsigned room = delay->room ? 2 * delay->room : FIRST_ROOM;
	struct psd_arrival *grown = calloc(room, sizeof(*grown));

	if (!grown)
		return false;
	for (unsigned i = 0; i < delay->n; i++)
		grown[i] = *place(delay, i);
	free(delay->arrivals);
	delay->arrivals = grown;
	delay->room = room;
	delay->first = 0;
	return true;
}

bool psd_delay_add(struct psd_delay *delay, const struct psd_arrival *arrival)
{
	unsigned at;

	if (delay->n == delay->room && !grow(delay))
		return false;
	for (at = delay->n++; at > 0 && place(delay, at - 1)->due_sec > arrival->due_sec; at--)
		*place(delay, at) = *place(delay, at - 1);
	*place(delay, at) = *arrival;
	return true;
}

const struct psd_arrival *psd_delay_first(const struct psd_delay *delay)
{
	return delay->n > 0 ? place(delay, 0) : NULL;
}

void psd_delay_drop_first(struct psd_delay *delay)
{
	assert(delay->n > 0);
	delay->first = (delay->first + 1) % delay->room;
	delay->n--;
}
