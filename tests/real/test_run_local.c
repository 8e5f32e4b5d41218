/* Whole runs on loopback whose workers update parameters of their own and exchange these now and then: against runs
 * that exchange gradients, runs of one worker, and the published law of the steps. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "real/run_parts.h"
#include "real/session/checkpoint.h"
#include "tests/real/going_on.h"
#include "tests/real/training.h"
#include "tests/scratch_folder.h"

TestSuite(run_local, .timeout = 120);

#define MODEL "../../tests/data/maskless.yaml"
#define LEARN ", optimiser: {momentum: 0.9, weight_decay: 0.01}, learning_rate: {policy: fixed, base: 0.05}"

/* Half of what a float's last bit counts. */
#define ROUNDING_RATIO (FLT_EPSILON / 2)
/* How often a parameter of norm |w| is rounded between two exchanges, when the worker goes and when all join: its step,
 * the difference to the start, the sum of these, and the new parameter; the other run rounds it once. Its effect in
 * later iterations is smaller again. */
#define ROUNDINGS (2 * 5)
/* Share of the distance from the start, so that runs that learn nothing do not pass. */
#define SAME_WAY_RATIO 1e-3

struct job {
	const char *system;
	unsigned workers, workers_per_node;
	uint32_t batch, iterations;
	unsigned training_samples;
	const char *learn;
};

static struct training *make(const struct job *job)
{
	char train[512];

	snprintf(train, sizeof(train), "iterations: %u, data: {kind: synthetic, training_samples: %u}%s",
		 job->iterations, job->training_samples, job->learn);
	return training_make(MODEL, job->system, job->workers, job->workers_per_node, job->batch, 5, train);
}

static struct training *train(const struct job *job)
{
	return training_finish(make(job), job->system);
}

/* Where every run of the seed begins: a rate that moves nothing. */
static struct training *train_nothing(void)
{
	return train(&(struct job){"sync: ring", 1, 1, 8, 1, 8, ", learning_rate: {policy: fixed, base: 1e-9}"});
}

/* Tensor by tensor. */
static void expect_same(const struct training *one, const struct training *other, unsigned n_exchanges,
			const char *what)
{
	const struct psd_graph *graph = &one->loaded.costed.graph;
	const double ratio = ROUNDINGS * (double)n_exchanges * (double)ROUNDING_RATIO;
	struct training *begun = train_nothing();
	const float *left = training_parameters(one, 0), *right = training_parameters(other, 0);
	const float *begin = training_parameters(begun, 0);

	for (unsigned t = 0; t < graph->n_tensors; t++) {
		const uint64_t elements = graph->tensors[t].elements;
		const double apart = training_values_distance(left, right, elements);
		const double norm = training_values_distance(right, NULL, elements);
		const double way = training_values_distance(begin, right, elements);

		cr_expect_leq(apart, ratio * norm, "%s: %s is off by %g of its norm, at most %g", what,
			      graph->tensors[t].name, apart / norm, ratio);
		cr_expect_leq(apart, SAME_WAY_RATIO * way, "%s: %s is off by %g of its way", what,
			      graph->tensors[t].name, apart / way);
		left += elements, right += elements, begin += elements;
	}
	training_free(begun);
}

/* ---- one step ---- */

struct local_case {
	const char *system;
	unsigned workers, workers_per_node;
};

static const struct local_case cases[] = {
	{"sync: ring", 2, 1},
	{"sync: ring, fuse: 1MB", 3, 1},
	{"sync: halving-doubling", 4, 2},
	{"sync: two-level", 4, 2},
	{"sync: ps", 2, 1},
	{"sync: ps", 4, 2},
	{"sync: ps, servers: 2", 3, 1},
	{"sync: ps, schedule: sequential", 4, 2},
	{"sync: ps, pair: 512B, slice: 1KiB, barrier: layer, priority: forward", 3, 1},
	{"sync: two-level-ps", 4, 2},
	{"sync: two-level-ps, servers: 1", 4, 2},
};
enum { N_CASES = sizeof(cases) / sizeof(cases[0]) };

