/* Whole runs on loopback whose workers update parameters of their own and exchange these now and then, against the
 * published law of the steps; and checkpoints within a period. How others train is in test_run_updates.c. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "real/keep/checkpoint.h"
#include "real/run_parts.h"
#include "tests/real/matrix_keys.h"
#include "tests/scratch_folder.h"

TestSuite(run_local, .timeout = 120);

/* A rounding is half of a float's last bit. */
#define ROUNDING_RATIO (FLT_EPSILON / 2)
#define LEARN	       FIXED(SGD, 0.05)

static const struct matrix_subject few_samples = {
	.graph = "../../tests/data/maskless.yaml",
	.batch = 8,
	.seed = 5,
	.train = ", data: {kind: synthetic, training_samples: 48}",
};

/* ---- many steps ---- */

/* Distance between the ends of n local iterations and of as many that exchange gradients. way: distance of the latter
 * from the start. */
static double measure_apart(const char *learn, double *way)
{
	static const struct matrix_layout ring = {"sync: ring", 3, 1}, ring_of_steps = {"sync: ring" STEPS, 3, 1};
	struct training *begun = matrix_train(&matrix_maskless, &ring, 1, MATRIX_LEARN_NOTHING),
			*gradients = matrix_train(&matrix_maskless, &ring, 4, learn),
			*local = matrix_train(&matrix_maskless, &ring_of_steps, 4, learn);
	const double apart = training_distance(local, gradients);

	*way = training_distance(begun, gradients);
	training_free(begun);
	training_free(gradients);
	training_free(local);
	return apart;
}

/* From w worker k goes to w - r (g_k(w) + g_k(w - r g_k(w)) + ...) = w - n r g_k(w) + r^2 ... The mean of that is the
 * result of the mean gradient, but for the term in r^2: at a quarter of the rate a sixteenth, and the distance from the
 * start is a fourth. */
Test(run_local, the_mean_of_small_steps_is_that_of_gradients)
{
	double way, short_way;
	const double apart = measure_apart(FIXED("kind: sgd", 0.08), &way),
		     less = measure_apart(FIXED("kind: sgd", 0.02), &short_way);

	cr_expect_float_eq(way / short_way, 4.0, 0.4, "%g", way / short_way);
	cr_expect_float_eq(apart / less, 16.0, 4.0, "%g of %g: %g", apart, less, apart / less);
	cr_expect_gt(less, 10 * (double)ROUNDING_RATIO * short_way, "the term in r^2 must be more than rounding");
}

/* Two iterations warm up: with 3 steps that is a period of 3. Then at least the requested number is measured. */
Test(run_local, a_replay_measures_whole_periods)
{
	cr_expect_eq(psd_run_whole_periods(6, 0, 1), 6);
	cr_expect_eq(psd_run_whole_periods(6, 0, 3), 9);   /* 4 are 6 */
	cr_expect_eq(psd_run_whole_periods(14, 0, 4), 16); /* 12 are 12 */
	cr_expect_eq(psd_run_whole_periods(1, 0, 16), 32);
	cr_expect_eq(psd_run_whole_periods(6, 8, 4), 12); /* late updates: 8 warm up */
}

/* ---- steps that follow the loss ---- */

/* Iterations of the window, in which steps are decided anew. */
enum { WINDOW = 24, WINDOWS = 4, FOLLOWED = WINDOW * WINDOWS - 3, MOST_STEPS = WINDOW };

/* Remarks and losses of worker 0, in memory that the processes share. */
static struct seen {
	double losses[FOLLOWED];
	uint32_t steps[WINDOWS]; /* as remarked, and why */
	bool rate_falls[WINDOWS];
} * seen;

static void see_loss(void *context, const struct psd_progress *progress)
{
	(void)context;
	seen->losses[progress->iteration] = progress->loss;
}

static void see_steps(void *context, const char *line)
{
	unsigned iteration, steps;

	(void)context;
	if (sscanf(line, "after %u iterations %u local step", &iteration, &steps) == 2) {
		seen->steps[iteration / WINDOW] = steps;
		seen->rate_falls[iteration / WINDOW] = strstr(line, ": the learning rate falls") != NULL;
	}
}

static struct training *follow(const struct matrix_layout *of, const char *learn)
{
	char system[256];
	const struct matrix_layout followed = {system, of->workers, of->workers_per_node};
	struct training *training;

	snprintf(system, sizeof(system), "%s, local_sgd: {steps: %d, window: %d}", of->system, MOST_STEPS, WINDOW);
	training = matrix_make(&few_samples, &followed, FOLLOWED, learn);
	if (!seen)
		seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq((void *)seen, MAP_FAILED);
	memset(seen, 0, sizeof(*seen));
	training->options.worker.progress = see_loss;
	training->options.worker.remark = see_steps;
	training_finish(training, system);
	training_expect_same_on_all(training, system);
	return training;
}

