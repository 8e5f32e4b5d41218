/* Push and pull: between every worker and every shard, that shard's part. */
#include "engine/collectives/collective.h"

/* Returns the shard's part of the payload; empty if the host has no shard. */
static struct psd_range own_part(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host)
{
	return psd_layout_owned(layout, PSD_OWNER_SHARDS, payload->root, payload->elements, host);
}

static struct psd_range range(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
			      unsigned to)
{
	if (!psd_layout_is_worker(layout, from))
		return (struct psd_range){0, 0};
	return own_part(payload, layout, to);
}

static struct psd_traffic host_elements(const struct psd_payload *payload, const struct psd_layout *layout,
					unsigned host)
{
	const bool is_worker = psd_layout_is_worker(layout, host);
	const uint64_t own = own_part(payload, layout, host).elements;

	return (struct psd_traffic){is_worker ? payload->elements - own : 0, (layout->workers - is_worker) * own};
}

static unsigned senders(const struct psd_payload *payload, const struct psd_layout *layout, unsigned to)
{
	return own_part(payload, layout, to).elements > 0 ? layout->workers - psd_layout_is_worker(layout, to) : 0;
}

/* All shards have a part, unless there are fewer elements than shards. */
static unsigned receivers(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from)
{
	const unsigned filled = payload->elements < layout->shards ? (unsigned)payload->elements : layout->shards;

	return psd_layout_is_worker(layout, from) ? filled - (own_part(payload, layout, from).elements > 0) : 0;
}

static unsigned fan_in(const struct psd_layout *layout)
{
	return layout->has_separate_servers ? layout->nodes : layout->nodes - 1;
}

static unsigned fan_out(const struct psd_layout *layout)
{
	return layout->has_separate_servers ? layout->shards : layout->nodes - 1;
}

const struct psd_collective psd_push = {.name = "push", PSD_AT_ONCE, .is_cut = true};

const struct psd_collective psd_pull = {.name = "pull", .reverse_of = &psd_push};
