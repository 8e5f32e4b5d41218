/* Internals of the device on GPUs: the GPU with its streams and memory, blobs (a layer's output and the gradient of the
 * loss with respect to it), matrix products, convolutions. struct psd_gpu_kind has the same rules as struct
 * psd_cpu_kind. Functions of a .cu file are the vendor's part, in real/device/cuda/. Private to both folders. */
#ifndef PSD_REAL_GPU_H
#define PSD_REAL_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/encodings/compression.h"
#include "engine/encodings/low_rank.h"
#include "engine/model/graph.h"
#include "real/device/device.h"
#include "real/device/gpu/kernels.h"
#include "real/device/layers.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Incomplete types of the handles of CUDA, cuBLAS and cuDNN, so that this file does not need their headers. */
struct CUstream_st;
struct CUevent_st;
struct CUgraphExec_st;
struct cublasContext;
struct cublasLtContext;
struct cudnnContext;

enum {
	PSD_GPU_SLOTS = 2, /* number of sample slots (struct psd_gpu_slot): for the current and the next batch */
	PSD_GPU_SUMS_PARTS =
		/* Number of partial sums that the first kernel of a reduction computes, for all outputs together. A
		 * large GPU has about as many threads. */
	1 << 18,
	/* Largest number of partial sums that both kernels of a reduction compute together. A reduction with more
	 * outputs than PSD_GPU_SUMS_PARTS may have more. */
	PSD_GPU_SUMS_MOST = PSD_GPU_SUMS_PARTS + PSD_GPU_SUMS_PARTS / 4,
	/* Largest number of partial sums that the first kernel computes for the norm of an array. */
	PSD_GPU_NORM_PARTS = 65536,
	/* Largest number of partial sums to which the second kernel adds those of the first. */
	PSD_GPU_NORM_GROUPS = 256,
	/* Number of parts into which encoded values are divided to find infinities; one thread searches each part. */
	PSD_GPU_LOOK_PARTS = 16384,
	PSD_GPU_LOOK_GROUPS = 128, /* number of groups into which the results of these parts are then combined */
};

/* bytes of cuBLAS's workspace, as recommended for the newest GPUs */
#define PSD_GPU_BLAS_WORKSPACE_BYTES (UINT64_C(32) << 20)
/* Alignment of memory that cuDNN uses. cuDNN's engines are chosen before addresses are known, and need this
 * alignment. */
#define PSD_GPU_DNN_ALIGNMENT_BYTES 16u
/* Limit for the number of elements of a blob, because cuDNN and the kernels count elements with 32 bits. */
#define PSD_GPU_MOST_ELEMENTS (UINT64_C(1) << 31)

/* Marks (CUDA events) of one stream, see psd_device_kind.mark. */
struct psd_gpu_marks {
	struct CUevent_st **events; /* PSD_MOST_MARKS events; mark number m uses event m % PSD_MOST_MARKS */
	uint64_t next;		    /* number that the next mark gets */
	int failure; /* CUDA status of the first event that could not be recorded; 0: all were recorded */
};

/* Sample slot: GPU memory for one batch of samples. */
struct psd_gpu_slot {
	void *images;		    /* images of the batch, as floats */
	void *labels;		    /* class numbers of the batch, as int32_t */
	struct CUevent_st *arrived; /* event that happens when the copy to the slot has ended */
	/* Event that happens after the last read of the slot; from then on the slot may be overwritten. */
	struct CUevent_st *used;
};

struct psd_gpu_piece { /* a memory block, as element of the list of all blocks */
	struct psd_gpu_piece *next;
	void *block;  /* address of the memory block */
	bool is_host; /* the block is in the host's memory */
};

/* A layer's request for memory. When all layers are prepared, one memory block is allocated for all requests. */
struct psd_gpu_wanted {
	uint64_t bytes;
	void **slot; /* address of the pointer that is set to the requested memory */
};

/* Blob: a layer's output and the gradient of the loss with respect to it, both in the number format and memory order of
 * the device. A layer that works in place overwrites its input's blob, and has no blob of its own. If several layers
 * read a blob, their backward passes add to its gradient one after another. */
struct psd_gpu_blob {
	void *value;		  /* output of the layer */
	void *diff;		  /* gradient of the loss with respect to the output */
	uint64_t elements, bytes; /* size of the output for the whole batch, in values and in bytes */
	bool has_diff; /* the gradient is needed, because this layer or an earlier one has parameters to train */
	/* Blob whose gradient memory (diff) this blob uses, too; NULL: it has its own memory. */
	const struct psd_gpu_blob *diff_of;
	/* At least one of the layers that read the blob has written its gradient to diff, so the next one must add to
	 * it. */
	bool is_filled;
	unsigned owner; /* number of the layer that made the blob */
	/* Number of the last layer that works in place on the blob; equal to `owner` if there is none. */
	unsigned last;
	enum psd_keeps keeps;
};

