/* Number of local SGD steps in the next window (iterations between two exchanges of parameters), chosen by the losses
 * so far. Pure, any thread. */
#ifndef PSD_REAL_QUALITY_H
#define PSD_REAL_QUALITY_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/scenario/scenario.h"

struct psd_losses_seen {
	double first;  /* loss of the first iteration of the run */
	double lowest; /* lowest mean loss of a window so far, `last` not included; INFINITY: there is none */
	/* Mean loss of the iterations since the last choice; for the first choice, loss of the first iteration. */
	double last;
};

/* Returns the number of steps of the next window, 1 to local->steps. before: number of steps of the window before it;
 * drops: the learning rate falls by a step in that window. A loss that is NaN counts as one that does not fall. Source:
 * Wang and Joshi 2019 (arXiv 1810.08313), equation 18 and the text below it. */
uint32_t psd_quality_steps(const struct psd_local_sgd *local, const struct psd_losses_seen *losses, uint32_t before,
			   bool drops);

#endif
