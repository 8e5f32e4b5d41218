/* Caffe layers that only a prediction needs: shape and FLOPs of types that psd-run cannot compute. Sources: caffe.proto
 * and the layers of BVLC's Caffe, SSD (PriorBox and the like), py-faster-rcnn (regions) and SegNet (Upsample). */
#include <string.h>

#include "engine/base/saturate.h"
#include "engine/model/layer.h"
#include "engine/model/prototxt_parts.h"

/* A layer under conversion: `in` are the shapes of its bottoms without labels. */
struct other {
	const struct psd_node *message; /* NULL: absent */
	const struct psd_layer_spec *spec;
	struct psd_shape in[2]; /* shapes of the first two bottoms; all 0: absent */
	struct psd_other_settings *settings;
	struct psd_error *err;
};

typedef enum psd_status other_fn(struct other *other);

static enum psd_status read_count(const struct other *other, const char *key, uint32_t *count)
{
	return psd_caffe_read_count(other->message, key, 0, PSD_LAYER_SIDE_MAX, count, other->err);
}

static enum psd_status refuse(const struct other *other, const char *needs)
{
	return psd_error_set(other->err, PSD_EINVAL, other->spec->at, "layer '%.80s' needs %s", other->spec->name,
			     needs);
}

/* The first bottom from `axis` on as large as the second. */
static enum psd_status crop(struct other *other)
{
	struct psd_shape *shape = &other->settings->shape;
	uint32_t axis = 2;

	if (!other->in[1].channels)
		return refuse(other, "two bottoms");
	PSD_TRY(read_count(other, "axis", &axis));
	shape->channels = axis <= 1 ? other->in[1].channels : other->in[0].channels;
	shape->height = axis <= 2 ? other->in[1].height : other->in[0].height;
	shape->width = axis <= 3 ? other->in[1].width : other->in[0].width;
	if (shape->channels > other->in[0].channels || shape->height > other->in[0].height ||
	    shape->width > other->in[0].width)
		return refuse(other, "a first bottom that is as large as the second");
	return PSD_OK;
}

/* Four sides and four variances of each prior at each position. Ratios count twice if they are flipped, ratio 1 has one
 * more prior for a largest size. */
static enum psd_status prior_box(struct other *other)
{
	const unsigned n_least = psd_caffe_count_fields(other->message, "min_size"),
		       n_most = psd_caffe_count_fields(other->message, "max_size");
	const unsigned n_ratios = psd_caffe_count_fields(other->message, "aspect_ratio");
	bool flips = true;

	PSD_TRY(psd_caffe_read_flag(other->message, "flip", &flips, other->err));
	if (!n_least)
		return refuse(other, "prior_box_param { min_size }");
	uint64_t priors = (uint64_t)n_least * (1 + (flips ? 2 : 1) * (uint64_t)n_ratios) + n_most;
	priors *= 4 * (uint64_t)other->in[0].height * other->in[0].width;
	if (priors > PSD_LAYER_CHANNELS_MAX)
		return refuse(other, "fewer priors");
	other->settings->shape = (struct psd_shape){(uint32_t)priors, 2, 1};
	return PSD_OK;
}

static enum psd_status regions(struct other *other)
{
	uint32_t height = 0, width = 0, side = 0, channels = other->in[0].channels;

	PSD_TRY(read_count(other, "pooled_h", &height));
	PSD_TRY(read_count(other, "pooled_w", &width));
	PSD_TRY(read_count(other, "group_size", &side));
	PSD_TRY(psd_caffe_read_count(other->message, "output_dim", 1, PSD_LAYER_CHANNELS_MAX, &channels, other->err));
	if (!(height && width) && !side)
		return refuse(other, "the sizes of what it pools to");
	other->settings->shape = (struct psd_shape){channels, height ? height : side, width ? width : side};
	other->settings->forward_flops = psd_shape_elements(other->in[0]);
	return PSD_OK;
}

static enum psd_status upsample(struct other *other)
{
	struct psd_shape *shape = &other->settings->shape;
	uint32_t scale = 2, height = 0, width = 0;

