/* Methods: ways to synchronise an item (bucket), for example by parameter servers or an all-reduce. Each method is a
 * struct psd_method in a file of engine/methods/. No other file may contain code for one method only. */
#ifndef PSD_METHOD_H
#define PSD_METHOD_H

#include <stdbool.h>

#include "engine/collectives/collective.h"
#include "engine/program/buffer.h"

struct psd_builder;
struct psd_stage;

/* Use of slices. An item that is cut into slices is sent slice by slice, so a shard sums one slice while others are on
 * their way. PSD_SLICED: always cut. PSD_SLICED_ON_DEMAND: cut only where the scenario sets `pipeline`; then one slice
 * is summed while another one is copied. */
enum psd_slicing { PSD_SLICED_NEVER, PSD_SLICED_ON_DEMAND, PSD_SLICED };

struct psd_method {
	const char *name; /* name of the method in plans */
	/* the collective in which the largest number of nodes send to one node at a time, which decides the rate of the
	 * network */
	const struct psd_collective *collective;
	/* Buffers that the method needs beside parameters and gradients. A method with buffers of factors accepts only
	 * items whose gradients can be computed from factors. A method without a buffer of encoded values accepts no
	 * lossy encoding. */
	bool keeps[PSD_BUFFERS];
	enum psd_slicing slicing;
	/* one worker of each node sends for all workers of the node; with one worker per node the method equals another
	 * one, and is no candidate */
	bool joins_nodes;
	/* each item belongs to one shard's host, its root; items are assigned to the shards' hosts in turn */
	bool has_root;
	/* Appends the operations that synchronise one item to the program, and marks those that end its
	 * synchronisation. */
	void (*unroll)(struct psd_builder *builder, const struct psd_stage *whole);
};

/* Parameter server whose servers hold whole tensors. */
extern const struct psd_method psd_method_ps_by_tensors;
/* All methods with a file of their own, in the order in which plans list them. */
#define PSD_METHODS(ROW) ROW(ps) ROW(two_level_ps) ROW(sfb) ROW(adam)

#define PSD_DECLARE_METHOD(identifier) extern const struct psd_method psd_method_##identifier;
PSD_METHODS(PSD_DECLARE_METHOD)
/* Methods that send whole gradients by an all-reduce, one for each of psd_all_reduces, in their order. */
extern const struct psd_method psd_method_all_reduces[];
/* Methods that send only selected chunks of gradients by an all-reduce, one for each of psd_all_reduces, in their
 * order. */
extern const struct psd_method psd_method_sparse[];
/* Methods that sum the norms of chunks by an all-reduce, one for each of psd_all_reduces, in their order. */
extern const struct psd_method psd_method_norms[];
/* Methods with compressed gradients, one for each of PSD_COMPRESSIONS. */
extern const struct psd_method psd_method_packed[];
/* Methods with low-rank gradients, one for each of psd_all_reduces. */
extern const struct psd_method psd_method_low_rank[];
/* Methods by a library, one for each of PSD_LIBRARIES. */
extern const struct psd_method psd_method_libraries[];

/* Largest number of candidate methods for an item: the methods of PSD_METHODS, and either all all-reduces or one method
 * with compression or low rank and one all-reduce. */
#define PSD_COUNT_METHOD(identifier) +1
enum { PSD_CANDIDATES = PSD_METHODS(PSD_COUNT_METHOD) + PSD_N_ALL_REDUCES };

#endif
