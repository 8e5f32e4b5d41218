/* Constants from samples. Pure, any thread; refuses to measure. */
#ifndef PSD_REAL_FIT_H
#define PSD_REAL_FIT_H

#include <stdbool.h>
#include <stddef.h>

/* What many samples of one quantity say. */
struct psd_summary {
	double median;
	double spread_ratio; /* (third quartile - first) / median; 1 where only the median is 0 */
	unsigned n_samples;
};

/* Ascending, in place. */
void psd_fit_sort(double values[], unsigned n);

/* Of n >= 1 values >= 0; sorts them. A quartile between two values is between them in proportion, as the median is. The
 * middle half is what others on the machine disturb least. */
struct psd_summary psd_fit_summary(double values[], unsigned n);

/* A message of so many bytes took so long. */
struct psd_fit_sample {
	double bytes, sec; /* sec > 0 */
};

/* seconds = constant_sec + bytes * sec_per_byte */
struct psd_fit_line {
	double constant_sec;
	double sec_per_byte;
	double residual_ratio; /* root of the mean square of (line - sample) / sample */
};

/* The line with the smallest residual_ratio, so that short messages count as much as long ones. n >= 2 samples of at
 * least two sizes, or false and *line left alone. Source: weighted least squares with weights 1 / sec^2. */
bool psd_fit_line(struct psd_fit_line *line, const struct psd_fit_sample samples[], unsigned n);

enum { PSD_FIT_MOST_TURNS = 64 };

/* How much members that do the same at a time differ: the standard deviation of one's seconds as a share, from the
 * middle halves of what each takes of the mean of its turn; what disturbs all alike is no difference. A lone member is
 * compared with its own median. secs: (n_members, stride), of which the first n_turns are meant, > 0; n_turns from 2 to
 * PSD_FIT_MOST_TURNS. Exact for many normal samples. */
double psd_fit_jitter(const double secs[], size_t stride, unsigned n_members, unsigned n_turns);

#endif
