/* Progressive filling over the ports of a few host classes. */
#include "engine/estimate/fluid.h"

#include <math.h>

static bool is_open(const struct psd_fluid_flow *flow)
{
	return flow->rate_bps < 0.0;
}

/* The smallest share per flow of the flow's two ports. */
static double share_of(const struct psd_fluid_flow *flow, const struct psd_fluid_port *ports)
{
	return fmin(ports[flow->out].left_bps / ports[flow->out].open_flows,
		    ports[flow->in].left_bps / ports[flow->in].open_flows);
}

static void open_port(struct psd_fluid_port *port)
{
	port->left_bps = port->rate_bps;
	port->open_flows = 0.0;
}

static void take(struct psd_fluid_port *port, double flows, double share_bps)
{
	port->left_bps = fmax(0.0, port->left_bps - share_bps * flows);
	port->open_flows -= flows;
}

void psd_fluid_share(struct psd_fluid_flow *flows, unsigned n_flows, struct psd_fluid_port *ports)
{
	const double tolerance = 1.0 + 1e-12; /* two ports at one share freeze together */
	unsigned n_open = n_flows;

	for (unsigned f = 0; f < n_flows; f++) {
		flows[f].rate_bps = -1.0;
		open_port(&ports[flows[f].out]);
		open_port(&ports[flows[f].in]);
	}
	for (unsigned f = 0; f < n_flows; f++) {
		ports[flows[f].out].open_flows += flows[f].flows_out;
		ports[flows[f].in].open_flows += flows[f].flows_in;
	}
	while (n_open > 0) {
		double share_bps = INFINITY;

		for (unsigned f = 0; f < n_flows; f++)
			if (is_open(&flows[f]))
				share_bps = fmin(share_bps, share_of(&flows[f], ports));
		for (unsigned f = 0; f < n_flows; f++)
			flows[f].is_frozen_now =
				is_open(&flows[f]) && share_of(&flows[f], ports) <= share_bps * tolerance;
		for (unsigned f = 0; f < n_flows; f++) {
			if (!flows[f].is_frozen_now)
				continue;
			flows[f].rate_bps = share_bps;
			take(&ports[flows[f].out], flows[f].flows_out, share_bps);
			take(&ports[flows[f].in], flows[f].flows_in, share_bps);
			n_open--;
		}
	}
}

double psd_fluid_next_end_sec(const struct psd_fluid_flow *flows, unsigned n_flows)
{
	double end_sec = INFINITY;
	for (unsigned f = 0; f < n_flows; f++)
		end_sec = fmin(end_sec, flows[f].left_bits / flows[f].rate_bps);
	return end_sec;
}
