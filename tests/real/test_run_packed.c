/* Whole runs on loopback whose gradients go to the shards, and their sums back, compressed: against runs without, a
 * plain reference in double precision, and what psd-sim says of their bytes. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real/data/data.h"
#include "real/data/sampler.h"
#include "real/session/checkpoint.h"
#include "tests/cli_helper.h"
#include "tests/real/going_on.h"
#include "tests/real/kept_port.h"
#include "tests/real/plain_compression.h"
#include "tests/real/plain_softmax.h"
#include "tests/real/training.h"
#include "tests/scratch_folder.h"

TestSuite(run_packed, .timeout = 120);

/* Tensors of 216, 8, 3072, 24, 240 and 10 values, three items of 2, 4 and 2 blocks: of four shards two have none of the
 * first and the last. */
#define MODEL "../../tests/data/maskless.yaml"
#define LEARN ", optimiser: {momentum: 0.9, weight_decay: 0.01}, learning_rate: {policy: exp, base: 0.1, gamma: 0.9}"

/* Of the way from the start: floats that are rounded elsewhere, in a few iterations. */
#define SAME_WAY_RATIO 1e-5
/* The same where rounding may turn around the sign of a value that is nearly nothing: it travels as a mean of the
 * others, and what is wrong with it a little later. */
#define TURNED_RATIO 0.02

enum { BATCH = 8, ITERATIONS = 6 };

struct job {
	const char *system;
	unsigned workers, workers_per_node;
	uint32_t iterations;
	const char *learn;
};

static struct training *make(const struct job *job)
{
	char train[512];

	snprintf(train, sizeof(train), "iterations: %u, data: {kind: synthetic, training_samples: 96}%s",
		 job->iterations, job->learn);
	return training_make(MODEL, job->system, job->workers, job->workers_per_node, BATCH, 5, train);
}

static struct training *finish(struct training *training, const char *system)
{
	training_run(training);
	cr_assert_eq(training->status, PSD_OK, "%s: %s", system, training->err.text);
	return training;
}

static struct training *train(const struct job *job)
{
	return finish(make(job), job->system);
}

static double distance(const float *left, const float *right, uint64_t elements)
{
	double squares = 0.0;

	for (uint64_t e = 0; e < elements; e++)
		squares += pow((double)left[e] - (right ? (double)right[e] : 0.0), 2);
	return sqrt(squares);
}

/* ---- nothing lost ---- */

struct layout_case {
	const char *keys;
	unsigned workers, workers_per_node;
};

static const struct layout_case layouts[] = {
	{"", 2, 1},
	{"", 4, 1},
	{"", 4, 2},
	{", servers: 1", 3, 1},
	{", servers: 2", 2, 1},
	{", servers: 5", 2, 1},
	{", schedule: sequential", 3, 1},
	{", barrier: layer, priority: forward", 4, 2},
	{", unit: tensor", 3, 1},
};
enum { N_LAYOUTS = sizeof(layouts) / sizeof(layouts[0]) };

static struct training *train_layout(const struct layout_case *of, const char *compress, const char *learn)
{
	char system[256];

	snprintf(system, sizeof(system), "sync: ps%s%s", compress, of->keys);
	return train(&(struct job){system, of->workers, of->workers_per_node, ITERATIONS, learn});
}

/* A worker's residual stays 0, for all of 0 + g leaves; so does the shard's, for all of its sum leaves. The sum is
 * ((0 + g0) + g1) + ..., in order of rank as a server's g0 + g1 + ... is, and what workers unpack is 0 + that. So all
 * is equal but for the sign of zeros, as 0 + -0 is 0; an update adds those to something else. It is the same, value by
 * value, at a worker and at a server. */
