/* The state of a calibration, and the functions that its parts call of each other. Private to real/calibrate/. */
#ifndef PSD_REAL_CALIBRATE_PARTS_H
#define PSD_REAL_CALIBRATE_PARTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "real/base/fit.h"
#include "real/calibrate/calibrate.h"
#include "real/calibrate/exchange.h"

/* Quantities in the order of the table. Rates are bits or FLOPs per second. */
enum psd_quantity {
	PSD_QUANTITY_LAYERS_SEC, /* forward and backward of the slowest worker, while all that fit compute */
	/* jitter of a layer's time in the attempt whose times are kept as PSD_QUANTITY_LAYERS */
	PSD_QUANTITY_JITTER_RATIO,
	PSD_QUANTITY_REBUILD,	 /* FLOP/s of a gradient that is rebuilt from factors */
	PSD_QUANTITY_BESIDE_SEC, /* an iteration without layers and messages: data, event loop */
	PSD_QUANTITY_REDUCE_BPS, /* gradients summed and applied */
	PSD_QUANTITY_UPDATE_BPS, /* gradients applied */
	PSD_QUANTITY_COPY_BPS,	 /* copies between device and host, in the slower direction */
	PSD_QUANTITY_TRANSPORT_BPS,
	PSD_QUANTITY_PAYLOAD_RATIO,
	PSD_QUANTITY_LATENCY_SEC, /* a message's constant; the table subtracts the links' latency and MESSAGE */
	PSD_QUANTITY_INCAST_RATIO,
	PSD_QUANTITY_LOCAL_BPS,
	PSD_QUANTITY_LOCAL_LATENCY_SEC, /* a message's constant inside a node; the table subtracts MESSAGE */
	PSD_QUANTITY_MESSAGE_SEC,
	PSD_QUANTITY_BYTES_BPS,
	PSD_QUANTITIES
};

struct psd_measured {
	bool is_there;
	double value;
	double attempt_spread_ratio; /* spread inside the attempt of the value */
	double least, most;	     /* values of all attempts */
	double residual_ratio;	     /* residual of the fitted line; 0: no line */
	unsigned n_samples;
	char range[64]; /* conditions of the measurement, for the table */
};

/* An exchange that gave a value. */
struct psd_calibrate_point {
	unsigned workers;     /* 0: there is none */
	double bandwidth_bps; /* 0: links as fast as the machine */
	double iteration_sec;
	uint64_t node_bytes; /* sent, and received, per iteration */
};

/* In the order of opening. */
enum psd_calibrate_file { PSD_CALIBRATE_SCENARIO, PSD_CALIBRATE_PROFILE, PSD_CALIBRATE_POINTS, PSD_CALIBRATE_FILES };

struct psd_calibration {
	const struct psd_calibrate_options *options;
	unsigned cores;	   /* processor cores that this process may use */
	unsigned n_busy;   /* workers that compute at a time, each on its own core or device */
	char *device_text; /* (PSD_DEVICE_TEXT_MAX), text of psd_device_kind.describe; shared with children */
	double link_bps;   /* rate of the measured links; 0: as fast as the machine */
	struct psd_measured measured[PSD_QUANTITIES];
	double *forward_sec, *backward_sec; /* (n_layers) of the profile */
	struct psd_calibrate_point point;   /* exchange of the kept value of BYTES */
	FILE *files[PSD_CALIBRATE_FILES];
};

/* Records an attempt, and keeps its value if it spreads less than the kept one; returns whether it does. range: as in
 * psd_measured. */
bool psd_calibrate_note(struct psd_calibration *calibration, enum psd_quantity quantity, struct psd_summary summary,
			const char *range, ...) __attribute__((format(printf, 4, 5)));

/* The spread inside the kept attempt, or the distance of all attempts over the value if that is larger; 1 if only the
 * value is 0. */
double psd_calibrate_spread_ratio(const struct psd_measured *measured);
/* The largest spread of all quantities except the jitter. */
double psd_calibrate_worst_spread_ratio(const struct psd_calibration *calibration);

/* ---- calibrate_compute.c ---- */

/* Fills LAYERS, JITTER, REBUILD and the seconds of layers. */
enum psd_status psd_calibrate_layers(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;
/* Fills BESIDE; needs LAYERS. */
enum psd_status psd_calibrate_beside(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;
/* Fills REDUCE, and UPDATE where the host's processor makes updates. */
enum psd_status psd_calibrate_host(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;

/* ---- calibrate_device.c ---- */

/* Fills COPY and UPDATE where the device has memory of its own. */
enum psd_status psd_calibrate_device(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;

/* ---- calibrate_network.c ---- */

/* Options of an exchange of one tensor by one worker, on links of rate_bps; 0: as fast as the machine. */
struct psd_exchange_options psd_calibrate_exchange(const struct psd_calibration *calibration, double rate_bps);

/* Fills TRANSPORT and chooses link_bps. */
enum psd_status psd_calibrate_transport(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;
/* Fills PAYLOAD, where links have a rate, and LATENCY. */
enum psd_status psd_calibrate_link(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;
/* Fills INCAST. */
enum psd_status psd_calibrate_crowds(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;
/* Fills LOCAL and LOCAL_LATENCY, where nodes have several workers. */
enum psd_status psd_calibrate_local(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;

/* ---- calibrate_processors.c ---- */

/* Fills MESSAGE; needs link_bps. */
enum psd_status psd_calibrate_message(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;
/* Fills BYTES and its point; needs REDUCE and TRANSPORT. */
enum psd_status psd_calibrate_bytes(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;

/* ---- calibrate_output.c ---- */

void psd_calibrate_add_table(struct psd_text *text, const struct psd_calibration *calibration);
/* Opens the three files, before anything is measured. The caller discards outputs, also after a failure. Returns
 * statuses as psd_output_open(). */
enum psd_status psd_calibrate_open(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;
/* Writes the files and commits them. PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_calibrate_write(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;

#endif
