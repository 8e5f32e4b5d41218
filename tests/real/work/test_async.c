/* Updates of an asynchronous server against a plain reference in double precision. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "real/keep/state.h"
#include "real/session/worker_parts.h"
#include "tests/loaded_helper.h"
#include "tests/real/lone_worker.h"
#include "tests/test_with.h"

enum { WORKERS = 3, UPDATES = 7, BATCH = 4 };
#define RATE	   0.5
#define MOMENTUM   0.9
#define DECAY	   0.03
#define NEAR_RATIO 1e-5 /* relative to the norm: floats against doubles */

static const char scenario[] = "title: t\n"
			       "model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 4}\n"
			       "compute: {device: k20}\n"
			       "cluster: {stack: none, nodes: 3, network: {bandwidth: 1Gbps, latency: 50us}}\n"
			       "systems: [{name: s, sync: ps, asynchronous: {rate: %s}}]\n"
			       "train: {data: {kind: synthetic}, iterations: 8, optimiser: {momentum: 0.9, "
			       "weight_decay: 0.03}, learning_rate: {policy: fixed, base: 0.5}}\n";

/* Workers in the order in which their gradients arrive, and the updates by others since each received its parameters:
 * all begin with those before the first update. */
static const unsigned order[UPDATES] = {0, 0, 1, 0, 2, 1, 0}, ages[UPDATES] = {0, 0, 2, 1, 4, 2, 2};

static uint32_t find_update(const struct psd_case *made, unsigned worker)
{
	uint32_t o = 0;

	while (made->program.ops[o].kind != PSD_OP_REDUCE || made->program.ops[o].payload.root != worker ||
	       made->program.ops[o].item != 0)
		o++;
	return o;
}

static double gradient_at(unsigned update, uint64_t e)
{
	return (double)((int)((e * 2654435761u + update * 69069u) >> 7) % 15 - 7) * 0x1p-12;
}

/* A work opened anew takes the numbers of the one before from its checkpoint. */
static void reopen(struct psd_worker *worker)
{
	struct psd_state states[2] = {{.host = &worker->host}, {.host = &worker->host}};
	struct psd_error err = {.text = ""};
	uint64_t n_bytes = 0;

	for (unsigned s = 0; s < 2; s++) {
		const struct psd_keeper *keeper = &worker->host.keepers[s];

		keeper->add(keeper->context, &states[s]);
		cr_assert(states[s].n_parts == 1 && psd_file_tensor_bytes(&states[s].parts[0].tensor, &n_bytes));
		if (s == 0)
			cr_assert_eq(psd_family_async.open(&worker->work, &err), PSD_OK);
		else
			memcpy(states[1].parts[0].here, states[0].parts[0].here, n_bytes);
	}
	cr_assert_eq(worker->host.keepers[1].take(worker->host.keepers[1].context, "", &err), PSD_OK);
	psd_state_close(&states[0]);
	psd_state_close(&states[1]);
}

/* The first item's part of shard 0, one tensor, as far as the shard has it. cut: number of updates before a checkpoint;
 * UPDATES: there is none. */
static void check(const char *rate, bool is_by_staleness, unsigned cut)
{
	struct loaded loaded;
	struct psd_case made;
	struct psd_worker_options options = {.made = &made};
	struct psd_worker *worker = calloc(1, sizeof(*worker));
	struct psd_error err = {.text = ""};

	cr_assert(worker);
	loaded_print(&loaded, scenario, rate);
	loaded_case(&made, &loaded, 0, 0);
	options.train = &loaded.scenario.train;
	lone_worker_make(worker, &options, &made, (struct psd_memory_options){0}, WORKERS * BATCH);
	psd_memory_fill_own(&worker->host.memory);
	cr_assert_eq(psd_family_async.open(&worker->work, &err), PSD_OK);

	const struct psd_memory *memory = &worker->host.memory;
	const struct psd_range part = psd_memory_own_part(memory, 0, 0);
	const unsigned t = psd_plan_tensor(&made.plan, &made.plan.items[0], 0);
	const uint64_t n = psd_plan_piece(&made.plan, &made.plan.items[0], part, 0).elements;
	double *weight = calloc(2 * n, sizeof(*weight)), *history = weight + n, squares = 0.0, norm = 0.0;

	cr_assert(weight && n > 0 && part.first == 0);
	for (uint64_t e = 0; e < n; e++)
		weight[e] = (double)memory->parameters[t][e];
	for (unsigned u = 0; u < UPDATES; u++) {
		if (u == cut)
			reopen(worker);
		const bool is_own = order[u] == 0;
		const double divisor = is_by_staleness && ages[u] > 1 ? ages[u] : 1;
		float *values =
			is_own ? psd_memory_gradients(memory, u)[t] : psd_memory_received(memory, 0, 0, u, order[u]);
		const float *back = is_own ? memory->parameters[t] : values;

		for (uint64_t e = 0; e < n; e++)
			values[e] = (float)gradient_at(u, e);
		const struct psd_task task = {u, find_update(&made, order[u])};
		cr_assert_eq(psd_work_find(&made.plan, &made.program.ops[task.op])->run(&worker->work, task, &err),
			     PSD_OK);
		for (uint64_t e = 0; e < n; e++) { /* by the mean over the worker's own samples */
			history[e] = MOMENTUM * history[e] +
				     RATE / divisor * (WORKERS * gradient_at(u, e) + DECAY * weight[e]);
			weight[e] -= history[e];
			squares += pow((double)back[e] - weight[e], 2);
			norm += pow(weight[e], 2);
		}
		cr_expect_eq(memcmp(back, psd_memory_part(memory, PSD_BUFFER_PART, 0, 0), n * sizeof(float)), 0);
	}
	cr_expect_leq(sqrt(squares), NEAR_RATIO * sqrt(norm), "%s: off by %g of %g", rate, sqrt(squares), sqrt(norm));
	free(weight);
	psd_memory_release(&worker->host.memory);
	psd_arena_release(&worker->host.arena);
	psd_case_release(&made);
	loaded_close(&loaded);
	free(worker);
}

TEST_ROW(async, a_server_updates_by_one_gradient_at_a_time, check("plain", false, UPDATES))
TEST_ROW(async, the_rate_is_divided_by_the_staleness_of_a_gradient, check("by-staleness", true, UPDATES))
TEST_ROW(async, a_checkpoint_keeps_the_staleness_of_gradients, check("by-staleness", true, 4))
