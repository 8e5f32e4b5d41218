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

enum psd_status psd_onnx_put_view(struct psd_onnx *onnx, struct psd_onnx_value *of, const struct psd_onnx_view *view,
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

enum psd_status psd_onnx_read_view(struct psd_onnx *onnx, struct psd_onnx_view *view)
{
	const struct psd_onnx_value *input = psd_onnx_input(onnx, 0);

	if (view_of(input, view))
		return PSD_OK;
	return input->kind == PSD_ONNX_SCORES ? psd_onnx_refuse(onnx, "takes attention's scores apart: not known")
					      : psd_onnx_refuse(onnx, "has an input that cannot be taken apart");
}

int64_t psd_onnx_clamp(int64_t place, int64_t side)
{
	place = place < 0 && place > INT64_MIN / 2 ? place + side : place;
	return place < 0 ? 0 : place > side ? side : place;
}

/* ---- sides ---- */

enum psd_status psd_onnx_reshape_to(struct psd_onnx *onnx, struct psd_onnx_view view, const uint64_t sides[],
				    unsigned n)
{
	if (!psd_onnx_view_reshape(&view, sides, n))
		return psd_onnx_refuse(onnx,
				       "makes a shape that its input has not the values for, or not in this order");
	return psd_onnx_put_view(onnx, psd_onnx_input(onnx, 0), &view, 0);
}

static enum psd_status reshape(struct psd_onnx *onnx)
{
	int64_t given[PSD_ONNX_AXES_MAX];
	uint64_t sides[PSD_ONNX_AXES_MAX], values = 1, known = 1;
	struct psd_onnx_view view;
	unsigned n, open = PSD_ONNX_AXES_MAX;
	enum psd_status status = psd_onnx_integers(onnx, "shape", 1, given, PSD_ONNX_AXES_MAX, &n);

	if (!status)
		status = psd_onnx_read_view(onnx, &view);
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
	return psd_onnx_reshape_to(onnx, view, sides, n);
}

static enum psd_status flatten(struct psd_onnx *onnx)
{
	struct psd_onnx_view view;
	uint64_t sides[2] = {1, 1};
	int64_t axis = psd_onnx_integer(onnx, "axis", 1);
	enum psd_status status = psd_onnx_read_view(onnx, &view);

	if (status)
		return status;
	axis = psd_onnx_clamp(axis, view.n_axes);
	for (unsigned a = 0; a < view.n_axes; a++)
		sides[a >= axis] *= psd_onnx_view_side(&view, a);
	return psd_onnx_reshape_to(onnx, view, sides, 2);
}

static enum psd_status squeeze(struct psd_onnx *onnx)
{
	uint64_t sides[PSD_ONNX_AXES_MAX];
	struct psd_onnx_view view;
	bool is_out[PSD_ONNX_AXES_MAX];
	unsigned n, n_sides = 0;
	enum psd_status status = psd_onnx_read_view(onnx, &view);

	if (!status)
		status = psd_onnx_mark_axes(onnx, view.n_axes, false, is_out, &n);
	if (status)
		return status;
	for (unsigned a = 0; a < view.n_axes; a++)
		if (!is_out[a] && (n || psd_onnx_view_side(&view, a) != 1))
			sides[n_sides++] = psd_onnx_view_side(&view, a);
	return psd_onnx_reshape_to(onnx, view, sides, n_sides);
}

static enum psd_status unsqueeze(struct psd_onnx *onnx)
{
	uint64_t sides[PSD_ONNX_AXES_MAX];
	struct psd_onnx_view view;
	bool is_new[PSD_ONNX_AXES_MAX];
	unsigned n, next = 0;
	enum psd_status status = psd_onnx_read_view(onnx, &view);

	if (!status)
		status = psd_onnx_mark_axes(onnx, view.n_axes, true, is_new, &n);
	if (status)
		return status;
	for (unsigned a = 0; a < view.n_axes + n; a++)
		sides[a] = is_new[a] ? 1 : next < view.n_axes ? psd_onnx_view_side(&view, next++) : 1;
	return psd_onnx_reshape_to(onnx, view, sides, view.n_axes + n);
}

static enum psd_status expand(struct psd_onnx *onnx)
{
	int64_t given[PSD_ONNX_AXES_MAX];
	uint64_t sides[PSD_ONNX_AXES_MAX];
	struct psd_onnx_view view;
	unsigned n, n_sides;
	enum psd_status status = psd_onnx_integers(onnx, "shape", 1, given, PSD_ONNX_AXES_MAX, &n);

	if (!status)
		status = psd_onnx_read_view(onnx, &view);
	if (status)
		return status;
	n_sides = n > view.n_axes ? n : view.n_axes;
	for (unsigned a = 0; a < n_sides; a++) {
		const int64_t side = a + n >= n_sides ? given[a + n - n_sides] : 1;

		sides[a] = side > 0 ? (uint64_t)side : 0;
	}
	if (!psd_onnx_view_expand(&view, sides, n_sides))
		return psd_onnx_refuse(onnx, "makes a shape that its input cannot be repeated to");
	return psd_onnx_put_view(onnx, psd_onnx_input(onnx, 0), &view, 0);
}

static enum psd_status transpose(struct psd_onnx *onnx)
{
	int64_t given[PSD_ONNX_AXES_MAX];
	unsigned order[PSD_ONNX_AXES_MAX] = {0}, n;
	struct psd_onnx_view view;
	enum psd_status status = psd_onnx_integers(onnx, "perm", 0, given, PSD_ONNX_AXES_MAX, &n);

	if (!status)
		status = psd_onnx_read_view(onnx, &view);
	if (status)
		return status;
	for (unsigned a = 0; a < view.n_axes; a++)
		order[a] = n ? (a < n && given[a] >= 0 && given[a] < view.n_axes ? (unsigned)given[a] : UINT32_MAX)
			     : view.n_axes - 1 - a;
	if (!psd_onnx_view_transpose(&view, order))
		return psd_onnx_refuse(onnx, "has an order that is none of %u axes", view.n_axes);
	return psd_onnx_put_view(onnx, psd_onnx_input(onnx, 0), &view, 0);
}

/* ---- blocks of places ---- */

/* Channels as blocks of places, or the other way: sides of samples, block rows, block columns, channels, rows and
 * columns are told apart, brought into another order, and joined. */
static enum psd_status regroup(struct psd_onnx *onnx, const uint64_t apart[6], const unsigned order[6],
			       const uint64_t joined[4])
{
	struct psd_onnx_view view = psd_onnx_input(onnx, 0)->view;

	if (!psd_onnx_view_reshape(&view, apart, 6) || !psd_onnx_view_transpose(&view, order))
		return psd_onnx_refuse(onnx, "has an input whose places cannot be taken apart into blocks");
	return psd_onnx_reshape_to(onnx, view, joined, 4);
}

static enum psd_status read_blocks(struct psd_onnx *onnx, uint64_t sides[4], uint64_t *block)
{
	struct psd_onnx_view view;
	const int64_t given = psd_onnx_integer(onnx, "blocksize", 0);
	enum psd_status status = psd_onnx_read_view(onnx, &view);

	if (!status && (view.n_axes != 4 || given < 1 || given > 1024))
		status = psd_onnx_refuse(onnx, "must have an input of four axes, and a 'blocksize' from 1 to 1024");
	for (unsigned a = 0; a < 4 && !status; a++)
		sides[a] = psd_onnx_view_side(&view, a);
	*block = (uint64_t)given;
	return status;
}

static enum psd_status depth_to_space(struct psd_onnx *onnx)
{
	const bool is_inner = psd_onnx_text_is(onnx, "mode", "CRD"); /* a channel's values for a block lie together */
	const unsigned of_inner[6] = {0, 1, 4, 2, 5, 3}, of_outer[6] = {0, 3, 4, 1, 5, 2};
	uint64_t sides[4], b;
	enum psd_status status = read_blocks(onnx, sides, &b);

	if (!status && sides[1] % (b * b))
		status = psd_onnx_refuse(onnx, "makes blocks of %llu values of %llu channels",
					 (unsigned long long)(b * b), (unsigned long long)sides[1]);
	if (status)
		return status;
	return regroup(onnx,
		       is_inner ? (const uint64_t[]){sides[0], sides[1] / (b * b), b, b, sides[2], sides[3]}
				: (const uint64_t[]){sides[0], b, b, sides[1] / (b * b), sides[2], sides[3]},
		       is_inner ? of_inner : of_outer,
		       (const uint64_t[]){sides[0], sides[1] / (b * b), sides[2] * b, sides[3] * b});
}

static enum psd_status space_to_depth(struct psd_onnx *onnx)
{
	const unsigned order[6] = {0, 3, 5, 1, 2, 4};
	uint64_t sides[4], b;
	enum psd_status status = read_blocks(onnx, sides, &b);

	if (!status && (sides[2] % b || sides[3] % b))
		status = psd_onnx_refuse(onnx, "makes blocks of %llu by %llu of %llu by %llu places",
					 (unsigned long long)b, (unsigned long long)b, (unsigned long long)sides[2],
					 (unsigned long long)sides[3]);
	if (status)
		return status;
	return regroup(onnx, (const uint64_t[]){sides[0], sides[1], sides[2] / b, b, sides[3] / b, b}, order,
		       (const uint64_t[]){sides[0], sides[1] * b * b, sides[2] / b, sides[3] / b});
}

/* ---- what shapes say ---- */

static enum psd_status shape(struct psd_onnx *onnx)
{
	struct psd_onnx_value result = {.kind = PSD_ONNX_CONSTANT, .n_dims = 1};
	const bool is_count = !strcmp(onnx->node->op_type, "Size");
	int64_t start = psd_onnx_integer(onnx, "start", 0), end = psd_onnx_integer(onnx, "end", PSD_ONNX_AXES_MAX);
	struct psd_onnx_view view;
	double *numbers = psd_arena_take(&onnx->arena, PSD_ONNX_AXES_MAX * sizeof(*numbers)), count = 1;
	enum psd_status status = psd_onnx_read_view(onnx, &view);

	if (!numbers)
		return psd_onnx_no_memory(onnx);
	if (status)
		return status;
	start = psd_onnx_clamp(start, view.n_axes);
	end = psd_onnx_clamp(end, view.n_axes);
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
	{"Slice", psd_onnx_slice},
	{"Split", psd_onnx_split},
	{"Transpose", transpose},
	{"SplitToSequence", psd_onnx_split_to_sequence},
	{"SequenceAt", psd_onnx_sequence_at},
	{"DepthToSpace", depth_to_space},
	{"SpaceToDepth", space_to_depth},
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
		return see_or_copy(onnx, psd_onnx_gather);
	for (unsigned i = 0; i < sizeof(shapers) / sizeof(shapers[0]); i++)
		if (!strcmp(op, shapers[i].op))
			return see_or_copy(onnx, shapers[i].see);
	*is_done = false;
	return PSD_OK;
}
