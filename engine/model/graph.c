/* Choice of the loader, and release. */
#include "engine/model/graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/model.h"
#include "engine/model/onnx/onnx.h"
#include "engine/model/prototxt.h"

static bool ends_in(const char *text, const char *ending)
{
	const size_t text_length = strlen(text), ending_length = strlen(ending);

	return text_length >= ending_length && !strcmp(text + text_length - ending_length, ending);
}

enum psd_status psd_graph_load(struct psd_graph *graph, const char *path, struct psd_error *err)
{
	if (ends_in(path, ".onnx"))
		return psd_onnx_load(graph, path, err);
	return ends_in(path, ".prototxt") ? psd_prototxt_load(graph, path, err) : psd_model_load(graph, path, err);
}

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
	*graph = (struct psd_graph){0};
}
