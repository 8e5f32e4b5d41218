/* Shapes and work of operators by their family, for predictions. FLOPs: a multiplication and an addition count 2;
 * functions count as the table says. Source: the specification of each operator (github.com/onnx/onnx, Operators.md).
 */
#include <string.h>

#include "engine/base/saturate.h"
#include "engine/model/layer.h"
#include "engine/model/onnx/other.h"

/* ---- inputs ---- */

static bool has_batch(const struct psd_onnx_value *value, unsigned axis)
{
	return value->kind == PSD_ONNX_DATA && psd_onnx_view_has_batch(&value->view, axis);
}

static const struct psd_onnx_value *first_data(const struct psd_onnx *onnx)
{
	unsigned i = 0;

	while (psd_onnx_input(onnx, i)->kind != PSD_ONNX_DATA)
		i++; /* there is one, see settle_inputs() */
	return psd_onnx_input(onnx, i);
}

/* Numbers of an attribute, or of a constant input i; *n is 0 if there are none. False: they are not constant. */
static bool read_list(struct psd_onnx *onnx, const char *name, unsigned i, int64_t numbers[], unsigned most,
		      unsigned *n)
{
	return !psd_onnx_integers(onnx, name, i, numbers, most, n);
}

static bool read_axis(const struct psd_onnx *onnx, int64_t number, unsigned n, unsigned *axis)
{
	return !psd_onnx_axis(onnx, number, n, axis);
}

/* ---- elementwise ---- */

/* True if every input has this axis, counted from the right, with that size or 1. */
static bool fits(struct psd_onnx *onnx, unsigned from_right, uint64_t size)
{
	for (unsigned i = 0; i < onnx->node->n_input; i++) {
		const struct psd_onnx_value *value = psd_onnx_input(onnx, i);
		const unsigned n = psd_onnx_axes_of(value);

		if (from_right <= n && psd_onnx_dim_of(value, n - from_right) != 1 &&
		    psd_onnx_dim_of(value, n - from_right) != size)
			return false;
	}
	return true;
}

/* Right-aligned axes of all inputs; one that has the batch counts. */
static bool broadcast(struct psd_onnx *onnx, struct psd_onnx_out *out)
{
	unsigned n = 0;

	for (unsigned i = 0; i < onnx->node->n_input; i++)
		n = psd_onnx_axes_of(psd_onnx_input(onnx, i)) > n ? psd_onnx_axes_of(psd_onnx_input(onnx, i)) : n;
	for (unsigned right = n; right > 0; right--) {
		const struct psd_onnx_value *best = NULL;
		unsigned axis = 0;

		for (unsigned i = 0; i < onnx->node->n_input; i++) {
			const struct psd_onnx_value *value = psd_onnx_input(onnx, i);

			if (right > psd_onnx_axes_of(value) || (best && has_batch(best, axis)))
				continue;
			if (best &&
			    psd_onnx_dim_of(value, psd_onnx_axes_of(value) - right) <= psd_onnx_dim_of(best, axis) &&
			    !has_batch(value, psd_onnx_axes_of(value) - right))
				continue;
			best = value;
			axis = psd_onnx_axes_of(value) - right;
		}
		if (!best || !fits(onnx, right, psd_onnx_dim_of(best, axis)) || !psd_onnx_out_add_axis(out, best, axis))
			return false;
	}
	return true;
}

static bool same(struct psd_onnx *onnx, struct psd_onnx_out *out)
{
	const struct psd_onnx_value *data = first_data(onnx);

	for (unsigned a = 0; a < data->view.n_axes; a++)
		if (!psd_onnx_out_add_axis(out, data, a))
			return false;
	return true;
}

/* Exporters spell a norm of groups as one of instances between two reshapes, whose scale is 1 and whose shift is 0. */
static bool instance_norm(struct psd_onnx *onnx, struct psd_onnx_out *out)
{
	const unsigned producer = onnx->producers[psd_onnx_input(onnx, 0) - onnx->values];
	const bool is_reshaped = producer && !strcmp(onnx->graph->node[producer - 1]->op_type, "Reshape");

	if (is_reshaped && psd_onnx_is_filled(onnx, psd_onnx_input(onnx, 1), 1) &&
	    psd_onnx_is_filled(onnx, psd_onnx_input(onnx, 2), 0))
		out->has_parameters = false;
	return same(onnx, out);
}

/* A layer copies the values, so that a view of the copy can do what no view of the input can. */
static bool copy(struct psd_onnx *onnx, struct psd_onnx_out *out)
{
	out->is_copy = true;
	out->has_parameters = false;
	return psd_onnx_input(onnx, 0)->kind == PSD_ONNX_DATA && same(onnx, out);
}

static bool batch_norm(struct psd_onnx *onnx, struct psd_onnx_out *out)
{
	out->no_parameters = 1u << 3 | 1u << 4; /* running statistics */
	return same(onnx, out);
}

