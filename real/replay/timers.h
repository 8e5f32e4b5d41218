/* Timers of a replay, one for each resource. A timer replaces an operation, or the time that software needs before a
 * message is sent. The clock is the cluster's: it is slower than this machine's, and while the end of a timer is
 * handled it stands at the time for which the timer was set. So the lateness of successive timers is not added up. */
#ifndef PSD_REAL_TIMERS_H
#define PSD_REAL_TIMERS_H

#include <stdbool.h>

#include "engine/program/scheduler.h"

struct psd_timer {
	bool is_set;
	enum psd_resource resource;
	struct psd_task task;
	double due_sec; /* by psd_timers_now() */
};

struct psd_timers {
	double start_sec; /* time at which psd_timers_now() is 0 (psd_socket_now_sec()) */
	/* Seconds of this machine for one second of psd_timers_now(). It is 1 except in a replay with dilation. */
	double dilation_ratio;
	struct psd_timer each[PSD_RESOURCES];
	const struct psd_timer *firing; /* timer whose end is being handled; NULL: none */
	/* Largest lateness of a timer in each iteration, seconds; shape (n_iterations). */
	double *late_sec;
};

double psd_timers_now(const struct psd_timers *timers);
/* Starts the timer of the task's resource, which ends in sec seconds. */
void psd_timers_set(struct psd_timers *timers, enum psd_resource resource, struct psd_task task, double sec);
/* If a timer has ended, returns true, and the timer that ended first in *timer. The caller sets timers->firing to it
 * while it handles the end. */
bool psd_timers_take(struct psd_timers *timers, struct psd_timer *timer);
/* Returns the earliest timer; NULL: none is set. */
const struct psd_timer *psd_timers_first(const struct psd_timers *timers);
/* Returns the time at which a timer ends (psd_socket_now_sec()). */
double psd_timers_due(const struct psd_timers *timers, const struct psd_timer *timer);

#endif
