/* Network of the simulation: hosts, transfers that share links max-min fairly, timers, and a clock. It hides SimGrid.
 * A process can have only one network, because SimGrid exists once per process, so callers fork for each simulation.
 * Everything happens in one thread. A function of the caller is told when a transfer or timer ends, and may start
 * others. Events at the same time have a fixed order, so that runs repeat exactly: first timers in the order in which
 * they were set, then transfers in the order in which they began. */
#ifndef PSD_SIM_NETWORK_H
#define PSD_SIM_NETWORK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/base/error.h"
#include "engine/collectives/layout.h"

/* Platform to generate: a cluster. Worker w is host w; nodes have consecutive workers. Separate server s is host
 * `workers` + s, on node `nodes` + s, which has no other host. */
struct psd_platform {
	unsigned topology; /* shape of the network, an enum psd_topology */
	unsigned nodes;	   /* number of worker nodes */
	unsigned workers_per_node;
	/* total number of workers; if it is not a multiple of workers_per_node, the last node has fewer */
	unsigned workers;
	unsigned servers; /* number of separate server nodes; 0: shards are on worker nodes */
	/* rate at which a node can send, bits per second: the smaller of link rate * payload ratio and transport
	 * rate */
	double send_bps;
	/* rate at which a node can receive, bits per second: the smaller of link rate * payload ratio and transport
	 * rate with incast */
	double receive_bps;
	/* One-way latency between nodes, seconds. Callers add it as a delay after a transfer; SimGrid's links have
	 * latency 0, because otherwise SimGrid gives transfers with long round-trip times smaller shares. */
	double latency_sec;
	/* latency that the software at both ends adds to each message, for all topologies, seconds; not written to
	 * XML */
	double host_latency_sec;
	/* rate of a worker's link inside its node in each direction, bits per second; 0: unlimited */
	double local_bps;
	double local_latency_sec; /* latency between workers of a node, seconds; callers add it as a delay */
	/* number of workers behind each PCIe switch of a node; 0: nodes have no such switches */
	unsigned workers_per_switch;
	/* rate of the uplink of a PCIe switch, each direction, bits per second; data to and from other nodes also pass
	 * this uplink */
	double between_bps;
	unsigned nodes_per_rack; /* number of worker nodes per rack; only for topologies with racks */
	/* sum of the rates of all node links of a rack, divided by the sum of the rates of the rack's uplinks; >= 1 */
	double oversubscription_ratio;
	/* server s is in rack servers_in[s % n_servers_in], as in struct psd_layout */
	const uint64_t *servers_in;
	unsigned n_servers_in; /* number of entries of servers_in */
	/* rate of a node's link for payload, bits per second; the rates of uplinks of racks and fat trees are computed
	 * from it */
	double link_bps;
	/* transfers that end within a nanosecond end one by one; false: they end together, with the first of them */
	bool ends_apart;
	const struct psd_kind_of_nodes *kinds; /* kinds of worker nodes, see struct psd_layout; borrowed */
	unsigned n_kinds;		       /* number of entries of kinds; 0: all nodes are of one kind */
	bool has_own_latencies;		       /* kinds of nodes differ in latency, see struct psd_layout */
	bool is_uneven;	  /* kinds of nodes differ in their number of workers per node, see struct psd_layout */
	const char *path; /* path of the user's platform file, only for PSD_TOPOLOGY_PLATFORM */
};

/* Function that the network calls when a transfer or timer has ended. tag: number that was given when it was
 * started. */
typedef void (*psd_wake_fn)(void *context, uint64_t tag);

/* Starts SimGrid with this platform. wake(context, tag) is called at the end of each transfer and timer. Hosts of a
 * user's file are numbered in the natural order of their names (n2 before n10). Afterwards the caller may free
 * *platform, but not platform->path. PSD_EINVAL: the platform cannot be used; the text is one line of SimGrid's
 * message. PSD_ERUN: SimGrid fails. SimGrid may call abort() on wrong XML, so psd_platform_check() must be called
 * before. */
enum psd_status psd_network_open(const struct psd_platform *platform, psd_wake_fn wake, void *context,
				 struct psd_error *err) PSD_MUST_CHECK;
/* Link on the route of a flow, in a network that has one link for each class of links; and the number of equal flows
 * that share this link. */
