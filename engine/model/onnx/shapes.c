/* Nodes that reshape, transpose or expand data or constants. Both are views; that of a constant is of its numbers, row
 * by row. */
#include <string.h>

#include "engine/base/saturate.h"
#include "engine/model/layer.h"
#include "engine/model/onnx/parts.h"

static bool view_of(const struct psd_onnx_value *value, struct psd_onnx_view *view)
{
	*view = value->view;
	return value->kind == PSD_ONNX_DATA ||
	       (value->kind == PSD_ONNX_CONSTANT && !value->is_gathered && psd_onnx_elements(value) > 0);
}

/* Sets *result to another view of a constant. */
static enum psd_status view_constant(struct psd_onnx *onnx, struct psd_onnx_value *of, const struct psd_onnx_view *view,
				     struct psd_onnx_value *result)
{
	*result = *of;
	result->n_dims = view->n_axes;
	for (unsigned a = 0; a < view->n_axes; a++)
		result->dims[a] = psd_onnx_view_dim(view, a);
	result->view = *view;
	if (psd_onnx_view_is_same_list(&of->view, view))
		return PSD_OK;
	result->numbers = NULL;
	if (psd_onnx_elements(of) == 1) { /* a repeated number is not a parameter */
		const enum psd_status status = psd_onnx_read_numbers(onnx, of);

		result->computed = of->numbers;
		result->origin = NULL;
		result->view.offset = 0;
		return status;
	}
	return PSD_OK;
}

enum psd_status psd_onnx_put_view(struct psd_onnx *onnx, struct psd_onnx_value *of, const struct psd_onnx_view *view,
				  unsigned output)
{
	struct psd_onnx_value result = *of;

	if (of->kind == PSD_ONNX_CONSTANT) {
		PSD_TRY(view_constant(onnx, of, view, &result));
	} else {
		result.view = *view;
	}
	*psd_onnx_output(onnx, output) = result;
	return PSD_OK;
}

enum psd_status psd_onnx_read_view(struct psd_onnx *onnx, struct psd_onnx_view *view)
{
	const struct psd_onnx_value *input = psd_onnx_input(onnx, 0);

	if (view_of(input, view))
		return PSD_OK;
	return input->kind == PSD_ONNX_SCORES
		       ? psd_onnx_refuse(onnx, "changes the shape of attention's scores, which psd does not support")
		       : psd_onnx_refuse(onnx, "has an input that psd cannot view in another shape");
}

int64_t psd_onnx_clamp(int64_t position, int64_t dim)
{
	position = position < 0 && position > INT64_MIN / 2 ? position + dim : position;
	return position < 0 ? 0 : position > dim ? dim : position;
}

/* ---- reshapes ---- */

/* Refuses to change the shape of the view to dims[]. */
static enum psd_status refuse_shape(struct psd_onnx *onnx, const struct psd_onnx_view *view, const char *verb,
				    const uint64_t dims[], unsigned n)
{
	char from[PSD_ONNX_SHAPE_TEXT_MAX], to[PSD_ONNX_SHAPE_TEXT_MAX];
	uint64_t old[PSD_ONNX_AXES_MAX], old_values = 1, values = 1;

	for (unsigned a = 0; a < view->n_axes; a++) {
		old[a] = psd_onnx_view_dim(view, a);
		old_values = psd_saturated_mul(old_values, old[a]);
	}
	for (unsigned a = 0; a < n; a++)
		values = psd_saturated_mul(values, dims[a]);
	return psd_onnx_refuse(onnx, "cannot %s an input of shape %s to %s%s", verb,
			       psd_onnx_write_shape(from, old, view->n_axes), psd_onnx_write_shape(to, dims, n),
			       values == old_values ? ": psd cannot express that order of its values" : "");
}

enum psd_status psd_onnx_reshape_to(struct psd_onnx *onnx, struct psd_onnx_view view, const uint64_t dims[], unsigned n)
{
	if (!psd_onnx_view_reshape(&view, dims, n))
		return refuse_shape(onnx, &view, "reshape", dims, n);
	return psd_onnx_put_view(onnx, psd_onnx_input(onnx, 0), &view, 0);
}

