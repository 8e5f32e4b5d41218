/* State of a host between two iterations, as the tensors of a checkpoint's file: parameters, optimiser state,
 * residuals, sums that are applied later, running statistics of batch normalisations, values of keepers. All
 * other values are computed again in each iteration. The values are in the host's memory or in the device's memory. The
 * functions are called by the thread that executes the device's operations, while it executes none. */
#ifndef PSD_REAL_STATE_H
#define PSD_REAL_STATE_H

#include "real/data/tensor_file.h"
#include "real/keep/host.h"

/* One tensor of the state, and its memory. */
struct psd_state_part {
	struct psd_file_tensor tensor;
	/* Address of the tensor's values in the host's memory; NULL: the host's memory does not have them. */
	void *here;
	/* Address of the tensor's values in the device's own memory; NULL: the device's memory does not have them. If
	 * both addresses are set, the values on the device are the current ones. */
	void *there;
	/* Elements of the tensor that have these addresses; all of them unless is_divided. */
	struct psd_piece held;
	/* The tensor is a parameter of which this host keeps a part (PSD_BUFFER_OWN). Checkpoints have that buffer in
	 * place of the tensor. */
	bool is_divided;
	/* Entry of graph->states, such as a running mean, whose values only the device has; NULL: the tensor is not
	 * such a state. */
	const struct psd_tensor *state;
	/* The tensor is the summed gradient of an earlier iteration, which a later iteration will apply. */
	bool is_late;
	/* True: the tensor is buffer `buffer` of the item (bucket) with number `item`. False: `buffer` and `item` have
	 * no meaning. */
	bool is_of_item;
	unsigned item;
	enum psd_buffer buffer;
};

struct psd_state {
	struct psd_host *host;
	struct psd_state_part *parts;
	uint32_t n_parts, parts_capacity;
	/* Number of parts that have a meaning for other programs, too: parameters and graph->states. They are the first
	 * parts. */
	unsigned n_plain;
	struct psd_arena arena;
	bool is_out_of_memory;
};

/* Makes the list of the parts of this host's state before an iteration. The host's memory and network must be ready.
 * On success, psd_state_close() releases *state. PSD_ENOMEM. */
enum psd_status psd_state_open(struct psd_state *state, struct psd_host *host, uint32_t iteration,
			       struct psd_error *err) PSD_MUST_CHECK;
void psd_state_close(struct psd_state *state);

/* Appends to `name` the name of a part: the summed gradient of a tensor, made `age` iterations before the iteration of
 * the state. */
void psd_state_name_late(struct psd_text *name, const struct psd_tensor *tensor, uint32_t age);

/* Adds a tensor of n values, which is not in the memory of buffers; for psd_keeper.add(). name and values: borrowed
 * until psd_state_close(). */
void psd_state_add_vector(struct psd_state *state, const char *name, enum psd_tensor_type type, uint64_t n,
			  void *values);
/* Function that receives n_bytes bytes of a part's values; never a fraction of a value. */
typedef enum psd_status psd_state_take_fn(void *context, const void *values, uint64_t n_bytes, struct psd_error *err);
/* Calls take(context, ...) with all values that this host has of a part, in several pieces, in order. PSD_ENOMEM;
 * PSD_ERUN: the device failed; statuses of take(). */
enum psd_status psd_state_visit(const struct psd_state *state, const struct psd_state_part *part,
				psd_state_take_fn *take, void *context, struct psd_error *err) PSD_MUST_CHECK;
/* Writes the values of a part to the file as its next tensor. If this host keeps only a part of a parameter, all of its
 * values must have been gathered (whole.h). PSD_ENOMEM; PSD_ERUN: the device failed; statuses of
 * psd_tensor_writer_add(). */
enum psd_status psd_state_write(const struct psd_state *state, const struct psd_state_part *part,
				struct psd_tensor_writer *writer, struct psd_error *err) PSD_MUST_CHECK;
/* Reads the values of a part from the tensor in the file that has the part's name. *is_found: the file has such a
 * tensor; if false, nothing is read. path: name of the file for errors. PSD_EINVAL: type or shape of the tensor
 * differs; PSD_ENOMEM; PSD_ERUN: the file was shortened, or the device failed. */
enum psd_status psd_state_read(const struct psd_state *state, const struct psd_state_part *part,
			       struct psd_tensor_file *file, const char *path, bool *is_found,
			       struct psd_error *err) PSD_MUST_CHECK;

/* Digest of all parameters, and the position of the first value that is infinite or not a number (NaN). */
struct psd_state_look {
	uint64_t sum, weighted; /* digest of the parameters, see struct psd_wire_parameters */
	bool is_whole;		/* this host keeps all parameters; false: there is no digest */
	bool is_odd;
	unsigned part; /* if is_odd: number of the part that has the value */
	uint64_t element;
};
/* Computes *look from the values of the first n_parts parts, which must include all parameters. Summed gradients that
 * may still be skipped because of an overflow (loss scale) are never reported as infinite or NaN. Statuses as
 * psd_state_visit(). */
enum psd_status psd_state_look_at(const struct psd_state *state, unsigned n_parts, struct psd_state_look *look,
				  struct psd_error *err) PSD_MUST_CHECK;

/* Replaces n_bytes bytes of a part's values, beginning with byte first_byte. The part must not be one of graph->states.
 * Values that this host does not keep are left out. PSD_ERUN: the device failed. */
enum psd_status psd_state_put(const struct psd_state *state, const struct psd_state_part *part, uint64_t first_byte,
			      const void *values, uint64_t n_bytes, struct psd_error *err) PSD_MUST_CHECK;

#endif
