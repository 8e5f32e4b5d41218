/* Transfers that go step by step: in message fidelity every message of every member, in flow fidelity one flow for all
 * that a member sends to another, and at the end what the steps wait for. */
#include "sim/executor/simulation.h"

static const struct psd_payload *payload_of(const struct psd_simulation *sim)
{
	return psd_simulation_payload(sim, sim->interpreter.collective);
}

static void count_bytes(struct psd_simulation *sim, const struct psd_payload *payload)
{
	for (unsigned node = 0; node < sim->layout->nodes; node++) {
		const struct psd_traffic traffic = psd_payload_node_traffic(payload, sim->layout, node);
		sim->sent_bytes[node] += traffic.sent_bytes;
		sim->received_bytes[node] += traffic.received_bytes;
	}
}

/* ---- message fidelity ---- */

/* One end of a member's message. */
static void start_end(struct psd_simulation *sim, unsigned sender, unsigned host, struct psd_socket_work work)
{
	if (work.sec <= 0.0)
		return;
	sim->walks[sender].n_parts_left++;
	psd_sim_process(sim, host, work.sec, work.most_cores, psd_wake_cookie(PSD_WAKE_STEP_SENT, sender, 0));
}

/* The network and both ends work on it at a time; its receiver waits for it. */
static void send_message(struct psd_simulation *sim, unsigned rank, const struct psd_step *step)
{
	struct psd_walk *walk = &sim->walks[rank];
	const uint64_t bytes = step->sent.elements * payload_of(sim)->value_bytes;

	walk->n_parts_left = 1;
	walk->to = step->to;
	psd_network_transfer(rank, step->to, bytes, psd_wake_cookie(PSD_WAKE_STEP_SENT, rank, 0));
	start_end(sim, rank, rank, psd_sim_socket_work(sim, bytes, 1.0));
	start_end(sim, rank, step->to, psd_sim_socket_work(sim, bytes, 1.0));
}

/* A member takes messages of others in the order of its steps: what comes too early waits at its sender. */
static bool is_awaited(const struct psd_simulation *sim, unsigned to, unsigned from, unsigned step)
{
	const struct psd_payload *payload = payload_of(sim);
	unsigned awaited = sim->walks[to].next_receive;

	while (awaited < step && psd_payload_step(payload, sim->layout, to, awaited).from == from)
		awaited = psd_payload_next_receive(payload, sim->layout, to, awaited + 1);
	return awaited >= step;
}

static void finish_member(struct psd_simulation *sim, struct psd_walk *walk)
{
	if (walk->is_over)
		return;
	walk->is_over = true;
	if (--sim->n_walks_left == 0)
		psd_interpreter_collective_finished(&sim->interpreter);
}

/* A step's message goes out when the one before has left, both ends are done with it, and what earlier steps bring has
 * arrived. */
static void advance(struct psd_simulation *sim, unsigned rank)
{
	struct psd_walk *walk = &sim->walks[rank];
	const struct psd_payload *payload = payload_of(sim);
	const unsigned n_steps = psd_payload_steps(payload, sim->layout);

	if (walk->n_parts_left > 0 || walk->next_receive < walk->next_send)
		return;
	if (walk->next_send == n_steps) {
		finish_member(sim, walk);
		return;
	}
	const struct psd_step step = psd_payload_step(payload, sim->layout, rank, walk->next_send);
	if (!is_awaited(sim, step.to, rank, walk->next_send))
		return;
	walk->next_send = psd_payload_next_send(payload, sim->layout, rank, walk->next_send + 1);
	send_message(sim, rank, &step);
}

void psd_sim_steps_begin(struct psd_simulation *sim)
{
	const struct psd_payload *payload = payload_of(sim);

	for (unsigned rank = 0; rank < sim->layout->workers; rank++)
		sim->walks[rank] = (struct psd_walk){
			.next_send = psd_payload_next_send(payload, sim->layout, rank, 0),
			.next_receive = psd_payload_next_receive(payload, sim->layout, rank, 0),
		};
	for (unsigned rank = 0; rank < sim->layout->workers; rank++)
		advance(sim, rank);
}

