/* Table of Caffe's layer types with the fields of their parameter messages. Fields that cannot change a result are
 * ignored; unknown fields are refused with their place. */
#include "engine/model/prototxt_parts.h"

#include <string.h>

#include "engine/model/layer.h"

enum { IGNORED_MAX = 15 };

/* Values of the fields of a message. */
struct values {
	union psd_layer_settings settings;
	unsigned choice;  /* argument of `finish` */
	unsigned checked; /* not used: only one value is allowed, or all mean the same; so are the next two */
	bool is_checked;
	double number;
};

static const struct psd_key no_field = {.name = NULL};

/* In the graph, axis 1 is the channels. */
#define AXIS(key)			 PSD_COUNT_KEY(key, struct values, checked, 1, false)
#define CHOICE(key, member, choices)	 PSD_CHOICE_KEY(key, struct values, member, choices)
#define NUMBER(key, member, least, most) PSD_NUMBER_KEY(key, struct values, settings.member, least, most)
#define FLAG(key, member)		 PSD_FLAG_KEY(key, struct values, settings.member)

/* Names and numbers of caffe.proto: the position of a number modulo their count is that of its name. */
static const char *const methods[] = {"MAX", "AVE", "0", "1", NULL};
static const char *const roundings[] = {"CEIL", "FLOOR", "0", "1", NULL};
static const char *const ceilings[] = {[PSD_POOL_UP] = "true", [PSD_POOL_DOWN] = "false", NULL};
static const char *const floors[] = {[PSD_POOL_UP] = "false", [PSD_POOL_DOWN] = "true", NULL};
static const char *const operations[] = {"PROD", "SUM", "MAX", "0", "1", "2", NULL};
static const char *const bn_modes[] = {"LEARN", "INFERENCE", "0", "1", NULL};
static const char *const regions[] = {"ACROSS_CHANNELS", "WITHIN_CHANNEL", "0", "1", NULL};
/* All labels count, so that these mean the same. */
static const char *const normalizations[] = {"VALID", "FULL", "BATCH_SIZE", "0", "1", "2", NULL};
static const char *const only_true[] = {"true", NULL};
static const char *const only_training[] = {"TRAIN", "0", NULL};

static const struct psd_key conv_fields[] = {
	PSD_COUNT_KEY("num_output", struct values, settings.conv.outputs, PSD_LAYER_CHANNELS_MAX, true),
	PSD_COUNT_KEY("group", struct values, settings.conv.groups, PSD_LAYER_CHANNELS_MAX, false),
	FLAG("bias_term", conv.has_bias),
	AXIS("axis"),
	{.name = NULL},
};

static const struct psd_key inner_product_fields[] = {
	PSD_COUNT_KEY("num_output", struct values, settings.inner_product.outputs, PSD_LAYER_CHANNELS_MAX, true),
	FLAG("bias_term", inner_product.has_bias),
	AXIS("axis"),
	{.name = NULL},
};

static const struct psd_key pool_fields[] = {
	CHOICE("pool", settings.pool.method, methods),
	CHOICE("round_mode", settings.pool.rounding, roundings),
	CHOICE("ceil_mode", settings.pool.rounding, ceilings),
	CHOICE("torch_pooling", settings.pool.rounding, floors),
	{.name = NULL},
};

static const struct psd_key spp_fields[] = {CHOICE("pool", choice, methods), {.name = NULL}};

static const struct psd_key lrn_fields[] = {
	PSD_COUNT_KEY("local_size", struct values, settings.lrn.size, PSD_LAYER_SIDE_MAX, false),
	CHOICE("norm_region", choice, regions),
	NUMBER("alpha", lrn.alpha, 0, 1e6),
	NUMBER("beta", lrn.beta, 0, 1e6),
	NUMBER("k", lrn.k, 0, 1e6),
	{.name = NULL},
};

