/* The interpreter over one representative of each kind of host, with an event heap for a clock and closed forms for a
 * network. */
#include "engine/estimate/estimate.h"

#include <math.h>
#include <stdlib.h>

#include "engine/estimate/fluid.h"
#include "engine/estimate/pool.h"
#include "engine/program/interpreter.h"

/* Hosts that behave alike: plain workers and separate servers that are in the same groups, and each host that owns an
 * Adam matrix by itself.
 * The last host of a kind stands for it, since a slice of fewer elements than shards fills the last shards first. */
struct host_class {
	unsigned representative;
	unsigned second; /* another of the kind; only if n_members > 1 */
	unsigned n_members;
};

enum event_kind { EVENT_FINISHED, EVENT_ARRIVED, EVENT_COLLECTIVE_SENT, EVENT_COLLECTIVE };

struct event {
	double at_sec;
	uint64_t seq; /* equal dates keep their order of creation: runs repeat exactly */
	enum event_kind kind;
	unsigned class;
	enum psd_resource resource;
	struct psd_task task;
};

struct collective {
	struct psd_task task;
	unsigned n_parts_left; /* bytes, and what the members' processors do for them */
};

struct estimate {
	const struct psd_program *program;
	struct psd_interpreter interpreter;
	struct host_class *classes;
	unsigned n_classes;
	struct psd_group *groups;
	unsigned n_groups;
	struct event *events; /* binary heap */
	unsigned n_events;
	unsigned events_capacity;
	uint64_t next_seq;
	struct psd_fluid_flow
		*flows; /* under way; a class sends one operation at a time, to each class at most one flow */
	unsigned n_flows;
	struct psd_fluid_port *ports;	/* scratch: out of each class, then into each */
	double flows_at_sec;		/* what the flows' left_bits refer to */
	double flow_end_sec;		/* when the first of them ends; infinity: none */
	unsigned *n_parts_left;		/* per pair of classes: of the messages between them, bytes and both ends */
	struct collective *collectives; /* per class: under way, of which it is the first */
	struct psd_pool *pools;		/* NULL unless machines are given */
	unsigned n_pools;
	unsigned *pool_of;	  /* per class */
	double *copies;		  /* per class: of its members, those in the pool */
	bool *is_root;		  /* per host: a class of its own */
	unsigned *n_flows_left;	  /* per class, of its send */
	struct psd_task *sending; /* per class */
	double now_sec;
	bool is_out_of_memory;
};

/* ---- events ---- */

static bool event_goes_before(const struct event *a, const struct event *b)
{
	return a->at_sec < b->at_sec || (a->at_sec == b->at_sec && a->seq < b->seq);
}

