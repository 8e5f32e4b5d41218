/* Layers that bring the values of a view into the order that another layer needs. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "engine/model/layer.h"
#include "engine/model/onnx/parts.h"

static enum psd_status reshape(struct psd_onnx *onnx, struct psd_shape shape, unsigned *layer)
{
	const struct psd_shape now = psd_onnx_shape(onnx, *layer);

	if (now.channels == shape.channels && now.height == shape.height && now.width == shape.width)
		return PSD_OK;
	if (shape.channels > PSD_LAYER_CHANNELS_MAX || shape.height > PSD_LAYER_SIDE_MAX ||
	    shape.width > PSD_LAYER_SIDE_MAX)
		return psd_onnx_refuse(onnx, "needs a layer of %ux%ux%u, must be at most %ux%ux%u", shape.channels,
				       shape.height, shape.width, PSD_LAYER_CHANNELS_MAX, PSD_LAYER_SIDE_MAX,
				       PSD_LAYER_SIDE_MAX);
	return psd_onnx_move(onnx, &psd_layer_reshape, (union psd_layer_settings){.shape = shape}, layer);
}

/* ---- all values of a layer ---- */

unsigned psd_onnx_memory_order(const struct psd_onnx_view *view, unsigned order[PSD_ONNX_DIGITS_MAX])
{
	unsigned n = 0;

	for (unsigned d = 0; d < psd_onnx_view_digits(view); d++) {
		unsigned at = n;

		if (view->digits[d].stride == PSD_ONNX_BATCH)
			continue;
		for (; at > 0 && view->digits[order[at - 1]].stride < view->digits[d].stride; at--)
			order[at] = order[at - 1];
		order[at] = d;
		n++;
	}
	return n;
}

/* Selects n of `extent` positions, from `first` on; each position has `inner` values. */
static enum psd_status slice(struct psd_onnx *onnx, uint64_t first, uint64_t n, uint64_t extent, uint64_t inner,
			     unsigned *layer)
{
	const struct psd_shape shape = psd_onnx_shape(onnx, *layer);
	const uint64_t values = psd_onnx_values_of(onnx, *layer), outer = values / (extent * inner);
	const uint64_t positions = (uint64_t)shape.height * shape.width;
	uint64_t channels = n;

	if (outer == 1 && inner % positions == 0) {
		first *= inner / positions;
		channels *= inner / positions;
	} else {
		PSD_TRY(reshape(onnx,
				outer == 1 ? (struct psd_shape){(uint32_t)extent, (uint32_t)inner, 1}
					   : (struct psd_shape){(uint32_t)outer, (uint32_t)extent, (uint32_t)inner},
				layer));
		if (outer > 1)
			PSD_TRY(psd_onnx_move(onnx, &psd_layer_permute,
					      (union psd_layer_settings){.permute.order = {2, 1, 3}}, layer));
	}
	return psd_onnx_move(
		onnx, &psd_layer_slice,
		(union psd_layer_settings){.slice = {.first = (uint32_t)first, .channels = (uint32_t)channels}}, layer);
}

/* A gap: the view has only n of `extent` positions of `inner` values each, from `first` on. */
struct gap {
	uint64_t first, n, extent, inner;
	unsigned to; /* number of digits, in memory order, with longer strides */
};

/* Finds a gap. False: the view has all values. */
static bool find_gap(const struct psd_onnx_view *view, const unsigned order[], unsigned n, uint64_t values,
		     struct gap *gap)
{
	uint64_t reached = 1; /* values that shorter digits cover */

