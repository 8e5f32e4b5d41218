/* Reader of YAML models (model.h). It collects the names first, so that errors distinguish an input further down from
 * one that does not exist. A repeated block is read once for each repetition, with names of its own. */
#include "engine/model/model.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/base/names.h"
#include "engine/base/spelling.h"
#include "engine/document/document.h"
#include "engine/model/graph_build.h"
#include "engine/model/layer.h"

enum { MAX_KINDS = 64, MAX_KEYS = 8 };

struct reader {
	struct psd_graph_build build;
	struct psd_names numbers; /* names of all layers of the file, to their numbers */
	struct psd_arena arena;	  /* names of repeated layers */
	unsigned sequence;	  /* height of the input in place of the file's; 0: the file's */
	struct psd_error *err;
};

/* An entry of `layers`: a layer, or a block of layers that is repeated. */
struct block {
	const struct psd_node *layers; /* first of the block's layers; NULL: the entry is a layer */
	const char *name;
	unsigned repeat, first; /* number of repetitions, and number in the first one's names */
	unsigned repetition;	/* index of the current one, from 0 */
	unsigned above;		/* number of the layer above the current repetition */
	unsigned number;	/* number of the current repetition in the file, from 1; 0: the entry is a layer */
};

static enum psd_status missing(const struct psd_node *node, const char *key, const char *name, struct psd_error *err)
{
	return psd_error_set(err, PSD_EINVAL, node->at, "layer '%.80s' has no '%s'", name, key);
}

/* ---- kinds ---- */

/* Names of kinds in PyTorch and other libraries, see psd_spelling_find(). */
static const struct {
	const char *name;
	const struct psd_layer_kind *kind;
	const char *method; /* value of the key 'method' that the name says; NULL: it says none */
} other_names[] = {
	{"conv2d", &psd_layer_conv, NULL},
	{"convtranspose2d", &psd_layer_deconv, NULL},
	{"linear", &psd_layer_inner_product, NULL},
	{"dense", &psd_layer_inner_product, NULL},
	{"batchnorm1d", &psd_layer_batch_norm, NULL},
	{"batchnorm2d", &psd_layer_batch_norm, NULL},
	{"localresponsenorm", &psd_layer_lrn, NULL},
	{"multiheadattention", &psd_layer_attention, NULL},
	{"channelshuffle", &psd_layer_shuffle, NULL},
	{"upsample", &psd_layer_resize, NULL},
	{"crossentropyloss", &psd_layer_softmax_loss, NULL},
	{"maxpool2d", &psd_layer_pool, "max"},
	{"avgpool2d", &psd_layer_pool, "average"},
	{"adaptiveavgpool2d", &psd_layer_global_pool, NULL},
	{"dropout2d", &psd_layer_dropout, NULL},
};
enum { N_OTHER_NAMES = sizeof(other_names) / sizeof(other_names[0]) };

/* Until version 0.9 the affine map was called linear: its keys are refused with the new name. */
static enum psd_status check_linear(const struct psd_node *layer, const struct psd_node *node, struct psd_error *err)
{
	const bool is_affine = psd_node_child(layer, "factor") || psd_node_child(layer, "summand");

	if (!is_affine)
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, node->at,
			     "'kind' is '%.80s', a layer with 'outputs'; the kind with 'factor' and 'summand' is now "
			     "called 'affine'",
			     node->text);
}

/* Finds the kind by one of its other names, else by its name in model files. */
static enum psd_status find_kind(const struct psd_node *node, const struct psd_layer_kind **kind, const char **method,
				 struct psd_error *err)
{
	const char *names[MAX_KINDS + 1] = {NULL}, *others[N_OTHER_NAMES + 1] = {NULL};
	unsigned index;

	*method = NULL;
	for (unsigned i = 0; i < N_OTHER_NAMES; i++)
		others[i] = other_names[i].name;
	if (node->kind == PSD_NODE_SCALAR && psd_spelling_find(node->text, others, &index)) {
		*kind = other_names[index].kind;
		*method = other_names[index].method;
		return PSD_OK;
	}
	for (unsigned i = 0; psd_layer_kinds[i]; i++) {
		assert(i < MAX_KINDS);
		names[i] = psd_layer_kinds[i]->name;
	}
	PSD_TRY(psd_node_choice(node, names, &index, err));
	*kind = psd_layer_kinds[index];
	return PSD_OK;
}

static enum psd_status read_kind(const struct psd_node *layer, struct psd_layer_spec *spec, const char **method,
				 struct psd_error *err)
{
	const struct psd_node *node = psd_node_child(layer, "kind");

