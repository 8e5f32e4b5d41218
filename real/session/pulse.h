/* Signs of life of one host. They are in memory that the host's process shares with the process that has started it.
 * The host's process writes them. The other process decides by them whether the host is stuck. */
#ifndef PSD_REAL_PULSE_H
#define PSD_REAL_PULSE_H

#include <stdatomic.h>
#include <stdint.h>

/* Activity of the event loop's thread. */
enum psd_pulse_place {
	PSD_PULSE_STARTING,
	PSD_PULSE_JOINING,
	PSD_PULSE_TURNING,   /* between two waits of the event loop */
	PSD_PULSE_OPERATION, /* in an operation that the event loop's own thread executes */
	PSD_PULSE_ENDING,
};

/* Fields are written one by one. A reader may combine them only if beat_sec has the same value before and after reading
 * them. */
struct psd_pulse {
	_Atomic double beat_sec; /* time of the last sign of life (psd_socket_now_sec()) */
	/* Largest allowed time from this sign of life to the next, seconds; after that the host counts as stuck. */
	_Atomic double limit_sec;
	_Atomic enum psd_pulse_place place;
	/* op: number of the operation, valid with PSD_PULSE_OPERATION. iteration: also valid with PSD_PULSE_TURNING. */
	_Atomic uint32_t op, iteration;
	/* Longest duration that this operation has had so far, seconds; 0: it was not executed before. */
	_Atomic double longest_sec;
};

#endif
