/* Max-min fair sharing of ports between classes of alike hosts: what a non-blocking switch does to parallel flows, in
 * closed form per class. A flow here stands for all flows from the members of one class to those of another, which
 * start together and run at one rate. */
#ifndef PSD_FLUID_H
#define PSD_FLUID_H

#include <stdbool.h>
#include <stdint.h>

struct psd_fluid_flow {
	unsigned out, in;   /* ports */
	double flows_out;   /* parallel flows that it stands for out of each such port */
	double flows_in;    /* and into each */
	double left_bits;   /* of each of them */
	double rate_bps;    /* of each of them, filled by psd_fluid_share() */
	uint64_t cookie;    /* the caller's */
	bool is_frozen_now; /* scratch of psd_fluid_share() */
};

/* One direction of a link, alike for all that the port stands for. */
struct psd_fluid_port {
	double rate_bps;
	double left_bps;   /* scratch, as is the next */
	double open_flows; /* rate not settled yet */
};

/* Sets every flow's rate by progressive filling: the port with the smallest share per flow freezes its flows, and so
 * on. Pure, any thread. */
void psd_fluid_share(struct psd_fluid_flow *flows, unsigned n_flows, struct psd_fluid_port *ports);
/* Seconds until the first flow ends at the present rates; infinity when there is none. */
double psd_fluid_next_end_sec(const struct psd_fluid_flow *flows, unsigned n_flows);

#endif
