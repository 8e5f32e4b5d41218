/* Collectives: which elements go from which host to which in one transfer, either all at once or step by step. Each one
 * is a row of functions in a file of its own. Simulation, estimate and real runs execute any of them with the same
 * code. Pure functions, any thread. */
#ifndef PSD_COLLECTIVE_H
#define PSD_COLLECTIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/collectives/layout.h"

struct psd_collective;

/* The content of one transfer: a slice of a tensor, or one worker's factors. */
struct psd_payload {
	const struct psd_collective *collective;
	uint64_t elements;
	unsigned value_bytes;	/* bytes of one element */
	unsigned root;		/* host */
	struct psd_group group; /* members that execute the steps; a group of 0 hosts means all workers */
};

struct psd_traffic {
	uint64_t sent_bytes;
	uint64_t received_bytes;
};

/* The members of a stepwise transfer in order of rank: per_node on each node, perhaps fewer on the last. */
struct psd_members {
	unsigned n;
	unsigned per_node;
};

/* One member's part in one step. The sender's step of the same number says which elements arrive, and whether the
 * receiver adds them to its own or replaces its own. */
struct psd_step {
	unsigned to;	       /* rank; own rank: sends nothing */
	unsigned from;	       /* rank; own rank: receives nothing */
	struct psd_range sent; /* elements that go to `to` */
	bool adds;	       /* the receiver of `sent` adds it to its own */
};

/* All that a member sends to one other member, and all that it receives from one. */
struct psd_flow {
	unsigned to;	   /* rank; own rank: sends nothing */
	uint64_t elements; /* sent to `to` */
	unsigned n_messages;
	unsigned from; /* rank; own rank: receives nothing */
	uint64_t received_elements;
};

struct psd_processors;

/* Rates and latencies of the links between two members. Where nodes have switches, a message that leaves a node also
 * passes the device's own link and its switch's uplink. */
struct psd_links {
	double far_bps;				 /* rate of a node's link */
	double near_bps;			 /* rate of a device's own link inside its node; infinity: free */
	double between_bps;			 /* rate of a switch's uplink */
	double latency_sec;			 /* between nodes */
	double near_latency_sec;		 /* inside a node */
	unsigned per_switch;			 /* members behind one switch; 0: nodes have none */
	unsigned per_rack;			 /* members below one leaf switch; 0: one switch connects all nodes */
	unsigned spines;			 /* uplinks of a leaf; the receiving node chooses one (D-mod-k) */
	double uplink_bps;			 /* rate of each of them */
	const struct psd_processors *processors; /* NULL: messages need none. Only psd_step_times_sec() reads it. */
};

/* The processors that move messages: at either end of a message one core at most. */
struct psd_processors {
	double far_bit_sec, near_bit_sec; /* seconds of one core per bit at either end: between nodes, inside a node */
	double cores;			  /* cores of each member; with shared_nodes, of all members on these nodes */
	unsigned shared_nodes;		  /* consecutive nodes that share the cores; 0: each member has its own */
};

struct psd_collective {
	const char *name; /* in reports and traces */
	/* The name of the all-reduce whose steps and sums this row has. Not NULL: a library outside of this program
	 * executes the collective, by steps that it does not tell. */
	const char *assumed;

	/* ---- all at once; NULL where there are steps ---- */

	/* A collective whose transfers this one makes in the opposite direction; its functions hold for both, so that
	 * those of this one are NULL. NULL: this one has functions of its own. */
	const struct psd_collective *reverse_of;
	/* The elements that go from one host to another, counted in the payload; empty when none do. */
	struct psd_range (*range)(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				  unsigned to);
	/* Elements that a host sends to and receives from all others, as bytes of one byte each. */
	struct psd_traffic (*host_elements)(const struct psd_payload *payload, const struct psd_layout *layout,
					    unsigned host);
	/* Number of hosts from which a host receives elements, and of hosts to which it sends some. */
	unsigned (*senders)(const struct psd_payload *payload, const struct psd_layout *layout, unsigned to);
	unsigned (*receivers)(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from);
	/* The largest number of nodes that send to one node, and that one node sends to. NULL: nothing leaves a node.
	 */
	unsigned (*fan_in)(const struct psd_layout *layout);
	unsigned (*fan_out)(const struct psd_layout *layout);
	bool has_root; /* one host sends or receives more than the others */
	bool is_cut;   /* consecutive hosts receive consecutive ranges; otherwise all receive the same */

	/* ---- step by step: an all-reduce over the members; NULL where all goes at once ---- */

