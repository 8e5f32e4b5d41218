/* The ratio by which an item's gradients are larger while they travel, where the encoding's range is narrower than
 * fp32's. What leaves the range is an infinity or a NaN in every worker's sum, so that all of them leave the same
 * updates out and go on with the same ratio, without a word about it. */
#ifndef PSD_REAL_SCALE_H
#define PSD_REAL_SCALE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/encodings/encoding.h"

enum { PSD_SCALE_PATIENCE = 2000 };
#define PSD_SCALE_START 0x1p15f

struct psd_scale {
	float ratio;
	float taken_ratio; /* that the last sum came with */
	bool is_dynamic;
	bool is_skipped; /* the update of the last sum */
	uint32_t n_good; /* sums since it changed */
	uint32_t n_taken;
	uint32_t n_left_out; /* of these sums, whose updates were */
};

/* loss_scale: the ratio, 0: dynamic. Of an encoding that needs none it is 1 for ever. */
struct psd_scale psd_scale_make(const struct psd_encoding *encoding, double loss_scale);
/* A sum has come. A dynamic ratio halves when that is not finite, and doubles after PSD_SCALE_PATIENCE that were.
 * Source: Micikevicius et al., Mixed Precision Training, 2018. */
void psd_scale_take(struct psd_scale *scale, bool is_finite);

#endif
