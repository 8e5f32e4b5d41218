/* The table of operators, and those of pooling, normalisation, joining, losses and attention. */
#include <math.h>
#include <string.h>

#include "engine/model/layer.h"
#include "engine/model/onnx/parts.h"

/* ---- pooling ---- */

static enum psd_status pool(struct psd_onnx *onnx)
{
	struct psd_onnx_value *data = psd_onnx_input(onnx, 0), result;
	const bool is_average = !strcmp(onnx->node->op_type, "AveragePool");
	union psd_layer_settings settings = psd_layer_pool.defaults;
	struct psd_pool_settings *pooling = &settings.pool;
	unsigned layer;
	enum psd_status status = psd_onnx_check_data(onnx, data);

	if (!status)
		status = psd_onnx_window(onnx, data, (struct psd_sides){1, 1}, &pooling->window, &result);
	if (status)
		return status;
	if (pooling->window.dilation.height != 1 || pooling->window.dilation.width != 1)
		return psd_onnx_refuse(onnx, "has 'dilations', must have none");
	if (is_average && (pooling->window.pad.height || pooling->window.pad.width) &&
	    !psd_onnx_integer(onnx, "count_include_pad", 0))
		return psd_onnx_refuse(onnx, "has pads that its mean leaves out, must have 'count_include_pad' 1");
	pooling->method = is_average ? PSD_POOL_AVERAGE : PSD_POOL_MAX;
	pooling->rounding = psd_onnx_integer(onnx, "ceil_mode", 0) ? PSD_POOL_UP : PSD_POOL_DOWN;
	status = psd_onnx_add_simple(onnx, &psd_layer_pool, &settings, data->view.layer, &layer);
	if (status)
		return status;
	psd_onnx_map(onnx, layer, &result);
	*psd_onnx_output(onnx, 0) = result;
	return PSD_OK;
}

/* Over the axes that is_over names: the others become channels, whose places the layer makes one of. */
static enum psd_status pool_all(struct psd_onnx *onnx, const bool is_over[], bool keeps_axes, bool is_max)
{
	struct psd_onnx_value *data = psd_onnx_input(onnx, 0), result;
	const unsigned n = data->view.n_axes;
	struct psd_onnx_order order = {.n = {0}};
	union psd_layer_settings whole = {.pool = {.window = {.stride = {1, 1}, .dilation = {1, 1}}}};
	uint64_t channels = 1, stride;
	unsigned layer;
	enum psd_status status = psd_onnx_settle(onnx, data);

	for (unsigned a = 0; a < n; a++) {
		if (is_over[a] && psd_onnx_view_has_batch(&data->view, a))
			return psd_onnx_refuse(onnx, "is over the batch");
		order.axes[is_over[a]][order.n[is_over[a]]++] = a;
		for (unsigned d = psd_onnx_view_first(&data->view, a); !is_over[a] && d < data->view.ends[a]; d++)
			channels *= data->view.digits[d].stride == PSD_ONNX_BATCH ? 1 : data->view.digits[d].size;
	}
	if (!status)
		status = psd_onnx_lay_out(onnx, &data->view, &order, true);
	if (!status && psd_onnx_shape(onnx, data->view.layer).channels != channels)
		status = psd_onnx_lay_out(onnx, &data->view, &order, false);
	if (!status)
		status = is_max ? psd_onnx_add_simple(onnx, &psd_layer_pool, &whole, data->view.layer, &layer)
				: psd_onnx_add_simple(onnx, &psd_layer_global_pool, NULL, data->view.layer, &layer);
	if (status)
		return status;
	result = *data;
	result.view = (struct psd_onnx_view){.layer = layer};
	stride = channels;
	for (unsigned a = 0; a < n; a++) {
		if (!is_over[a] || keeps_axes)
			psd_onnx_view_add_axis(&result.view);
		for (unsigned d = psd_onnx_view_first(&data->view, a); !is_over[a] && d < data->view.ends[a]; d++) {
			const struct psd_onnx_digit digit = data->view.digits[d];
			const bool is_batch = digit.stride == PSD_ONNX_BATCH;

			stride /= is_batch ? 1 : digit.size;
			psd_onnx_view_add_digit(&result.view, digit.size, is_batch ? PSD_ONNX_BATCH : stride);
		}
	}
	*psd_onnx_output(onnx, 0) = result;
	return PSD_OK;
}

