/* Arithmetic of digits. */
#include "engine/model/onnx/view.h"

#include <assert.h>

unsigned psd_onnx_view_first(const struct psd_onnx_view *view, unsigned axis)
{
	return axis ? view->ends[axis - 1] : 0;
}

unsigned psd_onnx_view_count(const struct psd_onnx_view *view, unsigned axis)
{
	return view->ends[axis] - psd_onnx_view_first(view, axis);
}

unsigned psd_onnx_view_digits(const struct psd_onnx_view *view)
{
	return view->n_axes ? view->ends[view->n_axes - 1] : 0;
}

uint64_t psd_onnx_view_side(const struct psd_onnx_view *view, unsigned axis)
{
	uint64_t side = 1;

	for (unsigned d = psd_onnx_view_first(view, axis); d < view->ends[axis]; d++)
		side *= view->digits[d].size;
	return side;
}

bool psd_onnx_view_has_batch(const struct psd_onnx_view *view, unsigned axis)
{
	for (unsigned d = psd_onnx_view_first(view, axis); d < view->ends[axis]; d++)
		if (view->digits[d].stride == PSD_ONNX_BATCH)
			return true;
	return false;
}

/* ---- making ---- */

bool psd_onnx_view_add_axis(struct psd_onnx_view *view)
{
	if (view->n_axes == PSD_ONNX_AXES_MAX)
		return false;
	view->ends[view->n_axes] = psd_onnx_view_digits(view);
	view->n_axes++;
	return true;
}

bool psd_onnx_view_add_digit(struct psd_onnx_view *view, uint64_t size, uint64_t stride)
{
	const unsigned n = psd_onnx_view_digits(view);

	if (size == 1)
		return true;
	if (size > UINT32_MAX || n == PSD_ONNX_DIGITS_MAX)
		return false;
	view->digits[n] = (struct psd_onnx_digit){(uint32_t)size, stride};
	view->ends[view->n_axes - 1]++;
	return true;
}

bool psd_onnx_view_add_axis_of(struct psd_onnx_view *view, const struct psd_onnx_view *other, unsigned axis)
{
	bool fits = psd_onnx_view_add_axis(view);

	for (unsigned d = psd_onnx_view_first(other, axis); fits && d < other->ends[axis]; d++)
		fits = psd_onnx_view_add_digit(view, other->digits[d].size, other->digits[d].stride);
	return fits;
}

static struct psd_onnx_view without_axes(const struct psd_onnx_view *view)
{
	return (struct psd_onnx_view){.layer = view->layer, .offset = view->offset};
}

/* ---- changing ---- */

static bool follow(struct psd_onnx_digit left, struct psd_onnx_digit right)
{
	if (left.stride == PSD_ONNX_BATCH || right.stride == PSD_ONNX_BATCH)
		return false;
	return left.stride == right.size * right.stride && (uint64_t)left.size * right.size <= UINT32_MAX;
}

/* Appends a digit to the newest axis, or lengthens its last one. */
static bool extend(struct psd_onnx_view *view, struct psd_onnx_digit digit)
{
	const unsigned axis = view->n_axes - 1, n = view->ends[axis];

	if (psd_onnx_view_count(view, axis) && follow(view->digits[n - 1], digit)) {
		view->digits[n - 1].size *= digit.size;
		view->digits[n - 1].stride = digit.stride;
		return true;
	}
	return psd_onnx_view_add_digit(view, digit.size, digit.stride);
}

void psd_onnx_view_merge(struct psd_onnx_view *view)
{
	struct psd_onnx_view merged = without_axes(view);

	for (unsigned a = 0; a < view->n_axes; a++) {
		psd_onnx_view_add_axis(&merged);
		for (unsigned d = psd_onnx_view_first(view, a); d < view->ends[a]; d++)
			extend(&merged, view->digits[d]);
	}
	*view = merged;
}

/* The digits of all axes as those of one. */
static struct psd_onnx_view flattened(const struct psd_onnx_view *view)
{
	struct psd_onnx_view flat = without_axes(view);

	psd_onnx_view_add_axis(&flat);
	for (unsigned d = 0; d < psd_onnx_view_digits(view); d++)
		extend(&flat, view->digits[d]);
	return flat;
}

/* The part of *rest that `wanted` steps need, or all of it where they need more; 0: neither divides the other. */
static uint32_t take(struct psd_onnx_digit *rest, uint64_t wanted, struct psd_onnx_digit *part)
{
	*part = *rest;
	if (wanted % rest->size == 0) {
		rest->size = 1;
		return part->size;
	}
	if (rest->size % wanted || rest->stride == PSD_ONNX_BATCH)
		return 0;
	part->size = (uint32_t)wanted;
	rest->size /= part->size;
	part->stride = rest->size * rest->stride;
	return part->size;
}

bool psd_onnx_view_reshape(struct psd_onnx_view *view, const uint64_t sides[], unsigned n_sides)
{
	const struct psd_onnx_view flat = flattened(view);
	const unsigned n = psd_onnx_view_digits(&flat);
	struct psd_onnx_view reshaped = without_axes(view);
	struct psd_onnx_digit rest = {.size = 1}, part;
	unsigned next = 0;

	for (unsigned a = 0; a < n_sides; a++) {
		if (!psd_onnx_view_add_axis(&reshaped))
			return false;
		for (uint64_t wanted = sides[a]; wanted != 1; wanted /= part.size) {
			if (rest.size == 1 && next < n)
				rest = flat.digits[next++];
			if (!wanted || rest.size == 1 || !take(&rest, wanted, &part) ||
			    !psd_onnx_view_add_digit(&reshaped, part.size, part.stride))
				return false;
		}
	}
	if (rest.size != 1 || next < n)
		return false;
	*view = reshaped;
	return true;
}