struct psd_gpu_layer {
	struct psd_device *device;
	unsigned number;
	const struct psd_layer *model;
	const struct psd_gpu_kind *kind;
	struct psd_gpu_blob *blob; /* the layer's output: `own`, or the blob of its input if it works in place */
	struct psd_gpu_blob own;
	/* For each tensor of the layer, the address of the pointer to its gradient. If several layers share a tensor,
	 * it is the address of the pointer to this layer's summand of the gradient. */
	void **gradients;
	unsigned n_readers;   /* number of layers that read its output */
	unsigned last_reader; /* highest number of the layers that read its output */
	bool rectifies;	      /* this layer also applies the ReLU layer that reads its output */
	bool reads_samples;   /* forward or backward reads images or labels in the sample slot */
	/* List of stretches that begin with this layer. A stretch is a pass over consecutive layers, forward or
	 * backward, that are launched together. */
	struct psd_gpu_stretch *stretches;
	void *details; /* state of the layer, whose type depends on the layer kind; NULL: none */
};

/* Numbers of stretches that are recorded as CUDA graphs, and of stretches that are not. A stretch is a pass over
 * consecutive layers that are launched together. */
struct psd_gpu_recorded {
	unsigned graphs; /* number of recorded graphs */
	/* Number of stretches that are never recorded: their kernels are launched one by one. */
	unsigned left_out;
	unsigned refused;     /* number of stretches that CUDA failed to record */
	struct psd_error why; /* reason of the first failure to record */
};

/* GPU memory for intermediate values of one call. It is shared, because the kernels of all calls that use it follow
 * each other on the compute stream. */
union psd_gpu_scratch {
	struct {
		double parts[2 * PSD_GPU_NORM_PARTS];
		double reduced[2 * PSD_GPU_NORM_GROUPS];
		float rate;
		/* For a tensor's learning rate: sums of squares of its weight and gradient, and the rate. */
	} norms;
	struct {
		uint32_t parts[PSD_GPU_LOOK_PARTS];
		uint32_t reduced[PSD_GPU_LOOK_GROUPS];
		uint32_t all;
	} look; /* results of the search for infinities in encoded values */
	struct {
		double parts[PSD_GPU_CHUNKS * PSD_GPU_CHUNK_PARTS];
		double reduced[PSD_GPU_CHUNKS * PSD_GPU_CHUNK_GROUPS];
	} chunks;
	struct {
		float sums[2 * PSD_GPU_BLOCKS * PSD_BLOCK_LANES];
		uint32_t lowest[PSD_GPU_BLOCKS];
		uint32_t largest[PSD_GPU_BLOCKS * PSD_BLOCK_LANES];
		uint16_t counts[PSD_GPU_BLOCKS * PSD_GPU_DIGITS * PSD_BLOCK_LANES];
		/* Sums and counts of values for each lane of compressed blocks (engine/encodings/compression.h). */
	} lanes;
	struct {
		double parts[PSD_GPU_PRODUCT_PARTS];
		double products[PSD_GPU_SQUARES], factor[PSD_GPU_SQUARES], inverse[PSD_GPU_SQUARES];
		uint32_t found[PSD_GPU_MATRICES * PSD_MOST_RANK * PSD_GPU_PARTS];
	} matrices; /* inner products of the columns of low-rank factors */
};

struct psd_device {
	struct psd_device_options options;
	int number; /* CUDA's number of this GPU */
	char name[64];
	unsigned capability;   /* CUDA's compute capability: 10 * major + minor */
	unsigned n_processors; /* number of multiprocessors */
	uint64_t memory_bytes; /* memory of the GPU, bytes */
	struct CUstream_st *streams[PSD_STREAMS];
	struct psd_gpu_marks marks[PSD_STREAMS];
	struct psd_gpu_slot slots[PSD_GPU_SLOTS]; /* memory for samples of the current and the next batch */
	struct psd_gpu_piece *pieces;		  /* list of all memory blocks */
	uint64_t held_bytes;			  /* bytes of all memory blocks except those of take() */
	/* Handles of cuBLAS: `blas` for products of the network, rebuild_blas for the computation of gradients from
	 * factors. */
	struct cublasContext *blas, *rebuild_blas;
	struct cublasLtContext *lt; /* handle of cuBLASLt */
	void *blas_workspace;	    /* workspace of cuBLAS for products on the compute stream */
	struct cudnnContext *dnn;
	/* cuDNN's description of a GPU that is not in this machine, used only to choose cuDNN's plans without a GPU;
	 * otherwise NULL. */
	void *dnn_properties;
	/* Partial sums in the computation of gradients from factors, PSD_GPU_SUMS_MOST floats. */
	float *rebuild_sums;
	/* Array of two values on which dropout masks depend: number of the batch's first sample, and number of the
	 * iteration. */
	uint32_t *counters;
	union psd_gpu_scratch *scratch;

