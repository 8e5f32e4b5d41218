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
	const struct psd_costed_model *costed; /* its scenario has 'train' */
	const struct psd_device_kind *device;
	struct psd_point point; /* workers that share the machine, and the rate of their links */
	enum psd_cluster_kind cluster_kind;
	double stall_sec;
	unsigned most_attempts;	 /* at each measurement, beyond two only while it spreads; >= 1 */
	const char *output_path; /* NAME.yaml; NAME-profile.csv and NAME-points.csv are written beside it */
	const char *version;
	const volatile sig_atomic_t *stop_signal;	   /* as in psd_launch_options */
	void (*progress)(void *context, const char *line); /* called before each measurement; may be NULL */
	void (*remark)(void *context, const char *line);   /* as in psd_worker_options; may be NULL */
	void *context;
};

#define PSD_CALIBRATE_NOISY_RATIO 0.05 /* a value with a larger spread is noisy */

/* Takes a minute for each attempt, in processes that it starts: call it from the main thread, before others start.
 * Writes all three files or none, and adds the table to *table. *spread_ratio: the largest spread of a value, over the
 * value. PSD_EINVAL, PSD_EFILE, PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_calibrate(const struct psd_calibrate_options *options, struct psd_text *table, double *spread_ratio,
			      struct psd_error *err) PSD_MUST_CHECK;

#endif
