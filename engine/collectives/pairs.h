/* Functions for the all-reduces in which members exchange data in pairs: halving-doubling and recursive doubling. Let
 * 2^k be the largest power of two that is not larger than the number of members. At most 2^k members exchange data in
 * a step. Pure, any thread. */
#ifndef PSD_PAIRS_H
#define PSD_PAIRS_H

#include "engine/collectives/collective.h"

/* Returns the largest k such that 2^k <= members.n. */
unsigned psd_pairs_bits(struct psd_members members);
/* True if the number of members is a power of two. */
bool psd_pairs_take_all(struct psd_members members);
/* Returns the seconds of a halving-doubling or recursive-doubling all-reduce if no other data move, see
 * psd_collective.alone_sec. */
double psd_pairs_alone_sec(const struct psd_payload *payload, struct psd_members members, double transfer_sec,
			   const struct psd_links *links);

#endif
