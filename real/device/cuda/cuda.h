/* Internals of the CUDA device: the GPU with its streams and memory, blobs (a layer's output and its gradient),
 * products, convolutions. Kinds follow the rules in real/device/cpu/cpu.h. Private to real/device/cuda/; headers of
 * CUDA, cuBLAS and cuDNN appear in .cu files alone. */
#ifndef PSD_REAL_CUDA_H
#define PSD_REAL_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/encodings/compression.h"
#include "engine/encodings/low_rank.h"
#include "engine/model/graph.h"
#include "real/device/cuda/kernels.h"
#include "real/device/device.h"
#include "real/device/layers.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Types behind the handles of CUDA, cuBLAS and cuDNN. */
struct CUstream_st;
struct CUevent_st;
struct CUgraphExec_st;
struct cublasContext;
struct cublasLtContext;
struct cudnnContext;

enum {
	PSD_CUDA_SLOTS = 2, /* slots of samples: current and next batch */
	PSD_CUDA_SUMS_PARTS =
		1 << 18, /* first-level parts of all outputs of a reduction: a large GPU has as many threads */
	/* Largest number of partial sums of a reduction, on both levels, unless it has more outputs than parts. */
	PSD_CUDA_SUMS_MOST = PSD_CUDA_SUMS_PARTS + PSD_CUDA_SUMS_PARTS / 4,
	PSD_CUDA_NORM_PARTS = 65536, /* largest number of partial sums for the norm of one array */
	PSD_CUDA_NORM_GROUPS = 256,
	PSD_CUDA_LOOK_PARTS = 16384, /* parts of encoded values that are each searched for an infinity */
	PSD_CUDA_LOOK_GROUPS = 128,
};

#define PSD_CUDA_BLAS_WORKSPACE_BYTES (UINT64_C(32) << 20) /* size that cuBLAS recommends for the newest GPUs */
/* Alignment of memory for cuDNN: its engines are chosen for it before addresses are known. */
#define PSD_CUDA_DNN_ALIGNMENT_BYTES 16u
/* Limit of a blob's elements: cuDNN and the kernels count them with 32 bits. */
#define PSD_CUDA_MOST_ELEMENTS (UINT64_C(1) << 31)

struct psd_cuda_marks {
	struct CUevent_st **events; /* PSD_MOST_MARKS events; mark m uses event m % PSD_MOST_MARKS */
	uint64_t next;
	int failure; /* CUDA status of the first event that could not be recorded */
};

/* Memory for a batch of samples on the GPU. */
struct psd_cuda_slot {
	void *images; /* images of the batch, as floats */
	void *labels;
	struct CUevent_st *arrived; /* event after the copy to the slot */
	struct CUevent_st *used;    /* event after the last read: then the slot may be overwritten */
};

struct psd_cuda_piece { /* element of the list of memory blocks */
	struct psd_cuda_piece *next;
	void *block;
	bool is_host;
};

/* Request of a layer for memory. All requests get one block after every layer is prepared. */
struct psd_cuda_wanted {
	uint64_t bytes;
	void **slot;
};

/* A layer's output and the gradient of the loss with respect to it, both in the device's type and order. A layer that
 * works in place uses its input's blob. Several readers add to the gradient one after the other. */
struct psd_cuda_blob {
	void *value;
	void *diff;
	uint64_t elements, bytes; /* size of the output for the whole batch */
	bool has_diff;		  /* the layer or an earlier one has parameters to train, so the gradient is needed */
	const struct psd_cuda_blob *diff_of; /* blob whose diff this one shares; NULL: it has its own */
	bool is_filled;			     /* diff holds the gradient of at least one reader: the next one adds */
	unsigned owner;			     /* number of the layer that made the blob */
	unsigned last;			     /* number of the last layer that works on it in place, or owner */
	enum psd_keeps keeps;
};

