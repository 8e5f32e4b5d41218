/* What a worker does to values before they leave and after they have arrived, where they travel in a lossy encoding. A
 * sum is decoded by its owner too, so that all workers go on with the same bits. */
#include "real/base/values.h"
#include "real/session/worker_parts.h"

enum psd_status psd_worker_open_encoding(struct psd_worker *worker, struct psd_error *err)
{
	worker->scales = psd_arena_take(&worker->arena, worker->plan->n_items * sizeof(*worker->scales));
	if (!worker->scales)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for %u items", worker->plan->n_items);
	for (unsigned i = 0; i < worker->plan->n_items; i++)
		worker->scales[i] = psd_scale_make(worker->plan->wire, worker->options->train->loss_scale);
	return PSD_OK;
}

void psd_worker_convert(struct psd_worker *worker, struct psd_task task)
{
	const struct psd_op *op = &worker->program->ops[task.op];
	const struct psd_encoding *wire = worker->plan->wire;
	const unsigned item = (unsigned)op->item;
	const bool is_arrival = psd_buffers[op->source].is_encoded;
	const struct psd_range whole = {0, psd_chosen_elements(&worker->chosen, worker->plan, item)};
	struct psd_scale *scale = &worker->scales[item];
	uint16_t *encoded = psd_memory_encoded_gradient(&worker->memory, item, task.iteration);
	const float ratio = scale->ratio;
	struct iovec pieces[PSD_PIECES_MAX];
	const unsigned n_pieces = psd_memory_find(&worker->memory, is_arrival ? op->target : op->source, op,
						  task.iteration, whole, worker->self, pieces);

	if (is_arrival && wire->is_scaled)
		psd_scale_take(scale, psd_values_are_finite(wire, encoded, whole.elements));
	for (unsigned p = 0; p < n_pieces; p++) {
		const uint64_t n = pieces[p].iov_len / sizeof(float);

		if (is_arrival)
			psd_values_decode(wire, pieces[p].iov_base, encoded, 1.0f / ratio, n);
		else
			psd_values_encode(wire, encoded, pieces[p].iov_base, ratio, n);
		encoded += n;
	}
}
