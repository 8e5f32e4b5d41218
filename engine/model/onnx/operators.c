/* Table of operators; operators of normalisation, concatenation and losses. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/model/layer.h"
#include "engine/model/onnx/parts.h"

/* ---- normalisation ---- */

/* Checks scale and shift, which are inputs 1 and 2. */
static enum psd_status check_affine(struct psd_onnx *onnx, uint64_t channels, struct psd_affine_settings *affine)
{
	PSD_TRY(psd_onnx_check_vector(onnx, psd_onnx_input(onnx, 1), channels, 1, &affine->has_scale));
	return psd_onnx_check_vector(onnx, psd_onnx_input(onnx, 2), channels, 0, &affine->has_shift);
}

/* Finds the layer of the same module, if the module is called for the second time: its tensors are those of the file
 * that the node reads. Equal vectors of several modules are no reason, since exporters write them once. */
static enum psd_status find_call(struct psd_onnx *onnx, struct psd_layer_spec *spec, unsigned number, bool *is_second)
{
	const struct psd_onnx_value *scale = psd_onnx_input(onnx, 1), *shift = psd_onnx_input(onnx, 2);
	char module[PSD_GRAPH_NAME_MAX + 1], key[PSD_GRAPH_NAME_MAX + 40];

	*is_second = false;
	psd_onnx_module_of(onnx, module);
	if (!*module || !spec->settings.affine.has_scale)
		return PSD_OK;
	snprintf(key, sizeof(key), "%s %s", spec->kind->name, module);
	if (psd_names_find(&onnx->modules, key, &spec->owner)) {
		const struct psd_layer *owner = &onnx->build.graph.layers[spec->owner];

		*is_second =
			psd_onnx_is_bound(onnx, spec->owner, "weight", scale, NULL) &&
			owner->settings.affine.has_shift == spec->settings.affine.has_shift &&
			(!spec->settings.affine.has_shift || psd_onnx_is_bound(onnx, spec->owner, "bias", shift, NULL));
		return PSD_OK;
	}
	const char *kept = psd_arena_copy(&onnx->arena, key, strlen(key));
	return kept && psd_names_put(&onnx->modules, kept, number) ? PSD_OK : psd_onnx_no_memory(onnx);
}

/* Adds a normalisation with `axis` as channels; its first tensors and states are the inputs after the first. */
static enum psd_status put_norm(struct psd_onnx *onnx, const struct psd_layer_kind *kind,
				union psd_layer_settings settings, unsigned axis, unsigned n_tensors)
{
	static const char *const roles[] = {"weight", "bias", "running_mean", "running_variance"};
	struct psd_layer_spec spec = {.kind = kind, .n_inputs = 1};
	struct psd_onnx_value *data = psd_onnx_input(onnx, 0), result;

	PSD_TRY(psd_onnx_channels_first(onnx, data, axis));
	settings.affine.epsilon = psd_onnx_number(onnx, "epsilon", 1e-5);
	PSD_TRY(check_affine(onnx, psd_onnx_view_dim(&data->view, axis), &settings.affine));
	spec.settings = settings;
	spec.inputs[0] = data->view.layer;
	PSD_TRY(find_call(onnx, &spec, onnx->build.graph.n_layers, &spec.is_sharing));
	result = *data;
	PSD_TRY(psd_onnx_add(onnx, &spec, psd_onnx_own_name(onnx, psd_onnx_input(onnx, 1)), &result.view.layer));
	*psd_onnx_output(onnx, 0) = result;
	for (unsigned i = 0; i < n_tensors; i++)
		PSD_TRY(psd_onnx_bind(onnx, result.view.layer, roles[i], psd_onnx_input(onnx, i + 1), NULL));
	return PSD_OK;
}

static enum psd_status batch_norm(struct psd_onnx *onnx)
{
	union psd_layer_settings settings = psd_layer_batch_norm.defaults;

