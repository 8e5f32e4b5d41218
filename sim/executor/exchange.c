/* Transfers that send all messages at once, between classes of equal hosts (host_classes.h). One host of each class is
 * simulated. A flow stands for all messages from hosts of a class to hosts of a class at one distance; such flows share
 * links by sim/network/sharing.c. */
#include <math.h>
#include <stdlib.h>

#include "engine/program/jitter.h"
#include "sim/executor/host_classes.h"
#include "sim/executor/simulation.h"
#include "sim/network/platform.h"
#include "sim/network/sharing.h"

/* Messages of an operation that have arrived at the hosts of a class. */
struct arrivals {
	uint32_t n;	 /* number of messages at each host */
	double last_sec; /* time at which the last of them arrives */
};

/* Phases of PSD_WAKE_EXCHANGE: its tag has one, and the number of times that rates were found before. */
enum phase {
	DUE,   /* a flow is due */
	END,   /* flows that are due end */
	SHARE, /* rates change */
};

struct psd_exchange {
	const struct psd_platform *platform;
	struct psd_host_classes classes;
	struct psd_sharing sharing;
	struct arrivals *arrivals; /* shape (program->window, n_ops, number of classes) */
	double passed_sec[2]; /* latest end of flows inside nodes, and between nodes, that was reported as departure */
	bool is_ending;	      /* END is set for the present time */
	bool has_changed;     /* flows have begun or ended at the present time */
	uint64_t n_solved;    /* number of times that rates were found */
};

static const uint64_t most_number = 0xffffffff; /* largest number in a tag */

static bool has_plain_routes(const struct psd_simulation *sim)
{
	return (sim->scenario->network.topology == PSD_TOPOLOGY_STAR ||
		sim->scenario->network.topology == PSD_TOPOLOGY_RACKS) &&
	       sim->layout->workers_per_switch == 0;
}

/* True if all transfers send all messages at once, each as a flow of its own. */
static bool has_exchanges_only(const struct psd_simulation *sim)
{
	unsigned n_sends = 0;

	for (uint32_t i = 0; i < sim->program->n_ops; i++) {
		const struct psd_op *op = &sim->program->ops[i];

		if (op->kind == PSD_OP_COLLECTIVE || op->where == PSD_WHERE_ROOT || op->where == PSD_WHERE_GROUP)
			return false;
		if (op->kind == PSD_OP_SEND && psd_sim_is_aggregated(sim, &op->payload))
			return false;
		n_sends += op->kind == PSD_OP_SEND;
	}
	return n_sends > 0;
}

static bool may_have_classes(const struct psd_simulation *sim)
{
	return sim->detail == PSD_DETAIL_CLASSES && !sim->alone.is_on && !psd_sim_has_processors(sim) &&
	       !psd_jitter_is_drawn(sim->scenario) && psd_sim_has_calm_links(sim->scenario) && has_plain_routes(sim) &&
	       has_exchanges_only(sim);
}

/* ---- links ---- */

/* Classes of links: workers' links out and in, nodes' links out and in, racks' uplinks up and down. */
static unsigned link_class(const struct psd_host_classes *classes, unsigned from, unsigned to, unsigned i, unsigned n,
			   bool is_near)
{
	const unsigned n_hosts = classes->n, first_rack = 2 * (n_hosts + classes->n_nodes);

	if (is_near)
		return i == 0 ? from : n_hosts + to;
	if (i == 0)
		return 2 * n_hosts + classes->of[from].node;
	if (i == n - 1)
		return 2 * n_hosts + classes->n_nodes + classes->of[to].node;
	return i == 1 ? first_rack + classes->of[from].rack : first_rack + classes->n_racks + classes->of[to].rack;
}

