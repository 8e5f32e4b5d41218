/* Placement of workers and shards on hosts, nodes and racks. Worker w is host w; nodes have consecutive workers, in
 * order. All nodes have workers_per_node workers, and the last one may have fewer; or each kind of nodes has its own
 * number. A shard is on the first worker of each node. With separate servers, each shard is on a host of its own
 * instead; these hosts have the numbers after the workers. Racks have equal numbers of worker nodes, in order; the last
 * rack may have fewer. A rack may have any number of servers. Pure functions, any thread. */
#ifndef PSD_LAYOUT_H
#define PSD_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

/* Kind of worker nodes: consecutive nodes with equal devices, batches and links. */
struct psd_kind_of_nodes {
	unsigned end_node;   /* number after its last node */
	unsigned end_worker; /* number after its last worker */
	unsigned workers;    /* number of workers on each of its nodes; read only if psd_layout.is_uneven */
	unsigned group;	     /* number of its entry in the scenario's groups, from 0 */
	/* latency of a message between two of its nodes, minus that between two nodes of the cluster; seconds */
	double more_latency_sec;
	double link_ratio; /* rate of the link of one of its nodes, divided by the rate of the cluster's links */
};

/* Numbers of hosts, nodes, shards and racks, from which the placement follows. */
struct psd_layout {
	unsigned workers;	   /* total number of workers, >= 1 */
	unsigned nodes;		   /* number of worker nodes */
	unsigned workers_per_node; /* number of workers on a node; the largest one if the kinds differ in it */
	/* number of workers behind each PCIe switch of a node; 0: nodes have no such switches */
	unsigned workers_per_switch;
	unsigned shards; /* number of shards of a parameter server, >= 1 */
	/* each shard is on a host of its own, on a node of its own; false: shards are on workers */
	bool has_separate_servers;
	unsigned nodes_per_rack; /* number of worker nodes below each leaf switch; 0: one switch connects all nodes */
	/* Server s is in rack servers_in[s % n_servers_in]; borrowed. NULL: servers are spread evenly over the racks
	 * of workers. */
	const uint64_t *servers_in;
	unsigned n_servers_in; /* number of entries of servers_in */
	/* kinds of worker nodes, in the order of the nodes, n_kinds entries; borrowed */
	const struct psd_kind_of_nodes *kinds;
	unsigned n_kinds; /* 0: all nodes are of one kind */
	/* the kinds differ in the number of workers on a node, which is psd_kind_of_nodes.workers */
	bool is_uneven;
	bool has_own_latencies; /* psd_kind_of_nodes.more_latency_sec of some kind is not 0 */
	bool has_own_rates;	/* the kinds differ in psd_kind_of_nodes.link_ratio */
};

/* Distance from one host to another. */
enum psd_reach {
	PSD_REACH_NEAR,	  /* on the same node, and behind the same switch if the node has switches */
	PSD_REACH_ACROSS, /* on the same node, behind another PCIe switch */
	PSD_REACH_FAR,	  /* on another node; in the same rack if the network has racks */
	PSD_REACH_BEYOND, /* on a node of another rack */
	PSD_REACHES,
};

/* Makes a layout without switches inside nodes and without racks. separate_servers: number of server nodes; 0: one
 * shard on each worker node. */
struct psd_layout psd_layout_make(unsigned workers, unsigned workers_per_node, unsigned separate_servers);
/* Gives a layout of psd_layout_make() kinds of nodes, in the order of the nodes; borrowed. Kinds that differ in their
 * number of workers on a node determine the numbers of workers, nodes, and shards on workers. */
void psd_layout_set_kinds(struct psd_layout *layout, const struct psd_kind_of_nodes *kinds, unsigned n_kinds);
/* Returns the number of hosts: workers, and separate servers if there are any. */
unsigned psd_layout_hosts(const struct psd_layout *layout);
/* True if the host is a worker. */
bool psd_layout_is_worker(const struct psd_layout *layout, unsigned host);
/* True if the host is the leader of its node: the first worker, which may send and receive for all workers of the
 * node. */
bool psd_layout_is_leader(const struct psd_layout *layout, unsigned host);
/* Returns the number of the other workers on the node if the host is a leader; 0 if it is not. */
unsigned psd_layout_n_led(const struct psd_layout *layout, unsigned host);
/* True if a shard is on the host. */
bool psd_layout_is_shard(const struct psd_layout *layout, unsigned host);
/* Returns the number of the host on which the shard is. */
unsigned psd_layout_shard_host(const struct psd_layout *layout, unsigned shard);
/* Returns the number of the shard on this host. The host must have a shard. */
unsigned psd_layout_shard(const struct psd_layout *layout, unsigned host);
/* Returns the number of a host's node. Worker nodes have the first numbers, then each separate server has a node. */
unsigned psd_layout_node(const struct psd_layout *layout, unsigned host);
/* Returns the number of the first host on a node. It may also be called with the number of nodes, for the number after
 * the last host. */
