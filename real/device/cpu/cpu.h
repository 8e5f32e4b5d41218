/* Internals of the CPU device: blobs (a layer's output and its gradient), operations (a oneDNN primitive with the
 * memory of its arguments) and scratch memory. Private to real/device/cpu/. */
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

#define PSD_CPU_ARGS_MAX 12 /* largest number of arguments of an operation */

/* Function of OpenMP (libgomp, which oneDNN uses): sets the number of threads of calls from this thread. Declared here,
 * because omp.h is GCC's alone. */
void omp_set_num_threads(int n_threads);

/* Uses of scratch memory, whose contents are undefined between calls. Each use has a memory block of its own. */
enum psd_cpu_scratch_role {
	PSD_CPU_SCRATCH_PRIMITIVE, /* memory that a oneDNN primitive needs */
	PSD_CPU_SCRATCH_SOURCE,	   /* the input or its gradient, converted to another format */
	PSD_CPU_SCRATCH_WEIGHT,	   /* the weight or its gradient in another format; gradient of attention scores */
	/* the output's gradient in another format; the input's gradient if SOURCE is in use for the input */
	PSD_CPU_SCRATCH_RESULT,
	/* gradient by one of the layers that read a blob, before it is added to those by the other layers */
	PSD_CPU_SCRATCH_BRANCH,
	PSD_CPU_SCRATCH_ROLES
};

struct psd_cpu_scratch {
	/* start of the block, which is allocated after all layers are prepared; &data is a slot (struct psd_cpu_op) */
	void *data;
	uint64_t bytes;
};

/* Operation: a oneDNN primitive and its arguments. A slot is the address of a pointer to an argument's memory; the
 * pointer is read at each execution, so it may change after the operation was built. An operation of all zeros does
 * nothing. */
struct psd_cpu_op {
	struct psd_cpu_op *next; /* next in the list of operations that psd_cpu_release_ops() releases */
	dnnl_primitive_desc_t desc;
	dnnl_primitive_t primitive;
	dnnl_exec_arg_t args[PSD_CPU_ARGS_MAX];
	void *const *slots[PSD_CPU_ARGS_MAX]; /* slot of each argument */
	void *bound[PSD_CPU_ARGS_MAX];	      /* address that each argument had at the last execution */
	int n_args;
};

/* Argument of a primitive. */
struct psd_cpu_arg {
	int arg; /* number of the primitive's argument, DNNL_ARG_... */
	const dnnl_memory_desc_t *desc;
	void *const *slot; /* slot of the argument's memory, see struct psd_cpu_op */
};

/* Details of a layer with one primitive for forward and one for backward, which psd_cpu_forward() and
 * psd_cpu_backward() execute. workspace: memory that forward writes for backward; NULL: none is needed. */
struct psd_cpu_twins {
	struct psd_cpu_op forward, backward;
	void *workspace;
};

/* A layer's output (batch, channels, height, width) and the gradient of the loss with respect to it, both in the format
 * of desc. A layer that works in place overwrites its input's blob, and has no blob of its own. */
struct psd_cpu_blob {
	dnnl_memory_desc_t desc;
	void *value; /* output of the layer */
	void *diff;  /* gradient of the loss with respect to the output */
	/* address to which the layer that reads this blob writes the gradient: diff, or scratch memory that is then
	 * added to diff */
	void *share;
	struct psd_cpu_op add; /* operation that adds the scratch memory to diff */
	uint64_t bytes;
	bool has_diff;	      /* the layer or an earlier one has parameters to train, so the gradient is needed */
	bool is_filled;	      /* diff has the gradient by at least one of the layers that read the blob */
	unsigned owner;	      /* number of the layer that made the blob */
	unsigned last;	      /* number of the last layer that works in place on the blob; `owner` if there is none */
	enum psd_keeps keeps; /* largest need for unchanged values among the owner and the layers in place */
};

struct psd_cpu_layer {
	struct psd_device *device;
	unsigned number;	       /* number of the layer in the graph */
	const struct psd_layer *model; /* layer in the graph */
	const struct psd_cpu_kind *kind;
	struct psd_cpu_blob *blob; /* the layer's output: `own`, or the blob of its input if it works in place */
	struct psd_cpu_blob own;
	/* slots (struct psd_cpu_op) of the gradients of the layer's tensors; if several layers share a tensor, the slot
	 * of memory for this layer's summand */
	void **gradients;
	unsigned n_readers;   /* number of layers that read its output */
	unsigned last_reader; /* highest number of the layers that read its output */
	void *details;	      /* state of the layer, in a type of its kind's file; NULL: it has none */
};

