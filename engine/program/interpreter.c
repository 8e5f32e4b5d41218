/* The event-driven interpreter. Each entry point applies one event, then starts everything that has become possible. */
#include "engine/program/interpreter.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "engine/program/host_state.h"

static double now_sec(const struct psd_interpreter *in)
{
	return in->seam.now(in->seam.context) + in->skipped_sec;
}

static const struct psd_op *op_of(const struct psd_interpreter *in, struct psd_task task)
{
	return &in->program->ops[task.op];
}

static bool is_busy(const struct psd_host_state *host, enum psd_resource resource)
{
	return host->given[resource].n > 0;
}

/* Records that the first task of a resource runs from now on. */
static void begin_span(struct psd_interpreter *in, unsigned h, enum psd_resource resource, double start_sec)
{
	struct psd_host_state *host = &in->hosts[h];
	host->started_sec[resource] = start_sec;
	psd_account_begin(&in->account, h, op_of(in, host->given[resource].tasks[0]), start_sec);
}

/* The link of a host is busy while its NIC or a queue behind this sends. */
static void begin_line(struct psd_interpreter *in, struct psd_host_state *host)
{
	if (host->n_lines++ == 0)
		host->line_from_sec = now_sec(in);
}

static void end_line(struct psd_interpreter *in, struct psd_host_state *host)
{
	if (--host->n_lines == 0)
		host->busy_sec[PSD_RESOURCE_NIC] += now_sec(in) - host->line_from_sec;
}

static void give(struct psd_interpreter *in, unsigned h, enum psd_resource resource, struct psd_task task)
{
	struct psd_host_state *host = &in->hosts[h];
	host->given[resource].tasks[host->given[resource].n++] = task;
	if (resource == PSD_RESOURCE_NIC)
		begin_line(in, host);
	if (host->given[resource].n == 1)
		begin_span(in, h, resource, now_sec(in));
}

static struct psd_task take_first(struct psd_host_state *host, enum psd_resource resource)
{
	struct psd_task *tasks = host->given[resource].tasks;
	const struct psd_task first = tasks[0];
	host->given[resource].n--;
	for (unsigned i = 0; i < host->given[resource].n; i++)
		tasks[i] = tasks[i + 1];
	return first;
}

/* Records that the running task of a resource has ended, and returns it. */
static struct psd_task end_span(struct psd_interpreter *in, unsigned h, enum psd_resource resource)
{
	struct psd_host_state *host = &in->hosts[h];
	const double start_sec = host->started_sec[resource];
	const double end_sec = now_sec(in);
	const struct psd_task task = take_first(host, resource);
	if (resource == PSD_RESOURCE_NIC) {
		end_line(in, host);
		host->sent_sec = end_sec;
	} else {
		host->busy_sec[resource] += end_sec - start_sec;
	}
	psd_account_end(&in->account, h, op_of(in, task), end_sec);
	if (in->seam.span != NULL)
		in->seam.span(in->seam.context, h, task, start_sec, end_sec);
	if (is_busy(host, resource))
		begin_span(in, h, resource, end_sec);
	return task;
}

static void note_next(struct psd_interpreter *in, unsigned h, struct psd_task task)
{
	if (in->own_next_sec) {
		in->own_next_sec[(size_t)h * in->iterations.end + task.iteration] = now_sec(in);
		psd_account_mark_host(&in->account, h, task.iteration, now_sec(in));
	}
	in->next_sec[task.iteration] = now_sec(in); /* time never goes back: the last one stays */
	if (in->seam.span)
		in->seam.span(in->seam.context, h, task, in->next_sec[task.iteration], in->next_sec[task.iteration]);
	if (++in->n_next_done[task.iteration] == in->n_workers && !in->own_next_sec)
		psd_account_mark(&in->account, task.iteration, in->next_sec[task.iteration]);
}

/* ---- collectives: one at a time on a host, begun when every member is ready and its NIC free ---- */

static bool carries(const struct psd_interpreter *in, unsigned h, struct psd_task task)
{
	return in->hosts[h].scheduler.duties->waits[task.op] != PSD_NOT_CARRIED;
}