static bool is_nothing(const struct psd_onnx *onnx)
{
	const struct psd_onnx_value *of = psd_onnx_input(onnx, 0);

	return of->kind == PSD_ONNX_CONSTANT && psd_onnx_elements(of) == 0 && psd_onnx_allows_other(onnx);
}

/* Sets the output to a constant without numbers, as the input is. */
static enum psd_status put_nothing(const struct psd_onnx *onnx, const uint64_t dims[], unsigned n)
{
	struct psd_onnx_value result = *psd_onnx_input(onnx, 0);
	bool has_zero = false;

	result.n_dims = n;
	for (unsigned a = 0; a < n; a++) {
		result.dims[a] = dims[a];
		has_zero = has_zero || !dims[a];
	}
	if (!has_zero && n)
		result.dims[0] = 0;
	*psd_onnx_output(onnx, 0) = result;
	return PSD_OK;
}

/* The same for a wanted shape. 0 keeps an axis. */
static enum psd_status reshape_nothing(const struct psd_onnx *onnx, const int64_t wanted[], unsigned n)
{
	const struct psd_onnx_value *of = psd_onnx_input(onnx, 0);
	uint64_t dims[PSD_ONNX_AXES_MAX] = {0};

	for (unsigned a = 0; a < n; a++)
		dims[a] = wanted[a] > 0 ? (uint64_t)wanted[a] : wanted[a] == 0 && a < of->n_dims ? of->dims[a] : 0;
	return put_nothing(onnx, dims, n);
}

static enum psd_status reshape(struct psd_onnx *onnx)
{
	int64_t wanted[PSD_ONNX_AXES_MAX];
	uint64_t dims[PSD_ONNX_AXES_MAX], values = 1, known = 1;
	struct psd_onnx_view view;
	unsigned n, open = PSD_ONNX_AXES_MAX;

	PSD_TRY(psd_onnx_integers(onnx, "shape", 1, wanted, PSD_ONNX_AXES_MAX, &n));
	if (is_nothing(onnx))
		return reshape_nothing(onnx, wanted, n);
	PSD_TRY(psd_onnx_read_view(onnx, &view));
	for (unsigned a = 0; a < view.n_axes; a++)
		values *= psd_onnx_view_dim(&view, a);
	for (unsigned a = 0; a < n; a++) {
		if (wanted[a] < -1 || wanted[a] > UINT32_MAX || (wanted[a] == 0 && a >= view.n_axes) ||
		    (wanted[a] == -1 && open < n))
			return psd_onnx_refuse(onnx, "makes axis %u of size %lld, which is not possible", a,
					       (long long)wanted[a]);
		if (wanted[a] == -1)
			open = a;
		dims[a] = wanted[a] > 0 ? (uint64_t)wanted[a] : wanted[a] == 0 ? psd_onnx_view_dim(&view, a) : 1;
		known *= dims[a];
	}
	if (open < n)
		dims[open] = known ? values / known : 0;
	return psd_onnx_reshape_to(onnx, view, dims, n);
}

static enum psd_status flatten(struct psd_onnx *onnx)
{
	struct psd_onnx_view view;
	uint64_t dims[2] = {1, 1};
	int64_t axis = psd_onnx_integer(onnx, "axis", 1);

	PSD_TRY(psd_onnx_read_view(onnx, &view));
	axis = psd_onnx_clamp(axis, view.n_axes);
	for (unsigned a = 0; a < view.n_axes; a++)
		dims[a >= axis] *= psd_onnx_view_dim(&view, a);
	return psd_onnx_reshape_to(onnx, view, dims, 2);
}

/* Drops axes of size 1, all or those that are named, or adds named ones. */
static enum psd_status squeeze(struct psd_onnx *onnx)
{
	const bool are_added = !strcmp(onnx->node->op_type, "Unsqueeze");
	uint64_t dims[PSD_ONNX_AXES_MAX];
	struct psd_onnx_view view;
	bool is_named[PSD_ONNX_AXES_MAX];
	const struct psd_onnx_value *of = psd_onnx_input(onnx, 0);
	const bool is_empty = is_nothing(onnx);
	unsigned n, n_axes, n_dims = 0, next = 0;

