/* The state of a calibration, and the functions that its parts call of each other. Private to real/calibrate/. */
#ifndef PSD_REAL_CALIBRATE_PARTS_H
#define PSD_REAL_CALIBRATE_PARTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "real/base/fit.h"
#include "real/calibrate/calibrate.h"
#include "real/calibrate/exchange.h"

/* Measured quantities, in the order of the table. Rates are bits or FLOPs per second. */
enum psd_quantity {
	PSD_QUANTITY_LAYERS_SEC, /* forward and backward of the slowest worker, while as many compute as have a core */
	/* Jitter of a layer's time in the attempt whose times are kept as PSD_QUANTITY_LAYERS_SEC. */
	PSD_QUANTITY_JITTER_RATIO,
	PSD_QUANTITY_REBUILD,	 /* FLOPs per second while a gradient is rebuilt from factors */
	PSD_QUANTITY_BESIDE_SEC, /* time of an iteration without layers and messages: data, event loop */
	PSD_QUANTITY_REDUCE_BPS, /* rate at which gradients are summed and applied */
	PSD_QUANTITY_UPDATE_BPS, /* rate at which gradients are applied */
	PSD_QUANTITY_COPY_BPS,	 /* rate of copies between device and host, in the slower direction */
	PSD_QUANTITY_TRANSPORT_BPS,
	PSD_QUANTITY_PAYLOAD_RATIO,
	PSD_QUANTITY_LATENCY_SEC, /* latency of a message; the table subtracts the link's latency and cost MESSAGE */
	PSD_QUANTITY_INCAST_RATIO,
	PSD_QUANTITY_LOCAL_BPS,
	PSD_QUANTITY_LOCAL_LATENCY_SEC, /* latency of a message inside a node; the table subtracts the message's cost */
	PSD_QUANTITY_MESSAGE_SEC,
	PSD_QUANTITY_BYTES_BPS,
	PSD_QUANTITIES
};

struct psd_measured {
	bool is_there;
	double value;
	double attempt_spread_ratio; /* spread inside the attempt that gave the value */
	double least, most;	     /* smallest and largest value of all attempts */
	double residual_ratio;	     /* residual of the line that was fitted; 0: no line */
	unsigned n_samples;
	char range[64]; /* conditions of the measurement, such as sizes, for the table */
};

/* Measured exchange from which a value was taken. */
struct psd_calibrate_point {
	unsigned workers;     /* number of workers; 0: there is no such exchange */
	double bandwidth_bps; /* rate of the links; 0: as fast as the machine */
	double iteration_sec;
	uint64_t node_bytes; /* bytes that a node sends, and receives, per iteration */
};

/* Files that a calibration writes, in the order of opening. */
enum psd_calibrate_file { PSD_CALIBRATE_SCENARIO, PSD_CALIBRATE_PROFILE, PSD_CALIBRATE_POINTS, PSD_CALIBRATE_FILES };

struct psd_calibration {
	const struct psd_calibrate_options *options;
	unsigned cores;	   /* number of processor cores that this process may use */
	unsigned n_busy;   /* number of workers that compute at a time, each on its own core or device */
	char *device_text; /* text of psd_device_kind.describe, shared with children; size PSD_DEVICE_TEXT_MAX */
	double link_bps;   /* rate of the measured links; 0: as fast as the machine */
	struct psd_measured measured[PSD_QUANTITIES];
	double *forward_sec, *backward_sec; /* seconds of each layer for the profile; shape (n_layers) each */
	struct psd_calibrate_point point;   /* exchange that gave the kept value of BYTES */
	FILE *files[PSD_CALIBRATE_FILES];
};

/* Records the result of an attempt. It is kept if it spreads less than the kept one; returns whether it is. range: as
 * in psd_measured. */
bool psd_calibrate_note(struct psd_calibration *calibration, enum psd_quantity quantity, struct psd_summary summary,
			const char *range, ...) __attribute__((format(printf, 4, 5)));

/* Spread of a value, divided by it: inside the kept attempt or between all attempts, whichever is larger. 1 if only the
 * value is 0. */
double psd_calibrate_spread_ratio(const struct psd_measured *measured);
/* Largest such spread of all quantities except the jitter. */
double psd_calibrate_worst_spread_ratio(const struct psd_calibration *calibration);

/* ---- calibrate_compute.c ---- */

/* Measures LAYERS, JITTER and REBUILD, and the seconds of each layer. */
enum psd_status psd_calibrate_layers(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;
/* Measures BESIDE; LAYERS must be known. */
enum psd_status psd_calibrate_beside(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;
/* Measures REDUCE, and UPDATE if the host's processor makes updates. */
enum psd_status psd_calibrate_host(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;

/* ---- calibrate_device.c ---- */

/* Measures COPY and UPDATE if the device has its own memory. */
enum psd_status psd_calibrate_device(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;

/* ---- calibrate_network.c ---- */

/* Options for an exchange of one tensor by one worker, over links of rate_bps; 0: as fast as the machine. */
struct psd_exchange_options psd_calibrate_exchange(const struct psd_calibration *calibration, double rate_bps);

/* Measures TRANSPORT and chooses link_bps. */
enum psd_status psd_calibrate_transport(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;
/* Measures LATENCY, and PAYLOAD if links have a rate. */
enum psd_status psd_calibrate_link(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;
/* Measures INCAST. */
enum psd_status psd_calibrate_crowds(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;
/* Measures LOCAL and LOCAL_LATENCY if nodes have several workers. */
enum psd_status psd_calibrate_local(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;

/* ---- calibrate_processors.c ---- */

/* Measures MESSAGE; link_bps must be known. */
enum psd_status psd_calibrate_message(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;
/* Measures BYTES and sets its point; REDUCE and TRANSPORT must be known. */
enum psd_status psd_calibrate_bytes(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;

/* ---- calibrate_output.c ---- */

void psd_calibrate_add_table(struct psd_text *text, const struct psd_calibration *calibration);
/* Opens the three files, before anything is measured. The caller discards outputs, also after a failure. Statuses as
 * psd_output_open(). */
enum psd_status psd_calibrate_open(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;
/* Writes and commits the three files. PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_calibrate_write(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;

#endif
