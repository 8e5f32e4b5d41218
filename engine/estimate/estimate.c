/* The interpreter over one representative of each kind of host, with an event heap for a clock and closed forms for a
 * network. */
#include "engine/estimate/estimate.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "engine/cost/prices.h"
#include "engine/estimate/pool.h"
#include "engine/estimate/yielding.h"
#include "engine/program/cookie.h"
#include "engine/program/interpreter.h"
#include "engine/schedules/fluid.h"

/* Hosts that behave alike: plain workers, those with a shard and separate servers that are in the same groups, on nodes
 * that are alike; and each host that owns an Adam matrix by itself.
 * The last host of a kind stands for it, since a slice of fewer elements than shards fills the last shards first. */
struct host_class {
	unsigned representative;
	unsigned n_members;
	unsigned n_here;   /* on the representative's node */
	unsigned node;	   /* the class of such a node's first host: its ports are those of all classes there */
	unsigned n_behind; /* the representative's switch */
	unsigned behind;   /* the class of such a switch's first host, likewise */
	unsigned pool;	   /* that it works on, where machines are given; as are the next two */
	double copies;	   /* of its members, those in the pool */
	bool shares_cores;
};

/* Those of a class to whom the representative of another, or of the same one, may send: on other nodes, or on its own.
 * A way is such a pair, numbered ((from * classes) + to) * PSD_REACHES + reach. */
struct peers {
	unsigned host; /* the last of them */
	unsigned n;
};

/* What is over: by the clock, or on processors. */
enum event {
	EVENT_FINISHED,	       /* class, resource */
	EVENT_ARRIVED,	       /* class, task */
	EVENT_MESSAGE_PART,    /* way: one of both ends is done with its messages */
	EVENT_COLLECTIVE_PART, /* its first class */
	EVENT_COLLECTIVE,      /* task */
};

struct collective {
	struct psd_task task;
	unsigned n_parts_left; /* bytes, and what the members' processors do for them */
	double delay_sec;      /* of its steps, behind them */
};

struct estimate {
	const struct psd_program *program;
	struct psd_interpreter interpreter;
	struct host_class *classes;
	unsigned n_classes;
	unsigned *class_of;  /* per host */
	struct peers *peers; /* per way */
	struct psd_group *groups;
	unsigned n_groups;
	struct psd_heap events;
	uint64_t next_seq;
	struct psd_fluid_flow *flows; /* under way; a class sends one operation at a time */
	unsigned n_flows, flows_room;
	struct psd_fluid_port *ports; /* per class a pair of each kind, out and in */
	double flows_at_sec;	      /* what the flows' left_bits refer to */
	double flow_end_sec;	      /* when the first of them ends; infinity: none */
	unsigned *n_parts_left;	      /* per way: of its messages, bytes and both ends */
	struct psd_prices prices;
	struct collective *collectives; /* per class: under way, of which it is the first */
	struct psd_pool *pools;		/* NULL unless machines are given */
	unsigned n_pools;
	struct psd_yielding *yieldings; /* per class its device; NULL: all-reduces take nothing of it */
	bool *is_root;			/* per host: a class of its own */
	unsigned *n_flows_left;		/* per class, of its send */
	struct psd_task *sending;	/* per class */
	double now_sec;
	uint64_t n_events, most_events;
	bool is_out_of_memory;
};

/* Equal dates keep their order of creation. */
static void push_event(struct estimate *estimate, double at_sec, uint64_t cookie)
{
	if (!psd_heap_push(&estimate->events, (struct psd_heap_entry){at_sec, estimate->next_seq++, cookie}))
		estimate->is_out_of_memory = true;
}

/* ---- classes ---- */

static const struct psd_layout *layout_of(const struct estimate *estimate)
{
	return &estimate->program->plan->layout;
}

static size_t way_of(const struct estimate *estimate, unsigned from, unsigned to, enum psd_reach reach)
{
	return ((size_t)from * estimate->n_classes + to) * PSD_REACHES + reach;
}

static bool has_switches(const struct estimate *estimate)
{
	return layout_of(estimate)->workers_per_switch > 0;
}

static bool sends(const struct estimate *estimate, const struct psd_payload *payload, unsigned from, unsigned to,
		  enum psd_reach reach)
{
	const unsigned sender = estimate->classes[from].representative;
	const struct peers *peers = &estimate->peers[way_of(estimate, from, to, reach)];
	if (peers->n == 0)
		return false;
	return psd_payload_bytes_between(payload, layout_of(estimate), sender, peers->host) > 0 ||
	       (from == to && psd_payload_bytes_between(payload, layout_of(estimate), peers->host, sender) > 0);
}

