/* To the root and from it: one host exchanges the whole payload with every worker. */
#include "engine/collectives/collective.h"

static struct psd_range range(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
			      unsigned to)
{
	const bool is_sent = psd_layout_is_worker(layout, from) && to == payload->root;

	return (struct psd_range){0, is_sent ? payload->elements : 0};
}

static unsigned senders(const struct psd_payload *payload, const struct psd_layout *layout, unsigned to)
{
	return to == payload->root ? layout->workers - psd_layout_is_worker(layout, to) : 0;
}

static unsigned receivers(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from)
{
	return psd_layout_is_worker(layout, from) && from != payload->root;
}

static struct psd_traffic host_elements(const struct psd_payload *payload, const struct psd_layout *layout,
					unsigned host)
{
	return (struct psd_traffic){receivers(payload, layout, host) * payload->elements,
				    senders(payload, layout, host) * payload->elements};
}

static unsigned fan_in(const struct psd_layout *layout)
{
	return layout->has_separate_servers ? layout->nodes : layout->nodes - 1;
}

static unsigned fan_out(const struct psd_layout *layout)
{
	return layout->has_separate_servers || layout->nodes > 1;
}

const struct psd_collective psd_to_root = {.name = "factors", PSD_AT_ONCE, .has_root = true};

const struct psd_collective psd_from_root = {.name = "matrix", .reverse_of = &psd_to_root, .has_root = true};
