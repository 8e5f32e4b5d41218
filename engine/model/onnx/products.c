/* Layers that multiply by a parameter, with biases. */
#include <string.h>

#include "engine/base/saturate.h"
#include "engine/model/layer.h"
#include "engine/model/onnx/parts.h"

/* ---- parameters ---- */

static const char *name_of(const struct psd_onnx_value *weight)
{
	return weight->origin && weight->origin->name && *weight->origin->name ? weight->origin->name : NULL;
}

static enum psd_status check_weight(struct psd_onnx *onnx, const struct psd_onnx_value *weight, unsigned least,
				    unsigned most)
{
	bool is_empty = false;

	for (unsigned d = 0; d < weight->n_dims; d++)
		is_empty = is_empty || weight->dims[d] == 0 || weight->dims[d] > UINT32_MAX;
	if (weight->kind == PSD_ONNX_CONSTANT && !weight->origin && !psd_onnx_allows_other(onnx))
		return psd_onnx_refuse(onnx, "has a weight that is computed, must have one of the file");
	if (weight->kind == PSD_ONNX_CONSTANT && weight->n_dims >= least && weight->n_dims <= most && !is_empty)
		return PSD_OK;
	return psd_onnx_refuse(onnx, "must have a constant weight of %u to %u axes", least, most);
}

/* Weight and bias (NULL: none) of a layer. order: of the weight's axes in psd; NULL: their own. */
struct product {
	const struct psd_onnx_value *weight, *bias;
	const unsigned *order;
};

/* True if the weight is a whole tensor of the file: slices of a tensor are matrices of their own. */
static enum psd_status check_whole(struct psd_onnx *onnx, const struct psd_onnx_value *weight, bool *is_whole)
{
	struct psd_onnx_value whole;

	*is_whole = false;
	if (!weight->origin || weight->is_gathered)
		return PSD_OK;
	PSD_TRY(psd_onnx_constant_of(onnx, weight->origin, &whole));
	*is_whole = psd_onnx_elements(weight) == psd_onnx_elements(&whole);
	return PSD_OK;
}

/* Adds a layer with a weight, which it may share with an earlier layer. A sharing layer has the bias of the earlier
 * one, or none: *is_bias_left is true if another layer must add the bias. */
static enum psd_status add_product(struct psd_onnx *onnx, struct psd_layer_spec *spec, struct product product,
				   bool *is_bias_left, unsigned *number)
{
	const struct psd_onnx_value *weight = product.weight;
	struct psd_onnx_tie tie = {.weight = weight,
				   .bias = product.bias,
				   .order = product.order,
				   .name = name_of(weight),
				   .is_table = spec->kind == &psd_layer_embedding};
	bool is_whole;

	spec->n_inputs = 1;
	PSD_TRY(check_whole(onnx, weight, &is_whole));
	if (is_whole)
		PSD_TRY(psd_onnx_find_tie(onnx, &tie));
	spec->is_sharing = tie.is_tied;
	spec->owner = tie.owner;
	*is_bias_left = product.bias != NULL;
	if (spec->is_sharing && product.bias && psd_onnx_is_bound(onnx, spec->owner, "bias", product.bias, NULL))
		*is_bias_left = false;
	else if (spec->is_sharing && spec->kind == &psd_layer_inner_product)
		spec->settings.inner_product.has_bias = false;
	else if (spec->is_sharing && spec->kind != &psd_layer_embedding)
		spec->settings.conv.has_bias = false;
	else
		*is_bias_left = false;
	PSD_TRY(psd_onnx_add(onnx, spec, tie.is_copy ? NULL : tie.name, number));
	return tie.matrix && !spec->is_sharing ? psd_onnx_keep_matrix(onnx, tie.matrix, *number) : PSD_OK;
}

/* Records the bias, after adding a scale layer for it if the layer has none. */
static enum psd_status add_bias(struct psd_onnx *onnx, const struct psd_onnx_value *bias, bool is_bias_left,
				unsigned *layer)
{
	const union psd_layer_settings settings = {.affine = {.has_shift = true}};

	if (is_bias_left)
		PSD_TRY(psd_onnx_add_simple(onnx, &psd_layer_scale, &settings, *layer, layer));
	return psd_onnx_bind(onnx, *layer, "bias", bias, NULL);
}

