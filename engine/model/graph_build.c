/* Builder of graphs. There can be no cycle: inputs are numbers of layers that exist already. */
#include "engine/model/graph_build.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/lifetimes.h"
#include "engine/base/saturate.h"
#include "engine/base/text.h"
#include "engine/model/layer.h"
#include "engine/model/saved.h"

static enum psd_status out_of_memory(struct psd_place at, struct psd_error *err)
{
	return psd_error_set(err, PSD_ENOMEM, (struct psd_place){.path = at.path}, "out of memory");
}

/* The array with memory for one more entry than count; NULL when memory runs out. */
static void *reserve(void *array, unsigned count, size_t entry_bytes)
{
	const bool is_full = (count & (count - 1)) == 0; /* the array has a power of two of entries */

	return is_full ? realloc(array, (count ? 2 * (size_t)count : 1) * entry_bytes) : array;
}

/* A copy that the caller frees; NULL when memory runs out. */
static char *copy_text(const char *text)
{
	const size_t bytes = strlen(text) + 1;
	char *copy = malloc(bytes);

	return copy ? memcpy(copy, text, bytes) : NULL;
}

/* After a failure too, the layer owns its name and inputs. */
static bool copy_spec(struct psd_layer *layer, const struct psd_layer_spec *spec)
{
	*layer = (struct psd_layer){
		.kind = spec->kind, .settings = spec->settings, .n_inputs = spec->n_inputs, .block = spec->block};
	layer->name = copy_text(spec->name);
	layer->inputs = calloc(spec->n_inputs ? spec->n_inputs : 1, sizeof(*layer->inputs));
	if (!layer->name || !layer->inputs)
		return false;
	if (spec->n_inputs)
		memcpy(layer->inputs, spec->inputs, spec->n_inputs * sizeof(*layer->inputs));
	return true;
}

/* ---- tensors ---- */

static bool append(const struct psd_graph *graph, struct psd_tensor **list, unsigned *n_list, const char *name,
		   struct psd_tensor tensor)
{
	const struct psd_layer *layer = &graph->layers[graph->n_layers - 1];
	const size_t name_bytes = strlen(layer->name) + strlen(name) + 2;
	struct psd_tensor *larger = reserve(*list, *n_list, sizeof(*larger));

	if (!larger)
		return false;
	*list = larger;
	tensor.layer = graph->n_layers - 1;
	tensor.rate_ratio = tensor.decay_ratio = 1;
	tensor.elements = 1;
	for (tensor.n_dims = 0; tensor.n_dims < PSD_TENSOR_DIMS_MAX && tensor.dims[tensor.n_dims]; tensor.n_dims++)
		tensor.elements = psd_saturated_mul(tensor.elements, tensor.dims[tensor.n_dims]);
	tensor.name = malloc(name_bytes);
	if (!tensor.name)
		return false;
	snprintf(tensor.name, name_bytes, "%s.%s", layer->name, name);
	larger[(*n_list)++] = tensor;
	return true;
}

bool psd_graph_build_tensor(struct psd_graph_build *build, const char *name, struct psd_tensor tensor)
{
	return append(&build->graph, &build->graph.tensors, &build->graph.n_tensors, name, tensor);
}

bool psd_graph_build_state(struct psd_graph_build *build, const char *name, struct psd_tensor state)
{
	return append(&build->graph, &build->graph.states, &build->graph.n_states, name, state);
}

