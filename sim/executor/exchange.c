/* Transfers that send all messages at once, between classes of equal hosts (host_classes.h). One host of each class is
 * simulated. A flow stands for all messages from hosts of a class to hosts of a class at one distance; such flows share
 * links by sim/network/sharing.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/program/jitter.h"
#include "sim/executor/fans.h"
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

/* Targets of an operation that receive equally many bytes from each sender. */
struct op_target {
	uint64_t bytes;
	uint32_t targets; /* index in psd_fans.targets */
};

struct op_targets {
	struct op_target *of; /* n entries */
	unsigned n;
	bool is_by_sender; /* the sender decides how many bytes all targets receive; op_target.bytes is not used */
	bool is_found;
};

struct psd_exchange {
	const struct psd_platform *platform;
	struct psd_host_classes classes;
	struct psd_fans fans;	   /* flows between nodes; the tag is the index of the operation's targets */
	struct psd_sharing near;   /* flows inside nodes */
	struct op_targets *of_ops; /* targets of each operation */
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

		if (psd_op_is_collective(op) || op->where == PSD_WHERE_ROOT || op->where == PSD_WHERE_GROUP)
			return false;
		/* nodes that are not full send less */
		if (psd_op_is_send(op) && op->payload.collective->is_of_all &&
		    (sim->layout->is_uneven || sim->layout->workers % sim->layout->workers_per_node))
			return false;
		if (psd_op_is_send(op) && (op->payload.collective->rotates || psd_sim_is_aggregated(sim, &op->payload)))
			return false;
		n_sends += psd_op_is_send(op);
	}
	return n_sends > 0;
}

static bool may_have_classes(const struct psd_simulation *sim)
{
	return sim->detail == PSD_DETAIL_CLASSES && !sim->alone.is_on && !sim->layout->has_own_latencies &&
	       !psd_sim_has_processors(sim) && !psd_jitter_is_drawn(sim->scenario) &&
	       psd_sim_has_calm_links(sim->scenario) && has_plain_routes(sim) && has_exchanges_only(sim);
}

/* ---- links ---- */

static double link_ratio(const struct psd_simulation *sim, unsigned node)
{
	double ratio = 1.0;

	for (unsigned i = 0; i < sim->scenario->n_slowdowns; i++)
		if (sim->scenario->slowdowns[i].node == node)
			ratio *= sim->scenario->slowdowns[i].link_ratio;
	return ratio;
}

/* Sets the rates of all links between nodes. Uplinks of racks are those of a route to another rack. */
static void set_rates(struct psd_simulation *sim)
{
	struct psd_exchange *exchange = sim->exchange;
	const struct psd_host_classes *classes = &exchange->classes;
	const struct psd_platform *platform = exchange->platform;
	const unsigned n_hosts = psd_layout_hosts(sim->layout);
	unsigned links[PSD_ROUTE_LINKS];

	for (unsigned c = 0; c < classes->n; c++) {
		const unsigned host = classes->of[c].representative, node = psd_layout_node(sim->layout, host);
		const double ratio = link_ratio(sim, node) / 8;
		const struct psd_host_kind *kind = &classes->of[c];

		psd_fans_set_rate(&exchange->fans, PSD_FAN_OUT, kind->node,
				  psd_platform_link_bps(platform, psd_platform_node_link(node, 0)) * ratio);
		psd_fans_set_rate(&exchange->fans, PSD_FAN_IN, kind->node,
				  psd_platform_link_bps(platform, psd_platform_node_link(node, 1)) * ratio);
	}
	for (unsigned h = 1; h < n_hosts; h++) {
		if (psd_layout_node(sim->layout, h) == 0 || psd_platform_route(platform, 0, h, links) != 4)
			continue;
		for (unsigned r = 0; r < classes->n_racks; r++) {
			psd_fans_set_rate(&exchange->fans, PSD_FAN_UP, r,
					  psd_platform_link_bps(platform, links[1]) / 8);
			psd_fans_set_rate(&exchange->fans, PSD_FAN_DOWN, r,
					  psd_platform_link_bps(platform, links[2]) / 8);
		}
		return;
	}
}