static const struct psd_key relu_fields[] = {NUMBER("negative_slope", slope.slope, 0, 1e6), {.name = NULL}};
static const struct psd_key elu_fields[] = {NUMBER("alpha", slope.slope, 0, 1e6), {.name = NULL}};
static const struct psd_key prelu_fields[] = {FLAG("channel_shared", prelu.is_shared), {.name = NULL}};
static const struct psd_key clip_fields[] = {NUMBER("threshold", linear.factor, 1e-6, 1e6), {.name = NULL}};
static const struct psd_key shuffle_fields[] = {
	PSD_COUNT_KEY("group", struct values, settings.shuffle.groups, PSD_LAYER_CHANNELS_MAX, true),
	{.name = NULL},
};

/* Padding and cropping are not supported. */
static const struct psd_key interp_fields[] = {
	PSD_NUMBER_KEY("pad_beg", struct values, number, 0, 0),
	PSD_NUMBER_KEY("pad_end", struct values, number, 0, 0),
	{.name = NULL},
};

static const struct psd_key dropout_fields[] = {
	{.name = "dropout_ratio",
	 .type = PSD_KEY_RATIO,
	 .offset = offsetof(struct values, settings.dropout.ratio),
	 .highest = 0.999},
	CHOICE("scale_train", checked, only_true),
	{.name = NULL},
};

static const struct psd_key axis_fields[] = {AXIS("axis"), {.name = NULL}};
static const struct psd_key concat_fields[] = {AXIS("axis"), AXIS("concat_dim"), {.name = NULL}};
static const struct psd_key slice_fields[] = {AXIS("axis"), AXIS("slice_dim"), {.name = NULL}};
static const struct psd_key eltwise_fields[] = {CHOICE("operation", choice, operations), {.name = NULL}};

static const struct psd_key batch_norm_fields[] = {
	FLAG("scale_bias", affine.has_scale),
	FLAG("use_global_stats", affine.is_fixed),
	NUMBER("moving_average_fraction", affine.kept_ratio, 0, 0.999999),
	NUMBER("eps", affine.epsilon, 1e-12, 1),
	{.name = NULL},
};

static const struct psd_key bn_fields[] = {
	CHOICE("bn_mode", choice, bn_modes),
	NUMBER("momentum", affine.kept_ratio, 0, 0.999999),
	NUMBER("eps", affine.epsilon, 1e-12, 1),
	{.name = NULL},
};

static const struct psd_key scale_fields[] = {
	FLAG("bias_term", affine.has_shift),
	{.name = "axis",
	 .type = PSD_KEY_UNSIGNED,
	 .offset = offsetof(struct values, choice),
	 .highest = 1}, /* 0 if there is a second bottom */
	AXIS("num_axes"),
	{.name = NULL},
};

static const struct psd_key bias_fields[] = {AXIS("axis"), AXIS("num_axes"), {.name = NULL}};
static const struct psd_key loss_fields[] = {
	CHOICE("normalization", checked, normalizations),
	PSD_FLAG_KEY("normalize", struct values, is_checked), /* divides by samples, or by positions too */
	{.name = NULL},
};

/* A layer type. Names and defaults are those of caffe.proto; old_name: in V1LayerParameter, or NULL. */
struct psd_caffe_type {
	const char *name, *old_name;
	const struct psd_layer_kind *kind;
	const char *message; /* name of the parameter message; NULL: none */
	const struct psd_key *fields;
	bool needs_message;
	unsigned first_blob;  /* number of statistics before the tensors */
	bool has_blobs_after; /* there are statistics after the tensors */
	const char *fillers[PSD_LAYER_TENSORS_MAX],
		*other_fillers[PSD_LAYER_TENSORS_MAX]; /* names, and a fork's names */
	const char *also;			       /* name of a second message, with an axis */
	const char *ignored[IGNORED_MAX + 1];	       /* fields that are ignored, or that `finish` and `build` read */
	psd_caffe_finish_fn *finish;		       /* NULL: the fields are enough */
	psd_caffe_build_fn *build;		       /* NULL: one layer of that kind */
	unsigned n_bottoms;			       /* 0: the kind decides */
	bool takes_5d;				       /* bottoms may have five dimensions */
	union psd_layer_settings defaults;
	unsigned default_choice;
};

