/* A token bucket in user space: shapes what a worker sends where the kernel may not (no namespaces, loopback only). It
 * counts and tells times; the caller sends, waits and says what time it is. Each bucket: one thread at a time. */
#ifndef PSD_REAL_BUCKET_H
#define PSD_REAL_BUCKET_H

#include <stdint.h>

/* In any interval of t seconds at most rate_bps * t / 8 + burst_bytes are granted. Fields are private to bucket.c. */
struct psd_bucket {
	double bytes_per_sec;
	double burst_bytes;
	double tokens_bytes; /* at seen_sec */
	double seen_sec;
};

/* A full bucket. rate_bps: > 0; burst_bytes: >= 1, the most that one grant can be; now_sec: of any clock that does not
 * go back (a time before the last one seen counts as that). Never fails. */
void psd_bucket_init(struct psd_bucket *bucket, double rate_bps, uint64_t burst_bytes, double now_sec);

/* Grants as many bytes as are there, at most wanted_bytes, and takes them out. */
uint64_t psd_bucket_take(struct psd_bucket *bucket, uint64_t wanted_bytes, double now_sec);

/* Gives back what was taken and not sent, after a short write. */
void psd_bucket_give_back(struct psd_bucket *bucket, uint64_t unsent_bytes);

/* When take will grant wanted_bytes (or the burst, if less), if nothing is taken before; now_sec if it does now. */
double psd_bucket_ready_sec(const struct psd_bucket *bucket, uint64_t wanted_bytes, double now_sec);

#endif