static void join(struct psd_interpreter *in, unsigned h)
{
	struct psd_host_state *host = &in->hosts[h];
	const struct psd_task task = host->collective->task;
	give(in, h, PSD_RESOURCE_NIC, task);
	if (--host->collective->n_missing == 0)
		in->seam.collective(in->seam.context, task);
}

/* Begins a collective: its members here join as soon as their NICs are free. */
static void begin_collective(struct psd_interpreter *in, struct psd_running_collective *collective)
{
	const struct psd_task task = collective->task;
	if (in->seam.choose != NULL)
		in->seam.choose(in->seam.context, task);
	if (collective->n_missing == 0) /* executed by other hosts, in an order of their own */
		psd_collective_order_end(&in->order, collective);
	for (unsigned h = 0; h < in->n_hosts; h++) {
		if (!carries(in, h, task))
			continue;
		in->hosts[h].collective = collective;
		if (!is_busy(&in->hosts[h], PSD_RESOURCE_NIC))
			join(in, h);
	}
}

static void gather(struct psd_interpreter *in)
{
	struct psd_running_collective *collective;
	while ((collective = psd_collective_order_next(&in->order)) != NULL)
		begin_collective(in, collective);
}

/* ---- hosts ---- */

static void drain_instant(struct psd_interpreter *in, unsigned h)
{
	struct psd_host_state *host = &in->hosts[h];
	struct psd_task task;
	while (psd_scheduler_take_instant(&host->scheduler, &task)) {
		const struct psd_op *op = op_of(in, task);
		if (psd_op_is_collective(op)) {
			if (in->seam.announce != NULL)
				in->seam.announce(in->seam.context, task);
			else
				psd_collective_order_ready(&in->order, task);
			continue;
		}
		if (task.op == in->program->next_op)
			note_next(in, h, task);
		psd_scheduler_finish(&host->scheduler, task);
	}
	/* the first by turn of all that became ready together, so that hosts which decide each for itself agree */
	gather(in);
}

/* Returns the duration of an operation on a host if nothing slows it down, seconds. */
static double work_sec_of(const struct psd_host_state *host, const struct psd_interpreter *in, uint32_t op)
{
	const double *work_sec = host->scheduler.duties->work_sec;

	return work_sec ? work_sec[op] : in->program->ops[op].work_sec;
}

/* Starts a task; returns true if it has ended at once. */
static bool start(struct psd_interpreter *in, unsigned h, enum psd_resource resource, struct psd_task task)
{
	struct psd_host_state *host = &in->hosts[h];
	const struct psd_op *op = op_of(in, task);
	const double work_sec = work_sec_of(host, in, task.op);
	psd_reads_begin(&in->reads, h, op, task.iteration);
	if (resource != PSD_RESOURCE_NIC && work_sec == 0.0 && !in->seam.does_real_work) {
		psd_scheduler_finish(&host->scheduler, task);
		return true;
	}
	give(in, h, resource, task);
	if (resource != PSD_RESOURCE_NIC) {
		if (host->scheduler.streams & 1u << resource)
			psd_scheduler_give(&host->scheduler, task);
		in->seam.work(in->seam.context, h, resource, task, work_sec);
		return false;
	}
	if (in->seam.send(in->seam.context, h, task))
		return false;
	(void)take_first(host, resource);
	end_line(in, host);
	psd_account_end(&in->account, h, op, host->started_sec[resource]);
	psd_scheduler_finish(&host->scheduler, task);
	return true;
}

/* True if another task may be passed to the resource. */
static bool has_room(const struct psd_interpreter *in, const struct psd_host_state *host, enum psd_resource resource)
{
	return host->given[resource].n <= (resource == PSD_RESOURCE_DEVICE ? in->seam.n_ahead : 0);
}

/* Gives a resource its next task. Returns true when more may be ready: the task was over at once, or another one
 * fits. */
