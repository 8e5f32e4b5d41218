/* Copies between the memories of device and host, for data that is sent. */
#include <assert.h>

#include "real/session/worker_parts.h"

/* The copy of what `sender` has of a buffer, or sent of it. */
static enum psd_status copy_of(struct psd_worker *worker, struct psd_task task, unsigned sender, struct psd_error *err)
{
	const struct psd_op *op = &worker->program->ops[task.op];
	const struct psd_range range = psd_worker_range(worker, op);
	const bool is_out = op->kind == PSD_OP_COPY_OUT;
	struct iovec here[PSD_SEGMENTS_MAX], there[PSD_SEGMENTS_MAX];
	const unsigned n = psd_memory_find(&worker->memory, op->source, op, task.iteration, range, sender, here);
	const unsigned n_there =
		psd_memory_find(worker->on_device, op->source, op, task.iteration, range, sender, there);
	enum psd_status status = PSD_OK;

	assert(n == n_there);
	for (unsigned i = 0; i < n && !status; i++) {
		const struct iovec *from = is_out ? &there[i] : &here[i], *to = is_out ? &here[i] : &there[i];

		assert(from->iov_len == to->iov_len);
		status = worker->kind->copy(worker->device, is_out ? PSD_STREAM_COPY_OUT : PSD_STREAM_COPY_IN,
					    to->iov_base, from->iov_base, from->iov_len, err);
	}
	return status;
}

enum psd_status psd_worker_copy(struct psd_worker *worker, struct psd_task task, struct psd_error *err)
{
	const struct psd_op *op = &worker->program->ops[task.op];
	enum psd_status status = PSD_OK;

	if (op->kind == PSD_OP_COPY_IN && psd_buffers[op->source].is_encoded)
		psd_worker_judge_arrival(worker, task);
	if (psd_buffers[op->source].extent != PSD_EXTENT_EACH_FACTORS || op->kind == PSD_OP_COPY_OUT)
		return copy_of(worker, task, worker->self, err);
	/* own values are there already; in a lossy encoding all are taken as decoded */
	for (unsigned sender = 0; sender < worker->layout->workers && !status; sender++)
		if (sender != worker->self || worker->plan->wire->is_lossy)
			status = copy_of(worker, task, sender, err);
	return status;
}
