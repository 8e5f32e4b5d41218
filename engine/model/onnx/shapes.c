/* Nodes that reshape, reorder, cut or join, of constants and of data alike: both are views, a constant of its own
 * numbers row by row. */
#include <string.h>

#include "engine/model/layer.h"
#include "engine/model/onnx/parts.h"

/* Constants whose numbers are brought into another order at once; larger ones are parameters, of which the dims say
 * all. */
#define SMALL 4096u

static bool view_of(const struct psd_onnx_value *value, struct psd_onnx_view *view)
{
	uint64_t stride = psd_onnx_elements(value);
	bool fits = true;

	if (value->kind != PSD_ONNX_CONSTANT) {
		*view = value->view;
		return value->kind == PSD_ONNX_DATA;
	}
	*view = (struct psd_onnx_view){.layer = 0};
	for (unsigned d = 0; d < value->n_dims && fits; d++) {
		stride /= value->dims[d] ? value->dims[d] : 1;
		fits = value->dims[d] && psd_onnx_view_add_axis(view) &&
		       psd_onnx_view_add_digit(view, value->dims[d], stride);
	}
	return fits;
}

/* The number that is e-th of a view, counted along its axes. */
static uint64_t place_of(const struct psd_onnx_view *view, uint64_t e)
{
	uint64_t place = view->offset;

	for (unsigned d = psd_onnx_view_digits(view); d-- > 0;) {
		place += e % view->digits[d].size * view->digits[d].stride;
		e /= view->digits[d].size;
	}
	return place;
}

/* Nothing moves: the digits follow each other. */
static bool is_in_order(const struct psd_onnx_view *view, uint64_t elements)
{
	uint64_t stride = elements;

	for (unsigned d = 0; d < psd_onnx_view_digits(view); d++) {
		stride /= view->digits[d].size;
		if (view->digits[d].stride != stride)
			return false;
	}
	return stride == 1 && view->offset == 0;
}

/* The constant seen through a view. */
static enum psd_status see(struct psd_onnx *onnx, struct psd_onnx_value *of, const struct psd_onnx_view *view,
			   struct psd_onnx_value *result)
{
	const uint64_t elements = psd_onnx_elements(of);
	double *numbers;
	enum psd_status status;

	*result = *of;
	result->n_dims = view->n_axes;
	for (unsigned a = 0; a < view->n_axes; a++)
		result->dims[a] = psd_onnx_view_side(view, a);
	if (psd_onnx_elements(result) == elements && is_in_order(view, elements))
		return PSD_OK;
	if (elements == 1) { /* repeated, it is no parameter of its own */
		status = psd_onnx_read(onnx, of);
		if (status)
			return status;
		result->origin = NULL;
	}
	if (psd_onnx_elements(result) > PSD_ONNX_NUMBERS_MAX ||
	    (!of->numbers && (of->is_moved || (of->is_real && elements > SMALL)))) {
		result->is_moved = true;
		result->numbers = NULL;
		return PSD_OK;
	}
	status = psd_onnx_read(onnx, of);
	if (status && status != PSD_ENOMEM && psd_onnx_is_parameter(of)) { /* of which the dims are enough */
		result->is_moved = true;
		return PSD_OK;
	}
	if (!status)
		status = psd_onnx_take_numbers(onnx, result, &numbers);
	for (uint64_t e = 0; !status && e < psd_onnx_elements(result); e++)
		numbers[e] = of->numbers[place_of(view, e)];
	result->is_moved = true;
	return status;
}

/* Binds an output to its input seen through a view. */
static enum psd_status put(struct psd_onnx *onnx, struct psd_onnx_value *of, const struct psd_onnx_view *view,
			   unsigned output)
{
	struct psd_onnx_value result = *of;

	if (of->kind == PSD_ONNX_CONSTANT) {
		const enum psd_status status = see(onnx, of, view, &result);

		if (status)
			return status;
	} else {
		result.view = *view;
	}
	*psd_onnx_output(onnx, output) = result;
	return PSD_OK;
}

