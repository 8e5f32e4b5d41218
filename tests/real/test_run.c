/* Whole runs in processes on loopback: every method trains as one worker does, repeats exactly, learns, moves the bytes
 * that the plan counts, and names a missing host. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/real/matrix_keys.h"
#include "tests/scratch_folder.h"

/* ---- the same as one worker ---- */

static const struct matrix_layout alone = {"schedule: sequential, sync: ring", 1, 1};

/* norm_ratio: relative to a tensor's norm. Sums over samples round differently when the samples are distributed
 * differently. Once in some 10^7 decisions (is this unit below 0, which of these nine is the largest) that changes the
 * decision: then a bias moves by 1e-6 to 4e-5 of its norm, otherwise by 1e-8. way_ratio: relative to the distance of a
 * tensor from its start, so that equal starts alone do not pass. */
#define AS_ONE_WORKER                                                                                                  \
	.other.layout = &alone, .other.keys = "", .is_by_tensor = true, .norm_ratio = 1e-4, .way_ratio = 0.1
#define ON_4(system) MATRIX_ON({system, 1, 1}, {system, 2, 1}, {system, 4, 1})

/* Two seeds of CIFAR-10 quick, Caffe's cifar10_quick_solver.prototxt with 32 samples for its 100. */
#define ROW_METHOD(name, system, seed, n)                                                                              \
	MATRIX_ROW(run, name, matrix_is_near, .subject = &matrix_quick, .first_seed = seed, .n_seeds = 2,              \
		   .iterations = n, ON_4(system), AS_ONE_WORKER)
ROW_METHOD(ps_trains_as_one_worker, "schedule: wait-free, sync: ps", 1, 10)
ROW_METHOD(sfb_trains_as_one_worker, "schedule: wait-free, sync: sfb", 3, 20)
ROW_METHOD(adam_trains_as_one_worker, "schedule: wait-free, sync: adam", 5, 20)
ROW_METHOD(hybrid_trains_as_one_worker, "schedule: wait-free, sync: hybrid", 7, 20)
ROW_METHOD(ring_trains_as_one_worker, "schedule: wait-free, sync: ring", 9, 10)
/* Items of up to three tensors that end within a layer, and one of all ten: more than a message has pieces. */
ROW_METHOD(gathered_tensors_train_as_one_worker,
	   "schedule: wait-free, sync: ring, fuse: 80kB, barrier: layer, priority: forward", 9, 20)
ROW_METHOD(all_gathered_tensors_train_as_one_worker, "schedule: sequential, sync: ring, fuse: 1MB", 11, 20)
/* Two chunks in each tree of 4. */
ROW_METHOD(gathered_tensors_in_trees_train_as_one_worker, "schedule: wait-free, sync: double-tree, fuse: 1MB", 13, 20)
ROW_METHOD(separate_servers_train_as_one_worker, "schedule: sequential, sync: ps, servers: 1", 11, 20)

/* Workers on several nodes, and of each of them. */
#define ROW_ALL_REDUCES(n, per_node, ...)                                                                              \
	MATRIX_ROW(run, every_all_reduce_of_##n##_by_##per_node##_trains_as_one_worker, matrix_is_near,                \
		   .subject = &(const struct matrix_subject){.graph = "cifar10-quick.yaml",                            \
							     .samples = 8 * n,                                         \
							     .seed = n,                                                \
							     .iterations = 6,                                          \
							     .learn = matrix_quick.learn},                             \
		   MATRIX_ON({"schedule: wait-free", n, per_node}), .keys = {__VA_ARGS__}, AS_ONE_WORKER)
ROW_ALL_REDUCES(2, 1, MATRIX_ALL_REDUCES)
ROW_ALL_REDUCES(3, 1, MATRIX_ALL_REDUCES)
ROW_ALL_REDUCES(5, 1, MATRIX_ALL_REDUCES)
ROW_ALL_REDUCES(6, 1, MATRIX_ALL_REDUCES)
ROW_ALL_REDUCES(4, 2, MATRIX_ALL_REDUCES)
ROW_ALL_REDUCES(4, 4, MATRIX_ALL_REDUCES)
ROW_ALL_REDUCES(4, 1, ", sync: auto")

