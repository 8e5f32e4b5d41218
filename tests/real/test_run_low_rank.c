/* Whole runs on loopback whose gradients travel as products of narrow matrices: against a plain reference in double
 * precision, against each other, and what psd-sim says of their bytes. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real/device/low_rank.h"
#include "tests/real/folder_run.h"
#include "tests/real/going_on.h"
#include "tests/real/plain_low_rank.h"
#include "tests/real/plain_training.h"

TestSuite(run_low_rank, .timeout = 120);

/* Matrices of (8, 27), (24, 128) and (10, 24), each with its bias. */
#define MODEL "../../tests/data/maskless.yaml"
#define LEARN ", optimiser: {momentum: 0.9, weight_decay: 0.01}, learning_rate: {policy: exp, base: 0.1, gamma: 0.9}"

/* Share of the distance from the start: floats are rounded elsewhere, in a few iterations. */
#define SAME_WAY_RATIO 1e-5

enum { BATCH = 8, ITERATIONS = 6 };

struct layout_case {
	const char *system;
	unsigned workers, workers_per_node;
};

/* keys: keys of the system, behind those of the layout */
static struct training *train(const struct layout_case *of, const char *keys, uint32_t iterations, const char *learn)
{
	char system[256], job[512];

	snprintf(system, sizeof(system), "%s%s", of->system, keys);
	snprintf(job, sizeof(job), "iterations: %u, data: {kind: synthetic, training_samples: 96}%s", iterations,
		 learn);
	return training_finish(training_make(MODEL, system, of->workers, of->workers_per_node, BATCH, 5, job), system);
}

/* ---- the same whichever way ---- */

static const struct layout_case layouts[] = {
	{"sync: ring", 4, 1},
	{"sync: ring", 4, 2},
	{"sync: two-level", 4, 2},
	{"sync: halving-doubling", 4, 1},
	{"sync: recursive-doubling", 4, 1},
	{"sync: double-tree", 4, 1},
	{"sync: torus", 4, 2},
	{"sync: torus", 4, 1},
	{"sync: ring, schedule: sequential", 4, 1},
	{"sync: two-level, schedule: sequential, fuse: 1KiB", 4, 2},
	{"sync: ring, unit: tensor", 4, 1},
	{"sync: halving-doubling, unit: layer", 4, 2},
	{"sync: ring, fuse: 256B", 4, 1},
	{"sync: ring, fuse: 1MB", 4, 1},
	{"sync: ring, pipeline: 128B", 4, 1},
	{"sync: ring, priority: forward, barrier: layer", 4, 1},
	{"sync: two-level, unit: layer, priority: forward, barrier: layer, pipeline: 64B", 4, 2},
};
enum { N_LAYOUTS = sizeof(layouts) / sizeof(layouts[0]) };

static const struct layout_case others[] = {
	{"sync: ring", 2, 1},
	{"sync: ring, fuse: 1MB", 3, 1},
	{"sync: two-level", 3, 2},
	{"sync: halving-doubling", 3, 1},
	{"sync: recursive-doubling", 5, 1},
	{"sync: double-tree, unit: layer", 5, 2},
	{"sync: torus, schedule: sequential", 6, 2},
};
enum { N_OTHERS = sizeof(others) / sizeof(others[0]) };

static void expect_same_way(const struct training *begun, const struct training *one, const struct training *other,
			    const char *what)
{
	const double apart_ratio = training_apart_ratio(begun, one, other);

	cr_expect_leq(apart_ratio, SAME_WAY_RATIO, "%s: off by %g of the way", what, apart_ratio);
}

static struct training *train_transformer(const struct layout_case *of, uint32_t iterations, double rate)
{
	char job[256];

	snprintf(job, sizeof(job), "iterations: %u, data: {kind: synthetic}, learning_rate: {policy: fixed, base: %g}",
		 iterations, rate);
	return training_finish(training_make("../../tests/data/transformer.yaml", of->system, of->workers,
					     of->workers_per_node, BATCH, 5, job),
			       of->system);
}

