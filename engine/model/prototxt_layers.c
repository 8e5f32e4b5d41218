/* Caffe's layer types and what each reads from its parameter message. Fields that change neither shapes nor parameters
 * are known and passed over. */
#include "engine/model/prototxt_parts.h"

#include <string.h>

#include "engine/model/layer.h"

/* The graph has channels as its only mixing axis. */
static enum psd_status check_axis(const struct psd_node *message, const char *key, struct psd_error *err)
{
	uint32_t axis = 1;

	return psd_caffe_read_count(message, key, 1, 1, &axis, err);
}

static enum psd_status read_window(const struct psd_node *message, struct psd_layer_spec *spec, struct psd_error *err)
{
	struct psd_window *window = &spec->window;
	enum psd_status status;

	window->kernel_height = 0;
	window->kernel_width = 0;
	status = psd_caffe_read_pair(message, "kernel_size", "kernel_h", "kernel_w", 1, &window->kernel_height,
				     &window->kernel_width, err);
	if (!status && (!window->kernel_height || !window->kernel_width))
		status = psd_caffe_missing(message, spec, "kernel_size", err);
	if (!status)
		status = psd_caffe_read_pair(message, "stride", "stride_h", "stride_w", 1, &window->stride_height,
					     &window->stride_width, err);
	if (!status)
		status = psd_caffe_read_pair(message, "pad", "pad_h", "pad_w", 0, &window->pad_height,
					     &window->pad_width, err);
	return status;
}

static enum psd_status read_outputs(const struct psd_node *message, struct psd_layer_spec *spec, struct psd_error *err)
{
	enum psd_status status =
		psd_caffe_read_count(message, "num_output", 1, PSD_LAYER_CHANNELS_MAX, &spec->outputs, err);

	spec->has_bias = true;
	if (!status && !spec->outputs)
		status = psd_caffe_missing(message, spec, "num_output", err);
	if (!status)
		status = check_axis(message, "axis", err);
	return status ? status : psd_caffe_read_flag(message, "bias_term", &spec->has_bias, err);
}

static enum psd_status read_conv(const struct psd_node *layer, struct psd_layer_spec *spec, struct psd_error *err)
{
	static const char *const known[] = {
		"num_output",  "kernel_size", "stride",		 "pad",	     "dilation",
		"group",       "bias_term",   "kernel_h",	 "kernel_w", "stride_h",
		"stride_w",    "pad_h",	      "pad_w",		 "axis",     "weight_filler",
		"bias_filler", "engine",      "force_nd_im2col", NULL};
	struct psd_window *window = &spec->window;
	const struct psd_node *message;
	enum psd_status status = psd_caffe_parameters(layer, "convolution_param", known, &message, err);

	if (!status && !message)
		status = psd_caffe_missing(layer, spec, "convolution_param", err);
	if (!status)
		status = read_outputs(message, spec, err);
	if (!status)
		status = read_window(message, spec, err);
	if (!status)
		status = psd_caffe_read_pair(message, "dilation", "dilation_h", "dilation_w", 1,
					     &window->dilation_height, &window->dilation_width, err);
	return status ? status
		      : psd_caffe_read_count(message, "group", 1, PSD_LAYER_CHANNELS_MAX, &window->groups, err);
}

static enum psd_status read_inner_product(const struct psd_node *layer, struct psd_layer_spec *spec,
					  struct psd_error *err)
{
	static const char *const known[] = {"num_output",    "bias_term",   "axis",   "transpose",
					    "weight_filler", "bias_filler", "engine", NULL};
	const struct psd_node *message;
	enum psd_status status = psd_caffe_parameters(layer, "inner_product_param", known, &message, err);

	if (!status && !message)
		status = psd_caffe_missing(layer, spec, "inner_product_param", err);
	return status ? status : read_outputs(message, spec, err);
}

/* MAX or AVE, in capitals or as the numbers 0 and 1 (caffe.proto). */
static enum psd_status read_method(const struct psd_node *message, bool *is_max, struct psd_error *err)
{
	static const char *const methods[] = {"MAX", "AVE", "0", "1", NULL};
	const struct psd_node *field;
	unsigned index = 0;
	enum psd_status status = psd_caffe_single(message, "pool", &field, err);

	if (!status && field)
		status = psd_node_choice(field, methods, &index, err);
	if (!status)
		*is_max = index % 2 == 0;
	return status;
}

static enum psd_status read_rounding(const struct psd_node *message, bool *rounds_up, struct psd_error *err)
{
	static const char *const modes[] = {"CEIL", "FLOOR", "0", "1", NULL};
	const struct psd_node *field;
	unsigned index = 0;
	enum psd_status status = psd_caffe_single(message, "round_mode", &field, err);

	if (!status && field)
		status = psd_node_choice(field, modes, &index, err);
	if (!status)
		*rounds_up = index % 2 == 0;
	return status;
}

static enum psd_status read_pool(const struct psd_node *layer, struct psd_layer_spec *spec, struct psd_error *err)
{
	static const char *const known[] = {"pool",	      "kernel_size", "stride",	 "pad",	  "kernel_h",
					    "kernel_w",	      "stride_h",    "stride_w", "pad_h", "pad_w",
					    "global_pooling", "round_mode",  "engine",	 NULL};
	const struct psd_node *message;
	bool is_global = false;
	enum psd_status status = psd_caffe_parameters(layer, "pooling_param", known, &message, err);

