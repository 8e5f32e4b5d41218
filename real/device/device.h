/* Executes a host's operations on tensors: a network's layers, gradients rebuilt from factors, updates, copies. Each
 * kind of device is a table of functions (struct psd_device_kind): `cpu` (oneDNN), `cuda` (cuBLAS, cuDNN) and `idle`
 * (computes nothing). The caller owns the tensors, so communication reads and writes the same bytes. A device with
 * memory of its own works on memory that its take() returned. One thread at a time calls a device, except where the
 * comment of a function says otherwise. Equal input gives equal bits, unless may_differ is set. Refuses to know
 * programs, methods and messages. */
#ifndef PSD_REAL_DEVICE_H
#define PSD_REAL_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/encodings/encoding.h"
#include "engine/model/graph.h"
#include "engine/scenario/train.h"
#include "real/device/chunks.h"
#include "real/device/low_rank.h"
#include "real/device/packing.h"
#include "real/device/update.h"
#include "real/library/library.h"

struct psd_device_options {
	unsigned n_threads; /* number of processor threads that execute a call, >= 1 */
	/* number of the device among the machine's devices of this kind, from 0; larger numbers are taken modulo their
	 * count */
	unsigned number;
	/* number format in which layers compute, see psd_device_kind.has_fp32_alone */
	enum psd_layer_arithmetic arithmetic;
	bool is_without_graphs; /* launch each layer by itself, never several as a recorded CUDA graph */
	bool may_differ;	/* faster algorithms are allowed whose results differ in bits from run to run */
};

struct psd_network_options {
	uint32_t batch; /* number of samples that this worker computes per iteration */
	uint64_t seed;	/* seed for dropout masks */
	/* Divisor of the sum of losses: the global batch size, so that a sum over workers is the mean. */
	double loss_divisor;
};

/* Samples of one iteration, in the host's memory. images: (batch, channels, height, width) floats; labels: class
 * numbers, (batch, graph->labels). Borrowed until the iteration's last backward has ended. first_sample: number of this
 * worker's first sample among the samples of all workers in this iteration. Dropout masks depend on seed, iteration,
 * number of the sample and layer, but not on the worker. */
struct psd_batch {
	const float *images;
	const int32_t *labels;
	/* addresses to which backward writes gradients, one per tensor as in load(); NULL: the addresses of the
	 * previous batch */
	float *const *gradients;
	uint64_t iteration;
	uint64_t first_sample;
	bool is_training; /* false: no dropout, batch norm uses running statistics, no backward follows */
	bool is_fetched;  /* fetch() was called for this batch, and for no other batch since */
};

/* Factors of a linear layer with N outputs and M inputs. Its weight gradient, shape (N, M), is top_diff^T times
 * bottom. */
struct psd_factors {
	float *top_diff; /* gradient of the layer's output; shape (batch, N) */
	float *bottom;	 /* input of the layer; shape (batch, M) */
};

/* Conversion to[i] = ratio * from[i], either from float to a lossy encoding or from the encoding to float. */
struct psd_conversion {
	const struct psd_encoding *encoding;
	void *to;
	const void *from;
	uint64_t elements;
	float ratio;
	bool is_decoding; /* decode `from`; false: encode it */
};

/* Streams: queues of work, as in CUDA. Work on one stream executes in order, work on two streams may overlap. */
enum psd_stream {
	PSD_STREAM_COMPUTE,
	PSD_STREAM_COPY_OUT,
	PSD_STREAM_COPY_IN,
	PSD_STREAM_SAMPLES,
	PSD_STREAM_SUMS,
	PSD_STREAMS
};

/* Pass over layers first to end - 1: forward in that order, or backward in reverse order. */
struct psd_pass {
	unsigned first, end;
	bool is_backward;
};

struct psd_device;

enum { PSD_DEVICE_TEXT_MAX = 160 }; /* bytes of a text of psd_device_kind.describe, with the terminating zero */

/* ---- types of functions in struct psd_device_kind, whose comment says when work that they begin has ended ---- */

/* Begins to copy the factors of a linear layer, as its last backward left them, to the arrays of `kept`. */
typedef enum psd_status psd_device_factors_fn(struct psd_device *device, unsigned layer, const struct psd_factors *kept,
					      struct psd_error *err);
