/* Constant folding: computes nodes whose inputs are constants, in doubles. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/saturate.h"
#include "engine/model/onnx/parts.h"

enum { MOST_SPELT_OUT = 65536 };

/* Returns the only parameter among a prediction node's inputs, if each of its numbers gives one of the result. */
static const Onnx__Tensor *parent_of(const struct psd_onnx *onnx, uint64_t elements)
{
	const Onnx__Tensor *parent = NULL;

	for (unsigned i = 0; psd_onnx_allows_other(onnx) && i < onnx->node->n_input; i++) {
		const struct psd_onnx_value *value = psd_onnx_input(onnx, i);
		const Onnx__Tensor *from = psd_onnx_is_learned(value) ? value->origin : value->derived_from;

		if (value->kind != PSD_ONNX_CONSTANT || !from)
			continue;
		if (parent || psd_onnx_elements(value) != elements)
			return NULL;
		parent = from;
	}
	return parent;
}

/* Makes the result, whose dims are set, a constant with memory for its numbers, and the node's output. */
static enum psd_status put(struct psd_onnx *onnx, struct psd_onnx_value *result, bool has_fractions, double **numbers)
{
	const Onnx__Tensor *parent = parent_of(onnx, psd_onnx_elements(result));

	result->kind = PSD_ONNX_CONSTANT;
	result->is_real = has_fractions;
	result->origin = NULL;
	result->is_gathered = result->is_fixed = result->is_table = false;
	result->derived_from = has_fractions ? parent : NULL;
	PSD_TRY(psd_onnx_alloc_numbers(onnx, result, numbers));
	result->computed = result->numbers;
	(void)psd_onnx_by_rows(result, &result->view);
	*psd_onnx_output(onnx, 0) = *result;
	return PSD_OK;
}

/* Broadcasts the dims of two values. False: they do not fit. */
static bool broadcast(struct psd_onnx_value *result, const struct psd_onnx_value *with)
{
	struct psd_onnx_value wide = {.n_dims = result->n_dims > with->n_dims ? result->n_dims : with->n_dims};

	for (unsigned d = 1; d <= wide.n_dims; d++) {
		const uint64_t one = d <= result->n_dims ? result->dims[result->n_dims - d] : 1;
		const uint64_t other = d <= with->n_dims ? with->dims[with->n_dims - d] : 1;

		if (one != other && one != 1 && other != 1)
			return false;
		wide.dims[wide.n_dims - d] = one == 1 ? other : one;
	}
	result->n_dims = wide.n_dims;
	memcpy(result->dims, wide.dims, sizeof(wide.dims));
	return true;
}

/* Offset in `of`, which is broadcast to the result, of the result's element e. */
static uint64_t offset_in(const struct psd_onnx_value *of, const struct psd_onnx_value *result, uint64_t e)
{
	uint64_t offset = 0, step = 1;

	if (of->n_dims == result->n_dims && !memcmp(of->dims, result->dims, of->n_dims * sizeof(*of->dims)))
		return e;
	if (psd_onnx_elements(of) == 1)
		return 0;
	for (unsigned d = 1; d <= result->n_dims; d++) {
		const uint64_t dim = result->dims[result->n_dims - d], i = e % dim;

		e /= dim;
		if (d > of->n_dims)
			continue;
		if (of->dims[of->n_dims - d] != 1)
			offset += i * step;
		step *= of->dims[of->n_dims - d];
	}
	return offset;
}

typedef double binary_fn(double a, double b);

#define UNARY(name, expression)                                                                                        \
	static double name(double a)                                                                                   \
	{                                                                                                              \
		return expression;                                                                                     \
	}
#define BINARY(name, expression)                                                                                       \
	static double name(double a, double b)                                                                         \
	{                                                                                                              \
		return expression;                                                                                     \
	}

BINARY(sum, a + b)
BINARY(difference, a - b)
BINARY(product, a *b)
BINARY(quotient, a / b)
BINARY(whole_quotient, b != 0 ? trunc(a / b) : 0)
BINARY(remainder_of, b != 0 ? a - floor(a / b) * b : 0)
BINARY(equal, a == b)
BINARY(less, a < b)
BINARY(less_or_equal, a <= b)
BINARY(greater, a > b)
BINARY(greater_or_equal, a >= b)
BINARY(both, a != 0 && b != 0)
BINARY(either, a != 0 || b != 0)
BINARY(not_equal, (a != 0) != (b != 0))

static const struct {
	const char *op;
	binary_fn *of;
	bool is_boolean;
} binaries[] = {
	{"Add", sum, false},
	{"Sub", difference, false},
	{"Mul", product, false},
	{"Div", quotient, false},
	{"Mod", remainder_of, false},
	{"Pow", pow, false},
	{"Min", fmin, false},
	{"Max", fmax, false},
	{"Equal", equal, true},
	{"Less", less, true},
	{"LessOrEqual", less_or_equal, true},
	{"Greater", greater, true},
	{"GreaterOrEqual", greater_or_equal, true},
	{"And", both, true},
	{"Or", either, true},
	{"Xor", not_equal, true},
};

