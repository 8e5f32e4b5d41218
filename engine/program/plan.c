/* Makes the plan: cuts the graph's tensors into items and chooses each item's method by the system's rule. */
#include "engine/program/plan.h"

#include <stdlib.h>

#include "engine/program/choice.h"

/* Parts of all tensors together: more are more operations than a run can hold. */
enum { MOST_SLICES = 100000 };

static struct psd_subject subject_of(const struct psd_graph *graph, unsigned first_tensor, unsigned n_tensors,
				     uint32_t batch, unsigned value_bytes)
{
	struct psd_subject subject = {.batch = batch, .value_bytes = value_bytes};
	for (unsigned t = first_tensor; t < first_tensor + n_tensors; t++) {
		const struct psd_tensor *tensor = &graph->tensors[t];
		subject.elements += tensor->elements;
		if (tensor->rows > 0) {
			subject.rows = tensor->rows;
			subject.columns = tensor->columns;
		}
	}
	return subject;
}

/* Slices hold whole runs of pairs, one pair for each shard at least; all slices of an item are of equal size but for
 * rounding. */
static uint64_t slices_of(const struct psd_plan *plan, const struct psd_plan_item *item)
{
	if (!item->method->is_sliced)
		return 1;
	const uint64_t row_bytes = plan->system->pair_bytes * plan->layout.shards;
	const uint64_t slice_bytes = plan->system->slice_bytes > row_bytes ? plan->system->slice_bytes : row_bytes;
	const uint64_t bytes = item->subject.elements * item->subject.value_bytes;
	return bytes == 0 ? 1 : (bytes - 1) / slice_bytes + 1;
}

static unsigned count_items(const struct psd_graph *graph, enum psd_unit unit)
{
	unsigned n_items = 0;
	for (unsigned l = 0; l < graph->n_layers; l++)
		n_items += unit == PSD_UNIT_TENSOR ? graph->layers[l].n_tensors : graph->layers[l].n_tensors > 0;
	return n_items;
}

/* Backward reaches the last layer first, and within a layer the weight's gradient is sent before the bias's. A bias
 * travels with its weight whenever the weight can travel as factors, since it goes with the first of them. */
static void cut_items(struct psd_plan *plan, const struct psd_plan_input *input)
{
	const struct psd_graph *graph = input->graph;
	plan->n_items = 0;
	for (unsigned l = graph->n_layers; l-- > 0;) {
		const struct psd_layer *layer = &graph->layers[l];
		const bool is_one_item = input->system->unit == PSD_UNIT_LAYER ||
					 (layer->n_tensors > 0 && graph->tensors[layer->first_tensor].rows > 0 &&
					  psd_choice_may_take_factors(input->system));
		const unsigned tensors_per_item = is_one_item ? layer->n_tensors : 1;
		for (unsigned t = 0; t < layer->n_tensors; t += tensors_per_item) {
			struct psd_plan_item *item = &plan->items[plan->n_items++];
			*item = (struct psd_plan_item){
				.layer = l,
				.first_tensor = layer->first_tensor + t,
				.n_tensors = tensors_per_item,
			};
			item->subject = subject_of(graph, item->first_tensor, tensors_per_item, input->batch,
						   plan->value_bytes);
		}
	}
}

static unsigned fan_in_of(const struct psd_layout *layout, const struct psd_method *method)
{
	return psd_payload_fan_in(&(struct psd_payload){.pattern = method->pattern, .elements = 1, .value_bytes = 1},
				  layout);
}

static struct psd_rates rates_of(const struct psd_plan_input *input, unsigned fan_in)
{
	return psd_rates_make(&input->system->host, input->network, input->link_bps, fan_in,
			      input->costs->gemm_flops_per_sec);
}

/* Bytes are counted in 64 bits, over all nodes and all operations of an iteration. */
static enum psd_status check_size(const struct psd_plan *plan, const struct psd_plan_input *input,
				  struct psd_error *err)
{
	const double hosts = psd_layout_hosts(&plan->layout);
	double values = 0.0;
	for (unsigned t = 0; t < input->graph->n_tensors; t++) {
		const struct psd_tensor *tensor = &input->graph->tensors[t];
		values += (double)tensor->elements +
			  (double)input->batch * ((double)tensor->rows + (double)tensor->columns);
	}
	if (8.0 * values * plan->value_bytes * hosts * plan->layout.workers_per_node < 9e18)
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, input->system->at,
			     "system '%s' on %u workers would send more bytes in an iteration than 64 bits can count",
			     input->system->name, plan->layout.workers);
}

static enum psd_status settle_items(struct psd_plan *plan, const struct psd_plan_input *input, struct psd_error *err)
{
	unsigned next_root = 0, most_senders = 0;
	uint64_t all_slices = 0;

	for (unsigned i = 0; i < plan->n_items; i++) {
		struct psd_plan_item *item = &plan->items[i];
		const enum psd_status status = psd_choice_make(&item->method, plan, item, err);
		if (status != PSD_OK)
			return status;
		const uint64_t n_slices = slices_of(plan, item);
		all_slices += n_slices;
		if (all_slices > MOST_SLICES)
			return psd_error_set(
				err, PSD_EINVAL, plan->system->at,
				"'slice' of system '%s' cuts its tensors into more than %u parts, must be larger",
				plan->system->name, (unsigned)MOST_SLICES);
		item->n_slices = (unsigned)n_slices;
		if (item->method->has_root)
			item->root = psd_layout_shard_host(&plan->layout, next_root++ % plan->layout.shards);
		const unsigned senders = fan_in_of(&plan->layout, item->method);
		most_senders = senders > most_senders ? senders : most_senders;
	}
	plan->rates = rates_of(input, most_senders);
	return PSD_OK;
}

enum psd_status psd_plan_make(struct psd_plan *plan, const struct psd_plan_input *input, struct psd_error *err)
{
	struct psd_plan made = {
		.graph = input->graph,
		.costs = input->costs,
		.system = input->system,
		.layout = input->layout,
		.value_bytes = input->is_half ? 2 : 4,
		.machine = input->machine,
		.alone_rates = rates_of(input, fan_in_of(&input->layout, &psd_method_ps)),
	};
	psd_choice_candidates(&made);
	enum psd_status status = check_size(&made, input, err);
	if (status != PSD_OK)
		return status;
	const unsigned n_items = count_items(input->graph, input->system->unit);
	made.items = calloc(n_items > 0 ? n_items : 1, sizeof(*made.items));
	if (made.items == NULL)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a plan of %u tensors", n_items);
	cut_items(&made, input);
	status = settle_items(&made, input, err);
	if (status != PSD_OK)
		psd_plan_release(&made);
	else
		*plan = made;
	return status;
}

struct psd_range psd_plan_slice(const struct psd_plan_item *item, unsigned slice)
{
	const uint64_t whole = item->subject.elements / item->n_slices;
	const uint64_t rest = item->subject.elements % item->n_slices;
	return (struct psd_range){slice * whole + (slice < rest ? slice : rest), whole + (slice < rest ? 1 : 0)};
}

void psd_plan_release(struct psd_plan *plan)
{
	free(plan->items);
	*plan = (struct psd_plan){0};
}
