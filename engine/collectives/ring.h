/* The ring's seconds, for the all-reduces that contain one. Pure function, any thread. */
#ifndef PSD_RING_H
#define PSD_RING_H

#include "engine/collectives/collective.h"

/* Seconds of a ring all-reduce if nothing else moves, see psd_collective.alone_sec. */
double psd_ring_alone_sec(const struct psd_payload *payload, struct psd_members members, double transfer_sec,
			  const struct psd_links *links);

#endif