UNARY(negative, -a)
UNARY(inverse, 1 / a)
UNARY(denied, a == 0)
UNARY(is_nan, isnan(a) != 0)
UNARY(is_infinite, isinf(a) != 0)
UNARY(sigmoid, 1 / (1 + exp(-a)))
UNARY(rectified, fmax(a, 0))

static const struct {
	const char *op;
	double (*of)(double a);
} unaries[] = {
	{"Neg", negative}, {"Reciprocal", inverse}, {"Sqrt", sqrt},	 {"Exp", exp},	    {"Log", log},
	{"Abs", fabs},	   {"Floor", floor},	    {"Ceil", ceil},	 {"Round", rint},   {"Sin", sin},
	{"Cos", cos},	   {"Tanh", tanh},	    {"Not", denied},	 {"IsNaN", is_nan}, {"IsInf", is_infinite},
	{"Erf", erf},	   {"Sigmoid", sigmoid},    {"Relu", rectified},
};

/* Reads all inputs. The first `least` must exist. */
static enum psd_status read_inputs(struct psd_onnx *onnx, unsigned least)
{
	for (unsigned i = 0; i < least; i++)
		if (psd_onnx_input(onnx, i)->kind != PSD_ONNX_CONSTANT)
			return psd_onnx_refuse(onnx, "must have %u inputs", least);

	for (unsigned i = 0; i < onnx->node->n_input; i++)
		if (psd_onnx_input(onnx, i)->kind == PSD_ONNX_CONSTANT)
			PSD_TRY(psd_onnx_read_numbers(onnx, psd_onnx_input(onnx, i)));
	return PSD_OK;
}

static enum psd_status compute_binary(struct psd_onnx *onnx, binary_fn *of, bool is_boolean)
{
	const struct psd_onnx_value *a = psd_onnx_input(onnx, 0), *b = psd_onnx_input(onnx, 1);
	const bool has_fractions = a->is_real || b->is_real;
	struct psd_onnx_value result = *a;
	double *numbers;

	PSD_TRY(read_inputs(onnx, 2));
	if (!broadcast(&result, b))
		return psd_onnx_refuse_shapes(onnx, "must be equal in each axis, or 1");
	PSD_TRY(put(onnx, &result, has_fractions && !is_boolean, &numbers));
	if (of == quotient && !has_fractions)
		of = whole_quotient;
	for (uint64_t e = 0; e < psd_onnx_elements(&result); e++)
		numbers[e] = of(a->numbers[offset_in(a, &result, e)], b->numbers[offset_in(b, &result, e)]);
	return PSD_OK;
}

static enum psd_status compute_unary(struct psd_onnx *onnx, double of(double a))
{
	struct psd_onnx_value result = *psd_onnx_input(onnx, 0);
	double *numbers;

	PSD_TRY(read_inputs(onnx, 1));
	PSD_TRY(put(onnx, &result, result.is_real, &numbers));
	for (uint64_t e = 0; e < psd_onnx_elements(&result); e++)
		numbers[e] = of(psd_onnx_input(onnx, 0)->numbers[e]);
	return PSD_OK;
}

static enum psd_status compute_where(struct psd_onnx *onnx)
{
	const struct psd_onnx_value *condition = psd_onnx_input(onnx, 0), *yes = psd_onnx_input(onnx, 1);
	const struct psd_onnx_value *no = psd_onnx_input(onnx, 2);
	struct psd_onnx_value result = *condition;
	double *numbers;

	PSD_TRY(read_inputs(onnx, 3));
	if (!broadcast(&result, yes) || !broadcast(&result, no))
		return psd_onnx_refuse_shapes(onnx, "must be equal in each axis, or 1");
	PSD_TRY(put(onnx, &result, yes->is_real, &numbers));
	for (uint64_t e = 0; e < psd_onnx_elements(&result); e++) {
		const bool is_true = condition->numbers[offset_in(condition, &result, e)] != 0;
		const struct psd_onnx_value *from = is_true ? yes : no;

		numbers[e] = from->numbers[offset_in(from, &result, e)];
	}
	return PSD_OK;
}

static enum psd_status compute_constant(struct psd_onnx *onnx)
{
	const Onnx__Attribute *value = psd_onnx_attribute(onnx->node, "value"), *other;
	struct psd_onnx_value result = {.n_dims = 0};
	double *numbers;

