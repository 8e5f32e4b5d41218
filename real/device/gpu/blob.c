/* Blobs: sharing of memory, views, reductions. */
#include "real/device/gpu/gpu.h"

const struct psd_gpu_layer *psd_gpu_below(const struct psd_gpu_layer *self, unsigned input)
{
	return &self->device->layers[self->model->inputs[input]];
}

struct psd_gpu_blob *psd_gpu_input(const struct psd_gpu_layer *self, unsigned input)
{
	return psd_gpu_below(self, input)->blob;
}

/* A layer may not overwrite the network's input. Its images are in a sample slot, which must stay unchanged. */
bool psd_gpu_may_work_in_place(const struct psd_gpu_layer *self)
{
	const struct psd_gpu_layer *input = psd_gpu_below(self, 0);

	return input->n_readers == 1 && input->model->n_inputs > 0 &&
	       (input->blob->keeps == PSD_KEEPS_NOTHING ||
		(input->blob->keeps == PSD_KEEPS_SIGNS && self->kind->leaves_signs));
}

float psd_gpu_slope_above(const struct psd_gpu_layer *self)
{
	return (float)self->device->layers[self->last_reader].model->settings.slope.slope;
}

enum psd_status psd_gpu_declare(struct psd_gpu_layer *self, struct psd_error *err)
{
	const struct psd_shape shape = self->model->shape;
	const struct psd_device *device = self->device;
	struct psd_gpu_blob *blob = &self->own;

	blob->elements = (uint64_t)device->network.batch * shape.channels * shape.height * shape.width;
	blob->bytes = blob->elements * (device->type == PSD_GPU_FLOAT ? sizeof(float) : sizeof(uint16_t));
	blob->owner = blob->last = self->number;
	blob->keeps = self->kind->keeps;
	blob->has_diff = self->model->is_trained && !self->model->kind->is_loss;
	self->blob = blob;
	if (blob->elements >= PSD_GPU_MOST_ELEMENTS)
		return psd_error_set(
			err, PSD_EINVAL, PSD_NOWHERE,
			"layer '%.80s' (%s) has %llu values in a batch of %u, cuda supports less than %llu",
			self->model->name, self->model->kind->name, (unsigned long long)blob->elements,
			device->network.batch, (unsigned long long)PSD_GPU_MOST_ELEMENTS);
	return self->model->n_inputs ? psd_gpu_want(self->device, blob->bytes, &blob->value, err) : PSD_OK;
}

void psd_gpu_declare_in_place(struct psd_gpu_layer *self)
{
	self->blob = psd_gpu_input(self, 0);
	self->blob->last = self->number;
	self->blob->has_diff = self->model->is_trained; /* also if only this layer's weight is trained */
	if (self->kind->keeps > self->blob->keeps)
		self->blob->keeps = self->kind->keeps;
}

bool psd_gpu_share(struct psd_gpu_blob *blob)
{
	const bool was_filled = blob->is_filled;

	blob->is_filled = true;
	return was_filled;
}

/* ---- views ---- */

struct psd_gpu_values psd_gpu_value(const struct psd_gpu_layer *self, const struct psd_gpu_blob *blob)
{
	return (struct psd_gpu_values){blob->value, self->device->type};
}

struct psd_gpu_values psd_gpu_diff(const struct psd_gpu_layer *self, const struct psd_gpu_blob *blob)
{
	return (struct psd_gpu_values){blob->diff, self->device->type};
}

struct psd_gpu_values psd_gpu_floats(const float *data)
{
	return (struct psd_gpu_values){(void *)(uintptr_t)data, PSD_GPU_FLOAT};
}

struct psd_gpu_maps psd_gpu_maps_of(const struct psd_gpu_layer *self)
{
	const struct psd_shape shape = self->model->shape;

	return (struct psd_gpu_maps){shape.channels, shape.height, shape.width, self->device->is_channels_last};
}

uint32_t psd_gpu_positions(const struct psd_gpu_layer *self)
{
	return self->model->shape.height * self->model->shape.width;
}

uint64_t psd_gpu_batch_positions(const struct psd_gpu_layer *self)
{
	return (uint64_t)self->device->network.batch * psd_gpu_positions(self);
}