/* The fans are counted as in Caffe, for vectors too. */
static void set_start_values(struct psd_tensor *tensor, const struct psd_filler *filler)
{
	const double inputs = (double)(tensor->elements / tensor->dims[0]);
	const double outputs = (double)tensor->elements / (tensor->n_dims > 1 ? tensor->dims[1] : 1);
	const double fans[] = {[PSD_FAN_IN] = inputs, [PSD_FAN_OUT] = outputs, [PSD_FAN_MEAN] = (inputs + outputs) / 2};
	double value = 0, bound = 0, deviation = 0;

	switch (filler->kind) {
	case PSD_FILLER_CONSTANT: value = filler->value; break;
	case PSD_FILLER_UNIFORM:
		value = (filler->lowest + filler->highest) / 2;
		bound = (filler->highest - filler->lowest) / 2;
		break;
	case PSD_FILLER_GAUSSIAN:
		value = filler->mean;
		deviation = filler->deviation;
		break;
	case PSD_FILLER_XAVIER: bound = sqrt(3 / fans[filler->fan]); break;
	case PSD_FILLER_MSRA: deviation = sqrt(2 / fans[filler->fan]); break;
	case PSD_FILLER_BILINEAR: tensor->starts_bilinear = true; break;
	}
	tensor->start_value = (float)value;
	tensor->start_bound = (float)bound;
	tensor->start_deviation = (float)deviation;
}

static enum psd_status apply_spec(const struct psd_graph *graph, const struct psd_layer *layer,
				  const struct psd_layer_spec *spec, struct psd_error *err)
{
	const struct psd_tensor_spec *specs = spec->tensors;

	for (unsigned i = 0; i < layer->n_tensors && i < PSD_LAYER_TENSORS_MAX; i++) {
		struct psd_tensor *tensor = &graph->tensors[layer->first_tensor + i];

		if (specs[i].has_ratios) {
			tensor->rate_ratio = (float)specs[i].rate_ratio;
			tensor->decay_ratio = (float)specs[i].decay_ratio;
		}
		if (specs[i].has_filler)
			set_start_values(tensor, &specs[i].filler);
		if (tensor->starts_bilinear && (tensor->n_dims != 4 || tensor->dims[2] != tensor->dims[3]))
			return psd_error_set(err, PSD_EINVAL, spec->at,
					     "tensor '%.80s' has a bilinear filler, which needs four dimensions and "
					     "square windows",
					     tensor->name);
	}
	return PSD_OK;
}

static bool declare_tensors(struct psd_graph_build *build, struct psd_layer *layer)
{
	const struct psd_graph *graph = &build->graph;

	layer->first_tensor = graph->n_tensors;
	layer->first_state = graph->n_states;
	if (layer->kind->declare && !layer->kind->declare(build, layer, psd_layer_input_shape(layer, graph->layers)))
		return false;
	layer->n_tensors = graph->n_tensors - layer->first_tensor;
	layer->n_states = graph->n_states - layer->first_state;
	for (unsigned t = layer->first_tensor; t < graph->n_tensors; t++)
		layer->parameters = psd_saturated_add(layer->parameters, graph->tensors[t].elements);
	return true;
}

static const char *role_of(const struct psd_graph *graph, const struct psd_tensor *tensor)
{
	return tensor->name + strlen(graph->layers[tensor->layer].name) + 1;
}

/* Trailing dims of 1 do not count: an embedding table can be the weight of a 1x1 convolution. */
static bool have_equal_dims(const struct psd_graph *graph, const struct psd_tensor *one, const struct psd_tensor *other)
{
	bool are = !strcmp(role_of(graph, one), role_of(graph, other));

	for (unsigned i = 0; i < PSD_TENSOR_DIMS_MAX; i++)
		are = are && (one->dims[i] ? one->dims[i] : 1) == (other->dims[i] ? other->dims[i] : 1);
	return are;
}

/* A layer may leave out the last tensors of the owner, its bias. */
static bool can_share(const struct psd_graph *graph, const struct psd_layer *layer, const struct psd_layer *owner)
{
	bool are = layer->n_tensors > 0 && layer->n_tensors <= owner->n_tensors && layer->n_states == 0;

	for (unsigned i = 0; i < layer->n_tensors && are; i++)
		are = have_equal_dims(graph, &graph->tensors[layer->first_tensor + i],
				      &graph->tensors[owner->first_tensor + i]);
	return are;
}

