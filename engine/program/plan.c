/* Makes the plan: cuts the graph's tensors into items and chooses each item's method by the system's rule. */
#include "engine/program/plan.h"

#include <stdlib.h>

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

static bool has_factors(const struct psd_subject *subject)
{
	return subject->rows > 0;
}

static enum psd_method fastest(const struct psd_plan_item *item, unsigned allowed_methods)
{
	int best = -1;
	for (int m = 0; m < PSD_METHODS; m++) {
		if ((allowed_methods >> m & 1) == 0 || !item->alternatives[m].is_possible)
			continue;
		/* a tie keeps the earlier method: ps before sfb before adam before ring */
		if (best < 0 || item->alternatives[m].isolated_sec < item->alternatives[best].isolated_sec)
			best = m;
	}
	return (enum psd_method)best;
}

static enum psd_method choose(const struct psd_plan *plan, const struct psd_plan_item *item)
{
	const struct psd_layout *layout = &plan->layout;
	const bool by_seconds = plan->system->rule == PSD_RULE_SECONDS;
	if (plan->system->sync >= PSD_SYNC_ALL_REDUCE)
		return PSD_METHOD_RING;
	if (plan->system->sync == PSD_SYNC_HYBRID && by_seconds)
		return fastest(item, (1u << PSD_METHODS) - 1);
	if (!has_factors(&item->subject))
		return PSD_METHOD_PS;
	switch (plan->system->sync) {
	case PSD_SYNC_SFB: return PSD_METHOD_SFB;
	case PSD_SYNC_ADAM: return PSD_METHOD_ADAM;
	case PSD_SYNC_HYBRID:
		return psd_cost_hybrid_takes_sfb(&item->subject, layout->workers, layout->shards) ? PSD_METHOD_SFB
												  : PSD_METHOD_PS;
	case PSD_SYNC_SACP:
		if (by_seconds)
			return fastest(item, 1u << PSD_METHOD_SFB | 1u << PSD_METHOD_ADAM);
		return psd_cost_sacp_takes_sfb(&item->subject, layout->workers) ? PSD_METHOD_SFB : PSD_METHOD_ADAM;
	case PSD_SYNC_PS:
	case PSD_SYNC_ALL_REDUCE: break;
	}
	return PSD_METHOD_PS;
}

static void weigh_alternatives(const struct psd_plan *plan, struct psd_plan_item *item, const struct psd_rates *rates)
{
	const struct psd_layout *layout = &plan->layout;
	for (int m = 0; m < PSD_METHODS; m++) {
		struct psd_alternative *alternative = &item->alternatives[m];
		const enum psd_method method = (enum psd_method)m;
		if ((method == PSD_METHOD_SFB || method == PSD_METHOD_ADAM) && !has_factors(&item->subject))
			continue;
		alternative->is_possible = true;
		alternative->node_bytes = psd_cost_node_bytes(method, &item->subject, layout);
		alternative->isolated_sec = psd_cost_seconds(method, &item->subject, layout, rates);
	}
}

/* Slices hold whole runs of pairs, one pair for each shard at least; all slices of an item are of equal size but for
 * rounding. */
static uint64_t slices_of(const struct psd_plan *plan, const struct psd_plan_item *item)
{
	if (item->method != PSD_METHOD_PS && item->method != PSD_METHOD_ADAM)
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
		const bool is_one_item =
			input->system->unit == PSD_UNIT_LAYER ||
			(layer->n_tensors > 0 && graph->tensors[layer->first_tensor].rows > 0 &&
			 input->system->sync < PSD_SYNC_ALL_REDUCE && input->system->sync != PSD_SYNC_PS);
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

static const struct psd_pattern *widest_pattern(enum psd_method method)
{
	switch (method) {
	case PSD_METHOD_PS: return &psd_push;
	case PSD_METHOD_SFB: return &psd_broadcast;
	case PSD_METHOD_ADAM: return &psd_to_root;
	case PSD_METHOD_RING:
	case PSD_METHODS: break;
	}
	return &psd_ring;
}

static unsigned fan_in_of(const struct psd_layout *layout, enum psd_method method)
{
	const struct psd_payload payload = {.pattern = widest_pattern(method), .elements = 1, .value_bytes = 1};
	return psd_payload_fan_in(&payload, layout);
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

enum psd_status psd_plan_make(struct psd_plan *plan, const struct psd_plan_input *input, struct psd_error *err)
{
	const bool is_all_reduce = input->system->sync >= PSD_SYNC_ALL_REDUCE;
	struct psd_plan made = {
		.graph = input->graph,
		.costs = input->costs,
		.system = input->system,
		.layout = input->layout,
		.all_reduce = psd_all_reduces[is_all_reduce ? input->system->sync - PSD_SYNC_ALL_REDUCE : 0],
		.value_bytes = input->is_half ? 2 : 4,
		.machine = input->machine,
	};
	enum psd_status status = check_size(&made, input, err);
	if (status != PSD_OK)
		return status;
	const unsigned n_items = count_items(input->graph, input->system->unit);
	made.items = calloc(n_items > 0 ? n_items : 1, sizeof(*made.items));
	if (made.items == NULL)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory for a plan of %u tensors", n_items);
	cut_items(&made, input);
	/* Alternatives are weighed with the fan-in that a parameter server would see: the widest of all. */
	const struct psd_rates widest =
		psd_rates_make(&input->system->host, input->network, input->link_bps,
			       fan_in_of(&made.layout, PSD_METHOD_PS), input->costs->gemm_flops_per_sec);
	unsigned next_root = 0;
	uint64_t all_slices = 0;
	for (unsigned i = 0; i < made.n_items; i++) {
		struct psd_plan_item *item = &made.items[i];
		weigh_alternatives(&made, item, &widest);
		item->method = choose(&made, item);
		item->was_choice = has_factors(&item->subject) &&
				   (input->system->sync == PSD_SYNC_HYBRID || input->system->sync == PSD_SYNC_SACP);
		const uint64_t n_slices = slices_of(&made, item);
		all_slices += n_slices;
		if (all_slices > MOST_SLICES) {
			free(made.items);
			return psd_error_set(
				err, PSD_EINVAL, input->system->at,
				"'slice' of system '%s' cuts its tensors into more than %u parts, must be larger",
				input->system->name, (unsigned)MOST_SLICES);
		}
		item->n_slices = (unsigned)n_slices;
		if (item->method == PSD_METHOD_ADAM)
			item->root = psd_layout_shard_host(&made.layout, next_root++ % made.layout.shards);
		const unsigned fan_in = fan_in_of(&made.layout, item->method);
		made.fan_in = fan_in > made.fan_in ? fan_in : made.fan_in;
	}
	made.rates = psd_rates_make(&input->system->host, input->network, input->link_bps, made.fan_in,
				    input->costs->gemm_flops_per_sec);
	*plan = made;
	return PSD_OK;
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
