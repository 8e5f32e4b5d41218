/* Recursive doubling: both of a pair send each other all that they have summed, at twice the distance from step to
 * step. As few steps as there can be, each of the whole payload. At every level both add the same two sums, so that all
 * end with the same bits. Source: Thakur, Rabenseifner and Gropp 2005, section 4.5. */
#include "engine/schedules/folding.h"

static unsigned steps(uint64_t elements, struct psd_members members)
{
	(void)elements;
	return psd_folding_steps(members, psd_folding_bits(members));
}

static struct psd_exchange exchange(uint64_t elements, unsigned k, unsigned place, unsigned number)
{
	(void)k;
	return (struct psd_exchange){place ^ 1u << number, {0, elements}, true};
}

static struct psd_step step_of(uint64_t elements, struct psd_members members, unsigned rank, unsigned number)
{
	return psd_folding_step(elements, members, rank, number, psd_folding_bits(members), exchange);
}

const struct psd_pattern psd_recursive_doubling = {
	.name = "recursive-doubling",
	.steps = steps,
	.step = step_of,
	.is_walked = true,
	.alone_sec = psd_folding_alone_sec,
};
