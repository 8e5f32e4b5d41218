/* Measures the time between two points in a device's work. It uses the device's own events if the device is
 * asynchronous, otherwise a clock of the processor. */
#ifndef PSD_REAL_STOPWATCH_H
#define PSD_REAL_STOPWATCH_H

#include "real/device/device.h"

/* A stopwatch for one device. The caller fills the first three fields; the others are private to stopwatch.c. */
struct psd_stopwatch {
	const struct psd_device_kind *kind;
	struct psd_device *device;
	bool is_cpu_time; /* measure processor time of the calling thread; false: elapsed time */
	uint64_t n_marks;
	double clock_sec[PSD_MOST_MARKS];
};

/* Records a mark (a point in time) in the stream, after all work that was started on it so far. Returns the mark's
 * number. Only the last PSD_MOST_MARKS marks can be used. */
uint64_t psd_stopwatch_mark(struct psd_stopwatch *watch, enum psd_stream stream);
/* Waits until all work before the mark has ended. PSD_ERUN: the device has failed. */
enum psd_status psd_stopwatch_wait(struct psd_stopwatch *watch, enum psd_stream stream, uint64_t mark,
				   struct psd_error *err) PSD_MUST_CHECK;
/* Returns the seconds between the marks `from` and `to` of a stream. Before, the caller must have waited for the later
 * mark. */
double psd_stopwatch_between_sec(struct psd_stopwatch *watch, enum psd_stream stream, uint64_t from, uint64_t to);

#endif
