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
	unsigned layer; /* lowest layer of the item, whose gradient is computed last */
	unsigned first; /* index of the item's first tensor in the plan's tensors */
	unsigned n_tensors;
	struct psd_subject subject;
	const struct psd_method *method;
	unsigned root;			/* host that owns the item, if its method has a root */
	unsigned n_slices;		/* number of slices, each moved by one operation */
	uint64_t travelling;		/* number of elements that travel; in a sparse plan the expected number */
	uint32_t first_chunk, n_chunks; /* sparse plans: the item's first chunk and number of chunks */
	uint64_t n_blocks;		/* plans with compression: number of the item's blocks */
	uint64_t left,
		/* low-rank plans: number of values in the left and right matrices; right is 0 if no tensor has low-rank
		 * factors */
		right;
};

struct psd_plan {
	const struct psd_graph *graph; /* graph of the model, borrowed, as are the next three */
	const struct psd_costs *costs;
	const struct psd_system *system;
	struct psd_layout layout;
	const struct psd_method *candidates[PSD_CANDIDATES]; /* methods that are compared for each item */
	unsigned n_candidates;
	struct psd_rates rates;	      /* rates of the network for the plan's busiest receiver */
	struct psd_rates alone_rates; /* rates for a parameter server, used to compare methods */
	struct psd_prices *prices;    /* prices of compared transfers by alone_rates; the input's, or the plan's own */
	bool has_own_prices;
	struct psd_machine machine;
	uint64_t fuse_bytes;			   /* smallest size of a bucket: the system's, or the best one found */
	unsigned value_bytes;			   /* bytes of a value in the model's precision */
	const struct psd_encoding *wire;	   /* encoding of values that travel; fp32: the model's precision */
	const struct psd_sparse *sparse;	   /* sparse communication; NULL: all chunks of gradients travel */
	const struct psd_compress *compress;	   /* compression of gradients; NULL: they travel uncompressed */
	const struct psd_compression *compression; /* compression that `compress` names; NULL without `compress` */
	struct psd_block block;
	unsigned low_rank; /* rank of low-rank compression; 0: gradients travel uncompressed */
	/* Local steps: the parameters' change since the last exchange travels in place of a gradient. NULL: workers
	 * have equal parameters. */
	const struct psd_local_sgd *local;
	uint32_t staleness; /* number of iterations by which updates lag; 0 also on a single worker */
	bool clips;	    /* gradients are clipped, so updates depend on the norm of all gradients */
	/* Workers make all updates, since updates lag or depend on the norm of all gradients. Shards send sums of
	 * gradients back, and keep no parameters. */
	bool workers_update;
	bool is_adaptive; /* the solver keeps a mean of squared gradients, too */
	uint32_t n_chunks;
	/* The graph's tensors whose parameters change, in generation order: last layer first. */
	unsigned *tensors;
	unsigned n_tensors;
	/* Items, in the order of their tensors. The last one of a sparse plan has no tensors: its elements are the
	 * norms of all chunks. */
	struct psd_plan_item *items;
	unsigned n_items;
};

/* Input of a plan; all pointers are borrowed for the life of the plan. */
struct psd_plan_input {
	const struct psd_graph *graph;
	const struct psd_costs *costs;
	const struct psd_system *system;
	const struct psd_network *network;
	struct psd_layout layout;
	double link_bps;
	uint64_t fuse_bytes; /* smallest size of a bucket: psd_system_fuse_bytes() at the plan's point */
	uint32_t batch;
	bool is_half;	  /* values travel in 2 bytes */
	bool is_adaptive; /* the solver keeps a mean of squared gradients, too */
	bool clips;	  /* gradients are clipped, so updates depend on the norm of all gradients */
	struct psd_machine machine;
	struct psd_prices *prices; /* prices shared by plans that differ in bucket size; NULL: the plan's own */
};

/* Makes a plan. *plan is filled on success, released by psd_plan_release(). PSD_EINVAL: too many slices or bytes, an
 * encoding that a method does not take, or gradients that cannot be clipped; PSD_ENOMEM. */
enum psd_status psd_plan_make(struct psd_plan *plan, const struct psd_plan_input *input,
			      struct psd_error *err) PSD_MUST_CHECK;
void psd_plan_release(struct psd_plan *plan);

/* Number in the graph of the item's tensor i, i < n_tensors. Pure. */
unsigned psd_plan_tensor(const struct psd_plan *plan, const struct psd_plan_item *item, unsigned i);
/* True if the item has a tensor of the layer. Pure. */
bool psd_plan_has_layer(const struct psd_plan *plan, const struct psd_plan_item *item, unsigned layer);

/* Number of slices that the item's method makes. Above the limit of a plan it is the limit plus one. Pure. */
unsigned psd_plan_slices(const struct psd_plan *plan, const struct psd_plan_item *item);

/* True if hosts have the buffer for the item, beside parameters and gradients. It is the method's choice, with these
 * exceptions. With local steps devices keep momentum and starts, and shards keep none. Where workers update, devices
 * keep momentum, and shards none. Velocities exist where momentum comes before compression, squares where the solver is
 * adaptive. Pure. */
bool psd_plan_keeps(const struct psd_plan *plan, const struct psd_plan_item *item, enum psd_buffer buffer);
/* Iterations from one exchange to the next: 1 without local steps; the initial number if the loss sets it. Pure. */
uint32_t psd_plan_steps(const struct psd_plan *plan);
/* Bytes of a value in a buffer. Pure. */
unsigned psd_plan_value_bytes(const struct psd_plan *plan, enum psd_buffer buffer);

/* Range of elements that a slice of the item covers, counted over the item's tensors in order; slice < n_slices. Pure,
 * any thread. */
struct psd_range psd_plan_slice(const struct psd_plan_item *item, unsigned slice);

#endif
