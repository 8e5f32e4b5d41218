/* Internals of the CPU device: blobs (a layer's output and its gradient), operations (a oneDNN primitive bound to
 * memory) and scratch memory. Private to real/device/cpu/. */
#ifndef PSD_REAL_CPU_H
#define PSD_REAL_CPU_H

#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/model/graph.h"
#include "real/device/device.h"
#include "real/device/layers.h"

#define PSD_CPU_ARGS_MAX 12

/* Function of OpenMP (libgomp, which oneDNN uses): sets the number of threads of calls from this thread. Declared here,
 * because omp.h is GCC's alone. */
void omp_set_num_threads(int n_threads);

/* Uses of scratch memory, which has no contents between calls. Each has a block of its own. */
enum psd_cpu_scratch_role {
	PSD_CPU_SCRATCH_PRIMITIVE, /* memory that a oneDNN primitive needs */
	PSD_CPU_SCRATCH_SOURCE,	   /* the input or its gradient, converted to another format */
	PSD_CPU_SCRATCH_WEIGHT,	   /* the weight or its gradient in another format; gradient of attention scores */
	PSD_CPU_SCRATCH_RESULT, /* the output's gradient in another format, or the input's where SOURCE has the input */
	PSD_CPU_SCRATCH_BRANCH, /* one reader's share of a gradient, before it is added to the others */
	PSD_CPU_SCRATCH_ROLES
};

struct psd_cpu_scratch {
	void *data; /* start of the block, allocated after every layer is prepared; its address is a slot */
	uint64_t bytes;
};

/* A oneDNN primitive and its arguments. A slot is the address of a pointer. The pointer is read at each execution, so
 * it may change after the operation was built. An operation of zeros does nothing. */
struct psd_cpu_op {
	struct psd_cpu_op *next; /* next in the list of operations that close releases */
	dnnl_primitive_desc_t desc;
	dnnl_primitive_t primitive;
	dnnl_exec_arg_t args[PSD_CPU_ARGS_MAX];
	void *const *slots[PSD_CPU_ARGS_MAX];
	void *bound[PSD_CPU_ARGS_MAX];
	int n_args;
};

struct psd_cpu_arg {
	int arg; /* number of the primitive's argument, DNNL_ARG_... */
	const dnnl_memory_desc_t *desc;
	void *const *slot;
};

/* Details of a layer with one primitive for forward and one for backward, and the workspace between them.
 * psd_cpu_forward() and psd_cpu_backward() execute them. */
struct psd_cpu_twins {
	struct psd_cpu_op forward, backward;
	void *workspace;
};

/* A layer's output (batch, channels, height, width) and the gradient of the loss with respect to it, both in the format
 * of desc. A layer that works in place uses its input's blob. */
struct psd_cpu_blob {
	dnnl_memory_desc_t desc;
	void *value;
	void *diff;
	void *share; /* destination of the current reader's gradient: diff, or scratch that is then added to diff */
	struct psd_cpu_op add;
	uint64_t bytes;
	bool has_diff;	      /* the layer or an earlier one has parameters to train, so the gradient is needed */
	bool is_filled;	      /* diff holds the gradient of at least one reader */
	unsigned owner;	      /* number of the layer that made the blob */
	unsigned last;	      /* number of the last layer that works on it in place, or owner */
	enum psd_keeps keeps; /* strictest need of all these layers for the old values */
};

struct psd_cpu_layer {
	struct psd_device *device;
	unsigned number;
	const struct psd_layer *model;
	const struct psd_cpu_kind *kind;
	struct psd_cpu_blob *blob; /* the layer's output: `own`, or the blob of its input if it works in place */
	struct psd_cpu_blob own;
	void **gradients; /* slots for the gradients of its tensors, or for its summand if a tensor is shared */
	unsigned n_readers;
	unsigned last_reader; /* highest number of the layers that read its output */
	void *details;	      /* state of the layer, in a type of its kind; or NULL */
};

