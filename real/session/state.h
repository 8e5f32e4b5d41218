/* What a host keeps from one iteration to the next, as the tensors of a file: parameters, what the solver remembers,
 * gradients that were held back or come late, batch norms' statistics, ratios, the choice of chunks. All else is made
 * anew in each iteration. Values may lie in the host's memory or on its device. All calls come from the device lane's
 * thread, while no operation is under way. Private to real/session/worker*.c. */
#ifndef PSD_REAL_STATE_H
#define PSD_REAL_STATE_H

#include "real/data/tensor_file.h"
#include "real/session/worker_parts.h"

struct psd_state_part {
	struct psd_file_tensor tensor;
	/* Its values in this host's memory, and in the device's own, which count where they are in both; NULL: they are
	 * not there. */
	void *here, *there;
	const struct psd_tensor *state; /* of graph->states, whose values the device alone knows; else NULL */
	bool is_late;			/* a sum of an earlier iteration, that is applied later */
	bool is_of_item;		/* one of its buffers: */
	unsigned item;
	enum psd_buffer buffer;
};

struct psd_state {
	struct psd_worker *worker;
	struct psd_state_part *parts;
	uint32_t n_parts, parts_capacity;
	unsigned n_plain; /* of them, the first: parameters and the graph's states, which other programs look for */
	/* Of each scale its ratio, and how many sums were good since that changed; NULL: no encoding has scales. */
	float *ratios;
	int32_t *n_good;
	struct psd_arena arena;
	bool is_out_of_memory;
};

/* Before that iteration begins. Once the worker has its memory and its network. psd_state_close() releases *state after
 * success. PSD_ENOMEM. */
enum psd_status psd_state_open(struct psd_state *state, struct psd_worker *worker, uint32_t iteration,
			       struct psd_error *err) PSD_MUST_CHECK;
void psd_state_close(struct psd_state *state);

/* Adds the name of a tensor's sum of so many iterations before the state's. */
void psd_state_name_late(struct psd_text *name, const struct psd_tensor *tensor, uint32_t age);

/* Before parts are written: the ratios of the worker's scales become values of a part. */
void psd_state_gather(const struct psd_state *state);
/* After all parts have been read, the other way: the worker has its ratios, its local steps, and the choice of its
 * first iteration. PSD_EINVAL: the file at `path` has steps that this system cannot have. */
enum psd_status psd_state_shard_map(const struct psd_state *state, const char *path,
				    struct psd_error *err) PSD_MUST_CHECK;
/* The part's values are the writer's next ones. As psd_tensor_writer_add(); PSD_ENOMEM; PSD_ERUN: the device failed. */
enum psd_status psd_state_write(const struct psd_state *state, const struct psd_state_part *part,
				struct psd_tensor_writer *writer, struct psd_error *err) PSD_MUST_CHECK;
/* Takes the part's values from the tensor of its name; *is_found is false, and nothing is read, if the file has none.
 * path: for messages. PSD_EINVAL: its type or shape is another; PSD_ENOMEM; PSD_ERUN: the file was shortened, or the
 * device failed. */
enum psd_status psd_state_read(const struct psd_state *state, const struct psd_state_part *part,
			       struct psd_tensor_file *file, const char *path, bool *is_found,
			       struct psd_error *err) PSD_MUST_CHECK;

/* Values that come from elsewhere take the place of some of the part's, which is none of graph->states. PSD_ERUN: the
 * device failed. */
enum psd_status psd_state_put(const struct psd_state *state, const struct psd_state_part *part, uint64_t first_byte,
			      const void *values, uint64_t n_bytes, struct psd_error *err) PSD_MUST_CHECK;

#endif
