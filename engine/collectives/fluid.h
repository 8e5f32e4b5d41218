/* Max-min fair sharing of ports by flows that run at the same time, as in a network whose switches do not block. One
 * struct may represent several equal flows that begin together, or several equal ports. */
#ifndef PSD_FLUID_H
#define PSD_FLUID_H

#include <stdbool.h>
#include <stdint.h>

/* Largest number of ports on the path of a flow. Out: device, PCIe switch, node, rack. In: rack, node, PCIe switch,
 * device. Further: one processor core at each end, and the pool of cores at each end. */
enum { PSD_FLUID_MOST_USES = 12 };

/* One port on the path of a flow. */
struct psd_fluid_use {
	unsigned port; /* index of the port in the array for psd_fluid_share() */
	/* Factor from the flow's rate to the rate at which it uses the port. For a link: number of equal flows that
	 * the struct represents. For processor cores: core seconds per bit. */
	double flows;
};

struct psd_fluid_flow {
	struct psd_fluid_use uses[PSD_FLUID_MOST_USES];
	unsigned n_uses;
	double left_bits; /* bits that the flow still has to send */
	double rate_bps;  /* rate of the flow, bits per second; set by psd_fluid_share() */
	uint64_t tag;	  /* number by which the caller recognises the flow */
	double share_bps; /* scratch memory of psd_fluid_share() */
	int next_open;	  /* scratch memory of psd_fluid_share() */
};

/* Port: capacity that flows share. It is one direction of a link, or a pool of processor cores. */
struct psd_fluid_port {
	double rate_bps;
	/* scratch memory of psd_fluid_share(): part of rate_bps that no flow has yet, bits per second */
	double left_bps;
	/* scratch memory of psd_fluid_share(): number of flows whose rate is not known yet */
	double open_flows;
	/* scratch memory of psd_fluid_share(): left_bps divided by open_flows, bits per second */
	double share_bps;
};

/* Adds a port to the end of a flow's path. port: index of the port; flows: as in struct psd_fluid_use. */
void psd_fluid_add_use(struct psd_fluid_flow *flow, unsigned port, double flows);
/* Sets rate_bps of all n_flows flows by progressive filling. It finds the port with the smallest share per flow, and
 * gives this rate to all flows of the port. It repeats this for the remaining flows. Pure, any thread. */
void psd_fluid_share(struct psd_fluid_flow *flows, unsigned n_flows, struct psd_fluid_port *ports);
/* Returns the seconds until the first of n_flows flows ends at their present rates (rate_bps); infinity if there are
 * no flows. */
double psd_fluid_next_end_sec(const struct psd_fluid_flow *flows, unsigned n_flows);

#endif
