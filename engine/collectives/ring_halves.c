/* The two halves of a ring all-reduce, with P-1 steps each. After a reduce-scatter worker r has the sum of part r, as
 * PSD_OWNER_WORKERS divides elements. An all-gather begins with part r at worker r. Source: Rajbhandari et al. 2020, ZeRO
 * (arXiv 1910.02054), section 5. */
#include "engine/collectives/ring.h"

static unsigned steps(uint64_t elements, struct psd_members members)
{
	(void)elements;
	return members.n - 1;
}

/* In every step the part that was received in the step before moves on; `first` is the part that rank 0 sends first. */
static struct psd_step step_of(uint64_t elements, unsigned n, unsigned rank, unsigned step, unsigned first)
{
	return (struct psd_step){
		.to = (rank + 1) % n,
		.from = (rank + n - 1) % n,
		.sent = psd_range_part(elements, n, (first + rank + n - step) % n),
	};
}

static struct psd_step scatter_step(uint64_t elements, struct psd_members members, unsigned rank, unsigned step)
{
	struct psd_step made = step_of(elements, members.n, rank, step, members.n - 1);

	made.adds = true;
	return made;
}

static struct psd_step gather_step(uint64_t elements, struct psd_members members, unsigned rank, unsigned step)
{
	return step_of(elements, members.n, rank, step, 0);
}

/* A rank sends all parts but one: `unsent` is the one that rank 0 does not send. */
static bool flow_of(uint64_t elements, struct psd_members members, unsigned rank, unsigned unsent,
		    struct psd_flow *flow)
{
	const unsigned n = members.n, before = (rank + n - 1) % n;

	*flow = (struct psd_flow){
		.to = (rank + 1) % n,
		.elements = elements - psd_range_part(elements, n, (rank + unsent) % n).elements,
		.n_messages = n - 1,
		.from = before,
		.received_elements = elements - psd_range_part(elements, n, (before + unsent) % n).elements,
	};
	return n > 1;
}

static bool scatter_flow(uint64_t elements, struct psd_members members, unsigned rank, unsigned i,
			 struct psd_flow *flow)
{
	return i == 0 && flow_of(elements, members, rank, 0, flow);
}

static bool gather_flow(uint64_t elements, struct psd_members members, unsigned rank, unsigned i, struct psd_flow *flow)
{
	return i == 0 && flow_of(elements, members, rank, 1, flow);
}

static double alone_sec(const struct psd_payload *payload, struct psd_members members, double transfer_sec,
			const struct psd_links *links)
{
	return psd_ring_steps_sec(payload, members, members.n - 1, transfer_sec, links);
}

#define HALF(half)                                                                                                     \
	.steps = steps, .step = half##_step, .flow = half##_flow, .alone_sec = alone_sec, .period = psd_ring_period,   \
	.largest = psd_ring_largest, .is_uneven = true

const struct psd_collective psd_reduce_scatter = {.name = "reduce-scatter", HALF(scatter)};
const struct psd_collective psd_all_gather = {.name = "all-gather", HALF(gather)};
