/* Stale reads with managed communication against a plain reference in double precision. Sums of chunks come to each
 * worker at times of its own; a worker's parameters are those with the sums that it has, and all its own updates. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "real/session/worker_parts.h"
#include "tests/loaded_helper.h"
#include "tests/real/lone_worker.h"
#include "tests/test_with.h"

enum { WORKERS = 3, STALENESS = 2, CLOCK = 4, ITERATIONS = 8, BATCH = 4, CHUNK = 700 };
enum { EARLY = 208 - 166 /* floor(208 * 0.8) */ };
#define RATE	   0.5
#define MOMENTUM   0.9
#define DECAY	   0.01
#define NEAR_RATIO 1e-5 /* relative to the norm: floats against doubles, over all iterations */

/* All tensors in one exchange: its 145,578 values are 208 chunks. */
static const char scenario[] = "title: t\n"
			       "model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 4}\n"
			       "compute: {device: k20}\n"
			       "cluster: {stack: none, nodes: 3, network: {bandwidth: 1Gbps, latency: 50us}}\n"
			       "systems: [{name: s, sync: ring, fuse: 1MB, staleness: 2, reads: stale, managed: "
			       "{clock: 4, early: 20%%, chunk: 700, priority: %s}}]\n"
			       "train: {data: {kind: synthetic}, iterations: 8, optimiser: {momentum: 0.9, "
			       "weight_decay: 0.01, nesterov: %s}, learning_rate: {policy: fixed, base: 0.5}}\n";

/* Numbers of sums that each worker has before it reads for an iteration, and in the last row those at the end. */
static const uint32_t n_sums[ITERATIONS + 1][WORKERS] = {
	{0, 0, 0}, {1, 0, 0}, {2, 1, 0}, {3, 1, 2}, {4, 2, 2}, {5, 5, 3}, {6, 5, 6}, {7, 6, 6}, {8, 8, 8},
};

struct group {
	struct loaded loaded;
	struct psd_case made;
	struct psd_worker_options options;
	struct psd_worker workers[WORKERS];
	uint64_t n;		 /* values, in the order of the exchange */
	float *sums[ITERATIONS]; /* sums of chosen chunks; NULL: some worker has not sent */
	uint32_t n_applied[WORKERS], n_chosen;
	/* the reference */
	bool is_nesterov;
	double *start[ITERATIONS + 1]; /* parameters with so many sums */
	double *history[WORKERS], *withheld[WORKERS], *sent[WORKERS][ITERATIONS];
};

static const struct psd_chunk_selection_table *chosen_in(const struct group *group, unsigned w, uint32_t iteration)
{
	return psd_chunk_selection_of(psd_work_selection(&group->workers[w].work), iteration);
}

static bool ends_clock(uint32_t iteration)
{
	return (iteration + 1) % CLOCK == 0;
}

static void run_op(struct group *group, unsigned w, uint32_t iteration, enum psd_op_kind kind)
{
	const struct psd_program *program = &group->made.program;
	const struct psd_period period = psd_period_make(CLOCK, 0, ITERATIONS);
	struct psd_task task = {iteration, 0};
	struct psd_error err = {.text = ""};

	while (task.op < program->n_ops &&
	       (program->ops[task.op].kind != kind || !psd_op_is_due(&program->ops[task.op], &period, iteration)))
		task.op++;
	cr_assert_lt(task.op, program->n_ops);
	const struct psd_work_row *row = psd_work_find(&group->made.plan, &program->ops[task.op]);
	cr_assert_eq(row->run(&group->workers[w].work, task, &err), PSD_OK, "%s", err.text);
	if (row->finish)
		row->finish(&group->workers[w].work, task);
}