static bool where(struct psd_onnx *onnx, struct psd_onnx_out *out)
{
	out->has_parameters = false;
	return broadcast(onnx, out);
}

/* ---- windows ---- */

enum { MOST_SIDES = PSD_ONNX_AXES_MAX - 2 };

struct window {
	unsigned n;
	int64_t kernel[MOST_SIDES], stride[MOST_SIDES], dilation[MOST_SIDES], before[MOST_SIDES], after[MOST_SIDES];
	bool is_same, rounds_up;
};

static bool read_sides(struct psd_onnx *onnx, const char *name, unsigned n, int64_t otherwise, int64_t sides[])
{
	unsigned found;

	if (!read_list(onnx, name, 0, sides, MOST_SIDES, &found) || (found && found != n))
		return false;
	for (unsigned s = 0; s < n; s++) {
		sides[s] = found ? sides[s] : otherwise;
		if (sides[s] < 0 || sides[s] > PSD_LAYER_SIDE_MAX)
			return false;
	}
	return true;
}

/* kernel: from the weight; NULL: the attribute's. */
static bool read_window(struct psd_onnx *onnx, const struct psd_onnx_value *weight, struct window *window)
{
	const unsigned n = window->n = first_data(onnx)->view.n_axes - 2;
	int64_t pads[2 * MOST_SIDES] = {0};
	unsigned n_pads;

	if (n < 1 || n > MOST_SIDES || !read_sides(onnx, "kernel_shape", n, 1, window->kernel) ||
	    !read_sides(onnx, "strides", n, 1, window->stride) ||
	    !read_sides(onnx, "dilations", n, 1, window->dilation) ||
	    !read_list(onnx, "pads", 0, pads, 2 * MOST_SIDES, &n_pads) || (n_pads && n_pads != 2 * n))
		return false;
	for (unsigned s = 0; s < n; s++) {
		window->before[s] = pads[s];
		window->after[s] = pads[s + n];
		if (weight)
			window->kernel[s] = (int64_t)psd_onnx_dim_of(weight, s + 2);
		if (window->stride[s] < 1 || pads[s] < 0 || pads[s + n] < 0)
			return false;
	}
	window->is_same =
		psd_onnx_text_is(onnx, "auto_pad", "SAME_UPPER") || psd_onnx_text_is(onnx, "auto_pad", "SAME_LOWER");
	window->rounds_up = psd_onnx_integer(onnx, "ceil_mode", 0) != 0;
	return true;
}

static bool slide(struct psd_onnx *onnx, struct psd_onnx_out *out, const struct window *window)
{
	const struct psd_onnx_value *data = first_data(onnx);

	for (unsigned s = 0; s < window->n; s++) {
		const int64_t side = (int64_t)psd_onnx_dim_of(data, s + 2), stride = window->stride[s];
		const int64_t room = side + window->before[s] + window->after[s] -
				     (window->dilation[s] * (window->kernel[s] - 1) + 1);
		const int64_t positions = window->is_same ? (side + stride - 1) / stride
							  : (room + (window->rounds_up ? stride - 1 : 0)) / stride + 1;

		if ((!window->is_same && room < 0) || !psd_onnx_out_add(out, (uint64_t)positions))
			return false;
	}
	return true;
}

static uint64_t product(const int64_t numbers[], unsigned n)
{
	uint64_t result = 1;

	for (unsigned i = 0; i < n; i++)
		result = psd_saturated_mul(result, numbers[i] > 0 ? (uint64_t)numbers[i] : 0);
	return result;
}

static bool conv(struct psd_onnx *onnx, struct psd_onnx_out *out)
{
	const struct psd_onnx_value *data = psd_onnx_input(onnx, 0), *weight = psd_onnx_input(onnx, 1);
	const int64_t groups = psd_onnx_integer(onnx, "group", 1);
	struct window window;

	out->is_map = true;
	if (data->kind != PSD_ONNX_DATA || psd_onnx_axes_of(weight) != data->view.n_axes || data->view.n_axes < 3 ||
	    groups < 1 || groups > PSD_LAYER_CHANNELS_MAX ||
	    psd_onnx_dim_of(weight, 1) * (uint64_t)groups != psd_onnx_dim_of(data, 1) ||
	    !read_window(onnx, weight, &window) || !psd_onnx_out_add_axis(out, data, 0) ||
	    !psd_onnx_out_add(out, psd_onnx_dim_of(weight, 0)) || !slide(onnx, out, &window))
		return false;
	out->is_product = true;
	out->flops = psd_saturated_mul(2 * psd_onnx_dim_of(weight, 1),
				       psd_saturated_mul(psd_onnx_out_values(out), product(window.kernel, window.n)));
	return true;
}

