/* When a device reached points in its work: by its own events where it is asynchronous, else by the clock. */
#ifndef PSD_REAL_STOPWATCH_H
#define PSD_REAL_STOPWATCH_H

#include "real/device/device.h"

/* Fields are private to stopwatch.c but for the first three, which whoever makes one fills. */
struct psd_stopwatch {
	const struct psd_device_kind *kind;
	struct psd_device *device;
	bool is_cpu_time; /* of the calling thread, where the clock says it */
	uint64_t n_marks;
	double clock_sec[PSD_MOST_MARKS];
};

/* A mark behind what was begun on the stream; PSD_MOST_MARKS of them count at a time. */
uint64_t psd_stopwatch_mark(struct psd_stopwatch *watch, enum psd_stream stream);
/* Until all before the mark is over. PSD_ERUN: the device has failed. */
enum psd_status psd_stopwatch_wait(struct psd_stopwatch *watch, enum psd_stream stream, uint64_t mark,
				   struct psd_error *err) PSD_MUST_CHECK;
/* Seconds between two marks of a stream, the later of which was waited for. */
double psd_stopwatch_between_sec(struct psd_stopwatch *watch, enum psd_stream stream, uint64_t from, uint64_t to);

#endif