/* Mean loss of the 24 iterations that end so many before the window: as many as the program has under way at a time. */
static double mean_before(unsigned window, uint32_t under_way)
{
	const uint32_t end = window * WINDOW - under_way, begin = window == 1 ? 0 : end - WINDOW;
	double sum = 0.0;

	for (uint32_t i = begin; i < end; i++)
		sum += seen->losses[i];
	return sum / (end - begin);
}

/* Without a remark they stay. */
static void expect_law(const struct training *training, const char *system)
{
	uint32_t before = MOST_STEPS, n_by_loss = 0;

	for (unsigned w = 1; w < WINDOWS; w++) {
		const double loss = mean_before(w, training->made.program.window);
		const uint32_t wanted = (uint32_t)ceil(sqrt(loss / seen->losses[0]) * MOST_STEPS);
		const uint32_t expected = wanted < before ? wanted : before > 1 ? before / 2 : 1;

		cr_expect_eq(seen->steps[w] ? seen->steps[w] : before, expected, "%s, window %u: %u, not %u", system, w,
			     seen->steps[w], expected);
		n_by_loss += wanted > 1 && wanted < before && wanted != before / 2;
		before = expected;
	}
	cr_expect_gt(n_by_loss, 1, "%s: no loss was followed", system);
}

/* Fast enough for a loss that asks for fewer steps in every window, slower than halving would. */
#define LEARN_FAST FIXED(SGD, 0.4)

#define FOLLOWS(name, ...)                                                                                             \
	Test(run_local, name)                                                                                          \
	{                                                                                                              \
		const struct matrix_layout layouts[] = {__VA_ARGS__};                                                  \
                                                                                                                       \
		for (unsigned l = 0; l < sizeof(layouts) / sizeof(layouts[0]); l++) {                                  \
			struct training *training = follow(&layouts[l], LEARN_FAST);                                   \
                                                                                                                       \
			expect_law(training, layouts[l].system);                                                       \
			training_free(training);                                                                       \
		}                                                                                                      \
	}
FOLLOWS(steps_of_all_reduces_follow_the_loss, {"sync: ring", 2, 1}, {"sync: ring, fuse: 1MB", 3, 1},
	{"sync: halving-doubling", 4, 2}, {"sync: two-level", 4, 2})
FOLLOWS(steps_of_servers_follow_the_loss, {"sync: ps", 2, 1}, {"sync: ps", 4, 2}, {"sync: ps, servers: 2", 3, 1},
	{"sync: ps, schedule: sequential", 4, 2},
	{"sync: ps, pair: 512B, slice: 1KiB, barrier: layer, priority: forward", 3, 1})
FOLLOWS(steps_of_leaders_follow_the_loss, {"sync: two-level-ps", 4, 2}, {"sync: two-level-ps, servers: 1", 4, 2})

Test(run_local, steps_that_follow_the_loss_repeat_exactly)
{
	static const struct matrix_layout layouts[] = {{"sync: ring", 2, 1},
						       {"sync: two-level", 4, 2},
						       {"sync: ps, servers: 2", 3, 1},
						       {"sync: two-level-ps", 4, 2}};

	for (unsigned l = 0; l < sizeof(layouts) / sizeof(layouts[0]); l++) {
		struct training *one = follow(&layouts[l], LEARN_FAST), *other = follow(&layouts[l], LEARN_FAST);

		cr_expect(training_is_same(one, 0, other, 0), "%s differs from run to run", layouts[l].system);
		training_free(one);
		training_free(other);
	}
}

/* Iteration 56 lies in window 2. */
Test(run_local, a_rate_that_falls_ends_local_steps)
{
	struct training *training = follow(&(struct matrix_layout){"sync: ring", 2, 1},
					   ", optimiser: {momentum: 0.9}, learning_rate: {policy: multistep, base: "
					   "0.05, gamma: 0.1, steps: [56]}");

	cr_expect_gt(seen->steps[1], 1);
	cr_expect(!seen->rate_falls[1]);
	cr_expect_eq(seen->steps[2], 1);
	cr_expect(seen->rate_falls[2]);
	cr_expect_eq(seen->steps[3], 0);
	training_free(training);
}

/* Where a ring is quicker for each tensor the server has nothing to do, and stands at no fence: it hears of two more
 * windows all the same. */
Test(run_local, a_server_without_tensors_hears_of_steps)
{
	static const struct matrix_layout idle = {
		"sync: hybrid, rule: seconds, servers: 1, local_sgd: {steps: 4, window: 24}", 2, 1};
	struct training *training = matrix_train(&few_samples, &idle, 3 * WINDOW, LEARN);

	for (unsigned i = 0; i < training->made.plan.n_items; i++)
		cr_assert(training->made.plan.items[i].method->collective->steps, "item %u", i);
	training_free(training);
}

