/* Executes a host's operations on tensors: the layers of a network, computation of gradients from factors, updates,
 * copies. Each kind of device is a table of functions (struct psd_device_kind): `cpu` (oneDNN), `cuda` (cuBLAS, cuDNN)
 * and `idle` (computes nothing). The caller owns the tensors, so communication reads and writes the same bytes as the
 * device. A device with its own memory uses only memory that its take() returned. Only one thread at a time may call a
 * device, except where the comment of a function says otherwise. Equal input gives equal bits, unless may_differ is
 * set. Devices know no programs, methods or messages. */
#ifndef PSD_REAL_DEVICE_H
#define PSD_REAL_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/encodings/encoding.h"
#include "engine/model/graph.h"
#include "engine/scenario/train.h"
#include "real/device/kernels.h"
#include "real/library/library.h"

struct psd_device_options {
	unsigned n_threads; /* number of processor threads that execute a call, >= 1 */
	/* Number of the device among the machine's devices of this kind, from 0. A number that is too large is taken
	 * modulo the number of devices. */
	unsigned number;
	/* number format in which layers compute; only fp32 is allowed if psd_device_kind.has_fp32_alone */
	enum psd_layer_arithmetic arithmetic;
	/* Start each layer by a separate call; false: several layers may be recorded and started as one CUDA graph. */
	bool is_without_graphs;
	/* Algorithms are allowed that are faster, but whose results differ in some bits from run to run. */
	bool may_differ;
};

struct psd_network_options {
	uint32_t batch; /* number of samples that this worker computes per iteration */
	uint64_t seed;	/* seed for dropout masks */
	/* Divisor of the sum of losses: the number of samples of all workers in an iteration. So the sum of the
	 * workers' results is the mean loss. */
	double loss_divisor;
};

/* Samples of one iteration, in the host's memory. images: floats, shape (batch, channels, height, width); labels: class
 * numbers, shape (batch, graph->labels). Both must stay valid until the last backward pass of the iteration has ended.
 * first_sample: number of this worker's first sample among the samples of all workers in this iteration. Dropout masks
 * depend on the seed, the iteration, the number of the sample and the layer, but not on the worker. */
struct psd_batch {
	const float *images;
	const int32_t *labels;
	/* Addresses to which backward passes write gradients, one for each tensor in the order of load(). NULL: the
	 * same addresses as for the previous batch. */
	float *const *gradients;
	uint64_t iteration;
	uint64_t first_sample;
	/* False: no dropout, batch norm uses its running statistics, and no backward pass follows. */
	bool is_training;
	bool is_fetched; /* fetch() was called for this batch, and has not been called for another batch since */
};

/* Factors of a linear layer with N outputs and M inputs. Its weight gradient, shape (N, M), is top_diff^T times
 * bottom. */
struct psd_factors {
	float *top_diff; /* gradient of the layer's output; shape (batch, N) */
	float *bottom;	 /* input of the layer; shape (batch, M) */
};

/* Streams: queues of work, as in CUDA. The work on one stream is executed in order. Work on different streams may
 * overlap. */
enum psd_stream {
	PSD_STREAM_COMPUTE,
	PSD_STREAM_COPY_OUT,
	PSD_STREAM_COPY_IN,
	PSD_STREAM_SAMPLES,
	PSD_STREAM_SUMS,
	PSD_STREAMS
};

/* Pass over the layers `first` to end - 1. Forward executes them in this order, backward in reverse order. */
struct psd_pass {
	unsigned first, end;
	bool is_backward;
};

/* Size of a text of psd_device_kind.describe, bytes, including the terminating zero. */
enum { PSD_DEVICE_TEXT_MAX = 160 };

/* ---- types of functions in struct psd_device_kind. A function that "begins" work may return before the work has
 * ended; see the comment of the struct. ---- */

/* Begins to copy the factors of a linear layer to the arrays of `kept`. They are the factors of the layer's last
 * backward pass. */
typedef enum psd_status psd_device_factors_fn(struct psd_device *device, unsigned layer, const struct psd_factors *kept,
					      struct psd_error *err);
/* Begins to compute a linear layer's gradient from factors, in which `samples` is the number of samples of all workers.
 * gradient, shape (columns, rows), becomes top_diff^T times bottom. bias_gradient, shape (columns), becomes the column
 * sums of top_diff; NULL: not computed. It does not need a loaded network. A second thread may call it, for one layer
 * at a time. */