#define WINDOW	"kernel_size", "kernel_h", "kernel_w", "stride", "stride_h", "stride_w", "pad", "pad_h", "pad_w"
#define FILLERS "weight_filler", "bias_filler"
#define CONVOLUTION(kind)                                                                                              \
	&psd_layer_##kind, "convolution_param", conv_fields,                                                           \
		.needs_message = true, .fillers = {FILLERS},                                                           \
		.ignored = {WINDOW, FILLERS, "dilation", "engine", "force_nd_im2col"},                                 \
		.defaults.conv = {.window = PSD_WINDOW_DEFAULT, .groups = 1, .has_bias = true}

static const struct psd_caffe_type layer_types[] = {
	{"Convolution", "CONVOLUTION", CONVOLUTION(conv), .finish = psd_caffe_finish_conv},
	{"ConvolutionDepthwise", NULL, CONVOLUTION(conv), .finish = psd_caffe_finish_depthwise},
	{"DepthwiseConvolution", NULL, CONVOLUTION(conv), .finish = psd_caffe_finish_depthwise},
	{"Deconvolution", "DECONVOLUTION", CONVOLUTION(deconv), .finish = psd_caffe_finish_conv},
	{"Pooling", "POOLING", &psd_layer_pool, "pooling_param", pool_fields, .needs_message = true,
	 .ignored = {WINDOW, "global_pooling", "engine"}, .defaults.pool = {.window = PSD_WINDOW_DEFAULT},
	 .finish = psd_caffe_finish_pool},
	{"SPP", NULL, &psd_layer_concat, "spp_param", spp_fields, .needs_message = true,
	 .ignored = {"pyramid_height", "engine"}, .finish = psd_caffe_finish_spp, .build = psd_caffe_build_pyramid,
	 .n_bottoms = 1},
	{"LRN", "LRN", &psd_layer_lrn, "lrn_param", lrn_fields, .ignored = {"engine"}, .finish = psd_caffe_finish_lrn,
	 .defaults.lrn = {.size = 5, .alpha = 1, .beta = 0.75, .k = 1}},
	{"ReLU", "RELU", &psd_layer_relu, "relu_param", relu_fields, .ignored = {"engine"}},
	{"ReLU6", NULL, &psd_layer_clip, "relu6_param", clip_fields, .ignored = {"engine"},
	 .defaults.linear = {.factor = 6}},
	{"Clip", NULL, &psd_layer_clip, "clip_param", .ignored = {"min", "max"}, .needs_message = true,
	 .build = psd_caffe_build_clip, .n_bottoms = 1},
	{"Swish", NULL, &psd_layer_multiply, "swish_param", .ignored = {"beta", "engine"},
	 .build = psd_caffe_build_swish, .n_bottoms = 1},
	{"PReLU", NULL, &psd_layer_prelu, "prelu_param", prelu_fields, .fillers = {"filler"}, .ignored = {"filler"}},
	{"ELU", NULL, &psd_layer_elu, "elu_param", elu_fields, .defaults.slope = {.slope = 1}},
	{"Sigmoid", "SIGMOID", &psd_layer_sigmoid, "sigmoid_param", .ignored = {"engine"}},
	{"TanH", "TANH", &psd_layer_tanh, "tanh_param", .ignored = {"engine"}},
	{"BNLL", "BNLL", &psd_layer_softplus, .message = NULL},
	{"AbsVal", "ABSVAL", &psd_layer_abs, .message = NULL},
	{"Power", "POWER", &psd_layer_power, "power_param", .ignored = {"scale", "shift", "power"},
	 .build = psd_caffe_build_power, .n_bottoms = 1},
	{"Exp", "EXP", &psd_layer_exp, "exp_param", .ignored = {"base", "scale", "shift"}, .build = psd_caffe_build_exp,
	 .n_bottoms = 1},
	{"Log", NULL, &psd_layer_log, "log_param", .ignored = {"base", "scale", "shift"}, .build = psd_caffe_build_log,
	 .n_bottoms = 1},
	{"HSigmoid", NULL, &psd_layer_affine, .build = psd_caffe_build_hard_sigmoid, .n_bottoms = 1},
	{"HSwish", NULL, &psd_layer_multiply, .build = psd_caffe_build_hard_swish, .n_bottoms = 1},
	{"HardSwish", NULL, &psd_layer_multiply, .build = psd_caffe_build_hard_swish, .n_bottoms = 1},
	{"Mish", NULL, &psd_layer_multiply, .build = psd_caffe_build_mish, .n_bottoms = 1},
	{"Dropout", "DROPOUT", &psd_layer_dropout, "dropout_param", dropout_fields, .defaults.dropout = {.ratio = 0.5}},
	{"InnerProduct", "INNER_PRODUCT", &psd_layer_inner_product, "inner_product_param", inner_product_fields,
	 .needs_message = true, .fillers = {FILLERS}, .ignored = {FILLERS, "transpose", "engine"},
	 .defaults.inner_product = {.has_bias = true}},
	{"Concat", "CONCAT", &psd_layer_concat, "concat_param", concat_fields, .needs_message = false},
	{"Slice", "SLICE", &psd_layer_slice, "slice_param", slice_fields, .ignored = {"slice_point"},
	 .build = psd_caffe_build_slices, .n_bottoms = 1},
	{"Split", "SPLIT", NULL, .build = psd_caffe_build_split, .n_bottoms = 1, .takes_5d = true},
	{"Eltwise", "ELTWISE", &psd_layer_add, "eltwise_param", eltwise_fields,
	 .ignored = {"coeff", "stable_prod_grad"}, .finish = psd_caffe_finish_eltwise, .build = psd_caffe_build_eltwise,
	 .default_choice = 1},
	{"Axpy", NULL, &psd_layer_add, .build = psd_caffe_build_axpy, .n_bottoms = 3},
	{"BatchNorm", NULL, &psd_layer_batch_norm, "batch_norm_param", batch_norm_fields, .first_blob = 3,
	 .fillers = {"scale_filler", "bias_filler"}, .ignored = {"scale_filler", "bias_filler", "engine"},
	 .finish = psd_caffe_finish_batch_norm,
	 .defaults.affine = {.epsilon = 1e-5, .kept_ratio = 0.999, .is_average = true}},
	{"BN", NULL, &psd_layer_batch_norm, "bn_param", bn_fields, .fillers = {"slope_filler", "bias_filler"},
	 .other_fillers = {"scale_filler", "shift_filler"},
	 .ignored = {"slope_filler", "bias_filler", "scale_filler", "shift_filler", "frozen", "engine"},
	 .has_blobs_after = true, .finish = psd_caffe_finish_bn,
	 .defaults.affine = {.has_scale = true, .has_shift = true, .epsilon = 1e-9, .kept_ratio = 0.9}},
	{"Scale", NULL, &psd_layer_scale, "scale_param", scale_fields, .fillers = {"filler", "bias_filler"},
	 .ignored = {"filler", "bias_filler"}, .finish = psd_caffe_finish_scale, .build = psd_caffe_build_scale,
	 .defaults.affine = {.has_scale = true}, .default_choice = 1},
	{"Bias", NULL, &psd_layer_scale, "bias_param", bias_fields, .fillers = {"filler"}, .ignored = {"filler"},
	 .defaults.affine = {.has_shift = true}},
	{"Normalize", NULL, &psd_layer_scale, "norm_param", .fillers = {"scale_filler"},
	 .ignored = {"across_spatial", "channel_shared", "eps", "scale_filler"}, .build = psd_caffe_build_normalize,
	 .n_bottoms = 1},
	{"Flatten", "FLATTEN", &psd_layer_reshape, "flatten_param", .ignored = {"axis", "end_axis"},
	 .build = psd_caffe_build_flatten, .n_bottoms = 1, .takes_5d = true},
	{"Reshape", NULL, &psd_layer_reshape, "reshape_param", .ignored = {"shape", "axis", "num_axes"},
	 .needs_message = true, .build = psd_caffe_build_reshape, .n_bottoms = 1, .takes_5d = true},
	{"Tile", NULL, &psd_layer_concat, "tile_param", .ignored = {"axis", "tiles"}, .needs_message = true,
	 .build = psd_caffe_build_tile, .n_bottoms = 1},
	{"Reduction", NULL, &psd_layer_global_pool, "reduction_param", .ignored = {"axis", "operation", "coeff"},
	 .needs_message = true, .build = psd_caffe_build_reduction, .n_bottoms = 1},
	{"Permute", NULL, &psd_layer_permute, "permute_param", .ignored = {"order"}, .needs_message = true,
	 .build = psd_caffe_build_permute, .n_bottoms = 1, .takes_5d = true},
	{"Interp", NULL, &psd_layer_resize, "interp_param", interp_fields, .needs_message = true,
	 .ignored = {"height", "width", "zoom_factor", "shrink_factor"}, .build = psd_caffe_build_interp,
	 .n_bottoms = 1},
	{"ShuffleChannel", NULL, &psd_layer_shuffle, "shuffle_channel_param", shuffle_fields, .needs_message = true},
	{"SoftmaxWithLoss", "SOFTMAX_LOSS", &psd_layer_softmax_loss, "loss_param", loss_fields, .also = "softmax_param",
	 .ignored = {"ignore_label"}, .build = psd_caffe_build_loss, .defaults.loss = {.weight = 1}},
	{"Softmax", "SOFTMAX", &psd_layer_softmax, .also = "softmax_param"},
};

