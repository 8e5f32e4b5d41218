/* The interpreter over every host of a case, with SimGrid for a clock and a network. Refuses to print and to fork. */
#include "sim/simulate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/interpreter.h"
#include "engine/ring.h"

/* A dense exchange in flow fidelity: each sender's messages travel in this many flows, shifted around the cluster, once there are more than
 * MOST_MESSAGES of them. One is exact where all nodes and ways are alike; 16 stay within 1.3 % of all P (P-1) messages on other
 * clusters; nodes that own whole matrices are hot spots, which take 64. */
enum { SHIFT_FLOWS_ALIKE = 1, SHIFT_FLOWS = 16, SHIFT_FLOWS_HOT = 64, MOST_MESSAGES = 16 };

/* What woke us is told by the cookie: kind, then host or two hosts, then the task. */
enum wake {
	WAKE_WORK,        /* host, resource */
	WAKE_SEND_BEGINS, /* host: its message overhead is over */
	WAKE_FLOW,        /* from, to */
	WAKE_ARRIVAL,     /* host, task of the send */
	WAKE_RING_FLOW,   /* flow fidelity: one worker's share has arrived */
	WAKE_RING_END,    /* the delays of its steps are over too */
	WAKE_RING_BEGINS, /* message fidelity: what its size class adds is over */
	WAKE_RING_SENT,   /* message fidelity: host's message has left */
	WAKE_RING_ARRIVED,/* the message to host is there */
	WAKE_LINK,        /* slowdown index: its link changes */
	WAKE_BACKGROUND_SENT,
	WAKE_BACKGROUND_DUE,
};

struct sending {
	struct psd_task task;
	unsigned n_flows_left;
	double start_sec;
};

struct ring_rank {
	unsigned step;       /* the next to send */
	unsigned n_arrived;
	bool is_sending;
};

struct simulation {
	const struct psd_case *simulated;
	const struct psd_scenario *scenario;
	const struct psd_program *program;
	const struct psd_layout *layout;
	struct psd_interpreter interpreter;
	bool is_message_fidelity;
	unsigned n_shift_flows;
	psd_span_fn span;
	void *span_context;
	struct psd_duties *duties; /* distinct ones */
	unsigned n_duties;
	const struct psd_duties **duties_of_host;
	struct sending *sendings;  /* per host; its NIC sends one operation at a time */
	struct ring_rank *ranks;   /* per worker */
	unsigned n_ring_left;
	double ring_latency_sec;   /* mean over the hops between neighbours */
	uint64_t *sent_bytes;      /* per node */
	uint64_t *received_bytes;
	unsigned first_incomplete; /* hosts below have carried out everything */
};

/* ---- cookies: kind 4 bits, a 20, b 20, c 20 ---- */

static uint64_t cookie(enum wake kind, unsigned a, unsigned b)
{
	return (uint64_t)kind << 60 | (uint64_t)a << 40 | (uint64_t)b;
}

static uint64_t task_cookie(enum wake kind, unsigned host, struct psd_task task)
{
	return cookie(kind, host, 0) | (uint64_t)(task.iteration & 0xffff) << 24 | (task.op & 0xffffff);
}

static unsigned cookie_host(uint64_t value)
{
	return (unsigned)(value >> 40 & 0xfffff);
}

static unsigned cookie_rest(uint64_t value)
{
	return (unsigned)(value & 0xfffff);
}

static struct psd_task cookie_task(uint64_t value)
{
	return (struct psd_task){(uint32_t)(value >> 24 & 0xffff), (uint32_t)(value & 0xffffff)};
}

static const struct psd_payload *payload_of(const struct simulation *sim, struct psd_task task)
{
	return &sim->program->ops[task.op].payload;
}

/* ---- compute ---- */

static uint64_t mixed(uint64_t x) /* splitmix64 */
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static double uniform(uint64_t bits) /* in (0, 1] */
{
	return ((double)(bits >> 11) + 1.0) / 9007199254740992.0;
}

