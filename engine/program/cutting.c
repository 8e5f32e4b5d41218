/* Which tensors travel together. */
#include "engine/program/cutting.h"

#include <math.h>

#include "engine/program/choice.h"
#include "engine/program/chunks.h"

enum { LEAST_GATHERED_BYTES = 4096 };

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
	return item->travelling * plan->value_bytes < plan->fuse_bytes;
}

static void cut_items(struct psd_plan *plan, uint32_t batch, uint64_t fuse_bytes)
{
	struct psd_plan_item *item = NULL;

	plan->fuse_bytes = fuse_bytes;
	plan->n_items = 0;
	for (unsigned t = 0; t < plan->n_tensors; t++) {
		if (!item || !is_open(plan, item, &plan->graph->tensors[plan->tensors[t]])) {
			item = &plan->items[plan->n_items++];
			*item = (struct psd_plan_item){.first = t,
						       .subject = {.batch = batch, .value_bytes = plan->value_bytes}};
		}
		add_tensor(plan, item);
	}
}

/* ---- how much is gathered ---- */

/* By the method that it would take. */
static enum psd_status weigh_item(const struct psd_plan *plan, const struct psd_plan_item *item, double *sec,
				  struct psd_error *err)
{
	struct psd_alternative alternatives[PSD_CANDIDATES];
	const struct psd_method *method;
	enum psd_status status = psd_choice_make(&method, plan, item, err);

	if (status == PSD_OK)
		status = psd_choice_weigh(alternatives, plan, item, err);
	for (unsigned m = 0; m < plan->n_candidates && status == PSD_OK; m++)
		if (plan->candidates[m] == method)
			*sec = alternatives[m].isolated_sec;
	return status;
}

/* Work of the device, on its own, from the last layer's backward pass down to this one's. */
static double backward_sec(const struct psd_plan *plan, unsigned layer)
{
	double sec = 0.0;

	for (unsigned l = layer; l < plan->graph->n_layers; l++)
		sec += plan->costs->backward_sec[l];
	return sec;
}

/* From where backward begins to its end and the last item's. The device works at full speed while nothing travels. */
static enum psd_status predict_end(const struct psd_plan *plan, double *end_sec, struct psd_error *err)
{
	const bool is_sequential = plan->system->schedule == PSD_SCHEDULE_SEQUENTIAL;
	const double speed_ratio = 1.0 - plan->system->host.overlap_ratio, all_sec = backward_sec(plan, 0);
	enum psd_status status = PSD_OK;
	double now_sec = 0.0, worked_sec = 0.0, item_sec = 0.0;

	for (unsigned i = 0; i < plan->n_items && status == PSD_OK; i++) {
		const double wait_sec =
			fmax(0.0, backward_sec(plan, is_sequential ? 0 : plan->items[i].layer) - worked_sec);

		status = weigh_item(plan, &plan->items[i], &item_sec, err);
		now_sec += wait_sec + item_sec;
		worked_sec = fmin(all_sec, worked_sec + wait_sec + speed_ratio * item_sec);
	}
	*end_sec = now_sec + all_sec - worked_sec;
	return status;
}

enum psd_status psd_cutting_make(struct psd_plan *plan, uint32_t batch, struct psd_error *err)
{
	uint64_t best_bytes = 0;
	double best_sec = 0.0, end_sec;
	enum psd_status status = PSD_OK;

	list_tensors(plan);
	cut_items(plan, batch, plan->fuse_bytes);
	if (!plan->system->finds_fuse)
		return PSD_OK;
	if (plan->layout.workers == 1) { /* nothing travels that could begin early */
		cut_items(plan, batch, plan->graph->parameters * plan->value_bytes);
		return PSD_OK;
	}
	cut_items(plan, batch, 0);
	status = predict_end(plan, &best_sec, err);
	for (uint64_t bytes = LEAST_GATHERED_BYTES; plan->n_items > 1 && status == PSD_OK; bytes *= 2) {
		cut_items(plan, batch, bytes);
		status = predict_end(plan, &end_sec, err);
		if (status == PSD_OK && end_sec < best_sec) {
			best_sec = end_sec;
			best_bytes = bytes;
		}
	}
	cut_items(plan, batch, best_bytes);
	return status;
}
