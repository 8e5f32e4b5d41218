/* Max-min fair sharing of ports between flows: what switches that do not block do to transfers that are under way at a
 * time. A flow may stand for several that start together, are alike and run at one rate, as may a port. */
#ifndef PSD_FLUID_H
#define PSD_FLUID_H

#include <stdbool.h>
#include <stdint.h>

/* Ports on the longest way: out of a device, its switch and its node, and into those of another; either end, and the
 * cores of both. */
enum { PSD_FLUID_MOST_USES = 10 };

struct psd_fluid_use {
	unsigned port;
	double flows; /* parallel flows through each such port, or what a bit is of it */
};

struct psd_fluid_flow {
	struct psd_fluid_use uses[PSD_FLUID_MOST_USES];
	unsigned n_uses;
	double left_bits; /* of each of the flows that it stands for */
	double rate_bps;  /* of each of them, filled by psd_fluid_share() */
	uint64_t tag;	  /* the caller's */
	double share_bps; /* scratch of psd_fluid_share(), as is the next */
	int next_open;
};

/* One direction of a link, alike for all that the port stands for. */
struct psd_fluid_port {
	double rate_bps;
	double left_bps;   /* scratch, as are the next two */
	double open_flows; /* rate not settled yet */
	double share_bps;  /* of each of those */
};

/* One more port on a flow's way. */
void psd_fluid_add_use(struct psd_fluid_flow *flow, unsigned port, double flows);
/* Sets every flow's rate by progressive filling: the port with the smallest share per flow freezes its flows, and so
 * on. Pure, any thread. */
void psd_fluid_share(struct psd_fluid_flow *flows, unsigned n_flows, struct psd_fluid_port *ports);
/* Seconds until the first flow ends at the present rates; infinity when there is none. */
double psd_fluid_next_end_sec(const struct psd_fluid_flow *flows, unsigned n_flows);

#endif
