/* Collectives: the elements that each host sends to each other host in one transfer. Some collectives send all
 * messages at once, others step by step. Each collective is a table of functions (struct psd_collective) in a file of
 * its own. Simulation, estimate and real runs execute all of them with the same code. Pure functions, any thread. */
#ifndef PSD_COLLECTIVE_H
#define PSD_COLLECTIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/collectives/layout.h"

struct psd_collective;

/* Data of one transfer: a slice of a gradient or of parameters, or one worker's factors. */
struct psd_payload {
	const struct psd_collective *collective;
	uint64_t elements;
	unsigned value_bytes; /* bytes of one element */
	unsigned root;	      /* number of the root host; unused in collectives without a root */
	/* Members of a stepwise transfer: the hosts that execute its steps. If the group's n is 0, all workers are
	 * members. */
	struct psd_group group;
	/* Partial broadcast: number of hosts to which each worker sends in an iteration, less than all others. */
	unsigned peers;
	/* Partial broadcast: number of the iteration, plus 1. 0: the mean over all iterations, in which each worker
	 * sends an equal part of its values to every other one. */
	uint64_t round;
};

/* Traffic of one host or one node: bytes that it sends and receives. */
struct psd_traffic {
	uint64_t sent_bytes;
	uint64_t received_bytes;
};

/* Number of members of a stepwise transfer, and their distribution over nodes. In the order of rank, each node has
 * per_node of the n members, and the last node may have fewer; or the layout tells the node of each member. */
struct psd_members {
	unsigned n;
	unsigned per_node; /* number of members on a node; the largest one if nodes differ in it */
	/* layout whose nodes differ in the number of workers or in latency; its first n workers are the members, or the
	 * leaders of its first n nodes. Borrowed. NULL: all nodes are alike */
	const struct psd_layout *layout;
	bool are_leaders; /* the members are the leaders, the first workers of their nodes */
};

/* Messages of one member in one step. The elements that it receives are those that member `from` sends in the step
 * with the same number. */
struct psd_step {
	unsigned to;	       /* rank of the receiver; the member's own rank: it sends nothing in this step */
	unsigned from;	       /* rank of the sender; the member's own rank: it receives nothing in this step */
	struct psd_range sent; /* range of elements that are sent to `to` */
	/* the receiver adds the elements of `sent` to its own elements; false: they replace its own elements */
	bool adds;
};

/* Flow: all elements that a member sends to one other member during a collective, seen as one message, and all that it
 * receives from one other member. The two members may differ. */
struct psd_flow {
	unsigned to;		    /* rank of the receiver; the member's own rank: it sends nothing */
	uint64_t elements;	    /* number of elements sent to `to` */
	unsigned n_messages;	    /* number of messages that carry these elements */
	unsigned from;		    /* rank of the sender; the member's own rank: it receives nothing */
	uint64_t received_elements; /* number of elements received from `from` */
};

struct psd_processors;

/* Rates (bits per second) and latencies (seconds) of the links between members. Without switches in nodes, a message
 * between nodes passes only the nodes' links. With such switches it also passes the link of the device and the uplink
 * of its switch, in both nodes. */
struct psd_links {
	/* rate of a node's link, each direction, bits per second; of the slowest link if nodes differ */
	double far_bps;
	/* rate of a device's link inside its node, each direction, bits per second; infinity: transfers there take no
	 * time */
	double near_bps;
	/* rate of the uplink of a PCIe switch inside a node, each direction, bits per second; infinity: nodes have no
	 * such switches */
	double between_bps;
	double latency_sec;	 /* latency of a message between nodes, unless these have their own */
	double near_latency_sec; /* latency of a message inside a node */
	/* number of members behind one PCIe switch of a node; 0: nodes have no such switches */
	unsigned per_switch;
	unsigned per_rack; /* number of members below one leaf switch; 0: one switch connects all nodes */
	/* number of uplinks of a leaf switch; the number of the receiving node decides which one is used */
	unsigned spines;
	double uplink_bps; /* rate of each uplink of a leaf switch, bits per second */
	/* processor cores that sending and receiving need; NULL: no processor time is needed */
	const struct psd_processors *processors;
};

/* Processor cores that send and receive messages. A message uses at most one core at its sender and one at its
 * receiver. */
struct psd_processors {
	/* processor time for each bit of a message, at each of its two ends: between nodes (far), inside a node
	 * (near) */
	double far_bit_sec, near_bit_sec;
	/* number of cores of each member; with shared_nodes > 0, of all members on that many nodes together */
	double cores;
	/* number of consecutive nodes that share these cores; 0: each member has its own cores */
	unsigned shared_nodes;
};

