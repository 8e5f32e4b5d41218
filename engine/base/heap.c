#include "engine/base/heap.h"

#include "engine/base/grow.h"

static bool goes_before(const struct psd_heap_entry *a, const struct psd_heap_entry *b)
{
	return a->at < b->at || (a->at == b->at && a->seq < b->seq);
}

bool psd_heap_push(struct psd_heap *heap, struct psd_heap_entry entry)
{
	struct psd_heap_entry *grown = psd_grown(heap->entries, heap->n, &heap->room, sizeof(*grown));
	unsigned at = heap->n;

	if (!grown)
		return false;
	heap->entries = grown;
	for (heap->n++; at > 0 && goes_before(&entry, &heap->entries[(at - 1) / 2]); at = (at - 1) / 2)
		heap->entries[at] = heap->entries[(at - 1) / 2];
	heap->entries[at] = entry;
	return true;
}

struct psd_heap_entry psd_heap_pop(struct psd_heap *heap)
{
	const struct psd_heap_entry first = heap->entries[0], last = heap->entries[--heap->n];
	unsigned at = 0;

	for (unsigned child = 1; child < heap->n; child = 2 * at + 1) {
		if (child + 1 < heap->n && goes_before(&heap->entries[child + 1], &heap->entries[child]))
			child++;
		if (!goes_before(&heap->entries[child], &last))
			break;
		heap->entries[at] = heap->entries[child];
		at = child;
	}
	heap->entries[at] = last;
	return first;
}
