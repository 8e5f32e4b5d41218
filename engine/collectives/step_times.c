/* One message of a member at a time is a flow over the ports of devices, switches and nodes. A member begins a step's
 * message when those before have left, all that earlier steps bring it is there, and the receiver awaits it. */
#include "engine/collectives/step_times.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "engine/base/heap.h"
#include "engine/collectives/fluid.h"

/* What ends within this share of the time that has passed ends together: the same sums, in another order. */
static const double together_ratio = 1e-9;
static const double most_bps = 1e18; /* of a link that is free */

struct member {
	unsigned next_send, next_receive; /* steps */
	struct psd_step send;		  /* of next_send */
	unsigned from;			  /* of next_receive; itself: nobody */
	unsigned to;			  /* of the message under way */
	bool is_sending;
};

struct walk {
	const struct psd_payload *payload;
	const struct psd_ways *ways;
	struct psd_members members;
	unsigned
		n_timed_steps; /* the first of them; where nodes are alike one node's, who are also the others' peers */
	double element_bits;
	unsigned n_steps;
	unsigned n_of_node; /* switches */
	unsigned first_switch_port, first_node_port;
	unsigned first_end_port, first_cores_port; /* processors */
	struct member *all;
	struct psd_fluid_flow *flows; /* under way; a member has one at most */
	unsigned n_flows;
	struct psd_fluid_port *ports; /* out and in: of members, of switches, of nodes */
	struct psd_heap arrivals;     /* tag: to whom */
	uint64_t next_seq;
	double now_sec;
	bool has_changed, is_out_of_memory;
};

/* ---- alike nodes: a member stands for those in its place on all nodes ---- */

static unsigned walked_of(const struct walk *walk, unsigned rank)
{
	return rank % walk->n_timed_steps;
}

/* A member as another sees it who stands for one on a node of its own: both as far back as that one is. */
static unsigned seen_from(const struct walk *walk, unsigned rank, unsigned other)
{
	return (rank + walk->members.n - (other - walked_of(walk, other))) % walk->members.n;
}

/* ---- ports ---- */

static void add_device_uses(const struct walk *walk, struct psd_fluid_flow *flow, unsigned rank, bool is_in,
			    bool passes_uplink)
{
	const unsigned per_node = walk->members.per_node, per_switch = walk->ways->per_switch;

	rank = walked_of(walk, rank);
	psd_fluid_add_use(flow, 2 * rank + is_in, 1.0);
	if (!passes_uplink)
		return;
	const unsigned number = rank / per_node * walk->n_of_node + rank % per_node / per_switch;
	psd_fluid_add_use(flow, walk->first_switch_port + 2 * number + is_in, 1.0);
}

static unsigned cores_port(const struct walk *walk, unsigned rank)
{
	const unsigned nodes = walk->ways->processors->shared_nodes;

	return walk->first_cores_port + (nodes > 0 ? rank / (walk->members.per_node * nodes) : rank);
}

static void add_processor_uses(const struct walk *walk, struct psd_fluid_flow *flow, unsigned from, unsigned to,
			       double bit_sec)
{
	const unsigned port = cores_port(walk, from), other = cores_port(walk, to);

	psd_fluid_add_use(flow, walk->first_end_port + 2 * from, bit_sec);
	psd_fluid_add_use(flow, walk->first_end_port + 2 * to + 1, bit_sec);
	psd_fluid_add_use(flow, port, port == other ? 2.0 * bit_sec : bit_sec);
	if (port != other)
		psd_fluid_add_use(flow, other, bit_sec);
}

static struct psd_fluid_flow flow_between(const struct walk *walk, unsigned from, unsigned to)
{
	const unsigned per_node = walk->members.per_node;
	const enum psd_reach reach = psd_members_reach(walk->members, walk->ways, from, to);
	struct psd_fluid_flow flow = {.tag = from};

	if (reach == PSD_REACH_FAR) {
		psd_fluid_add_use(&flow, walk->first_node_port + 2 * (walked_of(walk, from) / per_node), 1.0);
		psd_fluid_add_use(&flow, walk->first_node_port + 2 * (walked_of(walk, to) / per_node) + 1, 1.0);
	}
	if (reach != PSD_REACH_FAR || walk->ways->per_switch > 0) {
		add_device_uses(walk, &flow, from, false, reach != PSD_REACH_NEAR);
		add_device_uses(walk, &flow, to, true, reach != PSD_REACH_NEAR);
	}
	if (walk->ways->processors)
		add_processor_uses(walk, &flow, from, to,
				   reach == PSD_REACH_FAR ? walk->ways->processors->far_bit_sec
							  : walk->ways->processors->near_bit_sec);
	return flow;
}