	if (!node)
		return missing(layer, "kind", spec->name, err);
	PSD_TRY(find_kind(node, &spec->kind, method, err));
	if (spec->kind == &psd_layer_inner_product)
		PSD_TRY(check_linear(layer, node, err));
	spec->settings = spec->kind->defaults;
	if (*method)
		spec->settings.pool.method = strcmp(*method, "max") ? PSD_POOL_AVERAGE : PSD_POOL_MAX;
	if (spec->kind == &psd_layer_input)
		return psd_error_set(
			err, PSD_EINVAL, node->at,
			"'kind' is 'input': the network's input must be given by the key 'input' above 'layers'");
	return PSD_OK;
}

/* ---- repeated blocks ---- */

static enum psd_status read_block(struct block *block, const struct psd_node *entry, struct psd_error *err)
{
	static const struct psd_key keys[] = {
		PSD_COUNT_KEY("repeat", struct block, repeat, PSD_GRAPH_LAYERS_MAX, true),
		{.name = "first", .type = PSD_KEY_UNSIGNED, .offset = offsetof(struct block, first), .highest = 1e6},
		{.name = "name", .type = PSD_KEY_TEXT, .offset = offsetof(struct block, name), .is_required = true},
		{.name = NULL},
	};
	const struct psd_node *layers = psd_node_child(entry, "layers");

	*block = (struct block){.first = 1};
	if (!psd_node_child(entry, "repeat"))
		return PSD_OK;
	PSD_TRY(psd_layer_read_keys(block, entry, "a repeated block", (const char *const[]){"layers", NULL}, keys,
				    err));
	if (!layers || layers->kind != PSD_NODE_SEQUENCE || !layers->first)
		return psd_error_set(err, PSD_EINVAL, layers ? layers->at : entry->at,
				     "block '%.80s' needs 'layers', a list of layers", block->name);
	block->layers = layers->first;
	return PSD_OK;
}

struct full_name {
	char text[2 * PSD_GRAPH_NAME_MAX + 16];
};

/* Name of a layer in the current repetition: "b3.norm" of layer norm in block b. */
static struct full_name full_name(const struct block *block, const char *name)
{
	struct full_name full;

	snprintf(full.text, sizeof(full.text), "%.*s%u.%.*s", (int)PSD_GRAPH_NAME_MAX, block->name,
		 block->first + block->repetition, (int)PSD_GRAPH_NAME_MAX, name);
	return full;
}

/* The name outside of blocks, else a copy of its full name. NULL: out of memory. */
static const char *name_in(struct reader *reader, const struct block *block, const char *name)
{
	if (!block->layers)
		return name;
	const struct full_name full = full_name(block, name);
	return psd_arena_copy(&reader->arena, full.text, strlen(full.text));
}

/* A layer of the same repetition goes before one outside the block; `above` is the layer above the repetition. */
static bool find_layer(const struct reader *reader, const struct block *block, const char *name, unsigned *number)
{
	if (block->layers && psd_names_find(&reader->numbers, full_name(block, name).text, number))
		return true;
	if (block->layers && !strcmp(name, "above")) {
		*number = block->above;
		return true;
	}
	return psd_names_find(&reader->numbers, name, number);
}

/* ---- inputs ---- */

static enum psd_status resolve(struct reader *reader, const struct block *block, const struct psd_layer_spec *spec,
			       const struct psd_node *node, unsigned *number)
{
	const unsigned own = reader->build.graph.n_layers;
	const char *name;
	unsigned found;

	PSD_TRY(psd_node_text(node, &name, reader->err));
	if (!find_layer(reader, block, name, &found))
		return psd_error_set(reader->err, PSD_EINVAL, node->at,
				     "layer '%.80s' takes its input from '%.80s', which does not exist", spec->name,
				     name);
	if (found == own)
		return psd_error_set(reader->err, PSD_EINVAL, node->at,
				     "cyclic graph: layer '%.80s' takes its input from itself", spec->name);
	if (found > own)
		return psd_error_set(
			reader->err, PSD_EINVAL, node->at,
			"cyclic graph: layer '%.80s' takes its input from '%.80s' below it, must be a layer above it",
			spec->name, name);
	*number = found;
	return PSD_OK;
}

static enum psd_status read_inputs(struct reader *reader, const struct block *block, const struct psd_node *layer,
				   struct psd_layer_spec *spec)
{
	const struct psd_node *input = psd_node_child(layer, "input");
	const struct psd_node *inputs = psd_node_child(layer, "inputs"), *list = input ? input : inputs;
	const bool is_list = list && list->kind == PSD_NODE_SEQUENCE;

