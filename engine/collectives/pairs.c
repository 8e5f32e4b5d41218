/* Members that are alike take step after step together, at the time of the busiest link; others are walked. */
#include "engine/collectives/pairs.h"

#include <math.h>

#include "engine/collectives/step_times.h"

static bool is_power_of_two(unsigned n)
{
	return (n & (n - 1)) == 0;
}

unsigned psd_pairs_bits(struct psd_members members)
{
	unsigned k = 0;

	while (members.n >> (k + 1) > 0)
		k++;
	return k;
}

bool psd_pairs_take_all(struct psd_members members)
{
	return is_power_of_two(members.n);
}

/* Members that all do the same in a step, at the same distance: all are paired, and nodes and switches are full. */
static bool are_alike(struct psd_members members, const struct psd_ways *ways)
{
	return is_power_of_two(members.n) && (members.n <= members.per_node || is_power_of_two(members.per_node)) &&
	       is_power_of_two(ways->per_switch);
}

static unsigned smaller(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* The most bits that one of the runs of so many members sends in a step: parts differ by an element. */
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

/* What all members of a node or behind a switch send at a time shares its link. */
static double step_sec(const struct psd_payload *payload, struct psd_members members, unsigned number,
		       const struct psd_ways *ways)
{
	const unsigned to = payload->collective->step(payload->elements, members, 0, number).to;
	const enum psd_reach reach = psd_members_reach(members, ways, 0, to);
	const unsigned n_here = smaller(members.n, members.per_node), n_behind = smaller(n_here, ways->per_switch);
	double sec = 0.0;

	if (reach != PSD_REACH_FAR || ways->per_switch > 0)
		sec = psd_ways_busy_sec(ways, reach, most_bits(payload, members, number, 1));
	if (reach != PSD_REACH_NEAR && ways->per_switch > 0)
		sec = fmax(sec, most_bits(payload, members, number, n_behind) / ways->between_bps);
	if (reach == PSD_REACH_FAR)
		sec = fmax(sec, most_bits(payload, members, number, n_here) / ways->far_bps);
	return sec + psd_ways_latency_sec(ways, reach);
}

static double sum_of_steps_sec(const struct psd_payload *payload, struct psd_members members,
			       const struct psd_ways *ways)
{
	const unsigned n_steps = payload->collective->steps(payload->elements, members);
	double sec = 0.0;

	for (unsigned s = 0; s < n_steps; s++)
		sec += step_sec(payload, members, s, ways);
	return sec;
}

double psd_pairs_alone_sec(const struct psd_payload *payload, struct psd_members members, double transfer_sec,
			   const struct psd_ways *ways)
{
	const double sec = are_alike(members, ways)
				   ? sum_of_steps_sec(payload, members, ways)
				   : psd_step_times_sec(payload, members, 8.0 * payload->value_bytes, ways);

	return sec < transfer_sec ? transfer_sec : sec;
}
