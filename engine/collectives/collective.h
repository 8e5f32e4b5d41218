/* Collectives: which elements go from which host to which in one transfer, either all at once or step by step. Each
 * collective is a table of functions (struct psd_collective) in a file of its own. Simulation, estimate and real runs
 * execute any of them with the same code. Pure functions, any thread. */
#ifndef PSD_COLLECTIVE_H
#define PSD_COLLECTIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/collectives/layout.h"

struct psd_collective;

/* Data of one transfer: a slice of a tensor, or one worker's factors. */
struct psd_payload {
	const struct psd_collective *collective;
	uint64_t elements;
	unsigned value_bytes;	/* bytes of one element */
	unsigned root;		/* number of the root host, in collectives that have one */
	struct psd_group group; /* members that execute the steps; a group of 0 hosts means all workers */
};

/* Traffic of one host or of one node. */
struct psd_traffic {
	uint64_t sent_bytes;
	uint64_t received_bytes;
};

/* The members of a stepwise transfer in order of rank. Each node has per_node of the n members; the last node may have
 * fewer. */
struct psd_members {
	unsigned n;
	unsigned per_node;
};

/* Messages of one member in one step. The sender's struct psd_step of the same step number tells which elements arrive,
 * and whether they are added. */
struct psd_step {
	unsigned to;	       /* rank of the receiver; own rank: sends nothing */
	unsigned from;	       /* rank of the sender; own rank: receives nothing */
	struct psd_range sent; /* range of elements that are sent to `to` */
	/* the receiver adds the elements of `sent` to its own elements; false: they replace its own elements */
	bool adds;
};

/* Flow: all data that a member sends to one other member during a collective, and all data that it receives from one
 * member. */
struct psd_flow {
	unsigned to;		    /* rank of the receiver; own rank: sends nothing */
	uint64_t elements;	    /* number of elements sent to `to` */
	unsigned n_messages;	    /* number of messages that carry these elements */
	unsigned from;		    /* rank of the sender; own rank: receives nothing */
	uint64_t received_elements; /* number of elements received from `from` */
};

struct psd_processors;

/* Rates (bits per second) and latencies (seconds) of the links between two members. Where nodes have switches, a
 * message that leaves a node also passes the device's own link and its switch's uplink. */
struct psd_links {
	double far_bps;		 /* rate of the link between nodes */
	double near_bps;	 /* rate of a device's own link inside its node; infinity: takes no time */
	double between_bps;	 /* rate of the uplink of a switch inside a node */
	double latency_sec;	 /* latency of a message between nodes */
	double near_latency_sec; /* latency of a message inside a node */
	unsigned per_switch;	 /* number of members behind one switch of a node; 0: nodes have no switches */
	unsigned per_rack;	 /* number of members below one leaf switch; 0: one switch connects all nodes */
	unsigned spines;	 /* number of uplinks of a leaf switch; the receiving node decides which is used */
	double uplink_bps;	 /* rate of each uplink of a leaf switch */
	const struct psd_processors *processors; /* processors that messages need; NULL: none */
};

/* Processor cores that send and receive messages. A message uses at most one core at each of its two ends. */
struct psd_processors {
	/* seconds of one core per bit of a message, at each end; far: between nodes, near: inside a node */
	double far_bit_sec, near_bit_sec;
	/* number of cores of each member; if shared_nodes > 0, of all members on these nodes together */
	double cores;
	/* number of consecutive nodes that share the cores; 0: each member has cores of its own */
	unsigned shared_nodes;
};

struct psd_collective {
	const char *name; /* name of the collective in reports and traces */
	/* NULL: psd executes this collective itself. Otherwise a library (MPI or NCCL) executes it, and this is the
	 * name of the all-reduce whose steps and sums predictions assume for it. */
	const char *assumed;
	const char *predicted; /* words for the steps that predictions of a library take, "a ring's" */

	/* ---- all at once; NULL where there are steps ---- */

