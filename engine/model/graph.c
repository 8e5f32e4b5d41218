/* Names of kinds, choice of the loader, release. */
#include "engine/model/graph.h"

#include <stdlib.h>
#include <string.h>

#include "engine/model/model.h"
#include "engine/model/prototxt.h"

const char *const psd_layer_kind_names[PSD_LAYER_KINDS + 1] = {
	[PSD_LAYER_INPUT] = "input",
	[PSD_LAYER_CONV] = "conv",
	[PSD_LAYER_POOL] = "pool",
	[PSD_LAYER_GLOBAL_POOL] = "global-pool",
	[PSD_LAYER_LRN] = "lrn",
	[PSD_LAYER_BATCH_NORM] = "batch-norm",
	[PSD_LAYER_SCALE] = "scale",
	[PSD_LAYER_RELU] = "relu",
	[PSD_LAYER_DROPOUT] = "dropout",
	[PSD_LAYER_INNER_PRODUCT] = "inner-product",
	[PSD_LAYER_CONCAT] = "concat",
	[PSD_LAYER_ADD] = "add",
	[PSD_LAYER_SOFTMAX_LOSS] = "softmax-loss",
};

static bool ends_in(const char *text, const char *ending)
{
	const size_t text_length = strlen(text), ending_length = strlen(ending);

	return text_length >= ending_length && !strcmp(text + text_length - ending_length, ending);
}

enum psd_status psd_graph_load(struct psd_graph *graph, const char *path, struct psd_error *err)
{
	return ends_in(path, ".prototxt") ? psd_prototxt_load(graph, path, err) : psd_model_load(graph, path, err);
}

void psd_graph_release(struct psd_graph *graph)
{
	for (unsigned i = 0; i < graph->n_layers; i++) {
		free(graph->layers[i].name);
		free(graph->layers[i].inputs);
	}
	for (unsigned i = 0; i < graph->n_tensors; i++)
		free(graph->tensors[i].name);
	free(graph->layers);
	free(graph->tensors);
	free(graph->name);
	*graph = (struct psd_graph){0};
}
