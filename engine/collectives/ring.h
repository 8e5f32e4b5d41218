/* Duration and messages of rings, for the ring itself and for collectives that contain a ring. Pure functions, any
 * thread. */
#ifndef PSD_RING_H
#define PSD_RING_H

#include "engine/collectives/collective.h"

/* Returns the seconds of a ring all-reduce if no other data move, see psd_collective.alone_sec. */
double psd_ring_alone_sec(const struct psd_payload *payload, struct psd_members members, double transfer_sec,
			  const struct psd_links *links);

/* Returns the same for the first n_steps steps of a ring, in each of which a member sends a part of the elements. */
double psd_ring_steps_sec(const struct psd_payload *payload, struct psd_members members, unsigned n_steps,
			  double transfer_sec, const struct psd_links *links);

/* Returns the period of the ring's pattern of messages, see psd_collective.period. */
unsigned psd_ring_period(struct psd_members members, unsigned per_rack);

/* Returns the largest number of elements of a message, see psd_collective.largest. */
uint64_t psd_ring_largest(uint64_t elements, struct psd_members members);

#endif
