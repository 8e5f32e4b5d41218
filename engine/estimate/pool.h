/* Cores that pieces of work share as under an operating system's scheduler: each piece gets an equal share, but no more
 * than it can use. Has no clock: callers pass the time, which never decreases. */
#ifndef PSD_POOL_H
#define PSD_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/heap.h"
#include "engine/collectives/layout.h"
#include "engine/scenario/scenario.h"

/* Kind: pieces of work that can use equally many cores. At any time they have equal shares, so the order of their ends
 * is known when they begin. An event takes a step for each kind, not for each piece. */
struct psd_pool_kind {
	double most_cores;     /* number of cores that a piece can use at a time, > 0 */
	double copies;	       /* number of equal pieces that one stands for, which begin and end together; >= 1 */
	double cores;	       /* number of cores that each piece has now */
	double done_sec;       /* seconds of one core that a piece would have had since the kind exists */
	struct psd_heap works; /* pieces, ordered by done_sec at their ends */
};

struct psd_pool {
	struct psd_pool_kind *kinds; /* kinds that have work, in the order of most_cores */
	unsigned n_kinds, room;
	uint64_t next_seq;
	double cores;
	double at_sec;	/* time for which done_sec is valid */
	bool is_shared; /* the kinds' `cores` are up to date */
};

/* Makes a pool of `cores` > 0 cores without work; psd_pool_release() releases it. */
void psd_pool_init(struct psd_pool *pool, double cores);
void psd_pool_release(struct psd_pool *pool);

/* Begins work that takes sec > 0 seconds of one core. False: out of memory. */
bool psd_pool_add(struct psd_pool *pool, double now_sec, double sec, double most_cores, double copies, uint64_t tag);
/* Returns the time at which the first work ends if none is added; infinity without work. */
double psd_pool_next_sec(struct psd_pool *pool);
/* Removes a work that has less than a nanosecond left, and returns true with its tag; false if there is none. */
bool psd_pool_take_ended(struct psd_pool *pool, double now_sec, uint64_t *tag);

/* Pool of cores that a host uses. */
struct psd_pool_place {
	unsigned pool;
	double cores;
	unsigned hosts; /* number of hosts that share this pool */
};

/* Assigns a pool to each host of a layout on equal machines; returns the number of pools. On a machine with at least as
 * many cores as hosts each host has its own pool. On others all hosts share one. */
unsigned psd_pool_fill_places(struct psd_pool_place places[], const struct psd_layout *layout,
			      const struct psd_machine *machine);

#endif
