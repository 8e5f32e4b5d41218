/* Joins the CSV files that psd-sim --csv --shard wrote. Knows no scenarios. */
#ifndef PSD_SIM_MERGE_H
#define PSD_SIM_MERGE_H

#include "engine/base/error.h"
#include "engine/base/text.h"

/* Appends the rows of all n_parts files in the order of the whole sweep, without the columns settings, shard, row
 * and rows. PSD_EINVAL: a file is not a part, parts are of different sweeps, a row is there twice, or rows are missing;
 * the text names the option in which the sweeps differ, or the lost part. PSD_EFILE, PSD_ENOMEM. */
enum psd_status psd_merge(struct psd_text *text, const char *const paths[], unsigned n_parts,
			  struct psd_error *err) PSD_MUST_CHECK;

#endif