struct psd_gpu_channel psd_gpu_channel_of(const struct psd_gpu_layer *self)
{
	return (struct psd_gpu_channel){self->device->is_channels_last ? 1 : psd_gpu_positions(self),
					self->model->shape.channels};
}

static struct psd_gpu_view view(const struct psd_gpu_layer *self, bool is_channels_last)
{
	const struct psd_shape shape = self->model->shape;
	const uint32_t positions = shape.height * shape.width, elements = positions * shape.channels;
	struct psd_gpu_view seen = {.sizes = {self->device->network.batch, shape.channels, shape.height, shape.width},
				    .strides = {elements, positions, shape.width, 1}};

	if (is_channels_last) {
		seen.strides[1] = 1;
		seen.strides[2] = shape.width * shape.channels;
		seen.strides[3] = shape.channels;
	}
	return seen;
}

struct psd_gpu_view psd_gpu_view_plain(const struct psd_gpu_layer *self)
{
	return view(self, false);
}

struct psd_gpu_view psd_gpu_view_of(const struct psd_gpu_layer *self)
{
	return view(self, self->device->is_channels_last);
}

static void move_axis_last(uint32_t axes[4])
{
	const uint32_t channels = axes[1];

	axes[1] = axes[2];
	axes[2] = axes[3];
	axes[3] = channels;
}

void psd_gpu_view_turn(struct psd_gpu_view *seen)
{
	move_axis_last(seen->sizes);
	move_axis_last(seen->strides);
}

uint64_t psd_gpu_view_elements(const struct psd_gpu_view *seen)
{
	return (uint64_t)seen->sizes[0] * seen->sizes[1] * seen->sizes[2] * seen->sizes[3];
}

enum psd_status psd_gpu_move_views(struct psd_gpu_layer *self, struct psd_gpu_move move, struct psd_error *err)
{
	if (self->device->is_channels_last) { /* this order of axes is contiguous */
		psd_gpu_view_turn(&move.from_view);
		psd_gpu_view_turn(&move.to_view);
	}
	return psd_gpu_run_move(self->device, &move, psd_gpu_view_elements(&move.to_view), err);
}

/* ---- sums ---- */

/* Numbers of partial sums of an output: at most MOST_PARTS. At the end one thread adds them, if they are at most
 * MOST_PARTS_AT_END; more partial sums are first reduced to SECOND_PARTS. */
enum { MOST_PARTS = 4096, MOST_PARTS_AT_END = 256, SECOND_PARTS = 64 };

/* Returns the number of partial sums of each output: enough to keep the GPU busy, but each with a minimum of elements.
 * It depends only on the shape, so results have equal bits on all GPUs. */
static uint32_t parts_of(uint32_t n_outputs, uint32_t count)
{
	const uint64_t parts = psd_least(MOST_PARTS, psd_least(PSD_GPU_SUMS_PARTS / n_outputs, count / 8));

	return parts ? (uint32_t)parts : 1;
}

static uint32_t second_parts_of(uint32_t n_parts)
{
	return n_parts > MOST_PARTS_AT_END ? SECOND_PARTS : 0;
}

/* Sets the addresses and strides of the elements of each output. */
static void find_sums(const struct psd_gpu_layer *self, const struct psd_gpu_reduction *reduction,
		      struct psd_gpu_sums *sums)
{
	const struct psd_shape shape = self->model->shape;
	const uint32_t batch = self->device->network.batch, positions = psd_gpu_positions(self);
	const uint32_t elements = positions * shape.channels;
	const bool is_channels_last = self->device->is_channels_last;

	sums->channels = shape.channels;
	sums->n_outputs = reduction->is_by_sample ? batch * shape.channels : shape.channels;
	sums->count = reduction->is_by_sample ? positions : batch * positions;
	sums->group_stride = elements;
	sums->channel_stride = is_channels_last ? 1 : positions;
	sums->inner = positions;
	sums->inner_stride = is_channels_last ? shape.channels : 1;
	sums->outer_stride = elements;
	if (is_channels_last) /* with channels last, the positions of the next sample follow without a gap */
		sums->inner = sums->count;
	if (reduction->is_over_all) {
		sums->channels = sums->n_outputs = sums->channel_stride = sums->inner_stride = 1;
		sums->count = sums->inner = batch * elements;
	}
	sums->n_parts = parts_of(sums->n_outputs, sums->count);
}

