/* The scheduler on programs written by hand, and on real ones executed in random orders without any clock. */
#define _DEFAULT_SOURCE
#include <criterion/criterion.h>
#include <stdlib.h>

#include "engine/program/interpreter.h"
#include "engine/program/scheduler.h"
#include "tests/simulate_helper.h"
#include "tests/test_with.h"

/* ---- ready queues ---- */

enum { N_ENTRIES = 60 };

static uint64_t next_random(uint64_t *state) /* xorshift64: any start but 0 */
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Few turns and iterations, so that most entries tie in one or both; operations differ. */
static struct psd_ready entry(unsigned i)
{
	return (struct psd_ready){(int64_t)(i % 3) - 1, {i / 3 % 2, i}};
}

static void shuffle(struct psd_ready *entries, uint64_t seed)
{
	for (unsigned i = 0; i < N_ENTRIES; i++)
		entries[i] = entry(i);
	for (unsigned i = N_ENTRIES; i > 1; i--) {
		const unsigned j = (unsigned)(next_random(&seed) % i);
		const struct psd_ready swapped = entries[i - 1];
		entries[i - 1] = entries[j];
		entries[j] = swapped;
	}
}

Test(scheduler, the_order_of_ready_entries_is_total)
{
	for (unsigned i = 0; i < N_ENTRIES; i++)
		for (unsigned j = 0; j < N_ENTRIES; j++) {
			const struct psd_ready a = entry(i), b = entry(j);
			const bool a_first = psd_ready_goes_before(&a, &b);
			const bool b_first = psd_ready_goes_before(&b, &a);
			cr_assert_eq(a_first + b_first, i == j ? 0 : 1, "entries %u and %u", i, j);
			for (unsigned k = 0; k < N_ENTRIES; k++) {
				const struct psd_ready c = entry(k);
				if (a_first && psd_ready_goes_before(&b, &c))
					cr_assert(psd_ready_goes_before(&a, &c), "entries %u, %u, %u", i, j, k);
			}
		}
}

Test(scheduler, smaller_turns_leave_first_then_older_iterations_then_smaller_operations)
{
	const struct psd_ready in_order[] = {
		{-1, {1, 9}}, {0, {0, 4}}, {0, {0, 5}}, {0, {1, 2}}, {7, {0, 1}},
	};

	for (unsigned i = 0; i + 1 < sizeof(in_order) / sizeof(in_order[0]); i++)
		cr_expect(psd_ready_goes_before(&in_order[i], &in_order[i + 1]), "entry %u", i);
}

/* Turns of the second program end with 5: six for each iteration. */
Test(scheduler, the_oldest_of_several_iterations_goes_first_but_on_devices)
{
	struct psd_op ops[] = {{.resource = PSD_RESOURCE_NIC, .turn = 0},
			       {.resource = PSD_RESOURCE_NIC, .turn = 5},
			       {.resource = PSD_RESOURCE_DEVICE, .turn = 5}};
	const struct psd_program two = {.ops = ops, .n_ops = 3, .window = 2},
				 three = {.ops = ops, .n_ops = 3, .window = 3, .iteration_turns = 6};

	cr_expect_lt(psd_program_turn(&two, 0, 8), psd_program_turn(&two, 1, 7));
	cr_expect_gt(psd_program_turn(&three, 0, 8), psd_program_turn(&three, 1, 7));
	cr_expect_lt(psd_program_turn(&three, 0, 7), psd_program_turn(&three, 1, 7));
	cr_expect_eq(psd_program_turn(&three, 2, 8), 5);
}

Test(scheduler, equal_turns_leave_in_order_of_operation_whatever_order_they_came_in)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct psd_ready entries[N_ENTRIES];
		struct psd_heap queue = {0};
		struct psd_ready taken, before = {INT64_MIN, {0, 0}};
		unsigned n_taken = 0;

		shuffle(entries, seed);
		for (unsigned i = 0; i < N_ENTRIES; i++)
			cr_assert(psd_ready_push(&queue, entries[i]));
		for (; psd_ready_pop(&queue, &taken); n_taken++) {
			cr_assert(n_taken == 0 || psd_ready_goes_before(&before, &taken),
				  "seed %lu: operation %u left before %u", seed, before.task.op, taken.task.op);
			before = taken;
		}
		cr_assert_eq(n_taken, N_ENTRIES, "seed %lu", seed);
		free(queue.entries);
	}
}

/* ---- a program by hand ---- */

enum { SMALL_OPS = 4, SMALL_EDGES = 8 };

struct small_edge {
	uint32_t before, waits;
	uint32_t distance;
};

/* Operations on the device of one host, all of turn 0. Scheduler and edges point into it: must not move. */
struct small_program {
	struct psd_plan plan;
	struct psd_local_sgd local;
	struct psd_op ops[SMALL_OPS];
	struct psd_edge dependencies[SMALL_EDGES];
	struct psd_edge dependents[SMALL_EDGES];
	uint32_t waits[SMALL_OPS];
	struct psd_program program;
	struct psd_duties duties;
	struct psd_scheduler scheduler;
};