Test(run_packed, all_values_kept_it_is_a_server_bit_for_bit)
{
	for (unsigned c = 0; c < N_LAYOUTS; c++) {
		struct training *plain = train_layout(&layouts[c], "", LEARN);
		struct training *whole = train_layout(&layouts[c], ", compress: {by: top-k, kept: 100%}", LEARN);
		struct training *matrices = train_layout(
			&layouts[c], ", compress: {by: top-k, kept: 100%, block: 2048, tensors: matrices}", LEARN);

		for (unsigned w = 0; w < layouts[c].workers; w++) {
			cr_expect(training_is_same(whole, w, plain, w), "%u workers%s, all tensors, worker %u",
				  layouts[c].workers, layouts[c].keys, w);
			cr_expect(training_is_same(matrices, w, plain, w), "%u workers%s, matrices, worker %u",
				  layouts[c].workers, layouts[c].keys, w);
		}
		training_free(plain);
		training_free(whole);
		training_free(matrices);
	}
}

Test(run_packed, a_single_worker_trains_as_without)
{
	static const char *const compress[] = {", compress: {by: one-bit}", ", compress: {by: top-k, kept: 1%}",
					       ", compress: {by: one-bit, tensors: matrices}, servers: 1"};
	static const struct layout_case alone = {"", 1, 1};
	struct training *without = train_layout(&alone, "", LEARN);

	for (unsigned c = 0; c < sizeof(compress) / sizeof(compress[0]); c++) {
		struct training *with = train_layout(&alone, compress[c], LEARN);

		cr_expect(training_is_same(with, 0, without, 0), "%s", compress[c]);
		training_free(with);
	}
	training_free(without);
}

/* ---- the same on all ---- */

static const char *const compressions[] = {
	", compress: {by: one-bit}",
	", compress: {by: top-k, kept: 2%}",
	", compress: {by: one-bit, block: 2048, tensors: matrices}",
	", compress: {by: top-k, kept: 0.001, block: 32768, tensors: matrices}",
	", compress: {by: one-bit}, local_sgd: {steps: 3}",
};
enum { N_COMPRESSIONS = sizeof(compressions) / sizeof(compressions[0]) };

static void check_same(const struct layout_case *of, const char *compress, const char *learn)
{
	struct training *training = train_layout(of, compress, learn);
	char what[256];

	snprintf(what, sizeof(what), "%s%s, %u workers%s", compress, of->keys, of->workers, learn);
	training_expect_same_on_all(training, what);
	if (!training->made.plan.local) /* whole periods of which are measured below */
		cr_expect_eq(training->result.sent_bytes_per_node, most_sent_bytes(&training->made),
			     "%s: %lu, must be %lu", what, training->result.sent_bytes_per_node,
			     most_sent_bytes(&training->made));
	training_free(training);
}

Test(run_packed, all_end_with_the_same_bits_and_send_what_is_predicted)
{
	for (unsigned l = 0; l < N_LAYOUTS; l++)
		for (unsigned c = 0; c < N_COMPRESSIONS; c++)
			check_same(&layouts[l], compressions[c], LEARN);
}

Test(run_packed, every_optimiser_ends_with_the_same_bits)
{
	static const char *const learns[] = {
		LEARN ", deterministic: false",
		", optimiser: {momentum: 0.9, nesterov: true}, learning_rate: {policy: fixed, base: 0.05}",
		", optimiser: {kind: lars, trust: 0.02, momentum: 0.9, weight_decay: 0.01}, learning_rate: {policy: "
		"fixed, base: 1}",
		", learning_rate: {policy: fixed, base: 0.1}",
	};

	for (unsigned learn = 0; learn < sizeof(learns) / sizeof(learns[0]); learn++)
		for (unsigned l = 0; l < 4; l++)
			for (unsigned c = 0; c < 2; c++)
				check_same(&layouts[l], compressions[c], learns[learn]);
}

