/* Views of a layer's output, against tensors of positions that plain loops change. */
#include <criterion/criterion.h>
#include <string.h>

#include "engine/model/onnx/view.h"

#define PLACES_MAX 4096u

/* Number of the layer's value that each position sees, row by row. */
struct plain {
	unsigned n_axes;
	uint64_t sides[PSD_ONNX_AXES_MAX];
	uint64_t values[PLACES_MAX];
};

static uint64_t state;

static unsigned random_below(unsigned n)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(state >> 33) % n;
}

static uint64_t places_of(const struct plain *plain)
{
	uint64_t places = 1;

	for (unsigned a = 0; a < plain->n_axes; a++)
		places *= plain->sides[a];
	return places;
}

/* Index of position p along each axis. */
static void index_of(const struct plain *plain, uint64_t p, uint64_t index[])
{
	for (unsigned a = plain->n_axes; a-- > 0; p /= plain->sides[a])
		index[a] = p % plain->sides[a];
}

static uint64_t place_at(const struct plain *plain, const uint64_t index[])
{
	uint64_t p = 0;

	for (unsigned a = 0; a < plain->n_axes; a++)
		p = p * plain->sides[a] + index[a];
	return p;
}

static void check_sees(const struct psd_onnx_view *view, const struct plain *plain)
{
	const unsigned n = psd_onnx_view_digits(view);

	cr_assert_eq(view->n_axes, plain->n_axes);
	for (unsigned a = 0; a < plain->n_axes; a++)
		cr_assert_eq(psd_onnx_view_dim(view, a), plain->sides[a]);
	for (uint64_t p = 0; p < places_of(plain); p++) {
		uint64_t value = view->offset, rest = p;

		for (unsigned d = n; d-- > 0; rest /= view->digits[d].size) {
			cr_assert_gt(view->digits[d].size, 1);
			value += rest % view->digits[d].size * view->digits[d].stride;
		}
		cr_assert_eq(value, plain->values[p], "place %llu", (unsigned long long)p);
	}
}

static void begin(struct psd_onnx_view *view, struct plain *plain)
{
	static const uint64_t sides[] = {1, 2, 3, 4, 6, 8};
	uint64_t stride;

	*view = (struct psd_onnx_view){.layer = 5};
	*plain = (struct plain){.n_axes = 1 + random_below(4)};
	for (unsigned a = 0; a < plain->n_axes; a++)
		plain->sides[a] = sides[random_below(6)];
	stride = places_of(plain);
	for (uint64_t p = 0; p < stride; p++)
		plain->values[p] = p;
	for (unsigned a = 0; a < plain->n_axes; a++) {
		stride /= plain->sides[a];
		cr_assert(psd_onnx_view_add_axis(view));
		cr_assert(psd_onnx_view_add_digit(view, plain->sides[a], stride));
	}
}

/* ---- changes, each of both; false: the view could not follow, and neither changed ---- */

static bool reshape(struct psd_onnx_view *view, struct plain *plain)
{
	uint64_t rest = places_of(plain), sides[PSD_ONNX_AXES_MAX];
	unsigned n = 0;

	while (n < 5 && (rest > 1 || random_below(2))) {
		uint64_t side = 1 + random_below((unsigned)rest);

		while (rest % side)
			side--;
		sides[n++] = side;
		rest /= side;
	}
	if (rest > 1)
		sides[n++] = rest;
	if (!psd_onnx_view_reshape(view, sides, n))
		return false;
	plain->n_axes = n;
	memcpy(plain->sides, sides, n * sizeof(*sides));
	return true;
}

static bool transpose(struct psd_onnx_view *view, struct plain *plain)
{
	const struct plain before = *plain;
	unsigned order[PSD_ONNX_AXES_MAX];

	for (unsigned a = 0; a < plain->n_axes; a++) {
		const unsigned other = random_below(a + 1);

		order[a] = order[other];
		order[other] = a;
	}
	for (unsigned a = 0; a < plain->n_axes; a++)
		plain->sides[a] = before.sides[order[a]];
	for (uint64_t p = 0; p < places_of(plain); p++) {
		uint64_t index[PSD_ONNX_AXES_MAX], from[PSD_ONNX_AXES_MAX];

		index_of(plain, p, index);
		for (unsigned a = 0; a < plain->n_axes; a++)
			from[order[a]] = index[a];
		plain->values[p] = before.values[place_at(&before, from)];
	}
	cr_assert(psd_onnx_view_transpose(view, order));
	return true;
}

