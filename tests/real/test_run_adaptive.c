/* Whole runs on loopback with AdamW: every system that takes it trains as one worker does, and as a plain reference in
 * double precision; a run that goes on goes on with its means; systems and checkpoints that do not fit are refused. */
#define _GNU_SOURCE 1
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/real/folder_run.h"
#include "tests/real/going_on.h"
#include "tests/real/plain_training.h"

TestSuite(run_adaptive, .timeout = 120);

#define MODEL "../../tests/data/maskless.yaml"
/* Numbers that are no fallbacks. Where a gradient is nothing but rounding its mean is far less than epsilon. */
#define LEARN                                                                                                          \
	", optimiser: {kind: adamw, beta1: 0.8, beta2: 0.95, epsilon: 0.0001, weight_decay: 0.1}, "                    \
	"learning_rate: {policy: exp, base: 0.01, gamma: 0.9}"

/* Share of the distance from the start: sums over samples are rounded elsewhere. */
#define SAME_WAY_RATIO 1e-5
/* The same of gradients with 8 bits, and with 11. */
#define BF16_WAY_RATIO 0.03
#define FP16_WAY_RATIO 0.004

enum { SAMPLES = 24, ITERATIONS = 6 };

struct layout_case {
	const char *system;
	unsigned workers, workers_per_node;
};

/* A run with SAMPLES in each iteration, divided in any way. */
static struct training *train(const struct layout_case *of, uint32_t iterations, const char *learn)
{
	char job[384];

	snprintf(job, sizeof(job), "iterations: %u, data: {kind: synthetic, training_samples: 96}%s", iterations,
		 learn);
	return training_finish(
		training_make(MODEL, of->system, of->workers, of->workers_per_node, SAMPLES / of->workers, 5, job),
		of->system);
}

/* ---- the same as one worker ---- */

/* A run by one worker, and where it began. */
struct alone {
	struct training *begun, *trained;
};

static struct alone train_alone(const char *learn)
{
	static const struct layout_case alone = {"sync: ring", 1, 1};

	return (struct alone){train(&alone, 1, ", learning_rate: {policy: fixed, base: 1e-9}"),
			      train(&alone, ITERATIONS, learn)};
}

static void release(struct alone *alone)
{
	training_free(alone->begun);
	training_free(alone->trained);
}

static void check_near(const struct alone *alone, const struct layout_case *of, const char *learn, double way_ratio)
{
	struct training *together = train(of, ITERATIONS, learn);
	const double apart_ratio = training_apart_ratio(alone->begun, alone->trained, together);

	training_expect_same_on_all(together, of->system);
	cr_expect_leq(apart_ratio, way_ratio, "%s, %u workers: off by %g of the way", of->system, of->workers,
		      apart_ratio);
	training_free(together);
}

/* Shards that update parts of slices, leaders, servers of their own, roots, and devices that update by sums, by factors
 * and by what was compressed. */
static const struct layout_case cases[] = {
	{"sync: ps", 1, 1},
	{"sync: ps", 2, 1},
	{"sync: ps", 4, 2},
	{"sync: ps, pair: 512B, slice: 1KiB, barrier: layer, priority: forward", 3, 1},
	{"sync: ps, servers: 2", 3, 1},
	{"sync: two-level-ps", 4, 2},
	{"sync: two-level-ps, servers: 1", 4, 2},
	{"sync: sfb", 3, 1},
	{"sync: adam", 3, 1},
	{"sync: adam, servers: 2", 2, 1},
	{"sync: hybrid", 4, 2},
	{"sync: hybrid, schedule: sequential", 2, 1},
	{"sync: ring", 3, 1},
	{"sync: ring, fuse: 1MB", 3, 1},
	{"sync: halving-doubling, fuse: 4KiB", 4, 1},
	{"sync: two-level", 4, 2},
	{"sync: ps, compress: {by: top-k, kept: 100%}", 4, 1},
	{"sync: ps, compress: {by: top-k, kept: 100%, tensors: matrices}", 3, 1},
};
enum { N_CASES = sizeof(cases) / sizeof(cases[0]) };

