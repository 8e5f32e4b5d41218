/* Caffe's layers that give a blob another shape or another order. Between them a blob may have five dimensions. */
#include "engine/model/prototxt_parts.h"

#include <stdlib.h>
#include <string.h>

#include "engine/model/layer.h"

/* Caffe's: what is left where only every shrink-th place is taken, then zoom - 1 new ones between each two. */
static uint32_t interpolated(uint32_t side, uint32_t shrink, uint32_t zoom)
{
	const uint64_t shrunk = (side - 1) / shrink + 1, zoomed = shrunk + (shrunk - 1) * (zoom - 1);

	return zoomed < UINT32_MAX ? (uint32_t)zoomed : UINT32_MAX;
}

enum psd_status psd_caffe_build_interp(struct psd_caffe_part *part, struct psd_error *err)
{
	struct psd_sides *size = &part->spec->settings.size;
	uint32_t shrink = 1, zoom = 1;
	enum psd_status status = psd_caffe_check_bottoms(part, 1, err);

	if (status)
		return status;
	status = psd_caffe_read_count(part->message, "shrink_factor", 1, PSD_LAYER_SIDE_MAX, &shrink, err);
	if (!status)
		status = psd_caffe_read_count(part->message, "zoom_factor", 1, PSD_LAYER_SIDE_MAX, &zoom, err);
	size->height = interpolated(psd_caffe_shape_of(part).height, shrink, zoom);
	size->width = interpolated(psd_caffe_shape_of(part).width, shrink, zoom);
	if (!status)
		status = psd_caffe_read_count(part->message, "height", 1, PSD_LAYER_SIDE_MAX, &size->height, err);
	if (!status)
		status = psd_caffe_read_count(part->message, "width", 1, PSD_LAYER_SIDE_MAX, &size->width, err);
	return status ? status : psd_caffe_build_one(part, err);
}

/* ---- sides: what a sample of a blob has on its axes, which Caffe counts from 1 ---- */

struct sides {
	uint32_t of[PSD_CAFFE_SIDES_MAX]; /* 1 beyond those there are */
	unsigned n;
};

static const struct psd_caffe_fold *find_fold(const struct psd_caffe_folds *folds, unsigned layer)
{
	for (unsigned i = folds->n; i-- > 0;)
		if (folds->all[i].layer == layer)
			return &folds->all[i];
	return NULL;
}

bool psd_caffe_is_folded(const struct psd_caffe_folds *folds, unsigned layer)
{
	return find_fold(folds, layer);
}

static struct sides sides_of(const struct psd_caffe_part *part)
{
	const struct psd_shape shape = psd_caffe_shape_of(part);
	const struct psd_caffe_fold *fold = find_fold(part->folds, part->spec->inputs[0]);
	struct sides sides = {{shape.channels, shape.height, shape.width, 1}, 3};

	if (fold) {
		memcpy(sides.of, fold->sides, sizeof(sides.of));
		sides.n = PSD_CAFFE_SIDES_MAX;
	}
	return sides;
}

static uint32_t product(uint32_t left, uint32_t right)
{
	return (uint64_t)left * right < UINT32_MAX ? left * right : UINT32_MAX;
}

/* The graph has three axes: of four the last two are one. */
static struct psd_shape shape_for(const struct sides *sides)
{
	return (struct psd_shape){sides->of[0], sides->of[1], product(sides->of[2], sides->of[3])};
}

static bool are_same(struct psd_shape left, struct psd_shape right)
{
	return left.channels == right.channels && left.height == right.height && left.width == right.width;
}

/* Remembers of the layer that was built what the graph cannot say. */
static enum psd_status fold(struct psd_caffe_part *part, const struct sides *sides, struct psd_error *err)
{
	struct psd_caffe_folds *folds = part->folds;
	struct psd_caffe_fold *larger;

