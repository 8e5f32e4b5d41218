/* State of a calibration, and functions that its files call of each other. Private to real/calibrate/. */
#ifndef PSD_REAL_CALIBRATE_PARTS_H
#define PSD_REAL_CALIBRATE_PARTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "real/base/fit.h"
#include "real/calibrate/calibrate.h"
#include "real/calibrate/exchange.h"

/* Measured quantities, in the order of the table for people. _SEC: seconds; _BPS: bits per second; _RATIO: a fraction.
 * The comments name the key of the scenario that gets the value. */
enum psd_quantity {
	/* 'compute.profile': forward and backward pass of all layers on the slowest worker, while a worker computes on
	 * each core. */
	PSD_QUANTITY_LAYERS_SEC,
	/* 'compute.jitter': deviation of a layer's time from iteration to iteration, in the attempt whose times
	 * PSD_QUANTITY_LAYERS_SEC keeps. */
	PSD_QUANTITY_JITTER_RATIO,
	PSD_QUANTITY_REBUILD, /* FLOPs per second while a gradient is computed as the product of its factors */
	/* 'host.iteration': processor seconds of an iteration beside layers and messages: reading of data, event
	 * loop. */
	PSD_QUANTITY_BESIDE_SEC,
	PSD_QUANTITY_REDUCE_BPS, /* 'host.reduce': rate at which a server sums gradients and updates parameters */
	PSD_QUANTITY_UPDATE_BPS, /* 'host.update': rate at which a worker updates parameters by a gradient */
	PSD_QUANTITY_COPY_BPS,	 /* 'host.copy': rate of copies between device and host, in the slower direction */
	PSD_QUANTITY_TRANSPORT_BPS,
	PSD_QUANTITY_PAYLOAD_RATIO,
	/* 'host.latency': time of a small message; the link's latency and the cost MESSAGE are subtracted in the
	 * table. */
	PSD_QUANTITY_LATENCY_SEC,
	PSD_QUANTITY_INCAST_RATIO,
	PSD_QUANTITY_LOCAL_BPS,
	/* 'local.latency': time of a small message inside a node; the cost MESSAGE is subtracted in the table. */
	PSD_QUANTITY_LOCAL_LATENCY_SEC,
	PSD_QUANTITY_MESSAGE_SEC,
	PSD_QUANTITY_BYTES_BPS,
	PSD_QUANTITIES
};

struct psd_measured {
	bool is_there;
	double value;
	double attempt_spread_ratio; /* spread of the values of the attempt that gave `value`, divided by `value` */
	double least;		     /* smallest value of all attempts */
	double most;		     /* largest value of all attempts */
	/* Relative error of the line that was fitted to the values, see psd_fit_line; 0: no line was fitted. */
	double residual_ratio;
	unsigned n_samples;
	char range[64]; /* conditions of the measurement, such as sizes of messages, for the table */
};

/* The run that gave a value, so that comparisons can leave it out. */
struct psd_calibrate_point {
	unsigned workers;     /* number of workers; 0: no run gave the value */
	double bandwidth_bps; /* rate of the links, bits per second; 0: as fast as the machine */
	double iteration_sec;
	uint64_t node_bytes; /* bytes that a node sends per iteration; it receives as many */
};

/* Files that a calibration writes, in the order in which they are opened. */
enum psd_calibrate_file { PSD_CALIBRATE_SCENARIO, PSD_CALIBRATE_PROFILE, PSD_CALIBRATE_POINTS, PSD_CALIBRATE_FILES };

struct psd_calibration {
	const struct psd_calibrate_options *options;
	unsigned cores;	 /* number of processors that this process may use */
	unsigned n_busy; /* number of workers that compute at the same time, each on a core or device of its own */
	/* Description of the device by psd_device_kind.describe, in memory shared with forked processes; size
	 * PSD_DEVICE_TEXT_MAX. */
	char *device_text;
	/* Rate of the links over which messages are measured, bits per second; 0: as fast as the machine. */
	double link_bps;
	struct psd_measured measured[PSD_QUANTITIES];
	double *forward_sec;		  /* seconds of each layer's forward pass, for the profile; shape (n_layers) */
	double *backward_sec;		  /* seconds of each layer's backward pass, for the profile; shape (n_layers) */
	struct psd_calibrate_point point; /* run that gave the value of PSD_QUANTITY_BYTES_BPS */
	FILE *files[PSD_CALIBRATE_FILES];
};

/* Takes the result of one attempt at a quantity. Its value is kept if it is the first, or if its spread is smaller than
 * that of the kept one; returns true then. range: format of the text for psd_measured.range. */
bool psd_calibrate_note(struct psd_calibration *calibration, enum psd_quantity quantity, struct psd_summary summary,
			const char *range, ...) __attribute__((format(printf, 4, 5)));

/* Returns the spread of a value, divided by the value: the spread inside the kept attempt, or the difference between
 * the attempts, whichever is larger. 1 if the value is 0 and the spread is not. */
double psd_calibrate_spread_ratio(const struct psd_measured *measured);
/* Returns the largest psd_calibrate_spread_ratio() of all quantities, without the jitter. */
double psd_calibrate_worst_spread_ratio(const struct psd_calibration *calibration);

/* ---- calibrate_compute.c ---- */

/* Measures the quantities LAYERS, JITTER and REBUILD, and the seconds of each layer for the profile. */
enum psd_status psd_calibrate_layers(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;
/* Measures the quantity BESIDE. LAYERS must have been measured. */
enum psd_status psd_calibrate_beside(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;
/* Measures the quantity REDUCE, and UPDATE if the host's processor makes the updates. */
enum psd_status psd_calibrate_host(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;

/* ---- calibrate_device.c ---- */

/* Measures the quantities COPY and UPDATE on a device with its own memory. Does nothing for other devices. */
enum psd_status psd_calibrate_device(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;

/* ---- calibrate_network.c ---- */

/* Returns the options of an exchange in which one worker sends one tensor to a server over a link. rate_bps: rate of
 * the link, bits per second; 0: as fast as the machine. */
struct psd_exchange_options psd_calibrate_exchange(const struct psd_calibration *calibration, double rate_bps);

/* Measures the quantity TRANSPORT (key 'host.transport'), and sets link_bps. */
enum psd_status psd_calibrate_transport(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;
/* Measures the quantity LATENCY, and PAYLOAD (key 'network.payload') if links have a rate. */
enum psd_status psd_calibrate_link(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;
/* Measures the quantity INCAST (key 'host.incast'): rate that is lost if several workers send to one server. */
enum psd_status psd_calibrate_crowds(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;
/* Measures the quantities LOCAL (key 'local.bandwidth') and LOCAL_LATENCY if nodes have several workers. */
enum psd_status psd_calibrate_local(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;

/* ---- calibrate_processors.c ---- */

/* Measures the quantity MESSAGE (key 'machine.message'): processor time of a small message. link_bps must be set. */
enum psd_status psd_calibrate_message(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;
/* Measures the quantity BYTES (key 'machine.bytes'), and sets calibration->point. REDUCE and TRANSPORT must have been
 * measured. */
enum psd_status psd_calibrate_bytes(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;

/* ---- calibrate_output.c ---- */

void psd_calibrate_add_table(struct psd_text *text, const struct psd_calibration *calibration);
/* Opens the three files, before anything is measured. The caller calls psd_outputs_discard() afterwards, also after a
 * failure. Statuses as psd_output_open(). */
enum psd_status psd_calibrate_open(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;
/* Writes the three files and puts them in place. PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_calibrate_write(struct psd_calibration *calibration, struct psd_error *err) PSD_MUST_CHECK;

#endif
