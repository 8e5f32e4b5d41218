/* Settings of a Caffe layer that depend on several fields of its message: windows, and choices that decide a setting
 * or the kind of the layer. */
#include "engine/model/prototxt_parts.h"

#include "engine/model/layer.h"

static enum psd_status read_window(const struct psd_node *message, const struct psd_layer_spec *spec,
				   struct psd_window *window, struct psd_error *err)
{
	window->kernel = (struct psd_sides){0, 0};
	PSD_TRY(psd_caffe_read_pair(message, "kernel_size", "kernel_h", "kernel_w", 1, &window->kernel, err));
	if (!window->kernel.height || !window->kernel.width)
		return psd_caffe_missing(message, spec, "kernel_size", err);
	PSD_TRY(psd_caffe_read_pair(message, "stride", "stride_h", "stride_w", 1, &window->stride, err));
	return psd_caffe_read_pair(message, "pad", "pad_h", "pad_w", 0, &window->pad, err);
}

enum psd_status psd_caffe_finish_conv(const struct psd_node *message, struct psd_layer_spec *spec, unsigned choice,
				      struct psd_error *err)
{
	struct psd_window *window = &spec->settings.conv.window;

	PSD_TRY(read_window(message, spec, window, err));
	(void)choice;
	return psd_caffe_read_pair(message, "dilation", "dilation_h", "dilation_w", 1, &window->dilation, err);
}

/* One group for each input channel; the field `group` is ignored. */
enum psd_status psd_caffe_finish_depthwise(const struct psd_node *message, struct psd_layer_spec *spec, unsigned choice,
					   struct psd_error *err)
{
	spec->settings.conv.groups = 0;
	return psd_caffe_finish_conv(message, spec, choice, err);
}

/* Forks of Caffe have different words for the rounding; a file may use one. */
static enum psd_status check_roundings(const struct psd_node *message, struct psd_error *err)
{
	static const char *const words[] = {"round_mode", "ceil_mode", "torch_pooling"};
	const struct psd_node *first = NULL;

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		const struct psd_node *field = psd_node_child(message, words[i]);

		if (field && first)
			return psd_error_set(err, PSD_EINVAL, field->key_at,
					     "'%s' and '%s' (line %u) both set the rounding, must be only one of them",
					     field->key, first->key, first->key_at.line);
		first = first ? first : field;
	}
	return PSD_OK;
}

enum psd_status psd_caffe_finish_pool(const struct psd_node *message, struct psd_layer_spec *spec, unsigned choice,
				      struct psd_error *err)
{
	struct psd_pool_settings *pool = &spec->settings.pool;
	bool is_global = false;

	PSD_TRY(psd_caffe_read_flag(message, "global_pooling", &is_global, err));
	(void)choice;
	PSD_TRY(check_roundings(message, err));
	pool->method %= 2;
	pool->rounding %= 2;
	if (!is_global)
		return read_window(message, spec, &pool->window, err);
	if (pool->method == PSD_POOL_MAX)
		pool->window.kernel = (struct psd_sides){0, 0};
	else
		spec->kind = &psd_layer_global_pool;
	return PSD_OK;
}

/* The settings are for the pools: the concatenation has none. */
enum psd_status psd_caffe_finish_spp(const struct psd_node *message, struct psd_layer_spec *spec, unsigned choice,
				     struct psd_error *err)
{
	(void)message, (void)err;
	spec->settings.pool.method = choice % 2 ? PSD_POOL_AVERAGE : PSD_POOL_MAX;
	return PSD_OK;
}

/* Within a channel, Caffe's LRNLayer ignores k. */
enum psd_status psd_caffe_finish_lrn(const struct psd_node *message, struct psd_layer_spec *spec, unsigned choice,
				     struct psd_error *err)
{
	struct psd_lrn_settings *lrn = &spec->settings.lrn;

	(void)message, (void)err;
	lrn->is_within_channel = choice % 2;
	if (lrn->is_within_channel)
		lrn->k = 1;
	return PSD_OK;
}

/* In BVLC's Caffe all three blobs are statistics; in NVIDIA's, scale_bias adds a scale and a shift. */
enum psd_status psd_caffe_finish_batch_norm(const struct psd_node *message, struct psd_layer_spec *spec,
					    unsigned choice, struct psd_error *err)
{
	(void)message, (void)choice, (void)err;
	spec->settings.affine.has_shift = spec->settings.affine.has_scale;
	return PSD_OK;
}

/* SegNet's fork has the field bn_mode. PSPNet's fork has frozen, which keeps scale and shift constant too, its own
 * names of fillers, and another default of epsilon. */
enum psd_status psd_caffe_finish_bn(const struct psd_node *message, struct psd_layer_spec *spec, unsigned choice,
				    struct psd_error *err)
{
	struct psd_affine_settings *affine = &spec->settings.affine;
	bool is_frozen = false;

	PSD_TRY(psd_caffe_read_flag(message, "frozen", &is_frozen, err));
	affine->is_fixed = is_frozen || choice % 2;
	for (unsigned i = 0; i < PSD_LAYER_TENSORS_MAX && is_frozen; i++) {
		spec->tensors[i].has_ratios = true;
		spec->tensors[i].rate_ratio = 0;
	}
	if (!psd_node_child(message, "eps") && (psd_node_child(message, "slope_filler") || is_frozen))
		affine->epsilon = 1e-5;
	return PSD_OK;
}

/* A second bottom is the factor (axis 0); otherwise a factor for each channel is learned (axis 1). */
enum psd_status psd_caffe_finish_scale(const struct psd_node *message, struct psd_layer_spec *spec, unsigned choice,
				       struct psd_error *err)
{
	if (choice == (spec->n_inputs < 2))
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, message ? message->at : spec->at,
			     "layer '%.80s' has 'axis' %u with %u bottoms, must be 1 with one and 0 with two",
			     spec->name, choice, spec->n_inputs);
}

/* The kind is the operation for psd_caffe_build_eltwise(); relu means the maximum. */
enum psd_status psd_caffe_finish_eltwise(const struct psd_node *message, struct psd_layer_spec *spec, unsigned choice,
					 struct psd_error *err)
{
	static const struct psd_layer_kind *const kinds[] = {&psd_layer_multiply, &psd_layer_add, &psd_layer_relu};

	(void)message, (void)err;
	spec->kind = kinds[choice % 3];
	return PSD_OK;
}
