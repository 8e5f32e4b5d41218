/* Legend: n members, 2^k places for those who take part, r = n - 2^k pairs. */
#include "engine/schedules/folding.h"

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
