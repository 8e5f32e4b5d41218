/* Progressive filling over ports, each of which may represent several. */
#include "engine/collectives/fluid.h"

#include <assert.h>
#include <math.h>

enum { NO_FLOW = -1 };

static void set_share(struct psd_fluid_port *port)
{
	port->share_bps = port->left_bps / port->open_flows;
}

/* Returns the smallest share per flow among the ports on the flow's path. */
static double share_of(const struct psd_fluid_flow *flow, const struct psd_fluid_port *ports)
{
	double share_bps = INFINITY;

	for (unsigned u = 0; u < flow->n_uses; u++) {
		const double of_port_bps = ports[flow->uses[u].port].share_bps;

		share_bps = of_port_bps < share_bps ? of_port_bps : share_bps;
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
	for (unsigned f = 0; f < n_flows; f++)
		for (unsigned u = 0; u < flows[f].n_uses; u++)
			set_share(&ports[flows[f].uses[u].port]);
}

static void take(const struct psd_fluid_flow *flow, struct psd_fluid_port *ports)
{
	for (unsigned u = 0; u < flow->n_uses; u++) {
		struct psd_fluid_port *port = &ports[flow->uses[u].port];
		const double left_bps = port->left_bps - flow->rate_bps * flow->uses[u].flows;

		port->left_bps = left_bps > 0.0 ? left_bps : 0.0;
		port->open_flows -= flow->uses[u].flows;
		set_share(port);
	}
}

/* Returns the smallest share of all flows whose rate is not known yet, and stores each flow's share in its
 * share_bps. */
static double smallest_share(struct psd_fluid_flow *flows, int first_open, const struct psd_fluid_port *ports)
{
	double share_bps = INFINITY;

	for (int f = first_open; f != NO_FLOW; f = flows[f].next_open) {
		flows[f].share_bps = share_of(&flows[f], ports);
		share_bps = flows[f].share_bps < share_bps ? flows[f].share_bps : share_bps;
	}
	return share_bps;
}

void psd_fluid_add_use(struct psd_fluid_flow *flow, unsigned port, double flows)
{
	assert(flow->n_uses < PSD_FLUID_MOST_USES);
	flow->uses[flow->n_uses++] = (struct psd_fluid_use){port, flows};
}

void psd_fluid_share(struct psd_fluid_flow *flows, unsigned n_flows, struct psd_fluid_port *ports)
{
	/* ports with (nearly) the same share fix the rates of their flows in the same pass */
	const double tolerance = 1.0 + 1e-12;
	int first_open = n_flows > 0 ? 0 : NO_FLOW;

	open_ports(flows, n_flows, ports);
	for (unsigned f = 0; f < n_flows; f++)
		flows[f].next_open = f + 1 < n_flows ? (int)f + 1 : NO_FLOW;
	while (first_open != NO_FLOW) {
		const double share_bps = smallest_share(flows, first_open, ports);
		int *link = &first_open;

		while (*link != NO_FLOW) {
			struct psd_fluid_flow *flow = &flows[*link];

			if (flow->share_bps > share_bps * tolerance) {
				link = &flow->next_open;
				continue;
			}
			flow->rate_bps = share_bps;
			take(flow, ports);
			*link = flow->next_open;
		}
	}
}

double psd_fluid_next_end_sec(const struct psd_fluid_flow *flows, unsigned n_flows)
{
	double end_sec = INFINITY;
	for (unsigned f = 0; f < n_flows; f++) {
		const double left_sec = flows[f].left_bits / flows[f].rate_bps;

		end_sec = left_sec < end_sec ? left_sec : end_sec;
	}
	return end_sec;
}