static struct training *train_case(const struct local_case *of, const char *local, uint32_t iterations,
				   unsigned training_samples, const char *learn)
{
	char system[256];
	const struct job job = {system, of->workers, of->workers_per_node, 8, iterations, training_samples, learn};

	snprintf(system, sizeof(system), "%s%s", of->system, local);
	return train(&job);
}

Test(run_local, one_step_is_an_exchange_of_gradients)
{
	enum { ITERATIONS = 6 };

	for (unsigned c = 0; c < N_CASES; c++) {
		struct training *gradients = train_case(&cases[c], "", ITERATIONS, 96, LEARN);
		struct training *local = train_case(&cases[c], ", local_sgd: {steps: 1}", ITERATIONS, 96, LEARN);

		expect_same(local, gradients, ITERATIONS, cases[c].system);
		training_free(gradients);
		training_free(local);
	}
}

/* ---- many steps ---- */

/* Where all have the same samples each goes where one worker alone would. 7 iterations: two whole periods and one that
 * the end cuts. */
static void check_alone(const struct training *alone, const struct local_case *of, const char *learn)
{
	struct training *local = train_case(of, ", local_sgd: {steps: 3}", 7, 8, learn);

	training_expect_same_on_all(local, of->system);
	expect_same(local, alone, 7, of->system);
	training_free(local);
}

static struct training *train_alone(const char *learn)
{
	return train(&(struct job){"sync: ring", 1, 1, 8, 7, 8, learn});
}

Test(run_local, workers_with_the_same_samples_go_as_one)
{
	struct training *alone = train_alone(LEARN);

	for (unsigned c = 0; c < N_CASES; c++)
		check_alone(alone, &cases[c], LEARN);
	training_free(alone);
}

/* Norms are of a worker's own gradient, as large as that of one alone; at servers, too. */
Test(run_local, lars_goes_by_a_workers_own_norms)
{
	static const char learn[] = ", optimiser: {kind: lars, trust: 0.02, momentum: 0.9, weight_decay: 0.01}, "
				    "learning_rate: {policy: fixed, base: 1}";
	struct training *alone = train_alone(learn);

	for (unsigned c = 0; c < N_CASES; c++)
		check_alone(alone, &cases[c], learn);
	training_free(alone);
}

/* So are its means. The number added to the root is large here: half of it, or twice as much, would show. */
Test(run_local, adamw_goes_by_a_workers_own_means)
{
	static const char learn[] = ", optimiser: {kind: adamw, beta1: 0.8, beta2: 0.9, epsilon: 0.02, weight_decay: "
				    "0.1}, learning_rate: {policy: fixed, base: 0.02}";
	struct training *alone = train_alone(learn);

	for (unsigned c = 0; c < N_CASES; c++)
		check_alone(alone, &cases[c], learn);
	training_free(alone);
}

/* Distance of n local iterations from as many that exchange gradients, and the way of these. */
static double measure_apart(double rate, double *way)
{
	static const struct local_case ring = {"sync: ring", 3, 1};
	struct training *begun = train_nothing(), *gradients, *local;
	char learn[96];
	double apart;

	snprintf(learn, sizeof(learn), ", learning_rate: {policy: fixed, base: %.9f}", rate);
	gradients = train_case(&ring, "", 4, 96, learn);
	local = train_case(&ring, ", local_sgd: {steps: 4}", 4, 96, learn);
	apart = training_distance(local, gradients);
	*way = training_distance(begun, gradients);
	training_free(begun);
	training_free(gradients);
	training_free(local);
	return apart;
}

/* From w worker k goes to w - r (g_k(w) + g_k(w - r g_k(w)) + ...) = w - n r g_k(w) + r^2 ... The mean of that is
 * where the mean gradient leads, but for the term in r^2: at a quarter of the rate a sixteenth, and a
 * fourth of the way. */
