/* An estimate's messages: flows between classes, which share the ports of nodes, switches and hosts, and the processor
 * work of both ends. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/grow.h"
#include "engine/estimate/estimate_parts.h"
#include "engine/program/event_tag.h"

enum { PORTS_OF_NODE = 0, PORTS_OF_SELF = 2, PORTS_OF_SWITCH = 4, PORTS_OF_RACK = 6, PORTS_OF_CLASS = 8 };

static void make_pair(struct psd_fluid_port *ports, double out_bps, double in_bps)
{
	ports[0] = (struct psd_fluid_port){.rate_bps = out_bps};
	ports[1] = (struct psd_fluid_port){.rate_bps = in_bps};
}

static void make_ports(struct psd_estimate *estimate)
{
	const struct psd_rates *rates = &estimate->program->plan->rates;
	const double local_bps = fmin(rates->local_bps, PSD_UNLIMITED_BPS);
	const double between_bps = fmin(rates->between_bps, PSD_UNLIMITED_BPS);
	const struct psd_layout *layout = psd_estimate_layout(estimate);
	const bool has_racks = layout->nodes_per_rack > 0;
	const double up_bps = has_racks ? psd_cost_rack_bps(layout, rates, false) : PSD_UNLIMITED_BPS;
	const double down_bps = has_racks ? psd_cost_rack_bps(layout, rates, true) : PSD_UNLIMITED_BPS;
	for (unsigned c = 0; c < estimate->classes.n; c++) {
		struct psd_fluid_port *ports = &estimate->ports[PORTS_OF_CLASS * c];
		const double link_ratio =
			psd_layout_link_ratio(layout, psd_layout_node(layout, estimate->classes.of[c].representative));

		make_pair(ports + PORTS_OF_NODE, link_ratio * rates->send_bps, link_ratio * rates->receive_bps);
		make_pair(ports + PORTS_OF_SELF, local_bps, local_bps);
		make_pair(ports + PORTS_OF_SWITCH, between_bps, between_bps);
		make_pair(ports + PORTS_OF_RACK, up_bps, down_bps);
	}
}

enum psd_status psd_estimate_open_messages(struct psd_estimate *estimate, struct psd_error *err)
{
	const unsigned n = estimate->classes.n;

	estimate->ports = malloc(PORTS_OF_CLASS * (size_t)n * sizeof(*estimate->ports));
	estimate->n_flows_left = calloc(n, sizeof(*estimate->n_flows_left));
	estimate->sending = calloc(n, sizeof(*estimate->sending));
	estimate->n_parts_left = calloc(2 * psd_classes_n_paths(&estimate->classes), sizeof(*estimate->n_parts_left));
	if (estimate->program->plan->async) {
		estimate->queues = calloc(psd_classes_n_paths(&estimate->classes), sizeof(*estimate->queues));
		if (!estimate->queues)
			return psd_estimate_out_of_memory(err);
	}
	if (estimate->ports == NULL || estimate->n_flows_left == NULL || estimate->sending == NULL ||
	    estimate->n_parts_left == NULL)
		return psd_estimate_out_of_memory(err);
	return PSD_OK;
}

void psd_estimate_begin_messages(struct psd_estimate *estimate)
{
	estimate->flow_end_sec = INFINITY;
	estimate->have_flows_changed = false;
	estimate->flows_at_sec = 0.0;
	estimate->n_flows = 0;
	memset(estimate->n_flows_left, 0, estimate->classes.n * sizeof(*estimate->n_flows_left));
	for (size_t path = 0; estimate->queues && path < psd_classes_n_paths(&estimate->classes); path++)
		estimate->queues[path].n = 0;
	make_ports(estimate);
}

void psd_estimate_close_messages(struct psd_estimate *estimate)
{
	for (size_t path = 0; estimate->queues && path < psd_classes_n_paths(&estimate->classes); path++)
		free(estimate->queues[path].tasks);
	free(estimate->queues);
	free(estimate->flows);
	free(estimate->ports);
	free(estimate->n_flows_left);
	free(estimate->sending);
	free(estimate->n_parts_left);
}

/* Subtracts from all flows the bits sent until now_sec, so that flows may begin and end. */
static void advance_flows(struct psd_estimate *estimate)
{
	const double passed_sec = estimate->now_sec - estimate->flows_at_sec;

	for (unsigned f = 0; f < estimate->n_flows && passed_sec > 0.0; f++)
		estimate->flows[f].left_bits -= passed_sec * estimate->flows[f].rate_bps;
	estimate->flows_at_sec = estimate->now_sec;
}

double psd_estimate_flow_end_sec(struct psd_estimate *estimate, double due_sec)
{
	if (!estimate->have_flows_changed)
		return estimate->flow_end_sec;
	if (due_sec <= estimate->now_sec)
		return INFINITY;
	psd_fluid_share(estimate->flows, estimate->n_flows, estimate->ports);
	estimate->flow_end_sec = estimate->now_sec + psd_fluid_next_end_sec(estimate->flows, estimate->n_flows);
	estimate->have_flows_changed = false;
	return estimate->flow_end_sec;
}