/* Returns the number of links in a class of links. */
static double members_of_link(const struct psd_host_classes *classes, unsigned from, unsigned to, unsigned i,
			      unsigned n, bool is_near)
{
	const struct psd_host_kind *here = &classes->of[from], *there = &classes->of[to];

	if (is_near)
		return (i == 0 ? here : there)->n_members;
	if (i == 0)
		return classes->nodes_in[here->node];
	if (i == n - 1)
		return classes->nodes_in[there->node];
	return i == 1 ? classes->racks_in[here->rack] : classes->racks_in[there->rack];
}

static double link_ratio(const struct psd_simulation *sim, unsigned node)
{
	double ratio = 1.0;

	for (unsigned i = 0; i < sim->scenario->n_slowdowns; i++)
		if (sim->scenario->slowdowns[i].node == node)
			ratio *= sim->scenario->slowdowns[i].link_ratio;
	return ratio;
}

/* Fills the links of a flow, and their rates. */
static void set_way(struct psd_simulation *sim, struct psd_sharing_flow *flow, unsigned from,
		    const struct psd_host_peers *peers)
{
	struct psd_exchange *exchange = sim->exchange;
	const struct psd_host_classes *classes = &exchange->classes;
	const unsigned host = classes->of[from].representative, node = psd_layout_node(sim->layout, host),
		       to_node = psd_layout_node(sim->layout, peers->host);
	const double n_flows = (double)classes->of[from].n_members * peers->n;
	unsigned links[PSD_ROUTE_LINKS];

	flow->n_uses = psd_platform_route(exchange->platform, host, peers->host, links);
	for (unsigned i = 0; i < flow->n_uses; i++) {
		const unsigned class = link_class(classes, from, peers->to, i, flow->n_uses, node == to_node);
		const double of_class = members_of_link(classes, from, peers->to, i, flow->n_uses, node == to_node);
		double ratio = 1.0;

		if (node != to_node && i == 0)
			ratio = link_ratio(sim, node);
		if (node != to_node && i == flow->n_uses - 1)
			ratio = link_ratio(sim, to_node);
		flow->uses[i] = (struct psd_sharing_use){class, n_flows / of_class};
		exchange->sharing.links[class].rate = psd_platform_link_bps(exchange->platform, links[i]) / 8 * ratio;
	}
}

/* ---- preparation ---- */

static enum psd_status out_of_memory(struct psd_error *err)
{
	return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for exchanges");
}

enum psd_status psd_sim_exchange_prepare(struct psd_simulation *sim, const struct psd_platform *platform,
					 struct psd_error *err)
{
	struct psd_exchange *exchange;
	bool has_classes = false;

	if (!may_have_classes(sim))
		return PSD_OK;
	exchange = sim->exchange = calloc(1, sizeof(*exchange));
	if (!exchange)
		return out_of_memory(err);
	exchange->platform = platform;
	PSD_TRY(psd_host_classes_find(&exchange->classes, sim->simulated, &has_classes, err));
	if (!has_classes) {
		psd_sim_exchange_release(sim);
		return PSD_OK;
	}
	const struct psd_host_classes *classes = &exchange->classes;
	exchange->passed_sec[0] = exchange->passed_sec[1] = -1.0;
	exchange->arrivals =
		calloc((size_t)sim->program->window * sim->program->n_ops * classes->n, sizeof(*exchange->arrivals));
	sim->hosts = calloc(classes->n, sizeof(*sim->hosts));
	if (!psd_sharing_init(&exchange->sharing, 2 * (classes->n + classes->n_nodes + classes->n_racks)) ||
	    !exchange->arrivals || !sim->hosts)
		return out_of_memory(err);
	sim->n_hosts = classes->n;
	for (unsigned c = 0; c < classes->n; c++)
		sim->hosts[c] = classes->of[c].representative;
	return PSD_OK;
}

void psd_sim_exchange_release(struct psd_simulation *sim)
{
	if (!sim->exchange)
		return;
	psd_host_classes_release(&sim->exchange->classes);
	psd_sharing_release(&sim->exchange->sharing);
	free(sim->exchange->arrivals);
	free(sim->exchange);
	sim->exchange = NULL;
}