static bool dispatch(struct psd_interpreter *in, unsigned h, enum psd_resource resource)
{
	struct psd_host_state *host = &in->hosts[h];
	struct psd_task task;
	if (!has_room(in, host, resource))
		return false;
	if (resource == PSD_RESOURCE_NIC && host->collective != NULL) {
		join(in, h);
		return false;
	}
	return host->scheduler.queues[resource].n > 0 && psd_scheduler_take(&host->scheduler, resource, &task) &&
	       (start(in, h, resource, task) || has_room(in, host, resource));
}

static void settle(struct psd_interpreter *in, unsigned h)
{
	bool has_progress = true;
	while (has_progress) {
		has_progress = false;
		drain_instant(in, h);
		for (int r = 0; r < PSD_RESOURCES; r++)
			has_progress = dispatch(in, h, (enum psd_resource)r) || has_progress;
	}
}

/* ---- entry points ---- */

static void settle_all(struct psd_interpreter *in)
{
	for (unsigned h = 0; h < in->n_hosts; h++)
		settle(in, h);
}

/* Returns the set of resources whose operations all take no time, such as copy engines without a stated cost; bit r is
 * resource r. */
static unsigned find_free_resources(const struct psd_interpreter *in)
{
	const uint32_t n_ops = in->program->n_ops;
	const unsigned n_kinds = in->program->kind_sec ? in->program->plan->layout.n_kinds : 0;
	unsigned resources = in->seam.does_real_work ? 0 : ~(1u << PSD_RESOURCE_NIC);
	for (uint32_t i = 0; i < n_ops; i++) {
		bool takes_time = in->program->ops[i].work_sec > 0.0;

		for (unsigned k = 0; k < n_kinds; k++)
			takes_time = takes_time || in->program->kind_sec[(size_t)k * n_ops + i] > 0.0;
		if (takes_time)
			resources &= ~(1u << in->program->ops[i].resource);
	}
	return resources;
}

static enum psd_status allocate(struct psd_interpreter *in, const struct psd_duties *const duties[],
				struct psd_error *err)
{
	const unsigned free_resources = find_free_resources(in);
	in->hosts = calloc(in->n_hosts, sizeof(*in->hosts));
	in->next_sec = calloc(in->iterations.end, sizeof(*in->next_sec));
	in->n_next_done = calloc(in->iterations.end, sizeof(*in->n_next_done));
	if (in->hosts == NULL || in->next_sec == NULL || in->n_next_done == NULL)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for %u hosts", in->n_hosts);
	for (unsigned h = 0; h < in->n_hosts; h++) {
		in->hosts[h].sent_sec = -INFINITY;
		enum psd_status status =
			psd_scheduler_init(&in->hosts[h].scheduler, in->program, duties[h], in->iterations, err);
		if (status != PSD_OK)
			return status;
		in->hosts[h].scheduler.free_resources = free_resources;
		in->hosts[h].scheduler.streams = in->seam.n_ahead > 0 ? 1u << PSD_RESOURCE_DEVICE : 0;
		in->hosts[h].is_worker = duties[h]->waits[in->program->next_op] != PSD_NOT_CARRIED;
		in->n_workers += in->hosts[h].is_worker;
	}
	if (psd_collective_order_init(&in->order, in->program, in->n_hosts, duties, in->seam.choose != NULL, err))
		return err->status;
	if (in->program->plan->async) {
		in->own_next_sec = calloc((size_t)in->n_hosts * in->iterations.end, sizeof(*in->own_next_sec));
		if (!in->own_next_sec)
			return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for %u hosts", in->n_hosts);
	}
	if (psd_reads_init(&in->reads, in->program, in->n_hosts, in->iterations, err))
		return err->status;
	return psd_account_init(&in->account, in->n_hosts, in->iterations.end, err);
}

enum psd_status psd_interpreter_init(struct psd_interpreter *in, const struct psd_program *program, unsigned n_hosts,
				     const struct psd_duties *const duties[], struct psd_iterations iterations,
				     const struct psd_seam *seam, struct psd_error *err)
{
	*in = (struct psd_interpreter){.program = program, .seam = *seam, .n_hosts = n_hosts, .iterations = iterations};
	const enum psd_status status = allocate(in, duties, err);
	if (status != PSD_OK)
		psd_interpreter_release(in);
	return status;
}

