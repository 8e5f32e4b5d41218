/* Halving and doubling: a reduce-scatter in which the distance doubles and the part halves from step to step, and the
 * same way back. Source: Rabenseifner 2004. Legend: 2^k places. */
#include "engine/schedules/folding.h"

static unsigned n_exchanges(struct psd_members members)
{
	return 2 * psd_folding_bits(members);
}

static unsigned steps(uint64_t elements, struct psd_members members)
{
	(void)elements;
	return psd_folding_steps(members, n_exchanges(members));
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

/* Both send each other what the other keeps; on the way back, what they have. */
static struct psd_exchange exchange(uint64_t elements, unsigned k, unsigned place, unsigned number)
{
	const bool is_back = number >= k;
	const unsigned bit = is_back ? 2 * k - 1 - number : number, other = place ^ 1u << bit;

	return (struct psd_exchange){other, part_of(elements, is_back ? place : other, bit + 1), !is_back};
}

static struct psd_step step_of(uint64_t elements, struct psd_members members, unsigned rank, unsigned number)
{
	return psd_folding_step(elements, members, rank, number, n_exchanges(members), exchange);
}

const struct psd_pattern psd_halving_doubling = {
	.name = "halving-doubling",
	.steps = steps,
	.step = step_of,
	.is_walked = true,
	.alone_sec = psd_folding_alone_sec,
};
