/* Whole runs in processes on loopback: every method trains as one worker does, repeats exactly, learns, moves the bytes that the plan counts,
 * and says who is missing when somebody is. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "real/launch.h"

#define SAME_TOLERANCE_RATIO 1e-4
#define LEARNT_RATIO	     0.95

/* 20 iterations take some 10^7 decisions (is this unit below 0, which of these nine is the largest), so that now and then a rounding error turns
 * one of them around, alike with every method, and a bias moves by up to 1e-3 of its norm. With this seed none turns: 1e-6 is left. */
#define SEED "4"

enum { GLOBAL_BATCH = 32, N_ITERATIONS = 20, MOST_HOSTS = 5 };

/* What a run leaves: every worker's parameters, in memory that the processes share. */
struct trained {
	struct psd_scenario scenario;
	struct psd_subject_matter matter;
	struct psd_case made;
	float *parameters; /* host after host, tensor after tensor */
	struct psd_worker_result result;
	enum psd_status status;
	struct psd_error err;
	unsigned victim; /* kills itself in its first iteration; MOST_HOSTS: none */
	uint32_t n_iterations;
};

static float *parameters_of(const struct trained *trained, unsigned host)
{
	return trained->parameters + host * trained->matter.graph.parameters;
}

static void keep(void *context, unsigned self, const struct psd_memory *memory)
{
	const struct trained *trained = context;
	float *to = parameters_of(trained, self);

	for (unsigned t = 0; t < trained->matter.graph.n_tensors; t++) {
		memcpy(to, memory->parameters[t], trained->matter.graph.tensors[t].elements * sizeof(*to));
		to += trained->matter.graph.tensors[t].elements;
	}
}

static void kill_victim(void *context, const struct psd_progress *progress)
{
	const struct trained *trained = context;

	if (trained->victim == 0 && progress->iteration == 1)
		raise(SIGKILL);
}

/* system: the keys of one system but its name. */
static struct trained *start(const char *graph, const char *system, unsigned workers, uint32_t batch, const char *train)
{
	struct trained *trained = calloc(1, sizeof(*trained));
	struct psd_error err = {.text = ""};
	char text[2048];
	const int length = snprintf(text, sizeof(text),
				    "title: t\nmodel: {graph: models/%s, batch_per_worker: %u}\ncompute: {device: cpu}\n"
				    "cluster: {nodes: %u, workers_per_node: 1, network: {bandwidth: 1Gbps, latency: 50us}}\n"
				    "systems:\n  - {name: s, %s}\nseed: " SEED "\ntrain: {%s}\n",
				    graph, batch, workers, system, train);