void psd_interpreter_release(struct psd_interpreter *in)
{
	for (unsigned h = 0; in->hosts != NULL && h < in->n_hosts; h++)
		psd_scheduler_release(&in->hosts[h].scheduler);
	free(in->hosts);
	free(in->next_sec);
	free(in->own_next_sec);
	free(in->n_next_done);
	psd_collective_order_release(&in->order);
	psd_account_release(&in->account);
	psd_reads_release(&in->reads);
	*in = (struct psd_interpreter){0};
}

void psd_interpreter_begin(struct psd_interpreter *in)
{
	for (unsigned h = 0; h < in->n_hosts; h++)
		psd_scheduler_begin(&in->hosts[h].scheduler);
	settle_all(in);
}

void psd_interpreter_set_fence(struct psd_interpreter *in, unsigned host, uint32_t iteration)
{
	psd_scheduler_set_fence(&in->hosts[host].scheduler, iteration);
}

bool psd_interpreter_is_at_fence(const struct psd_interpreter *in, unsigned host)
{
	return psd_scheduler_is_at_fence(&in->hosts[host].scheduler);
}

void psd_interpreter_pass_fence(struct psd_interpreter *in, unsigned host, uint32_t next)
{
	psd_scheduler_pass_fence(&in->hosts[host].scheduler, next);
	settle(in, host);
}

const struct psd_period *psd_interpreter_period(const struct psd_interpreter *in, unsigned host)
{
	return &in->hosts[host].scheduler.period;
}

void psd_interpreter_set_steps(struct psd_interpreter *in, uint32_t window_number, uint32_t steps)
{
	for (unsigned h = 0; h < in->n_hosts; h++) {
		struct psd_scheduler *scheduler = &in->hosts[h].scheduler;

		assert(psd_scheduler_is_complete(scheduler) ||
		       scheduler->iteration + UINT64_C(1) * in->program->window <=
			       UINT64_C(1) * window_number * scheduler->period.window);
		psd_period_set_steps(&scheduler->period, window_number, steps);
	}
}

void psd_interpreter_finished(struct psd_interpreter *in, unsigned h, enum psd_resource resource)
{
	struct psd_host_state *host = &in->hosts[h];
	assert(is_busy(host, resource));
	psd_scheduler_finish(&host->scheduler, end_span(in, h, resource));
	settle(in, h);
}

void psd_interpreter_departed(struct psd_interpreter *in)
{
	psd_account_depart(&in->account, now_sec(in));
}

void psd_interpreter_passed(struct psd_interpreter *in)
{
	psd_account_arrive(&in->account, now_sec(in));
}

void psd_interpreter_queued(struct psd_interpreter *in, unsigned host)
{
	begin_line(in, &in->hosts[host]);
	psd_account_depart(&in->account, now_sec(in));
	psd_interpreter_finished(in, host, PSD_RESOURCE_NIC);
}

void psd_interpreter_left(struct psd_interpreter *in, unsigned host)
{
	end_line(in, &in->hosts[host]);
}

void psd_interpreter_worked(struct psd_interpreter *in, unsigned host, double work_sec)
{
	psd_account_worked(&in->account, host, work_sec);
}

void psd_interpreter_arrived(struct psd_interpreter *in, unsigned h, struct psd_task send)
{
	const uint32_t receive = send.op + 1; /* a send is followed by its receive */
	assert(psd_op_is_receive(&in->program->ops[receive]) && in->program->ops[receive].match == send.op);
	psd_account_arrive(&in->account, now_sec(in));
	psd_scheduler_arrive(&in->hosts[h].scheduler, (struct psd_task){send.iteration, receive});
	settle(in, h);
}

