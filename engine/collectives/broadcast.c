/* Broadcast: every worker sends the whole payload to every other worker or, in a partial one, to some that change with
 * the iteration. */
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

/* ---- partial ---- */

/* True if `to` is one of the workers to which `from` sends in the payload's iteration. Offsets 1 to workers - 1 take
 * turns, the same ones for all workers, so that each receives from as many as it sends to. */
static bool has_turn(const struct psd_payload *payload, unsigned workers, unsigned from, unsigned to)
{
	const uint64_t others = workers - 1, offset = (to + workers - from) % workers;
	const uint64_t first = (payload->round - 1) % others * payload->peers % others;

	return (offset - 1 + others - first) % others < payload->peers;
}

/* Mean number of elements in an iteration. Rounded so that a worker's receivers together have exactly its elements. */
static uint64_t mean_elements(const struct psd_payload *payload, unsigned workers, unsigned from, unsigned to)
{
	const uint64_t others = workers - 1, offset = (to + workers - from) % workers;
	const uint64_t all = payload->elements * payload->peers, rest = all % others;

	return all / others + rest * offset / others - rest * (offset - 1) / others;
}

static struct psd_range part_range(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				   unsigned to)
{
	if (from == to || !psd_layout_is_worker(layout, from) || !psd_layout_is_worker(layout, to))
		return (struct psd_range){0, 0};
	if (payload->round == 0)
		return (struct psd_range){0, mean_elements(payload, layout->workers, from, to)};
	return (struct psd_range){0, has_turn(payload, layout->workers, from, to) ? payload->elements : 0};
}

static struct psd_traffic part_host_elements(const struct psd_payload *payload, const struct psd_layout *layout,
					     unsigned host)
{
	const uint64_t elements = psd_layout_is_worker(layout, host) ? payload->peers * payload->elements : 0;

	return (struct psd_traffic){elements, elements};
}

static unsigned n_part_peers(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host)
{
	return payload->round == 0 || !psd_layout_is_worker(layout, host) ? n_peers(payload, layout, host)
									  : payload->peers;
}

const struct psd_collective psd_partial_broadcast = {
	.name = "partial broadcast",
	.range = part_range,
	.host_elements = part_host_elements,
	.senders = n_part_peers,
	.receivers = n_part_peers,
	.fan_in = fan_in, /* a bound */
	.rotates = true,
};
