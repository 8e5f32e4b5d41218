/* Sparse gradients against the published algorithm, written plainly, value by value. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real/session/worker_parts.h"
#include "tests/loaded_helper.h"
#include "tests/real/lone_worker.h"
#include "tests/test_with.h"

enum { WORKERS = 3, ITERATIONS = 12, CHUNK = 700 };
#define MOMENTUM 0.9f

/* All tensors in one exchange: its 145,578 values are 208 chunks, the last of 678. */
static const char scenario[] = "title: t\n"
			       "model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 4}\n"
			       "compute: {device: k20}\n"
			       "cluster: {stack: none, nodes: 3, network: {bandwidth: 1Gbps, latency: 50us}}\n"
			       "systems: [{name: s, sync: ring, fuse: 1MB, %s, wire: %s}]\n"
			       "train: {data: {kind: synthetic}, iterations: 12, optimiser: {momentum: 0.9, "
			       "weight_decay: 0.01}, learning_rate: {policy: fixed, base: 0.5}}\n";

/* Several workers of one program, whose sums are made here. */
struct group {
	struct loaded loaded;
	struct psd_case made;
	struct psd_worker_options options;
	struct psd_worker workers[WORKERS];
	uint64_t n; /* values */
	uint32_t ops[PSD_OP_KINDS];
};

#define SPARSE(feedback) "sparse: {sparsity: 0.8, chunk: 700, warmup: 4, feedback: " feedback "}"

/* treatment: key of the system */
static void open_crew(struct group *group, const char *treatment, const char *wire)
{
	struct psd_error err = {.text = ""};

	loaded_print(&group->loaded, scenario, treatment, wire);
	cr_assert_eq(psd_case_make(&group->made, &group->loaded.costed, &group->loaded.scenario.systems[0],
				   psd_scenario_point(&group->loaded.scenario, 0), &err),
		     PSD_OK, "%s", err.text);
	group->n = group->loaded.costed.graph.parameters;
	group->options = (struct psd_worker_options){
		.made = &group->made, .train = &group->loaded.scenario.train, .n_iterations = ITERATIONS};
	for (uint32_t o = 0; o < group->made.program.n_ops; o++)
		group->ops[group->made.program.ops[o].kind] = o;
	for (unsigned w = 0; w < WORKERS; w++) {
		struct psd_worker *worker = &group->workers[w];

		lone_worker_make(worker, &group->options, &group->made,
				 (struct psd_memory_options){.host = w, .adds_arrivals = true}, WORKERS * 4);
		cr_assert_eq(psd_family_scales.open(&worker->work, &err), PSD_OK);
		cr_assert_eq(psd_family_sparse.open(&worker->work, &err), PSD_OK);
		psd_memory_fill_own(&worker->host.memory);
	}
}

static void close_crew(struct group *group)
{
	for (unsigned w = 0; w < WORKERS; w++) {
		psd_memory_release(&group->workers[w].host.memory);
		psd_arena_release(&group->workers[w].host.arena);
	}
	psd_case_release(&group->made);
	loaded_close(&group->loaded);
}

/* Sums that a float holds exactly, in any order: a few bits each. Larger at some positions than at others, which change
 * with the iteration. */
static float gradient_at(unsigned worker, unsigned iteration, uint64_t e)
{
	const uint64_t hash = (e * 2654435761u + worker * 40503u + iteration * 69069u) >> 7;
	const uint64_t place = e / CHUNK * 7919u + iteration * 31u;

	return (float)((int)(hash % 15) - 7) * 0x1p-10f * (float)(1 + place % 5);
}

/* The e-th value of the exchange, of one of the lists of tensors in the memory. */
static float *value_at(const struct group *group, float *const tensors[], uint64_t e)
{
	const struct psd_plan_item *item = &group->made.plan.items[0];

	for (unsigned i = 0; i < item->n_tensors; i++) {
		const unsigned t = psd_plan_tensor(&group->made.plan, item, i);
		const uint64_t elements = group->loaded.costed.graph.tensors[t].elements;

		if (e < elements)
			return &tensors[t][e];
		e -= elements;
	}
	cr_assert_fail("no such value");
	return NULL;
}

static void sum_buffers(struct group *group, enum psd_buffer buffer, unsigned item, uint32_t iteration, uint64_t n)
{
	for (uint64_t e = 0; e < n; e++) {
		float sum = 0.0f;

		for (unsigned w = 0; w < WORKERS; w++)
			sum += psd_memory_buffer(&group->workers[w].host.memory, buffer, item, iteration)[e];
		for (unsigned w = 0; w < WORKERS; w++)
			psd_memory_buffer(&group->workers[w].host.memory, buffer, item, iteration)[e] = sum;
	}
}

