/* Nodes that select positions of data or constants. */
#include <string.h>

#include "engine/model/onnx/parts.h"

static enum psd_status narrow(struct psd_onnx *onnx, struct psd_onnx_view *view, unsigned axis, uint64_t first,
			      uint64_t n, uint64_t step)
{
	if (psd_onnx_input(onnx, 0)->rotary_base > 0)
		return psd_onnx_refuse(onnx, "takes positions of a rotated input, which only attention can read");
	if (psd_onnx_view_narrow(view, axis, first, n, step))
		return PSD_OK;
	return psd_onnx_refuse(onnx, "takes %llu positions of axis %u from %llu on, which no view of its input has",
			       (unsigned long long)n, axis, (unsigned long long)first);
}

/* Sets the output to no position of an axis, as files do that compute shapes or shift maps by 0. */
static enum psd_status put_empty(struct psd_onnx *onnx, unsigned axis)
{
	static const double none[1];
	struct psd_onnx_value result = *psd_onnx_input(onnx, 0);

	if (result.kind == PSD_ONNX_DATA) {
		const struct psd_onnx_view view = result.view;

		result = (struct psd_onnx_value){
			.kind = PSD_ONNX_CONSTANT, .n_dims = view.n_axes, .is_real = !result.is_integer};
		for (unsigned a = 0; a < view.n_axes; a++)
			result.dims[a] = psd_onnx_view_dim(&view, a);
	}
	result.dims[axis] = 0;
	result.numbers = result.computed = none;
	result.origin = NULL;
	*psd_onnx_output(onnx, 0) = result;
	return PSD_OK;
}

enum psd_status psd_onnx_slice(struct psd_onnx *onnx)
{
	int64_t starts[PSD_ONNX_AXES_MAX], ends[PSD_ONNX_AXES_MAX], axes[PSD_ONNX_AXES_MAX], steps[PSD_ONNX_AXES_MAX];
	unsigned n, n_ends, n_axes, n_steps;
	struct psd_onnx_view view;

	PSD_TRY(psd_onnx_integers(onnx, "starts", 1, starts, PSD_ONNX_AXES_MAX, &n));
	PSD_TRY(psd_onnx_integers(onnx, "ends", 2, ends, PSD_ONNX_AXES_MAX, &n_ends));
	PSD_TRY(psd_onnx_integers(onnx, "axes", 3, axes, PSD_ONNX_AXES_MAX, &n_axes));
	PSD_TRY(psd_onnx_integers(onnx, "steps", 4, steps, PSD_ONNX_AXES_MAX, &n_steps));
	if (psd_onnx_input(onnx, 0)->kind == PSD_ONNX_CONSTANT && !psd_onnx_elements(psd_onnx_input(onnx, 0)) &&
	    n_ends == n && (!n_axes || n_axes == n) && (!n_steps || n_steps == n)) {
		for (unsigned i = 0; i < n && !n_steps; i++)
			steps[i] = 1;
		return psd_onnx_slice_numbers(onnx, starts, ends, n_axes ? axes : NULL, steps, n);
	}
	PSD_TRY(psd_onnx_read_view(onnx, &view));
	if (n_ends != n || (n_axes && n_axes != n) || (n_steps && n_steps != n))
		return psd_onnx_refuse(onnx, "has %u starts, %u ends, %u axes, %u steps, must have equally many", n,
				       n_ends, n_axes, n_steps);
	for (unsigned i = 0; i < n; i++) {
		int64_t dim, first, end;
		const int64_t step = n_steps ? steps[i] : 1;
		unsigned axis;

		PSD_TRY(psd_onnx_axis(onnx, n_axes ? axes[i] : i, view.n_axes, &axis));
		dim = (int64_t)psd_onnx_view_dim(&view, axis);
		first = psd_onnx_clamp(starts[i], dim);
		end = psd_onnx_clamp(ends[i], dim);
		if (step >= 1 && end <= first &&
		    (psd_onnx_input(onnx, 0)->kind == PSD_ONNX_CONSTANT || psd_onnx_allows_other(onnx)))
			return put_empty(onnx, axis);
		if (step < 0 && psd_onnx_input(onnx, 0)->kind == PSD_ONNX_CONSTANT)
			return psd_onnx_slice_numbers(onnx, starts, ends, n_axes ? axes : NULL, steps, n);
		if (step < 1 || end <= first)
			return psd_onnx_refuse(
				onnx, "takes positions from %lld to before %lld in steps of %lld, from an axis of %lld",
				(long long)starts[i], (long long)ends[i], (long long)step, (long long)dim);
		PSD_TRY(narrow(onnx, &view, axis, (uint64_t)first, (uint64_t)((end - first - 1) / step + 1),
			       (uint64_t)step));
	}
	return psd_onnx_put_view(onnx, psd_onnx_input(onnx, 0), &view, 0);
}