struct psd_cuda_layer {
	struct psd_device *device;
	unsigned number;
	const struct psd_layer *model;
	const struct psd_cuda_kind *kind;
	struct psd_cuda_blob *blob; /* the layer's output: `own`, or the blob of its input if it works in place */
	struct psd_cuda_blob own;
	void **gradients; /* slots for the gradients of its tensors, or for its summand if a tensor is shared */
	unsigned n_readers;
	unsigned last_reader;
	bool rectifies;			    /* the layer also applies the ReLU that reads its output */
	bool reads_samples;		    /* forward or backward reads the memory of the sample slot */
	struct psd_cuda_stretch *stretches; /* stretches of layers, forward or backward, that begin with this one */
	void *details;			    /* state of the layer, in a type of its kind; or NULL */
};

/* Numbers of layer stretches that are recorded as CUDA graphs, and of those that are not. */
struct psd_cuda_recorded {
	unsigned graphs;      /* number of recorded graphs */
	unsigned left_out;    /* number of stretches whose layers are launched call by call */
	unsigned refused;     /* number of those that CUDA refused to record */
	struct psd_error why; /* reason of the first refusal */
};

/* GPU memory for intermediate values of one call. Calls that use it come one after the other, and so do their kernels
 * on the compute stream. */
union psd_cuda_scratch {
	struct {
		double parts[2 * PSD_CUDA_NORM_PARTS];
		double reduced[2 * PSD_CUDA_NORM_GROUPS];
		float rate;
	} norms; /* partial sums for the norms of a weight and its gradient */
	struct {
		uint32_t parts[PSD_CUDA_LOOK_PARTS];
		uint32_t reduced[PSD_CUDA_LOOK_GROUPS];
		uint32_t all;
	} look; /* partial results of the search for infinities in encoded values */
	struct {
		double parts[PSD_CUDA_CHUNKS * PSD_CUDA_CHUNK_PARTS];
		double reduced[PSD_CUDA_CHUNKS * PSD_CUDA_CHUNK_GROUPS];
	} chunks;
	struct {
		float sums[2 * PSD_CUDA_BLOCKS * PSD_BLOCK_LANES];
		uint32_t lowest[PSD_CUDA_BLOCKS];
		uint16_t counts[PSD_CUDA_BLOCKS * PSD_CUDA_DIGITS * PSD_BLOCK_LANES];
	} lanes; /* sums and counts for compressed blocks */
	struct {
		double parts[PSD_CUDA_PRODUCT_PARTS];
		double products[PSD_CUDA_SQUARES], factor[PSD_CUDA_SQUARES], inverse[PSD_CUDA_SQUARES];
		uint32_t found[PSD_CUDA_MATRICES * PSD_MOST_RANK * PSD_CUDA_PARTS];
	} matrices; /* products of low-rank factors */
};

struct psd_device {
	struct psd_device_options options;
	int number; /* number of the GPU for CUDA */
	char name[64];
	unsigned capability; /* CUDA's compute capability: 10 major + minor */
	unsigned n_processors;
	uint64_t memory_bytes;
	struct CUstream_st *streams[PSD_STREAMS];
	struct psd_cuda_marks marks[PSD_STREAMS];
	struct psd_cuda_slot slots[PSD_CUDA_SLOTS];
	struct psd_cuda_piece *pieces;
	uint64_t held_bytes; /* bytes of all memory blocks except those of take() */
	struct cublasContext *blas, *rebuild_blas;
	struct cublasLtContext *lt; /* handle of cuBLASLt */
	void *blas_workspace;	    /* memory for products on the compute stream */
	struct cudnnContext *dnn;
	void *dnn_properties; /* cuDNN's description of an absent GPU, for plans alone; NULL if dnn is NULL */
	float *rebuild_sums;  /* partial sums of rebuilds, PSD_CUDA_SUMS_MOST floats */
	uint32_t *counters;   /* two values that masks depend on: number of the first sample, iteration */
	union psd_cuda_scratch *scratch;

