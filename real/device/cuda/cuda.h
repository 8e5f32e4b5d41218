/* Internals of the CUDA device: the GPU with its streams and memory, blobs (a layer's output and its gradient), matrix
 * products, convolutions. struct psd_cuda_kind has the same rules as struct psd_cpu_kind. Private to real/device/cuda/;
 * headers of CUDA, cuBLAS and cuDNN appear in .cu files alone. */
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

/* Incomplete types of the handles of CUDA, cuBLAS and cuDNN, so that their headers are not needed here. */
struct CUstream_st;
struct CUevent_st;
struct CUgraphExec_st;
struct cublasContext;
struct cublasLtContext;
struct cudnnContext;

enum {
	PSD_CUDA_SLOTS = 2, /* number of sample slots (struct psd_cuda_slot): for the current and the next batch */
	PSD_CUDA_SUMS_PARTS =
		/* number of partial sums, for all outputs of a reduction together, on the first level: a large GPU has
		 * about so many threads */
	1 << 18,
	/* Largest number of partial sums of a reduction on both levels together, unless it has more outputs than
	 * PSD_CUDA_SUMS_PARTS. */
	PSD_CUDA_SUMS_MOST = PSD_CUDA_SUMS_PARTS + PSD_CUDA_SUMS_PARTS / 4,
	PSD_CUDA_NORM_PARTS = 65536, /* largest number of partial sums for the norm of an array, on the first level */
	PSD_CUDA_NORM_GROUPS = 256,  /* largest number of partial sums for the norm of an array, on the second level */
	/* number of parts of encoded values that are searched for an infinity by one thread each */
	PSD_CUDA_LOOK_PARTS = 16384,
	PSD_CUDA_LOOK_GROUPS = 128, /* number of groups to which the results of these parts are combined */
};

/* bytes of workspace that cuBLAS recommends for the newest GPUs */
#define PSD_CUDA_BLAS_WORKSPACE_BYTES (UINT64_C(32) << 20)
/* Alignment of memory for cuDNN. Engines are chosen before addresses are known, and rely on it. */
#define PSD_CUDA_DNN_ALIGNMENT_BYTES 16u
/* Limit of a blob's elements: cuDNN and the kernels count them with 32 bits. */
#define PSD_CUDA_MOST_ELEMENTS (UINT64_C(1) << 31)

/* Marks of one stream, see psd_device_kind.mark. */
struct psd_cuda_marks {
	struct CUevent_st **events; /* PSD_MOST_MARKS events; mark m uses event m % PSD_MOST_MARKS */
	uint64_t next;		    /* number of the next mark */
	int failure; /* CUDA status of the first event that could not be recorded; 0: all were recorded */
};

/* Memory for a batch of samples on the GPU. */
struct psd_cuda_slot {
	void *images;		    /* images of the batch, as floats */
	void *labels;		    /* class numbers of the batch, as int32_t */
	struct CUevent_st *arrived; /* event that happens when the copy to the slot has ended */
	struct CUevent_st *used;    /* event that happens after the last read of the slot; then it may be overwritten */
};

struct psd_cuda_piece { /* element of the list of all memory blocks */
	struct psd_cuda_piece *next;
	void *block;  /* address of the memory block */
	bool is_host; /* the block is in the host's memory */
};

/* Request of a layer for memory. After all layers are prepared, one memory block serves all requests. */
struct psd_cuda_wanted {
	uint64_t bytes;
	void **slot; /* address of the pointer that is set to the memory */
};

/* A layer's output and the gradient of the loss with respect to it, both in the number format and memory order of the
 * device. A layer that works in place overwrites its input's blob, and has no blob of its own. If several layers read a
 * blob, their backward passes add to its gradient one after the other. */
