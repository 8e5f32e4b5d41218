/* Nodes that reshape, reorder, cut or join, of constants and of data alike: both are views, a constant of its own
 * numbers row by row. */
#include <string.h>

#include "engine/model/layer.h"
#include "engine/model/onnx/parts.h"

static bool view_of(const struct psd_onnx_value *value, struct psd_onnx_view *view)
{
	*view = value->view;
	return value->kind == PSD_ONNX_DATA ||
	       (value->kind == PSD_ONNX_CONSTANT && !value->is_scattered && psd_onnx_elements(value) > 0);
}

static bool are_same_numbers(const struct psd_onnx_view *one, const struct psd_onnx_view *other)
{
	struct psd_onnx_view a = *one, b = *other;
	uint64_t sides = 1;

	for (unsigned d = 0; d < psd_onnx_view_digits(&a); d++)
		sides *= a.digits[d].size;
	if (a.offset != b.offset || !psd_onnx_view_reshape(&a, &sides, 1) || !psd_onnx_view_reshape(&b, &sides, 1) ||
	    !psd_onnx_view_align(&a, &b))
		return false;
	for (unsigned d = 0; d < psd_onnx_view_digits(&a); d++)
		if (a.digits[d].stride != b.digits[d].stride)
			return false;
	return true;
}

/* The constant seen through a view. */
static enum psd_status see(struct psd_onnx *onnx, struct psd_onnx_value *of, const struct psd_onnx_view *view,
			   struct psd_onnx_value *result)
{
	*result = *of;
	result->n_dims = view->n_axes;
	for (unsigned a = 0; a < view->n_axes; a++)
		result->dims[a] = psd_onnx_view_side(view, a);
	result->view = *view;
	if (are_same_numbers(&of->view, view))
		return PSD_OK;
	result->numbers = NULL;
	if (psd_onnx_elements(of) == 1) { /* repeated, it is no parameter of its own */
		const enum psd_status status = psd_onnx_read(onnx, of);

		result->base = of->numbers;
		result->origin = NULL;
		result->view.offset = 0;
		return status;
	}
	return PSD_OK;
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
	if (psd_onnx_input(onnx, 0)->rotary_base > 0)
		return psd_onnx_refuse(onnx, "takes places of what is rotated, which only attention is known to read");
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
	result.numbers = result.base = none;
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

/* No row twice, of so many. */
static bool are_distinct(struct psd_onnx *onnx, const struct psd_onnx_value *indices, uint64_t rows)
{
	bool *is_taken = psd_arena_take(&onnx->arena, (rows + 1) * sizeof(*is_taken)), are = is_taken;

	for (uint64_t e = 0; e < psd_onnx_elements(indices) && are; e++) {
		const double index = indices->numbers[e] < 0 ? indices->numbers[e] + (double)rows : indices->numbers[e];

		are = !is_taken[(uint64_t)index];
		is_taken[(uint64_t)index] = true;
	}
	return are;
}

/* Rows of a constant by the numbers of another, in any order. What is learned is no longer a view then. */
static enum psd_status scatter_rows(struct psd_onnx *onnx, unsigned axis, const struct psd_onnx_value *indices)
{
	struct psd_onnx_value *of = psd_onnx_input(onnx, 0), result = *of;
	const uint64_t n = psd_onnx_elements(indices);
	uint64_t inner = 1, outer = 1;
	double *numbers;
	enum psd_status status;

	for (unsigned d = 0; d < of->n_dims; d++) {
		inner *= d > axis ? of->dims[d] : 1;
		outer *= d < axis ? of->dims[d] : 1;
	}
	result.n_dims = of->n_dims - 1 + indices->n_dims;
	for (unsigned d = 0; d < indices->n_dims; d++)
		result.dims[axis + d] = indices->dims[d];
	for (unsigned d = axis + 1; d < of->n_dims; d++)
		result.dims[d - 1 + indices->n_dims] = of->dims[d];
	if (psd_onnx_is_learned(of) && !are_distinct(onnx, indices, of->dims[axis]))
		return psd_onnx_refuse(onnx, "takes what is learned several times");
	if (psd_onnx_is_learned(of)) {
		result.is_scattered = true;
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
	result.base = numbers;
	result.origin = NULL;
	(void)psd_onnx_by_rows(&result, &result.view);
	*psd_onnx_output(onnx, 0) = result;
	return PSD_OK;
}

/* ---- sequences ---- */

/* Pieces that are taken one by one: until then what they are pieces of. */
static enum psd_status split_to_sequence(struct psd_onnx *onnx)
{
	struct psd_onnx_value result = *psd_onnx_input(onnx, 0);
	struct psd_onnx_view view;
	const enum psd_status status = read_view(onnx, &view);