double psd_sim_exchange_events(const struct psd_simulation *sim)
{
	const struct psd_host_classes *classes = &sim->exchange->classes;

	return classes->first_peers[classes->n];
}

uint64_t psd_sim_exchange_work(const struct psd_simulation *sim)
{
	return sim->exchange ? sim->exchange->sharing.n_visits / 8 + sim->exchange->n_solved : 0;
}

/* ---- running ---- */

static void fail(struct psd_simulation *sim)
{
	sim->is_out_of_memory = true;
	psd_network_stop();
}

/* Sets a timer for a phase. At one time all other events come first, then flows end, then rates change. */
static void set_phase(const struct psd_simulation *sim, enum phase phase, double delay_sec)
{
	psd_network_timer(delay_sec, psd_event_tag(PSD_WAKE_EXCHANGE, phase, sim->exchange->n_solved & most_number));
}

static void change(struct psd_simulation *sim)
{
	if (!sim->exchange->has_changed)
		set_phase(sim, SHARE, 0.0);
	sim->exchange->has_changed = true;
}

static void share(struct psd_simulation *sim)
{
	struct psd_exchange *exchange = sim->exchange;
	const double now_sec = psd_network_now_sec();

	exchange->has_changed = false;
	exchange->n_solved++;
	if (!psd_sharing_solve(&exchange->sharing, now_sec))
		fail(sim);
	else if (exchange->sharing.n_flows > 0)
		set_phase(sim, DUE, fmax(0.0, exchange->sharing.next_sec - now_sec));
}

void psd_sim_exchange_look(struct psd_simulation *sim, uint64_t tag)
{
	struct psd_exchange *exchange = sim->exchange;
	const bool is_mine = psd_event_tag_kind(tag) == PSD_WAKE_EXCHANGE;

	if (exchange->is_ending || exchange->has_changed ||
	    !psd_sharing_is_due(&exchange->sharing, psd_network_now_sec()))
		return;
	if (is_mine &&
	    (psd_event_tag_host(tag) != DUE || psd_event_tag_rest(tag) != (exchange->n_solved & most_number)))
		return;
	exchange->is_ending = true;
	set_phase(sim, END, 0.0);
}

static void count_bytes(struct psd_simulation *sim, unsigned from, const struct psd_host_peers *peers, uint64_t bytes)
{
	const struct psd_host_kind *here = &sim->exchange->classes.of[from],
				   *there = &sim->exchange->classes.of[peers->to];
	const unsigned node = psd_layout_node(sim->layout, here->representative);
	const uint64_t n_flows = (uint64_t)here->n_members * peers->n;

	if (psd_layout_node(sim->layout, peers->host) == node)
		return;
	sim->sent_bytes[node] += bytes * peers->n * here->n_here;
	sim->received_bytes[psd_layout_node(sim->layout, there->representative)] +=
		bytes * (n_flows / there->n_members) * there->n_here;
}

bool psd_sim_exchange_send(struct psd_simulation *sim, unsigned from, struct psd_task task)
{
	const struct psd_payload *payload = psd_simulation_payload(sim, task);
	const struct psd_host_classes *classes = &sim->exchange->classes;
	struct psd_sending *sending = &sim->sendings[from];

	*sending = (struct psd_sending){.task = task, .start_sec = psd_network_now_sec()};
	for (uint32_t p = classes->first_peers[from]; p < classes->first_peers[from + 1]; p++) {
		const struct psd_host_peers *peers = &classes->peers[p];
		const uint64_t bytes =
			psd_payload_bytes_between(payload, sim->layout, psd_sim_host(sim, from), peers->host);
		struct psd_sharing_flow flow = {.left_bytes = (double)bytes, .from = from, .to = p};

		if (bytes == 0)
			continue;
		set_way(sim, &flow, from, peers);
		count_bytes(sim, from, peers, bytes);
		sending->n_flows_left++;
		if (!psd_sharing_add(&sim->exchange->sharing, &flow))
			fail(sim);
	}
	if (sending->n_flows_left > 0)
		change(sim);
	return sending->n_flows_left > 0;
}

