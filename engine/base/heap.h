/* A binary heap from which the entry with the smallest `at` is removed first. Among equal ones it is the entry with
 * the smallest `seq`, so that runs repeat exactly. */
#ifndef PSD_HEAP_H
#define PSD_HEAP_H

#include <stdbool.h>
#include <stdint.h>

struct psd_heap_entry {
	double at; /* key of the order, such as a time or a turn */
	uint64_t seq;
	uint64_t tag; /* number by which the caller recognises the entry; not used by the heap */
};

struct psd_heap { /* heap of n entries, with memory for `room`; all zeros: empty */
	/* array of entries in the heap's order, entries[0] is the smallest; freed by the caller */
	struct psd_heap_entry *entries;
	unsigned n, room;
};

/* Adds an entry. Returns false if memory runs out. */
bool psd_heap_push(struct psd_heap *heap, struct psd_heap_entry entry);
/* Removes the smallest entry and returns it. The heap must not be empty. */
struct psd_heap_entry psd_heap_pop(struct psd_heap *heap);

#endif
