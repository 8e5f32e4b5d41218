/* Whole runs in processes on loopback: every method trains as one worker does, repeats exactly, learns, moves the bytes
 * that the plan counts, and says who is missing when somebody is. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/real/training.h"
#include "tests/scratch_folder.h"

/* Of a tensor's norm. Sums over samples round differently when the samples are dealt out, and once in some 10^7
 * decisions (is this unit below 0, which of these nine is the largest) that turns one around: then a bias moves by 1e-6
 * to 4e-5 of its norm, else by 1e-8. */
#define SAME_TOLERANCE_RATIO 1e-4
/* Of the way that a tensor went from its start: so that equal starts alone do not pass. */
#define SAME_WAY_RATIO 0.1
#define LEARNT_RATIO   0.95

/* A training job that is run by one worker and by several, at the same global batch. */
struct job {
	const char *name;
	const char *graph;
	const char *train; /* but the learning rate */
	double base;
	uint32_t global_batch;
	unsigned workers_per_node;
};

/* Caffe's cifar10_quick_solver.prototxt, with 32 samples for its 100. */
static const struct job cifar10 = {"CIFAR-10 quick",
				   "cifar10-quick.yaml",
				   "iterations: 20, optimiser: {momentum: 0.9, weight_decay: 0.004}",
				   0.001,
				   32,
				   1};

/* Caffe's bvlc_alexnet/solver.prototxt, whose rate of 0.01 is for 256 samples: 0.0001 is a third of that for 8, because
 * what one turned decision does counts for more among so few. */
#define ALEXNET_TRAIN                                                                                                  \
	"iterations: 20, optimiser: {momentum: 0.9, weight_decay: 0.0005}, data: {kind: synthetic, test_samples: 8}"
static const struct job alexnet = {"AlexNet", "alexnet.yaml", ALEXNET_TRAIN, 0.0001, 8, 1};

static struct training *start(const struct job *job, const char *system, unsigned workers, uint64_t seed, double base)
{
	char train[256];

	snprintf(train, sizeof(train), "%s, learning_rate: {policy: fixed, base: %.9f}", job->train, base);
	return training_make(job->graph, system, workers, job->workers_per_node, job->global_batch / workers, seed,
			     train);
}

static struct training *train(const struct job *job, const char *system, unsigned workers, uint64_t seed)
{
	return training_finish(start(job, system, workers, seed, job->base), system);
}

/* ---- the same as one worker ---- */

/* One seed's run by one worker, and where it began. */
struct alone {
	const struct job *job;
	uint64_t seed;
	struct training *begun, *trained;
};

static struct alone train_alone(const struct job *job, uint64_t seed)
{
	static const char system[] = "schedule: sequential, sync: ring";
	struct alone alone = {job, seed, start(job, system, 1, seed, 1e-9), NULL}; /* a rate that moves nothing */

	alone.begun->options.worker.n_iterations = 1;
	training_finish(alone.begun, system);
	alone.trained = train(job, system, 1, seed);
	return alone;
}

static void release(struct alone *alone)
{
	training_free(alone->begun);
	training_free(alone->trained);
}

static void check_same_tensors(const struct training *together, const struct alone *alone, const char *what)
{
	const struct psd_graph *graph = &together->loaded.matter.graph;
	const float *left = training_parameters(together, 0), *right = training_parameters(alone->trained, 0);
	const float *begin = training_parameters(alone->begun, 0);
	double worst_ratio = 0;

	for (unsigned t = 0; t < graph->n_tensors; t++) {
		const uint64_t elements = graph->tensors[t].elements;
		const double difference = training_values_distance(left, right, elements);
		const double way = training_values_distance(begin, right, elements);
		const double norm = training_values_distance(right, NULL, elements);

		cr_expect_leq(difference, SAME_TOLERANCE_RATIO * norm, "%s: %s differs by %g", what,
			      graph->tensors[t].name, difference / norm);
		cr_expect_leq(difference, SAME_WAY_RATIO * way, "%s: %s differs by %g of the way it went", what,
			      graph->tensors[t].name, difference / way);
		worst_ratio = fmax(worst_ratio, difference / norm);
		left += elements, right += elements, begin += elements;
	}
	cr_log_info("%s: no tensor differs by more than %.1e\n", what, worst_ratio);
}

