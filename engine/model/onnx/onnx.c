/* Reading of a file: values by name, needed nodes, input and output. */
#include "engine/model/onnx/onnx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/file.h"
#include "engine/model/layer.h"
#include "engine/model/onnx/parts.h"

static struct psd_place place_of(const struct psd_onnx *onnx)
{
	return (struct psd_place){.path = onnx->path};
}

/* ---- values ---- */

static enum psd_status name_value(struct psd_onnx *onnx, const char *name, unsigned *n_values)
{
	unsigned number;

	if (!name || !*name)
		return PSD_OK;
	if (psd_names_find(&onnx->names, name, &number))
		return psd_error_set(onnx->err, PSD_EINVAL, place_of(onnx), "the value '%.100s' exists twice", name);
	return psd_names_put(&onnx->names, name, (*n_values)++) ? PSD_OK : psd_onnx_no_memory(onnx);
}

static bool is_initializer(const struct psd_onnx *onnx, const char *name)
{
	unsigned number;

	return name && psd_names_find(&onnx->names, name, &number);
}

/* Numbers all values: 0 is absent; initializers, inputs and outputs of nodes follow. */
static enum psd_status name_values(struct psd_onnx *onnx, unsigned *n_values)
{
	const Onnx__Graph *graph = onnx->graph;

	*n_values = 1;
	for (size_t i = 0; i < graph->n_initializer; i++)
		PSD_TRY(name_value(onnx, graph->initializer[i]->name, n_values));
	for (size_t i = 0; i < graph->n_input; i++) /* old files list initializers as inputs too */
		if (!is_initializer(onnx, graph->input[i]->name))
			PSD_TRY(name_value(onnx, graph->input[i]->name, n_values));
	for (size_t i = 0; i < graph->n_node; i++)
		for (size_t o = 0; o < graph->node[i]->n_output; o++)
			PSD_TRY(name_value(onnx, graph->node[i]->output[o], n_values));
	return PSD_OK;
}

static enum psd_status check_nodes(const struct psd_onnx *onnx)
{
	const Onnx__Graph *graph = onnx->graph;

	if (!graph->n_output || !graph->output[0]->name || !*graph->output[0]->name)
		return psd_error_set(onnx->err, PSD_EINVAL, place_of(onnx), "the network has no output");
	for (size_t i = 0; i < graph->n_node; i++)
		if (!graph->node[i]->op_type || !graph->node[i]->n_output)
			return psd_error_set(onnx->err, PSD_EINVAL, place_of(onnx),
					     "node %zu has no operator or no output", i);
	return PSD_OK;
}

/* Finds, from the first output back, the needed values and their consumers. Nodes are in topological order. */
static enum psd_status find_needed(struct psd_onnx *onnx, unsigned n_values)
{
	const Onnx__Graph *graph = onnx->graph;
	bool *is_needed = psd_arena_take(&onnx->arena, n_values * sizeof(*is_needed));
	unsigned number;

	onnx->n_consumers = psd_arena_take(&onnx->arena, n_values * sizeof(*onnx->n_consumers));
	onnx->consumers = psd_arena_take(&onnx->arena, n_values * sizeof(*onnx->consumers));
	onnx->is_done = psd_arena_take(&onnx->arena, (graph->n_node + 1) * sizeof(*onnx->is_done));
	onnx->producers = psd_arena_take(&onnx->arena, n_values * sizeof(*onnx->producers));
	if (!is_needed || !onnx->n_consumers || !onnx->consumers || !onnx->producers || !onnx->is_done)
		return psd_onnx_no_memory(onnx);
	if (!psd_names_find(&onnx->names, graph->output[0]->name, &number))
		return psd_error_set(onnx->err, PSD_EINVAL, place_of(onnx), "no node makes the output '%.100s'",
				     graph->output[0]->name);
	is_needed[number] = true;
	for (size_t i = graph->n_node; i-- > 0;) {
		const Onnx__Node *node = graph->node[i];

		onnx->is_done[i] = true;
		for (size_t o = 0; o < node->n_output; o++)
			if (*node->output[o] && psd_names_find(&onnx->names, node->output[o], &number)) {
				onnx->producers[number] = (unsigned)i + 1;
				onnx->is_done[i] = onnx->is_done[i] && !is_needed[number];
			}
		for (size_t k = 0; !onnx->is_done[i] && k < node->n_input; k++) {
			if (!*node->input[k])
				continue;
			if (!psd_names_find(&onnx->names, node->input[k], &number))
				return psd_error_set(onnx->err, PSD_EINVAL, place_of(onnx),
						     "node '%.100s' (%.40s) reads '%.100s', which does not exist",
						     node->name ? node->name : "", node->op_type, node->input[k]);
			is_needed[number] = true;
			onnx->n_consumers[number]++;
			onnx->consumers[number] = (unsigned)i;
		}
	}
	return PSD_OK;
}

