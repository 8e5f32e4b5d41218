/* What the parts of the CPU share: blobs (a layer's output and its gradient), operations (a oneDNN primitive
 * bound to places in memory) and scratch memory. Private to real/device/cpu/. */
#ifndef PSD_REAL_CPU_H
#define PSD_REAL_CPU_H

#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/model/graph.h"
#include "real/device/device.h"
#include "real/device/kinds.h"

#define PSD_CPU_ARGS_MAX 12

/* OpenMP's (libgomp, on which oneDNN runs): threads for calls from this one. Declared, for omp.h is GCC's alone. */
void omp_set_num_threads(int n_threads);

/* Memory that holds nothing from one call to the next; roles of one operation have pieces of their own. */
enum psd_cpu_scratch_role {
	PSD_CPU_SCRATCH_PRIMITIVE, /* oneDNN's own */
	PSD_CPU_SCRATCH_SOURCE,	   /* a bottom or its gradient in another format */
	PSD_CPU_SCRATCH_WEIGHT,	   /* a weight or its gradient in another format; attention's scores' gradient */
	PSD_CPU_SCRATCH_RESULT,	   /* a top's gradient in another format, or a bottom's where SOURCE has the bottom */
	PSD_CPU_SCRATCH_BRANCH,	   /* one reader's share of a gradient, before it is added to the others' */
	PSD_CPU_SCRATCH_ROLES
};

struct psd_cpu_scratch {
	void *data; /* there once every layer is prepared; its address is a slot */
	uint64_t bytes;
};

/* A oneDNN primitive and where its arguments lie. A slot is the address of a pointer; the pointer is read at each run,
 * so that it may be filled in or changed after the operation was built. All zero is an operation that does nothing. */
struct psd_cpu_op {
	struct psd_cpu_op *next; /* of those that close releases */
	dnnl_primitive_desc_t desc;
	dnnl_primitive_t primitive;
	dnnl_exec_arg_t args[PSD_CPU_ARGS_MAX];
	void *const *slots[PSD_CPU_ARGS_MAX];
	void *bound[PSD_CPU_ARGS_MAX];
	int n_args;
};

struct psd_cpu_arg {
	int arg; /* DNNL_ARG_... */
	const dnnl_memory_desc_t *desc;
	void *const *slot;
};

/* The details of a layer that is one primitive each way, and the memory of the one for the other: what
 * psd_cpu_forward() and psd_cpu_backward() run. */
struct psd_cpu_twins {
	struct psd_cpu_op forward, backward;
	void *workspace;
};

/* A layer's output, (batch, channels, height, width) in the format of desc, and the gradient of the loss by it in the
 * same format. Layers that work in place share their input's blob. */
struct psd_cpu_blob {
	dnnl_memory_desc_t desc;
	void *value;
	void *diff;
	void *share; /* where the reader whose backward runs puts its share: diff, or scratch to be added to it */
	struct psd_cpu_op add;
	uint64_t bytes;
	bool has_diff;	      /* something at or below it is trained */
	bool is_filled;	      /* diff holds the share of at least one reader */
	unsigned owner;	      /* the layer that made it */
	unsigned last;	      /* the last layer that works on it in place, or owner */
	enum psd_keeps keeps; /* the most that one of them needs */
};

struct psd_cpu_layer {
	struct psd_device *device;
	unsigned number;
	const struct psd_layer *model;
	const struct psd_cpu_kind *kind;
	struct psd_cpu_blob *blob; /* own, or an input's */
	struct psd_cpu_blob own;
	void **gradients; /* slots of its tensors'; of shared ones its own part of them */
	unsigned n_readers;
	unsigned last_reader; /* the highest layer number among them */
	void *details;	      /* the kind's own; NULL: none */
};

struct psd_cpu_piece { /* of memory, in a list */
	struct psd_cpu_piece *next;
};

struct psd_device {
	unsigned n_threads;
	/* of the network, once it is loaded */
	const struct psd_graph *graph;
	struct psd_network_options options;
	void **parameters; /* slots of the caller's tensors */
	void **gradients;
	void **states; /* slots of its own */
	dnnl_engine_t engine;
	dnnl_stream_t stream;
	struct psd_cpu_layer *layers;
	struct psd_cpu_scratch scratch[PSD_CPU_SCRATCH_ROLES];
	struct psd_cpu_piece *pieces;
	struct psd_cpu_op *ops; /* all that were described */
	uint64_t held_bytes;
	struct psd_batch batch;
	double loss;
	uint32_t correct;
};

/* What one kind of layer does. prepare chooses formats, declares the output and builds operations; it is called once
 * per layer in forward order. What it takes and builds lasts until close. */