static enum psd_status global_pool(struct psd_onnx *onnx)
{
	const struct psd_onnx_value *data = psd_onnx_input(onnx, 0);
	bool is_over[PSD_ONNX_AXES_MAX] = {false};
	const enum psd_status status = psd_onnx_check_data(onnx, data);

	for (unsigned a = 2; a < PSD_ONNX_AXES_MAX; a++)
		is_over[a] = true;
	return status ? status : pool_all(onnx, is_over, true, !strcmp(onnx->node->op_type, "GlobalMaxPool"));
}

static enum psd_status mean(struct psd_onnx *onnx)
{
	struct psd_onnx_value *data = psd_onnx_input(onnx, 0);
	int64_t axes[PSD_ONNX_AXES_MAX];
	bool is_over[PSD_ONNX_AXES_MAX] = {false};
	unsigned n;
	bool is_done = false;
	enum psd_status status = psd_onnx_check_data(onnx, data);

	if (!status)
		status = psd_onnx_match_norm(onnx, &is_done);
	if (status || is_done)
		return status;
	if (!status)
		status = psd_onnx_integers(onnx, "axes", 1, axes, PSD_ONNX_AXES_MAX, &n);
	if (!status && n == 0)
		status = psd_onnx_refuse(onnx, "must say over which axes");
	for (unsigned i = 0; i < n && !status; i++) {
		unsigned axis;

		status = psd_onnx_axis(onnx, axes[i], data->view.n_axes, &axis);
		if (!status)
			is_over[axis] = true;
	}
	return status ? status : pool_all(onnx, is_over, psd_onnx_integer(onnx, "keepdims", 1) != 0, false);
}

/* ---- resizing ---- */

/* Between corners that stay corners, as psd does it. */
static enum psd_status resize(struct psd_onnx *onnx)
{
	struct psd_onnx_value *data = psd_onnx_input(onnx, 0), *scales = psd_onnx_input(onnx, 2);
	struct psd_onnx_value *sizes = psd_onnx_input(onnx, 3), result;
	struct psd_window window = {.pad = {0}};
	union psd_layer_settings settings = psd_layer_resize.defaults;
	double to[4];
	unsigned layer;
	const bool has_sizes = sizes->kind == PSD_ONNX_CONSTANT;
	enum psd_status status = psd_onnx_check_data(onnx, data);

	if (!status &&
	    (!psd_onnx_text_is(onnx, "mode", "linear") ||
	     !psd_onnx_text_is(onnx, "coordinate_transformation_mode", "align_corners") || data->view.n_axes != 4))
		status = psd_onnx_refuse(onnx, "is known for maps with 'mode' linear and 'align_corners' alone");
	if (!status && (has_sizes ? sizes : scales)->kind != PSD_ONNX_CONSTANT)
		status = psd_onnx_refuse(onnx, "must have sizes or scales that no sample changes");
	if (!status)
		status = psd_onnx_read(onnx, has_sizes ? sizes : scales);
	if (!status && psd_onnx_elements(has_sizes ? sizes : scales) != 4)
		status = psd_onnx_refuse(onnx, "must have four sizes or scales");
	for (unsigned a = 0; a < 4 && !status; a++) {
		const double side = (double)psd_onnx_view_side(&data->view, a);

		to[a] = has_sizes ? sizes->numbers[a] : floor(side * scales->numbers[a]);
		if (a < 2 ? to[a] != side : !(to[a] >= 1 && to[a] <= PSD_LAYER_SIDE_MAX))
			status = psd_onnx_refuse(onnx, "makes side %u %g of %g", a, to[a], side);
	}
	if (!status)
		status = psd_onnx_window(onnx, data, (struct psd_sides){1, 1}, &window, &result);
	if (status)
		return status;
	settings.size = (struct psd_sides){(uint32_t)to[2], (uint32_t)to[3]};
	status = psd_onnx_add_simple(onnx, &psd_layer_resize, &settings, data->view.layer, &layer);
	if (status)
		return status;
	psd_onnx_map(onnx, layer, &result);
	*psd_onnx_output(onnx, 0) = result;
	return PSD_OK;
}

