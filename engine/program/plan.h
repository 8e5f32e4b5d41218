/* The plan of a system on a cluster: the buckets of gradient tensors, and for each bucket the method that synchronises
 * it and its number of slices. */
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

/* Item (bucket): consecutive tensors that are synchronised together. */
struct psd_plan_item {
	/* lowest layer of the item (bucket); the gradient of this layer is computed last */
	unsigned layer;
	unsigned first; /* index in plan->tensors of the item's (bucket's) first tensor */
	unsigned n_tensors;
	/* size of the item's (bucket's) gradient and factors, from which its costs are computed */
	struct psd_subject subject;
	const struct psd_method *method; /* method that synchronises the item (bucket) */
	unsigned root; /* host number of the item's (bucket's) root; unused if its method has no root */
	/* number of slices into which the item (bucket) is divided; each slice has its own send operation */
	unsigned n_slices;
	/* number of the item's (bucket's) elements that hosts exchange in an iteration; with sparse all-reduce the
	 * expected number */
	uint64_t travelling;
	/* sparse all-reduce: number of the item's (bucket's) first chunk, counted over all items, and number of its
	 * chunks */
	uint32_t first_chunk, n_chunks;
	/* low-rank compression: number of the item's (bucket's) tensors that are sent as low-rank factors */
	unsigned n_narrow;
	uint64_t n_blocks; /* compression (PSD_COMPRESSIONS): number of the item's (bucket's) blocks */
	/* Low-rank compression: numbers of values in the left and in the right matrices of the item's (bucket's)
	 * tensors; right is 0 if no tensor has low-rank factors. */
	uint64_t left, right;
	uint32_t fragment; /* local SGD: number of the item's (bucket's) fragment, less than psd_plan_fragments() */
};

/* Kind of worker nodes (struct psd_kind_of_nodes) in a plan: batch and speed of their workers. */
struct psd_plan_kind {
	uint32_t batch; /* number of samples of a micro-batch of each worker */
	/* durations of the model's layers, and bytes per second of device and host, of these nodes' workers */
	struct psd_costs costs;
	struct psd_system system; /* the plan's system, with host costs that follow from the device */
	/* factor by which the device does all its work faster than `costs` tells */
	double speed_ratio;
	double bandwidth_bps; /* bandwidth of a node's link, each direction, bits per second */
};