static void run_op(struct group *group, unsigned w, struct psd_task task)
{
	const struct psd_op *op = &group->made.program.ops[task.op];
	struct psd_error err = {.text = ""};

	cr_assert_eq(psd_work_find(&group->made.plan, op)->run(&group->workers[w].work, task, &err), PSD_OK, "%s",
		     err.text);
}

static const struct psd_chunk_selection_table *chosen_in(const struct group *group, unsigned w, uint32_t iteration)
{
	return psd_chunk_selection_of(psd_work_selection(&group->workers[w].work), iteration);
}

static void run_iteration(struct group *group, uint32_t iteration)
{
	for (unsigned w = 0; w < WORKERS; w++) {
		struct psd_worker *worker = &group->workers[w];
		float *const *gradients = psd_memory_gradients(&worker->host.memory, iteration);

		for (uint64_t e = 0; e < group->n; e++)
			*value_at(group, gradients, e) = gradient_at(w, iteration, e);
		run_op(group, w, (struct psd_task){iteration, group->ops[PSD_OP_GATHER]});
	}
	sum_buffers(group, PSD_BUFFER_CHOSEN, 0, iteration, chosen_in(group, 0, iteration)->travelling[0]);
	for (unsigned w = 0; w < WORKERS; w++)
		run_op(group, w, (struct psd_task){iteration, group->ops[PSD_OP_APPLY]});
	sum_buffers(group, PSD_BUFFER_NORMS, 1, iteration, group->made.plan.n_chunks);
	for (unsigned w = 0; w < WORKERS; w++) {
		const struct psd_task choose = {iteration, group->ops[PSD_OP_CHOOSE]};

		run_op(group, w, choose);
		psd_work_find(&group->made.plan, &group->made.program.ops[choose.op])
			->finish(&group->workers[w].work, choose);
	}
}

/* ---- the same as the paper has it ---- */

struct reference {
	float *weight, *history, *sum, *held[WORKERS];
	double *norm; /* norms of each chunk */
	bool *is_chosen;
	bool is_relative; /* norms are relative to parameters */
	uint64_t n, n_chunks;
};

static double magnitude_of(const struct reference *reference, float change, uint64_t e)
{
	return fabs((double)change) / (reference->is_relative ? fabs((double)reference->weight[e]) + 0.01 : 1.0);
}

/* hg and g of the paper: what is held back joins the gradient, and leaves or shrinks. */
static void step(struct reference *reference, uint32_t iteration, float kept_ratio)
{
	memset(reference->norm, 0, reference->n_chunks * sizeof(*reference->norm));
	for (uint64_t e = 0; e < reference->n; e++) {
		const uint64_t c = e / CHUNK;

		reference->sum[e] = 0.0f;
		for (unsigned w = 0; w < WORKERS; w++) {
			const float g = reference->held[w][e] + gradient_at(w, iteration, e);

			reference->sum[e] += g;
			if (!reference->is_chosen[c])
				reference->norm[c] += magnitude_of(reference, g, e);
			reference->held[w][e] = reference->is_chosen[c] ? 0.0f : kept_ratio * g;
		}
		if (!reference->is_chosen[c])
			continue;
		reference->history[e] =
			MOMENTUM * reference->history[e] + 0.5f * (reference->sum[e] + 0.01f * reference->weight[e]);
		reference->weight[e] -= reference->history[e];
		reference->norm[c] += magnitude_of(reference, reference->sum[e], e);
	}
}

/* n - floor(n s i / 4), s at most 0.8: by the largest norms, one after the other. */
static void choose(struct reference *reference, uint32_t next)
{
	const double ramp = next < 4 ? next / 4.0 : 1.0;
	uint64_t left = reference->n_chunks - (uint64_t)floor((double)reference->n_chunks * 0.8 * ramp);

	memset(reference->is_chosen, 0, reference->n_chunks * sizeof(*reference->is_chosen));
	for (; left > 0; left--) {
		uint64_t best = reference->n_chunks;

		for (uint64_t c = 0; c < reference->n_chunks; c++)
			if (!reference->is_chosen[c] &&
			    (best == reference->n_chunks || reference->norm[c] > reference->norm[best]))
				best = c;
		reference->is_chosen[best] = true;
	}
}

static float *zeros(uint64_t n)
{
	float *values = calloc(n, sizeof(*values));

	cr_assert(values);
	return values;
}

static struct reference open_reference(const struct group *group)
{
	struct reference reference = {.n = group->n, .n_chunks = group->made.plan.n_chunks};