	if (input && inputs)
		return psd_error_set(reader->err, PSD_EINVAL, inputs->key_at,
				     "layer '%.80s' has both 'input' and 'inputs', must have one of them", spec->name);
	if (!list)
		return psd_layer_spec_add_input(spec, reader->build.graph.n_layers - 1, layer->at, reader->err);
	for (const struct psd_node *node = is_list ? list->first : list; node; node = is_list ? node->next : NULL) {
		unsigned number = 0;

		PSD_TRY(resolve(reader, block, spec, node, &number));
		PSD_TRY(psd_layer_spec_add_input(spec, number, node->at, reader->err));
	}
	return PSD_OK;
}

/* ---- another layer's parameters ---- */

static enum psd_status read_owner(struct reader *reader, const struct block *block, const struct psd_node *layer,
				  struct psd_layer_spec *spec)
{
	const struct psd_node *node = psd_node_child(layer, "shares");
	const struct psd_graph *graph = &reader->build.graph;
	const char *name;

	if (!node)
		return PSD_OK;
	PSD_TRY(psd_node_text(node, &name, reader->err));
	if (!find_layer(reader, block, name, &spec->owner) || spec->owner >= graph->n_layers)
		return psd_error_set(reader->err, PSD_EINVAL, node->at,
				     "layer '%.80s' shares the parameters of '%.80s', must be a layer above it",
				     spec->name, name);
	if (!graph->layers[spec->owner].n_tensors)
		return psd_error_set(reader->err, PSD_EINVAL, node->at,
				     "layer '%.80s' shares the parameters of '%.80s', which has none of its own",
				     spec->name, name);
	spec->is_sharing = true;
	return PSD_OK;
}

/* ---- the file ---- */

static enum psd_status out_of_memory(const struct reader *reader, const struct psd_node *node)
{
	return psd_error_set(reader->err, PSD_ENOMEM, (struct psd_place){.path = node->at.path}, "out of memory");
}

/* Called for each layer of the file, and for a layer of a block in each repetition. */
typedef enum psd_status (*visit_fn)(struct reader *reader, const struct block *block, const struct psd_node *layer);

static enum psd_status visit_layers(struct reader *reader, const struct psd_node *layers, visit_fn visit)
{
	unsigned n_blocks = 0;

	for (const struct psd_node *entry = layers->first; entry; entry = entry->next) {
		struct block block;

		PSD_TRY(read_block(&block, entry, reader->err));
		if (!block.layers)
			PSD_TRY(visit(reader, &block, entry));
		for (; block.repetition < block.repeat; block.repetition++) {
			block.above = reader->build.graph.n_layers - 1;
			block.number = ++n_blocks;
			for (const struct psd_node *layer = block.layers; layer; layer = layer->next)
				PSD_TRY(visit(reader, &block, layer));
		}
	}
	return PSD_OK;
}

static enum psd_status add_layer(struct reader *reader, const struct block *block, const struct psd_node *layer)
{
	static const char *const common[] = {"name", "kind", "input", "inputs", "shares", NULL};
	/* collect_name() has checked the name */
	struct psd_key keys[MAX_KEYS + 1] = {{.name = NULL}}; /* keys of a kind whose name says its method */
	struct psd_layer_spec spec = {.at = layer->at,
				      .block = block->number,
				      .name = name_in(reader, block, psd_node_child(layer, "name")->text)};

	const char *method = NULL;

	if (!spec.name)
		return out_of_memory(reader, layer);
	PSD_TRY(read_kind(layer, &spec, &method, reader->err));
	for (unsigned k = 0; method && k < MAX_KEYS && spec.kind->keys[k].name; k++) {
		keys[k] = spec.kind->keys[k];
		keys[k].is_required = keys[k].is_required && strcmp(keys[k].name, "method") != 0;
	}
	PSD_TRY(psd_layer_read_keys(&spec.settings, layer, spec.name, common, method ? keys : spec.kind->keys,
				    reader->err));
	PSD_TRY(read_inputs(reader, block, layer, &spec));
	PSD_TRY(read_owner(reader, block, layer, &spec));
	return psd_graph_build_add(&reader->build, &spec, reader->err);
}

/* Binds a layer's name to its number. */
static enum psd_status collect_name(struct reader *reader, const struct block *block, const struct psd_node *layer)
{
	const struct psd_node *node = psd_node_child(layer, "name");
	const unsigned number = (unsigned)reader->numbers.n_used;
	const char *name;
	unsigned other;