/* Begins the flows between hosts of a node. */
static bool add_near_flow(struct psd_simulation *sim, unsigned from, uint32_t peer, uint64_t bytes)
{
	struct psd_exchange *exchange = sim->exchange;
	const struct psd_host_classes *classes = &exchange->classes;
	const struct psd_host_peers *peers = &classes->peers[peer];
	const double n_flows = (double)classes->of[from].n_members * peers->n;
	unsigned links[PSD_ROUTE_LINKS];
	const struct psd_sharing_flow flow = {
		.uses = {{from, peers->n}, {classes->n + peers->to, n_flows / classes->of[peers->to].n_members}},
		.n_uses = psd_platform_route(exchange->platform, psd_sim_host(sim, from), peers->host, links),
		.left_bytes = (double)bytes,
		.from = from,
		.to = peer,
	};

	for (unsigned i = 0; i < flow.n_uses; i++)
		exchange->near.links[flow.uses[i].link].rate = psd_platform_link_bps(exchange->platform, links[i]) / 8;
	return psd_sharing_add(&exchange->near, &flow);
}

/* ---- targets ---- */

static bool is_inside_nodes(const struct psd_payload *payload)
{
	const struct psd_collective *reverse = payload->collective->reverse_of;

	return !(reverse ? reverse : payload->collective)->fan_in;
}

/* Finds up to two hosts that send something; without any, both are 0. */
static void find_senders(const struct psd_simulation *sim, const struct psd_payload *payload, unsigned senders[2])
{
	const unsigned n_hosts = psd_layout_hosts(sim->layout);
	unsigned n = 0;

	senders[0] = senders[1] = 0;
	for (unsigned h = 0; h < n_hosts && n < 2; h++)
		if (psd_payload_receivers(payload, sim->layout, h) > 0)
			senders[n++] = h;
}

static bool add_targets(struct psd_simulation *sim, struct op_targets *of_op, uint64_t bytes, const uint64_t *bits)
{
	struct op_target *grown = realloc(of_op->of, (of_op->n + 1) * sizeof(*grown));

	if (!grown)
		return false;
	of_op->of = grown;
	grown[of_op->n].bytes = bytes;
	return psd_fans_keep_targets(&sim->exchange->fans, bits, &grown[of_op->n++].targets);
}

/* Finds the classes that receive equally many bytes from each sender, as sets of targets. Where the sender's shard
 * decides, all receive alike. */
static bool find_targets(struct psd_simulation *sim, const struct psd_payload *payload, struct op_targets *of_op)
{
	const struct psd_host_classes *classes = &sim->exchange->classes;
	uint64_t *bytes = calloc(classes->n, sizeof(*bytes)),
		 *bits = calloc(sim->exchange->fans.n_words, sizeof(*bits));
	bool has_memory = bytes && bits;
	unsigned senders[2];

	find_senders(sim, payload, senders);
	of_op->is_found = true;
	of_op->is_by_sender = payload->collective->reverse_of != NULL;
	for (unsigned c = 0; c < classes->n && has_memory && !is_inside_nodes(payload); c++) {
		const unsigned to = classes->of[c].representative, from = senders[0] != to ? senders[0] : senders[1];

		bytes[c] = from != to ? psd_payload_bytes_between(payload, sim->layout, from, to) : 0;
		bytes[c] = of_op->is_by_sender ? bytes[c] > 0 : bytes[c];
	}
	for (unsigned c = 0; c < classes->n && has_memory; c++) {
		const uint64_t same = bytes[c];

		if (same == 0)
			continue;
		memset(bits, 0, sim->exchange->fans.n_words * sizeof(*bits));
		for (unsigned d = c; d < classes->n; d++)
			if (bytes[d] == same) {
				bits[d / 64] |= UINT64_C(1) << d % 64;
				bytes[d] = 0;
			}
		has_memory = add_targets(sim, of_op, same, bits);
	}
	free(bytes);
	free(bits);
	return has_memory;
}

