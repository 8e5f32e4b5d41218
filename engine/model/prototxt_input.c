/* Size of the input. Caffe reads it from the data base; here the file must have it. */
#include "engine/model/prototxt_parts.h"

#include <string.h>

#include "engine/base/text.h"
#include "engine/model/choices.h"
#include "engine/model/layer.h"

static enum psd_status shape_from_dims(const uint32_t dims[], unsigned n_dims, const struct psd_node *at,
				       struct psd_shape *shape, struct psd_error *err)
{
	if (n_dims != 2 && n_dims != 4)
		return psd_error_set(err, PSD_EINVAL, at->at,
				     "the shape has %u dimensions, must have 2 (batch, channels) or 4 (batch, "
				     "channels, height, width)",
				     n_dims);
	*shape = (struct psd_shape){dims[1], n_dims == 4 ? dims[2] : 1, n_dims == 4 ? dims[3] : 1};
	return PSD_OK;
}

/* The fifth is one too many: shape_from_dims() refuses it. */
enum psd_status psd_caffe_read_dims(const struct psd_node *message, const char *key, uint32_t dims[5], unsigned *n_dims,
				    struct psd_error *err)
{
	*n_dims = 0;
	for (const struct psd_node *child = message->first; child && *n_dims < 5; child = child->next) {
		uint64_t value;

		if (strcmp(child->key, key) != 0)
			continue;
		PSD_TRY(psd_node_count(child, 1, PSD_LAYER_CHANNELS_MAX, &value, err));
		dims[(*n_dims)++] = (uint32_t)value;
	}
	return PSD_OK;
}

enum psd_status psd_caffe_read_shape(const struct psd_node *message, struct psd_shape *shape, struct psd_error *err)
{
	uint32_t dims[5];
	unsigned n_dims;

	PSD_TRY(psd_caffe_read_dims(message, "dim", dims, &n_dims, err));
	return shape_from_dims(dims, n_dims, message, shape, err);
}

/* Reads the message's first shape, or else its channels, height and width; otherwise *shape stays unchanged. */
static enum psd_status read_size(const struct psd_node *message, struct psd_shape *shape, struct psd_error *err)
{
	const struct psd_node *blob_shape = psd_node_child(message, "shape");
	struct psd_shape read = {0, 1, 1};

	if (blob_shape)
		return psd_caffe_read_shape(blob_shape, shape, err);
	PSD_TRY(psd_caffe_read_count(message, "channels", 1, PSD_LAYER_CHANNELS_MAX, &read.channels, err));
	PSD_TRY(psd_caffe_read_count(message, "height", 1, PSD_LAYER_SIDE_MAX, &read.height, err));
	PSD_TRY(psd_caffe_read_count(message, "width", 1, PSD_LAYER_SIDE_MAX, &read.width, err));
	if (read.channels)
		*shape = read;
	return PSD_OK;
}

/* True if the data base is MNIST's by its name: its images are grey. */
static bool is_of_digits(const struct psd_node *message)
{
	const struct psd_node *source = psd_node_child(message, "source");

	return source && source->kind == PSD_NODE_SCALAR &&
	       (strstr(source->text, "mnist") || strstr(source->text, "MNIST"));
}

enum psd_status psd_caffe_find_size(const struct psd_model_choices *choices, const char *name, const char *other_name,
				    struct psd_shape *shape, struct psd_error *err)
{
	const char *const names[] = {name, other_name};
	struct psd_choice_sizes sizes = {.n = 0};

	for (unsigned i = 0; i < 2 && names[i] && !sizes.n; i++)
		PSD_TRY(psd_choices_find_sizes(choices, names[i], &sizes, err));
	if (!sizes.n)
		return PSD_OK;
	if (sizes.n == 2 || sizes.n > 4)
		return psd_error_set(err, PSD_EINVAL, (struct psd_place){.path = "model.input"},
				     "'%.80s' has %u sizes, must have channels, height and width as in 3x224x224, or "
				     "channels alone",
				     name, sizes.n);
	if (sizes.n == 4) /* with the batch */
		memmove(sizes.sides, sizes.sides + 1, 3 * sizeof(sizes.sides[0]));
	*shape = sizes.n == 1 ? (struct psd_shape){sizes.sides[0], 1, 1}
			      : (struct psd_shape){sizes.sides[0], sizes.sides[1], sizes.sides[2]};
	return PSD_OK;
}

/* Size to which SSD's fork warps images. */
static enum psd_status read_resized(const struct psd_node *transform, struct psd_shape *read, struct psd_error *err)
{
	const struct psd_node *resize = psd_node_child(transform, "resize_param");

	PSD_TRY(psd_caffe_read_count(resize, "height", 1, PSD_LAYER_SIDE_MAX, &read->height, err));
	return psd_caffe_read_count(resize, "width", 1, PSD_LAYER_SIDE_MAX, &read->width, err);
}

/* Reads the size of images from a data base, which are cropped to crop_size or scaled to new_height x new_width. In the
 * older form crop_size is in the layer's message. */
static enum psd_status read_image_size(const struct psd_node *layer, const struct psd_node *message,
				       const struct psd_caffe_outside *outside, struct psd_shape *shape,
				       struct psd_error *err)
{
	const struct psd_node *transform;
	bool is_color = true, is_gray = false;
	struct psd_shape read = {0};
	uint32_t crop = 0, channels = 0;

