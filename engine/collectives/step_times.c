/* A message is a flow over the ports of devices, switches and nodes; each member sends one at a time. It begins a
 * step's message when its earlier messages have left, those of earlier steps have arrived, and the receiver awaits
 * it. */
#include "engine/collectives/step_times.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "engine/base/heap.h"
#include "engine/collectives/fluid.h"

/* Events within this share of the time are simultaneous: their times are sums in different orders. */
static const double together_ratio = 1e-9;
static const double most_bps = 1e18; /* rate of a free link */

enum {
	MOST_SHARED = 1024, /* members on racks, or with links of their own, that are timed as flows that share ports */
	MOST_KEPT = 65536,  /* steps of all members that are kept rather than found again, 3 MB */
};

struct member {
	unsigned next_send, next_receive; /* steps */
	struct psd_step send;		  /* step next_send */
	unsigned from;			  /* sender of next_receive; own rank: none */
	unsigned to;			  /* receiver of the message under way */
	bool is_sending;
};

struct timing {
	const struct psd_payload *payload;
	const struct psd_links *links;
	struct psd_members members;
	unsigned n_timed; /* all members, or those of the first nodes or racks, which represent the others */
	double element_bits;
	unsigned n_steps;
	struct psd_step *kept; /* steps of each timed member; NULL: more than MOST_KEPT */
	unsigned switches_per_node;
	unsigned first_switch_port, first_node_port, first_rack_port;
	unsigned first_end_port, first_cores_port; /* processors */
	struct member *all;
	struct psd_fluid_flow *flows; /* under way; a member has one at most */
	unsigned n_flows;
	struct psd_fluid_port *ports; /* pairs out and in: of members, switches, nodes, uplinks; then processors */
	struct psd_heap arrivals;     /* tag: receiver */
	uint64_t next_seq;
	double now_sec;
	bool has_changed, is_out_of_memory;
};

/* ---- alike nodes or racks: a member of the first represents those at its position in all others ---- */

static unsigned timed_rank(const struct timing *timing, unsigned rank)
{
	return rank % timing->n_timed;
}

/* Returns the rank of a member after both members are shifted by the same number of nodes, so that `other` becomes its
 * representative on the first node. */
static unsigned seen_from(const struct timing *timing, unsigned rank, unsigned other)
{
	return (rank + timing->members.n - (other - timed_rank(timing, other))) % timing->members.n;
}

/* ---- ports ---- */

static void add_device_uses(const struct timing *timing, struct psd_fluid_flow *flow, unsigned rank, bool is_in,
			    bool passes_uplink)
{
	rank = timed_rank(timing, rank);
	psd_fluid_add_use(flow, 2 * rank + is_in, 1.0);
	if (!passes_uplink)
		return;
	const unsigned number = psd_members_node(timing->members, rank) * timing->switches_per_node +
				psd_members_position(timing->members, rank) / timing->links->per_switch;
	psd_fluid_add_use(flow, timing->first_switch_port + 2 * number + is_in, 1.0);
}

static unsigned cores_port(const struct timing *timing, unsigned rank)
{
	const unsigned nodes = timing->links->processors->shared_nodes;

	return timing->first_cores_port + (nodes > 0 ? psd_members_node(timing->members, rank) / nodes : rank);
}

static void add_processor_uses(const struct timing *timing, struct psd_fluid_flow *flow, unsigned from, unsigned to,
			       double bit_sec)
{
	const unsigned port = cores_port(timing, from), other = cores_port(timing, to);

	psd_fluid_add_use(flow, timing->first_end_port + 2 * from, bit_sec);
	psd_fluid_add_use(flow, timing->first_end_port + 2 * to + 1, bit_sec);
	psd_fluid_add_use(flow, port, port == other ? 2.0 * bit_sec : bit_sec);
	if (port != other)
		psd_fluid_add_use(flow, other, bit_sec);
}

/* A leaf's link to a spine; the one back comes next. */
static unsigned rack_port(const struct timing *timing, unsigned rank, unsigned spine)
{
	return timing->first_rack_port +
	       2 * (timed_rank(timing, rank) / timing->links->per_rack * timing->links->spines + spine);
}

static unsigned node_port(const struct timing *timing, unsigned rank)
{
	return timing->first_node_port + 2 * psd_members_node(timing->members, timed_rank(timing, rank));
}

static struct psd_fluid_flow flow_between(const struct timing *timing, unsigned from, unsigned to)
{
	const enum psd_reach reach = psd_members_reach(timing->members, timing->links, from, to);
	struct psd_fluid_flow flow = {.tag = from};