static void open_worker(struct group *group, unsigned w)
{
	struct psd_worker *worker = &group->workers[w];
	struct psd_error err = {.text = ""};

	lone_worker_make(worker, &group->options, &group->made, (struct psd_memory_options){.host = w},
			 WORKERS * BATCH);
	cr_assert_eq(psd_family_scales.open(&worker->work, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_family_own_updates.open(&worker->work, &err), PSD_OK, "%s", err.text);
	cr_assert_eq(psd_family_sparse.open(&worker->work, &err), PSD_OK, "%s", err.text);
}

static double *zeros(uint64_t n)
{
	double *values = calloc(n, sizeof(*values));

	cr_assert(values);
	return values;
}

/* Returns the e-th value of the exchange, in one of the lists of tensors in the memory. */
static float *value_at(const struct group *group, float *const tensors[], uint64_t e)
{
	const struct psd_plan_item *item = &group->made.plan.items[0];

	for (unsigned i = 0; i < item->n_tensors; i++) {
		const unsigned t = psd_plan_tensor(&group->made.plan, item, i);

		if (e < group->loaded.costed.graph.tensors[t].elements)
			return &tensors[t][e];
		e -= group->loaded.costed.graph.tensors[t].elements;
	}
	cr_assert_fail("no such value");
	return NULL;
}

static struct group *open_group(const char *priority, bool is_nesterov)
{
	struct group *group = calloc(1, sizeof(*group));

	cr_assert(group);
	group->is_nesterov = is_nesterov;
	loaded_print(&group->loaded, scenario, priority, is_nesterov ? "true" : "false");
	loaded_case(&group->made, &group->loaded, 0, 0);
	group->n = group->loaded.costed.graph.parameters;
	group->options = (struct psd_worker_options){
		.made = &group->made, .train = &group->loaded.scenario.train, .n_iterations = ITERATIONS};
	for (unsigned w = 0; w < WORKERS; w++) {
		open_worker(group, w);
		group->history[w] = zeros(group->n);
		group->withheld[w] = zeros(group->n);
		for (unsigned i = 0; i < ITERATIONS; i++)
			group->sent[w][i] = zeros(group->n);
	}
	for (unsigned i = 0; i <= ITERATIONS; i++)
		group->start[i] = zeros(group->n);
	for (uint64_t e = 0; e < group->n; e++)
		group->start[0][e] = (double)*value_at(group, group->workers[0].host.memory.parameters, e);
	return group;
}

static void close_group(struct group *group)
{
	for (unsigned w = 0; w < WORKERS; w++) {
		free(group->history[w]);
		free(group->withheld[w]);
		for (unsigned i = 0; i < ITERATIONS; i++)
			free(group->sent[w][i]);
		psd_memory_release(&group->workers[w].host.memory);
		psd_arena_release(&group->workers[w].host.arena);
	}
	for (unsigned i = 0; i <= ITERATIONS; i++)
		free(group->start[i]);
	for (unsigned i = 0; i < ITERATIONS; i++)
		free(group->sums[i]);
	psd_case_release(&group->made);
	loaded_close(&group->loaded);
	free(group);
}

/* Divided by the global batch, as all gradients are. Larger in some chunks than in others. */
static float gradient_at(unsigned worker, unsigned iteration, uint64_t e)
{
	const uint64_t hash = (e * 2654435761u + worker * 40503u + iteration * 69069u) >> 7;
	const uint64_t place = e / CHUNK * 7919u + iteration * 31u;

	return (float)((int)(hash % 15) - 7) * 0x1p-12f * (float)(1 + worker + place % 5);
}

/* ---- the reference ---- */

/* Returns the e-th parameter that a worker reads. */
static double read_at(const struct group *group, unsigned w, uint32_t iteration, uint64_t e)
{
	double weight = group->start[n_sums[iteration][w]][e] + group->withheld[w][e];

	for (uint32_t i = n_sums[iteration][w]; i < iteration; i++)
		weight += group->sent[w][i][e];
	return weight;
}

/* A worker's update, of which the chosen chunks leave with what was withheld of them. */
static void step(struct group *group, unsigned w, uint32_t iteration)
{
	const bool *is_chosen = chosen_in(group, w, iteration)->is_chosen;

	for (uint64_t e = 0; e < group->n; e++) {
		const double before = group->history[w][e], decay = DECAY / WORKERS * read_at(group, w, iteration, e);
		double *history = &group->history[w][e], *withheld = &group->withheld[w][e];

		*history = MOMENTUM * before + RATE * ((double)gradient_at(w, iteration, e) + decay);
		*withheld -= group->is_nesterov ? (1.0 + MOMENTUM) * *history - MOMENTUM * before : *history;
		if (is_chosen[e / CHUNK < 208 ? e / CHUNK : 207]) {
			group->sent[w][iteration][e] = *withheld;
			*withheld = 0.0;
		}
	}
}

static void expect_near(const struct group *group, unsigned w, uint32_t iteration)
{
	double squares = 0.0, norm = 0.0;

	for (uint64_t e = 0; e < group->n; e++) {
		const double weight = read_at(group, w, iteration, e);

		squares += pow((double)*value_at(group, group->workers[w].host.memory.parameters, e) - weight, 2);
		norm += pow(weight, 2);
	}
	cr_expect_leq(sqrt(squares), NEAR_RATIO * sqrt(norm), "worker %u, iteration %u: off by %g of %g", w, iteration,
		      sqrt(squares), sqrt(norm));
}

/* ---- iterations ---- */

static float *chosen_of(const struct group *group, unsigned w, uint32_t iteration)
{
	return psd_memory_buffer(&group->workers[w].host.memory, PSD_BUFFER_CHOSEN, 0, iteration);
}

static void compute(struct group *group, unsigned w, uint32_t iteration)
{
	float *const *gradients = psd_memory_gradients(&group->workers[w].host.memory, iteration);

	for (uint64_t e = 0; e < group->n; e++)
		*value_at(group, gradients, e) = gradient_at(w, iteration, e);
	step(group, w, iteration);
	run_op(group, w, iteration, PSD_OP_KEEP);
	run_op(group, w, iteration, PSD_OP_GATHER);
}

/* Sums the chunks of all workers, who have sent them. */
static void sum(struct group *group, uint32_t iteration)
{
	const uint64_t n = chosen_in(group, 0, iteration)->travelling[0];

	group->sums[iteration] = calloc(n, sizeof(float));
	cr_assert(group->sums[iteration]);
	memcpy(group->start[iteration + 1], group->start[iteration], group->n * sizeof(double));
	for (unsigned w = 0; w < WORKERS; w++) {
		cr_assert_eq(chosen_in(group, w, iteration)->travelling[0], n);
		for (uint64_t e = 0; e < n; e++)
			group->sums[iteration][e] += chosen_of(group, w, iteration)[e];
		for (uint64_t e = 0; e < group->n; e++)
			group->start[iteration + 1][e] += group->sent[w][iteration][e];
	}
}

static void take_sums(struct group *group, unsigned w, uint32_t n)
{
	for (; group->n_applied[w] < n; group->n_applied[w]++) {
		const uint32_t i = group->n_applied[w];

		memcpy(chosen_of(group, w, i), group->sums[i], chosen_in(group, w, i)->travelling[0] * sizeof(float));
		run_op(group, w, i, PSD_OP_APPLY);
	}
}

/* Chooses once all workers have the sums of an iteration. */
static void choose(struct group *group, uint32_t end)
{
	for (; group->n_chosen < end; group->n_chosen++) {
		const uint32_t i = group->n_chosen;

		for (uint32_t c = 0; c < group->made.plan.n_chunks; c++) {
			float norm = 0.0f;

			for (unsigned w = 0; w < WORKERS; w++)
				norm += psd_memory_buffer(&group->workers[w].host.memory, PSD_BUFFER_NORMS, 1, i)[c];
			for (unsigned w = 0; w < WORKERS; w++)
				psd_memory_buffer(&group->workers[w].host.memory, PSD_BUFFER_NORMS, 1, i)[c] = norm;
		}
		for (unsigned w = 0; w < WORKERS; w++)
			run_op(group, w, i, PSD_OP_CHOOSE);
	}
}

static void expect_choice(const struct group *group, uint32_t iteration)
{
	const struct psd_chunk_selection_table *chosen = chosen_in(group, 0, iteration);
	unsigned n = 0;

	for (uint32_t c = 0; c < group->made.plan.n_chunks; c++)
		n += chosen->is_chosen[c];
	cr_expect_eq(n, ends_clock(iteration) ? group->made.plan.n_chunks : EARLY, "iteration %u", iteration);
	for (unsigned w = 1; w < WORKERS; w++)
		cr_expect_eq(chosen_in(group, w, iteration)->digest, chosen->digest, "iteration %u", iteration);
}

/* No worker owes anything at the end of a clock: all that it has withheld is zero. */
static void expect_debts(const struct group *group, uint32_t iteration)
{
	for (unsigned w = 0; w < WORKERS; w++) {
		const float *residual =
			psd_memory_buffer(&group->workers[w].host.memory, PSD_BUFFER_RESIDUAL, 0, iteration);
		uint64_t n_owed = 0;

		for (uint64_t e = 0; e < group->n; e++)
			n_owed += residual[e] != 0.0f;
		cr_expect_eq(n_owed == 0, ends_clock(iteration), "worker %u, iteration %u", w, iteration);
	}
}

static void expect_same_on_all(const struct group *group)
{
	const struct psd_graph *graph = &group->loaded.costed.graph;

	for (unsigned w = 1; w < WORKERS; w++)
		for (unsigned t = 0; t < graph->n_tensors; t++)
			cr_expect_eq(memcmp(group->workers[w].host.memory.parameters[t],
					    group->workers[0].host.memory.parameters[t],
					    graph->tensors[t].elements * sizeof(float)),
				     0, "worker %u has other bits", w);
}

/* A fence is at the end: all sums have come, nothing was read since. */
static void check(const char *priority, bool is_nesterov)
{
	struct group *group = open_group(priority, is_nesterov);

	cr_assert_eq(group->made.plan.n_chunks, 208);
	for (uint32_t i = 0; i < ITERATIONS; i++) {
		for (unsigned w = 0; w < WORKERS; w++) {
			cr_assert(n_sums[i][w] + STALENESS >= i && n_sums[i][w] <= i);
			take_sums(group, w, n_sums[i][w]);
			run_op(group, w, i, PSD_OP_READ);
			expect_near(group, w, i);
		}
		choose(group, i > STALENESS ? i - STALENESS : 0);
		expect_choice(group, i);
		for (unsigned w = 0; w < WORKERS; w++)
			compute(group, w, i);
		sum(group, i);
		expect_debts(group, i);
	}
	for (unsigned w = 0; w < WORKERS; w++) {
		take_sums(group, w, n_sums[ITERATIONS][w]);
		expect_near(group, w, ITERATIONS);
	}
	expect_same_on_all(group);
	close_group(group);
}

TEST_ROW(own_updates, are_seen_at_once_and_sums_of_chunks_as_they_come, check("magnitude", false))
TEST_ROW(own_updates, have_the_momentum_of_nesterov, check("magnitude", true))
TEST_ROW(own_updates, leave_in_the_order_of_turns, check("generation", false))