static bool deconv(struct psd_onnx *onnx, struct psd_onnx_out *out)
{
	const struct psd_onnx_value *data = psd_onnx_input(onnx, 0), *weight = psd_onnx_input(onnx, 1);
	const int64_t groups = psd_onnx_integer(onnx, "group", 1);
	int64_t more[MOST_SIDES];
	struct window window;
	uint64_t values = 1;

	out->is_map = true;
	if (data->kind != PSD_ONNX_DATA || psd_onnx_axes_of(weight) != data->view.n_axes || data->view.n_axes < 3 ||
	    groups < 1 || groups > PSD_LAYER_CHANNELS_MAX || psd_onnx_dim_of(weight, 0) != psd_onnx_dim_of(data, 1) ||
	    !read_window(onnx, weight, &window) || !read_sides(onnx, "output_padding", window.n, 0, more) ||
	    !psd_onnx_out_add_axis(out, data, 0) ||
	    !psd_onnx_out_add(out, psd_onnx_dim_of(weight, 1) * (uint64_t)groups))
		return false;
	for (unsigned s = 0; s < window.n; s++) {
		const int64_t side = (int64_t)psd_onnx_dim_of(data, s + 2);
		const int64_t whole = window.is_same ? side * window.stride[s]
						     : window.stride[s] * (side - 1) + more[s] +
							       window.dilation[s] * (window.kernel[s] - 1) + 1 -
							       window.before[s] - window.after[s];

		if (whole < 1 || !psd_onnx_out_add(out, (uint64_t)whole))
			return false;
	}
	for (unsigned a = 1; a < data->view.n_axes; a++)
		values = psd_saturated_mul(values, psd_onnx_view_values(&data->view, a));
	out->is_product = true;
	out->flops = psd_saturated_mul(2 * psd_onnx_dim_of(weight, 1),
				       psd_saturated_mul(values, product(window.kernel, window.n)));
	return true;
}

static bool pool(struct psd_onnx *onnx, struct psd_onnx_out *out)
{
	const struct psd_onnx_value *data = first_data(onnx);
	struct window window;

	out->is_map = true;
	if (data->view.n_axes < 3 || !read_window(onnx, NULL, &window) || !psd_onnx_out_add_axis(out, data, 0) ||
	    !psd_onnx_out_add_axis(out, data, 1) || !slide(onnx, out, &window))
		return false;
	out->flops = psd_saturated_mul(psd_onnx_out_values(out), product(window.kernel, window.n));
	return true;
}

static bool global_pool(struct psd_onnx *onnx, struct psd_onnx_out *out)
{
	const struct psd_onnx_value *data = first_data(onnx);

	out->is_map = true;
	for (unsigned a = 0; a < data->view.n_axes; a++)
		if (a < 2 ? !psd_onnx_out_add_axis(out, data, a) : !psd_onnx_out_add(out, 1))
			return false;
	return true;
}

/* scales or sizes of the output; nearest neighbours need no arithmetic, interpolation 4 for each axis it is along. */
static bool resize(struct psd_onnx *onnx, struct psd_onnx_out *out)
{
	const struct psd_onnx_value *data = psd_onnx_input(onnx, 0);
	const bool is_old = !strcmp(onnx->node->op_type, "Upsample") || onnx->version < 11;
	struct psd_onnx_value *scales = psd_onnx_input(onnx, is_old ? 1 : 2);
	int64_t sizes[PSD_ONNX_AXES_MAX];
	unsigned n;

	out->is_map = true;
	out->has_parameters = false;
	if (data->kind != PSD_ONNX_DATA || !read_list(onnx, "", is_old ? 0 : 3, sizes, PSD_ONNX_AXES_MAX, &n))
		return false;
	if (!n && (scales->kind != PSD_ONNX_CONSTANT || psd_onnx_elements(scales) != data->view.n_axes ||
		   psd_onnx_read_numbers(onnx, scales)))
		return false;
	if (n && n != data->view.n_axes)
		return false;
	for (unsigned a = 0; a < data->view.n_axes; a++) {
		const double side = n ? (double)sizes[a] : (double)psd_onnx_dim_of(data, a) * scales->numbers[a];

		if (has_batch(data, a) ? !psd_onnx_out_add_axis(out, data, a)
				       : !(side >= 1 && side < PSD_LAYER_CHANNELS_MAX) ||
						 !psd_onnx_out_add(out, (uint64_t)(side + 1e-6)))
			return false;
	}
	if (!psd_onnx_text_is(onnx, "mode", "nearest") && psd_onnx_attribute(onnx->node, "mode"))
		out->flops = psd_saturated_mul(8, psd_onnx_out_values(out));
	return true;
}

/* ---- products ---- */

