/* Caffe's layers become the graph's. Blobs are followed by name, so that in-place layers chain up as Caffe runs them.
 */
#include "engine/model/prototxt.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/base/file.h"
#include "engine/base/names.h"
#include "engine/document/document.h"
#include "engine/document/text_format.h"
#include "engine/model/graph_build.h"
#include "engine/model/prototxt_parts.h"

#define LABEL UINT_MAX /* in the blob map: a label, which only losses may read */

struct loader {
	struct psd_graph_build build;
	struct psd_names names;	     /* of layers in the file, to how many have it: Caffe lets several, and also none */
	struct psd_names blobs;	     /* name to the number of the layer that made it last, or LABEL */
	struct psd_names all_tops;   /* tops of every layer of training, also those not built yet */
	struct psd_names parameters; /* that layers name; prototxt_tensors.c */
	struct psd_caffe_folds folds;
	bool has_loss; /* named as one: then no other layer stands for it */
	struct psd_error *err;
};

static enum psd_status no_memory(const struct loader *loader)
{
	return psd_error_set(loader->err, PSD_ENOMEM, PSD_NOWHERE, "out of memory");
}

/* ---- phases ---- */

/* Is a NetStateRule met by training, level 0, no stages? */
static enum psd_status meets(const struct psd_node *rule, bool *is_met, struct psd_error *err)
{
	static const char *const known[] = {"phase", "min_level", "max_level", "stage", "not_stage", NULL};
	static const char *const phases[] = {"TRAIN", "TEST", "0", "1", NULL};
	const struct psd_node *phase = psd_node_child(rule, "phase");
	const struct psd_node *lowest = psd_node_child(rule, "min_level"), *highest = psd_node_child(rule, "max_level");
	double lowest_level = 0.0, highest_level = 0.0;
	unsigned index = 0;
	enum psd_status status = psd_node_check_keys(rule, rule->key, known, err);

	if (!status && phase)
		status = psd_node_choice(phase, phases, &index, err);
	if (!status && lowest)
		status = psd_node_number(lowest, INT_MIN, INT_MAX, &lowest_level, err);
	if (!status && highest)
		status = psd_node_number(highest, INT_MIN, INT_MAX, &highest_level, err);
	if (!status)
		*is_met =
			index % 2 == 0 && lowest_level <= 0.0 && highest_level >= 0.0 && !psd_node_child(rule, "stage");
	return status;
}

/* With include rules one must be met, else no exclude rule may be (Caffe's Net::FilterNet). */
static enum psd_status is_chosen(const struct psd_node *layer, bool *chosen, struct psd_error *err)
{
	bool has_include = false, is_included = false, is_excluded = false;

	for (const struct psd_node *child = layer->first; child; child = child->next) {
		const bool is_include = !strcmp(child->key, "include");
		bool is_met;
		enum psd_status status;

		if (!is_include && strcmp(child->key, "exclude") != 0)
			continue;
		status = meets(child, &is_met, err);
		if (status)
			return status;
		has_include = has_include || is_include;
		is_included = is_included || (is_include && is_met);
		is_excluded = is_excluded || (!is_include && is_met);
	}
	*chosen = has_include ? is_included : !is_excluded;
	return PSD_OK;
}

static bool is_layer(const struct psd_node *node)
{
	return !strcmp(node->key, "layer") || !strcmp(node->key, "layers");
}

/* ---- blobs ---- */

static enum psd_status bind(struct loader *loader, const struct psd_node *top, unsigned number)
{
	const char *name;
	enum psd_status status = psd_node_text(top, &name, loader->err);

	if (status)
		return status;
	return psd_names_put(&loader->blobs, name, number) ? PSD_OK : no_memory(loader);
}

static enum psd_status resolve(const struct loader *loader, const struct psd_layer_spec *spec,
			       const struct psd_node *bottom, unsigned *number)
{
	unsigned later;
	const char *name;
	enum psd_status status = psd_node_text(bottom, &name, loader->err);

	if (status || psd_names_find(&loader->blobs, name, number))
		return status;
	if (psd_names_find(&loader->all_tops, name, &later))
		return psd_error_set(loader->err, PSD_EINVAL, bottom->at,
				     "cyclic graph: layer '%.80s' reads '%.80s', which no layer above it makes",
				     spec->name, name);
	return psd_error_set(loader->err, PSD_EINVAL, bottom->at, "layer '%.80s' reads '%.80s', which does not exist",
			     spec->name, name);
}