	/* The network, set by load. */
	const struct psd_graph *graph;
	struct psd_network_options network;
	enum psd_cuda_type type; /* type of blobs */
	bool is_channels_last;
	float diff_scale;   /* factor on the blobs' gradients (loss scale), a power of two */
	float **parameters; /* addresses of the caller's parameter tensors */
	void **gradients;   /* slots for the addresses of the caller's gradients */
	void **states;	    /* addresses of the network's states, on the device */
	struct psd_cuda_layer *layers;
	struct psd_cuda_wanted *wants;
	unsigned n_wants, want_capacity;
	/* Slots of memory that all layers share, each as large as the largest request. */
	void *workspace; /* memory for convolutions and attention */
	uint64_t workspace_bytes;
	void *sums; /* partial sums, as floats */
	uint64_t n_sums;
	void *dweight; /* gradient of a convolution's weight, in the device's type and order */
	uint64_t dweight_bytes;
	void *ones; /* vector of n_ones ones, as floats */
	uint32_t n_ones;
	struct psd_batch batch;
	unsigned slot;	  /* number of the slot with the current samples */
	bool has_fetched; /* the next samples are being copied to the other slot */
	bool counts;	  /* some layer reads the counters, which then must be updated */
	struct psd_cuda_recorded recorded;
};

/* Implementation of a layer kind. prepare declares the output and requests memory; it is called once for each layer in
 * forward order. */
struct psd_cuda_kind {
	enum psd_status (*prepare)(struct psd_cuda_layer *self, struct psd_error *err);
	/* Work of the host before each forward. NULL: there is none. */
	enum psd_status (*check)(const struct psd_cuda_layer *self, struct psd_error *err);
	/* Launch forward and backward: always the same work if the sample slot and the gradients' addresses are the
	 * same. They change nothing in the host's memory except by psd_cuda_share(): their work is recorded once. */
	enum psd_status (*forward)(struct psd_cuda_layer *self, struct psd_error *err);
	enum psd_status (*backward)(struct psd_cuda_layer *self, struct psd_error *err);
	/* True if forward launches other work in this iteration, against that rule. NULL: it never does. */
	bool (*varies)(const struct psd_cuda_layer *self);
	void (*close)(struct psd_cuda_layer
			      *self); /* releases the contents of details, which may be all zero; NULL: it has none */
	size_t details_bytes;	      /* bytes of `details` for each layer, zeroed before prepare */
	enum psd_keeps keeps;
	bool leaves_signs;
	bool keeps_diff; /* the gradient of its output is needed after the iteration */
};

/* Declares the implementation of each kind: psd_cuda_kind_conv implements psd_layer_conv. */
#define PSD_DECLARE_CUDA_KIND(kind) extern const struct psd_cuda_kind psd_cuda_kind_##kind;
PSD_DECLARE_CUDA_KIND(input)
PSD_CARRIED_OUT_KINDS(PSD_DECLARE_CUDA_KIND)
#undef PSD_DECLARE_CUDA_KIND

/* Returns the implementation of a layer kind; NULL: there is none. */
const struct psd_cuda_kind *psd_cuda_find_kind(const struct psd_layer_kind *kind);

/* ---- the GPU (runtime.cu) ---- */

