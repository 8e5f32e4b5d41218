/* 2-D torus: a ring's reduce-scatter in each row, a ring of each column over the chunk that its members then have, and
 * the row's all-gather. Rows are the nodes where they are all full; else the grid is as near to a square as the number
 * of workers has divisors. A prime number of workers has one column, which is a ring. Seconds follow from a walk over
 * the steps. Source: Mikami et al. 2018 (arXiv 1811.05233). Legend: X places in a row, Y rows. */
#include "engine/schedules/pattern.h"

static unsigned row_length(struct psd_members members)
{
	unsigned length = 1;

	if (members.per_node > 1 && members.per_node < members.n && members.n % members.per_node == 0)
		return members.per_node;
	for (unsigned d = 2; d <= members.n / d; d++)
		length = members.n % d == 0 ? d : length;
	return length;
}

static struct psd_members row_of(struct psd_members members)
{
	return (struct psd_members){row_length(members), 1};
}

static struct psd_members column_of(struct psd_members members)
{
	return (struct psd_members){members.n / row_length(members), 1};
}

static unsigned steps(uint64_t elements, struct psd_members members)
{
	return psd_ring.steps(elements, row_of(members)) + psd_ring.steps(elements, column_of(members));
}

static struct psd_step along_row(uint64_t elements, struct psd_members members, unsigned rank, unsigned number)
{
	const unsigned X = row_length(members), first = rank - rank % X;
	struct psd_step step = psd_ring.step(elements, row_of(members), rank % X, number);

	step.to += first;
	step.from += first;
	return step;
}

/* Of the chunk that the row's reduce-scatter leaves here, which is the first that its all-gather sends. */
static struct psd_step along_column(uint64_t elements, struct psd_members members, unsigned rank, unsigned number)
{
	const unsigned X = row_length(members);
	const struct psd_range own = along_row(elements, members, rank, X - 1).sent;
	struct psd_step step = psd_ring.step(own.elements, column_of(members), rank / X, number);

	step.to = step.to * X + rank % X;
	step.from = step.from * X + rank % X;
	step.sent.first += own.first;
	return step;
}

static struct psd_step step_of(uint64_t elements, struct psd_members members, unsigned rank, unsigned number)
{
	const unsigned scattered = row_length(members) - 1;
	const unsigned n_along_column = psd_ring.steps(elements, column_of(members));

	if (number < scattered)
		return along_row(elements, members, rank, number);
	if (number < scattered + n_along_column)
		return along_column(elements, members, rank, number - scattered);
	return along_row(elements, members, rank, number - n_along_column);
}

const struct psd_pattern psd_torus = {
	.name = "torus",
	.steps = steps,
	.step = step_of,
};