unsigned psd_layout_first(const struct psd_layout *layout, unsigned node);
/* Returns the number of workers before this one on its node. */
unsigned psd_layout_position(const struct psd_layout *layout, unsigned worker);
/* Returns the number of hosts on a host's node, itself included. */
unsigned psd_layout_hosts_beside(const struct psd_layout *layout, unsigned host);
/* Returns the number of nodes, those of separate servers included. */
unsigned psd_layout_nodes(const struct psd_layout *layout);
/* Returns the number of workers on a node. It is workers_per_node or its kind's number, but may be less on the last
 * worker node. It is 0 on the node of a separate server. */
unsigned psd_layout_workers_on(const struct psd_layout *layout, unsigned node);
/* Returns the number of a node's kind. n_kinds: the node is that of a separate server, or there are no kinds. */
unsigned psd_layout_kind(const struct psd_layout *layout, unsigned node);
/* Returns the rate of a node's link, divided by the rate of the cluster's links. */
double psd_layout_link_ratio(const struct psd_layout *layout, unsigned node);
/* Returns the latency of a message between two nodes, minus the cluster's: the mean of more_latency_sec of both nodes'
 * kinds, since each end of the way has half of the latency. Seconds. */
double psd_layout_more_latency_sec(const struct psd_layout *layout, unsigned from_node, unsigned to_node);
/* Returns the largest more_latency_sec of the kinds; 0 without kinds. */
double psd_layout_most_more_latency_sec(const struct psd_layout *layout);
/* Returns the smallest psd_layout_link_ratio() of a worker node. */
double psd_layout_slowest_link_ratio(const struct psd_layout *layout);

/* Returns the number of racks that have workers. Only for layouts with racks, as the next two functions. */
unsigned psd_layout_worker_racks(const struct psd_layout *layout);
/* Returns the number of all racks, including racks of servers alone and empty racks. */
unsigned psd_layout_racks(const struct psd_layout *layout);
/* Returns the number of the rack in which the node is. */
unsigned psd_layout_rack(const struct psd_layout *layout, unsigned node);

/* Returns the number of the worker's PCIe switch; switches are numbered over all nodes. Only if nodes have
 * switches. */
unsigned psd_layout_switch(const struct psd_layout *layout, unsigned worker);
/* Returns the distance between two hosts. */
enum psd_reach psd_layout_reach(const struct psd_layout *layout, unsigned from, unsigned to);

/* Range of elements: numbers `first` to `first` + `elements` - 1. */
struct psd_range {
	uint64_t first;
	uint64_t elements;
};
/* Returns part i < n of `elements` elements that are divided into n nearly equal parts. Part i begins at element
 * floor(i * elements / n), so two parts differ by at most 1 in length. */
struct psd_range psd_range_part(uint64_t elements, unsigned n, unsigned i);
/* Returns the part of `elements` elements that this shard keeps and updates. */
struct psd_range psd_layout_part(const struct psd_layout *layout, uint64_t elements, unsigned shard);

/* Division of values among hosts. */
enum psd_owner {
	PSD_OWNER_ALL,	   /* each host has all values */
	PSD_OWNER_ROOT,	   /* the root has all values, other hosts have none */
	PSD_OWNER_LEADERS, /* each leader (first worker of a node) has all values, other hosts have none */
	PSD_OWNER_SHARDS,  /* each shard has its part, other hosts have none */
	PSD_OWNER_WORKERS, /* each worker has its part, other hosts have none */
	PSD_OWNER_MEMBERS, /* each worker of a node has its part, every full node all parts; other hosts have none */
};
/* Returns the number of parts into which this owner divides values; 1: the values are not divided. */
unsigned psd_layout_parts(const struct psd_layout *layout, enum psd_owner owner);
/* Returns the first host that has part `part` < psd_layout_parts(). Only for owners with parts. */
unsigned psd_layout_part_host(const struct psd_layout *layout, enum psd_owner owner, unsigned part);
/* True unless an earlier host has the same part, as on each node by PSD_OWNER_MEMBERS. Only for owners with parts. */
bool psd_layout_is_first_with_part(const struct psd_layout *layout, enum psd_owner owner, unsigned host);
/* Returns the range that a host has of n values. root: number of the root. */
struct psd_range psd_layout_owned(const struct psd_layout *layout, enum psd_owner owner, unsigned root, uint64_t n,
				  unsigned host);

/* ---- groups of hosts that execute a collective together ---- */

/* Group of n hosts: the host of rank i is first + i * stride. */
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

/* Returns the rank of a host in the group. The host must be a member. */
static inline unsigned psd_group_rank(struct psd_group group, unsigned host)
{
	return (host - group.first) / group.stride;
}

/* True if the host is a member of the group. */
bool psd_group_has(struct psd_group group, unsigned host);
/* True if both groups have the same first, stride and n. */
bool psd_group_equals(struct psd_group a, struct psd_group b);
/* True if at least one host is in both groups. */
bool psd_group_shares_host(struct psd_group a, struct psd_group b);

#endif
