/* Cuts the graph's tensors into items: runs of them that travel together. Refuses to choose an item's method. */
#ifndef PSD_CUTTING_H
#define PSD_CUTTING_H

#include "engine/program/plan.h"

/* Fills in the plan's tensors and items, but for their methods, slices and roots, by the plan's fuse_bytes. */
void psd_cutting_make(struct psd_plan *plan, uint32_t batch);

#endif
