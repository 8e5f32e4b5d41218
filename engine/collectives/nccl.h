/* NCCL's choice between a ring and trees. Pure function, any thread. */
#ifndef PSD_NCCL_RULE_H
#define PSD_NCCL_RULE_H

#include "engine/collectives/collective.h"

/* NCCL takes trees for a message of this size, otherwise one ring over all members. */
bool psd_nccl_takes_trees(uint64_t elements, struct psd_members members);

#endif
