/* State of a host between two iterations, as tensors of a file: parameters, optimiser state, residuals, late sums,
 * statistics of batch norms, loss scales, chunk selection. An iteration makes everything else anew. Values are in host
 * memory or on the device. Called in the device lane's thread while no operation executes. Private to
 * real/session/worker*.c. */
#ifndef PSD_REAL_STATE_H
#define PSD_REAL_STATE_H

#include "real/data/tensor_file.h"
#include "real/session/worker_parts.h"

struct psd_state_part {
	struct psd_file_tensor tensor;
	/* Addresses of the values on the host and on a device with its own memory, which prevails; NULL: not there. */
	void *here, *there;
	const struct psd_tensor *state; /* tensor of graph->states, whose values are on the device only; else NULL */
	bool is_late;			/* the values are the sum of an earlier iteration, applied later */
	bool is_of_item;		/* the values are an item's buffer, described by the fields below */
	unsigned item;
	enum psd_buffer buffer;
};

struct psd_state {
	struct psd_worker *worker;
	struct psd_state_part *parts;
	uint32_t n_parts, parts_capacity;
	unsigned n_plain; /* number of leading parts that other programs read: parameters and graph states */
	/* Two values per loss scale: the scale, and the number of good sums since it changed; NULL: no loss scales. */
	float *ratios;
	int32_t *n_good;
	struct psd_arena arena;
	bool is_out_of_memory;
};

/* Lists the parts of the state before that iteration. The worker must have its memory and network. psd_state_close()
 * releases *state after success. PSD_ENOMEM. */
enum psd_status psd_state_open(struct psd_state *state, struct psd_worker *worker, uint32_t iteration,
			       struct psd_error *err) PSD_MUST_CHECK;
void psd_state_close(struct psd_state *state);

/* Appends the name of a tensor's late sum: the sum of the iteration `age` iterations before that of the state. */
void psd_state_name_late(struct psd_text *name, const struct psd_tensor *tensor, uint32_t age);

/* Copies the worker's loss scales into a part; called before the state is written. */
void psd_state_gather(const struct psd_state *state);
/* Takes over the values that were read: the worker's loss scales, local steps and first chunk selection. Called after
 * all parts are read. PSD_EINVAL: the file at `path` has steps that this system cannot have. */
enum psd_status psd_state_shard_map(const struct psd_state *state, const char *path,
				    struct psd_error *err) PSD_MUST_CHECK;
/* Takes a piece of a part's values, whole ones. */
typedef enum psd_status psd_state_take_fn(void *context, const void *values, uint64_t n_bytes, struct psd_error *err);
/* Calls take with the part's values in order. PSD_ENOMEM; PSD_ERUN: the device failed; statuses of take. */
enum psd_status psd_state_visit(const struct psd_state *state, const struct psd_state_part *part,
				psd_state_take_fn *take, void *context, struct psd_error *err) PSD_MUST_CHECK;
/* Writes the part's values as the next tensor. As psd_tensor_writer_add(); PSD_ENOMEM; PSD_ERUN: the device failed. */
enum psd_status psd_state_write(const struct psd_state *state, const struct psd_state_part *part,
				struct psd_tensor_writer *writer, struct psd_error *err) PSD_MUST_CHECK;
/* Reads the part from the tensor of its name; *is_found: the file has one. path: for messages. PSD_EINVAL: its type or
 * shape differs; PSD_ENOMEM; PSD_ERUN: the file was shortened, or the device failed. */
enum psd_status psd_state_read(const struct psd_state *state, const struct psd_state_part *part,
			       struct psd_tensor_file *file, const char *path, bool *is_found,
			       struct psd_error *err) PSD_MUST_CHECK;

/* Digest of all parameters, and the first value among the parts that is infinite or not a number. */
struct psd_state_look {
	uint64_t sum, weighted; /* see struct psd_wire_parameters */
	bool is_odd;
	unsigned part; /* if is_odd: its part and element */
	uint64_t element;
};
/* Looks at the first n_parts parts, at least all parameters. Sums that a loss scale may skip later count as numbers. As
 * psd_state_visit(). */
enum psd_status psd_state_look_at(const struct psd_state *state, unsigned n_parts, struct psd_state_look *look,
				  struct psd_error *err) PSD_MUST_CHECK;

/* Replaces some of the part's values, which must not be one of graph->states. PSD_ERUN: the device failed. */
enum psd_status psd_state_put(const struct psd_state *state, const struct psd_state_part *part, uint64_t first_byte,
			      const void *values, uint64_t n_bytes, struct psd_error *err) PSD_MUST_CHECK;

#endif
