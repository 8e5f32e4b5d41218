/* What the parts of the CUDA device share: the GPU with its streams and memory, blobs (a layer's output and its
 * gradient), products, convolutions. Kinds and their rules are as in real/device/cpu/cpu.h. Private to
 * real/device/cuda/; headers of CUDA, cuBLAS and cuDNN appear in .cu files alone. */
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
#include "real/device/kinds.h"

#ifdef __cplusplus
extern "C" {
#endif

/* CUDA's, cuBLAS's and cuDNN's handles point to these. */
struct CUstream_st;
struct CUevent_st;
struct CUgraphExec_st;
struct cublasContext;
struct cublasLtContext;
struct cudnnContext;

enum {
	PSD_CUDA_SLOTS = 2,	       /* of samples: those that are computed, the next ones */
	PSD_CUDA_SUMS_PARTS = 1 << 18, /* of all outputs of a reduction: a large GPU has as many threads */
	/* partial sums of a reduction, and of these again, unless it has more outputs than parts */
	PSD_CUDA_SUMS_MOST = PSD_CUDA_SUMS_PARTS + PSD_CUDA_SUMS_PARTS / 4,
	PSD_CUDA_NORM_PARTS = 65536, /* the most of one array */
	PSD_CUDA_NORM_GROUPS = 256,
	PSD_CUDA_LOOK_PARTS = 16384, /* of what travels, in which an infinity is looked for */
	PSD_CUDA_LOOK_GROUPS = 128,
};

#define PSD_CUDA_BLAS_WORKSPACE_BYTES (UINT64_C(32) << 20) /* what cuBLAS wants on the newest GPUs */
/* What cuDNN reads and writes begins at such addresses: its engines are chosen for them before it knows any. */
#define PSD_CUDA_DNN_ALIGNMENT_BYTES 16u
/* cuDNN and the kernels count a blob's elements with 32 bits. */
#define PSD_CUDA_MOST_ELEMENTS (UINT64_C(1) << 31)

struct psd_cuda_marks {
	struct CUevent_st **events; /* PSD_MOST_MARKS, mark m at m % PSD_MOST_MARKS */
	uint64_t next;
	int failure; /* CUDA's, of a record */
};

/* A batch of samples. */
struct psd_cuda_slot {
	void *images; /* floats, as they come */
	void *labels;
	struct CUevent_st *arrived; /* they are there */
	struct CUevent_st *used;    /* all that reads them is over, and others may take their place */
};

struct psd_cuda_piece { /* of memory, in a list */
	struct psd_cuda_piece *next;
	void *block;
	bool is_host;
};

/* Memory of the network that is taken in one piece once every layer is prepared. */
struct psd_cuda_wanted {
	uint64_t bytes;
	void **slot;
};

/* A layer's output and the gradient of the loss by it, both of the device's type and order. Layers that work in place
 * share their input's blob. Several readers add to the gradient one after the other. */
struct psd_cuda_blob {
	void *value;
	void *diff;
	uint64_t elements, bytes;	     /* of the batch */
	bool has_diff;			     /* something at or below it is trained */
	const struct psd_cuda_blob *diff_of; /* whose diff this one's is as well; NULL: it has its own */
	bool is_filled;			     /* diff holds the share of at least one reader: the next one adds */
	unsigned owner;			     /* the layer that made it */
	unsigned last;			     /* the last layer that works on it in place, or owner */
	enum psd_keeps keeps;
};

struct psd_cuda_layer {
	struct psd_device *device;
	unsigned number;
	const struct psd_layer *model;
	const struct psd_cuda_kind *kind;
	struct psd_cuda_blob *blob; /* own, or an input's */
	struct psd_cuda_blob own;
	void **gradients; /* slots of its tensors'; of shared ones its own part of them */
	unsigned n_readers;
	unsigned last_reader;
	bool rectifies;			    /* it does the work of the rectifier that reads it */
	bool reads_samples;		    /* where they lie, in either way */
	struct psd_cuda_stretch *stretches; /* that begin with it, in either way */
	void *details;			    /* the kind's own; NULL: none */
};

/* Of what layers begin. */
struct psd_cuda_recorded {
	unsigned graphs;      /* that are there */
	unsigned left_out;    /* stretches of layers that are begun call by call, each time */
	unsigned refused;     /* of these, by CUDA */
	struct psd_error why; /* the first of them was */
};

/* In the GPU's memory: what one call works with until what it began is over. Calls that use it come one after the
 * other, and on the compute stream so does what they begin. */
union psd_cuda_scratch {
	struct {
		double parts[2 * PSD_CUDA_NORM_PARTS];
		double folded[2 * PSD_CUDA_NORM_GROUPS];
		float rate;
	} norms; /* of a weight and its gradient */
	struct {
		uint32_t parts[PSD_CUDA_LOOK_PARTS];
		uint32_t folded[PSD_CUDA_LOOK_GROUPS];
		uint32_t all;
	} look; /* at what travels */
	struct {
		double parts[PSD_CUDA_CHUNKS * PSD_CUDA_CHUNK_PARTS];
		double folded[PSD_CUDA_CHUNKS * PSD_CUDA_CHUNK_GROUPS];
	} chunks;
	struct {
		float sums[2 * PSD_CUDA_BLOCKS * PSD_BLOCK_LANES];
		uint32_t lowest[PSD_CUDA_BLOCKS];
		uint16_t counts[PSD_CUDA_BLOCKS * PSD_CUDA_DIGITS * PSD_BLOCK_LANES];
	} lanes; /* of blocks that are compressed */
	struct {
		double parts[PSD_CUDA_PRODUCT_PARTS];
		double products[PSD_CUDA_SQUARES], factor[PSD_CUDA_SQUARES], inverse[PSD_CUDA_SQUARES];
		uint32_t found[PSD_CUDA_MATRICES * PSD_MOST_RANK * PSD_CUDA_PARTS];
	} matrices; /* that are narrow */
};

struct psd_device {
	struct psd_device_options options;
	int number; /* CUDA's */
	char name[64];
	unsigned capability; /* 10 major + minor */
	unsigned n_processors;
	uint64_t memory_bytes;
	struct CUstream_st *streams[PSD_STREAMS];
	struct psd_cuda_marks marks[PSD_STREAMS];
	struct psd_cuda_slot slots[PSD_CUDA_SLOTS];
	struct psd_cuda_piece *pieces;
	uint64_t held_bytes; /* of pieces that the caller did not ask for */
	struct cublasContext *blas, *rebuild_blas;
	struct cublasLtContext *lt; /* cuBLASLt's */
	void *blas_workspace;	    /* of products on the compute stream */
	struct cudnnContext *dnn;
	void *dnn_properties; /* cuDNN's, of a GPU that is not here, for which it only plans; NULL where dnn is not */
	float *rebuild_sums;  /* PSD_CUDA_SUMS_MOST */
	uint32_t *counters;   /* of the first sample and the iteration */
	union psd_cuda_scratch *scratch;

	/* the network */
	const struct psd_graph *graph;
	struct psd_network_options network;
	enum psd_cuda_type type; /* of blobs */
	bool is_channels_last;
	float diff_scale;   /* of gradients of blobs, a power of two */
	float **parameters; /* the caller's */
	void **gradients;   /* slots of the caller's */
	void **states;	    /* own */
	struct psd_cuda_layer *layers;
	struct psd_cuda_wanted *wants;
	unsigned n_wants, want_capacity;
	/* slots of what all layers share, each with the most that one of them wants */
	void *workspace; /* of convolutions and attention */
	uint64_t workspace_bytes;
	void *sums; /* partial ones, floats */
	uint64_t n_sums;
	void *dweight; /* a convolution's, of the device's type and order */
	uint64_t dweight_bytes;
	void *ones; /* floats */
	uint32_t n_ones;
	struct psd_batch batch;
	unsigned slot;	  /* of the samples that are computed */
	bool has_fetched; /* the next ones are on their way to the other slot */
	bool counts;	  /* a layer reads the counters */
	struct psd_cuda_recorded recorded;
};

/* What one kind of layer does. prepare declares the output and says what memory it wants; it is called once per layer
 * in forward order. */
struct psd_cuda_kind {
	enum psd_status (*prepare)(struct psd_cuda_layer *self, struct psd_error *err);
	/* What the host sees to each time before forward. NULL: nothing. */
	enum psd_status (*check)(const struct psd_cuda_layer *self, struct psd_error *err);
	/* These two begin the same whenever the iteration's slot of samples and its gradients' places are the same, and
	 * leave nothing behind in the host's memory but psd_cuda_share(): what they begin is recorded once. */
	enum psd_status (*forward)(struct psd_cuda_layer *self, struct psd_error *err);
	enum psd_status (*backward)(struct psd_cuda_layer *self, struct psd_error *err);
	/* Of a kind whose forward does not keep to that: whether it doesn't in this iteration. NULL: never. */
	bool (*varies)(const struct psd_cuda_layer *self);
	void (*close)(struct psd_cuda_layer *self); /* NULL: nothing but details; details may be all zero */
	size_t details_bytes;			    /* zeroed memory of its own for each layer, taken before prepare */
	enum psd_keeps keeps;
	bool leaves_signs;
	bool keeps_diff; /* the gradient of its output outlives the iteration */
};

/* psd_layer_conv is carried out by psd_cuda_kind_conv. */
#define PSD_DECLARE_CUDA_KIND(kind) extern const struct psd_cuda_kind psd_cuda_kind_##kind;
PSD_DECLARE_CUDA_KIND(input)
PSD_CARRIED_OUT_KINDS(PSD_DECLARE_CUDA_KIND)
#undef PSD_DECLARE_CUDA_KIND

/* NULL: there is no such kind. */
const struct psd_cuda_kind *psd_cuda_find_kind(const struct psd_layer_kind *kind);

/* ---- the GPU (runtime.cu) ---- */

/* Of the device's table. */
unsigned psd_cuda_count(struct psd_error *why);
void psd_cuda_describe(const struct psd_device *device, char text[PSD_DEVICE_TEXT_MAX]);
/* Makes it the calling thread's. PSD_ERUN. */
enum psd_status psd_cuda_enter(const struct psd_device *device, struct psd_error *err) PSD_MUST_CHECK;
/* Finds it, and its streams and events. PSD_EINVAL, PSD_ERUN. */
enum psd_status psd_cuda_start(struct psd_device *device, struct psd_error *err) PSD_MUST_CHECK;
/* Releases all of it, also of what was started halfway. Nothing is under way. */
void psd_cuda_stop(struct psd_device *device);
/* CUDA's status as ours. what: "to begin a kernel" of "the GPU failed to begin a kernel". */
enum psd_status psd_cuda_check(int cuda_status, const char *what, struct psd_error *err) PSD_MUST_CHECK;
/* Zeros until stop; what: "the network's activations" of "the GPU has no room for". PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_cuda_take(struct psd_device *device, uint64_t bytes, const char *what, void **block,
			      struct psd_error *err) PSD_MUST_CHECK;
/* The same with whatever is in it. */
enum psd_status psd_cuda_take_workspace(struct psd_device *device, uint64_t bytes, const char *what, void **block,
					struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_cuda_take_host(struct psd_device *device, uint64_t bytes, void **block,
				   struct psd_error *err) PSD_MUST_CHECK;
/* Begins a copy from anywhere to anywhere, or zeros, on one of PSD_STREAMS. */
enum psd_status psd_cuda_copy(struct psd_device *device, unsigned stream, void *to, const void *from, uint64_t bytes,
			      struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_cuda_clear(struct psd_device *device, void *block, uint64_t bytes,
			       struct psd_error *err) PSD_MUST_CHECK;
/* The event is over when all before it on the stream is; what is begun on the other stream from now on follows it. */
enum psd_status psd_cuda_record(struct psd_device *device, unsigned stream, struct CUevent_st *event,
				struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_cuda_follow(struct psd_device *device, unsigned stream, struct CUevent_st *event,
				struct psd_error *err) PSD_MUST_CHECK;
/* Until all that was begun on the stream is over. */
enum psd_status psd_cuda_finish(struct psd_device *device, unsigned stream, struct psd_error *err) PSD_MUST_CHECK;
/* What the calling thread begins on PSD_STREAM_COMPUTE from here on is recorded and not carried out, until the capture
 * ends. *launchable: what begins it all, owned by the caller until psd_cuda_end_launchable(), which takes NULL; NULL:
 * nothing was begun. PSD_ERUN, as where something was begun that cannot be recorded: the capture has ended then, too.
 */
enum psd_status psd_cuda_begin_capture(struct psd_device *device, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_cuda_end_capture(struct psd_device *device, struct CUgraphExec_st **launchable,
				     struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_cuda_launch(struct psd_device *device, struct CUgraphExec_st *launchable,
				struct psd_error *err) PSD_MUST_CHECK;
void psd_cuda_end_launchable(struct CUgraphExec_st *launchable);
/* Slots of struct psd_device_kind. */
uint64_t psd_cuda_mark(struct psd_device *device, enum psd_stream stream);
enum psd_status psd_cuda_wait(struct psd_device *device, enum psd_stream stream, uint64_t mark, struct psd_error *err);
double psd_cuda_between_sec(struct psd_device *device, enum psd_stream stream, uint64_t from, uint64_t to);

/* ---- products (blas.cu) ---- */

/* result (rows, columns) = alpha op(left) op(right), all stored row by row; op transposes if so told. */
struct psd_cuda_product {
	struct psd_cuda_values left, right, result;
	uint32_t rows, columns, depth; /* depth: what is summed over */
	bool is_left_transposed, is_right_transposed;
	bool adds;
	bool is_exact; /* floats are not rounded to TF32 */
	float alpha;
};

enum psd_status psd_cuda_start_blas(struct psd_device *device, struct psd_error *err) PSD_MUST_CHECK;
void psd_cuda_stop_blas(struct psd_device *device);
/* is_rebuild: beside the network's, perhaps from another thread. */
enum psd_status psd_cuda_multiply_matrices(struct psd_device *device, const struct psd_cuda_product *product,
					   bool is_rebuild, struct psd_error *err) PSD_MUST_CHECK;

/* Products of equal shapes. Stored rows may be further apart than they are long, so that a matrix is a part of others'
 * rows. Results have no element in common. */
struct psd_cuda_products {
	struct psd_cuda_product first;
	uint32_t left_apart, right_apart, result_apart;	   /* from a stored row to the next one, in elements */
	uint64_t left_stride, right_stride, result_stride; /* from a product to the next one, in elements */
	uint32_t n;
};

enum psd_status psd_cuda_multiply_several(struct psd_device *device, const struct psd_cuda_products *products,
					  struct psd_error *err) PSD_MUST_CHECK;

/* What a product does beside itself, with a vector of floats or of the result's type. */
enum psd_cuda_epilogue {
	PSD_CUDA_ADD_VECTOR,		 /* to each row of the result; it has the result's type */
	PSD_CUDA_ADD_VECTOR_AND_RECTIFY, /* then what is below 0 becomes 0 */
	PSD_CUDA_SUM_LEFT_ROWS,		 /* it becomes the sums of op(left)'s rows; alpha is 1, the result floats */
};

/* A product whose epilogue costs it nothing, on cuBLASLt. */
struct psd_cuda_fused;

/* Chooses for good, by shapes and types. *fused is NULL where cuBLASLt has no epilogue for these, or has it with
 * another algorithm than the one it takes for the product alone: then a kernel does that work behind the product.
 * A pointer that is NULL now must be aligned to 256 bytes later. Another must keep its alignment, or
 * psd_cuda_fits_fused() is false. close takes NULL. PSD_ENOMEM, PSD_ERUN. */
enum psd_status psd_cuda_open_fused(struct psd_device *device, const struct psd_cuda_product *product,
				    enum psd_cuda_epilogue epilogue, const void *vector, struct psd_cuda_fused **fused,
				    struct psd_error *err) PSD_MUST_CHECK;
void psd_cuda_close_fused(struct psd_cuda_fused *fused);
/* Whether result and vector have the alignment of those for which it was chosen. */
bool psd_cuda_fits_fused(const struct psd_cuda_fused *fused, const struct psd_cuda_product *product,
			 const void *vector) PSD_MUST_CHECK;
/* On the compute stream. */
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
/* Of a convolution or its transpose whose shapes are known; chooses engines, and makes room for them in the device's
 * workspace. PSD_EINVAL: cuDNN has none; PSD_ENOMEM, PSD_ERUN. close takes NULL. */
enum psd_status psd_cuda_dnn_conv_open(struct psd_cuda_layer *layer, struct psd_cuda_dnn_conv **conv,
				       struct psd_error *err) PSD_MUST_CHECK;
void psd_cuda_dnn_conv_close(struct psd_cuda_dnn_conv *conv);
/* weight and dweight: of the device's type and order. */
enum psd_status psd_cuda_dnn_conv_forward(struct psd_cuda_layer *layer, struct psd_cuda_dnn_conv *conv,
					  const void *weight, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_cuda_dnn_conv_dweight(struct psd_cuda_layer *layer, struct psd_cuda_dnn_conv *conv, void *dweight,
					  struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_cuda_dnn_conv_dinput(struct psd_cuda_layer *layer, struct psd_cuda_dnn_conv *conv,
					 const void *weight, struct psd_error *err) PSD_MUST_CHECK;

/* Vectors by channel, floats; none is NULL but the running ones together. */
struct psd_cuda_norm_vectors {
	const float *gamma, *beta;
	float *running_mean, *running_variance; /* get `share` of the batch's */
	float *mean, *inverse;			/* of the batch, from forward to backward */
	float *dgamma, *dbeta;
};

enum psd_status psd_cuda_dnn_norm_open(struct psd_cuda_layer *layer, struct psd_cuda_dnn_norm **norm,
				       struct psd_error *err) PSD_MUST_CHECK;
void psd_cuda_dnn_norm_close(struct psd_cuda_dnn_norm *norm);
enum psd_status psd_cuda_dnn_norm_forward(struct psd_cuda_layer *layer, struct psd_cuda_dnn_norm *norm,
					  const struct psd_cuda_norm_vectors *vectors, double share,
					  struct psd_error *err) PSD_MUST_CHECK;
/* The input has a gradient. */
enum psd_status psd_cuda_dnn_norm_backward(struct psd_cuda_layer *layer, struct psd_cuda_dnn_norm *norm,
					   const struct psd_cuda_norm_vectors *vectors,
					   struct psd_error *err) PSD_MUST_CHECK;

/* ---- memory of the network (memory.c) ---- */

/* *slot will point to so many zeroed bytes when all layers are prepared. PSD_ENOMEM. */
enum psd_status psd_cuda_want(struct psd_device *device, uint64_t bytes, void **slot,
			      struct psd_error *err) PSD_MUST_CHECK;
/* Room for them in what all layers share. */
void psd_cuda_want_workspace(struct psd_device *device, uint64_t bytes);
void psd_cuda_want_sums(struct psd_device *device, uint64_t n_sums);
void psd_cuda_want_dweight(struct psd_device *device, uint64_t bytes);
void psd_cuda_want_ones(struct psd_device *device, uint32_t count);
enum psd_status psd_cuda_place(struct psd_device *device, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_cuda_no_memory(struct psd_error *err);

/* ---- blobs (blob.c) ---- */

const struct psd_cuda_layer *psd_cuda_below(const struct psd_cuda_layer *self, unsigned input);
struct psd_cuda_blob *psd_cuda_input(const struct psd_cuda_layer *self, unsigned input);
bool psd_cuda_may_work_in_place(const struct psd_cuda_layer *self);
/* The only reader is a rectifier, which works in place. */
bool psd_cuda_feeds_relu(const struct psd_cuda_layer *self);
float psd_cuda_slope_above(const struct psd_cuda_layer *self); /* that rectifier's, below 0 */
/* The output is a blob of its own; of an input of the network its value is not taken. PSD_EINVAL, PSD_ENOMEM. */
enum psd_status psd_cuda_declare(struct psd_cuda_layer *self, struct psd_error *err) PSD_MUST_CHECK;
void psd_cuda_declare_in_place(struct psd_cuda_layer *self);
/* Whether a reader of the blob that gives its share of the gradient now must add it. */
bool psd_cuda_share(struct psd_cuda_blob *blob);

struct psd_cuda_values psd_cuda_value(const struct psd_cuda_layer *self, const struct psd_cuda_blob *blob);
struct psd_cuda_values psd_cuda_diff(const struct psd_cuda_layer *self, const struct psd_cuda_blob *blob);
struct psd_cuda_values psd_cuda_floats(const float *data);
struct psd_cuda_maps psd_cuda_maps_of(const struct psd_cuda_layer *self);
struct psd_cuda_channel psd_cuda_channel_of(const struct psd_cuda_layer *self);
uint32_t psd_cuda_places_of(const struct psd_cuda_layer *self);	      /* of a map */
uint64_t psd_cuda_places_of_batch(const struct psd_cuda_layer *self); /* of all samples' */
/* Samples, channels, rows and columns as axes: of memory in the plain order, or of the layer's output. */
struct psd_cuda_view psd_cuda_view_plain(const struct psd_cuda_layer *self);
struct psd_cuda_view psd_cuda_view_of(const struct psd_cuda_layer *self);
/* The second axis becomes the last one. */
void psd_cuda_view_turn(struct psd_cuda_view *seen);
uint64_t psd_cuda_view_elements(const struct psd_cuda_view *seen);
/* Between views with the same axes, channels the second one; walked as the device's memory goes. */
enum psd_status psd_cuda_move_views(struct psd_cuda_layer *self, struct psd_cuda_move move,
				    struct psd_error *err) PSD_MUST_CHECK;

/* One vector of sums: outputs are channels; summand and its operands as in struct psd_cuda_sums. */
struct psd_cuda_reduction {
	struct psd_cuda_values left, right;
	enum psd_cuda_summand summand;
	const float *mean, *inverse;
	bool is_by_sample; /* outputs are channels of samples */
	bool is_over_all;  /* one output */
	struct psd_cuda_values to;
	float scale;
	bool adds;
};

/* Over maps of the layer's output. psd_cuda_want_reduction: while it is prepared. */
void psd_cuda_want_reduction(const struct psd_cuda_layer *self, const struct psd_cuda_reduction *reduction);
enum psd_status psd_cuda_reduce(const struct psd_cuda_layer *self, const struct psd_cuda_reduction *reduction,
				struct psd_error *err) PSD_MUST_CHECK;
/* to (columns) = scale times column sums of (rows, columns); partial: PSD_CUDA_SUMS_MOST floats. */
enum psd_status psd_cuda_sum_columns(struct psd_device *device, struct psd_cuda_values from, uint32_t rows,
				     uint32_t columns, float *partial, float *to, float scale,
				     struct psd_error *err) PSD_MUST_CHECK;

/* ---- layers that begin together (graphs.c) ---- */

/* Slot of struct psd_device_kind. */
enum psd_status psd_cuda_pass(struct psd_device *device, const struct psd_pass *pass, struct psd_error *err);
/* One layer, call by call. (cuda.c) */
enum psd_status psd_cuda_begin_layer(struct psd_cuda_layer *layer, bool is_backward,
				     struct psd_error *err) PSD_MUST_CHECK;
/* Nothing of it is under way. */
void psd_cuda_end_graphs(struct psd_device *device, struct psd_cuda_layer *layer);
/* Slot of struct psd_device_kind. */
bool psd_cuda_detour(const struct psd_device *device, struct psd_error *how);

/* ---- kinds ---- */

/* The images of the iteration's slot are the input's. (input.c) */
void psd_cuda_show_images(struct psd_device *device);
/* A summand for each channel, unless NULL, and the rectifier that the layer does the work of, in place. (affine.c) */
enum psd_status psd_cuda_add_bias(struct psd_cuda_layer *self, const float *bias, struct psd_error *err) PSD_MUST_CHECK;
enum psd_status psd_cuda_keep_factors(struct psd_device *device, unsigned layer, const struct psd_factors *kept,
				      struct psd_error *err);
enum psd_status psd_cuda_rebuild(struct psd_device *device, const struct psd_factors *factors, uint32_t samples,
				 uint32_t rows, uint32_t columns, float *gradient, float *bias_gradient,
				 struct psd_error *err);
double psd_cuda_loss_of(const struct psd_cuda_layer *layer);
uint32_t psd_cuda_correct_of(const struct psd_cuda_layer *layer);

/* ---- parameters (parameters.c): slots of struct psd_device_kind ---- */

enum psd_status psd_cuda_measure(struct psd_device *device, const float *values, uint64_t elements, double *square,
				 struct psd_error *err);
enum psd_status psd_cuda_find_clip(struct psd_device *device, const struct psd_clip *clip, struct psd_error *err);
enum psd_status psd_cuda_shrink(struct psd_device *device, float *values, uint64_t elements, const float *ratio,
				struct psd_error *err);
enum psd_status psd_cuda_apply(struct psd_device *device, const struct psd_update *update, float *weight,
			       const float *gradient, struct psd_moments moments, uint64_t elements,
			       struct psd_error *err);
enum psd_status psd_cuda_drift(struct psd_device *device, const struct psd_drift *drift, struct psd_error *err);
enum psd_status psd_cuda_convert_wire(struct psd_device *device, const struct psd_conversion *conversion,
				      struct psd_error *err);
enum psd_status psd_cuda_spoil_wire(struct psd_device *device, const struct psd_encoding *encoding, uint16_t *values,
				    uint64_t elements, bool in_any_case, struct psd_error *err);
enum psd_status psd_cuda_gather_chunks(struct psd_device *device, const struct psd_chunks *chunks,
				       struct psd_error *err);
enum psd_status psd_cuda_update_chunks(struct psd_device *device, const struct psd_chunks *chunks,
				       struct psd_error *err);

/* ---- what travels compressed (packing.c): slots of struct psd_device_kind ---- */

enum psd_status psd_cuda_pack(struct psd_device *device, const struct psd_packing *packing, struct psd_error *err);
enum psd_status psd_cuda_unpack(struct psd_device *device, const struct psd_packing *packing, struct psd_error *err);

/* ---- narrow matrices (low_rank.c): slots of struct psd_device_kind ---- */

enum psd_status psd_cuda_project(struct psd_device *device, const struct psd_low_rank_work *work,
				 struct psd_error *err);
enum psd_status psd_cuda_fit(struct psd_device *device, const struct psd_low_rank_work *work, struct psd_error *err);
enum psd_status psd_cuda_expand(struct psd_device *device, const struct psd_low_rank_work *work, struct psd_error *err);

/* ---- sums between GPUs (nccl.c) ---- */

extern const struct psd_library_kind *const psd_cuda_libraries[]; /* NULL is last */

#ifdef __cplusplus
}
#endif

#endif