	/* Collective that makes the same transfers in the opposite direction. Its functions are used with sender and
	 * receiver exchanged, and the functions below are NULL. reverse_of is NULL where the functions below are
	 * set. */
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
	/* Returns the largest number of nodes that send to one node. NULL: nothing leaves a node. */
	unsigned (*fan_in)(const struct psd_layout *layout);
	/* Returns the largest number of nodes to which one node sends. NULL: nothing leaves a node. */
	unsigned (*fan_out)(const struct psd_layout *layout);
	bool has_root; /* one host sends or receives more than the others: the root */
	/* consecutive hosts receive consecutive ranges of elements; false: all hosts receive the same range */
	bool is_cut;

	/* ---- step by step: an all-reduce over the members; NULL where all goes at once ---- */

	/* Returns the number of steps of the all-reduce. */
	unsigned (*steps)(uint64_t elements, struct psd_members members);
	/* Returns the messages of member `rank` in step `step`; rank < members.n, step < steps(elements, members). A
	 * member begins a step's message when its earlier messages have left and all messages of its earlier steps have
	 * arrived. The elements that arrive in a step may overlap the elements that the member sends in this step. The
	 * member then adds them after its own message has left. */
	struct psd_step (*step)(uint64_t elements, struct psd_members members, unsigned rank, unsigned step);
	/* Sets *flow to flow number i (from 0) of a member. Returns false if the member has i flows or fewer. NULL:
	 * each step is a flow of its own. */
	bool (*flow)(uint64_t elements, struct psd_members members, unsigned rank, unsigned i, struct psd_flow *flow);
	/* Returns the seconds from the first message to the last, if no other data move, all members begin together and
	 * all nodes have equal links; NaN when memory runs out. transfer_sec: seconds of the bytes alone on the busiest
	 * link, if nothing ever waits. NULL: computed by psd_step_times_sec(). */
	double (*alone_sec)(const struct psd_payload *payload, struct psd_members members, double transfer_sec,
			    const struct psd_links *links);
	/* Returns the number of consecutive members after which the sequence of messages repeats: a multiple of
	 * per_rack, the number of members of a rack. 0: it never repeats, or this is unknown. NULL: as 0. */
	unsigned (*period)(struct psd_members members, unsigned per_rack);
	/* Returns the number of steps that wait for one another, for the costs per `step` of a size class. NULL: the
	 * number of all steps. */
	unsigned (*hops)(uint64_t elements, struct psd_members members);
	/* Returns the largest number of elements of a message, where each member sends a message to one and the same
	 * member in every step, and passes on in a step what arrived in the one before. NULL elsewhere. */
	uint64_t (*largest)(uint64_t elements, struct psd_members members);
	/* steps on different links overlap, so flows are simulated in message fidelity, too */
	bool overlaps;
	/* any node may be the one that sends most; false: the first or the last node sends most */
	bool is_uneven;
	/* alone_sec may compute every step of every member, which takes long for many members; and any node may be the
	 * one that sends most */
	bool is_timed_by_steps;
};

/* Initialisers of a struct psd_collective that sends all its elements at once. Its file defines static functions with
 * these names. */
#define PSD_AT_ONCE                                                                                                    \
	.range = range, .host_elements = host_elements, .senders = senders, .receivers = receivers, .fan_in = fan_in,  \
	.fan_out = fan_out

extern const struct psd_collective psd_push; /* push: every worker sends each shard that shard's part of the slice */
extern const struct psd_collective psd_pull; /* pull: every shard sends its part of the slice to every worker */
extern const struct psd_collective psd_broadcast; /* every worker sends the whole slice to every other worker */
extern const struct psd_collective psd_to_root;	  /* every worker sends the whole slice to the root */
extern const struct psd_collective psd_from_root; /* the root sends the whole slice to every worker */