/* "weight 16x8, bias 16" */
static void list_tensors(struct psd_text *text, const struct psd_graph *graph, const struct psd_layer *layer)
{
	for (unsigned i = 0; i < layer->n_tensors; i++) {
		const struct psd_tensor *tensor = &graph->tensors[layer->first_tensor + i];

		psd_text_add(text, "%s%s ", i ? ", " : "", role_of(graph, tensor));
		for (unsigned d = 0; d < tensor->n_dims; d++)
			psd_text_add(text, "%s%u", d ? "x" : "", tensor->dims[d]);
	}
}

static enum psd_status refuse_to_share(const struct psd_graph *graph, const struct psd_layer *layer,
				       const struct psd_layer *owner, struct psd_place at, struct psd_error *err)
{
	struct psd_text own = {.bytes = NULL}, others = {.bytes = NULL};
	enum psd_status status = PSD_EINVAL;

	list_tensors(&own, graph, layer);
	list_tensors(&others, graph, owner);
	if (own.is_out_of_memory || others.is_out_of_memory)
		status = out_of_memory(at, err);
	else if (layer->n_states > 0 || layer->n_tensors == 0)
		psd_error_set(err, PSD_EINVAL, at, "layer '%.80s' (%s) cannot share parameters", layer->name,
			      layer->kind->name);
	else
		psd_error_set(err, PSD_EINVAL, at,
			      "layer '%.80s' has the parameters %s, must have those of '%.80s' to share them: %s",
			      layer->name, own.bytes, owner->name, others.bytes);
	psd_text_release(&own);
	psd_text_release(&others);
	return status;
}

/* A ratio of 1 is the default and contradicts none. */
static bool has_other_ratios(const struct psd_tensor_spec *spec, const struct psd_tensor *tensor)
{
	return spec->has_ratios && ((spec->rate_ratio != 1 && (float)spec->rate_ratio != tensor->rate_ratio) ||
				    (spec->decay_ratio != 1 && (float)spec->decay_ratio != tensor->decay_ratio));
}

/* Replaces the layer's own tensors, the newest, by those of the owner. The factors of one layer do not give a gradient
 * that several layers sum. */
static enum psd_status share(struct psd_graph *graph, struct psd_layer *layer, const struct psd_layer_spec *spec,
			     struct psd_error *err)
{
	const struct psd_layer *owner = &graph->layers[spec->owner];

	if (!can_share(graph, layer, owner))
		return refuse_to_share(graph, layer, owner, spec->at, err);
	for (unsigned i = 0; i < layer->n_tensors; i++) {
		struct psd_tensor *tensor = &graph->tensors[owner->first_tensor + i];

		if (i < PSD_LAYER_TENSORS_MAX && has_other_ratios(&spec->tensors[i], tensor))
			return psd_error_set(
				err, PSD_EINVAL, spec->at,
				"layer '%.80s' has another learning rate or decay for '%.80s' than '%.80s', "
				"with which it shares the tensor",
				layer->name, tensor->name, owner->name);
		tensor->rows = tensor->columns = 0;
		free(graph->tensors[layer->first_tensor + i].name);
	}
	graph->n_tensors = layer->first_tensor;
	layer->n_shared = layer->n_tensors;
	layer->n_tensors = 0;
	layer->first_tensor = owner->first_tensor;
	return PSD_OK;
}

/* ---- layers ---- */

static uint64_t kept_bytes(const struct psd_layer *layer)
{
	return psd_saturated_add(layer->kind->is_in_place ? 0 : layer->write_bytes, layer->kept_bytes);
}

