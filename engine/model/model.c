/* The native YAML form (model.h), read in two passes: names first, so that an input that comes later is told from one
 * that does not exist. */
#include "engine/model/model.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/names.h"
#include "engine/document/document.h"
#include "engine/model/graph_build.h"
#include "engine/model/layer.h"

#define KEYS_MAX 16

struct loader {
	struct psd_graph_build build;
	struct psd_names numbers; /* every layer of the file, also those not built yet */
	unsigned *inputs;	  /* scratch: one layer's inputs */
	unsigned inputs_room;
	struct psd_error *err;
};

/* The keys a kind accepts besides name, kind, input and inputs. */
static const char *const keys_of[PSD_LAYER_KINDS][KEYS_MAX] = {
	[PSD_LAYER_CONV] = {"outputs", "kernel", "stride", "pad", "dilation", "groups", "bias"},
	[PSD_LAYER_POOL] = {"method", "kernel", "stride", "pad", "round"},
	[PSD_LAYER_LRN] = {"size"},
	[PSD_LAYER_BATCH_NORM] = {"scale", "bias", "affine"},
	[PSD_LAYER_SCALE] = {"bias"},
	[PSD_LAYER_DROPOUT] = {"ratio"},
	[PSD_LAYER_INNER_PRODUCT] = {"outputs", "bias"},
};

static enum psd_status missing(const struct psd_node *node, const char *key, const char *what, struct psd_error *err)
{
	return psd_error_set(err, PSD_EINVAL, node->at, "'%.80s' has no '%s'", what, key);
}

/* ---- values ---- */

static enum psd_status read_count(const struct psd_node *node, uint32_t lowest, uint32_t highest, uint32_t *count,
				  struct psd_error *err)
{
	uint64_t value;
	enum psd_status status = psd_node_count(node, lowest, highest, &value, err);

	if (!status)
		*count = (uint32_t)value;
	return status;
}

/* A key that must be there. */
static enum psd_status need_count(const struct psd_node *layer, const char *what, const char *key, uint32_t highest,
				  uint32_t *count, struct psd_error *err)
{
	const struct psd_node *node = psd_node_child(layer, key);

	return node ? read_count(node, 1, highest, count, err) : missing(layer, key, what, err);
}

/* "3" or "[1, 7]"; leaves both alone without the key. */
static enum psd_status read_pair(const struct psd_node *layer, const char *key, uint32_t lowest, uint32_t *height,
				 uint32_t *width, struct psd_error *err)
{
	const struct psd_node *node = psd_node_child(layer, key);
	enum psd_status status;

	if (!node)
		return PSD_OK;
	if (node->kind == PSD_NODE_SCALAR) {
		status = read_count(node, lowest, PSD_LAYER_SIDE_MAX, height, err);
		*width = *height;
		return status;
	}
	if (node->kind != PSD_NODE_SEQUENCE || node->n_children != 2)
		return psd_error_set(err, PSD_EINVAL, node->at, "'%s' must be a count or [height, width]", key);
	status = read_count(node->first, lowest, PSD_LAYER_SIDE_MAX, height, err);
	return status ? status : read_count(node->first->next, lowest, PSD_LAYER_SIDE_MAX, width, err);
}

static enum psd_status read_flag(const struct psd_node *layer, const char *key, bool *flag, struct psd_error *err)
{
	const struct psd_node *node = psd_node_child(layer, key);

	return node ? psd_node_bool(node, flag, err) : PSD_OK;
}

/* ---- kinds ---- */

static enum psd_status read_window(const struct psd_node *layer, struct psd_layer_spec *spec, struct psd_error *err)
{
	struct psd_window *window = &spec->window;
	enum psd_status status;

	if (!psd_node_child(layer, "kernel"))
		return missing(layer, "kernel", spec->name, err);
	status = read_pair(layer, "kernel", 1, &window->kernel_height, &window->kernel_width, err);
	if (!status)
		status = read_pair(layer, "stride", 1, &window->stride_height, &window->stride_width, err);
	if (!status)
		status = read_pair(layer, "pad", 0, &window->pad_height, &window->pad_width, err);
	return status;
}

static enum psd_status read_outputs(const struct psd_node *layer, struct psd_layer_spec *spec, struct psd_error *err)
{
	enum psd_status status = need_count(layer, spec->name, "outputs", PSD_LAYER_CHANNELS_MAX, &spec->outputs, err);

