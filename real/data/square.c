/* Scaling in two passes, along rows, then along columns. Refuses sharper filters: a network sees no difference. */
#include "real/data/square.h"

#include <math.h>
#include <stdlib.h>

/* The triangle around one output position: positions first..last of the input have a weight, none outside 0..n-1. */
struct triangle {
	uint32_t first, last;
	float centre, radius;
};

/* Position i of `side` outputs over `n` inputs; pixels are areas, so centres lie at halves. */
static struct triangle triangle_of(uint32_t i, uint32_t side, uint32_t n)
{
	const float ratio = (float)n / (float)side;
	const float radius = ratio > 1.0f ? ratio : 1.0f, centre = ((float)i + 0.5f) * ratio - 0.5f;
	const float first = ceilf(centre - radius), last = floorf(centre + radius);

	return (struct triangle){
		.first = first > 0.0f ? (uint32_t)first : 0,
		.last = last < (float)(n - 1) ? (uint32_t)last : n - 1,
		.centre = centre,
		.radius = radius,
	};
}

static float weight_of(const struct triangle *triangle, uint32_t position)
{
	const float weight = 1.0f - fabsf((float)position - triangle->centre) / triangle->radius;

	return weight > 0.0f ? weight : 0.0f;
}

/* One row of `n` pixels to `side`. */
static void scale_row(float *out, uint32_t side, const uint8_t *row, uint32_t n)
{
	for (uint32_t i = 0; i < side; i++, out += 3) {
		const struct triangle triangle = triangle_of(i, side, n);
		float sums[3] = {0}, weights = 0;

		for (uint32_t x = triangle.first; x <= triangle.last; x++) {
			const float weight = weight_of(&triangle, x);

			weights += weight;
			for (unsigned channel = 0; channel < 3; channel++)
				sums[channel] += weight * (float)row[(size_t)3 * x + channel];
		}
		for (unsigned channel = 0; channel < 3; channel++)
			out[channel] = sums[channel] / weights;
	}
}

/* Column `column` of n rows, each n_columns long, to side rows of bytes. */
static void scale_column(uint8_t *out, uint32_t side, const float *rows, size_t n_columns, size_t column, uint32_t n)
{
	for (uint32_t i = 0; i < side; i++) {
		const struct triangle triangle = triangle_of(i, side, n);
		float sum = 0, weights = 0;

		for (uint32_t y = triangle.first; y <= triangle.last; y++) {
			const float weight = weight_of(&triangle, y);

			weights += weight;
			sum += weight * rows[y * n_columns + column];
		}
		out[i * n_columns + column] = (uint8_t)(sum / weights + 0.5f);
	}
}

enum psd_status psd_square_scale(uint8_t *out, uint32_t side, const uint8_t *pixels, uint32_t height, uint32_t width,
				 struct psd_error *err)
{
	const uint32_t n = height < width ? height : width;
	const uint32_t top = (height - n) / 2, left = (width - n) / 2;
	const size_t n_columns = (size_t)3 * side;
	float *rows = malloc(n * n_columns * sizeof(*rows));

	if (!rows)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory");
	for (uint32_t y = 0; y < n; y++)
		scale_row(rows + y * n_columns, side, pixels + ((size_t)(top + y) * width + left) * 3, n);
	for (size_t column = 0; column < n_columns; column++)
		scale_column(out, side, rows, n_columns, column, n);
	free(rows);
	return PSD_OK;
}
