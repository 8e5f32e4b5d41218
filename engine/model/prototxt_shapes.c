/* Caffe's layers that change the shape of a blob, or the order of its values. Between them a blob may have five
 * dimensions. */
#include "engine/model/prototxt_parts.h"

#include <stdlib.h>
#include <string.h>

#include "engine/model/layer.h"

/* Side after Caffe's interpolation: every shrink-th position is kept, then zoom - 1 new ones are added between each
 * two.
 */
static uint32_t interpolated(uint32_t side, uint32_t shrink, uint32_t zoom)
{
	const uint64_t shrunk = (side - 1) / shrink + 1, zoomed = shrunk + (shrunk - 1) * (zoom - 1);

	return zoomed < UINT32_MAX ? (uint32_t)zoomed : UINT32_MAX;
}

enum psd_status psd_caffe_build_interp(struct psd_caffe_draft *draft, struct psd_error *err)
{
	struct psd_sides *size = &draft->spec->settings.size;
	uint32_t shrink = 1, zoom = 1;

	PSD_TRY(psd_caffe_read_count(draft->message, "shrink_factor", 1, PSD_LAYER_SIDE_MAX, &shrink, err));
	PSD_TRY(psd_caffe_read_count(draft->message, "zoom_factor", 1, PSD_LAYER_SIDE_MAX, &zoom, err));
	size->height = interpolated(psd_caffe_shape_of(draft).height, shrink, zoom);
	size->width = interpolated(psd_caffe_shape_of(draft).width, shrink, zoom);
	PSD_TRY(psd_caffe_read_count(draft->message, "height", 1, PSD_LAYER_SIDE_MAX, &size->height, err));
	PSD_TRY(psd_caffe_read_count(draft->message, "width", 1, PSD_LAYER_SIDE_MAX, &size->width, err));
	return psd_caffe_build_one(draft, err);
}

/* ---- sides: the dimensions of a blob without the batch; Caffe counts their axes from 1 ---- */

struct sides {
	uint32_t of[PSD_CAFFE_SIDES_MAX]; /* 1 from n on */
	unsigned n;
};

static const struct psd_caffe_blob_5d *find_5d(const struct psd_caffe_blobs_5d *blobs_5d, unsigned layer)
{
	for (unsigned i = blobs_5d->n; i-- > 0;)
		if (blobs_5d->all[i].layer == layer)
			return &blobs_5d->all[i];
	return NULL;
}

bool psd_caffe_is_5d(const struct psd_caffe_blobs_5d *blobs_5d, unsigned layer)
{
	return find_5d(blobs_5d, layer);
}

static struct sides sides_of(const struct psd_caffe_draft *draft)
{
	const struct psd_shape shape = psd_caffe_shape_of(draft);
	const struct psd_caffe_blob_5d *blob = find_5d(draft->blobs_5d, draft->spec->inputs[0]);
	struct sides sides = {{shape.channels, shape.height, shape.width, 1}, 3};

	if (blob) {
		memcpy(sides.of, blob->sides, sizeof(sides.of));
		sides.n = PSD_CAFFE_SIDES_MAX;
	}
	return sides;
}

static uint32_t product(uint32_t left, uint32_t right)
{
	return (uint64_t)left * right < UINT32_MAX ? left * right : UINT32_MAX;
}

/* The graph has three axes; the last two of four become one. */
static struct psd_shape shape_for(const struct sides *sides)
{
	return (struct psd_shape){sides->of[0], sides->of[1], product(sides->of[2], sides->of[3])};
}

/* Stores the dimensions of the newest layer if there are four. */
static enum psd_status put_5d(struct psd_caffe_draft *draft, const struct sides *sides, struct psd_error *err)
{
	struct psd_caffe_blobs_5d *blobs_5d = draft->blobs_5d;
	struct psd_caffe_blob_5d *larger;

	if (sides->of[3] == 1)
		return PSD_OK;
	larger = realloc(blobs_5d->all, (blobs_5d->n + 1) * sizeof(*larger));
	if (!larger)
		return psd_out_of_memory(err);
	blobs_5d->all = larger;
	larger[blobs_5d->n].layer = draft->result;
	memcpy(larger[blobs_5d->n++].sides, sides->of, sizeof(sides->of));
	return PSD_OK;
}

/* No layer is needed if the sides are those of the bottom. */
static enum psd_status build_sides(struct psd_caffe_draft *draft, const struct sides *sides, struct psd_error *err)
{
	const struct sides in = sides_of(draft);

	if (!memcmp(in.of, sides->of, sizeof(in.of)))
		return psd_caffe_build_split(draft, err);
	draft->spec->kind = &psd_layer_reshape;
	draft->spec->settings.shape = shape_for(sides);
	PSD_TRY(psd_caffe_build_one(draft, err));
	return put_5d(draft, sides, err);
}