	if (value && value->t) {
		PSD_TRY(psd_onnx_constant_of(onnx, value->t, psd_onnx_output(onnx, 0)));
		psd_onnx_output(onnx, 0)->is_fixed = onnx->has_weights;
		return PSD_OK;
	}
	other = onnx->node->n_attribute ? onnx->node->attribute[0] : NULL;
	if (!other || !(other->has_i || other->has_f || other->n_ints || other->n_floats))
		return psd_onnx_refuse(onnx, "has no value, must have numbers");
	if (!other->has_i && !other->has_f) {
		result.n_dims = 1;
		result.dims[0] = other->n_ints ? other->n_ints : other->n_floats;
	}
	PSD_TRY(put(onnx, &result, other->has_f || other->n_floats, &numbers));
	for (uint64_t e = 0; e < psd_onnx_elements(&result); e++)
		numbers[e] = other->has_i    ? (double)other->i
			     : other->has_f  ? (double)other->f
			     : other->n_ints ? (double)other->ints[e]
					     : (double)other->floats[e];
	return PSD_OK;
}

/* Makes a large constant of one number, which its view repeats: the weights of networks without values. */
static enum psd_status put_repeated(struct psd_onnx *onnx, const struct psd_onnx_value *shape, bool has_fractions,
				    double number)
{
	struct psd_onnx_value one = {.n_dims = 0}, repeated = *shape;
	double *numbers;

	PSD_TRY(put(onnx, &one, has_fractions, &numbers));
	numbers[0] = number;
	repeated.kind = PSD_ONNX_CONSTANT;
	repeated.is_real = has_fractions;
	repeated.computed = numbers;
	repeated.view = (struct psd_onnx_view){.layer = 0};
	for (unsigned d = 0; d < repeated.n_dims; d++) {
		psd_onnx_view_add_axis(&repeated.view);
		psd_onnx_view_add_digit(&repeated.view, repeated.dims[d], 0);
	}
	*psd_onnx_output(onnx, 0) = repeated;
	return PSD_OK;
}

static enum psd_status compute_of_shape(struct psd_onnx *onnx)
{
	const Onnx__Attribute *attribute = psd_onnx_attribute(onnx->node, "value");
	struct psd_onnx_value value = {.n_dims = 0}, result = {.n_dims = 0};
	const struct psd_onnx_value *shape = psd_onnx_input(onnx, 0);
	double *numbers;

	if (attribute && attribute->t) {
		PSD_TRY(psd_onnx_constant_of(onnx, attribute->t, &value));
		PSD_TRY(psd_onnx_read_numbers(onnx, &value));
	}
	PSD_TRY(read_inputs(onnx, 1));
	if (psd_onnx_elements(shape) > PSD_ONNX_AXES_MAX)
		return psd_onnx_refuse(onnx, "has more than %u axes", PSD_ONNX_AXES_MAX);
	result.n_dims = (unsigned)psd_onnx_elements(shape);
	for (unsigned d = 0; d < result.n_dims; d++)
		result.dims[d] = shape->numbers[d] > 0 ? (uint64_t)fmin(shape->numbers[d], UINT32_MAX) : 0;
	if (psd_onnx_elements(&result) > MOST_SPELT_OUT && psd_onnx_allows_other(onnx))
		return put_repeated(onnx, &result, value.kind == PSD_ONNX_ABSENT || value.is_real,
				    value.numbers ? value.numbers[0] : 0);
	PSD_TRY(put(onnx, &result, value.kind == PSD_ONNX_ABSENT || value.is_real, &numbers));
	for (uint64_t e = 0; e < psd_onnx_elements(&result); e++)
		numbers[e] = value.numbers ? value.numbers[0] : 0;
	return PSD_OK;
}

static enum psd_status compute_range(struct psd_onnx *onnx)
{
	double start, limit, step, n, *numbers;
	struct psd_onnx_value result = {.n_dims = 1};

	if (!psd_onnx_is_scalar(onnx, psd_onnx_input(onnx, 0), &start) ||
	    !psd_onnx_is_scalar(onnx, psd_onnx_input(onnx, 1), &limit) ||
	    !psd_onnx_is_scalar(onnx, psd_onnx_input(onnx, 2), &step) || step == 0)
		return psd_onnx_refuse(onnx, "must have a start, a limit and a step");
	n = fmax(0, ceil((limit - start) / step));
	result.dims[0] = n < (double)UINT32_MAX ? (uint64_t)n : UINT32_MAX;
	PSD_TRY(put(onnx, &result, psd_onnx_input(onnx, 0)->is_real, &numbers));
	for (uint64_t e = 0; e < result.dims[0]; e++)
		numbers[e] = start + (double)e * step;
	return PSD_OK;
}

