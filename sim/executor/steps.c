/* Stepwise transfers. Message fidelity simulates every message of every member. Flow fidelity simulates one flow for
 * all messages from one member to another, then the latencies of the steps as a delay. Where racks share uplinks, it
 * simulates the single messages of those collectives whose peers change from step to step: they have no more messages
 * than flows. The state of a whole transfer is in the psd_transfer of its first member. */
#include <limits.h>
#include <math.h>

#include "sim/executor/simulation.h"

static const struct psd_payload *payload_of(const struct psd_simulation *sim, unsigned host)
{
	return &sim->program->ops[sim->transfers[host].task.op].payload;
}

bool psd_sim_walks_steps(const struct psd_simulation *sim, const struct psd_payload *payload)
{
	const bool has_racks = sim->layout->nodes_per_rack > 0;

	return sim->is_message_fidelity ? !payload->collective->overlaps : has_racks && !payload->collective->flow;
}

static void count_bytes(struct psd_simulation *sim, const struct psd_payload *payload)
{
	for (unsigned node = 0; node < sim->layout->nodes; node++) {
		const struct psd_traffic traffic = psd_payload_node_traffic(payload, sim->layout, node);
		sim->sent_bytes[node] += traffic.sent_bytes;
		sim->received_bytes[node] += traffic.received_bytes;
	}
}

static void set_beside(struct psd_simulation *sim, struct psd_group group, bool is_beside)
{
	for (unsigned h = 0; h < sim->n_hosts && sim->device_shares; h++)
		if (psd_group_has(group, psd_sim_host(sim, h)))
			psd_sim_set_beside(sim, h, is_beside);
}

void psd_sim_steps_end(struct psd_simulation *sim, unsigned first)
{
	struct psd_alone_kind *kind = sim->alone.is_on ? psd_sim_alone_kind(sim, sim->transfers[first].task.op) : NULL;

	if (kind && isnan(kind->sec))
		kind->sec = psd_network_now_sec() - kind->start_sec;
	set_beside(sim, psd_payload_group(payload_of(sim, first), sim->layout), false);
	psd_interpreter_collective_finished(&sim->interpreter, sim->transfers[first].task);
}

/* ---- step by step ---- */

static const struct psd_step *step_of(struct psd_simulation *sim, unsigned host, unsigned number)
{
	struct psd_transfer *walk = &sim->transfers[host];
	struct psd_step *step = &walk->steps[number % 2];

	if (walk->at_step[number % 2] != number)
		*step = psd_payload_step(payload_of(sim, host), sim->layout, host, number);
	walk->at_step[number % 2] = number;
	return step;
}

/* Returns the same as psd_payload_next_step(), but computes each step only once. */
static unsigned next_step(struct psd_simulation *sim, unsigned host, unsigned number, bool is_sent)
{
	const unsigned n_steps = sim->transfers[host].n_steps;

	while (number < n_steps &&
	       (is_sent ? step_of(sim, host, number)->to : step_of(sim, host, number)->from) == host)
		number++;
	return number;
}

/* Begins the processor work of one end of a message. */
static void start_end(struct psd_simulation *sim, unsigned sender, unsigned host, struct psd_socket_work work)
{
	if (work.sec <= 0.0)
		return;
	sim->transfers[sender].n_parts_left++;
	psd_sim_process(sim, host, work.sec, work.most_cores, psd_event_tag(PSD_WAKE_STEP_SENT, sender, 0));
}

/* The network and both ends work on a message at the same time. */
static void send_message(struct psd_simulation *sim, unsigned host, const struct psd_step *step)
{
	struct psd_transfer *walk = &sim->transfers[host];
	const uint64_t bytes = step->sent.elements * payload_of(sim, host)->value_bytes;
	const struct psd_socket_work end = psd_sim_socket_work(sim, host, step->to, bytes, 1.0);

	walk->n_parts_left = 1;
	walk->to = step->to;
	psd_network_transfer(host, step->to, bytes, psd_event_tag(PSD_WAKE_STEP_SENT, host, 0));
	start_end(sim, host, host, end);
	start_end(sim, host, step->to, end);
}

