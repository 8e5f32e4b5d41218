/* Legend: n members, 2^k places for those who take part, r = n - 2^k pairs. */
#include "engine/schedules/folding.h"

#include <math.h>

#include "engine/schedules/walk.h"

unsigned psd_folding_bits(struct psd_members members)
{
	unsigned k = 0;

	while (members.n >> (k + 1) > 0)
		k++;
	return k;
}

static unsigned n_pairs(struct psd_members members)
{
	return members.n - (1u << psd_folding_bits(members));
}

unsigned psd_folding_steps(struct psd_members members, unsigned n_exchanges)
{
	return n_exchanges + (n_pairs(members) > 0 ? 2 : 0);
}

/* Of each pair the second takes part. */
static unsigned rank_of(unsigned place, unsigned r)
{
	return place < r ? 2 * place + 1 : place + r;
}

static unsigned place_of(unsigned rank, unsigned r)
{
	return rank < 2 * r ? rank / 2 : rank - r;
}

/* Within a pair: all of it to the one who takes part, or back. */
static struct psd_step fold(uint64_t elements, unsigned rank, bool is_back)
{
	const bool takes_part = rank % 2 == 1;
	struct psd_step step = {.to = rank, .from = rank, .sent = {0, elements}, .adds = !is_back};

	if (takes_part == is_back)
		step.to = rank ^ 1;
	else
		step.from = rank ^ 1;
	return step;
}

struct psd_step psd_folding_step(uint64_t elements, struct psd_members members, unsigned rank, unsigned number,
				 unsigned n_exchanges, psd_exchange_fn exchange)
{
	const unsigned r = n_pairs(members), n_folds = r > 0 ? 1 : 0;
	const bool is_fold = number < n_folds || number >= n_folds + n_exchanges;

	if (is_fold && rank < 2 * r)
		return fold(elements, rank, number > 0);
	if (is_fold || (rank < 2 * r && rank % 2 == 0))
		return (struct psd_step){.to = rank, .from = rank};
	const struct psd_exchange made =
		exchange(elements, psd_folding_bits(members), place_of(rank, r), number - n_folds);
	const unsigned peer = rank_of(made.other, r);
	return (struct psd_step){.to = peer, .from = peer, .sent = made.sent, .adds = made.adds};
}

/* ---- seconds ---- */

static bool is_power_of_two(unsigned n)
{
	return (n & (n - 1)) == 0;
}

/* Members that all do the same in a step, at the same distance: nobody folds, and nodes and switches are full. */
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
			elements +=
				(double)payload->pattern->step(payload->elements, members, rank, number).sent.elements;
		most_elements = fmax(most_elements, elements);
	}
	return 8.0 * payload->value_bytes * most_elements;
}

/* What all members of a node or behind a switch send at a time shares its link. */
static double step_sec(const struct psd_payload *payload, struct psd_members members, unsigned number,
		       const struct psd_ways *ways)
{
	const unsigned to = payload->pattern->step(payload->elements, members, 0, number).to;
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
	const unsigned n_steps = payload->pattern->steps(payload->elements, members);
	double sec = 0.0;

	for (unsigned s = 0; s < n_steps; s++)
		sec += step_sec(payload, members, s, ways);
	return sec;
}

double psd_folding_alone_sec(const struct psd_payload *payload, struct psd_members members, double transfer_sec,
			     const struct psd_ways *ways)
{
	const double sec = are_alike(members, ways) ? sum_of_steps_sec(payload, members, ways)
						    : psd_walk_sec(payload, members, 8.0 * payload->value_bytes, ways);

	return sec < transfer_sec ? transfer_sec : sec;
}
