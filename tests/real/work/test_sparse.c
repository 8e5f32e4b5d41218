/* Sparse gradients against the published algorithm, written plainly, value by value. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real/session/worker_parts.h"
#include "tests/loaded_helper.h"
#include "tests/test_with.h"

enum { WORKERS = 3, ITERATIONS = 12, CHUNK = 700 };
#define MOMENTUM 0.9f

/* All tensors in one exchange: its 145,578 values are 208 chunks, the last of 678. */
static const char scenario[] = "title: t\n"
			       "model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 4}\n"
			       "compute: {device: k20}\n"
			       "cluster: {stack: none, nodes: 3, network: {bandwidth: 1Gbps, latency: 50us}}\n"
			       "systems: [{name: s, sync: ring, fuse: 1MB, sparse: {sparsity: 0.8, chunk: 700, warmup: "
			       "4, feedback: %s}, wire: %s}]\n"
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

static void open_crew(struct group *group, const char *feedback, const char *wire)
{
	struct psd_error err = {.text = ""};

	loaded_print(&group->loaded, scenario, feedback, wire);
	cr_assert_eq(psd_case_make(&group->made, &group->loaded.costed, &group->loaded.scenario.systems[0],
				   psd_scenario_point(&group->loaded.scenario, 0), &err),
		     PSD_OK, "%s", err.text);
	group->n = group->loaded.costed.graph.parameters;
	group->options = (struct psd_worker_options){.made = &group->made, .train = &group->loaded.scenario.train};
	for (uint32_t o = 0; o < group->made.program.n_ops; o++)
		group->ops[group->made.program.ops[o].kind] = o;
	for (unsigned w = 0; w < WORKERS; w++) {
		struct psd_worker *worker = &group->workers[w];

		*worker = (struct psd_worker){.host = {.options = &group->options,
						       .program = &group->made.program,
						       .plan = &group->made.plan,
						       .layout = &group->made.plan.layout,
						       .graph = &group->loaded.costed.graph,
						       .self = w,
						       .kind = &psd_device_cpu,
						       .on_device = &worker->host.memory,
						       .global_batch = WORKERS * 4},
					      .work.host = &worker->host};
		cr_assert_eq(psd_memory_init(&worker->host.memory, worker->host.program,
					     &(struct psd_memory_options){.host = w, .adds_arrivals = true}, &err),
			     PSD_OK, "%s", err.text);
		cr_assert_eq(psd_family_scales.open(&worker->work, &err), PSD_OK);
		cr_assert_eq(psd_family_sparse.open(&worker->work, &err), PSD_OK);
		psd_memory_fill_parameters(&worker->host.memory, 1);
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

static void run_iteration(struct group *group, uint32_t iteration)
{
	for (unsigned w = 0; w < WORKERS; w++) {
		struct psd_worker *worker = &group->workers[w];
		float *const *gradients = psd_memory_gradients(&worker->host.memory, iteration);

		for (uint64_t e = 0; e < group->n; e++)
			*value_at(group, gradients, e) = gradient_at(w, iteration, e);
		run_op(group, w, (struct psd_task){iteration, group->ops[PSD_OP_GATHER]});
	}
	sum_buffers(group, PSD_BUFFER_CHOSEN, 0, iteration,
		    psd_work_selection(&group->workers[0].work)->now.travelling[0]);
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
	uint64_t n, n_chunks;
};

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
				reference->norm[c] += fabs((double)g);
			reference->held[w][e] = reference->is_chosen[c] ? 0.0f : kept_ratio * g;
		}
		if (!reference->is_chosen[c])
			continue;
		reference->norm[c] += fabs((double)reference->sum[e]);
		reference->history[e] =
			MOMENTUM * reference->history[e] + 0.5f * (reference->sum[e] + 0.01f * reference->weight[e]);
		reference->weight[e] -= reference->history[e];
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
		const struct psd_chunk_selection_table *now = &psd_work_selection(&group->workers[w].work)->now;

		cr_assert_eq(memcmp(now->is_chosen, reference->is_chosen, reference->n_chunks), 0,
			     "worker %u chooses other chunks for iteration %u", w, iteration + 1);
		for (uint64_t e = 0; e < reference->n; e++)
			n_apart +=
				*value_at(group, group->workers[w].host.memory.parameters, e) != reference->weight[e];
	}
	cr_assert_eq(n_apart, 0, "iteration %u: %lu parameters differ", iteration, n_apart);
}

static void check(const char *feedback, float kept_ratio)
{
	struct group *group = calloc(1, sizeof(*group));
	struct reference reference;

	cr_assert(group);
	open_crew(group, feedback, "fp32");
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

TEST_ROW(sparse, the_residual_shrinks_by_the_momentum, check("momentum", MOMENTUM))
TEST_ROW(sparse, or_is_kept_as_a_whole, check("full", 1.0f))

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
	open_crew(group, "full", name);
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