	if (!is_empty)
		PSD_TRY(psd_onnx_read_view(onnx, &view));
	n_axes = is_empty ? of->n_dims : view.n_axes;
	PSD_TRY(psd_onnx_mark_axes(onnx, n_axes, are_added, is_named, &n));
	for (unsigned a = 0; a < n_axes + (are_added ? n : 0); a++) {
		const bool is_new = (are_added && is_named[a]) || next == n_axes;
		const uint64_t dim = is_new ? 1 : is_empty ? of->dims[next] : psd_onnx_view_dim(&view, next);

		next += !is_new;
		if (are_added || (!is_named[a] && (n || dim != 1)))
			dims[n_dims++] = dim;
	}
	if (is_empty)
		return put_nothing(onnx, dims, n_dims);
	return psd_onnx_reshape_to(onnx, view, dims, n_dims);
}

static enum psd_status expand(struct psd_onnx *onnx)
{
	int64_t wanted[PSD_ONNX_AXES_MAX];
	uint64_t dims[PSD_ONNX_AXES_MAX];
	struct psd_onnx_view view;
	unsigned n, n_dims;

	PSD_TRY(psd_onnx_integers(onnx, "shape", 1, wanted, PSD_ONNX_AXES_MAX, &n));
	if (is_nothing(onnx))
		return reshape_nothing(onnx, wanted, n);
	PSD_TRY(psd_onnx_read_view(onnx, &view));
	n_dims = n > view.n_axes ? n : view.n_axes;
	for (unsigned a = 0; a < n_dims; a++) {
		const int64_t dim = a + n >= n_dims ? wanted[a + n - n_dims] : 1;

		dims[a] = dim > 0 ? (uint64_t)dim : 0;
	}
	if (!psd_onnx_view_expand(&view, dims, n_dims))
		return refuse_shape(onnx, &view, "broadcast", dims, n_dims);
	return psd_onnx_put_view(onnx, psd_onnx_input(onnx, 0), &view, 0);
}

static enum psd_status transpose(struct psd_onnx *onnx)
{
	int64_t perm[PSD_ONNX_AXES_MAX];
	unsigned order[PSD_ONNX_AXES_MAX] = {0}, n;
	struct psd_onnx_view view;

	PSD_TRY(psd_onnx_integers(onnx, "perm", 0, perm, PSD_ONNX_AXES_MAX, &n));
	PSD_TRY(psd_onnx_read_view(onnx, &view));
	for (unsigned a = 0; a < view.n_axes; a++)
		order[a] = n ? (a < n && perm[a] >= 0 && perm[a] < view.n_axes ? (unsigned)perm[a] : UINT32_MAX)
			     : view.n_axes - 1 - a;
	if (!psd_onnx_view_transpose(&view, order))
		return psd_onnx_refuse(onnx, "has a 'perm' that must name each of %u axes once", view.n_axes);
	return psd_onnx_put_view(onnx, psd_onnx_input(onnx, 0), &view, 0);
}

/* ---- blocks ---- */

/* Moves channels to blocks of positions or back: reshapes to six axes, transposes, and reshapes to four. */
static enum psd_status move_blocks(struct psd_onnx *onnx, const uint64_t dims[6], const unsigned order[6],
				   const uint64_t joined[4])
{
	struct psd_onnx_view view = psd_onnx_input(onnx, 0)->view;

	if (!psd_onnx_view_reshape(&view, dims, 6) || !psd_onnx_view_transpose(&view, order))
		return psd_onnx_refuse(onnx, "has an input whose positions no view divides into blocks");
	return psd_onnx_reshape_to(onnx, view, joined, 4);
}

static enum psd_status read_blocks(struct psd_onnx *onnx, uint64_t dims[4], uint64_t *block)
{
	struct psd_onnx_view view;
	const int64_t size = psd_onnx_integer(onnx, "blocksize", 0);

	PSD_TRY(psd_onnx_read_view(onnx, &view));
	if (view.n_axes != 4 || size < 1 || size > 1024)
		return psd_onnx_refuse(onnx, "must have an input of four axes, and a 'blocksize' from 1 to 1024");
	for (unsigned a = 0; a < 4; a++)
		dims[a] = psd_onnx_view_dim(&view, a);
	*block = (uint64_t)size;
	return PSD_OK;
}

