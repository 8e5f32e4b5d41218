#include <criterion/criterion.h>

#include "real/net/link_model.h"

#define RATE_BPS      8e6 /* a byte each microsecond */
#define BYTES_PER_SEC 1e6
#define BURST_BYTES   UINT64_C(10000)
#define START_SEC     100000.0 /* as a clock that has run for a day */

static struct psd_bucket full(void)
{
	struct psd_bucket bucket;

	psd_bucket_init(&bucket, RATE_BPS, BURST_BYTES, START_SEC);
	return bucket;
}

Test(bucket, grants_its_burst_at_once_and_then_nothing)
{
	struct psd_bucket bucket = full();

	cr_assert_eq(psd_bucket_take(&bucket, BURST_BYTES + 1, START_SEC), BURST_BYTES);
	cr_assert_eq(psd_bucket_take(&bucket, 1, START_SEC), 0);
}

Test(bucket, grants_no_more_than_is_wanted)
{
	struct psd_bucket bucket = full();

	cr_assert_eq(psd_bucket_take(&bucket, 3, START_SEC), 3);
	cr_assert_eq(psd_bucket_take(&bucket, BURST_BYTES, START_SEC), BURST_BYTES - 3);
}

Test(bucket, fills_at_its_rate)
{
	struct psd_bucket bucket = full();

	(void)psd_bucket_take(&bucket, BURST_BYTES, START_SEC);
	/* half a byte more than 500, since neither time is exact in binary */
	cr_assert_eq(psd_bucket_take(&bucket, BURST_BYTES, START_SEC + 500.5 / BYTES_PER_SEC), 500);
}

Test(bucket, keeps_fractions_of_a_byte)
{
	struct psd_bucket bucket = full();
	uint64_t granted_bytes = 0;

	(void)psd_bucket_take(&bucket, BURST_BYTES, START_SEC);
	for (unsigned i = 1; i <= 1000; i++) /* half a byte each time */
		granted_bytes += psd_bucket_take(&bucket, BURST_BYTES, START_SEC + 0.5 * i / BYTES_PER_SEC);
	cr_assert_geq(granted_bytes, 499);
	cr_assert_leq(granted_bytes, 500);
}

Test(bucket, saves_no_more_than_its_burst)
{
	struct psd_bucket bucket = full();

	(void)psd_bucket_take(&bucket, BURST_BYTES, START_SEC);
	cr_assert_eq(psd_bucket_take(&bucket, 2 * BURST_BYTES, START_SEC + 3600), BURST_BYTES);
}

Test(bucket, time_that_goes_back_gives_nothing)
{
	struct psd_bucket bucket = full();

	(void)psd_bucket_take(&bucket, BURST_BYTES, START_SEC);
	cr_assert_eq(psd_bucket_take(&bucket, 1, START_SEC - 1), 0);
	/* and the second is not given twice: 1,000 us after the latest time seen, 1,000 bytes */
	cr_assert_eq(psd_bucket_take(&bucket, BURST_BYTES, START_SEC + 1000.5e-6), 1000);
}

Test(bucket, unsent_bytes_come_back)
{
	struct psd_bucket bucket = full();

	(void)psd_bucket_take(&bucket, BURST_BYTES, START_SEC);
	psd_bucket_give_back(&bucket, 700);
	cr_assert_eq(psd_bucket_take(&bucket, BURST_BYTES, START_SEC), 700);
}

Test(bucket, is_ready_now_when_it_has_enough)
{
	const struct psd_bucket bucket = full();

	cr_assert_eq(psd_bucket_ready_sec(&bucket, BURST_BYTES, START_SEC), START_SEC);
}

Test(bucket, tells_when_a_burst_is_there_for_wants_beyond_it)
{
	struct psd_bucket bucket = full();

	(void)psd_bucket_take(&bucket, BURST_BYTES, START_SEC);
	cr_assert_eq(psd_bucket_ready_sec(&bucket, 5 * BURST_BYTES, START_SEC),
		     psd_bucket_ready_sec(&bucket, BURST_BYTES, START_SEC));
}

/* A fixed sequence, so that a failure repeats. */
static uint64_t next_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state >> 33;
}

/* A sender that sleeps until ready_sec must then get all it waits for, or it would wake again and again. */
Test(bucket, grants_at_the_time_it_told)
{
	static const double rates_bps[] = {1e5, 1e9, 7e9, 400e9};
	uint64_t state = 1;

	for (unsigned i = 0; i < sizeof(rates_bps) / sizeof(*rates_bps); i++) {
		double now_sec = START_SEC;
		struct psd_bucket bucket;

		psd_bucket_init(&bucket, rates_bps[i], BURST_BYTES, now_sec);
		for (unsigned k = 0; k < 100000; k++) {
			const uint64_t wanted_bytes = 1 + next_random(&state) % BURST_BYTES;

			now_sec = psd_bucket_ready_sec(&bucket, wanted_bytes, now_sec);
			cr_assert_eq(psd_bucket_take(&bucket, wanted_bytes, now_sec), wanted_bytes, "rate %g, step %u",
				     rates_bps[i], k);
		}
	}
}

/* The definition: no interval, from any grant to any later one, carries more than rate x time + burst. */
Test(bucket, no_interval_carries_more_than_rate_and_burst)
{
	enum { N = 400 };
	double times_sec[N];
	uint64_t grants_bytes[N], state = 7;
	struct psd_bucket bucket = full();
	double now_sec = START_SEC;

	for (unsigned i = 0; i < N; i++) {
		now_sec += 1e-6 * (double)(next_random(&state) % 6000);
		times_sec[i] = now_sec;
		grants_bytes[i] = psd_bucket_take(&bucket, next_random(&state) % (2 * BURST_BYTES), now_sec);
	}
	for (unsigned from = 0; from < N; from++) {
		double sum_bytes = 0;

		for (unsigned to = from; to < N; to++) {
			sum_bytes += (double)grants_bytes[to];
			cr_assert_leq(sum_bytes,
				      BYTES_PER_SEC * (times_sec[to] - times_sec[from]) + (double)BURST_BYTES + 1e-3);
		}
	}
}

/* Hosts of a node add their shares one after another; those that came first may have used theirs. */
Test(bucket, keeps_what_is_used_when_its_rate_grows)
{
	struct psd_bucket bucket = full();

	(void)psd_bucket_take(&bucket, BURST_BYTES, START_SEC);
	psd_bucket_change(&bucket, 2 * RATE_BPS, 2 * BURST_BYTES, START_SEC);
	cr_assert_eq(psd_bucket_take(&bucket, 3 * BURST_BYTES, START_SEC), BURST_BYTES);
	cr_assert_eq(psd_bucket_take(&bucket, 3 * BURST_BYTES, START_SEC + 1000 / BYTES_PER_SEC), 2000);
}
