/* Number of local steps in a window, from the losses before it. Pure, any thread. */
#ifndef PSD_REAL_QUALITY_H
#define PSD_REAL_QUALITY_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/scenario/scenario.h"

struct psd_losses_seen {
	double first;  /* loss of the run's first iteration */
	double lowest; /* lowest mean loss of a window so far, except `last`; INFINITY: none */
	double last;   /* mean loss since the last decision; at first that of the first iteration */
};

/* Returns the steps of the next window, from 1 to local->steps. before: steps of the previous window; drops: the
 * learning rate falls by a step in the window. A NaN counts as a loss that does not fall. Source: Wang and Joshi 2019
 * (arXiv 1810.08313), equation 18 and below. */
uint32_t psd_quality_steps(const struct psd_local_sgd *local, const struct psd_losses_seen *losses, uint32_t before,
			   bool drops);

#endif
