#include "real/net/bucket.h"

#include <assert.h>
#include <math.h>

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
	assert(rate_bps > 0 && burst_bytes >= 1);
	*bucket = (struct psd_bucket){.bytes_per_sec = rate_bps / 8,
				      .burst_bytes = (double)burst_bytes,
				      .tokens_bytes = (double)burst_bytes,
				      .seen_sec = now_sec};
}

uint64_t psd_bucket_take(struct psd_bucket *bucket, uint64_t wanted_bytes, double now_sec)
{
	uint64_t granted_bytes;

	advance(bucket, now_sec);
	granted_bytes = (uint64_t)fmax(bucket->tokens_bytes + ROUNDING_BYTES, 0);
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
