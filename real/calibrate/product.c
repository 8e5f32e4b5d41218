#include "real/calibrate/product.h"

#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>

#include "real/calibrate/layer_times.h"

enum { SIDE = 384 };

enum psd_status psd_product_open(struct psd_product *product, struct psd_error *err)
{
	*product = (struct psd_product){psd_layer_times_values(SIDE * SIDE, 1.0f),
					psd_layer_times_values(SIDE * SIDE, 1.0f),
					psd_layer_times_values(SIDE * SIDE, 1.0f)};
	if (product->left && product->right && product->result)
		return PSD_OK;
	return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a product of matrices");
}

enum psd_status psd_product_run(const struct psd_product *product, struct psd_error *err)
{
	if (dnnl_sgemm('N', 'N', SIDE, SIDE, SIDE, 1.0f, product->left, SIDE, product->right, SIDE, 0.0f,
		       product->result, SIDE))
		return psd_error_set(err, PSD_ERUN, PSD_NOWHERE, "a product of matrices failed");
	return PSD_OK;
}

void psd_product_release(struct psd_product *product)
{
	free(product->left);
	free(product->right);
	free(product->result);
}
