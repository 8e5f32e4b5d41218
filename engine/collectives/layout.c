#include "engine/collectives/layout.h"

#include <assert.h>
#include <stddef.h>

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

void psd_layout_set_kinds(struct psd_layout *layout, const struct psd_kind_of_nodes *kinds, unsigned n_kinds)
{
	layout->kinds = kinds;
	layout->n_kinds = n_kinds;
	for (unsigned k = 0; k < n_kinds; k++) {
		layout->is_uneven = layout->is_uneven || kinds[k].workers != kinds[0].workers;
		layout->has_own_latencies = layout->has_own_latencies || kinds[k].more_latency_sec != 0.0;
		layout->has_own_rates = layout->has_own_rates || kinds[k].link_ratio != kinds[0].link_ratio;
	}
	if (!layout->is_uneven)
		return;
	layout->workers_per_node = 1;
	for (unsigned k = 0; k < n_kinds; k++)
		if (kinds[k].workers > layout->workers_per_node)
			layout->workers_per_node = kinds[k].workers;
	layout->workers = kinds[n_kinds - 1].end_worker;
	layout->nodes = kinds[n_kinds - 1].end_node;
	if (!layout->has_separate_servers)
		layout->shards = layout->nodes;
}

unsigned psd_layout_hosts(const struct psd_layout *layout)
{
	return layout->workers + (layout->has_separate_servers ? layout->shards : 0);
}

bool psd_layout_is_worker(const struct psd_layout *layout, unsigned host)
{
	return host < layout->workers;
}

bool psd_layout_is_leader(const struct psd_layout *layout, unsigned host)
{
	return psd_layout_is_worker(layout, host) && psd_layout_position(layout, host) == 0;
}

unsigned psd_layout_n_led(const struct psd_layout *layout, unsigned host)
{
	return psd_layout_is_leader(layout, host) ? psd_layout_workers_on(layout, psd_layout_node(layout, host)) - 1
						  : 0;
}

bool psd_layout_is_shard(const struct psd_layout *layout, unsigned host)
{
	return layout->has_separate_servers ? host >= layout->workers : psd_layout_position(layout, host) == 0;
}

unsigned psd_layout_shard_host(const struct psd_layout *layout, unsigned shard)
{
	return layout->has_separate_servers ? layout->workers + shard : psd_layout_first(layout, shard);
}

unsigned psd_layout_shard(const struct psd_layout *layout, unsigned host)
{
	return layout->has_separate_servers ? host - layout->workers : psd_layout_node(layout, host);
}

/* ---- the map of workers to nodes ---- */

/* Nodes with equal numbers of workers: those of a kind, or all. */
struct run_of_nodes {
	unsigned first_node, first_worker, per_node;
};

static struct run_of_nodes run_of_kind(const struct psd_layout *layout, unsigned kind)
{
	const struct psd_kind_of_nodes *before = kind > 0 ? &layout->kinds[kind - 1] : NULL;

	return (struct run_of_nodes){before ? before->end_node : 0, before ? before->end_worker : 0,
				     layout->kinds[kind].workers};
}

static struct run_of_nodes run_of_worker(const struct psd_layout *layout, unsigned worker)
{
	unsigned kind = 0;

	if (!layout->is_uneven)
		return (struct run_of_nodes){0, 0, layout->workers_per_node};
	while (kind + 1 < layout->n_kinds && worker >= layout->kinds[kind].end_worker)
		kind++;
	return run_of_kind(layout, kind);
}

unsigned psd_layout_node(const struct psd_layout *layout, unsigned host)
{
	if (host >= layout->workers)
		return layout->nodes + (host - layout->workers);
	if (!layout->is_uneven) /* most layouts are even, and simulations ask for each message */
		return host / layout->workers_per_node;
	const struct run_of_nodes run = run_of_worker(layout, host);

	return run.first_node + (host - run.first_worker) / run.per_node;
}

unsigned psd_layout_position(const struct psd_layout *layout, unsigned worker)
{
	if (!layout->is_uneven)
		return worker % layout->workers_per_node;
	const struct run_of_nodes run = run_of_worker(layout, worker);

	return (worker - run.first_worker) % run.per_node;
}

