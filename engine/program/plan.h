/* The plan: for every gradient tensor its method, slices and reason. */
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

/* One synchronisation: a run of tensors that travel together. */
struct psd_plan_item {
	unsigned layer; /* the lowest of them, whose gradient comes last */
	unsigned first; /* in the plan's tensors */
	unsigned n_tensors;
	struct psd_subject subject;
	const struct psd_method *method;
	unsigned root;			/* the host that owns it, where its method has one */
	unsigned n_slices;		/* parts that move as one operation each */
	uint64_t travelling;		/* of its elements; of a sparse plan's, as many as are expected to be chosen */
	uint32_t first_chunk, n_chunks; /* of a sparse plan's */
	uint64_t n_blocks;		/* of a plan that compresses */
	uint64_t left, right; /* values of the narrow matrices, of a plan of low rank; right 0: no tensor has any */
};

struct psd_plan {
	const struct psd_graph *graph; /* borrowed, as are the next three, for the life of the plan */
	const struct psd_costs *costs;
	const struct psd_system *system;
	struct psd_layout layout;
	const struct psd_method *candidates[PSD_CANDIDATES]; /* what an item may be weighed by */
	unsigned n_candidates;
	struct psd_rates rates; /* with the fan-in of the plan's busiest receiver */
	struct psd_rates
		alone_rates;	   /* with a parameter server's, the widest of all: what candidates are weighed with */
	struct psd_prices *prices; /* by those, of what has been weighed; the input's, or the plan's own */
	bool has_own_prices;
	struct psd_machine machine;
	uint64_t fuse_bytes;		     /* tensors are gathered to so much: the system's, or what was found */
	unsigned value_bytes;		     /* as the model's precision has it */
	const struct psd_encoding *wire;     /* as what values travel; fp32: as the precision has it */
	const struct psd_sparse *sparse;     /* or NULL: gradients travel as a whole */
	const struct psd_compress *compress; /* or NULL: as they are */
	const struct psd_compression *compression; /* by which; NULL without the former */
	struct psd_block block;
	unsigned low_rank; /* of the products that gradients travel as; 0: they travel as they are */
	/* Or NULL: workers have the same parameters. Else what travels as a gradient is how far a worker's own
	 * parameters have gone since the last exchange. */
	const struct psd_local_sgd *local;
	uint32_t staleness; /* iterations that updates come late; 0: none, also of a single worker */
	bool clips;	    /* updates go by the norm of all gradients */
	/* For either workers make all updates: what shards send back are sums of gradients, and they keep no
	 * parameters. */
	bool workers_update;
	bool is_adaptive; /* the solver remembers squares of gradients, too */
	uint32_t n_chunks;
	/* Of the graph those whose parameters change, in generation order: last layer first. */
	unsigned *tensors;
	unsigned n_tensors;
	/* Runs of them, in the same order. Of a sparse plan the last has no tensors: its elements are the norms of all
	 * chunks. */
	struct psd_plan_item *items;
	unsigned n_items;
};

/* What a plan is made for. All borrowed for the life of the plan. */
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
	bool clips;	  /* and goes by the norm of all gradients */
	struct psd_machine machine;
	struct psd_prices
		*prices; /* shared by plans that differ in what is gathered alone; NULL: the plan has its own */
};

/* *plan is filled on success, released by psd_plan_release(). PSD_EINVAL: too many slices or bytes, an encoding that a
 * method does not take, or gradients that cannot be clipped; PSD_ENOMEM. */
enum psd_status psd_plan_make(struct psd_plan *plan, const struct psd_plan_input *input,
			      struct psd_error *err) PSD_MUST_CHECK;
void psd_plan_release(struct psd_plan *plan);

/* The i-th tensor of an item, i < n_tensors, as the graph counts them. Pure. */
unsigned psd_plan_tensor(const struct psd_plan *plan, const struct psd_plan_item *item, unsigned i);
/* Some tensor of the item is the layer's. Pure. */
bool psd_plan_has_layer(const struct psd_plan *plan, const struct psd_plan_item *item, unsigned layer);

/* In how many parts the item moves by its method; more than a plan may have are no more than one too many. Pure. */
unsigned psd_plan_slices(const struct psd_plan *plan, const struct psd_plan_item *item);

/* Whether hosts have the buffer for the item, beside parameters and gradients: as its method says, but that with local
 * steps devices remember updates and starts, and shards nothing, where workers update devices remember that, and shards
 * nothing, velocities are where momentum comes before compression, and squares where the solver is adaptive. Pure. */
bool psd_plan_keeps(const struct psd_plan *plan, const struct psd_plan_item *item, enum psd_buffer buffer);
/* Iterations from one exchange to the next; 1 without local steps, and of steps that follow the loss those of the
 * beginning. Pure. */
uint32_t psd_plan_steps(const struct psd_plan *plan);
/* How wide a value is in a buffer. Pure. */
unsigned psd_plan_value_bytes(const struct psd_plan *plan, enum psd_buffer buffer);

/* The elements that a slice of the item covers, counted over the item's tensors in order; slice < n_slices. Pure, any
 * thread. */
struct psd_range psd_plan_slice(const struct psd_plan_item *item, unsigned slice);

#endif
