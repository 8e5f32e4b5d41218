/* How many local steps a window gets, by the losses of those before. Pure, any thread. */
#ifndef PSD_REAL_QUALITY_H
#define PSD_REAL_QUALITY_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/scenario/scenario.h"

struct psd_losses_seen {
	double first;  /* of the run's first iteration */
	double lowest; /* of the means up to now, but for the last; INFINITY: there is none */
	double last;   /* mean of the iterations since the last choice: of the first one since the run began */
};

/* From 1 to local->steps. before: steps of the window before, in the same range; drops: the learning rate falls by a
 * step in the window. A loss that is no number asks for as few as one that does not fall. Source: Wang and Joshi 2019
 * (arXiv 1810.08313), equation 18 and below. */
uint32_t psd_quality_steps(const struct psd_local_sgd *local, const struct psd_losses_seen *losses, uint32_t before,
			   bool drops);

#endif
