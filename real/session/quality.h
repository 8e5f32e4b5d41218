/* Chooses the number of local SGD steps (iterations between two exchanges of parameters) for the next window, by the
 * losses so far. A window is a fixed number of iterations, the key `systems.local_sgd.window`. Pure, any thread. */
#ifndef PSD_REAL_QUALITY_H
#define PSD_REAL_QUALITY_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/scenario/scenario.h"

struct psd_losses_seen {
	double first; /* loss of the first iteration of the run */
	/* Lowest value that `last` had at earlier choices; INFINITY: there was no earlier choice. */
	double lowest;
	/* Mean loss of the iterations since the number of steps was last chosen. For the first choice, it is the loss
	 * of the first iteration. */
	double last;
};

/* Returns the number of steps of the next window, 1 to local->steps. before: number of steps of the previous window;
 * drops: the learning rate is reduced by its policy in the next window. A loss that is NaN counts as a loss that does
 * not fall. Source: Wang and Joshi 2019 (arXiv 1810.08313), equation 18 and the text below it. */
uint32_t psd_quality_steps(const struct psd_local_sgd *local, const struct psd_losses_seen *losses, uint32_t before,
			   bool drops);

#endif
