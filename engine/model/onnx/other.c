/* Layers that only a prediction needs: for a node that psd-run cannot compute, the shape of the output, the FLOPs of a
 * sample and the parameters, by the family of its operator. Refuses to guess a shape: such a node stays refused. */
#include <string.h>

#include "engine/base/saturate.h"
#include "engine/model/layer.h"
#include "engine/model/onnx/other.h"

/* ---- the output ---- */

bool psd_onnx_out_add(struct psd_onnx_out *out, uint64_t size)
{
	if (out->n == PSD_ONNX_AXES_MAX || !size)
		return false;
	out->axes[out->n++] = (struct psd_onnx_out_axis){.size = size};
	return true;
}

bool psd_onnx_out_add_of(struct psd_onnx_out *out, const struct psd_onnx_view *view, unsigned axis)
{
	if (out->n == PSD_ONNX_AXES_MAX)
		return false;
	out->axes[out->n++] = (struct psd_onnx_out_axis){view, axis, psd_onnx_view_dim(view, axis)};
	return true;
}

unsigned psd_onnx_axes_of(const struct psd_onnx_value *value)
{
	return value->kind == PSD_ONNX_CONSTANT ? value->n_dims : value->view.n_axes;
}

uint64_t psd_onnx_dim_of(const struct psd_onnx_value *value, unsigned axis)
{
	return value->kind == PSD_ONNX_CONSTANT ? value->dims[axis] : psd_onnx_view_dim(&value->view, axis);
}

bool psd_onnx_out_add_axis(struct psd_onnx_out *out, const struct psd_onnx_value *value, unsigned axis)
{
	return value->kind == PSD_ONNX_CONSTANT ? psd_onnx_out_add(out, value->dims[axis])
						: psd_onnx_out_add_of(out, &value->view, axis);
}

/* Values of the axis in one sample. */
static uint64_t values_of(const struct psd_onnx_out_axis *axis)
{
	return axis->of ? psd_onnx_view_values(axis->of, axis->axis) : axis->size;
}

uint64_t psd_onnx_out_values(const struct psd_onnx_out *out)
{
	uint64_t values = 1;

	for (unsigned a = 0; a < out->n; a++)
		values = psd_saturated_mul(values, values_of(&out->axes[a]));
	return values;
}

/* Appends the axis to the view; `inner` is the distance of two of its steps. */
static void add_axis(struct psd_onnx_view *view, const struct psd_onnx_out_axis *axis, uint64_t inner)
{
	uint64_t stride = inner * values_of(axis);

	if (axis->of) {
		psd_onnx_view_add_dense_axis(view, axis->of, axis->axis, &stride);
	} else {
		psd_onnx_view_add_axis(view);
		psd_onnx_view_add_digit(view, axis->size, inner);
	}
}

/* Sequences have their channels first, as psd's layers do; all other outputs lie axis by axis. */
static void make_view(const struct psd_onnx *onnx, const struct psd_onnx_out *out, unsigned layer,
		      struct psd_onnx_view *view)
{
	const bool is_sequence = out->n == 3 && !out->is_map && !onnx->has_1d_windows;
	uint64_t inner[PSD_ONNX_AXES_MAX], stride = 1;

	for (unsigned a = out->n; a-- > 0;) {
		inner[a] = stride;
		stride = psd_saturated_mul(stride, values_of(&out->axes[a]));
	}
	if (is_sequence) {
		inner[1] = 1;
		inner[2] = values_of(&out->axes[1]);
		inner[0] = inner[2] * values_of(&out->axes[2]);
	}
	*view = (struct psd_onnx_view){.layer = layer};
	for (unsigned a = 0; a < out->n; a++)
		add_axis(view, &out->axes[a], inner[a]);
}