/* ---- the input ---- */

/* Is the loss the only consumer of the input, as labels? */
static bool is_labels(const struct psd_onnx *onnx, const Onnx__ValueInfo *input, unsigned number)
{
	const Onnx__Node *reader = onnx->n_consumers[number] == 1 ? onnx->graph->node[onnx->consumers[number]] : NULL;

	return reader && !strcmp(reader->op_type, "SoftmaxCrossEntropyLoss") && reader->n_input > 1 &&
	       !strcmp(reader->input[1], input->name);
}

static enum psd_status read_dims(const struct psd_onnx *onnx, const Onnx__ValueInfo *input, uint64_t dims[4],
				 unsigned *n)
{
	const Onnx__TensorType *type = input->type ? input->type->tensor_type : NULL;

	if (!type || !type->shape || type->shape->n_dim < 2 || type->shape->n_dim > 4)
		return psd_error_set(onnx->err, PSD_EINVAL, place_of(onnx),
				     "the input '%.100s' must have two to four axes, the first of which is the batch",
				     input->name);
	*n = (unsigned)type->shape->n_dim;
	for (unsigned a = 0; a < *n; a++) {
		const Onnx__Dim *dim = type->shape->dim[a];
		const bool is_open = !dim->has_value || dim->value < 1;

		if (a > 0 && (is_open || dim->value > PSD_LAYER_CHANNELS_MAX))
			return psd_error_set(onnx->err, PSD_EINVAL, place_of(onnx),
					     "axis %u of the input '%.100s' has size %lld ('%.40s'), must be 1 to %u: "
					     "only the batch "
					     "may be open",
					     a, input->name, (long long)dim->value, dim->param ? dim->param : "",
					     PSD_LAYER_CHANNELS_MAX);
		dims[a] = is_open ? 1 : (uint64_t)dim->value;
	}
	if (dims[0] > UINT32_MAX)
		dims[0] = 1;
	return PSD_OK;
}

/* Adds the input layer. Integers of two axes are tokens: one channel with a row for each position. Maps have their
 * channels last, as in TensorFlow, if the last axis is small and the others are larger. */
static enum psd_status add_input(struct psd_onnx *onnx, const Onnx__ValueInfo *input, struct psd_onnx_value *value)
{
	struct psd_layer_spec spec = {.kind = &psd_layer_input, .name = input->name, .at = place_of(onnx)};
	struct psd_shape *shape = &spec.settings.shape;
	struct psd_onnx_view view = {.layer = 0};
	uint64_t dims[4] = {1, 1, 1, 1}, strides[4];
	unsigned n = 0;
	bool is_integer, are_channels_last;

	PSD_TRY(read_dims(onnx, input, dims, &n));
	is_integer = !psd_onnx_is_real(input->type->tensor_type->elem_type);
	are_channels_last = n == 4 && dims[3] <= 4 && dims[1] > 4 && dims[2] > 4;
	*shape = (struct psd_shape){(uint32_t)dims[1], (uint32_t)dims[2], (uint32_t)dims[3]};
	strides[1] = dims[2] * dims[3];
	strides[2] = dims[3];
	strides[3] = 1;
	if (is_integer && n == 2)
		*shape = (struct psd_shape){1, (uint32_t)dims[1], 1};
	if (are_channels_last) {
		*shape = (struct psd_shape){(uint32_t)dims[3], (uint32_t)dims[1], (uint32_t)dims[2]};
		strides[1] = dims[2];
		strides[2] = 1;
		strides[3] = dims[1] * dims[2];
	}
	if (shape->height > PSD_LAYER_SIDE_MAX || shape->width > PSD_LAYER_SIDE_MAX)
		return psd_error_set(onnx->err, PSD_EINVAL, place_of(onnx),
				     "the input '%.100s' has more than %u positions", input->name, PSD_LAYER_SIDE_MAX);
	for (unsigned a = 0; a < n; a++) {
		psd_onnx_view_add_axis(&view);
		psd_onnx_view_add_digit(&view, dims[a], a ? strides[a] : PSD_ONNX_BATCH);
	}
	*value = (struct psd_onnx_value){
		.kind = PSD_ONNX_DATA, .view = view, .is_integer = is_integer, .expr = psd_onnx_expr_new(onnx)};
	return value->expr ? psd_graph_build_add(&onnx->build, &spec, onnx->err) : psd_onnx_no_memory(onnx);
}

