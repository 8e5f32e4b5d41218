/* Whole runs on loopback whose gradients travel as products of narrow matrices: against a plain reference in double
 * precision, against each other, and what psd-sim says of their bytes. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real/data/data.h"
#include "real/data/sampler.h"
#include "real/device/low_rank.h"
#include "real/session/checkpoint.h"
#include "tests/cli_helper.h"
#include "tests/real/going_on.h"
#include "tests/real/kept_port.h"
#include "tests/real/plain_low_rank.h"
#include "tests/real/plain_softmax.h"
#include "tests/real/training.h"
#include "tests/scratch_folder.h"

TestSuite(run_low_rank, .timeout = 120);

/* Matrices of (8, 27), (24, 128) and (10, 24), each with its bias. */
#define MODEL "../../tests/data/maskless.yaml"
#define LEARN ", optimiser: {momentum: 0.9, weight_decay: 0.01}, learning_rate: {policy: exp, base: 0.1, gamma: 0.9}"

/* Of the way from the start: floats that are rounded elsewhere, in a few iterations. */
#define SAME_WAY_RATIO 1e-5

enum { BATCH = 8, ITERATIONS = 6 };

struct layout_case {
	const char *system;
	unsigned workers, workers_per_node;
};

static struct training *finish(struct training *training, const char *system)
{
	training_run(training);
	cr_assert_eq(training->status, PSD_OK, "%s: %s", system, training->err.text);
	return training;
}

/* keys: of the system, behind those of the layout. */
static struct training *train(const struct layout_case *of, const char *keys, uint32_t iterations, const char *learn)
{
	char system[256], job[512];

	snprintf(system, sizeof(system), "%s%s", of->system, keys);
	snprintf(job, sizeof(job), "iterations: %u, data: {kind: synthetic, training_samples: 96}%s", iterations,
		 learn);
	return finish(training_make(MODEL, system, of->workers, of->workers_per_node, BATCH, 5, job), system);
}

static double distance(const struct training *one, const struct training *other)
{
	const float *left = training_parameters(one, 0), *right = training_parameters(other, 0);
	double squares = 0.0;

	for (uint64_t e = 0; e < one->loaded.matter.graph.parameters; e++)
		squares += pow((double)left[e] - (double)right[e], 2);
	return sqrt(squares);
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
	const double apart = distance(one, other), way = distance(begun, one);

	cr_expect_leq(apart, SAME_WAY_RATIO * way, "%s: off by %g of the way", what, apart / way);
}

static struct training *train_transformer(const struct layout_case *of, uint32_t iterations, double rate)
{
	char job[256];

	snprintf(job, sizeof(job), "iterations: %u, data: {kind: synthetic}, learning_rate: {policy: fixed, base: %g}",
		 iterations, rate);
	return finish(training_make("../../tests/data/transformer.yaml", of->system, of->workers, of->workers_per_node,
				    BATCH, 5, job),
		      of->system);
}

static void check_ways(const char *keys, const char *learn)
{
	struct training *begun = train(&layouts[0], "", 1, ", learning_rate: {policy: fixed, base: 1e-9}");
	struct training *dense = train(&layouts[0], "", ITERATIONS, learn);
	struct training *first = train(&layouts[0], keys, ITERATIONS, learn);

	cr_expect_gt(distance(first, dense), 10 * SAME_WAY_RATIO * distance(begun, dense), "nothing is lost");
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
		cr_expect_eq(training->result.sent_bytes_per_node, most_sent_bytes(&training->made),
			     "%s: %lu, must be %lu", what, training->result.sent_bytes_per_node,
			     most_sent_bytes(&training->made));
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

	cr_expect_eq(training->result.sent_bytes_per_node, values * sizeof(float), "%s%s: %lu bytes, must be %lu",
		     of->system, keys, training->result.sent_bytes_per_node, values * sizeof(float));
	training_free(training);
}

/* Of a ring of 2 each sends as many values as there are: one half, and the sums of the other. */
Test(run_low_rank, what_is_sent_is_what_the_formula_says)
{
	static const struct layout_case two = {"sync: ring", 2, 1};
	const uint64_t lengths = (8 + 27) + (24 + 128) + (10 + 24), biases = 8 + 24 + 10;

	check_values(&two, ", low_rank: {rank: 1}", lengths + biases);
	check_values(&two, ", low_rank: {rank: 2}", 2 * lengths + biases);
	check_values(&two, ", low_rank: {rank: 2}, fuse: 1MB", 2 * lengths + biases);
	check_values(&two, ", low_rank: {rank: 7}", 7 * lengths - 7 * (8 + 27) + 8 * 27 + biases);
}