/* A receive ends when every class that sends to this one has. */
static uint32_t class_arrivals(const void *context, const struct psd_op *receive, unsigned host)
{
	const struct estimate *estimate = context;
	const unsigned to = estimate->class_of[host];
	uint32_t n_senders = 0;
	for (unsigned from = 0; from < estimate->n_classes; from++)
		for (unsigned reach = 0; reach < PSD_REACHES; reach++)
			n_senders += sends(estimate, &receive->payload, from, to, (enum psd_reach)reach);
	return n_senders;
}

/* Hosts that carry out something alone. */
static unsigned find_roots(const struct psd_program *program, bool *is_root)
{
	unsigned n_roots = 0;

	for (uint32_t i = 0; i < program->n_ops; i++) {
		const struct psd_op *op = &program->ops[i];

		if (op->where != PSD_WHERE_ROOT || is_root[op->payload.root])
			continue;
		is_root[op->payload.root] = true;
		n_roots++;
	}
	return n_roots;
}

static bool is_alike_by_itself(const struct estimate *estimate, unsigned a, unsigned b)
{
	const struct psd_layout *layout = layout_of(estimate);
	if (psd_layout_is_worker(layout, a) != psd_layout_is_worker(layout, b) ||
	    psd_layout_is_shard(layout, a) != psd_layout_is_shard(layout, b) || estimate->is_root[a] ||
	    estimate->is_root[b])
		return false;
	for (unsigned g = 0; g < estimate->n_groups; g++)
		if (psd_group_has(estimate->groups[g], a) != psd_group_has(estimate->groups[g], b))
			return false;
	return true;
}

/* The workers from a and from b on, one by one. */
static bool are_runs_alike(const struct estimate *estimate, unsigned a, unsigned b, unsigned n)
{
	for (unsigned w = 0; w < n; w++)
		if (!is_alike_by_itself(estimate, a + w, b + w))
			return false;
	return true;
}

/* The first worker behind the switch of one, and how many there are. */
static unsigned switch_run(const struct psd_layout *layout, unsigned worker, unsigned *n)
{
	const unsigned node = psd_layout_node(layout, worker), place = worker % layout->workers_per_node;
	const unsigned before = place - place % layout->workers_per_switch;
	const unsigned left = psd_layout_workers_on(layout, node) - before;

	*n = left < layout->workers_per_switch ? left : layout->workers_per_switch;
	return worker - place + before;
}

static bool are_switches_alike(const struct estimate *estimate, unsigned a, unsigned b)
{
	const struct psd_layout *layout = layout_of(estimate);
	unsigned n_a, n_b;

	if (!has_switches(estimate) || !psd_layout_is_worker(layout, a) || !psd_layout_is_worker(layout, b))
		return true;
	const unsigned first_a = switch_run(layout, a, &n_a), first_b = switch_run(layout, b, &n_b);
	return n_a == n_b && are_runs_alike(estimate, first_a, first_b, n_a);
}

/* Two hosts on nodes, and behind switches, whose hosts are alike one by one. */
static bool is_alike(const struct estimate *estimate, unsigned a, unsigned b)
{
	const struct psd_layout *layout = layout_of(estimate);
	const unsigned node_a = psd_layout_node(layout, a), node_b = psd_layout_node(layout, b);
	const unsigned n_here = psd_layout_workers_on(layout, node_a);
	const unsigned g = layout->workers_per_node;
	if (n_here != psd_layout_workers_on(layout, node_b) ||
	    (node_a != node_b && !are_runs_alike(estimate, node_a * g, node_b * g, n_here)))
		return false;
	return is_alike_by_itself(estimate, a, b) && are_switches_alike(estimate, a, b);
}

static void add_to_class(struct estimate *estimate, unsigned host)
{
	const unsigned node = psd_layout_node(layout_of(estimate), host);
	unsigned c = 0;
	while (c < estimate->n_classes && !is_alike(estimate, estimate->classes[c].representative, host))
		c++;
	struct host_class *class = &estimate->classes[c];
	if (c == estimate->n_classes)
		estimate->classes[estimate->n_classes++] = (struct host_class){.n_members = 0};
	else if (psd_layout_node(layout_of(estimate), class->representative) != node)
		class->n_here = class->n_behind = 0;
	else if (psd_layout_reach(layout_of(estimate), class->representative, host) == PSD_REACH_ACROSS)
		class->n_behind = 0;
	class->representative = host;
	class->n_members++;
	class->n_here++;
	class->n_behind++;
	estimate->class_of[host] = c;
}

static void find_peers(struct estimate *estimate)
{
	const struct psd_layout *layout = layout_of(estimate);
	for (unsigned from = 0; from < estimate->n_classes; from++) {
		const unsigned sender = estimate->classes[from].representative;
		for (unsigned h = 0; h < psd_layout_hosts(layout); h++) {
			const enum psd_reach reach = psd_layout_reach(layout, sender, h);
			struct peers *peers = &estimate->peers[way_of(estimate, from, estimate->class_of[h], reach)];
			if (h != sender)
				*peers = (struct peers){h, peers->n + 1};
		}
	}
}