static enum psd_status read_view(struct psd_onnx *onnx, struct psd_onnx_view *view)
{
	const struct psd_onnx_value *input = psd_onnx_input(onnx, 0);

	if (view_of(input, view))
		return PSD_OK;
	return input->kind == PSD_ONNX_SCORES ? psd_onnx_refuse(onnx, "takes attention's scores apart: not known")
					      : psd_onnx_refuse(onnx, "has an input that cannot be taken apart");
}

/* A place that may count from behind, within so many. */
static int64_t clamp(int64_t place, int64_t side)
{
	place = place < 0 && place > INT64_MIN / 2 ? place + side : place;
	return place < 0 ? 0 : place > side ? side : place;
}

/* ---- sides ---- */

static enum psd_status reshape_to(struct psd_onnx *onnx, struct psd_onnx_view view, const uint64_t sides[], unsigned n)
{
	if (!psd_onnx_view_reshape(&view, sides, n))
		return psd_onnx_refuse(onnx,
				       "makes a shape that its input has not the values for, or not in this order");
	return put(onnx, psd_onnx_input(onnx, 0), &view, 0);
}

static enum psd_status reshape(struct psd_onnx *onnx)
{
	int64_t given[PSD_ONNX_AXES_MAX];
	uint64_t sides[PSD_ONNX_AXES_MAX], values = 1, known = 1;
	struct psd_onnx_view view;
	unsigned n, open = PSD_ONNX_AXES_MAX;
	enum psd_status status = psd_onnx_integers(onnx, "shape", 1, given, PSD_ONNX_AXES_MAX, &n);

	if (!status)
		status = read_view(onnx, &view);
	if (status)
		return status;
	for (unsigned a = 0; a < view.n_axes; a++)
		values *= psd_onnx_view_side(&view, a);
	for (unsigned a = 0; a < n; a++) {
		if (given[a] < -1 || given[a] > UINT32_MAX || (given[a] == 0 && a >= view.n_axes) ||
		    (given[a] == -1 && open < n))
			return psd_onnx_refuse(onnx, "makes side %u %lld", a, (long long)given[a]);
		if (given[a] == -1)
			open = a;
		sides[a] = given[a] > 0 ? (uint64_t)given[a] : given[a] == 0 ? psd_onnx_view_side(&view, a) : 1;
		known *= sides[a];
	}
	if (open < n)
		sides[open] = known ? values / known : 0;
	return reshape_to(onnx, view, sides, n);
}

static enum psd_status flatten(struct psd_onnx *onnx)
{
	struct psd_onnx_view view;
	uint64_t sides[2] = {1, 1};
	int64_t axis = psd_onnx_integer(onnx, "axis", 1);
	enum psd_status status = read_view(onnx, &view);

	if (status)
		return status;
	axis = clamp(axis, view.n_axes);
	for (unsigned a = 0; a < view.n_axes; a++)
		sides[a >= axis] *= psd_onnx_view_side(&view, a);
	return reshape_to(onnx, view, sides, 2);
}

static enum psd_status squeeze(struct psd_onnx *onnx)
{
	int64_t axes[PSD_ONNX_AXES_MAX];
	uint64_t sides[PSD_ONNX_AXES_MAX];
	struct psd_onnx_view view;
	bool is_out[PSD_ONNX_AXES_MAX] = {false};
	unsigned n, n_sides = 0;
	enum psd_status status = psd_onnx_integers(onnx, "axes", 1, axes, PSD_ONNX_AXES_MAX, &n);

	if (!status)
		status = read_view(onnx, &view);
	for (unsigned i = 0; i < n && !status; i++) {
		unsigned axis;

		status = psd_onnx_axis(onnx, axes[i], view.n_axes, &axis);
		if (!status)
			is_out[axis] = true;
	}
	if (status)
		return status;
	for (unsigned a = 0; a < view.n_axes; a++)
		if (!is_out[a] && (n || psd_onnx_view_side(&view, a) != 1))
			sides[n_sides++] = psd_onnx_view_side(&view, a);
	return reshape_to(onnx, view, sides, n_sides);
}

