/* NCCL's choice between a ring and double binary trees. Pure function, any thread. */
#ifndef PSD_NCCL_RULE_H
#define PSD_NCCL_RULE_H

#include "engine/collectives/collective.h"

/* True if NCCL would use double binary trees for an all-reduce of `elements` values; false: one ring over all members.
 * The rule imitates NCCL's choice by size and number of nodes. */
bool psd_nccl_takes_trees(uint64_t elements, struct psd_members members);

#endif