struct psd_cpu_kind {
	enum psd_status (*prepare)(struct psd_cpu_layer *self, struct psd_error *err);
	enum psd_status (*forward)(struct psd_cpu_layer *self, struct psd_error *err);
	enum psd_status (*backward)(struct psd_cpu_layer *self, struct psd_error *err);
	size_t details_bytes; /* zeroed memory of its own for each layer, taken before prepare */
	enum psd_keeps keeps;
	bool leaves_signs; /* where it works in place, or makes 0 what has no gradient */
	bool keeps_diff;   /* the gradient of its output outlives the iteration */
};

/* psd_layer_conv is carried out by psd_cpu_conv. */
#define PSD_DECLARE_CPU_KIND(kind) extern const struct psd_cpu_kind psd_cpu_##kind;
PSD_CARRIED_OUT_KINDS(PSD_DECLARE_CPU_KIND)
#undef PSD_DECLARE_CPU_KIND

/* NULL: the cpu has no such kind. */
const struct psd_cpu_kind *psd_cpu_find_kind(const struct psd_layer_kind *kind);

/* ---- memory (memory.c) ---- */

/* bytes of zeroed memory, aligned to 64, until close; NULL without memory. */
void *psd_cpu_take(struct psd_device *device, uint64_t bytes);
void psd_cpu_release_taken(struct psd_device *device);
enum psd_status psd_cpu_no_memory(struct psd_error *err);
/* The slot of the role's scratch, which will have room for bytes. */
void *const *psd_cpu_scratch_slot(struct psd_device *device, enum psd_cpu_scratch_role role, uint64_t bytes);
/* After every layer is prepared: scratch, and gradients of blobs, which share memory if never alive together. */
enum psd_status psd_cpu_place(struct psd_device *device, struct psd_error *err) PSD_MUST_CHECK;

/* ---- blobs (blob.c) ---- */

/* Of a map of the layer's output. */
uint64_t psd_cpu_places_of(const struct psd_cpu_layer *self);
/* (batch, channels, height, width) of the layer, rows of width adjacent. */
dnnl_memory_desc_t psd_cpu_plain(const struct psd_cpu_layer *self);
/* The same places and channels, the channels of a place adjacent. */
dnnl_memory_desc_t psd_cpu_channels_last(const struct psd_cpu_layer *self);
dnnl_memory_desc_t psd_cpu_any(const struct psd_cpu_layer *self);
/* The elements lie as in the plain format, though the description may differ (blocks of channels of 1x1 maps). */
bool psd_cpu_is_plain(const dnnl_memory_desc_t *desc);
/* The layer that input i comes from, and its blob. */
const struct psd_cpu_layer *psd_cpu_below(const struct psd_cpu_layer *self, unsigned input);
struct psd_cpu_blob *psd_cpu_input(const struct psd_cpu_layer *self, unsigned input);
/* Nobody else reads the input nor needs what would be lost of it, so the layer may overwrite it. */
bool psd_cpu_may_work_in_place(const struct psd_cpu_layer *self);
/* Where a blob's values, its gradient or a reader's share of that lies: an argument without its number. */
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
/* Of the first input, or memory for a primitive that cannot do without, where nobody wants that gradient. */
void *const *psd_cpu_share_slot(const struct psd_cpu_layer *self);
/* The output is a blob of its own in this format; PSD_ENOMEM. */
enum psd_status psd_cpu_declare(struct psd_cpu_layer *self, const dnnl_memory_desc_t *desc,
				struct psd_error *err) PSD_MUST_CHECK;
/* The output is its first input's blob, overwritten; PSD_ENOMEM. */
enum psd_status psd_cpu_declare_in_place(struct psd_cpu_layer *self, struct psd_error *err) PSD_MUST_CHECK;
/* Around a backward that writes blob->share: begin points it to memory, end adds it to what other readers gave. */
void psd_cpu_share_begin(const struct psd_cpu_layer *self, struct psd_cpu_blob *blob);
enum psd_status psd_cpu_share_end(struct psd_cpu_layer *self, struct psd_cpu_blob *blob,
				  struct psd_error *err) PSD_MUST_CHECK;

/* ---- operations (op.c); layer names whom an error is about ---- */

/* First half of building: the primitive's formats are known afterwards. what: the word for it in messages; failure:
 * what filling in desc gave; hint: the forward twin, or NULL; post_ops: or NULL. PSD_EINVAL: oneDNN cannot do it. */
enum psd_status psd_cpu_op_describe(struct psd_cpu_op *op, struct psd_cpu_layer *self, const char *what,
				    dnnl_status_t failure, const_dnnl_op_desc_t desc, const struct psd_cpu_op *hint,
				    const_dnnl_post_ops_t post_ops, struct psd_error *err) PSD_MUST_CHECK;
const dnnl_memory_desc_t *psd_cpu_op_query(const struct psd_cpu_op *op, dnnl_query_t what);
/* Second half: slots without address (NULL) leave their argument out. */
enum psd_status psd_cpu_op_build(struct psd_cpu_op *op, struct psd_cpu_layer *self, const struct psd_cpu_arg args[],
				 int n_args, struct psd_error *err) PSD_MUST_CHECK;