static void check_together(const struct alone *alone, const char *system, unsigned workers)
{
	struct training *together = train(alone->job, system, workers, alone->seed);
	char what[160];

	snprintf(what, sizeof(what), "%s, seed %llu, %s on %u workers", alone->job->name,
		 (unsigned long long)alone->seed, system, workers);
	check_same_tensors(together, alone, what);
	for (unsigned w = 1; w < workers; w++)
		cr_expect(training_is_same(together, w, together, 0), "%s: worker %u differs from worker 0", what, w);
	training_free(together);
}

/* Two seeds of CIFAR-10 quick, on 1, 2 and 4 workers. */
static void check_method(const char *system, uint64_t first_seed)
{
	for (uint64_t seed = first_seed; seed < first_seed + 2; seed++) {
		struct alone alone = train_alone(&cifar10, seed);

		for (unsigned workers = 1; workers <= 4; workers *= 2)
			check_together(&alone, system, workers);
		release(&alone);
	}
}

Test(run, ps_trains_as_one_worker)
{
	check_method("schedule: wait-free, sync: ps", 1);
}

Test(run, sfb_trains_as_one_worker)
{
	check_method("schedule: wait-free, sync: sfb", 3);
}

Test(run, adam_trains_as_one_worker)
{
	check_method("schedule: wait-free, sync: adam", 5);
}

Test(run, hybrid_trains_as_one_worker)
{
	check_method("schedule: wait-free, sync: hybrid", 7);
}

Test(run, ring_trains_as_one_worker)
{
	check_method("schedule: wait-free, sync: ring", 9);
}

/* Items of up to three tensors that end within a layer, and one of all ten: more than a message has pieces. */
Test(run, gathered_tensors_train_as_one_worker)
{
	check_method("schedule: wait-free, sync: ring, fuse: 80kB, barrier: layer, priority: forward", 9);
	check_method("schedule: sequential, sync: ring, fuse: 1MB", 11);
	check_method("schedule: wait-free, sync: double-tree, fuse: 1MB", 13); /* two chunks in each tree of 4 */
}

/* Workers on several nodes, and of each of them. */
static void check_all_reduce(const char *name, unsigned workers, unsigned workers_per_node)
{
	struct job job = cifar10;
	struct alone alone;
	char system[64];

	job.global_batch = 8 * workers;
	job.train = "iterations: 6, optimiser: {momentum: 0.9, weight_decay: 0.004}";
	alone = train_alone(&job, workers);
	job.workers_per_node = workers_per_node;
	snprintf(system, sizeof(system), "schedule: wait-free, sync: %s", name);
	check_together(&alone, system, workers);
	release(&alone);
}

Test(run, every_all_reduce_trains_as_one_worker)
{
	for (unsigned p = 0; p < PSD_N_ALL_REDUCES; p++) {
		check_all_reduce(psd_all_reduces[p]->name, 2, 1);
		check_all_reduce(psd_all_reduces[p]->name, 3, 1);
		check_all_reduce(psd_all_reduces[p]->name, 5, 1);
		check_all_reduce(psd_all_reduces[p]->name, 6, 1);
		check_all_reduce(psd_all_reduces[p]->name, 4, 2);
		check_all_reduce(psd_all_reduces[p]->name, 4, 4);
	}
	check_all_reduce("auto", 4, 1);
}

/* A gradient is whole when the last of the layers that share it is done; the shared matrix goes to servers. */
Test(run, shared_parameters_train_as_one_worker)
{
	static const char *const systems[] = {"sync: ring", "sync: sfb", "sync: ps, schedule: sequential"};
	struct job job = cifar10;
	struct alone alone;

	job.name = "shared";
	job.graph = "../../tests/data/shared.prototxt";
	alone = train_alone(&job, 1);
	for (unsigned s = 0; s < 3; s++)
		for (unsigned workers = 1; workers <= 4; workers *= 2)
			check_together(&alone, systems[s], workers);
	release(&alone);
}

