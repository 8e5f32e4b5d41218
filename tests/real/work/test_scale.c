/* The loss scale: events that make it smaller and larger. */
#include <criterion/criterion.h>

#include "real/work/scale.h"

Test(scale, halves_and_leaves_out_what_is_not_finite)
{
	struct psd_scale scale = psd_scale_make(&psd_encoding_fp16, 0.0);

	cr_expect_eq(scale.ratio, 32768.0f);
	psd_scale_take(&scale, false);
	cr_expect_eq(scale.last_ratio, PSD_SCALE_START); /* the next sum is halved */
	cr_expect(scale.is_skipped);
	cr_expect_eq(scale.ratio, 16384.0f);
	psd_scale_take(&scale, true);
	cr_expect_not(scale.is_skipped);
	cr_expect_eq(scale.ratio, 16384.0f);
}

Test(scale, doubles_after_2000_good_sums_in_a_row)
{
	struct psd_scale scale = psd_scale_make(&psd_encoding_fp16, 0.0);

	for (unsigned i = 0; i < 1999; i++)
		psd_scale_take(&scale, true);
	cr_expect_eq(scale.ratio, 32768.0f);
	psd_scale_take(&scale, false); /* begins anew */
	for (unsigned i = 0; i < 1999; i++)
		psd_scale_take(&scale, true);
	cr_expect_eq(scale.ratio, 16384.0f);
	psd_scale_take(&scale, true);
	cr_expect_eq(scale.ratio, 32768.0f);
	for (unsigned i = 0; i < 2000; i++)
		psd_scale_take(&scale, true);
	cr_expect_eq(scale.ratio, 65536.0f);
}

Test(scale, a_number_stays_and_still_leaves_out)
{
	struct psd_scale scale = psd_scale_make(&psd_encoding_fp16, 1024.0);

	psd_scale_take(&scale, false);
	cr_expect(scale.is_skipped);
	for (unsigned i = 0; i < 5000; i++)
		psd_scale_take(&scale, true);
	cr_expect_eq(scale.ratio, 1024.0f);
	cr_expect_eq(psd_scale_make(&psd_encoding_bf16, 1024.0).ratio, 1.0f); /* which has fp32's range */
}