static enum psd_status unsqueeze(struct psd_onnx *onnx)
{
	int64_t axes[PSD_ONNX_AXES_MAX];
	uint64_t sides[PSD_ONNX_AXES_MAX];
	struct psd_onnx_view view;
	bool is_new[PSD_ONNX_AXES_MAX] = {false};
	unsigned n, next = 0;
	enum psd_status status = psd_onnx_integers(onnx, "axes", 1, axes, PSD_ONNX_AXES_MAX, &n);

	if (!status)
		status = read_view(onnx, &view);
	if (!status && view.n_axes + n > PSD_ONNX_AXES_MAX)
		status = psd_onnx_refuse(onnx, "makes more than %u axes", PSD_ONNX_AXES_MAX);
	for (unsigned i = 0; i < n && !status; i++) {
		unsigned axis;

		status = psd_onnx_axis(onnx, axes[i], view.n_axes + n, &axis);
		if (!status)
			is_new[axis] = true;
	}
	if (status)
		return status;
	for (unsigned a = 0; a < view.n_axes + n; a++)
		sides[a] = is_new[a] ? 1 : next < view.n_axes ? psd_onnx_view_side(&view, next++) : 1;
	return reshape_to(onnx, view, sides, view.n_axes + n);
}

static enum psd_status expand(struct psd_onnx *onnx)
{
	int64_t given[PSD_ONNX_AXES_MAX];
	uint64_t sides[PSD_ONNX_AXES_MAX];
	struct psd_onnx_view view;
	unsigned n, n_sides;
	enum psd_status status = psd_onnx_integers(onnx, "shape", 1, given, PSD_ONNX_AXES_MAX, &n);

	if (!status)
		status = read_view(onnx, &view);
	if (status)
		return status;
	n_sides = n > view.n_axes ? n : view.n_axes;
	for (unsigned a = 0; a < n_sides; a++) {
		const int64_t side = a + n >= n_sides ? given[a + n - n_sides] : 1;

		sides[a] = side > 0 ? (uint64_t)side : 0;
	}
	if (!psd_onnx_view_expand(&view, sides, n_sides))
		return psd_onnx_refuse(onnx, "makes a shape that its input cannot be repeated to");
	return put(onnx, psd_onnx_input(onnx, 0), &view, 0);
}

static enum psd_status transpose(struct psd_onnx *onnx)
{
	int64_t given[PSD_ONNX_AXES_MAX];
	unsigned order[PSD_ONNX_AXES_MAX] = {0}, n;
	struct psd_onnx_view view;
	enum psd_status status = psd_onnx_integers(onnx, "perm", 0, given, PSD_ONNX_AXES_MAX, &n);

	if (!status)
		status = read_view(onnx, &view);
	if (status)
		return status;
	for (unsigned a = 0; a < view.n_axes; a++)
		order[a] = n ? (a < n && given[a] >= 0 && given[a] < view.n_axes ? (unsigned)given[a] : UINT32_MAX)
			     : view.n_axes - 1 - a;
	if (!psd_onnx_view_transpose(&view, order))
		return psd_onnx_refuse(onnx, "has an order that is none of %u axes", view.n_axes);
	return put(onnx, psd_onnx_input(onnx, 0), &view, 0);
}

/* ---- parts ---- */

static enum psd_status narrow(struct psd_onnx *onnx, struct psd_onnx_view *view, unsigned axis, uint64_t first,
			      uint64_t n, uint64_t step)
{
	if (psd_onnx_view_narrow(view, axis, first, n, step))
		return PSD_OK;
	return psd_onnx_refuse(onnx, "takes %llu places of axis %u from %llu on, which cannot be taken apart like this",
			       (unsigned long long)n, axis, (unsigned long long)first);
}

