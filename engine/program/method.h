/* Methods: ways to synchronise an item. A method is a row in a file of its own, in engine/methods/; no other file asks
 * for an item's method. */
#ifndef PSD_METHOD_H
#define PSD_METHOD_H

#include <stdbool.h>

#include "engine/collectives/collective.h"
#include "engine/program/buffer.h"

struct psd_builder;
struct psd_stage;

/* Slices of an item: a shard's part of each is summed while others are on their way. On demand: where a scenario asks
 * for it, some are summed while others are copied. */
enum psd_slicing { PSD_SLICED_NEVER, PSD_SLICED_ON_DEMAND, PSD_SLICED };

struct psd_method {
	const char *name; /* name in plans */
	const struct psd_collective
		*collective; /* its collective with the largest number of nodes that send to one at a time */
	/* Buffers beside parameters and gradients. A method that keeps factors takes only items whose gradients are
	 * made from them; a method that keeps nothing encoded takes no lossy encoding. */
	bool keeps[PSD_BUFFERS];
	enum psd_slicing slicing;
	bool joins_nodes; /* leaders send for their nodes; on nodes of one worker another method does the same */
	bool has_root;	  /* an item belongs to the host of one shard, in turn */
	/* Appends the operations that synchronise an item, and names those that end it. */
	void (*unroll)(struct psd_builder *builder, const struct psd_stage *whole);
};

/* One row for each method, in the order of plans. */
#define PSD_METHODS(ROW) ROW(ps) ROW(two_level_ps) ROW(sfb) ROW(adam)

#define PSD_DECLARE_METHOD(identifier) extern const struct psd_method psd_method_##identifier;
PSD_METHODS(PSD_DECLARE_METHOD)
/* One for each of psd_all_reduces: for whole gradients, for their chosen chunks, for the chunks' norms. */
extern const struct psd_method psd_method_all_reduces[];
extern const struct psd_method psd_method_sparse[];
extern const struct psd_method psd_method_norms[];
/* One for each of PSD_COMPRESSIONS. */
extern const struct psd_method psd_method_packed[];
/* One for each of psd_all_reduces, for low-rank gradients. */
extern const struct psd_method psd_method_low_rank[];
/* One for each of PSD_LIBRARIES. */
extern const struct psd_method psd_method_libraries[];

/* Largest number of candidates for an item: the rows above, one packed or of low rank and one all-reduce, or all
 * all-reduces. */
#define PSD_COUNT_METHOD(identifier) +1
enum { PSD_CANDIDATES = PSD_METHODS(PSD_COUNT_METHOD) + PSD_N_ALL_REDUCES };

#endif
