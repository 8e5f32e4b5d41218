/* Collectives: which elements go from which host to which in one transfer, either all at once or step by step. Each one
 * is a row of functions in a file of its own. Simulation, estimate and real runs execute any of them with the same
 * code. Pure functions, any thread. */
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

struct psd_traffic {
	uint64_t sent_bytes;
	uint64_t received_bytes;
};

/* The members of a stepwise transfer in order of rank: per_node members on each node, perhaps fewer on the last. */
struct psd_members {
	unsigned n;
	unsigned per_node;
};

/* One member's part in one step. The arriving elements, and whether they are added or replace others, follow from the
 * sender's step of the same number. */
struct psd_step {
	unsigned to;	       /* rank of the receiver; own rank: sends nothing */
	unsigned from;	       /* rank of the sender; own rank: receives nothing */
	struct psd_range sent; /* range of elements that are sent to `to` */
	bool adds;	       /* the receiver adds the elements of `sent` to its own; false: they replace its own */
};

/* All data that a member sends to one other member, and that it receives from one. */
struct psd_flow {
	unsigned to;	   /* rank of the receiver; own rank: sends nothing */
	uint64_t elements; /* number of elements sent to `to` */
	unsigned n_messages;
	unsigned from; /* rank of the sender; own rank: receives nothing */
	uint64_t received_elements;
};

struct psd_processors;

/* Rates and latencies of the links between two members, bits per second. Where nodes have switches, a message that
 * leaves a node also passes the device's own link and its switch's uplink. */
struct psd_links {
	double far_bps;		 /* rate of the link between nodes */
	double near_bps;	 /* rate of a device's own link inside its node; infinity: takes no time */
	double between_bps;	 /* rate of the uplink of a switch inside a node */
	double latency_sec;	 /* latency of a message between nodes */
	double near_latency_sec; /* latency of a message inside a node */
	unsigned per_switch;	 /* number of members behind one switch of a node; 0: nodes have no switches */
	const struct psd_processors *processors; /* processors that messages need; NULL: none */
};

/* Processors that move messages. At either end of a message they use at most one core. */
struct psd_processors {
	double far_bit_sec, near_bit_sec; /* seconds of one core per bit at either end: between nodes, inside a node */
	double cores;	       /* number of cores of each member; with shared_nodes, of all members on these nodes */
	unsigned shared_nodes; /* number of consecutive nodes that share the cores; 0: each member has its own */
};

struct psd_collective {
	const char *name; /* name of the collective in reports and traces */
	/* Name of an all-reduce of this program with equal sums. Not NULL: a library outside of this
	 * program executes the collective, by unknown steps. */
	const char *assumed;
	const char *predicted; /* words for the steps that predictions of a library take, "a ring's" */

	/* ---- all at once; NULL where there are steps ---- */

	/* Collective whose transfers this one makes in the opposite direction; its functions are then used for both,
	 * and those here are NULL. NULL: this one has functions of its own. */
	const struct psd_collective *reverse_of;
	/* Range of elements that go from one host to another, within the payload; empty if there are none. */
	struct psd_range (*range)(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				  unsigned to);
	/* Number of elements that a host sends to and receives from all others, counted as bytes. */
	struct psd_traffic (*host_elements)(const struct psd_payload *payload, const struct psd_layout *layout,
					    unsigned host);
	/* Number of hosts from which a host receives elements; next: number of hosts to which it sends some. */
	unsigned (*senders)(const struct psd_payload *payload, const struct psd_layout *layout, unsigned to);
	unsigned (*receivers)(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from);
	/* Largest number of nodes that send to one node; next: to which one node sends. NULL: nothing leaves a node. */
	unsigned (*fan_in)(const struct psd_layout *layout);
	unsigned (*fan_out)(const struct psd_layout *layout);
	bool has_root; /* one host sends or receives more than the others: the root */
	bool is_cut;   /* consecutive hosts receive consecutive ranges; false: all receive the same */

	/* ---- step by step: an all-reduce over the members; NULL where all goes at once ---- */

