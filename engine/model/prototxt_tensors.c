/* What a Caffe layer says about its parameters: how they start, how fast they learn. */
#include "engine/model/prototxt_parts.h"

#include <string.h>

#include "engine/model/layer.h"

static const char *const nothing[] = {NULL};

/* ---- how they start ---- */

/* In the order of enum psd_filler_kind. */
static const char *const fillers[] = {"constant", "uniform", "gaussian", "xavier", "msra", "bilinear", NULL};
static const char *const fans[] = {"FAN_IN", "FAN_OUT", "AVERAGE", "0", "1", "2", NULL};

#define NUMBER(key, member) PSD_NUMBER_KEY(key, struct psd_filler, member, -1e6, 1e6)
#define CHOICE(key, member, choices)                                                                                   \
	{                                                                                                              \
		.name = key, .type = PSD_KEY_CHOICE, .offset = offsetof(struct psd_filler, member), .names = choices   \
	}

/* As in Caffe, fields of other types may stand there without effect. */
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
	enum psd_status status = psd_caffe_single(message, key, &node, err);

	if (status || !node)
		return status;
	status = psd_layer_read_keys(&filler, node, key, nothing, filler_fields, err);
	filler.fan %= 3;
	tensor->has_filler = true;
	tensor->filler = filler;
	return status;
}

/* ---- how fast they learn ---- */

#define LEAST 0
#define MOST  1e6

enum { STATISTICS_BEHIND = 2 }; /* mean and variance */

static const struct psd_key param_fields[] = {
	PSD_NUMBER_KEY("lr_mult", struct psd_tensor_spec, rate_ratio, LEAST, MOST),
	PSD_NUMBER_KEY("decay_mult", struct psd_tensor_spec, decay_ratio, LEAST, MOST),
	{.name = NULL},
};

/* V1LayerParameter has lists of its own: blob i's are the i-th of each, and `param` is a name. */
static enum psd_status read_param(const struct psd_node *field, struct psd_tensor_spec *tensor, struct psd_error *err)
{
	static const char *const names[] = {"name", "share_mode", NULL};

	if (!strcmp(field->key, "blobs_lr"))
		return psd_node_number(field, LEAST, MOST, &tensor->rate_ratio, err);
	if (!strcmp(field->key, "weight_decay"))
		return psd_node_number(field, LEAST, MOST, &tensor->decay_ratio, err);
	if (field->kind == PSD_NODE_SCALAR)
		return PSD_OK;
	return psd_layer_read_keys(tensor, field, "param", names, param_fields, err);
}

enum psd_status psd_caffe_read_ratios(const struct psd_node *layer, unsigned first_blob, bool has_blobs_behind,
				      struct psd_tensor_spec tensors[PSD_LAYER_TENSORS_MAX], struct psd_error *err)
{
	static const char *const lists[] = {"param", "blobs_lr", "weight_decay", NULL};
	const unsigned behind = first_blob + PSD_LAYER_TENSORS_MAX;
	enum psd_status status = PSD_OK;

	for (unsigned i = 0; i < PSD_LAYER_TENSORS_MAX; i++)
		tensors[i].rate_ratio = tensors[i].decay_ratio = 1;
	for (unsigned l = 0; lists[l]; l++) {
		unsigned blob = 0;

		for (const struct psd_node *field = layer->first; field && !status; field = field->next) {
			struct psd_tensor_spec unused = {.rate_ratio = 1, .decay_ratio = 1}, *tensor = &unused;

			if (strcmp(field->key, lists[l]) != 0)
				continue;
			if (blob >= behind + (has_blobs_behind ? STATISTICS_BEHIND : 0))
				return psd_error_set(err, PSD_EINVAL, field->key_at,
						     "'%s' is given for more parameters than a layer has", lists[l]);
			if (blob >= first_blob && blob < behind)
				tensor = &tensors[blob - first_blob];
			blob++;
			tensor->has_ratios = true;
			status = read_param(field, tensor, err);
			if (!status && tensor == &unused && unused.rate_ratio != 0 && unused.decay_ratio != 0)
				return psd_error_set(err, PSD_EINVAL, field->at,
						     "statistics do not learn, '%s' must be 0 here",
						     l ? lists[l] : "lr_mult");
		}
	}
	return status;
}

/* ---- which layers share them ---- */

#define BLOBS_MAX 8 /* of a layer, more than any has */

/* The name of a blob, or NULL: the older syntax has it alone. */
static const char *name_of(const struct psd_node *param)
{
	const struct psd_node *name = param->kind == PSD_NODE_MAPPING ? psd_node_child(param, "name") : param;

	return name && name->kind == PSD_NODE_SCALAR && *name->text ? name->text : NULL;
}

/* A name is bound to its layer's number and blob. */
enum psd_status psd_caffe_find_owner(const struct psd_node *layer, const struct psd_graph *graph,
				     const struct psd_names *names, struct psd_layer_spec *spec, struct psd_error *err)
{
	const struct psd_node *first = NULL;
	unsigned blob = 0, n_shared = 0, place = 0;
	bool is_in_order = true;

	for (const struct psd_node *param = layer->first; param; param = param->next) {
		const char *name = strcmp(param->key, "param") ? NULL : name_of(param);

		if (name && psd_names_find(names, name, &place)) {
			first = first ? first : param;
			spec->owner = n_shared ? spec->owner : place / BLOBS_MAX;
			is_in_order = is_in_order && place == spec->owner * BLOBS_MAX + blob;
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
	unsigned blob = 0, place;

	for (const struct psd_node *param = layer->first; param; param = param->next) {
		const char *name = strcmp(param->key, "param") ? NULL : name_of(param);

		if (name && !psd_names_find(names, name, &place) &&
		    !psd_names_put(names, name, number * BLOBS_MAX + blob))
			return false;
		blob += !strcmp(param->key, "param");
	}
	return true;
}
