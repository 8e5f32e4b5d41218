/* State of a host in the interpreter, private to it and to the search for repeated iterations. */
#ifndef PSD_HOST_STATE_H
#define PSD_HOST_STATE_H

#include "engine/program/interpreter.h"

struct psd_host_state {
	struct psd_scheduler scheduler;
	bool is_worker;
	/* Per resource: the tasks that were passed to it; the first one runs. */
	struct {
		struct psd_task tasks[PSD_MOST_AHEAD + 1];
		unsigned n;
	} given[PSD_RESOURCES];
	struct psd_running_collective *collective; /* collective for which the NIC is held, or will be; or NULL */
	double started_sec[PSD_RESOURCES];
	double sent_sec; /* time at which the NIC was last in use */
	double busy_sec[PSD_RESOURCES];
};

#endif
