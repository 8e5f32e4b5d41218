/* Dependency counters and ready queues of one host. */
#include "engine/program/scheduler.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/grow.h"

/* ---- duties ---- */

enum psd_status psd_duties_make(struct psd_duties *duties, const struct psd_program *program, unsigned host,
				psd_arrivals_fn arrivals, const void *context, struct psd_error *err)
{
	const struct psd_layout *layout = &program->plan->layout;
	uint32_t *waits = malloc((program->n_ops + 1) * sizeof(*waits));

	if (waits == NULL)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for the duties of %u operations",
				     program->n_ops);
	*duties = (struct psd_duties){.waits = waits,
				      .work_sec = psd_program_host_sec(program, host),
				      .batch = psd_plan_batch(program->plan, host)};
	for (uint32_t i = 0; i < program->n_ops; i++) {
		const struct psd_op *op = &program->ops[i];

		if (!psd_op_runs_on(op, layout, host)) {
			waits[i] = PSD_NOT_CARRIED;
			continue;
		}
		duties->n_carried++;
		waits[i] = psd_op_is_receive(op) ? arrivals(context, op, host) : 0;
		for (uint32_t e = 0; e < op->n_dependencies; e++)
			waits[i] += psd_op_runs_on(&program->ops[program->dependencies[op->first_dependency + e].op],
						   layout, host);
	}
	return PSD_OK;
}

void psd_duties_release(struct psd_duties *duties)
{
	free(duties->waits);
	*duties = (struct psd_duties){0};
}

/* ---- ready queues ---- */

bool psd_ready_goes_before(const struct psd_ready *a, const struct psd_ready *b)
{
	if (a->turn != b->turn)
		return a->turn < b->turn;
	if (a->task.iteration != b->task.iteration)
		return a->task.iteration < b->task.iteration;
	return a->task.op < b->task.op;
}

bool psd_ready_push(struct psd_heap *queue, struct psd_ready entry)
{
	return psd_heap_push(queue, (struct psd_heap_entry){
					    .at = (double)entry.turn,
					    .seq = (uint64_t)entry.task.iteration << 32 | entry.task.op,
				    });
}

bool psd_ready_pop(struct psd_heap *queue, struct psd_ready *entry)
{
	if (queue->n == 0)
		return false;
	const struct psd_heap_entry first = psd_heap_pop(queue);
	*entry = (struct psd_ready){(int64_t)first.at, {(uint32_t)(first.seq >> 32), (uint32_t)first.seq}};
	return true;
}

/* ---- the scheduler ---- */

static void add_to_list(struct psd_scheduler *scheduler, struct psd_task_list *list, struct psd_task task)
{
	struct psd_task *tasks = psd_grown(list->tasks, list->n, &list->capacity, sizeof(*tasks));
	if (tasks == NULL) {
		scheduler->is_out_of_memory = true;
		return;
	}
	list->tasks = tasks;
	list->tasks[list->n++] = task;
}

static void add_ready(struct psd_scheduler *scheduler, struct psd_task task)
{
	const struct psd_op *op = &scheduler->program->ops[task.op];
	if (task.iteration >= scheduler->iterations.end)
		return; /* the run ends before */
	if (scheduler->fence > 0 && task.iteration >= scheduler->fence)
		add_to_list(scheduler, &scheduler->fenced, task);
	else if (op->resource != PSD_RESOURCE_NONE && !psd_op_is_collective(op) &&
		 !(scheduler->free_resources & 1u << op->resource))
		scheduler->is_out_of_memory |= !psd_ready_push(
			&scheduler->queues[op->resource],
			(struct psd_ready){psd_program_turn(scheduler->program, task.op, task.iteration), task});
	else
		add_to_list(scheduler, &scheduler->instant, task);
}

void psd_scheduler_set_fence(struct psd_scheduler *scheduler, uint32_t iteration)
{
	assert(iteration > scheduler->iteration && scheduler->fence == 0 && scheduler->fenced.n == 0);
	scheduler->fence = iteration;
}

void psd_scheduler_set_end(struct psd_scheduler *scheduler, uint32_t end)
{
	if (scheduler->iteration == scheduler->iterations.end)
		scheduler->iteration = end; /* a host without operations is done */
	scheduler->iterations.end = end;
	scheduler->period.end = end;
}

