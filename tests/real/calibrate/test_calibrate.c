/* Which attempt at a measurement counts, what it is told to spread by, and what a rebuild's rate is of. */
#include <criterion/criterion.h>

#include "real/calibrate/calibrate_parts.h"
#include "real/calibrate/layer_times.h"

#define ROUNDING 1e-12

static bool note(struct psd_calibration *calibration, double value, double spread_ratio)
{
	return psd_calibrate_note(calibration, PSD_QUANTITY_BYTES_BPS, (struct psd_summary){value, spread_ratio, 3},
				  "here");
}

Test(calibrate, the_calmest_attempt_counts_and_spreads_by_what_lies_between_the_attempts)
{
	struct psd_calibration calibration = {.n_busy = 1};
	const struct psd_measured *measured = &calibration.measured[PSD_QUANTITY_BYTES_BPS];

	cr_expect(note(&calibration, 100.0, 0.02));
	cr_expect_float_eq(psd_calibrate_spread_ratio(measured), 0.02, ROUNDING, "a single attempt has only its own");
	cr_expect_not(note(&calibration, 101.0, 0.03));
	cr_expect_float_eq(psd_calibrate_spread_ratio(measured), 0.02, ROUNDING, "1 of 100 is less than its own");
	cr_expect_not(note(&calibration, 130.0, 0.04));
	cr_expect_float_eq(measured->value, 100.0, ROUNDING);
	cr_expect_float_eq(psd_calibrate_spread_ratio(measured), 0.3, ROUNDING, "from 100 to 130, over 100");
	cr_expect(note(&calibration, 120.0, 0.01));
	cr_expect_float_eq(measured->value, 120.0, ROUNDING);
	cr_expect_float_eq(psd_calibrate_spread_ratio(measured), 0.25, ROUNDING, "from 100 to 130, over 120");
}

Test(calibrate, a_value_of_nothing_spreads_wholly_once_another_attempt_has_one)
{
	struct psd_calibration calibration = {.n_busy = 1};
	const struct psd_measured *measured = &calibration.measured[PSD_QUANTITY_BYTES_BPS];

	(void)note(&calibration, 0.0, 0.01);
	(void)note(&calibration, 0.0, 0.02);
	cr_expect_float_eq(psd_calibrate_spread_ratio(measured), 0.01, ROUNDING);
	(void)note(&calibration, 3.0, 0.02);
	cr_expect_float_eq(psd_calibrate_spread_ratio(measured), 1.0, ROUNDING);
}

/* Of scenarios/models/cifar10-quick.yaml the largest inner product is 64 x 1024: three more workers of 2 samples are 2
 * * 3 * 2 * 64 * 1024 FLOPs. */
Test(calibrate, a_rebuild_is_timed_by_the_samples_of_other_workers)
{
	const struct psd_layer_times_options options = {
		.kind = &psd_device_cpu, .batch = 2, .n_threads = 1, .n_repeats = 3};
	struct psd_layer_times times;
	struct psd_graph graph;
	struct psd_error err;
	double secs[3], flops;

	cr_assert_eq(psd_graph_load(&graph, "scenarios/models/cifar10-quick.yaml", &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_layer_times_open(&times, &graph, &options, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_layer_times_rebuild(&times, secs, &flops, &err), PSD_OK, "%s", err.text);
	cr_expect_float_eq(flops, 2.0 * 3 * 2 * 64 * 1024, 0.5);
	for (unsigned i = 0; i < 3; i++)
		cr_expect(secs[i] > 0.0 && (i == 0 || secs[i] >= secs[i - 1]), "repeat %u: %g s", i, secs[i]);
	psd_layer_times_release(&times);
	psd_graph_release(&graph);
}
