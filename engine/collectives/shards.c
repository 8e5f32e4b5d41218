/* Push and pull: between every worker and every shard, that shard's part. */
#include "engine/collectives/collective.h"

static struct psd_range part_of(const struct psd_payload *payload, const struct psd_layout *layout, unsigned shard_host)
{
	return psd_layout_part(layout, payload->elements, psd_layout_shard(layout, shard_host));
}

static struct psd_range push_range(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				   unsigned to)
{
	if (!psd_layout_is_worker(layout, from) || !psd_layout_is_shard(layout, to))
		return (struct psd_range){0, 0};
	return part_of(payload, layout, to);
}

static struct psd_range pull_range(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				   unsigned to)
{
	return push_range(payload, layout, to, from);
}

/* Legend: P workers, g of them on this node, b elements, own = this node's shard's part. */
static struct psd_traffic push_elements(const struct psd_payload *payload, const struct psd_layout *layout,
					unsigned node)
{
	const bool has_shard = layout->has_separate_servers != (node < layout->nodes);
	const unsigned shard = layout->has_separate_servers ? node - layout->nodes : node;
	const uint64_t P = layout->workers, b = payload->elements;
	const uint64_t g = psd_layout_workers_on(layout, node);
	const uint64_t own = has_shard ? psd_layout_part(layout, b, shard).elements : 0;

	return (struct psd_traffic){g * (b - own), (P - g) * own};
}

static struct psd_traffic pull_elements(const struct psd_payload *payload, const struct psd_layout *layout,
					unsigned node)
{
	const struct psd_traffic push = push_elements(payload, layout, node);

	return (struct psd_traffic){push.received_bytes, push.sent_bytes};
}

static struct psd_traffic push_host(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host)
{
	const bool is_worker = psd_layout_is_worker(layout, host);
	const uint64_t own = psd_layout_is_shard(layout, host) ? part_of(payload, layout, host).elements : 0;

	return (struct psd_traffic){is_worker ? payload->elements - own : 0, (layout->workers - is_worker) * own};
}

static struct psd_traffic pull_host(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host)
{
	const struct psd_traffic push = push_host(payload, layout, host);

	return (struct psd_traffic){push.received_bytes, push.sent_bytes};
}

static bool has_part(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host)
{
	return psd_layout_is_shard(layout, host) && part_of(payload, layout, host).elements > 0;
}

static unsigned push_senders(const struct psd_payload *payload, const struct psd_layout *layout, unsigned to)
{
	return has_part(payload, layout, to) ? layout->workers - psd_layout_is_worker(layout, to) : 0;
}

/* All shards have a part, unless there are fewer elements than shards. */
static unsigned pull_senders(const struct psd_payload *payload, const struct psd_layout *layout, unsigned to)
{
	const unsigned filled = payload->elements < layout->shards ? (unsigned)payload->elements : layout->shards;

	return psd_layout_is_worker(layout, to) ? filled - has_part(payload, layout, to) : 0;
}

static double local_elements(const struct psd_payload *payload, const struct psd_layout *layout)
{
	const double g = psd_layout_workers_on(layout, 0);

	return layout->has_separate_servers ? 0.0 : (g - 1.0) * (double)payload->elements / layout->shards;
}

static unsigned push_fan_in(const struct psd_layout *layout)
{
	return layout->has_separate_servers ? layout->nodes : layout->nodes - 1;
}

static unsigned pull_fan_in(const struct psd_layout *layout)
{
	return layout->has_separate_servers ? layout->shards : layout->nodes - 1;
}

const struct psd_collective psd_push = {
	.name = "push",
	.range = push_range,
	.is_cut = true,
	.node_elements = push_elements,
	.host_elements = push_host,
	.senders = push_senders,
	.local_elements = local_elements,
	.fan_in = push_fan_in,
};

const struct psd_collective psd_pull = {
	.name = "pull",
	.range = pull_range,
	.node_elements = pull_elements,
	.host_elements = pull_host,
	.senders = pull_senders,
	.local_elements = local_elements,
	.fan_in = pull_fan_in,
};
