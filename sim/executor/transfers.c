/* Transfers that send all messages at once, as single messages or as flows that carry several. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sim/executor/simulation.h"

#include "engine/base/grow.h"
#include "engine/program/jitter.h"

/* In flow fidelity a dense exchange of more than MOST_MESSAGES messages uses this many shifted flows per sender. One
 * flow is exact where all nodes and links are alike. 16 flows stay within 1.3 % of all P (P-1) messages on other
 * clusters. Nodes that own whole matrices are hot spots and take 64. */
enum { SHIFT_FLOWS_ALIKE = 1, SHIFT_FLOWS = 16, SHIFT_FLOWS_HOT = 64, MOST_MESSAGES = 16 };

static bool is_alike_everywhere(const struct psd_scenario *scenario)
{
	return scenario->network.topology == PSD_TOPOLOGY_STAR && scenario->n_slowdowns == 0 &&
	       scenario->n_backgrounds == 0 && scenario->n_groups == 0;
}

unsigned psd_sim_shift_flows(const struct psd_case *simulated)
{
	const struct psd_scenario *scenario = simulated->costed->scenario;
	const struct psd_program *program = &simulated->program;
	for (uint32_t i = 0; i < program->n_ops; i++)
		if (program->ops[i].where == PSD_WHERE_ROOT)
			return SHIFT_FLOWS_HOT;
	return is_alike_everywhere(scenario) ? SHIFT_FLOWS_ALIKE : SHIFT_FLOWS;
}

/* Flows carry several messages only where every host is worker and shard, and has more peers than flows. Hosts with
 * neighbouring numbers are of one kind, so that few flows would leave out the others. */
bool psd_sim_is_aggregated(const struct psd_simulation *sim, const struct psd_payload *payload)
{
	const struct psd_layout *layout = sim->layout;
	return !sim->is_message_fidelity && sim->scenario->n_groups == 0 && !payload->collective->has_root &&
	       !payload->collective->rotates && !layout->has_separate_servers && layout->workers_per_node == 1 &&
	       layout->workers - 1 > MOST_MESSAGES && layout->workers - 1 > sim->n_shift_flows;
}

uint32_t psd_sim_arrivals(const void *context, const struct psd_op *receive, unsigned host)
{
	const struct psd_simulation *sim = context;
	const struct psd_payload payload = psd_op_payload(receive, 0); /* the number is that of each iteration */
	if (psd_sim_is_aggregated(sim, &payload))
		return 1; /* end_shift_flow() reports one arrival for all senders together */
	if (sim->exchange)
		return psd_payload_senders(&payload, sim->layout, host) > 0;
	return psd_payload_senders(&payload, sim->layout, host);
}

/* ---- hosts that stand for others ---- */

/* True if all transfers are exchanges of all hosts with all hosts, of one flow each to the next host. Each link then
 * has the flows of one sender alone, one at a time, and hosts that send equally many bytes do so at the same times. */
static bool has_own_links(const struct psd_simulation *sim)
{
	if (sim->detail != PSD_DETAIL_CLASSES || sim->alone.is_on || sim->exchange || sim->n_shift_flows > 1 ||
	    psd_sim_has_processors(sim) || psd_jitter_is_drawn(sim->scenario))
		return false;
	for (uint32_t i = 0; i < sim->program->n_ops; i++) {
		const struct psd_op *op = &sim->program->ops[i];

		if (psd_op_is_collective(op) || op->where == PSD_WHERE_ROOT || op->where == PSD_WHERE_GROUP)
			return false;
		if (psd_op_is_send(op) && !psd_sim_is_aggregated(sim, &op->payload))
			return false;
	}
	return true;
}

static uint64_t run_bytes(const struct psd_simulation *sim, const struct psd_payload *payload, unsigned from,
			  unsigned run);

static bool are_equal(const struct psd_payload *a, const struct psd_payload *b)
{
	return a->collective == b->collective && a->elements == b->elements && a->value_bytes == b->value_bytes;
}

/* Fills the distinct payloads, and returns their number. */
static uint32_t list_payloads(const struct psd_program *program, const struct psd_payload *payloads[])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < program->n_ops; i++) {
		const struct psd_payload *payload = &program->ops[i].payload;
		uint32_t p = 0;

		while (psd_op_is_send(&program->ops[i]) && p < n && !are_equal(payloads[p], payload))
			p++;
		if (psd_op_is_send(&program->ops[i]) && p == n)
			payloads[n++] = payload;
	}
	return n;
}