static void small_open_from(struct small_program *small, uint32_t n_ops, const struct small_edge *edges,
			    uint32_t n_edges, struct psd_iterations iterations)
{
	struct psd_error err = {.text = ""};
	uint32_t n_dependencies = 0, n_dependents = 0;

	*small = (struct small_program){
		.program = {.plan = &small->plan, .ops = small->ops, .n_ops = n_ops, .n_edges = n_edges, .window = 2}};
	for (uint32_t e = 0; e < n_edges; e++)
		if (small->program.window <= edges[e].distance)
			small->program.window = edges[e].distance + 1;
	for (uint32_t op = 0; op < n_ops; op++) {
		small->ops[op] = (struct psd_op){.kind = PSD_OP_FORWARD, .resource = PSD_RESOURCE_DEVICE};
		small->ops[op].first_dependency = n_dependencies;
		small->ops[op].first_dependent = n_dependents;
		for (uint32_t e = 0; e < n_edges; e++) {
			if (edges[e].waits == op)
				small->dependencies[n_dependencies++] =
					(struct psd_edge){edges[e].before, edges[e].distance};
			if (edges[e].before == op)
				small->dependents[n_dependents++] =
					(struct psd_edge){edges[e].waits, edges[e].distance};
		}
		small->ops[op].n_dependencies = n_dependencies - small->ops[op].first_dependency;
		small->ops[op].n_dependents = n_dependents - small->ops[op].first_dependent;
		small->waits[op] = small->ops[op].n_dependencies;
	}
	small->program.dependencies = small->dependencies;
	small->program.dependents = small->dependents;
	small->duties = (struct psd_duties){.waits = small->waits, .n_carried = n_ops};
	cr_assert_eq(psd_scheduler_init(&small->scheduler, &small->program, &small->duties, iterations, &err), PSD_OK,
		     "%s", err.text);
}

static void small_open(struct small_program *small, uint32_t n_ops, const struct small_edge *edges, uint32_t n_edges,
		       uint32_t n_iterations)
{
	small_open_from(small, n_ops, edges, n_edges, (struct psd_iterations){.first = 0, .end = n_iterations});
}

/* All iterations are done. */
static void small_close_complete(struct small_program *small)
{
	cr_expect(psd_scheduler_is_complete(&small->scheduler));
	psd_scheduler_release(&small->scheduler);
}

/* The next task must be this one; it stays undone. */
static struct psd_task expect_next(struct small_program *small, uint32_t iteration, uint32_t op)
{
	struct psd_task task = {0};

	cr_assert(psd_scheduler_take(&small->scheduler, PSD_RESOURCE_DEVICE, &task),
		  "nothing is ready, expected operation %u of iteration %u", op, iteration);
	cr_assert(task.iteration == iteration && task.op == op,
		  "operation %u of iteration %u is next, expected %u of %u", task.op, task.iteration, op, iteration);
	return task;
}

static void expect_nothing(struct small_program *small)
{
	struct psd_task task = {0};

	cr_assert_not(psd_scheduler_take(&small->scheduler, PSD_RESOURCE_DEVICE, &task), "operation %u is ready",
		      task.op);
}

Test(scheduler, an_operation_is_ready_when_the_last_it_waits_for_is_done)
{
	const struct small_edge edges[] = {{0, 2, 0}, {1, 2, 0}};
	struct small_program small;

	small_open(&small, 3, edges, 2, 1);
	const struct psd_task a = expect_next(&small, 0, 0);
	const struct psd_task b = expect_next(&small, 0, 1);
	psd_scheduler_finish(&small.scheduler, b);
	expect_nothing(&small);
	psd_scheduler_finish(&small.scheduler, a);
	cr_expect_not(psd_scheduler_is_complete(&small.scheduler));
	psd_scheduler_finish(&small.scheduler, expect_next(&small, 0, 2));
	expect_nothing(&small);
	small_close_complete(&small);
}

Test(scheduler, an_edge_to_the_next_iteration_holds_that_one_alone)
{
	const struct small_edge edges[] = {{0, 1, 0}, {1, 0, 1}};
	struct small_program small;

	small_open(&small, 2, edges, 2, 3);
	for (uint32_t iteration = 0; iteration < 3; iteration++) {
		psd_scheduler_finish(&small.scheduler, expect_next(&small, iteration, 0));
		const struct psd_task second = expect_next(&small, iteration, 1);
		expect_nothing(&small); /* operation 0 of the iteration after waits for it */
		cr_expect_not(psd_scheduler_is_complete(&small.scheduler));
		psd_scheduler_finish(&small.scheduler, second);
	}
	expect_nothing(&small);
	small_close_complete(&small);
}

Test(scheduler, two_iterations_are_in_flight_and_no_more)
{
	struct small_program small;

	small_open(&small, 1, NULL, 0, 4);
	const struct psd_task first = expect_next(&small, 0, 0);
	const struct psd_task second = expect_next(&small, 1, 0);
	expect_nothing(&small);
	psd_scheduler_finish(&small.scheduler, second); /* the oldest is not done: iteration 2 stays away */
	expect_nothing(&small);
	psd_scheduler_finish(&small.scheduler, first); /* both are done: two more begin */
	psd_scheduler_finish(&small.scheduler, expect_next(&small, 2, 0));
	cr_expect_not(psd_scheduler_is_complete(&small.scheduler));
	psd_scheduler_finish(&small.scheduler, expect_next(&small, 3, 0));
	expect_nothing(&small);
	small_close_complete(&small);
}