/* A run that ends where steps would be decided, up to four iterations before and one behind. */
#define ROW_ENDS(name, n_iterations)                                                                                   \
	MATRIX_ROW(run_local, name, matrix_is_same_on_all, .subject = &few_samples, .iterations = (n_iterations),      \
		   MATRIX_ON({"sync: ring", 2, 1}, {"sync: ps, servers: 1", 2, 1}), .learns = {LEARN},                 \
		   .keys = {", local_sgd: {steps: 4, window: 24}"})
ROW_ENDS(a_run_may_end_four_before_a_decision, WINDOW - 4)
ROW_ENDS(a_run_may_end_three_before_a_decision, WINDOW - 3)
ROW_ENDS(a_run_may_end_two_before_a_decision, WINDOW - 2)
ROW_ENDS(a_run_may_end_before_a_decision, WINDOW - 1)
ROW_ENDS(a_run_may_end_at_a_decision, WINDOW)
ROW_ENDS(a_run_may_end_after_a_decision, WINDOW + 1)

/* ---- checkpoints ---- */

static struct training *go(const char *system, unsigned workers, const char *learn,
			   const struct psd_checkpoints *checkpoints, uint32_t first, uint32_t end)
{
	struct training *training = matrix_make(&few_samples, &(struct matrix_layout){system, workers, 1}, end, learn);

	training->options.worker.checkpoints = checkpoints;
	training->options.worker.first_iteration = first;
	training->options.worker.first_sample = (uint64_t)first * workers * few_samples.batch;
	training_run(training);
	return training;
}

/* Three workers. */
static struct training *go_on(const char *system, const struct psd_checkpoints *checkpoints, uint32_t first,
			      uint32_t end)
{
	struct training *training = go(system, 3, LEARN_FAST, checkpoints, first, end);

	cr_assert_eq(training->status, PSD_OK, "%s: %s", system, training->err.text);
	return training;
}

/* The end of a run cuts a period, and a resumed run begins another: from the parameters there, which at next to no rate
 * stay as they are. A difference to anything else would be rounded to the 8 bits of bf16. */
FOLDER_TEST(run_local, a_run_resumed_within_a_period_begins_another, scratch_folder_make())
{
	static const char system[] = "sync: ring, wire: bf16" STEPS;
	const struct psd_checkpoints checkpoints = {.folder = folder.path, .every_iterations = 2};
	struct training *before = go(system, 2, LEARN, &checkpoints, 0, 2),
			*after = go(system, 2, MATRIX_LEARN_NOTHING, &checkpoints, 2, 4);

	cr_assert(before->status == PSD_OK && after->status == PSD_OK, "%s%s", before->err.text, after->err.text);
	cr_expect_leq(training_distance(after, before), 1e-6 * training_distance(before, NULL));
	training_free(before);
	training_free(after);
}

/* At `cut` there is an exchange in any case. */
static void check_cut(const char *system, uint32_t every, uint32_t cut)
{
	const struct scratch_folder whole = scratch_folder_make(), folder = scratch_folder_make();
	const struct psd_checkpoints once = {.folder = whole.path, .every_iterations = every},
				     twice = {.folder = folder.path, .every_iterations = every};
	struct training *uncut = go_on(system, &once, 0, FOLLOWED), *before = go_on(system, &twice, 0, cut),
			*after = go_on(system, &twice, cut, FOLLOWED);

	for (unsigned w = 0; w < 3; w++)
		cr_expect(training_is_same(after, w, uncut, w), "%s, cut before iteration %u: worker %u differs",
			  system, cut, w);
	training_free(uncut);
	training_free(before);
	training_free(after);
	scratch_folder_remove(&whole);
	scratch_folder_remove(&folder);
}

/* With 7 steps in window 0, exchanges end iterations 6, 13 and 15; those of window 1 are decided two iterations before
 * it. With 24 steps the only exchange ends 23. Then window 1 has 22 steps, so exchanges end 45 and 47, and window 2 has
 * 8: 55, 63, 71. The steps of window 3 depend on losses before and after a cut at 56. */
Test(run_local, short_steps_that_follow_the_loss_resume)
{
	check_cut("sync: ring, local_sgd: {steps: 7, window: 16}", 5, 7);
	check_cut("sync: ring, local_sgd: {steps: 7, window: 16}", 5, 14);
	check_cut("sync: ps, servers: 1, local_sgd: {steps: 7, window: 16}", 5, 14);
}

Test(run_local, long_steps_that_follow_the_loss_resume)
{
	check_cut("sync: ring, local_sgd: {steps: 24, window: 24}", 5, 24);
	check_cut("sync: ring, local_sgd: {steps: 24, window: 24}", 5, 46);
	check_cut("sync: ring, local_sgd: {steps: 24, window: 24}", 50, 56);
	check_cut("sync: ps, servers: 1, local_sgd: {steps: 24, window: 24}", 5, 56);
}