	spec->has_bias = true;
	return status ? status : read_flag(layer, "bias", &spec->has_bias, err);
}

static enum psd_status read_conv(const struct psd_node *layer, struct psd_layer_spec *spec, struct psd_error *err)
{
	const struct psd_node *groups = psd_node_child(layer, "groups");
	struct psd_window *window = &spec->window;
	enum psd_status status = read_outputs(layer, spec, err);

	if (!status)
		status = read_window(layer, spec, err);
	if (!status)
		status = read_pair(layer, "dilation", 1, &window->dilation_height, &window->dilation_width, err);
	if (!status && groups)
		status = read_count(groups, 1, PSD_LAYER_CHANNELS_MAX, &window->groups, err);
	return status;
}

static enum psd_status read_pool(const struct psd_node *layer, struct psd_layer_spec *spec, struct psd_error *err)
{
	static const char *const methods[] = {"max", "average", NULL};
	static const char *const rounds[] = {"down", "up", NULL};
	const struct psd_node *method = psd_node_child(layer, "method");
	const struct psd_node *round = psd_node_child(layer, "round");
	unsigned method_index, round_index = 0;
	enum psd_status status;

	if (!method)
		return missing(layer, "method", spec->name, err);
	status = psd_node_choice(method, methods, &method_index, err);
	if (!status && round)
		status = psd_node_choice(round, rounds, &round_index, err);
	if (status)
		return status;
	spec->window.is_max = method_index == 0;
	spec->window.rounds_up = round_index == 1;
	return read_window(layer, spec, err);
}

static enum psd_status read_affine(const struct psd_node *layer, struct psd_layer_spec *spec, struct psd_error *err)
{
	bool is_affine = true;
	enum psd_status status = read_flag(layer, "affine", &is_affine, err);

	spec->has_scale = is_affine;
	spec->has_bias = is_affine;
	if (!status)
		status = read_flag(layer, "scale", &spec->has_scale, err);
	return status ? status : read_flag(layer, "bias", &spec->has_bias, err);
}

static enum psd_status read_dropout(const struct psd_node *layer, struct psd_layer_spec *spec, struct psd_error *err)
{
	const struct psd_node *ratio = psd_node_child(layer, "ratio");

	return ratio ? psd_node_ratio(ratio, 0.0, 0.999, &spec->dropout_ratio, err)
		     : missing(layer, "ratio", spec->name, err);
}

static enum psd_status read_kind(const struct psd_node *layer, struct psd_layer_spec *spec, struct psd_error *err)
{
	switch (spec->kind) {
	case PSD_LAYER_CONV: return read_conv(layer, spec, err);
	case PSD_LAYER_POOL: return read_pool(layer, spec, err);
	case PSD_LAYER_INNER_PRODUCT: return read_outputs(layer, spec, err);
	case PSD_LAYER_BATCH_NORM:
	case PSD_LAYER_SCALE: return read_affine(layer, spec, err);
	case PSD_LAYER_LRN: return need_count(layer, spec->name, "size", PSD_LAYER_SIDE_MAX, &spec->lrn_size, err);
	case PSD_LAYER_DROPOUT: return read_dropout(layer, spec, err);
	default: return PSD_OK;
	}
}

static enum psd_status check_keys(const struct psd_node *layer, const struct psd_layer_spec *spec,
				  struct psd_error *err)
{
	const char *known[KEYS_MAX + 4] = {"name", "kind", "input", "inputs"};

	for (unsigned i = 0; i < KEYS_MAX && keys_of[spec->kind][i]; i++)
		known[4 + i] = keys_of[spec->kind][i];
	return psd_node_check_keys(layer, spec->name, known, err);
}

/* ---- inputs ---- */

static enum psd_status resolve(const struct loader *loader, const struct psd_layer_spec *spec,
			       const struct psd_node *node, unsigned *number)
{
	const unsigned own = loader->build.graph.n_layers;
	const char *name;
	unsigned found;
	enum psd_status status = psd_node_text(node, &name, loader->err);

	if (status)
		return status;
	if (!psd_names_find(&loader->numbers, name, &found))
		return psd_error_set(loader->err, PSD_EINVAL, node->at,
				     "layer '%.80s' takes its input from '%.80s', which does not exist", spec->name,
				     name);
	if (found == own)
		return psd_error_set(loader->err, PSD_EINVAL, node->at,
				     "cyclic graph: layer '%.80s' takes its input from itself", spec->name);
	if (found > own)
		return psd_error_set(
			loader->err, PSD_EINVAL, node->at,
			"cyclic graph: layer '%.80s' takes its input from '%.80s' below it, must be a layer above it",
			spec->name, name);
	*number = found;
	return PSD_OK;
}

