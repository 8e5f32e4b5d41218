/* Times of transfers, messages and rebuilt gradients, in seconds, and the published rules that choose between factors
 * and whole gradients. Pure functions, any thread. */
#ifndef PSD_COST_H
#define PSD_COST_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/collectives/collective.h"
#include "engine/scenario/scenario.h"

/* Data of an item (bucket) that a method sends: a dense M x N gradient with `elements` values. For a linear layer,
 * methods may send its factors instead, K (M+N) values per worker, with K samples per worker. */
struct psd_subject {
	/* number of values of the dense gradient, biases included if they are sent with their weight */
	uint64_t elements;
	uint64_t rows;	  /* M, rows of the gradient; 0: the gradient has no factors */
	uint64_t columns; /* N, columns of the gradient */
	uint32_t batch;	  /* K, samples per worker */
	unsigned value_bytes;
};

/* Returns the number of values in one worker's factors: K (M+N). */
uint64_t psd_subject_factors(const struct psd_subject *subject);

/* Published rules that choose by bytes sent. P workers, S shards, K samples per worker, an M x N gradient; each node
 * counts as one worker. True if factors sent from worker to worker need no more bytes than whole gradients through
 * servers. hybrid (ATC'17 section 4.1): 2 K (P-1)(M+N) <= 2 M N (P+S-2)/S. SACP (arXiv 1512.06216): (P-1)^2 K (M+N) <=
 * P K (M+N) + P M N. Exact while the products stay below 2^53. False if the gradient has no factors. */
bool psd_cost_hybrid_takes_sfb(const struct psd_subject *subject, unsigned workers, unsigned shards);
bool psd_cost_sacp_takes_sfb(const struct psd_subject *subject, unsigned workers);

/* Rates and delays of one system on one cluster, for estimate, plan and simulation. The formulas name fields of struct
 * psd_network and struct psd_host_costs. */
struct psd_rates {
	/* Rate out of a node, bits per second: min(link rate * payload_ratio * share_ratio, transport_bps). */
	double send_bps;
	/* Rate into a node, bits per second: min(link rate * payload_ratio * share_ratio, transport_bps / (1 +
	 * incast_ratio * senders)). */
	double receive_bps;
	/* rate of a node's link without packet headers, bits per second: link rate * payload_ratio */
	double link_bps;
	/* Rate of a worker's link inside its node, bits per second: the smaller one of psd_network.local_bps and
	 * psd_host_costs.local_bps. Infinity: transfers there take no time. */
	double local_bps;
	/* rate of the uplink of a PCIe switch inside a node, bits per second; infinity: nodes have no such switches */
	double between_bps;
	/* rate of each uplink of a leaf switch, bits per second; infinity: one switch connects all nodes */
	double uplink_bps;
	unsigned spines; /* number of uplinks of a leaf switch, >= 1 */
	/* one-way latency between nodes, seconds: the network's plus the software's */
	double latency_sec;
	double local_latency_sec; /* one-way latency between workers of one node, seconds */
	/* Time before each stepwise transfer in which workers agree that all are ready for it, seconds. 0 with a
	 * sequential schedule, where transfers do not overlap with layers. */
	double agree_sec;
	double gemm_flops_per_sec;
	const struct psd_host_costs *host;
	/* Processor cores of the nodes (key `cluster.machine`). If given, they limit all-reduces inside a node. */
	struct psd_machine machine;
};

/* Link rate for planning if the user's own platform file defines the links, bits per second: so large that transfers
 * take nearly no time. */
#define PSD_UNLIMITED_BPS 1e18

/* Returns the number of uplinks of a leaf switch. With topology racks it is 1. In a fat tree it is the number with
 * which each uplink is about as fast as a node's link. */
unsigned psd_cost_spines(enum psd_topology topology, unsigned nodes_per_rack, double oversubscription_ratio);

/* Share of a budget that payload has: 1448 bytes of a packet of 1500, with which a link carries 1514, and half of an
 * acknowledgement of 66 bytes, since one answers two packets. */
#define PSD_BUDGET_PAYLOAD_RATIO (1448.0 / (1514.0 + 66.0 / 2))

/* Returns the payload rate that a node may use by the system's budget, bits per second; INFINITY: the system has no
 * budget. */
double psd_cost_budget_bps(const struct psd_system *system);

/* Computes the rates. link_bps: rate of a node's link; fan_in: number of nodes that send to one node at the same time,
 * from psd_payload_fan_in(); gemm_flops_per_sec: rate at which gradients are rebuilt from factors. */