	/* The network; set by load(). */
	const struct psd_graph *graph;
	struct psd_network_options network;
	enum psd_gpu_type type; /* number format of blobs */
	/* Blobs have all channels of a position adjacent in memory; false: all columns of a row. */
	bool is_channels_last;
	float diff_scale;   /* loss scale: factor by which the blobs' gradients are multiplied, a power of two */
	float **parameters; /* addresses of the caller's parameter tensors */
	void **gradients;   /* addresses of the caller's gradient tensors */
	/* addresses, in the GPU's memory, of the network's state tensors, such as running statistics */
	void **states;
	struct psd_gpu_layer *layers;
	struct psd_gpu_wanted *wants;
	unsigned n_wants, want_capacity;
	/* Scratch memory that all layers share. Each array is as large as the largest request of a layer. */
	void *workspace; /* memory for convolutions and attention */
	uint64_t workspace_bytes;
	void *sums;	 /* partial sums of reductions, as floats */
	uint64_t n_sums; /* number of floats in `sums` */
	void *dweight;	 /* gradient of a convolution's weight, in the number format and memory order of the device */
	uint64_t dweight_bytes;
	void *ones; /* vector of n_ones floats with value 1 */
	uint32_t n_ones;
	struct psd_batch batch;
	unsigned slot; /* number of the sample slot with the current batch */
	/* The other sample slot has, or is receiving, a batch that fetch() has copied for a later begin(). */
	bool has_fetched;
	bool counts; /* at least one layer reads `counters`, so begin() must update them */
	struct psd_gpu_recorded recorded;
};

/* Implementation of a layer kind on the GPU. prepare() makes the output blob and requests memory. It is called once for
 * each layer, in forward order. */
struct psd_gpu_kind {
	enum psd_status (*prepare)(struct psd_gpu_layer *self, struct psd_error *err);
	/* Called on the host before each forward pass, for example to check labels. NULL: there is nothing to check. */
	enum psd_status (*check)(const struct psd_gpu_layer *self, struct psd_error *err);
	/* Launches the forward pass. This work is recorded once as a CUDA graph for each sample slot. So in all
	 * iterations with the same slot it must launch the same kernels with the same arguments. It must not change the
	 * host's memory. */
	enum psd_status (*forward)(struct psd_gpu_layer *self, struct psd_error *err);
	/* Launches the backward pass. It is called only if the layer is trained: at least one input of a layer without
	 * parameters has a gradient (has_diff). In all iterations with the same sample slot and the same addresses of
	 * gradients it must launch the same kernels with the same arguments. It must not change the host's memory
	 * except by psd_gpu_share(). */
	enum psd_status (*backward)(struct psd_gpu_layer *self, struct psd_error *err);
	/* True if the forward pass launches other kernels in this iteration than in others, so that no CUDA graph may
	 * be used. NULL: it never does. */
	bool (*varies)(const struct psd_gpu_layer *self);
	/* Releases the contents of psd_gpu_layer.details, which may be all zeros. NULL: there is nothing to
	 * release. */
	void (*close)(struct psd_gpu_layer *self);
	size_t details_bytes; /* bytes of psd_gpu_layer.details, which are filled with zeros before prepare() */
	enum psd_keeps keeps;
	/* The layer may work in place even if its input's signs are needed (PSD_KEEPS_SIGNS). */
	bool leaves_signs;
	/* The gradient of the layer's output is needed after the iteration, as a factor of the weight's gradient. */
	bool keeps_diff;
};

/* Declares the implementation of each layer kind; for example psd_gpu_kind_conv implements psd_layer_conv. */
#define PSD_DECLARE_GPU_KIND(kind) extern const struct psd_gpu_kind psd_gpu_kind_##kind;
PSD_DECLARE_GPU_KIND(input)
PSD_CARRIED_OUT_KINDS(PSD_DECLARE_GPU_KIND)
#undef PSD_DECLARE_GPU_KIND

/* Returns the implementation of a layer kind; NULL if there is none. */
const struct psd_gpu_kind *psd_gpu_find_kind(const struct psd_layer_kind *kind);

/* ---- the GPU (runtime.cu) ---- */