enum { PORTS_OF_NODE = 0, PORTS_OF_SELF = 2, PORTS_OF_SWITCH = 4, PORTS_OF_CLASS = 6 };

static void make_pair(struct psd_fluid_port *ports, double out_bps, double in_bps)
{
	ports[0] = (struct psd_fluid_port){.rate_bps = out_bps};
	ports[1] = (struct psd_fluid_port){.rate_bps = in_bps};
}

/* Classes whose representatives' nodes are alike share a pair of ports: the nodes' first workers, or servers, are of
 * one class. So are those of switches. */
static void make_ports(struct estimate *estimate)
{
	const struct psd_rates *rates = &estimate->program->plan->rates;
	const struct psd_layout *layout = layout_of(estimate);
	const double local_bps = fmin(rates->local_bps, PSD_UNLIMITED_BPS);
	const double between_bps = fmin(rates->between_bps, PSD_UNLIMITED_BPS);
	for (unsigned c = 0; c < estimate->n_classes; c++) {
		struct host_class *class = &estimate->classes[c];
		const unsigned host = class->representative;
		const unsigned first =
			psd_layout_is_worker(layout, host) ? host - host % layout->workers_per_node : host;
		struct psd_fluid_port *ports = &estimate->ports[PORTS_OF_CLASS * c];
		unsigned n_unused;
		class->node = estimate->class_of[first];
		class->behind = c;
		if (has_switches(estimate) && psd_layout_is_worker(layout, host))
			class->behind = estimate->class_of[switch_run(layout, host, &n_unused)];
		make_pair(ports + PORTS_OF_NODE, rates->send_bps, rates->receive_bps);
		make_pair(ports + PORTS_OF_SELF, local_bps, local_bps);
		make_pair(ports + PORTS_OF_SWITCH, between_bps, between_bps);
	}
}

/* Those of some workers, each once. */
static enum psd_status find_groups(struct estimate *estimate, struct psd_error *err)
{
	const struct psd_program *program = estimate->program;
	for (uint32_t i = 0; i < program->n_ops && program->has_groups; i++) {
		const struct psd_group *group = &program->ops[i].payload.group;
		unsigned g = 0;
		while (group->n > 0 && g < estimate->n_groups && !psd_group_equals(estimate->groups[g], *group))
			g++;
		if (group->n == 0 || g < estimate->n_groups)
			continue;
		struct psd_group *grown = realloc(estimate->groups, (g + 1) * sizeof(*grown));
		if (grown == NULL)
			return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for an estimate");
		estimate->groups = grown;
		estimate->groups[estimate->n_groups++] = *group;
	}
	return PSD_OK;
}

/* At most so many: a node with a root is like no other, and so may the last one be. */
static size_t most_classes(const struct estimate *estimate, unsigned n_roots)
{
	const struct psd_layout *layout = layout_of(estimate);
	/* with a shard, beside it, behind another switch, or behind the last one, which may have fewer */
	const size_t n_kinds = layout->workers_per_switch > 0 ? 4 : layout->workers_per_node > 1 ? 3 : 1;
	const size_t n_hosts = psd_layout_hosts(layout);
	const size_t most = n_roots * n_kinds + 2 * n_kinds + 1;
	return estimate->n_groups > 0 || most > n_hosts ? n_hosts : most;
}

static enum psd_status make_classes(struct estimate *estimate, struct psd_error *err)
{
	const unsigned n_hosts = psd_layout_hosts(layout_of(estimate));
	estimate->is_root = calloc(n_hosts, sizeof(*estimate->is_root));
	estimate->class_of = calloc(n_hosts, sizeof(*estimate->class_of));
	const unsigned n_roots = estimate->is_root ? find_roots(estimate->program, estimate->is_root) : 0;
	if (find_groups(estimate, err))
		return err->status;
	const size_t most = most_classes(estimate, n_roots);
	estimate->classes = malloc(most * sizeof(*estimate->classes));
	estimate->ports = malloc(PORTS_OF_CLASS * most * sizeof(*estimate->ports));
	estimate->n_flows_left = calloc(most, sizeof(*estimate->n_flows_left));
	estimate->sending = calloc(most, sizeof(*estimate->sending));
	estimate->collectives = calloc(most, sizeof(*estimate->collectives));
	estimate->n_parts_left = calloc(PSD_REACHES * most * most, sizeof(*estimate->n_parts_left));
	estimate->peers = calloc(PSD_REACHES * most * most, sizeof(*estimate->peers));
	if (estimate->is_root == NULL || estimate->class_of == NULL || estimate->classes == NULL ||
	    estimate->ports == NULL || estimate->n_flows_left == NULL || estimate->sending == NULL ||
	    estimate->collectives == NULL || estimate->n_parts_left == NULL || estimate->peers == NULL)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for an estimate");
	for (unsigned h = 0; h < n_hosts; h++)
		add_to_class(estimate, h);
	find_peers(estimate);
	make_ports(estimate);
	return PSD_OK;
}

