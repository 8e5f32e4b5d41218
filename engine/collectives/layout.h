/* Placement of workers and shards on hosts, nodes and racks. Worker w is host w, on node w / workers_per_node. A shard
 * is on the first worker of each node, or, when separate, on a host of its own after the workers. Racks hold equally
 * many nodes of workers, in order, the last one perhaps fewer, and any number of servers. Pure functions, any thread.
 */
#ifndef PSD_LAYOUT_H
#define PSD_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

struct psd_layout {
	unsigned workers; /* >= 1 */
	unsigned nodes;	  /* worker nodes, ceil(workers / workers_per_node) */
	unsigned workers_per_node;
	unsigned workers_per_switch; /* workers behind each switch inside a node; 0: nodes have none */
	unsigned shards;	     /* >= 1 */
	bool has_separate_servers;
	unsigned nodes_per_rack;    /* nodes of workers below each leaf switch; 0: one switch connects all nodes */
	const uint64_t *servers_in; /* racks of the servers, in turn, borrowed; NULL: evenly over the workers' racks */
	unsigned n_servers_in;
};

/* The distance to another host. */
enum psd_reach {
	PSD_REACH_NEAR,	  /* on the same node, and behind the same switch if the node has switches */
	PSD_REACH_ACROSS, /* on the same node behind another switch */
	PSD_REACH_FAR,	  /* on another node, and in the same rack if there are racks */
	PSD_REACH_BEYOND, /* on a node in another rack */
	PSD_REACHES,
};

/* Returns a layout without switches and racks. separate_servers 0: one shard on each worker node. */
struct psd_layout psd_layout_make(unsigned workers, unsigned workers_per_node, unsigned separate_servers);
unsigned psd_layout_hosts(const struct psd_layout *layout);
bool psd_layout_is_worker(const struct psd_layout *layout, unsigned host);
/* True for the first worker of a node, which may exchange for all workers there. */
bool psd_layout_is_leader(const struct psd_layout *layout, unsigned host);
/* Number of other workers on a leader's node; 0 for other hosts. */
unsigned psd_layout_n_led(const struct psd_layout *layout, unsigned host);
bool psd_layout_is_shard(const struct psd_layout *layout, unsigned host);
unsigned psd_layout_shard_host(const struct psd_layout *layout, unsigned shard);
/* host: one with a shard. */
unsigned psd_layout_shard(const struct psd_layout *layout, unsigned host);
/* Numbers worker nodes first, then one node for each separate server. */
unsigned psd_layout_node(const struct psd_layout *layout, unsigned host);
unsigned psd_layout_nodes(const struct psd_layout *layout);
/* Number of workers on a node: workers_per_node, perhaps fewer on the last one, 0 on a server's. */
unsigned psd_layout_workers_on(const struct psd_layout *layout, unsigned node);

/* Returns the rack of separate server number s < servers where nodes of workers fill worker_racks racks: entry s of
 * servers_in, which is repeated, or, where it has none, a rack of workers. */
unsigned psd_layout_server_rack(unsigned s, unsigned servers, unsigned worker_racks, const uint64_t *servers_in,
				unsigned n_servers_in);
/* Number of racks with workers. Only where there are racks, like the next two. */
unsigned psd_layout_worker_racks(const struct psd_layout *layout);
/* Number of racks, empty ones included. */
unsigned psd_layout_racks(const struct psd_layout *layout);
unsigned psd_layout_rack(const struct psd_layout *layout, unsigned node);

/* Returns the number of a worker's switch, counted through all nodes. */
unsigned psd_layout_switch(const struct psd_layout *layout, unsigned worker);
enum psd_reach psd_layout_reach(const struct psd_layout *layout, unsigned from, unsigned to);

struct psd_range {
	uint64_t first;
	uint64_t elements;
};
/* Returns the i-th of n parts, i < n. Elements are cut at i * elements / n, so that parts differ by one element at
 * most.
 */
struct psd_range psd_range_part(uint64_t elements, unsigned n, unsigned i);
/* Returns the shard's part. */
struct psd_range psd_layout_part(const struct psd_layout *layout, uint64_t elements, unsigned shard);

/* ---- groups of hosts that execute a collective together ---- */

/* Rank i is host first + i * stride, i < n. */
struct psd_group {
	unsigned first;
	unsigned stride; /* >= 1 */
	unsigned n;
};

static inline unsigned psd_group_host(struct psd_group group, unsigned rank)
{
	return group.first + rank * group.stride;
}

/* host: a member. */
static inline unsigned psd_group_rank(struct psd_group group, unsigned host)
{
	return (host - group.first) / group.stride;
}

bool psd_group_has(struct psd_group group, unsigned host);
bool psd_group_equals(struct psd_group a, struct psd_group b);
/* True when a host is in both. */
bool psd_group_shares_host(struct psd_group a, struct psd_group b);

#endif