/* Functions `count` and `describe` of struct psd_device_kind. */
unsigned psd_gpu_count(struct psd_error *why);
void psd_gpu_describe(const struct psd_device *device, char text[PSD_DEVICE_TEXT_MAX]);
/* Makes the device's GPU the current GPU of the calling thread. PSD_ERUN. */
enum psd_status psd_gpu_enter(const struct psd_device *device, struct psd_error *err) PSD_MUST_CHECK;
/* Opens the GPU: makes its streams and events. PSD_EINVAL: there is no such GPU; PSD_ERUN. */
enum psd_status psd_gpu_start(struct psd_device *device, struct psd_error *err) PSD_MUST_CHECK;
/* Closes the GPU, even if psd_gpu_start() has failed. No work may be in progress. */
void psd_gpu_stop(struct psd_device *device);
/* Returns PSD_OK if the status of the vendor's runtime means success; otherwise PSD_ERUN with a message. what: end of
 * the message "the GPU failed ...", such as "to begin a kernel". */
enum psd_status psd_gpu_check(int status, const char *what, struct psd_error *err) PSD_MUST_CHECK;
/* Allocates GPU memory filled with zeros, valid until psd_gpu_stop(). what: name of the memory for error messages,
 * such as "the network's activations". PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_gpu_take(struct psd_device *device, uint64_t bytes, const char *what, void **block,
			     struct psd_error *err) PSD_MUST_CHECK;
/* Allocates GPU memory as psd_gpu_take(), but does not initialise it. */
enum psd_status psd_gpu_take_workspace(struct psd_device *device, uint64_t bytes, const char *what, void **block,
				       struct psd_error *err) PSD_MUST_CHECK;
/* Allocates pinned host memory filled with zeros, valid until psd_gpu_stop(). PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_gpu_take_host(struct psd_device *device, uint64_t bytes, void **block,
				  struct psd_error *err) PSD_MUST_CHECK;
/* Begins a copy between any two addresses, each in the memory of the host or of the GPU. stream: an enum psd_stream. */
enum psd_status psd_gpu_copy(struct psd_device *device, unsigned stream, void *to, const void *from, uint64_t bytes,
			     struct psd_error *err) PSD_MUST_CHECK;
/* Begins to fill a memory block with zeros, on PSD_STREAM_COMPUTE. */
enum psd_status psd_gpu_clear(struct psd_device *device, void *block, uint64_t bytes,
			      struct psd_error *err) PSD_MUST_CHECK;
/* Makes the event happen when all work that was begun so far on the stream has ended. */
enum psd_status psd_gpu_record(struct psd_device *device, unsigned stream, struct CUevent_st *event,
			       struct psd_error *err) PSD_MUST_CHECK;
/* Makes all work that is begun later on the stream wait for the event. */
enum psd_status psd_gpu_follow(struct psd_device *device, unsigned stream, struct CUevent_st *event,
			       struct psd_error *err) PSD_MUST_CHECK;
/* Waits until all work that was begun so far on the stream has ended. */
enum psd_status psd_gpu_finish(struct psd_device *device, unsigned stream, struct psd_error *err) PSD_MUST_CHECK;
/* Begins a capture. Until psd_gpu_end_capture(), work that the calling thread begins on PSD_STREAM_COMPUTE is
 * recorded, and not executed. PSD_ERUN. */
enum psd_status psd_gpu_begin_capture(struct psd_device *device, struct psd_error *err) PSD_MUST_CHECK;
/* Ends the capture. Sets *launchable to a CUDA graph of the recorded work, or to NULL if there was no work. The caller
 * frees it by psd_gpu_end_launchable(). PSD_ERUN: CUDA has failed or could not record some work; the capture has ended
 * even then. */
enum psd_status psd_gpu_end_capture(struct psd_device *device, struct CUgraphExec_st **launchable,
				    struct psd_error *err) PSD_MUST_CHECK;
/* Begins to execute all work of a recorded graph, on PSD_STREAM_COMPUTE. */
enum psd_status psd_gpu_launch(struct psd_device *device, struct CUgraphExec_st *launchable,
			       struct psd_error *err) PSD_MUST_CHECK;
/* Frees a recorded graph; NULL is allowed. */
void psd_gpu_end_launchable(struct CUgraphExec_st *launchable);
/* Functions `mark`, `wait` and `between_sec` of struct psd_device_kind. */
uint64_t psd_gpu_mark(struct psd_device *device, enum psd_stream stream);
enum psd_status psd_gpu_wait(struct psd_device *device, enum psd_stream stream, uint64_t mark, struct psd_error *err);
double psd_gpu_between_sec(struct psd_device *device, enum psd_stream stream, uint64_t from, uint64_t to);