	if (!status && !message)
		status = psd_caffe_missing(layer, spec, "pooling_param", err);
	if (!status)
		status = read_method(message, &spec->window.is_max, err);
	if (!status)
		status = read_rounding(message, &spec->window.rounds_up, err);
	if (!status)
		status = psd_caffe_read_flag(message, "global_pooling", &is_global, err);
	if (status || !is_global)
		return status ? status : read_window(message, spec, err);
	if (spec->window.is_max)
		return psd_error_set(err, PSD_EINVAL, message->at,
				     "layer '%.80s' is a global MAX pooling, only AVE is supported", spec->name);
	spec->kind = PSD_LAYER_GLOBAL_POOL;
	return PSD_OK;
}

static enum psd_status read_lrn(const struct psd_node *layer, struct psd_layer_spec *spec, struct psd_error *err)
{
	static const char *const known[] = {"local_size", "alpha", "beta", "k", "norm_region", "engine", NULL};
	const struct psd_node *message;
	enum psd_status status = psd_caffe_parameters(layer, "lrn_param", known, &message, err);

	spec->lrn_size = 5; /* caffe.proto's default */
	return status || !message
		       ? status
		       : psd_caffe_read_count(message, "local_size", 1, PSD_LAYER_SIDE_MAX, &spec->lrn_size, err);
}

static enum psd_status read_dropout(const struct psd_node *layer, struct psd_layer_spec *spec, struct psd_error *err)
{
	static const char *const known[] = {"dropout_ratio", NULL};
	const struct psd_node *message, *ratio;
	enum psd_status status = psd_caffe_parameters(layer, "dropout_param", known, &message, err);

	spec->dropout_ratio = 0.5; /* caffe.proto's default */
	if (!status)
		status = psd_caffe_single(message, "dropout_ratio", &ratio, err);
	return status || !ratio ? status : psd_node_ratio(ratio, 0.0, 0.999, &spec->dropout_ratio, err);
}

static enum psd_status read_concat(const struct psd_node *layer, struct psd_layer_spec *spec, struct psd_error *err)
{
	static const char *const known[] = {"axis", "concat_dim", NULL};
	const struct psd_node *message;
	enum psd_status status = psd_caffe_parameters(layer, "concat_param", known, &message, err);

	(void)spec;
	if (!status)
		status = check_axis(message, "axis", err);
	return status ? status : check_axis(message, "concat_dim", err);
}

static enum psd_status read_eltwise(const struct psd_node *layer, struct psd_layer_spec *spec, struct psd_error *err)
{
	static const char *const known[] = {"operation", "coeff", "stable_prod_grad", NULL};
	static const char *const operations[] = {"SUM", "1", NULL};
	const struct psd_node *message, *operation;
	unsigned index;
	enum psd_status status = psd_caffe_parameters(layer, "eltwise_param", known, &message, err);

	(void)spec;
	if (!status)
		status = psd_caffe_single(message, "operation", &operation, err);
	return status || !operation ? status : psd_node_choice(operation, operations, &index, err);
}

/* BVLC's has no learned parameters, its three blobs are statistics; NVIDIA's learns both with scale_bias. */
static enum psd_status read_batch_norm(const struct psd_node *layer, struct psd_layer_spec *spec, struct psd_error *err)
{
	static const char *const known[] = {"use_global_stats",
					    "moving_average_fraction",
					    "eps",
					    "scale_bias",
					    "scale_filler",
					    "bias_filler",
					    "engine",
					    NULL};
	const struct psd_node *message;
	enum psd_status status = psd_caffe_parameters(layer, "batch_norm_param", known, &message, err);

	if (!status)
		status = psd_caffe_read_flag(message, "scale_bias", &spec->has_scale, err);
	spec->has_bias = spec->has_scale;
	return status;
}

static enum psd_status read_scale(const struct psd_node *layer, struct psd_layer_spec *spec, struct psd_error *err)
{
	static const char *const known[] = {"bias_term", "axis", "num_axes", "filler", "bias_filler", NULL};
	const struct psd_node *message;
	enum psd_status status = psd_caffe_parameters(layer, "scale_param", known, &message, err);

	spec->has_scale = true;
	if (!status)
		status = check_axis(message, "axis", err);
	if (!status)
		status = check_axis(message, "num_axes", err);
	return status ? status : psd_caffe_read_flag(message, "bias_term", &spec->has_bias, err);
}

/* Names in caffe.proto: LayerParameter's and V1LayerParameter's. */
static const struct psd_caffe_type layer_types[] = {
	{"Convolution", "CONVOLUTION", PSD_LAYER_CONV, read_conv},
	{"Pooling", "POOLING", PSD_LAYER_POOL, read_pool},
	{"LRN", "LRN", PSD_LAYER_LRN, read_lrn},
	{"ReLU", "RELU", PSD_LAYER_RELU, NULL},
	{"Dropout", "DROPOUT", PSD_LAYER_DROPOUT, read_dropout},
	{"InnerProduct", "INNER_PRODUCT", PSD_LAYER_INNER_PRODUCT, read_inner_product},
	{"Concat", "CONCAT", PSD_LAYER_CONCAT, read_concat},
	{"Eltwise", "ELTWISE", PSD_LAYER_ADD, read_eltwise},
	{"BatchNorm", NULL, PSD_LAYER_BATCH_NORM, read_batch_norm},
	{"Scale", NULL, PSD_LAYER_SCALE, read_scale},
	{"SoftmaxWithLoss", "SOFTMAX_LOSS", PSD_LAYER_SOFTMAX_LOSS, NULL},
	{"Softmax", "SOFTMAX", PSD_LAYER_SOFTMAX_LOSS, NULL}, /* a deployed net's end stands for its loss */
};

const struct psd_caffe_type *psd_caffe_find_type(const char *type)
{
	for (size_t i = 0; i < sizeof(layer_types) / sizeof(layer_types[0]); i++)
		if (!strcmp(type, layer_types[i].name) ||
		    (layer_types[i].old_name && !strcmp(type, layer_types[i].old_name)))
			return &layer_types[i];
	return NULL;
}
