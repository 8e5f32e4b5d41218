/* Max-min fair sharing of ports between simultaneous flows: the effect of switches that do not block. A flow, or a
 * port, may represent several equal ones that start together and have one rate. */
#ifndef PSD_FLUID_H
#define PSD_FLUID_H

#include <stdbool.h>
#include <stdint.h>

/* Ports on the longest path: out of a device, its switch, its node and its rack, into those of another; both ends, and
 * the cores of both. */
enum { PSD_FLUID_MOST_USES = 12 };

struct psd_fluid_use {
	unsigned port;
	double flows; /* parallel flows through each such port, or seconds of the port per bit */
};

struct psd_fluid_flow {
	struct psd_fluid_use uses[PSD_FLUID_MOST_USES];
	unsigned n_uses;
	double left_bits; /* bits left of each flow */
	double rate_bps;  /* rate of each flow, filled by psd_fluid_share() */
	uint64_t tag;	  /* the caller's */
	double share_bps; /* scratch of psd_fluid_share(), like the next */
	int next_open;
};

/* One direction of a link, or of several equal ones. */
struct psd_fluid_port {
	double rate_bps;
	double left_bps;   /* scratch, like the next two */
	double open_flows; /* flows whose rate is not known yet */
	double share_bps;  /* share of each of these */
};

/* Adds a port to a flow's path. flows: the number of flows that this one counts for on the port. */
void psd_fluid_add_use(struct psd_fluid_flow *flow, unsigned port, double flows);
/* Sets every flow's rate by progressive filling: the port with the smallest share per flow freezes its flows, and so
 * on. Pure, any thread. */
void psd_fluid_share(struct psd_fluid_flow *flows, unsigned n_flows, struct psd_fluid_port *ports);
/* Seconds until the first flow ends at the present rates; infinity when there is none. */
double psd_fluid_next_end_sec(const struct psd_fluid_flow *flows, unsigned n_flows);

#endif