Test(run_local, the_mean_of_small_steps_is_that_of_gradients)
{
	double way, short_way;
	const double apart = measure_apart(0.08, &way), less = measure_apart(0.02, &short_way);

	cr_expect_float_eq(way / short_way, 4.0, 0.4, "%g", way / short_way);
	cr_expect_float_eq(apart / less, 16.0, 4.0, "%g of %g: %g", apart, less, apart / less);
	cr_expect_gt(less, 10 * (double)ROUNDING_RATIO * short_way, "the term in r^2 must be more than rounding");
}

/* ---- the same on all ---- */

/* Also at the end of a period that the end of the run cuts: 10 iterations of 4. */
Test(run_local, all_end_with_the_same_bits)
{
	static const struct local_case lossy[] = {
		{"sync: ring, wire: bf16", 3, 1},
		{"sync: ps, wire: bf16", 3, 1},
		{"sync: two-level-ps, wire: bf16", 4, 2},
		{"sync: ring, barrier: layer, priority: forward", 3, 1},
		{"sync: double-tree, schedule: sequential, fuse: 4KiB", 4, 1},
	};
	static const char *const learns[] = {LEARN, LEARN ", deterministic: false"};

	for (unsigned l = 0; l < 2; l++) {
		for (unsigned c = 0; c < sizeof(lossy) / sizeof(lossy[0]); c++) {
			struct training *training = train_case(&lossy[c], ", local_sgd: {steps: 4}", 10, 96, learns[l]);

			training_expect_same_on_all(training, lossy[c].system);
			training_free(training);
		}
		for (unsigned c = 0; c < N_CASES; c++) {
			struct training *training = train_case(&cases[c], ", local_sgd: {steps: 4}", 10, 96, learns[l]);

			training_expect_same_on_all(training, cases[c].system);
			training_free(training);
		}
	}
}

Test(run_local, a_run_repeats_exactly)
{
	for (unsigned c = 0; c < N_CASES; c += 3) {
		struct training *one = train_case(&cases[c], ", local_sgd: {steps: 4}", 9, 96, LEARN);
		struct training *other = train_case(&cases[c], ", local_sgd: {steps: 4}", 9, 96, LEARN);

		cr_expect(training_is_same(one, 0, other, 0), "%s", cases[c].system);
		training_free(one);
		training_free(other);
	}
}

/* One worker has nobody to exchange with. */
Test(run_local, a_single_worker_trains_as_without)
{
	static const char *const syncs[] = {"sync: ring", "sync: ps", "sync: two-level-ps"};

	for (unsigned s = 0; s < 3; s++) {
		const struct local_case alone = {syncs[s], 1, 1};
		struct training *without = train_case(&alone, "", 5, 96, LEARN);
		struct training *local = train_case(&alone, ", local_sgd: {steps: 4, window: 16}", 5, 96, LEARN);

		cr_expect(training_is_same(local, 0, without, 0), "%s", syncs[s]);
		training_free(without);
		training_free(local);
	}
}

/* ---- bytes ---- */

/* Among 14 iterations, the first period is not measured, nor the last two, which exchange early. */
Test(run_local, a_period_sends_what_an_iteration_does)
{
	for (unsigned c = 0; c < N_CASES; c++) {
		struct training *gradients = train_case(&cases[c], "", 3, 96, LEARN);
		struct training *local = train_case(&cases[c], ", local_sgd: {steps: 4}", 14, 96, LEARN);

		cr_expect_eq(local->result.sent_bytes_per_node, gradients->result.sent_bytes_per_node / 4,
			     "%s: %lu of %lu", cases[c].system, local->result.sent_bytes_per_node,
			     gradients->result.sent_bytes_per_node);
		cr_expect_eq(local->result.received_bytes_per_node, gradients->result.received_bytes_per_node / 4,
			     "%s: %lu of %lu", cases[c].system, local->result.received_bytes_per_node,
			     gradients->result.received_bytes_per_node);
		training_free(gradients);
		training_free(local);
	}
}