unsigned psd_layout_first(const struct psd_layout *layout, unsigned node)
{
	if (node >= layout->nodes)
		return layout->workers + (node - layout->nodes);
	if (!layout->is_uneven)
		return node * layout->workers_per_node;
	const struct run_of_nodes run = run_of_kind(layout, psd_layout_kind(layout, node));

	return run.first_worker + (node - run.first_node) * run.per_node;
}

unsigned psd_layout_nodes(const struct psd_layout *layout)
{
	return layout->nodes + (layout->has_separate_servers ? layout->shards : 0);
}

unsigned psd_layout_hosts_beside(const struct psd_layout *layout, unsigned host)
{
	const unsigned node = psd_layout_node(layout, host);

	return psd_layout_first(layout, node + 1) - psd_layout_first(layout, node);
}

unsigned psd_layout_workers_on(const struct psd_layout *layout, unsigned node)
{
	return node < layout->nodes ? psd_layout_first(layout, node + 1) - psd_layout_first(layout, node) : 0;
}

/* ---- kinds of nodes ---- */

unsigned psd_layout_kind(const struct psd_layout *layout, unsigned node)
{
	unsigned kind = 0;

	while (kind < layout->n_kinds && node >= layout->kinds[kind].end_node)
		kind++;
	return kind;
}

double psd_layout_link_ratio(const struct psd_layout *layout, unsigned node)
{
	const unsigned kind = psd_layout_kind(layout, node);

	return kind < layout->n_kinds ? layout->kinds[kind].link_ratio : 1.0;
}

static double more_latency_sec(const struct psd_layout *layout, unsigned node)
{
	const unsigned kind = psd_layout_kind(layout, node);

	return kind < layout->n_kinds ? layout->kinds[kind].more_latency_sec : 0.0;
}

double psd_layout_more_latency_sec(const struct psd_layout *layout, unsigned from_node, unsigned to_node)
{
	if (!layout->has_own_latencies)
		return 0.0;
	return (more_latency_sec(layout, from_node) + more_latency_sec(layout, to_node)) / 2.0;
}

double psd_layout_most_more_latency_sec(const struct psd_layout *layout)
{
	double most_sec = layout->n_kinds > 0 ? layout->kinds[0].more_latency_sec : 0.0;

	for (unsigned k = 1; k < layout->n_kinds; k++)
		most_sec = layout->kinds[k].more_latency_sec > most_sec ? layout->kinds[k].more_latency_sec : most_sec;
	return most_sec;
}

double psd_layout_slowest_link_ratio(const struct psd_layout *layout)
{
	double slowest = layout->n_kinds > 0 ? layout->kinds[0].link_ratio : 1.0;

	for (unsigned k = 1; k < layout->n_kinds; k++)
		slowest = layout->kinds[k].link_ratio < slowest ? layout->kinds[k].link_ratio : slowest;
	return slowest;
}

/* ---- racks ---- */

unsigned psd_layout_worker_racks(const struct psd_layout *layout)
{
	return (layout->nodes - 1) / layout->nodes_per_rack + 1;
}

unsigned psd_layout_racks(const struct psd_layout *layout)
{
	unsigned n_racks = psd_layout_worker_racks(layout);

	for (unsigned i = 0; i < layout->n_servers_in && layout->has_separate_servers && i < layout->shards; i++)
		n_racks = layout->servers_in[i] >= n_racks ? (unsigned)layout->servers_in[i] + 1 : n_racks;
	return n_racks;
}

unsigned psd_layout_rack(const struct psd_layout *layout, unsigned node)
{
	const unsigned s = node - layout->nodes; /* number of a separate server */

	if (node < layout->nodes)
		return node / layout->nodes_per_rack;
	return layout->n_servers_in > 0 ? (unsigned)layout->servers_in[s % layout->n_servers_in]
					: (unsigned)((uint64_t)s * psd_layout_worker_racks(layout) / layout->shards);
}

/* ---- distances ---- */

unsigned psd_layout_switch(const struct psd_layout *layout, unsigned worker)
{
	const unsigned n_of_node = (layout->workers_per_node - 1) / layout->workers_per_switch + 1;

	return psd_layout_node(layout, worker) * n_of_node +
	       psd_layout_position(layout, worker) / layout->workers_per_switch;
}

