/* Memory of one host, allocated once: parameters, gradients, optimiser state and buffers for messages. With a device
 * that has its own memory there are two such memories: one on the device, and one on the host for values that are
 * copied and sent. Parameters are in the order of the forward pass, gradients in the order of the backward pass. Each
 * tensor is aligned to 64 bytes. Memory pages that are not used are never touched and so cost nothing. Computes
 * nothing. */
#ifndef PSD_REAL_MEMORY_H
#define PSD_REAL_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/program/program.h"
#include "real/device/device.h"
#include "real/net/segments.h"

/* Buffer of an item (one or several tensors that are synchronised as one), see enum psd_buffer. It has one area for
 * each iteration that may need it at the same time; iterations use the areas in turn. The layout of an area depends on
 * the buffer. A shard's part of an item: its parts of the slices, one after another. Received gradients: for each
 * slice, the parts of all workers, or a single sum. Factors of a linear layer with N outputs and M inputs, from P
 * workers with K samples each: all top factors (P * K, N), then all bottom factors (P * K, M), without gaps, so that
 * one matrix product computes the sum of all gradients. */
struct psd_memory_buffer {
	float *base;	/* first area; NULL: the item (bucket) has no such buffer in this memory */
	uint64_t apart; /* distance between the areas of two iterations, in floats */
};

struct psd_memory_item {
	struct psd_memory_buffer buffers[PSD_BUFFERS];
};

/* Buffers that a memory contains. */
enum psd_memory_place {
	PSD_MEMORY_SHARED, /* all buffers: the device computes in the host's memory */
	/* Host's memory if the device has its own: buffers of the host, and copies of the device's buffers that are
	 * sent. */
	PSD_MEMORY_HOST,
	PSD_MEMORY_DEVICE, /* memory of the device: its buffers, and encoded values that are sent */
};

struct psd_memory_options {
	unsigned host;
	bool adds_arrivals;
	enum psd_memory_place place;
	/* Functions of the device that allocates this memory, which is its own memory or host memory for copies to and
	 * from it. NULL: ordinary memory of the host. */
	const struct psd_device_kind *kind;
	struct psd_device *device; /* that device; NULL: ordinary memory of the host */
};

struct psd_memory {
	const struct psd_plan *plan; /* plan whose items (buckets) have buffers here; borrowed */
	enum psd_memory_place place;
	unsigned host;
	/* Shards add received gradients to a single sum while they arrive; false: they keep each gradient until all are
	 * there. */
	bool adds_arrivals;
	float **parameters; /* values of the parameters; one array for each tensor of the graph */
	/* Gradients of the n_under_way iterations that may be in progress at the same time; shape (n_under_way, tensors
	 * of the graph), one array each. A forward pass waits for the update by the gradient `window` - 1 iterations
	 * before it, so at most `window` iterations are in progress. */
	float **gradients;
	uint32_t n_under_way;
	struct psd_memory_item *items; /* buffers of each item (bucket); one entry for each item of the plan */
	/* Receives a message of a collective whose values cannot be added to the gradient yet. As large as the largest
	 * item (bucket); NULL: there is only one host. */
	float *staging;
	void *block;
	size_t block_bytes;
	bool is_mapped; /* the block was mapped by mmap(); false: the device frees it */
};

/* Allocates a memory for the program's buffers, all zeros, and fills *memory on success. psd_memory_release() frees it.
 * PSD_EINVAL: a layer has more tensors than a message can have segments; PSD_ENOMEM. */
enum psd_status psd_memory_init(struct psd_memory *memory, const struct psd_program *program,
				const struct psd_memory_options *options, struct psd_error *err) PSD_MUST_CHECK;
void psd_memory_release(struct psd_memory *memory);

/* Returns the gradients of an iteration: one array for each tensor of the graph. */
float *const *psd_memory_gradients(const struct psd_memory *memory, uint32_t iteration);
/* Finds the memory of a range of an item's (bucket's) elements in `tensors`, which are the parameters or the gradients
 * of an iteration. Writes it to `segments` and returns the number of segments. */
unsigned psd_memory_segments(const struct psd_memory *memory, float *const tensors[], unsigned item,
			     struct psd_range range, struct iovec segments[PSD_SEGMENTS_MAX]);
