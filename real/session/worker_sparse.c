/* What a worker does to the chunks of a sparse plan's gradients. Source: Sun et al. 2019 (arXiv 1902.06855), section
 * 3.2; full feedback: Stich et al. 2018 (arXiv 1809.07599). */
#include <math.h>

#include "real/session/solver.h"
#include "real/session/worker_parts.h"

static float *norms_of(const struct psd_worker *worker, unsigned item, uint32_t iteration)
{
	const struct psd_plan *plan = worker->plan;

	return psd_memory_buffer(&worker->memory, PSD_BUFFER_NORMS, plan->n_items - 1, iteration) +
	       plan->items[item].first_chunk;
}

/* residual += gradient; returns its norm. */
static double add_up(float *restrict residual, const float *restrict gradient, uint64_t elements)
{
	double norm = 0.0;

	for (uint64_t e = 0; e < elements; e++) {
		residual[e] += gradient[e];
		norm += fabs((double)residual[e]);
	}
	return norm;
}

/* A chunk of residuals leaves, or what is left of it stays. */
static void settle(float *restrict residual, float *restrict chosen, float kept_ratio, uint64_t elements)
{
	for (uint64_t e = 0; e < elements; e++) {
		if (chosen)
			chosen[e] = residual[e];
		residual[e] = chosen ? 0.0f : kept_ratio * residual[e];
	}
}

void psd_worker_gather_chunks(struct psd_worker *worker, struct psd_task task)
{
	const unsigned i = (unsigned)worker->program->ops[task.op].item;
	const struct psd_plan_item *item = &worker->plan->items[i];
	const bool is_full = worker->plan->sparse->feedback == PSD_FEEDBACK_FULL;
	const float kept_ratio = is_full ? 1.0f : (float)worker->options->train->optimiser.momentum;
	float *const *gradients = psd_memory_gradients(&worker->memory, task.iteration);
	float *residual = psd_memory_buffer(&worker->memory, PSD_BUFFER_RESIDUAL, i, task.iteration);
	float *chosen = psd_memory_buffer(&worker->memory, PSD_BUFFER_CHOSEN, i, task.iteration);
	float *norms = norms_of(worker, i, task.iteration);

	for (uint32_t c = 0; c < item->n_chunks; c++) {
		const struct psd_range range = psd_chosen_range(&worker->chosen, i, c);
		const bool is_chosen = worker->chosen.now.is_chosen[item->first_chunk + c];
		struct iovec pieces[PSD_PIECES_MAX];
		const unsigned n_pieces = psd_memory_pieces(&worker->memory, gradients, i, range, pieces);
		float *next = residual + range.first;
		double norm = 0.0;

		for (unsigned p = 0; p < n_pieces; p++) {
			norm += add_up(next, pieces[p].iov_base, pieces[p].iov_len / sizeof(float));
			next += pieces[p].iov_len / sizeof(float);
		}
		settle(residual + range.first, is_chosen ? chosen : NULL, kept_ratio, range.elements);
		chosen += is_chosen ? range.elements : 0;
		norms[c] = (float)norm;
	}
}

/* Every worker has the sum: each adds its share to the norm. */
static float norm_of_sum(const float *sum, uint64_t elements, unsigned workers)
{
	double norm = 0.0;

	for (uint64_t e = 0; e < elements; e++)
		norm += fabs((double)sum[e]);
	return (float)(norm / workers);
}

/* Tensor by tensor: a chunk may begin and end within any of them. */
static void apply_chunk(struct psd_worker *worker, unsigned i, const struct psd_update *update, struct psd_range range,
			const float *sum, float *history)
{
	const struct psd_plan_item *item = &worker->plan->items[i];
	const uint64_t end = range.first + range.elements;
	uint64_t first = 0; /* of the tensor, in elements of the item */

	for (unsigned n = 0; n < item->n_tensors && first < end; n++) {
		const unsigned t = psd_plan_tensor(worker->plan, item, n);
		const struct psd_tensor *tensor = &worker->graph->tensors[t];
		const uint64_t from = range.first > first ? range.first : first;
		const uint64_t until = end < first + tensor->elements ? end : first + tensor->elements;
		const struct psd_update own = psd_solver_update_of(*update, tensor);

		if (from < until)
			psd_solver_apply(&own, worker->memory.parameters[t] + (from - first),
					 sum + (from - range.first), history + (from - range.first), until - from);
		first += tensor->elements;
	}
}

void psd_worker_apply_chunks(struct psd_worker *worker, struct psd_task task)
{
	const unsigned i = (unsigned)worker->program->ops[task.op].item;
	const struct psd_plan_item *item = &worker->plan->items[i];
	const struct psd_update update =
		psd_solver_update(worker->options->train, worker->global_batch, task.iteration);
	const float *sum = psd_memory_buffer(&worker->memory, PSD_BUFFER_CHOSEN, i, task.iteration);
	float *history = psd_memory_buffer(&worker->memory, PSD_BUFFER_HISTORY, i, task.iteration);
	float *norms = norms_of(worker, i, task.iteration);

	for (uint32_t c = 0; c < item->n_chunks; c++) {
		const struct psd_range range = psd_chosen_range(&worker->chosen, i, c);

		if (!worker->chosen.now.is_chosen[item->first_chunk + c])
			continue;
		if (!worker->scales[i].is_skipped)
			apply_chunk(worker, i, &update, range, sum, history + range.first);
		norms[c] = norm_of_sum(sum, range.elements, worker->layout->workers);
		sum += range.elements;
	}
}

void psd_worker_choose_chunks(struct psd_worker *worker, struct psd_task task)
{
	const unsigned norms = (unsigned)worker->program->ops[task.op].item;

	psd_chosen_prepare(&worker->chosen,
			   psd_memory_buffer(&worker->memory, PSD_BUFFER_NORMS, norms, task.iteration));
}