	if (status)
		return status;
	result.splitter = onnx->node;
	*psd_onnx_output(onnx, 0) = result;
	return PSD_OK;
}

/* From where on, and how many places, piece i is: of the sizes that are given, or one for all. */
static enum psd_status find_piece(struct psd_onnx *onnx, uint64_t side, int64_t i, uint64_t *first, uint64_t *n)
{
	enum { PIECES_MAX = 1024 };
	const bool has_sizes = psd_onnx_input(onnx, 1)->kind == PSD_ONNX_CONSTANT;
	const bool is_list = has_sizes && psd_onnx_input(onnx, 1)->n_dims == 1;
	int64_t sizes[PIECES_MAX] = {1}, n_pieces;
	unsigned n_sizes = 0;
	enum psd_status status = psd_onnx_integers(onnx, "split", 1, sizes, PIECES_MAX, &n_sizes);

	if (status)
		return status;
	for (unsigned s = 0; s < n_sizes; s++)
		if (sizes[s] < 1 || sizes[s] > (int64_t)side)
			return psd_onnx_refuse(onnx, "makes a piece of %lld of %llu", (long long)sizes[s],
					       (unsigned long long)side);
	n_pieces = is_list ? n_sizes : ((int64_t)side + sizes[0] - 1) / sizes[0];
	if (i < -n_pieces || i >= n_pieces)
		return psd_onnx_refuse(onnx, "has no piece %lld of %lld", (long long)i, (long long)n_pieces);
	i = i < 0 ? i + n_pieces : i;
	*first = is_list ? 0 : (uint64_t)(i * sizes[0]);
	for (int64_t s = 0; is_list && s < i; s++)
		*first += (uint64_t)sizes[s];
	*n = (uint64_t)sizes[is_list ? i : 0];
	if (*first >= side)
		return psd_onnx_refuse(onnx, "makes pieces beyond %llu places", (unsigned long long)side);
	*n = *n < side - *first ? *n : side - *first;
	return PSD_OK;
}

static enum psd_status sequence_at(struct psd_onnx *onnx)
{
	struct psd_onnx_value *of = psd_onnx_input(onnx, 0), piece = *of;
	const Onnx__Node *node = onnx->node;
	uint64_t first = 0, n = 0, sides[PSD_ONNX_AXES_MAX];
	unsigned axis = 0, n_sides = 0;
	bool keeps_axis;
	double i;
	enum psd_status status;

	if (!of->splitter || !psd_onnx_is_scalar(onnx, psd_onnx_input(onnx, 1), &i))
		return psd_onnx_refuse(onnx, "is known for pieces that SplitToSequence makes, by a number");
	onnx->node = of->splitter;
	status = psd_onnx_axis(onnx, psd_onnx_integer(onnx, "axis", 0), piece.view.n_axes, &axis);
	if (!status)
		status = find_piece(onnx, psd_onnx_view_side(&piece.view, axis), (int64_t)i, &first, &n);
	keeps_axis = psd_onnx_integer(onnx, "keepdims", 1) || psd_onnx_input(onnx, 1)->kind == PSD_ONNX_CONSTANT;
	onnx->node = node;
	if (!status)
		status = narrow(onnx, &piece.view, axis, first, n, 1);
	if (status)
		return status;
	for (unsigned a = 0; a < piece.view.n_axes; a++)
		if (a != axis || keeps_axis)
			sides[n_sides++] = psd_onnx_view_side(&piece.view, a);
	status = reshape_to(onnx, piece.view, sides, n_sides);
	psd_onnx_output(onnx, 0)->splitter = NULL;
	return status;
}

/* How indices go on from the first one. */
enum run { ALIKE, FOLLOWING, SCATTERED };

static enum psd_status find_run(struct psd_onnx *onnx, const struct psd_onnx_value *indices, uint64_t side,
				enum run *run)
{
	bool are_alike = true, do_follow = true;

	for (uint64_t e = 0; e < psd_onnx_elements(indices); e++) {
		const double index = indices->numbers[e];

		if (!(index >= -(double)side && index < (double)side))
			return psd_onnx_refuse(onnx, "takes place %g of %llu", index, (unsigned long long)side);
		are_alike = are_alike && index == indices->numbers[0];
		do_follow = do_follow && index == indices->numbers[0] + (double)e;
	}
	*run = do_follow ? FOLLOWING : are_alike ? ALIKE : SCATTERED;
	return psd_onnx_elements(indices) ? PSD_OK : psd_onnx_refuse(onnx, "takes no place");
}

/* By indices that are known. The same learned row for all of them is one row. */
static enum psd_status gather(struct psd_onnx *onnx)
{
	struct psd_onnx_value *of = psd_onnx_input(onnx, 0), *indices = psd_onnx_input(onnx, 1);
	struct psd_onnx_view view;
	uint64_t side, first, sides[PSD_ONNX_AXES_MAX];
	unsigned axis = 0, n = 0;
	enum run run = FOLLOWING;
	enum psd_status status = read_view(onnx, &view);

