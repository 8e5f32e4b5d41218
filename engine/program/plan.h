/* The plan: method, slices and reason for each gradient tensor. */
#ifndef PSD_PLAN_H
#define PSD_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/collectives/layout.h"
#include "engine/cost/cost.h"
#include "engine/cost/costs.h"
#include "engine/cost/prices.h"
#include "engine/encodings/compression.h"
#include "engine/model/graph.h"
#include "engine/program/method.h"
#include "engine/scenario/scenario.h"

/* An item (bucket): consecutive tensors that travel together. */
struct psd_plan_item {
	unsigned layer; /* lowest layer, whose gradient comes last */
	unsigned first; /* position in the plan's tensors */
	unsigned n_tensors;
	struct psd_subject subject;
	const struct psd_method *method;
	unsigned root;			/* host that owns the item, if its method has a root */
	unsigned n_slices;		/* parts, each moved by one operation */
	uint64_t travelling;		/* elements that travel; in a sparse plan the number expected to be chosen */
	uint32_t first_chunk, n_chunks; /* sparse plans */
	uint64_t n_blocks;		/* plans with compression */
	uint64_t left, right; /* low-rank plans: values of the narrow matrices; right is 0 where no tensor has any */
};

struct psd_plan {
	const struct psd_graph *graph; /* borrowed, as are the next three, for the life of the plan */
	const struct psd_costs *costs;
	const struct psd_system *system;
	struct psd_layout layout;
	const struct psd_method *candidates[PSD_CANDIDATES]; /* methods that an item is weighed by */
	unsigned n_candidates;
	struct psd_rates rates;	      /* with the fan-in of the plan's busiest receiver */
	struct psd_rates alone_rates; /* with the fan-in of a parameter server, the widest of all: for weighing */
	struct psd_prices *prices;    /* prices by alone_rates of weighed transfers; the input's, or the plan's own */
	bool has_own_prices;
	struct psd_machine machine;
	uint64_t fuse_bytes;		     /* smallest size of a bucket: the system's, or the size that was found */
	unsigned value_bytes;		     /* bytes of a value in the model's precision */
	const struct psd_encoding *wire;     /* encoding of values that travel; fp32: as the precision says */
	const struct psd_sparse *sparse;     /* NULL: all chunks of gradients travel */
	const struct psd_compress *compress; /* NULL: gradients travel uncompressed */
	const struct psd_compression *compression; /* its compression; NULL without `compress` */
	struct psd_block block;
	unsigned low_rank; /* rank of low-rank products; 0: gradients travel as they are */
	/* Local steps: the parameters' change since the last exchange travels in place of a gradient. NULL: workers
	 * have equal parameters. */
	const struct psd_local_sgd *local;
	uint32_t staleness; /* iterations by which updates lag; 0 also on a single worker */
	bool clips;	    /* updates depend on the norm of all gradients */
	/* Workers make all updates, since updates lag or depend on that norm. Shards send sums of gradients back, and
	 * keep no parameters. */
	bool workers_update;
	bool is_adaptive; /* the solver remembers squares of gradients, too */
	uint32_t n_chunks;
	/* The graph's tensors whose parameters change, in generation order: last layer first. */
	unsigned *tensors;
	unsigned n_tensors;
	/* Items, in the same order. The last one of a sparse plan has no tensors: its elements are the norms of all
	 * chunks. */
	struct psd_plan_item *items;
	unsigned n_items;
};

/* Input of a plan. All borrowed for the life of the plan. */
struct psd_plan_input {
	const struct psd_graph *graph;
	const struct psd_costs *costs;
	const struct psd_system *system;
	const struct psd_network *network;
	struct psd_layout layout;
	double link_bps;
	uint64_t fuse_bytes; /* psd_system_fuse_bytes() at the plan's point */
	uint32_t batch;
	bool is_half;	  /* values travel as 2 bytes */
	bool is_adaptive; /* the solver remembers squares of gradients, too */
	bool clips;	  /* updates depend on the norm of all gradients */
	struct psd_machine machine;
	struct psd_prices
		*prices; /* shared by plans that differ in the size of buckets alone; NULL: the plan has its own */
};

/* *plan is filled on success, released by psd_plan_release(). PSD_EINVAL: too many slices or bytes, an encoding that a
 * method does not take, or gradients that cannot be clipped; PSD_ENOMEM. */
enum psd_status psd_plan_make(struct psd_plan *plan, const struct psd_plan_input *input,
			      struct psd_error *err) PSD_MUST_CHECK;
void psd_plan_release(struct psd_plan *plan);

/* Number in the graph of the item's i-th tensor, i < n_tensors. Pure. */
unsigned psd_plan_tensor(const struct psd_plan *plan, const struct psd_plan_item *item, unsigned i);
/* The item has a tensor of the layer. Pure. */
bool psd_plan_has_layer(const struct psd_plan *plan, const struct psd_plan_item *item, unsigned layer);

/* Number of the item's slices by its method. Above the limit of a plan it is the limit plus one. Pure. */
unsigned psd_plan_slices(const struct psd_plan *plan, const struct psd_plan_item *item);

/* Hosts have the buffer for the item, beside parameters and gradients. It is the method's choice, with these
 * exceptions. With local steps devices keep momentum and starts, and shards keep none. Where workers update, devices
 * keep momentum, and shards none. Velocities exist where momentum comes before compression, squares where the solver is
 * adaptive. Pure. */
bool psd_plan_keeps(const struct psd_plan *plan, const struct psd_plan_item *item, enum psd_buffer buffer);
/* Iterations from one exchange to the next: 1 without local steps; the initial number if the loss decides. Pure. */
uint32_t psd_plan_steps(const struct psd_plan *plan);
/* Bytes of a value in a buffer. Pure. */
unsigned psd_plan_value_bytes(const struct psd_plan *plan, enum psd_buffer buffer);

/* Elements that a slice of the item covers, counted over the item's tensors in order; slice < n_slices. Pure, any
 * thread. */
struct psd_range psd_plan_slice(const struct psd_plan_item *item, unsigned slice);

#endif