/* Operation 1 waits for operation 0 of the iteration before, which for iteration 2 is done before iteration 2 begins.
 */
Test(scheduler, operations_done_before_an_iteration_begins_count)
{
	const struct small_edge edges[] = {{0, 1, 1}};
	struct small_program small;

	small_open(&small, 2, edges, 1, 3);
	const struct psd_task a = expect_next(&small, 0, 0);
	const struct psd_task b =
		expect_next(&small, 0, 1); /* before the first iteration there is nothing to wait for */
	psd_scheduler_finish(&small.scheduler, expect_next(&small, 1, 0));
	expect_nothing(&small); /* operation 1 of iteration 1 waits for a */
	psd_scheduler_finish(&small.scheduler, a);
	const struct psd_task c = expect_next(&small, 1, 1);
	psd_scheduler_finish(&small.scheduler, b);
	psd_scheduler_finish(&small.scheduler, expect_next(&small, 2, 0));
	psd_scheduler_finish(&small.scheduler, expect_next(&small, 2, 1));
	psd_scheduler_finish(&small.scheduler, c);
	expect_nothing(&small);
	small_close_complete(&small);
}

/* The window is four iterations: the oldest and three more. */
Test(scheduler, an_edge_of_three_iterations_holds_the_third_one_after)
{
	const struct small_edge edges[] = {{0, 0, 3}};
	struct small_program small;

	small_open(&small, 1, edges, 1, 6);
	const struct psd_task first = expect_next(&small, 0, 0);
	const struct psd_task second = expect_next(&small, 1, 0);
	const struct psd_task third = expect_next(&small, 2, 0);
	expect_nothing(&small); /* iteration 3 waits for iteration 0, later ones are not in the window */
	psd_scheduler_finish(&small.scheduler, second);
	expect_nothing(&small); /* the dependencies of iteration 4 are done, but it has not begun */
	psd_scheduler_finish(&small.scheduler, first);
	const struct psd_task fourth = expect_next(&small, 3, 0);
	psd_scheduler_finish(&small.scheduler, expect_next(&small, 4, 0));
	expect_nothing(&small); /* iteration 5 waits for iteration 2 */
	psd_scheduler_finish(&small.scheduler, third);
	psd_scheduler_finish(&small.scheduler, expect_next(&small, 5, 0));
	cr_expect_not(psd_scheduler_is_complete(&small.scheduler));
	psd_scheduler_finish(&small.scheduler, fourth);
	small_close_complete(&small);
}

/* Operation 1 of iteration 2 waits for operation 0 of iteration 0 alone, and yet stays behind the fence of iteration 1.
 */
Test(scheduler, a_fence_holds_all_iterations_behind_it)
{
	const struct small_edge edges[] = {{0, 0, 1}, {0, 1, 2}};
	struct small_program small;

	small_open(&small, 2, edges, 2, 3);
	psd_scheduler_set_fence(&small.scheduler, 1);
	psd_scheduler_finish(&small.scheduler, expect_next(&small, 0, 0));
	const struct psd_task last = expect_next(&small, 0, 1);
	psd_scheduler_finish(&small.scheduler, expect_next(&small, 1, 1)); /* ready before the fence was there */
	expect_nothing(&small);
	cr_expect_not(psd_scheduler_is_at_fence(&small.scheduler));
	psd_scheduler_finish(&small.scheduler, last);
	cr_expect(psd_scheduler_is_at_fence(&small.scheduler));
	expect_nothing(&small); /* until it is passed */
	psd_scheduler_pass_fence(&small.scheduler, 0);
	psd_scheduler_finish(&small.scheduler, expect_next(&small, 1, 0));
	psd_scheduler_finish(&small.scheduler, expect_next(&small, 2, 0));
	psd_scheduler_finish(&small.scheduler, expect_next(&small, 2, 1));
	small_close_complete(&small);
}

Test(scheduler, behind_a_fence_nothing_starts_before_all_is_done)
{
	/* the first of an iteration waits for the first of the one before only, so that without a fence it overtakes
	 * the second */
	const struct small_edge edges[] = {{0, 0, 1}, {0, 1, 0}};
	struct small_program small;

	small_open(&small, 2, edges, 2, 3);
	psd_scheduler_set_fence(&small.scheduler, 1);
	psd_scheduler_finish(&small.scheduler, expect_next(&small, 0, 0));
	const struct psd_task second = expect_next(&small, 0, 1);
	expect_nothing(&small);
	psd_scheduler_finish(&small.scheduler, second);
	psd_scheduler_pass_fence(&small.scheduler, 0);
	psd_scheduler_finish(&small.scheduler, expect_next(&small, 1, 0));
	/* no other fence: iteration 2 may begin while 1 is not complete */
	const struct psd_task late = expect_next(&small, 1, 1);
	psd_scheduler_finish(&small.scheduler, expect_next(&small, 2, 0));
	psd_scheduler_finish(&small.scheduler, late);
	psd_scheduler_finish(&small.scheduler, expect_next(&small, 2, 1));
	small_close_complete(&small);
}

