/* What carries out a host's share of the work on tensors: a network's layers, rebuilds, updates, copies. One table of
 * functions for each device, a row in device.c: cpu (oneDNN), cuda (cuBLAS, cuDNN), idle. Tensors belong to the caller,
 * so that communication reads and writes the same bytes; where a device has memory of its own they lie there, in blocks
 * that it gave. All calls of one device come from one thread at a time but where it is said. Equal input gives equal
 * bits, unless the device may differ. Refuses to know programs, methods and messages. */
#ifndef PSD_REAL_DEVICE_H
#define PSD_REAL_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/error.h"
#include "engine/encodings/encoding.h"
#include "engine/model/graph.h"
#include "engine/scenario/train.h"
#include "real/device/chunks.h"
#include "real/device/clip.h"
#include "real/device/drift.h"
#include "real/device/low_rank.h"
#include "real/device/packing.h"
#include "real/device/update.h"
#include "real/library/library.h"

struct psd_device_options {
	unsigned n_threads; /* of the host's processor inside a call, >= 1 */
	unsigned number; /* which of the machine's devices of this kind, from 0; counted round where there are fewer */
	enum psd_layer_arithmetic arithmetic; /* see has_fp32_alone */
	bool is_without_graphs;		      /* what layers begin is begun anew each time, also where it is the same */
	bool may_differ;		      /* equal input may give other bits, where that is quicker */
};

struct psd_network_options {
	uint32_t batch;	     /* samples this worker computes per iteration */
	uint64_t seed;	     /* of dropout masks */
	double loss_divisor; /* of the sum of samples' losses: the global batch, so that summing workers averages */
};

/* One iteration's samples, in the host's memory. images: (batch, channels, height, width) floats; labels: class
 * numbers, (batch, graph->labels). Borrowed until the iteration's last backward is over. first_sample: the global
 * number of the first in this iteration over all workers, so that dropout masks depend on seed, iteration, sample and
 * layer, and not on the worker.
 */
struct psd_batch {
	const float *images;
	const int32_t *labels;
	float *const *gradients; /* where they go, as in load(); NULL: where the last ones went */
	uint64_t iteration;
	uint64_t first_sample;
	bool is_training; /* false: no dropout, batch norm by its running statistics, no backward follows */
	bool is_fetched;  /* fetch() was given these images and labels, and no batch after them */
};

/* Factors of an inner product's weight gradient (N, M) = top_diff^T bottom. */
struct psd_factors {
	float *top_diff; /* (batch, columns N) */
	float *bottom;	 /* (batch, rows M) */
};

/* to[i] = from[i] times the ratio, from floats to the encoding, which is lossy, or back. */
struct psd_conversion {
	const struct psd_encoding *encoding;
	void *to;
	const void *from;
	uint64_t elements;
	float ratio;
	bool is_arrival; /* back */
};

/* Where work waits for its turn. What is begun on one is carried out in that order, on two side by side. */
enum psd_stream {
	PSD_STREAM_COMPUTE,
	PSD_STREAM_COPY_OUT,
	PSD_STREAM_COPY_IN,
	PSD_STREAM_SAMPLES,
	PSD_STREAM_SUMS,
	PSD_STREAMS
};

/* Layers first to end - 1 in order, or backward in reverse order. */
struct psd_pass {
	unsigned first, end;
	bool is_backward;
};

struct psd_device;

enum { PSD_DEVICE_TEXT_MAX = 160 };

/* Every slot but open is called only between open and close. Slots that begin work: where the device is asynchronous
 * they return before it is over, mark() and wait() tell when it is, and what they are given stays as it is until then;
 * elsewhere it is over when they return. Those without a stream begin it on PSD_STREAM_COMPUTE. Work that needs what
 * another stream does is begun when that is over. PSD_ERUN: the device has failed, also in something begun before. */
struct psd_device_kind {
	const char *name;
	/* How many of them this machine has; 0: none, and *why says what is missing, such as a driver. Leaves the
	 * process as it was: it may fork afterwards. */
	unsigned (*count)(struct psd_error *why);
	bool has_fp32_alone; /* open() must not be asked for another; else it tells which arithmetic it has */
	bool has_own_memory; /* else it works in its host's: take, take_host, copy and fetch are NULL */
	/* What sums in the memory of devices of its kind; NULL is last. NULL: nothing does. */
	const struct psd_library_kind *const *libraries;
	bool is_asynchronous; /* else mark, wait and between_sec are NULL */
	/* *device is owned by the caller until close(). PSD_EINVAL: there is no such device, or it lacks the
	 * arithmetic; PSD_ENOMEM, PSD_ERUN. */
	enum psd_status (*open)(struct psd_device **device, const struct psd_device_options *options,
				struct psd_error *err);
	void (*close)(struct psd_device *device); /* NULL is allowed; whatever is under way ends first */

	/* ---- memory: zeros, aligned to 64 bytes at least, until close ---- */

