/* What other all-reduces take from the ring's. Pure functions, any thread. */
#ifndef PSD_RING_H
#define PSD_RING_H

#include "engine/collectives/collective.h"

/* All that a rank sends in one all-reduce, which the next one receives. */
uint64_t psd_ring_sent_elements(uint64_t elements, unsigned workers, unsigned rank);

#endif
