/* Push and pull of a single worker, payload->root: between it and every shard, that shard's part. */
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
	if (from != payload->root || !psd_layout_is_shard(layout, to))
		return (struct psd_range){0, 0};
	return psd_layout_part(layout, payload->elements, psd_layout_shard(layout, to));
}

static struct psd_traffic host_elements(const struct psd_payload *payload, const struct psd_layout *layout,
					unsigned host)
{
	const uint64_t own = own_elements(payload, layout, host);

	if (host == payload->root)
		return (struct psd_traffic){payload->elements - own, 0};
	return (struct psd_traffic){0, own};
}

static unsigned senders(const struct psd_payload *payload, const struct psd_layout *layout, unsigned to)
{
	return to != payload->root && own_elements(payload, layout, to) > 0;
}

/* All shards have a part, unless there are fewer elements than shards. */
static unsigned receivers(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from)
{
	const unsigned filled = payload->elements < layout->shards ? (unsigned)payload->elements : layout->shards;

	return from == payload->root ? filled - (own_elements(payload, layout, from) > 0) : 0;
}

static unsigned fan_in(const struct psd_layout *layout)
{
	return layout->has_separate_servers || layout->nodes > 1;
}

static unsigned fan_out(const struct psd_layout *layout)
{
	return layout->has_separate_servers ? layout->shards : layout->nodes - 1;
}

const struct psd_collective psd_push_of_one = {.name = "push of one", PSD_AT_ONCE, .has_root = true, .is_cut = true};

const struct psd_collective psd_pull_of_one = {
	.name = "pull of one", .reverse_of = &psd_push_of_one, .has_root = true, .is_queued = true};
