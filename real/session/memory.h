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

/* Buffer of an item, for as many iterations as it lives, in turn. Parts: slice after slice. Per worker: for each slice
 * one area per worker, or one sum. Factors: contiguous, so that one GEMM rebuilds the sum; for P workers top (P K, N),
 * then bottom (P K, M). */
struct psd_memory_buffer {
	float *base;	/* the window's first iteration; NULL: none */
	uint64_t apart; /* floats between two iterations' areas */
};

struct psd_memory_item {
	struct psd_memory_buffer buffers[PSD_BUFFERS];
};

/* Buffers that the memory contains. */
enum psd_memory_place {
	PSD_MEMORY_SHARED, /* all: the device uses the host's memory */
	PSD_MEMORY_HOST,   /* the host's, and those of the device that are sent */
	PSD_MEMORY_DEVICE, /* the device's, and those that are sent */
};

struct psd_memory_options {
	unsigned host;
	bool adds_arrivals;
	enum psd_memory_place place;
	/* The device on the other side of a copy, or owner of the memory; both NULL if shared. */
	const struct psd_device_kind *kind;
	struct psd_device *device;
};

struct psd_memory {
	const struct psd_plan *plan; /* borrowed */
	enum psd_memory_place place;
	unsigned host;
	bool adds_arrivals; /* shards add gradients on arrival */
	float **parameters; /* per tensor */
	/* Per iteration under way and tensor. Forward waits for the update of the gradient window - 1 iterations
	 * before, so there are no more. */
	float **gradients;
	uint32_t n_under_way;
	struct psd_memory_item *items; /* per item of the plan */
	float *staging;		       /* receives a step's message that may not be added yet; NULL: none comes */
	void *block;
	size_t block_bytes;
	bool is_mapped; /* else the device frees the block */
};

/* Allocates *memory, all zeros, and fills it on success; psd_memory_release() frees it. PSD_ENOMEM; PSD_EINVAL: a layer
 * has too many tensors. */
enum psd_status psd_memory_init(struct psd_memory *memory, const struct psd_program *program,
				const struct psd_memory_options *options, struct psd_error *err) PSD_MUST_CHECK;
void psd_memory_release(struct psd_memory *memory);

/* An iteration's gradients, one per tensor. */
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
/* The same in blocks of a compressed item. */
struct psd_range psd_memory_own_blocks(const struct psd_memory *memory, unsigned item);
/* Elements of the item's buffer on this host, for one iteration, including gaps between slices; also if the method has
 * no such buffer. */
uint64_t psd_memory_elements(const struct psd_memory *memory, unsigned item, enum psd_buffer buffer);
/* An iteration's area of a buffer that the item's method has. */
float *psd_memory_buffer(const struct psd_memory *memory, enum psd_buffer buffer, unsigned item, uint32_t iteration);
/* Area in which a worker's gradient of that part arrives, as sent; or is added, as floats. */
void *psd_memory_received(const struct psd_memory *memory, unsigned item, unsigned slice, uint32_t iteration,
			  unsigned worker);
/* Area in which a worker's compressed gradient of this shard's part arrives. */
void *psd_memory_packed_part(const struct psd_memory *memory, unsigned item, uint32_t iteration, unsigned worker);
/* A buffer of all blocks of an item, from one of them on. */
void *psd_memory_blocks(const struct psd_memory *memory, enum psd_buffer buffer, unsigned item, uint32_t iteration,
			uint64_t first);
/* Area in which another worker of the leader's node sends its gradient of a slice; this host is the leader. */
void *psd_memory_member(const struct psd_memory *memory, unsigned item, unsigned slice, uint32_t iteration,
			unsigned worker);
/* Parameters that the item's root updates, tensor by tensor without gaps; NULL: the ones used for computing. */
float *psd_memory_master(const struct psd_memory *memory, unsigned item);
/* A shard's own copy of its part, as floats; NULL: it updates the parameters used for computing. */
float *psd_memory_part(const struct psd_memory *memory, unsigned item, unsigned slice);
/* Optimiser state of an item, and of that part. */
struct psd_moments psd_memory_moments(const struct psd_memory *memory, unsigned item);
struct psd_moments psd_memory_part_moments(const struct psd_memory *memory, unsigned item, unsigned slice);
/* A worker's factors of an item in an iteration. */
struct psd_factors psd_memory_factors(const struct psd_memory *memory, unsigned item, uint32_t iteration,
				      unsigned worker);

/* Initial values, which depend on the seed alone. Without a filler in the model: weights uniform within +-sqrt(3 /
 * inputs) (Caffe's "xavier", Glorot and Bengio 2010); biases within +-sqrt(1 / inputs) (PyTorch's default); scales of
 * normalisations 1, shifts 0. */
void psd_memory_fill_parameters(const struct psd_memory *memory, uint64_t seed);
/* Copies the parameters to the copies that shards and roots keep. */
void psd_memory_fill_own(const struct psd_memory *memory);

#endif