/* A member receives messages in the order of its steps: an early message waits at its sender. */
static bool is_awaited(struct psd_simulation *sim, unsigned to, unsigned from, unsigned step)
{
	unsigned awaited = sim->transfers[to].next_receive;

	while (awaited < step && step_of(sim, to, awaited)->from == from)
		awaited = next_step(sim, to, awaited + 1, false);
	return awaited >= step;
}

static void finish_member(struct psd_simulation *sim, struct psd_transfer *walk)
{
	const unsigned first = psd_payload_group(&sim->program->ops[walk->task.op].payload, sim->layout).first;

	if (walk->is_over)
		return;
	walk->is_over = true;
	if (--sim->transfers[first].n_left == 0)
		psd_sim_steps_end(sim, first);
}

/* Sends the message of the next step when the previous one has left, both ends have finished it, and the messages of
 * earlier steps have arrived. */
static void advance(struct psd_simulation *sim, unsigned host)
{
	struct psd_transfer *walk = &sim->transfers[host];

	if (walk->n_parts_left > 0 || walk->next_receive < walk->next_send)
		return;
	if (walk->next_send == walk->n_steps) {
		finish_member(sim, walk);
		return;
	}
	const struct psd_step step = *step_of(sim, host, walk->next_send);
	if (!is_awaited(sim, step.to, host, walk->next_send))
		return;
	walk->next_send = next_step(sim, host, walk->next_send + 1, true);
	send_message(sim, host, &step);
}

void psd_sim_steps_begin(struct psd_simulation *sim, unsigned first)
{
	const struct psd_payload *payload = payload_of(sim, first);
	const struct psd_group group = psd_payload_group(payload, sim->layout);

	for (unsigned rank = 0; rank < group.n; rank++) {
		const unsigned host = psd_group_host(group, rank);

		sim->transfers[host] = (struct psd_transfer){
			.task = sim->transfers[first].task,
			.n_left = group.n,
			.at_step = {UINT_MAX, UINT_MAX},
			.n_steps = psd_payload_steps(payload, sim->layout),
		};
		sim->transfers[host].next_send = next_step(sim, host, 0, true);
		sim->transfers[host].next_receive = next_step(sim, host, 0, false);
	}
	for (unsigned rank = 0; rank < group.n; rank++)
		advance(sim, psd_group_host(group, rank));
}

void psd_sim_step_part_done(struct psd_simulation *sim, unsigned host)
{
	struct psd_transfer *walk = &sim->transfers[host];

	if (--walk->n_parts_left > 0)
		return;
	psd_network_timer(psd_network_latency_sec(host, walk->to), psd_event_tag(PSD_WAKE_STEP_ARRIVED, walk->to, 0));
	advance(sim, host);
}

/* Handles the arrival of a message at a host. The sender of the host's next message may have waited for it. */
void psd_sim_step_arrived(struct psd_simulation *sim, unsigned host)
{
	struct psd_transfer *walk = &sim->transfers[host];

	walk->next_receive = next_step(sim, host, walk->next_receive + 1, false);
	const unsigned awaited = walk->next_receive,
		       from = awaited < walk->n_steps ? step_of(sim, host, awaited)->from : host;
	advance(sim, host);
	if (from != host)
		advance(sim, from);
}

/* ---- all flows at once ---- */

static void start_socket(struct psd_simulation *sim, unsigned first, unsigned host, struct psd_socket_work work)
{
	if (work.sec <= 0.0)
		return;
	sim->transfers[first].n_left++;
	psd_sim_process(sim, host, work.sec, work.most_cores, psd_event_tag(PSD_WAKE_STEP_FLOW, first, 0));
}

static void start_flow(struct psd_simulation *sim, unsigned first, unsigned host, const struct psd_flow *flow)
{
	const uint64_t bytes = flow->elements * payload_of(sim, first)->value_bytes;
	const struct psd_socket_work end = psd_sim_socket_work(sim, host, flow->to, bytes, flow->n_messages);

	start_socket(sim, first, host, end);
	start_socket(sim, first, flow->to, end);
	sim->transfers[first].n_left++;
	psd_network_transfer(host, flow->to, bytes, psd_event_tag(PSD_WAKE_STEP_FLOW, first, 0));
}