	for (unsigned i = n; i-- > 0;) {
		const struct psd_onnx_digit digit = view->digits[order[i]];

		*gap = (struct gap){.n = 1};
		if (digit.stride % reached)
			return true; /* digits overlap */
		if (digit.stride != reached) {
			/* one of several positions, without a digit */
			*gap = (struct gap){.first = view->offset / reached % (digit.stride / reached),
					    .n = 1,
					    .extent = digit.stride / reached,
					    .inner = reached,
					    .to = i + 1};
			return true;
		}
		reached = digit.stride * digit.size;
		if (i > 0 && view->digits[order[i - 1]].stride > reached) {
			*gap = (struct gap){.first = view->offset / digit.stride %
						     (view->digits[order[i - 1]].stride / digit.stride),
					    .n = digit.size,
					    .extent = view->digits[order[i - 1]].stride / digit.stride,
					    .inner = digit.stride,
					    .to = i};
			return true;
		}
	}
	if (reached == values)
		return false;
	*gap = (struct gap){.first = view->offset / reached, .n = 1, .extent = values / reached, .inner = reached};
	if (n > 0 && (view->offset % reached || values % reached)) { /* the values are not a multiple of the gap */
		gap->inner = view->digits[order[0]].stride;
		gap->n = view->digits[order[0]].size;
		gap->extent = values / gap->inner;
		gap->first = view->offset / gap->inner;
	}
	return true;
}

enum psd_status psd_onnx_make_whole(struct psd_onnx *onnx, struct psd_onnx_view *view)
{
	unsigned order[PSD_ONNX_DIGITS_MAX], n;
	struct gap gap;

	for (unsigned i = 0; i < psd_onnx_view_digits(view); i++)
		if (view->digits[i].stride == 0)
			return psd_onnx_refuse(onnx, "repeats values, which no layer can do");
	for (;;) {
		uint64_t values = psd_onnx_values_of(onnx, view->layer), outer;

		n = psd_onnx_memory_order(view, order);
		if (!find_gap(view, order, n, values, &gap))
			return PSD_OK;
		if (gap.extent < gap.n || gap.first + gap.n > gap.extent || values % (gap.extent * gap.inner))
			return psd_onnx_refuse(onnx, "separates values in a way that psd cannot express");
		outer = values / (gap.extent * gap.inner);
		PSD_TRY(slice(onnx, gap.first, gap.n, gap.extent, gap.inner, &view->layer));
		/* longer strides shrink with the slice; shorter ones grow if the slice is now outside them */
		if (outer == 1 || gap.to == 0) {
			view->offset -= gap.first * gap.inner;
			continue;
		}
		view->offset = view->offset / (gap.extent * gap.inner) * gap.inner + view->offset % gap.inner;
		for (unsigned i = 0; i < n; i++) {
			struct psd_onnx_digit *digit = &view->digits[order[i]];

			if (i < gap.to && digit->stride % (gap.extent * gap.inner))
				return psd_onnx_refuse(onnx, "separates values in a way that psd cannot express");
			if (i < gap.to)
				digit->stride /= gap.extent;
			else if (digit->stride >= gap.inner)
				digit->stride *= outer;
		}
	}
}

/* ---- another order ---- */

static uint64_t size_of(const struct psd_onnx_view *view, const unsigned digits[], unsigned n)
{
	uint64_t size = 1;

	for (unsigned i = 0; i < n; i++)
		size *= view->digits[digits[i]].size;
	return size;
}

static enum psd_status permute(struct psd_onnx *onnx, const uint64_t dims[3], const unsigned order[3], unsigned *layer)
{
	union psd_layer_settings settings = {.permute.order = {order[0], order[1], order[2]}};

	PSD_TRY(reshape(onnx, (struct psd_shape){(uint32_t)dims[0], (uint32_t)dims[1], (uint32_t)dims[2]}, layer));
	return psd_onnx_move(onnx, &psd_layer_permute, settings, layer);
}

/* Permutes the digits of a whole layer from memory order to another one. Each step exchanges a run of digits that
 * belongs to position i with those between; at the front, a run has only digits that are wanted in this order. */
static enum psd_status reorder(struct psd_onnx *onnx, struct psd_onnx_view *view, unsigned memory[],
			       const unsigned wanted[], unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		unsigned from = i, run = 1, moved[PSD_ONNX_DIGITS_MAX];
		uint64_t before, between, after;

		if (memory[i] == wanted[i])
			continue;
		while (memory[from] != wanted[i])
			from++;
		while (from + run < n && (i > 0 || memory[from + run] == wanted[run]))
			run++;
		before = size_of(view, memory, i);
		between = size_of(view, memory + i, from - i);
		after = size_of(view, memory + from, run);
		PSD_TRY(i ? permute(onnx, (const uint64_t[]){before, between, after}, (const unsigned[]){1, 3, 2},
				    &view->layer)
			  : permute(onnx,
				    (const uint64_t[]){between, after,
						       size_of(view, memory + from + run, n - from - run)},
				    (const unsigned[]){2, 1, 3}, &view->layer));
		memcpy(moved, memory + i, (from - i) * sizeof(*moved));
		memmove(memory + i, memory + from, run * sizeof(*memory));
		memcpy(memory + i + run, moved, (from - i) * sizeof(*moved));
	}
	return PSD_OK;
}