/* ---- normalisation ---- */

/* A layer upon data that lies as it should, named after its scale unless others have that, too. */
static enum psd_status put_named_layer(struct psd_onnx *onnx, const struct psd_onnx_value *data,
				       const struct psd_layer_kind *kind, const union psd_layer_settings *settings)
{
	struct psd_layer_spec spec = {.kind = kind, .settings = *settings, .n_inputs = 1};
	struct psd_onnx_value result = *data;
	enum psd_status status;

	spec.inputs[0] = data->view.layer;
	status = psd_onnx_add(onnx, &spec, psd_onnx_own_name(onnx, psd_onnx_input(onnx, 1)), &result.view.layer);
	*psd_onnx_output(onnx, 0) = result;
	return status;
}

/* Factors and summands, which are inputs 1 and 2. */
static enum psd_status check_affine(struct psd_onnx *onnx, uint64_t channels, struct psd_affine_settings *affine)
{
	enum psd_status status = psd_onnx_check_vector(onnx, psd_onnx_input(onnx, 1), channels, 1, &affine->has_scale);

	return status ? status : psd_onnx_check_vector(onnx, psd_onnx_input(onnx, 2), channels, 0, &affine->has_shift);
}

static enum psd_status batch_norm(struct psd_onnx *onnx)
{
	struct psd_onnx_value *data = psd_onnx_input(onnx, 0);
	static const char *const roles[] = {"weight", "bias", "running_mean", "running_variance"};
	union psd_layer_settings settings = psd_layer_batch_norm.defaults;
	enum psd_status status = psd_onnx_check_data(onnx, data);

	if (!status && data->view.n_axes < 2)
		status = psd_onnx_refuse(onnx, "must have an input of samples and channels");
	if (!status)
		status = psd_onnx_channels_first(onnx, data, 1);
	if (!status && psd_onnx_integer(onnx, "spatial", 1) != 1)
		status = psd_onnx_refuse(onnx, "has statistics for each place, must have them for each channel");
	if (!status)
		status = check_affine(onnx, psd_onnx_view_side(&data->view, 1), &settings.affine);
	settings.affine.epsilon = psd_onnx_number(onnx, "epsilon", 1e-5);
	settings.affine.kept_ratio = psd_onnx_number(onnx, "momentum", 0.9);
	if (!status)
		status = put_named_layer(onnx, data, &psd_layer_batch_norm, &settings);
	for (unsigned i = 0; i < 4 && !status; i++)
		status = psd_onnx_note(onnx, psd_onnx_output(onnx, 0)->view.layer, roles[i],
				       psd_onnx_input(onnx, i + 1), NULL);
	return status;
}

/* Over the last axis alone. */
static enum psd_status layer_norm(struct psd_onnx *onnx)
{
	struct psd_onnx_value *data = psd_onnx_input(onnx, 0);
	union psd_layer_settings settings = psd_layer_layer_norm.defaults;
	unsigned axis = 0;
	enum psd_status status = psd_onnx_check_data(onnx, data);

