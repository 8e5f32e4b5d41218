/* Shard map: distribution of a run's items over its hosts. It lists each item's tensors, slices and owner. A checkpoint
 * contains it as a line of text, so that a run on other hosts or with another system finds each element. Reads no
 * values.
 *
 * workers 4, on a node 2, servers 0, block 0, rank 0, local 0, adaptive 0: 3,2/7 1/2 0/1@2
 *
 * Behind the colon are the items: tensor numbers of the graph, slices, and the root if there is one. */
#ifndef PSD_REAL_SHARD_MAP_H
#define PSD_REAL_SHARD_MAP_H

#include "engine/base/arena.h"
#include "engine/base/text.h"
#include "engine/program/plan.h"

struct psd_shard_map_item {
	unsigned *tensors; /* tensor numbers, in the order of buffers */
	unsigned n_tensors;
	uint64_t elements, n_blocks;
	unsigned n_slices;
	bool has_root;
	unsigned root; /* host that updates the item */
};

/* Position of a tensor in its item. */
struct psd_shard_map_place {
	bool is_known; /* the tensor belongs to an item */
	unsigned item;
	uint64_t first, first_block; /* position of the tensor's first element and first block in the item */
	uint64_t first_right;	     /* position of the tensor's first right low-rank factor in the item */
};

struct psd_shard_map {
	const struct psd_graph *graph; /* graph of the model, borrowed */
	struct psd_layout layout;
	struct psd_block block; /* compression of the gradients; elements 0: none */
	unsigned rank;		/* number of columns of low-rank factors; 0: none */
	bool is_local;		/* workers have their own optimiser state */
	bool is_adaptive;	/* that state has means of gradients and of their squares */
	struct psd_shard_map_item *items;
	unsigned n_items;
	struct psd_shard_map_place *places; /* position of each tensor of the graph, one entry per tensor */
	struct psd_arena arena;
};

/* Makes the shard map of a plan. *shard_map is filled on success; psd_shard_map_release() frees it. PSD_ENOMEM. */
enum psd_status psd_shard_map_make(struct psd_shard_map *shard_map, const struct psd_plan *plan,
				   struct psd_error *err) PSD_MUST_CHECK;
/* Reads a shard map from a text of psd_shard_map_add() for this graph. PSD_EINVAL with `at`: malformed; PSD_ENOMEM. */
enum psd_status psd_shard_map_parse(struct psd_shard_map *shard_map, const struct psd_graph *graph, const char *text,
				    struct psd_place at, struct psd_error *err) PSD_MUST_CHECK;
void psd_shard_map_release(struct psd_shard_map *shard_map);
void psd_shard_map_add(struct psd_text *text, const struct psd_shard_map *shard_map);

/* Run of a tensor's elements that are contiguous in a buffer. */
struct psd_shard_map_run {
	unsigned host;	   /* host that has the run, if the buffer is distributed over shards */
	uint64_t first;	   /* position of the run in the host's buffer of the item */
	uint64_t elements; /* length of the run, >= 1 */
};

/* Returns the run that begins with this element of a tensor, which must be in an item. extent: all elements of an item,
 * or a shard's part of its slices or blocks. Pure. */
struct psd_shard_map_run psd_shard_map_find(const struct psd_shard_map *shard_map, enum psd_extent extent,
					    unsigned tensor, uint64_t element);

#endif