Test(run_packed, a_run_repeats_exactly)
{
	for (unsigned l = 0; l < N_LAYOUTS; l += 3)
		for (unsigned c = 0; c < N_COMPRESSIONS; c++) {
			struct training *one = train_layout(&layouts[l], compressions[c], LEARN);
			struct training *other = train_layout(&layouts[l], compressions[c], LEARN);

			cr_expect(training_is_same(one, 0, other, 0), "%s%s", compressions[c], layouts[l].keys);
			training_free(one);
			training_free(other);
		}
}

/* ---- bytes ---- */

/* 8 bytes and a bit for each of 1024 values; of 1024 the largest 21, 4 bytes each, and their places, 2 bytes each and
 * one of them unused. */
enum { ONE_BIT_BYTES = 8 + 1024 / 8, TOP_K_BYTES = 21 * 4 + 22 * 2 };

static void check_bytes(const struct layout_case *of, const char *compress, uint64_t bytes)
{
	struct training *training = train_layout(of, compress, LEARN);

	cr_expect_eq(training->result.sent_bytes_per_node, bytes, "%s%s, %u workers: %lu, must be %lu", compress,
		     of->keys, of->workers, training->result.sent_bytes_per_node, bytes);
	training_free(training);
}

/* Of 2 nodes each pushes the other's half of 8 blocks, and sends its own half as sums. Of 4 node 1 has one block of
 * each item: it pushes the 5 others, and sends its 3 to 3. A server sends all to two workers. */
