/* Memory of one host, allocated once: parameters, gradients, optimiser state and buffers for messages. If the device
 * has its own memory, there are two of these: one on the device, and one on the host for values that are copied and
 * sent. Parameters have the order of the forward pass, gradients the order of the backward pass. Each tensor is aligned
 * to 64 bytes. Memory pages that are not used are never accessed, so the kernel does not allocate them. Computes
 * nothing. */
#ifndef PSD_REAL_MEMORY_H
#define PSD_REAL_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/program/program.h"
#include "engine/program/view.h"
#include "real/device/device.h"
#include "real/net/segments.h"

/* A buffer of an item, see enum psd_buffer. An item is one or several tensors that are synchronised as one. A buffer
 * has several areas, because several iterations may need it at the same time; iteration i uses area i modulo their
 * number. The contents of an area depend on the buffer. For a shard, they are its parts of the item's slices, one after
 * another. For received gradients, they are for each slice the parts of all workers, or a single sum. For a linear
 * layer with N outputs and M inputs, and P workers with K samples each, they may be factors: all top factors, shape (P
 * * K, N), then all bottom factors, shape (P * K, M), without gaps. So one matrix product computes the sum of all
 * gradients. */
struct psd_memory_buffer {
	float *base;	/* first area; NULL: the item (bucket) has no such buffer in this memory */
	uint64_t apart; /* distance between the areas of two successive iterations, in floats */
};

struct psd_memory_item {
	struct psd_memory_buffer buffers[PSD_BUFFERS];
};

/* Kind of a memory, which decides which buffers it contains. */
enum psd_memory_place {
	PSD_MEMORY_SHARED, /* all buffers; the device computes in the host's memory */
	/* Host's memory if the device has its own memory: buffers of the host, and copies of those buffers of the
	 * device that are sent. */
	PSD_MEMORY_HOST,
	PSD_MEMORY_DEVICE, /* memory of the device: buffers of the device, and encoded values that are sent */
};

struct psd_memory_options {
	unsigned host;
	bool adds_arrivals;
	enum psd_memory_place place;
	/* Functions of the device that allocates this memory. The device allocates its own memory, and also the host's
	 * memory for copies. NULL: ordinary memory of the host. */
	const struct psd_device_kind *kind;
	struct psd_device *device; /* device that allocates this memory; NULL: ordinary memory of the host */
};