	if (sides->of[3] == 1)
		return PSD_OK;
	larger = realloc(folds->all, (folds->n + 1) * sizeof(*larger));
	if (!larger)
		return psd_error_set(err, PSD_ENOMEM, PSD_NOWHERE, "out of memory");
	folds->all = larger;
	larger[folds->n].layer = part->result;
	memcpy(larger[folds->n++].sides, sides->of, sizeof(sides->of));
	return PSD_OK;
}

/* Nothing is left to do where the sides are those of the bottom. */
static enum psd_status build_sides(struct psd_caffe_part *part, const struct sides *sides, struct psd_error *err)
{
	const struct sides in = sides_of(part);
	enum psd_status status;

	if (!memcmp(in.of, sides->of, sizeof(in.of)))
		return psd_caffe_build_split(part, err);
	part->spec->kind = &psd_layer_reshape;
	part->spec->settings.shape = shape_for(sides);
	status = psd_caffe_build_one(part, err);
	return status ? status : fold(part, sides, err);
}

static enum psd_status read_whole(const struct psd_caffe_part *part, const char *key, int lowest, int highest,
				  int *number, struct psd_error *err)
{
	double read = *number;
	unsigned n_given = 0;
	const enum psd_status status =
		psd_caffe_read_numbers(part->message, key, lowest, highest, &read, 1, &n_given, true, err);

	if (!status)
		*number = (int)read;
	return status;
}

/* Of the first input, from here on. */
static enum psd_status add_shape(struct psd_caffe_part *part, const char *what, struct psd_shape shape,
				 struct psd_error *err)
{
	const union psd_layer_settings settings = {.shape = shape};

	if (are_same(shape, psd_caffe_shape_of(part)))
		return PSD_OK;
	return psd_caffe_add_other(part, what, 0, &psd_layer_reshape, &settings, part->spec->inputs[0], 0,
				   &part->spec->inputs[0], err);
}

/* ---- flatten and reshape ---- */

enum psd_status psd_caffe_build_flat(struct psd_caffe_part *part, struct psd_error *err)
{
	int axis = 1, end_axis = -1;
	struct sides in, flat = {.of = {1, 1, 1, 1}};
	enum psd_status status = psd_caffe_check_bottoms(part, 1, err);

	if (!status)
		status = read_whole(part, "axis", 1, PSD_CAFFE_SIDES_MAX, &axis, err);
	if (!status)
		status = read_whole(part, "end_axis", -1, PSD_CAFFE_SIDES_MAX, &end_axis, err);
	if (status)
		return status;
	in = sides_of(part);
	if (end_axis == -1)
		end_axis = (int)in.n;
	if (end_axis < axis || end_axis > (int)in.n)
		return psd_error_set(err, PSD_EINVAL, part->spec->at,
				     "layer '%.80s' flattens axes %d to %d of a blob that has %u beside the batch",
				     part->spec->name, axis, end_axis, in.n);
	for (int i = 1; i <= (int)in.n; i++) {
		const bool is_merged = i > axis && i <= end_axis;

		flat.n += !is_merged;
		flat.of[flat.n - 1] = product(flat.of[flat.n - 1], in.of[i - 1]);
	}
	return build_sides(part, &flat, err);
}

enum { MOST_DIMS = PSD_CAFFE_SIDES_MAX + 1 }; /* with the batch */

/* What the axes are after `shape` has taken the place of n_axes of them from `axis` on; the first is the batch. */
static enum psd_status replace_axes(const struct psd_caffe_part *part, const double given[], unsigned n_given, int axis,
				    int n_axes, double dims[MOST_DIMS], unsigned *n_dims, struct psd_error *err)
{
	const struct sides in = sides_of(part);
	const int end = n_axes < 0 ? (int)in.n + 1 : axis + n_axes;
	double all[2 * MOST_DIMS + 1];
	unsigned n = 0;

	for (int i = 0; i < axis; i++)
		all[n++] = i ? in.of[i - 1] : 1;
	for (unsigned i = 0; i < n_given; i++) {
		const unsigned from = (unsigned)axis + i;

		all[n++] = given[i] == 0 && from > 0 && from <= in.n ? in.of[from - 1] : given[i];
	}
	for (int i = end; i <= (int)in.n; i++)
		all[n++] = i ? in.of[i - 1] : 1;
	while (n > MOST_DIMS && all[n - 1] == 1)
		n--;
	if (n < 2 || n > MOST_DIMS || axis > (int)in.n + 1 || end > (int)in.n + 1)
		return psd_error_set(err, PSD_EINVAL, part->message->at,
				     "layer '%.80s' has a shape of %u dimensions, must be 2 to %d of those there are",
				     part->spec->name, n, MOST_DIMS);
	memcpy(dims, all, n * sizeof(*dims));
	*n_dims = n;
	return PSD_OK;
}

