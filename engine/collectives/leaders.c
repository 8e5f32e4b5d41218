/* Transfers by way of leaders, the first worker of each node: between the others and their leader, inside the node; and
 * push and pull between leaders and shards, as between workers and shards where nodes have one worker each. */
#include "engine/collectives/collective.h"

/* ---- inside a node ---- */

static struct psd_range to_leader_range(const struct psd_payload *payload, const struct psd_layout *layout,
					unsigned from, unsigned to)
{
	const bool is_sent = from != to && psd_layout_is_leader(layout, to) && psd_layout_is_worker(layout, from) &&
			     psd_layout_node(layout, from) == psd_layout_node(layout, to);

	return (struct psd_range){0, is_sent ? payload->elements : 0};
}

static struct psd_range from_leader_range(const struct psd_payload *payload, const struct psd_layout *layout,
					  unsigned from, unsigned to)
{
	return to_leader_range(payload, layout, to, from);
}

static struct psd_traffic to_leader_host(const struct psd_payload *payload, const struct psd_layout *layout,
					 unsigned host)
{
	if (psd_layout_is_leader(layout, host))
		return (struct psd_traffic){0, psd_layout_n_led(layout, host) * payload->elements};
	return (struct psd_traffic){psd_layout_is_worker(layout, host) ? payload->elements : 0, 0};
}

static struct psd_traffic reversed(struct psd_traffic forth)
{
	return (struct psd_traffic){forth.received_bytes, forth.sent_bytes};
}

static struct psd_traffic from_leader_host(const struct psd_payload *payload, const struct psd_layout *layout,
					   unsigned host)
{
	return reversed(to_leader_host(payload, layout, host));
}

static unsigned to_leader_senders(const struct psd_payload *payload, const struct psd_layout *layout, unsigned to)
{
	(void)payload;
	return psd_layout_n_led(layout, to);
}

static unsigned from_leader_senders(const struct psd_payload *payload, const struct psd_layout *layout, unsigned to)
{
	(void)payload;
	return psd_layout_is_worker(layout, to) && !psd_layout_is_leader(layout, to) ? 1 : 0;
}

static struct psd_traffic nothing(const struct psd_payload *payload, const struct psd_layout *layout, unsigned node)
{
	(void)payload, (void)layout, (void)node;
	return (struct psd_traffic){0, 0};
}

static double inside_elements(const struct psd_payload *payload, const struct psd_layout *layout)
{
	return (double)psd_layout_n_led(layout, 0) * (double)payload->elements;
}

static unsigned nobody(const struct psd_layout *layout)
{
	(void)layout;
	return 0;
}

const struct psd_collective psd_to_leader = {
	.name = "to leader",
	.range = to_leader_range,
	.node_elements = nothing,
	.host_elements = to_leader_host,
	.senders = to_leader_senders,
	.local_elements = inside_elements,
	.fan_in = nobody,
};

const struct psd_collective psd_from_leader = {
	.name = "from leader",
	.range = from_leader_range,
	.node_elements = nothing,
	.host_elements = from_leader_host,
	.senders = from_leader_senders,
	.local_elements = inside_elements,
	.fan_in = nobody,
};

/* ---- between leaders and shards ---- */

/* The cluster as if leaders were all its workers: each host there has the number of its node. */
static struct psd_layout leaders_of(const struct psd_layout *layout)
{
	return psd_layout_make(layout->nodes, 1, layout->has_separate_servers ? layout->shards : 0);
}

static bool takes_part(const struct psd_layout *layout, unsigned host)
{
	return psd_layout_is_leader(layout, host) || psd_layout_is_shard(layout, host);
}

static struct psd_range range_by(const struct psd_collective *collective, const struct psd_payload *payload,
				 const struct psd_layout *layout, unsigned from, unsigned to)
{
	const struct psd_layout leaders = leaders_of(layout);

	if (!takes_part(layout, from) || !takes_part(layout, to))
		return (struct psd_range){0, 0};
	return collective->range(payload, &leaders, psd_layout_node(layout, from), psd_layout_node(layout, to));
}

static struct psd_range push_range(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				   unsigned to)
{
	return range_by(&psd_push, payload, layout, from, to);
}

static struct psd_range pull_range(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				   unsigned to)
{
	return range_by(&psd_pull, payload, layout, from, to);
}

static struct psd_traffic push_elements(const struct psd_payload *payload, const struct psd_layout *layout,
					unsigned node)
{
	const struct psd_layout leaders = leaders_of(layout);

	return psd_push.node_elements(payload, &leaders, node);
}

static struct psd_traffic pull_elements(const struct psd_payload *payload, const struct psd_layout *layout,
					unsigned node)
{
	return reversed(push_elements(payload, layout, node));
}

static struct psd_traffic push_host(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host)
{
	const struct psd_layout leaders = leaders_of(layout);

	if (!takes_part(layout, host))
		return (struct psd_traffic){0, 0};
	return psd_push.host_elements(payload, &leaders, psd_layout_node(layout, host));
}

static struct psd_traffic pull_host(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host)
{
	return reversed(push_host(payload, layout, host));
}

static unsigned senders_by(const struct psd_collective *collective, const struct psd_payload *payload,
			   const struct psd_layout *layout, unsigned to)
{
	const struct psd_layout leaders = leaders_of(layout);

	return takes_part(layout, to) ? collective->senders(payload, &leaders, psd_layout_node(layout, to)) : 0;
}

static unsigned push_senders(const struct psd_payload *payload, const struct psd_layout *layout, unsigned to)
{
	return senders_by(&psd_push, payload, layout, to);
}

static unsigned pull_senders(const struct psd_payload *payload, const struct psd_layout *layout, unsigned to)
{
	return senders_by(&psd_pull, payload, layout, to);
}

static double no_elements(const struct psd_payload *payload, const struct psd_layout *layout)
{
	(void)payload, (void)layout;
	return 0.0;
}

static unsigned push_fan_in(const struct psd_layout *layout)
{
	const struct psd_layout leaders = leaders_of(layout);

	return psd_push.fan_in(&leaders);
}

static unsigned pull_fan_in(const struct psd_layout *layout)
{
	const struct psd_layout leaders = leaders_of(layout);

	return psd_pull.fan_in(&leaders);
}

/* Ranges are cut as those of push are, but leaders are not hosts one after the other: is_cut is of such runs. */
const struct psd_collective psd_leader_push = {
	.name = "leader push",
	.range = push_range,
	.node_elements = push_elements,
	.host_elements = push_host,
	.senders = push_senders,
	.local_elements = no_elements,
	.fan_in = push_fan_in,
};

const struct psd_collective psd_leader_pull = {
	.name = "leader pull",
	.range = pull_range,
	.node_elements = pull_elements,
	.host_elements = pull_host,
	.senders = pull_senders,
	.local_elements = no_elements,
	.fan_in = pull_fan_in,
};
