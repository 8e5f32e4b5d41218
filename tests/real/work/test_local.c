/* Local steps against a plain reference in double precision: gradients differ between workers, each updates by its own,
 * and they average where they exchange. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real/session/worker_parts.h"
#include "tests/loaded_helper.h"
#include "tests/real/lone_worker.h"
#include "tests/test_with.h"

enum { WORKERS = 3, STEPS = 3, ITERATIONS = 7, BATCH = 4 };
#define RATE	   0.5
#define MOMENTUM   0.9
#define DECAY	   0.01
#define TRUST	   0.05
#define BETA1	   0.8
#define BETA2	   0.9
#define EPSILON	   0.001 /* relative to a gradient's size */
#define NEAR_RATIO 1e-5	 /* relative to a tensor's norm: floats against doubles, over all iterations */

static const char scenario[] = "title: t\n"
			       "model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: %d}\n"
			       "compute: {device: k20}\n"
			       "cluster: {stack: none, nodes: %d, network: {bandwidth: 1Gbps, latency: 50us}}\n"
			       "systems: [{name: s, sync: ring, fuse: 1MB, local_sgd: {steps: %d%s}}]\n"
			       "train: {data: {kind: synthetic}, iterations: %d, optimiser: {%sweight_decay: 0.01}, "
			       "learning_rate: {policy: fixed, base: 0.5}}\n";

/* Several workers of one program, whose sums are made here; and what they should have. */
struct group {
	struct loaded loaded;
	struct psd_case made;
	struct psd_worker_options options;
	struct psd_worker workers[WORKERS];
	uint32_t step, apply, last; /* operations; the last one joins an exchange that has no later iteration */
	double *weight[WORKERS], *history[WORKERS], *squares[WORKERS];
	double *start, *outer; /* parameters of the last exchange, and the momentum of exchanges */
	double *sent[WORKERS]; /* parameters at the begin of the exchange */
};

static double *zeros(uint64_t n)
{
	double *values = calloc(n, sizeof(*values));

	cr_assert(values);
	return values;
}

static void open_worker(struct group *group, unsigned w)
{
	const struct psd_iterations iterations = {.end = ITERATIONS, .ends_equal = true};
	struct psd_worker *worker = &group->workers[w];
	const struct psd_duties *const duties[] = {&worker->duties};
	struct psd_error err = {.text = ""};

	lone_worker_make(worker, &group->options, &group->made, (struct psd_memory_options){.host = w},
			 WORKERS * BATCH);
	cr_assert_eq(psd_duties_make(&worker->duties, worker->host.program, w, psd_worker_arrivals, worker, &err),
		     PSD_OK);
	cr_assert_eq(psd_interpreter_init(&worker->interpreter, worker->host.program, 1, duties, iterations,
					  &(struct psd_seam){.now = NULL}, &err),
		     PSD_OK);
	worker->work.period = psd_interpreter_period(&worker->interpreter, 0);
	psd_memory_fill_own(&worker->host.memory);
}

static uint32_t find_op(const struct group *group, enum psd_op_kind kind)
{
	uint32_t op = 0;

	while (op < group->made.program.n_ops && group->made.program.ops[op].kind != kind)
		op++;
	cr_assert_lt(op, group->made.program.n_ops);
	return op;
}

static struct group *open_crew(const char *optimiser, const char *outer)
{
	struct group *group = calloc(1, sizeof(*group));

