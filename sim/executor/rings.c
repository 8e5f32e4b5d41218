/* Ring all-reduce: step by step in message fidelity, as one flow to each neighbour in flow fidelity. */
#include "engine/schedules/ring.h"

#include <math.h>

#include "sim/executor/simulation.h"

static void start_part(struct psd_simulation *sim, unsigned from, unsigned host, struct psd_socket_work work)
{
	if (work.sec <= 0.0)
		return;
	sim->ranks[from].n_parts_left++;
	psd_sim_process(sim, host, work.sec, work.most_cores, psd_wake_cookie(PSD_WAKE_RING_SENT, from, 0));
}

/* The network and both ends work on it at a time; its receiver waits for it. */
static void send_ring_message(struct psd_simulation *sim, unsigned rank)
{
	struct psd_ring_rank *state = &sim->ranks[rank];
	const struct psd_payload *payload = psd_simulation_payload(sim, sim->interpreter.collective);
	const unsigned n_workers = sim->layout->workers, to = (rank + 1) % n_workers;
	const struct psd_ring_step step = psd_ring_step(payload->elements, n_workers, rank, state->step);
	const uint64_t bytes = step.elements * payload->value_bytes;
	state->step++;
	state->n_parts_left = 1;
	psd_network_transfer(rank, to, bytes, psd_wake_cookie(PSD_WAKE_RING_SENT, rank, 0));
	start_part(sim, rank, rank, psd_sim_socket_work(sim, bytes, 1.0));
	start_part(sim, rank, to, psd_sim_socket_work(sim, bytes, 1.0));
}

/* Step k + 1 goes out when step k has left, both ends are done with it, and the chunk of step k has arrived. */
void psd_sim_ring_advance(struct psd_simulation *sim, unsigned rank)
{
	struct psd_ring_rank *state = &sim->ranks[rank];
	const unsigned n_steps = 2 * (sim->layout->workers - 1);
	if (state->n_parts_left > 0 || state->n_arrived < state->step)
		return;
	if (state->step < n_steps) {
		send_ring_message(sim, rank);
		return;
	}
	if (--sim->n_ring_left == 0)
		psd_interpreter_collective_finished(&sim->interpreter);
}

/* A user's platform has latencies of its own, which then replace the scenario's. */
static double ring_delay_sec(const struct psd_simulation *sim, const struct psd_payload *payload)
{
	struct psd_rates rates = sim->simulated->plan.rates;
	rates.latency_sec = sim->ring_latency_sec * sim->layout->workers / sim->layout->nodes;
	return psd_cost_ring_delay_sec(payload, sim->layout, &rates);
}

static void start_socket(struct psd_simulation *sim, unsigned rank, struct psd_socket_work work)
{
	if (work.sec <= 0.0)
		return;
	sim->n_ring_left++;
	psd_sim_process(sim, rank, work.sec, work.most_cores, psd_wake_cookie(PSD_WAKE_RING_FLOW, rank, 0));
}

/* Each worker sends its way around the ring, and receives its neighbour's, who waits for each message. */
static void start_sockets(struct psd_simulation *sim, const struct psd_payload *payload)
{
	const unsigned n_workers = sim->layout->workers;
	const double n_messages = psd_cost_ring_messages(sim->layout);

	for (unsigned rank = 0; rank < n_workers; rank++) {
		const unsigned to = (rank + 1) % n_workers;
		const uint64_t bytes = psd_payload_bytes_between(payload, sim->layout, rank, to);

		start_socket(sim, rank, psd_sim_socket_work(sim, bytes, n_messages));
		start_socket(sim, to, psd_sim_socket_work(sim, bytes, n_messages));
	}
}

static void count_ring_bytes(struct psd_simulation *sim, const struct psd_payload *payload)
{
	for (unsigned node = 0; node < sim->layout->nodes; node++) {
		const struct psd_traffic traffic = psd_payload_node_traffic(payload, sim->layout, node);
		sim->sent_bytes[node] += traffic.sent_bytes;
		sim->received_bytes[node] += traffic.received_bytes;
	}
}

void psd_sim_ring_start(void *context, struct psd_task task)
{
	struct psd_simulation *sim = context;
	const struct psd_payload *payload = psd_simulation_payload(sim, task);
	const unsigned n_workers = sim->layout->workers;
	sim->n_ring_left = n_workers;
	count_ring_bytes(sim, payload);
	if (sim->is_message_fidelity) {
		psd_network_timer(psd_cost_ring_class_sec(payload, sim->layout, &sim->simulated->plan.rates),
				  psd_wake_cookie(PSD_WAKE_RING_BEGINS, 0, 0));
		return;
	}
	start_sockets(sim, payload);
	for (unsigned rank = 0; rank < n_workers; rank++) {
		const unsigned to = (rank + 1) % n_workers;
		psd_network_transfer(rank, to, psd_payload_bytes_between(payload, sim->layout, rank, to),
				     psd_wake_cookie(PSD_WAKE_RING_FLOW, rank, 0));
	}
}

void psd_sim_ring_begin(struct psd_simulation *sim)
{
	for (unsigned rank = 0; rank < sim->layout->workers; rank++) {
		sim->ranks[rank] = (struct psd_ring_rank){0};
		send_ring_message(sim, rank);
	}
}

void psd_sim_ring_message_left(struct psd_simulation *sim, unsigned rank)
{
	const unsigned to = (rank + 1) % sim->layout->workers;
	if (--sim->ranks[rank].n_parts_left > 0)
		return;
	psd_network_timer(psd_network_latency_sec(rank, to), psd_wake_cookie(PSD_WAKE_RING_ARRIVED, to, 0));
	psd_sim_ring_advance(sim, rank);
}

void psd_sim_ring_part_done(struct psd_simulation *sim)
{
	if (--sim->n_ring_left > 0)
		return;
	const struct psd_payload *payload = psd_simulation_payload(sim, sim->interpreter.collective);
	psd_network_timer(ring_delay_sec(sim, payload), psd_wake_cookie(PSD_WAKE_RING_END, 0, 0));
}

void psd_sim_ring_find_latency(struct psd_simulation *sim)
{
	const unsigned n_workers = sim->layout->workers;
	for (unsigned rank = 0; rank < n_workers && n_workers > 1; rank++)
		sim->ring_latency_sec += psd_network_latency_sec(rank, (rank + 1) % n_workers) / n_workers;
}