/* ---- processors ---- */

/* An iteration takes as long as the host with fewest. */
static double least_own_cores(const struct psd_pool_place places[], unsigned n_hosts)
{
	double cores = INFINITY;

	for (unsigned h = 0; h < n_hosts; h++)
		if (places[h].hosts == 1)
			cores = fmin(cores, places[h].cores);
	return cores;
}

/* A host stands for its class: where it has cores of its own they are a pool, where all of a machine's hosts share its
 * cores they are one of all such classes, in which it counts for its like. */
static void give_pool(struct estimate *estimate, struct host_class *class, const struct psd_pool_place places[],
		      unsigned *shared_pool)
{
	const unsigned n_hosts = psd_layout_hosts(layout_of(estimate));
	const struct psd_pool_place *place = &places[class->representative];

	class->shares_cores = place->hosts > 1;
	class->copies = class->shares_cores ? (double)class->n_members * place->hosts / n_hosts : 1.0;
	class->pool = class->shares_cores && *shared_pool < estimate->n_pools ? *shared_pool : estimate->n_pools;
	if (class->pool < estimate->n_pools)
		return;
	psd_pool_init(&estimate->pools[estimate->n_pools++],
		      class->shares_cores ? place->cores : least_own_cores(places, n_hosts));
	if (class->shares_cores)
		*shared_pool = class->pool;
}

static enum psd_status make_pools(struct estimate *estimate, struct psd_error *err)
{
	const struct psd_plan *plan = estimate->program->plan;
	struct psd_pool_place *places;
	unsigned shared_pool = UINT_MAX;

	if (!plan->machine.cores)
		return PSD_OK;
	places = calloc(psd_layout_hosts(&plan->layout), sizeof(*places));
	estimate->pools = calloc(estimate->n_classes, sizeof(*estimate->pools));
	if (!places || !estimate->pools) {
		free(places);
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for an estimate");
	}
	psd_pool_fill_places(places, &plan->layout, &plan->machine);
	for (unsigned c = 0; c < estimate->n_classes; c++)
		give_pool(estimate, &estimate->classes[c], places, &shared_pool);
	free(places);
	return PSD_OK;
}

static void process(struct estimate *estimate, unsigned class, double sec, double most_cores, uint64_t cookie)
{
	const struct host_class *worker = &estimate->classes[class];

	if (!psd_pool_add(&estimate->pools[worker->pool], estimate->now_sec, sec, most_cores, worker->copies, cookie))
		estimate->is_out_of_memory = true;
}

static struct psd_socket_work socket_work(const struct estimate *estimate, double bytes, double n_messages,
					  bool is_near)
{
	const struct psd_plan *plan = estimate->program->plan;

	return psd_cost_socket_work(&plan->machine, &plan->rates, bytes, n_messages, is_near);
}

/* ---- devices beside all-reduces ---- */

static enum psd_status make_yieldings(struct estimate *estimate, struct psd_error *err)
{
	const double share_ratio = estimate->program->plan->system->host.overlap_ratio;

	if (share_ratio == 0.0)
		return PSD_OK;
	estimate->yieldings = calloc(estimate->n_classes, sizeof(*estimate->yieldings));
	if (!estimate->yieldings)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for an estimate");
	for (unsigned c = 0; c < estimate->n_classes; c++)
		psd_yielding_init(&estimate->yieldings[c], share_ratio);
	return PSD_OK;
}

static void set_alarm(struct estimate *estimate, unsigned class)
{
	const double sec = psd_yielding_alarm(&estimate->yieldings[class], estimate->now_sec);

	if (isfinite(sec))
		push_event(estimate, estimate->now_sec + sec, psd_cookie(EVENT_FINISHED, class, PSD_RESOURCE_DEVICE));
}

static void begin_yielding(struct estimate *estimate, unsigned class, double sec)
{
	psd_interpreter_worked(&estimate->interpreter, class, sec);
	psd_yielding_begin(&estimate->yieldings[class], estimate->now_sec, sec);
	set_alarm(estimate, class);
}

static bool work_ends(struct estimate *estimate, unsigned class, enum psd_resource resource)
{
	if (resource != PSD_RESOURCE_DEVICE || !estimate->yieldings)
		return true;
	if (psd_yielding_ends(&estimate->yieldings[class], estimate->now_sec))
		return true;
	set_alarm(estimate, class);
	return false;
}

/* ---- seam ---- */