bool psd_scheduler_is_at_fence(const struct psd_scheduler *scheduler)
{
	return scheduler->fence > 0 && scheduler->iteration == scheduler->fence;
}

static uint32_t *row_of(const struct psd_scheduler *scheduler, uint32_t iteration)
{
	return &scheduler->waiting[(size_t)(iteration % scheduler->program->window) * scheduler->program->n_ops];
}

/* True if the task has ended. An operation that is not executed here counts as ended. */
static bool is_done(const struct psd_scheduler *scheduler, struct psd_task task)
{
	return row_of(scheduler, task.iteration)[task.op] == PSD_DONE;
}

/* True if both operations are passed to the same stream, in which one waits for the other. */
static bool follows(const struct psd_scheduler *scheduler, uint32_t waits, uint32_t before)
{
	const struct psd_op *op = &scheduler->program->ops[waits];

	return op->resource != PSD_RESOURCE_NONE && scheduler->streams & 1u << op->resource &&
	       op->resource == scheduler->program->ops[before].resource;
}

/* Dependents of `before` in an earlier iteration no longer wait for it. */
static bool is_released(const struct psd_scheduler *scheduler, uint32_t waits, struct psd_task before)
{
	return is_done(scheduler, before) ||
	       (row_of(scheduler, before.iteration)[before.op] == PSD_GIVEN && follows(scheduler, waits, before.op));
}

static bool is_executed(const struct psd_scheduler *scheduler, const struct psd_op *op, uint32_t iteration)
{
	const struct psd_period *period = &scheduler->period;

	if (!op->is_exchange)
		return psd_op_is_due(op, period, iteration);
	if (op->is_last)
		return psd_period_is_last(period, iteration);
	if (op->lag > 0 && (iteration < period->first + op->lag || psd_period_is_last(period, iteration)))
		return false;
	return psd_period_exchanges_of(period, op->fragment, iteration - op->lag);
}

/* Marks operations that the host does not execute in the iteration, and sets the number of the others. */
static void leave_out(struct psd_scheduler *scheduler, uint32_t iteration, uint32_t *waiting)
{
	const struct psd_program *program = scheduler->program;
	const bool has_kinds = program->plan->local || program->plan->managed; /* kinds of iterations */
	uint32_t n_left = scheduler->duties->n_carried;

	for (uint32_t i = 0; i < program->n_ops && has_kinds; i++)
		if (waiting[i] != PSD_NOT_CARRIED && !is_executed(scheduler, &program->ops[i], iteration)) {
			waiting[i] = PSD_NOT_CARRIED;
			n_left--;
		}
	scheduler->n_left[iteration % program->window] = n_left;
}

/* True if an operation of the iteration need not wait for the one that the edge leads from. Before the first iteration
 * everything is done. */
static bool is_met(const struct psd_scheduler *scheduler, struct psd_task waits, struct psd_edge edge)
{
	if (scheduler->duties->waits[edge.op] == PSD_NOT_CARRIED)
		return false; /* it does not count */
	if (edge.distance == 0)
		return is_done(scheduler, (struct psd_task){waits.iteration, edge.op}); /* it is left out */
	return waits.iteration < scheduler->iterations.first + edge.distance ||
	       is_released(scheduler, waits.op, (struct psd_task){waits.iteration - edge.distance, edge.op});
}

/* Sets up the counters of an iteration. Dependencies on earlier iterations that are done by now do not count, nor those
 * on operations that it leaves out. */
static void start_iteration(struct psd_scheduler *scheduler, uint32_t iteration)
{
	const struct psd_program *program = scheduler->program;
	uint32_t *waiting = row_of(scheduler, iteration);

	memcpy(waiting, scheduler->duties->waits, program->n_ops * sizeof(*waiting));
	leave_out(scheduler, iteration, waiting);
	for (uint32_t i = 0; i < program->n_ops; i++) {
		const struct psd_op *op = &program->ops[i];
		if (waiting[i] == PSD_NOT_CARRIED)
			continue;
		for (uint32_t e = 0; e < op->n_dependencies && waiting[i] > 0; e++)
			waiting[i] -= is_met(scheduler, (struct psd_task){iteration, i},
					     program->dependencies[op->first_dependency + e]);
		if (waiting[i] == 0)
			add_ready(scheduler, (struct psd_task){iteration, i});
	}
}

