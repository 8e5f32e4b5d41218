/* Caffe's layers that are several layers of the graph, or none. The name of a layer that the file does not have begins
 * with that of the Caffe layer. */
#include "engine/model/prototxt_parts.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "engine/model/layer.h"

enum { SUFFIX_BYTES = 16, COEFFICIENTS_MAX = 16 };

enum psd_status psd_caffe_build_one(struct psd_caffe_draft *draft, struct psd_error *err)
{
	draft->result = draft->build->graph.n_layers;
	return psd_graph_build_add(draft->build, draft->spec, err);
}

enum psd_status psd_caffe_add_other(const struct psd_caffe_draft *draft, const char *suffix, unsigned i,
				    const struct psd_layer_kind *kind, const union psd_layer_settings *settings,
				    unsigned left, unsigned right, unsigned *number, struct psd_error *err)
{
	char name[PSD_GRAPH_NAME_MAX + SUFFIX_BYTES];
	struct psd_layer_spec spec = {.name = name,
				      .at = draft->spec->at,
				      .kind = kind,
				      .settings = settings ? *settings : kind->defaults,
				      .n_inputs = kind->least_inputs,
				      .inputs = {left, right}};

	*number = draft->build->graph.n_layers;
	snprintf(name, sizeof(name), "%.*s/%s%u", (int)PSD_GRAPH_NAME_MAX, draft->spec->name, suffix, i);
	return psd_graph_build_add(draft->build, &spec, err);
}

enum psd_status psd_caffe_add_above(const struct psd_caffe_draft *draft, const char *suffix,
				    const struct psd_layer_kind *kind, const union psd_layer_settings *settings,
				    unsigned *layer, struct psd_error *err)
{
	return psd_caffe_add_other(draft, suffix, 0, kind, settings, *layer, 0, layer, err);
}

struct psd_shape psd_caffe_shape_of(const struct psd_caffe_draft *draft)
{
	return draft->build->graph.layers[draft->spec->inputs[0]].shape;
}

/* The top is the bottom: the graph needs no layer. */
enum psd_status psd_caffe_build_split(struct psd_caffe_draft *draft, struct psd_error *err)
{
	(void)err;
	draft->result = draft->spec->inputs[0];
	return PSD_OK;
}

/* ---- slices ---- */

/* Sets points[t] to the first channel of top t, from slice_point or in equal steps. */
static enum psd_status find_points(const struct psd_caffe_draft *draft, uint32_t channels, double points[],
				   struct psd_error *err)
{
	unsigned n_points = 0;

	PSD_TRY(psd_caffe_read_numbers(draft->message, "slice_point", 1, PSD_LAYER_CHANNELS_MAX, points + 1,
				       draft->n_tops - 1, &n_points, true, err));
	if (n_points ? n_points + 1 != draft->n_tops : channels % draft->n_tops != 0)
		return psd_error_set(err, PSD_EINVAL, draft->spec->at,
				     "layer '%.80s' has %u 'slice_point' for %u tops and %u channels, must have one "
				     "point less than tops, or none where tops divide the channels",
				     draft->spec->name, n_points, draft->n_tops, channels);
	points[0] = 0;
	points[draft->n_tops] = channels;
	for (unsigned t = 1; t < draft->n_tops && !n_points; t++)
		points[t] = (double)channels / draft->n_tops * t;
	return PSD_OK;
}

enum psd_status psd_caffe_build_slices(struct psd_caffe_draft *draft, struct psd_error *err)
{
	double points[PSD_LAYER_INPUTS_MAX + 1];
	unsigned number;

	if (draft->n_tops < 1 || draft->n_tops > PSD_LAYER_INPUTS_MAX)
		return psd_error_set(err, PSD_EINVAL, draft->spec->at, "layer '%.80s' has %u tops, must be 1 to %u",
				     draft->spec->name, draft->n_tops, PSD_LAYER_INPUTS_MAX);
	PSD_TRY(find_points(draft, psd_caffe_shape_of(draft).channels, points, err));
	draft->result = draft->build->graph.n_layers;
	draft->is_one_each = true;
	for (unsigned t = 0; t < draft->n_tops; t++) {
		const union psd_layer_settings settings = {
			.slice = {(uint32_t)points[t],
				  points[t + 1] > points[t] ? (uint32_t)(points[t + 1] - points[t]) : 0}};

		PSD_TRY(psd_caffe_add_other(draft, "", t, &psd_layer_slice, &settings, draft->spec->inputs[0], 0,
					    &number, err));
	}
	return PSD_OK;
}

