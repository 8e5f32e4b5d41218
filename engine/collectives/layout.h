/* Who is where. Hosts: worker w is host w, on node w / workers_per_node;
 * parameter-server shards sit on the first worker of each node, or, when separate, on hosts of their own after the
 * workers. Pure functions, any thread. */
#ifndef PSD_LAYOUT_H
#define PSD_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

struct psd_layout {
	unsigned workers; /* >= 1 */
	unsigned nodes;	  /* worker nodes, ceil(workers / workers_per_node) */
	unsigned workers_per_node;
	unsigned workers_per_switch; /* of those that a node has for its devices; 0: it has none */
	unsigned shards;	     /* >= 1 */
	bool has_separate_servers;
};

/* Where another host is: what is on the way there. */
enum psd_reach {
	PSD_REACH_NEAR,	  /* on the same node, behind the same switch or without any */
	PSD_REACH_ACROSS, /* on the same node behind another switch */
	PSD_REACH_FAR,	  /* on another node */
	PSD_REACHES,
};

/* separate_servers 0: one shard on each worker node. Nodes have no switches. */
struct psd_layout psd_layout_make(unsigned workers, unsigned workers_per_node, unsigned separate_servers);
unsigned psd_layout_hosts(const struct psd_layout *layout);
bool psd_layout_is_worker(const struct psd_layout *layout, unsigned host);
/* The first worker of a node, who may speak for all of it. */
bool psd_layout_is_leader(const struct psd_layout *layout, unsigned host);
/* The other workers of its node; 0 for who is no leader. */
unsigned psd_layout_n_led(const struct psd_layout *layout, unsigned host);
bool psd_layout_is_shard(const struct psd_layout *layout, unsigned host);
unsigned psd_layout_shard_host(const struct psd_layout *layout, unsigned shard);
/* The shard on a host that has one. */
unsigned psd_layout_shard(const struct psd_layout *layout, unsigned host);
/* Worker nodes first, then one node for each separate server. */
unsigned psd_layout_node(const struct psd_layout *layout, unsigned host);
unsigned psd_layout_nodes(const struct psd_layout *layout);
/* Workers on a node: as many as a node has, the rest on the last of them, 0 on a server's. */
unsigned psd_layout_workers_on(const struct psd_layout *layout, unsigned node);

/* The switch of a worker, numbered from node to node; they fill one after the other. */
unsigned psd_layout_switch(const struct psd_layout *layout, unsigned worker);
enum psd_reach psd_layout_reach(const struct psd_layout *layout, unsigned from, unsigned to);

struct psd_range {
	uint64_t first;
	uint64_t elements;
};
/* The i-th of n parts, i < n: elements are cut at i * elements / n, so parts differ by one element at most. */
struct psd_range psd_range_part(uint64_t elements, unsigned n, unsigned i);
/* The shard's of as many parts as there are shards. */
struct psd_range psd_layout_part(const struct psd_layout *layout, uint64_t elements, unsigned shard);

#endif
