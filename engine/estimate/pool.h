/* Cores that pieces of work share as under an operating system's scheduler: each piece gets an equal share, but no more
 * than it can use. Has no clock: callers pass the time, which never decreases. */
#ifndef PSD_POOL_H
#define PSD_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/heap.h"
#include "engine/collectives/layout.h"
#include "engine/scenario/scenario.h"

/* Kind: all pieces of work that can use the same number of cores. At any time they have equal shares of the cores, so
 * the order in which they end is known when they begin. Therefore an event costs time per kind, not per piece. */
struct psd_pool_kind {
	double most_cores; /* number of cores that a piece can use at a time, > 0 */
	/* number of equal pieces that each recorded piece stands for, which begin and end together; >= 1 */
	double copies;
	double cores;	       /* number of cores that each piece uses now */
	double done_sec;       /* core seconds that one piece has received since the kind was added */
	struct psd_heap works; /* pieces, ordered by the value that done_sec has when they end */
};

struct psd_pool {
	struct psd_pool_kind *kinds; /* kinds that have work, in the order of most_cores */
	unsigned n_kinds, room;
	uint64_t next_seq; /* number of the next piece, which orders pieces that end together */
	double cores;
	double at_sec;	/* time at which done_sec was last updated, seconds */
	bool is_shared; /* `cores` of every kind is up to date */
};

/* Makes a pool of `cores` > 0 cores without work; psd_pool_release() releases it. */
void psd_pool_init(struct psd_pool *pool, double cores);
void psd_pool_release(struct psd_pool *pool);

/* Adds a piece of work that takes sec > 0 seconds of one core. most_cores, copies: as in struct psd_pool_kind. tag:
 * number by which the caller recognises the piece. Returns false when memory runs out. */
bool psd_pool_add(struct psd_pool *pool, double now_sec, double sec, double most_cores, double copies, uint64_t tag);
/* Returns the time at which the next piece of work ends if none is added before; infinity if there is no work. */
double psd_pool_next_sec(struct psd_pool *pool);
/* Removes a piece of work that has less than a nanosecond left, sets *tag to its tag and returns true. Returns false if
 * there is none. */
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
