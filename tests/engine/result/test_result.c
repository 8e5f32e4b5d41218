/* Notes on a system that trains with other values. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "engine/encodings/compression.h"
#include "engine/result/result.h"
#include "tests/test_with.h"

static void expect_note_of_parts(const struct psd_system *system, uint32_t n_parts, const char *expected)
{
	struct psd_text text = {.bytes = NULL};

	psd_result_add_lossy(&text, system, 4, n_parts);
	cr_expect_str_eq(text.bytes ? text.bytes : "", expected);
	psd_text_release(&text);
}

static void expect_note(const struct psd_system *system, const char *expected)
{
	expect_note_of_parts(system, 1, expected);
}

TEST_ROW(result, a_method_without_compression_needs_no_note, expect_note(&(struct psd_system){.name = "A"}, ""))

static void expect_note_alone(const struct psd_system *system, const char *expected)
{
	struct psd_text text = {.bytes = NULL};

	psd_result_add_lossy(&text, system, 1, 1);
	cr_expect_str_eq(text.bytes ? text.bytes : "", expected);
	psd_text_release(&text);
}

/* A worker alone sends nothing, except to separate servers, for which values are only rounded. Wire 1 is fp16. */
Test(result, one_worker_trains_with_its_own_values)
{
	struct psd_system all = {.name = "A",
				 .wire = 1,
				 .is_compressed = true,
				 .is_low_rank = true,
				 .is_sparse = true,
				 .sparse = {.sparsity = 0.5},
				 .is_local = true,
				 .local_sgd = {.steps = 4},
				 .is_async = true,
				 .staleness = 1};

	expect_note_alone(&all, "");
	all.servers = 1;
	expect_note_alone(&all, "note: 'A' rounds what it sends to fp16, so that its training differs from training "
				"without this\n");
}

Test(result, local_steps_train_with_other_values)
{
	expect_note(&(struct psd_system){.name = "A", .is_local = true, .local_sgd = {.steps = 16}},
		    "note: 'A' lets workers train by themselves and averages their parameters every 16 iterations, so "
		    "that its training differs from training without this\n");
	expect_note(&(struct psd_system){.name = "A", .is_local = true, .local_sgd = {.steps = 16, .window = 100}},
		    "note: 'A' lets workers train by themselves and averages their parameters every 16 iterations in "
		    "the beginning, so that its training differs from training without this\n");
}

Test(result, updates_beside_those_of_others_need_other_workers)
{
	expect_note(
		&(struct psd_system){.name = "A", .is_async = true},
		"note: 'A' updates by each worker's gradient as it arrives, of parameters that others have updated "
		"since, so that with more than one worker its training differs from synchronous training; "
		"workers' parameters differ, also at the end; its seconds are harmonic means over workers, weighted by "
		"their batches\n");
	expect_note(&(struct psd_system){.name = "A", .staleness = 1, .reads = PSD_READS_STALE},
		    "note: 'A' reads its own gradients at once and those of other workers at most 1 iteration late: "
		    "workers' parameters differ while they train, and are equal in tests, checkpoints and at the end; "
		    "with more than one worker its training differs from synchronous training\n");
}

Test(result, a_period_of_one_iteration_is_each)
{
	expect_note(&(struct psd_system){.name = "A", .is_local = true, .local_sgd = {.steps = 1, .has_outer = true}},
		    "note: 'A' lets workers train by themselves and updates their parameters by their mean change in "
		    "each iteration, so that its training differs from training without this\n");
	expect_note(&(struct psd_system){.name = "A", .is_local = true, .peers = 2, .local_sgd = {.steps = 1}},
		    "note: 'A' sends factors to 2 other workers in an iteration; with more than 3 workers it averages "
		    "their parameters in each iteration, so that its training differs from training without this\n");
}

static void expect_managed(const struct psd_system *system, struct psd_early_chunks early, const char *expected)
{
	struct psd_text text = {.bytes = NULL};

	psd_result_add_managed(&text, system, "' at 2 nodes", &early);
	cr_expect_str_eq(text.bytes ? text.bytes : "", expected);
	psd_text_release(&text);
}

