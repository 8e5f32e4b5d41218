/* What a host keeps from one iteration to the next, as the tensors of a file: parameters, what the solver remembers,
 * gradients that were held back, batch norms' statistics, ratios, the choice of chunks. All else of an iteration is
 * made anew. Wherever it lies, also on a device. Private to real/session/worker*.c. */
#ifndef PSD_REAL_STATE_H
#define PSD_REAL_STATE_H

#include "real/data/tensor_file.h"
#include "real/session/worker_parts.h"

/* Its values are in this host's memory, in the device's own, or in both, from which the device's count; or the device
 * alone knows them. */
struct psd_state_part {
	struct psd_file_tensor tensor;
	void *here, *there;
	const struct psd_tensor *state; /* of the graph; NULL: it is none */
};

struct psd_state {
	struct psd_worker *worker;
	struct psd_state_part *parts;
	uint32_t n_parts, parts_capacity;
	unsigned n_plain; /* the first of them, which other programs look for: parameters and the graph's states */
	float *ratios;	  /* of scales, side by side with how many sums were good since they changed */
	int32_t *n_good;
	struct psd_arena arena;
	bool is_out_of_memory;
};

/* Once the worker has its memory. psd_state_close() releases *state. PSD_ENOMEM. */
enum psd_status psd_state_open(struct psd_state *state, struct psd_worker *worker,
			       struct psd_error *err) PSD_MUST_CHECK;
void psd_state_close(struct psd_state *state);

/* Before parts are written: what they are made of becomes values. */
void psd_state_gather(const struct psd_state *state);
/* After they have been read, the other way. */
void psd_state_spread(const struct psd_state *state);
/* The part's values are the writer's next ones. */
enum psd_status psd_state_write(const struct psd_state *state, const struct psd_state_part *part,
				struct psd_tensor_writer *writer, struct psd_error *err) PSD_MUST_CHECK;
/* From the tensor of its name, if the file has it. path: for messages. PSD_EINVAL: its type or shape is another. */
enum psd_status psd_state_read(const struct psd_state *state, const struct psd_state_part *part,
			       struct psd_tensor_file *file, const char *path, bool *is_found,
			       struct psd_error *err) PSD_MUST_CHECK;

#endif