/* A draw that depends on seed, host and task alone. Log-normal with mean 1, so that it is positive and slow tails are longer. */
static double jitter_factor(const struct simulation *sim, unsigned host, struct psd_task task)
{
	const double ratio = sim->scenario->jitter_ratio;
	if (ratio == 0.0)
		return 1.0;
	const double sigma = sqrt(log(1.0 + ratio * ratio));
	const uint64_t key = mixed(mixed(mixed(sim->scenario->seed) ^ host) ^ ((uint64_t)task.iteration << 32 | task.op));
	const double normal = sqrt(-2.0 * log(uniform(mixed(key)))) * cos(2.0 * 3.14159265358979323846 * uniform(mixed(key + 1)));
	return exp(sigma * normal - sigma * sigma / 2.0);
}

static double compute_speed_ratio(const struct simulation *sim, unsigned node, double at_sec, double *until_sec)
{
	double speed_ratio = 1.0;
	*until_sec = INFINITY;
	for (unsigned i = 0; i < sim->scenario->n_slowdowns; i++) {
		const struct psd_slowdown *slowdown = &sim->scenario->slowdowns[i];
		if (slowdown->node != node || at_sec >= slowdown->until_sec)
			continue;
		const bool is_on = at_sec >= slowdown->from_sec;
		speed_ratio *= is_on ? slowdown->compute_ratio : 1.0;
		*until_sec = fmin(*until_sec, is_on ? slowdown->until_sec : slowdown->from_sec);
	}
	return speed_ratio;
}

/* Seconds that `sec` of work at full speed take on this node from now on. */
static double slowed_sec(const struct simulation *sim, unsigned node, double sec)
{
	const double start_sec = psd_network_now_sec();
	double at_sec = start_sec;
	for (;;) {
		double until_sec;
		const double speed_ratio = compute_speed_ratio(sim, node, at_sec, &until_sec);
		if (at_sec + sec / speed_ratio <= until_sec)
			return at_sec + sec / speed_ratio - start_sec;
		sec -= (until_sec - at_sec) * speed_ratio;
		at_sec = until_sec;
	}
}

static double sim_now(void *context)
{
	(void)context;
	return psd_network_now_sec();
}

static void sim_work(void *context, unsigned host, enum psd_resource resource, struct psd_task task, double sec)
{
	const struct simulation *sim = context;
	const enum psd_op_kind kind = sim->program->ops[task.op].kind;
	if (kind == PSD_OP_FORWARD || kind == PSD_OP_BACKWARD)
		sec *= jitter_factor(sim, host, task);
	if (resource == PSD_RESOURCE_DEVICE && sim->scenario->n_slowdowns > 0)
		sec = slowed_sec(sim, psd_layout_node(sim->layout, host), sec);
	psd_network_timer(sec, cookie(WAKE_WORK, host, resource));
}

/* ---- sends ---- */

/* Flows stand for several messages only where every host is worker and shard alike and there are more peers than flows. */
static bool is_aggregated(const struct simulation *sim, const struct psd_payload *payload)
{
	const struct psd_layout *layout = sim->layout;
	const bool is_dense = payload->pattern == PSD_PATTERN_PUSH || payload->pattern == PSD_PATTERN_PULL ||
			      payload->pattern == PSD_PATTERN_BROADCAST;
	return !sim->is_message_fidelity && is_dense && !layout->has_separate_servers && layout->workers_per_node == 1 &&
	       layout->workers - 1 > MOST_MESSAGES && layout->workers - 1 > sim->n_shift_flows;
}

static uint32_t sim_arrivals(const void *context, const struct psd_op *receive, unsigned host)
{
	const struct simulation *sim = context;
	if (is_aggregated(sim, &receive->payload))
		return sim->n_shift_flows;
	return psd_payload_senders(&receive->payload, sim->layout, host);
}