/* Begins the processor work of sender and receiver for the messages from one class to another. is_behind: they follow
 * others directly. */
static void start_ends(struct psd_estimate *estimate, unsigned from, unsigned to, enum psd_reach reach,
		       const struct psd_payload *payload, double bytes, bool is_behind)
{
	const struct psd_layout *layout = psd_estimate_layout(estimate);
	const struct psd_classes *classes = &estimate->classes;
	const size_t path = psd_classes_path(classes, from, to, reach);
	const struct psd_class_peers *forth = &classes->peers[path];
	const struct psd_class_peers *back = &classes->peers[psd_classes_path(classes, to, from, reach)];
	const struct psd_socket_work end = psd_estimate_socket_work(estimate, bytes, !is_behind, reach < PSD_REACH_FAR);
	const size_t of_queue = payload->collective->is_queued ? psd_classes_n_paths(classes) : 0;
	const uint64_t tag = psd_event_tag(PSD_ESTIMATE_MESSAGE_PART, 0, path + of_queue);
	double n_receivers, n_senders;

	estimate->n_parts_left[path + of_queue] = end.sec > 0 ? 3 : 1;
	if (end.sec <= 0)
		return;
	estimate->n_events += psd_layout_hosts(layout); /* all hosts are visited */
	n_receivers = psd_payload_receivers_beside(payload, layout, classes->of[from].representative, forth->host);
	n_senders = psd_payload_senders_beside(payload, layout, back->host, classes->of[to].representative);
	psd_estimate_process(estimate, from, end.sec * forth->n, end.most_cores * forth->n / fmax(1, n_receivers), tag);
	psd_estimate_process(estimate, to, end.sec * back->n, end.most_cores * back->n / fmax(1, n_senders), tag);
}

static bool has_room_for_flow(struct psd_estimate *estimate)
{
	struct psd_fluid_flow *grown =
		psd_grown(estimate->flows, estimate->n_flows, &estimate->flows_room, sizeof(*grown));

	if (grown)
		estimate->flows = grown;
	return grown != NULL;
}

/* Adds the ports of the sending (is_in false) or the receiving class to the flow's path. n: number of flows of each
 * host of this class. */
static void add_uses(const struct psd_estimate *estimate, struct psd_fluid_flow *flow, unsigned c, unsigned n,
		     bool is_in, enum psd_reach reach)
{
	const struct psd_host_class *class = &estimate->classes.of[c];
	const bool passes_switch = psd_classes_have_switches(&estimate->classes) &&
				   class->representative < psd_estimate_layout(estimate)->workers;

	if (reach == PSD_REACH_BEYOND)
		psd_fluid_add_use(flow, PORTS_OF_CLASS * class->rack + PORTS_OF_RACK + is_in,
				  (double)n * class->n_in_rack);
	if (reach >= PSD_REACH_FAR)
		psd_fluid_add_use(flow, PORTS_OF_CLASS * class->node + PORTS_OF_NODE + is_in,
				  (double)n * class->n_here);
	if (reach < PSD_REACH_FAR || passes_switch)
		psd_fluid_add_use(flow, PORTS_OF_CLASS * c + PORTS_OF_SELF + is_in, n);
	if (reach != PSD_REACH_NEAR && passes_switch)
		psd_fluid_add_use(flow, PORTS_OF_CLASS * class->behind + PORTS_OF_SWITCH + is_in,
				  (double)n * class->n_behind);
}

static void start_flow(struct psd_estimate *estimate, unsigned from, unsigned to, enum psd_reach reach,
		       const struct psd_payload *payload, bool is_behind)
{
	const size_t path = psd_classes_path(&estimate->classes, from, to, reach);
	const struct psd_class_peers *forth = &estimate->classes.peers[path],
				     *back = &estimate->classes
						      .peers[psd_classes_path(&estimate->classes, to, from, reach)];
	const double bytes = (double)psd_payload_bytes_between(payload, psd_estimate_layout(estimate),
							       estimate->classes.of[from].representative, forth->host);

	if (!has_room_for_flow(estimate)) {
		estimate->is_out_of_memory = true;
		return;
	}
	struct psd_fluid_flow *flow = &estimate->flows[estimate->n_flows++];
	*flow = (struct psd_fluid_flow){.left_bits = 8.0 * bytes, .tag = path};
	estimate->have_flows_changed = true;
	if (payload->collective->is_queued)
		flow->tag += psd_classes_n_paths(&estimate->classes);
	else
		estimate->n_flows_left[from]++;

	add_uses(estimate, flow, from, forth->n, false, reach);
	add_uses(estimate, flow, to, back->n, true, reach);
	start_ends(estimate, from, to, reach, payload, bytes, is_behind);
}

/* Returns the reach of a path, and sets its classes. */
static size_t ends_of(const struct psd_estimate *estimate, size_t path, unsigned *from, unsigned *to)
{
	const size_t pair = path / PSD_REACHES;

	*from = (unsigned)(pair / estimate->classes.n);
	*to = (unsigned)(pair % estimate->classes.n);
	return path % PSD_REACHES;
}

