/* Work of a GPU that shares it with an all-reduce. While the all-reduce runs, its kernels occupy a share of the GPU, so
 * the other work is slower. This module has no clock: callers pass the time, which never decreases. */
#ifndef PSD_DEVICE_SHARE_H
#define PSD_DEVICE_SHARE_H

#include <stdbool.h>

struct psd_device_share {
	/* share of the device that an all-reduce occupies while it runs, 0 to less than 1 */
	double share_ratio;
	double left_sec; /* work left at time at_sec, in seconds without an all-reduce */
	double at_sec;
	/* time of the alarm that was set last, at which the work may have ended; infinity: none */
	double alarm_sec;
	/* is_busy: the device has work; is_beside: an all-reduce runs at the same time */
	bool is_busy, is_beside;
};

/* Makes a device without work. share_ratio: share of the device that a running all-reduce occupies, at least 0 and
 * less than 1. */
void psd_device_share_init(struct psd_device_share *device, double share_ratio);
/* Begins work on the device. sec: duration of the work, in seconds without an all-reduce. */
void psd_device_share_begin(struct psd_device_share *device, double now_sec, double sec);
/* Records that an all-reduce begins to run on the device (is_beside true) or ends (false). */
void psd_device_share_set_beside(struct psd_device_share *device, double now_sec, bool is_beside);
/* Called at the time of an alarm. Returns true if less than a nanosecond of work is left: then the work has ended.
 * False: an all-reduce has slowed the work down since the alarm was set, so the caller sets a new alarm. */
bool psd_device_share_ends(struct psd_device_share *device, double now_sec);
/* Returns the seconds from now_sec to the end of the work at its present speed, for which the caller must set an
 * alarm; infinity: no alarm is needed. Called after each of the functions above. */
double psd_device_share_alarm(struct psd_device_share *device, double now_sec);

#endif