struct psd_cuda_blob {
	void *value;		  /* output of the layer */
	void *diff;		  /* gradient of the loss with respect to the output */
	uint64_t elements, bytes; /* size of the output for the whole batch, in values and in bytes */
	bool has_diff;		  /* the layer or an earlier one has parameters to train, so the gradient is needed */
	const struct psd_cuda_blob *diff_of; /* blob whose diff this one shares; NULL: it has its own */
	/* diff has the gradient by at least one reader, so the next reader adds to it */
	bool is_filled;
	unsigned owner; /* number of the layer that made the blob */
	/* number of the last layer that works in place on the blob; `owner` if there is none */
	unsigned last;
	enum psd_keeps keeps;
};

struct psd_cuda_layer {
	struct psd_device *device;
	unsigned number;
	const struct psd_layer *model;
	const struct psd_cuda_kind *kind;
	struct psd_cuda_blob *blob; /* the layer's output: `own`, or the blob of its input if it works in place */
	struct psd_cuda_blob own;
	/* addresses of the pointers to the gradients of the layer's tensors; if several layers share a tensor, of the
	 * pointer to this layer's summand */
	void **gradients;
	unsigned n_readers;   /* number of layers that read its output */
	unsigned last_reader; /* highest number of these layers */
	bool rectifies;	      /* the layer also applies the ReLU that reads its output */
	bool reads_samples;   /* forward or backward reads images or labels in the sample slot */
	/* list of stretches that begin with this layer: consecutive layers, forward or backward, that are launched
	 * together */
	struct psd_cuda_stretch *stretches;
	void *details; /* state of the layer, in a type of its kind's file; NULL: it has none */
};

/* Numbers of stretches (consecutive layers that are launched together) that are recorded as CUDA graphs, and of
 * stretches that are not. */
struct psd_cuda_recorded {
	unsigned graphs;      /* number of recorded graphs */
	unsigned left_out;    /* number of stretches whose layers are launched call by call */
	unsigned refused;     /* number of stretches that CUDA could not record */
	struct psd_error why; /* reason of the first refusal */
};

/* GPU memory for intermediate values of one call. Calls that use it come one after the other, and so do their kernels
 * on the compute stream. */
union psd_cuda_scratch {
	struct {
		double parts[2 * PSD_CUDA_NORM_PARTS];
		double reduced[2 * PSD_CUDA_NORM_GROUPS];
		float rate;
		/* scratch memory for a tensor's learning rate: sums of squares of its weight and gradient, and the
		 * rate */
	} norms;
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
	} lanes; /* sums and counts of values in compressed blocks, per lane */
	struct {
		double parts[PSD_CUDA_PRODUCT_PARTS];
		double products[PSD_CUDA_SQUARES], factor[PSD_CUDA_SQUARES], inverse[PSD_CUDA_SQUARES];
		uint32_t found[PSD_CUDA_MATRICES * PSD_MOST_RANK * PSD_CUDA_PARTS];
	} matrices; /* inner products of columns of low-rank factors */
};

struct psd_device {
	struct psd_device_options options;
	int number; /* CUDA's number of the GPU */
	char name[64];
	unsigned capability;   /* CUDA's compute capability: 10 major + minor */
	unsigned n_processors; /* number of multiprocessors */
	uint64_t memory_bytes; /* memory of the GPU */
	struct CUstream_st *streams[PSD_STREAMS];
	struct psd_cuda_marks marks[PSD_STREAMS];
	struct psd_cuda_slot slots[PSD_CUDA_SLOTS]; /* memory for samples of the current and the next batch */
	struct psd_cuda_piece *pieces;		    /* list of all memory blocks */
	uint64_t held_bytes;			    /* bytes of all memory blocks except those of take() */
	/* handles of cuBLAS: for products of the network, and of rebuilds */
	struct cublasContext *blas, *rebuild_blas;
	struct cublasLtContext *lt; /* handle of cuBLASLt */
	void *blas_workspace;	    /* memory for products on the compute stream */
	struct cudnnContext *dnn;
	/* only to choose cuDNN's plans without a GPU: cuDNN's description of the absent GPU; otherwise NULL */
	void *dnn_properties;
	float *rebuild_sums; /* scratch memory: partial sums of rebuilds, PSD_CUDA_SUMS_MOST floats */
	/* array of two values on which dropout masks depend: number of the batch's first sample, and iteration */
	uint32_t *counters;
	union psd_cuda_scratch *scratch;