	if (reach == PSD_REACH_BEYOND) {
		const unsigned spine = psd_members_node(timing->members, to) % timing->links->spines;

		psd_fluid_add_use(&flow, rack_port(timing, from, spine), 1.0);
		psd_fluid_add_use(&flow, rack_port(timing, to, spine) + 1, 1.0);
	}
	if (reach >= PSD_REACH_FAR) {
		psd_fluid_add_use(&flow, node_port(timing, from), 1.0);
		psd_fluid_add_use(&flow, node_port(timing, to) + 1, 1.0);
	}
	if (reach < PSD_REACH_FAR || timing->links->per_switch > 0) {
		add_device_uses(timing, &flow, from, false, reach != PSD_REACH_NEAR);
		add_device_uses(timing, &flow, to, true, reach != PSD_REACH_NEAR);
	}
	if (timing->links->processors)
		add_processor_uses(timing, &flow, from, to,
				   reach >= PSD_REACH_FAR ? timing->links->processors->far_bit_sec
							  : timing->links->processors->near_bit_sec);
	return flow;
}

/* Rates of the links of nodes that differ. */
static void scale_node_ports(const struct timing *timing, unsigned n_nodes)
{
	const struct psd_layout *layout = timing->members.layout;
	const double slowest_ratio = layout ? psd_layout_slowest_link_ratio(layout) : 1.0;

	for (unsigned node = 0; layout && node < n_nodes; node++)
		for (unsigned is_in = 0; is_in < 2; is_in++)
			timing->ports[timing->first_node_port + 2 * node + is_in].rate_bps *=
				psd_layout_link_ratio(layout, node) / slowest_ratio;
}

static bool open_ports(struct timing *timing)
{
	const unsigned per_switch = timing->links->per_switch;
	const unsigned n_nodes = psd_members_node(timing->members, timing->n_timed - 1) + 1;
	const unsigned n_racks = timing->links->per_rack > 0 ? (timing->n_timed - 1) / timing->links->per_rack + 1 : 0;

	timing->switches_per_node = per_switch > 0 ? (timing->members.per_node - 1) / per_switch + 1 : 0;
	timing->first_switch_port = 2 * timing->n_timed;
	timing->first_node_port = timing->first_switch_port + 2 * n_nodes * timing->switches_per_node;
	timing->first_rack_port = timing->first_node_port + 2 * n_nodes;
	timing->first_end_port = timing->first_rack_port + 2 * n_racks * timing->links->spines;
	timing->first_cores_port = timing->first_end_port + (timing->links->processors ? 2 * timing->n_timed : 0);
	const unsigned n_ports = timing->first_cores_port + (timing->links->processors ? timing->n_timed : 0);
	timing->ports = malloc(n_ports * sizeof(*timing->ports));
	for (unsigned p = 0; timing->ports && p < n_ports; p++) {
		const double bps = p < timing->first_switch_port  ? timing->links->near_bps
				   : p < timing->first_node_port  ? timing->links->between_bps
				   : p < timing->first_rack_port  ? timing->links->far_bps
				   : p < timing->first_end_port	  ? timing->links->uplink_bps
				   : p < timing->first_cores_port ? 1.0
								  : timing->links->processors->cores;

		timing->ports[p] = (struct psd_fluid_port){.rate_bps = fmin(bps, most_bps)};
	}
	if (timing->ports)
		scale_node_ports(timing, n_nodes);
	return timing->ports != NULL;
}

/* ---- steps ---- */

static struct psd_step find_step(const struct timing *timing, unsigned rank, unsigned number)
{
	return timing->payload->collective->step(timing->payload->elements, timing->members, rank, number);
}

/* Each step is asked for when it sends, when it receives, and when a sender waits for it. */
static bool keep_steps(struct timing *timing)
{
	const size_t n = (size_t)timing->n_timed * timing->n_steps;

	if (n > MOST_KEPT)
		return true;
	timing->kept = malloc((n + 1) * sizeof(*timing->kept));
	for (size_t i = 0; timing->kept && i < n; i++)
		timing->kept[i] = find_step(timing, (unsigned)(i / timing->n_steps), (unsigned)(i % timing->n_steps));
	return timing->kept != NULL;
}

static struct psd_step step_of(const struct timing *timing, unsigned rank, unsigned number)
{
	return timing->kept ? timing->kept[(size_t)rank * timing->n_steps + number] : find_step(timing, rank, number);
}

static void find_next_send(struct timing *timing, unsigned rank, unsigned number)
{
	struct member *member = &timing->all[rank];

	for (; number < timing->n_steps; number++) {
		member->send = step_of(timing, rank, number);
		if (member->send.to != rank)
			break;
	}
	member->next_send = number;
}

static unsigned find_receive(const struct timing *timing, unsigned rank, unsigned number, unsigned *from)
{
	for (*from = rank; number < timing->n_steps; number++) {
		*from = step_of(timing, rank, number).from;
		if (*from != rank)
			break;
	}
	return number;
}