void psd_sim_step_part_done(struct psd_simulation *sim, unsigned rank)
{
	struct psd_walk *walk = &sim->walks[rank];

	if (--walk->n_parts_left > 0)
		return;
	psd_network_timer(psd_network_latency_sec(rank, walk->to), psd_wake_cookie(PSD_WAKE_STEP_ARRIVED, walk->to, 0));
	advance(sim, rank);
}

/* The next one that it waits for may wait for it. */
void psd_sim_step_arrived(struct psd_simulation *sim, unsigned rank)
{
	struct psd_walk *walk = &sim->walks[rank];
	const struct psd_payload *payload = payload_of(sim);

	walk->next_receive = psd_payload_next_receive(payload, sim->layout, rank, walk->next_receive + 1);
	const unsigned awaited = walk->next_receive;
	advance(sim, rank);
	if (awaited < psd_payload_steps(payload, sim->layout))
		advance(sim, psd_payload_step(payload, sim->layout, rank, awaited).from);
}

/* ---- flow fidelity ---- */

static void start_socket(struct psd_simulation *sim, unsigned host, struct psd_socket_work work)
{
	if (work.sec <= 0.0)
		return;
	sim->n_walks_left++;
	psd_sim_process(sim, host, work.sec, work.most_cores, psd_wake_cookie(PSD_WAKE_STEP_FLOW, host, 0));
}

static void start_flow(struct psd_simulation *sim, unsigned rank, const struct psd_flow *flow, uint64_t bytes)
{
	const struct psd_socket_work end = psd_sim_socket_work(sim, bytes, flow->n_messages);

	start_socket(sim, rank, end);
	start_socket(sim, flow->to, end);
	sim->n_walks_left++;
	psd_network_transfer(rank, flow->to, bytes, psd_wake_cookie(PSD_WAKE_STEP_FLOW, rank, 0));
}

static void start_all_flows(struct psd_simulation *sim, const struct psd_payload *payload)
{
	struct psd_flow flow;

	for (unsigned rank = 0; rank < sim->layout->workers; rank++)
		for (unsigned i = 0; psd_payload_flow(payload, sim->layout, rank, i, &flow); i++)
			if (flow.to != rank)
				start_flow(sim, rank, &flow, flow.elements * payload->value_bytes);
}

/* A user's platform has latencies of its own, which then replace the scenario's: the mean between nodes. */
static double delay_sec(const struct psd_simulation *sim, const struct psd_payload *payload)
{
	struct psd_rates rates = sim->simulated->plan.rates;
	rates.latency_sec = sim->hop_latency_sec;
	return psd_cost_delay_sec(payload, sim->layout, &rates);
}

void psd_sim_step_flow_done(struct psd_simulation *sim)
{
	if (--sim->n_walks_left > 0)
		return;
	psd_network_timer(delay_sec(sim, payload_of(sim)), psd_wake_cookie(PSD_WAKE_STEPS_END, 0, 0));
}

/* ---- either ---- */

void psd_sim_steps_start(void *context, struct psd_task task)
{
	struct psd_simulation *sim = context;
	const struct psd_payload *payload = psd_simulation_payload(sim, task);

	count_bytes(sim, payload);
	sim->n_walks_left = 0;
	if (!sim->is_message_fidelity) {
		start_all_flows(sim, payload);
		return;
	}
	sim->n_walks_left = sim->layout->workers;
	psd_network_timer(psd_cost_class_sec(payload, sim->layout, &sim->simulated->plan.rates),
			  psd_wake_cookie(PSD_WAKE_STEPS_BEGIN, 0, 0));
}

void psd_sim_steps_find_latency(struct psd_simulation *sim)
{
	const unsigned n_workers = sim->layout->workers;
	for (unsigned rank = 0; rank < n_workers && n_workers > 1; rank++)
		sim->hop_latency_sec += psd_network_latency_sec(rank, (rank + 1) % n_workers) / sim->layout->nodes;
}