const struct psd_caffe_type *psd_caffe_find_type(const char *type)
{
	for (size_t i = 0; i < sizeof(layer_types) / sizeof(layer_types[0]); i++)
		if (!strcmp(type, layer_types[i].name) ||
		    (layer_types[i].old_name && !strcmp(type, layer_types[i].old_name)))
			return &layer_types[i];
	return NULL;
}

bool psd_caffe_is_loss(const struct psd_caffe_type *type)
{
	return type->kind && type->kind->is_loss;
}

/* Reads the fields of a message into values. PSD_EINVAL if one of them occurs twice. */
static enum psd_status read_message(struct values *values, const struct psd_node *layer, const char *name,
				    const struct psd_key *fields, const char *const ignored[],
				    const struct psd_node **message, struct psd_error *err)
{
	const struct psd_node *field;

	PSD_TRY(name ? psd_caffe_single(layer, name, message, err) : PSD_OK);
	for (const struct psd_key *row = fields; row && row->name && *message; row++)
		PSD_TRY(psd_caffe_single(*message, row->name, &field, err));
	if (!*message)
		return PSD_OK;
	return psd_layer_read_keys(values, *message, name, ignored, fields ? fields : &no_field, err);
}

/* Checks the layer's own fields, outside of its message. */
static enum psd_status check_layer(const struct psd_node *layer, const struct psd_caffe_type *type,
				   struct psd_layer_spec *spec, struct psd_error *err)
{
	const char *const known[] = {"name",
				     "type",
				     "bottom",
				     "top",
				     "include",
				     "exclude",
				     "phase",
				     "param",
				     "blobs_lr",
				     "weight_decay",
				     "engine",
				     "loss_weight",
				     "propagate_down",
				     type->message ? type->message : type->also,
				     type->message ? type->also : NULL,
				     NULL};
	bool has_weight = false;