static bool open_ports(struct walk *walk)
{
	const unsigned per_switch = walk->ways->per_switch;
	const unsigned n_nodes = (walk->n_timed_steps - 1) / walk->members.per_node + 1;

	walk->n_of_node = per_switch > 0 ? (walk->members.per_node - 1) / per_switch + 1 : 0;
	walk->first_switch_port = 2 * walk->n_timed_steps;
	walk->first_node_port = walk->first_switch_port + 2 * n_nodes * walk->n_of_node;
	walk->first_end_port = walk->first_node_port + 2 * n_nodes;
	walk->first_cores_port = walk->first_end_port + (walk->ways->processors ? 2 * walk->n_timed_steps : 0);
	const unsigned n_ports = walk->first_cores_port + (walk->ways->processors ? walk->n_timed_steps : 0);
	walk->ports = malloc(n_ports * sizeof(*walk->ports));
	for (unsigned p = 0; walk->ports && p < n_ports; p++) {
		const double bps = p < walk->first_switch_port	? walk->ways->near_bps
				   : p < walk->first_node_port	? walk->ways->between_bps
				   : p < walk->first_end_port	? walk->ways->far_bps
				   : p < walk->first_cores_port ? 1.0
								: walk->ways->processors->cores;

		walk->ports[p] = (struct psd_fluid_port){.rate_bps = fmin(bps, most_bps)};
	}
	return walk->ports != NULL;
}

/* ---- steps ---- */

static struct psd_step step_of(const struct walk *walk, unsigned rank, unsigned number)
{
	return walk->payload->collective->step(walk->payload->elements, walk->members, rank, number);
}

static void find_next_send(struct walk *walk, unsigned rank, unsigned number)
{
	struct member *member = &walk->all[rank];

	for (; number < walk->n_steps; number++) {
		member->send = step_of(walk, rank, number);
		if (member->send.to != rank)
			break;
	}
	member->next_send = number;
}

static unsigned find_receive(const struct walk *walk, unsigned rank, unsigned number, unsigned *from)
{
	for (*from = rank; number < walk->n_steps; number++) {
		*from = step_of(walk, rank, number).from;
		if (*from != rank)
			break;
	}
	return number;
}

/* A member takes messages of others in the order of its steps; one sender's follow each other by themselves. */
static bool is_awaited(const struct walk *walk, unsigned to, unsigned from, unsigned step)
{
	const unsigned receiver = walked_of(walk, to), known_as = seen_from(walk, from, to);
	unsigned awaited = walk->all[receiver].next_receive, sender = walk->all[receiver].from;

	while (awaited < step && sender == known_as)
		awaited = find_receive(walk, receiver, awaited + 1, &sender);
	return awaited >= step;
}

static void advance(struct walk *walk, unsigned rank)
{
	struct member *member = &walk->all[rank];

	if (member->is_sending || member->next_send == walk->n_steps || member->next_receive < member->next_send ||
	    !is_awaited(walk, member->send.to, rank, member->next_send))
		return;
	struct psd_fluid_flow flow = flow_between(walk, rank, member->send.to);
	flow.left_bits = walk->element_bits * (double)member->send.sent.elements;
	walk->flows[walk->n_flows++] = flow;
	walk->has_changed = true;
	member->is_sending = true;
	member->to = member->send.to;
	find_next_send(walk, rank, member->next_send + 1);
}

/* ---- events ---- */

static void end_flow(struct walk *walk, unsigned f)
{
	const unsigned rank = (unsigned)walk->flows[f].tag;
	struct member *member = &walk->all[rank];
	const enum psd_reach reach = psd_members_reach(walk->members, walk->ways, rank, member->to);
	const double at_sec = walk->now_sec + psd_ways_latency_sec(walk->ways, reach);

	walk->flows[f] = walk->flows[--walk->n_flows];
	walk->has_changed = true;
	member->is_sending = false;
	if (!psd_heap_push(&walk->arrivals,
			   (struct psd_heap_entry){at_sec, walk->next_seq++, walked_of(walk, member->to)}))
		walk->is_out_of_memory = true;
	advance(walk, rank);
}

static void end_flows(struct walk *walk, double passed_sec)
{
	const double together_sec = together_ratio * walk->now_sec;

	for (unsigned f = 0; f < walk->n_flows; f++)
		walk->flows[f].left_bits -= passed_sec * walk->flows[f].rate_bps;
	for (unsigned f = 0, n = walk->n_flows; f < n;) {
		if (walk->flows[f].left_bits > together_sec * walk->flows[f].rate_bps) {
			f++;
			continue;
		}
		end_flow(walk, f);
		/* what takes its place is another that was there, or one that begins now */
		n = walk->n_flows < n ? walk->n_flows : n;
	}
}

static void arrive(struct walk *walk, unsigned rank)
{
	struct member *member = &walk->all[rank];

	member->next_receive = find_receive(walk, rank, member->next_receive + 1, &member->from);
	advance(walk, rank);
	if (member->from != rank)
		advance(walk, walked_of(walk, member->from));
}

static double next_arrival_sec(const struct walk *walk)
{
	return walk->arrivals.n > 0 ? walk->arrivals.entries[0].at : INFINITY;
}

