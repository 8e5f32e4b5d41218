/* Push and pull: between every worker and every shard, that shard's part. */
#include "engine/collectives/collective.h"

/* Returns the number of the payload's elements that belong to the shard on a host; 0 if the host has no shard. */
static uint64_t own_elements(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host)
{
	if (!psd_layout_is_shard(layout, host))
		return 0;
	return psd_layout_part(layout, payload->elements, psd_layout_shard(layout, host)).elements;
}

static struct psd_range range(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
			      unsigned to)
{
	if (!psd_layout_is_worker(layout, from) || !psd_layout_is_shard(layout, to))
		return (struct psd_range){0, 0};
	return psd_layout_part(layout, payload->elements, psd_layout_shard(layout, to));
}

static struct psd_traffic host_elements(const struct psd_payload *payload, const struct psd_layout *layout,
					unsigned host)
{
	const bool is_worker = psd_layout_is_worker(layout, host);
	const uint64_t own = own_elements(payload, layout, host);

	return (struct psd_traffic){is_worker ? payload->elements - own : 0, (layout->workers - is_worker) * own};
}

static unsigned senders(const struct psd_payload *payload, const struct psd_layout *layout, unsigned to)
{
	return own_elements(payload, layout, to) > 0 ? layout->workers - psd_layout_is_worker(layout, to) : 0;
}

/* All shards have a part, unless there are fewer elements than shards. */
static unsigned receivers(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from)
{
	const unsigned filled = payload->elements < layout->shards ? (unsigned)payload->elements : layout->shards;

	return psd_layout_is_worker(layout, from) ? filled - (own_elements(payload, layout, from) > 0) : 0;
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
