/* Statistics of measured values: medians, fitted lines, jitter. Pure, any thread. Measures nothing. */
#ifndef PSD_REAL_FIT_H
#define PSD_REAL_FIT_H

#include <stdbool.h>
#include <stddef.h>

/* Summary of the measured values of one quantity. */
struct psd_summary {
	double median;
	/* (third quartile - first quartile) / median; 1 if the median is 0 and the quartiles differ. */
	double spread_ratio;
	unsigned n_samples;
};

/* Sorts n values in place, in ascending order. */
void psd_fit_sort(double values[], unsigned n);

/* Returns the summary of n values (n >= 1, values >= 0), and sorts them. A quartile between two values is interpolated.
 * The middle half is used since other programs on the machine disturb it least. */
struct psd_summary psd_fit_summary(double values[], unsigned n);

/* A measured message: its size and its duration. */
struct psd_fit_sample {
	double bytes; /* size of the message */
	double sec;   /* duration from first sending to complete arrival, > 0 */
};

/* A line fitted to messages: seconds = constant_sec + bytes * sec_per_byte. */
struct psd_fit_line {
	double constant_sec;
	double sec_per_byte;
	/* Error of the line: root of the mean of ((line - measured) / measured)^2, both in seconds. */
	double residual_ratio;
};

/* Fits the line with the smallest sum of squared relative errors (least squares with weights 1 / sec^2), so that short
 * messages count as much as long ones. Returns false, with *line unchanged, if the messages do not have at least two
 * sizes. */
bool psd_fit_line(struct psd_fit_line *line, const struct psd_fit_sample samples[], unsigned n);

enum { PSD_FIT_MOST_TURNS = 64 };

/* Returns the jitter of n_members members that do the same work in each of n_turns turns: the standard deviation of
 * (seconds of a member) / (mean seconds of all members in that turn), estimated from the middle half of the values. So
 * a disturbance that hits all members alike does not count. A single member is compared with its own median instead.
 * secs: shape (n_members, stride), all > 0, of which the first n_turns of each row count; n_turns: 2 to
 * PSD_FIT_MOST_TURNS. Tends to the exact value for many normally distributed values. */
double psd_fit_jitter(const double secs[], size_t stride, unsigned n_members, unsigned n_turns);

#endif
