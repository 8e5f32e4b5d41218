/* Whole runs on loopback whose gradients go to the shards, and their sums back, compressed: against runs without, a
 * plain reference in double precision, and what psd-sim says of their bytes. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/real/folder_run.h"
#include "tests/real/going_on.h"
#include "tests/real/plain_compression.h"
#include "tests/real/plain_training.h"

TestSuite(run_packed, .timeout = 120);

/* Tensors of 216, 8, 3072, 24, 240 and 10 values, three items of 2, 4 and 2 blocks: of four shards two have none of the
 * first and the last. */
#define MODEL "../../tests/data/maskless.yaml"
#define LEARN ", optimiser: {momentum: 0.9, weight_decay: 0.01}, learning_rate: {policy: exp, base: 0.1, gamma: 0.9}"

/* Share of the distance from the start: floats are rounded elsewhere, in a few iterations. */
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

static struct training *train(const struct job *job)
{
	return training_finish(make(job), job->system);
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
		training_expect_sent(training, most_sent_bytes(&training->made), what);
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

	training_expect_sent(training, bytes, compress);
	training_free(training);
}

/* Each of 2 nodes pushes the other's half of 8 blocks, and sends its own half as sums. With 4 nodes, node 1 has one
 * block of each item: it pushes the 5 others, and sends its 3 to 3. A server sends all to two workers. */
Test(run_packed, sent_bytes_are_those_of_the_formula)
{
	enum { CONV_BYTES = (216 + 8) * 4 };

	check_bytes(&(struct layout_case){"", 2, 1}, ", compress: {by: one-bit}", 8 * ONE_BIT_BYTES);
	check_bytes(&(struct layout_case){"", 2, 1}, ", compress: {by: top-k, kept: 2%}", 8 * TOP_K_BYTES);
	check_bytes(&(struct layout_case){"", 4, 1}, ", compress: {by: one-bit}", (5 + 3 * 3) * ONE_BIT_BYTES);
	check_bytes(&(struct layout_case){", servers: 1", 2, 1}, ", compress: {by: one-bit}", 2 * 8 * ONE_BIT_BYTES);
	check_bytes(&(struct layout_case){"", 2, 1}, ", compress: {by: one-bit, tensors: matrices}",
		    6 * ONE_BIT_BYTES + CONV_BYTES);
}

/* A bias of 30 is one block, a weight of 1200 two: node 0 pushes two of them and has one sum to send. */
Test(run_packed, tensors_that_stay_as_they_are_do_not_travel)
{
	static const char job[] = "iterations: 6" LEARN;
	struct training *plain = training_frozen("sync: ps", job);
	struct training *whole = training_frozen("sync: ps, compress: {by: top-k, kept: 100%}", job);
	struct training *signs = training_frozen("sync: ps, compress: {by: one-bit}", job);

	cr_expect(training_is_same(whole, 0, plain, 0));
	training_expect_same_on_all(signs, "one-bit");
	training_expect_sent(signs, 3 * ONE_BIT_BYTES, "one-bit");
	training_free(plain);
	training_free(whole);
	training_free(signs);
}

/* Whole periods of 4 among 14 iterations are measured. */
Test(run_packed, a_prediction_counts_the_same_bytes)
{
	char systems[4096] = "", text[6144], *model = realpath("tests/data/maskless.yaml", NULL);
	unsigned n_systems = 0;

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
	folder_run_sends_as_predicted(text, n_systems, 3);
	free(model);
}

/* ---- the same way ---- */

/* How far a run ends from another one that it should be but for rounding, of the other's way from the start. */
static double apart_ratio(const char *compress, const char *other_compress, const char *optimiser)
{
	static const struct layout_case of = {"", 3, 1};
	char learn[160];
	struct training *begun = train_layout(&of, "", ", learning_rate: {policy: fixed, base: 1e-9}"), *run, *other;
	double ratio;

	snprintf(learn, sizeof(learn), "%s, learning_rate: {policy: fixed, base: 0.1}", optimiser);
	run = train_layout(&of, compress, learn);
	other = train_layout(&of, other_compress, learn);
	training_expect_same_on_all(run, compress);
	ratio = training_apart_ratio(begun, other, run);
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

/* Each of P workers has u = m u + g + (d / P) w, and all of it is sent: the sum is U = m U + G + d w, and w -= rate U.
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

enum { N = PLAIN_PARAMETERS, WEIGHTS = PLAIN_INPUTS * PLAIN_CLASSES, REFERENCE_WORKERS = 2, BLOCK = 1024 };
#define RATE 0.25
/* Share of the distance of a parameter from its start. */
#define NEAR_RATIO 0.01
enum { MOST_TURNED = 4 };

struct reference {
	struct plain_training plain;
	uint32_t kept; /* 0: one-bit */
	double history[N], residual[REFERENCE_WORKERS][N], sum_residual[N], sum[N];
};

/* Blocks of the weight, and the bias. */
static void compress(const struct reference *of, double *values, double *sent)
{
	for (unsigned first = 0; first < WEIGHTS; first += BLOCK)
		plain_compress(of->kept, values + first, sent + first,
			       WEIGHTS - first < BLOCK ? WEIGHTS - first : BLOCK);
	plain_compress(of->kept, values + WEIGHTS, sent + WEIGHTS, PLAIN_CLASSES);
}

static void go(struct reference *of, unsigned iteration)
{
	double sent[N];

	for (unsigned w = 0; w < REFERENCE_WORKERS; w++) {
		plain_training_add_gradient(&of->plain, w, iteration, of->residual[w]);
		compress(of, of->residual[w], sent);
		for (unsigned e = 0; e < N; e++)
			of->sum_residual[e] += sent[e];
	}
	compress(of, of->sum_residual, of->sum);
	plain_training_step(&of->plain, RATE, of->history, of->sum);
}

/* But for a value or two whose sign, or place among the largest, rounding has turned around. */
static void expect_near(const struct plain_training *of, const char *system)
{
	const float *begin = training_parameters(of->begun, 0), *end = training_parameters(of->trained, 0);
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
	struct reference *of = calloc(1, sizeof(*of));

	cr_assert(of);
	of->kept = kept;
	plain_training_open(&of->plain, system, REFERENCE_WORKERS, 1, PLAIN_MOMENTUM, RATE);
	for (unsigned i = 0; i < PLAIN_ITERATIONS; i++)
		go(of, i);
	expect_near(&of->plain, system);
	plain_training_close(&of->plain);
	free(of);
}

Test(run_packed, it_is_the_published_algorithm)
{
	check_reference("sync: ps, compress: {by: one-bit}", 0);
	check_reference("sync: ps, servers: 1, compress: {by: one-bit}", 0);
	check_reference("sync: ps, compress: {by: top-k, kept: 2%}", 21);
	check_reference("sync: ps, servers: 2, unit: tensor, compress: {by: top-k, kept: 100%}", 1024);
}

/* Share of a loss that has fallen to a twentieth: the residual comes later. */
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
Test(run_packed, a_resumed_run_ends_like_an_uninterrupted_one)
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
	scratch_folder_write(&folder, "softmax.yaml", PLAIN_SOFTMAX, strlen(PLAIN_SOFTMAX));
	return folder;
}