/* One -1 takes what is left. */
static struct sides fill_in(const struct psd_caffe_part *part, const double dims[], unsigned n_dims)
{
	double left = (double)psd_shape_elements(psd_caffe_shape_of(part));
	struct sides sides = {{1, 1, 1, 1}, n_dims - 1};

	for (unsigned i = 1; i < n_dims; i++)
		left /= dims[i] > 0 ? dims[i] : 1;
	for (unsigned i = 1; i < n_dims; i++) {
		const double missing = left < PSD_LAYER_CHANNELS_MAX ? left : 0;

		sides.of[i - 1] = (uint32_t)(dims[i] < 0 ? missing : dims[i]);
		left = dims[i] < 0 ? 1 : left;
	}
	return sides;
}

/* Of the dims 0 copies the bottom's and one -1 takes what is left. The first is the batch, which the job sets. */
enum psd_status psd_caffe_build_shape(struct psd_caffe_part *part, struct psd_error *err)
{
	const struct psd_node *shape = psd_node_child(part->message, "shape");
	double given[MOST_DIMS], dims[MOST_DIMS];
	unsigned n_given = 0, n_dims = 0;
	int axis = 0, n_axes = -1;
	struct sides sides;
	enum psd_status status = psd_caffe_check_bottoms(part, 1, err);

	if (!status)
		status = psd_caffe_read_numbers(shape, "dim", -1, PSD_LAYER_CHANNELS_MAX, given, MOST_DIMS, &n_given,
						true, err);
	if (!status)
		status = read_whole(part, "axis", 0, MOST_DIMS, &axis, err);
	if (!status)
		status = read_whole(part, "num_axes", -1, MOST_DIMS, &n_axes, err);
	if (!status)
		status = replace_axes(part, given, n_given, axis, n_axes, dims, &n_dims, err);
	if (status)
		return status;
	sides = fill_in(part, dims, n_dims);
	return build_sides(part, &sides, err);
}

/* ---- tile and reduction ---- */

enum { MEAN = 3 };

/* Channels several times over are a concatenation, and one row or column many times a map that is resized. */
enum psd_status psd_caffe_build_tile(struct psd_caffe_part *part, struct psd_error *err)
{
	struct psd_layer_spec *spec = part->spec;
	uint32_t tiles = 0;
	struct psd_shape in;
	int axis = 1;
	enum psd_status status = psd_caffe_check_bottoms(part, 1, err);

	if (!status)
		status = read_whole(part, "axis", 1, 3, &axis, err);
	if (!status)
		status = psd_caffe_read_count(part->message, "tiles", 1,
					      axis == 1 ? PSD_LAYER_INPUTS_MAX : PSD_LAYER_SIDE_MAX, &tiles, err);
	if (!status && !tiles)
		status = psd_caffe_missing(part->message, spec, "tiles", err);
	if (status)
		return status;
	in = psd_caffe_shape_of(part);
	if (axis > 1 && (axis == 2 ? in.height : in.width) != 1)
		return psd_error_set(err, PSD_EINVAL, part->message->at,
				     "layer '%.80s' tiles axis %d, which must be of one place: its input is %ux%ux%u",
				     spec->name, axis, in.channels, in.height, in.width);
	if (axis > 1) {
		spec->kind = &psd_layer_resize;
		spec->settings.size = (struct psd_sides){axis == 2 ? tiles : in.height, axis == 3 ? tiles : in.width};
		return psd_caffe_build_one(part, err);
	}
	for (uint32_t i = 1; i < tiles; i++)
		spec->inputs[i] = spec->inputs[0];
	spec->n_inputs = tiles;
	return psd_caffe_build_one(part, err);
}