	if (!status)
		status = psd_onnx_axis(onnx, psd_onnx_integer(onnx, "axis", -1), data->view.n_axes, &axis);
	if (!status && axis + 1 != data->view.n_axes)
		status = psd_onnx_refuse(onnx, "is over several axes, must be over the last one");
	if (!status)
		status = psd_onnx_channels_first(onnx, data, axis);
	if (!status)
		status = check_affine(onnx, psd_onnx_view_side(&data->view, axis), &settings.affine);
	settings.affine.epsilon = psd_onnx_number(onnx, "epsilon", 1e-5);
	if (!status)
		status = put_named_layer(onnx, data, &psd_layer_layer_norm, &settings);
	for (unsigned i = 0; i < 2 && !status; i++)
		status = psd_onnx_note(onnx, psd_onnx_output(onnx, 0)->view.layer, i ? "bias" : "weight",
				       psd_onnx_input(onnx, i + 1), NULL);
	return status;
}

static enum psd_status lrn(struct psd_onnx *onnx)
{
	struct psd_onnx_value *data = psd_onnx_input(onnx, 0);
	const int64_t size = psd_onnx_integer(onnx, "size", 0);
	union psd_layer_settings settings = {.lrn = {.size = (uint32_t)size,
						     .alpha = psd_onnx_number(onnx, "alpha", 1e-4),
						     .beta = psd_onnx_number(onnx, "beta", 0.75),
						     .k = psd_onnx_number(onnx, "bias", 1)}};
	enum psd_status status = psd_onnx_check_data(onnx, data);

	if (!status && (size < 1 || size > PSD_LAYER_SIDE_MAX || size % 2 == 0 || data->view.n_axes < 2))
		status = psd_onnx_refuse(onnx, "has 'size' %lld, must be odd", (long long)size);
	if (!status)
		status = psd_onnx_channels_first(onnx, data, 1);
	return status ? status : psd_onnx_put_layer(onnx, data, &psd_layer_lrn, &settings);
}

static bool is_last(const struct psd_onnx *onnx)
{
	return onnx->uses[psd_onnx_output(onnx, 0) - onnx->values] == 0;
}

/* At the network's end the loss takes its place. */
static enum psd_status softmax(struct psd_onnx *onnx)
{
	struct psd_onnx_value *data = psd_onnx_input(onnx, 0);
	const int64_t given = psd_onnx_integer(onnx, "axis", onnx->version < 13 ? 1 : -1);
	const bool is_log = !strcmp(onnx->node->op_type, "LogSoftmax");
	const struct psd_onnx_view *view = data->kind == PSD_ONNX_SCORES ? NULL : &data->view;
	unsigned axis = 0;
	enum psd_status status;

	if (!view && (is_log || (given != -1 && given != (int64_t)psd_onnx_axes_of_scores(data) - 1)))
		return psd_onnx_refuse(onnx, "must be over the last axis of attention's scores, and no logarithm");
	if (!view)
		return psd_onnx_normalize_scores(onnx, data, psd_onnx_output(onnx, 0));
	status = psd_onnx_check_data(onnx, data);
	if (!status)
		status = psd_onnx_axis(onnx, given, view->n_axes, &axis);
	for (unsigned a = axis + 1; a < view->n_axes && !status && onnx->version < 13; a++)
		if (psd_onnx_view_side(view, a) != 1)
			status = psd_onnx_refuse(onnx, "is over axis %u and all behind it, must be over one", axis);
	if (!status && is_last(onnx) && axis != psd_onnx_class_axis(onnx, data))
		status = psd_onnx_refuse(onnx, "is over axis %u of what the network puts out, classes are axis %u",
					 axis, psd_onnx_class_axis(onnx, data));
	if (!status && is_last(onnx)) {
		*psd_onnx_output(onnx, 0) = *data;
		return PSD_OK;
	}
	if (!status)
		status = psd_onnx_channels_first(onnx, data, axis);
	if (!status)
		status = psd_onnx_put_layer(onnx, data, &psd_layer_softmax, NULL);
	if (!status && is_log) {
		const struct psd_onnx_value probabilities = *psd_onnx_output(onnx, 0);

		status = psd_onnx_put_layer(onnx, &probabilities, &psd_layer_log, NULL);
	}
	return status;
}