static enum psd_status reserve_inputs(struct loader *loader, const struct psd_node *layer, unsigned n_inputs)
{
	unsigned *larger;

	if (n_inputs <= loader->inputs_room)
		return PSD_OK;
	larger = realloc(loader->inputs, n_inputs * sizeof(*larger));
	if (!larger)
		return psd_error_set(loader->err, PSD_ENOMEM, (struct psd_place){.path = layer->at.path},
				     "out of memory");
	loader->inputs = larger;
	loader->inputs_room = n_inputs;
	return PSD_OK;
}

static enum psd_status read_input_list(struct loader *loader, const struct psd_node *list, struct psd_layer_spec *spec)
{
	const struct psd_node *node = list->kind == PSD_NODE_SEQUENCE ? list->first : list;
	const unsigned n_inputs = list->kind == PSD_NODE_SEQUENCE ? list->n_children : 1;
	enum psd_status status = reserve_inputs(loader, list, n_inputs);

	for (unsigned i = 0; i < n_inputs && !status; i++) {
		status = resolve(loader, spec, node, &loader->inputs[i]);
		if (list->kind == PSD_NODE_SEQUENCE)
			node = node->next;
	}
	spec->n_inputs = n_inputs;
	return status;
}

static enum psd_status read_inputs(struct loader *loader, const struct psd_node *layer, struct psd_layer_spec *spec)
{
	const struct psd_node *input = psd_node_child(layer, "input");
	const struct psd_node *inputs = psd_node_child(layer, "inputs");
	enum psd_status status = reserve_inputs(loader, layer, 1);

	if (!status && input && inputs)
		status = psd_error_set(loader->err, PSD_EINVAL, inputs->key_at, "'%.80s' has both 'input' and 'inputs'",
				       spec->name);
	if (!status && (input || inputs)) {
		status = read_input_list(loader, input ? input : inputs, spec);
	} else if (!status) {
		loader->inputs[0] = loader->build.graph.n_layers - 1;
		spec->n_inputs = 1;
	}
	spec->inputs = loader->inputs;
	return status;
}

/* ---- the file ---- */

static enum psd_status add_layer(struct loader *loader, const struct psd_node *layer)
{
	struct psd_layer_spec spec = {.at = layer->at, .window = psd_window_default};
	const struct psd_node *kind = psd_node_child(layer, "kind");
	unsigned kind_index;
	enum psd_status status;

	spec.name = psd_node_child(layer, "name")->text; /* checked by the first pass */
	if (!kind)
		return missing(layer, "kind", spec.name, loader->err);
	status = psd_node_choice(kind, psd_layer_kind_names, &kind_index, loader->err);
	if (!status && kind_index == PSD_LAYER_INPUT)
		status = psd_error_set(loader->err, PSD_EINVAL, kind->at,
				       "the input is given by 'input' above 'layers'");
	if (status)
		return status;
	spec.kind = (enum psd_layer_kind)kind_index;
	status = check_keys(layer, &spec, loader->err);
	if (!status)
		status = read_kind(layer, &spec, loader->err);
	if (!status)
		status = read_inputs(loader, layer, &spec);
	return status ? status : psd_graph_build_add(&loader->build, &spec, loader->err);
}

/* Binds the names of the input (number 0) and of all layers. */
static enum psd_status collect_names(struct loader *loader, const char *input_name, const struct psd_node *layers)
{
	unsigned number = 0, other;

