/* Updates against steps done by hand. */
#include <criterion/criterion.h>
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
		psd_update_apply(&update, &weight, &gradients[i], &history, 1);
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
		psd_update_apply(&update, &weight, &gradients[i], &history, 1);
		cr_expect_eq(history, histories[i], "step %u: history %.9g", i + 1, (double)history);
		cr_expect_eq(weight, weights[i], "step %u: weight %.9g", i + 1, (double)weight);
	}
}

enum { ELEMENTS = 1003 };

struct tensor {
	float weight[ELEMENTS], gradient[ELEMENTS], history[ELEMENTS];
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
	}
}

static void apply_range(struct tensor *tensor, const struct psd_update *update, size_t begin, size_t end)
{
	psd_update_apply(update, tensor->weight + begin, tensor->gradient + begin, tensor->history + begin,
			 end - begin);
}

static void expect_slices_equal_whole(bool is_nesterov)
{
	static const size_t cuts[] = {0, 1, 1, 17, 33, 34, 500, 1002, ELEMENTS}; /* aligned and not, empty, single */
	const struct psd_update update = {
		.rate = 0.3f, .momentum = 0.9f, .weight_decay = 0.0005f, .is_nesterov = is_nesterov};
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
	expect_slices_equal_whole(false);
	expect_slices_equal_whole(true);
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