static double estimate_now(void *context)
{
	return ((struct estimate *)context)->now_sec;
}

static void estimate_work(void *context, unsigned host, enum psd_resource resource, struct psd_task task, double sec)
{
	struct estimate *estimate = context;
	const struct psd_program *program = estimate->program;
	const double cores = estimate->pools ? psd_op_cores(&program->ops[task.op], &program->plan->machine) : 0.0;
	const uint64_t cookie = psd_cookie(EVENT_FINISHED, host, resource);

	if (resource == PSD_RESOURCE_DEVICE && cores > 0.0)
		psd_interpreter_worked(&estimate->interpreter, host, sec);
	if (cores > 0.0)
		process(estimate, host, sec * cores, cores, cookie);
	else if (resource == PSD_RESOURCE_DEVICE && estimate->yieldings)
		begin_yielding(estimate, host, sec);
	else
		push_event(estimate, estimate->now_sec + sec, cookie);
}

/* ---- transfers ---- */

/* Moves the flows on to now, so that they may be changed. */
static void advance_flows(struct estimate *estimate)
{
	const double passed_sec = estimate->now_sec - estimate->flows_at_sec;
	for (unsigned f = 0; f < estimate->n_flows; f++)
		estimate->flows[f].left_bits -= passed_sec * estimate->flows[f].rate_bps;
	estimate->flows_at_sec = estimate->now_sec;
}

static void share_ports(struct estimate *estimate)
{
	psd_fluid_share(estimate->flows, estimate->n_flows, estimate->ports);
	estimate->flow_end_sec = estimate->now_sec + psd_fluid_next_end_sec(estimate->flows, estimate->n_flows);
}

/* Bytes, or one end: the last of them ends the messages. */
static void end_part(struct estimate *estimate, size_t way)
{
	const size_t pair = way / PSD_REACHES;
	const unsigned to = (unsigned)(pair % estimate->n_classes), from = (unsigned)(pair / estimate->n_classes);
	const struct psd_task task = estimate->sending[from];
	const struct psd_rates *rates = &estimate->program->plan->rates;
	const double latency_sec = way % PSD_REACHES == PSD_REACH_FAR ? rates->latency_sec : rates->local_latency_sec;

	if (--estimate->n_parts_left[way] > 0)
		return;
	psd_interpreter_departed(&estimate->interpreter);
	push_event(estimate, estimate->now_sec + latency_sec, psd_cookie_of_task(EVENT_ARRIVED, to, task));
	if (--estimate->n_flows_left[from] > 0)
		return;
	push_event(estimate, estimate->now_sec, psd_cookie(EVENT_FINISHED, from, PSD_RESOURCE_NIC));
}

/* Ends the flows that are through: to a nanosecond, and to what the clock can tell apart by now. */
static void end_flows(struct estimate *estimate)
{
	const double tolerance_sec = 1e-9 + 1e-14 * estimate->now_sec;
	advance_flows(estimate);
	for (unsigned f = 0; f < estimate->n_flows;) {
		const struct psd_fluid_flow flow = estimate->flows[f];
		if (flow.left_bits > tolerance_sec * flow.rate_bps) {
			f++;
			continue;
		}
		estimate->flows[f] = estimate->flows[--estimate->n_flows];
		end_part(estimate, flow.cookie);
	}
	share_ports(estimate);
}

/* What both ends of a class's messages to another do for them. */
static void start_ends(struct estimate *estimate, unsigned from, unsigned to, enum psd_reach reach,
		       const struct psd_payload *payload, double bytes)
{
	const size_t way = way_of(estimate, from, to, reach);
	const struct peers *forth = &estimate->peers[way], *back = &estimate->peers[way_of(estimate, to, from, reach)];
	const bool has_paused = psd_interpreter_has_paused(&estimate->interpreter, from);
	const struct psd_socket_work end = socket_work(estimate, bytes, has_paused, reach != PSD_REACH_FAR);
	const uint64_t cookie = psd_cookie(EVENT_MESSAGE_PART, 0, way);
	double n_receivers, n_senders;

	estimate->n_parts_left[way] = end.sec > 0 ? 3 : 1;
	if (end.sec <= 0)
		return;
	estimate->n_events += psd_layout_hosts(layout_of(estimate)); /* who are gone through */
	n_receivers = psd_payload_receivers_beside(payload, layout_of(estimate), estimate->classes[from].representative,
						   forth->host);
	n_senders = psd_payload_senders_beside(payload, layout_of(estimate), back->host,
					       estimate->classes[to].representative);
	process(estimate, from, end.sec * forth->n, end.most_cores * forth->n / fmax(1, n_receivers), cookie);
	process(estimate, to, end.sec * back->n, end.most_cores * back->n / fmax(1, n_senders), cookie);
}

