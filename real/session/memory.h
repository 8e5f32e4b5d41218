/* What one host keeps: parameters, gradients, optimiser state and the areas that messages arrive in, all taken once.
 * Where a device has memory of its own there are two of them, one there and one here for what is copied and travels.
 * Parameters lie in forward order, gradients in the order in which backward makes them, each tensor aligned to 64
 * bytes. Pages that this host has no use for are never touched and so cost nothing. Refuses to compute. */
#ifndef PSD_REAL_MEMORY_H
#define PSD_REAL_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/program/program.h"
#include "real/device/device.h"
#include "real/net/segments.h"

/* A buffer of an item, for as many iterations as it lives, in turn. Parts: slice by slice. Of each worker: for each
 * slice, worker by worker, or one sum of them. Factors lie side by side, so that one GEMM rebuilds the sum: of P
 * workers top (P K, N), then bottom (P K, M). */
struct psd_memory_buffer {
	float *base;	/* of the first iteration of the window; NULL: there is none */
	uint64_t apart; /* floats from one iteration's to the next one's */
};

struct psd_memory_item {
	struct psd_memory_buffer buffers[PSD_BUFFERS];
};

/* Which buffers it has. */
enum psd_memory_place {
	PSD_MEMORY_SHARED, /* all: the device works in its host's memory */
	PSD_MEMORY_HOST,   /* those that are the host's, and of the device's what travels of them */
	PSD_MEMORY_DEVICE, /* those that are the device's, and what travels of them */
};

struct psd_memory_options {
	unsigned host;
	bool adds_arrivals;
	enum psd_memory_place place;
	/* Both NULL where the place is shared; else whose memory it is, or is copied from and to. */
	const struct psd_device_kind *kind;
	struct psd_device *device;
};

struct psd_memory {
	const struct psd_plan *plan; /* borrowed */
	enum psd_memory_place place;
	unsigned host;
	bool adds_arrivals; /* what shards receive is summed as it comes, not kept apart */
	float **parameters; /* one for each tensor */
	/* Of each iteration under way one for each tensor. Forward waits for what became of the gradient window - 1
	 * iterations before, so that no more are under way. */
	float **gradients;
	uint32_t n_under_way;
	struct psd_memory_item *items; /* one for each item of the plan */
	float *staging;		       /* what comes in a step and may not be added yet; NULL: nobody sends any */
	void *block;
	size_t block_bytes;
	bool is_mapped; /* else the block is the device's, which frees it */
};

/* *memory is filled on success, all zeros, and released by psd_memory_release(). PSD_ENOMEM; PSD_EINVAL: a layer has
 * too many tensors. */
enum psd_status psd_memory_init(struct psd_memory *memory, const struct psd_program *program,
				const struct psd_memory_options *options, struct psd_error *err) PSD_MUST_CHECK;
void psd_memory_release(struct psd_memory *memory);

/* An iteration's gradients, one for each tensor. */
float *const *psd_memory_gradients(const struct psd_memory *memory, uint32_t iteration);
/* The pieces of `tensors` (parameters or gradients) that a range of the item's elements covers; returns their number.
 */
unsigned psd_memory_segments(const struct psd_memory *memory, float *const tensors[], unsigned item,
			     struct psd_range range, struct iovec segments[PSD_SEGMENTS_MAX]);
/* Where a range of an operation's message lies on this host, in the buffer that it is read from or written to; `sender`
 * sent it, in that iteration. The range is counted in the operation's slice. Returns the number of pieces. */
unsigned psd_memory_find(const struct psd_memory *memory, enum psd_buffer buffer, const struct psd_op *op,
			 uint32_t iteration, struct psd_range range, unsigned sender,
			 struct iovec segments[PSD_SEGMENTS_MAX]);
/* This host's part of a slice of a PS item, in elements of the item; the host is a shard. */
struct psd_range psd_memory_own_part(const struct psd_memory *memory, unsigned item, unsigned slice);
/* The same in blocks of a compressed item. */
struct psd_range psd_memory_own_blocks(const struct psd_memory *memory, unsigned item);
/* Elements of the item's buffer on this host, of one iteration and with gaps between slices, whether its method keeps
 * the buffer or not. */
uint64_t psd_memory_elements(const struct psd_memory *memory, unsigned item, enum psd_buffer buffer);
/* What an iteration has of a buffer that the item's method keeps. */
float *psd_memory_buffer(const struct psd_memory *memory, enum psd_buffer buffer, unsigned item, uint32_t iteration);
/* Where a worker's gradient of that part arrives in an iteration, as it travels, or is added, as floats. */
void *psd_memory_received(const struct psd_memory *memory, unsigned item, unsigned slice, uint32_t iteration,
			  unsigned worker);
/* Where a worker's compressed gradient of this shard's part arrives in an iteration. */
void *psd_memory_packed_part(const struct psd_memory *memory, unsigned item, uint32_t iteration, unsigned worker);
/* A buffer of all blocks of an item, from one of them on. */
void *psd_memory_blocks(const struct psd_memory *memory, enum psd_buffer buffer, unsigned item, uint32_t iteration,
			uint64_t first);
/* Where the gradient of another worker of a leader's node arrives, of a slice; this host is the leader. */
void *psd_memory_member(const struct psd_memory *memory, unsigned item, unsigned slice, uint32_t iteration,
			unsigned worker);
/* The parameters that the item's root updates, tensor by tensor without gaps; NULL: those that it computes with. */
float *psd_memory_master(const struct psd_memory *memory, unsigned item);
/* What a shard keeps of that part beside the parameters that it computes with, as floats; NULL: nothing. */
float *psd_memory_part(const struct psd_memory *memory, unsigned item, unsigned slice);
/* What the solver remembers of an item, and of that part. */
struct psd_moments psd_memory_moments(const struct psd_memory *memory, unsigned item);
struct psd_moments psd_memory_part_moments(const struct psd_memory *memory, unsigned item, unsigned slice);
/* A worker's factors of an item in an iteration. */
struct psd_factors psd_memory_factors(const struct psd_memory *memory, unsigned item, uint32_t iteration,
				      unsigned worker);

/* Starting values that depend on the seed alone. Where the model file has no filler: weights uniform within +-sqrt(3 /
 * inputs), so that with outputs of the inputs' size a classifier starts near its chance (Caffe's filler "xavier", after
 * Glorot and Bengio 2010); biases within +-sqrt(1 / inputs) (PyTorch's default); factors of normalisations 1, their
 * shifts 0. */
void psd_memory_fill_parameters(const struct psd_memory *memory, uint64_t seed);
/* Where a shard or a root keeps parameters beside those that it computes with, they become equal to these. */
void psd_memory_fill_own(const struct psd_memory *memory);

#endif
