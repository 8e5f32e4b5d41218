/* Transfers through leaders, the first worker of each node: between the others and their leader, inside the node; push
 * and pull between leaders and shards, like those between workers and shards where each node has one worker; and a
 * broadcast in which the slices of a node's workers travel as one message. */
#include "engine/collectives/collective.h"

/* ---- inside a node ---- */

static struct psd_range inside_range(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				     unsigned to)
{
	const bool is_sent = from != to && psd_layout_is_leader(layout, to) && psd_layout_is_worker(layout, from) &&
			     psd_layout_node(layout, from) == psd_layout_node(layout, to);

	return (struct psd_range){0, is_sent ? payload->elements : 0};
}

static unsigned inside_senders(const struct psd_payload *payload, const struct psd_layout *layout, unsigned to)
{
	(void)payload;
	return psd_layout_n_led(layout, to);
}

static unsigned inside_receivers(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from)
{
	(void)payload;
	return psd_layout_is_worker(layout, from) && !psd_layout_is_leader(layout, from);
}

static struct psd_traffic inside_host(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host)
{
	return (struct psd_traffic){inside_receivers(payload, layout, host) * payload->elements,
				    inside_senders(payload, layout, host) * payload->elements};
}

const struct psd_collective psd_to_leader = {
	.name = "to leader",
	.range = inside_range,
	.host_elements = inside_host,
	.senders = inside_senders,
	.receivers = inside_receivers,
};

const struct psd_collective psd_from_leader = {.name = "from leader", .reverse_of = &psd_to_leader};

/* ---- between leaders and shards ---- */

/* Returns the layout of a cluster whose workers are only the leaders: host number n of this layout is the leader of
 * node n. */
static struct psd_layout leaders_of(const struct psd_layout *layout)
{
	return psd_layout_make(layout->nodes, 1, layout->has_separate_servers ? layout->shards : 0);
}

static bool takes_part(const struct psd_layout *layout, unsigned host)
{
	return psd_layout_is_leader(layout, host) || psd_layout_is_shard(layout, host);
}

static struct psd_range range(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
			      unsigned to)
{
	const struct psd_layout leaders = leaders_of(layout);

	if (!takes_part(layout, from) || !takes_part(layout, to))
		return (struct psd_range){0, 0};
	return psd_push.range(payload, &leaders, psd_layout_node(layout, from), psd_layout_node(layout, to));
}

static struct psd_traffic host_elements(const struct psd_payload *payload, const struct psd_layout *layout,
					unsigned host)
{
	const struct psd_layout leaders = leaders_of(layout);

	if (!takes_part(layout, host))
		return (struct psd_traffic){0, 0};
	return psd_push.host_elements(payload, &leaders, psd_layout_node(layout, host));
}

static unsigned senders(const struct psd_payload *payload, const struct psd_layout *layout, unsigned to)
{
	const struct psd_layout leaders = leaders_of(layout);

	return takes_part(layout, to) ? psd_push.senders(payload, &leaders, psd_layout_node(layout, to)) : 0;
}

static unsigned receivers(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from)
{
	const struct psd_layout leaders = leaders_of(layout);

	return takes_part(layout, from) ? psd_push.receivers(payload, &leaders, psd_layout_node(layout, from)) : 0;
}

static unsigned fan_in(const struct psd_layout *layout)
{
	const struct psd_layout leaders = leaders_of(layout);

	return psd_push.fan_in(&leaders);
}

static unsigned fan_out(const struct psd_layout *layout)
{
	const struct psd_layout leaders = leaders_of(layout);

	return psd_push.fan_out(&leaders);
}

/* Ranges are cut like those of push, but is_cut is about consecutive hosts, which leaders are not. */
const struct psd_collective psd_leader_push = {.name = "leader push", PSD_AT_ONCE};

const struct psd_collective psd_leader_pull = {.name = "leader pull", .reverse_of = &psd_leader_push};

/* ---- slices of all workers ---- */