	reference.weight = zeros(reference.n);
	reference.history = zeros(reference.n);
	reference.sum = zeros(reference.n);
	for (unsigned w = 0; w < WORKERS; w++)
		reference.held[w] = zeros(reference.n);
	reference.norm = calloc(reference.n_chunks, sizeof(*reference.norm));
	reference.is_chosen = calloc(reference.n_chunks, sizeof(*reference.is_chosen));
	cr_assert(reference.norm && reference.is_chosen);
	for (uint64_t c = 0; c < reference.n_chunks; c++)
		reference.is_chosen[c] = true;
	for (uint64_t e = 0; e < reference.n; e++)
		reference.weight[e] = *value_at(group, group->workers[0].host.memory.parameters, e);
	return reference;
}

static void close_reference(struct reference *reference)
{
	free(reference->weight);
	free(reference->history);
	free(reference->sum);
	for (unsigned w = 0; w < WORKERS; w++)
		free(reference->held[w]);
	free(reference->norm);
	free(reference->is_chosen);
}

static void compare(const struct group *group, const struct reference *reference, uint32_t iteration)
{
	uint64_t n_apart = 0;

	for (unsigned w = 0; w < WORKERS; w++) {
		const struct psd_chunk_selection_table *now = chosen_in(group, w, iteration + 1);

		cr_assert_eq(memcmp(now->is_chosen, reference->is_chosen, reference->n_chunks), 0,
			     "worker %u chooses other chunks for iteration %u", w, iteration + 1);
		for (uint64_t e = 0; e < reference->n; e++)
			n_apart +=
				*value_at(group, group->workers[w].host.memory.parameters, e) != reference->weight[e];
	}
	cr_assert_eq(n_apart, 0, "iteration %u: %lu parameters differ", iteration, n_apart);
}

static void check(const char *treatment, float kept_ratio)
{
	struct group *group = calloc(1, sizeof(*group));
	struct reference reference;

	cr_assert(group);
	open_crew(group, treatment, "fp32");
	cr_assert_eq(group->made.plan.n_items, 2);
	cr_assert_eq(group->made.plan.n_chunks, 208);
	reference = open_reference(group);
	for (uint32_t i = 0; i < ITERATIONS; i++) {
		run_iteration(group, i);
		step(&reference, i, kept_ratio);
		choose(&reference, i + 1);
		compare(group, &reference, i);
	}
	close_reference(&reference);
	close_crew(group);
	free(group);
}

TEST_ROW(sparse, the_residual_shrinks_by_the_momentum, check(SPARSE("momentum"), MOMENTUM))
TEST_ROW(sparse, or_is_kept_as_a_whole, check(SPARSE("full"), 1.0f))

/* ---- managed communication ---- */

enum { CLOCK = 4, EARLY = 208 - 166 /* floor(208 * 0.8) */, WHOLE = 207 };

#define NEAR_RATIO 1e-5 /* norms are floats, and those here are not */

static bool ends_clock(uint32_t iteration)
{
	return (iteration + 1) % CLOCK == 0 || iteration + 1 == ITERATIONS;
}

/* No worker owes anything: what it has withheld is zero. */
static bool owes_nothing(const struct group *group, uint32_t iteration)
{
	uint64_t n_owed = 0;

	for (unsigned w = 0; w < WORKERS; w++) {
		const float *residual =
			psd_memory_buffer(&group->workers[w].host.memory, PSD_BUFFER_RESIDUAL, 0, iteration);

		for (uint64_t e = 0; e < group->n; e++)
			n_owed += residual[e] != 0.0f;
	}
	return n_owed == 0;
}

/* The early chunks have larger norms than all others. */
static void expect_largest(const struct reference *reference, const bool is_chosen[], uint32_t iteration)
{
	double least_chosen = INFINITY, most_other = 0.0;
	unsigned n_chosen = 0;

	for (uint64_t c = 0; c < reference->n_chunks; c++) {
		n_chosen += is_chosen[c];
		least_chosen = is_chosen[c] ? fmin(least_chosen, reference->norm[c]) : least_chosen;
		most_other = is_chosen[c] ? most_other : fmax(most_other, reference->norm[c]);
	}
	cr_expect_eq(n_chosen, EARLY, "iteration %u: %u chunks", iteration, n_chosen);
	cr_expect_geq(least_chosen, (1.0 - NEAR_RATIO) * most_other, "iteration %u: %g and %g", iteration, least_chosen,
		      most_other);
}

/* Whole chunks take turns in the bucket's order, which is that of the backward pass, or in the reverse order. */
static void expect_turn(const bool is_chosen[], uint32_t iteration, bool is_forward)
{
	const unsigned n_before = (iteration - iteration / CLOCK) * EARLY;
	bool expected[WHOLE + 1] = {false};

	for (unsigned i = 0; i < EARLY; i++) {
		const unsigned at = (n_before + i) % WHOLE;

		expected[is_forward ? WHOLE - 1 - at : at] = true;
	}
	cr_expect_eq(memcmp(is_chosen, expected, sizeof(expected)), 0, "iteration %u", iteration);
}