/* As it broadcasts; old files say so of vectors alone. */
static bool is_of_channels(const struct psd_onnx *onnx, const struct psd_onnx_value *slope,
			   const struct psd_onnx_view *data)
{
	const unsigned n = data->n_axes, missing = n - slope->n_dims;

	if (slope->kind != PSD_ONNX_CONSTANT || slope->n_dims > n ||
	    psd_onnx_elements(slope) != psd_onnx_view_side(data, 1))
		return false;
	return (onnx->version < 7 && slope->n_dims == 1) ||
	       (missing <= 1 && slope->dims[1 - missing] == psd_onnx_view_side(data, 1));
}

static enum psd_status prelu(struct psd_onnx *onnx)
{
	struct psd_onnx_value *data = psd_onnx_input(onnx, 0);
	const struct psd_onnx_value *slope = psd_onnx_input(onnx, 1);
	const bool is_shared = slope->kind == PSD_ONNX_CONSTANT && psd_onnx_elements(slope) == 1;
	enum psd_status status = psd_onnx_check_data(onnx, data);

	if (!status && data->view.n_axes < 2)
		status = psd_onnx_refuse(onnx, "must have an input of samples and channels");
	if (!status && !is_shared && !is_of_channels(onnx, slope, &data->view))
		status = psd_onnx_refuse(onnx, "must have a slope for each channel, or one");
	if (!status)
		status = psd_onnx_channels_first(onnx, data, 1);
	if (!status)
		status = psd_onnx_put_layer(onnx, data, &psd_layer_prelu,
					    &(union psd_layer_settings){.prelu.is_shared = is_shared});
	return status ? status : psd_onnx_note(onnx, psd_onnx_output(onnx, 0)->view.layer, "weight", slope, NULL);
}

/* ---- joining ---- */

/* Vectors that are learned, in front of the places. */
static enum psd_status put_prefix(struct psd_onnx *onnx, unsigned axis)
{
	const struct psd_onnx_value *learned = psd_onnx_input(onnx, 0);
	struct psd_onnx_value *data = psd_onnx_input(onnx, 1), result = *data;
	const unsigned n = data->view.n_axes, last = n - 1, by_channels[] = {0, 2, 1};
	union psd_layer_settings settings = psd_layer_prefix.defaults;
	struct psd_shape shape;
	enum psd_status status;

	if (n != 3 || axis != 1 || learned->n_dims != n || learned->dims[2] != psd_onnx_view_side(&data->view, 2) ||
	    learned->dims[1] > PSD_LAYER_SIDE_MAX)
		return psd_onnx_refuse(onnx,
				       "joins samples and constants, which is known for vectors before all places");
	settings.prefix.places = (uint32_t)learned->dims[1];
	status = psd_onnx_channels_first(onnx, data, last);
	if (!status)
		status = psd_onnx_add_simple(onnx, &psd_layer_prefix, &settings, data->view.layer, &result.view.layer);
	if (status)
		return status;
	status = psd_onnx_note(onnx, result.view.layer, "weight", learned, by_channels);
	if (status)
		return status;
	shape = psd_onnx_shape(onnx, result.view.layer);
	result.view = (struct psd_onnx_view){.layer = result.view.layer};
	psd_onnx_view_add_axis_of(&result.view, &data->view, 0);
	psd_onnx_view_add_axis(&result.view);
	psd_onnx_view_add_digit(&result.view, (uint64_t)shape.height * shape.width, 1);
	psd_onnx_view_add_axis(&result.view);
	psd_onnx_view_add_digit(&result.view, shape.channels, (uint64_t)shape.height * shape.width);
	*psd_onnx_output(onnx, 0) = result;
	return PSD_OK;
}