	if (psd_onnx_integer(onnx, "spatial", 1) != 1)
		return psd_onnx_refuse(onnx, "has statistics for each position, must have them for each channel");
	settings.affine.kept_ratio = psd_onnx_number(onnx, "momentum", 0.9);
	return put_norm(onnx, &psd_layer_batch_norm, settings, 1, 4);
}

static enum psd_status layer_norm(struct psd_onnx *onnx)
{
	const unsigned n_axes = psd_onnx_input(onnx, 0)->view.n_axes;
	unsigned axis = 0;

	PSD_TRY(psd_onnx_axis(onnx, psd_onnx_integer(onnx, "axis", -1), n_axes, &axis));
	if (axis + 1 != n_axes)
		return psd_onnx_refuse(onnx, "is over several axes, must be over the last one");
	return put_norm(onnx, &psd_layer_layer_norm, psd_layer_layer_norm.defaults, axis, 2);
}

static enum psd_status lrn(struct psd_onnx *onnx)
{
	struct psd_onnx_value *data = psd_onnx_input(onnx, 0);
	const int64_t size = psd_onnx_integer(onnx, "size", 0);
	union psd_layer_settings settings = {.lrn = {.size = (uint32_t)size,
						     .alpha = psd_onnx_number(onnx, "alpha", 1e-4),
						     .beta = psd_onnx_number(onnx, "beta", 0.75),
						     .k = psd_onnx_number(onnx, "bias", 1)}};

	if (size < 1 || size > PSD_LAYER_SIDE_MAX || size % 2 == 0)
		return psd_onnx_refuse(onnx, "has 'size' %lld, must be an odd number from 1 to %u", (long long)size,
				       PSD_LAYER_SIDE_MAX);
	PSD_TRY(psd_onnx_channels_first(onnx, data, 1));
	return psd_onnx_put_layer(onnx, data, &psd_layer_lrn, &settings, NULL);
}

static bool is_last(const struct psd_onnx *onnx)
{
	return onnx->n_consumers[psd_onnx_output(onnx, 0) - onnx->values] == 0;
}

/* A softmax at the end of the network is part of the loss. */
static enum psd_status softmax(struct psd_onnx *onnx)
{
	struct psd_onnx_value *data = psd_onnx_input(onnx, 0);
	const int64_t number = psd_onnx_integer(onnx, "axis", onnx->version < 13 ? 1 : -1);
	const bool is_log = !strcmp(onnx->node->op_type, "LogSoftmax");
	const struct psd_onnx_view *view = data->kind == PSD_ONNX_SCORES ? NULL : &data->view;
	unsigned axis = 0;

	if (!view && (is_log || (number != -1 && number != (int64_t)psd_onnx_axes_of_scores(data) - 1)))
		return psd_onnx_refuse(onnx, "must be over the last axis of attention's scores, without a logarithm");
	if (!view)
		return psd_onnx_normalize_scores(onnx, data, psd_onnx_output(onnx, 0));
	PSD_TRY(psd_onnx_check_data(onnx, data));
	PSD_TRY(psd_onnx_axis(onnx, number, view->n_axes, &axis));
	for (unsigned a = axis + 1; a < view->n_axes && onnx->version < 13; a++)
		if (psd_onnx_view_dim(view, a) != 1)
			return psd_onnx_refuse(onnx, "is over axis %u and all after it, must be over one", axis);
	if (is_last(onnx) && axis != psd_onnx_class_axis(onnx, data))
		return psd_onnx_refuse(onnx,
				       "is over axis %u of the network's output, must be over its classes, axis %u",
				       axis, psd_onnx_class_axis(onnx, data));
	if (is_last(onnx)) {
		*psd_onnx_output(onnx, 0) = *data;
		return PSD_OK;
	}
	PSD_TRY(psd_onnx_channels_first(onnx, data, axis));
	PSD_TRY(psd_onnx_put_layer(onnx, data, &psd_layer_softmax, NULL, NULL));
	struct psd_onnx_value probabilities = *psd_onnx_output(onnx, 0);
	return is_log ? psd_onnx_put_layer(onnx, &probabilities, &psd_layer_log, NULL, NULL) : PSD_OK;
}

