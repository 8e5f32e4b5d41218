/* Converts a Caffe network to a graph. Blobs are found by name, so that in-place layers follow each other as in Caffe.
 */
#include "engine/model/prototxt.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/base/file.h"
#include "engine/base/names.h"
#include "engine/base/spelling.h"
#include "engine/base/text.h"
#include "engine/document/document.h"
#include "engine/document/text_format.h"
#include "engine/model/choices.h"
#include "engine/model/graph_build.h"
#include "engine/model/prototxt_parts.h"

#define LABEL UINT_MAX	     /* number of a blob that is a label, which only losses may read */
#define WRONG (UINT_MAX - 1) /* number of a blob whose layer is wrong */

struct reader {
	struct psd_graph_build build;
	struct psd_names names;	     /* layer names in the file, to the number of layers with that name */
	struct psd_names blobs;	     /* blob names, to the number of the last layer with that top, or LABEL */
	struct psd_names all_tops;   /* tops of all layers of training, later ones included */
	struct psd_names parameters; /* names of shared parameters (prototxt_tensors.c) */
	struct psd_caffe_blobs_5d blobs_5d;
	bool has_loss;				 /* the file has a loss layer, so that no Softmax is the loss */
	bool is_test;				 /* only the phase TEST has data: its layers are the network */
	const struct psd_model_choices *choices; /* NULL: none */
	struct psd_text mistakes;		 /* messages about all wrong layers */
	unsigned n_mistakes, n_unsaid;
	bool reads_wrong; /* the layer reads the blob of a wrong one */
	struct psd_text remarks;
	struct psd_error *err;
};

/* ---- phases ---- */

/* Does a NetStateRule hold for a phase at level 0 without stages? */
static enum psd_status holds(const struct psd_node *rule, bool is_test, bool *does_hold, struct psd_error *err)
{
	static const char *const known[] = {"phase", "min_level", "max_level", "stage", "not_stage", NULL};
	static const char *const phases[] = {"TRAIN", "TEST", "0", "1", NULL};
	const struct psd_node *phase = psd_node_child(rule, "phase");
	const struct psd_node *lowest = psd_node_child(rule, "min_level"), *highest = psd_node_child(rule, "max_level");
	double lowest_level = 0.0, highest_level = 0.0;
	unsigned index = is_test;

	PSD_TRY(psd_node_check_keys(rule, rule->key, known, err));
	if (phase)
		PSD_TRY(psd_node_choice(phase, phases, &index, err));
	if (lowest)
		PSD_TRY(psd_node_number(lowest, INT_MIN, INT_MAX, &lowest_level, err));
	if (highest)
		PSD_TRY(psd_node_number(highest, INT_MIN, INT_MAX, &highest_level, err));
	*does_hold =
		index % 2 == is_test && lowest_level <= 0.0 && highest_level >= 0.0 && !psd_node_child(rule, "stage");
	return PSD_OK;
}

/* A layer with include rules needs one that holds; others need no exclude rule that holds (Caffe's Net::FilterNet). */
static enum psd_status is_chosen(const struct psd_node *layer, bool is_test, bool *chosen, struct psd_error *err)
{
	bool has_include = false, is_included = false, is_excluded = false;

	for (const struct psd_node *child = layer->first; child; child = child->next) {
		const bool is_include = !strcmp(child->key, "include");
		bool does_hold;

		if (!is_include && strcmp(child->key, "exclude") != 0)
			continue;
		PSD_TRY(holds(child, is_test, &does_hold, err));
		has_include = has_include || is_include;
		is_included = is_included || (is_include && does_hold);
		is_excluded = is_excluded || (!is_include && does_hold);
	}
	*chosen = has_include ? is_included : !is_excluded;
	return PSD_OK;
}

static bool is_layer(const struct psd_node *node)
{
	return !strcmp(node->key, "layer") || !strcmp(node->key, "layers");
}