static struct training *train_frozen(const struct scratch_folder *folder, const char *system)
{
	static const char model[] =
		"name: 'frozen'\ninput: 'data'\ninput_dim: 1\ninput_dim: 200\ninput_dim: 1\ninput_dim: 1\n"
		"layer { name: 'fc1' type: 'InnerProduct' bottom: 'data' top: 'fc1' param { lr_mult: 0 } "
		"param { lr_mult: 2 } inner_product_param { num_output: 30 } }\n"
		"layer { name: 'fc2' type: 'InnerProduct' bottom: 'fc1' top: 'fc2' param { lr_mult: 1 } "
		"param { lr_mult: 0 } inner_product_param { num_output: 40 } }\n"
		"layer { name: 'loss' type: 'Softmax' bottom: 'fc2' top: 'loss' }\n";

	scratch_folder_write(folder, "frozen.prototxt", model, strlen(model));
	return finish(training_make(scratch_folder_path(folder, "frozen.prototxt").text, system, 2, 1, BATCH, 5,
				    "iterations: 6" LEARN),
		      system);
}

/* A bias of 30 and a weight of (40, 30) do. */
Test(run_low_rank, tensors_that_stay_as_they_are_do_not_travel)
{
	static const char *const systems[] = {"sync: ring, low_rank: {rank: 2}",
					      "sync: ring, low_rank: {rank: 2}, fuse: 1MB",
					      "sync: ring, low_rank: {rank: 2}, unit: layer"};
	const struct scratch_folder folder = scratch_folder_make();

	for (unsigned s = 0; s < sizeof(systems) / sizeof(systems[0]); s++) {
		struct training *training = train_frozen(&folder, systems[s]);

		training_expect_same_on_all(training, systems[s]);
		cr_expect_eq(training->result.sent_bytes_per_node, (30 + 2 * (40 + 30)) * sizeof(float), "%s: %lu",
			     systems[s], training->result.sent_bytes_per_node);
		training_free(training);
	}
	scratch_folder_remove(&folder);
}

/* Of 14 iterations whole periods of 4 are measured. */
Test(run_low_rank, a_prediction_counts_the_same_bytes)
{
	const struct scratch_folder folder = scratch_folder_make();
	char systems[4096] = "", text[6144], arguments[256], *model = realpath("tests/data/maskless.yaml", NULL);
	struct run predicted, executed;

	for (unsigned l = 0; l < N_LAYOUTS; l++)
		snprintf(systems + strlen(systems), sizeof(systems) - strlen(systems), "  - {name: s%u, %s%s%s}\n", l,
			 layouts[l].system, ranks[l % 3], l % 4 == 3 ? ", local_sgd: {steps: 4}" : "");
	snprintf(text, sizeof(text),
		 "title: t\nmodel: {graph: %s, batch_per_worker: 4}\ncompute: {device: cpu}\n"
		 "cluster: {nodes: 2, workers_per_node: 2, network: {bandwidth: 1Gbps, latency: 50us}}\n"
		 "systems:\n%strain: {iterations: 14, learning_rate: {policy: fixed, base: 0.001}}\n",
		 model, systems);
	scratch_folder_write(&folder, "s.yaml", text, strlen(text));
	snprintf(arguments, sizeof(arguments), "--csv %s/s.yaml", folder.path);
	predicted = run_program("psd-sim", arguments, "2>&1");
	snprintf(arguments, sizeof(arguments), "--csv --quiet --no-emulation %s/s.yaml", folder.path);
	executed = run_program("psd-run", arguments, "2>&1");
	cr_assert(predicted.exit_status == 0 && executed.exit_status == 0, "%s%s", predicted.text, executed.text);
	for (unsigned s = 1; s <= N_LAYOUTS; s++) {
		expect_same_field(executed.text, predicted.text, s, "tx_bytes_per_node", 3);
		expect_same_field(executed.text, predicted.text, s, "rx_bytes_per_node", 3);
	}
	free(predicted.text);
	free(executed.text);
	free(model);
	scratch_folder_remove(&folder);
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
#define RATE	 0.25
#define MOMENTUM 0.9
#define DECAY	 0.01

/* Softmax of a weight (CLASSES, INPUTS) and a bias, in double precision. Its gradients have no more than 9 ranks, as
 * those of a sample's scores sum to nothing. Vogels et al. 2019, algorithms 1 and 2, but
 * that a worker's own product is what is taken from what it keeps, and momentum comes behind. */
struct reference {
	unsigned workers;
	struct plain_shape shape;
	double parameters[N], history[N], sum[N], residual[MOST_WORKERS][N];
	double left[CLASSES * MOST_REFERENCE_RANK], right[MOST_REFERENCE_RANK * INPUTS];
	struct psd_data *data;
};

static void add_gradient(struct reference *of, unsigned worker, unsigned iteration)
{
	const uint64_t first = psd_sampler_first(iteration, of->workers, worker, BATCH);
	float images[BATCH * INPUTS];
	int32_t labels[BATCH];
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_data_read_batch(of->data, PSD_DATA_TRAINING, first, BATCH, images, labels, &err), PSD_OK, "%s",
		     err.text);
	for (unsigned s = 0; s < BATCH; s++)
		plain_softmax_add(of->parameters, images + s * INPUTS, labels[s], of->workers * BATCH,
				  of->residual[worker]);
}

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
	for (unsigned w = 0; w < of->workers; w++) {
		add_gradient(of, w, iteration);
		plain_project(of->shape, of->residual[w], of->right, of->left);
	}
	plain_make_orthonormal(of->shape, of->left);
	for (unsigned w = 0; w < of->workers; w++)
		add_own(of, w, right);
	memcpy(of->right, right, sizeof(right));
	plain_expand(of->shape, of->left, of->right, 1.0, of->sum);
	for (unsigned e = 0; e < N; e++) {
		of->history[e] = MOMENTUM * of->history[e] + RATE * (of->sum[e] + DECAY * of->parameters[e]);
		of->parameters[e] -= of->history[e];
	}
}