enum psd_status psd_onnx_split(struct psd_onnx *onnx)
{
	enum { PARTS_MAX = 1024 };
	int64_t parts[PARTS_MAX];
	unsigned n, axis = 0;
	const unsigned n_outputs = (unsigned)onnx->node->n_output;
	uint64_t first = 0, each = 1;
	struct psd_onnx_view view;

	PSD_TRY(psd_onnx_integers(onnx, "split", 1, parts, PARTS_MAX, &n));
	PSD_TRY(psd_onnx_read_view(onnx, &view));
	PSD_TRY(psd_onnx_axis(onnx, psd_onnx_integer(onnx, "axis", 0), view.n_axes, &axis));
	if (n && n != n_outputs)
		return psd_onnx_refuse(onnx, "has %u parts and %u outputs, must have equally many", n, n_outputs);
	each = (psd_onnx_view_dim(&view, axis) + n_outputs - 1) / n_outputs;
	for (unsigned i = 0; i < n_outputs; i++) {
		const uint64_t rest = psd_onnx_view_dim(&view, axis) - first;
		const uint64_t size = n ? (parts[i] > 0 ? (uint64_t)parts[i] : 0) : each < rest ? each : rest;
		struct psd_onnx_view part = view;

		PSD_TRY(narrow(onnx, &part, axis, first, size, 1));
		if (*onnx->node->output[i])
			PSD_TRY(psd_onnx_put_view(onnx, psd_onnx_input(onnx, 0), &part, i));
		first += size;
	}
	return PSD_OK;
}

/* Does no index occur twice? rows: limit of the indices. */
static bool are_distinct(struct psd_onnx *onnx, const struct psd_onnx_value *indices, uint64_t rows)
{
	bool *is_used = psd_arena_take(&onnx->arena, (rows + 1) * sizeof(*is_used)), are = is_used;

	for (uint64_t e = 0; e < psd_onnx_elements(indices) && are; e++) {
		const double index = indices->numbers[e] < 0 ? indices->numbers[e] + (double)rows : indices->numbers[e];

		are = !is_used[(uint64_t)index];
		is_used[(uint64_t)index] = true;
	}
	return are;
}

/* Gathers rows of a constant in any order. The rows of a parameter are no longer a view of the file. */
static enum psd_status gather_rows(struct psd_onnx *onnx, unsigned axis, const struct psd_onnx_value *indices)
{
	struct psd_onnx_value *of = psd_onnx_input(onnx, 0), result = *of;
	const uint64_t n = psd_onnx_elements(indices);
	uint64_t inner = 1, outer = 1;
	double *numbers;

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
		return psd_onnx_refuse(onnx, "takes a learned row several times, which no layer can do");
	if (psd_onnx_is_learned(of)) {
		result.is_gathered = true;
		result.numbers = NULL;
		*psd_onnx_output(onnx, 0) = result;
		return PSD_OK;
	}
	PSD_TRY(psd_onnx_read_numbers(onnx, of));
	PSD_TRY(psd_onnx_alloc_numbers(onnx, &result, &numbers));
	for (uint64_t o = 0; o < outer; o++)
		for (uint64_t e = 0; e < n; e++) {
			const double index = indices->numbers[e];
			const uint64_t row = (uint64_t)(index < 0 ? index + (double)of->dims[axis] : index);

			memcpy(numbers + (o * n + e) * inner, of->numbers + (o * of->dims[axis] + row) * inner,
			       inner * sizeof(*numbers));
		}
	result.computed = numbers;
	result.origin = NULL;
	(void)psd_onnx_by_rows(&result, &result.view);
	*psd_onnx_output(onnx, 0) = result;
	return PSD_OK;
}

