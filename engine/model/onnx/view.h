/* How a tensor of the file lies in a layer's output. Each axis is a list of digits, the most significant first; a place
 * along it is a number of these digits, and each step of a digit is so many values further in the output, which lies
 * channel by channel, row by row. So reshaping regroups digits, transposing reorders axes, and slicing begins elsewhere
 * and ends sooner: none of them is a layer. Sides of 1 have no digit. Pure. */
#ifndef PSD_ONNX_VIEW_H
#define PSD_ONNX_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/model/settings.h"

#define PSD_ONNX_AXES_MAX   8u
#define PSD_ONNX_DIGITS_MAX 16u
/* The stride of the batch, which is no part of a layer's output. */
#define PSD_ONNX_BATCH UINT64_MAX

struct psd_onnx_digit {
	uint32_t size;
	uint64_t stride; /* in values; 0: all steps see the same ones */
};

struct psd_onnx_view {
	unsigned layer;
	uint64_t offset; /* in values */
	unsigned n_axes;
	unsigned ends[PSD_ONNX_AXES_MAX]; /* axis a has the digits from ends[a - 1], or 0, to before ends[a] */
	struct psd_onnx_digit digits[PSD_ONNX_DIGITS_MAX];
};

/* Digits of an axis: the first, and how many. */
unsigned psd_onnx_view_first(const struct psd_onnx_view *view, unsigned axis);
unsigned psd_onnx_view_count(const struct psd_onnx_view *view, unsigned axis);
unsigned psd_onnx_view_digits(const struct psd_onnx_view *view); /* of all axes */
uint64_t psd_onnx_view_side(const struct psd_onnx_view *view, unsigned axis);
bool psd_onnx_view_has_batch(const struct psd_onnx_view *view, unsigned axis);

/* Appends an axis of one digit, or none for a side of 1; of no digit: the next calls of add_digit fill it. False: too
 * many. */
bool psd_onnx_view_add_axis(struct psd_onnx_view *view);
bool psd_onnx_view_add_digit(struct psd_onnx_view *view, uint64_t size, uint64_t stride);
/* Appends the axis of another view. */
bool psd_onnx_view_add_axis_of(struct psd_onnx_view *view, const struct psd_onnx_view *other, unsigned axis);

/* All of these leave *view alone when they return false: it cannot be said by digits. */
bool psd_onnx_view_reshape(struct psd_onnx_view *view, const uint64_t sides[], unsigned n_sides);
bool psd_onnx_view_transpose(struct psd_onnx_view *view, const unsigned order[]);
/* Places from first on, n of them, one of each `step`; n = 1 keeps the axis. */
bool psd_onnx_view_narrow(struct psd_onnx_view *view, unsigned axis, uint64_t first, uint64_t n, uint64_t step);
/* To these sides, as numpy broadcasts. */
bool psd_onnx_view_expand(struct psd_onnx_view *view, const uint64_t sides[], unsigned n_sides);

/* Neighbouring digits of an axis that one digit can stand for become it. */
void psd_onnx_view_merge(struct psd_onnx_view *view);
/* Cuts digits of both, which have the same sides, until these agree digit by digit. False: there is no such cut. */
bool psd_onnx_view_align(struct psd_onnx_view *one, struct psd_onnx_view *other);
/* Each value of a layer of so many is seen once: nothing is left out or seen again. */
bool psd_onnx_view_is_whole(const struct psd_onnx_view *view, uint64_t values);

#endif