/* A member receives in the order of its steps; messages of one sender follow each other without being awaited. */
static bool is_awaited(const struct timing *timing, unsigned to, unsigned from, unsigned step)
{
	const unsigned receiver = timed_rank(timing, to), known_as = seen_from(timing, from, to);
	unsigned awaited = timing->all[receiver].next_receive, sender = timing->all[receiver].from;

	while (awaited < step && sender == known_as)
		awaited = find_receive(timing, receiver, awaited + 1, &sender);
	return awaited >= step;
}

static void advance(struct timing *timing, unsigned rank)
{
	struct member *member = &timing->all[rank];

	if (member->is_sending || member->next_send == timing->n_steps || member->next_receive < member->next_send ||
	    !is_awaited(timing, member->send.to, rank, member->next_send))
		return;
	struct psd_fluid_flow flow = flow_between(timing, rank, member->send.to);
	flow.left_bits = timing->element_bits * (double)member->send.sent.elements;
	timing->flows[timing->n_flows++] = flow;
	timing->has_changed = true;
	member->is_sending = true;
	member->to = member->send.to;
	find_next_send(timing, rank, member->next_send + 1);
}

/* ---- events ---- */

static void end_flow(struct timing *timing, unsigned f)
{
	const unsigned rank = (unsigned)timing->flows[f].tag;
	struct member *member = &timing->all[rank];
	const double at_sec =
		timing->now_sec + psd_members_latency_sec(timing->members, timing->links, rank, member->to);

	timing->flows[f] = timing->flows[--timing->n_flows];
	timing->has_changed = true;
	member->is_sending = false;
	if (!psd_heap_push(&timing->arrivals,
			   (struct psd_heap_entry){at_sec, timing->next_seq++, timed_rank(timing, member->to)}))
		timing->is_out_of_memory = true;
	advance(timing, rank);
}

static void end_flows(struct timing *timing, double passed_sec)
{
	const double together_sec = together_ratio * timing->now_sec;

	for (unsigned f = 0; f < timing->n_flows; f++)
		timing->flows[f].left_bits -= passed_sec * timing->flows[f].rate_bps;
	for (unsigned f = 0, n = timing->n_flows; f < n;) {
		if (timing->flows[f].left_bits > together_sec * timing->flows[f].rate_bps) {
			f++;
			continue;
		}
		end_flow(timing, f);
		/* its position now has another of the n, or a new one */
		n = timing->n_flows < n ? timing->n_flows : n;
	}
}

static void arrive(struct timing *timing, unsigned rank)
{
	struct member *member = &timing->all[rank];

	member->next_receive = find_receive(timing, rank, member->next_receive + 1, &member->from);
	advance(timing, rank);
	if (member->from != rank)
		advance(timing, timed_rank(timing, member->from));
}

static double next_arrival_sec(const struct timing *timing)
{
	return timing->arrivals.n > 0 ? timing->arrivals.entries[0].at : INFINITY;
}

static void run(struct timing *timing)
{
	for (unsigned rank = 0; rank < timing->n_timed; rank++)
		advance(timing, rank);
	while ((timing->n_flows > 0 || timing->arrivals.n > 0) && !timing->is_out_of_memory) {
		if (timing->has_changed)
			psd_fluid_share(timing->flows, timing->n_flows, timing->ports);
		timing->has_changed = false;
		const double flow_sec = timing->now_sec + psd_fluid_next_end_sec(timing->flows, timing->n_flows);
		const double next_sec = fmin(flow_sec, next_arrival_sec(timing)),
			     passed_sec = next_sec - timing->now_sec;

		timing->now_sec = next_sec;
		end_flows(timing, passed_sec);
		while (next_arrival_sec(timing) <= timing->now_sec * (1.0 + together_ratio))
			arrive(timing, (unsigned)psd_heap_pop(&timing->arrivals).tag);
	}
}

static bool begin(struct timing *timing)
{
	timing->all = calloc(timing->n_timed, sizeof(*timing->all));
	timing->flows = malloc(timing->n_timed * sizeof(*timing->flows));
	if (!timing->all || !timing->flows || !open_ports(timing) || !keep_steps(timing))
		return false;
	for (unsigned rank = 0; rank < timing->n_timed; rank++) {
		find_next_send(timing, rank, 0);
		timing->all[rank].next_receive = find_receive(timing, rank, 0, &timing->all[rank].from);
	}
	return true;
}

