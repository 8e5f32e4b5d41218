/* A GPU on which an all-reduce slows other work down: the kernels of the all-reduce take a share of the GPU while it
 * runs. Has no clock: callers pass the time, which never decreases. */
#ifndef PSD_DEVICE_SHARE_H
#define PSD_DEVICE_SHARE_H

#include <stdbool.h>

struct psd_device_share {
	double share_ratio; /* share of the device that a running all-reduce takes */
	double left_sec;    /* work left at time at_sec, in seconds of the whole device */
	double at_sec;
	double alarm_sec; /* time of the next alarm; infinity: no alarm is set */
	/* is_busy: the device has work; is_beside: an all-reduce runs at the same time */
	bool is_busy, is_beside;
};

/* Makes an idle device, of which a running all-reduce takes share_ratio: at least 0, less than 1. */
void psd_device_share_init(struct psd_device_share *device, double share_ratio);
/* Begins work on the device that takes `sec` seconds if it has the whole device. */
void psd_device_share_begin(struct psd_device_share *device, double now_sec, double sec);
/* Records that an all-reduce begins to run on the device (is_beside true) or ends (false). */
void psd_device_share_set_beside(struct psd_device_share *device, double now_sec, bool is_beside);
/* Called when the time of an alarm has come. Returns true if less than a nanosecond of work is left: the work has
 * ended. False: the alarm was too early, since the work was slowed down meanwhile; the caller sets a new one. */
bool psd_device_share_ends(struct psd_device_share *device, double now_sec);
/* Seconds until the next alarm, which the caller must set; infinity: none. Called after each of the functions above. */
double psd_device_share_alarm(struct psd_device_share *device, double now_sec);

#endif