static void run(struct walk *walk)
{
	for (unsigned rank = 0; rank < walk->n_timed_steps; rank++)
		advance(walk, rank);
	while ((walk->n_flows > 0 || walk->arrivals.n > 0) && !walk->is_out_of_memory) {
		if (walk->has_changed)
			psd_fluid_share(walk->flows, walk->n_flows, walk->ports);
		walk->has_changed = false;
		const double flow_sec = walk->now_sec + psd_fluid_next_end_sec(walk->flows, walk->n_flows);
		const double next_sec = fmin(flow_sec, next_arrival_sec(walk)), passed_sec = next_sec - walk->now_sec;

		walk->now_sec = next_sec;
		end_flows(walk, passed_sec);
		while (next_arrival_sec(walk) <= walk->now_sec * (1.0 + together_ratio))
			arrive(walk, (unsigned)psd_heap_pop(&walk->arrivals).tag);
	}
}

static bool begin(struct walk *walk)
{
	walk->all = calloc(walk->n_timed_steps, sizeof(*walk->all));
	walk->flows = malloc(walk->n_timed_steps * sizeof(*walk->flows));
	if (!walk->all || !walk->flows || !open_ports(walk))
		return false;
	for (unsigned rank = 0; rank < walk->n_timed_steps; rank++) {
		find_next_send(walk, rank, 0);
		walk->all[rank].next_receive = find_receive(walk, rank, 0, &walk->all[rank].from);
	}
	return true;
}

static double walk_sec(const struct psd_payload *payload, struct psd_members members, unsigned n_timed_steps,
		       double element_bits, const struct psd_ways *ways)
{
	struct walk walk = {
		.payload = payload,
		.ways = ways,
		.members = members,
		.n_timed_steps = n_timed_steps,
		.element_bits = element_bits,
		.n_steps = payload->collective->steps(payload->elements, members),
	};
	const bool has_begun = begin(&walk);

	if (has_begun)
		run(&walk);
	free(walk.all);
	free(walk.flows);
	free(walk.ports);
	free(walk.arrivals.entries);
	return has_begun && !walk.is_out_of_memory ? walk.now_sec : NAN;
}

double psd_step_times_sec(const struct psd_payload *payload, struct psd_members members, double element_bits,
			  const struct psd_ways *ways)
{
	return walk_sec(payload, members, members.n, element_bits, ways);
}

double psd_step_times_node_sec(const struct psd_payload *payload, struct psd_members members, double element_bits,
			       const struct psd_ways *ways)
{
	assert(members.n % members.per_node == 0 && !ways->processors);
	return walk_sec(payload, members, members.per_node, element_bits, ways);
}

/* ---- flows ---- */

/* The i-th flow of a rank that goes somewhere from i on; false: there is none. */
static bool next_flow(const struct walk *walk, unsigned rank, unsigned *i, struct psd_flow *flow)
{
	while (psd_payload_rank_flow(walk->payload, walk->members, rank, *i, flow)) {
		++*i;
		if (flow->to != rank)
			return true;
	}
	return false;
}

static bool add_flows(struct walk *walk)
{
	struct psd_flow flow;
	unsigned n = 0;

	for (unsigned rank = 0; rank < walk->members.n; rank++)
		for (unsigned i = 0; next_flow(walk, rank, &i, &flow);)
			n++;
	walk->flows = malloc((n + 1) * sizeof(*walk->flows));
	for (unsigned rank = 0; walk->flows && rank < walk->members.n; rank++)
		for (unsigned i = 0; next_flow(walk, rank, &i, &flow);) {
			walk->flows[walk->n_flows] = flow_between(walk, rank, flow.to);
			walk->flows[walk->n_flows++].left_bits = walk->element_bits * (double)flow.elements;
		}
	return walk->flows != NULL;
}

static void run_flows(struct walk *walk)
{
	while (walk->n_flows > 0) {
		psd_fluid_share(walk->flows, walk->n_flows, walk->ports);
		const double passed_sec = psd_fluid_next_end_sec(walk->flows, walk->n_flows);

		walk->now_sec += passed_sec;
		for (unsigned f = 0; f < walk->n_flows;) {
			struct psd_fluid_flow *flow = &walk->flows[f];
			const double left_sec = flow->left_bits / flow->rate_bps - passed_sec;

			flow->left_bits = left_sec * flow->rate_bps;
			if (left_sec > together_ratio * walk->now_sec)
				f++;
			else /* the last has its turn here */
				*flow = walk->flows[--walk->n_flows];
		}
	}
}

double psd_step_times_flows_sec(const struct psd_payload *payload, struct psd_members members,
				const struct psd_ways *ways)
{
	struct walk walk = {
		.payload = payload,
		.ways = ways,
		.members = members,
		.n_timed_steps = members.n,
		.element_bits = 8.0 * payload->value_bytes,
	};
	const bool has_begun = open_ports(&walk) && add_flows(&walk);

	if (has_begun)
		run_flows(&walk);
	free(walk.flows);
	free(walk.ports);
	return has_begun ? walk.now_sec : NAN;
}