/* A gradient is whole when the last of the layers that share it is done; the shared matrix goes to servers. */
MATRIX_ROW(run, shared_parameters_train_as_one_worker, matrix_is_near,
	   .subject = &(const struct matrix_subject){.graph = "../../tests/data/shared.prototxt",
						     .samples = 32,
						     .seed = 1,
						     .iterations = 20,
						     .learn = matrix_quick.learn},
	   ON_4(""), .keys = {"sync: ring", "sync: sfb", "sync: ps, schedule: sequential"}, AS_ONE_WORKER)

/* Norms are those of the sum, whichever hosts made its parts; tensors that travel together have each its own. */
static const struct matrix_subject by_norms = {
	.graph = "cifar10-quick.yaml",
	.samples = 32,
	.seed = 1,
	.iterations = 10,
	.learn = ", optimiser: {kind: lars, trust: 0.01, momentum: 0.9, weight_decay: 0.004}, "
		 "learning_rate: {policy: fixed, base: 0.1}",
};
MATRIX_ROW(run, lars_trains_as_one_worker, matrix_is_near, .subject = &by_norms, ON_4("sync: ring"), AS_ONE_WORKER)
MATRIX_ROW(run, lars_of_gathered_tensors_trains_as_one_worker, matrix_is_near, .subject = &by_norms,
	   ON_4("sync: recursive-doubling, fuse: 1MB"), AS_ONE_WORKER)
/* By sfb convolutions go to servers. */
MATRIX_ROW(run, lars_needs_whole_tensors, matrix_is_refused, .subject = &by_norms,
	   MATRIX_ON({"sync: ps", 2, 1}, {"sync: sfb", 2, 1}), .words = ":6:5: system 's' updates parts of tensors,")

/* ---- the same every time ---- */

MATRIX_ROW(run, every_all_reduce_repeats_bit_by_bit, matrix_repeats, .subject = &matrix_quick, .first_seed = 1,
	   MATRIX_ON({"schedule: wait-free", 4, 1}), .keys = {MATRIX_ALL_REDUCES})
#define METHODS                                                                                                        \
	{"sync: ps", 3, 1}, {"sync: sfb", 3, 1}, {"sync: adam", 3, 1}, {"sync: hybrid", 3, 1},                         \
	{                                                                                                              \
		"sync: ring", 3, 1                                                                                     \
	}
MATRIX_ROW(run, every_method_repeats_its_bits, matrix_repeats, .subject = &matrix_quick, .first_seed = 1,
	   MATRIX_ON(METHODS))
MATRIX_ROW(run, barrier_and_slices_change_nothing, matrix_has_same_bits, .subject = &matrix_quick, .first_seed = 1,
	   .iterations = 6, MATRIX_ON({"schedule: wait-free, sync: sfb", 2, 1}), .other.keys = "",
	   .keys = {", barrier: layer, priority: forward, pair: 1KiB, slice: 8KiB"})

/* ---- bytes ---- */

MATRIX_ROW(run, a_node_sends_the_bytes_of_the_plan, matrix_is_same_on_all, .subject = &matrix_quick, .first_seed = 1,
	   .iterations = 3,
	   MATRIX_ON({"sync: ps", 2, 1}, {"sync: sfb", 2, 1}, {"sync: adam", 2, 1}, {"sync: ring", 2, 1},
		     {"sync: ps, servers: 2", 2, 1}))

/* ---- learning ---- */

static void tells_classes(const struct matrix_run *run)
{
	const struct psd_worker_result *result = &matrix_run_it(run)->result;

	cr_assert_gt(result->test_labels, 0);
	cr_expect_gt((double)result->test_correct, 0.95 * (double)result->test_labels, "%s: only %llu of %llu",
		     run->what, (unsigned long long)result->test_correct, (unsigned long long)result->test_labels);
}