static enum psd_status read_whole(const struct psd_caffe_draft *draft, const char *key, int lowest, int highest,
				  int *number, struct psd_error *err)
{
	double read = *number;
	unsigned n_read = 0;

	PSD_TRY(psd_caffe_read_numbers(draft->message, key, lowest, highest, &read, 1, &n_read, true, err));
	*number = (int)read;
	return PSD_OK;
}

/* Reshapes the first input. */
static enum psd_status add_reshape(struct psd_caffe_draft *draft, const char *suffix, struct psd_shape shape,
				   struct psd_error *err)
{
	const union psd_layer_settings settings = {.shape = shape};

	if (psd_shape_is_equal(shape, psd_caffe_shape_of(draft)))
		return PSD_OK;
	return psd_caffe_add_above(draft, suffix, &psd_layer_reshape, &settings, &draft->spec->inputs[0], err);
}

/* ---- flatten and reshape ---- */

enum psd_status psd_caffe_build_flatten(struct psd_caffe_draft *draft, struct psd_error *err)
{
	int axis = 1, end_axis = -1;
	struct sides in, flat = {.of = {1, 1, 1, 1}};

	PSD_TRY(read_whole(draft, "axis", 1, PSD_CAFFE_SIDES_MAX, &axis, err));
	PSD_TRY(read_whole(draft, "end_axis", -1, PSD_CAFFE_SIDES_MAX, &end_axis, err));
	in = sides_of(draft);
	if (end_axis == -1)
		end_axis = (int)in.n;
	if (end_axis < axis || end_axis > (int)in.n)
		return psd_error_set(err, PSD_EINVAL, draft->spec->at,
				     "layer '%.80s' flattens axes %d to %d of a blob that has %u beside the batch",
				     draft->spec->name, axis, end_axis, in.n);
	for (int i = 1; i <= (int)in.n; i++) {
		const bool is_merged = i > axis && i <= end_axis;

		flat.n += !is_merged;
		flat.of[flat.n - 1] = product(flat.of[flat.n - 1], in.of[i - 1]);
	}
	return build_sides(draft, &flat, err);
}

enum { DIMS_MAX = PSD_CAFFE_SIDES_MAX + 1 }; /* the batch included */

/* Sets dims to those of the bottom, with n_axes of them from `axis` on replaced by `numbers`; the first is the batch.
 * */
static enum psd_status replace_axes(const struct psd_caffe_draft *draft, const double numbers[], unsigned n_read,
				    int axis, int n_axes, double dims[DIMS_MAX], unsigned *n_dims,
				    struct psd_error *err)
{
	const struct sides in = sides_of(draft);
	const int end = n_axes < 0 ? (int)in.n + 1 : axis + n_axes;
	double all[2 * DIMS_MAX + 1];
	unsigned n = 0;

	for (int i = 0; i < axis; i++)
		all[n++] = i ? in.of[i - 1] : 1;
	for (unsigned i = 0; i < n_read; i++) {
		const unsigned from = (unsigned)axis + i;

		all[n++] = numbers[i] == 0 && from > 0 && from <= in.n ? in.of[from - 1] : numbers[i];
	}
	for (int i = end; i <= (int)in.n; i++)
		all[n++] = i ? in.of[i - 1] : 1;
	while (n > DIMS_MAX && all[n - 1] == 1)
		n--;
	if (n < 2 || n > DIMS_MAX || axis > (int)in.n + 1 || end > (int)in.n + 1)
		return psd_error_set(err, PSD_EINVAL, draft->message->at,
				     "layer '%.80s' makes a shape of %u dimensions from one of %u, must make 2 to %d "
				     "and replace existing axes",
				     draft->spec->name, n, in.n + 1, DIMS_MAX);
	memcpy(dims, all, n * sizeof(*dims));
	*n_dims = n;
	return PSD_OK;
}

/* A dim of -1 gets the number that keeps the number of values. */
static struct sides fill_in(const struct psd_caffe_draft *draft, const double dims[], unsigned n_dims)
{
	double left = (double)psd_shape_elements(psd_caffe_shape_of(draft));
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

/* A dim of 0 copies that of the bottom, one of -1 keeps the number of values. The first is the batch, which the job
 * sets. */
enum psd_status psd_caffe_build_reshape(struct psd_caffe_draft *draft, struct psd_error *err)
{
	const struct psd_node *shape = psd_node_child(draft->message, "shape");
	double numbers[DIMS_MAX], dims[DIMS_MAX];
	unsigned n_read = 0, n_dims = 0;
	int axis = 0, n_axes = -1;