/* An update is withheld for 3 iterations at most, and its sum may arrive 2 iterations after it has left. */
Test(result, managed_communication_with_stale_reads_is_late_by_both)
{
	const struct psd_system system = {
		.name = "A", .staleness = 2, .reads = PSD_READS_STALE, .is_managed = true, .managed = {.clock = 4}};

	expect_note(&system,
		    "note: 'A' reads its own gradients at once and those of other workers at most 5 iterations late: "
		    "workers' parameters differ while they train, and are equal in tests, checkpoints and at the end; "
		    "with more than one worker its training differs from synchronous training\n");
	expect_managed(&system, (struct psd_early_chunks){.n = 0},
		       "note: 'A' sends some chunks of updates in each iteration and all of them every 4 iterations, "
		       "so that an update is withheld for at most 3 iterations; with more than one worker its training "
		       "differs from training without this\n");
}

#define WITHHELD                                                                                                       \
	"note: 'A' sends some chunks of gradients in each iteration and all of them every 2 iterations, so that a "    \
	"gradient is withheld for at most 1 iteration; with more than one worker its training differs from training "  \
	"without this\n"

/* 15 of 146 are the least that are a tenth; 1 of 5 is twice as much. */
Test(result, managed_communication_tells_the_share_that_is_sent)
{
	const struct psd_system system = {.name = "A", .is_managed = true, .managed = {.clock = 2, .early_ratio = 0.1}};
	struct psd_system by_budget = system;

	by_budget.finds_early = true;
	expect_managed(&(struct psd_system){.name = "A"}, (struct psd_early_chunks){.n = 0}, "");
	expect_managed(&system, (struct psd_early_chunks){.n = 0}, WITHHELD);
	expect_managed(&system, (struct psd_early_chunks){146, 15, 0.09},
		       WITHHELD "note: 'A' at 2 nodes sent 15 of 146 chunks (10.3 %) in each iteration but the last of "
				"a clock, 9 % of all values that it sent\n");
	expect_managed(&system, (struct psd_early_chunks){5, 1, 0.16},
		       WITHHELD "note: 'A' at 2 nodes sent 1 of 5 chunks (20 %) in each iteration but the last of a "
				"clock, 16 % of all values that it sent; smaller chunks ('chunk') come closer to "
				"'early', 10 %\n");
	expect_managed(
		&system, (struct psd_early_chunks){1, 1, 0.5},
		"note: 'A' at 2 nodes sent its only chunk in each iteration and withheld nothing; smaller chunks "
		"('chunk') come closer to 'early', 10 %\n");
	expect_managed(&by_budget, (struct psd_early_chunks){5, 5, 0.5},
		       "note: 'A' at 2 nodes sent all 5 chunks in each iteration and withheld none\n");
}

static void expect_budget(double budget_bps, double link_bps, const char *expected)
{
	const struct psd_system system = {.name = "A", .budget_bps = budget_bps};
	struct psd_text text = {.bytes = NULL};

	psd_result_add_budget(&text, &system, link_bps, 1448.0 / 1514);
	cr_expect_str_eq(text.bytes ? text.bytes : "", expected);
	psd_text_release(&text);
}

Test(result, a_budget_of_the_links_rate_limits_nothing)
{
	expect_budget(0, 160e6, "");
	expect_budget(160e6, 160e6, ""); /* it has the packets' acknowledgements, too: 1547 bytes for 1514 */
	expect_budget(163.4e6, 160e6, "");
	expect_budget(163.5e6, 160e6,
		      "note: 'A' has a 'budget' of 163.5 Mb/s, which limits nothing: the fastest link has 160 Mb/s\n");
	expect_budget(1e9, 160e6,
		      "note: 'A' has a 'budget' of 1 Gb/s, which limits nothing: the fastest link has 160 Mb/s\n");
	expect_budget(1e9, 0, "");
}

static void expect_period(bool is_managed, uint32_t period, uint64_t iterations, const char *expected)
{
	const struct psd_system system = {.name = "A", .is_managed = is_managed};
	const struct psd_result result = {.system = &system,
					  .outcome = {.period = period, .job_iterations = iterations}};
	struct psd_text text = {.bytes = NULL};

	psd_result_add_period(&text, &result, "' at 2 nodes");
	cr_expect_str_eq(text.bytes ? text.bytes : "", expected);
	psd_text_release(&text);
}

/* With periods of 16 iterations 145 iterations exchange 10 times, a tenth more often than predicted. */
Test(result, a_training_that_ends_within_a_period_exchanges_more)
{
	expect_period(false, 16, 4,
		      "note: 'A' at 2 nodes is predicted over whole periods of 16 iterations; the training has 4 and "
		      "ends with an exchange of all values, so that it sends more\n");
	expect_period(
		true, 8, 9,
		"note: 'A' at 2 nodes is predicted over whole clocks of 8 iterations; the training has 9 and ends "
		"with an exchange of all values, so that it sends more\n");
	expect_period(false, 16, 146, "");
	expect_period(false, 16, 16, "");
	expect_period(false, 1, 3, "");
	expect_period(false, 16, 0, "");
	expect_period(false, 0, 3, "");
}