struct psd_cpu_piece { /* header of a memory block, element of the list of all blocks */
	struct psd_cpu_piece *next;
};

struct psd_device {
	unsigned n_threads;
	/* The network and its tensors, set by load. */
	const struct psd_graph *graph;
	struct psd_network_options options;
	void **parameters; /* addresses of the caller's parameter tensors; each entry is a slot (struct psd_cpu_op) */
	void **gradients;  /* addresses of the caller's gradient tensors; each entry is a slot */
	void **states;	   /* addresses of the network's states; each entry is a slot */
	dnnl_engine_t engine;
	dnnl_stream_t stream;
	struct psd_cpu_layer *layers;
	struct psd_cpu_scratch scratch[PSD_CPU_SCRATCH_ROLES];
	struct psd_cpu_piece *pieces;
	struct psd_cpu_op *ops; /* first element of the list of operations to release */
	uint64_t held_bytes;	/* bytes of all memory blocks */
	struct psd_batch batch;
	double loss;	  /* result of psd_device_kind.loss for this batch */
	uint32_t correct; /* result of psd_device_kind.correct for this batch */
};

/* Implementation of a layer kind on the CPU. prepare() chooses formats, declares the output blob and builds operations;
 * it is called once for each layer, in forward order. Memory and operations that it makes are valid until the device is
 * closed. */