static void start_queued(struct psd_estimate *estimate, size_t path, bool is_behind)
{
	const struct psd_task task = estimate->queues[path].tasks[0];
	unsigned from, to;
	const enum psd_reach reach = (enum psd_reach)ends_of(estimate, path, &from, &to);

	start_flow(estimate, from, to, reach, &estimate->program->ops[task.op].payload, is_behind);
}

static void add_to_queue(struct psd_estimate *estimate, unsigned from, size_t path, struct psd_task task)
{
	struct psd_estimate_queue *queue = &estimate->queues[path];
	struct psd_task *grown = psd_grown(queue->tasks, queue->n, &queue->room, sizeof(*grown));

	if (!grown) {
		estimate->is_out_of_memory = true;
		return;
	}
	queue->tasks = grown;
	queue->tasks[queue->n++] = task;
	psd_estimate_push(estimate, estimate->now_sec, psd_event_tag(PSD_ESTIMATE_QUEUED, from, 0));
	if (queue->n == 1)
		start_queued(estimate, path, false);
}

/* The time of a message on the link is over: it arrives after the latency. */
static void arrive_later(struct psd_estimate *estimate, unsigned from, unsigned to, size_t reach, struct psd_task task)
{
	const struct psd_plan *plan = estimate->program->plan;
	const struct psd_host_class *of = estimate->classes.of;
	const double far_sec =
		plan->rates.latency_sec +
		psd_layout_more_latency_sec(&plan->layout, psd_layout_node(&plan->layout, of[from].representative),
					    psd_layout_node(&plan->layout, of[to].representative));

	psd_estimate_push(estimate,
			  estimate->now_sec + (reach >= PSD_REACH_FAR ? far_sec : plan->rates.local_latency_sec),
			  psd_event_tag_of_task(PSD_ESTIMATE_ARRIVED, to, task));
}

static void end_queued(struct psd_estimate *estimate, size_t path)
{
	struct psd_estimate_queue *queue = &estimate->queues[path];
	const struct psd_task task = queue->tasks[0];
	unsigned from, to;
	const size_t reach = ends_of(estimate, path, &from, &to);

	memmove(queue->tasks, queue->tasks + 1, --queue->n * sizeof(task));
	psd_interpreter_left(&estimate->interpreter, from);
	arrive_later(estimate, from, to, reach, task);
	if (queue->n == 0)
		return;
	advance_flows(estimate);
	start_queued(estimate, path, true);
}

void psd_estimate_end_message_part(struct psd_estimate *estimate, size_t path)
{
	const size_t n_paths = psd_classes_n_paths(&estimate->classes);
	unsigned from, to;

	if (--estimate->n_parts_left[path] > 0)
		return;
	if (path >= n_paths) {
		end_queued(estimate, path - n_paths);
		return;
	}
	const size_t reach = ends_of(estimate, path, &from, &to);

	psd_interpreter_departed(&estimate->interpreter);
	arrive_later(estimate, from, to, reach, estimate->sending[from]);
	if (--estimate->n_flows_left[from] > 0)
		return;
	psd_estimate_push(estimate, estimate->now_sec, psd_event_tag(PSD_ESTIMATE_FINISHED, from, PSD_RESOURCE_NIC));
}

/* Ends the flows whose remaining bits take less than a nanosecond, or less than the resolution of the clock. */
void psd_estimate_end_flows(struct psd_estimate *estimate)
{
	const double tolerance_sec = 1e-9 + 1e-14 * estimate->now_sec;
	advance_flows(estimate);
	estimate->have_flows_changed = true;
	for (unsigned f = 0; f < estimate->n_flows;) {
		const struct psd_fluid_flow flow = estimate->flows[f];
		if (flow.left_bits > tolerance_sec * flow.rate_bps) {
			f++;
			continue;
		}
		estimate->flows[f] = estimate->flows[--estimate->n_flows];
		psd_estimate_end_message_part(estimate, flow.tag);
	}
}

bool psd_estimate_send(void *context, unsigned from, struct psd_task task)
{
	struct psd_estimate *estimate = context;
	const struct psd_payload *payload = &estimate->program->ops[task.op].payload;
	const bool is_behind = !psd_interpreter_has_paused(&estimate->interpreter, from);
	bool has_sent = false;

	advance_flows(estimate);
	estimate->sending[from] = task;
	for (unsigned to = 0; to < estimate->classes.n; to++)
		for (unsigned r = 0; r < PSD_REACHES; r++) {
			const enum psd_reach reach = (enum psd_reach)r;

			if (!psd_classes_send(&estimate->classes, payload, from, to, reach))
				continue;
			if (payload->collective->is_queued) {
				add_to_queue(estimate, from, psd_classes_path(&estimate->classes, from, to, reach),
					     task);
				return true; /* its only message */
			}
			has_sent = true;
			start_flow(estimate, from, to, reach, payload, is_behind);
		}
	return has_sent;
}