Test(result, outer_steps_name_their_turns)
{
	expect_note(&(struct psd_system){.name = "A",
					 .is_local = true,
					 .local_sgd = {.steps = 8, .fragments = 1, .has_outer = true}},
		    "note: 'A' lets workers train by themselves and updates their parameters by their mean change "
		    "every 8 iterations, so that its training differs from training without this\n");
	expect_note_of_parts(
		&(struct psd_system){
			.name = "A", .is_local = true, .local_sgd = {.steps = 8, .fragments = 10, .delay = 2}},
		4,
		"note: 'A' lets workers train by themselves and averages their parameters every 8 iterations in 4 "
		"parts one after the other, joined 2 iterations late, so that its training differs from training "
		"without this\n");
}

/* The mean of updates is the update by the mean, but for rounding; and fewer steps than one there are not. */
Test(result, one_step_is_as_none)
{
	expect_note(&(struct psd_system){.name = "A", .is_local = true, .local_sgd = {.steps = 1}}, "");
	expect_note(&(struct psd_system){.name = "A", .is_local = true, .local_sgd = {.steps = 1, .window = 100}}, "");
}

/* The numbers of one-bit and top-k. */
enum { ONE_BIT, TOP_K };

Test(result, compressed_gradients_train_with_other_values)
{
	static const char rest[] =
		", adds the errors to later ones, so that its training differs from training without this\n";
	char expected[256];

	for (unsigned by = ONE_BIT; by <= TOP_K; by++)
		for (unsigned tensors = 0; tensors < 2; tensors++) {
			snprintf(expected, sizeof(expected), "note: 'A' sends gradients%s compressed (%s)%s",
				 tensors == PSD_COMPRESSED_MATRICES ? " of matrices" : "",
				 by == ONE_BIT ? "one-bit" : "top-k", rest);
			expect_note(&(struct psd_system){.name = "A",
							 .is_compressed = true,
							 .compress = {.by = by,
								      .kept_ratio = 0.01,
								      .tensors = (enum psd_compressed)tensors}},
				    expected);
		}
}

TEST_ROW(result, top_k_of_all_values_is_as_none,
	 expect_note(
		 &(struct psd_system){.name = "A", .is_compressed = true, .compress = {.by = TOP_K, .kept_ratio = 1}},
		 ""))

Test(result, gradients_of_low_rank_train_with_other_values)
{
	expect_note(&(struct psd_system){.name = "A", .is_low_rank = true, .low_rank = {.rank = 4}},
		    "note: 'A' sends gradients of matrices as products of rank 4 where these have fewer values, adds "
		    "the errors to later ones, so that its training differs from training without this\n");
}

Test(result, late_updates_train_with_other_values)
{
	expect_note(&(struct psd_system){.name = "A", .staleness = 1},
		    "note: 'A' applies gradients 1 iteration late, so that with more than one worker its training "
		    "differs from synchronous training\n");
	expect_note(&(struct psd_system){.name = "A", .staleness = 3},
		    "note: 'A' applies gradients 3 iterations late, so that with more than one worker its training "
		    "differs from synchronous training\n");
	expect_note(&(struct psd_system){.name = "A", .staleness = 0}, "");
}

Test(result, every_loss_has_its_note)
{
	const struct psd_system system = {.name = "A",
					  .is_compressed = true,
					  .compress = {.by = ONE_BIT},
					  .is_local = true,
					  .local_sgd = {.steps = 16}};

	expect_note(
		&system,
		"note: 'A' sends changes of parameters compressed (one-bit), adds the errors to later ones, so that "
		"its training differs from training without this\n"
		"note: 'A' lets workers train by themselves and averages their parameters every 16 "
		"iterations, so that its training differs from training without this\n");
}

Test(result, low_rank_is_reported_before_local_steps)
{
	const struct psd_system system = {.name = "A",
					  .is_low_rank = true,
					  .low_rank = {.rank = 1},
					  .is_local = true,
					  .local_sgd = {.steps = 16}};

	expect_note(&system,
		    "note: 'A' sends changes of matrices as products of rank 1 where these have fewer "
		    "values, adds the errors to later ones, so that its training differs from training without this\n"
		    "note: 'A' lets workers train by themselves and averages their parameters every 16 "
		    "iterations, so that its training differs from training without this\n");
}
