/* Caffe's layers that give a blob another shape or another order. */
#include "engine/model/prototxt_parts.h"

#include "engine/model/layer.h"

enum { MOST_DIMS = 4 };

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
	size->height = interpolated(psd_caffe_shape_of(part, 0).height, shrink, zoom);
	size->width = interpolated(psd_caffe_shape_of(part, 0).width, shrink, zoom);
	if (!status)
		status = psd_caffe_read_count(part->message, "height", 1, PSD_LAYER_SIDE_MAX, &size->height, err);
	if (!status)
		status = psd_caffe_read_count(part->message, "width", 1, PSD_LAYER_SIDE_MAX, &size->width, err);
	return status ? status : psd_caffe_build_one(part, err);
}

/* Nothing is left to do where the shape is that of the bottom. */
static enum psd_status build_reshape(struct psd_caffe_part *part, struct psd_shape shape, struct psd_error *err)
{
	const struct psd_shape in = psd_caffe_shape_of(part, 0);

	if (shape.channels == in.channels && shape.height == in.height && shape.width == in.width)
		return psd_caffe_build_split(part, err);
	part->spec->settings.shape = shape;
	return psd_caffe_build_one(part, err);
}

enum psd_status psd_caffe_build_flat(struct psd_caffe_part *part, struct psd_error *err)
{
	double end_axis = -1;
	unsigned n_ends = 0;
	enum psd_status status =
		psd_caffe_read_numbers(part->message, "end_axis", -1, 3, &end_axis, 1, &n_ends, true, err);
	uint64_t elements;

	if (!status)
		status = psd_caffe_check_bottoms(part, 1, err);
	if (!status && end_axis != -1 && end_axis != 3)
		status = psd_error_set(err, PSD_EINVAL, part->message->at, "'end_axis' is %g, must be 3 or -1",
				       end_axis);
	if (status)
		return status;
	elements = psd_shape_elements(psd_caffe_shape_of(part, 0));
	return build_reshape(part, (struct psd_shape){elements > UINT32_MAX ? 0 : (uint32_t)elements, 1, 1}, err);
}

/* Of the dims 0 copies the bottom's and one -1 takes what is left. The first is the batch, which the job sets. */
enum psd_status psd_caffe_build_shape(struct psd_caffe_part *part, struct psd_error *err)
{
	const struct psd_node *given = psd_node_child(part->message, "shape");
	double dims[MOST_DIMS] = {0, 1, 1, 1}, sides[MOST_DIMS] = {0}, left;
	struct psd_shape in;
	unsigned n_dims = 0;
	enum psd_status status =
		psd_caffe_read_numbers(given, "dim", -1, PSD_LAYER_CHANNELS_MAX, dims, MOST_DIMS, &n_dims, true, err);

	if (!status)
		status = psd_caffe_check_bottoms(part, 1, err);
	if (!status && n_dims < 2)
		status = psd_error_set(err, PSD_EINVAL, part->message->at,
				       "layer '%.80s' has a shape of %u dimensions, must be 2 to %d", part->spec->name,
				       n_dims, MOST_DIMS);
	if (status)
		return status;
	in = psd_caffe_shape_of(part, 0);
	sides[1] = in.channels;
	sides[2] = in.height;
	sides[3] = in.width;
	left = (double)psd_shape_elements(in);
	for (unsigned i = 1; i < MOST_DIMS; i++) {
		dims[i] = dims[i] == 0 ? sides[i] : dims[i];
		left /= dims[i] > 0 ? dims[i] : 1;
	}
	for (unsigned i = 1; i < MOST_DIMS; i++)
		if (dims[i] < 0) {
			dims[i] = left < PSD_LAYER_CHANNELS_MAX ? left : 0;
			left = 1;
		}
	return build_reshape(part, (struct psd_shape){(uint32_t)dims[1], (uint32_t)dims[2], (uint32_t)dims[3]}, err);
}

enum psd_status psd_caffe_build_order(struct psd_caffe_part *part, struct psd_error *err)
{
	double order[MOST_DIMS] = {0, 1, 2, 3};
	unsigned n_given = 0;
	enum psd_status status =
		psd_caffe_read_numbers(part->message, "order", 0, MOST_DIMS - 1, order, MOST_DIMS, &n_given, true, err);

	if (!status && (order[0] != 0 || (n_given && n_given != MOST_DIMS)))
		status = psd_error_set(err, PSD_EINVAL, part->message->at,
				       "layer '%.80s' must name %d axes and leave axis 0, the batch, where it is",
				       part->spec->name, MOST_DIMS);
	for (unsigned i = 1; i < MOST_DIMS; i++)
		part->spec->settings.permute.order[i - 1] = (unsigned)order[i];
	return status ? status : psd_caffe_build_one(part, err);
}