static void start_flow(struct simulation *sim, unsigned from, unsigned to, uint64_t bytes)
{
	const unsigned from_node = psd_layout_node(sim->layout, from);
	const unsigned to_node = psd_layout_node(sim->layout, to);
	sim->sendings[from].n_flows_left++;
	if (from_node != to_node) {
		sim->sent_bytes[from_node] += bytes;
		sim->received_bytes[to_node] += bytes;
	}
	psd_network_transfer(from, to, bytes, cookie(WAKE_FLOW, from, to));
}

/* Sender r's peers r+1, r+2, ... in K runs of about equal length; the first of a run carries the bytes of all of it. Each host is then the
 * carrier of K senders, and gets as many bytes as it would from all. Empty flows are sent too, so that K arrive everywhere. */
static void start_shift_flows(struct simulation *sim, unsigned from, const struct psd_payload *payload)
{
	const unsigned n_hosts = sim->layout->workers;
	const unsigned n_peers = n_hosts - 1;
	for (unsigned run = 0; run < sim->n_shift_flows; run++) {
		const unsigned begin = run * n_peers / sim->n_shift_flows;
		const unsigned end = (run + 1) * n_peers / sim->n_shift_flows;
		uint64_t bytes = 0;
		for (unsigned peer = begin; peer < end; peer++)
			bytes += psd_payload_bytes_between(payload, sim->layout, from, (from + 1 + peer) % n_hosts);
		start_flow(sim, from, (from + 1 + begin) % n_hosts, bytes);
	}
}

static void start_flows(struct simulation *sim, unsigned from)
{
	const struct psd_payload *payload = payload_of(sim, sim->sendings[from].task);
	const unsigned n_hosts = psd_layout_hosts(sim->layout);
	if (is_aggregated(sim, payload)) {
		start_shift_flows(sim, from, payload);
		return;
	}
	for (unsigned peer = 1; peer < n_hosts; peer++) {
		const unsigned to = (from + peer) % n_hosts;
		const uint64_t bytes = psd_payload_bytes_between(payload, sim->layout, from, to);
		if (bytes > 0)
			start_flow(sim, from, to, bytes);
	}
}

static bool has_something_to_send(const struct simulation *sim, const struct psd_payload *payload, unsigned from)
{
	const unsigned n_hosts = psd_layout_hosts(sim->layout);
	if (is_aggregated(sim, payload))
		return true;
	for (unsigned peer = 1; peer < n_hosts; peer++)
		if (psd_payload_bytes_between(payload, sim->layout, from, (from + peer) % n_hosts) > 0)
			return true;
	return false;
}

static bool sim_send(void *context, unsigned host, struct psd_task task)
{
	struct simulation *sim = context;
	const struct psd_payload *payload = payload_of(sim, task);
	if (!has_something_to_send(sim, payload, host))
		return false;
	sim->sendings[host] = (struct sending){.task = task, .start_sec = psd_network_now_sec()};
	const double overhead_sec = psd_cost_message_sec(payload, sim->layout, &sim->simulated->plan.rates);
	if (overhead_sec > 0.0)
		psd_network_timer(overhead_sec, cookie(WAKE_SEND_BEGINS, host, 0));
	else
		start_flows(sim, host);
	return true;
}

static void report_arrival(struct simulation *sim, unsigned host, struct psd_task task, double start_sec)
{
	if (sim->span == NULL)
		return;
	const struct psd_span span = {host, task, true, start_sec, psd_network_now_sec()};
	sim->span(sim->span_context, sim->program, &span);
}

static void end_flow(struct simulation *sim, unsigned from, unsigned to)
{
	struct sending *sending = &sim->sendings[from];
	const struct psd_task task = sending->task;
	const double latency_sec = psd_network_latency_sec(from, to);
	report_arrival(sim, to, task, sending->start_sec);
	if (--sending->n_flows_left == 0)
		psd_interpreter_finished(&sim->interpreter, from, PSD_RESOURCE_NIC);
	if (latency_sec > 0.0)
		psd_network_timer(latency_sec, task_cookie(WAKE_ARRIVAL, to, task));
	else
		psd_interpreter_arrived(&sim->interpreter, to, task);
}