/* A window ends with an exchange where the steps may follow the loss: not in a prediction. */
static struct psd_period period_of(const struct psd_plan *plan, struct psd_iterations iterations)
{
	struct psd_period period = psd_period_make(psd_plan_steps(plan), 0, iterations.end);

	period.fragments = psd_plan_fragments(plan);
	period.is_endless = psd_plan_streams(plan) && !iterations.ends_equal;
	period.first = iterations.equal;
	if (iterations.steps[0] == 0)
		return period;
	period.window = plan->local ? (uint32_t)plan->local->window : 0;
	for (uint32_t w = 0; w < 2; w++)
		psd_period_set_steps(&period, w, iterations.steps[w]);
	return period;
}

/* Returns the number of rows that the run's iterations need. Iteration i has row i % window, and few simulations
 * have that many. */
static uint32_t n_rows(const struct psd_program *program, struct psd_iterations iterations)
{
	return iterations.end > 0 && iterations.end < program->window ? iterations.end : program->window;
}

enum psd_status psd_scheduler_init(struct psd_scheduler *scheduler, const struct psd_program *program,
				   const struct psd_duties *duties, struct psd_iterations iterations,
				   struct psd_error *err)
{
	*scheduler = (struct psd_scheduler){
		.program = program,
		.duties = duties,
		.iterations = iterations,
		.period = period_of(program->plan, iterations),
		.iteration = iterations.first,
	};
	scheduler->waiting =
		malloc((size_t)n_rows(program, iterations) * (program->n_ops + 1) * sizeof(*scheduler->waiting));
	scheduler->n_left = calloc(program->window, sizeof(*scheduler->n_left));
	if (scheduler->waiting == NULL || scheduler->n_left == NULL) {
		psd_scheduler_release(scheduler);
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a scheduler of %u operations",
				     program->n_ops);
	}
	for (uint32_t i = iterations.first; i < iterations.first + program->window && i < iterations.end; i++)
		start_iteration(scheduler, i);
	if (duties->n_carried == 0)
		scheduler->iteration = iterations.end; /* a server that no tensor needs is done before it begins */
	return PSD_OK;
}

void psd_scheduler_release(struct psd_scheduler *scheduler)
{
	free(scheduler->waiting);
	free(scheduler->n_left);
	free(scheduler->instant.tasks);
	free(scheduler->early.tasks);
	free(scheduler->fenced.tasks);
	for (unsigned r = 0; r < PSD_RESOURCES; r++)
		free(scheduler->queues[r].entries);
	*scheduler = (struct psd_scheduler){0};
}

static inline void release_one(struct psd_scheduler *scheduler, struct psd_task task)
{
	if (task.iteration >= scheduler->iterations.end)
		return;
	/* an iteration's counters exist only while it is in the window; later ones look at what is done when they start
	 */
	if (task.iteration >= scheduler->iteration + scheduler->program->window)
		return;
	uint32_t *waiting = &row_of(scheduler, task.iteration)[task.op];
	if (*waiting == PSD_DONE)
		return; /* this host does not execute it in this iteration */
	assert(*waiting > 0 && *waiting < PSD_GIVEN);
	if (--*waiting == 0)
		add_ready(scheduler, task);
}

/* Counts arrivals from before the iteration was in the window. */
static void take_early(struct psd_scheduler *scheduler, uint32_t iteration)
{
	const uint32_t n_early = scheduler->early.n;

	scheduler->early.n = 0;
	for (uint32_t i = 0; i < n_early; i++) /* compacts the list on the way */
		if (scheduler->early.tasks[i].iteration == iteration)
			release_one(scheduler, scheduler->early.tasks[i]);
		else
			scheduler->early.tasks[scheduler->early.n++] = scheduler->early.tasks[i];
}