/* ---- biases ---- */

/* The only consumer of the output, if it adds a parameter for each position of the last axis, *bias; otherwise NULL. */
static const Onnx__Node *find_bias(const struct psd_onnx *onnx, uint64_t outputs, unsigned n_axes,
				   const struct psd_onnx_value **bias)
{
	const unsigned value = (unsigned)(psd_onnx_output(onnx, 0) - onnx->values);
	const unsigned reader = onnx->consumers[value];

	if (onnx->n_consumers[value] != 1)
		return NULL;
	const Onnx__Node *node = onnx->graph->node[reader];
	if (!node->op_type || strcmp(node->op_type, "Add") != 0 || node->n_input != 2 || node->n_output != 1)
		return NULL;
	for (unsigned i = 0; i < 2; i++) {
		const struct psd_onnx_value *other = psd_onnx_named(onnx, node->input[i]);

		if (psd_onnx_is_learned(other) && psd_onnx_elements(other) == outputs && other->n_dims > 0 &&
		    other->n_dims <= n_axes && other->dims[other->n_dims - 1] == outputs) {
			*bias = other;
			return node;
		}
	}
	return NULL;
}

enum psd_status psd_onnx_affine(struct psd_onnx *onnx, struct psd_onnx_value *data,
				const struct psd_onnx_value *learned, bool is_factor)
{
	union psd_layer_settings settings = {.affine = {.has_scale = is_factor, .has_shift = !is_factor}};
	const unsigned n = data->view.n_axes, missing = n - learned->n_dims;
	unsigned axis = 0, n_axes = 0;
	bool is_all = true;

	if (psd_onnx_is_counted(onnx, learned))
		return psd_onnx_refuse(onnx, "reads a parameter that another layer has");
	if (learned->n_dims > n)
		return psd_onnx_refuse_shapes(onnx, "the learned one has too many axes");
	for (unsigned a = 0; a < n; a++) {
		const uint64_t side = a < missing ? 1 : learned->dims[a - missing];

		if (side != 1 && side != psd_onnx_view_dim(&data->view, a))
			return psd_onnx_refuse_shapes(onnx, "must be equal in each axis, or 1 in the learned one");
		if (psd_onnx_view_has_batch(&data->view, a) && side != 1)
			return psd_onnx_refuse(onnx, "has learned values for each sample of the batch");
		if (psd_onnx_view_has_batch(&data->view, a))
			continue;
		is_all = is_all && (side != 1 || psd_onnx_view_dim(&data->view, a) == 1);
		if (side != 1) {
			axis = a;
			n_axes++;
		}
	}
	if (n_axes == 1) {
		PSD_TRY(psd_onnx_channels_first(onnx, data, axis));
	} else if (is_all && !is_factor) {
		PSD_TRY(psd_onnx_materialize(onnx, data));
		PSD_TRY(psd_onnx_make_whole(onnx, &data->view));
	} else {
		return psd_onnx_refuse(onnx, "has learned values for some axes of its input, must have them for one "
					     "axis, or summands for all values");
	}
	struct psd_onnx_value result = *data;
	PSD_TRY(psd_onnx_add_simple(onnx, n_axes == 1 ? &psd_layer_scale : &psd_layer_position,
				    n_axes == 1 ? &settings : NULL, data->view.layer, &result.view.layer));
	if (n_axes == 1)
		PSD_TRY(psd_onnx_bind(onnx, result.view.layer, is_factor ? "weight" : "bias", learned, NULL));
	else
		PSD_TRY(psd_onnx_bind_broadcast(onnx, result.view.layer, "weight", learned, &data->view));
	*psd_onnx_output(onnx, 0) = result;
	return PSD_OK;
}

/* ---- convolutions ---- */

