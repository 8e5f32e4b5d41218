/* Cores that several pieces of work share as under an operating system's scheduler: whoever runs gets an equal share of
 * them, but no more than it can use. Knows no clock: callers say what time it is, never less than before. */
#ifndef PSD_POOL_H
#define PSD_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/heap.h"
#include "engine/collectives/layout.h"
#include "engine/scenario/scenario.h"

/* Pieces of work that can use equally many cores have equally many at any time: what one gets, all get. So the order in
 * which they end is known when they begin, and an event costs a step for each kind and not for each piece. */
struct psd_pool_kind {
	double most_cores;     /* that a piece can use at a time, > 0 */
	double copies;	       /* alike pieces that each stands for, which begin and end together; >= 1 */
	double cores;	       /* that each piece has now */
	double done_sec;       /* of one core, that each has had since the kind was first there */
	struct psd_heap works; /* by done_sec at their ends */
};

struct psd_pool {
	struct psd_pool_kind *kinds; /* in the order of most_cores; none without work */
	unsigned n_kinds, room;
	uint64_t next_seq;
	double cores;
	double at_sec;	/* what done_sec refers to */
	bool is_shared; /* the kinds' cores hold */
};

/* Released by psd_pool_release(); no memory before the first work. cores > 0 */
void psd_pool_init(struct psd_pool *pool, double cores);
void psd_pool_release(struct psd_pool *pool);

/* Work of sec > 0 seconds of one core begins. False: out of memory. */
bool psd_pool_add(struct psd_pool *pool, double now_sec, double sec, double most_cores, double copies, uint64_t tag);
/* When the first work that runs now will end, if nothing is added; infinity without any. */
double psd_pool_next_sec(struct psd_pool *pool);
/* Takes one that has ended by now, to a nanosecond: true, with its cookie. */
bool psd_pool_take_ended(struct psd_pool *pool, double now_sec, uint64_t *tag);

/* Which pool a host's work shares, and with how many others. */
struct psd_pool_place {
	unsigned pool;
	double cores;
	unsigned hosts; /* that share it */
};

/* The places of all hosts of a layout on machines of a kind; returns the number of pools. A machine with at least as
 * many cores as hosts gives each its own share of them, the others let all share all. */
unsigned psd_pool_fill_places(struct psd_pool_place places[], const struct psd_layout *layout,
			      const struct psd_machine *machine);

#endif