struct psd_cpu_piece { /* element of the list of memory blocks */
	struct psd_cpu_piece *next;
};

struct psd_device {
	unsigned n_threads;
	/* The network and its tensors, set by load. */
	const struct psd_graph *graph;
	struct psd_network_options options;
	void **parameters; /* slots for the addresses of the caller's parameter tensors */
	void **gradients;
	void **states; /* slots for the addresses of the network's states */
	dnnl_engine_t engine;
	dnnl_stream_t stream;
	struct psd_cpu_layer *layers;
	struct psd_cpu_scratch scratch[PSD_CPU_SCRATCH_ROLES];
	struct psd_cpu_piece *pieces;
	struct psd_cpu_op *ops; /* first in the list of all described operations */
	uint64_t held_bytes;
	struct psd_batch batch;
	double loss;
	uint32_t correct;
};

/* Implementation of a layer kind. prepare chooses formats, declares the output and builds operations; it is called once
 * for each layer in forward order. Memory and operations live until close. */
struct psd_cpu_kind {
	enum psd_status (*prepare)(struct psd_cpu_layer *self, struct psd_error *err);
	enum psd_status (*forward)(struct psd_cpu_layer *self, struct psd_error *err);
	enum psd_status (*backward)(struct psd_cpu_layer *self, struct psd_error *err);
	size_t details_bytes; /* bytes of `details` for each layer, zeroed before prepare */
	enum psd_keeps keeps;
	bool leaves_signs; /* the layer may work in place, or zero the values without gradient */
	bool keeps_diff;   /* the gradient of its output is needed after the iteration */
};

/* Declares the implementation of each kind: psd_cpu_conv implements psd_layer_conv. */
#define PSD_DECLARE_CPU_KIND(kind) extern const struct psd_cpu_kind psd_cpu_##kind;
PSD_CARRIED_OUT_KINDS(PSD_DECLARE_CPU_KIND)
#undef PSD_DECLARE_CPU_KIND

/* Returns the implementation of a layer kind; NULL: there is none. */
const struct psd_cpu_kind *psd_cpu_find_kind(const struct psd_layer_kind *kind);

/* ---- memory (memory.c) ---- */

/* Allocates zeroed memory, aligned to 64 bytes, valid until close; NULL when memory runs out. */
void *psd_cpu_take(struct psd_device *device, uint64_t bytes);
void psd_cpu_release_taken(struct psd_device *device);
enum psd_status psd_cpu_no_memory(struct psd_error *err);
/* Returns the slot of a scratch block, and makes the block at least this large. */
void *const *psd_cpu_scratch_slot(struct psd_device *device, enum psd_cpu_scratch_role role, uint64_t bytes);
/* Allocates scratch and the gradients of blobs, after all layers are prepared. Gradients share memory if their
 * lifetimes do not overlap. */
enum psd_status psd_cpu_place(struct psd_device *device, struct psd_error *err) PSD_MUST_CHECK;

/* ---- blobs (blob.c) ---- */

