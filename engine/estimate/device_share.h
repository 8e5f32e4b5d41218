/* A device of which an all-reduce takes a share while it runs, since its kernels copy and sum there. Has no clock:
 * callers pass the time, which never decreases. */
#ifndef PSD_DEVICE_SHARE_H
#define PSD_DEVICE_SHARE_H

#include <stdbool.h>

struct psd_device_share {
	double share_ratio; /* share that an all-reduce takes */
	double left_sec;    /* work left at at_sec, as seconds of the device alone */
	double at_sec;
	double alarm_sec; /* time of the next alarm; infinity: none is set */
	bool is_busy, is_beside;
};

/* share_ratio: at least 0, less than 1. */
void psd_device_share_init(struct psd_device_share *device, double share_ratio);
/* Work of sec seconds begins on the device. */
void psd_device_share_begin(struct psd_device_share *device, double now_sec, double sec);
/* An all-reduce begins, or ends, to run beside the work. */
void psd_device_share_set_beside(struct psd_device_share *device, double now_sec, bool is_beside);
/* An alarm goes off, perhaps too early: true when less than a nanosecond of work is left. */
bool psd_device_share_ends(struct psd_device_share *device, double now_sec);
/* To be called after each of these: seconds until the next alarm that the caller must set; infinity: none. */
double psd_device_share_alarm(struct psd_device_share *device, double now_sec);

#endif