static void check_ways(const char *keys, const char *learn)
{
	struct training *begun = train(&layouts[0], "", 1, ", learning_rate: {policy: fixed, base: 1e-9}");
	struct training *dense = train(&layouts[0], "", ITERATIONS, learn);
	struct training *first = train(&layouts[0], keys, ITERATIONS, learn);

	cr_expect_gt(training_apart_ratio(begun, dense, first), 10 * SAME_WAY_RATIO, "nothing is lost");
	for (unsigned l = 1; l < N_LAYOUTS; l++) {
		struct training *training = train(&layouts[l], keys, ITERATIONS, learn);

		expect_same_way(begun, first, training, layouts[l].system);
		training_free(training);
	}
	training_free(begun);
	training_free(dense);
	training_free(first);
}

Test(run_low_rank, every_way_trains_the_same)
{
	check_ways(", low_rank: {rank: 1}", LEARN);
	check_ways(", low_rank: {rank: 4}", LEARN);
	check_ways(", low_rank: {rank: 2}, local_sgd: {steps: 2}", LEARN);
	/* which divides by what is hardly more than roundings, but for an epsilon */
	check_ways(", low_rank: {rank: 2}", ", optimiser: {kind: adamw, epsilon: 0.01, weight_decay: 0.1}, "
					    "learning_rate: {policy: fixed, base: 0.01}");
}

/* Tables of tokens, one of which the last product shares, and values of places are matrices; norms have none. */
Test(run_low_rank, a_transformer_trains_the_same)
{
	static const struct layout_case of[] = {{"sync: ring, low_rank: {rank: 2}", 4, 1},
						{"sync: two-level, fuse: 1KiB, low_rank: {rank: 2}", 4, 2},
						{"sync: halving-doubling, unit: layer, low_rank: {rank: 2}", 4, 1}};
	struct training *begun = train_transformer(&of[0], 1, 1e-9);
	struct training *first = train_transformer(&of[0], ITERATIONS, 0.05);

	for (unsigned l = 1; l < sizeof(of) / sizeof(of[0]); l++) {
		struct training *training = train_transformer(&of[l], ITERATIONS, 0.05);

		training_expect_same_on_all(training, of[l].system);
		expect_same_way(begun, first, training, of[l].system);
		training_free(training);
	}
	training_free(begun);
	training_free(first);
}

/* ---- the same on all ---- */

static const char *const ranks[] = {
	", low_rank: {rank: 1}", ", low_rank: {rank: 2}", ", low_rank: {rank: 7}", /* the first is sent as it is */
	", low_rank: {rank: 64}",						   /* and all */
};
enum { N_RANKS = sizeof(ranks) / sizeof(ranks[0]) };

static void check_same(const struct layout_case *of, const char *keys, const char *learn)
{
	struct training *training = train(of, keys, ITERATIONS, learn);
	char what[256];

	snprintf(what, sizeof(what), "%s%s, %u workers%s", of->system, keys, of->workers, learn);
	training_expect_same_on_all(training, what);
	if (!training->made.plan.local) /* whole periods of which are measured below */
		training_expect_sent(training, most_sent_bytes(&training->made), what);
	training_free(training);
}

Test(run_low_rank, all_end_with_the_same_bits_and_send_what_is_predicted)
{
	for (unsigned r = 0; r < N_RANKS; r++) {
		for (unsigned l = r % 2; l < N_LAYOUTS; l += 2)
			check_same(&layouts[l], ranks[r], LEARN);
		for (unsigned l = 0; l < N_OTHERS; l++)
			check_same(&others[l], ranks[r], LEARN);
	}
}

