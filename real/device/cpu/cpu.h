/* Internals of the CPU device: blobs (a layer's output and the gradient of the loss with respect to it), operations (a
 * oneDNN primitive with the memory of its arguments) and scratch memory. Private to real/device/cpu/. */
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

/* Function of OpenMP (libgomp, which oneDNN uses): sets the number of threads of calls from this thread. It is declared
 * here because only GCC has omp.h. */
void omp_set_num_threads(int n_threads);

/* Purpose of scratch memory, whose contents are undefined between calls. Each purpose has its own memory block, which
 * all layers share. */
enum psd_cpu_scratch_role {
	PSD_CPU_SCRATCH_PRIMITIVE, /* memory that a oneDNN primitive needs */
	PSD_CPU_SCRATCH_SOURCE,	   /* a layer's input, or the gradient of the input, converted to another format */
	/* a layer's weight, or the gradient of the weight, converted to another format; in attention: gradient of the
	 * scores */
	PSD_CPU_SCRATCH_WEIGHT,
	/* gradient of a layer's output, converted to another format; or, if PSD_CPU_SCRATCH_SOURCE has the layer's
	 * input, the gradient of this input */
	PSD_CPU_SCRATCH_RESULT,
	/* if several layers read a blob (a layer's output): the gradient that one of them computes, before it is added
	 * to the sum of all */
	PSD_CPU_SCRATCH_BRANCH,
	PSD_CPU_SCRATCH_ROLES
};

struct psd_cpu_scratch {
	/* Address of the block, which is allocated after all layers are prepared. &data is used as a slot (address of a
	 * pointer), see struct psd_cpu_op. */
	void *data;
	uint64_t bytes;
};

/* Operation: a oneDNN primitive and its arguments. A slot is the address of a pointer to an argument's memory. The
 * pointer is read at each execution, so it may change after the operation was built. An operation of all zeros does
 * nothing. */
struct psd_cpu_op {
	struct psd_cpu_op *next; /* next operation in the list that psd_cpu_release_ops() releases */
	dnnl_primitive_desc_t desc;
	dnnl_primitive_t primitive;
	dnnl_exec_arg_t args[PSD_CPU_ARGS_MAX];
	void *const *slots[PSD_CPU_ARGS_MAX]; /* slot (see above) of each argument */
	void *bound[PSD_CPU_ARGS_MAX];	      /* address that the memory of each argument had at the last execution */
	int n_args;
};

/* Argument of a primitive. */
struct psd_cpu_arg {
	int arg; /* oneDNN's number of the argument, DNNL_ARG_... */
	const dnnl_memory_desc_t *desc;
	void *const *slot; /* slot of the argument's memory, see struct psd_cpu_op */
};

/* Value of psd_cpu_layer.details for layers with one primitive for the forward pass and one for the backward pass.
 * psd_cpu_forward() and psd_cpu_backward() execute them. workspace: memory that the forward pass writes for the
 * backward pass; NULL: not needed. */
struct psd_cpu_twins {
	struct psd_cpu_op forward, backward;
	void *workspace;
};

/* Blob: a layer's output (batch, channels, height, width) and the gradient of the loss with respect to it, both in the
 * format of desc. A layer that works in place overwrites its input's blob, and has no blob of its own. */
struct psd_cpu_blob {
	dnnl_memory_desc_t desc;
	void *value; /* output of the layer */
	void *diff;  /* gradient of the loss with respect to the output */
	/* Address to which a layer that reads this blob writes the blob's gradient. It is diff, or scratch memory if
	 * other layers have written to diff already; the scratch memory is then added to diff. */
	void *share;
	struct psd_cpu_op add; /* operation that adds the scratch memory to diff */
	uint64_t bytes;
	bool has_diff;	/* the gradient is needed, because this layer or an earlier one has parameters to train */
	bool is_filled; /* at least one of the layers that read the blob has written its gradient to diff */
	unsigned owner; /* number of the layer that made the blob */
	/* Number of the last layer that works in place on the blob; equal to `owner` if there is none. */
	unsigned last;
	/* Largest part of the blob's values that the owner's backward pass, or that of a layer working in place, reads.
	 * Later layers must not change this part. */
	enum psd_keeps keeps;
};