struct psd_class_link {
	unsigned link;
	unsigned n_flows;
};
/* Starts SimGrid for flows of classes: with n_links links, and without the hosts of the platform. psd_network_flow()
 * takes the place of psd_network_transfer(); each flow represents several equal ones. The latencies are those of the
 * platform. Statuses as psd_network_open(). */
enum psd_status psd_network_open_classes(const struct psd_platform *platform, unsigned n_flows, unsigned n_links,
					 psd_wake_fn wake, void *context, struct psd_error *err) PSD_MUST_CHECK;
/* Sets the rate of link number `link` < n_links. No flow may be on the link. */
void psd_network_set_rate(unsigned link, double bps);
/* Begins flow number `flow` < n_flows over `n` links; the flow must not be running already. wake is called with `tag`
 * when the last byte has arrived. 0 bytes arrive at the present time. */
void psd_network_flow(unsigned flow, const struct psd_class_link *links, unsigned n, uint64_t bytes, uint64_t tag);
/* Returns the time of the simulation, in simulated seconds since its start. */
double psd_network_now_sec(void);
/* Begins to send `bytes` bytes from host `from` to another host `to`. wake is called with `tag` when the last byte has
 * arrived; latency is not included. 0 bytes arrive at the present time. If the route is missing or down,
 * psd_network_run() returns PSD_ERUN. */
void psd_network_transfer(unsigned from, unsigned to, uint64_t bytes, uint64_t tag);
/* Sets a timer: wake is called with `tag` after delay_sec >= 0 seconds. */
void psd_network_timer(double delay_sec, uint64_t tag);
/* Returns the one-way latency between two hosts, seconds: 0 if they are equal, local_latency_sec inside a node, and
 * latency_sec + host_latency_sec between nodes, with the difference of their kinds. On a user's platform, the latency
 * of the route in the file takes the place of latency_sec and local_latency_sec. */
double psd_network_latency_sec(unsigned from, unsigned to);
/* Writes the numbers of the links on the way from host `from` to another host `to`, in order, to links[], which has
 * `room` entries; further links are left out. Returns their number. Links of a generated platform have the numbers of
 * psd_platform_route(), links of a user's platform are numbered from 0 in the order in which calls of this function
 * first meet them. */
unsigned psd_network_way(unsigned from, unsigned to, unsigned links[], unsigned room);
/* Writes the name of a link from psd_network_way() to `name`, which has PSD_LINK_NAME bytes, and returns its rate, bits
 * per second. */
double psd_network_describe_link(unsigned link, char *name);
/* Sets the rate of a node's link, in both directions, to ratio > 0 times its rate at the start. Transfers that are
 * already running change their speed as well, but never above the speed that their links allowed at ratio 1. On a
 * user's platform it changes the first and the last link of the routes of the node's first host. */
void psd_network_scale_link(unsigned node, double ratio);
/* Runs the simulation until there are no more transfers and timers, or until wake() calls psd_network_stop(). It may
 * then be called again. PSD_ERUN: a transfer or SimGrid has failed. */
enum psd_status psd_network_run(struct psd_error *err) PSD_MUST_CHECK;
/* Makes psd_network_run() return after the present call of wake(). wake() is not called again before the next
 * psd_network_run(). */
void psd_network_stop(void);
/* Returns a measure of the time that SimGrid has spent on computing the rates of transfers so far, in events
 * (psd_run_length.most_events). */
uint64_t psd_network_work(void);

/* Checks in a child process that SimGrid can load a user's platform file. PSD_EINVAL: SimGrid refuses it or crashes
 * (the text is one line, "platform.xml:LINE: ..."), or needs more than 30 s. PSD_OK without a check if the platform is
 * a generated one. */
enum psd_status psd_platform_check(const struct psd_platform *platform, struct psd_error *err) PSD_MUST_CHECK;

/* Writes a generated platform as SimGrid XML, for the command `psd-sim platform`. A latency between nodes is divided
 * between the sending node's link and the receiving node's. The file lists the route of each pair of hosts, except for
 * a star with one worker per node. Returns PSD_EINVAL for a user's platform, and for more than 512 hosts if routes are
 * listed; PSD_EFILE if `out` cannot be written. */
enum psd_status psd_platform_write(FILE *out, const struct psd_platform *platform,
				   struct psd_error *err) PSD_MUST_CHECK;

#endif