/* The rest is what is left, whichever way. */
Test(run_packed, the_kept_part_of_a_block_may_change)
{
	const struct scratch_folder folder = make_folder();

	free(folder_run(&folder, "--system Packed --save @/c --iterations 4 @/s.yaml"));
	free(folder_run(&folder, "--system Packed --save @/c --resume @/s.yaml"));
	free(folder_run(&folder, "--system Packed --save @/t --iterations 4 @/top.yaml"));
	free(folder_run(&folder, "--system Packed --save @/t --resume --set systems.1.compress.kept=10% @/top.yaml"));
	scratch_folder_remove(&folder);
}

/* Residuals after a change of hosts are tested in session/test_reshape_files.c. */
Test(run_packed, other_blocks_and_systems_go_on)
{
	const struct scratch_folder folder = make_folder();

	free(folder_run(&folder, "--system Packed --save @/c --iterations 2 @/s.yaml"));
	free(folder_run(&folder, "--system PS --save @/c --iterations 3 --resume @/s.yaml"));
	free(folder_run(&folder, "--system Packed --save @/c --iterations 4 --resume @/s.yaml"));
	free(folder_run(&folder,
			"--system Packed --save @/c --iterations 5 --resume --set systems.1.compress.block=2048 "
			"@/s.yaml"));
	free(folder_run(&folder, "--system Packed --save @/c --iterations 6 --resume @/top.yaml"));
	free(folder_run(&folder, "--system Packed --save @/c --iterations 7 --resume "
				 "--set systems.1.compress.momentum=before @/s.yaml"));
	free(folder_run(&folder, "--system Packed --save @/c --resume @/s.yaml"));
	scratch_folder_remove(&folder);
}

/* At most 3 of 5 servers have one of 3 blocks. The others would be done before workers begin, without a checkpoint from
 * which all could go on. */
Test(run_packed, a_server_without_blocks_saves_nothing)
{
	const struct scratch_folder folder = make_folder();

	folder_run_refuses(&folder, "--system Packed --save @/c --set systems.1.servers=5 @/s.yaml",
			   "of 'Packed' keeps no tensor: with '--save' each must, give fewer 'servers'\n");
	free(folder_run(&folder, "--system Packed --set systems.1.servers=5 @/s.yaml"));
	free(folder_run(&folder, "--system Packed --save @/d --set systems.1.servers=3 @/s.yaml"));
	scratch_folder_remove(&folder);
}

/* ---- messages ---- */

Test(run_packed, hosts_that_compress_otherwise_are_refused)
{
	static const char here[] = "--system Packed s.yaml";
	const struct scratch_folder folder = make_folder();

	folder_run_disagrees(&folder, here, "--system Packed top.yaml",
			     "'systems.compress.by' is one-bit here, top-k there\n",
			     "'systems.compress.by' is top-k here, one-bit there\n");
	folder_run_disagrees(&folder, here, "--system Packed --set systems.1.compress.block=2048 s.yaml",
			     "'systems.compress.block' is 1024 here, 2048 there\n",
			     "'systems.compress.block' is 2048 here, 1024 there\n");
	folder_run_disagrees(&folder, here, "--system Packed --set systems.1.compress.tensors=matrices s.yaml",
			     "'systems.compress.tensors' is all here, matrices there\n",
			     "'systems.compress.tensors' is matrices here, all there\n");
	scratch_folder_remove(&folder);
}

Test(run_packed, losses_of_precision_are_noted)
{
	const struct scratch_folder folder = make_folder();

	folder_run_notes(&folder, "@/s.yaml",
			 "note: 'Packed' sends gradients compressed (one-bit), adds what is lost to later ones, and so "
			 "trains with other values\n",
			 "'PS'");
	folder_run_notes(&folder, "--set systems.1.compress.tensors=matrices @/top.yaml",
			 "note: 'Packed' sends gradients of matrices compressed (top-k), adds what is lost to later "
			 "ones, ",
			 "'PS'");
	folder_run_notes(&folder, "--set systems.1.compress.kept=100% @/top.yaml", NULL, "'PS'");
	scratch_folder_remove(&folder);
}
