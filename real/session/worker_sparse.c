/* Sending and applying the selected chunks of sparse gradients. */
#include "real/session/solver.h"
#include "real/session/worker_parts.h"

static float *norms_of(const struct psd_worker *worker, unsigned item, uint32_t iteration)
{
	const struct psd_plan *plan = worker->plan;

	return psd_memory_buffer(worker->on_device, PSD_BUFFER_NORMS, plan->n_items - 1, iteration) +
	       plan->items[item].first_chunk;
}

static struct psd_chunk_tensor *take_tensors(struct psd_worker *worker, const struct psd_plan_item *item)
{
	struct psd_chunk_tensor *tensors = psd_arena_take(&worker->arena, item->n_tensors * sizeof(*tensors));

	for (unsigned n = 0; tensors && n < item->n_tensors; n++) {
		const unsigned t = psd_plan_tensor(worker->plan, item, n);

		tensors[n].weight = worker->on_device->parameters[t];
		tensors[n].elements = worker->graph->tensors[t].elements;
	}
	return tensors;
}

enum psd_status psd_worker_open_chunks(struct psd_worker *worker, struct psd_error *err)
{
	const struct psd_plan *plan = worker->plan;
	const bool is_full = plan->sparse->feedback == PSD_FEEDBACK_FULL;
	enum psd_status status = psd_chunk_selection_open(&worker->selection, plan, &worker->arena, err);

	worker->chunks = psd_arena_take(&worker->arena, plan->n_items * sizeof(*worker->chunks));
	for (unsigned i = 0; worker->chunks && i < plan->n_items; i++) {
		const struct psd_plan_item *item = &plan->items[i];

		worker->chunks[i] = (struct psd_chunks){
			.tensors = take_tensors(worker, item),
			.n_tensors = item->n_tensors,
			.elements = item->subject.elements,
			.chunk_elements = plan->sparse->chunk_elements,
			.n_chunks = item->n_chunks,
			.kept_ratio = is_full ? 1.0f : (float)worker->options->train->optimiser.momentum,
			.workers = worker->layout->workers,
		};
		if (!worker->chunks[i].tensors)
			worker->chunks = NULL;
	}
	if (!status && !worker->chunks)
		status = psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for %u items", plan->n_items);
	return status;
}

/* Arguments for this iteration. The tables stay valid until the item's next operation. */
static struct psd_chunks *chunks_of(struct psd_worker *worker, struct psd_task task)
{
	const unsigned i = (unsigned)worker->program->ops[task.op].item;
	const struct psd_plan_item *item = &worker->plan->items[i];
	const struct psd_memory *memory = worker->on_device;
	const struct psd_update update =
		psd_solver_update(worker->options->train, worker->global_batch, task.iteration);
	float *const *gradients = psd_memory_gradients(memory, task.iteration);
	struct psd_chunks *chunks = &worker->chunks[i];
	struct psd_chunk_tensor *tensors =
		(struct psd_chunk_tensor *)(uintptr_t)chunks->tensors; /* owned by this worker */

	for (unsigned n = 0; n < item->n_tensors; n++) {
		const unsigned t = psd_plan_tensor(worker->plan, item, n);

		tensors[n].gradient = gradients[t];
		tensors[n].update = psd_solver_update_of(update, &worker->graph->tensors[t]);
	}
	chunks->is_chosen = worker->selection.now.is_chosen + item->first_chunk;
	chunks->residual = psd_memory_buffer(memory, PSD_BUFFER_RESIDUAL, i, task.iteration);
	chunks->history = psd_memory_buffer(memory, PSD_BUFFER_HISTORY, i, task.iteration);
	chunks->chosen = psd_memory_buffer(memory, PSD_BUFFER_CHOSEN, i, task.iteration);
	chunks->norms = norms_of(worker, i, task.iteration);
	chunks->is_skipped = psd_worker_scale(worker, &worker->program->ops[task.op])->is_skipped;
	return chunks;
}

enum psd_status psd_worker_gather_chunks(struct psd_worker *worker, struct psd_task task, struct psd_error *err)
{
	return worker->kind->gather(worker->device, chunks_of(worker, task), err);
}

enum psd_status psd_worker_apply_chunks(struct psd_worker *worker, struct psd_task task, struct psd_error *err)
{
	return worker->kind->apply_chunks(worker->device, chunks_of(worker, task), err);
}

void psd_worker_draw_chunks(struct psd_worker *worker)
{
	psd_chunk_selection_draw(&worker->selection, worker->options->made->costed->scenario->seed);
}

void psd_worker_choose_chunks(struct psd_worker *worker, struct psd_task task)
{
	const unsigned norms = (unsigned)worker->program->ops[task.op].item;

	if (worker->is_beside_others)
		psd_worker_draw_chunks(worker);
	else
		psd_chunk_selection_prepare(&worker->selection, psd_memory_buffer(&worker->memory, PSD_BUFFER_NORMS,
										  norms, task.iteration));
}