static enum psd_status read_bottoms(struct loader *loader, const struct psd_node *layer, bool is_loss,
				    struct psd_layer_spec *spec)
{
	for (const struct psd_node *child = layer->first; child; child = child->next) {
		enum psd_status status;
		unsigned number = 0;

		if (strcmp(child->key, "bottom") != 0)
			continue;
		status = resolve(loader, spec, child, &number);
		if (status)
			return status;
		if (number == LABEL && is_loss)
			continue;
		if (number != LABEL && loader->build.graph.layers[number].kind->is_loss)
			return psd_error_set(loader->err, PSD_EINVAL, child->at,
					     "layer '%.80s' reads '%.80s', where the network ends in a loss",
					     spec->name, child->text);
		if (number == LABEL)
			return psd_error_set(loader->err, PSD_EINVAL, child->at,
					     "layer '%.80s' reads the label '%.80s', only losses may", spec->name,
					     child->text);
		status = psd_layer_spec_add_input(spec, number, child->at, loader->err);
		if (status)
			return status;
	}
	return PSD_OK;
}

static unsigned count_tops(const struct psd_node *layer)
{
	unsigned n_tops = 0;

	for (const struct psd_node *child = layer->first; child; child = child->next)
		n_tops += !strcmp(child->key, "top");
	return n_tops;
}

/* Binds every top to the layer that makes it. */
static enum psd_status bind_tops(struct loader *loader, const struct psd_node *layer, const struct psd_caffe_part *part)
{
	unsigned number = part->result;
	enum psd_status status = PSD_OK;

	for (const struct psd_node *child = layer->first; child && !status; child = child->next)
		if (!strcmp(child->key, "top")) {
			status = bind(loader, child, number);
			number += part->is_one_each;
		}
	return status;
}

/* ---- the file ---- */

/* The first top is the input, the others, and any named "label", are labels. */
static enum psd_status add_data(struct loader *loader, const struct psd_node *layer,
				const struct psd_caffe_data_type *type, struct psd_layer_spec *spec)
{
	const struct psd_node *top = psd_node_child(layer, "top");
	enum psd_status status;

	spec->kind = &psd_layer_input;
	status = psd_caffe_check_data(layer, type, loader->err);
	if (status)
		return status;
	if (!top)
		return psd_caffe_missing(layer, spec, "top", loader->err);
	if (top->kind == PSD_NODE_SCALAR && !strcmp(top->text, "label"))
		return bind(loader, top, LABEL);
	status = psd_caffe_read_input_size(layer, type, spec, loader->err);
	if (!status)
		status = psd_graph_build_add(&loader->build, spec, loader->err);
	if (!status)
		status = bind(loader, top, loader->build.graph.n_layers - 1);
	for (top = top->next; top && !status; top = top->next)
		if (!strcmp(top->key, "top"))
			status = bind(loader, top, LABEL);
	return status;
}

/* The layer's name in the file, its type where it has none, or that with a number where one of the same came before. */
static enum psd_status name_layer(struct loader *loader, const struct psd_node *layer, const char *type_name,
				  struct psd_layer_spec *spec, char numbered[PSD_GRAPH_NAME_MAX + 1])
{
	const struct psd_node *name = psd_node_child(layer, "name");
	unsigned n_before = 0, number;
	enum psd_status status = name ? psd_node_text(name, &spec->name, loader->err) : PSD_OK;

	if (!name || (!status && !*spec->name))
		spec->name = type_name;
	if (status)
		return status;
	(void)psd_names_find(&loader->names, spec->name, &n_before);
	if (!psd_names_put(&loader->names, spec->name, n_before + 1))
		return no_memory(loader);
	if (!psd_names_find(&loader->build.names, spec->name, &number))
		return PSD_OK;
	snprintf(numbered, PSD_GRAPH_NAME_MAX + 1, "%.200s#%u", spec->name, n_before + 1);
	spec->name = numbered;
	return PSD_OK;
}

static bool is_one_of(const char *type, const char *const names[])
{
	for (; *names; names++)
		if (!strcmp(type, *names))
			return true;
	return false;
}

/* What training goes without. */
static const char *const ignored[] = {"Accuracy", "ACCURACY", "Silence", "SILENCE", "ArgMax", "ARGMAX", NULL};

static const char *type_of(const struct psd_node *layer)
{
	const struct psd_node *type = psd_node_child(layer, "type");

	return type && type->kind == PSD_NODE_SCALAR ? type->text : "";
}

/* Is the name one of the layer's blobs of that key? */
static bool has_blob(const struct psd_node *layer, const char *key, const char *name)
{
	for (const struct psd_node *child = layer->first; child; child = child->next)
		if (!strcmp(child->key, key) && child->kind == PSD_NODE_SCALAR && !strcmp(child->text, name))
			return true;
	return false;
}