/* ---- sums, products and maxima ---- */

/* A chain of products, the last of which is the layer itself. */
static enum psd_status build_product(struct psd_caffe_draft *draft, struct psd_error *err)
{
	struct psd_layer_spec *spec = draft->spec;

	for (unsigned i = 1; i + 1 < spec->n_inputs; i++)
		PSD_TRY(psd_caffe_add_other(draft, "product", i, &psd_layer_multiply, &spec->settings,
					    spec->inputs[i - 1], spec->inputs[i], &spec->inputs[i], err));
	if (spec->n_inputs > 2) {
		spec->inputs[0] = spec->inputs[spec->n_inputs - 2];
		spec->inputs[1] = spec->inputs[spec->n_inputs - 1];
		spec->n_inputs = 2;
	}
	return psd_caffe_build_one(draft, err);
}

/* max(a, b) = a + relu(b - a); where they are equal, a gets the gradient. *above: the second summand. */
static enum psd_status add_above(const struct psd_caffe_draft *draft, unsigned i, unsigned a, unsigned b,
				 unsigned *above, struct psd_error *err)
{
	const union psd_layer_settings minus = {.linear = {-1, 0}};

	PSD_TRY(psd_caffe_add_other(draft, "minus", i, &psd_layer_affine, &minus, a, 0, above, err));
	PSD_TRY(psd_caffe_add_other(draft, "difference", i, &psd_layer_add, NULL, b, *above, above, err));
	return psd_caffe_add_other(draft, "above", i, &psd_layer_relu, NULL, *above, 0, above, err);
}

/* As in Caffe, the second of equal bottoms gets the gradient, a further one only where it is larger. The last sum is
 * the layer itself. */
static enum psd_status build_max(struct psd_caffe_draft *draft, struct psd_error *err)
{
	struct psd_layer_spec *spec = draft->spec;
	unsigned most = spec->n_inputs > 1 ? spec->inputs[1] : 0, above = 0;

	for (unsigned i = 1; i < spec->n_inputs; i++) {
		if (i > 1)
			PSD_TRY(psd_caffe_add_other(draft, "max", i - 1, &psd_layer_add, NULL, most, above, &most,
						    err));
		PSD_TRY(add_above(draft, i, most, spec->inputs[i > 1 ? i : 0], &above, err));
	}
	spec->kind = &psd_layer_add;
	if (spec->n_inputs > 1) {
		spec->inputs[0] = most;
		spec->inputs[1] = above;
		spec->n_inputs = 2;
	}
	return psd_caffe_build_one(draft, err);
}

enum psd_status psd_caffe_build_eltwise(struct psd_caffe_draft *draft, struct psd_error *err)
{
	struct psd_layer_spec *spec = draft->spec;
	double coefficients[COEFFICIENTS_MAX];
	unsigned n_coefficients = 0;

	PSD_TRY(psd_caffe_read_numbers(draft->message, "coeff", -1e6, 1e6, coefficients, COEFFICIENTS_MAX,
				       &n_coefficients, false, err));
	if (n_coefficients && (n_coefficients != spec->n_inputs || spec->kind != &psd_layer_add))
		return psd_error_set(
			err, PSD_EINVAL, spec->at,
			"layer '%.80s' has %u 'coeff' for %u bottoms, must be a SUM with one for each bottom",
			spec->name, n_coefficients, spec->n_inputs);
	for (unsigned i = 0; i < n_coefficients; i++) {
		const union psd_layer_settings settings = {.linear = {coefficients[i], 0}};

		if (coefficients[i] != 1)
			PSD_TRY(psd_caffe_add_other(draft, "coeff", i, &psd_layer_affine, &settings, spec->inputs[i], 0,
						    &spec->inputs[i], err));
	}
	if (spec->kind == &psd_layer_relu)
		return build_max(draft, err);
	return spec->kind == &psd_layer_multiply ? build_product(draft, err) : psd_caffe_build_one(draft, err);
}

/* a x + y, where a has a value for each channel. */
enum psd_status psd_caffe_build_axpy(struct psd_caffe_draft *draft, struct psd_error *err)
{
	struct psd_layer_spec *spec = draft->spec;

