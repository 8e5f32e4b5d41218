/* Parameters of a Caffe layer: start values, learning rates, sharing. */
#include "engine/model/prototxt_parts.h"

#include <string.h>

#include "engine/model/layer.h"

static const char *const nothing[] = {NULL};

/* ---- start values ---- */

/* In the order of enum psd_filler_kind. */
static const char *const fillers[] = {"constant", "uniform", "gaussian", "xavier", "msra", "bilinear", NULL};
static const char *const fans[] = {"FAN_IN", "FAN_OUT", "AVERAGE", "0", "1", "2", NULL};

#define NUMBER(key, member)	     PSD_NUMBER_KEY(key, struct psd_filler, member, -1e6, 1e6)
#define CHOICE(key, member, choices) PSD_CHOICE_KEY(key, struct psd_filler, member, choices)

/* As in Caffe, fields that the filler's type does not use have no effect. */
static const struct psd_key filler_fields[] = {
	CHOICE("type", kind, fillers), CHOICE("variance_norm", fan, fans),
	NUMBER("value", value),	       NUMBER("min", lowest),
	NUMBER("max", highest),	       NUMBER("mean", mean),
	NUMBER("std", deviation),      {.name = NULL},
};

enum psd_status psd_caffe_read_filler(const struct psd_node *message, const char *key, struct psd_tensor_spec *tensor,
				      struct psd_error *err)
{
	const struct psd_node *node;
	struct psd_filler filler = {.highest = 1, .deviation = 1};

	PSD_TRY(psd_caffe_single(message, key, &node, err));
	if (!node)
		return PSD_OK;
	PSD_TRY(psd_layer_read_keys(&filler, node, key, nothing, filler_fields, err));
	filler.fan %= 3;
	tensor->has_filler = true;
	tensor->filler = filler;
	return PSD_OK;
}

/* ---- factors of learning rate and decay ---- */

#define RATIO_MIN 0
#define RATIO_MAX 1e6

enum { STATISTICS_AFTER = 2 }; /* mean and variance */

static const struct psd_key param_fields[] = {
	PSD_NUMBER_KEY("lr_mult", struct psd_tensor_spec, rate_ratio, RATIO_MIN, RATIO_MAX),
	PSD_NUMBER_KEY("decay_mult", struct psd_tensor_spec, decay_ratio, RATIO_MIN, RATIO_MAX),
	{.name = NULL},
};

/* In V1LayerParameter, blobs_lr and weight_decay are lists with an entry for each blob, and `param` is a name. */
static enum psd_status read_param(const struct psd_node *field, struct psd_tensor_spec *tensor, struct psd_error *err)
{
	static const char *const names[] = {"name", "share_mode", NULL};

	if (!strcmp(field->key, "blobs_lr"))
		return psd_node_number(field, RATIO_MIN, RATIO_MAX, &tensor->rate_ratio, err);
	if (!strcmp(field->key, "weight_decay"))
		return psd_node_number(field, RATIO_MIN, RATIO_MAX, &tensor->decay_ratio, err);
	if (field->kind == PSD_NODE_SCALAR)
		return PSD_OK;
	return psd_layer_read_keys(tensor, field, "param", names, param_fields, err);
}

enum psd_status psd_caffe_read_ratios(const struct psd_node *layer, unsigned first_blob, bool has_blobs_after,
				      struct psd_tensor_spec tensors[PSD_LAYER_TENSORS_MAX], struct psd_error *err)
{
	static const char *const lists[] = {"param", "blobs_lr", "weight_decay", NULL};
	const unsigned end = first_blob + PSD_LAYER_TENSORS_MAX;

	for (unsigned i = 0; i < PSD_LAYER_TENSORS_MAX; i++)
		tensors[i].rate_ratio = tensors[i].decay_ratio = 1;
	for (unsigned l = 0; lists[l]; l++) {
		unsigned blob = 0;

		for (const struct psd_node *field = layer->first; field; field = field->next) {
			struct psd_tensor_spec unused = {.rate_ratio = 1, .decay_ratio = 1}, *tensor = &unused;

			if (strcmp(field->key, lists[l]) != 0)
				continue;
			if (blob >= end + (has_blobs_after ? STATISTICS_AFTER : 0))
				return psd_error_set(err, PSD_EINVAL, field->key_at,
						     "'%s' occurs %u times, the layer has fewer parameters", lists[l],
						     blob + 1);
			if (blob >= first_blob && blob < end)
				tensor = &tensors[blob - first_blob];
			blob++;
			tensor->has_ratios = true;
			PSD_TRY(read_param(field, tensor, err));
			if (tensor == &unused && unused.rate_ratio != 0 && unused.decay_ratio != 0)
				return psd_error_set(err, PSD_EINVAL, field->at,
						     "'%s' of a statistic must be 0, since statistics do not learn",
						     l ? lists[l] : "lr_mult");
		}
	}
	return PSD_OK;
}

/* ---- sharing ---- */

#define BLOBS_MAX 8 /* no layer has more blobs */

/* Name of a blob, or NULL. In the older syntax, `param` is the name. */
static const char *name_of(const struct psd_node *param)
{
	const struct psd_node *name = param->kind == PSD_NODE_MAPPING ? psd_node_child(param, "name") : param;

	return name && name->kind == PSD_NODE_SCALAR && *name->text ? name->text : NULL;
}

/* `names` maps a name to the number of its layer times BLOBS_MAX, plus that of the blob. */
enum psd_status psd_caffe_find_owner(const struct psd_node *layer, const struct psd_graph *graph,
				     const struct psd_names *names, struct psd_layer_spec *spec, struct psd_error *err)
{
	const struct psd_node *first = NULL;
	unsigned blob = 0, n_shared = 0, owner = 0;
	bool is_in_order = true;

	for (const struct psd_node *param = layer->first; param; param = param->next) {
		const char *name = strcmp(param->key, "param") ? NULL : name_of(param);

		if (name && psd_names_find(names, name, &owner)) {
			first = first ? first : param;
			spec->owner = n_shared ? spec->owner : owner / BLOBS_MAX;
			is_in_order = is_in_order && owner == spec->owner * BLOBS_MAX + blob;
			n_shared++;
		}
		blob += !strcmp(param->key, "param");
	}
	spec->is_sharing = n_shared > 0;
	if (!n_shared || (is_in_order && n_shared == blob && n_shared == graph->layers[spec->owner].n_tensors))
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, first->at,
			     "layer '%.80s' must share all parameters of '%.80s' in their order, or none", spec->name,
			     graph->layers[spec->owner].name);
}

bool psd_caffe_put_names(const struct psd_node *layer, unsigned number, struct psd_names *names)
{
	unsigned blob = 0, number_before;

	for (const struct psd_node *param = layer->first; param; param = param->next) {
		const char *name = strcmp(param->key, "param") ? NULL : name_of(param);

		if (name && !psd_names_find(names, name, &number_before) &&
		    !psd_names_put(names, name, number * BLOBS_MAX + blob))
			return false;
		blob += !strcmp(param->key, "param");
	}
	return true;
}