/* ---- products (blas.cu) ---- */

/* Matrix product: result = alpha * op(left) * op(right). op transposes the matrix if is_left_transposed or
 * is_right_transposed is set. If `adds`, the product is added to the result. All matrices are row-major; result has the
 * shape (rows, columns). */
struct psd_gpu_product {
	struct psd_gpu_values left, right, result;
	/* rows, columns: shape of the result; depth: number of columns of op(left) and of rows of op(right). */
	uint32_t rows, columns, depth;
	bool is_left_transposed, is_right_transposed;
	bool adds;
	bool is_exact; /* floats are multiplied with full precision; false: TF32 may be used */
	float alpha;
};

enum psd_status psd_gpu_start_blas(struct psd_device *device, struct psd_error *err) PSD_MUST_CHECK;
void psd_gpu_stop_blas(struct psd_device *device);
/* Begins a matrix product. is_rebuild: the product is part of the computation of a gradient from factors. Then it may
 * overlap with the network's products, and another thread may begin it. */
enum psd_status psd_gpu_multiply_matrices(struct psd_device *device, const struct psd_gpu_product *product,
					  bool is_rebuild, struct psd_error *err) PSD_MUST_CHECK;

/* Several products of equal shapes, which are computed together. The distance between two rows of a matrix may be
 * larger than the length of a row, so a matrix may be a part of a wider matrix. The results must not overlap. */
struct psd_gpu_products {
	struct psd_gpu_product first; /* the first product */
	/* Distance between the beginnings of two successive rows of a matrix, in elements. */
	uint32_t left_apart, right_apart, result_apart;
	/* Distance between the matrices of two successive products, in elements. */
	uint64_t left_stride, right_stride, result_stride;
	uint32_t n; /* number of products */
};

/* Begins several products on the compute stream. */
enum psd_status psd_gpu_multiply_several(struct psd_device *device, const struct psd_gpu_products *products,
					 struct psd_error *err) PSD_MUST_CHECK;

/* Epilogue: operation that a product's kernel also executes at its end. It uses a vector of floats or of the result's
 * type. */
enum psd_gpu_epilogue {
	PSD_GPU_ADD_VECTOR,		/* adds the vector, which has the result's type, to each row of the result */
	PSD_GPU_ADD_VECTOR_AND_RECTIFY, /* adds the vector to each row, then applies ReLU */
	/* Writes the sum of each row of op(left) to the vector. alpha must be 1, and the result must be floats. */
	PSD_GPU_SUM_LEFT_ROWS,
};

/* A matrix product by cuBLASLt with an epilogue: a second operation in the same kernel, which needs nearly no
 * additional time. */
struct psd_gpu_fused;

/* Chooses an algorithm for products with these shapes and types, and with this epilogue. *fused becomes NULL if a
 * separate kernel is faster than the epilogue. This is so if cuBLASLt has no such epilogue, or uses another algorithm
 * with it than for the product alone. An address in *product or `vector` that is NULL in this call must be aligned to
 * 256 bytes in later calls. For other addresses see psd_gpu_fits_fused(). PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_gpu_open_fused(struct psd_device *device, const struct psd_gpu_product *product,
				   enum psd_gpu_epilogue epilogue, const void *vector, struct psd_gpu_fused **fused,
				   struct psd_error *err) PSD_MUST_CHECK;
/* Releases a fused product; NULL is allowed. */
void psd_gpu_close_fused(struct psd_gpu_fused *fused);
/* True if psd_gpu_multiply_fused() may be called with these addresses: result and vector are aligned at least as well
 * as those in psd_gpu_open_fused(). */
bool psd_gpu_fits_fused(const struct psd_gpu_fused *fused, const struct psd_gpu_product *product,
			const void *vector) PSD_MUST_CHECK;
/* Begins a fused product of psd_gpu_open_fused() on the compute stream. psd_gpu_fits_fused() must be true for
 * `product` and `vector`, the vector of the epilogue. */
enum psd_status psd_gpu_multiply_fused(struct psd_device *device, struct psd_gpu_fused *fused,
				       const struct psd_gpu_product *product, void *vector,
				       struct psd_error *err) PSD_MUST_CHECK;

/* ---- convolution and batch norm (dnn.cu, dnn_graph.cu, dnn_conv.cu, dnn_norm.cu) ---- */

struct psd_gpu_dnn_conv;
struct psd_gpu_dnn_norm;

/* True if the address has the alignment that cuDNN's engines need. */
static inline bool psd_gpu_suits_dnn(const void *address)
{
	return (uintptr_t)address % PSD_GPU_DNN_ALIGNMENT_BYTES == 0;
}