/* Adds the newest layer to the totals and refuses totals near overflow. */
static enum psd_status add_totals(struct psd_graph *graph, const struct psd_layer *layer, struct psd_place at,
				  struct psd_error *err)
{
	graph->forward_flops = psd_saturated_add(graph->forward_flops, layer->forward_flops);
	graph->backward_flops = psd_saturated_add(graph->backward_flops, layer->backward_flops);
	graph->activation_bytes = psd_saturated_add(graph->activation_bytes, kept_bytes(layer));
	graph->parameters = psd_saturated_add(graph->parameters, layer->n_shared ? 0 : layer->parameters);
	if (graph->forward_flops < PSD_LAYER_FIGURE_MAX && graph->backward_flops < PSD_LAYER_FIGURE_MAX &&
	    graph->activation_bytes < PSD_LAYER_FIGURE_MAX &&
	    graph->parameters < PSD_LAYER_FIGURE_MAX / sizeof(float) && layer->read_bytes < PSD_LAYER_FIGURE_MAX)
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, at,
			     "layer '%.80s' makes the graph too large: its FLOPs or bytes must stay below 2^60",
			     layer->name);
}

static enum psd_status check_name(const struct psd_graph_build *build, const struct psd_layer_spec *spec,
				  struct psd_error *err)
{
	unsigned number;

	if (build->graph.n_layers == PSD_GRAPH_LAYERS_MAX)
		return psd_error_set(err, PSD_EINVAL, spec->at, "the model has more than %u layers",
				     PSD_GRAPH_LAYERS_MAX);
	if (!*spec->name || strlen(spec->name) > PSD_GRAPH_NAME_MAX)
		return psd_error_set(err, PSD_EINVAL, spec->at, "the name '%.80s' of a layer must have 1 to %u bytes",
				     spec->name, PSD_GRAPH_NAME_MAX);
	if (psd_names_find(&build->names, spec->name, &number))
		return psd_error_set(err, PSD_EINVAL, spec->at,
				     "a layer '%.80s' exists already, layer names must differ", spec->name);
	return PSD_OK;
}

static enum psd_status complete(struct psd_graph_build *build, const struct psd_layer_spec *spec, struct psd_error *err)
{
	const struct psd_place at = spec->at;
	struct psd_graph *graph = &build->graph;
	const unsigned number = graph->n_layers - 1;
	struct psd_layer *layer = &graph->layers[number];
	bool has_data_gradient = false;

	PSD_TRY(psd_layer_infer_shape(layer, graph->layers, at, err));
	if (!declare_tensors(build, layer) || !psd_names_put(&build->names, layer->name, number))
		return out_of_memory(at, err);
	PSD_TRY(spec->is_sharing ? share(graph, layer, spec, err) : apply_spec(graph, layer, spec, err));
	for (unsigned i = 0; i < layer->n_inputs; i++) { /* no gradient passes through the output of a loss */
		const struct psd_layer *input = &graph->layers[layer->inputs[i]];

		has_data_gradient = has_data_gradient || (input->is_trained && !input->kind->is_loss);
	}
	layer->is_trained = has_data_gradient || layer->n_tensors + layer->n_shared > 0;
	layer->is_half = psd_saved_is_half(layer, graph->layers);
	psd_layer_count_work(layer, graph->layers, has_data_gradient);
	return add_totals(graph, layer, at, err);
}

enum psd_status psd_layer_spec_add_input(struct psd_layer_spec *spec, unsigned input, struct psd_place at,
					 struct psd_error *err)
{
	if (spec->n_inputs == PSD_LAYER_INPUTS_MAX)
		return psd_error_set(err, PSD_EINVAL, at, "layer '%.80s' has more than %u inputs", spec->name,
				     PSD_LAYER_INPUTS_MAX);
	spec->inputs[spec->n_inputs++] = input;
	return PSD_OK;
}

static enum psd_status add_layer(struct psd_graph_build *build, const struct psd_layer_spec *spec,
				 struct psd_error *err)
{
	struct psd_graph *graph = &build->graph;
	struct psd_layer *layers;

	PSD_TRY(check_name(build, spec, err));
	for (unsigned i = 0; i < spec->n_inputs; i++)
		assert(spec->inputs[i] < graph->n_layers);
	layers = reserve(graph->layers, graph->n_layers, sizeof(*layers));
	if (!layers)
		return out_of_memory(spec->at, err);
	graph->layers = layers;
	if (!copy_spec(&graph->layers[graph->n_layers++], spec))
		return out_of_memory(spec->at, err);
	return complete(build, spec, err);
}

