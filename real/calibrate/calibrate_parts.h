/* State of a calibration, and functions that the files of real/calibrate/ share. Private to these files. */
#ifndef PSD_REAL_CALIBRATE_PARTS_H
#define PSD_REAL_CALIBRATE_PARTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "real/base/fit.h"
#include "real/calibrate/calibrate.h"
#include "real/calibrate/exchange.h"

/* Measured quantities, in the order of the printed table. Suffixes: _SEC is seconds, _BPS bits per second, _RATIO a
 * fraction. Comments begin with the key of the scenario that gets the value. */
enum psd_quantity {
	/* 'compute.profile': duration of the forward and backward pass of all layers. It is measured while one worker
	 * computes on each core; the slowest worker counts. */
	PSD_QUANTITY_LAYERS_SEC,
	/* 'compute.jitter': variation of a layer's duration from iteration to iteration. It comes from the attempt
	 * whose value of PSD_QUANTITY_LAYERS_SEC is used. */
	PSD_QUANTITY_JITTER_RATIO,
	PSD_QUANTITY_REBUILD, /* FLOPs per second when a gradient is computed as the product of its factors */
	/* 'host.iteration': processor time of an iteration, without layers and messages: for example reading data and
	 * the event loop. */
	PSD_QUANTITY_BESIDE_SEC,
	PSD_QUANTITY_REDUCE_BPS, /* 'host.reduce': rate at which a server sums gradients and updates parameters */
	PSD_QUANTITY_UPDATE_BPS, /* 'host.update': rate at which a worker updates parameters by a gradient */
	PSD_QUANTITY_COPY_BPS,	 /* 'host.copy': rate of copies between device and host, in the slower direction */
	PSD_QUANTITY_TRANSPORT_BPS,
	PSD_QUANTITY_PAYLOAD_RATIO,
	/* 'host.latency': duration of a small message. The table shows it without the link's latency and without the
	 * processor time PSD_QUANTITY_MESSAGE_SEC. */
	PSD_QUANTITY_LATENCY_SEC,
	PSD_QUANTITY_INCAST_RATIO,
	PSD_QUANTITY_LOCAL_BPS,
	/* 'local.latency': duration of a small message inside a node. The table shows it without the processor time
	 * PSD_QUANTITY_MESSAGE_SEC. */
	PSD_QUANTITY_LOCAL_LATENCY_SEC,
	PSD_QUANTITY_MESSAGE_SEC,
	PSD_QUANTITY_BYTES_BPS,
	PSD_QUANTITIES
};

struct psd_measured {
	bool is_there;
	double value;
	/* Relative spread of the samples in the attempt that gave `value`: spread / value. */
	double attempt_spread_ratio;
	double least; /* smallest result of all attempts */
	double most;  /* largest result of all attempts */
	/* Relative error of the line that was fitted to the samples, see psd_fit_line; 0: no line was fitted. */
	double residual_ratio;
	unsigned n_samples;
	char range[64]; /* text for the table: conditions of the measurement, such as message sizes */
};

/* The run from which a value was computed. Comparisons of predictions with runs leave this run out. */
struct psd_calibrate_point {
	unsigned workers;     /* number of workers; 0: the value was not computed from a run */
	double bandwidth_bps; /* rate of the links, bits per second; 0: as fast as the machine allows */
	double iteration_sec;
	uint64_t node_bytes; /* bytes that a node sends per iteration; it receives the same number */
};

/* Files that a calibration writes, in the order in which they are opened. */
enum psd_calibrate_file { PSD_CALIBRATE_SCENARIO, PSD_CALIBRATE_PROFILE, PSD_CALIBRATE_POINTS, PSD_CALIBRATE_FILES };