	cr_assert(group);
	loaded_print(&group->loaded, scenario, BATCH, WORKERS, STEPS, outer, ITERATIONS, optimiser);
	loaded_case(&group->made, &group->loaded, 0, 0);
	group->options = (struct psd_worker_options){
		.made = &group->made, .train = &group->loaded.scenario.train, .n_iterations = ITERATIONS};
	cr_assert_eq(group->made.plan.n_items, 1);
	group->step = find_op(group, PSD_OP_STEP);
	group->apply = group->last = find_op(group, PSD_OP_APPLY);
	while (group->made.plan.staleness > 0 && !group->made.program.ops[group->last].is_last)
		group->last++;
	group->start = zeros(group->loaded.costed.graph.parameters);
	group->outer = zeros(group->loaded.costed.graph.parameters);
	for (unsigned w = 0; w < WORKERS; w++) {
		const struct psd_graph *graph = &group->loaded.costed.graph;
		uint64_t at = 0;

		open_worker(group, w);
		group->weight[w] = zeros(graph->parameters);
		group->sent[w] = zeros(graph->parameters);
		group->history[w] = zeros(graph->parameters);
		group->squares[w] = zeros(graph->parameters);
		for (unsigned t = 0; t < graph->n_tensors; t++)
			for (uint64_t e = 0; e < graph->tensors[t].elements; e++)
				group->weight[w][at++] = (double)group->workers[w].host.memory.parameters[t][e];
	}
	memcpy(group->start, group->weight[0], group->loaded.costed.graph.parameters * sizeof(*group->start));
	return group;
}

static void close_crew(struct group *group)
{
	for (unsigned w = 0; w < WORKERS; w++) {
		psd_interpreter_release(&group->workers[w].interpreter);
		psd_duties_release(&group->workers[w].duties);
		psd_memory_release(&group->workers[w].host.memory);
		free(group->weight[w]);
		free(group->sent[w]);
		free(group->history[w]);
		free(group->squares[w]);
	}
	free(group->start);
	free(group->outer);
	psd_case_release(&group->made);
	loaded_close(&group->loaded);
	free(group);
}

/* Divided by the global batch, as all gradients are. A worker's are larger than another's. */
static float gradient_at(unsigned worker, unsigned iteration, unsigned tensor, uint64_t e)
{
	const uint64_t hash = (e * 2654435761u + worker * 40503u + iteration * 69069u + tensor * 7919u) >> 7;

	return (float)((int)(hash % 15) - 7) * 0x1p-12f * (float)(1 + worker);
}

/* ---- the program ---- */

static void sum_gradients(struct group *group, uint32_t iteration, unsigned t)
{
	for (uint64_t e = 0; e < group->loaded.costed.graph.tensors[t].elements; e++) {
		float sum = 0.0f;

		for (unsigned w = 0; w < WORKERS; w++)
			sum += psd_memory_gradients(&group->workers[w].host.memory, iteration)[t][e];
		for (unsigned w = 0; w < WORKERS; w++)
			psd_memory_gradients(&group->workers[w].host.memory, iteration)[t][e] = sum;
	}
}

static void run_op(struct group *group, unsigned w, struct psd_task task)
{
	const struct psd_op *op = &group->made.program.ops[task.op];
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_work_find(&group->made.plan, op)->run(&group->workers[w].work, task, &err), PSD_OK, "%s",
		     err.text);
}

static bool is_last(uint32_t iteration)
{
	return iteration + 1 == ITERATIONS;
}

/* Two whole periods, and one of a single iteration that the end of the run cuts. */
static bool exchanges(uint32_t iteration)
{
	return iteration == 2 || iteration == 5 || is_last(iteration);
}

/* True if workers join an exchange: this iteration's or, with a delay, that of an earlier one. The last iteration joins
 * only its own. */
static bool joins(const struct group *group, uint32_t iteration, bool is_exchange)
{
	const uint32_t delay = group->made.plan.staleness;

	return is_last(iteration) || delay == 0 ? is_exchange : iteration >= delay && exchanges(iteration - delay);
}