/* Due before iteration 3, within a period of 4. */
FOLDER_TEST(run_local, a_checkpoint_waits_for_the_exchange, scratch_folder_make())
{
	const struct psd_checkpoints checkpoints = {.folder = folder.path, .every_iterations = 3};

	training_free(go_on("sync: ps" STEPS, &checkpoints, 0, 5));
	cr_expect(scratch_folder_has(&folder, "iteration-4/host-2-of-3.safetensors"));
	cr_expect_not(scratch_folder_has(&folder, "iteration-3"));
}

/* Before iteration 5, within a period of 4 in which fragments have exchanged or not, and are under way or not. The
 * checkpoint is of the run that is not cut, so that this does not end with it. */
static void check_midway(const char *system)
{
	const struct scratch_folder folder = scratch_folder_make();
	const struct psd_checkpoints checkpoints = {.folder = folder.path, .every_iterations = 5};
	struct training *uncut = go_on(system, &checkpoints, 0, 9), *after = go_on(system, &checkpoints, 5, 9);

	for (unsigned w = 0; w < 3; w++)
		cr_expect(training_is_same(after, w, uncut, w), "%s: worker %u differs", system, w);
	cr_expect(training_is_same(after, 0, after, 1), "%s", system);
	cr_expect(scratch_folder_has(&folder, "iteration-9"), "%s", system);
	training_free(uncut);
	training_free(after);
	scratch_folder_remove(&folder);
}

Test(run_local, fragments_resume_within_a_period)
{
	check_midway("sync: ring, local_sgd: {steps: 4, fragments: 3, outer: {}}");
	check_midway("sync: ps, local_sgd: {steps: 4, fragments: 2}");
	check_midway("sync: ps, servers: 1, wire: bf16, local_sgd: {steps: 3, fragments: 3, outer: {}}");
	check_midway("sync: ps, compress: {by: int8}, local_sgd: {steps: 4, fragments: 2, outer: {}}");
}

/* The exchange of iteration 3 is joined in 5 or 6. */
Test(run_local, exchanges_under_way_resume)
{
	check_midway("sync: ring, local_sgd: {steps: 4, delay: 2, outer: {}}");
	check_midway("sync: ps, local_sgd: {steps: 4, delay: 3}");
	check_midway("sync: ring, fuse: 2KiB, local_sgd: {steps: 4, fragments: 3, delay: 2, outer: {}}");
	check_midway("sync: ps, compress: {by: int8}, local_sgd: {steps: 4, delay: 2, outer: {}}");
}

/* They begin with the parameters of each fragment's last exchange, which all workers had. */
FOLDER_TEST(run_local, fewer_workers_resume_within_a_period, scratch_folder_make())
{
	static const char system[] = "sync: ring, local_sgd: {steps: 4, fragments: 2, delay: 1, outer: {}}";
	const struct psd_checkpoints checkpoints = {.folder = folder.path, .every_iterations = 5};
	struct training *before = go(system, 3, LEARN_FAST, &checkpoints, 0, 9),
			*after = matrix_make(&few_samples, &(struct matrix_layout){system, 2, 1}, 9, LEARN_FAST);

	after->options.worker.checkpoints = &checkpoints;
	after->options.worker.first_iteration = 5;
	after->options.worker.first_sample = UINT64_C(5) * 3 * few_samples.batch;
	after->options.worker.from_hosts = 3;
	training_finish(after, system);
	training_expect_same_on_all(after, system);
	training_free(before);
	training_free(after);
}

static void expect_not_to_resume(const char *system, const struct psd_checkpoints *checkpoints, const char *words)
{
	struct training *training = go(system, 3, LEARN, checkpoints, 7, 9);

	cr_expect_eq(training->status, PSD_EINVAL, "%s", system);
	cr_expect(strstr(training->err.text, words), "%s: %s", system, training->err.text);
	training_free(training);
}

/* 7 steps in the beginning and windows of 16 iterations. */
FOLDER_TEST(run_local, steps_of_another_system_are_refused, scratch_folder_make())
{
	const struct psd_checkpoints checkpoints = {.folder = folder.path, .every_iterations = 7};

	training_free(go_on("sync: ring, local_sgd: {steps: 7, window: 16}", &checkpoints, 0, 7));
	expect_not_to_resume("sync: ring, local_sgd: {steps: 2, window: 16}", &checkpoints,
			     "of-3.safetensors: 'local_sgd' of the checkpoint has 7 steps, must be 1 to 2");
	expect_not_to_resume(
		"sync: ring, local_sgd: {steps: 7, window: 32}", &checkpoints,
		"of-3.safetensors: 'local_sgd' of the checkpoint has a window of 16 iterations, must be 32");
}
