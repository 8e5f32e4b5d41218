/* Placement of workers and shards, and the spread of an operation's payload over them. Keeps no state. */
#include "engine/cost/layout.h"
#include "engine/schedules/ring.h"

#include <assert.h>
#include <math.h>

struct psd_layout psd_layout_make(unsigned workers, unsigned workers_per_node, unsigned separate_servers)
{
	assert(workers >= 1 && workers_per_node >= 1);
	const unsigned nodes = (workers - 1) / workers_per_node + 1;
	return (struct psd_layout){
		.workers = workers,
		.nodes = nodes,
		.workers_per_node = workers_per_node,
		.shards = separate_servers > 0 ? separate_servers : nodes,
		.has_separate_servers = separate_servers > 0,
	};
}

unsigned psd_layout_hosts(const struct psd_layout *layout)
{
	return layout->workers + (layout->has_separate_servers ? layout->shards : 0);
}

bool psd_layout_is_worker(const struct psd_layout *layout, unsigned host)
{
	return host < layout->workers;
}

bool psd_layout_is_shard(const struct psd_layout *layout, unsigned host)
{
	return layout->has_separate_servers ? host >= layout->workers : host % layout->workers_per_node == 0;
}

unsigned psd_layout_shard_host(const struct psd_layout *layout, unsigned shard)
{
	return layout->has_separate_servers ? layout->workers + shard : shard * layout->workers_per_node;
}

unsigned psd_layout_shard(const struct psd_layout *layout, unsigned host)
{
	return layout->has_separate_servers ? host - layout->workers : host / layout->workers_per_node;
}

unsigned psd_layout_node(const struct psd_layout *layout, unsigned host)
{
	return host < layout->workers ? host / layout->workers_per_node : layout->nodes + (host - layout->workers);
}

unsigned psd_layout_nodes(const struct psd_layout *layout)
{
	return layout->nodes + (layout->has_separate_servers ? layout->shards : 0);
}

/* q S + r elements: the cut at shard s is s q + s r / S, which cannot overflow for any S < 2^32 */
static uint64_t cut(uint64_t elements, uint64_t shards, uint64_t shard)
{
	return shard * (elements / shards) + shard * (elements % shards) / shards;
}

struct psd_range psd_layout_part(const struct psd_layout *layout, uint64_t elements, unsigned shard)
{
	const uint64_t first = cut(elements, layout->shards, shard);
	return (struct psd_range){first, cut(elements, layout->shards, shard + UINT64_C(1)) - first};
}

struct psd_payload psd_payload_scaled(const struct psd_payload *payload, const struct psd_layout *layout, double ratio)
{
	const uint64_t parts = layout->shards > layout->workers ? layout->shards : layout->workers;
	struct psd_payload scaled = *payload;

	if (ratio >= 1.0 || payload->elements <= parts)
		return scaled;
	scaled.elements = (uint64_t)ceil((double)payload->elements * ratio);
	if (scaled.elements < parts)
		scaled.elements = parts;
	return scaled;
}

uint64_t psd_payload_part_bytes(const struct psd_payload *payload, const struct psd_layout *layout, unsigned shard)
{
	return psd_layout_part(layout, payload->elements, shard).elements * payload->value_bytes;
}

static uint64_t ring_bytes(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from)
{
	return layout->workers > 1
		       ? psd_ring_sent_elements(payload->elements, layout->workers, from) * payload->value_bytes
		       : 0;
}

uint64_t psd_payload_bytes_between(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				   unsigned to)
{
	assert(from != to);
	const uint64_t all_bytes = payload->elements * payload->value_bytes;
	switch (payload->pattern) {
	case PSD_PATTERN_PUSH:
		if (!psd_layout_is_worker(layout, from) || !psd_layout_is_shard(layout, to))
			return 0;
		return psd_payload_part_bytes(payload, layout, psd_layout_shard(layout, to));
	case PSD_PATTERN_PULL:
		if (!psd_layout_is_shard(layout, from) || !psd_layout_is_worker(layout, to))
			return 0;
		return psd_payload_part_bytes(payload, layout, psd_layout_shard(layout, from));
	case PSD_PATTERN_BROADCAST:
		return psd_layout_is_worker(layout, from) && psd_layout_is_worker(layout, to) ? all_bytes : 0;
	case PSD_PATTERN_TO_ROOT: return psd_layout_is_worker(layout, from) && to == payload->root ? all_bytes : 0;
	case PSD_PATTERN_FROM_ROOT: return psd_layout_is_worker(layout, to) && from == payload->root ? all_bytes : 0;
	case PSD_PATTERN_RING:
		return psd_layout_is_worker(layout, from) && to == (from + 1) % layout->workers
			       ? ring_bytes(payload, layout, from)
			       : 0;
	case PSD_PATTERNS: break;
	}
	return 0;
}

static struct psd_traffic turned(struct psd_traffic traffic)
{
	return (struct psd_traffic){traffic.received_bytes, traffic.sent_bytes};
}