	/* The network, set by load. */
	const struct psd_graph *graph;
	struct psd_network_options network;
	enum psd_cuda_type type; /* number format of blobs */
	bool is_channels_last;	 /* blobs have the channels of a position adjacent; false: rows are adjacent */
	float diff_scale;	 /* factor on the blobs' gradients (loss scale), a power of two */
	float **parameters;	 /* addresses of the caller's parameter tensors */
	void **gradients;	 /* addresses of the caller's gradients, one per tensor */
	void **states;		 /* addresses of the network's states, on the device */
	struct psd_cuda_layer *layers;
	struct psd_cuda_wanted *wants;
	unsigned n_wants, want_capacity;
	/* Scratch memory that all layers share, each array as large as the largest request. */
	void *workspace; /* memory for convolutions and attention */
	uint64_t workspace_bytes;
	void *sums;	 /* partial sums, as floats */
	uint64_t n_sums; /* number of floats in `sums` */
	void *dweight;	 /* gradient of a convolution's weight, in the number format and memory order of the device */
	uint64_t dweight_bytes;
	void *ones; /* vector of n_ones floats with value 1 */
	uint32_t n_ones;
	struct psd_batch batch;
	unsigned slot;	  /* number of the slot with the current samples */
	bool has_fetched; /* a batch fetched for a later begin() is in the other slot, or is being copied to it */
	bool counts;	  /* some layer reads `counters`, so begin() must update them */
	struct psd_cuda_recorded recorded;
};

/* Implementation of a layer kind on the GPU. prepare() declares the output blob and requests memory; it is called once
 * for each layer, in forward order. */