struct psd_memory {
	const struct psd_plan *plan; /* plan whose items (buckets) have buffers here; borrowed */
	enum psd_memory_place place;
	unsigned host;
	/* Shards add received gradients to a single sum while they arrive; false: they keep each gradient until all
	 * have arrived. */
	bool adds_arrivals;
	float **parameters; /* values of the parameters; one array for each tensor of the graph */
	/* Gradients of the n_under_way iterations that may be in progress at the same time: one array for each of these
	 * iterations and each tensor; shape (n_under_way, tensors of the graph). A forward pass waits for the update by
	 * the gradient of the iteration `window` - 1 before it (psd_plan.window), so at most `window` iterations are in
	 * progress. */
	float **gradients;
	uint32_t n_under_way;
	/* Number of rows of `gradients`: n_under_way and, with accumulation of whole gradients, one more for the
	 * micro-batches after an iteration's first. */
	uint32_t n_gradient_rows;
	/* buffers of each item (bucket); one entry for each item of the plan */
	struct psd_memory_item *items;
	/* Memory for a message of a collective whose values cannot be added to the gradient yet. It is as large as the
	 * largest item (bucket); NULL: there is only one host. */
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
/* With accumulation: returns the gradients of a micro-batch that is not the first of its iteration, before they are
 * added to those of the iteration: one array for each tensor of the graph. */
float *const *psd_memory_micro_gradients(const struct psd_memory *memory);
/* Finds the memory of a range of elements of an item (bucket) in `tensors`, which are the parameters, or the gradients
 * of an iteration. Writes it to `segments` and returns the number of segments. */
unsigned psd_memory_segments(const struct psd_memory *memory, float *const tensors[], unsigned item,
			     struct psd_range range, struct iovec segments[PSD_SEGMENTS_MAX]);
/* Finds the memory of a part of the message that operation *op sends or receives on this host in this iteration. The
 * memory is in buffer `buffer`. range: elements, counted from the first element of the operation's slice. sender: host
 * that sends the message; a receiver has an area for each sender. Writes the memory to `segments` and returns the
 * number of segments. */
unsigned psd_memory_find(const struct psd_memory *memory, enum psd_buffer buffer, const struct psd_op *op,
			 uint32_t iteration, struct psd_range range, unsigned sender,
			 struct iovec segments[PSD_SEGMENTS_MAX]);
/* For an item (bucket) that parameter servers synchronise: returns the part that this shard has of one of the item's
 * slices. A slice is a part that is sent as one transfer. Elements are counted from the item's first element. */
struct psd_range psd_memory_own_part(const struct psd_memory *memory, unsigned item, unsigned slice);
/* For an item (bucket) that is sent compressed: returns the part that this shard has of it. Compressed blocks are
 * counted from the item's first block. */
struct psd_range psd_memory_own_blocks(const struct psd_memory *memory, unsigned item);
/* Returns the number of elements in one area of the buffer of an item (bucket) on this host, including gaps between
 * slices. The result is also valid if the item's method does not use the buffer. */
uint64_t psd_memory_elements(const struct psd_memory *memory, unsigned item, enum psd_buffer buffer);
/* Returns the area of an item's (bucket's) buffer for this iteration. The item's method must use the buffer. */
float *psd_memory_buffer(const struct psd_memory *memory, enum psd_buffer buffer, unsigned item, uint32_t iteration);
/* Returns the area as psd_memory_buffer() does; NULL: the memory has no such buffer for the item. Without
 * PSD_BUFFER_SUM the sums are in the gradient itself. Without PSD_BUFFER_OWN and PSD_BUFFER_MASTER updates change the
 * parameters with which the host computes. */
float *psd_memory_kept(const struct psd_memory *memory, enum psd_buffer buffer, unsigned item, uint32_t iteration);
/* Returns the memory, in this buffer, of the part that this shard has of one of the item's slices. NULL: the memory has
 * no such buffer for the item, or this host has no shard. */
float *psd_memory_part(const struct psd_memory *memory, enum psd_buffer buffer, unsigned item, unsigned slice);
/* Returns the address of value number `first`, an element or a compressed block, in the area of an item's (bucket's)
 * buffer for this iteration. */
void *psd_memory_values(const struct psd_memory *memory, enum psd_buffer buffer, unsigned item, uint32_t iteration,
			uint64_t first);
/* Returns the memory in which a shard receives a worker's gradient for the shard's part of this slice. The values have
 * the sender's encoding. They are floats if received values are added while they arrive. */
void *psd_memory_received(const struct psd_memory *memory, unsigned item, unsigned slice, uint32_t iteration,
			  unsigned worker);
/* Returns the memory in which a shard receives a worker's compressed gradient for the shard's part of the item
 * (bucket). */
void *psd_memory_packed_part(const struct psd_memory *memory, unsigned item, uint32_t iteration, unsigned worker);
/* Returns the memory in which this host receives another worker's gradient of a slice. This host must be the leader of
 * its node, which sums for the node. worker: a worker of the same node. */
void *psd_memory_member(const struct psd_memory *memory, unsigned item, unsigned slice, uint32_t iteration,
			unsigned worker);
/* Return the optimiser state: psd_memory_moments() for a whole item (bucket), psd_memory_part_moments() for the part
 * that this shard has of one of the item's slices. */
struct psd_moments psd_memory_moments(const struct psd_memory *memory, unsigned item);
struct psd_moments psd_memory_part_moments(const struct psd_memory *memory, unsigned item, unsigned slice);
/* Elements of a tensor's parameters that a host keeps between two iterations. */
struct psd_held {
	struct psd_piece piece;
	float *values;
	/* the elements are in PSD_BUFFER_OWN; false: they are the whole tensor, with which the host computes */
	bool is_own;
};
struct psd_held psd_memory_held(const struct psd_memory *memory, unsigned tensor);
/* Returns the factors (two small matrices whose product is the gradient) that a worker has sent for an item (bucket) in
 * this iteration. */
struct psd_factors psd_memory_factors(const struct psd_memory *memory, unsigned item, uint32_t iteration,
				      unsigned worker);

/* Sets the initial values of all parameters. They depend only on the model and the seed. If the model has no 'filler'
 * for a layer: weights are uniform within +-sqrt(3 / inputs) (Caffe's "xavier", Glorot and Bengio 2010), biases uniform
 * within +-sqrt(1 / inputs) (PyTorch's default), scales of normalisations 1, and shifts 0. */
void psd_memory_fill_parameters(const struct psd_memory *memory, uint64_t seed);
/* Copies the parameters to the copies in fp32 that shards (PSD_BUFFER_PART) and roots (PSD_BUFFER_MASTER) update. */
void psd_memory_fill_own(const struct psd_memory *memory);

#endif
