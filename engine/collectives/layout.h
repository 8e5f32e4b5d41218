/* Placement of workers and shards on hosts, nodes and racks. Worker w is host w, on node w / workers_per_node. A shard
 * is on the first worker of each node, or, when separate, on a host of its own after the workers. Racks hold equally
 * many nodes of workers, in order, the last one perhaps fewer, and any number of servers. Pure functions, any thread.
 */
#ifndef PSD_LAYOUT_H
#define PSD_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

/* Numbers that decide on which host and node each worker and shard is. */
struct psd_layout {
	unsigned workers; /* total number of workers, >= 1 */
	unsigned nodes;	  /* number of worker nodes, ceil(workers / workers_per_node) */
	unsigned workers_per_node;
	unsigned workers_per_switch; /* number of workers behind each switch inside a node; 0: nodes have no switches */
	unsigned shards;	     /* number of shards of a parameter server, >= 1 */
	bool has_separate_servers;   /* each shard is on a host and node of its own; false: shards are on workers */
	unsigned nodes_per_rack; /* number of worker nodes below each leaf switch; 0: one switch connects all nodes */
	const uint64_t *servers_in; /* rack of each server, repeated; borrowed. NULL: evenly over the workers' racks */
	unsigned n_servers_in;	    /* number of entries of servers_in */
};

/* Distance from one host to another. */
enum psd_reach {
	PSD_REACH_NEAR,	  /* on the same node, and behind the same switch if the node has switches */
	PSD_REACH_ACROSS, /* on the same node, behind another switch */
	PSD_REACH_FAR,	  /* on another node; in the same rack if the network has racks */
	PSD_REACH_BEYOND, /* on a node of another rack */
	PSD_REACHES,
};

/* Makes a layout without switches and racks. separate_servers: number of server nodes; 0: one shard on each worker
 * node. */
struct psd_layout psd_layout_make(unsigned workers, unsigned workers_per_node, unsigned separate_servers);
/* Returns the number of hosts: workers, and separate servers if there are any. */
unsigned psd_layout_hosts(const struct psd_layout *layout);
/* True if the host is a worker. */
bool psd_layout_is_worker(const struct psd_layout *layout, unsigned host);
/* True for the leader of a node: its first worker, which may exchange for all workers there. */
bool psd_layout_is_leader(const struct psd_layout *layout, unsigned host);
/* Number of other workers on a leader's node; 0 for other hosts. */
unsigned psd_layout_n_led(const struct psd_layout *layout, unsigned host);
/* True if a shard is on the host. */
bool psd_layout_is_shard(const struct psd_layout *layout, unsigned host);
/* Returns the number of the host on which the shard is. */
unsigned psd_layout_shard_host(const struct psd_layout *layout, unsigned shard);
/* Number of the shard on a host, which must have one. */
unsigned psd_layout_shard(const struct psd_layout *layout, unsigned host);
/* Number of a host's node. Worker nodes come first, then one node for each separate server. */
unsigned psd_layout_node(const struct psd_layout *layout, unsigned host);
/* Returns the number of nodes, those of separate servers included. */
unsigned psd_layout_nodes(const struct psd_layout *layout);
/* Number of workers on a node: workers_per_node, perhaps fewer on the last worker node, and 0 on the node of a separate
 * server. */
unsigned psd_layout_workers_on(const struct psd_layout *layout, unsigned node);

/* Returns the rack of separate server number s < servers where the workers' nodes fill worker_racks racks. It is entry
 * s modulo n_servers_in of servers_in; without entries, a rack of workers. */
unsigned psd_layout_server_rack(unsigned s, unsigned servers, unsigned worker_racks, const uint64_t *servers_in,
				unsigned n_servers_in);
/* Number of racks with workers. Only for layouts with racks, as the next two functions. */
unsigned psd_layout_worker_racks(const struct psd_layout *layout);
/* Number of racks, including empty ones. */
unsigned psd_layout_racks(const struct psd_layout *layout);
/* Number of a node's rack. */
unsigned psd_layout_rack(const struct psd_layout *layout, unsigned node);

/* Number of a worker's switch, counted over all nodes. */
unsigned psd_layout_switch(const struct psd_layout *layout, unsigned worker);
/* Returns the distance between two hosts. */
enum psd_reach psd_layout_reach(const struct psd_layout *layout, unsigned from, unsigned to);

/* Range of elements: `elements` of them, from number `first` on. */
struct psd_range {
	uint64_t first;
	uint64_t elements;
};
/* Returns part i (i < n) of the elements, which are cut into n nearly equal parts. Part i begins at element i *
 * elements / n, so the lengths of two parts differ by 1 at most. */
struct psd_range psd_range_part(uint64_t elements, unsigned n, unsigned i);
/* Returns the range of the elements that this shard updates. */
struct psd_range psd_layout_part(const struct psd_layout *layout, uint64_t elements, unsigned shard);

/* ---- groups of hosts that execute a collective together ---- */

/* Group of hosts: rank i is host first + i * stride, i < n. */
struct psd_group {
	unsigned first;
	unsigned stride; /* difference between the hosts of consecutive ranks, >= 1 */
	unsigned n;
};

/* Returns the number of the host with this rank in the group. */
static inline unsigned psd_group_host(struct psd_group group, unsigned rank)
{
	return group.first + rank * group.stride;
}

/* Rank of a host in the group, of which it must be a member. */
static inline unsigned psd_group_rank(struct psd_group group, unsigned host)
{
	return (host - group.first) / group.stride;
}

/* True if the host is a member of the group. */
bool psd_group_has(struct psd_group group, unsigned host);
/* True if both groups have the same first, stride and n. */
bool psd_group_equals(struct psd_group a, struct psd_group b);
/* True if some host is in both groups. */
bool psd_group_shares_host(struct psd_group a, struct psd_group b);

#endif
