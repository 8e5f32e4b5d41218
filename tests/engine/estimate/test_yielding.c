/* A device beside all-reduces, by hand. */
#include <criterion/criterion.h>
#include <math.h>

#include "engine/estimate/device_share.h"

#define ROUNDING_SEC 1e-12

static void expect_alarm(struct psd_device_share *device, double now_sec, double expected_sec)
{
	const double sec = psd_device_share_alarm(device, now_sec);

	cr_expect_float_eq(sec, expected_sec, ROUNDING_SEC, "in %g s, expected in %g s", sec, expected_sec);
}

Test(share, work_goes_at_full_speed_with_nothing_beside_it)
{
	struct psd_device_share device;

	psd_device_share_init(&device, 0.5);
	psd_device_share_begin(&device, 10.0, 4.0);
	expect_alarm(&device, 10.0, 4.0);
	cr_expect(isinf(psd_device_share_alarm(&device, 10.0)), "one alarm is enough");
	cr_expect_not(psd_device_share_ends(&device, 13.0));
	cr_expect(psd_device_share_ends(&device, 14.0));
	cr_expect_not(psd_device_share_ends(&device, 14.0), "work ends once");
}

/* 4 s of work, from second 1 to 3 at a quarter of the speed: 1 + 2 / 4 = 1.5 s are done by then, it ends at 5.5. */
Test(share, an_all_reduce_takes_its_share_while_it_runs)
{
	struct psd_device_share device;

	psd_device_share_init(&device, 0.75);
	psd_device_share_begin(&device, 0.0, 4.0);
	expect_alarm(&device, 0.0, 4.0);
	psd_device_share_set_beside(&device, 1.0, true);
	cr_expect(isinf(psd_device_share_alarm(&device, 1.0)), "the alarm at 4 comes early enough");
	psd_device_share_set_beside(&device, 3.0, false);
	cr_expect(isinf(psd_device_share_alarm(&device, 3.0)), "the alarm at 4 still does");
	cr_expect_not(psd_device_share_ends(&device, 4.0));
	expect_alarm(&device, 4.0, 1.5);
	cr_expect(psd_device_share_ends(&device, 5.5));
}

/* Begun beside one, 2 s of work would take 4; without it from second 1 on, 1.5 s are left: it ends at 2.5. The alarm at
 * 4 comes late, then, and must not end what begins at 2.5. */
Test(share, an_all_reduce_that_ends_brings_the_end_forward)
{
	struct psd_device_share device;

	psd_device_share_init(&device, 0.5);
	psd_device_share_set_beside(&device, 0.0, true);
	cr_expect(isinf(psd_device_share_alarm(&device, 0.0)), "nothing to wake up for");
	psd_device_share_begin(&device, 0.0, 2.0);
	expect_alarm(&device, 0.0, 4.0);
	psd_device_share_set_beside(&device, 1.0, false);
	expect_alarm(&device, 1.0, 1.5);
	cr_expect(psd_device_share_ends(&device, 2.5));
	psd_device_share_begin(&device, 2.5, 3.0);
	expect_alarm(&device, 2.5, 3.0);
	cr_expect_not(psd_device_share_ends(&device, 4.0));
	cr_expect(isinf(psd_device_share_alarm(&device, 4.0)), "the alarm at 5.5 is still to come");
	cr_expect(psd_device_share_ends(&device, 5.5));
}
