/* Arithmetic on digits. */
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

uint64_t psd_onnx_view_dim(const struct psd_onnx_view *view, unsigned axis)
{
	uint64_t dim = 1;

	for (unsigned d = psd_onnx_view_first(view, axis); d < view->ends[axis]; d++)
		dim *= view->digits[d].size;
	return dim;
}

uint64_t psd_onnx_view_values(const struct psd_onnx_view *view, unsigned axis)
{
	uint64_t values = 1;

	for (unsigned d = psd_onnx_view_first(view, axis); d < view->ends[axis]; d++)
		values *= view->digits[d].stride == PSD_ONNX_BATCH ? 1 : view->digits[d].size;
	return values;
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

void psd_onnx_view_add_dense_axis(struct psd_onnx_view *view, const struct psd_onnx_view *other, unsigned axis,
				  uint64_t *stride)
{
	psd_onnx_view_add_axis(view);
	for (unsigned d = psd_onnx_view_first(other, axis); d < other->ends[axis]; d++) {
		const struct psd_onnx_digit digit = other->digits[d];
		const bool is_batch = digit.stride == PSD_ONNX_BATCH;

		*stride /= is_batch ? 1 : digit.size;
		psd_onnx_view_add_digit(view, digit.size, is_batch ? PSD_ONNX_BATCH : *stride);
	}
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

/* Appends a digit to the newest axis, or merges it with the last one. */
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

/* The view with all digits in one axis. */
static struct psd_onnx_view flattened(const struct psd_onnx_view *view)
{
	struct psd_onnx_view flat = without_axes(view);

	psd_onnx_view_add_axis(&flat);
	for (unsigned d = 0; d < psd_onnx_view_digits(view); d++)
		extend(&flat, view->digits[d]);
	return flat;
}

/* Splits `wanted` steps off *rest, or all if there are fewer. Returns their number; 0: neither number divides the
 * other.
 */
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

bool psd_onnx_view_reshape(struct psd_onnx_view *view, const uint64_t dims[], unsigned n_dims)
{
	const struct psd_onnx_view flat = flattened(view);
	const unsigned n = psd_onnx_view_digits(&flat);
	struct psd_onnx_view reshaped = without_axes(view);
	struct psd_onnx_digit rest = {.size = 1}, part;
	unsigned next = 0;

	for (unsigned a = 0; a < n_dims; a++) {
		if (!psd_onnx_view_add_axis(&reshaped))
			return false;
		for (uint64_t wanted = dims[a]; wanted != 1; wanted /= part.size) {
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

/* In an axis of several digits, only whole steps of the first can be selected. */
bool psd_onnx_view_narrow(struct psd_onnx_view *view, unsigned axis, uint64_t first, uint64_t n, uint64_t step)
{
	struct psd_onnx_view merged = *view, narrowed;
	uint64_t below = 1;

	psd_onnx_view_merge(&merged);
	if (first == 0 && n == psd_onnx_view_dim(&merged, axis) && (step == 1 || n == 1))
		return true;
	const unsigned d = psd_onnx_view_first(&merged, axis);
	if (n == 0 || first + (n - 1) * step >= psd_onnx_view_dim(&merged, axis) ||
	    psd_onnx_view_has_batch(&merged, axis))
		return false;
	for (unsigned i = d + 1; i < merged.ends[axis]; i++)
		below *= merged.digits[i].size;
	if (first % below || n % below || (below > 1 && step > 1))
		return false;
	struct psd_onnx_digit *digit = &merged.digits[d];
	merged.offset += first / below * digit->stride;
	digit->size = (uint32_t)(n / below);
	digit->stride *= step;
	narrowed = without_axes(&merged); /* drops a digit of size 1 */
	for (unsigned a = 0; a < merged.n_axes; a++)
		psd_onnx_view_add_axis_of(&narrowed, &merged, a);
	*view = narrowed;
	return true;
}

bool psd_onnx_view_expand(struct psd_onnx_view *view, const uint64_t dims[], unsigned n_dims)
{
	struct psd_onnx_view expanded = without_axes(view);

	if (n_dims < view->n_axes)
		return false;
	for (unsigned a = 0; a < n_dims; a++) {
		const unsigned missing = n_dims - view->n_axes;
		const uint64_t dim = a < missing ? 1 : psd_onnx_view_dim(view, a - missing);
		bool fits = dim == 1 || dims[a] == 1 || dims[a] == dim;

		if (fits && dim > 1)
			fits = psd_onnx_view_add_axis_of(&expanded, view, a - missing);
		else if (fits)
			fits = psd_onnx_view_add_axis(&expanded) && psd_onnx_view_add_digit(&expanded, dims[a], 0);
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
		if (psd_onnx_view_dim(one, a) != psd_onnx_view_dim(other, a))
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

struct psd_onnx_view psd_onnx_view_without(const struct psd_onnx_view *view, uint64_t stride)
{
	struct psd_onnx_view rest = without_axes(view);

	for (unsigned a = 0; a < view->n_axes; a++) {
		psd_onnx_view_add_axis(&rest);
		for (unsigned d = psd_onnx_view_first(view, a); d < view->ends[a]; d++)
			if (view->digits[d].stride != stride)
				psd_onnx_view_add_digit(&rest, view->digits[d].size, view->digits[d].stride);
	}
	return rest;
}

bool psd_onnx_view_is_same(const struct psd_onnx_view *one, const struct psd_onnx_view *other)
{
	struct psd_onnx_view a = *one, b = *other;

	if (a.offset != b.offset || !psd_onnx_view_align(&a, &b))
		return false;
	for (unsigned d = 0; d < psd_onnx_view_digits(&a); d++)
		if (a.digits[d].stride != b.digits[d].stride)
			return false;
	return true;
}

bool psd_onnx_view_is_same_list(const struct psd_onnx_view *one, const struct psd_onnx_view *other)
{
	const struct psd_onnx_view a = flattened(one), b = flattened(other);

	return psd_onnx_view_is_same(&a, &b);
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
	/* the view has `values` positions up to the last value, so that with a layer's strides each value occurs once
	 * */
	return view->offset == 0 && seen == values && reach == values - 1;
}