static enum psd_status depth_to_space(struct psd_onnx *onnx)
{
	const bool is_inner =
		psd_onnx_text_is(onnx, "mode", "CRD"); /* the values of a block come from consecutive channels */
	const unsigned of_inner[6] = {0, 1, 4, 2, 5, 3}, of_outer[6] = {0, 3, 4, 1, 5, 2};
	uint64_t dims[4], b;

	PSD_TRY(read_blocks(onnx, dims, &b));
	if (dims[1] % (b * b))
		return psd_onnx_refuse(onnx, "makes blocks of %llu values from %llu channels, must divide them",
				       (unsigned long long)(b * b), (unsigned long long)dims[1]);
	return move_blocks(onnx,
			   is_inner ? (const uint64_t[]){dims[0], dims[1] / (b * b), b, b, dims[2], dims[3]}
				    : (const uint64_t[]){dims[0], b, b, dims[1] / (b * b), dims[2], dims[3]},
			   is_inner ? of_inner : of_outer,
			   (const uint64_t[]){dims[0], dims[1] / (b * b), dims[2] * b, dims[3] * b});
}

static enum psd_status space_to_depth(struct psd_onnx *onnx)
{
	const unsigned order[6] = {0, 3, 5, 1, 2, 4};
	uint64_t dims[4], b;

	PSD_TRY(read_blocks(onnx, dims, &b));
	if (dims[2] % b || dims[3] % b)
		return psd_onnx_refuse(onnx,
				       "makes blocks of %llu by %llu from %llu by %llu positions, must divide them",
				       (unsigned long long)b, (unsigned long long)b, (unsigned long long)dims[2],
				       (unsigned long long)dims[3]);
	return move_blocks(onnx, (const uint64_t[]){dims[0], dims[1], dims[2] / b, b, dims[3] / b, b}, order,
			   (const uint64_t[]){dims[0], dims[1] * b * b, dims[2] / b, dims[3] / b});
}

/* ---- shapes as values ---- */

static enum psd_status shape(struct psd_onnx *onnx)
{
	const struct psd_onnx_value *of = psd_onnx_input(onnx, 0);
	struct psd_onnx_value result = {.kind = PSD_ONNX_CONSTANT, .n_dims = 1};
	const bool is_integer = !strcmp(onnx->node->op_type, "Size");
	const bool is_empty = of->kind == PSD_ONNX_CONSTANT && !psd_onnx_elements(of); /* no view has no values */
	int64_t start = psd_onnx_integer(onnx, "start", 0), end = psd_onnx_integer(onnx, "end", PSD_ONNX_AXES_MAX);
	struct psd_onnx_view view = {.layer = 0};
	double *numbers = psd_arena_take(&onnx->arena, PSD_ONNX_AXES_MAX * sizeof(*numbers)), count = 1;

	if (!is_empty)
		PSD_TRY(psd_onnx_read_view(onnx, &view));
	if (!numbers)
		return psd_onnx_no_memory(onnx);
	const unsigned n = is_empty ? of->n_dims : view.n_axes;
	start = psd_onnx_clamp(start, n);
	end = psd_onnx_clamp(end, n);
	for (int64_t a = 0; a < n; a++) {
		const double side = (double)(is_empty ? of->dims[a] : psd_onnx_view_dim(&view, (unsigned)a));

		count *= side;
		if (a >= start && a < end)
			numbers[a - start] = side;
	}
	result.dims[0] = end > start ? (uint64_t)(end - start) : 0;
	result.n_dims = is_integer ? 0 : 1;
	if (is_integer)
		numbers[0] = count;
	result.numbers = result.computed = numbers;
	(void)psd_onnx_by_rows(&result, &result.view);
	*psd_onnx_output(onnx, 0) = result;
	return PSD_OK;
}

static enum psd_status pass(struct psd_onnx *onnx)
{
	struct psd_onnx_value *output = psd_onnx_output(onnx, 0);
	const bool is_name = !strcmp(onnx->node->op_type, "Identity");

	*output = *psd_onnx_input(onnx, 0);
	if (is_name && output->kind == PSD_ONNX_CONSTANT && output->origin)
		output->alias = (unsigned)(output - onnx->values);
	return PSD_OK;
}

