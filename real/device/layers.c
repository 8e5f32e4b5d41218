#include "real/device/layers.h"

#include <math.h>

const void *psd_kind_find(const struct psd_kind_row rows[], size_t n_rows, const struct psd_layer_kind *kind)
{
	for (size_t i = 0; i < n_rows; i++)
		if (rows[i].of == kind)
			return rows[i].kind;
	return NULL;
}

double psd_batch_share(const struct psd_affine_settings *affine, uint64_t iteration)
{
	const double share = 1 - affine->kept_ratio;

	return affine->is_average ? share / (1 - pow(affine->kept_ratio, (double)iteration + 1)) : share;
}
