/* Which tensors travel together. */
#include "engine/program/cutting.h"

#include "engine/encodings/low_rank.h"
#include "engine/program/choice.h"
#include "engine/program/chunks.h"

/* Adds the next tensor. A run of several layers has no factors of its own. */
static void add_tensor(struct psd_plan *plan, struct psd_plan_item *item)
{
	const struct psd_tensor *tensor = &plan->graph->tensors[psd_plan_tensor(plan, item, item->n_tensors++)];
	const bool is_one_layer = tensor->layer == plan->graph->tensors[psd_plan_tensor(plan, item, 0)].layer;

	item->layer = tensor->layer;
	item->subject.elements += tensor->elements;
	item->travelling = plan->sparse ? psd_chunks_expected(plan->sparse, item->subject.elements,
							      psd_chunks_evenly(plan->sparse))
					: item->subject.elements;
	if (plan->compress)
		item->n_blocks += psd_block_count(&plan->block, tensor->elements);
	if (plan->low_rank) {
		item->left += psd_low_rank_left(tensor, plan->low_rank);
		item->right += psd_low_rank_right(tensor, plan->low_rank);
	}
	if (tensor->rows == 0 && is_one_layer)
		return;
	item->subject.rows = is_one_layer ? tensor->rows : 0;
	item->subject.columns = is_one_layer ? tensor->columns : 0;
}

/* Backward reaches the last layer first, and within a layer the weight's gradient is sent before the bias's. What stays
 * as it starts has nothing to exchange. */
static void list_tensors(struct psd_plan *plan)
{
	for (unsigned l = plan->graph->n_layers; l-- > 0;)
		for (unsigned i = 0; i < plan->graph->layers[l].n_tensors; i++) {
			const unsigned t = plan->graph->layers[l].first_tensor + i;

			if (plan->graph->tensors[t].rate_ratio != 0.0f)
				plan->tensors[plan->n_tensors++] = t;
		}
}

/* Whether the next tensor travels with those of the item. A bias does with its weight whenever the weight can travel as
 * factors, since it goes with the first of them. */
static bool is_open(const struct psd_plan *plan, const struct psd_plan_item *item, const struct psd_tensor *next)
{
	const struct psd_system *system = plan->system;

	if (next->layer == item->layer &&
	    (system->unit == PSD_UNIT_LAYER || (item->subject.rows > 0 && psd_choice_may_take_factors(system))))
		return true;
	if (item->right > 0)
		return item->left * psd_plan_value_bytes(plan, PSD_BUFFER_LEFT) < plan->fuse_bytes;
	return item->travelling * plan->value_bytes < plan->fuse_bytes;
}

void psd_cutting_make(struct psd_plan *plan, uint32_t batch)
{
	struct psd_plan_item *item = NULL;

	list_tensors(plan);
	for (unsigned t = 0; t < plan->n_tensors; t++) {
		if (!item || !is_open(plan, item, &plan->graph->tensors[plan->tensors[t]])) {
			item = &plan->items[plan->n_items++];
			*item = (struct psd_plan_item){.first = t,
						       .subject = {.batch = batch, .value_bytes = plan->value_bytes}};
		}
		add_tensor(plan, item);
	}
}
