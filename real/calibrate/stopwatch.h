/* Seconds between points of a device's work, measured by the device's own events if it is asynchronous, otherwise by a
 * clock of the processor. */
#ifndef PSD_REAL_STOPWATCH_H
#define PSD_REAL_STOPWATCH_H

#include "real/device/device.h"

/* A stopwatch for one device. The caller fills the first three fields; the others are private to stopwatch.c. */
struct psd_stopwatch {
	const struct psd_device_kind *kind;
	struct psd_device *device;
	bool is_cpu_time; /* measure processor time of the calling thread; false: wall time */
	uint64_t n_marks;
	double clock_sec[PSD_MOST_MARKS];
};

/* Sets a mark in the stream, behind all work that was started there, and returns the mark's number. Only the last
 * PSD_MOST_MARKS marks can be used. */
uint64_t psd_stopwatch_mark(struct psd_stopwatch *watch, enum psd_stream stream);
/* Waits until the work before the mark is done. PSD_ERUN: the device has failed. */
enum psd_status psd_stopwatch_wait(struct psd_stopwatch *watch, enum psd_stream stream, uint64_t mark,
				   struct psd_error *err) PSD_MUST_CHECK;
/* Returns the seconds between two marks of a stream. The caller must have waited for the later one. */
double psd_stopwatch_between_sec(struct psd_stopwatch *watch, enum psd_stream stream, uint64_t from, uint64_t to);

#endif
