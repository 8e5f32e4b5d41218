/* Processor sharing: progressive filling of the cores, from the kind of work that can use fewest. */
#include "engine/estimate/pool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/grow.h"

void psd_pool_init(struct psd_pool *pool, double cores)
{
	*pool = (struct psd_pool){.cores = cores};
}

void psd_pool_release(struct psd_pool *pool)
{
	for (unsigned k = 0; k < pool->n_kinds; k++)
		free(pool->kinds[k].works.entries);
	free(pool->kinds);
	*pool = (struct psd_pool){.cores = 0};
}

/* ---- kinds ---- */

static bool goes_before(const struct psd_pool_kind *a, const struct psd_pool_kind *b)
{
	return a->most_cores < b->most_cores || (a->most_cores == b->most_cores && a->copies < b->copies);
}

/* Returns the kind for work with these most_cores and copies, and adds it if there is none; NULL: out of memory. */
static struct psd_pool_kind *find_kind(struct psd_pool *pool, double most_cores, double copies)
{
	const struct psd_pool_kind made = {.most_cores = most_cores, .copies = copies};
	struct psd_pool_kind *grown;
	unsigned k = 0;

	while (k < pool->n_kinds && goes_before(&pool->kinds[k], &made))
		k++;
	if (k < pool->n_kinds && !goes_before(&made, &pool->kinds[k]))
		return &pool->kinds[k];
	grown = psd_grown(pool->kinds, pool->n_kinds, &pool->room, sizeof(*grown));
	if (!grown)
		return NULL;
	pool->kinds = grown;
	memmove(&pool->kinds[k + 1], &pool->kinds[k], (pool->n_kinds++ - k) * sizeof(made));
	pool->kinds[k] = made;
	return &pool->kinds[k];
}

static void remove_kind(struct psd_pool *pool, struct psd_pool_kind *kind)
{
	free(kind->works.entries);
	memmove(kind, kind + 1, (size_t)(&pool->kinds[--pool->n_kinds] - kind) * sizeof(*kind));
}

static void share(struct psd_pool *pool)
{
	double left_cores = pool->cores, n_copies = 0;

	for (unsigned k = 0; k < pool->n_kinds && !pool->is_shared; k++)
		n_copies += pool->kinds[k].works.n * pool->kinds[k].copies;
	for (unsigned k = 0; k < pool->n_kinds && !pool->is_shared; k++) {
		struct psd_pool_kind *kind = &pool->kinds[k];
		const double n_alike = kind->works.n * kind->copies;

		kind->cores = fmin(kind->most_cores, left_cores / n_copies);
		left_cores -= kind->cores * n_alike;
		n_copies -= n_alike;
	}
	pool->is_shared = true;
}

static void advance(struct psd_pool *pool, double now_sec)
{
	if (now_sec > pool->at_sec) {
		share(pool);
		for (unsigned k = 0; k < pool->n_kinds; k++)
			pool->kinds[k].done_sec += (now_sec - pool->at_sec) * pool->kinds[k].cores;
	}
	pool->at_sec = now_sec;
}

/* ---- work ---- */

bool psd_pool_add(struct psd_pool *pool, double now_sec, double sec, double most_cores, double copies, uint64_t tag)
{
	advance(pool, now_sec);
	pool->is_shared = false;
	struct psd_pool_kind *kind = find_kind(pool, most_cores, copies);
	if (!kind)
		return false;
	if (psd_heap_push(&kind->works, (struct psd_heap_entry){kind->done_sec + sec, pool->next_seq++, tag}))
		return true;
	if (kind->works.n == 0)
		remove_kind(pool, kind);
	return false;
}

static double left_sec(const struct psd_pool_kind *kind)
{
	return kind->works.entries[0].at - kind->done_sec;
}

double psd_pool_next_sec(struct psd_pool *pool)
{
	double next_sec = INFINITY;

	share(pool);
	for (unsigned k = 0; k < pool->n_kinds; k++)
		next_sec = fmin(next_sec, pool->at_sec + fmax(0.0, left_sec(&pool->kinds[k])) / pool->kinds[k].cores);
	return next_sec;
}

bool psd_pool_take_ended(struct psd_pool *pool, double now_sec, uint64_t *tag)
{
	const double tolerance_sec = 1e-9 + 1e-14 * now_sec; /* a nanosecond and the clock's resolution */
	struct psd_pool_kind *first = NULL;

	advance(pool, now_sec);
	share(pool);
	for (struct psd_pool_kind *kind = pool->kinds; kind < pool->kinds + pool->n_kinds; kind++)
		if (left_sec(kind) <= tolerance_sec * kind->cores &&
		    (!first || kind->works.entries[0].seq < first->works.entries[0].seq))
			first = kind;
	if (!first)
		return false;
	*tag = psd_heap_pop(&first->works).tag;
	if (first->works.n == 0)
		remove_kind(pool, first);
	pool->is_shared = false;
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