/* ---- blobs ---- */

static enum psd_status put_blob(struct reader *reader, const struct psd_node *top, unsigned number)
{
	const char *name;

	PSD_TRY(psd_node_text(top, &name, reader->err));
	return psd_names_put(&reader->blobs, name, number) ? PSD_OK : psd_out_of_memory(reader->err);
}

static enum psd_status resolve(struct reader *reader, const struct psd_layer_spec *spec, const struct psd_node *bottom,
			       unsigned *number)
{
	unsigned later;
	const char *name;

	PSD_TRY(psd_node_text(bottom, &name, reader->err));
	if (psd_names_find(&reader->blobs, name, number) && *number == WRONG)
		reader->reads_wrong = true;
	if (psd_names_find(&reader->blobs, name, number))
		return *number == WRONG ? PSD_EINVAL : PSD_OK;
	if (psd_names_find(&reader->all_tops, name, &later))
		return psd_error_set(reader->err, PSD_EINVAL, bottom->at,
				     "cyclic graph: layer '%.80s' reads '%.80s', which is a top of a layer below it",
				     spec->name, name);
	return psd_error_set(reader->err, PSD_EINVAL, bottom->at, "layer '%.80s' reads '%.80s', which does not exist",
			     spec->name, name);
}

static enum psd_status read_bottoms(struct reader *reader, const struct psd_node *layer, bool is_loss,
				    struct psd_layer_spec *spec)
{
	for (const struct psd_node *child = layer->first; child; child = child->next) {
		unsigned number = 0;

		if (strcmp(child->key, "bottom") != 0)
			continue;
		PSD_TRY(resolve(reader, spec, child, &number));
		if (number == LABEL && is_loss)
			continue;
		if (number != LABEL && reader->build.graph.layers[number].kind->is_loss)
			return psd_error_set(
				reader->err, PSD_EINVAL, child->at,
				"layer '%.80s' reads '%.80s', which is a loss, must be the end of the network",
				spec->name, child->text);
		if (number == LABEL)
			return psd_error_set(reader->err, PSD_EINVAL, child->at,
					     "layer '%.80s' reads the label '%.80s', which only losses may read",
					     spec->name, child->text);
		PSD_TRY(psd_layer_spec_add_input(spec, number, child->at, reader->err));
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

/* Stores the number of the layer whose output each top is. */
static enum psd_status put_tops(struct reader *reader, const struct psd_node *layer,
				const struct psd_caffe_draft *draft)
{
	unsigned number = draft->result;

	for (const struct psd_node *child = layer->first; child; child = child->next)
		if (!strcmp(child->key, "top")) {
			PSD_TRY(put_blob(reader, child, number));
			number += draft->is_one_each;
		}
	return PSD_OK;
}

/* ---- the file ---- */

/* The first top is the input; further ones, and a first one named "label", are labels. */
static enum psd_status add_data(struct reader *reader, const struct psd_node *layer,
				const struct psd_caffe_data_type *type, struct psd_layer_spec *spec)
{
	const struct psd_node *top = psd_node_child(layer, "top");

	spec->kind = &psd_layer_input;
	PSD_TRY(psd_caffe_check_data(layer, type, reader->err));
	if (!top)
		return psd_caffe_missing(layer, spec, "top", reader->err);
	if (top->kind == PSD_NODE_SCALAR && !strcmp(top->text, "label"))
		return put_blob(reader, top, LABEL);
	PSD_TRY(psd_caffe_read_input_size(layer, type,
					  &(struct psd_caffe_outside){reader->choices, top->text, &reader->remarks},
					  spec, reader->err));
	PSD_TRY(psd_graph_build_add(&reader->build, spec, reader->err));
	PSD_TRY(put_blob(reader, top, reader->build.graph.n_layers - 1));
	for (top = top->next; top; top = top->next)
		if (!strcmp(top->key, "top"))
			PSD_TRY(put_blob(reader, top, LABEL));
	return PSD_OK;
}

/* Sets spec->name to the layer's name, or else to its type; a number follows if an earlier layer has the same. */
static enum psd_status name_layer(struct reader *reader, const struct psd_node *layer, const char *type_name,
				  struct psd_layer_spec *spec, char numbered[PSD_GRAPH_NAME_MAX + 1])
{
	const struct psd_node *name = psd_node_child(layer, "name");
	unsigned n_before = 0, number;
	enum psd_status status = name ? psd_node_text(name, &spec->name, reader->err) : PSD_OK;

	if (!name || (!status && !*spec->name))
		spec->name = type_name;
	if (status)
		return status;
	(void)psd_names_find(&reader->names, spec->name, &n_before);
	if (!psd_names_put(&reader->names, spec->name, n_before + 1))
		return psd_out_of_memory(reader->err);
	if (!psd_names_find(&reader->build.names, spec->name, &number))
		return PSD_OK;
	snprintf(numbered, PSD_GRAPH_NAME_MAX + 1, "%.200s#%u", spec->name, n_before + 1);
	spec->name = numbered;
	return PSD_OK;
}

/* Layers that training does not need. */
static const char *const ignored[] = {"Accuracy", "ACCURACY", "Silence", "SILENCE", "ArgMax", "ARGMAX", NULL};

static const char *type_of(const struct psd_node *layer)
{
	const struct psd_node *type = psd_node_child(layer, "type");

	return type && type->kind == PSD_NODE_SCALAR ? type->text : "";
}

/* Does the layer have that blob under the key "bottom" or "top"? */
static bool has_blob(const struct psd_node *layer, const char *key, const char *name)
{
	for (const struct psd_node *child = layer->first; child; child = child->next)
		if (!strcmp(child->key, key) && child->kind == PSD_NODE_SCALAR && !strcmp(child->text, name))
			return true;
	return false;
}

/* Does a layer of training read the first top before another layer overwrites it? */
static enum psd_status is_read(const struct psd_node *layer, bool is_test, bool *is, struct psd_error *err)
{
	const struct psd_node *top = psd_node_child(layer, "top");
	bool is_overwritten = false;

	*is = false;
	if (!top || top->kind != PSD_NODE_SCALAR)
		return PSD_OK;
	for (const struct psd_node *next = layer->next; next && !*is && !is_overwritten; next = next->next) {
		bool chosen = false;

		if (!is_layer(next) || next->kind != PSD_NODE_MAPPING || psd_spelling_is_one_of(type_of(next), ignored))
			continue;
		PSD_TRY(is_chosen(next, is_test, &chosen, err));
		*is = chosen && has_blob(next, "bottom", top->text);
		is_overwritten = chosen && has_blob(next, "top", top->text);
	}
	return PSD_OK;
}

/* Sets *type, to NULL if training does not need the layer. A Softmax that no layer reads ends a network for deployment:
 * it becomes the loss, unless the file has one. */
static enum psd_status find_type(const struct reader *reader, const struct psd_node *layer,
				 const struct psd_caffe_type **type, struct psd_error *err)
{
	static const char *const softmaxes[] = {"Softmax", "SOFTMAX", NULL};
	bool is_inner = true;

	*type = psd_caffe_find_type(type_of(layer));
	if (psd_spelling_is_one_of(type_of(layer), softmaxes))
		PSD_TRY(is_read(layer, reader->is_test, &is_inner, err));
	if (!is_inner)
		*type = reader->has_loss ? NULL : psd_caffe_find_type("SoftmaxWithLoss");
	return PSD_OK;
}

/* A layer in Python has the sizes that the user gives for each of its tops; without bottoms it is an input. */
static enum psd_status add_python(struct reader *reader, const struct psd_node *layer, struct psd_layer_spec *spec)
{
	const char *const own_name = spec->name;
	const bool is_input = !psd_node_child(layer, "bottom");
	unsigned n_tops = 0;

	PSD_TRY(read_bottoms(reader, layer, true, spec));
	for (const struct psd_node *top = layer->first; top; top = top->next) {
		struct psd_shape shape = {0};
		char name[PSD_GRAPH_NAME_MAX + 1];

		if (strcmp(top->key, "top") != 0 || top->kind != PSD_NODE_SCALAR)
			continue;
		if (n_tops++ && is_input && strstr(top->text, "label")) {
			PSD_TRY(put_blob(reader, top, LABEL));
			continue;
		}
		PSD_TRY(psd_caffe_find_size(reader->choices, top->text, NULL, &shape, reader->err));
		if (!shape.channels)
			return psd_error_set(reader->err, PSD_EINVAL, top->at,
					     "layer '%.80s' is written in Python, its top '%.80s' needs the key "
					     "model.input: {%.80s: 3x224x224}",
					     own_name, top->text, top->text);
		snprintf(name, sizeof(name), "%.120s%s%.120s", own_name, n_tops > 1 ? "." : "",
			 n_tops > 1 ? top->text : "");
		spec->name = name;
		spec->kind = is_input ? &psd_layer_input : &psd_layer_other;
		spec->settings = psd_layer_other.defaults;
		if (is_input)
			spec->settings.shape = shape;
		else
			spec->settings.other.shape = shape;
		PSD_TRY(psd_graph_build_add(&reader->build, spec, reader->err));
		PSD_TRY(put_blob(reader, top, reader->build.graph.n_layers - 1));
	}
	return PSD_OK;
}

static enum psd_status add_layer(struct reader *reader, const struct psd_node *layer)
{
	struct psd_layer_spec spec = {.at = layer->at};
	struct psd_caffe_draft draft = {.build = &reader->build,
					.spec = &spec,
					.blobs_5d = &reader->blobs_5d,
					.n_tops = count_tops(layer),
					.allows_other = reader->choices && reader->choices->allows_other};
	const struct psd_node *type_node = psd_node_child(layer, "type");
	const struct psd_caffe_type *type;
	char numbered[PSD_GRAPH_NAME_MAX + 1];
	const char *type_name;

	if (!type_node)
		return psd_error_set(reader->err, PSD_EINVAL, layer->at, "a layer must have a 'type'");
	PSD_TRY(psd_node_text(type_node, &type_name, reader->err));
	if (psd_spelling_is_one_of(type_name, ignored))
		return PSD_OK;
	PSD_TRY(name_layer(reader, layer, type_name, &spec, numbered));
	if (psd_caffe_find_data_type(type_name))
		return add_data(reader, layer, psd_caffe_find_data_type(type_name), &spec);
	if (!psd_caffe_find_type(type_name) && reader->choices && reader->choices->allows_other) {
		bool takes_labels;

		if (!strcmp(type_name, "Python"))
			return add_python(reader, layer, &spec);
		if (psd_caffe_is_other(type_name, &takes_labels)) {
			PSD_TRY(read_bottoms(reader, layer, takes_labels, &spec));
			PSD_TRY(psd_caffe_build_other(layer, type_name, &draft, reader->err));
			return put_tops(reader, layer, &draft);
		}
	}
	if (!psd_caffe_find_type(type_name))
		return psd_error_set(reader->err, PSD_EINVAL, type_node->at,
				     "layer '%.80s' has the unknown type '%.80s'", spec.name, type_name);
	PSD_TRY(find_type(reader, layer, &type, reader->err));
	if (!type)
		return PSD_OK;
	PSD_TRY(read_bottoms(reader, layer, psd_caffe_is_loss(type), &spec));
	PSD_TRY(psd_caffe_read_settings(layer, type, &spec, reader->err));
	PSD_TRY(psd_caffe_find_owner(layer, &reader->build.graph, &reader->parameters, &spec, reader->err));
	PSD_TRY(psd_caffe_build(layer, type, &draft, reader->err));
	if (!psd_caffe_put_names(layer, draft.result, &reader->parameters))
		return psd_out_of_memory(reader->err);
	return put_tops(reader, layer, &draft);
}

/* True if the network has data in that phase. */
static enum psd_status has_data(const struct psd_node *root, bool is_test, bool *has, struct psd_error *err)
{
	*has = psd_node_child(root, "input");
	for (const struct psd_node *layer = root->first; layer && !*has; layer = layer->next) {
		const bool is_python = !strcmp(type_of(layer), "Python") && !psd_node_child(layer, "bottom");

		if (!is_layer(layer) || layer->kind != PSD_NODE_MAPPING ||
		    (!is_python && !psd_caffe_find_data_type(type_of(layer))))
			continue;
		PSD_TRY(is_chosen(layer, is_test, has, err));
	}
	return PSD_OK;
}

/* Takes the phase TEST if only that has data. */
static enum psd_status choose_phase(struct reader *reader, const struct psd_node *root)
{
	bool has[2];

	for (unsigned is_test = 0; is_test < 2; is_test++)
		PSD_TRY(has_data(root, is_test, &has[is_test], reader->err));
	reader->is_test = !has[0] && has[1];
	if (reader->is_test)
		psd_text_add(&reader->remarks, "phase: the layers are those of TEST, because TRAIN has no data\n");
	return PSD_OK;
}

/* Input of older networks for deployment: "input: "data"" with input_dim four times, or with input_shape { dim ... }.
 * Further inputs are labels. */
static enum psd_status add_top_level_input(struct reader *reader, const struct psd_node *root)
{
	struct psd_layer_spec spec = {.kind = &psd_layer_input};
	const struct psd_node *input = psd_node_child(root, "input"), *shape = psd_node_child(root, "input_shape");
	uint32_t dims[5];
	unsigned n_dims = 0;

	if (!input)
		return PSD_OK;
	spec.at = input->at;
	PSD_TRY(psd_node_text(input, &spec.name, reader->err));
	PSD_TRY(psd_caffe_find_size(reader->choices, spec.name, NULL, &spec.settings.shape, reader->err));
	if (!spec.settings.shape.channels && shape)
		PSD_TRY(psd_caffe_read_shape(shape, &spec.settings.shape, reader->err));
	if (!shape)
		PSD_TRY(psd_caffe_read_dims(root, "input_dim", dims, &n_dims, reader->err));
	if (!spec.settings.shape.channels && n_dims >= 4)
		spec.settings.shape = (struct psd_shape){dims[1], dims[2], dims[3]};
	if (!spec.settings.shape.channels && reader->choices)
		spec.settings.shape = reader->choices->sample;
	if (!spec.settings.shape.channels)
		return psd_error_set(reader->err, PSD_EINVAL, input->at,
				     "input '%.80s' has no size, needs input_dim four times, input_shape { dim }, or "
				     "the key model.input",
				     spec.name);
	PSD_TRY(psd_graph_build_add(&reader->build, &spec, reader->err));
	PSD_TRY(put_blob(reader, input, 0));
	for (input = input->next; input; input = input->next)
		if (!strcmp(input->key, "input"))
			PSD_TRY(put_blob(reader, input, LABEL));
	return PSD_OK;
}

/* Collects the tops of training, and finds out whether there is a loss. */
static enum psd_status collect_tops(struct reader *reader, const struct psd_node *root)
{
	for (const struct psd_node *layer = root->first; layer; layer = layer->next) {
		const struct psd_caffe_type *type;
		bool chosen = false;

		if (!is_layer(layer) || layer->kind != PSD_NODE_MAPPING ||
		    psd_spelling_is_one_of(type_of(layer), ignored))
			continue;
		PSD_TRY(is_chosen(layer, reader->is_test, &chosen, reader->err));
		type = psd_caffe_find_type(type_of(layer));
		reader->has_loss = reader->has_loss || (chosen && type && psd_caffe_is_loss(type));
		for (const struct psd_node *top = chosen ? layer->first : NULL; top; top = top->next)
			if (!strcmp(top->key, "top") && top->kind == PSD_NODE_SCALAR &&
			    !psd_names_put(&reader->all_tops, top->text, 0))
				return psd_out_of_memory(reader->err);
	}
	return PSD_OK;
}

/* A message without the path that the first one has. */
static const char *without_path(const char *text, const char *path)
{
	const size_t length = strlen(path);

	return strncmp(text, path, length) != 0 || text[length] != ':' ? text : text + length + 1;
}

/* Keeps the message about a wrong layer, so that others can follow; layers that read its tops are passed over. */
static enum psd_status note_mistake(struct reader *reader, const struct psd_node *layer)
{
	enum { MOST_BYTES = 900 };
	const char *text = reader->mistakes.bytes ? without_path(reader->err->text, layer->at.path) : reader->err->text;

	if (!reader->reads_wrong && reader->mistakes.length + strlen(text) > MOST_BYTES)
		reader->n_unsaid++;
	else if (!reader->reads_wrong)
		psd_text_add(&reader->mistakes, "%s%s", reader->mistakes.bytes ? "; " : "", text);
	reader->n_mistakes += !reader->reads_wrong;
	reader->reads_wrong = false;
	for (const struct psd_node *top = layer->first; top; top = top->next)
		if (!strcmp(top->key, "top") && top->kind == PSD_NODE_SCALAR)
			PSD_TRY(put_blob(reader, top, WRONG));
	return PSD_OK;
}

static enum psd_status refuse_mistakes(struct reader *reader)
{
	if (!reader->n_mistakes)
		return PSD_OK;
	if (reader->n_unsaid)
		psd_text_add(&reader->mistakes, "; and %u more", reader->n_unsaid);
	if (reader->mistakes.is_out_of_memory)
		return psd_out_of_memory(reader->err);
	return psd_error_set(reader->err, PSD_EINVAL, PSD_NOWHERE, "%s", reader->mistakes.bytes);
}

/* Adds a layer. For a prediction all layers are tried, so that one message has all that is wrong. */
static enum psd_status try_layer(struct reader *reader, const struct psd_node *layer)
{
	const enum psd_status status = add_layer(reader, layer);

	if (status != PSD_EINVAL || reader->build.is_broken || !reader->choices || !reader->choices->allows_other)
		return status;
	return note_mistake(reader, layer);
}

static enum psd_status add_layers(struct reader *reader, const struct psd_node *root)
{
	for (const struct psd_node *layer = root->first; layer; layer = layer->next) {
		bool chosen = false;

		if (!is_layer(layer))
			continue;
		if (layer->kind != PSD_NODE_MAPPING)
			return psd_error_set(reader->err, PSD_EINVAL, layer->at, "'%s' must be a message in braces",
					     layer->key);
		PSD_TRY(is_chosen(layer, reader->is_test, &chosen, reader->err));
		if (chosen)
			PSD_TRY(try_layer(reader, layer));
	}
	return refuse_mistakes(reader);
}

/* Refuses a state of the network that would choose other layers than training does. */
static enum psd_status check_state(const struct psd_node *root, struct psd_error *err)
{
	static const char *const known[] = {"phase", "level", NULL}, *const training[] = {"TRAIN", "0", NULL};
	const struct psd_node *state, *field;
	unsigned choice;

	PSD_TRY(psd_caffe_single(root, "state", &state, err));
	if (!state)
		return PSD_OK;
	PSD_TRY(psd_node_check_keys(state, "state", known, err));
	for (field = state->first; field; field = field->next)
		PSD_TRY(!strcmp(field->key, "phase") ? psd_node_choice(field, training, &choice, err)
						     : psd_node_number(field, 0, 0, &(double){0}, err));
	return PSD_OK;
}

/* Checks that every input whose size the user gives exists: by the layer's name or that of its top. */
static enum psd_status check_inputs(const struct reader *reader, const struct psd_node *root)
{
	const char *known[2 * PSD_MODEL_INPUTS_MAX];
	unsigned n = 0;

	for (const struct psd_node *node = root->first; node && n + 2 <= 2 * PSD_MODEL_INPUTS_MAX; node = node->next) {
		const struct psd_node *top = psd_node_child(node, "top"), *name = psd_node_child(node, "name");

		if (!strcmp(node->key, "input") && node->kind == PSD_NODE_SCALAR)
			known[n++] = node->text;
		if (is_layer(node) && !strcmp(type_of(node), "Python"))
			for (const struct psd_node *each = node->first; each && n + 2 <= 2 * PSD_MODEL_INPUTS_MAX;
			     each = each->next)
				if (!strcmp(each->key, "top") && each->kind == PSD_NODE_SCALAR)
					known[n++] = each->text;
		if (!is_layer(node) || !psd_caffe_find_data_type(type_of(node)))
			continue;
		top = top && top->kind == PSD_NODE_SCALAR ? top : NULL;
		if (top)
			known[n++] = top->text;
		if (name && name->kind == PSD_NODE_SCALAR && (!top || strcmp(top->text, name->text) != 0))
			known[n++] = name->text;
	}
	return psd_choices_check_inputs(reader->choices, root->at.path, known, n, reader->err);
}

static enum psd_status read_root(struct reader *reader, const struct psd_node *root, struct psd_graph *graph)
{
	static const char *const known[] = {"name",   "input", "input_dim",	 "input_shape", "layer",
					    "layers", "state", "force_backward", "debug_info",	NULL};
	const char *name = "unnamed";
	const struct psd_node *name_node;

	PSD_TRY(psd_node_check_keys(root, "network", known, reader->err));
	PSD_TRY(psd_caffe_single(root, "name", &name_node, reader->err));
	if (name_node)
		PSD_TRY(psd_node_text(name_node, &name, reader->err));
	PSD_TRY(check_state(root, reader->err));
	PSD_TRY(check_inputs(reader, root));
	PSD_TRY(choose_phase(reader, root));
	PSD_TRY(collect_tops(reader, root));
	PSD_TRY(add_top_level_input(reader, root));
	PSD_TRY(add_layers(reader, root));
	if (reader->remarks.is_out_of_memory)
		return psd_out_of_memory(reader->err);
	PSD_TRY(psd_graph_build_seal(&reader->build, name, (struct psd_place){.path = root->at.path}, graph,
				     reader->err));
	graph->remarks = reader->remarks.bytes;
	reader->remarks = (struct psd_text){.bytes = NULL};
	return PSD_OK;
}

enum psd_status psd_prototxt_parse(struct psd_graph *graph, const char *path, const void *text, size_t length,
				   const struct psd_model_choices *choices, struct psd_error *err)
{
	struct reader reader = {.choices = choices, .err = err};
	struct psd_arena arena = {0};
	const struct psd_node *root = NULL;
	enum psd_status status = psd_text_format_parse(&root, &arena, path, text, length, err);

	if (!status)
		status = psd_caffe_upgrade(&root, &arena, err);
	if (!status && choices && choices->allows_other)
		status = psd_caffe_drop_harmless(&root, &arena, &reader.remarks, err);
	if (!status)
		status = read_root(&reader, root, graph);
	psd_graph_build_release(&reader.build);
	psd_names_release(&reader.names);
	psd_names_release(&reader.blobs);
	psd_names_release(&reader.all_tops);
	psd_names_release(&reader.parameters);
	psd_text_release(&reader.remarks);
	psd_text_release(&reader.mistakes);
	free(reader.blobs_5d.all);
	psd_arena_release(&arena);
	return status;
}