bool psd_onnx_out_product(struct psd_onnx_out *out, const struct psd_onnx_view *left, const struct psd_onnx_view *right)
{
	const unsigned n = left->n_axes > right->n_axes ? left->n_axes : right->n_axes;
	const uint64_t depth = left->n_axes ? psd_onnx_view_dim(left, left->n_axes - 1) : 0;

	if (left->n_axes < 2 || right->n_axes < 2 || psd_onnx_view_dim(right, right->n_axes - 2) != depth)
		return false;
	for (unsigned a = 0; a + 2 < n; a++) {
		const unsigned of_left = a + left->n_axes - n, of_right = a + right->n_axes - n;
		const bool has_left = a + left->n_axes >= n, has_right = a + right->n_axes >= n;
		const bool is_right = !has_left || (has_right && psd_onnx_view_dim(left, of_left) == 1 &&
						    !psd_onnx_view_has_batch(left, of_left));

		if (!psd_onnx_out_add_of(out, is_right ? right : left, is_right ? of_right : of_left))
			return false;
	}
	if (!psd_onnx_out_add_of(out, left, left->n_axes - 2) || !psd_onnx_out_add_of(out, right, right->n_axes - 1))
		return false;
	out->is_product = true;
	out->flops = psd_saturated_mul(2 * depth, psd_onnx_out_values(out));
	return true;
}

static bool matmul(struct psd_onnx *onnx, struct psd_onnx_out *out)
{
	struct psd_onnx_view views[2];

	for (unsigned i = 0; i < 2; i++)
		if (psd_onnx_input(onnx, i)->kind == PSD_ONNX_DATA)
			views[i] = psd_onnx_input(onnx, i)->view;
		else if (!psd_onnx_by_rows(psd_onnx_input(onnx, i), &views[i]))
			return false;
	if (!psd_onnx_out_product(out, &views[0], &views[1]))
		return false;
	for (unsigned a = 0; a < out->n; a++) /* the copies of views end with this call */
		if (out->axes[a].of)
			out->axes[a].of = out->axes[a].of == &views[0] ? &psd_onnx_input(onnx, 0)->view
								       : &psd_onnx_input(onnx, 1)->view;
	return true;
}

static bool gemm(struct psd_onnx *onnx, struct psd_onnx_out *out)
{
	const struct psd_onnx_value *left = psd_onnx_input(onnx, 0), *right = psd_onnx_input(onnx, 1);
	const unsigned is_left_turned = psd_onnx_integer(onnx, "transA", 0) != 0;
	const unsigned is_right_turned = psd_onnx_integer(onnx, "transB", 0) != 0;

	if (psd_onnx_axes_of(left) != 2 || psd_onnx_axes_of(right) != 2 ||
	    psd_onnx_dim_of(left, !is_left_turned) != psd_onnx_dim_of(right, is_right_turned) ||
	    !psd_onnx_out_add_axis(out, left, is_left_turned) || !psd_onnx_out_add_axis(out, right, !is_right_turned))
		return false;
	out->is_product = true;
	out->flops = psd_saturated_mul(2 * psd_onnx_dim_of(left, !is_left_turned), psd_onnx_out_values(out));
	return true;
}

/* Queries, keys and values of three axes, or four with heads. */
static bool attention(struct psd_onnx *onnx, struct psd_onnx_out *out)
{
	const struct psd_onnx_value *queries = psd_onnx_input(onnx, 0), *keys = psd_onnx_input(onnx, 1),
				    *values = psd_onnx_input(onnx, 2);
	const unsigned n = psd_onnx_axes_of(queries);

	if (n < 3 || n > 4 || psd_onnx_axes_of(keys) != n || psd_onnx_axes_of(values) != n)
		return false;
	for (unsigned a = 0; a + 1 < n; a++)
		if (!psd_onnx_out_add_axis(out, queries, a))
			return false;
	if (!psd_onnx_out_add(out, n == 4 ? psd_onnx_dim_of(values, 3) : psd_onnx_dim_of(queries, 2)))
		return false;
	out->is_product = true;
	out->flops = psd_saturated_mul(4 * psd_onnx_dim_of(keys, n - 2), psd_onnx_out_values(out));
	return true;
}