void psd_interpreter_collective_finished(struct psd_interpreter *in, struct psd_task task)
{
	struct psd_running_collective *collective = psd_collective_order_find(&in->order, task);
	assert(collective->n_missing == 0);
	for (unsigned h = 0; h < in->n_hosts; h++) {
		if (in->hosts[h].collective != collective)
			continue;
		in->hosts[h].collective = NULL;
		(void)end_span(in, h, PSD_RESOURCE_NIC);
		psd_scheduler_finish(&in->hosts[h].scheduler, task);
	}
	psd_collective_order_end(&in->order, collective);
	gather(in);
	for (unsigned h = 0; h < in->n_hosts; h++)
		if (carries(in, h, task))
			settle(in, h);
}

void psd_interpreter_announced(struct psd_interpreter *in, struct psd_task collective)
{
	psd_collective_order_ready(&in->order, collective);
	settle_all(in);
}

void psd_interpreter_chosen(struct psd_interpreter *in, struct psd_task collective)
{
	psd_collective_order_add(&in->order, in->n_chosen++, collective);
	settle_all(in);
}

/* The clock jumps: all that is under way began later by as much. */
void psd_interpreter_skip(struct psd_interpreter *in, uint32_t last, uint32_t unit, uint32_t n_units,
			  const double *busy_sec)
{
	const double sec = n_units * (in->next_sec[last] - in->next_sec[last - unit]);

	in->skipped_sec += sec;
	in->n_skipped += n_units * unit;
	in->iterations.end -= n_units * unit;
	for (unsigned h = 0; h < in->n_hosts; h++) {
		struct psd_host_state *host = &in->hosts[h];

		psd_scheduler_set_end(&host->scheduler, in->iterations.end);
		host->sent_sec += sec;
		host->line_from_sec += sec;
		for (unsigned r = 0; r < PSD_RESOURCES; r++) {
			host->started_sec[r] += sec;
			host->busy_sec[r] += n_units * busy_sec[h * PSD_RESOURCES + r];
		}
	}
	psd_account_skip(&in->account, last, unit, n_units, sec);
	psd_reads_skip(&in->reads, last, unit, n_units);
}

bool psd_interpreter_host_is_complete(const struct psd_interpreter *in, unsigned host)
{
	return psd_scheduler_is_complete(&in->hosts[host].scheduler);
}

uint32_t psd_interpreter_iteration(const struct psd_interpreter *in, unsigned host)
{
	return in->hosts[host].scheduler.iteration;
}

enum psd_status psd_interpreter_check(const struct psd_interpreter *in, struct psd_error *err)
{
	for (unsigned h = 0; h < in->n_hosts; h++)
		if (in->hosts[h].scheduler.is_out_of_memory || in->order.is_out_of_memory)
			return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory while running");
	for (unsigned h = 0; h < in->n_hosts; h++) {
		const struct psd_scheduler *scheduler = &in->hosts[h].scheduler;
		if (psd_scheduler_is_complete(scheduler))
			continue;
		for (uint32_t i = 0; i < in->program->n_ops; i++) {
			const uint32_t waiting = psd_scheduler_waiting(scheduler, i);
			if (scheduler->duties->waits[i] == PSD_NOT_CARRIED || waiting == PSD_DONE)
				continue;
			return psd_error_set(err, PSD_ERUN, PSD_NOWHERE,
					     "host %u did not finish iteration %u: '%s' of layer '%s' waits for %u "
					     "more operations or messages",
					     h, scheduler->iteration, psd_ops[in->program->ops[i].kind].name,
					     in->program->plan->graph->layers[in->program->ops[i].layer].name,
					     waiting == PSD_GIVEN ? 0 : waiting);
		}
	}
	return PSD_OK;
}

static double own_iteration_sec(const struct psd_interpreter *in, unsigned host, uint32_t first)
{
	const double *next_sec = in->own_next_sec + (size_t)host * in->iterations.end;

	return (next_sec[in->iterations.end - 1] - (first > 0 ? next_sec[first - 1] : 0.0)) /
	       (in->iterations.end - first);
}

static double slowest_sec(const struct psd_interpreter *in, uint32_t first)
{
	double sec = 0.0;

	for (unsigned h = 0; h < in->n_hosts; h++)
		if (in->hosts[h].is_worker)
			sec = fmax(sec, own_iteration_sec(in, h, first));
	return sec;
}