Test(run_packed, what_is_sent_is_what_the_formula_says)
{
	enum { CONV_BYTES = (216 + 8) * 4 };

	check_bytes(&(struct layout_case){"", 2, 1}, ", compress: {by: one-bit}", 8 * ONE_BIT_BYTES);
	check_bytes(&(struct layout_case){"", 2, 1}, ", compress: {by: top-k, kept: 2%}", 8 * TOP_K_BYTES);
	check_bytes(&(struct layout_case){"", 4, 1}, ", compress: {by: one-bit}", (5 + 3 * 3) * ONE_BIT_BYTES);
	check_bytes(&(struct layout_case){", servers: 1", 2, 1}, ", compress: {by: one-bit}", 2 * 8 * ONE_BIT_BYTES);
	check_bytes(&(struct layout_case){"", 2, 1}, ", compress: {by: one-bit, tensors: matrices}",
		    6 * ONE_BIT_BYTES + CONV_BYTES);
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

/* A bias of 30 is one block, a weight of 1200 two: node 0 pushes two of them and has one sum to send. */
Test(run_packed, tensors_that_stay_as_they_are_do_not_travel)
{
	const struct scratch_folder folder = scratch_folder_make();
	struct training *plain = train_frozen(&folder, "sync: ps");
	struct training *whole = train_frozen(&folder, "sync: ps, compress: {by: top-k, kept: 100%}");
	struct training *signs = train_frozen(&folder, "sync: ps, compress: {by: one-bit}");

	cr_expect(training_is_same(whole, 0, plain, 0));
	training_expect_same_on_all(signs, "one-bit");
	cr_expect_eq(signs->result.sent_bytes_per_node, 3 * ONE_BIT_BYTES);
	training_free(plain);
	training_free(whole);
	training_free(signs);
	scratch_folder_remove(&folder);
}

/* Of 14 iterations whole periods of 4 are measured. */
Test(run_packed, a_prediction_counts_the_same_bytes)
{
	const struct scratch_folder folder = scratch_folder_make();
	char systems[4096] = "", text[6144], arguments[256], *model = realpath("tests/data/maskless.yaml", NULL);
	unsigned n_systems = 0;
	struct run predicted, executed;

	for (unsigned l = 0; l < N_LAYOUTS; l++)
		for (unsigned c = l % 2; c < N_COMPRESSIONS - 1; c += 2, n_systems++)
			snprintf(systems + strlen(systems), sizeof(systems) - strlen(systems),
				 "  - {name: s%u, sync: ps%s%s%s}\n", n_systems, compressions[c], layouts[l].keys,
				 l % 4 == 3 ? ", local_sgd: {steps: 4}" : "");
	snprintf(text, sizeof(text),
		 "title: t\nmodel: {graph: %s, batch_per_worker: 4}\ncompute: {device: cpu}\n"
		 "cluster: {nodes: 3, workers_per_node: 2, network: {bandwidth: 1Gbps, latency: 50us}}\n"
		 "sweep: {workers: [5]}\nsystems:\n%strain: {iterations: 14, learning_rate: {policy: fixed, base: "
		 "0.001}}\n",
		 model, systems);
	scratch_folder_write(&folder, "s.yaml", text, strlen(text));
	snprintf(arguments, sizeof(arguments), "--csv %s/s.yaml", folder.path);
	predicted = run_program("psd-sim", arguments, "2>&1");
	snprintf(arguments, sizeof(arguments), "--csv --quiet --no-emulation %s/s.yaml", folder.path);
	executed = run_program("psd-run", arguments, "2>&1");
	cr_assert(predicted.exit_status == 0 && executed.exit_status == 0, "%s%s", predicted.text, executed.text);
	for (unsigned s = 1; s <= n_systems; s++) {
		expect_same_field(executed.text, predicted.text, s, "tx_bytes_per_node", 3);
		expect_same_field(executed.text, predicted.text, s, "rx_bytes_per_node", 3);
	}
	free(predicted.text);
	free(executed.text);
	free(model);
	scratch_folder_remove(&folder);
}

/* ---- the same way ---- */

/* How far a run ends from another one that it should be but for rounding, of the other's way from the start. */
static double apart_ratio(const char *compress, const char *other_compress, const char *optimiser)
{
	static const struct layout_case of = {"", 3, 1};
	char learn[160];
	struct training *begun = train_layout(&of, "", ", learning_rate: {policy: fixed, base: 1e-9}"), *run, *other;
	const uint64_t elements = begun->loaded.matter.graph.parameters;
	double ratio;

	snprintf(learn, sizeof(learn), "%s, learning_rate: {policy: fixed, base: 0.1}", optimiser);
	run = train_layout(&of, compress, learn);
	other = train_layout(&of, other_compress, learn);
	training_expect_same_on_all(run, compress);
	ratio = distance(training_parameters(run, 0), training_parameters(other, 0), elements) /
		distance(training_parameters(begun, 0), training_parameters(other, 0), elements);
	training_free(begun);
	training_free(run);
	training_free(other);
	return ratio;
}

/* ---- local steps ---- */

/* At a fixed rate and without momentum what a worker has gone is the rate times its gradient, and what is lost of it
 * the rate times what is lost of the gradient: a run by gradients, but for rounding. */
Test(run_packed, one_local_step_is_an_exchange_of_gradients)
{
	cr_expect_lt(apart_ratio(", compress: {by: top-k, kept: 100%}, local_sgd: {steps: 1}",
				 ", compress: {by: top-k, kept: 100%}", ""),
		     SAME_WAY_RATIO);
	cr_expect_lt(apart_ratio(", compress: {by: one-bit}, local_sgd: {steps: 1}", ", compress: {by: one-bit}", ""),
		     TURNED_RATIO);
	cr_expect_lt(apart_ratio(", compress: {by: one-bit, tensors: matrices}, local_sgd: {steps: 1}",
				 ", compress: {by: one-bit, tensors: matrices}", ""),
		     TURNED_RATIO);
}

/* ---- momentum before compression ---- */

/* Of P workers each has u = m u + g + (d / P) w, and all of it travels: the sum is U = m U + G + d w, and w -= rate U.
 * Without compression h = m h + rate (G + d w) is rate U where the rate stays, and w -= h. By Nesterov s + m U, with
 * s = G + d w, travels, and there w -= (1 + m) h - m (h before), which is rate (s + m U), too. */
Test(run_packed, momentum_before_is_momentum_where_all_travels)
{
	static const char before[] = ", compress: {by: top-k, kept: 100%, momentum: before}";

	cr_expect_lt(apart_ratio(before, "", ", optimiser: {momentum: 0.9, weight_decay: 0.01}"), SAME_WAY_RATIO);
	cr_expect_lt(apart_ratio(before, "", ", optimiser: {nesterov: true, momentum: 0.9, weight_decay: 0.01}"),
		     SAME_WAY_RATIO);
	cr_expect_lt(apart_ratio(before, "", ", optimiser: {momentum: 0}"), SAME_WAY_RATIO);
}

Test(run_packed, lars_needs_gradients_without_momentum)
{
	const struct job job = {"sync: ps, compress: {by: one-bit, momentum: before}", 2, 1, ITERATIONS,
				", optimiser: {kind: lars, trust: 0.02}, learning_rate: {policy: fixed, base: 0.1}"};
	struct training *training = make(&job);

	training_run(training);
	cr_expect_eq(training->status, PSD_EINVAL);
	cr_expect_str_eq(training->err.text,
			 "test.yaml:6:5: system 's' has 'momentum: before', optimiser 'lars' needs gradients without");
	training_free(training);
}

/* ---- the whole algorithm ---- */

enum { INPUTS = PLAIN_INPUTS, CLASSES = PLAIN_CLASSES, N = PLAIN_PARAMETERS, REFERENCE_WORKERS = 2, BLOCK = 1024 };
#define RATE	 0.25
#define MOMENTUM 0.9
#define DECAY	 0.01
/* Of how far a parameter goes. */
#define NEAR_RATIO 0.01
enum { MOST_TURNED = 4 };

/* Softmax of a weight (CLASSES, INPUTS) and a bias, in double precision. */
struct reference {
	uint32_t kept; /* 0: one-bit */
	double parameters[N], history[N], residual[REFERENCE_WORKERS][N], sum_residual[N], sum[N];
	struct psd_data *data;
};

/* Blocks of the weight, and the bias. */
static void compress(const struct reference *of, double *values, double *sent)
{
	for (unsigned first = 0; first < INPUTS * CLASSES; first += BLOCK)
		plain_compress(of->kept, values + first, sent + first,
			       INPUTS * CLASSES - first < BLOCK ? INPUTS * CLASSES - first : BLOCK);
	plain_compress(of->kept, values + INPUTS * CLASSES, sent + INPUTS * CLASSES, CLASSES);
}

static void go_worker(struct reference *of, unsigned worker, unsigned iteration)
{
	const uint64_t first = psd_sampler_first(iteration, REFERENCE_WORKERS, worker, BATCH);
	float images[BATCH * INPUTS];
	int32_t labels[BATCH];
	double sent[N];
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_data_read_batch(of->data, PSD_DATA_TRAINING, first, BATCH, images, labels, &err), PSD_OK, "%s",
		     err.text);
	for (unsigned s = 0; s < BATCH; s++)
		plain_softmax_add(of->parameters, images + s * INPUTS, labels[s], REFERENCE_WORKERS * BATCH,
				  of->residual[worker]);
	compress(of, of->residual[worker], sent);
	for (unsigned e = 0; e < N; e++)
		of->sum_residual[e] += sent[e];
}