typedef enum psd_status psd_device_rebuild_fn(struct psd_device *device, const struct psd_factors *factors,
					      uint32_t samples, uint32_t rows, uint32_t columns, float *gradient,
					      float *bias_gradient, struct psd_error *err);
/* Functions of a kind of device. All except count() and open() need an open device. If is_asynchronous is true, a
 * function that "begins" work returns before the work has ended. Then mark() and wait() show when it has ended, and
 * until then the caller must not change the arguments. If is_asynchronous is false, the work has ended when the
 * function returns. Functions without a stream argument use PSD_STREAM_COMPUTE. Before work that needs results of
 * another stream, the caller must wait for that stream. PSD_ERUN: the device has failed, perhaps in earlier work. */
struct psd_device_kind {
	const char *name;
	/* Returns the number of devices of this kind in this machine. If it is 0, *why has the reason, for example a
	 * missing driver. The process may fork after this call. */
	unsigned (*count)(struct psd_error *why);
	/* open() accepts only fp32 arithmetic; false: open() accepts all formats that the opened device supports */
	bool has_fp32_alone;
	/* Does the work that each process would do at its first computation, for the processes that fork later. NULL:
	 * there is none. */
	void (*prepare_forks)(void);
	/* False: tensors are in the host's memory, and take, take_host, copy and fetch are NULL. */
	bool has_own_memory;
	/* Libraries (such as NCCL) that execute all-reduces in the memory of these devices; the array ends with NULL.
	 * NULL in place of the array: there are no such libraries. */
	const struct psd_library_kind *const *libraries;
	/* Functions that "begin" work return before the work has ended; false: mark, wait and between_sec are NULL. */
	bool is_asynchronous;
	/* Opens a device; the caller owns it until close(). PSD_EINVAL: there is no such device, or it does not support
	 * the number format in options->arithmetic; PSD_ENOMEM, PSD_ERUN. */
	enum psd_status (*open)(struct psd_device **device, const struct psd_device_options *options,
				struct psd_error *err);
	/* Waits for work in progress, then closes the device; NULL is allowed. */
	void (*close)(struct psd_device *device);

	/* ---- memory: filled with zeros, aligned to at least 64 bytes, valid until close() ---- */

	/* Allocates device memory of this number of bytes, and sets *block to it. PSD_ENOMEM; the text names the bytes
	 * requested and the bytes free. */
	enum psd_status (*take)(struct psd_device *device, uint64_t bytes, void **block, struct psd_error *err);
	/* Allocates host memory from which the device copies at full speed (pinned memory). */
	enum psd_status (*take_host)(struct psd_device *device, uint64_t bytes, void **block, struct psd_error *err);
	/* Begins a copy between the host's memory and the device's memory, in either direction. Any thread, but only
	 * one at a time for each stream. */
	enum psd_status (*copy)(struct psd_device *device, enum psd_stream stream, void *to, const void *from,
				uint64_t bytes, struct psd_error *err);

	/* ---- the network: a device loads one network, once ---- */