/* ---- sequences ---- */

enum { MOST_LISTED = 256 };

/* Sets the output to a list of n values, of which `skipped` has no value yet: *gap is its room. */
static enum psd_status put_list(struct psd_onnx *onnx, const struct psd_onnx_list *from, unsigned n, unsigned skipped,
				struct psd_onnx_value **gap)
{
	struct psd_onnx_list *list;

	if (n > MOST_LISTED)
		return psd_onnx_refuse(onnx, "makes a sequence of more than %u values", MOST_LISTED);
	list = psd_arena_take(&onnx->arena, sizeof(*list) + n * sizeof(list->values[0]));
	if (!list)
		return psd_onnx_no_memory(onnx);
	list->n = n;
	for (unsigned i = 0; from && i < from->n; i++)
		list->values[i + (i >= skipped)] = from->values[i];
	*gap = list->values + skipped;
	*psd_onnx_output(onnx, 0) = (struct psd_onnx_value){.kind = PSD_ONNX_SEQUENCE, .list = list};
	return PSD_OK;
}

enum psd_status psd_onnx_sequence_of(struct psd_onnx *onnx)
{
	struct psd_onnx_value *values;

	PSD_TRY(put_list(onnx, NULL, (unsigned)onnx->node->n_input, 0, &values));
	for (unsigned i = 0; i < onnx->node->n_input; i++)
		values[i] = *psd_onnx_input(onnx, i);
	return PSD_OK;
}

/* Sets *place to a constant place in a list of n; a negative one counts from the end. */
static enum psd_status find_place(struct psd_onnx *onnx, unsigned input, unsigned n, unsigned *place)
{
	double number;

	if (!psd_onnx_is_scalar(onnx, psd_onnx_input(onnx, input), &number) || !(number >= -(double)n && number < n))
		return psd_onnx_refuse(onnx, "must name one of %u values by a constant number", n);
	*place = (unsigned)(number < 0 ? number + n : number);
	return PSD_OK;
}

enum psd_status psd_onnx_sequence_insert(struct psd_onnx *onnx)
{
	const struct psd_onnx_value *sequence = psd_onnx_input(onnx, 0);
	struct psd_onnx_value *gap;

	if (sequence->kind != PSD_ONNX_SEQUENCE || !sequence->list)
		return psd_onnx_refuse(onnx, "must insert into a list of values");
	unsigned place = sequence->list->n;
	if (psd_onnx_input(onnx, 2)->kind != PSD_ONNX_ABSENT)
		PSD_TRY(find_place(onnx, 2, sequence->list->n + 1, &place));
	PSD_TRY(put_list(onnx, sequence->list, sequence->list->n + 1, place, &gap));
	*gap = *psd_onnx_input(onnx, 1);
	return PSD_OK;
}

enum psd_status psd_onnx_sequence_length(struct psd_onnx *onnx)
{
	const struct psd_onnx_value *sequence = psd_onnx_input(onnx, 0);
	struct psd_onnx_value result = {.kind = PSD_ONNX_CONSTANT};
	double *numbers;

	if (sequence->kind != PSD_ONNX_SEQUENCE || !sequence->list)
		return psd_onnx_refuse(onnx, "must count a list of values");
	PSD_TRY(psd_onnx_alloc_numbers(onnx, &result, &numbers));
	numbers[0] = sequence->list->n;
	result.computed = numbers;
	(void)psd_onnx_by_rows(&result, &result.view);
	*psd_onnx_output(onnx, 0) = result;
	return PSD_OK;
}

