/* A device of which an all-reduce takes a share while it runs: its kernels copy and sum there. Knows no clock: callers
 * say what time it is, never less than before. */
#ifndef PSD_DEVICE_SHARE_H
#define PSD_DEVICE_SHARE_H

#include <stdbool.h>

struct psd_device_share {
	double share_ratio; /* that an all-reduce takes */
	double left_sec;    /* of the work under way, if nothing ran beside it; at at_sec */
	double at_sec;
	double alarm_sec; /* of the next alarm; infinity: none is set */
	bool is_busy, is_beside;
};

/* share_ratio: at least 0, less than 1. */
void psd_device_share_init(struct psd_device_share *device, double share_ratio);
/* Work of sec seconds begins on the device. */
void psd_device_share_begin(struct psd_device_share *device, double now_sec, double sec);
/* An all-reduce begins to run beside its work, or ends. */
void psd_device_share_set_beside(struct psd_device_share *device, double now_sec, bool is_beside);
/* An alarm goes off, perhaps too early: true when the work is over, to a nanosecond. */
bool psd_device_share_ends(struct psd_device_share *device, double now_sec);
/* Behind each of these: in how many seconds to set an alarm; infinity: one that comes in time is set, or none is
 * needed. */
double psd_device_share_alarm(struct psd_device_share *device, double now_sec);

#endif