	if (!node)
		return psd_error_set(reader->err, PSD_EINVAL, layer->at, "a layer must be a mapping with a 'name'");
	PSD_TRY(psd_node_text(node, &name, reader->err));
	name = name_in(reader, block, name);
	if (!name)
		return out_of_memory(reader, layer);
	if (psd_names_find(&reader->numbers, name, &other))
		return psd_error_set(reader->err, PSD_EINVAL, node->at,
				     "a layer '%.80s' exists already, layer names must differ", name);
	if (number > PSD_GRAPH_LAYERS_MAX)
		return psd_error_set(reader->err, PSD_EINVAL, layer->at, "the model has more than %u layers",
				     PSD_GRAPH_LAYERS_MAX);
	return psd_names_put(&reader->numbers, name, number) ? PSD_OK : out_of_memory(reader, layer);
}

/* Gives the input the length that the scenario asks for; a sequence is one column of tokens. */
static enum psd_status set_sequence(const struct reader *reader, const struct psd_node *input, struct psd_shape *shape)
{
	if (reader->sequence && (shape->channels != 1 || shape->width != 1))
		return psd_error_set(reader->err, PSD_EINVAL, input->at,
				     "the input is %ux%ux%u, 'sequence' in the scenario needs a model whose input has "
				     "1 channel and width 1",
				     shape->channels, shape->height, shape->width);
	if (reader->sequence)
		shape->height = reader->sequence;
	return PSD_OK;
}

static enum psd_status add_input(struct reader *reader, const struct psd_node *input, const char **name)
{
	static const struct psd_key keys[] = {
		{.name = "name", .type = PSD_KEY_TEXT, .offset = offsetof(struct psd_layer_spec, name)},
		PSD_COUNT_KEY("channels", struct psd_layer_spec, settings.shape.channels, PSD_LAYER_CHANNELS_MAX, true),
		PSD_COUNT_KEY("height", struct psd_layer_spec, settings.shape.height, PSD_LAYER_SIDE_MAX, false),
		PSD_COUNT_KEY("width", struct psd_layer_spec, settings.shape.width, PSD_LAYER_SIDE_MAX, false),
		{.name = NULL},
	};
	struct psd_layer_spec spec = {
		.name = "input", .at = input->at, .kind = &psd_layer_input, .settings.shape = {0, 1, 1}};

	PSD_TRY(psd_layer_read_keys(&spec, input, "input", (const char *const[]){NULL}, keys, reader->err));
	PSD_TRY(set_sequence(reader, input, &spec.settings.shape));
	PSD_TRY(psd_graph_build_add(&reader->build, &spec, reader->err));
	*name = spec.name;
	return PSD_OK;
}

static enum psd_status add_layers(struct reader *reader, const struct psd_node *input, const struct psd_node *layers)
{
	const char *input_name = NULL;

	PSD_TRY(add_input(reader, input, &input_name));
	if (layers->kind != PSD_NODE_SEQUENCE)
		return psd_error_set(reader->err, PSD_EINVAL, layers->at, "'layers' must be a list of layers");
	if (!psd_names_put(&reader->numbers, input_name, 0))
		return out_of_memory(reader, layers);
	PSD_TRY(visit_layers(reader, layers, collect_name));
	return visit_layers(reader, layers, add_layer);
}

static enum psd_status read_root(struct reader *reader, const struct psd_node *root, struct psd_graph *graph)
{
	static const struct psd_key keys[] = {
		{.name = "name", .type = PSD_KEY_TEXT, .is_required = true},
		{.name = "input", .type = PSD_KEY_OTHER, .is_required = true},
		{.name = "layers", .type = PSD_KEY_OTHER, .is_required = true},
		{.name = NULL},
	};
	const char *name;

	if (psd_node_child(root, "model") && !psd_node_child(root, "layers"))
		return psd_error_set(reader->err, PSD_EINVAL, root->at,
				     "this file is a scenario, must be a model, which a scenario names as 'graph'");
	enum psd_status status =
		psd_layer_read_keys(&name, root, "model", (const char *const[]){NULL}, keys, reader->err);

	if (!status)
		status = add_layers(reader, psd_node_child(root, "input"), psd_node_child(root, "layers"));
	return status ? status : psd_graph_build_seal(&reader->build, name, root->at, graph, reader->err);
}

enum psd_status psd_model_parse_sequence(struct psd_graph *graph, const char *path, const void *text, size_t length,
					 unsigned sequence, struct psd_error *err)
{
	struct psd_document *document;
	struct reader reader = {.sequence = sequence, .err = err};

	PSD_TRY(psd_document_parse(&document, path, text, length, err));
	const enum psd_status status = read_root(&reader, psd_document_root(document), graph);
	psd_graph_build_release(&reader.build);
	psd_names_release(&reader.numbers);
	psd_arena_release(&reader.arena);
	psd_document_free(document);
	return status;
}

enum psd_status psd_model_parse(struct psd_graph *graph, const char *path, const void *text, size_t length,
				struct psd_error *err)
{
	return psd_model_parse_sequence(graph, path, text, length, 0, err);
}