/* ---- rings ---- */

static void send_ring_message(struct simulation *sim, unsigned rank)
{
	struct ring_rank *state = &sim->ranks[rank];
	const struct psd_payload *payload = payload_of(sim, sim->interpreter.collective);
	const unsigned n_workers = sim->layout->workers;
	const struct psd_ring_step step = psd_ring_step(payload->elements, n_workers, rank, state->step);
	state->step++;
	state->is_sending = true;
	psd_network_transfer(rank, (rank + 1) % n_workers, step.elements * payload->value_bytes, cookie(WAKE_RING_SENT, rank, 0));
}

/* Step k + 1 goes out when step k has left and the chunk of step k has arrived. */
static void advance_ring(struct simulation *sim, unsigned rank)
{
	struct ring_rank *state = &sim->ranks[rank];
	const unsigned n_steps = 2 * (sim->layout->workers - 1);
	if (state->is_sending || state->n_arrived < state->step)
		return;
	if (state->step < n_steps) {
		send_ring_message(sim, rank);
		return;
	}
	if (--sim->n_ring_left == 0)
		psd_interpreter_collective_finished(&sim->interpreter);
}

/* A user's platform has latencies of its own, which then replace the scenario's. */
static double ring_delay_sec(const struct simulation *sim, const struct psd_payload *payload)
{
	struct psd_rates rates = sim->simulated->plan.rates;
	rates.latency_sec = sim->ring_latency_sec * sim->layout->workers / sim->layout->nodes;
	return psd_cost_ring_delay_sec(payload, sim->layout, &rates);
}

static void count_ring_bytes(struct simulation *sim, const struct psd_payload *payload)
{
	for (unsigned node = 0; node < sim->layout->nodes; node++) {
		const struct psd_traffic traffic = psd_payload_node_traffic(payload, sim->layout, node);
		sim->sent_bytes[node] += traffic.sent_bytes;
		sim->received_bytes[node] += traffic.received_bytes;
	}
}

static void sim_collective(void *context, struct psd_task task)
{
	struct simulation *sim = context;
	const struct psd_payload *payload = payload_of(sim, task);
	const unsigned n_workers = sim->layout->workers;
	sim->n_ring_left = n_workers;
	count_ring_bytes(sim, payload);
	if (sim->is_message_fidelity) {
		psd_network_timer(psd_cost_ring_class_sec(payload, sim->layout, &sim->simulated->plan.rates),
				  cookie(WAKE_RING_BEGINS, 0, 0));
		return;
	}
	for (unsigned rank = 0; rank < n_workers; rank++) {
		const unsigned to = (rank + 1) % n_workers;
		psd_network_transfer(rank, to, psd_payload_bytes_between(payload, sim->layout, rank, to),
				     cookie(WAKE_RING_FLOW, rank, 0));
	}
}

static void begin_ring_messages(struct simulation *sim)
{
	for (unsigned rank = 0; rank < sim->layout->workers; rank++) {
		sim->ranks[rank] = (struct ring_rank){0};
		send_ring_message(sim, rank);
	}
}

static void end_ring_message(struct simulation *sim, unsigned rank)
{
	const unsigned to = (rank + 1) % sim->layout->workers;
	const double message_sec = sim->simulated->plan.system->host.message_sec;
	sim->ranks[rank].is_sending = false;
	psd_network_timer(psd_network_latency_sec(rank, to) + message_sec, cookie(WAKE_RING_ARRIVED, to, 0));
	advance_ring(sim, rank);
}

static void end_ring_flow(struct simulation *sim)
{
	if (--sim->n_ring_left > 0)
		return;
	const struct psd_payload *payload = payload_of(sim, sim->interpreter.collective);
	psd_network_timer(ring_delay_sec(sim, payload), cookie(WAKE_RING_END, 0, 0));
}

