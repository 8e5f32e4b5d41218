/* SimGrid behind a C header: hosts, transfers that share links max-min fairly, timers, a clock. A process has one
 * network, because SimGrid is a singleton, so callers fork per sweep point. Everything runs in one thread. Callbacks
 * report completions and may start transfers and timers. Events at one date have a fixed order, so that runs repeat
 * exactly: timers in the order of their start, then transfers in the order of theirs. */
#ifndef PSD_SIM_NETWORK_H
#define PSD_SIM_NETWORK_H

#include <stdint.h>
#include <stdio.h>

#include "engine/base/error.h"

/* A platform to generate. Worker w is host w and sits on node w / workers_per_node. Server s, if separate, is host
 * n_workers + s on its own node n_nodes + s. */
struct psd_platform {
	unsigned topology; /* enum psd_topology */
	unsigned nodes;	   /* worker nodes */
	unsigned workers_per_node;
	unsigned workers;   /* total; the last node may hold fewer */
	unsigned servers;   /* separate server nodes, 0: none */
	double send_bps;    /* capacity of a node's output: min(link * payload, transport) */
	double receive_bps; /* capacity of a node's input: min(link * payload, transport after incast) */
	/* one way, between nodes; callers model it as a delay, links get none (no bias by round-trip time) */
	double latency_sec;
	double host_latency_sec;  /* latency that the software adds at both ends, for any topology; not part of XML */
	double local_bps;	  /* rate of a worker's link inside its node, each way; 0: unlimited */
	double local_latency_sec; /* between workers of a node; callers model it as a delay */
	unsigned workers_per_switch; /* 0: a node has no switches */
	double between_bps;	     /* rate of a switch's uplink, each way; data that leaves the node passes it, too */
	unsigned nodes_per_rack;
	double oversubscription_ratio;
	const uint64_t *servers_in; /* racks of the servers, as in struct psd_layout */
	unsigned n_servers_in;
	double link_bps;  /* payload rate of a link; uplinks of racks and fat trees derive from it */
	const char *path; /* a user's SimGrid XML, for PSD_TOPOLOGY_PLATFORM */
};

typedef void (*psd_wake_fn)(void *context, uint64_t tag);

/* Starts SimGrid with this platform; wake(context, tag) is called for each completion. Hosts of a user's file are
 * numbered in natural order of their names. The caller may free *platform afterwards, but not its path. Returns
 * PSD_EINVAL for a bad platform (one line of SimGrid's), or PSD_ERUN if SimGrid fails. SimGrid may abort() on bad XML,
 * so call psd_platform_check() before. */
enum psd_status psd_network_open(const struct psd_platform *platform, psd_wake_fn wake, void *context,
				 struct psd_error *err) PSD_MUST_CHECK;
double psd_network_now_sec(void);
/* Sends bytes from a host now and wakes when the last one has arrived, without latency. from != to; 0 bytes arrive at
 * once. A route that is missing or down ends the run with PSD_ERUN. */
void psd_network_transfer(unsigned from, unsigned to, uint64_t bytes, uint64_t tag);
/* Wakes at now + delay_sec (>= 0), possibly at this date. */
void psd_network_timer(double delay_sec, uint64_t tag);
/* One-way latency between two hosts: 0 inside a host, local inside a node; between nodes that of the network plus that
 * of the software at both ends. A user's XML gives the latency of its route instead. */
double psd_network_latency_sec(unsigned from, unsigned to);
/* Scales a node's link, both ways, to ratio (> 0) of its capacity at the start. Transfers under way change speed too,
 * but none gets faster than its links were at ratio 1. On a user's platform this changes the first and the last link of
 * the routes of the node's first host. */
void psd_network_scale_link(unsigned node, double ratio);
/* Runs until no work is left or psd_network_stop() was called; may be called again. Returns PSD_ERUN if a transfer or
 * SimGrid fails. After psd_network_stop() no callback comes before the next run. */
enum psd_status psd_network_run(struct psd_error *err) PSD_MUST_CHECK;
void psd_network_stop(void);
/* SimGrid's work so far to find the rates of transfers, in events. */
uint64_t psd_network_work(void);

/* Loads the platform in a child process, so that a crash of SimGrid becomes PSD_EINVAL and one line "platform.xml:LINE:
 * words". Loading for more than 30 s is PSD_EINVAL, too. Generated platforms are not checked: PSD_OK. */
enum psd_status psd_platform_check(const struct psd_platform *platform, struct psd_error *err) PSD_MUST_CHECK;

/* Writes the generated platform as SimGrid XML for `psd-sim platform`. Half of a latency is on a node's output, half on
 * its input. Any topology but a star of single workers lists the route of each pair of hosts. Returns PSD_EINVAL for a
 * user's platform and for more than 512 hosts with listed routes, PSD_EFILE if `out` cannot be written. */
enum psd_status psd_platform_write(FILE *out, const struct psd_platform *platform,
				   struct psd_error *err) PSD_MUST_CHECK;

#endif
