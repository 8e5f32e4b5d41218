/* Executes a host's operations on tensors: a network's layers, rebuilds, updates, copies. Each device is a table of
 * functions and a row in device.c: cpu (oneDNN), cuda (cuBLAS, cuDNN), idle. The caller owns the tensors, so
 * communication reads and writes the same bytes. A device with memory of its own works on blocks that its take()
 * returned. One thread at a time calls a device, except where a slot says otherwise. Equal input gives equal bits,
 * unless may_differ is set. Refuses to know programs, methods and messages. */
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
	unsigned n_threads; /* number of processor threads in a call, >= 1 */
	unsigned number;    /* number among the machine's devices of this kind, from 0; modulo their count */
	enum psd_layer_arithmetic arithmetic; /* arithmetic of the layers, see has_fp32_alone */
	bool is_without_graphs;		      /* launch layers one by one, never as a recorded CUDA graph */
	bool may_differ; /* faster algorithms are allowed whose results differ in bits from run to run */
};

struct psd_network_options {
	uint32_t batch; /* number of samples that this worker computes per iteration */
	uint64_t seed;	/* seed for dropout masks */
	/* Divisor of the sum of losses: the global batch size, so that a sum over workers is the mean. */
	double loss_divisor;
};

/* Samples of one iteration, in the host's memory. images: (batch, channels, height, width) floats; labels: class
 * numbers, (batch, graph->labels). Borrowed until the iteration's last backward has ended. first_sample: number of the
 * first sample among those of all workers in this iteration. So dropout masks depend on seed, iteration, sample and
 * layer, but not on the worker. */
struct psd_batch {
	const float *images;
	const int32_t *labels;
	float *const *gradients; /* addresses for the gradients, as in load(); NULL: those of the previous batch */
	uint64_t iteration;
	uint64_t first_sample;
	bool is_training; /* false: no dropout, batch norm uses running statistics, no backward follows */
	bool is_fetched;  /* fetch() has copied these images and labels, and no later batch */
};

/* Factors of a linear layer, which give its weight gradient (N, M) = top_diff^T bottom. */
struct psd_factors {
	float *top_diff; /* gradient of the layer's output; shape (batch, columns N) */
	float *bottom;	 /* input of the layer; shape (batch, rows M) */
};

/* Conversion to[i] = ratio * from[i]: encodes floats (with loss), or decodes to floats. */
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

/* Layers of a pass, first to end - 1: forward in order, backward in reverse order. */
struct psd_pass {
	unsigned first, end;
	bool is_backward;
};

struct psd_device;

enum { PSD_DEVICE_TEXT_MAX = 160 };

/* ---- functions of several devices: slots of struct psd_device_kind, which says when their work is over ---- */

/* Begins to copy the factors of a linear layer's last backward. */
typedef enum psd_status psd_device_factors_fn(struct psd_device *device, unsigned layer, const struct psd_factors *kept,
					      struct psd_error *err);
/* Begins the rebuild of gradient (N, M) = top_diff^T bottom from `samples` samples, those of all workers; bias_gradient
 * (N) = column sums of top_diff, unless NULL. Overwrites both. Needs no load(). May be called from a second thread, for
 * one layer at a time. */
typedef enum psd_status psd_device_rebuild_fn(struct psd_device *device, const struct psd_factors *factors,
					      uint32_t samples, uint32_t rows, uint32_t columns, float *gradient,
					      float *bias_gradient, struct psd_error *err);
/* Begins psd_update_apply() of a whole tensor, after psd_update_by_norms(). */
typedef enum psd_status psd_device_apply_fn(struct psd_device *device, const struct psd_update *update, float *weight,
					    const float *gradient, struct psd_moments moments, uint64_t elements,
					    struct psd_error *err);
/* Begin *square = psd_clip_measure(), psd_clip_find(), and psd_clip_shrink() by *ratio. Squares and the ratio are in the
 * device's memory. */
typedef enum psd_status psd_device_measure_fn(struct psd_device *device, const float *values, uint64_t elements,
					      double *square, struct psd_error *err);
typedef enum psd_status psd_device_clip_fn(struct psd_device *device, const struct psd_clip *clip,
					   struct psd_error *err);
