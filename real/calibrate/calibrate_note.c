/* Notes of measured quantities: the calmest attempt counts. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "real/calibrate/calibrate_parts.h"

bool psd_calibrate_note(struct psd_calibration *calibration, enum psd_quantity quantity, struct psd_summary summary,
			const char *range, ...)
{
	struct psd_measured *measured = &calibration->measured[quantity];
	const double least = measured->is_there ? fmin(measured->least, summary.median) : summary.median;
	const double most = measured->is_there ? fmax(measured->most, summary.median) : summary.median;
	const bool is_kept = !measured->is_there || summary.spread_ratio < measured->attempt_spread_ratio;
	va_list arguments;

	if (is_kept) {
		*measured = (struct psd_measured){.is_there = true,
						  .value = summary.median,
						  .attempt_spread_ratio = summary.spread_ratio,
						  .n_samples = summary.n_samples};
		va_start(arguments, range);
		vsnprintf(measured->range, sizeof(measured->range), range, arguments);
		va_end(arguments);
	}
	measured->least = least;
	measured->most = most;
	return is_kept;
}

double psd_calibrate_spread_ratio(const struct psd_measured *measured)
{
	const double drift = measured->most - measured->least;
	const double drift_ratio = measured->value > 0.0 ? drift / measured->value : drift > 0.0;

	return fmax(measured->attempt_spread_ratio, drift_ratio);
}
