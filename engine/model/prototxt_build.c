/* Caffe's layers that are others of the graph: several of them, or none. Names of those that the file does not name
 * begin with the layer's. */
#include "engine/model/prototxt_parts.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "engine/model/layer.h"

enum { SUFFIX_ROOM = 16, MOST_COEFFICIENTS = 16 };

/* Adds what part->spec says. */
static enum psd_status add(struct psd_caffe_part *part, unsigned *number, struct psd_error *err)
{
	const enum psd_status status = psd_graph_build_add(part->build, part->spec, err);

	*number = part->build->graph.n_layers - 1;
	return status;
}

enum psd_status psd_caffe_build_one(struct psd_caffe_part *part, struct psd_error *err)
{
	return add(part, &part->result, err);
}

enum psd_status psd_caffe_add_other(const struct psd_caffe_part *part, const char *what, unsigned i,
				    const struct psd_layer_kind *kind, const union psd_layer_settings *settings,
				    unsigned left, unsigned right, unsigned *number, struct psd_error *err)
{
	char name[PSD_GRAPH_NAME_MAX + SUFFIX_ROOM];
	struct psd_layer_spec spec = {.name = name,
				      .at = part->spec->at,
				      .kind = kind,
				      .settings = *settings,
				      .n_inputs = kind->least_inputs,
				      .inputs = {left, right}};
	struct psd_caffe_part other = {.build = part->build, .spec = &spec};

	snprintf(name, sizeof(name), "%.*s/%s%u", (int)PSD_GRAPH_NAME_MAX, part->spec->name, what, i);
	return add(&other, number, err);
}

struct psd_shape psd_caffe_shape_of(const struct psd_caffe_part *part)
{
	return part->build->graph.layers[part->spec->inputs[0]].shape;
}

enum psd_status psd_caffe_check_bottoms(const struct psd_caffe_part *part, unsigned wanted, struct psd_error *err)
{
	if (part->spec->n_inputs == wanted)
		return PSD_OK;
	return psd_error_set(err, PSD_EINVAL, part->spec->at, "layer '%.80s' has %u bottoms, must be %u",
			     part->spec->name, part->spec->n_inputs, wanted);
}

/* The bottom itself. */
enum psd_status psd_caffe_build_split(struct psd_caffe_part *part, struct psd_error *err)
{
	part->result = part->spec->inputs[0];
	return psd_caffe_check_bottoms(part, 1, err);
}

/* ---- slices ---- */

/* Where top t begins: at a slice_point, or at equal distances. */
static enum psd_status find_points(const struct psd_caffe_part *part, uint32_t channels, double points[],
				   struct psd_error *err)
{
	unsigned n_points = 0;
	enum psd_status status = psd_caffe_read_numbers(part->message, "slice_point", 1, PSD_LAYER_CHANNELS_MAX,
							points + 1, part->n_tops - 1, &n_points, true, err);

	if (status)
		return status;
	if (n_points ? n_points + 1 != part->n_tops : channels % part->n_tops != 0)
		return psd_error_set(err, PSD_EINVAL, part->spec->at,
				     "layer '%.80s' cuts %u channels at %u points into %u tops, which does not fit",
				     part->spec->name, channels, n_points, part->n_tops);
	points[0] = 0;
	points[part->n_tops] = channels;
	for (unsigned t = 1; t < part->n_tops && !n_points; t++)
		points[t] = (double)channels / part->n_tops * t;
	return PSD_OK;
}

enum psd_status psd_caffe_build_slices(struct psd_caffe_part *part, struct psd_error *err)
{
	double points[PSD_LAYER_INPUTS_MAX + 1];
	unsigned number;
	enum psd_status status = psd_caffe_check_bottoms(part, 1, err);

	if (!status && (part->n_tops < 1 || part->n_tops > PSD_LAYER_INPUTS_MAX))
		status = psd_error_set(err, PSD_EINVAL, part->spec->at, "layer '%.80s' has %u tops, must be 1 to %u",
				       part->spec->name, part->n_tops, PSD_LAYER_INPUTS_MAX);
	if (!status)
		status = find_points(part, psd_caffe_shape_of(part).channels, points, err);
	part->result = part->build->graph.n_layers;
	part->is_one_each = true;
	for (unsigned t = 0; t < part->n_tops && !status; t++) {
		const union psd_layer_settings settings = {
			.slice = {(uint32_t)points[t],
				  points[t + 1] > points[t] ? (uint32_t)(points[t + 1] - points[t]) : 0}};

		status = psd_caffe_add_other(part, "", t, &psd_layer_slice, &settings, part->spec->inputs[0], 0,
					     &number, err);
	}
	return status;
}

