/* The builder behind the loaders. Refuses cycles by construction: inputs are numbers of layers that are already there.
 */
#include "engine/model/graph_build.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/saturate.h"
#include "engine/model/layer.h"

const struct psd_window psd_window_default = {
	.kernel_height = 1,
	.kernel_width = 1,
	.stride_height = 1,
	.stride_width = 1,
	.dilation_height = 1,
	.dilation_width = 1,
	.groups = 1,
};

static enum psd_status out_of_memory(struct psd_place at, struct psd_error *err)
{
	return psd_error_set(err, PSD_ENOMEM, (struct psd_place){.path = at.path}, "out of memory");
}

/* Makes room for one more layer and two more tensors. */
static bool make_room(struct psd_graph_build *build)
{
	struct psd_graph *graph = &build->graph;

	if (graph->n_layers == build->layer_room) {
		const unsigned room = build->layer_room ? 2 * build->layer_room : 64;
		struct psd_layer *layers = realloc(graph->layers, room * sizeof(*layers));
		bool *is_trained;

		if (!layers)
			return false;
		graph->layers = layers;
		is_trained = realloc(build->is_trained, room * sizeof(*is_trained));
		if (!is_trained)
			return false;
		build->is_trained = is_trained;
		build->layer_room = room;
	}
	if (graph->n_tensors + 2 > build->tensor_room) {
		const unsigned room = build->tensor_room ? 2 * build->tensor_room : 64;
		struct psd_tensor *tensors = realloc(graph->tensors, room * sizeof(*tensors));

		if (!tensors)
			return false;
		graph->tensors = tensors;
		build->tensor_room = room;
	}
	return true;
}

/* A copy that the caller frees; NULL without memory. */
static char *copy_text(const char *text)
{
	const size_t room = strlen(text) + 1;
	char *copy = malloc(room);

	return copy ? memcpy(copy, text, room) : NULL;
}

/* Copies what the kind has a use for; the layer owns its name and inputs also after a failure. */
static bool copy_spec(struct psd_layer *layer, const struct psd_layer_spec *spec)
{
	const bool has_window = spec->kind == PSD_LAYER_CONV || spec->kind == PSD_LAYER_POOL;
	const bool has_outputs = spec->kind == PSD_LAYER_CONV || spec->kind == PSD_LAYER_INNER_PRODUCT;
	const bool is_affine = spec->kind == PSD_LAYER_BATCH_NORM || spec->kind == PSD_LAYER_SCALE;

	*layer = (struct psd_layer){
		.kind = spec->kind,
		.n_inputs = spec->n_inputs,
		.window = has_window ? spec->window : (struct psd_window){0},
		.outputs = has_outputs ? spec->outputs : 0,
		.has_bias = (has_outputs || is_affine) && spec->has_bias,
		.has_scale = is_affine && spec->has_scale,
		.dropout_ratio = spec->kind == PSD_LAYER_DROPOUT ? spec->dropout_ratio : 0.0,
		.lrn_size = spec->kind == PSD_LAYER_LRN ? spec->lrn_size : 0,
		.shape = spec->shape,
	};
	layer->name = copy_text(spec->name);
	layer->inputs = calloc(spec->n_inputs ? spec->n_inputs : 1, sizeof(*layer->inputs));
	if (!layer->name || !layer->inputs)
		return false;
	if (spec->n_inputs)
		memcpy(layer->inputs, spec->inputs, spec->n_inputs * sizeof(*layer->inputs));
	return true;
}

static bool add_tensor(struct psd_graph *graph, const char *suffix, uint64_t elements)
{
	const unsigned number = graph->n_layers - 1;
	struct psd_layer *layer = &graph->layers[number];
	struct psd_tensor *tensor = &graph->tensors[graph->n_tensors];
	const size_t room = strlen(layer->name) + strlen(suffix) + 1;

	*tensor = (struct psd_tensor){.layer = number, .elements = elements, .name = malloc(room)};
	if (!tensor->name)
		return false;
	snprintf(tensor->name, room, "%s%s", layer->name, suffix);
	graph->n_tensors++;
	layer->n_tensors++;
	return true;
}

static bool add_tensors(struct psd_graph *graph)
{
	struct psd_layer *layer = &graph->layers[graph->n_layers - 1];
	const struct psd_layer_parameters count = psd_layer_count_parameters(layer, graph->layers);

	layer->first_tensor = graph->n_tensors;
	if (count.weight && !add_tensor(graph, ".weight", count.weight))
		return false;
	if (layer->kind == PSD_LAYER_INNER_PRODUCT) {
		struct psd_tensor *weight = &graph->tensors[layer->first_tensor];

		weight->rows = (uint32_t)psd_shape_elements(graph->layers[layer->inputs[0]].shape);
		weight->columns = layer->outputs;
	}
	return !count.bias || add_tensor(graph, ".bias", count.bias);
}

