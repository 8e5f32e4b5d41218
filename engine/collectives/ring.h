/* Duration of the ring all-reduce, also for other all-reduces that contain a ring. Pure function, any thread. */
#ifndef PSD_RING_H
#define PSD_RING_H

#include "engine/collectives/collective.h"

/* Returns the seconds of a ring all-reduce if no other data move, see psd_collective.alone_sec. */
double psd_ring_alone_sec(const struct psd_payload *payload, struct psd_members members, double transfer_sec,
			  const struct psd_links *links);

/* psd_collective.period of the ring. */
unsigned psd_ring_period(struct psd_members members, unsigned per_rack);

#endif