/* Transfers through leaders, the first worker of each node. */
/* all workers except the leader send the whole slice to the leader of their node */
extern const struct psd_collective psd_to_leader;
/* every leader sends the whole slice to the other workers of its node */
extern const struct psd_collective psd_from_leader;
extern const struct psd_collective psd_leader_push; /* every leader sends each shard that shard's part of the slice */
extern const struct psd_collective psd_leader_pull; /* every shard sends its part of the slice to every leader */

/* The all-reduces that psd executes: identifier in C, and name in scenarios. */
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
extern const struct psd_collective *const psd_all_reduces[PSD_N_ALL_REDUCES]; /* in the order of the rows above */

/* The all-reduces that libraries execute: identifier in C, and name in scenarios. */
#define PSD_LIBRARIES(ROW)                                                                                             \
	ROW(mpi, "mpi")                                                                                                \
	ROW(nccl, "nccl")                                                                                              \
	ROW(nccl_two_level, "nccl-two-level")
PSD_LIBRARIES(PSD_DECLARE_ALL_REDUCE)
enum { PSD_N_LIBRARIES = PSD_LIBRARIES(PSD_COUNT_ALL_REDUCE) };
extern const struct psd_collective *const psd_libraries[PSD_N_LIBRARIES]; /* in the order of the rows above */

/* ---- members and links ---- */

/* Returns the group of hosts that execute the payload's steps; all workers if payload->group is empty. */
struct psd_group psd_payload_group(const struct psd_payload *payload, const struct psd_layout *layout);
/* True if the host is in psd_payload_group(). */
bool psd_payload_has_member(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host);
/* Returns the number of hosts in the payload's group, in all and per node. The group's stride must divide the number of
 * workers of a node, or be a multiple of it. */
struct psd_members psd_payload_members(const struct psd_payload *payload, const struct psd_layout *layout);
/* Returns the number of nodes on which these members are. */
unsigned psd_members_nodes(struct psd_members members);
/* Number of the payload's members behind one switch of a node; 0: nodes have no switches. */
unsigned psd_payload_per_switch(const struct psd_payload *payload, const struct psd_layout *layout);
/* Returns the number of the transfer's members in one rack; 0: the network has no racks. */
unsigned psd_payload_per_rack(const struct psd_payload *payload, const struct psd_layout *layout);
/* Returns the distance between the members of ranks `from` and `to`: behind the same switch, on the same node, on
 * different nodes of one rack, or in different racks. */
enum psd_reach psd_members_reach(struct psd_members members, const struct psd_links *links, unsigned from, unsigned to);
/* Returns the seconds that `bits` bits occupy a link of this reach if nothing else uses the link, without latency. */
double psd_links_busy_sec(const struct psd_links *links, enum psd_reach reach, double bits);
/* Returns the latency of a message over a link of this reach, seconds. */
double psd_links_latency_sec(const struct psd_links *links, enum psd_reach reach);

/* Returns the payload with fewer elements: ratio times their number, rounded up; 0 < ratio <= 1. At least one element
 * remains per shard and per worker, so that no host's part becomes empty. A payload that has no more elements than that
 * stays unchanged. */
struct psd_payload psd_payload_scaled(const struct psd_payload *payload, const struct psd_layout *layout, double ratio);

/* ---- steps ---- */

/* Returns the messages of one host in one step of the payload, as psd_collective.step. `to` and `from` in the result
 * are numbers of hosts, not ranks. */
struct psd_step psd_payload_step(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host,
				 unsigned step);
/* True if elements that a host receives in a step overlap those that it sends in the step. */
bool psd_payload_is_staged(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host,
			   unsigned step);
/* Number of the payload's steps; 0: all elements are sent at once. */
unsigned psd_payload_steps(const struct psd_payload *payload, const struct psd_layout *layout);
/* Returns the number of the payload's steps that wait for one another, psd_collective.hops. */
unsigned psd_payload_hops(const struct psd_payload *payload, const struct psd_layout *layout);
/* Returns the first step, from `step` on, in which the host sends elements (`sends` is true) or receives elements
 * (false); psd_payload_steps() if there is none. */
