/* Sums over items and buffers. Gaps between arrays are left out. */
#include "engine/program/footprint.h"

#include "engine/program/view.h"

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

	if (buffer == PSD_BUFFER_PARAMETER || buffer == PSD_BUFFER_OWN || buffer == PSD_BUFFER_GRADIENT ||
	    !psd_plan_keeps(plan, item, buffer) || ((row->is_copy || row->is_encoded) && !plan->wire->is_lossy))
		return false;
	return !plan->costs->has_own_memory || row->is_on_device || row->is_encoded;
}

/* Workspace that a GPU gives to its library of matrix products, for layers and for factors, and sums of kernels. */
static const uint64_t gpu_workspace_bytes = UINT64_C(68) << 20;

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Positions of maxima, scales and masks, one value for each value of the output. A GPU draws masks again. */
static bool keeps_another(const struct psd_layer *layer, bool is_gpu)
{
	return (layer->kind == &psd_layer_pool && layer->settings.pool.method == PSD_POOL_MAX) ||
	       layer->kind == &psd_layer_lrn || (layer->kind == &psd_layer_dropout && !is_gpu);
}

/* A device with memory of its own holds the samples of this iteration and of the next one. The others have room for one
 * more gradient of an output that several layers read, and for rows of an attention and their gradients. Both turn the
 * largest filter. */
static uint64_t workspace_bytes(const struct psd_plan *plan, uint64_t batch)
{
	const struct psd_graph *graph = plan->graph;
	uint64_t kept = 0, filter = 0, branch = 0, rows = 0;

	for (const struct psd_layer *layer = graph->layers; layer < graph->layers + graph->n_layers; layer++) {
		if (keeps_another(layer, plan->costs->has_own_memory))
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

/* Elements of items that take turns in n_slots pieces of memory, each of which is for the largest of its items. */
static uint64_t in_turns(const struct psd_plan *plan, unsigned n_slots,
			 bool (*takes_turns)(const struct psd_plan *plan, const struct psd_plan_item *item))
{
	uint64_t elements = 0;

	for (unsigned slot = 0; slot < n_slots; slot++) {
		uint64_t largest = 0;

		for (unsigned i = slot; i < plan->n_items; i += n_slots)
			if (takes_turns(plan, &plan->items[i]))
				largest = larger(largest, plan->items[i].subject.elements);
		elements += largest;
	}
	return elements;
}

/* Values of whole gradients at a time. */
static uint64_t gradients_of(const struct psd_plan *plan)
{
	uint64_t elements = plan->graph->parameters;
	unsigned n_slots = 0;

	for (unsigned i = 0; i < plan->n_items; i++)
		if (psd_plan_shares_gradients(plan, &plan->items[i])) {
			elements -= plan->items[i].subject.elements;
			n_slots = plan->items[i].method->gradient_slots;
		}
	return elements + in_turns(plan, n_slots, psd_plan_shares_gradients);
}

/* Parameters that worker 0 updates, and whole ones that it has at a time. */
struct resident {
	uint64_t updated, whole;
	bool gathers; /* the two are different memory */
};

static struct resident parameters_of(const struct psd_plan *plan)
{
	const uint64_t parameters = plan->graph->parameters;
	struct resident of = {parameters, parameters, false};

	for (unsigned i = 0; i < plan->n_items; i++) {
		const struct psd_plan_item *item = &plan->items[i];

		if (item->n_tensors > 0)
			of.updated -= item->subject.elements - psd_plan_updated(plan, item, 0).elements;
		of.gathers = of.gathers || (item->method->gathers && plan->layout.workers > 1);
		if (psd_plan_shares_parameters(plan, item))
			of.whole -= item->subject.elements;
	}
	of.whole += in_turns(plan, plan->system->prefetch + 1, psd_plan_shares_parameters);
	return of;
}

/* Updates are those of parameters in fp32. Layers take these, or copies: in 16 bits, or gathered ones. */
static uint64_t parameters_bytes(const struct psd_plan *plan)
{
	const struct resident of = parameters_of(plan);
	const bool has_copies = plan->value_bytes < sizeof(float) || of.gathers;

	return of.whole * plan->value_bytes + (has_copies ? of.updated * sizeof(float) : 0);
}

static bool is_optimiser_state(enum psd_buffer buffer)
{
	return buffer == PSD_BUFFER_HISTORY || buffer == PSD_BUFFER_SQUARES || buffer == PSD_BUFFER_OUTER ||
	       buffer == PSD_BUFFER_OWN_HISTORY || buffer == PSD_BUFFER_PART_HISTORY ||
	       buffer == PSD_BUFFER_PART_SQUARES || buffer == PSD_BUFFER_PART_OUTER;
}

/* Bytes of a sample, in fp32. */
static uint64_t activation_bytes(const struct psd_plan *plan)
{
	return plan->costs->recomputes ? plan->graph->recomputed_bytes : plan->graph->activation_bytes;
}

struct psd_footprint psd_footprint_make(const struct psd_program *program, uint64_t batch)
{
	const struct psd_plan *plan = program->plan;
	const uint64_t n_under_way = psd_program_under_way(program);
	struct psd_footprint made = {
		.parameters_bytes = parameters_bytes(plan),
		.gradients_bytes =
			gradients_of(plan) * plan->value_bytes * (n_under_way + psd_plan_adds_gradients(plan)),
		.activations_bytes = activation_bytes(plan) / sizeof(float) * plan->value_bytes * batch,
		.differentials_bytes = plan->graph->gradient_bytes / sizeof(float) * plan->value_bytes * batch,
		.other_bytes = workspace_bytes(plan, batch) + shared_bytes(plan->graph),
	};

	for (unsigned i = 0; i < plan->n_items; i++)
		for (unsigned b = 0; b < PSD_BUFFERS; b++) {
			const enum psd_buffer buffer = (enum psd_buffer)b;
			const bool is_sum = psd_buffer_is_sum(buffer);
			const uint64_t value_bytes = is_sum ? sizeof(float)
							    : psd_plan_times(plan, &plan->items[i], buffer, 0) *
								      psd_plan_value_bytes(plan, buffer);

			if (!is_kept(plan, &plan->items[i], buffer))
				continue;
			const uint64_t bytes = psd_plan_values(plan, &plan->items[i], buffer, 0) * value_bytes *
					       copies_of(buffer, n_under_way);

			if (is_optimiser_state(buffer))
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