/* Is there a slope for each channel, by broadcasting? In old files a vector is one. */
static bool is_of_channels(const struct psd_onnx *onnx, const struct psd_onnx_value *slope,
			   const struct psd_onnx_view *data)
{
	const unsigned n = data->n_axes, missing = n - slope->n_dims;

	if (slope->kind != PSD_ONNX_CONSTANT || slope->n_dims > n ||
	    psd_onnx_elements(slope) != psd_onnx_view_dim(data, 1))
		return false;
	return (onnx->version < 7 && slope->n_dims == 1) ||
	       (missing <= 1 && slope->dims[1 - missing] == psd_onnx_view_dim(data, 1));
}

static enum psd_status prelu(struct psd_onnx *onnx)
{
	struct psd_onnx_value *data = psd_onnx_input(onnx, 0);
	const struct psd_onnx_value *slope = psd_onnx_input(onnx, 1);
	const bool is_shared = slope->kind == PSD_ONNX_CONSTANT && psd_onnx_elements(slope) == 1;

	if (!is_shared && !is_of_channels(onnx, slope, &data->view))
		return psd_onnx_refuse(onnx, "must have a slope for each channel, or one");
	PSD_TRY(psd_onnx_channels_first(onnx, data, 1));
	PSD_TRY(psd_onnx_put_layer(onnx, data, &psd_layer_prelu,
				   &(union psd_layer_settings){.prelu.is_shared = is_shared}, NULL));
	return psd_onnx_bind(onnx, psd_onnx_output(onnx, 0)->view.layer, "weight", slope, NULL);
}

/* ---- joining ---- */

/* Learned vectors in front of the positions. */
static enum psd_status put_prefix(struct psd_onnx *onnx, unsigned axis)
{
	const struct psd_onnx_value *learned = psd_onnx_input(onnx, 0);
	struct psd_onnx_value *data = psd_onnx_input(onnx, 1), result = *data;
	const unsigned n = data->view.n_axes, last = n - 1, by_channels[] = {0, 2, 1};
	union psd_layer_settings settings = psd_layer_prefix.defaults;

	if (psd_onnx_is_counted(onnx, learned))
		return psd_onnx_refuse(onnx, "reads a parameter that another layer has");
	if (n != 3 || axis != 1 || learned->n_dims != n || learned->dims[2] != psd_onnx_view_dim(&data->view, 2) ||
	    learned->dims[1] > PSD_LAYER_SIDE_MAX)
		return psd_onnx_refuse(
			onnx, "joins samples and constants, must be learned vectors in front of all positions");
	settings.prefix.places = (uint32_t)learned->dims[1];
	PSD_TRY(psd_onnx_channels_first(onnx, data, last));
	PSD_TRY(psd_onnx_add_simple(onnx, &psd_layer_prefix, &settings, data->view.layer, &result.view.layer));
	PSD_TRY(psd_onnx_bind(onnx, result.view.layer, "weight", learned, by_channels));
	struct psd_shape shape = psd_onnx_shape(onnx, result.view.layer);
	result.view = (struct psd_onnx_view){.layer = result.view.layer};
	psd_onnx_view_add_axis_of(&result.view, &data->view, 0);
	psd_onnx_view_add_axis(&result.view);
	psd_onnx_view_add_digit(&result.view, (uint64_t)shape.height * shape.width, 1);
	psd_onnx_view_add_axis(&result.view);
	psd_onnx_view_add_digit(&result.view, shape.channels, (uint64_t)shape.height * shape.width);
	*psd_onnx_output(onnx, 0) = result;
	return PSD_OK;
}