	cr_assert(trained);
	trained->victim = MOST_HOSTS;
	trained->n_iterations = N_ITERATIONS;
	cr_assert_eq(psd_scenario_parse(&trained->scenario, "scenarios/test.yaml", text, (size_t)length, NULL, &err), PSD_OK,
		     "%s", err.text);
	cr_assert_eq(psd_subject_matter_load(&trained->matter, &trained->scenario, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_case_make(&trained->made, &trained->matter, &trained->scenario.systems[0],
				   psd_scenario_point(&trained->scenario, 0), &err),
		     PSD_OK, "%s", err.text);
	trained->parameters = mmap(NULL, MOST_HOSTS * trained->matter.graph.parameters * sizeof(float), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq((void *)trained->parameters, MAP_FAILED);
	return trained;
}

static void launch(struct trained *trained, bool is_tested)
{
	const struct psd_launch_options options = {
		.made = &trained->made,
		.train = &trained->scenario.train,
		.n_iterations = trained->n_iterations,
		.connect_sec = 60,
		.stall_sec = 60,
		.is_tested = is_tested,
		.progress = kill_victim,
		.finished = keep,
		.context = trained,
	};

	trained->status = psd_launch(&options, &trained->result, &trained->err);
}

static void release(struct trained *trained)
{
	munmap(trained->parameters, MOST_HOSTS * trained->matter.graph.parameters * sizeof(float));
	psd_case_release(&trained->made);
	psd_subject_matter_release(&trained->matter);
	psd_scenario_release(&trained->scenario);
	free(trained);
}

#define SLOW_TRAIN                                                                                                               \
	"iterations: 20, optimiser: {momentum: 0.9, weight_decay: 0.0005}, learning_rate: {policy: step, base: 0.001, gamma: "   \
	"0.5, step: 10}"

static struct trained *train(const char *system, unsigned workers)
{
	struct trained *trained = start("cifar10-quick.yaml", system, workers, GLOBAL_BATCH / workers, SLOW_TRAIN);

	launch(trained, false);
	cr_assert_eq(trained->status, PSD_OK, "%s on %u workers: %s", system, workers, trained->err.text);
	return trained;
}

static double distance(const float *left, const float *right, uint64_t elements)
{
	double difference = 0, norm = 0;

	for (uint64_t e = 0; e < elements; e++) {
		difference += pow((double)left[e] - (double)right[e], 2);
		norm += pow((double)right[e], 2);
	}
	return sqrt(difference / norm);
}

static void check_same_tensors(const struct trained *left, const struct trained *right, const char *what)
{
	const struct psd_graph *graph = &left->matter.graph;
	uint64_t first = 0;

	for (unsigned t = 0; t < graph->n_tensors; t++) {
		const double ratio = distance(left->parameters + first, right->parameters + first, graph->tensors[t].elements);

		cr_expect_leq(ratio, SAME_TOLERANCE_RATIO, "%s: %s differs by %g", what, graph->tensors[t].name, ratio);
		first += graph->tensors[t].elements;
	}
}

static bool are_bits_equal(const float *left, const float *right, uint64_t elements)
{
	return memcmp(left, right, elements * sizeof(*left)) == 0;
}

/* ---- the same as one worker ---- */

static void check_method(const char *system)
{
	struct trained *alone = train("schedule: sequential, sync: ps", 1);

	for (unsigned workers = 1; workers <= 4; workers *= 2) {
		struct trained *together = train(system, workers);
		char what[128];

		snprintf(what, sizeof(what), "%s on %u workers", system, workers);
		check_same_tensors(together, alone, what);
		for (unsigned w = 1; w < workers; w++)
			cr_expect(are_bits_equal(parameters_of(together, w), together->parameters,
						 together->matter.graph.parameters),
				  "%s: worker %u differs from worker 0", what, w);
		release(together);
	}
	release(alone);
}

Test(run, ps_trains_as_one_worker)
{
	check_method("schedule: wait-free, sync: ps");
}

Test(run, sfb_trains_as_one_worker)
{
	check_method("schedule: wait-free, sync: sfb");
}

Test(run, adam_trains_as_one_worker)
{
	check_method("schedule: wait-free, sync: adam");
}

Test(run, hybrid_trains_as_one_worker)
{
	check_method("schedule: wait-free, sync: hybrid");
}

Test(run, ring_trains_as_one_worker)
{
	check_method("schedule: wait-free, sync: ring");
}

Test(run, separate_servers_train_as_one_worker)
{
	check_method("schedule: sequential, sync: ps, servers: 1");
}

Test(run, barrier_and_slices_change_nothing)
{
	struct trained *plain = train("schedule: wait-free, sync: sfb", 2);
	struct trained *cut =
		train("schedule: wait-free, sync: sfb, barrier: layer, priority: forward, pair: 1KiB, slice: 8KiB", 2);

	cr_assert(are_bits_equal(plain->parameters, cut->parameters, plain->matter.graph.parameters));
	release(plain);
	release(cut);
}

/* ---- the same every time ---- */

Test(run, every_method_repeats_its_bits)
{
	static const char *const systems[] = {"sync: ps", "sync: sfb", "sync: adam", "sync: hybrid", "sync: ring"};

	for (unsigned s = 0; s < sizeof(systems) / sizeof(systems[0]); s++) {
		struct trained *first = train(systems[s], 3), *second = train(systems[s], 3);

		cr_expect(are_bits_equal(first->parameters, second->parameters, first->matter.graph.parameters), "%s",
			  systems[s]);
		release(first);
		release(second);
	}
}

/* ---- bytes ---- */

Test(run, a_node_sends_what_the_plan_counts)
{
	static const char *const systems[] = {"sync: ps", "sync: sfb", "sync: adam", "sync: ring", "sync: ps, servers: 2"};

	for (unsigned s = 0; s < sizeof(systems) / sizeof(systems[0]); s++) {
		struct trained *trained = train(systems[s], 2);
		uint64_t sent_bytes = 0, received_bytes = 0;

		for (unsigned node = 0; node < psd_layout_nodes(&trained->made.plan.layout); node++) {
			const struct psd_traffic traffic = psd_program_traffic(&trained->made.program, node);

			sent_bytes = traffic.sent_bytes > sent_bytes ? traffic.sent_bytes : sent_bytes;
			received_bytes = traffic.received_bytes > received_bytes ? traffic.received_bytes : received_bytes;
		}
		cr_expect_eq(trained->result.sent_bytes_per_node, sent_bytes, "%s", systems[s]);
		cr_expect_eq(trained->result.received_bytes_per_node, received_bytes, "%s", systems[s]);
		release(trained);
	}
}

/* ---- learning ---- */

static void check_learns(const char *system)
{
	struct trained *trained =
		start("cifar10-quick.yaml", system, 2, 32,
		      "iterations: 120, optimiser: {momentum: 0.9}, learning_rate: {policy: fixed, base: 0.001}");

	trained->n_iterations = 120;
	launch(trained, true);
	cr_assert_eq(trained->status, PSD_OK, "%s", trained->err.text);
	cr_assert_gt(trained->result.test_samples, 0);
	cr_assert_gt((double)trained->result.test_correct, LEARNT_RATIO * (double)trained->result.test_samples,
		     "%s: only %llu of %llu", system, (unsigned long long)trained->result.test_correct,
		     (unsigned long long)trained->result.test_samples);
	release(trained);
}

Test(run, synthetic_classes_are_learnt)
{
	check_learns("sync: hybrid");
}

/* ---- failures ---- */

Test(run, a_killed_worker_is_named)
{
	struct trained *trained = start("cifar10-quick.yaml", "sync: ps", 3, 8, SLOW_TRAIN);

	trained->victim = 0;
	trained->n_iterations = 1000;
	launch(trained, false);
	cr_assert_eq(trained->status, PSD_ERUN);
	cr_assert(strstr(trained->err.text, "worker 0 at 127.0.0.1:"), "%s", trained->err.text);
	cr_assert(strstr(trained->err.text, "was killed by signal 9"), "%s", trained->err.text);
	cr_assert(strstr(trained->err.text, " in iteration "), "%s", trained->err.text);
	cr_assert(strstr(trained->err.text, " waits for "), "%s", trained->err.text);
	release(trained);
}
