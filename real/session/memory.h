/* Memory of one host: parameters, gradients, optimiser state and receive buffers, allocated once. With a device that
 * has its own memory there are two, one there and one on the host for data that is copied and sent. Parameters are in
 * forward order, gradients in backward order, each tensor aligned to 64 bytes. Pages without use are never touched and
 * so cost nothing. Computes nothing. */
#ifndef PSD_REAL_MEMORY_H
#define PSD_REAL_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/program/program.h"
#include "real/device/device.h"
#include "real/net/segments.h"

/* Buffer of an item. It has one area for each iteration that may need it at a time, used in turn. Parts: slice after
 * slice. Per worker: for each slice one area per worker, or one sum. Factors: contiguous, so that one GEMM rebuilds the
 * sum; for P workers top (P K, N), then bottom (P K, M). */
struct psd_memory_buffer {
	float *base;	/* area for the first of these iterations; NULL: the item has no such buffer */
	uint64_t apart; /* distance of two iterations' areas, in floats */
};

struct psd_memory_item {
	struct psd_memory_buffer buffers[PSD_BUFFERS];
};

/* Selection of the buffers that a memory contains. */
enum psd_memory_place {
	PSD_MEMORY_SHARED, /* all buffers: the device uses the host's memory */
	PSD_MEMORY_HOST,   /* buffers of the host, and those of the device whose contents are sent */
	PSD_MEMORY_DEVICE, /* buffers of the device, and those whose contents are sent */
};

struct psd_memory_options {
	unsigned host;
	bool adds_arrivals;
	enum psd_memory_place place;
	/* Owner of the memory, or device that exchanges copies with it. Both fields NULL: the device uses it. */
	const struct psd_device_kind *kind;
	struct psd_device *device;
};

struct psd_memory {
	const struct psd_plan *plan; /* plan whose items have buffers here, borrowed */
	enum psd_memory_place place;
	unsigned host;
	bool adds_arrivals; /* shards add gradients as they arrive */
	float **parameters; /* parameters, one array per tensor of the graph */
	/* Per iteration under way and tensor. The forward pass waits for the update of the gradient window - 1
	 * iterations before, so at most `window` iterations are under way. */
	float **gradients;
	uint32_t n_under_way;
	struct psd_memory_item *items; /* buffers, one entry per item of the plan */
	float *staging; /* receives a collective's message that cannot be added yet; NULL: there is no such message */
	void *block;
	size_t block_bytes;
	bool is_mapped; /* the block was mapped by the kernel; otherwise the device frees it */
};

/* Allocates *memory, all zeros, and fills it on success; psd_memory_release() frees it. PSD_ENOMEM; PSD_EINVAL: a layer
 * has too many tensors. */
enum psd_status psd_memory_init(struct psd_memory *memory, const struct psd_program *program,
				const struct psd_memory_options *options, struct psd_error *err) PSD_MUST_CHECK;
void psd_memory_release(struct psd_memory *memory);

/* Gradients of an iteration, one array per tensor. */
float *const *psd_memory_gradients(const struct psd_memory *memory, uint32_t iteration);
/* Segments of `tensors` (parameters or gradients) that cover a range of the item's elements; returns their number. */
unsigned psd_memory_segments(const struct psd_memory *memory, float *const tensors[], unsigned item,
			     struct psd_range range, struct iovec segments[PSD_SEGMENTS_MAX]);
/* Segments of a range of an operation's message on this host, in the buffer that it is read from or written to;
 * `sender` sends it, in that iteration. The range counts from the operation's slice. Returns their number. */
unsigned psd_memory_find(const struct psd_memory *memory, enum psd_buffer buffer, const struct psd_op *op,
			 uint32_t iteration, struct psd_range range, unsigned sender,
			 struct iovec segments[PSD_SEGMENTS_MAX]);
/* This shard's part of a slice of a PS item, in elements of the item. */
struct psd_range psd_memory_own_part(const struct psd_memory *memory, unsigned item, unsigned slice);
/* This shard's part of a compressed item, in blocks of the item. */
struct psd_range psd_memory_own_blocks(const struct psd_memory *memory, unsigned item);
/* Elements of the item's buffer on this host, for one iteration, including gaps between slices; also if the method has
 * no such buffer. */
uint64_t psd_memory_elements(const struct psd_memory *memory, unsigned item, enum psd_buffer buffer);
/* Area of an item's buffer for that iteration; the item's method must have the buffer. */
float *psd_memory_buffer(const struct psd_memory *memory, enum psd_buffer buffer, unsigned item, uint32_t iteration);
/* Area in which a worker's gradient of that slice arrives in its encoding, or is added as floats. */
void *psd_memory_received(const struct psd_memory *memory, unsigned item, unsigned slice, uint32_t iteration,
			  unsigned worker);
/* Area in which a worker's compressed gradient of this shard's part arrives. */
void *psd_memory_packed_part(const struct psd_memory *memory, unsigned item, uint32_t iteration, unsigned worker);
/* Address of block `first` in an item's buffer of all blocks. */
void *psd_memory_blocks(const struct psd_memory *memory, enum psd_buffer buffer, unsigned item, uint32_t iteration,
			uint64_t first);
/* Area in which another worker of this node delivers its gradient of a slice; this host is the node's leader. */
void *psd_memory_member(const struct psd_memory *memory, unsigned item, unsigned slice, uint32_t iteration,
			unsigned worker);
/* Parameters that the item's root updates, tensor by tensor without gaps; NULL: it updates those used for computing. */
float *psd_memory_master(const struct psd_memory *memory, unsigned item);
/* A shard's own copy of its part, as floats; NULL: it updates the parameters used for computing. */
float *psd_memory_part(const struct psd_memory *memory, unsigned item, unsigned slice);
/* Optimiser state of an item; the function below: of a slice's part. */
struct psd_moments psd_memory_moments(const struct psd_memory *memory, unsigned item);
struct psd_moments psd_memory_part_moments(const struct psd_memory *memory, unsigned item, unsigned slice);
/* Low-rank factors of an item that a worker sent in that iteration. */
struct psd_factors psd_memory_factors(const struct psd_memory *memory, unsigned item, uint32_t iteration,
				      unsigned worker);

/* Sets initial values, which depend on the seed alone. Without a filler in the model: weights uniform within +-sqrt(3 /
 * inputs) (Caffe's "xavier", Glorot and Bengio 2010); biases within +-sqrt(1 / inputs) (PyTorch's default); scales of
 * normalisations 1, shifts 0. */
void psd_memory_fill_parameters(const struct psd_memory *memory, uint64_t seed);
/* Copies the parameters to the separate copies that shards and roots update. */
void psd_memory_fill_own(const struct psd_memory *memory);

#endif