/* Adds an input with `axis` as channels, and with maps of the first input's shape. */
static enum psd_status add_input(struct psd_onnx *onnx, struct psd_layer_spec *spec, struct psd_onnx_value *input,
				 unsigned axis)
{
	struct psd_layer_spec reshape = {.kind = &psd_layer_reshape, .n_inputs = 1};
	struct psd_shape shape, first;

	PSD_TRY(psd_onnx_channels_first(onnx, input, axis));
	unsigned layer = input->view.layer;
	shape = psd_onnx_shape(onnx, layer);
	first = spec->n_inputs ? psd_onnx_shape(onnx, spec->inputs[0]) : shape;
	reshape.settings.shape = (struct psd_shape){shape.channels, first.height, first.width};
	reshape.inputs[0] = layer;
	if (shape.height != first.height || shape.width != first.width)
		PSD_TRY(psd_onnx_add_beside(onnx, &reshape, &layer));
	return psd_layer_spec_add_input(spec, layer, (struct psd_place){.path = onnx->path}, onnx->err);
}

/* The input that has values, if all others are empty; otherwise NULL. */
static struct psd_onnx_value *only_part(const struct psd_onnx *onnx)
{
	struct psd_onnx_value *only = NULL;
	unsigned n = 0;

	for (unsigned i = 0; i < onnx->node->n_input; i++) {
		struct psd_onnx_value *part = psd_onnx_input(onnx, i);

		if (part->kind == PSD_ONNX_CONSTANT && !psd_onnx_elements(part))
			continue;
		only = part;
		n++;
	}
	return n == 1 ? only : NULL;
}

static enum psd_status concat(struct psd_onnx *onnx)
{
	struct psd_onnx_value *first = psd_onnx_input(onnx, 0), *second = psd_onnx_input(onnx, 1), result;
	struct psd_layer_spec spec = {.kind = &psd_layer_concat};
	struct psd_onnx_value *only = only_part(onnx);
	const struct psd_onnx_value *data = first->kind == PSD_ONNX_CONSTANT ? second : first;
	unsigned axis = 0, layer;

	if (only) {
		*psd_onnx_output(onnx, 0) = *only;
		return PSD_OK;
	}
	PSD_TRY(psd_onnx_check_data(onnx, data));
	PSD_TRY(psd_onnx_axis(onnx, psd_onnx_integer(onnx, "axis", 0), data->view.n_axes, &axis));
	if (psd_onnx_is_parameter(first) && onnx->node->n_input == 2)
		return put_prefix(onnx, axis);
	for (unsigned i = 0; i < onnx->node->n_input; i++) {
		struct psd_onnx_value *part = psd_onnx_input(onnx, i);

		PSD_TRY(psd_onnx_check_data(onnx, part));
		if (part->view.n_axes != data->view.n_axes)
			return psd_onnx_refuse_shapes(onnx, "must have equally many axes");
		PSD_TRY(add_input(onnx, &spec, part, axis));
	}
	PSD_TRY(psd_onnx_add(onnx, &spec, NULL, &layer));
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
	return onnx->has_1d_windows && psd_onnx_memory_order(view, order) && order[0] < view->ends[1] ? 1 : 2;
}

enum psd_status psd_onnx_add_loss(struct psd_onnx *onnx, struct psd_onnx_value *data, unsigned axis)
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
		status = psd_onnx_refuse(onnx, "makes an output of %u axes, must have samples and classes", n);
	if (!status)
		status = psd_onnx_channels_first(onnx, data, axis);
	if (status || psd_onnx_view_dim(&data->view, axis) == 1) /* a single value is not a class */
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
	const int64_t ignored = psd_onnx_integer(onnx, "ignore_index", -1);

	/* PyTorch has -100 if no class is ignored */
	if (!is_mean || psd_onnx_input(onnx, 2)->kind != PSD_ONNX_ABSENT ||
	    (ignored >= 0 && data->view.n_axes > 1 && ignored < (int64_t)psd_onnx_view_dim(&data->view, 1)))
		return psd_onnx_refuse(onnx, "must be the mean over all samples, with equal weights of classes");
	PSD_TRY(psd_onnx_add_loss(onnx, data, 1));
	*psd_onnx_output(onnx, 0) = *data;
	return PSD_OK;
}

