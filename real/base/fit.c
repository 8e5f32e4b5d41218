#include "real/base/fit.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "engine/base/sort.h"

void psd_fit_sort(double values[], unsigned n)
{
	psd_sort_doubles(values, n);
}

/* The quantile of sorted values. */
static double quantile(const double values[], unsigned n, double below_ratio)
{
	const double position = below_ratio * (n - 1.0);
	const unsigned left = (unsigned)position;

	return left + 1 < n ? values[left] + (position - left) * (values[left + 1] - values[left]) : values[n - 1];
}

struct psd_summary psd_fit_summary(double values[], unsigned n)
{
	double median, middle_half;

	psd_fit_sort(values, n);
	median = quantile(values, n, 0.5);
	middle_half = quantile(values, n, 0.75) - quantile(values, n, 0.25);
	return (struct psd_summary){median, median > 0.0 ? middle_half / median : middle_half > 0.0 ? 1.0 : 0.0, n};
}

/* Distance of the quartiles of a normal distribution in standard deviations: 2 x 0.6745. */
#define MIDDLE_HALF_OF_NORMAL 1.349

static double mean_of_turn(const double secs[], size_t stride, unsigned n_members, unsigned turn)
{
	double sum_sec = 0.0;

	for (unsigned m = 0; m < n_members; m++)
		sum_sec += secs[m * stride + turn];
	return sum_sec / n_members;
}

double psd_fit_jitter(const double secs[], size_t stride, unsigned n_members, unsigned n_turns)
{
	/* the mean contains a share of each member's own deviation */
	const double unshared = n_members > 1 ? sqrt(n_members / (n_members - 1.0)) : 1.0;
	double sum_ratio = 0.0;

	assert(n_members >= 1 && n_turns >= 2 && n_turns <= PSD_FIT_MOST_TURNS);
	for (unsigned m = 0; m < n_members; m++) {
		double shares[PSD_FIT_MOST_TURNS];

		for (unsigned t = 0; t < n_turns; t++)
			shares[t] =
				secs[m * stride + t] / (n_members > 1 ? mean_of_turn(secs, stride, n_members, t) : 1.0);
		sum_ratio += psd_fit_summary(shares, n_turns).spread_ratio;
	}
	return unshared * sum_ratio / n_members / MIDDLE_HALF_OF_NORMAL;
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
		const double weight = 1.0 / (samples[i].sec * samples[i].sec),
			     apart_bytes = samples[i].bytes - mean_bytes;

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
