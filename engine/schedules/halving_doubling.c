/* Halving and doubling: a reduce-scatter in which the distance doubles and the part halves from step to step, and the
 * same way back. Any number of workers: of 2^k + r, the first 2r fold in pairs before, one of each pair sitting out,
 * and hear the sums after. Seconds follow from a walk over the steps. Source: Rabenseifner 2004; Thakur, Rabenseifner
 * and Gropp 2005, section 4.5. Legend: n workers, q = 2^k those who take part, r = n - q pairs. */
#include "engine/schedules/pattern.h"

static unsigned log2_of(unsigned n)
{
	unsigned k = 0;

	while (n >> (k + 1) > 0)
		k++;
	return k;
}

static unsigned n_pairs(struct psd_members members)
{
	return members.n - (1u << log2_of(members.n));
}

static unsigned steps(struct psd_members members)
{
	return 2 * log2_of(members.n) + (n_pairs(members) > 0 ? 2 : 0);
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

/* What a place has after so many halvings: by each bit of its number the lower or the upper half. */
static struct psd_range part_of(uint64_t elements, unsigned place, unsigned n_halvings)
{
	struct psd_range part = {0, elements};

	for (unsigned bit = 0; bit < n_halvings; bit++) {
		const uint64_t lower = part.elements / 2;

		if (place >> bit & 1)
			part = (struct psd_range){part.first + lower, part.elements - lower};
		else
			part.elements = lower;
	}
	return part;
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

/* Both send each other what the other keeps; on the way back, what they have. */
static struct psd_step exchange(uint64_t elements, unsigned rank, unsigned r, unsigned bit, bool is_back)
{
	const unsigned place = place_of(rank, r), other = place ^ 1u << bit, peer = rank_of(other, r);

	return (struct psd_step){
		.to = peer,
		.from = peer,
		.sent = part_of(elements, is_back ? place : other, bit + 1),
		.adds = !is_back,
	};
}

static struct psd_step step_of(uint64_t elements, struct psd_members members, unsigned rank, unsigned number)
{
	const unsigned k = log2_of(members.n), r = n_pairs(members), n_folds = r > 0 ? 1 : 0;
	const bool is_fold = number < n_folds || number >= n_folds + 2 * k;
	const struct psd_step idle = {.to = rank, .from = rank};

	if (is_fold)
		return rank < 2 * r ? fold(elements, rank, number > 0) : idle;
	if (rank < 2 * r && rank % 2 == 0)
		return idle;
	if (number < n_folds + k)
		return exchange(elements, rank, r, number - n_folds, false);
	return exchange(elements, rank, r, n_folds + 2 * k - 1 - number, true);
}

const struct psd_pattern psd_halving_doubling = {
	.name = "halving-doubling",
	.steps = steps,
	.step = step_of,
};