	/* PSD_ENOMEM says how much was asked for and how much there is. */
	enum psd_status (*take)(struct psd_device *device, uint64_t bytes, void **block, struct psd_error *err);
	/* Of the host's memory, from and to which copies go at full speed. */
	enum psd_status (*take_host)(struct psd_device *device, uint64_t bytes, void **block, struct psd_error *err);
	/* Begins a copy; one of the two blocks is the device's, the other the host's. Any thread, one for a stream. */
	enum psd_status (*copy)(struct psd_device *device, enum psd_stream stream, void *to, const void *from,
				uint64_t bytes, struct psd_error *err);

	/* ---- a network: one, once ---- */

	/* parameters and gradients: one float pointer for each tensor of the graph, in the tensor's plain layout (conv
	 * weight: outputs, inputs / groups, height, width; inner product weight: N outputs, M inputs; vectors), owned
	 * by the caller and valid until close; 64-byte aligned. A gradient of an inner product may be NULL: it is not
	 * computed, as where all workers' factors will give it. PSD_EINVAL: the graph has a layer this device cannot
	 * do (names it); PSD_ENOMEM. */
	enum psd_status (*load)(struct psd_device *device, const struct psd_graph *graph,
				const struct psd_network_options *options, float *const parameters[],
				float *const gradients[], struct psd_error *err);
	/* Begins to copy the samples of a later iteration beside the one that is carried out, on PSD_STREAM_SAMPLES:
	 * its begin() then finds them there. They lie in memory that take_host() gave, and stay as they are until the
	 * copy is over. One batch at a time is fetched and not begun; others may begin meanwhile, as a test's do.
	 * NULL: begin() sees to it. */
	enum psd_status (*fetch)(struct psd_device *device, const struct psd_batch *batch, struct psd_error *err);
	/* Begins an iteration: what forward and backward then work on. */
	enum psd_status (*begin)(struct psd_device *device, const struct psd_batch *batch, struct psd_error *err);
	/* Begins one layer; layers in order. Reads its parameters. */
	enum psd_status (*forward)(struct psd_device *device, unsigned layer, struct psd_error *err);
	/* Begins one layer's backward; layers in reverse order. Its gradients are final when that is over. */
	enum psd_status (*backward)(struct psd_device *device, unsigned layer, struct psd_error *err);
	/* Begins these of several layers: the same, with fewer calls of the device. NULL: it gains nothing by it. */
	enum psd_status (*pass)(struct psd_device *device, const struct psd_pass *pass, struct psd_error *err);
	/* When the last forward is over: the batch's losses / loss_divisor, of which a sample's is the mean of its
	 * places'; how many places are classed as their label. */
	double (*loss)(const struct psd_device *device);
	uint32_t (*correct)(const struct psd_device *device);
	/* Begins to copy the factors that the last backward of an inner product left. */
	enum psd_status (*keep_factors)(struct psd_device *device, unsigned layer, const struct psd_factors *kept,
					struct psd_error *err);
	/* Begins the rebuild of gradient (N, M) = top_diff^T bottom from `samples` samples, those of all workers;
	 * bias_gradient (N) = column sums of top_diff, unless NULL. Both are overwritten. Needs no network's layers;
	 * may be called from another thread than the rest, for one layer at a time. */
	enum psd_status (*rebuild)(struct psd_device *device, const struct psd_factors *factors, uint32_t samples,
				   uint32_t rows, uint32_t columns, float *gradient, float *bias_gradient,
				   struct psd_error *err);
	/* The values of graph->states[state], such as batch norm's running statistics: to read or, between iterations,
	 * to write, as after a checkpoint. `values` are the host's. Waits. They start as the graph says. */
	enum psd_status (*read_state)(struct psd_device *device, unsigned state, float *values, struct psd_error *err);
	enum psd_status (*write_state)(struct psd_device *device, unsigned state, const float *values,
				       struct psd_error *err);
	/* What it is, and with whose libraries it computes: one line, for the head of a file. */
	void (*describe)(const struct psd_device *device, char text[PSD_DEVICE_TEXT_MAX]);
	/* What it does in a slower way than it is meant to, with the same results, and why. False: nothing. NULL:
	 * never. */
	bool (*detour)(const struct psd_device *device, struct psd_error *how);
	uint64_t (*memory_bytes)(const struct psd_device *device); /* held beyond what take() gave */

	/* ---- parameters ---- */

