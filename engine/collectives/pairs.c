/* Equal members take each step together, in the time of the busiest link; the steps of others are timed one by one. */
#include "engine/collectives/pairs.h"

#include <math.h>

#include "engine/collectives/step_times.h"

static bool is_power_of_two(unsigned n)
{
	return (n & (n - 1)) == 0;
}

unsigned psd_pairs_bits(struct psd_members members)
{
	return 31 - (unsigned)__builtin_clz(members.n); /* no loop, since every step calls this several times */
}

bool psd_pairs_take_all(struct psd_members members)
{
	return is_power_of_two(members.n);
}

/* True when all members do the same at the same distance: all are paired, and nodes, switches and racks are full. */
static bool are_alike(struct psd_members members, const struct psd_links *links)
{
	return !members.layout && is_power_of_two(members.n) &&
	       (members.n <= members.per_node || is_power_of_two(members.per_node)) &&
	       is_power_of_two(links->per_switch) && (members.n <= links->per_rack || is_power_of_two(links->per_rack));
}

static unsigned smaller(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* The most bits that n_run consecutive members send in a step: parts differ by an element. */
static double most_bits(const struct psd_payload *payload, struct psd_members members, unsigned number, unsigned n_run)
{
	double most_elements = 0.0;

	for (unsigned first = 0; first < members.n; first += n_run) {
		double elements = 0.0;

		for (unsigned rank = first; rank < first + n_run; rank++)
			elements += (double)payload->collective->step(payload->elements, members, rank, number)
					    .sent.elements;
		most_elements = fmax(most_elements, elements);
	}
	return 8.0 * payload->value_bytes * most_elements;
}

/* Number of nodes whose messages share an uplink where all leave the rack: the receivers are consecutive. */
static unsigned nodes_through(struct psd_members members, const struct psd_links *links)
{
	return (links->per_rack / members.per_node - 1) / links->spines + 1;
}

/* All messages that leave a node, a switch or a rack at the same time share its link. */
static double step_sec(const struct psd_payload *payload, struct psd_members members, unsigned number,
		       const struct psd_links *links)
{
	const unsigned to = payload->collective->step(payload->elements, members, 0, number).to;
	const enum psd_reach reach = psd_members_reach(members, links, 0, to);
	const unsigned n_here = smaller(members.n, members.per_node), n_behind = smaller(n_here, links->per_switch);
	double sec = 0.0;

	if (reach < PSD_REACH_FAR || links->per_switch > 0)
		sec = psd_links_busy_sec(links, reach, most_bits(payload, members, number, 1));
	if (reach != PSD_REACH_NEAR && links->per_switch > 0)
		sec = fmax(sec, most_bits(payload, members, number, n_behind) / links->between_bps);
	if (reach >= PSD_REACH_FAR) {
		const double node_bits = most_bits(payload, members, number, n_here);

		sec = fmax(sec, node_bits / links->far_bps);
		if (reach == PSD_REACH_BEYOND)
			sec = fmax(sec, nodes_through(members, links) * node_bits / links->uplink_bps);
	}
	return sec + psd_links_latency_sec(links, reach);
}

static double sum_of_steps_sec(const struct psd_payload *payload, struct psd_members members,
			       const struct psd_links *links)
{
	const unsigned n_steps = payload->collective->steps(payload->elements, members);
	double sec = 0.0;

	for (unsigned s = 0; s < n_steps; s++)
		sec += step_sec(payload, members, s, links);
	return sec;
}

double psd_pairs_alone_sec(const struct psd_payload *payload, struct psd_members members, double transfer_sec,
			   const struct psd_links *links)
{
	const double sec = are_alike(members, links)
				   ? sum_of_steps_sec(payload, members, links)
				   : psd_step_times_sec(payload, members, 8.0 * payload->value_bytes, links);

	return sec < transfer_sec ? transfer_sec : sec;
}