static enum psd_status compute_cast(struct psd_onnx *onnx)
{
	struct psd_onnx_value *of = psd_onnx_input(onnx, 0), result = *of;
	const int32_t type = (int32_t)psd_onnx_integer(onnx, "to", PSD_ONNX_FLOAT);
	const struct psd_onnx_value *like = psd_onnx_input(onnx, 1);
	const bool to_real = !strcmp(onnx->node->op_type, "CastLike") ? like->kind != PSD_ONNX_CONSTANT || like->is_real
								      : psd_onnx_is_real(type);
	double *numbers;

	if (to_real && of->is_real) {
		*psd_onnx_output(onnx, 0) = *of;
		return PSD_OK;
	}
	PSD_TRY(psd_onnx_read_numbers(onnx, of));
	PSD_TRY(put(onnx, &result, to_real, &numbers));
	for (uint64_t e = 0; e < psd_onnx_elements(&result); e++)
		numbers[e] = to_real		     ? of->numbers[e]
			     : type == PSD_ONNX_BOOL ? of->numbers[e] != 0
						     : trunc(of->numbers[e]);
	return PSD_OK;
}

/* Sets the elements of each matrix above a diagonal, or below it, to 0. */
static enum psd_status compute_trilu(struct psd_onnx *onnx)
{
	struct psd_onnx_value *of = psd_onnx_input(onnx, 0), result = *of;
	const bool is_upper = psd_onnx_integer(onnx, "upper", 1) != 0;
	double diagonal = 0, *numbers;

	PSD_TRY(read_inputs(onnx, 1));
	if (of->n_dims < 2)
		return psd_onnx_refuse(onnx, "has an input of %u axes, must have 2", of->n_dims);
	PSD_TRY(put(onnx, &result, of->is_real, &numbers));
	(void)psd_onnx_is_scalar(onnx, psd_onnx_input(onnx, 1), &diagonal);
	for (uint64_t e = 0; e < psd_onnx_elements(&result); e++) {
		const double column = (double)(e % of->dims[of->n_dims - 1]);
		const double row = (double)(e / of->dims[of->n_dims - 1] % of->dims[of->n_dims - 2]);
		const bool is_kept = is_upper ? column >= row + diagonal : column <= row + diagonal;

		numbers[e] = is_kept ? of->numbers[e] : 0;
	}
	return PSD_OK;
}

/* Product of all numbers, as for shapes. */
static enum psd_status compute_product(struct psd_onnx *onnx)
{
	const struct psd_onnx_value *of = psd_onnx_input(onnx, 0);
	struct psd_onnx_value result = {.n_dims = psd_onnx_integer(onnx, "keepdims", 1) ? 1u : 0u, .dims = {1}};
	double *numbers;

	PSD_TRY(read_inputs(onnx, 1));
	if (of->n_dims > 1)
		return psd_onnx_refuse(onnx, "has an input of %u axes, must have 1", of->n_dims);
	PSD_TRY(put(onnx, &result, of->is_real, &numbers));
	numbers[0] = 1;
	for (uint64_t e = 0; e < psd_onnx_elements(of); e++)
		numbers[0] *= of->numbers[e];
	return PSD_OK;
}

static enum psd_status compute_concat(struct psd_onnx *onnx)
{
	struct psd_onnx_value result = *psd_onnx_input(onnx, 0);
	uint64_t inner = 1, outer = 1, at = 0;
	unsigned axis = 0;
	double *numbers;

	PSD_TRY(read_inputs(onnx, (unsigned)onnx->node->n_input));
	PSD_TRY(psd_onnx_axis(onnx, psd_onnx_integer(onnx, "axis", 0), result.n_dims, &axis));
	result.dims[axis] = 0;
	for (unsigned i = 0; i < onnx->node->n_input; i++) {
		const struct psd_onnx_value *input = psd_onnx_input(onnx, i);

		if (input->n_dims != result.n_dims)
			return psd_onnx_refuse_shapes(onnx, "must be equal except along 'axis'");
		for (unsigned d = 0; d < result.n_dims; d++)
			if (d != axis && input->dims[d] != result.dims[d])
				return psd_onnx_refuse_shapes(onnx, "must be equal except along 'axis'");
		result.dims[axis] += input->dims[axis];
	}
	for (unsigned d = 0; d < result.n_dims; d++) {
		inner = d > axis ? psd_saturated_mul(inner, result.dims[d]) : inner;
		outer = d < axis ? psd_saturated_mul(outer, result.dims[d]) : outer;
	}
	PSD_TRY(put(onnx, &result, result.is_real, &numbers));
	for (uint64_t o = 0; o < outer && psd_onnx_elements(&result); o++)
		for (unsigned i = 0; i < onnx->node->n_input; i++) {
			const struct psd_onnx_value *input = psd_onnx_input(onnx, i);
			const uint64_t n = input->dims[axis] * inner;

			memcpy(numbers + at, input->numbers + o * n, n * sizeof(*numbers));
			at += n;
		}
	return PSD_OK;
}

