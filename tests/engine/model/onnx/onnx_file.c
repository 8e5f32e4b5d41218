/* The text's grammar is read from left to right; a mistake in it ends the test. */
#include "tests/engine/model/onnx/onnx_file.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/onnx/onnx.h"

/* ---- messages ---- */

static void *grown(void *items, size_t n, size_t size)
{
	items = realloc(items, (n + 1) * size);
	cr_assert_not_null(items);
	return items;
}

/* Appends to a repeated field. */
#define APPEND(message, field, item)                                                                                   \
	do {                                                                                                           \
		(message)->field = grown((message)->field, (message)->n_##field, sizeof(*(message)->field));           \
		(message)->field[(message)->n_##field++] = (item);                                                     \
	} while (0)

#define NEW(type, name)                                                                                                \
	static type *new_##name(void)                                                                                  \
	{                                                                                                              \
		type *message = grown(NULL, 0, sizeof(*message));                                                      \
		onnx__##name##__init(message);                                                                         \
		return message;                                                                                        \
	}
NEW(Onnx__Model, model)
NEW(Onnx__Graph, graph)
NEW(Onnx__Function, function)
NEW(Onnx__Node, node)
NEW(Onnx__Tensor, tensor)
NEW(Onnx__ValueInfo, value_info)
NEW(Onnx__Type, type)
NEW(Onnx__TensorType, tensor_type)
NEW(Onnx__Shape, shape)
NEW(Onnx__Dim, dim)
NEW(Onnx__Attribute, attribute)
NEW(Onnx__Entry, entry)
NEW(Onnx__OperatorSet, operator_set)

static char *copy_of(const char *from, size_t length)
{
	char *copy = grown(NULL, length, 1);

	memcpy(copy, from, length);
	copy[length] = '\0';
	return copy;
}

/* ---- words ---- */

static void skip(const char **at)
{
	while (**at == ' ' || **at == '\t')
		(*at)++;
}

static bool take(const char **at, const char *word)
{
	skip(at);
	if (strncmp(*at, word, strlen(word)) != 0)
		return false;
	*at += strlen(word);
	return true;
}

static void expect(const char **at, const char *word)
{
	cr_assert(take(at, word), "'%s' is missing before: %.60s", word, *at);
}

/* Up to one of these, or a space. */
static char *take_word(const char **at, const char *ends)
{
	const char *from;

	skip(at);
	from = *at;
	while (**at && !isspace((unsigned char)**at) && (!strchr(ends, **at) || !strncmp(*at, "::", 2)))
		*at += strncmp(*at, "::", 2) ? 1 : 2; /* "::" is part of a name */
	return copy_of(from, (size_t)(*at - from));
}

static double take_number(const char **at)
{
	char *end;
	const double number = strtod(*at, &end);

	cr_assert(end != *at, "no number: %.60s", *at);
	*at = end;
	return number;
}

static int32_t take_type(const char **at)
{
	static const char *const names[] = {"",	  "f32", "u8",	"i8",  "u16", "i16", "i32",  "i64", "str",
					    "b8", "f16", "f64", "u32", "u64", "c64", "c128", "bf16"};
	char *word = take_word(at, "[");
	int32_t type = 0;

	for (int32_t i = 1; i < (int32_t)(sizeof(names) / sizeof(names[0])); i++)
		type = !strcmp(word, names[i]) ? i : type;
	cr_assert(type, "no type: %s", word);
	free(word);
	return type;
}

/* ---- tensors ---- */

static void add_number(Onnx__Tensor *tensor, double number)
{
	switch (tensor->data_type) {
	case 1: APPEND(tensor, float_data, (float)number); break;
	case 7: APPEND(tensor, int64_data, (int64_t)number); break; /* up to 2^53 */
	case 11: APPEND(tensor, double_data, number); break;
	case 12:
	case 13: APPEND(tensor, uint64_data, (uint64_t)number); break;
	default: APPEND(tensor, int32_data, (int32_t)number); break;
	}
}

static void add_raw(Onnx__Tensor *tensor, int64_t bits)
{
	static const unsigned char bytes[] = {0, 4, 1, 1, 2, 2, 4, 8, 0, 1, 2, 8, 4, 8, 8, 16, 2};
	const unsigned n = bytes[tensor->data_type];

	tensor->raw_data.data = realloc(tensor->raw_data.data, tensor->raw_data.len + n);
	memcpy(tensor->raw_data.data + tensor->raw_data.len, &bits, n); /* assumes a little-endian machine */
	tensor->raw_data.len += n;
	tensor->has_raw_data = true;
}

static void add_entry(Onnx__Tensor *tensor, const char *key, char *value)
{
	Onnx__Entry *entry = new_entry();

	entry->key = copy_of(key, strlen(key));
	entry->value = value;
	APPEND(tensor, external_data, entry);
}

/* TYPE[SIDES] and, behind `=` or in braces, numbers. */
static Onnx__Tensor *take_tensor(const char **at, char *name)
{
	Onnx__Tensor *tensor = new_tensor();

	tensor->name = name;
	tensor->data_type = take_type(at);
	tensor->has_data_type = true;
	for (expect(at, "["); !take(at, "]"); (void)take(at, ","))
		APPEND(tensor, dims, (int64_t)strtoll(*at, (char **)at, 10));
	if (take(at, "{")) {
		while (!take(at, "}"))
			add_number(tensor, take_number(at));
	} else if (take(at, "=")) {
		const bool is_raw = take(at, "raw");

		if (take(at, "external")) {
			tensor->data_location = 1;
			tensor->has_data_location = true;
			add_entry(tensor, "location", take_word(at, "\n"));
			add_entry(tensor, "offset", take_word(at, "\n"));
			return tensor;
		}
		for (skip(at); **at && **at != '\n'; skip(at))
			if (is_raw)
				add_raw(tensor, strtoll(*at, (char **)at, 10));
			else if (tensor->data_type == 7)
				APPEND(tensor, int64_data, (int64_t)strtoll(*at, (char **)at, 10));
			else
				add_number(tensor, take_number(at));
	}
	return tensor;
}

static Onnx__ValueInfo *take_input(const char **at)
{
	Onnx__ValueInfo *input = new_value_info();

	input->name = take_word(at, ";}");
	input->type = new_type();
	input->type->tensor_type = new_tensor_type();
	input->type->tensor_type->elem_type = take_type(at);
	input->type->tensor_type->has_elem_type = true;
	input->type->tensor_type->shape = new_shape();
	for (expect(at, "["); !take(at, "]"); (void)take(at, ",")) {
		Onnx__Dim *dim = new_dim();

		skip(at);
		dim->has_value = isdigit((unsigned char)**at) || **at == '-';
		if (dim->has_value)
			dim->value = strtoll(*at, (char **)at, 10);
		else
			dim->param = take_word(at, ",]");
		APPEND(input->type->tensor_type->shape, dim, dim);
	}
	return input;
}

/* ---- nodes ---- */

static void take_list(const char **at, Onnx__Attribute *attribute)
{
	while (!take(at, "]")) {
		const char *from = *at;
		const double number = take_number(at);

		if (memchr(from, '.', (size_t)(*at - from)))
			APPEND(attribute, floats, (float)number);
		else
			APPEND(attribute, ints, strtoll(from, NULL, 10));
		(void)take(at, ",");
	}
}

static void take_line(const char **at, Onnx__Model *model);

/* Lines of an inner graph, each up to ';', in braces. */
static Onnx__Graph *take_graph(const char **at)
{
	Onnx__Model *model = new_model();
	Onnx__Graph *graph = model->graph = new_graph();

	while (!take(at, "}")) {
		take_line(at, model);
		(void)take(at, ";");
	}
	model->graph = NULL;
	onnx__model__free_unpacked(model, NULL);
	return graph;
}

static void take_value(const char **at, Onnx__Attribute *attribute)
{
	const char *from = *at;

	if (take(at, "{")) {
		Onnx__Graph *graph = take_graph(at);

		attribute->has_g = true;
		attribute->g.len = onnx__graph__get_packed_size(graph);
		attribute->g.data = grown(NULL, attribute->g.len, 1);
		onnx__graph__pack(graph, attribute->g.data);
		onnx__graph__free_unpacked(graph, NULL);
	} else if (take(at, "&")) {
		attribute->ref = take_word(at, ";}");
	} else if (take(at, "[")) {
		take_list(at, attribute);
	} else if (take(at, "\"")) {
		char *text = take_word(at, "\"");

		attribute->has_s = true;
		attribute->s.data = (uint8_t *)text;
		attribute->s.len = strlen(text);
		expect(at, "\"");
	} else if (isalpha((unsigned char)**at)) {
		attribute->t = take_tensor(at, NULL);
	} else {
		const double number = take_number(at);

		attribute->has_f = memchr(from, '.', (size_t)(*at - from)) || memchr(from, 'e', (size_t)(*at - from));
		attribute->has_i = !attribute->has_f;
		attribute->f = (float)number;
		attribute->i = attribute->has_i ? strtoll(from, NULL, 10) : 0;
	}
}

static void take_metadata(const char **at, Onnx__Node *node, const char *key)
{
	Onnx__Entry *entry = new_entry();
	const size_t length = strcspn(*at, "@\n");

	entry->key = copy_of(key, strlen(key));
	entry->value = copy_of(*at, length);
	*at += length;
	APPEND(node, metadata, entry);
}

/* From behind the outputs on. */
static void take_node(const char **at, Onnx__Node *node)
{
	node->op_type = take_word(at, "(");
	for (expect(at, "("); !take(at, ")");) {
		APPEND(node, input, take_word(at, ",)"));
		if (take(at, ",") && (skip(at), **at == ')'))
			APPEND(node, input, copy_of("", 0));
	}
	for (skip(at); **at && !strchr("\n;}", **at); skip(at)) {
		Onnx__Attribute *attribute;

		if (take(at, "@name=")) {
			node->name = take_word(at, ";");
		} else if (take(at, "@domain=")) {
			node->domain = take_word(at, ";");
		} else if (take(at, "@scopes=")) {
			take_metadata(at, node, "pkg.torch.onnx.name_scopes");
		} else if (take(at, "@fx=")) {
			take_metadata(at, node, "pkg.torch.onnx.fx_node");
		} else if (take(at, "@rules=")) {
			take_metadata(at, node, "pkg.onnxscript.rewriter.rule_name");
		} else {
			attribute = new_attribute();
			attribute->name = take_word(at, "=");
			expect(at, "=");
			take_value(at, attribute);
			APPEND(node, attribute, attribute);
		}
	}
}

/* ---- the file ---- */

static void add_output(Onnx__Graph *graph, char *name)
{
	Onnx__ValueInfo *output = new_value_info();

	output->name = name;
	APPEND(graph, output, output);
}

/* Adds a line such as "p_fc_bias: PARAMETER target='fc.bias'" to the exporter's list. */
static void add_listed(Onnx__Graph *graph, const char *kind, const char *name)
{
	static const char key[] = "pkg.torch.export.ExportedProgram.graph_signature";
	Onnx__Entry *entry = graph->n_metadata ? graph->metadata[0] : new_entry();
	char line[256];
	size_t length;

	if (!graph->n_metadata) {
		entry->key = copy_of(key, strlen(key));
		entry->value = copy_of("", 0);
		APPEND(graph, metadata, entry);
	}
	snprintf(line, sizeof(line), "%c_%s", *kind == 'P' ? 'p' : *kind == 'B' ? 'b' : 'c', name);
	for (char *at = line; *at; at++)
		*at = *at == '.' ? '_' : *at;
	length = strlen(entry->value);
	entry->value = grown(entry->value, length + 2 * sizeof(line), 1);
	snprintf(entry->value + length, 2 * sizeof(line), "%s: %s target='%s'\n", line, kind, name);
}

static void add_folded(const char **at, Onnx__Graph *graph)
{
	static const char key[] = "pkg.onnxscript.optimizer.folded_from";
	Onnx__ValueInfo *info = new_value_info();
	Onnx__Entry *entry = new_entry();
	char names[256] = "[", *name;

	info->name = take_word(at, "");
	expect(at, "from");
	for (skip(at); **at && **at != '\n'; skip(at)) {
		const size_t length = strlen(names);

		name = take_word(at, "");
		snprintf(names + length, sizeof(names) - length, "%s'%s'", length > 1 ? ", " : "", name);
		free(name);
	}
	entry->key = copy_of(key, strlen(key));
	entry->value = copy_of(names, strlen(names));
	APPEND(info, metadata, entry);
	APPEND(graph, value_info, info);
}

/* NAME (INPUTS) -> (OUTPUTS) ATTRIBUTES { LINES }, of the domain "local". */
static void take_function(const char **at, Onnx__Model *model)
{
	Onnx__Function *function = new_function();
	Onnx__Graph *graph;
	ProtobufCBinaryData bytes;

	function->name = take_word(at, "(");
	function->domain = copy_of("local", 5);
	for (expect(at, "("); !take(at, ")"); (void)take(at, ","))
		APPEND(function, input, take_word(at, ",)"));
	expect(at, "->");
	for (expect(at, "("); !take(at, ")"); (void)take(at, ","))
		APPEND(function, output, take_word(at, ",)"));
	while (!take(at, "{"))
		APPEND(function, attribute, take_word(at, "{"));
	graph = take_graph(at);
	function->node = graph->node;
	function->n_node = graph->n_node;
	graph->node = NULL;
	graph->n_node = 0;
	onnx__graph__free_unpacked(graph, NULL);
	bytes.len = onnx__function__get_packed_size(function);
	bytes.data = grown(NULL, bytes.len, 1);
	onnx__function__pack(function, bytes.data);
	onnx__function__free_unpacked(function, NULL);
	APPEND(model, functions, bytes);
}

static void take_line(const char **at, Onnx__Model *model)
{
	Onnx__Graph *graph = model->graph;
	char *word;

	if (take(at, "function ")) {
		take_function(at, model);
	} else if (take(at, "opset ")) {
		model->opset_import[0]->version = (int64_t)take_number(at);
	} else if (take(at, "input ")) {
		APPEND(graph, input, take_input(at));
	} else if (take(at, "output ")) {
		add_output(graph, take_word(at, ";}"));
	} else if (take(at, "listed ")) {
		char *kind = take_word(at, ""), *name = take_word(at, "");

		add_listed(graph, kind, name);
		free(kind);
		free(name);
	} else if (take(at, "folded ")) {
		add_folded(at, graph);
	} else {
		Onnx__Node *node = NULL;

		word = take_word(at, ":,=");
		if (take(at, ":")) {
			APPEND(graph, initializer, take_tensor(at, word));
			return;
		}
		node = new_node();
		APPEND(node, output, word);
		while (take(at, ","))
			APPEND(node, output, take_word(at, ",="));
		expect(at, "=");
		take_node(at, node);
		APPEND(graph, node, node);
	}
}

Onnx__Model *onnx_file_of(const char *text)
{
	Onnx__Model *model = new_model();
	Onnx__OperatorSet *operators = new_operator_set();

	model->graph = new_graph();
	operators->version = 20;
	operators->has_version = true;
	APPEND(model, opset_import, operators);
	for (const char *at = text; *at;) {
		skip(&at);
		if (*at != '\n')
			take_line(&at, model);
		skip(&at);
		cr_assert(*at == '\n' || !*at, "too much in a line: %.60s", at);
		at += *at == '\n';
	}
	if (!model->graph->n_output && model->graph->n_node) {
		const char *last = model->graph->node[model->graph->n_node - 1]->output[0];

		add_output(model->graph, copy_of(last, strlen(last)));
	}
	return model;
}

uint8_t *onnx_file_pack(const Onnx__Model *model, size_t *length)
{
	uint8_t *bytes;

	*length = onnx__model__get_packed_size(model);
	bytes = grown(NULL, *length, 1);
	cr_assert_eq(onnx__model__pack(model, bytes), *length);
	return bytes;
}

enum psd_status onnx_file_parse(const char *text, struct psd_graph *graph, struct psd_error *err)
{
	return onnx_file_parse_as(text, NULL, graph, err);
}

enum psd_status onnx_file_parse_as(const char *text, const struct psd_model_choices *choices, struct psd_graph *graph,
				   struct psd_error *err)
{
	Onnx__Model *model = onnx_file_of(text);
	size_t length;
	uint8_t *bytes = onnx_file_pack(model, &length);
	const enum psd_status status = psd_onnx_parse(graph, "m.onnx", bytes, length, choices, err);

	free(bytes);
	onnx__model__free_unpacked(model, NULL);
	return status;
}

struct psd_graph onnx_file_load(const char *text)
{
	struct psd_graph graph;
	struct psd_error err = {0};

	cr_assert_eq(onnx_file_parse(text, &graph, &err), PSD_OK, "%s\n%s", err.text, text);
	return graph;
}

void onnx_file_refuses(const char *text, const char *message)
{
	struct psd_graph graph;
	struct psd_error err = {0};
	const enum psd_status status = onnx_file_parse(text, &graph, &err);

	cr_assert_eq(status, PSD_EINVAL, "%s\n%s", message, text);
	cr_assert(!strncmp(err.text, "m.onnx: ", 8) && !strcmp(err.text + 8, message), "%s\ninstead of %s", err.text,
		  message);
}

/* ---- the graph that was read ---- */

const struct psd_layer *onnx_file_layer(const struct psd_graph *graph, const char *name)
{
	for (unsigned i = 0; i < graph->n_layers; i++)
		if (!strcmp(graph->layers[i].name, name))
			return &graph->layers[i];
	cr_assert_fail("no layer '%s'", name);
	return NULL;
}

void onnx_file_describe(const struct psd_graph *graph, char *text, size_t room)
{
	size_t n = 0;

	for (unsigned i = 0; i < graph->n_layers && n < room; i++) {
		const struct psd_layer *layer = &graph->layers[i];
		const struct psd_shape shape = layer->shape;

		n += (size_t)snprintf(text + n, room - n, "%s%s %u", i ? ", " : "", layer->kind->name, shape.channels);
		if (n < room && (shape.height > 1 || shape.width > 1))
			n += (size_t)snprintf(text + n, room - n, "x%u", shape.height);
		if (n < room && shape.width > 1)
			n += (size_t)snprintf(text + n, room - n, "x%u", shape.width);
	}
	cr_assert_lt(n, room);
}

void onnx_file_becomes(const char *text, const char *description)
{
	struct psd_graph graph = onnx_file_load(text);
	char found[4096];

	onnx_file_describe(&graph, found, sizeof(found));
	cr_assert_str_eq(found, description, "%s\ninstead of %s\n%s", found, description, text);
	psd_graph_release(&graph);
}
