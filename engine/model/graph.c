/* Functions on sealed graphs. */
#include "engine/model/graph.h"

#include <math.h>
#include <stdlib.h>

#include "engine/base/saturate.h"
#include "engine/model/layer.h"

float psd_tensor_bilinear(const struct psd_tensor *tensor, uint64_t e)
{
	const uint32_t side = tensor->dims[3];
	const double half = ceil(side / 2.0), middle = (side - 1) / (2 * half);
	const double row = (double)(e / side % side) / half, column = (double)(e % side) / half;

	return (float)((1 - fabs(row - middle)) * (1 - fabs(column - middle)));
}

static void release_tensors(struct psd_tensor *tensors, unsigned n_tensors)
{
	for (unsigned i = 0; i < n_tensors; i++)
		free(tensors[i].name);
	free(tensors);
}

void psd_graph_release(struct psd_graph *graph)
{
	for (unsigned i = 0; i < graph->n_layers; i++) {
		free(graph->layers[i].name);
		free(graph->layers[i].inputs);
	}
	release_tensors(graph->tensors, graph->n_tensors);
	release_tensors(graph->states, graph->n_states);
	free(graph->layers);
	free(graph->name);
	free(graph->remarks);
	free(graph->doubts);
	*graph = (struct psd_graph){0};
}

struct psd_graph_share psd_graph_predicted_only(const struct psd_graph *graph)
{
	struct psd_graph_share share = {.first = NULL};
	const double all_flops = (double)graph->forward_flops + (double)graph->backward_flops;
	double flops = 0, parameters = 0;

	for (unsigned l = 0; l < graph->n_layers; l++) {
		const struct psd_layer *layer = &graph->layers[l];

		if (!layer->kind->is_predicted_only && (l == 0 || layer->n_inputs))
			continue;
		share.n_layers++;
		share.first = share.first ? share.first : layer->name;
		flops += (double)layer->forward_flops + (double)layer->backward_flops;
		parameters += layer->n_shared ? 0 : (double)layer->parameters;
	}
	share.flops_ratio = all_flops > 0 ? flops / all_flops : 0;
	share.parameters_ratio = graph->parameters ? parameters / (double)graph->parameters : 0;
	return share;
}

uint64_t psd_graph_tokens(const struct psd_graph *graph)
{
	const struct psd_shape shape = graph->layers[0].shape;

	return graph->vocabulary > 0 ? (uint64_t)shape.height * shape.width : 0;
}

uint64_t psd_graph_product_flops(const struct psd_graph *graph)
{
	uint64_t all = 0;

	for (unsigned l = 0; l < graph->n_layers; l++) {
		const struct psd_layer *layer = &graph->layers[l];
		const uint64_t positions = (uint64_t)layer->shape.height * layer->shape.width;

		if (layer->kind == &psd_layer_attention)
			all = psd_saturated_add(all,
						psd_saturated_mul(4 * positions, positions * layer->shape.channels));
		else if (layer->kind == &psd_layer_conv || layer->kind == &psd_layer_deconv ||
			 layer->kind == &psd_layer_inner_product ||
			 (layer->kind == &psd_layer_other && layer->settings.other.is_product))
			all = psd_saturated_add(all, layer->forward_flops);
	}
	return all;
}
