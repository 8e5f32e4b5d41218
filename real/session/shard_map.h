/* How what a run keeps of its items is spread over its hosts: which tensors an item has, in how many slices shards have
 * their parts of it, and who owns it. A checkpoint says so beside the values, in a line of text: so a run on other
 * hosts, or of another system, finds each element of a tensor. Refuses to read values.
 *
 *   workers 4, on a node 2, servers 0, block 0, rank 0, local 0, adaptive 0: 3,2/7 1/2 0/1@2
 *
 * Behind the colon are the items: tensors as the graph numbers them, slices, and the root where there is one. */
#ifndef PSD_REAL_SHARD_MAP_H
#define PSD_REAL_SHARD_MAP_H

#include "engine/base/arena.h"
#include "engine/base/text.h"
#include "engine/program/plan.h"

struct psd_shard_map_item {
	unsigned *tensors; /* in the order in which buffers have them */
	unsigned n_tensors;
	uint64_t elements, n_blocks;
	unsigned n_slices;
	bool has_root;
	unsigned root; /* host */
};

/* Where a tensor is. */
struct psd_shard_map_place {
	bool is_known; /* it is in an item */
	unsigned item;
	uint64_t first, first_block; /* of the item's elements, and of its blocks */
	uint64_t first_right;	     /* of the item's right narrow matrices */
};

struct psd_shard_map {
	const struct psd_graph *graph; /* borrowed */
	struct psd_layout layout;
	struct psd_block block; /* elements 0: nothing is compressed */
	unsigned rank;		/* of narrow matrices; 0: there are none */
	bool is_local;		/* workers remember updates of their own */
	bool is_adaptive;	/* what is remembered are means of gradients, and of their squares */
	struct psd_shard_map_item *items;
	unsigned n_items;
	struct psd_shard_map_place *places; /* one for each tensor of the graph */
	struct psd_arena arena;
};

/* Both fill *spread on success; psd_shard_map_release() releases it. Of a plan: PSD_ENOMEM. */
enum psd_status psd_shard_map_make(struct psd_shard_map *shard_map, const struct psd_plan *plan,
				   struct psd_error *err) PSD_MUST_CHECK;
/* Of a text that psd_shard_map_add() has made for the same graph. PSD_EINVAL with `at`: it is none; PSD_ENOMEM. */
enum psd_status psd_shard_map_parse(struct psd_shard_map *shard_map, const struct psd_graph *graph, const char *text,
				    struct psd_place at, struct psd_error *err) PSD_MUST_CHECK;
void psd_shard_map_release(struct psd_shard_map *shard_map);
void psd_shard_map_add(struct psd_text *text, const struct psd_shard_map *shard_map);

/* A run of elements of a tensor that lie side by side in a buffer. */
struct psd_shard_map_run {
	unsigned host;	   /* that has it, of an extent that is spread over shards */
	uint64_t first;	   /* in the host's buffer of the tensor's item */
	uint64_t elements; /* >= 1 */
};

/* From that element of a tensor on, which is in an item. extent: of all elements of an item, or of a shard's part of
 * its slices or blocks. Pure. */
struct psd_shard_map_run psd_shard_map_find(const struct psd_shard_map *shard_map, enum psd_extent extent,
					    unsigned tensor, uint64_t element);

#endif