static void go(struct reference *of, unsigned iteration)
{
	for (unsigned w = 0; w < REFERENCE_WORKERS; w++)
		go_worker(of, w, iteration);
	compress(of, of->sum_residual, of->sum);
	for (unsigned e = 0; e < N; e++) {
		of->history[e] = MOMENTUM * of->history[e] + RATE * (of->sum[e] + DECAY * of->parameters[e]);
		of->parameters[e] -= of->history[e];
	}
}

static const char softmax[] = PLAIN_SOFTMAX;

static struct training *train_softmax(const struct scratch_folder *folder, const char *system, unsigned iterations,
				      double rate)
{
	char job[256];

	scratch_folder_write(folder, "softmax.yaml", softmax, strlen(softmax));
	snprintf(job, sizeof(job),
		 "iterations: %u, data: {kind: synthetic, training_samples: 40}, optimiser: {momentum: 0.9, "
		 "weight_decay: 0.01}, learning_rate: {policy: fixed, base: %g}",
		 iterations, rate);
	return finish(training_make(scratch_folder_path(folder, "softmax.yaml").text, system, REFERENCE_WORKERS, 1,
				    BATCH, 5, job),
		      system);
}

/* But for a value or two whose sign, or place among the largest, rounding has turned around. */
static void expect_near(const struct reference *of, const struct training *begun, const struct training *training,
			const char *system)
{
	const float *begin = training_parameters(begun, 0), *end = training_parameters(training, 0);
	double squares = 0.0;
	unsigned n_apart = 0;

	for (unsigned e = 0; e < N; e++)
		squares += pow((double)begin[e] - of->parameters[e], 2);
	for (unsigned e = 0; e < N; e++)
		n_apart += fabs((double)end[e] - of->parameters[e]) > NEAR_RATIO * sqrt(squares / N);
	cr_expect_leq(n_apart, MOST_TURNED, "%s: %u of %d parameters differ", system, n_apart, N);
}