/* Operation 1 of iteration 2 is kept by the fence of iteration 1, and then by that of iteration 2. */
Test(scheduler, the_next_fence_keeps_what_this_one_has_kept)
{
	const struct small_edge edges[] = {{0, 0, 1}, {0, 1, 2}};
	struct small_program small;

	small_open(&small, 2, edges, 2, 3);
	psd_scheduler_set_fence(&small.scheduler, 1);
	psd_scheduler_finish(&small.scheduler, expect_next(&small, 0, 0));
	psd_scheduler_finish(&small.scheduler, expect_next(&small, 0, 1));
	psd_scheduler_finish(&small.scheduler, expect_next(&small, 1, 1)); /* ready before the fence was there */
	psd_scheduler_pass_fence(&small.scheduler, 2);
	const struct psd_task last = expect_next(&small, 1, 0);
	expect_nothing(&small);
	psd_scheduler_finish(&small.scheduler, last);
	expect_nothing(&small);
	psd_scheduler_pass_fence(&small.scheduler, 0);
	psd_scheduler_finish(&small.scheduler, expect_next(&small, 2, 0));
	psd_scheduler_finish(&small.scheduler, expect_next(&small, 2, 1));
	small_close_complete(&small);
}

/* Operation 0 waits for itself three iterations before: nothing was executed before the first. */
Test(scheduler, a_run_begins_with_its_first_iteration)
{
	const struct small_edge edges[] = {{0, 0, 3}, {0, 1, 0}};
	struct small_program small;

	small_open_from(&small, 2, edges, 2, (struct psd_iterations){.first = 7, .end = 9});
	cr_expect_eq(small.scheduler.iteration, 7);
	for (uint32_t i = 7; i < 9; i++) {
		psd_scheduler_finish(&small.scheduler, expect_next(&small, i, 0));
		psd_scheduler_finish(&small.scheduler, expect_next(&small, i, 1));
	}
	expect_nothing(&small);
	small_close_complete(&small);
}

/* 0 -> 1 -> 2 on the device, and 0 -> 3 on the CPU: 1 may follow 0, and 2 follow 1, before they are done. */
Test(scheduler, a_stream_operation_is_ready_when_the_one_before_is_given)
{
	const struct small_edge edges[] = {{0, 1, 0}, {1, 2, 0}, {0, 3, 0}};
	struct small_program small;
	struct psd_task task;

	small_open(&small, 4, edges, 3, 1);
	small.ops[3].resource = PSD_RESOURCE_CPU;
	small.scheduler.streams = 1u << PSD_RESOURCE_DEVICE;
	const struct psd_task first = expect_next(&small, 0, 0);
	expect_nothing(&small);
	psd_scheduler_give(&small.scheduler, first);
	const struct psd_task second = expect_next(&small, 0, 1);
	expect_nothing(&small);
	psd_scheduler_give(&small.scheduler, second);
	const struct psd_task third = expect_next(&small, 0, 2);
	cr_expect_not(psd_scheduler_take(&small.scheduler, PSD_RESOURCE_CPU, &task), "its input is not there");
	psd_scheduler_finish(&small.scheduler, first);
	cr_assert(psd_scheduler_take(&small.scheduler, PSD_RESOURCE_CPU, &task) && task.op == 3);
	expect_nothing(&small);
	psd_scheduler_finish(&small.scheduler, second);
	psd_scheduler_finish(&small.scheduler, third);
	psd_scheduler_finish(&small.scheduler, task);
	small_close_complete(&small);
}

/* Operation 1 waits for operation 0 of the iteration before, and iteration 2 begins while that is given and not done:
 * it need not wait, nor does 2, which may be an iteration's end. */
Test(scheduler, operations_given_before_an_iteration_begins_count_in_its_stream)
{
	const struct small_edge edges[] = {{0, 1, 1}, {1, 2, 0}};
	struct small_program small;

	small_open(&small, 3, edges, 2, 3);
	small.scheduler.streams = 1u << PSD_RESOURCE_DEVICE;
	small.ops[2].kind = PSD_OP_BARRIER;
	const struct psd_task a = expect_next(&small, 0, 0), b = expect_next(&small, 0, 1);
	const struct psd_task c = expect_next(&small, 1, 0);
	psd_scheduler_give(&small.scheduler, c);
	psd_scheduler_give(&small.scheduler, b);
	const struct psd_task end = expect_next(&small, 0, 2);
	expect_nothing(&small); /* 1 of iteration 1 waits for a */
	psd_scheduler_finish(&small.scheduler, b);
	psd_scheduler_finish(&small.scheduler, a);
	psd_scheduler_finish(&small.scheduler, end);
	const struct psd_task d = expect_next(&small, 1, 1), e = expect_next(&small, 2, 0);
	const struct psd_task f = expect_next(&small, 2, 1); /* behind c */
	psd_scheduler_finish(&small.scheduler, c);
	psd_scheduler_finish(&small.scheduler, d);
	psd_scheduler_finish(&small.scheduler, e);
	psd_scheduler_finish(&small.scheduler, f);
	psd_scheduler_finish(&small.scheduler, expect_next(&small, 1, 2));
	psd_scheduler_finish(&small.scheduler, expect_next(&small, 2, 2));
	small_close_complete(&small);
}

/* ---- local steps ---- */

