/* A binary heap: the smallest `at` leaves first. Equal ones leave in the order of `seq`, so that runs repeat exactly.
 * */
#ifndef PSD_HEAP_H
#define PSD_HEAP_H

#include <stdbool.h>
#include <stdint.h>

struct psd_heap_entry {
	double at; /* key of the order: a time, or a turn */
	uint64_t seq;
	uint64_t tag; /* tag by which the caller knows the entry */
};

struct psd_heap {			/* heap of entries; all zeros: empty */
	struct psd_heap_entry *entries; /* array of entries, the smallest first; freed by the caller */
	unsigned n, room;
};

/* Adds an entry. False: out of memory. */
bool psd_heap_push(struct psd_heap *heap, struct psd_heap_entry entry);
/* Removes and returns the smallest entry; the heap must not be empty. */
struct psd_heap_entry psd_heap_pop(struct psd_heap *heap);

#endif