	if (!psd_names_put(&loader->numbers, input_name, number++))
		return psd_error_set(loader->err, PSD_ENOMEM, (struct psd_place){.path = layers->at.path},
				     "out of memory");
	for (const struct psd_node *layer = layers->first; layer; layer = layer->next, number++) {
		const struct psd_node *node = psd_node_child(layer, "name");
		const char *name;
		enum psd_status status;

		if (!node)
			return psd_error_set(loader->err, PSD_EINVAL, layer->at,
					     "a layer must be a mapping with a 'name'");
		status = psd_node_text(node, &name, loader->err);
		if (status)
			return status;
		if (psd_names_find(&loader->numbers, name, &other))
			return psd_error_set(loader->err, PSD_EINVAL, node->at,
					     "a layer '%.80s' exists already, layer names must differ", name);
		if (!psd_names_put(&loader->numbers, name, number))
			return psd_error_set(loader->err, PSD_ENOMEM, (struct psd_place){.path = layers->at.path},
					     "out of memory");
	}
	return PSD_OK;
}

static enum psd_status add_input(struct loader *loader, const struct psd_node *input, const char **name)
{
	static const char *const known[] = {"name", "channels", "height", "width", NULL};
	struct psd_layer_spec spec = {.name = "input", .at = input->at, .kind = PSD_LAYER_INPUT, .shape = {0, 1, 1}};
	const struct psd_node *height = psd_node_child(input, "height"), *width = psd_node_child(input, "width");
	const struct psd_node *name_node = psd_node_child(input, "name");
	enum psd_status status = psd_node_check_keys(input, "input", known, loader->err);

	if (!status && name_node)
		status = psd_node_text(name_node, &spec.name, loader->err);
	if (!status)
		status = need_count(input, "input", "channels", PSD_LAYER_CHANNELS_MAX, &spec.shape.channels,
				    loader->err);
	if (!status && height)
		status = read_count(height, 1, PSD_LAYER_SIDE_MAX, &spec.shape.height, loader->err);
	if (!status && width)
		status = read_count(width, 1, PSD_LAYER_SIDE_MAX, &spec.shape.width, loader->err);
	if (!status)
		status = psd_graph_build_add(&loader->build, &spec, loader->err);
	if (!status)
		*name = spec.name;
	return status;
}

static enum psd_status add_layers(struct loader *loader, const struct psd_node *input, const struct psd_node *layers)
{
	const char *input_name = NULL;
	enum psd_status status = add_input(loader, input, &input_name);

	if (!status && layers->kind != PSD_NODE_SEQUENCE)
		status = psd_error_set(loader->err, PSD_EINVAL, layers->at, "'layers' must be a list of layers");
	if (!status)
		status = collect_names(loader, input_name, layers);
	for (const struct psd_node *layer = layers->first; layer && !status; layer = layer->next)
		status = add_layer(loader, layer);
	return status;
}

static enum psd_status load_root(struct loader *loader, const struct psd_node *root, struct psd_graph *graph)
{
	static const char *const known[] = {"name", "input", "layers", NULL};
	const struct psd_node *name_node, *input, *layers;
	const char *name;
	enum psd_status status = psd_node_check_keys(root, "model", known, loader->err);

	if (status)
		return status;
	for (unsigned i = 0; known[i]; i++)
		if (!psd_node_child(root, known[i]))
			return missing(root, known[i], "model", loader->err);
	name_node = psd_node_child(root, "name");
	input = psd_node_child(root, "input");
	layers = psd_node_child(root, "layers");
	status = psd_node_text(name_node, &name, loader->err);
	if (!status)
		status = add_layers(loader, input, layers);
	return status ? status : psd_graph_build_seal(&loader->build, name, root->at, graph, loader->err);
}

static enum psd_status load_document(struct psd_graph *graph, const struct psd_document *document,
				     struct psd_error *err)
{
	struct loader loader = {.err = err};
	enum psd_status status = load_root(&loader, psd_document_root(document), graph);

	psd_graph_build_release(&loader.build);
	psd_names_release(&loader.numbers);
	free(loader.inputs);
	return status;
}

enum psd_status psd_model_load(struct psd_graph *graph, const char *path, struct psd_error *err)
{
	struct psd_document *document;
	enum psd_status status = psd_document_load(&document, path, err);

	if (status)
		return status;
	status = load_document(graph, document, err);
	psd_document_free(document);
	return status;
}

enum psd_status psd_model_parse(struct psd_graph *graph, const char *path, const char *text, size_t length,
				struct psd_error *err)
{
	struct psd_document *document;
	enum psd_status status = psd_document_parse(&document, path, text, length, err);

	if (status)
		return status;
	status = load_document(graph, document, err);
	psd_document_free(document);
	return status;
}
