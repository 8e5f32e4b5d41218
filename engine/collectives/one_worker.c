/* Push and pull of a single worker, payload->root: between it and every shard, that shard's part. */
#include "engine/collectives/collective.h"

/* Returns the shard's part of the payload; empty if the host has no shard. */
static struct psd_range own_part(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host)
{
	return psd_layout_owned(layout, PSD_OWNER_SHARDS, payload->root, payload->elements, host);
}

static struct psd_range range(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
			      unsigned to)
{
	if (from != payload->root)
		return (struct psd_range){0, 0};
	return own_part(payload, layout, to);
}

static struct psd_traffic host_elements(const struct psd_payload *payload, const struct psd_layout *layout,
					unsigned host)
{
	const uint64_t own = own_part(payload, layout, host).elements;

	if (host == payload->root)
		return (struct psd_traffic){payload->elements - own, 0};
	return (struct psd_traffic){0, own};
}

static unsigned senders(const struct psd_payload *payload, const struct psd_layout *layout, unsigned to)
{
	return to != payload->root && own_part(payload, layout, to).elements > 0;
}

/* All shards have a part, unless there are fewer elements than shards. */
static unsigned receivers(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from)
{
	const unsigned filled = payload->elements < layout->shards ? (unsigned)payload->elements : layout->shards;

	return from == payload->root ? filled - (own_part(payload, layout, from).elements > 0) : 0;
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