/* Each method with a seed of its own. */
#define ROW_LEARNS(method, seed)                                                                                       \
	MATRIX_ROW(run, every_method_learns_the_synthetic_classes_##method, tells_classes, .subject = &matrix_tested,  \
		   .first_seed = seed, MATRIX_ON({"sync: " #method, 2, 1}))
ROW_LEARNS(ps, 1)
ROW_LEARNS(sfb, 2)
ROW_LEARNS(adam, 3)
ROW_LEARNS(hybrid, 4)
ROW_LEARNS(ring, 5)
ROW_LEARNS(sacp, 6)

/* ---- starts ---- */

/* Every way to update goes by the tensor's own rate, at the border of a shard's part too: weights of a constant and of
 * a normal filler stay as they start, their biases move. */
static void check_frozen(const char *model, const char *system)
{
	struct training *training =
		training_make(model, system, 3, 1, 4, 7,
			      "data: {kind: synthetic, training_samples: 48}, iterations: 3, optimiser: "
			      "{momentum: 0.9, weight_decay: 0.1}, learning_rate: {base: 0.1}");
	const struct psd_graph *graph = &training->loaded.costed.graph;
	const float *constant, *drawn;
	double sum = 0, squares = 0;
	unsigned moved = 0;

	training_finish(training, system);
	constant = training_parameters(training, 0);
	drawn = constant + graph->tensors[0].elements + graph->tensors[1].elements;
	for (uint64_t e = 0; e < graph->tensors[0].elements; e++)
		cr_assert(constant[e] == 0.25f, "%s: element %llu is %g", system, (unsigned long long)e,
			  (double)constant[e]);
	for (uint64_t e = 0; e < graph->tensors[1].elements; e++)
		moved += constant[graph->tensors[0].elements + e] != 0.5f;
	for (uint64_t e = 0; e < graph->tensors[2].elements; e++) {
		sum += (double)drawn[e];
		squares += (double)drawn[e] * (double)drawn[e];
	}
	cr_expect_eq(moved, graph->tensors[1].elements, "%s: %u biases moved", system, moved);
	/* 2,000 values of deviation 0.1: their mean is within 5 of its own, 0.1 / sqrt(2000), their mean square
	 * within 5 of 0.01 sqrt(2 / 2000) */
	cr_expect_float_eq(sum / 2000, 0, 0.0112, "%s: mean %g", system, sum / 2000);
	cr_expect_float_eq(squares / 2000, 0.01, 0.0016, "%s: mean square %g", system, squares / 2000);
	training_free(training);
}

FOLDER_TEST(run, tensors_learn_at_their_own_rates, scratch_folder_make())
{
	static const char *const systems[] = {"sync: ps", "sync: ps, pair: 512B, slice: 1KiB", "sync: sfb",
					      "sync: ring"};
	static const char text[] =
		"input: 'data' input_shape { dim: [1, 30] }\n"
		"layer { name: 'a' type: 'InnerProduct' bottom: 'data' top: 'a' param { lr_mult: 0 } "
		"inner_product_param { num_output: 40 weight_filler { value: 0.25 } bias_filler { value: 0.5 } } }\n"
		"layer { name: 'b' type: 'InnerProduct' bottom: 'a' top: 'b' param { lr_mult: 0 } inner_product_param "
		"{ num_output: 50 weight_filler { type: 'gaussian' std: 0.1 } } }\n"
		"layer { name: 'loss' type: 'Softmax' bottom: 'b' }\n";
	const struct scratch_path path = scratch_folder_path(&folder, "net.prototxt");

	scratch_folder_write(&folder, "net.prototxt", text, strlen(text));
	for (size_t s = 0; s < sizeof(systems) / sizeof(systems[0]); s++)
		check_frozen(path.text, systems[s]);
}

/* Uniform draws fill their range; a network of ReLUs that keeps the size of its inputs starts near chance, ln 10 for 10
 * classes. */
Test(run, training_starts_near_chance)
{
	struct training *begun =
		matrix_train(&matrix_quick, &(struct matrix_layout){"sync: ring", 1, 1}, 1, MATRIX_LEARN_NOTHING);
	const struct psd_graph *graph = &begun->loaded.costed.graph;
	const float *values = training_parameters(begun, 0);

	for (unsigned t = 0; t < graph->n_tensors; t++) {
		const struct psd_tensor *weight = &graph->tensors[graph->layers[graph->tensors[t].layer].first_tensor];
		const bool is_weight = weight == &graph->tensors[t];
		const double inputs = (double)weight->elements / weight->dims[0];
		const double bound = sqrt((is_weight ? 3 : 1) / inputs);
		double largest = 0;

		for (uint64_t e = 0; e < graph->tensors[t].elements; e++)
			largest = fmax(largest, fabs((double)values[e]));
		cr_expect_leq(largest, 1.00001 * bound, "%s", graph->tensors[t].name);
		cr_expect_gt(largest, (graph->tensors[t].elements < 32 ? 0.5 : 0.85) * bound, "%s",
			     graph->tensors[t].name);
		values += graph->tensors[t].elements;
	}
	cr_expect_lt(fabs(begun->result.last_loss / log(10) - 1), 0.1, "%g", begun->result.last_loss);
	training_free(begun);
}

/* ---- AlexNet ---- */

/* Caffe's bvlc_alexnet/solver.prototxt, whose rate of 0.01 is for 256 samples: 0.0001 is a third of that for 8, because
 * one turned decision counts for more among so few. */
static struct matrix_subject make_alexnet(const char *graph)
{
	return (struct matrix_subject){
		.graph = graph,
		.samples = 8,
		.seed = 1,
		.iterations = 20,
		.train = ", data: {kind: synthetic, test_samples: 8}",
		.learn = ", optimiser: {momentum: 0.9, weight_decay: 0.0005}, "
			 "learning_rate: {policy: fixed, base: 0.0001}",
	};
}

static void replace(char *text, const char *old, const char *new)
{
	char *at = strstr(text, old);

	cr_assert(at, "'%s' is not in the model", old);
	memmove(at + strlen(new), at + strlen(old), strlen(at + strlen(old)) + 1);
	memcpy(at, new, strlen(new));
}

/* The same layers on images of 67 x 67 pixels and for 10 classes: 21 million of the 61 million parameters, a fifteenth
 * of the work. */
static struct scratch_path write_small_alexnet(const struct scratch_folder *folder)
{
	const struct scratch_path path = scratch_folder_path(folder, "alexnet.yaml");
	char text[4096] = "";
	FILE *in = fopen("scenarios/models/alexnet.yaml", "r");

	cr_assert(in && fread(text, 1, sizeof(text) - 1, in) > 0);
	fclose(in);
	replace(text, "height: 227, width: 227", "height: 67, width: 67");
	replace(text, "outputs: 1000", "outputs: 10");
	scratch_folder_write(folder, "alexnet.yaml", text, strlen(text));
	return path;
}

/* Each method with a seed of its own. */
static void check_small_alexnet(const struct matrix_layout layouts[], unsigned seed)
{
	const struct scratch_folder folder = scratch_folder_make();
	const struct scratch_path path = write_small_alexnet(&folder);
	const struct matrix_subject subject = make_alexnet(path.text);
	const struct matrix_row row = {
		.subject = &subject, .layouts = layouts, .first_seed = seed, .n_seeds = 1, AS_ONE_WORKER};

	matrix_check(&row, matrix_is_near);
	scratch_folder_remove(&folder);
}

#define SMALL_ALEXNET(method, seed, ...)                                                                               \
	Test(run, every_method_trains_a_small_alexnet_as_one_worker_##method)                                          \
	{                                                                                                              \
		check_small_alexnet((const struct matrix_layout[]){__VA_ARGS__, {0}}, seed);                           \
	}
SMALL_ALEXNET(ps, 1, {"sync: ps", 2, 1})
SMALL_ALEXNET(ps_of_four, 1, {"sync: ps", 4, 1})
SMALL_ALEXNET(sfb, 2, {"sync: sfb", 2, 1})
SMALL_ALEXNET(adam, 3, {"sync: adam", 2, 1})
SMALL_ALEXNET(hybrid, 4, {"sync: hybrid", 2, 1})
SMALL_ALEXNET(hybrid_of_four, 4, {"sync: hybrid", 4, 1})
SMALL_ALEXNET(ring, 5, {"sync: ring", 2, 1})

/* Some five minutes, so only when asked for: PSD_FULL_TESTS=1 build/psd-run-tests --filter
 * 'run/every_method_trains_alexnet*' */
Test(run, every_method_trains_alexnet_as_one_worker)
{
	const struct matrix_subject subject = make_alexnet("alexnet.yaml");
	const struct matrix_row row = {
		.subject = &subject,
		MATRIX_ON({"schedule: wait-free", 1, 1}, {"schedule: wait-free", 2, 1}, {"schedule: wait-free", 4, 1}),
		.keys = {", sync: ps", ", sync: sfb", ", sync: adam", ", sync: hybrid", ", sync: ring"},
		AS_ONE_WORKER};

	if (!getenv("PSD_FULL_TESTS"))
		cr_skip_test("the whole AlexNet takes minutes: PSD_FULL_TESTS=1 runs it");
	matrix_check(&row, matrix_is_near);
}

/* ---- sequences ---- */

static double *last_ratio; /* in memory that processes share */

static void keep_ratio(void *context, const struct psd_progress *progress)
{
	(void)context;
	*last_ratio = progress->correct_ratio;
}

/* A network that knows the successor of each of 8 tokens is right unless noise comes, and with noise one time in 8. A
 * sample has 16 labels, which all count. */
FOLDER_TEST(run, a_sequence_is_learnt_at_each_of_its_positions, scratch_folder_make())
{
	static const char text[] = "name: m\ninput: {channels: 1, height: 16}\nlayers:\n"
				   "  - {name: e, kind: embedding, vocabulary: 8, outputs: 8}\n"
				   "  - {name: c, kind: conv, outputs: 8, kernel: 1}\n"
				   "  - {name: l, kind: softmax-loss}\n";
	const double right_ratio = 0.75 + 0.25 / 8, variance = right_ratio * (1 - right_ratio);
	struct training *training;

	scratch_folder_write(&folder, "m.yaml", text, strlen(text));
	last_ratio = mmap(NULL, sizeof(*last_ratio), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq((void *)last_ratio, MAP_FAILED);
	training = training_make(scratch_folder_path(&folder, "m.yaml").text, "sync: ps", 2, 1, 16, 1,
				 "data: {noise: 0.25}, iterations: 100, optimiser: {momentum: 0.9}, "
				 "learning_rate: {policy: fixed, base: 0.5}");
	training->options.worker.is_tested = true;
	training->options.worker.progress = keep_ratio;
	training_finish(training, "a sequence");
	cr_expect_eq(training->result.test_labels, 512 * 16);
	/* five standard errors; of the last iteration 2 * 16 samples */
	cr_expect_float_eq((double)training->result.test_correct / (512 * 16), right_ratio,
			   5 * sqrt(variance / (512 * 16)), "%llu", (unsigned long long)training->result.test_correct);
	cr_expect_float_eq(*last_ratio, right_ratio, 5 * sqrt(variance / (32 * 16)), "%g", *last_ratio);
	munmap(last_ratio, sizeof(*last_ratio));
	training_free(training);
}

/* ---- failures ---- */

Test(run, a_killed_worker_is_named)
{
	struct training *training = matrix_make(&matrix_quick, &(struct matrix_layout){"sync: ps", 3, 1}, 1000, "");

	training->victim = 0;
	training_run(training);
	cr_assert_eq(training->status, PSD_ELOST);
	cr_assert(strstr(training->err.text, "worker 0 at 127.0.0.1:"), "%s", training->err.text);
	cr_assert(strstr(training->err.text, "was killed by signal 9, as the kernel does when memory runs out"), "%s",
		  training->err.text);
	cr_assert(strstr(training->err.text, " in iteration "), "%s", training->err.text);
	cr_assert(strstr(training->err.text, " waits for "), "%s", training->err.text);
	training_free(training);
}

static void crash(void *context, const struct psd_progress *progress)
{
	(void)context;
	if (progress->iteration == 1)
		raise(SIGABRT);
}

/* A library that lacks memory crashes again at once: nothing is lost that another attempt would find. */
Test(run, a_crash_below_a_limit_of_memory_is_no_lost_process)
{
	struct training *training = matrix_make(&matrix_quick, &(struct matrix_layout){"sync: ps", 2, 1}, 1000, "");
	struct rlimit limit;

	signal(SIGABRT, SIG_DFL);
	cr_assert_eq(getrlimit(RLIMIT_AS, &limit), 0);
	limit.rlim_cur = (rlim_t)1 << 60; /* more than a sanitiser's */
	cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
	training->options.worker.progress = crash;
	training_run(training);
	cr_assert_eq(training->status, PSD_ENOMEM, "%s", training->err.text);
	cr_assert(strstr(training->err.text, "was killed by signal 6, as happens when `ulimit -v`"), "%s",
		  training->err.text);
	training_free(training);
}

/* Then the kernel forgets each process at once, and how it ended with it: its record tells. */
Test(run, an_ignored_SIGCHLD_is_no_endless_wait, .timeout = 60)
{
	struct training *training = matrix_make(&matrix_quick, &(struct matrix_layout){"sync: ps", 2, 1}, 2, "");

	signal(SIGCHLD, SIG_IGN);
	training_finish(training, "sync: ps");
	signal(SIGCHLD, SIG_DFL);
	training_free(training);
}
