/* Ring all-reduce, step by step. */
#include "engine/schedules/ring.h"

/* q P + r elements: the cut before chunk c is c q + c r / P, which cannot overflow. */
static uint64_t cut(uint64_t elements, unsigned workers, unsigned chunk)
{
	return chunk * (elements / workers) + chunk * (elements % workers) / workers;
}

struct psd_ring_step psd_ring_step(uint64_t elements, unsigned workers, unsigned rank, unsigned step)
{
	const bool is_reducing = step < workers - 1;
	/* rank r starts with its own chunk; in every step the chunk received in the step before moves on */
	const unsigned back = is_reducing ? step : step - (workers - 1);
	const unsigned start = is_reducing ? rank : rank + 1;
	const unsigned chunk = (start + workers - back) % workers;
	const uint64_t first = cut(elements, workers, chunk);
	return (struct psd_ring_step){first, cut(elements, workers, chunk + 1) - first, is_reducing};
}

uint64_t psd_ring_sent_elements(uint64_t elements, unsigned workers, unsigned rank)
{
	const unsigned after = (rank + 1) % workers, next = (rank + 2) % workers;

	return 2 * elements - (cut(elements, workers, after + 1) - cut(elements, workers, after)) -
	       (cut(elements, workers, next + 1) - cut(elements, workers, next));
}
