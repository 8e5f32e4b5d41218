/* Cores that pieces of work share as under an operating system's scheduler: each piece gets an equal share, but no more
 * than it can use. Has no clock: callers pass the time, which never decreases. */
#ifndef PSD_POOL_H
#define PSD_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/heap.h"
#include "engine/collectives/layout.h"
#include "engine/scenario/scenario.h"

/* Pieces of work that can use equally many cores. At any time they have equal shares, so that the order in which they
 * end is known when they begin: an event takes a step for each kind, not for each piece. */
struct psd_pool_kind {
	double most_cores;     /* cores that a piece can use at a time, > 0 */
	double copies;	       /* pieces that each represents, which begin and end together; >= 1 */
	double cores;	       /* share of each piece now */
	double done_sec;       /* seconds of one core that each piece has had since the kind exists */
	struct psd_heap works; /* by done_sec at their ends */
};

struct psd_pool {
	struct psd_pool_kind *kinds; /* in the order of most_cores; each has work */
	unsigned n_kinds, room;
	uint64_t next_seq;
	double cores;
	double at_sec;	/* time to which done_sec refers */
	bool is_shared; /* the kinds' `cores` are valid */
};

/* Initialises a pool, which psd_pool_release() releases. cores > 0. */
void psd_pool_init(struct psd_pool *pool, double cores);
void psd_pool_release(struct psd_pool *pool);

/* Begins work of sec > 0 seconds of one core. False: out of memory. */
bool psd_pool_add(struct psd_pool *pool, double now_sec, double sec, double most_cores, double copies, uint64_t tag);
/* Returns the time when the first work ends if none is added; infinity without work. */
double psd_pool_next_sec(struct psd_pool *pool);
/* Removes a work with less than a nanosecond left: true, with its tag. */
bool psd_pool_take_ended(struct psd_pool *pool, double now_sec, uint64_t *tag);

/* The pool of a host. */
struct psd_pool_place {
	unsigned pool;
	double cores;
	unsigned hosts; /* number of hosts that share the pool */
};

/* Fills the pools of all hosts of a layout on equal machines; returns the number of pools. On a machine with at least
 * as many cores as hosts each host has a pool of its own, on others all share one. */
unsigned psd_pool_fill_places(struct psd_pool_place places[], const struct psd_layout *layout,
			      const struct psd_machine *machine);

#endif