static enum psd_status add_inputs(struct psd_onnx *onnx)
{
	const Onnx__Graph *graph = onnx->graph;
	const char *first = NULL;

	for (size_t i = 0; i < graph->n_input; i++) {
		const Onnx__ValueInfo *input = graph->input[i];
		unsigned number;

		if (!input->name || !psd_names_find(&onnx->names, input->name, &number) ||
		    onnx->values[number].kind != PSD_ONNX_ABSENT || !onnx->n_consumers[number])
			continue;
		if (is_labels(onnx, input, number)) {
			onnx->values[number].kind = PSD_ONNX_LABELS;
			continue;
		}
		if (first)
			return psd_error_set(onnx->err, PSD_EINVAL, place_of(onnx),
					     "the network has two inputs, '%.100s' and '%.100s', must have one: export "
					     "it with its parameters, without a loss, and other inputs as constants",
					     first, input->name);
		first = input->name;
		PSD_TRY(add_input(onnx, input, &onnx->values[number]));
	}
	if (!first)
		return psd_error_set(onnx->err, PSD_EINVAL, place_of(onnx), "the network reads no input");
	return PSD_OK;
}

/* ---- the graph ---- */

/* Computes a node of constants. These come first, so that nodes above them in the file know the results too. */
static enum psd_status compute_node(struct psd_onnx *onnx, size_t i)
{
	struct psd_error *const err = onnx->err;
	bool is_done = false;
	enum psd_status status;

	onnx->node = onnx->graph->node[i];
	for (unsigned k = 0; k < onnx->node->n_input; k++)
		if (*onnx->node->input[k] && psd_onnx_input(onnx, k)->kind != PSD_ONNX_CONSTANT)
			return PSD_OK;
	if (onnx->is_done[i] || psd_onnx_is_foreign(onnx->node))
		return PSD_OK;
	onnx->err = NULL; /* convert_node() reports the error */
	status = psd_onnx_try_view(onnx, &is_done);
	if (!status && !is_done)
		status = psd_onnx_try_fold(onnx, &is_done);
	onnx->err = err;
	onnx->is_done[i] = !status && is_done;
	return status == PSD_ENOMEM ? psd_onnx_no_memory(onnx) : PSD_OK;
}

static enum psd_status convert_node(struct psd_onnx *onnx, size_t i)
{
	onnx->node = onnx->graph->node[i];
	if (onnx->is_done[i])
		return PSD_OK;
	for (unsigned k = 0; k < onnx->node->n_input; k++) {
		const enum psd_onnx_kind kind = psd_onnx_input(onnx, k)->kind;

		if (kind == PSD_ONNX_ABSENT && *onnx->node->input[k])
			return psd_onnx_refuse(onnx, "reads '%.100s', which no node above it makes",
					       onnx->node->input[k]);
		if (kind == PSD_ONNX_SEQUENCE && strcmp(onnx->node->op_type, "SequenceAt") != 0)
			return psd_onnx_refuse(onnx, "reads a sequence, which only SequenceAt can");
	}
	return psd_onnx_convert(onnx);
}

static enum psd_status read_graph(struct psd_onnx *onnx)
{
	const Onnx__Graph *graph = onnx->graph;
	unsigned n_values, output = 0;

	PSD_TRY(check_nodes(onnx));
	PSD_TRY(name_values(onnx, &n_values));
	onnx->values = psd_arena_take(&onnx->arena, n_values * sizeof(*onnx->values));
	if (!onnx->values)
		return psd_onnx_no_memory(onnx);
	PSD_TRY(find_needed(onnx, n_values));
	for (unsigned i = 0, v = 1; i < graph->n_initializer; i++)
		if (graph->initializer[i]->name && *graph->initializer[i]->name)
			PSD_TRY(psd_onnx_constant_of(onnx, graph->initializer[i], &onnx->values[v++]));
	PSD_TRY(add_inputs(onnx));
	for (size_t i = 0; i < graph->n_node; i++)
		PSD_TRY(compute_node(onnx, i));
	for (size_t i = 0; i < graph->n_node; i++)
		PSD_TRY(convert_node(onnx, i));
	if (onnx->has_loss)
		return PSD_OK;
	if (!onnx->node || !psd_names_find(&onnx->names, graph->output[0]->name, &output))
		return psd_error_set(onnx->err, PSD_EINVAL, place_of(onnx), "the network has no nodes");
	return psd_onnx_add_loss(onnx, &onnx->values[output], psd_onnx_class_axis(onnx, &onnx->values[output]));
}

