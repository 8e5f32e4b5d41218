/* All-reduces of an estimate. The time of the bytes has a closed form; processor work of the members runs beside it;
 * after both, the latencies of the steps follow as a delay. */
#include <math.h>
#include <stdlib.h>

#include "engine/estimate/estimate_parts.h"
#include "engine/program/event_tag.h"

static bool carries(const struct psd_estimate *estimate, unsigned class, const struct psd_op *op)
{
	return psd_op_runs_on(op, psd_estimate_layout(estimate), estimate->classes.of[class].representative);
}

static void set_beside(struct psd_estimate *estimate, const struct psd_op *op, bool is_beside)
{
	for (unsigned c = 0; c < estimate->classes.n; c++)
		if (carries(estimate, c, op))
			psd_estimate_set_beside(estimate, c, is_beside);
}

static void add_end(struct psd_socket_work *work, struct psd_socket_work end)
{
	work->sec += end.sec;
	work->most_cores = fmax(work->most_cores, end.most_cores);
}

/* Computes the processor work of every member for the data that it sends and receives. Both may differ: a member of a
 * ring may receive from another node and send inside its own node. */
static void find_ends(struct psd_estimate *estimate, const struct psd_payload *payload)
{
	const struct psd_layout *layout = psd_estimate_layout(estimate);
	const struct psd_group group = psd_payload_group(payload, layout);
	const unsigned n_hosts = psd_layout_hosts(layout);

	for (unsigned h = 0; h < n_hosts; h++)
		estimate->ends[h] = (struct psd_estimate_ends){.sent = {0, 0}};
	for (unsigned rank = 0; rank < group.n; rank++) {
		const unsigned host = psd_group_host(group, rank);
		struct psd_flow flow;

		for (unsigned i = 0; psd_payload_flow(payload, layout, host, i, &flow); i++) {
			const bool is_near = psd_layout_node(layout, host) == psd_layout_node(layout, flow.to);
			const struct psd_socket_work end = psd_estimate_socket_work(
				estimate, (double)flow.elements * payload->value_bytes, flow.n_messages, is_near);

			if (flow.to == host)
				continue;
			add_end(&estimate->ends[host].sent, end);
			add_end(&estimate->ends[flow.to].received, end);
		}
	}
}

/* Returns the processor work of a class: the mean over its members if they share cores, otherwise the largest work of
 * one member. */
static struct psd_estimate_ends class_ends(const struct psd_estimate *estimate, unsigned class)
{
	const unsigned n_hosts = psd_layout_hosts(psd_estimate_layout(estimate));
	const bool is_shared = estimate->shares[class].shares_cores;
	const double n = estimate->classes.of[class].n_members;
	struct psd_estimate_ends ends = {.sent = {0, 0}};

	for (unsigned h = 0; h < n_hosts; h++) {
		const struct psd_estimate_ends *own = &estimate->ends[h];

		if (estimate->classes.class_of[h] != class)
			continue;
		if (is_shared) {
			add_end(&ends.sent, (struct psd_socket_work){own->sent.sec / n, own->sent.most_cores});
			add_end(&ends.received,
				(struct psd_socket_work){own->received.sec / n, own->received.most_cores});
		} else if (own->sent.sec + own->received.sec > ends.sent.sec + ends.received.sec) {
			ends = *own;
		}
	}
	return ends;
}

static void process_end(struct psd_estimate *estimate, unsigned first, unsigned class, struct psd_socket_work end)
{
	if (end.sec <= 0.0)
		return;
	estimate->collectives[first].n_parts_left++;
	psd_estimate_process(estimate, class, end.sec, end.most_cores,
			     psd_event_tag(PSD_ESTIMATE_COLLECTIVE_PART, first, 0));
}

/* Returns the cost of computing a collective, in events: the number of members that are visited for their steps and for
 * the traffic of their nodes. */
static uint64_t visits(const struct psd_estimate *estimate, const struct psd_payload *payload)
{
	const struct psd_layout *layout = psd_estimate_layout(estimate);
	const uint64_t n = psd_payload_members(payload, layout).n;
	const uint64_t n_timed_steps =
		payload->collective->is_timed_by_steps ? n * psd_payload_steps(payload, layout) : 0;

	if (estimate->pools)
		return 8 * n * psd_payload_steps(payload, layout) + n_timed_steps;
	return (payload->collective->is_uneven ? 8 * n : 0) + n_timed_steps;
}

void psd_estimate_collective(void *context, struct psd_task task)
{
	struct psd_estimate *estimate = context;
	const struct psd_plan *plan = estimate->program->plan;
	const struct psd_op *op = &estimate->program->ops[task.op];
	const struct psd_price *price = psd_prices_of(estimate->prices, &op->payload, &plan->layout, &plan->rates);
	unsigned first = 0;

	if (!price) {
		estimate->is_out_of_memory = true;
		return;
	}
	while (!carries(estimate, first, op))
		first++;
	estimate->n_events += visits(estimate, &op->payload);

	set_beside(estimate, op, true);
	psd_estimate_push(estimate, estimate->now_sec + price->transfer_sec,
			  psd_event_tag(PSD_ESTIMATE_COLLECTIVE_PART, first, 0));
	estimate->collectives[first] =
		(struct psd_estimate_collective){.task = task, .n_parts_left = 1, .delay_sec = price->delay_sec};
	if (estimate->pools)
		find_ends(estimate, &op->payload);
	for (unsigned c = first; c < estimate->classes.n && estimate->pools; c++) {
		const struct psd_estimate_ends ends = class_ends(estimate, c);

		process_end(estimate, first, c, ends.sent);
		process_end(estimate, first, c, ends.received);
	}
}

void psd_estimate_end_collective_part(struct psd_estimate *estimate, unsigned first)
{
	struct psd_estimate_collective *collective = &estimate->collectives[first];

	if (--collective->n_parts_left == 0)
		psd_estimate_push(estimate, estimate->now_sec + collective->delay_sec,
				  psd_event_tag_of_task(PSD_ESTIMATE_COLLECTIVE, 0, collective->task));
}

void psd_estimate_end_collective(struct psd_estimate *estimate, struct psd_task task)
{
	set_beside(estimate, &estimate->program->ops[task.op], false);
	psd_interpreter_collective_finished(&estimate->interpreter, task);
}

enum psd_status psd_estimate_open_collectives(struct psd_estimate *estimate, struct psd_error *err)
{
	estimate->collectives = calloc(estimate->classes.n, sizeof(*estimate->collectives));
	estimate->ends = calloc(psd_layout_hosts(psd_estimate_layout(estimate)), sizeof(*estimate->ends));
	return estimate->collectives && estimate->ends ? PSD_OK : psd_estimate_out_of_memory(err);
}

void psd_estimate_close_collectives(struct psd_estimate *estimate)
{
	psd_prices_release(&estimate->own_prices);
	free(estimate->ends);
	free(estimate->collectives);
}