struct psd_plan {
	const struct psd_graph *graph; /* graph of the model, borrowed */
	const struct psd_costs *costs; /* durations of the model's layers, borrowed */
	uint64_t job_iterations;       /* number of iterations of the training; 0: not known */
	uint32_t batch; /* number of samples of a micro-batch of each worker, unless its kind has another one */
	const struct psd_system *system; /* the system, borrowed from the scenario */
	struct psd_layout layout;
	/* kinds of worker nodes, layout.n_kinds entries, borrowed; NULL: all nodes are of one kind */
	const struct psd_plan_kind *kinds;
	/* methods that are compared for each item (bucket), n_candidates entries */
	const struct psd_method *candidates[PSD_CANDIDATES];
	unsigned n_candidates;
	/* Rates of the network. For incast they assume the largest number of nodes that, by any item's (bucket's)
	 * method, send to one node at the same time. */
	struct psd_rates rates;
	/* number of nodes that `rates` assumes to send to one node at the same time; 0 if the system has no incast */
	unsigned most_senders;
	/* rates of the network if all nodes send to one parameter server; used to compare methods */
	struct psd_rates alone_rates;
	/* cache of transfer times at alone_rates, used to compare methods; borrowed unless has_own_prices */
	struct psd_prices *prices;
	bool has_own_prices;	    /* the plan itself owns and releases `prices` */
	struct psd_machine machine; /* processor cores of the nodes, key `cluster.machine` */
	uint64_t fuse_bytes;	    /* smallest size of a bucket: the system's, or with `fuse: auto` the fastest one */
	unsigned value_bytes;	    /* bytes of a value in the model's precision */
	/* encoding of values that hosts send; with fp32 they keep the model's precision */
	const struct psd_encoding *wire;
	/* parameters of sparse all-reduce, also those of managed communication; NULL: all gradients are sent */
	const struct psd_sparse *sparse;
	/* with managed communication: the struct to which `sparse` points, owned; NULL: none */
	struct psd_sparse *managed;
	/* parameters of compression; NULL: gradients are sent uncompressed */
	const struct psd_compress *compress;
	/* the compression that `compress` names; NULL if `compress` is NULL */
	const struct psd_compression *compression;
	struct psd_block block; /* size of compressed blocks; unused if `compress` is NULL */
	unsigned low_rank;	/* rank of low-rank compression; 0: not used */
	/* Local SGD: hosts exchange the change of the parameters since the last exchange instead of gradients. NULL:
	 * not used, and all workers have equal parameters at all times. */
	const struct psd_local_sgd *local;
	/* Partial broadcast: number of peers to which a worker sends its factors in an iteration. Workers then differ
	 * in the parameters of items (buckets) that are sent as factors, and only these are averaged by local SGD. 0:
	 * factors go to all workers. */
	unsigned peers;
	/* Outer optimiser of local SGD; NULL: parameters become the average of all workers'. */
	const struct psd_outer *outer;
	/* Largest number of iterations by which updates may be late; always 0 with a single worker. With local SGD it
	 * is the delay of an exchange. */
	uint32_t staleness;
	/* Number of iterations by which all updates are late: `staleness`, or 0 with stale reads. */
	uint32_t lag;
	/* Stale reads: a worker sees its own gradients at once, and sums of all workers' gradients as they arrive, at
	 * most `staleness` iterations late. Workers' parameters then differ in training. */
	bool reads_stale;
	/* Asynchronous training: servers update by each worker's gradient as it arrives. NULL: not used. */
	const struct psd_async *async;
	/* number of micro-batches that a worker computes in an iteration, before one exchange; 1: no accumulation */
	uint32_t micro_batches;
	/* Gradients are clipped by the norm of all gradients together, so each update waits for all gradients. */
	bool clips;
	/* Number of sums of squares of each tensor that workers with parts of it add up: 1 for clipping, of gradients;
	 * 2 for LARS, of gradients and of parameters; 0: none. The last item (bucket) then has no tensors: its elements
	 * are the sums of all gradients, then those of all parameters. */
	unsigned sums_per_tensor;
	/* Workers make all updates, because updates are late or gradients are clipped. Shards then keep no parameters,
	 * and send the sums of gradients back to the workers. */
	bool workers_update;
	bool is_adaptive;  /* the optimiser is AdamW, which also keeps a mean of squared gradients */
	uint32_t n_chunks; /* sparse all-reduce: number of chunks of all items (buckets) together */
	/* Numbers, in the graph, of the n_tensors tensors that are trained, in the order in which their gradients are
	 * computed: last layer first. */
	unsigned *tensors;
	unsigned n_tensors;
	/* Items, in the order of their tensors. With sparse all-reduce there is a last item (bucket) without tensors:
	 * its elements are the norms of all chunks. With sums_per_tensor > 0 the elements of such a last item are sums
	 * of squares. */
	struct psd_plan_item *items;
	unsigned n_items;
};

/* Input of a plan. All pointers must stay valid as long as the plan. */
struct psd_plan_input {
	const struct psd_graph *graph;
	const struct psd_costs *costs;
	const struct psd_system *system;
	const struct psd_network *network;
	struct psd_layout layout;
	double link_bps; /* rate of a node's link, bits per second */
	/* smallest size of a bucket, from psd_system_fuse_bytes() at the plan's point of the sweep */
	uint64_t fuse_bytes;
	const struct psd_plan_kind *kinds; /* kinds of nodes, layout.n_kinds entries; NULL: there are none */
	uint64_t job_iterations;	   /* number of iterations of the training; 0: not known */
	uint32_t batch;	  /* number of samples of a micro-batch; without accumulation, of a worker in an iteration */
	bool is_half;	  /* precision of 16 bits: values of the model are sent in 2 bytes */
	bool is_adaptive; /* the optimiser is AdamW, which also keeps a mean of squared gradients */
	/* Gradients are clipped by the norm of all gradients together, so each update waits for all gradients. */
	bool clips;
	const struct psd_node *optimiser; /* node of the optimiser in the scenario; NULL: none */
	bool is_by_norms;		  /* the optimiser is LARS, whose rate for a tensor depends on norms */
	struct psd_machine machine;	  /* processor cores of the nodes, key `cluster.machine` */
	/* Cache of transfer times, shared by plans that differ only in the size of buckets; NULL: the plan makes its
	 * own. */
	struct psd_prices *prices;
};

/* Chooses buckets, methods and slices. *plan is filled on success and released by psd_plan_release(). PSD_EINVAL:
 * there are too many slices or bytes, a method does not support the encoding, or gradients cannot be clipped.
 * PSD_ENOMEM. */
enum psd_status psd_plan_make(struct psd_plan *plan, const struct psd_plan_input *input,
			      struct psd_error *err) PSD_MUST_CHECK;
void psd_plan_release(struct psd_plan *plan);
/* True if buckets or methods of the system depend on the rate of a node's link. False: plans for two rates differ in
 * their rates alone. Pure. */