/* A server with one operation, written by hand, which it executes where iterations exchange: every third of
 * n_iterations. */
static void server_open(struct small_program *small, struct psd_iterations iterations)
{
	small_open(small, 1, NULL, 0, 1);
	psd_scheduler_release(&small->scheduler);
	small->local = (struct psd_local_sgd){.steps = 3, .window = 4};
	small->plan.local = &small->local;
	small->ops[0].is_exchange = true;
	cr_assert_eq(psd_scheduler_init(&small->scheduler, &small->program, &small->duties, iterations,
					&(struct psd_error){.text = ""}),
		     PSD_OK);
}

/* Iterations 2 and 5 exchange, and the run's last one, 6. */
Test(scheduler, a_host_with_nothing_to_do_in_local_steps_goes_on_to_the_exchange)
{
	struct small_program small;

	server_open(&small, (struct psd_iterations){.first = 0, .end = 7});
	psd_scheduler_begin(&small.scheduler);
	for (uint32_t e = 0; e < 3; e++) {
		const uint32_t exchange = (const uint32_t[]){2, 5, 6}[e];

		cr_expect_eq(small.scheduler.iteration, exchange);
		cr_expect_not(psd_scheduler_is_complete(&small.scheduler));
		psd_scheduler_finish(&small.scheduler, expect_next(&small, exchange, 0));
	}
	expect_nothing(&small);
	small_close_complete(&small);
}

/* Fences before 1, where there is nothing to do on either side, before 4, and before 5, an exchange. */
Test(scheduler, a_host_with_nothing_to_do_stops_at_each_fence)
{
	struct small_program small;

	server_open(&small, (struct psd_iterations){.first = 0, .end = 7});
	psd_scheduler_set_fence(&small.scheduler, 1);
	psd_scheduler_begin(&small.scheduler);
	cr_expect_eq(small.scheduler.iteration, 1);
	cr_expect(psd_scheduler_is_at_fence(&small.scheduler));
	expect_nothing(&small);
	psd_scheduler_pass_fence(&small.scheduler, 4);
	cr_expect_eq(small.scheduler.iteration, 2, "iteration 1 is done, 2 exchanges");
	psd_scheduler_finish(&small.scheduler, expect_next(&small, 2, 0));
	cr_expect_eq(small.scheduler.iteration, 4);
	cr_expect(psd_scheduler_is_at_fence(&small.scheduler));
	psd_scheduler_pass_fence(&small.scheduler, 5);
	cr_expect_eq(small.scheduler.iteration, 5);
	cr_expect(psd_scheduler_is_at_fence(&small.scheduler));
	expect_nothing(&small);
	psd_scheduler_pass_fence(&small.scheduler, 0);
	psd_scheduler_finish(&small.scheduler, expect_next(&small, 5, 0));
	psd_scheduler_finish(&small.scheduler, expect_next(&small, 6, 0));
	small_close_complete(&small);
}

/* Windows of 4 with 2 steps where their number is even, and 1 where it is odd: 1, 3; 4, 5, 6, 7; 9, and the end. */
Test(scheduler, steps_that_are_known_are_of_windows)
{
	struct small_program small;

	server_open(&small, (struct psd_iterations){.first = 0, .end = 11, .steps = {2, 1}});
	psd_scheduler_begin(&small.scheduler);
	for (uint32_t e = 0; e < 8; e++)
		psd_scheduler_finish(&small.scheduler,
				     expect_next(&small, (const uint32_t[]){1, 3, 4, 5, 6, 7, 9, 10}[e], 0));
	small_close_complete(&small);
}

/* Iteration 6 began while window 1 had 3 steps, in which it exchanges. Window 3 replaces window 1 with 4 steps, in
 * which it would not. An iteration that has begun stays as it is. */
Test(scheduler, an_iteration_stays_what_it_was_when_it_began)
{
	const struct small_edge edges[] = {{0, 1, 0}};
	struct small_program small;

	small_open(&small, 2, edges, 1, 1);
	psd_scheduler_release(&small.scheduler);
	small.local = (struct psd_local_sgd){.steps = 3, .window = 4};
	small.plan.local = &small.local;
	small.ops[1].is_exchange = true; /* operation 0 is executed in every iteration */
	cr_assert_eq(psd_scheduler_init(&small.scheduler, &small.program, &small.duties,
					(struct psd_iterations){.first = 6, .end = 16, .steps = {3, 3}},
					&(struct psd_error){.text = ""}),
		     PSD_OK);
	psd_scheduler_begin(&small.scheduler);
	psd_period_set_steps(&small.scheduler.period, 3, 4);
	cr_expect_not(psd_period_exchanges(&small.scheduler.period, 6));
	psd_scheduler_finish(&small.scheduler, expect_next(&small, 6, 0));
	psd_scheduler_finish(&small.scheduler, expect_next(&small, 6, 1));
	cr_expect_eq(small.scheduler.iteration, 7);
	psd_scheduler_release(&small.scheduler);
}