/* Number of values in one map (channel) of the layer's output. */
uint64_t psd_cpu_places_of(const struct psd_cpu_layer *self);
/* Plain format of the layer's output: (batch, channels, height, width), rows adjacent. */
dnnl_memory_desc_t psd_cpu_plain(const struct psd_cpu_layer *self);
/* Format of the layer's output with channels last: the channels of a position are adjacent. */
dnnl_memory_desc_t psd_cpu_channels_last(const struct psd_cpu_layer *self);
dnnl_memory_desc_t psd_cpu_any(const struct psd_cpu_layer *self);
/* True if elements are in plain order, even if the description differs (blocks of channels of 1x1 maps). */
bool psd_cpu_is_plain(const dnnl_memory_desc_t *desc);
/* Returns the layer that makes input i; the next function returns its blob. */
const struct psd_cpu_layer *psd_cpu_below(const struct psd_cpu_layer *self, unsigned input);
struct psd_cpu_blob *psd_cpu_input(const struct psd_cpu_layer *self, unsigned input);
/* True if the layer may overwrite its input: no other layer reads it, and no lost value is needed. */
bool psd_cpu_may_work_in_place(const struct psd_cpu_layer *self);
/* Arguments for a blob's values, its gradient, or a reader's share of it; arg is set by the caller. */
static inline struct psd_cpu_arg psd_cpu_value(const struct psd_cpu_blob *blob)
{
	return (struct psd_cpu_arg){0, &blob->desc, &blob->value};
}
static inline struct psd_cpu_arg psd_cpu_diff(const struct psd_cpu_blob *blob)
{
	return (struct psd_cpu_arg){0, &blob->desc, &blob->diff};
}
static inline struct psd_cpu_arg psd_cpu_share(const struct psd_cpu_blob *blob)
{
	return (struct psd_cpu_arg){0, &blob->desc, &blob->share};
}
/* Destination of the first input's gradient; scratch if the gradient is not needed but the primitive computes it. */
void *const *psd_cpu_share_slot(const struct psd_cpu_layer *self);
/* Makes a new blob of this format for the layer's output; PSD_ENOMEM. */
enum psd_status psd_cpu_declare(struct psd_cpu_layer *self, const dnnl_memory_desc_t *desc,
				struct psd_error *err) PSD_MUST_CHECK;
/* Makes the first input's blob the layer's output, overwriting it; PSD_ENOMEM. */
enum psd_status psd_cpu_declare_in_place(struct psd_cpu_layer *self, struct psd_error *err) PSD_MUST_CHECK;
/* Called around a backward that writes blob->share: begin sets it, end adds it to the other readers' gradients. */
void psd_cpu_share_begin(const struct psd_cpu_layer *self, struct psd_cpu_blob *blob);
enum psd_status psd_cpu_share_end(struct psd_cpu_layer *self, struct psd_cpu_blob *blob,
				  struct psd_error *err) PSD_MUST_CHECK;

/* ---- operations (op.c); layer names whom an error is about ---- */

/* Creates the primitive's description, which fixes its formats. what: name in messages; failure: status of filling in
 * desc; hint: the forward twin, or NULL; post_ops: or NULL. PSD_EINVAL: oneDNN cannot do it. */
enum psd_status psd_cpu_op_describe(struct psd_cpu_op *op, struct psd_cpu_layer *self, const char *what,
				    dnnl_status_t failure, const_dnnl_op_desc_t desc, const struct psd_cpu_op *hint,
				    const_dnnl_post_ops_t post_ops, struct psd_error *err) PSD_MUST_CHECK;
const dnnl_memory_desc_t *psd_cpu_op_query(const struct psd_cpu_op *op, dnnl_query_t what);
/* Creates the primitive of a described operation; an argument whose slot is NULL is left out. */
enum psd_status psd_cpu_op_build(struct psd_cpu_op *op, struct psd_cpu_layer *self, const struct psd_cpu_arg args[],
				 int n_args, struct psd_error *err) PSD_MUST_CHECK;
/* Describes and builds an operation, for formats that are already known. */
enum psd_status psd_cpu_op_make(struct psd_cpu_op *op, struct psd_cpu_layer *self, const char *what,
				dnnl_status_t failure, const_dnnl_op_desc_t desc, const struct psd_cpu_op *hint,
				const struct psd_cpu_arg args[], int n_args, struct psd_error *err) PSD_MUST_CHECK;
/* Builds a copy from one format to another, even if they are equal. */
enum psd_status psd_cpu_op_copy(struct psd_cpu_op *op, struct psd_cpu_layer *self, struct psd_cpu_arg from,
				struct psd_cpu_arg to, struct psd_error *err) PSD_MUST_CHECK;