enum psd_status psd_gpu_start_dnn(struct psd_device *device, struct psd_error *err) PSD_MUST_CHECK;
void psd_gpu_stop_dnn(struct psd_device *device);
/* Prepares a convolution, or a transposed convolution, by cuDNN: chooses engines for the layer's shape and requests
 * memory for their workspace. PSD_EINVAL: cuDNN has no engine for that shape; PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_gpu_dnn_conv_open(struct psd_gpu_layer *layer, bool is_transpose, struct psd_gpu_dnn_conv **conv,
				      struct psd_error *err) PSD_MUST_CHECK;
/* Releases a convolution; NULL is allowed. */
void psd_gpu_dnn_conv_close(struct psd_gpu_dnn_conv *conv);
/* Begins the forward pass of a convolution. weight: in the number format and memory order of the device. */
enum psd_status psd_gpu_dnn_conv_forward(struct psd_gpu_layer *layer, struct psd_gpu_dnn_conv *conv, const void *weight,
					 struct psd_error *err) PSD_MUST_CHECK;
/* Begins to compute the gradient of the weight into `dweight`, in the number format and memory order of the device. */
enum psd_status psd_gpu_dnn_conv_dweight(struct psd_gpu_layer *layer, struct psd_gpu_dnn_conv *conv, void *dweight,
					 struct psd_error *err) PSD_MUST_CHECK;
/* Begins to compute the gradient of the layer's input, or to add to it if another layer has written it. weight: in the
 * number format and memory order of the device. */
enum psd_status psd_gpu_dnn_conv_dinput(struct psd_gpu_layer *layer, struct psd_gpu_dnn_conv *conv, const void *weight,
					struct psd_error *err) PSD_MUST_CHECK;

/* Vectors of a batch norm: floats, one per channel. Only running_mean and running_variance may be NULL. */
struct psd_gpu_norm_vectors {
	const float *gamma, *beta;
	/* Running statistics. The forward pass sets running = (1 - share) * running + share * (value of this batch). */
	float *running_mean, *running_variance;
	/* Mean of the batch, and 1 / sqrt(variance + epsilon). The forward pass writes both for the backward pass. */
	float *mean, *inverse;
	float *dgamma, *dbeta;
};

/* Prepares a batch norm by cuDNN for the layer's shape. PSD_EINVAL: cuDNN has no engine for that shape; PSD_ENOMEM,
 * PSD_ERUN. */
enum psd_status psd_gpu_dnn_norm_open(struct psd_gpu_layer *layer, struct psd_gpu_dnn_norm **norm,
				      struct psd_error *err) PSD_MUST_CHECK;
/* Releases a batch norm; NULL is allowed. */
void psd_gpu_dnn_norm_close(struct psd_gpu_dnn_norm *norm);
/* Begins the forward pass of a batch norm. share: weight of this batch in the running statistics, see running_mean. */
enum psd_status psd_gpu_dnn_norm_forward(struct psd_gpu_layer *layer, struct psd_gpu_dnn_norm *norm,
					 const struct psd_gpu_norm_vectors *vectors, double share,
					 struct psd_error *err) PSD_MUST_CHECK;
/* Begins the backward pass of a batch norm. The blob of its input must have a gradient (has_diff). */
enum psd_status psd_gpu_dnn_norm_backward(struct psd_gpu_layer *layer, struct psd_gpu_dnn_norm *norm,
					  const struct psd_gpu_norm_vectors *vectors,
					  struct psd_error *err) PSD_MUST_CHECK;

/* ---- memory of the network (memory.c) ---- */

/* Requests memory filled with zeros. Its address is written to *slot when all layers are prepared. PSD_ENOMEM. */
enum psd_status psd_gpu_want(struct psd_device *device, uint64_t bytes, void **slot,
			     struct psd_error *err) PSD_MUST_CHECK;
/* Requests that the memory device->workspace, which all layers share, has at least `bytes` bytes. */
void psd_gpu_want_workspace(struct psd_device *device, uint64_t bytes);
/* Requests that the memory device->sums, which all layers share, has at least n_sums floats. */
void psd_gpu_want_sums(struct psd_device *device, uint64_t n_sums);
/* Requests that the memory device->dweight, which all layers share, has at least `bytes` bytes. */
void psd_gpu_want_dweight(struct psd_device *device, uint64_t bytes);
/* Requests that the vector device->ones has at least `count` elements. */
void psd_gpu_want_ones(struct psd_device *device, uint32_t count);
/* Allocates all requested memory, and the blobs; called once when all layers are prepared. PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_gpu_allocate(struct psd_device *device, struct psd_error *err) PSD_MUST_CHECK;
/* Fills err with a text about missing memory and returns PSD_ENOMEM. */
enum psd_status psd_gpu_no_memory(struct psd_error *err);

