/* Reading of a file: values by name, needed nodes, input and output. */
#include "engine/model/onnx/onnx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/file.h"
#include "engine/base/saturate.h"
#include "engine/model/choices.h"
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

/* Number of the output with that name; n_output: none. */
static size_t output_of(const Onnx__Graph *graph, const char *name)
{
	size_t o = 0;

	while (o < graph->n_output && (!graph->output[o]->name || strcmp(graph->output[o]->name, name) != 0))
		o++;
	return o;
}

/* Chooses the outputs that count: those of the user, or the first. */
static enum psd_status choose_outputs(struct psd_onnx *onnx)
{
	const struct psd_model_choices *choices = onnx->choices;

	onnx->is_output = psd_arena_take(&onnx->arena, onnx->graph->n_output * sizeof(*onnx->is_output));
	if (!onnx->is_output)
		return psd_onnx_no_memory(onnx);
	if (!choices || !choices->n_outputs)
		onnx->is_output[0] = true;
	for (unsigned i = 0; choices && i < choices->n_outputs; i++) {
		const size_t o = output_of(onnx->graph, choices->outputs[i]);

		if (o == onnx->graph->n_output)
			return psd_error_set(onnx->err, PSD_EINVAL, place_of(onnx),
					     "'outputs' has '%.100s', the file has no output of that name; its first "
					     "is '%.100s'",
					     choices->outputs[i], onnx->graph->output[0]->name);
		onnx->is_output[o] = true;
		onnx->first_output = i ? onnx->first_output : (unsigned)o;
	}
	return PSD_OK;
}

static enum psd_status mark_outputs(const struct psd_onnx *onnx, bool is_needed[])
{
	const Onnx__Graph *graph = onnx->graph;
	unsigned number;

	for (size_t o = 0; o < graph->n_output; o++) {
		if (!onnx->is_output[o])
			continue;
		if (!psd_names_find(&onnx->names, graph->output[o]->name, &number))
			return psd_error_set(onnx->err, PSD_EINVAL, place_of(onnx), "no node makes the output '%.100s'",
					     graph->output[o]->name);
		is_needed[number] = true;
	}
	return PSD_OK;
}

/* A norm that computes its statistics reads those of the file alone: it does not need computed ones. */
static void drop_statistics(const struct psd_onnx *onnx, const Onnx__Node *node)
{
	const Onnx__Attribute *trains = psd_onnx_attribute(node, "training_mode");

	if (strcmp(node->op_type, "BatchNormalization") != 0 || !trains || !trains->i)
		return;
	for (size_t k = 3; k < node->n_input; k++) {
		const unsigned producer = onnx->producers[psd_onnx_number_of(onnx, node->input[k])];

		if (!producer || !strcmp(onnx->graph->node[producer - 1]->op_type, "Identity"))
			continue;
		onnx->is_statistic[psd_onnx_number_of(onnx, node->input[k])] = true;
		node->input[k][0] = '\0';
	}
}

/* If only statistics need the node's output, they alone need its inputs. */
static void spread_statistics(const struct psd_onnx *onnx, size_t i)
{
	const Onnx__Node *node = onnx->graph->node[i];
	bool is_statistic = false;

	for (size_t o = 0; onnx->is_done[i] && o < node->n_output; o++)
		is_statistic = is_statistic || onnx->is_statistic[psd_onnx_number_of(onnx, node->output[o])];
	for (size_t k = 0; is_statistic && k < node->n_input; k++)
		onnx->is_statistic[psd_onnx_number_of(onnx, node->input[k])] = true;
}

/* Finds, from the outputs back, the needed values and their consumers. Nodes are in topological order. */
static enum psd_status find_needed(struct psd_onnx *onnx, unsigned n_values)
{
	const Onnx__Graph *graph = onnx->graph;
	bool *is_needed = psd_arena_take(&onnx->arena, n_values * sizeof(*is_needed));
	unsigned number;