/* Begins to rebuild a linear layer's gradient from the factors of `samples` samples of all workers. gradient, shape
 * (columns, rows), becomes top_diff^T times bottom; bias_gradient, length columns, becomes the column sums of top_diff,
 * unless it is NULL. No network need be loaded. May be called from a second thread, for one layer at a time. */
typedef enum psd_status psd_device_rebuild_fn(struct psd_device *device, const struct psd_factors *factors,
					      uint32_t samples, uint32_t rows, uint32_t columns, float *gradient,
					      float *bias_gradient, struct psd_error *err);
/* Begins to update a whole tensor: psd_update_by_norms(), then psd_update_apply(). */
typedef enum psd_status psd_device_apply_fn(struct psd_device *device, const struct psd_update *update, float *weight,
					    const float *gradient, struct psd_moments moments, uint64_t elements,
					    struct psd_error *err);
/* Begins to set *square to psd_clip_measure() of the values. `square` is in the device's memory. */
typedef enum psd_status psd_device_measure_fn(struct psd_device *device, const float *values, uint64_t elements,
					      double *square, struct psd_error *err);
/* Begins psd_clip_find(). The arrays of `clip` are in the device's memory. */
typedef enum psd_status psd_device_clip_fn(struct psd_device *device, const struct psd_clip *clip,
					   struct psd_error *err);
/* Begins psd_clip_shrink() by *ratio, which is in the device's memory. */
typedef enum psd_status psd_device_shrink_fn(struct psd_device *device, float *values, uint64_t elements,
					     const float *ratio, struct psd_error *err);
/* Begins psd_drift_take_step(). */
typedef enum psd_status psd_device_drift_fn(struct psd_device *device, const struct psd_drift *drift,
					    struct psd_error *err);
/* Begins to encode or decode values in the device's memory, as psd_values_encode() or psd_values_decode(). */
typedef enum psd_status psd_device_convert_fn(struct psd_device *device, const struct psd_conversion *conversion,
					      struct psd_error *err);
/* Begins to overwrite all encoded values by NaN if one of them is an infinity or NaN, or if is_forced is true. So one
 * overflow makes the whole sum invalid on all workers. */
typedef enum psd_status psd_device_spoil_fn(struct psd_device *device, const struct psd_encoding *encoding,
					    uint16_t *values, uint64_t elements, bool is_forced, struct psd_error *err);
/* Begins psd_chunks_gather() or psd_chunks_apply(). */
typedef enum psd_status psd_device_chunks_fn(struct psd_device *device, const struct psd_chunks *chunks,
					     struct psd_error *err);
/* Begins psd_packing_pack() or psd_packing_unpack(). Results have equal bits on all devices, except NaNs. */
typedef enum psd_status psd_device_packing_fn(struct psd_device *device, const struct psd_packing *packing,
					      struct psd_error *err);
/* Begins psd_low_rank_project(), psd_low_rank_fit() or psd_low_rank_expand(). */
typedef enum psd_status psd_device_low_rank_fn(struct psd_device *device, const struct psd_low_rank_work *work,
					       struct psd_error *err);

/* Functions of a kind of device. All except count and open need an open device. A function that "begins" work returns
 * before the work has ended if is_asynchronous is true: mark() and wait() tell when it has ended, and the caller leaves
 * all arguments unchanged until then. If is_asynchronous is false, the work has ended on return. Functions without a
 * stream argument use PSD_STREAM_COMPUTE. Before work that needs results of another stream, the caller waits for that
 * stream. PSD_ERUN: the device has failed, perhaps in earlier work. */