/* Advances to the first iteration that is not done, or to the fence: iterations behind it may be decided there. */
static void complete(struct psd_scheduler *scheduler)
{
	const uint32_t window = scheduler->program->window;

	while (scheduler->iteration < scheduler->iterations.end &&
	       scheduler->n_left[scheduler->iteration % window] == 0 && !psd_scheduler_is_at_fence(scheduler)) {
		const uint32_t following = scheduler->iteration + window;
		scheduler->iteration++;
		if (following < scheduler->iterations.end) {
			start_iteration(scheduler, following);
			take_early(scheduler, following);
		} else {
			scheduler->n_left[following % window] = UINT32_MAX; /* never started, never done */
		}
	}
}

void psd_scheduler_begin(struct psd_scheduler *scheduler)
{
	complete(scheduler);
}

void psd_scheduler_pass_fence(struct psd_scheduler *scheduler, uint32_t next)
{
	const uint32_t n_fenced = scheduler->fenced.n;

	assert(psd_scheduler_is_at_fence(scheduler) && (next == 0 || next > scheduler->fence));
	scheduler->fence = next;
	scheduler->fenced.n = 0;
	for (uint32_t i = 0; i < n_fenced; i++) /* compacts the list on the way */
		add_ready(scheduler, scheduler->fenced.tasks[i]);
	complete(scheduler);
}

static void release_all_dependents(struct psd_scheduler *scheduler, struct psd_task task)
{
	const struct psd_op *op = &scheduler->program->ops[task.op];
	const struct psd_edge *dependents = &scheduler->program->dependents[op->first_dependent];

	for (uint32_t e = 0; e < op->n_dependents; e++)
		release_one(scheduler, (struct psd_task){task.iteration + dependents[e].distance, dependents[e].op});
}

/* Releases dependents that follow the task in a stream, or all others. */
static void release_dependents(struct psd_scheduler *scheduler, struct psd_task task, bool those_that_follow)
{
	const struct psd_op *op = &scheduler->program->ops[task.op];
	const struct psd_edge *dependents = &scheduler->program->dependents[op->first_dependent];

	for (uint32_t e = 0; e < op->n_dependents; e++)
		if (follows(scheduler, dependents[e].op, task.op) == those_that_follow)
			release_one(scheduler,
				    (struct psd_task){task.iteration + dependents[e].distance, dependents[e].op});
}

void psd_scheduler_give(struct psd_scheduler *scheduler, struct psd_task task)
{
	assert(row_of(scheduler, task.iteration)[task.op] == 0);
	row_of(scheduler, task.iteration)[task.op] = PSD_GIVEN;
	release_dependents(scheduler, task, true);
}

void psd_scheduler_finish(struct psd_scheduler *scheduler, struct psd_task task)
{
	const uint32_t window = scheduler->program->window;
	const bool was_given = row_of(scheduler, task.iteration)[task.op] == PSD_GIVEN;
	assert(!is_done(scheduler, task));
	row_of(scheduler, task.iteration)[task.op] = PSD_DONE;
	if (scheduler->streams == 0) {
		release_all_dependents(scheduler, task);
	} else {
		if (!was_given)
			release_dependents(scheduler, task, true);
		release_dependents(scheduler, task, false);
	}
	if (--scheduler->n_left[task.iteration % window] == 0)
		complete(scheduler);
}

void psd_scheduler_arrive(struct psd_scheduler *scheduler, struct psd_task receive)
{
	if (receive.iteration < scheduler->iteration + scheduler->program->window)
		release_one(scheduler, receive);
	else
		add_to_list(scheduler, &scheduler->early, receive);
}

bool psd_scheduler_take_instant(struct psd_scheduler *scheduler, struct psd_task *task)
{
	if (scheduler->instant.n == 0)
		return false;
	*task = scheduler->instant.tasks[--scheduler->instant.n];
	return true;
}

bool psd_scheduler_take(struct psd_scheduler *scheduler, enum psd_resource resource, struct psd_task *task)
{
	struct psd_ready entry;
	if (!psd_ready_pop(&scheduler->queues[resource], &entry))
		return false;
	*task = entry.task;
	return true;
}

uint32_t psd_scheduler_waiting(const struct psd_scheduler *scheduler, uint32_t op)
{
	return row_of(scheduler, scheduler->iteration)[op];
}

bool psd_scheduler_is_complete(const struct psd_scheduler *scheduler)
{
	return scheduler->iteration >= scheduler->iterations.end;
}