static void expect_chosen(const struct reference *reference, const bool is_chosen[], uint32_t iteration,
			  const char *priority)
{
	unsigned n_chosen = 0;

	for (uint64_t c = 0; c < reference->n_chunks; c++)
		n_chosen += is_chosen[c];
	if (ends_clock(iteration))
		cr_expect_eq(n_chosen, reference->n_chunks, "iteration %u: %u chunks", iteration, n_chosen);
	else if (!strcmp(priority, "magnitude"))
		expect_largest(reference, is_chosen, iteration);
	else if (!strcmp(priority, "random"))
		cr_expect_eq(n_chosen, EARLY, "iteration %u: %u chunks", iteration, n_chosen);
	else
		expect_turn(is_chosen, iteration, !strcmp(priority, "forward"));
}

/* The reference takes its choices from worker 0, once they are what they should be. */
static void check_managed(const char *priority)
{
	struct group *group = calloc(1, sizeof(*group));
	struct reference reference;
	char treatment[128];

	cr_assert(group);
	snprintf(treatment, sizeof(treatment), "managed: {clock: 4, early: 20%%, chunk: 700, priority: %s}", priority);
	open_crew(group, treatment, "fp32");
	reference = open_reference(group);
	reference.is_relative = true;
	for (uint32_t i = 0; i < ITERATIONS; i++) {
		const bool *is_chosen = chosen_in(group, 0, i)->is_chosen;

		if (i == 0)
			expect_turn(is_chosen, 0, false);
		else
			expect_chosen(&reference, is_chosen, i, priority);
		memcpy(reference.is_chosen, is_chosen, reference.n_chunks * sizeof(*is_chosen));
		run_iteration(group, i);
		step(&reference, i, 1.0f);
		memcpy(reference.is_chosen, chosen_in(group, 0, i + 1)->is_chosen,
		       reference.n_chunks * sizeof(*is_chosen));
		compare(group, &reference, i);
		cr_expect_eq(owes_nothing(group, i), ends_clock(i), "iteration %u", i);
	}
	close_reference(&reference);
	close_crew(group);
	free(group);
}

TEST_ROW(managed, the_largest_relative_changes_are_sent_early, check_managed("magnitude"))
TEST_ROW(managed, or_chunks_drawn_by_the_seed, check_managed("random"))
TEST_ROW(managed, or_those_whose_turn_it_is, check_managed("generation"))
TEST_ROW(managed, or_in_the_reverse_order, check_managed("forward"))

/* ---- during the transfer ---- */

/* First step of a ring, from the worker before. */
static struct psd_destination first_destination(struct group *group, uint32_t op, uint64_t *elements, uint64_t *bytes)
{
	const struct psd_worker *worker = &group->workers[0];
	const struct psd_task task = {0, op};
	const struct psd_step step = psd_worker_step(worker, task, WORKERS - 1, 0);
	struct psd_destination destination = {.n_segments = 0};

	cr_assert(step.adds && step.to == 0);
	psd_worker_step_destination(worker, task, &step, 0, &destination);
	*elements = step.sent.elements;
	*bytes = psd_worker_step_bytes(worker, task, &step);
	return destination;
}

static void check_way(const char *name, const struct psd_encoding *wire)
{
	struct group *group = calloc(1, sizeof(*group));
	unsigned n_sums = 0;

	cr_assert(group);
	open_crew(group, SPARSE("full"), name);
	for (uint32_t o = 0; o < group->made.program.n_ops; o++) {
		const bool is_of_norms = group->made.program.ops[o].item == 1;
		uint64_t elements, bytes;
		struct psd_destination destination;

		if (group->made.program.ops[o].kind != PSD_OP_COLLECTIVE)
			continue;
		destination = first_destination(group, o, &elements, &bytes);
		cr_expect_eq(destination.added, is_of_norms ? &psd_encoding_fp32 : wire, "%s, operation %u", name, o);
		cr_expect_eq(bytes, elements * (is_of_norms ? sizeof(float) : 2), "%s, operation %u", name, o);
		cr_expect_eq(psd_segments_bytes(destination.segments, destination.n_segments), bytes,
			     "%s, operation %u", name, o);
		n_sums++;
	}
	cr_expect_eq(n_sums, 2);
	close_crew(group);
	free(group);
}

/* Added as values of 2 bytes the halves of a float would be rubbish, and the same rubbish for all. */
Test(sparse, norms_are_summed_as_floats_whatever_the_wire_is)
{
	check_way("fp16", &psd_encoding_fp16);
	check_way("bf16", &psd_encoding_bf16);
}