/* A view and its result, so that equal views share layers. */
struct psd_onnx_layout {
	const struct psd_onnx_layout *next;
	struct psd_onnx_view before, after;
};

static bool is_same_view(const struct psd_onnx_view *one, const struct psd_onnx_view *other)
{
	bool is = one->layer == other->layer && one->offset == other->offset && one->n_axes == other->n_axes &&
		  !memcmp(one->ends, other->ends, one->n_axes * sizeof(*one->ends));

	for (unsigned d = 0; is && d < psd_onnx_view_digits(one); d++)
		is = one->digits[d].size == other->digits[d].size && one->digits[d].stride == other->digits[d].stride;
	return is;
}

static bool put_layout(struct psd_onnx *onnx, const struct psd_onnx_view *before, const struct psd_onnx_view *after)
{
	struct psd_onnx_layout *layout = psd_arena_take(&onnx->arena, sizeof(*layout));
	const struct psd_onnx_layout **list = &onnx->layouts[before->layer % PSD_ONNX_LAYOUTS];

	if (!layout)
		return false;
	*layout = (struct psd_onnx_layout){.next = *list, .before = *before, .after = *after};
	*list = layout;
	return true;
}

/* Lists digits in the order of axes, without the batch, and the size of each group of axes. Returns their number. */
static unsigned wanted_order(const struct psd_onnx_view *view, const struct psd_onnx_order *order,
			     unsigned wanted[PSD_ONNX_DIGITS_MAX], uint64_t dims[3])
{
	unsigned n = 0;

	for (unsigned g = 0; g < 3; g++) {
		const unsigned before = n;

		for (unsigned i = 0; i < order->n[g]; i++) {
			const unsigned axis = order->axes[g][i];

			for (unsigned d = psd_onnx_view_first(view, axis); d < view->ends[axis]; d++)
				if (view->digits[d].stride != PSD_ONNX_BATCH)
					wanted[n++] = d;
		}
		dims[g] = size_of(view, wanted + before, n - before);
	}
	return n;
}

/* Permutes the digits of a whole layer. original: the view before it became whole, the key of known layouts. */
static enum psd_status lay_out_digits(struct psd_onnx *onnx, const struct psd_onnx_view *original,
				      struct psd_onnx_view *view, const unsigned wanted[], unsigned n)
{
	unsigned memory[PSD_ONNX_DIGITS_MAX];
	uint64_t stride = 1;

	(void)psd_onnx_memory_order(view, memory);
	if (!memcmp(memory, wanted, n * sizeof(*wanted)))
		return PSD_OK;
	for (const struct psd_onnx_layout *layout = onnx->layouts[original->layer % PSD_ONNX_LAYOUTS]; layout;
	     layout = layout->next)
		if (is_same_view(&layout->before, original)) {
			(void)psd_onnx_memory_order(&layout->after, memory);
			if (!memcmp(memory, wanted, n * sizeof(*wanted))) {
				*view = layout->after;
				return PSD_OK;
			}
		}
	(void)psd_onnx_memory_order(view, memory);
	enum psd_status status = reorder(onnx, view, memory, wanted, n);
	for (unsigned i = n; i-- > 0; stride *= view->digits[wanted[i]].size)
		view->digits[wanted[i]].stride = stride;
	if (!status && !put_layout(onnx, original, view))
		status = psd_onnx_no_memory(onnx);
	return status;
}

