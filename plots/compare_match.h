/* Rows of results matched to points. Private to the comparison. */
#ifndef PSD_PLOTS_COMPARE_MATCH_H
#define PSD_PLOTS_COMPARE_MATCH_H

#include "engine/base/names.h"
#include "plots/compare.h"

enum psd_role_of_file { PSD_FILE_PREDICTED, PSD_FILE_CALIBRATED, PSD_FILE_MEASURED };

struct psd_matching {
	struct psd_comparison *comparison;
	struct psd_results *results;
	struct psd_error *err;
	struct psd_names points;     /* keys with titles */
	struct psd_names calibrated; /* the same of calibrated rows; number 1: a point met it */
	const char **calibrated_keys;
	unsigned n_calibrated_keys;
	const char *executors[3][8]; /* sorted names for each role */
	unsigned n_executors[3];
};

/* Columns that every file must have, separated by blanks. */
extern const char psd_matching_columns[];

/* Returns two texts as one key. */
const char *psd_matching_key(const struct psd_matching *matching, const char *one, const char *other);
/* Reads all rows into the points of the comparison: predictions, calibrated rows, runs. PSD_EINVAL with file and line,
 * PSD_ENOMEM. */
enum psd_status psd_matching_read(struct psd_matching *matching) PSD_MUST_CHECK;

#endif