	unsigned (*steps)(uint64_t elements, struct psd_members members);
	/* rank < members.n, step < steps(elements, members). A member begins a step's message when its earlier messages
	 * have left and all messages of its earlier steps have arrived. Elements that it adds in a step may overlap
	 * those that it sends: it then adds them after those have left. */
	struct psd_step (*step)(uint64_t elements, struct psd_members members, unsigned rank, unsigned step);
	/* The i-th of the flows that a member's messages add up to: false when there are fewer. NULL: each step is a
	 * flow. */
	bool (*flow)(uint64_t elements, struct psd_members members, unsigned rank, unsigned i, struct psd_flow *flow);
	/* Seconds from the first message to the last where nothing else moves, all members begin together and every
	 * node's link is alike; NaN when memory runs out. transfer_sec: seconds of the bytes alone on the busiest link,
	 * if nothing ever waits. NULL: psd_step_times_sec(). */
	double (*alone_sec)(const struct psd_payload *payload, struct psd_members members, double transfer_sec,
			    const struct psd_links *links);
	/* Number of members after which all repeats, a multiple of a rack's; NULL: none, or unknown. */
	unsigned (*period)(struct psd_members members, unsigned per_rack);
	bool is_uneven;		/* any node may send most; otherwise the first or the last node does */
	bool is_timed_by_steps; /* alone_sec may follow every member through every step; any node may send most */
};

extern const struct psd_collective psd_push;	  /* every worker sends each shard that shard's part of the slice */
extern const struct psd_collective psd_pull;	  /* every shard sends its part to every worker */
extern const struct psd_collective psd_broadcast; /* every worker sends the whole slice to every other worker */
extern const struct psd_collective psd_to_root;	  /* every worker sends the whole slice to the root */
extern const struct psd_collective psd_from_root; /* the root sends the whole slice to every worker */

/* Transfers through leaders, the first worker of each node. */
extern const struct psd_collective psd_to_leader;   /* every other worker sends the whole slice to its node's leader */
extern const struct psd_collective psd_from_leader; /* every leader sends the whole slice to the others of its node */
extern const struct psd_collective psd_leader_push; /* every leader sends each shard that shard's part of the slice */
extern const struct psd_collective psd_leader_pull; /* every shard sends its part to every leader */

/* The all-reduces that a scenario may name, one row each: identifier and name. */
#define PSD_ALL_REDUCES(ROW)                                                                                           \
	ROW(ring, "ring")                                                                                              \
	ROW(two_level, "two-level")                                                                                    \
	ROW(halving_doubling, "halving-doubling")                                                                      \
	ROW(recursive_doubling, "recursive-doubling")                                                                  \
	ROW(double_tree, "double-tree")                                                                                \
	ROW(torus, "torus")

#define PSD_DECLARE_ALL_REDUCE(identifier, name) extern const struct psd_collective psd_##identifier;
PSD_ALL_REDUCES(PSD_DECLARE_ALL_REDUCE)

#define PSD_COUNT_ALL_REDUCE(identifier, name) +1
enum { PSD_N_ALL_REDUCES = PSD_ALL_REDUCES(PSD_COUNT_ALL_REDUCE) };
extern const struct psd_collective *const psd_all_reduces[PSD_N_ALL_REDUCES]; /* in the order of the rows */

/* The all-reduces of libraries, one row each, beside this program's own. */
#define PSD_LIBRARIES(ROW)                                                                                             \
	ROW(mpi, "mpi")                                                                                                \
	ROW(nccl, "nccl")                                                                                              \
	ROW(nccl_two_level, "nccl-two-level")
PSD_LIBRARIES(PSD_DECLARE_ALL_REDUCE)
enum { PSD_N_LIBRARIES = PSD_LIBRARIES(PSD_COUNT_ALL_REDUCE) };
extern const struct psd_collective *const psd_libraries[PSD_N_LIBRARIES]; /* in the order of the rows */

/* ---- members and links ---- */

/* The hosts that execute the payload's steps. */
struct psd_group psd_payload_group(const struct psd_payload *payload, const struct psd_layout *layout);
bool psd_payload_has_member(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host);
/* The same hosts as collectives see them. A group's stride divides a node's workers, or is a multiple of them. */
struct psd_members psd_payload_members(const struct psd_payload *payload, const struct psd_layout *layout);
unsigned psd_members_nodes(struct psd_members members);
/* Members behind one switch of a node; 0: nodes have none. */
unsigned psd_payload_per_switch(const struct psd_payload *payload, const struct psd_layout *layout);
/* Members in one rack; 0: there are none. */
unsigned psd_payload_per_rack(const struct psd_payload *payload, const struct psd_layout *layout);
/* How far a member is from another. */
enum psd_reach psd_members_reach(struct psd_members members, const struct psd_links *links, unsigned from, unsigned to);
/* Seconds of these bits on links that nobody else uses, and the latency behind them. */
double psd_links_busy_sec(const struct psd_links *links, enum psd_reach reach, double bits);
double psd_links_latency_sec(const struct psd_links *links, enum psd_reach reach);

