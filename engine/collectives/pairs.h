/* What all-reduces have in common in which members exchange in pairs, 2^k of them at the most. Pure functions, any
 * thread. */
#ifndef PSD_PAIRS_H
#define PSD_PAIRS_H

#include "engine/collectives/collective.h"

/* The k of the largest 2^k that is no more than a number of members, >= 1. */
unsigned psd_pairs_bits(struct psd_members members);
/* Whether it is all of them. */
bool psd_pairs_take_all(struct psd_members members);
/* psd_collective.alone_sec of such a pattern. */
double psd_pairs_alone_sec(const struct psd_payload *payload, struct psd_members members, double transfer_sec,
			   const struct psd_ways *ways);

#endif