/* ---- what happens beside the training ---- */

static void apply_links(const struct simulation *sim, unsigned node)
{
	const double now_sec = psd_network_now_sec();
	double link_ratio = 1.0;
	for (unsigned i = 0; i < sim->scenario->n_slowdowns; i++) {
		const struct psd_slowdown *slowdown = &sim->scenario->slowdowns[i];
		if (slowdown->node == node && now_sec >= slowdown->from_sec && now_sec < slowdown->until_sec)
			link_ratio *= slowdown->link_ratio;
	}
	psd_network_scale_link(node, link_ratio);
}

static unsigned first_host(const struct simulation *sim, unsigned node)
{
	return node * sim->layout->workers_per_node;
}

static void send_background(const struct simulation *sim, unsigned index)
{
	const struct psd_background *background = &sim->scenario->backgrounds[index];
	psd_network_transfer(first_host(sim, background->from_node), first_host(sim, background->to_node), background->bytes,
			     cookie(WAKE_BACKGROUND_SENT, index, 0));
	if (background->period_sec > 0.0)
		psd_network_timer(background->period_sec, cookie(WAKE_BACKGROUND_DUE, index, 0));
}

static void start_events(struct simulation *sim)
{
	for (unsigned i = 0; i < sim->scenario->n_slowdowns; i++) {
		const struct psd_slowdown *slowdown = &sim->scenario->slowdowns[i];
		psd_network_timer(slowdown->from_sec, cookie(WAKE_LINK, slowdown->node, 0));
		if (isfinite(slowdown->until_sec))
			psd_network_timer(slowdown->until_sec, cookie(WAKE_LINK, slowdown->node, 0));
	}
	for (unsigned i = 0; i < sim->scenario->n_backgrounds; i++)
		send_background(sim, i);
}

/* ---- the run ---- */

/* Background traffic and slowdowns would keep SimGrid busy for ever: stop when the program is done. */
static void stop_when_complete(struct simulation *sim)
{
	const struct psd_interpreter *interpreter = &sim->interpreter;
	while (sim->first_incomplete < interpreter->n_hosts && psd_interpreter_host_is_complete(interpreter, sim->first_incomplete))
		sim->first_incomplete++;
	if (sim->first_incomplete == interpreter->n_hosts)
		psd_network_stop();
}

static void wake(void *context, uint64_t value)
{
	struct simulation *sim = context;
	const unsigned host = cookie_host(value);
	switch ((enum wake)(value >> 60)) {
	case WAKE_WORK:
		psd_interpreter_finished(&sim->interpreter, host, (enum psd_resource)cookie_rest(value));
		break;
	case WAKE_SEND_BEGINS:
		start_flows(sim, host);
		break;
	case WAKE_FLOW:
		end_flow(sim, host, cookie_rest(value));
		break;
	case WAKE_ARRIVAL:
		psd_interpreter_arrived(&sim->interpreter, host, cookie_task(value));
		break;
	case WAKE_RING_FLOW:
		end_ring_flow(sim);
		break;
	case WAKE_RING_END:
		psd_interpreter_collective_finished(&sim->interpreter);
		break;
	case WAKE_RING_BEGINS:
		begin_ring_messages(sim);
		break;
	case WAKE_RING_SENT:
		end_ring_message(sim, host);
		break;
	case WAKE_RING_ARRIVED:
		sim->ranks[host].n_arrived++;
		advance_ring(sim, host);
		break;
	case WAKE_LINK:
		apply_links(sim, host);
		break;
	case WAKE_BACKGROUND_SENT:
		if (sim->scenario->backgrounds[host].period_sec == 0.0)
			send_background(sim, host);
		break;
	case WAKE_BACKGROUND_DUE:
		send_background(sim, host);
		break;
	}
	stop_when_complete(sim);
}