/* The sequence is its whole input until SequenceAt takes a piece. */
enum psd_status psd_onnx_split_to_sequence(struct psd_onnx *onnx)
{
	struct psd_onnx_value result = *psd_onnx_input(onnx, 0);
	struct psd_onnx_view view;

	PSD_TRY(psd_onnx_read_view(onnx, &view));
	result.kind = PSD_ONNX_SEQUENCE;
	result.split_node = onnx->node;
	*psd_onnx_output(onnx, 0) = result;
	return PSD_OK;
}

/* Finds the first position of a piece and the number of its positions, from a list of sizes or one size for all. */
static enum psd_status find_piece(struct psd_onnx *onnx, uint64_t dim, double piece, uint64_t *first, uint64_t *n)
{
	enum { PIECES_MAX = 1024 };
	const bool has_sizes = psd_onnx_input(onnx, 1)->kind == PSD_ONNX_CONSTANT;
	const bool is_list = has_sizes && psd_onnx_input(onnx, 1)->n_dims == 1;
	int64_t sizes[PIECES_MAX] = {1}, n_pieces, i;
	unsigned n_sizes = 0;

	PSD_TRY(psd_onnx_integers(onnx, "split", 1, sizes, PIECES_MAX, &n_sizes));
	for (unsigned s = 0; s < n_sizes; s++)
		if (sizes[s] < 1 || sizes[s] > (int64_t)dim)
			return psd_onnx_refuse(onnx, "makes a piece of %lld positions, must have 1 to %llu",
					       (long long)sizes[s], (unsigned long long)dim);
	n_pieces = is_list ? n_sizes : ((int64_t)dim + sizes[0] - 1) / sizes[0];
	if (!(piece >= (double)-n_pieces && piece < (double)n_pieces))
		return psd_onnx_refuse(onnx, "takes piece number %.0f, there are %lld", piece, (long long)n_pieces);
	i = (int64_t)piece < 0 ? (int64_t)piece + n_pieces : (int64_t)piece;
	*first = is_list ? 0 : (uint64_t)(i * sizes[0]);
	for (int64_t s = 0; is_list && s < i; s++)
		*first += (uint64_t)sizes[s];
	*n = (uint64_t)sizes[is_list ? i : 0];
	if (*first >= dim)
		return psd_onnx_refuse(onnx, "makes pieces beyond the end of an axis of %llu positions",
				       (unsigned long long)dim);
	*n = *n < dim - *first ? *n : dim - *first;
	return PSD_OK;
}

enum psd_status psd_onnx_sequence_at(struct psd_onnx *onnx)
{
	struct psd_onnx_value *of = psd_onnx_input(onnx, 0), piece = *of;
	struct psd_onnx_view view = of->view;
	const Onnx__Node *node = onnx->node;
	uint64_t first = 0, n = 0, dims[PSD_ONNX_AXES_MAX];
	unsigned axis = 0, n_dims = 0;
	double i;

	if (of->kind == PSD_ONNX_SEQUENCE && of->list) {
		PSD_TRY(find_place(onnx, 1, of->list->n, &axis));
		*psd_onnx_output(onnx, 0) = of->list->values[axis];
		return PSD_OK;
	}
	if (of->kind != PSD_ONNX_SEQUENCE || !psd_onnx_is_scalar(onnx, psd_onnx_input(onnx, 1), &i))
		return psd_onnx_refuse(onnx, "must take a piece of a SplitToSequence by a constant number");
	piece.kind = of->expr ? PSD_ONNX_DATA : PSD_ONNX_CONSTANT;
	onnx->node = of->split_node;
	PSD_TRY(psd_onnx_axis(onnx, psd_onnx_integer(onnx, "axis", 0), view.n_axes, &axis));
	PSD_TRY(find_piece(onnx, psd_onnx_view_dim(&view, axis), i, &first, &n));
	const bool keeps_axis =
		psd_onnx_integer(onnx, "keepdims", 1) || psd_onnx_input(onnx, 1)->kind == PSD_ONNX_CONSTANT;
	onnx->node = node;
	PSD_TRY(narrow(onnx, &view, axis, first, n, 1));
	for (unsigned a = 0; a < view.n_axes; a++)
		if (a != axis || keeps_axis)
			dims[n_dims++] = psd_onnx_view_dim(&view, a);
	(void)psd_onnx_view_reshape(&view, dims, n_dims); /* drops an axis of size 1 at most */
	return psd_onnx_put_view(onnx, &piece, &view, 0);
}