static bool has_room_for_flow(struct estimate *estimate)
{
	const unsigned room = estimate->flows_room ? 2 * estimate->flows_room : 16;
	struct psd_fluid_flow *grown;

	if (estimate->n_flows < estimate->flows_room)
		return true;
	grown = realloc(estimate->flows, room * sizeof(*grown));
	if (!grown)
		return false;
	estimate->flows = grown;
	estimate->flows_room = room;
	return true;
}

/* All that the class's flows pass on one side: is_in, that of the receivers. n: of each host there. */
static void add_uses(const struct estimate *estimate, struct psd_fluid_flow *flow, unsigned c, unsigned n, bool is_in,
		     enum psd_reach reach)
{
	const struct host_class *class = &estimate->classes[c];
	const bool passes_switch = has_switches(estimate) && class->representative < layout_of(estimate)->workers;

	if (reach == PSD_REACH_FAR)
		psd_fluid_add_use(flow, PORTS_OF_CLASS * class->node + PORTS_OF_NODE + is_in,
				  (double)n * class->n_here);
	if (reach != PSD_REACH_FAR || passes_switch)
		psd_fluid_add_use(flow, PORTS_OF_CLASS * c + PORTS_OF_SELF + is_in, n);
	if (reach != PSD_REACH_NEAR && passes_switch)
		psd_fluid_add_use(flow, PORTS_OF_CLASS * class->behind + PORTS_OF_SWITCH + is_in,
				  (double)n * class->n_behind);
}

static void start_flow(struct estimate *estimate, unsigned from, unsigned to, enum psd_reach reach)
{
	const struct psd_payload *payload = &estimate->program->ops[estimate->sending[from].op].payload;
	const size_t way = way_of(estimate, from, to, reach);
	const struct peers *forth = &estimate->peers[way], *back = &estimate->peers[way_of(estimate, to, from, reach)];
	const double bytes = (double)psd_payload_bytes_between(payload, layout_of(estimate),
							       estimate->classes[from].representative, forth->host);

	if (!has_room_for_flow(estimate)) {
		estimate->is_out_of_memory = true;
		return;
	}
	struct psd_fluid_flow *flow = &estimate->flows[estimate->n_flows++];
	*flow = (struct psd_fluid_flow){.left_bits = 8.0 * bytes, .cookie = way};
	add_uses(estimate, flow, from, forth->n, false, reach);
	add_uses(estimate, flow, to, back->n, true, reach);
	estimate->n_flows_left[from]++;
	start_ends(estimate, from, to, reach, payload, bytes);
}

static bool estimate_send(void *context, unsigned from, struct psd_task task)
{
	struct estimate *estimate = context;
	const struct psd_payload *payload = &estimate->program->ops[task.op].payload;

	advance_flows(estimate);
	estimate->sending[from] = task;
	for (unsigned to = 0; to < estimate->n_classes; to++)
		for (unsigned reach = 0; reach < PSD_REACHES; reach++)
			if (sends(estimate, payload, from, to, (enum psd_reach)reach))
				start_flow(estimate, from, to, (enum psd_reach)reach);
	if (estimate->n_flows_left[from] == 0)
		return false;
	share_ports(estimate);
	return true;
}

static bool carries(const struct estimate *estimate, unsigned class, const struct psd_op *op)
{
	return psd_op_runs_on(op, &estimate->program->plan->layout, estimate->classes[class].representative);
}

static void set_beside(struct estimate *estimate, const struct psd_op *op, bool is_beside)
{
	for (unsigned c = 0; estimate->yieldings && c < estimate->n_classes; c++) {
		if (!carries(estimate, c, op))
			continue;
		psd_yielding_set_beside(&estimate->yieldings[c], estimate->now_sec, is_beside);
		set_alarm(estimate, c);
	}
}

/* What the members of a class do one way, on the mean of those who share cores, else the most of one. */
static struct psd_socket_work class_work(struct estimate *estimate, const struct psd_payload *payload, unsigned class)
{
	const struct psd_group group = psd_payload_group(payload, layout_of(estimate));
	const bool is_shared = estimate->classes[class].shares_cores;
	struct psd_socket_work work = {0, 0};

	for (unsigned rank = 0; rank < group.n; rank++) {
		const unsigned host = psd_group_host(group, rank);
		struct psd_socket_work own = {0, 0};
		struct psd_flow flow;

		if (estimate->class_of[host] != class)
			continue;
		for (unsigned i = 0; psd_payload_flow(payload, layout_of(estimate), host, i, &flow); i++) {
			const bool is_near = psd_layout_node(layout_of(estimate), host) ==
					     psd_layout_node(layout_of(estimate), flow.to);
			const struct psd_socket_work end = socket_work(
				estimate, (double)flow.elements * payload->value_bytes, flow.n_messages, is_near);

			if (flow.to == host)
				continue;
			own.sec += end.sec;
			own.most_cores = fmax(own.most_cores, end.most_cores);
		}
		work.sec =
			is_shared ? work.sec + own.sec / estimate->classes[class].n_members : fmax(work.sec, own.sec);
		work.most_cores = fmax(work.most_cores, own.most_cores);
	}
	return work;
}