	PSD_TRY(psd_caffe_read_numbers(shape, "dim", -1, PSD_LAYER_CHANNELS_MAX, numbers, DIMS_MAX, &n_read, true,
				       err));
	PSD_TRY(read_whole(draft, "axis", 0, DIMS_MAX, &axis, err));
	PSD_TRY(read_whole(draft, "num_axes", -1, DIMS_MAX, &n_axes, err));
	PSD_TRY(replace_axes(draft, numbers, n_read, axis, n_axes, dims, &n_dims, err));
	struct sides sides = fill_in(draft, dims, n_dims);
	return build_sides(draft, &sides, err);
}

/* ---- tile and reduction ---- */

enum { MEAN = 3 };

/* Repeated channels are a concatenation; a repeated single row or column is a resize. */
enum psd_status psd_caffe_build_tile(struct psd_caffe_draft *draft, struct psd_error *err)
{
	struct psd_layer_spec *spec = draft->spec;
	uint32_t tiles = 0;
	int axis = 1;

	PSD_TRY(read_whole(draft, "axis", 1, 3, &axis, err));
	PSD_TRY(psd_caffe_read_count(draft->message, "tiles", 1, axis == 1 ? PSD_LAYER_INPUTS_MAX : PSD_LAYER_SIDE_MAX,
				     &tiles, err));
	if (!tiles)
		return psd_caffe_missing(draft->message, spec, "tiles", err);
	struct psd_shape in = psd_caffe_shape_of(draft);
	if (axis > 1 && (axis == 2 ? in.height : in.width) != 1)
		return psd_error_set(err, PSD_EINVAL, draft->message->at,
				     "layer '%.80s' tiles axis %d, which must have one position, its input is %ux%ux%u",
				     spec->name, axis, in.channels, in.height, in.width);
	if (axis > 1) {
		spec->kind = &psd_layer_resize;
		spec->settings.size = (struct psd_sides){axis == 2 ? tiles : in.height, axis == 3 ? tiles : in.width};
		return psd_caffe_build_one(draft, err);
	}
	for (uint32_t i = 1; i < tiles; i++)
		spec->inputs[i] = spec->inputs[0];
	spec->n_inputs = tiles;
	return psd_caffe_build_one(draft, err);
}

/* Kind and settings of the mean over the axes from `axis` on: over a sample, a map, or a row. */
static const struct psd_layer_kind *mean_of(int axis, struct psd_shape in, union psd_layer_settings *settings)
{
	settings->pool = (struct psd_pool_settings){
		.window = {.kernel = {1, in.width}, .stride = {1, 1}, .dilation = {1, 1}},
		.method = PSD_POOL_AVERAGE,
		.rounding = PSD_POOL_DOWN,
	};
	return axis == 3 ? &psd_layer_pool : &psd_layer_global_pool;
}

/* Adds the function whose values the operation sums. */
static enum psd_status add_summands(struct psd_caffe_draft *draft, unsigned operation, struct psd_error *err)
{
	static const struct psd_layer_kind *const kinds[] = {NULL, &psd_layer_abs, &psd_layer_power, NULL};
	const union psd_layer_settings square = {.power = {2}};

	if (!kinds[operation])
		return PSD_OK;
	return psd_caffe_add_above(draft, "summands", kinds[operation], &square, &draft->spec->inputs[0], err);
}

static enum psd_status read_reduction(const struct psd_caffe_draft *draft, int *axis, unsigned *operation,
				      double *coefficient, struct psd_error *err)
{
	static const char *const operations[] = {"SUM", "ASUM", "SUMSQ", "MEAN", "1", "2", "3", "4", NULL};
	const struct psd_node *field;
	unsigned n_read = 0;

	PSD_TRY(psd_caffe_single(draft->message, "operation", &field, err));
	if (field)
		PSD_TRY(psd_node_choice(field, operations, operation, err));
	PSD_TRY(read_whole(draft, "axis", 1, 3, axis, err));
	if (!*axis) /* axis 0 would include the batch */
		return psd_caffe_missing(draft->message, draft->spec, "axis", err);
	*operation %= 4;
	return psd_caffe_read_numbers(draft->message, "coeff", -1e6, 1e6, coefficient, 1, &n_read, false, err);
}

/* A sum is the mean times the number of values. */
enum psd_status psd_caffe_build_reduction(struct psd_caffe_draft *draft, struct psd_error *err)
{
	struct psd_layer_spec *spec = draft->spec;
	unsigned operation = 0;
	int axis = 0;
	double factor = 1;

