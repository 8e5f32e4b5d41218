/* To the root and from it: one host has to do with every worker, and with the whole payload each time. */
#include "engine/collectives/collective.h"

static struct psd_range to_root_range(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				      unsigned to)
{
	const bool is_sent = psd_layout_is_worker(layout, from) && to == payload->root;

	return (struct psd_range){0, is_sent ? payload->elements : 0};
}

static struct psd_range from_root_range(const struct psd_payload *payload, const struct psd_layout *layout,
					unsigned from, unsigned to)
{
	return to_root_range(payload, layout, to, from);
}

static struct psd_traffic to_root_elements(const struct psd_payload *payload, const struct psd_layout *layout,
					   unsigned node)
{
	const uint64_t n_here = psd_layout_workers_on(layout, node);

	if (node == psd_layout_node(layout, payload->root))
		return (struct psd_traffic){0, (layout->workers - n_here) * payload->elements};
	return (struct psd_traffic){n_here * payload->elements, 0};
}

static struct psd_traffic from_root_elements(const struct psd_payload *payload, const struct psd_layout *layout,
					     unsigned node)
{
	const struct psd_traffic forth = to_root_elements(payload, layout, node);

	return (struct psd_traffic){forth.received_bytes, forth.sent_bytes};
}

static struct psd_traffic to_root_host(const struct psd_payload *payload, const struct psd_layout *layout,
				       unsigned host)
{
	const bool is_worker = psd_layout_is_worker(layout, host);

	if (host == payload->root)
		return (struct psd_traffic){0, (layout->workers - is_worker) * payload->elements};
	return (struct psd_traffic){is_worker ? payload->elements : 0, 0};
}

static struct psd_traffic from_root_host(const struct psd_payload *payload, const struct psd_layout *layout,
					 unsigned host)
{
	const struct psd_traffic forth = to_root_host(payload, layout, host);

	return (struct psd_traffic){forth.received_bytes, forth.sent_bytes};
}

static unsigned to_root_senders(const struct psd_payload *payload, const struct psd_layout *layout, unsigned to)
{
	return to == payload->root ? layout->workers - psd_layout_is_worker(layout, to) : 0;
}

static unsigned from_root_senders(const struct psd_payload *payload, const struct psd_layout *layout, unsigned to)
{
	return psd_layout_is_worker(layout, to) && to != payload->root ? 1 : 0;
}

static double local_elements(const struct psd_payload *payload, const struct psd_layout *layout)
{
	const unsigned node = psd_layout_node(layout, payload->root);

	if (!psd_layout_is_worker(layout, payload->root))
		return 0.0;
	return (psd_layout_workers_on(layout, node) - 1.0) * (double)payload->elements;
}

static unsigned to_root_fan_in(const struct psd_layout *layout)
{
	return layout->has_separate_servers ? layout->nodes : layout->nodes - 1;
}

static unsigned from_root_fan_in(const struct psd_layout *layout)
{
	return layout->has_separate_servers || layout->nodes > 1 ? 1 : 0;
}

const struct psd_collective psd_to_root = {
	.name = "factors",
	.range = to_root_range,
	.node_elements = to_root_elements,
	.host_elements = to_root_host,
	.senders = to_root_senders,
	.local_elements = local_elements,
	.fan_in = to_root_fan_in,
	.has_root = true,
};

const struct psd_collective psd_from_root = {
	.name = "matrix",
	.range = from_root_range,
	.node_elements = from_root_elements,
	.host_elements = from_root_host,
	.senders = from_root_senders,
	.local_elements = local_elements,
	.fan_in = from_root_fan_in,
	.has_root = true,
};
