/* Max-min fair sharing of ports between simultaneous flows: the effect of switches that do not block. A flow, or a
 * port, may represent several equal ones that start together and have one rate. */
#ifndef PSD_FLUID_H
#define PSD_FLUID_H

#include <stdbool.h>
#include <stdint.h>

/* Largest number of ports on a flow's path: out of a device, its switch, its node and its rack; into the rack, node,
 * switch and device of the receiver; the two ends; and the processor cores at both ends. */
enum { PSD_FLUID_MOST_USES = 12 };

/* Use of one port by a flow. */
struct psd_fluid_use {
	unsigned port; /* index of the port in the array of ports */
	/* factor on the flow's rate that the port carries: number of equal flows; for a port of processor cores, core
	 * seconds per bit */
	double flows;
};

struct psd_fluid_flow {
	struct psd_fluid_use uses[PSD_FLUID_MOST_USES];
	unsigned n_uses;
	double left_bits; /* bits that the flow still has to send */
	double rate_bps;  /* rate of the flow, filled by psd_fluid_share() */
	uint64_t tag;	  /* number by which the caller recognises the flow */
	double share_bps; /* scratch memory of psd_fluid_share() */
	int next_open;	  /* scratch memory of psd_fluid_share() */
};

/* Port: one direction of a link, or of several equal links. */
struct psd_fluid_port {
	double rate_bps;
	double left_bps;   /* scratch memory of psd_fluid_share(): capacity not yet given to flows */
	double open_flows; /* scratch memory: number of flows whose rate is not known yet */
	double share_bps;  /* scratch memory: equal share of left_bps for each of these flows */
};

/* Adds a port to a flow's path; `flows` as in struct psd_fluid_use. */
void psd_fluid_add_use(struct psd_fluid_flow *flow, unsigned port, double flows);
/* Sets every flow's rate_bps by progressive filling: the port with the smallest share per flow fixes the rates of its
 * flows; this repeats for the remaining flows. Pure, any thread. */
void psd_fluid_share(struct psd_fluid_flow *flows, unsigned n_flows, struct psd_fluid_port *ports);
/* Returns the seconds until the first flow ends at the present rates; infinity if there are no flows. */
double psd_fluid_next_end_sec(const struct psd_fluid_flow *flows, unsigned n_flows);

#endif