/* In events: how often members are looked at, for their steps, for what their nodes send, or, where all are alike, not
 * at all. */
static uint64_t looks(const struct estimate *estimate, const struct psd_payload *payload)
{
	const struct psd_layout *layout = layout_of(estimate);
	const uint64_t n = psd_payload_members(payload, layout).n;
	const uint64_t n_walked = payload->pattern->is_walked ? n * psd_payload_steps(payload, layout) : 0;

	if (estimate->pools)
		return 8 * n * psd_payload_steps(payload, layout) + n_walked;
	return (payload->pattern->is_uneven ? 8 * n : 0) + n_walked;
}

static void estimate_collective(void *context, struct psd_task task)
{
	struct estimate *estimate = context;
	const struct psd_plan *plan = estimate->program->plan;
	const struct psd_op *op = &estimate->program->ops[task.op];
	const struct psd_price *price = psd_prices_of(&estimate->prices, &op->payload, &plan->layout, &plan->rates);
	unsigned first = 0;

	if (!price) {
		estimate->is_out_of_memory = true;
		return;
	}
	while (!carries(estimate, first, op))
		first++;
	const uint64_t part = psd_cookie(EVENT_COLLECTIVE_PART, first, 0);
	estimate->n_events += looks(estimate, &op->payload);

	set_beside(estimate, op, true);
	push_event(estimate, estimate->now_sec + price->transfer_sec, part);
	estimate->collectives[first] =
		(struct collective){.task = task, .n_parts_left = 1, .delay_sec = price->delay_sec};
	for (unsigned c = first; c < estimate->n_classes && estimate->pools; c++) {
		const struct psd_socket_work end = class_work(estimate, &op->payload, c);

		if (end.sec <= 0)
			continue;
		estimate->collectives[first].n_parts_left += 2; /* it sends, and it receives */
		process(estimate, c, end.sec, end.most_cores, part);
		process(estimate, c, end.sec, end.most_cores, part);
	}
}

/* The delays of its steps come after all the bytes. */
static void end_collective_part(struct estimate *estimate, unsigned first)
{
	struct collective *collective = &estimate->collectives[first];

	if (--collective->n_parts_left == 0)
		push_event(estimate, estimate->now_sec + collective->delay_sec,
			   psd_cookie_of_task(EVENT_COLLECTIVE, 0, collective->task));
}

static void end_collective(struct estimate *estimate, struct psd_task task)
{
	set_beside(estimate, &estimate->program->ops[task.op], false);
	psd_interpreter_collective_finished(&estimate->interpreter, task);
}

static void apply(struct estimate *estimate, uint64_t cookie)
{
	struct psd_interpreter *interpreter = &estimate->interpreter;
	const unsigned class = psd_cookie_host(cookie);

	estimate->n_events++;
	switch ((enum event)psd_cookie_kind(cookie)) {
	case EVENT_FINISHED:
		if (work_ends(estimate, class, (enum psd_resource)psd_cookie_rest(cookie)))
			psd_interpreter_finished(interpreter, class, (enum psd_resource)psd_cookie_rest(cookie));
		break;
	case EVENT_ARRIVED: psd_interpreter_arrived(interpreter, class, psd_cookie_task(cookie)); break;
	case EVENT_MESSAGE_PART: end_part(estimate, psd_cookie_rest(cookie)); break;
	case EVENT_COLLECTIVE_PART: end_collective_part(estimate, class); break;
	case EVENT_COLLECTIVE: end_collective(estimate, psd_cookie_task(cookie)); break;
	}
}

/* The pool whose work ends first; *next_sec: when, infinity: nothing runs on any. */
static struct psd_pool *first_pool(struct estimate *estimate, double *next_sec)
{
	struct psd_pool *first = NULL;

	*next_sec = INFINITY;
	for (unsigned p = 0; p < estimate->n_pools; p++) {
		const double sec = psd_pool_next_sec(&estimate->pools[p]);

		if (sec < *next_sec) {
			*next_sec = sec;
			first = &estimate->pools[p];
		}
	}
	return first;
}