	PSD_TRY(psd_node_check_keys(layer, "layer", known, err));
	for (const struct psd_node *field = layer->first; field; field = field->next) {
		unsigned choice;

		if (!strcmp(field->key, "loss_weight")) { /* a weight for each top, the first of which is the loss */
			const bool is_of_loss = psd_caffe_is_loss(type) && !has_weight;
			double weight;

			PSD_TRY(psd_node_number(field, 0, is_of_loss ? 1e6 : 0, &weight, err));
			if (is_of_loss)
				spec->settings.loss.weight = weight;
			has_weight = true;
		} else if (!strcmp(field->key, "propagate_down"))
			PSD_TRY(psd_node_choice(field, only_true, &choice, err));
		else if (!strcmp(field->key, "phase"))
			PSD_TRY(psd_node_choice(field, only_training, &choice, err));
	}
	return PSD_OK;
}

enum psd_status psd_caffe_read_settings(const struct psd_node *layer, const struct psd_caffe_type *type,
					struct psd_layer_spec *spec, struct psd_error *err)
{
	static const char *const engine[] = {"engine", NULL};
	struct values values = {.settings = type->defaults, .choice = type->default_choice};
	const struct psd_node *message = NULL, *also = NULL;

	PSD_TRY(read_message(&values, layer, type->message, type->fields, type->ignored, &message, err));
	if (!message && type->needs_message)
		return psd_caffe_missing(layer, spec, type->message, err);
	PSD_TRY(read_message(&values, layer, type->also, axis_fields, engine, &also, err));
	spec->kind = type->kind;
	spec->settings = values.settings;
	PSD_TRY(check_layer(layer, type, spec, err));
	for (unsigned i = 0; i < PSD_LAYER_TENSORS_MAX && type->fillers[i]; i++)
		PSD_TRY(psd_caffe_read_filler(message, type->fillers[i], &spec->tensors[i], err));
	for (unsigned i = 0; i < PSD_LAYER_TENSORS_MAX && type->other_fillers[i]; i++)
		PSD_TRY(psd_caffe_read_filler(message, type->other_fillers[i], &spec->tensors[i], err));
	PSD_TRY(psd_caffe_read_ratios(layer, type->first_blob, type->has_blobs_after, spec->tensors, err));
	return type->finish ? type->finish(message, spec, values.choice, err) : PSD_OK;
}