struct psd_cpu_layer {
	struct psd_device *device;
	unsigned number;	       /* number of the layer in the graph */
	const struct psd_layer *model; /* description of the layer in the graph */
	const struct psd_cpu_kind *kind;
	struct psd_cpu_blob *blob; /* the layer's output: `own`, or the blob of its input if it works in place */
	struct psd_cpu_blob own;
	/* For each tensor of the layer, the slot (struct psd_cpu_op) of its gradient. If several layers share a tensor,
	 * it is the slot of memory for this layer's summand of the gradient. */
	void **gradients;
	unsigned n_readers;   /* number of layers that read its output */
	unsigned last_reader; /* highest number of the layers that read its output */
	bool has_relu;	      /* a convolution that applies the ReLU behind it, too */
	void *details;	      /* state of the layer, whose type depends on the layer kind; NULL: none */
};

struct psd_cpu_piece { /* header of a memory block, and element of the list of all blocks */
	struct psd_cpu_piece *next;
};

struct psd_device {
	unsigned n_threads;
	/* The network and its tensors; set by load(). */
	const struct psd_graph *graph;
	struct psd_network_options options;
	/* Addresses of the caller's parameter tensors; the address of each entry is a slot (struct psd_cpu_op). */
	void **parameters;
	/* addresses of the caller's gradient tensors; the address of each entry is a slot (struct psd_cpu_op) */
	void **gradients;
	/* addresses of the network's state tensors, such as running statistics; the address of each entry is a slot
	 * (struct psd_cpu_op) */
	void **states;
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

/* Implementation of a layer kind on the CPU. prepare() chooses formats, makes the output blob and builds operations. It
 * is called once for each layer, in forward order. Its memory and operations are valid until the device is closed. */
struct psd_cpu_kind {
	enum psd_status (*prepare)(struct psd_cpu_layer *self, struct psd_error *err);
	enum psd_status (*forward)(struct psd_cpu_layer *self, struct psd_error *err);
	enum psd_status (*backward)(struct psd_cpu_layer *self, struct psd_error *err);
	size_t details_bytes; /* bytes of psd_cpu_layer.details, which are filled with zeros before prepare() */
	enum psd_keeps keeps;
	/* The layer may work in place even if its input's signs are needed (PSD_KEEPS_SIGNS). Either it keeps the
	 * signs, or it sets to zero only values that get no gradient. */
	bool leaves_signs;
	/* The gradient of the layer's output is needed after the iteration, as a factor of the weight's gradient. */
	bool keeps_diff;
};

/* Declares the implementation of each layer kind; for example psd_cpu_conv implements psd_layer_conv. */
#define PSD_DECLARE_CPU_KIND(kind) extern const struct psd_cpu_kind psd_cpu_##kind;
PSD_CARRIED_OUT_KINDS(PSD_DECLARE_CPU_KIND)
#undef PSD_DECLARE_CPU_KIND

/* Returns the implementation of a layer kind; NULL if there is none. */
const struct psd_cpu_kind *psd_cpu_find_kind(const struct psd_layer_kind *kind);

/* ---- memory (memory.c) ---- */

/* Allocates memory filled with zeros, aligned to 64 bytes, valid until the device is closed. Returns NULL if memory
 * runs out. */
void *psd_cpu_take(struct psd_device *device, uint64_t bytes);
/* Releases all memory that psd_cpu_take() has allocated. */
void psd_cpu_release_taken(struct psd_device *device);
/* Fills err with a text about missing memory and returns PSD_ENOMEM. */
enum psd_status psd_cpu_no_memory(struct psd_error *err);
/* Returns the slot of the scratch block for this purpose, and makes the block at least `bytes` bytes long. */
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
/* Returns a description of the layer's output without a format, so that oneDNN chooses the format. */
dnnl_memory_desc_t psd_cpu_any(const struct psd_cpu_layer *self);
/* True if the elements are in row-major order in memory. The description may still differ from psd_cpu_plain(), for
 * example if it has blocks of channels and 1x1 maps. */
bool psd_cpu_is_plain(const dnnl_memory_desc_t *desc);
/* Returns the layer whose output is input number `input` of this layer. */
const struct psd_cpu_layer *psd_cpu_below(const struct psd_cpu_layer *self, unsigned input);
/* Returns the blob that is input number `input` of this layer. */
struct psd_cpu_blob *psd_cpu_input(const struct psd_cpu_layer *self, unsigned input);
/* True if the layer may overwrite its first input: no other layer reads the input, and no layer needs its old
 * values. */
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
/* Returns an argument for the gradient that the layer being executed writes (blob->share); the caller sets its
 * `arg`. */
static inline struct psd_cpu_arg psd_cpu_share(const struct psd_cpu_blob *blob)
{
	return (struct psd_cpu_arg){0, &blob->desc, &blob->share};
}
/* Returns the slot to which the gradient of the first input is written. It is the slot of the blob's `share`. If the
 * gradient is not needed although the primitive computes it, it is the slot of scratch memory. */
void *const *psd_cpu_share_slot(const struct psd_cpu_layer *self);
/* Makes a new blob of this format for the layer's output. PSD_ENOMEM. */
enum psd_status psd_cpu_declare(struct psd_cpu_layer *self, const dnnl_memory_desc_t *desc,
				struct psd_error *err) PSD_MUST_CHECK;
/* Makes the blob of the first input also the blob of the layer's output, which overwrites the input. PSD_ENOMEM. */
enum psd_status psd_cpu_declare_in_place(struct psd_cpu_layer *self, struct psd_error *err) PSD_MUST_CHECK;
/* Called before a backward pass that writes to blob->share: sets blob->share. */
void psd_cpu_share_begin(const struct psd_cpu_layer *self, struct psd_cpu_blob *blob);
/* Called after a backward pass that wrote to blob->share: if other layers have written to blob->diff before, adds
 * blob->share to blob->diff. */
enum psd_status psd_cpu_share_end(struct psd_cpu_layer *self, struct psd_cpu_blob *blob,
				  struct psd_error *err) PSD_MUST_CHECK;

/* ---- operations (op.c); the text of an error has the name of layer `self` ---- */

/* Creates the primitive's description, in which oneDNN chooses the formats. what: name of the operation for errors;
 * failure: oneDNN's status when `desc` was filled; hint: for a backward operation, its forward operation; otherwise
 * NULL; post_ops: functions fused to the primitive; NULL: none. PSD_EINVAL: oneDNN does not support the operation. */
enum psd_status psd_cpu_op_describe(struct psd_cpu_op *op, struct psd_cpu_layer *self, const char *what,
				    dnnl_status_t failure, const_dnnl_op_desc_t desc, const struct psd_cpu_op *hint,
				    const_dnnl_post_ops_t post_ops, struct psd_error *err) PSD_MUST_CHECK;
/* Returns the format of an argument, which the description contains. what: oneDNN's number of the query. */
const dnnl_memory_desc_t *psd_cpu_op_query(const struct psd_cpu_op *op, dnnl_query_t what);
/* Creates the primitive of a described operation. An argument with slot NULL is not passed to the primitive. */
enum psd_status psd_cpu_op_build(struct psd_cpu_op *op, struct psd_cpu_layer *self, const struct psd_cpu_arg args[],
				 int n_args, struct psd_error *err) PSD_MUST_CHECK;
/* Calls psd_cpu_op_describe() and psd_cpu_op_build(), for arguments whose formats the caller has chosen. */
enum psd_status psd_cpu_op_make(struct psd_cpu_op *op, struct psd_cpu_layer *self, const char *what,
				dnnl_status_t failure, const_dnnl_op_desc_t desc, const struct psd_cpu_op *hint,
				const struct psd_cpu_arg args[], int n_args, struct psd_error *err) PSD_MUST_CHECK;
/* Builds an operation that copies `from` to `to`, which may have different formats. */
enum psd_status psd_cpu_op_copy(struct psd_cpu_op *op, struct psd_cpu_layer *self, struct psd_cpu_arg from,
				struct psd_cpu_arg to, struct psd_error *err) PSD_MUST_CHECK;
/* Builds an operation that adds two tensors of one format: sum = left + right, each given by its slot. sum may be equal
 * to left or right. */
enum psd_status psd_cpu_op_sum(struct psd_cpu_op *op, struct psd_cpu_layer *self, const dnnl_memory_desc_t *format,
			       void *const *left, void *const *right, void *const *sum,
			       struct psd_error *err) PSD_MUST_CHECK;
/* Makes the argument `from` available in the format `wanted`. If it has this format already, *slot becomes its slot.
 * Otherwise *slot becomes the slot of scratch memory for the purpose `role`, and `op` is built, which copies `from` to
 * that memory. */
enum psd_status psd_cpu_op_convert(struct psd_cpu_op *op, struct psd_cpu_layer *self, struct psd_cpu_arg from,
				   const dnnl_memory_desc_t *wanted, enum psd_cpu_scratch_role role, void *const **slot,
				   struct psd_error *err) PSD_MUST_CHECK;
/* Lets a primitive write the argument `to` in the format `made`. If `to` has this format, *slot becomes its slot.
 * Otherwise *slot becomes the slot of scratch memory for the purpose `role`, and `op` is built, which copies that
 * memory to `to`. */
enum psd_status psd_cpu_op_deliver(struct psd_cpu_op *op, struct psd_cpu_layer *self, struct psd_cpu_arg to,
				   const dnnl_memory_desc_t *made, enum psd_cpu_scratch_role role, void *const **slot,
				   struct psd_error *err) PSD_MUST_CHECK;
/* Executes an operation. PSD_ERUN: oneDNN has failed. */
enum psd_status psd_cpu_op_run(struct psd_cpu_op *op, struct psd_cpu_layer *self, struct psd_error *err) PSD_MUST_CHECK;
/* Executes operations in order; stops at the first that fails. PSD_ERUN as psd_cpu_op_run(). */
enum psd_status psd_cpu_op_run_all(struct psd_cpu_op *const ops[], unsigned n_ops, struct psd_cpu_layer *self,
				   struct psd_error *err) PSD_MUST_CHECK;
/* Executes operations that compute in->share. If other layers have written to in->diff before, adds in->share to it. */
enum psd_status psd_cpu_op_share_all(struct psd_cpu_op *const ops[], unsigned n_ops, struct psd_cpu_layer *self,
				     struct psd_cpu_blob *in, struct psd_error *err) PSD_MUST_CHECK;
/* Releases oneDNN's objects of all operations. */
void psd_cpu_release_ops(struct psd_device *device);
/* Builds the forward operation of a layer with struct psd_cpu_twins. *workspace: argument for the memory that the
 * backward operation needs. PSD_ENOMEM. */
enum psd_status psd_cpu_build_forward(struct psd_cpu_layer *self, struct psd_cpu_arg *workspace,
				      struct psd_error *err) PSD_MUST_CHECK;
/* An element-wise function, such as ReLU. */
struct psd_cpu_function {
	dnnl_alg_kind_t algorithm;
	float alpha, beta;
	/* The layer before this one has the function fused into its operation, so this layer does nothing. */
	bool is_done;
	bool needs_input; /* the backward pass reads the input; false: only the output */
};
/* Prepares a layer that applies an element-wise function, in place if possible. */
enum psd_status psd_cpu_prepare_eltwise(struct psd_cpu_layer *self, struct psd_cpu_function function,
					struct psd_error *err) PSD_MUST_CHECK;
/* Forward pass (psd_cpu_kind.forward) of layers with struct psd_cpu_twins. */
enum psd_status psd_cpu_forward(struct psd_cpu_layer *self, struct psd_error *err);
/* Backward pass (psd_cpu_kind.backward) of layers with struct psd_cpu_twins. */
enum psd_status psd_cpu_backward(struct psd_cpu_layer *self, struct psd_error *err);
/* Fills err with oneDNN's status and the layer's name, and returns PSD_EINVAL, PSD_ENOMEM or PSD_ERUN. what: name of
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
/* Dropout of a sample, by a mask that is the same at each call of an iteration: to = 0 for a share `ratio` (below 1) of
 * the elements, from / (1 - ratio) for the others. sample: number of the sample in the batch, from 0. `to` may be
 * `from`. */
void psd_cpu_drop(const struct psd_cpu_layer *self, uint32_t sample, double ratio, uint64_t elements, const float *from,
		  float *to);

#endif