static void run(struct estimate *estimate)
{
	psd_interpreter_begin(&estimate->interpreter);
	while (estimate->n_events <= estimate->most_events) {
		double pool_sec;
		uint64_t cookie;
		struct psd_pool *pool = first_pool(estimate, &pool_sec);
		const double event_sec = estimate->events.n > 0 ? estimate->events.entries[0].at : INFINITY;
		const double flow_sec = estimate->n_flows > 0 ? estimate->flow_end_sec : INFINITY;

		if (pool && pool_sec <= event_sec && pool_sec <= flow_sec) {
			estimate->now_sec = fmax(estimate->now_sec, pool_sec);
			while (psd_pool_take_ended(pool, estimate->now_sec, &cookie))
				apply(estimate, cookie);
		} else if (isfinite(flow_sec) && flow_sec <= event_sec) {
			estimate->now_sec = flow_sec;
			end_flows(estimate);
		} else if (estimate->events.n > 0) {
			const struct psd_heap_entry event = psd_heap_pop(&estimate->events);

			estimate->now_sec = event.at;
			apply(estimate, event.cookie);
		} else {
			break;
		}
	}
}

static void fill_outcome(const struct estimate *estimate, struct psd_run_length length, struct psd_outcome *outcome)
{
	const struct psd_interpreter *interpreter = &estimate->interpreter;
	*outcome = (struct psd_outcome){
		.iteration_sec = psd_interpreter_iteration_sec(interpreter, length.first_measured),
		.parts = psd_interpreter_parts(interpreter, length.first_measured),
		.n_iterations = length.n_iterations,
		.n_events = estimate->n_events,
	};
	for (int r = 0; r < PSD_RESOURCES; r++)
		outcome->busy_sec[r] = psd_interpreter_busy_sec(interpreter, (enum psd_resource)r);
	for (unsigned c = 0; c < estimate->n_classes; c++) {
		const unsigned node =
			psd_layout_node(&estimate->program->plan->layout, estimate->classes[c].representative);
		const struct psd_traffic traffic = psd_program_traffic(estimate->program, node);
		if (traffic.sent_bytes > outcome->sent_bytes_per_node)
			outcome->sent_bytes_per_node = traffic.sent_bytes;
		if (traffic.received_bytes > outcome->received_bytes_per_node)
			outcome->received_bytes_per_node = traffic.received_bytes;
	}
}

enum psd_status psd_estimate(const struct psd_program *program, struct psd_run_length length,
			     struct psd_outcome *outcome, struct psd_error *err)
{
	struct estimate estimate = {.program = program, .flow_end_sec = INFINITY, .most_events = length.most_events};
	struct psd_duties *duties = NULL;
	const struct psd_duties **duties_of_class = NULL;
	const struct psd_seam seam = {
		.now = estimate_now,
		.work = estimate_work,
		.send = estimate_send,
		.collective = estimate_collective,
		.context = &estimate,
	};
	enum psd_status status = make_classes(&estimate, err);
	if (status == PSD_OK)
		status = make_pools(&estimate, err);
	if (status == PSD_OK)
		status = make_yieldings(&estimate, err);
	if (status != PSD_OK)
		goto out;
	duties = calloc(estimate.n_classes, sizeof(*duties));
	duties_of_class = calloc(estimate.n_classes, sizeof(*duties_of_class));
	if (duties == NULL || duties_of_class == NULL) {
		status = psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for an estimate");
		goto out;
	}
	for (unsigned c = 0; c < estimate.n_classes && status == PSD_OK; c++) {
		status = psd_duties_make(&duties[c], program, estimate.classes[c].representative, class_arrivals,
					 &estimate, err);
		duties_of_class[c] = &duties[c];
	}
	if (status != PSD_OK)
		goto out;
	status = psd_interpreter_init(&estimate.interpreter, program, estimate.n_classes, duties_of_class,
				      length.n_iterations, &seam, err);
	if (status != PSD_OK)
		goto out;
	run(&estimate);
	if (estimate.n_events > estimate.most_events)
		status = psd_refuse_length(program->plan->system, program->plan->layout.workers, estimate.most_events,
					   err);
	else
		status = psd_interpreter_check(&estimate.interpreter, err);
	if (status == PSD_OK && estimate.is_out_of_memory)
		status = psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for an estimate");
	if (status == PSD_OK)
		fill_outcome(&estimate, length, outcome);
	psd_interpreter_release(&estimate.interpreter);
out:
	for (unsigned c = 0; duties != NULL && c < estimate.n_classes; c++)
		psd_duties_release(&duties[c]);
	free(duties_of_class);
	free(duties);
	free(estimate.events.entries);
	free(estimate.class_of);
	free(estimate.peers);
	free(estimate.flows);
	free(estimate.ports);
	free(estimate.n_flows_left);
	free(estimate.sending);
	free(estimate.collectives);
	psd_prices_release(&estimate.prices);
	free(estimate.groups);
	free(estimate.n_parts_left);
	for (unsigned p = 0; p < estimate.n_pools; p++)
		psd_pool_release(&estimate.pools[p]);
	free(estimate.pools);
	free(estimate.yieldings);
	free(estimate.is_root);
	free(estimate.classes);
	return status;
}
