/* Shard map: distribution of a run's items over its hosts. An item is one or several tensors that are synchronised as
 * one. For each item, the map has its tensors, its number of slices, and its root (the host that updates it). Each file
 * of a checkpoint contains the map as a line of text. So a run on other hosts or with another system can find each
 * element of a tensor. This module reads no values of tensors. An example of the text:
 *
 * workers 4, on a node 2, servers 0, block 0, rank 0, local 0, adaptive 0: 3,2/7 1/2 0/1@2
 *
 * After the colon there is a list of items: the numbers of an item's tensors, "/", its number of slices, "@" with the
 * number of its root if it has one, and "*" if each worker updates a part, "+" if each worker of a node does. "on a
 * node" is the number of workers of a node, "rank" the number of columns of the left low-rank factors. */
#ifndef PSD_REAL_SHARD_MAP_H
#define PSD_REAL_SHARD_MAP_H

#include "engine/base/arena.h"
#include "engine/base/text.h"
#include "engine/program/plan.h"

/* One item of the map. */
struct psd_shard_map_item {
	/* Numbers of the tensors of the item (bucket), in their order in buffers; shape (n_tensors). */
	unsigned *tensors;
	unsigned n_tensors;
	uint64_t elements, n_blocks;
	unsigned n_slices;
	bool has_root;
	unsigned root;		/* if has_root: number of the root, the host that updates the item (bucket) */
	enum psd_owner updates; /* owner of the elements that a device updates, see struct psd_method */
};

/* Position of one tensor in the item (bucket) to which it belongs. */
struct psd_shard_map_place {
	bool is_known; /* the tensor belongs to an item (bucket); false: the other fields have no meaning */
	unsigned item;
	uint64_t first; /* index of the tensor's first element among the elements of its item (bucket), from 0 */
	/* Index of the tensor's first compressed block among the blocks of its item (bucket), from 0. */
	uint64_t first_block;
	/* Index of the first element of the tensor's right low-rank factor among the elements of all right factors of
	 * its item (bucket), from 0. */
	uint64_t first_right;
};

struct psd_shard_map {
	const struct psd_graph *graph; /* graph of the model; borrowed */
	struct psd_layout layout;      /* its kinds of nodes are in the arena */
	/* Block: values that are compressed together. block.elements 0: gradients are not compressed. */
	struct psd_block block;
	unsigned rank; /* number of columns of the left low-rank factors; 0: there are no low-rank factors */
	bool is_local; /* local SGD: each worker has its own optimiser state */
	/* The optimiser state has means of gradients and means of squared gradients, as in AdamW. */
	bool is_adaptive;
	struct psd_shard_map_item *items;
	unsigned n_items;
	struct psd_shard_map_place *places; /* position of each tensor; shape (graph->n_tensors) */
	struct psd_arena arena;
};

/* Makes the shard map of a plan in *shard_map, which psd_shard_map_release() frees. PSD_ENOMEM. */
enum psd_status psd_shard_map_make(struct psd_shard_map *shard_map, const struct psd_plan *plan,
				   struct psd_error *err) PSD_MUST_CHECK;
/* Reads a shard map for this graph from a text made by psd_shard_map_add(). at: name of the file with the text, for
 * errors. PSD_EINVAL: the text is malformed, or names other tensors than the graph; PSD_ENOMEM. */
enum psd_status psd_shard_map_parse(struct psd_shard_map *shard_map, const struct psd_graph *graph, const char *text,
				    struct psd_place at, struct psd_error *err) PSD_MUST_CHECK;
void psd_shard_map_release(struct psd_shard_map *shard_map);
void psd_shard_map_add(struct psd_text *text, const struct psd_shard_map *shard_map);

/* Run of elements: consecutive elements of a tensor that are also consecutive in a buffer. */
struct psd_shard_map_run {
	bool is_divided; /* each host has other elements; false: a host with the buffer has all elements */
	unsigned host;	 /* if is_divided: number of the first host in whose buffer the elements are */
	/* distance between the numbers of successive hosts that have the same elements; 0: only one host has them */
	unsigned apart;
	/* Index of the first of these elements in that host's buffer of the item (bucket), from 0. */
	uint64_t first;
	uint64_t elements; /* number of these elements, >= 1 */
};

/* Finds element number `element` (from 0) of a tensor, which must belong to an item (bucket). Returns the longest run
 * of elements that begins with it in a buffer. Either a host has all elements of an item, or each shard or worker has a
 * part of the item's slices or compressed blocks. Pure. */
struct psd_shard_map_run psd_shard_map_find(const struct psd_shard_map *shard_map, enum psd_buffer buffer,
					    unsigned tensor, uint64_t element);

#endif