struct psd_cpu_kind {
	enum psd_status (*prepare)(struct psd_cpu_layer *self, struct psd_error *err);
	enum psd_status (*forward)(struct psd_cpu_layer *self, struct psd_error *err);
	enum psd_status (*backward)(struct psd_cpu_layer *self, struct psd_error *err);
	size_t details_bytes; /* bytes of `details` for each layer, zeroed before prepare */
	enum psd_keeps keeps;
	/* the layer may overwrite its input even if PSD_KEEPS_SIGNS holds for it: it keeps the signs, or makes values
	 * without gradient zero */
	bool leaves_signs;
	bool keeps_diff; /* the gradient of its output is needed after the iteration, as a factor */
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
/* Releases all memory of psd_cpu_take(). */
void psd_cpu_release_taken(struct psd_device *device);
/* Fills err and returns PSD_ENOMEM. */
enum psd_status psd_cpu_no_memory(struct psd_error *err);
/* Returns the slot of a scratch block, and reserves at least `bytes` for the block. */
void *const *psd_cpu_scratch_slot(struct psd_device *device, enum psd_cpu_scratch_role role, uint64_t bytes);
/* Allocates scratch memory and the gradients of blobs; called once after all layers are prepared. Gradients that are
 * never in use at the same time share memory. PSD_ENOMEM. */
enum psd_status psd_cpu_place(struct psd_device *device, struct psd_error *err) PSD_MUST_CHECK;

/* ---- blobs (blob.c) ---- */

/* Returns the number of values in one channel of the layer's output: height times width. */
uint64_t psd_cpu_places_of(const struct psd_cpu_layer *self);
/* Returns the plain format of the layer's output: (batch, channels, height, width), in row-major order. */
dnnl_memory_desc_t psd_cpu_plain(const struct psd_cpu_layer *self);
/* Returns the format of the layer's output with channels last: (batch, height, width, channels) in memory. */
dnnl_memory_desc_t psd_cpu_channels_last(const struct psd_cpu_layer *self);
/* Returns a description of the layer's output that lets oneDNN choose the format. */
dnnl_memory_desc_t psd_cpu_any(const struct psd_cpu_layer *self);
/* True if elements are in row-major order, even if the description differs (for example blocks of channels with 1x1
 * maps). */
bool psd_cpu_is_plain(const dnnl_memory_desc_t *desc);
/* Returns the layer whose output is input number `input` of this layer. */
const struct psd_cpu_layer *psd_cpu_below(const struct psd_cpu_layer *self, unsigned input);
/* Returns the blob that is input number `input` of this layer. */
struct psd_cpu_blob *psd_cpu_input(const struct psd_cpu_layer *self, unsigned input);
/* True if the layer may overwrite its first input: only this layer reads it, and no layer needs its old values. */
bool psd_cpu_may_work_in_place(const struct psd_cpu_layer *self);
/* Returns an argument for a blob's values; the caller sets its `arg`. */
static inline struct psd_cpu_arg psd_cpu_value(const struct psd_cpu_blob *blob)
{
	return (struct psd_cpu_arg){0, &blob->desc, &blob->value};
}
/* Returns an argument for a blob's gradient; the caller sets its `arg`. */
static inline struct psd_cpu_arg psd_cpu_diff(const struct psd_cpu_blob *blob)
{
	return (struct psd_cpu_arg){0, &blob->desc, &blob->diff};
}
/* Returns an argument for the gradient that the current reader writes (blob->share); the caller sets its `arg`. */
static inline struct psd_cpu_arg psd_cpu_share(const struct psd_cpu_blob *blob)
{
	return (struct psd_cpu_arg){0, &blob->desc, &blob->share};
}
/* Returns the slot to which the gradient of the first input is written: the blob's `share`; scratch memory if the
 * gradient is not needed but the primitive computes it. */
void *const *psd_cpu_share_slot(const struct psd_cpu_layer *self);
/* Makes a new blob of this format for the layer's output; PSD_ENOMEM. */
enum psd_status psd_cpu_declare(struct psd_cpu_layer *self, const dnnl_memory_desc_t *desc,
				struct psd_error *err) PSD_MUST_CHECK;
/* Makes the blob of the first input the layer's output, which overwrites it; PSD_ENOMEM. */
enum psd_status psd_cpu_declare_in_place(struct psd_cpu_layer *self, struct psd_error *err) PSD_MUST_CHECK;
/* Called before a backward that writes blob->share: sets blob->share. */
void psd_cpu_share_begin(const struct psd_cpu_layer *self, struct psd_cpu_blob *blob);
/* Called after a backward that wrote blob->share: adds blob->share to the gradients by other readers, if there are
 * any. */
enum psd_status psd_cpu_share_end(struct psd_cpu_layer *self, struct psd_cpu_blob *blob,
				  struct psd_error *err) PSD_MUST_CHECK;

/* ---- operations (op.c); errors have the name of layer `self` ---- */

/* Creates the primitive's description, in which oneDNN chooses the formats. what: name in error messages; failure:
 * oneDNN's status when desc was filled; hint: the forward operation that belongs to a backward one, otherwise NULL;
 * post_ops: functions fused to the primitive, or NULL. PSD_EINVAL: oneDNN cannot do it. */
enum psd_status psd_cpu_op_describe(struct psd_cpu_op *op, struct psd_cpu_layer *self, const char *what,
				    dnnl_status_t failure, const_dnnl_op_desc_t desc, const struct psd_cpu_op *hint,
				    const_dnnl_post_ops_t post_ops, struct psd_error *err) PSD_MUST_CHECK;
/* Returns the format of an argument, which the description fixes; `what`: oneDNN's number of the query. */
const dnnl_memory_desc_t *psd_cpu_op_query(const struct psd_cpu_op *op, dnnl_query_t what);
/* Creates the primitive of a described operation; an argument whose slot is NULL is left out. */
enum psd_status psd_cpu_op_build(struct psd_cpu_op *op, struct psd_cpu_layer *self, const struct psd_cpu_arg args[],
				 int n_args, struct psd_error *err) PSD_MUST_CHECK;
/* psd_cpu_op_describe() and psd_cpu_op_build() in one call, for formats that are known before. */
enum psd_status psd_cpu_op_make(struct psd_cpu_op *op, struct psd_cpu_layer *self, const char *what,
				dnnl_status_t failure, const_dnnl_op_desc_t desc, const struct psd_cpu_op *hint,
				const struct psd_cpu_arg args[], int n_args, struct psd_error *err) PSD_MUST_CHECK;
/* Builds an operation that copies from one format to another; both may be equal. */
enum psd_status psd_cpu_op_copy(struct psd_cpu_op *op, struct psd_cpu_layer *self, struct psd_cpu_arg from,
				struct psd_cpu_arg to, struct psd_error *err) PSD_MUST_CHECK;
/* Builds an operation that adds two tensors of one format; the result may overwrite one of them. */
enum psd_status psd_cpu_op_sum(struct psd_cpu_op *op, struct psd_cpu_layer *self, const dnnl_memory_desc_t *format,
			       void *const *left, void *const *right, void *const *sum,
			       struct psd_error *err) PSD_MUST_CHECK;
/* Makes the argument `from` available in the wanted format. Sets *slot to from's own slot if its format is the wanted
 * one; otherwise to scratch memory, and builds `op`, which copies `from` to it. */
enum psd_status psd_cpu_op_convert(struct psd_cpu_op *op, struct psd_cpu_layer *self, struct psd_cpu_arg from,
				   const dnnl_memory_desc_t *wanted, enum psd_cpu_scratch_role role, void *const **slot,
				   struct psd_error *err) PSD_MUST_CHECK;
/* Lets a primitive write the argument `to` in format `made`. Sets *slot to to's own slot if its format is `made`;
 * otherwise to scratch memory, and builds `op`, which copies that memory to `to`. */
enum psd_status psd_cpu_op_deliver(struct psd_cpu_op *op, struct psd_cpu_layer *self, struct psd_cpu_arg to,
				   const dnnl_memory_desc_t *made, enum psd_cpu_scratch_role role, void *const **slot,
				   struct psd_error *err) PSD_MUST_CHECK;
/* Executes an operation. PSD_ERUN: oneDNN has failed. */
enum psd_status psd_cpu_op_run(struct psd_cpu_op *op, struct psd_cpu_layer *self, struct psd_error *err) PSD_MUST_CHECK;
/* Executes operations in order until one fails, as psd_cpu_op_run(). */
enum psd_status psd_cpu_op_run_all(struct psd_cpu_op *const ops[], unsigned n_ops, struct psd_cpu_layer *self,
				   struct psd_error *err) PSD_MUST_CHECK;
/* Executes operations that compute in->share, then adds it to the gradients by other readers of blob `in`. */
enum psd_status psd_cpu_op_share_all(struct psd_cpu_op *const ops[], unsigned n_ops, struct psd_cpu_layer *self,
				     struct psd_cpu_blob *in, struct psd_error *err) PSD_MUST_CHECK;
/* Releases oneDNN's objects of all operations. */
void psd_cpu_release_ops(struct psd_device *device);
/* Builds the forward operation of a layer with struct psd_cpu_twins. *workspace: argument that the backward operation
 * needs. PSD_ENOMEM. */
enum psd_status psd_cpu_build_forward(struct psd_cpu_layer *self, struct psd_cpu_arg *workspace,
				      struct psd_error *err) PSD_MUST_CHECK;
/* An element-wise function, such as ReLU. */
struct psd_cpu_function {
	dnnl_alg_kind_t algorithm;
	float alpha, beta;
	bool is_done;	  /* the function is fused into the layer below, so this layer does nothing */
	bool needs_input; /* backward reads the input; false: only the output */
};
/* Prepares a layer that applies an element-wise function, in place if possible. */
enum psd_status psd_cpu_prepare_eltwise(struct psd_cpu_layer *self, struct psd_cpu_function function,
					struct psd_error *err) PSD_MUST_CHECK;
/* Function psd_cpu_kind.forward of layers with struct psd_cpu_twins. */
enum psd_status psd_cpu_forward(struct psd_cpu_layer *self, struct psd_error *err);
/* Function psd_cpu_kind.backward of layers with struct psd_cpu_twins. */
enum psd_status psd_cpu_backward(struct psd_cpu_layer *self, struct psd_error *err);
/* Fills err from oneDNN's status and the layer's name, and returns PSD_EINVAL, PSD_ENOMEM or PSD_ERUN. what: name of
 * the operation. */
enum psd_status psd_cpu_fail(const struct psd_cpu_layer *self, const char *what, dnnl_status_t status,
			     struct psd_error *err);

/* ---- inner products and random numbers ---- */

/* Functions of psd_device_kind: keep_factors and rebuild. */
psd_device_factors_fn psd_cpu_keep_factors;
psd_device_rebuild_fn psd_cpu_rebuild;
/* Philox 4x32-10: 128 random bits that are a function of the counter and the key. Source: Salmon et al., "Parallel
 * random numbers: as easy as 1, 2, 3", SC 2011. */
void psd_cpu_philox(const uint32_t counter[4], uint64_t key, uint32_t random[4]);

#endif