/* ---- the table ---- */

static const struct {
	const char *op;
	psd_onnx_operator_fn *convert;
	unsigned least_axes; /* axes that the first input, data, must have; 0: the function checks its inputs */
} operators[] = {
	{"Conv", psd_onnx_conv, 0},
	{"ConvTranspose", psd_onnx_deconv, 0},
	{"Gemm", psd_onnx_gemm, 0},
	{"MatMul", psd_onnx_matmul, 0},
	{"Gather", psd_onnx_embed, 0},
	{"MaxPool", psd_onnx_pool, 1},
	{"AveragePool", psd_onnx_pool, 1},
	{"GlobalAveragePool", psd_onnx_global_pool, 1},
	{"GlobalMaxPool", psd_onnx_global_pool, 1},
	{"ReduceMean", psd_onnx_mean, 1},
	{"Resize", psd_onnx_resize, 1},
	{"BatchNormalization", batch_norm, 2},
	{"LayerNormalization", layer_norm, 1},
	{"LRN", lrn, 2},
	{"Softmax", softmax, 0},
	{"LogSoftmax", softmax, 0},
	{"PRelu", prelu, 2},
	{"Add", psd_onnx_arithmetic, 0},
	{"Sub", psd_onnx_arithmetic, 0},
	{"Mul", psd_onnx_arithmetic, 0},
	{"Div", psd_onnx_arithmetic, 0},
	{"Floor", psd_onnx_arithmetic, 0},
	{"Less", psd_onnx_compare, 0},
	{"LessOrEqual", psd_onnx_compare, 0},
	{"Greater", psd_onnx_compare, 0},
	{"GreaterOrEqual", psd_onnx_compare, 0},
	{"IsNaN", psd_onnx_compare, 0},
	{"Where", psd_onnx_where, 0},
	{"Concat", concat, 0},
	{"Dropout", psd_onnx_dropout, 0},
	{"RandomUniform", psd_onnx_noise, 0},
	{"RandomUniformLike", psd_onnx_noise, 0},
	{"Bernoulli", psd_onnx_noise, 0},
	{"Attention", psd_onnx_attention, 0},
	{"SoftmaxCrossEntropyLoss", loss, 1},
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

static enum psd_status convert_data(struct psd_onnx *onnx, psd_onnx_operator_fn *convert, unsigned least_axes)
{
	const struct psd_onnx_value *data = psd_onnx_input(onnx, 0);

	PSD_TRY(psd_onnx_check_data(onnx, data));
	if (data->view.n_axes < least_axes)
		return psd_onnx_refuse(onnx, "must have an input of samples and channels");
	return convert(onnx);
}

enum psd_status psd_onnx_convert(struct psd_onnx *onnx)
{
	const Onnx__Node *node = onnx->node;
	bool is_done = false;

	if (psd_onnx_is_foreign(node))
		return psd_onnx_refuse(onnx, "is an operator of '%.80s', must be one of ONNX itself", node->domain);
	PSD_TRY(psd_onnx_try_view(onnx, &is_done));
	if (!is_done && are_constants(onnx))
		PSD_TRY(psd_onnx_try_fold(onnx, &is_done));
	if (!is_done)
		PSD_TRY(psd_onnx_try_function(onnx, &is_done));
	if (is_done)
		return PSD_OK;
	for (unsigned i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
		if (!strcmp(node->op_type, operators[i].op))
			return operators[i].least_axes
				       ? convert_data(onnx, operators[i].convert, operators[i].least_axes)
				       : operators[i].convert(onnx);
	if (!strcmp(node->op_type, "Loop") || !strcmp(node->op_type, "Scan"))
		return psd_onnx_refuse(onnx, "repeats a graph as often as values say, which psd cannot know: "
					     "model.outputs can leave it out");
	return psd_onnx_refuse(onnx, "is an operator that has no layer in psd");
}
