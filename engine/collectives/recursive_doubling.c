/* Recursive doubling: partners exchange their whole sums, at twice the distance from step to step. The number of steps
 * is the least possible. At every level both add the same two sums, so that all members end with the same bits. If
 * there are 2^k + r members, the first 2r form pairs before: one of each adds the other's values, and returns the sums
 * at the end. Source: Thakur, Rabenseifner and Gropp 2005, section 4.5. */
#include "engine/collectives/pairs.h"

static unsigned n_folding(struct psd_members members)
{
	return members.n - (1u << psd_pairs_bits(members));
}

static unsigned steps(uint64_t elements, struct psd_members members)
{
	(void)elements;
	return psd_pairs_bits(members) + (psd_pairs_take_all(members) ? 0 : 2);
}

/* Returns the rank of the member at one of the 2^k positions; of each of the first pairs it is the second member. */
static unsigned rank_at(unsigned position, unsigned r)
{
	return position < r ? 2 * position + 1 : position + r;
}

static unsigned position_of(unsigned rank, unsigned r)
{
	return rank < 2 * r ? rank / 2 : rank - r;
}

/* A step within one of the first pairs: the whole payload to the second member, or back. */
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

static struct psd_step step_of(uint64_t elements, struct psd_members members, unsigned rank, unsigned number)
{
	const unsigned r = n_folding(members), n_folds = r > 0 ? 1 : 0;
	const bool is_back = number >= n_folds + psd_pairs_bits(members), is_fold = number < n_folds || is_back;

	if (is_fold && rank < 2 * r)
		return fold(elements, rank, is_back);
	if (is_fold || (rank < 2 * r && rank % 2 == 0))
		return (struct psd_step){.to = rank, .from = rank};
	const unsigned peer = rank_at(position_of(rank, r) ^ 1u << (number - n_folds), r);
	return (struct psd_step){.to = peer, .from = peer, .sent = {0, elements}, .adds = true};
}

const struct psd_collective psd_recursive_doubling = {
	.name = "recursive-doubling",
	.steps = steps,
	.step = step_of,
	.is_timed_by_steps = true,
	.alone_sec = psd_pairs_alone_sec,
};
