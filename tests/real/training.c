#define _GNU_SOURCE
#include "tests/real/training.h"

#include <criterion/criterion.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define WITHIN_SEC 60.0

/* Parameters of all hosts; never empty, even for a network without any. */
static size_t shared_bytes(const struct training *training)
{
	return (TRAINING_MOST_HOSTS * training->loaded.costed.graph.parameters + 1) * sizeof(*training->parameters);
}

static size_t parameter_bytes(const struct training *training)
{
	return training->loaded.costed.graph.parameters * sizeof(*training->parameters);
}

float *training_parameters(const struct training *training, unsigned host)
{
	return training->parameters + host * training->loaded.costed.graph.parameters;
}

bool training_is_same(const struct training *left, unsigned left_host, const struct training *right,
		      unsigned right_host)
{
	return memcmp(training_parameters(left, left_host), training_parameters(right, right_host),
		      parameter_bytes(left)) == 0;
}

void training_expect_same_on_all(const struct training *training, const char *what)
{
	const unsigned workers = training->made.plan.layout.workers;

	for (unsigned w = 1; w < workers; w++)
		cr_expect(training_is_same(training, w, training, 0), "%s: worker %u of %u differs from worker 0", what,
			  w, workers);
}

void training_expect_sent(const struct training *training, uint64_t bytes, const char *what)
{
	cr_expect_eq(training->result.sent_bytes_per_node, bytes, "%s: %lu bytes, must be %lu", what,
		     training->result.sent_bytes_per_node, bytes);
}

double training_values_distance(const float *left, const float *right, uint64_t elements)
{
	double squares = 0.0;

	for (uint64_t e = 0; e < elements; e++)
		squares += pow((double)left[e] - (right ? (double)right[e] : 0.0), 2);
	return sqrt(squares);
}

double training_distance(const struct training *left, const struct training *right)
{
	return training_values_distance(training_parameters(left, 0), right ? training_parameters(right, 0) : NULL,
					left->loaded.costed.graph.parameters);
}

double training_apart_ratio(const struct training *begun, const struct training *one, const struct training *other)
{
	return training_distance(other, one) / training_distance(begun, one);
}

/* A worker with parts of the parameters gives its part to all workers that would gather it. */
static void keep(void *context, unsigned self, const struct psd_memory *memory)
{
	const struct training *training = context;
	const struct psd_plan *plan = memory->plan;
	const unsigned parts = plan->n_items > 0 ? psd_layout_parts(&plan->layout, plan->items[0].method->updates) : 1;
	size_t first = 0;

	for (unsigned t = 0; t < plan->graph->n_tensors; t++) {
		const struct psd_held held = psd_memory_held(memory, t);
		const unsigned n = held.is_own ? parts : 1;

		for (unsigned w = self / n * n; w < self / n * n + n; w++)
			memcpy(training_parameters(training, w) + first + held.piece.first, held.values,
			       held.piece.elements * sizeof(float));
		first += plan->graph->tensors[t].elements;
	}
}

static void kill_victim(void *context, const struct psd_progress *progress)
{
	const struct training *training = context;

	if (training->victim == 0 && progress->iteration == 1)
		raise(SIGKILL);
}

struct training *training_make(const char *graph, const char *system, unsigned workers, unsigned workers_per_node,
			       uint32_t batch, uint64_t seed, const char *train)
{
	return training_make_groups(graph, system, workers, workers_per_node, batch, seed, train, NULL);
}

struct training *training_make_groups(const char *graph, const char *system, unsigned workers,
				      unsigned workers_per_node, uint32_t batch, uint64_t seed, const char *train,
				      const char *groups)
{
	struct training *training = calloc(1, sizeof(*training));
	const unsigned nodes = (workers + workers_per_node - 1) / workers_per_node;
	char sweep[64] = ""; /* where the last node has fewer */
	char added[256];

	cr_assert(training);
	if (workers % workers_per_node)
		snprintf(sweep, sizeof(sweep), "sweep: {workers: [%u]}\n", workers);
	if (groups)
		snprintf(added, sizeof(added), "groups: %s, ", groups);
	else
		snprintf(added, sizeof(added), "nodes: %u, ", nodes);
	loaded_print(&training->loaded,
		     "title: t\nmodel: {graph: %s%s, batch_per_worker: %u}\ncompute: {device: cpu}\n"
		     "cluster: {stack: none, workers_per_node: %u, %snetwork: {bandwidth: 1Gbps, latency: "
		     "50us}}\n"
		     "systems:\n  - {name: s, %s}\nseed: %llu\n%strain: {%s}\n",
		     graph[0] == '/' ? "" : "scenarios/models/", graph, batch, workers_per_node, added, system,
		     (unsigned long long)seed, sweep, train);
	loaded_case(&training->made, &training->loaded, 0, 0);
	training->victim = TRAINING_MOST_HOSTS;
	training->options = (struct psd_launch_options){
		.worker.made = &training->made,
		.worker.train = &training->loaded.scenario.train,
		.worker.n_iterations = (uint32_t)training->loaded.scenario.train.iterations,
		.cluster_kind = PSD_CLUSTER_LOOPBACK,
		.worker.connect_sec = WITHIN_SEC,
		.worker.stall_sec = WITHIN_SEC,
		.worker.progress = kill_victim,
		.worker.finished = keep,
		.worker.context = training,
	};
	training->parameters =
		mmap(NULL, shared_bytes(training), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq((void *)training->parameters, MAP_FAILED);
	return training;
}

struct training *training_on(struct training *training, const struct psd_device_kind *kind, bool has_own_memory)
{
	psd_case_release(&training->made);
	psd_costed_model_compute_on(&training->loaded.costed, has_own_memory);
	loaded_case(&training->made, &training->loaded, 0, 0);
	training->options.worker.device = kind;
	return training;
}

void training_run(struct training *training)
{
	training->status = psd_launch(&training->options, &training->result, &training->err);
}

struct training *training_finish(struct training *training, const char *what)
{
	training_run(training);
	cr_assert_eq(training->status, PSD_OK, "%s: %s", what, training->err.text);
	return training;
}

void training_free(struct training *training)
{
	munmap(training->parameters, shared_bytes(training));
	psd_case_release(&training->made);
	loaded_close(&training->loaded);
	free(training);
}
