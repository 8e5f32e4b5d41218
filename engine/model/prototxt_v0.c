/* Caffe's oldest form, layers { layer { type: "conv" kernelsize: 3 } bottom: "data" }, as the one after it. Fields go
 * where Caffe's own upgrade_proto.cpp moves them; whatever it has no place for is refused. Nodes keep their places. */
#include "engine/model/prototxt_parts.h"

#include <string.h>

/* ---- names, old and new ---- */

struct renamed_type {
	const char *name, *new_name;
};

static const struct renamed_type types[] = {
	{"accuracy", "Accuracy"},
	{"bnll", "BNLL"},
	{"concat", "Concat"},
	{"conv", "Convolution"},
	{"data", "Data"},
	{"dropout", "Dropout"},
	{"flatten", "Flatten"},
	{"hdf5_data", "HDF5Data"},
	{"images", "ImageData"},
	{"innerproduct", "InnerProduct"},
	{"lrn", "LRN"},
	{"pool", "Pooling"},
	{"relu", "ReLU"},
	{"sigmoid", "Sigmoid"},
	{"softmax", "Softmax"},
	{"softmax_loss", "SoftmaxWithLoss"},
	{"split", "Split"},
	{"tanh", "TanH"},
	{"window_data", "WindowData"},
};

/* A field of some types, and the message it is in now; of every type: one that stands beside the type. */
struct renamed_field {
	const char *type, *name, *message, *new_name;
};

static const struct renamed_field fields[] = {
	{NULL, "name", NULL, "name"},
	{NULL, "blobs_lr", NULL, "blobs_lr"},
	{NULL, "weight_decay", NULL, "weight_decay"},
	{"conv", "num_output", "convolution_param", "num_output"},
	{"conv", "biasterm", "convolution_param", "bias_term"},
	{"conv", "weight_filler", "convolution_param", "weight_filler"},
	{"conv", "bias_filler", "convolution_param", "bias_filler"},
	{"conv", "pad", "convolution_param", "pad"},
	{"conv", "kernelsize", "convolution_param", "kernel_size"},
	{"conv", "group", "convolution_param", "group"},
	{"conv", "stride", "convolution_param", "stride"},
	{"innerproduct", "num_output", "inner_product_param", "num_output"},
	{"innerproduct", "biasterm", "inner_product_param", "bias_term"},
	{"innerproduct", "weight_filler", "inner_product_param", "weight_filler"},
	{"innerproduct", "bias_filler", "inner_product_param", "bias_filler"},
	{"pool", "pool", "pooling_param", "pool"},
	{"pool", "pad", "pooling_param", "pad"},
	{"pool", "kernelsize", "pooling_param", "kernel_size"},
	{"pool", "stride", "pooling_param", "stride"},
	{"dropout", "dropout_ratio", "dropout_param", "dropout_ratio"},
	{"lrn", "local_size", "lrn_param", "local_size"},
	{"lrn", "alpha", "lrn_param", "alpha"},
	{"lrn", "beta", "lrn_param", "beta"},
	{"lrn", "k", "lrn_param", "k"},
	{"concat", "concat_dim", "concat_param", "concat_dim"},
	{"data", "source", "data_param", "source"},
	{"data", "batchsize", "data_param", "batch_size"},
	{"data", "rand_skip", "data_param", "rand_skip"},
	{"data", "scale", "transform_param", "scale"},
	{"data", "meanfile", "transform_param", "mean_file"},
	{"data", "cropsize", "transform_param", "crop_size"},
	{"data", "mirror", "transform_param", "mirror"},
	{"hdf5_data", "source", "hdf5_data_param", "source"},
	{"hdf5_data", "batchsize", "hdf5_data_param", "batch_size"},
	{"images", "source", "image_data_param", "source"},
	{"images", "batchsize", "image_data_param", "batch_size"},
	{"images", "rand_skip", "image_data_param", "rand_skip"},
	{"images", "shuffle_images", "image_data_param", "shuffle"},
	{"images", "new_height", "image_data_param", "new_height"},
	{"images", "new_width", "image_data_param", "new_width"},
	{"images", "scale", "transform_param", "scale"},
	{"images", "meanfile", "transform_param", "mean_file"},
	{"images", "cropsize", "transform_param", "crop_size"},
	{"images", "mirror", "transform_param", "mirror"},
	{"window_data", "source", "window_data_param", "source"},
	{"window_data", "batchsize", "window_data_param", "batch_size"},
	{"window_data", "scale", "transform_param", "scale"},
	{"window_data", "meanfile", "transform_param", "mean_file"},
	{"window_data", "cropsize", "transform_param", "crop_size"},
	{"window_data", "mirror", "transform_param", "mirror"},
};

