/* Patterns: who sends which elements to whom in one transfer, either all at once or step by step. A pattern is a row
 * of functions in a file of its own; simulation, estimate and real execution carry out any of them with the same code.
 * Pure functions, any thread. */
#ifndef PSD_COLLECTIVE_H
#define PSD_COLLECTIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/collectives/group.h"
#include "engine/collectives/layout.h"

struct psd_collective;

/* What one transfer carries: a slice of a tensor, or one worker's factors. */
struct psd_payload {
	const struct psd_collective *collective;
	uint64_t elements;
	unsigned value_bytes;	/* of one element */
	unsigned root;		/* host */
	struct psd_group group; /* who takes its steps; of 0 hosts: all workers */
};

struct psd_traffic {
	uint64_t sent_bytes;
	uint64_t received_bytes;
};

/* Who takes the steps of a transfer, in order of rank: so many on each node, the last of which may have fewer. */
struct psd_members {
	unsigned n;
	unsigned per_node;
};

/* What a member does in one step. The step of the same number tells the receiver which elements come, and whether they
 * are added to its own or replace them. */
struct psd_step {
	unsigned to;	       /* own rank: nobody */
	unsigned from;	       /* own rank: nobody */
	struct psd_range sent; /* to `to` */
	bool adds;	       /* the receiver of `sent` adds it to its own */
};

/* All that a member sends to another. */
struct psd_flow {
	unsigned to; /* own rank: nothing */
	uint64_t elements;
	unsigned n_messages;
};

struct psd_processors;

/* What a message between two members takes beside waiting. Where nodes have switches, what leaves a node passes the
 * device's own link and its switch's uplink as well. */
struct psd_ways {
	double far_bps;				 /* of a node's link */
	double near_bps;			 /* of a device's own link inside its node; infinity when free */
	double between_bps;			 /* of a switch's uplink */
	double latency_sec;			 /* between nodes */
	double near_latency_sec;		 /* inside a node */
	unsigned per_switch;			 /* members behind one switch; 0: nodes have none */
	const struct psd_processors *processors; /* NULL: messages take none; for walks alone */
};

/* What moves messages at both of their ends, a core at most at each. */
struct psd_processors {
	double far_bit_sec, near_bit_sec; /* of a core, at either end: between nodes, and inside one */
	double cores;			  /* of each member, or of all on so many nodes one after the other */
	unsigned shared_nodes;		  /* 0: each has its own */
};

struct psd_collective {
	const char *name; /* in reports and traces */
	/* Not NULL: a library outside of this program carries it out, by steps of its own that it does not tell. The
	 * steps and sums here, which predictions and reports go by, are those of the all-reduce of this name. */
	const char *assumed;

	/* ---- what follows from steps by a walk over them, if it is left NULL, and for groups of some workers ---- */

	/* Elements into or out of one worker, from or to workers of its node: the most. */
	double (*local_elements)(const struct psd_payload *payload, const struct psd_layout *layout);
	/* The largest number of nodes that send to one node at a time, whose workers may be at different steps. */
	unsigned (*fan_in)(const struct psd_layout *layout);
	/* Elements that a node sends to and receives from others, as bytes of one byte each. Unless is_uneven, one of
	 * the first and the last node, and a root's, has the most. */
	struct psd_traffic (*node_elements)(const struct psd_payload *payload, const struct psd_layout *layout,
					    unsigned node);
	bool is_uneven;
	bool is_timed_by_steps; /* seconds follow from a walk over the steps where members differ */

	/* The i-th of the flows that a member's messages add up to: false when there are fewer. */
	bool (*flow)(uint64_t elements, struct psd_members members, unsigned rank, unsigned i, struct psd_flow *flow);
	/* Seconds from the first message to the last where nothing else moves, all begin together and every node's link
	 * is alike; not a number: out of memory. transfer_sec: what the bytes alone take on the busiest link, if
	 * nothing ever waits. */
	double (*alone_sec)(const struct psd_payload *payload, struct psd_members members, double transfer_sec,
			    const struct psd_ways *ways);

	/* ---- all at once; NULL where there are steps ---- */

	/* The elements that go from one host to another, counted in the payload; empty when none do. */
	struct psd_range (*range)(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				  unsigned to);
	/* Elements that a host sends to and receives from all others, as bytes of one byte each. */
	struct psd_traffic (*host_elements)(const struct psd_payload *payload, const struct psd_layout *layout,
					    unsigned host);
	/* Number of hosts that send `to` more than nothing. */
	unsigned (*senders)(const struct psd_payload *payload, const struct psd_layout *layout, unsigned to);
	bool has_root; /* one host sends or receives more than the others */
	bool is_cut;   /* hosts are sent one range after the other, in their order; else all the same */

	/* ---- step by step: an all-reduce over the workers; NULL where all goes at once ---- */

	unsigned (*steps)(uint64_t elements, struct psd_members members);
	/* rank < members.n, step < steps(elements, members). A member begins a step's message when its earlier messages
	 * have left and all that earlier steps bring it is there. What it adds in a step may lie where what it sends
	 * does: it is then added after that has left. */
	struct psd_step (*step)(uint64_t elements, struct psd_members members, unsigned rank, unsigned step);
};