/* Cumulative sums along an axis. */
static enum psd_status compute_sums(struct psd_onnx *onnx)
{
	const struct psd_onnx_value *of = psd_onnx_input(onnx, 0);
	struct psd_onnx_value result = *of;
	uint64_t inner = 1;
	unsigned axis = 0;
	double axis_number, *numbers;

	PSD_TRY(read_inputs(onnx, 2));
	if (!psd_onnx_is_scalar(onnx, psd_onnx_input(onnx, 1), &axis_number) ||
	    psd_onnx_integer(onnx, "exclusive", 0) || psd_onnx_integer(onnx, "reverse", 0))
		return psd_onnx_refuse(onnx, "must have one axis, and neither 'exclusive' nor 'reverse'");
	PSD_TRY(psd_onnx_axis(onnx, (int64_t)fmax(-100, fmin(100, axis_number)), of->n_dims, &axis));
	PSD_TRY(put(onnx, &result, of->is_real, &numbers));
	for (unsigned d = axis + 1; d < of->n_dims; d++)
		inner *= of->dims[d];
	for (uint64_t e = 0; e < psd_onnx_elements(&result); e++)
		numbers[e] = of->numbers[e] + (e / inner % of->dims[axis] ? numbers[e - inner] : 0);
	return PSD_OK;
}

/* Replaces each index by the number at that position of an axis; all other positions are those of the index. */
static enum psd_status compute_gather(struct psd_onnx *onnx)
{
	const struct psd_onnx_value *of = psd_onnx_input(onnx, 0), *indices = psd_onnx_input(onnx, 1);
	struct psd_onnx_value result = *indices;
	uint64_t inner = 1;
	unsigned axis = 0;
	double *numbers;

	PSD_TRY(read_inputs(onnx, 2));
	PSD_TRY(psd_onnx_axis(onnx, psd_onnx_integer(onnx, "axis", 0), of->n_dims, &axis));
	if (indices->n_dims != of->n_dims)
		return psd_onnx_refuse_shapes(onnx, "must be equal except along 'axis'");
	for (unsigned d = 0; d < of->n_dims; d++) {
		if (d != axis && indices->dims[d] != of->dims[d])
			return psd_onnx_refuse_shapes(onnx, "must be equal except along 'axis'");
		inner *= d > axis ? of->dims[d] : 1;
	}
	for (uint64_t e = 0; e < psd_onnx_elements(indices); e++)
		if (!(indices->numbers[e] >= -(double)of->dims[axis] && indices->numbers[e] < (double)of->dims[axis]))
			return psd_onnx_refuse(onnx, "takes position %g of an axis with %llu", indices->numbers[e],
					       (unsigned long long)of->dims[axis]);
	PSD_TRY(put(onnx, &result, of->is_real, &numbers));
	for (uint64_t e = 0; e < psd_onnx_elements(&result); e++) {
		const double dim = (double)of->dims[axis];
		const double index = indices->numbers[e] < 0 ? indices->numbers[e] + dim : indices->numbers[e];

		numbers[e] = of->numbers[(e / inner / result.dims[axis] * of->dims[axis] + (uint64_t)index) * inner +
					 e % inner];
	}
	return PSD_OK;
}

enum psd_status psd_onnx_slice_numbers(struct psd_onnx *onnx, const int64_t starts[], const int64_t ends[],
				       const int64_t axes[], const int64_t steps[], unsigned n)
{
	struct psd_onnx_value *of = psd_onnx_input(onnx, 0), result = *of;
	int64_t first[PSD_ONNX_AXES_MAX] = {0}, step[PSD_ONNX_AXES_MAX];
	double *numbers;

	for (unsigned d = 0; d < PSD_ONNX_AXES_MAX; d++)
		step[d] = 1;
	for (unsigned i = 0; i < n; i++) {
		unsigned axis;
		int64_t dim, end, room;

		PSD_TRY(psd_onnx_axis(onnx, axes ? axes[i] : i, of->n_dims, &axis));
		dim = (int64_t)of->dims[axis];
		if (steps[i] == 0 || steps[i] < -dim - 1 || steps[i] > dim + 1)
			return psd_onnx_refuse(onnx, "takes positions in steps of %lld, from an axis of %lld",
					       (long long)steps[i], (long long)dim);
		step[axis] = steps[i];
		first[axis] = psd_onnx_clamp(starts[i], dim);
		end = psd_onnx_clamp(ends[i], dim);
		if (step[axis] < 0) { /* backwards an end of -dim - 1 or less is in front of the first position */
			first[axis] = first[axis] < dim ? first[axis] : dim - 1;
			end = ends[i] < -dim ? -1 : end < dim ? end : dim - 1;
		}
		room = step[axis] < 0 ? first[axis] - end : end - first[axis];
		result.dims[axis] = room > 0 ? (uint64_t)((room - 1) / llabs(step[axis]) + 1) : 0;
	}
	PSD_TRY(psd_onnx_read_numbers(onnx, of));
	PSD_TRY(put(onnx, &result, of->is_real, &numbers));
	for (uint64_t e = 0; e < psd_onnx_elements(&result); e++) {
		uint64_t rest = e, offset = 0, stride = 1;

		for (unsigned d = of->n_dims; d-- > 0; rest /= result.dims[d], stride *= of->dims[d])
			offset += stride * (uint64_t)(first[d] + step[d] * (int64_t)(rest % result.dims[d]));
		numbers[e] = of->numbers[offset];
	}
	return PSD_OK;
}