	PSD_TRY(psd_caffe_single(layer, "transform_param", &transform, err));
	PSD_TRY(psd_caffe_read_flag(transform, "force_gray", &is_gray, err));
	PSD_TRY(psd_caffe_read_flag(message, "is_color", &is_color, err));
	PSD_TRY(psd_caffe_read_count(message, "new_height", 0, PSD_LAYER_SIDE_MAX, &read.height, err));
	PSD_TRY(psd_caffe_read_count(message, "new_width", 0, PSD_LAYER_SIDE_MAX, &read.width, err));
	PSD_TRY(psd_caffe_read_count(message, "crop_size", 0, PSD_LAYER_SIDE_MAX, &crop, err));
	PSD_TRY(psd_caffe_read_count(transform, "crop_size", 0, PSD_LAYER_SIDE_MAX, &crop, err));
	if (crop)
		read.height = read.width = crop;
	else
		PSD_TRY(read_resized(transform, &read, err));
	if (outside->choices)
		channels = outside->choices->sample.channels;
	read.channels = is_gray || !is_color ? 1 : channels ? channels : is_of_digits(message) ? 1 : 3;
	if (!read.height || !read.width)
		return PSD_OK;
	*shape = read;
	if (!is_gray && is_color && !channels && psd_caffe_count_fields(transform, "mean_value") != 3)
		psd_text_add(outside->remarks,
			     "channels: the input has %u, which the file does not say (key model.input)\n",
			     read.channels);
	return PSD_OK;
}

static const struct psd_caffe_data_type data_types[] = {
	{"Input", "INPUT", "input_param", true},
	{"DummyData", "DUMMY_DATA", "dummy_data_param", true},
	{"MemoryData", "MEMORY_DATA", "memory_data_param", true},
	{"Data", "DATA", "data_param", false},
	{"ImageData", "IMAGE_DATA", "image_data_param", false},
	{"WindowData", "WINDOW_DATA", "window_data_param", false},
	{"HDF5Data", "HDF5_DATA", "hdf5_data_param", false},
	{"AnnotatedData", "AnnotatedData", "data_param", false}, /* SSD's fork */
};

const struct psd_caffe_data_type *psd_caffe_find_data_type(const char *type)
{
	for (size_t i = 0; i < sizeof(data_types) / sizeof(data_types[0]); i++)
		if (!strcmp(type, data_types[i].name) || !strcmp(type, data_types[i].old_name))
			return &data_types[i];
	return NULL;
}

enum psd_status psd_caffe_check_data(const struct psd_node *layer, const struct psd_caffe_data_type *type,
				     struct psd_error *err)
{
	static const char *const message_fields[] = {"source",
						     "batch_size",
						     "batchsize",
						     "backend",
						     "rand_skip",
						     "scale",
						     "mean_file",
						     "crop_size",
						     "mirror",
						     "prefetch",
						     "new_height",
						     "new_width",
						     "is_color",
						     "shuffle",
						     "root_folder",
						     "num",
						     "channels",
						     "height",
						     "width",
						     "shape",
						     "data_filler",
						     "cache_size",
						     "fg_threshold",
						     "bg_threshold",
						     "fg_fraction",
						     "context_pad",
						     "crop_mode",
						     "cache_images",
						     "force_encoded_color",
						     NULL};
	static const char *const transform_fields[] = {
		"scale", "mirror", "crop_size", "mean_file", "mean_value", "force_color", "force_gray",
		/* SSD's fork */
		"resize_param", "noise_param", "distort_param", "expand_param", "emit_constraint",
		/* Intel's fork */
		"random_resize_param", "random_aspect_ratio_param",
		/* NVIDIA's fork */
		"img_rand_resize_lower", "img_rand_resize_upper", "rand_resize_ratio_lower", "rand_resize_ratio_upper",
		"vertical_stretch_lower", "vertical_stretch_upper", "horizontal_stretch_lower",
		"horizontal_stretch_upper", "allow_upscale", "use_gpu_transform", "random_seed", "display", NULL};
	const char *const layer_fields[] = {"name",
					    "type",
					    "top",
					    "include",
					    "exclude",
					    "phase",
					    "param",
					    "blobs_lr",
					    "transform_param",
					    type->message,
					    "annotated_data_param",
					    NULL};
	const struct psd_node *message = psd_node_child(layer, type->message);
	const struct psd_node *transform = psd_node_child(layer, "transform_param");

	PSD_TRY(psd_node_check_keys(layer, "layer", layer_fields, err));
	if (message)
		PSD_TRY(psd_node_check_keys(message, type->message, message_fields, err));
	return transform ? psd_node_check_keys(transform, "transform_param", transform_fields, err) : PSD_OK;
}

enum psd_status psd_caffe_read_input_size(const struct psd_node *layer, const struct psd_caffe_data_type *type,
					  const struct psd_caffe_outside *outside, struct psd_layer_spec *spec,
					  struct psd_error *err)
{
	struct psd_shape *shape = &spec->settings.shape;
	const struct psd_node *message;

	PSD_TRY(psd_caffe_find_size(outside->choices, spec->name, outside->top, shape, err));
	if (shape->channels)
		return PSD_OK;
	PSD_TRY(psd_caffe_single(layer, type->message, &message, err));
	PSD_TRY(type->has_size ? read_size(message, shape, err) : read_image_size(layer, message, outside, shape, err));
	if (!shape->channels && outside->choices)
		*shape = outside->choices->sample;
	if (shape->channels)
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, layer->at,
			     "layer '%.80s' (%s) has no image size, needs transform_param { crop_size }, or the key "
			     "model.input: {%.80s: 3x224x224}",
			     spec->name, type->name, outside->top ? outside->top : spec->name);
}
