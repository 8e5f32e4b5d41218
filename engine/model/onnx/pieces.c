/* Nodes that take part of what they are given, of constants and of data alike. */
#include <string.h>

#include "engine/model/onnx/parts.h"

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

enum psd_status psd_onnx_slice(struct psd_onnx *onnx)
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
		status = psd_onnx_read_view(onnx, &view);
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
		first = psd_onnx_clamp(starts[i], side);
		end = psd_onnx_clamp(ends[i], side);
		if (step >= 1 && end <= first && psd_onnx_input(onnx, 0)->kind == PSD_ONNX_CONSTANT)
			return put_nothing(onnx, axis);
		if (step < 1 || end <= first)
			return psd_onnx_refuse(onnx, "takes places from %lld to before %lld by %lld of %lld",
					       (long long)starts[i], (long long)ends[i], (long long)step,
					       (long long)side);
		status = narrow(onnx, &view, axis, (uint64_t)first, (uint64_t)((end - first - 1) / step + 1),
				(uint64_t)step);
	}
	return status ? status : psd_onnx_put_view(onnx, psd_onnx_input(onnx, 0), &view, 0);
}

enum psd_status psd_onnx_split(struct psd_onnx *onnx)
{
	enum { PARTS_MAX = 1024 };
	int64_t parts[PARTS_MAX];
	unsigned n, axis = 0;
	const unsigned n_outputs = (unsigned)onnx->node->n_output;
	uint64_t first = 0, each = 1;
	struct psd_onnx_view view;
	enum psd_status status = psd_onnx_integers(onnx, "split", 1, parts, PARTS_MAX, &n);

	if (!status)
		status = psd_onnx_read_view(onnx, &view);
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
			status = psd_onnx_put_view(onnx, psd_onnx_input(onnx, 0), &part, i);
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
enum psd_status psd_onnx_split_to_sequence(struct psd_onnx *onnx)
{
	struct psd_onnx_value result = *psd_onnx_input(onnx, 0);
	struct psd_onnx_view view;
	const enum psd_status status = psd_onnx_read_view(onnx, &view);

	if (status)
		return status;
	result.kind = PSD_ONNX_PIECES;
	result.splitter = onnx->node;
	*psd_onnx_output(onnx, 0) = result;
	return PSD_OK;
}

/* From where on, and how many places, a piece is: of the sizes that are given, or one for all. */
static enum psd_status find_piece(struct psd_onnx *onnx, uint64_t side, double piece, uint64_t *first, uint64_t *n)
{
	enum { PIECES_MAX = 1024 };
	const bool has_sizes = psd_onnx_input(onnx, 1)->kind == PSD_ONNX_CONSTANT;
	const bool is_list = has_sizes && psd_onnx_input(onnx, 1)->n_dims == 1;
	int64_t sizes[PIECES_MAX] = {1}, n_pieces, i;
	unsigned n_sizes = 0;
	enum psd_status status = psd_onnx_integers(onnx, "split", 1, sizes, PIECES_MAX, &n_sizes);

	if (status)
		return status;
	for (unsigned s = 0; s < n_sizes; s++)
		if (sizes[s] < 1 || sizes[s] > (int64_t)side)
			return psd_onnx_refuse(onnx, "makes a piece of %lld of %llu", (long long)sizes[s],
					       (unsigned long long)side);
	n_pieces = is_list ? n_sizes : ((int64_t)side + sizes[0] - 1) / sizes[0];
	if (!(piece >= (double)-n_pieces && piece < (double)n_pieces))
		return psd_onnx_refuse(onnx, "has no piece %.0f of %lld", piece, (long long)n_pieces);
	i = (int64_t)piece < 0 ? (int64_t)piece + n_pieces : (int64_t)piece;
	*first = is_list ? 0 : (uint64_t)(i * sizes[0]);
	for (int64_t s = 0; is_list && s < i; s++)
		*first += (uint64_t)sizes[s];
	*n = (uint64_t)sizes[is_list ? i : 0];
	if (*first >= side)
		return psd_onnx_refuse(onnx, "makes pieces beyond %llu places", (unsigned long long)side);
	*n = *n < side - *first ? *n : side - *first;
	return PSD_OK;
}

enum psd_status psd_onnx_sequence_at(struct psd_onnx *onnx)
{
	struct psd_onnx_value *of = psd_onnx_input(onnx, 0), piece = *of;
	struct psd_onnx_view view = of->view;
	const Onnx__Node *node = onnx->node;
	uint64_t first = 0, n = 0, sides[PSD_ONNX_AXES_MAX];
	unsigned axis = 0, n_sides = 0;
	bool keeps_axis;
	double i;
	enum psd_status status;

	if (of->kind != PSD_ONNX_PIECES || !psd_onnx_is_scalar(onnx, psd_onnx_input(onnx, 1), &i))
		return psd_onnx_refuse(onnx, "is known for pieces that SplitToSequence makes, by a number");
	piece.kind = of->term ? PSD_ONNX_DATA : PSD_ONNX_CONSTANT;
	onnx->node = of->splitter;
	status = psd_onnx_axis(onnx, psd_onnx_integer(onnx, "axis", 0), view.n_axes, &axis);
	if (!status)
		status = find_piece(onnx, psd_onnx_view_side(&view, axis), i, &first, &n);
	keeps_axis = psd_onnx_integer(onnx, "keepdims", 1) || psd_onnx_input(onnx, 1)->kind == PSD_ONNX_CONSTANT;
	onnx->node = node;
	if (!status)
		status = narrow(onnx, &view, axis, first, n, 1);
	if (status)
		return status;
	for (unsigned a = 0; a < view.n_axes; a++)
		if (a != axis || keeps_axis)
			sides[n_sides++] = psd_onnx_view_side(&view, a);
	(void)psd_onnx_view_reshape(&view, sides, n_sides); /* an axis of one place, at most, falls away */
	return psd_onnx_put_view(onnx, &piece, &view, 0);
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
enum psd_status psd_onnx_gather(struct psd_onnx *onnx)
{
	struct psd_onnx_value *of = psd_onnx_input(onnx, 0), *indices = psd_onnx_input(onnx, 1);
	struct psd_onnx_view view;
	uint64_t side, first, sides[PSD_ONNX_AXES_MAX];
	unsigned axis = 0, n = 0;
	enum run run = FOLLOWING;
	enum psd_status status = psd_onnx_read_view(onnx, &view);

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
	return psd_onnx_reshape_to(onnx, view, sides, n);
}