/* Channels, height and width of as many values. False: there are too many. */
static bool fold_shape(const struct psd_onnx *onnx, const struct psd_onnx_out *out, struct psd_shape *shape)
{
	const bool is_sequence = out->n == 3 && !out->is_map && !onnx->has_1d_windows;
	uint64_t sides[3] = {1, 1, 1};
	unsigned n = 0;

	for (unsigned a = 0; a < out->n; a++) {
		const uint64_t values = values_of(&out->axes[is_sequence && a ? 3 - a : a]);

		if (values == 1)
			continue;
		if (n < 3)
			sides[n++] = values;
		else if (psd_saturated_mul(sides[1], sides[2]) <= PSD_LAYER_SIDE_MAX) {
			sides[1] *= sides[2];
			sides[2] = values;
		} else
			sides[2] = psd_saturated_mul(sides[2], values);
	}
	for (unsigned s = 1; s < 3; s++) /* long sides go to the channels */
		for (uint64_t part = 2; sides[s] > PSD_LAYER_SIDE_MAX && part < 1000; part++)
			while (sides[s] > PSD_LAYER_SIDE_MAX && sides[s] % part == 0) {
				sides[s] /= part;
				sides[0] = psd_saturated_mul(sides[0], part);
			}
	if (sides[0] > PSD_LAYER_CHANNELS_MAX || sides[1] > PSD_LAYER_SIDE_MAX || sides[2] > PSD_LAYER_SIDE_MAX)
		return false;
	*shape = (struct psd_shape){(uint32_t)sides[0], (uint32_t)sides[1], (uint32_t)sides[2]};
	return true;
}

/* ---- inputs ---- */

/* Scores that were to become attention become what their product gives. */
static enum psd_status settle_scores(struct psd_onnx *onnx, struct psd_onnx_value *value, bool *is_done)
{
	const struct psd_onnx_value *factors[2];
	struct psd_onnx_out out = {.n = 0};
	struct psd_onnx_value settled;

	psd_onnx_factors_of_scores(value, factors);
	*is_done = psd_onnx_out_product(&out, &factors[0]->view, &factors[1]->view);
	if (!*is_done)
		return PSD_OK;
	PSD_TRY(psd_onnx_put_other(onnx, &out, factors, 2, &settled, is_done));
	if (*is_done)
		*value = settled;
	return PSD_OK;
}

/* Applies the value's function. If the value repeats numbers, the function is applied before they are repeated. */
static enum psd_status apply(struct psd_onnx *onnx, struct psd_onnx_value *value)
{
	struct psd_onnx_value once = *value;

	struct psd_onnx_view before = once.view = psd_onnx_view_without(&value->view, 0);
	if (psd_onnx_view_digits(&before) == psd_onnx_view_digits(&value->view))
		return psd_onnx_materialize(onnx, value);
	PSD_TRY(psd_onnx_materialize(onnx, &once));
	if (!psd_onnx_view_is_same(&before, &once.view))
		return psd_onnx_refuse(onnx, "repeats values, which no layer can do");
	value->view.layer = once.view.layer;
	value->expr = once.expr;
	return PSD_OK;
}

/* ---- parameters ---- */

/* Counts a constant input as a parameter. A matrix counts once; equal vectors are written once by exporters. *fits is
 * false if the layer has no room for it. */
static enum psd_status count_parameters(struct psd_onnx *onnx, const struct psd_onnx_value *value,
					struct psd_other_settings *settings, unsigned *n, bool *fits)
{
	const Onnx__Tensor *tensor = value->origin ? value->origin : value->derived_from;
	const unsigned number = tensor && tensor->name ? psd_onnx_number_of(onnx, tensor->name) : 0;
	const uint64_t elements = value->is_table ? onnx->table_values[number] : psd_onnx_elements(value);

	*fits = true;
	if (psd_onnx_is_counted(onnx, value) || (value->is_table && !elements))
		return PSD_OK;
	*fits = *n < PSD_OTHER_TENSORS_MAX && elements <= UINT32_MAX;
	if (!*fits)
		return PSD_OK;
	onnx->used[number] += psd_onnx_elements(value);
	settings->parameters[(*n)++] = elements;
	return psd_onnx_note_counted(onnx, value);
}

/* True if the left factor of a product of constants has coordinates: of a map, or two or three of each point. */
static bool are_coordinates(const struct psd_onnx *onnx, const struct psd_onnx_value *left)
{
	const char *op = onnx->node->op_type;
	const bool is_matrix = !strcmp(op, "MatMul") || !strcmp(op, "Gemm");

	return !strcmp(op, "Conv") || (is_matrix && (left->n_dims > 2 || (left->n_dims == 2 && left->dims[1] <= 3)));
}

