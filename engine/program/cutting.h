/* Cuts the graph's tensors into items: runs of them that travel together. Refuses to choose an item's method. */
#ifndef PSD_CUTTING_H
#define PSD_CUTTING_H

#include "engine/program/plan.h"

/* Fills in the plan's tensors and items, but for their methods, slices and roots, by the plan's fuse_bytes. Where the
 * system leaves open how much is gathered, it is the size by which the last item and the backward pass have ended
 * first, of those that double from one page on: items follow each other as backward makes them, each takes as long as
 * alone on the cluster, and meanwhile its share of the device. A lone worker has one item. PSD_ENOMEM. */
enum psd_status psd_cutting_make(struct psd_plan *plan, uint32_t batch, struct psd_error *err) PSD_MUST_CHECK;

#endif
