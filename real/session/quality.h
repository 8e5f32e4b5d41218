/* Number of local steps in a window, from the losses before it. Pure, any thread. */
#ifndef PSD_REAL_QUALITY_H
#define PSD_REAL_QUALITY_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/scenario/scenario.h"

struct psd_losses_seen {
	double first;  /* first iteration of the run */
	double lowest; /* lowest mean so far, except the last; INFINITY: none */
	double last;   /* mean since the last decision; the first iteration's at first */
};

/* Returns 1 to local->steps. before: steps of the previous window, in the same range; drops: the learning rate falls by
 * a step in the window. A NaN counts as a loss that does not fall. Source: Wang and Joshi 2019 (arXiv 1810.08313),
 * equation 18 and below. */
uint32_t psd_quality_steps(const struct psd_local_sgd *local, const struct psd_losses_seen *losses, uint32_t before,
			   bool drops);

#endif