enum psd_status psd_caffe_build(const struct psd_node *layer, const struct psd_caffe_type *type,
				struct psd_caffe_draft *draft, struct psd_error *err)
{
	const bool makes_one = type->build != psd_caffe_build_split && type->build != psd_caffe_build_slices;

	const bool has_mask = draft->allows_other && draft->n_tops == 2 && type->kind == &psd_layer_pool;

	if (draft->n_tops > 1 && makes_one && !has_mask && !psd_caffe_is_loss(type))
		return psd_error_set(err, PSD_EINVAL, draft->spec->at, "layer '%.80s' (%s) has %u tops, must be 1",
				     draft->spec->name, type->name, draft->n_tops);
	for (unsigned i = 0; i < draft->spec->n_inputs && !type->takes_5d; i++)
		if (psd_caffe_is_5d(draft->blobs_5d, draft->spec->inputs[i]))
			return psd_error_set(err, PSD_EINVAL, draft->spec->at,
					     "layer '%.80s' (%s) reads a blob of 5 dimensions, which only Reshape, "
					     "Permute, Flatten and Split can",
					     draft->spec->name, type->name);
	if (type->n_bottoms && draft->spec->n_inputs != type->n_bottoms)
		return psd_error_set(err, PSD_EINVAL, draft->spec->at, "layer '%.80s' has %u bottoms, must be %u",
				     draft->spec->name, draft->spec->n_inputs, type->n_bottoms);
	if (type->message)
		draft->message = psd_node_child(layer, type->message);
	return type->build ? type->build(draft, err) : psd_caffe_build_one(draft, err);
}
