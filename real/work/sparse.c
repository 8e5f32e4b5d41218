/* Sending and applying the selected chunks of sparse gradients. */
#include "real/keep/state.h"
#include "real/work/solver.h"
#include "real/work/work.h"

struct sparse {
	struct psd_chunk_selection selection;
	struct psd_chunks *chunks; /* arguments of the device's functions; one entry for each item (bucket) */
};

/* ---- opening, checkpoints ---- */

static void keep(void *context, struct psd_state *state)
{
	struct psd_chunk_selection *selection = &((struct sparse *)context)->selection;
	const uint32_t n = psd_chunk_selection_keep(selection), next = selection->iteration + 1 - n;

	psd_state_add_vector(state, "chosen.digest", PSD_TENSOR_U64, 1,
			     &psd_chunk_selection_of(selection, next)->digest);
	psd_state_add_vector(state, "chosen.digest_before", PSD_TENSOR_U64, 1,
			     &psd_chunk_selection_of(selection, next - 1)->digest);
	psd_state_add_vector(state, "chosen", PSD_TENSOR_BOOL, (uint64_t)n * selection->plan->n_chunks,
			     selection->kept);
}

static enum psd_status take(void *context, const char *path, struct psd_error *err)
{
	(void)path, (void)err;
	psd_chunk_selection_go_on(&((struct sparse *)context)->selection);
	return PSD_OK;
}

enum psd_status psd_work_open_selection(struct psd_work *work, struct psd_error *err)
{
	struct sparse *sparse = work->states.sparse = psd_host_take(work->host, 1, sizeof(*sparse), err);

	if (!sparse)
		return PSD_ENOMEM;
	return psd_chunk_selection_open(&sparse->selection, work->host->plan,
					(struct psd_iterations){.first = work->host->options->first_iteration,
								.end = work->host->options->n_iterations},
					&work->host->arena, err);
}

static enum psd_status make_chunks(struct psd_host *host, const struct psd_plan_item *item, struct psd_chunks *chunks,
				   struct psd_error *err)
{
	const bool is_full = host->plan->sparse->feedback == PSD_FEEDBACK_FULL;
	struct psd_chunk_tensor *tensors = psd_host_take(host, item->n_tensors, sizeof(*tensors), err);

	if (!tensors)
		return PSD_ENOMEM;
	for (unsigned n = 0; n < item->n_tensors; n++) {
		const unsigned t = psd_plan_tensor(host->plan, item, n);

		tensors[n].weight = host->on_device->parameters[t];
		tensors[n].elements = host->graph->tensors[t].elements;
	}
	*chunks = (struct psd_chunks){
		.tensors = tensors,
		.n_tensors = item->n_tensors,
		.elements = item->subject.elements,
		.chunk_elements = host->plan->sparse->chunk_elements,
		.n_chunks = item->n_chunks,
		.kept_ratio = is_full ? 1.0f : (float)host->options->train->optimiser.momentum,
		.workers = host->layout->workers,
		.is_relative = host->plan->managed,
	};
	return PSD_OK;
}

struct psd_chunks *psd_work_make_chunks(struct psd_host *host, struct psd_error *err)
{
	struct psd_chunks *chunks = psd_host_take(host, host->plan->n_items, sizeof(*chunks), err);

	for (unsigned i = 0; i < host->plan->n_items && chunks; i++)
		if (make_chunks(host, &host->plan->items[i], &chunks[i], err))
			chunks = NULL;
	return chunks;
}

static enum psd_status open(struct psd_work *work, struct psd_error *err)
{
	struct psd_host *host = work->host;

	if (!host->plan->sparse)
		return PSD_OK;
	PSD_TRY(psd_work_open_selection(work, err));
	struct sparse *sparse = work->states.sparse;
	sparse->chunks = psd_work_make_chunks(host, err);
	if (!sparse->chunks)
		return PSD_ENOMEM;
	host->keepers[host->n_keepers++] =
		(struct psd_keeper){"chosen", "the selection of chunks", keep, take, NULL, sparse};
	return PSD_OK;
}

/* ---- selection ---- */

struct psd_chunk_selection *psd_work_selection(const struct psd_work *work)
{
	struct sparse *sparse = work->states.sparse;

	return sparse ? &sparse->selection : NULL;
}

static bool is_of_chunks(const struct psd_plan *plan, const struct psd_op *op)
{
	return op->item >= 0 && plan->items[op->item].method->keeps[PSD_BUFFER_CHOSEN];
}

bool psd_work_is_of_chunks(const struct psd_work *work, const struct psd_op *op)
{
	return work->states.sparse && is_of_chunks(work->host->plan, op);
}

void psd_work_draw_selection(const struct psd_work *work)
{
	psd_chunk_selection_draw(psd_work_selection(work), work->host->options->made->costed->scenario->seed);
}