typedef enum psd_status psd_device_shrink_fn(struct psd_device *device, float *values, uint64_t elements,
					     const float *ratio, struct psd_error *err);
/* Begins psd_drift_take_step(). */
typedef enum psd_status psd_device_drift_fn(struct psd_device *device, const struct psd_drift *drift,
					    struct psd_error *err);
/* Begins psd_values_encode() or psd_values_decode() in the device's memory. */
typedef enum psd_status psd_device_convert_fn(struct psd_device *device, const struct psd_conversion *conversion,
					      struct psd_error *err);
/* Begins to overwrite all encoded values by NaN if one of them is an infinity or NaN, or if is_forced. */
typedef enum psd_status psd_device_spoil_fn(struct psd_device *device, const struct psd_encoding *encoding,
					    uint16_t *values, uint64_t elements, bool is_forced, struct psd_error *err);
/* Begin psd_chunks_gather() and psd_chunks_apply(). */
typedef enum psd_status psd_device_chunks_fn(struct psd_device *device, const struct psd_chunks *chunks,
					     struct psd_error *err);
/* Begin psd_packing_pack() and psd_packing_unpack(). Bits are equal on all devices, except those of NaNs. */
typedef enum psd_status psd_device_packing_fn(struct psd_device *device, const struct psd_packing *packing,
					      struct psd_error *err);
/* Begin psd_low_rank_project(), psd_low_rank_fit() and psd_low_rank_expand(). */
typedef enum psd_status psd_device_low_rank_fn(struct psd_device *device, const struct psd_low_rank_work *work,
					       struct psd_error *err);

/* Every slot except count and open needs an open device. A slot that "begins" work returns early on an asynchronous
 * device: mark() and wait() tell when the work has ended, and its arguments stay unchanged until then. On other devices
 * the work has ended on return. Slots without a stream use PSD_STREAM_COMPUTE. Before work that needs results of
 * another stream, the caller waits for them. PSD_ERUN: the device has failed, perhaps in earlier work. */
struct psd_device_kind {
	const char *name;
	/* Number of these devices in this machine; if 0, *why says what is missing, for example a driver. The process
	 * may fork afterwards. */
	unsigned (*count)(struct psd_error *why);
	bool has_fp32_alone; /* open() accepts fp32 arithmetic only; false: open() decides */
	bool has_own_memory; /* false: tensors are in the host's memory, and take, take_host, copy, fetch are NULL */
	/* Collective libraries that sum in the memory of these devices; ends with NULL. NULL if there are none. */
	const struct psd_library_kind *const *libraries;
	bool is_asynchronous; /* false: mark, wait and between_sec are NULL */
	/* Opens a device; the caller owns it until close(). PSD_EINVAL: no such device, or it lacks the arithmetic;
	 * PSD_ENOMEM, PSD_ERUN. */
	enum psd_status (*open)(struct psd_device **device, const struct psd_device_options *options,
				struct psd_error *err);
	void (*close)(struct psd_device *device); /* waits for work in progress, then closes; NULL is allowed */

	/* ---- memory: zeros, aligned to 64 bytes at least, until close ---- */

	/* Allocates device memory. PSD_ENOMEM; the text names the bytes requested and the bytes free. */
	enum psd_status (*take)(struct psd_device *device, uint64_t bytes, void **block, struct psd_error *err);
	/* Allocates host memory for copies at full speed (pinned memory). */
	enum psd_status (*take_host)(struct psd_device *device, uint64_t bytes, void **block, struct psd_error *err);
	/* Begins a copy between the host's and the device's memory. Any thread, one for each stream. */
	enum psd_status (*copy)(struct psd_device *device, enum psd_stream stream, void *to, const void *from,
				uint64_t bytes, struct psd_error *err);

	/* ---- a network: one, once ---- */