struct psd_collective {
	const char *name; /* name of the collective in reports and traces */
	/* NULL: psd executes this collective itself. Otherwise a library (MPI or NCCL) executes it, and predictions
	 * assume the steps and sums of the all-reduce with this name. */
	const char *assumed;
	/* words for the assumed steps in a note to the user, such as "a ring's"; NULL if `assumed` is NULL */
	const char *predicted;

	/* ---- functions of collectives that send all at once; NULL in stepwise ones ---- */

	/* Collective with the same transfers in the opposite direction. If set, its functions are used with sender and
	 * receiver exchanged, and the functions below are NULL. If NULL, the functions below are set. */
	const struct psd_collective *reverse_of;
	/* Returns the range of the payload's elements that host `from` sends to host `to`; an empty range if there are
	 * none. */
	struct psd_range (*range)(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				  unsigned to);
	/* Returns the numbers of elements that a host sends to and receives from all other hosts. The fields of struct
	 * psd_traffic then count elements, not bytes. */
	struct psd_traffic (*host_elements)(const struct psd_payload *payload, const struct psd_layout *layout,
					    unsigned host);
	/* Returns the number of hosts from which host `to` receives elements. */
	unsigned (*senders)(const struct psd_payload *payload, const struct psd_layout *layout, unsigned to);
	/* Returns the number of hosts to which host `from` sends elements. */
	unsigned (*receivers)(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from);
	/* Returns the largest number of nodes that send to the same node. NULL: all messages stay inside nodes. */
	unsigned (*fan_in)(const struct psd_layout *layout);
	/* Returns the largest number of nodes to which the same node sends. NULL: all messages stay inside nodes. */
	unsigned (*fan_out)(const struct psd_layout *layout);
	bool has_root; /* one host, payload->root, sends or receives more than the others */
	/* The payload's elements are those of one worker. Ranges count the elements of all workers, in order of rank;
	 * behind the last worker they wrap around to the first. */
	bool is_of_all;
	/* Each host sends at most one message, and its NIC is free for the next transfer before this message has left.
	 * Messages from one host to another queue in the buffers of their connection, and connections share the
	 * link. */
	bool is_queued;
	bool rotates; /* the receivers of a host change from one iteration to the next (psd_payload.round) */
	/* The elements are divided: consecutive hosts receive consecutive ranges. False: all hosts receive the same
	 * range. */
	bool is_cut;

	/* ---- functions of stepwise all-reduces over the members; NULL in collectives that send all at once ---- */

	/* Returns the number of steps of the all-reduce. */
	unsigned (*steps)(uint64_t elements, struct psd_members members);
	/* Returns the messages of member `rank` in step `step`; rank < members.n, step < steps(elements, members). A
	 * member sends its message of a step as soon as its messages of earlier steps have left and all its messages
	 * of earlier steps have arrived. If the elements that it receives in a step overlap those that it sends in the
	 * step, it adds the received elements after its own message has left. */
	struct psd_step (*step)(uint64_t elements, struct psd_members members, unsigned rank, unsigned step);
	/* Sets *flow to flow i of member `rank`, counted from 0. Returns false if the member has no flow i. NULL: each
	 * step is a flow of its own. */
	bool (*flow)(uint64_t elements, struct psd_members members, unsigned rank, unsigned i, struct psd_flow *flow);
	/* Returns the seconds from the begin of the first message to the end of the last, if no other data move and
	 * all members begin together. NaN: out of memory. transfer_sec: result of psd_cost_loads_sec(), the time of
	 * the bytes on the busiest link. NULL: psd_step_times_sec() computes it. */
	double (*alone_sec)(const struct psd_payload *payload, struct psd_members members, double transfer_sec,
			    const struct psd_links *links);
	/* Returns a number of consecutive members after which the pattern of messages repeats. It is a multiple of
	 * per_rack, the number of members in a rack. 0: the pattern does not repeat, or the period is not known. NULL:
	 * the same as 0. */
	unsigned (*period)(struct psd_members members, unsigned per_rack);
	/* Returns the number of steps of which each waits for the one before. A size class's step_sec is charged for
	 * each of them. NULL: the number of all steps. */
	unsigned (*hops)(uint64_t elements, struct psd_members members);
	/* Returns the largest number of elements of a message. It is set only for collectives in which each member
	 * sends to the same member in all steps, and sends in each step what it received in the step before. NULL for
	 * all others. */
	uint64_t (*largest)(uint64_t elements, struct psd_members members);
	/* Steps on different links overlap in time. Therefore the flows of this collective are simulated instead of
	 * its steps, even in message fidelity. */
	bool overlaps;
	/* Any node may be the one that sends most. False: it is the first or the last node. */
	bool is_uneven;
	/* alone_sec may simulate every step of every member, which takes long with many members. Any node may be the
	 * one that sends most. */
	bool is_timed_by_steps;
};

