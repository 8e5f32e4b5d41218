/* What transfers, messages and rebuilds take, and the published rules between factors and matrices. Pure functions, any
 * thread. */
#ifndef PSD_COST_H
#define PSD_COST_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/collectives/collective.h"
#include "engine/scenario/scenario.h"

/* What a method moves: a dense (M,N) gradient of `elements` values, and for an inner product the factors, K (M+N)
 * values. */
struct psd_subject {
	uint64_t elements; /* dense values: weight and, when they travel together, bias */
	uint64_t rows;	   /* M, 0 when there are no factors */
	uint64_t columns;  /* N */
	uint32_t batch;	   /* K, samples per worker */
	unsigned value_bytes;
};

/* Values of one worker's factors: K (M+N). */
uint64_t psd_subject_factors(const struct psd_subject *subject);

/* The bytes rules, as published: a node is a worker. True when factors should go peer to peer.
 * hybrid (ATC'17 section 4.1): 2 K (P-1)(M+N) <= 2 M N (P+S-2)/S.
 * SACP (arXiv 1512.06216): (P-1)^2 K (M+N) <= P K (M+N) + P M N. Exact while the products stay below 2^53; false when
 * there are no factors. */
bool psd_cost_hybrid_takes_sfb(const struct psd_subject *subject, unsigned workers, unsigned shards);
bool psd_cost_sacp_takes_sfb(const struct psd_subject *subject, unsigned workers);

/* Rates and delays of one system on one cluster: what estimate, plan and simulation derive time from. */
struct psd_rates {
	double send_bps;	  /* out of one node: min(link * payload, transport) */
	double receive_bps;	  /* into one node: min(link * payload, transport / (1 + incast * senders)) */
	double link_bps;	  /* link * payload */
	double local_bps;	  /* inside a node: min(local, host's local); infinity when free */
	double between_bps;	  /* of the uplink of a node's switch; infinity without */
	double latency_sec;	  /* one way, between nodes: network + host */
	double local_latency_sec; /* inside a node */
	double agree_sec;	  /* before each stepwise transfer that layers may run beside */
	double gemm_flops_per_sec;
	const struct psd_host_costs *host;
	struct psd_machine machine; /* its cores, if any, bound the steps of all-reduces inside a node */
};

/* A user's platform may leave the link rate to SimGrid: planning then takes the link as faster than any. */
#define PSD_UNLIMITED_BPS 1e18

/* fan_in: senders per receiving node, from psd_payload_fan_in(). */
struct psd_rates psd_rates_make(const struct psd_host_costs *host, const struct psd_network *network, double link_bps,
				unsigned fan_in, double gemm_flops_per_sec);

/* Seconds the network needs to carry one operation when all nodes start it together and nothing else moves: the busiest
 * port of the busiest node over its rate (worker ports, shard ports, local links, uplinks of switches). No latency, no
 * waiting between steps. Exact on a non-blocking switch. */
double psd_cost_transfer_sec(const struct psd_payload *payload, const struct psd_layout *layout,
			     const struct psd_rates *rates);
/* What a stepwise transfer takes beyond the network: until all agree to begin, and by its size class call + steps *
 * step and its slowdown of the link. */
double psd_cost_class_sec(const struct psd_payload *payload, const struct psd_layout *layout,
			  const struct psd_rates *rates);
/* All of a stepwise transfer: psd_cost_transfer_sec(), and the delay beyond that, its size class and what its steps
 * wait for. Holds where all members begin together and all links are alike: not between racks, nor with stragglers. A
 * delay that is not a number: out of memory. */
void psd_cost_collective(const struct psd_payload *payload, const struct psd_layout *layout,
			 const struct psd_rates *rates, double *transfer_sec, double *delay_sec);
/* The delay behind all its flows, which simulation carries out instead of its steps: behind switches they may take
 * longer than psd_cost_transfer_sec() says. */
double psd_cost_flows_delay_sec(const struct psd_payload *payload, const struct psd_layout *layout,
				const struct psd_rates *rates);

/* What an end of a connection does for messages: seconds of one core, and the most of a core that it needs for that
 * while the way is busy with them, the link or, is_near, the one inside a node. There ends copy through memory instead
 * of sockets, which takes them no longer than the way, if its rate is known. Both 0 where a machine moves them at once.
 * n_messages: of those that follow another of their sender at once none, for both ends are at it already. */
struct psd_socket_work {
	double sec, most_cores;
};

struct psd_socket_work psd_cost_socket_work(const struct psd_machine *machine, const struct psd_rates *rates,
					    double bytes, double n_messages, bool is_near);

/* Seconds of so many bytes at a rate of `host` or `machine`; 0 where the scenario states none. */
double psd_cost_bytes_sec(double bytes, double rate_bps);

/* FLOPs to rebuild the factors of `senders` workers: 2 K senders M N. */
double psd_cost_rebuild_flops(const struct psd_subject *subject, unsigned senders);

#endif
