/* A strided view: values of a layer's output or of a constant, selected and ordered by axes. The values of an output
 * are in memory channel by channel, and in a channel row by row. Each axis has a list of digits, like the digits of a
 * decimal number, but each digit has a base (size) of its own. A position along the axis is such a number; its first
 * digit is the most significant one. If a digit grows by 1, the value is `stride` values further in memory. A reshape
 * regroups digits, a transpose reorders axes, and a slice changes sizes and the offset. So none of them needs a layer.
 * An axis of size 1 has no digits. Pure functions. */
#ifndef PSD_ONNX_VIEW_H
#define PSD_ONNX_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/model/settings.h"

#define PSD_ONNX_AXES_MAX   8u
#define PSD_ONNX_DIGITS_MAX 16u
/* Stride of the digit for the batch, which is not a part of a layer's output. */
#define PSD_ONNX_BATCH UINT64_MAX

struct psd_onnx_digit {
	uint32_t size;
	/* distance in memory, in values, between positions whose digit differs by 1; 0: all positions have the same
	 * value */
	uint64_t stride;
};

struct psd_onnx_view {
	unsigned layer;
	uint64_t offset; /* distance in memory from the layer's first value to the view's first, in values */
	unsigned n_axes;
	/* end of each axis' digits in `digits`: axis a has entries ends[a - 1] (0 for axis 0) to ends[a] - 1 */
	unsigned ends[PSD_ONNX_AXES_MAX];
	struct psd_onnx_digit digits[PSD_ONNX_DIGITS_MAX];
};

/* index in view->digits of the axis' first digit */
unsigned psd_onnx_view_first(const struct psd_onnx_view *view, unsigned axis);
unsigned psd_onnx_view_count(const struct psd_onnx_view *view, unsigned axis); /* number of the axis' digits */
unsigned psd_onnx_view_digits(const struct psd_onnx_view *view);	       /* number of digits of all axes */
/* size of the axis: the product of the sizes of its digits */
uint64_t psd_onnx_view_dim(const struct psd_onnx_view *view, unsigned axis);
/* size of the axis, without a digit for the batch */
uint64_t psd_onnx_view_values(const struct psd_onnx_view *view, unsigned axis);
bool psd_onnx_view_has_batch(const struct psd_onnx_view *view, unsigned axis);

/* Appends an axis of size 1; psd_onnx_view_add_digit() then appends digits to it. False: the view has too many axes or
 * digits. */
bool psd_onnx_view_add_axis(struct psd_onnx_view *view);
bool psd_onnx_view_add_digit(struct psd_onnx_view *view, uint64_t size, uint64_t stride);
/* Appends a copy of an axis of another view, with its digits. False: the view has too many axes or digits. */
bool psd_onnx_view_add_axis_of(struct psd_onnx_view *view, const struct psd_onnx_view *other, unsigned axis);
/* Appends an axis with the size of an axis of another view, for values that are in memory without gaps. Axes are
 * appended from the first to the last. *stride: before the first call, the number of values of the whole view; each
 * call changes it for the next. */
void psd_onnx_view_add_dense_axis(struct psd_onnx_view *view, const struct psd_onnx_view *other, unsigned axis,
				  uint64_t *stride);

/* Reshapes the view to n_dims dimensions dims[]. Here and below, false means that digits cannot express the result;
 * *view is then unchanged. */
bool psd_onnx_view_reshape(struct psd_onnx_view *view, const uint64_t dims[], unsigned n_dims);
bool psd_onnx_view_transpose(struct psd_onnx_view *view, const unsigned order[]);
/* Selects n positions along an axis: first, first + step, and so on. The axis remains, even if n is 1. */
bool psd_onnx_view_narrow(struct psd_onnx_view *view, unsigned axis, uint64_t first, uint64_t n, uint64_t step);
/* Broadcasts the view to n_dims dimensions dims[], as numpy does. */
bool psd_onnx_view_expand(struct psd_onnx_view *view, const uint64_t dims[], unsigned n_dims);

/* Merges adjacent digits of an axis if one digit can express both. */
void psd_onnx_view_merge(struct psd_onnx_view *view);
/* Returns the view without the digits (struct psd_onnx_digit) that have this stride, such as PSD_ONNX_BATCH. Axes that
 * lose all their digits get size 1. */
struct psd_onnx_view psd_onnx_view_without(const struct psd_onnx_view *view, uint64_t stride);
/* Splits digits of two views with equal dimensions until all digits of both have the same sizes. False: that is not
 * possible. */
bool psd_onnx_view_align(struct psd_onnx_view *one, struct psd_onnx_view *other);
/* True if both views have the same values at the same positions, except that they may be of different layers.
 * psd_onnx_view_is_same_list(): compares the values in order, so the axes may differ. */
bool psd_onnx_view_is_same(const struct psd_onnx_view *one, const struct psd_onnx_view *other);
bool psd_onnx_view_is_same_list(const struct psd_onnx_view *one, const struct psd_onnx_view *other);
/* True if the view has each of the layer's `values` values exactly once. */
bool psd_onnx_view_is_whole(const struct psd_onnx_view *view, uint64_t values);

#endif
