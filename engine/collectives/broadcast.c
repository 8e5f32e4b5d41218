/* Broadcast: every worker sends the whole payload to every other worker. */
#include "engine/collectives/collective.h"

static struct psd_range range(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
			      unsigned to)
{
	const bool is_sent = psd_layout_is_worker(layout, from) && psd_layout_is_worker(layout, to);

	return (struct psd_range){0, is_sent ? payload->elements : 0};
}

/* Returns the number of hosts that send to a host, which is also the number of hosts that receive from it. */
static unsigned n_peers(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host)
{
	(void)payload;
	return psd_layout_is_worker(layout, host) ? layout->workers - 1 : 0;
}

static struct psd_traffic host_elements(const struct psd_payload *payload, const struct psd_layout *layout,
					unsigned host)
{
	const uint64_t elements = n_peers(payload, layout, host) * payload->elements;

	return (struct psd_traffic){elements, elements};
}

static unsigned fan_in(const struct psd_layout *layout)
{
	return layout->nodes - 1;
}

const struct psd_collective psd_broadcast = {
	.name = "broadcast",
	.range = range,
	.host_elements = host_elements,
	.senders = n_peers,
	.receivers = n_peers,
	.fan_in = fan_in,
};
