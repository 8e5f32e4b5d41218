/* Who is where, and who sends how much to whom. Hosts: worker w is host w, on node w / workers_per_node;
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
	unsigned shards; /* >= 1 */
	bool has_separate_servers;
};

/* separate_servers 0: one shard on each worker node. */
struct psd_layout psd_layout_make(unsigned workers, unsigned workers_per_node, unsigned separate_servers);
unsigned psd_layout_hosts(const struct psd_layout *layout);
bool psd_layout_is_worker(const struct psd_layout *layout, unsigned host);
bool psd_layout_is_shard(const struct psd_layout *layout, unsigned host);
unsigned psd_layout_shard_host(const struct psd_layout *layout, unsigned shard);
/* The shard on a host that has one. */
unsigned psd_layout_shard(const struct psd_layout *layout, unsigned host);
/* Worker nodes first, then one node for each separate server. */
unsigned psd_layout_node(const struct psd_layout *layout, unsigned host);
unsigned psd_layout_nodes(const struct psd_layout *layout);

/* How the payload of one operation spreads. "payload" is the tensor slice, or one worker's factors. */
enum psd_pattern {
	PSD_PATTERN_PUSH,      /* every worker to every shard: that shard's part of the slice */
	PSD_PATTERN_PULL,      /* every shard to every worker: its part */
	PSD_PATTERN_BROADCAST, /* every worker to every other worker: all of it */
	PSD_PATTERN_TO_ROOT,   /* every worker to the root: all of it */
	PSD_PATTERN_FROM_ROOT, /* the root to every worker: all of it */
	PSD_PATTERN_RING,      /* all-reduce over the workers in rank order */
	PSD_PATTERNS
};

struct psd_payload {
	enum psd_pattern pattern;
	uint64_t elements;
	unsigned value_bytes; /* of one element */
	unsigned root;	      /* host */
};

struct psd_range {
	uint64_t first;
	uint64_t elements;
};
/* Shard's part of so many elements: they are cut at shard * elements / shards, so parts differ by one element at most.
 */
struct psd_range psd_layout_part(const struct psd_layout *layout, uint64_t elements, unsigned shard);
/* The payload with this share of its elements, 0 < ratio <= 1: whole ones, and as many as it has parts, so that none of
 * them becomes empty. */
struct psd_payload psd_payload_scaled(const struct psd_payload *payload, const struct psd_layout *layout, double ratio);
/* Bytes of shard's part of a slice. */
uint64_t psd_payload_part_bytes(const struct psd_payload *payload, const struct psd_layout *layout, unsigned shard);
/* Bytes that host `from` sends to host `to` != from; 0 when it sends none. Ring: 2(P-1)/P of the payload to the next
 * worker. */
uint64_t psd_payload_bytes_between(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				   unsigned to);
struct psd_traffic {
	uint64_t sent_bytes;
	uint64_t received_bytes;
};
/* Bytes a node sends to and receives from other nodes for one payload: the sum of psd_payload_bytes_between() over
 * them. */
struct psd_traffic psd_payload_node_traffic(const struct psd_payload *payload, const struct psd_layout *layout,
					    unsigned node);
/* Number of hosts that send `to` more than 0 bytes. */
unsigned psd_payload_senders(const struct psd_payload *payload, const struct psd_layout *layout, unsigned to);
/* Number of hosts that `from` sends more than 0 bytes. */
unsigned psd_payload_receivers(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from);
/* The largest number of nodes that send to one node at a time: what incast depends on. */
unsigned psd_payload_fan_in(const struct psd_payload *payload, const struct psd_layout *layout);
/* The largest number of pairs of hosts over which other nodes send to one node at a time. */
unsigned psd_payload_pairs_in(const struct psd_payload *payload, const struct psd_layout *layout);

#endif