static const char *new_type(const char *name)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(name, types[i].name))
			return types[i].new_name;
	return NULL;
}

static const struct renamed_field *find_field(const char *type, const char *name)
{
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (!strcmp(name, fields[i].name) && (!fields[i].type || !strcmp(type, fields[i].type)))
			return &fields[i];
	return NULL;
}

/* ---- trees ---- */

enum { MESSAGES_MAX = 2 }; /* of one layer */

/* A node that grows: its newest child is at hand. */
struct list {
	struct psd_node *node, *last;
};

struct upgrade {
	const struct psd_node *root; /* as it was read */
	struct psd_arena *arena;
	struct psd_error *err;
};

/* The layer that is moved, and its messages. */
struct moved {
	const char *type; /* the old one */
	struct list layer, messages[MESSAGES_MAX];
};

/* One child more: a copy of node, whose own children are the same ones. NULL: out of memory, and *err says so. */
static struct psd_node *hang(const struct upgrade *upgrade, struct list *list, const struct psd_node *node,
			     const char *key)
{
	struct psd_node *copy = psd_arena_take(upgrade->arena, sizeof(*copy));

	if (!copy) {
		(void)!psd_error_set(upgrade->err, PSD_ENOMEM, PSD_NOWHERE, "out of memory");
		return NULL;
	}
	*copy = *node;
	copy->key = key;
	copy->next = NULL;
	psd_node_hang(list->node, &list->last, copy);
	return copy;
}

/* A message without fields. */
static bool begin(const struct upgrade *upgrade, struct list *parent, const struct psd_node *at, const char *key,
		  struct list *message)
{
	const struct psd_node empty = {.kind = PSD_NODE_MAPPING, .at = at->at, .key_at = at->key_at};

	message->node = hang(upgrade, parent, &empty, key);
	return message->node;
}

static enum psd_status move_field(const struct upgrade *upgrade, struct moved *moved, const struct psd_node *field)
{
	const struct renamed_field *to = find_field(moved->type, field->key);
	struct list *list = moved->messages;

	if (!to)
		return psd_error_set(upgrade->err, PSD_EINVAL, field->key_at,
				     "'%.80s' is no field of a layer of type '%.80s' in this old form", field->key,
				     moved->type);
	if (!to->message)
		return hang(upgrade, &moved->layer, field, to->new_name) ? PSD_OK : PSD_ENOMEM;
	while (list->node && strcmp(list->node->key, to->message) != 0)
		list++;
	if (!list->node && !begin(upgrade, &moved->layer, field, to->message, list))
		return PSD_ENOMEM;
	return hang(upgrade, list, field, to->new_name) ? PSD_OK : PSD_ENOMEM;
}

/* ---- layers ---- */

static bool is_oldest(const struct psd_node *node)
{
	const struct psd_node *inner = strcmp(node->key, "layers") ? NULL : psd_node_child(node, "layer");

	return inner && inner->kind == PSD_NODE_MAPPING;
}