/* Too short to warm up: of 5 iterations the whole period counts, of 3 all with their one exchange. */
Test(run_local, a_short_run_counts_what_there_is)
{
	struct training *gradients = train_case(&cases[0], "", 3, 96, LEARN);
	struct training *five = train_case(&cases[0], ", local_sgd: {steps: 4}", 5, 96, LEARN);
	struct training *three = train_case(&cases[0], ", local_sgd: {steps: 4}", 3, 96, LEARN);
	const uint64_t bytes = gradients->result.sent_bytes_per_node;

	cr_expect_eq(five->result.sent_bytes_per_node, bytes / 4, "%lu of %lu", five->result.sent_bytes_per_node,
		     bytes);
	cr_expect_eq(three->result.sent_bytes_per_node, bytes / 3, "%lu of %lu", three->result.sent_bytes_per_node,
		     bytes);
	training_free(gradients);
	training_free(five);
	training_free(three);
}

/* Two iterations warm up, which are one period of 3 steps; then whole periods measure at least the rest. */
Test(run_local, a_replay_measures_whole_periods)
{
	cr_expect_eq(psd_run_whole_periods(6, 1), 6);
	cr_expect_eq(psd_run_whole_periods(6, 3), 9);	/* 4 are 6 */
	cr_expect_eq(psd_run_whole_periods(14, 4), 16); /* 12 are 12 */
	cr_expect_eq(psd_run_whole_periods(1, 16), 32);
}

/* ---- steps that follow the loss ---- */

enum { WINDOW = 24, WINDOWS = 4, FOLLOWED = WINDOW * WINDOWS - 3, STEPS = WINDOW };

/* Worker 0's results of a run, in memory that the processes share. */
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

static struct training *follow(const struct local_case *of, const char *gap, const char *learn)
{
	char system[256];
	const struct job job = {system, of->workers, of->workers_per_node, 8, FOLLOWED, 48, learn};
	struct training *training;

	snprintf(system, sizeof(system), "%s, local_sgd: {steps: %d, window: %d%s}", of->system, STEPS, WINDOW, gap);
	training = make(&job);
	if (!seen)
		seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq((void *)seen, MAP_FAILED);
	memset(seen, 0, sizeof(*seen));
	training->options.worker.progress = see_loss;
	training->options.worker.remark = see_steps;
	return training_finish(training, system);
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
	uint32_t before = STEPS, n_by_loss = 0;

	for (unsigned w = 1; w < WINDOWS; w++) {
		const double loss = mean_before(w, training->made.program.window);
		const uint32_t wanted = (uint32_t)ceil(sqrt(loss / seen->losses[0]) * STEPS);
		const uint32_t expected = wanted < before ? wanted : before > 1 ? before / 2 : 1;

		cr_expect_eq(seen->steps[w] ? seen->steps[w] : before, expected, "%s, window %u: %u, not %u", system, w,
			     seen->steps[w], expected);
		n_by_loss += wanted > 1 && wanted < before && wanted != before / 2;
		before = expected;
	}
	cr_expect_gt(n_by_loss, 1, "%s: no loss was followed", system);
}

/* Fast enough for a loss that asks for fewer steps in every window, slower than halving would. */
#define LEARN_FAST ", optimiser: {momentum: 0.9, weight_decay: 0.01}, learning_rate: {policy: fixed, base: 0.4}"

Test(run_local, steps_follow_the_loss)
{
	for (unsigned c = 0; c < N_CASES; c++) {
		struct training *training = follow(&cases[c], "", LEARN_FAST);

		expect_law(training, cases[c].system);
		training_expect_same_on_all(training, cases[c].system);
		training_free(training);
	}
}

Test(run_local, steps_that_follow_the_loss_repeat_exactly)
{
	for (unsigned c = 0; c < N_CASES; c += 3) {
		struct training *one = follow(&cases[c], "", LEARN_FAST), *other = follow(&cases[c], "", LEARN_FAST);

		cr_expect(training_is_same(one, 0, other, 0), "%s differs from run to run", cases[c].system);
		training_free(one);
		training_free(other);
	}
}

