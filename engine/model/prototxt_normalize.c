/* Caffe's layer of SSD that divides by the Euclidean norm, of a whole sample or of the channels at each place, and
 * multiplies by a learned factor. The graph has it in steps: what is divided alike becomes a map of its own, whose sum
 * of squares is its mean times its places. */
#include "engine/model/prototxt_parts.h"

#include "engine/model/layer.h"

/* One layer more above the first input, which it becomes. */
static enum psd_status step(struct psd_caffe_part *part, const char *what, const struct psd_layer_kind *kind,
			    union psd_layer_settings settings, struct psd_error *err)
{
	return psd_caffe_add_other(part, what, 0, kind, &settings, part->spec->inputs[0], 0, &part->spec->inputs[0],
				   err);
}

static enum psd_status reshape(struct psd_caffe_part *part, const char *what, struct psd_shape shape,
			       struct psd_error *err)
{
	return step(part, what, &psd_layer_reshape, (union psd_layer_settings){.shape = shape}, err);
}

/* Places first: the channels of each are a map. Its own inverse. */
static enum psd_status turn(struct psd_caffe_part *part, const char *what, struct psd_error *err)
{
	return step(part, what, &psd_layer_permute, (union psd_layer_settings){.permute = {{2, 1, 3}}}, err);
}

/* Each map by its norm. */
static enum psd_status divide(struct psd_caffe_part *part, double epsilon, struct psd_error *err)
{
	const unsigned maps = part->spec->inputs[0];
	const struct psd_shape shape = psd_caffe_shape_of(part);
	const double places = (double)shape.height * shape.width;
	const union psd_layer_settings none = {.slope = {0}};
	enum psd_status status = step(part, "square", &psd_layer_power, (union psd_layer_settings){.power = {2}}, err);

	if (!status)
		status = step(part, "mean", &psd_layer_global_pool, none, err);
	if (!status)
		status = step(part, "sum", &psd_layer_linear, (union psd_layer_settings){.linear = {places, epsilon}},
			      err);
	if (!status)
		status = step(part, "inverse", &psd_layer_power, (union psd_layer_settings){.power = {-0.5}}, err);
	return status ? status
		      : psd_caffe_add_other(part, "unit", 0, &psd_layer_multiply, &none, maps, part->spec->inputs[0],
					    &part->spec->inputs[0], err);
}

/* A shared factor scales one map that holds the whole sample. */
static enum psd_status build_factor(struct psd_caffe_part *part, struct psd_shape in, bool is_shared,
				    struct psd_error *err)
{
	enum psd_status status = PSD_OK;

	part->spec->settings.affine = (struct psd_affine_settings){.has_scale = true};
	if (is_shared)
		status = reshape(part, "whole", (struct psd_shape){1, in.channels, in.height * in.width}, err);
	if (!status)
		status = psd_caffe_build_one(part, err);
	if (status || !is_shared)
		return status;
	part->spec->inputs[0] = part->result;
	status = reshape(part, "shape", in, err);
	part->result = part->spec->inputs[0];
	return status;
}

enum psd_status psd_caffe_build_normalize(struct psd_caffe_part *part, struct psd_error *err)
{
	bool is_across = true, is_shared = true;
	double epsilon = 1e-10;
	unsigned n_given = 0;
	struct psd_shape in;
	uint32_t places;
	enum psd_status status = psd_caffe_check_bottoms(part, 1, err);

	if (!status)
		status = psd_caffe_read_flag(part->message, "across_spatial", &is_across, err);
	if (!status)
		status = psd_caffe_read_flag(part->message, "channel_shared", &is_shared, err);
	if (!status)
		status = psd_caffe_read_numbers(part->message, "eps", 1e-30, 1, &epsilon, 1, &n_given, false, err);
	if (status)
		return status;
	in = psd_caffe_shape_of(part);
	places = in.height * in.width;
	status = reshape(part, "maps",
			 is_across ? (struct psd_shape){1, in.channels, places}
				   : (struct psd_shape){in.channels, places, 1},
			 err);
	if (!status && !is_across)
		status = turn(part, "places", err);
	if (!status)
		status = divide(part, epsilon, err);
	if (!status && !is_across)
		status = turn(part, "channels", err);
	if (!status)
		status = reshape(part, "back", in, err);
	return status ? status : build_factor(part, in, is_shared, err);
}