Test(run_low_rank, every_optimiser_ends_with_the_same_bits)
{
	static const char *const learns[] = {
		LEARN ", deterministic: false",
		", optimiser: {momentum: 0.9, nesterov: true}, learning_rate: {policy: fixed, base: 0.05}",
		", optimiser: {kind: lars, trust: 0.02, momentum: 0.9, weight_decay: 0.01}, learning_rate: {policy: "
		"fixed, base: 1}",
		", optimiser: {kind: adamw, weight_decay: 0.1}, learning_rate: {policy: fixed, base: 0.01}",
	};

	for (unsigned learn = 0; learn < sizeof(learns) / sizeof(learns[0]); learn++)
		for (unsigned l = 0; l < N_OTHERS; l += 2)
			check_same(&others[l], ", low_rank: {rank: 2}", learns[learn]);
	for (unsigned l = 0; l < N_OTHERS; l++)
		check_same(&others[l], ", low_rank: {rank: 2}, local_sgd: {steps: 3}", LEARN);
}

Test(run_low_rank, a_run_repeats_exactly)
{
	for (unsigned l = 0; l < N_LAYOUTS; l += 3) {
		struct training *one = train(&layouts[l], ranks[1], ITERATIONS, LEARN);
		struct training *other = train(&layouts[l], ranks[1], ITERATIONS, LEARN);

		cr_expect(training_is_same(one, 0, other, 0), "%s", layouts[l].system);
		training_free(one);
		training_free(other);
	}
}

/* A rank that leaves no matrix fewer values leaves the run as it is. */
Test(run_low_rank, where_nothing_is_narrow_all_is_as_without)
{
	for (unsigned l = 0; l < N_OTHERS; l++) {
		struct training *without = train(&others[l], "", ITERATIONS, LEARN);
		struct training *with = train(&others[l], ", low_rank: {rank: 64}", ITERATIONS, LEARN);

		cr_expect(training_is_same(with, 0, without, 0), "%s", others[l].system);
		cr_expect_eq(with->result.sent_bytes_per_node, without->result.sent_bytes_per_node);
		training_free(without);
		training_free(with);
	}
}

Test(run_low_rank, a_single_worker_trains_as_without)
{
	static const struct layout_case alone = {"sync: ring", 1, 1};
	struct training *without = train(&alone, "", ITERATIONS, LEARN);

	for (unsigned r = 0; r < N_RANKS; r++) {
		struct training *with = train(&alone, ranks[r], ITERATIONS, LEARN);

		cr_expect(training_is_same(with, 0, without, 0), "%s", ranks[r]);
		training_free(with);
	}
	training_free(without);
}

/* ---- bytes ---- */

static void check_values(const struct layout_case *of, const char *keys, uint64_t values)
{
	struct training *training = train(of, keys, ITERATIONS, LEARN);

	training_expect_sent(training, values * sizeof(float), keys);
	training_free(training);
}

/* Each worker of a ring of 2 sends one half, and the sums of the other: as many values as there are. */
Test(run_low_rank, sent_bytes_are_those_of_the_formula)
{
	static const struct layout_case two = {"sync: ring", 2, 1};
	const uint64_t lengths = (8 + 27) + (24 + 128) + (10 + 24), biases = 8 + 24 + 10;

	check_values(&two, ", low_rank: {rank: 1}", lengths + biases);
	check_values(&two, ", low_rank: {rank: 2}", 2 * lengths + biases);
	check_values(&two, ", low_rank: {rank: 2}, fuse: 1MB", 2 * lengths + biases);
	check_values(&two, ", low_rank: {rank: 7}", 7 * lengths - 7 * (8 + 27) + 8 * 27 + biases);
}

/* A bias of 30 and a weight of (40, 30) do. */
Test(run_low_rank, tensors_that_stay_as_they_are_do_not_travel)
{
	static const char *const systems[] = {"sync: ring, low_rank: {rank: 2}",
					      "sync: ring, low_rank: {rank: 2}, fuse: 1MB",
					      "sync: ring, low_rank: {rank: 2}, unit: layer"};

	for (unsigned s = 0; s < sizeof(systems) / sizeof(systems[0]); s++) {
		struct training *training = training_frozen(systems[s], "iterations: 6" LEARN);

		training_expect_same_on_all(training, systems[s]);
		training_expect_sent(training, (30 + 2 * (40 + 30)) * sizeof(float), systems[s]);
		training_free(training);
	}
}