/* Adds the newest layer to the totals and checks that they stay far from wrapping. */
static enum psd_status add_totals(struct psd_graph *graph, struct psd_place at, struct psd_error *err)
{
	const struct psd_layer *layer = &graph->layers[graph->n_layers - 1];
	const bool is_in_place = layer->kind == PSD_LAYER_RELU || layer->kind == PSD_LAYER_DROPOUT;

	graph->forward_flops = psd_saturated_add(graph->forward_flops, layer->forward_flops);
	graph->backward_flops = psd_saturated_add(graph->backward_flops, layer->backward_flops);
	graph->activation_bytes = psd_saturated_add(graph->activation_bytes, is_in_place ? 0 : layer->write_bytes);
	for (unsigned i = 0; i < layer->n_tensors; i++)
		graph->parameters =
			psd_saturated_add(graph->parameters, graph->tensors[layer->first_tensor + i].elements);
	if (graph->forward_flops < PSD_LAYER_FIGURE_MAX && graph->backward_flops < PSD_LAYER_FIGURE_MAX &&
	    graph->activation_bytes < PSD_LAYER_FIGURE_MAX &&
	    graph->parameters < PSD_LAYER_FIGURE_MAX / sizeof(float) && layer->read_bytes < PSD_LAYER_FIGURE_MAX)
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, at,
			     "layer '%.80s' makes the graph too large: its FLOPs or bytes pass 2^60", layer->name);
}

static enum psd_status check_name(const struct psd_graph_build *build, const struct psd_layer_spec *spec,
				  struct psd_error *err)
{
	unsigned number;

	if (build->graph.n_layers == PSD_GRAPH_LAYERS_MAX)
		return psd_error_set(err, PSD_EINVAL, spec->at, "more than %u layers", PSD_GRAPH_LAYERS_MAX);
	if (!*spec->name || strlen(spec->name) > PSD_GRAPH_NAME_MAX)
		return psd_error_set(err, PSD_EINVAL, spec->at, "the name '%.80s' of a layer must have 1 to %u bytes",
				     spec->name, PSD_GRAPH_NAME_MAX);
	if (psd_names_find(&build->names, spec->name, &number))
		return psd_error_set(err, PSD_EINVAL, spec->at,
				     "a layer '%.80s' exists already, layer names must differ", spec->name);
	return PSD_OK;
}

static enum psd_status work_out(struct psd_graph_build *build, struct psd_place at, struct psd_error *err)
{
	struct psd_graph *graph = &build->graph;
	const unsigned number = graph->n_layers - 1;
	struct psd_layer *layer = &graph->layers[number];
	enum psd_status status = psd_layer_infer_shape(layer, graph->layers, at, err);

	if (status)
		return status;
	if (!add_tensors(graph) || !psd_names_put(&build->names, layer->name, number))
		return out_of_memory(at, err);
	psd_layer_count_work(layer, graph->layers, build->is_trained);
	build->is_trained[number] = layer->n_tensors > 0;
	for (unsigned i = 0; i < layer->n_inputs; i++)
		build->is_trained[number] = build->is_trained[number] || build->is_trained[layer->inputs[i]];
	return add_totals(graph, at, err);
}

enum psd_status psd_graph_build_add(struct psd_graph_build *build, const struct psd_layer_spec *spec,
				    struct psd_error *err)
{
	struct psd_graph *graph = &build->graph;
	enum psd_status status = check_name(build, spec, err);

	if (status)
		return status;
	for (unsigned i = 0; i < spec->n_inputs; i++)
		assert(spec->inputs[i] < graph->n_layers);
	if (!make_room(build))
		return out_of_memory(spec->at, err);
	if (!copy_spec(&graph->layers[graph->n_layers++], spec))
		return out_of_memory(spec->at, err);
	return work_out(build, spec->at, err);
}

enum psd_status psd_graph_build_seal(struct psd_graph_build *build, const char *name, struct psd_place at,
				     struct psd_graph *graph, struct psd_error *err)
{
	unsigned n_inputs = 0;

	for (unsigned i = 0; i < build->graph.n_layers; i++)
		n_inputs += build->graph.layers[i].kind == PSD_LAYER_INPUT;
	if (!n_inputs)
		return psd_error_set(err, PSD_EINVAL, at, "the model has no input");
	if (n_inputs == build->graph.n_layers)
		return psd_error_set(err, PSD_EINVAL, at, "the model has no layers above its input");
	build->graph.name = copy_text(name);
	if (!build->graph.name)
		return out_of_memory(at, err);
	*graph = build->graph;
	build->graph = (struct psd_graph){0};
	psd_graph_build_release(build);
	return PSD_OK;
}

void psd_graph_build_release(struct psd_graph_build *build)
{
	psd_graph_release(&build->graph);
	psd_names_release(&build->names);
	free(build->is_trained);
	*build = (struct psd_graph_build){0};
}