static unsigned n_beside(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host)
{
	(void)payload;
	return psd_layout_is_worker(layout, host) ? psd_layout_workers_on(layout, psd_layout_node(layout, host)) - 1
						  : 0;
}

static struct psd_range beside_range(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				     unsigned to)
{
	const bool is_sent = from != to && psd_layout_is_worker(layout, from) && psd_layout_is_worker(layout, to) &&
			     psd_layout_node(layout, from) == psd_layout_node(layout, to);

	return (struct psd_range){0, is_sent ? payload->elements : 0};
}

static struct psd_traffic beside_host(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host)
{
	const uint64_t elements = n_beside(payload, layout, host) * payload->elements;

	return (struct psd_traffic){elements, elements};
}

const struct psd_collective psd_node_broadcast = {
	.name = "broadcast in node",
	.range = beside_range,
	.host_elements = beside_host,
	.senders = n_beside,
	.receivers = n_beside,
};

/* Returns the range of the slices of a node's workers. */
static struct psd_range of_node(const struct psd_payload *payload, const struct psd_layout *layout, unsigned node)
{
	return (struct psd_range){psd_layout_first(layout, node) * payload->elements,
				  psd_layout_workers_on(layout, node) * payload->elements};
}

/* Returns the range of the slices of all workers that are not on a node. */
static struct psd_range beyond_node(const struct psd_payload *payload, const struct psd_layout *layout, unsigned node)
{
	const struct psd_range here = of_node(payload, layout, node);
	const uint64_t all = layout->workers * payload->elements;

	return (struct psd_range){all > 0 ? (here.first + here.elements) % all : 0, all - here.elements};
}

static struct psd_range across_range(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				     unsigned to)
{
	if (from == to || !psd_layout_is_leader(layout, from) || !psd_layout_is_leader(layout, to))
		return (struct psd_range){0, 0};
	return of_node(payload, layout, psd_layout_node(layout, from));
}

static unsigned n_across(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host)
{
	(void)payload;
	return psd_layout_is_leader(layout, host) ? layout->nodes - 1 : 0;
}

static struct psd_traffic across_host(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host)
{
	const unsigned node = psd_layout_node(layout, host);

	if (!psd_layout_is_leader(layout, host))
		return (struct psd_traffic){0, 0};
	return (struct psd_traffic){(layout->nodes - 1) * of_node(payload, layout, node).elements,
				    beyond_node(payload, layout, node).elements};
}

static unsigned across_fan_in(const struct psd_layout *layout)
{
	return layout->nodes - 1;
}

const struct psd_collective psd_leader_broadcast = {
	.name = "leader broadcast",
	.range = across_range,
	.host_elements = across_host,
	.senders = n_across,
	.receivers = n_across,
	.fan_in = across_fan_in,
	.is_of_all = true,
};

static struct psd_range over_range(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				   unsigned to)
{
	if (layout->nodes == 1 || inside_range(payload, layout, to, from).elements == 0)
		return (struct psd_range){0, 0};
	return beyond_node(payload, layout, psd_layout_node(layout, from));
}

static unsigned over_senders(const struct psd_payload *payload, const struct psd_layout *layout, unsigned to)
{
	return layout->nodes > 1 ? inside_receivers(payload, layout, to) : 0;
}

static unsigned over_receivers(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from)
{
	return layout->nodes > 1 ? inside_senders(payload, layout, from) : 0;
}

static struct psd_traffic over_host(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host)
{
	const uint64_t elements = psd_layout_is_worker(layout, host)
					  ? beyond_node(payload, layout, psd_layout_node(layout, host)).elements
					  : 0;

	return (struct psd_traffic){over_receivers(payload, layout, host) * elements,
				    over_senders(payload, layout, host) * elements};
}

const struct psd_collective psd_hand_over = {
	.name = "hand over",
	.range = over_range,
	.host_elements = over_host,
	.senders = over_senders,
	.receivers = over_receivers,
	.is_of_all = true,
};
