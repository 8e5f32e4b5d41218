/* Shard map: distribution of a run's items over its hosts. An item is one or several tensors that are synchronised as
 * one. The map has the tensors, the number of slices and the root of each item. A checkpoint contains it as a line of
 * text, so that a run on other hosts or with another system finds each element of a tensor. Reads no values of tensors.
 * An example of the text:
 *
 * workers 4, on a node 2, servers 0, block 0, rank 0, local 0, adaptive 0: 3,2/7 1/2 0/1@2
 *
 * Behind the colon are the items: numbers of their tensors, "/", number of slices, and "@" with the number of the root
 * if the item has one. "rank" is the number of columns of low-rank factors. */
#ifndef PSD_REAL_SHARD_MAP_H
#define PSD_REAL_SHARD_MAP_H

#include "engine/base/arena.h"
#include "engine/base/text.h"
#include "engine/program/plan.h"

struct psd_shard_map_item {
	/* Numbers of the tensors of the item (bucket), in the order in which buffers hold them; shape (n_tensors). */
	unsigned *tensors;
	unsigned n_tensors;
	uint64_t elements, n_blocks;
	unsigned n_slices;
	bool has_root;
	unsigned root; /* if has_root: number of the host that updates the item (bucket) */
};

/* Position of one tensor in the item (bucket) to which it belongs. */
struct psd_shard_map_place {
	bool is_known; /* the tensor belongs to an item (bucket); false: the other fields have no meaning */
	unsigned item;
	uint64_t first; /* number of the tensor's first element among those of its item (bucket), from 0 */
	/* Number of the tensor's first compressed block among those of its item (bucket), from 0. */
	uint64_t first_block;
	/* Number of the first element of the tensor's right low-rank factor among those of its item (bucket), from
	 * 0. */
	uint64_t first_right;
};

struct psd_shard_map {
	const struct psd_graph *graph; /* graph of the model; borrowed */
	struct psd_layout layout;
	/* Block of values that are compressed together; block.elements 0: gradients are not compressed. */
	struct psd_block block;
	unsigned rank;	  /* number of columns of the low-rank factors; 0: none */
	bool is_local;	  /* each worker has its own optimiser state, since it makes local steps */
	bool is_adaptive; /* the optimiser state has means of gradients and of squared gradients, as Adam's */
	struct psd_shard_map_item *items;
	unsigned n_items;
	struct psd_shard_map_place *places; /* position of each tensor; shape (graph->n_tensors) */
	struct psd_arena arena;
};

/* Makes the shard map of a plan into *shard_map, which psd_shard_map_release() frees. PSD_ENOMEM. */
enum psd_status psd_shard_map_make(struct psd_shard_map *shard_map, const struct psd_plan *plan,
				   struct psd_error *err) PSD_MUST_CHECK;
/* Reads a shard map for this graph from a text that psd_shard_map_add() has made. at: file of the text, for errors.
 * PSD_EINVAL: the text is malformed or does not fit the graph; PSD_ENOMEM. */
enum psd_status psd_shard_map_parse(struct psd_shard_map *shard_map, const struct psd_graph *graph, const char *text,
				    struct psd_place at, struct psd_error *err) PSD_MUST_CHECK;
void psd_shard_map_release(struct psd_shard_map *shard_map);
void psd_shard_map_add(struct psd_text *text, const struct psd_shard_map *shard_map);

/* Consecutive elements of a tensor that are consecutive in a buffer, too. */
struct psd_shard_map_run {
	/* Number of the host in whose buffer the elements are, if the buffer is distributed over shards. */
	unsigned host;
	/* Number of the first of these elements in that host's buffer of the item (bucket), from 0. */
	uint64_t first;
	uint64_t elements; /* number of these elements, >= 1 */
};

/* Finds element number `element` of a tensor, which must be in an item (bucket): returns the longest run of consecutive
 * elements that begins with it. extent: distribution of the buffer, either all elements of an item on one host, or a
 * part of its slices or compressed blocks on each shard. Pure. */
struct psd_shard_map_run psd_shard_map_find(const struct psd_shard_map *shard_map, enum psd_extent extent,
					    unsigned tensor, uint64_t element);

#endif