extern const struct psd_collective psd_push;	  /* every worker to every shard: that shard's part of the slice */
extern const struct psd_collective psd_pull;	  /* every shard to every worker: its part */
extern const struct psd_collective psd_broadcast; /* every worker to every other worker: all of it */
extern const struct psd_collective psd_to_root;	  /* every worker to the root: all of it */
extern const struct psd_collective psd_from_root; /* the root to every worker: all of it */

/* By way of leaders, the first worker of each node. */
extern const struct psd_collective psd_to_leader;   /* every other worker to its node's leader: all of it */
extern const struct psd_collective psd_from_leader; /* every leader to the others of its node: all of it */
extern const struct psd_collective psd_leader_push; /* every leader to every shard: that shard's part of the slice */
extern const struct psd_collective psd_leader_pull; /* every shard to every leader: its part */

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

/* Who takes the payload's steps. */
struct psd_group psd_payload_group(const struct psd_payload *payload, const struct psd_layout *layout);
bool psd_payload_has_member(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host);
/* The same as patterns see them: strides that divide a node's workers, or are a multiple of them, are regular. */
struct psd_members psd_payload_members(const struct psd_payload *payload, const struct psd_layout *layout);
unsigned psd_members_nodes(struct psd_members members);
/* Members behind one switch of a node; 0: nodes have none. */
unsigned psd_payload_per_switch(const struct psd_payload *payload, const struct psd_layout *layout);
/* Where a member is from another. */
enum psd_reach psd_members_reach(struct psd_members members, const struct psd_ways *ways, unsigned from, unsigned to);
/* So many bits on a way that nobody else uses, and what comes after them. */
double psd_ways_busy_sec(const struct psd_ways *ways, enum psd_reach reach, double bits);
double psd_ways_latency_sec(const struct psd_ways *ways, enum psd_reach reach);
/* Nodes without switches, inside which nothing is late. */
bool psd_ways_are_plain(const struct psd_ways *ways);

/* The payload with this share of its elements, 0 < ratio <= 1: whole ones, and as many as it has parts, so that none of
 * them becomes empty. */
struct psd_payload psd_payload_scaled(const struct psd_payload *payload, const struct psd_layout *layout, double ratio);
/* What a member sends in a step, with hosts instead of ranks. */
struct psd_step psd_payload_step(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host,
				 unsigned step);
/* What a member receives in a step lies where what it sends does. */
bool psd_payload_is_staged(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host,
			   unsigned step);
/* Steps of the payload's pattern; 0: all at once. */
unsigned psd_payload_steps(const struct psd_payload *payload, const struct psd_layout *layout);
/* The first step from `step` on in which a member sends something, or, if not `sends`, receives something;
 * psd_payload_steps() when there is none. */
unsigned psd_payload_next_step(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host,
			       unsigned step, bool sends);
/* Seconds of a stepwise payload, as psd_collective.alone_sec. */
double psd_payload_alone_sec(const struct psd_payload *payload, const struct psd_layout *layout, double transfer_sec,
			     const struct psd_ways *ways);
/* The i-th flow of a member, as psd_collective.flow, whether the pattern has it or not. */
bool psd_payload_rank_flow(const struct psd_payload *payload, struct psd_members members, unsigned rank, unsigned i,
			   struct psd_flow *flow);
/* The same with hosts instead of ranks. */
bool psd_payload_flow(const struct psd_payload *payload, const struct psd_layout *layout, unsigned host, unsigned i,
		      struct psd_flow *flow);
/* Elements into or out of one worker, from or to workers of its node: the most. */
double psd_payload_local_elements(const struct psd_payload *payload, const struct psd_layout *layout);
/* Where nodes have switches: elements through the busiest worker's own link and through the busiest uplink of a switch,
 * one way, what leaves the node and what comes from there included. */
struct psd_inside {
	double worker_elements, switch_elements;
};
struct psd_inside psd_payload_inside(const struct psd_payload *payload, const struct psd_layout *layout);
/* Bytes that host `from` sends to host `to` != from, in all steps together; 0 when it sends none. */
uint64_t psd_payload_bytes_between(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				   unsigned to);
/* Bytes that a worker sends to n other hosts, to, to + 1 and so on; all at once, workers and shards alike. */
uint64_t psd_payload_bytes_to_run(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				  unsigned to, unsigned n);
/* Bytes a node sends to and receives from other nodes for one payload: the sum of psd_payload_bytes_between() over
 * them. */
struct psd_traffic psd_payload_node_traffic(const struct psd_payload *payload, const struct psd_layout *layout,
					    unsigned node);
/* Number of hosts that send `to` more than 0 bytes; all at once. */
unsigned psd_payload_senders(const struct psd_payload *payload, const struct psd_layout *layout, unsigned to);
/* Number of hosts that `from` sends more than 0 bytes. */
unsigned psd_payload_receivers(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from);
/* Of either, those on the same way as `from` to `to`: between nodes, or inside the node of both. */
unsigned psd_payload_senders_beside(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				    unsigned to);
unsigned psd_payload_receivers_beside(const struct psd_payload *payload, const struct psd_layout *layout, unsigned from,
				      unsigned to);
/* The largest number of nodes that send to one node at a time: what incast depends on. */
unsigned psd_payload_fan_in(const struct psd_payload *payload, const struct psd_layout *layout);
/* The largest number of pairs of hosts over which other nodes send to one node at a time. */
unsigned psd_payload_pairs_in(const struct psd_payload *payload, const struct psd_layout *layout);

#endif