/* The payload with a share of its elements, rounded up, 0 < ratio <= 1. At least as many remain as it has parts, so
 * that no part becomes empty. */
struct psd_payload psd_payload_scaled(const struct psd_payload *payload, const struct psd_layout *layout, double ratio);

/* ---- steps ---- */

/* psd_collective.step with hosts instead of ranks. */
struct psd_step psd_payload_step(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host,
				 unsigned step);
/* True when elements that a host receives in a step overlap those that it sends in it. */
bool psd_payload_is_staged(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host,
			   unsigned step);
/* Number of the payload's steps; 0: all at once. */
unsigned psd_payload_steps(const struct psd_payload *payload, const struct psd_layout *layout);
/* The first step from `step` on in which a host sends something, or, unless `sends`, receives something;
 * psd_payload_steps() when there is none. */
unsigned psd_payload_next_step(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host,
			       unsigned step, bool sends);
/* psd_collective.alone_sec of a stepwise payload; transfer_sec at least. */
double psd_payload_alone_sec(const struct psd_payload *payload, const struct psd_layout *layout, double transfer_sec,
			     const struct psd_links *links);
/* psd_collective.flow, also where the collective has none. */
bool psd_payload_rank_flow(const struct psd_payload *payload, struct psd_members members, unsigned rank, unsigned i,
			   struct psd_flow *flow);
/* The same with hosts instead of ranks. */
bool psd_payload_flow(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host, unsigned i,
		      struct psd_flow *flow);

/* ---- bytes ---- */

/* The elements that go from one host to another all at once, counted in the payload; empty when none do. */
struct psd_range psd_payload_range(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				   unsigned to);
/* Bytes that host `from` sends to host `to` != from, in all steps together; 0 when it sends none. */
uint64_t psd_payload_bytes_between(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				   unsigned to);
/* Bytes that a worker sends to n other consecutive hosts from `to` on; all at once, workers and shards alike. */
uint64_t psd_payload_bytes_to_run(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				  unsigned to, unsigned n);
/* Bytes that a rack sends to and receives from other racks, all at once. */
struct psd_traffic psd_payload_rack_traffic(const struct psd_payload *payload, const struct psd_layout *layout,
					    unsigned rack);
/* Bytes a node sends to and receives from other nodes for one payload: the sum of psd_payload_bytes_between() over
 * them. */
struct psd_traffic psd_payload_node_traffic(const struct psd_payload *payload, const struct psd_layout *layout,
					    unsigned node);
/* False where another node's traffic is at least as large. */
bool psd_payload_may_be_busiest(const struct psd_payload *payload, const struct psd_layout *layout, unsigned node);
/* Elements of the busiest worker to workers of its node, or from them. */
double psd_payload_local_elements(const struct psd_payload *payload, const struct psd_layout *layout);
/* Elements through the busiest worker's own link and through the busiest uplink of a switch, one way, where nodes have
 * switches. Both include traffic between nodes. */
struct psd_inside {
	double worker_elements, switch_elements;
};
struct psd_inside psd_payload_inside(const struct psd_payload *payload, const struct psd_layout *layout);

/* ---- numbers of hosts and nodes ---- */

/* Number of hosts that send `to` more than 0 bytes; all at once. */
unsigned psd_payload_senders(const struct psd_payload *payload, const struct psd_layout *layout, unsigned to);
/* Number of hosts that `from` sends more than 0 bytes; all at once. */
unsigned psd_payload_receivers(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from);
/* Only those on other nodes, or, if `from` and `to` share a node, those on it. */
unsigned psd_payload_senders_beside(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				    unsigned to);
unsigned psd_payload_receivers_beside(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				      unsigned to);
/* The largest number of nodes that send to one node at a time: the cause of incast. */
unsigned psd_payload_fan_in(const struct psd_payload *payload, const struct psd_layout *layout);
/* The largest number of pairs of hosts over which other nodes send to one node at a time. */
unsigned psd_payload_pairs_in(const struct psd_payload *payload, const struct psd_layout *layout);

#endif