enum psd_status psd_onnx_lay_out(struct psd_onnx *onnx, struct psd_onnx_view *view, const struct psd_onnx_order *order,
				 bool is_flat)
{
	const struct psd_onnx_view original = *view;
	unsigned wanted[PSD_ONNX_DIGITS_MAX], memory[PSD_ONNX_DIGITS_MAX], n;
	uint64_t dims[3];

	PSD_TRY(psd_onnx_make_whole(onnx, view));
	n = wanted_order(view, order, wanted, dims);
	if (psd_onnx_memory_order(view, memory) != n)
		return psd_onnx_refuse(onnx, "has axes that its input does not have");
	PSD_TRY(lay_out_digits(onnx, &original, view, wanted, n));
	if (is_flat)
		return PSD_OK;
	if (dims[0] > UINT32_MAX || dims[1] > UINT32_MAX || dims[2] > UINT32_MAX)
		return psd_onnx_refuse(onnx, "has an axis of more than %u", UINT32_MAX);
	return reshape(onnx, (struct psd_shape){(uint32_t)dims[0], (uint32_t)dims[1], (uint32_t)dims[2]}, &view->layer);
}

enum psd_status psd_onnx_match(struct psd_onnx *onnx, struct psd_onnx_view *one, struct psd_onnx_view *other,
			       bool *do_match)
{
	unsigned order[PSD_ONNX_DIGITS_MAX], n;

	*do_match = one->n_axes == other->n_axes;
	for (unsigned a = 0; a < one->n_axes && *do_match; a++)
		*do_match = psd_onnx_view_dim(one, a) == psd_onnx_view_dim(other, a);
	if (!*do_match)
		return PSD_OK;
	PSD_TRY(psd_onnx_make_whole(onnx, one));
	PSD_TRY(psd_onnx_make_whole(onnx, other));
	if (!psd_onnx_view_align(one, other))
		return psd_onnx_refuse(
			onnx, "has inputs of one shape, but with their values in orders that no layer can make equal");
	n = psd_onnx_memory_order(one, order);
	struct psd_onnx_view original = *other;
	PSD_TRY(lay_out_digits(onnx, &original, other, order, n));
	return reshape(onnx, psd_onnx_shape(onnx, one->layer), &other->layer);
}

/* Other axes become rows up to the first with several positions, and columns after it, as in a map. */
static void order_around(const struct psd_onnx_view *view, unsigned axis, struct psd_onnx_order *order)
{
	unsigned group = 1;

	*order = (struct psd_onnx_order){.n = {1}, .axes = {{axis}}};
	for (unsigned a = 0; a < view->n_axes; a++) {
		if (a == axis || psd_onnx_view_dim(view, a) == 1)
			continue;
		order->axes[group][order->n[group]++] = a;
		if (psd_onnx_view_values(view, a) > 1)
			group = 2;
	}
}

/* Positions in their own order need no reshape if the channels fit. */
static bool keeps_shape(const struct psd_onnx *onnx, const struct psd_onnx_view *view, unsigned axis)
{
	const struct psd_shape shape = psd_onnx_shape(onnx, view->layer);

	return psd_onnx_view_dim(view, axis) == shape.channels;
}

enum psd_status psd_onnx_channels_first(struct psd_onnx *onnx, struct psd_onnx_value *data, unsigned axis)
{
	struct psd_onnx_order order;

	PSD_TRY(psd_onnx_check_inner(onnx, &data->view, axis));
	PSD_TRY(psd_onnx_materialize(onnx, data));
	struct psd_onnx_view view = data->view;
	order_around(&view, axis, &order);
	PSD_TRY(psd_onnx_lay_out(onnx, &view, &order, true));
	if (!keeps_shape(onnx, &view, axis))
		PSD_TRY(psd_onnx_lay_out(onnx, &view, &order, false));
	data->view = view;
	return PSD_OK;
}

void psd_onnx_follow_channels(const struct psd_onnx *onnx, const struct psd_onnx_view *of, unsigned axis,
			      unsigned layer, struct psd_onnx_value *result)
{
	const struct psd_shape shape = psd_onnx_shape(onnx, layer);

	result->kind = PSD_ONNX_DATA;
	result->view = (struct psd_onnx_view){.layer = layer};
	for (unsigned a = 0; a < of->n_axes; a++)
		if (a == axis) {
			psd_onnx_view_add_axis(&result->view);
			psd_onnx_view_add_digit(&result->view, shape.channels, (uint64_t)shape.height * shape.width);
		} else {
			psd_onnx_view_add_axis_of(&result->view, of, a);
		}
}