/* No place of an axis of a constant, as files take it apart that work shapes out. */
static enum psd_status put_nothing(struct psd_onnx *onnx, unsigned axis)
{
	static const double none[1];
	struct psd_onnx_value result = *psd_onnx_input(onnx, 0);

	result.dims[axis] = 0;
	result.numbers = none;
	result.origin = NULL;
	*psd_onnx_output(onnx, 0) = result;
	return PSD_OK;
}

static enum psd_status slice(struct psd_onnx *onnx)
{
	int64_t starts[PSD_ONNX_AXES_MAX], ends[PSD_ONNX_AXES_MAX], axes[PSD_ONNX_AXES_MAX], steps[PSD_ONNX_AXES_MAX];
	unsigned n, n_ends, n_axes, n_steps;
	struct psd_onnx_view view;
	enum psd_status status = psd_onnx_integers(onnx, "starts", 1, starts, PSD_ONNX_AXES_MAX, &n);

	if (!status)
		status = psd_onnx_integers(onnx, "ends", 2, ends, PSD_ONNX_AXES_MAX, &n_ends);
	if (!status)
		status = psd_onnx_integers(onnx, "axes", 3, axes, PSD_ONNX_AXES_MAX, &n_axes);
	if (!status)
		status = psd_onnx_integers(onnx, "steps", 4, steps, PSD_ONNX_AXES_MAX, &n_steps);
	if (!status)
		status = read_view(onnx, &view);
	if (!status && (n_ends != n || (n_axes && n_axes != n) || (n_steps && n_steps != n)))
		status = psd_onnx_refuse(onnx, "has %u starts, %u ends, %u axes, %u steps", n, n_ends, n_axes, n_steps);
	for (unsigned i = 0; i < n && !status; i++) {
		int64_t side, first, end;
		const int64_t step = n_steps ? steps[i] : 1;
		unsigned axis;

		status = psd_onnx_axis(onnx, n_axes ? axes[i] : i, view.n_axes, &axis);
		if (status)
			return status;
		side = (int64_t)psd_onnx_view_side(&view, axis);
		first = clamp(starts[i], side);
		end = clamp(ends[i], side);
		if (step >= 1 && end <= first && psd_onnx_input(onnx, 0)->kind == PSD_ONNX_CONSTANT)
			return put_nothing(onnx, axis);
		if (step < 1 || end <= first)
			return psd_onnx_refuse(onnx, "takes places from %lld to before %lld by %lld of %lld",
					       (long long)starts[i], (long long)ends[i], (long long)step,
					       (long long)side);
		status = narrow(onnx, &view, axis, (uint64_t)first, (uint64_t)((end - first - 1) / step + 1),
				(uint64_t)step);
	}
	return status ? status : put(onnx, psd_onnx_input(onnx, 0), &view, 0);
}

static enum psd_status split(struct psd_onnx *onnx)
{
	enum { PARTS_MAX = 1024 };
	int64_t parts[PARTS_MAX];
	unsigned n, axis = 0;
	const unsigned n_outputs = (unsigned)onnx->node->n_output;
	uint64_t first = 0, each = 1;
	struct psd_onnx_view view;
	enum psd_status status = psd_onnx_integers(onnx, "split", 1, parts, PARTS_MAX, &n);

	if (!status)
		status = read_view(onnx, &view);
	if (!status)
		status = psd_onnx_axis(onnx, psd_onnx_integer(onnx, "axis", 0), view.n_axes, &axis);
	if (status)
		return status;
	if (n && n != n_outputs)
		return psd_onnx_refuse(onnx, "has %u parts and %u outputs", n, n_outputs);
	each = (psd_onnx_view_side(&view, axis) + n_outputs - 1) / n_outputs;
	for (unsigned i = 0; i < n_outputs && !status; i++) {
		const uint64_t rest = psd_onnx_view_side(&view, axis) - first;
		const uint64_t size = n ? (parts[i] > 0 ? (uint64_t)parts[i] : 0) : each < rest ? each : rest;
		struct psd_onnx_view part = view;

		status = narrow(onnx, &part, axis, first, size, 1);
		if (!status && *onnx->node->output[i])
			status = put(onnx, psd_onnx_input(onnx, 0), &part, i);
		first += size;
	}
	return status;
}