static void sim_span(void *context, unsigned host, struct psd_task task, double start_sec, double end_sec)
{
	struct simulation *sim = context;
	const struct psd_span span = {host, task, false, start_sec, end_sec};
	sim->span(sim->span_context, sim->program, &span);
}

struct psd_platform psd_simulate_platform(const struct psd_case *simulated)
{
	const struct psd_scenario *scenario = simulated->matter->scenario;
	const struct psd_plan *plan = &simulated->plan;
	return (struct psd_platform){
		.topology = scenario->network.topology,
		.nodes = plan->layout.nodes,
		.workers_per_node = plan->layout.workers_per_node,
		.workers = plan->layout.workers,
		.servers = plan->layout.has_separate_servers ? plan->layout.shards : 0,
		.send_bps = plan->rates.send_bps,
		.receive_bps = plan->rates.receive_bps,
		.latency_sec = plan->rates.latency_sec,
		.local_bps = scenario->network.local_bps,
		.nodes_per_rack = scenario->network.nodes_per_rack,
		.oversubscription_ratio = scenario->network.oversubscription_ratio,
		.link_bps = simulated->point.bandwidth_bps,
		.path = scenario->network.platform_path,
	};
}

static enum psd_status out_of_memory(const struct simulation *sim, struct psd_error *err)
{
	return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a simulation of %u hosts", psd_layout_hosts(sim->layout));
}

/* Hosts with the same duties share them. */
static enum psd_status assign_duties(struct simulation *sim, struct psd_error *err)
{
	const unsigned n_hosts = psd_layout_hosts(sim->layout);
	const size_t waits_size = sim->program->n_ops * sizeof(*sim->duties->waits);
	unsigned *duties_index = calloc(n_hosts, sizeof(*duties_index));
	enum psd_status status = duties_index != NULL ? PSD_OK : out_of_memory(sim, err);
	for (unsigned h = 0; h < n_hosts && status == PSD_OK; h++) {
		struct psd_duties mine;
		status = psd_duties_make(&mine, sim->program, h, sim_arrivals, sim, err);
		if (status != PSD_OK)
			break;
		unsigned d = 0;
		while (d < sim->n_duties && memcmp(sim->duties[d].waits, mine.waits, waits_size) != 0)
			d++;
		duties_index[h] = d;
		if (d < sim->n_duties) {
			psd_duties_release(&mine);
			continue;
		}
		struct psd_duties *grown = realloc(sim->duties, (d + 1) * sizeof(*grown));
		if (grown == NULL) {
			psd_duties_release(&mine);
			status = out_of_memory(sim, err);
			break;
		}
		sim->duties = grown;
		sim->duties[sim->n_duties++] = mine;
	}
	for (unsigned h = 0; h < n_hosts && status == PSD_OK; h++)
		sim->duties_of_host[h] = &sim->duties[duties_index[h]];
	free(duties_index);
	return status;
}

static enum psd_status allocate(struct simulation *sim, struct psd_error *err)
{
	const unsigned n_hosts = psd_layout_hosts(sim->layout);
	const unsigned n_nodes = psd_layout_nodes(sim->layout);
	sim->sendings = calloc(n_hosts, sizeof(*sim->sendings));
	sim->ranks = calloc(n_hosts, sizeof(*sim->ranks));
	sim->duties_of_host = calloc(n_hosts, sizeof(*sim->duties_of_host));
	sim->sent_bytes = calloc(n_nodes, sizeof(*sim->sent_bytes));
	sim->received_bytes = calloc(n_nodes, sizeof(*sim->received_bytes));
	if (sim->sendings == NULL || sim->ranks == NULL || sim->duties_of_host == NULL || sim->sent_bytes == NULL ||
	    sim->received_bytes == NULL)
		return out_of_memory(sim, err);
	return assign_duties(sim, err);
}

static void release(struct simulation *sim)
{
	psd_interpreter_release(&sim->interpreter);
	for (unsigned d = 0; d < sim->n_duties; d++)
		psd_duties_release(&sim->duties[d]);
	free(sim->duties);
	free(sim->duties_of_host);
	free(sim->sendings);
	free(sim->ranks);
	free(sim->sent_bytes);
	free(sim->received_bytes);
}