unsigned psd_payload_next_step(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host,
			       unsigned step, bool sends);
/* Returns the seconds of a stepwise payload if no other data move, see psd_collective.alone_sec; never less than
 * transfer_sec. */
double psd_payload_alone_sec(const struct psd_payload *payload, const struct psd_layout *layout, double transfer_sec,
			     const struct psd_links *links);
/* Sets *flow to flow number i of a member, see psd_collective.flow. Accepts also collectives whose `flow` is NULL. */
bool psd_payload_rank_flow(const struct psd_payload *payload, struct psd_members members, unsigned rank, unsigned i,
			   struct psd_flow *flow);
/* As psd_payload_rank_flow(), with numbers of hosts in place of ranks, also inside *flow. */
bool psd_payload_flow(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host, unsigned i,
		      struct psd_flow *flow);

/* ---- bytes ---- */

/* Returns the range of elements that host `from` sends to host `to`, empty if there are none. For collectives that send
 * all elements at once. */
struct psd_range psd_payload_range(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				   unsigned to);
/* Bytes that host `from` sends to host `to` != from, in all steps together; 0 if it sends none. */
uint64_t psd_payload_bytes_between(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				   unsigned to);
/* Returns the bytes that worker `from` sends to hosts `to` to `to` + n - 1 together. These are all workers, or all have
 * shards, and `from` is not one of them. For collectives that send all elements at once. */
uint64_t psd_payload_bytes_to_run(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				  unsigned to, unsigned n);
/* Bytes that a rack sends to and receives from all other racks together for one payload. */
struct psd_traffic psd_payload_rack_traffic(const struct psd_payload *payload, const struct psd_layout *layout,
					    unsigned rack);
/* Bytes that a node sends to and receives from other nodes for one payload: the sum of psd_payload_bytes_between() over
 * its hosts. */
struct psd_traffic psd_payload_node_traffic(const struct psd_payload *payload, const struct psd_layout *layout,
					    unsigned node);
/* False if another node certainly has at least as much traffic as this node. A search for the node with the most
 * traffic may then leave this node out. */
bool psd_payload_may_be_busiest(const struct psd_payload *payload, const struct psd_layout *layout, unsigned node);
/* Returns the largest number of elements that one worker sends to the other workers of its node, or receives from them
 * if that is more. */
double psd_payload_local_elements(const struct psd_payload *payload, const struct psd_layout *layout);
/* Numbers of elements on the busiest links inside a node, in one direction, where nodes have switches: on a worker's
 * own link, and on a switch's uplink. Elements on their way to or from other nodes count as well. */
struct psd_inside {
	double worker_elements, switch_elements;
};
/* Returns these numbers for a payload. */
struct psd_inside psd_payload_inside(const struct psd_payload *payload, const struct psd_layout *layout);

/* ---- numbers of hosts and nodes ---- */

/* Number of hosts that send more than 0 bytes to `to`, if all are sent at once. */
unsigned psd_payload_senders(const struct psd_payload *payload, const struct psd_layout *layout, unsigned to);
/* Number of hosts to which `from` sends more than 0 bytes, if all are sent at once. */
unsigned psd_payload_receivers(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from);
/* Returns the number of hosts that send to host `to` over the same kind of link as host `from`. If both are on one
 * node, these are the senders on that node; otherwise the senders on other nodes. */
unsigned psd_payload_senders_beside(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				    unsigned to);
/* Returns the number of hosts that receive from host `from` over the same kind of link as host `to`: on the same node
 * if both are on one node, otherwise on other nodes. */
unsigned psd_payload_receivers_beside(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				      unsigned to);
/* Largest number of nodes that send to one node at a time, which causes incast. */
unsigned psd_payload_fan_in(const struct psd_payload *payload, const struct psd_layout *layout);
/* Returns the largest number of pairs (sending host on another node, receiving host on the node) that send to one node
 * at a time. */
unsigned psd_payload_pairs_in(const struct psd_payload *payload, const struct psd_layout *layout);

#endif
