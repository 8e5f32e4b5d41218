/* Max-min fair sharing of ports between simultaneous flows: the effect of switches that do not block. A flow, or a
 * port, may represent several equal ones that start together and have one rate. */
#ifndef PSD_FLUID_H
#define PSD_FLUID_H

#include <stdbool.h>
#include <stdint.h>

/* Largest number of ports on a flow's path: out of a device, its switch and its node, into those of another; and the
 * cores of both ends. */
enum { PSD_FLUID_MOST_USES = 10 };

struct psd_fluid_use {
	unsigned port;
	double flows; /* number of parallel flows through each such port, or seconds of the port per bit */
};

struct psd_fluid_flow {
	struct psd_fluid_use uses[PSD_FLUID_MOST_USES];
	unsigned n_uses;
	double left_bits; /* bits that each flow still has to send */
	double rate_bps;  /* rate of each flow, filled by psd_fluid_share() */
	uint64_t tag;	  /* tag by which the caller knows the flow */
	double share_bps; /* scratch memory of psd_fluid_share(), like the next */
	int next_open;
};

/* Port: one direction of a link, or of several equal links. */
struct psd_fluid_port {
	double rate_bps;
	double left_bps;   /* scratch memory: rate not given to flows yet; so are the next two */
	double open_flows; /* number of flows whose rate is not known yet */
	double share_bps;  /* equal share of each of these flows */
};

/* Adds a port to a flow's path. flows: number of flows for which this one counts on the port. */
void psd_fluid_add_use(struct psd_fluid_flow *flow, unsigned port, double flows);
/* Sets every flow's rate by progressive filling: the port with the smallest share per flow freezes its flows, and so
 * on. Pure, any thread. */
void psd_fluid_share(struct psd_fluid_flow *flows, unsigned n_flows, struct psd_fluid_port *ports);
/* Seconds until the first flow ends at the present rates; infinity if there is none. */
double psd_fluid_next_end_sec(const struct psd_fluid_flow *flows, unsigned n_flows);

#endif