/* Both halves, where formats are known before. */
enum psd_status psd_cpu_op_make(struct psd_cpu_op *op, struct psd_cpu_layer *self, const char *what,
				dnnl_status_t failure, const_dnnl_op_desc_t desc, const struct psd_cpu_op *hint,
				const struct psd_cpu_arg args[], int n_args, struct psd_error *err) PSD_MUST_CHECK;
/* A copy from one format to another, even if they are equal. */
enum psd_status psd_cpu_op_copy(struct psd_cpu_op *op, struct psd_cpu_layer *self, struct psd_cpu_arg from,
				struct psd_cpu_arg to, struct psd_error *err) PSD_MUST_CHECK;
/* The sum of two in one format; its slot may be one of theirs. */
enum psd_status psd_cpu_op_sum(struct psd_cpu_op *op, struct psd_cpu_layer *self, const dnnl_memory_desc_t *format,
			       void *const *left, void *const *right, void *const *sum,
			       struct psd_error *err) PSD_MUST_CHECK;
/* *slot: where `from` lies in the wanted format: its own slot, or the role's scratch, which running op fills. */
enum psd_status psd_cpu_op_convert(struct psd_cpu_op *op, struct psd_cpu_layer *self, struct psd_cpu_arg from,
				   const dnnl_memory_desc_t *wanted, enum psd_cpu_scratch_role role, void *const **slot,
				   struct psd_error *err) PSD_MUST_CHECK;
/* *slot: where to write, in the made format, what shall end in `to`: its own slot, or scratch, from which op copies. */
enum psd_status psd_cpu_op_deliver(struct psd_cpu_op *op, struct psd_cpu_layer *self, struct psd_cpu_arg to,
				   const dnnl_memory_desc_t *made, enum psd_cpu_scratch_role role, void *const **slot,
				   struct psd_error *err) PSD_MUST_CHECK;
/* PSD_ERUN. */
enum psd_status psd_cpu_op_run(struct psd_cpu_op *op, struct psd_cpu_layer *self, struct psd_error *err) PSD_MUST_CHECK;
/* Runs in order until one fails. */
enum psd_status psd_cpu_op_run_all(struct psd_cpu_op *const ops[], unsigned n_ops, struct psd_cpu_layer *self,
				   struct psd_error *err) PSD_MUST_CHECK;
/* The same of those that write in->share in the end; adds that to what other readers gave. */
enum psd_status psd_cpu_op_share_all(struct psd_cpu_op *const ops[], unsigned n_ops, struct psd_cpu_layer *self,
				     struct psd_cpu_blob *in, struct psd_error *err) PSD_MUST_CHECK;
void psd_cpu_release_ops(struct psd_device *device);
/* Builds the described forward of twins. *workspace: what it leaves to its twin, as an argument; PSD_ENOMEM. */
enum psd_status psd_cpu_build_forward(struct psd_cpu_layer *self, struct psd_cpu_arg *workspace,
				      struct psd_error *err) PSD_MUST_CHECK;
/* A function of each element. */
struct psd_cpu_function {
	dnnl_alg_kind_t algorithm;
	float alpha, beta;
	bool is_done;	  /* the layer below applies it already */
	bool needs_input; /* of its backward; else that needs the result alone */
};
/* prepare of such a layer; in place where that is allowed and it can. (eltwise.c) */
enum psd_status psd_cpu_prepare_eltwise(struct psd_cpu_layer *self, struct psd_cpu_function function,
					struct psd_error *err) PSD_MUST_CHECK;
/* Slots of struct psd_cpu_kind for a layer with twins. */
enum psd_status psd_cpu_forward(struct psd_cpu_layer *self, struct psd_error *err);
enum psd_status psd_cpu_backward(struct psd_cpu_layer *self, struct psd_error *err);
/* oneDNN's status as ours, with the layer's name. */
enum psd_status psd_cpu_fail(const struct psd_cpu_layer *self, const char *what, dnnl_status_t status,
			     struct psd_error *err);

/* ---- inner products and random numbers ---- */

/* Slots of psd_device_kind. */
enum psd_status psd_cpu_keep_factors(struct psd_device *device, unsigned layer, const struct psd_factors *kept,
				     struct psd_error *err);
enum psd_status psd_cpu_rebuild(struct psd_device *device, const struct psd_factors *factors, uint32_t samples,
				uint32_t rows, uint32_t columns, float *gradient, float *bias_gradient,
				struct psd_error *err);
/* Philox 4x32-10: 128 random bits that are a function of the counter and the key. Source: Salmon et al., "Parallel
 * random numbers: as easy as 1, 2, 3", SC 2011. */
void psd_cpu_philox(const uint32_t counter[4], uint64_t key, uint32_t random[4]);

#endif