/* X has positions, samples and inputs; each position multiplies inputs and the last outputs by the gates' weights. */
static bool recurrent(struct psd_onnx *onnx, struct psd_onnx_out *out)
{
	const struct psd_onnx_value *data = psd_onnx_input(onnx, 0), *weight = psd_onnx_input(onnx, 1);
	const uint64_t gates = !strcmp(onnx->node->op_type, "LSTM") ? 4 : !strcmp(onnx->node->op_type, "GRU") ? 3 : 1;
	const int64_t hidden = psd_onnx_integer(onnx, "hidden_size", 0);

	if (psd_onnx_axes_of(data) != 3 || psd_onnx_axes_of(weight) != 3 || hidden < 1 ||
	    hidden > PSD_LAYER_CHANNELS_MAX || psd_onnx_dim_of(weight, 2) != psd_onnx_dim_of(data, 2) ||
	    psd_onnx_dim_of(weight, 1) != gates * (uint64_t)hidden || psd_onnx_integer(onnx, "layout", 0) ||
	    !psd_onnx_out_add_axis(out, data, 0) || !psd_onnx_out_add(out, psd_onnx_dim_of(weight, 0)) ||
	    !psd_onnx_out_add_axis(out, data, 1) || !psd_onnx_out_add(out, (uint64_t)hidden))
		return false;
	out->is_recurrent = true;
	out->no_parameters = 1u << 4;	 /* lengths of the sequences */
	for (unsigned i = 5; i < 7; i++) /* the first states, unless they are learned */
		if (!psd_onnx_is_parameter(psd_onnx_input(onnx, i)) ||
		    psd_onnx_is_filled(onnx, psd_onnx_input(onnx, i), 0))
			out->no_parameters |= 1u << i;
	const uint64_t weights =
		psd_saturated_mul(gates * (uint64_t)hidden, psd_onnx_dim_of(data, 2) + (uint64_t)hidden);
	out->is_product = true;
	out->flops =
		psd_saturated_mul(2 * psd_onnx_dim_of(weight, 0), psd_saturated_mul(psd_onnx_dim_of(data, 0), weights));
	return true;
}

/* ---- parts and moves ---- */

static bool reduce(struct psd_onnx *onnx, struct psd_onnx_out *out)
{
	const struct psd_onnx_value *data = psd_onnx_input(onnx, 0);
	const bool is_one = !strncmp(onnx->node->op_type, "Arg", 3), keeps = psd_onnx_integer(onnx, "keepdims", 1) != 0;
	int64_t numbers[PSD_ONNX_AXES_MAX] = {psd_onnx_integer(onnx, "axis", 0)};
	bool is_reduced[PSD_ONNX_AXES_MAX] = {false};
	unsigned n = 1;

	if (data->kind != PSD_ONNX_DATA || (!is_one && !read_list(onnx, "axes", 1, numbers, PSD_ONNX_AXES_MAX, &n)))
		return false;
	for (unsigned i = 0; i < n; i++) {
		unsigned axis;

		if (!read_axis(onnx, numbers[i], data->view.n_axes, &axis))
			return false;
		is_reduced[axis] = true;
	}
	for (unsigned a = 0; a < data->view.n_axes; a++) {
		const bool is = n ? is_reduced[a] : true;

		if (is && has_batch(data, a))
			return false;
		if (is ? keeps && !psd_onnx_out_add(out, 1) : !psd_onnx_out_add_axis(out, data, a))
			return false;
	}
	out->has_parameters = false;
	out->flops = psd_onnx_values_of(onnx, data->view.layer);
	return true;
}

static bool gather(struct psd_onnx *onnx, struct psd_onnx_out *out)
{
	const struct psd_onnx_value *from = psd_onnx_input(onnx, 0), *indices = psd_onnx_input(onnx, 1);
	unsigned axis;

	if (!read_axis(onnx, psd_onnx_integer(onnx, "axis", 0), psd_onnx_axes_of(from), &axis) || has_batch(from, axis))
		return false;
	for (unsigned a = 0; a < psd_onnx_axes_of(from); a++) {
		if (a != axis && !psd_onnx_out_add_axis(out, from, a))
			return false;
		for (unsigned i = 0; a == axis && i < psd_onnx_axes_of(indices); i++)
			if (!psd_onnx_out_add_axis(out, indices, i))
				return false;
	}
	out->no_parameters = 1u << 1;
	out->reads_output = true;
	return true;
}

/* Rows at the positions that the last axis of the indices lists. The batch must stay an axis, or be 1. */
static bool gather_nd(struct psd_onnx *onnx, struct psd_onnx_out *out)
{
	const struct psd_onnx_value *from = psd_onnx_input(onnx, 0), *indices = psd_onnx_input(onnx, 1);
	const unsigned n = psd_onnx_axes_of(indices);
	const uint64_t depth = n ? psd_onnx_dim_of(indices, n - 1) : 0;

	if (!depth || depth > psd_onnx_axes_of(from) || psd_onnx_integer(onnx, "batch_dims", 0))
		return false;
	for (unsigned a = 0; a + 1 < n; a++)
		if (!psd_onnx_out_add_axis(out, indices, a))
			return false;
	for (unsigned a = 0; a < psd_onnx_axes_of(from); a++)
		if (a < depth ? has_batch(from, a) && psd_onnx_dim_of(from, a) > 1
			      : !psd_onnx_out_add_axis(out, from, a))
			return false;
	out->no_parameters = 1u << 1;
	out->reads_output = true;
	return true;
}

