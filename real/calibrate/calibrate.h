/* Measures the constants that a prediction of a scenario on this machine needs, and writes the scenario with them.
 * Refuses to predict. */
#ifndef PSD_REAL_CALIBRATE_H
#define PSD_REAL_CALIBRATE_H

#include <signal.h>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/case/case.h"
#include "real/cluster/launch.h"

struct psd_calibrate_options {
	const struct psd_costed_model *costed; /* model and costs; its scenario must have 'train' */
	const struct psd_device_kind *device;
	struct psd_point point; /* number of workers that share the machine, and the rate of their links */
	enum psd_cluster_kind cluster_kind;
	double stall_sec;
	unsigned most_attempts;	 /* most attempts at a measurement, >= 1; beyond two only while values spread */
	const char *output_path; /* path NAME.yaml; NAME-profile.csv and NAME-points.csv are written beside it */
	const char *version;
	const volatile sig_atomic_t *stop_signal; /* ends the calibration once it is not 0, see psd_launch_options */
	void (*progress)(void *context, const char *line); /* receives a line before each measurement; may be NULL */
	void (*remark)(void *context, const char *line);   /* receives lines about hosts that join; may be NULL */
	void *context;
};

#define PSD_CALIBRATE_NOISY_RATIO 0.05 /* spread, divided by the value, above which a value is noisy */

/* Measures all constants and writes the three files, or none. Takes a minute for each attempt, in processes that it
 * starts: call it from the main thread, before others start. Adds the table to *table. *spread_ratio: the largest
 * spread of a value, divided by it. PSD_EINVAL, PSD_EFILE, PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_calibrate(const struct psd_calibrate_options *options, struct psd_text *table, double *spread_ratio,
			      struct psd_error *err) PSD_MUST_CHECK;

#endif