/* True if both hosts send equally many bytes in all transfers. */
static bool send_alike(const struct psd_simulation *sim, const struct psd_payload *const payloads[], uint32_t n,
		       unsigned a, unsigned b)
{
	for (uint32_t p = 0; p < n; p++)
		if (run_bytes(sim, payloads[p], a, 0) != run_bytes(sim, payloads[p], b, 0))
			return false;
	return true;
}

enum psd_status psd_sim_find_alike(struct psd_simulation *sim, struct psd_error *err)
{
	const struct psd_payload **payloads;
	const unsigned n_hosts = sim->n_hosts;

	if (!has_own_links(sim))
		return PSD_OK;
	payloads = malloc((sim->program->n_ops + 1) * sizeof(*payloads));
	sim->hosts = malloc(n_hosts * sizeof(*sim->hosts));
	if (!payloads || !sim->hosts) {
		free(payloads);
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for %u hosts", n_hosts);
	}
	const uint32_t n = list_payloads(sim->program, payloads);
	sim->n_hosts = 0;
	for (unsigned h = 0; h < n_hosts; h++) {
		unsigned i = sim->n_hosts; /* hosts with neighbouring numbers are alike */

		while (i > 0 && !send_alike(sim, payloads, n, sim->hosts[i - 1], h))
			i--;
		if (i == 0)
			sim->hosts[sim->n_hosts++] = h;
	}
	free(payloads);
	return PSD_OK;
}

/* ---- messages ---- */

static double larger(unsigned a, unsigned b)
{
	return a > b ? a : b;
}

double psd_sim_transfer_events(const struct psd_simulation *sim, const struct psd_op *op)
{
	/* number of concurrent messages at which the solver takes twice as long for each; all end together, or not */
	const double doubling =
		is_alike_everywhere(sim->scenario) && !psd_jitter_is_drawn(sim->scenario) ? 40000.0 : 250.0;
	const struct psd_payload of_first = psd_op_payload(op, 0), *payload = &of_first;
	const unsigned n_hosts = psd_layout_hosts(sim->layout);

	if (sim->exchange)
		return psd_op_is_send(op) ? psd_sim_exchange_events(sim) : 0.0;
	if (psd_op_is_collective(op) && psd_sim_walks_steps(sim, payload))
		return (double)psd_payload_group(payload, sim->layout).n * psd_payload_steps(payload, sim->layout);
	if (!psd_op_is_send(op) || payload->collective->has_root || psd_sim_is_aggregated(sim, payload))
		return 0.0;
	const double n_messages = n_hosts * larger(psd_payload_receivers(payload, sim->layout, 0),
						   psd_payload_receivers(payload, sim->layout, n_hosts - 1));
	return n_messages * (1.0 + n_messages / doubling);
}

static bool add_crossings(struct psd_simulation *sim)
{
	const unsigned room = sim->n_crossings ? 2 * sim->n_crossings : 64;
	struct psd_crossing *grown = realloc(sim->crossings, room * sizeof(*grown));

	if (!grown)
		return false;
	sim->crossings = grown;
	for (; sim->n_crossings < room; sim->n_crossings++)
		grown[sim->n_crossings].next_free = sim->n_crossings + 1;
	return true;
}

static void start_end(struct psd_simulation *sim, unsigned host, struct psd_socket_work work, unsigned n_others,
		      unsigned crossing)
{
	psd_sim_process(sim, host, work.sec, work.most_cores / n_others, psd_event_tag(PSD_WAKE_CROSSING, 0, crossing));
}

/* Returns the number of receivers of a send operation that are on other nodes, if `to` is on another node, or that are
 * on the sender's node. They are counted once for each operation. */
static unsigned count_receivers(struct psd_simulation *sim, unsigned from, unsigned to)
{
	struct psd_sending *sending = &sim->sendings[from];
	const bool is_near = psd_layout_node(sim->layout, from) == psd_layout_node(sim->layout, to);
	unsigned *n_receivers = &sending->n_receivers[is_near];

	const struct psd_payload payload = psd_simulation_payload(sim, sending->task);

	if (*n_receivers == 0)
		*n_receivers = psd_payload_receivers_beside(&payload, sim->layout, from, to);
	return *n_receivers;
}

