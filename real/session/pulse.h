/* Signs of life of one host, in memory that its process shares with the process that has started it. The host's process
 * writes them; the other one decides by them whether the host is stuck. */
#ifndef PSD_REAL_PULSE_H
#define PSD_REAL_PULSE_H

#include <stdatomic.h>
#include <stdint.h>

enum psd_pulse_place {
	PSD_PULSE_STARTING,
	PSD_PULSE_JOINING,
	PSD_PULSE_TURNING,   /* between two waits of the event loop */
	PSD_PULSE_OPERATION, /* in an operation that the event loop's own thread executes */
	PSD_PULSE_ENDING,
};

/* Fields are written one by one. Read together they are consistent only if beat_sec has not changed for a moment. */
struct psd_pulse {
	_Atomic double beat_sec;  /* time of the last sign of life (psd_socket_now_sec()) */
	_Atomic double limit_sec; /* longest time until the next sign of life, seconds */
	_Atomic enum psd_pulse_place place;
	/* Number of the operation, for PSD_PULSE_OPERATION; `iteration` also for PSD_PULSE_TURNING. */
	_Atomic uint32_t op, iteration;
	_Atomic double longest_sec; /* longest duration of this operation so far, seconds; 0: not executed so far */
};

#endif