static const char softmax[] = PLAIN_SOFTMAX;

static struct training *train_softmax(const struct scratch_folder *folder, const struct layout_case *layout,
				      unsigned rank, unsigned iterations, double rate)
{
	char system[256], job[256];

	scratch_folder_write(folder, "softmax.yaml", softmax, strlen(softmax));
	snprintf(system, sizeof(system), "%s, low_rank: {rank: %u}", layout->system, rank);
	snprintf(job, sizeof(job),
		 "iterations: %u, data: {kind: synthetic, training_samples: 40}, optimiser: {momentum: 0.9, "
		 "weight_decay: 0.01}, learning_rate: {policy: fixed, base: %g}",
		 iterations, rate);
	return finish(training_make(scratch_folder_path(folder, "softmax.yaml").text, system, layout->workers,
				    layout->workers_per_node, BATCH, 5, job),
		      system);
}

static struct reference *open_reference(const struct training *begun, unsigned workers, unsigned rank)
{
	const struct psd_data_options options =
		psd_worker_data_options(&begun->loaded.matter.graph, &begun->loaded.scenario.train);
	struct reference *of = calloc(1, sizeof(*of));
	struct psd_error err = {.text = ""};

	cr_assert(of);
	of->workers = workers;
	of->shape = (struct plain_shape){CLASSES, INPUTS, rank};
	for (unsigned e = 0; e < N; e++)
		of->parameters[e] = (double)training_parameters(begun, 0)[e];
	for (unsigned e = 0; e < rank * INPUTS; e++) /* tensor 0 */
		of->right[e] = (double)psd_low_rank_start(0, e / INPUTS, e % INPUTS);
	cr_assert_eq(psd_data_open(&of->data, &options, &err), PSD_OK, "%s", err.text);
	return of;
}

static void check_reference(const struct layout_case *layout, unsigned rank)
{
	const struct scratch_folder folder = scratch_folder_make();
	struct training *begun = train_softmax(&folder, layout, rank, 1, 1e-9);
	struct training *training = train_softmax(&folder, layout, rank, ITERATIONS, RATE);
	const float *begin = training_parameters(begun, 0), *end = training_parameters(training, 0);
	struct reference *of = open_reference(begun, layout->workers, rank);
	double apart = 0.0, way = 0.0;

	for (unsigned i = 0; i < ITERATIONS; i++)
		go(of, i);
	for (unsigned e = 0; e < N; e++) {
		apart += pow((double)end[e] - of->parameters[e], 2);
		way += pow((double)begin[e] - of->parameters[e], 2);
	}
	cr_expect_leq(sqrt(apart / way), SAME_WAY_RATIO, "%s, rank %u: off by %g of the way", layout->system, rank,
		      sqrt(apart / way));
	training_expect_same_on_all(training, layout->system);
	psd_data_close(of->data);
	free(of);
	training_free(begun);
	training_free(training);
	scratch_folder_remove(&folder);
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

/* Of a loss that has fallen to a tenth: what is lost comes later. */
#define LEARNT_RATIO 2.0
/* Of the first loss: with less of each gradient than it has. */
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

#define GOING_ON_ADAMW                                                                                                 \
	"data: {training_samples: 40, test_samples: 32}, optimiser: {kind: adamw, beta2: 0.95, weight_decay: 0.1}"

/* With conv, batch norm and dropout. */
Test(run_low_rank, what_goes_on_ends_as_what_was_never_cut)
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
	scratch_folder_write(&folder, "softmax.yaml", softmax, strlen(softmax));
	return folder;
}