/* A part of each axis that the node names. */
static bool slice(struct psd_onnx *onnx, struct psd_onnx_out *out)
{
	const struct psd_onnx_value *data = psd_onnx_input(onnx, 0);
	int64_t starts[PSD_ONNX_AXES_MAX], ends[PSD_ONNX_AXES_MAX], axes[PSD_ONNX_AXES_MAX], steps[PSD_ONNX_AXES_MAX];
	uint64_t sizes[PSD_ONNX_AXES_MAX];
	unsigned n, n_ends, n_named, n_steps;

	if (data->kind != PSD_ONNX_DATA || !read_list(onnx, "starts", 1, starts, PSD_ONNX_AXES_MAX, &n) ||
	    !read_list(onnx, "ends", 2, ends, PSD_ONNX_AXES_MAX, &n_ends) ||
	    !read_list(onnx, "axes", 3, axes, PSD_ONNX_AXES_MAX, &n_named) ||
	    !read_list(onnx, "steps", 4, steps, PSD_ONNX_AXES_MAX, &n_steps) || n_ends != n ||
	    (n_named && n_named != n) || (n_steps && n_steps != n))
		return false;
	for (unsigned a = 0; a < data->view.n_axes; a++)
		sizes[a] = psd_onnx_dim_of(data, a);
	for (unsigned i = 0; i < n; i++) {
		const int64_t step = n_steps ? steps[i] : 1;
		int64_t first, end;
		unsigned axis;

		if (step < 1 || !read_axis(onnx, n_named ? axes[i] : i, data->view.n_axes, &axis))
			return false;
		first = psd_onnx_clamp(starts[i], (int64_t)psd_onnx_dim_of(data, axis));
		end = psd_onnx_clamp(ends[i], (int64_t)psd_onnx_dim_of(data, axis));
		if (end <= first)
			return false;
		sizes[axis] = (uint64_t)((end - first - 1) / step + 1);
	}
	for (unsigned a = 0; a < data->view.n_axes; a++)
		if (sizes[a] == psd_onnx_dim_of(data, a) ? !psd_onnx_out_add_axis(out, data, a)
							 : has_batch(data, a) || !psd_onnx_out_add(out, sizes[a]))
			return false;
	out->has_parameters = false;
	return true;
}

enum { LETTERS = 128, TERM_MAX = 3 * PSD_ONNX_AXES_MAX };

/* The term of an equation that begins at *at, without blanks, up to ',', "->" or the end. */
static bool read_term(const char **at, const char *end, char term[TERM_MAX + 1])
{
	unsigned n = 0;

	for (; *at < end && **at != ',' && **at != '-'; ++*at) {
		if (**at == ' ')
			continue;
		if (n == PSD_ONNX_AXES_MAX || **at == '.' || **at < 'A' || **at > 'z')
			return false;
		term[n++] = **at;
	}
	term[n] = '\0';
	return true;
}

/* A product of matrices with named axes: "bik,bkj->bij". Every name is a factor of the work. */
static bool einsum(struct psd_onnx *onnx, struct psd_onnx_out *out)
{
	const Onnx__Attribute *equation = psd_onnx_attribute(onnx->node, "equation");
	const struct psd_onnx_value *of[LETTERS] = {NULL};
	unsigned axes[LETTERS] = {0};
	const char *at, *end;
	char term[TERM_MAX + 1];
	uint64_t work = 2;

	if (!equation || !equation->has_s)
		return false;
	at = (const char *)equation->s.data;
	end = at + equation->s.len;
	for (unsigned i = 0; i < onnx->node->n_input; i++) {
		const struct psd_onnx_value *value = psd_onnx_input(onnx, i);

		if (!read_term(&at, end, term) || strlen(term) != psd_onnx_axes_of(value) ||
		    (i + 1 < onnx->node->n_input && (at == end || *at++ != ',')))
			return false;
		for (unsigned a = 0; a < psd_onnx_axes_of(value); a++) {
			const unsigned char name = (unsigned char)term[a];

			if (of[name] && psd_onnx_dim_of(of[name], axes[name]) != psd_onnx_dim_of(value, a))
				return false;
			if (of[name] && (has_batch(of[name], axes[name]) || !has_batch(value, a)))
				continue;
			of[name] = value;
			axes[name] = a;
		}
	}
	if (end - at < 2 || at[0] != '-' || at[1] != '>')
		return false;
	at += 2;
	if (!read_term(&at, end, term) || at != end)
		return false;
	for (const char *name = term; *name; name++)
		if (!of[(unsigned char)*name] ||
		    !psd_onnx_out_add_axis(out, of[(unsigned char)*name], axes[(unsigned char)*name]))
			return false;
	for (unsigned name = 0; name < LETTERS; name++)
		if (of[name])
			work = psd_saturated_mul(work, of[name]->kind == PSD_ONNX_DATA
							       ? psd_onnx_view_values(&of[name]->view, axes[name])
							       : psd_onnx_dim_of(of[name], axes[name]));
	out->is_product = true;
	out->flops = work;
	return true;
}

