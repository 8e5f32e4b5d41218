/* Stale reads against a plain reference in double precision. Sums come to each worker at times of its own; a worker's
 * parameters are those with the sums that it has, and its own gradients since. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "real/session/worker_parts.h"
#include "tests/loaded_helper.h"
#include "tests/real/lone_worker.h"

enum { WORKERS = 3, STALENESS = 2, ITERATIONS = 8, BATCH = 4 };
#define RATE	   0.5
#define MOMENTUM   0.9
#define DECAY	   0.01
#define NEAR_RATIO 1e-5 /* relative to a tensor's norm: floats against doubles, over all iterations */

static const char scenario[] = "title: t\n"
			       "model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 4}\n"
			       "compute: {device: k20}\n"
			       "cluster: {stack: none, nodes: 3, network: {bandwidth: 1Gbps, latency: 50us}}\n"
			       "systems: [{name: s, sync: ring, fuse: 1MB, staleness: 2, reads: stale}]\n"
			       "train: {data: {kind: synthetic}, iterations: 8, optimiser: {momentum: 0.9, "
			       "weight_decay: 0.01}, learning_rate: {policy: fixed, base: 0.5}}\n";

/* Numbers of sums that each worker has before it reads for an iteration, and in the last row those at the end. */
static const uint32_t n_sums[ITERATIONS + 1][WORKERS] = {
	{0, 0, 0}, {1, 0, 0}, {2, 1, 0}, {3, 1, 2}, {4, 2, 2}, {5, 5, 3}, {6, 5, 6}, {7, 6, 6}, {8, 8, 8},
};

struct group {
	struct loaded loaded;
	struct psd_case made;
	struct psd_worker_options options;
	struct psd_worker workers[WORKERS];
	float *own[WORKERS][ITERATIONS]; /* gradients, of all tensors */
	uint32_t n_applied[WORKERS];
};

static uint32_t find_op(const struct group *group, enum psd_op_kind kind)
{
	uint32_t op = 0;

	while (op < group->made.program.n_ops && group->made.program.ops[op].kind != kind)
		op++;
	cr_assert_lt(op, group->made.program.n_ops);
	return op;
}

static void run_op(struct group *group, unsigned w, uint32_t iteration, enum psd_op_kind kind)
{
	const struct psd_task task = {iteration, find_op(group, kind)};
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_work_find(&group->made.plan, &group->made.program.ops[task.op])
			     ->run(&group->workers[w].work, task, &err),
		     PSD_OK, "%s", err.text);
}

static void open_worker(struct group *group, unsigned w)
{
	struct psd_worker *worker = &group->workers[w];
	struct psd_error err = {.text = ""};

	lone_worker_make(worker, &group->options, &group->made, (struct psd_memory_options){.host = w},
			 WORKERS * BATCH);
	cr_assert_eq(psd_family_stale.open(&worker->work, &err), PSD_OK, "%s", err.text);
}

/* Divided by the global batch, as all gradients are. */
static float gradient_at(unsigned worker, unsigned iteration, uint64_t e)
{
	const uint64_t hash = (e * 2654435761u + worker * 40503u + iteration * 69069u) >> 7;

	return (float)((int)(hash % 15) - 7) * 0x1p-12f * (float)(1 + worker);
}

/* Copies all tensors from or to an iteration's gradients. */
static void copy_gradients(struct group *group, unsigned w, uint32_t iteration, float *values)
{
	const struct psd_graph *graph = &group->loaded.costed.graph;

	for (unsigned t = 0; t < graph->n_tensors; t++) {
		memcpy(psd_memory_gradients(&group->workers[w].host.memory, iteration)[t], values,
		       graph->tensors[t].elements * sizeof(float));
		values += graph->tensors[t].elements;
	}
}

static void apply_sum(struct group *group, unsigned w, uint32_t iteration)
{
	const uint64_t n = group->loaded.costed.graph.parameters;
	float *sum = calloc(n, sizeof(*sum));

	cr_assert(sum);
	for (unsigned other = 0; other < WORKERS; other++)
		for (uint64_t e = 0; e < n; e++)
			sum[e] += group->own[other][iteration][e];
	copy_gradients(group, w, iteration, sum);
	run_op(group, w, iteration, PSD_OP_APPLY);
	free(sum);
}

/* ---- the reference ---- */

static void step(const struct psd_graph *graph, double *weight, double *history, const double *gradient)
{
	for (uint64_t e = 0; e < graph->parameters; e++) {
		history[e] = MOMENTUM * history[e] + RATE * (gradient[e] + DECAY * weight[e]);
		weight[e] -= history[e];
	}
}

