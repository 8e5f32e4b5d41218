/* A host's signs of life, in memory shared with the process that has started it. The host writes, the other process
 * judges them. */
#ifndef PSD_REAL_PULSE_H
#define PSD_REAL_PULSE_H

#include <stdatomic.h>
#include <stdint.h>

enum psd_pulse_place {
	PSD_PULSE_STARTING,
	PSD_PULSE_JOINING,
	PSD_PULSE_TURNING,   /* between two turns of the event loop */
	PSD_PULSE_OPERATION, /* at an operation that the event loop's thread executes */
	PSD_PULSE_ENDING,
};

/* Fields are consistent once beat_sec has been still for a moment. */
struct psd_pulse {
	_Atomic double beat_sec;  /* last sign, by psd_socket_now_sec() */
	_Atomic double limit_sec; /* longest time until the next one */
	_Atomic enum psd_pulse_place place;
	_Atomic uint32_t op, iteration; /* at an operation; iteration also between turns */
	_Atomic double longest_sec;	/* longest time of this operation so far; 0: none */
};

#endif