static void start_all_flows(struct psd_simulation *sim, const struct psd_payload *payload, struct psd_group group)
{
	struct psd_flow flow;

	for (unsigned rank = 0; rank < group.n; rank++) {
		const unsigned host = psd_group_host(group, rank);

		for (unsigned i = 0; psd_payload_flow(payload, sim->layout, host, i, &flow); i++)
			if (flow.to != host)
				start_flow(sim, group.first, host, &flow);
	}
}

/* Returns the sum of the latencies of an operation's steps. The sum is cached, because timing the steps is slow. On a
 * user's platform the mean latency between nodes replaces the scenario's. */
static double delay_sec(struct psd_simulation *sim, uint32_t op)
{
	struct psd_rates rates = sim->simulated->plan.rates;
	rates.latency_sec = sim->hop_latency_sec;
	if (isnan(sim->delays_sec[op]))
		sim->delays_sec[op] = psd_cost_flows_delay_sec(&sim->program->ops[op].payload, sim->layout, &rates);
	return sim->delays_sec[op];
}

void psd_sim_step_flow_done(struct psd_simulation *sim, unsigned first)
{
	if (--sim->transfers[first].n_left > 0)
		return;
	const double sec = delay_sec(sim, sim->transfers[first].task.op);
	if (isnan(sec)) {
		sim->is_out_of_memory = true;
		psd_network_stop();
		return;
	}
	psd_network_timer(sec, psd_event_tag(PSD_WAKE_STEPS_END, first, 0));
}

/* ---- both fidelities ---- */

void psd_sim_steps_start(void *context, struct psd_task task)
{
	struct psd_simulation *sim = context;
	const struct psd_payload *payload = &sim->program->ops[task.op].payload;
	const struct psd_group group = psd_payload_group(payload, sim->layout);

	struct psd_alone_kind *kind = sim->alone.is_on ? psd_sim_alone_kind(sim, task.op) : NULL;

	sim->transfers[group.first] = (struct psd_transfer){.task = task};
	set_beside(sim, group, true);
	if (!kind) {
		count_bytes(sim, payload);
	} else {
		kind->n_runs++;
		kind->start_sec = psd_network_now_sec();
	}
	if (kind && !isnan(kind->sec))
		psd_network_timer(kind->sec, psd_event_tag(PSD_WAKE_STEPS_END, group.first, 0));
	else if (kind && sim->alone.has_classes)
		psd_sim_alone_start_flows(sim, &kind->classes, group.first);
	else if (psd_sim_walks_steps(sim, payload))
		psd_network_timer(psd_cost_class_sec(payload, sim->layout, &sim->simulated->plan.rates),
				  psd_event_tag(PSD_WAKE_STEPS_BEGIN, group.first, 0));
	else
		start_all_flows(sim, payload, group);
}

/* Returns the latency of a hop, without the difference of the nodes' kinds, which closed forms add. */
static double plain_latency_sec(const struct psd_layout *layout, unsigned from, unsigned to)
{
	return psd_network_latency_sec(from, to) -
	       psd_layout_more_latency_sec(layout, psd_layout_node(layout, from), psd_layout_node(layout, to));
}

void psd_sim_steps_find_latency(struct psd_simulation *sim)
{
	const unsigned n_workers = sim->layout->workers;
	const bool has_platform = sim->scenario->network.topology == PSD_TOPOLOGY_PLATFORM;
	for (unsigned rank = 0; rank < n_workers && n_workers > 1; rank++) {
		const unsigned next = (rank + 1) % n_workers;

		if (has_platform || psd_layout_reach(sim->layout, rank, next) >= PSD_REACH_FAR)
			sim->hop_latency_sec += plain_latency_sec(sim->layout, rank, next) / sim->layout->nodes;
	}
}
