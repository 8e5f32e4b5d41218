#include "real/device/layers.h"

const void *psd_kind_find(const struct psd_kind_row rows[], size_t n_rows, const struct psd_layer_kind *kind)
{
	for (size_t i = 0; i < n_rows; i++)
		if (rows[i].of == kind)
			return rows[i].kind;
	return NULL;
}