	PSD_TRY(psd_caffe_add_other(draft, "product", 0, &psd_layer_multiply, &spec->settings, spec->inputs[1],
				    spec->inputs[0], &spec->inputs[0], err));
	spec->inputs[1] = spec->inputs[2];
	spec->n_inputs = 2;
	return psd_caffe_build_one(draft, err);
}

enum psd_status psd_caffe_build_scale(struct psd_caffe_draft *draft, struct psd_error *err)
{
	struct psd_layer_spec *spec = draft->spec;

	if (spec->n_inputs < 2)
		return psd_caffe_build_one(draft, err);
	if (spec->settings.affine.has_shift)
		return psd_error_set(err, PSD_EINVAL, spec->at,
				     "layer '%.80s' has two bottoms and a bias, must have one of them", spec->name);
	spec->kind = &psd_layer_multiply;
	return psd_caffe_build_one(draft, err);
}

/* ---- pyramids ---- */

enum { LEVELS_MAX = 16 };

/* Sets kernel and pad of windows side by side that cover the side with least padding. */
static void cut_side(uint32_t side, uint32_t n_windows, uint32_t *kernel, uint32_t *pad)
{
	*kernel = (side + n_windows - 1) / n_windows;
	*pad = (*kernel * n_windows - side + 1) / 2;
}

/* Level l has 2^l x 2^l windows (Caffe's SPPLayer), reshaped to one column. */
static enum psd_status add_level(struct psd_caffe_draft *draft, unsigned level, unsigned *number, struct psd_error *err)
{
	const struct psd_shape in = psd_caffe_shape_of(draft);
	const uint64_t elements = (uint64_t)in.channels << 2 * level;
	union psd_layer_settings settings = draft->spec->settings;
	struct psd_window *window = &settings.pool.window;

	window->dilation = (struct psd_sides){1, 1};
	cut_side(in.height, 1u << level, &window->kernel.height, &window->pad.height);
	cut_side(in.width, 1u << level, &window->kernel.width, &window->pad.width);
	window->stride = window->kernel;
	PSD_TRY(psd_caffe_add_other(draft, "level", level, &psd_layer_pool, &settings, draft->spec->inputs[0], 0,
				    number, err));
	settings.shape = (struct psd_shape){elements > UINT32_MAX ? 0 : (uint32_t)elements, 1, 1};
	return psd_caffe_add_other(draft, "flat", level, &psd_layer_reshape, &settings, *number, 0, number, err);
}

enum psd_status psd_caffe_build_pyramid(struct psd_caffe_draft *draft, struct psd_error *err)
{
	struct psd_layer_spec *spec = draft->spec;
	uint32_t n_levels = 0;
	unsigned levels[LEVELS_MAX];

	PSD_TRY(psd_caffe_read_count(draft->message, "pyramid_height", 1, LEVELS_MAX, &n_levels, err));
	if (!n_levels)
		return psd_caffe_missing(draft->message, spec, "pyramid_height", err);
	for (unsigned l = 0; l < n_levels; l++)
		PSD_TRY(add_level(draft, l, &levels[l], err));
	memcpy(spec->inputs, levels, n_levels * sizeof(*levels));
	spec->n_inputs = n_levels;
	return psd_caffe_build_one(draft, err);
}

/* ---- losses ---- */

/* All classes count; an ignored label that is not a class changes nothing, since runs refuse such labels. */
enum psd_status psd_caffe_build_loss(struct psd_caffe_draft *draft, struct psd_error *err)
{
	const struct psd_node *ignored = psd_node_child(draft->message, "ignore_label");
	unsigned n_read = 0;
	double label = -1;

	PSD_TRY(psd_caffe_read_numbers(draft->message, "ignore_label", INT_MIN, INT_MAX, &label, 1, &n_read, true,
				       err));
	if (draft->spec->n_inputs && label >= 0 && label < psd_caffe_shape_of(draft).channels)
		return psd_error_set(
			err, PSD_EINVAL, ignored->at,
			"'ignore_label' is %g, must not be one of the %u classes of layer '%.80s' (from 0): all count",
			label, psd_caffe_shape_of(draft).channels, draft->spec->name);
	return psd_caffe_build_one(draft, err);
}