/* Rows of a constant by the numbers of another. */
static enum psd_status gather_rows(struct psd_onnx *onnx, unsigned axis, struct psd_onnx_value *indices)
{
	struct psd_onnx_value *of = psd_onnx_input(onnx, 0), result = *of;
	uint64_t inner = 1, outer = 1;
	const uint64_t n = psd_onnx_elements(indices);
	bool are_alike = true;
	double *numbers;
	enum psd_status status = PSD_OK;

	if (of->n_dims - 1 + indices->n_dims > PSD_ONNX_AXES_MAX)
		return psd_onnx_refuse(onnx, "makes more than %u axes", PSD_ONNX_AXES_MAX);
	for (uint64_t e = 0; e < n; e++) {
		const double index = indices->numbers[e];

		if (!(index >= -(double)of->dims[axis] && index < (double)of->dims[axis]))
			return psd_onnx_refuse(onnx, "takes row %g of %llu", index, (unsigned long long)of->dims[axis]);
		are_alike = are_alike && index == indices->numbers[0];
	}
	for (unsigned d = 0; d < of->n_dims; d++) {
		inner *= d > axis ? of->dims[d] : 1;
		outer *= d < axis ? of->dims[d] : 1;
	}
	result.n_dims = of->n_dims - 1 + indices->n_dims;
	for (unsigned d = 0; d < indices->n_dims; d++)
		result.dims[axis + d] = indices->dims[d];
	for (unsigned d = axis + 1; d < of->n_dims; d++)
		result.dims[d - 1 + indices->n_dims] = of->dims[d];
	if (psd_onnx_is_learned(of)) {
		/* the same row for all of them is one row */
		for (unsigned d = 0; d < indices->n_dims && are_alike; d++)
			result.dims[axis + d] = 1;
		result.is_moved = true;
		result.numbers = NULL;
		*psd_onnx_output(onnx, 0) = result;
		return PSD_OK;
	}
	status = psd_onnx_read(onnx, of);
	if (!status)
		status = psd_onnx_take_numbers(onnx, &result, &numbers);
	if (status)
		return status;
	for (uint64_t o = 0; o < outer; o++)
		for (uint64_t e = 0; e < n; e++) {
			const double index = indices->numbers[e];
			const uint64_t row = (uint64_t)(index < 0 ? index + (double)of->dims[axis] : index);

			memcpy(numbers + (o * n + e) * inner, of->numbers + (o * of->dims[axis] + row) * inner,
			       inner * sizeof(*numbers));
		}
	result.origin = NULL;
	*psd_onnx_output(onnx, 0) = result;
	return PSD_OK;
}

/* By indices that are known: of data, places that follow each other. */
static enum psd_status gather(struct psd_onnx *onnx)
{
	struct psd_onnx_value *indices = psd_onnx_input(onnx, 1);
	struct psd_onnx_view view;
	uint64_t side, first, sides[PSD_ONNX_AXES_MAX];
	unsigned axis = 0, n = 0;
	enum psd_status status = read_view(onnx, &view);