bool psd_onnx_view_transpose(struct psd_onnx_view *view, const unsigned order[])
{
	struct psd_onnx_view transposed = without_axes(view);
	unsigned seen = 0;

	for (unsigned a = 0; a < view->n_axes; a++) {
		if (order[a] >= view->n_axes || !psd_onnx_view_add_axis_of(&transposed, view, order[a]))
			return false;
		seen |= 1u << order[a];
	}
	if (seen != (1u << view->n_axes) - 1)
		return false;
	*view = transposed;
	return true;
}

/* Of an axis of several digits, only whole steps of the first one can be taken. */
bool psd_onnx_view_narrow(struct psd_onnx_view *view, unsigned axis, uint64_t first, uint64_t n, uint64_t step)
{
	struct psd_onnx_view merged = *view, narrowed;
	struct psd_onnx_digit *digit;
	uint64_t below = 1;
	unsigned d;

	psd_onnx_view_merge(&merged);
	if (first == 0 && n == psd_onnx_view_side(&merged, axis) && (step == 1 || n == 1))
		return true;
	d = psd_onnx_view_first(&merged, axis);
	if (n == 0 || first + (n - 1) * step >= psd_onnx_view_side(&merged, axis) ||
	    psd_onnx_view_has_batch(&merged, axis))
		return false;
	for (unsigned i = d + 1; i < merged.ends[axis]; i++)
		below *= merged.digits[i].size;
	if (first % below || n % below || (below > 1 && step > 1))
		return false;
	digit = &merged.digits[d];
	merged.offset += first / below * digit->stride;
	digit->size = (uint32_t)(n / below);
	digit->stride *= step;
	narrowed = without_axes(&merged); /* without a digit of one step */
	for (unsigned a = 0; a < merged.n_axes; a++)
		psd_onnx_view_add_axis_of(&narrowed, &merged, a);
	*view = narrowed;
	return true;
}

bool psd_onnx_view_expand(struct psd_onnx_view *view, const uint64_t sides[], unsigned n_sides)
{
	struct psd_onnx_view expanded = without_axes(view);

	if (n_sides < view->n_axes)
		return false;
	for (unsigned a = 0; a < n_sides; a++) {
		const unsigned missing = n_sides - view->n_axes;
		const uint64_t side = a < missing ? 1 : psd_onnx_view_side(view, a - missing);
		bool fits = side == 1 || sides[a] == 1 || sides[a] == side;

		if (fits && side > 1)
			fits = psd_onnx_view_add_axis_of(&expanded, view, a - missing);
		else if (fits)
			fits = psd_onnx_view_add_axis(&expanded) && psd_onnx_view_add_digit(&expanded, sides[a], 0);
		if (!fits)
			return false;
	}
	*view = expanded;
	return true;
}

/* ---- comparing ---- */

bool psd_onnx_view_align(struct psd_onnx_view *one, struct psd_onnx_view *other)
{
	struct psd_onnx_view *const views[] = {one, other};
	struct psd_onnx_view cut[2] = {without_axes(one), without_axes(other)};

	if (one->n_axes != other->n_axes)
		return false;
	for (unsigned a = 0; a < one->n_axes; a++) {
		struct psd_onnx_digit rest[2] = {{.size = 1}, {.size = 1}}, part[2];
		unsigned next[2];

		for (unsigned v = 0; v < 2; v++) {
			next[v] = psd_onnx_view_first(views[v], a);
			if (!psd_onnx_view_add_axis(&cut[v]))
				return false;
		}
		if (psd_onnx_view_side(one, a) != psd_onnx_view_side(other, a))
			return false;
		for (;;) {
			uint32_t size;

			for (unsigned v = 0; v < 2; v++)
				if (rest[v].size == 1 && next[v] < views[v]->ends[a])
					rest[v] = views[v]->digits[next[v]++];
			if (rest[0].size == 1 && rest[1].size == 1)
				break;
			size = rest[0].size < rest[1].size ? rest[0].size : rest[1].size;
			for (unsigned v = 0; v < 2; v++)
				if (take(&rest[v], size, &part[v]) != size ||
				    !psd_onnx_view_add_digit(&cut[v], part[v].size, part[v].stride))
					return false;
		}
	}
	*one = cut[0];
	*other = cut[1];
	return true;
}

bool psd_onnx_view_is_whole(const struct psd_onnx_view *view, uint64_t values)
{
	uint64_t seen = 1, reach = 0;

	for (unsigned d = 0; d < psd_onnx_view_digits(view); d++) {
		const struct psd_onnx_digit digit = view->digits[d];

		if (digit.stride == PSD_ONNX_BATCH)
			continue;
		seen *= digit.size;
		reach += (digit.size - UINT64_C(1)) * digit.stride;
		if (digit.stride == 0)
			return false;
	}
	/* so many places, the last of which is the last value: none is seen twice, since digits are of a layer's */
	return view->offset == 0 && seen == values && reach == values - 1;
}