static double time_steps(const struct psd_payload *payload, struct psd_members members, unsigned n_timed,
			 double element_bits, const struct psd_links *links)
{
	struct timing timing = {
		.payload = payload,
		.links = links,
		.members = members,
		.n_timed = n_timed,
		.element_bits = element_bits,
		.n_steps = payload->collective->steps(payload->elements, members),
	};
	const bool has_begun = begin(&timing);

	if (has_begun)
		run(&timing);
	free(timing.all);
	free(timing.kept);
	free(timing.flows);
	free(timing.ports);
	free(timing.arrivals.entries);
	return has_begun && !timing.is_out_of_memory ? timing.now_sec : NAN;
}

double psd_step_times_sec(const struct psd_payload *payload, struct psd_members members, double element_bits,
			  const struct psd_links *links)
{
	return time_steps(payload, members, members.n, element_bits, links);
}

double psd_step_times_first_sec(const struct psd_payload *payload, struct psd_members members, unsigned n_timed,
				double element_bits, const struct psd_links *links)
{
	assert(members.n % n_timed == 0 && n_timed % members.per_node == 0 && !links->processors);
	assert(links->per_rack == 0 || n_timed % links->per_rack == 0);
	return time_steps(payload, members, n_timed, element_bits, links);
}

/* ---- flows ---- */

/* The first flow of a rank from the i-th on that sends something; false: none. */
static bool next_flow(const struct timing *timing, unsigned rank, unsigned *i, struct psd_flow *flow)
{
	while (psd_payload_rank_flow(timing->payload, timing->members, rank, *i, flow)) {
		++*i;
		if (flow->to != rank)
			return true;
	}
	return false;
}

static bool add_flows(struct timing *timing)
{
	struct psd_flow flow;
	unsigned n = 0;

	for (unsigned rank = 0; rank < timing->n_timed; rank++)
		for (unsigned i = 0; next_flow(timing, rank, &i, &flow);)
			n++;
	timing->flows = malloc((n + 1) * sizeof(*timing->flows));
	for (unsigned rank = 0; timing->flows && rank < timing->n_timed; rank++)
		for (unsigned i = 0; next_flow(timing, rank, &i, &flow);) {
			timing->flows[timing->n_flows] = flow_between(timing, rank, flow.to);
			timing->flows[timing->n_flows++].left_bits = timing->element_bits * (double)flow.elements;
		}
	return timing->flows != NULL;
}

/* Seconds of the busiest port for the bits of all flows. */
static double busiest_port_sec(const struct timing *timing)
{
	struct psd_flow flow;
	double sec = 0.0;

	for (unsigned rank = 0; rank < timing->n_timed; rank++)
		for (unsigned i = 0; next_flow(timing, rank, &i, &flow);) {
			const struct psd_fluid_flow path = flow_between(timing, rank, flow.to);

			for (unsigned u = 0; u < path.n_uses; u++) {
				struct psd_fluid_port *port = &timing->ports[path.uses[u].port];

				port->open_flows += timing->element_bits * (double)flow.elements;
				sec = fmax(sec, port->open_flows / port->rate_bps);
			}
		}
	return sec;
}

static void run_flows(struct timing *timing)
{
	while (timing->n_flows > 0) {
		psd_fluid_share(timing->flows, timing->n_flows, timing->ports);
		const double passed_sec = psd_fluid_next_end_sec(timing->flows, timing->n_flows);

		timing->now_sec += passed_sec;
		for (unsigned f = 0; f < timing->n_flows;) {
			struct psd_fluid_flow *flow = &timing->flows[f];
			const double left_sec = flow->left_bits / flow->rate_bps - passed_sec;

			flow->left_bits = left_sec * flow->rate_bps;
			if (left_sec > together_ratio * timing->now_sec)
				f++;
			else /* the last one moves here and comes next */
				*flow = timing->flows[--timing->n_flows];
		}
	}
}

/* Members of the first racks where all others do the same, or all members. */
static unsigned n_timed_of(const struct psd_payload *payload, struct psd_members members, const struct psd_links *links)
{
	if (links->per_rack == 0 || members.layout || !payload->collective->period)
		return members.n;
	const unsigned period = payload->collective->period(members, links->per_rack);

	return members.n % period == 0 ? period : members.n;
}

double psd_step_times_flows_sec(const struct psd_payload *payload, struct psd_members members,
				const struct psd_links *links)
{
	struct timing timing = {
		.payload = payload,
		.links = links,
		.members = members,
		.n_timed = n_timed_of(payload, members, links),
		.element_bits = 8.0 * payload->value_bytes,
	};
	const bool are_alike = links->per_rack == 0 && !members.layout;
	const bool are_shared = are_alike || timing.n_timed <= MOST_SHARED;
	const bool has_begun = open_ports(&timing) && (!are_shared || add_flows(&timing));

	if (has_begun && are_shared)
		run_flows(&timing);
	else if (has_begun)
		timing.now_sec = busiest_port_sec(&timing);
	free(timing.flows);
	free(timing.ports);
	return has_begun ? timing.now_sec : NAN;
}