/* Returns the bytes of each message of a class; the receivers are on other nodes. */
static uint64_t bytes_of(const struct psd_simulation *sim, const struct psd_payload *payload, unsigned host,
			 const struct op_targets *of_op, unsigned i)
{
	const unsigned node = psd_layout_node(sim->layout, host);

	if (!of_op->is_by_sender)
		return of_op->of[i].bytes;
	return psd_payload_bytes_between(payload, sim->layout, host, node == 0 ? psd_layout_first(sim->layout, 1) : 0);
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
	exchange->of_ops = calloc(sim->program->n_ops, sizeof(*exchange->of_ops));
	if (!psd_sharing_init(&exchange->near, 2 * classes->n) || !psd_fans_init(&exchange->fans, classes) ||
	    !exchange->arrivals || !exchange->of_ops || !sim->hosts)
		return out_of_memory(err);
	set_rates(sim);
	sim->n_hosts = classes->n;
	for (unsigned c = 0; c < classes->n; c++)
		sim->hosts[c] = classes->of[c].representative;
	return PSD_OK;
}

void psd_sim_exchange_release(struct psd_simulation *sim)
{
	if (!sim->exchange)
		return;
	for (uint32_t i = 0; i < sim->program->n_ops && sim->exchange->of_ops; i++)
		free(sim->exchange->of_ops[i].of);
	free(sim->exchange->of_ops);
	psd_fans_release(&sim->exchange->fans);
	psd_sharing_release(&sim->exchange->near);
	psd_host_classes_release(&sim->exchange->classes);
	free(sim->exchange->arrivals);
	free(sim->exchange);
	sim->exchange = NULL;
}

double psd_sim_exchange_events(const struct psd_simulation *sim)
{
	const struct psd_host_classes *classes = &sim->exchange->classes;

	return classes->n;
}

uint64_t psd_sim_exchange_work(const struct psd_simulation *sim)
{
	return sim->exchange
		       ? (sim->exchange->near.n_visits + sim->exchange->fans.n_visits) / 8 + sim->exchange->n_solved
		       : 0;
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
	if (!psd_sharing_solve(&exchange->near, now_sec) || !psd_fans_solve(&exchange->fans, now_sec)) {
		fail(sim);
		return;
	}
	const double next_sec = fmin(exchange->near.next_sec, exchange->fans.next_sec);

	if (isfinite(next_sec))
		set_phase(sim, DUE, fmax(0.0, next_sec - now_sec));
}

static bool is_due(const struct psd_exchange *exchange)
{
	const double now_sec = psd_network_now_sec();

	return psd_sharing_is_due(&exchange->near, now_sec) || psd_fans_are_due(&exchange->fans, now_sec);
}

void psd_sim_exchange_look(struct psd_simulation *sim, uint64_t tag)
{
	struct psd_exchange *exchange = sim->exchange;
	const bool is_mine = psd_event_tag_kind(tag) == PSD_WAKE_EXCHANGE;

	if (exchange->is_ending || exchange->has_changed || !is_due(exchange))
		return;
	if (is_mine &&
	    (psd_event_tag_host(tag) != DUE || psd_event_tag_rest(tag) != (exchange->n_solved & most_number)))
		return;
	exchange->is_ending = true;
	set_phase(sim, END, 0.0);
}

