/* Progressive filling over the ports of a few host classes. */
#include "engine/estimate/fluid.h"

#include <math.h>

static bool is_open(const struct psd_fluid_flow *flow)
{
	return flow->rate_bps < 0.0;
}

/* The tightest port's share per flow; marks nothing. */
static double smallest_share(const struct psd_fluid_flow *flows, unsigned n_flows, const struct psd_fluid_port *out,
			     const struct psd_fluid_port *in)
{
	double share_bps = INFINITY;
	for (unsigned f = 0; f < n_flows; f++) {
		if (!is_open(&flows[f]))
			continue;
		share_bps = fmin(share_bps, out[flows[f].from].left_bps / out[flows[f].from].open_flows);
		share_bps = fmin(share_bps, in[flows[f].to].left_bps / in[flows[f].to].open_flows);
	}
	return share_bps;
}

static bool is_at_port(const struct psd_fluid_flow *flow, const struct psd_fluid_port *out,
		       const struct psd_fluid_port *in, double share_bps)
{
	const double tolerance = 1.0 + 1e-12; /* two ports at one share freeze together */
	return out[flow->from].left_bps <= share_bps * out[flow->from].open_flows * tolerance ||
	       in[flow->to].left_bps <= share_bps * in[flow->to].open_flows * tolerance;
}

void psd_fluid_share(struct psd_fluid_flow *flows, unsigned n_flows, struct psd_fluid_port *out,
		     struct psd_fluid_port *in, double send_bps, double receive_bps)
{
	unsigned n_open = n_flows;
	if (n_flows == 1) { /* the common case: hosts are all alike and send one after the other */
		flows[0].rate_bps =
			fmin(send_bps / flows[0].flows_per_sender, receive_bps / flows[0].flows_per_receiver);
		return;
	}
	for (unsigned f = 0; f < n_flows; f++) {
		flows[f].rate_bps = -1.0;
		out[flows[f].from] = (struct psd_fluid_port){send_bps, 0.0};
		in[flows[f].to] = (struct psd_fluid_port){receive_bps, 0.0};
	}
	for (unsigned f = 0; f < n_flows; f++) {
		out[flows[f].from].open_flows += flows[f].flows_per_sender;
		in[flows[f].to].open_flows += flows[f].flows_per_receiver;
	}
	while (n_open > 0) {
		const double share_bps = smallest_share(flows, n_flows, out, in);
		for (unsigned f = 0; f < n_flows; f++)
			flows[f].is_frozen_now = is_open(&flows[f]) && is_at_port(&flows[f], out, in, share_bps);
		for (unsigned f = 0; f < n_flows; f++) {
			if (!flows[f].is_frozen_now)
				continue;
			struct psd_fluid_port *from = &out[flows[f].from];
			struct psd_fluid_port *to = &in[flows[f].to];
			flows[f].rate_bps = share_bps;
			from->left_bps = fmax(0.0, from->left_bps - share_bps * flows[f].flows_per_sender);
			from->open_flows -= flows[f].flows_per_sender;
			to->left_bps = fmax(0.0, to->left_bps - share_bps * flows[f].flows_per_receiver);
			to->open_flows -= flows[f].flows_per_receiver;
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
