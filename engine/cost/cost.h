/* Seconds of transfers, messages and rebuilds, and the published rules between factors and matrices. Pure functions,
 * any thread. */
#ifndef PSD_COST_H
#define PSD_COST_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/collectives/collective.h"
#include "engine/scenario/scenario.h"

/* Data that a method moves: a dense (M,N) gradient of `elements` values; for a linear layer also its factors, K (M+N)
 * values. */
struct psd_subject {
	uint64_t elements; /* number of dense values: weight and, if they travel together, bias */
	uint64_t rows;	   /* M, rows of the gradient; 0: the layer has no factors */
	uint64_t columns;  /* N, columns of the gradient */
	uint32_t batch;	   /* K, samples per worker */
	unsigned value_bytes;
};

/* Number of values in one worker's factors: K (M+N). */
uint64_t psd_subject_factors(const struct psd_subject *subject);

/* Published rules that compare bytes sent; each node counts as one worker. P workers, S shards, K samples per worker,
 * an M x N matrix. True when factors sent peer to peer cost no more bytes. hybrid (ATC'17 section 4.1): 2 K (P-1)(M+N)
 * <= 2 M N (P+S-2)/S. SACP (arXiv 1512.06216): (P-1)^2 K (M+N) <= P K (M+N) + P M N. Exact while the products stay
 * below 2^53; false when there are no factors. */
bool psd_cost_hybrid_takes_sfb(const struct psd_subject *subject, unsigned workers, unsigned shards);
bool psd_cost_sacp_takes_sfb(const struct psd_subject *subject, unsigned workers);

/* Rates and delays of one system on one cluster, for estimate, plan and simulation. */
struct psd_rates {
	double send_bps;    /* rate out of one node, bits per second: min(link * payload * share, transport) */
	double receive_bps; /* rate into one node: min(link * payload, transport / (1 + incast * senders)) */
	double link_bps;    /* rate of a node's link without headers: link * payload */
	double local_bps;   /* rate inside a node: min(local, host's local); infinity: transfers there take no time */
	double between_bps; /* rate of the uplink of a switch inside a node; infinity: no switches */
	double uplink_bps;  /* rate of each uplink of a leaf switch; infinity: one switch connects all nodes */
	unsigned spines;    /* number of uplinks of a leaf switch, >= 1 */
	double latency_sec; /* one-way latency between nodes: network + host */
	double local_latency_sec; /* latency between workers of one node */
	double agree_sec; /* time before each stepwise transfer that may overlap with layers, until all are ready */
	double gemm_flops_per_sec;
	const struct psd_host_costs *host;
	struct psd_machine machine; /* machine of the nodes; its cores limit all-reduces inside a node, if given */
};

/* Link rate for planning, bits per second, where the user's own platform file defines the links. */
#define PSD_UNLIMITED_BPS 1e18

/* Returns the number of uplinks of a leaf switch. With racks it is one, to the core. In a fat tree the number is chosen
 * so that each uplink is about as fast as a node's link. */
unsigned psd_cost_spines(enum psd_topology topology, unsigned nodes_per_rack, double oversubscription_ratio);

/* Computes the rates. fan_in: number of senders to one node, from psd_payload_fan_in(). */
struct psd_rates psd_rates_make(const struct psd_host_costs *host, const struct psd_network *network, double link_bps,
				unsigned fan_in, double gemm_flops_per_sec);

/* Rate of all uplinks of a rack together, for traffic that leaves it, or comes in: its nodes receive through the
 * uplinks in turn, which may make some busier than others. Only where there are racks. */
double psd_cost_rack_bps(const struct psd_layout *layout, const struct psd_rates *rates, bool is_in);
/* Seconds that the network needs for one operation when all nodes start it together and nothing else moves: bytes of
 * the busiest port over its rate (worker ports, shard ports, local links, uplinks of switches, and of racks if all is
 * sent at once), without latency and waits between steps. Exact on a non-blocking switch. */
double psd_cost_transfer_sec(const struct psd_payload *payload, const struct psd_layout *layout,
			     const struct psd_rates *rates);
/* Seconds of a stepwise transfer beyond the network's: until all members agree to begin, then by its size class call +
 * steps * step and the slowdown of the link. */
double psd_cost_class_sec(const struct psd_payload *payload, const struct psd_layout *layout,
			  const struct psd_rates *rates);
/* Seconds of a stepwise transfer in two parts: *transfer_sec as psd_cost_transfer_sec(), and *delay_sec by its size
 * class and the waits of its steps; NaN when memory runs out. Valid where all members begin together and the links of
 * all nodes are alike: not with stragglers. */
void psd_cost_collective(const struct psd_payload *payload, const struct psd_layout *layout,
			 const struct psd_rates *rates, double *transfer_sec, double *delay_sec);
/* Delay of a transfer beyond the time of its flows, which a simulation transfers instead of its steps. Behind switches
 * and between racks the flows may take longer than psd_cost_transfer_sec(). */
double psd_cost_flows_delay_sec(const struct psd_payload *payload, const struct psd_layout *layout,
				const struct psd_rates *rates);

/* Processor work at one end of a connection: seconds of one core, and the largest share of a core that it needs while
 * the link is busy with the same bytes. Inside a node (is_near) both ends copy through memory instead of sockets, which
 * takes no longer than the link there, if its rate is known. Both are 0 on a machine without such costs. n_messages:
 * only messages that follow a pause, since otherwise both ends are active already. */
struct psd_socket_work {
	double sec, most_cores;
};

struct psd_socket_work psd_cost_socket_work(const struct psd_machine *machine, const struct psd_rates *rates,
					    double bytes, double n_messages, bool is_near);

/* Seconds of these bytes at a rate from `host` or `machine`; 0 where the scenario gives no rate. */
double psd_cost_bytes_sec(double bytes, double rate_bps);

/* Rate at which a worker's device converts values: the host's, or that of its updates. */
double psd_cost_convert_bps(const struct psd_host_costs *host);

/* FLOPs to rebuild a gradient from the factors of `senders` workers: 2 K senders M N. */
double psd_cost_rebuild_flops(const struct psd_subject *subject, unsigned senders);

#endif