	onnx->n_consumers = psd_arena_take(&onnx->arena, n_values * sizeof(*onnx->n_consumers));
	onnx->consumers = psd_arena_take(&onnx->arena, n_values * sizeof(*onnx->consumers));
	onnx->is_done = psd_arena_take(&onnx->arena, (graph->n_node + 1) * sizeof(*onnx->is_done));
	onnx->producers = psd_arena_take(&onnx->arena, n_values * sizeof(*onnx->producers));
	onnx->used = psd_arena_take(&onnx->arena, n_values * sizeof(*onnx->used));
	onnx->is_statistic = psd_arena_take(&onnx->arena, n_values * sizeof(*onnx->is_statistic));
	onnx->is_counted = psd_arena_take(&onnx->arena, n_values * sizeof(*onnx->is_counted));
	if (!is_needed || !onnx->n_consumers || !onnx->consumers || !onnx->producers || !onnx->is_done || !onnx->used ||
	    !onnx->is_counted || !onnx->is_statistic)
		return psd_onnx_no_memory(onnx);
	PSD_TRY(choose_outputs(onnx));
	PSD_TRY(mark_outputs(onnx, is_needed));
	for (size_t i = 0; i < graph->n_node; i++)
		for (size_t o = 0; o < graph->node[i]->n_output; o++)
			if (psd_names_find(&onnx->names, graph->node[i]->output[o], &number))
				onnx->producers[number] = (unsigned)i + 1;
	for (size_t i = graph->n_node; i-- > 0;) {
		const Onnx__Node *node = graph->node[i];

		onnx->is_done[i] = true;
		for (size_t o = 0; o < node->n_output; o++)
			if (*node->output[o] && psd_names_find(&onnx->names, node->output[o], &number))
				onnx->is_done[i] = onnx->is_done[i] && !is_needed[number];
		drop_statistics(onnx, node);
		spread_statistics(onnx, i);
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

static bool is_open(const Onnx__Dim *dim)
{
	return !dim->has_value || (dim->value < 1 && dim->param && *dim->param) || dim->value == 0;
}

/* Size of axis a in the training samples, whose channels come first; 0: unknown. */
static uint64_t side_of_sample(const struct psd_onnx *onnx, const Onnx__Shape *shape, unsigned a)
{
	const struct psd_shape sample = onnx->choices ? onnx->choices->sample : (struct psd_shape){0};
	const uint64_t sides[4] = {0, sample.channels, sample.height, sample.width};

	if (!sample.channels || (shape->n_dim != 4 && shape->n_dim != 2))
		return 0;
	if (shape->n_dim == 2)
		return (uint64_t)sample.channels * sample.height * sample.width;
	for (unsigned other = 1; other < 4; other++)
		if (!is_open(shape->dim[other]) && (uint64_t)shape->dim[other]->value != sides[other])
			return 0;
	return sides[a];
}

/* Size of an open axis: by the axis' name, or by the training samples. 0: unknown. */
static enum psd_status find_side(const struct psd_onnx *onnx, const Onnx__Shape *shape, unsigned a, uint64_t *side)
{
	const char *name = shape->dim[a]->param ? shape->dim[a]->param : "";
	struct psd_choice_sizes sizes;

	PSD_TRY(psd_choices_find_sizes(onnx->choices, name, &sizes, onnx->err));
	if (sizes.n > 1)
		return psd_error_set(onnx->err, PSD_EINVAL, place_of(onnx),
				     "the axis '%.40s' has %u sizes in 'input', must have one", name, sizes.n);
	*side = sizes.n ? sizes.sides[0] : side_of_sample(onnx, shape, a);
	return PSD_OK;
}

/* Reads the size of an axis beside the batch. given: by the user for this input; 0: not given. */
static enum psd_status read_side(const struct psd_onnx *onnx, const Onnx__ValueInfo *input, unsigned a, uint32_t given,
				 uint64_t *side)
{
	const Onnx__Shape *shape = input->type->tensor_type->shape;
	const Onnx__Dim *dim = shape->dim[a];
	const char *name = dim->param ? dim->param : "";

	if (!is_open(dim) && (dim->value < 1 || dim->value > PSD_LAYER_CHANNELS_MAX))
		return psd_error_set(onnx->err, PSD_EINVAL, place_of(onnx),
				     "axis %u of the input '%.100s' has size %lld, must be 1 to %u", a, input->name,
				     (long long)dim->value, PSD_LAYER_CHANNELS_MAX);
	if (!is_open(dim) && given && given != (uint64_t)dim->value)
		return psd_error_set(
			onnx->err, PSD_EINVAL, place_of(onnx),
			"axis %u of the input '%.100s' has size %lld in the file, 'input' must give the same, not %u",
			a, input->name, (long long)dim->value, given);
	*side = is_open(dim) ? given : (uint64_t)dim->value;
	if (!*side)
		PSD_TRY(find_side(onnx, shape, a, side));
	if (*side)
		return PSD_OK;
	return psd_error_set(onnx->err, PSD_EINVAL, place_of(onnx),
			     "axis %u of the input '%.100s' has no size in the file ('%.40s'), needs the key "
			     "model.input: {%.100s: SIZE%s}",
			     a, input->name, name, *name ? name : input->name,
			     *name		 ? ""
			     : shape->n_dim == 2 ? ""
						 : " x SIZE ...");
}

static enum psd_status read_dims(const struct psd_onnx *onnx, const Onnx__ValueInfo *input,
				 uint64_t dims[PSD_ONNX_AXES_MAX], unsigned *n)
{
	const Onnx__TensorType *type = input->type ? input->type->tensor_type : NULL;
	const size_t n_dims = type && type->shape ? type->shape->n_dim : 0;
	const bool is_any = psd_onnx_allows_other(onnx) && n_dims >= 1 && n_dims <= PSD_ONNX_AXES_MAX;
	struct psd_choice_sizes given;

	if (!is_any && (n_dims < 2 || n_dims > 4))
		return psd_error_set(onnx->err, PSD_EINVAL, place_of(onnx),
				     "the input '%.100s' must have two to four axes, the first of which is the batch",
				     input->name);
	*n = (unsigned)n_dims;
	PSD_TRY(psd_choices_find_sizes(onnx->choices, input->name, &given, onnx->err));
	if (given.n && given.n != *n && given.n + 1 != *n)
		return psd_error_set(onnx->err, PSD_EINVAL, place_of(onnx),
				     "the input '%.100s' has %u sizes in 'input', must have %u without the batch",
				     input->name, given.n, *n - 1);
	const unsigned missing = *n - given.n; /* 1: the batch is not given */
	for (unsigned a = 1; a < *n; a++)
		PSD_TRY(read_side(onnx, input, a, given.n ? given.sides[a - missing] : 0, &dims[a]));
	dims[0] = is_open(type->shape->dim[0]) || type->shape->dim[0]->value < 1 ||
				  type->shape->dim[0]->value > UINT32_MAX
			  ? 1
			  : (uint64_t)type->shape->dim[0]->value;
	return PSD_OK;
}

/* Checks that every input and axis whose size the user gives exists. */
static enum psd_status check_sizes(struct psd_onnx *onnx)
{
	const Onnx__Graph *graph = onnx->graph;
	const char **known;
	size_t most = 0;
	unsigned n = 0;

	if (!onnx->choices || !onnx->choices->n_inputs)
		return PSD_OK;
	for (size_t i = 0; i < graph->n_input; i++)
		most += 1 + PSD_ONNX_AXES_MAX;
	known = psd_arena_take(&onnx->arena, (most + 1) * sizeof(*known));
	if (!known)
		return psd_onnx_no_memory(onnx);
	for (size_t i = 0; i < graph->n_input; i++) {
		const Onnx__TensorType *type = graph->input[i]->type ? graph->input[i]->type->tensor_type : NULL;
		const Onnx__Shape *shape = type ? type->shape : NULL;

		if (graph->input[i]->name)
			known[n++] = graph->input[i]->name;
		for (size_t a = 1; shape && a < shape->n_dim && a <= PSD_ONNX_AXES_MAX; a++)
			if (is_open(shape->dim[a]) && shape->dim[a]->param && *shape->dim[a]->param)
				known[n++] = shape->dim[a]->param;
	}
	return psd_choices_check_inputs(onnx->choices, onnx->path, known, n, onnx->err);
}

/* True if an input of three axes is one map without a batch, as detectors read: the first convolution has its first
 * axis as channels. */
static bool is_one_map(const struct psd_onnx *onnx, const uint64_t dims[], unsigned n)
{
	const Onnx__Node *conv = NULL;

	for (size_t i = 0; i < onnx->graph->n_node && !conv; i++)
		conv = strcmp(onnx->graph->node[i]->op_type, "Conv") ? NULL : onnx->graph->node[i];
	const struct psd_onnx_value *weight = conv && conv->n_input > 1 ? psd_onnx_named(onnx, conv->input[1]) : NULL;
	if (!psd_onnx_allows_other(onnx) || n != 3 || !weight || weight->kind != PSD_ONNX_CONSTANT ||
	    weight->n_dims != 4)
		return false;
	const Onnx__Attribute *groups = psd_onnx_attribute(conv, "group");
	const uint64_t channels = psd_saturated_mul(weight->dims[1], groups && groups->i > 0 ? (uint64_t)groups->i : 1);
	return dims[0] > 1 && dims[0] == channels && dims[1] != channels;
}

/* Adds the input layer. Integers of two axes are tokens: one channel with a row for each position. Maps have their
 * channels last, as in TensorFlow, if the last axis is small and the others are larger. */
static enum psd_status add_input(struct psd_onnx *onnx, const Onnx__ValueInfo *input, struct psd_onnx_value *value)
{
	struct psd_layer_spec spec = {.kind = &psd_layer_input, .name = input->name, .at = place_of(onnx)};
	struct psd_shape *shape = &spec.settings.shape;
	struct psd_onnx_view view = {.layer = onnx->build.graph.n_layers};
	uint64_t dims[PSD_ONNX_AXES_MAX] = {1, 1, 1, 1}, strides[PSD_ONNX_AXES_MAX], inner = 1;
	uint64_t first = PSD_ONNX_BATCH; /* stride of the first axis */
	unsigned n = 0;
	bool is_integer, are_channels_last;

	PSD_TRY(read_dims(onnx, input, dims, &n));
	for (unsigned a = n; a-- > 4;) { /* further axes are columns */
		strides[a] = inner;
		inner = psd_saturated_mul(inner, dims[a]);
	}
	is_integer = !psd_onnx_is_real(input->type->tensor_type->elem_type);
	are_channels_last = n == 4 && dims[3] <= 4 && dims[1] > 4 && dims[2] > 4;
	if (psd_saturated_mul(inner, dims[3]) > PSD_LAYER_SIDE_MAX && n > 4)
		return psd_error_set(onnx->err, PSD_EINVAL, place_of(onnx),
				     "the input '%.100s' has more than %u positions along its last axes", input->name,
				     PSD_LAYER_SIDE_MAX);
	*shape = (struct psd_shape){(uint32_t)dims[1], (uint32_t)dims[2], (uint32_t)(dims[3] * inner)};
	strides[1] = dims[2] * dims[3] * inner;
	strides[2] = dims[3] * inner;
	strides[3] = inner;
	if (!is_integer && is_one_map(onnx, dims, n)) {
		*shape = (struct psd_shape){(uint32_t)dims[0], (uint32_t)dims[1], (uint32_t)dims[2]};
		strides[0] = dims[1] * dims[2];
		strides[1] = dims[2];
		strides[2] = 1;
		first = strides[0];
	}
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
		psd_onnx_view_add_digit(&view, dims[a], a ? strides[a] : first);
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
		if (first && !psd_onnx_allows_other(onnx))
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

	onnx->node = onnx->graph->node[i];
	for (unsigned k = 0; k < onnx->node->n_input; k++)
		if (*onnx->node->input[k] && psd_onnx_input(onnx, k)->kind != PSD_ONNX_CONSTANT)
			return PSD_OK;
	if (onnx->is_done[i] || psd_onnx_is_foreign(onnx->node))
		return PSD_OK;
	onnx->err = NULL; /* convert_node() reports the error */
	enum psd_status status = psd_onnx_try_view(onnx, &is_done);
	if (!status && !is_done)
		status = psd_onnx_try_fold(onnx, &is_done);
	onnx->err = err;
	onnx->is_done[i] = !status && is_done;
	return status == PSD_ENOMEM ? psd_onnx_no_memory(onnx) : PSD_OK;
}

/* Converts the node. For a prediction it becomes a layer of the kind other if that fails and the work is known. */
static enum psd_status convert_or_predict(struct psd_onnx *onnx)
{
	struct psd_error *const err = onnx->err;
	struct psd_error ignored;
	enum psd_status status = psd_onnx_convert(onnx);
	bool is_done = false;

	if (status != PSD_EINVAL || onnx->build.is_broken || !psd_onnx_allows_other(onnx))
		return status;
	onnx->err = &ignored;
	status = psd_onnx_try_other(onnx, &is_done);
	onnx->err = err;
	if (status == PSD_ENOMEM)
		return psd_onnx_no_memory(onnx);
	if (!status && is_done)
		return PSD_OK;
	if (status && onnx->build.is_broken && err)
		*err = ignored;
	return PSD_EINVAL;
}

static void mark_wrong(const struct psd_onnx *onnx)
{
	for (unsigned o = 0; o < onnx->node->n_output; o++)
		if (*onnx->node->output[o])
			psd_onnx_output(onnx, o)->kind = PSD_ONNX_WRONG;
}

/* Keeps the message about a wrong node, so that others can follow; nodes that read its outputs are passed over. */
static void note_mistake(struct psd_onnx *onnx)
{
	enum { MOST_BYTES = 900 };
	const size_t path_length = strlen(onnx->path);
	const char *text = onnx->err->text;

	if (onnx->mistakes.bytes && !strncmp(text, onnx->path, path_length) && text[path_length] == ':')
		text += path_length + 2;
	if (onnx->mistakes.length + strlen(text) > MOST_BYTES)
		onnx->n_unsaid++;
	else
		psd_text_add(&onnx->mistakes, "%s%s", onnx->mistakes.bytes ? "; " : "", text);
	onnx->n_mistakes++;
	mark_wrong(onnx);
}

static enum psd_status refuse_mistakes(struct psd_onnx *onnx)
{
	if (!onnx->n_mistakes)
		return PSD_OK;
	if (onnx->n_unsaid)
		psd_text_add(&onnx->mistakes, "; and %u more", onnx->n_unsaid);
	if (onnx->mistakes.is_out_of_memory)
		return psd_onnx_no_memory(onnx);
	return psd_error_set(onnx->err, PSD_EINVAL, PSD_NOWHERE, "%s", onnx->mistakes.bytes);
}

static bool reads_wrong(const struct psd_onnx *onnx, size_t i)
{
	for (unsigned k = 0; k < onnx->graph->node[i]->n_input; k++)
		if (psd_onnx_named(onnx, onnx->graph->node[i]->input[k])->kind == PSD_ONNX_WRONG)
			return true;
	return false;
}

/* True if the branch is the one that is taken, or inside it. */
static bool is_taken(struct psd_onnx *onnx, const struct psd_onnx_guard *guard)
{
	double number;

	for (; guard; guard = guard->outer)
		if (psd_onnx_is_scalar(onnx, psd_onnx_named(onnx, guard->condition), &number)
			    ? (number != 0) != guard->is_then
			    : !guard->is_preferred)
			return false;
	return true;
}

/* A condition's inputs are the condition, results of one branch, results of the other. */
static enum psd_status convert_condition(struct psd_onnx *onnx, size_t i)
{
	const struct psd_onnx_guard *then = onnx->choices_of[i];
	const unsigned n = (unsigned)onnx->node->n_output, first = is_taken(onnx, then) ? 1 : 1 + n;

	onnx->n_open_conditions += psd_onnx_input(onnx, 0)->kind != PSD_ONNX_CONSTANT;
	for (unsigned o = 0; o < n; o++) {
		if (psd_onnx_input(onnx, first + o)->kind == PSD_ONNX_ABSENT)
			return psd_onnx_refuse(onnx, "has a branch whose result '%.100s' no node makes",
					       onnx->node->input[first + o]);
		if (*onnx->node->output[o])
			*psd_onnx_output(onnx, o) = *psd_onnx_input(onnx, first + o);
	}
	return PSD_OK;
}

static enum psd_status convert_node(struct psd_onnx *onnx, size_t i)
{
	onnx->node = onnx->graph->node[i];
	if (onnx->is_done[i] || (onnx->guards && !is_taken(onnx, onnx->guards[i])))
		return PSD_OK;
	if (onnx->choices_of && onnx->choices_of[i])
		return convert_condition(onnx, i);
	for (unsigned k = 0; k < onnx->node->n_input; k++) {
		const enum psd_onnx_kind kind = psd_onnx_input(onnx, k)->kind;

		if (kind == PSD_ONNX_ABSENT && *onnx->node->input[k])
			return psd_onnx_refuse(onnx, "reads '%.100s', which no node above it makes",
					       onnx->node->input[k]);
		if (kind == PSD_ONNX_SEQUENCE && strncmp(onnx->node->op_type, "Sequence", strlen("Sequence")) != 0 &&
		    strcmp(onnx->node->op_type, "Identity") != 0)
			return psd_onnx_refuse(onnx, "reads a sequence, which only SequenceAt can");
	}
	return convert_or_predict(onnx);
}

/* Converts a node. For a prediction all nodes are tried, so that one message has all that is wrong. */
static enum psd_status try_node(struct psd_onnx *onnx, size_t i)
{
	onnx->node = onnx->graph->node[i];
	if (onnx->n_mistakes && !onnx->is_done[i] && reads_wrong(onnx, i)) {
		mark_wrong(onnx);
		return PSD_OK;
	}
	const enum psd_status status = convert_node(onnx, i);
	if (status != PSD_EINVAL || onnx->build.is_broken || !psd_onnx_allows_other(onnx))
		return status;
	note_mistake(onnx);
	return PSD_OK;
}

/* A prediction needs no loss: an output of another form than samples and classes has none. */
static enum psd_status add_loss(struct psd_onnx *onnx, struct psd_onnx_value *value)
{
	const enum psd_status status = psd_onnx_add_loss(onnx, value, psd_onnx_class_axis(onnx, value));

	return status == PSD_EINVAL && psd_onnx_allows_other(onnx) && !onnx->build.is_broken ? PSD_OK : status;
}

/* Adds the loss to the first output that counts, and the functions that others still have to be a layer. */
static enum psd_status finish_outputs(struct psd_onnx *onnx)
{
	const Onnx__Graph *graph = onnx->graph;

	if (!onnx->node)
		return psd_error_set(onnx->err, PSD_EINVAL, place_of(onnx), "the network has no nodes");
	for (size_t o = 0; o < graph->n_output; o++) {
		struct psd_onnx_value *value;

		if (!onnx->is_output[o])
			continue;
		value = psd_onnx_named(onnx, graph->output[o]->name);
		if (o == onnx->first_output && !onnx->has_loss)
			PSD_TRY(add_loss(onnx, value));
		else if (o != onnx->first_output && value->kind == PSD_ONNX_DATA)
			PSD_TRY(psd_onnx_materialize(onnx, value));
	}
	return PSD_OK;
}

static enum psd_status read_graph(struct psd_onnx *onnx)
{
	const Onnx__Graph *graph = onnx->graph;

	PSD_TRY(check_nodes(onnx));
	PSD_TRY(name_values(onnx, &onnx->n_values));
	onnx->values = psd_arena_take(&onnx->arena, onnx->n_values * sizeof(*onnx->values));
	if (!onnx->values)
		return psd_onnx_no_memory(onnx);
	PSD_TRY(find_needed(onnx, onnx->n_values));
	for (unsigned i = 0, v = 1; i < graph->n_initializer; i++)
		if (graph->initializer[i]->name && *graph->initializer[i]->name)
			PSD_TRY(psd_onnx_constant_of(onnx, graph->initializer[i], &onnx->values[v++]));
	PSD_TRY(psd_onnx_find_origins(onnx));
	PSD_TRY(check_sizes(onnx));
	PSD_TRY(add_inputs(onnx));
	for (size_t i = 0; i < graph->n_node; i++)
		PSD_TRY(compute_node(onnx, i));
	for (size_t i = 0; i < graph->n_node; i++)
		PSD_TRY(try_node(onnx, i));
	PSD_TRY(refuse_mistakes(onnx));
	return finish_outputs(onnx);
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

	if (!name)
		return psd_onnx_no_memory(onnx);
	PSD_TRY(psd_onnx_check_ties(onnx));
	psd_onnx_add_remarks(onnx);
	if (onnx->remarks.is_out_of_memory || onnx->doubts.is_out_of_memory)
		return psd_onnx_no_memory(onnx);
	PSD_TRY(psd_graph_build_seal(&onnx->build, name, place_of(onnx), graph, onnx->err));
	graph->remarks = onnx->remarks.bytes;
	graph->doubts = onnx->doubts.bytes;
	onnx->remarks = onnx->doubts = (struct psd_text){.bytes = NULL};
	return PSD_OK;
}

struct psd_onnx_file {
	struct psd_onnx onnx;
	struct psd_graph graph;
	Onnx__Model *model;
};

static enum psd_status convert_model(struct psd_onnx_file *file, const void *bytes, size_t length)
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
	PSD_TRY(psd_onnx_inline(&file->onnx, model, length));
	PSD_TRY(read_graph(&file->onnx));
	return seal(&file->onnx, &file->graph);
}

/* A node whose constants had no place may look like another. */
static enum psd_status read_model(struct psd_onnx_file *file, const void *bytes, size_t length)
{
	const enum psd_status status = convert_model(file, bytes, length);