Test(run_adaptive, every_system_trains_as_one_worker)
{
	struct alone alone = train_alone(LEARN);

	for (unsigned c = 0; c < N_CASES; c++)
		check_near(&alone, &cases[c], LEARN, SAME_WAY_RATIO);
	release(&alone);
}

Test(run_adaptive, sums_in_any_order_train_as_one_worker)
{
	struct alone alone = train_alone(LEARN);

	for (unsigned c = 0; c < N_CASES; c += 2)
		check_near(&alone, &cases[c], LEARN ", deterministic: false", SAME_WAY_RATIO);
	release(&alone);
}

Test(run_adaptive, values_of_16_bits_train_about_as_one_worker)
{
	static const struct {
		struct layout_case layout;
		double way_ratio;
	} encoded[] = {
		{{"sync: ps, wire: bf16", 2, 1}, BF16_WAY_RATIO},
		{{"sync: ps, servers: 2, wire: fp16", 3, 1}, FP16_WAY_RATIO},
		{{"sync: two-level-ps, wire: bf16", 4, 2}, BF16_WAY_RATIO},
		{{"sync: ring, fuse: 1MB, wire: fp16", 3, 1}, FP16_WAY_RATIO},
		{{"sync: adam, wire: bf16", 3, 1}, BF16_WAY_RATIO},
		{{"sync: hybrid, wire: fp16", 4, 1}, FP16_WAY_RATIO},
	};
	struct alone alone = train_alone(LEARN);

	for (unsigned c = 0; c < sizeof(encoded) / sizeof(encoded[0]); c++)
		check_near(&alone, &encoded[c].layout, LEARN ", loss_scale: 16", encoded[c].way_ratio);
	release(&alone);
}

Test(run_adaptive, a_run_repeats_exactly)
{
	for (unsigned c = 1; c < N_CASES; c += 2) {
		struct training *one = train(&cases[c], ITERATIONS, LEARN),
				*other = train(&cases[c], ITERATIONS, LEARN);

		cr_expect(training_is_same(one, 0, other, 0), "%s", cases[c].system);
		training_free(one);
		training_free(other);
	}
}

/* ---- the whole algorithm ---- */

enum { WORKERS = 2, N = PLAIN_PARAMETERS };

struct numbers {
	double rate, beta1, beta2, epsilon, decay;
	const char *optimiser; /* the same */
};

static const struct numbers fallbacks = {0.01, 0.9, 0.999, 1e-8, 0.0, "kind: adamw"};
static const struct numbers others = {
	0.05, 0.5, 0.9, 0.01, 0.2, "kind: adamw, beta1: 0.5, beta2: 0.9, epsilon: 0.01, weight_decay: 0.2"};

struct reference {
	struct plain_training plain;
	double mean[N], square[N];
};

/* Loshchilov and Hutter 2019, algorithm 2, without restarts: in iteration t, from 1. */
static void go(struct reference *of, const struct numbers *numbers, unsigned t)
{
	const double beta1 = numbers->beta1, beta2 = numbers->beta2;
	double gradient[N] = {0.0};

	for (unsigned w = 0; w < WORKERS; w++)
		plain_training_add_gradient(&of->plain, w, t - 1, gradient);
	for (unsigned e = 0; e < N; e++) {
		of->mean[e] = beta1 * of->mean[e] + (1 - beta1) * gradient[e];
		of->square[e] = beta2 * of->square[e] + (1 - beta2) * gradient[e] * gradient[e];
		const double mean = of->mean[e] / (1 - pow(beta1, t)), square = of->square[e] / (1 - pow(beta2, t));
		of->plain.parameters[e] -= numbers->rate * (mean / (sqrt(square) + numbers->epsilon) +
							    numbers->decay * of->plain.parameters[e]);
	}
}