/* Does a layer of training read the top before another one makes it anew? */
static enum psd_status is_read(const struct psd_node *layer, bool *is, struct psd_error *err)
{
	const struct psd_node *top = psd_node_child(layer, "top");
	enum psd_status status = PSD_OK;
	bool is_made_anew = false;

	*is = false;
	if (!top || top->kind != PSD_NODE_SCALAR)
		return PSD_OK;
	for (const struct psd_node *next = layer->next; next && !*is && !is_made_anew && !status; next = next->next) {
		bool chosen = false;

		if (!is_layer(next) || next->kind != PSD_NODE_MAPPING || is_one_of(type_of(next), ignored))
			continue;
		status = is_chosen(next, &chosen, err);
		*is = chosen && has_blob(next, "bottom", top->text);
		is_made_anew = chosen && has_blob(next, "top", top->text);
	}
	return status;
}

/* NULL in *type: training goes without it. A Softmax that nothing reads is the end of a net for deployment and stands
 * for its loss; beside a loss it changes nothing. */
static enum psd_status find_type(const struct loader *loader, const struct psd_node *layer,
				 const struct psd_caffe_type **type, struct psd_error *err)
{
	static const char *const softmaxes[] = {"Softmax", "SOFTMAX", NULL};
	bool is_amid = true;
	enum psd_status status = PSD_OK;

	*type = psd_caffe_find_type(type_of(layer));
	if (is_one_of(type_of(layer), softmaxes))
		status = is_read(layer, &is_amid, err);
	if (!is_amid)
		*type = loader->has_loss ? NULL : psd_caffe_find_type("SoftmaxWithLoss");
	return status;
}

static enum psd_status add_layer(struct loader *loader, const struct psd_node *layer)
{
	struct psd_layer_spec spec = {.at = layer->at};
	struct psd_caffe_part part = {
		.build = &loader->build, .spec = &spec, .folds = &loader->folds, .n_tops = count_tops(layer)};
	const struct psd_node *type_node = psd_node_child(layer, "type");
	const struct psd_caffe_type *type;
	char numbered[PSD_GRAPH_NAME_MAX + 1];
	const char *type_name;
	enum psd_status status;

	if (!type_node)
		return psd_error_set(loader->err, PSD_EINVAL, layer->at, "a layer must have a 'type'");
	status = psd_node_text(type_node, &type_name, loader->err);
	if (status || is_one_of(type_name, ignored))
		return status;
	status = name_layer(loader, layer, type_name, &spec, numbered);
	if (status)
		return status;
	if (psd_caffe_find_data_type(type_name))
		return add_data(loader, layer, psd_caffe_find_data_type(type_name), &spec);
	if (!psd_caffe_find_type(type_name))
		return psd_error_set(loader->err, PSD_EINVAL, type_node->at,
				     "layer '%.80s' has the unknown type '%.80s'", spec.name, type_name);
	status = find_type(loader, layer, &type, loader->err);
	if (status || !type)
		return status;
	status = read_bottoms(loader, layer, psd_caffe_is_loss(type), &spec);
	if (!status)
		status = psd_caffe_read_settings(layer, type, &spec, loader->err);
	if (!status)
		status = psd_caffe_find_owner(layer, &loader->build.graph, &loader->parameters, &spec, loader->err);
	if (!status)
		status = psd_caffe_build(layer, type, &part, loader->err);
	if (!status && !psd_caffe_put_names(layer, part.result, &loader->parameters))
		status = no_memory(loader);
	return status ? status : bind_tops(loader, layer, &part);
}

/* Older nets for deployment: input: "data" with input_dim four times, or with input_shape { dim ... }. The first input
 * counts, the others are labels. */
static enum psd_status add_top_level_input(struct loader *loader, const struct psd_node *root)
{
	struct psd_layer_spec spec = {.kind = &psd_layer_input};
	const struct psd_node *input = psd_node_child(root, "input"), *shape = psd_node_child(root, "input_shape");
	uint32_t dims[5];
	unsigned n_dims = 0;
	enum psd_status status;

	if (!input)
		return PSD_OK;
	spec.at = input->at;
	status = psd_node_text(input, &spec.name, loader->err);
	if (!status && shape)
		status = psd_caffe_read_shape(shape, &spec.settings.shape, loader->err);
	if (!status && !shape)
		status = psd_caffe_read_dims(root, "input_dim", dims, &n_dims, loader->err);
	if (!status && !shape && n_dims < 4)
		status = psd_error_set(loader->err, PSD_EINVAL, input->at,
				       "input '%.80s' has no size, give input_dim four times or input_shape { dim }",
				       spec.name);
	if (!status && !shape)
		spec.settings.shape = (struct psd_shape){dims[1], dims[2], dims[3]};
	if (!status)
		status = psd_graph_build_add(&loader->build, &spec, loader->err);
	if (!status)
		status = bind(loader, input, 0);
	for (input = input->next; input && !status; input = input->next)
		if (!strcmp(input->key, "input"))
			status = bind(loader, input, LABEL);
	return status;
}