static const char *old_type(const struct psd_node *layer)
{
	const struct psd_node *type = psd_node_child(psd_node_child(layer, "layer"), "type");

	return type && type->kind == PSD_NODE_SCALAR ? type->text : "";
}

static bool is_padding(const struct psd_node *node)
{
	return is_oldest(node) && !strcmp(old_type(node), "padding");
}

/* The padding that makes this blob for the layer, or NULL. */
static const struct psd_node *find_padding(const struct upgrade *upgrade, const struct psd_node *layer,
					   const struct psd_node *bottom)
{
	const struct psd_node *found = NULL;

	for (const struct psd_node *node = upgrade->root->first; node != layer; node = node->next) {
		const struct psd_node *top = is_padding(node) ? psd_node_child(node, "top") : NULL;

		if (top && top->kind == PSD_NODE_SCALAR && bottom->kind == PSD_NODE_SCALAR &&
		    !strcmp(top->text, bottom->text))
			found = node;
	}
	return found;
}

/* A convolution or pooling pads what it reads itself. */
static enum psd_status move_bottom(const struct upgrade *upgrade, const struct psd_node *layer, struct moved *moved,
				   const struct psd_node *bottom)
{
	const bool may_pad = !strcmp(moved->type, "conv") || !strcmp(moved->type, "pool");
	const struct psd_node *padding = may_pad ? find_padding(upgrade, layer, bottom) : NULL;
	const struct psd_node *pad = psd_node_child(psd_node_child(padding, "layer"), "pad");
	const struct psd_node *from = psd_node_child(padding, "bottom");

	if (!hang(upgrade, &moved->layer, from ? from : bottom, "bottom"))
		return PSD_ENOMEM;
	return from && pad ? move_field(upgrade, moved, pad) : PSD_OK;
}

static enum psd_status move_layer(const struct upgrade *upgrade, struct list *root, const struct psd_node *layer)
{
	const struct psd_node *inner = psd_node_child(layer, "layer"), *type = psd_node_child(inner, "type");
	struct moved moved = {.type = old_type(layer)};
	struct psd_node *named;
	enum psd_status status = PSD_OK;

	if (is_padding(layer))
		return PSD_OK;
	if (!new_type(moved.type))
		return psd_error_set(upgrade->err, PSD_EINVAL, type ? type->at : inner->at,
				     "a layer has the unknown type '%.80s'", moved.type);
	if (!begin(upgrade, root, layer, "layers", &moved.layer))
		return PSD_ENOMEM;
	named = hang(upgrade, &moved.layer, type, "type");
	if (!named)
		return PSD_ENOMEM;
	named->text = new_type(moved.type);
	for (const struct psd_node *field = inner->first; field && !status; field = field->next)
		if (field != type)
			status = move_field(upgrade, &moved, field);
	for (const struct psd_node *field = layer->first; field && !status; field = field->next)
		if (!strcmp(field->key, "bottom"))
			status = move_bottom(upgrade, layer, &moved, field);
		else if (field != inner && !hang(upgrade, &moved.layer, field, field->key))
			status = PSD_ENOMEM;
	return status;
}

enum psd_status psd_caffe_upgrade(const struct psd_node **root, struct psd_arena *arena, struct psd_error *err)
{
	const struct upgrade upgrade = {*root, arena, err};
	struct psd_node *copy = psd_arena_take(arena, sizeof(*copy));
	struct list list = {.node = copy};
	bool has_oldest = false;
	enum psd_status status = PSD_OK;

	if (!copy)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory");
	*copy = (struct psd_node){.kind = (*root)->kind, .at = (*root)->at};
	for (const struct psd_node *child = (*root)->first; child && !status; child = child->next) {
		has_oldest = has_oldest || is_oldest(child);
		if (is_oldest(child))
			status = move_layer(&upgrade, &list, child);
		else if (!hang(&upgrade, &list, child, child->key))
			status = PSD_ENOMEM;
	}
	if (!status && has_oldest)
		*root = copy;
	return status;
}