/* ---- blobs (blob.c) ---- */

/* Returns the layer whose output is input number `input` of this layer. */
const struct psd_gpu_layer *psd_gpu_below(const struct psd_gpu_layer *self, unsigned input);
/* Returns the blob that is input number `input` of this layer. */
struct psd_gpu_blob *psd_gpu_input(const struct psd_gpu_layer *self, unsigned input);
/* True if the layer may overwrite its first input: no other layer reads the input, and no layer needs its old
 * values. */
bool psd_gpu_may_work_in_place(const struct psd_gpu_layer *self);
/* True if only one layer reads this layer's output, and that layer is a ReLU that works in place. */
bool psd_gpu_feeds_relu(const struct psd_gpu_layer *self);
/* Returns the slope, for negative values, of the ReLU layer that reads this layer's output. Only if
 * psd_gpu_feeds_relu(). */
float psd_gpu_slope_above(const struct psd_gpu_layer *self);
/* Makes a new blob for the layer's output, and requests memory for it. The network's input gets no memory, because its
 * values are in a sample slot. PSD_EINVAL: the output has PSD_GPU_MOST_ELEMENTS values or more; PSD_ENOMEM. */
enum psd_status psd_gpu_declare(struct psd_gpu_layer *self, struct psd_error *err) PSD_MUST_CHECK;
/* Makes the blob of the first input also the blob of the layer's output, which overwrites the input. */
void psd_gpu_declare_in_place(struct psd_gpu_layer *self);
/* Called once in a backward pass by each layer that reads the blob. Returns true if the layer must add to the blob's
 * gradient, because another layer has written to it before; false if the layer must overwrite the gradient. */
bool psd_gpu_share(struct psd_gpu_blob *blob);

/* Returns the address and number format of a blob's values. */
struct psd_gpu_values psd_gpu_value(const struct psd_gpu_layer *self, const struct psd_gpu_blob *blob);
/* Returns the address and number format of a blob's gradient. */
struct psd_gpu_values psd_gpu_diff(const struct psd_gpu_layer *self, const struct psd_gpu_blob *blob);
/* Returns `data` as an array of floats for kernels. */
struct psd_gpu_values psd_gpu_floats(const float *data);
/* Begins dropout of values or gradients of a batch, each sample with this shape and order, by a mask that is the same
 * at each call of an iteration; ratio: below 1. The layer's prepare() sets device->counts. `to` may be `from`. */
enum psd_status psd_gpu_run_drop(struct psd_gpu_layer *self, struct psd_gpu_values from, struct psd_gpu_values to,
				 struct psd_gpu_maps maps, double ratio, bool adds,
				 struct psd_error *err) PSD_MUST_CHECK;
/* Returns the shape and memory order of the layer's output. */
struct psd_gpu_maps psd_gpu_maps_of(const struct psd_gpu_layer *self);
/* Returns the rule by which kernels compute the channel of an element of the layer's output. */
struct psd_gpu_channel psd_gpu_channel_of(const struct psd_gpu_layer *self);
/* Returns the number of positions (height times width) in the layer's output for one sample. */
uint32_t psd_gpu_positions(const struct psd_gpu_layer *self);
/* Returns the number of positions in the layer's output for all samples of the batch together. */
uint64_t psd_gpu_batch_positions(const struct psd_gpu_layer *self);
/* Returns a view (samples, channels, rows, columns) of an array with the shape of the layer's output, in row-major
 * order. */
struct psd_gpu_view psd_gpu_view_plain(const struct psd_gpu_layer *self);
/* Returns a view (samples, channels, rows, columns) of the layer's output, in the memory order of the device. */
struct psd_gpu_view psd_gpu_view_of(const struct psd_gpu_layer *self);
/* Moves the second axis of a view, the channels, to the end. With channels last, elements of such a view are then
 * numbered in the order of memory. */
void psd_gpu_view_turn(struct psd_gpu_view *seen);
/* Returns the number of elements of a view. */
uint64_t psd_gpu_view_elements(const struct psd_gpu_view *seen);
/* Begins to copy between two views with the axes (samples, channels, rows, columns). Elements are copied in the memory
 * order of the device, which is faster. */
enum psd_status psd_gpu_move_views(struct psd_gpu_layer *self, struct psd_gpu_move move,
				   struct psd_error *err) PSD_MUST_CHECK;