/* The input with `axis` as its channels, in maps as the first input's. */
static enum psd_status add_part(struct psd_onnx *onnx, struct psd_layer_spec *spec, struct psd_onnx_value *part,
				unsigned axis)
{
	struct psd_layer_spec reshape = {.kind = &psd_layer_reshape, .n_inputs = 1};
	struct psd_shape shape, first;
	unsigned layer;
	enum psd_status status = psd_onnx_channels_first(onnx, part, axis);

	if (status)
		return status;
	layer = part->view.layer;
	shape = psd_onnx_shape(onnx, layer);
	first = spec->n_inputs ? psd_onnx_shape(onnx, spec->inputs[0]) : shape;
	reshape.settings.shape = (struct psd_shape){shape.channels, first.height, first.width};
	reshape.inputs[0] = layer;
	if (shape.height != first.height || shape.width != first.width)
		status = psd_onnx_add_beside(onnx, &reshape, &layer);
	return status ? status
		      : psd_layer_spec_add_input(spec, layer, (struct psd_place){.path = onnx->path}, onnx->err);
}

static enum psd_status concat(struct psd_onnx *onnx)
{
	struct psd_onnx_value *first = psd_onnx_input(onnx, 0), *second = psd_onnx_input(onnx, 1), result;
	struct psd_layer_spec spec = {.kind = &psd_layer_concat};
	const struct psd_onnx_value *data = first->kind == PSD_ONNX_CONSTANT ? second : first;
	unsigned axis = 0, layer;
	enum psd_status status = psd_onnx_check_data(onnx, data);

	if (!status)
		status = psd_onnx_axis(onnx, psd_onnx_integer(onnx, "axis", 0), data->view.n_axes, &axis);
	if (!status && psd_onnx_is_parameter(first) && onnx->node->n_input == 2)
		return put_prefix(onnx, axis);
	for (unsigned i = 0; i < onnx->node->n_input && !status; i++) {
		struct psd_onnx_value *part = psd_onnx_input(onnx, i);

		status = psd_onnx_check_data(onnx, part);
		if (!status && part->view.n_axes != data->view.n_axes)
			status = psd_onnx_refuse(onnx, "has inputs whose shapes do not fit");
		if (!status)
			status = add_part(onnx, &spec, part, axis);
	}
	if (!status)
		status = psd_onnx_add(onnx, &spec, NULL, &layer);
	if (status)
		return status;
	result = *first;
	psd_onnx_follow_channels(onnx, &first->view, axis, layer, &result);
	*psd_onnx_output(onnx, 0) = result;
	return PSD_OK;
}

/* ---- losses ---- */

unsigned psd_onnx_class_axis(const struct psd_onnx *onnx, const struct psd_onnx_value *data)
{
	const struct psd_onnx_view *view = &data->view;
	unsigned order[PSD_ONNX_DIGITS_MAX];

	if (data->kind != PSD_ONNX_DATA || view->n_axes != 3)
		return 1;
	return onnx->has_lines && psd_onnx_in_memory_order(view, order) && order[0] < view->ends[1] ? 1 : 2;
}

enum psd_status psd_onnx_lose(struct psd_onnx *onnx, struct psd_onnx_value *data, unsigned axis)
{
	struct psd_layer_spec spec = {.kind = &psd_layer_softmax_loss,
				      .name = "loss",
				      .at = {.path = onnx->path},
				      .settings = psd_layer_softmax_loss.defaults,
				      .n_inputs = 1};
	const unsigned n = data->view.n_axes;
	unsigned number;
	enum psd_status status = psd_onnx_check_data(onnx, data);

	if (!status && n < 2)
		status = psd_onnx_refuse(onnx, "puts out %u axes, must be samples and classes", n);
	if (!status)
		status = psd_onnx_channels_first(onnx, data, axis);
	if (status || psd_onnx_view_side(&data->view, axis) == 1) /* one value is no choice of classes */
		return status;
	spec.inputs[0] = data->view.layer;
	if (psd_names_find(&onnx->build.names, spec.name, &number))
		spec.name = "loss of the output";
	onnx->has_loss = true;
	return psd_graph_build_add(&onnx->build, &spec, onnx->err);
}