/* Makes the first input, a constant, the output of a layer with its parameters, if the node computes with parameters
 * alone. Such work is for an iteration, not for a sample: only products count, as PyTorch counts them. */
static enum psd_status lift(struct psd_onnx *onnx, bool *is_done)
{
	struct psd_onnx_value *constant = psd_onnx_input(onnx, 0), result;
	struct psd_onnx_out out = {.has_parameters = true, .is_lifted = true, .lifted = constant, .reads_output = true};
	bool has_parameter = false;

	for (unsigned i = 0; i < onnx->node->n_input; i++)
		has_parameter = has_parameter || psd_onnx_is_trained(psd_onnx_input(onnx, i));
	*is_done = has_parameter && constant->kind == PSD_ONNX_CONSTANT;
	out.has_parameters = !are_coordinates(onnx, constant);
	for (unsigned d = 0; *is_done && d < constant->n_dims; d++)
		*is_done = psd_onnx_out_add(&out, constant->dims[d]);
	if (!*is_done)
		return PSD_OK;
	PSD_TRY(psd_onnx_put_other(onnx, &out, NULL, 0, &result, is_done));
	if (*is_done)
		*constant = result;
	return PSD_OK;
}

/* ---- inputs, continued ---- */

/* Makes all inputs constants or outputs of layers. */
static enum psd_status settle_inputs(struct psd_onnx *onnx, bool *is_lifted, bool *had_scores, bool *is_done)
{
	unsigned n_data = 0;

	*had_scores = false;
	*is_done = true;
	for (unsigned i = 0; i < onnx->node->n_input && *is_done; i++) {
		struct psd_onnx_value *value = psd_onnx_input(onnx, i);

		*had_scores = *had_scores || value->kind == PSD_ONNX_SCORES;
		if (value->kind == PSD_ONNX_SCORES)
			PSD_TRY(settle_scores(onnx, value, is_done));
		if (!*is_done || value->kind == PSD_ONNX_ABSENT || value->kind == PSD_ONNX_CONSTANT)
			continue;
		if (value->kind == PSD_ONNX_DATA) {
			value->rotary_base = 0; /* rotating a part of each head is not counted */
			PSD_TRY(apply(onnx, value));
		}
		*is_done = value->kind == PSD_ONNX_DATA;
		n_data += *is_done;
	}
	*is_lifted = !n_data;
	if (*is_done && !n_data)
		PSD_TRY(lift(onnx, is_done));
	return PSD_OK;
}

/* ---- the layer ---- */

enum psd_status psd_onnx_put_other(struct psd_onnx *onnx, const struct psd_onnx_out *out,
				   const struct psd_onnx_value *const data[], unsigned n_data,
				   struct psd_onnx_value *result, bool *is_done)
{
	struct psd_layer_spec spec = {.kind = &psd_layer_other, .settings = psd_layer_other.defaults};
	struct psd_other_settings *settings = &spec.settings.other;
	unsigned layer, n_tensors = 0;
	bool fits;

	*is_done = false;
	settings->forward_flops = out->flops < PSD_LAYER_FIGURE_MAX ? out->flops : PSD_LAYER_FIGURE_MAX - 1;
	settings->is_product = out->is_product;
	if (!fold_shape(onnx, out, &settings->shape))
		return PSD_OK;
	for (unsigned i = 0; i < n_data && spec.n_inputs < PSD_LAYER_INPUTS_MAX; i++)
		spec.inputs[spec.n_inputs++] = data[i]->view.layer;
	if (!n_data) /* every layer has an input: the network's first stands for none */
		spec.inputs[spec.n_inputs++] = 0;
	for (unsigned i = 0; out->has_parameters && i < onnx->node->n_input; i++) {
		const struct psd_onnx_value *value = psd_onnx_input(onnx, i);
		const bool counts = psd_onnx_is_trained(value) || (!out->is_lifted && psd_onnx_is_made(onnx, value));

		if (out->no_parameters >> i & 1u || !counts || (out->lifted && out->lifted != value))
			continue;
		PSD_TRY(count_parameters(onnx, value, settings, &n_tensors, &fits));
		if (!fits)
			return PSD_OK;
	}
	if (out->reads_output)
		settings->read_values = psd_onnx_out_values(out);
	PSD_TRY(psd_onnx_add(onnx, &spec, NULL, &layer));
	*result = (struct psd_onnx_value){.kind = PSD_ONNX_DATA, .expr = psd_onnx_expr_new(onnx)};
	if (!result->expr)
		return psd_onnx_no_memory(onnx);
	make_view(onnx, out, layer, &result->view);
	*is_done = true;
	return PSD_OK;
}