	unsigned (*steps)(uint64_t elements, struct psd_members members);
	/* One member's part in one step; rank < members.n, step < steps(elements, members). A member begins a step's
	 * message when its earlier messages have left and all messages of its earlier steps have arrived. Elements that
	 * it adds in a step may overlap those that it sends: it then adds them after those have left. */
	struct psd_step (*step)(uint64_t elements, struct psd_members members, unsigned rank, unsigned step);
	/* Flow i of the flows that a member's messages add up to; false if there are fewer. NULL: each step is a flow.
	 * */
	bool (*flow)(uint64_t elements, struct psd_members members, unsigned rank, unsigned i, struct psd_flow *flow);
	/* Seconds from the first message to the last where nothing else moves, all members begin together and every
	 * node's link is alike; NaN when memory runs out. transfer_sec: seconds of the bytes alone on the busiest link,
	 * if nothing ever waits. NULL: computed by psd_step_times_sec(). */
	double (*alone_sec)(const struct psd_payload *payload, struct psd_members members, double transfer_sec,
			    const struct psd_links *links);
	/* Number of steps that wait for one another, which `step` of a size class counts. NULL: all steps. */
	unsigned (*hops)(uint64_t elements, struct psd_members members);
	bool overlaps;		/* steps on different links overlap: simulated as flows at any fidelity */
	bool is_uneven;		/* any node may be the one that sends most; false: the first or the last node is */
	bool is_timed_by_steps; /* alone_sec may follow every member through every step; then any node may send most */
};

/* The functions of a collective that goes all at once, as its file names them. */
#define PSD_AT_ONCE                                                                                                    \
	.range = range, .host_elements = host_elements, .senders = senders, .receivers = receivers, .fan_in = fan_in,  \
	.fan_out = fan_out

extern const struct psd_collective psd_push; /* push: every worker sends each shard that shard's part of the slice */
extern const struct psd_collective psd_pull; /* pull: every shard sends its part of the slice to every worker */
extern const struct psd_collective psd_broadcast; /* every worker sends the whole slice to every other worker */
extern const struct psd_collective psd_to_root;	  /* every worker sends the whole slice to the root */
extern const struct psd_collective psd_from_root; /* the root sends the whole slice to every worker */

/* Transfers through leaders, the first worker of each node. */
extern const struct psd_collective psd_to_leader;   /* every other worker sends the whole slice to its node's leader */
extern const struct psd_collective psd_from_leader; /* every leader sends the whole slice to the others of its node */
extern const struct psd_collective psd_leader_push; /* every leader sends each shard that shard's part of the slice */
extern const struct psd_collective psd_leader_pull; /* every shard sends its part of the slice to every leader */

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
extern const struct psd_collective *const psd_all_reduces[PSD_N_ALL_REDUCES]; /* in the order of the rows above */

/* The all-reduces of libraries, one row each, beside this program's own. */
#define PSD_LIBRARIES(ROW)                                                                                             \
	ROW(mpi, "mpi")                                                                                                \
	ROW(nccl, "nccl")                                                                                              \
	ROW(nccl_two_level, "nccl-two-level")
PSD_LIBRARIES(PSD_DECLARE_ALL_REDUCE)
enum { PSD_N_LIBRARIES = PSD_LIBRARIES(PSD_COUNT_ALL_REDUCE) };
extern const struct psd_collective *const psd_libraries[PSD_N_LIBRARIES]; /* in the order of the rows above */

/* ---- members and links ---- */

/* Group of hosts that execute the payload's steps. */
struct psd_group psd_payload_group(const struct psd_payload *payload, const struct psd_layout *layout);
bool psd_payload_has_member(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host);
/* Members of the payload's group. The stride of a group divides a node's workers, or is a multiple of them. */
struct psd_members psd_payload_members(const struct psd_payload *payload, const struct psd_layout *layout);
unsigned psd_members_nodes(struct psd_members members);
/* Number of the payload's members behind one switch of a node; 0: nodes have no switches. */
unsigned psd_payload_per_switch(const struct psd_payload *payload, const struct psd_layout *layout);
/* Distance between two members: behind the same switch, on the same node, or on different nodes. */
enum psd_reach psd_members_reach(struct psd_members members, const struct psd_links *links, unsigned from, unsigned to);
/* Seconds to send these bits over links that nobody else uses, without latency. */
double psd_links_busy_sec(const struct psd_links *links, enum psd_reach reach, double bits);
double psd_links_latency_sec(const struct psd_links *links, enum psd_reach reach);