static enum psd_status read_sides(struct psd_onnx *onnx, const char *name, unsigned n_sides, uint32_t otherwise,
				  int64_t lowest, struct psd_sides *sides)
{
	int64_t numbers[2];
	unsigned n;

	PSD_TRY(psd_onnx_integers(onnx, name, 0, numbers, 2, &n));
	*sides = (struct psd_sides){otherwise, n_sides == 2 ? otherwise : lowest ? 1 : 0};
	if (n == 0)
		return PSD_OK;
	for (unsigned i = 0; i < n; i++)
		if (n != n_sides || numbers[i] < lowest || numbers[i] > PSD_LAYER_SIDE_MAX)
			return psd_onnx_refuse(onnx, "has '%s' %lld, must have %u from %lld to %u", name,
					       (long long)numbers[i], n_sides, (long long)lowest, PSD_LAYER_SIDE_MAX);
	sides->height = (uint32_t)numbers[0];
	if (n == 2)
		sides->width = (uint32_t)numbers[1];
	return PSD_OK;
}

/* Total pad with which the window has a position for each stride. */
static uint32_t same_pad(uint32_t side, uint32_t kernel, uint32_t stride, uint32_t dilation)
{
	const uint64_t positions = (side + stride - 1) / stride;
	const uint64_t reach = (positions - 1) * stride + (uint64_t)dilation * (kernel - 1) + 1;

	return reach > side ? (uint32_t)(reach - side) : 0;
}

/* Reads the pads, which must be equal at both ends. */
static enum psd_status read_pads(struct psd_onnx *onnx, unsigned n_sides, struct psd_shape in,
				 struct psd_window *window)
{
	int64_t pads[4] = {0};
	unsigned n;
	const bool is_same =
		psd_onnx_text_is(onnx, "auto_pad", "SAME_UPPER") || psd_onnx_text_is(onnx, "auto_pad", "SAME_LOWER");

	PSD_TRY(psd_onnx_integers(onnx, "pads", 0, pads, 4, &n));
	if (is_same) {
		const uint32_t both[2] = {
			same_pad(in.height, window->kernel.height, window->stride.height, window->dilation.height),
			same_pad(in.width, window->kernel.width, window->stride.width, window->dilation.width)};

		for (unsigned i = 0; i < n_sides; i++) {
			pads[i] = both[i] / 2;
			pads[i + n_sides] = both[i] - both[i] / 2;
		}
		n = 2 * n_sides;
	}
	if (n == 0)
		return PSD_OK;
	if (n != 2 * n_sides)
		return psd_onnx_refuse(onnx, "has %u pads, must have %u", n, 2 * n_sides);
	for (unsigned i = 0; i < n_sides; i++)
		if (pads[i] != pads[i + n_sides] || pads[i] < 0 || pads[i] > PSD_LAYER_SIDE_MAX)
			return psd_onnx_refuse(onnx, "has pads of %lld before and %lld after, must be equal",
					       (long long)pads[i], (long long)pads[i + n_sides]);
	window->pad = (struct psd_sides){(uint32_t)pads[0], n_sides == 2 ? (uint32_t)pads[1] : 0};
	return PSD_OK;
}

enum psd_status psd_onnx_window(struct psd_onnx *onnx, struct psd_onnx_value *data, struct psd_sides kernel,
				struct psd_window *window, struct psd_onnx_value *result)
{
	const unsigned n_axes = data->view.n_axes, n_sides = n_axes - 2;
	const struct psd_onnx_order order = {.n = {1, 1, n_sides == 2}, .axes = {{1}, {2}, {3}}};

	if (data->kind != PSD_ONNX_DATA || n_axes < 3 || n_axes > 4)
		return psd_onnx_refuse(onnx, "must have an input of samples, channels and one or two spatial axes");
	onnx->has_1d_windows = onnx->has_1d_windows || n_axes == 3;
	PSD_TRY(psd_onnx_materialize(onnx, data));
	PSD_TRY(psd_onnx_lay_out(onnx, &data->view, &order, false));
	PSD_TRY(read_sides(onnx, "kernel_shape", n_sides, 1, 1, &window->kernel));
	if (!psd_onnx_attribute(onnx->node, "kernel_shape"))
		window->kernel = kernel;
	PSD_TRY(read_sides(onnx, "strides", n_sides, 1, 1, &window->stride));
	PSD_TRY(read_sides(onnx, "dilations", n_sides, 1, 1, &window->dilation));
	PSD_TRY(read_pads(onnx, n_sides, psd_onnx_shape(onnx, data->view.layer), window));
	*result = *data;
	return PSD_OK;
}

