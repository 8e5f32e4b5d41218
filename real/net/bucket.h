/* Token bucket in user space: limits the rate at which a worker sends or receives where the kernel cannot. It counts
 * bytes and computes times; the caller sends, waits and passes the time. One thread at a time for each bucket. */
#ifndef PSD_REAL_BUCKET_H
#define PSD_REAL_BUCKET_H

#include <stdint.h>

/* Grants at most rate_bps * t / 8 + burst_bytes in any interval of t seconds. Fields are private to shaped.c. */
struct psd_bucket {
	double bytes_per_sec;
	double burst_bytes;
	double tokens_bytes; /* count at seen_sec */
	double seen_sec;
};

/* Fills the bucket. rate_bps: > 0; burst_bytes: >= 1, the largest single grant; now_sec: from a monotonic clock (an
 * earlier time counts as the last one). Never fails. */
void psd_bucket_init(struct psd_bucket *bucket, double rate_bps, uint64_t burst_bytes, double now_sec);

/* Takes the available bytes out, at most wanted_bytes, and returns their number. */
uint64_t psd_bucket_take(struct psd_bucket *bucket, uint64_t wanted_bytes, double now_sec);

/* Returns bytes that were granted and not sent, after a short write. */
void psd_bucket_give_back(struct psd_bucket *bucket, uint64_t unsent_bytes);

/* Earliest time at which psd_bucket_take() grants wanted_bytes (or the burst, if that is less); now_sec if at once. */
double psd_bucket_ready_sec(const struct psd_bucket *bucket, uint64_t wanted_bytes, double now_sec);

#endif
