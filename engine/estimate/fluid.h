/* Max-min fair sharing of ports between classes of alike hosts: what a non-blocking switch does to parallel flows, in
 * closed form per class. A flow here stands for all flows from the members of one class to those of another, which
 * start together and run at one rate. */
#ifndef PSD_FLUID_H
#define PSD_FLUID_H

#include <stdbool.h>

struct psd_fluid_flow {
	unsigned from, to;	   /* classes */
	double flows_per_sender;   /* parallel flows out of each member of `from` */
	double flows_per_receiver; /* and into each member of `to` */
	double left_bits;	   /* of each of them */
	double rate_bps;	   /* of each of them, filled by psd_fluid_share() */
	bool is_frozen_now;	   /* scratch of psd_fluid_share() */
};

/* One direction of a host's link while rates are shared out. */
struct psd_fluid_port {
	double left_bps;
	double open_flows; /* of one member: rate not settled yet */
};

/* Sets every flow's rate by progressive filling: the port with the smallest share per flow freezes its flows, and so
 * on. Each class has a port out of send_bps and one in of receive_bps; out and in: scratch, one port for each class.
 * Pure, any thread. */
void psd_fluid_share(struct psd_fluid_flow *flows, unsigned n_flows, struct psd_fluid_port *out,
		     struct psd_fluid_port *in, double send_bps, double receive_bps);
/* Seconds until the first flow ends at the present rates; infinity when there is none. */
double psd_fluid_next_end_sec(const struct psd_fluid_flow *flows, unsigned n_flows);

#endif