/* Iteration 56 lies in window 2. */
Test(run_local, a_rate_that_falls_ends_local_steps)
{
	struct training *training = follow(&cases[0], "",
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
	static const struct local_case idle = {"sync: hybrid, rule: seconds, servers: 1", 2, 1};
	struct training *training = train_case(&idle, ", local_sgd: {steps: 4, window: 24}", 3 * WINDOW, 48, LEARN);

	for (unsigned i = 0; i < training->made.plan.n_items; i++)
		cr_assert(training->made.plan.items[i].method->collective->steps, "item %u", i);
	training_expect_same_on_all(training, idle.system);
	training_free(training);
}

/* A run that ends where steps would be decided, an iteration before and one behind. */
Test(run_local, a_run_may_end_at_a_decision)
{
	static const struct local_case ends[] = {{"sync: ring", 2, 1}, {"sync: ps, servers: 1", 2, 1}};

	for (unsigned c = 0; c < 2; c++)
		for (uint32_t iterations = WINDOW - 4; iterations <= WINDOW + 1; iterations++) {
			struct training *training =
				train_case(&ends[c], ", local_sgd: {steps: 4, window: 24}", iterations, 48, LEARN);

			training_expect_same_on_all(training, ends[c].system);
			training_free(training);
		}
}

/* ---- runs that go on ---- */

#define LEARN_ON "data: {training_samples: 40, test_samples: 32}, optimiser: {momentum: 0.9}"

/* Saved before iterations 3 and 6, where 2 and 4 were asked for. */
Test(run_local, a_resumed_run_ends_like_an_uninterrupted_one)
{
	going_on_check("sync: ring, local_sgd: {steps: 3}", LEARN_ON, 2, 1, NULL);
	going_on_check("sync: ring, wire: bf16, local_sgd: {steps: 3}", LEARN_ON, 3, 1, NULL);
	going_on_check("sync: ps, local_sgd: {steps: 3}", LEARN_ON, 3, 1, NULL);
	going_on_check("sync: ps, servers: 2, wire: bf16, local_sgd: {steps: 3}", LEARN_ON, 2, 1, NULL);
	going_on_check("sync: two-level-ps, barrier: layer, local_sgd: {steps: 3}", LEARN_ON, 4, 2, NULL);
	going_on_check("sync: ps, local_sgd: {steps: 3}",
		       "data: {training_samples: 40, test_samples: 32}, optimiser: {kind: adamw, weight_decay: 0.1}", 2,
		       1, NULL);
}

/* The end of a run cuts a period, and what goes on begins another: from the parameters there, which at next to no rate
 * stay what they are. A difference to anything else would be rounded to the 8 bits of bf16. */
static void check_period_cut(const char *system, unsigned workers)
{
	static const char stays[] = ", learning_rate: {policy: fixed, base: 1e-9}";
	const struct scratch_folder folder = scratch_folder_make();
	const struct psd_checkpoints checkpoints = {folder.path, 2};
	struct training *before = make(&(struct job){system, workers, 1, 8, 2, 48, LEARN});
	struct training *after = make(&(struct job){system, workers, 1, 8, 4, 48, stays});

	before->options.worker.checkpoints = after->options.worker.checkpoints = &checkpoints;
	after->options.worker.first_iteration = 2;
	after->options.worker.first_sample = (uint64_t)2 * workers * 8;
	training_finish(before, system);
	training_finish(after, system);
	cr_expect_leq(training_distance(after, before), 1e-6 * training_distance(before, NULL), "%s", system);
	training_free(before);
	training_free(after);
	scratch_folder_remove(&folder);
}

Test(run_local, a_run_resumed_within_a_period_begins_a_new_one)
{
	check_period_cut("sync: ring, wire: bf16, local_sgd: {steps: 4}", 2);
}

static struct training *go(const char *system, const struct psd_checkpoints *checkpoints, uint32_t first, uint32_t end)
{
	struct training *training = make(&(struct job){system, 3, 1, 8, end, 48, LEARN_FAST});

	training->options.worker.checkpoints = checkpoints;
	training->options.worker.first_iteration = first;
	training->options.worker.first_sample = (uint64_t)first * 3 * 8;
	return training_finish(training, system);
}

/* At `cut` there is an exchange in any case. */
static void check_cut(const char *system, uint32_t every, uint32_t cut)
{
	const struct scratch_folder whole = scratch_folder_make(), folder = scratch_folder_make();
	const struct psd_checkpoints once = {whole.path, every}, twice = {folder.path, every};
	struct training *uncut = go(system, &once, 0, FOLLOWED), *before = go(system, &twice, 0, cut);
	struct training *after = go(system, &twice, cut, FOLLOWED);

	for (unsigned w = 0; w < 3; w++)
		cr_expect(training_is_same(after, w, uncut, w), "%s, cut before iteration %u: worker %u differs",
			  system, cut, w);
	training_free(uncut);
	training_free(before);
	training_free(after);
	scratch_folder_remove(&whole);
	scratch_folder_remove(&folder);
}

/* With 7 steps in window 0, exchanges end iterations 6, 13 and 15; the steps of window 1 are decided two iterations
 * before it. With 24 steps the only exchange ends 23, then window 1 has 22 steps, so 45 and 47, and window 2 has 8: 55,
 * 63, 71. The steps of window 3 depend on losses before and behind a cut at 56. */
Test(run_local, steps_that_follow_the_loss_go_on)
{
	check_cut("sync: ring, local_sgd: {steps: 7, window: 16}", 5, 7);
	check_cut("sync: ring, local_sgd: {steps: 7, window: 16}", 5, 14);
	check_cut("sync: ps, servers: 1, local_sgd: {steps: 7, window: 16}", 5, 14);
	check_cut("sync: ring, local_sgd: {steps: 24, window: 24}", 5, 24);
	check_cut("sync: ring, local_sgd: {steps: 24, window: 24}", 5, 46);
	check_cut("sync: ring, local_sgd: {steps: 24, window: 24}", 50, 56);
	check_cut("sync: ps, servers: 1, local_sgd: {steps: 24, window: 24}", 5, 56);
}

/* Due before iteration 3, within a period of 4. */
Test(run_local, a_checkpoint_waits_for_the_exchange)
{
	const struct scratch_folder folder = scratch_folder_make();
	const struct psd_checkpoints checkpoints = {folder.path, 3};

	training_free(go("sync: ps, local_sgd: {steps: 4}", &checkpoints, 0, 5));
	cr_expect(scratch_folder_has(&folder, "iteration-4/host-2-of-3.safetensors"));
	cr_expect_not(scratch_folder_has(&folder, "iteration-3"));
	scratch_folder_remove(&folder);
}

static void expect_not_to_go_on(const char *system, const struct psd_checkpoints *checkpoints, const char *words)
{
	struct training *training = make(&(struct job){system, 3, 1, 8, 9, 48, LEARN});

	training->options.worker.checkpoints = checkpoints;
	training->options.worker.first_iteration = 7;
	training_run(training);
	cr_expect_eq(training->status, PSD_EINVAL, "%s", system);
	cr_expect(strstr(training->err.text, words), "%s: %s", system, training->err.text);
	training_free(training);
}

/* A run with 7 steps at first and windows of 16. */
Test(run_local, steps_of_another_system_are_refused)
{
	const struct scratch_folder folder = scratch_folder_make();
	const struct psd_checkpoints checkpoints = {folder.path, 7};

	training_free(go("sync: ring, local_sgd: {steps: 7, window: 16}", &checkpoints, 0, 7));
	expect_not_to_go_on("sync: ring, local_sgd: {steps: 2, window: 16}", &checkpoints,
			    "of-3.safetensors: 'local_sgd' has 7 steps, must be 1 to 2");
	expect_not_to_go_on("sync: ring, local_sgd: {steps: 7, window: 32}", &checkpoints,
			    "of-3.safetensors: 'local_sgd' is of a window of 16 iterations, must be 32");
	scratch_folder_remove(&folder);
}
