/* An estimate's all-reduces: bytes in closed form, what the members' processors do for them, and the delays of the
 * steps behind both. */
#include <math.h>
#include <stdlib.h>

#include "engine/estimate/estimate_parts.h"
#include "engine/program/cookie.h"

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

/* What the members of a class do one way, on the mean of those who share cores, else the most of one. */
static struct psd_socket_work class_work(struct psd_estimate *estimate, const struct psd_payload *payload,
					 unsigned class)
{
	const struct psd_group group = psd_payload_group(payload, psd_estimate_layout(estimate));
	const bool is_shared = estimate->shares[class].shares_cores;
	struct psd_socket_work work = {0, 0};

	for (unsigned rank = 0; rank < group.n; rank++) {
		const unsigned host = psd_group_host(group, rank);
		struct psd_socket_work own = {0, 0};
		struct psd_flow flow;

		if (estimate->classes.class_of[host] != class)
			continue;
		for (unsigned i = 0; psd_payload_flow(payload, psd_estimate_layout(estimate), host, i, &flow); i++) {
			const bool is_near = psd_layout_node(psd_estimate_layout(estimate), host) ==
					     psd_layout_node(psd_estimate_layout(estimate), flow.to);
			const struct psd_socket_work end = psd_estimate_socket_work(
				estimate, (double)flow.elements * payload->value_bytes, flow.n_messages, is_near);

			if (flow.to == host)
				continue;
			own.sec += end.sec;
			own.most_cores = fmax(own.most_cores, end.most_cores);
		}
		work.sec = is_shared ? work.sec + own.sec / estimate->classes.of[class].n_members
				     : fmax(work.sec, own.sec);
		work.most_cores = fmax(work.most_cores, own.most_cores);
	}
	return work;
}

/* In events: how often members are looked at, for their steps, for what their nodes send, or, where all are alike, not
 * at all. */
static uint64_t looks(const struct psd_estimate *estimate, const struct psd_payload *payload)
{
	const struct psd_layout *layout = psd_estimate_layout(estimate);
	const uint64_t n = psd_payload_members(payload, layout).n;
	const uint64_t n_walked = payload->pattern->is_walked ? n * psd_payload_steps(payload, layout) : 0;

	if (estimate->pools)
		return 8 * n * psd_payload_steps(payload, layout) + n_walked;
	return (payload->pattern->is_uneven ? 8 * n : 0) + n_walked;
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
	const uint64_t part = psd_cookie(PSD_ESTIMATE_COLLECTIVE_PART, first, 0);
	estimate->n_events += looks(estimate, &op->payload);

	set_beside(estimate, op, true);
	psd_estimate_push(estimate, estimate->now_sec + price->transfer_sec, part);
	estimate->collectives[first] =
		(struct psd_estimate_collective){.task = task, .n_parts_left = 1, .delay_sec = price->delay_sec};
	for (unsigned c = first; c < estimate->classes.n && estimate->pools; c++) {
		const struct psd_socket_work end = class_work(estimate, &op->payload, c);

		if (end.sec <= 0)
			continue;
		estimate->collectives[first].n_parts_left += 2; /* it sends, and it receives */
		psd_estimate_process(estimate, c, end.sec, end.most_cores, part);
		psd_estimate_process(estimate, c, end.sec, end.most_cores, part);
	}
}

/* The delays of its steps come after all the bytes. */
void psd_estimate_end_collective_part(struct psd_estimate *estimate, unsigned first)
{
	struct psd_estimate_collective *collective = &estimate->collectives[first];

	if (--collective->n_parts_left == 0)
		psd_estimate_push(estimate, estimate->now_sec + collective->delay_sec,
				  psd_cookie_of_task(PSD_ESTIMATE_COLLECTIVE, 0, collective->task));
}

void psd_estimate_end_collective(struct psd_estimate *estimate, struct psd_task task)
{
	set_beside(estimate, &estimate->program->ops[task.op], false);
	psd_interpreter_collective_finished(&estimate->interpreter, task);
}

enum psd_status psd_estimate_open_collectives(struct psd_estimate *estimate, struct psd_error *err)
{
	estimate->collectives = calloc(estimate->classes.n, sizeof(*estimate->collectives));
	return estimate->collectives ? PSD_OK : psd_estimate_out_of_memory(err);
}

void psd_estimate_close_collectives(struct psd_estimate *estimate)
{
	psd_prices_release(&estimate->own_prices);
	free(estimate->collectives);
}