/* The network and both ends work on a message at the same time. An end with several messages works on all of them. */
static void start_crossing(struct psd_simulation *sim, unsigned from, unsigned to, const struct psd_payload *payload,
			   uint64_t bytes, struct psd_socket_work end)
{
	const unsigned index = sim->free_crossing;
	const bool stands_for_several = psd_sim_is_aggregated(sim, payload);
	const unsigned n_receivers = stands_for_several		      ? sim->n_shift_flows
				     : payload->collective->is_queued ? 1
								      : count_receivers(sim, from, to);
	const unsigned n_senders =
		stands_for_several ? sim->n_shift_flows : psd_payload_senders_beside(payload, sim->layout, from, to);

	if (index == sim->n_crossings && !add_crossings(sim)) {
		sim->is_out_of_memory = true;
		psd_network_stop();
		return;
	}
	sim->free_crossing = sim->crossings[index].next_free;
	sim->crossings[index] = (struct psd_crossing){
		.from = from, .to = to, .is_queued = payload->collective->is_queued, .n_parts_left = 3};
	psd_network_transfer(from, to, bytes, psd_event_tag(PSD_WAKE_CROSSING, 0, index));
	start_end(sim, from, end, n_receivers, index);
	start_end(sim, to, end, n_senders, index);
}

void psd_sim_end_crossing(struct psd_simulation *sim, unsigned index)
{
	struct psd_crossing *crossing = &sim->crossings[index];

	if (--crossing->n_parts_left > 0)
		return;
	crossing->next_free = sim->free_crossing;
	sim->free_crossing = index;
	if (crossing->is_queued)
		psd_sim_wake_queue(sim, crossing->from, crossing->to);
	else
		psd_sim_end_flow(sim, crossing->from, crossing->to);
}

/* Starts a flow that carries n equal messages for n hosts; `to` is the first of them. */
static void start_flow(struct psd_simulation *sim, unsigned from, unsigned to, const struct psd_payload *payload,
		       uint64_t bytes, unsigned n_messages)
{
	const unsigned from_node = psd_layout_node(sim->layout, psd_sim_host(sim, from));
	const unsigned to_node = psd_layout_node(sim->layout, to);
	const struct psd_socket_work end = psd_sim_socket_work(sim, from, to, bytes, n_messages);
	const enum psd_wake kind = payload->collective->is_queued ? PSD_WAKE_QUEUE : PSD_WAKE_FLOW;

	sim->sendings[from].n_flows_left += !payload->collective->is_queued;
	if (from_node != to_node) {
		sim->sent_bytes[from_node] += bytes;
		sim->received_bytes[to_node] += bytes;
	}
	if (end.sec > 0.0)
		start_crossing(sim, from, to, payload, bytes, end);
	else
		psd_network_transfer(psd_sim_host(sim, from), to, bytes, psd_event_tag(kind, from, to));
}

/* Number of members of each rack where racks are full, and there are several; otherwise 0. */
static unsigned full_rack(const struct psd_simulation *sim)
{
	const unsigned n_hosts = sim->layout->workers, per_rack = sim->layout->nodes_per_rack;

	return per_rack > 1 && per_rack < n_hosts && n_hosts % per_rack == 0 ? per_rack : 0;
}

/* A sender's peers in an order that is the same from each sender's position: the hosts behind it, around all of them.
 * In full racks those of its rack come first, and then those of the next rack, from its own position in that on, and so
 * on: all senders have equally many peers in other racks among the first ones. */
static unsigned peer_of(const struct psd_simulation *sim, unsigned from, unsigned i)
{
	const unsigned n_hosts = sim->layout->workers, n = full_rack(sim), after = i + 1;

	if (n == 0)
		return (from + after) % n_hosts;
	return (from / n + after / n) % (n_hosts / n) * n + (from % n + after % n) % n;
}

/* Divides the peers of each sender into K runs of about equal length, those inside its rack apart. The first peer of a
 * run receives the bytes of the whole run. So each host receives from K senders as many bytes as it would from all. */