/* Initialisers of a struct psd_collective that sends all its elements at once. The file that uses this macro defines
 * static functions with these names. */
#define PSD_AT_ONCE                                                                                                    \
	.range = range, .host_elements = host_elements, .senders = senders, .receivers = receivers, .fan_in = fan_in,  \
	.fan_out = fan_out

/* Push: every worker sends to each shard that shard's part of the slice. */
extern const struct psd_collective psd_push;
/* Pull: every shard sends its part of the slice to every worker. */
extern const struct psd_collective psd_pull;
extern const struct psd_collective psd_broadcast; /* every worker sends the whole slice to every other worker */
/* Every worker sends the whole slice to payload->peers others, each time the next ones: in iteration t rank r sends to
 * ranks r + 1 + (t * peers + k) mod (workers - 1), k < peers, modulo the number of workers. */
extern const struct psd_collective psd_partial_broadcast;
extern const struct psd_collective psd_to_root;	  /* every worker sends the whole slice to the root */
extern const struct psd_collective psd_from_root; /* the root sends the whole slice to every worker */

/* Push of one worker, the root: it sends to each shard that shard's part of the slice. */
extern const struct psd_collective psd_push_of_one;
/* Pull of one worker, the root: every shard sends its part of the slice to it. */
extern const struct psd_collective psd_pull_of_one;

/* Transfers of leaders. A leader is the first worker of a node and sends for all workers of the node. */
/* Every worker that is not a leader sends the whole slice to the leader of its node. */
extern const struct psd_collective psd_to_leader;
/* Every leader (first worker of a node) sends the whole slice to the other workers of its node. */
extern const struct psd_collective psd_from_leader;
/* Every worker sends the whole slice to the other workers of its node. */
extern const struct psd_collective psd_node_broadcast;
/* Every leader (first worker of a node) sends the slices of all workers of its node to each other leader. */
extern const struct psd_collective psd_leader_broadcast;
/* Every leader (first worker of a node) sends the slices of all workers of other nodes to each other worker of its
 * node. */
extern const struct psd_collective psd_hand_over;
/* Every leader (first worker of a node) sends to each shard that shard's part of the slice. */
extern const struct psd_collective psd_leader_push;
/* Every shard sends its part of the slice to every leader (first worker of a node). */
extern const struct psd_collective psd_leader_pull;

/* The all-reduces that psd executes itself, ROW(identifier in C, name in scenarios). */
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
/* entry i is row i of PSD_ALL_REDUCES */
extern const struct psd_collective *const psd_all_reduces[PSD_N_ALL_REDUCES];

/* Halves of an all-reduce: a reduce-scatter leaves each worker the sum of its part, an all-gather brings the parts
 * to all workers. */
extern const struct psd_collective psd_reduce_scatter, psd_all_gather;
/* Both halves inside each node (psd_node_...), and an all-reduce of each part between the workers that have this part,
 * one on each node. Nodes must have equal numbers of workers. */
extern const struct psd_collective psd_node_reduce_scatter, psd_node_all_gather, psd_across_nodes;

/* Names of sharded data-parallel training, ROW(identifier in C, name in scenarios). */
#define PSD_SHARDED(ROW) ROW(zero_1, "zero-1") ROW(zero_2, "zero-2") ROW(zero_3, "zero-3") ROW(zero_3, "fsdp")
enum { PSD_N_SHARDED = PSD_SHARDED(PSD_COUNT_ALL_REDUCE) };

/* The all-reduces that libraries execute, ROW(identifier in C, name in scenarios). */
#define PSD_LIBRARIES(ROW)                                                                                             \
	ROW(mpi, "mpi")                                                                                                \
	ROW(nccl, "nccl")                                                                                              \
	ROW(nccl_two_level, "nccl-two-level")
PSD_LIBRARIES(PSD_DECLARE_ALL_REDUCE)
enum { PSD_N_LIBRARIES = PSD_LIBRARIES(PSD_COUNT_ALL_REDUCE) };
/* entry i is row i of PSD_LIBRARIES */
extern const struct psd_collective *const psd_libraries[PSD_N_LIBRARIES];

/* ---- members and links ---- */

/* Returns the group of hosts that execute the payload's steps; all workers if payload->group is empty. */
struct psd_group psd_payload_group(const struct psd_payload *payload, const struct psd_layout *layout);
/* True if the host is a member of the payload's group, see psd_payload_group(). */
bool psd_payload_has_member(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host);
/* Returns the number of members of the payload's group, and their number per node. The group's stride must divide the
 * number of workers per node, or be a multiple of it. */
