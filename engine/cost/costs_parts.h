/* What costs.c and profile.c share. Private to them. */
#ifndef PSD_COSTS_PARTS_H
#define PSD_COSTS_PARTS_H

#include "engine/cost/costs.h"

/* Room for graph's layers, all zero; released by psd_costs_release(). PSD_ENOMEM. */
enum psd_status psd_costs_init(struct psd_costs *costs, const struct psd_graph *graph,
			       struct psd_error *err) PSD_MUST_CHECK;
/* Scales all layers so that batch / compute_sec meets images_per_sec (0: leaves them) and sums them up. PSD_EINVAL at
 * `at` when they take no time. */
enum psd_status psd_costs_settle(struct psd_costs *costs, struct psd_place at, unsigned batch, double images_per_sec,
				 struct psd_error *err) PSD_MUST_CHECK;

#endif