/* Standard error. */
static char *run_that_ends(const struct scratch_folder *folder, int exit_status, const char *options)
{
	char arguments[1024];
	struct run done;

	snprintf(arguments, sizeof(arguments), "--no-emulation --quiet %s", scratch_folder_spell(folder, options).text);
	done = run_program("psd-run", arguments, "2>&1 >/dev/null");
	cr_assert_eq(done.exit_status, exit_status, "%s: %s", arguments, done.text);
	return done.text;
}

static void expect_refusal(const struct scratch_folder *folder, const char *options)
{
	char *text = run_that_ends(folder, 2, options);

	cr_expect_not_null(strstr(text, "is of another model, optimiser, system or cluster, or of another version of "
					"psd-run: "),
			   "%s: %s", options, text);
	cr_expect_eq(strchr(text, '\n'), text + strlen(text) - 1, "%s: %s", options, text);
	free(text);
}

Test(run_low_rank, what_another_rank_has_left_is_refused)
{
	const struct scratch_folder folder = make_folder();

	free(run_that_ends(&folder, 0, "--system Narrow --save @/n --iterations 4 @/s.yaml"));
	free(run_that_ends(&folder, 0, "--system Ring --save @/r --iterations 4 @/s.yaml"));
	expect_refusal(&folder, "--system Narrow --save @/n --resume --set systems.1.low_rank.rank=3 @/s.yaml");
	expect_refusal(&folder, "--system Ring --save @/n --resume @/s.yaml");
	expect_refusal(&folder, "--system Narrow --save @/r --resume @/s.yaml");
	free(run_that_ends(&folder, 0, "--system Narrow --save @/n --resume @/s.yaml"));
	scratch_folder_remove(&folder);
}

/* ---- what is said ---- */

Test(run_low_rank, hosts_of_another_rank_are_refused)
{
	const struct scratch_folder folder = make_folder();
	char line[4 * PATH_MAX], hosts[64], *other;
	struct run done;

	snprintf(hosts, sizeof(hosts), "127.0.0.1:%u\n127.0.0.1:%u\n", keep_port(), keep_port());
	scratch_folder_write(&folder, "hosts", hosts, strlen(hosts));
	snprintf(line, sizeof(line),
		 "cd %s; run() { %s --hosts hosts --quiet --system Narrow \"$@\" s.yaml; }; "
		 "run --rank 1 --set systems.1.low_rank.rank=3 2>rank1 & run --rank 0 2>&1; status=$?; wait; exit "
		 "$status",
		 folder.path, path_of("psd-run").text);
	done = run_command(line);
	other = scratch_folder_read(&folder, "rank1");
	cr_expect_eq(done.exit_status, 1);
	cr_expect_not_null(strstr(done.text, "'systems.low_rank.rank' is 2 here, 3 there\n"), "%s", done.text);
	cr_expect_not_null(strstr(other, "'systems.low_rank.rank' is 3 here, 2 there\n"), "%s", other);
	free(done.text);
	free(other);
	scratch_folder_remove(&folder);
}

/* Of a run of both systems. words: NULL: there is none. */
static void expect_note(const char *options, const char *words)
{
	const struct scratch_folder folder = make_folder();
	char arguments[1024];
	struct run done;

	snprintf(arguments, sizeof(arguments), "--no-emulation --quiet %s",
		 scratch_folder_spell(&folder, options).text);
	done = run_program("psd-run", arguments, "2>&1");
	cr_assert_eq(done.exit_status, 0, "%s: %s", options, done.text);
	cr_expect(words ? strstr(done.text, words) != NULL : !strstr(done.text, "note: "), "%s: %s", options,
		  done.text);
	cr_expect_null(strstr(done.text, "'Ring'"), "%s: %s", options, done.text);
	free(done.text);
	scratch_folder_remove(&folder);
}

Test(run_low_rank, that_something_is_lost_is_said)
{
	expect_note("@/s.yaml", "note: 'Narrow' sends gradients of matrices as products of rank 2 where these have "
				"fewer values, adds what is lost to "
				"later ones, and so trains with other values\n");
}