static bool concat(struct psd_onnx *onnx, struct psd_onnx_out *out)
{
	const struct psd_onnx_value *data = first_data(onnx);
	unsigned axis;

	if (!read_axis(onnx, psd_onnx_integer(onnx, "axis", 0), data->view.n_axes, &axis) || has_batch(data, axis))
		return false;
	for (unsigned a = 0; a < data->view.n_axes; a++) {
		uint64_t size = 0;

		for (unsigned i = 0; i < onnx->node->n_input; i++) {
			if (psd_onnx_axes_of(psd_onnx_input(onnx, i)) != data->view.n_axes)
				return false;
			if (a != axis && psd_onnx_dim_of(psd_onnx_input(onnx, i), a) != psd_onnx_dim_of(data, a))
				return false;
			size += psd_onnx_dim_of(psd_onnx_input(onnx, i), a);
		}
		if (a == axis ? !psd_onnx_out_add(out, size) : !psd_onnx_out_add_axis(out, data, a))
			return false;
	}
	return true;
}

static bool pad(struct psd_onnx *onnx, struct psd_onnx_out *out)
{
	const struct psd_onnx_value *data = psd_onnx_input(onnx, 0);
	int64_t pads[2 * PSD_ONNX_AXES_MAX];
	unsigned n;

	out->is_map = true;
	out->has_parameters = false;
	if (data->kind != PSD_ONNX_DATA || !read_list(onnx, "pads", 1, pads, 2 * PSD_ONNX_AXES_MAX, &n) ||
	    n != 2 * data->view.n_axes)
		return false;
	for (unsigned i = 0; i < n; i++)
		if (pads[i] < -(int64_t)PSD_LAYER_CHANNELS_MAX || pads[i] > (int64_t)PSD_LAYER_CHANNELS_MAX)
			return false;
	for (unsigned a = 0; a < data->view.n_axes; a++) {
		const int64_t more = pads[a] + pads[a + data->view.n_axes],
			      side = (int64_t)psd_onnx_dim_of(data, a) + more;

		if (more == 0 ? !psd_onnx_out_add_axis(out, data, a)
			      : has_batch(data, a) || side < 1 || side > PSD_LAYER_CHANNELS_MAX ||
					!psd_onnx_out_add(out, (uint64_t)side))
			return false;
	}
	return true;
}

static bool tile(struct psd_onnx *onnx, struct psd_onnx_out *out)
{
	const struct psd_onnx_value *data = psd_onnx_input(onnx, 0);
	int64_t repeats[PSD_ONNX_AXES_MAX];
	unsigned n;

	if (data->kind != PSD_ONNX_DATA || !read_list(onnx, "", 1, repeats, PSD_ONNX_AXES_MAX, &n) ||
	    n != data->view.n_axes)
		return false;
	for (unsigned a = 0; a < n; a++)
		if (repeats[a] == 1 ? !psd_onnx_out_add_axis(out, data, a)
				    : has_batch(data, a) || repeats[a] < 1 || repeats[a] > PSD_LAYER_CHANNELS_MAX ||
					      !psd_onnx_out_add(out, psd_saturated_mul(psd_onnx_dim_of(data, a),
										       (uint64_t)repeats[a])))
			return false;
	return true;
}

static bool like_indices(struct psd_onnx *onnx, struct psd_onnx_out *out)
{
	const struct psd_onnx_value *indices = psd_onnx_input(onnx, 1);

	out->reads_output = true;
	for (unsigned a = 0; a < psd_onnx_axes_of(indices); a++)
		if (!psd_onnx_out_add_axis(out, indices, a))
			return false;
	return true;
}

static bool top(struct psd_onnx *onnx, struct psd_onnx_out *out)
{
	const struct psd_onnx_value *data = psd_onnx_input(onnx, 0);
	int64_t k[1] = {psd_onnx_integer(onnx, "k", 0)};
	unsigned axis, n = 0;

	if (data->kind != PSD_ONNX_DATA || !read_list(onnx, "", 1, k, 1, &n) || k[0] < 1 ||
	    k[0] > PSD_LAYER_CHANNELS_MAX ||
	    !read_axis(onnx, psd_onnx_integer(onnx, "axis", -1), data->view.n_axes, &axis) || has_batch(data, axis))
		return false;
	for (unsigned a = 0; a < data->view.n_axes; a++)
		if (a == axis ? !psd_onnx_out_add(out, (uint64_t)k[0]) : !psd_onnx_out_add_axis(out, data, a))
			return false;
	return true;
}

/* ---- the table ---- */