/* Operation 1 waits for two messages. The window is two iterations, so that 2 and 3 are behind it at first. */
Test(scheduler, early_arrivals_count_when_their_iteration_begins)
{
	const struct small_edge edges[] = {{1, 0, 1}};
	struct small_program small;

	small_open(&small, 2, edges, 1, 1);
	psd_scheduler_release(&small.scheduler);
	small.waits[1] = 2;
	cr_assert_eq(psd_scheduler_init(&small.scheduler, &small.program, &small.duties,
					(struct psd_iterations){.first = 0, .end = 4}, &(struct psd_error){.text = ""}),
		     PSD_OK);
	for (uint32_t i = 0; i < 4; i++) /* the later first */
		psd_scheduler_arrive(&small.scheduler, (struct psd_task){3 - i, 1});
	for (uint32_t i = 0; i < 4; i++) {
		psd_scheduler_finish(&small.scheduler, expect_next(&small, i, 0));
		expect_nothing(&small); /* one message of two is there */
		psd_scheduler_arrive(&small.scheduler, (struct psd_task){i, 1});
		psd_scheduler_finish(&small.scheduler, expect_next(&small, i, 1));
	}
	small_close_complete(&small);
}

Test(scheduler, a_host_without_operations_is_complete_at_once)
{
	struct small_program small;

	small_open(&small, 0, NULL, 0, 3);
	expect_nothing(&small);
	small_close_complete(&small);
}

/* ---- real programs in random orders ---- */

enum { HOSTS_MAX = 12, ITERATIONS = 4, LOCAL_ITERATIONS = 11 };

/* Every host's scheduler, with tasks taken and messages delivered in any order that the rules allow. */
struct world {
	const struct psd_program *program;
	struct psd_duties duties[HOSTS_MAX];
	struct psd_scheduler scheds[HOSTS_MAX];
	unsigned n_hosts;
	uint32_t n_iterations;
	uint32_t *n_done;	/* per host, iteration and operation */
	uint32_t *n_collective; /* per iteration and operation: workers on which it is ready */
	struct {
		unsigned host;
		struct psd_task task;
		bool is_arrival; /* else something that runs */
	} pending[65536];
	unsigned n_pending;
	struct { /* in order */
		struct psd_task tasks[PSD_MOST_AHEAD + 1];
		unsigned n;
	} given[HOSTS_MAX][PSD_RESOURCES];
	unsigned n_ahead; /* that devices are given */
	uint64_t random;
	const char *name;
	uint64_t seed;
};

static uint32_t count_senders(const void *context, const struct psd_op *receive, unsigned host)
{
	const struct psd_program *program = context;
	return psd_payload_senders(&receive->payload, &program->plan->layout, host);
}

static void add_pending(struct world *world, unsigned host, struct psd_task task, bool is_arrival)
{
	cr_assert_lt(world->n_pending, sizeof(world->pending) / sizeof(world->pending[0]));
	world->pending[world->n_pending].host = host;
	world->pending[world->n_pending].task = task;
	world->pending[world->n_pending++].is_arrival = is_arrival;
}

static void finish(struct world *world, unsigned host, struct psd_task task)
{
	uint32_t *n_done =
		&world->n_done[(host * world->n_iterations + task.iteration) * world->program->n_ops + task.op];

	cr_assert_eq(++*n_done, 1, "%s, seed %lu: host %u does operation %u of iteration %u twice", world->name,
		     world->seed, host, task.op, task.iteration);
	psd_scheduler_finish(&world->scheds[host], task);
}

/* Ends on every worker once the last has come to it. */
static void join_collective(struct world *world, struct psd_task task)
{
	const unsigned n_workers = world->program->plan->layout.workers;

	if (++world->n_collective[task.iteration * world->program->n_ops + task.op] < n_workers)
		return;
	for (unsigned host = 0; host < n_workers; host++)
		finish(world, host, task);
}

static bool take_for(struct world *world, unsigned host, enum psd_resource resource)
{
	const unsigned most = resource == PSD_RESOURCE_DEVICE ? world->n_ahead : 0;
	struct psd_task task;

	if (world->given[host][resource].n > most || !psd_scheduler_take(&world->scheds[host], resource, &task))
		return false;
	world->given[host][resource].tasks[world->given[host][resource].n++] = task;
	if (resource == PSD_RESOURCE_DEVICE && world->n_ahead > 0)
		psd_scheduler_give(&world->scheds[host], task);
	add_pending(world, host, task, false);
	return true;
}

/* The first that the resource was given. */
static struct psd_task take_given(struct world *world, unsigned host, enum psd_resource resource)
{
	struct psd_task *tasks = world->given[host][resource].tasks;
	const struct psd_task first = tasks[0];

	world->given[host][resource].n--;
	for (unsigned i = 0; i < world->given[host][resource].n; i++)
		tasks[i] = tasks[i + 1];
	return first;
}

/* Takes what is ready on all hosts until nothing is. */
static void take_ready(struct world *world)
{
	bool has_progress = true;

	while (has_progress) {
		has_progress = false;
		for (unsigned host = 0; host < world->n_hosts; host++) {
			struct psd_task task;
			while (psd_scheduler_take_instant(&world->scheds[host], &task)) {
				has_progress = true;
				if (world->program->ops[task.op].kind == PSD_OP_COLLECTIVE)
					join_collective(world, task);
				else
					finish(world, host, task);
			}
			for (int r = 0; r < PSD_RESOURCES; r++)
				has_progress = take_for(world, host, (enum psd_resource)r) || has_progress;
		}
	}
}