/* Means, sums, largest and smallest numbers along axes. */
static enum psd_status compute_reduce(struct psd_onnx *onnx)
{
	const char *op = onnx->node->op_type + strlen("Reduce");
	const bool is_mean = !strcmp(op, "Mean"), is_max = !strcmp(op, "Max"), is_min = !strcmp(op, "Min");
	const bool keeps = psd_onnx_integer(onnx, "keepdims", 1) != 0;
	struct psd_onnx_value *of = psd_onnx_input(onnx, 0), result = {.n_dims = 0};
	bool is_reduced[PSD_ONNX_AXES_MAX];
	uint64_t n = 1, strides[PSD_ONNX_AXES_MAX], stride = 1;
	double *numbers;
	unsigned n_axes;

	if (psd_onnx_is_learned(of) && !psd_onnx_allows_other(onnx)) /* training would lose the parameter */
		return psd_onnx_check_data(onnx, of);
	PSD_TRY(psd_onnx_mark_axes(onnx, of->n_dims, false, is_reduced, &n_axes));
	if (!n_axes && psd_onnx_integer(onnx, "noop_with_empty_axes", 0))
		return psd_onnx_refuse(onnx, "has no axes, must have one");
	for (unsigned d = 0; d < of->n_dims; d++) {
		is_reduced[d] = is_reduced[d] || !n_axes;
		n *= is_reduced[d] ? of->dims[d] : 1;
		if (!is_reduced[d] || keeps)
			result.dims[result.n_dims++] = is_reduced[d] ? 1 : of->dims[d];
	}
	for (unsigned d = of->n_dims; d-- > 0;) {
		strides[d] = is_reduced[d] ? 0 : stride;
		stride *= is_reduced[d] ? 1 : of->dims[d];
	}
	PSD_TRY(psd_onnx_read_numbers(onnx, of));
	PSD_TRY(put(onnx, &result, of->is_real, &numbers));
	for (uint64_t e = 0; e < psd_onnx_elements(&result); e++)
		numbers[e] = is_max ? -INFINITY : is_min ? INFINITY : 0;
	for (uint64_t e = 0; e < psd_onnx_elements(of); e++) {
		uint64_t rest = e, offset = 0;

		for (unsigned d = of->n_dims; d-- > 0; rest /= of->dims[d])
			offset += strides[d] * (rest % of->dims[d]);
		numbers[offset] = is_max   ? fmax(numbers[offset], of->numbers[e])
				  : is_min ? fmin(numbers[offset], of->numbers[e])
					   : numbers[offset] + of->numbers[e];
	}
	for (uint64_t e = 0; is_mean && n && e < psd_onnx_elements(&result); e++)
		numbers[e] /= (double)n;
	return PSD_OK;
}

static enum psd_status compute_clip(struct psd_onnx *onnx)
{
	struct psd_onnx_value *of = psd_onnx_input(onnx, 0), result = *of;
	double least = psd_onnx_number(onnx, "min", -INFINITY), most = psd_onnx_number(onnx, "max", INFINITY), *numbers;

	PSD_TRY(read_inputs(onnx, 1));
	(void)psd_onnx_is_scalar(onnx, psd_onnx_input(onnx, 1), &least);
	(void)psd_onnx_is_scalar(onnx, psd_onnx_input(onnx, 2), &most);
	PSD_TRY(put(onnx, &result, of->is_real, &numbers));
	for (uint64_t e = 0; e < psd_onnx_elements(&result); e++)
		numbers[e] = fmin(fmax(of->numbers[e], least), most);
	return PSD_OK;
}

/* Checks that the positions in the indices' last axis are inside the first `depth` axes. */
static enum psd_status check_positions(struct psd_onnx *onnx, const struct psd_onnx_value *of,
				       const struct psd_onnx_value *indices, uint64_t depth)
{
	for (uint64_t e = 0; e < psd_onnx_elements(indices); e++) {
		const double dim = (double)of->dims[e % depth];

		if (!(indices->numbers[e] >= -dim && indices->numbers[e] < dim))
			return psd_onnx_refuse(onnx, "takes position %g of an axis with %g", indices->numbers[e], dim);
	}
	return PSD_OK;
}

