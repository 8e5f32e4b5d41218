/* Values of the file for parameters and statistics: recorded when layers are added, read later. */
#include <string.h>

#include "engine/model/onnx/parts.h"

/* The view of `value` has the order of psd's tensor. */
struct psd_onnx_weight {
	const struct psd_onnx_weight *next;
	unsigned layer;
	const char *role; /* name of the tensor or state, without the layer's */
	struct psd_onnx_value value;
};

enum psd_status psd_onnx_bind(struct psd_onnx *onnx, unsigned layer, const char *role,
			      const struct psd_onnx_value *value, const unsigned order[])
{
	struct psd_onnx_weight *weight;

	if (value->kind == PSD_ONNX_CONSTANT && value->origin && value->origin->name)
		onnx->used[psd_onnx_number_of(onnx, value->origin->name)] += psd_onnx_elements(value);
	if (value->kind == PSD_ONNX_CONSTANT)
		PSD_TRY(psd_onnx_note_counted(onnx, value));
	if (value->kind != PSD_ONNX_CONSTANT || !value->origin || value->is_gathered ||
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

bool psd_onnx_is_bound(const struct psd_onnx *onnx, unsigned layer, const char *role,
		       const struct psd_onnx_value *value, const unsigned order[])
{
	const struct psd_onnx_weight *weight = onnx->weights;
	struct psd_onnx_view view = value->view;

	while (weight && (weight->layer != layer || strcmp(weight->role, role) != 0))
		weight = weight->next;
	if (!weight || !value->origin || weight->value.origin != value->origin || value->is_gathered)
		return false;
	return (!order || psd_onnx_view_transpose(&view, order)) &&
	       psd_onnx_view_is_same_list(&view, &weight->value.view);
}

enum psd_status psd_onnx_bind_broadcast(struct psd_onnx *onnx, unsigned layer, const char *role,
					const struct psd_onnx_value *value, const struct psd_onnx_view *data)
{
	struct psd_onnx_value ordered = *value;
	struct psd_onnx_view like = psd_onnx_view_without(data, PSD_ONNX_BATCH);
	struct psd_onnx_view by_memory = {.offset = value->view.offset};
	const uint64_t ones[PSD_ONNX_AXES_MAX] = {1, 1, 1, 1, 1, 1, 1, 1};
	unsigned order[PSD_ONNX_DIGITS_MAX], n;

	if (!psd_onnx_view_expand(&ordered.view, ones, data->n_axes) || !psd_onnx_view_align(&ordered.view, &like))
		return PSD_OK;
	n = psd_onnx_memory_order(&like, order);
	psd_onnx_view_add_axis(&by_memory);
	for (unsigned d = 0; d < n; d++)
		psd_onnx_view_add_digit(&by_memory, ordered.view.digits[order[d]].size,
					ordered.view.digits[order[d]].stride);
	ordered.view = by_memory;
	return psd_onnx_bind(onnx, layer, role, &ordered, NULL);
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

	*is_there = false;
	for (unsigned a = 0; weight && a < weight->value.view.n_axes; a++)
		elements *= psd_onnx_view_dim(&weight->value.view, a);
	if (!weight || elements != tensor->elements)
		return PSD_OK;
	*is_there = true;
	if (!values)
		return psd_onnx_note_input(onnx, weight->value.origin);
	PSD_TRY(psd_onnx_source_open(&source, onnx, weight->value.origin));
	for (uint64_t e = 0; e < elements; e++)
		values[e] = (float)psd_onnx_source_number(&source, psd_onnx_offset(&weight->value.view, e));
	psd_onnx_source_close(&source);
	return PSD_OK;
}