struct psd_device_kind {
	const char *name;
	/* Returns the number of such devices in this machine; if 0, *why says what is missing, for example a driver.
	 * The process may fork after this call. */
	unsigned (*count)(struct psd_error *why);
	/* open() accepts only fp32 arithmetic; false: open() refuses the formats that the device lacks */
	bool has_fp32_alone;
	bool has_own_memory; /* false: tensors are in the host's memory, and take, take_host, copy, fetch are NULL */
	/* Array, ended by NULL, of the libraries (such as NCCL) that execute all-reduces in the memory of these
	 * devices. NULL: there are none. */
	const struct psd_library_kind *const *libraries;
	bool is_asynchronous; /* false: mark, wait and between_sec are NULL */
	/* Opens a device; the caller owns it until close(). PSD_EINVAL: no such device, or it lacks the arithmetic;
	 * PSD_ENOMEM, PSD_ERUN. */
	enum psd_status (*open)(struct psd_device **device, const struct psd_device_options *options,
				struct psd_error *err);
	void (*close)(struct psd_device *device); /* waits for work in progress, then closes; NULL is allowed */

	/* ---- memory: filled with zeros, aligned to at least 64 bytes, valid until close ---- */

	/* Allocates device memory. PSD_ENOMEM; the text names the bytes requested and the bytes free. */
	enum psd_status (*take)(struct psd_device *device, uint64_t bytes, void **block, struct psd_error *err);
	/* Allocates host memory for copies at full speed (pinned memory). */
	enum psd_status (*take_host)(struct psd_device *device, uint64_t bytes, void **block, struct psd_error *err);
	/* Begins a copy between the host's and the device's memory. Any thread, one for each stream. */
	enum psd_status (*copy)(struct psd_device *device, enum psd_stream stream, void *to, const void *from,
				uint64_t bytes, struct psd_error *err);

	/* ---- the network: a device loads one network, once ---- */

	/* Loads a network. parameters and gradients: one float pointer for each tensor of the graph, in the tensor's
	 * plain layout (conv weight: outputs, inputs / groups, height, width; linear weight: N outputs, M inputs;
	 * vectors). They are the caller's, valid until close, aligned to 64 bytes. The gradient of a linear layer may
	 * be NULL: then it is not computed, because factors of all workers will give it. PSD_EINVAL: the device cannot
	 * execute a layer (named); PSD_ENOMEM. */
	enum psd_status (*load)(struct psd_device *device, const struct psd_graph *graph,
				const struct psd_network_options *options, float *const parameters[],
				float *const gradients[], struct psd_error *err);
	/* Begins to copy the samples of a later iteration on PSD_STREAM_SAMPLES, so that the begin() of that iteration
	 * does not copy them. The samples are in memory of take_host() and stay unchanged until the copy has ended. At
	 * most one fetched batch may wait for its begin(); other batches, for example of a test, may begin before it.
	 * NULL: only begin() copies samples. */
	enum psd_status (*fetch)(struct psd_device *device, const struct psd_batch *batch, struct psd_error *err);
	/* Begins an iteration: sets the batch for forward and backward. */
	enum psd_status (*begin)(struct psd_device *device, const struct psd_batch *batch, struct psd_error *err);
	/* Begins the forward pass of one layer; the caller goes through layers in order. */
	enum psd_status (*forward)(struct psd_device *device, unsigned layer, struct psd_error *err);
	/* Begins the backward pass of one layer; the caller goes through layers in reverse order. The layer's gradients
	 * are final when this work has ended. */
	enum psd_status (*backward)(struct psd_device *device, unsigned layer, struct psd_error *err);
	/* Begins forward or backward of several layers at once, with fewer calls of the device. NULL if that saves
	 * nothing. */
	enum psd_status (*pass)(struct psd_device *device, const struct psd_pass *pass, struct psd_error *err);
	/* Returns the sum of the losses of the batch's samples, divided by loss_divisor. The loss of a sample is the
	 * mean over its positions. Called after the last forward has ended. */
	double (*loss)(const struct psd_device *device);
	/* Returns the number of positions of the batch whose likeliest class is the label. Called after the last
	 * forward has ended. */
	uint32_t (*correct)(const struct psd_device *device);
	psd_device_factors_fn *keep_factors;
	psd_device_rebuild_fn *rebuild;
	/* Reads the state graph->states[state], such as a running mean of batch norm, to `values` in the host's memory.
	 * Called between iterations; waits for the copy. States start with the graph's values. */
	enum psd_status (*read_state)(struct psd_device *device, unsigned state, float *values, struct psd_error *err);
	/* Overwrites the state graph->states[state] by `values` in the host's memory. Called between iterations; waits
	 * for the copy. */
	enum psd_status (*write_state)(struct psd_device *device, unsigned state, const float *values,
				       struct psd_error *err);
	/* Writes the names of the device and its libraries as one line of text, for the head of an output file. */
	void (*describe)(const struct psd_device *device, char text[PSD_DEVICE_TEXT_MAX]);
	/* True if the device computes in a slower way than intended, with the same results; then *how says in which way
	 * and why. NULL: it never does. */
	bool (*detour)(const struct psd_device *device, struct psd_error *how);
	/* bytes of device memory in use, without those of take() */
	uint64_t (*memory_bytes)(const struct psd_device *device);