bool psd_plan_depends_on_link(const struct psd_system *system);
/* Changes the rate of a node's link to input->link_bps. The rest of the input must be that of the plan, whose system
 * must not depend on the link. Programs of the plan stay valid. */
void psd_plan_set_link(struct psd_plan *plan, const struct psd_plan_input *input);

/* Returns the number, in the graph, of the item's (bucket's) tensor i < n_tensors. Pure. */
unsigned psd_plan_tensor(const struct psd_plan *plan, const struct psd_plan_item *item, unsigned i);
/* True if one of the item's (bucket's) tensors belongs to the layer. Pure. */
bool psd_plan_has_layer(const struct psd_plan *plan, const struct psd_plan_item *item, unsigned layer);

/* Returns the number of samples of a micro-batch of a worker. Pure. */
uint32_t psd_plan_batch(const struct psd_plan *plan, unsigned worker);

/* Returns the number of items (buckets) that have tensors. Pure. */
unsigned psd_plan_buckets(const struct psd_plan *plan);
/* True if another layer shares one of the item's (bucket's) tensors. Pure. */
bool psd_plan_is_shared(const struct psd_plan *plan, const struct psd_plan_item *item);
/* True if the item's (bucket's) whole gradient, or its whole parameters, take turns with those of other items in
 * memory. Never with a single worker, nor for tensors that several layers share. Pure. */
bool psd_plan_shares_gradients(const struct psd_plan *plan, const struct psd_plan_item *item);
bool psd_plan_shares_parameters(const struct psd_plan *plan, const struct psd_plan_item *item);

/* True if a worker adds up whole gradients of micro-batches. False: it has one micro-batch, or adds up only its part of
 * each gradient (PSD_BUFFER_SUM). Pure. */
bool psd_plan_adds_gradients(const struct psd_plan *plan);

/* Returns the number of slices into which the item's (bucket's) method divides it. If this exceeds the largest number
 * of slices that a plan may have, returns that number plus 1. Pure. */
unsigned psd_plan_slices(const struct psd_plan *plan, const struct psd_plan_item *item);

/* True if hosts need the buffer for the item (bucket). This follows from psd_method.keeps of its method, with these
 * exceptions. With local SGD, devices need momentum and start values, and shards need neither. If workers make all
 * updates, devices need momentum and shards do not. The velocity is needed only if momentum is applied before
 * compression. If workers send updates, their own momentum is needed in place of the other. The mean of squares is
 * needed only with AdamW. Pure. */
bool psd_plan_keeps(const struct psd_plan *plan, const struct psd_plan_item *item, enum psd_buffer buffer);
/* True if the item's (bucket's) gradient is made from factors of all workers instead of by the backward pass. False if
 * the only worker exchanges with nobody. Pure. */
bool psd_plan_rebuilds(const struct psd_plan *plan, const struct psd_plan_item *item);
/* Returns the number of iterations from one exchange of all values to the next: 1 without local SGD and managed
 * communication. If the number changes with the loss, returns the initial one. Pure. */
uint32_t psd_plan_steps(const struct psd_plan *plan);
/* True if workers differ in the item's (bucket's) parameters between two exchanges of local SGD. Pure. */
bool psd_plan_is_local(const struct psd_plan *plan, const struct psd_plan_item *item);
/* Returns the number of iterations after which workers send to the same peers again; 1 without a partial broadcast.
 * Pure. */
uint32_t psd_plan_rotation(const struct psd_plan *plan);
/* Returns the number of fragments that exchange in turn: 1 without local SGD. Pure. */
uint32_t psd_plan_fragments(const struct psd_plan *plan);
/* Returns the number of these fragments that have items (buckets): fewer, where tensors are few or large. Pure. */
uint32_t psd_plan_parts(const struct psd_plan *plan);
/* True if workers send updates by their own gradients in place of the gradients: managed communication with stale
 * reads. Pure. */
bool psd_plan_sends_updates(const struct psd_plan *plan);
/* Returns the number and the expected values of chunks that managed communication sends early; zeros: it is not
 * managed, or a worker is alone. Pure. */
struct psd_early_chunks psd_plan_early(const struct psd_plan *plan);
/* True if local SGD leaves workers with equal parameters only at the end of a run. Pure. */
bool psd_plan_streams(const struct psd_plan *plan);
/* Returns the bytes of one value of the buffer. Pure. */
unsigned psd_plan_value_bytes(const struct psd_plan *plan, enum psd_buffer buffer);

/* Returns the range of the item's (bucket's) elements in a slice < n_slices. Elements are numbered over all tensors of
 * the item, in order. Pure, any thread. */
struct psd_range psd_plan_slice(const struct psd_plan_item *item, unsigned slice);

#endif
