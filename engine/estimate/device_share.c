/* Keeps the work left and its speed. Alarms cannot be cancelled: if one comes too early, the next one is set. */
#include "engine/estimate/device_share.h"

#include <math.h>

static double tolerance_sec(double now_sec)
{
	return 1e-9 + 1e-14 * now_sec; /* a nanosecond and the clock's resolution */
}

static double speed_ratio(const struct psd_device_share *device)
{
	return device->is_beside ? 1.0 - device->share_ratio : 1.0;
}

static void advance(struct psd_device_share *device, double now_sec)
{
	device->left_sec -= (now_sec - device->at_sec) * speed_ratio(device);
	device->at_sec = now_sec;
}

void psd_device_share_init(struct psd_device_share *device, double share_ratio)
{
	*device = (struct psd_device_share){.share_ratio = share_ratio, .alarm_sec = INFINITY};
}

void psd_device_share_begin(struct psd_device_share *device, double now_sec, double sec)
{
	device->left_sec = sec;
	device->at_sec = now_sec;
	device->is_busy = true;
}

void psd_device_share_set_beside(struct psd_device_share *device, double now_sec, bool is_beside)
{
	advance(device, now_sec);
	device->is_beside = is_beside;
}

bool psd_device_share_ends(struct psd_device_share *device, double now_sec)
{
	advance(device, now_sec);
	if (device->alarm_sec <= now_sec + tolerance_sec(now_sec))
		device->alarm_sec = INFINITY;
	if (!device->is_busy || device->left_sec > tolerance_sec(now_sec))
		return false;
	device->is_busy = false;
	return true;
}

double psd_device_share_alarm(struct psd_device_share *device, double now_sec)
{
	const double due_sec = now_sec + fmax(0.0, device->left_sec) / speed_ratio(device);

	if (!device->is_busy || device->alarm_sec <= due_sec)
		return INFINITY;
	device->alarm_sec = due_sec;
	return due_sec - now_sec;
}