/* Returns the number of the row that entry e of the indices names. Negative positions count from the end. */
static uint64_t row_at(const struct psd_onnx_value *of, const struct psd_onnx_value *indices, uint64_t depth,
		       uint64_t e)
{
	uint64_t row = 0;

	for (uint64_t k = 0; k < depth; k++) {
		const double index = indices->numbers[e * depth + k];

		row = row * of->dims[k] + (uint64_t)(index < 0 ? index + (double)of->dims[k] : index);
	}
	return row;
}

/* Numbers, or rows of them, at the positions that the last axis of the indices lists. */
static enum psd_status compute_gather_nd(struct psd_onnx *onnx)
{
	const struct psd_onnx_value *of = psd_onnx_input(onnx, 0), *indices = psd_onnx_input(onnx, 1);
	const uint64_t depth = indices->n_dims ? indices->dims[indices->n_dims - 1] : 0;
	struct psd_onnx_value result = {.n_dims = 0};
	uint64_t inner = 1;
	double *numbers;

	PSD_TRY(read_inputs(onnx, 2));
	if (!depth || depth > of->n_dims || indices->n_dims - 1 + of->n_dims - depth > PSD_ONNX_AXES_MAX ||
	    psd_onnx_integer(onnx, "batch_dims", 0))
		return psd_onnx_refuse(onnx, "has indices of %llu axes, must have 1 to %u and no 'batch_dims'",
				       (unsigned long long)depth, of->n_dims);
	for (unsigned d = 0; d + 1 < indices->n_dims; d++)
		result.dims[result.n_dims++] = indices->dims[d];
	for (unsigned d = (unsigned)depth; d < of->n_dims; d++) {
		result.dims[result.n_dims++] = of->dims[d];
		inner *= of->dims[d];
	}
	PSD_TRY(check_positions(onnx, of, indices, depth));
	PSD_TRY(put(onnx, &result, of->is_real, &numbers));
	for (uint64_t e = 0; inner && e < psd_onnx_elements(&result) / inner; e++)
		memcpy(numbers + e * inner, of->numbers + row_at(of, indices, depth, e) * inner,
		       inner * sizeof(*numbers));
	return PSD_OK;
}

/* Replaces numbers, or rows of them, at the positions that the last axis of the indices lists. */
static enum psd_status compute_scatter_nd(struct psd_onnx *onnx)
{
	const struct psd_onnx_value *of = psd_onnx_input(onnx, 0), *indices = psd_onnx_input(onnx, 1);
	const struct psd_onnx_value *updates = psd_onnx_input(onnx, 2);
	const uint64_t depth = indices->n_dims ? indices->dims[indices->n_dims - 1] : 0;
	struct psd_onnx_value result = *of;
	uint64_t inner = 1, n;
	double *numbers;

	PSD_TRY(read_inputs(onnx, 3));
	if (!depth || depth > of->n_dims ||
	    (psd_onnx_attribute(onnx->node, "reduction") && !psd_onnx_text_is(onnx, "reduction", "none")))
		return psd_onnx_refuse(onnx, "has indices of %llu axes, must have 1 to %u and no 'reduction'",
				       (unsigned long long)depth, of->n_dims);
	for (unsigned d = (unsigned)depth; d < of->n_dims; d++)
		inner *= of->dims[d];
	n = psd_onnx_elements(indices) / depth;
	if (psd_onnx_elements(updates) != n * inner)
		return psd_onnx_refuse_shapes(onnx, "have as many updates as the indices name");
	PSD_TRY(check_positions(onnx, of, indices, depth));
	PSD_TRY(put(onnx, &result, of->is_real, &numbers));
	memcpy(numbers, of->numbers, psd_onnx_elements(of) * sizeof(*numbers));
	for (uint64_t e = 0; e < n; e++)
		memcpy(numbers + row_at(of, indices, depth, e) * inner, updates->numbers + e * inner,
		       inner * sizeof(*numbers));
	return PSD_OK;
}

/* Positions of all numbers that are not 0, a row for each axis. */
static enum psd_status compute_non_zero(struct psd_onnx *onnx)
{
	struct psd_onnx_value *of = psd_onnx_input(onnx, 0), result = {.n_dims = 2};
	uint64_t n = 0, at = 0;
	double *numbers;

	PSD_TRY(read_inputs(onnx, 1));
	for (uint64_t e = 0; e < psd_onnx_elements(of); e++)
		n += of->numbers[e] != 0;
	result.dims[0] = of->n_dims ? of->n_dims : 1;
	result.dims[1] = n;
	PSD_TRY(put(onnx, &result, false, &numbers));
	for (uint64_t e = 0; e < psd_onnx_elements(of); e++) {
		uint64_t rest = e;

		if (of->numbers[e] == 0)
			continue;
		for (unsigned d = of->n_dims; d-- > 0; rest /= of->dims[d])
			numbers[d * n + at] = (double)(rest % of->dims[d]);
		at++;
	}
	return PSD_OK;
}

