/* Updates against steps done by hand. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "real/device/update.h"

/* Numbers with few binary digits, so that every step is exact and equality is the right comparison. */
Test(update, three_steps_with_momentum_by_hand)
{
	const struct psd_update update = {.rate = 0.5f, .momentum = 0.5f, .weight_decay = 0.25f};
	const float gradients[] = {1, -2, 0.5f};
	/* step 1: g + wd w = 1 + 0.25 * 4 = 2;          h = 0.5 * 0 + 0.5 * 2 = 1;              w = 4 - 1 = 3
	 * step 2: g + wd w = -2 + 0.25 * 3 = -1.25;     h = 0.5 * 1 - 0.5 * 1.25 = -0.125;      w = 3.125
	 * step 3: g + wd w = 0.5 + 0.78125 = 1.28125;   h = -0.0625 + 0.640625 = 0.578125;      w = 2.546875 */
	const float weights[] = {3, 3.125f, 2.546875f}, histories[] = {1, -0.125f, 0.578125f};
	float weight = 4, history = 0;

	for (unsigned i = 0; i < 3; i++) {
		psd_update_apply(&update, &weight, &gradients[i], (struct psd_moments){.history = &history}, 1);
		cr_expect_eq(history, histories[i], "step %u: history %.9g", i + 1, (double)history);
		cr_expect_eq(weight, weights[i], "step %u: weight %.9g", i + 1, (double)weight);
	}
}

Test(update, three_nesterov_steps_by_hand)
{
	const struct psd_update update = {.rate = 0.5f, .momentum = 0.5f, .weight_decay = 0.25f, .is_nesterov = true};
	const float gradients[] = {1, -2, 0.5f};
	/* step 1: g + wd w = 2;                              h = 1;                              w = 4 - (1.5 * 1 - 0.5
	 * * 0) = 2.5 step 2: -2 + 0.625 = -1.375;    h = 0.5 - 0.6875 = -0.1875;    w = 2.5 - (1.5 * -0.1875 - 0.5 * 1)
	 * = 3.28125 step 3: 0.5 + 0.8203125 = 1.3203125;  h = -0.09375 + 0.66015625 = 0.56640625; w = 3.28125 - (1.5 *
	 * 0.56640625 - 0.5 * -0.1875) = 3.28125 - 0.943359375 = 2.337890625 */
	const float weights[] = {2.5f, 3.28125f, 2.337890625f}, histories[] = {1, -0.1875f, 0.56640625f};
	float weight = 4, history = 0;

	for (unsigned i = 0; i < 3; i++) {
		psd_update_apply(&update, &weight, &gradients[i], (struct psd_moments){.history = &history}, 1);
		cr_expect_eq(history, histories[i], "step %u: history %.9g", i + 1, (double)history);
		cr_expect_eq(weight, weights[i], "step %u: weight %.9g", i + 1, (double)weight);
	}
}

/* Ratios and betas that keep all steps exact, and squares whose roots are whole:
 * step 1: h = 0.5 * 2 = 1;         s = 0.25 * 4 = 1;            w = 4 - 0.5 (2 * 1 / (1 + 1) + 0.25 * 4) = 3
 * step 2: h = 0.5 + 0.5 * 1 = 1;   s = 0.75 + 0.25 * 1 = 1;     w = 3 - 0.5 (1 + 0.75) = 2.125
 * step 3: h = 0.5 - 0.5 * 1 = 0;   s = 0.75 + 0.25 * 1 = 1;     w = 2.125 - 0.5 * 0.53125 = 1.859375
 * With root_ratio 3 step 1 divides by 3 + 1: w = 4 - 0.5 (0.5 + 1) = 3.25. */
Test(update, three_adaptive_steps_by_hand)
{
	struct psd_update update = {
		.rate = 0.5f,
		.momentum = 0.5f, /* counts nothing */
		.weight_decay = 0.25f,
		.adaptive = {.beta1 = 0.5f, .beta2 = 0.75f, .epsilon = 1, .mean_ratio = 2, .root_ratio = 1}};
	const float gradients[] = {2, 1, -1};
	const float weights[] = {3, 2.125f, 1.859375f}, histories[] = {1, 1, 0};
	float weight = 4, history = 0, squares = 0;

	for (unsigned i = 0; i < 3; i++) {
		psd_update_apply(&update, &weight, &gradients[i], (struct psd_moments){&history, &squares}, 1);
		cr_expect_eq(history, histories[i], "step %u: history %.9g", i + 1, (double)history);
		cr_expect_eq(squares, 1, "step %u: squares %.9g", i + 1, (double)squares);
		cr_expect_eq(weight, weights[i], "step %u: weight %.9g", i + 1, (double)weight);
	}
	weight = 4, history = squares = 0;
	update.adaptive.root_ratio = 3;
	psd_update_apply(&update, &weight, &gradients[0], (struct psd_moments){&history, &squares}, 1);
	cr_expect_eq(weight, 3.25f, "%.9g", (double)weight);
}

