#include "real/replay/timers.h"

#include <math.h>

#include "real/net/socket.h"

double psd_timers_now(const struct psd_timers *timers)
{
	return timers->firing ? timers->firing->due_sec
			      : (psd_socket_now_sec() - timers->start_sec) / timers->dilation_ratio;
}

void psd_timers_set(struct psd_timers *timers, enum psd_resource resource, struct psd_task task, double sec)
{
	timers->each[resource] = (struct psd_timer){true, resource, task, psd_timers_now(timers) + sec};
}

const struct psd_timer *psd_timers_first(const struct psd_timers *timers)
{
	const struct psd_timer *first = NULL;

	for (unsigned r = 0; r < PSD_RESOURCES; r++)
		if (timers->each[r].is_set && (!first || timers->each[r].due_sec < first->due_sec))
			first = &timers->each[r];
	return first;
}

double psd_timers_due(const struct psd_timers *timers, const struct psd_timer *timer)
{
	return timers->start_sec + timer->due_sec * timers->dilation_ratio;
}

bool psd_timers_take(struct psd_timers *timers, struct psd_timer *timer)
{
	const struct psd_timer *first = psd_timers_first(timers);
	const double now_sec = psd_timers_now(timers);

	if (!first || first->due_sec > now_sec)
		return false;
	*timer = *first;
	timers->each[timer->resource].is_set = false;
	double *late_sec = &timers->late_sec[timer->task.iteration];
	*late_sec = fmax(*late_sec, now_sec - timer->due_sec);
	return true;
}
