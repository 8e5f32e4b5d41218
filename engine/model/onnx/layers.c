/* Adding layers to the graph, with names. */
#include <stdio.h>
#include <string.h>

#include "engine/model/layer.h"
#include "engine/model/onnx/parts.h"

/* ---- names ---- */

/* Copies the name of the node's module in PyTorch, the last but one of "['', 'layer1', 'layer1.0', 'relu']". False:
 * there is none. */
static bool module_name(const Onnx__Node *node, char name[PSD_GRAPH_NAME_MAX + 1])
{
	const char *scopes = NULL, *from = NULL, *previous = NULL;

	for (size_t i = 0; i < node->n_metadata; i++)
		if (node->metadata[i]->key && !strcmp(node->metadata[i]->key, "pkg.torch.onnx.name_scopes"))
			scopes = node->metadata[i]->value;
	for (const char *at = scopes; at && (at = strchr(at, '\'')) != NULL; at++) {
		const char *end = strchr(at + 1, '\'');

		if (!end)
			return false;
		previous = from;
		from = at + 1;
		at = end;
	}
	if (!previous || *previous == '\'')
		return false;
	snprintf(name, PSD_GRAPH_NAME_MAX + 1, "%.*s", (int)(strchr(previous, '\'') - previous), previous);
	return true;
}

/* Copies the module of TorchScript's "/features/features.1/features.1.0/block/block.0/Conv": "features.1.0.block.0". A
 * component that begins with the one before it replaces that. False: the name is not such a path. */
static bool path_name(const char *path, char name[PSD_GRAPH_NAME_MAX + 1])
{
	const char *end = strrchr(path, '/');
	size_t length = 0, last = 0; /* length of the name, and start of its last component */

	if (*path != '/' || end == path)
		return false;
	for (const char *part = path + 1; part < end; part += strcspn(part, "/") + 1) {
		const size_t n = strcspn(part, "/"), before = length - last;
		const bool is_longer =
			before > 0 && n > before && part[before] == '.' && !strncmp(part, name + last, before);

		if (length + n + 2 > PSD_GRAPH_NAME_MAX)
			return false;
		if (!is_longer && length > 0)
			name[length++] = '.';
		last = is_longer ? last : length;
		memcpy(name + last, part, n);
		length = last + n;
	}
	name[length] = '\0';
	return length > 0;
}

/* Sets the name to "layer1.0.conv1" for "layer1.0.conv1.weight", to "attn.in_proj" for "attn.in_proj_weight", or else
 * to the node's module or name. */
static void choose_name(const struct psd_onnx *onnx, const char *weight, char name[PSD_GRAPH_NAME_MAX + 1])
{
	const Onnx__Node *node = onnx->node;
	const char *own = node->name && *node->name ? node->name : node->op_type;
	const char *end = weight ? strrchr(weight, '.') : NULL, *ending = end ? strstr(end, "_weight") : NULL;

	if (end && end != weight && ending && ending > end + 1 && !ending[strlen("_weight")])
		snprintf(name, PSD_GRAPH_NAME_MAX + 1, "%.*s", (int)(ending - weight), weight);
	else if (end && end != weight)
		snprintf(name, PSD_GRAPH_NAME_MAX + 1, "%.*s", (int)(end - weight), weight);
	else if (!module_name(node, name) && !path_name(own, name))
		snprintf(name, PSD_GRAPH_NAME_MAX + 1, "%s", own);
}

/* Appends a number, *repeats, if another layer has the name. wanted: the name before. */
static void find_unique(const struct psd_onnx *onnx, const char *wanted, char name[PSD_GRAPH_NAME_MAX + 1],
			unsigned *repeats)
{
	const size_t most = PSD_GRAPH_NAME_MAX - 8, length = strlen(name) < most ? strlen(name) : most;
	unsigned number;

	*repeats = 1;
	if (!psd_names_find(&onnx->build.names, name, &number))
		return;
	(void)psd_names_find(&onnx->repeats, wanted, repeats);
	do
		snprintf(name + length, PSD_GRAPH_NAME_MAX + 1 - length, "-%u", ++*repeats);
	while (psd_names_find(&onnx->build.names, name, &number));
}

/* Makes the name unique for good. False: out of memory. */
static bool make_unique(struct psd_onnx *onnx, char name[PSD_GRAPH_NAME_MAX + 1])
{
	const char *wanted = psd_arena_copy(&onnx->arena, name, strlen(name));
	unsigned repeats;

	if (!wanted)
		return false;
	find_unique(onnx, wanted, name, &repeats);
	return repeats == 1 || psd_names_put(&onnx->repeats, wanted, repeats);
}

void psd_onnx_preview_name(const struct psd_onnx *onnx, const char *weight, char name[PSD_GRAPH_NAME_MAX + 1])
{
	char wanted[PSD_GRAPH_NAME_MAX + 1];
	unsigned repeats;

	choose_name(onnx, weight, name);
	snprintf(wanted, sizeof(wanted), "%s", name);
	find_unique(onnx, wanted, name, &repeats);
}

