/* The middle of an image, scaled. Private to the packer. */
#ifndef PSD_REAL_SQUARE_H
#define PSD_REAL_SQUARE_H

#include <stdint.h>

#include "engine/base/error.h"

/* Scales the middle square of an image (rows of red, green and blue bytes) to out: (side, side, 3) bytes. Each output
 * pixel is the mean of the input around its place, weighted by a triangle of two output (if larger, input) pixels. */
enum psd_status psd_square_scale(uint8_t *out, uint32_t side, const uint8_t *pixels, uint32_t height, uint32_t width,
				 struct psd_error *err) PSD_MUST_CHECK;

#endif