void psd_onnx_put_map(const struct psd_onnx *onnx, unsigned layer, struct psd_onnx_value *result)
{
	const struct psd_shape shape = psd_onnx_shape(onnx, layer);
	struct psd_onnx_view view = {.layer = layer};

	psd_onnx_view_add_axis_of(&view, &result->view, 0);
	psd_onnx_view_add_axis(&view);
	psd_onnx_view_add_digit(&view, shape.channels, (uint64_t)shape.height * shape.width);
	psd_onnx_view_add_axis(&view);
	psd_onnx_view_add_digit(&view, shape.height, shape.width);
	if (result->view.n_axes == 4) {
		psd_onnx_view_add_axis(&view);
		psd_onnx_view_add_digit(&view, shape.width, 1);
	}
	result->view = view;
	*psd_onnx_output(onnx, 0) = *result;
}

static enum psd_status convolve(struct psd_onnx *onnx, const struct psd_layer_kind *kind)
{
	struct psd_onnx_value *data = psd_onnx_input(onnx, 0), result;
	const struct psd_onnx_value *weight = psd_onnx_input(onnx, 1);
	const bool is_deconv = kind == &psd_layer_deconv;
	const int64_t groups = psd_onnx_integer(onnx, "group", 1);
	struct psd_layer_spec spec = {.kind = kind};
	struct psd_conv_settings *conv = &spec.settings.conv;
	const uint64_t outputs = is_deconv ? psd_saturated_mul(weight->dims[1], (uint64_t)groups) : weight->dims[0];
	struct psd_sides kernel = {1, 1};
	struct psd_onnx_value *bias = psd_onnx_input(onnx, 2);
	char shape[PSD_ONNX_SHAPE_TEXT_MAX];
	bool has_bias = false, is_bias_left;
	unsigned layer;

	PSD_TRY(check_weight(onnx, weight, 3, 4));
	for (unsigned d = 2; d < weight->n_dims; d++)
		if (weight->dims[d] > PSD_LAYER_SIDE_MAX)
			return psd_onnx_refuse(onnx, "has a window of %llu, must have up to %u",
					       (unsigned long long)weight->dims[d], PSD_LAYER_SIDE_MAX);
	kernel.height = (uint32_t)weight->dims[2];
	kernel.width = weight->n_dims == 4 ? (uint32_t)weight->dims[3] : 1;
	PSD_TRY(psd_onnx_window(onnx, data, kernel, &conv->window, &result));
	if (conv->window.kernel.height != kernel.height || conv->window.kernel.width != kernel.width ||
	    weight->n_dims != data->view.n_axes)
		return psd_onnx_refuse(onnx, "has a weight for a window of %u by %u, and a kernel of %u by %u",
				       kernel.height, kernel.width, conv->window.kernel.height,
				       conv->window.kernel.width);
	if (groups < 1 || groups > PSD_LAYER_CHANNELS_MAX || outputs > PSD_LAYER_CHANNELS_MAX ||
	    (is_deconv ? weight->dims[0] : psd_onnx_view_dim(&data->view, 1)) !=
		    (is_deconv ? psd_onnx_view_dim(&data->view, 1) : weight->dims[1] * (uint64_t)groups))
		return psd_onnx_refuse(onnx,
				       "has a weight of shape %s, which does not fit %llu channels in %lld groups",
				       psd_onnx_write_shape(shape, weight->dims, weight->n_dims),
				       (unsigned long long)psd_onnx_view_dim(&data->view, 1), (long long)groups);
	conv->groups = (uint32_t)groups;
	conv->outputs = (uint32_t)outputs;
	PSD_TRY(psd_onnx_check_vector(onnx, bias, outputs, 0, &has_bias));
	conv->has_bias = has_bias;
	spec.inputs[0] = data->view.layer;
	PSD_TRY(add_product(onnx, &spec, (struct product){.weight = weight, .bias = has_bias ? bias : NULL},
			    &is_bias_left, &layer));
	PSD_TRY(psd_onnx_bind(onnx, layer, "weight", weight, NULL));
	PSD_TRY(add_bias(onnx, bias, is_bias_left, &layer));
	psd_onnx_put_map(onnx, layer, &result);
	return PSD_OK;
}

enum psd_status psd_onnx_conv(struct psd_onnx *onnx)
{
	return convolve(onnx, &psd_layer_conv);
}