static void count_bytes(struct psd_simulation *sim, const struct psd_fan *fan)
{
	const struct psd_host_classes *classes = &sim->exchange->classes;
	const struct psd_host_kind *here = &classes->of[fan->from];
	const uint64_t bytes = (uint64_t)fan->left_bytes;
	const struct psd_fans *fans = &sim->exchange->fans;

	sim->sent_bytes[psd_layout_node(sim->layout, here->representative)] +=
		bytes * (uint64_t)psd_fans_count(fans, fan->from, fan->targets, fan->reach) * here->n_here;
	for (unsigned c = psd_fans_next_target(fans, fan->targets, 0); c < classes->n;
	     c = psd_fans_next_target(fans, fan->targets, c + 1))
		sim->received_bytes[psd_layout_node(sim->layout, classes->of[c].representative)] +=
			bytes * psd_fans_senders(fans, fan->from, c, fan->reach) * classes->of[c].n_here;
}

/* Begins the flows of a class to other nodes. */
static bool add_fans(struct psd_simulation *sim, unsigned from, struct psd_task task)
{
	const struct psd_payload *payload = &sim->program->ops[task.op].payload;
	struct psd_exchange *exchange = sim->exchange;
	struct op_targets *of_op = &exchange->of_ops[task.op];

	if (!of_op->is_found && !find_targets(sim, payload, of_op))
		return false;
	for (unsigned i = 0; i < of_op->n; i++) {
		struct psd_fan fan = {.from = from, .targets = of_op->of[i].targets, .tag = i};

		for (unsigned r = 0; r < PSD_FAN_REACHES; r++) {
			fan.reach = (enum psd_fan_reach)r;
			if (psd_fans_count(&exchange->fans, from, fan.targets, fan.reach) < 0.5)
				continue;
			fan.left_bytes = (double)bytes_of(sim, payload, psd_sim_host(sim, from), of_op, i);
			if (fan.left_bytes == 0.0)
				break;
			count_bytes(sim, &fan);
			if (!psd_fans_add(&exchange->fans, &fan))
				return false;
		}
	}
	return true;
}

static bool is_sending(const struct psd_simulation *sim, unsigned from)
{
	return sim->sendings[from].n_flows_left > 0 || sim->exchange->fans.n_of_class[from] > 0;
}

bool psd_sim_exchange_send(struct psd_simulation *sim, unsigned from, struct psd_task task)
{
	const struct psd_payload *payload = &sim->program->ops[task.op].payload;
	const struct psd_host_classes *classes = &sim->exchange->classes;
	struct psd_sending *sending = &sim->sendings[from];
	bool has_memory = true;

	*sending = (struct psd_sending){.task = task, .start_sec = psd_network_now_sec()};
	for (uint32_t p = classes->first_peers[from]; p < classes->first_peers[from + 1] && has_memory; p++) {
		const uint64_t bytes = psd_payload_bytes_between(payload, sim->layout, psd_sim_host(sim, from),
								 classes->peers[p].host);

		sending->n_flows_left += bytes > 0;
		has_memory = bytes == 0 || add_near_flow(sim, from, p, bytes);
	}
	if (!has_memory || !add_fans(sim, from, task))
		fail(sim);
	if (is_sending(sim, from))
		change(sim);
	return is_sending(sim, from);
}