static unsigned shift_flows(const struct psd_case *simulated)
{
	const struct psd_scenario *scenario = simulated->matter->scenario;
	for (unsigned i = 0; i < simulated->plan.n_items; i++)
		if (simulated->plan.items[i].method == PSD_METHOD_ADAM)
			return SHIFT_FLOWS_HOT;
	const bool is_alike_everywhere = scenario->network.topology == PSD_TOPOLOGY_STAR && scenario->n_slowdowns == 0 &&
					 scenario->n_backgrounds == 0;
	return is_alike_everywhere ? SHIFT_FLOWS_ALIKE : SHIFT_FLOWS;
}

static void find_ring_latency(struct simulation *sim)
{
	const unsigned n_workers = sim->layout->workers;
	for (unsigned rank = 0; rank < n_workers && n_workers > 1; rank++)
		sim->ring_latency_sec += psd_network_latency_sec(rank, (rank + 1) % n_workers) / n_workers;
}

static void fill_outcome(const struct simulation *sim, struct psd_run_length length, struct psd_outcome *outcome)
{
	*outcome = (struct psd_outcome){
		.iteration_sec = psd_interpreter_iteration_sec(&sim->interpreter, length.first_measured),
		.n_iterations = length.n_iterations,
	};
	for (int r = 0; r < PSD_RESOURCES; r++)
		outcome->busy_sec[r] = psd_interpreter_busy_sec(&sim->interpreter, (enum psd_resource)r);
	for (unsigned node = 0; node < psd_layout_nodes(sim->layout); node++) {
		const uint64_t sent_bytes = sim->sent_bytes[node] / length.n_iterations;
		const uint64_t received_bytes = sim->received_bytes[node] / length.n_iterations;
		if (sent_bytes > outcome->sent_bytes_per_node)
			outcome->sent_bytes_per_node = sent_bytes;
		if (received_bytes > outcome->received_bytes_per_node)
			outcome->received_bytes_per_node = received_bytes;
	}
}

enum psd_status psd_simulate(const struct psd_case *simulated, psd_span_fn span, void *context, struct psd_outcome *outcome,
			     struct psd_error *err)
{
	const struct psd_scenario *scenario = simulated->matter->scenario;
	struct simulation sim = {
		.simulated = simulated,
		.scenario = scenario,
		.program = &simulated->program,
		.layout = &simulated->plan.layout,
		.is_message_fidelity = scenario->fidelity == PSD_FIDELITY_MESSAGE,
		.n_shift_flows = shift_flows(simulated),
		.span = span,
		.span_context = context,
	};
	const struct psd_seam seam = {
		.now = sim_now,
		.work = sim_work,
		.send = sim_send,
		.collective = sim_collective,
		.span = span != NULL ? sim_span : NULL,
		.context = &sim,
	};
	const struct psd_run_length length =
		psd_run_length_make(simulated->system, scenario->iterations, scenario->jitter_ratio);
	const struct psd_platform platform = psd_simulate_platform(simulated);
	enum psd_status status = allocate(&sim, err);
	if (status == PSD_OK)
		status = psd_network_open(&platform, wake, &sim, err);
	if (status == PSD_OK)
		status = psd_interpreter_init(&sim.interpreter, sim.program, psd_layout_hosts(sim.layout), sim.duties_of_host,
					      length.n_iterations, &seam, err);
	if (status == PSD_OK) {
		find_ring_latency(&sim);
		start_events(&sim);
		psd_interpreter_begin(&sim.interpreter);
		status = psd_network_run(err);
	}
	if (status == PSD_OK)
		status = psd_interpreter_check(&sim.interpreter, err);
	if (status == PSD_OK)
		fill_outcome(&sim, length, outcome);
	release(&sim);
	return status;
}
