/* Converts Caffe's oldest form, layers { layer { type: "conv" kernelsize: 3 } bottom: "data" }, to the next one. Fields
 * move as in Caffe's upgrade_proto.cpp; all others are refused. Nodes keep their place in the file. */
#include "engine/model/prototxt_parts.h"

#include <string.h>

/* ---- names, old and new ---- */

enum type {
	CONV = 1 << 0,
	INNER_PRODUCT = 1 << 1,
	POOL = 1 << 2,
	DROPOUT = 1 << 3,
	LRN = 1 << 4,
	CONCAT = 1 << 5,
	DATA = 1 << 6,
	HDF5_DATA = 1 << 7,
	IMAGES = 1 << 8,
	WINDOW_DATA = 1 << 9,
	IMAGE_SOURCES = DATA | IMAGES | WINDOW_DATA,
	SOURCES = IMAGE_SOURCES | HDF5_DATA,
};

static const struct type_row {
	const char *name, *new_name;
	enum type type; /* 0: it has no fields */
	const char *message;
} types[] = {
	{"accuracy", "Accuracy", 0, NULL},
	{"bnll", "BNLL", 0, NULL},
	{"concat", "Concat", CONCAT, "concat_param"},
	{"conv", "Convolution", CONV, "convolution_param"},
	{"data", "Data", DATA, "data_param"},
	{"dropout", "Dropout", DROPOUT, "dropout_param"},
	{"flatten", "Flatten", 0, NULL},
	{"hdf5_data", "HDF5Data", HDF5_DATA, "hdf5_data_param"},
	{"images", "ImageData", IMAGES, "image_data_param"},
	{"innerproduct", "InnerProduct", INNER_PRODUCT, "inner_product_param"},
	{"lrn", "LRN", LRN, "lrn_param"},
	{"pool", "Pooling", POOL, "pooling_param"},
	{"relu", "ReLU", 0, NULL},
	{"sigmoid", "Sigmoid", 0, NULL},
	{"softmax", "Softmax", 0, NULL},
	{"softmax_loss", "SoftmaxWithLoss", 0, NULL},
	{"split", "Split", 0, NULL},
	{"tanh", "TanH", 0, NULL},
	{"window_data", "WindowData", WINDOW_DATA, "window_data_param"},
};

/* Fields of these types, each of which moves to `message`, or to that of the type if it is NULL. */
static const struct field_row {
	unsigned types; /* bits of enum type; 0: any type, the field stays beside the type */
	const char *name, *new_name, *message;
} fields[] = {
	{0, "name", "name", NULL},
	{0, "blobs_lr", "blobs_lr", NULL},
	{0, "weight_decay", "weight_decay", NULL},
	{CONV | INNER_PRODUCT, "num_output", "num_output", NULL},
	{CONV | INNER_PRODUCT, "biasterm", "bias_term", NULL},
	{CONV | INNER_PRODUCT, "weight_filler", "weight_filler", NULL},
	{CONV | INNER_PRODUCT, "bias_filler", "bias_filler", NULL},
	{CONV | POOL, "pad", "pad", NULL},
	{CONV | POOL, "kernelsize", "kernel_size", NULL},
	{CONV | POOL, "stride", "stride", NULL},
	{CONV, "group", "group", NULL},
	{POOL, "pool", "pool", NULL},
	{DROPOUT, "dropout_ratio", "dropout_ratio", NULL},
	{LRN, "local_size", "local_size", NULL},
	{LRN, "alpha", "alpha", NULL},
	{LRN, "beta", "beta", NULL},
	{LRN, "k", "k", NULL},
	{CONCAT, "concat_dim", "concat_dim", NULL},
	{SOURCES, "source", "source", NULL},
	{SOURCES, "batchsize", "batch_size", NULL},
	{DATA | IMAGES, "rand_skip", "rand_skip", NULL},
	{IMAGES, "shuffle_images", "shuffle", NULL},
	{IMAGES, "new_height", "new_height", NULL},
	{IMAGES, "new_width", "new_width", NULL},
	{IMAGE_SOURCES, "scale", "scale", "transform_param"},
	{IMAGE_SOURCES, "meanfile", "mean_file", "transform_param"},
	{IMAGE_SOURCES, "cropsize", "crop_size", "transform_param"},
	{IMAGE_SOURCES, "mirror", "mirror", "transform_param"},
};

static const struct type_row *find_type(const char *name)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(name, types[i].name))
			return &types[i];
	return NULL;
}

static const struct field_row *find_field(const struct type_row *type, const char *name)
{
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (!strcmp(name, fields[i].name) && (!fields[i].types || (type->type & fields[i].types)))
			return &fields[i];
	return NULL;
}

/* ---- trees ---- */

enum { MESSAGES_MAX = 2 }; /* messages of a layer */