	/* Loads a network. parameters and gradients: one float pointer for each tensor of the graph, in the tensor's
	 * plain layout (conv weight: outputs, inputs / groups, height, width; linear weight: N outputs, M inputs;
	 * vectors). They are the caller's, valid until close, aligned to 64 bytes. The gradient of a linear layer may
	 * be NULL: then it is not computed, because factors of all workers will give it. PSD_EINVAL: the device cannot
	 * execute a layer (named); PSD_ENOMEM. */
	enum psd_status (*load)(struct psd_device *device, const struct psd_graph *graph,
				const struct psd_network_options *options, float *const parameters[],
				float *const gradients[], struct psd_error *err);
	/* Begins to copy the samples of a later iteration on PSD_STREAM_SAMPLES, so that its begin() need not. They lie
	 * in memory of take_host() and stay unchanged until the copy has ended. At most one fetched batch waits for its
	 * begin(); other batches, as of a test, may begin meanwhile. NULL: begin() copies. */
	enum psd_status (*fetch)(struct psd_device *device, const struct psd_batch *batch, struct psd_error *err);
	/* Begins an iteration: sets the batch for forward and backward. */
	enum psd_status (*begin)(struct psd_device *device, const struct psd_batch *batch, struct psd_error *err);
	/* Begins one layer's forward; the caller goes through layers in order. */
	enum psd_status (*forward)(struct psd_device *device, unsigned layer, struct psd_error *err);
	/* Begins one layer's backward; the caller goes through layers in reverse order. The layer's gradients are final
	 * when it has ended. */
	enum psd_status (*backward)(struct psd_device *device, unsigned layer, struct psd_error *err);
	/* Begins forward or backward of several layers at once, with fewer calls of the device. NULL if that saves
	 * nothing. */
	enum psd_status (*pass)(struct psd_device *device, const struct psd_pass *pass, struct psd_error *err);
	/* Returns the sum of the batch's losses / loss_divisor, a sample's loss being the mean over its positions.
	 * Next: number of positions whose likeliest class is the label. Both after the last forward has ended. */
	double (*loss)(const struct psd_device *device);
	uint32_t (*correct)(const struct psd_device *device);
	psd_device_factors_fn *keep_factors;
	psd_device_rebuild_fn *rebuild;
	/* Read or write graph->states[state], such as batch norm's running statistics, in the host's memory. Between
	 * iterations only. They start with the graph's values. Both calls wait. */
	enum psd_status (*read_state)(struct psd_device *device, unsigned state, float *values, struct psd_error *err);
	enum psd_status (*write_state)(struct psd_device *device, unsigned state, const float *values,
				       struct psd_error *err);
	/* Writes device and libraries in one line, for the head of a file. */
	void (*describe)(const struct psd_device *device, char text[PSD_DEVICE_TEXT_MAX]);
	/* True if the device uses a slower method than intended, with the same results; *how names it and the reason.
	 * NULL: never. */
	bool (*detour)(const struct psd_device *device, struct psd_error *how);
	uint64_t (*memory_bytes)(const struct psd_device *device); /* bytes in use, without the blocks of take() */

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

	/* ---- when work is over ---- */

	/* Puts a mark behind the stream's work so far. The last PSD_MOST_MARKS marks of a stream are valid. */
	uint64_t (*mark)(struct psd_device *device, enum psd_stream stream);
	/* Waits for all work before the mark. Any thread, one for a stream at a time, marks in order. */
	enum psd_status (*wait)(struct psd_device *device, enum psd_stream stream, uint64_t mark,
				struct psd_error *err);
	/* Seconds between two valid marks of a stream, by the device's clock. Both must have been waited for. */
	double (*between_sec)(struct psd_device *device, enum psd_stream stream, uint64_t from, uint64_t to);
};

enum { PSD_MOST_MARKS = 4096 };

/* Slots of devices that work in the host's memory, on the processor. */
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

/* Device kind that a training job chooses, at `at` in its scenario; with `auto` the best that the machine has.
 * PSD_EINVAL: this program was built without it; PSD_ERUN: the machine has none. */
enum psd_status psd_device_choose(const struct psd_device_kind **kind, enum psd_device_choice choice,
				  struct psd_place at, struct psd_error *err) PSD_MUST_CHECK;

extern const struct psd_device_kind psd_device_cpu;
extern const struct psd_device_kind psd_device_cuda; /* executes on NVIDIA GPUs; only with PSD_HAS_CUDA */
/* Device that computes nothing, to measure everything else: gradients stay zero, losses are 0. It has no factors: only
 * for plans of dense tensors. */
extern const struct psd_device_kind psd_device_idle;

#endif