static void push_event(struct estimate *estimate, struct event event)
{
	if (estimate->n_events == estimate->events_capacity) {
		const unsigned wanted = estimate->events_capacity > 0 ? 2 * estimate->events_capacity : 64;
		struct event *grown = realloc(estimate->events, wanted * sizeof(*grown));
		if (grown == NULL) {
			estimate->is_out_of_memory = true;
			return;
		}
		estimate->events = grown;
		estimate->events_capacity = wanted;
	}
	event.seq = estimate->next_seq++;
	unsigned at = estimate->n_events++;
	while (at > 0 && event_goes_before(&event, &estimate->events[(at - 1) / 2])) {
		estimate->events[at] = estimate->events[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	estimate->events[at] = event;
}

static struct event pop_event(struct estimate *estimate)
{
	const struct event first = estimate->events[0];
	const struct event last = estimate->events[--estimate->n_events];
	unsigned at = 0;
	for (;;) {
		unsigned child = 2 * at + 1;
		if (child >= estimate->n_events)
			break;
		if (child + 1 < estimate->n_events &&
		    event_goes_before(&estimate->events[child + 1], &estimate->events[child]))
			child++;
		if (!event_goes_before(&estimate->events[child], &last))
			break;
		estimate->events[at] = estimate->events[child];
		at = child;
	}
	estimate->events[at] = last;
	return first;
}

/* ---- classes ---- */

static bool sends(const struct estimate *estimate, const struct psd_payload *payload, unsigned from, unsigned to)
{
	const struct psd_layout *layout = &estimate->program->plan->layout;
	const struct host_class *sender = &estimate->classes[from];
	const struct host_class *receiver = &estimate->classes[to];
	if (from != to)
		return psd_payload_bytes_between(payload, layout, sender->representative, receiver->representative) > 0;
	return sender->n_members > 1 &&
	       (psd_payload_bytes_between(payload, layout, sender->representative, sender->second) > 0 ||
		psd_payload_bytes_between(payload, layout, sender->second, sender->representative) > 0);
}

static unsigned class_of_representative(const struct estimate *estimate, unsigned host)
{
	unsigned c = 0;
	while (estimate->classes[c].representative != host)
		c++;
	return c;
}

/* A receive ends when every class that sends to this one has. */
static uint32_t class_arrivals(const void *context, const struct psd_op *receive, unsigned host)
{
	const struct estimate *estimate = context;
	const unsigned to = class_of_representative(estimate, host);
	uint32_t n_senders = 0;
	for (unsigned from = 0; from < estimate->n_classes; from++)
		n_senders += sends(estimate, &receive->payload, from, to);
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

static bool is_alike(const struct estimate *estimate, unsigned a, unsigned b)
{
	const struct psd_layout *layout = &estimate->program->plan->layout;
	if (psd_layout_is_worker(layout, a) != psd_layout_is_worker(layout, b) ||
	    psd_layout_is_shard(layout, a) != psd_layout_is_shard(layout, b))
		return false;
	for (unsigned g = 0; g < estimate->n_groups; g++)
		if (psd_group_has(estimate->groups[g], a) != psd_group_has(estimate->groups[g], b))
			return false;
	return true;
}

static void add_class_member(struct estimate *estimate, unsigned first_class, unsigned host)
{
	for (unsigned c = first_class; c < estimate->n_classes; c++) {
		struct host_class *class = &estimate->classes[c];
		if (!is_alike(estimate, class->representative, host))
			continue;
		class->second = class->representative;
		class->representative = host;
		class->n_members++;
		return;
	}
	estimate->classes[estimate->n_classes++] = (struct host_class){.representative = host, .n_members = 1};
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

static enum psd_status make_classes(struct estimate *estimate, struct psd_error *err)
{
	const struct psd_plan *plan = estimate->program->plan;
	const unsigned n_hosts = psd_layout_hosts(&plan->layout);
	estimate->is_root = calloc(n_hosts, sizeof(*estimate->is_root));
	const unsigned n_roots = estimate->is_root ? find_roots(estimate->program, estimate->is_root) : 0;
	if (find_groups(estimate, err))
		return err->status;
	const unsigned most_classes = estimate->n_groups > 0 ? n_hosts : n_roots + 3;
	estimate->classes = malloc(most_classes * sizeof(*estimate->classes));
	estimate->flows = malloc(most_classes * most_classes * sizeof(*estimate->flows));
	estimate->ports = malloc(2 * most_classes * sizeof(*estimate->ports));
	estimate->n_flows_left = calloc(most_classes, sizeof(*estimate->n_flows_left));
	estimate->sending = calloc(most_classes, sizeof(*estimate->sending));
	estimate->collectives = calloc(most_classes, sizeof(*estimate->collectives));
	estimate->n_parts_left = calloc((size_t)most_classes * most_classes, sizeof(*estimate->n_parts_left));
	if (estimate->is_root == NULL || estimate->classes == NULL || estimate->flows == NULL ||
	    estimate->ports == NULL || estimate->n_flows_left == NULL || estimate->sending == NULL ||
	    estimate->collectives == NULL || estimate->n_parts_left == NULL)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for an estimate");
	for (unsigned h = 0; h < n_hosts; h++)
		if (estimate->is_root[h])
			estimate->classes[estimate->n_classes++] =
				(struct host_class){.representative = h, .n_members = 1};
	const unsigned first_class = estimate->n_classes;
	for (unsigned h = 0; h < n_hosts; h++)
		if (!estimate->is_root[h])
			add_class_member(estimate, first_class, h);
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
 * cores they are one of all classes, in which it counts for its like. */
static enum psd_status make_pools(struct estimate *estimate, struct psd_error *err)
{
	const struct psd_plan *plan = estimate->program->plan;
	const unsigned n_hosts = psd_layout_hosts(&plan->layout);
	struct psd_pool_place *places;
	double least_cores;

	if (!plan->machine.cores)
		return PSD_OK;
	places = calloc(n_hosts, sizeof(*places));
	estimate->pools = calloc(estimate->n_classes, sizeof(*estimate->pools));
	estimate->pool_of = calloc(estimate->n_classes, sizeof(*estimate->pool_of));
	estimate->copies = calloc(estimate->n_classes, sizeof(*estimate->copies));
	if (!places || !estimate->pools || !estimate->pool_of || !estimate->copies) {
		free(places);
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for an estimate");
	}
	psd_pool_fill_places(places, &plan->layout, &plan->machine);
	least_cores = least_own_cores(places, n_hosts);
	for (unsigned c = 0; c < estimate->n_classes; c++) {
		const struct psd_pool_place *place = &places[estimate->classes[c].representative];
		const bool is_new = place->hosts == 1 || estimate->n_pools == 0;

		estimate->copies[c] =
			place->hosts == 1 ? 1.0 : (double)estimate->classes[c].n_members * place->hosts / n_hosts;
		if (is_new)
			psd_pool_init(&estimate->pools[estimate->n_pools++],
				      place->hosts == 1 ? least_cores : place->cores);
		estimate->pool_of[c] = estimate->n_pools - 1;
	}
	free(places);
	return PSD_OK;
}

enum process { PROCESS_WORK, PROCESS_SOCKET, PROCESS_COLLECTIVE };

static uint64_t process_cookie(uint64_t process, unsigned class, unsigned detail)
{
	return process << 60 | (uint64_t) class << 30 | detail;
}

static void process(struct estimate *estimate, unsigned class, double sec, double most_cores, enum process process,
		    unsigned detail)
{
	if (!psd_pool_add(&estimate->pools[estimate->pool_of[class]], estimate->now_sec, sec, most_cores,
			  estimate->copies[class], process_cookie(process, class, detail)))
		estimate->is_out_of_memory = true;
}

static struct psd_socket_work socket_work(const struct estimate *estimate, double bytes, double n_messages)
{
	const struct psd_plan *plan = estimate->program->plan;

	return psd_cost_socket_work(&plan->machine, &plan->rates, bytes, n_messages);
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

	if (resource == PSD_RESOURCE_DEVICE && cores > 0.0)
		psd_interpreter_worked(&estimate->interpreter, host, sec);
	if (cores > 0.0)
		process(estimate, host, sec * cores, cores, PROCESS_WORK, resource);
	else
		push_event(estimate, (struct event){estimate->now_sec + sec, 0, EVENT_FINISHED, host, resource, task});
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
	const struct psd_rates *rates = &estimate->program->plan->rates;
	psd_fluid_share(estimate->flows, estimate->n_flows, estimate->ports, estimate->ports + estimate->n_classes,
			rates->send_bps, rates->receive_bps);
	estimate->flow_end_sec = estimate->now_sec + psd_fluid_next_end_sec(estimate->flows, estimate->n_flows);
}

static double latency_sec(const struct estimate *estimate)
{
	const struct psd_plan *plan = estimate->program->plan;
	return psd_layout_nodes(&plan->layout) > 1 ? plan->rates.latency_sec : 0.0;
}

static void push_arrival(struct estimate *estimate, double at_sec, unsigned to, struct psd_task task)
{
	psd_interpreter_departed(&estimate->interpreter);
	push_event(estimate,
		   (struct event){at_sec + latency_sec(estimate), 0, EVENT_ARRIVED, to, PSD_RESOURCE_NONE, task});
}

/* Bytes, or one end: the last of them ends the messages. */
static void end_part(struct estimate *estimate, unsigned from, unsigned to)
{
	const struct psd_task task = estimate->sending[from];

	if (--estimate->n_parts_left[from * estimate->n_classes + to] > 0)
		return;
	push_arrival(estimate, estimate->now_sec, to, task);
	if (--estimate->n_flows_left[from] > 0)
		return;
	push_event(estimate, (struct event){estimate->now_sec, 0, EVENT_FINISHED, from, PSD_RESOURCE_NIC, task});
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
		end_part(estimate, flow.from, flow.to);
	}
	share_ports(estimate);
}

/* What both ends of a class's messages to another do for them. */
static void start_ends(struct estimate *estimate, const struct psd_fluid_flow *flow, const struct psd_payload *payload)
{
	const struct psd_layout *layout = &estimate->program->plan->layout;
	const unsigned pair = flow->from * estimate->n_classes + flow->to;
	const bool has_paused = psd_interpreter_has_paused(&estimate->interpreter, flow->from);
	const struct psd_socket_work end = socket_work(estimate, flow->left_bits / 8, has_paused);
	double n_receivers, n_senders;

	estimate->n_parts_left[pair] = end.sec > 0 ? 3 : 1;
	if (end.sec <= 0)
		return;
	n_receivers = fmax(1, psd_payload_receivers(payload, layout, estimate->classes[flow->from].representative));
	n_senders = fmax(1, psd_payload_senders(payload, layout, estimate->classes[flow->to].representative));
	process(estimate, flow->from, end.sec * flow->flows_per_sender,
		end.most_cores * flow->flows_per_sender / n_receivers, PROCESS_SOCKET, pair);
	process(estimate, flow->to, end.sec * flow->flows_per_receiver,
		end.most_cores * flow->flows_per_receiver / n_senders, PROCESS_SOCKET, pair);
}

static void start_flows(struct estimate *estimate, unsigned from)
{
	const struct psd_plan *plan = estimate->program->plan;
	const struct psd_payload *payload = &estimate->program->ops[estimate->sending[from].op].payload;
	const struct host_class *sender = &estimate->classes[from];
	advance_flows(estimate);
	for (unsigned to = 0; to < estimate->n_classes; to++) {
		if (!sends(estimate, payload, from, to))
			continue;
		const struct host_class *receiver = &estimate->classes[to];
		const unsigned receiving_host = from == to ? sender->second : receiver->representative;
		const double bytes = (double)psd_payload_bytes_between(payload, &plan->layout, sender->representative,
								       receiving_host);
		estimate->flows[estimate->n_flows++] = (struct psd_fluid_flow){
			.from = from,
			.to = to,
			.flows_per_sender = receiver->n_members - (from == to ? 1.0 : 0.0),
			.flows_per_receiver = sender->n_members - (from == to ? 1.0 : 0.0),
			.left_bits = 8.0 * bytes,
		};
		estimate->n_flows_left[from]++;
		start_ends(estimate, &estimate->flows[estimate->n_flows - 1], payload);
	}
	share_ports(estimate);
}

/* Several workers behind one port are not alike to a class: there a send takes what it takes alone. */
static void start_alone(struct estimate *estimate, unsigned from)
{
	const struct psd_plan *plan = estimate->program->plan;
	const struct psd_task task = estimate->sending[from];
	const struct psd_payload *payload = &estimate->program->ops[task.op].payload;
	const double end_sec = estimate->now_sec + psd_cost_transfer_sec(payload, &plan->layout, &plan->rates);
	push_event(estimate, (struct event){end_sec, 0, EVENT_FINISHED, from, PSD_RESOURCE_NIC, task});
	for (unsigned to = 0; to < estimate->n_classes; to++)
		if (sends(estimate, payload, from, to))
			push_arrival(estimate, end_sec, to, task);
}

static bool estimate_send(void *context, unsigned from, struct psd_task task)
{
	struct estimate *estimate = context;
	const struct psd_payload *payload = &estimate->program->ops[task.op].payload;
	bool sends_any = false;
	for (unsigned to = 0; to < estimate->n_classes && !sends_any; to++)
		sends_any = sends(estimate, payload, from, to);
	if (!sends_any)
		return false;
	estimate->sending[from] = task;
	if (estimate->program->plan->layout.workers_per_node > 1)
		start_alone(estimate, from);
	else
		start_flows(estimate, from);
	return true;
}

static bool carries(const struct estimate *estimate, unsigned class, const struct psd_op *op)
{
	return psd_op_runs_on(op, &estimate->program->plan->layout, estimate->classes[class].representative);
}

/* One way, of the first member, who has at least as much to do as any other. */
static struct psd_socket_work member_work(const struct estimate *estimate, const struct psd_payload *payload)
{
	const struct psd_layout *layout = &estimate->program->plan->layout;
	const unsigned first = psd_payload_group(payload, layout).first;
	double bytes = 0.0, n_messages = 0.0;
	struct psd_flow flow;

	for (unsigned i = 0; estimate->pools && psd_payload_flow(payload, layout, first, i, &flow); i++) {
		bytes += (double)flow.elements * payload->value_bytes;
		n_messages += flow.to != first ? flow.n_messages : 0;
	}
	return socket_work(estimate, bytes, n_messages);
}

static void estimate_collective(void *context, struct psd_task task)
{
	struct estimate *estimate = context;
	const struct psd_plan *plan = estimate->program->plan;
	const struct psd_op *op = &estimate->program->ops[task.op];
	const double sec = psd_cost_transfer_sec(&op->payload, &plan->layout, &plan->rates);
	const struct psd_socket_work end = member_work(estimate, &op->payload);
	unsigned first = 0;

	while (!carries(estimate, first, op))
		first++;
	push_event(estimate,
		   (struct event){estimate->now_sec + sec, 0, EVENT_COLLECTIVE_SENT, first, PSD_RESOURCE_NONE, task});
	estimate->collectives[first] = (struct collective){task, 1};
	for (unsigned c = first; c < estimate->n_classes; c++) {
		if (end.sec <= 0 || !carries(estimate, c, op))
			continue;
		estimate->collectives[first].n_parts_left += 2; /* it sends, and it receives */
		process(estimate, c, end.sec, end.most_cores, PROCESS_COLLECTIVE, first);
		process(estimate, c, end.sec, end.most_cores, PROCESS_COLLECTIVE, first);
	}
}

/* The delays of its steps come after all the bytes. */
static void end_collective_part(struct estimate *estimate, unsigned first)
{
	const struct psd_plan *plan = estimate->program->plan;
	const struct psd_task task = estimate->collectives[first].task;
	const double delay_sec =
		psd_cost_delay_sec(&estimate->program->ops[task.op].payload, &plan->layout, &plan->rates);

	if (--estimate->collectives[first].n_parts_left == 0)
		push_event(estimate, (struct event){estimate->now_sec + delay_sec, 0, EVENT_COLLECTIVE, first,
						    PSD_RESOURCE_NONE, task});
}

/* All that ends by now in a pool. */
static void end_processed(struct estimate *estimate, struct psd_pool *pool)
{
	uint64_t cookie;

	while (psd_pool_take_ended(pool, estimate->now_sec, &cookie)) {
		const unsigned class = cookie >> 30 & 0x3fffffff, detail = cookie & 0x3fffffff;

		switch ((enum process)(cookie >> 60)) {
		case PROCESS_WORK:
			psd_interpreter_finished(&estimate->interpreter, class, (enum psd_resource)detail);
			break;
		case PROCESS_SOCKET:
			end_part(estimate, detail / estimate->n_classes, detail % estimate->n_classes);
			break;
		case PROCESS_COLLECTIVE: end_collective_part(estimate, detail); break;
		}
	}
}

static void apply(struct estimate *estimate, const struct event *event)
{
	estimate->now_sec = event->at_sec;
	switch (event->kind) {
	case EVENT_FINISHED: psd_interpreter_finished(&estimate->interpreter, event->class, event->resource); break;
	case EVENT_ARRIVED: psd_interpreter_arrived(&estimate->interpreter, event->class, event->task); break;
	case EVENT_COLLECTIVE_SENT: end_collective_part(estimate, event->class); break;
	case EVENT_COLLECTIVE: psd_interpreter_collective_finished(&estimate->interpreter, event->task); break;
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
	for (;;) {
		double pool_sec;
		struct psd_pool *pool = first_pool(estimate, &pool_sec);
		const double event_sec = estimate->n_events > 0 ? estimate->events[0].at_sec : INFINITY;
		const double flow_sec = estimate->n_flows > 0 ? estimate->flow_end_sec : INFINITY;

		if (pool && pool_sec <= event_sec && pool_sec <= flow_sec) {
			estimate->now_sec = fmax(estimate->now_sec, pool_sec);
			end_processed(estimate, pool);
		} else if (isfinite(flow_sec) && flow_sec <= event_sec) {
			estimate->now_sec = flow_sec;
			end_flows(estimate);
		} else if (estimate->n_events > 0) {
			const struct event event = pop_event(estimate);

			apply(estimate, &event);
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
	struct estimate estimate = {.program = program, .flow_end_sec = INFINITY};
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
	free(estimate.events);
	free(estimate.flows);
	free(estimate.ports);
	free(estimate.n_flows_left);
	free(estimate.sending);
	free(estimate.collectives);
	free(estimate.groups);
	free(estimate.n_parts_left);
	for (unsigned p = 0; p < estimate.n_pools; p++)
		psd_pool_release(&estimate.pools[p]);
	free(estimate.pools);
	free(estimate.pool_of);
	free(estimate.copies);
	free(estimate.is_root);
	free(estimate.classes);
	return status;
}