/* ---- sums, products and maxima ---- */

/* The last product is the layer itself. */
static enum psd_status build_product(struct psd_caffe_part *part, struct psd_error *err)
{
	struct psd_layer_spec *spec = part->spec;
	enum psd_status status = PSD_OK;

	for (unsigned i = 1; i + 1 < spec->n_inputs && !status; i++)
		status = psd_caffe_add_other(part, "product", i, &psd_layer_multiply, &spec->settings,
					     spec->inputs[i - 1], spec->inputs[i], &spec->inputs[i], err);
	if (!status && spec->n_inputs > 2) {
		spec->inputs[0] = spec->inputs[spec->n_inputs - 2];
		spec->inputs[1] = spec->inputs[spec->n_inputs - 1];
		spec->n_inputs = 2;
	}
	return status ? status : psd_caffe_build_one(part, err);
}

/* max(a, b) = a + relu(b - a); a has the gradient where they are equal. *above: the second summand. */
static enum psd_status add_above(const struct psd_caffe_part *part, unsigned i, unsigned a, unsigned b, unsigned *above,
				 struct psd_error *err)
{
	const union psd_layer_settings minus = {.linear = {-1, 0}}, none = {.slope = {0}};
	enum psd_status status = psd_caffe_add_other(part, "minus", i, &psd_layer_linear, &minus, a, 0, above, err);

	if (!status)
		status = psd_caffe_add_other(part, "difference", i, &psd_layer_add, &none, b, *above, above, err);
	return status ? status : psd_caffe_add_other(part, "above", i, &psd_layer_relu, &none, *above, 0, above, err);
}

/* As in Caffe, the second of equals has the gradient, and any further one only where it is larger. The last sum is the
 * layer itself. */
static enum psd_status build_max(struct psd_caffe_part *part, struct psd_error *err)
{
	struct psd_layer_spec *spec = part->spec;
	const union psd_layer_settings none = {.slope = {0}};
	unsigned most = spec->n_inputs > 1 ? spec->inputs[1] : 0, above = 0;
	enum psd_status status = PSD_OK;

	for (unsigned i = 1; i < spec->n_inputs && !status; i++) {
		if (i > 1)
			status =
				psd_caffe_add_other(part, "max", i - 1, &psd_layer_add, &none, most, above, &most, err);
		if (!status)
			status = add_above(part, i, most, spec->inputs[i > 1 ? i : 0], &above, err);
	}
	if (status)
		return status;
	spec->kind = &psd_layer_add;
	if (spec->n_inputs > 1) {
		spec->inputs[0] = most;
		spec->inputs[1] = above;
		spec->n_inputs = 2;
	}
	return psd_caffe_build_one(part, err);
}

enum psd_status psd_caffe_build_eltwise(struct psd_caffe_part *part, struct psd_error *err)
{
	struct psd_layer_spec *spec = part->spec;
	double coefficients[MOST_COEFFICIENTS];
	unsigned n_coefficients = 0;
	enum psd_status status = psd_caffe_read_numbers(part->message, "coeff", -1e6, 1e6, coefficients,
							MOST_COEFFICIENTS, &n_coefficients, false, err);

	if (!status && n_coefficients && (n_coefficients != spec->n_inputs || spec->kind != &psd_layer_add))
		status = psd_error_set(err, PSD_EINVAL, spec->at,
				       "layer '%.80s' has %u 'coeff' for %u bottoms, must be one for each of a sum",
				       spec->name, n_coefficients, spec->n_inputs);
	for (unsigned i = 0; i < n_coefficients && !status; i++) {
		const union psd_layer_settings settings = {.linear = {coefficients[i], 0}};

		if (coefficients[i] != 1)
			status = psd_caffe_add_other(part, "coeff", i, &psd_layer_linear, &settings, spec->inputs[i], 0,
						     &spec->inputs[i], err);
	}
	if (status)
		return status;
	if (spec->kind == &psd_layer_relu)
		return build_max(part, err);
	return spec->kind == &psd_layer_multiply ? build_product(part, err) : psd_caffe_build_one(part, err);
}