/* Functions of struct psd_device_kind. */
unsigned psd_cuda_count(struct psd_error *why);
void psd_cuda_describe(const struct psd_device *device, char text[PSD_DEVICE_TEXT_MAX]);
/* Makes this GPU the current one of the calling thread. PSD_ERUN. */
enum psd_status psd_cuda_enter(const struct psd_device *device, struct psd_error *err) PSD_MUST_CHECK;
/* Opens the GPU with its streams and events. PSD_EINVAL, PSD_ERUN. */
enum psd_status psd_cuda_start(struct psd_device *device, struct psd_error *err) PSD_MUST_CHECK;
/* Releases the GPU, also after a failed start. No work may be in progress. */
void psd_cuda_stop(struct psd_device *device);
/* Converts CUDA's status. what: "to begin a kernel" in "the GPU failed to begin a kernel". */
enum psd_status psd_cuda_check(int cuda_status, const char *what, struct psd_error *err) PSD_MUST_CHECK;
/* Allocates zeros until stop. what: name in messages, "the network's activations". PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_cuda_take(struct psd_device *device, uint64_t bytes, const char *what, void **block,
			      struct psd_error *err) PSD_MUST_CHECK;
/* Allocates uninitialised memory, as psd_cuda_take(). */
enum psd_status psd_cuda_take_workspace(struct psd_device *device, uint64_t bytes, const char *what, void **block,
					struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_cuda_take_host(struct psd_device *device, uint64_t bytes, void **block,
				   struct psd_error *err) PSD_MUST_CHECK;
/* Begin a copy between any two addresses, on one of PSD_STREAMS, and the zeroing of a block. */
enum psd_status psd_cuda_copy(struct psd_device *device, unsigned stream, void *to, const void *from, uint64_t bytes,
			      struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_cuda_clear(struct psd_device *device, void *block, uint64_t bytes,
			       struct psd_error *err) PSD_MUST_CHECK;
/* record: an event happens after the stream's earlier work. follow: the stream's later work waits for an event. */
enum psd_status psd_cuda_record(struct psd_device *device, unsigned stream, struct CUevent_st *event,
				struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_cuda_follow(struct psd_device *device, unsigned stream, struct CUevent_st *event,
				struct psd_error *err) PSD_MUST_CHECK;
/* Waits for all work that was begun on the stream. */
enum psd_status psd_cuda_finish(struct psd_device *device, unsigned stream, struct psd_error *err) PSD_MUST_CHECK;
/* Records the calling thread's work on PSD_STREAM_COMPUTE, instead of executing it, until the capture ends. *launchable
 * launches that work; the caller frees it by psd_cuda_end_launchable(), which accepts NULL. It is NULL if there was no
 * work. PSD_ERUN, also if some work cannot be recorded: the capture has ended then, too. */
enum psd_status psd_cuda_begin_capture(struct psd_device *device, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_cuda_end_capture(struct psd_device *device, struct CUgraphExec_st **launchable,
				     struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_cuda_launch(struct psd_device *device, struct CUgraphExec_st *launchable,
				struct psd_error *err) PSD_MUST_CHECK;
void psd_cuda_end_launchable(struct CUgraphExec_st *launchable);
/* Functions of struct psd_device_kind. */
uint64_t psd_cuda_mark(struct psd_device *device, enum psd_stream stream);
enum psd_status psd_cuda_wait(struct psd_device *device, enum psd_stream stream, uint64_t mark, struct psd_error *err);
double psd_cuda_between_sec(struct psd_device *device, enum psd_stream stream, uint64_t from, uint64_t to);

/* ---- products (blas.cu) ---- */

/* Matrix product: result (rows, columns) = alpha op(left) op(right), row-major; op transposes if its flag is set. */
struct psd_cuda_product {
	struct psd_cuda_values left, right, result;
	uint32_t rows, columns, depth; /* shape of the result; depth: length of the sums */
	bool is_left_transposed, is_right_transposed;
	bool adds;
	bool is_exact; /* floats are multiplied at full precision, without TF32 */
	float alpha;
};

enum psd_status psd_cuda_start_blas(struct psd_device *device, struct psd_error *err) PSD_MUST_CHECK;
void psd_cuda_stop_blas(struct psd_device *device);
/* Begins a matrix product. is_rebuild: it may overlap the network's products, and come from another thread. */
enum psd_status psd_cuda_multiply_matrices(struct psd_device *device, const struct psd_cuda_product *product,
					   bool is_rebuild, struct psd_error *err) PSD_MUST_CHECK;

/* Several products of equal shapes. Rows may be further apart than their length, so a matrix may be part of longer
 * rows. Results are disjoint. */
struct psd_cuda_products {
	struct psd_cuda_product first;
	uint32_t left_apart, right_apart, result_apart;	   /* distance between rows, in elements */
	uint64_t left_stride, right_stride, result_stride; /* distance between products, in elements */
	uint32_t n;
};

enum psd_status psd_cuda_multiply_several(struct psd_device *device, const struct psd_cuda_products *products,
					  struct psd_error *err) PSD_MUST_CHECK;

/* Operation fused into the end of a product, with a vector of floats or of the result's type. */
enum psd_cuda_epilogue {
	PSD_CUDA_ADD_VECTOR,		 /* adds the vector to each row of the result; it has the result's type */
	PSD_CUDA_ADD_VECTOR_AND_RECTIFY, /* adds the vector to each row, then applies ReLU */
	PSD_CUDA_SUM_LEFT_ROWS, /* writes the sums of op(left)'s rows to the vector; alpha is 1, the result floats */
};

/* A product with a fused epilogue at no extra cost, by cuBLASLt. */
struct psd_cuda_fused;

/* Chooses an algorithm once, by shapes and types. *fused is NULL where cuBLASLt has no such epilogue, or would use
 * another algorithm than for the product alone: then a separate kernel is better. A pointer that is NULL now must be
 * aligned to 256 bytes later. Another pointer must keep its alignment, or psd_cuda_fits_fused() is false. close accepts
 * NULL. PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_cuda_open_fused(struct psd_device *device, const struct psd_cuda_product *product,
				    enum psd_cuda_epilogue epilogue, const void *vector, struct psd_cuda_fused **fused,
				    struct psd_error *err) PSD_MUST_CHECK;
void psd_cuda_close_fused(struct psd_cuda_fused *fused);
/* True if result and vector are aligned as they were when the algorithm was chosen. */
bool psd_cuda_fits_fused(const struct psd_cuda_fused *fused, const struct psd_cuda_product *product,
			 const void *vector) PSD_MUST_CHECK;
/* Begins a fused product on the compute stream. */
enum psd_status psd_cuda_multiply_fused(struct psd_device *device, struct psd_cuda_fused *fused,
					const struct psd_cuda_product *product, void *vector,
					struct psd_error *err) PSD_MUST_CHECK;

/* ---- convolution and batch norm (dnn.cu, dnn_graph.cu, dnn_conv.cu, dnn_norm.cu) ---- */

struct psd_cuda_dnn_conv;
struct psd_cuda_dnn_norm;

static inline bool psd_cuda_suits_dnn(const void *address)
{
	return (uintptr_t)address % PSD_CUDA_DNN_ALIGNMENT_BYTES == 0;
}

enum psd_status psd_cuda_start_dnn(struct psd_device *device, struct psd_error *err) PSD_MUST_CHECK;
void psd_cuda_stop_dnn(struct psd_device *device);
/* A convolution, or its transpose, by cuDNN. open chooses engines for the layer's shape and requests their workspace.
 * PSD_EINVAL: cuDNN has none; PSD_ENOMEM, PSD_ERUN. close accepts NULL. */
enum psd_status psd_cuda_dnn_conv_open(struct psd_cuda_layer *layer, struct psd_cuda_dnn_conv **conv,
				       struct psd_error *err) PSD_MUST_CHECK;
void psd_cuda_dnn_conv_close(struct psd_cuda_dnn_conv *conv);
/* Begin forward and backward of a convolution. weight and dweight: in the device's type and order. */
enum psd_status psd_cuda_dnn_conv_forward(struct psd_cuda_layer *layer, struct psd_cuda_dnn_conv *conv,
					  const void *weight, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_cuda_dnn_conv_dweight(struct psd_cuda_layer *layer, struct psd_cuda_dnn_conv *conv, void *dweight,
					  struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_cuda_dnn_conv_dinput(struct psd_cuda_layer *layer, struct psd_cuda_dnn_conv *conv,
					 const void *weight, struct psd_error *err) PSD_MUST_CHECK;

/* Vectors of a batch norm: floats, one per channel. Only the two running ones may be NULL. */
struct psd_cuda_norm_vectors {
	const float *gamma, *beta;
	float *running_mean, *running_variance; /* running statistics, into which the batch's go with weight `share` */
	float *mean, *inverse; /* mean and inverse deviation of the batch, kept from forward to backward */
	float *dgamma, *dbeta;
};

enum psd_status psd_cuda_dnn_norm_open(struct psd_cuda_layer *layer, struct psd_cuda_dnn_norm **norm,
				       struct psd_error *err) PSD_MUST_CHECK;
void psd_cuda_dnn_norm_close(struct psd_cuda_dnn_norm *norm);
enum psd_status psd_cuda_dnn_norm_forward(struct psd_cuda_layer *layer, struct psd_cuda_dnn_norm *norm,
					  const struct psd_cuda_norm_vectors *vectors, double share,
					  struct psd_error *err) PSD_MUST_CHECK;
/* Begins backward of a batch norm, whose input must have a gradient. */
enum psd_status psd_cuda_dnn_norm_backward(struct psd_cuda_layer *layer, struct psd_cuda_dnn_norm *norm,
					   const struct psd_cuda_norm_vectors *vectors,
					   struct psd_error *err) PSD_MUST_CHECK;

/* ---- memory of the network (memory.c) ---- */

/* Requests zeroed memory, whose address is in *slot after all layers are prepared. PSD_ENOMEM. */
enum psd_status psd_cuda_want(struct psd_device *device, uint64_t bytes, void **slot,
			      struct psd_error *err) PSD_MUST_CHECK;
/* Requests a size for memory that all layers share. */
void psd_cuda_want_workspace(struct psd_device *device, uint64_t bytes);
void psd_cuda_want_sums(struct psd_device *device, uint64_t n_sums);
void psd_cuda_want_dweight(struct psd_device *device, uint64_t bytes);
void psd_cuda_want_ones(struct psd_device *device, uint32_t count);
enum psd_status psd_cuda_allocate(struct psd_device *device, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_cuda_no_memory(struct psd_error *err);

/* ---- blobs (blob.c) ---- */

const struct psd_cuda_layer *psd_cuda_below(const struct psd_cuda_layer *self, unsigned input);
struct psd_cuda_blob *psd_cuda_input(const struct psd_cuda_layer *self, unsigned input);
bool psd_cuda_may_work_in_place(const struct psd_cuda_layer *self);
/* True if the only reader is a ReLU, which works in place. */
bool psd_cuda_feeds_relu(const struct psd_cuda_layer *self);
float psd_cuda_slope_above(const struct psd_cuda_layer *self); /* slope below 0 of the ReLU that reads this layer */
/* Declares the output as a new blob, unless it takes the network input's memory. PSD_EINVAL, PSD_ENOMEM. */
enum psd_status psd_cuda_declare(struct psd_cuda_layer *self, struct psd_error *err) PSD_MUST_CHECK;
void psd_cuda_declare_in_place(struct psd_cuda_layer *self);
/* True if the blob's current reader must add to the gradient, because an earlier reader has written it. */
bool psd_cuda_share(struct psd_cuda_blob *blob);

struct psd_cuda_values psd_cuda_value(const struct psd_cuda_layer *self, const struct psd_cuda_blob *blob);
struct psd_cuda_values psd_cuda_diff(const struct psd_cuda_layer *self, const struct psd_cuda_blob *blob);
struct psd_cuda_values psd_cuda_floats(const float *data);
struct psd_cuda_maps psd_cuda_maps_of(const struct psd_cuda_layer *self);
struct psd_cuda_channel psd_cuda_channel_of(const struct psd_cuda_layer *self);
uint32_t psd_cuda_positions(const struct psd_cuda_layer *self);	      /* number of positions in a map */
uint64_t psd_cuda_batch_positions(const struct psd_cuda_layer *self); /* number of positions in the whole batch */
/* Views of the layer's output, with axes samples, channels, rows, columns: in plain order, or in the output's own. */
struct psd_cuda_view psd_cuda_view_plain(const struct psd_cuda_layer *self);
struct psd_cuda_view psd_cuda_view_of(const struct psd_cuda_layer *self);
/* Moves the second axis of a view to the end. */
void psd_cuda_view_turn(struct psd_cuda_view *seen);
uint64_t psd_cuda_view_elements(const struct psd_cuda_view *seen);
/* Copies from view to view with the same axes, the second being channels; in the order of the device's memory. */
enum psd_status psd_cuda_move_views(struct psd_cuda_layer *self, struct psd_cuda_move move,
				    struct psd_error *err) PSD_MUST_CHECK;

/* Reduction: a vector of sums, one per channel; summand and its operands as in struct psd_cuda_sums. */
struct psd_cuda_reduction {
	struct psd_cuda_values left, right;
	enum psd_cuda_summand summand;
	const float *mean, *inverse;
	bool is_by_sample; /* one sum for each channel of each sample */
	bool is_over_all;  /* one sum over everything */
	struct psd_cuda_values to;
	float scale;
	bool adds;
};

/* Requests memory for a reduction over maps of the layer's output; called in prepare. The next function begins it. */
void psd_cuda_want_reduction(const struct psd_cuda_layer *self, const struct psd_cuda_reduction *reduction);
enum psd_status psd_cuda_reduce(const struct psd_cuda_layer *self, const struct psd_cuda_reduction *reduction,
				struct psd_error *err) PSD_MUST_CHECK;
/* Sets to[c] (columns) to scale times the sum of column c of (rows, columns); partial: PSD_CUDA_SUMS_MOST floats. */
enum psd_status psd_cuda_sum_columns(struct psd_device *device, struct psd_cuda_values from, uint32_t rows,
				     uint32_t columns, float *partial, float *to, float scale,
				     struct psd_error *err) PSD_MUST_CHECK;

/* ---- layers that begin together (graphs.c) ---- */

/* Function of struct psd_device_kind. */
enum psd_status psd_cuda_pass(struct psd_device *device, const struct psd_pass *pass, struct psd_error *err);
/* Launches forward or backward of one layer, call by call. (cuda.c) */
enum psd_status psd_cuda_begin_layer(struct psd_cuda_layer *layer, bool is_backward,
				     struct psd_error *err) PSD_MUST_CHECK;
/* Frees a layer's stretches; no work may be in progress. */
void psd_cuda_end_graphs(struct psd_device *device, struct psd_cuda_layer *layer);
/* Function of struct psd_device_kind. */
bool psd_cuda_detour(const struct psd_device *device, struct psd_error *how);

/* ---- kinds ---- */

/* Makes the images of the current slot the input's blob. (input.c) */
void psd_cuda_show_images(struct psd_device *device);
/* Adds a bias by channel, unless NULL, then applies the ReLU that the layer took over; in place. (affine.c) */
enum psd_status psd_cuda_add_bias(struct psd_cuda_layer *self, const float *bias, struct psd_error *err) PSD_MUST_CHECK;
psd_device_factors_fn psd_cuda_keep_factors;
psd_device_rebuild_fn psd_cuda_rebuild;
double psd_cuda_loss_of(const struct psd_cuda_layer *layer);
uint32_t psd_cuda_correct_of(const struct psd_cuda_layer *layer);

/* ---- parameters (parameters.c): slots of struct psd_device_kind ---- */

psd_device_apply_fn psd_cuda_apply;
psd_device_measure_fn psd_cuda_measure;
psd_device_clip_fn psd_cuda_find_clip;
psd_device_shrink_fn psd_cuda_shrink;
psd_device_drift_fn psd_cuda_drift;
psd_device_convert_fn psd_cuda_convert_wire;
psd_device_spoil_fn psd_cuda_spoil_wire;
psd_device_chunks_fn psd_cuda_gather_chunks, psd_cuda_update_chunks;
/* packing.c, low_rank.c */
psd_device_packing_fn psd_cuda_pack, psd_cuda_unpack;
psd_device_low_rank_fn psd_cuda_project, psd_cuda_fit, psd_cuda_expand;

/* ---- sums between GPUs (nccl.c) ---- */

extern const struct psd_library_kind *const psd_cuda_libraries[]; /* libraries for sums between GPUs; ends with NULL */

#ifdef __cplusplus
}
#endif

#endif