struct psd_members psd_payload_members(const struct psd_payload *payload, const struct psd_layout *layout);
/* Returns the number of the member's node. */
static inline unsigned psd_members_node(struct psd_members members, unsigned rank)
{
	return members.layout && !members.are_leaders ? psd_layout_node(members.layout, rank) : rank / members.per_node;
}
/* Returns the rank of the first member on a node, which may be the number of nodes. */
static inline unsigned psd_members_first(struct psd_members members, unsigned node)
{
	const unsigned first = members.layout && !members.are_leaders ? psd_layout_first(members.layout, node)
								      : node * members.per_node;

	return first < members.n ? first : members.n;
}
/* Returns the number of members before this one on its node. */
static inline unsigned psd_members_position(struct psd_members members, unsigned rank)
{
	return members.layout && !members.are_leaders ? psd_layout_position(members.layout, rank)
						      : rank % members.per_node;
}
/* Returns the number of members on a node. */
static inline unsigned psd_members_on(struct psd_members members, unsigned node)
{
	return psd_members_first(members, node + 1) - psd_members_first(members, node);
}
/* Returns the number of nodes on which the members are. */
unsigned psd_members_nodes(struct psd_members members);
/* True if the nodes have equal numbers of members, except the last one. */
static inline bool psd_members_are_even(struct psd_members members)
{
	return !members.layout || members.are_leaders || !members.layout->is_uneven;
}
/* Returns the group of the first members of each node. */
struct psd_members psd_members_leaders(struct psd_members members);
/* Returns the largest number of members on a node. */
unsigned psd_members_on_node(struct psd_members members);
/* Returns the number of levels of a binary tree with n members, >= 1. */
static inline unsigned psd_tree_levels(unsigned n)
{
	unsigned levels = 0;

	while (1u << levels < n)
		levels++;
	return levels;
}

/* Returns the number of the payload's members behind one PCIe switch of a node; 0: nodes have no such switches. */
unsigned psd_payload_per_switch(const struct psd_payload *payload, const struct psd_layout *layout);
/* Returns the number of the payload's members in one rack; 0: the network has no racks. */
unsigned psd_payload_per_rack(const struct psd_payload *payload, const struct psd_layout *layout);
/* Returns the distance between the members of ranks `from` and `to`: behind the same PCIe switch, on the same node, on
 * different nodes of one rack, or in different racks. */
enum psd_reach psd_members_reach(struct psd_members members, const struct psd_links *links, unsigned from, unsigned to);
/* Returns the distance between two members of a node from their positions there: behind the same PCIe switch or not. */
enum psd_reach psd_members_reach_inside(const struct psd_links *links, unsigned from, unsigned to);
/* Returns the seconds in which `bits` bits pass a link of this reach (distance) if nothing else uses the link, without
 * latency. */
double psd_links_busy_sec(const struct psd_links *links, enum psd_reach reach, double bits);
/* Returns the latency of a message over this reach (distance), seconds. */
double psd_links_latency_sec(const struct psd_links *links, enum psd_reach reach);
/* Returns the seconds in which `bits` bits pass from one member to another if nothing else uses the links, without
 * latency. Nodes of the members' layout have their own rates. */
double psd_members_busy_sec(struct psd_members members, const struct psd_links *links, unsigned from, unsigned to,
			    double bits);
/* Returns the latency of a message between two members, seconds. */
double psd_members_latency_sec(struct psd_members members, const struct psd_links *links, unsigned from, unsigned to);
/* Returns the largest latency of a message between two nodes of the members, seconds. */
double psd_members_most_latency_sec(struct psd_members members, const struct psd_links *links);

/* Returns the payload with ratio * elements elements, rounded up; 0 < ratio <= 1. The result has at least as many
 * elements as there are shards, and as there are workers, so that each of them has a part. A payload with no more
 * elements than that is returned unchanged. */
struct psd_payload psd_payload_scaled(const struct psd_payload *payload, const struct psd_layout *layout, double ratio);

/* ---- steps ---- */

/* Returns the messages of one host in one step of the payload, as psd_collective.step() does. In the result, `to` and
 * `from` are host numbers instead of ranks. */
struct psd_step psd_payload_step(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host,
				 unsigned step);
/* True if the elements that the host receives in this step overlap the elements that it sends in this step. */
bool psd_payload_is_staged(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host,
			   unsigned step);