/* Norms are those of the sum, whoever made its parts; tensors that travel together have each its own. */
Test(run, lars_trains_as_one_worker)
{
	static const char *const systems[] = {"sync: ring", "sync: recursive-doubling, fuse: 1MB"};
	struct job job = cifar10;
	struct alone alone;

	job.train = "iterations: 10, optimiser: {kind: lars, trust: 0.01, momentum: 0.9, weight_decay: 0.004}";
	job.base = 0.1;
	alone = train_alone(&job, 1);
	for (unsigned s = 0; s < 2; s++)
		for (unsigned workers = 1; workers <= 4; workers *= 2)
			check_together(&alone, systems[s], workers);
	release(&alone);
}

static void check_refused(const char *system)
{
	struct training *training = training_make("cifar10-quick.yaml", system, 2, 1, 4, 1,
						  "iterations: 2, optimiser: {kind: lars}, learning_rate: {base: 0.1}");

	training_run(training);
	cr_expect_eq(training->status, PSD_EINVAL, "%s", system);
	cr_expect(strstr(training->err.text, ":6:5: system 's' updates parts of tensors at servers"), "%s",
		  training->err.text);
	training_free(training);
}

Test(run, lars_needs_whole_tensors)
{
	check_refused("sync: ps");
	check_refused("sync: sfb"); /* convolutions go to servers */
}

Test(run, every_all_reduce_repeats_bit_by_bit)
{
	for (unsigned p = 0; p < PSD_N_ALL_REDUCES; p++) {
		struct training *runs[2];
		char system[64];

		snprintf(system, sizeof(system), "sync: %s", psd_all_reduces[p]->name);
		for (unsigned r = 0; r < 2; r++)
			runs[r] = train(&cifar10, system, 4, 1);
		cr_expect(training_is_same(runs[0], 0, runs[1], 0), "%s differs from run to run", system);
		training_free(runs[0]);
		training_free(runs[1]);
	}
}

Test(run, separate_servers_train_as_one_worker)
{
	check_method("schedule: sequential, sync: ps, servers: 1", 11);
}

Test(run, barrier_and_slices_change_nothing)
{
	struct training *plain = train(&cifar10, "schedule: wait-free, sync: sfb", 2, 1);
	struct training *cut = train(
		&cifar10, "schedule: wait-free, sync: sfb, barrier: layer, priority: forward, pair: 1KiB, slice: 8KiB",
		2, 1);

	cr_assert(training_is_same(plain, 0, cut, 0));
	training_free(plain);
	training_free(cut);
}

/* Every way to update goes by the tensor's own rate, at the border of a shard's part too: weights of a constant and of
 * a normal filler stay as they start, their biases move. */
