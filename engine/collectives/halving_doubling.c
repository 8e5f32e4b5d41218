/* Halving and doubling: a reduce-scatter whose distance doubles and whose part halves from step to step, then an
 * all-gather with the same exchanges in reverse order. Source: Rabenseifner 2004. Legend: 2^k positions.
 *
 * If there are more than 2^k members, these form 2^(k-1) groups of two to four, whose first two members have positions.
 * Two steps replace the first exchange: they bring the group's sum to these two, to each the half that it keeps. In
 * both steps no member sends or receives more than a half, so that all groups end together. Source for groups of three:
 * Rabenseifner and Träff 2004, 3-2 elimination. */
#include "engine/collectives/pairs.h"

/* FOLDS steps within groups replace the first exchange, and the same number the last one. */
enum { FOLDS = 2, GROUP_MOST = 4, NOBODY = -1 };

/* The receiver of each member's half by the size of the group and the step. Even receivers get the lower half, odd ones
 * the upper half. */
static const int fold_to[GROUP_MOST + 1][FOLDS][GROUP_MOST] = {
	[2] = {{1, NOBODY}, {NOBODY, 0}},
	[3] = {{1, NOBODY, 0}, {NOBODY, 0, 1}},
	[4] = {{1, 0, 3, 2}, {NOBODY, NOBODY, 0, 1}},
};

/* A member's position in its group. */
struct seat {
	unsigned group;
	unsigned first; /* rank of the group's first member */
	unsigned n;	/* number of members of the group */
	unsigned member;
};

static unsigned n_groups(struct psd_members members)
{
	return 1u << (psd_pairs_bits(members) - 1);
}

/* Returns the rank of a group's first member; the first groups have one member more than the others. */
static unsigned first_of(struct psd_members members, unsigned group)
{
	const unsigned n_larger = members.n % n_groups(members);

	return group * (members.n / n_groups(members)) + (group < n_larger ? group : n_larger);
}

static struct seat seat_of(struct psd_members members, unsigned rank)
{
	const unsigned size = members.n / n_groups(members), n_larger = members.n % n_groups(members);
	const unsigned in_larger = n_larger * (size + 1);
	struct seat seat;

	seat.group = rank < in_larger ? rank / (size + 1) : n_larger + (rank - in_larger) / size;
	seat.first = first_of(members, seat.group);
	seat.n = seat.group < n_larger ? size + 1 : size;
	seat.member = rank - seat.first;
	return seat;
}

static unsigned steps(uint64_t elements, struct psd_members members)
{
	(void)elements;
	return 2 * psd_pairs_bits(members) + (psd_pairs_take_all(members) ? 0 : 2 * (FOLDS - 1));
}

/* The part of a position after n_halvings: each bit of its number selects the lower or the upper half. */
static struct psd_range part_of(uint64_t elements, unsigned position, unsigned n_halvings)
{
	struct psd_range part = {0, elements};

	for (unsigned bit = 0; bit < n_halvings; bit++) {
		const uint64_t lower = part.elements / 2;

		if (position >> bit & 1)
			part = (struct psd_range){part.first + lower, part.elements - lower};
		else
			part.elements = lower;
	}
	return part;
}

/* One step within a group; is_back: members return the halves that they received, the last step first. */
static struct psd_step fold(uint64_t elements, struct seat seat, unsigned number, bool is_back)
{
	const int *to = fold_to[seat.n][is_back ? FOLDS - 1 - number : number];
	const unsigned rank = seat.first + seat.member;
	struct psd_step step = {.to = rank, .from = rank, .adds = !is_back};

	for (unsigned m = 0; m < seat.n; m++) {
		if (to[m] == NOBODY)
			continue;
		const unsigned keeper = (unsigned)to[m], sender = is_back ? keeper : m;
		const unsigned receiver = is_back ? m : keeper;

		if (sender == seat.member) {
			step.to = seat.first + receiver;
			step.sent = part_of(elements, keeper % 2, 1);
		}
		if (receiver == seat.member)
			step.from = seat.first + sender;
	}
	return step;
}

/* Both partners send the half that the other keeps, or, in the all-gather, all that they have. */
static struct psd_step exchange(uint64_t elements, struct psd_members members, struct seat seat, unsigned number)
{
	const unsigned k = psd_pairs_bits(members), position = 2 * seat.group + seat.member;
	const bool is_back = number >= k;
	const unsigned bit = is_back ? 2 * k - 1 - number : number, other = position ^ 1u << bit;
	const unsigned peer = first_of(members, other / 2) + other % 2;

	return (struct psd_step){peer, peer, part_of(elements, is_back ? position : other, bit + 1), !is_back};
}

static struct psd_step step_of(uint64_t elements, struct psd_members members, unsigned rank, unsigned number)
{
	const struct seat seat = seat_of(members, rank);
	const unsigned n_exchanges = 2 * (psd_pairs_bits(members) - 1); /* between groups */

	if (psd_pairs_take_all(members))
		return exchange(elements, members, seat, number);
	if (number < FOLDS)
		return fold(elements, seat, number, false);
	if (number >= FOLDS + n_exchanges)
		return fold(elements, seat, number - FOLDS - n_exchanges, true);
	if (seat.member >= 2)
		return (struct psd_step){.to = rank, .from = rank};
	return exchange(elements, members, seat, number - FOLDS + 1);
}

const struct psd_collective psd_halving_doubling = {
	.name = "halving-doubling",
	.steps = steps,
	.step = step_of,
	.is_timed_by_steps = true,
	.alone_sec = psd_pairs_alone_sec,
};
