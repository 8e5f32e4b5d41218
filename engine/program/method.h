/* Methods: ways to synchronise an item (bucket), for example by parameter servers or by an all-reduce. Each method is
 * a struct psd_method in a file of engine/methods/. Code for a single method must not be in any other file. */
#ifndef PSD_METHOD_H
#define PSD_METHOD_H

#include <stdbool.h>

#include "engine/collectives/collective.h"
#include "engine/program/buffer.h"

struct psd_builder;
struct psd_stage;

/* Use of slices. The slices of an item (bucket) are sent one after the other, so a shard can sum a slice while later
 * ones are on their way. PSD_SLICED: items are always divided into slices. PSD_SLICED_ON_DEMAND: only if the scenario
 * sets `pipeline`; then a slice is summed while the next is copied. PSD_SLICED_NEVER: an item is a single slice. */
enum psd_slicing { PSD_SLICED_NEVER, PSD_SLICED_ON_DEMAND, PSD_SLICED };

struct psd_method {
	const char *name; /* name of the method in the output of `psd-sim plan` */
	/* the collective of this method in which most nodes send to one node at the same time; it decides the rates of
	 * the network */
	const struct psd_collective *collective;
	/* Method that takes this method's place where an item is synchronised alone: it moves the same bytes on each
	 * link in the same time. NULL: none is known. */
	const struct psd_method *alone;
	/* Buffers that the method needs in addition to parameters and gradients. A method with buffers of factors can
	 * synchronise only items (buckets) whose gradients can be computed from factors. A method without a buffer of
	 * encoded values cannot use a lossy encoding. */
	bool keeps[PSD_BUFFERS];
	/* Owner of the elements that a device updates: each worker updates all elements, or its part of them. */
	enum psd_owner updates;
	/* Memory for whole gradients has room for this number of buckets, which items use in turn; 0: each item has its
	 * own memory. */
	unsigned gradient_slots;
	/* Memory for whole parameters has room for `systems.prefetch` + 1 buckets, which items use in turn. Between
	 * uses a worker keeps only the parameters that it updates. */
	bool gathers;
	enum psd_slicing slicing;
	/* In each node one worker, the leader, sends for all workers of the node. With one worker per node this method
	 * would equal another one, so plans do not consider it then. */
	bool joins_nodes;
	/* Factors go to some workers, which change with the iteration (psd_partial_broadcast). */
	bool is_partial;
	/* each item (bucket) belongs to one host with a shard, its root; items are assigned to these hosts round robin
	 * */
	bool has_root;
	/* Appends the operations that synchronise one item (bucket) to the program, and marks those that end the
	 * synchronisation (psd_builder_add_done()). whole: stage of the whole item. */
	void (*unroll)(struct psd_builder *builder, const struct psd_stage *whole);
};

/* Parameter server that keeps whole tensors on its servers instead of parts of each. */
extern const struct psd_method psd_method_ps_by_tensors;
/* Parameter server that updates by the gradient of each worker as it arrives (psd_plan.async). */
extern const struct psd_method psd_method_async;
/* Broadcast of factors to some workers, which change with the iteration. */
extern const struct psd_method psd_method_partial_sfb;
/* Broadcast of factors in which all factors of a node's workers travel between nodes as one message. */
extern const struct psd_method psd_method_two_level_sfb;
/* Methods that have a file of their own, in the order in which plans list them. */
#define PSD_METHODS(ROW) ROW(ps) ROW(two_level_ps) ROW(sfb) ROW(adam)

#define PSD_DECLARE_METHOD(identifier) extern const struct psd_method psd_method_##identifier;
PSD_METHODS(PSD_DECLARE_METHOD)
/* Methods that sum whole gradients by an all-reduce; entry i uses psd_all_reduces[i]. */
extern const struct psd_method psd_method_all_reduces[];
/* Methods that sum only chosen chunks of gradients by an all-reduce; entry i uses psd_all_reduces[i]. */
extern const struct psd_method psd_method_sparse[];
/* Methods that sum the norms of chunks by an all-reduce; entry i uses psd_all_reduces[i]. */
extern const struct psd_method psd_method_norms[];
/* Methods that send compressed gradients through shards; entry i uses psd_compressions[i]. */
extern const struct psd_method psd_method_packed[];
/* Methods that sum low-rank factors by an all-reduce; entry i uses psd_all_reduces[i]. */
extern const struct psd_method psd_method_low_rank[];
/* Methods whose all-reduce a library executes; entry i is for psd_libraries[i]. */
extern const struct psd_method psd_method_libraries[];

/* Methods of sharded data-parallel training, which divide updates among workers. */
#define PSD_DECLARE_SHARDED(identifier, text)                                                                          \
	extern const struct psd_method psd_method_##identifier, psd_method_##identifier##_in_nodes;
PSD_SHARDED(PSD_DECLARE_SHARDED)
/* Sums the sums of squares of tensors over workers that have parts of them (psd_plan.sums_per_tensor). */
extern const struct psd_method psd_method_squares;

/* Largest number of candidate methods of a plan: the methods of PSD_METHODS, and one for each all-reduce. */
#define PSD_COUNT_METHOD(identifier) +1
enum { PSD_CANDIDATES = PSD_METHODS(PSD_COUNT_METHOD) + PSD_N_ALL_REDUCES };

#endif