/* By the sums of the first iterations, then by the worker's own gradients up to `end`. */
static void expect_parameters(const struct group *group, unsigned w, const double *begun, uint32_t n_summed,
			      uint32_t end)
{
	const struct psd_graph *graph = &group->loaded.costed.graph;
	double *weight = calloc(3 * graph->parameters, sizeof(*weight));
	double *history = weight + graph->parameters, *gradient = history + graph->parameters;
	double squares = 0.0, norm = 0.0;
	uint64_t at = 0;

	cr_assert(weight);
	memcpy(weight, begun, graph->parameters * sizeof(*weight));
	for (uint32_t i = 0; i < end; i++) {
		memset(gradient, 0, graph->parameters * sizeof(*gradient));
		for (unsigned other = 0; other < WORKERS; other++)
			for (uint64_t e = 0; e < graph->parameters && (i < n_summed || other == w); e++)
				gradient[e] += (double)group->own[other][i][e];
		step(graph, weight, history, gradient);
	}
	for (unsigned t = 0; t < graph->n_tensors; t++)
		for (uint64_t e = 0; e < graph->tensors[t].elements; e++, at++) {
			squares += pow((double)group->workers[w].host.memory.parameters[t][e] - weight[at], 2);
			norm += pow(weight[at], 2);
		}
	cr_expect_leq(sqrt(squares), NEAR_RATIO * sqrt(norm), "worker %u, iteration %u: off by %g of %g", w, end,
		      sqrt(squares), sqrt(norm));
	free(weight);
}

static struct group *open_group(double **begun)
{
	struct group *group = calloc(1, sizeof(*group));
	const struct psd_graph *graph;
	uint64_t at = 0;

	cr_assert(group);
	loaded_open(&group->loaded, scenario);
	loaded_case(&group->made, &group->loaded, 0, 0);
	graph = &group->loaded.costed.graph;
	group->options = (struct psd_worker_options){
		.made = &group->made, .train = &group->loaded.scenario.train, .n_iterations = ITERATIONS};
	cr_assert_eq(group->made.plan.n_items, 1);
	for (unsigned w = 0; w < WORKERS; w++)
		open_worker(group, w);
	*begun = calloc(graph->parameters, sizeof(**begun));
	cr_assert(*begun);
	for (unsigned i = graph->n_tensors; i-- > 0;)
		for (unsigned w = 0; w < WORKERS; w++)
			for (unsigned n = 0; n < ITERATIONS && i == 0; n++) {
				group->own[w][n] = calloc(graph->parameters, sizeof(float));
				cr_assert(group->own[w][n]);
				for (uint64_t e = 0; e < graph->parameters; e++)
					group->own[w][n][e] = gradient_at(w, n, e);
			}
	for (unsigned t = 0; t < graph->n_tensors; t++)
		for (uint64_t e = 0; e < graph->tensors[t].elements; e++)
			(*begun)[at++] = (double)group->workers[0].host.memory.parameters[t][e];
	return group;
}

static void close_group(struct group *group, double *begun)
{
	for (unsigned w = 0; w < WORKERS; w++) {
		for (unsigned i = 0; i < ITERATIONS; i++)
			free(group->own[w][i]);
		psd_memory_release(&group->workers[w].host.memory);
		psd_arena_release(&group->workers[w].host.arena);
	}
	psd_case_release(&group->made);
	loaded_close(&group->loaded);
	free(begun);
	free(group);
}

static void take_sums(struct group *group, unsigned w, uint32_t n)
{
	while (group->n_applied[w] < n)
		apply_sum(group, w, group->n_applied[w]++);
}

Test(stale, a_worker_sees_its_own_gradients_at_once_and_sums_as_they_come)
{
	double *begun;
	struct group *group = open_group(&begun);
	const struct psd_graph *graph = &group->loaded.costed.graph;

	for (uint32_t i = 0; i < ITERATIONS; i++)
		for (unsigned w = 0; w < WORKERS; w++) {
			cr_assert(n_sums[i][w] + STALENESS >= i && n_sums[i][w] <= i);
			take_sums(group, w, n_sums[i][w]);
			run_op(group, w, i, PSD_OP_READ);
			expect_parameters(group, w, begun, n_sums[i][w], i);
			copy_gradients(group, w, i, group->own[w][i]);
			run_op(group, w, i, PSD_OP_KEEP);
		}
	/* a fence: all sums have come, nothing was read since */
	for (unsigned w = 0; w < WORKERS; w++) {
		take_sums(group, w, n_sums[ITERATIONS][w]);
		expect_parameters(group, w, begun, ITERATIONS, ITERATIONS);
		for (unsigned t = 0; t < graph->n_tensors; t++)
			cr_expect_eq(memcmp(group->workers[w].host.memory.parameters[t],
					    group->workers[0].host.memory.parameters[t],
					    graph->tensors[t].elements * sizeof(float)),
				     0, "worker %u has other bits", w);
	}
	close_group(group, begun);
}

/* A sum that comes between forward and backward pass must not change the parameters that both use. */
Test(stale, a_sum_changes_no_parameters_in_the_middle_of_an_iteration)
{
	double *begun;
	struct group *group = open_group(&begun);
	const struct psd_graph *graph = &group->loaded.costed.graph;
	float *read;

	for (uint32_t i = 0; i < 2; i++) {
		run_op(group, 0, i, PSD_OP_READ);
		copy_gradients(group, 0, i, group->own[0][i]);
		if (i == 0)
			run_op(group, 0, i, PSD_OP_KEEP);
	}
	read = calloc(graph->tensors[0].elements, sizeof(*read));
	cr_assert(read);
	memcpy(read, group->workers[0].host.memory.parameters[0], graph->tensors[0].elements * sizeof(*read));
	take_sums(group, 0, 1); /* while iteration 1 computes */
	cr_expect_eq(
		memcmp(read, group->workers[0].host.memory.parameters[0], graph->tensors[0].elements * sizeof(*read)),
		0);
	free(read);
	close_group(group, begun);
}
