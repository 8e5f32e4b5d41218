/* Caffe's layer types and what each reads from its parameter message. Fields that change neither shapes nor parameters
 * are known and passed over. */
#include "engine/model/prototxt_parts.h"

#include <string.h>

#include "engine/model/layer.h"

enum { PASSED_OVER_MAX = 15 };

/* What fields are read into. */
struct values {
	union psd_layer_settings settings;
	unsigned checked; /* a value that only one setting of is accepted */
};

/* The graph has channels as its only mixing axis. */
#define AXIS(key) PSD_COUNT_KEY(key, struct values, checked, 1, false)
#define CHOICE(key, member, choices)                                                                                   \
	{                                                                                                              \
		.name = key, .type = PSD_KEY_CHOICE, .offset = offsetof(struct values, member), .names = choices       \
	}

static const char *const methods[] = {"MAX", "AVE", "0", "1", NULL}; /* in capitals or as numbers (caffe.proto) */
static const char *const roundings[] = {"CEIL", "FLOOR", "0", "1", NULL};
static const char *const operations[] = {"SUM", "1", NULL};

static const struct psd_key conv_fields[] = {
	PSD_COUNT_KEY("num_output", struct values, settings.conv.outputs, PSD_LAYER_CHANNELS_MAX, true),
	PSD_COUNT_KEY("group", struct values, settings.conv.groups, PSD_LAYER_CHANNELS_MAX, false),
	PSD_FLAG_KEY("bias_term", struct values, settings.conv.has_bias),
	AXIS("axis"),
	{.name = NULL},
};

static const struct psd_key inner_product_fields[] = {
	PSD_COUNT_KEY("num_output", struct values, settings.inner_product.outputs, PSD_LAYER_CHANNELS_MAX, true),
	PSD_FLAG_KEY("bias_term", struct values, settings.inner_product.has_bias),
	AXIS("axis"),
	{.name = NULL},
};

static const struct psd_key pool_fields[] = {
	CHOICE("pool", settings.pool.method, methods),
	CHOICE("round_mode", settings.pool.rounding, roundings),
	{.name = NULL},
};

static const struct psd_key lrn_fields[] = {
	PSD_COUNT_KEY("local_size", struct values, settings.lrn.size, PSD_LAYER_SIDE_MAX, false),
	{.name = NULL},
};

static const struct psd_key dropout_fields[] = {
	{.name = "dropout_ratio",
	 .type = PSD_KEY_RATIO,
	 .offset = offsetof(struct values, settings.dropout.ratio),
	 .highest = 0.999},
	{.name = NULL},
};

static const struct psd_key concat_fields[] = {AXIS("axis"), AXIS("concat_dim"), {.name = NULL}};

static const struct psd_key eltwise_fields[] = {
	CHOICE("operation", checked, operations),
	{.name = NULL},
};

static const struct psd_key batch_norm_fields[] = {
	PSD_FLAG_KEY("scale_bias", struct values, settings.affine.has_scale),
	{.name = NULL},
};

static const struct psd_key scale_fields[] = {
	PSD_FLAG_KEY("bias_term", struct values, settings.affine.has_shift),
	AXIS("axis"),
	AXIS("num_axes"),
	{.name = NULL},
};

static enum psd_status read_window(const struct psd_node *message, const struct psd_layer_spec *spec,
				   struct psd_window *window, struct psd_error *err)
{
	enum psd_status status;

	window->kernel = (struct psd_sides){0, 0};
	status = psd_caffe_read_pair(message, "kernel_size", "kernel_h", "kernel_w", 1, &window->kernel, err);
	if (!status && (!window->kernel.height || !window->kernel.width))
		status = psd_caffe_missing(message, spec, "kernel_size", err);
	if (!status)
		status = psd_caffe_read_pair(message, "stride", "stride_h", "stride_w", 1, &window->stride, err);
	return status ? status : psd_caffe_read_pair(message, "pad", "pad_h", "pad_w", 0, &window->pad, err);
}

static enum psd_status finish_conv(const struct psd_node *message, struct psd_layer_spec *spec, struct psd_error *err)
{
	struct psd_window *window = &spec->settings.conv.window;
	enum psd_status status = read_window(message, spec, window, err);

	return status ? status
		      : psd_caffe_read_pair(message, "dilation", "dilation_h", "dilation_w", 1, &window->dilation, err);
}

static enum psd_status finish_pool(const struct psd_node *message, struct psd_layer_spec *spec, struct psd_error *err)
{
	struct psd_pool_settings *pool = &spec->settings.pool;
	bool is_global = false;
	enum psd_status status = psd_caffe_read_flag(message, "global_pooling", &is_global, err);

	pool->method %= 2;
	pool->rounding %= 2;
	if (status || !is_global)
		return status ? status : read_window(message, spec, &pool->window, err);
	if (pool->method == PSD_POOL_MAX)
		return psd_error_set(err, PSD_EINVAL, message->at,
				     "layer '%.80s' is a global MAX pooling, only AVE is supported", spec->name);
	spec->kind = &psd_layer_global_pool;
	return PSD_OK;
}

