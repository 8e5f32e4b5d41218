/* Payload of operations: its bytes, its memory, and whether it counts. */
#include "real/session/worker_parts.h"
#include "engine/program/outcome.h"
#include "real/work/sums.h"

double psd_worker_now(void *context)
{
	const struct psd_worker *worker = context;

	return psd_timers_now(&worker->timers);
}

bool psd_worker_is_near(const struct psd_worker *worker, unsigned peer)
{
	return psd_layout_node(worker->host.layout, peer) == psd_layout_node(worker->host.layout, worker->host.self);
}

bool psd_worker_follows_loss(const struct psd_worker *worker)
{
	return worker->host.plan->local && worker->host.plan->local->window > 0 && !worker->host.options->replay;
}

/* ---- payloads ---- */

bool psd_worker_awaits_choice(const struct psd_worker *worker, struct psd_task task)
{
	return psd_work_is_of_chunks(&worker->work, &worker->host.program->ops[task.op]) &&
	       task.iteration > psd_work_selection(&worker->work)->iteration;
}

void psd_worker_draw_until(const struct psd_worker *worker, uint32_t iteration)
{
	while (iteration > psd_work_selection(&worker->work)->iteration) {
		psd_work_draw_selection(&worker->work);
		psd_work_adopt_selection(&worker->work);
	}
}

struct psd_payload psd_worker_carried(const struct psd_worker *worker, struct psd_task task)
{
	const struct psd_op *op = &worker->host.program->ops[task.op];
	struct psd_payload payload = psd_op_payload(op, task.iteration);

	if (psd_work_is_of_chunks(&worker->work, op))
		payload.elements = psd_work_travelling(&worker->work, task);
	return psd_op_is_collective(op) ? psd_sums_carried(&worker->work, payload) : payload;
}

struct psd_payload psd_worker_payload(const struct psd_worker *worker, struct psd_task task)
{
	const struct psd_payload payload = psd_worker_carried(worker, task);

	return worker->replay ? psd_payload_scaled(&payload, worker->host.layout, worker->replay->payload_ratio)
			      : payload;
}

uint64_t psd_worker_message_bytes(const struct psd_worker *worker, const struct psd_wire_head *head, unsigned from,
				  unsigned to)
{
	const struct psd_payload payload = psd_worker_carried(worker, (struct psd_task){head->iteration, head->op});

	if (payload.collective->steps)
		return psd_payload_step(&payload, worker->host.layout, from, head->part).sent.elements *
		       payload.value_bytes;
	return psd_payload_bytes_between(&payload, worker->host.layout, from, to);
}

uint32_t psd_worker_arrivals(const void *context, const struct psd_op *receive, unsigned host)
{
	const struct psd_worker *worker = context;
	const struct psd_payload payload = psd_op_payload(receive, 0); /* the number is that of each iteration */

	return psd_payload_senders(&payload, worker->host.layout, host);
}

/* ---- memory of a message, on either side ---- */

void *psd_worker_replayed_bytes(const struct psd_worker *worker, bool is_sent)
{
	return is_sent && worker->is_beside_others ? worker->zeros.base : worker->repeated.base;
}

unsigned psd_worker_segments(const struct psd_worker *worker, struct psd_task task, unsigned from, unsigned to,
			     struct iovec segments[PSD_SEGMENTS_MAX])
{
	const struct psd_op *op = &worker->host.program->ops[task.op];
	const struct psd_payload payload = psd_worker_payload(worker, task);

	if (worker->replay) {
		segments[0] = (struct iovec){psd_worker_replayed_bytes(worker, from == worker->host.self),
					     psd_payload_bytes_between(&payload, worker->host.layout, from, to)};
		return 1;
	}
	return psd_memory_find(&worker->host.memory, from == worker->host.self ? op->source.buffer : op->target.buffer,
			       op, task.iteration, psd_payload_range(&payload, worker->host.layout, from, to), from,
			       segments);
}

/* ---- measured iterations ---- */

/* Iterations that are measured as one unit: a period as in a prediction, or whole windows of adaptive local steps. */
uint32_t psd_worker_unit(const struct psd_worker *worker)
{
	if (psd_worker_follows_loss(worker))
		return (uint32_t)worker->host.plan->local->window;
	return worker->host.layout->workers > 1 ? psd_run_unit(worker->host.plan->system) : 1;
}

/* First unit that begins at least n iterations after the run's first one. */
static uint32_t unit_after(const struct psd_worker *worker, uint32_t n)
{
	const uint32_t unit = psd_worker_unit(worker);

	return (worker->host.options->first_iteration + n + unit - 1) / unit * unit;
}

/* The first iteration that a prediction would measure, after the warm-up. */
static uint32_t predicted_first(const struct psd_worker *worker)
{
	const uint32_t first = psd_run_first_measured(worker->host.plan->system);

	return unit_after(worker, worker->host.layout->workers > 1 && first > PSD_WARMUP_ITERATIONS
					  ? first
					  : PSD_WARMUP_ITERATIONS);
}

/* Fragments exchange together in the last iteration, which no other one does. */
static bool has_end(const struct psd_worker *worker)
{
	return psd_plan_streams(worker->host.plan) && !worker->host.options->replay;
}

/* The measured iterations: whole units after those that a prediction leaves out, or else after the warm-up, since a
 * run's last exchange may be early. Otherwise all whole units with local steps, or all iterations; else the last
 * one. */
struct psd_iterations psd_worker_measured(const struct psd_worker *worker)
{
	const uint32_t begin = worker->host.options->first_iteration, end = worker->host.options->n_iterations;
	const uint32_t unit = psd_worker_unit(worker), whole_end = (end - has_end(worker)) / unit * unit;
	const uint32_t first = predicted_first(worker), warm = unit_after(worker, PSD_WARMUP_ITERATIONS);

	if (first < whole_end)
		return (struct psd_iterations){.first = first, .end = whole_end};
	if (warm < whole_end)
		return (struct psd_iterations){.first = warm, .end = whole_end};
	if (unit == 1)
		return (struct psd_iterations){.first = end - 1, .end = end};
	return (struct psd_iterations){.first = begin, .end = begin < whole_end ? whole_end : end};
}

uint32_t psd_worker_needed(const struct psd_worker *worker)
{
	const uint32_t first = predicted_first(worker);

	return worker->host.plan->staleness > 0 && psd_worker_measured(worker).first < first
		       ? first + psd_worker_unit(worker) + has_end(worker)
		       : 0;
}

bool psd_worker_is_counted(const struct psd_worker *worker, unsigned peer, uint32_t iteration)
{
	const struct psd_iterations measured = psd_worker_measured(worker);

	return iteration >= measured.first && iteration < measured.end && !psd_worker_is_near(worker, peer);
}

void psd_worker_count_sent(struct psd_worker *worker, unsigned peer, const struct psd_wire_head *head)
{
	if (psd_worker_is_counted(worker, peer, head->iteration))
		worker->sent_bytes += psd_worker_message_bytes(worker, head, worker->host.self, peer);
}