void psd_onnx_module_of(const struct psd_onnx *onnx, char name[PSD_GRAPH_NAME_MAX + 1])
{
	const Onnx__Node *node = onnx->node;
	const char *own = node->name ? node->name : "";

	if (!module_name(node, name) && !path_name(own, name))
		snprintf(name, PSD_GRAPH_NAME_MAX + 1, "%s", own);
}

const char *psd_onnx_own_name(const struct psd_onnx *onnx, const struct psd_onnx_value *parameter)
{
	const bool is_own = parameter->kind == PSD_ONNX_CONSTANT && parameter->origin &&
			    onnx->n_consumers[parameter - onnx->values] == 1;

	return is_own ? parameter->origin->name : NULL;
}

/* ---- adding ---- */

static enum psd_status add_named(struct psd_onnx *onnx, struct psd_layer_spec *spec, char name[], unsigned *number)
{
	if (!make_unique(onnx, name))
		return psd_onnx_no_memory(onnx);
	spec->name = name;
	spec->at = (struct psd_place){.path = onnx->path};
	PSD_TRY(psd_graph_build_add(&onnx->build, spec, onnx->err));
	*number = onnx->build.graph.n_layers - 1;
	return PSD_OK;
}

enum psd_status psd_onnx_add(struct psd_onnx *onnx, struct psd_layer_spec *spec, const char *weight, unsigned *number)
{
	char name[PSD_GRAPH_NAME_MAX + 1];

	choose_name(onnx, weight, name);
	return add_named(onnx, spec, name, number);
}

enum psd_status psd_onnx_add_beside(struct psd_onnx *onnx, struct psd_layer_spec *spec, unsigned *number)
{
	char name[PSD_GRAPH_NAME_MAX + 1];
	const size_t most = PSD_GRAPH_NAME_MAX - strlen(spec->kind->name) - 1;

	choose_name(onnx, NULL, name);
	const size_t length = strlen(name) < most ? strlen(name) : most;
	snprintf(name + length, sizeof(name) - length, ".%s", spec->kind->name);
	return add_named(onnx, spec, name, number);
}

enum psd_status psd_onnx_move(struct psd_onnx *onnx, const struct psd_layer_kind *kind,
			      union psd_layer_settings settings, unsigned *layer)
{
	struct psd_layer_spec spec = {.kind = kind, .settings = settings, .n_inputs = 1, .inputs = {*layer}};
	const struct psd_shape shape = psd_onnx_shape(onnx, *layer);
	const uint32_t sides[] = {shape.channels, shape.height, shape.width};

	for (unsigned a = 1; kind == &psd_layer_permute && a < 3; a++)
		if (sides[settings.permute.order[a] - 1] > PSD_LAYER_SIDE_MAX)
			return psd_onnx_refuse(onnx, "needs a layer of %u positions along an axis, must be at most %u",
					       sides[settings.permute.order[a] - 1], PSD_LAYER_SIDE_MAX);
	return psd_onnx_add_beside(onnx, &spec, layer);
}

static enum psd_status add_one(struct psd_onnx *onnx, const struct psd_layer_kind *kind,
			       const union psd_layer_settings *settings, const char *weight, unsigned input,
			       unsigned *number)
{
	struct psd_layer_spec spec = {
		.kind = kind, .settings = settings ? *settings : kind->defaults, .n_inputs = 1, .inputs = {input}};

	return psd_onnx_add(onnx, &spec, weight, number);
}

enum psd_status psd_onnx_add_simple(struct psd_onnx *onnx, const struct psd_layer_kind *kind,
				    const union psd_layer_settings *settings, unsigned input, unsigned *number)
{
	return add_one(onnx, kind, settings, NULL, input, number);
}

enum psd_status psd_onnx_put_layer(struct psd_onnx *onnx, const struct psd_onnx_value *data,
				   const struct psd_layer_kind *kind, const union psd_layer_settings *settings,
				   const char *weight)
{
	struct psd_onnx_value result = *data;

	PSD_TRY(add_one(onnx, kind, settings, weight, data->view.layer, &result.view.layer));
	*psd_onnx_output(onnx, 0) = result;
	return PSD_OK;
}

struct psd_shape psd_onnx_shape(const struct psd_onnx *onnx, unsigned layer)
{
	return onnx->build.graph.layers[layer].shape;
}

uint64_t psd_onnx_values_of(const struct psd_onnx *onnx, unsigned layer)
{
	return psd_shape_elements(psd_onnx_shape(onnx, layer));
}

/* ---- for the operators ---- */

enum psd_status psd_onnx_check_inner(struct psd_onnx *onnx, const struct psd_onnx_view *view, unsigned axis)
{
	if (!psd_onnx_view_has_batch(view, axis))
		return PSD_OK;
	return psd_onnx_refuse(onnx, "is over axis %u, which contains the batch, must be within a sample", axis);
}

enum psd_status psd_onnx_check_data(struct psd_onnx *onnx, const struct psd_onnx_value *value)
{
	if (value->kind == PSD_ONNX_DATA)
		return PSD_OK;
	return psd_onnx_refuse(onnx, "must have samples as its input");
}