	return file->onnx.is_out_of_memory ? psd_onnx_no_memory(&file->onnx) : status;
}

static void release(struct psd_onnx_file *file)
{
	psd_graph_release(&file->graph);
	psd_graph_build_release(&file->onnx.build);
	psd_names_release(&file->onnx.names);
	psd_names_release(&file->onnx.listed);
	psd_names_release(&file->onnx.owners);
	psd_names_release(&file->onnx.modules);
	psd_names_release(&file->onnx.repeats);
	psd_text_release(&file->onnx.remarks);
	psd_text_release(&file->onnx.doubts);
	psd_text_release(&file->onnx.mistakes);
	psd_arena_release(&file->onnx.arena);
	if (file->model)
		onnx__model__free_unpacked(file->model, NULL);
}

enum psd_status psd_onnx_parse(struct psd_graph *graph, const char *path, const void *bytes, size_t length,
			       const struct psd_model_choices *choices, struct psd_error *err)
{
	struct psd_onnx_file file = {.onnx = {.path = path, .choices = choices, .err = err}};
	const enum psd_status status = read_model(&file, bytes, length);

	if (!status) {
		*graph = file.graph;
		file.graph = (struct psd_graph){0};
	}
	release(&file);
	return status;
}

/* ---- an open file ---- */

enum psd_status psd_onnx_open(struct psd_onnx_file **file, const char *path, const struct psd_model_choices *choices,
			      struct psd_error *err)
{
	struct psd_onnx_file *opened;
	char *bytes;
	size_t length;

	PSD_TRY(psd_file_read_bytes(&bytes, &length, PSD_ONNX_BYTES_MAX, path, err));
	opened = calloc(1, sizeof(*opened));
	if (!opened) {
		free(bytes);
		return psd_error_set(err, PSD_ENOMEM, (struct psd_place){.path = path}, "out of memory");
	}
	opened->onnx.path = path;
	opened->onnx.choices = choices;
	opened->onnx.err = err;
	const enum psd_status status = read_model(opened, bytes, length);
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