static void run_iteration(struct group *group, uint32_t iteration, bool is_exchange)
{
	const struct psd_graph *graph = &group->loaded.costed.graph;

	for (unsigned w = 0; w < WORKERS; w++) {
		struct psd_worker *worker = &group->workers[w];

		for (unsigned t = 0; t < graph->n_tensors; t++)
			for (uint64_t e = 0; e < graph->tensors[t].elements; e++)
				psd_memory_gradients(&worker->host.memory, iteration)[t][e] =
					gradient_at(w, iteration, t, e);
		run_op(group, w, (struct psd_task){iteration, group->step});
	}
	for (unsigned t = 0; t < graph->n_tensors && is_exchange; t++)
		sum_gradients(group, iteration, t);
	for (unsigned w = 0; w < WORKERS && joins(group, iteration, is_exchange); w++)
		run_op(group, w, (struct psd_task){iteration, is_last(iteration) ? group->last : group->apply});
}

/* ---- the reference ---- */

static double norm_of(const double *values, uint64_t n)
{
	double squares = 0.0;

	for (uint64_t e = 0; e < n; e++)
		squares += values[e] * values[e];
	return sqrt(squares);
}

/* A worker's values of a tensor. */
struct plain {
	double *weight, *history, *squares;
	uint64_t n;
};

/* By the mean gradient over the worker's own samples. */
static void step_plainly(const struct plain *of, const double *gradient, bool is_lars)
{
	const double weight_norm = norm_of(of->weight, of->n);
	const double rate =
		is_lars ? RATE * TRUST * weight_norm / (norm_of(gradient, of->n) + DECAY * weight_norm) : RATE;

	for (uint64_t e = 0; e < of->n; e++) {
		of->history[e] = MOMENTUM * of->history[e] + rate * (gradient[e] + DECAY * of->weight[e]);
		of->weight[e] -= of->history[e];
	}
}

/* As in Loshchilov and Hutter 2019, algorithm 2, in iteration t from 1. */
static void step_adaptively(const struct plain *of, const double *gradient, unsigned t)
{
	for (uint64_t e = 0; e < of->n; e++) {
		of->history[e] = BETA1 * of->history[e] + (1 - BETA1) * gradient[e];
		of->squares[e] = BETA2 * of->squares[e] + (1 - BETA2) * gradient[e] * gradient[e];
		const double mean = of->history[e] / (1 - pow(BETA1, t)), square = of->squares[e] / (1 - pow(BETA2, t));
		of->weight[e] -= RATE * (mean / (sqrt(square) + EPSILON) + DECAY * of->weight[e]);
	}
}

/* As in Sutskever et al. 2013 in the form of DiLoCo: v = m v + d, and the step is r v, or r (d + m v) with Nesterov. */
static double join_plainly(const struct group *group, uint64_t e, double mean)
{
	const struct psd_outer *by = group->made.plan.outer;
	const double drift = group->start[e] - mean;

	if (!by)
		return mean;
	group->outer[e] = by->momentum * group->outer[e] + drift;
	return group->start[e] -
	       by->rate * (by->is_nesterov ? drift + by->momentum * group->outer[e] : group->outer[e]);
}

static void expect_iteration(struct group *group, uint32_t iteration, bool is_exchange)
{
	const struct psd_graph *graph = &group->loaded.costed.graph;
	const enum psd_optimiser_kind kind = group->loaded.scenario.train.optimiser.kind;
	double *gradient = zeros(graph->parameters);

	for (unsigned w = 0; w < WORKERS; w++) {
		uint64_t at = 0;

		for (unsigned t = 0; t < graph->n_tensors; at += graph->tensors[t++].elements) {
			for (uint64_t e = 0; e < graph->tensors[t].elements; e++)
				gradient[e] = WORKERS * (double)gradient_at(w, iteration, t, e);
			const struct plain of = {group->weight[w] + at, group->history[w] + at, group->squares[w] + at,
						 graph->tensors[t].elements};
			if (kind == PSD_OPTIMISER_ADAMW)
				step_adaptively(&of, gradient, iteration + 1);
			else
				step_plainly(&of, gradient, kind == PSD_OPTIMISER_LARS);
		}
	}
	for (unsigned w = 0; w < WORKERS && is_exchange; w++)
		memcpy(group->sent[w], group->weight[w], graph->parameters * sizeof(*group->sent[w]));
	for (uint64_t e = 0; e < graph->parameters && joins(group, iteration, is_exchange); e++) {
		double sum = 0.0;

		for (unsigned w = 0; w < WORKERS; w++)
			sum += group->sent[w][e];
		group->start[e] = join_plainly(group, e, sum / WORKERS);
		for (unsigned w = 0; w < WORKERS; w++) /* steps since the begin of the exchange are kept */
			group->weight[w][e] = group->start[e] + (group->weight[w][e] - group->sent[w][e]);
	}
	free(gradient);
}

