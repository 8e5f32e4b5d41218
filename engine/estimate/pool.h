/* Pool of processor cores that pieces of work share, as with an operating system's scheduler: each piece gets an equal
 * share of the cores, but at most the number that it can use. This module has no clock: callers pass the time, which
 * never decreases. */
#ifndef PSD_POOL_H
#define PSD_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/heap.h"
#include "engine/collectives/layout.h"
#include "engine/scenario/scenario.h"

/* Kind: all pieces of work that can use the same number of cores. All pieces of a kind have equal shares at any
 * time. So their order of ending is known when they begin, and an event costs time for each kind instead of for
 * each piece. */
struct psd_pool_kind {
	double most_cores; /* largest number of cores that a piece can use at a time, > 0 */
	/* Number of equal pieces, which begin and end together, that one entry of `works` represents; >= 1. */
	double copies;
	double cores; /* number of cores that each piece uses now */
	/* core seconds that a piece would have received if it had run since the kind was added */
	double done_sec;
	struct psd_heap works; /* pieces of work, ordered by the value of done_sec at which they end */
};

struct psd_pool {
	/* kinds of work (struct psd_pool_kind) in the pool now, n_kinds entries, smallest most_cores first */
	struct psd_pool_kind *kinds;
	unsigned n_kinds, room;
	/* number that the next piece gets; of pieces that end together, the one with the lowest number ends first */
	uint64_t next_seq;
	double cores;
	double at_sec;	/* time up to which done_sec of all kinds is computed, seconds */
	bool is_shared; /* the values of psd_pool_kind.cores are correct for the present work in all kinds */
};

/* Makes a pool of `cores` > 0 cores without work; psd_pool_release() releases it. */
void psd_pool_init(struct psd_pool *pool, double cores);
void psd_pool_release(struct psd_pool *pool);

/* Adds a piece of work of sec > 0 core seconds. most_cores, copies: as in struct psd_pool_kind. tag: number by which
 * the caller recognises the piece. Returns false if memory runs out. */
bool psd_pool_add(struct psd_pool *pool, double now_sec, double sec, double most_cores, double copies, uint64_t tag);
/* Returns the time at which the next piece of work ends if no piece is added before, seconds; infinity if there is no
 * work. */
double psd_pool_next_sec(struct psd_pool *pool);
/* If a piece of work has less than a nanosecond left at now_sec, removes it, sets *tag to its tag and returns true.
 * Otherwise returns false. */
bool psd_pool_take_ended(struct psd_pool *pool, double now_sec, uint64_t *tag);

/* Cores that a host uses: a pool, and the number of cores in it. */
struct psd_pool_place {
	unsigned pool;
	double cores;
	unsigned hosts; /* number of hosts that share this pool */
};

/* Assigns a pool to each host of a layout, on machines with equal numbers of cores. If a machine has at least as many
 * cores as hosts, each host has its own pool with an equal share of the cores. Otherwise all hosts of the machine
 * share one pool. places: one entry per host. Returns the number of pools. */
unsigned psd_pool_fill_places(struct psd_pool_place places[], const struct psd_layout *layout,
			      const struct psd_machine *machine);

#endif
