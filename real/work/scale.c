#include "real/work/scale.h"

struct psd_scale psd_scale_make(const struct psd_encoding *encoding, double loss_scale)
{
	if (!encoding->is_scaled)
		return (struct psd_scale){.ratio = 1.0f, .last_ratio = 1.0f};
	return (struct psd_scale){.ratio = loss_scale > 0.0 ? (float)loss_scale : PSD_SCALE_START,
				  .is_dynamic = loss_scale == 0.0};
}

void psd_scale_take(struct psd_scale *scale, bool is_finite)
{
	scale->last_ratio = scale->ratio;
	scale->is_skipped = !is_finite;
	scale->n_taken++;
	scale->n_left_out += !is_finite;
	scale->n_good++;
	if (!scale->is_dynamic || (is_finite && scale->n_good < PSD_SCALE_PATIENCE))
		return;
	scale->ratio *= is_finite ? 2.0f : 0.5f;
	scale->n_good = 0;
}
