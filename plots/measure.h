/* Measures of a result that plots draw: speedup, efficiency, seconds of an iteration, throughput. */
#ifndef PSD_PLOTS_MEASURE_H
#define PSD_PLOTS_MEASURE_H

#include "plots/results.h"

enum psd_measure { PSD_MEASURE_SPEEDUP, PSD_MEASURE_EFFICIENCY, PSD_MEASURE_SECONDS, PSD_MEASURE_THROUGHPUT };

/* Measured value of a row, with the values that belong to it; 0: absent. */
struct psd_value {
	double value;
	double low, high; /* ends of the prediction's band */
	double published;
	bool is_fitted;
};

/* Word of each measure on the command line, NULL-terminated. */
extern const char *const psd_measure_names[];
/* Columns that the measures of a file need, separated by blanks. */
const char *psd_measure_columns(enum psd_measure measure);
/* Returns the label of an axis of this measure. */
const char *psd_measure_label(enum psd_measure measure);
/* Reads the measured value of a row; value 0: the row lacks it. PSD_EINVAL: a number is damaged. */
enum psd_status psd_measure_read(enum psd_measure measure, const struct psd_row *row, struct psd_value *value,
				 struct psd_error *err) PSD_MUST_CHECK;

#endif
