/* A strided view of a layer's output, or of a constant. Values of an output lie channel by channel, then row by row.
 * An axis of the view is a list of digits, the most significant first, as in a mixed-radix number: a position along the
 * axis is a number of these digits, and a step of a digit is `stride` values. So a reshape regroups digits, a transpose
 * reorders axes, and a slice changes sizes and the offset; none of them needs a layer. An axis of size 1 has no digit.
 * Pure. */
#ifndef PSD_ONNX_VIEW_H
#define PSD_ONNX_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/model/settings.h"

#define PSD_ONNX_AXES_MAX   8u
#define PSD_ONNX_DIGITS_MAX 16u
/* Stride that marks the axis of the batch, which is not part of a layer's output. */
#define PSD_ONNX_BATCH UINT64_MAX

struct psd_onnx_digit {
	uint32_t size;
	uint64_t stride; /* distance of two steps, in values; 0: all steps have the same value */
};

struct psd_onnx_view {
	unsigned layer;
	uint64_t offset; /* distance of the first value from the beginning, in values */
	unsigned n_axes;
	unsigned ends[PSD_ONNX_AXES_MAX]; /* axis a has the digits from ends[a - 1] (axis 0: from 0) to ends[a] - 1 */
	struct psd_onnx_digit digits[PSD_ONNX_DIGITS_MAX];
};

unsigned psd_onnx_view_first(const struct psd_onnx_view *view, unsigned axis);	/* number of the axis' first digit */
unsigned psd_onnx_view_count(const struct psd_onnx_view *view, unsigned axis);	/* count of the axis' digits */
unsigned psd_onnx_view_digits(const struct psd_onnx_view *view);		/* count of all digits */
uint64_t psd_onnx_view_dim(const struct psd_onnx_view *view, unsigned axis);	/* size of the axis */
uint64_t psd_onnx_view_values(const struct psd_onnx_view *view, unsigned axis); /* size of the axis without the batch */
bool psd_onnx_view_has_batch(const struct psd_onnx_view *view, unsigned axis);

/* Appends an axis of size 1, to which psd_onnx_view_add_digit() adds digits. False: there are too many. */
bool psd_onnx_view_add_axis(struct psd_onnx_view *view);
bool psd_onnx_view_add_digit(struct psd_onnx_view *view, uint64_t size, uint64_t stride);
/* Appends a copy of an axis of another view. False: there are too many. */
bool psd_onnx_view_add_axis_of(struct psd_onnx_view *view, const struct psd_onnx_view *other, unsigned axis);
/* Appends a copy of an axis of another view, for values that lie densely. *stride: distance of two steps of the digit
 * before; set to that of the axis' last digit. */
void psd_onnx_view_add_dense_axis(struct psd_onnx_view *view, const struct psd_onnx_view *other, unsigned axis,
				  uint64_t *stride);

/* Changes the view to these dims. Here and below, false: digits cannot express the result, *view is unchanged. */
bool psd_onnx_view_reshape(struct psd_onnx_view *view, const uint64_t dims[], unsigned n_dims);
bool psd_onnx_view_transpose(struct psd_onnx_view *view, const unsigned order[]);
/* Selects n positions of an axis: `first`, first + step, ... With n = 1 the axis stays. */
bool psd_onnx_view_narrow(struct psd_onnx_view *view, unsigned axis, uint64_t first, uint64_t n, uint64_t step);
/* Broadcasts the view to these dims, as numpy does. */
bool psd_onnx_view_expand(struct psd_onnx_view *view, const uint64_t dims[], unsigned n_dims);

/* Merges adjacent digits of an axis where one digit can replace them. */
void psd_onnx_view_merge(struct psd_onnx_view *view);
/* Returns the view without digits of that stride. */
struct psd_onnx_view psd_onnx_view_without(const struct psd_onnx_view *view, uint64_t stride);
/* Splits digits of two views with equal dims until the sizes of all digits agree. False: that is impossible. */
bool psd_onnx_view_align(struct psd_onnx_view *one, struct psd_onnx_view *other);
/* True if both views have the same values at the same positions, apart from the layer. The second function compares
 * them as lists, without regard to axes. */
bool psd_onnx_view_is_same(const struct psd_onnx_view *one, const struct psd_onnx_view *other);
bool psd_onnx_view_is_same_list(const struct psd_onnx_view *one, const struct psd_onnx_view *other);
/* True if the view has each of a layer's `values` values exactly once. */
bool psd_onnx_view_is_whole(const struct psd_onnx_view *view, uint64_t values);

#endif
