/* Methods: ways to synchronise an item. A method is a row in a file of its own, in engine/methods/; no other file asks
 * for an item's method. */
#ifndef PSD_METHOD_H
#define PSD_METHOD_H

#include <stdbool.h>

#include "engine/collectives/collective.h"
#include "engine/program/buffer.h"

struct psd_builder;
struct psd_stage;

/* Use of slices: a shard's part of each slice is summed while others are on their way. On demand: slices are made where
 * the scenario asks for them; some are then summed while others are copied. */
enum psd_slicing { PSD_SLICED_NEVER, PSD_SLICED_ON_DEMAND, PSD_SLICED };

struct psd_method {
	const char *name;			 /* name of the method in plans */
	const struct psd_collective *collective; /* the collective by which most nodes send to one at a time */
	/* Buffers that the method keeps beside parameters and gradients. With factors it takes only items whose
	 * gradients can be made from them. Without an encoded buffer it takes no lossy encoding. */
	bool keeps[PSD_BUFFERS];
	enum psd_slicing slicing;
	bool joins_nodes; /* leaders send for their nodes; with one worker per node another method does the same */
	bool has_root;	  /* each item belongs to the host of one shard; items take the hosts in turn */
	/* Appends the operations that synchronise an item, and marks those that end it. */
	void (*unroll)(struct psd_builder *builder, const struct psd_stage *whole);
};

/* Parameter server whose servers hold whole tensors. */
extern const struct psd_method psd_method_ps_by_tensors;
/* All methods with a file of their own, one row each, in the order of plans. */
#define PSD_METHODS(ROW) ROW(ps) ROW(two_level_ps) ROW(sfb) ROW(adam)

#define PSD_DECLARE_METHOD(identifier) extern const struct psd_method psd_method_##identifier;
PSD_METHODS(PSD_DECLARE_METHOD)
/* Methods for each of psd_all_reduces: with whole gradients, with selected chunks, with the chunks' norms. */
extern const struct psd_method psd_method_all_reduces[];
extern const struct psd_method psd_method_sparse[];
extern const struct psd_method psd_method_norms[];
/* Methods with compressed gradients, one for each of PSD_COMPRESSIONS. */
extern const struct psd_method psd_method_packed[];
/* Methods with low-rank gradients, one for each of psd_all_reduces. */
extern const struct psd_method psd_method_low_rank[];
/* Methods by a library, one for each of PSD_LIBRARIES. */
extern const struct psd_method psd_method_libraries[];

/* Largest number of candidates for an item: the rows above, one with compression or low rank and one all-reduce, or all
 * all-reduces. */
#define PSD_COUNT_METHOD(identifier) +1
enum { PSD_CANDIDATES = PSD_METHODS(PSD_COUNT_METHOD) + PSD_N_ALL_REDUCES };

#endif