/* Reduction: sums over a layer's output, by default one sum for each channel. left, right, summand, mean and inverse:
 * as in struct psd_gpu_sums. */
struct psd_gpu_reduction {
	struct psd_gpu_values left, right;
	enum psd_gpu_summand summand;
	const float *mean, *inverse;
	bool is_by_sample;	  /* one sum for each channel of each sample instead */
	bool is_over_all;	  /* a single sum over all elements instead */
	struct psd_gpu_values to; /* result, one value per sum */
	float scale;		  /* factor by which the sums are multiplied */
	bool adds;
};

/* Requests the memory that a reduction over the layer's output needs; called in prepare(). */
void psd_gpu_want_reduction(const struct psd_gpu_layer *self, const struct psd_gpu_reduction *reduction);
/* Begins a reduction over the layer's output. */
enum psd_status psd_gpu_reduce(const struct psd_gpu_layer *self, const struct psd_gpu_reduction *reduction,
			       struct psd_error *err) PSD_MUST_CHECK;
/* Returns the reduction that computes the gradient of a shift or bias, the layer's tensor number `index`. */
struct psd_gpu_reduction psd_gpu_shift_sums(const struct psd_gpu_layer *self, unsigned index);
/* Begins to compute the gradients of the scale and shift that the layer has (settings.affine). summand, mean and
 * inverse: those of the scale's sums. */
enum psd_status psd_gpu_differentiate_vectors(const struct psd_gpu_layer *self, enum psd_gpu_summand summand,
					      const float *mean, const float *inverse,
					      struct psd_error *err) PSD_MUST_CHECK;
/* Begins to sum the columns of the matrix `from` with shape (rows, columns): to[c] = scale * (sum of column c).
 * partial: scratch memory of PSD_GPU_SUMS_MOST floats. */
enum psd_status psd_gpu_sum_columns(struct psd_device *device, struct psd_gpu_values from, uint32_t rows,
				    uint32_t columns, float *partial, float *to, float scale,
				    struct psd_error *err) PSD_MUST_CHECK;

/* ---- layers that are launched together (graphs.c) ---- */

/* Function `pass` of struct psd_device_kind. */
enum psd_status psd_gpu_pass(struct psd_device *device, const struct psd_pass *pass, struct psd_error *err);
/* Launches the forward or backward pass of one layer directly, without a CUDA graph. Defined in layer.c. */
enum psd_status psd_gpu_begin_layer(struct psd_gpu_layer *layer, bool is_backward,
				    struct psd_error *err) PSD_MUST_CHECK;
/* Frees the recorded graphs of the stretches that begin with this layer. No work may be in progress. */
void psd_gpu_end_graphs(struct psd_device *device, struct psd_gpu_layer *layer);
/* Function `detour` of struct psd_device_kind. */
bool psd_gpu_detour(const struct psd_device *device, struct psd_error *how);

/* ---- layer kinds ---- */

/* Sets the blob of the network's input to the images in the current sample slot. Defined in input.c. */
void psd_gpu_show_images(struct psd_device *device);
/* Begins two operations on the layer's output, in place: adds bias[channel] to it, unless bias is NULL, and applies the
 * ReLU if layer->rectifies. Defined in affine.c. */
enum psd_status psd_gpu_add_bias(struct psd_gpu_layer *self, const float *bias, struct psd_error *err) PSD_MUST_CHECK;
psd_device_factors_fn psd_gpu_keep_factors;
psd_device_rebuild_fn psd_gpu_rebuild;
/* Returns the loss of a softmax-loss layer, as psd_device_kind.loss. */
double psd_gpu_loss_of(const struct psd_gpu_layer *layer);
/* Returns the number of correct positions of a softmax-loss layer, as psd_device_kind.correct. */
uint32_t psd_gpu_correct_of(const struct psd_gpu_layer *layer);

/* ---- kernels (parameters.c, packing.c, low_rank.c) ---- */

/* Functions psd_gpu_kernel_NAME(): each executes a kernel of PSD_KERNELS on the GPU. The caller has entered the device
 * (psd_gpu_enter()). */
#define PSD_GPU_KERNEL(name, arguments, text)                                                                          \
	enum psd_status psd_gpu_kernel_##name(struct psd_device *device, const struct arguments *of,                   \
					      struct psd_error *err) PSD_MUST_CHECK;
PSD_KERNELS(PSD_GPU_KERNEL)

/* ---- sums between GPUs (nccl.c) ---- */

/* Libraries that execute all-reduces between GPUs; the array ends with NULL. */
extern const struct psd_library_kind *const psd_gpu_libraries[];

#ifdef __cplusplus
}
#endif

#endif