/* Builds the sum of two tensors in one format; the result may overwrite one of them. */
enum psd_status psd_cpu_op_sum(struct psd_cpu_op *op, struct psd_cpu_layer *self, const dnnl_memory_desc_t *format,
			       void *const *left, void *const *right, void *const *sum,
			       struct psd_error *err) PSD_MUST_CHECK;
/* Makes `from` available in the wanted format. slot: its address there, from's own or scratch that `op` fills. */
enum psd_status psd_cpu_op_convert(struct psd_cpu_op *op, struct psd_cpu_layer *self, struct psd_cpu_arg from,
				   const dnnl_memory_desc_t *wanted, enum psd_cpu_scratch_role role, void *const **slot,
				   struct psd_error *err) PSD_MUST_CHECK;
/* Makes `to` writable in the made format. slot: its address there, to's own or scratch that `op` copies to `to`. */
enum psd_status psd_cpu_op_deliver(struct psd_cpu_op *op, struct psd_cpu_layer *self, struct psd_cpu_arg to,
				   const dnnl_memory_desc_t *made, enum psd_cpu_scratch_role role, void *const **slot,
				   struct psd_error *err) PSD_MUST_CHECK;
/* Executes an operation. PSD_ERUN: oneDNN has failed. */
enum psd_status psd_cpu_op_run(struct psd_cpu_op *op, struct psd_cpu_layer *self, struct psd_error *err) PSD_MUST_CHECK;
/* Executes operations in order until one fails, as psd_cpu_op_run(). */
enum psd_status psd_cpu_op_run_all(struct psd_cpu_op *const ops[], unsigned n_ops, struct psd_cpu_layer *self,
				   struct psd_error *err) PSD_MUST_CHECK;
/* Executes operations that compute in->share, and adds it to the other readers' gradients. */
enum psd_status psd_cpu_op_share_all(struct psd_cpu_op *const ops[], unsigned n_ops, struct psd_cpu_layer *self,
				     struct psd_cpu_blob *in, struct psd_error *err) PSD_MUST_CHECK;
void psd_cpu_release_ops(struct psd_device *device);
/* Builds the forward operation of a layer with twins. *workspace: argument for its backward twin; PSD_ENOMEM. */
enum psd_status psd_cpu_build_forward(struct psd_cpu_layer *self, struct psd_cpu_arg *workspace,
				      struct psd_error *err) PSD_MUST_CHECK;
/* An element-wise function, such as ReLU. */
struct psd_cpu_function {
	dnnl_alg_kind_t algorithm;
	float alpha, beta;
	bool is_done;	  /* the function is fused into the layer below, so this layer does nothing */
	bool needs_input; /* backward reads the input; false: only the output */
};
/* Prepares a layer with an element-wise function, in place if possible. (eltwise.c) */
enum psd_status psd_cpu_prepare_eltwise(struct psd_cpu_layer *self, struct psd_cpu_function function,
					struct psd_error *err) PSD_MUST_CHECK;
/* Functions of struct psd_cpu_kind for layers with twins. */
enum psd_status psd_cpu_forward(struct psd_cpu_layer *self, struct psd_error *err);
enum psd_status psd_cpu_backward(struct psd_cpu_layer *self, struct psd_error *err);
/* Makes an error from oneDNN's status, with the layer's name. */
enum psd_status psd_cpu_fail(const struct psd_cpu_layer *self, const char *what, dnnl_status_t status,
			     struct psd_error *err);

/* ---- inner products and random numbers ---- */

/* psd_device_kind slots. */
psd_device_factors_fn psd_cpu_keep_factors;
psd_device_rebuild_fn psd_cpu_rebuild;
/* Philox 4x32-10: 128 random bits that are a function of the counter and the key. Source: Salmon et al., "Parallel
 * random numbers: as easy as 1, 2, 3", SC 2011. */
void psd_cpu_philox(const uint32_t counter[4], uint64_t key, uint32_t random[4]);

#endif
