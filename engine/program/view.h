/* Values of an item (bucket) that a host has in a buffer. All memory, messages, copies and updates of a plan follow
 * from these functions. Pure functions, any thread. */
#ifndef PSD_VIEW_H
#define PSD_VIEW_H

#include "engine/program/plan.h"

/* Source or target of an operation: a buffer, and the part of a slice that `owner` gives each host. The operation reads
 * or writes those of the host's values in the buffer that are in this part. PSD_OWNER_ALL: all values that the host
 * has. */
struct psd_view {
	enum psd_buffer buffer;
	enum psd_owner owner;
};
/* Initialiser of a view of all values that a host has in a buffer. */
#define PSD_VIEW(name)                                                                                                 \
	{                                                                                                              \
		.buffer = PSD_BUFFER_##name                                                                            \
	}
/* Initialiser of a view of buffer PSD_BUFFER_name, with the values that owner PSD_OWNER_of gives each host. */
#define PSD_VIEW_OF(name, of)                                                                                          \
	{                                                                                                              \
		.buffer = PSD_BUFFER_##name, .owner = PSD_OWNER_##of                                                   \
	}

/* Returns the owner of a buffer's values: the owner in its row of psd_buffers or, for optimiser state, the owner of the
 * item's (bucket's) updates. */
enum psd_owner psd_buffer_owner(const struct psd_plan_item *item, enum psd_buffer buffer);

/* Returns the range that `owner` gives a host of an item's (bucket's) slice. Elements are counted from the item's
 * first element. */
struct psd_range psd_plan_owned(const struct psd_plan *plan, const struct psd_plan_item *item, unsigned slice,
				enum psd_owner owner, unsigned host);
/* Returns the range of compressed blocks that the buffer's owner gives a host. Blocks are counted from the item's
 * first block. */
struct psd_range psd_plan_owned_blocks(const struct psd_plan *plan, const struct psd_plan_item *item,
				       enum psd_owner owner, unsigned host);
/* Returns the range of values that a view has on a host: elements, counted from the first element of the slice; blocks,
 * values of low-rank matrices and of factors, all that the host has of the item (bucket) for one sender. */
struct psd_range psd_view_range(const struct psd_plan *plan, const struct psd_plan_item *item, unsigned slice,
				struct psd_view view, unsigned host);

/* Returns the number of values that a host has in one copy of a buffer, for one sender. */
uint64_t psd_plan_values(const struct psd_plan *plan, const struct psd_plan_item *item, enum psd_buffer buffer,
			 unsigned host);
/* Returns the number of times that a host stores the values of a buffer: 1, or the number of hosts that send them. */
unsigned psd_plan_times(const struct psd_plan *plan, const struct psd_plan_item *item, enum psd_buffer buffer,
			unsigned host);

/* True if a host has the factors of worker `sender` in an iteration: its own, and those that it receives. */
bool psd_plan_has_factors(const struct psd_plan *plan, const struct psd_plan_item *item, uint32_t iteration,
			  unsigned host, unsigned sender);
/* Returns the number of workers below rank `sender` whose factors a host has in an iteration. Factors are in the order
 * of rank. */
unsigned psd_plan_factors_before(const struct psd_plan *plan, const struct psd_plan_item *item, uint32_t iteration,
				 unsigned host, unsigned sender);

/* Returns the range of an item's (bucket's) elements that a host's device updates. Elements are counted from the item's
 * first element. */
struct psd_range psd_plan_updated(const struct psd_plan *plan, const struct psd_plan_item *item, unsigned host);

/* Consecutive elements of one tensor. */
struct psd_piece {
	uint64_t first; /* first element in the tensor */
	uint64_t elements;
};
/* Returns the elements of a range, counted from the item's first element, that belong to the item's tensor n. */
struct psd_piece psd_plan_piece(const struct psd_plan *plan, const struct psd_plan_item *item, struct psd_range range,
				unsigned n);

#endif