static void check_reference(const char *system, const struct numbers *numbers)
{
	struct reference *of = calloc(1, sizeof(*of));
	double apart_ratio;

	cr_assert(of);
	plain_training_open(&of->plain, system, WORKERS, 1, numbers->optimiser, numbers->rate);
	for (unsigned t = 1; t <= PLAIN_ITERATIONS; t++)
		go(of, numbers, t);
	apart_ratio = plain_training_apart_ratio(&of->plain);
	cr_expect_leq(apart_ratio, SAME_WAY_RATIO, "%s, %s: off by %g of the way", system, numbers->optimiser,
		      apart_ratio);
	plain_training_close(&of->plain);
	free(of);
}

Test(run_adaptive, it_is_the_published_algorithm)
{
	static const char *const systems[] = {"sync: ps", "sync: ps, servers: 1, pair: 512B, slice: 1KiB",
					      "sync: ring, fuse: 1MB", "sync: sfb"};

	for (unsigned s = 0; s < sizeof(systems) / sizeof(systems[0]); s++) {
		check_reference(systems[s], &fallbacks);
		check_reference(systems[s], &others);
	}
}

/* Losses fall to a tenth at least. */
Test(run_adaptive, it_learns)
{
	static const struct layout_case learners[] = {
		{"sync: ps", 2, 1},
		{"sync: ring, fuse: 1MB", 2, 1},
		{"sync: ps, compress: {by: one-bit}", 2, 1},
		{"sync: ring, local_sgd: {steps: 4}", 2, 1},
	};
	struct training *begun = train(&learners[0], 1, LEARN);

	for (unsigned c = 0; c < sizeof(learners) / sizeof(learners[0]); c++) {
		struct training *training = train(&learners[c], 60,
						  ", optimiser: {kind: adamw}, learning_rate: {policy: fixed, base: "
						  "0.01}");

		cr_expect_lt(training->result.last_loss, 0.1 * begun->result.last_loss, "%s: %g after %g",
			     learners[c].system, training->result.last_loss, begun->result.last_loss);
		training_free(training);
	}
	training_free(begun);
}

/* ---- runs that go on ---- */

#define GOING_ON_LOUD_ADAMW                                                                                            \
	"data: {training_samples: 40, test_samples: 32, noise: 90}, optimiser: {kind: adamw, beta2: 0.95}"

Test(run_adaptive, servers_go_on)
{
	going_on_check("sync: ps, pair: 4KiB, slice: 16KiB", GOING_ON_ADAMW, 3, 1, NULL);
	going_on_check("sync: ps, servers: 2", GOING_ON_ADAMW, 2, 1, NULL);
	going_on_check("sync: two-level-ps", GOING_ON_ADAMW, 4, 2, NULL);
	going_on_check("sync: ps, wire: bf16", GOING_ON_ADAMW, 2, 1, NULL);
	going_on_check("sync: ps, servers: 1, wire: fp16", GOING_ON_LOUD_ADAMW, 2, 1, NULL);
}

Test(run_adaptive, devices_go_on)
{
	going_on_check("sync: ring", GOING_ON_ADAMW, 1, 1, NULL);
	going_on_check("sync: ring, fuse: 8KiB", GOING_ON_ADAMW, 3, 1, NULL);
	going_on_check("sync: hybrid", GOING_ON_ADAMW, 2, 1, NULL);
	going_on_check("sync: adam", GOING_ON_ADAMW, 3, 1, NULL);
	going_on_check("sync: ps, compress: {by: one-bit}", GOING_ON_ADAMW, 2, 1, NULL);
	going_on_check("sync: ring, wire: fp16", GOING_ON_LOUD_ADAMW, 2, 1, NULL);
}

/* ---- refusals ---- */