/* Reports n messages that end at a receiver. */
static void report_arrivals(struct psd_simulation *sim, unsigned from, unsigned to, unsigned n, uint64_t bytes,
			    double arrival_sec)
{
	const struct psd_span span = {
		.host = psd_sim_host(sim, to),
		.task = sim->sendings[from].task,
		.is_arrival = true,
		.bytes = bytes,
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

/* Counts n messages that end at each host of a class. */
static void arrive(struct psd_simulation *sim, unsigned to, unsigned n, struct psd_task task, double latency_sec)
{
	const size_t row = task.iteration % sim->program->window;
	struct arrivals *arrivals =
		&sim->exchange->arrivals[(row * sim->program->n_ops + task.op) * sim->exchange->classes.n + to];
	const double now_sec = psd_network_now_sec();

	arrivals->n += n;
	arrivals->last_sec = fmax(arrivals->last_sec, now_sec + latency_sec);
	if (arrivals->n < psd_payload_senders(&sim->program->ops[task.op].payload, sim->layout, psd_sim_host(sim, to)))
		return;
	const double left_sec = arrivals->last_sec - now_sec;

	*arrivals = (struct arrivals){0, 0.0};
	psd_interpreter_departed(&sim->interpreter);
	if (left_sec > 0.0)
		psd_network_timer(left_sec, psd_event_tag_of_task(PSD_WAKE_ARRIVAL, to, task));
	else
		psd_interpreter_arrived(&sim->interpreter, to, task);
}

static void end_near_flow(struct psd_simulation *sim, const struct psd_sharing_flow *ended)
{
	const struct psd_host_classes *classes = &sim->exchange->classes;
	const struct psd_host_peers *peers = &classes->peers[ended->to];
	const unsigned from = ended->from, host = psd_sim_host(sim, from);
	const unsigned n =
		(unsigned)((uint64_t)classes->of[from].n_members * peers->n / classes->of[peers->to].n_members);
	const struct psd_task task = sim->sendings[from].task;
	const double latency_sec = psd_network_latency_sec(host, peers->host);

	report_arrivals(sim, from, peers->to, n,
			psd_payload_bytes_between(&sim->program->ops[task.op].payload, sim->layout, host, peers->host),
			psd_network_now_sec() + latency_sec);
	sim->sendings[from].n_flows_left--;
	if (!is_sending(sim, from))
		psd_interpreter_finished(&sim->interpreter, from, PSD_RESOURCE_NIC);
	pass(sim, false, latency_sec);
	arrive(sim, peers->to, n, task, latency_sec);
}

static void end_fan(struct psd_simulation *sim, const struct psd_fan *ended)
{
	const struct psd_exchange *exchange = sim->exchange;
	const struct psd_fans *fans = &exchange->fans;
	const unsigned from = ended->from, host = psd_sim_host(sim, from);
	const struct psd_task task = sim->sendings[from].task;
	const struct psd_payload *payload = &sim->program->ops[task.op].payload;
	const uint64_t bytes = bytes_of(sim, payload, host, &exchange->of_ops[task.op], (unsigned)ended->tag);
	const unsigned other = psd_layout_node(sim->layout, host) == 0 ? psd_layout_first(sim->layout, 1) : 0;
	const double latency_sec = psd_network_latency_sec(host, other);

	for (unsigned c = psd_fans_next_target(fans, ended->targets, 0); c < exchange->classes.n && sim->span;
	     c = psd_fans_next_target(fans, ended->targets, c + 1))
		report_arrivals(sim, from, c, psd_fans_senders(fans, from, c, ended->reach), bytes,
				psd_network_now_sec() + latency_sec);
	if (!is_sending(sim, from))
		psd_interpreter_finished(&sim->interpreter, from, PSD_RESOURCE_NIC);
	pass(sim, true, latency_sec);
	for (unsigned c = psd_fans_next_target(fans, ended->targets, 0); c < exchange->classes.n;
	     c = psd_fans_next_target(fans, ended->targets, c + 1)) {
		const unsigned n = psd_fans_senders(fans, from, c, ended->reach);

		if (n > 0)
			arrive(sim, c, n, task, latency_sec);
	}
}

static void end_due(struct psd_simulation *sim)
{
	struct psd_exchange *exchange = sim->exchange;
	const double now_sec = psd_network_now_sec();
	struct psd_sharing_flow flow;
	struct psd_fan fan;

	exchange->is_ending = false;
	while (psd_sharing_take_ended(&exchange->near, now_sec, &flow)) {
		change(sim);
		end_near_flow(sim, &flow);
	}
	while (psd_fans_take_ended(&exchange->fans, now_sec, &fan)) {
		change(sim);
		end_fan(sim, &fan);
	}
}

void psd_sim_exchange_wake(struct psd_simulation *sim, uint64_t tag)
{
	if (psd_event_tag_host(tag) == END)
		end_due(sim);
	else if (psd_event_tag_host(tag) == SHARE)
		share(sim);
}