/* Legend: P workers, g of them on this node, b payload bytes, own = this node's shard's part. */
struct psd_traffic psd_payload_node_traffic(const struct psd_payload *payload, const struct psd_layout *layout,
					    unsigned node)
{
	const bool is_worker_node = node < layout->nodes;
	const uint64_t P = layout->workers;
	const uint64_t first_worker = (uint64_t)node * layout->workers_per_node;
	const uint64_t left = is_worker_node ? P - first_worker : 0;
	const uint64_t g = left < layout->workers_per_node ? left : layout->workers_per_node;
	const uint64_t b = payload->elements * payload->value_bytes;
	const bool has_shard = layout->has_separate_servers != is_worker_node;
	const unsigned shard = layout->has_separate_servers ? node - layout->nodes : node;
	struct psd_payload forth = *payload;
	switch (payload->pattern) {
	case PSD_PATTERN_PUSH: {
		const uint64_t own = has_shard ? psd_payload_part_bytes(payload, layout, shard) : 0;
		return (struct psd_traffic){g * (b - own), (P - g) * own};
	}
	case PSD_PATTERN_PULL:
		forth.pattern = PSD_PATTERN_PUSH;
		return turned(psd_payload_node_traffic(&forth, layout, node));
	case PSD_PATTERN_BROADCAST: return (struct psd_traffic){g * (P - g) * b, g * (P - g) * b};
	case PSD_PATTERN_TO_ROOT:
		if (node == psd_layout_node(layout, payload->root))
			return (struct psd_traffic){0, (P - g) * b};
		return (struct psd_traffic){g * b, 0};
	case PSD_PATTERN_FROM_ROOT:
		forth.pattern = PSD_PATTERN_TO_ROOT;
		return turned(psd_payload_node_traffic(&forth, layout, node));
	case PSD_PATTERN_RING: {
		if (!is_worker_node || layout->nodes == 1)
			return (struct psd_traffic){0, 0};
		return (struct psd_traffic){ring_bytes(payload, layout, (unsigned)(first_worker + g - 1)),
					    ring_bytes(payload, layout, (unsigned)((first_worker + P - 1) % P))};
	}
	case PSD_PATTERNS: break;
	}
	return (struct psd_traffic){0, 0};
}

/* Shards whose part is not empty: all, unless there are fewer elements than shards. */
static unsigned filled_shards(const struct psd_payload *payload, const struct psd_layout *layout)
{
	return payload->elements < layout->shards ? (unsigned)payload->elements : layout->shards;
}

unsigned psd_payload_senders(const struct psd_payload *payload, const struct psd_layout *layout, unsigned to)
{
	const bool to_worker = psd_layout_is_worker(layout, to);
	const bool to_shard = psd_layout_is_shard(layout, to);
	const unsigned other_workers = layout->workers - (to_worker ? 1 : 0);
	if (payload->elements == 0)
		return 0;
	switch (payload->pattern) {
	case PSD_PATTERN_PUSH:
		return to_shard && psd_payload_part_bytes(payload, layout, psd_layout_shard(layout, to)) > 0
			       ? other_workers
			       : 0;
	case PSD_PATTERN_PULL: {
		if (!to_worker)
			return 0;
		const bool has_own_part =
			to_shard && psd_payload_part_bytes(payload, layout, psd_layout_shard(layout, to)) > 0;
		return filled_shards(payload, layout) - (has_own_part ? 1 : 0);
	}
	case PSD_PATTERN_BROADCAST: return to_worker ? other_workers : 0;
	case PSD_PATTERN_TO_ROOT: return to == payload->root ? other_workers : 0;
	case PSD_PATTERN_FROM_ROOT: return to_worker && to != payload->root ? 1 : 0;
	case PSD_PATTERN_RING: return to_worker && layout->workers > 1 ? 1 : 0;
	case PSD_PATTERNS: break;
	}
	return 0;
}

unsigned psd_payload_receivers(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from)
{
	unsigned n_receivers = 0;

	for (unsigned to = 0; to < psd_layout_hosts(layout); to++)
		n_receivers += to != from && psd_payload_bytes_between(payload, layout, from, to) > 0;
	return n_receivers;
}

unsigned psd_payload_fan_in(const struct psd_payload *payload, const struct psd_layout *layout)
{
	const unsigned other_nodes = layout->nodes - 1;
	switch (payload->pattern) {
	case PSD_PATTERN_PUSH:
	case PSD_PATTERN_TO_ROOT: return layout->has_separate_servers ? layout->nodes : other_nodes;
	case PSD_PATTERN_PULL: return layout->has_separate_servers ? layout->shards : other_nodes;
	case PSD_PATTERN_BROADCAST: return other_nodes;
	case PSD_PATTERN_FROM_ROOT: return layout->has_separate_servers || other_nodes > 0 ? 1 : 0;
	case PSD_PATTERN_RING: return other_nodes > 0 ? 1 : 0;
	case PSD_PATTERNS: break;
	}
	return 0;
}

static unsigned pairs_into(const struct psd_payload *payload, const struct psd_layout *layout, unsigned node)
{
	const unsigned n_hosts = psd_layout_hosts(layout);
	unsigned n_pairs = 0;

	for (unsigned to = 0; to < n_hosts; to++)
		for (unsigned from = 0; from < n_hosts && psd_layout_node(layout, to) == node; from++)
			n_pairs += psd_layout_node(layout, from) != node &&
				   psd_payload_bytes_between(payload, layout, from, to) > 0;
	return n_pairs;
}

unsigned psd_payload_pairs_in(const struct psd_payload *payload, const struct psd_layout *layout)
{
	unsigned most = 0;

	for (unsigned node = 0; node < psd_layout_nodes(layout); node++) {
		const unsigned n_pairs = pairs_into(payload, layout, node);

		most = n_pairs > most ? n_pairs : most;
	}
	return most;
}