	PSD_TRY(read_reduction(draft, &axis, &operation, &factor, err));
	struct psd_shape in = psd_caffe_shape_of(draft);
	if (operation != MEAN)
		factor *= (axis == 1 ? in.channels : 1.0) * (axis <= 2 ? in.height : 1.0) * in.width;
	PSD_TRY(add_summands(draft, operation, err));
	if (axis == 1)
		PSD_TRY(add_reshape(draft, "map", (struct psd_shape){1, product(in.channels, in.height), in.width},
				    err));
	spec->kind = mean_of(axis, in, &spec->settings);
	if (factor != 1) {
		PSD_TRY(psd_caffe_add_above(draft, "mean", spec->kind, &spec->settings, &spec->inputs[0], err));
		spec->kind = &psd_layer_affine;
		spec->settings.linear = (struct psd_linear_settings){factor, 0};
	}
	return psd_caffe_build_one(draft, err);
}

/* ---- permute ---- */

/* The graph has three axes, so that of four axes some must stay side by side: they move as one run. */
struct runs {
	uint32_t sizes[PSD_CAFFE_SIDES_MAX]; /* in the bottom's order; 1 from n on */
	unsigned order[PSD_CAFFE_SIDES_MAX]; /* numbers of runs, from 1, in the top's order */
	unsigned n;
};

static struct runs find_runs(const struct sides *in, const unsigned order[PSD_CAFFE_SIDES_MAX])
{
	struct runs runs = {.sizes = {1, 1, 1, 1}};
	unsigned position[PSD_CAFFE_SIDES_MAX + 1] = {0}, run_at[PSD_CAFFE_SIDES_MAX] = {0}, n = 0;

	for (unsigned p = 0; p < PSD_CAFFE_SIDES_MAX; p++)
		position[order[p]] = p;
	for (unsigned axis = 1; axis <= PSD_CAFFE_SIDES_MAX; axis++) {
		if (axis == 1 || position[axis] != position[axis - 1] + 1)
			run_at[position[axis]] = ++runs.n;
		runs.sizes[runs.n - 1] = product(runs.sizes[runs.n - 1], in->of[axis - 1]);
	}
	for (unsigned p = 0; p < PSD_CAFFE_SIDES_MAX; p++)
		if (run_at[p])
			runs.order[n++] = run_at[p];
	for (; n < PSD_CAFFE_SIDES_MAX; n++)
		runs.order[n] = n + 1;
	return runs;
}

static enum psd_status permute_four(struct psd_caffe_draft *draft, const unsigned order[PSD_CAFFE_SIDES_MAX],
				    struct psd_error *err)
{
	const struct sides in = sides_of(draft);
	const struct runs runs = find_runs(&in, order);
	struct sides out = {.n = PSD_CAFFE_SIDES_MAX};

	if (runs.n > 3)
		return psd_error_set(err, PSD_EINVAL, draft->message->at,
				     "layer '%.80s' separates all four axes, at most three can move apart",
				     draft->spec->name);
	for (unsigned p = 0; p < PSD_CAFFE_SIDES_MAX; p++)
		out.of[p] = in.of[order[p] - 1];
	PSD_TRY(add_reshape(draft, "runs", (struct psd_shape){runs.sizes[0], runs.sizes[1], runs.sizes[2]}, err));
	memcpy(draft->spec->settings.permute.order, runs.order, sizeof(draft->spec->settings.permute.order));
	struct psd_shape moved = (struct psd_shape){runs.sizes[runs.order[0] - 1], runs.sizes[runs.order[1] - 1],
						    runs.sizes[runs.order[2] - 1]};
	if (!psd_shape_is_equal(moved, shape_for(&out))) {
		PSD_TRY(psd_caffe_add_above(draft, "order", &psd_layer_permute, &draft->spec->settings,
					    &draft->spec->inputs[0], err));
		draft->spec->kind = &psd_layer_reshape;
		draft->spec->settings.shape = shape_for(&out);
	}
	PSD_TRY(psd_caffe_build_one(draft, err));
	return put_5d(draft, &out, err);
}

enum psd_status psd_caffe_build_permute(struct psd_caffe_draft *draft, struct psd_error *err)
{
	double numbers[DIMS_MAX] = {0, 1, 2, 3, 4};
	unsigned n_read = 0, n_dims, order[PSD_CAFFE_SIDES_MAX], axes = 0;

	PSD_TRY(psd_caffe_read_numbers(draft->message, "order", 0, DIMS_MAX - 1, numbers, DIMS_MAX, &n_read, true,
				       err));
	n_dims = sides_of(draft).n + 1;
	for (unsigned i = 1; i < DIMS_MAX; i++)
		axes |= 1u << (order[i - 1] = (unsigned)numbers[i]);
	if (numbers[0] != 0 || (n_read && n_read != n_dims) || axes != 0x1e)
		return psd_error_set(
			err, PSD_EINVAL, draft->message->at,
			"layer '%.80s' must name each of %u axes once and leave axis 0, the batch, where it is",
			draft->spec->name, n_dims);
	if (n_dims == DIMS_MAX)
		return permute_four(draft, order, err);
	memcpy(draft->spec->settings.permute.order, order, sizeof(draft->spec->settings.permute.order));
	return psd_caffe_build_one(draft, err);
}
