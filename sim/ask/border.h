/* Search for the border of a claim about whole numbers that holds for small numbers and fails for large ones. */
#ifndef PSD_SIM_BORDER_H
#define PSD_SIM_BORDER_H

#include <stdbool.h>
#include <stdint.h>

struct psd_border {
	bool (*holds)(void *context, uint64_t number);
	void *context;
	uint64_t least, most; /* range of the search; least >= 1 */
};

/* Returns the border: a number in the range for which the claim holds, while it fails for the next number. least - 1:
 * it fails for `least`; `most`: it holds up to `most`. The search doubles its steps from `guess`, then bisects. If
 * there are several borders, it finds one near the guess. */
uint64_t psd_border_find(const struct psd_border *border, uint64_t guess);

#endif