	if (!status)
		status = psd_onnx_axis(onnx, psd_onnx_integer(onnx, "axis", 0), view.n_axes, &axis);
	if (!status)
		status = psd_onnx_read(onnx, indices);
	if (status)
		return status;
	if (psd_onnx_input(onnx, 0)->kind == PSD_ONNX_CONSTANT)
		return gather_rows(onnx, axis, indices);
	side = psd_onnx_view_side(&view, axis);
	for (uint64_t e = 0; e < psd_onnx_elements(indices); e++)
		if (indices->numbers[e] != indices->numbers[0] + (double)e)
			return psd_onnx_refuse(onnx, "takes places of the samples in an order that is not known");
	if (!psd_onnx_elements(indices) || indices->numbers[0] < -(double)side || indices->numbers[0] >= (double)side ||
	    view.n_axes - 1 + indices->n_dims > PSD_ONNX_AXES_MAX)
		return psd_onnx_refuse(onnx, "takes a place that is none of %llu", (unsigned long long)side);
	first = (uint64_t)(indices->numbers[0] < 0 ? indices->numbers[0] + (double)side : indices->numbers[0]);
	status = narrow(onnx, &view, axis, first, psd_onnx_elements(indices), 1);
	if (status)
		return status;
	for (unsigned a = 0; a < axis; a++)
		sides[n++] = psd_onnx_view_side(&view, a);
	for (unsigned d = 0; d < indices->n_dims; d++)
		sides[n++] = indices->dims[d];
	for (unsigned a = axis + 1; a < view.n_axes; a++)
		sides[n++] = psd_onnx_view_side(&view, a);
	return reshape_to(onnx, view, sides, n);
}

/* ---- what shapes say ---- */

static enum psd_status shape(struct psd_onnx *onnx)
{
	struct psd_onnx_value result = {.kind = PSD_ONNX_CONSTANT, .n_dims = 1};
	const bool is_count = !strcmp(onnx->node->op_type, "Size");
	int64_t start = psd_onnx_integer(onnx, "start", 0), end = psd_onnx_integer(onnx, "end", PSD_ONNX_AXES_MAX);
	struct psd_onnx_view view;
	double *numbers = psd_arena_take(&onnx->arena, PSD_ONNX_AXES_MAX * sizeof(*numbers)), count = 1;
	enum psd_status status = read_view(onnx, &view);

	if (!numbers)
		return psd_onnx_no_memory(onnx);
	if (status)
		return status;
	start = clamp(start, view.n_axes);
	end = clamp(end, view.n_axes);
	for (int64_t a = start; a < end; a++)
		numbers[a - start] = (double)psd_onnx_view_side(&view, (unsigned)a);
	for (unsigned a = 0; a < view.n_axes; a++)
		count *= (double)psd_onnx_view_side(&view, a);
	result.dims[0] = end > start ? (uint64_t)(end - start) : 0;
	result.n_dims = is_count ? 0 : 1;
	if (is_count)
		numbers[0] = count;
	result.numbers = numbers;
	*psd_onnx_output(onnx, 0) = result;
	return PSD_OK;
}

static enum psd_status pass(struct psd_onnx *onnx)
{
	*psd_onnx_output(onnx, 0) = *psd_onnx_input(onnx, 0);
	return PSD_OK;
}

/* ---- the operators ---- */

static const struct {
	const char *op;
	enum psd_status (*see)(struct psd_onnx *onnx);
} shapers[] = {
	{"Reshape", reshape}, {"Flatten", flatten}, {"Squeeze", squeeze}, {"Unsqueeze", unsqueeze},
	{"Expand", expand},   {"Slice", slice},	    {"Split", split},	  {"Transpose", transpose},
	{"Shape", shape},     {"Size", shape},
};

enum psd_status psd_onnx_see(struct psd_onnx *onnx, bool *is_done)
{
	const char *op = onnx->node->op_type;
	const bool is_known = psd_onnx_input(onnx, 1)->kind == PSD_ONNX_CONSTANT;
	const enum psd_onnx_kind kind = psd_onnx_input(onnx, 0)->kind;

	*is_done = true;
	if (!strcmp(op, "Identity") || (kind != PSD_ONNX_CONSTANT && (!strcmp(op, "Cast") || !strcmp(op, "CastLike"))))
		return pass(onnx);
	if (!strcmp(op, "CastLike")) /* a constant, as samples are: with fractions */
		return psd_onnx_compute(onnx, is_done);
	if (!strcmp(op, "Gather") && is_known)
		return gather(onnx);
	for (unsigned i = 0; i < sizeof(shapers) / sizeof(shapers[0]); i++)
		if (!strcmp(op, shapers[i].op))
			return shapers[i].see(onnx);
	*is_done = false;
	return PSD_OK;
}
