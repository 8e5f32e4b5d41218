/* Pooling, means, and maps of another size. */
#include <math.h>
#include <string.h>

#include "engine/model/layer.h"
#include "engine/model/onnx/parts.h"

/* ---- pooling ---- */

enum psd_status psd_onnx_pool(struct psd_onnx *onnx)
{
	struct psd_onnx_value *data = psd_onnx_input(onnx, 0), result;
	const bool is_average = !strcmp(onnx->node->op_type, "AveragePool");
	union psd_layer_settings settings = psd_layer_pool.defaults;
	struct psd_pool_settings *pooling = &settings.pool;
	unsigned layer;

	PSD_TRY(psd_onnx_window(onnx, data, (struct psd_sides){1, 1}, &pooling->window, &result));
	if (pooling->window.dilation.height != 1 || pooling->window.dilation.width != 1)
		return psd_onnx_refuse(onnx, "has 'dilations', must have none");
	if (is_average && (pooling->window.pad.height || pooling->window.pad.width) &&
	    !psd_onnx_integer(onnx, "count_include_pad", 0))
		return psd_onnx_refuse(onnx, "has a mean without its pads, must have 'count_include_pad' 1");
	pooling->method = is_average ? PSD_POOL_AVERAGE : PSD_POOL_MAX;
	pooling->rounding = psd_onnx_integer(onnx, "ceil_mode", 0) ? PSD_POOL_UP : PSD_POOL_DOWN;
	PSD_TRY(psd_onnx_add_simple(onnx, &psd_layer_pool, &settings, data->view.layer, &layer));
	psd_onnx_put_map(onnx, layer, &result);
	return PSD_OK;
}

/* Pools all positions of the axes marked in is_over; the other axes become channels. */
static enum psd_status pool_all(struct psd_onnx *onnx, const bool is_over[], bool keeps_axes, bool is_max)
{
	struct psd_onnx_value *data = psd_onnx_input(onnx, 0), result;
	const unsigned n = data->view.n_axes;
	struct psd_onnx_order order = {.n = {0}};
	union psd_layer_settings whole = {.pool = {.window = {.stride = {1, 1}, .dilation = {1, 1}}}};
	uint64_t channels = 1, stride;
	unsigned layer;

	PSD_TRY(psd_onnx_materialize(onnx, data));
	for (unsigned a = 0; a < n; a++) {
		if (is_over[a] && psd_onnx_view_has_batch(&data->view, a))
			return psd_onnx_refuse(onnx, "is over the axis of the batch, must be within a sample");
		order.axes[is_over[a]][order.n[is_over[a]]++] = a;
		channels *= is_over[a] ? 1 : psd_onnx_view_values(&data->view, a);
	}
	PSD_TRY(psd_onnx_lay_out(onnx, &data->view, &order, true));
	if (psd_onnx_shape(onnx, data->view.layer).channels != channels)
		PSD_TRY(psd_onnx_lay_out(onnx, &data->view, &order, false));
	PSD_TRY(is_max ? psd_onnx_add_simple(onnx, &psd_layer_pool, &whole, data->view.layer, &layer)
		       : psd_onnx_add_simple(onnx, &psd_layer_global_pool, NULL, data->view.layer, &layer));
	result = *data;
	result.view = (struct psd_onnx_view){.layer = layer};
	stride = channels;
	for (unsigned a = 0; a < n; a++)
		if (!is_over[a])
			psd_onnx_view_add_dense_axis(&result.view, &data->view, a, &stride);
		else if (keeps_axes)
			psd_onnx_view_add_axis(&result.view);
	*psd_onnx_output(onnx, 0) = result;
	return PSD_OK;
}

enum psd_status psd_onnx_global_pool(struct psd_onnx *onnx)
{
	bool is_over[PSD_ONNX_AXES_MAX] = {false};

	for (unsigned a = 2; a < PSD_ONNX_AXES_MAX; a++)
		is_over[a] = true;
	return pool_all(onnx, is_over, true, !strcmp(onnx->node->op_type, "GlobalMaxPool"));
}

enum psd_status psd_onnx_mean(struct psd_onnx *onnx)
{
	struct psd_onnx_value *data = psd_onnx_input(onnx, 0);
	bool is_over[PSD_ONNX_AXES_MAX], is_done = false;
	unsigned n;

	PSD_TRY(psd_onnx_match_norm(onnx, &is_done));
	if (is_done)
		return PSD_OK;
	PSD_TRY(psd_onnx_mark_axes(onnx, data->view.n_axes, false, is_over, &n));
	if (n == 0)
		return psd_onnx_refuse(onnx, "must have 'axes'");
	return pool_all(onnx, is_over, psd_onnx_integer(onnx, "keepdims", 1) != 0, false);
}

/* ---- resizing ---- */

/* Bilinear interpolation that keeps the corners, as in psd's layer. */
enum psd_status psd_onnx_resize(struct psd_onnx *onnx)
{
	struct psd_onnx_value *data = psd_onnx_input(onnx, 0), *scales = psd_onnx_input(onnx, 2);
	struct psd_onnx_value *sizes = psd_onnx_input(onnx, 3), result;
	struct psd_window window = {.pad = {0}};
	union psd_layer_settings settings = psd_layer_resize.defaults;
	double to[4];
	unsigned layer;
	const bool has_sizes = sizes->kind == PSD_ONNX_CONSTANT;

	if (!psd_onnx_text_is(onnx, "mode", "linear") ||
	    !psd_onnx_text_is(onnx, "coordinate_transformation_mode", "align_corners") || data->view.n_axes != 4)
		return psd_onnx_refuse(onnx, "must be of maps, with 'mode' linear and 'align_corners'");
	if ((has_sizes ? sizes : scales)->kind != PSD_ONNX_CONSTANT)
		return psd_onnx_refuse(onnx, "must have constant sizes or scales");
	PSD_TRY(psd_onnx_read_numbers(onnx, has_sizes ? sizes : scales));
	if (psd_onnx_elements(has_sizes ? sizes : scales) != 4)
		return psd_onnx_refuse(onnx, "must have four sizes or scales");
	for (unsigned a = 0; a < 4; a++) {
		const double dim = (double)psd_onnx_view_dim(&data->view, a);

		to[a] = has_sizes ? sizes->numbers[a] : floor(dim * scales->numbers[a]);
		if (a < 2 && to[a] != dim)
			return psd_onnx_refuse(onnx, "resizes axis %u from %g to %g, must keep axes 0 and 1", a, dim,
					       to[a]);
		if (a >= 2 && !(to[a] >= 1 && to[a] <= PSD_LAYER_SIDE_MAX))
			return psd_onnx_refuse(onnx, "resizes axis %u from %g to %g, must be 1 to %u", a, dim, to[a],
					       PSD_LAYER_SIDE_MAX);
	}
	PSD_TRY(psd_onnx_window(onnx, data, (struct psd_sides){1, 1}, &window, &result));
	settings.size = (struct psd_sides){(uint32_t)to[2], (uint32_t)to[3]};
	PSD_TRY(psd_onnx_add_simple(onnx, &psd_layer_resize, &settings, data->view.layer, &layer));
	psd_onnx_put_map(onnx, layer, &result);
	return PSD_OK;
}