static void check_reference(const char *system, uint32_t kept)
{
	const struct scratch_folder folder = scratch_folder_make();
	struct training *begun = train_softmax(&folder, system, 1, 1e-9);
	struct training *training = train_softmax(&folder, system, ITERATIONS, RATE);
	const struct psd_data_options options =
		psd_worker_data_options(&begun->loaded.matter.graph, &begun->loaded.scenario.train);
	struct reference *of = calloc(1, sizeof(*of));
	struct psd_error err = {.text = ""};

	cr_assert(of);
	of->kept = kept;
	for (unsigned e = 0; e < N; e++)
		of->parameters[e] = (double)training_parameters(begun, 0)[e];
	cr_assert_eq(psd_data_open(&of->data, &options, &err), PSD_OK, "%s", err.text);
	for (unsigned i = 0; i < ITERATIONS; i++)
		go(of, i);
	expect_near(of, begun, training, system);
	psd_data_close(of->data);
	free(of);
	training_free(begun);
	training_free(training);
	scratch_folder_remove(&folder);
}

Test(run_packed, it_is_the_published_algorithm)
{
	check_reference("sync: ps, compress: {by: one-bit}", 0);
	check_reference("sync: ps, servers: 1, compress: {by: one-bit}", 0);
	check_reference("sync: ps, compress: {by: top-k, kept: 2%}", 21);
	check_reference("sync: ps, servers: 2, unit: tensor, compress: {by: top-k, kept: 100%}", 1024);
}

/* Of a loss that has fallen to a twentieth: what is lost comes later. */
#define LEARNT_RATIO 2.0

static double last_loss(const char *compress, const char *learn)
{
	struct training *training = train(&(struct job){compress, 2, 1, 60, learn});
	const double loss = training->result.last_loss;

	training_free(training);
	return loss;
}

Test(run_packed, it_learns_about_as_much)
{
	static const char learn[] = ", optimiser: {momentum: 0.9}, learning_rate: {policy: fixed, base: 0.1}";
	const double plain = last_loss("sync: ps", learn);

	cr_expect_lt(plain, 0.1 * last_loss("sync: ps", ", learning_rate: {policy: fixed, base: 1e-9}"));
	cr_expect_lt(last_loss("sync: ps, compress: {by: one-bit}", learn), LEARNT_RATIO * plain);
	cr_expect_lt(last_loss("sync: ps, compress: {by: top-k, kept: 5%}", learn), LEARNT_RATIO * plain);
}

/* ---- runs that go on ---- */