/* BVLC's has no learned parameters, its three blobs are statistics; NVIDIA's learns both with scale_bias. */
static enum psd_status finish_batch_norm(const struct psd_node *message, struct psd_layer_spec *spec,
					 struct psd_error *err)
{
	(void)message, (void)err;
	spec->settings.affine.has_shift = spec->settings.affine.has_scale;
	return PSD_OK;
}

/* One of Caffe's types: its names in caffe.proto (LayerParameter's, and V1LayerParameter's or NULL), its parameter
 * message, caffe.proto's defaults. */
struct psd_caffe_type {
	const char *name, *old_name;
	const struct psd_layer_kind *kind;
	const char *message; /* NULL: it has none */
	const struct psd_key *fields;
	bool needs_message;
	const char *passed_over[PASSED_OVER_MAX + 1]; /* or read by `finish` */
	enum psd_status (*finish)(const struct psd_node *message, struct psd_layer_spec *spec, struct psd_error *err);
	union psd_layer_settings defaults;
};

#define WINDOW "kernel_size", "kernel_h", "kernel_w", "stride", "stride_h", "stride_w", "pad", "pad_h", "pad_w"

static const struct psd_caffe_type layer_types[] = {
	{"Convolution", "CONVOLUTION", &psd_layer_conv, "convolution_param", conv_fields, .needs_message = true,
	 .passed_over = {WINDOW, "dilation", "weight_filler", "bias_filler", "engine", "force_nd_im2col"},
	 .defaults.conv = {.window = PSD_WINDOW_DEFAULT, .groups = 1, .has_bias = true}, .finish = finish_conv},
	{"Pooling", "POOLING", &psd_layer_pool, "pooling_param", pool_fields, .needs_message = true,
	 .passed_over = {WINDOW, "global_pooling", "engine"}, .defaults.pool = {.window = PSD_WINDOW_DEFAULT},
	 .finish = finish_pool},
	{"LRN", "LRN", &psd_layer_lrn, "lrn_param", lrn_fields,
	 .passed_over = {"alpha", "beta", "k", "norm_region", "engine"}, .defaults.lrn = {.size = 5}},
	{"ReLU", "RELU", &psd_layer_relu, .message = NULL},
	{"Sigmoid", "SIGMOID", &psd_layer_sigmoid, .message = NULL},
	{"Dropout", "DROPOUT", &psd_layer_dropout, "dropout_param", dropout_fields, .defaults.dropout = {.ratio = 0.5}},
	{"InnerProduct", "INNER_PRODUCT", &psd_layer_inner_product, "inner_product_param", inner_product_fields,
	 .needs_message = true, .passed_over = {"transpose", "weight_filler", "bias_filler", "engine"},
	 .defaults.inner_product = {.has_bias = true}},
	{"Concat", "CONCAT", &psd_layer_concat, "concat_param", concat_fields, .needs_message = false},
	{"Eltwise", "ELTWISE", &psd_layer_add, "eltwise_param", eltwise_fields,
	 .passed_over = {"coeff", "stable_prod_grad"}},
	{"BatchNorm", NULL, &psd_layer_batch_norm, "batch_norm_param", batch_norm_fields,
	 .passed_over = {"use_global_stats", "moving_average_fraction", "eps", "scale_filler", "bias_filler", "engine"},
	 .finish = finish_batch_norm},
	{"Scale", NULL, &psd_layer_scale, "scale_param", scale_fields, .passed_over = {"filler", "bias_filler"},
	 .defaults.affine = {.has_scale = true}},
	{"SoftmaxWithLoss", "SOFTMAX_LOSS", &psd_layer_softmax_loss, .message = NULL},
	{"Softmax", "SOFTMAX", &psd_layer_softmax_loss, .message = NULL}, /* a deployed net's end stands for its loss */
};

const struct psd_caffe_type *psd_caffe_find_type(const char *type)
{
	for (size_t i = 0; i < sizeof(layer_types) / sizeof(layer_types[0]); i++)
		if (!strcmp(type, layer_types[i].name) ||
		    (layer_types[i].old_name && !strcmp(type, layer_types[i].old_name)))
			return &layer_types[i];
	return NULL;
}

/* Refuses a field that is there twice and read. */
static enum psd_status read_fields(struct values *values, const struct psd_node *message,
				   const struct psd_caffe_type *type, struct psd_error *err)
{
	const struct psd_node *field;
	enum psd_status status = PSD_OK;

	for (const struct psd_key *row = type->fields; row->name && !status; row++)
		status = psd_caffe_single(message, row->name, &field, err);
	return status ? status
		      : psd_layer_read_keys(values, message, type->message, type->passed_over, type->fields, err);
}

enum psd_status psd_caffe_read_settings(const struct psd_node *layer, const struct psd_caffe_type *type,
					struct psd_layer_spec *spec, struct psd_error *err)
{
	struct values values = {.settings = type->defaults};
	const struct psd_node *message = NULL;
	enum psd_status status = PSD_OK;

	spec->kind = type->kind;
	if (type->message)
		status = psd_caffe_single(layer, type->message, &message, err);
	if (!status && !message && type->needs_message)
		status = psd_caffe_missing(layer, spec, type->message, err);
	if (!status && message)
		status = read_fields(&values, message, type, err);
	spec->settings = values.settings;
	return status || !message || !type->finish ? status : type->finish(message, spec, err);
}