/* When the norms of all workers' chunks have arrived: prepares the selection of the next iteration. */
static enum psd_status choose(struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	const struct psd_host *host = work->host;
	const unsigned norms = (unsigned)host->program->ops[task.op].item;

	struct psd_chunk_selection *selection = psd_work_selection(work);

	(void)err;
	if (host->options->replay) { /* beside replaying workers, which send no norms */
		psd_work_draw_selection(work);
		return PSD_OK;
	}
	switch (host->plan->sparse->importance) { /* without clocks by magnitude */
	case PSD_IMPORTANCE_MAGNITUDE:
		psd_chunk_selection_prepare(selection,
					    psd_memory_buffer(&host->memory, PSD_BUFFER_NORMS, norms, task.iteration));
		break;
	case PSD_IMPORTANCE_RANDOM: psd_work_draw_selection(work); break;
	case PSD_IMPORTANCE_GENERATION: psd_chunk_selection_turn(selection, false); break;
	case PSD_IMPORTANCE_FORWARD: psd_chunk_selection_turn(selection, true); break;
	}
	return PSD_OK;
}

void psd_work_adopt_selection(const struct psd_work *work)
{
	psd_chunk_selection_adopt(psd_work_selection(work));
}

uint64_t psd_work_travelling(const struct psd_work *work, struct psd_task task)
{
	const struct psd_chunk_selection *selection = psd_work_selection(work);
	const int item = work->host->program->ops[task.op].item;

	return selection ? psd_chunk_selection_of(selection, task.iteration)->travelling[item]
			 : work->host->plan->items[item].travelling;
}

static void adopt(struct psd_work *work, struct psd_task task)
{
	(void)task;
	psd_work_adopt_selection(work);
}

void psd_work_count_early(const struct psd_work *work, struct psd_worker_result *result)
{
	const struct psd_chunk_selection *selection = psd_work_selection(work);

	if (!selection || !work->host->plan->managed)
		return;
	result->early = (struct psd_early_chunks){
		.n = work->host->plan->n_chunks,
		.n_sent = selection->n_early > 0 ? selection->n_early : work->host->plan->n_chunks,
		.values_ratio = selection->sent > 0 ? (double)selection->sent_early / (double)selection->sent : 0.0,
	};
}

/* ---- chunks ---- */

struct psd_chunk_tensor *psd_work_fill_chunks(const struct psd_work *work, struct psd_task task,
					      struct psd_chunks chunks[])
{
	const struct psd_host *host = work->host;
	const unsigned i = (unsigned)host->program->ops[task.op].item;
	const struct psd_plan_item *item = &host->plan->items[i];
	const struct psd_memory *memory = host->on_device;
	const struct psd_update update = psd_solver_update(host->options->train, host->global_batch, task.iteration);
	float *const *gradients = psd_memory_gradients(memory, task.iteration);
	struct psd_chunks *of = &chunks[i];
	struct psd_chunk_tensor *tensors =
		(struct psd_chunk_tensor *)(uintptr_t)of->tensors; /* owned by the host's arena */

	for (unsigned n = 0; n < item->n_tensors; n++) {
		const unsigned t = psd_plan_tensor(host->plan, item, n);

		tensors[n].gradient = gradients[t];
		tensors[n].update = psd_solver_update_of(update, &host->graph->tensors[t]);
	}
	of->is_chosen = psd_chunk_selection_of(psd_work_selection(work), task.iteration)->is_chosen + item->first_chunk;
	of->residual = psd_memory_buffer(memory, PSD_BUFFER_RESIDUAL, i, task.iteration);
	of->history = psd_memory_kept(memory, PSD_BUFFER_HISTORY, i, task.iteration);
	of->chosen = psd_memory_buffer(memory, PSD_BUFFER_CHOSEN, i, task.iteration);
	of->norms = psd_memory_buffer(memory, PSD_BUFFER_NORMS, host->plan->n_items - 1, task.iteration) +
		    item->first_chunk;
	of->is_skipped = psd_work_scale(work, &host->program->ops[task.op])->is_skipped;
	return tensors;
}

/* Arguments for this iteration. They stay valid until the item's next operation. */
static struct psd_chunks *chunks_of(const struct psd_work *work, struct psd_task task)
{
	const struct sparse *sparse = work->states.sparse;

	psd_work_fill_chunks(work, task, sparse->chunks);
	return &sparse->chunks[work->host->program->ops[task.op].item];
}

static enum psd_status gather(struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	return psd_run_gather(work->host->kind->kernels, work->host->device, chunks_of(work, task), err);
}

static enum psd_status apply(struct psd_work *work, struct psd_task task, struct psd_error *err)
{
	return psd_run_apply_chunks(work->host->kind->kernels, work->host->device, chunks_of(work, task), err);
}

/* Operations of the chunks, and of their norms. */
static bool takes(const struct psd_plan *plan, const struct psd_op *op)
{
	return is_of_chunks(plan, op) || plan->items[op->item].method->keeps[PSD_BUFFER_NORMS];
}

/* Gathering chunks runs beside the layers, except on the device. */
const struct psd_family psd_family_sparse = {
	.takes = takes,
	.open = open,
	.rows = {{PSD_RUNS(GATHER, gather), .is_small = psd_work_has_few, .follows_device = true},
		 {PSD_RUNS(CHOOSE, choose), .finish = adopt, .is_small = psd_work_has_few},
		 {PSD_RUNS(APPLY, apply), .is_small = psd_work_has_few}},
};