static bool narrow(struct psd_onnx_view *view, struct plain *plain)
{
	const struct plain before = *plain;
	const unsigned axis = plain->n_axes ? random_below(plain->n_axes) : 0, step = 1 + random_below(3);
	uint64_t side, first, n;

	if (!plain->n_axes)
		return false;
	side = before.sides[axis];
	first = random_below((unsigned)side);
	n = 1 + random_below((unsigned)((side - first - 1) / step + 1));
	if (!psd_onnx_view_narrow(view, axis, first, n, step))
		return false;
	plain->sides[axis] = n;
	for (uint64_t p = 0; p < places_of(plain); p++) {
		uint64_t index[PSD_ONNX_AXES_MAX];

		index_of(plain, p, index);
		index[axis] = first + index[axis] * step;
		plain->values[p] = before.values[place_at(&before, index)];
	}
	return true;
}

static bool expand(struct psd_onnx_view *view, struct plain *plain)
{
	const struct plain before = *plain;
	const unsigned more = random_below(2);
	uint64_t sides[PSD_ONNX_AXES_MAX];

	if (before.n_axes + more > 6)
		return false;
	plain->n_axes += more;
	for (unsigned a = 0; a < plain->n_axes; a++) {
		const uint64_t side = a < more ? 1 : before.sides[a - more];

		plain->sides[a] = side == 1 ? 1 + random_below(2) : side;
		sides[a] = random_below(2) ? 1 : plain->sides[a]; /* 1 leaves a side as it is */
		sides[a] = side == 1 ? plain->sides[a] : sides[a];
	}
	if (places_of(plain) > PLACES_MAX) {
		*plain = before;
		return false;
	}
	for (uint64_t p = 0; p < places_of(plain); p++) {
		uint64_t index[PSD_ONNX_AXES_MAX];

		index_of(plain, p, index);
		for (unsigned a = more; a < plain->n_axes; a++)
			index[a] = before.sides[a - more] == 1 ? 0 : index[a];
		plain->values[p] = before.values[place_at(&before, index + more)];
	}
	if (psd_onnx_view_expand(view, sides, plain->n_axes))
		return true;
	*plain = before;
	return false;
}

static bool merge(struct psd_onnx_view *view, struct plain *plain)
{
	(void)plain;
	psd_onnx_view_merge(view);
	return true;
}

Test(onnx_view, changes_see_what_written_out_tensors_have)
{
	static bool (*const changes[])(struct psd_onnx_view *, struct plain *) = {reshape, transpose, narrow, expand,
										  merge};
	static struct plain plain;
	unsigned n_followed[5] = {0}, n_tried[5] = {0};

	for (unsigned seed = 1; seed <= 4000; seed++) {
		struct psd_onnx_view view, before;

		state = seed;
		begin(&view, &plain);
		for (unsigned i = 0; i < 8; i++) {
			const unsigned change = random_below(5);

			before = view;
			n_tried[change]++;
			if (changes[change](&view, &plain))
				n_followed[change]++;
			else
				cr_assert(!memcmp(&view, &before, sizeof(view)), "seed %u", seed);
			check_sees(&view, &plain);
		}
	}
	/* most can be said by digits */
	for (unsigned c = 0; c < 5; c++)
		cr_assert_gt(2 * n_followed[c], n_tried[c], "change %u: %u of %u", c, n_followed[c], n_tried[c]);
}

Test(onnx_view, aligned_views_have_the_same_digits_and_see_the_same)
{
	static struct plain one_plain, other_plain;
	unsigned n_aligned = 0;

	for (unsigned seed = 1; seed <= 4000; seed++) {
		struct psd_onnx_view one, other, one_before, other_before;

		state = seed;
		begin(&one, &one_plain);
		other = one;
		other_plain = one_plain;
		for (unsigned i = 0; i < 3; i++) {
			(void)transpose(&one, &one_plain);
			(void)reshape(&one, &one_plain);
			(void)transpose(&other, &other_plain);
		}
		/* the other gets the sides of the one, where it can */
		if (!psd_onnx_view_reshape(&other, one_plain.sides, one_plain.n_axes))
			continue;
		other_plain.n_axes = one_plain.n_axes;
		memcpy(other_plain.sides, one_plain.sides, sizeof(one_plain.sides));
		one_before = one;
		other_before = other;
		if (!psd_onnx_view_align(&one, &other)) {
			cr_assert(!memcmp(&one, &one_before, sizeof(one)));
			cr_assert(!memcmp(&other, &other_before, sizeof(other)));
			continue;
		}
		n_aligned++;
		check_sees(&one, &one_plain);
		check_sees(&other, &other_plain);
		for (unsigned a = 0; a < one.n_axes; a++)
			cr_assert_eq(one.ends[a], other.ends[a]);
		for (unsigned d = 0; d < psd_onnx_view_digits(&one); d++)
			cr_assert_eq(one.digits[d].size, other.digits[d].size);
	}
	cr_assert_gt(n_aligned, 1000);
}