static const struct family {
	bool (*infer)(struct psd_onnx *onnx, struct psd_onnx_out *out);
	unsigned flops_each; /* FLOPs for each value of the output; 0: `infer` sets them, or there are none */
	const char *ops;     /* with blanks around each */
} families[] = {
	{broadcast, 1,
	 " Add Sub Mul Div Pow Mod Max Min Mean Sum And Or Xor BitShift Equal Greater GreaterOrEqual Less LessOrEqual "
	 "PRelu BitwiseAnd BitwiseOr BitwiseXor "},
	{same, 1,
	 " Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Cos Cosh Cast CastLike Clip Floor IsInf IsNaN Neg Not "
	 "Reciprocal Relu LeakyRelu Round Sign Sin Sinh Shrink Sqrt Tan ThresholdedRelu CumSum Dropout Bernoulli "
	 "QuantizeLinear DequantizeLinear Trilu "},
	{same, 4,
	 " Celu Elu Erf Exp Gelu HardSigmoid HardSwish Hardmax Log Mish Selu Sigmoid Softplus Softsign Swish Tanh "
	 "Det "},
	{same, 5, " Softmax LogSoftmax LpNormalization MeanVarianceNormalization LRN RotaryEmbedding "},
	{same, 8, " GroupNormalization LayerNormalization RMSNormalization SimplifiedLayerNormalization "},
	{same, 0, " Identity ReverseSequence Scatter ScatterElements ScatterND RandomNormalLike RandomUniformLike "},
	{copy, 0, " Reshape Expand Transpose DepthToSpace SpaceToDepth "},
	{instance_norm, 8, " InstanceNormalization "},
	{batch_norm, 4, " BatchNormalization "},
	{where, 1, " Where "},
	{conv, 0, " Conv ConvInteger QLinearConv "},
	{deconv, 0, " ConvTranspose "},
	{pool, 0, " MaxPool AveragePool LpPool "},
	{global_pool, 0, " GlobalAveragePool GlobalMaxPool GlobalLpPool "},
	{resize, 0, " Resize Upsample "},
	{matmul, 0, " MatMul MatMulInteger "},
	{gemm, 0, " Gemm "},
	{attention, 0, " Attention "},
	{recurrent, 0, " LSTM GRU RNN "},
	{reduce, 0,
	 " ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum "
	 "ReduceSumSquare ArgMax ArgMin "},
	{gather, 0, " Gather "},
	{gather_nd, 0, " GatherND "},
	{slice, 0, " Slice "},
	{einsum, 0, " Einsum "},
	{like_indices, 0, " GatherElements "},
	{concat, 0, " Concat "},
	{pad, 0, " Pad "},
	{tile, 0, " Tile "},
	{top, 0, " TopK "},
	{psd_onnx_out_non_zero, 0, " NonZero "},
	{psd_onnx_out_chosen, 0, " Compress Unique "},
	{psd_onnx_out_suppression, 0, " NonMaxSuppression "},
	{psd_onnx_out_regions, 0, " RoiAlign MaxRoiPool "},
	{psd_onnx_out_grid, 0, " GridSample "},
	{psd_onnx_out_columns, 0, " Col2Im "},
	{psd_onnx_out_one_hot, 0, " OneHot "},
};

static bool has_op(const char *ops, const char *op)
{
	const size_t length = strlen(op);

	for (const char *at = strstr(ops, op); at; at = strstr(at + 1, op))
		if (at[-1] == ' ' && at[length] == ' ')
			return true;
	return false;
}

bool psd_onnx_is_quantized_parameter(const struct psd_onnx *onnx)
{
	const struct psd_onnx_value *value = psd_onnx_input(onnx, 0);

	return !strcmp(onnx->node->op_type, "DequantizeLinear") && value->kind == PSD_ONNX_CONSTANT && value->origin;
}

/* An operator of another domain is taken to read its inputs and to write as many values. */
static bool is_foreign(struct psd_onnx *onnx, struct psd_onnx_out *out)
{
	if (!onnx->n_foreign++)
		onnx->first_foreign = onnx->node;
	return same(onnx, out);
}

enum psd_status psd_onnx_infer_out(struct psd_onnx *onnx, struct psd_onnx_out *out, bool *is_done)
{
	const char *op = onnx->node->op_type;

	*is_done = false;
	if (psd_onnx_is_foreign(onnx->node)) {
		*is_done = is_foreign(onnx, out);
		return PSD_OK;
	}
	for (unsigned f = 0; f < sizeof(families) / sizeof(families[0]); f++) {
		if (!*op || strchr(op, ' ') || !has_op(families[f].ops, op))
			continue;
		*is_done = families[f].infer(onnx, out);
		if (families[f].flops_each)
			out->flops = psd_saturated_mul(families[f].flops_each, psd_onnx_out_values(out));
		return PSD_OK;
	}
	return PSD_OK;
}
