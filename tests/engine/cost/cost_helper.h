/* Times of a payload in one call. */
#ifndef PSD_TESTS_COST_HELPER_H
#define PSD_TESTS_COST_HELPER_H

#include <math.h>

#include "engine/cost/cost.h"

/* *delay_sec: seconds in addition to *transfer_sec, of a stepwise transfer */
static inline void cost_of_collective(const struct psd_payload *payload, const struct psd_layout *layout,
				      const struct psd_rates *rates, double *transfer_sec, double *delay_sec)
{
	const struct psd_loads loads = psd_cost_loads(payload, layout, isfinite(rates->local_bps));

	*transfer_sec = psd_cost_loads_sec(&loads, layout, rates);
	*delay_sec = psd_cost_delay_sec(payload, &loads, layout, rates);
}

static inline double cost_of_transfer_sec(const struct psd_payload *payload, const struct psd_layout *layout,
					  const struct psd_rates *rates)
{
	const struct psd_loads loads = psd_cost_loads(payload, layout, isfinite(rates->local_bps));

	return psd_cost_loads_sec(&loads, layout, rates);
}

#endif