/* Further outputs are as large as the first: indices of a maximum, states, masks. */
static void put_outputs(const struct psd_onnx *onnx, const struct psd_onnx_out *out,
			const struct psd_onnx_value *result)
{
	for (unsigned o = 0; o < onnx->node->n_output; o++) {
		struct psd_onnx_value *output = psd_onnx_output(onnx, o);

		if (!*onnx->node->output[o])
			continue;
		*output = *result;
		/* the last state of a recurrent layer */
		if (o && out->is_recurrent && output->view.n_axes == 4) {
			unsigned order[4] = {1, 2, 3, 0};
			uint64_t dims[3];

			(void)psd_onnx_view_narrow(&output->view, 0, psd_onnx_view_dim(&output->view, 0) - 1, 1, 1);
			(void)psd_onnx_view_transpose(&output->view, order);
			for (unsigned a = 0; a < 3; a++)
				dims[a] = psd_onnx_view_dim(&output->view, a);
			(void)psd_onnx_view_reshape(&output->view, dims, 3);
		}
	}
}

/* Converts the node with the copy in place of its first input. */
static enum psd_status view_copy(struct psd_onnx *onnx, const struct psd_onnx_value *copy)
{
	const struct psd_onnx_value original = *psd_onnx_input(onnx, 0);

	*psd_onnx_input(onnx, 0) = *copy;
	const enum psd_status status = psd_onnx_convert(onnx);
	*psd_onnx_input(onnx, 0) = original;
	return status;
}

bool psd_onnx_allows_other(const struct psd_onnx *onnx)
{
	return onnx->choices && onnx->choices->allows_other;
}

enum psd_status psd_onnx_try_other(struct psd_onnx *onnx, bool *is_done)
{
	const struct psd_onnx_value *data[PSD_ONNX_OTHER_INPUTS_MAX];
	struct psd_onnx_out out = {.has_parameters = true};
	struct psd_onnx_value result;
	unsigned n_data = 0;
	bool had_scores;

	*is_done = false;
	if (psd_onnx_is_quantized_parameter(onnx)) {
		*psd_onnx_output(onnx, 0) = *psd_onnx_input(onnx, 0);
		psd_onnx_output(onnx, 0)->is_real = true;
		*is_done = true;
		return PSD_OK;
	}
	PSD_TRY(settle_inputs(onnx, &out.is_lifted, &had_scores, is_done));
	if (!*is_done)
		return PSD_OK;
	for (unsigned i = 0; i < onnx->node->n_input && n_data < PSD_ONNX_OTHER_INPUTS_MAX; i++)
		if (psd_onnx_input(onnx, i)->kind == PSD_ONNX_DATA)
			data[n_data++] = psd_onnx_input(onnx, i);
	PSD_TRY(psd_onnx_infer_out(onnx, &out, is_done));
	if (!*is_done && had_scores) { /* as the outputs of layers the scores have a shape */
		*is_done = true;
		return psd_onnx_convert(onnx);
	}
	if (!*is_done)
		return PSD_OK;
	out.flops = out.is_lifted && !out.is_product ? 0 : out.flops;
	PSD_TRY(psd_onnx_put_other(onnx, &out, data, n_data, &result, is_done));
	if (*is_done && out.is_copy)
		return view_copy(onnx, &result);
	if (*is_done)
		put_outputs(onnx, &out, &result);
	return PSD_OK;
}
