/* A device of which an all-reduce takes a share while it runs, since its kernels copy and sum there. Has no clock:
 * callers pass the time, which never decreases. */
#ifndef PSD_DEVICE_SHARE_H
#define PSD_DEVICE_SHARE_H

#include <stdbool.h>

struct psd_device_share {
	double share_ratio; /* share of the device that a running all-reduce takes */
	double left_sec;    /* work left at time at_sec, in seconds of the whole device */
	double at_sec;
	double alarm_sec; /* time of the next alarm; infinity: no alarm is set */
	bool is_busy, is_beside;
};

/* Makes an idle device, of which a running all-reduce takes share_ratio: at least 0, less than 1. */
void psd_device_share_init(struct psd_device_share *device, double share_ratio);
/* Begins work on the device that takes `sec` seconds if it has the whole device. */
void psd_device_share_begin(struct psd_device_share *device, double now_sec, double sec);
/* Records that an all-reduce begins, or ends, to run beside the work. */
void psd_device_share_set_beside(struct psd_device_share *device, double now_sec, bool is_beside);
/* Handles an alarm, which may be too early. True: less than a nanosecond of work is left, so the work ends. */
bool psd_device_share_ends(struct psd_device_share *device, double now_sec);
/* Seconds until the next alarm, which the caller must set; infinity: none. Called after each of the functions above. */
double psd_device_share_alarm(struct psd_device_share *device, double now_sec);

#endif
