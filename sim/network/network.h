/* SimGrid behind a C header: hosts, transfers that share links max-min fairly, timers, a clock. One network per process
 * (SimGrid is a process-wide singleton): callers fork per sweep point. Everything happens in one thread; a completion
 * calls back, and callbacks may start further transfers and timers. What is due at one date wakes in a fixed order, so
 * runs repeat exactly: first the timers, in the order of their start, then the transfers that end at that date, in the
 * order of their start. */
#ifndef PSD_SIM_NETWORK_H
#define PSD_SIM_NETWORK_H

#include <stdint.h>
#include <stdio.h>

#include "engine/base/error.h"

/* What the generated platforms need. Hosts: worker w is host w and sits on node w / workers_per_node; server s
 * (separate server nodes only) is host n_workers + s on its own node n_nodes + s. */
struct psd_platform {
	unsigned topology; /* enum psd_topology */
	unsigned nodes;	   /* worker nodes */
	unsigned workers_per_node;
	unsigned workers;   /* total; the last node may hold fewer */
	unsigned servers;   /* separate server nodes, 0: none */
	double send_bps;    /* capacity of a node's way out: min(link * payload, transport) */
	double receive_bps; /* and in: min(link * payload, transport after incast) */
	double latency_sec; /* of links between nodes, one way; modelled by callers as a delay, links get zero (no RTT
			       bias) */
	double host_latency_sec;     /* what the ends add to it, whatever the topology; no part of what is written */
	double local_bps;	     /* of a worker's link inside its node, each way; 0: unlimited */
	double local_latency_sec;    /* between workers of a node, modelled by callers as a delay */
	unsigned workers_per_switch; /* of a node; 0: no switches */
	double between_bps;	     /* of a switch's uplink, each way; what leaves the node passes it, too */
	unsigned nodes_per_rack;
	double oversubscription_ratio;
	double link_bps;  /* payload of a link: rack and fat-tree uplinks derive from it */
	const char *path; /* PSD_TOPOLOGY_PLATFORM: SimGrid XML of the user */
};

typedef void (*psd_wake_fn)(void *context, uint64_t tag);

/* Starts SimGrid with this platform; wake(context, cookie) is called for each completion. Hosts of a user's file are
 * numbered in natural order of their names. *platform may go afterwards, but not its path. PSD_EINVAL: the platform is
 * bad (one line, SimGrid's words), PSD_ERUN: SimGrid gave up. SimGrid may abort() on some bad XML: callers run
 * psd_platform_check() before. */
enum psd_status psd_network_open(const struct psd_platform *platform, psd_wake_fn wake, void *context,
				 struct psd_error *err) PSD_MUST_CHECK;
double psd_network_now_sec(void);
/* bytes leave host `from` now; wakes when the last has arrived (no latency). from != to; bytes 0 completes in this
 * instant. A way that does not exist or is down ends the run with PSD_ERUN. */
void psd_network_transfer(unsigned from, unsigned to, uint64_t bytes, uint64_t tag);
/* Wakes at now + delay_sec (>= 0), also in this instant. */
void psd_network_timer(double delay_sec, uint64_t tag);
/* One-way latency between two hosts: 0 inside a host, local inside a node, the platform's and what the ends add between
 * nodes (a user's XML: its route's, as the file has it, and what the ends add between the same nodes as below). */
double psd_network_latency_sec(unsigned from, unsigned to);
/* Scales the capacity of a node's link, both ways, to ratio (> 0) of what it was at the start. Transfers under way
 * change speed too, except that none gets faster than its links were at ratio 1. User platforms: the first and the last
 * link of the ways of the node's first host; no-op without one. */
void psd_network_scale_link(unsigned node, double ratio);
/* Runs until nothing is left to do or psd_network_stop() was called; may be called again. PSD_ERUN: a transfer failed
 * or SimGrid gave up. After psd_network_stop() no further callback comes before the next run. */
enum psd_status psd_network_run(struct psd_error *err) PSD_MUST_CHECK;
void psd_network_stop(void);
/* What SimGrid has done so far to find the capacities of transfers, in events. */
uint64_t psd_network_work(void);

/* Loads the platform in a child process, so that a crash or abort of SimGrid becomes PSD_EINVAL and one line
 * "platform.xml:LINE: words"; also PSD_EINVAL if that takes longer than 30 s. Generated platforms: PSD_OK without a
 * look. */
enum psd_status psd_platform_check(const struct psd_platform *platform, struct psd_error *err) PSD_MUST_CHECK;

/* Writes the generated platform as SimGrid XML (for `psd-sim platform`), latencies included: half of one on a node's
 * way out, half on its way in. Anything but a star of single workers lists the way of each pair of hosts; PSD_EINVAL
 * beyond 512 hosts of those, or for a user's platform. PSD_EFILE: `out` cannot be written. */
enum psd_status psd_platform_write(FILE *out, const struct psd_platform *platform,
				   struct psd_error *err) PSD_MUST_CHECK;

#endif