enum psd_status psd_onnx_deconv(struct psd_onnx *onnx)
{
	int64_t more[2] = {0};
	unsigned n;

	PSD_TRY(psd_onnx_integers(onnx, "output_padding", 0, more, 2, &n));
	if (psd_onnx_text_is(onnx, "auto_pad", "SAME_UPPER") || psd_onnx_text_is(onnx, "auto_pad", "SAME_LOWER"))
		return psd_onnx_refuse(onnx, "has 'auto_pad', must have 'pads'");
	if (more[0] || more[1] || psd_onnx_attribute(onnx->node, "output_shape"))
		return psd_onnx_refuse(onnx, "has an output padding or shape, must have none");
	return convolve(onnx, &psd_layer_deconv);
}

/* ---- linear layers ---- */

/* Multiplies the last axis of data by a matrix of inputs x outputs, or outputs x inputs if is_transposed; with several
 * positions beside that axis, at each of them by a 1x1 convolution. bias: the node's own, or NULL for that of the next
 * node. */
static enum psd_status multiply(struct psd_onnx *onnx, struct psd_onnx_value *data, const struct psd_onnx_value *weight,
				bool is_transposed, const struct psd_onnx_value *bias)
{
	const unsigned axis = data->view.n_axes - 1, by_outputs[] = {1, 0};
	const uint64_t inputs = weight->dims[is_transposed], outputs = weight->dims[!is_transposed];
	const struct psd_onnx_order alone = {.n = {1}, .axes = {{axis}}};
	struct psd_layer_spec spec = {.kind = &psd_layer_inner_product};
	const Onnx__Node *adder = bias ? NULL : find_bias(onnx, outputs, data->view.n_axes, &bias);
	uint64_t positions = 1;
	unsigned layer;
	bool is_bias_left;
	enum psd_status status = PSD_OK;

	if (psd_onnx_view_dim(&data->view, axis) != inputs)
		return psd_onnx_refuse(onnx, "multiplies %llu values by a weight for %llu, must be equally many",
				       (unsigned long long)psd_onnx_view_dim(&data->view, axis),
				       (unsigned long long)inputs);
	if (outputs > PSD_LAYER_CHANNELS_MAX)
		return psd_onnx_refuse(onnx, "has %llu outputs, must have up to %u", (unsigned long long)outputs,
				       PSD_LAYER_CHANNELS_MAX);
	for (unsigned a = 0; a < axis; a++)
		positions *= psd_onnx_view_values(&data->view, a);
	if (positions == 1) {
		status = psd_onnx_check_inner(onnx, &data->view, axis);
		if (!status)
			status = psd_onnx_materialize(onnx, data);
		if (!status)
			status = psd_onnx_lay_out(onnx, &data->view, &alone, true);
		spec.settings.inner_product =
			(struct psd_inner_product_settings){.outputs = (uint32_t)outputs, .has_bias = bias};
	} else {
		status = psd_onnx_channels_first(onnx, data, axis);
		spec.kind = &psd_layer_conv;
		spec.settings = spec.kind->defaults;
		spec.settings.conv.outputs = (uint32_t)outputs;
		spec.settings.conv.has_bias = bias;
	}
	if (status)
		return status;
	spec.inputs[0] = data->view.layer;
	PSD_TRY(add_product(
		onnx, &spec,
		(struct product){.weight = weight, .bias = bias, .order = is_transposed ? NULL : by_outputs},
		&is_bias_left, &layer));
	PSD_TRY(psd_onnx_bind(onnx, layer, "weight", weight, is_transposed ? NULL : by_outputs));
	if (bias)
		PSD_TRY(add_bias(onnx, bias, is_bias_left, &layer));
	struct psd_onnx_value result = *data;
	psd_onnx_follow_channels(onnx, &data->view, axis, layer, &result);
	*psd_onnx_output(onnx, 0) = result;
	if (adder) {
		onnx->is_done[onnx->consumers[psd_onnx_output(onnx, 0) - onnx->values]] = true;
		*psd_onnx_named(onnx, adder->output[0]) = result;
	}
	return PSD_OK;
}