	PSD_TRY(read_count(other, "scale", &scale));
	PSD_TRY(read_count(other, "upsample_h", &height));
	PSD_TRY(read_count(other, "upsample_w", &width));
	PSD_TRY(read_count(other, "unpool_h", &height));
	PSD_TRY(read_count(other, "unpool_w", &width));
	PSD_TRY(read_count(other, "unpool_size", &height));
	*shape = other->in[0];
	shape->height = height							       ? height
			: psd_saturated_mul(shape->height, scale) > PSD_LAYER_SIDE_MAX ? 0
										       : shape->height * scale;
	shape->width = width							     ? width
		       : height							     ? height
		       : psd_saturated_mul(shape->width, scale) > PSD_LAYER_SIDE_MAX ? 0
										     : shape->width * scale;
	return shape->height && shape->width ? PSD_OK : refuse(other, "a smaller scale");
}

static enum psd_status same(struct other *other)
{
	other->settings->shape = other->in[0];
	other->settings->forward_flops = psd_saturated_mul(4, psd_shape_elements(other->in[0]));
	return PSD_OK;
}

/* A number; a few operations for each value that is compared. */
static enum psd_status loss(struct other *other)
{
	other->settings->shape = (struct psd_shape){1, 1, 1};
	other->settings->forward_flops = psd_saturated_mul(4, psd_shape_elements(other->in[0]));
	return PSD_OK;
}

static enum psd_status embed(struct other *other)
{
	uint32_t rows = 0, outputs = 0;
	bool has_bias = true;
	const uint64_t positions = psd_shape_elements(other->in[0]);

	PSD_TRY(psd_caffe_read_count(other->message, "input_dim", 1, PSD_LAYER_CHANNELS_MAX, &rows, other->err));
	PSD_TRY(psd_caffe_read_count(other->message, "num_output", 1, PSD_LAYER_CHANNELS_MAX, &outputs, other->err));
	PSD_TRY(psd_caffe_read_flag(other->message, "bias_term", &has_bias, other->err));
	if (!rows || !outputs || (uint64_t)rows * outputs > UINT32_MAX || positions > PSD_LAYER_SIDE_MAX)
		return refuse(other, "embed_param { input_dim, num_output }");
	other->settings->shape = (struct psd_shape){outputs, (uint32_t)positions, 1};
	other->settings->parameters[0] = (uint64_t)rows * outputs;
	other->settings->parameters[1] = has_bias ? outputs : 0;
	other->settings->read_values = psd_saturated_mul(positions, outputs);
	return PSD_OK;
}

/* Rows of seven values for the boxes that are kept. */
static enum psd_status detections(struct other *other)
{
	uint32_t kept = 200;

	PSD_TRY(read_count(other, "keep_top_k", &kept));
	other->settings->shape = (struct psd_shape){7, kept ? kept : 1, 1};
	other->settings->forward_flops = psd_shape_elements(other->in[0]);
	return PSD_OK;
}

static const struct other_type {
	const char *name, *message;
	other_fn *infer;
	bool is_loss; /* bottoms may be labels */
} types[] = {
	{"Crop", "crop_param", crop, false},
	{"PriorBox", "prior_box_param", prior_box, false},
	{"ROIPooling", "roi_pooling_param", regions, false},
	{"PSROIPooling", "psroi_pooling_param", regions, false},
	{"Upsample", "upsample_param", upsample, false},
	{"Unpooling", "unpooling_param", upsample, false},
	{"MVN", "mvn_param", same, false},
	{"Embed", "embed_param", embed, false},
	{"DetectionOutput", "detection_output_param", detections, true},
	{"SigmoidCrossEntropyLoss", NULL, loss, true},
	{"SIGMOID_CROSS_ENTROPY_LOSS", NULL, loss, true},
	{"EuclideanLoss", NULL, loss, true},
	{"EUCLIDEAN_LOSS", NULL, loss, true},
	{"HingeLoss", NULL, loss, true},
	{"HINGE_LOSS", NULL, loss, true},
	{"SmoothL1Loss", NULL, loss, true},
	{"ContrastiveLoss", NULL, loss, true},
	{"CONTRASTIVE_LOSS", NULL, loss, true},
	{"InfogainLoss", NULL, loss, true},
	{"MultinomialLogisticLoss", NULL, loss, true},
	{"MULTINOMIAL_LOGISTIC_LOSS", NULL, loss, true},
	{"MultiBoxLoss", NULL, loss, true},
	{"CenterLoss", NULL, loss, true},
};