	/* Begins psd_update_apply() of a tensor, with psd_update_by_norms() before it. */
	enum psd_status (*apply)(struct psd_device *device, const struct psd_update *update, float *weight,
				 const float *gradient, struct psd_moments moments, uint64_t elements,
				 struct psd_error *err);
	/* Begin *square = psd_clip_measure(), psd_clip_find() and psd_clip_shrink() by *ratio. Squares and the ratio
	 * are in the device's memory, like the values. */
	enum psd_status (*measure)(struct psd_device *device, const float *values, uint64_t elements, double *square,
				   struct psd_error *err);
	enum psd_status (*find_clip)(struct psd_device *device, const struct psd_clip *clip, struct psd_error *err);
	enum psd_status (*shrink)(struct psd_device *device, float *values, uint64_t elements, const float *ratio,
				  struct psd_error *err);
	/* Begins psd_drift_take_step(). */
	enum psd_status (*drift)(struct psd_device *device, const struct psd_drift *drift, struct psd_error *err);
	/* Begins to convert values to what travels, or what has arrived to values, where the device works: as
	 * psd_values_encode() and psd_values_decode(). */
	enum psd_status (*convert)(struct psd_device *device, const struct psd_conversion *conversion,
				   struct psd_error *err);
	/* Begins to make all of what travels NaNs, if one of them is an infinity or a NaN, or in any case. */
	enum psd_status (*spoil)(struct psd_device *device, const struct psd_encoding *encoding, uint16_t *values,
				 uint64_t elements, bool in_any_case, struct psd_error *err);
	/* Begin psd_chunks_gather() and psd_chunks_apply(), see there. */
	enum psd_status (*gather)(struct psd_device *device, const struct psd_chunks *chunks, struct psd_error *err);
	enum psd_status (*apply_chunks)(struct psd_device *device, const struct psd_chunks *chunks,
					struct psd_error *err);
	/* Begin psd_packing_pack() and psd_packing_unpack(), with the same bits but for which NaN a NaN becomes. */
	enum psd_status (*pack)(struct psd_device *device, const struct psd_packing *packing, struct psd_error *err);
	enum psd_status (*unpack)(struct psd_device *device, const struct psd_packing *packing, struct psd_error *err);
	/* Begin psd_low_rank_project(), psd_low_rank_fit() and psd_low_rank_expand(). */
	enum psd_status (*project)(struct psd_device *device, const struct psd_low_rank_work *work,
				   struct psd_error *err);
	enum psd_status (*fit)(struct psd_device *device, const struct psd_low_rank_work *work, struct psd_error *err);
	enum psd_status (*expand)(struct psd_device *device, const struct psd_low_rank_work *work,
				  struct psd_error *err);

	/* ---- when work is over ---- */

	/* A mark in the stream, behind what was begun on it; at most PSD_MOST_MARKS of a stream count at a time. */
	uint64_t (*mark)(struct psd_device *device, enum psd_stream stream);
	/* Waits until all before the mark is over. Any thread, one for a stream at a time, marks in order. */
	enum psd_status (*wait)(struct psd_device *device, enum psd_stream stream, uint64_t mark,
				struct psd_error *err);
	/* Seconds of the device between two marks of a stream, both waited for and among the last PSD_MOST_MARKS. */
	double (*between_sec)(struct psd_device *device, enum psd_stream stream, uint64_t from, uint64_t to);
};

enum { PSD_MOST_MARKS = 4096 };

/* Slots of devices that work in their host's memory, on this processor. */
enum psd_status psd_device_apply_here(struct psd_device *device, const struct psd_update *update, float *weight,
				      const float *gradient, struct psd_moments moments, uint64_t elements,
				      struct psd_error *err);
enum psd_status psd_device_measure_here(struct psd_device *device, const float *values, uint64_t elements,
					double *square, struct psd_error *err);
enum psd_status psd_device_find_clip_here(struct psd_device *device, const struct psd_clip *clip,
					  struct psd_error *err);
enum psd_status psd_device_shrink_here(struct psd_device *device, float *values, uint64_t elements, const float *ratio,
				       struct psd_error *err);
enum psd_status psd_device_drift_here(struct psd_device *device, const struct psd_drift *drift, struct psd_error *err);
enum psd_status psd_device_convert_here(struct psd_device *device, const struct psd_conversion *conversion,
					struct psd_error *err);
enum psd_status psd_device_spoil_here(struct psd_device *device, const struct psd_encoding *encoding, uint16_t *values,
				      uint64_t elements, bool in_any_case, struct psd_error *err);
enum psd_status psd_device_gather_here(struct psd_device *device, const struct psd_chunks *chunks,
				       struct psd_error *err);
enum psd_status psd_device_apply_chunks_here(struct psd_device *device, const struct psd_chunks *chunks,
					     struct psd_error *err);
enum psd_status psd_device_pack_here(struct psd_device *device, const struct psd_packing *packing,
				     struct psd_error *err);
enum psd_status psd_device_unpack_here(struct psd_device *device, const struct psd_packing *packing,
				       struct psd_error *err);
enum psd_status psd_device_project_here(struct psd_device *device, const struct psd_low_rank_work *work,
					struct psd_error *err);
enum psd_status psd_device_fit_here(struct psd_device *device, const struct psd_low_rank_work *work,
				    struct psd_error *err);
enum psd_status psd_device_expand_here(struct psd_device *device, const struct psd_low_rank_work *work,
				       struct psd_error *err);

/* The device that a training job asks for, at that place; of several the best that the machine has. PSD_EINVAL: this
 * program was built without it; PSD_ERUN: the machine has none. */
enum psd_status psd_device_choose(const struct psd_device_kind **kind, enum psd_device_choice choice,
				  struct psd_place at, struct psd_error *err) PSD_MUST_CHECK;

extern const struct psd_device_kind psd_device_cpu;
extern const struct psd_device_kind psd_device_cuda; /* only with PSD_HAS_CUDA */
/* Computes nothing, to measure all else: gradients stay, losses are 0. Without factors: for plans of dense tensors. */
extern const struct psd_device_kind psd_device_idle;

#endif