	/* Loads a network. parameters and gradients: one pointer to floats for each tensor of the graph. The layout of
	 * a tensor is row-major: conv weight (outputs, inputs / groups, height, width); linear weight (N outputs, M
	 * inputs); others are vectors. The tensors belong to the caller, stay valid until close(), and are aligned to
	 * 64 bytes. The gradient of a linear layer may be NULL. Then it is not computed here, but later from the
	 * factors of all workers. PSD_EINVAL: the device cannot execute a layer, which the text names; PSD_ENOMEM. */
	enum psd_status (*load)(struct psd_device *device, const struct psd_graph *graph,
				const struct psd_network_options *options, float *const parameters[],
				float *const gradients[], struct psd_error *err);
	/* Begins to copy the samples of a later iteration on PSD_STREAM_SAMPLES, so that begin() of that iteration need
	 * not copy them. The samples are in memory of take_host(), and must stay unchanged until the copy has ended.
	 * Only one fetched batch may wait for its begin(). Before that, begin() may be called for other batches, for
	 * example in a test. NULL: only begin() copies samples. */
	enum psd_status (*fetch)(struct psd_device *device, const struct psd_batch *batch, struct psd_error *err);
	/* Begins an iteration: sets the batch for the forward and backward passes that follow. */
	enum psd_status (*begin)(struct psd_device *device, const struct psd_batch *batch, struct psd_error *err);
	/* Begins the forward pass of one layer. The caller calls it for the layers in order. */
	enum psd_status (*forward)(struct psd_device *device, unsigned layer, struct psd_error *err);
	/* Begins the backward pass of one layer. The caller calls it for the layers in reverse order. When this work
	 * has ended, the gradients of the layer are complete. */
	enum psd_status (*backward)(struct psd_device *device, unsigned layer, struct psd_error *err);
	/* Begins the forward or backward pass of several layers together, with fewer calls of the device's library.
	 * NULL if that would not be faster. */
	enum psd_status (*pass)(struct psd_device *device, const struct psd_pass *pass, struct psd_error *err);
	/* Returns the sum of the losses of the batch's samples, divided by loss_divisor. The loss of a sample is the
	 * mean over its positions. Call it when the last forward pass has ended. */
	double (*loss)(const struct psd_device *device);
	/* Returns the number of positions of the batch for which the class with the largest score is the label. Call it
	 * when the last forward pass has ended. */
	uint32_t (*correct)(const struct psd_device *device);
	psd_device_factors_fn *keep_factors;
	psd_device_rebuild_fn *rebuild;
	/* Copies the state graph->states[state], such as a running mean of batch norm, to `values` in the host's
	 * memory. Call it between iterations; it waits for the copy. At first, states have the values of the graph. */
	enum psd_status (*read_state)(struct psd_device *device, unsigned state, float *values, struct psd_error *err);
	/* Replaces the state graph->states[state] by `values` in the host's memory. Call it between iterations; it
	 * waits for the copy. */
	enum psd_status (*write_state)(struct psd_device *device, unsigned state, const float *values,
				       struct psd_error *err);
	/* Writes one line of text with the names of the device and its libraries, for the beginning of an output
	 * file. */
	void (*describe)(const struct psd_device *device, char text[PSD_DEVICE_TEXT_MAX]);
	/* True if the device computes more slowly than intended, with the same results. Then *how has a text that
	 * explains it. NULL: it is never slower. */
	bool (*detour)(const struct psd_device *device, struct psd_error *how);
	/* Returns the bytes of device memory in use, without those allocated by take(). */
	uint64_t (*memory_bytes)(const struct psd_device *device);

	const struct psd_kernels *kernels; /* work on parameters and gradients, on PSD_STREAM_COMPUTE */

	/* ---- end of work ---- */

	/* Records a mark (a point in time) after all work that was begun on the stream so far, and returns its number.
	 * Only the last PSD_MOST_MARKS marks of a stream are valid. */
	uint64_t (*mark)(struct psd_device *device, enum psd_stream stream);
	/* Waits until all work before the mark has ended. Any thread, but only one thread at a time for each stream,
	 * and only with increasing marks. */
	enum psd_status (*wait)(struct psd_device *device, enum psd_stream stream, uint64_t mark,
				struct psd_error *err);
	/* Returns the seconds between the valid marks `from` and `to` of a stream, by the device's clock. wait() must
	 * have returned for both. */
	double (*between_sec)(struct psd_device *device, enum psd_stream stream, uint64_t from, uint64_t to);
};

enum { PSD_MOST_MARKS = 4096 }; /* number of marks of a stream that are valid at the same time */

/* Sets *kind to the kind of device that the key `train.device` names; for `auto`, to the fastest kind that the machine
 * has. at: position of the key in the scenario, for errors. PSD_EINVAL: this program was built without that kind;
 * PSD_ERUN: the machine has no such device. */
enum psd_status psd_device_choose(const struct psd_device_kind **kind, enum psd_device_choice choice,
				  struct psd_place at, struct psd_error *err) PSD_MUST_CHECK;

extern const struct psd_device_kind psd_device_cpu;
/* Executes on NVIDIA GPUs; exists only if PSD_HAS_CUDA is defined. */
extern const struct psd_device_kind psd_device_cuda;
/* Device that computes nothing, to measure only communication: gradients stay zero, and losses are 0. It has no factors
 * of linear layers. So it cannot be used with methods that send factors. */
extern const struct psd_device_kind psd_device_idle;

#endif