/* What the axes from `axis` on become one value by, their mean: of a sample, of a map, or of a row. */
static const struct psd_layer_kind *mean_of(int axis, struct psd_shape in, union psd_layer_settings *settings)
{
	settings->pool = (struct psd_pool_settings){
		.window = {.kernel = {1, in.width}, .stride = {1, 1}, .dilation = {1, 1}},
		.method = PSD_POOL_AVERAGE,
		.rounding = PSD_POOL_DOWN,
	};
	return axis == 3 ? &psd_layer_pool : &psd_layer_global_pool;
}

/* Of what the operation sums. */
static enum psd_status add_summands(struct psd_caffe_part *part, unsigned operation, struct psd_error *err)
{
	static const struct psd_layer_kind *const kinds[] = {NULL, &psd_layer_abs, &psd_layer_power, NULL};
	const union psd_layer_settings square = {.power = {2}};

	if (!kinds[operation])
		return PSD_OK;
	return psd_caffe_add_other(part, "summands", 0, kinds[operation], &square, part->spec->inputs[0], 0,
				   &part->spec->inputs[0], err);
}

static enum psd_status read_reduction(const struct psd_caffe_part *part, int *axis, unsigned *operation,
				      double *coefficient, struct psd_error *err)
{
	static const char *const operations[] = {"SUM", "ASUM", "SUMSQ", "MEAN", "1", "2", "3", "4", NULL};
	const struct psd_node *field;
	unsigned n_given = 0;
	enum psd_status status = psd_caffe_check_bottoms(part, 1, err);

	if (!status)
		status = psd_caffe_single(part->message, "operation", &field, err);
	if (!status && field)
		status = psd_node_choice(field, operations, operation, err);
	if (!status)
		status = read_whole(part, "axis", 1, 3, axis, err);
	if (!status && !*axis)
		status = psd_caffe_missing(part->message, part->spec, "axis", err); /* over the batch, too */
	*operation %= 4;
	return status ? status
		      : psd_caffe_read_numbers(part->message, "coeff", -1e6, 1e6, coefficient, 1, &n_given, false, err);
}

/* A sum is so many times the mean. */
enum psd_status psd_caffe_build_reduction(struct psd_caffe_part *part, struct psd_error *err)
{
	struct psd_layer_spec *spec = part->spec;
	unsigned operation = 0;
	int axis = 0;
	double factor = 1;
	struct psd_shape in;
	enum psd_status status = read_reduction(part, &axis, &operation, &factor, err);

	if (status)
		return status;
	in = psd_caffe_shape_of(part);
	if (operation != MEAN)
		factor *= (axis == 1 ? in.channels : 1.0) * (axis <= 2 ? in.height : 1.0) * in.width;
	status = add_summands(part, operation, err);
	if (!status && axis == 1)
		status = add_shape(part, "map", (struct psd_shape){1, product(in.channels, in.height), in.width}, err);
	spec->kind = mean_of(axis, in, &spec->settings);
	if (!status && factor != 1) {
		status = psd_caffe_add_other(part, "mean", 0, spec->kind, &spec->settings, spec->inputs[0], 0,
					     &spec->inputs[0], err);
		spec->kind = &psd_layer_linear;
		spec->settings.linear = (struct psd_linear_settings){factor, 0};
	}
	return status ? status : psd_caffe_build_one(part, err);
}

/* ---- permute ---- */

/* Four axes are three to the graph: those that stay side by side are moved as one. */
struct runs {
	uint32_t sizes[PSD_CAFFE_SIDES_MAX]; /* in the bottom's order; 1 beyond those there are */
	unsigned order[PSD_CAFFE_SIDES_MAX]; /* of the runs in the top, from 1 */
	unsigned n;
};