/* With conv, batch norm and dropout; parts of several blocks, and servers without any of an item. */
Test(run_packed, what_goes_on_ends_as_what_was_never_cut)
{
	going_on_check("sync: ps, compress: {by: one-bit}", GOING_ON_SGD, 2, 1, NULL);
	going_on_check("sync: ps, compress: {by: top-k, kept: 2%}", GOING_ON_SGD, 3, 1, NULL);
	going_on_check("sync: ps, servers: 2, barrier: layer, compress: {by: one-bit, block: 2048}", GOING_ON_SGD, 2, 1,
		       NULL);
	going_on_check("sync: ps, compress: {by: top-k, tensors: matrices}", GOING_ON_SGD, 4, 2, NULL);
	going_on_check("sync: ps, compress: {by: top-k, kept: 2%, momentum: before}", GOING_ON_SGD, 3, 1, NULL);
	going_on_check("sync: ps, compress: {by: one-bit}, local_sgd: {steps: 3}", GOING_ON_SGD, 3, 1, NULL);
	going_on_check("sync: ps, compress: {by: one-bit}",
		       "data: {training_samples: 40, test_samples: 32}, optimiser: {kind: lars, trust: 0.01, "
		       "weight_decay: 0.1}",
		       2, 1, NULL);
}

Test(run_packed, a_run_starts_from_a_file)
{
	going_on_check_start("sync: ps, compress: {by: one-bit}", NULL);
}

static const char scenario[] =
	"title: softmax\nmodel: {graph: softmax.yaml, batch_per_worker: 4}\ncompute: {device: cpu}\n"
	"cluster: {nodes: 2, network: {bandwidth: 1Gbps, latency: 50us}}\n"
	"systems:\n  - {name: PS, sync: ps}\n  - {name: Packed, sync: ps, compress: {by: %s}}\n"
	"train: {data: {kind: synthetic, training_samples: 40, test_samples: 8}, iterations: 8, learning_rate: "
	"{policy: fixed, base: 0.1}}\n";
static struct scratch_folder make_folder(void)
{
	const struct scratch_folder folder = scratch_folder_make();
	char text[1024];