/* Whole periods of 4 among 14 iterations are measured. */
Test(run_low_rank, a_prediction_counts_the_same_bytes)
{
	char systems[4096] = "", text[6144], *model = realpath("tests/data/maskless.yaml", NULL);

	for (unsigned l = 0; l < N_LAYOUTS; l++)
		snprintf(systems + strlen(systems), sizeof(systems) - strlen(systems), "  - {name: s%u, %s%s%s}\n", l,
			 layouts[l].system, ranks[l % 3], l % 4 == 3 ? ", local_sgd: {steps: 4}" : "");
	snprintf(text, sizeof(text),
		 "title: t\nmodel: {graph: %s, batch_per_worker: 4}\ncompute: {device: cpu}\n"
		 "cluster: {nodes: 2, workers_per_node: 2, network: {bandwidth: 1Gbps, latency: 50us}}\n"
		 "systems:\n%strain: {iterations: 14, learning_rate: {policy: fixed, base: 0.001}}\n",
		 model, systems);
	folder_run_sends_as_predicted(text, N_LAYOUTS, 3);
	free(model);
}

/* ---- local steps ---- */

/* At a fixed rate and without momentum what a worker has gone is the rate times its gradient, and what is left of it
 * the rate times what is left of the gradient: a run by gradients, but for rounding. */
Test(run_low_rank, one_local_step_is_an_exchange_of_gradients)
{
	static const struct layout_case of = {"sync: ring, low_rank: {rank: 2}", 3, 1};
	static const char learn[] = ", learning_rate: {policy: fixed, base: 0.1}";
	struct training *begun = train(&of, "", 1, ", learning_rate: {policy: fixed, base: 1e-9}");
	struct training *gradients = train(&of, "", ITERATIONS, learn);
	struct training *local = train(&of, ", local_sgd: {steps: 1}", ITERATIONS, learn);

	expect_same_way(begun, gradients, local, "a local step");
	training_free(begun);
	training_free(gradients);
	training_free(local);
}

/* ---- the whole algorithm ---- */

enum { INPUTS = PLAIN_INPUTS, CLASSES = PLAIN_CLASSES, N = PLAIN_PARAMETERS, WEIGHTS = INPUTS * CLASSES };
enum { MOST_WORKERS = 4, MOST_REFERENCE_RANK = 8 };
#define RATE 0.25

/* Gradients of the weight, (CLASSES, INPUTS), have no more than 9 ranks, as those of a sample's scores sum to nothing.
 * Vogels et al. 2019, algorithms 1 and 2, but that a worker's own product is what is taken from what it keeps, and
 * momentum comes behind. */
struct reference {
	struct plain_training plain;
	struct plain_shape shape;
	double history[N], sum[N], residual[MOST_WORKERS][N];
	double left[CLASSES * MOST_REFERENCE_RANK], right[MOST_REFERENCE_RANK * INPUTS];
};

/* The mean of samples is in the gradients: what would be a mean over workers is a sum. Biases travel as they are. */
static void add_own(struct reference *of, unsigned worker, double *right)
{
	double own[MOST_REFERENCE_RANK * INPUTS] = {0.0}, *residual = of->residual[worker];

	plain_fit(of->shape, of->left, residual, own);
	plain_expand(of->shape, of->left, own, -1.0, residual);
	for (unsigned e = 0; e < of->shape.rank * INPUTS; e++)
		right[e] += own[e];
	for (unsigned e = WEIGHTS; e < N; e++) {
		of->sum[e] += residual[e];
		residual[e] = 0.0;
	}
}