static enum psd_status loss(struct psd_onnx *onnx)
{
	struct psd_onnx_value *data = psd_onnx_input(onnx, 0);
	const bool is_mean =
		!psd_onnx_attribute(onnx->node, "reduction") || psd_onnx_text_is(onnx, "reduction", "mean");
	enum psd_status status;

	if (!is_mean || psd_onnx_input(onnx, 2)->kind != PSD_ONNX_ABSENT ||
	    psd_onnx_attribute(onnx->node, "ignore_index"))
		return psd_onnx_refuse(onnx, "is known as the mean over all samples alone, all classes alike");
	status = psd_onnx_lose(onnx, data, 1);
	*psd_onnx_output(onnx, 0) = *data;
	return status;
}

/* ---- attention as one operator ---- */

/* Heads x places x depth of samples x places x (heads x depth), where they are not told apart yet. */
static enum psd_status tell_heads_apart(struct psd_onnx *onnx, struct psd_onnx_value *part, const char *name)
{
	const int64_t heads = psd_onnx_integer(onnx, name, 0);
	uint64_t sides[4] = {1, 1, 1, 1};
	const unsigned order[4] = {0, 2, 1, 3};

	if (part->view.n_axes == 4)
		return PSD_OK;
	if (part->view.n_axes != 3 || heads < 1 || psd_onnx_view_side(&part->view, 2) % (uint64_t)heads)
		return psd_onnx_refuse(onnx, "must have inputs of four axes, or three and '%s' that divide the last",
				       name);
	sides[0] = psd_onnx_view_side(&part->view, 0);
	sides[1] = psd_onnx_view_side(&part->view, 1);
	sides[2] = (uint64_t)heads;
	sides[3] = psd_onnx_view_side(&part->view, 2) / (uint64_t)heads;
	if (!psd_onnx_view_reshape(&part->view, sides, 4) || !psd_onnx_view_transpose(&part->view, order))
		return psd_onnx_refuse(onnx, "has heads in an order that is not known");
	return PSD_OK;
}

static enum psd_status attention(struct psd_onnx *onnx)
{
	struct psd_onnx_value parts[3], scores, *result = psd_onnx_output(onnx, 0), *mask = psd_onnx_input(onnx, 3);
	static const char *const names[3] = {"q_num_heads", "kv_num_heads", "kv_num_heads"};
	const unsigned keys_order[4] = {0, 1, 3, 2}, back[4] = {0, 2, 1, 3};
	const bool is_flat = psd_onnx_input(onnx, 0)->view.n_axes == 3;
	uint64_t sides[3];
	double depth;
	enum psd_status status = PSD_OK;

	for (unsigned p = 0; p < 3 && !status; p++) {
		parts[p] = *psd_onnx_input(onnx, p);
		status = psd_onnx_check_data(onnx, &parts[p]);
		if (!status)
			status = tell_heads_apart(onnx, &parts[p], names[p]);
	}
	if (status)
		return status;
	if (psd_onnx_input(onnx, 4)->kind != PSD_ONNX_ABSENT || psd_onnx_number(onnx, "softcap", 0) != 0)
		return psd_onnx_refuse(onnx, "has a past or a soft cap: not known");
	depth = (double)psd_onnx_view_side(&parts[0].view, 3);
	psd_onnx_view_transpose(&parts[1].view, keys_order);
	status = psd_onnx_begin_scores(onnx, &parts[0], &parts[1], &scores);
	if (!status)
		status = psd_onnx_scale_scores(onnx, &scores, psd_onnx_number(onnx, "scale", 1 / sqrt(depth)), &scores);
	if (!status && mask->kind != PSD_ONNX_ABSENT)
		status = psd_onnx_mask_scores(onnx, &scores, mask, mask->is_real ? PSD_ONNX_ADDS : PSD_ONNX_SEES,
					      &scores);
	if (!status && psd_onnx_integer(onnx, "is_causal", 0))
		status = psd_onnx_make_causal(onnx, &scores, &scores);
	if (!status)
		status = psd_onnx_normalize_scores(onnx, &scores, &scores);
	if (!status)
		status = psd_onnx_end_scores(onnx, &scores, &parts[2], result);
	if (status || !is_flat)
		return status;
	sides[0] = psd_onnx_view_side(&result->view, 0);
	sides[1] = psd_onnx_view_side(&result->view, 2);
	sides[2] = psd_onnx_view_side(&result->view, 1) * psd_onnx_view_side(&result->view, 3);
	if (!psd_onnx_view_transpose(&result->view, back) || !psd_onnx_view_reshape(&result->view, sides, 3))
		return psd_onnx_refuse(onnx, "has heads in an order that is not known");
	return PSD_OK;
}