struct psd_calibration {
	const struct psd_calibrate_options *options;
	unsigned cores;	 /* number of processors that this process may use */
	unsigned n_busy; /* number of workers that compute at the same time, each on its own core or device */
	/* Description of the device by psd_device_kind.describe, in memory shared with forked processes;
	 * PSD_DEVICE_TEXT_MAX bytes. */
	char *device_text;
	/* Rate of the links that are used to measure messages, bits per second; 0: as fast as the machine allows. */
	double link_bps;
	struct psd_measured measured[PSD_QUANTITIES];
	double *forward_sec;		  /* seconds of each layer's forward pass, for the profile; shape (n_layers) */
	double *backward_sec;		  /* seconds of each layer's backward pass, for the profile; shape (n_layers) */
	struct psd_calibrate_point point; /* run from which the value of PSD_QUANTITY_BYTES_BPS was computed */
	FILE *files[PSD_CALIBRATE_FILES];
};

/* Records the result of one attempt to measure a quantity. If it is the first attempt, or its spread is smaller than
 * that of the recorded result, it replaces the recorded result and the function returns true. range: format of the text
 * for psd_measured.range. */
bool psd_calibrate_note(struct psd_calibration *calibration, enum psd_quantity quantity, struct psd_summary summary,
			const char *range, ...) __attribute__((format(printf, 4, 5)));

/* Returns the relative spread of a value: the spread inside the attempt that gave the value or the difference between
 * the attempts, whichever is larger, divided by the value. Returns 1 if the value is 0 and the spread is not. */
double psd_calibrate_spread_ratio(const struct psd_measured *measured);
/* Returns the largest psd_calibrate_spread_ratio() of all quantities except the jitter. */
double psd_calibrate_worst_spread_ratio(const struct psd_calibration *calibration);

/* ---- calibrate_compute.c ---- */

/* Measures the quantities LAYERS, JITTER and REBUILD, and the durations of each layer for the profile. */
enum psd_status psd_calibrate_layers(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;
/* Measures the quantity BESIDE. Call it after psd_calibrate_layers(). */
enum psd_status psd_calibrate_beside(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;
/* Measures the quantity REDUCE. Also measures UPDATE if the host's processor executes the updates. */
enum psd_status psd_calibrate_host(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;

/* ---- calibrate_device.c ---- */

/* Measures the quantities COPY and UPDATE on a device with its own memory. Does nothing for other devices. */
enum psd_status psd_calibrate_device(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;

/* ---- calibrate_network.c ---- */

/* Returns options for an exchange in which one worker sends one tensor to a server over a link. rate_bps: rate of the
 * link, bits per second; 0: as fast as the machine allows. */
struct psd_exchange_options psd_calibrate_exchange(const struct psd_calibration *calibration, double rate_bps);

/* Measures the quantity TRANSPORT (key 'host.transport'), and sets link_bps. */
enum psd_status psd_calibrate_transport(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;
/* Measures the quantity LATENCY, and PAYLOAD (key 'network.payload') if links have a rate. */
enum psd_status psd_calibrate_link(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;
/* Measures the quantity INCAST (key 'host.incast'): loss of rate if several workers send to one server. */
enum psd_status psd_calibrate_crowds(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;
/* Measures the quantities LOCAL (key 'local.bandwidth') and LOCAL_LATENCY if nodes have several workers. */
enum psd_status psd_calibrate_local(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;

/* ---- calibrate_processors.c ---- */

/* Measures the quantity MESSAGE (key 'machine.message'): processor time of a small message. link_bps must be set. */
enum psd_status psd_calibrate_message(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;
/* Measures the quantity BYTES (key 'machine.bytes'), and sets calibration->point. Call it when REDUCE and TRANSPORT
 * have been measured. */
enum psd_status psd_calibrate_bytes(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;

/* ---- calibrate_output.c ---- */

void psd_calibrate_add_table(struct psd_text *text, const struct psd_calibration *calibration);
/* Opens the three files, before anything is measured. The caller calls psd_outputs_discard() afterwards, also after a
 * failure. Statuses as psd_output_open(). */
enum psd_status psd_calibrate_open(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;
/* Writes the three files and moves them to their final paths. PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_calibrate_write(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;

#endif