/* Order of indices. */
enum run { EQUAL, CONSECUTIVE, ANY_ORDER };

static enum psd_status find_run(struct psd_onnx *onnx, const struct psd_onnx_value *indices, uint64_t dim,
				enum run *run)
{
	bool are_equal = true, are_consecutive = true;

	for (uint64_t e = 0; e < psd_onnx_elements(indices); e++) {
		const double index = indices->numbers[e];

		if (!(index >= -(double)dim && index < (double)dim))
			return psd_onnx_refuse(onnx, "takes position %g of an axis with %llu", index,
					       (unsigned long long)dim);
		are_equal = are_equal && index == indices->numbers[0];
		are_consecutive = are_consecutive && index == indices->numbers[0] + (double)e;
	}
	*run = are_consecutive ? CONSECUTIVE : are_equal ? EQUAL : ANY_ORDER;
	return psd_onnx_elements(indices) ? PSD_OK : psd_onnx_refuse(onnx, "takes no position, must take one or more");
}

/* Equal indices into a parameter give one row. */
enum psd_status psd_onnx_gather(struct psd_onnx *onnx)
{
	struct psd_onnx_value *of = psd_onnx_input(onnx, 0), *indices = psd_onnx_input(onnx, 1);
	struct psd_onnx_view view;
	uint64_t dim, first, dims[PSD_ONNX_AXES_MAX];
	unsigned axis = 0, n = 0;
	enum run run = CONSECUTIVE;

	PSD_TRY(psd_onnx_read_view(onnx, &view));
	PSD_TRY(psd_onnx_axis(onnx, psd_onnx_integer(onnx, "axis", 0), view.n_axes, &axis));
	PSD_TRY(psd_onnx_read_numbers(onnx, indices));
	dim = psd_onnx_view_dim(&view, axis);
	PSD_TRY(find_run(onnx, indices, dim, &run));
	if (view.n_axes - 1 + indices->n_dims > PSD_ONNX_AXES_MAX)
		return psd_onnx_refuse(onnx, "makes more than %u axes", PSD_ONNX_AXES_MAX);
	if (of->kind == PSD_ONNX_CONSTANT && (run == ANY_ORDER || (run == EQUAL && !psd_onnx_is_learned(of))))
		return gather_rows(onnx, axis, indices);
	if (of->kind != PSD_ONNX_CONSTANT && run != CONSECUTIVE)
		return psd_onnx_refuse(onnx, "takes positions of the samples in an order that psd cannot express");
	first = (uint64_t)(indices->numbers[0] < 0 ? indices->numbers[0] + (double)dim : indices->numbers[0]);
	PSD_TRY(narrow(onnx, &view, axis, first, run == EQUAL ? 1 : psd_onnx_elements(indices), 1));
	for (unsigned a = 0; a < axis; a++)
		dims[n++] = psd_onnx_view_dim(&view, a);
	for (unsigned d = 0; d < indices->n_dims; d++)
		dims[n++] = run == EQUAL ? 1 : indices->dims[d];
	for (unsigned a = axis + 1; a < view.n_axes; a++)
		dims[n++] = psd_onnx_view_dim(&view, a);
	return psd_onnx_reshape_to(onnx, view, dims, n);
}
