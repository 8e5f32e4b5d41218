/* Statistics of samples: medians, lines, jitter. Pure, any thread; refuses to measure. */
#ifndef PSD_REAL_FIT_H
#define PSD_REAL_FIT_H

#include <stdbool.h>
#include <stddef.h>

/* Summary of samples of one quantity. */
struct psd_summary {
	double median;
	double spread_ratio; /* (third quartile - first quartile) / median; 1 if only the median is 0 */
	unsigned n_samples;
};

/* Sorts n values in place, ascending. */
void psd_fit_sort(double values[], unsigned n);

/* Summarises n >= 1 values >= 0, and sorts them. Quartiles between two values are interpolated. Other programs on the
 * machine disturb the middle half least. */
struct psd_summary psd_fit_summary(double values[], unsigned n);

/* Measured size and duration of a message. */
struct psd_fit_sample {
	double bytes, sec; /* size and duration; sec > 0 */
};

/* Line through samples: seconds = constant_sec + bytes * sec_per_byte. */
struct psd_fit_line {
	double constant_sec;
	double sec_per_byte;
	double residual_ratio; /* root mean square of (line - sample) / sample */
};

/* Fits the line with the smallest residual_ratio, so that short messages count as much as long ones. False: fewer than
 * two sizes, *line is left alone. Source: weighted least squares with weights 1 / sec^2. */
bool psd_fit_line(struct psd_fit_line *line, const struct psd_fit_sample samples[], unsigned n);

enum { PSD_FIT_MOST_TURNS = 64 };

/* Jitter of members that do the same work at a time: the standard deviation of a member's seconds over the mean of its
 * turn, estimated from middle halves. A disturbance of all members alike does not count. A lone member is compared with
 * its own median. secs: (n_members, stride), the first n_turns of each row, > 0. n_turns: 2 to PSD_FIT_MOST_TURNS.
 * Exact for many normal samples. */
double psd_fit_jitter(const double secs[], size_t stride, unsigned n_members, unsigned n_turns);

#endif