enum psd_status psd_onnx_gemm(struct psd_onnx *onnx)
{
	struct psd_onnx_value *data = psd_onnx_input(onnx, 0);
	const struct psd_onnx_value *weight = psd_onnx_input(onnx, 1);
	struct psd_onnx_value *bias = psd_onnx_input(onnx, 2);
	const bool is_transposed = psd_onnx_integer(onnx, "transB", 0) != 0;
	bool has_bias;

	PSD_TRY(check_weight(onnx, weight, 2, 2));
	if (data->kind != PSD_ONNX_DATA || data->view.n_axes != 2 || psd_onnx_integer(onnx, "transA", 0) ||
	    psd_onnx_number(onnx, "alpha", 1) != 1 || psd_onnx_number(onnx, "beta", 1) != 1)
		return psd_onnx_refuse(onnx, "must multiply samples by a weight, with factors of 1");
	PSD_TRY(psd_onnx_check_vector(onnx, bias, weight->dims[!is_transposed], 0, &has_bias));
	return multiply(onnx, data, weight, is_transposed, has_bias ? bias : NULL);
}

enum psd_status psd_onnx_matmul(struct psd_onnx *onnx)
{
	struct psd_onnx_value *left = psd_onnx_input(onnx, 0), *right = psd_onnx_input(onnx, 1);

	if (left->kind == PSD_ONNX_SCORES && right->kind == PSD_ONNX_DATA)
		return psd_onnx_end_scores(onnx, left, right, psd_onnx_output(onnx, 0));
	if (left->kind == PSD_ONNX_DATA && right->kind == PSD_ONNX_DATA)
		return psd_onnx_begin_scores(onnx, left, right, psd_onnx_output(onnx, 0));
	if (left->kind != PSD_ONNX_DATA || left->view.n_axes < 1)
		return psd_onnx_refuse(onnx, "must multiply samples by a weight, or be part of attention");
	PSD_TRY(check_weight(onnx, right, 2, 2));
	return multiply(onnx, left, right, false, NULL);
}

/* ---- embeddings ---- */

enum psd_status psd_onnx_embed(struct psd_onnx *onnx)
{
	const struct psd_onnx_value *table = psd_onnx_input(onnx, 0), *tokens = psd_onnx_input(onnx, 1);
	struct psd_layer_spec spec = {.kind = &psd_layer_embedding};
	struct psd_onnx_value result = *tokens;
	bool is_bias_left;
	double factor;

	PSD_TRY(check_weight(onnx, table, 2, 2));
	if (tokens->kind != PSD_ONNX_DATA || !psd_onnx_expr_is_product(tokens->expr, &factor) || factor != 1 ||
	    psd_onnx_integer(onnx, "axis", 0) != 0 ||
	    !psd_onnx_view_is_whole(&tokens->view, psd_onnx_values_of(onnx, tokens->view.layer)) ||
	    onnx->build.graph.layers[tokens->view.layer].n_inputs ||
	    psd_onnx_shape(onnx, tokens->view.layer).channels != 1)
		return psd_onnx_refuse(onnx, "must look up table rows by the network's input");
	if (table->dims[0] > PSD_LAYER_CHANNELS_MAX || table->dims[1] > PSD_LAYER_CHANNELS_MAX)
		return psd_onnx_refuse(onnx, "has a table of more than %u rows or columns", PSD_LAYER_CHANNELS_MAX);
	spec.settings.embedding = (struct psd_embedding_settings){.vocabulary = (uint32_t)table->dims[0],
								  .outputs = (uint32_t)table->dims[1]};
	spec.inputs[0] = tokens->view.layer;
	const uint64_t positions = psd_onnx_values_of(onnx, tokens->view.layer);
	result.is_integer = false;
	PSD_TRY(add_product(onnx, &spec, (struct product){.weight = table}, &is_bias_left, &result.view.layer));
	PSD_TRY(psd_onnx_bind(onnx, result.view.layer, "weight", table, NULL));
	if (!psd_onnx_view_add_axis(&result.view) || !psd_onnx_view_add_digit(&result.view, table->dims[1], positions))
		return psd_onnx_refuse(onnx, "makes more than %u axes", PSD_ONNX_AXES_MAX);
	*psd_onnx_output(onnx, 0) = result;
	return PSD_OK;
}