static void compare(const struct group *group, unsigned w, uint32_t iteration)
{
	const struct psd_graph *graph = &group->loaded.costed.graph;
	uint64_t at = 0;

	for (unsigned t = 0; t < graph->n_tensors; at += graph->tensors[t++].elements) {
		const uint64_t n = graph->tensors[t].elements;
		double squares = 0.0;

		for (uint64_t e = 0; e < n; e++)
			squares += pow(
				(double)group->workers[w].host.memory.parameters[t][e] - group->weight[w][at + e], 2);
		cr_expect_leq(sqrt(squares), NEAR_RATIO * norm_of(group->weight[w] + at, n),
			      "iteration %u, worker %u: %s is off by %g of %g", iteration, w, graph->tensors[t].name,
			      sqrt(squares), norm_of(group->weight[w] + at, n));
	}
}

static void check_outer(const char *optimiser, const char *outer)
{
	struct group *group = open_crew(optimiser, outer);

	for (uint32_t i = 0; i < ITERATIONS; i++) {
		const bool is_exchange = exchanges(i),
			   is_equal = is_exchange && (group->made.plan.staleness == 0 || is_last(i));

		run_iteration(group, i, is_exchange);
		expect_iteration(group, i, is_exchange);
		for (unsigned w = 0; w < WORKERS; w++)
			compare(group, w, i);
		for (unsigned t = 0; t < group->loaded.costed.graph.n_tensors && is_equal; t++)
			for (unsigned w = 1; w < WORKERS; w++)
				cr_expect_eq(memcmp(group->workers[w].host.memory.parameters[t],
						    group->workers[0].host.memory.parameters[t],
						    group->loaded.costed.graph.tensors[t].elements * sizeof(float)),
					     0, "iteration %u, worker %u", i, w);
	}
	close_crew(group);
}

static void check(const char *optimiser)
{
	check_outer(optimiser, "");
}

TEST_ROW(local, workers_step_by_their_own_gradients_and_join, check("momentum: 0.9, "))
TEST_ROW(local, norms_are_of_a_workers_own_gradient, check("kind: lars, trust: 0.05, momentum: 0.9, "))

/* Which no exchange touches: each goes on with its own. */
TEST_ROW(local, means_are_of_a_workers_own_gradient, check("kind: adamw, beta1: 0.8, beta2: 0.9, epsilon: 0.001, "))

/* ---- outer optimiser ---- */

TEST_ROW(local, outer_momentum_is_nesterovs, check_outer("momentum: 0.9, ", ", outer: {}"))
TEST_ROW(local, outer_momentum_may_be_plain,
	 check_outer("momentum: 0.9, ", ", outer: {rate: 0.5, momentum: 0.75, nesterov: false}"))
TEST_ROW(local, an_outer_rate_alone_keeps_nothing, check_outer("momentum: 0.9, ", ", outer: {rate: 0.5, momentum: 0}"))

/* ---- delay ---- */

TEST_ROW(local, a_late_join_keeps_the_steps_since, check_outer("momentum: 0.9, ", ", delay: 1"))
TEST_ROW(local, a_late_join_has_outer_momentum, check_outer("momentum: 0.9, ", ", delay: 2, outer: {}"))