static void go(struct reference *of, unsigned iteration)
{
	double right[MOST_REFERENCE_RANK * INPUTS] = {0.0};

	memset(of->left, 0, sizeof(of->left));
	memset(of->sum, 0, sizeof(of->sum));
	for (unsigned w = 0; w < of->plain.workers; w++) {
		plain_training_add_gradient(&of->plain, w, iteration, of->residual[w]);
		plain_project(of->shape, of->residual[w], of->right, of->left);
	}
	plain_make_orthonormal(of->shape, of->left);
	for (unsigned w = 0; w < of->plain.workers; w++)
		add_own(of, w, right);
	memcpy(of->right, right, sizeof(right));
	plain_expand(of->shape, of->left, of->right, 1.0, of->sum);
	plain_training_step(&of->plain, RATE, of->history, of->sum);
}

static void check_reference(const struct layout_case *layout, unsigned rank)
{
	struct reference *of = calloc(1, sizeof(*of));
	char system[256];
	double apart_ratio;

	cr_assert(of);
	snprintf(system, sizeof(system), "%s, low_rank: {rank: %u}", layout->system, rank);
	plain_training_open(&of->plain, system, layout->workers, layout->workers_per_node, PLAIN_MOMENTUM, RATE);
	of->shape = (struct plain_shape){CLASSES, INPUTS, rank};
	for (unsigned e = 0; e < rank * INPUTS; e++) /* tensor 0 */
		of->right[e] = (double)psd_low_rank_start(0, e / INPUTS, e % INPUTS);
	for (unsigned i = 0; i < PLAIN_ITERATIONS; i++)
		go(of, i);
	apart_ratio = plain_training_apart_ratio(&of->plain);
	cr_expect_leq(apart_ratio, SAME_WAY_RATIO, "%s: off by %g of the way", system, apart_ratio);
	training_expect_same_on_all(of->plain.trained, system);
	plain_training_close(&of->plain);
	free(of);
}

Test(run_low_rank, it_is_the_published_algorithm)
{
	static const struct layout_case of[] = {
		{"sync: ring", 2, 1},
		{"sync: ring, fuse: 1MB", 4, 1},
		{"sync: two-level, unit: tensor", 4, 2},
		{"sync: halving-doubling, schedule: sequential", 4, 1},
	};

	for (unsigned l = 0; l < sizeof(of) / sizeof(of[0]); l++) {
		check_reference(&of[l], 1);
		check_reference(&of[l], 2 + l);
		check_reference(&of[l], MOST_REFERENCE_RANK);
	}
}

/* Share of a loss that has fallen to a tenth: the residual comes later. */
#define LEARNT_RATIO 2.0
/* Share of the first loss, with a part of each gradient only. */
#define FALLEN_RATIO 0.5

static double last_loss(const char *keys, uint32_t iterations, const char *optimiser, double rate)
{
	static const struct layout_case of = {"sync: ring", 2, 1};
	char learn[160];
	struct training *training;
	double loss;

	snprintf(learn, sizeof(learn), ", optimiser: {%s}, learning_rate: {policy: fixed, base: %g}", optimiser, rate);
	training = train(&of, keys, iterations, learn);
	loss = training->result.last_loss;
	training_free(training);
	return loss;
}

static void check_learning(const char *optimiser, double rate)
{
	const double begun = last_loss("", 1, optimiser, rate), plain = last_loss("", 60, optimiser, rate);

	cr_expect_lt(plain, 0.1 * begun);
	cr_expect_lt(last_loss(", low_rank: {rank: 4}", 60, optimiser, rate), LEARNT_RATIO * plain);
	cr_expect_lt(last_loss(", low_rank: {rank: 1}", 60, optimiser, rate), FALLEN_RATIO * begun);
	cr_expect_lt(last_loss(", low_rank: {rank: 2}, local_sgd: {steps: 3}", 60, optimiser, rate),
		     FALLEN_RATIO * begun);
}