static void end_task(struct world *world, unsigned host, struct psd_task task)
{
	const struct psd_op *op = &world->program->ops[task.op];

	if (op->kind == PSD_OP_SEND)
		for (unsigned to = 0; to < world->n_hosts; to++)
			if (to != host &&
			    psd_payload_bytes_between(&op->payload, &world->program->plan->layout, host, to) > 0)
				add_pending(world, to, (struct psd_task){task.iteration, task.op + 1}, true);
	finish(world, host, task);
}

static void world_open(struct world *world, const struct psd_program *program, const char *name, uint64_t seed)
{
	struct psd_error err = {.text = ""};

	*world = (struct world){.program = program, .name = name, .seed = seed, .random = seed};
	world->n_ahead = seed % 2 ? 0 : PSD_MOST_AHEAD;
	world->n_hosts = psd_layout_hosts(&program->plan->layout);
	world->n_iterations = psd_plan_steps(program->plan) > 1 || program->plan->local ? LOCAL_ITERATIONS : ITERATIONS;
	cr_assert_leq(world->n_hosts, HOSTS_MAX);
	world->n_done = calloc((size_t)world->n_hosts * world->n_iterations * program->n_ops, sizeof(*world->n_done));
	world->n_collective = calloc((size_t)world->n_iterations * program->n_ops, sizeof(*world->n_collective));
	cr_assert(world->n_done != NULL && world->n_collective != NULL);
	for (unsigned host = 0; host < world->n_hosts; host++) {
		cr_assert_eq(psd_duties_make(&world->duties[host], program, host, count_senders, program, &err), PSD_OK,
			     "%s", err.text);
		cr_assert_eq(psd_scheduler_init(&world->scheds[host], program, &world->duties[host],
						(struct psd_iterations){.first = 0, .end = world->n_iterations}, &err),
			     PSD_OK, "%s", err.text);
		psd_scheduler_begin(&world->scheds[host]);
		world->scheds[host].streams = world->n_ahead > 0 ? 1u << PSD_RESOURCE_DEVICE : 0;
	}
}

static void world_close(struct world *world)
{
	for (unsigned host = 0; host < world->n_hosts; host++) {
		psd_scheduler_release(&world->scheds[host]);
		psd_duties_release(&world->duties[host]);
	}
	free(world->n_collective);
	free(world->n_done);
}

/* Whether the host executes the operation in that iteration: exchanges run at the end of a period or of the run. */
static bool has_to_do(const struct world *world, unsigned host, struct psd_task task)
{
	const struct psd_plan *plan = world->program->plan;
	const struct psd_op *op = &world->program->ops[task.op];
	const bool is_exchange =
		(task.iteration + 1) % psd_plan_steps(plan) == 0 || task.iteration + 1 == world->n_iterations;

	return psd_op_runs_on(op, &plan->layout, host) && !(is_exchange ? op->is_between : op->is_exchange);
}

static void carry_out(struct world *world, const struct psd_program *program, const char *name, uint64_t seed)
{
	world_open(world, program, name, seed);
	take_ready(world);
	while (world->n_pending > 0) {
		const unsigned i = (unsigned)(next_random(&world->random) % world->n_pending);
		const unsigned host = world->pending[i].host;
		const struct psd_task task = world->pending[i].task;
		const bool is_arrival = world->pending[i].is_arrival;
		world->pending[i] = world->pending[--world->n_pending];
		if (is_arrival)
			psd_scheduler_arrive(&world->scheds[host], task);
		else
			end_task(world, host, take_given(world, host, world->program->ops[task.op].resource));
		take_ready(world);
	}
	for (unsigned host = 0; host < world->n_hosts; host++) {
		cr_assert(psd_scheduler_is_complete(&world->scheds[host]),
			  "%s, seed %lu: host %u stops in iteration %u", name, seed, host,
			  world->scheds[host].iteration);
		for (uint32_t i = 0; i < world->n_iterations * program->n_ops; i++) {
			const struct psd_task task = {i / program->n_ops, i % program->n_ops};
			cr_assert_eq(world->n_done[host * world->n_iterations * program->n_ops + i],
				     has_to_do(world, host, task), "%s, seed %lu: host %u, iteration %u, operation %u",
				     name, seed, host, task.iteration, task.op);
		}
	}
	world_close(world);
}

/* Three convolutions and two inner products, in slices. */
static const char cifar10_quick[] =
	"title: t\n"
	"model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 100}\n"
	"compute: {device: k20}\n"
	"cluster: {stack: none, network: {bandwidth: 10Gbps, latency: 50us}, host: {copy: 1GBps, reduce: 1GBps}}\n"
	"systems: [{name: varied, sync: ps, pair: 16KiB, slice: 64KiB}]\n"
	"sweep: {nodes: [1, 2, 5]}\n";