/* What blobs training will have, and whether a loss. */
static enum psd_status look_ahead(struct loader *loader, const struct psd_node *root)
{
	enum psd_status status = PSD_OK;

	for (const struct psd_node *layer = root->first; layer && !status; layer = layer->next) {
		const struct psd_caffe_type *type;
		bool chosen = false;

		if (!is_layer(layer) || layer->kind != PSD_NODE_MAPPING || is_one_of(type_of(layer), ignored))
			continue;
		status = is_chosen(layer, &chosen, loader->err);
		type = psd_caffe_find_type(type_of(layer));
		loader->has_loss = loader->has_loss || (chosen && type && psd_caffe_is_loss(type));
		for (const struct psd_node *top = chosen ? layer->first : NULL; top; top = top->next)
			if (!strcmp(top->key, "top") && top->kind == PSD_NODE_SCALAR &&
			    !psd_names_put(&loader->all_tops, top->text, 0))
				return no_memory(loader);
	}
	return status;
}

static enum psd_status add_layers(struct loader *loader, const struct psd_node *root)
{
	enum psd_status status = PSD_OK;

	for (const struct psd_node *layer = root->first; layer && !status; layer = layer->next) {
		bool chosen = false;

		if (!is_layer(layer))
			continue;
		if (layer->kind != PSD_NODE_MAPPING)
			return psd_error_set(loader->err, PSD_EINVAL, layer->at, "'%s' must be a message in braces",
					     layer->key);
		status = is_chosen(layer, &chosen, loader->err);
		if (!status && chosen)
			status = add_layer(loader, layer);
	}
	return status;
}

/* A net's own state is added to the solver's, and chooses layers: the one that training has anyway. */
static enum psd_status check_state(const struct psd_node *root, struct psd_error *err)
{
	static const char *const known[] = {"phase", "level", NULL}, *const training[] = {"TRAIN", "0", NULL};
	const struct psd_node *state, *field;
	unsigned stays;
	enum psd_status status = psd_caffe_single(root, "state", &state, err);

	if (status || !state)
		return status;
	status = psd_node_check_keys(state, "state", known, err);
	for (field = state->first; field && !status; field = field->next)
		status = !strcmp(field->key, "phase") ? psd_node_choice(field, training, &stays, err)
						      : psd_node_number(field, 0, 0, &(double){0}, err);
	return status;
}

static enum psd_status load_root(struct loader *loader, const struct psd_node *root, struct psd_graph *graph)
{
	static const char *const known[] = {"name",   "input", "input_dim",	 "input_shape", "layer",
					    "layers", "state", "force_backward", "debug_info",	NULL};
	const char *name = "unnamed";
	const struct psd_node *name_node;
	enum psd_status status = psd_node_check_keys(root, "network", known, loader->err);

	if (!status)
		status = psd_caffe_single(root, "name", &name_node, loader->err);
	if (!status && name_node)
		status = psd_node_text(name_node, &name, loader->err);
	if (!status)
		status = check_state(root, loader->err);
	if (!status)
		status = look_ahead(loader, root);
	if (!status)
		status = add_top_level_input(loader, root);
	if (!status)
		status = add_layers(loader, root);
	return status ? status
		      : psd_graph_build_seal(&loader->build, name, (struct psd_place){.path = root->at.path}, graph,
					     loader->err);
}

enum psd_status psd_prototxt_parse(struct psd_graph *graph, const char *path, const char *text, size_t length,
				   struct psd_error *err)
{
	struct loader loader = {.err = err};
	struct psd_arena arena = {0};
	const struct psd_node *root = NULL;
	enum psd_status status = psd_text_format_parse(&root, &arena, path, text, length, err);

	if (!status)
		status = psd_caffe_upgrade(&root, &arena, err);
	if (!status)
		status = load_root(&loader, root, graph);
	psd_graph_build_release(&loader.build);
	psd_names_release(&loader.names);
	psd_names_release(&loader.blobs);
	psd_names_release(&loader.all_tops);
	psd_names_release(&loader.parameters);
	free(loader.folds.all);
	psd_arena_release(&arena);
	return status;
}

enum psd_status psd_prototxt_load(struct psd_graph *graph, const char *path, struct psd_error *err)
{
	enum psd_status status;
	size_t length;
	char *text;

	status = psd_file_read(&text, &length, path, err);
	if (status)
		return status;
	status = psd_prototxt_parse(graph, path, text, length, err);
	free(text);
	return status;
}