/* a x + y, with an a for each channel. */
enum psd_status psd_caffe_build_axpy(struct psd_caffe_part *part, struct psd_error *err)
{
	struct psd_layer_spec *spec = part->spec;
	enum psd_status status = psd_caffe_check_bottoms(part, 3, err);

	if (!status)
		status = psd_caffe_add_other(part, "product", 0, &psd_layer_multiply, &spec->settings, spec->inputs[1],
					     spec->inputs[0], &spec->inputs[0], err);
	spec->inputs[1] = spec->inputs[2];
	spec->n_inputs = 2;
	return status ? status : psd_caffe_build_one(part, err);
}

enum psd_status psd_caffe_build_scale(struct psd_caffe_part *part, struct psd_error *err)
{
	struct psd_layer_spec *spec = part->spec;

	if (spec->n_inputs < 2)
		return psd_caffe_build_one(part, err);
	if (spec->settings.affine.has_shift)
		return psd_error_set(err, PSD_EINVAL, spec->at,
				     "layer '%.80s' has two bottoms and a bias, which is one too many", spec->name);
	spec->kind = &psd_layer_multiply;
	return psd_caffe_build_one(part, err);
}

/* ---- pyramids ---- */

enum { MOST_LEVELS = 16 };

/* Windows side by side, so many that they cover a side with as little padding as there is. */
static void cut_side(uint32_t side, uint32_t n_windows, uint32_t *kernel, uint32_t *pad)
{
	*kernel = (side + n_windows - 1) / n_windows;
	*pad = (*kernel * n_windows - side + 1) / 2;
}

/* Level l has 2^l x 2^l windows (Caffe's SPPLayer); all are one column in the end. */
static enum psd_status add_level(struct psd_caffe_part *part, unsigned level, unsigned *number, struct psd_error *err)
{
	const struct psd_shape in = psd_caffe_shape_of(part);
	const uint64_t elements = (uint64_t)in.channels << 2 * level;
	union psd_layer_settings settings = part->spec->settings;
	struct psd_window *window = &settings.pool.window;
	enum psd_status status;

	window->dilation = (struct psd_sides){1, 1};
	cut_side(in.height, 1u << level, &window->kernel.height, &window->pad.height);
	cut_side(in.width, 1u << level, &window->kernel.width, &window->pad.width);
	window->stride = window->kernel;
	status = psd_caffe_add_other(part, "level", level, &psd_layer_pool, &settings, part->spec->inputs[0], 0, number,
				     err);
	settings.shape = (struct psd_shape){elements > UINT32_MAX ? 0 : (uint32_t)elements, 1, 1};
	return status ? status
		      : psd_caffe_add_other(part, "flat", level, &psd_layer_reshape, &settings, *number, 0, number,
					    err);
}

enum psd_status psd_caffe_build_pyramid(struct psd_caffe_part *part, struct psd_error *err)
{
	struct psd_layer_spec *spec = part->spec;
	uint32_t n_levels = 0;
	unsigned levels[MOST_LEVELS];
	enum psd_status status = psd_caffe_check_bottoms(part, 1, err);

	if (!status)
		status = psd_caffe_read_count(part->message, "pyramid_height", 1, MOST_LEVELS, &n_levels, err);
	if (!status && !n_levels)
		status = psd_caffe_missing(part->message, spec, "pyramid_height", err);
	for (unsigned l = 0; l < n_levels && !status; l++)
		status = add_level(part, l, &levels[l], err);
	if (status)
		return status;
	memcpy(spec->inputs, levels, n_levels * sizeof(*levels));
	spec->n_inputs = n_levels;
	return psd_caffe_build_one(part, err);
}

/* ---- losses ---- */

/* No sample has a label that is no class: a run would refuse it. */
enum psd_status psd_caffe_build_loss(struct psd_caffe_part *part, struct psd_error *err)
{
	const struct psd_node *ignored = psd_node_child(part->message, "ignore_label");
	unsigned n_given = 0;
	double label = -1;
	enum psd_status status =
		psd_caffe_read_numbers(part->message, "ignore_label", INT_MIN, INT_MAX, &label, 1, &n_given, true, err);

	if (!status && part->spec->n_inputs && label >= 0 && label < psd_caffe_shape_of(part).channels)
		status = psd_error_set(
			err, PSD_EINVAL, ignored->at,
			"'ignore_label' is %g, one of the %u classes of layer '%.80s', all of which count", label,
			psd_caffe_shape_of(part).channels, part->spec->name);
	return status ? status : psd_caffe_build_one(part, err);
}
