/* Progressive filling over ports, each of which may stand for several. */
#include "engine/schedules/fluid.h"

#include <assert.h>
#include <math.h>

static bool is_open(const struct psd_fluid_flow *flow)
{
	return flow->rate_bps < 0.0;
}

/* The smallest share per flow of the flow's ports. */
static double share_of(const struct psd_fluid_flow *flow, const struct psd_fluid_port *ports)
{
	double share_bps = INFINITY;

	for (unsigned u = 0; u < flow->n_uses; u++) {
		const struct psd_fluid_port *port = &ports[flow->uses[u].port];

		share_bps = fmin(share_bps, port->left_bps / port->open_flows);
	}
	return share_bps;
}

static void open_ports(const struct psd_fluid_flow *flows, unsigned n_flows, struct psd_fluid_port *ports)
{
	for (unsigned f = 0; f < n_flows; f++)
		for (unsigned u = 0; u < flows[f].n_uses; u++) {
			struct psd_fluid_port *port = &ports[flows[f].uses[u].port];

			port->left_bps = port->rate_bps;
			port->open_flows = 0.0;
		}
	for (unsigned f = 0; f < n_flows; f++)
		for (unsigned u = 0; u < flows[f].n_uses; u++)
			ports[flows[f].uses[u].port].open_flows += flows[f].uses[u].flows;
}

static void take(const struct psd_fluid_flow *flow, struct psd_fluid_port *ports)
{
	for (unsigned u = 0; u < flow->n_uses; u++) {
		struct psd_fluid_port *port = &ports[flow->uses[u].port];

		port->left_bps = fmax(0.0, port->left_bps - flow->rate_bps * flow->uses[u].flows);
		port->open_flows -= flow->uses[u].flows;
	}
}

void psd_fluid_add_use(struct psd_fluid_flow *flow, unsigned port, double flows)
{
	assert(flow->n_uses < PSD_FLUID_MOST_USES);
	flow->uses[flow->n_uses++] = (struct psd_fluid_use){port, flows};
}

void psd_fluid_share(struct psd_fluid_flow *flows, unsigned n_flows, struct psd_fluid_port *ports)
{
	const double tolerance = 1.0 + 1e-12; /* two ports at one share freeze together */
	unsigned n_open = n_flows;

	open_ports(flows, n_flows, ports);
	for (unsigned f = 0; f < n_flows; f++)
		flows[f].rate_bps = -1.0;
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
			take(&flows[f], ports);
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