/* Returns the least mean duration of a worker's iterations that the bound allows, seconds. A worker ends its last
 * iteration after the slowest one has ended that of `bound` before. With a small bound a training is long. */
static double least_sec(const struct psd_interpreter *in, uint32_t first)
{
	const double bound = (double)in->program->plan->async->bound;
	const double iterations = (double)in->program->plan->job_iterations;

	if (iterations == 0.0)
		return bound <= PSD_MOST_STALENESS ? slowest_sec(in, first) : 0.0;
	return fmax(0.0, 1.0 - bound / iterations) * slowest_sec(in, first);
}

/* Returns the parts of a worker's mean iteration. They are those of the iterations from `first` on, or of the whole
 * training, if its length is known: what it has beyond the executed iterations is like those from `first` on. A wait at
 * the bound that these do not show is added. */
static struct psd_parts own_parts(const struct psd_interpreter *in, unsigned host, uint32_t first)
{
	const uint64_t n = in->program->plan->job_iterations;
	const uint32_t end = in->iterations.end;
	const struct psd_parts steady = psd_account_parts(&in->account, host, first, end);
	struct psd_parts parts = {0};

	if (n > 0 && n <= end)
		return psd_account_parts(&in->account, host, 0, (uint32_t)n);
	if (n > 0) {
		const struct psd_parts executed = psd_account_parts(&in->account, host, 0, end);

		psd_parts_add(&parts, &executed, (double)end / (double)n);
	}
	psd_parts_add(&parts, &steady, n > 0 ? (double)(n - end) / (double)n : 1.0);
	parts.other_waiting_sec += fmax(0.0, least_sec(in, first) - psd_parts_sec(&parts));
	return parts;
}

/* Mean of asynchronous training. */
static struct psd_mean_iteration mean_of(const struct psd_interpreter *in, uint32_t first)
{
	struct psd_mean_iteration mean = {0};

	for (unsigned h = 0; h < in->n_hosts; h++) {
		const struct psd_parts parts = own_parts(in, h, first);

		if (in->hosts[h].is_worker)
			psd_mean_iteration_add(&mean, &parts, in->hosts[h].scheduler.duties->batch);
	}
	return mean;
}

static double ended_sec(const struct psd_interpreter *in, unsigned host, uint32_t iteration)
{
	return in->own_next_sec[(size_t)host * in->iterations.end + iteration];
}

/* Returns the first iteration of `quick` that waits for `slow`, for a tenth of an iteration at least; 0: there is none.
 */
static uint32_t first_wait(const struct psd_interpreter *in, unsigned quick, unsigned slow, double sec)
{
	const uint64_t bound = in->program->plan->async->bound;

	for (uint32_t i = 1; i < in->iterations.end; i++)
		if (i >= bound && ended_sec(in, slow, (uint32_t)(i - bound)) > ended_sec(in, quick, i - 1) + 0.1 * sec)
			return i;
	return 0;
}

void psd_interpreter_find_bound(const struct psd_interpreter *in, uint32_t first, struct psd_outcome *outcome)
{
	unsigned quick = 0, slow = 0; /* workers are the first hosts */

	outcome->job_iterations = in->program->plan->job_iterations;
	if (!in->own_next_sec)
		return;
	for (unsigned h = 0; h < in->n_hosts; h++) {
		if (!in->hosts[h].is_worker)
			continue;
		quick = ended_sec(in, h, 0) < ended_sec(in, quick, 0) ? h : quick;
		slow = ended_sec(in, h, 0) > ended_sec(in, slow, 0) ? h : slow;
	}
	const double quick_sec = own_iteration_sec(in, quick, first), slow_sec = own_iteration_sec(in, slow, first);

	outcome->slowest_sec = mean_of(in, first).slowest_sec;
	outcome->bound_from = first_wait(in, quick, slow, slow_sec);
	outcome->is_at_bound = outcome->bound_from > 0
				       ? outcome->job_iterations == 0 || outcome->bound_from < outcome->job_iterations
				       : quick_sec < 0.999 * least_sec(in, first);
	if (outcome->bound_from == 0 && quick_sec < 0.99 * slow_sec)
		outcome->bound_from =
			(uint64_t)ceil((double)in->program->plan->async->bound * slow_sec / (slow_sec - quick_sec));
}

