/* Duration of the ring all-reduce, for the ring itself and for all-reduces that contain a ring. Pure functions, any
 * thread. */
#ifndef PSD_RING_H
#define PSD_RING_H

#include "engine/collectives/collective.h"

/* Returns the seconds of a ring all-reduce if no other data move, see psd_collective.alone_sec. */
double psd_ring_alone_sec(const struct psd_payload *payload, struct psd_members members, double transfer_sec,
			  const struct psd_links *links);

/* Returns the period of the ring's pattern of messages, see psd_collective.period. */
unsigned psd_ring_period(struct psd_members members, unsigned per_rack);

#endif