/* Returns the number of the payload's steps; 0: the collective sends all at once. */
unsigned psd_payload_steps(const struct psd_payload *payload, const struct psd_layout *layout);
/* Returns the number of the payload's steps of which each waits for the one before, see psd_collective.hops. */
unsigned psd_payload_hops(const struct psd_payload *payload, const struct psd_layout *layout);
/* Returns the first step >= `step` in which the host sends elements (sends is true) or receives elements (sends is
 * false). psd_payload_steps(): there is no such step. */
unsigned psd_payload_next_step(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host,
			       unsigned step, bool sends);
/* Returns the seconds of a stepwise payload if no other data move, see psd_collective.alone_sec. The result is at
 * least transfer_sec. */
double psd_payload_alone_sec(const struct psd_payload *payload, const struct psd_layout *layout, double transfer_sec,
			     const struct psd_links *links);
/* Sets *flow to flow i of member `rank`, see psd_collective.flow. It also works for collectives whose `flow` is
 * NULL. */
bool psd_payload_rank_flow(const struct psd_payload *payload, struct psd_members members, unsigned rank, unsigned i,
			   struct psd_flow *flow);
/* The same as psd_payload_rank_flow(), but `host` and the numbers in *flow are host numbers instead of ranks. */
bool psd_payload_flow(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host, unsigned i,
		      struct psd_flow *flow);

/* ---- bytes ---- */

/* Returns the range of elements that host `from` sends to host `to`; it is empty if `from` sends nothing. Only for
 * collectives that send all at once. */
struct psd_range psd_payload_range(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				   unsigned to);
/* Returns the bytes that host `from` sends to host `to`, in all steps together; 0: none. The hosts must differ. */
uint64_t psd_payload_bytes_between(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				   unsigned to);
/* Returns the bytes that worker `from` sends to hosts `to` to `to` + n - 1 together. These hosts must all be workers,
 * or must all have shards, and must not include `from`. Only for collectives that send all at once. */
uint64_t psd_payload_bytes_to_run(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				  unsigned to, unsigned n);
/* Returns the bytes of one payload that a rack sends to all other racks, and receives from them. */
struct psd_traffic psd_payload_rack_traffic(const struct psd_payload *payload, const struct psd_layout *layout,
					    unsigned rack);
/* Returns the bytes of one payload that a node sends to all other nodes, and receives from them. */
struct psd_traffic psd_payload_node_traffic(const struct psd_payload *payload, const struct psd_layout *layout,
					    unsigned node);
/* False if some other node surely has at least as much traffic of the payload as this node, so that a search for the
 * busiest node may skip this one. */
bool psd_payload_may_be_busiest(const struct psd_payload *payload, const struct psd_layout *layout, unsigned node);
/* Returns the number of elements that the busiest worker sends to other workers of its node, or receives from them;
 * the larger of both. */
double psd_payload_local_elements(const struct psd_payload *payload, const struct psd_layout *layout);
/* Numbers of elements that pass the busiest links inside a node, in the direction with more elements: the link of a
 * worker, and the uplink of a switch. Elements on the way to other nodes, or from them, are included. */
struct psd_inside {
	double worker_elements, switch_elements;
};
/* Returns the numbers of struct psd_inside for a payload. Only for layouts in which nodes have switches. */
struct psd_inside psd_payload_inside(const struct psd_payload *payload, const struct psd_layout *layout);

/* ---- numbers of hosts and nodes ---- */

/* Returns the number of hosts that send more than 0 bytes to host `to`. Only for collectives that send all at once. */
unsigned psd_payload_senders(const struct psd_payload *payload, const struct psd_layout *layout, unsigned to);
/* Returns the number of hosts to which host `from` sends more than 0 bytes. Only for collectives that send all at
 * once. */
unsigned psd_payload_receivers(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from);
/* Returns the number of hosts, `from` included, that send to host `to` over the same kind of link as `from`. If `from`
 * and `to` are on one node, these are the senders on this node; otherwise they are the senders on other nodes. */
unsigned psd_payload_senders_beside(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				    unsigned to);
/* Returns the number of hosts, `to` included, that receive from host `from` over the same kind of link as `to`. If
 * both are on one node, these are the receivers on this node; otherwise they are the receivers on other nodes. */
unsigned psd_payload_receivers_beside(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				      unsigned to);
/* Returns the largest number of nodes that send to the same node at the same time, which causes incast. */
unsigned psd_payload_fan_in(const struct psd_payload *payload, const struct psd_layout *layout);
/* Returns the largest number of pairs of hosts that send to the same node at the same time. A pair is a sender on
 * another node and a receiver on this node. */
unsigned psd_payload_pairs_in(const struct psd_payload *payload, const struct psd_layout *layout);

#endif
