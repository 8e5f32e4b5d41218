/* Measures the constants of this machine that a prediction of the scenario needs. Writes a copy of the scenario with
 * these constants. Predicts nothing. */
#ifndef PSD_REAL_CALIBRATE_H
#define PSD_REAL_CALIBRATE_H

#include <signal.h>

#include "engine/base/error.h"
#include "engine/base/text.h"
#include "engine/case/case.h"
#include "real/cluster/launch.h"

struct psd_calibrate_options {
	/* Model of the scenario and computing costs of its layers. The scenario must have the key 'train'. */
	const struct psd_costed_model *costed;
	const struct psd_device_kind *device;
	/* Cluster for which constants are measured: number of workers on this machine, rate of their links. */
	struct psd_point point;
	enum psd_cluster_kind cluster_kind;
	double stall_sec;
	/* Largest number of attempts at a measurement, >= 1. More than two attempts are made only while the results
	 * differ by more than PSD_CALIBRATE_NOISY_RATIO. */
	unsigned most_attempts;
	/* Path of the scenario to write, NAME.yaml. NAME-profile.csv and NAME-points.csv are written in the same
	 * folder. */
	const char *output_path;
	const char *version;
	/* When it is not 0, the calibration ends with PSD_ERUN. NULL: the calibration cannot be stopped. */
	const volatile sig_atomic_t *stop_signal;
	/* Receives a line before each measurement; NULL: no lines. */
	void (*progress)(void *context, const char *line);
	/* Receives lines about hosts that join; NULL: no lines. */
	void (*remark)(void *context, const char *line);
	void *context;
};

/* Relative spread of a measured value (spread / value) above which the value counts as noisy. */
#define PSD_CALIBRATE_NOISY_RATIO 0.05

/* Measures all constants and writes the three files; after a failure it writes none of them. An attempt takes about a
 * minute. It starts processes, so call it from the main thread, before other threads start. Appends a table of the
 * values, for people to read, to *table. *spread_ratio: largest relative spread (spread / value) of all values.
 * PSD_EINVAL, PSD_EFILE, PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_calibrate(const struct psd_calibrate_options *options, struct psd_text *table, double *spread_ratio,
			      struct psd_error *err) PSD_MUST_CHECK;

#endif