enum { ELEMENTS = 1003 };

struct tensor {
	float weight[ELEMENTS], gradient[ELEMENTS], history[ELEMENTS], squares[ELEMENTS];
};

static float any_number(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return (float)(*state >> 8) * 0x1p-23f - 1.0f;
}

static void fill(struct tensor *tensor)
{
	uint32_t state = 42;

	for (unsigned i = 0; i < ELEMENTS; i++) {
		tensor->weight[i] = any_number(&state);
		tensor->gradient[i] = any_number(&state);
		tensor->history[i] = any_number(&state);
		tensor->squares[i] = fabsf(any_number(&state));
	}
}

static void apply_range(struct tensor *tensor, const struct psd_update *update, size_t begin, size_t end)
{
	psd_update_apply(update, tensor->weight + begin, tensor->gradient + begin,
			 (struct psd_moments){tensor->history + begin, tensor->squares + begin}, end - begin);
}

static void expect_slices_equal_whole(struct psd_update update)
{
	static const size_t cuts[] = {0, 1, 1, 17, 33, 34, 500, 1002, ELEMENTS}; /* aligned and not, empty, single */
	static struct tensor whole, sliced, before;

	fill(&whole);
	before = whole;
	sliced = whole;
	apply_range(&whole, &update, 0, ELEMENTS);
	for (size_t i = sizeof(cuts) / sizeof(cuts[0]) - 1; i > 0;
	     i--) /* backwards: the order does not matter either */
		apply_range(&sliced, &update, cuts[i - 1], cuts[i]);
	cr_expect_eq(memcmp(&whole, &sliced, sizeof(whole)), 0);
	cr_expect_eq(memcmp(whole.gradient, before.gradient, sizeof(whole.gradient)), 0, "gradients are only read");
	for (unsigned i = 0; i < ELEMENTS; i++)
		cr_assert_neq(whole.weight[i], before.weight[i], "element %u has not moved", i);
}

Test(update, slices_give_the_bits_of_the_whole)
{
	const struct psd_adaptive adaptive = {
		.beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f, .mean_ratio = 1.2f, .root_ratio = 3};

	expect_slices_equal_whole((struct psd_update){.rate = 0.3f, .momentum = 0.9f, .weight_decay = 0.0005f});
	expect_slices_equal_whole(
		(struct psd_update){.rate = 0.3f, .momentum = 0.9f, .weight_decay = 0.0005f, .is_nesterov = true});
	expect_slices_equal_whole((struct psd_update){.rate = 0.3f, .weight_decay = 0.01f, .adaptive = adaptive});
}

Test(update, every_element_gets_the_documented_update)
{
	static struct tensor tensor, before;

	for (unsigned is_nesterov = 0; is_nesterov < 2; is_nesterov++) {
		const struct psd_update update = {
			.rate = 0.3f, .momentum = 0.9f, .weight_decay = 0.0005f, .is_nesterov = is_nesterov};

		fill(&tensor);
		before = tensor;
		apply_range(&tensor, &update, 0, ELEMENTS);
		for (unsigned i = 0; i < ELEMENTS; i++) {
			const double gradient = (double)before.gradient[i] + 0.0005 * (double)before.weight[i];
			const double history = 0.9 * (double)before.history[i] + 0.3 * gradient;
			const double change = is_nesterov ? 1.9 * history - 0.9 * (double)before.history[i] : history;

			/* float arithmetic on numbers of size 1 to 4 */
			cr_assert_float_eq((double)tensor.history[i], history, 1e-6);
			cr_assert_float_eq((double)tensor.weight[i], (double)before.weight[i] - change, 1e-6);
		}
	}
}

Test(update, every_element_gets_the_documented_adaptive_update)
{
	const struct psd_update update = {
		.rate = 0.3f,
		.weight_decay = 0.01f,
		.adaptive = {.beta1 = 0.9f, .beta2 = 0.99f, .epsilon = 0.125f, .mean_ratio = 1.5f, .root_ratio = 2}};
	static struct tensor tensor, before;

	fill(&tensor);
	before = tensor;
	apply_range(&tensor, &update, 0, ELEMENTS);
	for (unsigned i = 0; i < ELEMENTS; i++) {
		const double weight = (double)before.weight[i], gradient = (double)before.gradient[i];
		const double history = 0.9 * (double)before.history[i] + 0.1 * gradient;
		const double squares = 0.99 * (double)before.squares[i] + 0.01 * gradient * gradient;
		const double change = 0.3 * (1.5 * history / (2 * sqrt(squares) + 0.125) + 0.01 * weight);

		cr_assert_float_eq((double)tensor.history[i], history, 1e-6);
		cr_assert_float_eq((double)tensor.squares[i], squares, 1e-6);
		cr_assert_float_eq((double)tensor.weight[i], weight - change, 1e-5); /* the quotient is up to 12 */
	}
}