/* A cast of samples keeps their values; one that would round them is refused. */
static enum psd_status cast(struct psd_onnx *onnx)
{
	const struct psd_onnx_value *data = psd_onnx_input(onnx, 0), *like = psd_onnx_input(onnx, 1);
	const int32_t type = (int32_t)psd_onnx_integer(onnx, "to", PSD_ONNX_FLOAT);
	const bool to_real = like->kind == PSD_ONNX_CONSTANT ? like->is_real : psd_onnx_is_real(type);
	const bool is_value = data->kind == PSD_ONNX_DATA || data->kind == PSD_ONNX_SCORES;
	double factor;

	if (is_value && !to_real &&
	    (!data->is_integer || type == PSD_ONNX_BOOL || !psd_onnx_expr_is_product(data->expr, &factor) ||
	     factor != 1))
		return psd_onnx_refuse(onnx, "converts samples to integers or booleans, which no layer can do");
	return pass(onnx);
}

/* ---- the operators ---- */

/* Converts the node. If no view of a constant in the file is possible, it takes one of a copy of the numbers, row by
 * row, but not of a parameter, which must stay in the file. */
static enum psd_status view_or_copy(struct psd_onnx *onnx, psd_onnx_operator_fn *convert)
{
	struct psd_onnx_value *of = psd_onnx_input(onnx, 0), original = *of;
	struct psd_error *const err = onnx->err;

	if (of->kind != PSD_ONNX_CONSTANT || of->is_gathered || psd_onnx_elements(of) == 0 || psd_onnx_is_learned(of) ||
	    of->is_table)
		return convert(onnx);
	onnx->err = NULL;
	const enum psd_status status = convert(onnx);
	onnx->err = err;
	if (!status || status == PSD_ENOMEM)
		return status ? psd_onnx_no_memory(onnx) : PSD_OK;
	PSD_TRY(psd_onnx_read_numbers(onnx, of));
	original.numbers = of->computed = of->numbers;
	of->origin = NULL;
	(void)psd_onnx_by_rows(of, &of->view);
	PSD_TRY(convert(onnx));
	*of = original;
	return PSD_OK;
}

static const struct {
	const char *op;
	psd_onnx_operator_fn *convert;
} operators[] = {
	{"Reshape", reshape},
	{"Flatten", flatten},
	{"Squeeze", squeeze},
	{"Unsqueeze", squeeze},
	{"Expand", expand},
	{"Slice", psd_onnx_slice},
	{"Split", psd_onnx_split},
	{"Transpose", transpose},
	{"SplitToSequence", psd_onnx_split_to_sequence},
	{"SequenceAt", psd_onnx_sequence_at},
	{"SequenceEmpty", psd_onnx_sequence_of},
	{"SequenceConstruct", psd_onnx_sequence_of},
	{"SequenceInsert", psd_onnx_sequence_insert},
	{"SequenceLength", psd_onnx_sequence_length},
	{"DepthToSpace", depth_to_space},
	{"SpaceToDepth", space_to_depth},
	{"Shape", shape},
	{"Size", shape},
};

enum psd_status psd_onnx_try_view(struct psd_onnx *onnx, bool *is_done)
{
	const char *op = onnx->node->op_type;
	const bool is_known = psd_onnx_input(onnx, 1)->kind == PSD_ONNX_CONSTANT;
	const enum psd_onnx_kind kind = psd_onnx_input(onnx, 0)->kind;

	*is_done = true;
	if (!strcmp(op, "Identity"))
		return pass(onnx);
	if (kind != PSD_ONNX_CONSTANT && (!strcmp(op, "Cast") || !strcmp(op, "CastLike")))
		return cast(onnx);
	if (!strcmp(op, "CastLike")) /* a constant, cast to the type of samples */
		return psd_onnx_try_fold(onnx, is_done);
	if (!strcmp(op, "Gather") && is_known)
		return view_or_copy(onnx, psd_onnx_gather);
	for (unsigned i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
		if (!strcmp(op, operators[i].op))
			return view_or_copy(onnx, operators[i].convert);
	*is_done = false;
	return PSD_OK;
}
