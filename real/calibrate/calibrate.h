/* Measures the constants of this machine that a prediction of the scenario needs, and writes the scenario with these
 * constants. Predicts nothing. */
#ifndef PSD_REAL_CALIBRATE_H
#define PSD_REAL_CALIBRATE_H

#include <signal.h>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/case/case.h"
#include "real/cluster/launch.h"

struct psd_calibrate_options {
	/* Model of the scenario and costs of its layers; the scenario must have the key 'train'. */
	const struct psd_costed_model *costed;
	const struct psd_device_kind *device;
	struct psd_point point; /* cluster to calibrate for: number of workers on this machine, rate of their links */
	enum psd_cluster_kind cluster_kind;
	double stall_sec;
	/* Most attempts at a measurement, >= 1; more than two are made only while the results differ by more than
	 * PSD_CALIBRATE_NOISY_RATIO. */
	unsigned most_attempts;
	/* Path NAME.yaml of the scenario to write; NAME-profile.csv and NAME-points.csv are written beside it. */
	const char *output_path;
	const char *version;
	/* As soon as it is not 0, the calibration ends with PSD_ERUN; NULL: never. */
	const volatile sig_atomic_t *stop_signal;
	void (*progress)(void *context, const char *line); /* receives a line before each measurement; NULL: none */
	void (*remark)(void *context, const char *line);   /* receives lines about hosts that join; NULL: none */
	void *context;
};

/* Spread of a value, divided by the value, above which the value counts as noisy. */
#define PSD_CALIBRATE_NOISY_RATIO 0.05

/* Measures all constants, and writes the three files or, after a failure, none. An attempt takes about a minute, in
 * processes that it starts, so call it from the main thread, before other threads start. Appends a table of the values
 * for people to *table. *spread_ratio: largest spread of a value, divided by that value. PSD_EINVAL, PSD_EFILE,
 * PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_calibrate(const struct psd_calibrate_options *options, struct psd_text *table, double *spread_ratio,
			      struct psd_error *err) PSD_MUST_CHECK;

#endif
