/* Methods: how an item is synchronised. A method is a row in a file of its own, in engine/methods/; nothing outside of
 * it asks which method an item has. */
#ifndef PSD_METHOD_H
#define PSD_METHOD_H

#include <stdbool.h>

#include "engine/collectives/collective.h"
#include "engine/program/buffer.h"

struct psd_builder;
struct psd_stage;

/* Whether an item moves in slices: a shard's part of each is summed while others are on their way; or where a scenario
 * asks for it, so that some are summed while others are copied. */
enum psd_slicing { PSD_SLICED_NEVER, PSD_SLICED_ON_DEMAND, PSD_SLICED };

struct psd_method {
	const char *name;			 /* in plans */
	const struct psd_collective *collective; /* of its transfers: that in which most nodes send to one at a time */
	/* Beside parameters and gradients. Who keeps factors takes only items whose gradient is made from them; who
	 * keeps nothing encoded takes no lossy encoding. */
	bool keeps[PSD_BUFFERS];
	enum psd_slicing slicing;
	bool joins_nodes; /* leaders send for their nodes; where none has several workers it is another method */
	bool has_root;	  /* an item belongs to the host of one shard; shards take turns */
	/* Appends the operations that synchronise an item, and says which of them end it. */
	void (*unroll)(struct psd_builder *builder, const struct psd_stage *whole);
};

/* One row each, in the order in which plans show them. */
#define PSD_METHODS(ROW) ROW(ps) ROW(two_level_ps) ROW(sfb) ROW(adam)

#define PSD_DECLARE_METHOD(identifier) extern const struct psd_method psd_method_##identifier;
PSD_METHODS(PSD_DECLARE_METHOD)
/* One for each of psd_all_reduces: of whole gradients; of their chosen chunks; of the chunks' norms. */
extern const struct psd_method psd_method_all_reduces[];
extern const struct psd_method psd_method_sparse[];
extern const struct psd_method psd_method_norms[];
/* One for each of PSD_COMPRESSIONS. */
extern const struct psd_method psd_method_packed[];
/* The same of psd_all_reduces, for gradients as products of narrow matrices. */
extern const struct psd_method psd_method_low_rank[];
/* One for each of PSD_LIBRARIES. */
extern const struct psd_method psd_method_libraries[];

/* What an item of a system may be weighed by at most: the rows above, one packed or of low rank and one all-reduce, or
 * all of those. */
#define PSD_COUNT_METHOD(identifier) +1
enum { PSD_CANDIDATES = PSD_METHODS(PSD_COUNT_METHOD) + PSD_N_ALL_REDUCES };

#endif