enum psd_status psd_graph_build_add(struct psd_graph_build *build, const struct psd_layer_spec *spec,
				    struct psd_error *err)
{
	const enum psd_status status = add_layer(build, spec, err);

	build->is_broken = build->is_broken || status;
	return status;
}

/* Sets the values that labels and the first input may have. */
static void set_sample_limits(struct psd_graph *graph)
{
	for (unsigned l = 0; l < graph->n_layers; l++) {
		const struct psd_layer *layer = &graph->layers[l];

		if (layer->kind->is_loss) {
			graph->labels = (uint64_t)layer->shape.height * layer->shape.width;
			graph->classes = layer->shape.channels;
		}
		if (layer->kind->reads_rows && layer->inputs[0] == 0) {
			const uint32_t rows = graph->tensors[layer->first_tensor].dims[0];

			graph->vocabulary = graph->vocabulary && graph->vocabulary < rows ? graph->vocabulary : rows;
		}
	}
}

/* ---- gradients of outputs ---- */

enum { MOST_PLACED = 1000 };

/* Sets owner[l] to the number of the layer whose memory layer l's output uses: that of its input's if it works in
 * place. */
static void find_owners(const struct psd_graph *graph, const unsigned n_readers[], unsigned owner[])
{
	for (unsigned l = 0; l < graph->n_layers; l++) {
		const struct psd_layer *layer = &graph->layers[l];

		owner[l] = l;
		if (layer->kind->is_in_place && layer->inputs[0] > 0 && n_readers[layer->inputs[0]] == 1)
			owner[l] = owner[layer->inputs[0]];
	}
}

/* Lists the gradients of outputs. Step s of backward is that of layer n - 1 - s. A gradient is in use from the step of
 * the last layer that reads the output, or else its own, to that of its owner. Returns their number. */
static unsigned list_gradients(const struct psd_graph *graph, unsigned scratch[], struct psd_block_lifetime lives[])
{
	const unsigned n = graph->n_layers;
	unsigned *n_readers = scratch, *owner = scratch + n, *last_use = scratch + 2 * (size_t)n;
	unsigned n_lives = 0;

	for (unsigned l = 0; l < n; l++)
		for (unsigned i = 0; i < graph->layers[l].n_inputs; i++)
			n_readers[graph->layers[l].inputs[i]]++;
	find_owners(graph, n_readers, owner);
	for (unsigned l = 0; l < n; l++) {
		last_use[owner[l]] = l;
		for (unsigned i = 0; i < graph->layers[l].n_inputs; i++)
			last_use[owner[graph->layers[l].inputs[i]]] = l;
	}
	for (unsigned l = 0; l < n; l++) {
		const struct psd_layer *layer = &graph->layers[l];
		const bool is_kept = layer->kind == &psd_layer_inner_product;

		if (layer->is_trained && !layer->kind->is_loss && owner[l] == l)
			lives[n_lives++] = (struct psd_block_lifetime){.owner = l,
								       .birth_step = n - 1 - last_use[l],
								       .death_step = is_kept ? n : n - 1 - l,
								       .bytes = layer->write_bytes};
	}
	return n_lives;
}

/* Without sharing if there are so many that their places would take long. */
static uint64_t placed_bytes(struct psd_block_lifetime lives[], unsigned n_lives)
{
	uint64_t bytes = 0;

	if (n_lives <= MOST_PLACED)
		return psd_lifetimes_place(lives, n_lives, 1);
	for (unsigned i = 0; i < n_lives; i++)
		bytes = psd_saturated_add(bytes, lives[i].bytes);
	return bytes;
}