static unsigned first_peer(const struct psd_simulation *sim, unsigned run)
{
	const unsigned n_peers = sim->layout->workers - 1, n_runs = sim->n_shift_flows, n = full_rack(sim);

	if (n == 0 || n_runs == 1)
		return run * n_peers / n_runs;
	const unsigned n_inside = n - 1, share = n_runs * n_inside / n_peers, inside = share > 0 ? share : 1;

	if (run < inside)
		return run * n_inside / inside;
	return n_inside + (run - inside) * (n_peers - n_inside) / (n_runs - inside);
}

static uint64_t run_bytes(const struct psd_simulation *sim, const struct psd_payload *payload, unsigned from,
			  unsigned run)
{
	const unsigned n_around = full_rack(sim) ? full_rack(sim) : sim->layout->workers,
		       end = first_peer(sim, run + 1);
	uint64_t bytes = 0;
	unsigned n;

	for (unsigned i = first_peer(sim, run); i < end; i += n) {
		const unsigned to = peer_of(sim, from, i), n_before_wrap = n_around - to % n_around;
		const unsigned n_of_rack = n_around - (i + 1) % n_around;

		n = n_before_wrap < n_of_rack ? n_before_wrap : n_of_rack;
		n = n < end - i ? n : end - i;
		bytes += psd_payload_bytes_to_run(payload, sim->layout, from, to, n);
	}
	return bytes;
}

static void start_shift_flows(struct psd_simulation *sim, unsigned from, const struct psd_payload *payload)
{
	const unsigned host = psd_sim_host(sim, from);
	const bool has_paused = psd_interpreter_has_paused(&sim->interpreter, from);

	for (unsigned run = 0; run < sim->n_shift_flows; run++)
		start_flow(sim, from, peer_of(sim, host, first_peer(sim, run)), payload,
			   run_bytes(sim, payload, host, run),
			   has_paused ? first_peer(sim, run + 1) - first_peer(sim, run) : 0);
}

static unsigned run_of(const struct psd_simulation *sim, unsigned from, unsigned to)
{
	unsigned run = 0;

	while (peer_of(sim, from, first_peer(sim, run)) != to)
		run++;
	return run;
}

/* Bytes carried by the flow between two hosts. */
static uint64_t flow_bytes(const struct psd_simulation *sim, const struct psd_payload *payload, unsigned from,
			   unsigned to)
{
	if (!psd_sim_is_aggregated(sim, payload))
		return psd_payload_bytes_between(payload, sim->layout, from, to);
	return run_bytes(sim, payload, from, run_of(sim, from, to));
}

static void start_flow_of_pair(struct psd_simulation *sim, const struct psd_payload *payload, unsigned from,
			       unsigned to)
{
	const uint64_t bytes = psd_payload_bytes_between(payload, sim->layout, from, to);

	if (bytes > 0)
		start_flow(sim, from, to, payload, bytes, psd_interpreter_has_paused(&sim->interpreter, from));
}

static void start_flows(struct psd_simulation *sim, unsigned from)
{
	const struct psd_payload of_task = psd_simulation_payload(sim, sim->sendings[from].task), *payload = &of_task;
	const unsigned n_hosts = psd_layout_hosts(sim->layout);

	if (psd_sim_is_aggregated(sim, payload))
		start_shift_flows(sim, from, payload);
	else if (payload->collective->has_root && from != payload->root)
		start_flow_of_pair(sim, payload, from, payload->root);
	else
		for (unsigned peer = 1; peer < n_hosts; peer++)
			start_flow_of_pair(sim, payload, from, (from + peer) % n_hosts);
}

static void report_arrival(struct psd_simulation *sim, unsigned from, unsigned to, struct psd_task task,
			   double start_sec)
{
	const struct psd_payload payload = psd_simulation_payload(sim, task);

	if (sim->span == NULL)
		return;
	const struct psd_span span = {
		.host = to,
		.task = task,
		.is_arrival = true,
		.bytes = flow_bytes(sim, &payload, psd_sim_host(sim, from), to),
		.start_sec = start_sec,
		.end_sec = psd_network_now_sec() + psd_network_latency_sec(from, to),
		.peer = from,
	};
	sim->span(sim->span_context, sim->program, &span);
}

/* The message was counted as departed. */
static void arrive(struct psd_simulation *sim, unsigned from, unsigned to, struct psd_task task)
{
	const double latency_sec = psd_network_latency_sec(from, psd_sim_host(sim, to));

	if (latency_sec > 0.0)
		psd_network_timer(latency_sec, psd_event_tag_of_task(PSD_WAKE_ARRIVAL, to, task));
	else
		psd_interpreter_arrived(&sim->interpreter, to, task);
}