/* Limit of constant numbers for a file of that length: a small file with many large masks is refused. */
static uint64_t limit_numbers(size_t length)
{
	const uint64_t numbers = PSD_ONNX_NUMBERS_MAX + UINT64_C(256) * length;

	return numbers < PSD_ONNX_ALL_NUMBERS_MAX ? numbers : PSD_ONNX_ALL_NUMBERS_MAX;
}

/* Names the graph after the file, without folder and ending: exporters give all graphs one name. */
static enum psd_status seal(struct psd_onnx *onnx, struct psd_graph *graph)
{
	const char *slash = strrchr(onnx->path, '/'), *base = slash ? slash + 1 : onnx->path;
	const char *dot = strrchr(base, '.');
	char *name = psd_arena_copy(&onnx->arena, base, dot && dot != base ? (size_t)(dot - base) : strlen(base));

	return name ? psd_graph_build_seal(&onnx->build, name, place_of(onnx), graph, onnx->err)
		    : psd_onnx_no_memory(onnx);
}

struct psd_onnx_file {
	struct psd_onnx onnx;
	struct psd_graph graph;
	Onnx__Model *model;
};

static enum psd_status read_model(struct psd_onnx_file *file, const void *bytes, size_t length)
{
	Onnx__Model *model = file->model = onnx__model__unpack(NULL, length, bytes);

	if (!model || !model->graph)
		return psd_error_set(file->onnx.err, PSD_EINVAL, place_of(&file->onnx),
				     "the file is not an ONNX model");
	file->onnx.graph = model->graph;
	file->onnx.most_numbers = limit_numbers(length);
	for (size_t i = 0; i < model->n_opset_import; i++)
		if (!model->opset_import[i]->domain || !*model->opset_import[i]->domain)
			file->onnx.version = model->opset_import[i]->version;
	PSD_TRY(read_graph(&file->onnx));
	return seal(&file->onnx, &file->graph);
}

static void release(struct psd_onnx_file *file)
{
	psd_graph_release(&file->graph);
	psd_graph_build_release(&file->onnx.build);
	psd_names_release(&file->onnx.names);
	psd_names_release(&file->onnx.owners);
	psd_names_release(&file->onnx.repeats);
	psd_arena_release(&file->onnx.arena);
	if (file->model)
		onnx__model__free_unpacked(file->model, NULL);
}

enum psd_status psd_onnx_parse(struct psd_graph *graph, const char *path, const void *bytes, size_t length,
			       struct psd_error *err)
{
	struct psd_onnx_file file = {.onnx = {.path = path, .err = err}};
	const enum psd_status status = read_model(&file, bytes, length);

	if (!status) {
		*graph = file.graph;
		file.graph = (struct psd_graph){0};
	}
	release(&file);
	return status;
}

/* ---- an open file ---- */

enum psd_status psd_onnx_open(struct psd_onnx_file **file, const char *path, struct psd_error *err)
{
	struct psd_onnx_file *opened;
	char *bytes;
	size_t length;
	enum psd_status status;

	PSD_TRY(psd_file_read_bytes(&bytes, &length, PSD_ONNX_BYTES_MAX, path, err));
	opened = calloc(1, sizeof(*opened));
	if (!opened) {
		free(bytes);
		return psd_error_set(err, PSD_ENOMEM, (struct psd_place){.path = path}, "out of memory");
	}
	opened->onnx.path = path;
	opened->onnx.err = err;
	status = read_model(opened, bytes, length);
	free(bytes);
	if (status)
		psd_onnx_close(opened);
	else
		*file = opened;
	return status;
}

const struct psd_graph *psd_onnx_graph(const struct psd_onnx_file *file)
{
	return &file->graph;
}

enum psd_status psd_onnx_values(struct psd_onnx_file *file, const struct psd_tensor *tensor, float values[],
				bool *is_there, struct psd_error *err)
{
	file->onnx.err = err;
	return psd_onnx_read_weight(&file->onnx, &file->graph, tensor, values, is_there);
}

void psd_onnx_close(struct psd_onnx_file *file)
{
	if (file)
		release(file);
	free(file);
}