enum psd_reach psd_layout_reach(const struct psd_layout *layout, unsigned from, unsigned to)
{
	const unsigned from_node = psd_layout_node(layout, from), to_node = psd_layout_node(layout, to);

	if (from_node != to_node && layout->nodes_per_rack > 0)
		return psd_layout_rack(layout, from_node) == psd_layout_rack(layout, to_node) ? PSD_REACH_FAR
											      : PSD_REACH_BEYOND;
	if (from_node != to_node)
		return PSD_REACH_FAR;
	if (layout->workers_per_switch == 0 || from >= layout->workers)
		return PSD_REACH_NEAR;
	return psd_layout_switch(layout, from) == psd_layout_switch(layout, to) ? PSD_REACH_NEAR : PSD_REACH_ACROSS;
}

/* For q n + r elements the i-th cut is i q + i r / n, which cannot overflow for any n < 2^32. */
struct psd_range psd_range_part(uint64_t elements, unsigned n, unsigned i)
{
	const uint64_t q = elements / n, r = elements % n;

	if (r == 0) /* true for most tensors; divisions take longer than the rest of a simulated step */
		return (struct psd_range){i * q, q};
	return (struct psd_range){i * q + i * r / n, q + (i + UINT64_C(1)) * r / n - i * r / n};
}

struct psd_range psd_layout_part(const struct psd_layout *layout, uint64_t elements, unsigned shard)
{
	return psd_range_part(elements, layout->shards, shard);
}

unsigned psd_layout_parts(const struct psd_layout *layout, enum psd_owner owner)
{
	switch (owner) {
	case PSD_OWNER_ALL:
	case PSD_OWNER_ROOT:
	case PSD_OWNER_LEADERS: break;
	case PSD_OWNER_SHARDS: return layout->shards;
	case PSD_OWNER_WORKERS: return layout->workers;
	case PSD_OWNER_MEMBERS: return psd_layout_workers_on(layout, 0);
	}
	return 1;
}

unsigned psd_layout_part_host(const struct psd_layout *layout, enum psd_owner owner, unsigned part)
{
	return owner == PSD_OWNER_SHARDS ? psd_layout_shard_host(layout, part) : part;
}

bool psd_layout_is_first_with_part(const struct psd_layout *layout, enum psd_owner owner, unsigned host)
{
	return owner != PSD_OWNER_MEMBERS || host < psd_layout_parts(layout, owner);
}

struct psd_range psd_layout_owned(const struct psd_layout *layout, enum psd_owner owner, unsigned root, uint64_t n,
				  unsigned host)
{
	const struct psd_range all = {0, n}, none = {0, 0};

	switch (owner) {
	case PSD_OWNER_ALL: break;
	case PSD_OWNER_ROOT: return host == root ? all : none;
	case PSD_OWNER_LEADERS: return psd_layout_is_leader(layout, host) ? all : none;
	case PSD_OWNER_SHARDS:
		return psd_layout_is_shard(layout, host) ? psd_layout_part(layout, n, psd_layout_shard(layout, host))
							 : none;
	case PSD_OWNER_WORKERS:
		return psd_layout_is_worker(layout, host) ? psd_range_part(n, layout->workers, host) : none;
	case PSD_OWNER_MEMBERS: {
		const unsigned members = psd_layout_workers_on(layout, 0);

		return psd_layout_is_worker(layout, host) ? psd_range_part(n, members, host % members) : none;
	}
	}
	return all;
}

bool psd_group_has(struct psd_group group, unsigned host)
{
	return host >= group.first && (host - group.first) % group.stride == 0 && psd_group_rank(group, host) < group.n;
}

bool psd_group_equals(struct psd_group a, struct psd_group b)
{
	return a.first == b.first && a.stride == b.stride && a.n == b.n;
}

bool psd_group_shares_host(struct psd_group a, struct psd_group b)
{
	if (psd_group_equals(a, b))
		return a.n > 0;
	for (unsigned rank = 0; rank < a.n; rank++)
		if (psd_group_has(b, psd_group_host(a, rank)))
			return true;
	return false;
}