static const struct other_type *find(const char *type)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(type, types[i].name))
			return &types[i];
	return NULL;
}

bool psd_caffe_is_other(const char *type, bool *takes_labels)
{
	const struct other_type *found = find(type);

	*takes_labels = found && found->is_loss;
	return found;
}

enum psd_status psd_caffe_build_other(const struct psd_node *layer, const char *type, struct psd_caffe_draft *draft,
				      struct psd_error *err)
{
	const struct other_type *found = find(type);
	struct psd_layer_spec *spec = draft->spec;
	struct other other = {.spec = spec, .settings = &spec->settings.other, .err = err};

	spec->kind = &psd_layer_other;
	spec->settings = psd_layer_other.defaults;
	if (found->message)
		other.message = psd_node_child(layer, found->message);
	for (unsigned i = 0; i < 2 && i < spec->n_inputs; i++)
		other.in[i] = draft->build->graph.layers[spec->inputs[i]].shape;
	if (!spec->n_inputs)
		return refuse(&other, "a bottom");
	PSD_TRY(found->infer(&other));
	PSD_TRY(psd_graph_build_add(draft->build, spec, err));
	draft->result = draft->build->graph.n_layers - 1;
	return PSD_OK;
}

/* ---- fields of forks ---- */

/* Fields of NVIDIA's and Intel's forks for arithmetic, algorithms and messages of a run. */
static const char *const harmless[] = {"forward_type",
				       "backward_type",
				       "forward_math",
				       "backward_math",
				       "cudnn_math_override",
				       "cudnn_convolution_algo_seeker",
				       "conv_algos_override",
				       "default_forward_type",
				       "default_backward_type",
				       "default_forward_math",
				       "default_backward_math",
				       "default_cudnn_math_override",
				       "default_conv_algos_override",
				       "global_grad_scale",
				       "global_grad_scale_adaptive",
				       "reduce_buckets",
				       "compile_net_state",
				       "bn_stats_batch_size",
				       "quantize",
				       "quantization_param",
				       "profile_info",
				       "layer_wise_reduce",
				       "threads",
				       "parser_threads",
				       "cache",
				       NULL};

static bool is_harmless(const char *key)
{
	for (const char *const *name = harmless; *name; name++)
		if (!strcmp(key, *name))
			return true;
	return false;
}

struct drop {
	struct psd_arena *arena;
	unsigned n;
	const char *first;
};

/* A copy without harmless fields; NULL: out of memory. */
static struct psd_node *copy(struct drop *drop, const struct psd_node *node)
{
	struct psd_node *made = psd_arena_take(drop->arena, sizeof(*made)), *last = NULL;

	if (!made)
		return NULL;
	*made = *node;
	made->next = NULL;
	if (node->kind == PSD_NODE_SCALAR)
		return made;
	made->first = NULL;
	made->n_children = 0;
	for (const struct psd_node *child = node->first; child; child = child->next) {
		struct psd_node *twin;

		if (child->key && is_harmless(child->key)) {
			drop->first = drop->n++ ? drop->first : child->key;
			continue;
		}
		twin = copy(drop, child);
		if (!twin)
			return NULL;
		psd_node_hang(made, &last, twin);
	}
	return made;
}

enum psd_status psd_caffe_drop_harmless(const struct psd_node **root, struct psd_arena *arena, struct psd_text *remarks,
					struct psd_error *err)
{
	struct drop drop = {.arena = arena};
	const struct psd_node *kept = copy(&drop, *root);

	if (!kept)
		return psd_out_of_memory(err);
	*root = kept;
	if (drop.n)
		psd_text_add(remarks, "ignored: %u fields that change neither shapes nor work, first %s\n", drop.n,
			     drop.first);
	return PSD_OK;
}