struct psd_rates psd_rates_make(const struct psd_host_costs *host, const struct psd_network *network, double link_bps,
				unsigned fan_in, double gemm_flops_per_sec);

/* Returns the rate of all uplinks of a rack together, for traffic out of the rack, or into it if is_in. Into the rack
 * it may be less: uplinks are assigned to receiving nodes by number, so one may serve more nodes than another. Only
 * for layouts with racks. */
double psd_cost_rack_bps(const struct psd_layout *layout, const struct psd_rates *rates, bool is_in);
/* Loads of the busiest links in one transfer. They follow from the payload and the layout, and hold at all rates. */
struct psd_loads {
	/* Bytes of the node that sends most, and of the node that receives most. If a node's link has another rate than
	 * the cluster's, its bytes are multiplied by the cluster's rate and divided by its own. */
	struct psd_traffic node;
	struct psd_traffic rack;  /* the same for racks; 0 if the collective sends in steps */
	struct psd_inside inside; /* elements on the busiest links inside a node */
	unsigned value_bytes;	  /* bytes of one element */
};

/* Returns the seconds of a node's or rack's traffic over links with these rates, bits per second, out of it and into
 * it. Pure. */
double psd_cost_traffic_sec(struct psd_traffic traffic, double out_bps, double in_bps);
/* Returns the loads of a payload. has_local_rate: workers' links inside a node have a rate; false: the elements on
 * them need no time and are not counted. Pure. */
struct psd_loads psd_cost_loads(const struct psd_payload *payload, const struct psd_layout *layout,
				bool has_local_rate);
/* Returns the seconds of one transfer with these loads if all nodes begin together and nothing else is sent: bytes of
 * the busiest port divided by its rate. Ports are links of nodes and workers, uplinks of switches inside nodes and, if
 * the collective sends all at once, uplinks of racks. Latencies and waits between steps are not included. Exact on
 * switches that do not block. */
double psd_cost_loads_sec(const struct psd_loads *loads, const struct psd_layout *layout,
			  const struct psd_rates *rates);
/* Returns the seconds of a stepwise transfer in addition to psd_cost_loads_sec(), without latencies. They are the
 * time to agree, and the costs of the transfer's size class: call_sec, step_sec for each step, and the slowdown of the
 * link. */
double psd_cost_class_sec(const struct psd_payload *payload, const struct psd_layout *layout,
			  const struct psd_rates *rates);
/* Returns the seconds of a stepwise transfer in addition to psd_cost_loads_sec(): the costs of its size class, and
 * latencies and waits of its steps; NaN: out of memory. Valid only if all members begin together and all nodes have
 * equal links, so not with stragglers. */
double psd_cost_delay_sec(const struct psd_payload *payload, const struct psd_loads *loads,
			  const struct psd_layout *layout, const struct psd_rates *rates);
/* Returns the seconds that a stepwise transfer takes after its flows have ended, for a simulation of flows instead of
 * steps. The flows themselves may take longer than psd_cost_loads_sec() behind switches of nodes and between racks;
 * the delay is then less. */
double psd_cost_flows_delay_sec(const struct psd_payload *payload, const struct psd_layout *layout,
				const struct psd_rates *rates);

/* Processor work at the sender or the receiver of messages. sec: seconds of one core. most_cores: largest share of a
 * core in use, if the work lasts as long as the bytes need on the link. */
struct psd_socket_work {
	double sec, most_cores;
};

/* Returns the processor work at the sender, or equally at the receiver, for n_messages messages with `bytes` bytes in
 * total. n_messages counts only messages after a pause; for the others both ends are active already. is_near: the
 * messages stay inside a node and are copied through memory instead of sockets. Then the work takes at most as long as
 * the transfer on the link. Both results are 0 if the machine has no such costs. */
struct psd_socket_work psd_cost_socket_work(const struct psd_machine *machine, const struct psd_rates *rates,
					    double bytes, double n_messages, bool is_near);

/* Returns the seconds of `bytes` bytes at a rate of struct psd_host_costs or struct psd_machine; 0 if the rate
 * is 0. */
double psd_cost_bytes_sec(double bytes, double rate_bps);

/* Returns the rate at which a worker's device converts values, bits per second: convert_bps, or update_bps if
 * convert_bps is not given. 0: conversions take no time. */
double psd_cost_convert_bps(const struct psd_host_costs *host);

/* Returns the FLOPs that rebuild a gradient from the factors of `senders` workers: 2 K senders M N. */
double psd_cost_rebuild_flops(const struct psd_subject *subject, unsigned senders);

#endif