	/* ---- parameters ---- */

	psd_device_apply_fn *apply;
	psd_device_measure_fn *measure;
	psd_device_clip_fn *find_clip;
	psd_device_shrink_fn *shrink;
	psd_device_drift_fn *drift;
	psd_device_convert_fn *convert;
	psd_device_spoil_fn *spoil;
	psd_device_chunks_fn *gather, *apply_chunks;
	psd_device_packing_fn *pack, *unpack;
	psd_device_low_rank_fn *project, *fit, *expand;

	/* ---- end of work ---- */

	/* Puts a mark behind all work begun on the stream so far, and returns its number. The last PSD_MOST_MARKS marks
	 * of a stream are valid. */
	uint64_t (*mark)(struct psd_device *device, enum psd_stream stream);
	/* Waits until all work before the mark has ended. Any thread, but for each stream one thread at a time, with
	 * increasing marks. */
	enum psd_status (*wait)(struct psd_device *device, enum psd_stream stream, uint64_t mark,
				struct psd_error *err);
	/* Seconds between two valid marks of a stream, by the device's clock. Both must have been waited for. */
	double (*between_sec)(struct psd_device *device, enum psd_stream stream, uint64_t from, uint64_t to);
};

enum { PSD_MOST_MARKS = 4096 }; /* number of marks of a stream that are valid at a time */

/* Functions for devices that work in the host's memory, on the processor. */
psd_device_apply_fn psd_device_apply_here;
psd_device_measure_fn psd_device_measure_here;
psd_device_clip_fn psd_device_find_clip_here;
psd_device_shrink_fn psd_device_shrink_here;
psd_device_drift_fn psd_device_drift_here;
psd_device_convert_fn psd_device_convert_here;
psd_device_spoil_fn psd_device_spoil_here;
psd_device_chunks_fn psd_device_gather_here, psd_device_apply_chunks_here;
psd_device_packing_fn psd_device_pack_here, psd_device_unpack_here;
psd_device_low_rank_fn psd_device_project_here, psd_device_fit_here, psd_device_expand_here;

#define PSD_DEVICE_SLOTS_HERE                                                                                          \
	.apply = psd_device_apply_here, .measure = psd_device_measure_here, .find_clip = psd_device_find_clip_here,    \
	.shrink = psd_device_shrink_here, .drift = psd_device_drift_here, .convert = psd_device_convert_here,          \
	.spoil = psd_device_spoil_here, .gather = psd_device_gather_here,                                              \
	.apply_chunks = psd_device_apply_chunks_here, .pack = psd_device_pack_here, .unpack = psd_device_unpack_here,  \
	.project = psd_device_project_here, .fit = psd_device_fit_here, .expand = psd_device_expand_here

/* Sets *kind to the kind of device that `train.device` chooses; for `auto` the best kind that the machine has. at:
 * place of the key in the scenario, for errors. PSD_EINVAL: this program was built without that kind; PSD_ERUN: the
 * machine has no such device. */
enum psd_status psd_device_choose(const struct psd_device_kind **kind, enum psd_device_choice choice,
				  struct psd_place at, struct psd_error *err) PSD_MUST_CHECK;

extern const struct psd_device_kind psd_device_cpu;
extern const struct psd_device_kind psd_device_cuda; /* executes on NVIDIA GPUs; only with PSD_HAS_CUDA */
/* Device that computes nothing, to measure only communication: gradients stay zero, losses are 0. It has no factors of
 * linear layers, so it cannot be used with methods that send factors. */
extern const struct psd_device_kind psd_device_idle;

#endif
