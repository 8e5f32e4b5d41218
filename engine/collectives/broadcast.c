/* Every worker to every other: all of it. */
#include "engine/collectives/collective.h"

static struct psd_range range(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
			      unsigned to)
{
	const bool is_sent = psd_layout_is_worker(layout, from) && psd_layout_is_worker(layout, to);

	return (struct psd_range){0, is_sent ? payload->elements : 0};
}

static struct psd_traffic node_elements(const struct psd_payload *payload, const struct psd_layout *layout,
					unsigned node)
{
	const uint64_t n_here = psd_layout_workers_on(layout, node);
	const uint64_t elements = n_here * (layout->workers - n_here) * payload->elements;

	return (struct psd_traffic){elements, elements};
}

static struct psd_traffic host_elements(const struct psd_payload *payload, const struct psd_layout *layout,
					unsigned host)
{
	const uint64_t elements = psd_layout_is_worker(layout, host) ? (layout->workers - 1) * payload->elements : 0;

	return (struct psd_traffic){elements, elements};
}

static unsigned senders(const struct psd_payload *payload, const struct psd_layout *layout, unsigned to)
{
	(void)payload;
	return psd_layout_is_worker(layout, to) ? layout->workers - 1 : 0;
}

static double local_elements(const struct psd_payload *payload, const struct psd_layout *layout)
{
	return (psd_layout_workers_on(layout, 0) - 1.0) * (double)payload->elements;
}

static unsigned fan_in(const struct psd_layout *layout)
{
	return layout->nodes - 1;
}

const struct psd_collective psd_broadcast = {
	.name = "broadcast",
	.range = range,
	.node_elements = node_elements,
	.host_elements = host_elements,
	.senders = senders,
	.local_elements = local_elements,
	.fan_in = fan_in,
};