static struct runs find_runs(const struct sides *in, const unsigned order[PSD_CAFFE_SIDES_MAX])
{
	struct runs runs = {.sizes = {1, 1, 1, 1}};
	unsigned place[PSD_CAFFE_SIDES_MAX + 1] = {0}, run_at[PSD_CAFFE_SIDES_MAX] = {0}, n = 0;

	for (unsigned p = 0; p < PSD_CAFFE_SIDES_MAX; p++)
		place[order[p]] = p;
	for (unsigned axis = 1; axis <= PSD_CAFFE_SIDES_MAX; axis++) {
		if (axis == 1 || place[axis] != place[axis - 1] + 1)
			run_at[place[axis]] = ++runs.n;
		runs.sizes[runs.n - 1] = product(runs.sizes[runs.n - 1], in->of[axis - 1]);
	}
	for (unsigned p = 0; p < PSD_CAFFE_SIDES_MAX; p++)
		if (run_at[p])
			runs.order[n++] = run_at[p];
	for (; n < PSD_CAFFE_SIDES_MAX; n++)
		runs.order[n] = n + 1;
	return runs;
}

static enum psd_status build_order_of_four(struct psd_caffe_part *part, const unsigned order[PSD_CAFFE_SIDES_MAX],
					   struct psd_error *err)
{
	const struct sides in = sides_of(part);
	const struct runs runs = find_runs(&in, order);
	struct sides out = {.n = PSD_CAFFE_SIDES_MAX};
	struct psd_shape moved;
	enum psd_status status;

	if (runs.n > 3)
		return psd_error_set(err, PSD_EINVAL, part->message->at,
				     "layer '%.80s' moves four axes apart, at most three can be", part->spec->name);
	for (unsigned p = 0; p < PSD_CAFFE_SIDES_MAX; p++)
		out.of[p] = in.of[order[p] - 1];
	status = add_shape(part, "runs", (struct psd_shape){runs.sizes[0], runs.sizes[1], runs.sizes[2]}, err);
	memcpy(part->spec->settings.permute.order, runs.order, sizeof(part->spec->settings.permute.order));
	moved = (struct psd_shape){runs.sizes[runs.order[0] - 1], runs.sizes[runs.order[1] - 1],
				   runs.sizes[runs.order[2] - 1]};
	if (!status && !are_same(moved, shape_for(&out))) {
		status = psd_caffe_add_other(part, "order", 0, &psd_layer_permute, &part->spec->settings,
					     part->spec->inputs[0], 0, &part->spec->inputs[0], err);
		part->spec->kind = &psd_layer_reshape;
		part->spec->settings.shape = shape_for(&out);
	}
	if (!status)
		status = psd_caffe_build_one(part, err);
	return status ? status : fold(part, &out, err);
}

enum psd_status psd_caffe_build_order(struct psd_caffe_part *part, struct psd_error *err)
{
	double given[MOST_DIMS] = {0, 1, 2, 3, 4};
	unsigned n_given = 0, n_dims, order[PSD_CAFFE_SIDES_MAX], axes = 0;
	enum psd_status status = psd_caffe_check_bottoms(part, 1, err);

	if (!status)
		status = psd_caffe_read_numbers(part->message, "order", 0, MOST_DIMS - 1, given, MOST_DIMS, &n_given,
						true, err);
	if (status)
		return status;
	n_dims = sides_of(part).n + 1;
	for (unsigned i = 1; i < MOST_DIMS; i++)
		axes |= 1u << (order[i - 1] = (unsigned)given[i]);
	if (given[0] != 0 || (n_given && n_given != n_dims) || axes != 0x1e)
		return psd_error_set(err, PSD_EINVAL, part->message->at,
				     "layer '%.80s' must name %u axes once and leave axis 0, the batch, where it is",
				     part->spec->name, n_dims);
	if (n_dims == MOST_DIMS)
		return build_order_of_four(part, order, err);
	memcpy(part->spec->settings.permute.order, order, sizeof(part->spec->settings.permute.order));
	return psd_caffe_build_one(part, err);
}