/* Finds the memory of a range of the message that operation *op sends or receives in this iteration, in buffer `buffer`
 * on this host. The range counts from the first element of the operation's slice. sender: host that sends the message;
 * receivers have an area for each sender. Writes the memory to `segments` and returns the number of segments. */
unsigned psd_memory_find(const struct psd_memory *memory, enum psd_buffer buffer, const struct psd_op *op,
			 uint32_t iteration, struct psd_range range, unsigned sender,
			 struct iovec segments[PSD_SEGMENTS_MAX]);
/* For an item (bucket) that parameter servers synchronise: returns this shard's part of one of its slices (parts that
 * are sent as one transfer). The range counts elements from the item's first. */
struct psd_range psd_memory_own_part(const struct psd_memory *memory, unsigned item, unsigned slice);
/* For an item (bucket) that is sent compressed: returns this shard's part of it. The range counts compressed blocks
 * from the item's first. */
struct psd_range psd_memory_own_blocks(const struct psd_memory *memory, unsigned item);
/* Returns the number of elements in one area of the buffer of an item (bucket) on this host, including gaps between
 * slices. It is also computed if the item's method does not use the buffer. */
uint64_t psd_memory_elements(const struct psd_memory *memory, unsigned item, enum psd_buffer buffer);
/* Returns the area of an item's (bucket's) buffer for this iteration. The item's method must use the buffer. */
float *psd_memory_buffer(const struct psd_memory *memory, enum psd_buffer buffer, unsigned item, uint32_t iteration);
/* Returns the memory in which a shard receives a worker's gradient of its part of this slice. The values are as encoded
 * by the sender, or floats if they are added while they arrive. */
void *psd_memory_received(const struct psd_memory *memory, unsigned item, unsigned slice, uint32_t iteration,
			  unsigned worker);
/* Returns the memory in which a shard receives a worker's compressed gradient of its part of the item (bucket). */
void *psd_memory_packed_part(const struct psd_memory *memory, unsigned item, uint32_t iteration, unsigned worker);
/* Returns the address of compressed block number `first` in a buffer that has all blocks of the item (bucket). */
void *psd_memory_blocks(const struct psd_memory *memory, enum psd_buffer buffer, unsigned item, uint32_t iteration,
			uint64_t first);
/* Returns the memory in which this host, as leader of its node, receives another worker's gradient of a slice. worker:
 * a worker of the same node. */
void *psd_memory_member(const struct psd_memory *memory, unsigned item, unsigned slice, uint32_t iteration,
			unsigned worker);
/* Returns the exact copy (fp32) of an item's (bucket's) parameters that its root updates, tensor by tensor without
 * gaps. NULL: the root updates the parameters with which it computes. */
float *psd_memory_master(const struct psd_memory *memory, unsigned item);
/* Returns a shard's exact copy (fp32) of its part of a slice's parameters. NULL: the shard updates the parameters with
 * which it computes. */
float *psd_memory_part(const struct psd_memory *memory, unsigned item, unsigned slice);
/* Return the optimiser state: psd_memory_moments() that of an item (bucket), psd_memory_part_moments() that of this
 * shard's part of one of its slices. */
struct psd_moments psd_memory_moments(const struct psd_memory *memory, unsigned item);
struct psd_moments psd_memory_part_moments(const struct psd_memory *memory, unsigned item, unsigned slice);
/* Returns the factors (two small matrices whose product is the gradient) of an item (bucket) that a worker sent in this
 * iteration. */
struct psd_factors psd_memory_factors(const struct psd_memory *memory, unsigned item, uint32_t iteration,
				      unsigned worker);

/* Sets the initial values of all parameters, which depend on the seed alone. For layers to which the model gives no
 * 'filler': weights are uniform within +-sqrt(3 / inputs) (Caffe's "xavier", Glorot and Bengio 2010), biases uniform
 * within +-sqrt(1 / inputs) (PyTorch's default), scales of normalisations 1, shifts 0. */
void psd_memory_fill_parameters(const struct psd_memory *memory, uint64_t seed);
/* Copies the parameters to the exact copies that shards and roots of items (buckets) update, see psd_memory_part() and
 * psd_memory_master(). */
void psd_memory_fill_own(const struct psd_memory *memory);

#endif