/* Reports the messages of a flow that has ended, one for each that a receiver gets. */
static void report_arrivals(struct psd_simulation *sim, unsigned from, const struct psd_host_peers *peers,
			    struct psd_task task, unsigned n, double arrival_sec)
{
	const struct psd_span span = {
		.host = psd_sim_host(sim, peers->to),
		.task = task,
		.is_arrival = true,
		.bytes = psd_payload_bytes_between(psd_simulation_payload(sim, task), sim->layout,
						   psd_sim_host(sim, from), peers->host),
		.start_sec = sim->sendings[from].start_sec,
		.end_sec = arrival_sec,
		.peer = psd_sim_host(sim, from),
	};

	for (unsigned i = 0; i < n && sim->span; i++)
		sim->span(sim->span_context, sim->program, &span);
}

/* Messages that end together travel together. */
static void pass(struct psd_simulation *sim, bool is_far, double latency_sec)
{
	double *passed_sec = &sim->exchange->passed_sec[is_far];

	if (latency_sec == 0.0 || *passed_sec == psd_network_now_sec())
		return;
	*passed_sec = psd_network_now_sec();
	psd_interpreter_departed(&sim->interpreter);
	psd_network_timer(latency_sec, psd_event_tag(PSD_WAKE_PASSED, 0, 0));
}

static void arrive(struct psd_simulation *sim, unsigned from, const struct psd_host_peers *peers, struct psd_task task,
		   bool is_last)
{
	const struct psd_host_classes *classes = &sim->exchange->classes;
	const unsigned to = psd_sim_host(sim, peers->to), host = psd_sim_host(sim, from);
	const unsigned n =
		(unsigned)((uint64_t)classes->of[from].n_members * peers->n / classes->of[peers->to].n_members);
	const size_t row = task.iteration % sim->program->window;
	struct arrivals *arrivals =
		&sim->exchange->arrivals[(row * sim->program->n_ops + task.op) * classes->n + peers->to];
	const double latency_sec = psd_network_latency_sec(host, peers->host), now_sec = psd_network_now_sec();

	arrivals->n += n;
	arrivals->last_sec = fmax(arrivals->last_sec, now_sec + latency_sec);
	report_arrivals(sim, from, peers, task, n, now_sec + latency_sec);
	if (is_last)
		psd_interpreter_finished(&sim->interpreter, from, PSD_RESOURCE_NIC);
	pass(sim, psd_layout_node(sim->layout, host) != psd_layout_node(sim->layout, peers->host), latency_sec);
	if (arrivals->n < psd_payload_senders(psd_simulation_payload(sim, task), sim->layout, to))
		return;
	const double left_sec = arrivals->last_sec - now_sec;

	*arrivals = (struct arrivals){0, 0.0};
	psd_interpreter_departed(&sim->interpreter);
	if (left_sec > 0.0)
		psd_network_timer(left_sec, psd_event_tag_of_task(PSD_WAKE_ARRIVAL, peers->to, task));
	else
		psd_interpreter_arrived(&sim->interpreter, peers->to, task);
}

static void end_due(struct psd_simulation *sim)
{
	struct psd_exchange *exchange = sim->exchange;
	struct psd_sharing_flow ended;

	exchange->is_ending = false;
	while (psd_sharing_take_ended(&exchange->sharing, psd_network_now_sec(), &ended)) {
		struct psd_sending *sending = &sim->sendings[ended.from];
		const struct psd_task task = sending->task;

		change(sim);
		arrive(sim, ended.from, &exchange->classes.peers[ended.to], task, --sending->n_flows_left == 0);
	}
}

void psd_sim_exchange_wake(struct psd_simulation *sim, uint64_t tag)
{
	if (psd_event_tag_host(tag) == END)
		end_due(sim);
	else if (psd_event_tag_host(tag) == SHARE)
		share(sim);
}