void psd_gpu_want_reduction(const struct psd_gpu_layer *self, const struct psd_gpu_reduction *reduction)
{
	struct psd_gpu_sums sums;

	find_sums(self, reduction, &sums);
	psd_gpu_want_sums(self->device, (uint64_t)sums.n_outputs * (sums.n_parts + second_parts_of(sums.n_parts)));
}

/* Begins a reduction: partial sums, if there are many a second level of them, then the sums. `end` has the result's
 * `to`, `scale` and `adds`. */
static enum psd_status sum_up(struct psd_device *device, const struct psd_gpu_sums *sums, struct psd_gpu_sums_end end,
			      struct psd_error *err)
{
	const uint64_t n_partial = (uint64_t)sums->n_outputs * sums->n_parts;
	const struct psd_gpu_sums second = {.left = psd_gpu_floats(sums->partial),
					    .n_outputs = sums->n_outputs,
					    .n_parts = second_parts_of(sums->n_parts),
					    .channels = sums->n_outputs,
					    .channel_stride = 1,
					    .inner_stride = sums->n_outputs,
					    .count = sums->n_parts,
					    .inner = sums->n_parts,
					    .partial = sums->partial + n_partial};
	const struct psd_gpu_sums *last = second.n_parts > 0 ? &second : sums;

	PSD_TRY(psd_gpu_run_sums(device, sums, n_partial, err));
	if (last == &second)
		PSD_TRY(psd_gpu_run_sums(device, &second, (uint64_t)second.n_outputs * second.n_parts, err));
	end.partial = last->partial;
	end.n_outputs = last->n_outputs;
	end.n_parts = last->n_parts;
	return psd_gpu_run_sums_end(device, &end, end.n_outputs, err);
}

enum psd_status psd_gpu_reduce(const struct psd_gpu_layer *self, const struct psd_gpu_reduction *reduction,
			       struct psd_error *err)
{
	struct psd_gpu_sums sums = {.left = reduction->left,
				    .right = reduction->right,
				    .summand = reduction->summand,
				    .mean = reduction->mean,
				    .inverse = reduction->inverse,
				    .partial = self->device->sums};
	const struct psd_gpu_sums_end end = {.to = reduction->to, .scale = reduction->scale, .adds = reduction->adds};

	find_sums(self, reduction, &sums);
	return sum_up(self->device, &sums, end, err);
}

struct psd_gpu_reduction psd_gpu_shift_sums(const struct psd_gpu_layer *self, unsigned index)
{
	return (struct psd_gpu_reduction){.left = psd_gpu_diff(self, self->blob),
					  .to = psd_gpu_floats(self->gradients[index]),
					  .scale = 1.0f / self->device->diff_scale};
}

enum psd_status psd_gpu_differentiate_vectors(const struct psd_gpu_layer *self, enum psd_gpu_summand summand,
					      const float *mean, const float *inverse, struct psd_error *err)
{
	const struct psd_affine_settings *affine = &self->model->settings.affine;
	const struct psd_gpu_reduction dshift = psd_gpu_shift_sums(self, affine->has_scale);
	struct psd_gpu_reduction dscale = psd_gpu_shift_sums(self, 0);

	dscale.right = psd_gpu_value(self, psd_gpu_input(self, 0));
	dscale.summand = summand;
	dscale.mean = mean;
	dscale.inverse = inverse;
	if (affine->has_scale)
		PSD_TRY(psd_gpu_reduce(self, &dscale, err));
	return affine->has_shift ? psd_gpu_reduce(self, &dshift, err) : PSD_OK;
}

enum psd_status psd_gpu_sum_columns(struct psd_device *device, struct psd_gpu_values from, uint32_t rows,
				    uint32_t columns, float *partial, float *to, float scale, struct psd_error *err)
{
	const uint32_t n_parts = parts_of(columns, rows);
	float *position = n_parts > 1 ? partial : to; /* with a single part, the partial sum is the result */
	const struct psd_gpu_sums sums = {.left = from,
					  .n_outputs = columns,
					  .n_parts = n_parts,
					  .channels = columns,
					  .channel_stride = 1,
					  .inner_stride = columns,
					  .count = rows,
					  .inner = rows,
					  .partial = position};
	const struct psd_gpu_sums_end end = {.to = psd_gpu_floats(to), .scale = scale};

	return sum_up(device, &sums, end, err);
}
