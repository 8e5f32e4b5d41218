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
	float last_ratio; /* scale of the last sum */
	bool is_dynamic;
	bool is_skipped; /* the last sum's update is skipped */
	uint32_t n_good; /* sums since the scale changed */
	uint32_t n_taken;
	uint32_t n_left_out; /* skipped updates among them */
};

/* loss_scale: constant scale; 0: dynamic. The scale is 1 for an encoding that needs none. */
struct psd_scale psd_scale_make(const struct psd_encoding *encoding, double loss_scale);
/* Takes a sum into account. A dynamic scale halves after an overflow, and doubles after PSD_SCALE_PATIENCE finite sums.
 * Source: Micikevicius et al., Mixed Precision Training, 2018. */
void psd_scale_take(struct psd_scale *scale, bool is_finite);

#endif