	if (!status)
		status = psd_onnx_axis(onnx, psd_onnx_integer(onnx, "axis", 0), view.n_axes, &axis);
	if (!status)
		status = psd_onnx_read(onnx, indices);
	if (status)
		return status;
	side = psd_onnx_view_side(&view, axis);
	status = find_run(onnx, indices, side, &run);
	if (!status && view.n_axes - 1 + indices->n_dims > PSD_ONNX_AXES_MAX)
		status = psd_onnx_refuse(onnx, "makes more than %u axes", PSD_ONNX_AXES_MAX);
	if (status)
		return status;
	if (of->kind == PSD_ONNX_CONSTANT && (run == SCATTERED || (run == ALIKE && !psd_onnx_is_learned(of))))
		return scatter_rows(onnx, axis, indices);
	if (of->kind != PSD_ONNX_CONSTANT && run != FOLLOWING)
		return psd_onnx_refuse(onnx, "takes places of the samples in an order that is not known");
	first = (uint64_t)(indices->numbers[0] < 0 ? indices->numbers[0] + (double)side : indices->numbers[0]);
	status = narrow(onnx, &view, axis, first, run == ALIKE ? 1 : psd_onnx_elements(indices), 1);
	if (status)
		return status;
	for (unsigned a = 0; a < axis; a++)
		sides[n++] = psd_onnx_view_side(&view, a);
	for (unsigned d = 0; d < indices->n_dims; d++)
		sides[n++] = run == ALIKE ? 1 : indices->dims[d];
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
	result.numbers = result.base = numbers;
	(void)psd_onnx_by_rows(&result, &result.view);
	*psd_onnx_output(onnx, 0) = result;
	return PSD_OK;
}

static enum psd_status pass(struct psd_onnx *onnx)
{
	*psd_onnx_output(onnx, 0) = *psd_onnx_input(onnx, 0);
	return PSD_OK;
}

/* Samples keep their values: other types do not round here. */
static enum psd_status cast(struct psd_onnx *onnx)
{
	const struct psd_onnx_value *data = psd_onnx_input(onnx, 0), *like = psd_onnx_input(onnx, 1);
	const int32_t type = (int32_t)psd_onnx_integer(onnx, "to", PSD_ONNX_FLOAT);
	const bool to_real = like->kind == PSD_ONNX_CONSTANT ? like->is_real : psd_onnx_is_real(type);
	const bool is_value = data->kind == PSD_ONNX_DATA || data->kind == PSD_ONNX_SCORES;
	double factor;

	if (is_value && !to_real &&
	    (!data->is_count || type == PSD_ONNX_BOOL || !psd_onnx_term_is_product(data->term, &factor) || factor != 1))
		return psd_onnx_refuse(onnx, "makes whole numbers or claims of samples, which no layer does");
	return pass(onnx);
}

/* ---- the operators ---- */

/* What cannot be said of a constant by a view of the file is said of a copy of its numbers, row by row; not of what is
 * learned, which has to be the file's. */
static enum psd_status see_or_copy(struct psd_onnx *onnx, psd_onnx_operator_fn *look)
{
	struct psd_onnx_value *of = psd_onnx_input(onnx, 0), given = *of;
	struct psd_error *const err = onnx->err;
	enum psd_status status;

	if (of->kind != PSD_ONNX_CONSTANT || of->is_scattered || psd_onnx_elements(of) == 0 || psd_onnx_is_learned(of))
		return look(onnx);
	onnx->err = NULL;
	status = look(onnx);
	onnx->err = err;
	if (!status || status == PSD_ENOMEM)
		return status ? psd_onnx_no_memory(onnx) : PSD_OK;
	status = psd_onnx_read(onnx, of);
	if (status)
		return status;
	given.numbers = of->base = of->numbers;
	of->origin = NULL;
	(void)psd_onnx_by_rows(of, &of->view);
	status = look(onnx);
	*of = given;
	return status;
}

static const struct {
	const char *op;
	enum psd_status (*see)(struct psd_onnx *onnx);
} shapers[] = {
	{"Reshape", reshape},
	{"Flatten", flatten},
	{"Squeeze", squeeze},
	{"Unsqueeze", unsqueeze},
	{"Expand", expand},
	{"Slice", slice},
	{"Split", split},
	{"Transpose", transpose},
	{"SplitToSequence", split_to_sequence},
	{"SequenceAt", sequence_at},
	{"Shape", shape},
	{"Size", shape},
};

enum psd_status psd_onnx_see(struct psd_onnx *onnx, bool *is_done)
{
	const char *op = onnx->node->op_type;
	const bool is_known = psd_onnx_input(onnx, 1)->kind == PSD_ONNX_CONSTANT;
	const enum psd_onnx_kind kind = psd_onnx_input(onnx, 0)->kind;

	*is_done = true;
	if (!strcmp(op, "Identity"))
		return pass(onnx);
	if (kind != PSD_ONNX_CONSTANT && (!strcmp(op, "Cast") || !strcmp(op, "CastLike")))
		return cast(onnx);
	if (!strcmp(op, "CastLike")) /* a constant, as samples are: with fractions */
		return psd_onnx_compute(onnx, is_done);
	if (!strcmp(op, "Gather") && is_known)
		return see_or_copy(onnx, gather);
	for (unsigned i = 0; i < sizeof(shapers) / sizeof(shapers[0]); i++)
		if (!strcmp(op, shapers[i].op))
			return see_or_copy(onnx, shapers[i].see);
	*is_done = false;
	return PSD_OK;
}
