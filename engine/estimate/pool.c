/* Processor sharing: progressive filling of the cores, from the work that can use least. */
#include "engine/estimate/pool.h"

#include <math.h>
#include <stdlib.h>

void psd_pool_init(struct psd_pool *pool, double cores)
{
	*pool = (struct psd_pool){.cores = cores};
}

void psd_pool_release(struct psd_pool *pool)
{
	free(pool->works);
	*pool = (struct psd_pool){.cores = 0};
}

/* The unsettled work that can use least, NULL when all are settled; n_copies: of all unsettled. */
static struct psd_pool_work *most_modest(const struct psd_pool *pool, double *n_copies)
{
	struct psd_pool_work *modest = NULL;

	*n_copies = 0;
	for (unsigned w = 0; w < pool->n_works; w++) {
		struct psd_pool_work *work = &pool->works[w];

		if (work->is_settled)
			continue;
		*n_copies += work->copies;
		if (!modest || work->most_cores < modest->most_cores)
			modest = work;
	}
	return modest;
}

static void share(struct psd_pool *pool)
{
	double left_cores = pool->cores, n_copies;
	struct psd_pool_work *work;

	for (unsigned w = 0; w < pool->n_works; w++)
		pool->works[w].is_settled = false;
	while ((work = most_modest(pool, &n_copies)) != NULL) {
		work->cores = fmin(work->most_cores, left_cores / n_copies);
		work->is_settled = true;
		left_cores -= work->cores * work->copies;
	}
}

static void advance(struct psd_pool *pool, double now_sec)
{
	for (unsigned w = 0; w < pool->n_works; w++)
		pool->works[w].left_sec -= (now_sec - pool->at_sec) * pool->works[w].cores;
	pool->at_sec = now_sec;
}

bool psd_pool_add(struct psd_pool *pool, double now_sec, double sec, double most_cores, double copies, uint64_t cookie)
{
	if (pool->n_works == pool->room) {
		const unsigned room = pool->room ? 2 * pool->room : 8;
		struct psd_pool_work *grown = realloc(pool->works, room * sizeof(*grown));

		if (!grown)
			return false;
		pool->works = grown;
		pool->room = room;
	}
	advance(pool, now_sec);
	pool->works[pool->n_works++] =
		(struct psd_pool_work){.left_sec = sec, .most_cores = most_cores, .copies = copies, .cookie = cookie};
	share(pool);
	return true;
}

double psd_pool_next_sec(const struct psd_pool *pool)
{
	double next_sec = INFINITY;

	for (unsigned w = 0; w < pool->n_works; w++)
		next_sec = fmin(next_sec, pool->at_sec + fmax(0.0, pool->works[w].left_sec) / pool->works[w].cores);
	return next_sec;
}

bool psd_pool_take_ended(struct psd_pool *pool, double now_sec, uint64_t *cookie)
{
	const double tolerance_sec = 1e-9 + 1e-14 * now_sec; /* what the clock can tell apart by now */
	unsigned w = 0;

	advance(pool, now_sec);
	while (w < pool->n_works && pool->works[w].left_sec > tolerance_sec * pool->works[w].cores)
		w++;
	if (w == pool->n_works)
		return false;
	*cookie = pool->works[w].cookie;
	pool->n_works--;
	for (; w < pool->n_works; w++)
		pool->works[w] = pool->works[w + 1];
	share(pool);
	return true;
}

static void fill_machine(struct psd_pool_place places[], unsigned n_hosts, unsigned cores, unsigned *n_pools)
{
	const bool is_shared = n_hosts > cores;

	for (unsigned h = 0; h < n_hosts; h++)
		places[h] = is_shared ? (struct psd_pool_place){*n_pools, cores, n_hosts}
				      : (struct psd_pool_place){*n_pools + h,
								(h + 1) * cores / n_hosts - h * cores / n_hosts, 1};
	*n_pools += is_shared ? 1 : n_hosts;
}

unsigned psd_pool_fill_places(struct psd_pool_place places[], const struct psd_layout *layout,
			      const struct psd_machine *machine)
{
	const unsigned n_hosts = psd_layout_hosts(layout),
		       nodes = machine->nodes ? machine->nodes : psd_layout_nodes(layout);
	unsigned n_pools = 0, first = 0, end;

	for (; first < n_hosts; first = end) {
		end = first + 1;
		while (end < n_hosts && psd_layout_node(layout, end) / nodes == psd_layout_node(layout, first) / nodes)
			end++;
		fill_machine(places + first, end - first, machine->cores, &n_pools);
	}
	return n_pools;
}