struct psd_cuda_kind {
	enum psd_status (*prepare)(struct psd_cuda_layer *self, struct psd_error *err);
	/* Called on the host before each forward, for example to check labels. NULL: there is nothing to do. */
	enum psd_status (*check)(const struct psd_cuda_layer *self, struct psd_error *err);
	/* Launches the forward pass. It launches the same kernels with the same arguments in each iteration with the
	 * same sample slot, since this work is recorded once as a CUDA graph. It changes nothing in the host's
	 * memory. */
	enum psd_status (*forward)(struct psd_cuda_layer *self, struct psd_error *err);
	/* Launches the backward pass. It launches the same kernels with the same arguments in each iteration with the
	 * same sample slot and the same addresses of gradients. It changes nothing in the host's memory except by
	 * psd_cuda_share(). */
	enum psd_status (*backward)(struct psd_cuda_layer *self, struct psd_error *err);
	/* True if forward launches other work in this iteration, so that no CUDA graph may be used. NULL: it never
	 * does. */
	bool (*varies)(const struct psd_cuda_layer *self);
	void (*close)(struct psd_cuda_layer
			      /* releases the contents of details, which may be all zero; NULL: there is nothing to
			       * release */
			      *self);
	size_t details_bytes; /* bytes of `details` for each layer, zeroed before prepare */
	enum psd_keeps keeps;
	bool leaves_signs; /* the layer may overwrite its input even if PSD_KEEPS_SIGNS holds for it */
	bool keeps_diff;   /* the gradient of its output is needed after the iteration, as a factor */
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
/* Makes the device's GPU the current GPU of the calling thread. PSD_ERUN. */
enum psd_status psd_cuda_enter(const struct psd_device *device, struct psd_error *err) PSD_MUST_CHECK;
/* Opens the GPU with its streams and events. PSD_EINVAL, PSD_ERUN. */
enum psd_status psd_cuda_start(struct psd_device *device, struct psd_error *err) PSD_MUST_CHECK;
/* Releases the GPU, also after a failed start. No work may be in progress. */
void psd_cuda_stop(struct psd_device *device);
/* Returns PSD_OK if cuda_status is success; otherwise PSD_ERUN with a message. what: completes "the GPU failed ...",
 * such as "to begin a kernel". */
enum psd_status psd_cuda_check(int cuda_status, const char *what, struct psd_error *err) PSD_MUST_CHECK;
/* Allocates GPU memory filled with zeros, valid until psd_cuda_stop(). what: name of the memory in messages, such as
 * "the network's activations". PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_cuda_take(struct psd_device *device, uint64_t bytes, const char *what, void **block,
			      struct psd_error *err) PSD_MUST_CHECK;
/* Allocates uninitialised memory, as psd_cuda_take(). */
enum psd_status psd_cuda_take_workspace(struct psd_device *device, uint64_t bytes, const char *what, void **block,
					struct psd_error *err) PSD_MUST_CHECK;
/* Allocates pinned host memory filled with zeros, valid until psd_cuda_stop(). PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_cuda_take_host(struct psd_device *device, uint64_t bytes, void **block,
				   struct psd_error *err) PSD_MUST_CHECK;
/* Begins a copy between any two addresses, of the host or the GPU; stream: an enum psd_stream. */
enum psd_status psd_cuda_copy(struct psd_device *device, unsigned stream, void *to, const void *from, uint64_t bytes,
			      struct psd_error *err) PSD_MUST_CHECK;
/* Begins to fill a memory block with zeros, on PSD_STREAM_COMPUTE. */
enum psd_status psd_cuda_clear(struct psd_device *device, void *block, uint64_t bytes,
			       struct psd_error *err) PSD_MUST_CHECK;
/* Makes the event happen when all work begun so far on the stream has ended. */
enum psd_status psd_cuda_record(struct psd_device *device, unsigned stream, struct CUevent_st *event,
				struct psd_error *err) PSD_MUST_CHECK;
/* Makes all later work on the stream wait for the event. */
enum psd_status psd_cuda_follow(struct psd_device *device, unsigned stream, struct CUevent_st *event,
				struct psd_error *err) PSD_MUST_CHECK;
/* Waits until all work begun so far on the stream has ended. */
enum psd_status psd_cuda_finish(struct psd_device *device, unsigned stream, struct psd_error *err) PSD_MUST_CHECK;
/* Begins a capture: until psd_cuda_end_capture(), work of the calling thread on PSD_STREAM_COMPUTE is recorded instead
 * of executed. PSD_ERUN. */
enum psd_status psd_cuda_begin_capture(struct psd_device *device, struct psd_error *err) PSD_MUST_CHECK;
/* Ends the capture, and sets *launchable to a CUDA graph of the recorded work, or to NULL if there was no work. The
 * caller frees it by psd_cuda_end_launchable(). PSD_ERUN, also if some work could not be recorded; the capture has
 * ended all the same. */
enum psd_status psd_cuda_end_capture(struct psd_device *device, struct CUgraphExec_st **launchable,
				     struct psd_error *err) PSD_MUST_CHECK;
/* Begins all the recorded work, on PSD_STREAM_COMPUTE. */
enum psd_status psd_cuda_launch(struct psd_device *device, struct CUgraphExec_st *launchable,
				struct psd_error *err) PSD_MUST_CHECK;
/* Frees a recorded graph; NULL is allowed. */
void psd_cuda_end_launchable(struct CUgraphExec_st *launchable);
/* Functions of struct psd_device_kind. */
uint64_t psd_cuda_mark(struct psd_device *device, enum psd_stream stream);
enum psd_status psd_cuda_wait(struct psd_device *device, enum psd_stream stream, uint64_t mark, struct psd_error *err);
double psd_cuda_between_sec(struct psd_device *device, enum psd_stream stream, uint64_t from, uint64_t to);

/* ---- products (blas.cu) ---- */

/* Matrix product: result = alpha * op(left) * op(right), where op transposes a matrix if its flag is_..._transposed is
 * set. All matrices are row-major; result has shape (rows, columns). */
struct psd_cuda_product {
	struct psd_cuda_values left, right, result;
	/* shape of the result; depth: number of products that each value of the result is the sum of */
	uint32_t rows, columns, depth;
	bool is_left_transposed, is_right_transposed;
	bool adds;
	bool is_exact; /* floats are multiplied at full precision, without TF32 */
	float alpha;
};

enum psd_status psd_cuda_start_blas(struct psd_device *device, struct psd_error *err) PSD_MUST_CHECK;
void psd_cuda_stop_blas(struct psd_device *device);
/* Begins a matrix product. is_rebuild: the product belongs to a rebuild; it may overlap with the network's products,
 * and may be begun by another thread. */
enum psd_status psd_cuda_multiply_matrices(struct psd_device *device, const struct psd_cuda_product *product,
					   bool is_rebuild, struct psd_error *err) PSD_MUST_CHECK;

/* Several products of equal shapes, computed together. The distance between rows of a matrix may be larger than the
 * length of a row, so a matrix may be a part of a wider one. The results do not overlap. */
struct psd_cuda_products {
	struct psd_cuda_product first; /* the first product */
	/* distance between the begins of two successive rows of a matrix, in elements */
	uint32_t left_apart, right_apart, result_apart;
	/* distance between the matrices of two successive products, in elements */
	uint64_t left_stride, right_stride, result_stride;
	uint32_t n; /* number of products */
};

/* Begins several products on the compute stream. */
enum psd_status psd_cuda_multiply_several(struct psd_device *device, const struct psd_cuda_products *products,
					  struct psd_error *err) PSD_MUST_CHECK;

/* Operation fused into the end of a product, with a vector of floats or of the result's type. */
enum psd_cuda_epilogue {
	PSD_CUDA_ADD_VECTOR,		 /* adds the vector, which has the result's type, to each row of the result */
	PSD_CUDA_ADD_VECTOR_AND_RECTIFY, /* adds the vector to each row, then applies ReLU */
	/* writes the sum of each row of op(left) to the vector; requires that alpha is 1 and the result is floats */
	PSD_CUDA_SUM_LEFT_ROWS,
};

/* A matrix product by cuBLASLt with an epilogue: a further operation in the same kernel, which costs nearly nothing. */
struct psd_cuda_fused;

/* Chooses an algorithm for products with these shapes and types, and this epilogue. *fused is NULL if cuBLASLt has no
 * such epilogue, or would use another algorithm than for the product alone; then a separate kernel is faster. Addresses
 * in product and vector that are NULL in this call must be aligned to 256 bytes in later calls. For other addresses see
 * psd_cuda_fits_fused(). PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_cuda_open_fused(struct psd_device *device, const struct psd_cuda_product *product,
				    enum psd_cuda_epilogue epilogue, const void *vector, struct psd_cuda_fused **fused,
				    struct psd_error *err) PSD_MUST_CHECK;
/* Releases a fused product; NULL is allowed. */
void psd_cuda_close_fused(struct psd_cuda_fused *fused);
/* True if the addresses of result and vector are aligned at least as those in psd_cuda_open_fused(), so that
 * psd_cuda_multiply_fused() may be called with them. */
bool psd_cuda_fits_fused(const struct psd_cuda_fused *fused, const struct psd_cuda_product *product,
			 const void *vector) PSD_MUST_CHECK;
/* Begins a fused product on the compute stream. */
enum psd_status psd_cuda_multiply_fused(struct psd_device *device, struct psd_cuda_fused *fused,
					const struct psd_cuda_product *product, void *vector,
					struct psd_error *err) PSD_MUST_CHECK;

/* ---- convolution and batch norm (dnn.cu, dnn_graph.cu, dnn_conv.cu, dnn_norm.cu) ---- */

struct psd_cuda_dnn_conv;
struct psd_cuda_dnn_norm;

/* True if the address is aligned as cuDNN's engines need it. */
static inline bool psd_cuda_suits_dnn(const void *address)
{
	return (uintptr_t)address % PSD_CUDA_DNN_ALIGNMENT_BYTES == 0;
}

enum psd_status psd_cuda_start_dnn(struct psd_device *device, struct psd_error *err) PSD_MUST_CHECK;
void psd_cuda_stop_dnn(struct psd_device *device);
/* Prepares a convolution, or a transposed convolution, by cuDNN: chooses engines for the layer's shape and requests
 * their workspace. PSD_EINVAL: cuDNN has no engine for that shape; PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_cuda_dnn_conv_open(struct psd_cuda_layer *layer, struct psd_cuda_dnn_conv **conv,
				       struct psd_error *err) PSD_MUST_CHECK;
/* Releases a convolution; NULL is allowed. */
void psd_cuda_dnn_conv_close(struct psd_cuda_dnn_conv *conv);
/* Begins the forward pass of a convolution. weight: in the number format and memory order of the device. */
enum psd_status psd_cuda_dnn_conv_forward(struct psd_cuda_layer *layer, struct psd_cuda_dnn_conv *conv,
					  const void *weight, struct psd_error *err) PSD_MUST_CHECK;
/* Begins to compute the gradient of the weight, in the number format and memory order of the device. */
enum psd_status psd_cuda_dnn_conv_dweight(struct psd_cuda_layer *layer, struct psd_cuda_dnn_conv *conv, void *dweight,
					  struct psd_error *err) PSD_MUST_CHECK;
/* Begins to compute the gradient of the input, or to add to it. */
enum psd_status psd_cuda_dnn_conv_dinput(struct psd_cuda_layer *layer, struct psd_cuda_dnn_conv *conv,
					 const void *weight, struct psd_error *err) PSD_MUST_CHECK;

/* Vectors of a batch norm: floats, one per channel. Only running_mean and running_variance may be NULL. */
struct psd_cuda_norm_vectors {
	const float *gamma, *beta;
	/* running statistics: forward sets running = (1 - share) * running + share * (value of this batch) */
	float *running_mean, *running_variance;
	/* mean of the batch, and 1 / sqrt(variance + epsilon); forward writes them for backward */
	float *mean, *inverse;
	float *dgamma, *dbeta;
};

/* Prepares a batch norm by cuDNN for the layer's shape. PSD_EINVAL: cuDNN has no engine for that shape; PSD_ENOMEM,
 * PSD_ERUN. */
enum psd_status psd_cuda_dnn_norm_open(struct psd_cuda_layer *layer, struct psd_cuda_dnn_norm **norm,
				       struct psd_error *err) PSD_MUST_CHECK;
/* Releases a batch norm; NULL is allowed. */
void psd_cuda_dnn_norm_close(struct psd_cuda_dnn_norm *norm);
/* Begins the forward pass of a batch norm; share: see running_mean. */
enum psd_status psd_cuda_dnn_norm_forward(struct psd_cuda_layer *layer, struct psd_cuda_dnn_norm *norm,
					  const struct psd_cuda_norm_vectors *vectors, double share,
					  struct psd_error *err) PSD_MUST_CHECK;
/* Begins the backward pass of a batch norm. Its input must have a gradient (has_diff). */
enum psd_status psd_cuda_dnn_norm_backward(struct psd_cuda_layer *layer, struct psd_cuda_dnn_norm *norm,
					   const struct psd_cuda_norm_vectors *vectors,
					   struct psd_error *err) PSD_MUST_CHECK;

/* ---- memory of the network (memory.c) ---- */

/* Requests memory filled with zeros; its address is written to *slot after all layers are prepared. PSD_ENOMEM. */
enum psd_status psd_cuda_want(struct psd_device *device, uint64_t bytes, void **slot,
			      struct psd_error *err) PSD_MUST_CHECK;
/* Requests that the shared memory device->workspace has at least this many bytes. */
void psd_cuda_want_workspace(struct psd_device *device, uint64_t bytes);
/* Requests that the shared memory device->sums has at least n_sums floats. */
void psd_cuda_want_sums(struct psd_device *device, uint64_t n_sums);
/* Requests that the shared memory device->dweight has at least this many bytes. */
void psd_cuda_want_dweight(struct psd_device *device, uint64_t bytes);
/* Requests that the vector device->ones has at least `count` elements. */
void psd_cuda_want_ones(struct psd_device *device, uint32_t count);
/* Allocates all requested memory, and the blobs; called once after all layers are prepared. PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_cuda_allocate(struct psd_device *device, struct psd_error *err) PSD_MUST_CHECK;
/* Fills err and returns PSD_ENOMEM. */
enum psd_status psd_cuda_no_memory(struct psd_error *err);

/* ---- blobs (blob.c) ---- */

/* Returns the layer whose output is input number `input` of this layer. */
const struct psd_cuda_layer *psd_cuda_below(const struct psd_cuda_layer *self, unsigned input);
/* Returns the blob that is input number `input` of this layer. */
struct psd_cuda_blob *psd_cuda_input(const struct psd_cuda_layer *self, unsigned input);
/* True if the layer may overwrite its first input: no other layer reads that blob, and no layer needs the old
 * values. */
bool psd_cuda_may_work_in_place(const struct psd_cuda_layer *self);
/* True if only one layer reads this layer's output, and that layer is a ReLU that works in place. */
bool psd_cuda_feeds_relu(const struct psd_cuda_layer *self);
/* slope, for negative values, of the ReLU that reads this layer */
float psd_cuda_slope_above(const struct psd_cuda_layer *self);
/* Makes a new blob for the layer's output, and requests memory for it. The network's input gets no memory: its values
 * are in a sample slot. PSD_EINVAL: the output has PSD_CUDA_MOST_ELEMENTS values or more; PSD_ENOMEM. */
enum psd_status psd_cuda_declare(struct psd_cuda_layer *self, struct psd_error *err) PSD_MUST_CHECK;
/* Makes the blob of the first input the layer's output, which overwrites it. */
void psd_cuda_declare_in_place(struct psd_cuda_layer *self);
/* Called once in a backward pass by each layer that reads the blob. Returns true if the layer must add to the blob's
 * gradient, because another layer has written the gradient before; false if the layer must overwrite the gradient. */
bool psd_cuda_share(struct psd_cuda_blob *blob);

/* Returns the address and number format of a blob's values. */
struct psd_cuda_values psd_cuda_value(const struct psd_cuda_layer *self, const struct psd_cuda_blob *blob);
/* Returns the address and number format of a blob's gradient. */
struct psd_cuda_values psd_cuda_diff(const struct psd_cuda_layer *self, const struct psd_cuda_blob *blob);
/* Returns `data` as an array of floats for kernels. */
struct psd_cuda_values psd_cuda_floats(const float *data);
/* Returns the shape and memory order of the layer's output. */
struct psd_cuda_maps psd_cuda_maps_of(const struct psd_cuda_layer *self);
/* Returns the rule that finds the channel of an element of the layer's output. */
struct psd_cuda_channel psd_cuda_channel_of(const struct psd_cuda_layer *self);
/* number of positions (height times width) in the layer's output */
uint32_t psd_cuda_positions(const struct psd_cuda_layer *self);
/* number of positions in the layer's output, for all samples of the batch */
uint64_t psd_cuda_batch_positions(const struct psd_cuda_layer *self);
/* Returns a view (samples, channels, rows, columns) of an array with the shape of the layer's output, in row-major
 * order. */
struct psd_cuda_view psd_cuda_view_plain(const struct psd_cuda_layer *self);
/* Returns a view (samples, channels, rows, columns) of the layer's output, in the memory order of the device. */
struct psd_cuda_view psd_cuda_view_of(const struct psd_cuda_layer *self);
/* Moves the second axis of a view, the channels, to the end, so that neighbours in memory with channels last are
 * visited one after the other. */
void psd_cuda_view_turn(struct psd_cuda_view *seen);
/* Returns the number of elements of a view. */
uint64_t psd_cuda_view_elements(const struct psd_cuda_view *seen);
/* Begins to copy between two views with the axes (samples, channels, rows, columns), going through them in the memory
 * order of the device. */
enum psd_status psd_cuda_move_views(struct psd_cuda_layer *self, struct psd_cuda_move move,
				    struct psd_error *err) PSD_MUST_CHECK;

/* Reduction over a layer's output to a vector of sums, one per channel. left, right, summand, mean and inverse: as in
 * struct psd_cuda_sums. */
struct psd_cuda_reduction {
	struct psd_cuda_values left, right;
	enum psd_cuda_summand summand;
	const float *mean, *inverse;
	bool is_by_sample;	   /* compute one sum for each channel of each sample instead */
	bool is_over_all;	   /* compute a single sum over all elements instead */
	struct psd_cuda_values to; /* result, one value per sum */
	float scale;		   /* factor on the sums */
	bool adds;
};

/* Requests memory for a reduction over the layer's output; called in prepare(). */
void psd_cuda_want_reduction(const struct psd_cuda_layer *self, const struct psd_cuda_reduction *reduction);
/* Begins a reduction over the layer's output. */
enum psd_status psd_cuda_reduce(const struct psd_cuda_layer *self, const struct psd_cuda_reduction *reduction,
				struct psd_error *err) PSD_MUST_CHECK;
/* Begins to sum the columns of the matrix `from`, shape (rows, columns): to[c] = scale * sum of column c. partial:
 * scratch memory for PSD_CUDA_SUMS_MOST floats. */
enum psd_status psd_cuda_sum_columns(struct psd_device *device, struct psd_cuda_values from, uint32_t rows,
				     uint32_t columns, float *partial, float *to, float scale,
				     struct psd_error *err) PSD_MUST_CHECK;

/* ---- layers that begin together (graphs.c) ---- */

/* Function of struct psd_device_kind. */
enum psd_status psd_cuda_pass(struct psd_device *device, const struct psd_pass *pass, struct psd_error *err);
/* Launches forward or backward of one layer directly, without a CUDA graph. (cuda.c) */
enum psd_status psd_cuda_begin_layer(struct psd_cuda_layer *layer, bool is_backward,
				     struct psd_error *err) PSD_MUST_CHECK;
/* Frees the recorded graphs of the stretches that begin with this layer; no work may be in progress. */
void psd_cuda_end_graphs(struct psd_device *device, struct psd_cuda_layer *layer);
/* Function of struct psd_device_kind. */
bool psd_cuda_detour(const struct psd_device *device, struct psd_error *how);

/* ---- kinds ---- */

/* Makes the images in the current sample slot the blob of the network's input. (input.c) */
void psd_cuda_show_images(struct psd_device *device);
/* Begins to add bias[channel] to the layer's output, unless bias is NULL, and to apply the ReLU if the layer
 * `rectifies`; in place. (affine.c) */
enum psd_status psd_cuda_add_bias(struct psd_cuda_layer *self, const float *bias, struct psd_error *err) PSD_MUST_CHECK;
psd_device_factors_fn psd_cuda_keep_factors;
psd_device_rebuild_fn psd_cuda_rebuild;
/* Returns the loss of a softmax-loss layer, as psd_device_kind.loss. */
double psd_cuda_loss_of(const struct psd_cuda_layer *layer);
/* Returns the number of correct positions of a softmax-loss layer, as psd_device_kind.correct. */
uint32_t psd_cuda_correct_of(const struct psd_cuda_layer *layer);

/* ---- parameters (parameters.c): functions of struct psd_device_kind ---- */

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

/* libraries that execute all-reduces between GPUs; ends with NULL */
extern const struct psd_library_kind *const psd_cuda_libraries[];

#ifdef __cplusplus
}
#endif

#endif