static void check_frozen(const char *model, const char *system)
{
	struct training *training =
		training_make(model, system, 3, 1, 4, 7,
			      "data: {kind: synthetic, training_samples: 48}, iterations: 3, optimiser: "
			      "{momentum: 0.9, weight_decay: 0.1}, learning_rate: {base: 0.1}");
	const struct psd_graph *graph = &training->loaded.matter.graph;
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

Test(run, tensors_learn_at_their_own_rates)
{
	static const char *const systems[] = {"sync: ps", "sync: ps, pair: 512B, slice: 1KiB", "sync: sfb",
					      "sync: ring"};
	static const char text[] = "input: 'data' input_shape { dim: [1, 30] }\n"
				   "layer { name: 'a' type: 'InnerProduct' bottom: 'data' top: 'a' param { lr_mult: 0 "
				   "} inner_product_param { "
				   "num_output: 40 weight_filler { value: 0.25 } bias_filler { value: 0.5 } } }\n"
				   "layer { name: 'b' type: 'InnerProduct' bottom: 'a' top: 'b' param { lr_mult: 0 } "
				   "inner_product_param { "
				   "num_output: 50 weight_filler { type: 'gaussian' std: 0.1 } } }\n"
				   "layer { name: 'loss' type: 'Softmax' bottom: 'b' }\n";
	struct scratch_folder folder = scratch_folder_make();
	const struct scratch_path path = scratch_folder_path(&folder, "net.prototxt");

	scratch_folder_write(&folder, "net.prototxt", text, strlen(text));
	for (size_t s = 0; s < sizeof(systems) / sizeof(systems[0]); s++)
		check_frozen(path.text, systems[s]);
	scratch_folder_remove(&folder);
}

/* Uniform draws fill their range; a network of ReLUs that keeps the size of its inputs starts near chance, ln 10 for 10
 * classes. */
Test(run, training_starts_near_chance)
{
	struct alone alone = train_alone(&cifar10, 1);
	const struct psd_graph *graph = &alone.begun->loaded.matter.graph;
	const float *values = training_parameters(alone.begun, 0);

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
	cr_expect_lt(fabs(alone.begun->result.last_loss / log(10) - 1), 0.1, "%g", alone.begun->result.last_loss);
	release(&alone);
}

/* ---- AlexNet ---- */

static const char *const methods[] = {"sync: ps", "sync: sfb", "sync: adam", "sync: hybrid", "sync: ring"};

enum { N_METHODS = sizeof(methods) / sizeof(methods[0]) };

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

/* All methods with two workers and two of them with four, each method with a seed of its own. */
Test(run, every_method_trains_a_small_alexnet_as_one_worker)
{
	const struct scratch_folder folder = scratch_folder_make();
	const struct scratch_path path = write_small_alexnet(&folder);
	struct job job = alexnet;

	job.name = "small AlexNet";
	job.graph = path.text;
	for (unsigned m = 0; m < N_METHODS; m++) {
		struct alone alone = train_alone(&job, m + 1);

		check_together(&alone, methods[m], 2);
		if (strcmp(methods[m], "sync: ps") == 0 || strcmp(methods[m], "sync: hybrid") == 0)
			check_together(&alone, methods[m], 4);
		release(&alone);
	}
	scratch_folder_remove(&folder);
}

/* Some five minutes, so only when asked for: PSD_FULL_TESTS=1 build/psd-run-tests --filter
 * 'run/every_method_trains_alexnet*' */
Test(run, every_method_trains_alexnet_as_one_worker)
{
	struct alone alone;

	if (!getenv("PSD_FULL_TESTS")) {
		fprintf(stderr,
			"skipped: the whole AlexNet takes minutes, PSD_FULL_TESTS=1 runs it\n"); /* Criterion itself is
												    silent */
		cr_skip_test("PSD_FULL_TESTS is not set");
	}
	alone = train_alone(&alexnet, 1);
	for (unsigned m = 0; m < N_METHODS; m++)
		for (unsigned workers = 1; workers <= 4; workers *= 2)
			check_together(&alone, methods[m], workers);
	release(&alone);
}

/* ---- the same every time ---- */

Test(run, every_method_repeats_its_bits)
{
	for (unsigned m = 0; m < N_METHODS; m++) {
		struct training *first = train(&cifar10, methods[m], 3, 1), *second = train(&cifar10, methods[m], 3, 1);

		cr_expect(training_is_same(first, 0, second, 0), "%s", methods[m]);
		training_free(first);
		training_free(second);
	}
}

/* ---- bytes ---- */

Test(run, a_node_sends_what_the_plan_counts)
{
	static const char *const systems[] = {"sync: ps", "sync: sfb", "sync: adam", "sync: ring",
					      "sync: ps, servers: 2"};

	for (unsigned s = 0; s < sizeof(systems) / sizeof(systems[0]); s++) {
		struct training *trained = train(&cifar10, systems[s], 2, 1);
		uint64_t sent_bytes = 0, received_bytes = 0;

		for (unsigned node = 0; node < psd_layout_nodes(&trained->made.plan.layout); node++) {
			const struct psd_traffic traffic = psd_program_traffic(&trained->made.program, node);

			sent_bytes = traffic.sent_bytes > sent_bytes ? traffic.sent_bytes : sent_bytes;
			received_bytes =
				traffic.received_bytes > received_bytes ? traffic.received_bytes : received_bytes;
		}
		cr_expect_eq(trained->result.sent_bytes_per_node, sent_bytes, "%s", systems[s]);
		cr_expect_eq(trained->result.received_bytes_per_node, received_bytes, "%s", systems[s]);
		training_free(trained);
	}
}

/* ---- learning ---- */

Test(run, every_method_learns_the_synthetic_classes)
{
	static const char *const systems[] = {"sync: ps",     "sync: sfb",  "sync: adam",
					      "sync: hybrid", "sync: ring", "sync: sacp"};

	for (unsigned s = 0; s < sizeof(systems) / sizeof(systems[0]); s++) {
		struct training *training = training_make(
			"cifar10-quick.yaml", systems[s], 2, 1, 16, s + 1,
			"iterations: 100, optimiser: {momentum: 0.9}, learning_rate: {policy: fixed, base: 0.003}");

		training->options.worker.is_tested = true;
		training_finish(training, systems[s]);
		cr_assert_gt(training->result.test_labels, 0);
		cr_expect_gt((double)training->result.test_correct, LEARNT_RATIO * (double)training->result.test_labels,
			     "%s: only %llu of %llu", systems[s], (unsigned long long)training->result.test_correct,
			     (unsigned long long)training->result.test_labels);
		training_free(training);
	}
}

static double *last_ratio; /* in memory that processes share */

static void keep_ratio(void *context, const struct psd_progress *progress)
{
	(void)context;
	*last_ratio = progress->correct_ratio;
}

/* Who knows the successor of each of 8 tokens is right unless noise comes, and of that one time in 8. A sample has 16
 * labels, which all count. */
Test(run, a_sequence_is_learnt_at_each_of_its_places)
{
	static const char text[] = "name: m\ninput: {channels: 1, height: 16}\nlayers:\n"
				   "  - {name: e, kind: embedding, vocabulary: 8, outputs: 8}\n"
				   "  - {name: c, kind: conv, outputs: 8, kernel: 1}\n"
				   "  - {name: l, kind: softmax-loss}\n";
	const double right_ratio = 0.75 + 0.25 / 8, variance = right_ratio * (1 - right_ratio);
	const struct scratch_folder folder = scratch_folder_make();
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
	scratch_folder_remove(&folder);
}

/* ---- failures ---- */

Test(run, a_killed_worker_is_named)
{
	struct training *training = start(&cifar10, "sync: ps", 3, 1, cifar10.base);

	training->victim = 0;
	training->options.worker.n_iterations = 1000;
	training_run(training);
	cr_assert_eq(training->status, PSD_ELOST);
	cr_assert(strstr(training->err.text, "worker 0 at 127.0.0.1:"), "%s", training->err.text);
	cr_assert(strstr(training->err.text, "was killed by signal 9, as the kernel does it where memory runs out"),
		  "%s", training->err.text);
	cr_assert(strstr(training->err.text, " in iteration "), "%s", training->err.text);
	cr_assert(strstr(training->err.text, " waits for "), "%s", training->err.text);
	training_free(training);
}

/* Then the kernel forgets each process at once, and how it ended with it: its record tells. */
Test(run, an_ignored_SIGCHLD_is_no_endless_wait, .timeout = 60)
{
	struct training *training = start(&cifar10, "sync: ps", 2, 1, cifar10.base);

	training->options.worker.n_iterations = 2;
	signal(SIGCHLD, SIG_IGN);
	training_finish(training, "sync: ps");
	signal(SIGCHLD, SIG_DFL);
	training_free(training);
}