/* ---- queues of messages between two hosts ---- */

static void start_queued(struct psd_simulation *sim, unsigned from, unsigned to, bool is_behind)
{
	struct psd_sim_queue *queue = &sim->queues[(size_t)from * sim->n_hosts + to];
	const struct psd_payload payload = psd_simulation_payload(sim, queue->tasks[0]);

	queue->start_sec = psd_network_now_sec();
	start_flow(sim, from, to, &payload, psd_payload_bytes_between(&payload, sim->layout, from, to), !is_behind);
}

/* Puts the message of a send operation into the queue to the operation's root. */
static bool send_queued(struct psd_simulation *sim, unsigned from, struct psd_task task)
{
	const unsigned to = sim->program->ops[task.op].payload.root;
	struct psd_sim_queue *queue = &sim->queues[(size_t)from * sim->n_hosts + to];
	struct psd_task *grown = psd_grown(queue->tasks, queue->n, &queue->room, sizeof(*grown));

	assert(!sim->hosts);
	psd_network_timer(0.0, psd_event_tag(PSD_WAKE_QUEUE, from, from));
	if (!grown) {
		sim->is_out_of_memory = true;
		psd_network_stop();
		return true;
	}
	queue->tasks = grown;
	queue->tasks[queue->n++] = task;
	if (queue->n == 1)
		start_queued(sim, from, to, false);
	return true;
}

void psd_sim_wake_queue(struct psd_simulation *sim, unsigned from, unsigned to)
{
	struct psd_sim_queue *queue = &sim->queues[(size_t)from * sim->n_hosts + to];

	if (from == to) {
		psd_interpreter_queued(&sim->interpreter, from);
		return;
	}
	const struct psd_task task = queue->tasks[0];

	report_arrival(sim, from, to, task, queue->start_sec);
	memmove(queue->tasks, queue->tasks + 1, --queue->n * sizeof(task));
	psd_interpreter_left(&sim->interpreter, from);
	if (queue->n > 0)
		start_queued(sim, from, to, true);
	arrive(sim, from, to, task);
}

/* ---- all messages of an operation at once ---- */

bool psd_sim_send(void *context, unsigned host, struct psd_task task)
{
	struct psd_simulation *sim = context;
	const struct psd_payload of_task = psd_simulation_payload(sim, task), *payload = &of_task;

	if (sim->exchange)
		return psd_sim_exchange_send(sim, host, task);
	if (!psd_sim_is_aggregated(sim, payload) && psd_payload_receivers(payload, sim->layout, host) == 0)
		return false;
	if (payload->collective->is_queued)
		return send_queued(sim, host, task);
	sim->sendings[host] = (struct psd_sending){.task = task, .start_sec = psd_network_now_sec()};
	start_flows(sim, host);
	return true;
}

/* Every host waits for a message from every sender, and a flow stands for messages to several hosts. So all messages
 * arrive with the last flow. */
static void end_shift_flow(struct psd_simulation *sim, unsigned from, struct psd_task task)
{
	const unsigned n_hosts = sim->n_hosts, host = psd_sim_host(sim, from);
	const size_t row = task.iteration % sim->program->window;
	uint32_t *n_done = &sim->n_shift_flows_done[row * sim->program->n_ops + task.op];
	if (++*n_done < n_hosts * sim->n_shift_flows)
		return;
	*n_done = 0;
	for (unsigned to = 0; to < n_hosts; to++) {
		psd_interpreter_departed(&sim->interpreter);
		arrive(sim, to == from ? (host + 1) % sim->layout->workers : host, to, task);
	}
}

void psd_sim_end_flow(struct psd_simulation *sim, unsigned from, unsigned to)
{
	struct psd_sending *sending = &sim->sendings[from];
	const struct psd_task task = sending->task;

	report_arrival(sim, from, to, task, sending->start_sec);
	if (--sending->n_flows_left == 0)
		psd_interpreter_finished(&sim->interpreter, from, PSD_RESOURCE_NIC);
	if (psd_sim_is_aggregated(sim, &sim->program->ops[task.op].payload)) {
		end_shift_flow(sim, from, task);
		return;
	}
	psd_interpreter_departed(&sim->interpreter);
	arrive(sim, from, to, task);
}