/* ---- the table ---- */

static const struct {
	const char *op;
	psd_onnx_operator_fn *operate;
} operators[] = {
	{"Conv", psd_onnx_conv},
	{"ConvTranspose", psd_onnx_deconv},
	{"Gemm", psd_onnx_gemm},
	{"MatMul", psd_onnx_matmul},
	{"Gather", psd_onnx_embed},
	{"MaxPool", pool},
	{"AveragePool", pool},
	{"GlobalAveragePool", global_pool},
	{"GlobalMaxPool", global_pool},
	{"ReduceMean", mean},
	{"Resize", resize},
	{"BatchNormalization", batch_norm},
	{"LayerNormalization", layer_norm},
	{"LRN", lrn},
	{"Softmax", softmax},
	{"LogSoftmax", softmax},
	{"PRelu", prelu},
	{"Add", psd_onnx_arithmetic},
	{"Sub", psd_onnx_arithmetic},
	{"Mul", psd_onnx_arithmetic},
	{"Div", psd_onnx_arithmetic},
	{"Floor", psd_onnx_arithmetic},
	{"Less", psd_onnx_compare},
	{"LessOrEqual", psd_onnx_compare},
	{"Greater", psd_onnx_compare},
	{"GreaterOrEqual", psd_onnx_compare},
	{"IsNaN", psd_onnx_compare},
	{"Where", psd_onnx_where},
	{"Concat", concat},
	{"Dropout", psd_onnx_dropout},
	{"RandomUniform", psd_onnx_noise},
	{"RandomUniformLike", psd_onnx_noise},
	{"Bernoulli", psd_onnx_noise},
	{"Attention", attention},
	{"SoftmaxCrossEntropyLoss", loss},
};

static bool are_constants(const struct psd_onnx *onnx)
{
	for (unsigned i = 0; i < onnx->node->n_input; i++) {
		const enum psd_onnx_kind kind = psd_onnx_input(onnx, i)->kind;

		if (kind != PSD_ONNX_CONSTANT && kind != PSD_ONNX_ABSENT)
			return false;
	}
	return true;
}

enum psd_status psd_onnx_operate(struct psd_onnx *onnx)
{
	const Onnx__Node *node = onnx->node;
	bool is_done = false;
	enum psd_status status;

	if (psd_onnx_is_foreign(node))
		return psd_onnx_refuse(onnx, "is of '%.80s', known are operators of ONNX itself", node->domain);
	status = psd_onnx_see(onnx, &is_done);
	if (!status && !is_done && are_constants(onnx))
		status = psd_onnx_compute(onnx, &is_done);
	if (!status && !is_done)
		status = psd_onnx_apply(onnx, &is_done);
	if (status || is_done)
		return status;
	for (unsigned i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
		if (!strcmp(node->op_type, operators[i].op))
			return operators[i].operate(onnx);
	return psd_onnx_refuse(onnx, "is an operator that psd has no layer for");
}