/* Returns the end of the measured iterations. */
static uint32_t measured_end(const struct psd_interpreter *in)
{
	return in->iterations.end - in->iterations.n_behind;
}

double psd_interpreter_iteration_sec(const struct psd_interpreter *in, uint32_t first)
{
	const uint32_t end = measured_end(in);

	assert(first >= in->iterations.first && first < end);
	if (in->own_next_sec)
		return psd_mean_iteration_sec(mean_of(in, first));
	const double start_sec = first > 0 ? in->next_sec[first - 1] : 0.0; /* 0 where nothing was carried out */
	return (in->next_sec[end - 1] - start_sec) / (end + in->n_skipped - first);
}

static int compare_sec(const void *left, const void *right)
{
	const double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

bool psd_interpreter_percentiles(const struct psd_interpreter *in, uint32_t first, double sec[PSD_PERCENTILES])
{
	static const unsigned percents[PSD_PERCENTILES] = {[PSD_P50] = 50, [PSD_P95] = 95, [PSD_P99] = 99};
	const uint32_t n = measured_end(in) - first;
	double *each_sec = malloc(n * sizeof(*each_sec));

	if (!each_sec)
		return false;
	for (uint32_t i = 0; i < n; i++)
		each_sec[i] = in->next_sec[first + i] - (first + i > 0 ? in->next_sec[first + i - 1] : 0.0);
	qsort(each_sec, n, sizeof(*each_sec), compare_sec);
	for (unsigned p = 0; p < PSD_PERCENTILES; p++)
		sec[p] = each_sec[((uint64_t)percents[p] * n + 99) / 100 - 1];
	free(each_sec);
	return true;
}

bool psd_interpreter_has_paused(const struct psd_interpreter *in, unsigned host)
{
	const double clock_error_sec = 1e-9;

	return in->hosts[host].started_sec[PSD_RESOURCE_NIC] > in->hosts[host].sent_sec + clock_error_sec;
}

double psd_interpreter_busy_sec(const struct psd_interpreter *in, enum psd_resource resource)
{
	const struct psd_plan *plan = in->program->plan;
	const bool is_in_turn = resource == PSD_RESOURCE_NIC && plan->staleness == 0 &&
				plan->system->schedule == PSD_SCHEDULE_SEQUENTIAL;
	double worker_sec = 0.0, server_sec = 0.0;

	for (unsigned h = 0; h < in->n_hosts; h++) {
		double *busiest_sec = in->hosts[h].is_worker ? &worker_sec : &server_sec;

		*busiest_sec = fmax(*busiest_sec, in->hosts[h].busy_sec[resource]);
	}
	return (is_in_turn ? worker_sec + server_sec : fmax(worker_sec, server_sec)) /
	       (in->iterations.end + in->n_skipped - in->iterations.first);
}

double psd_interpreter_steady_sec(const struct psd_interpreter *in, uint32_t first)
{
	double sec = psd_interpreter_iteration_sec(in, first);

	for (int r = 0; r < PSD_RESOURCES && in->program->plan->staleness > 0; r++)
		if (r != PSD_RESOURCE_DEVICE)
			sec = fmax(sec, psd_interpreter_busy_sec(in, (enum psd_resource)r));
	return sec;
}

struct psd_parts psd_interpreter_parts(const struct psd_interpreter *in, uint32_t first)
{
	struct psd_parts most_work = {0};
	bool has_worker = false;

	if (in->own_next_sec)
		return psd_mean_iteration_parts(mean_of(in, first));
	for (unsigned h = 0; h < in->n_hosts; h++) {
		const struct psd_parts parts = psd_account_parts(&in->account, h, first, measured_end(in));

		if (!in->hosts[h].is_worker ||
		    (has_worker && psd_parts_work_sec(&parts) <= psd_parts_work_sec(&most_work)))
			continue;
		most_work = parts;
		has_worker = true;
	}
	return most_work;
}
