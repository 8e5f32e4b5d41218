/* Functions on sealed graphs. */
#include "engine/model/graph.h"

#include <math.h>
#include <stdlib.h>

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

uint64_t psd_graph_tokens(const struct psd_graph *graph)
{
	const struct psd_shape shape = graph->layers[0].shape;

	return graph->vocabulary > 0 ? (uint64_t)shape.height * shape.width : 0;
}
