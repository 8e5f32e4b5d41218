/* Statistics of measured values: medians, fitted lines, jitter. Pure, any thread. Measures nothing. */
#ifndef PSD_REAL_FIT_H
#define PSD_REAL_FIT_H

#include <stdbool.h>
#include <stddef.h>

/* Summary of the measured values of one quantity. */
struct psd_summary {
	double median;
	/* Relative spread: (third quartile - first quartile) / median. 1 if the median is 0 and the quartiles
	 * differ. */
	double spread_ratio;
	unsigned n_samples;
};

/* Sorts n values in place, in ascending order. */
void psd_fit_sort(double values[], unsigned n);

/* Returns the summary of n values (n >= 1, values >= 0), and sorts the array. A quartile between two values is
 * interpolated. The spread is computed from the middle half of the values, because other programs on the machine
 * disturb it least. */
struct psd_summary psd_fit_summary(double values[], unsigned n);

/* A measured message: its size and its duration. */
struct psd_fit_sample {
	double bytes; /* size of the message, bytes */
	double sec;   /* time from the first sent byte until the last byte has arrived, seconds, > 0 */
};

/* A line fitted to messages: seconds = constant_sec + bytes * sec_per_byte. */
struct psd_fit_line {
	double constant_sec;
	double sec_per_byte;
	/* Relative error of the line: root of the mean of ((line - measured) / measured)^2, where both are in
	 * seconds. */
	double residual_ratio;
};

/* Fits the line with the smallest sum of squared relative errors (least squares with weights 1 / sec^2), so that short
 * messages count as much as long ones. n: number of messages. Returns false if all messages have the same size; then
 * *line is unchanged. */
bool psd_fit_line(struct psd_fit_line *line, const struct psd_fit_sample samples[], unsigned n);

enum { PSD_FIT_MOST_TURNS = 64 };

/* Returns the jitter of n_members members that do the same work in each of n_turns turns. Jitter is the standard
 * deviation of (seconds of a member) / (mean seconds of all members in the same turn), estimated from the middle half
 * of the values. So a disturbance of a turn that affects all members equally does not count. If there is only one
 * member, its values are divided by their median instead. secs: shape (n_members, stride), all values > 0; only the
 * first n_turns values of each row are used. n_turns: 2 to PSD_FIT_MOST_TURNS. For many normally distributed values the
 * result approaches the exact standard deviation. */
double psd_fit_jitter(const double secs[], size_t stride, unsigned n_members, unsigned n_turns);

#endif