static const char scenario[] =
	"title: softmax\nmodel: {graph: softmax.yaml, batch_per_worker: 4}\ncompute: {device: cpu}\n"
	"cluster: {nodes: 2, network: {bandwidth: 1Gbps, latency: 50us}}\n"
	"systems:\n  - {name: PS, sync: ps}\n  - {name: Ring, sync: ring}\n"
	"  - {name: Sparse, sync: ring, sparse: {sparsity: 0.5}}\n"
	"  - {name: Packed, sync: ps, compress: {by: one-bit, momentum: before}}\n"
	"train:\n  data: {kind: synthetic, training_samples: 40, test_samples: 8}\n  iterations: 8\n"
	"  learning_rate: {policy: fixed, base: 0.01}\n  optimiser: {kind: adamw}\n";

static struct scratch_folder make_folder(void)
{
	const struct scratch_folder folder = scratch_folder_make();
	char hosts[64];

	snprintf(hosts, sizeof(hosts), "127.0.0.1:%u\n127.0.0.1:%u\n", keep_port(), keep_port());
	scratch_folder_write(&folder, "hosts", hosts, strlen(hosts));
	scratch_folder_write(&folder, "s.yaml", scenario, strlen(scenario));
	scratch_folder_write(&folder, "softmax.yaml", PLAIN_SOFTMAX, strlen(PLAIN_SOFTMAX));
	return folder;
}

Test(run_adaptive, systems_without_whole_gradients_are_refused)
{
	static const char sparse[] = "s.yaml:8:5: system 'Sparse' is 'sparse', optimiser 'adamw' needs whole gradients",
			  packed[] = "s.yaml:9:5: system 'Packed' has 'momentum: before', optimiser 'adamw' needs "
				     "gradients without";
	const struct scratch_folder folder = make_folder();

	folder_run_refuses(&folder, "--system Sparse @/s.yaml", sparse);
	folder_run_refuses(&folder, "--system Packed @/s.yaml", packed);
	expect_one_line("psd-run",
			scratch_folder_spell(&folder, "--hosts @/hosts --rank 1 --quiet --system Sparse @/s.yaml").text,
			2, sparse);
	expect_one_line("psd-run",
			scratch_folder_spell(&folder, "--hosts @/hosts --rank 0 --quiet --system Packed @/s.yaml").text,
			2, packed);
	scratch_folder_remove(&folder);
}

static void run_quietly(const struct scratch_folder *folder, const char *options)
{
	struct run done = run_program("psd-run", folder_run_arguments(folder, options).text, "2>&1 >/dev/null");

	cr_assert(done.exit_status == 0 && !*done.text, "%s: %s", options, done.text);
	free(done.text);
}

#define RUN "@/s.yaml "
#define SGD "--set train.optimiser.kind=sgd "

/* By servers, which keep parts, and by devices. */
Test(run_adaptive, a_checkpoint_of_another_optimiser_is_refused)
{
#define ELSE " which remembers something else: its parameters alone may be a start, see train.start\n"
	static const char adamw[] = "is of optimiser 'adamw'," ELSE,
			  other[] = "is of another optimiser than 'adamw'," ELSE;
	const struct scratch_folder folder = make_folder();

	run_quietly(&folder, RUN "--system PS --iterations 4 --save @/ps");
	run_quietly(&folder, RUN "--system Ring --iterations 4 --save @/ring");
	run_quietly(&folder, RUN SGD "--system PS --iterations 4 --save @/sgd-ps");
	run_quietly(&folder, RUN SGD "--system Ring --iterations 4 --save @/sgd-ring");
	folder_run_refuses(&folder, RUN SGD "--system PS --resume --save @/ps", adamw);
	folder_run_refuses(&folder, RUN SGD "--system Ring --resume --save @/ring", adamw);
	folder_run_refuses(&folder, RUN "--system PS --resume --save @/sgd-ps", other);
	folder_run_refuses(&folder, RUN "--system Ring --resume --save @/sgd-ring", other);
	run_quietly(&folder, RUN "--system PS --resume --save @/ps");
	run_quietly(&folder, RUN "--system Ring --resume --save @/ring");
	scratch_folder_remove(&folder);
}
