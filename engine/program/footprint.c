/* Sums over items and buffers. Gaps between arrays are left out. */
#include "engine/program/footprint.h"

#include "engine/program/buffer.h"

/* Elements of worker 0's parts of all slices. */
static uint64_t part_elements(const struct psd_plan *plan, const struct psd_plan_item *item)
{
	uint64_t elements = 0;

	for (unsigned s = 0; s < item->n_slices && psd_layout_is_shard(&plan->layout, 0); s++)
		elements += psd_layout_part(&plan->layout, psd_plan_slice(item, s).elements,
					    psd_layout_shard(&plan->layout, 0))
				    .elements;
	return elements;
}

static uint64_t part_blocks(const struct psd_plan *plan, const struct psd_plan_item *item)
{
	if (!psd_layout_is_shard(&plan->layout, 0))
		return 0;
	return psd_layout_part(&plan->layout, item->n_blocks, psd_layout_shard(&plan->layout, 0)).elements;
}

static uint64_t elements_of(const struct psd_plan *plan, const struct psd_plan_item *item, enum psd_buffer buffer)
{
	const struct psd_subject *subject = &item->subject;

	switch (psd_buffers[buffer].extent) {
	case PSD_EXTENT_ITEM: return subject->elements;
	case PSD_EXTENT_ROOT: return item->root == 0 ? subject->elements : 0;
	case PSD_EXTENT_PART:
	case PSD_EXTENT_EACH_PART: return part_elements(plan, item);
	case PSD_EXTENT_EACH_MEMBER: return psd_layout_n_led(&plan->layout, 0) * subject->elements;
	case PSD_EXTENT_BLOCKS: return item->n_blocks;
	case PSD_EXTENT_BLOCK_PART: return part_blocks(plan, item) * plan->block.elements;
	case PSD_EXTENT_EACH_BLOCK_PART: return plan->layout.workers * part_blocks(plan, item);
	case PSD_EXTENT_LEFT: return item->left;
	case PSD_EXTENT_RIGHT: return item->right;
	case PSD_EXTENT_EACH_FACTORS:
		return (uint64_t)plan->layout.workers * subject->batch * (subject->columns + subject->rows);
	}
	return 0;
}

static uint64_t copies_of(enum psd_buffer buffer, uint64_t n_under_way)
{
	switch (psd_buffers[buffer].life) {
	case PSD_LIFETIME_RUN: return 1;
	case PSD_LIFETIME_UNDER_WAY: return n_under_way;
	case PSD_LIFETIME_AHEAD: return 2 * n_under_way;
	}
	return 0;
}

static bool is_kept(const struct psd_plan *plan, const struct psd_plan_item *item, enum psd_buffer buffer)
{
	const struct psd_buffer_row *row = &psd_buffers[buffer];

	if (buffer == PSD_BUFFER_PARAMETER || buffer == PSD_BUFFER_GRADIENT || !psd_plan_keeps(plan, item, buffer) ||
	    ((row->is_copy || row->is_encoded) && !plan->wire->is_lossy))
		return false;
	return !plan->costs->has_own_memory || row->is_on_device || row->is_encoded;
}

/* Workspace that a GPU gives to its library of matrix products, for layers and for factors, and sums of kernels. */
static const uint64_t gpu_workspace_bytes = UINT64_C(68) << 20;

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Positions of maxima, scales and masks, one value for each value of the output. */
static bool keeps_another(const struct psd_layer *layer)
{
	return (layer->kind == &psd_layer_pool && layer->settings.pool.method == PSD_POOL_MAX) ||
	       layer->kind == &psd_layer_lrn || layer->kind == &psd_layer_dropout;
}

/* A device with memory of its own holds the samples of this iteration and of the next one. The others have room for one
 * more gradient of an output that several layers read, and for rows of an attention and their gradients. Both turn the
 * largest filter. */
static uint64_t workspace_bytes(const struct psd_plan *plan, uint64_t batch)
{
	const struct psd_graph *graph = plan->graph;
	uint64_t kept = 0, filter = 0, branch = 0, rows = 0;

	for (const struct psd_layer *layer = graph->layers; layer < graph->layers + graph->n_layers; layer++) {
		if (keeps_another(layer))
			kept += layer->write_bytes;
		if (layer->kind == &psd_layer_conv)
			filter = larger(filter, layer->parameters * sizeof(float));
		if (layer->kind == &psd_layer_add || layer->kind == &psd_layer_concat)
			branch = larger(branch, layer->write_bytes);
		if (layer->kind == &psd_layer_attention)
			rows = larger(rows, graph->layers[layer->inputs[0]].write_bytes);
	}
	if (plan->costs->has_own_memory)
		return gpu_workspace_bytes + filter + batch * (kept + 2 * graph->layers[0].write_bytes);
	return filter + batch * (kept + branch + 3 * rows);
}

/* Running statistics, and gradients that layers with shared parameters add. */
static uint64_t shared_bytes(const struct psd_graph *graph)
{
	uint64_t elements = 0;

	for (unsigned s = 0; s < graph->n_states; s++)
		elements += graph->states[s].elements;
	for (unsigned l = 0; l < graph->n_layers; l++)
		for (unsigned i = 0; i < graph->layers[l].n_shared; i++)
			elements += graph->tensors[graph->layers[l].first_tensor + i].elements;
	return elements * sizeof(float);
}

struct psd_footprint psd_footprint_make(const struct psd_program *program, uint64_t batch)
{
	const struct psd_plan *plan = program->plan;
	const uint64_t n_under_way = program->window - 1;
	const bool is_half = plan->value_bytes < sizeof(float); /* updates are those of parameters in fp32 */
	struct psd_footprint made = {
		.parameters_bytes = plan->graph->parameters * (is_half ? sizeof(float) + 2 : sizeof(float)),
		.gradients_bytes =
			plan->graph->parameters * plan->value_bytes * (n_under_way + (plan->micro_batches > 1)),
		.activations_bytes = plan->graph->activation_bytes / sizeof(float) * plan->value_bytes * batch,
		.differentials_bytes = plan->graph->gradient_bytes / sizeof(float) * plan->value_bytes * batch,
		.other_bytes = workspace_bytes(plan, batch) + shared_bytes(plan->graph),
	};

	for (unsigned i = 0; i < plan->n_items; i++)
		for (unsigned b = 0; b < PSD_BUFFERS; b++) {
			const enum psd_buffer buffer = (enum psd_buffer)b;
			const bool is_sum = psd_buffers[b].extent == PSD_EXTENT_EACH_PART;
			const unsigned value_bytes =
				is_sum ? (unsigned)sizeof(float) : psd_plan_value_bytes(plan, buffer);

			if (!is_kept(plan, &plan->items[i], buffer))
				continue;
			const uint64_t bytes = elements_of(plan, &plan->items[i], buffer) * value_bytes *
					       copies_of(buffer, n_under_way);

			if (buffer == PSD_BUFFER_HISTORY || buffer == PSD_BUFFER_SQUARES ||
			    buffer == PSD_BUFFER_PART_HISTORY || buffer == PSD_BUFFER_PART_SQUARES)
				made.optimiser_bytes += bytes;
			else
				made.buffers_bytes += bytes;
		}
	return made;
}

uint64_t psd_footprint_bytes(const struct psd_footprint *footprint)
{
	return footprint->parameters_bytes + footprint->gradients_bytes + footprint->optimiser_bytes +
	       footprint->buffers_bytes + footprint->activations_bytes + footprint->differentials_bytes +
	       footprint->other_bytes;
}
