/* A product of two square matrices that a core's caches hold, half a millisecond to two: what a core computes while
 * something else is measured. */
#ifndef PSD_REAL_PRODUCT_H
#define PSD_REAL_PRODUCT_H

#include "engine/base/error.h"

/* Fields are private to product.c. */
struct psd_product {
	float *left, *right, *result;
};

/* *product is released by psd_product_release(), also on failure. PSD_ENOMEM. */
enum psd_status psd_product_open(struct psd_product *product, struct psd_error *err) PSD_MUST_CHECK;
/* In as many threads as OpenMP has been told. PSD_ERUN. */
enum psd_status psd_product_run(const struct psd_product *product, struct psd_error *err) PSD_MUST_CHECK;
void psd_product_release(struct psd_product *product);

#endif