static enum psd_status find_gradient_bytes(struct psd_graph *graph, struct psd_place at, struct psd_error *err)
{
	unsigned *scratch = calloc(graph->n_layers, 3 * sizeof(*scratch));
	struct psd_block_lifetime *lives = calloc(graph->n_layers, sizeof(*lives));
	const bool is_there = scratch && lives;

	if (is_there)
		graph->gradient_bytes = placed_bytes(lives, list_gradients(graph, scratch, lives));
	free(scratch);
	free(lives);
	return is_there ? PSD_OK : out_of_memory(at, err);
}

/* Readers of a layer are below it. The last layers of a block are computed once if their backward reads nothing of
 * them, as PyTorch's checkpoint() without reentrance stops early. */
static void mark_blocks(struct psd_graph *graph)
{
	for (unsigned l = graph->n_layers; l-- > 0;) {
		struct psd_layer *layer = &graph->layers[l];

		layer->is_recomputed = layer->block > 0 && (layer->is_recomputed || psd_saved_reads(layer, true));
		for (unsigned i = 0; i < layer->n_inputs; i++) {
			struct psd_layer *input = &graph->layers[layer->inputs[i]];
			const bool is_inside = input->block == layer->block;

			input->is_recomputed = input->is_recomputed ||
					       (is_inside && (layer->is_recomputed || psd_saved_reads(layer, false)));
			input->is_block_end = input->is_block_end || (input->block > 0 && !is_inside);
		}
	}
}

/* Bytes of an output that leaves a block. Where the layer works in place it is the output of a layer above, which
 * counts it if it leaves a block, too. */
static uint64_t end_bytes(const struct psd_graph *graph, const struct psd_layer *layer)
{
	const unsigned block = layer->block;

	while (layer->kind->is_in_place) {
		layer = &graph->layers[layer->inputs[0]];
		if (layer->block != block || layer->is_block_end)
			return 0;
	}
	return layer->write_bytes;
}

/* Layers of a block are neighbours. Its sum is known at its end, where a layer in place may take bytes away. */
static void find_recomputed_bytes(struct psd_graph *graph)
{
	uint64_t most = 0, of_block = 0;

	mark_blocks(graph);
	for (const struct psd_layer *layer = graph->layers; layer < graph->layers + graph->n_layers; layer++) {
		const uint64_t bytes = kept_bytes(layer), end = layer->is_block_end ? end_bytes(graph, layer) : 0;

		if (layer->block != graph->n_blocks) {
			most = of_block > most ? of_block : most;
			of_block = 0;
		}
		if (layer->block > 0) {
			graph->n_blocks = layer->block;
			of_block += layer->is_recomputed ? bytes - end : 0;
		}
		graph->recomputed_bytes += layer->block > 0 ? end : bytes;
	}
	graph->recomputed_bytes += of_block > most ? of_block : most;
}

enum psd_status psd_graph_build_seal(struct psd_graph_build *build, const char *name, struct psd_place at,
				     struct psd_graph *graph, struct psd_error *err)
{
	unsigned n_inputs = 0;

	for (unsigned i = 0; i < build->graph.n_layers; i++)
		n_inputs += build->graph.layers[i].n_inputs == 0;
	if (!n_inputs)
		return psd_error_set(err, PSD_EINVAL, at, "the model has no input");
	if (n_inputs == build->graph.n_layers)
		return psd_error_set(err, PSD_EINVAL, at, "the model has an input and no layers");
	build->graph.name = copy_text(name);
	if (!build->graph.name)
		return out_of_memory(at, err);
	set_sample_limits(&build->graph);
	PSD_TRY(find_gradient_bytes(&build->graph, at, err));
	find_recomputed_bytes(&build->graph);
	*graph = build->graph;
	build->graph = (struct psd_graph){0};
	psd_graph_build_release(build);
	return PSD_OK;
}

void psd_graph_build_release(struct psd_graph_build *build)
{
	psd_graph_release(&build->graph);
	psd_names_release(&build->names);
	*build = (struct psd_graph_build){0};
}
