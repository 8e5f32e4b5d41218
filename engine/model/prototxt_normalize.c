/* SSD's layer Normalize in Caffe: divides by the Euclidean norm, of a whole sample or of the channels at each position,
 * and multiplies by a learned factor. The graph has several layers for it: the values under one norm become a map,
 * whose sum of squares is its mean square times its number of values. */
#include "engine/model/prototxt_parts.h"

#include "engine/model/layer.h"

/* Adds a layer above the first input, which it replaces. */
static enum psd_status step(struct psd_caffe_draft *draft, const char *suffix, const struct psd_layer_kind *kind,
			    union psd_layer_settings settings, struct psd_error *err)
{
	return psd_caffe_add_above(draft, suffix, kind, &settings, &draft->spec->inputs[0], err);
}

static enum psd_status reshape(struct psd_caffe_draft *draft, const char *suffix, struct psd_shape shape,
			       struct psd_error *err)
{
	return step(draft, suffix, &psd_layer_reshape, (union psd_layer_settings){.shape = shape}, err);
}

/* Exchanges channels and rows, so that the channels of a position are a map, or back. */
static enum psd_status transpose(struct psd_caffe_draft *draft, const char *suffix, struct psd_error *err)
{
	return step(draft, suffix, &psd_layer_permute, (union psd_layer_settings){.permute = {{2, 1, 3}}}, err);
}

/* Divides each map by its norm. */
static enum psd_status divide(struct psd_caffe_draft *draft, double epsilon, struct psd_error *err)
{
	const unsigned maps = draft->spec->inputs[0];
	const struct psd_shape shape = psd_caffe_shape_of(draft);
	const double values = (double)shape.height * shape.width;

	PSD_TRY(step(draft, "square", &psd_layer_power, (union psd_layer_settings){.power = {2}}, err));
	PSD_TRY(psd_caffe_add_above(draft, "mean", &psd_layer_global_pool, NULL, &draft->spec->inputs[0], err));
	PSD_TRY(step(draft, "sum", &psd_layer_affine, (union psd_layer_settings){.linear = {values, epsilon}}, err));
	PSD_TRY(step(draft, "inverse", &psd_layer_power, (union psd_layer_settings){.power = {-0.5}}, err));
	return psd_caffe_add_other(draft, "unit", 0, &psd_layer_multiply, NULL, maps, draft->spec->inputs[0],
				   &draft->spec->inputs[0], err);
}

/* A shared factor scales one map that holds the whole sample. */
static enum psd_status build_factor(struct psd_caffe_draft *draft, struct psd_shape in, bool is_shared,
				    struct psd_error *err)
{
	draft->spec->settings.affine = (struct psd_affine_settings){.has_scale = true};
	if (is_shared)
		PSD_TRY(reshape(draft, "whole", (struct psd_shape){1, in.channels, in.height * in.width}, err));
	PSD_TRY(psd_caffe_build_one(draft, err));
	if (!is_shared)
		return PSD_OK;
	draft->spec->inputs[0] = draft->result;
	PSD_TRY(reshape(draft, "shape", in, err));
	draft->result = draft->spec->inputs[0];
	return PSD_OK;
}

enum psd_status psd_caffe_build_normalize(struct psd_caffe_draft *draft, struct psd_error *err)
{
	bool is_across = true, is_shared = true;
	double epsilon = 1e-10;
	unsigned n_read = 0;

	PSD_TRY(psd_caffe_read_flag(draft->message, "across_spatial", &is_across, err));
	PSD_TRY(psd_caffe_read_flag(draft->message, "channel_shared", &is_shared, err));
	PSD_TRY(psd_caffe_read_numbers(draft->message, "eps", 1e-30, 1, &epsilon, 1, &n_read, false, err));
	struct psd_shape in = psd_caffe_shape_of(draft);
	const uint32_t positions = in.height * in.width;
	PSD_TRY(reshape(draft, "maps",
			is_across ? (struct psd_shape){1, in.channels, positions}
				  : (struct psd_shape){in.channels, positions, 1},
			err));
	if (!is_across)
		PSD_TRY(transpose(draft, "places", err));
	PSD_TRY(divide(draft, epsilon, err));
	if (!is_across)
		PSD_TRY(transpose(draft, "channels", err));
	PSD_TRY(reshape(draft, "back", in, err));
	return build_factor(draft, in, is_shared, err);
}