/* The payload with a share of its elements, rounded up; 0 < ratio <= 1. At least as many remain as the payload has
 * parts, so that no part becomes empty. */
struct psd_payload psd_payload_scaled(const struct psd_payload *payload, const struct psd_layout *layout, double ratio);

/* ---- steps ---- */

/* One host's part in one step of the payload: psd_collective.step with hosts instead of ranks. */
struct psd_step psd_payload_step(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host,
				 unsigned step);
/* True if elements that a host receives in a step overlap those that it sends in the step. */
bool psd_payload_is_staged(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host,
			   unsigned step);
/* Number of the payload's steps; 0: all elements are sent at once. */
unsigned psd_payload_steps(const struct psd_payload *payload, const struct psd_layout *layout);
/* Number of the payload's steps that wait for one another. */
unsigned psd_payload_hops(const struct psd_payload *payload, const struct psd_layout *layout);
/* First step, from `step` on, in which a host sends something or, unless `sends`, receives something;
 * psd_payload_steps() if there is none. */
unsigned psd_payload_next_step(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host,
			       unsigned step, bool sends);
/* Seconds of a stepwise payload if nothing else moves, see psd_collective.alone_sec; transfer_sec at least. */
double psd_payload_alone_sec(const struct psd_payload *payload, const struct psd_layout *layout, double transfer_sec,
			     const struct psd_links *links);
/* Flow i of a member, see psd_collective.flow; also for collectives without that function. */
bool psd_payload_rank_flow(const struct psd_payload *payload, struct psd_members members, unsigned rank, unsigned i,
			   struct psd_flow *flow);
/* Flow i of a host, with hosts in place of ranks. */
bool psd_payload_flow(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host, unsigned i,
		      struct psd_flow *flow);

/* ---- bytes ---- */

/* Range of elements that go from one host to another, if all are sent at once; empty if there are none. */
struct psd_range psd_payload_range(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				   unsigned to);
/* Bytes that host `from` sends to host `to` != from, in all steps together; 0 if it sends none. */
uint64_t psd_payload_bytes_between(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				   unsigned to);
/* Bytes that a worker sends to n other consecutive hosts from `to` on, all workers or all shards; all at once. */
uint64_t psd_payload_bytes_to_run(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				  unsigned to, unsigned n);
/* Bytes that a node sends to and receives from other nodes for one payload: the sum of psd_payload_bytes_between() over
 * its hosts. */
struct psd_traffic psd_payload_node_traffic(const struct psd_payload *payload, const struct psd_layout *layout,
					    unsigned node);
/* False if the traffic of another node is certainly at least as large as this node's. */
bool psd_payload_may_be_busiest(const struct psd_payload *payload, const struct psd_layout *layout, unsigned node);
/* Number of elements that the busiest worker sends to, or receives from, workers of its node. */
double psd_payload_local_elements(const struct psd_payload *payload, const struct psd_layout *layout);
/* Number of elements through the busiest worker's own link and through the busiest uplink of a switch, one way, where
 * nodes have switches. Both include traffic between nodes. */
struct psd_inside {
	double worker_elements, switch_elements;
};
struct psd_inside psd_payload_inside(const struct psd_payload *payload, const struct psd_layout *layout);

/* ---- numbers of hosts and nodes ---- */

/* Number of hosts that send more than 0 bytes to `to`, if all are sent at once. */
unsigned psd_payload_senders(const struct psd_payload *payload, const struct psd_layout *layout, unsigned to);
/* Number of hosts to which `from` sends more than 0 bytes, if all are sent at once. */
unsigned psd_payload_receivers(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from);
/* Number of senders to `to` on other nodes or, if `from` and `to` share a node, on that node. */
unsigned psd_payload_senders_beside(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				    unsigned to);
unsigned psd_payload_receivers_beside(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				      unsigned to);
/* Largest number of nodes that send to one node at a time, which causes incast. */
unsigned psd_payload_fan_in(const struct psd_payload *payload, const struct psd_layout *layout);
/* Largest number of pairs of hosts over which other nodes send to one node at a time. */
unsigned psd_payload_pairs_in(const struct psd_payload *payload, const struct psd_layout *layout);

#endif
