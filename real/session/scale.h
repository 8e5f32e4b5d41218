/* Loss scale of an item: factor on its gradients while they travel in an encoding with a smaller range than fp32. An
 * overflow makes every worker's sum infinite or NaN, so all skip the same updates and keep the same scale without
 * messages. */
#ifndef PSD_REAL_SCALE_H
#define PSD_REAL_SCALE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/encodings/encoding.h"

enum { PSD_SCALE_PATIENCE = 2000 };
#define PSD_SCALE_START 0x1p15f

struct psd_scale {
	float ratio;
	float last_ratio; /* loss scale of the last sum */
	bool is_dynamic;
	bool is_skipped; /* the last sum overflowed: its update is skipped */
	uint32_t n_good; /* number of sums without overflow since the scale changed */
	uint32_t n_taken;
	uint32_t n_left_out; /* number of skipped updates out of n_updates */
};

/* Makes a loss scale. loss_scale: constant value; 0: dynamic. The scale is always 1 for an encoding that needs none. */
struct psd_scale psd_scale_make(const struct psd_encoding *encoding, double loss_scale);
/* Adapts the scale after a sum. A dynamic scale halves after an overflow, and doubles after PSD_SCALE_PATIENCE finite
 * sums. Source: Micikevicius et al., Mixed Precision Training, 2018. */
void psd_scale_take(struct psd_scale *scale, bool is_finite);

#endif
