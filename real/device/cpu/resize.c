/* Bilinear interpolation to another size. A weight is the product of a row's and a column's weight. Backward adds each
 * gradient to the four source positions. Works on plain formats. */
#include <string.h>

#include "real/device/cpu/cpu.h"

/* The two rows (or columns) of the input from which a row (or column) of the output is interpolated, and the weight of
 * the second one. */
struct between {
	uint32_t first, second;
	float nearness;
};

struct resize {
	struct psd_cpu_op value_in, diff_out;
	void *const *source, *const *share; /* slots (struct psd_cpu_op) of the input and its gradient */
	struct between *rows, *columns;
};

static struct between *find_places(struct psd_device *device, uint32_t from, uint32_t to)
{
	struct between *positions = psd_cpu_take(device, to * sizeof(*positions));

	for (uint32_t i = 0; positions && i < to; i++) {
		const double position = to > 1 ? (double)i * (from - 1) / (to - 1) : 0;
		const uint32_t first = (uint32_t)position;

		positions[i] = (struct between){first, first + 1 < from ? first + 1 : first, (float)(position - first)};
	}
	return positions;
}

static enum psd_status prepare(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct resize *resize = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0);
	const struct psd_shape from = psd_cpu_below(self, 0)->model->shape, to = self->model->shape;
	const dnnl_memory_desc_t below = psd_cpu_plain(psd_cpu_below(self, 0)), plain = psd_cpu_plain(self);

	PSD_TRY(psd_cpu_declare(self, &plain, err));
	resize->rows = find_places(self->device, from.height, to.height);
	resize->columns = find_places(self->device, from.width, to.width);
	if (!resize->rows || !resize->columns)
		return psd_cpu_no_memory(err);
	PSD_TRY(psd_cpu_op_convert(&resize->value_in, self, psd_cpu_value(in), &below, PSD_CPU_SCRATCH_SOURCE,
				   &resize->source, err));
	if (in->has_diff)
		PSD_TRY(psd_cpu_op_deliver(&resize->diff_out, self, psd_cpu_share(in), &below, PSD_CPU_SCRATCH_SOURCE,
					   &resize->share, err));
	return PSD_OK;
}

static void enlarge(const struct resize *resize, struct psd_shape from, struct psd_shape to, const float *in,
		    float *out)
{
	for (uint32_t y = 0; y < to.height; y++) {
		const struct between row = resize->rows[y];
		const float *upper = in + (size_t)row.first * from.width, *lower = in + (size_t)row.second * from.width;

		for (uint32_t x = 0; x < to.width; x++) {
			const struct between c = resize->columns[x];
			const float above = upper[c.first] + c.nearness * (upper[c.second] - upper[c.first]);
			const float below = lower[c.first] + c.nearness * (lower[c.second] - lower[c.first]);

			*out++ = above + row.nearness * (below - above);
		}
	}
}

static void gather(const struct resize *resize, struct psd_shape from, struct psd_shape to, const float *diff,
		   float *share)
{
	memset(share, 0, (size_t)from.height * from.width * sizeof(*share));
	for (uint32_t y = 0; y < to.height; y++) {
		const struct between row = resize->rows[y];
		float *upper = share + (size_t)row.first * from.width, *lower = share + (size_t)row.second * from.width;

		for (uint32_t x = 0; x < to.width; x++, diff++) {
			const struct between c = resize->columns[x];
			const float above = *diff * (1 - row.nearness), below = *diff * row.nearness;

			upper[c.first] += above * (1 - c.nearness);
			upper[c.second] += above * c.nearness;
			lower[c.first] += below * (1 - c.nearness);
			lower[c.second] += below * c.nearness;
		}
	}
}

/* Returns the number of maps in a batch: samples times channels. */
static size_t count_maps(const struct psd_cpu_layer *self)
{
	return (size_t)self->device->options.batch * self->model->shape.channels;
}

static size_t positions_of(struct psd_shape shape)
{
	return (size_t)shape.height * shape.width;
}

static enum psd_status forward(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct resize *resize = self->details;
	const struct psd_shape from = psd_cpu_below(self, 0)->model->shape, to = self->model->shape;

	PSD_TRY(psd_cpu_op_run(&resize->value_in, self, err));
	for (size_t m = 0; m < count_maps(self); m++)
		enlarge(resize, from, to, (const float *)*resize->source + m * positions_of(from),
			(float *)self->blob->value + m * positions_of(to));
	return PSD_OK;
}

static enum psd_status backward(struct psd_cpu_layer *self, struct psd_error *err)
{
	struct resize *resize = self->details;
	struct psd_cpu_blob *in = psd_cpu_input(self, 0);
	const struct psd_shape from = psd_cpu_below(self, 0)->model->shape, to = self->model->shape;

	psd_cpu_share_begin(self, in);
	for (size_t m = 0; m < count_maps(self); m++)
		gather(resize, from, to, (const float *)self->blob->diff + m * positions_of(to),
		       (float *)*resize->share + m * positions_of(from));
	PSD_TRY(psd_cpu_op_run(&resize->diff_out, self, err));
	return psd_cpu_share_end(self, in, err);
}

const struct psd_cpu_kind psd_cpu_resize = {prepare, forward, backward, .details_bytes = sizeof(struct resize)};
