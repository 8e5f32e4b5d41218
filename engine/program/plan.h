/* The plan of a system: the buckets of gradient tensors, and the method and number of slices with which each bucket is
 * synchronised. */
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

/* Item (bucket): consecutive tensors that are synchronised as one. */
struct psd_plan_item {
	unsigned layer; /* lowest layer of the item, whose gradient is computed last */
	unsigned first; /* index of the item's first tensor in the plan's tensors */
	unsigned n_tensors;
	struct psd_subject subject;	 /* sizes of the item, for the formulas of its cost */
	const struct psd_method *method; /* method that synchronises the item */
	unsigned root;			 /* number of the item's root host, if its method has a root */
	/* number of slices into which the item is cut; each is sent by an operation of its own */
	unsigned n_slices;
	/* number of elements that travel in an iteration; with sparse all-reduce the expected number */
	uint64_t travelling;
	/* sparse all-reduce: number of the item's first chunk, and number of its chunks */
	uint32_t first_chunk, n_chunks;
	unsigned n_narrow; /* low-rank compression: number of the item's tensors that travel as narrow matrices */
	uint64_t n_blocks; /* one-bit or top-k compression: number of the item's blocks */
	uint64_t left,
		/* low-rank compression: numbers of values in the left and in the right matrices of the item's tensors;
		 * right is 0 if no tensor has low-rank factors */
		right;
};

struct psd_plan {
	const struct psd_graph *graph;	 /* graph of the model, borrowed */
	const struct psd_costs *costs;	 /* durations of the model's layers, borrowed */
	const struct psd_system *system; /* system of the scenario that is planned, borrowed */
	struct psd_layout layout;
	const struct psd_method *candidates[PSD_CANDIDATES]; /* methods that are compared for each item */
	unsigned n_candidates;
	/* rates of the network if the plan's largest number of nodes send to one node at a time */
	struct psd_rates rates;
	/* rates of the network if all nodes send to a parameter server, used to compare methods */
	struct psd_rates alone_rates;
	/* cache: times of transfers at alone_rates, used to compare methods; the input's cache, or the plan's own */
	struct psd_prices *prices;
	bool has_own_prices;			   /* the plan owns `prices` */
	struct psd_machine machine;		   /* key `cluster.machine`: processor cores of a node */
	uint64_t fuse_bytes;			   /* smallest size of a bucket: the system's, or the best one found */
	unsigned value_bytes;			   /* bytes of a value in the model's precision */
	const struct psd_encoding *wire;	   /* encoding of values that travel; fp32: the model's precision */
	const struct psd_sparse *sparse;	   /* sparse communication; NULL: all chunks of gradients travel */
	const struct psd_compress *compress;	   /* compression of gradients; NULL: they travel uncompressed */
	const struct psd_compression *compression; /* compression that `compress` names; NULL without `compress` */
	struct psd_block block;			   /* length of compressed blocks; unused without `compress` */
	unsigned low_rank;			   /* rank of low-rank compression; 0: the plan does not use it */
	/* Local SGD: the change of the parameters since the last exchange travels in place of a gradient. NULL: the
	 * plan does not use local SGD, so all workers have equal parameters. */
	const struct psd_local_sgd *local;
	uint32_t staleness; /* number of iterations by which updates lag; 0 also on a single worker */
	bool clips;	    /* gradients are clipped by their global norm, so each update depends on all gradients */
	/* Workers make all updates, because updates lag or gradients are clipped. Then shards send sums of gradients
	 * back to workers, and keep no parameters. */
	bool workers_update;
	bool is_adaptive;  /* the solver keeps a mean of squared gradients, too */
	uint32_t n_chunks; /* sparse all-reduce: number of chunks of all items */
	/* The graph's tensors whose parameters change, in generation order: last layer first. */
	unsigned *tensors;
	unsigned n_tensors;
	/* Items, in the order of their tensors. With sparse all-reduce the last item has no tensors: its elements are
	 * the norms of all chunks. */
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
	double link_bps;     /* rate of a node's link, bits per second */
	uint64_t fuse_bytes; /* smallest size of a bucket: psd_system_fuse_bytes() at the plan's point of the sweep */
	uint32_t batch;	     /* number of samples per worker */
	bool is_half;	     /* mixed precision: the model's values travel in 2 bytes */
	bool is_adaptive;    /* the solver keeps a mean of squared gradients, too */
	bool clips;	     /* gradients are clipped by their global norm, so each update depends on all gradients */
	struct psd_machine machine; /* key `cluster.machine`: processor cores of a node */
	struct psd_prices *prices;  /* prices shared by plans that differ in bucket size; NULL: the plan's own */
};

/* Chooses buckets, methods and slices. *plan is filled on success and released by psd_plan_release(). PSD_EINVAL: too
 * many slices or bytes, an encoding that a method does not take, or gradients that cannot be clipped; PSD_ENOMEM. */
enum psd_status psd_plan_make(struct psd_plan *plan, const struct psd_plan_input *input,
			      struct psd_error *err) PSD_MUST_CHECK;
void psd_plan_release(struct psd_plan *plan);

/* Returns the number, among the graph's tensors, of tensor i of the item; i < n_tensors. Pure. */
unsigned psd_plan_tensor(const struct psd_plan *plan, const struct psd_plan_item *item, unsigned i);
/* True if one of the item's tensors belongs to the layer. Pure. */
bool psd_plan_has_layer(const struct psd_plan *plan, const struct psd_plan_item *item, unsigned layer);

/* Returns the number of slices into which the item's method cuts it; above the largest allowed number, that number plus
 * 1. Pure. */
unsigned psd_plan_slices(const struct psd_plan *plan, const struct psd_plan_item *item);

/* True if hosts need the buffer for the item. The method decides (psd_method.keeps), with these exceptions. With local
 * SGD, devices keep momentum and start values, and shards keep neither. If workers make all updates, devices keep
 * momentum and shards keep none. The velocity exists only if momentum is applied before compression, the mean of
 * squares only if the solver is adaptive. Pure. */
bool psd_plan_keeps(const struct psd_plan *plan, const struct psd_plan_item *item, enum psd_buffer buffer);
/* Returns the number of iterations from one exchange to the next: 1 without local SGD; the initial number if the number
 * depends on the loss. Pure. */
uint32_t psd_plan_steps(const struct psd_plan *plan);
/* Returns the bytes of one value of the buffer. Pure. */
unsigned psd_plan_value_bytes(const struct psd_plan *plan, enum psd_buffer buffer);

/* Returns the range of the item's elements that a slice covers; elements are counted over the item's tensors in order.
 * slice < n_slices. Pure, any thread. */
struct psd_range psd_plan_slice(const struct psd_plan_item *item, unsigned slice);

#endif