	snprintf(text, sizeof(text), scenario, "one-bit");
	scratch_folder_write(&folder, "s.yaml", text, strlen(text));
	snprintf(text, sizeof(text), scenario, "top-k");
	scratch_folder_write(&folder, "top.yaml", text, strlen(text));
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

static void expect_refusal(const struct scratch_folder *folder, const char *options, const char *words)
{
	char *text = run_that_ends(folder, 2, options);

	cr_expect_not_null(strstr(text, words), "%s: %s", options, text);
	cr_expect_eq(strchr(text, '\n'), text + strlen(text) - 1, "%s: %s", options, text);
	free(text);
}

/* A shard's residual is of its blocks, and velocities are of workers. What of a block travels may change: the rest is
 * what is left, whichever way. */
Test(run_packed, residuals_of_another_system_are_refused)
{
	static const char another[] =
		"is of another model, optimiser, system or cluster, or of another version of psd-run: ";
	const struct scratch_folder folder = make_folder();

	free(run_that_ends(&folder, 0, "--system Packed --save @/c --iterations 4 @/s.yaml"));
	free(run_that_ends(&folder, 0, "--system PS --save @/ps --iterations 4 @/s.yaml"));
	expect_refusal(&folder, "--system PS --save @/c --resume @/s.yaml", another);
	expect_refusal(&folder, "--system Packed --save @/ps --resume @/s.yaml", another);
	expect_refusal(&folder, "--system Packed --save @/c --resume --set systems.1.compress.block=2048 @/s.yaml",
		       another);
	expect_refusal(&folder, "--system Packed --save @/c --resume @/top.yaml", another);
	expect_refusal(&folder, "--system Packed --save @/c --resume --set systems.1.compress.momentum=before @/s.yaml",
		       another);
	free(run_that_ends(&folder, 0,
			   "--system Packed --save @/b --iterations 4 --set systems.1.compress.momentum=before "
			   "@/s.yaml"));
	expect_refusal(&folder, "--system Packed --save @/b --resume @/s.yaml", another);
	free(run_that_ends(&folder, 0, "--system Packed --save @/c --resume @/s.yaml"));
	free(run_that_ends(&folder, 0, "--system Packed --save @/t --iterations 4 @/top.yaml"));
	free(run_that_ends(&folder, 0,
			   "--system Packed --save @/t --resume --set systems.1.compress.kept=10% @/top.yaml"));
	scratch_folder_remove(&folder);
}

/* Of 5 servers at most 3 have one of 3 blocks. Others would be done before workers begin, and have no checkpoint that
 * all could go on from. */
Test(run_packed, a_server_without_blocks_saves_nothing)
{
	const struct scratch_folder folder = make_folder();

	expect_refusal(&folder, "--system Packed --save @/c --set systems.1.servers=5 @/s.yaml",
		       "of 'Packed' keeps no tensor: with '--save' each must, give fewer 'servers'\n");
	free(run_that_ends(&folder, 0, "--system Packed --set systems.1.servers=5 @/s.yaml"));
	free(run_that_ends(&folder, 0, "--system Packed --save @/d --set systems.1.servers=3 @/s.yaml"));
	scratch_folder_remove(&folder);
}

/* ---- what is said ---- */

/* Both hosts' lines. */
static void expect_disagreement(const char *file, const char *options, const char *words, const char *other_words)
{
	const struct scratch_folder folder = make_folder();
	char line[4 * PATH_MAX], hosts[64], *other;
	struct run done;

	snprintf(hosts, sizeof(hosts), "127.0.0.1:%u\n127.0.0.1:%u\n", keep_port(), keep_port());
	scratch_folder_write(&folder, "hosts", hosts, strlen(hosts));
	snprintf(line, sizeof(line),
		 "cd %s; run() { %s --hosts hosts --quiet --system Packed \"$@\"; }; run --rank 1 %s %s 2>rank1 & "
		 "run --rank 0 s.yaml 2>&1; status=$?; wait; exit $status",
		 folder.path, path_of("psd-run").text, options, file);
	done = run_command(line);
	other = scratch_folder_read(&folder, "rank1");
	cr_expect_eq(done.exit_status, 1);
	cr_expect_not_null(strstr(done.text, words), "%s", done.text);
	cr_expect_not_null(strstr(other, other_words), "%s", other);
	free(done.text);
	free(other);
	scratch_folder_remove(&folder);
}

Test(run_packed, hosts_that_compress_otherwise_are_refused)
{
	expect_disagreement("top.yaml", "", "'systems.compress.by' is one-bit here, top-k there\n",
			    "'systems.compress.by' is top-k here, one-bit there\n");
	expect_disagreement("s.yaml", "--set systems.1.compress.block=2048",
			    "'systems.compress.block' is 1024 here, 2048 there\n",
			    "'systems.compress.block' is 2048 here, 1024 there\n");
	expect_disagreement("s.yaml", "--set systems.1.compress.tensors=matrices",
			    "'systems.compress.tensors' is all here, matrices there\n",
			    "'systems.compress.tensors' is matrices here, all there\n");
}

/* words: NULL: there is none. */
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
	cr_expect_null(strstr(done.text, "'PS'"), "%s: %s", options, done.text);
	free(done.text);
	scratch_folder_remove(&folder);
}

Test(run_packed, that_something_is_lost_is_said)
{
	expect_note("@/s.yaml", "note: 'Packed' sends gradients compressed (one-bit), adds what is lost to later ones, "
				"and so trains with other values\n");
	expect_note("--set systems.1.compress.tensors=matrices @/top.yaml",
		    "note: 'Packed' sends gradients of matrices compressed (top-k), adds what is lost to later ones, ");
	expect_note("--set systems.1.compress.kept=100% @/top.yaml", NULL);
}
