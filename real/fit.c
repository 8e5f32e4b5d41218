#include "real/fit.h"

#include <math.h>
#include <stdlib.h>

static int by_value(const void *left, const void *right)
{
	const double one = *(const double *)left, other = *(const double *)right;

	return (one > other) - (one < other);
}

struct psd_summary psd_fit_summary(double values[], unsigned n)
{
	double median;

	qsort(values, n, sizeof(*values), by_value);
	median = n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
	return (struct psd_summary){median, (values[n - 1] - values[0]) / median, n};
}

static double residual(const struct psd_fit_line *line, const struct psd_fit_sample samples[], unsigned n)
{
	double sum = 0.0;

	for (unsigned i = 0; i < n; i++) {
		const double fitted_sec = line->constant_sec + samples[i].bytes * line->sec_per_byte;

		sum += pow(fitted_sec / samples[i].sec - 1.0, 2.0);
	}
	return sqrt(sum / n);
}

bool psd_fit_line(struct psd_fit_line *line, const struct psd_fit_sample samples[], unsigned n)
{
	double weights = 0.0, mean_bytes = 0.0, mean_sec = 0.0, square = 0.0, product = 0.0;
	struct psd_fit_line fitted;

	for (unsigned i = 0; i < n; i++) {
		const double weight = 1.0 / (samples[i].sec * samples[i].sec);

		weights += weight;
		mean_bytes += weight * samples[i].bytes;
		mean_sec += weight * samples[i].sec;
	}
	mean_bytes /= weights;
	mean_sec /= weights;
	for (unsigned i = 0; i < n; i++) {
		const double weight = 1.0 / (samples[i].sec * samples[i].sec), apart_bytes = samples[i].bytes - mean_bytes;

		square += weight * apart_bytes * apart_bytes;
		product += weight * apart_bytes * (samples[i].sec - mean_sec);
	}
	if (n < 2 || !(square > 0.0))
		return false;
	fitted.sec_per_byte = product / square;
	fitted.constant_sec = mean_sec - fitted.sec_per_byte * mean_bytes;
	fitted.residual_ratio = residual(&fitted, samples, n);
	*line = fitted;
	return true;
}
