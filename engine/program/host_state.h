/* State of a host in the interpreter, private to it and to the search for repeated iterations. */
#ifndef PSD_HOST_STATE_H
#define PSD_HOST_STATE_H

#include "engine/program/interpreter.h"

struct psd_host_state {
	struct psd_scheduler scheduler;
	bool is_worker;
	/* Per resource: the tasks (operations of an iteration) that were passed to the resource and have not ended; the
	 * first one is executed now. */
	struct {
		struct psd_task tasks[PSD_MOST_AHEAD + 1];
		unsigned n;
	} given[PSD_RESOURCES];
	/* collective that occupies the NIC, or will occupy it when the NIC is free; NULL: none */
	struct psd_running_collective *collective;
	double started_sec[PSD_RESOURCES];
	double sent_sec; /* time at which the NIC last sent, seconds since the start of the run */
	double busy_sec[PSD_RESOURCES];
	unsigned n_lines;     /* number of queued messages, and of tasks on the NIC */
	double line_from_sec; /* time at which n_lines was last 0, seconds since the start of the run */
};

#endif
