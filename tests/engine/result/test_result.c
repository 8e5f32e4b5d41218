/* What is told of a system that trains with other values. */
#include <criterion/criterion.h>
#include <string.h>

#include "engine/result/result.h"

static void expect_note(const struct psd_system *system, const char *expected)
{
	struct psd_text text = {.bytes = NULL};

	psd_result_add_lossy(&text, system);
	cr_expect_str_eq(text.bytes ? text.bytes : "", expected);
	psd_text_release(&text);
}

Test(result, what_sends_all_as_it_is_needs_no_note)
{
	expect_note(&(struct psd_system){.name = "A"}, "");
}

Test(result, local_steps_train_with_other_values)
{
	expect_note(&(struct psd_system){.name = "A", .is_local = true, .local_sgd = {.steps = 16}},
		    "note: 'A' lets workers train by themselves and averages their parameters every 16 iterations, and "
		    "so trains with other values\n");
	expect_note(&(struct psd_system){.name = "A", .is_local = true, .local_sgd = {.steps = 16, .window = 100}},
		    "note: 'A' lets workers train by themselves and averages their parameters every 16 iterations in "
		    "the beginning, and so trains with other values\n");
}

/* The mean of updates is the update by the mean, but for rounding; and fewer steps than one there are not. */
Test(result, one_step_is_as_none)
{
	expect_note(&(struct psd_system){.name = "A", .is_local = true, .local_sgd = {.steps = 1}}, "");
	expect_note(&(struct psd_system){.name = "A", .is_local = true, .local_sgd = {.steps = 1, .window = 100}}, "");
}