Test(onnx_view, whole_is_what_sees_each_value_once)
{
	static struct plain plain;

	for (unsigned seed = 1; seed <= 4000; seed++) {
		struct psd_onnx_view view;
		static unsigned seen[PLACES_MAX];
		uint64_t values;
		bool is_whole = true;

		state = seed;
		begin(&view, &plain);
		values = places_of(&plain);
		for (unsigned i = 0; i < 2; i++) {
			(void)transpose(&view, &plain);
			(void)reshape(&view, &plain);
			if (random_below(3) == 0)
				(void)narrow(&view, &plain);
			if (random_below(3) == 0)
				(void)expand(&view, &plain);
		}
		memset(seen, 0, sizeof(seen));
		for (uint64_t p = 0; p < places_of(&plain); p++)
			seen[plain.values[p]]++;
		for (uint64_t v = 0; v < values; v++)
			is_whole = is_whole && seen[v] == 1;
		cr_assert_eq(psd_onnx_view_is_whole(&view, values), is_whole, "seed %u", seed);
	}
}

Test(onnx_view, batch_is_no_part_of_the_values)
{
	struct psd_onnx_view view = {.layer = 0};
	const uint64_t apart[] = {3, 2, 2}, together[] = {12}, across[] = {2, 6};
	const unsigned order[] = {1, 0};

	cr_assert(psd_onnx_view_add_axis(&view) && psd_onnx_view_add_digit(&view, 3, PSD_ONNX_BATCH));
	cr_assert(psd_onnx_view_add_axis(&view) && psd_onnx_view_add_digit(&view, 4, 1));
	cr_assert(psd_onnx_view_is_whole(&view, 4));
	cr_assert(psd_onnx_view_reshape(&view, apart, 3));
	cr_assert(psd_onnx_view_has_batch(&view, 0) && !psd_onnx_view_has_batch(&view, 1));
	cr_assert(!psd_onnx_view_reshape(&view, across, 2)); /* 3 samples are no halves */
	cr_assert(psd_onnx_view_reshape(&view, together, 1));
	cr_assert(psd_onnx_view_has_batch(&view, 0));
	cr_assert(!psd_onnx_view_narrow(&view, 0, 0, 4, 1)); /* one of the samples */
	cr_assert(psd_onnx_view_reshape(&view, (const uint64_t[]){3, 4}, 2));
	cr_assert(psd_onnx_view_transpose(&view, order));
	cr_assert(!psd_onnx_view_has_batch(&view, 0) && psd_onnx_view_has_batch(&view, 1));
}

Test(onnx_view, wrong_sides_and_orders_are_refused)
{
	struct psd_onnx_view view = {.layer = 0};
	const struct psd_onnx_view *const before = &(struct psd_onnx_view){.layer = 0};

	(void)before;
	cr_assert(psd_onnx_view_add_axis(&view) && psd_onnx_view_add_digit(&view, 4, 3));
	cr_assert(psd_onnx_view_add_axis(&view) && psd_onnx_view_add_digit(&view, 3, 1));
	cr_assert(!psd_onnx_view_reshape(&view, (const uint64_t[]){4, 4}, 2));
	cr_assert(!psd_onnx_view_reshape(&view, (const uint64_t[]){0, 12}, 2));
	cr_assert(!psd_onnx_view_reshape(&view, (const uint64_t[]){12, 1, 1, 1, 1, 1, 1, 1, 1}, 9));
	cr_assert(!psd_onnx_view_transpose(&view, (const unsigned[]){0, 0}));
	cr_assert(!psd_onnx_view_transpose(&view, (const unsigned[]){0, 2}));
	cr_assert(!psd_onnx_view_narrow(&view, 0, 4, 1, 1));
	cr_assert(!psd_onnx_view_narrow(&view, 0, 0, 0, 1));
	cr_assert(!psd_onnx_view_narrow(&view, 0, 2, 2, 2));
	cr_assert(!psd_onnx_view_expand(&view, (const uint64_t[]){8, 3}, 2));
	cr_assert(!psd_onnx_view_expand(&view, (const uint64_t[]){3}, 1));
	cr_assert(!psd_onnx_view_add_digit(&view, UINT64_C(1) << 32, 1));
	cr_assert_eq(psd_onnx_view_digits(&view), 2);
}