static void carry_out_variant(const struct loaded *loaded, const struct psd_system *system, struct world *world)
{
	char name[128];
	struct psd_case made;
	struct psd_error err = {.text = ""};

	snprintf(name, sizeof(name), "%s, %s, barrier %s, %u servers, %u steps", psd_sync_names[system->sync],
		 psd_schedule_names[system->schedule], psd_barrier_names[system->barrier], system->servers,
		 system->is_local ? (unsigned)system->local_sgd.steps : 0);
	for (unsigned point = 0; point < psd_scenario_points(&loaded->scenario); point++) {
		cr_assert_eq(psd_case_make(&made, &loaded->costed, system, psd_scenario_point(&loaded->scenario, point),
					   &err),
			     PSD_OK, "%s", err.text);
		for (uint64_t seed = 1; seed <= 5; seed++)
			carry_out(world, &made.program, name, seed);
		psd_case_release(&made);
	}
}

Test(scheduler, every_operation_is_done_once_in_every_iteration_on_every_host)
{
	struct world *world = malloc(sizeof(*world));
	struct loaded loaded;

	cr_assert_not_null(world);
	loaded_open(&loaded, cifar10_quick);
	for (unsigned bits = 0; bits < 1u << 3; bits++)
		for (unsigned sync = PSD_SYNC_PS; sync < PSD_SYNC_ALL_REDUCE + PSD_N_ALL_REDUCES; sync++) {
			struct psd_system system = loaded.scenario.systems[0];
			system.sync = (enum psd_sync)sync;
			system.schedule = bits & 1 ? PSD_SCHEDULE_WAIT_FREE : PSD_SCHEDULE_SEQUENTIAL;
			system.barrier = bits & 2 ? PSD_BARRIER_LAYER : PSD_BARRIER_ITERATION;
			system.servers = bits & 4 ? 3 : 0;
			if (sync < PSD_SYNC_ALL_REDUCE || system.servers == 0)
				carry_out_variant(&loaded, &system, world);
		}
	loaded_close(&loaded);
	free(world);
}

static void carry_out_local(const struct loaded *loaded, enum psd_sync sync, unsigned bits, struct world *world)
{
	static const uint64_t steps[] = {1, 2, 4, LOCAL_ITERATIONS, 2 * LOCAL_ITERATIONS};
	struct psd_system system = loaded->scenario.systems[0];

	system.sync = sync;
	system.schedule = bits & 1 ? PSD_SCHEDULE_WAIT_FREE : PSD_SCHEDULE_SEQUENTIAL;
	system.barrier = bits & 2 ? PSD_BARRIER_LAYER : PSD_BARRIER_ITERATION;
	system.servers = bits & 4 ? 3 : 0;
	system.is_local = true;
	for (unsigned s = 0; s < sizeof(steps) / sizeof(steps[0]); s++) {
		system.local_sgd = (struct psd_local_sgd){.steps = steps[s]};
		carry_out_variant(loaded, &system, world);
	}
}

/* Also of hosts that are ahead of others by several local steps: messages reach hosts that are not done with the
 * exchange before. */
static void expect_local_steps(const char *scenario)
{
	static const enum psd_sync syncs[] = {PSD_SYNC_PS, PSD_SYNC_TWO_LEVEL_PS, PSD_SYNC_ALL_REDUCE};
	struct world *world = malloc(sizeof(*world));
	struct loaded loaded;

	cr_assert_not_null(world);
	loaded_open(&loaded, scenario);
	for (unsigned bits = 0; bits < 1u << 3; bits++)
		for (unsigned s = 0; s < sizeof(syncs) / sizeof(syncs[0]); s++)
			if (syncs[s] < PSD_SYNC_ALL_REDUCE || bits < 4)
				carry_out_local(&loaded, syncs[s], bits, world);
	loaded_close(&loaded);
	free(world);
}

TEST_ROW(scheduler, with_local_steps_what_exchanges_is_done_at_the_end_of_each_period,
	 expect_local_steps(cifar10_quick))

Test(scheduler, with_clocks_some_chunks_are_sent_in_each_iteration_and_all_at_the_end)
{
	struct world *world = malloc(sizeof(*world));
	struct loaded loaded;

	cr_assert_not_null(world);
	loaded_open(&loaded, cifar10_quick);
	for (unsigned bits = 0; bits < 1u << 3; bits++) {
		struct psd_system system = loaded.scenario.systems[0];

		system.sync = PSD_SYNC_ALL_REDUCE;
		system.schedule = bits & 1 ? PSD_SCHEDULE_WAIT_FREE : PSD_SCHEDULE_SEQUENTIAL;
		system.barrier = bits & 2 ? PSD_BARRIER_LAYER : PSD_BARRIER_ITERATION;
		system.is_managed = true;
		system.managed = (struct psd_sparse){
			.clock = bits & 4 ? 2 : 3, .early_ratio = 0.25, .sparsity = 0.75, .chunk_elements = 1000};
		carry_out_variant(&loaded, &system, world);
	}
	loaded_close(&loaded);
	free(world);
}

Test(scheduler, with_local_steps_leaders_exchange_at_the_end_of_each_period)
{
	expect_local_steps("title: t\n"
			   "model: {graph: scenarios/models/cifar10-quick.yaml, batch_per_worker: 100}\n"
			   "compute: {device: k20}\n"
			   "cluster: {stack: none, workers_per_node: 3, network: {bandwidth: 10Gbps, latency: 50us}}\n"
			   "systems: [{name: varied, sync: ps, pair: 64KiB, slice: 256KiB}]\n"
			   "sweep: {workers: [3, 7]}\n");
}
