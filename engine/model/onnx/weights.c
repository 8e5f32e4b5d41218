/* Which values of the file parameters and statistics have. Noted as layers are added, read when somebody asks. */
#include <string.h>

#include "engine/model/onnx/parts.h"

/* Values that lie as psd's tensor wants them, seen through `value`'s view. */
struct psd_onnx_weight {
	const struct psd_onnx_weight *next;
	unsigned layer;
	const char *role; /* of the tensor or state */
	struct psd_onnx_value value;
};

enum psd_status psd_onnx_note(struct psd_onnx *onnx, unsigned layer, const char *role,
			      const struct psd_onnx_value *value, const unsigned order[])
{
	struct psd_onnx_weight *weight;

	if (value->kind != PSD_ONNX_CONSTANT || !value->origin || value->is_scattered ||
	    onnx->build.graph.layers[layer].n_shared)
		return PSD_OK;
	weight = psd_arena_take(&onnx->arena, sizeof(*weight));
	if (!weight)
		return psd_onnx_no_memory(onnx);
	*weight = (struct psd_onnx_weight){.next = onnx->weights, .layer = layer, .role = role, .value = *value};
	if (order && !psd_onnx_view_transpose(&weight->value.view, order))
		return PSD_OK;
	onnx->weights = weight;
	return PSD_OK;
}

bool psd_onnx_is_noted(const struct psd_onnx *onnx, unsigned layer, const char *role,
		       const struct psd_onnx_value *value, const unsigned order[])
{
	const struct psd_onnx_weight *weight = onnx->weights;
	const uint64_t elements = psd_onnx_elements(value);
	struct psd_onnx_view one = value->view, other;

	while (weight && (weight->layer != layer || strcmp(weight->role, role) != 0))
		weight = weight->next;
	if (!weight || !value->origin || weight->value.origin != value->origin || value->is_scattered)
		return false;
	other = weight->value.view;
	if ((order && !psd_onnx_view_transpose(&one, order)) || !psd_onnx_view_reshape(&one, &elements, 1) ||
	    !psd_onnx_view_reshape(&other, &elements, 1) || one.offset != other.offset ||
	    !psd_onnx_view_align(&one, &other))
		return false;
	for (unsigned d = 0; d < psd_onnx_view_digits(&one); d++)
		if (one.digits[d].stride != other.digits[d].stride)
			return false;
	return true;
}

/* An axis of 1 in front for each that it lacks. */
static struct psd_onnx_view as_long(const struct psd_onnx_view *view, unsigned n_axes)
{
	struct psd_onnx_view longer = {.offset = view->offset};

	while (longer.n_axes + view->n_axes < n_axes)
		psd_onnx_view_add_axis(&longer);
	for (unsigned a = 0; a < view->n_axes; a++)
		psd_onnx_view_add_axis_of(&longer, view, a);
	return longer;
}

static struct psd_onnx_view without_batch(const struct psd_onnx_view *view)
{
	struct psd_onnx_view rest = {.layer = view->layer, .offset = view->offset};

	for (unsigned a = 0; a < view->n_axes; a++) {
		psd_onnx_view_add_axis(&rest);
		for (unsigned d = psd_onnx_view_first(view, a); d < view->ends[a]; d++)
			if (view->digits[d].stride != PSD_ONNX_BATCH)
				psd_onnx_view_add_digit(&rest, view->digits[d].size, view->digits[d].stride);
	}
	return rest;
}

enum psd_status psd_onnx_note_as(struct psd_onnx *onnx, unsigned layer, const char *role,
				 const struct psd_onnx_value *value, const struct psd_onnx_view *data)
{
	struct psd_onnx_value ordered = *value;
	struct psd_onnx_view like = without_batch(data), by_memory = {.offset = value->view.offset};
	unsigned order[PSD_ONNX_DIGITS_MAX];
	unsigned n;

	ordered.view = as_long(&value->view, data->n_axes);
	if (!psd_onnx_view_align(&ordered.view, &like))
		return PSD_OK;
	n = psd_onnx_in_memory_order(&like, order);
	psd_onnx_view_add_axis(&by_memory);
	for (unsigned d = 0; d < n; d++)
		psd_onnx_view_add_digit(&by_memory, ordered.view.digits[order[d]].size,
					ordered.view.digits[order[d]].stride);
	ordered.view = by_memory;
	return psd_onnx_note(onnx, layer, role, &ordered, NULL);
}

/* ---- reading ---- */

static const struct psd_onnx_weight *find(const struct psd_onnx *onnx, const struct psd_graph *graph,
					  const struct psd_tensor *tensor)
{
	const size_t length = strlen(graph->layers[tensor->layer].name);

	for (const struct psd_onnx_weight *weight = onnx->weights; weight; weight = weight->next)
		if (weight->layer == tensor->layer && !strcmp(weight->role, tensor->name + length + 1))
			return weight;
	return NULL;
}

enum psd_status psd_onnx_read_weight(const struct psd_onnx *onnx, const struct psd_graph *graph,
				     const struct psd_tensor *tensor, float values[], bool *is_there)
{
	const struct psd_onnx_weight *weight = find(onnx, graph, tensor);
	struct psd_onnx_source source;
	uint64_t elements = 1;
	enum psd_status status;

	*is_there = false;
	for (unsigned a = 0; weight && a < weight->value.view.n_axes; a++)
		elements *= psd_onnx_view_side(&weight->value.view, a);
	if (!weight || elements != tensor->elements)
		return PSD_OK;
	*is_there = true;
	if (!values)
		return psd_onnx_note_input(onnx, weight->value.origin);
	status = psd_onnx_source_open(&source, onnx, weight->value.origin);
	if (status)
		return status;
	for (uint64_t e = 0; e < elements; e++)
		values[e] = (float)psd_onnx_source_number(&source, psd_onnx_place(&weight->value.view, e));
	psd_onnx_source_close(&source);
	return PSD_OK;
}