/* A node under construction, with its newest child. */
struct list {
	struct psd_node *node, *last;
};

struct upgrade {
	const struct psd_node *root; /* the tree in the old form */
	struct psd_arena *arena;
	struct psd_error *err;
};

/* The new layer, and its messages. */
struct moved {
	const struct type_row *type;
	struct list layer, messages[MESSAGES_MAX];
};

/* Appends a child: a copy of node with the same children. NULL: out of memory, with *err set. */
static struct psd_node *append(const struct upgrade *upgrade, struct list *list, const struct psd_node *node,
			       const char *key)
{
	struct psd_node *copy = psd_arena_take(upgrade->arena, sizeof(*copy));

	if (!copy) {
		(void)!psd_out_of_memory(upgrade->err);
		return NULL;
	}
	*copy = *node;
	copy->key = key;
	copy->next = NULL;
	psd_node_hang(list->node, &list->last, copy);
	return copy;
}

/* Appends a message without fields. */
static bool begin(const struct upgrade *upgrade, struct list *parent, const struct psd_node *at, const char *key,
		  struct list *message)
{
	const struct psd_node empty = {.kind = PSD_NODE_MAPPING, .at = at->at, .key_at = at->key_at};

	message->node = append(upgrade, parent, &empty, key);
	return message->node;
}

static enum psd_status move_field(const struct upgrade *upgrade, struct moved *moved, const struct psd_node *field)
{
	const struct field_row *to = find_field(moved->type, field->key);
	struct list *list = moved->messages;

	if (!to)
		return psd_error_set(upgrade->err, PSD_EINVAL, field->key_at,
				     "a layer of type '%.80s' has the unknown field '%.80s'", moved->type->name,
				     field->key);
	if (!to->types)
		return append(upgrade, &moved->layer, field, to->new_name) ? PSD_OK : PSD_ENOMEM;
	const char *message = to->message ? to->message : moved->type->message;
	while (list->node && strcmp(list->node->key, message) != 0)
		list++;
	if (!list->node && !begin(upgrade, &moved->layer, field, message, list))
		return PSD_ENOMEM;
	return append(upgrade, list, field, to->new_name) ? PSD_OK : PSD_ENOMEM;
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

/* The padding layer above whose top is this bottom, or NULL. */
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

/* Appends a bottom. A convolution or pooling after a padding layer gets its pad and bottom. */
static enum psd_status move_bottom(const struct upgrade *upgrade, const struct psd_node *layer, struct moved *moved,
				   const struct psd_node *bottom)
{
	const bool may_pad = moved->type->type & (CONV | POOL);
	const struct psd_node *padding = may_pad ? find_padding(upgrade, layer, bottom) : NULL;
	const struct psd_node *pad = psd_node_child(psd_node_child(padding, "layer"), "pad");
	const struct psd_node *from = psd_node_child(padding, "bottom");

	if (!append(upgrade, &moved->layer, from ? from : bottom, "bottom"))
		return PSD_ENOMEM;
	return from && pad ? move_field(upgrade, moved, pad) : PSD_OK;
}

static enum psd_status move_layer(const struct upgrade *upgrade, struct list *root, const struct psd_node *layer)
{
	const struct psd_node *inner = psd_node_child(layer, "layer"), *type = psd_node_child(inner, "type");
	struct moved moved = {.type = find_type(old_type(layer))};
	enum psd_status status = PSD_OK;

	if (is_padding(layer))
		return PSD_OK;
	if (!moved.type)
		return psd_error_set(upgrade->err, PSD_EINVAL, type ? type->at : inner->at,
				     "a layer has the unknown type '%.80s'", old_type(layer));
	if (!begin(upgrade, root, layer, "layers", &moved.layer))
		return PSD_ENOMEM;
	struct psd_node *named = append(upgrade, &moved.layer, type, "type");
	if (!named)
		return PSD_ENOMEM;
	named->text = moved.type->new_name;
	for (const struct psd_node *field = inner->first; field && !status; field = field->next)
		if (field != type)
			status = move_field(upgrade, &moved, field);
	for (const struct psd_node *field = layer->first; field && !status; field = field->next)
		if (!strcmp(field->key, "bottom"))
			status = move_bottom(upgrade, layer, &moved, field);
		else if (field != inner && !append(upgrade, &moved.layer, field, field->key))
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
		return psd_out_of_memory(err);
	*copy = (struct psd_node){.kind = (*root)->kind, .at = (*root)->at};
	for (const struct psd_node *child = (*root)->first; child && !status; child = child->next) {
		has_oldest = has_oldest || is_oldest(child);
		if (is_oldest(child))
			status = move_layer(&upgrade, &list, child);
		else if (!append(&upgrade, &list, child, child->key))
			status = PSD_ENOMEM;
	}
	if (!status && has_oldest)
		*root = copy;
	return status;
}