/* Repeats a constant along each axis. */
static enum psd_status compute_tile(struct psd_onnx *onnx)
{
	struct psd_onnx_value *of = psd_onnx_input(onnx, 0), *repeats = psd_onnx_input(onnx, 1), result = *of;
	double *numbers;

	PSD_TRY(read_inputs(onnx, 2));
	if (psd_onnx_elements(repeats) != of->n_dims)
		return psd_onnx_refuse(onnx, "has %llu repeats for %u axes, must have equally many",
				       (unsigned long long)psd_onnx_elements(repeats), of->n_dims);
	for (unsigned d = 0; d < of->n_dims; d++) {
		if (!(repeats->numbers[d] >= 0 && repeats->numbers[d] <= UINT32_MAX))
			return psd_onnx_refuse(onnx, "repeats axis %u %g times", d, repeats->numbers[d]);
		result.dims[d] = psd_saturated_mul(of->dims[d], (uint64_t)repeats->numbers[d]);
	}
	PSD_TRY(put(onnx, &result, of->is_real, &numbers));
	for (uint64_t e = 0; e < psd_onnx_elements(&result); e++) {
		uint64_t rest = e, offset = 0, stride = 1;

		for (unsigned d = of->n_dims; d-- > 0; rest /= result.dims[d], stride *= of->dims[d])
			offset += stride * (rest % result.dims[d] % of->dims[d]);
		numbers[e] = of->numbers[offset];
	}
	return PSD_OK;
}

static const struct {
	const char *op;
	enum psd_status (*compute)(struct psd_onnx *onnx);
} others[] = {
	{"NonZero", compute_non_zero},
	{"Tile", compute_tile},
	{"ScatterND", compute_scatter_nd},
	{"ReduceMean", compute_reduce},
	{"ReduceSum", compute_reduce},
	{"ReduceMax", compute_reduce},
	{"ReduceMin", compute_reduce},
	{"Clip", compute_clip},
	{"GatherND", compute_gather_nd},
	{"Constant", compute_constant},
	{"ConstantOfShape", compute_of_shape},
	{"Range", compute_range},
	{"Cast", compute_cast},
	{"CastLike", compute_cast},
	{"Where", compute_where},
	{"Trilu", compute_trilu},
	{"ReduceProd", compute_product},
	{"Concat", compute_concat},
	{"GatherElements", compute_gather},
	{"CumSum", compute_sums},
};

/* True if a prediction keeps the node as a layer, since it combines parameters with other numbers. Few numbers may be
 * factors of a shape. */
static bool combines_parameters(const struct psd_onnx *onnx)
{
	const char *op = onnx->node->op_type;
	bool has_parameter = false, takes_rows = !strcmp(op, "GatherND") || !strcmp(op, "GatherElements");
	unsigned n = 0;

	for (unsigned i = 0; i < onnx->node->n_input; i++) {
		const struct psd_onnx_value *value = psd_onnx_input(onnx, i);
		const bool is_long = value->kind == PSD_ONNX_CONSTANT && psd_onnx_elements(value) > PSD_ONNX_AXES_MAX;

		n += value->kind == PSD_ONNX_CONSTANT && psd_onnx_elements(value) > 1;
		has_parameter = has_parameter || (is_long && (psd_onnx_is_learned(value) || value->derived_from));
	}
	for (unsigned i = 0; i < sizeof(binaries) / sizeof(binaries[0]); i++)
		takes_rows = takes_rows || !strcmp(op, binaries[i].op);
	return psd_onnx_allows_other(onnx) && has_parameter && takes_rows && n > 1;
}

enum psd_status psd_onnx_try_fold(struct psd_onnx *onnx, bool *is_done)
{
	const char *op = onnx->node->op_type;

	*is_done = false;
	if (combines_parameters(onnx))
		return PSD_OK;
	*is_done = true;
	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strcmp(op, others[i].op))
			return others[i].compute(onnx);
	for (unsigned i = 0; i < sizeof(binaries) / sizeof(binaries[0]); i++)
		if (!strcmp(op, binaries[i].op) && onnx->node->n_input == 2)
			return compute_binary(onnx, binaries[i].of, binaries[i].is_boolean);
	for (unsigned i = 0; i < sizeof(unaries) / sizeof(unaries[0]); i++)
		if (!strcmp(op, unaries[i].op))
			return compute_unary(onnx, unaries[i].of);
	*is_done = false;
	return PSD_OK;
}