Test(run_low_rank, it_learns_about_as_much)
{
	check_learning("momentum: 0.9", 0.1);
	check_learning("kind: adamw", 0.01);
}

/* ---- runs that go on ---- */

/* With conv, batch norm and dropout. */
Test(run_low_rank, a_resumed_run_ends_like_an_uninterrupted_one)
{
	going_on_check("sync: ring, low_rank: {rank: 2}", GOING_ON_SGD, 2, 1, NULL);
	going_on_check("sync: ring, low_rank: {rank: 1}, fuse: 1KiB", GOING_ON_SGD, 3, 1, NULL);
	going_on_check("sync: halving-doubling, barrier: layer, priority: forward, low_rank: {rank: 4}", GOING_ON_SGD,
		       4, 1, NULL);
	going_on_check("sync: two-level, schedule: sequential, low_rank: {rank: 7}", GOING_ON_SGD, 4, 2, NULL);
	going_on_check("sync: ring, low_rank: {rank: 2}, local_sgd: {steps: 3}", GOING_ON_SGD, 3, 1, NULL);
	going_on_check("sync: ring, low_rank: {rank: 2}", GOING_ON_ADAMW, 2, 1, NULL);
}

Test(run_low_rank, a_run_starts_from_a_file)
{
	going_on_check_start("sync: ring, low_rank: {rank: 2}", NULL);
}

static const char scenario[] =
	"title: softmax\nmodel: {graph: softmax.yaml, batch_per_worker: 4}\ncompute: {device: cpu}\n"
	"cluster: {nodes: 2, network: {bandwidth: 1Gbps, latency: 50us}}\n"
	"systems:\n  - {name: Ring, sync: ring}\n  - {name: Narrow, sync: ring, low_rank: {rank: 2}}\n"
	"train: {data: {kind: synthetic, training_samples: 40, test_samples: 8}, iterations: 8, learning_rate: "
	"{policy: fixed, base: 0.1}}\n";

static struct scratch_folder make_folder(void)
{
	const struct scratch_folder folder = scratch_folder_make();

	scratch_folder_write(&folder, "s.yaml", scenario, strlen(scenario));
	scratch_folder_write(&folder, "softmax.yaml", PLAIN_SOFTMAX, strlen(PLAIN_SOFTMAX));
	return folder;
}

/* Residuals after a change of hosts are tested in session/test_reshape_files.c. */
Test(run_low_rank, another_rank_goes_on)
{
	const struct scratch_folder folder = make_folder();

	free(folder_run(&folder, "--system Narrow --save @/n --iterations 4 @/s.yaml"));
	free(folder_run(&folder, "--system Narrow --save @/n --iterations 5 --resume --set systems.1.low_rank.rank=3 "
				 "@/s.yaml"));
	free(folder_run(&folder, "--system Ring --save @/n --iterations 6 --resume @/s.yaml"));
	free(folder_run(&folder, "--system Narrow --save @/n --iterations 7 --resume @/s.yaml"));
	free(folder_run(&folder, "--system Narrow --save @/n --resume @/s.yaml"));
	scratch_folder_remove(&folder);
}

/* ---- messages ---- */

Test(run_low_rank, hosts_of_another_rank_are_refused)
{
	const struct scratch_folder folder = make_folder();

	folder_run_disagrees(
		&folder, "--system Narrow s.yaml", "--system Narrow --set systems.1.low_rank.rank=3 s.yaml",
		"'systems.low_rank.rank' is 2 here, 3 there\n", "'systems.low_rank.rank' is 3 here, 2 there\n");
	scratch_folder_remove(&folder);
}

Test(run_low_rank, losses_of_precision_are_noted)
{
	const struct scratch_folder folder = make_folder();

	folder_run_notes(&folder, "@/s.yaml",
			 "note: 'Narrow' sends gradients of matrices as products of rank 2 where these have fewer "
			 "values, adds what is lost to later ones, and so trains with other values\n",
			 "'Ring'");
	scratch_folder_remove(&folder);
}
